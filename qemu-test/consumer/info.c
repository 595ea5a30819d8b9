// SPDX-License-Identifier: GPL-2.0
/*
 * Discovery.
 */
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_cxi_ext.h>
#include <kfi_prov.h>

#include "consumer.h"

#define VERSION KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION)

static bool is_complete(const struct kfi_info *info)
{
	return info->tx_attr && info->rx_attr && info->ep_attr &&
	       info->domain_attr && info->domain_attr->name &&
	       info->fabric_attr && info->fabric_attr->name &&
	       info->fabric_attr->prov_name;
}

static bool has_device(const struct kfi_info *info, const char *name)
{
	for (; info; info = info->next) {
		if (!strcmp(info->domain_attr->name, name))
			return true;
	}
	return false;
}

static void version(struct test *t)
{
	expect_true(t, KFI_VERSION_GE(kfi_version(), VERSION));
	expect(t, KFI_MAJOR(kfi_version()), KFI_MAJOR_VERSION);
}

static void without_hints(struct test *t)
{
	struct kfi_info *info = NULL, *entry;
	bool found = false;

	if (!expect(t, kfi_getinfo(VERSION, NULL, NULL, 0, NULL, &info), 0))
		return;
	for (entry = info; entry; entry = entry->next) {
		if (!expect_true(t, is_complete(entry)))
			break;
		found |= !strcmp(entry->fabric_attr->prov_name, provider);
	}
	expect_true(t, found);
	kfi_freeinfo(info);
}

static void by_provider(struct test *t)
{
	struct kfi_info *info = get_provider_info(t), *entry;

	for (entry = info; entry; entry = entry->next) {
		if (!expect_true(t, is_complete(entry)))
			break;
		expect(t, strcmp(entry->fabric_attr->prov_name, provider), 0);
	}
	if (info && !t->failed && !strcmp(provider, "kfi_soft")) {
		expect_true(t, has_device(info, "soft0"));
		expect_true(t, has_device(info, "soft1"));
	}
	kfi_freeinfo(info);
}

static void by_device(struct test *t)
{
	const char *name = t->info->domain_attr->name;
	struct kfi_info *info = NULL;

	if (!expect(t, kfi_getinfo(VERSION, name, NULL, KFI_SOURCE, NULL, &info), 0))
		return;
	expect_true(t, has_device(info, name));
	kfi_freeinfo(info);
}

static void no_match(struct test *t)
{
	/* Not NULL: the call must make it so. */
	struct kfi_info *info = ERR_PTR(-EINVAL);
	struct kfi_info *hints = kfi_allocinfo();

	if (!expect_true(t, hints))
		return;
	hints->fabric_attr->prov_name = kstrdup("no such provider", GFP_KERNEL);
	if (expect_true(t, hints->fabric_attr->prov_name)) {
		expect(t, kfi_getinfo(VERSION, NULL, NULL, 0, hints, &info),
		       -KFI_ENODATA);
		expect_true(t, !info);
	}
	kfi_freeinfo(hints);
}

static void copy(struct test *t)
{
	struct kfi_info *copy = kfi_dupinfo(t->info);

	if (!expect_true(t, copy))
		return;
	expect_true(t, !copy->next);
	if (expect_true(t, is_complete(copy))) {
		expect_true(t, copy->fabric_attr != t->info->fabric_attr);
		expect_true(t, copy->domain_attr->name != t->info->domain_attr->name);
		expect(t, strcmp(copy->domain_attr->name,
				 t->info->domain_attr->name), 0);
	}
	kfi_freeinfo(copy);
}

/* Neither the list nor what an entry refers to has to be there. */
static void free_nothing(struct test *t)
{
	struct kfi_info *info = kfi_allocinfo(), *copy;

	kfi_freeinfo(NULL);
	if (!expect_true(t, info))
		return;
	kfree(info->tx_attr);
	kfree(info->rx_attr);
	info->tx_attr = NULL;
	info->rx_attr = NULL;
	copy = kfi_dupinfo(info);
	kfi_freeinfo(info);
	if (!expect_true(t, copy))
		return;
	expect_true(t, !copy->tx_attr && !copy->rx_attr);
	expect_true(t, copy->ep_attr && copy->domain_attr && copy->fabric_attr);
	kfi_freeinfo(copy);
}

