// SPDX-License-Identifier: GPL-2.0
/*
 * Notes which code of the modules in Rust has run, for make coverage. They are
 * built with a call of __sanitizer_cov_trace_pc() in each of their blocks of
 * code, and come here whoever runs them: threads, interrupts, works of the
 * kernel. When this module is unloaded, after them, it prints what it has
 * noted to the kernel's log; qemu-test/line_coverage.py makes lines of that.
 *
 * A module may come and go. The marks of it stay.
 */
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/instruction_pointer.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "coverage.h"

/* A call is longer than that: each has a mark of its own. */
#define GRAIN 4

/* Marks in one line of the log, which has 1024 characters with the rest of it. */
#define MARKS_IN_ROW 512

/**
 * struct region - code that is watched, where it is now, and what has run
 * @module: name of the module
 * @name: of the part
 * @type: of the memory that it is in
 * @base: its address, or 0 if it is not there
 * @size: its length in bytes, or 0
 * @known: how many bytes there are marks for
 * @marks: one for each GRAIN bytes, set when a call returned to there
 */
struct region {
	const char *module;
	const char *name;
	enum mod_mem_type type;
	unsigned long base;
	unsigned long size;
	unsigned long known;
	u8 *marks;
};

/* The most frequent ones first. */
static struct region regions[] = {
	{ "kfi_soft", "text", MOD_TEXT },
	{ "kfi_shim", "text", MOD_TEXT },
	{ "kfabric", "text", MOD_TEXT },
	{ "kfi_soft", "init", MOD_INIT_TEXT },
	{ "kfi_shim", "init", MOD_INIT_TEXT },
	{ "kfabric", "init", MOD_INIT_TEXT },
};

/*
 * In any context, hard interrupts too: no locks. Code that runs is that of a
 * region that is there as long as it does; the others may change meanwhile. A
 * base is 0 from before the address may be another module's on, and it is
 * written before the size, and read before it, so that no address is taken
 * for one of a region that is gone or still to come.
 */
void notrace __sanitizer_cov_trace_pc(void)
{
	unsigned long at = _RET_IP_;
	struct region *region;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(regions); i++) {
		unsigned long offset;
		u8 *mark;

		region = &regions[i];
		offset = at - READ_ONCE(region->base);
		/* Pairs with smp_wmb() in begin() and end(). */
		smp_rmb();
		if (offset >= READ_ONCE(region->size))
			continue;
		mark = &region->marks[offset / GRAIN];
		/* Most are set already: no line of the cache is written then. */
		if (!READ_ONCE(*mark))
			WRITE_ONCE(*mark, 1);
		return;
	}
}
EXPORT_SYMBOL_GPL(__sanitizer_cov_trace_pc);

static int begin(struct region *region, const struct module_memory *memory)
{
	if (!memory->size)
		return 0;
	if (!region->marks) {
		region->marks = vzalloc(DIV_ROUND_UP(memory->size, GRAIN));
		if (!region->marks)
			return -ENOMEM;
		region->known = memory->size;
	}
	WRITE_ONCE(region->base, (unsigned long)memory->base);
	/* Pairs with smp_rmb() in __sanitizer_cov_trace_pc(). */
	smp_wmb();
	WRITE_ONCE(region->size, min_t(unsigned long, memory->size, region->known));
	return 0;
}

static void end(struct region *region)
{
	WRITE_ONCE(region->size, 0);
	/* Pairs with smp_rmb() in __sanitizer_cov_trace_pc(). */
	smp_wmb();
	WRITE_ONCE(region->base, 0);
}

/* Called before the first code of a module runs and after the last one did. */
static int on_module(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *module = data;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < ARRAY_SIZE(regions) && !ret; i++) {
		struct region *region = &regions[i];

		if (strcmp(module->name, region->module))
			continue;
		if (state == MODULE_STATE_COMING)
			ret = begin(region, &module->mem[region->type]);
		else if (state == MODULE_STATE_GOING || region->type == MOD_INIT_TEXT)
			end(region);
	}
	return notifier_from_errno(ret);
}

static struct notifier_block module_notifier = {
	.notifier_call = on_module,
};

/* Prints the marks from @first on, as bits, if any is set. */
static bool print_row(const struct region *region, unsigned long first, unsigned long count)
{
	u8 bits[MARKS_IN_ROW / 8] = {};
	bool any = false;
	unsigned long i;

	for (i = 0; i < min_t(unsigned long, count - first, MARKS_IN_ROW); i++) {
		if (region->marks[first + i]) {
			bits[i / 8] |= BIT(i % 8);
			any = true;
		}
	}
	if (any)
		pr_info("kfi_coverage: %s %s %lx %*phN\n", region->module, region->name,
			first * GRAIN, (int)sizeof(bits), bits);
	return any;
}

static void print_region(const struct region *region)
{
	unsigned long first, count = DIV_ROUND_UP(region->known, GRAIN);
	unsigned int rows = 0;

	for (first = 0; first < count; first += MARKS_IN_ROW) {
		rows += print_row(region, first, count);
		cond_resched();
	}
	/* Whether lines were lost, and whether it is that module. */
	pr_info("kfi_coverage: %s %s has %lu bytes, %u rows\n", region->module, region->name,
		region->known, rows);
}

static int __init kfi_coverage_init(void)
{
	return register_module_notifier(&module_notifier);
}

static void __exit kfi_coverage_exit(void)
{
	unsigned int i;

	unregister_module_notifier(&module_notifier);
	for (i = 0; i < ARRAY_SIZE(regions); i++) {
		print_region(&regions[i]);
		vfree(regions[i].marks);
	}
}

module_init(kfi_coverage_init);
module_exit(kfi_coverage_exit);

MODULE_DESCRIPTION("Notes which code of kfabric has run");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
