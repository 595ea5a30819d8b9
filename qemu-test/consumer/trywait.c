// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_trywait().
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/wait.h>

#include <kfi_soft_ext.h>

#include "consumer.h"

static unsigned int trywait_rounds = 200;
module_param(trywait_rounds, uint, 0444);
MODULE_PARM_DESC(trywait_rounds, "Events for each kind of object in the stress test of kfi_trywait");

static int try_one(struct test *t, struct kfid *fid)
{
	return kfi_trywait(t->fabric, &fid, 1);
}

static long get_event(struct kfid_eq *eq)
{
	struct kfi_eq_entry entry;
	u32 event;

	return kfi_eq_read(eq, &event, &entry, sizeof(entry), 0);
}

static void counters(struct test *t)
{
	static const enum kfi_wait_obj kinds[] = { KFI_WAIT_QUEUE, KFI_WAIT_UNSPEC };
	struct kfid_cntr *cntr;
	unsigned int i;
	void *queue;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		cntr = open_cntr(t, kinds[i]);
		if (!cntr)
			return;
		if (kinds[i] == KFI_WAIT_QUEUE)
			expect(t, kfi_control(&cntr->fid, KFI_GETWAIT, &queue), 0);
		expect(t, try_one(t, &cntr->fid), 0);
		expect(t, try_one(t, &cntr->fid), 0);

#define expect_again_once(change)					\
		do {							\
			expect(t, change, 0);				\
			expect(t, try_one(t, &cntr->fid), -KFI_EAGAIN);	\
			expect(t, try_one(t, &cntr->fid), 0);		\
		} while (0)

		expect_again_once(kfi_cntr_add(cntr, 1));
		expect_again_once(kfi_cntr_set(cntr, 9));
		expect_again_once(kfi_cntr_set(cntr, 2));
		expect_again_once(kfi_cntr_adderr(cntr, 1));
		expect_again_once(kfi_cntr_seterr(cntr, 0));
#undef expect_again_once
		close_fid(t, &cntr->fid);
	}

	/* Changes from before the first call are told of as well. */
	cntr = open_cntr(t, KFI_WAIT_QUEUE);
	if (!cntr)
		return;
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect(t, try_one(t, &cntr->fid), -KFI_EAGAIN);
	expect(t, try_one(t, &cntr->fid), 0);
	close_fid(t, &cntr->fid);
}

/* As for other kinds: a change is one, whatever the value is now. */
static void counter_back_at_zero(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);
	void *queue;

	if (!cntr)
		return;
	expect(t, kfi_control(&cntr->fid, KFI_GETWAIT, &queue), 0);
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect(t, kfi_cntr_set(cntr, 0), 0);
	expect(t, try_one(t, &cntr->fid), -KFI_EAGAIN);
	expect(t, try_one(t, &cntr->fid), 0);
	close_fid(t, &cntr->fid);
}

static void queues(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_QUEUE, NULL, 0, NULL);
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_QUEUE, NULL, 0);
	struct kfi_cq_err_entry error = {};
	struct kfid *fids[2];
	int i;

	if (!cq || !eq)
		goto close;
	fids[0] = &cq->fid;
	fids[1] = &eq->fid;
	expect(t, kfi_trywait(t->fabric, fids, 2), 0);
	expect(t, put_completion(cq, 1), 0);
	expect(t, put_error(cq, 2), 0);
	for (i = 0; i < 3; i++) {
		expect(t, try_one(t, &cq->fid), -KFI_EAGAIN);
		expect(t, try_one(t, &eq->fid), 0);
		expect(t, kfi_trywait(t->fabric, fids, 2), -KFI_EAGAIN);
	}
	expect(t, get_completion(cq), 1);
	expect(t, try_one(t, &cq->fid), -KFI_EAGAIN);
	expect(t, kfi_cq_readerr(cq, &error, 0), 1);
	expect(t, kfi_trywait(t->fabric, fids, 2), 0);
	expect(t, put_event(eq, KFI_NOTIFY), 0);
	expect(t, kfi_trywait(t->fabric, fids, 2), -KFI_EAGAIN);
	expect(t, kfi_trywait(t->fabric, fids, 1), 0);
	expect_true(t, get_event(eq) > 0);
	expect(t, kfi_trywait(t->fabric, fids, 2), 0);
