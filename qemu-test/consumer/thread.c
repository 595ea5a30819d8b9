// SPDX-License-Identifier: GPL-2.0
/*
 * Those who wait and those whom they wait for: threads, a timer and other
 * interrupts.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/sched/task.h>

#include "test.h"

#define MAX_THREADS 4

static int waiter_thread(void *arg)
{
	struct waiter *w = arg;

	complete(&w->entered);
	w->result = kfi_cntr_wait(w->cntr, w->threshold, w->timeout);
	w->value = kfi_cntr_read(w->cntr);
	/* Not a plain return: that would still run code of this module. */
	kthread_complete_and_exit(&w->done, 0);
}

/*
 * Starts a thread that waits, and returns when it sleeps, or has come back
 * already. Every waiter that was started must be finished.
 */
bool waiter_start(struct test *t, struct waiter *w, struct kfid_cntr *cntr,
		  u64 threshold, int timeout)
{
	unsigned int ms;

	*w = (struct waiter) {
		.cntr = cntr,
		.threshold = threshold,
		.timeout = timeout,
	};
	init_completion(&w->entered);
	init_completion(&w->done);
	w->task = kthread_create(waiter_thread, w, "kfi_waiter");
	if (!expect(t, PTR_ERR_OR_ZERO(w->task), 0))
		return false;
	get_task_struct(w->task);
	wake_up_process(w->task);
	wait_for_completion(&w->entered);
	for (ms = 0; ms < SOON; ms++) {
		if (!task_is_running(w->task) || completion_done(&w->done))
			break;
		msleep(20);
	}
	return true;
}

/* Whether the thread has not come back, some time after it could have. */
bool waiter_is_waiting(struct waiter *w)
{
	msleep(50);
	return !completion_done(&w->done);
}

/* Waits for the thread and returns what kfi_cntr_wait() returned to it. */
int waiter_finish(struct waiter *w)
{
	wait_for_completion(&w->done);
	put_task_struct(w->task);
	return w->result;
}

struct adder {
	struct kfid_cntr *cntr;
	u64 times;
	int result;
	struct completion *go;
	struct completion done;
};

static int adder_thread(void *arg)
{
	struct adder *a = arg;
	u64 i;

	wait_for_completion(a->go);
	for (i = 0; i < a->times && !a->result; i++)
		a->result = kfi_cntr_add(a->cntr, 1);
	kthread_complete_and_exit(&a->done, 0);
}

/* Threads on as many CPUs as there are add 1, at the same time, many times. */
bool add_from_threads(struct test *t, struct kfid_cntr *cntr,
		      unsigned int threads, u64 times)
{
	struct adder adders[MAX_THREADS] = {};
	unsigned int cpu = cpumask_first(cpu_online_mask);
	DECLARE_COMPLETION_ONSTACK(go);
	struct task_struct *task;
	unsigned int i, started;
	bool good = true;

	if (WARN_ON(threads > MAX_THREADS))
		return false;
	for (started = 0; started < threads; started++) {
		struct adder *a = &adders[started];

		a->cntr = cntr;
		a->times = times;
		a->go = &go;
		init_completion(&a->done);
		task = kthread_create(adder_thread, a, "kfi_adder");
		good = expect(t, PTR_ERR_OR_ZERO(task), 0);
		if (!good)
			break;
		kthread_bind(task, cpu);
		wake_up_process(task);
		cpu = cpumask_next_wrap(cpu, cpu_online_mask);
	}
	complete_all(&go);
	for (i = 0; i < started; i++) {
		wait_for_completion(&adders[i].done);
		good &= expect(t, adders[i].result, 0);
	}
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

static int job_thread(void *arg)
{
	struct job *job = arg;

	complete(&job->entered);
	job->result = job->run(job->arg);
	kthread_complete_and_exit(&job->done, 0);
}

/* Starts a thread that makes a call. Every job that was started is finished. */
bool job_start(struct test *t, struct job *job, long (*run)(void *arg),
	       void *arg, unsigned int cpu)
{
	*job = (struct job) { .run = run, .arg = arg };
	init_completion(&job->entered);
	init_completion(&job->done);
	job->task = kthread_create(job_thread, job, "kfi_job");
	if (!expect(t, PTR_ERR_OR_ZERO(job->task), 0))
		return false;
	get_task_struct(job->task);
	if (cpu != ANY_CPU)
		kthread_bind(job->task, cpu);
	wake_up_process(job->task);
	wait_for_completion(&job->entered);
	return true;
}

/* Returns when the thread sleeps or is back. */
void job_settle(struct job *job)
{
	unsigned int ms;

	for (ms = 0; ms < SOON; ms++) {
		if (!task_is_running(job->task) || completion_done(&job->done))
			break;
		usleep_range(1000, 2000);
	}
}

/* Whether the thread has not come back, some time after it could have. */
bool job_is_waiting(struct job *job)
{
	job_settle(job);
	msleep(20);
	return !completion_done(&job->done);
}

/* Waits for the thread and returns what its call returned. */
long job_finish(struct job *job)
{
	/* It may take longer than a task is to sleep without a break. */
	while (!wait_for_completion_timeout(&job->done, HZ))
		;
	put_task_struct(job->task);
	return job->result;
}

unsigned int other_cpu(unsigned int cpu)
{
	return cpumask_next_wrap(cpu, cpu_online_mask);
}

struct irq_call {
	struct irq_work work;
	long (*run)(void *arg);
	void *arg;
	long result;
	bool in_hardirq;
};

static void irq_call_runs(struct irq_work *work)
{
	struct irq_call *call = container_of(work, struct irq_call, work);

	call->in_hardirq = in_hardirq();
	call->result = call->run(call->arg);
}

/*
 * Makes a call in an interrupt, one of those that take spinlocks: PREEMPT_RT
 * makes a thread of it.
 */
long run_in_hardirq(struct test *t, long (*run)(void *arg), void *arg)
{
	struct irq_call call = { .run = run, .arg = arg };

	init_irq_work(&call.work, irq_call_runs);
	irq_work_queue(&call.work);
	irq_work_sync(&call.work);
	expect_true(t, call.in_hardirq || IS_ENABLED(CONFIG_PREEMPT_RT));
	return call.result;
}
