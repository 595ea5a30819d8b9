// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues and event queues, filled by the provider's test functions.
 */
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>

#include <kfi_soft_ext.h>

#include "consumer.h"

/* One table each for all queues. */
static struct kfi_soft_cq_ops *cq_ops;
static struct kfi_soft_eq_ops *eq_ops;

static struct kfid_cq *open_cq_attr(struct test *t, struct kfi_cq_attr *attr,
				    void *context)
{
	struct kfid_cq *cq = NULL;
	void *ops = NULL;

	if (!expect(t, kfi_cq_open(t->domain, attr, &cq, NULL, context), 0) ||
	    !expect_true(t, cq))
		return NULL;
	expect(t, kfi_open_ops(&cq->fid, KFI_SOFT_CQ_OPS_1, 0, &ops, NULL), 0);
	if (expect_true(t, ops)) {
		cq_ops = ops;
		return cq;
	}
	close_fid(t, &cq->fid);
	return NULL;
}

struct kfid_cq *open_cq(struct test *t, enum kfi_wait_obj wait_obj,
			struct kfid_wait *set, size_t size, void *context)
{
	struct kfi_cq_attr attr = {
		.size = size,
		.format = KFI_CQ_FORMAT_CONTEXT,
		.wait_obj = wait_obj,
		.wait_set = set,
	};

	return open_cq_attr(t, &attr, context);
}

struct kfid_eq *open_eq(struct test *t, enum kfi_wait_obj wait_obj,
			struct kfid_wait *set, size_t size)
{
	struct kfi_eq_attr attr = {
		.size = size,
		.flags = KFI_WRITE,
		.wait_obj = wait_obj,
		.wait_set = set,
	};
	struct kfid_eq *eq = NULL;
	void *ops = NULL;

	if (!expect(t, kfi_eq_open(t->fabric, &attr, &eq, NULL, NULL), 0) ||
	    !expect_true(t, eq))
		return NULL;
	expect(t, kfi_open_ops(&eq->fid, KFI_SOFT_EQ_OPS_1, 0, &ops, NULL), 0);
	if (expect_true(t, ops)) {
		eq_ops = ops;
		return eq;
	}
	close_fid(t, &eq->fid);
	return NULL;
}

bool open_others(struct test *t, struct test *others)
{
	*others = (struct test) { .info = t->info };
	if (!expect(t, kfi_fabric(t->info->fabric_attr, &others->fabric, NULL), 0))
		return false;
	if (expect(t, kfi_domain(others->fabric, t->info, &others->domain, NULL), 0))
		return true;
	close_fid(t, &others->fabric->fid);
	return false;
}

void close_others(struct test *t, struct test *others)
{
	t->failed |= others->failed;
	close_fid(t, &others->domain->fid);
	close_fid(t, &others->fabric->fid);
}

/* What a completion of this number looks like; every member is different. */
static struct kfi_cq_err_entry entry_of(unsigned long number)
{
	return (struct kfi_cq_err_entry) {
		.op_context = (void *)number,
		.flags = KFI_MSG | KFI_RECV | (u64)number << 48,
		.len = number + 0x20000,
		.buf = (void *)(number + 0x30000),
		.data = number + (1ULL << 40),
		.tag = number + (1ULL << 41),
		.olen = number + 0x60000,
		.prov_errno = number + 0x70000,
	};
}

/* From any context. */
int put_completion(struct kfid_cq *cq, unsigned long number)
{
	struct kfi_cq_err_entry entry = entry_of(number);

	return cq_ops->write(&cq->fid, &entry);
}

int put_error(struct kfid_cq *cq, unsigned long number)
{
	struct kfi_cq_err_entry entry = entry_of(number);

	entry.err = KFI_EMSGSIZE;
	return cq_ops->write(&cq->fid, &entry);
}

/* Number of the completion taken out, or an error. */
long get_completion(struct kfid_cq *cq)
{
	struct kfi_cq_entry entry = {};
	ssize_t ret = kfi_cq_read(cq, &entry, 1);

	return ret == 1 ? (long)entry.op_context : ret;
}

int put_event(struct kfid_eq *eq, u32 event)
{
	struct kfi_eq_entry entry = {
		.context = (void *)(unsigned long)event,
		.data = event + (1ULL << 40),
	};
	ssize_t ret = kfi_eq_write(eq, event, &entry, sizeof(entry), 0);

	return ret == sizeof(entry) ? 0 : ret;
}

static int put_event_error(struct kfid_eq *eq, unsigned long number)
{
	struct kfi_eq_err_entry entry = {
		.fid = (struct kfid *)(number + 0x10000),
		.context = (void *)number,
		.data = number + (1ULL << 40),
		.err = KFI_ENODEV,
		.prov_errno = number + 0x70000,
	};

	return eq_ops->write_error(&eq->fid, &entry);
}

static long put_completion_job(void *cq)
{
	return put_completion(cq, 1);
}

static long put_event_job(void *eq)
{
	return put_event(eq, KFI_NOTIFY);
}

/* Waiting readers */

struct reader {
	struct kfid_cq *cq;
	struct kfid_eq *eq;
	int timeout;
	struct job job;
};

static long cq_reader(void *arg)
{
	struct reader *r = arg;
	struct kfi_cq_entry entry = {};

	return kfi_cq_sread(r->cq, &entry, 1, NULL, r->timeout);
}

static long eq_reader(void *arg)
{
	struct reader *r = arg;
	struct kfi_eq_entry entry;
	u32 event;

	return kfi_eq_sread(r->eq, &event, &entry, sizeof(entry), r->timeout, 0);
}

