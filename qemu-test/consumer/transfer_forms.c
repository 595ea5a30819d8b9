// SPDX-License-Identifier: GPL-2.0
/*
 * Every operation in every form and size, with memory of every kind. Flags of
 * completions are compared by equality, memory by a pattern and with what is
 * around it.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/string.h>

#include "transfer.h"

#define DATA 0x1122334455667788ULL
#define TAG 0xfedcba9876543210ULL
#define LARGEST (1UL << 20)

static const size_t sizes[] = {
	1, 8, 63, 1024, 1025, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1,
	16 << 10, (16 << 10) + 1, 64 << 10, LARGEST,
};

/* Two endpoints and memory on both sides. */
struct bed {
	struct end a;
	struct end b;
	struct area from;
	struct area to;
	u32 seed;
	u64 counts[COUNTERS];
};

static void bed_close(struct test *t, struct bed *bed)
{
	pair_close(t, &bed->a, &bed->b);
	area_free(&bed->from);
	area_free(&bed->to);
}

static bool bed_open(struct test *t, struct bed *bed)
{
	*bed = (struct bed) {};
	if (!pair_open(t, &bed->a, &bed->b, NULL, NULL))
		return false;
	return true;
}

static bool bed_memory(struct test *t, struct bed *bed, enum memory from,
		       enum memory to, size_t offset, size_t len)
{
	area_free(&bed->from);
	area_free(&bed->to);
	if (!area_alloc(t, &bed->from, from, offset, len) ||
	    !area_alloc(t, &bed->to, to, offset / 2, len))
		return false;
	area_fill(&bed->from, ++bed->seed);
	return true;
}

static bool has_data(enum form form)
{
	return form == FORM_DATA || form == FORM_INJECT_DATA;
}

static bool is_inject(enum form form)
{
	return form == FORM_INJECT || form == FORM_INJECT_DATA;
}

/* One message, with or without a tag, in one form on either side. */
static void exchange(struct test *t, struct bed *bed, bool tagged,
		     enum form form, enum form receive_form, size_t len,
		     u64 flags, bool late)
{
	struct op receive = {
		.family = tagged ? F_TRECV : F_RECV,
		.form = receive_form,
		.buf = bed->to.data,
		.len = len,
		.peer = KFI_ADDR_UNSPEC,
		.tag = TAG ^ 0xff,
		.ignore = 0xff,
		.context = CONTEXT(1),
	};
	struct op send = {
		.family = tagged ? F_TSEND : F_SEND,
		.form = form,
		.buf = bed->from.data,
		.len = len,
		.flags = flags,
		.peer = bed->a.peer,
		.tag = TAG,
		.data = DATA,
		.context = CONTEXT(2),
	};
	bool data = has_data(form) || (flags & KFI_REMOTE_CQ_DATA);
	struct kfi_cq_tagged_entry entry;

	if (!late)
		expect(t, op_post(bed->b.ep, &receive), 0);
	expect(t, op_post(bed->a.ep, &send), 0);
	if (is_inject(form) || (flags & KFI_INJECT))
		memset(bed->from.data, 0, len);
	if (late)
		expect(t, op_post(bed->b.ep, &receive), 0);
	if (await(t, bed->b.rx_cq, &entry, NULL)) {
		u64 want = tagged ? TRECEIVED : RECEIVED;

		if (data)
			want |= KFI_REMOTE_CQ_DATA;
		expect(t, entry.op_context == CONTEXT(1), true);
		expect(t, entry.flags, want);
		expect(t, entry.len, len);
		expect(t, entry.data, data ? DATA : 0);
		expect(t, entry.tag, tagged ? TAG : 0);
		expect_true(t, !entry.buf);
	}
	if (is_inject(form))
		expect_nothing(t, bed->a.tx_cq);
	else
		expect_completion(t, bed->a.tx_cq, CONTEXT(2), tagged ? TSENT : SENT, len);
	area_has(t, &bed->to, bed->seed, 0, len, 0);
	bed->counts[COUNT_SEND]++;
	bed->counts[COUNT_RECV]++;
}