close:
	if (cq)
		close_fid(t, &cq->fid);
	if (eq)
		close_fid(t, &eq->fid);
}

static void sets(struct test *t)
{
	struct kfid_wait *set = open_set(t, KFI_WAIT_QUEUE);
	struct kfid_cntr *cntr;
	struct kfid_cq *cq;
	struct kfid_eq *eq;
	struct kfid *fids[3];

	if (!set)
		return;
	expect(t, try_one(t, &set->kfid), 0);
	cntr = open_cntr_in(t, set);
	cq = open_cq(t, KFI_WAIT_SET, set, 0, NULL);
	eq = open_eq(t, KFI_WAIT_SET, set, 0);
	if (!cntr || !cq || !eq)
		goto close;
	fids[0] = &cntr->fid;
	fids[1] = &cq->fid;
	fids[2] = &eq->fid;
	expect(t, try_one(t, &set->kfid), 0);
	expect(t, kfi_trywait(t->fabric, fids, 3), 0);

	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect(t, try_one(t, &set->kfid), -KFI_EAGAIN);
	expect(t, try_one(t, &set->kfid), 0);
	expect(t, put_completion(cq, 1), 0);
	expect(t, try_one(t, &set->kfid), -KFI_EAGAIN);
	expect(t, try_one(t, &set->kfid), -KFI_EAGAIN);
	expect(t, get_completion(cq), 1);
	expect(t, try_one(t, &set->kfid), 0);
	expect(t, put_event(eq, KFI_NOTIFY), 0);
	expect(t, try_one(t, &set->kfid), -KFI_EAGAIN);
	/* A member stands for its set. */
	expect(t, try_one(t, &eq->fid), -KFI_EAGAIN);
	expect(t, try_one(t, &cq->fid), -KFI_EAGAIN);
	expect(t, kfi_trywait(t->fabric, fids, 3), -KFI_EAGAIN);
	expect_true(t, get_event(eq) > 0);
	expect(t, kfi_cntr_adderr(cntr, 1), 0);
	expect(t, kfi_trywait(t->fabric, fids, 3), -KFI_EAGAIN);
	expect(t, kfi_trywait(t->fabric, fids, 3), 0);
close:
	if (cntr)
		close_fid(t, &cntr->fid);
	if (cq)
		close_fid(t, &cq->fid);
	if (eq)
		close_fid(t, &eq->fid);
	close_fid(t, &set->kfid);
}

static void bad_arguments(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);
	struct kfid_cntr *none = open_cntr(t, KFI_WAIT_NONE);
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_NONE, NULL, 0, NULL);
	struct kfid_wait *set = open_set(t, KFI_WAIT_QUEUE);
	struct kfi_poll_attr attr = {};
	struct kfid_poll *poll = NULL;
	struct kfid_cntr *member;
	struct kfid *fids[2];

	if (!cntr || !none || !cq || !set)
		goto close;
	expect(t, kfi_trywait(t->fabric, NULL, 0), 0);
	fids[0] = &cntr->fid;
	fids[1] = NULL;
	expect(t, kfi_trywait(t->fabric, fids, 0), 0);
	expect(t, kfi_trywait(t->fabric, NULL, 1), -KFI_EINVAL);
	expect(t, kfi_trywait(t->fabric, fids, 2), -KFI_EINVAL);
	expect(t, kfi_trywait(t->fabric, fids, -1), -KFI_EINVAL);
	expect(t, try_one(t, &none->fid), -KFI_EINVAL);
	expect(t, try_one(t, &cq->fid), -KFI_EINVAL);
	expect(t, put_completion(cq, 1), 0);
	expect(t, try_one(t, &cq->fid), -KFI_EINVAL);
	expect(t, try_one(t, &t->domain->fid), -KFI_EINVAL);
	expect(t, try_one(t, &t->fabric->fid), -KFI_EINVAL);
	if (expect(t, kfi_poll_open(t->domain, &attr, &poll), 0)) {
		expect(t, try_one(t, &poll->fid), -KFI_EINVAL);
		close_fid(t, &poll->fid);
	}

	/* A mix of kinds; what has changed is not used up by it. */
	member = open_cntr_in(t, set);
	if (member) {
		expect(t, kfi_trywait(t->fabric, fids, 1), 0);
		expect(t, kfi_cntr_add(cntr, 1), 0);
		fids[1] = &member->fid;
		expect(t, kfi_trywait(t->fabric, fids, 2), -KFI_EINVAL);
		fids[1] = &none->fid;
		expect(t, kfi_trywait(t->fabric, fids, 2), -KFI_EINVAL);
		expect(t, kfi_trywait(t->fabric, fids, 1), -KFI_EAGAIN);
		close_fid(t, &member->fid);
	}
