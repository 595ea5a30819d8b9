// SPDX-License-Identifier: GPL-2.0
/*
 * A provider that takes everything that it is handed for what it should be: it finds its own
 * structures around it, as drivers do. Where that is wrong it says so, as a real one could not.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_enosys.h>
#include <kfi_prov.h>
#include <kfi_trigger.h>

#define TRUST_MAGIC	0x6b66695f74727573ULL

/* Any object: what its head is depends on the class. */
struct trust_object {
	u64 magic;
	size_t fclass;
	struct trust_object *parent;
	atomic64_t value;
	union {
		struct kfid fid;
		struct kfid_fabric fabric;
		struct kfid_domain domain;
		struct kfid_cntr cntr;
		struct kfid_wait wait;
		struct kfid_poll poll;
		struct kfid_ep ep;
		struct kfid_mr mr;
		struct kfid_eq eq;
	};
	/* Of an event queue: a request for a connection. */
	struct kfi_eq_cm_entry entry;
};

#define trust_of(head) container_of(head, struct trust_object, fid)

/* Complains unless an object is of its class and a descendant of the other one. */
static bool trust_check(struct kfid *fid, size_t fclass, struct trust_object *ancestor)
{
	struct trust_object *object = trust_of(fid);

	if (WARN_ON(object->magic != TRUST_MAGIC || object->fclass != fclass))
		return false;
	if (!ancestor)
		return true;
	while (object && object != ancestor)
		object = object->parent;
	return !WARN_ON(!object);
}

/* Likewise of the endpoint or context of a deferred transfer or a post. */
static void trust_sender(struct kfid_ep *ep, struct trust_object *ancestor)
{
	bool is_context = ep && trust_of(&ep->fid)->fclass == KFI_CLASS_TX_CTX;

	if (!WARN_ON(!ep))
		trust_check(&ep->fid, is_context ? KFI_CLASS_TX_CTX : KFI_CLASS_EP, ancestor);
}

static int trust_close(struct kfid *fid)
{
	struct trust_object *this = trust_of(fid);

	/* Of a request that nobody has read. */
	kfi_freeinfo(this->entry.info);
	kfree(this);
	return 0;
}

static size_t trust_elements(const struct kfi_ioc *iov, size_t count)
{
	size_t sum = 0;

	while (count--)
		sum += iov[count].count;
	return sum;
}

/* It goes by the targets, where a call has an array of these, and else by the operands. */
static ssize_t trust_atomic(size_t elements, const struct kfi_ioc *iov, size_t count)
{
	WARN_ON(trust_elements(iov, count) != elements);
	return -KFI_ENOSPC;
}

static size_t trust_targets(const struct kfi_msg_atomic *msg)
{
	size_t sum = 0, i;

	for (i = 0; i < msg->rma_iov_count; i++)
		sum += msg->rma_iov[i].count;
	if (msg->op != KFI_ATOMIC_READ)
		trust_atomic(sum, msg->msg_iov, msg->iov_count);
	return sum;
}

/* The ranges of a deferred atomic operation are taken for as long as each other. */
static void trust_deferred(const struct kfi_deferred_work *work)
{
	const struct kfi_op_compare_atomic *compare = work->op.compare_atomic;
	const struct kfi_op_fetch_atomic *fetch = work->op.fetch_atomic;

	if (work->op_type == KFI_OP_FETCH_ATOMIC && fetch)
		trust_atomic(trust_targets(&fetch->msg), fetch->fetch.msg_iov,
			     fetch->fetch.iov_count);
	if (work->op_type == KFI_OP_COMPARE_ATOMIC && compare) {
		size_t elements = trust_targets(&compare->msg);

		trust_atomic(elements, compare->fetch.msg_iov, compare->fetch.iov_count);
		trust_atomic(elements, compare->compare.msg_iov, compare->compare.iov_count);
	}
}

