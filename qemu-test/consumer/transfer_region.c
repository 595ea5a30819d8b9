// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions, in every mode.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "transfer.h"

#define ALL_ACCESS (KFI_REMOTE_READ | KFI_REMOTE_WRITE)

/* A domain in another mode on the second NIC. */
static struct kfid_domain *domain_in_mode(struct test *t, int mode, size_t key_size)
{
	struct kfi_info *info = kfi_dupinfo(nic_info[1]);
	struct kfid_domain *domain = NULL;

	if (!expect_true(t, info))
		return NULL;
	info->domain_attr->mr_mode = mode;
	info->domain_attr->mr_key_size = key_size;
	expect(t, kfi_domain(t->fabric, info, &domain, NULL), 0);
	kfi_freeinfo(info);
	return domain;
}

static bool put(struct test *t, struct end *a, u64 value, u64 addr, u64 key, int err)
{
	expect(t, kfi_write(a->ep, &value, 8, NULL, a->peer, addr, key, CONTEXT(1)), 0);
	return err ? expect_failure(t, a->tx_cq, CONTEXT(1), WRITTEN, err, 0, 0) :
		     expect_completion(t, a->tx_cq, CONTEXT(1), WRITTEN, 8);
}

/* Registered in every form. */
static void forms(struct test *t)
{
	struct kvec kvec[2];
	struct bio_vec bvec[2];
	struct scatterlist sgl[2];
	struct kfi_mr_attr attr = {
		.type = KFI_SGL,
		.mr_sgl = sgl,
		.iov_count = 2,
		.access = ALL_ACCESS,
		.requested_key = 5,
		.context = CONTEXT(9),
	};
	struct area mem;
	struct end a, b;
	unsigned int form;
	u8 *first, *second;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!area_alloc(t, &mem, MEM_KMALLOC, 0, 3 * PAGE_SIZE))
		goto close;
	first = mem.data + 3;
	second = mem.data + PAGE_SIZE + 100;
	for (form = 0; form < 4; form++) {
		struct kfid_mr *mr = NULL;
		u64 value = 0x0102030405060708 + form;

		area_clear(&mem);
		/* 4 bytes here, 100 there. */
		kvec[0] = (struct kvec) { first, 4 };
		kvec[1] = (struct kvec) { second, 100 };
		bvec_set_virt(&bvec[0], first, 4);
		bvec_set_virt(&bvec[1], second, 100);
		sg_init_table(sgl, 2);
		sg_set_buf(&sgl[0], first, 4);
		sg_set_buf(&sgl[1], second, 100);
		switch (form) {
		case 0:
			expect(t, kfi_mr_regv(b.domain, kvec, 2, ALL_ACCESS, 0, 5, 0, &mr, NULL),
			       0);
			break;
		case 1:
			expect(t, kfi_mr_regbv(b.domain, bvec, 2, ALL_ACCESS, 0, 5, 0, &mr, NULL),
			       0);
			break;
		case 2:
			expect(t, kfi_mr_regsgl(b.domain, sgl, 2, ALL_ACCESS, 0, 5, 0, &mr, NULL),
			       0);
			break;
		case 3:
			expect(t, kfi_mr_regattr(b.domain, &attr, 0, &mr), 0);
			break;
		}
		memset(kvec, 0xff, sizeof(kvec));
		memset(bvec, 0xff, sizeof(bvec));
		memset(sgl, 0xff, sizeof(sgl));
		if (!mr)
			break;
		put(t, &a, value, 0, 5, 0);
		expect(t, memcmp(first, &value, 4), 0);
		expect(t, memcmp(second, (u8 *)&value + 4, 4), 0);
		expect(t, first[4], FILL);
		expect(t, second[4], FILL);
		put(t, &a, value, 96, 5, 0);
		expect(t, memcmp(second + 92, &value, 8), 0);
		put(t, &a, value, 97, 5, KFI_EACCES);
		close_fid(t, &mr->fid);
		say(t, "form %u", form);
	}
	area_free(&mem);
