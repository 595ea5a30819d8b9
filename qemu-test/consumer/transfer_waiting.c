// SPDX-License-Identifier: GPL-2.0
/*
 * Many messages and many receives that wait for each other: what one of them
 * sets going is done in small parts, in order, and nothing is left behind.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include <kfi_trigger.h>

#include "transfer.h"

enum { MANY = 512, BYTES = 8 };

static ssize_t send_to(struct end *e, const void *buf, size_t len, void *context)
{
	return kfi_send(e->ep, buf, len, NULL, e->peer, context);
}

/* How operations have ended. */
struct ends {
	unsigned int good;
	unsigned int cancelled;
	unsigned int given_up;
};

/*
 * Reads the ends of messages that were sent, in order, with numbers from 0 on,
 * and of tagged ones that nobody wanted, all with one context, within some
 * seconds.
 */
static struct ends read_ends(struct test *t, struct kfid_cq *cq, unsigned int count,
			     void *unwanted)
{
	unsigned long until = jiffies + 20 * HZ;
	struct ends ends = {};

	while (ends.good + ends.cancelled + ends.given_up < count &&
	       time_before(jiffies, until) && !t->failed) {
		struct kfi_cq_tagged_entry entry;
		struct kfi_cq_err_entry error = {};
		ssize_t ret = kfi_cq_read(cq, &entry, 1);

		if (ret == 1) {
			expect(t, entry.op_context, CONTEXT(ends.good));
			expect(t, entry.flags, SENT);
			ends.good++;
			continue;
		}
		if (ret == -KFI_EAVAIL)
			ret = kfi_cq_readerr(cq, &error, 0);
		if (ret != 1) {
			usleep_range(50, 100);
			continue;
		}
		expect(t, error.op_context, unwanted);
		expect(t, error.flags, TSENT);
		if (error.err == KFI_ECANCELED)
			ends.cancelled++;
		else if (expect(t, error.err, KFI_EREMOTEIO))
			ends.given_up++;
	}
	return ends;
}

/* A call for a hard interrupt to make. */
struct one_call {
	struct end *end;
	u8 *buf;
	size_t len;
	u64 flags;
	unsigned int number;
};

static long post_buffer(void *arg)
{
	struct one_call *c = arg;
	struct kvec iov = { .iov_base = c->buf, .iov_len = c->len };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
		.context = CONTEXT(MANY),
	};

	return kfi_recvmsg(c->end->ep, &msg, c->flags);
}

/*
 * All that waits lands in one buffer, in order, and the release comes last,
 * whoever posts it: most of it is left to others than a hard interrupt.
 */
static void all_at_once(struct test *t)
{
	const struct setup setup = {
		.tx_cq_size = 2 * MANY, .rx_cq_size = 2 * MANY, .tx_size = 2 * MANY,
	};
	struct kfi_cq_tagged_entry entry;
	struct one_call call;
	unsigned int i, round, cancelled;
	size_t min = BYTES;
	struct ends ends;
	struct end a, b;
	u8 *from, *to;

	from = kcalloc(MANY, BYTES, GFP_KERNEL);
	to = kcalloc(MANY, BYTES, GFP_KERNEL);
	if (!expect_true(t, from && to) || !pair_open(t, &a, &b, &setup, &setup))
		goto free;
	expect(t, kfi_setopt(&b.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &min,
			     sizeof(min)), 0);
	for (i = 0; i < MANY; i++)
		memset(from + i * BYTES, i % 251, BYTES);
	for (round = 0; round < 2 && !t->failed; round++) {
		memset(to, FILL, MANY * BYTES);
		/* Nobody wants these. */
		for (i = 0; i < MANY / 4; i++)
			expect(t, kfi_tsend(a.ep, from, 1, NULL, a.peer, i, CONTEXT(2 * MANY)), 0);
		for (i = 0; i < MANY; i++)
			expect(t, send_to(&a, from + i * BYTES, BYTES, CONTEXT(i)), 0);
		call = (struct one_call) {
			.end = &b, .buf = to, .len = MANY * BYTES, .flags = KFI_MULTI_RECV,
		};
		if (round)
			expect(t, run_in_hardirq(t, post_buffer, &call), 0);
		else
			expect(t, post_buffer(&call), 0);
		for (i = 0; i < MANY; i++) {
			u64 last = i == MANY - 1 ? KFI_MULTI_RECV : 0;

			if (!await(t, b.rx_cq, &entry, NULL) ||
			    !expect(t, entry.flags, RECEIVED | last) ||
			    !expect(t, (u8 *)entry.buf - to, i * BYTES))
				break;
		}
		expect(t, memcmp(from, to, MANY * BYTES), 0);
		expect_nothing(t, b.rx_cq);
		/* On a slow machine the time of some is over; each ends once, as it was told. */
		for (i = 0, cancelled = 0; i < MANY / 4; i++)
			cancelled += !kfi_cancel(&a.ep->fid, CONTEXT(2 * MANY));
		ends = read_ends(t, a.tx_cq, MANY + MANY / 4, CONTEXT(2 * MANY));
		expect(t, ends.good, MANY);
		/* A send that the peer has may end by itself before the peer hears of the cancel. */
		if (network)
			expect_true(t, ends.cancelled <= cancelled);
		else
			expect(t, ends.cancelled, cancelled);
		expect(t, ends.given_up, MANY / 4 - ends.cancelled);
		expect_nothing(t, a.tx_cq);
	}
	pair_close(t, &a, &b);
free:
	kfree(from);
	kfree(to);
}

