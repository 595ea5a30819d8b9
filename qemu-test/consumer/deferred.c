// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred work: counter operations that wait for counters.
 */
#include <linux/delay.h>
#include <linux/preempt.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include <kfi_soft_ext.h>
#include <kfi_trigger.h>

#include "consumer.h"

/* A debug kernel does the same with less. */
#define MANY (IS_ENABLED(CONFIG_KASAN) ? 4000U : 100000U)
#define SOME (IS_ENABLED(CONFIG_KASAN) ? 1000U : 10000U)

/* What is queued without being cancelled by its pointer: the provider copies it. */
static int queue_op(struct test *t, struct kfid_cntr *trigger, u64 threshold,
		    enum kfi_op_type type, struct kfid_cntr *target, u64 value)
{
	struct kfi_op_cntr op = { .cntr = target, .value = value };
	struct kfi_deferred_work work = {
		.threshold = threshold,
		.triggering_cntr = trigger,
		.op_type = type,
		.op.cntr = &op,
	};
	int ret = kfi_control(&t->domain->fid, KFI_QUEUE_WORK, &work);

	memset(&op, 0xaa, sizeof(op));
	memset(&work, 0xaa, sizeof(work));
	return ret;
}

static int queue_add(struct test *t, struct kfid_cntr *trigger, u64 threshold,
		     struct kfid_cntr *target, u64 value)
{
	return queue_op(t, trigger, threshold, KFI_OP_CNTR_ADD, target, value);
}

static int queue_set(struct test *t, struct kfid_cntr *trigger, u64 threshold,
		     struct kfid_cntr *target, u64 value)
{
	return queue_op(t, trigger, threshold, KFI_OP_CNTR_SET, target, value);
}

static int flush(struct test *t, struct kfid_cntr *cntr)
{
	return kfi_control(&t->domain->fid, KFI_FLUSH_WORK, cntr);
}

/* Opens @count counters, or none. */
static bool open_cntrs(struct test *t, struct kfid_cntr **cntrs, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		cntrs[i] = open_cntr(t, KFI_WAIT_UNSPEC);
		if (cntrs[i])
			continue;
		while (i--)
			close_fid(t, &cntrs[i]->fid);
		return false;
	}
	return true;
}

static void close_cntrs(struct test *t, struct kfid_cntr **cntrs, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		close_fid(t, &cntrs[i]->fid);
}

static void met_when_queued(struct test *t)
{
	struct kfid_cntr *c[2];

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, queue_add(t, c[0], 0, c[1], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 1);
	expect(t, kfi_cntr_set(c[0], 5), 0);
	expect(t, queue_add(t, c[0], 5, c[1], 10), 0);
	expect(t, kfi_cntr_read(c[1]), 11);
	expect(t, queue_add(t, c[0], 6, c[1], 100), 0);
	expect(t, kfi_cntr_read(c[1]), 11);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 111);
	/* Once. */
	expect(t, kfi_cntr_set(c[0], 0), 0);
	expect(t, kfi_cntr_add(c[0], 100), 0);
	expect(t, kfi_cntr_read(c[1]), 111);
	close_cntrs(t, c, 2);
}

static void up_down_up(struct test *t)
{
	struct kfid_cntr *c[2];

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, queue_add(t, c[0], 3, c[1], 1), 0);
	expect(t, queue_add(t, c[0], 8, c[1], 10), 0);
	expect(t, kfi_cntr_set(c[0], 5), 0);
	expect(t, kfi_cntr_read(c[1]), 1);
	expect(t, kfi_cntr_set(c[0], 0), 0);
	expect(t, kfi_cntr_add(c[0], 7), 0);
	expect(t, kfi_cntr_read(c[1]), 1);
	/* A decrement, as for credits. */
	expect(t, kfi_cntr_add(c[0], -5), 0);
	expect(t, kfi_cntr_read(c[0]), 2);
	expect(t, kfi_cntr_add(c[0], 6), 0);
	expect(t, kfi_cntr_read(c[1]), 11);
	close_cntrs(t, c, 2);
}

