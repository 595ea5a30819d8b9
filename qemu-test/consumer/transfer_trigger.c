// SPDX-License-Identifier: GPL-2.0
/*
 * Triggered operations: their use of the context that names the condition, and
 * the order in which those that become due at once are posted.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/stop_machine.h>
#include <linux/string.h>

#include <kfi_trigger.h>

#include "transfer.h"

static ssize_t post_triggered(struct end *e, enum family kind, void *buf, size_t len,
			      void *context)
{
	const struct op op = {
		.family = kind,
		.form = FORM_MSG_KVEC,
		.buf = buf,
		.len = len,
		.flags = KFI_TRIGGER | KFI_COMPLETION,
		.peer = kind == F_SEND ? e->peer : KFI_ADDR_UNSPEC,
		.context = context,
	};

	return op_post(e->ep, &op);
}

static ssize_t send_triggered(struct end *e, void *buf, size_t len, void *context)
{
	return post_triggered(e, F_SEND, buf, len, context);
}

/* The condition that a counter has come to a value. */
static struct kfi_triggered_context due_at(struct kfid_cntr *cntr, size_t threshold)
{
	return (struct kfi_triggered_context) {
		.event_type = KFI_TRIGGER_THRESHOLD,
		.trigger.threshold = { .cntr = cntr, .threshold = threshold },
	};
}

static void larger_context(struct test *t)
{
	struct kfi_triggered_context2 context = {
		.event_type = KFI_TRIGGER_THRESHOLD,
		.trigger.threshold.threshold = 2,
	};
	struct kfid_cntr *cntr;
	u8 from[8] = { 1 }, to[8];
	struct end a, b;

	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		return;
	context.trigger.threshold.cntr = cntr;
	if (!pair_open(t, &a, &b, NULL, NULL))
		goto close;
	expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, send_triggered(&a, from, 8, &context), 0);
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect_nothing(t, a.tx_cq);
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect_completion(t, a.tx_cq, &context, SENT, 8);
	expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 8);
	expect(t, to[0], 1);
	pair_close(t, &a, &b);
close:
	close_fid(t, &cntr->fid);
}

/* The condition is that of the post, also if the context is overwritten meanwhile. */
static void scribbled_context(struct test *t)
{
	static const u8 fills[] = { 0, 0xaa, 0xff };
	struct kfi_triggered_context contexts[ARRAY_SIZE(fills)][2];
	struct kfid_cntr *cntr;
	u8 from[8] = {}, to[8];
	struct end a, b;
	unsigned int i, j;

	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		return;
	if (!pair_open(t, &a, &b, NULL, NULL))
		goto close;
	for (i = 0; i < ARRAY_SIZE(fills); i++) {
		expect(t, kfi_cntr_set(cntr, 0), 0);
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		for (j = 0; j < 2; j++) {
			struct kfi_triggered_context *context = &contexts[i][j];

			*context = due_at(cntr, 3);
			expect(t, send_triggered(&a, from, 8, context), 0);
			memset(context, fills[i], sizeof(*context));
		}
		expect(t, kfi_cntr_set(cntr, 2), 0);
		expect_nothing(t, a.tx_cq);
		/* It is found by its address. */
		expect(t, kfi_cancel(&a.ep->fid, &contexts[i][0]), 0);
		expect_failure(t, a.tx_cq, &contexts[i][0], SENT, KFI_ECANCELED, 0, 0);
		expect(t, kfi_cntr_add(cntr, 1), 0);
		expect_completion(t, a.tx_cq, &contexts[i][1], SENT, 8);
		expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 8);
		expect_nothing(t, a.tx_cq);
		say(t, "filled with %x", fills[i]);
	}
	pair_close(t, &a, &b);
close:
	close_fid(t, &cntr->fid);
}

#define MOVED (32U << 20)

/*
 * Two operations with one context: one that may be too far to be cancelled, as
 * its bytes are being moved, and one that is pending. Two calls cancel both, as
 * far as that is possible.
 */
