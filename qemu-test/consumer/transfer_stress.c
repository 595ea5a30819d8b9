// SPDX-License-Identifier: GPL-2.0
/*
 * Everything at once, on all CPUs.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "transfer.h"

/* Reads entries until told to stop, and sorts them. */
struct reader {
	struct kfid_cq *cq;
	atomic_t *stop;
	u64 good;
	u64 cancelled;
	u64 other;
	int err;
};

/* Reads what is there; true if there was anything. */
static bool read_some(struct reader *r)
{
	struct kfi_cq_tagged_entry entries[8];
	struct kfi_cq_err_entry error = {};
	ssize_t ret = kfi_cq_read(r->cq, entries, 8);

	if (ret > 0) {
		r->good += ret;
		return true;
	}
	if (ret != -KFI_EAVAIL)
		return false;
	/* Another reader may have been faster. */
	if (kfi_cq_readerr(r->cq, &error, 0) != 1)
		return true;
	if (error.err == KFI_ECANCELED) {
		r->cancelled++;
	} else {
		r->other++;
		r->err = error.err;
	}
	return true;
}

static long read_all(void *arg)
{
	struct reader *r = arg;

	for (;;) {
		bool stop = atomic_read_acquire(r->stop);

		if (read_some(r)) {
			cond_resched();
			continue;
		}
		if (stop)
			return 0;
		usleep_range(20, 50);
	}
}

/* Cancelled while messages come: each receive and each send ends once. */
struct race {
	struct end *e;
	u64 posted;
	u64 refused;
	u64 cancels;
	bool cancel;
	int bad;
};

static long post_receives(void *arg)
{
	struct race *r = arg;
	static u8 sink[64];
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		ssize_t ret = kfi_recv(r->e->ep, sink, sizeof(sink), NULL, KFI_ADDR_UNSPEC,
				       CONTEXT(i & 3));

		if (!ret)
			r->posted++;
		else if (ret == -KFI_EAGAIN)
			r->refused++;
		else
			r->bad = ret;
		ret = r->cancel ? kfi_cancel(&r->e->ep->fid, CONTEXT(i & 3)) : -KFI_ENOENT;
		if (!ret)
			r->cancels++;
		else if (ret != -KFI_ENOENT)
			r->bad = ret;
		cond_resched();
	}
	return 0;
}

static long post_sends(void *arg)
{
	struct race *r = arg;
	static u8 bytes[64];
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		ssize_t ret = kfi_send(r->e->ep, bytes, i & 63, NULL, r->e->peer, CONTEXT(i & 3));

		if (!ret)
			r->posted++;
		else if (ret == -KFI_EAGAIN)
			r->refused++;
		else
			r->bad = ret;
		if (r->cancel && !(i & 1)) {
			ret = kfi_cancel(&r->e->ep->fid, CONTEXT(i & 3));
			if (!ret)
				r->cancels++;
			else if (ret != -KFI_ENOENT)
				r->bad = ret;
		}
		cond_resched();
	}
	return 0;
}

static u64 sum(const struct reader *readers)
{
	return readers[0].good + readers[0].cancelled + readers[0].other +
	       readers[1].good + readers[1].cancelled + readers[1].other;
}