static void success_and_error(struct test *t)
{
	struct kfid_cntr *c[2];
	unsigned int i;

	for (i = 0; i < 6; i++) {
		if (!open_cntrs(t, c, 2))
			return;
		expect(t, queue_add(t, c[0], i == 5 ? U64_MAX : 3, c[1], 1), 0);
		switch (i) {
		case 0:
			expect(t, kfi_cntr_add(c[0], 1), 0);
			expect(t, kfi_cntr_adderr(c[0], 1), 0);
			expect(t, kfi_cntr_read(c[1]), 0);
			expect(t, kfi_cntr_adderr(c[0], 1), 0);
			break;
		case 1:
			expect(t, kfi_cntr_seterr(c[0], 3), 0);
			break;
		case 2:
			expect(t, kfi_cntr_adderr(c[0], 2), 0);
			expect(t, kfi_cntr_read(c[1]), 0);
			expect(t, kfi_cntr_add(c[0], 1), 0);
			break;
		case 3:
			/* Errors that were taken back do not count. */
			expect(t, kfi_cntr_seterr(c[0], 2), 0);
			expect(t, kfi_cntr_seterr(c[0], 0), 0);
			expect(t, kfi_cntr_add(c[0], 2), 0);
			expect(t, kfi_cntr_read(c[1]), 0);
			expect(t, kfi_cntr_add(c[0], 1), 0);
			break;
		case 4:
			expect(t, kfi_cntr_adderr(c[0], 1), 0);
			expect(t, kfi_cntr_set(c[0], 2), 0);
			break;
		case 5:
			/* The sum does not wrap. */
			expect(t, kfi_cntr_adderr(c[0], 2), 0);
			expect(t, kfi_cntr_set(c[0], U64_MAX - 3), 0);
			expect(t, kfi_cntr_read(c[1]), 0);
			expect(t, kfi_cntr_seterr(c[0], 10), 0);
			break;
		}
		expect(t, kfi_cntr_read(c[1]), 1);
		close_cntrs(t, c, 2);
	}
}

static void completion_counter(struct test *t)
{
	struct kfi_op_cntr op;
	struct kfi_deferred_work work = {
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &op,
	};
	struct kfid_cntr *c[3];

	if (!open_cntrs(t, c, 3))
		return;
	op = (struct kfi_op_cntr) { .cntr = c[1], .value = 1 };
	work.triggering_cntr = c[0];
	work.completion_cntr = c[2];
	expect(t, kfi_control(&t->domain->fid, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	expect(t, kfi_cntr_read(c[1]), 0);
	expect(t, kfi_control(&t->domain->fid, KFI_CANCEL_WORK, &work), -KFI_ENOENT);
	close_cntrs(t, c, 3);
}

static void bad_requests(struct test *t)
{
	struct kfid *domain = &t->domain->fid;
	struct test others = {};
	struct kfid_cntr *c[2], *other;
	struct kfi_op_cntr op;
	struct kfi_deferred_work good, work;

	if (!open_others(t, &others))
		return;
	other = open_cntr(&others, KFI_WAIT_UNSPEC);
	if (!other || !open_cntrs(t, c, 2))
		goto close;
	op = (struct kfi_op_cntr) { .cntr = c[1], .value = 1 };
	good = (struct kfi_deferred_work) {
		.threshold = 1,
		.triggering_cntr = c[0],
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &op,
	};

	expect(t, kfi_control(domain, KFI_QUEUE_WORK, NULL), -KFI_EINVAL);
	work = good;
	work.op.cntr = NULL;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	work = good;
	work.triggering_cntr = NULL;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	work.triggering_cntr = (struct kfid_cntr *)t->domain;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	work.triggering_cntr = other;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	work = good;
	op.cntr = NULL;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	op.cntr = (struct kfid_cntr *)t->domain;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	op.cntr = other;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	op.cntr = c[1];
	work.op_type = 12345;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), -KFI_ENOSYS);

	/* Nothing was queued by any of these. */
	expect(t, kfi_cntr_add(c[0], 100), 0);
	expect(t, kfi_cntr_read(c[1]), 0);
	close_cntrs(t, c, 2);
close:
	if (other)
		close_fid(t, &other->fid);
	close_others(t, &others);
}

