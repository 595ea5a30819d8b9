// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues, and what both kinds of queues do to their parents.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "consumer.h"

static long put_event_job(void *eq)
{
	return put_event(eq, KFI_NOTIFY);
}

struct reader {
	struct kfid_eq *eq;
	int timeout;
	struct job job;
};

static long eq_reader(void *arg)
{
	struct reader *r = arg;
	struct kfi_eq_entry entry;
	u32 event;

	return kfi_eq_sread(r->eq, &event, &entry, sizeof(entry), r->timeout, 0);
}

static bool start_eq_reader(struct test *t, struct reader *r,
			    struct kfid_eq *eq, int timeout)
{
	r->eq = eq;
	r->timeout = timeout;
	return job_start(t, &r->job, eq_reader, r, ANY_CPU);
}

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
	const char *constant;
	char data[8], text[64];
	u32 event;

	if (!eq)
		return;
	expect(t, put_eq_entry(eq, NULL), -KFI_EINVAL);
	expect(t, put_eq_entry(eq, &bad), -KFI_EINVAL);
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
	constant = kfi_eq_strerror(eq, 1, NULL, NULL, 0);
	expect_true(t, constant && strlen(constant) < sizeof(text));
	expect_true(t, kfi_eq_strerror(eq, 1, NULL, text, 0) == constant);
	expect_true(t, kfi_eq_strerror(eq, 1, NULL, text, sizeof(text)) == text);
	expect(t, strcmp(text, constant), 0);
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

const struct test_case eq_tests[] = {
	{ "eq/attributes", "R-CNTR-10 R-CNTR-13 R-CNTR-14", eq_attributes },
	{ "eq/read-write-peek", "", eq_read_write },
	{ "eq/write-limits", "", eq_write_limits },
	{ "eq/errors", "", eq_errors },
	{ "eq/errors-peek", "", eq_error_peek },
	{ "eq/sread", "R-CLOSE-2", eq_sread },
	{ "close/case-71-queues-hold-their-parents", "R-CLOSE-1", queue_dependents },
	{}
};