static bool start_cq_reader(struct test *t, struct reader *r,
			    struct kfid_cq *cq, int timeout)
{
	r->cq = cq;
	r->timeout = timeout;
	return job_start(t, &r->job, cq_reader, r, ANY_CPU);
}

static bool start_eq_reader(struct test *t, struct reader *r,
			    struct kfid_eq *eq, int timeout)
{
	r->eq = eq;
	r->timeout = timeout;
	return job_start(t, &r->job, eq_reader, r, ANY_CPU);
}

/* Completion queues */

static void expect_cq_open(struct test *t, struct kfi_cq_attr attr, int result)
{
	struct kfid_cq *cq = NULL;
	int ret = kfi_cq_open(t->domain, &attr, &cq, NULL, NULL);

	expect(t, ret, result);
	expect(t, !!cq, !result);
	if (!ret)
		close_fid(t, &cq->fid);
}

static void cq_attributes(struct test *t)
{
	struct kfi_cq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_wait_attr wait_attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid_wait *foreign = NULL;
	struct kfid_cq *cq = NULL;
	struct test others;
	int i;

	if (!cntr)
		return;
	if (!open_others(t, &others))
		goto close_cntr;
	for (i = KFI_CQ_FORMAT_UNSPEC; i <= KFI_CQ_FORMAT_TAGGED; i++) {
		attr.format = i;
		expect_cq_open(t, attr, 0);
	}
	attr.format = i;
	expect_cq_open(t, attr, -KFI_EINVAL);
	attr.format = (enum kfi_cq_format)-1;
	expect_cq_open(t, attr, -KFI_EINVAL);
	attr.format = KFI_CQ_FORMAT_UNSPEC;

	attr.wait_cond = KFI_CQ_COND_THRESHOLD;
	expect_cq_open(t, attr, 0);
	attr.wait_cond = (enum kfi_cq_wait_cond)2;
	expect_cq_open(t, attr, -KFI_EINVAL);
	attr.wait_cond = KFI_CQ_COND_NONE;

	attr.flags = 1;
	expect_cq_open(t, attr, -KFI_EINVAL);
	attr.flags = 0;

	/* Not looked at without KFI_WAIT_SET. */
	attr.wait_set = (struct kfid_wait *)1;
	attr.wait_obj = KFI_WAIT_NONE;
	expect_cq_open(t, attr, 0);
	attr.wait_obj = KFI_WAIT_QUEUE;
	expect_cq_open(t, attr, 0);
	attr.wait_obj = (enum kfi_wait_obj)(KFI_WAIT_QUEUE + 1);
	expect_cq_open(t, attr, -KFI_EINVAL);
	attr.wait_obj = (enum kfi_wait_obj)-1;
	expect_cq_open(t, attr, -KFI_EINVAL);

	attr.wait_obj = KFI_WAIT_SET;
	attr.wait_set = NULL;
	expect_cq_open(t, attr, -KFI_EINVAL);
	attr.wait_set = (struct kfid_wait *)cntr;
	expect_cq_open(t, attr, -KFI_EINVAL);
	if (expect(t, kfi_wait_open(others.fabric, &wait_attr, &foreign), 0)) {
		attr.wait_set = foreign;
		expect_cq_open(t, attr, -KFI_EINVAL);
		close_fid(t, &foreign->kfid);
	}
	attr.wait_obj = KFI_WAIT_UNSPEC;

	attr.size = SIZE_MAX;
	expect_cq_open(t, attr, -KFI_EINVAL);
	attr.size = 1;
	expect_cq_open(t, attr, 0);

	if (expect(t, kfi_cq_open(t->domain, NULL, &cq, NULL, NULL), 0))
		close_fid(t, &cq->fid);
	close_others(t, &others);
close_cntr:
	close_fid(t, &cntr->fid);
}

static void cq_attributes_written_back(struct test *t)
{
	struct kfi_cq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfid_cq *cq = open_cq_attr(t, &attr, NULL);

	if (!cq)
		return;
	expect_true(t, attr.format != KFI_CQ_FORMAT_UNSPEC);
	expect_true(t, attr.size);
	close_fid(t, &cq->fid);
}

static void cq_formats(struct test *t)
{
	static const size_t sizes[] = {
		[KFI_CQ_FORMAT_CONTEXT] = sizeof(struct kfi_cq_entry),
		[KFI_CQ_FORMAT_MSG] = sizeof(struct kfi_cq_msg_entry),
		[KFI_CQ_FORMAT_DATA] = sizeof(struct kfi_cq_data_entry),
		[KFI_CQ_FORMAT_TAGGED] = sizeof(struct kfi_cq_tagged_entry),
	};
	struct kfi_cq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	unsigned char got[4 * sizeof(struct kfi_cq_tagged_entry)];
	struct kfi_cq_tagged_entry want, *entry;
	struct kfi_cq_err_entry source;
	struct kfid_cq *cq;
	int format, i;

	for (format = KFI_CQ_FORMAT_CONTEXT; format <= KFI_CQ_FORMAT_TAGGED; format++) {
		attr.format = format;
		cq = open_cq_attr(t, &attr, NULL);
		if (!cq)
			return;
		expect(t, put_completion(cq, 1), 0);
		expect(t, put_completion(cq, 2), 0);
		memset(got, 0xa5, sizeof(got));
		expect(t, kfi_cq_read(cq, got, 3), 2);
		for (i = 0; i < 2; i++) {
			source = entry_of(i + 1);
			want = (struct kfi_cq_tagged_entry) {
				.op_context = source.op_context,
				.flags = source.flags,
				.len = source.len,
				.buf = source.buf,
				.data = source.data,
				.tag = source.tag,
			};
			/* Each format begins as the one before it. */
			entry = (void *)(got + i * sizes[format]);
			expect(t, memcmp(entry, &want, sizes[format]), 0);
		}
		/* Nothing behind them was touched. */
		expect_true(t, !memchr_inv(got + 2 * sizes[format], 0xa5,
					   sizeof(got) - 2 * sizes[format]));
		close_fid(t, &cq->fid);
	}
}