/* Each pair of entries hands on to the other counter. */
static void there_and_back(struct test *t)
{
	struct kfid_cntr *c[2];
	unsigned int i;

	if (!open_cntrs(t, c, 2))
		return;
	for (i = 1; i <= MANY / 2; i++) {
		if (!expect(t, queue_add(t, c[0], i, c[1], 1), 0) ||
		    !expect(t, queue_add(t, c[1], i, c[0], 1), 0))
			break;
	}
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_wait(c[0], MANY / 2 + 1, 12 * SOON), 0);
	expect(t, kfi_cntr_read(c[1]), MANY / 2);
	expect(t, flush(t, NULL), 0);
	close_cntrs(t, c, 2);
}

static void chain(struct test *t)
{
	struct kfid_cntr **c;
	unsigned int i, count = SOME / 5;

	c = kvcalloc(count, sizeof(*c), GFP_KERNEL);
	if (!expect_true(t, c))
		return;
	if (!open_cntrs(t, c, count))
		goto free;
	for (i = 0; i + 1 < count; i++)
		expect(t, queue_add(t, c[i], 1, c[i + 1], 1), 0);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_wait(c[count - 1], 1, 12 * SOON), 0);
	close_cntrs(t, c, count);
free:
	kvfree(c);
}

static void to_itself(struct test *t)
{
	struct kfid_cntr *c = open_cntr(t, KFI_WAIT_UNSPEC);
	unsigned int i;

	if (!c)
		return;
	expect(t, queue_set(t, c, 5, c, 50), 0);
	expect(t, queue_set(t, c, 50, c, 2), 0);
	expect(t, kfi_cntr_add(c, 5), 0);
	expect(t, kfi_cntr_read(c), 2);
	expect(t, kfi_cntr_set(c, 0), 0);
	for (i = 1; i <= SOME; i++)
		expect(t, queue_add(t, c, i, c, 1), 0);
	expect(t, kfi_cntr_add(c, 1), 0);
	expect(t, kfi_cntr_wait(c, SOME + 1, 12 * SOON), 0);
	expect(t, kfi_cntr_read(c), SOME + 1);
	close_fid(t, &c->fid);
}

static void fan_out(struct test *t)
{
	struct kfid_cntr *c[17];
	unsigned int i;

	if (!open_cntrs(t, c, 17))
		return;
	for (i = 0; i < SOME; i++)
		expect(t, queue_add(t, c[16], 7, c[i % 16], 1), 0);
	expect(t, kfi_cntr_add(c[16], 6), 0);
	expect(t, kfi_cntr_read(c[15]), 0);
	expect(t, kfi_cntr_add(c[16], 1), 0);
	for (i = 0; i < 16; i++)
		expect(t, kfi_cntr_wait(c[i], (SOME + 15 - i) / 16, 12 * SOON), 0);
	close_cntrs(t, c, 17);
}

static void fan_in(struct test *t)
{
	struct kfid_cntr *c[18];
	unsigned int i;

	if (!open_cntrs(t, c, 18))
		return;
	for (i = 0; i < SOME; i++)
		expect(t, queue_add(t, c[i % 16], i, c[16], 1), 0);
	expect(t, queue_add(t, c[16], SOME, c[17], 1), 0);
	for (i = 0; i < 16; i++)
		expect(t, kfi_cntr_add(c[i], SOME), 0);
	expect(t, kfi_cntr_wait(c[17], 1, 12 * SOON), 0);
	expect(t, kfi_cntr_read(c[16]), SOME);
	close_cntrs(t, c, 18);
}

/* Writes down every value that a counter takes. */
struct recorder {
	struct wait_queue_entry entry;
	struct kfid_cntr *cntr;
	unsigned int count;
	u64 values[1024];
};

static int record(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct recorder *r = container_of(entry, struct recorder, entry);

	if (r->count < ARRAY_SIZE(r->values))
		r->values[r->count] = kfi_cntr_read(r->cntr);
	r->count++;
	return 0;
}

