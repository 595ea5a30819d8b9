// SPDX-License-Identifier: GPL-2.0
/*
 * Scalable endpoints as consumers use them: a transmit and a receive context
 * for each CPU, bound without flags, whose numbers say where messages go.
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "transfer.h"

/**
 * struct contexts - a scalable endpoint with its contexts
 * @tx_count: number of transmit contexts
 * @rx_count: number of receive contexts
 * @domain: domain
 * @av: address vector
 * @sep: the endpoint
 * @peer: address of the peer in @av
 * @tx: transmit contexts
 * @tx_cq: their queues
 * @rx: receive contexts
 * @rx_cq: their queues
 */
struct contexts {
	unsigned int tx_count;
	unsigned int rx_count;
	struct kfid_domain *domain;
	struct kfid_av *av;
	struct kfid_ep *sep;
	kfi_addr_t peer;
	struct kfid_ep **tx;
	struct kfid_cq **tx_cq;
	struct kfid_ep **rx;
	struct kfid_cq **rx_cq;
};

static void contexts_close(struct test *t, struct contexts *c)
{
	unsigned int i;

	for (i = 0; c->tx && i < c->tx_count; i++) {
		if (c->tx[i])
			close_fid(t, &c->tx[i]->fid);
		if (c->tx_cq[i])
			close_fid(t, &c->tx_cq[i]->fid);
	}
	for (i = 0; c->rx && i < c->rx_count; i++) {
		if (c->rx[i])
			close_fid(t, &c->rx[i]->fid);
		if (c->rx_cq[i])
			close_fid(t, &c->rx_cq[i]->fid);
	}
	if (c->sep)
		close_fid(t, &c->sep->fid);
	if (c->av)
		close_fid(t, &c->av->fid);
	kvfree(c->tx);
	*c = (struct contexts) {};
}

static bool open_tx(struct test *t, struct contexts *c, unsigned int i)
{
	c->tx_cq[i] = cq_open(t, c->domain, 16);
	return c->tx_cq[i] &&
	       expect(t, kfi_tx_context(c->sep, i, NULL, &c->tx[i], NULL), 0) &&
	       expect(t, kfi_ep_bind(c->tx[i], &c->tx_cq[i]->fid, 0), 0) &&
	       expect(t, kfi_enable(c->tx[i]), 0);
}

static bool open_rx(struct test *t, struct contexts *c, unsigned int i)
{
	c->rx_cq[i] = cq_open(t, c->domain, 16);
	return c->rx_cq[i] &&
	       expect(t, kfi_rx_context(c->sep, i, NULL, &c->rx[i], NULL), 0) &&
	       expect(t, kfi_ep_bind(c->rx[i], &c->rx_cq[i]->fid, 0), 0) &&
	       expect(t, kfi_enable(c->rx[i]), 0);
}

/* Opens so many contexts of @info, which is enabled first. */
static bool contexts_open(struct test *t, struct contexts *c, struct kfid_domain *domain,
			  struct kfi_info *info, unsigned int tx_count, unsigned int rx_count)
{
	struct kfi_av_attr attr = { .rx_ctx_bits = 8 };
	void **all = kvcalloc(2 * (tx_count + rx_count), sizeof(*all), GFP_KERNEL);
	unsigned int i;

	*c = (struct contexts) {
		.tx_count = tx_count, .rx_count = rx_count, .domain = domain,
	};
	if (!expect_true(t, all))
		return false;
	c->tx = (void *)all;
	c->tx_cq = (void *)(all + tx_count);
	c->rx = (void *)(all + 2 * tx_count);
	c->rx_cq = (void *)(all + 2 * tx_count + rx_count);
	if (!expect(t, kfi_av_open(domain, &attr, &c->av, NULL), 0) ||
	    !expect(t, kfi_scalable_ep(domain, info, &c->sep, NULL), 0) ||
	    !expect(t, kfi_scalable_ep_bind(c->sep, &c->av->fid, 0), 0) ||
	    !expect(t, kfi_enable(c->sep), 0))
		goto close;
	for (i = 0; i < tx_count; i++) {
		if (!open_tx(t, c, i))
			goto close;
	}
	for (i = 0; i < rx_count; i++) {
		if (!open_rx(t, c, i))
			goto close;
	}
	return true;
close:
	contexts_close(t, c);
	return false;
}

static void contexts_know(struct test *t, struct contexts *c, struct contexts *peer)
{
	size_t len = 8;
	u8 name[8];

	expect(t, kfi_getname(&peer->sep->fid, name, &len), 0);
	expect(t, kfi_av_insert(c->av, name, 1, &c->peer, 0, NULL), 1);
}

