// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues that are full: what comes then queues up behind them,
 * nothing is lost, and all goes on when they are read.
 */
#include <linux/delay.h>
#include <linux/string.h>

#include <kfi_trigger.h>

#include "transfer.h"

static ssize_t send_to(struct end *e, const void *buf, size_t len, void *context)
{
	return kfi_send(e->ep, buf, len, NULL, e->peer, context);
}

static ssize_t post(struct end *e, void *buf, size_t len, void *context)
{
	return kfi_recv(e->ep, buf, len, NULL, KFI_ADDR_UNSPEC, context);
}

/* Endpoints that share one queue for everything. */
struct crowd {
	struct kfid_cq *cq;
	struct kfid_av *av;
	struct kfid_ep *ep[4];
	kfi_addr_t addr[4];
};

static void crowd_close(struct test *t, struct crowd *c)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c->ep); i++) {
		if (c->ep[i])
			close_fid(t, &c->ep[i]->fid);
	}
	if (c->av)
		close_fid(t, &c->av->fid);
	if (c->cq)
		close_fid(t, &c->cq->fid);
}

static bool crowd_open(struct test *t, struct crowd *c, size_t size)
{
	struct kfi_av_attr av_attr = { .type = KFI_AV_TABLE };
	unsigned int i;

	*c = (struct crowd) {};
	c->cq = cq_open(t, nic_domain[0], size);
	if (!c->cq || !expect(t, kfi_av_open(nic_domain[0], &av_attr, &c->av, NULL), 0))
		goto fail;
	for (i = 0; i < ARRAY_SIZE(c->ep); i++) {
		u8 name[64];
		size_t len = sizeof(name);

		if (!expect(t, kfi_endpoint(nic_domain[0], nic_info[0], &c->ep[i], NULL), 0) ||
		    !expect(t, kfi_ep_bind(c->ep[i], &c->av->fid, 0), 0) ||
		    !expect(t, kfi_ep_bind(c->ep[i], &c->cq->fid, KFI_TRANSMIT | KFI_RECV), 0) ||
		    !expect(t, kfi_enable(c->ep[i]), 0) ||
		    !expect(t, kfi_getname(&c->ep[i]->fid, name, &len), 0) ||
		    !expect(t, kfi_av_insert(c->av, name, 1, &c->addr[i], 0, NULL), 1))
			goto fail;
	}
	return true;
fail:
	crowd_close(t, c);
	return false;
}

/* Posted receives take no room: 1000 of them share 32 entries, and sends go. */
static void thousand(struct test *t)
{
	enum { EACH = 250 };
	static u8 from[8], to[8];
	struct crowd c;
	unsigned int i, n;

	if (!crowd_open(t, &c, 32))
		return;
	for (n = 0; n < ARRAY_SIZE(c.ep); n++) {
		for (i = 0; i < EACH && !t->failed; i++)
			expect(t, kfi_recv(c.ep[n], to, 8, NULL, KFI_ADDR_UNSPEC,
					   CONTEXT(1000 + n * EACH + i)), 0);
	}
	for (n = 0; n < ARRAY_SIZE(c.ep); n++) {
		for (i = 0; i < EACH && !t->failed; i++) {
			expect(t, kfi_send(c.ep[0], from, 8, NULL, c.addr[n], CONTEXT(i)), 0);
			expect_completion(t, c.cq, CONTEXT(1000 + n * EACH + i), RECEIVED, 8);
			expect_completion(t, c.cq, CONTEXT(i), SENT, 8);
		}
	}
	expect_nothing(t, c.cq);
	crowd_close(t, &c);
}

/* Fills both queues of a pair; returns how many messages were taken. */
static unsigned int fill(struct test *t, struct end *a, const u8 *from, size_t len,
			 unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		ssize_t ret = send_to(a, from + i, len, CONTEXT(i));

		if (ret) {
			expect(t, ret, -KFI_EAGAIN);
			break;
		}
	}
	return i;
}

/* Whether as many operations end, well or not. */
static bool comes_to(struct kfid_cntr *cntr, u64 count)
{
	unsigned long until = jiffies + 20 * HZ;

	while (kfi_cntr_read(cntr) + kfi_cntr_readerr(cntr) < count) {
		if (time_after(jiffies, until))
			return false;
		usleep_range(50, 100);
	}
	return true;
}

/*
 * Takes the next completion or error of messages of two bytes, whichever it is; returns
 * the number of its context. Those for which there was too little room have failed.
 */
