// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that wait for counters: submitted, cancelled, flushed, fired.
 */
#include <linux/minmax.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "design.h"
#include "rig.h"

#define FAR (1ULL << 62)
/* Between thresholds of what is pending, so that there is room for more. */
#define SPACE 1024ULL
/* Submissions and cancellations that are timed together. */
#define LAP 50U
/* Not more: to close one takes as long as RCU does. */
#define CHAIN_CNTRS 200U
#define FAN_CNTRS 50U
#define TIMEOUT_MS 60000
/* Times that a CPU submits some and has them fired. */
#define FIRE_LAPS 100U

struct set {
	const struct bench_design *design;
	struct kfid_cntr **cntrs;
	u32 cntr_count;
	struct bench_work *works;
	u32 *order;
};

static void close_set(struct set *s)
{
	u32 i;

	/* First all that makes counters busy. */
	for (i = 0; s->cntrs && i < s->cntr_count; i++) {
		if (s->cntrs[i])
			s->design->flush(s->cntrs[i]);
	}
	for (i = 0; s->cntrs && i < s->cntr_count; i++) {
		if (s->cntrs[i])
			s->design->close(s->cntrs[i]);
	}
	kvfree(s->cntrs);
	kvfree(s->works);
	kvfree(s->order);
}

static int open_set(struct set *s, const struct bench_design *design, u32 cntrs, u32 works)
{
	int ret = 0;
	u32 i;

	*s = (struct set) { .design = design, .cntr_count = cntrs };
	s->cntrs = kvcalloc(cntrs, sizeof(*s->cntrs), GFP_KERNEL);
	s->works = kvcalloc(works, sizeof(*s->works), GFP_KERNEL);
	s->order = kvcalloc(works, sizeof(*s->order), GFP_KERNEL);
	if (!s->cntrs || !s->works || !s->order)
		ret = -ENOMEM;
	for (i = 0; i < cntrs && !ret; i++)
		ret = design->open(&s->cntrs[i]);
	if (ret)
		close_set(s);
	else
		bench_shuffle(s->order, works);
	return ret;
}

/* Far and in random order, or in the order in which linear designs are quick. */
static int fill(struct set *s, u32 count, bool increasing)
{
	int ret = 0;
	u32 i, at;

	for (i = 0; i < count && !ret; i++) {
		at = increasing || s->design->linear_submit ? i : s->order[i] % count;
		ret = s->design->submit(&s->works[i], s->cntrs[0], FAR + at * SPACE, s->cntrs[1]);
		if (!(i % 1024))
			cond_resched();
	}
	return ret;
}