/* Counters and queues have what was transferred, and nothing else. */
static void settle(struct test *t, struct bed *bed)
{
	unsigned int i;

	for (i = 0; i < COUNTERS; i++) {
		bool target = i == COUNT_RECV || i == COUNT_REMOTE_READ ||
			      i == COUNT_REMOTE_WRITE;

		expect_count(t, bed->a.cntr[i], target ? 0 : bed->counts[i], 0);
		expect_count(t, bed->b.cntr[i], target ? bed->counts[i] : 0, 0);
	}
	expect_nothing(t, bed->a.tx_cq);
	expect_nothing(t, bed->a.rx_cq);
	expect_nothing(t, bed->b.tx_cq);
	expect_nothing(t, bed->b.rx_cq);
}

static void messages(struct test *t, bool tagged)
{
	enum form form, other;
	unsigned int i, late;
	struct bed bed;

	if (!bed_open(t, &bed))
		return;
	for (i = 0; i < ARRAY_SIZE(sizes) && !t->failed; i++) {
		for (form = 0; form < FORMS && !t->failed; form++) {
			/* Of the large ones a few are enough. */
			if (sizes[i] > 64 << 10 && form != FORM_PLAIN &&
			    form != FORM_MSG_BVEC && form != FORM_SGL)
				continue;
			if (is_inject(form) && sizes[i] > 1024)
				continue;
			other = form_exists(F_RECV, form) ? form : FORM_KVEC;
			for (late = 0; late < 2 && !t->failed; late++) {
				/* Vectors have room for so many pages. */
				enum memory memory = sizes[i] == LARGEST ? MEM_KMALLOC :
						     (i + form + late) % MEMORIES;

				if (bed_memory(t, &bed, memory, MEM_KMALLOC + !memory *
					       (sizes[i] != LARGEST), i * 37, sizes[i]))
					exchange(t, &bed, tagged, form, other, sizes[i],
						 KFI_COMPLETION, late);
			}
			say(t, "%s, %zu bytes, late %u", form_name(form), sizes[i], late);
		}
	}
	/* Forms on one side do not depend on those on the other. */
	for (form = 0; form < FORMS && !t->failed; form++) {
		for (other = 0; other < FORM_DATA && !t->failed; other++) {
			if (bed_memory(t, &bed, MEM_VMALLOC, MEM_VMALLOC, 4000, 1000))
				exchange(t, &bed, tagged, form, other, 1000, 0, false);
		}
		say(t, "%s to %s", form_name(form), form_name(other));
	}
	settle(t, &bed);
	bed_close(t, &bed);
}

static void untagged_forms(struct test *t)
{
	messages(t, false);
}

static void tagged_forms(struct test *t)
{
	messages(t, true);
}

/* Flags of calls: none of them gets into the completion. */
static void message_flags(struct test *t)
{
	static const u64 flags[] = {
		0, KFI_COMPLETION, KFI_INJECT, KFI_INJECT_COMPLETE,
		KFI_TRANSMIT_COMPLETE, KFI_DELIVERY_COMPLETE, KFI_FENCE,
		KFI_REMOTE_CQ_DATA, KFI_COMPLETION | KFI_REMOTE_CQ_DATA | KFI_INJECT,
	};
	unsigned int i, tagged;
	struct bed bed;

	if (!bed_open(t, &bed))
		return;
	for (i = 0; i < ARRAY_SIZE(flags) && !t->failed; i++) {
		for (tagged = 0; tagged < 2; tagged++) {
			if (bed_memory(t, &bed, MEM_KMALLOC, MEM_KMALLOC, 1, 1000))
				exchange(t, &bed, tagged, FORM_MSG_KVEC, FORM_MSG_SGL,
					 1000, flags[i], i & 1);
			if (bed_memory(t, &bed, MEM_KMALLOC, MEM_KMALLOC, 1, 1000))
				exchange(t, &bed, tagged, FORM_MSG_KVEC, FORM_MSG_SGL,
					 1000, flags[i], true);
		}
		say(t, "flags %#llx", flags[i]);
	}
	settle(t, &bed);
	bed_close(t, &bed);
}