/* Of nothing there is a copy as of an entry that nothing was put into. */
static void copy_nothing(struct test *t)
{
	struct kfi_info *copy = kfi_dupinfo(NULL);

	if (!expect_true(t, copy))
		return;
	expect_true(t, !copy->next && !copy->src_addr && !copy->dest_addr && !copy->handle);
	expect(t, copy->caps, 0);
	if (expect_true(t, copy->tx_attr && copy->rx_attr && copy->ep_attr) &&
	    expect_true(t, copy->domain_attr && copy->fabric_attr)) {
		expect(t, copy->tx_attr->size, 0);
		expect(t, copy->rx_attr->size, 0);
		expect(t, copy->ep_attr->type, KFI_EP_UNSPEC);
		expect_true(t, !copy->domain_attr->name);
		expect_true(t, !copy->fabric_attr->name && !copy->fabric_attr->prov_name);
	}
	kfi_freeinfo(copy);
}

/* True if both are the same bytes, in memory of their own. */
static bool is_copy(const void *copy, const void *of, size_t size)
{
	return copy && copy != of && !memcmp(copy, of, size);
}

/* What an entry owns is copied, what it only names is not. */
static void copy_everything(struct test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->info), *copy = NULL;

	if (!expect_true(t, info))
		return;
	kfree(info->src_addr);
	kfree(info->dest_addr);
	kfree(info->ep_attr->auth_key);
	kfree(info->domain_attr->auth_key);
	info->src_addr = kmemdup("source", 6, GFP_KERNEL);
	info->src_addrlen = 6;
	info->dest_addr = kmemdup("destination", 11, GFP_KERNEL);
	info->dest_addrlen = 11;
	info->ep_attr->auth_key = kmemdup("of the endpoint", 15, GFP_KERNEL);
	info->ep_attr->auth_key_size = 15;
	info->domain_attr->auth_key = kmemdup("of the domain", 13, GFP_KERNEL);
	info->domain_attr->auth_key_size = 13;
	info->handle = &t->domain->fid;
	info->fabric_attr->fabric = t->fabric;
	info->domain_attr->domain = t->domain;
	if (!expect_true(t, info->src_addr && info->dest_addr) ||
	    !expect_true(t, info->ep_attr->auth_key && info->domain_attr->auth_key))
		goto free;
	copy = kfi_dupinfo(info);
	if (!expect_true(t, copy) || !expect_true(t, is_complete(copy)))
		goto free;
	expect(t, copy->src_addrlen, 6);
	expect(t, copy->dest_addrlen, 11);
	expect_true(t, is_copy(copy->src_addr, info->src_addr, 6));
	expect_true(t, is_copy(copy->dest_addr, info->dest_addr, 11));
	expect(t, copy->ep_attr->auth_key_size, 15);
	expect_true(t, is_copy(copy->ep_attr->auth_key, info->ep_attr->auth_key, 15));
	expect(t, copy->domain_attr->auth_key_size, 13);
	expect_true(t, is_copy(copy->domain_attr->auth_key, info->domain_attr->auth_key, 13));
	expect_true(t, copy->handle == info->handle);
	expect_true(t, copy->fabric_attr->fabric == t->fabric);
	expect_true(t, copy->domain_attr->domain == t->domain);
free:
	kfi_freeinfo(info);
	kfi_freeinfo(copy);
}

