// SPDX-License-Identifier: GPL-2.0
/*
 * Pointers, objects and states that are wrong, for every call about endpoints:
 * each gets an errno, and nothing has happened.
 */
#include <linux/string.h>

#include "transfer.h"

/* The calls for connections, of which there are none. */
static void connections(struct test *t)
{
	struct kfid_pep *pep = NULL;
	struct kfid_mc *mc = NULL;
	size_t len = 8;
	struct end a;
	u8 addr[8] = {};

	if (!end_open(t, &a, 0, NULL))
		return;
	expect(t, kfi_passive_ep(t->fabric, nic_info[0], &pep, NULL), -KFI_ENOSYS);
	expect_true(t, !pep);
	expect(t, kfi_connect(a.ep, addr, NULL, 0), -KFI_ENOSYS);
	expect(t, kfi_accept(a.ep, NULL, 0), -KFI_ENOSYS);
	expect(t, kfi_shutdown(a.ep, 0), -KFI_ENOSYS);
	expect(t, kfi_getpeer(a.ep, addr, &len), -KFI_ENOSYS);
	expect(t, kfi_join(a.ep, addr, 0, &mc, NULL), -KFI_ENOSYS);
	expect_true(t, !mc);
	/* They do so unless the wrappers look: the slots are filled. */
	expect(t, a.ep->cm->listen(NULL), -KFI_ENOSYS);
	expect(t, a.ep->cm->reject(NULL, &a.ep->fid, NULL, 0), -KFI_ENOSYS);
	end_close(t, &a);
}

