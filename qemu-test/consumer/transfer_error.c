// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that are refused, and operations that fail.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "transfer.h"

static ssize_t send_to(struct end *e, const void *buf, size_t len, void *context)
{
	return kfi_send(e->ep, buf, len, NULL, e->peer, context);
}

static void too_short(struct test *t)
{
	static const size_t lens[][2] = {
		{ 100, 0 }, { 100, 99 }, { 4097, 4096 }, { 100000, 17 }, { 100000, 99999 },
	};
	struct area from, to;
	unsigned int i, late;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		size_t len = lens[i][0], room = lens[i][1];

		for (late = 0; late < 2 && !t->failed; late++) {
			if (!area_alloc(t, &from, MEM_KMALLOC, 1, len) ||
			    !area_alloc(t, &to, MEM_VMALLOC, 1, room))
				break;
			area_fill(&from, i);
			if (late)
				expect(t, send_to(&a, from.data, len, CONTEXT(2)), 0);
			expect(t, kfi_recv(b.ep, to.data, room, NULL, KFI_ADDR_UNSPEC,
					   CONTEXT(1)), 0);
			if (!late)
				expect(t, send_to(&a, from.data, len, CONTEXT(2)), 0);
			expect_failure(t, b.rx_cq, CONTEXT(1), RECEIVED, KFI_EMSGSIZE, room,
				       len - room);
			/* The sender is told, too. */
			expect_failure(t, a.tx_cq, CONTEXT(2), SENT, KFI_EMSGSIZE, 0, 0);
			area_has(t, &to, i, 0, room, 0);
			area_free(&from);
			area_free(&to);
		}
		say(t, "%zu to %zu", len, room);
	}
	expect(t, kfi_trecv(b.ep, NULL, 0, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(3)), 0);
	expect(t, kfi_tsenddata(a.ep, "x", 1, NULL, 9, a.peer, 5, CONTEXT(4)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(3), TRECEIVED | KFI_REMOTE_CQ_DATA, KFI_EMSGSIZE, 0,
		       1);
	expect_failure(t, a.tx_cq, CONTEXT(4), TSENT, KFI_EMSGSIZE, 0, 0);
	expect_count(t, b.cntr[COUNT_RECV], 0, 2 * ARRAY_SIZE(lens) + 1);
	expect_count(t, a.cntr[COUNT_SEND], 0, 2 * ARRAY_SIZE(lens) + 1);
	pair_close(t, &a, &b);
}