/* All numbers that the parts of an entry have, but for lengths of what is copied as well. */
#define EACH_NUMBER(X) \
	X(tx_attr, caps) \
	X(tx_attr, mode) \
	X(tx_attr, op_flags) \
	X(tx_attr, msg_order) \
	X(tx_attr, comp_order) \
	X(tx_attr, inject_size) \
	X(tx_attr, size) \
	X(tx_attr, iov_limit) \
	X(tx_attr, rma_iov_limit) \
	X(tx_attr, tclass) \
	X(rx_attr, caps) \
	X(rx_attr, mode) \
	X(rx_attr, op_flags) \
	X(rx_attr, msg_order) \
	X(rx_attr, comp_order) \
	X(rx_attr, total_buffered_recv) \
	X(rx_attr, size) \
	X(rx_attr, iov_limit) \
	X(ep_attr, type) \
	X(ep_attr, protocol) \
	X(ep_attr, protocol_version) \
	X(ep_attr, max_msg_size) \
	X(ep_attr, msg_prefix_size) \
	X(ep_attr, max_order_raw_size) \
	X(ep_attr, max_order_war_size) \
	X(ep_attr, max_order_waw_size) \
	X(ep_attr, mem_tag_format) \
	X(ep_attr, tx_ctx_cnt) \
	X(ep_attr, rx_ctx_cnt) \
	X(domain_attr, threading) \
	X(domain_attr, control_progress) \
	X(domain_attr, data_progress) \
	X(domain_attr, resource_mgmt) \
	X(domain_attr, av_type) \
	X(domain_attr, mr_mode) \
	X(domain_attr, mr_key_size) \
	X(domain_attr, cq_data_size) \
	X(domain_attr, cq_cnt) \
	X(domain_attr, ep_cnt) \
	X(domain_attr, tx_ctx_cnt) \
	X(domain_attr, rx_ctx_cnt) \
	X(domain_attr, max_ep_tx_ctx) \
	X(domain_attr, max_ep_rx_ctx) \
	X(domain_attr, max_ep_stx_ctx) \
	X(domain_attr, max_ep_srx_ctx) \
	X(domain_attr, cntr_cnt) \
	X(domain_attr, mr_iov_limit) \
	X(domain_attr, caps) \
	X(domain_attr, mode) \
	X(domain_attr, max_err_data) \
	X(domain_attr, mr_cnt) \
	X(domain_attr, tclass) \
	X(fabric_attr, prov_version) \
	X(fabric_attr, api_version)

static void copy_all_numbers(struct test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->info), *copy;
	unsigned int number = 0;

	if (!expect_true(t, info))
		return;
	info->caps = ++number;
	info->mode = ++number;
	info->addr_format = ++number;
#define SET(part, member) info->part->member = ++number;
	EACH_NUMBER(SET)
#undef SET
	copy = kfi_dupinfo(info);
	if (expect_true(t, copy)) {
		number = 0;
		expect(t, copy->caps, ++number);
		expect(t, copy->mode, ++number);
		expect(t, copy->addr_format, ++number);
#define EXPECT(part, member) expect(t, copy->part->member, ++number);
		EACH_NUMBER(EXPECT)
#undef EXPECT
	}
	kfi_freeinfo(info);
	kfi_freeinfo(copy);
}

static void error_texts(struct test *t)
{
	expect_true(t, kfi_strerror(KFI_EAVAIL));
	expect_true(t, kfi_strerror(KFI_EBUSY));
	expect_true(t, kfi_strerror(99999));
}