static void cq_counts(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_NONE, NULL, 0, NULL);
	struct kfi_cq_entry got[4];
	unsigned long i;

	if (!cq)
		return;
	expect(t, kfi_cq_read(cq, got, 4), -KFI_EAGAIN);
	for (i = 1; i <= 5; i++)
		expect(t, put_completion(cq, i), 0);
	expect_errno(t, kfi_cq_read(cq, got, 0));
	expect_errno(t, kfi_cq_read(cq, NULL, 1));
	expect(t, kfi_cq_read(cq, got, 2), 2);
	expect(t, (long)got[0].op_context, 1);
	expect(t, (long)got[1].op_context, 2);
	expect(t, kfi_cq_read(cq, got, 1), 1);
	expect(t, (long)got[0].op_context, 3);
	expect(t, kfi_cq_read(cq, got, 4), 2);
	expect(t, (long)got[0].op_context, 4);
	expect(t, (long)got[1].op_context, 5);
	expect(t, kfi_cq_read(cq, got, 4), -KFI_EAGAIN);
	close_fid(t, &cq->fid);
}

static void cq_errors(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 0, NULL);
	struct kfi_cq_err_entry want, got = {};
	struct kfi_cq_entry entries[8];
	char text[8];

	if (!cq)
		return;
	expect(t, kfi_cq_readerr(cq, &got, 0), -KFI_EAGAIN);
	expect(t, put_completion(cq, 1), 0);
	expect(t, put_completion(cq, 2), 0);
	expect(t, put_error(cq, 3), 0);
	expect(t, put_completion(cq, 4), 0);
	expect(t, put_error(cq, 5), 0);
	expect(t, put_error(cq, 6), 0);

	expect(t, kfi_cq_read(cq, entries, 8), 2);
	expect(t, kfi_cq_read(cq, entries, 8), -KFI_EAVAIL);
	expect(t, kfi_cq_sread(cq, entries, 8, NULL, -1), -KFI_EAVAIL);
	expect_errno(t, kfi_cq_readerr(cq, NULL, 0));
	expect_errno(t, kfi_cq_readerr(cq, &got, 1));
	want = entry_of(3);
	want.err = KFI_EMSGSIZE;
	/* The caller's buffer stays where it is, and nothing is put into it. */
	want.err_data = text;
	got.err_data = text;
	got.err_data_size = sizeof(text);
	expect(t, kfi_cq_readerr(cq, &got, 0), 1);
	expect(t, memcmp(&got, &want, sizeof(want)), 0);

	/* An error is told once, and the next one in its turn. */
	expect(t, kfi_cq_readerr(cq, &got, 0), -KFI_EAGAIN);
	expect(t, get_completion(cq), 4);
	expect(t, kfi_cq_read(cq, entries, 8), -KFI_EAVAIL);
	expect(t, kfi_cq_readerr(cq, &got, 0), 1);
	expect(t, (long)got.op_context, 5);
	expect(t, kfi_cq_read(cq, entries, 8), -KFI_EAVAIL);
	expect(t, kfi_cq_readerr(cq, &got, 0), 1);
	expect(t, (long)got.op_context, 6);
	expect(t, kfi_cq_read(cq, entries, 8), -KFI_EAGAIN);
	expect(t, kfi_cq_readerr(cq, &got, 0), -KFI_EAGAIN);

	expect_true(t, kfi_cq_strerror(cq, 1, NULL, NULL, 0));
	memset(text, 'x', sizeof(text));
	expect_true(t, kfi_cq_strerror(cq, 1, NULL, text, 4));
	expect(t, text[3], 0);
	expect(t, text[4], 'x');
	close_fid(t, &cq->fid);
}

static void cq_sources(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 0, NULL);
	kfi_addr_t from[3] = { 7, 7, 7 };
	struct kfi_cq_entry got[3];

	if (!cq)
		return;
	expect(t, kfi_cq_readfrom(cq, got, 3, from), -KFI_EAGAIN);
	expect(t, from[0], 7);
	expect(t, put_completion(cq, 1), 0);
	expect(t, put_completion(cq, 2), 0);
	expect(t, kfi_cq_readfrom(cq, got, 3, from), 2);
	expect_true(t, from[0] == KFI_ADDR_NOTAVAIL);
	expect_true(t, from[1] == KFI_ADDR_NOTAVAIL);
	expect(t, from[2], 7);
	from[0] = 7;
	expect(t, put_completion(cq, 3), 0);
	expect(t, kfi_cq_sreadfrom(cq, got, 3, from, NULL, 0), 1);
	expect_true(t, from[0] == KFI_ADDR_NOTAVAIL);
	expect(t, (long)got[0].op_context, 3);
	close_fid(t, &cq->fid);
}

