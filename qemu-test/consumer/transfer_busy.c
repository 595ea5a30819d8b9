// SPDX-License-Identifier: GPL-2.0
/*
 * Objects that keep others from being closed, and those closed with work to do.
 */
#include <linux/delay.h>
#include <linux/string.h>

#include <kfi_trigger.h>

#include "transfer.h"

/* Everything that is bound to an endpoint, in every class there is. */
static void bound(struct test *t)
{
	struct kfid_poll *poll = NULL;
	struct kfid_domain *domain = NULL;
	struct setup setup = {};
	struct end a;
	unsigned int i;

	if (!expect(t, kfi_domain(t->fabric, nic_info[0], &domain, NULL), 0))
		return;
	setup.domain = domain;
	if (!end_open(t, &a, 0, &setup))
		goto close;
	expect(t, kfi_close(&t->fabric->fid), -KFI_EBUSY);
	expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
	expect(t, kfi_close(&a.av->fid), -KFI_EBUSY);
	expect(t, kfi_close(&a.tx_cq->fid), -KFI_EBUSY);
	expect(t, kfi_close(&a.rx_cq->fid), -KFI_EBUSY);
	for (i = 0; i < COUNTERS; i++)
		expect(t, kfi_close(&a.cntr[i]->fid), -KFI_EBUSY);
	close_fid(t, &a.ep->fid);
	a.ep = NULL;
	/* The endpoint was all that kept them. */
	close_fid(t, &a.av->fid);
	a.av = NULL;
	if (expect(t, kfi_poll_open(domain, NULL, &poll), 0)) {
		expect(t, kfi_poll_add(poll, &a.tx_cq->fid, 0), 0);
		expect(t, kfi_poll_add(poll, &a.cntr[0]->fid, 0), 0);
		expect(t, kfi_close(&poll->fid), -KFI_EBUSY);
		expect(t, kfi_close(&a.tx_cq->fid), -KFI_EBUSY);
		expect(t, kfi_close(&a.cntr[0]->fid), -KFI_EBUSY);
		expect(t, kfi_poll_del(poll, &a.tx_cq->fid, 0), 0);
		expect(t, kfi_poll_del(poll, &a.cntr[0]->fid, 0), 0);
		close_fid(t, &poll->fid);
	}
	expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
	end_close(t, &a);
close:
	close_fid(t, &domain->fid);
}