/* There has to be a place for what is asked for. */
static void missing_arguments(struct test *t)
{
	struct kfi_fabric_attr attr = *t->info->fabric_attr;
	struct kfid_fabric *fabric = ERR_PTR(-EINVAL);
	struct kfi_info *info = ERR_PTR(-EINVAL);

	expect(t, kfi_getinfo(VERSION, NULL, NULL, 0, NULL, NULL), -KFI_EINVAL);
	/* One that was written for a later version than there is. */
	expect(t, kfi_getinfo(KFI_VERSION(1, 8), NULL, NULL, 0, NULL, &info), -KFI_ENOSYS);
	expect_true(t, !info);
	expect(t, kfi_fabric(&attr, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_fabric(NULL, &fabric, NULL), -KFI_EINVAL);
	attr.prov_name = "";
	expect(t, kfi_fabric(&attr, &fabric, NULL), -KFI_EINVAL);
	attr.prov_name = NULL;
	expect(t, kfi_fabric(&attr, &fabric, NULL), -KFI_EINVAL);
	expect_true(t, fabric == ERR_PTR(-EINVAL));
	expect(t, kfi_provider_register(NULL), -KFI_EINVAL);
	expect(t, kfi_provider_deregister(NULL), -KFI_EINVAL);
}

static void fabric(struct test *t)
{
	struct kfid_fabric *fabric = NULL;

	if (!expect(t, kfi_fabric(t->info->fabric_attr, &fabric, t), 0))
		return;
	/* Another object than the one that is open already. */
	expect_true(t, fabric != t->fabric);
	expect(t, fabric->fid.fclass, KFI_CLASS_FABRIC);
	expect_true(t, fabric->fid.context == t);
	close_fid(t, &fabric->fid);
}

static void domain(struct test *t)
{
	struct kfid_domain *domain = NULL;

	if (!expect(t, kfi_domain(t->fabric, t->info, &domain, t), 0))
		return;
	expect_true(t, domain != t->domain);
	expect(t, domain->fid.fclass, KFI_CLASS_DOMAIN);
	expect_true(t, domain->fid.context == t);
	close_fid(t, &domain->fid);
}

static void no_such_fabric(struct test *t)
{
	struct kfi_fabric_attr attr = {
		.prov_name = "no such provider",
		.name = "no such fabric",
	};
	struct kfid_fabric *fabric = NULL;

	expect(t, kfi_fabric(&attr, &fabric, NULL), -KFI_ENODEV);
	attr.prov_name = NULL;
	expect(t, kfi_fabric(&attr, &fabric, NULL), -KFI_EINVAL);
}

/* Opens a domain, and closes it. */
static int try_domain(struct test *t, struct kfi_info *info)
{
	struct kfid_domain *domain = NULL;
	int ret = kfi_domain(t->fabric, info, &domain, NULL);

	if (!ret)
		close_fid(t, &domain->fid);
	else
		expect_true(t, !domain);
	return ret;
}

/* A provider opens the fabrics and domains that it has, and no others. */
static void other_names(struct test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->info);
	struct kfid_fabric *fabric = NULL;
	char *name;

	if (!expect_true(t, info))
		return;
	name = info->fabric_attr->name;
	info->fabric_attr->name = "nothing";
	if (!expect(t, kfi_fabric(info->fabric_attr, &fabric, NULL), -KFI_ENODEV) && fabric)
		close_fid(t, &fabric->fid);
	info->fabric_attr->name = name;
	name = info->domain_attr->name;
	info->domain_attr->name = "nothing";
	expect_errno(t, try_domain(t, info));
	info->domain_attr->name = name;
	name = info->fabric_attr->prov_name;
	info->fabric_attr->prov_name = "somebody";
	expect(t, try_domain(t, info), -KFI_EINVAL);
	info->fabric_attr->prov_name = name;
	/* Nothing else was wrong with these. */
	expect(t, try_domain(t, info), 0);
	kfi_freeinfo(info);
}

/* Copies hints of the provider under test. */
static struct kfi_info *hints_of(struct test *t)
{
	struct kfi_info *hints = kfi_allocinfo();

	if (!expect_true(t, hints))
		return NULL;
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	if (expect_true(t, hints->fabric_attr->prov_name))
		return hints;
	kfi_freeinfo(hints);
	return NULL;
}

