// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers between two endpoints of one domain, and the bare work of them.
 */
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include <kfi_cm.h>
#include <kfi_endpoint.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

#include "design.h"
#include "rig.h"

#define SMALL 1280U
#define SMALL_LAP 10U
#define TIMEOUT_MS 30000
/* Transfers under way at a time, where bandwidth is measured. */
#define WINDOW 16U
/* Bytes that are moved to measure bandwidth. */
#define VOLUME (64ULL << 20)
#define KEY 4711

enum kind { MESSAGE, TAGGED, RMA };

struct end {
	struct kfid_ep *ep;
	struct kfid_cq *cq;
	/* Of the other end. */
	kfi_addr_t peer;
};

struct link {
	struct kfid_av *av;
	struct end ends[2];
	u8 *from, *to;
	struct kfid_mr *mr;
	u64 base;
};

static void close_link(struct link *l)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (l->ends[i].ep)
			kfi_close(&l->ends[i].ep->fid);
		if (l->ends[i].cq)
			kfi_close(&l->ends[i].cq->fid);
	}
	if (l->mr)
		kfi_close(&l->mr->fid);
	if (l->av)
		kfi_close(&l->av->fid);
	kvfree(l->from);
	kvfree(l->to);
}

static int open_end(struct link *l, struct end *end)
{
	struct kfi_cq_attr cq_attr = { .format = KFI_CQ_FORMAT_CONTEXT, .size = 1024,
				      .wait_obj = KFI_WAIT_UNSPEC };
	int ret;

	ret = kfi_cq_open(bench_domain, &cq_attr, &end->cq, NULL, NULL);
	if (!ret)
		ret = kfi_endpoint(bench_domain, bench_info, &end->ep, NULL);
	if (!ret)
		ret = kfi_ep_bind(end->ep, &end->cq->fid, KFI_TRANSMIT | KFI_RECV);
	if (!ret)
		ret = kfi_ep_bind(end->ep, &l->av->fid, 0);
	if (!ret)
		ret = kfi_enable(end->ep);
	return ret;
}

static int introduce(struct link *l, struct end *end, struct end *to)
{
	size_t len = 64;
	u8 name[64];
	int ret;

	ret = kfi_getname(&end->ep->fid, name, &len);
	if (!ret)
		ret = kfi_av_insert(l->av, name, 1, &to->peer, 0, NULL) == 1 ? 0 : -EIO;
	return ret;
}

static int open_link(struct link *l, size_t len)
{
	struct kfi_av_attr av_attr = {};
	int ret;

	*l = (struct link) {};
	l->from = kvzalloc(len, GFP_KERNEL);
	l->to = kvzalloc(len, GFP_KERNEL);
	ret = l->from && l->to ? 0 : -ENOMEM;
	if (!ret)
		ret = kfi_av_open(bench_domain, &av_attr, &l->av, NULL);
	if (!ret)
		ret = open_end(l, &l->ends[0]);
	if (!ret)
		ret = open_end(l, &l->ends[1]);
	if (!ret)
		ret = introduce(l, &l->ends[0], &l->ends[1]);
	if (!ret)
		ret = introduce(l, &l->ends[1], &l->ends[0]);
	if (!ret)
		ret = kfi_mr_reg(bench_domain, l->to, len, KFI_REMOTE_WRITE | KFI_REMOTE_READ, 0,
				 KEY, 0, &l->mr, NULL);
	if (!ret && bench_info->domain_attr->mr_mode & KFI_MR_VIRT_ADDR)
		l->base = (uintptr_t)l->to;
	if (ret)
		close_link(l);
	return ret;
}

/* Takes @count completions, in whatever portions they come. */
static int take(struct kfid_cq *cq, u32 count)
{
	struct kfi_cq_entry entries[WINDOW];
	ssize_t got;

	while (count) {
		got = kfi_cq_read(cq, entries, min(count, WINDOW));
		if (got == -KFI_EAGAIN)
			got = kfi_cq_sread(cq, entries, min(count, WINDOW), NULL, TIMEOUT_MS);
		if (got < 0)
			return got;
		count -= got;
	}
	return 0;
}