/* Each kind of object keeps the domain, alone. */
static void domains(struct test *t)
{
	struct kfi_av_attr av_attr = { .type = KFI_AV_TABLE };
	struct kfid_domain *domain = NULL;
	struct kfid_ep *ep = NULL;
	struct kfid_stx *stx = NULL;
	struct kfid_av *av = NULL;
	struct kfid_mr *mr = NULL;
	struct kfid_cq *cq;
	u64 value;

	if (!expect(t, kfi_domain(t->fabric, nic_info[0], &domain, NULL), 0))
		return;
	if (expect(t, kfi_endpoint(domain, nic_info[0], &ep, NULL), 0)) {
		expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
		close_fid(t, &ep->fid);
	}
	if (expect(t, kfi_scalable_ep(domain, nic_info[0], &ep, NULL), 0)) {
		expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
		close_fid(t, &ep->fid);
	}
	if (expect(t, kfi_srx_context(domain, NULL, &ep, NULL), 0)) {
		expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
		close_fid(t, &ep->fid);
	}
	if (expect(t, kfi_stx_context(domain, NULL, &stx, NULL), 0)) {
		expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
		close_fid(t, &stx->fid);
	}
	if (expect(t, kfi_av_open(domain, &av_attr, &av, NULL), 0)) {
		expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
		close_fid(t, &av->fid);
	}
	if (expect(t, kfi_mr_reg(domain, &value, 8, KFI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0)) {
		expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
		close_fid(t, &mr->fid);
	}
	cq = cq_open(t, domain, 0);
	if (cq) {
		expect(t, kfi_close(&domain->fid), -KFI_EBUSY);
		close_fid(t, &cq->fid);
	}
	close_fid(t, &domain->fid);
}

/* A call that fails keeps nothing. */
static void failures(struct test *t)
{
	struct kfid_domain *domain = NULL;
	struct kfid_mr *mr = NULL, *other = NULL;
	struct kfid_ep *sep = NULL, *ep = NULL;
	struct kfi_info *info;
	struct end a;
	u64 value;

	if (!expect(t, kfi_domain(t->fabric, nic_info[0], &domain, NULL), 0))
		return;
	info = kfi_dupinfo(nic_info[0]);
	if (expect_true(t, info)) {
		info->tx_attr->size = 1 << 20;
		expect_errno(t, kfi_endpoint(domain, info, &ep, NULL));
		expect_errno(t, kfi_scalable_ep(domain, info, &ep, NULL));
		kfi_freeinfo(info);
	}
	if (expect(t, kfi_mr_reg(domain, &value, 8, KFI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0)) {
		expect(t, kfi_mr_reg(domain, &value, 8, KFI_REMOTE_READ, 0, 1, 0, &other, NULL),
		       -KFI_ENOKEY);
		close_fid(t, &mr->fid);
	}
	if (expect(t, kfi_scalable_ep(domain, nic_info[0], &sep, NULL), 0)) {
		expect(t, kfi_tx_context(sep, 256, NULL, &ep, NULL), -KFI_EINVAL);
		expect(t, kfi_rx_context(sep, 256, NULL, &ep, NULL), -KFI_EINVAL);
		close_fid(t, &sep->fid);
	}
	close_fid(t, &domain->fid);

	/* Binds that fail. */
	if (!end_open(t, &a, 0, NULL))
		return;
	if (expect(t, kfi_endpoint(a.domain, nic_info[0], &ep, NULL), 0)) {
		struct kfid_cq *cq = cq_open(t, a.domain, 0);

		expect(t, kfi_ep_bind(ep, &a.tx_cq->fid, KFI_RECV), 0);
		expect(t, kfi_ep_bind(ep, &cq->fid, KFI_TRANSMIT | KFI_RECV), -KFI_EINVAL);
		close_fid(t, &cq->fid);
		close_fid(t, &ep->fid);
	}
	end_close(t, &a);
}

/*
 * Closed with receives posted and messages under way: in silence, but for what was
 * matched, which has been received or fails at both sides.
 */
static void with_work(struct test *t)
{
	unsigned int i, round, len;
	struct area from, to;
	struct end a, b;

	for (round = 0; round < 20 && !t->failed; round++) {
		struct drained sent, received;
		u64 matched;

		if (!pair_open(t, &a, &b, NULL, NULL))
			return;
		if (!area_alloc(t, &from, MEM_VMALLOC, 0, 1 << 20) ||
		    !area_alloc(t, &to, MEM_VMALLOC, 0, 1 << 20)) {
			pair_close(t, &a, &b);
			return;
		}
		len = round & 1 ? 1 << 20 : 8;
		/* Its own receives, that nobody wants. */
		for (i = 0; i < 5; i++) {
			expect(t, kfi_recv(a.ep, to.data, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)),
			       0);
			expect(t, kfi_trecv(a.ep, to.data, 8, NULL, KFI_ADDR_UNSPEC, i, 0,
					    CONTEXT(1)), 0);
		}
		/* Some of its messages are received, others wait. */
		for (i = 0; i < 4; i++)
			expect(t, kfi_recv(b.ep, to.data, len, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)),
			       0);
		for (i = 0; i < 8; i++)
			expect(t, kfi_send(a.ep, from.data, len, NULL, a.peer, CONTEXT(3)), 0);
		/* And some wait for it. */
		for (i = 0; i < 3; i++)
			expect(t, kfi_tsend(b.ep, from.data, len, NULL, b.peer, 100, CONTEXT(4)),
			       0);
		close_fid(t, &a.ep->fid);
		a.ep = NULL;
		/* Nothing uses the memory any more. */
		memset(from.data, 0xff, 8);
		sent = drain(t, a.tx_cq, CONTEXT(3));
		received = drain(t, b.rx_cq, CONTEXT(2));
		matched = sent.good + sent.failed;
		expect(t, received.good, sent.good);
		expect(t, received.failed, sent.failed);
		expect_true(t, matched <= 4);
		expect_count(t, a.cntr[COUNT_SEND], sent.good, sent.failed);
		expect_count(t, b.cntr[COUNT_RECV], received.good, received.failed);
		expect(t, kfi_cntr_readerr(a.cntr[COUNT_RECV]), 0);
		expect_nothing(t, a.rx_cq);
		for (i = 0; i < 3; i++)
			expect_failure(t, b.tx_cq, CONTEXT(4), TSENT, KFI_EHOSTUNREACH, 0, 0);
		/* The receives that were not used are there still. */
		for (i = matched; i < 4; i++)
			expect(t, kfi_cancel(&b.ep->fid, CONTEXT(2)), 0);
		expect(t, kfi_cancel(&b.ep->fid, CONTEXT(2)), -KFI_ENOENT);
		for (i = matched; i < 4; i++)
			expect_failure(t, b.rx_cq, CONTEXT(2), RECEIVED, KFI_ECANCELED, 0, 0);
		say(t, "round %u, %llu sent, %llu failed", round, sent.good, sent.failed);
		pair_close(t, &a, &b);
		area_free(&from);
		area_free(&to);
	}
}