static void bad_regions(struct test *t)
{
	static const size_t lens[] = { 8, 20000 };
	struct area from, to;
	struct kfid_mr *mr = NULL;
	unsigned int i, fails = 0;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!area_alloc(t, &from, MEM_KMALLOC, 0, 30000) ||
	    !area_alloc(t, &to, MEM_KMALLOC, 0, 30000))
		goto close;
	mr = region_open(t, &b, to.data, 30000, KFI_REMOTE_READ, 1);
	if (!mr)
		goto close;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		size_t len = lens[i];

		/* No such key; no such access; not inside. */
		expect(t, kfi_write(a.ep, from.data, len, NULL, a.peer, 0, 2, CONTEXT(1)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(1), WRITTEN, KFI_EKEYREJECTED, 0, 0);
		expect(t, kfi_write(a.ep, from.data, len, NULL, a.peer, 0, 1, CONTEXT(1)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(1), WRITTEN, KFI_EACCES, 0, 0);
		expect(t, kfi_read(a.ep, from.data, len, NULL, a.peer, 30001 - len, 1,
				   CONTEXT(1)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(1), READ_DONE, KFI_EACCES, 0, 0);
		expect(t, kfi_read(a.ep, from.data, len, NULL, a.peer, U64_MAX, 1,
				   CONTEXT(1)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(1), READ_DONE, KFI_EACCES, 0, 0);
		expect(t, kfi_read(a.ep, from.data, len, NULL, a.peer, 30000 - len, 1,
				   CONTEXT(1)), 0);
		expect_completion(t, a.tx_cq, CONTEXT(1), READ_DONE, len);
		fails += 2;
	}
	expect_count(t, a.cntr[COUNT_WRITE], 0, fails);
	expect_count(t, a.cntr[COUNT_READ], ARRAY_SIZE(lens), fails);
	expect_count(t, b.cntr[COUNT_REMOTE_WRITE], 0, 0);
	expect_count(t, b.cntr[COUNT_REMOTE_READ], ARRAY_SIZE(lens), 0);
	close_fid(t, &mr->fid);
	/* It is gone. */
	expect(t, kfi_read(a.ep, from.data, 8, NULL, a.peer, 0, 1, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), READ_DONE, KFI_EKEYREJECTED, 0, 0);
	area_has(t, &to, 0, 0, 0, 0);
close:
	area_free(&from);
	area_free(&to);
	pair_close(t, &a, &b);
}

/* Beyond the end of a tagged receive: it fails on both sides. */
static void bad_tagged_rma(struct test *t)
{
	static const struct {
		u64 addr;
		size_t len;
		size_t placed;
		bool late;
	} cases[] = {
		{ 1, 100, 99, false }, { 0, 101, 100, false }, { 100, 1, 0, false },
		{ 101, 0, 0, false }, { U64_MAX, 100, 0, false }, { 50, 100, 50, true },
	};
	u8 from[101] = { 5, 6 }, to[101] = {};
	unsigned int i, write;
	struct op op = {
		.family = F_WRITE,
		.form = FORM_MSG_KVEC,
		.buf = from,
		.len = 100,
		.flags = KFI_TAGGED,
		.addr = 1,
		.key = 7,
		.context = CONTEXT(1),
	};
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	op.peer = a.peer;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (write = 0; write < 2 && !t->failed; write++) {
			op.family = write ? F_WRITE : F_READ;
			op.buf = write ? from : to;
			op.addr = cases[i].addr;
			op.len = cases[i].len;
			memset(to, FILL, sizeof(to));
			if (cases[i].late)
				expect(t, op_post(a.ep, &op), 0);
			expect(t, kfi_trecv(b.ep, write ? to : from, 100, NULL, KFI_ADDR_UNSPEC, 7,
					    0, CONTEXT(2)), 0);
			if (!cases[i].late)
				expect(t, op_post(a.ep, &op), 0);
			expect_failure(t, a.tx_cq, CONTEXT(1), write ? TWRITTEN : TREAD_DONE,
				       KFI_EMSGSIZE, 0, 0);
			expect_failure(t, b.rx_cq, CONTEXT(2), write ? TWRITE_HIT : TREAD_HIT,
				       KFI_EMSGSIZE, cases[i].placed,
				       cases[i].len - cases[i].placed);
			expect(t, to[100], FILL);
		}
		say(t, "%zu bytes at %llu", cases[i].len, cases[i].addr);
	}
	op.family = F_WRITE;
	op.buf = from;
	op.addr = 0;
	op.len = 100;
	expect(t, kfi_trecv(b.ep, to, 100, NULL, KFI_ADDR_UNSPEC, 7, 0, CONTEXT(2)), 0);
	expect(t, op_post(a.ep, &op), 0);
	expect_completion(t, a.tx_cq, CONTEXT(1), TWRITTEN, 100);
	expect_completion(t, b.rx_cq, CONTEXT(2), TWRITE_HIT, 100);
	expect(t, to[0], 5);
	pair_close(t, &a, &b);
}

static void no_peer(struct test *t)
{
	struct area area;
	struct end a, b;
	u8 name[8];
	size_t len = 8;
	kfi_addr_t addr;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!area_alloc(t, &area, MEM_KMALLOC, 0, 20000))
		goto close;
	/* A port of a NIC that there is, and a NIC that there is not. */
	expect(t, kfi_getname(&b.ep->fid, name, &len), 0);
	name[0] = 0xff;
	name[1] |= 0x0f;
	expect(t, kfi_av_insert(a.av, name, 1, &addr, 0, NULL), 1);
	expect(t, kfi_send(a.ep, area.data, 8, NULL, addr, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EHOSTUNREACH, 0, 0);
	expect(t, kfi_send(a.ep, area.data, 20000, NULL, addr, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EHOSTUNREACH, 0, 0);
	expect(t, kfi_write(a.ep, area.data, 8, NULL, addr, 0, 1, CONTEXT(2)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(2), WRITTEN, KFI_EHOSTUNREACH, 0, 0);
	expect(t, kfi_tsend(a.ep, area.data, 8, NULL, addr, 1, CONTEXT(3)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(3), TSENT, KFI_EHOSTUNREACH, 0, 0);
	expect(t, kfi_inject(a.ep, area.data, 8, addr), 0);
	expect_failure(t, a.tx_cq, NULL, SENT, KFI_EHOSTUNREACH, 0, 0);
	expect_count(t, a.cntr[COUNT_SEND], 0, 4);
	/* Not an address. */
	expect(t, kfi_send(a.ep, area.data, 8, NULL, 999, CONTEXT(1)), -KFI_EINVAL);
	expect(t, kfi_send(a.ep, area.data, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), -KFI_EINVAL);
	expect_nothing(t, a.tx_cq);
	/* A peer that goes, with messages that wait for it. */
	expect(t, send_to(&a, area.data, 8, CONTEXT(1)), 0);
	expect(t, send_to(&a, area.data, 20000, CONTEXT(1)), 0);
	close_fid(t, &b.ep->fid);
	b.ep = NULL;
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EHOSTUNREACH, 0, 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EHOSTUNREACH, 0, 0);
	expect(t, send_to(&a, area.data, 8, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EHOSTUNREACH, 0, 0);
	area_free(&area);
close:
	pair_close(t, &a, &b);
}

/* Messages that nobody receives in time. */
static void not_ready(struct test *t)
{
	u8 from[8] = {}, to[8];
	struct end a, b;
	ktime_t start;
	s64 ms;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	start = ktime_get();
	expect(t, send_to(&a, from, 8, CONTEXT(1)), 0);
	msleep(rnr_timeout / 2);
	expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, 1, CONTEXT(2)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EREMOTEIO, 0, 0);
	/* Jiffies may lag behind by some. */
	ms = ktime_ms_delta(ktime_get(), start);
	expect_true(t, ms >= (s64)rnr_timeout * 3 / 4);
	expect_failure(t, a.tx_cq, CONTEXT(2), TSENT, KFI_EREMOTEIO, 0, 0);
	ms = ktime_ms_delta(ktime_get(), start);
	expect_true(t, ms >= (s64)rnr_timeout * 5 / 4);
	expect_count(t, a.cntr[COUNT_SEND], 0, 2);
	/* A receive that comes too late finds nothing. */
	expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(3)), 0);
	expect_nothing(t, b.rx_cq);
	expect(t, send_to(&a, from, 8, CONTEXT(1)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(3), RECEIVED, 8);
	expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 8);
	/* The watch works again after it has slept. */
	expect(t, send_to(&a, from, 8, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EREMOTEIO, 0, 0);
	expect_nothing(t, a.tx_cq);
	pair_close(t, &a, &b);
}

/* Looks for a message with tag 1 until it is there, and claims it. */
static void claim(struct test *t, struct end *b, void *context)
{
	struct kfi_msg_tagged msg = { .type = KFI_KVEC, .addr = KFI_ADDR_UNSPEC, .tag = 1 };
	struct kfi_cq_tagged_entry entry;
	unsigned long until = jiffies + 20 * HZ;
	ssize_t ret;

	msg.context = context;
	do {
		struct kfi_cq_err_entry error = {};

		expect(t, kfi_trecvmsg(b->ep, &msg, KFI_PEEK | KFI_CLAIM), 0);
		ret = kfi_cq_sread(b->rx_cq, &entry, 1, NULL, 20000);
		if (ret == -KFI_EAVAIL) {
			expect(t, kfi_cq_readerr(b->rx_cq, &error, 0), 1);
			expect(t, error.err, KFI_ENOMSG);
		}
	} while (ret == -KFI_EAVAIL && time_before(jiffies, until));
	expect(t, ret, 1);
	if (ret == 1)
		expect_true(t, entry.op_context == context && entry.len == 8);
}

/* Messages that were claimed and are gone: with their time, by cancelling, with their sender. */
static void claimed_and_gone(struct test *t)
{
	static const u64 flags[] = { KFI_CLAIM, KFI_CLAIM | KFI_DISCARD };
	u8 from[8] = {}, to[8];
	struct kvec iov = { to, sizeof(to) };
	struct kfi_msg_tagged msg = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1, .addr = KFI_ADDR_UNSPEC,
		.tag = 1, .context = CONTEXT(2),
	};
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, 1, CONTEXT(1)), 0);
		claim(t, &b, CONTEXT(2));
		expect_failure(t, a.tx_cq, CONTEXT(1), TSENT, KFI_EREMOTEIO, 0, 0);
		expect(t, kfi_trecvmsg(b.ep, &msg, flags[i]), 0);
		expect_failure(t, b.rx_cq, CONTEXT(2), TRECEIVED, KFI_ENOMSG, 0, 0);

		expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, 1, CONTEXT(1)), 0);
		claim(t, &b, CONTEXT(2));
		expect(t, kfi_cancel(&a.ep->fid, CONTEXT(1)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(1), TSENT, KFI_ECANCELED, 0, 0);
		expect(t, kfi_trecvmsg(b.ep, &msg, flags[i]), 0);
		expect_failure(t, b.rx_cq, CONTEXT(2), TRECEIVED, KFI_ENOMSG, 0, 0);
		/* To receive counts, to throw away does not. */
		expect_count(t, b.cntr[COUNT_RECV], 0, 2);
	}
	expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, 1, CONTEXT(1)), 0);
	claim(t, &b, CONTEXT(2));
	close_fid(t, &a.ep->fid);
	a.ep = NULL;
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		expect(t, kfi_trecvmsg(b.ep, &msg, flags[i]), 0);
		expect_failure(t, b.rx_cq, CONTEXT(2), TRECEIVED, KFI_ENOMSG, 0, 0);
	}
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
}

