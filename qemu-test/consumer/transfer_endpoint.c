// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints of all sorts: sharing, aliases, with names and keys.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_trigger.h>

#include "transfer.h"

/* Endpoints that receive from one queue. */
static void shared_receive(struct test *t)
{
	static const u64 flags[] = {
		KFI_TRIGGER, KFI_PEEK, KFI_PEEK | KFI_CLAIM, KFI_PEEK | KFI_DISCARD,
		KFI_CLAIM, KFI_CLAIM | KFI_DISCARD,
	};
	struct kfi_triggered_context context = { .event_type = KFI_TRIGGER_THRESHOLD };
	struct setup setup = {};
	struct kfid_ep *srx = NULL;
	u8 from[8] = { 1 }, to[8] = {}, other[40];
	struct kvec iov = { to, sizeof(to) };
	struct kfi_op_msg op = {
		.msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1 },
	};
	struct kfi_deferred_work work = { .op_type = KFI_OP_RECV, .op.msg = &op };
	struct end a, b, c;
	unsigned int i;

	if (!expect(t, kfi_srx_context(nic_domain[0], NULL, &srx, NULL), 0))
		return;
	setup.srx = srx;
	if (!pair_open(t, &b, &a, &setup, NULL))
		goto close_srx;
	if (!end_open(t, &c, 0, &setup))
		goto close;
	expect(t, kfi_close(&srx->fid), -KFI_EBUSY);
	expect(t, kfi_recv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
	expect(t, kfi_recv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)), 0);
	/* Either of them receives, and its own queue tells. */
	if (end_knows(t, &a, c.ep, &c.peer)) {
		expect(t, kfi_send(a.ep, from, 8, NULL, c.peer, CONTEXT(3)), 0);
		expect_completion(t, c.rx_cq, CONTEXT(1), RECEIVED, 8);
		expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(3)), 0);
		expect_completion(t, b.rx_cq, CONTEXT(2), RECEIVED, 8);
		expect_count(t, c.cntr[COUNT_RECV], 1, 0);
		expect_count(t, b.cntr[COUNT_RECV], 1, 0);
		/* Messages that wait for their receive. */
		expect(t, kfi_tsend(a.ep, from, 8, NULL, c.peer, 5, CONTEXT(3)), 0);
		expect(t, kfi_trecv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(4)), 0);
		expect_completion(t, c.rx_cq, CONTEXT(4), TRECEIVED, 8);
		/* The completion of a message that has waited may come a little after the receiver's. */
		expect_completion(t, a.tx_cq, CONTEXT(3), SENT, 8);
		expect_completion(t, a.tx_cq, CONTEXT(3), SENT, 8);
		expect_completion(t, a.tx_cq, CONTEXT(3), TSENT, 8);
		/* Nobody would know whose it is. */
		expect(t, kfi_recv(b.ep, other, 40, NULL, KFI_ADDR_UNSPEC, CONTEXT(5)),
		       -KFI_EOPNOTSUPP);
	}
	expect(t, to[0], 1);
	expect(t, kfi_recv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(6)), 0);
	expect(t, kfi_cancel(&srx->fid, CONTEXT(6)), 0);
	expect(t, kfi_cancel(&srx->fid, CONTEXT(6)), -KFI_ENOENT);
	expect(t, kfi_send(srx, to, 8, NULL, 0, NULL), -KFI_EOPNOTSUPP);
	/* It was not posted to the endpoint. */
	expect(t, kfi_recv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(6)), 0);
	expect(t, kfi_cancel(&b.ep->fid, CONTEXT(6)), -KFI_ENOENT);
	expect(t, kfi_cancel(&srx->fid, CONTEXT(6)), 0);
	expect_nothing(t, b.rx_cq);
	/* Addresses belong to the vectors of endpoints. */
	expect(t, kfi_recv(srx, to, 8, NULL, a.peer, CONTEXT(6)), -KFI_EOPNOTSUPP);
	expect(t, kfi_trecv(srx, to, 8, NULL, a.peer, 5, 0, CONTEXT(6)), -KFI_EOPNOTSUPP);
	/* It has no endpoint whose queue would tell. */
	context.trigger.threshold.cntr = b.cntr[COUNT_SEND];
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		struct kfi_msg_tagged tagged = {
			.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1,
			.addr = KFI_ADDR_UNSPEC, .context = &context,
		};

		expect(t, kfi_trecvmsg(srx, &tagged, flags[i]), -KFI_EBADFLAGS);
		say(t, "flags %#llx", flags[i]);
	}
	/* ENOSYS is for what is not supported (R-DWQ-17), and for nothing else. */
	op.ep = srx;
	work.triggering_cntr = b.cntr[COUNT_SEND];
	expect(t, kfi_control(&b.domain->fid, KFI_QUEUE_WORK, &work), -KFI_ENOSYS);
	work.op_type = KFI_OP_SEND;
	expect(t, kfi_control(&b.domain->fid, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	work.op_type = KFI_OP_RECV;
	work.triggering_cntr = a.cntr[COUNT_SEND];
	expect(t, kfi_control(&a.domain->fid, KFI_QUEUE_WORK, &work), -KFI_EINVAL);
	/* One of them goes, with a message that waits for it; the other stays. */
	expect(t, kfi_send(a.ep, from, 8, NULL, c.peer, CONTEXT(7)), 0);
	end_close(t, &c);
	expect_failure(t, a.tx_cq, CONTEXT(7), SENT, KFI_EHOSTUNREACH, 0, 0);
	expect(t, kfi_recv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(8)), 0);
	expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(3)), 0);
	expect_completion(t, b.rx_cq, CONTEXT(8), RECEIVED, 8);
	expect_completion(t, a.tx_cq, CONTEXT(3), SENT, 8);
	expect_nothing(t, b.rx_cq);
	/* A receive that is still posted goes with the queue. */
	expect(t, kfi_recv(srx, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(8)), 0);
