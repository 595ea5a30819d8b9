// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_cntr_wait().
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/stop_machine.h>
#include <linux/wait.h>

#include <kfi_trigger.h>

#include "consumer.h"

static void satisfied_at_entry(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	expect(t, kfi_cntr_wait(cntr, 0, 0), 0);
	expect(t, kfi_cntr_set(cntr, 5), 0);
	/* Neither an error from before nor the lack of time matters. */
	expect(t, kfi_cntr_adderr(cntr, 1), 0);
	expect(t, kfi_cntr_wait(cntr, 5, 0), 0);
	expect(t, kfi_cntr_wait(cntr, 4, 1), 0);
	expect(t, kfi_cntr_wait(cntr, 5, -1), 0);
	expect(t, kfi_cntr_wait(cntr, 5, INT_MIN), 0);
	expect(t, kfi_cntr_wait(cntr, 6, 0), -KFI_ETIMEDOUT);
	close_fid(t, &cntr->fid);
}

static void times_out(struct test *t)
{
	static const int timeouts[] = { 1, 20, 100 };
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	unsigned int i;

	if (!cntr)
		return;
	expect(t, kfi_cntr_set(cntr, 2), 0);
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		ktime_t start = ktime_get();
		s64 us;

		expect(t, kfi_cntr_wait(cntr, 3, timeouts[i]), -KFI_ETIMEDOUT);
		us = ktime_us_delta(ktime_get(), start);
		/* Not early; how late depends on who else wants the CPU. */
		expect_true(t, us >= timeouts[i] * 1000);
		expect_true(t, us < (timeouts[i] + SOON) * 1000);
	}
	expect(t, kfi_cntr_read(cntr), 2);
	close_fid(t, &cntr->fid);
}

static void errors_stay_on_timeout(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	expect(t, kfi_cntr_seterr(cntr, 3), 0);
	expect(t, kfi_cntr_wait(cntr, 1, 10), -KFI_ETIMEDOUT);
	expect(t, kfi_cntr_readerr(cntr), 3);
	expect(t, kfi_cntr_read(cntr), 0);
	close_fid(t, &cntr->fid);
}

static void woken_by_add(struct test *t)
{
	static const int timeouts[] = { SOON, INT_MAX, -1, INT_MIN };
	struct waiter waiter;
	struct kfid_cntr *cntr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		cntr = open_cntr(t, KFI_WAIT_UNSPEC);
		if (!cntr)
			return;
		if (waiter_start(t, &waiter, cntr, 3, timeouts[i])) {
			expect(t, kfi_cntr_add(cntr, 2), 0);
			expect_true(t, waiter_is_waiting(&waiter));
			expect(t, kfi_cntr_add(cntr, 1), 0);
			expect(t, waiter_finish(&waiter), 0);
			expect(t, waiter.value, 3);
		}
		close_fid(t, &cntr->fid);
	}
}

