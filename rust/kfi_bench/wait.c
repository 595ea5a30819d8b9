// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting: from an addition to the waiter, and sets with many idle members.
 */
#include <linux/atomic.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "design.h"
#include "rig.h"

/* Calls that are timed together. */
#define LAP 50U
#define TRIPS 4000U
#define TRIPS_WARM 100U
/* Between CPUs that sleep it may take long. */
#define PLAY_NS (NSEC_PER_SEC / 2)
#define TIMEOUT_MS 30000

/* One end of a ping-pong. */
struct end {
	/* Waits for its own, wakes the other. */
	struct kfid_cntr *own, *other;
	/* The same without kfabric. */
	struct wait_queue_head *own_queue, *other_queue;
	atomic64_t *own_value, *other_value;
	bool first;
	/* Of both. */
	bool *stop;
	struct kfi_bench_sample *sample;
};

static int wake_cntr(struct end *end)
{
	return kfi_cntr_add(end->other, 1);
}

static int wait_cntr(struct end *end, u64 value)
{
	return kfi_cntr_wait(end->own, value, TIMEOUT_MS);
}

static int wake_queue(struct end *end)
{
	atomic64_inc(end->other_value);
	wake_up(end->other_queue);
	return 0;
}

static int wait_queue(struct end *end, u64 value)
{
	return wait_event_timeout(*end->own_queue, atomic64_read(end->own_value) >= value,
				  TIMEOUT_MS / 1000 * HZ) ? 0 : -ETIMEDOUT;
}

static __always_inline int play(struct end *end, int (*wake)(struct end *end),
				int (*wait)(struct end *end, u64 value))
{
	struct kfi_bench_sample *sample = end->sample;
	u64 begin = bench_now(), before, now;
	struct bench_laps laps;
	int ret = 0;
	u32 i;

	for (i = 1; !ret; i++) {
		if (!end->first) {
			bool stop;

			ret = wait(end, i);
			stop = READ_ONCE(*end->stop);
			if (!ret)
				ret = wake(end);
			if (stop)
				break;
			continue;
		}
		before = bench_now();
		if (i == TRIPS_WARM + TRIPS || before - begin > PLAY_NS)
			WRITE_ONCE(*end->stop, true);
		ret = wake(end);
		if (!ret)
			ret = wait(end, i);
		now = bench_now();
		/* There and back. */
		if (i == TRIPS_WARM)
			bench_begin(&laps);
		if (i > TRIPS_WARM && i % LAP == 0)
			bench_lap(&laps);
		if (sample->latency_count < sample->latency_room)
			sample->latencies[sample->latency_count++] = (now - before) / 2;
		if (*end->stop)
			break;
	}
	if (end->first && i >= TRIPS_WARM + LAP) {
		bench_end(&laps, 2 * LAP, sample);
	} else if (end->first) {
		sample->total = bench_now() - begin;
		sample->count = 2 * i;
	}
	return ret;
}

static int play_cntr(void *data)
{
	return play(data, wake_cntr, wait_cntr);
}

static int play_queue(void *data)
{
	return play(data, wake_queue, wait_queue);
}

static int cntr_ping_pong(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct kfid_cntr *cntrs[2] = {};
	struct end ends[2];
	bool stop = false;
	int i, ret;

	ret = bench_open_cntr(NULL, &cntrs[0]);
	if (!ret)
		ret = bench_open_cntr(NULL, &cntrs[1]);
	if (!ret) {
		for (i = 0; i < 2; i++)
			ends[i] = (struct end) {
				.own = cntrs[i], .other = cntrs[!i], .first = !i,
				.stop = &stop, .sample = sample,
			};
		ret = bench_on_cpus(c->design_data, play_cntr, (void *[]) { &ends[0], &ends[1] });
	}
	for (i = 0; i < 2; i++) {
		if (cntrs[i])
			kfi_close(&cntrs[i]->fid);
	}
	return ret;
}

static int queue_ping_pong(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct wait_queue_head queues[2];
	atomic64_t values[2];
	struct end ends[2];
	bool stop = false;
	int i;

	for (i = 0; i < 2; i++) {
		init_waitqueue_head(&queues[i]);
		atomic64_set(&values[i], 0);
		ends[i] = (struct end) {
			.own_queue = &queues[i], .other_queue = &queues[!i],
			.own_value = &values[i], .other_value = &values[!i],
			.first = !i, .stop = &stop, .sample = sample,
		};
	}
	return bench_on_cpus(c->design_data, play_queue, (void *[]) { &ends[0], &ends[1] });
}

