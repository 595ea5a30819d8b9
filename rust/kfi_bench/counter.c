// SPDX-License-Identifier: GPL-2.0
/*
 * Additions, with nothing due.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "design.h"
#include "rig.h"

/* Never reached. */
#define FAR (1ULL << 62)
/* Short enough that most are not disturbed, and many. */
#define LAPS 20U

static int soft_open(struct kfid_cntr **cntr)
{
	return bench_open_cntr(NULL, cntr);
}

static void soft_close(struct kfid_cntr *cntr)
{
	kfi_close(&cntr->fid);
}

static int soft_submit(struct bench_work *work, struct kfid_cntr *trigger, u64 threshold,
		       struct kfid_cntr *target)
{
	work->op = (struct kfi_op_cntr) { .cntr = target, .value = 1 };
	work->work.threshold = threshold;
	work->work.triggering_cntr = trigger;
	work->work.completion_cntr = NULL;
	work->work.op_type = KFI_OP_CNTR_ADD;
	work->work.op.cntr = &work->op;
	return kfi_control(&bench_domain->fid, KFI_QUEUE_WORK, &work->work);
}

static int soft_cancel(struct bench_work *work)
{
	return kfi_control(&bench_domain->fid, KFI_CANCEL_WORK, &work->work);
}

static int soft_flush(struct kfid_cntr *cntr)
{
	return kfi_control(&bench_domain->fid, KFI_FLUSH_WORK, cntr);
}

const struct bench_design bench_kfi_soft = {
	.name = "kfi_soft",
	.open = soft_open,
	.close = soft_close,
	.submit = soft_submit,
	.cancel = soft_cancel,
	.flush = soft_flush,
};

static u32 additions(const struct bench_design *design, u64 pending)
{
	return design->linear_add ? max(2000000 / (pending + 2), 20ULL) : 1000000;
}

/* Two counters, and what is pending on the first. */
struct loaded {
	struct kfid_cntr *cntrs[2];
	struct bench_work *works;
};

static void unload(const struct bench_design *design, struct loaded *l)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (l->cntrs[i] && design->flush)
			design->flush(l->cntrs[i]);
	}
	for (i = 0; i < 2; i++) {
		if (l->cntrs[i])
			design->close(l->cntrs[i]);
	}
	kvfree(l->works);
}

static int load(const struct bench_design *design, struct loaded *l, u64 pending)
{
	int ret = 0;
	u32 i;

	*l = (struct loaded) {};
	for (i = 0; i < 2 && !ret; i++)
		ret = design->open(&l->cntrs[i]);
	if (!ret && pending) {
		l->works = kvcalloc(pending, sizeof(*l->works), GFP_KERNEL);
		ret = l->works ? 0 : -ENOMEM;
		for (i = 0; i < pending && !ret; i++)
			ret = design->submit(&l->works[i], l->cntrs[0], FAR + i, l->cntrs[1]);
	}
	if (ret)
		unload(design, l);
	return ret;
}

static int add(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct bench_design *design = c->design_data;
	u32 i, lap, count = additions(design, c->size) / LAPS;
	struct bench_laps laps;
	struct kfid_cntr *cntr;
	struct loaded l;
	int ret;

	ret = load(design, &l, c->size);
	if (ret)
		return ret;
	cntr = l.cntrs[0];
	bench_begin(&laps);
	for (lap = 0; lap < LAPS; lap++) {
		for (i = 0; i < count; i++)
			kfi_cntr_add(cntr, 1);
		bench_lap(&laps);
		cond_resched();
	}
	bench_end(&laps, count, sample);
	ret = kfi_cntr_read(cntr) == LAPS * count ? 0 : -EIO;
	unload(design, &l);
	return ret;
}

struct adder {
	struct kfid_cntr *cntr;
	u32 count;
	struct bench_laps laps;
};

static int add_many(void *data)
{
	struct adder *adder = data;
	u32 i, lap;

	bench_begin(&adder->laps);
	for (lap = 0; lap < LAPS; lap++) {
		for (i = 0; i < adder->count; i++)
			kfi_cntr_add(adder->cntr, 1);
		bench_lap(&adder->laps);
		/* Other threads of the CPU have to live, too. */
		cond_resched();
	}
	return 0;
}