static void woken_by_set(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);
	struct waiter waiter;

	if (!cntr)
		return;
	if (waiter_start(t, &waiter, cntr, 1ULL << 40, SOON)) {
		expect(t, kfi_cntr_set(cntr, (1ULL << 40) - 1), 0);
		expect_true(t, waiter_is_waiting(&waiter));
		expect(t, kfi_cntr_set(cntr, 1ULL << 40), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void woken_from_hardirq(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiter;

	if (!cntr)
		return;
	if (waiter_start(t, &waiter, cntr, 1, SOON)) {
		expect(t, add_from_hardirq(t, cntr, 1, 10), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void many_thresholds(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiters[4];
	unsigned int i, started;

	if (!cntr)
		return;
	for (started = 0; started < ARRAY_SIZE(waiters); started++) {
		if (!waiter_start(t, &waiters[started], cntr,
				  10 * (started + 1), 2 * SOON))
			break;
	}
	if (started == ARRAY_SIZE(waiters)) {
		expect(t, kfi_cntr_add(cntr, 20), 0);
		expect(t, waiter_finish(&waiters[0]), 0);
		expect(t, waiter_finish(&waiters[1]), 0);
		expect_true(t, waiter_is_waiting(&waiters[2]));
		expect_true(t, waiter_is_waiting(&waiters[3]));
		expect(t, kfi_cntr_set(cntr, 40), 0);
		expect(t, waiter_finish(&waiters[2]), 0);
		expect(t, waiter_finish(&waiters[3]), 0);
	} else {
		kfi_cntr_set(cntr, 40);
		for (i = 0; i < started; i++)
			waiter_finish(&waiters[i]);
	}
	close_fid(t, &cntr->fid);
}

static int add_one(struct kfid_cntr *cntr)
{
	return kfi_cntr_adderr(cntr, 1);
}

static int set_more(struct kfid_cntr *cntr)
{
	return kfi_cntr_seterr(cntr, 9);
}

static int set_less(struct kfid_cntr *cntr)
{
	return kfi_cntr_seterr(cntr, 1);
}

static int there_and_back(struct kfid_cntr *cntr)
{
	int ret = kfi_cntr_adderr(cntr, 1);

	return ret ?: kfi_cntr_seterr(cntr, 3);
}

static void error_wakes(struct test *t)
{
	static int (*const changes[])(struct kfid_cntr *cntr) = {
		add_one, set_more, set_less, there_and_back,
	};
	struct waiter waiter;
	struct kfid_cntr *cntr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		cntr = open_cntr(t, KFI_WAIT_UNSPEC);
		if (!cntr)
			return;
		expect(t, kfi_cntr_seterr(cntr, 3), 0);
		if (waiter_start(t, &waiter, cntr, 1, SOON)) {
			/* An error from before does not end the wait. */
			expect_true(t, waiter_is_waiting(&waiter));
			expect(t, changes[i](cntr), 0);
			expect(t, waiter_finish(&waiter), -KFI_EAVAIL);
		}
		close_fid(t, &cntr->fid);
	}
}

static void same_error_does_not(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiter;

	if (!cntr)
		return;
	expect(t, kfi_cntr_seterr(cntr, 3), 0);
	if (waiter_start(t, &waiter, cntr, 1, SOON)) {
		expect(t, kfi_cntr_seterr(cntr, 3), 0);
		expect_true(t, waiter_is_waiting(&waiter));
		expect(t, kfi_cntr_add(cntr, 1), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	close_fid(t, &cntr->fid);
}

static void threshold_wins(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);

	if (!cntr)
		return;
	expect(t, kfi_cntr_adderr(cntr, 2), 0);
	expect(t, kfi_cntr_add(cntr, 2), 0);
	expect(t, kfi_cntr_adderr(cntr, 1), 0);
	expect(t, kfi_cntr_wait(cntr, 2, 10), 0);
	expect(t, kfi_cntr_wait(cntr, 2, -1), 0);
	close_fid(t, &cntr->fid);
}

static void without_wait_object(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_NONE);

	if (!cntr)
		return;
	expect(t, kfi_cntr_wait(cntr, 1, 0), -KFI_EINVAL);
	expect(t, kfi_cntr_wait(cntr, 1, 10), -KFI_EINVAL);
	expect(t, kfi_cntr_wait(cntr, 1, -1), -KFI_EINVAL);
	close_fid(t, &cntr->fid);
}

/* Several times as many as are woken at a time. */
#define CROWD 72
#define HIGHER 20

/* A thread that waits, and again as long as it is told one thing. */
struct member {
	struct kfid_cntr *cntr;
	u64 threshold;
	int timeout;
	int again;
	bool *stop;
	unsigned int returns;
	unsigned long sleeps;
	struct job job;
};

static long member_runs(void *arg)
{
	struct member *m = arg;
	int ret;

	do {
		ret = kfi_cntr_wait(m->cntr, m->threshold, m->timeout);
		m->returns++;
		cond_resched();
	} while (ret == m->again && !READ_ONCE(*m->stop));
	m->sleeps = current->nvcsw;
	return ret;
}

/* Starts as many threads like one, and returns how many there are. */
static unsigned int crowd_start(struct test *t, struct member *crowd, unsigned int count,
				const struct member *like)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		crowd[i] = *like;
		if (!job_start(t, &crowd[i].job, member_runs, &crowd[i], ANY_CPU))
			break;
	}
	return i;
}

/* Whether they come to rest: all sleep, and nobody has been woken for a while. */
static bool crowd_rests(struct member *crowd, unsigned int count)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(SOON);
	unsigned int quiet = 0;
	u64 last = 0;

	while (quiet < 5 && time_before(jiffies, deadline)) {
		bool asleep = true;
		unsigned int i;
		u64 sum = 0;

		for (i = 0; i < count; i++) {
			asleep &= !task_is_running(crowd[i].job.task);
			sum += READ_ONCE(crowd[i].job.task->nvcsw);
		}
		quiet = asleep && sum == last ? quiet + 1 : 0;
		last = sum;
		msleep(20);
	}
	return quiet == 5;
}

/*
 * Many wait for a value that goes down again before any of them has run: all
 * keep waiting. They are woken once for each time, and not for having come back
 * while others were yet to be woken.
 */
static void many_keep_waiting(struct test *t)
{
	enum { TIMES = 8 };
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct member *crowd = kcalloc(CROWD, sizeof(*crowd), GFP_KERNEL);
	unsigned int i, started;
	bool stop = false;
	const struct member like = {
		.cntr = cntr, .threshold = 10, .timeout = -1, .stop = &stop,
	};

	if (!expect_true(t, crowd) || !cntr)
		goto close;
	started = crowd_start(t, crowd, CROWD, &like);
	expect_true(t, crowd_rests(crowd, started));
	for (i = 0; i < TIMES; i++) {
		int ret[2];

		preempt_disable();
		ret[0] = kfi_cntr_add(cntr, 10);
		ret[1] = kfi_cntr_set(cntr, 0);
		preempt_enable();
		expect(t, ret[0], 0);
		expect(t, ret[1], 0);
		/* With nobody else, and with those of the last time. */
		if (i & 1)
			expect_true(t, crowd_rests(crowd, started));
	}
	WRITE_ONCE(stop, true);
	expect(t, kfi_cntr_set(cntr, 10), 0);
	for (i = 0; i < started; i++) {
		expect(t, job_finish(&crowd[i].job), 0);
		/* Some sleeps are those of a thread that begins. */
		expect_true(t, crowd[i].sleeps <= 2 * TIMES + 8);
	}
close:
	if (cntr)
		close_fid(t, &cntr->fid);
	kfree(crowd);
}

/*
 * A change of the error value ends all waits that had begun, once: those that
 * begin again are in nobody's way.
 */
static void error_ends_each_once(struct test *t)
{
	enum { TIMES = 4 };
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct member *crowd = kcalloc(CROWD + HIGHER, sizeof(*crowd), GFP_KERNEL);
	struct member *higher = crowd + CROWD;
	unsigned int i, n, started, waiting;
	bool stop = false;
	const struct member low = {
		.cntr = cntr, .threshold = 10, .timeout = -1, .again = -KFI_EAVAIL, .stop = &stop,
	};
	const struct member high = {
		.cntr = cntr, .threshold = 1000, .timeout = -1, .stop = &stop,
	};

	if (!expect_true(t, crowd) || !cntr)
		goto close;
	started = crowd_start(t, crowd, CROWD, &low);
	for (i = 1; i <= TIMES && !t->failed; i++) {
		waiting = crowd_start(t, higher, HIGHER, &high);
		expect_true(t, crowd_rests(crowd, started));
		expect_true(t, crowd_rests(higher, waiting));
		expect(t, kfi_cntr_adderr(cntr, 1), 0);
		for (n = 0; n < waiting; n++)
			expect(t, job_finish(&higher[n].job), -KFI_EAVAIL);
		expect_true(t, crowd_rests(crowd, started));
		for (n = 0; n < started; n++)
			expect(t, READ_ONCE(crowd[n].returns), i);
	}
	WRITE_ONCE(stop, true);
	expect(t, kfi_cntr_set(cntr, 10), 0);
	for (n = 0; n < started; n++)
		expect(t, job_finish(&crowd[n].job), 0);
close:
	if (cntr)
		close_fid(t, &cntr->fid);
	kfree(crowd);
}

/* A change with interrupts disabled, while nobody else runs. */
struct change {
	struct kfid_cntr *cntr;
	struct member *crowd;
	unsigned int count;
	ktime_t first;
	ktime_t last;
	int result;
	bool in_time;
	unsigned int woken;
};

static int change_error_late(void *arg)
{
	struct change *c = arg;
	int timeout = c->crowd->timeout;

	c->result = kfi_cntr_adderr(c->cntr, 1);
	/* Of those that began to wait first, the time was not over before that. */
	c->in_time = ktime_ms_delta(ktime_get(), c->first) < timeout;
	while (c->in_time && ktime_ms_delta(ktime_get(), c->last) <= timeout)
		cpu_relax();
	return 0;
}

/*
 * Many wait when the error value changes. For some their time is over before
 * anybody has come to wake them: they still learn of what was before.
 */
static void error_before_the_time(struct test *t)
{
	struct change c = { .cntr = open_cntr(t, KFI_WAIT_UNSPEC) };
	bool stop = true;
	struct member like = { .cntr = c.cntr, .threshold = 10, .stop = &stop };
	unsigned int i, n;

	c.crowd = kcalloc(CROWD, sizeof(*c.crowd), GFP_KERNEL);
	if (!expect_true(t, c.crowd) || !c.cntr)
		goto close;
	/* On a slow machine it takes some time to begin. */
	for (i = 0; i < 5 && !c.in_time && !t->failed; i++) {
		s64 ms;

		like.timeout = 500 << i;
		c.first = ktime_get();
		c.count = crowd_start(t, c.crowd, CROWD, &like);
		for (n = 0; n < c.count; n++)
			job_settle(&c.crowd[n].job);
		c.last = ktime_get();
		/* Shortly before the time of the first is over, as far as the machine can tell. */
		ms = like.timeout - like.timeout / 5 - ktime_ms_delta(c.last, c.first);
		if (ms > 0)
			msleep(ms);
		expect(t, stop_machine(change_error_late, &c, NULL), 0);
		expect(t, c.result, 0);
		for (n = 0; n < c.count; n++) {
			long result = job_finish(&c.crowd[n].job);

			if (c.in_time)
				expect(t, result, -KFI_EAVAIL);
		}
	}
	if (!c.in_time)
		pr_info("# needs a faster machine\n");
close:
	if (c.cntr)
		close_fid(t, &c.cntr->fid);
	kfree(c.crowd);
}

static int add_and_count_woken(void *arg)
{
	struct change *c = arg;
	unsigned int i;

	c->result = kfi_cntr_add(c->cntr, 10);
	for (i = 0; i < c->count; i++)
		if (READ_ONCE(c->crowd[i].job.task->__state) != TASK_INTERRUPTIBLE)
			c->woken++;
	return 0;
}

/* With interrupts disabled few are woken at once; the others are, all the same. */
static void few_with_interrupts_off(struct test *t)
{
	struct change c = { .cntr = open_cntr(t, KFI_WAIT_UNSPEC) };
	bool stop = true;
	const struct member like = {
		.cntr = c.cntr, .threshold = 10, .timeout = SOON, .again = 1, .stop = &stop,
	};
	unsigned int i;

	c.crowd = kcalloc(CROWD, sizeof(*c.crowd), GFP_KERNEL);
	if (!expect_true(t, c.crowd) || !c.cntr)
		goto close;
	c.count = crowd_start(t, c.crowd, CROWD, &like);
	expect_true(t, crowd_rests(c.crowd, c.count));
	expect(t, stop_machine(add_and_count_woken, &c, NULL), 0);
	expect(t, c.result, 0);
	expect_true(t, c.woken > 0 && c.woken <= 16);
	for (i = 0; i < c.count; i++)
		expect(t, job_finish(&c.crowd[i].job), 0);
close:
	if (c.cntr)
		close_fid(t, &c.cntr->fid);
	kfree(c.crowd);
}

/* Nor are many woken where many counters change, and by each of them a few. */
static void few_by_each_with_interrupts_off(struct test *t)
{
	enum { COUNTERS = 8, EACH = CROWD / COUNTERS };
	struct change c = { .cntr = open_cntr(t, KFI_WAIT_UNSPEC) };
	struct kfid_cntr *cntrs[COUNTERS] = {};
	bool stop = true;
	unsigned int i;

	c.crowd = kcalloc(CROWD, sizeof(*c.crowd), GFP_KERNEL);
	if (!expect_true(t, c.crowd) || !c.cntr)
		goto close;
	for (i = 0; i < COUNTERS; i++) {
		struct kfi_op_cntr op = { .value = 10 };
		struct kfi_deferred_work work = {
			.threshold = 10,
			.triggering_cntr = c.cntr,
			.op_type = KFI_OP_CNTR_ADD,
			.op.cntr = &op,
		};
		struct member like = {
			.threshold = 10, .timeout = SOON, .again = 1, .stop = &stop,
		};

		cntrs[i] = open_cntr(t, KFI_WAIT_UNSPEC);
		if (!cntrs[i])
			break;
		op.cntr = cntrs[i];
		like.cntr = cntrs[i];
		expect(t, kfi_control(&t->domain->fid, KFI_QUEUE_WORK, &work), 0);
		c.count += crowd_start(t, c.crowd + c.count, EACH, &like);
	}
	expect_true(t, crowd_rests(c.crowd, c.count));
	expect(t, stop_machine(add_and_count_woken, &c, NULL), 0);
	expect(t, c.result, 0);
	expect_true(t, c.woken > 0 && c.woken <= 4 * COUNTERS);
	for (i = 0; i < c.count; i++)
		expect(t, job_finish(&c.crowd[i].job), 0);
close:
	if (c.cntr)
		close_fid(t, &c.cntr->fid);
	for (i = 0; i < COUNTERS; i++)
		if (cntrs[i])
			close_fid(t, &cntrs[i]->fid);
	kfree(c.crowd);
}

/* A wake function that looks at a thread. */
struct look {
	struct wait_queue_entry entry;
	struct task_struct *task;
	bool called;
	bool asleep;
};

static int look_at(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct look *look = container_of(entry, struct look, entry);

	look->called = true;
	look->asleep = READ_ONCE(look->task->__state) == TASK_INTERRUPTIBLE;
	return 0;
}

/* Threads that are due are woken before work that is due runs, which may take its time. */
static void before_what_is_due(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid_cntr *other = open_cntr(t, KFI_WAIT_QUEUE);
	struct kfi_op_cntr op = { .cntr = other, .value = 1 };
	struct kfi_deferred_work work = {
		.threshold = 1,
		.triggering_cntr = cntr,
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &op,
	};
	wait_queue_head_t *queue = NULL;
	struct look look = {};
	struct waiter waiter;

	if (!cntr || !other)
		goto close;
	expect(t, kfi_control(&other->fid, KFI_GETWAIT, &queue), 0);
	expect(t, kfi_control(&t->domain->fid, KFI_QUEUE_WORK, &work), 0);
	if (queue && waiter_start(t, &waiter, cntr, 1, SOON)) {
		look.task = waiter.job.task;
		init_waitqueue_func_entry(&look.entry, look_at);
		add_wait_queue(queue, &look.entry);
		expect(t, kfi_cntr_add(cntr, 1), 0);
		expect(t, kfi_cntr_wait(other, 1, SOON), 0);
		expect(t, kfi_control(&t->domain->fid, KFI_FLUSH_WORK, NULL), 0);
		remove_wait_queue(queue, &look.entry);
		expect_true(t, look.called);
		expect_true(t, !look.asleep);
		expect(t, waiter_finish(&waiter), 0);
	}
close:
	if (cntr)
		close_fid(t, &cntr->fid);
	if (other)
		close_fid(t, &other->fid);
}

#define BEGINNINGS 10000
/* More steps than a thread takes to begin to wait, also where steps are emulated. */
#define LATEST 4096

struct beginning {
	struct kfid_cntr *cntr;
	unsigned int begun;
	int result;
};

static void pass_time(unsigned int steps)
{
	while (steps--)
		barrier();
}

static long begin_to_wait(void *arg)
{
	struct beginning *b = arg;
	unsigned int i;

	for (i = 1; i <= BEGINNINGS && !b->result; i++) {
		/* Release: what was read before belongs to the last round. */
		smp_store_release(&b->begun, i);
		/* The other one is to be early at times. */
		pass_time(LATEST / 2);
		b->result = kfi_cntr_wait(b->cntr, i, -1);
	}
	/* The other one does not wait any longer. */
	smp_store_release(&b->begun, UINT_MAX);
	return i - 1;
}

/* Whether the other thread has come so far. */
static bool has_begun(struct beginning *b, unsigned int round)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(SOON);

	/* Acquire: pairs with the release; what is added comes after it. */
	while (smp_load_acquire(&b->begun) < round) {
		if (time_after(jiffies, deadline))
			return false;
		cond_resched();
	}
	return true;
}

