// SPDX-License-Identifier: GPL-2.0
/*
 * Handlers of completion queues and event queues, and queues that overrun.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/limits.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/string.h>

#include <kfi_soft_ext.h>

#include "consumer.h"

/* Something for a handler to do besides counting. */
enum action {
	NOTHING,
	READ_ALL,
	BLOCK,
	CLOSE,
};

/**
 * struct handled - a queue with a handler
 * @cq: the queue, or NULL
 * @eq: the queue, or NULL
 * @ops: test functions of @cq
 * @action: what the handler does
 * @calls: how often it was called
 * @read: entries that it has read
 * @last: number of the last entry that it has read
 * @cpu: CPU that it ran on
 * @result: what its kfi_close() returned
 * @closed: kfi_close() has returned: it must not be called
 * @bad: anything was not as it must be
 * @returning: it is about to return
 * @entered: it was called
 * @proceed: it may go on
 * @emptied: it has found nothing more to read
 */
struct handled {
	struct kfid_cq *cq;
	struct kfid_eq *eq;
	struct kfi_soft_cq_ops *ops;
	enum action action;
	atomic_t calls;
	atomic_t read;
	unsigned long last;
	unsigned int cpu;
	int result;
	bool closed;
	bool bad;
	bool returning;
	struct completion entered;
	struct completion proceed;
	struct completion emptied;
};

static void handled_init(struct handled *h, enum action action)
{
	*h = (struct handled) { .action = action, .cpu = UINT_MAX };
	init_completion(&h->entered);
	init_completion(&h->proceed);
	init_completion(&h->emptied);
}

static long read_one(struct handled *h)
{
	struct kfi_cq_entry entry = {};
	struct kfi_eq_entry event = {};
	ssize_t ret;
	u32 type;

	if (h->cq) {
		ret = kfi_cq_read(h->cq, &entry, 1);
		return ret == 1 ? (long)entry.op_context : ret;
	}
	ret = kfi_eq_read(h->eq, &type, &event, sizeof(event), 0);
	return ret == sizeof(event) ? (long)event.data : ret;
}

static void act(struct handled *h)
{
	long ret;

	atomic_inc(&h->calls);
	WRITE_ONCE(h->cpu, raw_smp_processor_id());
	if (READ_ONCE(h->closed) || !in_task() || irqs_disabled())
		WRITE_ONCE(h->bad, true);
	might_sleep();
	complete(&h->entered);
	switch (h->action) {
	case NOTHING:
		break;
	case READ_ALL:
		while ((ret = read_one(h)) > 0) {
			if (ret != h->last + 1)
				WRITE_ONCE(h->bad, true);
			h->last = ret;
			atomic_inc(&h->read);
		}
		if (ret != -KFI_EAGAIN)
			WRITE_ONCE(h->bad, true);
		complete(&h->emptied);
		break;
	case BLOCK:
		wait_for_completion(&h->proceed);
		break;
	case CLOSE:
		h->result = kfi_close(h->cq ? &h->cq->fid : &h->eq->fid);
		complete(&h->emptied);
		break;
	}
	WRITE_ONCE(h->returning, true);
}

static void comp_handler(struct kfid_cq *cq, void *context)
{
	struct handled *h = context;

	if (cq != h->cq)
		WRITE_ONCE(h->bad, true);
	act(h);
}

static void event_handler(struct kfid_eq *eq, void *context)
{
	struct handled *h = context;

	if (eq != h->eq)
		WRITE_ONCE(h->bad, true);
	act(h);
}

static bool open_handled_cq(struct test *t, struct handled *h,
			    enum action action, struct kfi_cq_attr *attr)
{
	void *ops = NULL;

	handled_init(h, action);
	if (!expect(t, kfi_cq_open(t->domain, attr, &h->cq, comp_handler, h), 0))
		return false;
	expect_true(t, h->cq->comp_handler == comp_handler);
	expect(t, kfi_open_ops(&h->cq->fid, KFI_SOFT_CQ_OPS_1, 0, &ops, NULL), 0);
	h->ops = ops;
	if (expect_true(t, ops && h->ops->size >= sizeof(*h->ops)))
		return true;
	close_fid(t, &h->cq->fid);
	return false;
}

