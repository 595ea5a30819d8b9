// SPDX-License-Identifier: GPL-2.0
/*
 * Poll sets.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/limits.h>

#include "consumer.h"

static struct kfid_poll *open_poll(struct test *t)
{
	struct kfi_poll_attr attr = {};
	struct kfid_poll *poll = NULL;

	if (!expect(t, kfi_poll_open(t->domain, &attr, &poll), 0))
		return NULL;
	return expect_true(t, poll) ? poll : NULL;
}

#define QUEUES 4

/* A poll set and queues, whose contexts are their places, from 1 on. */
struct polled {
	struct kfid_poll *poll;
	struct kfid_cq *cqs[QUEUES];
};

static void close_polled(struct test *t, struct polled *p)
{
	unsigned int i;

	for (i = 0; i < QUEUES; i++) {
		if (!p->cqs[i])
			continue;
		kfi_poll_del(p->poll, &p->cqs[i]->fid, 0);
		close_fid(t, &p->cqs[i]->fid);
	}
	if (p->poll)
		close_fid(t, &p->poll->fid);
}

static bool open_polled(struct test *t, struct polled *p)
{
	unsigned long i;

	*p = (struct polled) { .poll = open_poll(t) };
	for (i = 0; i < QUEUES && p->poll; i++) {
		p->cqs[i] = open_cq(t, KFI_WAIT_NONE, NULL, 0, (void *)(i + 1));
		if (!p->cqs[i])
			break;
	}
	if (i == QUEUES)
		return true;
	close_polled(t, p);
	return false;
}

/* Bit of every context that one call tells of. */
static unsigned long poll_bits(struct test *t, struct kfid_poll *poll, int count)
{
	void *contexts[QUEUES + 1] = {};
	unsigned long bits = 0, bit;
	int i, ret;

	ret = kfi_poll(poll, contexts, count);
	expect_true(t, ret >= 0 && ret <= count);
	for (i = 0; i < ret; i++) {
		bit = 1UL << (unsigned long)contexts[i];
		/* Nobody twice. */
		expect_true(t, !(bits & bit));
		bits |= bit;
	}
	for (; i < (int)ARRAY_SIZE(contexts); i++)
		expect_true(t, !contexts[i]);
	return bits;
}

static void attributes(struct test *t)
{
	struct kfi_poll_attr attr = { .flags = 1 };
	struct kfid_poll *poll = NULL;
	void *context;

	expect(t, kfi_poll_open(t->domain, &attr, &poll), -KFI_EINVAL);
	expect_true(t, !poll);
	if (expect(t, kfi_poll_open(t->domain, NULL, &poll), 0))
		close_fid(t, &poll->fid);
	poll = open_poll(t);
	if (!poll)
		return;
	expect(t, poll->fid.fclass, KFI_CLASS_POLL);
	expect(t, kfi_poll(poll, &context, 1), 0);
	expect(t, kfi_poll(poll, &context, 0), 0);
	expect(t, kfi_poll(poll, NULL, 0), 0);
	expect(t, kfi_poll(poll, &context, -1), -KFI_EINVAL);
	expect(t, kfi_poll(poll, &context, INT_MIN), -KFI_EINVAL);
	expect(t, kfi_poll(poll, NULL, 1), -KFI_EINVAL);
	expect_errno(t, kfi_control(&poll->fid, KFI_GETWAIT, &context));
	close_fid(t, &poll->fid);
}

