// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_cntr_wait().
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/preempt.h>

#include "test.h"

static void satisfied_at_entry(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	expect(t, kfi_cntr_wait(cntr, 0, 0), 0);
	expect(t, kfi_cntr_set(cntr, 5), 0);
	/* Neither an error from before nor the lack of time matters. */
	expect(t, kfi_cntr_adderr(cntr, 1), 0);
	expect(t, kfi_cntr_wait(cntr, 5, 0), 0);
	expect(t, kfi_cntr_wait(cntr, 4, 1), 0);
	expect(t, kfi_cntr_wait(cntr, 5, -1), 0);
	expect(t, kfi_cntr_wait(cntr, 5, INT_MIN), 0);
	expect(t, kfi_cntr_wait(cntr, 6, 0), -KFI_ETIMEDOUT);
	close_fid(t, &cntr->fid);
}

static void times_out(struct test *t)
{
	static const int timeouts[] = { 1, 20, 100 };
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	unsigned int i;

	if (!cntr)
		return;
	expect(t, kfi_cntr_set(cntr, 2), 0);
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		ktime_t start = ktime_get();
		s64 us;

		expect(t, kfi_cntr_wait(cntr, 3, timeouts[i]), -KFI_ETIMEDOUT);
		us = ktime_us_delta(ktime_get(), start);
		/* Not early; how late depends on who else wants the CPU. */
		expect_true(t, us >= timeouts[i] * 1000);
		expect_true(t, us < (timeouts[i] + SOON) * 1000);
	}
	expect(t, kfi_cntr_read(cntr), 2);
	close_fid(t, &cntr->fid);
}

static void errors_stay_on_timeout(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	expect(t, kfi_cntr_seterr(cntr, 3), 0);
	expect(t, kfi_cntr_wait(cntr, 1, 10), -KFI_ETIMEDOUT);
	expect(t, kfi_cntr_readerr(cntr), 3);
	expect(t, kfi_cntr_read(cntr), 0);
	close_fid(t, &cntr->fid);
}

static void woken_by_add(struct test *t)
{
	static const int timeouts[] = { SOON, INT_MAX, -1, INT_MIN };
	struct waiter waiter;
	struct kfid_cntr *cntr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		cntr = open_cntr(t, KFI_WAIT_UNSPEC);
		if (!cntr)
			return;
		if (waiter_start(t, &waiter, cntr, 3, timeouts[i])) {
			expect(t, kfi_cntr_add(cntr, 2), 0);
			expect_true(t, waiter_is_waiting(&waiter));
			expect(t, kfi_cntr_add(cntr, 1), 0);
			expect(t, waiter_finish(&waiter), 0);
			expect(t, waiter.value, 3);
		}
		close_fid(t, &cntr->fid);
	}
}