static void empty_messages(struct test *t)
{
	unsigned int form, tagged, late;
	struct bed bed;

	if (!bed_open(t, &bed))
		return;
	for (form = 0; form < FORMS && !t->failed; form++) {
		for (tagged = 0; tagged < 2 && !t->failed; tagged++) {
			for (late = 0; late < 2 && !t->failed; late++) {
				if (bed_memory(t, &bed, MEM_KMALLOC, MEM_KMALLOC, 1, 0))
					exchange(t, &bed, tagged, form,
						 form_exists(F_RECV, form) ? form : FORM_SGL,
						 0, 0, late);
			}
		}
		say(t, "%s", form_name(form));
	}
	settle(t, &bed);
	bed_close(t, &bed);
}

/* One transfer from or to a region at an offset of 5 bytes. */
static void access_region(struct test *t, struct bed *bed, bool write,
			  enum form form, size_t len, u64 flags)
{
	struct area *local = write ? &bed->from : &bed->to;
	struct area *remote = write ? &bed->to : &bed->from;
	struct op op = {
		.family = write ? F_WRITE : F_READ,
		.form = form,
		.buf = local->data,
		.len = len,
		.flags = flags,
		.peer = bed->a.peer,
		.addr = 5,
		.key = 9,
		.data = DATA,
		.context = CONTEXT(3),
	};
	bool data = has_data(form) || (flags & KFI_REMOTE_CQ_DATA);
	struct kfi_cq_tagged_entry entry;
	struct kfid_mr *mr;

	/* The region has 5 bytes before what is used, and nothing behind. */
	mr = region_open(t, &bed->b, remote->data - 5, len + 5,
			 write ? KFI_REMOTE_WRITE : KFI_REMOTE_READ, 9);
	if (!mr)
		return;
	expect(t, op_post(bed->a.ep, &op), 0);
	if (is_inject(form)) {
		memset(bed->from.data, 0, len);
		expect_count(t, bed->b.cntr[COUNT_REMOTE_WRITE],
			     bed->counts[COUNT_REMOTE_WRITE] + 1, 0);
		expect_nothing(t, bed->a.tx_cq);
	} else {
		expect_completion(t, bed->a.tx_cq, CONTEXT(3), write ? WRITTEN : READ_DONE,
				  len);
	}
	if (data && await(t, bed->b.rx_cq, &entry, NULL)) {
		expect(t, entry.flags, KFI_REMOTE_CQ_DATA | KFI_RMA |
		       (write ? KFI_REMOTE_WRITE : KFI_REMOTE_READ));
		expect(t, entry.len, len);
		expect(t, entry.data, DATA);
		expect_true(t, !entry.op_context);
	}
	area_has(t, &bed->to, bed->seed, 0, len, 0);
	close_fid(t, &mr->fid);
	bed->counts[write ? COUNT_WRITE : COUNT_READ]++;
	bed->counts[write ? COUNT_REMOTE_WRITE : COUNT_REMOTE_READ]++;
}

static void rma(struct test *t, bool write)
{
	enum family family = write ? F_WRITE : F_READ;
	enum memory memory;
	struct bed bed;
	unsigned int i;
	enum form form;

	if (!bed_open(t, &bed))
		return;
	for (i = 0; i < ARRAY_SIZE(sizes) && !t->failed; i++) {
		for (form = 0; form < FORMS && !t->failed; form++) {
			if (!form_exists(family, form))
				continue;
			if (is_inject(form) && sizes[i] > 1024)
				continue;
			memory = sizes[i] == LARGEST ? MEM_KMALLOC : (i + form) % MEMORIES;
			if (bed_memory(t, &bed, memory, sizes[i] == LARGEST ? memory :
				       !memory, i * 11, sizes[i]))
				access_region(t, &bed, write, form, sizes[i], KFI_COMPLETION);
			say(t, "%s, %zu bytes", form_name(form), sizes[i]);
		}
	}
	for (form = 0; form < FORMS && !t->failed; form++) {
		if (form_exists(family, form) &&
		    bed_memory(t, &bed, MEM_KMALLOC, MEM_KMALLOC, 1, 0))
			access_region(t, &bed, write, form, 0, KFI_FENCE);
		say(t, "%s, empty", form_name(form));
	}
	if (bed_memory(t, &bed, MEM_KMALLOC, MEM_KMALLOC, 1, 100))
		access_region(t, &bed, write, FORM_MSG_SGL, 100,
			      KFI_REMOTE_CQ_DATA | KFI_DELIVERY_COMPLETE);
	settle(t, &bed);
	bed_close(t, &bed);
}

