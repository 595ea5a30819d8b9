// SPDX-License-Identifier: GPL-2.0
/*
 * Atomic operations: every type and operation in every form, against a model.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/string.h>

#include "transfer.h"

#define ELEMENTS 13

/* Values at which types wrap and signs change, in their low bits. */
static const u64 values[] = {
	0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
	0xffffffff, S64_MAX, 1ULL << 63, U64_MAX, 0x123456789abcdef0,
};

enum atomic_call {
	CALL_PLAIN,
	CALL_FETCH,
	CALL_COMPARE,
	CALLS,
};

static size_t size_of(enum kfi_datatype type)
{
	switch (type) {
	case KFI_INT8:
	case KFI_UINT8:
		return 1;
	case KFI_INT16:
	case KFI_UINT16:
		return 2;
	case KFI_INT32:
	case KFI_UINT32:
		return 4;
	case KFI_INT64:
	case KFI_UINT64:
		return 8;
	default:
		return 0;
	}
}

static bool is_signed(enum kfi_datatype type)
{
	return type == KFI_INT8 || type == KFI_INT16 || type == KFI_INT32 ||
	       type == KFI_INT64;
}

static bool exists(enum atomic_call call, enum kfi_op op)
{
	switch (op) {
	case KFI_MIN:
	case KFI_MAX:
	case KFI_SUM:
	case KFI_PROD:
	case KFI_LOR:
	case KFI_LAND:
	case KFI_BOR:
	case KFI_BAND:
	case KFI_LXOR:
	case KFI_BXOR:
	case KFI_ATOMIC_WRITE:
		return call != CALL_COMPARE;
	case KFI_ATOMIC_READ:
		return call == CALL_FETCH;
	case KFI_CSWAP:
	case KFI_CSWAP_NE:
	case KFI_CSWAP_LE:
	case KFI_CSWAP_LT:
	case KFI_CSWAP_GE:
	case KFI_CSWAP_GT:
	case KFI_MSWAP:
		return call == CALL_COMPARE;
	default:
		return false;
	}
}

/* Compares elements that fill the low bytes. */
static int compare(enum kfi_datatype type, u64 a, u64 b)
{
	unsigned int shift = 64 - 8 * size_of(type);

	if (is_signed(type)) {
		s64 x = (s64)(a << shift), y = (s64)(b << shift);

		return x < y ? -1 : x > y;
	}
	a <<= shift;
	b <<= shift;
	return a < b ? -1 : a > b;
}

static u64 model(enum kfi_datatype type, enum kfi_op op, u64 old, u64 operand,
		 u64 with)
{
	u64 mask = U64_MAX >> (64 - 8 * size_of(type));
	int order = compare(type, with, old);

	switch (op) {
	case KFI_MIN:
		return compare(type, old, operand) < 0 ? old : operand;
	case KFI_MAX:
		return compare(type, old, operand) > 0 ? old : operand;
	case KFI_SUM:
		return (old + operand) & mask;
	case KFI_PROD:
		return (old * operand) & mask;
	case KFI_LOR:
		return old || operand;
	case KFI_LAND:
		return old && operand;
	case KFI_LXOR:
		return !old != !operand;
	case KFI_BOR:
		return old | operand;
	case KFI_BAND:
		return old & operand;
	case KFI_BXOR:
		return old ^ operand;
	case KFI_ATOMIC_WRITE:
		return operand;
	case KFI_CSWAP:
		return !order ? operand : old;
	case KFI_CSWAP_NE:
		return order ? operand : old;
	case KFI_CSWAP_LE:
		return order <= 0 ? operand : old;
	case KFI_CSWAP_LT:
		return order < 0 ? operand : old;
	case KFI_CSWAP_GE:
		return order >= 0 ? operand : old;
	case KFI_CSWAP_GT:
		return order > 0 ? operand : old;
	case KFI_MSWAP:
		return (operand & with) | (old & ~with & mask);
	default:
		return old;
	}
}

/* Elements of a type, packed. */
struct elements {
	u8 bytes[ELEMENTS * 8];
};