static void open_objects(struct test *t)
{
	struct kfi_info *hints = hints_of(t), *info = NULL;
	struct kfid_fabric *fabric = NULL;

	if (!hints)
		return;
	/* Objects that are open are named. */
	if (!expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), 0))
		goto free;
	expect_true(t, info->fabric_attr->fabric);
	expect_true(t, info->domain_attr->domain);
	kfi_freeinfo(info);

	hints->fabric_attr->fabric = t->fabric;
	hints->domain_attr->domain = t->domain;
	if (!expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), 0))
		goto free;
	expect_true(t, info->fabric_attr->fabric == t->fabric);
	expect_true(t, info->domain_attr->domain == t->domain);
	expect(t, strcmp(info->domain_attr->name, t->info->domain_attr->name), 0);
	expect_true(t, !info->next);
	kfi_freeinfo(info);

	/* A fabric without a domain. */
	if (!expect(t, kfi_fabric(t->info->fabric_attr, &fabric, NULL), 0))
		goto free;
	hints->domain_attr->domain = NULL;
	hints->fabric_attr->fabric = fabric;
	if (expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), 0)) {
		expect_true(t, info->fabric_attr->fabric == fabric);
		expect_true(t, !info->domain_attr->domain);
		kfi_freeinfo(info);
	}
	hints->domain_attr->domain = t->domain;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_ENODATA);
	hints->domain_attr->domain = NULL;

	/* Objects that are open no more, or never were, are looked for and not into. */
	close_fid(t, &fabric->fid);
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_ENODATA);
	hints->fabric_attr->fabric = (void *)1;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_ENODATA);
	hints->fabric_attr->fabric = (void *)t->domain;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_ENODATA);
	hints->fabric_attr->fabric = NULL;
	hints->domain_attr->domain = (void *)-4096L;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_ENODATA);
free:
	kfi_freeinfo(hints);
}

/* How many answers name a domain. */
static unsigned int times_named(struct test *t, struct kfi_info *hints,
				struct kfid_domain *domain)
{
	struct kfi_info *info = NULL, *entry;
	unsigned int count = 0;

	if (!expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), 0))
		return 0;
	for (entry = info; entry; entry = entry->next)
		count += entry->domain_attr->domain == domain;
	kfi_freeinfo(info);
	return count;
}

/* An answer that names a domain says what that does, or it names another. */
static void domain_as_it_is(struct test *t)
{
	static const char key[] = "a key";
	struct kfi_info *hints = hints_of(t), *own = kfi_dupinfo(t->info), *info = NULL;
	struct kfid_domain *domain = NULL;
	struct kfi_domain_attr *attr;

	if (!hints || !expect_true(t, own))
		goto free;
	attr = own->domain_attr;
	attr->mr_key_size = 4;
	attr->av_type = KFI_AV_MAP;
	attr->auth_key = kmemdup(key, sizeof(key), GFP_KERNEL);
	attr->auth_key_size = sizeof(key);
	if (!expect_true(t, attr->auth_key) ||
	    !expect(t, kfi_domain(t->fabric, own, &domain, NULL), 0))
		goto free;
	/* It does less than is told to those who ask for nothing. */
	expect(t, times_named(t, hints, domain), 0);

	attr = hints->domain_attr;
	attr->domain = domain;
	if (expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), 0)) {
		expect_true(t, info->domain_attr->domain == domain);
		expect(t, info->domain_attr->mr_key_size, 4);
		expect(t, info->domain_attr->av_type, KFI_AV_MAP);
		if (expect(t, info->domain_attr->auth_key_size, sizeof(key)))
			expect(t, memcmp(info->domain_attr->auth_key, key, sizeof(key)), 0);
		kfi_freeinfo(info);
	}
	attr->mr_key_size = 5;
	expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), -KFI_ENODATA);
	attr->mr_key_size = 4;
	attr->av_type = KFI_AV_TABLE;
	expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), -KFI_ENODATA);
	attr->av_type = KFI_AV_MAP;
	attr->auth_key = kmemdup(key, sizeof(key), GFP_KERNEL);
	if (!expect_true(t, attr->auth_key))
		goto close;
	attr->auth_key_size = sizeof(key) - 1;
	expect(t, kfi_getinfo(0, NULL, NULL, KFI_SOURCE, hints, &info), -KFI_ENODATA);
	attr->auth_key_size = sizeof(key);
	expect(t, times_named(t, hints, domain), 1);
	/* It is found by what it does. */
	attr->domain = NULL;
	expect(t, times_named(t, hints, domain), 1);
close:
	close_fid(t, &domain->fid);
free:
	if (own)
		kfi_freeinfo(own);
	if (hints)
		kfi_freeinfo(hints);
}