static int trust_control(struct kfid *fid, int command, void *arg)
{
	struct trust_object *this = trust_of(fid);
	struct kfi_deferred_work *work = arg;

	if (this->fclass != KFI_CLASS_DOMAIN)
		return -KFI_ENOSYS;
	switch (command) {
	case KFI_QUEUE_WORK:
		if (!work || !work->triggering_cntr)
			return -KFI_EINVAL;
		trust_check(&work->triggering_cntr->fid, KFI_CLASS_CNTR, this);
		if (work->completion_cntr)
			trust_check(&work->completion_cntr->fid, KFI_CLASS_CNTR, this);
		if (work->op_type == KFI_OP_CNTR_ADD && work->op.cntr && work->op.cntr->cntr)
			trust_check(&work->op.cntr->cntr->fid, KFI_CLASS_CNTR, this);
		if (work->op_type == KFI_OP_SEND && work->op.msg)
			trust_sender(work->op.msg->ep, this);
		trust_deferred(work);
		return -KFI_ENOSPC;
	case KFI_CANCEL_WORK:
		if (!work)
			return -KFI_EINVAL;
		/* It should not look there; who does has to find a request of this domain. */
		if (work->triggering_cntr)
			trust_check(&work->triggering_cntr->fid, KFI_CLASS_CNTR, this);
		return -KFI_ENOENT;
	case KFI_FLUSH_WORK:
		if (arg)
			trust_check(arg, KFI_CLASS_CNTR, this);
		return 0;
	default:
		return -KFI_ENOSYS;
	}
}

static struct kfi_ops trust_fid_ops = {
	.size = sizeof(trust_fid_ops),
	.close = trust_close,
	.bind = kfi_no_bind,
	.control = trust_control,
	.ops_open = kfi_no_ops_open,
};

static struct trust_object *trust_new(size_t fclass, struct trust_object *parent, void *context)
{
	struct trust_object *object = kzalloc_obj(*object);

	if (object) {
		object->magic = TRUST_MAGIC;
		object->fclass = fclass;
		object->parent = parent;
		object->fid.fclass = fclass;
		object->fid.context = context;
		object->fid.ops = &trust_fid_ops;
	}
	return object;
}

static uint64_t trust_cntr_read(struct kfid_cntr *cntr)
{
	return atomic64_read(&trust_of(&cntr->fid)->value);
}

static int trust_cntr_add(struct kfid_cntr *cntr, uint64_t value)
{
	atomic64_add(value, &trust_of(&cntr->fid)->value);
	return 0;
}

static struct kfi_ops_cntr trust_cntr_ops = {
	.size = sizeof(trust_cntr_ops),
	.read = trust_cntr_read,
	.readerr = kfi_no_cntr_readerr,
	.add = trust_cntr_add,
	.set = kfi_no_cntr_set,
	.wait = kfi_no_cntr_wait,
	.adderr = kfi_no_cntr_adderr,
	.seterr = kfi_no_cntr_seterr,
};

static int trust_cntr_open(struct kfid_domain *domain, struct kfi_cntr_attr *attr,
			   struct kfid_cntr **cntr, void *context)
{
	struct trust_object *this = trust_of(&domain->fid);
	struct trust_object *object;

	if (attr && attr->wait_set)
		trust_check(&attr->wait_set->kfid, KFI_CLASS_WAIT, this->parent);
	object = trust_new(KFI_CLASS_CNTR, this, context);
	if (!object)
		return -KFI_ENOMEM;
	object->cntr.ops = &trust_cntr_ops;
	*cntr = &object->cntr;
	return 0;
}

static int trust_member(struct kfid_poll *set, struct kfid *member, uint64_t flags)
{
	trust_check(member, KFI_CLASS_CNTR, trust_of(&set->fid)->parent);
	return 0;
}

static struct kfi_ops_poll trust_poll_ops = {
	.size = sizeof(trust_poll_ops),
	.poll = kfi_no_poll,
	.poll_add = trust_member,
	.poll_del = trust_member,
};

static int trust_poll_open(struct kfid_domain *domain, struct kfi_poll_attr *attr,
			   struct kfid_poll **set)
{
	struct trust_object *object = trust_new(KFI_CLASS_POLL, trust_of(&domain->fid), NULL);

	if (!object)
		return -KFI_ENOMEM;
	object->poll.ops = &trust_poll_ops;
	*set = &object->poll;
	return 0;
}

/* A descriptor is the head of its region. */
static ssize_t trust_send(struct kfid_ep *ep, const void *buf, size_t len, void *desc,
			  kfi_addr_t dest_addr, void *context)
{
	if (desc)
		trust_check(desc, KFI_CLASS_MR, trust_of(&ep->fid)->parent);
	return -KFI_ENOSPC;
}

static ssize_t trust_sendmsg(struct kfid_ep *ep, const struct kfi_msg *msg, uint64_t flags)
{
	void *desc = msg->desc && msg->iov_count ? msg->desc[0] : NULL;

	return trust_send(ep, NULL, 0, desc, msg->addr, msg->context);
}

