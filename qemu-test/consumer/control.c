// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_control() on counters, wait queues, and calls that an object does not
 * have.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/wait.h>

#include "consumer.h"

#define NO_SUCH_COMMAND 9999

static void operation_flags(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	u64 flags = 1;

	if (!cntr)
		return;
	expect(t, kfi_control(&cntr->fid, KFI_GETOPSFLAG, &flags), 0);
	expect(t, flags, 0);
	flags = KFI_COMPLETION;
	expect(t, kfi_control(&cntr->fid, KFI_SETOPSFLAG, &flags), 0);
	flags = 0;
	expect(t, kfi_control(&cntr->fid, KFI_GETOPSFLAG, &flags), 0);
	expect(t, flags, KFI_COMPLETION);
	expect(t, kfi_control(&cntr->fid, KFI_GETOPSFLAG, NULL), -KFI_EINVAL);
	expect(t, kfi_control(&cntr->fid, KFI_SETOPSFLAG, NULL), -KFI_EINVAL);
	close_fid(t, &cntr->fid);
}

static void wait_object(struct test *t)
{
	static const struct {
		enum kfi_wait_obj object;
		int result;
	} cases[] = {
		{ KFI_WAIT_NONE, -KFI_EINVAL },
		{ KFI_WAIT_UNSPEC, -KFI_ENOSYS },
		{ KFI_WAIT_QUEUE, 0 },
	};
	struct kfid_cntr *cntr;
	unsigned int i;
	void *queue;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cntr = open_cntr(t, cases[i].object);
		if (!cntr)
			return;
		queue = NULL;
		expect(t, kfi_control(&cntr->fid, KFI_GETWAIT, &queue),
		       cases[i].result);
		expect(t, !!queue, !cases[i].result);
		expect(t, kfi_control(&cntr->fid, KFI_GETWAIT, NULL), -KFI_EINVAL);
		close_fid(t, &cntr->fid);
	}
}

static void wait_object_kind(struct test *t)
{
	static const struct {
		enum kfi_wait_obj asked;
		enum kfi_wait_obj told;
	} cases[] = {
		{ KFI_WAIT_NONE, KFI_WAIT_NONE },
		{ KFI_WAIT_UNSPEC, KFI_WAIT_QUEUE },
		{ KFI_WAIT_QUEUE, KFI_WAIT_QUEUE },
	};
	enum kfi_wait_obj told;
	struct kfid_cntr *cntr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cntr = open_cntr(t, cases[i].asked);
		if (!cntr)
			return;
		told = (enum kfi_wait_obj)NO_SUCH_COMMAND;
		expect(t, kfi_control(&cntr->fid, KFI_GETWAITOBJ, &told), 0);
		expect(t, told, cases[i].told);
		expect(t, kfi_control(&cntr->fid, KFI_GETWAITOBJ, NULL), -KFI_EINVAL);
		close_fid(t, &cntr->fid);
	}
}

/* A counter with a wait queue, and that queue. */
static struct kfid_cntr *open_queue(struct test *t, wait_queue_head_t **queue)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_QUEUE);

	if (!cntr)
		return NULL;
	*queue = NULL;
	expect(t, kfi_control(&cntr->fid, KFI_GETWAIT, queue), 0);
	if (expect_true(t, *queue))
		return cntr;
	kfi_close(&cntr->fid);
	return NULL;
}

static void queue_with_wait_event(struct test *t)
{
	wait_queue_head_t *queue;
	struct kfid_cntr *cntr = open_queue(t, &queue);
	long left;

	if (!cntr)
		return;
	left = wait_event_timeout(*queue, kfi_cntr_read(cntr) >= 1,
				  msecs_to_jiffies(20));
	expect(t, left, 0);
	if (add_from_threads(t, cntr, 2, 50)) {
		left = wait_event_timeout(*queue, kfi_cntr_read(cntr) >= 100,
					  msecs_to_jiffies(SOON));
		expect_true(t, left > 0);
	}
	close_fid(t, &cntr->fid);
}

struct wakeup_count {
	struct wait_queue_entry entry;
	atomic_t count;
};

static int count_wakeup(struct wait_queue_entry *entry, unsigned int mode,
			int flags, void *key)
{
	atomic_inc(&container_of(entry, struct wakeup_count, entry)->count);
	return 0;
}