static void pending_beside_ending(struct test *t)
{
	struct kfi_triggered_context context;
	u8 *from = kvzalloc(MOVED, GFP_KERNEL), *to = kvzalloc(MOVED, GFP_KERNEL);
	struct kfid_cntr *cntr = NULL;
	unsigned int round, i, cancelled, good = 0;
	struct end a, b;

	if (expect_true(t, from && to))
		cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		goto free;
	for (round = 0; round < 20 && !t->failed; round++) {
		if (!pair_open(t, &a, &b, NULL, NULL))
			break;
		context = due_at(cntr, 1);
		expect(t, send_triggered(&a, from, 8, &context), 0);
		expect(t, kfi_recv(b.ep, to, MOVED, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		expect(t, kfi_send(a.ep, from, MOVED, NULL, a.peer, &context), 0);
		/* A work queue may have begun by then, or not. */
		udelay(round * 100);
		expect(t, kfi_cancel(&a.ep->fid, &context), 0);
		/* If the long one is gone by now there is none left. */
		kfi_cancel(&a.ep->fid, &context);
		for (i = cancelled = 0; i < 2 && !t->failed; i++) {
			struct kfi_cq_tagged_entry entry;
			struct kfi_cq_err_entry error = {};
			ssize_t ret = kfi_cq_sread(a.tx_cq, &entry, 1, NULL, SOON);

			if (ret == 1) {
				good++;
			} else if (expect(t, ret, -KFI_EAVAIL) &&
				   expect(t, kfi_cq_readerr(a.tx_cq, &error, 0), 1)) {
				expect(t, error.err, KFI_ECANCELED);
				cancelled++;
			}
		}
		expect_true(t, cancelled >= 1);
		expect(t, kfi_cancel(&a.ep->fid, &context), -KFI_ENOENT);
		pair_close(t, &a, &b);
	}
	say(t, "%u of %u were moved", good, round);
	close_fid(t, &cntr->fid);
free:
	kvfree(from);
	kvfree(to);
}

/* All by one addition: the messages are sent, and so arrive, in the order of the thresholds. */
static void posted_in_order(struct test *t)
{
	static const size_t thresholds[] = { 30, 10, 20, 10, SIZE_MAX, 1, 20 };
	static const u8 order[] = { 5, 1, 3, 2, 6, 0, 4 };
	struct kfi_triggered_context contexts[ARRAY_SIZE(thresholds)];
	u8 from[ARRAY_SIZE(thresholds)], to[ARRAY_SIZE(thresholds)];
	struct kfid_cntr *cntr;
	struct end a, b;
	unsigned int i;

	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		return;
	if (!pair_open(t, &a, &b, NULL, NULL))
		goto close;
	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		from[i] = i;
		contexts[i] = due_at(cntr, thresholds[i]);
		expect(t, send_triggered(&a, &from[i], 1, &contexts[i]), 0);
		expect(t, kfi_recv(b.ep, &to[i], 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
	}
	expect(t, kfi_cntr_set(cntr, U64_MAX), 0);
	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		expect_completion(t, a.tx_cq, &contexts[order[i]], SENT, 1);
		expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 1);
		expect(t, to[i], order[i]);
		say(t, "message %u", i);
	}
	pair_close(t, &a, &b);
close:
	close_fid(t, &cntr->fid);
}

/* Messages that become due with interrupts disabled, while nobody else runs. */
struct due_at_once {
	struct kfid_cntr *cntr;
	u8 *to;
	size_t len;
	unsigned int count;
	size_t landed;
	int result;
};

static int add_and_look(void *arg)
{
	struct due_at_once *due = arg;
	size_t i;

	due->result = kfi_cntr_add(due->cntr, 1);
	for (i = 0; i < due->count * due->len; i++)
		due->landed += due->to[i] != FILL;
	return 0;
}

/* With interrupts disabled few bytes are copied at once. */
static void few_bytes_with_interrupts_off(struct test *t)
{
	enum { MESSAGES = 8, FEW_BYTES = 4096 };
	static const size_t lens[] = { 1, 1024, 4096, 8192 };
	struct kfi_triggered_context contexts[MESSAGES];
	struct kfid_cntr *cntr;
	u8 *from = NULL, *to = NULL;
	struct end a, b;
	unsigned int i, j;

	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		return;
	if (!pair_open(t, &a, &b, NULL, NULL))
		goto close;
	for (i = 0; i < ARRAY_SIZE(lens) && !t->failed; i++) {
		size_t len = lens[i];
		struct due_at_once due = { .cntr = cntr, .len = len, .count = MESSAGES };

		from = kzalloc(MESSAGES * len, GFP_KERNEL);
		to = kmalloc(MESSAGES * len, GFP_KERNEL);
		if (!expect_true(t, from && to))
			break;
		memset(to, FILL, MESSAGES * len);
		due.to = to;
		for (j = 0; j < MESSAGES; j++) {
			contexts[j] = due_at(cntr, i + 1);
			expect(t, kfi_recv(b.ep, to + j * len, len, NULL, KFI_ADDR_UNSPEC,
					   CONTEXT(j)), 0);
			expect(t, send_triggered(&a, from + j * len, len, &contexts[j]), 0);
		}
		expect(t, stop_machine(add_and_look, &due, NULL), 0);
		expect(t, due.result, 0);
		expect_true(t, due.landed <= FEW_BYTES);
		for (j = 0; j < MESSAGES; j++) {
			expect_completion(t, a.tx_cq, &contexts[j], SENT, len);
			expect_completion(t, b.rx_cq, CONTEXT(j), RECEIVED, len);
		}
		expect(t, memcmp(from, to, MESSAGES * len), 0);
		say(t, "%zu bytes each, %zu at once", len, due.landed);
		kfree(from);
		kfree(to);
		from = NULL;
		to = NULL;
	}
	kfree(from);
	kfree(to);
	pair_close(t, &a, &b);
close:
	close_fid(t, &cntr->fid);
}

static long add_some(void *arg)
{
	return kfi_cntr_add(arg, 150);
}

/* Sends a byte when a counter has come to a value, and counts that in another one, or nowhere. */
static int send_deferred(struct end *e, struct kfid_cntr *trigger, u64 threshold, u8 *buf,
			 struct kfid_cntr *completion)
{
	struct kvec iov = { .iov_base = buf, .iov_len = 1 };
	struct kfi_op_msg op = {
		.ep = e->ep,
		.msg = {
			.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1, .addr = e->peer,
		},
	};
	struct kfi_deferred_work work = {
		.threshold = threshold,
		.triggering_cntr = trigger,
		.completion_cntr = completion,
		.op_type = KFI_OP_SEND,
		.op.msg = &op,
	};

	return kfi_control(&e->domain->fid, KFI_QUEUE_WORK, &work);
}

/*
 * Operations due before the value passes 2^64 go in the order of thresholds, of
 * either kind, also if it has passed and something was submitted before anybody
 * has come to see to them.
 */
static void in_order_when_passed(struct test *t)
{
	enum { SENDS = 64 };
	const struct setup setup = {
		.tx_size = 2 * SENDS, .rx_size = 2 * SENDS,
		.tx_cq_size = 2 * SENDS, .rx_cq_size = 2 * SENDS,
	};
	struct kfi_triggered_context *contexts;
	unsigned int cpu = cpumask_first(cpu_online_mask);
	struct kfid_cntr *cntr;
	u8 from[SENDS + 1], to[SENDS + 1];
	unsigned int i, round;
	struct end a, b;
	struct job jobs[2];

	contexts = kcalloc(SENDS, sizeof(*contexts), GFP_KERNEL);
	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!expect_true(t, contexts) || !cntr)
		goto free;
	if (!pair_open(t, &a, &b, &setup, &setup))
		goto free;
	for (i = 0; i <= SENDS; i++)
		from[i] = i;
	for (round = 0; round < 100 && !t->failed; round++) {
		memset(to, FILL, sizeof(to));
		expect(t, kfi_cntr_set(cntr, U64_MAX - 200), 0);
		for (i = 0; i <= SENDS; i++)
			expect(t, kfi_recv(b.ep, &to[i], 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
		for (i = SENDS; i--;) {
			u64 threshold = U64_MAX - 150 + i;

			contexts[i] = due_at(cntr, threshold);
			if (i & 1)
				expect(t, send_triggered(&a, &from[i], 1, &contexts[i]), 0);
			else
				expect(t, send_deferred(&a, cntr, threshold, &from[i], NULL), 0);
		}
		/* All is due after the first one; the second one passes 2^64. */
		if (!job_start(t, &jobs[0], add_some, cntr, cpu))
			break;
		if (job_start(t, &jobs[1], add_some, cntr, other_cpu(cpu))) {
			while (kfi_cntr_read(cntr) > 1000)
				cpu_relax();
			expect(t, send_deferred(&a, cntr, 1000, &from[SENDS], NULL), 0);
			expect(t, job_finish(&jobs[1]), 0);
		}
		expect(t, job_finish(&jobs[0]), 0);
		for (i = 0; i < SENDS; i++)
			expect_completion(t, b.rx_cq, CONTEXT(i), RECEIVED, 1);
		/* The one submitted afterwards waits. */
		expect_nothing(t, b.rx_cq);
		expect(t, kfi_cntr_set(cntr, 1000), 0);
		expect_completion(t, b.rx_cq, CONTEXT(SENDS), RECEIVED, 1);
		for (i = 1; i < SENDS; i += 2)
			expect_completion(t, a.tx_cq, &contexts[i], SENT, 1);
		expect(t, memcmp(from, to, sizeof(to)), 0);
	}
	expect_nothing(t, a.tx_cq);
	pair_close(t, &a, &b);
free:
	if (cntr)
		close_fid(t, &cntr->fid);
	kfree(contexts);
}

/* Much more than runs before a call returns, behind which others wait. */
#define BACKLOG (IS_ENABLED(CONFIG_KASAN) ? 4000U : 40000U)

static void queue_backlog(struct test *t, struct kfid_domain *domain, struct kfid_cntr *trigger,
			  struct kfid_cntr *target)
{
	struct kfi_op_cntr op = { .cntr = target, .value = 1 };
	struct kfi_deferred_work work = {
		.threshold = 1,
		.triggering_cntr = trigger,
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &op,
	};
	unsigned int i;

	for (i = 0; i < BACKLOG; i++)
		if (!expect(t, kfi_control(&domain->fid, KFI_QUEUE_WORK, &work), 0))
			return;
}

/* A send that has fired and is yet to begin is found: cancelled, it completes once. */
static void cancelled_when_fired(struct test *t)
{
	struct kfi_triggered_context contexts[3];
	struct kfid_cntr *trigger, *target;
	u8 from[8] = {}, to[8];
	unsigned int i;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	trigger = open_cntr(t, KFI_WAIT_UNSPEC);
	target = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!trigger || !target)
		goto close;
	queue_backlog(t, a.domain, trigger, target);
	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		contexts[i] = due_at(trigger, 2);
	expect(t, send_triggered(&a, from, 8, &contexts[0]), 0);
	expect(t, post_triggered(&a, F_RECV, to, 8, &contexts[1]), 0);
	expect(t, send_triggered(&a, from, 8, &contexts[2]), 0);
	expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_cntr_add(trigger, 2), 0);
	expect(t, kfi_cancel(&a.ep->fid, &contexts[0]), 0);
	expect(t, kfi_cancel(&a.ep->fid, &contexts[1]), 0);
	expect_failure(t, a.tx_cq, &contexts[0], SENT, KFI_ECANCELED, 0, 0);
	expect_failure(t, a.rx_cq, &contexts[1], RECEIVED, KFI_ECANCELED, 0, 0);
	expect_completion(t, a.tx_cq, &contexts[2], SENT, 8);
	expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 8);
	expect_nothing(t, a.tx_cq);
	expect_nothing(t, a.rx_cq);
	expect(t, kfi_cancel(&a.ep->fid, &contexts[0]), -KFI_ENOENT);
	expect(t, kfi_cancel(&a.ep->fid, &contexts[2]), -KFI_ENOENT);
