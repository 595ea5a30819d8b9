// SPDX-License-Identifier: GPL-2.0
/*
 * What may be closed when.
 */
#include "test.h"

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

const struct test_case close_tests[] = {
	{ "close/case-71-dependents", "R-CLOSE-1", dependents },
	{ "close/case-71-thread-waiting", "R-CLOSE-2", thread_waiting },
	{ "close/failed-open-holds-nothing", "R-CNTR-9", failed_open_holds_nothing },
	{}
};