/* By threshold and submission, also when one addition crosses all. */
static void order(struct test *t)
{
	static const u64 thresholds[] = { 30, 10, 20, 10, 1, 2, 1, 0 };
	static const unsigned int ranks[] = { 8, 5, 7, 6, 2, 4, 3, 1 };
	wait_queue_head_t *queue = NULL;
	struct rnd_state rnd;
	struct kfid_cntr *trigger, *target;
	struct recorder *r;
	unsigned int i, value, random, rank;
	u16 *random_thresholds;

	trigger = open_cntr(t, KFI_WAIT_UNSPEC);
	target = open_cntr(t, KFI_WAIT_QUEUE);
	r = kvzalloc_obj(*r);
	random_thresholds = kvcalloc(1000, sizeof(*random_thresholds), GFP_KERNEL);
	if (!expect_true(t, trigger && target && r && random_thresholds))
		goto close;
	expect(t, kfi_control(&target->fid, KFI_GETWAIT, &queue), 0);
	r->cntr = target;
	init_waitqueue_func_entry(&r->entry, record);
	add_wait_queue(queue, &r->entry);

	expect(t, kfi_cntr_seterr(trigger, 0), 0);
	for (i = 0; i < ARRAY_SIZE(thresholds); i++)
		expect(t, queue_set(t, trigger, thresholds[i] + 1, target, ranks[i]), 0);
	expect(t, kfi_cntr_add(trigger, 100), 0);
	expect(t, r->count, ARRAY_SIZE(thresholds));
	for (i = 0; i < ARRAY_SIZE(thresholds); i++)
		expect(t, r->values[i], i + 1);

	expect(t, kfi_cntr_set(trigger, 0), 0);
	prandom_seed_state(&rnd, 42);
	for (i = 0; i < 1000; i++) {
		random = prandom_u32_state(&rnd) % 100 + 1;
		random_thresholds[i] = random;
		expect(t, queue_set(t, trigger, random, target, 1000 + i), 0);
	}
	r->count = 0;
	expect(t, kfi_cntr_add(trigger, 100), 0);
	expect(t, kfi_cntr_read(trigger), 100);
	expect(t, r->count, 1000);
	rank = 0;
	for (value = 1; value <= 100; value++) {
		for (i = 0; i < 1000; i++) {
			if (random_thresholds[i] != value)
				continue;
			if (!expect(t, r->values[rank++], 1000 + i))
				goto remove;
		}
	}
remove:
	remove_wait_queue(queue, &r->entry);
close:
	kvfree(random_thresholds);
	kvfree(r);
	if (target)
		close_fid(t, &target->fid);
	if (trigger)
		close_fid(t, &trigger->fid);
}

static void equal_thresholds(struct test *t)
{
	struct kfid_cntr *c[2];

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, queue_add(t, c[0], 1, c[1], 5), 0);
	expect(t, queue_set(t, c[0], 1, c[1], 10), 0);
	expect(t, queue_set(t, c[0], 2, c[1], 3), 0);
	expect(t, queue_add(t, c[0], 2, c[1], 7), 0);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 10);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_cntr_read(c[1]), 10);
	close_cntrs(t, c, 2);
}

/* What works of a batch lowers the counter, and the others run all the same. */
static void lowered_by_its_own(struct test *t)
{
	struct kfid_cntr *c[2];

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, queue_set(t, c[0], 1, c[0], 0), 0);
	expect(t, queue_add(t, c[0], 2, c[1], 1), 0);
	expect(t, queue_add(t, c[0], 3, c[1], 1), 0);
	expect(t, kfi_cntr_add(c[0], 3), 0);
	expect(t, kfi_cntr_read(c[0]), 0);
	expect(t, kfi_cntr_read(c[1]), 2);
	close_cntrs(t, c, 2);
}

static void duplicates(struct test *t)
{
	struct kfi_op_cntr op;
	struct kfi_deferred_work work = {
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &op,
	};
	struct kfid *domain = &t->domain->fid;
	struct kfid_cntr *c[2];
	unsigned int i;

	if (!open_cntrs(t, c, 2))
		return;
	op.cntr = c[1];
	work.triggering_cntr = c[0];
	for (i = 1; i <= 5; i++) {
		op.value = i;
		work.threshold = i;
		expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), 0);
	}
	expect(t, kfi_cntr_add(c[0], 2), 0);
	expect(t, kfi_cntr_read(c[1]), 3);
	/* All that are left. */
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, &work), 0);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, &work), -KFI_ENOENT);
	expect(t, kfi_cntr_add(c[0], 100), 0);
	expect(t, kfi_cntr_read(c[1]), 3);
	close_cntrs(t, c, 2);
}

