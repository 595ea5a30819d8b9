// SPDX-License-Identifier: GPL-2.0
/*
 * Receives of all sorts: for several messages, from one source, cancelled,
 * looked for; and how their completions are told.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/string.h>

#include <kfi_trigger.h>

#include "transfer.h"

static ssize_t post_multi(struct end *e, void *buf, size_t len, void *context,
			  u64 flags)
{
	struct kvec iov = { buf, len };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
		.context = context,
	};

	return kfi_recvmsg(e->ep, &msg, KFI_MULTI_RECV | flags);
}

static ssize_t post_tagged(struct end *e, void *buf, size_t len, u64 tag,
			   u64 ignore, void *context, u64 flags)
{
	struct kvec iov = { buf, len };
	struct kfi_msg_tagged msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
		.tag = tag,
		.ignore = ignore,
		.context = context,
	};

	return kfi_trecvmsg(e->ep, &msg, flags);
}

static ssize_t send_to(struct end *e, const void *buf, size_t len, void *context)
{
	return kfi_send(e->ep, buf, len, NULL, e->peer, context);
}

/* The next entry of a buffer for several messages. */
static void expect_part(struct test *t, struct end *e, void *context, u64 flags,
			size_t len, void *at)
{
	struct kfi_cq_tagged_entry entry;

	if (!await(t, e->rx_cq, &entry, NULL))
		return;
	expect(t, entry.op_context == context, true);
	expect(t, entry.flags, flags);
	expect(t, entry.len, len);
	expect_true(t, entry.buf == at);
}