static int submit(const struct kfi_bench_case *c, struct kfi_bench_sample *sample, bool increasing)
{
	const struct bench_design *design = c->design_data;
	u32 i, pending = c->size, state = 88172645U, count;
	struct bench_laps laps;
	u64 *thresholds;
	struct set s;
	int ret;

	count = design->linear_submit && pending > 10000 ? LAP : 1000;
	ret = open_set(&s, design, 2, pending + count);
	if (ret)
		return ret;
	thresholds = kvcalloc(count, sizeof(*thresholds), GFP_KERNEL);
	ret = thresholds ? fill(&s, pending, increasing) : -ENOMEM;
	if (ret)
		goto close;
	for (i = 0; i < count; i++)
		thresholds[i] = increasing ? FAR + (pending + i) * SPACE :
			FAR + bench_random(&state) % (pending * SPACE);
	bench_begin(&laps);
	for (i = 0; i < count && !ret; i++) {
		ret = design->submit(&s.works[pending + i], s.cntrs[0], thresholds[i], s.cntrs[1]);
		if (i % LAP == LAP - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, LAP, sample);
close:
	kvfree(thresholds);
	close_set(&s);
	return ret;
}

static int submit_increasing(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return submit(c, sample, true);
}

static int submit_random(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return submit(c, sample, false);
}

static int cancel_random(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct bench_design *design = c->design_data;
	u32 i, count = min(c->size / 2, 5000ULL);
	struct bench_laps laps;
	struct set s;
	int ret;

	ret = open_set(&s, design, 2, c->size);
	if (ret)
		return ret;
	ret = fill(&s, c->size, true);
	bench_begin(&laps);
	for (i = 0; i < count && !ret; i++) {
		ret = design->cancel(&s.works[s.order[i]]);
		if (i % LAP == LAP - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, LAP, sample);
	close_set(&s);
	return ret;
}

static int flush(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct bench_design *design = c->design_data;
	struct set s;
	u64 start;
	int ret;

	ret = open_set(&s, design, 2, c->size);
	if (ret)
		return ret;
	ret = fill(&s, c->size, false);
	start = bench_now();
	if (!ret)
		ret = design->flush(s.cntrs[0]);
	sample->total = bench_now() - start;
	sample->count = c->size;
	close_set(&s);
	return ret;
}

/* Adds, and waits until the last counter has its value. */
static int release(struct kfid_cntr *first, u64 value, struct kfid_cntr *last, u64 wanted,
		   struct kfi_bench_sample *sample)
{
	u64 start = bench_now();
	int ret = 0;

	kfi_cntr_add(first, value);
	/* The provider leaves to another thread what would take too long. */
	if (kfi_cntr_read(last) < wanted)
		ret = last->ops->wait ? kfi_cntr_wait(last, wanted, TIMEOUT_MS) : -EIO;
	sample->total = bench_now() - start;
	return ret;
}

static int fire(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct bench_design *design = c->design_data;
	struct set s;
	int ret;
	u32 i;

	ret = open_set(&s, design, 2, c->size);
	if (ret)
		return ret;
	for (i = 0; i < c->size && !ret; i++)
		ret = design->submit(&s.works[i], s.cntrs[0], i + 1, s.cntrs[1]);
	if (!ret)
		ret = release(s.cntrs[0], c->size, s.cntrs[1], c->size, sample);
	sample->count = c->size;
	close_set(&s);
	return ret;
}

/* Round and round through some counters. */
static int chain(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct bench_design *design = c->design_data;
	struct set s;
	int ret;
	u32 i;

	ret = open_set(&s, design, CHAIN_CNTRS, c->size);
	if (ret)
		return ret;
	for (i = 0; i < c->size && !ret; i++)
		ret = design->submit(&s.works[i], s.cntrs[i % CHAIN_CNTRS], i / CHAIN_CNTRS + 1,
				     s.cntrs[(i + 1) % CHAIN_CNTRS]);
	if (!ret)
		ret = release(s.cntrs[0], 1, s.cntrs[0], c->size / CHAIN_CNTRS + 1, sample);
	sample->count = c->size;
	close_set(&s);
	return ret;
}

static int fan_out(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct bench_design *design = c->design_data;
	struct set s;
	int ret;
	u32 i;

	ret = open_set(&s, design, FAN_CNTRS + 1, c->size);
	if (ret)
		return ret;
	for (i = 0; i < c->size && !ret; i++)
		ret = design->submit(&s.works[i], s.cntrs[FAN_CNTRS], 1, s.cntrs[i % FAN_CNTRS]);
	if (!ret)
		ret = release(s.cntrs[FAN_CNTRS], 1, s.cntrs[FAN_CNTRS - 1],
			      c->size / FAN_CNTRS, sample);
	sample->count = c->size;
	close_set(&s);
	return ret;
}

/* --- two CPUs ------------------------------------------------------------------ */

/* One of them, with counters of its own, in the domain of both. */
struct firer {
	struct kfid_cntr *cntrs[2];
	struct bench_work *works;
	struct bench_laps laps;
};

/* Another thread may run what is due. */
static int wait_until(struct kfid_cntr *cntr, u64 value)
{
	u64 end = bench_now() + TIMEOUT_MS * NSEC_PER_MSEC;

	while (kfi_cntr_read(cntr) < value) {
		if (bench_now() > end)
			return -ETIMEDOUT;
		cpu_relax();
		cond_resched();
	}
	return 0;
}

/* Submits some and has them fired, over and over. */
static int fire_laps(void *data)
{
	struct firer *firer = data;
	u32 i, lap, at = 0;
	int ret = 0;

	bench_begin(&firer->laps);
	for (lap = 0; lap < FIRE_LAPS && !ret; lap++) {
		for (i = 0; i < LAP && !ret; i++, at++)
			ret = bench_kfi_soft.submit(&firer->works[at], firer->cntrs[0], at + 1,
						    firer->cntrs[1]);
		if (!ret)
			ret = kfi_cntr_add(firer->cntrs[0], LAP);
		if (!ret)
			ret = wait_until(firer->cntrs[1], at);
		bench_lap(&firer->laps);
		/* Other threads of the CPU have to live, too. */
		cond_resched();
	}
	return ret;
}

static void close_firers(struct firer *firers)
{
	u32 i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < 2; k++) {
			if (!firers[i].cntrs[k])
				continue;
			bench_kfi_soft.flush(firers[i].cntrs[k]);
			bench_kfi_soft.close(firers[i].cntrs[k]);
		}
		kvfree(firers[i].works);
	}
	kfree(firers);
}

