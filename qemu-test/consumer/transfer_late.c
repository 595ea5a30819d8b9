// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses of a transmit context to regions of peers that the work queue carries
 * out when it is their turn: behind as much else of that context as one likes.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "transfer.h"

enum {
	/* Writes that take long, each of some PIECES with all the same memory. */
	PIECES = 256, PIECE = 1 << 20, BUSY = 1024,
	/* Bytes of a write that is too large to be carried out at once. */
	LATE = 20 << 10,
	/* Operations that wait behind a busy context, at a time. */
	MANY = 2048,
	/* Of which a receiver is told while nobody reads: those on their way do not look for room. */
	FEW = 200,
	/* So often that what stays would be seen, where that is looked for. */
	ROUNDS = IS_ENABLED(CONFIG_KASAN) ? 2 : 20,
};

#define REMOTE_WRITTEN_DATA (KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA)

/**
 * struct busy - a transmit context that has so much to do that what is posted
 *   later does not have its turn
 * @a: its endpoint, which is told of what has failed and of what asks for it
 * @target: endpoint that it writes to
 * @mr: region there, with key 1
 * @from: what it writes
 * @to: memory of @mr
 * @here: all that a write writes
 * @there: where that goes
 */
struct busy {
	struct end a;
	struct end target;
	struct kfid_mr *mr;
	u8 *from;
	u8 *to;
	struct kvec here[PIECES];
	struct kfi_rma_iov there[PIECES];
};

static void busy_close(struct test *t, struct busy *busy)
{
	/* The other end first: what it was to do ends without it. */
	end_close(t, &busy->a);
	if (busy->mr)
		close_fid(t, &busy->mr->fid);
	end_close(t, &busy->target);
	vfree(busy->from);
	vfree(busy->to);
	kfree(busy);
}

/* A write of all there is, to whom it says. */
static ssize_t write_long(struct busy *busy, kfi_addr_t peer, u64 data, u64 flags, void *context)
{
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC, .msg_iov = busy->here, .iov_count = PIECES,
		.addr = peer, .rma_iov = busy->there, .rma_iov_count = PIECES,
		.data = data, .context = context,
	};

	return kfi_writemsg(busy->a.ep, &msg, flags);
}

static struct busy *busy_open(struct test *t)
{
	static const struct setup setup = {
		.tx_cq_size = 2 * (MANY + BUSY), .tx_size = 2 * (MANY + BUSY),
		.tx_bind = KFI_SELECTIVE_COMPLETION,
	};
	struct busy *busy = kzalloc(sizeof(*busy), GFP_KERNEL);
	unsigned int i;

	if (!expect_true(t, busy))
		return NULL;
	busy->from = vzalloc(PIECE);
	busy->to = vzalloc(PIECE);
	if (!expect_true(t, busy->from && busy->to) ||
	    !pair_open(t, &busy->a, &busy->target, &setup, NULL))
		goto close;
	busy->mr = region_open(t, &busy->target, busy->to, PIECE, KFI_REMOTE_WRITE, 1);
	if (!busy->mr)
		goto close;
	for (i = 0; i < PIECES; i++) {
		busy->here[i] = (struct kvec) { .iov_base = busy->from, .iov_len = PIECE };
		busy->there[i] = (struct kfi_rma_iov) { .len = PIECE, .key = 1 };
	}
	for (i = 0; i < BUSY && !t->failed; i++)
		expect(t, write_long(busy, busy->a.peer, 0, 0, CONTEXT(0)), 0);
	return busy;
close:
	busy_close(t, busy);
	return NULL;
}

/* Lets all that waits have its turn. */
static void busy_end(struct test *t, struct busy *busy)
{
	unsigned int i, cancelled;

	for (cancelled = 0; cancelled < BUSY; cancelled++) {
		if (kfi_cancel(&busy->a.ep->fid, CONTEXT(0)))
			break;
	}
	for (i = 0; i < cancelled && !t->failed; i++)
		expect_failure(t, busy->a.tx_cq, CONTEXT(0), WRITTEN, KFI_ECANCELED, 0, 0);
}

/* Not compared where freed memory is kept for a time, to find who uses it. */
static void expect_no_less(struct test *t, long before)
{
	long after = si_mem_available();

	if (!IS_ENABLED(CONFIG_KASAN))
		expect_true(t, before - after < (long)(12UL << (20 - PAGE_SHIFT)));
	say(t, "%ld pages before, %ld after", before, after);
}

/* Nothing is left of what was cancelled, though its target is not there any more. */
static void cancelled_without_target(struct test *t)
{
	struct busy *busy = busy_open(t);
	unsigned int i, round;
	long before = 0;

	if (!busy)
		return;
	for (round = 0; round < ROUNDS && !t->failed; round++) {
		struct end target;
		kfi_addr_t addr;

		if (!end_open(t, &target, 1, NULL))
			break;
		if (end_knows(t, &busy->a, target.ep, &addr)) {
			for (i = 0; i < MANY && !t->failed; i++)
				expect(t, kfi_write(busy->a.ep, busy->from, LATE, NULL, addr, 0, 7,
						    CONTEXT(1)), 0);
		}
		end_close(t, &target);
		for (i = 0; i < MANY && !t->failed; i++) {
			expect(t, kfi_cancel(&busy->a.ep->fid, CONTEXT(1)), 0);
			expect_failure(t, busy->a.tx_cq, CONTEXT(1), WRITTEN, KFI_ECANCELED, 0, 0);
		}
		expect_nothing(t, busy->a.tx_cq);
		if (!round)
			before = si_mem_available();
	}
	expect_no_less(t, before);
	busy_close(t, busy);
}