static void multi_receive(struct test *t)
{
	size_t min = 0, len = sizeof(min);
	struct area from, to, next;
	unsigned int i;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!area_alloc(t, &from, MEM_KMALLOC, 0, 400) ||
	    !area_alloc(t, &to, MEM_VMALLOC, 1, 1000) ||
	    !area_alloc(t, &next, MEM_VMALLOC, 1, 1000))
		goto close;
	area_fill(&from, 1);
	expect(t, kfi_getopt(&b.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &min, &len), 0);
	expect(t, min, 64);
	min = 150;
	expect(t, kfi_setopt(&b.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &min, len), 0);
	min = 0;
	expect(t, kfi_getopt(&b.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &min, &len), 0);
	expect(t, min, 150);

	expect(t, post_multi(&b, to.data, 1000, CONTEXT(1), 0), 0);
	expect(t, post_multi(&b, next.data, 1000, CONTEXT(2), 0), 0);
	/* 300, 600, then 850 with 150 left, which is still enough, and 851. */
	expect(t, send_to(&a, from.data, 300, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED, 300, to.data);
	expect(t, send_to(&a, from.data, 300, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED, 300, to.data + 300);
	expect(t, send_to(&a, from.data, 0, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED, 0, to.data + 600);
	expect(t, send_to(&a, from.data, 250, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED, 250, to.data + 600);
	expect(t, send_to(&a, from.data, 1, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED | KFI_MULTI_RECV, 1, to.data + 850);
	for (i = 0; i < 300; i++) {
		expect(t, to.data[i], pattern(1, i));
		expect(t, to.data[300 + i], pattern(1, i));
	}
	expect(t, to.data[849], pattern(1, 249));
	expect(t, to.data[850], pattern(1, 0));
	expect(t, to.data[851], FILL);

	/* The next one begins, and a message that does not fit ends it. */
	for (i = 0; i < 2; i++) {
		expect(t, send_to(&a, from.data, 400, CONTEXT(3)), 0);
		expect_part(t, &b, CONTEXT(2), RECEIVED, 400, next.data + i * 400);
	}
	expect(t, send_to(&a, from.data, 400, CONTEXT(3)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(2), RECEIVED | KFI_MULTI_RECV, KFI_EMSGSIZE, 200, 200);
	for (i = 0; i < 7; i++)
		expect_completion(t, a.tx_cq, CONTEXT(3), SENT, 0);
	expect_failure(t, a.tx_cq, CONTEXT(3), SENT, KFI_EMSGSIZE, 0, 0);
	expect_count(t, b.cntr[COUNT_RECV], 7, 1);
	expect_count(t, a.cntr[COUNT_SEND], 7, 1);

	/* Exactly full, and a buffer of no bytes. */
	expect(t, post_multi(&b, to.data, 400, CONTEXT(1), 0), 0);
	expect(t, send_to(&a, from.data, 400, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED | KFI_MULTI_RECV, 400, to.data);
	expect(t, post_multi(&b, to.data, 0, CONTEXT(1), 0), -KFI_EINVAL);
	expect_completion(t, a.tx_cq, CONTEXT(3), SENT, 400);

	/* Cancelled between messages: one completion more. */
	expect(t, post_multi(&b, to.data, 1000, CONTEXT(1), 0), 0);
	expect(t, send_to(&a, from.data, 10, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED, 10, to.data);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), RECEIVED, KFI_ECANCELED, 0, 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), -KFI_ENOENT);
	expect_completion(t, a.tx_cq, CONTEXT(3), SENT, 10);
	expect_nothing(t, b.rx_cq);
	area_free(&from);
	area_free(&to);
	area_free(&next);
close:
	pair_close(t, &a, &b);
}

/* Many large messages at once into one buffer: only the last one releases it. */
static void multi_receive_many(struct test *t)
{
	enum { COUNT = 32, LEN = 20000 };
	struct area from, to;
	unsigned int i, released = 0;
	u8 seen[COUNT] = {};
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!area_alloc(t, &from, MEM_VMALLOC, 0, COUNT * LEN) ||
	    !area_alloc(t, &to, MEM_VMALLOC, 1, COUNT * LEN))
		goto close;
	area_fill(&from, 1);
	expect(t, post_multi(&b, to.data, COUNT * LEN, CONTEXT(1), 0), 0);
	for (i = 0; i < COUNT; i++)
		expect(t, send_to(&a, from.data + i * LEN, LEN, CONTEXT(2)), 0);
	for (i = 0; i < COUNT && !t->failed; i++) {
		struct kfi_cq_tagged_entry entry;
		size_t at;

		if (!await(t, b.rx_cq, &entry, NULL))
			break;
		expect(t, released, 0);
		released += !!(entry.flags & KFI_MULTI_RECV);
		expect(t, entry.flags & ~KFI_MULTI_RECV, RECEIVED);
		expect(t, entry.len, LEN);
		at = (u8 *)entry.buf - to.data;
		expect(t, at % LEN, 0);
		if (expect_true(t, at / LEN < COUNT))
			seen[at / LEN]++;
		expect_completion(t, a.tx_cq, CONTEXT(2), SENT, LEN);
	}
	expect(t, released, 1);
	for (i = 0; i < COUNT; i++)
		expect(t, seen[i], 1);
	area_has(t, &to, 1, 0, COUNT * LEN, 0);
	area_free(&from);
	area_free(&to);
close:
	pair_close(t, &a, &b);
}

static void tagged_multi_receive(struct test *t)
{
	struct end a, b;
	u8 from[64] = { 1, 2, 3 }, to[200] = {};

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, post_tagged(&b, to, 200, 0x10, 0xf, CONTEXT(1), KFI_MULTI_RECV), 0);
	expect(t, kfi_tsend(a.ep, from, 64, NULL, a.peer, 0x11, CONTEXT(2)), 0);
	expect_part(t, &b, CONTEXT(1), TRECEIVED, 64, to);
	expect(t, kfi_tsend(a.ep, from, 64, NULL, a.peer, 0x1f, CONTEXT(2)), 0);
	expect_part(t, &b, CONTEXT(1), TRECEIVED, 64, to + 64);
	expect(t, kfi_tsend(a.ep, from, 64, NULL, a.peer, 0x12, CONTEXT(2)), 0);
	expect_part(t, &b, CONTEXT(1), TRECEIVED | KFI_MULTI_RECV, 64, to + 128);
	expect(t, to[128], 1);
	pair_close(t, &a, &b);
}

/* The default flags of the endpoint make every receive one for several that can be. */
static void multi_receive_by_default(struct test *t)
{
	const struct setup setup = { .rx_flags = KFI_MULTI_RECV }, only_messages = {
		.rx_flags = KFI_MULTI_RECV,
		.caps = KFI_MSG | KFI_TAGGED | KFI_MULTI_RECV,
	};
	struct end a, b;
	u8 from[64], to[128];

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	expect(t, kfi_recv(b.ep, to, 128, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, send_to(&a, from, 64, CONTEXT(2)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED, 64, to);
	expect(t, send_to(&a, from, 64, CONTEXT(2)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED | KFI_MULTI_RECV, 64, to + 64);
	expect(t, kfi_trecv(b.ep, to, 128, NULL, KFI_ADDR_UNSPEC, 1, 0, CONTEXT(1)), 0);
	expect(t, kfi_tsend(a.ep, from, 64, NULL, a.peer, 1, CONTEXT(2)), 0);
	expect_part(t, &b, CONTEXT(1), TRECEIVED, 64, to);
	pair_close(t, &a, &b);

	/* Tagged ones cannot be: they are as if the flag was not there, unless asked for. */
	if (!pair_open(t, &a, &b, NULL, &only_messages))
		return;
	expect(t, kfi_trecv(b.ep, to, 128, NULL, KFI_ADDR_UNSPEC, 1, 0, CONTEXT(1)), 0);
	expect(t, post_tagged(&b, to, 128, 1, 0, CONTEXT(1), KFI_MULTI_RECV), -KFI_EOPNOTSUPP);
	expect(t, kfi_recv(b.ep, to, 128, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)), 0);
	expect(t, kfi_tsend(a.ep, from, 64, NULL, a.peer, 1, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(1), TRECEIVED, 64, NULL);
	expect(t, send_to(&a, from, 64, CONTEXT(3)), 0);
	expect_part(t, &b, CONTEXT(2), RECEIVED, 64, to);
	pair_close(t, &a, &b);
}

/* With selective completion; that the buffer is free is told in any case. */
static void selective(struct test *t)
{
	const struct setup setup = {
		.tx_bind = KFI_SELECTIVE_COMPLETION,
		.rx_bind = KFI_SELECTIVE_COMPLETION,
	};
	struct kvec iov;
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1 };
	u8 from[64] = {}, to[128];
	struct end a, b;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	expect(t, kfi_recv(b.ep, to, 64, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, send_to(&a, from, 64, CONTEXT(2)), 0);
	expect_count(t, a.cntr[COUNT_SEND], 1, 0);
	expect_count(t, b.cntr[COUNT_RECV], 1, 0);
	expect_nothing(t, a.tx_cq);
	expect_nothing(t, b.rx_cq);

	iov = (struct kvec) { to, 64 };
	msg.addr = KFI_ADDR_UNSPEC;
	msg.context = CONTEXT(3);
	expect(t, kfi_recvmsg(b.ep, &msg, KFI_COMPLETION), 0);
	iov = (struct kvec) { from, 64 };
	msg.addr = a.peer;
	msg.context = CONTEXT(4);
	expect(t, kfi_sendmsg(a.ep, &msg, KFI_COMPLETION), 0);
	expect_completion(t, b.rx_cq, CONTEXT(3), RECEIVED, 64);
	expect_completion(t, a.tx_cq, CONTEXT(4), SENT, 64);

	/* Errors give an entry always. */
	expect(t, kfi_recv(b.ep, to, 10, NULL, KFI_ADDR_UNSPEC, CONTEXT(5)), 0);
	expect(t, send_to(&a, from, 64, CONTEXT(6)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(5), RECEIVED, KFI_EMSGSIZE, 10, 54);
	expect_failure(t, a.tx_cq, CONTEXT(6), SENT, KFI_EMSGSIZE, 0, 0);
	expect(t, kfi_write(a.ep, from, 8, NULL, a.peer, 0, 999, CONTEXT(7)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(7), WRITTEN, KFI_EKEYREJECTED, 0, 0);

	expect(t, post_multi(&b, to, 128, CONTEXT(8), 0), 0);
	expect(t, send_to(&a, from, 64, CONTEXT(6)), 0);
	expect_nothing(t, b.rx_cq);
	expect(t, send_to(&a, from, 64, CONTEXT(6)), 0);
	/* The release alone, as nobody has asked for the message. */
	expect_part(t, &b, CONTEXT(8), KFI_MULTI_RECV, 0, NULL);
	expect_nothing(t, b.rx_cq);
	expect_count(t, a.cntr[COUNT_SEND], 4, 1);
	expect_count(t, a.cntr[COUNT_WRITE], 0, 1);
	expect_count(t, b.cntr[COUNT_RECV], 4, 1);
	pair_close(t, &a, &b);
}

/* The default flags of the endpoint ask for completions. */
static void selective_by_default(struct test *t)
{
	const struct setup setup = {
		.tx_bind = KFI_SELECTIVE_COMPLETION,
		.rx_bind = KFI_SELECTIVE_COMPLETION,
		.tx_flags = KFI_COMPLETION,
		.rx_flags = KFI_COMPLETION,
	};
	struct kvec iov;
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1 };
	u8 from[64] = {}, to[64];
	struct end a, b;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	expect(t, kfi_recv(b.ep, to, 64, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, send_to(&a, from, 64, CONTEXT(2)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 64);
	expect_completion(t, a.tx_cq, CONTEXT(2), SENT, 64);
	/* Flags of a call replace them. */
	iov = (struct kvec) { to, 64 };
	msg.addr = KFI_ADDR_UNSPEC;
	expect(t, kfi_recvmsg(b.ep, &msg, 0), 0);
	iov = (struct kvec) { from, 64 };
	msg.addr = a.peer;
	expect(t, kfi_sendmsg(a.ep, &msg, 0), 0);
	expect_count(t, b.cntr[COUNT_RECV], 2, 0);
	expect_nothing(t, b.rx_cq);
	expect_nothing(t, a.tx_cq);
	/* An inject call never tells of success. */
	expect(t, kfi_recv(b.ep, to, 64, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_inject(a.ep, from, 64, a.peer), 0);
	expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 64);
	expect_nothing(t, a.tx_cq);
	/* But of failure. */
	expect(t, kfi_inject_write(a.ep, from, 8, a.peer, 0, 999), 0);
	expect_failure(t, a.tx_cq, NULL, WRITTEN, KFI_EKEYREJECTED, 0, 0);
	expect_count(t, a.cntr[COUNT_SEND], 3, 0);
	expect_count(t, a.cntr[COUNT_WRITE], 0, 1);
	pair_close(t, &a, &b);
}

/* A third endpoint, on the NIC of the second, that knows the first and back. */
static bool third_open(struct test *t, struct end *c, struct end *b,
		       kfi_addr_t *addr)
{
	if (!end_open(t, c, 0, NULL))
		return false;
	if (end_knows(t, c, b->ep, &c->peer) && end_knows(t, b, c->ep, addr))
		return true;
	end_close(t, c);
	return false;
}

static void directed(struct test *t)
{
	u8 from[2] = { 'a', 'c' }, to[4] = {};
	struct kfi_cq_tagged_entry entry;
	kfi_addr_t addr, source;
	struct end a, b, c;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!third_open(t, &c, &b, &addr))
		goto close;
	expect(t, kfi_recv(b.ep, to, 1, NULL, addr, CONTEXT(1)), 0);
	expect(t, kfi_recv(b.ep, to + 1, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)), 0);
	expect(t, send_to(&a, from, 1, CONTEXT(3)), 0);
	if (await(t, b.rx_cq, &entry, &source)) {
		expect_true(t, entry.op_context == CONTEXT(2));
		expect(t, source, b.peer);
	}
	expect(t, send_to(&c, from + 1, 1, CONTEXT(3)), 0);
	if (await(t, b.rx_cq, &entry, &source)) {
		expect_true(t, entry.op_context == CONTEXT(1));
		expect(t, source, addr);
	}
	expect(t, to[0], 'c');
	expect(t, to[1], 'a');
	/* The same for those that wait, and with tags. */
	expect(t, kfi_tsend(a.ep, from, 1, NULL, a.peer, 5, CONTEXT(3)), 0);
	expect(t, kfi_tsend(c.ep, from + 1, 1, NULL, c.peer, 5, CONTEXT(3)), 0);
	expect(t, kfi_trecv(b.ep, to + 2, 1, NULL, addr, 5, 0, CONTEXT(4)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(4), TRECEIVED, 1);
	expect(t, kfi_trecv(b.ep, to + 3, 1, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(5)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(5), TRECEIVED, 1);
	expect(t, to[2], 'c');
	expect(t, to[3], 'a');
	/* Nobody has that address. */
	expect(t, kfi_recv(b.ep, to, 1, NULL, 77, CONTEXT(1)), -KFI_EINVAL);
	end_close(t, &c);
close:
	pair_close(t, &a, &b);
}

/* No source without KFI_SOURCE, or of a sender that is not known. */
static void sources(struct test *t)
{
	const struct setup without = { .caps = KFI_MSG };
	struct kfi_cq_tagged_entry entry;
	kfi_addr_t addr, source = 1;
	struct end a, b;
	u8 from[8] = {}, to[8];

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, kfi_recv(a.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_av_remove(a.av, &a.peer, 1, 0), 0);
	expect(t, send_to(&b, from, 8, CONTEXT(2)), 0);
	if (await(t, a.rx_cq, &entry, &source))
		expect(t, source, KFI_ADDR_NOTAVAIL);
	expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(2)), -KFI_EINVAL);
	pair_close(t, &a, &b);

	if (!pair_open(t, &a, &b, NULL, &without))
		return;
	source = 1;
	expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, send_to(&a, from, 8, CONTEXT(2)), 0);
	if (await(t, b.rx_cq, &entry, &source))
		expect(t, source, KFI_ADDR_NOTAVAIL);
	/* The source of a receive does not filter then. */
	if (end_knows(t, &b, b.ep, &addr)) {
		expect(t, kfi_recv(b.ep, to, 8, NULL, addr, CONTEXT(1)), 0);
		expect(t, send_to(&a, from, 8, CONTEXT(2)), 0);
		expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 8);
	}
	/* Operations that it has not been opened for. */
	expect(t, kfi_tsend(b.ep, from, 8, NULL, b.peer, 1, NULL), -KFI_EOPNOTSUPP);
	expect(t, kfi_trecv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, 1, 0, NULL), -KFI_EOPNOTSUPP);
	expect(t, kfi_write(b.ep, from, 8, NULL, b.peer, 0, 1, NULL), -KFI_EOPNOTSUPP);
	expect(t, kfi_read(b.ep, to, 8, NULL, b.peer, 0, 1, NULL), -KFI_EOPNOTSUPP);
	expect(t, kfi_atomic(b.ep, from, 1, NULL, b.peer, 0, 1, KFI_UINT8, KFI_SUM, NULL),
	       -KFI_EOPNOTSUPP);
	pair_close(t, &a, &b);
}

/* A completion of a look: what there is, or ENOMSG. */
static void expect_seen(struct test *t, struct end *e, void *context, u64 tag,
			size_t len, u64 data)
{
	struct kfi_cq_tagged_entry entry;
	kfi_addr_t source;

	if (!await(t, e->rx_cq, &entry, &source))
		return;
	expect_true(t, entry.op_context == context);
	expect(t, entry.flags, data ? TRECEIVED | KFI_REMOTE_CQ_DATA : TRECEIVED);
	expect(t, entry.len, len);
	expect(t, entry.tag, tag);
	expect(t, entry.data, data);
	expect(t, source, e->peer);
}

/*
 * Looks for a message until it is there: over a network it arrives when the call
 * that has sent it is long back.
 */
static void await_arrival(struct test *t, struct end *e, u64 tag)
{
	unsigned long until = jiffies + msecs_to_jiffies(SOON);

	while (expect(t, post_tagged(e, NULL, 0, tag, 0, CONTEXT(99), KFI_PEEK), 0)) {
		struct kfi_cq_tagged_entry entry = {};
		struct kfi_cq_err_entry error = {};
		ssize_t ret = kfi_cq_sread(e->rx_cq, &entry, 1, NULL, SOON);

		if (ret == 1) {
			expect_true(t, entry.op_context == CONTEXT(99));
			return;
		}
		if (!expect(t, ret, -KFI_EAVAIL) ||
		    !expect(t, kfi_cq_readerr(e->rx_cq, &error, 0), 1) ||
		    !expect(t, error.err, KFI_ENOMSG) ||
		    !expect_true(t, time_before(jiffies, until)))
			return;
		usleep_range(50, 100);
	}
}

static void peek(struct test *t)
{
	u8 from[100] = { 1, 2, 3 }, to[100] = {};
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, post_tagged(&b, NULL, 0, 1, 0, CONTEXT(1), KFI_PEEK), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ENOMSG, 0, 0);
	expect(t, kfi_tsenddata(a.ep, from, 100, NULL, 77, a.peer, 0x15, CONTEXT(2)), 0);
	expect(t, post_tagged(&b, NULL, 0, 1, 0, CONTEXT(1), KFI_PEEK), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ENOMSG, 0, 0);
	/* To look does not change anything. */
	await_arrival(t, &b, 0x15);
	expect(t, post_tagged(&b, NULL, 0, 0x10, 0xf, CONTEXT(1), KFI_PEEK), 0);
	expect_seen(t, &b, CONTEXT(1), 0x15, 100, 77);
	expect(t, post_tagged(&b, NULL, 0, 0x10, 0xf, CONTEXT(1), KFI_PEEK), 0);
	expect_seen(t, &b, CONTEXT(1), 0x15, 100, 77);
	expect_nothing(t, a.tx_cq);

	/* A claimed message is seen by nobody else. */
	expect(t, post_tagged(&b, NULL, 0, 0x15, 0, CONTEXT(3), KFI_PEEK | KFI_CLAIM), 0);
	expect_seen(t, &b, CONTEXT(3), 0x15, 100, 77);
	expect(t, post_tagged(&b, NULL, 0, 0x15, 0, CONTEXT(1), KFI_PEEK), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ENOMSG, 0, 0);
	expect(t, post_tagged(&b, NULL, 0, 0x15, 0, CONTEXT(1), KFI_CLAIM | KFI_DISCARD), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ENOMSG, 0, 0);
	expect(t, post_tagged(&b, to, 100, 0x15, 0, CONTEXT(3), KFI_CLAIM), 0);
	expect_seen(t, &b, CONTEXT(3), 0x15, 100, 77);
	expect_completion(t, a.tx_cq, CONTEXT(2), TSENT, 100);
	expect(t, memcmp(from, to, 100), 0);
	expect_count(t, b.cntr[COUNT_RECV], 1, 0);
	/* It is not there twice. This is a receive that has failed, and counts. */
	expect(t, post_tagged(&b, to, 100, 0x15, 0, CONTEXT(3), KFI_CLAIM), 0);
	expect_failure(t, b.rx_cq, CONTEXT(3), TRECEIVED, KFI_ENOMSG, 0, 0);
	expect_count(t, b.cntr[COUNT_RECV], 1, 1);

	/* Thrown away: the sender has sent well. */
	expect(t, kfi_tsend(a.ep, from, 100, NULL, a.peer, 0x16, CONTEXT(4)), 0);
	expect(t, kfi_tsend(a.ep, from, 50, NULL, a.peer, 0x16, CONTEXT(5)), 0);
	await_arrival(t, &b, 0x16);
	expect(t, post_tagged(&b, NULL, 0, 0x16, 0, CONTEXT(6), KFI_PEEK | KFI_DISCARD), 0);
	expect_seen(t, &b, CONTEXT(6), 0x16, 100, 0);
	expect_completion(t, a.tx_cq, CONTEXT(4), TSENT, 100);
	await_arrival(t, &b, 0x16);
	expect(t, post_tagged(&b, NULL, 0, 0x16, 0, CONTEXT(7), KFI_PEEK | KFI_CLAIM), 0);
	expect_seen(t, &b, CONTEXT(7), 0x16, 50, 0);
	expect_nothing(t, a.tx_cq);
	expect(t, post_tagged(&b, NULL, 0, 0x16, 0, CONTEXT(7), KFI_CLAIM | KFI_DISCARD), 0);
	expect_seen(t, &b, CONTEXT(7), 0x16, 50, 0);
	expect_completion(t, a.tx_cq, CONTEXT(5), TSENT, 50);
	expect_nothing(t, b.rx_cq);
	expect_nothing(t, a.tx_cq);

	/* Only what was received was counted. */
	expect_count(t, b.cntr[COUNT_RECV], 1, 1);
	expect_count(t, a.cntr[COUNT_SEND], 3, 0);

	/* A message that was cancelled is not there any more. */
	expect(t, kfi_tsend(a.ep, from, 50, NULL, a.peer, 0x17, CONTEXT(8)), 0);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(8)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(8), TSENT, KFI_ECANCELED, 0, 0);
	expect(t, post_tagged(&b, NULL, 0, 0x17, 0, CONTEXT(1), KFI_PEEK), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ENOMSG, 0, 0);

	/* Flags that make no sense. */
	expect(t, post_tagged(&b, to, 100, 1, 0, NULL, KFI_DISCARD), -KFI_EBADFLAGS);
	expect(t, post_tagged(&b, to, 100, 1, 0, NULL, KFI_PEEK | KFI_MULTI_RECV),
	       -KFI_EBADFLAGS);
	expect(t, post_multi(&b, to, 100, NULL, KFI_PEEK), -KFI_EBADFLAGS);
	pair_close(t, &a, &b);
}

/* Without a queue nobody would hear what a look has found: nothing is touched. */
static void peek_untold(struct test *t)
{
	static const u64 looks[] = {
		KFI_PEEK, KFI_PEEK | KFI_CLAIM, KFI_PEEK | KFI_DISCARD,
		KFI_CLAIM, KFI_CLAIM | KFI_DISCARD,
	};
	const struct setup silent = { .no_rx_cq = true };
	u8 from[100] = { 1, 2, 3 }, to[100] = {};
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, &silent))
		return;
	expect(t, kfi_tsend(a.ep, from, 100, NULL, a.peer, 5, CONTEXT(1)), 0);
	for (i = 0; i < ARRAY_SIZE(looks); i++) {
		expect(t, post_tagged(&b, to, 100, 5, 0, CONTEXT(2), looks[i]),
		       -KFI_EBADFLAGS);
		say(t, "flags %#llx", looks[i]);
	}
	expect_nothing(t, a.tx_cq);
	expect_count(t, b.cntr[COUNT_RECV], 0, 0);
	/* It is still there. */
	expect(t, kfi_trecv(b.ep, to, 100, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(3)), 0);
	expect_count(t, b.cntr[COUNT_RECV], 1, 0);
	expect_completion(t, a.tx_cq, CONTEXT(1), TSENT, 100);
	expect(t, memcmp(from, to, 100), 0);
	pair_close(t, &a, &b);
}

