// SPDX-License-Identifier: GPL-2.0
/*
 * Notes which code of the modules in Rust has run, for make coverage. They are
 * built with a call of __sanitizer_cov_trace_pc() in each of their blocks of
 * code, and come here whoever runs them: threads, interrupts, works of the
 * kernel. When this module is unloaded, after them, it prints what it has
 * noted to the kernel's log; qemu-test/line_coverage.py makes lines of that.
 *
 * A module may come and go. The marks of it stay.
 *
 * User space can watch, for make fuzz: /sys/kernel/debug/kfi_coverage/reached
 * has a number of 32 bits for each place that was reached in this round, in
 * the order in which that was. A write to it, of anything, begins a new round.
 */
#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
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

/* A place's number has that of its region from here on: there is room for 64 MiB of code. */
#define REGION_SHIFT 24

/* Places that a round tells of; many times what is reached in one. */
#define REACHED_MAX (1 << 17)

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
 * @marks: one for each GRAIN bytes: the round in which a call last returned to
 *	there, or 0
 */
struct region {
	const char *module;
	const char *name;
	enum mod_mem_type type;
	unsigned long base;
	unsigned long size;
	unsigned long known;
	u32 *marks;
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

/* Never 0. */
static u32 this_round __read_mostly = 1;

/* The places of this round, and how many there are. */
static u32 *reached;
static atomic_t reached_count = ATOMIC_INIT(0);

/*
 * Notes a place, once in a round, without a lock and in any context. The
 * exchange decides which of several CPUs tells of it. If a round begins at the
 * same time, a place may be told twice, in the round after, or by a number of
 * a round before: these are hints for a search, and no more. That a place was
 * reached at all is never forgotten, as no mark becomes 0 again.
 */
static __always_inline void note(u32 *mark, u32 number)
{
	u32 now = READ_ONCE(this_round);
	int at;

	/* Most are noted already: no line of the cache is written then. */
	if (READ_ONCE(*mark) == now || xchg(mark, now) == now)
		return;
	/* Ordered after the look at the round: counts from where reached_write() has begun it. */
	at = atomic_fetch_add_unless(&reached_count, 1, REACHED_MAX);
	if (at < REACHED_MAX)
		WRITE_ONCE(reached[at], number);
}

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

		region = &regions[i];
		offset = at - READ_ONCE(region->base);
		/* Pairs with smp_wmb() in begin() and end(). */
		smp_rmb();
		if (offset >= READ_ONCE(region->size))
			continue;
		offset /= GRAIN;
		note(&region->marks[offset], i << REGION_SHIFT | offset);
		return;
	}
}
EXPORT_SYMBOL_GPL(__sanitizer_cov_trace_pc);

static int begin(struct region *region, const struct module_memory *memory)
{
	if (!memory->size)
		return 0;
	if (!region->marks) {
		region->marks = vcalloc(DIV_ROUND_UP(memory->size, GRAIN), sizeof(*region->marks));
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

static ssize_t reached_read(struct file *file, char __user *to, size_t count, loff_t *at)
{
	size_t size = atomic_read(&reached_count) * sizeof(*reached);

	return simple_read_from_buffer(to, count, at, reached, size);
}

/* Two at a time may begin one round together: each has a new one then. */
static ssize_t reached_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	u32 next = READ_ONCE(this_round) + 1;

	atomic_set(&reached_count, 0);
	/* CPUs that see the new round count from 0 on: pairs with the exchange in note(). */
	smp_store_release(&this_round, next ? next : 1);
	return count;
}

static const struct file_operations reached_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = reached_read,
	.write = reached_write,
	.llseek = default_llseek,
};

static struct dentry *folder;

static int __init kfi_coverage_init(void)
{
	int ret;

	reached = vcalloc(REACHED_MAX, sizeof(*reached));
	if (!reached)
		return -ENOMEM;
	ret = register_module_notifier(&module_notifier);
	if (ret) {
		vfree(reached);
		return ret;
	}
	/* Without debugfs there is nothing to read, and the rest goes on. */
	folder = debugfs_create_dir("kfi_coverage", NULL);
	debugfs_create_file("reached", 0600, folder, NULL, &reached_fops);
	return 0;
}

static void __exit kfi_coverage_exit(void)
{
	unsigned int i;

	debugfs_remove(folder);
	unregister_module_notifier(&module_notifier);
	for (i = 0; i < ARRAY_SIZE(regions); i++) {
		print_region(&regions[i]);
		vfree(regions[i].marks);
	}
	vfree(reached);
}

module_init(kfi_coverage_init);
module_exit(kfi_coverage_exit);

MODULE_DESCRIPTION("Notes which code of kfabric has run");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