/* A write that waits for its turn keeps nothing of a target that is closed, and is refused then. */
static void target_closed(struct test *t)
{
	enum { NODES = 10, PORTS = 4096 };
	struct busy *busy = busy_open(t);
	unsigned int i, round;
	long before = 0;

	if (!busy)
		return;
	for (round = 0; round < ROUNDS && !t->failed; round++) {
		struct setup setup = {};
		struct end target;
		kfi_addr_t addr;

		if (!expect(t, kfi_domain(t->fabric, nic_info[1], &setup.domain, NULL), 0))
			break;
		if (end_open(t, &target, 1, &setup)) {
			/* Where it would look for whoever has written. */
			expect(t, kfi_av_insertsym(target.av, "0x0", NODES, "0", PORTS, NULL, 0,
						   NULL), NODES * PORTS);
			if (end_knows(t, &busy->a, target.ep, &addr))
				expect(t, kfi_write(busy->a.ep, busy->from, LATE, NULL, addr, 0, 7,
						    CONTEXT(1)), 0);
			end_close(t, &target);
		}
		close_fid(t, &setup.domain->fid);
		if (!round)
			before = si_mem_available();
	}
	expect_no_less(t, before);
	busy_end(t, busy);
	for (i = 0; i < round && !t->failed; i++)
		expect_failure(t, busy->a.tx_cq, CONTEXT(1), WRITTEN, KFI_EHOSTUNREACH, 0, 0);
	expect_nothing(t, busy->a.tx_cq);
	busy_close(t, busy);
}

/* Nor does it find another one that has the same address by then. */
static void another_at_the_address(struct test *t)
{
	struct busy *busy = busy_open(t);
	struct kfid_mr *mr = NULL;
	struct setup setup = {};
	struct end target;
	u8 name[8], *to;
	size_t len = 8;
	kfi_addr_t addr;

	if (!busy)
		return;
	to = vzalloc(LATE);
	if (!expect_true(t, to) || !end_open(t, &target, 1, NULL))
		goto free;
	memset(busy->from, 1, LATE);
	mr = region_open(t, &target, to, LATE, KFI_REMOTE_WRITE, 2);
	expect(t, kfi_getname(&target.ep->fid, name, &len), 0);
	if (!mr || !end_knows(t, &busy->a, target.ep, &addr))
		goto close;
	expect(t, kfi_write(busy->a.ep, busy->from, LATE, NULL, addr, 0, 2, CONTEXT(1)), 0);
	end_close(t, &target);
	setup.name = name;
	if (!end_open(t, &target, 1, &setup))
		goto close_mr;
	busy_end(t, busy);
	expect_failure(t, busy->a.tx_cq, CONTEXT(1), WRITTEN, KFI_EHOSTUNREACH, 0, 0);
	expect_true(t, !memchr(to, 1, LATE));
	/* It is there for what comes now. */
	expect(t, kfi_write(busy->a.ep, busy->from, LATE, NULL, addr, 0, 2, CONTEXT(2)), 0);
	expect_count(t, target.cntr[COUNT_REMOTE_WRITE], 1, 0);
	expect(t, memcmp(to, busy->from, LATE), 0);
close:
	end_close(t, &target);
close_mr:
	if (mr)
		close_fid(t, &mr->fid);
free:
	busy_close(t, busy);
	vfree(to);
}

/*
 * A write that nobody would have been told of when it arrived waits for room like
 * any other if it is to be told when it is its turn.
 */
static void told_since(struct test *t)
{
	const struct setup setup = { .rx_cq_size = 8 };
	struct busy *busy = busy_open(t);
	struct kfi_cq_tagged_entry entry;
	struct kfid_mr *mr = NULL;
	struct end target;
	unsigned int i;
	kfi_addr_t addr;
	u8 *to;

	if (!busy)
		return;
	to = vzalloc(LATE);
	if (!expect_true(t, to) || !end_open(t, &target, 1, &setup))
		goto free;
	if (!end_knows(t, &busy->a, target.ep, &addr))
		goto close;
	/* There is no such region yet. */
	for (i = 0; i < MANY && !t->failed; i++)
		expect(t, kfi_writedata(busy->a.ep, busy->from, LATE, NULL, i, addr, 0, 2,
					CONTEXT(1)), 0);
	mr = region_open(t, &target, to, LATE, KFI_REMOTE_WRITE, 2);
	expect(t, write_long(busy, busy->a.peer, 0, KFI_COMPLETION, CONTEXT(2)), 0);
	busy_end(t, busy);
	/* All before that have had their turn. */
	expect_completion(t, busy->a.tx_cq, CONTEXT(2), WRITTEN, (size_t)PIECES * PIECE);
	expect_true(t, kfi_cntr_read(target.cntr[COUNT_REMOTE_WRITE]) < FEW);
	/* One of those that wait can be cancelled. */
	expect(t, kfi_cancel(&busy->a.ep->fid, CONTEXT(1)), 0);
	expect_failure(t, busy->a.tx_cq, CONTEXT(1), WRITTEN, KFI_ECANCELED, 0, 0);
	for (i = 0; i < MANY - 1 && !t->failed; i++) {
		if (await(t, target.rx_cq, &entry, NULL))
			expect(t, entry.flags, REMOTE_WRITTEN_DATA);
	}
	expect_count(t, target.cntr[COUNT_REMOTE_WRITE], MANY - 1, 0);
	expect_nothing(t, target.rx_cq);
	expect_nothing(t, busy->a.tx_cq);
close:
	if (mr)
		close_fid(t, &mr->fid);
	end_close(t, &target);
free:
	busy_close(t, busy);
	vfree(to);
}