static void cq_full(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 4, NULL);
	struct kfi_cq_err_entry bad = { .err = -1 };
	unsigned long put = 0, got = 0;
	int round, ret;

	if (!cq)
		return;
	expect(t, cq_ops->write(&cq->fid, NULL), -KFI_EINVAL);
	expect(t, cq_ops->write(&cq->fid, &bad), -KFI_EINVAL);
	for (round = 0; round < 5; round++) {
		do {
			ret = put_completion(cq, put + 1);
			put += !ret;
		} while (!ret && put - got <= 1024);
		expect(t, ret, -KFI_ENOSPC);
		expect_true(t, put - got >= 4);
		expect(t, put_error(cq, 1), -KFI_ENOSPC);
		expect(t, get_completion(cq), ++got);
		expect(t, get_completion(cq), ++got);
		expect(t, put_completion(cq, put + 1), 0);
		put++;
	}
	while (got < put && expect(t, get_completion(cq), got + 1))
		got++;
	expect(t, get_completion(cq), -KFI_EAGAIN);
	close_fid(t, &cq->fid);
}

static void cq_sread_at_once(struct test *t)
{
	static const int timeouts[] = { 0, 1, SOON, -1, INT_MIN, INT_MAX };
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_QUEUE, NULL, 0, NULL);
	struct kfi_cq_entry entry;
	unsigned int i;
	ktime_t start;
	s64 us;

	if (!cq)
		return;
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		expect(t, put_completion(cq, i + 1), 0);
		expect(t, kfi_cq_sread(cq, &entry, 1, NULL, timeouts[i]), 1);
		expect(t, (long)entry.op_context, i + 1);
	}
	expect(t, kfi_cq_sread(cq, &entry, 1, NULL, 0), -KFI_ETIMEDOUT);
	start = ktime_get();
	expect(t, kfi_cq_sread(cq, &entry, 1, NULL, 30), -KFI_ETIMEDOUT);
	us = ktime_us_delta(ktime_get(), start);
	expect_true(t, us >= 30 * 1000);
	expect_true(t, us < (30 + SOON) * 1000);
	close_fid(t, &cq->fid);
}

static void cq_sread_woken(struct test *t)
{
	static const int timeouts[] = { SOON, -1 };
	struct kfi_cq_err_entry error = {};
	struct reader reader, second;
	struct kfid_cq *cq;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		cq = open_cq(t, i ? KFI_WAIT_QUEUE : KFI_WAIT_UNSPEC, NULL, 0, NULL);
		if (!cq)
			return;
		if (start_cq_reader(t, &reader, cq, timeouts[i])) {
			expect_true(t, job_is_waiting(&reader.job));
			expect(t, put_completion(cq, 1), 0);
			expect(t, job_finish(&reader.job), 1);
		}
		if (start_cq_reader(t, &reader, cq, timeouts[i])) {
			job_settle(&reader.job);
			expect(t, run_in_hardirq(t, put_completion_job, cq), 0);
			expect(t, job_finish(&reader.job), 1);
		}
		if (start_cq_reader(t, &reader, cq, timeouts[i])) {
			job_settle(&reader.job);
			expect(t, put_error(cq, 1), 0);
			expect(t, job_finish(&reader.job), -KFI_EAVAIL);
			expect(t, kfi_cq_readerr(cq, &error, 0), 1);
		}
		/* An entry for each of two. */
		if (start_cq_reader(t, &reader, cq, timeouts[i])) {
			if (start_cq_reader(t, &second, cq, timeouts[i])) {
				expect_true(t, job_is_waiting(&reader.job));
				expect_true(t, job_is_waiting(&second.job));
				expect(t, put_completion(cq, 1), 0);
				expect(t, put_completion(cq, 2), 0);
				expect(t, job_finish(&second.job), 1);
			} else {
				put_completion(cq, 1);
			}
			expect(t, job_finish(&reader.job), 1);
		}
		close_fid(t, &cq->fid);
	}
}

static void cq_signal(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 0, NULL);
	struct reader readers[2];
	unsigned int i, started;

	if (!cq)
		return;
	for (started = 0; started < ARRAY_SIZE(readers); started++) {
		if (!start_cq_reader(t, &readers[started], cq, SOON))
			break;
		expect_true(t, job_is_waiting(&readers[started].job));
	}
	expect(t, kfi_cq_signal(cq), 0);
	for (i = 0; i < started; i++)
		expect(t, job_finish(&readers[i].job), -KFI_EAGAIN);
	/* Not a completion. */
	expect(t, get_completion(cq), -KFI_EAGAIN);
	expect(t, put_completion(cq, 1), 0);
	expect(t, kfi_cq_signal(cq), 0);
	expect(t, get_completion(cq), 1);
	close_fid(t, &cq->fid);
}

static void sread_without_wait_object(struct test *t)
{
	struct kfid_wait *set = open_set(t, KFI_WAIT_UNSPEC);
	struct kfi_eq_entry event_entry;
	struct kfi_cq_entry entry;
	struct kfid_cq *cq;
	struct kfid_eq *eq;
	unsigned int i;
	u32 event;

	if (!set)
		return;
	for (i = 0; i < 2; i++) {
		enum kfi_wait_obj wait_obj = i ? KFI_WAIT_SET : KFI_WAIT_NONE;

		cq = open_cq(t, wait_obj, set, 0, NULL);
		if (cq) {
			expect(t, kfi_cq_sread(cq, &entry, 1, NULL, 0), -KFI_EINVAL);
			expect(t, kfi_cq_sread(cq, &entry, 1, NULL, -1), -KFI_EINVAL);
			expect(t, put_completion(cq, 1), 0);
			expect(t, kfi_cq_sread(cq, &entry, 1, NULL, 1), -KFI_EINVAL);
			expect(t, get_completion(cq), 1);
			close_fid(t, &cq->fid);
		}
		eq = open_eq(t, wait_obj, set, 0);
		if (eq) {
			expect(t, kfi_eq_sread(eq, &event, &event_entry,
					       sizeof(event_entry), -1, 0),
			       -KFI_EINVAL);
			close_fid(t, &eq->fid);
		}
	}
	close_fid(t, &set->kfid);
}

