// SPDX-License-Identifier: GPL-2.0
/*
 * Wait sets.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/wait.h>

#include "consumer.h"

/* A wait set with a member of every kind. */
struct members {
	struct kfid_wait *set;
	struct kfid_cntr *cntr;
	struct kfid_cq *cq;
	struct kfid_eq *eq;
};

static void close_members(struct test *t, struct members *m)
{
	if (m->cntr)
		close_fid(t, &m->cntr->fid);
	if (m->cq)
		close_fid(t, &m->cq->fid);
	if (m->eq)
		close_fid(t, &m->eq->fid);
	if (m->set)
		close_fid(t, &m->set->kfid);
}

static bool open_members(struct test *t, struct members *m, enum kfi_wait_obj wait_obj)
{
	*m = (struct members) {};
	m->set = open_set(t, wait_obj);
	if (m->set) {
		m->cntr = open_cntr_in(t, m->set);
		m->cq = open_cq(t, KFI_WAIT_SET, m->set, 0, NULL);
		m->eq = open_eq(t, KFI_WAIT_SET, m->set, 0);
	}
	if (m->cntr && m->cq && m->eq)
		return true;
	close_members(t, m);
	return false;
}

static long get_event(struct kfid_eq *eq)
{
	struct kfi_eq_entry entry;
	u32 event;

	return kfi_eq_read(eq, &event, &entry, sizeof(entry), 0);
}

/* A thread in kfi_wait() */

struct set_waiter {
	struct kfid_wait *set;
	int timeout;
	struct job job;
};

static long set_waiter_waits(void *arg)
{
	struct set_waiter *w = arg;

	return kfi_wait(w->set, w->timeout);
}

static bool set_waiter_start(struct test *t, struct set_waiter *w,
			     struct kfid_wait *set, int timeout)
{
	w->set = set;
	w->timeout = timeout;
	return job_start(t, &w->job, set_waiter_waits, w, ANY_CPU);
}

static void attributes(struct test *t)
{
	static const struct {
		enum kfi_wait_obj wait_obj;
		u64 flags;
		int result;
	} cases[] = {
		{ KFI_WAIT_UNSPEC, 0, 0 },
		{ KFI_WAIT_QUEUE, 0, 0 },
		{ KFI_WAIT_NONE, 0, -KFI_EINVAL },
		{ KFI_WAIT_SET, 0, -KFI_EINVAL },
		{ (enum kfi_wait_obj)(KFI_WAIT_QUEUE + 1), 0, -KFI_EINVAL },
		{ (enum kfi_wait_obj)-1, 0, -KFI_EINVAL },
		{ KFI_WAIT_UNSPEC, 1, -KFI_EINVAL },
		{ KFI_WAIT_QUEUE, 1ULL << 63, -KFI_EINVAL },
	};
	struct kfid_wait *set;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kfi_wait_attr attr = {
			.wait_obj = cases[i].wait_obj,
			.flags = cases[i].flags,
		};

		set = NULL;
		expect(t, kfi_wait_open(t->fabric, &attr, &set), cases[i].result);
		expect(t, !!set, !cases[i].result);
		if (set) {
			expect(t, set->kfid.fclass, KFI_CLASS_WAIT);
			close_fid(t, &set->kfid);
		}
	}
	set = NULL;
	expect(t, kfi_wait_open(t->fabric, NULL, &set), -KFI_EINVAL);
	expect_true(t, !set);
}