static void members(struct test *t)
{
	struct kfid_wait *set = open_set(t, KFI_WAIT_UNSPEC);
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_UNSPEC, NULL, 0);
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid_cntr *other_cntr;
	struct test others;
	struct polled p;
	struct kfid *fid;

	if (!set || !eq || !cntr || !open_polled(t, &p))
		goto close;
	fid = &p.poll->fid;
	expect(t, kfi_poll_add(p.poll, fid, 0), -KFI_EINVAL);
	expect(t, kfi_poll_add(p.poll, &set->kfid, 0), -KFI_EINVAL);
	expect(t, kfi_poll_add(p.poll, &eq->fid, 0), -KFI_EINVAL);
	expect(t, kfi_poll_add(p.poll, &t->domain->fid, 0), -KFI_EINVAL);
	expect(t, kfi_poll_add(p.poll, &t->fabric->fid, 0), -KFI_EINVAL);
	expect(t, kfi_poll_add(p.poll, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_poll_del(p.poll, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_poll_del(p.poll, &eq->fid, 0), -KFI_EINVAL);
	expect(t, put_event(eq, KFI_NOTIFY), 0);
	expect(t, poll_bits(t, p.poll, QUEUES), 0);

	fid = &p.cqs[0]->fid;
	expect(t, kfi_poll_add(p.poll, fid, 1), -KFI_EINVAL);
	expect(t, kfi_poll_del(p.poll, fid, 0), -KFI_EINVAL);
	expect(t, kfi_poll_add(p.poll, fid, 0), 0);
	expect(t, kfi_poll_add(p.poll, fid, 0), 0);
	expect(t, put_completion(p.cqs[0], 1), 0);
	expect(t, poll_bits(t, p.poll, QUEUES), 1 << 1);
	expect(t, kfi_poll_del(p.poll, fid, 1), -KFI_EINVAL);
	expect(t, poll_bits(t, p.poll, QUEUES), 1 << 1);
	expect(t, kfi_poll_del(p.poll, fid, 0), 0);
	expect(t, kfi_poll_del(p.poll, fid, 0), -KFI_EINVAL);
	expect(t, poll_bits(t, p.poll, QUEUES), 0);
	/* And in again, with what it has by now. */
	expect(t, kfi_poll_add(p.poll, fid, 0), 0);
	expect(t, poll_bits(t, p.poll, QUEUES), 1 << 1);

	/* Of another domain, be it of the same fabric. */
	others = (struct test) { .info = t->info, .fabric = t->fabric };
	if (expect(t, kfi_domain(t->fabric, t->info, &others.domain, NULL), 0)) {
		other_cntr = open_cntr(&others, KFI_WAIT_UNSPEC);
		if (other_cntr) {
			expect(t, kfi_poll_add(p.poll, &other_cntr->fid, 0), -KFI_EINVAL);
			close_fid(t, &other_cntr->fid);
		}
		close_fid(t, &others.domain->fid);
	}
	close_polled(t, &p);
close:
	if (cntr)
		close_fid(t, &cntr->fid);
	if (eq)
		close_fid(t, &eq->fid);
	if (set)
		close_fid(t, &set->kfid);
}

static void own_changes_are_no_events(struct test *t)
{
	struct kfid_cntr *before = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid_cntr *after = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid_poll *poll = open_poll(t);
	void *context;

	if (!before || !after || !poll)
		goto close;
	expect(t, kfi_cntr_add(before, 1), 0);
	expect(t, kfi_cntr_adderr(before, 1), 0);
	expect(t, kfi_poll_add(poll, &before->fid, 0), 0);
	expect(t, kfi_poll_add(poll, &after->fid, 0), 0);
	expect(t, kfi_poll(poll, &context, 1), 0);
	expect(t, kfi_cntr_add(after, 500), 0);
	expect(t, kfi_poll(poll, &context, 1), 0);
	expect(t, kfi_cntr_set(after, 497), 0);
	expect(t, kfi_cntr_adderr(after, 2), 0);
	expect(t, kfi_cntr_seterr(before, 0), 0);
	expect(t, kfi_poll(poll, &context, 1), 0);
	expect(t, kfi_poll_del(poll, &before->fid, 0), 0);
	expect(t, kfi_poll_del(poll, &after->fid, 0), 0);
close:
	if (poll)
		close_fid(t, &poll->fid);
	if (before)
		close_fid(t, &before->fid);
	if (after)
		close_fid(t, &after->fid);
}

static void queues_are_level_triggered(struct test *t)
{
	struct kfi_cq_err_entry error = {};
	struct polled p;
	int i;

	if (!open_polled(t, &p))
		return;
	for (i = 0; i < QUEUES; i++)
		expect(t, kfi_poll_add(p.poll, &p.cqs[i]->fid, 0), 0);
	expect(t, poll_bits(t, p.poll, QUEUES), 0);
	expect(t, put_completion(p.cqs[1], 1), 0);
	expect(t, put_completion(p.cqs[1], 2), 0);
	expect(t, put_error(p.cqs[3], 3), 0);
	for (i = 0; i < 3; i++)
		expect(t, poll_bits(t, p.poll, QUEUES), 1 << 2 | 1 << 4);
	/* Polling takes nothing out. */
	expect(t, get_completion(p.cqs[1]), 1);
	expect(t, poll_bits(t, p.poll, QUEUES), 1 << 2 | 1 << 4);
	expect(t, get_completion(p.cqs[1]), 2);
	expect(t, poll_bits(t, p.poll, QUEUES), 1 << 4);
	expect(t, get_completion(p.cqs[3]), -KFI_EAVAIL);
	expect(t, poll_bits(t, p.poll, QUEUES), 1 << 4);
	expect(t, kfi_cq_readerr(p.cqs[3], &error, 0), 1);
	expect(t, poll_bits(t, p.poll, QUEUES), 0);
	close_polled(t, &p);
}

static void rotation(struct test *t)
{
	unsigned long all = 0, bits;
	struct polled p;
	int i, count;

	if (!open_polled(t, &p))
		return;
	for (i = 0; i < QUEUES; i++) {
		expect(t, kfi_poll_add(p.poll, &p.cqs[i]->fid, 0), 0);
		expect(t, put_completion(p.cqs[i], 1), 0);
		all |= 1UL << (i + 1);
	}
	expect(t, poll_bits(t, p.poll, QUEUES + 1), all);
	for (count = 1; count <= QUEUES; count++) {
		/* In as few calls as it takes everybody has had a turn. */
		bits = 0;
		for (i = 0; i < QUEUES; i += count) {
			unsigned long some = poll_bits(t, p.poll, count);

			expect(t, hweight_long(some), count);
			bits |= some;
		}
		expect(t, bits, all);
	}
	expect(t, poll_bits(t, p.poll, 0), 0);

	/* Members that leave do not take the turn of others. */
	for (i = 0; i < QUEUES - 1; i++) {
		poll_bits(t, p.poll, 1);
		expect(t, kfi_poll_del(p.poll, &p.cqs[i]->fid, 0), 0);
		all &= ~(1UL << (i + 1));
		bits = 0;
		for (count = 0; count < QUEUES - 1 - i; count++)
			bits |= poll_bits(t, p.poll, 1);
		expect(t, bits, all);
	}
	close_polled(t, &p);
}

static void two_sets(struct test *t)
{
	struct kfid_poll *second = open_poll(t);
	struct polled p;
	struct kfid *fid;

	if (!second)
		return;
	if (open_polled(t, &p)) {
		fid = &p.cqs[0]->fid;
		expect(t, kfi_poll_add(p.poll, fid, 0), 0);
		expect(t, kfi_poll_add(second, fid, 0), 0);
		expect(t, put_completion(p.cqs[0], 1), 0);
		expect(t, poll_bits(t, p.poll, QUEUES), 1 << 1);
		expect(t, poll_bits(t, second, QUEUES), 1 << 1);
		expect(t, kfi_poll_del(p.poll, fid, 0), 0);
		expect(t, poll_bits(t, p.poll, QUEUES), 0);
		expect(t, poll_bits(t, second, QUEUES), 1 << 1);
		expect(t, kfi_close(fid), -KFI_EBUSY);
		expect(t, kfi_poll_del(second, fid, 0), 0);
		close_polled(t, &p);
	}
	close_fid(t, &second->fid);
}

static void close_rules(struct test *t)
{
	struct kfid_cntr *cntr = NULL;
	struct test others;
	struct polled p;

	if (!open_others(t, &others))
		return;
	if (!open_polled(&others, &p))
		goto close;
	expect(t, kfi_close(&others.domain->fid), -KFI_EBUSY);
	cntr = open_cntr(&others, KFI_WAIT_QUEUE);
	if (cntr) {
		expect(t, kfi_poll_add(p.poll, &cntr->fid, 0), 0);
		expect(t, kfi_poll_add(p.poll, &p.cqs[0]->fid, 0), 0);
		expect(t, kfi_close(&p.poll->fid), -KFI_EBUSY);
		expect(t, kfi_close(&cntr->fid), -KFI_EBUSY);
		expect(t, kfi_close(&p.cqs[0]->fid), -KFI_EBUSY);

		/* Nothing has changed. */
		expect(t, put_completion(p.cqs[0], 1), 0);
		expect(t, poll_bits(t, p.poll, QUEUES), 1 << 1);
		expect(t, kfi_poll_del(p.poll, &p.cqs[0]->fid, 0), 0);
		expect(t, kfi_close(&p.poll->fid), -KFI_EBUSY);
		expect(t, kfi_poll_del(p.poll, &cntr->fid, 0), 0);
		close_fid(t, &cntr->fid);
	}
	close_polled(t, &p);
close:
	close_others(t, &others);
}

/* Two threads: one changes the set and the queues, one polls all the time. */
struct stress {
	struct polled p;
	bool stop;
	unsigned long polls;
};

static long poll_all_the_time(void *arg)
{
	struct stress *stress = arg;
	void *contexts[2];
	int i, ret;

	while (!READ_ONCE(stress->stop)) {
		ret = kfi_poll(stress->p.poll, contexts, ARRAY_SIZE(contexts));
		if (ret < 0 || ret > 2)
			return ret;
		for (i = 0; i < ret; i++) {
			if (!contexts[i] || (unsigned long)contexts[i] > QUEUES)
				return -KFI_EINVAL;
		}
		stress->polls++;
		cond_resched();
	}
	return 0;
}

static void concurrent(struct test *t)
{
	struct stress stress = {};
	struct polled *p = &stress.p;
	unsigned int round, i;
	struct job job;
	ktime_t end;

	if (!open_polled(t, p))
		return;
	if (!job_start(t, &job, poll_all_the_time, &stress,
		       other_cpu(raw_smp_processor_id())))
		goto close;
	end = ktime_add_ms(ktime_get(), 500);
	for (round = 0; ktime_before(ktime_get(), end) && !t->failed; round++) {
		i = round % QUEUES;
		expect(t, kfi_poll_add(p->poll, &p->cqs[i]->fid, 0), 0);
		expect(t, put_completion(p->cqs[i], 1), 0);
		expect_true(t, poll_bits(t, p->poll, QUEUES) & 1UL << (i + 1));
		expect(t, kfi_close(&p->cqs[i]->fid), -KFI_EBUSY);
		if (round % 3)
			expect(t, get_completion(p->cqs[i]), 1);
		expect(t, kfi_poll_del(p->poll, &p->cqs[i]->fid, 0), 0);
		expect_true(t, !(poll_bits(t, p->poll, QUEUES) & 1UL << (i + 1)));
		if (!(round % 3))
			expect(t, get_completion(p->cqs[i]), 1);
		cond_resched();
	}
	WRITE_ONCE(stress.stop, true);
	expect(t, job_finish(&job), 0);
	expect_true(t, round && stress.polls);
close:
	close_polled(t, p);
}

const struct test_case poll_set_tests[] = {
	{ "poll/case-57-attributes-and-counts", "R-POLL-1 R-POLL-7", attributes },
	{ "poll/case-58-members", "R-POLL-2 R-POLL-3", members },
	{ "poll/case-55-own-changes-are-no-events", "R-POLL-6", own_changes_are_no_events },
	{ "poll/queues-are-level-triggered", "R-POLL-5 R-POLL-11", queues_are_level_triggered },
	{ "poll/case-57-rotation", "R-POLL-4 R-POLL-7", rotation },
	{ "poll/case-59-two-sets", "R-POLL-5", two_sets },
	{ "poll/case-60-concurrent", "R-POLL-3 R-POLL-8", concurrent },
	{ "poll/case-61-close-rules", "R-CLOSE-2 R-CLOSE-7", close_rules },
	{}
};
