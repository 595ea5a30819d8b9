// SPDX-License-Identifier: GPL-2.0
/*
 * Loads: what is posted, what waits for it, what lies in completion queues.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "irqsoff.h"

/* A tag that nobody has who is in the way. */
#define OTHER (1ULL << 32)

/* Endpoints that take as much as there is. */
static bool open_pair(struct rig *r)
{
	const struct setup setup = {
		.tx_cq_size = 2 * r->size,
		.rx_cq_size = 2 * r->size,
		.tx_size = 2 * r->size,
		.rx_size = 2 * r->size,
	};

	return rig_pair(r, &setup, &setup);
}

/* The same, with no room for completions of what is received. */
static bool open_full(struct rig *r)
{
	const struct setup sender = { .tx_cq_size = 2 * r->size, .tx_size = 2 * r->size };
	const struct setup receiver = { .rx_cq_size = 2, .rx_size = 2 * r->size };

	return rig_pair(r, &sender, &receiver);
}

static bool send(struct rig *r, size_t len)
{
	unsigned int i;

	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, kfi_send(r->a.ep, r->from, len, NULL, r->a.peer,
					   CONTEXT(i)), 0))
			return false;
	}
	return true;
}

static bool send_tagged(struct rig *r)
{
	unsigned int i;

	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, kfi_tsend(r->a.ep, r->from, 8, NULL, r->a.peer, i,
					    CONTEXT(i)), 0))
			return false;
	}
	return true;
}

static bool receive(struct rig *r, size_t len)
{
	unsigned int i;

	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, kfi_recv(r->b.ep, r->to, len, NULL, KFI_ADDR_UNSPEC,
					   CONTEXT(i)), 0))
			return false;
	}
	return true;
}

static void received(struct rig *r)
{
	expect_count(r->t, r->b.cntr[COUNT_RECV], r->size, 0);
}

/* --- messages that wait for receives ----------------------------------------- */

static bool messages(struct rig *r)
{
	return open_pair(r) && send(r, 8);
}

static bool large_messages(struct rig *r)
{
	return open_pair(r) && send(r, LARGE);
}

static bool tagged_messages(struct rig *r)
{
	return open_pair(r) && send_tagged(r);
}

static long post_receive(void *rig)
{
	struct rig *r = rig;

	return kfi_recv(r->b.ep, r->to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(0));
}

static long post_other(void *rig)
{
	struct rig *r = rig;

	return kfi_trecv(r->b.ep, r->to, 8, NULL, KFI_ADDR_UNSPEC, OTHER, 0, CONTEXT(0));
}

static long post_last(void *rig)
{
	struct rig *r = rig;

	return kfi_trecv(r->b.ep, r->to, 8, NULL, KFI_ADDR_UNSPEC, r->size - 1, 0, CONTEXT(0));
}

static long post_buffer(void *rig)
{
	struct rig *r = rig;
	struct kvec iov = { r->to, BYTES };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
		.context = CONTEXT(0),
	};

	return kfi_recvmsg(r->b.ep, &msg, KFI_MULTI_RECV);
}

static long peek(void *rig)
{
	struct rig *r = rig;
	struct kfi_msg_tagged msg = {
		.type = KFI_KVEC,
		.addr = KFI_ADDR_UNSPEC,
		.tag = OTHER,
		.context = CONTEXT(0),
	};

	return kfi_trecvmsg(r->b.ep, &msg, KFI_PEEK);
}

static long cancel_message(void *rig)
{
	struct rig *r = rig;

	return kfi_cancel(&r->a.ep->fid, CONTEXT(r->size / 2));
}

static long close_receiver(void *rig)
{
	struct rig *r = rig;
	long ret = kfi_close(&r->b.ep->fid);

	r->b.ep = NULL;
	return ret;
}

static long close_sender(void *rig)
{
	struct rig *r = rig;
	long ret = kfi_close(&r->a.ep->fid);

	r->a.ep = NULL;
	return ret;
}