static struct kfi_ops_msg trust_msg_ops = {
	.size = sizeof(trust_msg_ops),
	.recv = kfi_no_msg_recv,
	.recvv = kfi_no_msg_recvv,
	.recvbv = kfi_no_msg_recvbv,
	.recvmsg = kfi_no_msg_recvmsg,
	.send = trust_send,
	.sendv = kfi_no_msg_sendv,
	.sendbv = kfi_no_msg_sendbv,
	.sendmsg = trust_sendmsg,
	.inject = kfi_no_msg_inject,
	.senddata = kfi_no_msg_senddata,
	.injectdata = kfi_no_msg_injectdata,
	.recvsgl = kfi_no_msg_recvsgl,
	.sendsgl = kfi_no_msg_sendsgl,
};

static ssize_t trust_writemsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
			      uint64_t flags)
{
	trust_targets(msg);
	return -KFI_ENOSPC;
}

static ssize_t trust_readwritev(struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc,
				size_t count, struct kfi_ioc *resultv, void **result_desc,
				size_t result_count, kfi_addr_t dest_addr, uint64_t addr,
				uint64_t key, enum kfi_datatype datatype, enum kfi_op op,
				void *context)
{
	if (op == KFI_ATOMIC_READ)
		return -KFI_ENOSPC;
	return trust_atomic(trust_elements(iov, count), resultv, result_count);
}

static ssize_t trust_readwritemsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
				  struct kfi_ioc *resultv, void **result_desc,
				  size_t result_count, uint64_t flags)
{
	return trust_atomic(trust_targets(msg), resultv, result_count);
}

static ssize_t trust_compwritev(struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc,
				size_t count, const struct kfi_ioc *comparev,
				void **compare_desc, size_t compare_count,
				struct kfi_ioc *resultv, void **result_desc,
				size_t result_count, kfi_addr_t dest_addr, uint64_t addr,
				uint64_t key, enum kfi_datatype datatype, enum kfi_op op,
				void *context)
{
	size_t elements = trust_elements(iov, count);

	trust_atomic(elements, comparev, compare_count);
	return trust_atomic(elements, resultv, result_count);
}

static ssize_t trust_compwritemsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
				  const struct kfi_ioc *comparev, void **compare_desc,
				  size_t compare_count, struct kfi_ioc *resultv,
				  void **result_desc, size_t result_count, uint64_t flags)
{
	size_t elements = trust_targets(msg);

	trust_atomic(elements, comparev, compare_count);
	return trust_atomic(elements, resultv, result_count);
}

static struct kfi_ops_atomic trust_atomic_ops = {
	.size = sizeof(trust_atomic_ops),
	.write = kfi_no_atomic_write,
	.writev = kfi_no_atomic_writev,
	.writemsg = trust_writemsg,
	.inject = kfi_no_atomic_inject,
	.readwrite = kfi_no_atomic_readwrite,
	.readwritev = trust_readwritev,
	.readwritemsg = trust_readwritemsg,
	.compwrite = kfi_no_atomic_compwrite,
	.compwritev = trust_compwritev,
	.compwritemsg = trust_compwritemsg,
	.writevalid = kfi_no_atomic_writevalid,
	.readwritevalid = kfi_no_atomic_readwritevalid,
	.compwritevalid = kfi_no_atomic_compwritevalid,
};

/* Contexts have no functions for endpoints. */
static struct trust_object *trust_new_ep(size_t fclass, struct trust_object *parent, void *context)
{
	struct trust_object *object = trust_new(fclass, parent, context);

	if (object) {
		object->ep.msg = &trust_msg_ops;
		object->ep.atomic = &trust_atomic_ops;
	}
	return object;
}

static int trust_tx_ctx(struct kfid_ep *sep, int index, struct kfi_tx_attr *attr,
			struct kfid_ep **tx_ep, void *context)
{
	struct trust_object *this = trust_of(&sep->fid);
	struct trust_object *object;

	trust_check(&sep->fid, KFI_CLASS_SEP, NULL);
	object = trust_new_ep(KFI_CLASS_TX_CTX, this, context);
	if (!object)
		return -KFI_ENOMEM;
	*tx_ep = &object->ep;
	return 0;
}

static int trust_rx_ctx(struct kfid_ep *sep, int index, struct kfi_rx_attr *attr,
			struct kfid_ep **rx_ep, void *context)
{
	struct trust_object *this = trust_of(&sep->fid);
	struct trust_object *object;