static void cancel_race_of(struct test *t, bool receives, bool sends)
{
	const struct setup setup = { .tx_cq_size = 1024, .rx_cq_size = 1024 };
	atomic_t stop = ATOMIC_INIT(0);
	struct reader rx[2] = {}, tx[2] = {};
	struct race receiver = { .cancel = receives }, sender = { .cancel = sends };
	struct job jobs[6];
	unsigned int i, n = 0;
	struct end a, b;
	u64 received;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	receiver.e = &b;
	sender.e = &a;
	for (i = 0; i < 2; i++) {
		rx[i] = (struct reader) { .cq = b.rx_cq, .stop = &stop };
		tx[i] = (struct reader) { .cq = a.tx_cq, .stop = &stop };
		n += job_start(t, &jobs[n], read_all, &rx[i], ANY_CPU);
		n += job_start(t, &jobs[n], read_all, &tx[i], ANY_CPU);
	}
	i = n;
	n += job_start(t, &jobs[n], post_receives, &receiver, 0);
	n += job_start(t, &jobs[n], post_sends, &sender, other_cpu(0));
	while (n > i)
		expect(t, job_finish(&jobs[--n]), 0);
	/* Messages that nobody receives end by themselves. */
	for (i = 0; i < SOON && sum(tx) < sender.posted; i++)
		usleep_range(1000, 1100);
	/* Receives that nobody uses are cancelled. */
	for (i = 0; i < 4; i++)
		while (!kfi_cancel(&b.ep->fid, CONTEXT(i)))
			receiver.cancels++;
	for (i = 0; i < SOON && sum(rx) < receiver.posted; i++)
		usleep_range(1000, 1100);
	msleep(20);
	atomic_set_release(&stop, 1);
	for (i = 0; i < 4; i++)
		expect(t, job_finish(&jobs[i]), 0);
	expect(t, sum(rx), receiver.posted);
	expect(t, sum(tx), sender.posted);
	received = rx[0].good + rx[1].good;
	expect(t, tx[0].good + tx[1].good, received);
	expect(t, rx[0].other + rx[1].other, 0);
	expect(t, receiver.bad, 0);
	expect(t, sender.bad, 0);
	for (i = 0; i < 2; i++)
		expect_true(t, !tx[i].other || tx[i].err == KFI_EREMOTEIO);
	/* A cancel that succeeds may come too late, but not the other way round. */
	expect_true(t, rx[0].cancelled + rx[1].cancelled <= receiver.cancels);
	expect_true(t, tx[0].cancelled + tx[1].cancelled <= sender.cancels);
	expect_count(t, b.cntr[COUNT_RECV], received, rx[0].cancelled + rx[1].cancelled);
	pr_info("# %llu received, %llu receives and %llu sends cancelled, %llu and %llu refused\n",
		received, rx[0].cancelled + rx[1].cancelled, tx[0].cancelled + tx[1].cancelled,
		receiver.refused, sender.refused);
	pair_close(t, &a, &b);
}

static void cancel_receives(struct test *t)
{
	cancel_race_of(t, true, false);
}

static void cancel_sends(struct test *t)
{
	cancel_race_of(t, false, true);
}

static void cancel_both(struct test *t)
{
	cancel_race_of(t, true, true);
}

/* Random operations, each with its own memory, whose contents are checked. */
#define SLOTS 16
#define SLOT_SIZE (40 << 10)

struct slot {
	enum family family;
	size_t len;
	u32 seed;
	bool at_source;
	bool at_target;
};

struct random_bed {
	struct end a;
	struct end b;
	struct area from;
	struct area to;
	struct kfid_mr *mr;
	struct slot slots[SLOTS];
	u64 key;
	unsigned int rounds;
	u64 done[FAMILIES];
	struct test t;
};

static u8 *slot_at(struct area *area, unsigned int i)
{
	return area->data + i * SLOT_SIZE;
}

