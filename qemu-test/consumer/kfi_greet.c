// SPDX-License-Identifier: GPL-2.0
/*
 * A consumer between machines: each sends the other one a greeting.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <kfabric.h>
#include <kfi_domain.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>

static char *local = "10.0.3.1";
module_param(local, charp, 0444);
MODULE_PARM_DESC(local, "IPv4 address of the NIC of this machine");

static char *peer = "10.0.3.2";
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IPv4 address of the NIC of the other one");

/* The port of both endpoints, a number from 1 to 4095. */
#define PORT "7"

/* How long the other machine may take to get ready. */
#define PATIENCE (60 * HZ)

/* Memory that operations use, until they have completed. */
struct greeting {
	char out[64];
	char in[64];
};

/* Asks what the NIC with our address offers. */
static struct kfi_info *ask(void)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;
	int ret;

	if (!hints)
		return ERR_PTR(-ENOMEM);
	hints->caps = KFI_MSG | KFI_REMOTE_COMM;
	ret = kfi_getinfo(KFI_VERSION(1, 7), local, PORT, KFI_SOURCE, hints, &info);
	kfi_freeinfo(hints);
	return ret ? ERR_PTR(ret) : info;
}

/* Receives a greeting, and sends one until the peer has taken it. */
static int greet(struct kfid_ep *ep, struct kfid_cq *cq, kfi_addr_t to, struct greeting *g)
{
	bool posted = false, sent = false, received = false;
	unsigned long end = jiffies + PATIENCE;
	int ret;

	ret = kfi_recv(ep, g->in, sizeof(g->in), NULL, KFI_ADDR_UNSPEC, g->in);
	if (ret)
		return ret;
	while (!sent || !received) {
		struct kfi_cq_err_entry error = {};
		struct kfi_cq_entry entry;

		if (!posted) {
			ret = kfi_send(ep, g->out, sizeof(g->out), NULL, to, g->out);
			if (ret && ret != -KFI_EAGAIN)
				return ret;
			posted = !ret;
		}
		ret = kfi_cq_sread(cq, &entry, 1, NULL, 1000);
		if (ret == 1) {
			sent |= entry.op_context == g->out;
			received |= entry.op_context == g->in;
		} else if (ret == -KFI_EAVAIL) {
			ret = kfi_cq_readerr(cq, &error, 0);
			if (ret != 1)
				return ret;
			if (error.op_context != g->out || error.err != KFI_EHOSTUNREACH)
				return -error.err;
			/* Nobody is at that port, yet. */
			posted = false;
			msleep(100);
		} else if (ret != -KFI_ETIMEDOUT) {
			return ret;
		}
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
	}
	return 0;
}

/* Opens an endpoint, with what belongs to it, and gets to know the peer. */
static int meet(struct kfid_domain *domain, struct kfi_info *info, struct greeting *g)
{
	struct kfi_cq_attr cq_attr = {
		.format = KFI_CQ_FORMAT_CONTEXT,
		.wait_obj = KFI_WAIT_UNSPEC,
	};
	struct kfi_av_attr av_attr = { .type = KFI_AV_TABLE };
	struct kfid_ep *ep;
	struct kfid_av *av;
	struct kfid_cq *cq;
	kfi_addr_t to;
	int ret;

	ret = kfi_av_open(domain, &av_attr, &av, NULL);
	if (ret)
		return ret;
	ret = kfi_cq_open(domain, &cq_attr, &cq, NULL, NULL);
	if (ret)
		goto close_av;
	ret = kfi_endpoint(domain, info, &ep, NULL);
	if (ret)
		goto close_cq;
	ret = kfi_ep_bind(ep, &av->fid, 0);
	if (!ret)
		ret = kfi_ep_bind(ep, &cq->fid, KFI_TRANSMIT | KFI_RECV);
	if (!ret)
		ret = kfi_enable(ep);
	/* Nothing is sent by that, so the peer need not be there. */
	if (!ret && kfi_av_insertsvc(av, peer, PORT, &to, 0, NULL) != 1)
		ret = -KFI_EINVAL;
	if (!ret)
		ret = greet(ep, cq, to, g);

	/* From then on nothing of *g is in use. */
	kfi_close(&ep->fid);
close_cq:
	kfi_close(&cq->fid);
close_av:
	kfi_close(&av->fid);
	return ret;
}

static int __init kfi_greet_init(void)
{
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_info *info;
	struct greeting *g;
	int ret;

	info = ask();
	if (IS_ERR(info))
		return PTR_ERR(info);
	ret = -ENOMEM;
	g = kzalloc_obj(*g);
	if (!g)
		goto free_info;
	snprintf(g->out, sizeof(g->out), "hello from %s", local);
	ret = kfi_fabric(info->fabric_attr, &fabric, NULL);
	if (ret)
		goto free_greeting;
	ret = kfi_domain(fabric, info, &domain, NULL);
	if (ret)
		goto close_fabric;

	ret = meet(domain, info, g);
	if (!ret)
		pr_info("%s: %.*s\n", local, (int)sizeof(g->in), g->in);

	kfi_close(&domain->fid);
close_fabric:
	kfi_close(&fabric->fid);
free_greeting:
	kfree(g);
free_info:
	kfi_freeinfo(info);
	return ret;
}
module_init(kfi_greet_init);

static void __exit kfi_greet_exit(void)
{
}
module_exit(kfi_greet_exit);

MODULE_DESCRIPTION("A consumer of kfabric between machines");
MODULE_LICENSE("GPL");
