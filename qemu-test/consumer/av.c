// SPDX-License-Identifier: GPL-2.0
/*
 * Address vectors.
 */
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/string.h>

#include <kfi_cxi_ext.h>
#include <kfi_endpoint.h>

#include "consumer.h"

/* The native address of a port of a NIC. */
static u64 address_of(unsigned int nic, unsigned int port)
{
	struct kcxi_addr addr = { .qw = 0 };

	addr.nic = nic;
	addr.pid = port;
	return addr.qw;
}

/* An address that is none: its flags are not 0. */
static const u64 malformed = 1ULL << 35;

static struct kfid_av *open_av_attr(struct test *t, struct kfi_av_attr *attr)
{
	struct kfid_av *av = NULL;

	if (!expect(t, kfi_av_open(t->domain, attr, &av, t), 0))
		return NULL;
	return expect_true(t, av) ? av : NULL;
}

static struct kfid_av *open_av(struct test *t, enum kfi_av_type type)
{
	struct kfi_av_attr attr = { .type = type };

	return open_av_attr(t, &attr);
}

/* True if the address is in the vector and is this one. */
static bool expect_lookup_at(struct test *t, struct kfid_av *av,
			     kfi_addr_t fi_addr, u64 want, int line)
{
	size_t len = sizeof(u64);
	u64 addr = 0;

	return expect_value(t, kfi_av_lookup(av, fi_addr, &addr, &len), 0,
			    "lookup", __FILE__, line) &&
	       expect_value(t, len, sizeof(u64), "length", __FILE__, line) &&
	       expect_value(t, addr, want, "address", __FILE__, line);
}

#define expect_lookup(t, av, fi_addr, want)				\
	expect_lookup_at(t, av, fi_addr, want, __LINE__)

static void expect_gone(struct test *t, struct kfid_av *av, kfi_addr_t fi_addr)
{
	size_t len = sizeof(u64);
	u64 addr = 7;

	expect(t, kfi_av_lookup(av, fi_addr, &addr, &len), -KFI_EINVAL);
	expect(t, addr, 7);
}

static void open_attr(struct test *t)
{
	static const struct {
		struct kfi_av_attr attr;
		int ret;
	} cases[] = {
		{ { .type = KFI_AV_MAP }, 0 },
		{ { .type = KFI_AV_TABLE }, 0 },
		{ { .type = KFI_AV_TABLE + 1 }, -KFI_EINVAL },
		{ { .count = SIZE_MAX, .ep_per_node = SIZE_MAX }, 0 },
		{ { .rx_ctx_bits = 8 }, 0 },
		{ { .rx_ctx_bits = 9 }, -KFI_EINVAL },
		{ { .rx_ctx_bits = -1 }, -KFI_EINVAL },
		{ { .rx_ctx_bits = 64 }, -KFI_EINVAL },
		{ { .flags = KFI_EVENT | KFI_SYMMETRIC }, 0 },
		{ { .flags = KFI_READ }, -KFI_ENOSYS },
		{ { .flags = 1 }, -KFI_EINVAL },
		{ { .name = "shared" }, -KFI_ENOSYS },
	};
	struct kfid_av *av;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kfi_av_attr attr = cases[i].attr;

		av = NULL;
		if (!expect(t, kfi_av_open(t->domain, &attr, &av, t), cases[i].ret))
			pr_info("# case %u\n", i);
		expect(t, !!av, !cases[i].ret);
		if (!av)
			continue;
		expect(t, av->fid.fclass, KFI_CLASS_AV);
		expect_true(t, av->fid.context == t);
		expect(t, av->ops->size, sizeof(struct kfi_ops_av));
		/* The choice is told. */
		expect_true(t, attr.type == KFI_AV_MAP || attr.type == KFI_AV_TABLE);
		if (cases[i].attr.type)
			expect(t, attr.type, cases[i].attr.type);
		close_fid(t, &av->fid);
	}
	av = NULL;
	expect(t, kfi_av_open(t->domain, NULL, &av, NULL), 0);
	if (av)
		close_fid(t, &av->fid);
}