static long wait_for_end(void *rig)
{
	struct rig *r = rig;

	expect_count(r->t, r->a.cntr[COUNT_SEND], 0, r->size);
	return 0;
}

/* --- receives that wait for messages ----------------------------------------- */

static bool receives(struct rig *r)
{
	return open_pair(r) && receive(r, 8);
}

static bool tagged_receives(struct rig *r)
{
	unsigned int i;

	if (!open_pair(r))
		return false;
	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, kfi_trecv(r->b.ep, r->to, 8, NULL, KFI_ADDR_UNSPEC, i, 0,
					    CONTEXT(i)), 0))
			return false;
	}
	return true;
}

static long send_other(void *rig)
{
	struct rig *r = rig;

	return kfi_tsend(r->a.ep, r->from, 8, NULL, r->a.peer, OTHER, CONTEXT(0));
}

static long send_last(void *rig)
{
	struct rig *r = rig;

	return kfi_tsend(r->a.ep, r->from, 8, NULL, r->a.peer, r->size - 1, CONTEXT(0));
}

static long cancel_receive(void *rig)
{
	struct rig *r = rig;

	return kfi_cancel(&r->b.ep->fid, CONTEXT(r->size / 2));
}

/* --- completions that lack room ---------------------------------------------- */

/* Some lie behind the ring, and the other messages wait for room. */
static bool stalled(struct rig *r)
{
	return open_full(r) && receive(r, 8) && send(r, 8);
}

static long read_one(void *rig)
{
	struct rig *r = rig;
	struct kfi_cq_tagged_entry entry;

	return kfi_cq_read(r->b.rx_cq, &entry, 1) == 1 ? 0 : -EIO;
}

/* As a reader who does not sleep. */
static void all_read(struct rig *r)
{
	unsigned int i, ms;

	for (i = 1, ms = 0; i < r->size && ms < SOON;) {
		if (read_one(r)) {
			usleep_range(1000, 1100);
			ms++;
		} else {
			i++;
		}
	}
	expect(r->t, i, r->size);
}

static long arrive_behind(void *rig)
{
	struct rig *r = rig;

	return kfi_send(r->a.ep, r->from, 8, NULL, r->a.peer, CONTEXT(0));
}

/* Errors behind a ring of two. */
static bool errors(struct rig *r)
{
	unsigned int i;

	if (!open_full(r) || !receive(r, 8))
		return false;
	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, kfi_cancel(&r->b.ep->fid, CONTEXT(i)), 0))
			return false;
	}
	return true;
}

static long read_error(void *rig)
{
	struct kfi_cq_err_entry entry = {};
	struct rig *r = rig;

	return kfi_cq_readerr(r->b.rx_cq, &entry, 0) == 1 ? 0 : -EIO;
}

static void all_errors(struct rig *r)
{
	unsigned int i;

	for (i = 1; i < r->size; i++) {
		if (!expect(r->t, read_error(r), 0))
			return;
	}
}

/* Completions, of which some lie behind the ring if they are many. */
static bool completions(struct rig *r)
{
	r->entries = kvcalloc(r->size, sizeof(*r->entries), GFP_KERNEL);
	return expect_true(r->t, r->entries) && receives(r) && send(r, 8);
}

static long read_all(void *rig)
{
	struct rig *r = rig;
	ssize_t ret, got = 0;

	/* It may be told of fewer. */
	while (got < r->size) {
		ret = kfi_cq_read(r->b.rx_cq, r->entries + got, r->size - got);
		if (ret < 0)
			return ret;
		got += ret;
	}
	return 0;
}

static bool unread(struct rig *r)
{
	if (!completions(r))
		return false;
	received(r);
	close_fid(r->t, &r->b.ep->fid);
	r->b.ep = NULL;
	return !r->t->failed;
}

