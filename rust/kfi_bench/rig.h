/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the cases share: the open objects, threads on CPUs, random numbers.
 */
#ifndef _KFI_BENCH_RIG_H_
#define _KFI_BENCH_RIG_H_

#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <kfabric.h>
#include <kfi_domain.h>
#include <kfi_eq.h>

#include "bench.h"

/* Of one fabric and domain, for all cases. */
extern struct kfi_info *bench_info;
extern struct kfid_fabric *bench_fabric;
extern struct kfid_domain *bench_domain;

extern const struct kfi_bench_case bench_counter_cases[];
extern const struct kfi_bench_case bench_trigger_cases[];
extern const struct kfi_bench_case bench_wait_cases[];
extern const struct kfi_bench_case bench_message_cases[];
extern const struct kfi_bench_case bench_memory_cases[];

int bench_open_cntr(struct kfid_wait *set, struct kfid_cntr **cntr);

/**
 * bench_on_cpus() - runs two functions at the same time
 * @cpus: the CPUs that they run on
 * @run: is called with each of @data, by threads that begin together
 * @data: one for each
 *
 * Return: 0, or what one of them returned; -ENODEV if there is no such CPU
 */
int bench_on_cpus(const unsigned int cpus[2], int (*run)(void *data), void *const data[2]);

/* A sequence that is the same in every round and for every design. */
u32 bench_random(u32 *state);

/* Fills with the numbers below @count in random order. */
void bench_shuffle(u32 *numbers, u32 count);

static inline u64 bench_now(void)
{
	return ktime_get_ns();
}

#endif /* _KFI_BENCH_RIG_H_ */
