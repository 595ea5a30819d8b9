// SPDX-License-Identifier: GPL-2.0
/*
 * Expectations, and the objects that most tests need.
 */
#include <linux/delay.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "test.h"

bool expect_value(struct test *t, long long got, long long want,
		  const char *what, const char *file, int line)
{
	if (got == want)
		return true;
	t->failed = true;
	pr_info("# %s:%d: %s is %lld, expected %lld\n", kbasename(file), line,
		what, got, want);
	return false;
}

bool expect_errno_value(struct test *t, long long got, const char *what,
			const char *file, int line)
{
	if (got < 0 && got > -FI_ERRNO_MAX)
		return true;
	t->failed = true;
	pr_info("# %s:%d: %s is %lld, expected an error\n", kbasename(file),
		line, what, got);
	return false;
}

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

/*
 * Tells whoever reads the log that the kernel is going to report something, with
 * this in its title, until end_expected_report().
 */
void expect_report(const char *title)
{
	/* Sleeping at the wrong place is reported once in a second. */
	msleep(1100);
	pr_info("# a report is expected: %s\n", title);
}

void end_expected_report(void)
{
	pr_info("# a report was expected\n");
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