static bool unread_errors(struct rig *r)
{
	if (!errors(r))
		return false;
	close_fid(r->t, &r->b.ep->fid);
	r->b.ep = NULL;
	return !r->t->failed;
}

static long close_queue(void *rig)
{
	struct rig *r = rig;
	long ret = kfi_close(&r->b.rx_cq->fid);

	r->b.rx_cq = NULL;
	return ret;
}

/* --- triggered transfers ----------------------------------------------------- */

static bool arm(struct rig *r, u64 threshold)
{
	unsigned int i;

	r->trigger = open_cntr(r->t, KFI_WAIT_UNSPEC);
	r->contexts = kvcalloc(r->size + 1, sizeof(*r->contexts), GFP_KERNEL);
	if (!r->trigger || !expect_true(r->t, r->contexts))
		return false;
	for (i = 0; i <= r->size; i++)
		r->contexts[i] = (struct kfi_triggered_context) {
			.event_type = KFI_TRIGGER_THRESHOLD,
			.trigger.threshold = { .cntr = r->trigger, .threshold = threshold },
		};
	return true;
}

static ssize_t trigger_send(struct rig *r, size_t len, unsigned int i)
{
	struct kvec iov = { r->from, len };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = r->a.peer,
		.context = &r->contexts[i],
	};

	return kfi_sendmsg(r->a.ep, &msg, KFI_TRIGGER | KFI_COMPLETION);
}

static bool trigger_sends(struct rig *r, size_t len)
{
	unsigned int i;

	if (!arm(r, 1))
		return false;
	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, trigger_send(r, len, i), 0))
			return false;
	}
	return true;
}

static bool sends(struct rig *r)
{
	return receives(r) && trigger_sends(r, 8);
}

static bool large_sends(struct rig *r)
{
	return open_pair(r) && receive(r, LARGE) && trigger_sends(r, LARGE);
}

static bool trigger_receives(struct rig *r)
{
	struct kvec iov = { NULL, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
	};
	unsigned int i;

	/* The counter is one of the receiver's domain. */
	if (!messages(r) || !arm(r, 1))
		return false;
	iov.iov_base = r->to;
	for (i = 0; i < r->size; i++) {
		r->contexts[i].trigger.threshold.cntr = r->b.cntr[COUNT_REMOTE_READ];
		msg.context = &r->contexts[i];
		if (!expect(r->t, kfi_recvmsg(r->b.ep, &msg, KFI_TRIGGER | KFI_COMPLETION), 0))
			return false;
	}
	return true;
}

static long add(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_add(r->trigger, 1);
}

static long add_at_receiver(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_add(r->b.cntr[COUNT_REMOTE_READ], 1);
}

static long cancel_triggered(void *rig)
{
	struct rig *r = rig;

	return kfi_cancel(&r->a.ep->fid, &r->contexts[r->size / 2]);
}

static long post_triggered(void *rig)
{
	struct rig *r = rig;

	r->contexts[r->size].trigger.threshold.threshold = 1;
	return trigger_send(r, 8, r->size);
}

/* They are posted in another order than they become due. */
static bool later_sends(struct rig *r)
{
	unsigned int i;

	if (!receives(r) || !arm(r, 1))
		return false;
	for (i = 0; i < r->size; i++) {
		r->contexts[i].trigger.threshold.threshold = 2 + (i * 7919) % r->size;
		if (!expect(r->t, trigger_send(r, 8, i), 0))
			return false;
	}
	/* Leaves room in the table: how much is allocated for it does not depend on the size. */
	return expect(r->t, cancel_triggered(r), 0);
}

/* Few may be under way, and the others wait. */
static bool without_credits(struct rig *r)
{
	const struct setup sender = { .tx_cq_size = 2 * r->size, .tx_size = 4 };
	const struct setup receiver = { .rx_cq_size = 2 * r->size };

	if (!rig_pair(r, &sender, &receiver) || !trigger_sends(r, 8))
		return false;
	return expect(r->t, add(r), 0);
}