static long add_meanwhile(void *arg)
{
	struct beginning *b = arg;
	unsigned int i;
	int ret = 0;

	for (i = 1; i <= BEGINNINGS && !ret && has_begun(b, i); i++) {
		pass_time(i * 37 % LATEST);
		ret = kfi_cntr_add(b->cntr, 1);
	}
	/* Nobody has told the last one: that shall not stop the others. */
	if (!has_begun(b, UINT_MAX))
		kfi_cntr_set(b->cntr, BEGINNINGS + 1);
	return ret;
}

/*
 * One thread adds while the other begins to wait for just that: before it has
 * looked at the value, after it, and whenever there is something in between. If
 * once nobody notices, it waits on.
 */
static void add_while_beginning(struct test *t)
{
	struct beginning b = { .cntr = open_cntr(t, KFI_WAIT_UNSPEC) };
	unsigned int cpu = cpumask_first(cpu_online_mask);
	struct job waiting, adding;

	if (!b.cntr)
		return;
	if (job_start(t, &adding, add_meanwhile, &b, other_cpu(cpu))) {
		if (job_start(t, &waiting, begin_to_wait, &b, cpu)) {
			expect(t, job_finish(&waiting), BEGINNINGS);
			expect(t, b.result, 0);
		}
		expect(t, job_finish(&adding), 0);
	}
	/* More than that if one of them was not told. */
	expect(t, kfi_cntr_read(b.cntr), BEGINNINGS);
	close_fid(t, &b.cntr->fid);
}

