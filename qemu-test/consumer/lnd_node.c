// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes: what is opened once for all contexts, in the order in which it is
 * usually done, and how peers get to know each other.
 */
#include <linux/slab.h>

#include "lnd.h"

/* Asks for all that is needed of one NIC, and for a port of it. */
static struct kfi_info *ask(const char *device, u16 port, struct lnd_node *other)
{
	struct kfi_info *hints = kfi_allocinfo(), *info = NULL;
	u8 key[4] = { 0, 0, 0, 255 };
	char service[8];
	int ret;

	if (!hints)
		return ERR_PTR(-ENOMEM);
	snprintf(service, sizeof(service), "%u", port);
	hints->caps = KFI_MSG | KFI_RMA | KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE |
		      KFI_REMOTE_READ | KFI_REMOTE_WRITE | KFI_MULTI_RECV | KFI_REMOTE_COMM |
		      KFI_NAMED_RX_CTX | KFI_TAGGED | KFI_TAGGED_RMA | KFI_DIRECTED_RECV;
	hints->fabric_attr->prov_version = KFI_VERSION(1, 0);
	hints->domain_attr->resource_mgmt = KFI_RM_DISABLED;
	hints->domain_attr->mr_iov_limit = PAGES;
	hints->domain_attr->mr_key_size = 4;
	hints->ep_attr->max_msg_size = PAGES * PAGE_SIZE;
	hints->ep_attr->auth_key = key;
	hints->ep_attr->auth_key_size = sizeof(key);
	hints->rx_attr->op_flags = KFI_COMPLETION | KFI_MULTI_RECV;
	hints->rx_attr->iov_limit = PAGES;
	hints->tx_attr->op_flags = KFI_COMPLETION;
	hints->tx_attr->iov_limit = PAGES;
	hints->tx_attr->rma_iov_limit = PAGES;
	/* The fabric that is open already, if there is one. */
	if (other)
		hints->fabric_attr->fabric = other->fabric;
	ret = kfi_getinfo(0, device, service, KFI_SOURCE, hints, &info);
	/* The key is not the hints' to be freed. */
	hints->ep_attr->auth_key = NULL;
	hints->ep_attr->auth_key_size = 0;
	kfi_freeinfo(hints);
	return ret ? ERR_PTR(ret) : info;
}

/* The device to map memory for. */
static int get_device(struct lnd_node *node)
{
	struct kfi_cxi_domain_ops *ops = NULL;
	int ret;

	ret = kfi_open_ops(&node->domain->fid, KFI_CXI_DOM_OPS_1, 0, (void **)&ops, NULL);
	if (ret)
		return ret;
	ret = ops->get_device(&node->domain->fid, &node->device);
	return ret ?: node->device ? 0 : -ENODEV;
}

static int open_all(struct lnd_node *node, struct kfi_info *info, struct lnd_node *other)
{
	struct kfi_av_attr attr = {
		.type = KFI_AV_UNSPEC,
		.rx_ctx_bits = RX_CTX_BITS,
	};
	unsigned int i;
	int ret;

	if (!info->src_addr || info->src_addrlen != sizeof(node->address))
		return -EADDRNOTAVAIL;
	memcpy(&node->address, info->src_addr, sizeof(node->address));
	if (other)
		node->fabric = other->fabric;
	else
		ret = kfi_fabric(info->fabric_attr, &node->fabric, node);
	ret = other ? 0 : ret;
	if (ret)
		return ret;
	ret = kfi_domain(node->fabric, info, &node->domain, node);
	if (ret)
		return ret;
	ret = get_device(node);
	if (ret)
		return ret;
	ret = kfi_av_open(node->domain, &attr, &node->av, node);
	if (ret)
		return ret;
	ret = kfi_scalable_ep(node->domain, info, &node->sep, node);
	if (ret)
		return ret;
	ret = kfi_scalable_ep_bind(node->sep, &node->av->fid, 0);
	if (ret)
		return ret;
	ret = kfi_enable(node->sep);
	if (ret)
		return ret;
	for (i = 0; i < PAIRS; i++) {
		ret = lnd_end_open(&node->end[i], node, i);
		if (ret)
			return ret;
	}
	for (i = 0; i < PAIRS; i++) {
		ret = lnd_end_post(&node->end[i]);
		if (ret)
			return ret;
	}
	return 0;
}

int lnd_node_open(struct lnd_node *node, const char *device, u16 port)
{
	struct lnd_node *other = node == lnd_node ? NULL : lnd_node;
	struct kfi_info *info = ask(device, port, other);
	int ret;

	if (IS_ERR(info))
		return PTR_ERR(info);
	ret = open_all(node, info, other);
	kfi_freeinfo(info);
	return ret;
}

/* Gets to know all nodes, itself too, by nothing but their numbers. */
int lnd_node_meet(struct lnd_node *node)
{
	char name[16], service[8];
	unsigned int i;
	int ret;

	for (i = 0; i < NODES; i++) {
		snprintf(name, sizeof(name), "%#x", (unsigned int)lnd_node[i].address.nic);
		snprintf(service, sizeof(service), "%u", (unsigned int)lnd_node[i].address.pid);
		ret = kfi_av_insertsvc(node->av, name, service, &node->peer[i], 0, node);
		if (ret != 1)
			return ret < 0 ? ret : -EHOSTUNREACH;
	}
	return 0;
}

static void close_one(struct kfid *fid, const char *what)
{
	int ret = kfi_close(fid);

	if (ret)
		lnd_problem("closing the %s: %d", what, ret);
}

void lnd_node_close(struct lnd_node *node)
{
	unsigned int i;

	WRITE_ONCE(node->stopping, true);
	for (i = 0; i < PAIRS; i++)
		lnd_end_stop(&node->end[i]);
	for (i = 0; i < PAIRS; i++)
		lnd_end_close(&node->end[i]);
	if (node->sep)
		close_one(&node->sep->fid, "endpoint");
	if (node->av)
		close_one(&node->av->fid, "address vector");
	if (node->domain)
		close_one(&node->domain->fid, "domain");
	if (node->fabric && node == lnd_node)
		close_one(&node->fabric->fid, "fabric");
	memset(node, 0, sizeof(*node));
}