close:
	pair_close(t, &a, &b);
}

static void refused(struct test *t)
{
	static struct kvec kvec[VECTOR + 1];
	struct kfid_mr *mr = NULL, *other = NULL;
	struct kfid_domain *small;
	unsigned int i;
	struct end b;
	u8 buf[8];

	if (!end_open(t, &b, 1, NULL))
		return;
	for (i = 0; i <= VECTOR; i++)
		kvec[i] = (struct kvec) { buf, 8 };
	expect(t, kfi_mr_reg(b.domain, buf, 8, 0, 0, 1, 0, &mr, NULL), -KFI_EINVAL);
	expect(t, kfi_mr_reg(b.domain, buf, 8, ALL_ACCESS, 1, 1, 0, &mr, NULL), -KFI_EINVAL);
	expect(t, kfi_mr_reg(b.domain, buf, 8, ALL_ACCESS | KFI_MSG, 0, 1, 0, &mr, NULL),
	       -KFI_EBADFLAGS);
	expect(t, kfi_mr_reg(b.domain, buf, 8, ALL_ACCESS, 0, 1, KFI_MSG, &mr, NULL),
	       -KFI_EBADFLAGS);
	expect(t, kfi_mr_reg(b.domain, NULL, 8, ALL_ACCESS, 0, 1, 0, &mr, NULL), -KFI_EINVAL);
	expect(t, kfi_mr_reg(b.domain, buf, 8, ALL_ACCESS, 0, U64_MAX, 0, &mr, NULL),
	       -KFI_EKEYREJECTED);
	expect(t, kfi_mr_regv(b.domain, kvec, VECTOR + 1, ALL_ACCESS, 0, 1, 0, &mr, NULL),
	       -KFI_EINVAL);
	expect(t, kfi_mr_regattr(b.domain, NULL, 0, &mr), -KFI_EINVAL);
	expect_true(t, !mr);
	/* A key is taken once, and free again. */
	expect(t, kfi_mr_regv(b.domain, kvec, VECTOR, ALL_ACCESS, 0, 1, 0, &mr, NULL), 0);
	expect(t, kfi_mr_reg(b.domain, buf, 8, ALL_ACCESS, 0, 1, 0, &other, NULL), -KFI_ENOKEY);
	expect(t, kfi_mr_enable(mr), 0);
	expect(t, kfi_mr_bind(mr, &b.ep->fid, KFI_RECV), -KFI_EBADFLAGS);
	expect(t, kfi_mr_bind(mr, &b.av->fid, 0), -KFI_EINVAL);
	close_fid(t, &mr->fid);
	expect(t, kfi_mr_reg(b.domain, buf, 8, ALL_ACCESS, 0, 1, 0, &mr, NULL), 0);
	close_fid(t, &mr->fid);
	end_close(t, &b);

	small = domain_in_mode(t, 0, 2);
	if (small) {
		expect(t, kfi_mr_reg(small, buf, 8, ALL_ACCESS, 0, 0x10000, 0, &mr, NULL),
		       -KFI_EKEYREJECTED);
		expect(t, kfi_mr_reg(small, buf, 8, ALL_ACCESS, 0, 0xffff, 0, &mr, NULL), 0);
		expect(t, kfi_close(&small->fid), -KFI_EBUSY);
		close_fid(t, &mr->fid);
		close_fid(t, &small->fid);
	}
}

