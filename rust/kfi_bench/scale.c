// SPDX-License-Identifier: GPL-2.0
/*
 * The costs of a transfer or an addition when there are many endpoints, counters
 * or regions in a domain, when many receives are posted, and when many messages
 * wait for a receive; and those of opening one more object.
 *
 * To open many takes long, and to close them too. So what one case has opened
 * stays open for the next one, which needs more of it, and until a case needs
 * something else: these cases are measured in the order of their sizes, and all
 * rounds of a size before those of the next one.
 */
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include <kfi_endpoint.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

#include "design.h"
#include "link.h"
#include "rig.h"

/* Of each, as many as a provider has ports; and what fits into the memory of a small machine. */
#define MAX_ENDPOINTS 4096U
#define MAX_COUNTERS 100000U
#define MAX_REGIONS 100000U

/* Bytes of a message, and of a write. */
#define SMALL 8U
/* Laps of a loop, and what is done in one of them. */
#define LAPS 50U
#define LAP 20U
#define ADDITIONS 400U
/* Objects are closed and opened again so often. */
#define REOPENED 50U
/* Keys of regions, from here on. */
#define FIRST_KEY (1ULL << 20)
/* Messages that are received together when they are not measured. */
#define PORTION 64U
/* Many together need other CPUs to get on as well. */
#define BREATH 1024U

/* Closes what is open for the next case. */
static void (*close_kept)(void);

void bench_close_kept(void)
{
	if (close_kept)
		close_kept();
	close_kept = NULL;
}

/* Keeps the objects that the caller opens, and closes all others that were kept. */
static void keep(void (*close)(void))
{
	if (close_kept != close)
		bench_close_kept();
	close_kept = close;
}

/* --- endpoints ---------------------------------------------------------------- */

/* They have a completion queue and an address vector together. */
static struct {
	/* Of the port that is given to nobody who does not ask for it. */
	struct kfi_info *first;
	struct kfid_cq *cq;
	struct kfid_av *av;
	struct kfid_ep **eps;
	kfi_addr_t *peers;
	u8 *memory;
	u32 count;
} many_endpoints;

static void close_endpoints(void)
{
	u32 i;

	for (i = 0; i < many_endpoints.count; i++)
		kfi_close(&many_endpoints.eps[i]->fid);
	if (many_endpoints.av)
		kfi_close(&many_endpoints.av->fid);
	if (many_endpoints.cq)
		kfi_close(&many_endpoints.cq->fid);
	kvfree(many_endpoints.eps);
	kvfree(many_endpoints.peers);
	kfree(many_endpoints.memory);
	kfi_freeinfo(many_endpoints.first);
	memset(&many_endpoints, 0, sizeof(many_endpoints));
}

/* Without it there is one port less than endpoints. */
static int first_port(struct kfi_info **info)
{
	struct kfi_info *hints = kfi_allocinfo();
	int ret = -ENOMEM;

	if (!hints)
		return ret;
	/* Both become part of the hints. */
	hints->fabric_attr->prov_name = kstrdup(bench_info->fabric_attr->prov_name, GFP_KERNEL);
	hints->domain_attr->name = kstrdup(bench_info->domain_attr->name, GFP_KERNEL);
	if (hints->fabric_attr->prov_name && hints->domain_attr->name)
		ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, "0", KFI_SOURCE, hints, info);
	kfi_freeinfo(hints);
	return ret;
}

/* Opens the next one, and makes it known to all. */
static int add_endpoint(void)
{
	struct bench_endpoint end = { .av = many_endpoints.av };
	u32 i = many_endpoints.count;
	int ret;

	ret = kfi_endpoint(bench_domain, i ? bench_info : many_endpoints.first, &end.ep, NULL);
	if (ret)
		return ret;
	ret = kfi_ep_bind(end.ep, &many_endpoints.cq->fid, KFI_TRANSMIT | KFI_RECV);
	if (!ret)
		ret = kfi_ep_bind(end.ep, &many_endpoints.av->fid, 0);
	if (!ret)
		ret = kfi_enable(end.ep);
	if (!ret)
		ret = bench_introduce(&end, &end, &many_endpoints.peers[i]);
	if (ret) {
		kfi_close(&end.ep->fid);
		return ret;
	}
	many_endpoints.eps[i] = end.ep;
	many_endpoints.count++;
	return 0;
}

static int remove_endpoint(void)
{
	u32 i = many_endpoints.count - 1;
	int ret;

	ret = kfi_av_remove(many_endpoints.av, &many_endpoints.peers[i], 1, 0);
	if (!ret)
		ret = kfi_close(&many_endpoints.eps[i]->fid);
	if (!ret)
		many_endpoints.count--;
	return ret;
}