static u64 get(const struct elements *e, size_t size, unsigned int i)
{
	u64 value = 0;

	memcpy(&value, e->bytes + i * size, size);
	return value;
}

static void randomize(struct elements *e, size_t size)
{
	unsigned int i;

	memset(e, 0, sizeof(*e));
	for (i = 0; i < ELEMENTS; i++) {
		u64 value = values[get_random_u32_below(ARRAY_SIZE(values))];

		memcpy(e->bytes + i * size, &value, size);
	}
}

/* Posts in one of three forms: plain, v, msg. */
static ssize_t post_atomic(struct end *e, enum atomic_call call, unsigned int form,
			   enum kfi_datatype type, enum kfi_op op,
			   struct elements *operand, struct elements *with,
			   struct elements *result, u64 addr, u64 key)
{
	size_t size = size_of(type) ?: 4;
	struct kfi_ioc iov[2] = {
		{ operand->bytes, 3 },
		{ operand->bytes + 3 * size, ELEMENTS - 3 },
	};
	struct kfi_ioc withv[2] = {
		{ with->bytes, 5 },
		{ with->bytes + 5 * size, ELEMENTS - 5 },
	};
	struct kfi_ioc resultv[2] = {
		{ result->bytes, 1 },
		{ result->bytes + size, ELEMENTS - 1 },
	};
	struct kfi_rma_ioc rma[2] = {
		{ addr, 2, key },
		{ addr + 2 * size, ELEMENTS - 2, key },
	};
	struct kfi_msg_atomic msg = {
		.msg_iov = iov,
		.iov_count = 2,
		.addr = e->peer,
		.rma_iov = rma,
		.rma_iov_count = 2,
		.datatype = type,
		.op = op,
		.context = CONTEXT(8),
	};
	bool read = call == CALL_FETCH && op == KFI_ATOMIC_READ;
	void *buf = read ? NULL : operand->bytes;

	if (read)
		msg.msg_iov = NULL;
	switch (call * 3 + form) {
	case 0:
		return kfi_atomic(e->ep, buf, ELEMENTS, NULL, e->peer, addr, key, type, op,
				  CONTEXT(8));
	case 1:
		return kfi_atomicv(e->ep, iov, NULL, 2, e->peer, addr, key, type, op,
				   CONTEXT(8));
	case 2:
		return kfi_atomicmsg(e->ep, &msg, KFI_COMPLETION);
	case 3:
		return kfi_fetch_atomic(e->ep, buf, ELEMENTS, NULL, result->bytes, NULL,
					e->peer, addr, key, type, op, CONTEXT(8));
	case 4:
		return kfi_fetch_atomicv(e->ep, read ? NULL : iov, NULL, 2, resultv, NULL, 2,
					 e->peer, addr, key, type, op, CONTEXT(8));
	case 5:
		return kfi_fetch_atomicmsg(e->ep, &msg, resultv, NULL, 2, KFI_COMPLETION);
	case 6:
		return kfi_compare_atomic(e->ep, buf, ELEMENTS, NULL, with->bytes, NULL,
					  result->bytes, NULL, e->peer, addr, key, type, op,
					  CONTEXT(8));
	case 7:
		return kfi_compare_atomicv(e->ep, iov, NULL, 2, withv, NULL, 2, resultv, NULL,
					   2, e->peer, addr, key, type, op, CONTEXT(8));
	default:
		return kfi_compare_atomicmsg(e->ep, &msg, withv, NULL, 2, resultv, NULL, 2,
					     KFI_COMPLETION);
	}
}

struct atomic_bed {
	struct end a;
	struct end b;
	struct kfid_mr *mr;
	u8 target[8 + sizeof(struct elements) + 8];
};

static bool atomic_open(struct test *t, struct atomic_bed *bed, u64 access)
{
	memset(bed, 0, sizeof(*bed));
	if (!pair_open(t, &bed->a, &bed->b, NULL, NULL))
		return false;
	bed->mr = region_open(t, &bed->b, bed->target, sizeof(bed->target), access, 3);
	if (bed->mr)
		return true;
	pair_close(t, &bed->a, &bed->b);
	return false;
}

