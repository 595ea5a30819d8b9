// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the core, with providers that do as they are told: once it is
 * loaded, the module prints the results to the kernel log as KTAP. Loading
 * succeeds whatever they are. Unloading prints some more.
 *
 * For tests from outside it holds fabrics open when it is told to.
 */
#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "mock.h"

unsigned int rounds = 10000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "Rounds of the long tests");

static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "Run only the tests whose names start so");

static const struct test_case *const suites[] = {
	memory_tests, register_tests, getinfo_tests, fabric_tests, thread_tests,
};

/* The test that runs in the init of the module. */
static struct test init_test;

/* How many there were before the tests. */
static int users;

/* Nothing pins the module any more. */
static void is_not_pinned(struct test *t)
{
	expect(t, module_refcount(THIS_MODULE), users);
}

static void run_all(void)
{
	const struct plan plan = {
		.suites = suites, .count = ARRAY_SIZE(suites), .only = only,
		.after = is_not_pinned,
	};
	struct test t = {};

	users = module_refcount(THIS_MODULE);
	begin_results(count_tests(&plan) + 1);
	print_result(&init_test, "module/init", "");
	run_tests(&t, &plan);
}

/*
 * The core opens no fabric of a module whose init is running. This is called
 * right after that.
 */
static int on_module(struct notifier_block *nb, unsigned long state, void *module)
{
	if (module == THIS_MODULE && state == MODULE_STATE_LIVE)
		run_all();
	return NOTIFY_DONE;
}

static struct notifier_block module_notifier = {
	.notifier_call = on_module,
};

/* A provider that was replaced and the one that replaced it. */
static struct mock *held[2];
static struct kfid_fabric *held_fabrics[2];

static int release_fabrics(void)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < 2; i++) {
		if (held_fabrics[i])
			ret = ret ?: kfi_close(&held_fabrics[i]->fid);
		if (held[i])
			ret = ret ?: mock_deregister(held[i]);
		held_fabrics[i] = NULL;
		held[i] = NULL;
	}
	return ret;
}

static int hold_fabrics(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < 2; i++) {
		struct mock *mock = mock_init(i, "mock-held", KFI_VERSION(1, i));

		ret = mock_register(mock);
		if (!ret) {
			held[i] = mock;
			ret = open_fabric_of("mock-held", &held_fabrics[i]);
		}
		if (ret) {
			release_fabrics();
			return ret;
		}
	}
	return 0;
}

static int hold_set(const char *text, const struct kernel_param *param)
{
	bool hold;
	int ret = kstrtobool(text, &hold);

	if (ret || hold == !!held[0])
		return ret;
	return hold ? hold_fabrics() : release_fabrics();
}

static int hold_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%c\n", held[0] ? 'Y' : 'N');
}

static const struct kernel_param_ops hold_ops = {
	.set = hold_set,
	.get = hold_get,
};
module_param_cb(hold, &hold_ops, NULL, 0644);
MODULE_PARM_DESC(hold, "Hold fabrics open, while the module is loaded");

static int __init kfi_mock_init(void)
{
	struct mock *mock = mock_init(0, "mock-init", 1);
	struct test *t = &init_test;
	struct kfid_fabric *fabric;

	if (expect(t, mock_register(mock), 0)) {
		/* It is asked, but not opened. */
		expect(t, ask_and_free("mock-init"), 0);
		expect(t, open_fabric_of("mock-init", &fabric), -KFI_ENODEV);
		expect(t, atomic_read(&mock->opened), 0);
		expect(t, mock_deregister(mock), 0);
	}
	return register_module_notifier(&module_notifier);
}

static void __exit kfi_mock_exit(void)
{
	struct mock *mock = mock_init(0, "mock-exit", 1);
	/* Not NULL: the call must make it so. */
	struct kfi_info *info = ERR_PTR(-EINVAL);
	struct kfid_fabric *fabric;
	struct test t = {};

	unregister_module_notifier(&module_notifier);

	/* A provider that is about to go is neither asked nor opened. */
	begin_results(1);
	if (expect(&t, mock_register(mock), 0)) {
		expect(&t, ask("mock-exit", &info), -KFI_ENODATA);
		expect_true(&t, !info);
		expect(&t, open_fabric_of("mock-exit", &fabric), -KFI_ENODEV);
		expect(&t, atomic_read(&mock->asked), 0);
		expect(&t, atomic_read(&mock->opened), 0);
		expect(&t, mock_deregister(mock), 0);
		expect(&t, atomic_read(&mock->cleaned), 1);
	}
	print_result(&t, "module/exit", "");
}

module_init(kfi_mock_init);
module_exit(kfi_mock_exit);

MODULE_DESCRIPTION("Tests of the core of kfabric");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