static int submit_and_fire(const struct kfi_bench_case *c, struct kfi_bench_sample *sample,
			   bool both)
{
	struct firer *firers = kcalloc(2, sizeof(*firers), GFP_KERNEL);
	struct kfi_bench_sample other;
	int ret = firers ? 0 : -ENOMEM;
	u32 i, k;

	if (ret)
		return ret;
	for (i = 0; i < 2 && !ret; i++) {
		firers[i].works = kvcalloc(FIRE_LAPS * LAP, sizeof(*firers[i].works), GFP_KERNEL);
		ret = firers[i].works ? 0 : -ENOMEM;
		for (k = 0; k < 2 && !ret; k++)
			ret = bench_kfi_soft.open(&firers[i].cntrs[k]);
	}
	if (!ret && both)
		ret = bench_on_cpus((unsigned int []) { 0, 1 }, fire_laps,
				    (void *[]) { &firers[0], &firers[1] });
	else if (!ret)
		ret = fire_laps(&firers[0]);
	if (!ret) {
		bench_end(&firers[0].laps, LAP, sample);
		if (both) {
			/* In the time of the slower one there are as many of each. */
			bench_end(&firers[1].laps, LAP, &other);
			sample->total = max(sample->total, other.total);
			sample->count = 2 * LAP;
		}
	}
	close_firers(firers);
	return ret;
}

static int fire_on_one(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return submit_and_fire(c, sample, false);
}

static int fire_on_two(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return submit_and_fire(c, sample, true);
}

#define CASE(title, name, of, pending, function) \
	{ .item = title, .design = name, .unit = "ns", .size = pending, .run = function, \
	  .design_data = &(of) }