/*
 * The entry is what a look is for, so it needs no KFI_COMPLETION; what receives
 * afterwards does.
 */
static void peek_selective(struct test *t)
{
	const struct setup setup = { .rx_bind = KFI_SELECTIVE_COMPLETION };
	u8 from[100] = { 1, 2, 3 }, to[100];
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	expect(t, kfi_tsend(a.ep, from, 100, NULL, a.peer, 5, CONTEXT(1)), 0);
	await_arrival(t, &b, 5);
	expect(t, post_tagged(&b, NULL, 0, 5, 0, CONTEXT(2), KFI_PEEK), 0);
	expect_seen(t, &b, CONTEXT(2), 5, 100, 0);
	expect(t, post_tagged(&b, NULL, 0, 5, 0, CONTEXT(3), KFI_PEEK | KFI_CLAIM), 0);
	expect_seen(t, &b, CONTEXT(3), 5, 100, 0);
	expect(t, post_tagged(&b, to, 100, 5, 0, CONTEXT(3), KFI_CLAIM), 0);
	expect_count(t, b.cntr[COUNT_RECV], 1, 0);
	expect_nothing(t, b.rx_cq);

	expect(t, kfi_tsend(a.ep, from, 100, NULL, a.peer, 6, CONTEXT(1)), 0);
	await_arrival(t, &b, 6);
	expect(t, post_tagged(&b, NULL, 0, 6, 0, CONTEXT(4), KFI_PEEK | KFI_DISCARD), 0);
	expect_seen(t, &b, CONTEXT(4), 6, 100, 0);
	expect_count(t, b.cntr[COUNT_RECV], 1, 0);
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
}