close:
	pair_close(t, &b, &a);
close_srx:
	close_fid(t, &srx->fid);
}

/* Endpoints that share the right to send. */
static void shared_transmit(struct test *t)
{
	struct kfi_tx_attr attr = { .size = 2 };
	struct setup setup = {};
	struct kfid_stx *stx = NULL;
	u8 from[8] = {}, to[8];
	struct end a, b;
	unsigned int i;

	if (!expect(t, kfi_stx_context(nic_domain[0], &attr, &stx, NULL), 0))
		return;
	setup.stx = stx;
	if (!pair_open(t, &a, &b, &setup, NULL))
		goto close_stx;
	expect(t, kfi_close(&stx->fid), -KFI_EBUSY);
	for (i = 0; i < 2; i++)
		expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(1)), 0);
	expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(1)), -KFI_EAGAIN);
	for (i = 0; i < 2; i++) {
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)), 0);
		expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 8);
	}
	expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)), 0);
	expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(1)), 0);
	expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 8);
	pair_close(t, &a, &b);
close_stx:
	close_fid(t, &stx->fid);
}

static void aliases(struct test *t)
{
	const struct setup setup = {
		.tx_bind = KFI_SELECTIVE_COMPLETION,
		.rx_bind = KFI_SELECTIVE_COMPLETION,
	};
	struct kfid_ep *alias = NULL, *rx_alias = NULL, *none = NULL;
	u8 from[8] = { 3 }, to[8] = {};
	struct end a, b;
	u64 flags = 0;

	if (!pair_open(t, &a, &b, &setup, &setup))
		return;
	expect(t, kfi_ep_alias(a.ep, &none, 0), -KFI_EINVAL);
	expect(t, kfi_ep_alias(a.ep, &none, KFI_TRANSMIT | KFI_RECV), -KFI_EINVAL);
	expect(t, kfi_ep_alias(a.ep, &none, KFI_TRANSMIT | KFI_MULTI_RECV), -KFI_EBADFLAGS);
	if (expect(t, kfi_ep_alias(a.ep, &alias, KFI_TRANSMIT | KFI_COMPLETION), 0) &&
	    expect(t, kfi_ep_alias(b.ep, &rx_alias, KFI_RECV | KFI_COMPLETION), 0)) {
		expect(t, kfi_close(&a.ep->fid), -KFI_EBUSY);
		flags = KFI_TRANSMIT;
		expect(t, kfi_control(&alias->fid, KFI_GETOPSFLAG, &flags), 0);
		expect(t, flags, KFI_COMPLETION);
		/* Of endpoints the direction has to be told. */
		flags = 0;
		expect(t, kfi_control(&a.ep->fid, KFI_GETOPSFLAG, &flags), -KFI_EINVAL);
		expect(t, kfi_control(&a.ep->fid, KFI_SETOPSFLAG, &flags), -KFI_EINVAL);
		expect(t, kfi_control(&a.ep->fid, KFI_SETOPSFLAG, NULL), -KFI_EINVAL);
		flags = KFI_RECV;
		expect(t, kfi_control(&a.ep->fid, KFI_GETOPSFLAG, &flags), 0);
		expect(t, flags, 0);
		/* Only what goes through the alias gives entries. */
		expect(t, kfi_recv(rx_alias, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(2)), 0);
		expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(3)), 0);
		expect(t, kfi_send(alias, from, 8, NULL, a.peer, CONTEXT(4)), 0);
		expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 8);
		expect_completion(t, a.tx_cq, CONTEXT(4), SENT, 8);
		expect_count(t, a.cntr[COUNT_SEND], 2, 0);
		expect_count(t, b.cntr[COUNT_RECV], 2, 0);
		expect_nothing(t, a.tx_cq);
		expect_nothing(t, b.rx_cq);
		expect(t, to[0], 3);
		/* Cancelling works through either. */
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(5)), 0);
		expect(t, kfi_cancel(&rx_alias->fid, CONTEXT(5)), 0);
		expect_failure(t, b.rx_cq, CONTEXT(5), RECEIVED, KFI_ECANCELED, 0, 0);
	}
	if (alias)
		close_fid(t, &alias->fid);
	if (rx_alias)
		close_fid(t, &rx_alias->fid);
	pair_close(t, &a, &b);
}

