// SPDX-License-Identifier: GPL-2.0
/*
 * Pairs of contexts, and the buffers in which messages land.
 */
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/mm.h>

#include "lnd.h"

/* How many operations a context takes. */
#define CREDITS 256

static int post(struct lnd_buffer *buffer)
{
	int ret;

	atomic_inc(&buffer->users);
	ret = kfi_recv(buffer->end->rx, buffer->data, BUFFER_SIZE, NULL, KFI_ADDR_UNSPEC, buffer);
	if (ret)
		atomic_dec(&buffer->users);
	return ret;
}

static void repost(struct work_struct *work)
{
	struct lnd_buffer *buffer =
		container_of(to_rcu_work(work), struct lnd_buffer, repost);
	int ret;

	if (buffer->end->node->stopping)
		return;
	ret = post(buffer);
	if (ret == -KFI_EAGAIN)
		queue_rcu_work(lnd_wq, &buffer->repost);
	else if (ret)
		lnd_problem("posting a buffer: %d", ret);
}

void lnd_buffer_put(struct lnd_buffer *buffer)
{
	if (atomic_dec_and_test(&buffer->users) && !buffer->end->node->stopping)
		queue_rcu_work(lnd_wq, &buffer->repost);
}

static int open_contexts(struct lnd_end *end)
{
	struct kfi_rx_attr rx_attr = {
		.op_flags = KFI_COMPLETION | KFI_MULTI_RECV,
		.msg_order = KFI_ORDER_NONE,
		.comp_order = KFI_ORDER_NONE,
		.size = CREDITS + BUFFERS,
		.iov_limit = PAGES,
	};
	struct kfi_tx_attr tx_attr = {
		.op_flags = KFI_COMPLETION | KFI_TRANSMIT_COMPLETE,
		.msg_order = KFI_ORDER_NONE,
		.comp_order = KFI_ORDER_NONE,
		.size = 2 * CREDITS,
		.iov_limit = PAGES,
		.rma_iov_limit = PAGES,
	};
	size_t min_multi_recv = MESSAGE_SIZE;
	int ret;

	ret = kfi_rx_context(end->node->sep, end->number, &rx_attr, &end->rx, end);
	if (ret)
		return ret;
	ret = kfi_setopt(&end->rx->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV,
			 &min_multi_recv, sizeof(min_multi_recv));
	if (ret)
		return ret;
	ret = kfi_tx_context(end->node->sep, end->number, &tx_attr, &end->tx, end);
	if (ret)
		return ret;
	ret = kfi_ep_bind(end->rx, &end->rx_queue.cq->fid, 0);
	if (ret)
		return ret;
	ret = kfi_ep_bind(end->tx, &end->tx_queue.cq->fid, 0);
	if (ret)
		return ret;
	ret = kfi_enable(end->rx);
	return ret ?: kfi_enable(end->tx);
}

int lnd_end_open(struct lnd_end *end, struct lnd_node *node, unsigned int number)
{
	unsigned int i;
	int ret;

	end->node = node;
	end->number = number;
	ret = lnd_queue_open(&end->rx_queue, end, 10 * CREDITS, false);
	if (ret)
		return ret;
	ret = lnd_queue_open(&end->tx_queue, end, 10 * CREDITS, true);
	if (ret)
		return ret;
	ret = open_contexts(end);
	if (ret)
		return ret;
	for (i = 0; i < BUFFERS; i++) {
		struct lnd_buffer *buffer = &end->buffer[i];

		buffer->end = end;
		INIT_RCU_WORK(&buffer->repost, repost);
		buffer->page = alloc_pages(GFP_KERNEL | __GFP_NOWARN, get_order(BUFFER_SIZE));
		if (!buffer->page)
			return -ENOMEM;
		buffer->data = page_address(buffer->page);
	}
	return 0;
}

int lnd_end_post(struct lnd_end *end)
{
	unsigned int i;
	int ret;

	for (i = 0; i < BUFFERS; i++) {
		ret = post(&end->buffer[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/* Takes the buffers back. Those that are not posted at the moment are not found. */
void lnd_end_stop(struct lnd_end *end)
{
	unsigned int i, ms;
	int ret;

	for (i = 0; i < BUFFERS && end->rx && end->buffer[i].data; i++) {
		/* None is about to be posted again. */
		flush_rcu_work(&end->buffer[i].repost);
		ret = kfi_cancel(&end->rx->fid, &end->buffer[i]);
		if (ret && ret != -KFI_ENOENT)
			lnd_problem("cancelling a buffer: %d", ret);
		for (ms = 0; atomic_read(&end->buffer[i].users) && ms < 20000; ms++)
			usleep_range(1000, 2000);
		if (atomic_read(&end->buffer[i].users))
			lnd_problem("buffer %u is not given back", i);
	}
}

static void close_context(struct kfid_ep **ep)
{
	int ret = *ep ? kfi_close(&(*ep)->fid) : 0;

	if (ret)
		lnd_problem("closing a context: %d", ret);
	*ep = NULL;
}

void lnd_end_close(struct lnd_end *end)
{
	unsigned int i;

	close_context(&end->tx);
	close_context(&end->rx);
	lnd_queue_close(&end->tx_queue);
	lnd_queue_close(&end->rx_queue);
	for (i = 0; i < BUFFERS; i++) {
		if (end->buffer[i].page)
			__free_pages(end->buffer[i].page, get_order(BUFFER_SIZE));
		end->buffer[i].page = NULL;
	}
}
