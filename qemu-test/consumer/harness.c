// SPDX-License-Identifier: GPL-2.0
/*
 * Expectations and results.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include <kfi_errno.h>

#include "harness.h"

bool expect_value(struct test *t, long long got, long long want,
		  const char *what, const char *file, int line)
{
	if (got == want)
		return true;
	t->failed = true;
	pr_info("# %s:%d: %s is %lld, expected %lld\n", kbasename(file), line,
		what, got, want);
	return false;
}

bool expect_errno_value(struct test *t, long long got, const char *what,
			const char *file, int line)
{
	if (got < 0 && got > -FI_ERRNO_MAX)
		return true;
	t->failed = true;
	pr_info("# %s:%d: %s is %lld, expected an error\n", kbasename(file),
		line, what, got);
	return false;
}

/*
 * Tells whoever reads the log that the kernel is going to report something, with
 * this in its title, until end_expected_report().
 */
void expect_report(const char *title)
{
	/* Sleeping at the wrong place is reported once in a second. */
	msleep(1100);
	pr_info("# a report is expected: %s\n", title);
}

void end_expected_report(void)
{
	pr_info("# a report was expected\n");
}

/* Number of the last result. */
static unsigned int number;

void begin_results(unsigned int count)
{
	number = 0;
	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", count);
}

void print_result(const struct test *t, const char *name,
		  const char *requirements)
{
	const char *result = t->failed ? "not ok" : "ok";

	number++;
	if (t->skipped)
		pr_info("%s %u %s # SKIP %s\n", result, number, name, t->skipped);
	else
		pr_info("%s %u %s%s%s\n", result, number, name,
			*requirements ? " # " : "", requirements);
}

static bool is_wanted(const struct plan *plan, const struct test_case *test)
{
	if (plan->network && test->within_node)
		return false;
	return !plan->only || strstarts(test->name, plan->only);
}

unsigned int count_tests(const struct plan *plan)
{
	const struct test_case *test;
	unsigned int i, count = 0;

	for (i = 0; i < plan->count; i++) {
		for (test = plan->suites[i]; test->run; test++)
			count += is_wanted(plan, test);
	}
	return count;
}

static void run_test(struct test *t, const struct plan *plan,
		     const struct test_case *test)
{
	ktime_t start = ktime_get();
	s64 ms;

	t->failed = false;
	t->skipped = NULL;
	test->run(t);
	ms = ktime_ms_delta(ktime_get(), start);
	if (ms > 2000)
		pr_info("# %s took %lld ms\n", test->name, ms);
	if (plan->after)
		plan->after(t);
	print_result(t, test->name, test->requirements);
}

/*
 * Runs all of them. The thread that loads this is killed when its time is over,
 * and no thread can be started any more: what would fail then says nothing.
 */
void run_tests(struct test *t, const struct plan *plan)
{
	const struct test_case *test;
	unsigned int i;

	for (i = 0; i < plan->count; i++) {
		for (test = plan->suites[i]; test->run; test++) {
			if (!is_wanted(plan, test))
				continue;
			if (fatal_signal_pending(current)) {
				pr_info("Bail out! killed before %s\n", test->name);
				goto out;
			}
			run_test(t, plan, test);
		}
	}
out:
	t->failed = false;
	t->skipped = NULL;
}