close:
	if (cntr)
		close_fid(t, &cntr->fid);
	if (none)
		close_fid(t, &none->fid);
	if (cq)
		close_fid(t, &cq->fid);
	if (set)
		close_fid(t, &set->kfid);
}

struct try_call {
	struct test *t;
	struct kfid *fid;
};

static long try_in_hardirq(void *arg)
{
	struct try_call *call = arg;

	return try_one(call->t, call->fid);
}

static void from_hardirq(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_QUEUE, NULL, 0, NULL);
	struct try_call call = { .t = t };

	if (cntr && cq) {
		call.fid = &cntr->fid;
		expect(t, run_in_hardirq(t, try_in_hardirq, &call), 0);
		expect(t, kfi_cntr_add(cntr, 1), 0);
		expect(t, run_in_hardirq(t, try_in_hardirq, &call), -KFI_EAGAIN);
		call.fid = &cq->fid;
		expect(t, run_in_hardirq(t, try_in_hardirq, &call), 0);
		expect(t, put_completion(cq, 1), 0);
		expect(t, run_in_hardirq(t, try_in_hardirq, &call), -KFI_EAGAIN);
	}
	if (cntr)
		close_fid(t, &cntr->fid);
	if (cq)
		close_fid(t, &cq->fid);
}

/*
 * One thread makes an event after the other, each as soon as the one before
 * was seen; the other one waits as the headers say. A lost event ends both.
 */
struct stress {
	struct test *t;
	wait_queue_head_t *queue;
	struct kfid_wait *set;
	struct kfid_cntr *cntr;
	struct kfid_cq *cq;
	struct kfid_eq *eq;
	struct kfid *fid;
	unsigned int seen;
	bool give_up;
};

/* Events that were read by now, all together. */
static unsigned int stress_drain(struct stress *s)
{
	unsigned int seen = s->seen;

	if (s->cntr)
		return kfi_cntr_read(s->cntr) + kfi_cntr_readerr(s->cntr);
	if (s->cq) {
		while (get_completion(s->cq) > 0)
			seen++;
	}
	if (s->eq) {
		while (get_event(s->eq) > 0)
			seen++;
	}
	return seen;
}

static long stress_maker(void *arg)
{
	struct stress *s = arg;
	unsigned int i, spins;
	int ret;

	for (i = 0; i < trywait_rounds; i++) {
		while (READ_ONCE(s->seen) != i) {
			if (READ_ONCE(s->give_up))
				return -KFI_ETIMEDOUT;
			cond_resched();
		}
		/* At various moments of the other thread's round. */
		for (spins = (i * 37) % 400; spins; spins--)
			cpu_relax();
		if (s->cntr)
			ret = i % 5 ? kfi_cntr_add(s->cntr, 1) :
				      kfi_cntr_adderr(s->cntr, 1);
		else if (s->cq)
			ret = put_completion(s->cq, 1);
		else
			ret = put_event(s->eq, KFI_NOTIFY);
		if (ret)
			return ret;
	}
	return 0;
}

static long stress_waits(void *arg)
{
	struct stress *s = arg;
	bool lost = false;
	int ret = 0;

	while (s->seen < trywait_rounds && !lost && !ret) {
		DEFINE_WAIT(wait);

		prepare_to_wait(s->queue, &wait, TASK_INTERRUPTIBLE);
		ret = try_one(s->t, s->fid);
		if (!ret)
			lost = !schedule_timeout(msecs_to_jiffies(SOON));
		finish_wait(s->queue, &wait);
		if (ret == -KFI_EAGAIN)
			ret = 0;
		WRITE_ONCE(s->seen, stress_drain(s));
	}
	if (lost || ret)
		WRITE_ONCE(s->give_up, true);
	return lost ? -KFI_ETIMEDOUT : ret;
}