/* The writes and the reads of peers, each on a counter of its own or both on one. */
static void counters(struct test *t)
{
	struct kfid_cntr *cntr = NULL, *reads = NULL;
	u64 target = 0, back = 0;
	struct kfid_mr *mr;
	struct end a, b;

	/* The domain of the counters is the first one: the first is the target. */
	if (!pair_open(t, &b, &a, NULL, NULL))
		return;
	mr = region_open(t, &b, &target, 8, ALL_ACCESS, 1);
	cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	reads = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!mr || !cntr || !reads)
		goto close;
	expect(t, kfi_mr_bind(mr, &cntr->fid, 0), -KFI_EBADFLAGS);
	expect(t, kfi_mr_bind(mr, &cntr->fid, KFI_REMOTE_READ | KFI_READ), -KFI_EBADFLAGS);
	expect(t, kfi_mr_bind(mr, &b.ep->fid, KFI_REMOTE_READ), -KFI_EBADFLAGS);
	expect(t, kfi_mr_bind(mr, &a.cntr[0]->fid, KFI_REMOTE_WRITE), -KFI_EINVAL);
	expect(t, kfi_mr_bind(mr, &cntr->fid, KFI_REMOTE_WRITE), 0);
	expect(t, kfi_mr_bind(mr, &cntr->fid, KFI_REMOTE_WRITE), -KFI_EINVAL);
	/* One of the two is taken, and so the other is not bound either. */
	expect(t, kfi_mr_bind(mr, &reads->fid, KFI_REMOTE_READ | KFI_REMOTE_WRITE), -KFI_EINVAL);
	expect(t, kfi_mr_bind(mr, &reads->fid, KFI_REMOTE_READ), 0);
	expect(t, kfi_mr_bind(mr, &reads->fid, KFI_REMOTE_READ), -KFI_EINVAL);
	expect(t, kfi_close(&cntr->fid), -KFI_EBUSY);
	expect(t, kfi_close(&reads->fid), -KFI_EBUSY);
	put(t, &a, 7, 0, 1, 0);
	expect_count(t, cntr, 1, 0);
	expect_count(t, reads, 0, 0);
	expect_count(t, b.cntr[COUNT_REMOTE_WRITE], 1, 0);
	expect(t, kfi_read(a.ep, &back, 8, NULL, a.peer, 0, 1, CONTEXT(2)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(2), READ_DONE, 8);
	expect(t, back, 7);
	expect_count(t, reads, 1, 0);
	expect_count(t, cntr, 1, 0);
	put(t, &a, 7, 1, 1, KFI_EACCES);
	expect_count(t, cntr, 1, 0);
	expect_count(t, reads, 1, 0);
	close_fid(t, &mr->fid);
	mr = region_open(t, &b, &target, 8, ALL_ACCESS, 1);
	if (!mr)
		goto close;
	expect(t, kfi_mr_bind(mr, &cntr->fid, KFI_REMOTE_READ | KFI_REMOTE_WRITE), 0);
	expect(t, kfi_mr_bind(mr, &reads->fid, KFI_REMOTE_READ), -KFI_EINVAL);
	put(t, &a, 8, 0, 1, 0);
	expect_count(t, cntr, 2, 0);
	expect(t, kfi_read(a.ep, &back, 8, NULL, a.peer, 0, 1, CONTEXT(3)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(3), READ_DONE, 8);
	expect_count(t, cntr, 3, 0);
	expect_count(t, reads, 1, 0);
close:
	if (mr)
		close_fid(t, &mr->fid);
	if (reads)
		close_fid(t, &reads->fid);
	if (cntr)
		close_fid(t, &cntr->fid);
	pair_close(t, &b, &a);
}

/* Every use is told by an entry. */
static void events(struct test *t)
{
	u64 target = 0, one = 1, back;
	struct kfid_mr *mr = NULL;
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (expect(t, kfi_mr_reg(b.domain, &target, 8, ALL_ACCESS, 0, 1, KFI_RMA_EVENT, &mr,
				 NULL), 0)) {
		put(t, &a, 5, 0, 1, 0);
		expect_completion(t, b.rx_cq, NULL, KFI_RMA | KFI_REMOTE_WRITE, 8);
		expect(t, kfi_read(a.ep, &back, 8, NULL, a.peer, 0, 1, CONTEXT(2)), 0);
		expect_completion(t, a.tx_cq, CONTEXT(2), READ_DONE, 8);
		expect_completion(t, b.rx_cq, NULL, KFI_RMA | KFI_REMOTE_READ, 8);
		expect(t, kfi_writedata(a.ep, &one, 8, NULL, 9, a.peer, 0, 1, CONTEXT(3)), 0);
		expect_completion(t, a.tx_cq, CONTEXT(3), WRITTEN, 8);
		expect_completion(t, b.rx_cq, NULL,
				  KFI_RMA | KFI_REMOTE_WRITE | KFI_REMOTE_CQ_DATA, 8);
		put(t, &a, 5, 1, 1, KFI_EACCES);
		expect_nothing(t, b.rx_cq);
		close_fid(t, &mr->fid);
	}
	pair_close(t, &a, &b);
}

/* Endpoints that have asked for it are told of every use of any region. */
static void events_of_endpoints(struct test *t)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;
	struct kfid_domain *domain = NULL;
	struct setup setup = { .caps = KFI_RMA | KFI_RMA_EVENT };
	u64 target = 0, one = 1, back;
	struct kfid_mr *mr = NULL;
	struct end a, b;

	if (!expect_true(t, hints))
		return;
	hints->caps = setup.caps;
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	expect(t, kfi_getinfo(KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION), NULL, NULL, 0,
			      hints, &info), 0);
	kfi_freeinfo(hints);
	if (!info)
		return;
	expect_true(t, info->caps & KFI_RMA_EVENT);
	/* Consumers that do not ask for it do not get it. */
	expect_true(t, !(nic_info[1]->caps & KFI_RMA_EVENT));
	if (expect(t, kfi_domain(t->fabric, info->next, &domain, NULL), 0)) {
		setup.domain = domain;
		if (pair_open(t, &a, &b, NULL, &setup)) {
			mr = region_open(t, &b, &target, 8, ALL_ACCESS, 1);
			put(t, &a, 5, 0, 1, 0);
			expect_completion(t, b.rx_cq, NULL, KFI_RMA | KFI_REMOTE_WRITE, 8);
			expect(t, kfi_read(a.ep, &back, 8, NULL, a.peer, 0, 1, CONTEXT(2)), 0);
			expect_completion(t, a.tx_cq, CONTEXT(2), READ_DONE, 8);
			expect_completion(t, b.rx_cq, NULL, KFI_RMA | KFI_REMOTE_READ, 8);
			expect(t, kfi_atomic(a.ep, &one, 1, NULL, a.peer, 0, 1, KFI_UINT64, KFI_SUM,
					     CONTEXT(3)), 0);
			expect_failure(t, a.tx_cq, CONTEXT(3), CHANGED, KFI_EACCES, 0, 0);
			expect_nothing(t, b.rx_cq);
			if (mr)
				close_fid(t, &mr->fid);
			pair_close(t, &a, &b);
		}
		close_fid(t, &domain->fid);
	}
	kfi_freeinfo(info);
}