/* A message goes to the first receive that fits, a receive takes the first such message. */
static void tag_match(struct test *t)
{
	u8 from[3] = { 1, 2, 3 }, to[4] = {};
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, kfi_trecv(b.ep, to, 1, NULL, KFI_ADDR_UNSPEC, 0xf0, 0x0f, CONTEXT(1)), 0);
	expect(t, kfi_trecv(b.ep, to + 1, 1, NULL, KFI_ADDR_UNSPEC, 0xf1, 0, CONTEXT(2)), 0);
	expect(t, kfi_trecv(b.ep, to + 2, 1, NULL, KFI_ADDR_UNSPEC, 0, U64_MAX, CONTEXT(3)), 0);
	expect(t, kfi_recv(b.ep, to + 3, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(4)), 0);
	expect(t, kfi_tsend(a.ep, from, 1, NULL, a.peer, 0xe1, CONTEXT(5)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(3), TRECEIVED, 1);
	expect(t, kfi_tsend(a.ep, from + 1, 1, NULL, a.peer, 0xf1, CONTEXT(5)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(1), TRECEIVED, 1);
	expect(t, kfi_tsend(a.ep, from + 2, 1, NULL, a.peer, 0xf1, CONTEXT(5)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(2), TRECEIVED, 1);
	expect(t, to[0], 2);
	expect(t, to[1], 3);
	expect(t, to[2], 1);

	expect(t, kfi_tsend(a.ep, from, 1, NULL, a.peer, 1, CONTEXT(5)), 0);
	expect(t, kfi_tsend(a.ep, from + 1, 1, NULL, a.peer, 2, CONTEXT(5)), 0);
	expect(t, kfi_tsend(a.ep, from + 2, 1, NULL, a.peer, 1, CONTEXT(5)), 0);
	await_arrival(t, &b, 2);
	expect(t, kfi_trecv(b.ep, to, 1, NULL, KFI_ADDR_UNSPEC, 2, 0, CONTEXT(1)), 0);
	expect(t, kfi_trecv(b.ep, to + 1, 1, NULL, KFI_ADDR_UNSPEC, 0, U64_MAX, CONTEXT(2)), 0);
	expect(t, kfi_trecv(b.ep, to + 2, 1, NULL, KFI_ADDR_UNSPEC, 1, 0, CONTEXT(3)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(1), TRECEIVED, 1);
	expect_completion(t, b.rx_cq, CONTEXT(2), TRECEIVED, 1);
	expect_completion(t, b.rx_cq, CONTEXT(3), TRECEIVED, 1);
	expect(t, to[0], 2);
	expect(t, to[1], 1);
	expect(t, to[2], 3);
	expect_nothing(t, b.rx_cq);
	pair_close(t, &a, &b);
}

static void cancels(struct test *t)
{
	u8 from[10] = {}, to[10];
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), -KFI_ENOENT);
	expect(t, kfi_recv(b.ep, to, 10, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_trecv(b.ep, to, 10, NULL, KFI_ADDR_UNSPEC, 6, 0, CONTEXT(2)), 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(3)), -KFI_ENOENT);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(2)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(2), TRECEIVED, KFI_ECANCELED, 0, 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), RECEIVED, KFI_ECANCELED, 0, 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), -KFI_ENOENT);
	expect_nothing(t, b.rx_cq);
	expect_count(t, b.cntr[COUNT_RECV], 0, 2);

	/* A message that waits for its receiver. */
	expect(t, send_to(&a, from, 10, CONTEXT(4)), 0);
	expect(t, send_to(&a, from, 10, CONTEXT(5)), 0);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(4)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(4), SENT, KFI_ECANCELED, 0, 0);
	expect(t, kfi_recv(b.ep, to, 10, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 10);
	expect_completion(t, a.tx_cq, CONTEXT(5), SENT, 10);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(4)), -KFI_ENOENT);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(5)), -KFI_ENOENT);
	expect_nothing(t, a.tx_cq);
	expect_count(t, a.cntr[COUNT_SEND], 1, 1);

	/* Many with one context are cancelled one by one, in order. */
	expect(t, kfi_recv(b.ep, to, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(6)), 0);
	expect(t, kfi_recv(b.ep, to, 2, NULL, KFI_ADDR_UNSPEC, CONTEXT(6)), 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(6)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(6), RECEIVED, KFI_ECANCELED, 0, 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(6)), 0);
	expect_failure(t, b.rx_cq, CONTEXT(6), RECEIVED, KFI_ECANCELED, 0, 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(6)), -KFI_ENOENT);
	pair_close(t, &a, &b);
}

