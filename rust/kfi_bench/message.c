// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers between two endpoints of one domain, and the bare work of them.
 */
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include <kfi_endpoint.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

#include "link.h"
#include "rig.h"

#define SMALL 1280U
#define SMALL_LAP 10U
/* Transfers under way at a time, where bandwidth is measured. */
#define WINDOW 16U
/* Bytes that are moved to measure bandwidth. */
#define VOLUME (64ULL << 20)
#define TAG 4711

enum kind { MESSAGE, TAGGED, RMA };

/* Both ends are of one domain. */
static int open_link(struct bench_link *l, size_t len)
{
	const struct bench_endpoint end = { .info = bench_info, .domain = bench_domain };

	*l = (struct bench_link) { .ends = { end, end } };
	return bench_open_link(l, len);
}

static ssize_t post(struct bench_link *l, enum kind what, size_t len)
{
	struct bench_endpoint *a = &l->ends[0], *b = &l->ends[1];
	ssize_t ret;

	switch (what) {
	case MESSAGE:
		ret = kfi_recv(b->ep, l->to, len, NULL, KFI_ADDR_UNSPEC, NULL);
		return ret ? ret : kfi_send(a->ep, l->from, len, NULL, a->peer, NULL);
	case TAGGED:
		ret = kfi_trecv(b->ep, l->to, len, NULL, KFI_ADDR_UNSPEC, TAG, 0, NULL);
		return ret ? ret : kfi_tsend(a->ep, l->from, len, NULL, a->peer, TAG, NULL);
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
	struct bench_link l;
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
			ret = bench_take(l.ends[0].cq, 1);
		if (!ret && what != RMA)
			ret = bench_take(l.ends[1].cq, 1);
	}
	bench_lap(&laps);
	bench_end(&laps, SMALL_LAP, sample);
	for (i = 0; i < SMALL / 4 && !ret; i++) {
		before = bench_now();
		ret = post(&l, what, c->size);
		if (!ret)
			ret = bench_take(l.ends[0].cq, 1);
		if (!ret && what != RMA)
			ret = bench_take(l.ends[1].cq, 1);
		now = bench_now();
		if (sample->latency_count < sample->latency_room)
			sample->latencies[sample->latency_count++] = now - before;
	}
	bench_close_link(&l);
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
	struct bench_link l;
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
			ret = bench_take(l.ends[0].cq, WINDOW);
		if (!ret && what != RMA)
			ret = bench_take(l.ends[1].cq, WINDOW);
	}
	bench_lap(&laps);
	bench_end(&laps, WINDOW, sample);
	bench_close_link(&l);
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