static void insert_type(struct test *t, enum kfi_av_type type)
{
	u64 addrs[] = { address_of(0, 1), address_of(1, 4095), address_of(0, 1),
			address_of(0xfffff, 0) };
	kfi_addr_t got[ARRAY_SIZE(addrs)];
	struct kfid_av *av = open_av(t, type);
	unsigned int i;

	if (!av)
		return;
	expect(t, kfi_av_insert(av, addrs, ARRAY_SIZE(addrs), got, 0, NULL),
	       ARRAY_SIZE(addrs));
	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		if (type == KFI_AV_TABLE)
			expect(t, got[i], i);
		expect_lookup(t, av, got[i], addrs[i]);
	}
	/* Each insertion is one of its own. */
	expect_true(t, got[0] != got[2]);
	expect_gone(t, av, KFI_ADDR_NOTAVAIL);
	expect_gone(t, av, ARRAY_SIZE(addrs));
	expect_gone(t, av, 1ULL << 32);

	/* Nothing is inserted, nothing is wrong. */
	expect(t, kfi_av_insert(av, NULL, 0, NULL, 0, NULL), 0);
	expect(t, kfi_av_insert(av, NULL, 1, got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insert(av, addrs, SIZE_MAX / 4, got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insert(av, addrs, 1, got, KFI_READ, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insert(av, addrs, 1, got, KFI_MORE, NULL), 1);
	/* With a table the consumer can count for itself. */
	expect(t, kfi_av_insert(av, addrs, 1, NULL, 0, NULL),
	       type == KFI_AV_TABLE ? 1 : -KFI_EINVAL);
	close_fid(t, &av->fid);
}

static void insert_map(struct test *t)
{
	insert_type(t, KFI_AV_MAP);
}

static void insert_table(struct test *t)
{
	insert_type(t, KFI_AV_TABLE);
}

static void insert_some_fail(struct test *t)
{
	u64 addrs[] = { address_of(0, 1), malformed, address_of(0, 2) };
	kfi_addr_t got[ARRAY_SIZE(addrs)];
	struct kfid_av *av = open_av(t, KFI_AV_TABLE);
	int errors[] = { -1, -1, -1 };

	if (!av)
		return;
	expect(t, kfi_av_insert(av, addrs, 3, got, 0, NULL), 2);
	expect(t, got[0], 0);
	expect_true(t, got[1] == KFI_ADDR_NOTAVAIL);
	expect(t, got[2], 1);

	expect(t, kfi_av_insert(av, addrs, 3, got, KFI_SYNC_ERR, errors), 2);
	expect(t, errors[0], 0);
	expect(t, errors[1], KFI_EINVAL);
	expect(t, errors[2], 0);
	expect(t, kfi_av_insert(av, addrs, 3, got, KFI_SYNC_ERR, NULL), -KFI_EINVAL);
	close_fid(t, &av->fid);
}

static void insert_many(struct test *t)
{
	const unsigned int count = 5000;
	struct kfid_av *av = open_av(t, KFI_AV_TABLE);
	kfi_addr_t *got = kvcalloc(count, sizeof(*got), GFP_KERNEL);
	u64 *addrs = kvcalloc(count, sizeof(*addrs), GFP_KERNEL);
	unsigned int i;

	if (!av || !expect_true(t, got && addrs))
		goto free;
	for (i = 0; i < count; i++)
		addrs[i] = address_of(i / 4096, i % 4096);
	if (!expect(t, kfi_av_insert(av, addrs, count, got, 0, NULL), count))
		goto free;
	for (i = 0; i < count; i++) {
		if (!expect(t, got[i], i) || !expect_lookup(t, av, got[i], addrs[i]))
			break;
	}
	expect(t, kfi_av_remove(av, got, count, 0), 0);
	expect_gone(t, av, 0);
	expect_gone(t, av, count - 1);
free:
	kvfree(addrs);
	kvfree(got);
	if (av)
		close_fid(t, &av->fid);
}

static void remove(struct test *t)
{
	u64 addrs[] = { address_of(0, 1), address_of(0, 2), address_of(0, 3) };
	kfi_addr_t got[ARRAY_SIZE(addrs)], wrong[3];
	struct kfid_av *av = open_av(t, KFI_AV_TABLE);

	if (!av)
		return;
	expect(t, kfi_av_insert(av, addrs, 3, got, 0, NULL), 3);

	/* All or none. */
	wrong[0] = got[0];
	wrong[1] = 3;
	expect(t, kfi_av_remove(av, wrong, 2, 0), -KFI_EINVAL);
	wrong[1] = got[0];
	expect(t, kfi_av_remove(av, wrong, 2, 0), -KFI_EINVAL);
	wrong[1] = KFI_ADDR_NOTAVAIL;
	expect(t, kfi_av_remove(av, wrong, 2, 0), -KFI_EINVAL);
	expect_lookup(t, av, got[0], addrs[0]);
	expect(t, kfi_av_remove(av, got, 1, 1), -KFI_EINVAL);
	expect(t, kfi_av_remove(av, NULL, 1, 0), -KFI_EINVAL);
	expect(t, kfi_av_remove(av, NULL, 0, 0), 0);

	expect(t, kfi_av_remove(av, got, 2, 0), 0);
	expect_gone(t, av, got[0]);
	expect_gone(t, av, got[1]);
	expect_lookup(t, av, got[2], addrs[2]);
	expect(t, kfi_av_remove(av, got, 1, 0), -KFI_EINVAL);

	/* Used again. */
	expect(t, kfi_av_insert(av, addrs, 1, got, 0, NULL), 1);
	expect_true(t, got[0] < 2);
	expect_lookup(t, av, got[0], addrs[0]);
	close_fid(t, &av->fid);
}

static void lookup_cuts(struct test *t)
{
	struct kfid_av *av = open_av(t, KFI_AV_MAP);
	u64 addr = address_of(1, 0x234);
	u8 buf[16];
	kfi_addr_t got;
	size_t len;

	if (!av)
		return;
	expect(t, kfi_av_insert(av, &addr, 1, &got, 0, NULL), 1);
	memset(buf, 0xee, sizeof(buf));
	len = 3;
	expect(t, kfi_av_lookup(av, got, buf, &len), 0);
	expect(t, len, 8);
	expect(t, memcmp(buf, &addr, 3), 0);
	expect(t, buf[3], 0xee);
	len = sizeof(buf);
	expect(t, kfi_av_lookup(av, got, buf, &len), 0);
	expect(t, len, 8);
	expect(t, memcmp(buf, &addr, 8), 0);
	expect(t, buf[8], 0xee);
	len = 0;
	expect(t, kfi_av_lookup(av, got, NULL, &len), 0);
	expect(t, len, 8);
	expect(t, kfi_av_lookup(av, got, NULL, &len), -KFI_EINVAL);
	expect(t, kfi_av_lookup(av, got, buf, NULL), -KFI_EINVAL);
	close_fid(t, &av->fid);
}

static void straddr(struct test *t)
{
	static const char want[] = "fi_addr_soft://0x1:0x7f";
	struct kfid_av *av = open_av(t, KFI_AV_MAP);
	u64 addr = address_of(1, 0x7f);
	kfi_addr_t got;
	char buf[64];
	size_t len;

	if (!av)
		return;
	len = sizeof(buf);
	expect_true(t, kfi_av_straddr(av, &addr, buf, &len) == buf);
	expect(t, len, sizeof(want));
	expect(t, strcmp(buf, want), 0);
	/* Just enough, one too few, next to nothing, nothing. */
	len = sizeof(want);
	expect_true(t, kfi_av_straddr(av, &addr, buf, &len) == buf);
	expect(t, strcmp(buf, want), 0);
	len = sizeof(want) - 1;
	memset(buf, 'x', sizeof(buf));
	expect_true(t, kfi_av_straddr(av, &addr, buf, &len) == buf);
	expect(t, len, sizeof(want));
	expect(t, strlen(buf), sizeof(want) - 2);
	expect(t, buf[sizeof(want) - 1], 'x');
	len = 1;
	expect_true(t, kfi_av_straddr(av, &addr, buf, &len) == buf);
	expect(t, buf[0], 0);
	buf[0] = 'x';
	len = 0;
	kfi_av_straddr(av, &addr, buf, &len);
	expect(t, len, sizeof(want));
	expect(t, buf[0], 'x');

	len = sizeof(buf);
	expect_true(t, !kfi_av_straddr(av, &malformed, buf, &len));
	expect_true(t, !kfi_av_straddr(av, NULL, buf, &len));
	expect_true(t, !kfi_av_straddr(av, &addr, buf, NULL));

	/* The text can be inserted again. */
	expect(t, kfi_av_insertsvc(av, want, NULL, &got, 0, NULL), 1);
	expect_lookup(t, av, got, addr);
	close_fid(t, &av->fid);
}

static void insertsvc(struct test *t)
{
	struct kfid_av *av = open_av(t, KFI_AV_TABLE);
	kfi_addr_t got = 0;
	char name[16];

	if (!av)
		return;
	/* The second NIC, whatever it is called: the first has the number 1. */
	strscpy(name, t->info->domain_attr->name, sizeof(name));
	name[strlen(name) - 1] = '1';
	expect(t, kfi_av_insertsvc(av, name, "7", &got, 0, NULL), 1);
	expect_lookup(t, av, got, address_of(2, 7));
	expect(t, kfi_av_insertsvc(av, "0x12", "0", &got, 0, NULL), 1);
	expect_lookup(t, av, got, address_of(0x12, 0));
	expect(t, kfi_av_insertsvc(av, "127.0.0.3", "4095", &got, 0, NULL), 1);
	expect_lookup(t, av, got, address_of(3, 4095));
	expect(t, got, 2);
	expect(t, kfi_av_insertsvc(av, "18", "0", &got, 0, NULL), 1);
	expect_lookup(t, av, got, address_of(0x12, 0));

	expect(t, kfi_av_insertsvc(av, NULL, "7", &got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insertsvc(av, "0x1", NULL, &got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insertsvc(av, "0x1", "", &got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insertsvc(av, "0x1", "4096", &got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insertsvc(av, "nobody", "7", &got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insertsvc(av, "0x100000", "7", &got, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_av_insertsvc(av, "fi_addr_soft://0x1:0x2", "3", &got, 0, NULL),
	       -KFI_EINVAL);
	expect_gone(t, av, 4);
	close_fid(t, &av->fid);
}

static void insertsym(struct test *t)
{
	struct kfid_av *av = open_av(t, KFI_AV_TABLE);
	kfi_addr_t got[6];
	unsigned int i;

	if (!av)
		return;
	/* The services of a node are next to each other. */
	expect(t, kfi_av_insertsym(av, "0x0", 2, "10", 3, got, 0, NULL), 6);
	for (i = 0; i < 6; i++) {
		expect(t, got[i], i);
		expect_lookup(t, av, got[i], address_of(i / 3, 10 + i % 3));
	}
	/* Across the end of the ports, and of the NICs. */
	expect(t, kfi_av_insertsym(av, "0x0", 2, "4094", 3, got, 0, NULL), 4);
	expect_true(t, got[2] == KFI_ADDR_NOTAVAIL);
	expect_true(t, got[5] == KFI_ADDR_NOTAVAIL);
	expect_lookup(t, av, got[4], address_of(1, 4095));
	expect(t, kfi_av_insertsym(av, "0xfffff", 2, "1", 1, got, 0, NULL), 1);
	expect_true(t, got[1] == KFI_ADDR_NOTAVAIL);
	expect(t, kfi_av_insertsym(av, "0x0", 0, "1", 5, got, 0, NULL), 0);
	expect(t, kfi_av_insertsym(av, "0x0", 5, "1", 0, got, 0, NULL), 0);
	expect(t, kfi_av_insertsym(av, "0x0", SIZE_MAX, "1", 2, got, 0, NULL),
	       -KFI_EINVAL);
	close_fid(t, &av->fid);
}

static void rx_ctx_bits(struct test *t)
{
	struct kfi_av_attr attr = { .type = KFI_AV_MAP, .rx_ctx_bits = 8 };
	struct kfid_av *av = open_av_attr(t, &attr);
	u64 addr = address_of(1, 2);
	kfi_addr_t got, named;

	if (!av)
		return;
	expect(t, kfi_av_insert(av, &addr, 1, &got, 0, NULL), 1);
	expect(t, got >> 56, 0);
	named = kfi_rx_addr(got, 255, 8);
	expect_lookup(t, av, named, addr);
	/* This is not the address that was inserted. */
	expect(t, kfi_av_remove(av, &named, 1, 0), -KFI_EINVAL);
	expect(t, kfi_av_remove(av, &got, 1, 0), 0);
	expect_gone(t, av, named);
	close_fid(t, &av->fid);
}

static void no_event_queue(struct test *t)
{
	struct kfi_av_attr attr = { .flags = KFI_EVENT };
	struct kfid_av *av = open_av_attr(t, &attr);
	u64 addr = address_of(0, 1);
	kfi_addr_t got = 5;

	if (!av)
		return;
	expect(t, kfi_av_insert(av, &addr, 1, &got, 0, NULL), -KFI_ENOEQ);
	expect_gone(t, av, 0);
	close_fid(t, &av->fid);
}

/* Reads an event of an insertion. */
static void expect_complete(struct test *t, struct kfid_eq *eq,
			    struct kfid_av *av, void *context, u64 count)
{
	struct kfi_eq_entry entry = {};
	u32 event = 0;

	if (!expect(t, kfi_eq_read(eq, &event, &entry, sizeof(entry), 0),
		    sizeof(entry)))
		return;
	expect(t, event, KFI_AV_COMPLETE);
	expect_true(t, entry.fid == &av->fid);
	expect_true(t, entry.context == context);
	expect(t, entry.data, count);
}

/* Reads an error of an insertion. */
static void expect_failed(struct test *t, struct kfid_eq *eq,
			  struct kfid_av *av, void *context, u64 index)
{
	struct kfi_eq_err_entry entry = {};
	u32 event;
	u64 data;

	expect(t, kfi_eq_read(eq, &event, &data, sizeof(data), 0), -KFI_EAVAIL);
	if (kfi_eq_readerr(eq, &entry, 0) < 0) {
		expect_true(t, false);
		return;
	}
	expect_true(t, entry.fid == &av->fid);
	expect_true(t, entry.context == context);
	expect(t, entry.data, index);
	expect(t, entry.err, KFI_EINVAL);
}

static void expect_no_event(struct test *t, struct kfid_eq *eq)
{
	u64 data;
	u32 event;

	expect(t, kfi_eq_read(eq, &event, &data, sizeof(data), 0), -KFI_EAGAIN);
}

static void events(struct test *t)
{
	u64 addrs[] = { malformed, address_of(0, 1), malformed, address_of(1, 2) };
	struct kfi_av_attr attr = { .type = KFI_AV_TABLE, .flags = KFI_EVENT };
	struct kfid_av *av = open_av_attr(t, &attr);
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_NONE, NULL, 8);
	kfi_addr_t got[ARRAY_SIZE(addrs)];

	if (!av || !eq)
		goto close;
	expect(t, kfi_av_bind(av, &eq->fid, 0), 0);
	expect(t, kfi_av_insert(av, addrs, 4, got, 0, addrs), 0);
	expect_true(t, got[0] == KFI_ADDR_NOTAVAIL);
	expect(t, got[1], 0);
	expect_true(t, got[2] == KFI_ADDR_NOTAVAIL);
	expect(t, got[3], 1);
	expect_failed(t, eq, av, addrs, 0);
	expect_failed(t, eq, av, addrs, 2);
	expect_complete(t, eq, av, addrs, 2);
	expect_no_event(t, eq);
	expect_lookup(t, av, got[3], addrs[3]);

	expect(t, kfi_av_insertsvc(av, "0x1", "9", got, 0, got), 0);
	expect_complete(t, eq, av, got, 1);
	expect(t, kfi_av_insertsym(av, "0x1", 1, "9", 2, got, 0, got), 0);
	expect_complete(t, eq, av, got, 2);
	expect(t, kfi_av_insert(av, addrs, 0, got, 0, t), 0);
	expect_complete(t, eq, av, t, 0);
	/* Errors are told by events, or in an array, but not both. */
	expect(t, kfi_av_insert(av, addrs, 1, got, KFI_SYNC_ERR, got), -KFI_EINVAL);
	expect_no_event(t, eq);
close:
	if (av)
		close_fid(t, &av->fid);
	if (eq)
		close_fid(t, &eq->fid);
}

static void events_no_room(struct test *t)
{
	u64 addrs[] = { malformed, address_of(0, 1), malformed };
	struct kfi_av_attr attr = { .type = KFI_AV_TABLE, .flags = KFI_EVENT };
	struct kfid_av *av = open_av_attr(t, &attr);
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_NONE, NULL, 1);
	kfi_addr_t got[ARRAY_SIZE(addrs)] = {};

	if (!av || !eq)
		goto close;
	expect(t, kfi_av_bind(av, &eq->fid, 0), 0);
	expect(t, kfi_av_insert(av, addrs + 1, 1, got, 0, t), 0);
	/* More than the queue can ever take. */
	expect(t, kfi_av_insert(av, addrs, 2, got, 0, t), -KFI_ETOOSMALL);
	expect_true(t, got[1] == KFI_ADDR_NOTAVAIL);
	expect_gone(t, av, 1);
	/* The queue is full: nothing is inserted that nobody would be told of. */
	expect(t, kfi_av_insert(av, addrs + 1, 1, got, 0, t), -KFI_EAGAIN);
	expect_true(t, got[0] == KFI_ADDR_NOTAVAIL);
	expect_gone(t, av, 1);
	expect_complete(t, eq, av, t, 1);
	expect(t, kfi_av_insert(av, addrs + 1, 1, got, 0, t), 0);
	expect(t, got[0], 1);
	expect_complete(t, eq, av, t, 1);
	expect_no_event(t, eq);
close:
	if (av)
		close_fid(t, &av->fid);
	if (eq)
		close_fid(t, &eq->fid);
}

static void bind(struct test *t)
{
	struct kfid_av *av = open_av(t, KFI_AV_MAP);
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_NONE, NULL, 4);
	struct kfid_eq *second = open_eq(t, KFI_WAIT_NONE, NULL, 4);
	struct kfid_eq *foreign = NULL;
	struct test others;

	if (!av || !eq || !second)
		goto close;
	if (open_others(t, &others)) {
		foreign = open_eq(&others, KFI_WAIT_NONE, NULL, 4);
		if (foreign) {
			expect(t, kfi_av_bind(av, &foreign->fid, 0), -KFI_EINVAL);
			expect(t, kfi_domain_bind(t->domain, &foreign->fid, 0),
			       -KFI_EINVAL);
			close_fid(t, &foreign->fid);
		}
		close_others(t, &others);
	}
	expect(t, kfi_av_bind(av, &av->fid, 0), -KFI_EINVAL);
	expect(t, av->fid.ops->bind(&av->fid, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_av_bind(av, &eq->fid, 1), -KFI_EINVAL);
	expect(t, kfi_av_bind(av, &eq->fid, 0), 0);
	expect(t, kfi_av_bind(av, &eq->fid, 0), -KFI_EINVAL);
	expect(t, kfi_av_bind(av, &second->fid, 0), -KFI_EINVAL);
	/* A bind that failed holds nothing. */
	close_fid(t, &second->fid);
	second = NULL;
	expect(t, kfi_close(&eq->fid), -KFI_EBUSY);
close:
	if (av)
		close_fid(t, &av->fid);
	if (eq)
		close_fid(t, &eq->fid);
	if (second)
		close_fid(t, &second->fid);
}

static void domain_bind(struct test *t)
{
	struct kfid_eq *eq = open_eq(t, KFI_WAIT_NONE, NULL, 4);
	struct kfid_domain *domain = NULL;

	if (!eq)
		return;
	if (!expect(t, kfi_domain(t->fabric, t->info, &domain, NULL), 0))
		goto close;
	expect(t, kfi_domain_bind(domain, &t->domain->fid, 0), -KFI_EINVAL);
	expect(t, kfi_domain_bind(domain, &eq->fid, 1), -KFI_EINVAL);
	expect(t, kfi_domain_bind(domain, &eq->fid, KFI_REG_MR), 0);
	expect(t, kfi_domain_bind(domain, &eq->fid, 0), -KFI_EINVAL);
	expect(t, kfi_close(&eq->fid), -KFI_EBUSY);
	close_fid(t, &domain->fid);
close:
	close_fid(t, &eq->fid);
}

static void busy(struct test *t)
{
	struct kfi_av_attr attr = { .rx_ctx_bits = 99 };
	struct test others;
	struct kfid_av *av;

	if (!open_others(t, &others))
		return;
	av = open_av(&others, KFI_AV_MAP);
	if (av) {
		expect(t, kfi_close(&others.domain->fid), -KFI_EBUSY);
		close_fid(t, &av->fid);
	}
	/* A vector that could not be opened holds nothing. */
	expect(t, kfi_av_open(others.domain, &attr, &av, NULL), -KFI_EINVAL);
	expect(t, kfi_av_open(others.domain, NULL, NULL, NULL), -KFI_EINVAL);
	close_others(t, &others);
}

/* Returns an entry to open a domain of this format with. */
static struct kfi_info *inet_info(struct test *t)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;

	if (!expect_true(t, hints))
		return NULL;
	hints->addr_format = KFI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), 0);
	kfi_freeinfo(hints);
	return info;
}

static void internet(struct test *t)
{
	static const u8 want[16] = { AF_INET & 0xff, AF_INET >> 8, 0, 80,
				     127, 0, 0, 2 };
	static const char text[] = "fi_sockaddr_in://127.0.0.2:80";
	struct test other = { .info = inet_info(t), .fabric = t->fabric };
	struct kfid_av *av;
	kfi_addr_t got;
	char buf[64];
	size_t len;

	if (!other.info)
		return;
	if (!expect(t, kfi_domain(t->fabric, other.info, &other.domain, NULL), 0))
		goto free;
	av = open_av(&other, KFI_AV_MAP);
	if (av) {
		expect(t, kfi_av_insert(av, want, 1, &got, 0, NULL), 1);
		len = sizeof(buf);
		expect(t, kfi_av_lookup(av, got, buf, &len), 0);
		expect(t, len, sizeof(want));
		expect(t, memcmp(buf, want, sizeof(want)), 0);
		expect(t, kfi_av_insertsvc(av, "0x2", "80", &got, 0, NULL), 1);
		expect(t, kfi_av_lookup(av, got, buf, &len), 0);
		expect(t, memcmp(buf, want, sizeof(want)), 0);
		/* Port 0 is none. */
		expect(t, kfi_av_insertsvc(av, "0x2", "0", &got, 0, NULL),
		       -KFI_EINVAL);
		len = sizeof(buf);
		expect_true(t, kfi_av_straddr(av, want, buf, &len) == buf);
		expect(t, strcmp(buf, text), 0);
		close_fid(t, &av->fid);
	}
	t->failed |= other.failed;
	close_fid(t, &other.domain->fid);
free:
	kfi_freeinfo(other.info);
}

const struct test_case av_tests[] = {
	{ "av/open", "", open_attr },
	{ "av/insert-map", "", insert_map },
	{ "av/insert-table", "", insert_table },
	{ "av/insert-some-fail", "", insert_some_fail },
	{ "av/insert-many", "", insert_many },
	{ "av/remove", "", remove },
	{ "av/lookup-cuts", "", lookup_cuts },
	{ "av/straddr", "", straddr },
	{ "av/insertsvc", "", insertsvc },
	{ "av/insertsym", "", insertsym },
	{ "av/rx-ctx-bits", "", rx_ctx_bits },
	{ "av/no-event-queue", "", no_event_queue },
	{ "av/events", "", events },
	{ "av/events-no-room", "", events_no_room },
	{ "av/bind", "", bind },
	{ "av/domain-bind", "", domain_bind },
	{ "av/busy", "", busy },
	{ "av/internet", "", internet },
	{}
};