/* Full queues say so, lose nothing and recover. */
static void full_transmit(struct test *t)
{
	const struct setup setup = { .tx_size = 4 };
	u8 from[8] = {}, to[8];
	unsigned int i, round;
	struct end a, b;

	if (!pair_open(t, &a, &b, &setup, NULL))
		return;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 4; i++)
			expect(t, send_to(&a, from, 8, CONTEXT(1)), 0);
		expect(t, send_to(&a, from, 8, CONTEXT(1)), -KFI_EAGAIN);
		expect(t, kfi_inject(a.ep, from, 8, a.peer), -KFI_EAGAIN);
		expect(t, kfi_write(a.ep, from, 8, NULL, a.peer, 0, 1, CONTEXT(2)), -KFI_EAGAIN);
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(3)), 0);
		expect_completion(t, b.rx_cq, CONTEXT(3), RECEIVED, 8);
		expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 8);
		/* There is room for one. */
		expect(t, send_to(&a, from, 8, CONTEXT(1)), 0);
		expect(t, send_to(&a, from, 8, CONTEXT(1)), -KFI_EAGAIN);
		for (i = 0; i < 4; i++) {
			expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(3)), 0);
			expect_completion(t, b.rx_cq, CONTEXT(3), RECEIVED, 8);
			expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 8);
		}
		expect_nothing(t, a.tx_cq);
		expect_nothing(t, b.rx_cq);
	}
	expect_count(t, a.cntr[COUNT_SEND], 15, 0);
	expect_count(t, b.cntr[COUNT_RECV], 15, 0);
	pair_close(t, &a, &b);
}

