// SPDX-License-Identifier: GPL-2.0
/*
 * As much as one operation may transfer, through vectors that name the same
 * memory again and again; and vectors as long as they may be, also when there
 * is no memory. That needs failslab and fail_page_alloc, which fail all that
 * they are asked for by threads that are marked (task-filter).
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "transfer.h"

#define GIB	(1UL << 30)
/* 256 of them are a GiB: as many as a vector may have. */
#define PIECE	(GIB / VECTOR)
/* Fewer where each access to memory is emulated and checked, as it would take long. */
#define MANY	(IS_ENABLED(CONFIG_KASAN) ? VECTOR / 8 : VECTOR)
#define SOME	(VECTOR / 8)

/* Pieces of memory that may be named by pages, too. */
struct mem {
	struct page *page;
	u8 *data;
};

static bool mem_alloc(struct test *t, struct mem *mem, u32 seed)
{
	size_t i;

	mem->page = alloc_pages(GFP_KERNEL | __GFP_COMP, get_order(PIECE));
	if (!expect_true(t, mem->page))
		return false;
	mem->data = page_address(mem->page);
	/* Different from place to place, and quickly made. */
	memset(mem->data, seed, PIECE);
	for (i = 0; i < PIECE; i += 509)
		mem->data[i] = pattern(seed, i);
	return true;
}

static void mem_free(struct mem *mem)
{
	if (mem->page)
		__free_pages(mem->page, get_order(PIECE));
}

static void is_same(struct test *t, const struct mem *one, const struct mem *other)
{
	expect(t, memcmp(one->data, other->data, PIECE), 0);
}

/* Names memory in all ways: again and again, with something else at the end. */
static void name(struct pieces *pieces, struct mem *mem, struct mem *last, unsigned int count)
{
	unsigned int i;

	sg_init_table(pieces->sgl, VECTOR);
	pieces->count = count;
	for (i = 0; i < count; i++) {
		struct mem *at = i == count - 1 ? last : mem;

		pieces->kvec[i] = (struct kvec) { at->data, PIECE };
		bvec_set_page(&pieces->bvec[i], at->page, PIECE, 0);
		sg_set_page(&pieces->sgl[i], at->page, PIECE, 0);
	}
}

/* A completion, however long it takes to copy so much. */
static void expect_large(struct test *t, struct kfid_cq *cq, u64 flags, unsigned int count)
{
	struct kfi_cq_tagged_entry entry = {};

	if (!expect(t, kfi_cq_sread(cq, &entry, 1, NULL, 20 * SOON), 1))
		return;
	expect(t, entry.flags, flags);
	expect(t, entry.len, flags & KFI_SEND ? 0 : count * PIECE);
}

static void gibibyte(struct test *t)
{
	static struct pieces from, to;
	struct mem one = {}, two = {}, three = {}, other = {};
	/* As much is read only by those who have the time. */
	unsigned int back = rounds < 100000 ? SOME : MANY;
	struct kfid_mr *mr = NULL;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect_true(t, nic_info[0]->ep_attr->max_msg_size >= GIB);
	if (!mem_alloc(t, &one, 1) || !mem_alloc(t, &two, 2) || !mem_alloc(t, &three, 3) ||
	    !mem_alloc(t, &other, 4))
		goto free;
	name(&from, &one, &two, MANY);
	name(&to, &three, &other, MANY);

	/* Written from addresses: all of it. */
	expect(t, kfi_mr_regv(b.domain, to.kvec, to.count, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
			      0, 1, 0, &mr, NULL), 0);
	if (!mr)
		goto free;
	expect(t, kfi_writev(a.ep, from.kvec, NULL, from.count, a.peer, 0, 1, NULL), 0);
	expect_large(t, a.tx_cq, WRITTEN, MANY);
	is_same(t, &three, &one);
	is_same(t, &other, &two);
	/* Not a byte more. */
	expect(t, kfi_writev(a.ep, from.kvec, NULL, from.count, a.peer, 1, 1, NULL), 0);
	expect_failure(t, a.tx_cq, NULL, WRITTEN, KFI_EACCES, 0, 0);

	/* Read into pages, where other things are; the end of what was written, or all of it. */
	name(&from, &one, &two, back);
	memset(one.data, 9, PIECE);
	memset(two.data, 9, PIECE);
	expect(t, kfi_readbv(a.ep, from.bvec, NULL, from.count, a.peer,
			     (MANY - back) * PIECE, 1, NULL), 0);
	expect_large(t, a.tx_cq, READ_DONE, back);
	is_same(t, &one, &three);
	is_same(t, &two, &other);
	close_fid(t, &mr->fid);

	/* Sent from a scatterlist, received in pages. */
	name(&from, &one, &two, SOME);
	name(&to, &three, &other, SOME);
	memset(three.data, 9, PIECE);
	memset(other.data, 9, PIECE);
	expect(t, kfi_recvbv(b.ep, to.bvec, NULL, to.count, KFI_ADDR_UNSPEC, NULL), 0);
	expect(t, kfi_sendsgl(a.ep, from.sgl, NULL, from.count, a.peer, NULL), 0);
	expect_large(t, a.tx_cq, SENT, SOME);
	expect_large(t, b.rx_cq, RECEIVED, SOME);
	is_same(t, &three, &one);
	is_same(t, &other, &two);
	expect_count(t, a.cntr[COUNT_WRITE], 1, 1);
	expect_count(t, a.cntr[COUNT_READ], 1, 0);
	expect_count(t, a.cntr[COUNT_SEND], 1, 0);
free:
	pair_close(t, &a, &b);
	mem_free(&one);
	mem_free(&two);
	mem_free(&three);
	mem_free(&other);
}