static void writes(struct test *t)
{
	rma(t, true);
}

static void reads(struct test *t)
{
	rma(t, false);
}

/* A tagged receive as a region for one use, that may be shorter. */
static void hit(struct test *t, struct bed *bed, bool write, enum form form,
		size_t len, size_t offset, bool late)
{
	struct area *local = write ? &bed->from : &bed->to;
	struct area *remote = write ? &bed->to : &bed->from;
	struct op receive = {
		.family = F_TRECV,
		.form = form,
		.buf = remote->data,
		.len = remote->len,
		.peer = KFI_ADDR_UNSPEC,
		.tag = TAG,
		.context = CONTEXT(1),
	};
	struct op op = {
		.family = write ? F_WRITE : F_READ,
		.form = form,
		.buf = local->data,
		.len = len,
		.flags = KFI_TAGGED | KFI_COMPLETION,
		.peer = bed->a.peer,
		.addr = offset,
		.key = TAG,
		.context = CONTEXT(3),
	};

	if (!late)
		expect(t, op_post(bed->b.ep, &receive), 0);
	expect(t, op_post(bed->a.ep, &op), 0);
	if (late)
		expect(t, op_post(bed->b.ep, &receive), 0);
	expect_completion(t, bed->a.tx_cq, CONTEXT(3), write ? TWRITTEN : TREAD_DONE, len);
	expect_completion(t, bed->b.rx_cq, CONTEXT(1), write ? TWRITE_HIT : TREAD_HIT, len);
	if (write)
		area_has(t, &bed->to, bed->seed, offset, len, 0);
	else
		area_has(t, &bed->to, bed->seed, 0, len, offset);
	bed->counts[write ? COUNT_WRITE : COUNT_READ]++;
	bed->counts[COUNT_RECV]++;
}

static void tagged_rma(struct test *t)
{
	static const size_t lens[] = { 0, 1, 100, PAGE_SIZE + 1, 64 << 10 };
	unsigned int i, write, late;
	struct bed bed;
	enum form form;

	if (!bed_open(t, &bed))
		return;
	for (i = 0; i < ARRAY_SIZE(lens) && !t->failed; i++) {
		for (form = FORM_MSG_KVEC; form <= FORM_MSG_SGL; form++) {
			for (write = 0; write < 2; write++) {
				for (late = 0; late < 2 && !t->failed; late++) {
					if (bed_memory(t, &bed, MEM_KMALLOC, MEM_VMALLOC, 9,
						       lens[i] + 20))
						hit(t, &bed, write, form, lens[i],
						    late ? 20 : 3, late);
				}
			}
			say(t, "%s, %zu bytes", form_name(form), lens[i]);
		}
	}
	settle(t, &bed);
	bed_close(t, &bed);
}

