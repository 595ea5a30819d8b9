// SPDX-License-Identifier: GPL-2.0
/*
 * Loads: counters, what waits for them, poll sets.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "irqsoff.h"

static bool nothing(struct rig *r)
{
	return true;
}

static long no_run(void *rig)
{
	return 0;
}

/* --- what waits for a counter ------------------------------------------------ */

static bool open_cntrs(struct rig *r, enum kfi_wait_obj wait_obj)
{
	r->trigger = open_cntr(r->t, KFI_WAIT_UNSPEC);
	r->target = open_cntr(r->t, wait_obj);
	return r->trigger && r->target;
}

static int queue_work_of(struct rig *r, struct kfi_deferred_work *work, u64 threshold,
			 struct kfid_cntr *target)
{
	r->op = (struct kfi_op_cntr) { .cntr = target, .value = 1 };
	*work = (struct kfi_deferred_work) {
		.threshold = threshold,
		.triggering_cntr = r->trigger,
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &r->op,
	};
	return kfi_control(&r->t->domain->fid, KFI_QUEUE_WORK, work);
}

/* Each adds to the other counter when something is added to the one. */
static bool queue_many(struct rig *r, bool apart)
{
	unsigned int i;

	r->works = kvcalloc(r->size, sizeof(*r->works), GFP_KERNEL);
	if (!expect_true(r->t, r->works))
		return false;
	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, queue_work_of(r, &r->works[apart ? i : 0], 1, r->target), 0))
			return false;
	}
	return true;
}

static bool additions(struct rig *r)
{
	return open_cntrs(r, KFI_WAIT_UNSPEC) && queue_many(r, true);
}

static bool of_one_id(struct rig *r)
{
	return open_cntrs(r, KFI_WAIT_UNSPEC) && queue_many(r, false);
}

static long add(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_add(r->trigger, 1);
}

static void target_reached(struct rig *r)
{
	expect(r->t, kfi_cntr_wait(r->target, r->size, SOON), 0);
}

/* Each makes the next one due. */
static bool chain(struct rig *r)
{
	struct kfi_deferred_work work;
	unsigned int i;

	if (!open_cntrs(r, KFI_WAIT_UNSPEC))
		return false;
	for (i = 1; i <= r->size; i++) {
		if (!expect(r->t, queue_work_of(r, &work, i, r->trigger), 0))
			return false;
	}
	return true;
}

static void chain_ended(struct rig *r)
{
	expect(r->t, kfi_cntr_wait(r->trigger, r->size + 1, SOON), 0);
}

static int note_wake(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct rig *r = entry->private;

	r->woken++;
	return 0;
}

static bool listen(struct rig *r, struct kfid_cntr *cntr, unsigned int count)
{
	unsigned int i;

	if (!expect(r->t, kfi_control(&cntr->fid, KFI_GETWAIT, &r->queue), 0))
		return false;
	r->listeners = kvcalloc(count, sizeof(*r->listeners), GFP_KERNEL);
	if (!expect_true(r->t, r->listeners))
		return false;
	for (i = 0; i < count; i++) {
		init_waitqueue_func_entry(&r->listeners[i], note_wake);
		r->listeners[i].private = r;
		add_wait_queue(r->queue, &r->listeners[i]);
	}
	r->listening = count;
	return true;
}

/* The kernel calls all that listen to a wait queue, all at once. */
static bool listeners(struct rig *r)
{
	r->trigger = open_cntr(r->t, KFI_WAIT_QUEUE);
	return r->trigger && listen(r, r->trigger, r->size);
}

/* Few, who are told often. */
static bool additions_that_wake(struct rig *r)
{
	return open_cntrs(r, KFI_WAIT_QUEUE) && queue_many(r, true) && listen(r, r->target, 4);
}

static void target_read(struct rig *r)
{
	expect_count(r->t, r->target, r->size, 0);
}

static long wait_for_one(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_wait(r->trigger, 1, -1);
}

static long wait_for_two(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_wait(r->trigger, 2, -1);
}

static bool wait_in_threads(struct rig *r, long (*wait)(void *rig))
{
	unsigned int i;

	r->trigger = open_cntr(r->t, KFI_WAIT_UNSPEC);
	r->jobs = kvcalloc(r->size, sizeof(*r->jobs), GFP_KERNEL);
	if (!r->trigger || !expect_true(r->t, r->jobs))
		return false;
	for (i = 0; i < r->size; i++) {
		if (!job_start(r->t, &r->jobs[i], wait, r, ANY_CPU)) {
			r->jobs[i].task = NULL;
			return false;
		}
	}
	for (i = 0; i < r->size; i++)
		job_settle(&r->jobs[i]);
	return true;
}

