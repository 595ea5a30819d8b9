// SPDX-License-Identifier: GPL-2.0
/*
 * Large queues: they take what they are asked to, and cost memory when they are
 * used.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "transfer.h"

#define LARGE_CQ	(1UL << 17)
#define LARGE_CONTEXT	(1UL << 16)

/* Threads that have each a completion under way while room is looked for. */
#define UNDER_WAY	4

/* Sends until the queue of the sender, which nobody reads, takes no more. */
static unsigned int send_until_full(struct test *t, struct end *a, struct end *b,
				    unsigned int limit)
{
	u64 before = kfi_cntr_read(a->cntr[COUNT_SEND]);
	unsigned int sent;
	u8 buf[8] = {};

	for (sent = 0; sent < limit; sent++) {
		int ret;

		expect(t, kfi_recv(b->ep, buf, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		ret = kfi_send(a->ep, buf, 8, NULL, a->peer, CONTEXT(sent));
		if (ret) {
			expect(t, ret, -KFI_EAGAIN);
			expect(t, kfi_cancel(&b->ep->fid, CONTEXT(1)), 0);
			expect_failure(t, b->rx_cq, CONTEXT(1), RECEIVED, KFI_ECANCELED, 0, 0);
			break;
		}
		expect_completion(t, b->rx_cq, CONTEXT(1), RECEIVED, 8);
		/* So it is in the queue, or just about to be. */
		expect_count(t, a->cntr[COUNT_SEND], before + sent + 1, 0);
		if (t->failed)
			break;
	}
	return sent;
}

/* As many entries as were asked for, in order, and not many more. */
static void large_queue(struct test *t)
{
	static const size_t sizes[] = { 1000, 1500, 3000 };
	unsigned int i, j, sent;
	struct end a, b;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		const struct setup setup = { .tx_cq_size = sizes[i] };

		if (!pair_open(t, &a, &b, &setup, NULL))
			return;
		sent = send_until_full(t, &a, &b, 2 * sizes[i]);
		expect_true(t, sent >= sizes[i] && sent <= sizes[i] + UNDER_WAY);
		/* It goes on as soon as there is room. */
		for (j = 0; j < sent; j++) {
			expect_completion(t, a.tx_cq, CONTEXT(j), SENT, 0);
			if (t->failed)
				break;
			if (j == sent / 2)
				expect_true(t, send_until_full(t, &a, &b, sizes[i] / 4) ==
					       sizes[i] / 4);
		}
		for (j = 0; j < sizes[i] / 4 && !t->failed; j++)
			expect_completion(t, a.tx_cq, CONTEXT(j), SENT, 0);
		expect_nothing(t, a.tx_cq);
		say(t, "size %zu, %u sent", sizes[i], sent);
		pair_close(t, &a, &b);
	}
}

/* The largest queues and contexts cost little while nothing is in them. */
static void costs_when_used(struct test *t)
{
	const struct setup setup = {
		.tx_cq_size = LARGE_CQ,
		.rx_cq_size = LARGE_CQ,
		.tx_size = LARGE_CONTEXT,
		.rx_size = LARGE_CONTEXT,
		.no_counters = true,
	};
	struct end ends[8] = {};
	long before, after;
	unsigned int i;

	before = si_mem_available();
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		if (!end_open(t, &ends[i], 0, &setup))
			break;
	}
	after = si_mem_available();
	/* A byte for each of what they can take would be 3 MiB for each of them. */
	expect_true(t, before - after < (long)(16UL << (20 - PAGE_SHIFT)));
	say(t, "%ld pages before, %ld after", before, after);
	while (i--)
		end_close(t, &ends[i]);
}

