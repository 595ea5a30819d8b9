// SPDX-License-Identifier: GPL-2.0
/*
 * The common ground of the cases.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "rig.h"

struct kfi_info *bench_info;
struct kfid_fabric *bench_fabric;
struct kfid_domain *bench_domain;

int bench_open_cntr(struct kfid_wait *set, struct kfid_cntr **cntr)
{
	struct kfi_cntr_attr attr = {
		.events = KFI_CNTR_EVENTS_COMP,
		.wait_obj = set ? KFI_WAIT_SET : KFI_WAIT_UNSPEC,
		.wait_set = set,
	};

	return kfi_cntr_open(bench_domain, &attr, cntr, NULL);
}

u32 bench_random(u32 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

void bench_shuffle(u32 *numbers, u32 count)
{
	u32 i, other, state = 2463534242U;

	for (i = 0; i < count; i++) {
		other = bench_random(&state) % (i + 1);
		numbers[i] = numbers[other];
		numbers[other] = i;
	}
}

static int compare(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void bench_end(struct bench_laps *laps, u64 operations, struct kfi_bench_sample *sample)
{
	sort(laps->ns, laps->count, sizeof(laps->ns[0]), compare, NULL);
	sample->total = laps->count ? laps->ns[laps->count / 2] : 0;
	sample->count = operations;
}

struct pair {
	atomic_t ready;
	struct completion done[2];
	int (*run)(void *data);
};

struct worker {
	struct pair *pair;
	void *data;
	int ret;
	unsigned int index;
};

static int work(void *data)
{
	struct worker *worker = data;
	struct pair *pair = worker->pair;

	atomic_inc(&pair->ready);
	/* Both may be meant for one CPU. */
	while (atomic_read(&pair->ready) < 2)
		cond_resched();
	worker->ret = pair->run(worker->data);
	complete(&pair->done[worker->index]);
	return 0;
}

int bench_on_cpus(const unsigned int cpus[2], int (*run)(void *data), void *const data[2])
{
	struct pair pair = { .run = run };
	struct worker workers[2];
	struct task_struct *tasks[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (cpus[i] >= nr_cpu_ids || !cpu_online(cpus[i]))
			return -ENODEV;
		init_completion(&pair.done[i]);
		workers[i] = (struct worker) { .pair = &pair, .data = data[i], .index = i };
	}
	for (i = 0; i < 2; i++) {
		tasks[i] = kthread_create_on_cpu(work, &workers[i], cpus[i], "kfi_bench/%u");
		if (IS_ERR(tasks[i])) {
			if (i)
				kthread_stop(tasks[0]);
			return PTR_ERR(tasks[i]);
		}
		get_task_struct(tasks[i]);
	}
	for (i = 0; i < 2; i++)
		wake_up_process(tasks[i]);
	for (i = 0; i < 2; i++)
		wait_for_completion(&pair.done[i]);
	/* Their code must not be in use any more when the module goes. */
	for (i = 0; i < 2; i++) {
		kthread_stop(tasks[i]);
		put_task_struct(tasks[i]);
	}
	return workers[0].ret ? workers[0].ret : workers[1].ret;
}

void kfi_bench_teardown(void)
{
	bench_close_kept();
	if (bench_domain)
		kfi_close(&bench_domain->fid);
	if (bench_fabric)
		kfi_close(&bench_fabric->fid);
	kfi_freeinfo(bench_info);
	bench_domain = NULL;
	bench_fabric = NULL;
	bench_info = NULL;
}

int kfi_bench_setup(void)
{
	struct kfi_info *hints;
	int ret = -ENOMEM;

	if (!bench_has_set())
		return -EINVAL;
	hints = kfi_allocinfo();
	if (hints) {
		/* Becomes part of the hints. */
		hints->fabric_attr->prov_name = kstrdup("kfi_soft", GFP_KERNEL);
		if (hints->fabric_attr->prov_name)
			ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &bench_info);
	}
	kfi_freeinfo(hints);
	if (!ret)
		ret = kfi_fabric(bench_info->fabric_attr, &bench_fabric, NULL);
	if (!ret)
		ret = kfi_domain(bench_fabric, bench_info, &bench_domain, NULL);
	if (ret)
		kfi_bench_teardown();
	return ret;
}