static void atomic_close(struct test *t, struct atomic_bed *bed)
{
	close_fid(t, &bed->mr->fid);
	pair_close(t, &bed->a, &bed->b);
}

static void one_atomic(struct test *t, struct atomic_bed *bed, enum atomic_call call,
		       unsigned int form, enum kfi_datatype type, enum kfi_op op)
{
	struct elements old, operand, with, result, now;
	size_t size = size_of(type);
	unsigned int i;

	randomize(&old, size);
	randomize(&operand, size);
	randomize(&with, size);
	/* Equal ones are to be met. */
	memcpy(with.bytes, old.bytes, 4 * size);
	memset(&result, 0, sizeof(result));
	memset(bed->target, FILL, sizeof(bed->target));
	/* Elements need not be aligned. */
	memcpy(bed->target + 3, old.bytes, ELEMENTS * size);

	expect(t, post_atomic(&bed->a, call, form, type, op, &operand, &with, &result, 3, 3),
	       0);
	expect_completion(t, bed->a.tx_cq, CONTEXT(8), call == CALL_PLAIN ? CHANGED : FETCHED,
			  ELEMENTS * size);
	memcpy(now.bytes, bed->target + 3, ELEMENTS * size);
	for (i = 0; i < ELEMENTS; i++) {
		u64 o = get(&old, size, i), n = get(&operand, size, i);
		u64 w = get(&with, size, i);

		expect(t, get(&now, size, i), model(type, op, o, n, w));
		if (call != CALL_PLAIN)
			expect(t, get(&result, size, i), o);
		say(t, "old %#llx, operand %#llx, compare %#llx", o, n, w);
	}
	for (i = 0; i < 3; i++)
		expect(t, bed->target[i], FILL);
	for (i = 3 + ELEMENTS * size; i < sizeof(bed->target); i++)
		expect(t, bed->target[i], FILL);
}

