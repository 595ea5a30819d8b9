// SPDX-License-Identifier: GPL-2.0
/*
 * The simplest of everything.
 */
#include "transfer.h"

static void one_message(struct test *t)
{
	struct area from, to;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (area_alloc(t, &from, MEM_KMALLOC, 0, 100) &&
	    area_alloc(t, &to, MEM_KMALLOC, 0, 100)) {
		area_fill(&from, 1);
		expect(t, kfi_recv(b.ep, to.data, 100, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		expect(t, kfi_send(a.ep, from.data, 100, NULL, a.peer, CONTEXT(2)), 0);
		expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 100);
		expect_completion(t, a.tx_cq, CONTEXT(2), SENT, 100);
		area_has(t, &to, 1, 0, 100, 0);
		expect_count(t, a.cntr[COUNT_SEND], 1, 0);
		expect_count(t, b.cntr[COUNT_RECV], 1, 0);
		area_free(&from);
		area_free(&to);
	}
	pair_close(t, &a, &b);
}

static void one_late_receive(struct test *t)
{
	struct area from, to;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (area_alloc(t, &from, MEM_KMALLOC, 0, 100) &&
	    area_alloc(t, &to, MEM_KMALLOC, 0, 100)) {
		area_fill(&from, 1);
		expect(t, kfi_send(a.ep, from.data, 100, NULL, a.peer, CONTEXT(2)), 0);
		expect_nothing(t, a.tx_cq);
		expect_nothing(t, b.rx_cq);
		expect(t, kfi_recv(b.ep, to.data, 100, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 100);
		expect_completion(t, a.tx_cq, CONTEXT(2), SENT, 100);
		area_has(t, &to, 1, 0, 100, 0);
		area_free(&from);
		area_free(&to);
	}
	pair_close(t, &a, &b);
}

static void one_write(struct test *t)
{
	struct area from, to;
	struct kfid_mr *mr;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (area_alloc(t, &from, MEM_KMALLOC, 0, 100) &&
	    area_alloc(t, &to, MEM_KMALLOC, 0, 100)) {
		area_fill(&from, 1);
		mr = region_open(t, &b, to.data, 100, KFI_REMOTE_WRITE, 7);
		if (mr) {
			expect(t, kfi_mr_key(mr), 7);
			expect(t, kfi_write(a.ep, from.data, 100, NULL, a.peer, 0, 7,
					    CONTEXT(2)), 0);
			expect_completion(t, a.tx_cq, CONTEXT(2), WRITTEN, 100);
			area_has(t, &to, 1, 0, 100, 0);
			expect_nothing(t, b.rx_cq);
			expect_count(t, a.cntr[COUNT_WRITE], 1, 0);
			expect_count(t, b.cntr[COUNT_REMOTE_WRITE], 1, 0);
			close_fid(t, &mr->fid);
		}
		area_free(&from);
		area_free(&to);
	}
	pair_close(t, &a, &b);
}

const struct test_case basic_tests[] = {
	{ "transfer/one-message", "R-CNTR-1", one_message },
	{ "transfer/one-late-receive", "R-CNTR-1", one_late_receive },
	{ "transfer/one-write", "R-CNTR-7", one_write },
	{}
};
