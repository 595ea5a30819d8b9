// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues, filled by the provider's test functions.
 */
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "consumer.h"

static long put_completion_job(void *cq)
{
	return put_completion(cq, 1);
}

struct reader {
	struct kfid_cq *cq;
	int timeout;
	struct job job;
};

static long cq_reader(void *arg)
{
	struct reader *r = arg;
	struct kfi_cq_entry entry = {};

	return kfi_cq_sread(r->cq, &entry, 1, NULL, r->timeout);
}

static bool start_cq_reader(struct test *t, struct reader *r,
			    struct kfid_cq *cq, int timeout)
{
	r->cq = cq;
	r->timeout = timeout;
	return job_start(t, &r->job, cq_reader, r, ANY_CPU);
}

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

/* Looks whether there is something to read, in all ways. */
static void look(struct test *t, struct kfid_cq *cq, ssize_t want)
{
	struct kfi_cq_entry got = { (void *)77 };
	kfi_addr_t from = 77;

	expect(t, kfi_cq_read(cq, NULL, 0), want);
	expect(t, kfi_cq_read(cq, &got, 0), want);
	expect(t, kfi_cq_readfrom(cq, NULL, 0, NULL), want);
	expect(t, kfi_cq_readfrom(cq, &got, 0, &from), want);
	expect_true(t, got.op_context == (void *)77 && from == 77);
	/* Nobody waits for nothing. */
	expect(t, kfi_cq_sread(cq, NULL, 0, NULL, -1), -KFI_EINVAL);
	expect(t, kfi_cq_sreadfrom(cq, &got, 0, &from, NULL, -1), -KFI_EINVAL);
	/* Entries need a place. */
	expect(t, kfi_cq_read(cq, NULL, 1), -KFI_EINVAL);
	expect(t, kfi_cq_readfrom(cq, NULL, 1, &from), -KFI_EINVAL);
	expect(t, kfi_cq_sread(cq, NULL, 1, NULL, -1), -KFI_EINVAL);
}

static void cq_counts(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 0, NULL);
	struct kfi_cq_err_entry error = {};
	struct kfi_cq_entry got[4];
	unsigned long i;

	if (!cq)
		return;
	expect(t, kfi_cq_read(cq, got, 4), -KFI_EAGAIN);
	look(t, cq, -KFI_EAGAIN);
	for (i = 1; i <= 5; i++)
		expect(t, put_completion(cq, i), 0);
	look(t, cq, 0);
	expect(t, kfi_cq_read(cq, got, 2), 2);
	expect(t, (long)got[0].op_context, 1);
	expect(t, (long)got[1].op_context, 2);
	expect(t, kfi_cq_read(cq, got, 1), 1);
	expect(t, (long)got[0].op_context, 3);
	look(t, cq, 0);
	expect(t, put_error(cq, 6), 0);
	look(t, cq, 0);
	expect(t, kfi_cq_read(cq, got, 4), 2);
	expect(t, (long)got[0].op_context, 4);
	expect(t, (long)got[1].op_context, 5);
	look(t, cq, -KFI_EAVAIL);
	expect(t, kfi_cq_readerr(cq, &error, 0), 1);
	expect(t, (long)error.op_context, 6);
	look(t, cq, -KFI_EAGAIN);
	expect(t, kfi_cq_read(cq, got, 4), -KFI_EAGAIN);
	close_fid(t, &cq->fid);
}

static void cq_errors(struct test *t)
{
	struct kfid_cq *cq = open_cq(t, KFI_WAIT_UNSPEC, NULL, 0, NULL);
	struct kfi_cq_err_entry want, got = {};
	struct kfi_cq_entry entries[8];
	const char *constant;
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

	constant = kfi_cq_strerror(cq, 1, NULL, NULL, 0);
	expect_true(t, constant && strlen(constant) >= 4);
	expect_true(t, kfi_cq_strerror(cq, 1, NULL, NULL, 4) == constant);
	memset(text, 'x', sizeof(text));
	expect_true(t, kfi_cq_strerror(cq, 1, NULL, text, 0) == constant);
	expect(t, text[0], 'x');
	expect_true(t, kfi_cq_strerror(cq, 1, NULL, text, 4) == text);
	expect(t, memcmp(text, constant, 3), 0);
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
	expect(t, put_entry(cq, NULL), -KFI_EINVAL);
	expect(t, put_entry(cq, &bad), -KFI_EINVAL);
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
	/* The entry in it is dropped. */
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
	unsigned int round, i, closed = 0;

	/* More rounds where the reader seldom comes at the right time, if it does at all. */
	for (round = 0; round < 30 && closed < 3 && !t->failed; round++) {
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
			closed++;
		}
		expect(t, job_finish(&writer), 0);
		WRITE_ONCE(p.done, true);
		complete(&p.kick);
		job_finish(&reader);
close:
		if (p.cq)
			close_fid(t, &p.cq->fid);
	}
	if (!closed && !t->failed)
		t->skipped = "no writer was preempted in a write";
}

const struct test_case cq_tests[] = {
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
	{}
};