static void slot_post(struct random_bed *bed, unsigned int i)
{
	static const enum family families[] = { F_SEND, F_TSEND, F_WRITE, F_READ };
	struct slot *slot = &bed->slots[i];
	struct kvec piece;
	struct test *t = &bed->t;
	ssize_t ret;
	size_t at;
	u8 *from, *to;

	slot->family = families[get_random_u32_below(4)];
	slot->len = get_random_u32_below(8) ? get_random_u32_below(300) :
					      get_random_u32_below(SLOT_SIZE);
	slot->seed = get_random_u32();
	from = slot_at(slot->family == F_READ ? &bed->to : &bed->from, i);
	to = slot_at(slot->family == F_READ ? &bed->from : &bed->to, i);
	for (at = 0; at < slot->len; at++)
		from[at] = pattern(slot->seed, at);
	memset(to, FILL, min_t(size_t, slot->len + 8, SLOT_SIZE));
	piece = (struct kvec) { to, SLOT_SIZE };
	slot->at_source = true;
	slot->at_target = slot->family == F_SEND || slot->family == F_TSEND;
	switch (slot->family) {
	case F_TSEND:
		/* Some are received before they are sent and some after. */
		if (slot->seed & 1)
			expect(t, kfi_trecv(bed->b.ep, to, SLOT_SIZE, NULL, KFI_ADDR_UNSPEC, i, 0,
					    CONTEXT(i)), 0);
		expect(t, kfi_tsend(bed->a.ep, from, slot->len, NULL, bed->a.peer, i, CONTEXT(i)),
		       0);
		if (!(slot->seed & 1))
			expect(t, kfi_trecvv(bed->b.ep, &piece, NULL, 1, bed->b.peer, i, 0,
					     CONTEXT(i)), 0);
		break;
	case F_SEND:
		slot->family = F_TSEND;
		expect(t, kfi_trecv(bed->b.ep, to, SLOT_SIZE, NULL, KFI_ADDR_UNSPEC, i | 0x100,
				    0xff000, CONTEXT(i)), 0);
		ret = kfi_tsenddata(bed->a.ep, from, slot->len, NULL, slot->seed, bed->a.peer,
				    i | 0x100, CONTEXT(i));
		expect(t, ret, 0);
		break;
	case F_WRITE:
		expect(t, kfi_write(bed->a.ep, from, slot->len, NULL, bed->a.peer, i * SLOT_SIZE,
				    bed->key, CONTEXT(i)), 0);
		break;
	default:
		expect(t, kfi_read(bed->a.ep, to, slot->len, NULL, bed->a.peer, i * SLOT_SIZE,
				   bed->key, CONTEXT(i)), 0);
		break;
	}
}

/* Both sides are done: looks at the memory. */
static void slot_check(struct random_bed *bed, unsigned int i)
{
	struct slot *slot = &bed->slots[i];
	struct area *target = slot->family == F_READ ? &bed->from : &bed->to;
	u8 *to = slot_at(target, i);
	size_t at;

	for (at = 0; at < slot->len; at++) {
		if (to[at] == pattern(slot->seed, at))
			continue;
		bed->t.failed = true;
		pr_info("# slot %u, family %d, byte %zu of %zu: %#x\n", i, slot->family, at,
			slot->len, to[at]);
		return;
	}
	if (slot->len < SLOT_SIZE)
		expect(&bed->t, to[slot->len], FILL);
	bed->done[slot->family]++;
}

static bool slot_completes(struct random_bed *bed, struct kfid_cq *cq, bool target)
{
	struct kfi_cq_tagged_entry entry;
	unsigned long i;
	struct slot *slot;
	ssize_t ret = kfi_cq_read(cq, &entry, 1);

	if (ret == -KFI_EAGAIN)
		return false;
	if (!expect(&bed->t, ret, 1))
		return false;
	i = entry.op_context - CONTEXT(0);
	if (!expect_true(&bed->t, i < SLOTS))
		return false;
	slot = &bed->slots[i];
	expect(&bed->t, entry.len,
	       entry.flags == SENT || entry.flags == TSENT ? 0 : slot->len);
	expect_true(&bed->t, target ? slot->at_target : slot->at_source);
	*(target ? &slot->at_target : &slot->at_source) = false;
	/* Once its completion was seen an operation cannot be cancelled. */
	if (!target)
		expect(&bed->t, kfi_cancel(&bed->a.ep->fid, entry.op_context), -KFI_ENOENT);
	if (!slot->at_source && !slot->at_target)
		slot_check(bed, i);
	return true;
}

