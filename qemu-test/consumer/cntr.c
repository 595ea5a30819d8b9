// SPDX-License-Identifier: GPL-2.0
/*
 * Counters: opening, values.
 */
#include <linux/limits.h>

#include "consumer.h"

static void opened(struct test *t)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfid_cntr *cntr = NULL;

	if (!expect(t, kfi_cntr_open(t->domain, &attr, &cntr, t), 0))
		return;
	expect(t, cntr->fid.fclass, KFI_CLASS_CNTR);
	expect_true(t, cntr->fid.context == t);
	expect(t, kfi_cntr_read(cntr), 0);
	expect(t, kfi_cntr_readerr(cntr), 0);
	close_fid(t, &cntr->fid);
}

static void null_attributes(struct test *t)
{
	struct kfid_cntr *cntr = NULL;

	if (!expect(t, kfi_cntr_open(t->domain, NULL, &cntr, NULL), 0))
		return;
	expect(t, kfi_cntr_add(cntr, 3), 0);
	expect(t, kfi_cntr_read(cntr), 3);
	/* As KFI_WAIT_UNSPEC: it can be waited for. */
	expect(t, kfi_cntr_wait(cntr, 3, 0), 0);
	expect(t, kfi_cntr_wait(cntr, 4, 0), -KFI_ETIMEDOUT);
	close_fid(t, &cntr->fid);
}

static void every_wait_object(struct test *t)
{
	static const enum kfi_wait_obj objects[] = {
		KFI_WAIT_NONE, KFI_WAIT_UNSPEC, KFI_WAIT_QUEUE,
	};
	struct kfid_cntr *cntr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		cntr = open_cntr(t, objects[i]);
		if (!cntr)
			return;
		expect(t, kfi_cntr_add(cntr, 2), 0);
		expect(t, kfi_cntr_adderr(cntr, 1), 0);
		expect(t, kfi_cntr_read(cntr), 2);
		expect(t, kfi_cntr_readerr(cntr), 1);
		close_fid(t, &cntr->fid);
	}
}

static void independent(struct test *t)
{
	struct kfid_cntr *cntrs[8];
	unsigned int i, opened;

	for (opened = 0; opened < ARRAY_SIZE(cntrs); opened++) {
		cntrs[opened] = open_cntr(t, KFI_WAIT_UNSPEC);
		if (!cntrs[opened])
			break;
	}
	for (i = 0; i < opened; i++) {
		expect(t, kfi_cntr_set(cntrs[i], i), 0);
		expect(t, kfi_cntr_seterr(cntrs[i], 2 * i), 0);
	}
	for (i = 0; i < opened; i++) {
		expect(t, kfi_cntr_add(cntrs[i], i), 0);
		expect(t, kfi_cntr_adderr(cntrs[i], i), 0);
	}
	for (i = 0; i < opened; i++) {
		expect(t, kfi_cntr_read(cntrs[i]), 2 * i);
		expect(t, kfi_cntr_readerr(cntrs[i]), 3 * i);
		close_fid(t, &cntrs[i]->fid);
	}
}

static void two_values(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_NONE);

	if (!cntr)
		return;
	expect(t, kfi_cntr_add(cntr, 7), 0);
	expect(t, kfi_cntr_readerr(cntr), 0);
	expect(t, kfi_cntr_adderr(cntr, 2), 0);
	expect(t, kfi_cntr_read(cntr), 7);
	expect(t, kfi_cntr_set(cntr, 100), 0);
	expect(t, kfi_cntr_readerr(cntr), 2);
	expect(t, kfi_cntr_seterr(cntr, 0), 0);
	expect(t, kfi_cntr_read(cntr), 100);
	expect(t, kfi_cntr_readerr(cntr), 0);
	/* Nothing added is nothing changed. */
	expect(t, kfi_cntr_add(cntr, 0), 0);
	expect(t, kfi_cntr_read(cntr), 100);
	close_fid(t, &cntr->fid);
}

static void values_64bit(struct test *t)
{
	static const u64 values[] = {
		0x7fffffff, 0x80000000, 0xabcdefab, 0xffffffff, 0x100000000,
		S64_MAX, (u64)S64_MAX + 1, U64_MAX - 1, U64_MAX,
	};
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	unsigned int i;

	if (!cntr)
		return;
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		expect(t, kfi_cntr_set(cntr, values[i]), 0);
		expect(t, kfi_cntr_read(cntr), values[i]);
		expect(t, kfi_cntr_seterr(cntr, values[i]), 0);
		expect(t, kfi_cntr_readerr(cntr), values[i]);
		expect(t, kfi_cntr_wait(cntr, values[i], 0), 0);
		expect(t, kfi_cntr_set(cntr, 0), 0);
		expect(t, kfi_cntr_add(cntr, values[i]), 0);
		expect(t, kfi_cntr_read(cntr), values[i]);
	}
	expect(t, kfi_cntr_set(cntr, 0xffffffff), 0);
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect(t, kfi_cntr_read(cntr), 0x100000000);
	/* Thresholds have 64 bits too. */
	expect(t, kfi_cntr_wait(cntr, 0x200000000, 0), -KFI_ETIMEDOUT);
	close_fid(t, &cntr->fid);
}