static long send_tagged(void *arg)
{
	struct one_call *c = arg;

	return kfi_tsend(c->end->ep, c->buf, c->len, NULL, c->end->peer, c->number,
			 CONTEXT(c->number));
}

static long cancel_number(void *arg)
{
	struct one_call *c = arg;

	return kfi_cancel(&c->end->ep->fid, CONTEXT(c->number));
}

/* The last one of many receives is found, by a message and by a cancel. */
static void found_behind_many(struct test *t)
{
	const struct setup setup = {
		.rx_cq_size = 2 * MANY, .rx_size = 2 * MANY,
	};
	struct one_call call = {};
	struct end a, b;
	unsigned int i;
	u8 *to;

	to = kcalloc(MANY, BYTES, GFP_KERNEL);
	if (!expect_true(t, to) || !pair_open(t, &a, &b, &setup, &setup))
		goto free;
	for (i = 0; i < MANY; i++)
		expect(t, kfi_trecv(b.ep, to + i * BYTES, BYTES, NULL, KFI_ADDR_UNSPEC, i, 0,
				    CONTEXT(i)), 0);
	for (i = MANY; i-- > MANY - 8 && !t->failed;) {
		u8 *bytes = to + MANY / 2 * BYTES;

		call = (struct one_call) {
			.end = &a, .buf = bytes, .len = BYTES, .number = i,
		};
		memset(bytes, i, BYTES);
		if (i & 1)
			expect(t, run_in_hardirq(t, send_tagged, &call), 0);
		else
			expect(t, send_tagged(&call), 0);
		expect_completion(t, b.rx_cq, CONTEXT(i), TRECEIVED, BYTES);
		expect_completion(t, a.tx_cq, CONTEXT(i), TSENT, BYTES);
		expect(t, memcmp(to + i * BYTES, bytes, BYTES), 0);
	}
	for (i = MANY - 8; i-- > MANY - 16 && !t->failed;) {
		call = (struct one_call) { .end = &b, .number = i };
		expect(t, run_in_hardirq(t, cancel_number, &call), 0);
		expect(t, run_in_hardirq(t, cancel_number, &call), -KFI_ENOENT);
		expect_failure(t, b.rx_cq, CONTEXT(i), TRECEIVED, KFI_ECANCELED, 0, 0);
	}
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
free:
	kfree(to);
}

/*
 * Queues work of an endpoint that fires at once. Its counter of writes, of which
 * there are none, counts that it has completed.
 */
static void fire(struct test *t, struct end *e, struct kfi_deferred_work work)
{
	work.triggering_cntr = e->cntr[COUNT_READ];
	work.completion_cntr = e->cntr[COUNT_WRITE];
	expect(t, kfi_control(&e->domain->fid, KFI_QUEUE_WORK, &work), 0);
}

/*
 * A receive that has fired and found no room is posted as soon as there is
 * some, and is not overtaken by what is posted later.
 */
