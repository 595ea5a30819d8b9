// SPDX-License-Identifier: GPL-2.0
/*
 * Memory: what kmalloc and vmalloc occupy more of after many objects were made.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>

#include <kfi_endpoint.h>

#include "design.h"
#include "rig.h"

#define FAR (1ULL << 62)

/* Free memory says less: CPUs keep lists of free pages of their own. */
u64 bench_used_memory(void)
{
	/* So that all that was freed before is free now. */
	rcu_barrier();
	msleep(20);
	return (u64)(global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B) +
		     global_node_page_state_pages(NR_VMALLOC)) << PAGE_SHIFT;
}

static void note(struct kfi_bench_sample *sample, u64 before, u64 after, u64 count)
{
	sample->total = after > before ? after - before : 0;
	sample->count = count;
}

/*
 * Memory that was freed before may be kept for the next objects, so that as many
 * come first as are then measured; and in a domain of their own, as a domain
 * keeps some memory until it is closed.
 */
static int in_new_domain(int (*run)(const struct kfi_bench_case *c,
				    struct kfi_bench_sample *sample),
			 const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct kfid_domain *domain, *old = bench_domain;
	int ret = kfi_domain(bench_fabric, bench_info, &domain, NULL);

	if (ret)
		return ret;
	bench_domain = domain;
	ret = run(c, sample);
	bench_domain = old;
	kfi_close(&domain->fid);
	return ret;
}

static int open_counters(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct kfid_cntr **cntrs = kvcalloc(2 * c->size, sizeof(*cntrs), GFP_KERNEL);
	u64 before = 0;
	int ret = 0;
	u32 i;

	if (!cntrs)
		return -ENOMEM;
	for (i = 0; i < 2 * c->size && !ret; i++) {
		if (i == c->size)
			before = bench_used_memory();
		ret = bench_open_cntr(NULL, &cntrs[i]);
	}
	note(sample, before, bench_used_memory(), c->size);
	for (i = 0; i < 2 * c->size && cntrs[i]; i++)
		kfi_close(&cntrs[i]->fid);
	kvfree(cntrs);
	return ret;
}

static int counters(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return in_new_domain(open_counters, c, sample);
}

static int submit_pending(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct bench_work *works = kvcalloc(2 * c->size, sizeof(*works), GFP_KERNEL);
	const struct bench_design *design = c->design_data;
	struct kfid_cntr *cntrs[2] = {};
	int ret = works ? 0 : -ENOMEM;
	u64 before = 0;
	u32 i;

	for (i = 0; i < 2 && !ret; i++)
		ret = design->open(&cntrs[i]);
	for (i = 0; i < 2 * c->size && !ret; i++) {
		if (i == c->size)
			before = bench_used_memory();
		ret = design->submit(&works[i], cntrs[0], FAR + i, cntrs[1]);
	}
	note(sample, before, bench_used_memory(), c->size);
	for (i = 0; i < 2; i++) {
		if (cntrs[i])
			design->flush(cntrs[i]);
	}
	for (i = 0; i < 2; i++) {
		if (cntrs[i])
			design->close(cntrs[i]);
	}
	kvfree(works);
	return ret;
}

static int pending(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return in_new_domain(submit_pending, c, sample);
}

/* Enabled, without the queue and the address vector, which they share. */
static int open_endpoints(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct kfi_cq_attr cq_attr = { .format = KFI_CQ_FORMAT_CONTEXT, .size = 1024 };
	struct kfid_ep **eps = kvcalloc(2 * c->size, sizeof(*eps), GFP_KERNEL);
	struct kfi_av_attr av_attr = {};
	int ret = eps ? 0 : -ENOMEM;
	struct kfid_cq *cq = NULL;
	struct kfid_av *av = NULL;
	u64 before = 0;
	u32 i;

	if (!ret)
		ret = kfi_cq_open(bench_domain, &cq_attr, &cq, NULL, NULL);
	if (!ret)
		ret = kfi_av_open(bench_domain, &av_attr, &av, NULL);
	for (i = 0; i < 2 * c->size && !ret; i++) {
		if (i == c->size)
			before = bench_used_memory();
		ret = kfi_endpoint(bench_domain, bench_info, &eps[i], NULL);
		if (!ret)
			ret = kfi_ep_bind(eps[i], &cq->fid, KFI_TRANSMIT | KFI_RECV);
		if (!ret)
			ret = kfi_ep_bind(eps[i], &av->fid, 0);
		if (!ret)
			ret = kfi_enable(eps[i]);
	}
	note(sample, before, bench_used_memory(), c->size);
	for (i = 0; eps && i < 2 * c->size; i++) {
		if (eps[i])
			kfi_close(&eps[i]->fid);
	}
	if (av)
		kfi_close(&av->fid);
	if (cq)
		kfi_close(&cq->fid);
	kvfree(eps);
	return ret;
}

static int endpoints(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return in_new_domain(open_endpoints, c, sample);
}

#define CASE(title, name, objects, function, with) \
	{ .item = title, .design = name, .unit = "bytes", .size = objects, .run = function, \
	  .design_data = with }

const struct kfi_bench_case bench_memory_cases[] = {
	CASE("memory, counter", "kfi_soft", 1000, counters, NULL),
	CASE("memory, pending operation", "kfi_soft", 100000, pending, &bench_kfi_soft),
	CASE("memory, pending operation", "tree irq", 100000, pending, &bench_tree_irq),
	CASE("memory, endpoint", "kfi_soft", 100, endpoints, NULL),
	{}
};