static void control(struct test *t)
{
	enum kfi_wait_obj told;
	void *queue, *queue_of_member;
	struct kfid *fids[3];
	struct members m;
	unsigned int i;
	u64 flags = 1;

	if (!open_members(t, &m, KFI_WAIT_QUEUE))
		return;
	queue = NULL;
	expect(t, kfi_control(&m.set->kfid, KFI_GETWAIT, &queue), 0);
	expect_true(t, queue);
	expect(t, kfi_control(&m.set->kfid, KFI_GETWAIT, NULL), -KFI_EINVAL);
	expect(t, kfi_control(&m.set->kfid, KFI_GETWAITOBJ, NULL), -KFI_EINVAL);
	expect(t, kfi_control(&m.set->kfid, 9999, NULL), -KFI_ENOSYS);
	expect(t, kfi_control(&m.set->kfid, KFI_GETOPSFLAG, &flags), 0);
	expect(t, flags, 0);
	flags = KFI_COMPLETION;
	expect(t, kfi_control(&m.set->kfid, KFI_SETOPSFLAG, &flags), 0);
	flags = 0;
	expect(t, kfi_control(&m.set->kfid, KFI_GETOPSFLAG, &flags), 0);
	expect(t, flags, KFI_COMPLETION);
	expect(t, kfi_control(&m.set->kfid, KFI_SETOPSFLAG, NULL), -KFI_EINVAL);

	fids[0] = &m.cntr->fid;
	fids[1] = &m.cq->fid;
	fids[2] = &m.eq->fid;
	for (i = 0; i < ARRAY_SIZE(fids); i++) {
		queue_of_member = NULL;
		expect(t, kfi_control(fids[i], KFI_GETWAIT, &queue_of_member), 0);
		expect_true(t, queue_of_member == queue);
		expect(t, kfi_control(fids[i], KFI_GETWAITOBJ, &told), 0);
		expect(t, told, KFI_WAIT_SET);
	}
	close_members(t, &m);

	for (i = 0; i < 2; i++) {
		m.set = open_set(t, i ? KFI_WAIT_QUEUE : KFI_WAIT_UNSPEC);
		if (!m.set)
			return;
		expect(t, kfi_control(&m.set->kfid, KFI_GETWAITOBJ, &told), 0);
		expect(t, told, KFI_WAIT_QUEUE);
		if (!i)
			expect(t, kfi_control(&m.set->kfid, KFI_GETWAIT, &queue),
			       -KFI_ENOSYS);
		close_fid(t, &m.set->kfid);
	}

	/* Its members have no other wait queue than the set, and hand out none either. */
	if (!open_members(t, &m, KFI_WAIT_UNSPEC))
		return;
	fids[0] = &m.cntr->fid;
	fids[1] = &m.cq->fid;
	fids[2] = &m.eq->fid;
	for (i = 0; i < ARRAY_SIZE(fids); i++) {
		queue_of_member = NULL;
		expect(t, kfi_control(fids[i], KFI_GETWAIT, &queue_of_member), -KFI_ENOSYS);
		expect_true(t, !queue_of_member);
		expect(t, kfi_control(fids[i], KFI_GETWAITOBJ, &told), 0);
		expect(t, told, KFI_WAIT_SET);
	}
	close_members(t, &m);
}

static void member_attributes(struct test *t)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_SET };
	struct kfid_cntr *cntr = NULL;
	struct kfid_wait *foreign;
	struct test others;
	struct members m;

	if (!open_members(t, &m, KFI_WAIT_UNSPEC))
		return;
	expect(t, kfi_cntr_wait(m.cntr, 0, 0), -KFI_EINVAL);
	expect(t, kfi_cntr_wait(m.cntr, 1, -1), -KFI_EINVAL);
	expect(t, kfi_cntr_open(t->domain, &attr, &cntr, NULL), -KFI_EINVAL);
	attr.wait_set = (struct kfid_wait *)m.cq;
	expect(t, kfi_cntr_open(t->domain, &attr, &cntr, NULL), -KFI_EINVAL);
	if (open_others(t, &others)) {
		foreign = open_set(&others, KFI_WAIT_UNSPEC);
		if (foreign) {
			attr.wait_set = foreign;
			expect(t, kfi_cntr_open(t->domain, &attr, &cntr, NULL),
			       -KFI_EINVAL);
			close_fid(t, &foreign->kfid);
		}
		close_others(t, &others);
	}
	expect_true(t, !cntr);
	close_members(t, &m);
}

static void counters_are_consumed(struct test *t)
{
	struct members m;

	if (!open_members(t, &m, KFI_WAIT_UNSPEC))
		return;
	expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);

#define expect_ready_once(change)					\
	do {								\
		expect(t, change, 0);					\
		expect(t, kfi_wait(m.set, 0), 0);			\
		expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);		\
	} while (0)

	expect_ready_once(kfi_cntr_add(m.cntr, 1));
	expect_ready_once(kfi_cntr_add(m.cntr, 5));
	expect_ready_once(kfi_cntr_set(m.cntr, 20));
	expect_ready_once(kfi_cntr_set(m.cntr, 3));
	expect_ready_once(kfi_cntr_adderr(m.cntr, 1));
	expect_ready_once(kfi_cntr_seterr(m.cntr, 7));
	expect_ready_once(kfi_cntr_seterr(m.cntr, 0));