	trust_check(&sep->fid, KFI_CLASS_SEP, NULL);
	object = trust_new_ep(KFI_CLASS_RX_CTX, this, context);
	if (!object)
		return -KFI_ENOMEM;
	*rx_ep = &object->ep;
	return 0;
}

static struct kfi_ops_ep trust_ep_ops = {
	.size = sizeof(trust_ep_ops),
	.cancel = kfi_no_cancel,
	.getopt = kfi_no_getopt,
	.setopt = kfi_no_setopt,
	.tx_ctx = trust_tx_ctx,
	.rx_ctx = trust_rx_ctx,
};

static int trust_open_ep(size_t fclass, struct kfid_domain *domain, struct kfid_ep **ep,
			 void *context)
{
	struct trust_object *object = trust_new_ep(fclass, trust_of(&domain->fid), context);

	if (!object)
		return -KFI_ENOMEM;
	object->ep.ops = &trust_ep_ops;
	*ep = &object->ep;
	return 0;
}

static int trust_endpoint(struct kfid_domain *domain, struct kfi_info *info, struct kfid_ep **ep,
			  void *context)
{
	return trust_open_ep(KFI_CLASS_EP, domain, ep, context);
}

static int trust_scalable_ep(struct kfid_domain *domain, struct kfi_info *info,
			     struct kfid_ep **sep, void *context)
{
	return trust_open_ep(KFI_CLASS_SEP, domain, sep, context);
}

static struct kfi_ops_domain trust_domain_ops = {
	.size = sizeof(trust_domain_ops),
	.av_open = kfi_no_av_open,
	.cq_open = kfi_no_cq_open,
	.endpoint = trust_endpoint,
	.scalable_ep = trust_scalable_ep,
	.cntr_open = trust_cntr_open,
	.poll_open = trust_poll_open,
	.stx_ctx = kfi_no_stx_ctx,
	.srx_ctx = kfi_no_srx_ctx,
	.query_atomic = kfi_no_query_atomic,
};

static int trust_mr_reg(struct kfid *fid, const void *buf, size_t len, uint64_t access,
			uint64_t offset, uint64_t requested_key, uint64_t flags,
			struct kfid_mr **mr, void *context)
{
	struct trust_object *object = trust_new(KFI_CLASS_MR, trust_of(fid), context);

	if (!object)
		return -KFI_ENOMEM;
	object->mr.mem_desc = &object->fid;
	*mr = &object->mr;
	return 0;
}

static struct kfi_ops_mr trust_mr_ops = {
	.size = sizeof(trust_mr_ops),
	.reg = trust_mr_reg,
	.regv = kfi_no_mr_regv,
	.regbv = kfi_no_mr_regbv,
	.regattr = kfi_no_mr_regattr,
	.regsgl = kfi_no_mr_regsgl,
};

static int trust_domain(struct kfid_fabric *fabric, struct kfi_info *info,
			struct kfid_domain **domain, void *context)
{
	struct trust_object *this = trust_of(&fabric->fid);
	struct trust_object *object;

	if (info->domain_attr && info->domain_attr->domain)
		trust_check(&info->domain_attr->domain->fid, KFI_CLASS_DOMAIN, this);
	object = trust_new(KFI_CLASS_DOMAIN, this, context);
	if (!object)
		return -KFI_ENOMEM;
	object->domain.ops = &trust_domain_ops;
	object->domain.mr = &trust_mr_ops;
	*domain = &object->domain;
	return 0;
}

static int trust_wait(struct kfid_wait *set, int timeout)
{
	return -KFI_ETIMEDOUT;
}

static struct kfi_ops_wait trust_wait_ops = {
	.size = sizeof(trust_wait_ops),
	.wait = trust_wait,
};

static int trust_wait_open(struct kfid_fabric *fabric, struct kfi_wait_attr *attr,
			   struct kfid_wait **set)
{
	struct trust_object *object = trust_new(KFI_CLASS_WAIT, trust_of(&fabric->fid), NULL);

	if (!object)
		return -KFI_ENOMEM;
	object->wait.ops = &trust_wait_ops;
	*set = &object->wait;
	return 0;
}

