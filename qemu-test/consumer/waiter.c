// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that wait for counters, and the threads and the timer that they wait for.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/preempt.h>

#include "objects.h"

#define MAX_THREADS 4

static long wait_for_counter(void *arg)
{
	struct waiter *w = arg;
	long ret = kfi_cntr_wait(w->cntr, w->threshold, w->timeout);

	w->value = kfi_cntr_read(w->cntr);
	return ret;
}

/*
 * Starts a thread that waits, and returns when it sleeps, or has come back
 * already. Every waiter that was started must be finished.
 */
bool waiter_start(struct test *t, struct waiter *w, struct kfid_cntr *cntr,
		  u64 threshold, int timeout)
{
	*w = (struct waiter) {
		.cntr = cntr,
		.threshold = threshold,
		.timeout = timeout,
	};
	if (!job_start(t, &w->job, wait_for_counter, w, ANY_CPU))
		return false;
	job_settle(&w->job);
	return true;
}

/* Whether the thread has not come back, some time after it could have. */
bool waiter_is_waiting(struct waiter *w)
{
	return job_is_waiting(&w->job);
}

/* Waits for the thread and returns what kfi_cntr_wait() returned to it. */
int waiter_finish(struct waiter *w)
{
	return job_finish(&w->job);
}

struct adder {
	struct job job;
	struct kfid_cntr *cntr;
	u64 times;
	struct completion *go;
};

static long add_often(void *arg)
{
	struct adder *a = arg;
	int ret = 0;
	u64 i;

	wait_for_completion(a->go);
	for (i = 0; i < a->times && !ret; i++)
		ret = kfi_cntr_add(a->cntr, 1);
	return ret;
}

/* Threads on as many CPUs as there are add 1, at the same time, many times. */
bool add_from_threads(struct test *t, struct kfid_cntr *cntr,
		      unsigned int threads, u64 times)
{
	struct adder adders[MAX_THREADS] = {};
	DECLARE_COMPLETION_ONSTACK(go);
	unsigned int i, started;
	bool good = true;

	if (WARN_ON(threads > MAX_THREADS))
		return false;
	for (started = 0; started < threads; started++) {
		struct adder *a = &adders[started];

		a->cntr = cntr;
		a->times = times;
		a->go = &go;
		good = job_start(t, &a->job, add_often, a, some_cpu(started));
		if (!good)
			break;
	}
	complete_all(&go);
	for (i = 0; i < started; i++)
		good &= expect(t, job_finish(&adders[i].job), 0);
	return good;
}

struct shot {
	struct hrtimer timer;
	struct kfid_cntr *cntr;
	u64 value;
	int result;
	bool in_hardirq;
	struct completion done;
};

static enum hrtimer_restart shot_fires(struct hrtimer *timer)
{
	struct shot *shot = container_of(timer, struct shot, timer);

	shot->in_hardirq = in_hardirq();
	shot->result = kfi_cntr_add(shot->cntr, shot->value);
	complete(&shot->done);
	return HRTIMER_NORESTART;
}

/*
 * Adds to a counter from a timer's interrupt and returns how that went. The
 * interrupt is one of those that take spinlocks: PREEMPT_RT makes a thread of it.
 */
int add_from_hardirq(struct test *t, struct kfid_cntr *cntr, u64 value,
		     unsigned int delay_ms)
{
	struct shot shot = {
		.cntr = cntr,
		.value = value,
	};

	init_completion(&shot.done);
	hrtimer_setup_on_stack(&shot.timer, shot_fires, CLOCK_MONOTONIC,
			       HRTIMER_MODE_REL);
	hrtimer_start(&shot.timer, ms_to_ktime(delay_ms), HRTIMER_MODE_REL);
	wait_for_completion(&shot.done);
	hrtimer_cancel(&shot.timer);
	destroy_hrtimer_on_stack(&shot.timer);
	expect_true(t, shot.in_hardirq || IS_ENABLED(CONFIG_PREEMPT_RT));
	return shot.result;
}
