// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that make each other due, from domain to domain.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_trigger.h>

#include "transfer.h"

/* More than fit on a stack, if each began inside of the one before. */
#define LINKS 64
#define TAG 7

/* A domain with an endpoint, which receives when its write has ended. */
struct link {
	struct kfid_domain *domain;
	struct end e;
	u8 to[8];
};

static bool link_open(struct test *t, struct link *link)
{
	struct setup setup = {
		.tx_cq_size = 8, .rx_cq_size = 8, .tx_size = 8, .rx_size = 8,
	};

	if (!expect(t, kfi_domain(t->fabric, nic_info[0], &link->domain, NULL), 0))
		return false;
	setup.domain = link->domain;
	return end_open(t, &link->e, 0, &setup);
}

static void link_close(struct test *t, struct link *link)
{
	if (link->e.ep)
		end_close(t, &link->e);
	if (link->domain)
		close_fid(t, &link->domain->fid);
}

/* A receive of several tagged messages that waits for the end of the own write. */
static int link_defer(struct link *link)
{
	struct kvec iov = { link->to, sizeof(link->to) };
	struct kfi_op_tagged op = {
		.ep = link->e.ep,
		.msg = {
			.type = KFI_KVEC,
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = KFI_ADDR_UNSPEC,
			.tag = TAG,
		},
		.flags = KFI_MULTI_RECV,
	};
	struct kfi_deferred_work work = {
		.threshold = 1,
		.triggering_cntr = link->e.cntr[COUNT_WRITE],
		.op_type = KFI_OP_TRECV,
		.op.tagged = &op,
	};

	return kfi_control(&link->domain->fid, KFI_QUEUE_WORK, &work);
}

/*
 * Each endpoint writes into what the one before is yet to receive several
 * messages into, which is no place for that.
 * The first receive refuses the first write, whose failure makes the second
 * receive begin, and so on: nothing of that may run inside of the one before.
 */
static void refusals(struct test *t)
{
	struct link *links = kcalloc(LINKS, sizeof(*links), GFP_KERNEL);
	u8 from[8] = {};
	struct op op = {
		.family = F_WRITE,
		.form = FORM_MSG_KVEC,
		.buf = from,
		.len = sizeof(from),
		.flags = KFI_TAGGED,
		.key = TAG,
		.context = CONTEXT(1),
	};
	unsigned int i;

	if (!expect_true(t, links))
		return;
	for (i = 0; i < LINKS; i++) {
		if (!link_open(t, &links[i]) ||
		    (i && !end_knows(t, &links[i].e, links[i - 1].e.ep, &links[i].e.peer)))
			goto close;
		expect(t, link_defer(&links[i]), 0);
	}
	for (i = 1; i < LINKS; i++) {
		op.peer = links[i].e.peer;
		expect(t, op_post(links[i].e.ep, &op), 0);
	}
	expect(t, kfi_cntr_add(links[0].e.cntr[COUNT_WRITE], 1), 0);
	for (i = 1; i < LINKS && !t->failed; i++) {
		struct kfi_cq_err_entry entry;

		if (!await_error(t, links[i].e.tx_cq, &entry))
			break;
		expect_true(t, entry.op_context == CONTEXT(1));
		expect(t, entry.flags, TWRITTEN);
		/* The second is what a machine that is busy for half a second says. */
		expect_true(t, entry.err == KFI_EACCES || entry.err == KFI_EREMOTEIO);
		expect_count(t, links[i].e.cntr[COUNT_WRITE], 0, 1);
		say(t, "link %u", i);
	}
close:
	for (i = 0; i < LINKS; i++)
		link_close(t, &links[i]);
	kfree(links);
}

const struct test_case chain_tests[] = {
	{ "chain/refusals", "R-DWQ-30", refusals },
	{}
};
