// SPDX-License-Identifier: GPL-2.0
/*
 * How long are interrupts off? A load that is named in the parameter "run" is
 * prepared, and carried out while tracing is on: whoever writes the parameter
 * has chosen the tracer, and asks it afterwards.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/trace_printk.h>

#include "irqsoff.h"

char *provider = "kfi_soft";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "Name of the provider");

static struct test test;

static const struct load *const suites[] = { engine_loads, transfer_loads };

/* Two endpoints that know each other, and memory for both. */
bool rig_pair(struct rig *r, const struct setup *sender, const struct setup *receiver)
{
	r->from = kvzalloc(BYTES, GFP_KERNEL);
	r->to = kvzalloc(BYTES, GFP_KERNEL);
	return expect_true(r->t, r->from && r->to) &&
	       pair_open(r->t, &r->a, &r->b, sender, receiver);
}

static void free_all(struct rig *r)
{
	struct test *t = r->t;
	unsigned int i;

	if (r->jobs && r->trigger)
		expect(t, kfi_cntr_add(r->trigger, 2), 0);
	for (i = 0; r->jobs && i < r->size; i++) {
		if (r->jobs[i].task)
			expect(t, job_finish(&r->jobs[i]), 0);
	}
	for (i = 0; i < r->listening; i++)
		remove_wait_queue(r->queue, &r->listeners[i]);
	/* First, as what is pending there names counters. */
	pair_close(t, &r->a, &r->b);
	for (i = 0; r->regions && i < r->size; i++) {
		if (r->regions[i])
			close_fid(t, &r->regions[i]->fid);
	}
	if (r->trigger)
		expect(t, kfi_control(&t->domain->fid, KFI_FLUSH_WORK, NULL), 0);
	for (i = 0; r->members && i < r->size; i++) {
		if (!r->members[i])
			continue;
		if (r->poll)
			kfi_poll_del(r->poll, &r->members[i]->fid, 0);
		close_fid(t, &r->members[i]->fid);
		cond_resched();
	}
	if (r->poll)
		close_fid(t, &r->poll->fid);
	if (r->target)
		close_fid(t, &r->target->fid);
	if (r->trigger)
		close_fid(t, &r->trigger->fid);
	kvfree(r->jobs);
	kvfree(r->listeners);
	kvfree(r->regions);
	kvfree(r->ranges);
	kvfree(r->members);
	kvfree(r->works);
	kvfree(r->contexts);
	kvfree(r->entries);
	kvfree(r->from);
	kvfree(r->to);
}

static int carry_out(const struct load *load, unsigned int size)
{
	struct rig *r = kzalloc_obj(*r);
	long ret = 0;

	if (!r)
		return -ENOMEM;
	test.failed = false;
	r->t = &test;
	r->size = size;
	if (load->prepare(r)) {
		/* Until the work that it has left to others is over. */
		msleep(50);
		tracing_on();
		ret = load->interrupt ? run_in_hardirq(&test, load->run, r) : load->run(r);
		if (load->settle)
			load->settle(r);
		/* Until memory that was given up is freed, too. */
		msleep(20);
		tracing_off();
		expect(&test, ret, 0);
	} else {
		test.failed = true;
	}
	free_all(r);
	kfree(r);
	if (test.failed)
		pr_info("# %s %u has failed\n", load->name, size);
	return test.failed ? -EIO : 0;
}

static int run_set(const char *text, const struct kernel_param *param)
{
	const struct load *load;
	unsigned int i, size;
	char name[32];

	if (sscanf(text, "%31s %u", name, &size) != 2 || !size || !test.domain)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (load = suites[i]; load->name; load++) {
			if (!strcmp(load->name, name))
				return carry_out(load, size);
		}
	}
	return -ENOENT;
}

static const struct kernel_param_ops run_ops = { .set = run_set };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "A load and how much is queued: carries it out");

static int loads_get(char *buffer, const struct kernel_param *param)
{
	const struct load *load;
	unsigned int i;
	int len = 0;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (load = suites[i]; load->name; load++)
			len += sysfs_emit_at(buffer, len, "%s\n", load->name);
	}
	return len;
}

static const struct kernel_param_ops loads_ops = { .get = loads_get };
module_param_cb(loads, &loads_ops, NULL, 0444);
MODULE_PARM_DESC(loads, "The names of the loads");

static void close_objects(void)
{
	nics_close(&test);
	close_all(&test);
}

static int __init kfi_irqsoff_init(void)
{
	tracing_off();
	if (!open_fabric(&test) || !nics_open(&test)) {
		close_objects();
		return -ENODEV;
	}
	return 0;
}

static void __exit kfi_irqsoff_exit(void)
{
	close_objects();
}

module_init(kfi_irqsoff_init);
module_exit(kfi_irqsoff_exit);

MODULE_DESCRIPTION("Loads of kfabric under which interrupts may be off for long");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