static void all_atomics(struct test *t)
{
	static struct atomic_bed bed;
	u64 counts[2] = {};
	unsigned int form;
	enum atomic_call call;
	int type, op;

	if (!atomic_open(t, &bed, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		return;
	for (type = 0; type < KFI_DATATYPE_LAST; type++) {
		if (!size_of(type))
			continue;
		for (op = 0; op < KFI_ATOMIC_OP_LAST; op++) {
			for (call = 0; call < CALLS; call++) {
				for (form = 0; form < 3 && !t->failed; form++) {
					if (!exists(call, op))
						continue;
					one_atomic(t, &bed, call, form, type, op);
					counts[call != CALL_PLAIN]++;
				}
				say(t, "type %d, op %d, call %d", type, op, call);
			}
		}
	}
	if (!t->failed) {
		expect_count(t, bed.a.cntr[COUNT_WRITE], counts[0], 0);
		expect_count(t, bed.a.cntr[COUNT_READ], counts[1], 0);
		expect(t, kfi_cntr_read(bed.b.cntr[COUNT_REMOTE_WRITE]) +
		       kfi_cntr_read(bed.b.cntr[COUNT_REMOTE_READ]), counts[0] + counts[1]);
		expect_nothing(t, bed.b.rx_cq);
		expect_nothing(t, bed.a.tx_cq);
	}
	atomic_close(t, &bed);
}

/* All calls that can tell agree on which types and operations there are. */
static void atomic_valid(struct test *t)
{
	struct elements operand = {}, with = {}, result = {};
	static struct atomic_bed bed;
	enum atomic_call call;
	int type, op;

	if (!atomic_open(t, &bed, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		return;
	for (type = 0; type <= KFI_DATATYPE_LAST; type++) {
		for (op = 0; op <= KFI_ATOMIC_OP_LAST; op++) {
			struct kfi_atomic_attr attr = {};
			bool any = false;

			for (call = 0; call < CALLS; call++) {
				bool good = size_of(type) && exists(call, op);
				size_t count = 0;
				int ret;

				any |= good;
				ret = call == CALL_PLAIN ?
					kfi_atomicvalid(bed.a.ep, type, op, &count) :
					call == CALL_FETCH ?
					kfi_fetch_atomicvalid(bed.a.ep, type, op, &count) :
					kfi_compare_atomicvalid(bed.a.ep, type, op, &count);
				expect(t, ret, good ? 0 : -KFI_EOPNOTSUPP);
				if (good) {
					expect(t, count, 4096 / size_of(type));
					continue;
				}
				expect(t, post_atomic(&bed.a, call, 0, type, op, &operand,
						      &with, &result, 0, 3),
				       -KFI_EOPNOTSUPP);
				expect(t, post_atomic(&bed.a, call, 2, type, op, &operand,
						      &with, &result, 0, 3),
				       -KFI_EOPNOTSUPP);
				say(t, "type %d, op %d, call %d", type, op, call);
			}
			expect(t, kfi_query_atomic(bed.a.domain, type, op, &attr, 0),
			       any ? 0 : -KFI_EOPNOTSUPP);
			if (any) {
				expect(t, attr.size, size_of(type));
				expect(t, attr.count, 4096 / size_of(type));
			}
		}
	}
	expect_nothing(t, bed.a.tx_cq);
	expect_count(t, bed.a.cntr[COUNT_WRITE], 0, 0);
	expect_count(t, bed.a.cntr[COUNT_READ], 0, 0);
	atomic_close(t, &bed);
}

static void atomic_inject(struct test *t)
{
	static struct atomic_bed bed;
	u32 one = 1, now;

	if (!atomic_open(t, &bed, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		return;
	expect(t, kfi_inject_atomic(bed.a.ep, &one, 1, bed.a.peer, 1, 3, KFI_UINT32, KFI_SUM), 0);
	one = 0;
	expect_count(t, bed.a.cntr[COUNT_WRITE], 1, 0);
	expect_count(t, bed.b.cntr[COUNT_REMOTE_WRITE], 1, 0);
	memcpy(&now, bed.target + 1, 4);
	expect(t, now, 1);
	expect_nothing(t, bed.a.tx_cq);
	atomic_close(t, &bed);
}

static void atomic_errors(struct test *t)
{
	static struct elements operand, with, result;
	static struct atomic_bed bed;
	static u8 large[4100];

	if (!atomic_open(t, &bed, KFI_REMOTE_READ))
		return;
	/* The region cannot be written. */
	expect(t, post_atomic(&bed.a, CALL_PLAIN, 0, KFI_UINT8, KFI_SUM, &operand, &with,
			      &result, 0, 3), 0);
	expect_failure(t, bed.a.tx_cq, CONTEXT(8), CHANGED, KFI_EACCES, 0, 0);
	expect(t, post_atomic(&bed.a, CALL_FETCH, 0, KFI_UINT8, KFI_SUM, &operand, &with,
			      &result, 0, 3), 0);
	expect_failure(t, bed.a.tx_cq, CONTEXT(8), FETCHED, KFI_EACCES, 0, 0);
	expect(t, post_atomic(&bed.a, CALL_FETCH, 0, KFI_UINT8, KFI_ATOMIC_READ, &operand,
			      &with, &result, 0, 3), 0);
	expect_completion(t, bed.a.tx_cq, CONTEXT(8), FETCHED, ELEMENTS);
	expect(t, post_atomic(&bed.a, CALL_FETCH, 1, KFI_UINT8, KFI_ATOMIC_READ, &operand,
			      &with, &result, 0, 4), 0);
	expect_failure(t, bed.a.tx_cq, CONTEXT(8), FETCHED, KFI_EKEYREJECTED, 0, 0);
	expect(t, post_atomic(&bed.a, CALL_FETCH, 1, KFI_UINT8, KFI_ATOMIC_READ, &operand,
			      &with, &result, sizeof(bed.target), 3), 0);
	expect_failure(t, bed.a.tx_cq, CONTEXT(8), FETCHED, KFI_EACCES, 0, 0);
	expect(t, kfi_atomic(bed.a.ep, large, 4097, NULL, bed.a.peer, 0, 3, KFI_UINT8, KFI_SUM,
			     NULL), -KFI_EMSGSIZE);
	expect(t, kfi_atomic(bed.a.ep, large, 0, NULL, bed.a.peer, 0, 3, KFI_UINT8, KFI_SUM,
			     NULL), -KFI_EINVAL);
	expect(t, kfi_atomic(bed.a.ep, NULL, 1, NULL, bed.a.peer, 0, 3, KFI_UINT8, KFI_SUM,
			     NULL), -KFI_EINVAL);
	expect(t, kfi_atomic(bed.a.ep, large, SIZE_MAX / 4, NULL, bed.a.peer, 0, 3, KFI_UINT64,
			     KFI_SUM, NULL), -KFI_EINVAL);
	expect_count(t, bed.a.cntr[COUNT_WRITE], 0, 1);
	expect_count(t, bed.a.cntr[COUNT_READ], 1, 3);
	expect_nothing(t, bed.a.tx_cq);
	atomic_close(t, &bed);
}

/* The lists of an operation. */
enum atomic_list {
	LIST_OPERANDS,
	LIST_COMPARES,
	LIST_RESULTS,
	LIST_TARGETS,
	LISTS,
};

/* Posts with ranges that have so many elements in all, at least one in each list. */
static ssize_t post_totals(struct end *e, enum atomic_call call, bool is_msg, enum kfi_op op,
			   const size_t counts[LISTS])
{
	static u64 memory[LIST_TARGETS][8];
	struct kfi_ioc lists[LIST_TARGETS][2];
	struct kfi_rma_ioc rma[2] = {
		{ 0, 1, 3 },
		{ 8, counts[LIST_TARGETS] - 1, 3 },
	};
	struct kfi_msg_atomic msg = {
		.msg_iov = lists[LIST_OPERANDS],
		.iov_count = 2,
		.addr = e->peer,
		.rma_iov = rma,
		.rma_iov_count = 2,
		.datatype = KFI_UINT64,
		.op = op,
		.context = CONTEXT(8),
	};
	unsigned int i;

	for (i = 0; i < LIST_TARGETS; i++) {
		lists[i][0] = (struct kfi_ioc) { memory[i], 1 };
		lists[i][1] = (struct kfi_ioc) { memory[i] + 1, counts[i] - 1 };
	}
	switch (call) {
	case CALL_PLAIN:
		return kfi_atomicmsg(e->ep, &msg, KFI_COMPLETION);
	case CALL_FETCH:
		if (is_msg)
			return kfi_fetch_atomicmsg(e->ep, &msg, lists[LIST_RESULTS], NULL, 2,
						   KFI_COMPLETION);
		return kfi_fetch_atomicv(e->ep, lists[LIST_OPERANDS], NULL, 2,
					 lists[LIST_RESULTS], NULL, 2, e->peer, 0, 3,
					 KFI_UINT64, op, CONTEXT(8));
	default:
		if (is_msg)
			return kfi_compare_atomicmsg(e->ep, &msg, lists[LIST_COMPARES], NULL, 2,
						     lists[LIST_RESULTS], NULL, 2,
						     KFI_COMPLETION);
		return kfi_compare_atomicv(e->ep, lists[LIST_OPERANDS], NULL, 2,
					   lists[LIST_COMPARES], NULL, 2, lists[LIST_RESULTS],
					   NULL, 2, e->peer, 0, 3, KFI_UINT64, op, CONTEXT(8));
	}
}

/* Each list that an operation has is as long as the others. */
static void atomic_totals(struct test *t)
{
	static const enum kfi_op ops[CALLS] = { KFI_SUM, KFI_SUM, KFI_CSWAP };
	static struct atomic_bed bed;
	enum atomic_call call;
	enum atomic_list list;
	bool is_msg;

	if (!atomic_open(t, &bed, KFI_REMOTE_READ | KFI_REMOTE_WRITE))
		return;
	memset(bed.target, 0, sizeof(bed.target));
	for (call = 0; call < CALLS; call++) {
		for (is_msg = call == CALL_PLAIN;; is_msg = true) {
			size_t counts[LISTS] = { 4, 4, 4, 4 };

			expect(t, post_totals(&bed.a, call, is_msg, ops[call], counts), 0);
			expect_completion(t, bed.a.tx_cq, CONTEXT(8),
					  call == CALL_PLAIN ? CHANGED : FETCHED, 32);
			for (list = 0; list < LISTS; list++) {
				bool counted = list == LIST_OPERANDS ||
					(list == LIST_TARGETS && is_msg) ||
					(list == LIST_RESULTS && call != CALL_PLAIN) ||
					(list == LIST_COMPARES && call == CALL_COMPARE);

				for (counts[list] = 3; counted && counts[list] <= 5;
				     counts[list] += 2)
					expect(t, post_totals(&bed.a, call, is_msg, ops[call],
							      counts), -KFI_EINVAL);
				counts[list] = 4;
				say(t, "call %d, msg %d, list %d", call, is_msg, list);
			}
			if (is_msg)
				break;
		}
	}
	/* Without operands it is the results that count. */
	for (list = LIST_OPERANDS; list < LISTS; list++) {
		size_t counts[LISTS] = { 4, 4, 4, 4 };
		bool counted = list == LIST_RESULTS || list == LIST_TARGETS;

		counts[list] = 3;
		expect(t, post_totals(&bed.a, CALL_FETCH, true, KFI_ATOMIC_READ, counts),
		       counted ? -KFI_EINVAL : 0);
		if (!counted)
			expect_completion(t, bed.a.tx_cq, CONTEXT(8), FETCHED, 32);
	}
	expect_nothing(t, bed.a.tx_cq);
	atomic_close(t, &bed);
}

struct adding {
	struct end end;
	u64 key;
	unsigned int rounds;
};

static long add_remotely(void *arg)
{
	struct kfi_cq_tagged_entry entry;
	struct adding *adding = arg;
	unsigned int i;
	u64 one = 1;

	for (i = 0; i < adding->rounds; i++) {
		ssize_t ret = kfi_atomic(adding->end.ep, &one, 1, NULL, adding->end.peer, 3,
					 adding->key, KFI_UINT64, KFI_SUM, NULL);

		if (ret)
			return ret;
		ret = kfi_cq_sread(adding->end.tx_cq, &entry, 1, NULL, SOON);
		if (ret != 1)
			return ret ?: -1;
	}
	return 0;
}

/* Two CPUs add to one number, by two domains' regions for the same memory. */
static void atomic_race(struct test *t)
{
	static struct atomic_bed bed;
	struct adding adding[2] = {};
	struct kfid_mr *mr = NULL;
	struct job jobs[2];
	unsigned int i;
	u64 sum = 0;

	if (!atomic_open(t, &bed, KFI_REMOTE_WRITE))
		return;
	expect(t, kfi_mr_reg(bed.a.domain, bed.target, sizeof(bed.target), KFI_REMOTE_WRITE, 0,
			     4, 0, &mr, NULL), 0);
	adding[0] = (struct adding) { bed.a, 3, rounds };
	adding[1] = (struct adding) { bed.b, 4, rounds };
	for (i = 0; i < 2; i++)
		if (!job_start(t, &jobs[i], add_remotely, &adding[i], i))
			break;
	while (i--)
		expect(t, job_finish(&jobs[i]), 0);
	memcpy(&sum, bed.target + 3, sizeof(sum));
	expect(t, sum, 2 * rounds);
	if (mr)
		close_fid(t, &mr->fid);
	atomic_close(t, &bed);
}

const struct test_case atomic_tests[] = {
	{ "atomic/all", "R-CNTR-7", all_atomics },
	{ "atomic/valid", "", atomic_valid },
	{ "atomic/inject", "R-CNTR-6", atomic_inject },
	{ "atomic/errors", "R-CNTR-3", atomic_errors },
	{ "atomic/totals", "", atomic_totals },
	{ "atomic/race", "", atomic_race },
	{}
};