/* Several local and several remote ranges that end at different places. */
static void many_ranges(struct test *t)
{
	struct kfi_rma_iov remote[3] = {
		{ .addr = 0, .len = 300, .key = 1 },
		{ .addr = 7, .len = 1, .key = 2 },
		{ .addr = 400, .len = 699, .key = 1 },
	};
	struct kvec local[2];
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC,
		.msg_iov = local,
		.iov_count = 2,
		.rma_iov = remote,
		.rma_iov_count = 3,
		.context = CONTEXT(1),
	};
	struct kfid_mr *mr[2];
	struct area back = {};
	struct bed bed;
	u8 small[8] = {};
	size_t i;

	if (!bed_open(t, &bed))
		return;
	if (!bed_memory(t, &bed, MEM_KMALLOC, MEM_VMALLOC, 1, 2000) ||
	    !area_alloc(t, &back, MEM_KMALLOC, 3, 1000))
		goto close;
	mr[0] = region_open(t, &bed.b, bed.to.data, 2000,
			    KFI_REMOTE_READ | KFI_REMOTE_WRITE, 1);
	mr[1] = region_open(t, &bed.b, small, 8, KFI_REMOTE_READ | KFI_REMOTE_WRITE, 2);
	msg.addr = bed.a.peer;
	local[0] = (struct kvec) { bed.from.data, 10 };
	local[1] = (struct kvec) { bed.from.data + 10, 990 };
	expect(t, kfi_writemsg(bed.a.ep, &msg, 0), 0);
	expect_completion(t, bed.a.tx_cq, CONTEXT(1), WRITTEN, 1000);
	for (i = 0; i < 300; i++)
		expect(t, bed.to.data[i], pattern(bed.seed, i));
	expect(t, small[7], pattern(bed.seed, 300));
	for (i = 0; i < 699; i++)
		expect(t, bed.to.data[400 + i], pattern(bed.seed, 301 + i));
	expect(t, bed.to.data[300], FILL);
	expect(t, bed.to.data[399], FILL);
	expect(t, bed.to.data[1099], FILL);

	local[0] = (struct kvec) { back.data, 500 };
	local[1] = (struct kvec) { back.data + 500, 500 };
	expect(t, kfi_readmsg(bed.a.ep, &msg, 0), 0);
	expect_completion(t, bed.a.tx_cq, CONTEXT(1), READ_DONE, 1000);
	area_has(t, &back, bed.seed, 0, 1000, 0);
	bed.counts[COUNT_WRITE] = bed.counts[COUNT_READ] = 1;
	bed.counts[COUNT_REMOTE_WRITE] = bed.counts[COUNT_REMOTE_READ] = 1;
	settle(t, &bed);
	for (i = 0; i < 2; i++) {
		if (mr[i])
			close_fid(t, &mr[i]->fid);
	}
close:
	area_free(&back);
	bed_close(t, &bed);
}

