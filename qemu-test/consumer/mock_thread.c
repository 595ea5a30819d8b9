// SPDX-License-Identifier: GPL-2.0
/*
 * Threads.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>

#include "mock.h"

static int worker_thread(void *arg)
{
	struct worker *worker = arg;

	worker->result = worker->run(worker->arg);
	/* Not a plain return: that would still run code of this module. */
	kthread_complete_and_exit(&worker->done, 0);
}

/* Every worker that was started must be joined. */
bool worker_start(struct test *t, struct worker *worker, unsigned int cpu,
		  int (*run)(void *arg), void *arg)
{
	struct task_struct *task;

	worker->run = run;
	worker->arg = arg;
	init_completion(&worker->done);
	task = kthread_create(worker_thread, worker, "kfi_mock");
	if (!expect(t, PTR_ERR_OR_ZERO(task), 0))
		return false;
	kthread_bind(task, cpu);
	wake_up_process(task);
	return true;
}

/* Whether it has not come back, some time after it could have. */
bool worker_is_running(struct worker *worker)
{
	msleep(A_WHILE);
	return !completion_done(&worker->done);
}

int worker_join(struct worker *worker)
{
	wait_without_end(&worker->done);
	return worker->result;
}

/* As many CPUs as there are, in turn. */
unsigned int some_cpu(unsigned int index)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);

	for (index %= num_online_cpus(); index; index--)
		cpu = cpumask_next_wrap(cpu, cpu_online_mask);
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