/* --- sets ------------------------------------------------------------------- */

#define CALLS 2500U
/* Of a poll set, at most so many are reported at a time. */
#define REPORTS 16

struct members {
	struct kfid_wait *wait_set;
	struct kfid_poll *poll_set;
	struct kfid_cntr **cntrs;
	u32 count;
};

static void close_members(struct members *m)
{
	u32 i;

	for (i = 0; m->cntrs && i < m->count && m->cntrs[i]; i++) {
		if (m->poll_set)
			kfi_poll_del(m->poll_set, &m->cntrs[i]->fid, 0);
		kfi_close(&m->cntrs[i]->fid);
	}
	kvfree(m->cntrs);
	if (m->poll_set)
		kfi_close(&m->poll_set->fid);
	if (m->wait_set)
		kfi_close(&m->wait_set->kfid);
}

/* One more than idle ones: the first is busy. */
static int open_members(struct members *m, u32 idle, bool polled)
{
	struct kfi_wait_attr wait_attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_poll_attr poll_attr = {};
	int ret;
	u32 i;

	*m = (struct members) { .count = idle + 1 };
	m->cntrs = kvcalloc(m->count, sizeof(*m->cntrs), GFP_KERNEL);
	if (!m->cntrs)
		return -ENOMEM;
	ret = polled ? kfi_poll_open(bench_domain, &poll_attr, &m->poll_set) :
		kfi_wait_open(bench_fabric, &wait_attr, &m->wait_set);
	for (i = 0; i < m->count && !ret; i++) {
		ret = bench_open_cntr(m->wait_set, &m->cntrs[i]);
		if (!ret && polled)
			ret = kfi_poll_add(m->poll_set, &m->cntrs[i]->fid, 0);
	}
	if (ret)
		close_members(m);
	return ret;
}

/* A member changes, and the set tells. */
static int wait_set(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct bench_laps laps;
	struct members m;
	int ret;
	u32 i;

	ret = open_members(&m, c->size, false);
	if (ret)
		return ret;
	/* New members are news. */
	while (!kfi_wait(m.wait_set, 0))
		;
	bench_begin(&laps);
	for (i = 0; i < CALLS && !ret; i++) {
		ret = kfi_cntr_add(m.cntrs[0], 1);
		if (!ret)
			ret = kfi_wait(m.wait_set, 0);
		if (i % LAP == LAP - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, LAP, sample);
	close_members(&m);
	return ret;
}

/* Nothing has changed. */
static int poll_set(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	void *contexts[REPORTS];
	struct members m;
	struct bench_laps laps;
	int ret, told = 0;
	u32 i;

	ret = open_members(&m, c->size, true);
	if (ret)
		return ret;
	while (kfi_poll(m.poll_set, contexts, REPORTS) > 0)
		;
	bench_begin(&laps);
	for (i = 0; i < CALLS; i++) {
		told |= kfi_poll(m.poll_set, contexts, REPORTS);
		if (i % LAP == LAP - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, LAP, sample);
	close_members(&m);
	return told ? -EIO : 0;
}

static const unsigned int same_cpu[2] = { 0, 0 };
static const unsigned int other_cpu[2] = { 0, 1 };

#define WAKE(title, name, function, cpus) \
	{ .item = title, .design = name, .unit = "ns", .run = function, .design_data = cpus }
#define SET(title, idle, function) \
	{ .item = title, .design = "kfi_soft", .unit = "ns", .size = idle, .run = function }

const struct kfi_bench_case bench_wait_cases[] = {
	WAKE("wake, same CPU", "kfi_soft", cntr_ping_pong, same_cpu),
	WAKE("wake, same CPU", "wait queue", queue_ping_pong, same_cpu),
	WAKE("wake, other CPU", "kfi_soft", cntr_ping_pong, other_cpu),
	WAKE("wake, other CPU", "wait queue", queue_ping_pong, other_cpu),
	SET("wait set, add and wait", 1, wait_set),
	SET("wait set, add and wait", 64, wait_set),
	SET("wait set, add and wait", 1024, wait_set),
	SET("poll set, idle", 1, poll_set),
	SET("poll set, idle", 64, poll_set),
	SET("poll set, idle", 1024, poll_set),
	{}
};