static void auth_key_sizes(struct test *t)
{
	struct kfi_info *hints = hints_of(t), *info = NULL;
	const size_t limit = 64;
	u8 *key;

	if (!hints)
		return;
	key = kzalloc(limit + 1, GFP_KERNEL);
	if (!expect_true(t, key))
		goto free;
	hints->ep_attr->auth_key = key;
	hints->ep_attr->auth_key_size = limit;
	if (expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), 0)) {
		expect(t, info->ep_attr->auth_key_size, limit);
		expect_true(t, info->ep_attr->auth_key != key);
		kfi_freeinfo(info);
	}
	hints->ep_attr->auth_key_size = limit + 1;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_ENODATA);
	/* A key without a size, a size without a key. */
	hints->ep_attr->auth_key_size = 0;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_EINVAL);
	hints->ep_attr->auth_key = NULL;
	hints->ep_attr->auth_key_size = 4;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_EINVAL);
	hints->ep_attr->auth_key_size = 0;
	hints->domain_attr->auth_key = key;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_EINVAL);
	hints->domain_attr->auth_key = NULL;
	hints->domain_attr->auth_key_size = 1;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_EINVAL);
	hints->domain_attr->auth_key = key;
	hints->domain_attr->auth_key_size = limit + 1;
	expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), -KFI_ENODATA);
free:
	kfi_freeinfo(hints);
}

static void bad_domains(struct test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->info);
	struct kfi_domain_attr *attr;
	struct kfid_domain *domain = NULL;
	char *name;

	if (!expect_true(t, info))
		return;
	attr = info->domain_attr;
#define BAD_AS(member, value, error)					\
	do {								\
		typeof(member) good = member;				\
									\
		member = value;						\
		expect(t, kfi_domain(t->fabric, info, &domain, NULL),	\
		       -(error));					\
		member = good;						\
	} while (0)
#define BAD(member, value) BAD_AS(member, value, KFI_EINVAL)
	BAD(info->caps, KFI_MULTICAST);
	BAD(info->addr_format, KFI_ADDR_GNI);
	BAD(attr->mr_mode, 1 << 7);
	BAD(attr->mr_key_size, 9);
	BAD(attr->cq_data_size, 9);
	BAD(attr->av_type, 3);
	BAD(attr->resource_mgmt, 3);
	BAD(attr->threading, 6);
	BAD(attr->data_progress, 3);
	BAD(attr->tclass, 1);
	BAD(attr->auth_key_size, 4);
	BAD(info->domain_attr, NULL);
	BAD(info->fabric_attr->prov_name, "somebody");
	BAD(info->src_addrlen, 7);
	/* With the name of a NIC, and the address of another one. */
	if (expect_true(t, t->info->next))
		BAD_AS(info->src_addr, t->info->next->src_addr, KFI_ENODEV);
	name = attr->name;
	attr->name = NULL;
	expect(t, kfi_domain(t->fabric, info, &domain, NULL), -KFI_EINVAL);
	attr->name = "soft63";
	expect(t, kfi_domain(t->fabric, info, &domain, NULL), -KFI_ENODEV);
	attr->name = name;
	expect(t, kfi_domain(t->fabric, NULL, &domain, NULL), -KFI_EINVAL);
	expect_true(t, !domain);
	/* It need not name an address. */
	kfree(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	expect(t, try_domain(t, info), 0);
	kfi_freeinfo(info);
}

