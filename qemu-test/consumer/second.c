// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the second provider, which is in safe code and careless: it holds
 * nothing while a thread sleeps in it, and goes on sleeping when it has given up
 * all that keeps its module. Unloaded right afterwards, it must be gone without
 * a trace.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include <kfi_endpoint.h>

#include "objects.h"

char *provider = "kfi_second";

static struct job closer;

static long close_domain(void *domain)
{
	return kfi_close(&((struct kfid_domain *)domain)->fid);
}

/* A counter with a thread in kfi_cntr_wait() is not closed. */
static void wait_holds(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct waiter waiter;

	if (!cntr || !waiter_start(t, &waiter, cntr, 1, SOON))
		return;
	/* It is about to make the call, and sleeps most of the time when it has. */
	msleep(200);
	expect(t, kfi_close(&cntr->fid), -KFI_EBUSY);
	expect(t, kfi_cntr_add(cntr, 1), 0);
	expect(t, waiter_finish(&waiter), 0);
	close_fid(t, &cntr->fid);
}

/* An alias is an endpoint of its own. */
static void alias(struct test *t)
{
	struct kfid_ep *ep = NULL, *other = NULL;

	if (!expect(t, kfi_endpoint(t->domain, t->info, &ep, NULL), 0))
		return;
	if (expect(t, kfi_ep_alias(ep, &other, KFI_TRANSMIT), 0)) {
		expect_true(t, other && other != ep);
		expect(t, other->fid.fclass, KFI_CLASS_EP);
		expect(t, kfi_send(other, NULL, 0, NULL, 0, NULL), -EOPNOTSUPP);
		close_fid(t, &other->fid);
	}
	/* These flags do not say for which direction they are. */
	expect(t, kfi_ep_alias(ep, &other, 0), -EINVAL);
	close_fid(t, &ep->fid);
}

/* The close of the domain goes on sleeping when the fabric is closed. */
static void sleeping_release(struct test *t)
{
	unsigned int ms;
	int ret = -KFI_EBUSY;

	if (!job_start(t, &closer, close_domain, t->domain, ANY_CPU))
		return;
	for (ms = 0; ret == -KFI_EBUSY && ms < SOON; ms++) {
		ret = kfi_close(&t->fabric->fid);
		if (ret)
			usleep_range(1000, 2000);
	}
	expect(t, ret, 0);
	expect_true(t, !completion_done(&closer.done));
}

static const struct test_case tests[] = {
	{ "second/wait-holds", "R-CLOSE-2", wait_holds },
	{ "second/alias", "", alias },
	{ "second/sleeping-release", "R-CLOSE-5", sleeping_release },
	{}
};

static const struct test_case *const suites[] = { tests };

static int __init kfi_second_user_init(void)
{
	const struct plan plan = { .suites = suites, .count = ARRAY_SIZE(suites) };
	struct test t = {};

	begin_results(count_tests(&plan));
	if (!open_fabric(&t) || !open_domain(&t)) {
		pr_info("Bail out! nothing can be opened\n");
		kfi_freeinfo(t.info);
		return -ENODEV;
	}
	run_tests(&t, &plan);
	kfi_freeinfo(t.info);
	return 0;
}

static void __exit kfi_second_user_exit(void)
{
	/* The results have been read by now: this is looked for in any log. */
	if (closer.task && job_finish(&closer))
		pr_err("BUG: the domain was not closed: %ld\n", closer.result);
}

module_init(kfi_second_user_init);
module_exit(kfi_second_user_exit);

MODULE_DESCRIPTION("Tests of a second provider of kfabric in safe code");
MODULE_AUTHOR("kfabric-rs authors");
MODULE_LICENSE("GPL");