/* Gives endpoints that are not enabled other names; @taken is somebody's. */
static void rename_endpoint(struct test *t, struct kfid_domain *domain, void *taken)
{
	struct kfid_ep *ep[2] = {};
	u8 old[8], new[8];
	size_t len = 8;
	unsigned int i;

	if (!expect(t, kfi_endpoint(domain, nic_info[0], &ep[0], NULL), 0) ||
	    !expect(t, kfi_scalable_ep(domain, nic_info[0], &ep[1], NULL), 0))
		goto close;
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		struct kfid_ep *other = NULL;

		expect(t, kfi_getname(&ep[i]->fid, old, &len), 0);
		expect(t, kfi_setname(&ep[i]->fid, taken, 8), -KFI_EADDRINUSE);
		expect(t, kfi_setname(&ep[i]->fid, old, 7), -KFI_EINVAL);
		/* Its own is no one else's. */
		expect(t, kfi_setname(&ep[i]->fid, old, 8), 0);
		expect(t, kfi_getname(&ep[i]->fid, new, &len), 0);
		expect(t, memcmp(old, new, 8), 0);
		/* A port that was free a moment ago. */
		if (!expect(t, kfi_endpoint(domain, nic_info[0], &other, NULL), 0))
			break;
		expect(t, kfi_getname(&other->fid, new, &len), 0);
		close_fid(t, &other->fid);
		expect(t, kfi_setname(&ep[i]->fid, new, 8), 0);
		memset(old, 0, sizeof(old));
		expect(t, kfi_getname(&ep[i]->fid, old, &len), 0);
		expect(t, memcmp(old, new, 8), 0);
	}
close:
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		if (ep[i])
			close_fid(t, &ep[i]->fid);
	}
}

/* A scalable endpoint has its name before it has contexts, and before it is enabled. */
static void rename_scalable(struct test *t)
{
	struct kfi_av_attr av_attr = { .type = KFI_AV_TABLE };
	struct kfid_ep *sep = NULL, *tx = NULL, *rx = NULL;
	struct kfid_av *av = NULL;
	u8 name[8];
	size_t len = 8;

	if (!expect(t, kfi_av_open(nic_domain[0], &av_attr, &av, NULL), 0) ||
	    !expect(t, kfi_scalable_ep(nic_domain[0], nic_info[0], &sep, NULL), 0))
		goto close;
	expect(t, kfi_getname(&sep->fid, name, &len), 0);
	if (expect(t, kfi_tx_context(sep, 0, NULL, &tx, NULL), 0)) {
		expect(t, kfi_setname(&sep->fid, name, 8), -KFI_EBUSY);
		close_fid(t, &tx->fid);
	}
	if (expect(t, kfi_rx_context(sep, 0, NULL, &rx, NULL), 0)) {
		expect(t, kfi_setname(&sep->fid, name, 8), -KFI_EBUSY);
		close_fid(t, &rx->fid);
	}
	expect(t, kfi_setname(&sep->fid, name, 8), 0);
	expect(t, kfi_scalable_ep_bind(sep, &av->fid, 0), 0);
	expect(t, kfi_setname(&sep->fid, name, 8), 0);
	expect(t, kfi_enable(sep), 0);
	expect(t, kfi_setname(&sep->fid, name, 8), -KFI_EOPBADSTATE);
close:
	if (sep)
		close_fid(t, &sep->fid);
	if (av)
		close_fid(t, &av->fid);
}

static void names(struct test *t)
{
	struct kfi_info *info;
	struct kfid_ep *ep = NULL, *again = NULL;
	u8 name[16], short_name[4];
	size_t len = sizeof(name);
	struct end a, b;

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	expect(t, kfi_getname(&a.ep->fid, name, &len), 0);
	expect(t, len, 8);
	len = 4;
	expect_errno(t, kfi_getname(&a.ep->fid, short_name, &len));
	expect(t, len, 8);
	expect(t, memcmp(name, short_name, 4), 0);
	/* It is enabled. */
	expect(t, kfi_setname(&a.ep->fid, name, 8), -KFI_EOPBADSTATE);
	/* A port by its number, which is in use then. */
	info = kfi_dupinfo(nic_info[0]);
	if (expect_true(t, info)) {
		kfree(info->src_addr);
		info->src_addr = kmemdup(name, 8, GFP_KERNEL);
		info->src_addrlen = 8;
		expect(t, kfi_endpoint(a.domain, info, &ep, NULL), -KFI_EADDRINUSE);
		expect(t, kfi_scalable_ep(a.domain, info, &ep, NULL), -KFI_EADDRINUSE);
		rename_endpoint(t, a.domain, name);
		end_close(t, &a);
		if (expect(t, kfi_endpoint(nic_domain[0], info, &ep, NULL), 0)) {
			u8 same[8];

			len = 8;
			expect(t, kfi_getname(&ep->fid, same, &len), 0);
			expect(t, memcmp(name, same, 8), 0);
			expect(t, kfi_endpoint(nic_domain[0], info, &again, NULL),
			       -KFI_EADDRINUSE);
			close_fid(t, &ep->fid);
		}
		/* Of another NIC. */
		expect(t, kfi_endpoint(nic_domain[1], info, &ep, NULL), -KFI_EINVAL);
		kfi_freeinfo(info);
	}
	pair_close(t, &a, &b);
}

