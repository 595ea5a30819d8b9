// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred work and the context in which it is carried out: interrupts, and threads
 * that are preempted.
 */
#include <linux/jiffies.h>
#include <linux/preempt.h>
#include <linux/wait.h>

#include "deferred.h"

static void from_hardirq(struct test *t)
{
	struct kfid_cntr *c[2];

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, queue_add(t, c[0], 1, c[1], 1), 0);
	expect(t, add_from_hardirq(t, c[0], 1, 1), 0);
	expect(t, kfi_cntr_read(c[1]), 1);
	close_cntrs(t, c, 2);
}

/* Documented: the commands may sleep. */
static void may_sleep(struct test *t)
{
	struct kfid_cntr *c[2];
	int ret;

	if (!IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP)) {
		pr_info("# needs CONFIG_DEBUG_ATOMIC_SLEEP\n");
		return;
	}
	if (!open_cntrs(t, c, 2))
		return;
	expect_report(SLEEPS);
	preempt_disable();
	ret = queue_add(t, c[0], 1, c[1], 1);
	preempt_enable();
	end_expected_report();
	/* It worked all the same. */
	expect(t, ret, 0);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 1);
	close_cntrs(t, c, 2);
}

static long add_and_read(void *arg)
{
	struct kfid_cntr **c = arg;
	int ret = kfi_cntr_add(c[0], 1);

	return ret ?: kfi_cntr_read(c[1]);
}

/* With interrupts disabled little is done at once. */
static void little_in_hardirq(struct test *t)
{
	struct kfid_cntr *c[2];
	unsigned int i;
	long done;

	if (!open_cntrs(t, c, 2))
		return;
	for (i = 0; i < SOME; i++)
		expect(t, queue_add(t, c[0], 1, c[1], 1), 0);
	done = run_in_hardirq(t, add_and_read, c);
	expect_true(t, done >= 0 && done <= 64);
	expect(t, kfi_cntr_wait(c[1], SOME, 12 * SOON), 0);
	close_cntrs(t, c, 2);
}

/* A thread that gets the CPU from the one that wakes it, and keeps it. */
struct hog {
	struct wait_queue_entry entry;
	struct task_struct *task;
	struct completion spins;
	bool woken;
	bool stop;
};

static long hog_run(void *arg)
{
	struct hog *hog = arg;
	unsigned long end;

	sched_set_fifo(current);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(hog->woken) || READ_ONCE(hog->stop))
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	complete(&hog->spins);
	end = jiffies + msecs_to_jiffies(SOON / 2);
	while (!READ_ONCE(hog->stop) && time_before(jiffies, end))
		cpu_relax();
	return 0;
}

static int wake_hog(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct hog *hog = container_of(entry, struct hog, entry);

	WRITE_ONCE(hog->woken, true);
	wake_up_process(hog->task);
	return 0;
}

static long add_lowly(void *arg)
{
	sched_set_normal(current, MAX_NICE);
	return kfi_cntr_add(arg, 1);
}

/* A thread that runs what is due and gets no CPU any more keeps nobody else's from running. */
static void preempted_drainer(struct test *t)
{
	unsigned int here = get_cpu(), there = other_cpu(here), i;
	wait_queue_head_t *queue = NULL;
	struct kfid_cntr *c[5];
	struct hog hog = {};
	struct job hogs, adds;

	put_cpu();
	if (there == here) {
		pr_info("# needs two CPUs\n");
		return;
	}
	init_completion(&hog.spins);
	if (!open_cntrs(t, c, 4))
		return;
	c[4] = open_cntr(t, KFI_WAIT_QUEUE);
	if (!c[4])
		goto close;
	expect(t, kfi_control(&c[4]->fid, KFI_GETWAIT, &queue), 0);
	expect(t, queue_add(t, c[0], 1, c[4], 1), 0);
	for (i = 0; i < 3; i++)
		expect(t, queue_add(t, c[0], 1, c[1], 1), 0);
	if (!queue || !job_start(t, &hogs, hog_run, &hog, there))
		goto close_last;
	hog.task = hogs.task;
	init_waitqueue_func_entry(&hog.entry, wake_hog);
	add_wait_queue(queue, &hog.entry);
	if (job_start(t, &adds, add_lowly, c[0], there)) {
		wait_for_completion(&hog.spins);
		expect(t, queue_add(t, c[2], 1, c[3], 1), 0);
		expect(t, kfi_cntr_add(c[2], 1), 0);
		expect(t, kfi_cntr_wait(c[3], 1, SOON / 8), 0);
		expect(t, flush(t, NULL), 0);
		expect_true(t, !READ_ONCE(hog.stop));
		WRITE_ONCE(hog.stop, true);
		expect(t, job_finish(&adds), 0);
	}
	WRITE_ONCE(hog.stop, true);
	wake_up_process(hog.task);
	expect(t, job_finish(&hogs), 0);
	remove_wait_queue(queue, &hog.entry);
	expect(t, kfi_cntr_read(c[1]), 3);
close_last:
	close_fid(t, &c[4]->fid);
close:
	close_cntrs(t, c, 4);
}

const struct test_case deferred_context_tests[] = {
	{ "dwq/little-in-hardirq", "R-DWQ-31 R-DWQ-33", little_in_hardirq },
	{ "dwq/preempted-drainer", "R-DWQ-31", preempted_drainer },
	{ "dwq/from-hardirq", "R-DWQ-8", from_hardirq },
	{ "dwq/may-sleep", "R-DWQ-23", may_sleep },
	{}
};