static void fired_has_its_turn(struct test *t)
{
	enum { ROOM = 4 };
	const struct setup setup = { .rx_size = ROOM };
	u8 from[ROOM + 1], to[ROOM + 2] = {};
	struct kvec iov = { .iov_base = to + ROOM, .iov_len = 1 };
	struct kfi_op_msg op = {};
	unsigned int i, round;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	for (round = 0; round < 2 && !t->failed; round++) {
		for (i = 0; i <= ROOM; i++)
			from[i] = 10 * round + i + 1;
		for (i = 0; i < ROOM; i++)
			expect(t, kfi_recv(b.ep, to + i, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
		op.ep = b.ep;
		op.msg = (struct kfi_msg) {
			.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1,
			.addr = KFI_ADDR_UNSPEC, .context = CONTEXT(ROOM),
		};
		op.flags = KFI_COMPLETION;
		fire(t, &b, (struct kfi_deferred_work) {
			.op_type = KFI_OP_RECV, .op.msg = &op,
		});
		/* Messages of the peer and of the fired one; nothing gets between. */
		expect(t, kfi_recv(b.ep, to, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(99)), -KFI_EAGAIN);
		if (round) {
			/* Room by a cancel. */
			expect(t, kfi_cancel(&b.ep->fid, CONTEXT(0)), 0);
			expect_failure(t, b.rx_cq, CONTEXT(0), RECEIVED, KFI_ECANCELED, 0, 0);
		} else {
			expect(t, send_to(&a, from, 1, CONTEXT(0)), 0);
			expect_completion(t, b.rx_cq, CONTEXT(0), RECEIVED, 1);
			expect_completion(t, a.tx_cq, CONTEXT(0), SENT, 1);
		}
		expect(t, kfi_recv(b.ep, to, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(99)), -KFI_EAGAIN);
		for (i = 1; i <= ROOM; i++) {
			expect(t, send_to(&a, from + i, 1, CONTEXT(i)), 0);
			expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 1);
			expect_completion(t, a.tx_cq, CONTEXT(i), SENT, 1);
			expect(t, to[i], from[i]);
		}
		expect_count(t, b.cntr[COUNT_WRITE], round + 1, 0);
	}
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
}

/* The queue that is bound to a shared context tells that a receive was cancelled there. */
static void cancelled_where_shared(struct test *t)
{
	struct setup sharing = {};
	struct kfid_cq *cq;
	struct end a, b;
	u8 to[8];

	if (!expect(t, kfi_srx_context(nic_domain[0], NULL, &sharing.srx, NULL), 0))
		return;
	cq = cq_open(t, nic_domain[0], 4);
	if (!cq || !expect(t, kfi_ep_bind(sharing.srx, &cq->fid, 0), 0))
		goto close;
	if (!pair_open(t, &b, &a, &sharing, NULL))
		goto close;
	expect(t, kfi_recv(sharing.srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_cancel(&sharing.srx->fid, CONTEXT(1)), 0);
	expect_failure(t, cq, CONTEXT(1), RECEIVED, KFI_ECANCELED, 0, 0);
	expect(t, kfi_cancel(&sharing.srx->fid, CONTEXT(1)), -KFI_ENOENT);
	expect_nothing(t, cq);
	expect_nothing(t, b.rx_cq);
	pair_close(t, &b, &a);
close:
	close_fid(t, &sharing.srx->fid);
	if (cq)
		close_fid(t, &cq->fid);
}

/* Writes with data, as fast as they are taken. */
struct writer {
	struct end *end;
	u64 value;
	unsigned int count;
};

static long write_all(void *arg)
{
	struct writer *w = arg;
	unsigned int i;

	for (i = 0; i < w->count;) {
		ssize_t ret = kfi_inject_writedata(w->end->ep, &w->value, 8, i, w->end->peer, 0, 1);

		if (!ret)
			i++;
		else if (ret != -KFI_EAGAIN)
			return ret;
		cond_resched();
	}
	return 0;
}

/*
 * A queue that is full again and again, each time that there is room: those
 * that wait for it go on every time.
 */
static void full_again(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 2 };
	struct kfi_cq_tagged_entry entry;
	unsigned int count = rounds;
	u64 left = (u64)count * (count + 1) / 2;
	struct writer writer;
	struct end a, b;
	struct kfid_mr *mr;
	u64 target = 0;
	struct job job;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	mr = region_open(t, &b, &target, 8, KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto close;
	writer = (struct writer) { .end = &a, .count = count };
	if (job_start(t, &job, write_all, &writer, ANY_CPU)) {
		for (i = 0; i < count; i++) {
			if (!await(t, b.rx_cq, &entry, NULL))
				break;
			left -= entry.data + 1;
		}
		expect(t, left, 0);
		if (t->failed)
			writer.count = 0;
		expect(t, job_finish(&job), 0);
		expect_count(t, b.cntr[COUNT_REMOTE_WRITE], count, 0);
		expect_nothing(t, b.rx_cq);
	}
	close_fid(t, &mr->fid);
close:
	pair_close(t, &a, &b);
}

/* Whether a context is cancelled once; some are in a hard interrupt, which takes a while to come. */
static void expect_cancelled(struct test *t, struct end *e, struct kfid_cq *cq,
			     unsigned int number, u64 flags)
{
	struct one_call call = { .end = e, .number = number };

	expect(t, number % 16 ? cancel_number(&call) : run_in_hardirq(t, cancel_number, &call), 0);
	expect_failure(t, cq, CONTEXT(number), flags, KFI_ECANCELED, 0, 0);
	expect(t, cancel_number(&call), -KFI_ENOENT);
	say(t, "context %u", number);
}

/*
 * Fills the queue of an endpoint, which has room for one entry, with two: so
 * nothing more comes. @count messages have come before.
 */
static void crowd(struct test *t, struct end *a, struct end *b, u64 count)
{
	static u8 buf[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		expect(t, kfi_trecv(b->ep, &buf[i], 1, NULL, KFI_ADDR_UNSPEC, 1000 + i, 0,
				    CONTEXT(1000 + i)), 0);
	}
	for (i = 0; i < 2; i++) {
		expect(t, kfi_tsend(a->ep, "x", 1, NULL, a->peer, 1000 + i, CONTEXT(1000)), 0);
		expect_completion(t, a->tx_cq, CONTEXT(1000), TSENT, 1);
	}
	expect_count(t, b->cntr[COUNT_RECV], count + 2, 0);
}

/* Reads what crowd() has brought. */
static void disperse(struct test *t, struct end *b)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		expect_completion(t, b->rx_cq, CONTEXT(1000 + i), TRECEIVED, 1);
}

/*
 * An operation to be cancelled is found by its context, in a hard interrupt too,
 * wherever it waits: posted, for room at the receiver, or for others to end. Each
 * time it is told once.
 */
static void cancelled_by_context(struct test *t)
{
	const struct setup setup_a = { .tx_cq_size = 4 * MANY, .tx_size = 4 * MANY };
	const struct setup setup_b = { .rx_cq_size = 1, .rx_size = 4 * MANY };
	struct kvec iov = {};
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1 };
	struct end a, b;
	unsigned int i;
	u8 buf[8] = {};

	if (!pair_open(t, &a, &b, &setup_a, &setup_b))
		return;
	iov = (struct kvec) { buf, 8 };
	for (i = 0; i < MANY; i++) {
		expect(t, kfi_recv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(2 * i)), 0);
		expect(t, kfi_trecv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, i, 0,
				    CONTEXT(2 * i + 1)), 0);
	}
	/* In an order that is none. */
	for (i = 0; i < 2 * MANY && !t->failed; i++) {
		unsigned int number = i * 37 % (2 * MANY);

		expect_cancelled(t, &b, b.rx_cq, number, number & 1 ? TRECEIVED : RECEIVED);
	}
	/* Of those with one context each is cancelled, too. */
	for (i = 0; i < 100; i++)
		expect(t, kfi_recv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(7)), 0);
	for (i = 0; i < 100 && !t->failed; i++) {
		expect(t, kfi_cancel(&b.ep->fid, CONTEXT(7)), 0);
		expect_failure(t, b.rx_cq, CONTEXT(7), RECEIVED, KFI_ECANCELED, 0, 0);
	}
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(7)), -KFI_ENOENT);

	expect(t, kfi_cntr_read(b.cntr[COUNT_RECV]), 0);
	for (i = 0; i < 2; i++)
		expect(t, kfi_trecv(b.ep, buf, 1, NULL, KFI_ADDR_UNSPEC, i, 0, CONTEXT(i)), 0);
	for (i = 0; i < 2; i++) {
		expect(t, kfi_tsend(a.ep, buf, 1, NULL, a.peer, i, CONTEXT(i)), 0);
		expect_completion(t, a.tx_cq, CONTEXT(i), TSENT, 1);
	}
	expect_count(t, b.cntr[COUNT_RECV], 2, 2 * MANY + 100);
	/* Half of them wait there, the others behind one that waits for these. */
	for (i = 0; i < 2 * MANY; i++) {
		msg.addr = a.peer;
		msg.context = CONTEXT(i);
		expect(t, kfi_sendmsg(a.ep, &msg, i == MANY ? KFI_FENCE : 0), 0);
	}
	for (i = 0; i < 100; i++)
		expect(t, send_to(&a, buf, 8, CONTEXT(2 * MANY)), 0);
	for (i = 0; i < 2 * MANY && !t->failed; i++)
		expect_cancelled(t, &a, a.tx_cq, i * 37 % (2 * MANY), SENT);
	for (i = 0; i < 100 && !t->failed; i++) {
		expect(t, kfi_cancel(&a.ep->fid, CONTEXT(2 * MANY)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(2 * MANY), SENT, KFI_ECANCELED, 0, 0);
	}
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(2 * MANY)), -KFI_ENOENT);
	/* Nothing is left of them that could be received. */
	for (i = 0; i < 2; i++)
		expect_completion(t, b.rx_cq, CONTEXT(i), TRECEIVED, 1);
	expect(t, kfi_recv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect_nothing(t, b.rx_cq);
	expect_cancelled(t, &b, b.rx_cq, 1, RECEIVED);
	expect_nothing(t, a.tx_cq);
	expect_count(t, a.cntr[COUNT_SEND], 2, 2 * MANY + 100);
	pair_close(t, &a, &b);
}