/* There is a request for a connection always, which its reader owns. */
static ssize_t trust_eq_read(struct kfid_eq *eq, uint32_t *event, void *buf, size_t len,
			     uint64_t flags)
{
	struct trust_object *this = trust_of(&eq->fid);

	if (len < sizeof(this->entry))
		return -KFI_ETOOSMALL;
	if (!this->entry.info) {
		this->entry.fid = &eq->fid;
		this->entry.info = kfi_allocinfo();
	}
	if (!this->entry.info)
		return -KFI_ENOMEM;
	*event = KFI_CONNREQ;
	memcpy(buf, &this->entry, sizeof(this->entry));
	if (!(flags & KFI_PEEK))
		this->entry.info = NULL;
	return sizeof(this->entry);
}

/* A reader of a request that somebody else has made would free the info that it names. */
static ssize_t trust_eq_write(struct kfid_eq *eq, uint32_t event, const void *buf, size_t len,
			      uint64_t flags)
{
	WARN_ON(event == KFI_CONNREQ);
	return -KFI_EAGAIN;
}

static struct kfi_ops_eq trust_eq_ops = {
	.size = sizeof(trust_eq_ops),
	.read = trust_eq_read,
	.readerr = kfi_no_eq_readerr,
	.write = trust_eq_write,
	.sread = kfi_no_eq_sread,
	.strerror = kfi_no_eq_strerror,
};

static int trust_eq_open(struct kfid_fabric *fabric, struct kfi_eq_attr *attr, struct kfid_eq **eq,
			 kfi_event_handler event_handler, void *context)
{
	struct trust_object *object = trust_new(KFI_CLASS_EQ, trust_of(&fabric->fid), context);

	if (!object)
		return -KFI_ENOMEM;
	object->eq.ops = &trust_eq_ops;
	*eq = &object->eq;
	return 0;
}

static int trust_trywait(struct kfid_fabric *fabric, struct kfid **fids, int count)
{
	int i;

	for (i = 0; i < count; i++)
		trust_check(fids[i], fids[i]->fclass, trust_of(&fabric->fid));
	return 0;
}

static struct kfi_ops_fabric trust_fabric_ops = {
	.size = sizeof(trust_fabric_ops),
	.domain = trust_domain,
	.passive_ep = kfi_no_passive_ep,
	.eq_open = trust_eq_open,
	.wait_open = trust_wait_open,
	.trywait = trust_trywait,
};

static int trust_fabric(struct kfi_fabric_attr *attr, struct kfid_fabric **fabric, void *context)
{
	struct trust_object *object = trust_new(KFI_CLASS_FABRIC, NULL, context);

	if (!object)
		return -KFI_ENOMEM;
	object->fabric.ops = &trust_fabric_ops;
	object->fabric.api_version = attr->api_version;
	*fabric = &object->fabric;
	return 0;
}

static int trust_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			 struct kfi_info *hints, struct kfi_info **info)
{
	if (hints && hints->fabric_attr && hints->fabric_attr->fabric)
		trust_check(&hints->fabric_attr->fabric->fid, KFI_CLASS_FABRIC, NULL);
	if (hints && hints->domain_attr && hints->domain_attr->domain)
		trust_check(&hints->domain_attr->domain->fid, KFI_CLASS_DOMAIN, NULL);
	/* Only for those who ask for it by its name. */
	if (!hints || !hints->fabric_attr || !hints->fabric_attr->prov_name)
		return -KFI_ENODATA;
	*info = kfi_allocinfo();
	if (!*info)
		return -KFI_ENOMEM;
	/* It demands all that whoever asks can give. */
	(*info)->mode = hints->mode;
	if (hints->domain_attr)
		(*info)->domain_attr->mr_mode = hints->domain_attr->mr_mode;
	(*info)->fabric_attr->name = kstrdup("trusting", GFP_KERNEL);
	(*info)->domain_attr->name = kstrdup("trusting0", GFP_KERNEL);
	if ((*info)->fabric_attr->name && (*info)->domain_attr->name)
		return 0;
	kfi_freeinfo(*info);
	return -KFI_ENOMEM;
}

static struct kfi_provider trust_provider = {
	.name = "kfi_mock_trusting",
	.version = KFI_VERSION(1, 0),
	.kfi_version = KFI_VERSION(1, 7),
	.kgetinfo = trust_getinfo,
	.kfabric = trust_fabric,
};

static int __init kfi_mock_trusting_init(void)
{
	return kfi_provider_register(&trust_provider);
}
module_init(kfi_mock_trusting_init);

static void __exit kfi_mock_trusting_exit(void)
{
	kfi_provider_deregister(&trust_provider);
}
module_exit(kfi_mock_trusting_exit);

MODULE_DESCRIPTION("A provider of kfabric that trusts its consumers");
MODULE_LICENSE("GPL");
