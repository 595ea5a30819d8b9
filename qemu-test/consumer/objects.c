// SPDX-License-Identifier: GPL-2.0
/*
 * The objects that most tests need.
 */

#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_soft_ext.h>

#include "objects.h"

/* The answer of the provider under test, or NULL. To be freed by the caller. */
struct kfi_info *get_provider_info(struct test *t)
{
	struct kfi_info *hints, *info = NULL;
	int ret = -ENOMEM;

	hints = kfi_allocinfo();
	if (hints) {
		/* The string becomes part of the hints and is freed with them. */
		hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
		if (hints->fabric_attr->prov_name)
			ret = kfi_getinfo(KFI_VERSION(KFI_MAJOR_VERSION,
						      KFI_MINOR_VERSION),
					  NULL, NULL, 0, hints, &info);
	}
	kfi_freeinfo(hints);
	return expect(t, ret, 0) && expect_true(t, info) ? info : NULL;
}

/* Opens a fabric of the provider under test. */
bool open_fabric(struct test *t)
{
	t->info = get_provider_info(t);
	return t->info &&
	       expect(t, kfi_fabric(t->info->fabric_attr, &t->fabric, NULL), 0);
}

/* Opens a domain of the first of its NICs. */
bool open_domain(struct test *t)
{
	return expect(t, kfi_domain(t->fabric, t->info, &t->domain, NULL), 0);
}

/* Fails if something has been left open. */
void close_all(struct test *t)
{
	if (t->domain)
		close_fid(t, &t->domain->fid);
	if (t->fabric)
		close_fid(t, &t->fabric->fid);
	kfi_freeinfo(t->info);
	t->domain = NULL;
	t->fabric = NULL;
	t->info = NULL;
}

struct kfid_cntr *open_cntr(struct test *t, enum kfi_wait_obj wait_obj)
{
	struct kfi_cntr_attr attr = {
		.events = KFI_CNTR_EVENTS_COMP,
		.wait_obj = wait_obj,
	};
	struct kfid_cntr *cntr = NULL;

	if (!expect(t, kfi_cntr_open(t->domain, &attr, &cntr, NULL), 0))
		return NULL;
	return expect_true(t, cntr) ? cntr : NULL;
}

void close_fid(struct test *t, struct kfid *fid)
{
	expect(t, kfi_close(fid), 0);
}

struct kfid_wait *open_set(struct test *t, enum kfi_wait_obj wait_obj)
{
	struct kfi_wait_attr attr = { .wait_obj = wait_obj };
	struct kfid_wait *set = NULL;

	if (!expect(t, kfi_wait_open(t->fabric, &attr, &set), 0))
		return NULL;
	return expect_true(t, set) ? set : NULL;
}

/* A counter that is a member of a wait set. */
struct kfid_cntr *open_cntr_in(struct test *t, struct kfid_wait *set)
{
	struct kfi_cntr_attr attr = {
		.events = KFI_CNTR_EVENTS_COMP,
		.wait_obj = KFI_WAIT_SET,
		.wait_set = set,
	};
	struct kfid_cntr *cntr = NULL;

	if (!expect(t, kfi_cntr_open(t->domain, &attr, &cntr, NULL), 0))
		return NULL;
	return expect_true(t, cntr) ? cntr : NULL;
}

/* One table each for all queues. */
static struct kfi_soft_cq_ops *cq_ops;
static struct kfi_soft_eq_ops *eq_ops;

struct kfid_cq *open_cq_attr(struct test *t, struct kfi_cq_attr *attr,
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

/* The completion of this number; every member is different. */
struct kfi_cq_err_entry entry_of(unsigned long number)
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

/* Any entry, or none. From any context. */
int put_entry(struct kfid_cq *cq, const struct kfi_cq_err_entry *entry)
{
	return cq_ops->write(&cq->fid, entry);
}

int put_completion(struct kfid_cq *cq, unsigned long number)
{
	struct kfi_cq_err_entry entry = entry_of(number);

	return put_entry(cq, &entry);
}

int put_error(struct kfid_cq *cq, unsigned long number)
{
	struct kfi_cq_err_entry entry = entry_of(number);

	entry.err = KFI_EMSGSIZE;
	return put_entry(cq, &entry);
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

/* Any error, or none. */
int put_eq_entry(struct kfid_eq *eq, const struct kfi_eq_err_entry *entry)
{
	return eq_ops->write_error(&eq->fid, entry);
}

int put_event_error(struct kfid_eq *eq, unsigned long number)
{
	struct kfi_eq_err_entry entry = {
		.fid = (struct kfid *)(number + 0x10000),
		.context = (void *)number,
		.data = number + (1ULL << 40),
		.err = KFI_ENODEV,
		.prov_errno = number + 0x70000,
	};

	return put_eq_entry(eq, &entry);
}