/* A fenced operation begins when all before it have ended. */
static void fence(struct test *t)
{
	struct kfi_rma_iov rma_iov = { .addr = 0, .len = 8, .key = 1 };
	u64 from = 1, second = 2, target = 0, to = 0;
	struct kvec iov = { &second, 8 };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.rma_iov = &rma_iov,
		.rma_iov_count = 1,
		.context = CONTEXT(2),
	};
	struct kfid_mr *mr;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	mr = region_open(t, &b, &target, 8, KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto close;
	msg.addr = a.peer;
	/* The message waits for a receive, and so does what follows the fence. */
	expect(t, send_to(&a, &from, 8, CONTEXT(1)), 0);
	expect(t, kfi_writemsg(a.ep, &msg, KFI_FENCE), 0);
	expect(t, kfi_write(a.ep, &from, 8, NULL, a.peer, 0, 1, CONTEXT(3)), 0);
	msleep(20);
	expect(t, target, 0);
	expect_nothing(t, a.tx_cq);
	expect(t, kfi_recv(b.ep, &to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(4)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 8);
	expect_completion(t, a.tx_cq, CONTEXT(2), WRITTEN, 8);
	expect_completion(t, a.tx_cq, CONTEXT(3), WRITTEN, 8);
	expect_completion(t, b.rx_cq, CONTEXT(4), RECEIVED, 8);
	expect(t, target, 1);

	/* One that waits can be cancelled, and the others go on. */
	expect(t, send_to(&a, &from, 8, CONTEXT(1)), 0);
	expect(t, kfi_writemsg(a.ep, &msg, KFI_FENCE), 0);
	expect(t, kfi_write(a.ep, &from, 8, NULL, a.peer, 0, 1, CONTEXT(3)), 0);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(2)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(2), WRITTEN, KFI_ECANCELED, 0, 0);
	expect_completion(t, a.tx_cq, CONTEXT(3), WRITTEN, 8);
	expect(t, kfi_writemsg(a.ep, &msg, KFI_FENCE), 0);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_ECANCELED, 0, 0);
	expect_completion(t, a.tx_cq, CONTEXT(2), WRITTEN, 8);
	expect(t, target, 2);
	expect_nothing(t, a.tx_cq);
	close_fid(t, &mr->fid);