static void limit(struct test *t)
{
	struct kfid_cntr *c[2];
	unsigned int queued, round;
	int ret;

	if (!open_cntrs(t, c, 2))
		return;
	for (round = 0; round < 2; round++) {
		for (queued = 0; queued < 10000000; queued++) {
			ret = queue_add(t, c[0], queued + 1, c[1], 1);
			if (ret)
				break;
			if (!(queued % 1024))
				cond_resched();
		}
		expect(t, ret, -KFI_ENOSPC);
		expect_true(t, queued >= MANY);
		/* One that fires makes room for one. */
		expect(t, kfi_cntr_add(c[0], 1), 0);
		expect(t, kfi_cntr_read(c[1]), round + 1);
		expect(t, queue_add(t, c[0], U64_MAX, c[1], 1), 0);
		expect(t, queue_add(t, c[0], U64_MAX, c[1], 1), -KFI_ENOSPC);
		expect(t, flush(t, NULL), 0);
		expect(t, kfi_cntr_set(c[0], 0), 0);
	}
	close_cntrs(t, c, 2);
}

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

static void wakes_and_polls(struct test *t)
{
	struct kfid_poll *set = NULL;
	struct waiter waiter;
	struct kfid_cntr *c[2];
	void *context;

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, kfi_poll_open(t->domain, NULL, &set), 0);
	if (!set)
		goto close;
	expect(t, kfi_poll_add(set, &c[1]->fid, 0), 0);
	expect(t, kfi_poll(set, &context, 1), 0);
	expect(t, queue_add(t, c[0], 1, c[1], 4), 0);
	expect(t, queue_set(t, c[0], 2, c[1], 1), 0);
	if (waiter_start(t, &waiter, c[1], 4, SOON)) {
		expect(t, kfi_cntr_add(c[0], 1), 0);
		expect(t, waiter_finish(&waiter), 0);
	}
	/* A change by the provider, not by the application. */
	expect(t, kfi_poll(set, &context, 1), 1);
	expect(t, kfi_poll(set, &context, 1), 0);
	expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, kfi_poll(set, &context, 1), 1);
	expect(t, kfi_poll_del(set, &c[1]->fid, 0), 0);
	close_fid(t, &set->fid);
close:
	close_cntrs(t, c, 2);
}

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

/* Thresholds and values have 64 bits. */
static void wide_thresholds(struct test *t)
{
	static const u64 thresholds[] = { BIT_ULL(31), BIT_ULL(32), BIT_ULL(32) + 1, BIT_ULL(63),
					  U64_MAX - 1, U64_MAX };
	struct kfid_cntr *c[2];
	unsigned int i;

	if (!open_cntrs(t, c, 2))
		return;
	for (i = ARRAY_SIZE(thresholds); i--;)
		expect(t, queue_add(t, c[0], thresholds[i], c[1], BIT_ULL(8 * i)), 0);
	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		u64 before = kfi_cntr_read(c[1]);

		expect(t, kfi_cntr_set(c[0], thresholds[i] - 1), 0);
		expect(t, kfi_cntr_read(c[1]), before);
		expect(t, kfi_cntr_add(c[0], 1), 0);
		expect(t, kfi_cntr_read(c[1]), before + BIT_ULL(8 * i));
	}
	close_cntrs(t, c, 2);
}