static bool open_handled_eq(struct test *t, struct handled *h,
			    enum action action, struct kfi_eq_attr *attr)
{
	handled_init(h, action);
	if (!expect(t, kfi_eq_open(t->fabric, attr, &h->eq, event_handler, h), 0))
		return false;
	expect_true(t, h->eq->event_handler == event_handler);
	return true;
}

/* From any context. */
static int put(struct handled *h, unsigned long number)
{
	struct kfi_cq_err_entry entry = { .op_context = (void *)number };
	struct kfi_eq_entry event = { .data = number };
	ssize_t ret;

	if (h->cq)
		return h->ops->write(&h->cq->fid, &entry);
	ret = kfi_eq_write(h->eq, KFI_NOTIFY, &event, sizeof(event), 0);
	return ret == sizeof(event) ? 0 : ret;
}

/* Number of calls, when more could have come. */
static int settled_calls(struct handled *h)
{
	msleep(30);
	return atomic_read(&h->calls);
}

static void close_handled(struct test *t, struct handled *h)
{
	close_fid(t, h->cq ? &h->cq->fid : &h->eq->fid);
	WRITE_ONCE(h->closed, true);
	expect_true(t, !READ_ONCE(h->bad));
}

static void fires_once(struct test *t, struct handled *h)
{
	expect(t, settled_calls(h), 0);
	expect(t, put(h, 1), 0);
	expect_true(t, happens_soon(&h->entered));
	expect(t, put(h, 2), 0);
	expect(t, put(h, 3), 0);
	expect(t, settled_calls(h), 1);

	/* A read that finds something arms nothing. */
	expect(t, read_one(h), 1);
	expect(t, put(h, 4), 0);
	expect(t, settled_calls(h), 1);
	expect(t, read_one(h), 2);
	expect(t, read_one(h), 3);
	expect(t, read_one(h), 4);
	expect(t, put(h, 5), 0);
	expect(t, settled_calls(h), 1);
	expect(t, read_one(h), 5);

	/* One that finds nothing does, and to do it again changes nothing. */
	expect(t, read_one(h), -KFI_EAGAIN);
	expect(t, read_one(h), -KFI_EAGAIN);
	expect(t, settled_calls(h), 1);
	expect(t, put(h, 6), 0);
	expect(t, put(h, 7), 0);
	expect_true(t, happens_soon(&h->entered));
	expect(t, settled_calls(h), 2);
}

static void cq_fires_once(struct test *t)
{
	struct kfi_cq_attr attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfi_cq_err_entry error = {};
	struct handled h;

	if (!open_handled_cq(t, &h, NOTHING, &attr))
		return;
	fires_once(t, &h);
	/* A queue without errors is not one without entries. */
	expect(t, kfi_cq_readerr(h.cq, &error, 0), -KFI_EAGAIN);
	expect(t, settled_calls(&h), 2);
	/* One who only looks arms it when there is nothing. */
	expect(t, kfi_cq_read(h.cq, NULL, 0), 0);
	expect(t, read_one(&h), 6);
	expect(t, read_one(&h), 7);
	expect(t, put(&h, 8), 0);
	expect(t, kfi_cq_read(h.cq, NULL, 0), 0);
	expect(t, settled_calls(&h), 2);
	expect(t, read_one(&h), 8);
	expect(t, kfi_cq_read(h.cq, NULL, 0), -KFI_EAGAIN);
	expect(t, put(&h, 9), 0);
	expect_true(t, happens_soon(&h.entered));
	expect(t, settled_calls(&h), 3);
	close_handled(t, &h);
}