#undef expect_ready_once

	/* There and back again is a change; two changes are told of once. */
	expect(t, kfi_cntr_set(m.cntr, 4), 0);
	expect(t, kfi_cntr_set(m.cntr, 3), 0);
	expect(t, kfi_wait(m.set, -1), 0);
	expect(t, kfi_wait(m.set, 10), -KFI_ETIMEDOUT);
	close_members(t, &m);
}

static void queues_are_level_triggered(struct test *t)
{
	struct kfi_cq_err_entry error = {};
	struct members m;

	if (!open_members(t, &m, KFI_WAIT_UNSPEC))
		return;
	expect(t, put_completion(m.cq, 1), 0);
	expect(t, put_completion(m.cq, 2), 0);
	expect(t, kfi_wait(m.set, 0), 0);
	expect(t, kfi_wait(m.set, -1), 0);
	expect(t, get_completion(m.cq), 1);
	expect(t, kfi_wait(m.set, SOON), 0);
	expect(t, get_completion(m.cq), 2);
	expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);
	expect(t, get_completion(m.cq), -KFI_EAGAIN);
	expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);

	/* So are errors, which a failed read does not take. */
	expect(t, put_error(m.cq, 1), 0);
	expect(t, kfi_wait(m.set, 0), 0);
	expect(t, get_completion(m.cq), -KFI_EAVAIL);
	expect(t, kfi_wait(m.set, 0), 0);
	expect(t, kfi_cq_readerr(m.cq, &error, 0), 1);
	expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);

	/* While one is read another may have something. */
	expect(t, put_event(m.eq, KFI_NOTIFY), 0);
	expect(t, put_completion(m.cq, 3), 0);
	expect(t, kfi_wait(m.set, 0), 0);
	expect(t, get_completion(m.cq), 3);
	expect(t, kfi_wait(m.set, 0), 0);
	expect(t, kfi_wait(m.set, 0), 0);
	expect_true(t, get_event(m.eq) > 0);
	expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);

	/* Of a counter and a queue the queue remains. */
	expect(t, put_completion(m.cq, 4), 0);
	expect(t, kfi_cntr_add(m.cntr, 1), 0);
	expect(t, kfi_wait(m.set, 0), 0);
	expect(t, kfi_wait(m.set, 0), 0);
	expect(t, get_completion(m.cq), 4);
	expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);
	close_members(t, &m);
}

static void timeouts(struct test *t)
{
	static const int limits[] = { 1, 30 };
	struct kfid_wait *set = open_set(t, KFI_WAIT_UNSPEC);
	unsigned int i;
	ktime_t start;
	s64 us;

	if (!set)
		return;
	expect(t, kfi_wait(set, 0), -KFI_ETIMEDOUT);
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		start = ktime_get();
		expect(t, kfi_wait(set, limits[i]), -KFI_ETIMEDOUT);
		us = ktime_us_delta(ktime_get(), start);
		expect_true(t, us >= limits[i] * 1000);
		expect_true(t, us < (limits[i] + SOON) * 1000);
	}
	close_fid(t, &set->kfid);
}

static long add_job(void *cntr)
{
	return kfi_cntr_add(cntr, 1);
}

static long put_completion_job(void *cq)
{
	return put_completion(cq, 1);
}

static long put_event_job(void *eq)
{
	return put_event(eq, KFI_NOTIFY);
}

static void woken(struct test *t)
{
	static const int limits[] = { -1, INT_MIN, SOON };
	struct set_waiter waiter;
	struct members m;
	unsigned int i;

	if (!open_members(t, &m, KFI_WAIT_QUEUE))
		return;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
#define expect_woken(change)						\
	do {								\
		if (!set_waiter_start(t, &waiter, m.set, limits[i]))	\
			break;						\
		job_settle(&waiter.job);				\
		expect(t, change, 0);					\
		expect(t, job_finish(&waiter.job), 0);			\
	} while (0)

		expect_woken(kfi_cntr_add(m.cntr, 1));
		expect_woken(kfi_cntr_adderr(m.cntr, 1));
		expect_woken(kfi_cntr_set(m.cntr, 0));
		expect_woken(put_completion(m.cq, 1));
		expect(t, get_completion(m.cq), 1);
		expect_woken(put_event(m.eq, KFI_NOTIFY));
		expect_true(t, get_event(m.eq) > 0);
		expect_woken(run_in_hardirq(t, add_job, m.cntr));
		expect_woken(run_in_hardirq(t, put_completion_job, m.cq));
		expect(t, get_completion(m.cq), 1);
		expect_woken(run_in_hardirq(t, put_event_job, m.eq));
		expect_true(t, get_event(m.eq) > 0);
#undef expect_woken
	}
	/* A change that has woken somebody is used up. */
	expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);
	close_members(t, &m);
}

