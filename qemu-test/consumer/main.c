// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel consumer of kfabric: on load it opens a fabric and a domain, runs
 * its tests, prints the results to the kernel log as KTAP and closes
 * everything. Loading succeeds whatever the results are: the log has them.
 */
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "test.h"

char *provider = "kfi_soft";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "Name of the provider to test");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "Run only the tests whose names start so");

static const struct test_case *const suites[] = {
	info_tests, cntr_tests, wait_tests, control_tests, close_tests,
	queue_tests, handler_tests, wait_set_tests, poll_set_tests,
	trywait_tests, deferred_tests, av_tests,
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
			if (!is_wanted(test))
				continue;
			t->failed = false;
			test->run(t);
			print_result(!t->failed, ++*number, test->name,
				     test->requirements);
		}
	}
}

static int __init kfi_consumer_init(void)
{
	struct test t = {};
	unsigned int number = 0;

	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", count_tests() + 2);

	t.info = get_provider_info(&t);
	if (!t.info ||
	    !expect(&t, kfi_fabric(t.info->fabric_attr, &t.fabric, NULL), 0) ||
	    !expect(&t, kfi_domain(t.fabric, t.info, &t.domain, NULL), 0)) {
		pr_info("Bail out! nothing can be opened\n");
		goto close;
	}
	print_result(true, ++number, "open/all", "");
	run_tests(&t, &number);

	/* Fails if a test has left something open. */
	t.failed = false;
close:
	if (t.domain)
		close_fid(&t, &t.domain->fid);
	if (t.fabric)
		close_fid(&t, &t.fabric->fid);
	kfi_freeinfo(t.info);
	if (number)
		print_result(!t.failed, ++number, "close/all", "R-CLOSE-1");
	return 0;
}

static void __exit kfi_consumer_exit(void)
{
}

module_init(kfi_consumer_init);
module_exit(kfi_consumer_exit);

MODULE_DESCRIPTION("Tests of kfabric as a kernel consumer sees it");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
