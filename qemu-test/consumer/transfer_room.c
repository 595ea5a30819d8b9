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

/* Sends until the queue of the sender, which nobody reads, takes no more. */
static unsigned int send_until_full(struct test *t, struct end *a, struct end *b,
				    unsigned int limit)
{
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
		expect_true(t, sent >= sizes[i] && sent <= sizes[i] + 1);
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

const struct test_case room_tests[] = {
	{ "room/large-queue", "", large_queue },
	{ "room/costs-when-used", "", costs_when_used },
	{}
};
