// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: a handler that lets several CPUs read one entry after the
 * other, until there are none. Entries are told apart by their flags, which
 * have to be exactly those that belong to an operation.
 */
#include <linux/cpumask.h>
#include <linux/rcupdate.h>

#include "completion_flags.h"
#include "lnd.h"

static bool is_plain(const struct kfi_cq_data_entry *entry, size_t len, u64 data)
{
	return entry->len == len && entry->data == data && !entry->buf;
}

/* Of the transmit context. */
static void sent(const struct kfi_cq_data_entry *entry)
{
	struct lnd_transaction *t = entry->op_context;
	enum lnd_step step = STEP_ANSWERED;
	size_t len = 0;
	bool good;

	if (!lnd_is_transaction(t)) {
		lnd_problem("transmit: context %p", t);
		return;
	}
	switch (entry->flags) {
	case SENT:
		step = STEP_SENT;
		good = t->kind != LND_CANCEL;
		break;
	case TSENT:
		good = t->kind == LND_NAK;
		break;
	case TWRITTEN:
		good = t->kind == LND_GET;
		len = t->len;
		break;
	case TREAD_DONE:
		good = t->kind == LND_PUT;
		len = t->len;
		break;
	default:
		good = false;
		break;
	}
	if (!good || !is_plain(entry, len, 0))
		lnd_problem("transmit: kind %u, flags %#llx, len %zu, buf %p, data %#llx", t->kind,
			    entry->flags, entry->len, entry->buf, entry->data);
	lnd_step(t, step);
}

/* Of the receive context: the end of a tagged receive. */
static void tagged(const struct kfi_cq_data_entry *entry)
{
	struct lnd_transaction *t = entry->op_context;
	bool good;

	if (!lnd_is_transaction(t)) {
		lnd_problem("receive: context %p, flags %#llx", t, entry->flags);
		return;
	}
	switch (entry->flags) {
	case TRECEIVED_DATA:
		good = t->kind == LND_NAK && is_plain(entry, 0, t->seed);
		break;
	case TWRITE_HIT:
		good = t->kind == LND_GET && is_plain(entry, t->len, 0);
		break;
	case TREAD_HIT:
		good = t->kind == LND_PUT && is_plain(entry, t->len, 0);
		break;
	default:
		good = false;
		break;
	}
	if (!good)
		lnd_problem("receive: kind %u, flags %#llx, len %zu of %zu, buf %p, data %#llx",
			    t->kind, entry->flags, entry->len, t->len, entry->buf, entry->data);
	lnd_step(t, STEP_TAGGED);
}

static void failed(struct lnd_queue *queue, const struct kfi_cq_err_entry *entry)
{
	if (!queue->transmit && entry->err == KFI_ECANCELED) {
		struct lnd_transaction *t = entry->op_context;

		if (entry->flags == RECEIVED && queue->end->node->stopping) {
			lnd_buffer_put(entry->op_context);
			return;
		}
		if (entry->flags == TRECEIVED && lnd_is_transaction(t) && t->kind == LND_CANCEL) {
			lnd_step(t, STEP_TAGGED);
			return;
		}
	}
	lnd_problem("%s: error %d, flags %#llx, len %zu, olen %zu, context %p",
		    queue->transmit ? "transmit" : "receive", entry->err, entry->flags,
		    entry->len, entry->olen, entry->op_context);
}

/*
 * Reads one entry. A buffer that has been given back is posted again only when
 * those who have an entry of it have become users, hence the section.
 */
static ssize_t read_one(struct lnd_queue *queue, struct kfi_cq_data_entry *entry)
{
	ssize_t ret;

	rcu_read_lock();
	ret = kfi_cq_read(queue->cq, entry, 1);
	if (ret == 1 && (entry->flags & ~KFI_MULTI_RECV) == RECEIVED) {
		struct lnd_buffer *buffer = entry->op_context;

		atomic_inc(&buffer->users);
	}
	rcu_read_unlock();
	return ret;
}

static void drain(struct work_struct *work)
{
	struct lnd_reader *reader = container_of(work, struct lnd_reader, work);
	struct lnd_queue *queue = reader->queue;
	struct kfi_cq_err_entry error = {};
	struct kfi_cq_data_entry entry;
	ssize_t ret;

	for (;;) {
		ret = read_one(queue, &entry);
		if (ret == -KFI_EAVAIL) {
			while (kfi_cq_readerr(queue->cq, &error, 0) == 1)
				failed(queue, &error);
			continue;
		}
		if (ret != 1)
			break;
		if (queue->transmit) {
			sent(&entry);
			continue;
		}
		switch (entry.flags) {
		case RECEIVED:
		case RECEIVED | KFI_MULTI_RECV:
			lnd_arrived(queue->end, entry.op_context, &entry);
			lnd_buffer_put(entry.op_context);
			if (entry.flags & KFI_MULTI_RECV)
				lnd_buffer_put(entry.op_context);
			break;
		default:
			tagged(&entry);
			break;
		}
	}
	if (ret != -KFI_EAGAIN)
		lnd_problem("kfi_cq_read() is %zd", ret);
}

/* Called by the provider, once until the queue was found empty. */
static void comp_handler(struct kfid_cq *cq, void *context)
{
	struct lnd_queue *queue = context;
	unsigned int i, cpu = queue->end->number % num_online_cpus();

	for (i = 0; i < READERS; i++) {
		queue_work_on(cpu, lnd_wq, &queue->reader[i].work);
		cpu = cpumask_next_wrap(cpu, cpu_online_mask);
	}
}

int lnd_queue_open(struct lnd_queue *queue, struct lnd_end *end, size_t size, bool transmit)
{
	struct kfi_cq_attr attr = {
		.size = size,
		.flags = KFI_AFFINITY,
		.format = KFI_CQ_FORMAT_DATA,
		.wait_obj = KFI_WAIT_NONE,
		.wait_cond = KFI_CQ_COND_NONE,
		.signaling_vector = end->number % num_online_cpus(),
	};
	unsigned int i;

	queue->end = end;
	queue->transmit = transmit;
	for (i = 0; i < READERS; i++) {
		queue->reader[i].queue = queue;
		INIT_WORK(&queue->reader[i].work, drain);
	}
	return kfi_cq_open(end->node->domain, &attr, &queue->cq, comp_handler, queue);
}

void lnd_queue_close(struct lnd_queue *queue)
{
	int ret;

	if (!queue->cq)
		return;
	flush_workqueue(lnd_wq);
	ret = kfi_close(&queue->cq->fid);
	if (ret)
		lnd_problem("closing a queue: %d", ret);
	/* No handler runs any more, but readers that one has started may. */
	flush_workqueue(lnd_wq);
	queue->cq = NULL;
}