static void options(struct test *t)
{
	size_t value = 0, len = sizeof(value);
	struct end a;

	if (!end_open(t, &a, 0, NULL))
		return;
	expect(t, kfi_getopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CM_DATA_SIZE, &value, &len), 0);
	expect(t, value, 0);
	expect(t, kfi_setopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_CM_DATA_SIZE, &value, len),
	       -KFI_ENOPROTOOPT);
	expect(t, kfi_getopt(&a.ep->fid, KFI_OPT_ENDPOINT, 7, &value, &len), -KFI_ENOPROTOOPT);
	expect(t, kfi_getopt(&a.ep->fid, 7, KFI_OPT_MIN_MULTI_RECV, &value, &len),
	       -KFI_ENOPROTOOPT);
	expect(t, kfi_setopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value, 4),
	       -KFI_ETOOSMALL);
	value = (1UL << 30) + 1;
	expect(t, kfi_setopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value, len),
	       -KFI_E2BIG);
	value--;
	expect(t, kfi_setopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value, len),
	       0);
	expect(t, kfi_setopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, NULL, len),
	       -KFI_EINVAL);
	len = 2;
	expect(t, kfi_getopt(&a.ep->fid, KFI_OPT_ENDPOINT, KFI_OPT_MIN_MULTI_RECV, &value, &len),
	       -KFI_ETOOSMALL);
	expect(t, len, sizeof(value));
	end_close(t, &a);
}

/* Endpoints with different keys cannot see each other. */
static void keys(struct test *t)
{
	static const char *const key[] = { NULL, "one", "two" };
	unsigned int i, j;
	u8 from[8] = {}, to[8];

	for (i = 0; i < 3; i++) {
		for (j = 0; j < 3; j++) {
			const struct setup setup_a = { .key = key[i] };
			const struct setup setup_b = { .key = key[j] };
			struct end a, b;

			if (!pair_open(t, &a, &b, &setup_a, &setup_b))
				return;
			expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)), 0);
			expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(2)), 0);
			expect(t, kfi_write(a.ep, from, 8, NULL, a.peer, 0, 1, CONTEXT(3)), 0);
			if (i == j) {
				expect_completion(t, b.rx_cq, CONTEXT(1), RECEIVED, 8);
				expect_completion(t, a.tx_cq, CONTEXT(2), SENT, 8);
				expect_failure(t, a.tx_cq, CONTEXT(3), WRITTEN, KFI_EKEYREJECTED,
					       0, 0);
			} else {
				expect_nothing(t, b.rx_cq);
				expect_failure(t, a.tx_cq, CONTEXT(2), SENT, KFI_EHOSTUNREACH, 0,
					       0);
				expect_failure(t, a.tx_cq, CONTEXT(3), WRITTEN, KFI_EHOSTUNREACH,
					       0, 0);
			}
			say(t, "%s and %s", key[i], key[j]);
			pair_close(t, &a, &b);
		}
	}
}