/* --- memory ------------------------------------------------------------------ */

static bool region(struct rig *r)
{
	unsigned int size = r->size;

	r->regions = kvcalloc(size, sizeof(*r->regions), GFP_KERNEL);
	if (!expect_true(r->t, r->regions) || !open_pair(r))
		return false;
	r->regions[0] = region_open(r->t, &r->b, r->to, BYTES, KFI_REMOTE_WRITE, 1);
	return r->regions[0];
}

static bool regions(struct rig *r)
{
	unsigned int i;

	if (!region(r))
		return false;
	for (i = 1; i < r->size; i++) {
		r->regions[i] = region_open(r->t, &r->b, r->to, BYTES, KFI_REMOTE_WRITE, i + 1);
		if (!r->regions[i])
			return false;
	}
	return true;
}

/* As many as one call may name. */
#define RANGES 256U
/* Operations that each of them makes due. */
#define WORKS 16U

/* Of the end of which the counters are; each makes a few operations due. */
static bool counted_regions(struct rig *r)
{
	unsigned int count = min(r->size, RANGES), i, j;
	struct kfi_deferred_work work = {
		.threshold = 1,
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &r->op,
	};

	r->regions = kvcalloc(r->size, sizeof(*r->regions), GFP_KERNEL);
	r->members = kvcalloc(r->size, sizeof(*r->members), GFP_KERNEL);
	if (!expect_true(r->t, r->regions && r->members) || !open_pair(r))
		return false;
	r->trigger = open_cntr(r->t, KFI_WAIT_UNSPEC);
	r->target = open_cntr(r->t, KFI_WAIT_UNSPEC);
	if (!r->trigger || !r->target)
		return false;
	r->op = (struct kfi_op_cntr) { .cntr = r->target, .value = 1 };
	for (i = 0; i < count; i++) {
		r->regions[i] = region_open(r->t, &r->a, r->to, BYTES, KFI_REMOTE_WRITE, i);
		r->members[i] = open_cntr(r->t, KFI_WAIT_UNSPEC);
		if (!r->regions[i] || !r->members[i] ||
		    !expect(r->t, kfi_mr_bind(r->regions[i], &r->members[i]->fid,
					      KFI_REMOTE_WRITE), 0))
			return false;
		work.triggering_cntr = r->members[i];
		for (j = 0; j < WORKS; j++) {
			if (!expect(r->t, kfi_control(&r->t->domain->fid, KFI_QUEUE_WORK, &work),
				    0))
				return false;
		}
	}
	r->ranges = kvcalloc(count, sizeof(*r->ranges), GFP_KERNEL);
	if (!expect_true(r->t, r->ranges))
		return false;
	for (i = 0; i < count; i++)
		r->ranges[i] = (struct kfi_rma_iov) { .len = 8, .key = i };
	return true;
}

static long write_to_all(void *rig)
{
	struct rig *r = rig;
	unsigned int count = min(r->size, RANGES);
	struct kvec iov = { r->from, 8 * count };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = r->b.peer,
		.rma_iov = r->ranges,
		.rma_iov_count = count,
		.context = CONTEXT(0),
	};

	return kfi_writemsg(r->b.ep, &msg, 0);
}

static void all_counted(struct rig *r)
{
	expect_count(r->t, r->b.cntr[COUNT_WRITE], 1, 0);
	expect_count(r->t, r->target, WORKS * min(r->size, RANGES), 0);
}

static long change_elements(void *rig)
{
	struct rig *r = rig;

	return kfi_atomic(r->a.ep, r->from, r->size, NULL, r->a.peer, 0, 1, KFI_UINT8, KFI_SUM,
			  CONTEXT(0));
}

static long write_bytes(void *rig)
{
	struct rig *r = rig;

	return kfi_write(r->a.ep, r->from, r->size * 64, NULL, r->a.peer, 0, 1, CONTEXT(0));
}