static unsigned int next_end(struct test *t, struct kfid_cq *cq, u64 flags, void *first,
			     unsigned int count, bool *failed)
{
	struct kfi_cq_tagged_entry entry = {};
	struct kfi_cq_err_entry error = {};
	ssize_t ret = kfi_cq_sread(cq, &entry, 1, NULL, SOON);
	unsigned long at;

	*failed = ret == -KFI_EAVAIL;
	if (*failed) {
		expect(t, kfi_cq_readerr(cq, &error, 0), 1);
		expect(t, error.flags, flags);
		expect(t, error.err, KFI_EMSGSIZE);
		expect(t, error.len, flags == RECEIVED);
		expect(t, error.olen, flags == RECEIVED);
		at = error.op_context - first;
	} else {
		expect(t, ret, 1);
		expect(t, entry.flags, flags);
		if (flags == RECEIVED)
			expect(t, entry.len, 2);
		at = entry.op_context - first;
	}
	return expect_true(t, at < count) ? at : 0;
}

/*
 * More than fits, completions and errors, all comes out once, and then all goes on.
 * Messages are matched in order; completions have none: a thread that sends may
 * overtake the one that has just matched what was sent before.
 */
static void more_than_fits(struct test *t)
{
	const struct setup setup = { .tx_cq_size = 4, .rx_cq_size = 4 };
	enum { COUNT = 20 };
	u8 from[COUNT + 8], to[COUNT][2];
	unsigned int i, sent, round;
	struct end a, b;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	for (i = 0; i < sizeof(from); i++)
		from[i] = i;
	for (round = 0; round < 3 && !t->failed; round++) {
		u32 received = 0, ended = 0;

		memset(to, FILL, sizeof(to));
		/* Every third one is too short. */
		for (i = 0; i < COUNT; i++)
			expect(t, post(&b, to[i], 1 + !!(i % 3), CONTEXT(100 + i)), 0);
		sent = fill(t, &a, from, 2, COUNT);
		expect_true(t, sent > 4);
		/* The last message may be on its way; until the queue is read it stays crowded. */
		expect_true(t, comes_to(b.cntr[COUNT_RECV], round * COUNT + 5));
		if (sent < COUNT) {
			expect(t, send_to(&a, from, 2, CONTEXT(99)), -KFI_EAGAIN);
			expect(t, kfi_inject(a.ep, from, 2, a.peer), -KFI_EAGAIN);
			expect(t, kfi_write(a.ep, from, 2, NULL, a.peer, 0, 1, NULL), -KFI_EAGAIN);
		}
		expect(t, post(&b, to, 2, CONTEXT(98)), -KFI_EAGAIN);
		expect(t, kfi_trecv(b.ep, to, 2, NULL, KFI_ADDR_UNSPEC, 1, 0, CONTEXT(98)),
		       -KFI_EAGAIN);
		for (i = 0; i < COUNT && !t->failed; i++) {
			unsigned int at;
			bool failed;

			at = next_end(t, b.rx_cq, RECEIVED, CONTEXT(100), COUNT, &failed);
			expect(t, failed, !(at % 3));
			expect_true(t, !(received & BIT(at)));
			received |= BIT(at);
			/* In the receive that was posted for it. */
			expect(t, to[at][0], at);
			expect(t, to[at][1], at % 3 ? at + 1 : FILL);
			at = next_end(t, a.tx_cq, SENT, CONTEXT(0), COUNT, &failed);
			expect(t, failed, !(at % 3));
			expect_true(t, !(ended & BIT(at)));
			ended |= BIT(at);
			/* There is room for one. */
			while (sent < COUNT && !send_to(&a, from + sent, 2, CONTEXT(sent)))
				sent++;
		}
		expect(t, sent, COUNT);
		expect_nothing(t, b.rx_cq);
		expect_nothing(t, a.tx_cq);
	}
	expect_count(t, b.cntr[COUNT_RECV], 39, 21);
	pair_close(t, &a, &b);
}