static void queue_wait_objects(struct test *t)
{
	static const struct {
		enum kfi_wait_obj object;
		enum kfi_wait_obj told;
		int result;
	} cases[] = {
		{ KFI_WAIT_NONE, KFI_WAIT_NONE, -KFI_EINVAL },
		{ KFI_WAIT_UNSPEC, KFI_WAIT_QUEUE, -KFI_ENOSYS },
		{ KFI_WAIT_QUEUE, KFI_WAIT_QUEUE, 0 },
	};
	enum kfi_wait_obj told;
	struct kfid_cq *cq;
	struct kfid_eq *eq;
	struct kfid *fids[2];
	unsigned int i, j;
	void *queue;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		cq = open_cq(t, cases[i].object, NULL, 0, NULL);
		if (!cq)
			return;
		eq = open_eq(t, cases[i].object, NULL, 0);
		if (eq) {
			fids[0] = &cq->fid;
			fids[1] = &eq->fid;
			for (j = 0; j < 2; j++) {
				queue = NULL;
				expect(t, kfi_control(fids[j], KFI_GETWAIT, &queue),
				       cases[i].result);
				expect(t, !!queue, !cases[i].result);
				expect(t, kfi_control(fids[j], KFI_GETWAIT, NULL),
				       -KFI_EINVAL);
				expect(t, kfi_control(fids[j], KFI_GETWAITOBJ, &told), 0);
				expect(t, told, cases[i].told);
				expect(t, kfi_control(fids[j], 9999, &queue),
				       -KFI_ENOSYS);
			}
			close_fid(t, &eq->fid);
		}
		close_fid(t, &cq->fid);
	}
}

#define SHARED_ENTRIES 8192

struct shared {
	struct kfid_cq *cq;
	unsigned long *seen;
	atomic_t taken;
	atomic_t twice;
};

static long shared_reader(void *arg)
{
	struct shared *shared = arg;
	ktime_t end = ktime_add_ms(ktime_get(), 4 * SOON);
	struct kfi_cq_entry got[3];
	ssize_t ret;
	int i;

	while (atomic_read(&shared->taken) < SHARED_ENTRIES) {
		/* Short: it may be the other one who gets the last entries. */
		ret = kfi_cq_sread(shared->cq, got, ARRAY_SIZE(got), NULL, 20);
		if (ret == -KFI_ETIMEDOUT && ktime_before(ktime_get(), end))
			continue;
		if (ret < 0)
			return ret;
		for (i = 0; i < ret; i++) {
			if (test_and_set_bit((long)got[i].op_context, shared->seen))
				atomic_inc(&shared->twice);
		}
		atomic_add(ret, &shared->taken);
	}
	return 0;
}

static void cq_shared(struct test *t)
{
	struct shared shared = {};
	struct job jobs[2];
	unsigned int started, j, cpu = 0;
	ktime_t end = ktime_add_ms(ktime_get(), 4 * SOON);
	unsigned long i;
	int ret;

	shared.seen = bitmap_zalloc(SHARED_ENTRIES, GFP_KERNEL);
	if (!expect_true(t, shared.seen))
		return;
	shared.cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 32, NULL);
	if (!shared.cq)
		goto free;
	for (started = 0; started < ARRAY_SIZE(jobs); started++) {
		cpu = other_cpu(cpu);
		if (!job_start(t, &jobs[started], shared_reader, &shared, cpu))
			break;
	}
	for (i = 0; i < SHARED_ENTRIES && started; ) {
		ret = put_completion(shared.cq, i);
		if (!ret) {
			i++;
		} else if (ret != -KFI_ENOSPC) {
			expect(t, ret, 0);
			break;
		} else if (ktime_before(ktime_get(), end)) {
			usleep_range(20, 50);
		} else {
			break;
		}
	}
	for (j = 0; j < started; j++)
		expect(t, job_finish(&jobs[j]), 0);
	expect(t, atomic_read(&shared.taken), SHARED_ENTRIES);
	expect(t, atomic_read(&shared.twice), 0);
	expect_true(t, bitmap_full(shared.seen, SHARED_ENTRIES));
	close_fid(t, &shared.cq->fid);
free:
	bitmap_free(shared.seen);
}

static void cq_close_with_reader(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 0, NULL);
	struct reader reader;

	if (!cq)
		return;
	if (start_cq_reader(t, &reader, cq, SOON)) {
		expect_true(t, job_is_waiting(&reader.job));
		expect(t, kfi_close(&cq->fid), -KFI_EBUSY);
		expect_true(t, job_is_waiting(&reader.job));
		expect(t, put_completion(cq, 1), 0);
		expect(t, job_finish(&reader.job), 1);
	}
	expect(t, put_completion(cq, 1), 0);
	/* What lies in it is dropped. */
	close_fid(t, &cq->fid);
}

/* Closes the queue the moment its entry came, while the writer is still in it. */
static long read_and_close(void *cq)
{
	struct kfi_cq_entry entry;
	ssize_t ret = kfi_cq_sread(cq, &entry, 1, NULL, SOON);

	if (ret != 1)
		return ret;
	return kfi_close(&((struct kfid_cq *)cq)->fid);
}