static long random_operations(void *arg)
{
	struct random_bed *bed = arg;
	unsigned int i, done, idle = 0, busy;

	for (done = 0; done < bed->rounds && !bed->t.failed;) {
		busy = 0;
		for (i = 0; i < SLOTS; i++) {
			struct slot *slot = &bed->slots[i];

			if (slot->at_source || slot->at_target) {
				busy++;
				continue;
			}
			slot_post(bed, i);
			done++;
		}
		if (slot_completes(bed, bed->a.tx_cq, false) |
		    slot_completes(bed, bed->b.rx_cq, true)) {
			idle = 0;
		} else if (++idle > 100 * SOON) {
			pr_info("# nothing happens, %u operations under way\n", busy);
			bed->t.failed = true;
		} else {
			usleep_range(10, 20);
		}
		cond_resched();
	}
	for (idle = 0; idle < SOON;) {
		for (i = 0, busy = 0; i < SLOTS; i++)
			busy += bed->slots[i].at_source || bed->slots[i].at_target;
		if (!busy || bed->t.failed)
			break;
		if (!(slot_completes(bed, bed->a.tx_cq, false) |
		      slot_completes(bed, bed->b.rx_cq, true))) {
			usleep_range(1000, 1100);
			idle++;
		}
	}
	expect(&bed->t, busy, 0);
	return bed->t.failed;
}

static void random_stress(struct test *t)
{
	static struct random_bed beds[2];
	struct job jobs[2];
	unsigned int i, n = 0;

	memset(beds, 0, sizeof(beds));
	for (i = 0; i < 2; i++) {
		struct random_bed *bed = &beds[i];

		bed->rounds = rounds / 4;
		bed->key = 1 + i;
		if (!pair_open(t, &bed->a, &bed->b, NULL, NULL))
			break;
		if (!area_alloc(t, &bed->from, MEM_VMALLOC, i, SLOTS * SLOT_SIZE) ||
		    !area_alloc(t, &bed->to, MEM_VMALLOC, 1, SLOTS * SLOT_SIZE))
			break;
		expect(t, kfi_mr_reg(bed->b.domain, bed->to.data, SLOTS * SLOT_SIZE,
				     KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0, bed->key, 0, &bed->mr,
				     NULL), 0);
		if (!bed->mr)
			break;
	}
	for (i = 0; i < 2 && beds[i].mr; i++)
		if (job_start(t, &jobs[n], random_operations, &beds[i], i))
			n++;
	for (i = 0; i < n; i++)
		expect(t, job_finish(&jobs[i]), 0);
	for (i = 0; i < 2; i++) {
		struct random_bed *bed = &beds[i];

		pr_info("# %llu messages, %llu writes, %llu reads\n", bed->done[F_TSEND],
			bed->done[F_WRITE], bed->done[F_READ]);
		if (bed->mr)
			close_fid(t, &bed->mr->fid);
		pair_close(t, &bed->a, &bed->b);
		area_free(&bed->from);
		area_free(&bed->to);
	}
}

/* Writes to a region that comes and goes. */
struct writer {
	struct end *e;
	atomic_t stop;
	u64 good;
	u64 rejected;
	int bad;
	u8 *from;
	size_t len;
};

static long write_always(void *arg)
{
	struct writer *w = arg;

	while (!atomic_read(&w->stop)) {
		struct kfi_cq_err_entry error = {};
		struct kfi_cq_tagged_entry entry;
		ssize_t ret = kfi_write(w->e->ep, w->from, w->len, NULL, w->e->peer, 0, 1, NULL);

		if (ret) {
			w->bad = ret;
			return 0;
		}
		ret = kfi_cq_sread(w->e->tx_cq, &entry, 1, NULL, SOON);
		if (ret == 1) {
			w->good++;
			continue;
		}
		if (ret != -KFI_EAVAIL || kfi_cq_readerr(w->e->tx_cq, &error, 0) != 1) {
			w->bad = ret ?: -1;
			return 0;
		}
		/* There is none, or one that may only be read. */
		if (error.err == KFI_EKEYREJECTED || error.err == KFI_EACCES)
			w->rejected++;
		else
			w->bad = error.err;
	}
	return 0;
}

/* A counter of the domain of an endpoint. */
static struct kfid_cntr *open_cntr_for(struct test *t, struct end *e)
{
	struct kfi_cntr_attr attr = {};
	struct kfid_cntr *cntr = NULL;

	expect(t, kfi_cntr_open(e->domain, &attr, &cntr, NULL), 0);
	return cntr;
}