static void no_change_does_not_wake(struct test *t)
{
	struct set_waiter waiter;
	struct members m;

	if (!open_members(t, &m, KFI_WAIT_UNSPEC))
		return;
	if (set_waiter_start(t, &waiter, m.set, SOON)) {
		expect(t, kfi_cntr_add(m.cntr, 0), 0);
		expect(t, kfi_cntr_set(m.cntr, 0), 0);
		expect(t, kfi_cntr_seterr(m.cntr, 0), 0);
		expect(t, get_completion(m.cq), -KFI_EAGAIN);
		expect_true(t, job_is_waiting(&waiter.job));
		expect(t, kfi_cntr_add(m.cntr, 1), 0);
		expect(t, job_finish(&waiter.job), 0);
	}
	close_members(t, &m);
}

static void all_wake(struct test *t)
{
	struct set_waiter waiters[4];
	unsigned int i, started, kind;
	struct members m;

	if (!open_members(t, &m, KFI_WAIT_UNSPEC))
		return;
	for (kind = 0; kind < 3; kind++) {
		for (started = 0; started < ARRAY_SIZE(waiters); started++) {
			if (!set_waiter_start(t, &waiters[started], m.set, SOON))
				break;
			job_settle(&waiters[started].job);
		}
		switch (kind) {
		case 0:
			expect(t, kfi_cntr_add(m.cntr, 1), 0);
			break;
		case 1:
			/* Gone before the others have looked. */
			expect(t, put_completion(m.cq, 1), 0);
			expect(t, get_completion(m.cq), 1);
			break;
		default:
			expect(t, put_event(m.eq, KFI_NOTIFY), 0);
			expect_true(t, get_event(m.eq) > 0);
		}
		for (i = 0; i < started; i++)
			expect(t, job_finish(&waiters[i].job), 0);
		expect(t, kfi_wait(m.set, 0), -KFI_ETIMEDOUT);
	}
	close_members(t, &m);
}

#define TRAFFIC 3000

struct traffic {
	struct kfid_wait *set;
	struct kfid_cq *cqs[2];
	unsigned long got;
};

static long drain_two(void *arg)
{
	struct traffic *traffic = arg;
	unsigned int i;
	long ret;

	while (traffic->got < TRAFFIC) {
		ret = kfi_wait(traffic->set, SOON);
		if (ret)
			return ret;
		for (i = 0; i < 2; i++) {
			while (get_completion(traffic->cqs[i]) > 0)
				traffic->got++;
		}
	}
	return 0;
}

static void two_queues(struct test *t)
{
	unsigned int cpu = raw_smp_processor_id();
	struct traffic traffic = {};
	unsigned long i, tries = 0;
	struct job job;

	traffic.set = open_set(t, KFI_WAIT_UNSPEC);
	if (!traffic.set)
		return;
	traffic.cqs[0] = open_cq(t, KFI_WAIT_SET, traffic.set, 16, NULL);
	traffic.cqs[1] = open_cq(t, KFI_WAIT_SET, traffic.set, 16, NULL);
	if (traffic.cqs[0] && traffic.cqs[1] &&
	    job_start(t, &job, drain_two, &traffic, other_cpu(cpu))) {
		for (i = 0; i < TRAFFIC && !completion_done(&job.done); tries++) {
			if (!put_completion(traffic.cqs[(i / 3) % 2], 1))
				i++;
			else
				usleep_range(10, 20);
			if (!(tries % 7))
				usleep_range(1, 20);
		}
		expect(t, job_finish(&job), 0);
		expect(t, traffic.got, TRAFFIC);
	}
	for (i = 0; i < 2; i++) {
		if (traffic.cqs[i])
			close_fid(t, &traffic.cqs[i]->fid);
	}
	close_fid(t, &traffic.set->kfid);
}