static void chosen_keys(struct test *t)
{
	struct setup setup = { .domain = domain_in_mode(t, KFI_MR_PROV_KEY | KFI_MR_VIRT_ADDR, 1) };
	struct kfid_mr *mr[3] = {};
	u64 target[3] = {};
	struct end a, b;
	unsigned int i;

	if (!setup.domain)
		return;
	if (!pair_open(t, &a, &b, NULL, &setup))
		goto close;
	for (i = 0; i < 3; i++) {
		/* The key that is asked for is ignored. */
		mr[i] = region_open(t, &b, &target[i], 8, ALL_ACCESS, U64_MAX);
		if (!mr[i])
			break;
		expect_true(t, kfi_mr_key(mr[i]) < 0xff);
	}
	for (i = 0; i < 3 && mr[i]; i++) {
		u8 raw[8] = {};
		size_t len = 8;
		u64 base = 0;

		put(t, &a, 100 + i, (unsigned long)&target[i], kfi_mr_key(mr[i]), 0);
		put(t, &a, 3, 0, kfi_mr_key(mr[i]), KFI_EACCES);
		expect(t, target[i], 100 + i);
		expect(t, kfi_mr_raw_attr(mr[i], &base, raw, &len, 0), 0);
		expect_true(t, base == (unsigned long)&target[i]);
		expect(t, len, 8);
	}
	for (i = 0; i < 3; i++) {
		if (mr[i])
			close_fid(t, &mr[i]->fid);
	}
	pair_close(t, &a, &b);
close:
	close_fid(t, &setup.domain->fid);
}

