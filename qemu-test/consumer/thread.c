// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and interrupts that make calls.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/sched/task.h>

#include "harness.h"

static int job_thread(void *arg)
{
	struct job *job = arg;

	complete(&job->entered);
	job->result = job->run(job->arg);
	/* Not a plain return: that would still run code of this module. */
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
	unsigned long until = jiffies + msecs_to_jiffies(SOON);

	while (task_is_running(job->task) && !completion_done(&job->done)) {
		if (time_after(jiffies, until))
			break;
		usleep_range(1000, 2000);
	}
}

/* Whether the thread has not come back, some time after it could have. */
bool job_is_waiting(struct job *job)
{
	job_settle(job);
	msleep(A_WHILE);
	return !completion_done(&job->done);
}

/* Waits for the thread and returns what its call returned. */
long job_finish(struct job *job)
{
	wait_without_end(&job->done);
	put_task_struct(job->task);
	return job->result;
}

unsigned int other_cpu(unsigned int cpu)
{
	return cpumask_next_wrap(cpu, cpu_online_mask);
}

/* As many CPUs as there are, in turn. */
unsigned int some_cpu(unsigned int index)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);

	for (index %= num_online_cpus(); index; index--)
		cpu = other_cpu(cpu);
	return cpu;
}

bool happens_soon(struct completion *what)
{
	return wait_for_completion_timeout(what, msecs_to_jiffies(SOON));
}

/* In short sleeps: who watches for hung tasks is to find those that hang. */
void wait_without_end(struct completion *what)
{
	while (!wait_for_completion_timeout(what, HZ))
		;
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