static void several_domains(struct test *t)
{
	struct kfid_wait *set = open_set(t, KFI_WAIT_UNSPEC);
	struct test second = { .info = t->info, .fabric = t->fabric };
	struct kfid_cntr *cntrs[2] = {};
	struct set_waiter waiter;
	struct kfid_cq *cq;
	unsigned int i;

	if (!set)
		return;
	if (!expect(t, kfi_domain(t->fabric, t->info, &second.domain, NULL), 0))
		goto close_set;
	cntrs[0] = open_cntr_in(t, set);
	cntrs[1] = open_cntr_in(&second, set);
	cq = open_cq(&second, KFI_WAIT_SET, set, 0, NULL);
	for (i = 0; i < 2; i++) {
		if (!cntrs[i] || !set_waiter_start(t, &waiter, set, SOON))
			continue;
		job_settle(&waiter.job);
		expect(t, kfi_cntr_add(cntrs[i], 1), 0);
		expect(t, job_finish(&waiter.job), 0);
		expect(t, kfi_wait(set, 0), -KFI_ETIMEDOUT);
	}
	if (cq) {
		expect(t, put_completion(cq, 1), 0);
		expect(t, kfi_wait(set, 0), 0);
		/* With its entry the queue leaves the set. */
		close_fid(t, &cq->fid);
		expect(t, kfi_wait(set, 0), -KFI_ETIMEDOUT);
	}
	for (i = 0; i < 2; i++) {
		if (cntrs[i])
			close_fid(t, &cntrs[i]->fid);
	}
	t->failed |= second.failed;
	close_fid(t, &second.domain->fid);
close_set:
	close_fid(t, &set->kfid);
}

static void close_rules(struct test *t)
{
	struct set_waiter waiter;
	struct test others;
	struct members m;

	if (!open_others(t, &others))
		return;
	if (!open_members(&others, &m, KFI_WAIT_UNSPEC))
		goto close_others;
	expect(t, kfi_close(&m.set->kfid), -KFI_EBUSY);
	expect(t, kfi_close(&others.fabric->fid), -KFI_EBUSY);

	/* Members leave while a thread waits, which goes on. */
	if (set_waiter_start(t, &waiter, m.set, SOON)) {
		expect_true(t, job_is_waiting(&waiter.job));
		close_fid(t, &m.cntr->fid);
		expect(t, kfi_close(&m.set->kfid), -KFI_EBUSY);
		close_fid(t, &m.cq->fid);
		expect(t, kfi_close(&m.set->kfid), -KFI_EBUSY);
		expect_true(t, job_is_waiting(&waiter.job));
		expect(t, put_event(m.eq, KFI_NOTIFY), 0);
		expect(t, job_finish(&waiter.job), 0);
		m.cntr = NULL;
		m.cq = NULL;
	}
	close_members(&others, &m);

	/* A thread alone keeps a set as well. */
	m = (struct members) { .set = open_set(&others, KFI_WAIT_QUEUE) };
	if (m.set) {
		if (set_waiter_start(t, &waiter, m.set, 200)) {
			job_settle(&waiter.job);
			expect(t, kfi_close(&m.set->kfid), -KFI_EBUSY);
			expect(t, job_finish(&waiter.job), -KFI_ETIMEDOUT);
		}
		close_members(&others, &m);
	}
close_others:
	close_others(t, &others);
}

/* Closes the members and the set as soon as the wait is over. */
static long wait_and_close(void *arg)
{
	struct members *m = arg;
	int ret = kfi_wait(m->set, SOON);

	ret = ret ?: kfi_close(&m->cntr->fid);
	ret = ret ?: kfi_close(&m->cq->fid);
	ret = ret ?: kfi_close(&m->eq->fid);
	return ret ?: kfi_close(&m->set->kfid);
}

/* A set that another thread closes as soon as it sees what the wait has done. */
struct reported {
	struct kfid_wait *set;
	struct completion done;
	bool stop;
};

static long report_again(void *arg)
{
	struct reported *r = arg;

	while (!READ_ONCE(r->stop)) {
		struct kfid_wait *set = xchg(&r->set, NULL);
		int ret;

		if (!set) {
			cond_resched();
			continue;
		}
		ret = kfi_wait(set, 0);
		if (ret && ret != -KFI_ETIMEDOUT)
			return ret;
		complete(&r->done);
	}
	return 0;
}

/*
 * A change is reported once. A thread that finds it reported knows that the other
 * one is in the set, or was, and may close it: that is refused only while the other
 * one is there.
 */
