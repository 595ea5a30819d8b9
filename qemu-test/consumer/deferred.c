// SPDX-License-Identifier: GPL-2.0
/*
 * Deferred work: counter operations that wait for counters.
 */
#include <linux/delay.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include <kfi_soft_ext.h>

#include "deferred.h"

/* Queues work that is not to be cancelled by its pointer: the provider copies it. */
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

int queue_add(struct test *t, struct kfid_cntr *trigger, u64 threshold,
	      struct kfid_cntr *target, u64 value)
{
	return queue_op(t, trigger, threshold, KFI_OP_CNTR_ADD, target, value);
}

static int queue_set(struct test *t, struct kfid_cntr *trigger, u64 threshold,
		     struct kfid_cntr *target, u64 value)
{
	return queue_op(t, trigger, threshold, KFI_OP_CNTR_SET, target, value);
}

int flush(struct test *t, struct kfid_cntr *cntr)
{
	return kfi_control(&t->domain->fid, KFI_FLUSH_WORK, cntr);
}

/* Opens @count counters, or none. */
bool open_cntrs(struct test *t, struct kfid_cntr **cntrs, unsigned int count)
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

void close_cntrs(struct test *t, struct kfid_cntr **cntrs, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		close_fid(t, &cntrs[i]->fid);
}

long add_slowly(void *arg)
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

	/* A work that is queued on another domain is not found. */
	work = good;
	work.threshold = 1000;
	expect(t, kfi_control(domain, KFI_QUEUE_WORK, &work), 0);
	expect(t, kfi_control(&others.domain->fid, KFI_CANCEL_WORK, &work), -KFI_ENOENT);
	expect(t, kfi_control(domain, KFI_CANCEL_WORK, &work), 0);
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

/* The first of a batch lowers the counter, and the others run all the same. */
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

/* Work that is not due costs an addition nothing, however much there is. */
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

/* Much more than runs before a call returns. */
bool fire_many(struct test *t, struct kfid_cntr *trigger, struct kfid_cntr *target)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		if (!expect(t, queue_add(t, trigger, 1, target, 1), 0))
			return false;
	return expect(t, kfi_cntr_add(trigger, 1), 0);
}

/* Work submitted after the value has passed 2^64 is not due for what it was before. */
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
	/* Work that is due before it passes 2^64 still is, and nothing between. */
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
	{ "dwq/passed-late", "R-TRIG-19 R-CNTR-20", passed_late },
	{ "dwq/wakes-and-polls", "R-DWQ-20 R-POLL-6", wakes_and_polls },
	{ "dwq/wide-thresholds", "R-DWQ-22", wide_thresholds },
	{ "dwq/nothing-due-costs-nothing", "R-TRIG-13", nothing_due },
	{}
};