static void full_receive(struct test *t)
{
	const struct setup setup = { .rx_size = 3 };
	u8 from[8] = {}, to[8];
	unsigned int i, round;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++)
			expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(4)), -KFI_EAGAIN);
		for (i = 0; i < 3; i++) {
			expect(t, send_to(&a, from, 8, CONTEXT(9)), 0);
			expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 8);
			expect_completion(t, a.tx_cq, CONTEXT(9), SENT, 8);
		}
	}
	pair_close(t, &a, &b);
}

static void bad_calls(struct test *t)
{
	static struct kvec iov[VECTOR + 1];
	static u8 large[2000];
	struct kfi_rma_iov rma_iov = { .len = 8, .key = 1 };
	struct kfi_msg_rma rma = {
		.type = KFI_KVEC,
		.msg_iov = iov,
		.iov_count = 1,
		.rma_iov = &rma_iov,
		.rma_iov_count = 1,
	};
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = iov, .iov_count = 1 };
	struct kfi_msg_tagged tagged = { .type = KFI_KVEC, .msg_iov = iov, .iov_count = 1 };
	unsigned int i;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	msg.addr = a.peer;
	tagged.addr = a.peer;
	rma.addr = a.peer;
	for (i = 0; i <= VECTOR; i++)
		iov[i] = (struct kvec) { large, 1 };

	/* Too many ranges, and as many as there may be. */
	expect(t, kfi_sendv(a.ep, iov, NULL, VECTOR + 1, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_recvv(a.ep, iov, NULL, VECTOR + 1, KFI_ADDR_UNSPEC, NULL), -KFI_EINVAL);
	expect(t, kfi_writev(a.ep, iov, NULL, VECTOR + 1, a.peer, 0, 1, NULL), -KFI_EINVAL);
	expect(t, kfi_recvv(b.ep, iov, NULL, VECTOR, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_sendv(a.ep, iov, NULL, VECTOR, a.peer, CONTEXT(2)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, VECTOR);
	expect_completion(t, a.tx_cq, CONTEXT(2), SENT, VECTOR);

	/* Nothing where something must be. */
	expect(t, kfi_send(a.ep, NULL, 1, NULL, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_recv(a.ep, NULL, 1, NULL, KFI_ADDR_UNSPEC, NULL), -KFI_EINVAL);
	expect(t, kfi_sendv(a.ep, NULL, NULL, 1, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_sendbv(a.ep, NULL, NULL, 1, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_sendsgl(a.ep, NULL, NULL, 1, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_sendmsg(a.ep, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_recvmsg(a.ep, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_tsendmsg(a.ep, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_writemsg(a.ep, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_atomicmsg(a.ep, NULL, 0), -KFI_EINVAL);

	/* Flags that there are not. */
	for (i = 0; i < 64; i++) {
		u64 send = KFI_COMPLETION | KFI_INJECT | KFI_MORE | KFI_FENCE | KFI_TRIGGER |
			   KFI_REMOTE_CQ_DATA | KFI_INJECT_COMPLETE | KFI_TRANSMIT_COMPLETE |
			   KFI_DELIVERY_COMPLETE;
		u64 receive = KFI_COMPLETION | KFI_MORE | KFI_MULTI_RECV | KFI_TRIGGER;
		u64 look = KFI_PEEK | KFI_CLAIM | KFI_DISCARD;

		if (!(send & 1ULL << i)) {
			expect(t, kfi_sendmsg(a.ep, &msg, 1ULL << i), -KFI_EBADFLAGS);
			expect(t, kfi_tsendmsg(a.ep, &tagged, 1ULL << i), -KFI_EBADFLAGS);
			if (1ULL << i != KFI_TAGGED)
				expect(t, kfi_writemsg(a.ep, &rma, 1ULL << i), -KFI_EBADFLAGS);
		}
		if (!(receive & 1ULL << i))
			expect(t, kfi_recvmsg(a.ep, &msg, 1ULL << i), -KFI_EBADFLAGS);
		if (!((receive | look) & 1ULL << i))
			expect(t, kfi_trecvmsg(a.ep, &tagged, 1ULL << i), -KFI_EBADFLAGS);
		say(t, "flag %u", i);
	}
	expect(t, kfi_sendmsg(a.ep, &msg, KFI_INJECT | KFI_TRIGGER), -KFI_EINVAL);
	msg.type = 77;
	expect(t, kfi_sendmsg(a.ep, &msg, 0), -KFI_EINVAL);
	msg.type = KFI_KVEC;

	/* Too long. */
	expect(t, kfi_inject(a.ep, large, 1025, a.peer), -KFI_EMSGSIZE);
	expect(t, kfi_tinject(a.ep, large, 1025, a.peer, 1), -KFI_EMSGSIZE);
	expect(t, kfi_inject_write(a.ep, large, 1025, a.peer, 0, 1), -KFI_EMSGSIZE);
	iov[0].iov_len = 1025;
	expect(t, kfi_sendmsg(a.ep, &msg, KFI_INJECT), -KFI_EMSGSIZE);
	expect(t, kfi_send(a.ep, large, (1UL << 30) + 1, NULL, a.peer, NULL), -KFI_EMSGSIZE);
	expect(t, kfi_write(a.ep, large, (1UL << 30) + 1, NULL, a.peer, 0, 1, NULL),
	       -KFI_EMSGSIZE);
	expect(t, kfi_send(a.ep, large, SIZE_MAX, NULL, a.peer, NULL), -KFI_EINVAL);
	iov[0].iov_len = SIZE_MAX - 3;
	iov[1].iov_len = 100;
	expect(t, kfi_sendv(a.ep, iov, NULL, 2, a.peer, NULL), -KFI_EINVAL);

	/* Ranges that differ. */
	iov[0].iov_len = 9;
	expect(t, kfi_writemsg(a.ep, &rma, 0), -KFI_EINVAL);
	rma.rma_iov = NULL;
	expect(t, kfi_writemsg(a.ep, &rma, 0), -KFI_EINVAL);
	expect_nothing(t, a.tx_cq);
	expect_nothing(t, a.rx_cq);
	expect_count(t, a.cntr[COUNT_SEND], 1, 0);
	pair_close(t, &a, &b);
}

/* Objects that are not ready. */
static void not_enabled(struct test *t)
{
	const struct setup setup = { .no_enable = true };
	struct kfid_ep *ep;
	struct end a, b;
	u8 buf[8] = {};

	if (!pair_open(t, &a, &b, &setup, NULL))
		return;
	expect(t, send_to(&a, buf, 8, NULL), -KFI_EOPBADSTATE);
	expect(t, kfi_recv(a.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, NULL), -KFI_EOPBADSTATE);
	expect(t, kfi_cancel(&a.ep->fid, NULL), -KFI_ENOENT);
	/* It has an address already, but nobody is there. */
	expect(t, send_to(&b, buf, 8, CONTEXT(1)), 0);
	expect_failure(t, b.tx_cq, CONTEXT(1), SENT, KFI_EHOSTUNREACH, 0, 0);
	expect(t, kfi_enable(a.ep), 0);
	expect(t, kfi_enable(a.ep), -KFI_EOPBADSTATE);
	expect(t, kfi_ep_bind(a.ep, &a.av->fid, 0), -KFI_EOPBADSTATE);
	expect(t, kfi_recv(a.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)), 0);
	expect(t, send_to(&b, buf, 8, CONTEXT(1)), 0);
	expect_completion(t, a.rx_cq, CONTEXT(2), RECEIVED, 8);
	expect_completion(t, b.tx_cq, CONTEXT(1), SENT, 8);

	/* Without what it needs. */
	if (expect(t, kfi_endpoint(a.domain, nic_info[0], &ep, NULL), 0)) {
		expect(t, kfi_enable(ep), -KFI_ENOAV);
		expect(t, kfi_ep_bind(ep, &a.av->fid, 0), 0);
		expect(t, kfi_enable(ep), -KFI_ENOCQ);
		expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, KFI_TRANSMIT), 0);
		expect(t, kfi_enable(ep), -KFI_ENOCQ);
		/* A counter is as good. */
		expect(t, kfi_ep_bind(ep, &a.cntr[COUNT_RECV]->fid, KFI_RECV), 0);
		expect(t, kfi_enable(ep), 0);
		close_fid(t, &ep->fid);
	}
	pair_close(t, &a, &b);
}

static void bad_binds(struct test *t)
{
	struct kfid_poll *poll = NULL;
	struct kfid_ep *ep = NULL;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!expect(t, kfi_endpoint(a.domain, nic_info[0], &ep, NULL), 0))
		goto close;
	/* Of another domain. */
	expect(t, kfi_ep_bind(ep, &b.av->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &b.tx_cq->fid, KFI_TRANSMIT), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &b.cntr[0]->fid, KFI_SEND), -KFI_EINVAL);
	/* Of a wrong class. */
	expect(t, kfi_ep_bind(ep, &ep->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &a.ep->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &a.domain->fid, 0), -KFI_EINVAL);
	if (expect(t, kfi_poll_open(a.domain, NULL, &poll), 0)) {
		expect(t, kfi_ep_bind(ep, &poll->fid, 0), -KFI_EINVAL);
		close_fid(t, &poll->fid);
	}
	expect(t, kfi_ep_bind(ep, NULL, 0), -KFI_EINVAL);
	/* With flags that there are not. */
	expect(t, kfi_ep_bind(ep, &a.av->fid, 1), -KFI_EBADFLAGS);
	expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, 0), -KFI_EBADFLAGS);
	expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, KFI_TRANSMIT | KFI_READ), -KFI_EBADFLAGS);
	expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, KFI_SELECTIVE_COMPLETION), -KFI_EBADFLAGS);
	expect(t, kfi_ep_bind(ep, &a.cntr[0]->fid, 0), -KFI_EBADFLAGS);
	expect(t, kfi_ep_bind(ep, &a.cntr[0]->fid, KFI_SEND | KFI_MSG), -KFI_EBADFLAGS);
	/* Twice. */
	expect(t, kfi_ep_bind(ep, &a.av->fid, 0), 0);
	expect(t, kfi_ep_bind(ep, &a.av->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, KFI_TRANSMIT), 0);
	expect(t, kfi_ep_bind(ep, &a.rx_cq->fid, KFI_TRANSMIT), -KFI_EINVAL);
	/* Not half either. */
	expect(t, kfi_ep_bind(ep, &a.rx_cq->fid, KFI_TRANSMIT | KFI_RECV), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, KFI_RECV), 0);
	expect(t, kfi_ep_bind(ep, &a.cntr[0]->fid, KFI_SEND | KFI_RECV), 0);
	expect(t, kfi_ep_bind(ep, &a.cntr[1]->fid, KFI_READ | KFI_RECV), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &a.cntr[1]->fid, KFI_READ), 0);
	expect(t, kfi_enable(ep), 0);
	close_fid(t, &ep->fid);