static long look_for(void *arg)
{
	struct one_call *c = arg;
	struct kvec iov = { c->buf, c->len };
	struct kfi_msg_tagged msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
		.tag = c->number,
		.context = CONTEXT(c->number),
	};

	return kfi_trecvmsg(c->end->ep, &msg, c->flags);
}

/*
 * Looks from a hard interrupt, or not, for a message that is there; returns
 * whether it was found. It may be that its time is over, and that is told.
 */
static bool expect_found(struct test *t, struct end *a, struct one_call *call, bool in_hardirq)
{
	struct kfid_cq *cq = call->end->rx_cq;
	struct kfi_cq_tagged_entry entry;
	struct kfi_cq_err_entry error = {};
	unsigned long until;
	ssize_t ret;

	expect(t, in_hardirq ? run_in_hardirq(t, look_for, call) : look_for(call), 0);
	ret = kfi_cq_sread(cq, &entry, 1, NULL, SOON);
	if (ret == 1) {
		expect_true(t, entry.op_context == CONTEXT(call->number));
		expect(t, entry.flags, TRECEIVED);
		expect(t, entry.tag, call->number);
		expect(t, entry.len, BYTES);
		return true;
	}
	if (!expect(t, ret, -KFI_EAVAIL) || !expect(t, kfi_cq_readerr(cq, &error, 0), 1))
		return false;
	expect(t, error.err, KFI_ENOMSG);
	until = jiffies + 20 * HZ;
	while (!kfi_cntr_readerr(a->cntr[COUNT_SEND]) && time_before(jiffies, until))
		usleep_range(50, 100);
	expect_true(t, kfi_cntr_readerr(a->cntr[COUNT_SEND]));
	return false;
}

/*
 * A message asked for in a hard interrupt is found behind many others, however
 * much of the search is left to somebody else; and so is that there is none.
 */
static void found_in_interrupt(struct test *t)
{
	static const u64 flags[] = { 0, KFI_CLAIM, KFI_DISCARD };
	const struct setup setup = {
		.tx_cq_size = 2 * MANY, .rx_cq_size = 2 * MANY, .tx_size = 2 * MANY,
	};
	unsigned int i, n, in_hardirq;
	u8 from[BYTES], to[BYTES];
	struct end a, b;
	int ret;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	for (i = 0; i < MANY; i++) {
		memset(from, i, BYTES);
		expect(t, kfi_inject(a.ep, from, BYTES, a.peer), 0);
	}
	/* These messages have no tags, and are not in the way of tagged ones. */
	for (i = 0; i < MANY; i++) {
		memset(from, i, BYTES);
		expect(t, kfi_tinject(a.ep, from, BYTES, a.peer, i), 0);
	}
	wait_for_arrival(t);
	for (n = 0; n < ARRAY_SIZE(flags); n++) {
		for (in_hardirq = 0; in_hardirq < 2 && !t->failed; in_hardirq++) {
			unsigned int tag = MANY - 1 - 2 * n - in_hardirq;
			struct one_call call = {
				.end = &b, .buf = to, .len = BYTES, .number = tag,
				.flags = KFI_PEEK | flags[n],
			};
			bool found = expect_found(t, &a, &call, in_hardirq);

			if (!found || flags[n] != KFI_CLAIM)
				continue;
			call.flags = KFI_CLAIM;
			if (expect_found(t, &a, &call, in_hardirq)) {
				memset(from, tag, BYTES);
				expect(t, memcmp(from, to, BYTES), 0);
			}
		}
	}
	for (in_hardirq = 0; in_hardirq < 2; in_hardirq++) {
		struct one_call call = {
			.end = &b, .buf = to, .len = BYTES, .number = 2 * MANY,
			.flags = KFI_PEEK,
		};

		expect(t, in_hardirq ? run_in_hardirq(t, look_for, &call) : look_for(&call), 0);
		expect_failure(t, b.rx_cq, CONTEXT(2 * MANY), TRECEIVED, KFI_ENOMSG, 0, 0);
		/* One that is cancelled is answered once. */
		expect(t, in_hardirq ? run_in_hardirq(t, look_for, &call) : look_for(&call), 0);
		ret = kfi_cancel(&b.ep->fid, CONTEXT(2 * MANY));
		expect_true(t, !ret || ret == -KFI_ENOENT);
		expect_failure(t, b.rx_cq, CONTEXT(2 * MANY), TRECEIVED,
			       ret ? KFI_ENOMSG : KFI_ECANCELED, 0, 0);
		expect_nothing(t, b.rx_cq);
		/* And one that is not answered yet is given up in the end. */
		if (in_hardirq)
			expect(t, run_in_hardirq(t, look_for, &call), 0);
	}
	pair_close(t, &a, &b);
}