static void eq_fires_once(struct test *t)
{
	struct kfi_eq_attr attr = { .flags = KFI_WRITE, .wait_obj = KFI_WAIT_NONE };
	struct kfi_eq_err_entry error = {};
	struct kfi_eq_entry event;
	struct handled h;
	u32 type;

	if (!open_handled_eq(t, &h, NOTHING, &attr))
		return;
	fires_once(t, &h);
	expect(t, kfi_eq_readerr(h.eq, &error, 0), -KFI_EAGAIN);
	expect(t, settled_calls(&h), 2);

	/* Looking for events without taking them is a read as well. */
	expect(t, read_one(&h), 6);
	expect(t, read_one(&h), 7);
	expect(t, kfi_eq_read(h.eq, &type, &event, sizeof(event), KFI_PEEK), -KFI_EAGAIN);
	expect(t, put(&h, 8), 0);
	expect_true(t, happens_soon(&h.entered));
	expect(t, settled_calls(&h), 3);
	close_handled(t, &h);
}

static long put_job(void *arg)
{
	return put(arg, 1);
}

static void fires_from_hardirq(struct test *t)
{
	struct kfi_cq_attr cq_attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfi_eq_attr eq_attr = { .flags = KFI_WRITE, .wait_obj = KFI_WAIT_NONE };
	struct handled h;

	if (open_handled_cq(t, &h, READ_ALL, &cq_attr)) {
		expect(t, run_in_hardirq(t, put_job, &h), 0);
		expect_true(t, happens_soon(&h.emptied));
		expect(t, h.last, 1);
		close_handled(t, &h);
	}
	if (open_handled_eq(t, &h, READ_ALL, &eq_attr)) {
		expect(t, run_in_hardirq(t, put_job, &h), 0);
		expect_true(t, happens_soon(&h.emptied));
		expect(t, h.last, 1);
		close_handled(t, &h);
	}
}

static long read_job(void *arg)
{
	return read_one(arg);
}

static void armed_from_hardirq(struct test *t)
{
	struct kfi_cq_attr attr = { .wait_obj = KFI_WAIT_NONE };
	struct handled h;

	if (!open_handled_cq(t, &h, NOTHING, &attr))
		return;
	expect(t, put(&h, 1), 0);
	expect_true(t, happens_soon(&h.entered));
	expect(t, run_in_hardirq(t, read_job, &h), 1);
	expect(t, run_in_hardirq(t, read_job, &h), -KFI_EAGAIN);
	expect(t, put(&h, 2), 0);
	expect_true(t, happens_soon(&h.entered));
	close_handled(t, &h);
}

static void affinity(struct test *t)
{
	struct kfi_cq_attr cq_attr = { .flags = KFI_AFFINITY, .wait_obj = KFI_WAIT_NONE };
	struct kfi_eq_attr eq_attr = {
		.flags = KFI_AFFINITY | KFI_WRITE,
		.wait_obj = KFI_WAIT_NONE,
	};
	const int bad[] = { -1, INT_MIN, INT_MAX, nr_cpu_ids };
	struct kfid_cq *cq = NULL;
	struct kfid_eq *eq = NULL;
	unsigned int cpu, i;
	struct handled h;

	for_each_online_cpu(cpu) {
		cq_attr.signaling_vector = cpu;
		eq_attr.signaling_vector = cpu;
		if (open_handled_cq(t, &h, READ_ALL, &cq_attr)) {
			for (i = 1; i <= 3; i++) {
				expect(t, put(&h, i), 0);
				expect_true(t, happens_soon(&h.emptied));
				expect(t, READ_ONCE(h.cpu), cpu);
			}
			close_handled(t, &h);
		}
		if (open_handled_eq(t, &h, READ_ALL, &eq_attr)) {
			expect(t, put(&h, 1), 0);
			expect_true(t, happens_soon(&h.emptied));
			expect(t, READ_ONCE(h.cpu), cpu);
			close_handled(t, &h);
		}
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		cq_attr.signaling_vector = bad[i];
		eq_attr.signaling_vector = bad[i];
		expect(t, kfi_cq_open(t->domain, &cq_attr, &cq, comp_handler, NULL), -KFI_EINVAL);
		expect(t, kfi_cq_open(t->domain, &cq_attr, &cq, NULL, NULL), -KFI_EINVAL);
		expect(t, kfi_eq_open(t->fabric, &eq_attr, &eq, event_handler, NULL), -KFI_EINVAL);
		expect_true(t, !cq && !eq);
	}
	/* Without the flag it is not looked at. */
	cq_attr.flags = 0;
	if (open_handled_cq(t, &h, READ_ALL, &cq_attr)) {
		expect(t, put(&h, 1), 0);
		expect_true(t, happens_soon(&h.emptied));
		close_handled(t, &h);
	}
}