close:
	pair_close(t, &a, &b);
}

/*
 * Several messages to a buffer that is posted when a counter says so, and
 * cancelled while the queue is full.
 */
static void multi_receive_deferred(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 4 };
	u8 from[8] = { 1 }, to[100] = {}, filler[8];
	struct kvec iov = { to, sizeof(to) };
	struct kfi_op_msg op = {
		.msg = {
			.type = KFI_KVEC,
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = KFI_ADDR_UNSPEC,
			.context = CONTEXT(1),
		},
		.flags = KFI_MULTI_RECV | KFI_COMPLETION,
	};
	struct kfi_deferred_work work = {
		.threshold = 1,
		.op_type = KFI_OP_RECV,
		.op.msg = &op,
	};
	enum { POSTED = 10 };
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, &setup))
		return;
	op.ep = b.ep;
	work.triggering_cntr = b.cntr[COUNT_SEND];
	expect(t, kfi_control(&b.domain->fid, KFI_QUEUE_WORK, &work), 0);
	expect(t, kfi_cntr_add(b.cntr[COUNT_SEND], 1), 0);
	expect(t, send_to(&a, from, 8, CONTEXT(2)), 0);
	expect_part(t, &b, CONTEXT(1), RECEIVED, 8, to);
	expect_completion(t, a.tx_cq, CONTEXT(2), SENT, 8);
	for (i = 0; i < POSTED; i++)
		expect(t, kfi_trecv(b.ep, filler, 8, NULL, KFI_ADDR_UNSPEC, i, 0, CONTEXT(3)), 0);
	for (i = 0; i < POSTED; i++)
		expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, i, CONTEXT(4)), 0);
	for (i = 0; i < 5; i++)
		expect_completion(t, a.tx_cq, CONTEXT(4), TSENT, 8);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), 0);
	for (i = 0; i < 5; i++)
		expect_completion(t, b.rx_cq, CONTEXT(3), TRECEIVED, 8);
	expect_failure(t, b.rx_cq, CONTEXT(1), RECEIVED, KFI_ECANCELED, 0, 0);
	for (i = 5; i < POSTED; i++) {
		expect_completion(t, a.tx_cq, CONTEXT(4), TSENT, 8);
		expect_completion(t, b.rx_cq, CONTEXT(3), TRECEIVED, 8);
	}
	expect_nothing(t, b.rx_cq);
	expect_count(t, b.cntr[COUNT_RECV], POSTED + 1, 1);
	pair_close(t, &a, &b);
}