static void cq_close_after_sread(struct test *t)
{
	unsigned int cpu = 0;
	struct kfid_cq *cq;
	struct job job;
	int i;

	for (i = 0; i < 32 && !t->failed; i++) {
		cpu = other_cpu(cpu);
		cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 0, NULL);
		if (!cq)
			return;
		if (!job_start(t, &job, read_and_close, cq, cpu)) {
			close_fid(t, &cq->fid);
			return;
		}
		if (i % 4)
			job_settle(&job);
		expect(t, put_completion(cq, 1), 0);
		expect(t, job_finish(&job), 0);
	}
}

/*
 * A thread that writes is preempted right after its entry can be seen, and the
 * queue is closed before it goes on. Writer and reader share a CPU, so that
 * the reader knows where the writer is.
 */
struct preempted {
	struct kfid_cq *cq;
	/* The writer is in a write. */
	bool writing;
	/* The reader has the entry of that write. */
	bool taken;
	bool closed;
	bool done;
	struct completion kick;
};

static long preempted_writer(void *arg)
{
	struct preempted *p = arg;
	int i, ret;

	for (i = 0; i < 4000; i++) {
		WRITE_ONCE(p->writing, true);
		ret = put_completion(p->cq, 1);
		WRITE_ONCE(p->writing, false);
		if (ret || READ_ONCE(p->taken))
			return ret;
		if (get_completion(p->cq) != 1)
			return -KFI_EIO;
	}
	return 0;
}

static long preempting_reader(void *arg)
{
	struct preempted *p = arg;
	ktime_t end;

	sched_set_fifo(current);
	while (!READ_ONCE(p->done)) {
		wait_for_completion(&p->kick);
		reinit_completion(&p->kick);
		if (!READ_ONCE(p->writing) || get_completion(p->cq) != 1)
			continue;
		WRITE_ONCE(p->taken, true);
		/* Keeps the writer there for a while; close may wait for it. */
		end = ktime_add_ms(ktime_get(), 200);
		while (!READ_ONCE(p->closed) && ktime_before(ktime_get(), end))
			cpu_relax();
		return 1;
	}
	return 0;
}

static void cq_close_under_writer(struct test *t)
{
	unsigned int cpu = cpumask_last(cpu_online_mask);
	struct job reader, writer;
	struct preempted p;
	unsigned int round, i;

	for (round = 0; round < 3 && !t->failed; round++) {
		p = (struct preempted) {};
		init_completion(&p.kick);
		p.cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 1, NULL);
		if (!p.cq)
			return;
		if (!job_start(t, &reader, preempting_reader, &p, cpu))
			goto close;
		if (!job_start(t, &writer, preempted_writer, &p, cpu)) {
			WRITE_ONCE(p.done, true);
			complete(&p.kick);
			job_finish(&reader);
			goto close;
		}
		for (i = 0; !completion_done(&writer.done) && !READ_ONCE(p.taken); i++) {
			udelay(i * 7 % 60);
			complete(&p.kick);
		}
		if (READ_ONCE(p.taken)) {
			close_fid(t, &p.cq->fid);
			p.cq = NULL;
			WRITE_ONCE(p.closed, true);
		}
		expect(t, job_finish(&writer), 0);
		WRITE_ONCE(p.done, true);
		complete(&p.kick);
		job_finish(&reader);
close:
		if (p.cq)
			close_fid(t, &p.cq->fid);
	}
}

/* Event queues */

static void expect_eq_open(struct test *t, struct kfi_eq_attr attr, int result)
{
	struct kfid_eq *eq = NULL;
	int ret = kfi_eq_open(t->fabric, &attr, &eq, NULL, NULL);

	expect(t, ret, result);
	expect(t, !!eq, !result);
	if (!ret)
		close_fid(t, &eq->fid);
}

static void eq_attributes(struct test *t)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_wait_attr wait_attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfid_wait *foreign = NULL;
	struct kfid_eq *eq = NULL;
	struct test others;

	if (!open_others(t, &others))
		return;
	expect_eq_open(t, attr, 0);
	attr.flags = KFI_WRITE;
	expect_eq_open(t, attr, 0);
	attr.flags = 1;
	expect_eq_open(t, attr, -KFI_EINVAL);
	attr.flags = 0;
	attr.wait_set = (struct kfid_wait *)1;
	attr.wait_obj = KFI_WAIT_NONE;
	expect_eq_open(t, attr, 0);
	attr.wait_obj = KFI_WAIT_QUEUE;
	expect_eq_open(t, attr, 0);
	attr.wait_obj = (enum kfi_wait_obj)(KFI_WAIT_QUEUE + 1);
	expect_eq_open(t, attr, -KFI_EINVAL);
	attr.wait_obj = KFI_WAIT_SET;
	attr.wait_set = NULL;
	expect_eq_open(t, attr, -KFI_EINVAL);
	attr.wait_set = (struct kfid_wait *)t->domain;
	expect_eq_open(t, attr, -KFI_EINVAL);
	if (expect(t, kfi_wait_open(others.fabric, &wait_attr, &foreign), 0)) {
		attr.wait_set = foreign;
		expect_eq_open(t, attr, -KFI_EINVAL);
		close_fid(t, &foreign->kfid);
	}
	attr.wait_obj = KFI_WAIT_UNSPEC;
	attr.size = SIZE_MAX;
	expect_eq_open(t, attr, -KFI_EINVAL);
	attr.size = 1;
	expect_eq_open(t, attr, 0);
	if (expect(t, kfi_eq_open(t->fabric, NULL, &eq, NULL, NULL), 0))
		close_fid(t, &eq->fid);
	close_others(t, &others);
}