static bool waiters(struct rig *r)
{
	return wait_in_threads(r, wait_for_one);
}

static bool later_waiters(struct rig *r)
{
	return wait_in_threads(r, wait_for_two);
}

/* In front of all others. */
static long wait_in_vain(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_wait(r->trigger, 1, 1) == -KFI_ETIMEDOUT ? 0 : -EIO;
}

static long add_error(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_add(r->trigger, 1) ?: kfi_cntr_adderr(r->trigger, 1);
}

/* --- taken back -------------------------------------------------------------- */

static long flush_counter(void *rig)
{
	struct rig *r = rig;

	return kfi_control(&r->t->domain->fid, KFI_FLUSH_WORK, r->trigger);
}

static long flush_domain(void *rig)
{
	struct rig *r = rig;

	return kfi_control(&r->t->domain->fid, KFI_FLUSH_WORK, NULL);
}

static long cancel_id(void *rig)
{
	struct rig *r = rig;

	return kfi_control(&r->t->domain->fid, KFI_CANCEL_WORK, &r->works[0]);
}

static long cancel_middle(void *rig)
{
	struct rig *r = rig;

	return kfi_control(&r->t->domain->fid, KFI_CANCEL_WORK, &r->works[r->size / 2]);
}

/* Has fired, is taken from in front of the rest. */
static long add_and_flush(void *rig)
{
	struct rig *r = rig;

	return kfi_cntr_add(r->trigger, 1) ?:
	       kfi_control(&r->t->domain->fid, KFI_FLUSH_WORK, NULL);
}

/* --- many counters ----------------------------------------------------------- */

static bool counters(struct rig *r)
{
	unsigned int i;

	r->members = kvcalloc(r->size, sizeof(*r->members), GFP_KERNEL);
	if (!expect_true(r->t, r->members))
		return false;
	for (i = 0; i < r->size; i++) {
		r->members[i] = open_cntr(r->t, KFI_WAIT_UNSPEC);
		if (!r->members[i])
			return false;
	}
	return true;
}

static bool poll_set(struct rig *r)
{
	struct kfi_poll_attr attr = {};
	unsigned int i;

	if (!counters(r) || !expect(r->t, kfi_poll_open(r->t->domain, &attr, &r->poll), 0))
		return false;
	for (i = 0; i < r->size; i++) {
		if (!expect(r->t, kfi_poll_add(r->poll, &r->members[i]->fid, 0), 0))
			return false;
	}
	return true;
}

static long poll(void *rig)
{
	struct rig *r = rig;
	void *context;

	/* All are looked at. */
	return kfi_poll(r->poll, &context, 1);
}

static long remove_member(void *rig)
{
	struct rig *r = rig;

	return kfi_poll_del(r->poll, &r->members[r->size / 2]->fid, 0) ?:
	       kfi_poll_add(r->poll, &r->members[r->size / 2]->fid, 0);
}

static long close_member(void *rig)
{
	struct rig *r = rig;
	long ret = kfi_close(&r->members[r->size / 2]->fid);

	r->members[r->size / 2] = NULL;
	return ret;
}

const struct load engine_loads[] = {
	{ "nothing", true, nothing, no_run },
	{ "additions-due", true, additions, add, target_reached },
	{ "additions-due-thread", false, additions, add, target_reached },
	{ "chain-due", true, chain, add, chain_ended },
	{ "wake-ups-due", true, additions_that_wake, add, target_read },
	{ "waiters", true, waiters, add },
	{ "waiters-thread", false, waiters, add },
	{ "waiters-and-error", true, waiters, add_error },
	{ "wait-before-others", false, later_waiters, wait_in_vain },
	{ "listeners", true, listeners, add },
	{ "flush-counter", false, additions, flush_counter },
	{ "flush-domain", false, additions, flush_domain },
	{ "flush-fired", false, additions, add_and_flush },
	{ "cancel-work-of-one-id", false, of_one_id, cancel_id },
	{ "cancel-work", false, additions, cancel_middle },
	{ "poll", false, poll_set, poll },
	{ "poll-member", false, poll_set, remove_member },
	{ "close-counter", false, counters, close_member },
	{}
};
