// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints, memory, completions.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "transfer.h"

bool network;
struct kfi_info *nic_info[2];
struct kfid_domain *nic_domain[2];

static const u64 counter_flags[COUNTERS] = {
	[COUNT_SEND] = KFI_SEND,
	[COUNT_RECV] = KFI_RECV,
	[COUNT_READ] = KFI_READ,
	[COUNT_WRITE] = KFI_WRITE,
	[COUNT_REMOTE_READ] = KFI_REMOTE_READ,
	[COUNT_REMOTE_WRITE] = KFI_REMOTE_WRITE,
};

/* Opens a domain on each of the first two NICs. */
bool nics_open(struct test *t)
{
	struct kfi_info *info = t->info;
	unsigned int i;

	for (i = 0; i < 2; i++, info = info->next) {
		if (!expect_true(t, info))
			return false;
		nic_info[i] = info;
		if (!expect(t, kfi_domain(t->fabric, info, &nic_domain[i], NULL), 0))
			return false;
	}
	t->domain = nic_domain[0];
	return true;
}

void nics_close(struct test *t)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (nic_domain[i])
			close_fid(t, &nic_domain[i]->fid);
		nic_domain[i] = NULL;
	}
	t->domain = NULL;
}

static struct kfid_cq *cq_open_with(struct test *t, struct kfid_domain *domain,
				    size_t size, kfi_comp_handler handler,
				    void *context)
{
	struct kfi_cq_attr attr = {
		.size = size,
		.format = KFI_CQ_FORMAT_TAGGED,
		.wait_obj = KFI_WAIT_UNSPEC,
	};
	struct kfid_cq *cq = NULL;

	expect(t, kfi_cq_open(domain, &attr, &cq, handler, context), 0);
	return cq;
}

struct kfid_cq *cq_open(struct test *t, struct kfid_domain *domain, size_t size)
{
	return cq_open_with(t, domain, size, NULL, NULL);
}

/* A description of an endpoint on a NIC. To be freed by the caller. */
static struct kfi_info *describe(struct test *t, unsigned int nic,
				 const struct setup *setup)
{
	struct kfi_info *info = kfi_dupinfo(nic_info[nic]);

	if (!expect_true(t, info))
		return NULL;
	if (setup->tx_size)
		info->tx_attr->size = setup->tx_size;
	if (setup->rx_size)
		info->rx_attr->size = setup->rx_size;
	info->tx_attr->op_flags = setup->tx_flags;
	info->rx_attr->op_flags = setup->rx_flags;
	if (setup->caps) {
		info->caps = setup->caps;
		info->tx_attr->caps = 0;
		info->rx_attr->caps = 0;
	}
	if (setup->key) {
		info->ep_attr->auth_key = kstrdup(setup->key, GFP_KERNEL);
		info->ep_attr->auth_key_size = strlen(setup->key);
	}
	if (setup->name) {
		kfree(info->src_addr);
		info->src_addr = kmemdup(setup->name, 8, GFP_KERNEL);
		info->src_addrlen = 8;
	}
	return info;
}

static bool end_bind(struct test *t, struct end *e, const struct setup *setup)
{
	unsigned int i;

	if (!expect(t, kfi_ep_bind(e->ep, &e->av->fid, 0), 0) ||
	    !expect(t, kfi_ep_bind(e->ep, &e->tx_cq->fid, KFI_TRANSMIT | setup->tx_bind), 0))
		return false;
	if (!setup->no_rx_cq &&
	    !expect(t, kfi_ep_bind(e->ep, &e->rx_cq->fid, KFI_RECV | setup->rx_bind), 0))
		return false;
	if (setup->srx && !expect(t, kfi_ep_bind(e->ep, &setup->srx->fid, 0), 0))
		return false;
	if (setup->stx && !expect(t, kfi_ep_bind(e->ep, &setup->stx->fid, 0), 0))
		return false;
	for (i = 0; i < COUNTERS && !setup->no_counters; i++) {
		struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };

		if (!expect(t, kfi_cntr_open(e->domain, &attr, &e->cntr[i], NULL), 0) ||
		    !expect(t, kfi_ep_bind(e->ep, &e->cntr[i]->fid, counter_flags[i]), 0))
			return false;
	}
	return setup->no_enable || expect(t, kfi_enable(e->ep), 0);
}

/* Opens an endpoint and all it needs. On failure everything is closed. */
bool end_open(struct test *t, struct end *e, unsigned int nic,
	      const struct setup *setup)
{
	static const struct setup usual;
	struct kfi_av_attr av_attr = { .type = KFI_AV_TABLE };
	struct kfi_info *info;

	setup = setup ?: &usual;
	*e = (struct end) {
		.nic = nic,
		.domain = setup->domain ?: nic_domain[nic],
		.peer = KFI_ADDR_NOTAVAIL,
	};
	av_attr.rx_ctx_bits = setup->rx_ctx_bits;
	info = describe(t, nic, setup);
	if (!info)
		return false;
	if (expect(t, kfi_av_open(e->domain, &av_attr, &e->av, NULL), 0)) {
		e->tx_cq = cq_open(t, e->domain, setup->tx_cq_size);
		e->rx_cq = cq_open_with(t, e->domain, setup->rx_cq_size,
					setup->handler, setup->handler_context);
	}
	if (e->tx_cq && e->rx_cq &&
	    expect(t, kfi_endpoint(e->domain, info, &e->ep, e), 0) &&
	    end_bind(t, e, setup)) {
		kfi_freeinfo(info);
		return true;
	}
	kfi_freeinfo(info);
	end_close(t, e);
	return false;
}

