// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred work that is cancelled, flushed, or whose objects are closed.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <kfi_soft_ext.h>

#include "deferred.h"

/* It holds what it needs, and no longer than it needs it. */
static void busy(struct test *t)
{
	struct kfid_cntr *c[2];

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, queue_add(t, c[0], 1, c[1], 1), 0);
	if (!expect(t, kfi_close(&c[0]->fid), -KFI_EBUSY) ||
	    !expect(t, kfi_close(&c[1]->fid), -KFI_EBUSY))
		return;
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 1);
	close_cntrs(t, c, 2);
}

static void cancel(struct test *t)
{
	struct kfid *domain = &t->domain->fid;
	struct kfi_soft_dom_ops *ops = NULL;
	struct kfi_deferred_work *work;
	struct kfi_op_cntr op;
	struct kfid_cntr *c[2];

	work = kzalloc_obj(*work);
	if (!expect_true(t, work))
		return;
	if (!open_cntrs(t, c, 2))
		goto free;
	op = (struct kfi_op_cntr) { .cntr = c[1], .value = 1 };
	work->threshold = 5;
	work->triggering_cntr = c[0];
	work->op_type = KFI_OP_CNTR_ADD;
	work->op.cntr = &op;

	/* Never queued. */
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), -KFI_ENOENT);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, NULL), -KFI_EINVAL);
	/* Pending, and twice. */
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, work), 0);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), 0);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), -KFI_ENOENT);
	expect(t, kfi_cntr_add(c[0], 5), 0);
	expect(t, kfi_cntr_read(c[1]), 0);
	/* Fired. */
	work->threshold = 6;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, work), 0);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 1);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), -KFI_ENOENT);
	/* Queued twice, of which one has fired. */
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, work), 0);
	work->threshold = 7;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, work), 0);
	expect(t, kfi_cntr_wait(c[1], 2, SOON), 0);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), 0);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), -KFI_ENOENT);
	/* Freed: a pointer is only compared. */
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, work), 0);
	kfree(work);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), 0);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, work), -KFI_ENOENT);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, (void *)8), -KFI_ENOENT);
	expect(t, kfi_open_ops(domain, KFI_SOFT_DOM_OPS_1, 0, (void **)&ops, NULL), 0);
	if (expect_true(t, ops)) {
		expect(t, ops->size, sizeof(*ops));
		expect(t, ops->cancel_work(domain, work), -KFI_ENOENT);
		expect(t, ops->cancel_work(domain, (void *)8), -KFI_ENOENT);
		expect(t, ops->cancel_work(domain, NULL), -KFI_EINVAL);
	}
	work = NULL;
	expect(t, kfi_cntr_add(c[0], 10), 0);
	expect(t, kfi_cntr_read(c[1]), 2);
	close_cntrs(t, c, 2);
free:
	kfree(work);
}

static void cancel_race(struct test *t)
{
	struct kfid *domain = &t->domain->fid;
	struct kfi_deferred_work *works;
	struct adder adder = { .times = MANY };
	unsigned int i, cancelled = 0, late = 0;
	struct kfi_op_cntr op;
	struct kfid_cntr *c[2];
	struct job job;
	int ret;

	works = vcalloc(MANY, sizeof(*works));
	if (!expect_true(t, works))
		return;
	if (!open_cntrs(t, c, 2))
		goto free;
	op = (struct kfi_op_cntr) { .cntr = c[1], .value = 1 };
	for (i = 0; i < MANY; i++) {
		works[i] = (struct kfi_deferred_work) {
			.threshold = i + 1,
			.triggering_cntr = c[0],
			.op_type = KFI_OP_CNTR_ADD,
			.op.cntr = &op,
		};
		if (!expect(t, kfi_control(domain, KFI_QUEUE_WORK, &works[i]), 0))
			break;
	}
	adder.cntr = c[0];
	if (i == MANY && job_start(t, &job, add_slowly, &adder, ANY_CPU)) {
		/* From both ends, as the adder comes from one. */
		for (i = 0; i < MANY; i++) {
			unsigned int at = i % 2 ? i / 2 : MANY - 1 - i / 2;

			ret = kfi_control(domain, KFI_CANCEL_WORK, &works[at]);
			if (!ret)
				cancelled++;
			else if (ret == -KFI_ENOENT)
				late++;
			else
				expect(t, ret, 0);
			if (!(i % 64))
				cond_resched();
		}
		expect(t, job_finish(&job), 0);
		expect(t, cancelled + late, MANY);
		expect(t, kfi_cntr_wait(c[1], late, 12 * SOON), 0);
		msleep(20);
		expect(t, kfi_cntr_read(c[1]) + cancelled, MANY);
	}
	expect(t, flush(t, NULL), 0);
	close_cntrs(t, c, 2);
free:
	vfree(works);
}