static void eq_read_write(struct test *t)
{
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_NONE, NULL, 0);
	struct kfi_eq_entry got;
	u32 event = 99;
	u8 byte = 1;

	if (!eq)
		return;
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), -KFI_EAGAIN);
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), KFI_PEEK), -KFI_EAGAIN);
	expect(t, event, 99);
	expect(t, put_event(eq, KFI_NOTIFY), 0);
	expect(t, put_event(eq, KFI_AV_COMPLETE), 0);
	expect(t, kfi_eq_write(eq, KFI_SHUTDOWN, &byte, 1, 0), 1);

	memset(&got, 0, sizeof(got));
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), KFI_PEEK), sizeof(got));
	expect(t, event, KFI_NOTIFY);
	expect(t, got.data, KFI_NOTIFY + (1ULL << 40));
	memset(&got, 0, sizeof(got));
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	expect(t, event, KFI_NOTIFY);
	expect(t, got.data, KFI_NOTIFY + (1ULL << 40));

	/* Too small, wrong flags, nowhere to put it: it stays. */
	memset(&got, 0xa5, sizeof(got));
	event = 99;
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got) - 1, 0), -KFI_ETOOSMALL);
	expect(t, kfi_eq_read(eq, &event, NULL, 0, 0), -KFI_ETOOSMALL);
	expect(t, event, 99);
	expect_true(t, !memchr_inv(&got, 0xa5, sizeof(got)));
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 1), -KFI_EINVAL);
	expect_errno(t, kfi_eq_read(eq, NULL, &got, sizeof(got), 0));
	expect_errno(t, kfi_eq_read(eq, &event, NULL, sizeof(got), 0));
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	expect(t, event, KFI_AV_COMPLETE);
	expect(t, (long)got.context, KFI_AV_COMPLETE);

	memset(&got, 0xa5, sizeof(got));
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), 1);
	expect(t, event, KFI_SHUTDOWN);
	expect(t, *(u8 *)&got, 1);
	expect_true(t, !memchr_inv((u8 *)&got + 1, 0xa5, sizeof(got) - 1));
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), -KFI_EAGAIN);
	close_fid(t, &eq->fid);
}

static void eq_write_limits(struct test *t)
{
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_UNSPEC, NULL, 4);
	struct kfi_eq_entry got;
	int ret, put = 0, taken = 0, round;
	char *large;
	u32 event;

	if (!eq)
		return;
	large = kzalloc(PAGE_SIZE, GFP_KERNEL);
	if (expect_true(t, large))
		expect(t, kfi_eq_write(eq, KFI_NOTIFY, large, PAGE_SIZE, 0), -KFI_EINVAL);
	kfree(large);
	expect(t, kfi_eq_write(eq, KFI_NOTIFY, &got, sizeof(got), 1), -KFI_EINVAL);
	expect(t, kfi_eq_write(eq, KFI_NOTIFY, NULL, sizeof(got), 0), -KFI_EINVAL);
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), -KFI_EAGAIN);

	for (round = 0; round < 3; round++) {
		do {
			ret = put_event(eq, put);
			put += !ret;
		} while (!ret && put - taken <= 1024);
		expect(t, ret, -KFI_EAGAIN);
		expect_true(t, put - taken >= 4);
		expect(t, put_event_error(eq, 1), -KFI_EAGAIN);
		expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
		expect(t, event, taken++);
		expect(t, put_event(eq, put), 0);
		put++;
	}
	while (taken < put) {
		ret = kfi_eq_read(eq, &event, &got, sizeof(got), 0);
		if (!expect(t, ret, sizeof(got)) || !expect(t, event, taken++))
			break;
	}
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), -KFI_EAGAIN);
	close_fid(t, &eq->fid);
}

static void eq_errors(struct test *t)
{
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_UNSPEC, NULL, 0);
	struct kfi_eq_err_entry error = {}, bad = {};
	struct kfi_eq_entry got;
	char data[8];
	u32 event;

	if (!eq)
		return;
	expect(t, eq_ops->write_error(&eq->fid, NULL), -KFI_EINVAL);
	expect(t, eq_ops->write_error(&eq->fid, &bad), -KFI_EINVAL);
	expect(t, kfi_eq_readerr(eq, &error, 0), -KFI_EAGAIN);
	expect(t, put_event(eq, KFI_NOTIFY), 0);
	expect(t, put_event_error(eq, 3), 0);
	expect(t, put_event(eq, KFI_SHUTDOWN), 0);
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), -KFI_EAVAIL);
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), KFI_PEEK), -KFI_EAVAIL);
	expect(t, kfi_eq_sread(eq, &event, &got, sizeof(got), -1, 0), -KFI_EAVAIL);
	expect_errno(t, kfi_eq_readerr(eq, NULL, 0));
	expect(t, kfi_eq_readerr(eq, &error, 1), -KFI_EINVAL);
	error.err_data = data;
	error.err_data_size = sizeof(data);
	expect(t, kfi_eq_readerr(eq, &error, 0), sizeof(error));
	/* The caller's buffer stays where it is, and nothing is put into it. */
	expect_true(t, error.err_data == data);
	expect(t, error.err_data_size, 0);
	expect(t, (long)error.fid, 3 + 0x10000);
	expect(t, (long)error.context, 3);
	expect(t, error.data, 3 + (1ULL << 40));
	expect(t, error.err, KFI_ENODEV);
	expect(t, error.prov_errno, 3 + 0x70000);
	expect(t, kfi_eq_readerr(eq, &error, 0), -KFI_EAGAIN);
	expect(t, kfi_eq_read(eq, &event, &got, sizeof(got), 0), sizeof(got));
	expect(t, event, KFI_SHUTDOWN);
	expect_true(t, kfi_eq_strerror(eq, 1, NULL, NULL, 0));
	close_fid(t, &eq->fid);
}