static long write_last(void *rig)
{
	struct rig *r = rig;

	return kfi_write(r->a.ep, r->from, 8, NULL, r->a.peer, 0, r->size, CONTEXT(0));
}

static void written(struct rig *r)
{
	expect_count(r->t, r->a.cntr[COUNT_WRITE], 1, 0);
}

static void all_written(struct rig *r)
{
	expect_count(r->t, r->a.cntr[COUNT_WRITE], r->size, 0);
}

/* All wait for a message that nobody wants yet. */
static bool fenced(struct rig *r)
{
	struct kvec iov = { NULL, 8 };
	struct kfi_rma_iov rma_iov = { .len = 8, .key = 1 };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.rma_iov = &rma_iov,
		.rma_iov_count = 1,
	};
	unsigned int i;

	if (!region(r) ||
	    !expect(r->t, kfi_send(r->a.ep, r->from, 8, NULL, r->a.peer, CONTEXT(0)), 0))
		return false;
	iov.iov_base = r->from;
	msg.addr = r->a.peer;
	for (i = 0; i < r->size; i++) {
		msg.context = CONTEXT(i + 1);
		if (!expect(r->t, kfi_writemsg(r->a.ep, &msg, i ? 0 : KFI_FENCE), 0))
			return false;
	}
	return true;
}

const struct load transfer_loads[] = {
	{ "post-receive", true, messages, post_receive },
	{ "post-receive-large", true, large_messages, post_receive },
	{ "post-receive-other-tag", true, tagged_messages, post_other },
	{ "post-receive-last-tag", true, tagged_messages, post_last },
	{ "post-buffer", true, messages, post_buffer, received },
	{ "post-buffer-thread", false, messages, post_buffer, received },
	{ "peek", false, tagged_messages, peek },
	{ "cancel-message", false, messages, cancel_message },
	{ "close-receiver-messages", false, messages, close_receiver },
	{ "close-sender-messages", false, messages, close_sender },
	{ "messages-expire", false, messages, wait_for_end },
	{ "arrival-other-tag", true, tagged_receives, send_other },
	{ "arrival-last-tag", true, tagged_receives, send_last },
	{ "cancel-receive", false, receives, cancel_receive },
	{ "close-receiver-receives", false, receives, close_receiver },
	{ "arrival-behind-stalled", true, stalled, arrive_behind },
	{ "read-with-stalled", true, stalled, read_one, all_read },
	{ "close-receiver-stalled", false, stalled, close_receiver },
	{ "read-error-of-many", true, errors, read_error, all_errors },
	{ "read-many", false, completions, read_all },
	{ "close-unread", false, unread, close_queue },
	{ "close-unread-errors", false, unread_errors, close_queue },
	{ "sends-due", true, sends, add, received },
	{ "sends-due-thread", false, sends, add, received },
	{ "large-sends-due", true, large_sends, add, received },
	{ "receives-due", true, trigger_receives, add_at_receiver, received },
	{ "cancel-triggered", false, sends, cancel_triggered },
	{ "close-sender-triggered", false, sends, close_sender },
	{ "post-triggered", true, later_sends, post_triggered },
	{ "post-buffer-no-credits", true, without_credits, post_buffer, received },
	{ "atomic-elements", true, region, change_elements, written },
	{ "atomic-elements-thread", false, region, change_elements, written },
	{ "write-bytes", true, region, write_bytes, written },
	{ "write-bytes-thread", false, region, write_bytes, written },
	{ "write-among-regions", true, regions, write_last, written },
	{ "write-to-regions", true, counted_regions, write_to_all, all_counted },
	{ "write-to-regions-thread", false, counted_regions, write_to_all, all_counted },
	{ "cancel-fenced", false, fenced, cancel_message },
	{ "close-sender-fenced", false, fenced, close_sender },
	{ "fence-ends", true, fenced, post_receive, all_written },
	{}
};