/* Keys separate the ports: the same number is in use once for each. */
static void port_of_each_key(struct test *t)
{
	static const char *const key[] = { NULL, "one", "two" };
	struct kfi_info *info = kfi_dupinfo(nic_info[0]);
	u64 address[ARRAY_SIZE(key)] = {};
	struct kfid_ep *ep[ARRAY_SIZE(key)] = {}, *again = NULL;
	size_t len = 8;
	unsigned int i;
	const struct setup other = { .key = "three" };
	struct end a;
	u8 buf[8] = {};

	if (!expect_true(t, info))
		return;
	for (i = 0; i < ARRAY_SIZE(key); i++) {
		kfree(info->ep_attr->auth_key);
		info->ep_attr->auth_key = key[i] ? kstrdup(key[i], GFP_KERNEL) : NULL;
		info->ep_attr->auth_key_size = key[i] ? strlen(key[i]) : 0;
		if (!expect(t, kfi_endpoint(nic_domain[0], info, &ep[i], NULL), 0))
			goto close;
		expect(t, kfi_getname(&ep[i]->fid, &address[i], &len), 0);
		/* All of them where the first one is. */
		kfree(info->src_addr);
		info->src_addr = kmemdup(&address[0], 8, GFP_KERNEL);
		info->src_addrlen = 8;
		expect(t, address[i], address[0]);
		expect(t, kfi_endpoint(nic_domain[0], info, &again, NULL), -KFI_EADDRINUSE);
		expect(t, kfi_setname(&ep[i]->fid, &address[0], 8), 0);
	}
	/* Of those with that key nobody listens there. */
	if (end_open(t, &a, 1, &other)) {
		kfi_addr_t addr;

		expect(t, kfi_av_insert(a.av, &address[0], 1, &addr, 0, NULL), 1);
		expect(t, kfi_send(a.ep, buf, 8, NULL, addr, CONTEXT(1)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_EHOSTUNREACH, 0, 0);
		end_close(t, &a);
	}
	/* Each is free again by itself. */
	close_fid(t, &ep[1]->fid);
	ep[1] = NULL;
	expect(t, kfi_endpoint(nic_domain[0], info, &again, NULL), -KFI_EADDRINUSE);
	kfree(info->ep_attr->auth_key);
	info->ep_attr->auth_key = kstrdup(key[1], GFP_KERNEL);
	info->ep_attr->auth_key_size = strlen(key[1]);
	expect(t, kfi_endpoint(nic_domain[0], info, &ep[1], NULL), 0);
close:
	for (i = 0; i < ARRAY_SIZE(key); i++) {
		if (ep[i])
			close_fid(t, &ep[i]->fid);
	}
	kfi_freeinfo(info);
}

/* Receives of one who has not asked for tagged RMA, or for one direction of it, are no targets. */
static void target_of_tags(struct test *t, struct end *a)
{
	static const u64 asked[] = {
		KFI_TAGGED,
		KFI_TAGGED | KFI_TAGGED_RMA | KFI_RECV | KFI_REMOTE_READ,
		KFI_TAGGED | KFI_TAGGED_RMA | KFI_RECV | KFI_REMOTE_WRITE,
	};
	u8 from[8] = { 7 }, to[8];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		const bool reads = !strict || asked[i] & KFI_REMOTE_READ;
		const bool writes = !strict || asked[i] & KFI_REMOTE_WRITE;
		const struct setup setup = { .caps = asked[i] };
		struct kfi_rma_iov rma_iov = { .len = 8, .key = 5 };
		struct kvec iov = { from, 8 };
		struct kfi_msg_rma rma = {
			.type = KFI_KVEC,
			.msg_iov = &iov,
			.iov_count = 1,
			.rma_iov = &rma_iov,
			.rma_iov_count = 1,
			.context = CONTEXT(8),
		};
		struct end b;

		if (!end_open(t, &b, 1, &setup))
			return;
		memset(to, 1, sizeof(to));
		if (!end_knows(t, a, b.ep, &rma.addr))
			goto close;
		expect(t, kfi_trecv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(1)), 0);
		expect(t, kfi_writemsg(a->ep, &rma, KFI_TAGGED | KFI_COMPLETION), 0);
		if (writes) {
			expect_completion(t, a->tx_cq, CONTEXT(8), TWRITTEN, 8);
			expect_completion(t, b.rx_cq, CONTEXT(1), TWRITE_HIT, 8);
			expect(t, kfi_trecv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(1)),
			       0);
		} else {
			expect_failure(t, a->tx_cq, CONTEXT(8), TWRITTEN, KFI_EACCES, 0, 0);
			expect(t, to[0], 1);
		}
		expect(t, kfi_readmsg(a->ep, &rma, KFI_TAGGED | KFI_COMPLETION), 0);
		if (reads) {
			expect_completion(t, a->tx_cq, CONTEXT(8), TREAD_DONE, 8);
			expect_completion(t, b.rx_cq, CONTEXT(1), TREAD_HIT, 8);
		} else {
			expect_failure(t, a->tx_cq, CONTEXT(8), TREAD_DONE, KFI_EACCES, 0, 0);
			expect(t, kfi_cancel(&b.ep->fid, CONTEXT(1)), 0);
		}
close:
		end_close(t, &b);
	}
}

/* Regions of one who has not asked for an operation, or for one direction of it, are no targets of it. */
static void target_of_accesses(struct test *t, struct end *a)
{
	static const u64 asked[] = {
		KFI_ATOMIC | KFI_REMOTE_READ | KFI_REMOTE_WRITE,
		KFI_ATOMIC | KFI_REMOTE_READ,
		KFI_ATOMIC | KFI_REMOTE_WRITE,
		KFI_RMA | KFI_REMOTE_READ | KFI_REMOTE_WRITE,
		KFI_RMA | KFI_REMOTE_READ,
		KFI_RMA | KFI_REMOTE_WRITE,
	};
	static const struct {
		u64 needed, flags;
	} posts[] = {
		{ KFI_ATOMIC | KFI_REMOTE_WRITE, CHANGED },
		{ KFI_ATOMIC | KFI_REMOTE_READ | KFI_REMOTE_WRITE, FETCHED },
		{ KFI_ATOMIC | KFI_REMOTE_READ, FETCHED },
		{ KFI_RMA | KFI_REMOTE_WRITE, WRITTEN },
		{ KFI_RMA | KFI_REMOTE_READ, READ_DONE },
	};
	u64 one = 1, to, target = 0, sum = 0;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		const struct setup setup = { .caps = asked[i] };
		struct kfid_mr *mr;
		kfi_addr_t peer;
		struct end b;

		if (!end_open(t, &b, 1, &setup))
			return;
		mr = region_open(t, &b, &target, 8, KFI_REMOTE_READ | KFI_REMOTE_WRITE, 2);
		if (!mr)
			goto close;
		if (!end_knows(t, a, b.ep, &peer))
			goto close_region;
		for (j = 0; j < ARRAY_SIZE(posts); j++) {
			const bool allowed = !strict || !(posts[j].needed & ~asked[i]);
			ssize_t ret;

			switch (j) {
			case 0:
				ret = kfi_atomic(a->ep, &one, 1, NULL, peer, 0, 2, KFI_UINT64, KFI_SUM,
						 CONTEXT(9));
				break;
			case 1:
				ret = kfi_fetch_atomic(a->ep, &one, 1, NULL, &to, NULL, peer, 0, 2,
						       KFI_UINT64, KFI_SUM, CONTEXT(9));
				break;
			case 2:
				ret = kfi_fetch_atomic(a->ep, NULL, 1, NULL, &to, NULL, peer, 0, 2,
						       KFI_UINT64, KFI_ATOMIC_READ, CONTEXT(9));
				break;
			case 3:
				ret = kfi_write(a->ep, &one, 8, NULL, peer, 0, 2, CONTEXT(9));
				break;
			default:
				ret = kfi_read(a->ep, &to, 8, NULL, peer, 0, 2, CONTEXT(9));
			}
			expect(t, ret, 0);
			if (allowed) {
				expect_completion(t, a->tx_cq, CONTEXT(9), posts[j].flags, 8);
				sum = j == 3 ? 1 : sum + (j < 2);
			} else {
				expect_failure(t, a->tx_cq, CONTEXT(9), posts[j].flags, KFI_EACCES, 0, 0);
			}
			expect(t, target, sum);
			say(t, "target %u, operation %u", i, j);
		}
close_region:
		close_fid(t, &mr->fid);
close:
		end_close(t, &b);
	}
}