/*
 * A message that a receive wants while the queue is crowded does not lose its
 * place, whatever becomes of the receive.
 */
static void crowded_in_order(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 1 };
	u8 from[2] = { 1, 2 }, to[2] = {}, next = 1;
	struct kvec iov = { .iov_base = to, .iov_len = 1 };
	struct kfi_op_tagged op = {};
	struct end a, b;
	unsigned int i;
	int ret;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	for (i = 0; i < 2; i++)
		expect(t, kfi_tinject(a.ep, &from[i], 1, a.peer, 1 + i), 0);
	crowd(t, &a, &b, 0);
	/* One that fires asks nobody for room. */
	op.ep = b.ep;
	op.msg = (struct kfi_msg_tagged) {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1,
		.addr = KFI_ADDR_UNSPEC, .tag = 1, .context = CONTEXT(1),
	};
	op.flags = KFI_COMPLETION;
	fire(t, &b, (struct kfi_deferred_work) { .op_type = KFI_OP_TRECV, .op.tagged = &op });
	ret = kfi_cancel(&b.ep->fid, CONTEXT(1));
	disperse(t, &b);
	if (ret) {
		/* It has the first one already, and completes by itself. */
		expect(t, ret, -KFI_ENOENT);
		expect_completion(t, b.rx_cq, CONTEXT(1), TRECEIVED, 1);
		expect(t, to[0], next++);
	} else {
		expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ECANCELED, 0, 0);
	}
	while (next <= 2 && !t->failed) {
		expect(t, kfi_trecv(b.ep, to, 1, NULL, KFI_ADDR_UNSPEC, 0, U64_MAX, CONTEXT(2)),
		       0);
		expect_completion(t, b.rx_cq, CONTEXT(2), TRECEIVED, 1);
		expect(t, to[0], next++);
	}
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
}

/*
 * A message that has come while there was no room does not overtake one that has
 * waited for a receive, when there is room again and receives are posted at once.
 */
static void parked_in_order(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 1 };
	unsigned int i, round;
	u8 from[2], to[2];
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	for (round = 0; round < min(rounds, 500U) && !t->failed; round++) {
		from[0] = round;
		from[1] = ~round;
		expect(t, kfi_inject(a.ep, &from[0], 1, a.peer), 0);
		crowd(t, &a, &b, 4 * round);
		expect(t, kfi_inject(a.ep, &from[1], 1, a.peer), 0);
		wait_for_arrival(t);
		memset(to, 0, 2);
		disperse(t, &b);
		for (i = 0; i < 2; i++) {
			expect(t, kfi_recv(b.ep, &to[i], 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
			expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 1);
		}
		expect(t, memcmp(from, to, 2), 0);
		say(t, "round %u", round);
	}
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
}

/*
 * A receive that a message is landing in is not there any more to be cancelled:
 * it completes by itself. One for several messages is.
 */
static void not_cancelled_when_landing(struct test *t)
{
	enum { LEN = 1 << 20 };
	struct end a, b;
	unsigned int i;
	u8 *from, *to;

	from = kvmalloc(LEN, GFP_KERNEL);
	to = kvmalloc(LEN, GFP_KERNEL);
	if (!expect_true(t, from && to) || !pair_open(t, &a, &b, NULL, NULL))
		goto free;
	for (i = 0; i < 20 && !t->failed; i++) {
		memset(from, i, LEN);
		expect(t, kfi_recv(b.ep, to, LEN, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		expect(t, send_to(&a, from, LEN, CONTEXT(2)), 0);
		wait_for_arrival(t);
		/* Somebody else copies, now or later: it was taken by the message. */
		expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), -KFI_ENOENT);
		/* The sender has it still, or has read the end of it. */
		expect(t, kfi_cntr_readerr(a.cntr[COUNT_SEND]), 0);
		expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, LEN);
		expect_completion(t, a.tx_cq, CONTEXT(2), SENT, LEN);
		expect(t, memcmp(from, to, LEN), 0);
		expect_nothing(t, b.rx_cq);
		expect_nothing(t, a.tx_cq);
	}
	pair_close(t, &a, &b);
free:
	kvfree(from);
	kvfree(to);
}