static void cxi_extensions(struct test *t)
{
	bool is_cxi = !strcmp(provider, "kcxi");
	struct kfi_cxi_fabric_ops *fabric_ops = NULL;
	struct kfi_cxi_domain_ops *domain_ops = NULL;
	struct device *device = NULL;
	void *ops = NULL;

	expect(t, kfi_open_ops(&t->fabric->fid, KFI_CXI_FAB_OPS_1, 0, &ops, NULL),
	       is_cxi ? 0 : -KFI_ENOSYS);
	fabric_ops = ops;
	ops = NULL;
	/* The device is there for the asking. */
	expect(t, kfi_open_ops(&t->domain->fid, KFI_CXI_DOM_OPS_1, 0, &ops, NULL), 0);
	domain_ops = ops;
	ops = NULL;
	expect(t, kfi_open_ops(&t->fabric->fid, "nothing", 0, &ops, NULL),
	       is_cxi ? -KFI_EINVAL : -KFI_ENOSYS);
	expect(t, kfi_open_ops(&t->domain->fid, KFI_CXI_FAB_OPS_1, 0, &ops, NULL),
	       is_cxi ? -KFI_EINVAL : -KFI_ENOSYS);
	expect_true(t, !ops);
	if (is_cxi && expect_true(t, fabric_ops)) {
		expect(t, fabric_ops->enable_dynamic_rsrc_alloc(&t->fabric->fid, true), 0);
		expect(t, fabric_ops->enable_dynamic_rsrc_alloc(&t->fabric->fid, false), 0);
	}
	if (!expect_true(t, domain_ops))
		return;
	expect(t, domain_ops->get_device(&t->domain->fid, NULL), -KFI_EINVAL);
	expect(t, domain_ops->get_device(&t->domain->fid, &device), 0);
	if (expect_true(t, device))
		expect_true(t, dma_get_mask(device) == DMA_BIT_MASK(64));
}

/*
 * Memory mapped for the device is where it was: the provider copies to it, and
 * to unmap it undoes nothing. Shows something with swiotlb=force.
 */
static void device_does_not_bounce(struct test *t)
{
	static const enum dma_data_direction directions[] = {
		DMA_TO_DEVICE, DMA_FROM_DEVICE, DMA_BIDIRECTIONAL,
	};
	struct kfi_cxi_domain_ops *ops = NULL;
	struct device *device = NULL;
	struct scatterlist sgl;
	unsigned int i;
	u8 *data;

	if (!IS_ENABLED(CONFIG_HAS_DMA))
		return;
	data = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!expect_true(t, data) ||
	    !expect(t, kfi_open_ops(&t->domain->fid, KFI_CXI_DOM_OPS_1, 0, (void **)&ops, NULL),
		    0) ||
	    !expect(t, ops->get_device(&t->domain->fid, &device), 0))
		goto free;
	for (i = 0; i < ARRAY_SIZE(directions); i++) {
		memset(data, 1, PAGE_SIZE);
		sg_init_one(&sgl, data + 3, 100);
		if (!expect(t, dma_map_sg(device, &sgl, 1, directions[i]), 1))
			break;
		expect_true(t, sg_dma_address(&sgl) == sg_phys(&sgl));
		expect_true(t, !dma_need_sync(device, sg_dma_address(&sgl)));
		data[3] = 2;
		dma_sync_sg_for_cpu(device, &sgl, 1, directions[i]);
		expect(t, data[3], 2);
		data[102] = 3;
		dma_unmap_sg(device, &sgl, 1, directions[i]);
		expect(t, data[3], 2);
		expect(t, data[102], 3);
	}
free:
	kfree(data);
}

const struct test_case info_tests[] = {
	{ "info/version", "", version },
	{ "info/without-hints", "", without_hints },
	{ "info/by-provider", "", by_provider },
	{ "info/by-device", "", by_device },
	{ "info/no-match", "", no_match },
	{ "info/copy", "", copy },
	{ "info/copy-nothing", "", copy_nothing },
	{ "info/copy-everything", "", copy_everything },
	{ "info/copy-all-numbers", "", copy_all_numbers },
	{ "info/free-nothing", "", free_nothing },
	{ "info/error-texts", "", error_texts },
	{ "info/open-objects", "", open_objects },
	{ "info/domain-as-it-is", "", domain_as_it_is },
	{ "info/auth-key-sizes", "", auth_key_sizes },
	{ "info/cxi-extensions", "", cxi_extensions },
	{ "info/device-does-not-bounce", "", device_does_not_bounce },
	{ "open/missing-arguments", "", missing_arguments },
	{ "open/fabric", "", fabric },
	{ "open/domain", "", domain },
	{ "open/no-such-fabric", "", no_such_fabric },
	{ "open/other-names", "", other_names },
	{ "open/bad-domains", "", bad_domains },
	{}
};
