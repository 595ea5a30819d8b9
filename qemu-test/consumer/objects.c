// SPDX-License-Identifier: GPL-2.0
/*
 * The objects that most tests need.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "objects.h"

/* What the provider under test offers, or NULL. To be freed by the caller. */
struct kfi_info *get_provider_info(struct test *t)
{
	struct kfi_info *hints, *info = NULL;
	int ret = -ENOMEM;

	hints = kfi_allocinfo();
	if (hints) {
		/* The string becomes part of the hints and is freed with them. */
		hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
		if (hints->fabric_attr->prov_name)
			ret = kfi_getinfo(KFI_VERSION(KFI_MAJOR_VERSION,
						      KFI_MINOR_VERSION),
					  NULL, NULL, 0, hints, &info);
	}
	kfi_freeinfo(hints);
	return expect(t, ret, 0) && expect_true(t, info) ? info : NULL;
}

/* Opens a fabric of the provider under test. */
bool open_fabric(struct test *t)
{
	t->info = get_provider_info(t);
	return t->info &&
	       expect(t, kfi_fabric(t->info->fabric_attr, &t->fabric, NULL), 0);
}

/* Opens a domain of the first of its NICs. */
bool open_domain(struct test *t)
{
	return expect(t, kfi_domain(t->fabric, t->info, &t->domain, NULL), 0);
}

/* Fails if something has been left open. */
void close_all(struct test *t)
{
	if (t->domain)
		close_fid(t, &t->domain->fid);
	if (t->fabric)
		close_fid(t, &t->fabric->fid);
	kfi_freeinfo(t->info);
	t->domain = NULL;
	t->fabric = NULL;
	t->info = NULL;
}

struct kfid_cntr *open_cntr(struct test *t, enum kfi_wait_obj wait_obj)
{
	struct kfi_cntr_attr attr = {
		.events = KFI_CNTR_EVENTS_COMP,
		.wait_obj = wait_obj,
	};
	struct kfid_cntr *cntr = NULL;

	if (!expect(t, kfi_cntr_open(t->domain, &attr, &cntr, NULL), 0))
		return NULL;
	return expect_true(t, cntr) ? cntr : NULL;
}

void close_fid(struct test *t, struct kfid *fid)
{
	expect(t, kfi_close(fid), 0);
}