static void close_when_reported(struct test *t)
{
	unsigned int cpu = cpumask_first(cpu_online_mask), round, seen = 0;
	struct reported r = {};
	struct job job;

	init_completion(&r.done);
	if (!job_start(t, &job, report_again, &r, other_cpu(cpu)))
		return;
	for (round = 0; round < 300 && !t->failed; round++) {
		struct kfid_wait *set = open_set(t, KFI_WAIT_QUEUE);
		struct kfid_cntr *cntr = set ? open_cntr_in(t, set) : NULL;
		unsigned long until = jiffies + msecs_to_jiffies(SOON);
		bool is_back = false;
		unsigned int spins;
		int ret;

		if (!expect_true(t, cntr)) {
			if (set)
				close_fid(t, &set->kfid);
			break;
		}
		expect(t, kfi_cntr_add(cntr, 1), 0);
		reinit_completion(&r.done);
		xchg(&r.set, set);
		for (spins = round * 13 % 400; spins; spins--)
			cpu_relax();
		ret = kfi_wait(set, 0);
		if (ret == -KFI_ETIMEDOUT)
			seen++;
		else if (expect(t, ret, 0))
			is_back = happens_soon(&r.done);
		close_fid(t, &cntr->fid);
		while ((ret = kfi_close(&set->kfid)) == -KFI_EBUSY && time_before(jiffies, until))
			cond_resched();
		expect(t, ret, 0);
		expect_true(t, is_back || happens_soon(&r.done));
	}
	WRITE_ONCE(r.stop, true);
	expect(t, job_finish(&job), 0);
	pr_info("# close/when-reported: %u of %u by the other thread\n", seen, round);
}

static void close_after_wait(struct test *t)
{
	unsigned int cpu = 0;
	struct members m;
	struct job job;
	int i;

	for (i = 0; i < 24 && !t->failed; i++) {
		cpu = other_cpu(cpu);
		if (!open_members(t, &m, KFI_WAIT_UNSPEC))
			return;
		if (!job_start(t, &job, wait_and_close, &m, cpu)) {
			close_members(t, &m);
			return;
		}
		if (i % 4)
			job_settle(&job);
		switch (i % 3) {
		case 0:
			expect(t, kfi_cntr_add(m.cntr, 1), 0);
			break;
		case 1:
			expect(t, put_completion(m.cq, 1), 0);
			break;
		default:
			expect(t, put_event(m.eq, KFI_NOTIFY), 0);
		}
		expect(t, job_finish(&job), 0);
	}
}

static void mixed_waits(struct test *t)
{
	wait_queue_head_t *queue = NULL;
	struct set_waiter waiter;
	struct members m;
	struct job job;
	long left;

	if (!open_members(t, &m, KFI_WAIT_QUEUE))
		return;
	expect(t, kfi_control(&m.set->kfid, KFI_GETWAIT, &queue), 0);
	if (expect_true(t, queue) && set_waiter_start(t, &waiter, m.set, SOON)) {
		job_settle(&waiter.job);
		/* One thread on the queue itself, one in kfi_wait(). */
		if (job_start(t, &job, add_job, m.cntr, ANY_CPU)) {
			left = wait_event_timeout(*queue, kfi_cntr_read(m.cntr) == 1,
						  msecs_to_jiffies(SOON));
			expect_true(t, left > 0);
			expect(t, job_finish(&job), 0);
		}
		expect(t, job_finish(&waiter.job), 0);
	}
	close_members(t, &m);
}

const struct test_case wait_set_tests[] = {
	{ "wset/attributes", "R-WAIT-1 R-WAIT-2 R-WAIT-4", attributes },
	{ "ctl/case-52-wait-sets", "R-CTL-6 R-CTL-7 R-CTL-8 R-CTL-9", control },
	{ "wset/member-attributes", "R-WAIT-10 R-CNTR-11 R-CNTR-13", member_attributes },
	{ "wset/case-63-counters-are-consumed", "R-WAIT-6 R-WAIT-7", counters_are_consumed },
	{ "wset/case-63-queues-are-level-triggered", "R-WAIT-6", queues_are_level_triggered },
	{ "wset/case-63-timeouts", "R-WAIT-5", timeouts },
	{ "wset/woken", "R-WAIT-5 R-WAIT-7", woken },
	{ "wset/no-change-does-not-wake", "R-WAIT-6", no_change_does_not_wake },
	{ "wset/case-62-two-queues", "R-WAIT-5 R-WAIT-6", two_queues },
	{ "wset/case-64-all-wake", "R-WAIT-8", all_wake },
	{ "wset/case-65-several-domains", "R-WAIT-1", several_domains },
	{ "wset/case-66-close-rules", "R-WAIT-9 R-CLOSE-6", close_rules },
	{ "wset/mixed-waits", "R-WAIT-11", mixed_waits },
	{ "close/case-72-after-wait", "R-CLOSE-3", close_after_wait },
	{ "close/when-reported", "R-CLOSE-3 R-CLOSE-6", close_when_reported },
	{}
};
