// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of data transfers between endpoints, as a kernel consumer sees them:
 * runs when it is loaded, prints the results to the kernel log as KTAP.
 * Loading succeeds whatever the results are.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/printk.h>

#include "transfer.h"

char *provider = "kfi_soft";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "Name of the provider to test");

unsigned int rounds = 100000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "Rounds of the long tests");

int strict = -1;
module_param(strict, int, 0444);
MODULE_PARM_DESC(strict, "That of the provider");

unsigned int rnr_timeout = 500;
module_param(rnr_timeout, uint, 0444);
MODULE_PARM_DESC(rnr_timeout, "That of the provider");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "Run only the tests whose names start so");

static const struct test_case *const suites[] = {
	basic_tests, form_tests, atomic_tests, receive_tests,
	error_tests, backlog_tests, waiting_tests, endpoint_tests, scalable_tests, region_tests,
	busy_tests, context_tests, trigger_tests, argument_tests, chain_tests,
	large_tests, room_tests, stress_tests,
};

static bool is_wanted(const struct test_case *test)
{
	return !strncmp(test->name, only, strlen(only));
}

static unsigned int count_tests(void)
{
	const struct test_case *test;
	unsigned int i, count = 0;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (test = suites[i]; test->run; test++)
			count += is_wanted(test);
	}
	return count;
}

static void print_result(bool good, unsigned int number, const char *name,
			 const char *requirements)
{
	pr_info("%s %u %s%s%s\n", good ? "ok" : "not ok", number, name,
		*requirements ? " # " : "", requirements);
}

static void run_tests(struct test *t, unsigned int *number)
{
	const struct test_case *test;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (test = suites[i]; test->run; test++) {
			ktime_t start = ktime_get();

			if (!is_wanted(test))
				continue;
			t->failed = false;
			test->run(t);
			if (ktime_ms_delta(ktime_get(), start) > 2000)
				pr_info("# %s took %lld ms\n", test->name,
					ktime_ms_delta(ktime_get(), start));
			print_result(!t->failed, ++*number, test->name,
				     test->requirements);
		}
	}
}

static int __init kfi_transfer_init(void)
{
	struct test t = {};
	unsigned int number = 0;

	if (strict < 0)
		strict = strcmp(provider, "kcxi");
	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", count_tests() + 2);

	t.info = get_provider_info(&t);
	if (!t.info ||
	    !expect(&t, kfi_fabric(t.info->fabric_attr, &t.fabric, NULL), 0) ||
	    !nics_open(&t)) {
		pr_info("Bail out! nothing can be opened\n");
		goto close;
	}
	print_result(true, ++number, "open/all", "");
	run_tests(&t, &number);

	/* Fails if a test has left something open. */
	t.failed = false;
close:
	nics_close(&t);
	if (t.fabric)
		close_fid(&t, &t.fabric->fid);
	kfi_freeinfo(t.info);
	if (number)
		print_result(!t.failed, ++number, "close/all", "R-CLOSE-1");
	return 0;
}

static void __exit kfi_transfer_exit(void)
{
}

module_init(kfi_transfer_init);
module_exit(kfi_transfer_exit);

MODULE_DESCRIPTION("Tests of data transfers of kfabric as a kernel consumer sees them");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