static void region_race_of(struct test *t, size_t len, unsigned int times)
{
	struct writer writer = { .len = len };
	struct kfid_cntr *never;
	struct area from;
	unsigned int i;
	struct job job;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!area_alloc(t, &from, MEM_KMALLOC, 0, len))
		goto close;
	never = open_cntr_for(t, &b);
	if (!never)
		goto free;
	writer.e = &a;
	writer.from = from.data;
	if (job_start(t, &job, write_always, &writer, other_cpu(0))) {
		for (i = 0; i < times && !writer.bad; i++) {
			/* Its own memory: KASAN sees who comes too late. */
			u8 *target = kmalloc(len, GFP_KERNEL);
			struct kfid_mr *mr = NULL;

			if (!expect_true(t, target))
				break;
			mr = region_open(t, &b, target, len,
					 i % 4 ? KFI_REMOTE_WRITE : KFI_REMOTE_READ, 1);
			/* Its successor does not count what was written to a region. */
			if (mr && !(i % 4))
				expect(t, kfi_mr_bind(mr, &never->fid, KFI_REMOTE_WRITE), 0);
			if (get_random_u32_below(2))
				usleep_range(10, 200);
			if (mr)
				close_fid(t, &mr->fid);
			kfree(target);
		}
		atomic_set(&writer.stop, 1);
		expect(t, job_finish(&job), 0);
	}
	expect(t, writer.bad, 0);
	pr_info("# %llu writes good, %llu rejected\n", writer.good, writer.rejected);
	expect_count(t, a.cntr[COUNT_WRITE], writer.good, writer.rejected);
	expect_count(t, b.cntr[COUNT_REMOTE_WRITE], writer.good, 0);
	expect_count(t, never, 0, 0);
	close_fid(t, &never->fid);
free:
	area_free(&from);
close:
	pair_close(t, &a, &b);
}

static void region_race(struct test *t)
{
	region_race_of(t, 64, rounds / 50);
	region_race_of(t, 100000, rounds / 100);
}

/* Sends to an endpoint that comes and goes. */
struct spammer {
	struct end *e;
	atomic_t stop;
	u64 posted;
	u64 good;
	u64 failed;
	u8 *from;
	int bad;
};

static long send_always(void *arg)
{
	struct spammer *s = arg;
	unsigned int i = 0;

	while (!atomic_read(&s->stop) || s->good + s->failed < s->posted) {
		struct kfi_cq_err_entry error = {};
		struct kfi_cq_tagged_entry entry;
		ssize_t ret;

		if (!atomic_read(&s->stop)) {
			ret = kfi_send(s->e->ep, s->from, i++ & 7 ? 64 : 20000, NULL, s->e->peer,
				       CONTEXT(1));
			if (!ret)
				s->posted++;
			else if (ret != -KFI_EAGAIN)
				s->bad = ret;
		}
		ret = kfi_cq_read(s->e->tx_cq, &entry, 1);
		if (ret == 1) {
			s->good++;
		} else if (ret == -KFI_EAVAIL && kfi_cq_readerr(s->e->tx_cq, &error, 0) == 1) {
			s->failed++;
			if (error.err != KFI_EHOSTUNREACH && error.err != KFI_EREMOTEIO)
				s->bad = error.err;
		} else if (ret != -KFI_EAGAIN) {
			s->bad = ret;
		} else {
			usleep_range(10, 20);
		}
		if (s->bad)
			return s->bad;
	}
	return 0;
}

