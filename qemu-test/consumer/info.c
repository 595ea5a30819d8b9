// SPDX-License-Identifier: GPL-2.0
/*
 * Discovery.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "test.h"

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

static void free_nothing(struct test *t)
{
	kfi_freeinfo(NULL);
	expect_true(t, true);
}

static void error_texts(struct test *t)
{
	expect_true(t, kfi_strerror(KFI_EAVAIL));
	expect_true(t, kfi_strerror(KFI_EBUSY));
	expect_true(t, kfi_strerror(99999));
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

const struct test_case info_tests[] = {
	{ "info/version", "", version },
	{ "info/without-hints", "", without_hints },
	{ "info/by-provider", "", by_provider },
	{ "info/by-device", "", by_device },
	{ "info/no-match", "", no_match },
	{ "info/copy", "", copy },
	{ "info/free-nothing", "", free_nothing },
	{ "info/error-texts", "", error_texts },
	{ "open/fabric", "", fabric },
	{ "open/domain", "", domain },
	{ "open/no-such-fabric", "", no_such_fabric },
	{}
};