static void stress_run(struct test *t, struct stress *s)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	struct job maker, waiter;

	s->t = t;
	expect(t, kfi_control(s->fid, KFI_GETWAIT, &s->queue), 0);
	if (!expect_true(t, s->queue) ||
	    !job_start(t, &waiter, stress_waits, s, cpu))
		return;
	if (job_start(t, &maker, stress_maker, s, other_cpu(cpu)))
		expect(t, job_finish(&maker), 0);
	expect(t, job_finish(&waiter), 0);
	expect(t, s->seen, trywait_rounds);
}

/* A counter that another thread closes as soon as it sees what the call has done. */
struct tried {
	struct test *t;
	struct kfid_cntr *cntr;
	struct completion done;
	bool stop;
};

static long try_again(void *arg)
{
	struct tried *tried = arg;

	while (!READ_ONCE(tried->stop)) {
		struct kfid_cntr *cntr = xchg(&tried->cntr, NULL);
		int ret;

		if (!cntr) {
			cond_resched();
			continue;
		}
		ret = try_one(tried->t, &cntr->fid);
		if (ret && ret != -KFI_EAGAIN)
			return ret;
		complete(&tried->done);
	}
	return 0;
}

/*
 * A change is told of once. A thread that finds it told knows that the other one has
 * called, and closes the counter, though the call may not be back.
 */
static void close_when_tried(struct test *t)
{
	unsigned int cpu = cpumask_first(cpu_online_mask), round, seen = 0;
	struct tried tried = { .t = t };
	struct job job;

	init_completion(&tried.done);
	if (!job_start(t, &job, try_again, &tried, other_cpu(cpu)))
		return;
	for (round = 0; round < 300 && !t->failed; round++) {
		struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);
		bool is_back = false;
		unsigned int spins;
		int ret;

		if (!cntr)
			break;
		expect(t, kfi_cntr_add(cntr, 1), 0);
		reinit_completion(&tried.done);
		xchg(&tried.cntr, cntr);
		for (spins = round * 13 % 400; spins; spins--)
			cpu_relax();
		ret = try_one(t, &cntr->fid);
		if (!ret)
			seen++;
		else if (expect(t, ret, -KFI_EAGAIN))
			is_back = happens_soon(&tried.done);
		close_fid(t, &cntr->fid);
		expect_true(t, is_back || happens_soon(&tried.done));
	}
	WRITE_ONCE(tried.stop, true);
	expect(t, job_finish(&job), 0);
	pr_info("# close/when-tried: %u of %u by the other thread\n", seen, round);
}

static void stress_counter(struct test *t)
{
	struct stress s = { .cntr = open_cntr(t, KFI_WAIT_QUEUE) };

	if (!s.cntr)
		return;
	s.fid = &s.cntr->fid;
	stress_run(t, &s);
	close_fid(t, s.fid);
}

static void stress_cq(struct test *t)
{
	struct stress s = { .cq = open_cq(t, KFI_WAIT_QUEUE, NULL, 0, NULL) };

	if (!s.cq)
		return;
	s.fid = &s.cq->fid;
	stress_run(t, &s);
	close_fid(t, s.fid);
}

static void stress_eq(struct test *t)
{
	struct stress s = { .eq = open_eq(t, KFI_WAIT_QUEUE, NULL, 0) };

	if (!s.eq)
		return;
	s.fid = &s.eq->fid;
	stress_run(t, &s);
	close_fid(t, s.fid);
}

static void stress_set(struct test *t)
{
	struct kfid_wait *set = open_set(t, KFI_WAIT_QUEUE);
	struct stress s = {};
	struct kfid *member;
	int kind;

	for (kind = 0; kind < 3 && set; kind++) {
		s = (struct stress) { .set = set, .fid = &set->kfid };
		member = NULL;
		if (kind == 0) {
			s.cntr = open_cntr_in(t, set);
			member = s.cntr ? &s.cntr->fid : NULL;
		} else if (kind == 1) {
			s.cq = open_cq(t, KFI_WAIT_SET, set, 0, NULL);
			member = s.cq ? &s.cq->fid : NULL;
		} else {
			s.eq = open_eq(t, KFI_WAIT_SET, set, 0);
			member = s.eq ? &s.eq->fid : NULL;
		}
		if (!member)
			break;
		stress_run(t, &s);
		close_fid(t, member);
	}
	if (set)
		close_fid(t, &set->kfid);
}