static void endpoint_race(struct test *t)
{
	struct kfi_info *info = kfi_dupinfo(nic_info[1]);
	struct spammer spammer = {};
	unsigned int i, j;
	struct area from;
	u64 ended = 0;
	struct job job;
	struct end a, b;
	size_t len = 8;
	u8 name[8];

	if (!expect_true(t, info) || !pair_open(t, &a, &b, NULL, NULL))
		return;
	/* The same address again and again. */
	expect(t, kfi_getname(&b.ep->fid, name, &len), 0);
	kfree(info->src_addr);
	info->src_addr = kmemdup(name, 8, GFP_KERNEL);
	info->src_addrlen = 8;
	close_fid(t, &b.ep->fid);
	b.ep = NULL;
	if (!area_alloc(t, &from, MEM_KMALLOC, 0, 20000))
		goto close;
	spammer.e = &a;
	spammer.from = from.data;
	if (job_start(t, &job, send_always, &spammer, other_cpu(0))) {
		for (i = 0; i < rounds / 500 && !t->failed; i++) {
			u8 *to = kmalloc(20000, GFP_KERNEL);
			struct kfid_ep *ep;

			if (!to || !expect(t, kfi_endpoint(b.domain, info, &ep, NULL), 0)) {
				kfree(to);
				break;
			}
			expect(t, kfi_ep_bind(ep, &b.av->fid, 0), 0);
			expect(t, kfi_ep_bind(ep, &b.tx_cq->fid, KFI_TRANSMIT), 0);
			expect(t, kfi_ep_bind(ep, &b.rx_cq->fid, KFI_RECV), 0);
			expect(t, kfi_ep_bind(ep, &b.cntr[COUNT_RECV]->fid, KFI_RECV), 0);
			expect(t, kfi_enable(ep), 0);
			for (j = 0; j < get_random_u32_below(20); j++)
				expect(t, kfi_recv(ep, to, 20000, NULL, KFI_ADDR_UNSPEC,
						   CONTEXT(2)), 0);
			if (get_random_u32_below(2))
				usleep_range(10, 500);
			close_fid(t, &ep->fid);
			kfree(to);
			ended += drain(t, b.rx_cq, CONTEXT(2)).failed;
		}
		atomic_set(&spammer.stop, 1);
		expect(t, job_finish(&job), 0);
	}
	pr_info("# %llu sent, %llu failed\n", spammer.good, spammer.failed);
	expect(t, spammer.good + spammer.failed, spammer.posted);
	expect_count(t, a.cntr[COUNT_SEND], spammer.good, spammer.failed);
	expect_count(t, b.cntr[COUNT_RECV], spammer.good, ended);
	expect_true(t, ended <= spammer.failed);
	area_free(&from);
close:
	kfi_freeinfo(info);
	pair_close(t, &a, &b);
}

/* Several threads post to one endpoint, several receive from it. */
struct sharer {
	struct end *e;
	bool receive;
	u64 posted;
	int bad;
};

static long share(void *arg)
{
	static u8 bytes[64];
	struct sharer *s = arg;

	while (s->posted < rounds / 4) {
		ssize_t ret = s->receive ?
			kfi_recv(s->e->ep, bytes, 64, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)) :
			kfi_send(s->e->ep, bytes, 64, NULL, s->e->peer, CONTEXT(2));

		if (!ret) {
			s->posted++;
			continue;
		}
		if (ret != -KFI_EAGAIN) {
			s->bad = ret;
			return ret;
		}
		usleep_range(10, 20);
	}
	return 0;
}

static void shared_endpoint(struct test *t)
{
	atomic_t stop = ATOMIC_INIT(0);
	struct sharer sharers[4] = {};
	struct reader readers[4] = {};
	const u64 total = rounds / 4 * 2;
	u64 given_up = 0;
	struct job jobs[8];
	unsigned int i, n = 0;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	for (i = 0; i < 4; i++) {
		readers[i] = (struct reader) {
			.cq = i & 1 ? a.tx_cq : b.rx_cq,
			.stop = &stop,
		};
		n += job_start(t, &jobs[n], read_all, &readers[i], ANY_CPU);
	}
	for (i = 0; i < 4; i++) {
		sharers[i] = (struct sharer) { i & 1 ? &a : &b, !(i & 1) };
		n += job_start(t, &jobs[n], share, &sharers[i], i / 2);
	}
	while (n > 4)
		expect(t, job_finish(&jobs[--n]), 0);
	/* On a busy machine nobody may have received in time. */
	for (i = 0; i < 10 * SOON; i++) {
		given_up = READ_ONCE(readers[1].other) + READ_ONCE(readers[3].other);
		if (READ_ONCE(readers[1].good) + READ_ONCE(readers[3].good) + given_up == total)
			break;
		usleep_range(1000, 1100);
	}
	/* As many receives are left. */
	for (i = 0; i < given_up; i++)
		expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), -KFI_ENOENT);
	expect_count(t, a.cntr[COUNT_SEND], total - given_up, given_up);
	expect_count(t, b.cntr[COUNT_RECV], total - given_up, given_up);
	atomic_set_release(&stop, 1);
	while (n)
		expect(t, job_finish(&jobs[--n]), 0);
	expect(t, readers[0].good + readers[2].good, total - given_up);
	expect(t, readers[0].cancelled + readers[2].cancelled, given_up);
	expect(t, readers[1].good + readers[3].good, total - given_up);
	for (i = 0; i < 4; i++) {
		expect(t, i & 1 ? readers[i].cancelled : readers[i].other, 0);
		expect_true(t, !readers[i].other || readers[i].err == KFI_EREMOTEIO);
	}
	if (given_up)
		pr_info("# %llu messages were not received in time\n", given_up);
	pair_close(t, &a, &b);
}

