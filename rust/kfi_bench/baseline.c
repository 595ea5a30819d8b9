// SPDX-License-Identifier: GPL-2.0
/*
 * The designs that the provider's is compared with. Each is as small as it can
 * be and still right with several threads; each that locks exists twice, with
 * interrupts disabled under the lock, which whatever an interrupt may call
 * needs, and without.
 */
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "design.h"

/* A counter of any of these designs. */
struct counter {
	struct kfid_cntr cntr;
	atomic64_t value ____cacheline_aligned_in_smp;
	/* The smallest threshold in the tree. */
	u64 due;
	spinlock_t lock ____cacheline_aligned_in_smp;
	struct rb_root_cached tree;
	struct list_head list;
};

/* An operation that waits. */
struct entry {
	union {
		struct rb_node node;
		struct list_head link;
	};
	u64 threshold;
	u64 value;
	struct counter *trigger;
	struct kfid_cntr *target;
};

/* The work that is due, of all counters. One thread at a time runs it: no recursion. */
struct run_list {
	spinlock_t lock;
	struct list_head entries;
	bool running;
};

static struct run_list run_list = {
	.lock = __SPIN_LOCK_UNLOCKED(run_list.lock),
	.entries = LIST_HEAD_INIT(run_list.entries),
};

static inline struct counter *counter_of(struct kfid_cntr *cntr)
{
	return container_of(cntr, struct counter, cntr);
}

static __always_inline unsigned long lock(spinlock_t *lock, bool irq)
{
	unsigned long flags = 0;

	if (irq)
		spin_lock_irqsave(lock, flags);
	else
		spin_lock(lock);
	return flags;
}

static __always_inline void unlock(spinlock_t *lock, unsigned long flags, bool irq)
{
	if (irq)
		spin_unlock_irqrestore(lock, flags);
	else
		spin_unlock(lock);
}

static uint64_t counter_read(struct kfid_cntr *cntr)
{
	return atomic64_read(&counter_of(cntr)->value);
}

static int counter_open(struct kfid_cntr **cntr, struct kfi_ops_cntr *ops)
{
	struct counter *c = kzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		return -ENOMEM;
	c->cntr.ops = ops;
	c->due = U64_MAX;
	spin_lock_init(&c->lock);
	c->tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&c->list);
	*cntr = &c->cntr;
	return 0;
}

static void counter_close(struct kfid_cntr *cntr)
{
	kfree(counter_of(cntr));
}

static struct entry *new_entry(struct bench_work *work, struct counter *trigger, u64 threshold,
			       struct kfid_cntr *target)
{
	struct entry *entry = kmalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return NULL;
	entry->threshold = threshold;
	entry->value = 1;
	entry->trigger = trigger;
	entry->target = target;
	work->entry = entry;
	return entry;
}

/* Runs what is due, and all that becomes due by that, in order. */
static __always_inline void run(struct list_head *due, bool irq)
{
	unsigned long flags = lock(&run_list.lock, irq);
	struct entry *entry, *next;
	LIST_HEAD(batch);

	list_splice_tail(due, &run_list.entries);
	if (run_list.running) {
		unlock(&run_list.lock, flags, irq);
		return;
	}
	run_list.running = true;
	while (!list_empty(&run_list.entries)) {
		list_splice_init(&run_list.entries, &batch);
		unlock(&run_list.lock, flags, irq);
		list_for_each_entry_safe(entry, next, &batch, link) {
			kfi_cntr_add(entry->target, entry->value);
			kfree(entry);
		}
		INIT_LIST_HEAD(&batch);
		flags = lock(&run_list.lock, irq);
	}
	run_list.running = false;
	unlock(&run_list.lock, flags, irq);
}

static void free_list(struct list_head *list)
{
	struct entry *entry, *next;

	list_for_each_entry_safe(entry, next, list, link)
		kfree(entry);
}

/* --- an atomic variable ---------------------------------------------------- */