/* Messages of a sender are received in order, whatever their sizes. */
static void order(struct test *t)
{
	/* Few enough for all to be sent, and received, while none is given up. */
	enum { COUNT = 20 };
	unsigned int i, round;
	struct bed bed;

	if (!bed_open(t, &bed))
		return;
	if (!bed_memory(t, &bed, MEM_VMALLOC, MEM_VMALLOC, 1, COUNT * 40000))
		goto close;
	for (round = 0; round < 4 && !t->failed; round++) {
		size_t len[COUNT], at = 0;

		area_clear(&bed.to);
		for (i = 0; i < COUNT; i++)
			len[i] = get_random_u32_below(3) ? 100 : 30000 + i;
		for (i = 0; i < COUNT; i++) {
			/* Posted before, after or in between. */
			if (round != 1)
				expect(t, kfi_recv(bed.b.ep, bed.to.data + i * 40000, 40000,
						   NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
			if (round == 2)
				expect(t, kfi_send(bed.a.ep, bed.from.data + i * 40000, len[i],
						   NULL, bed.a.peer, CONTEXT(i)), 0);
		}
		for (i = 0; i < COUNT && round != 2; i++)
			expect(t, kfi_send(bed.a.ep, bed.from.data + i * 40000, len[i], NULL,
					   bed.a.peer, CONTEXT(i)), 0);
		for (i = 0; i < COUNT && round == 1; i++)
			expect(t, kfi_recv(bed.b.ep, bed.to.data + i * 40000, 40000, NULL,
					   KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
		for (i = 0; i < COUNT; i++) {
			struct kfi_cq_tagged_entry entry, sent;
			unsigned long number;

			/* Completions may overtake each other. */
			if (!await(t, bed.b.rx_cq, &entry, NULL) ||
			    !await(t, bed.a.tx_cq, &sent, NULL))
				goto close;
			number = entry.op_context - CONTEXT(0);
			if (expect_true(t, number < COUNT))
				expect(t, entry.len, len[number]);
		}
		for (i = 0; i < COUNT && !t->failed; i++) {
			for (at = 0; at < 40000; at++) {
				u8 want = at < len[i] ?
					pattern(bed.seed, i * 40000 + at) : FILL;

				if (!expect(t, bed.to.data[i * 40000 + at], want))
					break;
			}
		}
		say(t, "round %u, message %u", round, i);
	}
close:
	bed_close(t, &bed);
}

/*
 * KFI_INJECT among the default flags is about memory that is the caller's again
 * when the call returns: not about what is read or fetched.
 */
static void inject_by_default(struct test *t)
{
	const struct setup setup = { .tx_flags = KFI_INJECT };
	struct kvec iov = { .iov_len = 4096 };
	struct kfi_rma_iov rma = { .len = 4096, .key = 1 };
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1, .rma_iov = &rma,
		.rma_iov_count = 1, .context = CONTEXT(2),
	};
	u64 one = 1, with = 2, old = 0;
	struct area local, remote;
	struct kfid_mr *mr;
	struct end a, b;

	if (!pair_open(t, &a, &b, &setup, NULL))
		return;
	if (!area_alloc(t, &local, MEM_KMALLOC, 0, 4096))
		goto close;
	if (!area_alloc(t, &remote, MEM_KMALLOC, 0, 4096))
		goto free;
	mr = region_open(t, &b, remote.data, 4096, KFI_REMOTE_READ | KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto free_both;
	area_fill(&remote, 1);
	area_clear(&local);
	expect(t, kfi_read(a.ep, local.data, 4096, NULL, a.peer, 0, 1, CONTEXT(1)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(1), READ_DONE, 4096);
	expect_true(t, area_has(t, &local, 1, 0, 4096, 0));
	/* Neither if the call itself says so. */
	area_clear(&local);
	iov.iov_base = local.data;
	msg.addr = a.peer;
	expect(t, kfi_readmsg(a.ep, &msg, KFI_INJECT | KFI_COMPLETION), 0);
	expect_completion(t, a.tx_cq, CONTEXT(2), READ_DONE, 4096);
	expect_true(t, area_has(t, &local, 1, 0, 4096, 0));

	memset(remote.data, 0, 8);
	expect(t, kfi_fetch_atomic(a.ep, &one, 1, NULL, &old, NULL, a.peer, 0, 1, KFI_UINT64,
				   KFI_SUM, CONTEXT(3)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(3), FETCHED, 8);
	expect(t, old, 0);
	expect(t, kfi_compare_atomic(a.ep, &with, 1, NULL, &one, NULL, &old, NULL, a.peer, 0, 1,
				     KFI_UINT64, KFI_CSWAP, CONTEXT(4)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(4), FETCHED, 8);
	expect(t, old, 1);
	expect(t, memcmp(remote.data, &with, 8), 0);

	/* Sends, writes and additions are injected. */
	expect(t, kfi_send(a.ep, local.data, 1025, NULL, a.peer, CONTEXT(5)), -KFI_EMSGSIZE);
	expect(t, kfi_tsend(a.ep, local.data, 1025, NULL, a.peer, 1, CONTEXT(5)), -KFI_EMSGSIZE);
	expect(t, kfi_write(a.ep, local.data, 1025, NULL, a.peer, 0, 1, CONTEXT(5)),
	       -KFI_EMSGSIZE);
	expect(t, kfi_atomic(a.ep, local.data, 129, NULL, a.peer, 0, 1, KFI_UINT64, KFI_SUM,
			     CONTEXT(5)), -KFI_EMSGSIZE);
	expect(t, kfi_send(a.ep, &one, 8, NULL, a.peer, CONTEXT(6)), 0);
	one = 0;
	expect(t, kfi_recv(b.ep, &old, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(7)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(7), RECEIVED, 8);
	expect_completion(t, a.tx_cq, CONTEXT(6), SENT, 8);
	expect(t, old, 1);
	expect_nothing(t, a.tx_cq);
	close_fid(t, &mr->fid);
free_both:
	area_free(&remote);
free:
	area_free(&local);
close:
	pair_close(t, &a, &b);
}

const struct test_case form_tests[] = {
	{ "transfer/message-forms", "R-CNTR-7", untagged_forms },
	{ "transfer/tagged-forms", "R-CNTR-7", tagged_forms },
	{ "transfer/message-flags", "R-CNTR-6", message_flags },
	{ "transfer/empty-messages", "R-CNTR-7", empty_messages },
	{ "transfer/write-forms", "R-CNTR-7", writes },
	{ "transfer/read-forms", "R-CNTR-7", reads },
	{ "transfer/tagged-rma", "R-CNTR-7", tagged_rma },
	{ "transfer/many-ranges", "", many_ranges },
	{ "transfer/order", "", order },
	{ "transfer/inject-by-default", "", inject_by_default },
	{}
};