/* One that is full does not keep a cancel from being told. */
static void cancels(struct test *t)
{
	const struct setup setup = { .tx_cq_size = 2, .rx_cq_size = 2 };
	enum { COUNT = 50 };
	u8 from[8] = {}, to[8];
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	for (i = 0; i < COUNT; i++)
		expect(t, post(&b, to, 8, CONTEXT(i)), 0);
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_cancel(&b.ep->fid, CONTEXT(i)), 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(0)), -KFI_ENOENT);
	expect_count(t, b.cntr[COUNT_RECV], 0, COUNT);
	for (i = 0; i < COUNT; i++)
		expect_failure(t, b.rx_cq, CONTEXT(i), RECEIVED, KFI_ECANCELED, 0, 0);
	expect_nothing(t, b.rx_cq);
	/* Messages that wait for a receive. */
	for (i = 0; i < COUNT; i++)
		expect(t, send_to(&a, from, 8, CONTEXT(i)), 0);
	/* Where all of them have come they end in order. */
	wait_for_arrival(t);
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_cancel(&a.ep->fid, CONTEXT(i)), 0);
	expect_count(t, a.cntr[COUNT_SEND], 0, COUNT);
	for (i = 0; i < COUNT; i++)
		expect_failure(t, a.tx_cq, CONTEXT(i), SENT, KFI_ECANCELED, 0, 0);
	expect_nothing(t, a.tx_cq);
	pair_close(t, &a, &b);
}

/* A triggered operation that is cancelled while the queue is full. */
static void cancel_triggered(struct test *t)
{
	const struct setup setup = { .tx_cq_size = 2, .rx_cq_size = 2 };
	static struct kfi_triggered_context triggers[2][3];
	u8 from[8] = {}, to[8];
	struct end a, b;
	unsigned int i, n;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	for (i = 0; i < 3; i++) {
		struct kvec iov[2] = { { from, 8 }, { to, 8 } };

		for (n = 0; n < 2; n++) {
			struct kfi_msg msg = {
				.type = KFI_KVEC,
				.msg_iov = &iov[n],
				.iov_count = 1,
				.addr = n ? KFI_ADDR_UNSPEC : a.peer,
				.context = &triggers[n][i],
			};
			struct end *e = n ? &b : &a;

			triggers[n][i].event_type = KFI_TRIGGER_THRESHOLD;
			triggers[n][i].trigger.threshold.cntr = e->cntr[COUNT_READ];
			triggers[n][i].trigger.threshold.threshold = 1000;
			expect(t, n ? kfi_recvmsg(e->ep, &msg, KFI_TRIGGER) :
				      kfi_sendmsg(e->ep, &msg, KFI_TRIGGER), 0);
		}
	}
	/* Both queues are filled by what has nothing to do with them. */
	for (i = 0; i < 3; i++) {
		expect(t, kfi_write(a.ep, from, 8, NULL, a.peer, 0, 4711, CONTEXT(i)), 0);
		expect(t, post(&b, to, 8, CONTEXT(i)), 0);
		expect(t, kfi_cancel(&b.ep->fid, CONTEXT(i)), 0);
	}
	expect_count(t, a.cntr[COUNT_WRITE], 0, 3);
	for (i = 0; i < 3; i++) {
		expect(t, kfi_cancel(&a.ep->fid, &triggers[0][i]), 0);
		expect(t, kfi_cancel(&b.ep->fid, &triggers[1][i]), 0);
	}
	for (i = 0; i < 3; i++) {
		expect_failure(t, a.tx_cq, CONTEXT(i), WRITTEN, KFI_EKEYREJECTED, 0, 0);
		expect_failure(t, b.rx_cq, CONTEXT(i), RECEIVED, KFI_ECANCELED, 0, 0);
	}
	for (i = 0; i < 3; i++) {
		expect_failure(t, a.tx_cq, &triggers[0][i], SENT, KFI_ECANCELED, 0, 0);
		expect_failure(t, b.rx_cq, &triggers[1][i], RECEIVED, KFI_ECANCELED, 0, 0);
	}
	expect_nothing(t, a.tx_cq);
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
}