/* A thread that adds entries and waits until they are read. */
struct stress {
	struct test *t;
	struct handled *h;
	unsigned int rounds;
	unsigned int stuck;
};

static long stress_writer(void *arg)
{
	struct stress *s = arg;
	unsigned long enough = jiffies + msecs_to_jiffies(1000);
	unsigned long number = 0;
	unsigned int round, i;
	unsigned long end;

	for (round = 0; round < s->rounds && !s->stuck; round++) {
		if (time_after(jiffies, enough))
			break;
		end = jiffies + msecs_to_jiffies(SOON);
		/* More than fit every now and then. */
		for (i = round % 64 ? round % 5 + 1 : 20; i && !s->stuck;) {
			if (!put(s->h, number + 1)) {
				number++;
				i--;
				continue;
			}
			cpu_relax();
			cond_resched();
			if (time_after(jiffies, end))
				s->stuck = round + 1;
		}
		/* In some rounds the next entry meets the handler at work. */
		if (round % 3)
			continue;
		while (atomic_read(&s->h->read) != number && !s->stuck) {
			cpu_relax();
			cond_resched();
			if (time_after(jiffies, end))
				s->stuck = round + 1;
		}
		udelay(round % 7);
	}
	end = jiffies + msecs_to_jiffies(SOON);
	while (atomic_read(&s->h->read) != number && time_before(jiffies, end))
		msleep(20);
	return number;
}

static void stress_handler(struct test *t, struct handled *h, unsigned int writer_cpu)
{
	struct stress s = { .t = t, .h = h, .rounds = 20000 };
	struct job writer;
	long written;

	if (!job_start(t, &writer, stress_writer, &s, writer_cpu))
		return;
	written = job_finish(&writer);
	expect(t, s.stuck, 0);
	expect(t, atomic_read(&h->read), written);
	expect(t, h->last, written);
	expect_true(t, atomic_read(&h->calls) > 1);
}

static void rearm_race(struct test *t)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	struct kfi_cq_attr cq_attr = {
		.size = 8,
		.flags = KFI_AFFINITY,
		.wait_obj = KFI_WAIT_NONE,
		.signaling_vector = cpu,
	};
	struct kfi_eq_attr eq_attr = {
		.size = 8,
		.flags = KFI_AFFINITY | KFI_WRITE,
		.wait_obj = KFI_WAIT_NONE,
		.signaling_vector = cpu,
	};
	struct handled h;

	if (open_handled_cq(t, &h, READ_ALL, &cq_attr)) {
		stress_handler(t, &h, other_cpu(cpu));
		close_handled(t, &h);
	}
	if (open_handled_cq(t, &h, READ_ALL, &cq_attr)) {
		stress_handler(t, &h, cpu);
		close_handled(t, &h);
	}
	if (open_handled_eq(t, &h, READ_ALL, &eq_attr)) {
		stress_handler(t, &h, other_cpu(cpu));
		close_handled(t, &h);
	}
}

struct stolen {
	struct handled *h;
	atomic_t left;
	atomic_t taken;
};

/* Reads against the handler, which so is armed by two. */
static long thief(void *arg)
{
	struct stolen *s = arg;

	while (atomic_read(&s->left)) {
		if (read_one(s->h) > 0)
			atomic_inc(&s->taken);
		cond_resched();
	}
	return 0;
}

static void unordered_handler(struct kfid_cq *cq, void *context)
{
	struct handled *h = context;

	atomic_inc(&h->calls);
	while (read_one(h) > 0)
		atomic_inc(&h->read);
}