static void flushes(struct test *t)
{
	struct test others = {};
	struct kfid_cntr *c[3], *other;

	if (!open_others(t, &others))
		return;
	other = open_cntr(&others, KFI_WAIT_UNSPEC);
	if (!other || !open_cntrs(t, c, 3))
		goto close;
	/* Nothing there. */
	expect(t, flush(t, NULL), 0);
	expect(t, flush(t, c[0]), 0);
	/* Wrong arguments. */
	expect(t, flush(t, (struct kfid_cntr *)t->domain), -KFI_EINVAL);
	expect(t, flush(t, other), -KFI_EINVAL);

	/* By counter: what it triggers, not what targets it. */
	expect(t, queue_add(t, c[0], 1, c[1], 1), 0);
	expect(t, queue_add(t, c[0], 2, c[1], 1), 0);
	expect(t, queue_add(t, c[1], 1, c[0], 10), 0);
	expect(t, queue_add(t, c[2], 1, c[0], 100), 0);
	expect(t, flush(t, c[0]), 0);
	expect(t, kfi_cntr_add(c[0], 5), 0);
	expect(t, kfi_cntr_read(c[1]), 0);
	expect(t, kfi_cntr_add(c[1], 1), 0);
	expect(t, kfi_cntr_read(c[0]), 15);

	/* All of the domain, and of no other. */
	expect(t, queue_add(&others, other, 1, other, 1), 0);
	expect(t, queue_add(t, c[0], 100, c[1], 1), 0);
	expect(t, flush(t, NULL), 0);
	expect(t, kfi_cntr_add(c[0], 1000), 0);
	expect(t, kfi_cntr_add(c[2], 1000), 0);
	expect(t, kfi_cntr_read(c[0]), 1015);
	expect(t, kfi_cntr_read(c[1]), 1);
	expect(t, kfi_cntr_add(other, 1), 0);
	expect(t, kfi_cntr_read(other), 2);

	/* The counters can be used again. */
	expect(t, queue_add(t, c[2], 1001, c[1], 1), 0);
	expect(t, kfi_cntr_add(c[2], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 2);
	close_cntrs(t, c, 3);
close:
	if (other)
		close_fid(t, &other->fid);
	close_others(t, &others);
}

static void flush_race(struct test *t)
{
	struct adder adder = { .times = SOME };
	struct kfid_cntr *c[2];
	struct job job;
	unsigned int i, round;
	u64 fired;

	if (!open_cntrs(t, c, 2))
		return;
	adder.cntr = c[0];
	for (round = 0; round < 4; round++) {
		expect(t, kfi_cntr_set(c[0], 0), 0);
		expect(t, kfi_cntr_set(c[1], 0), 0);
		for (i = 1; i <= SOME; i++)
			expect(t, queue_add(t, c[0], i, c[1], 1), 0);
		if (!job_start(t, &job, add_slowly, &adder, ANY_CPU))
			break;
		/* Not by c[0]: what an addition has fired may be flushed before it has run. */
		while (kfi_cntr_read(c[1]) < SOME / 4)
			cond_resched();
		expect(t, flush(t, round % 2 ? c[0] : NULL), 0);
		expect(t, job_finish(&job), 0);
		msleep(20);
		fired = kfi_cntr_read(c[1]);
		expect_true(t, fired >= SOME / 4 && fired <= SOME);
		/* Nothing is left. */
		expect(t, kfi_cntr_add(c[0], SOME), 0);
		expect(t, kfi_cntr_read(c[1]), fired);
	}
	expect(t, flush(t, NULL), 0);
	close_cntrs(t, c, 2);
}

/* Work that has fired refers to nothing any more when a flush returns. */
static void flush_waits(struct test *t)
{
	struct kfid_cntr *c[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (!open_cntrs(t, c, 2))
			return;
		fire_many(t, c[0], c[1]);
		expect(t, flush(t, i ? c[0] : NULL), 0);
		expect(t, kfi_cntr_read(c[1]), MANY);
		close_cntrs(t, c, 2);
	}
}

static void cancel_waits(struct test *t)
{
	struct kfid_cntr *c[3];
	struct kfi_op_cntr op = { .value = 1 };
	struct kfi_deferred_work work = {
		.threshold = 2,
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &op,
	};
	unsigned int i;

	if (!open_cntrs(t, c, 3))
		return;
	/* Behind many others, and many times: what has fired is in nobody's way. */
	op.cntr = c[2];
	work.triggering_cntr = c[0];
	for (i = 0; i < SOME; i++)
		expect(t, kfi_control(&t->domain->fid, KFI_QUEUE_WORK, &work), 0);
	fire_many(t, c[0], c[1]);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	work.threshold = 3;
	expect(t, kfi_control(&t->domain->fid, KFI_QUEUE_WORK, &work), 0);
	expect(t, kfi_control(&t->domain->fid, KFI_CANCEL_WORK, &work), 0);
	expect(t, kfi_control(&t->domain->fid, KFI_CANCEL_WORK, &work), -KFI_ENOENT);
	expect(t, kfi_cntr_read(c[1]), MANY);
	expect(t, kfi_cntr_read(c[2]), SOME);
	close_cntrs(t, c, 3);
}

struct churn {
	struct test *t;
	struct kfid_cntr *c[2];
	bool stop;
};

/* Keeps a drainer busy. */
static long churn_run(void *arg)
{
	struct churn *churn = arg;
	unsigned int i = 0;
	int ret = 0;

	while (!READ_ONCE(churn->stop) && !ret) {
		ret = queue_add(churn->t, churn->c[0], 0, churn->c[1], 1);
		if (!(++i % 64))
			cond_resched();
	}
	return ret;
}

/* A thread that has seen all effects can close everything, whoever is the drainer. */
static void closes_at_once(struct test *t)
{
	struct churn churn = { .t = t };
	struct adder adder = { .times = 1 };
	struct kfid_cntr *c[2];
	struct job job, add;
	unsigned int i;

	if (!open_cntrs(t, churn.c, 2))
		return;
	if (job_start(t, &job, churn_run, &churn, ANY_CPU)) {
		for (i = 0; i < SOME / 10; i++) {
			if (!open_cntrs(t, c, 2))
				break;
			expect(t, queue_add(t, c[0], 1, c[1], 1), 0);
			adder.cntr = c[0];
			if (i % 2)
				expect(t, kfi_cntr_add(c[0], 1), 0);
			else if (!job_start(t, &add, add_slowly, &adder, ANY_CPU))
				break;
			while (!kfi_cntr_read(c[1]))
				cpu_relax();
			expect(t, kfi_close(&c[0]->fid), 0);
			expect(t, kfi_close(&c[1]->fid), 0);
			if (!(i % 2))
				expect(t, job_finish(&add), 0);
			if (t->failed)
				break;
		}
		WRITE_ONCE(churn.stop, true);
		expect(t, job_finish(&job), 0);
	}
	expect(t, flush(t, NULL), 0);
	close_cntrs(t, churn.c, 2);
}

struct queuer {
	struct test *t;
	struct kfid_cntr *c[2];
};

static long queue_due(void *arg)
{
	struct queuer *queuer = arg;

	return queue_add(queuer->t, queuer->c[0], 0, queuer->c[1], 1);
}

/* The one that has queued may still be on its way back. */
static void domain_closes_at_once(struct test *t)
{
	unsigned int i;

	for (i = 0; i < SOME / 20; i++) {
		struct test others = {};
		struct queuer queuer = { .t = &others };
		struct job job;

		if (!open_others(t, &others))
			return;
		if (!open_cntrs(&others, queuer.c, 2) ||
		    !job_start(t, &job, queue_due, &queuer, ANY_CPU)) {
			t->failed = true;
			return;
		}
		while (!kfi_cntr_read(queuer.c[1]))
			cpu_relax();
		expect(t, kfi_close(&queuer.c[0]->fid), 0);
		expect(t, kfi_close(&queuer.c[1]->fid), 0);
		close_others(t, &others);
		expect(t, job_finish(&job), 0);
		if (t->failed)
			return;
	}
}

const struct test_case deferred_end_tests[] = {
	{ "dwq/busy", "R-CLOSE-2 R-CLOSE-3", busy },
	{ "dwq/closes-at-once", "R-CLOSE-2 R-CLOSE-3", closes_at_once },
	{ "dwq/domain-closes-at-once", "R-CLOSE-3 R-CLOSE-5", domain_closes_at_once },
	{ "ctl/flush-waits", "R-CTL-3 R-CLOSE-2", flush_waits },
	{ "ctl/cancel-waits", "R-CTL-2 R-CLOSE-2", cancel_waits },
	{ "ctl/case-48-cancel", "R-CTL-2", cancel },
	{ "ctl/case-49-cancel-race", "R-CTL-2", cancel_race },
	{ "ctl/case-50-flush", "R-CTL-3 R-CTL-4", flushes },
	{ "ctl/case-51-flush-race", "R-CTL-3 R-CTL-5", flush_race },
	{}
};