/* Vectors of as many entries as there may be, on both sides. */
struct vectors {
	struct end a;
	struct end b;
	struct area from;
	struct area to;
	struct kfid_mr *mr;
	/* Of one entry. */
	size_t step;
	/* The description of an operation; overwritten once it is posted. */
	struct pieces pieces;
	struct kfi_rma_iov remote[VECTOR];
};

/* Any order that is not that of the memory. */
static size_t place(unsigned int i)
{
	return (i * 37 + 11) % VECTOR;
}

static bool vectors_open(struct test *t, struct vectors *v, size_t step)
{
	memset(v, 0, sizeof(*v));
	v->step = step;
	if (!pair_open(t, &v->a, &v->b, NULL, NULL))
		return false;
	if (area_alloc(t, &v->from, MEM_KMALLOC, 0, VECTOR * step) &&
	    area_alloc(t, &v->to, MEM_KMALLOC, 0, VECTOR * step))
		v->mr = region_open(t, &v->b, v->to.data, VECTOR * step,
				    KFI_REMOTE_READ | KFI_REMOTE_WRITE, 1);
	return expect_true(t, v->mr);
}

static void vectors_close(struct test *t, struct vectors *v)
{
	if (v->mr)
		close_fid(t, &v->mr->fid);
	pair_close(t, &v->a, &v->b);
	area_free(&v->from);
	area_free(&v->to);
}

/* Posts from or to each part of an area, in the order of the memory. */
static ssize_t vectors_post(struct vectors *v, enum kfi_iov_type type, enum family family,
			    void *context)
{
	bool receives = family == F_RECV || family == F_TRECV;
	struct kfid_ep *ep = receives ? v->b.ep : v->a.ep;
	kfi_addr_t peer = receives ? KFI_ADDR_UNSPEC : v->a.peer;
	u8 *data = receives ? v->to.data : v->from.data;
	const void *iov = v->pieces.sgl;
	struct kfi_msg_tagged tagged;
	struct kfi_msg_rma rma;
	struct kfi_msg msg;
	unsigned int i;
	ssize_t ret;

	sg_init_table(v->pieces.sgl, VECTOR);
	for (i = 0; i < VECTOR; i++) {
		u8 *at = data + i * v->step;

		v->pieces.kvec[i] = (struct kvec) { at, v->step };
		sg_set_buf(&v->pieces.sgl[i], at, v->step);
		bvec_set_virt(&v->pieces.bvec[i], at, v->step);
		v->remote[i] = (struct kfi_rma_iov) { place(i) * v->step, v->step, 1 };
	}
	if (type == KFI_KVEC)
		iov = v->pieces.kvec;
	else if (type == KFI_BVEC)
		iov = v->pieces.bvec;
	msg = (struct kfi_msg) { .type = type, .msg_iov = iov, .iov_count = VECTOR,
				 .addr = peer, .context = context };
	tagged = (struct kfi_msg_tagged) { .type = type, .msg_iov = iov, .iov_count = VECTOR,
					   .addr = peer, .tag = 5, .context = context };
	rma = (struct kfi_msg_rma) { .type = type, .msg_iov = iov, .iov_count = VECTOR,
				     .addr = peer, .rma_iov = v->remote,
				     .rma_iov_count = VECTOR, .context = context };
	switch (family) {
	case F_SEND:
		ret = kfi_sendmsg(ep, &msg, 0);
		break;
	case F_RECV:
		ret = kfi_recvmsg(ep, &msg, 0);
		break;
	case F_TSEND:
		ret = kfi_tsendmsg(ep, &tagged, 0);
		break;
	case F_TRECV:
		ret = kfi_trecvmsg(ep, &tagged, 0);
		break;
	case F_WRITE:
		ret = kfi_writemsg(ep, &rma, 0);
		break;
	default:
		ret = kfi_readmsg(ep, &rma, 0);
	}
	memset(&v->pieces, 0xff, sizeof(v->pieces));
	memset(v->remote, 0xff, sizeof(v->remote));
	return ret;
}