const struct kfi_bench_case bench_trigger_cases[] = {
	CASE("submit increasing", "kfi_soft", bench_kfi_soft, 1000, submit_increasing),
	CASE("submit increasing", "kfi_soft", bench_kfi_soft, 100000, submit_increasing),
	CASE("submit increasing", "tree irq", bench_tree_irq, 1000, submit_increasing),
	CASE("submit increasing", "tree irq", bench_tree_irq, 100000, submit_increasing),
	CASE("submit increasing", "tree", bench_tree, 1000, submit_increasing),
	CASE("submit increasing", "tree", bench_tree, 100000, submit_increasing),
	CASE("submit increasing", "sorted irq", bench_sorted_irq, 1000, submit_increasing),
	CASE("submit increasing", "sorted irq", bench_sorted_irq, 100000, submit_increasing),
	CASE("submit increasing", "sorted", bench_sorted, 1000, submit_increasing),
	CASE("submit increasing", "sorted", bench_sorted, 100000, submit_increasing),
	CASE("submit increasing", "list irq", bench_list_irq, 1000, submit_increasing),
	CASE("submit increasing", "list irq", bench_list_irq, 100000, submit_increasing),
	CASE("submit increasing", "list", bench_list, 1000, submit_increasing),
	CASE("submit increasing", "list", bench_list, 100000, submit_increasing),
	CASE("submit random", "kfi_soft", bench_kfi_soft, 1000, submit_random),
	CASE("submit random", "kfi_soft", bench_kfi_soft, 100000, submit_random),
	CASE("submit random", "tree irq", bench_tree_irq, 1000, submit_random),
	CASE("submit random", "tree irq", bench_tree_irq, 100000, submit_random),
	CASE("submit random", "tree", bench_tree, 1000, submit_random),
	CASE("submit random", "tree", bench_tree, 100000, submit_random),
	CASE("submit random", "sorted irq", bench_sorted_irq, 1000, submit_random),
	CASE("submit random", "sorted irq", bench_sorted_irq, 100000, submit_random),
	CASE("submit random", "sorted", bench_sorted, 1000, submit_random),
	CASE("submit random", "sorted", bench_sorted, 100000, submit_random),
	CASE("submit random", "list irq", bench_list_irq, 1000, submit_random),
	CASE("submit random", "list irq", bench_list_irq, 100000, submit_random),
	CASE("submit random", "list", bench_list, 1000, submit_random),
	CASE("submit random", "list", bench_list, 100000, submit_random),
	CASE("cancel random", "kfi_soft", bench_kfi_soft, 1000, cancel_random),
	CASE("cancel random", "tree irq", bench_tree_irq, 1000, cancel_random),
	CASE("cancel random", "tree", bench_tree, 1000, cancel_random),
	CASE("cancel random", "kfi_soft", bench_kfi_soft, 100000, cancel_random),
	CASE("cancel random", "tree irq", bench_tree_irq, 100000, cancel_random),
	CASE("cancel random", "tree", bench_tree, 100000, cancel_random),
	CASE("flush", "kfi_soft", bench_kfi_soft, 100000, flush),
	CASE("flush", "tree irq", bench_tree_irq, 100000, flush),
	CASE("flush", "tree", bench_tree, 100000, flush),
	/* The fewer ones are run by whoever adds, the many by others in part. */
	CASE("fire", "kfi_soft", bench_kfi_soft, 4000, fire),
	CASE("fire", "tree irq", bench_tree_irq, 4000, fire),
	CASE("fire", "tree", bench_tree, 4000, fire),
	CASE("fire", "kfi_soft", bench_kfi_soft, 100000, fire),
	CASE("fire", "tree irq", bench_tree_irq, 100000, fire),
	CASE("fire", "tree", bench_tree, 100000, fire),
	CASE("chain", "kfi_soft", bench_kfi_soft, 4000, chain),
	CASE("chain", "tree irq", bench_tree_irq, 4000, chain),
	CASE("chain", "tree", bench_tree, 4000, chain),
	CASE("chain", "kfi_soft", bench_kfi_soft, 100000, chain),
	CASE("chain", "tree irq", bench_tree_irq, 100000, chain),
	CASE("chain", "tree", bench_tree, 100000, chain),
	CASE("submit and fire", "one CPU", bench_kfi_soft, 0, fire_on_one),
	CASE("submit and fire", "two CPUs", bench_kfi_soft, 0, fire_on_two),
	CASE("fan-out", "kfi_soft", bench_kfi_soft, 4000, fan_out),
	CASE("fan-out", "tree irq", bench_tree_irq, 4000, fan_out),
	CASE("fan-out", "tree", bench_tree, 4000, fan_out),
	CASE("fan-out", "kfi_soft", bench_kfi_soft, 10000, fan_out),
	CASE("fan-out", "tree irq", bench_tree_irq, 10000, fan_out),
	CASE("fan-out", "tree", bench_tree, 10000, fan_out),
	{}
};