/* Even where there is nothing to wait for, so that mistakes show. */
static void may_sleep(struct test *t)
{
	struct kfid_cntr *cntr;
	int ret;

	if (!IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP)) {
		pr_info("# needs CONFIG_DEBUG_ATOMIC_SLEEP\n");
		return;
	}
	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		return;
	expect(t, kfi_cntr_wait(cntr, 0, 0), 0);
	expect_report(SLEEPS);
	preempt_disable();
	ret = kfi_cntr_wait(cntr, 0, 0);
	preempt_enable();
	end_expected_report();
	expect(t, ret, 0);
	close_fid(t, &cntr->fid);
}

const struct test_case wait_tests[] = {
	{ "wait/case-09-satisfied-at-entry", "R-CNTR-30 R-CNTR-34", satisfied_at_entry },
	{ "wait/case-10-times-out", "R-CNTR-32 R-CNTR-35", times_out },
	{ "wait/case-11-woken-by-add", "R-CNTR-30 R-CNTR-33 R-CNTR-35", woken_by_add },
	{ "wait/case-11-woken-by-set", "R-CNTR-30", woken_by_set },
	{ "wait/case-11-woken-from-hardirq", "R-CNTR-30", woken_from_hardirq },
	{ "wait/case-12-error-wakes", "R-CNTR-31", error_wakes },
	{ "wait/case-12-same-error-does-not", "R-CNTR-31", same_error_does_not },
	{ "wait/case-12-threshold-wins", "R-CNTR-30 R-CNTR-31", threshold_wins },
	{ "wait/case-13-errors-stay-on-timeout", "R-CNTR-32", errors_stay_on_timeout },
	{ "wait/case-12-error-ends-each-once", "R-CNTR-31", error_ends_each_once },
	{ "wait/case-12-error-before-the-time", "R-CNTR-31 R-CNTR-32", error_before_the_time },
	{ "wait/case-18-many-keep-waiting", "R-CNTR-37", many_keep_waiting },
	{ "wait/few-with-interrupts-off", "R-CNTR-36", few_with_interrupts_off },
	{ "wait/few-by-each-with-interrupts-off", "R-CNTR-36", few_by_each_with_interrupts_off },
	{ "wait/before-what-is-due", "R-CNTR-35", before_what_is_due },
	{ "wait/case-14-many-thresholds", "R-CNTR-36", many_thresholds },
	{ "wait/case-15-add-while-beginning", "R-CNTR-36", add_while_beginning },
	{ "wait/may-sleep", "R-CNTR-39", may_sleep },
	{ "wait/case-17-without-wait-object", "R-CNTR-11", without_wait_object },
	{}
};