void end_close(struct test *t, struct end *e)
{
	unsigned int i;

	if (e->ep)
		close_fid(t, &e->ep->fid);
	for (i = 0; i < COUNTERS; i++) {
		if (e->cntr[i])
			close_fid(t, &e->cntr[i]->fid);
	}
	if (e->rx_cq)
		close_fid(t, &e->rx_cq->fid);
	if (e->tx_cq)
		close_fid(t, &e->tx_cq->fid);
	if (e->av)
		close_fid(t, &e->av->fid);
	*e = (struct end) {};
}

/* Adds the address of an endpoint to the address vector of another. */
bool end_knows(struct test *t, struct end *e, struct kfid_ep *peer,
	       kfi_addr_t *addr)
{
	u8 name[64];
	size_t len = sizeof(name);

	return expect(t, kfi_getname(&peer->fid, name, &len), 0) &&
	       expect(t, kfi_av_insert(e->av, name, 1, addr, 0, NULL), 1);
}

/* Two endpoints on two NICs that know each other. */
bool pair_open(struct test *t, struct end *a, struct end *b,
	       const struct setup *setup_a, const struct setup *setup_b)
{
	if (!end_open(t, a, 0, setup_a))
		return false;
	if (!end_open(t, b, 1, setup_b)) {
		end_close(t, a);
		return false;
	}
	if (end_knows(t, a, b->ep, &a->peer) && end_knows(t, b, a->ep, &b->peer))
		return true;
	pair_close(t, a, b);
	return false;
}

void pair_close(struct test *t, struct end *a, struct end *b)
{
	end_close(t, a);
	end_close(t, b);
}

/* With the addresses of both. */
static struct courier {
	struct end end;
	kfi_addr_t addr[2];
} couriers[2];

bool couriers_open(struct test *t)
{
	unsigned int i, j;

	if (!network)
		return true;
	for (i = 0; i < 2; i++) {
		if (!end_open(t, &couriers[i].end, i, NULL))
			return false;
	}
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			if (!end_knows(t, &couriers[i].end, couriers[j].end.ep,
				       &couriers[i].addr[j]))
				return false;
		}
	}
	return true;
}

void couriers_close(struct test *t)
{
	unsigned int i;

	for (i = 0; i < 2 && network; i++)
		end_close(t, &couriers[i].end);
}

void wait_for_arrival(struct test *t)
{
	static u8 from, to;
	unsigned int i, j;

	if (!network)
		return;
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			struct courier *a = &couriers[i], *b = &couriers[j];

			expect(t, kfi_recv(b->end.ep, &to, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
			expect(t, kfi_send(a->end.ep, &from, 1, NULL, a->addr[j], CONTEXT(2)), 0);
			expect_completion(t, b->end.rx_cq, CONTEXT(1), RECEIVED, 1);
			expect_completion(t, a->end.tx_cq, CONTEXT(2), SENT, 1);
		}
	}
}

/* Memory whose use starts at an offset from the start of a page. */
bool area_alloc(struct test *t, struct area *area, enum memory memory,
		size_t offset, size_t len)
{
	size_t size = PAGE_ALIGN(PAGE_SIZE + offset + len + GUARD);

	area->base = memory == MEM_KMALLOC ? kmalloc(size, GFP_KERNEL) :
					     vmalloc(size);
	if (!expect_true(t, area->base))
		return false;
	area->size = size;
	area->data = area->base + PAGE_SIZE + offset;
	area->len = len;
	area_clear(area);
	return true;
}

void area_free(struct area *area)
{
	kvfree(area->base);
	*area = (struct area) {};
}

void area_clear(struct area *area)
{
	memset(area->base, FILL, area->size);
}

u8 pattern(u32 seed, size_t at)
{
	return seed * 31 + at * 7 + (at >> 8) * 13 + (at >> 16);
}

void area_fill(struct area *area, u32 seed)
{
	size_t i;

	area_clear(area);
	for (i = 0; i < area->len; i++)
		area->data[i] = pattern(seed, i);
}

/* Whether a part has the pattern, from a place in it on, and the rest nothing. */
bool area_has(struct test *t, const struct area *area, u32 seed, size_t from,
	      size_t len, size_t pattern_from)
{
	const u8 *start = area->data + from, *end = start + len;
	const u8 *at;

	for (at = area->base; at < area->base + area->size; at++) {
		u8 want = at >= start && at < end ?
			pattern(seed, pattern_from + (at - start)) : FILL;

		if (*at == want)
			continue;
		t->failed = true;
		pr_info("# byte %ld of %zu is %#x, expected %#x\n",
			(long)(at - start), len, *at, want);
		return false;
	}
	return true;
}