/* Expects that all pieces that were written or read are in their places. */
static void expect_in_place(struct test *t, const struct vectors *v)
{
	unsigned int i, same = 0;

	for (i = 0; i < VECTOR; i++)
		same += !memcmp(v->to.data + place(i) * v->step, v->from.data + i * v->step, v->step);
	expect(t, same, VECTOR);
}

static void longest_message(struct test *t, struct vectors *v, enum kfi_iov_type type,
			    bool tagged, bool sent_first)
{
	enum family send = tagged ? F_TSEND : F_SEND, recv = tagged ? F_TRECV : F_RECV;
	size_t len = VECTOR * v->step;

	area_fill(&v->from, 1 + type);
	area_clear(&v->to);
	expect(t, vectors_post(v, type, sent_first ? send : recv, CONTEXT(1)), 0);
	expect(t, vectors_post(v, type, sent_first ? recv : send, CONTEXT(2)), 0);
	expect_completion(t, v->a.tx_cq, CONTEXT(sent_first ? 1 : 2), tagged ? TSENT : SENT, 0);
	expect_completion(t, v->b.rx_cq, CONTEXT(sent_first ? 2 : 1),
			  tagged ? TRECEIVED : RECEIVED, len);
	expect_true(t, area_has(t, &v->to, 1 + type, 0, len, 0));
}

static void longest_vectors(struct test *t)
{
	/* Done by the caller, and by others later. */
	static const size_t steps[] = { 8, 32, 128 };
	static const enum kfi_iov_type types[] = { KFI_KVEC, KFI_BVEC, KFI_SGL };
	static struct vectors v;
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(steps) && !t->failed; i++) {
		if (!vectors_open(t, &v, steps[i])) {
			vectors_close(t, &v);
			return;
		}
		for (j = 0; j < ARRAY_SIZE(types) && !t->failed; j++) {
			size_t len = VECTOR * v.step;

			for (k = 0; k < 4; k++)
				longest_message(t, &v, types[j], k & 1, k & 2);
			area_fill(&v.from, 10 + j);
			area_clear(&v.to);
			expect(t, vectors_post(&v, types[j], F_WRITE, CONTEXT(3)), 0);
			expect_completion(t, v.a.tx_cq, CONTEXT(3), WRITTEN, len);
			expect_in_place(t, &v);
			area_fill(&v.to, 20 + j);
			expect(t, vectors_post(&v, types[j], F_READ, CONTEXT(4)), 0);
			expect_completion(t, v.a.tx_cq, CONTEXT(4), READ_DONE, len);
			expect_in_place(t, &v);
			say(t, "%zu bytes each, type %u", v.step, types[j]);
		}
		vectors_close(t, &v);
	}
}

/* From here on this thread gets no memory, if the kernel can do that, or gets some again. */
static void starve(bool starves)
{
#ifdef CONFIG_FAULT_INJECTION
	current->make_it_fail = starves;
#endif
}

