/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The common ground of the cases: open objects, threads on CPUs, random numbers.
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

/* Of one fabric and domain, for all cases: of the first NIC; @next of it is that of the second. */
extern struct kfi_info *bench_info;
extern struct kfid_fabric *bench_fabric;
extern struct kfid_domain *bench_domain;

extern const struct kfi_bench_case bench_counter_cases[];
extern const struct kfi_bench_case bench_trigger_cases[];
extern const struct kfi_bench_case bench_wait_cases[];
extern const struct kfi_bench_case bench_message_cases[];
extern const struct kfi_bench_case bench_memory_cases[];
extern const struct kfi_bench_case bench_scale_cases[];
extern const struct kfi_bench_case bench_tcp_cases[];
extern const struct kfi_bench_case bench_mesh_cases[];

/* Whether the parameter of that name says what is to be measured. */
bool bench_has_set(void);

/* Closes what cases have left open for others. */
void bench_close_kept(void);

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

/* The memory that kmalloc() and vmalloc() occupy. */
u64 bench_used_memory(void);

/* Laps of a loop. */
#define BENCH_LAPS 128U

/**
 * struct bench_laps - how long equal parts of a loop took
 * @last: when the last one ended
 * @count: how many there were
 * @ns: how long they took
 *
 * Other work on the host takes its time from some laps and not from others, as
 * long as they are short: the one in the middle is what the loop costs.
 */
struct bench_laps {
	u64 last;
	u32 count;
	u64 ns[BENCH_LAPS];
};

static inline void bench_begin(struct bench_laps *laps)
{
	laps->count = 0;
	laps->last = bench_now();
}

/* Ends a lap. */
static inline void bench_lap(struct bench_laps *laps)
{
	u64 now = bench_now();

	if (laps->count < BENCH_LAPS)
		laps->ns[laps->count++] = now - laps->last;
	laps->last = now;
}

/* The median of the laps, each of @operations, becomes the sample. */
void bench_end(struct bench_laps *laps, u64 operations, struct kfi_bench_sample *sample);

#endif /* _KFI_BENCH_RIG_H_ */