/* Waits for a completion. */
bool await(struct test *t, struct kfid_cq *cq, struct kfi_cq_tagged_entry *entry,
	   kfi_addr_t *source)
{
	struct kfi_cq_err_entry error = {};
	ssize_t ret;

	*entry = (struct kfi_cq_tagged_entry) {};
	ret = kfi_cq_sreadfrom(cq, entry, 1, source, NULL, SOON);
	if (ret == -KFI_EAVAIL && kfi_cq_readerr(cq, &error, 0) == 1)
		pr_info("# error %d, context %p, flags %#llx, len %zu, olen %zu\n",
			error.err, error.op_context, error.flags, error.len,
			error.olen);
	return expect(t, ret, 1);
}

bool await_error(struct test *t, struct kfid_cq *cq,
		 struct kfi_cq_err_entry *entry)
{
	struct kfi_cq_tagged_entry good = {};
	ssize_t ret;

	*entry = (struct kfi_cq_err_entry) {};
	ret = kfi_cq_sread(cq, &good, 1, NULL, SOON);
	if (ret == 1)
		pr_info("# context %p, flags %#llx, len %zu\n",
			good.op_context, good.flags, good.len);
	return expect(t, ret, -KFI_EAVAIL) &&
	       expect(t, kfi_cq_readerr(cq, entry, 0), 1);
}

struct drained drain(struct test *t, struct kfid_cq *cq, void *context)
{
	struct drained drained = {};
	ssize_t ret;

	for (;;) {
		struct kfi_cq_err_entry error = {};
		struct kfi_cq_tagged_entry entry;

		ret = kfi_cq_read(cq, &entry, 1);
		if (ret == 1) {
			expect_true(t, entry.op_context == context);
			drained.good++;
			continue;
		}
		if (ret == -KFI_EAGAIN || !expect(t, ret, -KFI_EAVAIL) ||
		    !expect(t, kfi_cq_readerr(cq, &error, 0), 1))
			return drained;
		expect_true(t, error.op_context == context);
		expect(t, error.err, KFI_EHOSTUNREACH);
		drained.failed++;
	}
}

/* As expect_value(), in hexadecimal. */
static bool same(struct test *t, u64 got, u64 want, const char *what,
		 const char *file, int line)
{
	if (got == want)
		return true;
	t->failed = true;
	pr_info("# %s:%d: %s is %#llx, expected %#llx\n", kbasename(file), line,
		what, got, want);
	return false;
}

bool expect_completion_at(struct test *t, struct kfid_cq *cq, void *context,
			  u64 flags, size_t len, const char *file, int line)
{
	struct kfi_cq_tagged_entry entry;

	if (!await(t, cq, &entry, NULL)) {
		pr_info("# at %s:%d\n", kbasename(file), line);
		return false;
	}
	/* Entries of sends do not repeat what was sent. */
	if (flags == SENT || flags == TSENT) {
		len = 0;
		same(t, (unsigned long)entry.buf, 0, "buf", file, line);
		same(t, entry.tag, 0, "tag", file, line);
	}
	/* All of them, so that all that differ are told. */
	return same(t, (unsigned long)entry.op_context, (unsigned long)context,
		    "context", file, line) &
	       same(t, entry.flags, flags, "flags", file, line) &
	       same(t, entry.len, len, "len", file, line);
}

bool expect_failure_at(struct test *t, struct kfid_cq *cq, void *context,
		       u64 flags, int err, size_t len, size_t olen,
		       const char *file, int line)
{
	struct kfi_cq_err_entry entry;

	if (!await_error(t, cq, &entry)) {
		pr_info("# at %s:%d\n", kbasename(file), line);
		return false;
	}
	return same(t, (unsigned long)entry.op_context, (unsigned long)context,
		    "context", file, line) &
	       same(t, entry.flags, flags, "flags", file, line) &
	       expect_value(t, entry.err, err, "err", file, line) &
	       same(t, entry.len, len, "len", file, line) &
	       same(t, entry.olen, olen, "olen", file, line);
}

bool expect_count_at(struct test *t, struct kfid_cntr *cntr, u64 value,
		     u64 errors, const char *file, int line)
{
	unsigned long until = jiffies + msecs_to_jiffies(SOON);

	while (kfi_cntr_read(cntr) < value || kfi_cntr_readerr(cntr) < errors) {
		if (time_after(jiffies, until))
			break;
		usleep_range(1000, 1100);
	}
	return expect_value(t, kfi_cntr_read(cntr), value, "count", file, line) &
	       expect_value(t, kfi_cntr_readerr(cntr), errors, "errors", file, line);
}

struct kfid_mr *region_open(struct test *t, struct end *e, void *buf, size_t len,
			    u64 access, u64 key)
{
	struct kfid_mr *mr = NULL;

	if (!expect(t, kfi_mr_reg(e->domain, buf, len, access, 0, key, 0, &mr, NULL), 0))
		return NULL;
	return mr;
}