close:
	if (trigger)
		close_fid(t, &trigger->fid);
	if (target)
		close_fid(t, &target->fid);
	pair_close(t, &a, &b);
}

/* Work that has fired for an endpoint refers to nothing any more when that is closed. */
static void closed_when_fired(struct test *t)
{
	struct kfid_cntr *trigger, *target, *completion;
	struct end a, b;
	u8 from = 0;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	trigger = open_cntr(t, KFI_WAIT_UNSPEC);
	target = open_cntr(t, KFI_WAIT_UNSPEC);
	completion = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!trigger || !target || !completion)
		goto close;
	queue_backlog(t, a.domain, trigger, target);
	expect(t, send_deferred(&a, trigger, 2, &from, completion), 0);
	expect(t, kfi_cntr_add(trigger, 2), 0);
	close_fid(t, &a.ep->fid);
	a.ep = NULL;
	expect(t, kfi_close(&completion->fid), 0);
	completion = NULL;
	expect(t, kfi_close(&target->fid), 0);
	target = NULL;
close:
	if (trigger)
		close_fid(t, &trigger->fid);
	if (target)
		close_fid(t, &target->fid);
	if (completion)
		close_fid(t, &completion->fid);
	pair_close(t, &a, &b);
}

/* A condition that names what is no counter, or no condition at all. */
static void wrong_condition(struct test *t)
{
	struct kfi_triggered_context context = { .event_type = KFI_TRIGGER_THRESHOLD };
	struct kfid_cntr *cntr;
	struct end a, b;
	u8 from[8] = {};

	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!cntr)
		return;
	if (!pair_open(t, &a, &b, NULL, NULL))
		goto close;
	expect(t, send_triggered(&a, from, 8, NULL), -KFI_EINVAL);
	expect(t, send_triggered(&a, from, 8, &context), -KFI_EINVAL);
	context.trigger.threshold.cntr = (struct kfid_cntr *)a.ep;
	expect(t, send_triggered(&a, from, 8, &context), -KFI_EINVAL);
	context.trigger.threshold.cntr = (struct kfid_cntr *)t->domain;
	expect(t, send_triggered(&a, from, 8, &context), -KFI_EINVAL);
	context.trigger.threshold.cntr = cntr;
	context.event_type = (enum kfi_trigger_event)-1;
	expect(t, send_triggered(&a, from, 8, &context), -KFI_EINVAL);
	expect_nothing(t, a.tx_cq);
	pair_close(t, &a, &b);
close:
	close_fid(t, &cntr->fid);
}

const struct test_case trigger_tests[] = {
	{ "trigger/larger-context", "R-TRIG-8", larger_context },
	{ "trigger/scribbled-context", "R-TRIG-9", scribbled_context },
	{ "trigger/pending-beside-ending", "R-TRIG-26", pending_beside_ending },
	{ "trigger/cancelled-when-fired", "R-TRIG-26", cancelled_when_fired },
	{ "trigger/closed-when-fired", "R-CLOSE-2 R-CLOSE-4", closed_when_fired },
	{ "trigger/wrong-condition", "R-TRIG-7", wrong_condition },
	{ "trigger/few-bytes-with-interrupts-off", "R-DWQ-31", few_bytes_with_interrupts_off },
	{ "trigger/in-order-when-passed", "R-DWQ-18 R-TRIG-14", in_order_when_passed },
	{ "trigger/posted-in-order", "R-TRIG-17 R-TRIG-14", posted_in_order },
	{}
};