static bool can_starve(void)
{
	struct page *page;
	void *memory;

	starve(true);
	memory = kmalloc(64, GFP_NOWAIT);
	page = alloc_page(GFP_NOWAIT);
	starve(false);
	kfree(memory);
	if (page)
		__free_page(page);
	return !memory && !page;
}

static ssize_t post_starving(struct vectors *v, enum kfi_iov_type type, enum family family,
			     void *context)
{
	ssize_t ret;

	starve(true);
	ret = vectors_post(v, type, family, context);
	starve(false);
	return ret;
}

/*
 * Consumers post to have memory reclaimed. An operation that the peer is ready for
 * and the caller does itself goes then, one at a time; else they may try again.
 */
static void no_memory(struct test *t)
{
	/* More than there are pages in the reserve. */
	const unsigned int times = 20;
	static struct vectors v;
	size_t len;
	unsigned int i;

	if (!can_starve()) {
		pr_info("# large/no-memory: this kernel always has some\n");
		return;
	}
	if (!vectors_open(t, &v, 32))
		goto close;
	len = VECTOR * v.step;
	for (i = 0; i < times && !t->failed; i++) {
		enum kfi_iov_type type = i & 1 ? KFI_KVEC : KFI_SGL;

		area_fill(&v.from, i);
		area_clear(&v.to);
		expect(t, post_starving(&v, type, F_WRITE, CONTEXT(1)), 0);
		expect_completion(t, v.a.tx_cq, CONTEXT(1), WRITTEN, len);
		expect_in_place(t, &v);
		area_fill(&v.to, i + 1);
		expect(t, post_starving(&v, type, F_READ, CONTEXT(2)), 0);
		expect_completion(t, v.a.tx_cq, CONTEXT(2), READ_DONE, len);
		expect_in_place(t, &v);

		/* Nobody is ready: it would have to wait, and so would a receive. */
		expect(t, post_starving(&v, type, F_SEND, CONTEXT(3)), -KFI_EAGAIN);
		expect(t, post_starving(&v, type, F_RECV, CONTEXT(4)), -KFI_EAGAIN);
		expect(t, vectors_post(&v, type, F_RECV, CONTEXT(4)), 0);
		area_fill(&v.from, i + 2);
		expect(t, post_starving(&v, type, F_SEND, CONTEXT(3)), 0);
		expect_completion(t, v.a.tx_cq, CONTEXT(3), SENT, 0);
		expect_completion(t, v.b.rx_cq, CONTEXT(4), RECEIVED, len);
		expect_true(t, area_has(t, &v.to, i + 2, 0, len, 0));
		say(t, "time %u", i);
	}
	expect_nothing(t, v.a.tx_cq);
	expect_nothing(t, v.b.rx_cq);
	vectors_close(t, &v);

	/* Nor does one go that others carry out, though the peer is ready. */
	if (!vectors_open(t, &v, 128))
		goto close;
	len = VECTOR * v.step;
	area_fill(&v.from, 1);
	expect(t, vectors_post(&v, KFI_SGL, F_RECV, CONTEXT(1)), 0);
	expect(t, post_starving(&v, KFI_SGL, F_SEND, CONTEXT(2)), -KFI_EAGAIN);
	expect(t, post_starving(&v, KFI_SGL, F_WRITE, CONTEXT(2)), -KFI_EAGAIN);
	expect_nothing(t, v.a.tx_cq);
	expect_nothing(t, v.b.rx_cq);
	expect(t, vectors_post(&v, KFI_SGL, F_SEND, CONTEXT(2)), 0);
	expect_completion(t, v.a.tx_cq, CONTEXT(2), SENT, 0);
	expect_completion(t, v.b.rx_cq, CONTEXT(1), RECEIVED, len);
	expect_true(t, area_has(t, &v.to, 1, 0, len, 0));
	expect(t, vectors_post(&v, KFI_SGL, F_WRITE, CONTEXT(2)), 0);
	expect_completion(t, v.a.tx_cq, CONTEXT(2), WRITTEN, len);
	expect_in_place(t, &v);
close:
	vectors_close(t, &v);
}

const struct test_case large_tests[] = {
	{ "large/gibibyte", "", gibibyte },
	{ "large/longest-vectors", "", longest_vectors },
	{ "large/no-memory", "", no_memory, true },
	{}
};
