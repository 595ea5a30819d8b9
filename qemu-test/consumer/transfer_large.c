// SPDX-License-Identifier: GPL-2.0
/*
 * As much as one operation may transfer, through vectors that name the same
 * memory again and again.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "transfer.h"

#define GIB	(1UL << 30)
/* 256 of them are a GiB: as many as a vector may have. */
#define PIECE	(GIB / VECTOR)
/* What takes long where each access to memory is emulated and checked. */
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

const struct test_case large_tests[] = {
	{ "large/gibibyte", "", gibibyte },
	{}
};