/* No description, and nowhere to put what is opened. */
static void openings(struct test *t)
{
	struct kfid_domain *domain = NULL;
	struct kfid_ep *sep = NULL, *ep = NULL;
	struct kfi_tx_attr tx = { .size = SIZE_MAX };
	struct kfi_rx_attr rx = { .size = SIZE_MAX };
	struct kfid_stx *stx = NULL;
	struct kfi_info *info;

	if (!expect(t, kfi_domain(t->fabric, nic_info[0], &domain, NULL), 0))
		return;
	expect(t, kfi_domain(t->fabric, nic_info[0], NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_endpoint(domain, NULL, &ep, NULL), -KFI_EINVAL);
	expect(t, kfi_endpoint(domain, nic_info[0], NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_scalable_ep(domain, NULL, &ep, NULL), -KFI_EINVAL);
	expect(t, kfi_scalable_ep(domain, nic_info[0], NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_stx_context(domain, NULL, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_srx_context(domain, NULL, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_stx_context(domain, &tx, &stx, NULL), -KFI_EINVAL);
	expect(t, kfi_srx_context(domain, &rx, &ep, NULL), -KFI_EINVAL);
	expect(t, kfi_cq_open(domain, NULL, NULL, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_cntr_open(domain, NULL, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_av_open(domain, NULL, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_poll_open(domain, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_eq_open(t->fabric, NULL, NULL, NULL, NULL), -KFI_EINVAL);
	expect(t, kfi_wait_open(t->fabric, NULL, NULL), -KFI_EINVAL);
	if (expect(t, kfi_scalable_ep(domain, nic_info[0], &sep, NULL), 0)) {
		expect(t, kfi_tx_context(sep, 0, NULL, NULL, NULL), -KFI_EINVAL);
		expect(t, kfi_rx_context(sep, 0, NULL, NULL, NULL), -KFI_EINVAL);
		expect(t, kfi_tx_context(sep, 0, &tx, &ep, NULL), -KFI_EINVAL);
		expect(t, kfi_rx_context(sep, 0, &rx, &ep, NULL), -KFI_EINVAL);
		expect_errno(t, kfi_ep_alias(sep, &ep, KFI_TRANSMIT));
		/* No endpoint by itself. */
		expect_errno(t, kfi_send(sep, NULL, 0, NULL, 0, NULL));
		expect_errno(t, kfi_recv(sep, NULL, 0, NULL, 0, NULL));
		close_fid(t, &sep->fid);
	}
	/* An entry without its parts, and parts that do not fit. */
	info = kfi_allocinfo();
	if (expect_true(t, info)) {
		struct kfi_info bare = {};

		/* An entry that asks for nothing gets the defaults. */
		if (expect(t, kfi_endpoint(domain, &bare, &ep, NULL), 0))
			close_fid(t, &ep->fid);
		ep = NULL;
		info->ep_attr->type = KFI_EP_MSG;
		expect(t, kfi_endpoint(domain, info, &ep, NULL), -KFI_EINVAL);
		expect(t, kfi_scalable_ep(domain, info, &ep, NULL), -KFI_EINVAL);
		info->ep_attr->type = KFI_EP_RDM;
		info->src_addr = NULL;
		info->src_addrlen = 8;
		expect(t, kfi_endpoint(domain, info, &ep, NULL), -KFI_EINVAL);
		info->src_addrlen = 0;
		info->ep_attr->auth_key = NULL;
		info->ep_attr->auth_key_size = 8;
		expect(t, kfi_endpoint(domain, info, &ep, NULL), -KFI_EINVAL);
		info->ep_attr->auth_key_size = 0;
		kfi_freeinfo(info);
	}
	expect_true(t, !ep && !stx);
	/* Nothing holds it. */
	close_fid(t, &domain->fid);
}

/* Calls on endpoints and queues. */
static void calls(struct test *t)
{
	struct kvec iov = { NULL, 8 };
	struct kfi_msg msg = { .type = KFI_KVEC, .iov_count = 1 };
	struct kfi_msg_tagged tagged = { .type = KFI_KVEC, .iov_count = 1 };
	struct kfi_msg_rma rma = { .type = KFI_KVEC, .iov_count = 1, .rma_iov_count = 1 };
	struct kfid_mr *mr = NULL;
	struct end a, b;
	u8 value[8] = {};
	size_t len = 8;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, kfi_getname(&a.ep->fid, NULL, &len), -KFI_EINVAL);
	expect(t, kfi_getname(&a.ep->fid, value, NULL), -KFI_EINVAL);
	expect_errno(t, kfi_setname(&a.ep->fid, NULL, 8));
	expect(t, kfi_getopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, NULL, &len),
	       -KFI_EINVAL);
	expect(t, kfi_getopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, value, NULL),
	       -KFI_EINVAL);
	expect(t, kfi_setopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, NULL, 8),
	       -KFI_EINVAL);
	expect(t, kfi_control(&a.ep->fid, KFI_ALIAS, NULL), -KFI_EINVAL);
	expect(t, kfi_control(&a.ep->fid, 9999, value), -KFI_ENOSYS);
	expect(t, kfi_control(&a.ep->fid, -1, value), -KFI_ENOSYS);
	expect(t, kfi_cq_read(a.tx_cq, NULL, 1), -KFI_EINVAL);
	expect(t, kfi_cq_readerr(a.tx_cq, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_cq_sread(a.tx_cq, NULL, 1, NULL, 0), -KFI_EINVAL);

	/* Vectors that are not there, and pieces without memory. */
	msg.addr = tagged.addr = rma.addr = a.peer;
	expect(t, kfi_sendmsg(a.ep, &msg, 0), -KFI_EINVAL);
	expect(t, kfi_recvmsg(a.ep, &msg, 0), -KFI_EINVAL);
	expect(t, kfi_tsendmsg(a.ep, &tagged, 0), -KFI_EINVAL);
	expect(t, kfi_trecvmsg(a.ep, &tagged, 0), -KFI_EINVAL);
	expect(t, kfi_writemsg(a.ep, &rma, 0), -KFI_EINVAL);
	expect(t, kfi_readmsg(a.ep, &rma, 0), -KFI_EINVAL);
	expect(t, kfi_trecvmsg(a.ep, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_readmsg(a.ep, NULL, 0), -KFI_EINVAL);
	expect(t, kfi_tsendv(a.ep, NULL, NULL, 1, a.peer, 1, NULL), -KFI_EINVAL);
	expect(t, kfi_trecvv(a.ep, NULL, NULL, 1, a.peer, 1, 0, NULL), -KFI_EINVAL);
	expect(t, kfi_readv(a.ep, NULL, NULL, 1, a.peer, 0, 1, NULL), -KFI_EINVAL);
	expect(t, kfi_recvbv(a.ep, NULL, NULL, 1, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_recvsgl(a.ep, NULL, NULL, 1, a.peer, NULL), -KFI_EINVAL);
	msg.msg_iov = tagged.msg_iov = rma.msg_iov = &iov;
	expect(t, kfi_sendmsg(a.ep, &msg, 0), -KFI_EINVAL);
	expect(t, kfi_recvmsg(a.ep, &msg, 0), -KFI_EINVAL);
	expect(t, kfi_tsendmsg(a.ep, &tagged, 0), -KFI_EINVAL);
	expect(t, kfi_trecvmsg(a.ep, &tagged, 0), -KFI_EINVAL);
	expect(t, kfi_sendv(a.ep, &iov, NULL, 1, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_inject(a.ep, NULL, 8, a.peer), -KFI_EINVAL);
	expect(t, kfi_tinject(a.ep, NULL, 8, a.peer, 1), -KFI_EINVAL);
	expect(t, kfi_senddata(a.ep, NULL, 8, NULL, 1, a.peer, NULL), -KFI_EINVAL);
	expect(t, kfi_read(a.ep, NULL, 8, NULL, a.peer, 0, 1, NULL), -KFI_EINVAL);
	expect(t, kfi_write(a.ep, NULL, 8, NULL, a.peer, 0, 1, NULL), -KFI_EINVAL);
	expect(t, kfi_inject_write(a.ep, NULL, 8, a.peer, 0, 1), -KFI_EINVAL);
	msg.type = tagged.type = rma.type = -1;
	expect(t, kfi_sendmsg(a.ep, &msg, 0), -KFI_EINVAL);
	expect(t, kfi_trecvmsg(a.ep, &tagged, 0), -KFI_EINVAL);
	expect(t, kfi_readmsg(a.ep, &rma, 0), -KFI_EINVAL);

	/* Memory to be registered. */
	expect(t, kfi_mr_reg(a.domain, value, 8, KFI_REMOTE_READ, 0, 1, 0, NULL, NULL),
	       -KFI_EINVAL);
	expect(t, kfi_mr_regv(a.domain, NULL, 1, KFI_REMOTE_READ, 0, 1, 0, &mr, NULL),
	       -KFI_EINVAL);
	expect(t, kfi_mr_regbv(a.domain, NULL, 1, KFI_REMOTE_READ, 0, 1, 0, &mr, NULL),
	       -KFI_EINVAL);
	expect(t, kfi_mr_regsgl(a.domain, NULL, 1, KFI_REMOTE_READ, 0, 1, 0, &mr, NULL),
	       -KFI_EINVAL);
	expect(t, kfi_mr_regattr(a.domain, NULL, 0, &mr), -KFI_EINVAL);
	expect_true(t, !mr);

	expect_nothing(t, a.tx_cq);
	expect_nothing(t, a.rx_cq);
	expect_nothing(t, b.rx_cq);
	expect_count(t, a.cntr[COUNT_SEND], 0, 0);
	expect_count(t, a.cntr[COUNT_RECV], 0, 0);
	pair_close(t, &a, &b);
}

/* Contexts of one direction, asked for the other. */
static void directions(struct test *t)
{
	struct kfi_av_attr av_attr = { .type = KFI_AV_TABLE };
	struct kfid_ep *sep = NULL, *tx = NULL, *rx = NULL;
	struct kfid_cq *cq = cq_open(t, nic_domain[0], 8);
	struct kfid_av *av = NULL;
	u8 value[8] = {};
	size_t count;

	if (!cq || !expect(t, kfi_av_open(nic_domain[0], &av_attr, &av, NULL), 0) ||
	    !expect(t, kfi_scalable_ep(nic_domain[0], nic_info[0], &sep, NULL), 0))
		goto close;
	expect(t, kfi_scalable_ep_bind(sep, &av->fid, 0), 0);
	if (!expect(t, kfi_tx_context(sep, 0, NULL, &tx, NULL), 0) ||
	    !expect(t, kfi_rx_context(sep, 0, NULL, &rx, NULL), 0))
		goto close;
	expect_errno(t, kfi_ep_bind(tx, &cq->fid, KFI_RECV));
	expect_errno(t, kfi_ep_bind(rx, &cq->fid, KFI_TRANSMIT));
	expect(t, kfi_ep_bind(tx, &cq->fid, KFI_TRANSMIT), 0);
	expect(t, kfi_ep_bind(rx, &cq->fid, KFI_RECV), 0);
	expect(t, kfi_enable(tx), 0);
	expect(t, kfi_enable(rx), 0);
	expect_errno(t, kfi_recv(tx, value, 8, NULL, KFI_ADDR_UNSPEC, NULL));
	expect_errno(t, kfi_trecv(tx, value, 8, NULL, KFI_ADDR_UNSPEC, 1, 0, NULL));
	expect_errno(t, kfi_send(rx, value, 8, NULL, 0, NULL));
	expect_errno(t, kfi_tsend(rx, value, 8, NULL, 0, 1, NULL));
	expect_errno(t, kfi_write(rx, value, 8, NULL, 0, 0, 1, NULL));
	expect_errno(t, kfi_read(rx, value, 8, NULL, 0, 0, 1, NULL));
	expect_errno(t, kfi_atomic(rx, value, 1, NULL, 0, 0, 1, KFI_UINT64, KFI_SUM, NULL));
	expect_errno(t, kfi_atomicvalid(rx, KFI_UINT64, KFI_SUM, &count));
	expect_errno(t, kfi_fetch_atomicvalid(rx, KFI_UINT64, KFI_SUM, &count));
	expect_errno(t, kfi_compare_atomicvalid(rx, KFI_UINT64, KFI_CSWAP, &count));
	expect(t, kfi_atomicvalid(tx, KFI_UINT64, KFI_SUM, &count), 0);
	expect(t, kfi_fetch_atomicvalid(tx, KFI_UINT64, KFI_SUM, &count), 0);
	expect(t, kfi_compare_atomicvalid(tx, KFI_UINT64, KFI_CSWAP, &count), 0);
	expect_nothing(t, cq);
close:
	if (tx)
		close_fid(t, &tx->fid);
	if (rx)
		close_fid(t, &rx->fid);
	if (sep)
		close_fid(t, &sep->fid);
	if (av)
		close_fid(t, &av->fid);
	if (cq)
		close_fid(t, &cq->fid);
}

const struct test_case argument_tests[] = {
	{ "arguments/connections", "R-CLOSE-9", connections },
	{ "arguments/openings", "R-CLOSE-9", openings },
	{ "arguments/calls", "R-CLOSE-9", calls },
	{ "arguments/directions", "R-CLOSE-9", directions },
	{}
};