/* However many arm it, nothing is left when they have gone. */
static void armed_by_two(struct test *t)
{
	struct kfi_cq_attr attr = { .size = 16, .wait_obj = KFI_WAIT_NONE };
	unsigned int cpu = cpumask_first(cpu_online_mask);
	struct stolen s = {};
	struct handled h;
	struct job job;
	void *ops = NULL;
	unsigned int i, ms;

	handled_init(&h, NOTHING);
	s.h = &h;
	if (!expect(t, kfi_cq_open(t->domain, &attr, &h.cq, unordered_handler, &h), 0))
		return;
	expect(t, kfi_open_ops(&h.cq->fid, KFI_SOFT_CQ_OPS_1, 0, &ops, NULL), 0);
	h.ops = ops;
	atomic_set(&s.left, 1);
	if (!ops || !job_start(t, &job, thief, &s, other_cpu(cpu)))
		goto close;
	for (i = 1; i <= 20000;) {
		if (!put(&h, i))
			i++;
		else
			cond_resched();
	}
	atomic_set(&s.left, 0);
	job_finish(&job);
	for (ms = 0; ms < SOON && atomic_read(&s.taken) + atomic_read(&h.read) != i - 1; ms += 20)
		msleep(20);
	expect(t, atomic_read(&s.taken) + atomic_read(&h.read), i - 1);
close:
	close_handled(t, &h);
}

static long close_job(void *arg)
{
	struct handled *h = arg;
	long ret = kfi_close(h->cq ? &h->cq->fid : &h->eq->fid);

	/* It has returned first. */
	if (!READ_ONCE(h->returning))
		WRITE_ONCE(h->bad, true);
	WRITE_ONCE(h->closed, true);
	return ret;
}

static void close_running(struct test *t, struct handled *h)
{
	struct job closer;

	expect(t, put(h, 1), 0);
	expect_true(t, happens_soon(&h->entered));
	if (!job_start(t, &closer, close_job, h, ANY_CPU)) {
		complete_all(&h->proceed);
		close_handled(t, h);
		return;
	}
	expect_true(t, job_is_waiting(&closer));
	complete_all(&h->proceed);
	expect(t, job_finish(&closer), 0);
	expect(t, settled_calls(h), 1);
	expect_true(t, !READ_ONCE(h->bad));
}

static void close_while_running(struct test *t)
{
	struct kfi_cq_attr cq_attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfi_eq_attr eq_attr = { .flags = KFI_WRITE, .wait_obj = KFI_WAIT_NONE };
	struct handled h;

	if (open_handled_cq(t, &h, BLOCK, &cq_attr))
		close_running(t, &h);
	if (open_handled_eq(t, &h, BLOCK, &eq_attr))
		close_running(t, &h);
}

static void close_while_queued(struct test *t)
{
	unsigned int cpu = cpumask_first(cpu_online_mask), round;
	struct kfi_cq_attr attr = { .flags = KFI_AFFINITY, .wait_obj = KFI_WAIT_NONE };
	struct handled h;

	for (round = 0; round < 200 && !t->failed; round++) {
		attr.signaling_vector = round % 2 ? cpu : other_cpu(cpu);
		if (!open_handled_cq(t, &h, READ_ALL, &attr))
			return;
		expect(t, put(&h, 1), 0);
		udelay(round % 20);
		close_handled(t, &h);
		/* A late one would see the mark, or find the queue gone. */
		udelay(10);
		expect_true(t, !READ_ONCE(h.bad));
	}
}

static void close_inside(struct test *t)
{
	struct kfi_cq_attr cq_attr = { .wait_obj = KFI_WAIT_NONE };
	struct kfi_eq_attr eq_attr = { .flags = KFI_WRITE, .wait_obj = KFI_WAIT_NONE };
	struct handled h;

	if (open_handled_cq(t, &h, CLOSE, &cq_attr)) {
		expect(t, put(&h, 1), 0);
		expect_true(t, happens_soon(&h.emptied));
		expect(t, h.result, -KFI_EBUSY);
		/* It has changed nothing. */
		expect(t, read_one(&h), 1);
		close_handled(t, &h);
	}
	if (open_handled_eq(t, &h, CLOSE, &eq_attr)) {
		expect(t, put(&h, 1), 0);
		expect_true(t, happens_soon(&h.emptied));
		expect(t, h.result, -KFI_EBUSY);
		expect(t, read_one(&h), 1);
		close_handled(t, &h);
	}
}