/* Two CPUs, @apart: each with its own counter. */
static int add_two(const struct kfi_bench_case *c, struct kfi_bench_sample *sample, bool apart)
{
	const struct bench_design *design = c->design_data;
	u32 count = additions(design, c->size) / LAPS;
	struct adder *adders = kcalloc(2, sizeof(*adders), GFP_KERNEL);
	struct loaded l;
	int ret;

	if (!adders)
		return -ENOMEM;
	ret = load(design, &l, c->size);
	if (ret)
		goto free;
	adders[0].cntr = l.cntrs[0];
	adders[1].cntr = l.cntrs[apart];
	adders[0].count = adders[1].count = count;
	ret = bench_on_cpus((unsigned int []) { 0, 1 }, add_many,
			    (void *[]) { &adders[0], &adders[1] });
	bench_end(&adders[0].laps, count, sample);
	if (!ret && kfi_cntr_read(l.cntrs[0]) != (apart ? 1ULL : 2ULL) * LAPS * count)
		ret = -EIO;
	unload(design, &l);
free:
	kfree(adders);
	return ret;
}

static int add_contended(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return add_two(c, sample, false);
}

static int add_apart(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return add_two(c, sample, true);
}

#define ADD(title, of, pending) \
	{ .item = "add", .design = title, .unit = "ns", .size = pending, .run = add, \
	  .design_data = &(of) }
#define TWO(title, of, pending) \
	{ .item = "add, two CPUs", .design = title, .unit = "ns", .size = pending, \
	  .run = add_contended, .design_data = &(of) }
#define APART(title, of) \
	{ .item = "add, two CPUs", .design = title " apart", .unit = "ns", .run = add_apart, \
	  .design_data = &(of) }

const struct kfi_bench_case bench_counter_cases[] = {
	ADD("atomic", bench_atomic, 0),
	ADD("atomic by call", bench_atomic_call, 0),
	ADD("locked irq", bench_locked_irq, 0),
	ADD("locked", bench_locked, 0),
	ADD("kfi_soft", bench_kfi_soft, 0),
	ADD("kfi_soft", bench_kfi_soft, 1),
	ADD("kfi_soft", bench_kfi_soft, 10),
	ADD("kfi_soft", bench_kfi_soft, 100),
	ADD("kfi_soft", bench_kfi_soft, 1000),
	ADD("kfi_soft", bench_kfi_soft, 10000),
	ADD("kfi_soft", bench_kfi_soft, 100000),
	ADD("tree irq", bench_tree_irq, 0),
	ADD("tree irq", bench_tree_irq, 1),
	ADD("tree irq", bench_tree_irq, 10),
	ADD("tree irq", bench_tree_irq, 100),
	ADD("tree irq", bench_tree_irq, 1000),
	ADD("tree irq", bench_tree_irq, 10000),
	ADD("tree irq", bench_tree_irq, 100000),
	ADD("tree", bench_tree, 0),
	ADD("tree", bench_tree, 1),
	ADD("tree", bench_tree, 10),
	ADD("tree", bench_tree, 100),
	ADD("tree", bench_tree, 1000),
	ADD("tree", bench_tree, 10000),
	ADD("tree", bench_tree, 100000),
	ADD("sorted irq", bench_sorted_irq, 0),
	ADD("sorted irq", bench_sorted_irq, 1),
	ADD("sorted irq", bench_sorted_irq, 10),
	ADD("sorted irq", bench_sorted_irq, 100),
	ADD("sorted irq", bench_sorted_irq, 1000),
	ADD("sorted irq", bench_sorted_irq, 10000),
	ADD("sorted irq", bench_sorted_irq, 100000),
	ADD("sorted", bench_sorted, 0),
	ADD("sorted", bench_sorted, 1),
	ADD("sorted", bench_sorted, 10),
	ADD("sorted", bench_sorted, 100),
	ADD("sorted", bench_sorted, 1000),
	ADD("sorted", bench_sorted, 10000),
	ADD("sorted", bench_sorted, 100000),
	ADD("list irq", bench_list_irq, 0),
	ADD("list irq", bench_list_irq, 1),
	ADD("list irq", bench_list_irq, 10),
	ADD("list irq", bench_list_irq, 100),
	ADD("list irq", bench_list_irq, 1000),
	ADD("list irq", bench_list_irq, 10000),
	ADD("list irq", bench_list_irq, 100000),
	ADD("list", bench_list, 0),
	ADD("list", bench_list, 1),
	ADD("list", bench_list, 10),
	ADD("list", bench_list, 100),
	ADD("list", bench_list, 1000),
	ADD("list", bench_list, 10000),
	ADD("list", bench_list, 100000),

	APART("atomic", bench_atomic),
	APART("kfi_soft", bench_kfi_soft),
	TWO("atomic", bench_atomic, 0),
	TWO("locked irq", bench_locked_irq, 0),
	TWO("locked", bench_locked, 0),
	TWO("kfi_soft", bench_kfi_soft, 0),
	TWO("kfi_soft", bench_kfi_soft, 100000),
	TWO("tree irq", bench_tree_irq, 100000),
	TWO("tree", bench_tree, 100000),
	{}
};