/* A read whose descriptions are the caller's again at once, and that waits. */
static void injected_read_waits(struct test *t)
{
	u64 source = 0x0102030405060708, target = 0;
	struct kfi_rma_iov rma = { .len = 8, .key = 1 };
	struct kvec iov = { &target, 8 };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1, .rma_iov = &rma,
		.rma_iov_count = 1, .context = CONTEXT(2),
	};
	struct kfid_mr *mr;
	struct end a, b;
	u8 byte = 7, to;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	mr = region_open(t, &b, &source, 8, KFI_REMOTE_READ, 1);
	if (!mr)
		goto close;
	expect(t, send_to(&a, &byte, 1, CONTEXT(1)), 0);
	msg.addr = a.peer;
	expect(t, kfi_readmsg(a.ep, &msg, KFI_INJECT | KFI_FENCE | KFI_COMPLETION), 0);
	memset(&iov, 0xff, sizeof(iov));
	memset(&rma, 0xff, sizeof(rma));
	expect_nothing(t, a.tx_cq);
	expect(t, kfi_recv(b.ep, &to, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(3)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(3), RECEIVED, 1);
	expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 1);
	expect_completion(t, a.tx_cq, CONTEXT(2), READ_DONE, 8);
	expect_true(t, target == source);
	expect(t, to, byte);
	close_fid(t, &mr->fid);
close:
	pair_close(t, &a, &b);
}

/* One that waits is cancelled, however many with its context are just ending. */
static void cancelled_behind_ending(struct test *t)
{
	enum { ENDING = 100, LEN = 1 << 20 };
	const struct setup setup = {
		.tx_cq_size = 2 * ENDING, .rx_cq_size = 2 * ENDING,
		.tx_size = 2 * ENDING, .rx_size = 2 * ENDING,
	};
	struct end a, b;
	unsigned int i;
	u8 *from, *to;

	from = kvzalloc(LEN, GFP_KERNEL);
	to = kvmalloc(LEN, GFP_KERNEL);
	if (!expect_true(t, from && to) || !pair_open(t, &a, &b, &setup, &setup))
		goto free;
	for (i = 0; i < ENDING; i++)
		expect(t, kfi_recv(b.ep, to, LEN, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	/* Somebody else copies; nobody wants the last one. */
	for (i = 0; i <= ENDING; i++)
		expect(t, send_to(&a, from, LEN, CONTEXT(2)), 0);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(2)), 0);
	/* It does not wait until those have ended. */
	for (i = 0; i <= ENDING && !t->failed; i++) {
		struct kfi_cq_tagged_entry entry;
		struct kfi_cq_err_entry error = {};
		ssize_t ret = kfi_cq_sread(a.tx_cq, &entry, 1, NULL, SOON);

		if (ret == -KFI_EAVAIL && expect(t, kfi_cq_readerr(a.tx_cq, &error, 0), 1))
			expect(t, error.err, KFI_ECANCELED);
		else
			expect(t, ret, 1);
	}
	expect_count(t, a.cntr[COUNT_SEND], ENDING, 1);
	expect_nothing(t, a.tx_cq);
	pair_close(t, &a, &b);
free:
	kvfree(from);
	kvfree(to);
}

/*
 * Operations that have fired and wait behind others keep nobody from posting, as
 * long as there are fewer than there may be.
 */
static void posted_behind_fired(struct test *t)
{
	struct kfi_op_msg op = {};
	u8 from[4] = { 1, 2, 3, 4 }, to[4] = {};
	struct kvec iov[2] = { { &from[1], 1 }, { &from[2], 1 } };
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &iov[0], .iov_count = 1,
			       .context = CONTEXT(1) };
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, send_to(&a, &from[0], 1, CONTEXT(0)), 0);
	msg.addr = a.peer;
	expect(t, kfi_sendmsg(a.ep, &msg, KFI_FENCE), 0);
	op.ep = a.ep;
	op.msg = (struct kfi_msg) {
		.type = KFI_KVEC, .msg_iov = &iov[1], .iov_count = 1,
		.addr = a.peer, .context = CONTEXT(2),
	};
	op.flags = KFI_COMPLETION;
	fire(t, &a, (struct kfi_deferred_work) { .op_type = KFI_OP_SEND, .op.msg = &op });
	expect(t, send_to(&a, &from[3], 1, CONTEXT(3)), 0);
	for (i = 0; i < 4; i++)
		expect(t, kfi_recv(b.ep, &to[i], 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
	for (i = 0; i < 4; i++) {
		expect_completion(t, a.tx_cq, CONTEXT(i), SENT, 1);
		expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 1);
	}
	expect(t, memcmp(from, to, 4), 0);
	expect_count(t, a.cntr[COUNT_WRITE], 1, 0);
	pair_close(t, &a, &b);
}

/* Reads messages of one byte that have come in order. */
static void expect_in_order(struct test *t, struct kfid_cq *cq, unsigned int count)
{
	struct kfi_cq_tagged_entry entry;
	unsigned int i;
	u64 next = 0;

	for (i = 0; i < count && !t->failed; i++) {
		if (await(t, cq, &entry, NULL) && expect_true(t, entry.data >= next))
			next = entry.data + 1;
		say(t, "message %u", i);
	}
}

/* More than come in one step, whoever takes it: those on their way do not look for room. */
enum { AT_ONCE = 200 };

/*
 * Waits longer than messages wait for a receive: some are received, others
 * wait for room. Returns how many were too early: their time was over before.
 */
static unsigned int expect_some(struct test *t, struct end *from, struct end *to,
				unsigned int count)
{
	unsigned int early;

	msleep(2 * rnr_timeout);
	early = kfi_cntr_readerr(from->cntr[COUNT_SEND]);
	expect_true(t, kfi_cntr_read(to->cntr[COUNT_RECV]) < AT_ONCE);
	expect_true(t, kfi_cntr_read(to->cntr[COUNT_RECV]) + early < count);
	return early;
}