/* Reads as many entries, which are those of the operations from 0 on, in order. */
static void read_all(struct test *t, struct kfid_cq *cq, unsigned int count, u64 flags)
{
	static struct kfi_cq_tagged_entry entries[64];
	unsigned int i, n = 0;

	while (n < count && !t->failed) {
		ssize_t ret = kfi_cq_sread(cq, entries, min(count - n, 64U), NULL, SOON);

		if (!expect_true(t, ret > 0))
			break;
		for (i = 0; i < ret; i++, n++) {
			expect_true(t, entries[i].op_context == CONTEXT(n));
			expect(t, entries[i].flags, flags);
		}
		cond_resched();
	}
	expect(t, n, count);
}

/*
 * Queues of the largest sizes, each filled with as much as fits: receives,
 * completions of both sides, and operations that are under way.
 */
static void to_the_limits(struct test *t)
{
	/* Fewer where each access to memory is emulated and checked, as it would take long. */
	enum { DEPTH = IS_ENABLED(CONFIG_KASAN) ? 1 << 10 : 1 << 16 };
	const struct setup setup_a = { .tx_cq_size = 2 * DEPTH, .tx_size = DEPTH };
	const struct setup setup_b = { .rx_cq_size = 2 * DEPTH, .rx_size = DEPTH };
	unsigned int i, round;
	static u8 buf[8];
	struct end a, b;

	if (!pair_open(t, &a, &b, &setup_a, &setup_b))
		return;
	for (round = 0; round < 2 && !t->failed; round++) {
		for (i = 0; i < DEPTH && !t->failed; i++) {
			expect(t, kfi_recv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC,
					   CONTEXT(round * DEPTH + i)), 0);
			cond_resched();
		}
		expect(t, kfi_recv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, NULL), -KFI_EAGAIN);
		for (i = 0; i < DEPTH && !t->failed; i++) {
			expect(t, kfi_send(a.ep, buf, 8, NULL, a.peer, CONTEXT(round * DEPTH + i)),
			       0);
			cond_resched();
		}
		expect_count(t, b.cntr[COUNT_RECV], (round + 1) * DEPTH, 0);
		expect_count(t, a.cntr[COUNT_SEND], (round + 1) * DEPTH, 0);
	}
	/* One more lies behind each of them, and then nothing more comes. */
	expect(t, kfi_recv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(2 * DEPTH)), 0);
	expect(t, kfi_send(a.ep, buf, 8, NULL, a.peer, CONTEXT(2 * DEPTH)), 0);
	expect_count(t, b.cntr[COUNT_RECV], 2 * DEPTH + 1, 0);
	expect_count(t, a.cntr[COUNT_SEND], 2 * DEPTH + 1, 0);
	expect(t, kfi_recv(b.ep, buf, 8, NULL, KFI_ADDR_UNSPEC, NULL), -KFI_EAGAIN);
	expect(t, kfi_send(a.ep, buf, 8, NULL, a.peer, NULL), -KFI_EAGAIN);
	read_all(t, a.tx_cq, 2 * DEPTH + 1, SENT);
	expect_nothing(t, a.tx_cq);
	/* As many may be under way, which wait for the reader over there. */
	for (i = 0; i < DEPTH && !t->failed; i++) {
		expect(t, kfi_send(a.ep, buf, 8, NULL, a.peer, CONTEXT(i)), 0);
		cond_resched();
	}
	expect(t, kfi_send(a.ep, buf, 8, NULL, a.peer, NULL), -KFI_EAGAIN);
	for (i = DEPTH; i-- > DEPTH - 10 && !t->failed;) {
		expect(t, kfi_cancel(&a.ep->fid, CONTEXT(i)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(i), SENT, KFI_ECANCELED, 0, 0);
	}
	expect(t, kfi_send(a.ep, buf, 8, NULL, a.peer, NULL), 0);
	read_all(t, b.rx_cq, 2 * DEPTH + 1, RECEIVED);
	expect_nothing(t, b.rx_cq);
	/* The rest is given up, wherever it is by now. */
	pair_close(t, &a, &b);
}

const struct test_case room_tests[] = {
	{ "room/to-the-limits", "", to_the_limits },
	{ "room/large-queue", "", large_queue },
	{ "room/costs-when-used", "", costs_when_used },
	{}
};