static ssize_t post(struct link *l, enum kind what, size_t len)
{
	struct end *a = &l->ends[0], *b = &l->ends[1];
	ssize_t ret;

	switch (what) {
	case MESSAGE:
		ret = kfi_recv(b->ep, l->to, len, NULL, KFI_ADDR_UNSPEC, NULL);
		return ret ? ret : kfi_send(a->ep, l->from, len, NULL, a->peer, NULL);
	case TAGGED:
		ret = kfi_trecv(b->ep, l->to, len, NULL, KFI_ADDR_UNSPEC, KEY, 0, NULL);
		return ret ? ret : kfi_tsend(a->ep, l->from, len, NULL, a->peer, KEY, NULL);
	case RMA:
		return kfi_write(a->ep, l->from, len, NULL, a->peer, l->base, kfi_mr_key(l->mr),
				 NULL);
	}
	return -EINVAL;
}

static __always_inline int small(const struct kfi_bench_case *c, struct kfi_bench_sample *sample,
				 enum kind what)
{
	struct bench_laps laps;
	u64 before, now;
	struct link l;
	int ret;
	u32 i;

	ret = open_link(&l, c->size);
	if (ret)
		return ret;
	/* Many together, and then single ones, as telling the time takes long. */
	bench_begin(&laps);
	for (i = 0; i < SMALL && !ret; i++) {
		if (i && !(i % SMALL_LAP))
			bench_lap(&laps);
		ret = post(&l, what, c->size);
		if (!ret)
			ret = take(l.ends[0].cq, 1);
		if (!ret && what != RMA)
			ret = take(l.ends[1].cq, 1);
	}
	bench_lap(&laps);
	bench_end(&laps, SMALL_LAP, sample);
	for (i = 0; i < SMALL / 4 && !ret; i++) {
		before = bench_now();
		ret = post(&l, what, c->size);
		if (!ret)
			ret = take(l.ends[0].cq, 1);
		if (!ret && what != RMA)
			ret = take(l.ends[1].cq, 1);
		now = bench_now();
		if (sample->latency_count < sample->latency_room)
			sample->latencies[sample->latency_count++] = now - before;
	}
	close_link(&l);
	return ret;
}

static int small_message(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return small(c, sample, MESSAGE);
}

static int small_tagged(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return small(c, sample, TAGGED);
}

static int small_rma(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return small(c, sample, RMA);
}

/* --- many under way ----------------------------------------------------------- */

static int stream(const struct kfi_bench_case *c, struct kfi_bench_sample *sample, enum kind what)
{
	u32 i, window, rounds = max(div_u64(VOLUME, c->size * WINDOW), 1ULL);
	struct bench_laps laps;
	struct link l;
	int ret;

	rounds = min(rounds, BENCH_LAPS);
	ret = open_link(&l, c->size);
	if (ret)
		return ret;
	bench_begin(&laps);
	for (i = 0; i < rounds && !ret; i++) {
		if (i)
			bench_lap(&laps);
		for (window = 0; window < WINDOW && !ret; window++)
			ret = post(&l, what, c->size);
		if (!ret)
			ret = take(l.ends[0].cq, WINDOW);
		if (!ret && what != RMA)
			ret = take(l.ends[1].cq, WINDOW);
	}
	bench_lap(&laps);
	bench_end(&laps, WINDOW, sample);
	close_link(&l);
	return ret;
}

static int stream_message(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return stream(c, sample, MESSAGE);
}

static int stream_tagged(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return stream(c, sample, TAGGED);
}

static int stream_rma(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	return stream(c, sample, RMA);
}

static int stream_memcpy(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	u32 i, rounds = min(max(div_u64(VOLUME, c->size * WINDOW), 1ULL), BENCH_LAPS);
	u8 *from = kvzalloc(c->size, GFP_KERNEL), *to = kvzalloc(c->size, GFP_KERNEL);
	struct bench_laps laps;

	if (from && to) {
		bench_begin(&laps);
		for (i = 0; i < rounds * WINDOW; i++) {
			memcpy(to, from, c->size);
			/* Each of them is wanted. */
			barrier_data(to);
			if (i % WINDOW == WINDOW - 1)
				bench_lap(&laps);
		}
		bench_end(&laps, WINDOW, sample);
	}
	kvfree(from);
	kvfree(to);
	return from && to ? 0 : -ENOMEM;
}