/*
 * Messages that have waited are received only as far as there is room to tell
 * of them: those who have sent them could send others at once. Their time does
 * not run meanwhile.
 */
static void waits_for_room(struct test *t)
{
	enum { COUNT = 2 * AT_ONCE };
	const struct setup many = { .tx_cq_size = 2 * COUNT, .tx_size = COUNT };
	const struct setup narrow = { .rx_cq_size = 1, .rx_size = 1 };
	struct one_call call;
	unsigned int i, early;
	struct end a, b;
	u8 byte = 1, *to;

	to = kzalloc(2 * COUNT, GFP_KERNEL);
	if (!expect_true(t, to) || !pair_open(t, &a, &b, &many, &narrow))
		goto free;
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_senddata(a.ep, &byte, 1, NULL, i, a.peer, CONTEXT(i)), 0);
	call = (struct one_call) {
		.end = &b, .buf = to, .len = 2 * COUNT, .flags = KFI_MULTI_RECV,
	};
	expect(t, post_buffer(&call), 0);
	early = expect_some(t, &a, &b, COUNT);
	/* A message whose sender has cancelled it does not arrive. */
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(COUNT - 1)), 0);
	wait_for_arrival(t);
	expect_in_order(t, b.rx_cq, COUNT - 1 - early);
	expect_count(t, a.cntr[COUNT_SEND], COUNT - 1 - early, 1 + early);
	/* And what comes now does as before. */
	expect(t, kfi_senddata(a.ep, &byte, 1, NULL, 7, a.peer, CONTEXT(0)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(MANY), RECEIVED | KFI_REMOTE_CQ_DATA, 1);
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
free:
	kfree(to);
}