/* All keys of one byte, and then no more. */
static void all_keys(struct test *t)
{
	struct kfid_domain *domain = domain_in_mode(t, KFI_MR_PROV_KEY, 1);
	static struct kfid_mr *mr[300];
	unsigned int i, count;
	u64 target;
	int ret = 0;

	if (!domain)
		return;
	for (count = 0; count < ARRAY_SIZE(mr); count++) {
		ret = kfi_mr_reg(domain, &target, 8, ALL_ACCESS, 0, 0, 0, &mr[count], NULL);
		if (ret)
			break;
	}
	expect(t, ret, -KFI_ENOKEY);
	expect(t, count, 256);
	for (i = 0; i < count; i++)
		close_fid(t, &mr[i]->fid);
	close_fid(t, &domain->fid);
}

/* Regions of one endpoint, and only of that. */
static void of_endpoints(struct test *t)
{
	struct setup setup = { .domain = domain_in_mode(t, KFI_MR_ENDPOINT, 0) };
	struct kfid_mr *mr[2] = {}, *third = NULL;
	struct setup late = { .no_enable = true };
	u64 target[2] = {}, other = 0;
	struct end a, b, c;
	kfi_addr_t addr_c;

	if (!setup.domain)
		return;
	late.domain = setup.domain;
	if (!pair_open(t, &a, &b, NULL, &setup))
		goto close;
	if (!end_open(t, &c, 1, &late))
		goto close_pair;
	/* One key for two endpoints. */
	mr[0] = region_open(t, &b, &target[0], 8, ALL_ACCESS, 4);
	mr[1] = region_open(t, &c, &target[1], 8, ALL_ACCESS, 4);
	third = region_open(t, &b, &other, 8, ALL_ACCESS, 4);
	if (!mr[0] || !mr[1] || !third || !end_knows(t, &a, c.ep, &addr_c))
		goto close_all;
	expect(t, kfi_mr_enable(mr[0]), -KFI_EOPBADSTATE);
	expect(t, kfi_mr_bind(mr[1], &c.ep->fid, 0), -KFI_EOPBADSTATE);
	expect(t, kfi_enable(c.ep), 0);
	expect(t, kfi_mr_bind(mr[1], &a.ep->fid, 0), -KFI_EINVAL);
	expect(t, kfi_mr_bind(mr[1], &c.ep->fid, 1), -KFI_EBADFLAGS);
	expect(t, kfi_mr_bind(mr[1], &c.ep->fid, 0), 0);
	expect(t, kfi_mr_bind(mr[1], &c.ep->fid, 0), -KFI_EINVAL);
	expect(t, kfi_mr_bind(mr[0], &b.ep->fid, 0), 0);
	put(t, &a, 1, 0, 4, KFI_EKEYREJECTED);
	expect(t, kfi_mr_enable(mr[0]), 0);
	expect(t, kfi_mr_enable(mr[0]), -KFI_EOPBADSTATE);
	put(t, &a, 10, 0, 4, 0);
	expect(t, target[0], 10);
	expect(t, kfi_mr_enable(mr[1]), 0);
	expect(t, kfi_write(a.ep, &target[0], 8, NULL, addr_c, 0, 4, CONTEXT(1)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(1), WRITTEN, 8);
	expect(t, target[1], 10);
	/* The key is taken in that endpoint. */
	expect(t, kfi_mr_bind(third, &b.ep->fid, 0), 0);
	expect(t, kfi_mr_enable(third), -KFI_ENOKEY);
	expect(t, kfi_close(&b.ep->fid), -KFI_EBUSY);
	close_fid(t, &mr[0]->fid);
	mr[0] = NULL;
	put(t, &a, 11, 0, 4, KFI_EKEYREJECTED);
	expect(t, kfi_mr_enable(third), 0);
	put(t, &a, 11, 0, 4, 0);
	expect(t, other, 11);
	expect(t, target[0], 10);
close_all:
	if (mr[0])
		close_fid(t, &mr[0]->fid);
	if (mr[1])
		close_fid(t, &mr[1]->fid);
	if (third)
		close_fid(t, &third->fid);
	end_close(t, &c);
close_pair:
	pair_close(t, &a, &b);
close:
	close_fid(t, &setup.domain->fid);
}

/* Regions of the domain that are bound are those of one endpoint, too. */
static void bound_in_any_mode(struct test *t)
{
	const struct setup late = { .no_enable = true };
	struct kfid_mr *mr = NULL;
	struct end a, b, c;
	kfi_addr_t addr_c;
	u64 target = 0;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	if (!end_open(t, &c, 1, &late))
		goto close;
	mr = region_open(t, &b, &target, 8, ALL_ACCESS, 4);
	if (!mr || !end_knows(t, &a, c.ep, &addr_c))
		goto close_c;
	expect(t, kfi_mr_bind(mr, &c.ep->fid, 0), -KFI_EOPBADSTATE);
	expect(t, kfi_enable(c.ep), 0);
	/* Usable at once, by way of anybody. */
	expect(t, kfi_write(a.ep, &(u64){ 1 }, 8, NULL, addr_c, 0, 4, CONTEXT(1)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(1), WRITTEN, 8);
	expect(t, target, 1);
	expect(t, kfi_mr_bind(mr, &a.ep->fid, 0), -KFI_EINVAL);
	expect(t, kfi_mr_bind(mr, &b.ep->fid, 0), 0);
	expect(t, kfi_mr_bind(mr, &c.ep->fid, 0), -KFI_EINVAL);
	expect(t, kfi_mr_enable(mr), 0);
	put(t, &a, 2, 0, 4, 0);
	expect(t, target, 2);
	expect(t, kfi_write(a.ep, &(u64){ 3 }, 8, NULL, addr_c, 0, 4, CONTEXT(1)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), WRITTEN, KFI_EKEYREJECTED, 0, 0);
	expect(t, target, 2);
	expect(t, kfi_close(&b.ep->fid), -KFI_EBUSY);
	close_fid(t, &mr->fid);
	/* The key is free again. */
	mr = region_open(t, &b, &target, 8, ALL_ACCESS, 4);
close_c:
	if (mr)
		close_fid(t, &mr->fid);
	end_close(t, &c);
close:
	pair_close(t, &a, &b);
}

/* Peers need the authorization key that a region was registered with. */
static void with_a_key(struct test *t)
{
	static const char *const key[] = { NULL, "one", "another" };
	u64 target[ARRAY_SIZE(key)] = {};
	struct kfid_mr *mr[ARRAY_SIZE(key)] = {};
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(key); i++) {
		struct kvec iov = { &target[i], 8 };
		struct kfi_mr_attr attr = {
			.type = KFI_KVEC,
			.mr_iov = &iov,
			.iov_count = 1,
			.access = ALL_ACCESS,
			.requested_key = 4 + i,
			.auth_key = (u8 *)key[i],
			.auth_key_size = key[i] ? strlen(key[i]) : 0,
		};

		if (!expect(t, kfi_mr_regattr(nic_domain[1], &attr, 0, &mr[i]), 0))
			goto close;
	}
	for (i = 0; i < ARRAY_SIZE(key); i++) {
		const struct setup setup = { .key = key[i] };
		struct end a, b;

		if (!pair_open(t, &a, &b, &setup, &setup))
			goto close;
		/* A region without a key of its own has that of the endpoint. */
		for (at = 0; at < ARRAY_SIZE(key); at++) {
			const bool open = !at || at == i;

			put(t, &a, 10 * at + i + 1, 0, 4 + at, open ? 0 : KFI_EACCES);
			if (open)
				expect(t, target[at], 10 * at + i + 1);
		}
		pair_close(t, &a, &b);
	}
close:
	for (i = 0; i < ARRAY_SIZE(key); i++) {
		if (mr[i])
			close_fid(t, &mr[i]->fid);
	}
}

/* Registration that is told by an event. */
static void told(struct test *t)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfid_domain *domain = domain_in_mode(t, 0, 0);
	struct kfi_eq_entry entry = {};
	struct kfid_mr *mr = NULL;
	struct kfid_eq *eq = NULL;
	u64 target;
	u32 event;

	if (!domain)
		return;
	if (expect(t, kfi_eq_open(t->fabric, &attr, &eq, NULL, NULL), 0)) {
		expect(t, kfi_domain_bind(domain, &eq->fid, KFI_REG_MR), 0);
		expect(t, kfi_domain_bind(domain, &eq->fid, KFI_REG_MR), -KFI_EINVAL);
		expect(t, kfi_close(&eq->fid), -KFI_EBUSY);
		expect(t, kfi_mr_reg(domain, &target, 8, ALL_ACCESS, 0, 77, 0, &mr, CONTEXT(4)),
		       0);
		expect(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), SOON, 0),
		       sizeof(entry));
		expect(t, event, KFI_MR_COMPLETE);
		expect_true(t, entry.fid == &mr->fid);
		expect_true(t, entry.context == CONTEXT(4));
		if (mr)
			close_fid(t, &mr->fid);
	}
	close_fid(t, &domain->fid);
	if (eq)
		close_fid(t, &eq->fid);
}

