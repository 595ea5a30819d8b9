// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of data transfers between endpoints, as a kernel consumer sees them:
 * runs when it is loaded, prints the results to the kernel log as KTAP.
 * Loading succeeds whatever the results are.
 */
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/string.h>

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

module_param(network, bool, 0444);
MODULE_PARM_DESC(network, "NICs reach each other over a network: without the tests of what is so within a node only");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "Run only the tests whose names start so");

static const struct test_case *const suites[] = {
	basic_tests, form_tests, atomic_tests, receive_tests,
	error_tests, backlog_tests, crowded_tests, waiting_tests, late_tests, endpoint_tests,
	scalable_tests, region_tests, busy_tests, context_tests, trigger_tests, argument_tests,
	chain_tests, large_tests, room_tests, stress_tests,
};

static int __init kfi_transfer_init(void)
{
	const struct plan plan = {
		.suites = suites, .count = ARRAY_SIZE(suites), .only = only,
		.network = network,
	};
	struct test t = {};

	if (strict < 0)
		strict = strcmp(provider, "kcxi");
	begin_results(count_tests(&plan) + 2);
	if (!open_fabric(&t) || !nics_open(&t) || !couriers_open(&t)) {
		pr_info("Bail out! nothing can be opened\n");
		couriers_close(&t);
		nics_close(&t);
		close_all(&t);
		return 0;
	}
	print_result(&t, "open/all", "");
	run_tests(&t, &plan);
	couriers_close(&t);
	nics_close(&t);
	close_all(&t);
	print_result(&t, "close/all", "R-CLOSE-1");
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