/* Operations whose capability was not asked for are refused, if the provider is to be strict. */
static void capabilities(struct test *t)
{
	const struct setup plain = { .caps = KFI_MSG };
	const int refused = strict ? -KFI_EOPNOTSUPP : 0;
	struct kfi_rma_iov rma_iov = { .len = 8, .key = 6 };
	u8 from[8] = { 7 }, to[8] = {}, many[64], target[8] = {};
	struct kvec iov = { from, 8 };
	struct kfi_msg_rma rma = {
		.type = KFI_KVEC,
		.msg_iov = &iov,
		.iov_count = 1,
		.rma_iov = &rma_iov,
		.rma_iov_count = 1,
		.context = CONTEXT(5),
	};
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1 };
	struct kfid_mr *mr;
	struct end a, b, c;
	size_t count;

	if (!pair_open(t, &a, &b, &plain, &plain))
		return;
	mr = region_open(t, &b, target, 8, KFI_REMOTE_READ | KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto close;
	expect(t, kfi_trecv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, 5, 0, CONTEXT(1)), refused);
	expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, 5, CONTEXT(2)), refused);
	if (!refused) {
		expect_completion(t, b.rx_cq, CONTEXT(1), TRECEIVED, 8);
		expect_completion(t, a.tx_cq, CONTEXT(2), TSENT, 8);
	}
	expect(t, kfi_write(a.ep, from, 8, NULL, a.peer, 0, 1, CONTEXT(3)), refused);
	if (!refused)
		expect_completion(t, a.tx_cq, CONTEXT(3), WRITTEN, 8);
	expect(t, kfi_read(a.ep, to, 8, NULL, a.peer, 0, 1, CONTEXT(4)), refused);
	if (!refused)
		expect_completion(t, a.tx_cq, CONTEXT(4), READ_DONE, 8);
	expect(t, kfi_atomic(a.ep, from, 1, NULL, a.peer, 0, 1, KFI_UINT64, KFI_SUM, CONTEXT(4)),
	       refused);
	if (!refused)
		expect_completion(t, a.tx_cq, CONTEXT(4), CHANGED, 8);
	expect(t, kfi_atomicvalid(a.ep, KFI_UINT64, KFI_SUM, &count), refused);
	expect(t, kfi_fetch_atomicvalid(a.ep, KFI_UINT64, KFI_SUM, &count), refused);
	expect(t, kfi_compare_atomicvalid(a.ep, KFI_UINT64, KFI_CSWAP, &count), refused);
	rma.addr = a.peer;
	if (!refused)
		expect(t, kfi_trecv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, 6, 0, CONTEXT(1)), 0);
	expect(t, kfi_writemsg(a.ep, &rma, KFI_TAGGED | KFI_COMPLETION), refused);
	if (!refused) {
		expect_completion(t, a.tx_cq, CONTEXT(5), TWRITTEN, 8);
		expect_completion(t, b.rx_cq, CONTEXT(1), TWRITE_HIT, 8);
	}
	/* Flags that belong to a capability. */
	iov = (struct kvec) { many, sizeof(many) };
	msg.addr = KFI_ADDR_UNSPEC;
	expect(t, kfi_recvmsg(b.ep, &msg, KFI_MULTI_RECV), refused);
	if (refused)
		expect(t, kfi_recvmsg(b.ep, &msg, 0), 0);
	iov = (struct kvec) { from, 8 };
	msg.addr = a.peer;
	msg.context = CONTEXT(6);
	expect(t, kfi_sendmsg(a.ep, &msg, KFI_FENCE | KFI_COMPLETION), refused);
	if (refused)
		expect(t, kfi_sendmsg(a.ep, &msg, KFI_COMPLETION), 0);
	expect_completion(t, a.tx_cq, CONTEXT(6), SENT, 8);
	/* The target looks, too. */
	if (end_open(t, &c, 0, NULL)) {
		if (end_knows(t, &c, b.ep, &c.peer)) {
			expect(t, kfi_write(c.ep, from, 8, NULL, c.peer, 0, 1, CONTEXT(7)), 0);
			if (refused)
				expect_failure(t, c.tx_cq, CONTEXT(7), WRITTEN, KFI_EACCES, 0, 0);
			else
				expect_completion(t, c.tx_cq, CONTEXT(7), WRITTEN, 8);
			target_of_tags(t, &c);
			target_of_accesses(t, &c);
			expect(t, kfi_tsend(c.ep, from, 8, NULL, c.peer, 5, CONTEXT(7)), 0);
			if (refused)
				expect_failure(t, c.tx_cq, CONTEXT(7), TSENT, KFI_EACCES, 0, 0);
			else
				expect(t, kfi_cancel(&c.ep->fid, CONTEXT(7)), 0);
		}
		end_close(t, &c);
	}
	close_fid(t, &mr->fid);