/*
 * Two endpoints share receives. Messages for the one whose queue is full wait,
 * in order; those for the other do not.
 */
static void shared_room(struct test *t)
{
	const struct setup usual = {};
	enum { COUNT = 10 };
	struct setup small = { .rx_cq_size = 4 }, large = {};
	struct kfid_ep *srx = NULL;
	u8 from[COUNT + 1], to[2 * COUNT] = {};
	struct kfi_cq_tagged_entry entry;
	kfi_addr_t other;
	struct end a, b, c;
	unsigned int i;

	if (!expect(t, kfi_srx_context(nic_domain[0], NULL, &srx, NULL), 0))
		return;
	small.srx = srx;
	large.srx = srx;
	for (i = 0; i <= COUNT; i++)
		from[i] = i;
	if (!pair_open(t, &b, &a, &small, &usual))
		goto close_srx;
	if (!end_open(t, &c, 0, &large))
		goto close;
	if (!end_knows(t, &a, c.ep, &other))
		goto close_third;
	/* All of them wait, the one for the other endpoint behind the others. */
	for (i = 0; i < COUNT; i++)
		expect(t, send_to(&a, from + i, 1, CONTEXT(1)), 0);
	expect(t, kfi_send(a.ep, from + COUNT, 1, NULL, other, CONTEXT(2)), 0);
	for (i = 0; i < 2 * COUNT; i++) {
		expect(t, kfi_recv(srx, to + i, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
		/* The fifth entry lies behind the ring. */
		if (i == 4)
			expect_count(t, b.cntr[COUNT_RECV], 5, 0);
	}
	if (await(t, c.rx_cq, &entry, NULL)) {
		expect(t, entry.flags, RECEIVED);
		i = entry.op_context - CONTEXT(0);
		if (expect_true(t, i < 2 * COUNT))
			expect(t, to[i], COUNT);
	}
	expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 1);
	/* And so does one that comes now, whoever sends it. */
	expect(t, kfi_send(a.ep, from + COUNT, 1, NULL, other, CONTEXT(2)), 0);
	if (await(t, c.rx_cq, &entry, NULL))
		expect(t, entry.flags, RECEIVED);
	/* Messages of the first one that have waited go on waiting, but for the one behind the ring. */
	expect_count(t, b.cntr[COUNT_RECV], 5, 0);
	for (i = 0; i < COUNT && !t->failed; i++) {
		unsigned long at;

		if (!await(t, b.rx_cq, &entry, NULL))
			break;
		at = entry.op_context - CONTEXT(0);
		if (expect_true(t, at < 2 * COUNT))
			expect(t, to[at], i);
	}
	expect_nothing(t, b.rx_cq);
	expect_nothing(t, c.rx_cq);
	expect_count(t, b.cntr[COUNT_RECV], COUNT, 0);
	expect_count(t, a.cntr[COUNT_SEND], COUNT + 2, 0);
close_third:
	end_close(t, &c);
close:
	pair_close(t, &b, &a);
close_srx:
	close_fid(t, &srx->fid);
}

/* Entries have nothing that the reader knows, or that there is not. */
static void entries(struct test *t)
{
	struct kfi_cq_tagged_entry entry;
	struct end a, b;
	u8 from[8] = { 1 }, to[8];

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(2)), 0);
	if (await(t, b.rx_cq, &entry, NULL)) {
		expect(t, entry.flags, RECEIVED);
		expect(t, entry.len, 8);
		expect_true(t, !entry.buf);
		expect(t, entry.tag, 0);
		expect(t, entry.data, 0);
	}
	expect(t, kfi_trecv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(1)), 0);
	expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, 5, CONTEXT(2)), 0);
	if (await(t, b.rx_cq, &entry, NULL)) {
		expect(t, entry.flags, TRECEIVED);
		expect(t, entry.len, 8);
		expect_true(t, !entry.buf);
		expect(t, entry.tag, 5);
		expect(t, entry.data, 0);
	}
	while (!t->failed && kfi_cq_read(a.tx_cq, &entry, 1) == 1) {
		expect(t, entry.len, 0);
		expect_true(t, !entry.buf);
		expect(t, entry.tag, 0);
		expect(t, entry.data, 0);
	}
	pair_close(t, &a, &b);
}

const struct test_case receive_tests[] = {
	{ "receive/entries", "", entries },
	{ "receive/multi", "", multi_receive },
	{ "receive/multi-many", "", multi_receive_many },
	{ "receive/multi-tagged", "", tagged_multi_receive },
	{ "receive/multi-by-default", "", multi_receive_by_default },
	{ "receive/multi-deferred", "R-DWQ-11", multi_receive_deferred },
	{ "receive/shared-room", "", shared_room },
	{ "receive/case-5-selective", "R-CNTR-6", selective },
	{ "receive/case-5-selective-by-default", "R-CNTR-6", selective_by_default },
	{ "receive/directed", "", directed },
	{ "receive/sources", "", sources },
	{ "receive/peek", "", peek },
	{ "receive/peek-untold", "", peek_untold },
	{ "receive/peek-selective", "", peek_selective },
	{ "receive/tag-match", "", tag_match },
	{ "receive/case-28-cancel", "R-TRIG-26", cancels },
	{ "transmit/fence", "", fence },
	{}
};
