// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the transactions when it is loaded, and prints the results to the kernel
 * log as KTAP. Loading succeeds whatever the results are.
 */
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "harness.h"
#include "lnd.h"

char *provider = "kfi_soft";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "Name of the provider to test");

static unsigned int count = 100000;
module_param_named(transactions, count, uint, 0444);
MODULE_PARM_DESC(transactions, "Transactions between two NICs, and within one");

static unsigned int at_a_time = 64;
module_param(at_a_time, uint, 0444);
MODULE_PARM_DESC(at_a_time, "How many of them are under way at a time");

static unsigned long long seed = 1;
module_param(seed, ullong, 0444);
MODULE_PARM_DESC(seed, "What the random ones are made of");

struct workqueue_struct *lnd_wq;
struct lnd_node lnd_node[NODES];

static atomic_t problems;

void lnd_problem(const char *format, ...)
{
	struct va_format text = { .fmt = format };
	va_list args;

	if (atomic_inc_return(&problems) > PROBLEMS)
		return;
	va_start(args, format);
	text.va = &args;
	pr_info("# %pV\n", &text);
	va_end(args);
}

static bool result(int ret, const char *name)
{
	struct test t = { .failed = ret || atomic_xchg(&problems, 0) };

	if (ret)
		pr_info("# %d\n", ret);
	print_result(&t, name, "");
	return !t.failed;
}

/* Opens a node on each of the first NICs of the provider. */
static int open_nodes(void)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL, *entry;
	unsigned int i;
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	ret = kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info);
	kfi_freeinfo(hints);
	for (i = 0, entry = info; !ret && i < NODES; i++, entry = entry->next) {
		if (!entry) {
			ret = -ENODEV;
			break;
		}
		ret = lnd_node_open(&lnd_node[i], entry->domain_attr->name, 51 + i);
	}
	for (i = 0; !ret && i < NODES; i++)
		ret = lnd_node_meet(&lnd_node[i]);
	kfi_freeinfo(info);
	return ret;
}

static int __init kfi_lnd_init(void)
{
	unsigned int i;

	lnd_wq = alloc_workqueue("kfi_lnd", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0);
	if (!lnd_wq)
		return -ENOMEM;
	begin_results(4);
	if (result(open_nodes(), "lnd/open")) {
		result(lnd_run(count, at_a_time, false, seed), "lnd/between-nics");
		result(lnd_run(count, at_a_time, true, seed + at_a_time), "lnd/within-one");
	}
	for (i = NODES; i--;)
		lnd_node_close(&lnd_node[i]);
	lnd_free();
	result(0, "lnd/teardown");
	destroy_workqueue(lnd_wq);
	return 0;
}

static void __exit kfi_lnd_exit(void)
{
}

module_init(kfi_lnd_init);
module_exit(kfi_lnd_exit);

MODULE_DESCRIPTION("A consumer of kfabric of the shape of a network driver");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