close:
	pair_close(t, &a, &b);
}

/* Every port of a NIC, and then no more. */
static void all_ports(struct test *t)
{
	static struct kfid_ep *eps[5000];
	unsigned int count, i;
	int ret = 0;

	/* Takes minutes where every allocation is watched. */
	if (rounds < 20000)
		return;
	for (count = 0; count < ARRAY_SIZE(eps); count++) {
		ret = kfi_endpoint(nic_domain[0], nic_info[0], &eps[count], NULL);
		if (ret)
			break;
	}
	expect(t, ret, -KFI_EADDRINUSE);
	/* Port 0 is for those who ask for it. */
	expect_true(t, count >= 4000 && count <= 4096);
	for (i = 0; i < count; i++)
		close_fid(t, &eps[i]->fid);
	expect(t, kfi_endpoint(nic_domain[0], nic_info[0], &eps[0], NULL), 0);
	close_fid(t, &eps[0]->fid);
}

static ssize_t send_more(struct end *e, u8 *from, unsigned int number, u64 flags)
{
	struct kvec iov = { from, 8 };
	struct kfi_msg msg = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1,
		.addr = e->peer, .context = CONTEXT(number),
	};

	return kfi_sendmsg(e->ep, &msg, flags);
}

/*
 * KFI_MORE holds back: until an operation without it, a full queue, or the
 * close of the endpoint, which discards.
 */
static void more(struct test *t)
{
	enum { ROOM = 4 };
	const struct setup small = { .tx_size = ROOM };
	struct kvec iov;
	struct kfi_msg msg = { .type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1 };
	struct kfi_rma_iov place = { .addr = 0, .len = 8, .key = 1 };
	struct kfi_msg_rma write = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1,
		.rma_iov = &place, .rma_iov_count = 1, .context = CONTEXT(7),
	};
	u8 from[ROOM + 1][8] = {}, to[8], target[8] = {};
	struct kfi_cq_tagged_entry entry;
	unsigned int i, written = 0;
	struct end a, b;
	struct kfid_mr *mr;

	if (!pair_open(t, &a, &b, &small, NULL))
		return;
	mr = region_open(t, &b, target, 8, KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto close;
	for (i = 0; i <= ROOM; i++)
		memset(from[i], i + 1, 8);
	iov = (struct kvec) { to, 8 };
	msg.addr = KFI_ADDR_UNSPEC;
	msg.context = CONTEXT(9);
	/* With receives it is a hint. */
	for (i = 0; i < 10; i++)
		expect(t, kfi_recvmsg(b.ep, &msg, KFI_MORE), 0);

	/* Until one without it. */
	iov = (struct kvec) { from[0], 8 };
	write.addr = a.peer;
	expect(t, send_more(&a, from[0], 0, KFI_MORE), 0);
	expect(t, kfi_writemsg(a.ep, &write, KFI_MORE), 0);
	expect_nothing(t, a.tx_cq);
	expect_nothing(t, b.rx_cq);
	expect(t, target[0], 0);
	expect(t, send_more(&a, from[1], 1, 0), 0);
	/* The sends in order; nobody has said where the write ends among them. */
	for (i = 0; i < 2 + 1 && await(t, a.tx_cq, &entry, NULL); i++) {
		if (entry.op_context == CONTEXT(7)) {
			expect(t, entry.flags, WRITTEN);
			written++;
		} else {
			expect_true(t, entry.op_context == CONTEXT(i - written));
			expect(t, entry.flags, SENT);
		}
	}
	expect(t, written, 1);
	for (i = 0; i < 2; i++)
		expect_completion(t, b.rx_cq, CONTEXT(9), RECEIVED, 8);
	expect(t, to[0], 2);
	expect(t, target[0], 1);

	/* Until the queue is full. */
	for (i = 0; i < ROOM - 1; i++)
		expect(t, send_more(&a, from[i], i, KFI_MORE), 0);
	expect_nothing(t, b.rx_cq);
	expect(t, send_more(&a, from[i], i, KFI_MORE), 0);
	for (i = 0; i < ROOM; i++) {
		expect_completion(t, a.tx_cq, CONTEXT(i), SENT, 8);
		expect_completion(t, b.rx_cq, CONTEXT(9), RECEIVED, 8);
	}
	expect(t, to[0], ROOM);

	/* Cancelled, and the others are still held back. */
	expect(t, send_more(&a, from[0], 0, KFI_MORE), 0);
	expect(t, send_more(&a, from[1], 1, KFI_MORE), 0);
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(0)), 0);
	expect_failure(t, a.tx_cq, CONTEXT(0), SENT, KFI_ECANCELED, 0, 0);
	expect_nothing(t, b.rx_cq);
	/* An injected one, whose buffer is free at once, lets it go. */
	expect(t, kfi_inject(a.ep, from[2], 8, a.peer), 0);
	memset(from[2], 0, 8);
	expect_completion(t, a.tx_cq, CONTEXT(1), SENT, 8);
	for (i = 0; i < 2; i++)
		expect_completion(t, b.rx_cq, CONTEXT(9), RECEIVED, 8);
	expect(t, to[0], 3);

	/* Discarded. */
	expect(t, send_more(&a, from[0], 0, KFI_MORE), 0);
	close_fid(t, &a.ep->fid);
	a.ep = NULL;
	expect_nothing(t, a.tx_cq);
	expect_nothing(t, b.rx_cq);
	close_fid(t, &mr->fid);
