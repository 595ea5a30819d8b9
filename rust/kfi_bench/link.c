// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints with what they need.
 */
#include <linux/minmax.h>
#include <linux/slab.h>

#include <kfi_cm.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>

#include "link.h"

#define KEY 4711
/* Completions that are taken at a time. */
#define TAKEN 16U

void bench_close_endpoint(struct bench_endpoint *end)
{
	if (end->ep)
		kfi_close(&end->ep->fid);
	if (end->cq)
		kfi_close(&end->cq->fid);
	if (end->av)
		kfi_close(&end->av->fid);
	end->ep = NULL;
	end->cq = NULL;
	end->av = NULL;
}

int bench_open_endpoint(struct bench_endpoint *end)
{
	struct kfi_cq_attr cq_attr = { .format = KFI_CQ_FORMAT_CONTEXT, .size = 1024,
				      .wait_obj = KFI_WAIT_UNSPEC,
				      .wait_cond = KFI_CQ_COND_THRESHOLD };
	struct kfi_av_attr av_attr = {};
	int ret;

	ret = kfi_av_open(end->domain, &av_attr, &end->av, NULL);
	if (!ret)
		ret = kfi_cq_open(end->domain, &cq_attr, &end->cq, NULL, NULL);
	if (!ret)
		ret = kfi_endpoint(end->domain, end->info, &end->ep, NULL);
	if (!ret)
		ret = kfi_ep_bind(end->ep, &end->cq->fid, KFI_TRANSMIT | KFI_RECV);
	if (!ret)
		ret = kfi_ep_bind(end->ep, &end->av->fid, 0);
	if (!ret)
		ret = kfi_enable(end->ep);
	if (ret)
		bench_close_endpoint(end);
	return ret;
}

int bench_introduce(struct bench_endpoint *end, struct bench_endpoint *to, kfi_addr_t *address)
{
	size_t len = 64;
	u8 name[64];
	int ret;

	ret = kfi_getname(&end->ep->fid, name, &len);
	if (!ret)
		ret = kfi_av_insert(to->av, name, 1, address, 0, NULL) == 1 ? 0 : -EIO;
	return ret;
}

void bench_close_link(struct bench_link *l)
{
	bench_close_endpoint(&l->ends[0]);
	bench_close_endpoint(&l->ends[1]);
	if (l->mr)
		kfi_close(&l->mr->fid);
	kvfree(l->from);
	kvfree(l->to);
	l->mr = NULL;
	l->from = NULL;
	l->to = NULL;
}

int bench_open_link(struct bench_link *l, size_t len)
{
	struct bench_endpoint *a = &l->ends[0], *b = &l->ends[1];
	int ret;

	l->from = kvzalloc(len, GFP_KERNEL);
	l->to = kvzalloc(len, GFP_KERNEL);
	ret = l->from && l->to ? 0 : -ENOMEM;
	if (!ret)
		ret = bench_open_endpoint(a);
	if (!ret)
		ret = bench_open_endpoint(b);
	if (!ret)
		ret = bench_introduce(a, b, &b->peer);
	if (!ret)
		ret = bench_introduce(b, a, &a->peer);
	if (!ret)
		ret = kfi_mr_reg(b->domain, l->to, len, KFI_REMOTE_WRITE | KFI_REMOTE_READ, 0, KEY,
				 0, &l->mr, NULL);
	if (!ret && b->info->domain_attr->mr_mode & KFI_MR_VIRT_ADDR)
		l->base = (uintptr_t)l->to;
	if (ret)
		bench_close_link(l);
	return ret;
}

int bench_take(struct kfid_cq *cq, u32 count)
{
	struct kfi_cq_entry entries[TAKEN];
	ssize_t got;

	while (count) {
		got = kfi_cq_read(cq, entries, min(count, TAKEN));
		if (got == -KFI_EAGAIN)
			got = kfi_cq_sread(cq, entries, min(count, TAKEN), NULL,
					   BENCH_TIMEOUT_MS);
		if (got < 0)
			return got;
		count -= got;
	}
	return 0;
}

int bench_take_some(struct kfid_cq *cq, u32 least, u32 most)
{
	struct kfi_cq_entry entries[BENCH_PORTION];
	ssize_t got;

	most = min(most, BENCH_PORTION);
	got = kfi_cq_read(cq, entries, most);
	if (got == -KFI_EAGAIN)
		got = kfi_cq_sread(cq, entries, most, (void *)(uintptr_t)least,
				   BENCH_TIMEOUT_MS);
	return got;
}