/* A handler's dealings with the region that it was told of. */
struct told_region {
	struct kfid_mr *mr;
	struct completion done;
	bool same;
	int closed;
};

static void close_told(struct kfid_eq *eq, void *context)
{
	struct kfi_eq_entry entry = {};
	struct told_region *told = context;
	u32 event;

	if (kfi_eq_read(eq, &event, &entry, sizeof(entry), 0) != sizeof(entry))
		return;
	told->same = entry.fid == &READ_ONCE(told->mr)->fid;
	told->closed = kfi_close(entry.fid);
	complete(&told->done);
}

/* A handler that is told of a region may close it, even before kfi_mr_reg() has returned. */
static void told_and_closed(struct test *t)
{
	struct kfi_eq_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfid_domain *domain = domain_in_mode(t, 0, 0);
	struct told_region told = { .closed = 1 };
	struct kfid_eq *eq = NULL;
	u64 target;
	int i;

	if (!domain)
		return;
	init_completion(&told.done);
	if (expect(t, kfi_eq_open(t->fabric, &attr, &eq, close_told, &told), 0)) {
		expect(t, kfi_domain_bind(domain, &eq->fid, KFI_REG_MR), 0);
		for (i = 0; i < 100; i++) {
			struct kfi_eq_entry entry;
			u32 event;

			told.mr = NULL;
			reinit_completion(&told.done);
			if (!expect(t, kfi_mr_reg(domain, &target, 8, ALL_ACCESS, 0, 77, 0,
						  &told.mr, CONTEXT(4)), 0))
				break;
			if (!expect_true(t, wait_for_completion_timeout(&told.done, 10 * HZ)))
				break;
			expect_true(t, told.same);
			expect(t, told.closed, 0);
			/* It calls the handler again. */
			expect(t, kfi_eq_read(eq, &event, &entry, sizeof(entry), 0), -KFI_EAGAIN);
		}
	}
	close_fid(t, &domain->fid);
	if (eq)
		close_fid(t, &eq->fid);
}