close:
	pair_close(t, &a, &b);
}

/* An operation held back does not wait for others that cannot be posted, whatever the reason. */
static void more_and_crowded(struct test *t)
{
	const struct setup narrow = { .tx_cq_size = 1 };
	u8 from[4][8] = {}, to[8] = {};
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, &narrow, NULL))
		return;
	for (i = 0; i < ARRAY_SIZE(from); i++) {
		memset(from[i], i + 1, 8);
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(9)), 0);
	}
	expect(t, send_more(&a, from[0], 0, 0), 0);
	expect_completion(t, b.rx_cq, CONTEXT(9), RECEIVED, 8);
	expect_count(t, a.cntr[COUNT_SEND], 1, 0);
	expect(t, send_more(&a, from[1], 1, KFI_MORE), 0);
	expect(t, send_more(&a, from[2], 2, KFI_MORE), 0);
	/* Of one entry, another lies behind it. */
	expect(t, kfi_cancel(&a.ep->fid, CONTEXT(1)), 0);
	expect_nothing(t, b.rx_cq);
	expect(t, send_more(&a, from[3], 3, 0), -KFI_EAGAIN);
	expect_completion(t, b.rx_cq, CONTEXT(9), RECEIVED, 8);
	expect(t, to[0], 3);
	expect_completion(t, a.tx_cq, CONTEXT(0), SENT, 8);
	expect_failure(t, a.tx_cq, CONTEXT(1), SENT, KFI_ECANCELED, 0, 0);
	expect_completion(t, a.tx_cq, CONTEXT(2), SENT, 8);
	expect_nothing(t, a.tx_cq);
	pair_close(t, &a, &b);
}

/*
 * Nothing is held back where endpoints share the depth: what one of them holds
 * back, the others cannot let go.
 */
static void more_and_shared(struct test *t)
{
	struct kfi_tx_attr attr = *nic_info[0]->tx_attr;
	struct setup sharing = {};
	u8 from[8] = {}, to[8] = {};
	struct end a, b;
	unsigned int i;

	attr.size = 4;
	if (!expect(t, kfi_stx_context(nic_domain[0], &attr, &sharing.stx, NULL), 0))
		return;
	if (!pair_open(t, &a, &b, &sharing, NULL))
		goto close;
	for (i = 0; i < 3; i++) {
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(9)), 0);
		expect(t, send_more(&a, from, i, KFI_MORE), 0);
		expect_completion(t, a.tx_cq, CONTEXT(i), SENT, 8);
		expect_completion(t, b.rx_cq, CONTEXT(9), RECEIVED, 8);
	}
	pair_close(t, &a, &b);
close:
	close_fid(t, &sharing.stx->fid);
}

const struct test_case endpoint_tests[] = {
	{ "endpoint/shared-receive", "", shared_receive },
	{ "endpoint/shared-transmit", "", shared_transmit },
	{ "endpoint/aliases", "R-TRIG-3", aliases },
	{ "endpoint/names", "", names },
	{ "endpoint/rename-scalable", "", rename_scalable },
	{ "endpoint/options", "", options },
	{ "endpoint/keys", "", keys },
	{ "endpoint/port-of-each-key", "", port_of_each_key },
	{ "endpoint/capabilities", "", capabilities },
	{ "endpoint/all-ports", "", all_ports },
	{ "transmit/more", "", more },
	{ "transmit/more-and-crowded", "", more_and_crowded },
	{ "transmit/more-and-shared", "", more_and_shared },
	{}
};