/* Readers that sleep are woken as well, and arm it by a timeout as little as by success. */
static void beside_sread(struct test *t)
{
	struct kfi_cq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_cq_entry entry;
	struct handled h;

	if (!open_handled_cq(t, &h, NOTHING, &attr))
		return;
	expect(t, put(&h, 1), 0);
	expect_true(t, happens_soon(&h.entered));
	expect(t, kfi_cq_sread(h.cq, &entry, 1, NULL, SOON), 1);
	expect(t, kfi_cq_sread(h.cq, &entry, 1, NULL, 0), -KFI_ETIMEDOUT);
	expect(t, put(&h, 2), 0);
	expect(t, settled_calls(&h), 1);
	expect(t, kfi_cq_sread(h.cq, &entry, 1, NULL, SOON), 1);
	expect(t, read_one(&h), -KFI_EAGAIN);
	expect(t, put(&h, 3), 0);
	expect_true(t, happens_soon(&h.entered));
	expect(t, settled_calls(&h), 2);
	close_handled(t, &h);
}

static void overrun(struct test *t)
{
	struct kfi_cq_attr attr = { .size = 4, .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_cq_err_entry lost = { .op_context = (void *)99 }, error = {};
	struct kfi_cq_entry got[8];
	unsigned int round;
	struct handled h;
	size_t i;

	if (!open_handled_cq(t, &h, NOTHING, &attr))
		return;
	expect(t, h.ops->write_unreserved(&h.cq->fid, NULL), -KFI_EINVAL);
	for (round = 0; round < 3; round++) {
		/* With room it is as any other. */
		expect(t, h.ops->write_unreserved(&h.cq->fid, &lost), 0);
		expect_true(t, happens_soon(&h.entered));
		for (i = 1; i < attr.size; i++)
			expect(t, put(&h, i), 0);
		expect(t, put(&h, i), -KFI_ENOSPC);
		expect(t, h.ops->write_unreserved(&h.cq->fid, &lost), 0);
		lost.err = KFI_EIO;
		expect(t, h.ops->write_unreserved(&h.cq->fid, &lost), 0);
		lost.err = 0;

		/* Entries from before come first, later ones after them. */
		expect(t, read_one(&h), 99);
		expect(t, put(&h, 50), 0);
		expect(t, kfi_cq_read(h.cq, got, 8), attr.size - 1);
		expect(t, (long)got[0].op_context, 1);
		expect(t, kfi_cq_readerr(h.cq, &error, 0), -KFI_EAGAIN);
		/* It is told once to those that have room, and to others until then. */
		expect(t, kfi_cq_read(h.cq, NULL, 0), -KFI_EOVERRUN);
		expect(t, kfi_cq_read(h.cq, NULL, 0), -KFI_EOVERRUN);
		if (round)
			expect(t, kfi_cq_sread(h.cq, got, 8, NULL, -1), -KFI_EOVERRUN);
		else
			expect(t, kfi_cq_read(h.cq, got, 8), -KFI_EOVERRUN);
		expect(t, read_one(&h), 50);
		expect(t, read_one(&h), -KFI_EAGAIN);
		expect(t, atomic_read(&h.calls), round + 1);
	}
	close_handled(t, &h);
}

const struct test_case handler_tests[] = {
	{ "handler/cq-once-until-armed", "", cq_fires_once },
	{ "handler/eq-once-until-armed", "", eq_fires_once },
	{ "handler/fired-in-hardirq", "", fires_from_hardirq },
	{ "handler/armed-in-hardirq", "", armed_from_hardirq },
	{ "handler/affinity", "", affinity },
	{ "handler/race-of-entry-and-arming", "", rearm_race },
	{ "handler/armed-by-two", "", armed_by_two },
	{ "handler/close-while-running", "R-CLOSE-3", close_while_running },
	{ "handler/close-while-queued", "R-CLOSE-3", close_while_queued },
	{ "handler/close-inside", "R-CLOSE-2", close_inside },
	{ "handler/beside-sread", "", beside_sread },
	{ "cq/overrun", "", overrun },
	{}
};