/* What is not due costs an addition nothing, however much it is. */
static void nothing_due(struct test *t)
{
	struct kfi_soft_cntr_ops *ops = NULL;
	struct kfi_soft_cntr_stats before, after;
	struct kfid_cntr *c[2];
	unsigned int i;

	if (!open_cntrs(t, c, 2))
		return;
	expect(t, kfi_open_ops(&c[0]->fid, KFI_SOFT_CNTR_OPS_1, 0, (void **)&ops, NULL), 0);
	if (!ops)
		goto close;
	for (i = 0; i < MANY; i++)
		expect(t, queue_add(t, c[0], 2 * MANY + i, c[1], 1), 0);
	expect(t, ops->stats(&c[0]->fid, &before), 0);
	for (i = 0; i < MANY; i++)
		expect(t, kfi_cntr_add(c[0], 1), 0);
	expect(t, ops->stats(&c[0]->fid, &after), 0);
	expect(t, after.attended, before.attended);
	expect(t, kfi_cntr_add(c[0], MANY), 0);
	expect(t, ops->stats(&c[0]->fid, &after), 0);
	expect(t, after.attended, before.attended + 1);
	expect(t, kfi_cntr_read(c[1]), 1);
	expect(t, flush(t, c[0]), 0);
close:
	close_cntrs(t, c, 2);
}

static void cancel(struct test *t)
{
	struct kfid *domain = &t->domain->fid;
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
	work = NULL;
	expect(t, kfi_cntr_add(c[0], 10), 0);
	expect(t, kfi_cntr_read(c[1]), 2);
	close_cntrs(t, c, 2);
free:
	kfree(work);
}

struct adder {
	struct kfid_cntr *cntr;
	unsigned int times;
};