static void eq_error_peek(struct test *t)
{
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_UNSPEC, NULL, 0);
	struct kfi_eq_err_entry error = {};

	if (!eq)
		return;
	expect(t, kfi_eq_readerr(eq, &error, KFI_PEEK), -KFI_EAGAIN);
	expect(t, put_event_error(eq, 3), 0);
	expect(t, kfi_eq_readerr(eq, &error, KFI_PEEK), sizeof(error));
	expect(t, (long)error.context, 3);
	expect(t, kfi_eq_readerr(eq, &error, 0), sizeof(error));
	expect(t, kfi_eq_readerr(eq, &error, 0), -KFI_EAGAIN);
	close_fid(t, &eq->fid);
}

static void eq_sread(struct test *t)
{
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_UNSPEC, NULL, 0);
	struct kfi_eq_err_entry error;
	struct kfi_eq_entry got;
	struct reader reader;
	ktime_t start;
	u32 event;

	if (!eq)
		return;
	expect(t, kfi_eq_sread(eq, &event, &got, sizeof(got), 0, 0), -KFI_ETIMEDOUT);
	start = ktime_get();
	expect(t, kfi_eq_sread(eq, &event, &got, sizeof(got), 30, 0), -KFI_ETIMEDOUT);
	expect_true(t, ktime_us_delta(ktime_get(), start) >= 30 * 1000);
	expect(t, put_event(eq, KFI_SHUTDOWN), 0);
	expect(t, kfi_eq_sread(eq, &event, &got, 1, -1, 0), -KFI_ETOOSMALL);
	expect(t, kfi_eq_sread(eq, &event, &got, sizeof(got), -1, KFI_PEEK), sizeof(got));
	expect(t, kfi_eq_sread(eq, &event, &got, sizeof(got), 0, 0), sizeof(got));
	expect(t, event, KFI_SHUTDOWN);

	if (start_eq_reader(t, &reader, eq, -1)) {
		expect_true(t, job_is_waiting(&reader.job));
		expect(t, kfi_close(&eq->fid), -KFI_EBUSY);
		expect(t, put_event(eq, KFI_NOTIFY), 0);
		expect(t, job_finish(&reader.job), sizeof(got));
	}
	if (start_eq_reader(t, &reader, eq, SOON)) {
		job_settle(&reader.job);
		expect(t, run_in_hardirq(t, put_event_job, eq), 0);
		expect(t, job_finish(&reader.job), sizeof(got));
	}
	if (start_eq_reader(t, &reader, eq, SOON)) {
		job_settle(&reader.job);
		expect(t, put_event_error(eq, 1), 0);
		expect(t, job_finish(&reader.job), -KFI_EAVAIL);
		expect(t, kfi_eq_readerr(eq, &error, 0), sizeof(error));
	}
	close_fid(t, &eq->fid);
}

static void queue_dependents(struct test *t)
{
	struct test others;
	struct kfid_eq *eq;
	struct kfid_cq *cq;

	if (!open_others(t, &others))
		return;
	cq = open_cq(&others, KFI_WAIT_UNSPEC, NULL, 0, NULL);
	eq = open_eq(&others, KFI_WAIT_UNSPEC, NULL, 0);
	if (cq) {
		expect(t, kfi_close(&others.domain->fid), -KFI_EBUSY);
		expect(t, put_completion(cq, 1), 0);
		close_fid(t, &cq->fid);
	}
	/* An event queue depends on the fabric, not on the domain. */
	close_fid(t, &others.domain->fid);
	if (eq) {
		expect(t, kfi_close(&others.fabric->fid), -KFI_EBUSY);
		expect(t, put_event(eq, KFI_NOTIFY), 0);
		close_fid(t, &eq->fid);
	}
	close_fid(t, &others.fabric->fid);
	t->failed |= others.failed;
}

const struct test_case queue_tests[] = {
	{ "cq/attributes", "R-CNTR-10 R-CNTR-13 R-CNTR-14", cq_attributes },
	{ "cq/attributes-written-back", "", cq_attributes_written_back },
	{ "cq/formats", "", cq_formats },
	{ "cq/counts", "", cq_counts },
	{ "cq/errors-in-order", "", cq_errors },
	{ "cq/sources", "", cq_sources },
	{ "cq/full", "", cq_full },
	{ "cq/sread-at-once-and-timeout", "", cq_sread_at_once },
	{ "cq/sread-woken", "", cq_sread_woken },
	{ "cq/signal", "", cq_signal },
	{ "cq/sread-without-wait-object", "R-CNTR-11", sread_without_wait_object },
	{ "ctl/case-52-wait-objects-of-queues", "R-CTL-7 R-CTL-8 R-CTL-9", queue_wait_objects },
	{ "cq/shared-by-readers", "", cq_shared },
	{ "close/case-71-cq-with-reader", "R-CLOSE-2", cq_close_with_reader },
	{ "close/case-72-cq-after-sread", "R-CLOSE-3", cq_close_after_sread },
	{ "close/case-72-cq-under-writer", "R-CLOSE-3", cq_close_under_writer },
	{ "eq/attributes", "R-CNTR-10 R-CNTR-13 R-CNTR-14", eq_attributes },
	{ "eq/read-write-peek", "", eq_read_write },
	{ "eq/write-limits", "", eq_write_limits },
	{ "eq/errors", "", eq_errors },
	{ "eq/errors-peek", "", eq_error_peek },
	{ "eq/sread", "R-CLOSE-2", eq_sread },
	{ "close/case-71-queues-hold-their-parents", "R-CLOSE-1", queue_dependents },
	{}
};