static int need_endpoints(u32 count)
{
	struct kfi_cq_attr cq_attr = { .format = KFI_CQ_FORMAT_CONTEXT, .size = 1024,
				       .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_av_attr av_attr = { .count = MAX_ENDPOINTS };
	int ret = 0;

	if (count > MAX_ENDPOINTS)
		return -EINVAL;
	keep(close_endpoints);
	if (many_endpoints.count > count)
		close_endpoints();
	if (!many_endpoints.eps) {
		many_endpoints.eps = kvcalloc(MAX_ENDPOINTS, sizeof(*many_endpoints.eps),
					      GFP_KERNEL);
		many_endpoints.peers = kvcalloc(MAX_ENDPOINTS, sizeof(*many_endpoints.peers),
						GFP_KERNEL);
		many_endpoints.memory = kzalloc(2 * SMALL, GFP_KERNEL);
		if (!many_endpoints.eps || !many_endpoints.peers || !many_endpoints.memory)
			ret = -ENOMEM;
		if (!ret)
			ret = first_port(&many_endpoints.first);
		if (!ret)
			ret = kfi_cq_open(bench_domain, &cq_attr, &many_endpoints.cq, NULL, NULL);
		if (!ret)
			ret = kfi_av_open(bench_domain, &av_attr, &many_endpoints.av, NULL);
	}
	while (!ret && many_endpoints.count < count) {
		ret = add_endpoint();
		cond_resched();
	}
	if (ret)
		close_endpoints();
	return ret;
}

/* From the first one to any. */
static int message_among(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	u8 *memory;
	u32 i, to, state = 2463534242U;
	struct bench_laps laps;
	int ret;

	ret = need_endpoints(c->size);
	memory = many_endpoints.memory;
	bench_begin(&laps);
	for (i = 0; i < LAPS * LAP && !ret; i++) {
		to = bench_random(&state) % many_endpoints.count;
		ret = kfi_recv(many_endpoints.eps[to], memory + SMALL, SMALL, NULL,
			       KFI_ADDR_UNSPEC, NULL);
		if (!ret)
			ret = kfi_send(many_endpoints.eps[0], memory, SMALL, NULL,
				       many_endpoints.peers[to], NULL);
		if (!ret)
			ret = bench_take(many_endpoints.cq, 2);
		if (i % LAP == LAP - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, LAP, sample);
	return ret;
}

static int reopen_endpoint(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct bench_laps laps;
	int ret;
	u32 i;

	ret = need_endpoints(c->size);
	bench_begin(&laps);
	for (i = 0; i < REOPENED && !ret; i++) {
		ret = remove_endpoint();
		if (!ret)
			ret = add_endpoint();
		bench_lap(&laps);
	}
	bench_end(&laps, 1, sample);
	return ret;
}

/* --- counters ----------------------------------------------------------------- */

struct counters {
	const struct bench_design *design;
	struct kfid_cntr **cntrs;
	u32 count;
};

static struct counters many_counters[] = {
	{ .design = &bench_kfi_soft },
	{ .design = &bench_atomic },
};

static void close_counters(void)
{
	struct counters *many;
	u32 i;

	for (many = many_counters; many < many_counters + ARRAY_SIZE(many_counters); many++) {
		for (i = 0; i < many->count; i++) {
			many->design->close(many->cntrs[i]);
			if (!(i % BREATH))
				cond_resched();
		}
		kvfree(many->cntrs);
		many->cntrs = NULL;
		many->count = 0;
	}
}

static int need_counters(struct counters *many, u32 count)
{
	int ret = 0;

	if (count > MAX_COUNTERS)
		return -EINVAL;
	keep(close_counters);
	if (many->count > count)
		close_counters();
	if (!many->cntrs)
		many->cntrs = kvcalloc(MAX_COUNTERS, sizeof(*many->cntrs), GFP_KERNEL);
	if (!many->cntrs)
		return -ENOMEM;
	while (!ret && many->count < count) {
		ret = many->design->open(&many->cntrs[many->count]);
		if (!ret)
			many->count++;
		if (!(many->count % BREATH))
			cond_resched();
	}
	if (ret)
		close_counters();
	return ret;
}

/* To any of them. */
static int add_among(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	/* The cases are constants, what they keep is not. */
	struct counters *many = (struct counters *)c->design_data;
	u32 i, lap, state = 2463534242U, *picks;
	struct bench_laps laps;
	int ret;

	picks = kvcalloc(LAPS * ADDITIONS, sizeof(*picks), GFP_KERNEL);
	if (!picks)
		return -ENOMEM;
	ret = need_counters(many, c->size);
	for (i = 0; i < LAPS * ADDITIONS && !ret; i++)
		picks[i] = bench_random(&state) % many->count;
	bench_begin(&laps);
	for (lap = 0; lap < LAPS && !ret; lap++) {
		for (i = 0; i < ADDITIONS; i++)
			kfi_cntr_add(many->cntrs[picks[lap * ADDITIONS + i]], 1);
		bench_lap(&laps);
	}
	bench_end(&laps, ADDITIONS, sample);
	kvfree(picks);
	return ret;
}

static int reopen_counter(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct counters *many = (struct counters *)c->design_data;
	struct bench_laps laps;
	int ret;
	u32 i;

	ret = need_counters(many, c->size);
	bench_begin(&laps);
	for (i = 0; i < REOPENED && !ret; i++) {
		many->design->close(many->cntrs[--many->count]);
		ret = many->design->open(&many->cntrs[many->count]);
		if (!ret)
			many->count++;
		bench_lap(&laps);
	}
	bench_end(&laps, 1, sample);
	return ret;
}

/* --- regions ------------------------------------------------------------------ */

/* All of the same memory, that of the link. */
static struct {
	struct bench_link link;
	struct kfid_mr **mrs;
	u32 count;
} many_regions;

static void close_regions(void)
{
	u32 i;

	for (i = 0; i < many_regions.count; i++) {
		kfi_close(&many_regions.mrs[i]->fid);
		if (!(i % BREATH))
			cond_resched();
	}
	if (many_regions.mrs)
		bench_close_link(&many_regions.link);
	kvfree(many_regions.mrs);
	memset(&many_regions, 0, sizeof(many_regions));
}

static int add_region(void)
{
	u32 i = many_regions.count;
	int ret;

	ret = kfi_mr_reg(bench_domain, many_regions.link.to, SMALL, KFI_REMOTE_WRITE, 0,
			 FIRST_KEY + i, 0, &many_regions.mrs[i], NULL);
	if (!ret)
		many_regions.count++;
	return ret;
}

static int need_regions(u32 count)
{
	const struct bench_endpoint end = { .info = bench_info, .domain = bench_domain };
	struct kfid_mr **mrs;
	int ret = 0;

	if (count > MAX_REGIONS)
		return -EINVAL;
	keep(close_regions);
	if (many_regions.count > count)
		close_regions();
	if (!many_regions.mrs) {
		mrs = kvcalloc(MAX_REGIONS, sizeof(*mrs), GFP_KERNEL);
		if (!mrs)
			return -ENOMEM;
		many_regions.link = (struct bench_link) { .ends = { end, end } };
		ret = bench_open_link(&many_regions.link, SMALL);
		if (ret) {
			kvfree(mrs);
			return ret;
		}
		many_regions.mrs = mrs;
	}
	while (!ret && many_regions.count < count) {
		ret = add_region();
		if (!(many_regions.count % BREATH))
			cond_resched();
	}
	if (ret)
		close_regions();
	return ret;
}

/* To any of them. */
static int write_among(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct bench_link *l = &many_regions.link;
	u32 i, to, state = 2463534242U;
	struct bench_laps laps;
	int ret;

	ret = need_regions(c->size);
	bench_begin(&laps);
	for (i = 0; i < LAPS * LAP && !ret; i++) {
		to = bench_random(&state) % many_regions.count;
		ret = kfi_write(l->ends[0].ep, l->from, SMALL, NULL, l->ends[0].peer, l->base,
				kfi_mr_key(many_regions.mrs[to]), NULL);
		if (!ret)
			ret = bench_take(l->ends[0].cq, 1);
		if (i % LAP == LAP - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, LAP, sample);
	return ret;
}

static int reopen_region(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct bench_laps laps;
	int ret;
	u32 i;

	ret = need_regions(c->size);
	bench_begin(&laps);
	for (i = 0; i < REOPENED && !ret; i++) {
		ret = kfi_close(&many_regions.mrs[many_regions.count - 1]->fid);
		if (!ret) {
			many_regions.count--;
			ret = add_region();
		}
		bench_lap(&laps);
	}
	bench_end(&laps, 1, sample);
	return ret;
}

/* --- receives and messages ----------------------------------------------------- */

/* Two endpoints, each of which takes so many operations, and some more. */
static int open_deep(struct bench_link *l, u32 depth)
{
	struct kfi_info *info;
	int ret;

	/* A link that is kept open has a region with the same key. */
	bench_close_kept();
	info = kfi_dupinfo(bench_info);
	if (!info)
		return -ENOMEM;
	info->tx_attr->size = depth + 2 * PORTION;
	info->rx_attr->size = depth + 2 * PORTION;
	*l = (struct bench_link) { .ends = {
		{ .info = info, .domain = bench_domain },
		{ .info = info, .domain = bench_domain },
	} };
	ret = bench_open_link(l, SMALL);
	kfi_freeinfo(info);
	l->ends[0].info = NULL;
	l->ends[1].info = NULL;
	return ret;
}

static int post_receive(struct bench_link *l, u64 tag, u64 ignore)
{
	return kfi_trecv(l->ends[1].ep, l->to, SMALL, NULL, KFI_ADDR_UNSPEC, tag, ignore, NULL);
}

static int post_message(struct bench_link *l, u64 tag)
{
	return kfi_tsend(l->ends[0].ep, l->from, SMALL, NULL, l->ends[0].peer, tag, NULL);
}

/* At both ends. */
static int take_both(struct bench_link *l, u32 count)
{
	int ret = bench_take(l->ends[0].cq, count);

	return ret ? ret : bench_take(l->ends[1].cq, count);
}

/* Where much is compared less is done, so that a round is short. */
static u32 matches_in_lap(u32 count)
{
	return count > 1000 ? 2 : LAP;
}

/* A message for any of the receives, which is then posted again. */
static int posted(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	u32 i, tag, state = 2463534242U, lap = matches_in_lap(c->size);
	struct bench_laps laps;
	struct bench_link l;
	int ret;

	ret = open_deep(&l, c->size);
	if (ret)
		return ret;
	for (i = 0; i < c->size && !ret; i++) {
		ret = post_receive(&l, i, 0);
		if (!(i % BREATH))
			cond_resched();
	}
	bench_begin(&laps);
	for (i = 0; i < LAPS * lap && !ret; i++) {
		tag = bench_random(&state) % (u32)c->size;
		ret = post_message(&l, tag);
		if (!ret)
			ret = take_both(&l, 1);
		if (!ret)
			ret = post_receive(&l, tag, 0);
		if (i % lap == lap - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, lap, sample);
	bench_close_link(&l);
	return ret;
}

/* A receive for any of the messages, which is then sent again. */
static int unexpected(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	u32 i, k, tag, state = 2463534242U, lap = matches_in_lap(c->size), count;
	struct bench_laps laps;
	struct bench_link l;
	int ret;

	ret = open_deep(&l, c->size);
	if (ret)
		return ret;
	for (i = 0; i < c->size && !ret; i++) {
		ret = post_message(&l, i);
		if (!(i % BREATH))
			cond_resched();
	}
	bench_begin(&laps);
	for (i = 0; i < LAPS * lap && !ret; i++) {
		tag = bench_random(&state) % (u32)c->size;
		ret = post_receive(&l, tag, 0);
		if (!ret)
			ret = take_both(&l, 1);
		if (!ret)
			ret = post_message(&l, tag);
		if (i % lap == lap - 1)
			bench_lap(&laps);
	}
	bench_end(&laps, lap, sample);
	/* In the order in which they wait, so that none is looked for. */
	for (i = 0; i < c->size && !ret; i += count) {
		count = min(PORTION, (u32)c->size - i);
		for (k = 0; k < count && !ret; k++)
			ret = post_receive(&l, 0, U64_MAX);
		if (!ret)
			ret = take_both(&l, count);
		cond_resched();
	}
	bench_close_link(&l);
	return ret;
}

#define KEPT(title, name, number, function, with) \
	{ .item = title, .design = name, .unit = "ns", .size = number, .run = function, \
	  .design_data = with, .kept = true }
#define ENDPOINTS(number) \
	KEPT("scale, endpoints", "message", number, message_among, NULL), \
	KEPT("scale, endpoints", "close and open", number, reopen_endpoint, NULL)
#define COUNTERS(number) \
	KEPT("scale, counters", "add", number, add_among, &many_counters[0]), \
	KEPT("scale, counters", "atomic add", number, add_among, &many_counters[1]), \
	KEPT("scale, counters", "close and open", number, reopen_counter, &many_counters[0])
#define REGIONS(number) \
	KEPT("scale, regions", "write", number, write_among, NULL), \
	KEPT("scale, regions", "close and register", number, reopen_region, NULL)
#define MATCHED(number) \
	{ .item = "scale, tags", .design = "posted receives", .unit = "ns", .size = number, \
	  .run = posted }, \
	{ .item = "scale, tags", .design = "unexpected messages", .unit = "ns", .size = number, \
	  .run = unexpected }

const struct kfi_bench_case bench_scale_cases[] = {
	ENDPOINTS(1), ENDPOINTS(4), ENDPOINTS(16), ENDPOINTS(64), ENDPOINTS(256),
	ENDPOINTS(1024), ENDPOINTS(4096),
	COUNTERS(1), COUNTERS(10), COUNTERS(100), COUNTERS(1000), COUNTERS(10000),
	COUNTERS(100000),
	REGIONS(1), REGIONS(10), REGIONS(100), REGIONS(1000), REGIONS(10000), REGIONS(100000),
	MATCHED(1), MATCHED(10), MATCHED(100), MATCHED(1000), MATCHED(10000),
	{}
};
