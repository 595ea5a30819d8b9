// SPDX-License-Identifier: GPL-2.0
/*
 * Which objects may be closed when.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "consumer.h"

static void dependents(struct test *t)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfid_fabric *fabric = NULL;
	struct kfid_domain *domain = NULL;
	struct kfid_cntr *cntr = NULL;

	if (!expect(t, kfi_fabric(t->info->fabric_attr, &fabric, NULL), 0))
		return;
	if (!expect(t, kfi_domain(fabric, t->info, &domain, NULL), 0))
		goto close_fabric;
	expect(t, kfi_close(&fabric->fid), -KFI_EBUSY);
	if (!expect(t, kfi_cntr_open(domain, &attr, &cntr, NULL), 0))
		goto close_domain;
	expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
	expect(t, kfi_close(&fabric->fid), -KFI_EBUSY);

	/* A close that failed has changed nothing. */
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect(t, kfi_cntr_wait(cntr, 1, 0), 0);

	close_fid(t, &cntr->fid);
close_domain:
	close_fid(t, &domain->fid);
close_fabric:
	close_fid(t, &fabric->fid);
}

static void thread_waiting(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiter;
	int ret;

	if (!cntr)
		return;
	if (waiter_start(t, &waiter, cntr, 1, SOON)) {
		ret = kfi_close(&cntr->fid);
		if (!expect(t, ret, -KFI_EBUSY) && !ret) {
			/* It is gone: to wake the thread would be worse. */
			waiter_finish(&waiter);
			return;
		}
		expect_true(t, waiter_is_waiting(&waiter));
		expect(t, kfi_cntr_add(cntr, 1), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void failed_open_holds_nothing(struct test *t)
{
	struct kfi_cntr_attr attr = { .flags = 1 };
	struct kfid_domain *domain = NULL;
	struct kfid_cntr *cntr = NULL;

	if (!expect(t, kfi_domain(t->fabric, t->info, &domain, NULL), 0))
		return;
	expect(t, kfi_cntr_open(domain, &attr, &cntr, NULL), -KFI_EINVAL);
	close_fid(t, &domain->fid);
}

/* Returns how many expedited grace periods there have been, or about as many. */
static unsigned long grace_periods(void)
{
#ifdef CONFIG_TINY_RCU
	return 0;
#else
	struct rcu_gp_seq seq;

	get_state_synchronize_rcu_full(&seq);
	/* Two bits of it are for what state one is in. */
	return seq.exp / 4;
#endif
}

/* Closing many counters does not interrupt all CPUs for each of them. */
static void many_counters(struct test *t)
{
	/* Fewer than may be freed later at a time: on a busy machine that is all of them. */
	enum { MANY = 400 };
	struct kfid_cntr **cntrs = kcalloc(MANY, sizeof(*cntrs), GFP_KERNEL);
	struct test others = {};
	unsigned long before;
	unsigned int i, n;

	if (!expect_true(t, cntrs))
		return;
	if (!open_others(t, &others))
		goto free;
	for (n = 0; n < MANY; n++) {
		cntrs[n] = open_cntr(&others, KFI_WAIT_UNSPEC);
		if (!expect_true(t, cntrs[n]))
			break;
	}
	before = grace_periods();
	for (i = 0; i < n; i++) {
		/* Its use ends right before that. */
		expect(t, kfi_cntr_add(cntrs[i], 1), 0);
		close_fid(t, &cntrs[i]->fid);
	}
	/* Others may have asked for some. */
	expect_true(t, grace_periods() - before < MANY / 2);
	/* Nor does the memory of counters keep what they were opened in. */
	close_others(t, &others);
free:
	kfree(cntrs);
}

const struct test_case close_tests[] = {
	{ "close/case-71-dependents", "R-CLOSE-1", dependents },
	{ "close/case-71-thread-waiting", "R-CLOSE-2", thread_waiting },
	{ "close/many-counters", "R-CLOSE-3", many_counters },
	{ "close/failed-open-holds-nothing", "R-CNTR-9", failed_open_holds_nothing },
	{}
};