/*
 * A target that is told of what a busy context has done to it does not wait for
 * what that does to others, nor does anybody who writes to the target.
 */
static void told_meanwhile(struct test *t)
{
	enum { TOLD = 100 };
	const struct setup setup = { .rx_cq_size = 2 * TOLD };
	struct busy *busy = busy_open(t);
	struct kfid_mr *mr = NULL;
	struct end a, b;
	unsigned int i;
	kfi_addr_t addr;
	u8 *to, byte = 7;

	if (!busy)
		return;
	to = vzalloc(LATE);
	if (!expect_true(t, to) || !pair_open(t, &a, &b, NULL, &setup))
		goto free;
	mr = region_open(t, &b, to, LATE, KFI_REMOTE_WRITE, 2);
	if (!mr || !end_knows(t, &busy->a, b.ep, &addr))
		goto close;
	expect(t, kfi_recv(b.ep, to, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(3)), 0);
	for (i = 0; i < TOLD && !t->failed; i++)
		expect(t, kfi_writedata(busy->a.ep, busy->from, LATE, NULL, i, addr, 0, 2,
					CONTEXT(1)), 0);
	expect(t, kfi_send(a.ep, &byte, 1, NULL, a.peer, CONTEXT(4)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(4), SENT, 1);
	expect_count(t, b.cntr[COUNT_REMOTE_WRITE], TOLD, 0);
	/* The others are not done. */
	expect(t, kfi_cancel(&busy->a.ep->fid, CONTEXT(0)), 0);
	expect_failure(t, busy->a.tx_cq, CONTEXT(0), WRITTEN, KFI_ECANCELED, 0, 0);
close:
	if (mr)
		close_fid(t, &mr->fid);
	pair_close(t, &a, &b);
free:
	busy_close(t, busy);
	vfree(to);
}

/* Closed with such as are to be told: each ends once, and nothing is written any more. */
static void told_and_closed(struct test *t)
{
	enum { COUNT = 40 };
	struct busy *busy = busy_open(t);
	unsigned int i, done, refused;
	struct end target;
	kfi_addr_t addr;

	if (!busy)
		return;
	if (!end_open(t, &target, 1, NULL))
		goto free;
	/* The region of the other one, which is in the same domain. */
	if (!end_knows(t, &busy->a, target.ep, &addr))
		goto close;
	for (i = 0; i < COUNT && !t->failed; i++)
		expect(t, write_long(busy, addr, i, KFI_REMOTE_CQ_DATA | KFI_COMPLETION,
				     CONTEXT(1)), 0);
	close_fid(t, &target.ep->fid);
	target.ep = NULL;
	for (done = refused = 0; done + refused < COUNT && !t->failed;) {
		struct kfi_cq_tagged_entry entry;
		struct kfi_cq_err_entry error = {};
		ssize_t ret = kfi_cq_sread(busy->a.tx_cq, &entry, 1, NULL, SOON);

		if (ret == -KFI_EAVAIL && expect(t, kfi_cq_readerr(busy->a.tx_cq, &error, 0), 1)) {
			expect_true(t, error.op_context == CONTEXT(1));
			expect(t, error.err, KFI_EHOSTUNREACH);
			refused++;
		} else if (expect(t, ret, 1)) {
			expect_true(t, entry.op_context == CONTEXT(1));
			done++;
		}
	}
	expect_count(t, target.cntr[COUNT_REMOTE_WRITE], done, 0);
	say(t, "%u done, %u refused", done, refused);
close:
	end_close(t, &target);
free:
	busy_close(t, busy);
}

const struct test_case late_tests[] = {
	{ "waiting/late-cancelled-without-target", "R-TRIG-26", cancelled_without_target, true },
	{ "waiting/late-target-closed", "R-CLOSE-4", target_closed, true },
	{ "waiting/late-another-at-the-address", "", another_at_the_address, true },
	{ "waiting/late-told-since", "", told_since, true },
	{ "waiting/late-told-meanwhile", "", told_meanwhile, true },
	{ "waiting/late-told-and-closed", "R-CLOSE-4", told_and_closed, true },
	{}
};