/* Returns a NIC's answer to hints with capabilities only. */
static struct kfi_info *ask(struct test *t, unsigned int nic, u64 caps)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;

	if (!expect_true(t, hints))
		return NULL;
	hints->caps = caps;
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	expect(t, kfi_getinfo(0, nic_info[nic]->domain_attr->name, NULL, KFI_SOURCE, hints,
			      &info), 0);
	kfi_freeinfo(hints);
	return info;
}

/* A message of a transmit context to where its address and its number say. */
static void expect_reaches(struct test *t, struct contexts *a, unsigned int tx, kfi_addr_t addr,
			   struct contexts *b, unsigned int rx)
{
	u8 from[8] = { tx, rx }, to[8] = {};

	expect(t, kfi_recv(b->rx[rx], to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(rx)), 0);
	expect(t, kfi_send(a->tx[tx], from, 8, NULL, addr, CONTEXT(1000 + tx)), 0);
	expect_completion(t, b->rx_cq[rx], CONTEXT(rx), RECEIVED, 8);
	expect_completion(t, a->tx_cq[tx], CONTEXT(1000 + tx), SENT, 8);
	expect(t, memcmp(from, to, 8), 0);
	say(t, "from %u to %u", tx, rx);
}

/* As many contexts as anybody needs, without asking for a number. */
static void all_contexts(struct test *t)
{
	struct kfi_info *info_a = ask(t, 0, KFI_MSG | KFI_NAMED_RX_CTX);
	struct kfi_info *info_b = ask(t, 1, KFI_MSG | KFI_NAMED_RX_CTX);
	struct contexts a, b;
	unsigned int i;

	if (!info_a || !info_b)
		goto free;
	expect_true(t, info_a->ep_attr->tx_ctx_cnt >= 128);
	expect_true(t, info_a->ep_attr->rx_ctx_cnt >= 128);
	expect_true(t, info_a->domain_attr->max_ep_tx_ctx >= info_a->ep_attr->tx_ctx_cnt);
	expect_true(t, info_a->domain_attr->max_ep_rx_ctx >= info_a->ep_attr->rx_ctx_cnt);
	if (t->failed || !contexts_open(t, &a, nic_domain[0], info_a, 128, 128))
		goto free;
	if (contexts_open(t, &b, nic_domain[1], info_b, 128, 128)) {
		contexts_know(t, &a, &b);
		for (i = 0; i < 128 && !t->failed; i++)
			expect_reaches(t, &a, i, kfi_rx_addr(a.peer, 127 - i, 8), &b, 127 - i);
		contexts_close(t, &b);
	}
	contexts_close(t, &a);
free:
	kfi_freeinfo(info_a);
	kfi_freeinfo(info_b);
}

