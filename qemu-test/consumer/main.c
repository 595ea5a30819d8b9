// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel consumer of kfabric: on load it opens a fabric and a domain, runs
 * its tests, prints the results to the kernel log as KTAP and closes
 * everything. Loading succeeds whatever the results are: the log has them.
 */
#include <linux/module.h>
#include <linux/printk.h>

#include "consumer.h"

char *provider = "kfi_soft";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "Name of the provider to test");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "Run only the tests whose names start so");

static const struct test_case *const suites[] = {
	info_tests, tostr_tests, cntr_tests, wait_tests, control_tests, close_tests,
	cq_tests, eq_tests, handler_tests, wait_set_tests, poll_set_tests,
	trywait_tests, deferred_tests, deferred_end_tests,
	deferred_context_tests, av_tests,
};

static int __init kfi_consumer_init(void)
{
	const struct plan plan = {
		.suites = suites, .count = ARRAY_SIZE(suites), .only = only,
	};
	struct test t = {};

	begin_results(count_tests(&plan) + 2);
	if (!open_fabric(&t) || !open_domain(&t)) {
		pr_info("Bail out! nothing can be opened\n");
		close_all(&t);
		return 0;
	}
	print_result(&t, "open/all", "");
	run_tests(&t, &plan);
	close_all(&t);
	print_result(&t, "close/all", "R-CLOSE-1");
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