/* Operations that wait for fences, cancelled and closed at any moment. */
static void fence_race(struct test *t)
{
	struct kvec iov = { NULL, 0 };
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1 };
	atomic_t stop = ATOMIC_INIT(0);
	struct reader reader;
	unsigned int i, j, n;
	struct end a, b;
	struct job job;

	for (i = 0; i < max(rounds / 500, 10U) && !t->failed; i++) {
		u64 posted = 0;

		if (!pair_open(t, &a, &b, NULL, NULL))
			return;
		atomic_set(&stop, 0);
		reader = (struct reader) { .cq = a.tx_cq, .stop = &stop };
		msg.addr = a.peer;
		if (!job_start(t, &job, read_all, &reader, other_cpu(0))) {
			pair_close(t, &a, &b);
			return;
		}
		for (j = 0; j < 40; j++) {
			msg.context = CONTEXT(j & 1);
			if (!kfi_sendmsg(a.ep, &msg, j % 3 ? 0 : KFI_FENCE))
				posted++;
			if (j & 4)
				expect(t, kfi_recv(b.ep, NULL, 0, NULL, KFI_ADDR_UNSPEC, NULL), 0);
			if (!(j & 7))
				kfi_cancel(&a.ep->fid, CONTEXT(j & 1));
		}
		if (i & 1) {
			/* All of it ends. */
			for (n = 0; n < 40; n++)
				expect(t, kfi_recv(b.ep, NULL, 0, NULL, KFI_ADDR_UNSPEC, NULL), 0);
			for (n = 0; n < SOON; n++) {
				if (READ_ONCE(reader.good) + READ_ONCE(reader.cancelled) >= posted)
					break;
				usleep_range(1000, 1100);
			}
			expect(t, reader.good + reader.cancelled, posted);
			expect(t, reader.other, 0);
		}
		close_fid(t, &a.ep->fid);
		a.ep = NULL;
		atomic_set_release(&stop, 1);
		expect(t, job_finish(&job), 0);
		expect_true(t, reader.good + reader.cancelled <= posted);
		pair_close(t, &a, &b);
	}
}

/*
 * Two send to buffers for several messages, from two CPUs, some of which are
 * cancelled: nothing names a buffer any more after its release.
 */
struct flood {
	struct end *e;
	int bad;
};

static long send_all(void *arg)
{
	struct kfi_cq_tagged_entry entry;
	struct flood *f = arg;
	static u8 bytes[8];
	unsigned int i, ended = 0;

	for (i = 0; i < rounds || ended < rounds;) {
		ssize_t ret = -KFI_EAGAIN;

		if (i < rounds)
			ret = kfi_send(f->e->ep, bytes, 8, NULL, f->e->peer, NULL);
		if (!ret)
			i++;
		else if (ret != -KFI_EAGAIN)
			return ret;
		ret = kfi_cq_read(f->e->tx_cq, &entry, 1);
		if (ret == 1)
			ended++;
		else if (ret != -KFI_EAGAIN)
			return ret;
		cond_resched();
	}
	return 0;
}