static void queue_woken_on_every_change(struct test *t)
{
	struct wakeup_count wakeups = { .count = ATOMIC_INIT(0) };
	wait_queue_head_t *queue;
	struct kfid_cntr *cntr = open_queue(t, &queue);
	int before;

	if (!cntr)
		return;
	init_waitqueue_func_entry(&wakeups.entry, count_wakeup);
	add_wait_queue(queue, &wakeups.entry);

#define expect_wakeup(change)						\
	do {								\
		before = atomic_read(&wakeups.count);			\
		expect(t, change, 0);					\
		expect_true(t, atomic_read(&wakeups.count) > before);	\
	} while (0)

	expect_wakeup(kfi_cntr_add(cntr, 1));
	expect_wakeup(kfi_cntr_add(cntr, 1));
	expect_wakeup(kfi_cntr_set(cntr, 10));
	expect_wakeup(kfi_cntr_set(cntr, 5));
	expect_wakeup(kfi_cntr_adderr(cntr, 1));
	expect_wakeup(kfi_cntr_seterr(cntr, 7));
	expect_wakeup(kfi_cntr_seterr(cntr, 2));
#undef expect_wakeup

	remove_wait_queue(queue, &wakeups.entry);
	close_fid(t, &cntr->fid);
}

static void queue_woken_from_hardirq(struct test *t)
{
	struct wakeup_count wakeups = { .count = ATOMIC_INIT(0) };
	wait_queue_head_t *queue;
	struct kfid_cntr *cntr = open_queue(t, &queue);

	if (!cntr)
		return;
	init_waitqueue_func_entry(&wakeups.entry, count_wakeup);
	add_wait_queue(queue, &wakeups.entry);
	expect(t, add_from_hardirq(t, cntr, 1, 1), 0);
	expect_true(t, atomic_read(&wakeups.count) > 0);
	remove_wait_queue(queue, &wakeups.entry);
	close_fid(t, &cntr->fid);
}

static void unknown_command(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	u64 value = 0;

	if (!cntr)
		return;
	expect(t, kfi_control(&cntr->fid, NO_SUCH_COMMAND, &value), -KFI_ENOSYS);
	expect(t, kfi_control(&cntr->fid, -1, NULL), -KFI_ENOSYS);
	expect(t, kfi_control(&t->domain->fid, NO_SUCH_COMMAND, &value),
	       -KFI_ENOSYS);
	expect_errno(t, kfi_control(&t->fabric->fid, NO_SUCH_COMMAND, &value));
	close_fid(t, &cntr->fid);
}

static void unknown_operations(struct test *t)
{
	static const char name[] = "no such operations";
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	void *ops = NULL;

	if (!cntr)
		return;
	expect_errno(t, kfi_open_ops(&cntr->fid, name, 0, &ops, NULL));
	expect_errno(t, kfi_open_ops(&t->domain->fid, name, 0, &ops, NULL));
	expect_errno(t, kfi_open_ops(&t->fabric->fid, name, 0, &ops, NULL));
	expect_true(t, !ops);
	close_fid(t, &cntr->fid);
}

static void wrong_bind(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid *fid;

	if (!cntr)
		return;
	fid = &cntr->fid;
	expect_errno(t, fid->ops->bind(fid, &t->domain->fid, 0));
	expect_errno(t, kfi_domain_bind(t->domain, fid, 0));
	fid = &t->fabric->fid;
	expect_errno(t, fid->ops->bind(fid, &cntr->fid, 0));
	close_fid(t, &cntr->fid);
}

const struct test_case control_tests[] = {
	{ "ctl/case-52-operation-flags", "R-CTL-6", operation_flags },
	{ "ctl/case-52-wait-object", "R-CTL-7 R-CNTR-15", wait_object },
	{ "ctl/case-52-wait-object-kind", "R-CTL-8", wait_object_kind },
	{ "ctl/queue-with-wait-event", "R-CTL-7 R-CNTR-15", queue_with_wait_event },
	{ "ctl/queue-woken-on-every-change", "R-CNTR-16", queue_woken_on_every_change },
	{ "ctl/queue-woken-from-hardirq", "R-CNTR-16", queue_woken_from_hardirq },
	{ "ctl/case-53-unknown-command", "R-CTL-9", unknown_command },
	{ "ctl/unknown-operations", "", unknown_operations },
	{ "ctl/wrong-bind", "", wrong_bind },
	{}
};