static void wraps(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	expect(t, kfi_cntr_set(cntr, U64_MAX), 0);
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect(t, kfi_cntr_read(cntr), 0);
	expect(t, kfi_cntr_seterr(cntr, U64_MAX), 0);
	expect(t, kfi_cntr_adderr(cntr, 2), 0);
	expect(t, kfi_cntr_readerr(cntr), 1);
	/* So adding -1 takes 1 away. */
	expect(t, kfi_cntr_set(cntr, 10), 0);
	expect(t, kfi_cntr_add(cntr, (u64)-1), 0);
	expect(t, kfi_cntr_read(cntr), 9);
	close_fid(t, &cntr->fid);
}

/* Opening with these attributes fails. If it does not, nothing is left open. */
static bool expect_refused(struct test *t, struct kfi_cntr_attr *attr, int error)
{
	struct kfid_cntr *cntr = NULL;
	int ret = kfi_cntr_open(t->domain, attr, &cntr, NULL);

	if (!ret && cntr)
		kfi_close(&cntr->fid);
	return expect(t, ret, error);
}

static void bad_attributes(struct test *t)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };

	attr.flags = 1;
	expect_refused(t, &attr, -KFI_EINVAL);
	attr.flags = 1ULL << 63;
	expect_refused(t, &attr, -KFI_EINVAL);
	attr.flags = 0;

	attr.wait_obj = KFI_WAIT_QUEUE + 1;
	expect_refused(t, &attr, -KFI_EINVAL);
	attr.wait_obj = (enum kfi_wait_obj)INT_MAX;
	expect_refused(t, &attr, -KFI_EINVAL);
	attr.wait_obj = KFI_WAIT_UNSPEC;

	attr.events = KFI_CNTR_EVENTS_COMP + 1;
	expect_refused(t, &attr, -KFI_ENOSYS);
	attr.events = (enum kfi_cntr_events)INT_MAX;
	expect_refused(t, &attr, -KFI_ENOSYS);
}

static void bad_wait_set(struct test *t)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_SET };

	expect_refused(t, &attr, -KFI_EINVAL);
	/* An object, but of another class. */
	attr.wait_set = (struct kfid_wait *)t->fabric;
	expect_refused(t, &attr, -KFI_EINVAL);
	attr.wait_set = (struct kfid_wait *)t->domain;
	expect_refused(t, &attr, -KFI_EINVAL);
}

static void wait_set_ignored(struct test *t)
{
	static const enum kfi_wait_obj objects[] = {
		KFI_WAIT_NONE, KFI_WAIT_UNSPEC, KFI_WAIT_QUEUE,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		struct kfi_cntr_attr attr = {
			.wait_obj = objects[i],
			.wait_set = (void *)0x1,
		};
		struct kfid_cntr *cntr = NULL;

		if (!expect(t, kfi_cntr_open(t->domain, &attr, &cntr, NULL), 0))
			return;
		close_fid(t, &cntr->fid);
	}
}

#define TIMES 100000

static void two_threads(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	if (add_from_threads(t, cntr, 2, TIMES))
		expect(t, kfi_cntr_read(cntr), 2 * TIMES);
	expect(t, kfi_cntr_readerr(cntr), 0);
	close_fid(t, &cntr->fid);
}

static void two_threads_and_a_waiter(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);
	struct waiter waiter;

	if (!cntr)
		return;
	if (waiter_start(t, &waiter, cntr, 2 * TIMES, 12 * SOON)) {
		if (add_from_threads(t, cntr, 2, TIMES))
			expect(t, kfi_cntr_read(cntr), 2 * TIMES);
		else
			kfi_cntr_set(cntr, 2 * TIMES);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void from_hardirq(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_NONE);

	if (!cntr)
		return;
	expect(t, add_from_hardirq(t, cntr, 4, 1), 0);
	expect(t, kfi_cntr_read(cntr), 4);
	close_fid(t, &cntr->fid);
}

const struct test_case cntr_tests[] = {
	{ "cntr/opened", "R-CNTR-5", opened },
	{ "cntr/null-attributes", "R-CNTR-8", null_attributes },
	{ "cntr/every-wait-object", "R-CNTR-10 R-CNTR-11", every_wait_object },
	{ "cntr/case-01-independent", "R-CNTR-3", independent },
	{ "cntr/case-01-two-values", "R-CNTR-17 R-CNTR-18 R-CNTR-19", two_values },
	{ "cntr/case-02-64bit-values", "R-CNTR-4", values_64bit },
	{ "cntr/case-02-wraps", "R-CNTR-20", wraps },
	{ "cntr/case-03-bad-attributes", "R-CNTR-8 R-CNTR-9 R-CNTR-10", bad_attributes },
	{ "cntr/case-03-bad-wait-set", "R-CNTR-13", bad_wait_set },
	{ "cntr/case-03-wait-set-ignored", "R-CNTR-14", wait_set_ignored },
	{ "cntr/case-07-two-threads", "R-CNTR-18", two_threads },
	{ "cntr/case-07-and-a-waiter", "R-CNTR-18 R-CNTR-36", two_threads_and_a_waiter },
	{ "cntr/from-hardirq", "R-CNTR-18", from_hardirq },
	{}
};