/* --- the bare work ------------------------------------------------------------ */

#define QUEUE_SIZE 256U

struct queue {
	spinlock_t lock;
	u32 head, tail;
	struct kfi_cq_entry entries[QUEUE_SIZE];
};

static noinline void push(struct queue *q, void *context, bool irq)
{
	unsigned long flags = 0;

	if (irq)
		spin_lock_irqsave(&q->lock, flags);
	else
		spin_lock(&q->lock);
	q->entries[q->tail++ % QUEUE_SIZE].op_context = context;
	if (irq)
		spin_unlock_irqrestore(&q->lock, flags);
	else
		spin_unlock(&q->lock);
}

static noinline void *pop(struct queue *q, bool irq)
{
	unsigned long flags = 0;
	void *context = NULL;

	if (irq)
		spin_lock_irqsave(&q->lock, flags);
	else
		spin_lock(&q->lock);
	if (q->head != q->tail)
		context = q->entries[q->head++ % QUEUE_SIZE].op_context;
	if (irq)
		spin_unlock_irqrestore(&q->lock, flags);
	else
		spin_unlock(&q->lock);
	return context;
}

struct bare {
	bool irq;
	/* A receive and two completions go through a queue, or one entry does. */
	unsigned int entries;
};

static int bare(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct bare *how = c->design_data;
	struct queue *q = kzalloc(sizeof(*q), GFP_KERNEL);
	u8 *from = kzalloc(c->size, GFP_KERNEL), *to = kzalloc(c->size, GFP_KERNEL);
	struct bench_laps laps;
	unsigned int entry;
	u32 i;

	if (q && from && to) {
		spin_lock_init(&q->lock);
		bench_begin(&laps);
		for (i = 0; i < SMALL; i++) {
			if (i && !(i % SMALL_LAP))
				bench_lap(&laps);
			memcpy(to, from, c->size);
			barrier_data(to);
			for (entry = 0; entry < how->entries; entry++)
				push(q, to, how->irq);
			for (entry = 0; entry < how->entries; entry++)
				pop(q, how->irq);
		}
		bench_lap(&laps);
		bench_end(&laps, SMALL_LAP, sample);
	}
	kfree(from);
	kfree(to);
	i = q && from && to;
	kfree(q);
	return i ? 0 : -ENOMEM;
}

static const struct bare bare_irq = { .irq = true, .entries = 1 };
static const struct bare bare_plain = { .entries = 1 };
static const struct bare bare_all_irq = { .irq = true, .entries = 3 };
static const struct bare bare_all = { .entries = 3 };

#define CASE(title, name, bytes, function) \
	{ .item = title, .design = name, .unit = "ns", .size = bytes, .run = function }
#define BARE(name, how) \
	{ .item = "small transfer", .design = name, .unit = "ns", .size = 8, .run = bare, \
	  .design_data = &(how) }

const struct kfi_bench_case bench_message_cases[] = {
	CASE("small transfer", "send", 8, small_message),
	CASE("small transfer", "tagged", 8, small_tagged),
	CASE("small transfer", "write", 8, small_rma),
	BARE("bare irq", bare_irq),
	BARE("bare", bare_plain),
	BARE("bare, three entries irq", bare_all_irq),
	BARE("bare, three entries", bare_all),
	CASE("bandwidth", "memcpy", 4096, stream_memcpy),
	CASE("bandwidth", "memcpy", 65536, stream_memcpy),
	CASE("bandwidth", "memcpy", 1048576, stream_memcpy),
	CASE("bandwidth", "send", 4096, stream_message),
	CASE("bandwidth", "send", 65536, stream_message),
	CASE("bandwidth", "send", 1048576, stream_message),
	CASE("bandwidth", "tagged", 4096, stream_tagged),
	CASE("bandwidth", "tagged", 65536, stream_tagged),
	CASE("bandwidth", "tagged", 1048576, stream_tagged),
	CASE("bandwidth", "write", 4096, stream_rma),
	CASE("bandwidth", "write", 65536, stream_rma),
	CASE("bandwidth", "write", 1048576, stream_rma),
	{}
};