static long add_slowly(void *arg)
{
	struct adder *adder = arg;
	unsigned int i;
	int ret;

	for (i = 0; i < adder->times; i++) {
		ret = kfi_cntr_add(adder->cntr, 1);
		if (ret)
			return ret;
		if (!(i % 64))
			cond_resched();
	}
	return 0;
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

/* Nothing is stuck, nothing runs twice. */
static void submit_race(struct test *t)
{
	struct adder adder = { .times = MANY };
	struct rnd_state rnd;
	struct kfid_cntr *c[2];
	struct job job;
	unsigned int i;

	if (!open_cntrs(t, c, 2))
		return;
	adder.cntr = c[0];
	prandom_seed_state(&rnd, 7);
	if (job_start(t, &job, add_slowly, &adder, ANY_CPU)) {
		for (i = 0; i < MANY / 4; i++) {
			u64 ahead = kfi_cntr_read(c[0]) + prandom_u32_state(&rnd) % 8;

			if (!expect(t, queue_add(t, c[0], min_t(u64, ahead, MANY), c[1], 1), 0))
				break;
		}
		expect(t, job_finish(&job), 0);
		expect(t, kfi_cntr_wait(c[1], MANY / 4, SOON), 0);
		msleep(20);
		expect(t, kfi_cntr_read(c[1]), MANY / 4);
	}
	expect(t, flush(t, NULL), 0);
	close_cntrs(t, c, 2);
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
		while (kfi_cntr_read(c[0]) < SOME / 4)
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

/* Much more than runs before a call returns. */
static bool fire_many(struct test *t, struct kfid_cntr *trigger, struct kfid_cntr *target)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		if (!expect(t, queue_add(t, trigger, 1, target, 1), 0))
			return false;
	return expect(t, kfi_cntr_add(trigger, 1), 0);
}

/* What has fired refers to nothing any more when a flush returns. */
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

/* Whoever has seen all effects can close everything, whoever is the drainer. */
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

/* What is submitted after the value has passed 2^64 is not due for what it was before. */
static void passed_late(struct test *t)
{
	struct adder adder = { .times = 1 };
	struct kfid_cntr *c[2];
	struct job job;
	unsigned int i;

	if (!open_cntrs(t, c, 2))
		return;
	adder.cntr = c[0];
	for (i = 0; i < SOME / 4 && !t->failed; i++) {
		expect(t, kfi_cntr_set(c[0], U64_MAX), 0);
		expect(t, kfi_cntr_set(c[1], 0), 0);
		if (!job_start(t, &job, add_slowly, &adder, ANY_CPU))
			break;
		while (kfi_cntr_read(c[0]))
			cpu_relax();
		expect(t, queue_add(t, c[0], 10, c[1], 1), 0);
		expect(t, job_finish(&job), 0);
		expect(t, kfi_cntr_read(c[1]), 0);
		expect(t, kfi_cntr_add(c[0], 10), 0);
		expect(t, kfi_cntr_wait(c[1], 1, SOON), 0);
	}
	/* What is due before it passes 2^64 still is, and nothing between. */
	expect(t, kfi_cntr_set(c[1], 0), 0);
	expect(t, kfi_cntr_set(c[0], U64_MAX - 10), 0);
	expect(t, queue_add(t, c[0], U64_MAX - 5, c[1], 1), 0);
	expect(t, kfi_cntr_add(c[0], 11), 0);
	expect(t, kfi_cntr_read(c[0]), 0);
	expect(t, kfi_cntr_read(c[1]), 0);
	expect(t, queue_add(t, c[0], 1, c[1], 10), 0);
	expect(t, kfi_cntr_read(c[1]), 0);
	expect(t, kfi_cntr_set(c[0], U64_MAX - 5), 0);
	expect(t, kfi_cntr_read(c[1]), 11);
	close_cntrs(t, c, 2);
}

const struct test_case deferred_tests[] = {
	{ "dwq/met-when-queued", "R-DWQ-4 R-DWQ-6 R-DWQ-14", met_when_queued },
	{ "dwq/case-22-up-down-up", "R-TRIG-19 R-CNTR-20", up_down_up },
	{ "dwq/case-23-submit-race", "R-TRIG-11", submit_race },
	{ "dwq/case-32-success-and-error", "R-DWQ-5 R-CNTR-20", success_and_error },
	{ "dwq/case-36-completion-counter", "R-DWQ-9", completion_counter },
	{ "dwq/case-37-bad-requests", "R-DWQ-16 R-DWQ-17", bad_requests },
	{ "dwq/case-40-there-and-back", "R-DWQ-30 R-DWQ-31", there_and_back },
	{ "dwq/case-40-chain", "R-DWQ-30 R-DWQ-32", chain },
	{ "dwq/case-40-to-itself", "R-DWQ-30 R-TRIG-20", to_itself },
	{ "dwq/case-41-fan-out", "R-DWQ-33", fan_out },
	{ "dwq/case-41-fan-in", "R-DWQ-33", fan_in },
	{ "dwq/case-20-order", "R-DWQ-18 R-TRIG-14 R-TRIG-15 R-TRIG-16", order },
	{ "dwq/case-42-equal-thresholds", "R-DWQ-18 R-TRIG-16", equal_thresholds },
	{ "dwq/lowered-by-its-own", "R-TRIG-18", lowered_by_its_own },
	{ "dwq/case-45-duplicates", "R-DWQ-4 R-CTL-2", duplicates },
	{ "dwq/case-47-limit", "R-DWQ-24", limit },
	{ "dwq/busy", "R-CLOSE-2 R-CLOSE-3", busy },
	{ "dwq/closes-at-once", "R-CLOSE-2 R-CLOSE-3", closes_at_once },
	{ "dwq/domain-closes-at-once", "R-CLOSE-3 R-CLOSE-5", domain_closes_at_once },
	{ "dwq/passed-late", "R-TRIG-19 R-CNTR-20", passed_late },
	{ "dwq/little-in-hardirq", "R-DWQ-31 R-DWQ-33", little_in_hardirq },
	{ "dwq/preempted-drainer", "R-DWQ-31", preempted_drainer },
	{ "ctl/flush-waits", "R-CTL-3 R-CLOSE-2", flush_waits },
	{ "ctl/cancel-waits", "R-CTL-2 R-CLOSE-2", cancel_waits },
	{ "dwq/wakes-and-polls", "R-DWQ-20 R-POLL-6", wakes_and_polls },
	{ "dwq/from-hardirq", "R-DWQ-8", from_hardirq },
	{ "dwq/may-sleep", "R-DWQ-23", may_sleep },
	{ "dwq/wide-thresholds", "R-DWQ-22", wide_thresholds },
	{ "dwq/nothing-due-costs-nothing", "R-TRIG-13", nothing_due },
	{ "ctl/case-48-cancel", "R-CTL-2", cancel },
	{ "ctl/case-49-cancel-race", "R-CTL-2", cancel_race },
	{ "ctl/case-50-flush", "R-CTL-3 R-CTL-4", flushes },
	{ "ctl/case-51-flush-race", "R-CTL-3 R-CTL-5", flush_race },
	{}
};