static ssize_t post_buffer(struct end *e, void *buf, size_t len, unsigned int number)
{
	struct kvec iov = { buf, len };
	struct kfi_msg msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = KFI_ADDR_UNSPEC,
		.context = CONTEXT(number),
	};

	return kfi_recvmsg(e->ep, &msg, KFI_MULTI_RECV);
}

static void release_last(struct test *t)
{
	enum { BUFFERS = 4, LEN = 64 };
	const struct setup setup = { .rx_cq_size = 16 };
	unsigned int i, posted = 0, owed = 0, received = 0, cancelled = 0, late = 0;
	struct end a, b, c;
	struct flood floods[2] = { { &a }, { &c } };
	struct job jobs[2];
	static u8 memory[LEN];
	size_t min = 1;
	u8 *released;

	/* Each buffer takes 8 messages, unless it is cancelled. */
	released = kvzalloc(rounds + 64, GFP_KERNEL);
	if (!expect_true(t, released))
		return;
	if (!pair_open(t, &a, &b, NULL, &setup))
		goto free;
	if (!end_open(t, &c, 0, NULL))
		goto close;
	if (!end_knows(t, &c, b.ep, &c.peer))
		goto close_third;
	expect(t, kfi_setopt(&b.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &min,
			     sizeof(min)), 0);
	while (posted < BUFFERS)
		expect(t, post_buffer(&b, memory, LEN, posted++), 0);
	for (i = 0; i < 2; i++)
		if (!job_start(t, &jobs[i], send_all, &floods[i], i ? other_cpu(0) : 0))
			goto close_third;
	while (received < 2 * rounds && !t->failed) {
		struct kfi_cq_tagged_entry entry = {};
		struct kfi_cq_err_entry error = {};
		unsigned long number;
		bool last;
		ssize_t ret;

		ret = kfi_cq_sread(b.rx_cq, &entry, 1, NULL, SOON);
		if (ret == -KFI_EAVAIL) {
			if (!expect(t, kfi_cq_readerr(b.rx_cq, &error, 0), 1) ||
			    !expect(t, error.err, KFI_ECANCELED))
				break;
			entry.op_context = error.op_context;
			last = true;
			cancelled++;
		} else if (expect(t, ret, 1)) {
			last = entry.flags & KFI_MULTI_RECV;
			received++;
		} else {
			break;
		}
		number = entry.op_context - CONTEXT(0);
		if (!expect_true(t, number < posted))
			break;
		late += released[number];
		if (last) {
			released[number] = 1;
			owed++;
		}
		/* As soon as nothing lies behind the queue. */
		while (owed) {
			ret = post_buffer(&b, memory, LEN, posted);
			if (ret == -KFI_EAGAIN)
				break;
			if (!expect(t, ret, 0) || !expect_true(t, posted < rounds + 64))
				break;
			owed--;
			if (!(posted++ % 16)) {
				ret = kfi_cancel(&b.ep->fid, CONTEXT(posted - 3));
				expect_true(t, !ret || ret == -KFI_ENOENT);
			}
		}
	}
	expect(t, late, 0);
	for (i = 0; i < 2; i++)
		expect(t, job_finish(&jobs[i]), 0);
	pr_info("# %u messages, %u buffers, %u cancelled\n", received, posted, cancelled);
close_third:
	end_close(t, &c);
close:
	pair_close(t, &a, &b);
free:
	kvfree(released);
}

const struct test_case stress_tests[] = {
	{ "stress/release-last", "", release_last },
	{ "stress/random", "", random_stress },
	{ "stress/shared-endpoint", "R-CNTR-18", shared_endpoint },
	{ "stress/cancel-receives", "R-TRIG-26", cancel_receives },
	{ "stress/cancel-sends", "R-TRIG-26", cancel_sends },
	{ "stress/cancel-both", "R-TRIG-26", cancel_both },
	{ "stress/regions", "", region_race },
	{ "stress/endpoints", "R-CLOSE-4", endpoint_race },
	{ "stress/fences", "R-CLOSE-4", fence_race },
	{}
};