static int atomic_add_op(struct kfid_cntr *cntr, uint64_t value)
{
	atomic64_add_return(value, &counter_of(cntr)->value);
	return 0;
}

/* As in Rust where the kernel's inline functions are calls. */
static noinline u64 atomic_call(u64 value, atomic64_t *variable)
{
	return atomic64_fetch_add(value, variable);
}

static int atomic_call_add(struct kfid_cntr *cntr, uint64_t value)
{
	atomic_call(value, &counter_of(cntr)->value);
	/* No tail call. */
	barrier();
	return 0;
}

/* --- a variable under a lock ----------------------------------------------- */

static __always_inline int locked_add(struct kfid_cntr *cntr, u64 value, bool irq)
{
	struct counter *c = counter_of(cntr);
	unsigned long flags = lock(&c->lock, irq);

	atomic64_set(&c->value, atomic64_read(&c->value) + value);
	unlock(&c->lock, flags, irq);
	return 0;
}

/* --- a list ---------------------------------------------------------------- */

static __always_inline int list_add_op(struct kfid_cntr *cntr, u64 value, bool irq)
{
	struct counter *c = counter_of(cntr);
	struct entry *entry, *next;
	unsigned long flags;
	LIST_HEAD(due);

	value = atomic64_add_return(value, &c->value);
	if (list_empty(&c->list))
		return 0;
	flags = lock(&c->lock, irq);
	list_for_each_entry_safe(entry, next, &c->list, link) {
		if (entry->threshold <= value)
			list_move_tail(&entry->link, &due);
	}
	unlock(&c->lock, flags, irq);
	if (!list_empty(&due))
		run(&due, irq);
	return 0;
}

static __always_inline int list_submit(struct bench_work *work, struct kfid_cntr *trigger,
				       u64 threshold, struct kfid_cntr *target, bool irq)
{
	struct counter *c = counter_of(trigger);
	struct entry *entry = new_entry(work, c, threshold, target);
	unsigned long flags;

	if (!entry)
		return -ENOMEM;
	flags = lock(&c->lock, irq);
	list_add_tail(&entry->link, &c->list);
	unlock(&c->lock, flags, irq);
	/* Between the entry and the value; an addition is a full barrier in between, too. */
	smp_mb();
	if (atomic64_read(&c->value) >= threshold)
		list_add_op(trigger, 0, irq);
	return 0;
}

static __always_inline int list_cancel(struct bench_work *work, bool irq)
{
	struct entry *entry = work->entry;
	struct counter *c = entry->trigger;
	unsigned long flags = lock(&c->lock, irq);

	list_del(&entry->link);
	unlock(&c->lock, flags, irq);
	kfree(entry);
	return 0;
}

static __always_inline int list_flush(struct kfid_cntr *cntr, bool irq)
{
	struct counter *c = counter_of(cntr);
	unsigned long flags;
	LIST_HEAD(list);

	flags = lock(&c->lock, irq);
	list_splice_init(&c->list, &list);
	unlock(&c->lock, flags, irq);
	free_list(&list);
	return 0;
}

/* --- a list in the order of thresholds ------------------------------------- */

static __always_inline int sorted_add(struct kfid_cntr *cntr, u64 value, bool irq)
{
	struct counter *c = counter_of(cntr);
	struct entry *entry, *next;
	unsigned long flags;
	LIST_HEAD(due);

	value = atomic64_add_return(value, &c->value);
	if (list_empty(&c->list))
		return 0;
	flags = lock(&c->lock, irq);
	list_for_each_entry_safe(entry, next, &c->list, link) {
		if (entry->threshold > value)
			break;
		list_move_tail(&entry->link, &due);
	}
	unlock(&c->lock, flags, irq);
	if (!list_empty(&due))
		run(&due, irq);
	return 0;
}