/*
 * A region is closed, and another one has its key, while the rest of a write
 * to it goes elsewhere: what was written to is what counts.
 */
static void successor(struct test *t)
{
	enum { LEN = 16 << 20 };
	struct kfi_rma_iov rma[2] = { { .len = 8, .key = 1 }, { .len = LEN, .key = 2 } };
	struct kvec iov[2] = {};
	struct kfi_msg_rma msg = {
		.type = KFI_KVEC, .msg_iov = iov, .iov_count = 2, .rma_iov = rma,
		.rma_iov_count = 2, .context = CONTEXT(1),
	};
	struct kfid_cntr *cntr[2] = {};
	struct kfid_mr *mr, *rest = NULL;
	u64 target[2], value = 7, counts[2];
	unsigned int i, round;
	struct end a, b;
	u8 *from, *to;

	from = kvzalloc(LEN, GFP_KERNEL);
	to = kvzalloc(LEN, GFP_KERNEL);
	/* The domain of the counters is the first one. */
	if (!expect_true(t, from && to) || !pair_open(t, &b, &a, NULL, NULL))
		goto free;
	for (i = 0; i < 2; i++)
		cntr[i] = open_cntr(t, KFI_WAIT_UNSPEC);
	rest = region_open(t, &b, to, LEN, ALL_ACCESS, 2);
	if (!cntr[0] || !cntr[1] || !rest)
		goto close;
	iov[0] = (struct kvec) { &value, 8 };
	iov[1] = (struct kvec) { from, LEN };
	msg.addr = a.peer;
	for (round = 0; round < 20 && !t->failed; round++) {
		struct kfi_cq_tagged_entry entry;
		struct kfi_cq_err_entry error = {};
		ssize_t ret;

		memset(target, 0, sizeof(target));
		for (i = 0; i < 2; i++)
			counts[i] = kfi_cntr_read(cntr[i]);
		mr = region_open(t, &b, &target[0], 8, ALL_ACCESS, 1);
		if (!mr)
			break;
		expect(t, kfi_mr_bind(mr, &cntr[0]->fid, KFI_REMOTE_WRITE), 0);
		expect(t, kfi_writemsg(a.ep, &msg, KFI_COMPLETION), 0);
		/* Somebody else copies; in one of the rounds it has begun, and not ended. */
		if (round & 1)
			usleep_range(20 * round, 20 * round + 20);
		close_fid(t, &mr->fid);
		mr = region_open(t, &b, &target[1], 8, ALL_ACCESS, 1);
		if (!mr)
			break;
		expect(t, kfi_mr_bind(mr, &cntr[1]->fid, KFI_REMOTE_WRITE), 0);
		ret = kfi_cq_sread(a.tx_cq, &entry, 1, NULL, SOON);
		if (ret == -KFI_EAVAIL && expect(t, kfi_cq_readerr(a.tx_cq, &error, 0), 1)) {
			/* It has found neither of them. */
			expect(t, error.err, KFI_EKEYREJECTED);
			expect_true(t, !target[0] && !target[1]);
		} else {
			expect(t, ret, 1);
			expect_true(t, target[0] + target[1] == value);
		}
		expect_true(t, kfi_cntr_read(cntr[0]) - counts[0] == !!target[0]);
		/* The second one is there before its counter is. */
		expect_true(t, kfi_cntr_read(cntr[1]) - counts[1] <= !!target[1]);
		close_fid(t, &mr->fid);
		say(t, "round %u", round);
	}
close:
	if (rest)
		close_fid(t, &rest->fid);
	for (i = 0; i < 2; i++) {
		if (cntr[i])
			close_fid(t, &cntr[i]->fid);
	}
	pair_close(t, &b, &a);
free:
	kvfree(from);
	kvfree(to);
}

const struct test_case region_tests[] = {
	{ "region/successor", "R-CNTR-3", successor, true },
	{ "region/forms", "", forms },
	{ "region/refused", "R-CLOSE-9", refused },
	{ "region/case-6-counters", "R-CNTR-7", counters },
	{ "region/events", "", events },
	{ "region/events-of-endpoints", "", events_of_endpoints },
	{ "region/chosen-keys", "", chosen_keys },
	{ "region/all-keys", "", all_keys },
	{ "region/endpoints", "", of_endpoints },
	{ "region/bound-in-any-mode", "", bound_in_any_mode },
	{ "region/auth-key", "", with_a_key },
	{ "region/told", "", told },
	{ "region/told-and-closed", "R-CLOSE-3", told_and_closed },
	{}
};