/* A thread that looks once, or may be listening, costs later additions no lock. */
static void looking_once(struct test *t)
{
	struct kfi_soft_cntr_ops *ops = NULL;
	struct kfi_soft_cntr_stats before, after;
	struct kfid_wait *set = open_set(t, KFI_WAIT_UNSPEC);
	struct kfid_poll *polls = NULL;
	struct kfid_cntr *cntr;
	void *queue, *context;
	unsigned int i, kind;

	if (!set)
		return;
	for (kind = 0; kind < 4; kind++) {
		cntr = kind == 3 ? open_cntr_in(t, set) : open_cntr(t, KFI_WAIT_QUEUE);
		if (!cntr)
			break;
		expect(t, kfi_open_ops(&cntr->fid, KFI_SOFT_CNTR_OPS_1, 0, (void **)&ops, NULL), 0);
		if (!ops)
			goto close;
		switch (kind) {
		case 0:
			expect(t, try_one(t, &cntr->fid), 0);
			break;
		case 1:
			expect(t, kfi_control(&cntr->fid, KFI_GETWAIT, &queue), 0);
			break;
		case 2:
			expect(t, kfi_poll_open(t->domain, NULL, &polls), 0);
			expect(t, kfi_poll_add(polls, &cntr->fid, 0), 0);
			break;
		}
		expect(t, kfi_cntr_add(cntr, 1), 0);
		expect(t, ops->stats(&cntr->fid, &before), 0);
		for (i = 0; i < 100; i++)
			expect(t, kfi_cntr_add(cntr, 1), 0);
		expect(t, ops->stats(&cntr->fid, &after), 0);
		expect(t, after.attended, before.attended);
		/* All are seen nevertheless. */
		switch (kind) {
		case 0:
		case 1:
			expect(t, try_one(t, &cntr->fid), -KFI_EAGAIN);
			expect(t, try_one(t, &cntr->fid), 0);
			break;
		case 2:
			expect(t, kfi_poll(polls, &context, 1), 0);
			expect(t, kfi_poll_del(polls, &cntr->fid, 0), 0);
			close_fid(t, &polls->fid);
			break;
		case 3:
			expect(t, kfi_wait(set, 0), 0);
			expect(t, kfi_wait(set, 0), -KFI_ETIMEDOUT);
			break;
		}
close:
		close_fid(t, &cntr->fid);
	}
	close_fid(t, &set->kfid);
}

const struct test_case trywait_tests[] = {
	{ "tryw/case-68-counters", "R-TRYWAIT-1 R-TRYWAIT-7", counters },
	{ "tryw/case-68-counter-back-at-zero", "R-TRYWAIT-7", counter_back_at_zero },
	{ "tryw/looking-once", "R-TRYWAIT-7 R-TRYWAIT-9", looking_once },
	{ "tryw/case-68-queues", "R-TRYWAIT-1 R-TRYWAIT-3", queues },
	{ "tryw/case-68-sets", "R-TRYWAIT-6", sets },
	{ "tryw/case-69-bad-arguments", "R-TRYWAIT-3 R-TRYWAIT-4 R-TRYWAIT-5 R-TRYWAIT-8",
	  bad_arguments },
	{ "tryw/from-hardirq", "R-TRYWAIT-9", from_hardirq },
	{ "close/when-tried", "R-CLOSE-3 R-TRYWAIT-9", close_when_tried },
	{ "tryw/case-70-nothing-lost-counter", "R-TRYWAIT-2 R-TRYWAIT-9", stress_counter },
	{ "tryw/case-70-nothing-lost-cq", "R-TRYWAIT-2 R-TRYWAIT-9", stress_cq },
	{ "tryw/case-70-nothing-lost-eq", "R-TRYWAIT-2 R-TRYWAIT-9", stress_eq },
	{ "tryw/case-70-nothing-lost-set", "R-TRYWAIT-6 R-TRYWAIT-9", stress_set },
	{}
};