/* Transmit context i goes with receive context i, or i modulo their number. */
static void beside(struct test *t)
{
	struct kfi_info *info_a = ask(t, 0, KFI_MSG);
	struct kfi_info *info_b = ask(t, 1, KFI_MSG);
	struct contexts a, b;
	struct end plain;
	unsigned int i;
	u8 buf[8] = {};

	if (!info_a || !info_b)
		goto free;
	info_a->ep_attr->tx_ctx_cnt = 6;
	info_a->ep_attr->rx_ctx_cnt = 6;
	info_b->ep_attr->tx_ctx_cnt = 4;
	info_b->ep_attr->rx_ctx_cnt = 4;
	if (!contexts_open(t, &a, nic_domain[0], info_a, 6, 6))
		goto free;
	if (!contexts_open(t, &b, nic_domain[1], info_b, 4, 4))
		goto close_a;
	contexts_know(t, &a, &b);
	contexts_know(t, &b, &a);
	for (i = 0; i < 6 && !t->failed; i++)
		expect_reaches(t, &a, i, a.peer, &b, i % 4);
	for (i = 0; i < 4 && !t->failed; i++)
		expect_reaches(t, &b, i, b.peer, &a, i);
	/* An endpoint that has not asked for it does not choose. */
	expect(t, kfi_send(a.tx[0], buf, 8, NULL, kfi_rx_addr(a.peer, 1, 8), NULL),
	       -KFI_EOPNOTSUPP);
	/* An endpoint without contexts has the number 0, in both directions. */
	if (end_open(t, &plain, 1, NULL)) {
		kfi_addr_t addr;

		if (end_knows(t, &plain, a.sep, &addr)) {
			expect(t, kfi_recv(a.rx[0], buf, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
			expect(t, kfi_send(plain.ep, buf, 8, NULL, addr, CONTEXT(2)), 0);
			expect_completion(t, a.rx_cq[0], CONTEXT(1), RECEIVED, 8);
			expect_completion(t, plain.tx_cq, CONTEXT(2), SENT, 8);
		}
		end_close(t, &plain);
	}
	contexts_close(t, &b);
close_a:
	contexts_close(t, &a);
free:
	kfi_freeinfo(info_a);
	kfi_freeinfo(info_b);
}

/* Each context has its number and its direction, and the endpoint has none. */
static void of_each_direction(struct test *t)
{
	struct kfi_info *info_a = kfi_dupinfo(nic_info[0]);
	struct kfi_info *info_b = kfi_dupinfo(nic_info[1]);
	struct kfid_ep *other = NULL;
	struct contexts a, b;
	unsigned int tx, rx;
	kfi_addr_t source;
	u8 from[8], to[8];

	if (!expect_true(t, info_a && info_b))
		goto free;
	info_a->ep_attr->tx_ctx_cnt = 2;
	info_a->ep_attr->rx_ctx_cnt = 3;
	info_b->ep_attr->tx_ctx_cnt = 2;
	info_b->ep_attr->rx_ctx_cnt = 3;
	if (!contexts_open(t, &a, nic_domain[0], info_a, 2, 3))
		goto free;
	if (!contexts_open(t, &b, nic_domain[1], info_b, 2, 3))
		goto close_a;
	contexts_know(t, &a, &b);
	contexts_know(t, &b, &a);
	expect(t, a.peer >> 56, 0);
	for (tx = 0; tx < 2; tx++) {
		for (rx = 0; rx < 3; rx++) {
			struct kfi_cq_tagged_entry entry;

			from[0] = tx * 3 + rx;
			expect(t, kfi_recv(b.rx[rx], to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(rx)),
			       0);
			expect(t, kfi_send(a.tx[tx], from, 8, NULL, kfi_rx_addr(a.peer, rx, 8),
					   CONTEXT(9)), 0);
			expect_completion(t, a.tx_cq[tx], CONTEXT(9), SENT, 8);
			if (await(t, b.rx_cq[rx], &entry, &source)) {
				expect_true(t, entry.op_context == CONTEXT(rx));
				expect_true(t, source != KFI_ADDR_NOTAVAIL);
			}
			expect(t, to[0], from[0]);
		}
	}
	for (rx = 0; rx < 3; rx++)
		expect_nothing(t, b.rx_cq[rx]);
	/* There is no fourth one. */
	expect(t, kfi_send(a.tx[0], from, 8, NULL, kfi_rx_addr(a.peer, 3, 8), CONTEXT(9)), 0);
	expect_failure(t, a.tx_cq[0], CONTEXT(9), SENT, KFI_EHOSTUNREACH, 0, 0);

	expect(t, kfi_recv(a.tx[0], to, 8, NULL, KFI_ADDR_UNSPEC, NULL), -KFI_EOPNOTSUPP);
	expect(t, kfi_send(a.rx[0], from, 8, NULL, a.peer, NULL), -KFI_EOPNOTSUPP);
	expect(t, kfi_send(a.sep, from, 8, NULL, a.peer, NULL), -KFI_EOPNOTSUPP);
	expect(t, kfi_ep_bind(a.tx[0], &a.av->fid, 0), -KFI_EOPBADSTATE);

	expect(t, kfi_tx_context(a.sep, 2, NULL, &other, NULL), -KFI_EINVAL);
	expect(t, kfi_tx_context(a.sep, -1, NULL, &other, NULL), -KFI_EINVAL);
	expect(t, kfi_rx_context(a.sep, 3, NULL, &other, NULL), -KFI_EINVAL);
	expect(t, kfi_tx_context(a.sep, 1, NULL, &other, NULL), -KFI_EADDRINUSE);
	expect(t, kfi_rx_context(a.sep, 0, NULL, &other, NULL), -KFI_EADDRINUSE);
	close_fid(t, &a.rx[0]->fid);
	a.rx[0] = NULL;
	if (expect(t, kfi_rx_context(a.sep, 0, NULL, &a.rx[0], NULL), 0)) {
		expect(t, kfi_ep_bind(a.rx[0], &a.tx_cq[0]->fid, KFI_TRANSMIT), -KFI_EINVAL);
		expect(t, kfi_enable(a.rx[0]), -KFI_ENOCQ);
		expect(t, kfi_ep_bind(a.rx[0], &a.rx_cq[0]->fid, KFI_RECV), 0);
		expect(t, kfi_enable(a.rx[0]), 0);
	}
	/* The endpoint is busy as long as there are contexts. */
	expect(t, kfi_close(&a.sep->fid), -KFI_EBUSY);
	expect(t, kfi_close(&a.av->fid), -KFI_EBUSY);
	expect(t, kfi_close(&a.tx_cq[0]->fid), -KFI_EBUSY);
	contexts_close(t, &b);
close_a:
	contexts_close(t, &a);
free:
	kfi_freeinfo(info_a);
	kfi_freeinfo(info_b);
}

/* Nothing is sent by a context of an endpoint without an address vector. */
static void without_av(struct test *t)
{
	struct kfi_info *info = kfi_dupinfo(nic_info[0]);
	struct kfid_ep *sep = NULL, *tx = NULL;
	struct kfid_cq *cq;

	if (!expect_true(t, info))
		return;
	cq = cq_open(t, nic_domain[0], 0);
	if (cq && expect(t, kfi_scalable_ep(nic_domain[0], info, &sep, NULL), 0) &&
	    expect(t, kfi_tx_context(sep, 0, NULL, &tx, NULL), 0)) {
		expect(t, kfi_ep_bind(tx, &cq->fid, KFI_TRANSMIT), 0);
		expect(t, kfi_enable(tx), -KFI_ENOAV);
		close_fid(t, &tx->fid);
	}
	if (sep)
		close_fid(t, &sep->fid);
	if (cq)
		close_fid(t, &cq->fid);
	info->ep_attr->tx_ctx_cnt = 257;
	expect(t, kfi_scalable_ep(nic_domain[0], info, &sep, NULL), -KFI_EINVAL);
	kfi_freeinfo(info);
}

/* A context and what there is to bind to it. */
struct bound {
	struct kfid_av *av;
	struct kfid_ep *sep;
	struct kfid_ep *tx;
	struct kfid_ep *rx;
	struct kfid_cq *cq;
	struct kfid_cntr *cntr;
};

/* Without flags: the direction of the context. */
static void bind_without_flags(struct test *t)
{
	struct kfi_info *info = ask(t, 0, KFI_MSG | KFI_RMA);
	struct kfi_av_attr attr = {};
	u8 from[8] = { 1 }, to[8] = {}, target[8] = {};
	struct kfid_mr *mr = NULL;
	struct bound b = {};
	kfi_addr_t self;
	size_t len = 8;
	u8 name[8];

	if (!info)
		return;
	b.cq = cq_open(t, nic_domain[0], 0);
	b.cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!b.cq || !b.cntr ||
	    !expect(t, kfi_av_open(nic_domain[0], &attr, &b.av, NULL), 0) ||
	    !expect(t, kfi_scalable_ep(nic_domain[0], info, &b.sep, NULL), 0) ||
	    !expect(t, kfi_scalable_ep_bind(b.sep, &b.av->fid, 0), 0) ||
	    !expect(t, kfi_tx_context(b.sep, 0, NULL, &b.tx, NULL), 0) ||
	    !expect(t, kfi_rx_context(b.sep, 0, NULL, &b.rx, NULL), 0))
		goto close;
	/* One queue for both, one of them on demand only. */
	expect(t, kfi_ep_bind(b.tx, &b.cq->fid, KFI_SELECTIVE_COMPLETION), 0);
	expect(t, kfi_ep_bind(b.rx, &b.cq->fid, 0), 0);
	expect(t, kfi_ep_bind(b.tx, &b.cq->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(b.rx, &b.cq->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(b.rx, &b.cq->fid, KFI_RECV), -KFI_EINVAL);
	expect(t, kfi_ep_bind(b.tx, &b.cq->fid, KFI_RECV), -KFI_EINVAL);
	expect(t, kfi_ep_bind(b.tx, &b.cq->fid, KFI_MULTI_RECV), -KFI_EBADFLAGS);
	/* A counter counts all of the direction. */
	expect(t, kfi_ep_bind(b.tx, &b.cntr->fid, 0), 0);
	expect(t, kfi_ep_bind(b.tx, &b.cntr->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(b.tx, &b.cntr->fid, KFI_WRITE), -KFI_EINVAL);
	expect(t, kfi_ep_bind(b.rx, &b.cntr->fid, 0), 0);
	expect(t, kfi_ep_bind(b.rx, &b.cntr->fid, KFI_REMOTE_READ), -KFI_EINVAL);
	if (!expect(t, kfi_enable(b.tx), 0) || !expect(t, kfi_enable(b.rx), 0) ||
	    !expect(t, kfi_getname(&b.sep->fid, name, &len), 0) ||
	    !expect(t, kfi_av_insert(b.av, name, 1, &self, 0, NULL), 1) ||
	    !expect(t, kfi_mr_reg(nic_domain[0], target, 8, KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0,
				  1, 0, &mr, NULL), 0))
		goto close;
	expect(t, kfi_recv(b.rx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_send(b.tx, from, 8, NULL, self, CONTEXT(2)), 0);
	expect_completion(t, b.cq, CONTEXT(1), RECEIVED, 8);
	expect_count(t, b.cntr, 2, 0);
	expect(t, kfi_write(b.tx, from, 8, NULL, self, 0, 1, CONTEXT(3)), 0);
	expect_count(t, b.cntr, 4, 0);
	expect(t, kfi_read(b.tx, to, 8, NULL, self, 0, 1, CONTEXT(4)), 0);
	expect_count(t, b.cntr, 6, 0);
	expect_nothing(t, b.cq);
	close_fid(t, &mr->fid);
close:
	if (b.tx)
		close_fid(t, &b.tx->fid);
	if (b.rx)
		close_fid(t, &b.rx->fid);
	if (b.sep)
		close_fid(t, &b.sep->fid);
	if (b.av)
		close_fid(t, &b.av->fid);
	if (b.cq)
		close_fid(t, &b.cq->fid);
	if (b.cntr)
		close_fid(t, &b.cntr->fid);
	kfi_freeinfo(info);
}

/* An endpoint has two directions: which one has to be said. */
static void bind_endpoint(struct test *t)
{
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid_cq *cq = cq_open(t, nic_domain[0], 0);
	struct kfid_ep *ep = NULL;

	if (cntr && cq && expect(t, kfi_endpoint(nic_domain[0], nic_info[0], &ep, NULL), 0)) {
		expect(t, kfi_ep_bind(ep, &cq->fid, 0), -KFI_EBADFLAGS);
		expect(t, kfi_ep_bind(ep, &cq->fid, KFI_SELECTIVE_COMPLETION), -KFI_EBADFLAGS);
		expect(t, kfi_ep_bind(ep, &cntr->fid, 0), -KFI_EBADFLAGS);
		expect(t, kfi_ep_bind(ep, &cq->fid, KFI_TRANSMIT | KFI_RECV), 0);
		close_fid(t, &ep->fid);
	}
	if (cq)
		close_fid(t, &cq->fid);
	if (cntr)
		close_fid(t, &cntr->fid);
}

/* Flags make nothing of an object that cannot be bound. */
static void bind_classes(struct test *t)
{
	struct kfid_eq *eq = NULL;
	struct kfid_ep *ep = NULL;

	if (!expect(t, kfi_endpoint(nic_domain[0], nic_info[0], &ep, NULL), 0))
		return;
	expect(t, kfi_ep_bind(ep, &nic_domain[0]->fid, 0), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &nic_domain[0]->fid, KFI_TRANSMIT), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &ep->fid, KFI_TRANSMIT | KFI_RECV), -KFI_EINVAL);
	expect(t, kfi_ep_bind(ep, &t->fabric->fid, 1ULL << 63), -KFI_EINVAL);
	if (expect(t, kfi_eq_open(t->fabric, NULL, &eq, NULL, NULL), 0)) {
		expect(t, kfi_ep_bind(ep, &eq->fid, KFI_TRANSMIT), -KFI_EBADFLAGS);
		expect(t, kfi_ep_bind(ep, &eq->fid, 0), 0);
	}
	close_fid(t, &ep->fid);
	if (eq)
		close_fid(t, &eq->fid);
}

/* A scalable endpoint is enabled once, and has its address vector by then. */
static void enable(struct test *t)
{
	struct kfi_info *info = ask(t, 0, KFI_MSG);
	struct kfi_av_attr attr = {};
	struct kfid_av *av = NULL;
	struct kfid_ep *sep;

	if (!info)
		return;
	if (!expect(t, kfi_scalable_ep(nic_domain[0], info, &sep, NULL), 0))
		goto free;
	expect(t, kfi_enable(sep), -KFI_ENOAV);
	if (expect(t, kfi_av_open(nic_domain[0], &attr, &av, NULL), 0)) {
		expect(t, kfi_scalable_ep_bind(sep, &av->fid, 1), -KFI_EBADFLAGS);
		expect(t, kfi_scalable_ep_bind(sep, &av->fid, 0), 0);
		expect(t, kfi_scalable_ep_bind(sep, &av->fid, 0), -KFI_EINVAL);
		expect(t, kfi_enable(sep), 0);
		expect(t, kfi_enable(sep), -KFI_EOPBADSTATE);
		expect(t, kfi_scalable_ep_bind(sep, &av->fid, 0), -KFI_EOPBADSTATE);
	}
	close_fid(t, &sep->fid);
	if (av)
		close_fid(t, &av->fid);
free:
	kfi_freeinfo(info);
}

/* Queues bound to shared contexts are told of operations of endpoints that have none. */
static void bind_shared(struct test *t)
{
	struct kfi_av_attr attr = {};
	struct kfid_ep *srx = NULL, *ep[2] = {};
	struct kfid_stx *stx = NULL;
	struct kfid_cntr *cntr = open_cntr(t, KFI_WAIT_UNSPEC);
	struct kfid_cq *cq[3] = {};
	struct kfid_av *av = NULL;
	u8 from[8] = { 5 }, to[8] = {};
	unsigned int i;

	for (i = 0; i < 3; i++) {
		cq[i] = cq_open(t, nic_domain[0], 0);
		if (!cq[i])
			goto close;
	}
	if (!cntr ||
	    !expect(t, kfi_av_open(nic_domain[0], &attr, &av, NULL), 0) ||
	    !expect(t, kfi_srx_context(nic_domain[0], NULL, &srx, NULL), 0) ||
	    !expect(t, kfi_stx_context(nic_domain[0], NULL, &stx, NULL), 0))
		goto close;
	expect(t, kfi_ep_bind(srx, &cq[0]->fid, 0), 0);
	expect(t, kfi_ep_bind(srx, &cq[0]->fid, KFI_RECV), -KFI_EINVAL);
	expect(t, kfi_ep_bind(srx, &cq[0]->fid, KFI_TRANSMIT), -KFI_EINVAL);
	expect(t, kfi_ep_bind(srx, &cntr->fid, 0), 0);
	expect(t, kfi_ep_bind(srx, &av->fid, 0), -KFI_EINVAL);
	expect(t, stx->fid.ops->bind(&stx->fid, &cq[1]->fid, 0), 0);
	expect(t, stx->fid.ops->bind(&stx->fid, &cq[1]->fid, 0), -KFI_EINVAL);
	for (i = 0; i < 2; i++) {
		size_t len = 8;
		kfi_addr_t addr;
		u8 name[8];

		if (!expect(t, kfi_endpoint(nic_domain[0], nic_info[0], &ep[i], NULL), 0))
			goto close;
		expect(t, kfi_ep_bind(ep[i], &av->fid, 0), 0);
		expect(t, kfi_ep_bind(ep[i], &srx->fid, 0), 0);
		/* The second has a queue of its own for what it receives. */
		if (i)
			expect(t, kfi_ep_bind(ep[i], &cq[2]->fid, KFI_RECV), 0);
		expect(t, kfi_enable(ep[i]), -KFI_ENOCQ);
		expect(t, kfi_ep_bind(ep[i], &stx->fid, 0), 0);
		expect(t, kfi_enable(ep[i]), 0);
		expect(t, kfi_getname(&ep[i]->fid, name, &len), 0);
		expect(t, kfi_av_insert(av, name, 1, &addr, 0, NULL), 1);
		expect(t, addr, i);
	}
	for (i = 0; i < 2; i++) {
		expect(t, kfi_recv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
		expect(t, kfi_send(ep[!i], from, 8, NULL, i, CONTEXT(9)), 0);
		expect_completion(t, cq[1], CONTEXT(9), SENT, 8);
		expect_completion(t, i ? cq[2] : cq[0], CONTEXT(i), RECEIVED, 8);
	}
	expect_count(t, cntr, 2, 0);
	for (i = 0; i < 3; i++) {
		expect_nothing(t, cq[i]);
		expect(t, kfi_close(&cq[i]->fid), -KFI_EBUSY);
	}
close:
	for (i = 0; i < 2; i++) {
		if (ep[i])
			close_fid(t, &ep[i]->fid);
	}
	/* The shared contexts have them still. */
	if (srx) {
		expect(t, kfi_close(&cq[0]->fid), -KFI_EBUSY);
		close_fid(t, &srx->fid);
	}
	if (stx) {
		expect(t, kfi_close(&cq[1]->fid), -KFI_EBUSY);
		close_fid(t, &stx->fid);
	}
	if (av)
		close_fid(t, &av->fid);
	for (i = 0; i < 3; i++) {
		if (cq[i])
			close_fid(t, &cq[i]->fid);
	}
	if (cntr)
		close_fid(t, &cntr->fid);
}

/* Options and default flags of contexts are those of their direction. */
static void of_contexts(struct test *t)
{
	struct kfi_info *info = ask(t, 0, KFI_MSG);
	size_t value = 4096, len = sizeof(value);
	struct kfi_tx_attr tx_attr = { .caps = KFI_MSG | KFI_RECV };
	struct kfi_rx_attr rx_attr = { .caps = KFI_MSG | KFI_SEND };
	struct kfid_ep *other = NULL;
	struct contexts c;
	u64 flags;

	if (!info)
		return;
	if (!contexts_open(t, &c, nic_domain[0], info, 1, 1))
		goto free;
	expect(t, kfi_setopt(&c.rx[0]->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value, len),
	       0);
	value = 0;
	expect(t, kfi_getopt(&c.rx[0]->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value,
			     &len), 0);
	expect(t, value, 4096);
	expect(t, kfi_setopt(&c.tx[0]->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value, len),
	       -KFI_ENOPROTOOPT);
	expect(t, kfi_getopt(&c.tx[0]->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value,
			     &len), -KFI_ENOPROTOOPT);
	expect(t, kfi_setopt(&c.sep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value, len),
	       -KFI_ENOPROTOOPT);
	flags = KFI_TRANSMIT;
	expect(t, kfi_control(&c.tx[0]->fid, KFI_GETOPSFLAG, &flags), 0);
	flags = 0;
	expect(t, kfi_control(&c.tx[0]->fid, KFI_GETOPSFLAG, &flags), -KFI_EINVAL);
	expect(t, kfi_control(&c.tx[0]->fid, KFI_SETOPSFLAG, &flags), -KFI_EINVAL);
	flags = KFI_RECV;
	expect(t, kfi_control(&c.tx[0]->fid, KFI_GETOPSFLAG, &flags), -KFI_EINVAL);
	expect(t, kfi_control(&c.tx[0]->fid, KFI_SETOPSFLAG, &flags), -KFI_EINVAL);
	flags = KFI_RECV | 1ULL << 50;
	expect(t, kfi_control(&c.rx[0]->fid, KFI_GETOPSFLAG, &flags), -KFI_EINVAL);
	expect(t, kfi_control(&c.rx[0]->fid, KFI_SETOPSFLAG, &flags), -KFI_EINVAL);
	flags = KFI_RECV | KFI_COMPLETION;
	expect(t, kfi_control(&c.rx[0]->fid, KFI_SETOPSFLAG, &flags), 0);
	expect(t, kfi_tx_context(c.sep, 1, &tx_attr, &other, NULL), -KFI_EINVAL);
	expect(t, kfi_rx_context(c.sep, 1, &rx_attr, &other, NULL), -KFI_EINVAL);
	contexts_close(t, &c);
free:
	kfi_freeinfo(info);
}

/* Writes to and reads from a region by way of a receive context of the peer. */
static void access_by(struct test *t, struct contexts *a, unsigned int rx, u64 value, u64 key,
		      int err)
{
	kfi_addr_t addr = kfi_rx_addr(a->peer, rx, 8);
	u64 back = 0;

	expect(t, kfi_write(a->tx[0], &value, 8, NULL, addr, 0, key, CONTEXT(1)), 0);
	if (err)
		expect_failure(t, a->tx_cq[0], CONTEXT(1), WRITTEN, err, 0, 0);
	else
		expect_completion(t, a->tx_cq[0], CONTEXT(1), WRITTEN, 8);
	expect(t, kfi_read(a->tx[0], &back, 8, NULL, addr, 0, key, CONTEXT(2)), 0);
	if (err)
		expect_failure(t, a->tx_cq[0], CONTEXT(2), READ_DONE, err, 0, 0);
	else if (expect_completion(t, a->tx_cq[0], CONTEXT(2), READ_DONE, 8))
		expect_true(t, back == value);
	say(t, "by context %u", rx);
}

/* Accesses of peers to memory are told by the context that they have named, if asked for. */
static void remote_events(struct test *t)
{
	u64 caps = KFI_MSG | KFI_RMA | KFI_NAMED_RX_CTX;
	struct kfi_info *info_a = ask(t, 0, caps);
	unsigned int i, told;

	for (told = 0; told < 2 && info_a && !t->failed; told++) {
		struct kfi_info *info_b = ask(t, 1, caps | (told ? KFI_RMA_EVENT : 0));
		struct kfid_domain *domain = NULL;
		struct kfid_mr *mr = NULL;
		struct contexts a, b;
		u64 target = 0;

		if (!info_b)
			break;
		if (!expect(t, kfi_domain(t->fabric, info_b, &domain, NULL), 0))
			goto free;
		if (!contexts_open(t, &a, nic_domain[0], info_a, 3, 3))
			goto close_domain;
		if (!contexts_open(t, &b, domain, info_b, 3, 3))
			goto close_a;
		contexts_know(t, &a, &b);
		expect(t, kfi_mr_reg(domain, &target, 8, KFI_REMOTE_READ | KFI_REMOTE_WRITE,
				     0, 1, 0, &mr, NULL), 0);
		for (i = 0; i < 3 && mr; i++) {
			access_by(t, &a, i, 100 + i, 1, 0);
			if (told) {
				expect_completion(t, b.rx_cq[i], NULL, KFI_RMA | KFI_REMOTE_WRITE,
						  8);
				expect_completion(t, b.rx_cq[i], NULL, KFI_RMA | KFI_REMOTE_READ,
						  8);
			}
			/* An access that fails is not told. */
			access_by(t, &a, i, 1, 4711, KFI_EKEYREJECTED);
		}
		for (i = 0; i < 3; i++)
			expect_nothing(t, b.rx_cq[i]);
		if (mr)
			close_fid(t, &mr->fid);
		contexts_close(t, &b);
close_a:
		contexts_close(t, &a);
close_domain:
		close_fid(t, &domain->fid);
free:
		kfi_freeinfo(info_b);
		say(t, "told %u", told);
	}
	kfi_freeinfo(info_a);
}

/* Regions that are bound to a receive context are reached by way of that one only. */
static void bound_regions(struct test *t)
{
	u64 caps = KFI_MSG | KFI_RMA | KFI_NAMED_RX_CTX;
	unsigned int i, of_context;

	for (of_context = 0; of_context < 2 && !t->failed; of_context++) {
		struct kfi_info *info_a = ask(t, 0, caps), *info_b = ask(t, 1, caps);
		struct kfid_domain *domain = NULL;
		struct kfid_mr *mr[2] = {};
		struct contexts a, b;
		u64 target[2] = {};

		if (!info_a || !info_b)
			goto free;
		info_b->domain_attr->mr_mode = of_context ? KFI_MR_ENDPOINT : 0;
		if (!expect(t, kfi_domain(t->fabric, info_b, &domain, NULL), 0))
			goto free;
		if (!contexts_open(t, &a, nic_domain[0], info_a, 2, 2))
			goto close_domain;
		if (!contexts_open(t, &b, domain, info_b, 2, 2))
			goto close_a;
		contexts_know(t, &a, &b);
		/* With one key where each context has keys of its own. */
		for (i = 0; i < 2; i++) {
			if (!expect(t, kfi_mr_reg(domain, &target[i], 8,
						  KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0,
						  of_context ? 1 : 1 + i, 0, &mr[i], NULL), 0))
				goto close;
			expect(t, kfi_mr_bind(mr[i], &b.tx[i]->fid, 0), -KFI_EINVAL);
			expect(t, kfi_mr_bind(mr[i], &b.rx[i]->fid, 0), 0);
			expect(t, kfi_mr_bind(mr[i], &b.rx[!i]->fid, 0), -KFI_EINVAL);
			expect(t, kfi_mr_enable(mr[i]), 0);
			/* It keeps the context. */
			expect(t, kfi_close(&b.rx[i]->fid), -KFI_EBUSY);
		}
		for (i = 0; i < 2; i++) {
			u64 key = of_context ? 1 : 1 + i;

			access_by(t, &a, i, 10 + i, key, 0);
			expect_true(t, target[i] == 10 + i);
			if (!of_context)
				access_by(t, &a, !i, 20, key, KFI_EKEYREJECTED);
			expect_true(t, target[i] == 10 + i);
			expect_nothing(t, b.rx_cq[i]);
		}
		close_fid(t, &mr[0]->fid);
		mr[0] = NULL;
		access_by(t, &a, 0, 30, 1, KFI_EKEYREJECTED);
		expect_true(t, target[0] == 10 && target[1] == 11);
close:
		for (i = 0; i < 2; i++) {
			if (mr[i])
				close_fid(t, &mr[i]->fid);
		}
		contexts_close(t, &b);
close_a:
		contexts_close(t, &a);
close_domain:
		close_fid(t, &domain->fid);
free:
		kfi_freeinfo(info_b);
		kfi_freeinfo(info_a);
		say(t, "of contexts %u", of_context);
	}
}

const struct test_case scalable_tests[] = {
	{ "scalable/remote-events", "", remote_events },
	{ "scalable/bound-regions", "", bound_regions },
	{ "scalable/all-contexts", "", all_contexts },
	{ "scalable/beside", "", beside },
	{ "scalable/of-each-direction", "", of_each_direction },
	{ "scalable/without-av", "", without_av },
	{ "scalable/bind-without-flags", "", bind_without_flags },
	{ "scalable/bind-endpoint", "", bind_endpoint },
	{ "scalable/bind-classes", "", bind_classes },
	{ "scalable/enable", "", enable },
	{ "scalable/bind-shared", "", bind_shared },
	{ "scalable/options", "", of_contexts },
	{}
};