/* Messages wait for the reader, longer than for a receive, and then go on. */
static void arrivals_wait(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 2 };
	enum { COUNT = 10 };
	u8 from[COUNT], to[COUNT] = {};
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	for (i = 0; i < COUNT; i++) {
		from[i] = i + 1;
		expect(t, post(&b, to + i, 1, CONTEXT(i)), 0);
	}
	expect(t, fill(t, &a, from, 1, COUNT), COUNT);
	msleep(rnr_timeout * 2 + 100);
	expect(t, kfi_cntr_readerr(a.cntr[COUNT_SEND]), 0);
	expect_true(t, kfi_cntr_read(b.cntr[COUNT_RECV]) < COUNT);
	for (i = 0; i < COUNT; i++) {
		expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 1);
		expect_completion(t, a.tx_cq, CONTEXT(i), SENT, 1);
		expect(t, to[i], i + 1);
	}
	/* One that has come while it was full has all of its time after that. */
	for (i = 0; i < 4; i++)
		expect(t, post(&b, to, 1, CONTEXT(i)), 0);
	expect(t, fill(t, &a, from, 1, 3), 3);
	/* The third one lies behind the ring, whoever has carried it out. */
	expect_count(t, b.cntr[COUNT_RECV], COUNT + 3, 0);
	for (i = 3; i < 5; i++)
		expect(t, send_to(&a, from, 1, CONTEXT(i)), 0);
	msleep(rnr_timeout + 100);
	for (i = 0; i < 4; i++)
		expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 1);
	expect(t, post(&b, to, 1, CONTEXT(9)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(9), RECEIVED, 1);
	for (i = 0; i < 5; i++)
		expect_completion(t, a.tx_cq, CONTEXT(i), SENT, 1);
	/* And no more than that. */
	expect(t, send_to(&a, from, 1, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EREMOTEIO, 0, 0);
	pair_close(t, &a, &b);
}

/* Messages to one buffer, whose completions have no memory there. */
static void multi_receive(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 2 };
	enum { COUNT = 40 };
	u8 from[COUNT], to[COUNT] = {};
	struct kvec iov = { to, sizeof(to) };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
		.context = CONTEXT(1000),
	};
	unsigned int i, round;
	struct end a, b;
	size_t min = 1;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	expect(t, kfi_setopt(&b.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &min,
			     sizeof(min)), 0);
	for (i = 0; i < COUNT; i++)
		from[i] = i + 1;
	for (round = 0; round < 2 && !t->failed; round++) {
		memset(to, 0, sizeof(to));
		expect(t, kfi_recvmsg(b.ep, &msg, KFI_MULTI_RECV), 0);
		/* The third one lies behind the ring, and the others wait. */
		expect(t, fill(t, &a, from, 1, 3), 3);
		expect_count(t, b.cntr[COUNT_RECV], round * COUNT + 3, 0);
		expect(t, fill(t, &a, from + 3, 1, COUNT - 3), COUNT - 3);
		msleep(20);
		expect_count(t, b.cntr[COUNT_RECV], round * COUNT + 3, 0);
		for (i = 0; i < COUNT; i++) {
			struct kfi_cq_tagged_entry entry;
			u64 last = i == COUNT - 1 ? KFI_MULTI_RECV : 0;

			expect_completion(t, b.rx_cq, CONTEXT(1000), RECEIVED | last, 1);
			await(t, a.tx_cq, &entry, NULL);
			expect(t, entry.flags, SENT);
		}
		expect(t, memcmp(from, to, COUNT), 0);
		expect_nothing(t, b.rx_cq);
	}
	/* Cancelled with the queue full. */
	expect(t, kfi_recvmsg(b.ep, &msg, KFI_MULTI_RECV), 0);
	for (i = 0; i < 2; i++) {
		expect(t, send_to(&a, from, 1, CONTEXT(1)), 0);
		expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 1);
	}
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1000)), 0);
	for (i = 0; i < 2; i++)
		expect_completion(t, b.rx_cq, CONTEXT(1000), RECEIVED, 1);
	expect_failure(t, b.rx_cq, CONTEXT(1000), RECEIVED, KFI_ECANCELED, 0, 0);
	pair_close(t, &a, &b);
}

/* Each access of a peer to a region is told. */
static void remote_events(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 4 };
	enum { COUNT = 50 };
	struct kfi_cq_tagged_entry entry;
	struct kfid_mr *mr;
	u64 value = 1, target = 0;
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	mr = region_open(t, &b, &target, 8, KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto close;
	for (i = 0; i < COUNT; i++) {
		expect(t, kfi_writedata(a.ep, &value, 8, NULL, i, a.peer, 0, 1, CONTEXT(i)), 0);
		/* The fifth one lies behind the ring, and the others wait. */
		if (i == 4)
			expect_count(t, b.cntr[COUNT_REMOTE_WRITE], 5, 0);
	}
	/* Writes without remote events do not wait. */
	expect(t, kfi_write(a.ep, &value, 8, NULL, a.peer, 0, 1, CONTEXT(COUNT)), 0);
	msleep(20);
	expect_count(t, b.cntr[COUNT_REMOTE_WRITE], 6, 0);
	/* One that waits can be cancelled. */
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(COUNT - 1)), 0);
	wait_for_arrival(t);
	for (i = 0; i < COUNT - 1 && await(t, b.rx_cq, &entry, NULL); i++) {
		expect(t, entry.flags, KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA);
		expect(t, entry.data, i);
	}
	expect_count(t, b.cntr[COUNT_REMOTE_WRITE], COUNT, 0);
	expect_count(t, a.cntr[COUNT_WRITE], COUNT, 1);
	expect_nothing(t, b.rx_cq);
	close_fid(t, &mr->fid);