static __always_inline int sorted_submit(struct bench_work *work, struct kfid_cntr *trigger,
					 u64 threshold, struct kfid_cntr *target, bool irq)
{
	struct counter *c = counter_of(trigger);
	struct entry *entry = new_entry(work, c, threshold, target), *at;
	unsigned long flags;

	if (!entry)
		return -ENOMEM;
	flags = lock(&c->lock, irq);
	list_for_each_entry_reverse(at, &c->list, link) {
		if (at->threshold <= threshold)
			break;
	}
	list_add(&entry->link, &at->link);
	unlock(&c->lock, flags, irq);
	/* Between the entry and the value; an addition is a full barrier in between, too. */
	smp_mb();
	if (atomic64_read(&c->value) >= threshold)
		sorted_add(trigger, 0, irq);
	return 0;
}

/* --- a tree and its smallest threshold -------------------------------------- */

static bool before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct entry, node)->threshold <
	       rb_entry(b, struct entry, node)->threshold;
}

/* Under the lock. */
static __always_inline void publish(struct counter *c)
{
	struct rb_node *first = rb_first_cached(&c->tree);

	WRITE_ONCE(c->due, first ? rb_entry(first, struct entry, node)->threshold : U64_MAX);
}

static __always_inline void tree_attend(struct counter *c, bool irq)
{
	unsigned long flags = lock(&c->lock, irq);
	u64 value = atomic64_read(&c->value);
	struct rb_node *node;
	struct entry *entry;
	LIST_HEAD(due);

	while ((node = rb_first_cached(&c->tree))) {
		entry = rb_entry(node, struct entry, node);
		if (entry->threshold > value)
			break;
		rb_erase_cached(node, &c->tree);
		list_add_tail(&entry->link, &due);
	}
	publish(c);
	unlock(&c->lock, flags, irq);
	if (!list_empty(&due))
		run(&due, irq);
}

static noinline void tree_attend_irq(struct counter *c)
{
	tree_attend(c, true);
}

static noinline void tree_attend_plain(struct counter *c)
{
	tree_attend(c, false);
}

static __always_inline int tree_add(struct kfid_cntr *cntr, u64 value, bool irq)
{
	struct counter *c = counter_of(cntr);

	if (unlikely(atomic64_add_return(value, &c->value) >= READ_ONCE(c->due)))
		irq ? tree_attend_irq(c) : tree_attend_plain(c);
	return 0;
}

static __always_inline int tree_submit(struct bench_work *work, struct kfid_cntr *trigger,
				       u64 threshold, struct kfid_cntr *target, bool irq)
{
	struct counter *c = counter_of(trigger);
	struct entry *entry = new_entry(work, c, threshold, target);
	unsigned long flags;

	if (!entry)
		return -ENOMEM;
	flags = lock(&c->lock, irq);
	rb_add_cached(&entry->node, &c->tree, before);
	publish(c);
	unlock(&c->lock, flags, irq);
	/* Between the entry and the value; an addition is a full barrier in between, too. */
	smp_mb();
	if (atomic64_read(&c->value) >= threshold)
		tree_attend(c, irq);
	return 0;
}

static __always_inline int tree_cancel(struct bench_work *work, bool irq)
{
	struct entry *entry = work->entry;
	struct counter *c = entry->trigger;
	unsigned long flags = lock(&c->lock, irq);

	rb_erase_cached(&entry->node, &c->tree);
	publish(c);
	unlock(&c->lock, flags, irq);
	kfree(entry);
	return 0;
}

static __always_inline int tree_flush(struct kfid_cntr *cntr, bool irq)
{
	struct counter *c = counter_of(cntr);
	struct rb_root_cached tree;
	struct entry *entry, *next;
	unsigned long flags;

	flags = lock(&c->lock, irq);
	tree = c->tree;
	c->tree = RB_ROOT_CACHED;
	publish(c);
	unlock(&c->lock, flags, irq);
	rbtree_postorder_for_each_entry_safe(entry, next, &tree.rb_root, node)
		kfree(entry);
	return 0;
}

/* --- with interrupts disabled, and without ---------------------------------- */