close:
	pair_close(t, &a, &b);
}

/* One queue and one counter for everything. */
static void one_for_all(struct test *t)
{
	struct kfid_cntr *cntr = NULL;
	struct kfid_ep *ep = NULL;
	u8 from[8] = { 1 }, to[8] = {};
	struct end a, b;
	kfi_addr_t self;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (cntr && expect(t, kfi_endpoint(a.domain, nic_info[0], &ep, NULL), 0)) {
		expect(t, kfi_ep_bind(ep, &a.av->fid, 0), 0);
		expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, KFI_TRANSMIT | KFI_RECV), 0);
		expect(t, kfi_ep_bind(ep, &cntr->fid, KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE |
				      KFI_REMOTE_READ | KFI_REMOTE_WRITE), 0);
		expect(t, kfi_enable(ep), 0);
		if (end_knows(t, &a, ep, &self)) {
			/* To itself. */
			expect(t, kfi_recv(ep, to, 8, NULL, self, CONTEXT(1)), 0);
			expect(t, kfi_send(ep, from, 8, NULL, self, CONTEXT(2)), 0);
			expect_completion(t, a.tx_cq, CONTEXT(1), RECEIVED, 8);
			expect_completion(t, a.tx_cq, CONTEXT(2), SENT, 8);
			expect(t, to[0], 1);
			expect_count(t, cntr, 2, 0);
		}
		close_fid(t, &ep->fid);
	}
	if (cntr)
		close_fid(t, &cntr->fid);
	pair_close(t, &a, &b);
}

const struct test_case error_tests[] = {
	{ "error/too-short", "R-CNTR-3", too_short },
	{ "error/regions", "R-CNTR-3", bad_regions },
	{ "error/tagged-rma", "R-CNTR-3", bad_tagged_rma },
	{ "error/unreachable", "R-CNTR-3", no_peer },
	{ "error/not-ready", "R-CNTR-3", not_ready },
	{ "error/claimed-and-gone", "R-CNTR-3", claimed_and_gone },
	{ "error/full-transmit", "", full_transmit },
	{ "error/full-receive", "", full_receive },
	{ "error/calls", "R-CLOSE-9", bad_calls },
	{ "error/not-enabled", "", not_enabled },
	{ "error/binds", "R-CLOSE-9", bad_binds },
	{ "endpoint/one-for-all", "R-CNTR-6", one_for_all },
	{}
};