close:
	pair_close(t, &a, &b);
}

/* Entries of an endpoint that is closed are still read; and need not be. */
static void closes(struct test *t)
{
	const struct setup setup = { .tx_cq_size = 2, .rx_cq_size = 2 };
	u8 from[8] = {}, to[8];
	unsigned int i, round;
	struct end a, b;

	for (round = 0; round < 2; round++) {
		if (!pair_open(t, &a, &b, &setup, &setup))
			return;
		for (i = 0; i < 10; i++) {
			expect(t, post(&b, to, 8, CONTEXT(i)), 0);
			expect(t, send_to(&a, from, 8, CONTEXT(i)), 0);
			/* Cancels lie behind the ring as well. */
			expect_count(t, a.cntr[COUNT_SEND], i + 1, 0);
			if (i == 2)
				break;
		}
		close_fid(t, &b.ep->fid);
		b.ep = NULL;
		close_fid(t, &a.ep->fid);
		a.ep = NULL;
		for (i = 0; i < 3 && !round; i++) {
			expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 8);
			expect_completion(t, a.tx_cq, CONTEXT(i), SENT, 8);
		}
		if (!round) {
			expect_nothing(t, b.rx_cq);
			expect_nothing(t, a.tx_cq);
		}
		pair_close(t, &a, &b);
	}
}

/*
 * More waits for a receiver whose queue is full than its node keeps of what a
 * peer has sent: what is for another receiver goes on, however much that is.
 */
static void others_go_on(struct test *t)
{
	enum { COUNT = 400, OTHERS = 600, LEN = 16 << 10 };
	const struct setup many = { .tx_size = COUNT };
	const struct setup small = { .rx_cq_size = 2, .rx_size = COUNT };
	struct kfi_cq_tagged_entry entry;
	struct area from = {}, to = {};
	static u8 seen[COUNT];
	struct end a, b, c, d;
	unsigned int i;

	if (!pair_open(t, &a, &b, &many, &small))
		return;
	if (!pair_open(t, &c, &d, NULL, NULL))
		goto close;
	if (!area_alloc(t, &from, MEM_VMALLOC, 0, LEN) ||
	    !area_alloc(t, &to, MEM_VMALLOC, 1, LEN))
		goto free;
	area_fill(&from, 1);
	memset(seen, 0, sizeof(seen));
	for (i = 0; i < COUNT && !t->failed; i++)
		expect(t, post(&b, to.data, LEN, CONTEXT(i)), 0);
	for (i = 0; i < COUNT && !t->failed; i++)
		expect(t, send_to(&a, from.data, LEN, CONTEXT(i)), 0);
	for (i = 0; i < OTHERS && !t->failed; i++) {
		expect(t, post(&d, to.data, 0, CONTEXT(i)), 0);
		expect(t, send_to(&c, NULL, 0, CONTEXT(i)), 0);
		expect_completion(t, d.rx_cq, CONTEXT(i), RECEIVED, 0);
		expect_completion(t, c.tx_cq, CONTEXT(i), SENT, 0);
	}
	for (i = 0; i < COUNT && !t->failed; i++) {
		unsigned long number;

		if (!await(t, b.rx_cq, &entry, NULL) || !expect(t, entry.flags, RECEIVED) ||
		    !expect(t, entry.len, LEN))
			break;
		/* Some of them may overtake each other. */
		number = entry.op_context - CONTEXT(0);
		if (expect_true(t, number < COUNT))
			seen[number]++;
		await(t, a.tx_cq, &entry, NULL);
	}
	for (i = 0; i < COUNT && !t->failed; i++)
		expect(t, seen[i], 1);
	area_has(t, &to, 1, 0, LEN, 0);
	expect_nothing(t, a.tx_cq);
	expect_nothing(t, b.rx_cq);
free:
	area_free(&from);
	area_free(&to);
	pair_close(t, &c, &d);
close:
	pair_close(t, &a, &b);
}

const struct test_case backlog_tests[] = {
	{ "backlog/thousand-receives", "", thousand },
	{ "backlog/more-than-fits", "", more_than_fits },
	{ "backlog/cancel", "R-TRIG-26", cancels },
	{ "backlog/cancel-triggered", "R-TRIG-26", cancel_triggered },
	{ "backlog/arrivals-wait", "", arrivals_wait },
	{ "backlog/multi-receive", "", multi_receive },
	{ "backlog/remote-events", "", remote_events },
	{ "backlog/others-go-on", "", others_go_on },
	{ "backlog/close", "", closes },
	{}
};