/* The same with receives that endpoints share; others that have room go on. */
static void waits_where_shared(struct test *t)
{
	enum { COUNT = 2 * AT_ONCE };
	const struct setup many = { .tx_cq_size = 4 * COUNT, .tx_size = 4 * COUNT };
	struct kfi_rx_attr attr = *nic_info[0]->rx_attr;
	struct setup sharing = { .rx_cq_size = 1 };
	unsigned int i, early;
	struct end a, b, c;
	kfi_addr_t other;
	u8 byte = 1, *to;

	attr.size = 3 * COUNT;
	to = kzalloc(2 * COUNT, GFP_KERNEL);
	if (!expect_true(t, to))
		return;
	if (!expect(t, kfi_srx_context(nic_domain[0], &attr, &sharing.srx, NULL), 0))
		goto free;
	if (!pair_open(t, &b, &a, &sharing, &many))
		goto close_srx;
	sharing.rx_cq_size = 2 * COUNT;
	if (!end_open(t, &c, 0, &sharing))
		goto close;
	if (!end_knows(t, &a, c.ep, &other))
		goto close_other;
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_senddata(a.ep, &byte, 1, NULL, i, a.peer, CONTEXT(i)), 0);
	for (i = 0; i <= COUNT; i++)
		expect(t, kfi_recv(sharing.srx, &to[i], 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	early = expect_some(t, &a, &b, COUNT);
	expect(t, kfi_senddata(a.ep, &byte, 1, NULL, 0, other, CONTEXT(0)), 0);
	expect_in_order(t, c.rx_cq, 1);
	expect_in_order(t, b.rx_cq, COUNT - early);
	expect_count(t, a.cntr[COUNT_SEND], COUNT + 1 - early, early);
	expect_nothing(t, b.rx_cq);
	expect_nothing(t, c.rx_cq);
	/* Closed while some wait for room. */
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_senddata(a.ep, &byte, 1, NULL, i, a.peer, CONTEXT(i)), 0);
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_recv(sharing.srx, &to[i], 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	close_fid(t, &b.ep->fid);
	b.ep = NULL;
	expect(t, kfi_senddata(a.ep, &byte, 1, NULL, 0, other, CONTEXT(0)), 0);
	expect_in_order(t, c.rx_cq, 1);
close_other:
	end_close(t, &c);
close:
	pair_close(t, &b, &a);
close_srx:
	close_fid(t, &sharing.srx->fid);
free:
	kfree(to);
}

/*
 * Messages that have waited for room, and that no receive wants any more, do
 * not keep those behind them: these expire when their own time is over, which
 * has begun before.
 */
static void expires_behind(struct test *t)
{
	const struct setup many = { .tx_cq_size = 8, .tx_size = 8 };
	struct setup sharing = { .rx_cq_size = 1 };
	struct end a, b;
	u8 byte = 1, to[3];
	unsigned int i;

	if (!expect(t, kfi_srx_context(nic_domain[0], NULL, &sharing.srx, NULL), 0))
		return;
	if (!pair_open(t, &b, &a, &sharing, &many))
		goto close;
	for (i = 7; i < 9; i++)
		expect(t, kfi_tsend(a.ep, &byte, 1, NULL, a.peer, i, CONTEXT(i)), 0);
	/* Two entries, where there is room for one. */
	for (i = 0; i < 2; i++)
		expect(t, kfi_trecv(sharing.srx, &to[i], 1, NULL, KFI_ADDR_UNSPEC, i, 0, CONTEXT(i)),
		       0);
	for (i = 0; i < 2; i++) {
		expect(t, kfi_tsend(a.ep, &byte, 1, NULL, a.peer, i, CONTEXT(i)), 0);
		expect_completion(t, a.tx_cq, CONTEXT(i), TSENT, 1);
	}
	/* So what is wanted here has to wait; then nobody wants it. */
	expect(t, kfi_trecv(sharing.srx, &to[2], 1, NULL, KFI_ADDR_UNSPEC, 7, 0, CONTEXT(7)), 0);
	msleep(rnr_timeout / 4);
	expect(t, kfi_cancel(&sharing.srx->fid, CONTEXT(7)), 0);
	for (i = 0; i < 2; i++)
		expect_completion(t, b.rx_cq, CONTEXT(i), TRECEIVED, 1);
	/* The time of the first one has begun anew. */
	expect_failure(t, a.tx_cq, CONTEXT(8), TSENT, KFI_EREMOTEIO, 0, 0);
	expect_failure(t, a.tx_cq, CONTEXT(7), TSENT, KFI_EREMOTEIO, 0, 0);
	expect_nothing(t, b.rx_cq);
	pair_close(t, &b, &a);
close:
	close_fid(t, &sharing.srx->fid);
}

/*
 * Much that is done to regions by a peer, and left to the work queue, keeps
 * messages of others to the same endpoint waiting no longer than they take.
 */
static void not_behind_accesses(struct test *t)
{
	enum { ACCESSES = 32, PIECES = 64, PIECE = 256 << 10, LARGE = 20 << 10, TRIES = 5 };
	const struct setup many = { .tx_cq_size = ACCESSES, .tx_size = ACCESSES };
	struct kfi_rma_iov *there = kcalloc(PIECES, sizeof(*there), GFP_KERNEL);
	struct kvec *here = kcalloc(PIECES, sizeof(*here), GFP_KERNEL);
	struct kfi_msg_rma msg = { .type = KFI_KVEC, .context = CONTEXT(0) };
	u8 *from = vzalloc(PIECE), *to = vzalloc(PIECE), *large = vzalloc(LARGE);
	struct kfid_mr *mr = NULL;
	struct end a, b, busy;
	unsigned int i, try;
	bool before = false;

	if (!expect_true(t, there && here && from && to && large) ||
	    !pair_open(t, &a, &b, NULL, NULL))
		goto free;
	if (!end_open(t, &busy, 1, &many))
		goto close;
	if (!end_knows(t, &busy, b.ep, &msg.addr))
		goto close_busy;
	mr = region_open(t, &b, to, PIECE, KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto close_busy;
	for (i = 0; i < PIECES; i++) {
		here[i] = (struct kvec) { .iov_base = from, .iov_len = PIECE };
		there[i] = (struct kfi_rma_iov) { .len = PIECE, .key = 1 };
	}
	msg.msg_iov = here;
	msg.iov_count = PIECES;
	msg.rma_iov = there;
	msg.rma_iov_count = PIECES;
	/* A machine that is busy with something else may have this thread wait for the last of them. */
	for (try = 0; try < TRIES && !before && !t->failed; try++) {
		u64 all = kfi_cntr_read(busy.cntr[COUNT_WRITE]) + ACCESSES;

		expect(t, kfi_recv(b.ep, large, LARGE, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		for (i = 0; i < ACCESSES; i++)
			expect(t, kfi_writemsg(busy.ep, &msg, 0), 0);
		expect(t, send_to(&a, from, LARGE, CONTEXT(1)), 0);
		expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, LARGE);
		before = kfi_cntr_read(busy.cntr[COUNT_WRITE]) < all;
		expect_completion(t, a.tx_cq, CONTEXT(1), SENT, LARGE);
		/* They take turns where there is a network, so that the first one ends late. */
		for (i = 0; i < ACCESSES && !t->failed; i++) {
			struct kfi_cq_tagged_entry entry = {};

			expect(t, kfi_cq_sread(busy.tx_cq, &entry, 1, NULL, 20 * SOON), 1);
			expect(t, entry.flags, WRITTEN);
			expect(t, entry.len, PIECES * PIECE);
		}
	}
	expect_true(t, before);
close_busy:
	if (mr)
		close_fid(t, &mr->fid);
	end_close(t, &busy);
close:
	pair_close(t, &a, &b);
free:
	vfree(large);
	vfree(to);
	vfree(from);
	kfree(here);
	kfree(there);
}

const struct test_case waiting_tests[] = {
	{ "waiting/cancelled-by-context", "R-TRIG-26", cancelled_by_context },
	{ "waiting/cancelled-behind-ending", "R-TRIG-26", cancelled_behind_ending, true },
	{ "waiting/posted-behind-fired", "R-TRIG-24", posted_behind_fired },
	{ "waiting/for-room", "", waits_for_room },
	{ "waiting/for-room-where-shared", "", waits_where_shared },
	{ "waiting/expires-behind", "", expires_behind },
	{ "waiting/found-in-interrupt", "", found_in_interrupt },
	{ "waiting/crowded-in-order", "R-TRIG-24", crowded_in_order },
	{ "waiting/parked-in-order", "", parked_in_order },
	{ "waiting/not-behind-accesses", "", not_behind_accesses },
	{ "waiting/not-cancelled-when-landing", "", not_cancelled_when_landing },
	{ "waiting/injected-read", "", injected_read_waits },
	{ "waiting/full-again", "", full_again },
	{ "waiting/all-at-once", "", all_at_once },
	{ "waiting/found-behind-many", "R-TRIG-26", found_behind_many },
	{ "waiting/fired-has-its-turn", "R-TRIG-24", fired_has_its_turn },
	{ "waiting/cancelled-where-shared", "R-TRIG-26", cancelled_where_shared },
	{}
};