static void woken_by_set(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);
	struct waiter waiter;

	if (!cntr)
		return;
	if (waiter_start(t, &waiter, cntr, 1ULL << 40, SOON)) {
		expect(t, kfi_cntr_set(cntr, (1ULL << 40) - 1), 0);
		expect_true(t, waiter_is_waiting(&waiter));
		expect(t, kfi_cntr_set(cntr, 1ULL << 40), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void woken_from_hardirq(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiter;

	if (!cntr)
		return;
	if (waiter_start(t, &waiter, cntr, 1, SOON)) {
		expect(t, add_from_hardirq(t, cntr, 1, 10), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void many_thresholds(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiters[4];
	unsigned int i, started;

	if (!cntr)
		return;
	for (started = 0; started < ARRAY_SIZE(waiters); started++) {
		if (!waiter_start(t, &waiters[started], cntr,
				  10 * (started + 1), 2 * SOON))
			break;
	}
	if (started == ARRAY_SIZE(waiters)) {
		expect(t, kfi_cntr_add(cntr, 20), 0);
		expect(t, waiter_finish(&waiters[0]), 0);
		expect(t, waiter_finish(&waiters[1]), 0);
		expect_true(t, waiter_is_waiting(&waiters[2]));
		expect_true(t, waiter_is_waiting(&waiters[3]));
		expect(t, kfi_cntr_set(cntr, 40), 0);
		expect(t, waiter_finish(&waiters[2]), 0);
		expect(t, waiter_finish(&waiters[3]), 0);
	} else {
		kfi_cntr_set(cntr, 40);
		for (i = 0; i < started; i++)
			waiter_finish(&waiters[i]);
	}
	close_fid(t, &cntr->fid);
}

static int add_one(struct kfid_cntr *cntr)
{
	return kfi_cntr_adderr(cntr, 1);
}

static int set_more(struct kfid_cntr *cntr)
{
	return kfi_cntr_seterr(cntr, 9);
}

static int set_less(struct kfid_cntr *cntr)
{
	return kfi_cntr_seterr(cntr, 1);
}

static int there_and_back(struct kfid_cntr *cntr)
{
	int ret = kfi_cntr_adderr(cntr, 1);

	return ret ?: kfi_cntr_seterr(cntr, 3);
}

static void error_wakes(struct test *t)
{
	static int (*const changes[])(struct kfid_cntr *cntr) = {
		add_one, set_more, set_less, there_and_back,
	};
	struct waiter waiter;
	struct kfid_cntr *cntr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		cntr = open_cntr(t, KFI_WAIT_UNSPEC);
		if (!cntr)
			return;
		expect(t, kfi_cntr_seterr(cntr, 3), 0);
		if (waiter_start(t, &waiter, cntr, 1, SOON)) {
			/* An error from before does not end the wait. */
			expect_true(t, waiter_is_waiting(&waiter));
			expect(t, changes[i](cntr), 0);
			expect(t, waiter_finish(&waiter), -KFI_EAVAIL);
		}
		close_fid(t, &cntr->fid);
	}
}

static void same_error_does_not(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiter;

	if (!cntr)
		return;
	expect(t, kfi_cntr_seterr(cntr, 3), 0);
	if (waiter_start(t, &waiter, cntr, 1, SOON)) {
		expect(t, kfi_cntr_seterr(cntr, 3), 0);
		expect_true(t, waiter_is_waiting(&waiter));
		expect(t, kfi_cntr_add(cntr, 1), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void threshold_wins(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	expect(t, kfi_cntr_adderr(cntr, 2), 0);
	expect(t, kfi_cntr_add(cntr, 2), 0);
	expect(t, kfi_cntr_adderr(cntr, 1), 0);
	expect(t, kfi_cntr_wait(cntr, 2, 10), 0);
	expect(t, kfi_cntr_wait(cntr, 2, -1), 0);
	close_fid(t, &cntr->fid);
}

static void without_wait_object(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_NONE);

	if (!cntr)
		return;
	expect(t, kfi_cntr_wait(cntr, 1, 0), -KFI_EINVAL);
	expect(t, kfi_cntr_wait(cntr, 1, 10), -KFI_EINVAL);
	expect(t, kfi_cntr_wait(cntr, 1, -1), -KFI_EINVAL);
	close_fid(t, &cntr->fid);
}

#define BEGINNINGS 10000
/* More steps than a thread takes to begin to wait, also where steps are emulated. */
#define LATEST 4096

struct beginning {
	struct kfid_cntr *cntr;
	unsigned int begun;
	int result;
};

static void pass_time(unsigned int steps)
{
	while (steps--)
		barrier();
}

static long begin_to_wait(void *arg)
{
	struct beginning *b = arg;
	unsigned int i;

	for (i = 1; i <= BEGINNINGS && !b->result; i++) {
		/* Release: what was read before belongs to the last round. */
		smp_store_release(&b->begun, i);
		/* The other one is to be early at times. */
		pass_time(LATEST / 2);
		b->result = kfi_cntr_wait(b->cntr, i, -1);
	}
	/* The other one does not wait any longer. */
	smp_store_release(&b->begun, UINT_MAX);
	return i - 1;
}

/* Whether the other thread has come so far. */
static bool has_begun(struct beginning *b, unsigned int round)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(SOON);

	/* Acquire: pairs with the release; what is added comes after it. */
	while (smp_load_acquire(&b->begun) < round) {
		if (time_after(jiffies, deadline))
			return false;
		cond_resched();
	}
	return true;
}

static long add_meanwhile(void *arg)
{
	struct beginning *b = arg;
	unsigned int i;
	int ret = 0;

	for (i = 1; i <= BEGINNINGS && !ret && has_begun(b, i); i++) {
		pass_time(i * 37 % LATEST);
		ret = kfi_cntr_add(b->cntr, 1);
	}
	/* Nobody has told the last one: that shall not stop the others. */
	if (!has_begun(b, UINT_MAX))
		kfi_cntr_set(b->cntr, BEGINNINGS + 1);
	return ret;
}

/*
 * One thread adds while the other begins to wait for just that: before it has
 * looked at the value, after it, and whenever there is something in between. If
 * once nobody notices, it waits on.
 */
static void add_while_beginning(struct test *t)
{
	struct beginning b = { .cntr = open_cntr(t, KFI_WAIT_UNSPEC) };
	unsigned int cpu = cpumask_first(cpu_online_mask);
	struct job waiting, adding;

	if (!b.cntr)
		return;
	if (job_start(t, &adding, add_meanwhile, &b, other_cpu(cpu))) {
		if (job_start(t, &waiting, begin_to_wait, &b, cpu)) {
			expect(t, job_finish(&waiting), BEGINNINGS);
			expect(t, b.result, 0);
		}
		expect(t, job_finish(&adding), 0);
	}
	/* More than that if one of them was not told. */
	expect(t, kfi_cntr_read(b.cntr), BEGINNINGS);
	close_fid(t, &b.cntr->fid);
}

/* Even where there is nothing to wait for, so that mistakes show. */
static void may_sleep(struct test *t)
{
	struct kfid_cntr *cntr;
	int ret;

	if (!IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP)) {
		pr_info("# needs CONFIG_DEBUG_ATOMIC_SLEEP\n");
		return;
	}
	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		return;
	expect(t, kfi_cntr_wait(cntr, 0, 0), 0);
	expect_report(SLEEPS);
	preempt_disable();
	ret = kfi_cntr_wait(cntr, 0, 0);
	preempt_enable();
	end_expected_report();
	expect(t, ret, 0);
	close_fid(t, &cntr->fid);
}

const struct test_case wait_tests[] = {
	{ "wait/case-09-satisfied-at-entry", "R-CNTR-30 R-CNTR-34", satisfied_at_entry },
	{ "wait/case-10-times-out", "R-CNTR-32 R-CNTR-35", times_out },
	{ "wait/case-11-woken-by-add", "R-CNTR-30 R-CNTR-33 R-CNTR-35", woken_by_add },
	{ "wait/case-11-woken-by-set", "R-CNTR-30", woken_by_set },
	{ "wait/case-11-woken-from-hardirq", "R-CNTR-30", woken_from_hardirq },
	{ "wait/case-12-error-wakes", "R-CNTR-31", error_wakes },
	{ "wait/case-12-same-error-does-not", "R-CNTR-31", same_error_does_not },
	{ "wait/case-12-threshold-wins", "R-CNTR-30 R-CNTR-31", threshold_wins },
	{ "wait/case-13-errors-stay-on-timeout", "R-CNTR-32", errors_stay_on_timeout },
	{ "wait/case-14-many-thresholds", "R-CNTR-36", many_thresholds },
	{ "wait/case-15-add-while-beginning", "R-CNTR-36", add_while_beginning },
	{ "wait/may-sleep", "R-CNTR-39", may_sleep },
	{ "wait/case-17-without-wait-object", "R-CNTR-11", without_wait_object },
	{}
};