#define DEFINE_ADD(id, function, irq)						\
	static int id##_add(struct kfid_cntr *cntr, uint64_t value)		\
	{									\
		return function(cntr, value, irq);				\
	}									\
	static struct kfi_ops_cntr id##_ops = {					\
		.size = sizeof(struct kfi_ops_cntr),				\
		.read = counter_read,						\
		.add = id##_add,						\
	};									\
	static int id##_open(struct kfid_cntr **cntr)				\
	{									\
		return counter_open(cntr, &id##_ops);				\
	}

#define DEFINE_WORK(id, kind, other, irq)					\
	static int id##_submit(struct bench_work *work, struct kfid_cntr *trigger, \
			       u64 threshold, struct kfid_cntr *target)		\
	{									\
		return kind##_submit(work, trigger, threshold, target, irq);	\
	}									\
	static int id##_cancel(struct bench_work *work)				\
	{									\
		return other##_cancel(work, irq);				\
	}									\
	static int id##_flush(struct kfid_cntr *cntr)				\
	{									\
		return other##_flush(cntr, irq);				\
	}

#define DESIGN(id) .open = id##_open, .close = counter_close
#define DESIGN_WITH_WORK(id) DESIGN(id), .submit = id##_submit, .cancel = id##_cancel, \
	.flush = id##_flush

static struct kfi_ops_cntr atomic_ops = {
	.size = sizeof(struct kfi_ops_cntr),
	.read = counter_read,
	.add = atomic_add_op,
};

static int atomic_open(struct kfid_cntr **cntr)
{
	return counter_open(cntr, &atomic_ops);
}

static struct kfi_ops_cntr atomic_call_ops = {
	.size = sizeof(struct kfi_ops_cntr),
	.read = counter_read,
	.add = atomic_call_add,
};

static int atomic_call_open(struct kfid_cntr **cntr)
{
	return counter_open(cntr, &atomic_call_ops);
}

DEFINE_ADD(locked_irq, locked_add, true)
DEFINE_ADD(locked_plain, locked_add, false)
DEFINE_ADD(list_irq, list_add_op, true)
DEFINE_ADD(list_plain, list_add_op, false)
DEFINE_ADD(sorted_irq, sorted_add, true)
DEFINE_ADD(sorted_plain, sorted_add, false)
DEFINE_ADD(tree_irq, tree_add, true)
DEFINE_ADD(tree_plain, tree_add, false)

DEFINE_WORK(list_irq, list, list, true)
DEFINE_WORK(list_plain, list, list, false)
DEFINE_WORK(sorted_irq, sorted, list, true)
DEFINE_WORK(sorted_plain, sorted, list, false)
DEFINE_WORK(tree_irq, tree, tree, true)
DEFINE_WORK(tree_plain, tree, tree, false)

const struct bench_design bench_atomic = { .name = "atomic", DESIGN(atomic) };
const struct bench_design bench_atomic_call = { .name = "atomic by call", DESIGN(atomic_call) };
const struct bench_design bench_locked_irq = { .name = "locked irq", DESIGN(locked_irq) };
const struct bench_design bench_locked = { .name = "locked", DESIGN(locked_plain) };
const struct bench_design bench_list_irq = {
	.name = "list irq", .linear_add = true, DESIGN_WITH_WORK(list_irq)
};
const struct bench_design bench_list = {
	.name = "list", .linear_add = true, DESIGN_WITH_WORK(list_plain)
};
const struct bench_design bench_sorted_irq = {
	.name = "sorted irq", .linear_submit = true, DESIGN_WITH_WORK(sorted_irq)
};
const struct bench_design bench_sorted = {
	.name = "sorted", .linear_submit = true, DESIGN_WITH_WORK(sorted_plain)
};
const struct bench_design bench_tree_irq = { .name = "tree irq", DESIGN_WITH_WORK(tree_irq) };
const struct bench_design bench_tree = { .name = "tree", DESIGN_WITH_WORK(tree_plain) };