/* Closed with operations that wait for a fence, and claimed messages. */
static void with_fence(struct test *t)
{
	struct kvec iov = { NULL, 0 };
	struct kfi_msg_tagged msg = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.tag = 1,
		.context = CONTEXT(1),
	};
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, kfi_tsend(a.ep, NULL, 0, NULL, a.peer, 1, CONTEXT(1)), 0);
	msg.addr = a.peer;
	expect(t, kfi_tsendmsg(a.ep, &msg, KFI_FENCE), 0);
	expect(t, kfi_tsend(a.ep, NULL, 0, NULL, a.peer, 1, CONTEXT(1)), 0);
	wait_for_arrival(t);
	msg.addr = KFI_ADDR_UNSPEC;
	expect(t, kfi_trecvmsg(b.ep, &msg, KFI_PEEK | KFI_CLAIM), 0);
	expect_completion(t, b.rx_cq, CONTEXT(1), TRECEIVED, 0);
	close_fid(t, &a.ep->fid);
	a.ep = NULL;
	expect_nothing(t, a.tx_cq);
	/* The message is gone with its sender. */
	expect(t, kfi_trecvmsg(b.ep, &msg, KFI_CLAIM), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ENOMSG, 0, 0);
	expect(t, kfi_trecvmsg(b.ep, &msg, KFI_PEEK), 0);
	expect_failure(t, b.rx_cq, CONTEXT(1), TRECEIVED, KFI_ENOMSG, 0, 0);
	pair_close(t, &a, &b);
}

/* A thread that flushes as long as it is not told to stop. */
struct flushing {
	struct kfid_domain *domain;
	bool stop;
};

static long flush_all(void *arg)
{
	struct flushing *flushing = arg;

	while (!READ_ONCE(flushing->stop)) {
		int ret = kfi_control(&flushing->domain->fid, KFI_FLUSH_WORK, NULL);

		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

/*
 * Closed beside a flush of the same works, some of which are just due: when the close
 * is back nothing refers to the counters that they name, whoever has taken them out.
 */
static void beside_flush(struct test *t)
{
	enum { WORKS = 32 };
	static struct kfi_deferred_work work[WORKS];
	static struct kfi_op_msg op[WORKS];
	struct kfid_cntr *trigger, *completion;
	unsigned int i, round, times = max(rounds / 100, 20U);
	struct flushing flushing = { .domain = nic_domain[0] };
	struct kvec iov = { "work", 4 };
	struct end a, b;
	struct job job;

	if (!job_start(t, &job, flush_all, &flushing, other_cpu(some_cpu(0))))
		return;
	for (round = 0; round < times && !t->failed; round++) {
		struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_UNSPEC };

		trigger = NULL;
		completion = NULL;
		if (!pair_open(t, &a, &b, NULL, NULL))
			break;
		if (!expect(t, kfi_cntr_open(a.domain, &attr, &trigger, NULL), 0) ||
		    !expect(t, kfi_cntr_open(a.domain, &attr, &completion, NULL), 0))
			goto close;
		for (i = 0; i < WORKS; i++) {
			op[i] = (struct kfi_op_msg) {
				.ep = a.ep,
				.msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1,
					 .addr = a.peer, .context = CONTEXT(i) },
				.flags = KFI_COMPLETION,
			};
			work[i] = (struct kfi_deferred_work) {
				.threshold = 1 + i % 2, .triggering_cntr = trigger,
				.completion_cntr = completion, .op_type = KFI_OP_SEND,
				.op.msg = &op[i],
			};
			expect(t, kfi_control(&a.domain->fid, KFI_QUEUE_WORK, &work[i]), 0);
		}
		if (round % 2)
			expect(t, kfi_cntr_add(trigger, 1), 0);
		close_fid(t, &a.ep->fid);
		a.ep = NULL;
		/* Nobody has received any. */
		expect(t, kfi_cntr_read(completion), 0);
		expect(t, kfi_cntr_readerr(completion), 0);
		expect_nothing(t, a.tx_cq);
close:
		if (completion)
			close_fid(t, &completion->fid);
		if (trigger)
			close_fid(t, &trigger->fid);
		pair_close(t, &a, &b);
		say(t, "round %u", round);
	}
	WRITE_ONCE(flushing.stop, true);
	expect(t, job_finish(&job), 0);
}

const struct test_case busy_tests[] = {
	{ "close/case-71-bound", "R-CLOSE-1 R-CLOSE-7", bound },
	{ "close/case-71-domains", "R-CLOSE-5", domains },
	{ "close/case-71-failures", "R-CLOSE-1", failures },
	{ "close/case-29-with-work", "R-CLOSE-4", with_work, true },
	{ "close/case-29-with-fence", "R-CLOSE-4", with_fence },
	{ "close/beside-flush", "R-CLOSE-2 R-CLOSE-4 R-CTL-3", beside_flush },
	{}
};
