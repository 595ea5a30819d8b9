/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: endpoints, contexts and message transfers.
 */

#ifndef _KFI_ENDPOINT_H_
#define _KFI_ENDPOINT_H_

#include <linux/container_of.h>

#include "kfabric.h"
#include "kfi_domain.h"

struct kvec;
struct bio_vec;
struct scatterlist;
struct kfi_ops_cm;
struct kfi_ops_rma;
struct kfi_ops_tagged;
struct kfi_ops_atomic;

/**
 * DOC: Endpoints
 *
 * An endpoint is opened inactive, bound to an address vector and to completion
 * queues and counters, and then enabled. A scalable endpoint has one address
 * and several transmit and receive contexts; each context is a struct kfid_ep
 * of its own that is bound and enabled by itself.
 *
 * Opening, binding, enabling, closing and the option calls run in process
 * context and may sleep. Attributes belong to the caller and are copied.
 * Wrappers do not test the ops table: a provider fills every slot.
 */

/**
 * DOC: Posting
 *
 * These rules hold for every data transfer: messages (here), RMA (kfi_rma.h),
 * tagged messages (kfi_tagged.h) and atomics (kfi_atomic.h).
 *
 * * Posting and cancelling never sleep and may be done in process, softirq and
 *   hard interrupt context.
 *
 * * Return value 0: the operation was accepted and completes exactly once (a
 *   receive with KFI_MULTI_RECV once for each message), by a completion queue
 *   entry, a counter update or both as the endpoint's bindings say. An entry
 *   carries the @context of the call as op_context. A success that nobody asked
 *   to be told of gives no entry (KFI_SELECTIVE_COMPLETION, inject calls).
 *
 * * An operation that transmits completes in bounded time after it has begun,
 *   unless the receiver leaves its completion queue full. A receive waits for
 *   its message and a triggered operation for its counter, without a limit.
 *
 * * -KFI_EAGAIN: a queue is full or memory is short. Nothing was queued; the
 *   same call may be repeated later. It is the only error of a call worth
 *   repeating, but for -KFI_ENOSPC with KFI_TRIGGER: the domain has as many
 *   triggered operations and deferred work pending as it may, so the call may
 *   be repeated when some of that has started or was cancelled. Whether the
 *   peer is there is no matter of the call: an operation that was accepted may
 *   fail, by an error entry, with KFI_EHOSTUNREACH, and be posted anew when the
 *   peer is.
 *
 * * -KFI_EOPBADSTATE: the endpoint is not enabled. -KFI_EINVAL, -KFI_EMSGSIZE:
 *   arguments beyond the limits of the endpoint's attributes. -KFI_EBADFLAGS:
 *   unknown flags. -KFI_EOPNOTSUPP: the endpoint lacks the capability.
 *   -KFI_ENOSYS: the provider lacks the operation.
 *
 * * Data buffers belong to the provider from acceptance until the completion;
 *   those of inject calls are free again on return.
 *
 * * The arrays of ranges, descriptors and remote ranges and the message
 *   structures belong to the caller and are free again on return, unless the
 *   endpoint's mode has KFI_ASYNC_IOV: then the arrays too must stay until the
 *   completion.
 *
 * * Memory is given as kernel virtual addresses (kmalloc or vmalloc; calls
 *   without suffix and with v), page ranges (bv) or a scatterlist (sgl).
 *   Lengths are in bytes, counts in entries, at most iov_limit of the transmit
 *   or receive attributes.
 *
 * * Descriptors come from kfi_mr_desc(). They are needed under KFI_MR_LOCAL,
 *   one for each range; else they may be NULL.
 *
 * * Calls with v, bv and sgl and the plain calls use the op_flags of the
 *   endpoint's attributes; the flags of the msg calls replace these.
 *
 * * With KFI_TRIGGER in effect, by flag or on a triggerable alias, the
 *   operation is deferred and @context points to a struct kfi_triggered_context
 *   (kfi_trigger.h).
 */

/**
 * struct kfi_msg - message for kfi_sendmsg() and kfi_recvmsg()
 * @type: which member of the union is valid
 * @msg_iov: KFI_KVEC: array of kernel virtual ranges
 * @msg_biov: KFI_BVEC: array of page ranges
 * @msg_sgl: KFI_SGL: scatterlist
 * @desc: array of local descriptors, one for each range, or NULL
 * @iov_count: entries of the array or scatterlist, 0 for an empty message
 * @addr: send: destination; receive: source to accept from (KFI_DIRECTED_RECV)
 *   or KFI_ADDR_UNSPEC
 * @context: caller's value, returned as op_context of the completion
 * @data: send with KFI_REMOTE_CQ_DATA: value delivered in the receiver's
 *   completion; else unused
 *
 * The structure and its arrays are the caller's and free again when the call
 * returns, see "Posting".
 */
struct kfi_msg {
	enum kfi_iov_type type;
	union {
		const struct kvec *msg_iov;
		const struct bio_vec *msg_biov;
		const struct scatterlist *msg_sgl;
	};
	void **desc;
	size_t iov_count;
	kfi_addr_t addr;
	void *context;
	uint64_t data;
};

/**
 * enum - levels of kfi_setopt() and kfi_getopt()
 * @KFI_OPT_ENDPOINT: options that every endpoint has
 */
enum {
	KFI_OPT_ENDPOINT,
};

/**
 * enum - options of level KFI_OPT_ENDPOINT
 * @KFI_OPT_MIN_MULTI_RECV: size_t, in bytes; a buffer posted with
 *   KFI_MULTI_RECV is released when less room than this is left in it. A
 *   message that is longer than what is left is cut off, with KFI_EMSGSIZE on
 *   both sides, so set it to the length of your longest message
 * @KFI_OPT_CM_DATA_SIZE: size_t, in bytes, read only; most data kfi_connect(),
 *   kfi_accept() and kfi_reject() can carry
 */
enum {
	KFI_OPT_MIN_MULTI_RECV,
	KFI_OPT_CM_DATA_SIZE,
};

/**
 * struct kfi_ops_ep - operations of every kind of endpoint and context
 * @size: sizeof(struct kfi_ops_ep) the provider was built with, in bytes
 * @cancel: cancel a posted operation, callable in any context; see kfi_cancel()
 * @getopt: read an endpoint option; see kfi_getopt()
 * @setopt: set an endpoint option; see kfi_setopt()
 * @tx_ctx: open a transmit context of a scalable endpoint; see kfi_tx_context()
 * @rx_ctx: open a receive context of a scalable endpoint; see kfi_rx_context()
 *
 * All but @cancel are called in process context and may sleep.
 */
struct kfi_ops_ep {
	size_t size;
	ssize_t (*cancel)(struct kfid *fid, void *context);
	int (*getopt)(struct kfid *fid, int level, int optname, void *optval,
		      size_t *optlen);
	int (*setopt)(struct kfid *fid, int level, int optname,
		      const void *optval, size_t optlen);
	int (*tx_ctx)(struct kfid_ep *sep, int index, struct kfi_tx_attr *attr,
		      struct kfid_ep **tx_ep, void *context);
	int (*rx_ctx)(struct kfid_ep *sep, int index, struct kfi_rx_attr *attr,
		      struct kfid_ep **rx_ep, void *context);
};

/**
 * struct kfi_ops_msg - message operations
 * @size: sizeof(struct kfi_ops_msg) the provider was built with, in bytes
 * @recv: post a receive buffer; see kfi_recv()
 * @recvv: post a receive into virtual ranges; see kfi_recvv()
 * @recvbv: post a receive into page ranges; see kfi_recvbv()
 * @recvmsg: post a receive with flags; see kfi_recvmsg()
 * @send: send a message; see kfi_send()
 * @sendv: send a message gathered from virtual ranges; see kfi_sendv()
 * @sendbv: send a message gathered from page ranges; see kfi_sendbv()
 * @sendmsg: send a message with flags; see kfi_sendmsg()
 * @inject: send a short message from a buffer that may be reused at once; see
 *   kfi_inject()
 * @senddata: send a message with remote completion data; see kfi_senddata()
 * @injectdata: kfi_inject() with remote completion data; see kfi_injectdata()
 * @recvsgl: post a receive into a scatterlist; see kfi_recvsgl()
 * @sendsgl: send a message gathered from a scatterlist; see kfi_sendsgl()
 *
 * All members are callable in any context and never sleep. Ownership of buffers
 * and arrays, and errors: see "Posting".
 */
struct kfi_ops_msg {
	size_t size;
	ssize_t (*recv)(struct kfid_ep *ep, void *buf, size_t len, void *desc,
			kfi_addr_t src_addr, void *context);
	ssize_t (*recvv)(struct kfid_ep *ep, const struct kvec *iov,
			 void **desc, size_t count, kfi_addr_t src_addr,
			 void *context);
	ssize_t (*recvbv)(struct kfid_ep *ep, const struct bio_vec *biov,
			  void **desc, size_t count, kfi_addr_t src_addr,
			  void *context);
	ssize_t (*recvmsg)(struct kfid_ep *ep, const struct kfi_msg *msg,
			   uint64_t flags);
	ssize_t (*send)(struct kfid_ep *ep, const void *buf, size_t len,
			void *desc, kfi_addr_t dest_addr, void *context);
	ssize_t (*sendv)(struct kfid_ep *ep, const struct kvec *iov,
			 void **desc, size_t count, kfi_addr_t dest_addr,
			 void *context);
	ssize_t (*sendbv)(struct kfid_ep *ep, const struct bio_vec *biov,
			  void **desc, size_t count, kfi_addr_t dest_addr,
			  void *context);
	ssize_t (*sendmsg)(struct kfid_ep *ep, const struct kfi_msg *msg,
			   uint64_t flags);
	ssize_t (*inject)(struct kfid_ep *ep, const void *buf, size_t len,
			  kfi_addr_t dest_addr);
	ssize_t (*senddata)(struct kfid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, kfi_addr_t dest_addr,
			    void *context);
	ssize_t (*injectdata)(struct kfid_ep *ep, const void *buf, size_t len,
			      uint64_t data, kfi_addr_t dest_addr);
	ssize_t (*recvsgl)(struct kfid_ep *ep, const struct scatterlist *sgl,
			   void **desc, size_t count, kfi_addr_t src_addr,
			   void *context);
	ssize_t (*sendsgl)(struct kfid_ep *ep, const struct scatterlist *sgl,
			   void **desc, size_t count, kfi_addr_t dest_addr,
			   void *context);
};

/**
 * struct kfid_ep - endpoint, scalable endpoint, transmit context or receive
 *   context
 * @fid: object head; fclass is KFI_CLASS_EP, KFI_CLASS_SEP, KFI_CLASS_TX_CTX,
 *   KFI_CLASS_RX_CTX or KFI_CLASS_SRX_CTX
 * @ops: operations of all kinds
 * @cm: addressing and connections (kfi_cm.h)
 * @msg: messages
 * @rma: remote memory access (kfi_rma.h)
 * @tagged: tagged messages (kfi_tagged.h)
 * @atomic: atomic operations (kfi_atomic.h)
 *
 * The pointers are constant while the object is open.
 */
struct kfid_ep {
	struct kfid fid;
	struct kfi_ops_ep *ops;
	struct kfi_ops_cm *cm;
	struct kfi_ops_msg *msg;
	struct kfi_ops_rma *rma;
	struct kfi_ops_tagged *tagged;
	struct kfi_ops_atomic *atomic;
};

/**
 * struct kfid_pep - passive endpoint, which listens for connections
 * @fid: object head; fclass is KFI_CLASS_PEP
 * @ops: operations of all kinds
 * @cm: addressing and connections (kfi_cm.h)
 *
 * The layout is that of the head of &struct kfid_ep: calls that take a bare fid
 * rely on it.
 */
struct kfid_pep {
	struct kfid fid;
	struct kfi_ops_ep *ops;
	struct kfi_ops_cm *cm;
};

/**
 * struct kfid_stx - shared transmit context
 * @fid: object head; fclass is KFI_CLASS_STX_CTX
 * @ops: operations of all kinds
 *
 * The layout is that of the head of &struct kfid_ep, as for &struct kfid_pep.
 */
struct kfid_stx {
	struct kfid fid;
	struct kfi_ops_ep *ops;
};

/**
 * kfi_passive_ep() - open a passive endpoint
 * @fabric: open fabric; gains a dependent until the endpoint is closed
 * @info: answer of kfi_getinfo(), the caller's
 * @pep: receives the endpoint; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events; never dereferenced
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL; -KFI_ENOSYS if the provider has no connections;
 *   -KFI_ENOMEM.
 */
static inline int kfi_passive_ep(struct kfid_fabric *fabric,
				 struct kfi_info *info, struct kfid_pep **pep,
				 void *context)
{
	return fabric->ops->passive_ep(fabric, info, pep, context);
}

/**
 * kfi_endpoint() - open an endpoint
 * @domain: domain; gains a dependent until the object is closed
 * @info: answer of kfi_getinfo(), the caller's; size and capabilities wanted
 * @ep: receives the endpoint, inactive; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events; never dereferenced
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @info does not fit the domain; -KFI_EADDRINUSE if
 *   its source address is taken; -KFI_ENOMEM.
 */
static inline int kfi_endpoint(struct kfid_domain *domain,
			       struct kfi_info *info, struct kfid_ep **ep,
			       void *context)
{
	return domain->ops->endpoint(domain, info, ep, context);
}

/**
 * kfi_scalable_ep() - open a scalable endpoint
 * @domain: domain; gains a dependent until the object is closed
 * @info: answer of kfi_getinfo(), the caller's; size and capabilities wanted
 * @sep: receives the endpoint, inactive; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events; never dereferenced
 *
 * The numbers of contexts are tx_ctx_cnt and rx_ctx_cnt of @info's endpoint
 * attributes. Closing it fails with -KFI_EBUSY while contexts are open.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @info does not fit the domain; -KFI_EADDRINUSE if
 *   its source address is taken; -KFI_ENOMEM.
 */
static inline int kfi_scalable_ep(struct kfid_domain *domain,
				  struct kfi_info *info, struct kfid_ep **sep,
				  void *context)
{
	return domain->ops->scalable_ep(domain, info, sep, context);
}

/**
 * kfi_ep_bind() - bind an object to an endpoint or context
 * @ep: endpoint or context
 * @bfid: fid of an address vector, completion queue, counter, event queue or
 *   shared context of the same domain or fabric
 * @flags: completion queue: KFI_TRANSMIT, KFI_RECV or both, and
 *   KFI_SELECTIVE_COMPLETION to get success entries only for operations with
 *   KFI_COMPLETION. Counter: one or more of KFI_SEND, KFI_RECV, KFI_READ,
 *   KFI_WRITE, KFI_REMOTE_READ, KFI_REMOTE_WRITE. Either to a context: 0 means
 *   its direction. Else 0
 *
 * Before kfi_enable(). @bfid is busy until the endpoint is closed. A counter
 * bound with several flags counts the completions of each. Of atomics the plain
 * ones are writes, those that fetch or compare reads; at the target those that
 * change something are writes.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for an object of another class, whatever the flags, or
 *   domain, or if one of the kind is bound already; -KFI_EBADFLAGS;
 *   -KFI_EOPBADSTATE.
 */
static inline int kfi_ep_bind(struct kfid_ep *ep, struct kfid *bfid,
			      uint64_t flags)
{
	return ep->fid.ops->bind(&ep->fid, bfid, flags);
}

/**
 * kfi_pep_bind() - bind an event queue to a passive endpoint
 * @pep: passive endpoint
 * @bfid: &kfid_eq.fid; busy until the endpoint is closed
 * @flags: reserved, must be 0
 *
 * Before kfi_listen().
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for an object of another class or domain, or if one of
 *   the kind is bound already; -KFI_EBADFLAGS.
 */
static inline int kfi_pep_bind(struct kfid_pep *pep, struct kfid *bfid,
			       uint64_t flags)
{
	return pep->fid.ops->bind(&pep->fid, bfid, flags);
}

/**
 * kfi_scalable_ep_bind() - bind an address vector to a scalable endpoint
 * @sep: scalable endpoint
 * @bfid: &kfid_av.fid; busy until the endpoint is closed
 * @flags: reserved, must be 0
 *
 * Before the endpoint and its contexts are enabled.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for an object of another class or domain, or if one of
 *   the kind is bound already; -KFI_EBADFLAGS; -KFI_EOPBADSTATE.
 */
static inline int kfi_scalable_ep_bind(struct kfid_ep *sep, struct kfid *bfid,
				       uint64_t flags)
{
	return sep->fid.ops->bind(&sep->fid, bfid, flags);
}

/**
 * kfi_enable() - make an endpoint or context active
 * @ep: endpoint or context
 *
 * Issues KFI_ENABLE. Data transfers may be posted after it.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ENOAV if no address vector is bound; -KFI_ENOCQ if a
 *   direction that is needed has neither completion queue nor counter;
 *   -KFI_EOPBADSTATE.
 */
static inline int kfi_enable(struct kfid_ep *ep)
{
	return ep->fid.ops->control(&ep->fid, KFI_ENABLE, NULL);
}

/**
 * kfi_cancel() - cancel a posted operation
 * @fid: &kfid_ep.fid of the endpoint or context the operation was posted to
 * @context: context of the operation, compared by value
 *
 * On 0 exactly one completion follows: an error entry with KFI_ECANCELED, or
 * the real completion if that won the race. If several operations have the same
 * context one of them is cancelled. A pending triggered operation is cancelled
 * alike; deferred work is not until it has started, see KFI_CANCEL_WORK.
 *
 * A receive for several messages takes no others from then on. The buffer is
 * the caller's again with the error entry, with or without KFI_MULTI_RECV; or,
 * if messages are landing in it, with the entry of the last of them, which has
 * this flag, and there is no error entry.
 *
 * A receive of a shared receive context is told by the completion queue that is
 * bound to that context. If there is none no completion follows: the receive is
 * the caller's again when the call returns 0.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0; -KFI_ENOENT if no operation with this context can be cancelled any
 *   more; -KFI_EBUSY if messages are landing in a receive of a shared receive
 *   context without a completion queue, the last of which tells its release.
 */
static inline ssize_t kfi_cancel(struct kfid *fid, void *context)
{
	struct kfid_ep *ep = container_of(fid, struct kfid_ep, fid);

	return ep->ops->cancel(fid, context);
}

/**
 * kfi_setopt() - set an endpoint option
 * @fid: &kfid_ep.fid
 * @level: KFI_OPT_ENDPOINT
 * @optname: KFI_OPT_MIN_MULTI_RECV, KFI_OPT_CM_DATA_SIZE or an option of the
 *   provider
 * @optval: value, the caller's
 * @optlen: bytes at @optval
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ENOPROTOOPT for an unknown level or option; -KFI_ETOOSMALL if
 *   @optlen is less than the option has; -KFI_E2BIG for a value that is too
 *   large; -KFI_EINVAL for any other bad value.
 */
static inline int kfi_setopt(struct kfid *fid, int level, int optname,
			     const void *optval, size_t optlen)
{
	struct kfid_ep *ep = container_of(fid, struct kfid_ep, fid);

	return ep->ops->setopt(fid, level, optname, optval, optlen);
}

/**
 * kfi_getopt() - read an endpoint option
 * @fid: &kfid_ep.fid
 * @level: KFI_OPT_ENDPOINT
 * @optname: KFI_OPT_MIN_MULTI_RECV, KFI_OPT_CM_DATA_SIZE or an option of the
 *   provider
 * @optval: buffer of the caller's
 * @optlen: in: bytes at @optval; out: length of the value
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ENOPROTOOPT for an unknown level or option; -KFI_ETOOSMALL if
 *   @optval is too short, with the length needed in @optlen.
 */
static inline int kfi_getopt(struct kfid *fid, int level, int optname,
			     void *optval, size_t *optlen)
{
	struct kfid_ep *ep = container_of(fid, struct kfid_ep, fid);

	return ep->ops->getopt(fid, level, optname, optval, optlen);
}

/**
 * kfi_ep_alias() - open an alias of an endpoint with other default flags
 * @ep: endpoint
 * @alias_ep: receives the alias; close it with kfi_close()
 * @flags: exactly one of KFI_TRANSMIT and KFI_RECV, with the op_flags for that
 *   direction
 *
 * An alias is the same endpoint under another handle, with op_flags of its own.
 * With KFI_TRIGGER it is a triggerable endpoint: all data transfers on it are
 * deferred (fi_trigger(3)). It must be closed before the endpoint, whose close
 * fails with -KFI_EBUSY till then.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for a bad direction; -KFI_EBADFLAGS for flags that it
 *   does not have; -KFI_ENOSYS if the provider has no aliases; -KFI_ENOMEM.
 */
static inline int kfi_ep_alias(struct kfid_ep *ep, struct kfid_ep **alias_ep,
			       uint64_t flags)
{
	struct kfid *fid;
	int ret;

	ret = kfi_alias(&ep->fid, &fid, flags);
	if (!ret)
		*alias_ep = container_of(fid, struct kfid_ep, fid);

	return ret;
}

/**
 * kfi_tx_context() - open a transmit context of a scalable endpoint
 * @ep: scalable endpoint; gains a dependent until the context is closed
 * @index: 0 to tx_ctx_cnt - 1
 * @attr: attributes, the caller's, or NULL for those of the endpoint
 * @tx_ep: receives the context, inactive; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events; never dereferenced
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @index is out of range or @attr does not fit;
 *   -KFI_EADDRINUSE if the context is open already; -KFI_ENOMEM.
 */
static inline int kfi_tx_context(struct kfid_ep *ep, int index,
				 struct kfi_tx_attr *attr,
				 struct kfid_ep **tx_ep, void *context)
{
	return ep->ops->tx_ctx(ep, index, attr, tx_ep, context);
}

/**
 * kfi_rx_context() - open a receive context of a scalable endpoint
 * @ep: scalable endpoint; gains a dependent until the context is closed
 * @index: 0 to rx_ctx_cnt - 1
 * @attr: attributes, the caller's, or NULL for those of the endpoint
 * @rx_ep: receives the context, inactive; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events; never dereferenced
 *
 * Peers reach it through kfi_rx_addr().
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @index is out of range or @attr does not fit;
 *   -KFI_EADDRINUSE if the context is open already; -KFI_ENOMEM.
 */
static inline int kfi_rx_context(struct kfid_ep *ep, int index,
				 struct kfi_rx_attr *attr,
				 struct kfid_ep **rx_ep, void *context)
{
	return ep->ops->rx_ctx(ep, index, attr, rx_ep, context);
}

/**
 * kfi_stx_context() - open a transmit context that endpoints share
 * @domain: domain; gains a dependent until the object is closed
 * @attr: attributes, the caller's
 * @stx: receives the context; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events; never dereferenced
 *
 * Endpoints bind it, whether or not KFI_SHARED_CONTEXT was asked for as their
 * tx_ctx_cnt.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL; -KFI_ENOSYS if the provider has no shared contexts;
 *   -KFI_ENOMEM.
 */
static inline int kfi_stx_context(struct kfid_domain *domain,
				  struct kfi_tx_attr *attr,
				  struct kfid_stx **stx, void *context)
{
	return domain->ops->stx_ctx(domain, attr, stx, context);
}

/**
 * kfi_srx_context() - open a receive context that endpoints share
 * @domain: domain; gains a dependent until the object is closed
 * @attr: attributes, the caller's
 * @rx_ep: receives the context; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events; never dereferenced
 *
 * Endpoints bind it, whether or not KFI_SHARED_CONTEXT was asked for as their
 * rx_ctx_cnt. Receives are posted to it, from any source: it has no address
 * vector. With KFI_DIRECTED_RECV a source other than KFI_ADDR_UNSPEC is answered
 * with -KFI_EOPNOTSUPP.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL; -KFI_ENOSYS if the provider has no shared contexts;
 *   -KFI_ENOMEM.
 */
static inline int kfi_srx_context(struct kfid_domain *domain,
				  struct kfi_rx_attr *attr,
				  struct kfid_ep **rx_ep, void *context)
{
	return domain->ops->srx_ctx(domain, attr, rx_ep, context);
}

/**
 * kfi_recv() - post a receive buffer
 * @ep: endpoint or receive context
 * @buf: buffer for the message
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @context: caller's value, returned as op_context of the completion
 *
 * Messages of one sending context match posted receives in order. A message
 * longer than the room completes with KFI_EMSGSIZE: len is what was placed,
 * olen the bytes that did not fit.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_recv(struct kfid_ep *ep, void *buf, size_t len,
			       void *desc, kfi_addr_t src_addr, void *context)
{
	return ep->msg->recv(ep, buf, len, desc, src_addr, context);
}

/**
 * kfi_recvv() - post a receive into virtual ranges
 * @ep: endpoint or receive context
 * @iov: ranges the message is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @context: caller's value, returned as op_context of the completion
 *
 * As kfi_recv().
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_recvv(struct kfid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, kfi_addr_t src_addr,
				void *context)
{
	return ep->msg->recvv(ep, iov, desc, count, src_addr, context);
}

/**
 * kfi_recvbv() - post a receive into page ranges
 * @ep: endpoint or receive context
 * @biov: page ranges the message is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @biov
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @context: caller's value, returned as op_context of the completion
 *
 * As kfi_recv().
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_recvbv(struct kfid_ep *ep, const struct bio_vec *biov,
				 void **desc, size_t count, kfi_addr_t src_addr,
				 void *context)
{
	return ep->msg->recvbv(ep, biov, desc, count, src_addr, context);
}

/**
 * kfi_recvsgl() - post a receive into a scatterlist
 * @ep: endpoint or receive context
 * @sgl: scatterlist the message is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @sgl
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @context: caller's value, returned as op_context of the completion
 *
 * As kfi_recv().
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_recvsgl(struct kfid_ep *ep,
				  const struct scatterlist *sgl, void **desc,
				  size_t count, kfi_addr_t src_addr,
				  void *context)
{
	return ep->msg->recvsgl(ep, sgl, desc, count, src_addr, context);
}

/**
 * kfi_recvmsg() - post a receive with flags
 * @ep: endpoint or receive context
 * @msg: buffers, source and context
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_MULTI_RECV, KFI_TRIGGER
 *
 * As kfi_recv(). With KFI_MULTI_RECV the buffer takes messages, one behind the
 * other, until less than KFI_OPT_MIN_MULTI_RECV is left; the last completion
 * carries KFI_MULTI_RECV and gives the buffer back. If none of the last message
 * was asked for, an entry with this flag alone does.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_recvmsg(struct kfid_ep *ep, const struct kfi_msg *msg,
				  uint64_t flags)
{
	return ep->msg->recvmsg(ep, msg, flags);
}

/**
 * kfi_send() - send a message
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @dest_addr: destination, from an address vector; ignored when connected
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_send(struct kfid_ep *ep, const void *buf, size_t len,
			       void *desc, kfi_addr_t dest_addr, void *context)
{
	return ep->msg->send(ep, buf, len, desc, dest_addr, context);
}

/**
 * kfi_sendv() - send a message gathered from virtual ranges
 * @ep: endpoint or transmit context
 * @iov: ranges the message is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @dest_addr: destination, from an address vector; ignored when connected
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_sendv(struct kfid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, kfi_addr_t dest_addr,
				void *context)
{
	return ep->msg->sendv(ep, iov, desc, count, dest_addr, context);
}

/**
 * kfi_sendbv() - send a message gathered from page ranges
 * @ep: endpoint or transmit context
 * @biov: page ranges the message is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @biov
 * @dest_addr: destination, from an address vector; ignored when connected
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_sendbv(struct kfid_ep *ep, const struct bio_vec *biov,
				 void **desc, size_t count,
				 kfi_addr_t dest_addr, void *context)
{
	return ep->msg->sendbv(ep, biov, desc, count, dest_addr, context);
}

/**
 * kfi_sendsgl() - send a message gathered from a scatterlist
 * @ep: endpoint or transmit context
 * @sgl: scatterlist the message is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @sgl
 * @dest_addr: destination, from an address vector; ignored when connected
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_sendsgl(struct kfid_ep *ep,
				  const struct scatterlist *sgl, void **desc,
				  size_t count, kfi_addr_t dest_addr,
				  void *context)
{
	return ep->msg->sendsgl(ep, sgl, desc, count, dest_addr, context);
}

/**
 * kfi_sendmsg() - send a message with flags
 * @ep: endpoint or transmit context
 * @msg: buffers, destination, context and data
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_INJECT, KFI_REMOTE_CQ_DATA, KFI_FENCE,
 *   KFI_TRIGGER and the completion levels
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_sendmsg(struct kfid_ep *ep, const struct kfi_msg *msg,
				  uint64_t flags)
{
	return ep->msg->sendmsg(ep, msg, flags);
}

/**
 * kfi_inject() - send a short message from a buffer that may be reused at once
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes, at most inject_size of the transmit attributes
 * @dest_addr: destination, from an address vector; ignored when connected
 *
 * @buf is free again on return. There is never a success entry in the
 * completion queue; counters count it all the same.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_inject(struct kfid_ep *ep, const void *buf,
				 size_t len, kfi_addr_t dest_addr)
{
	return ep->msg->inject(ep, buf, len, dest_addr);
}

/**
 * kfi_senddata() - send a message with remote completion data
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @data: value delivered in the receiver's completion, as wide as cq_data_size
 *   of the domain
 * @dest_addr: destination, from an address vector; ignored when connected
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_senddata(struct kfid_ep *ep, const void *buf,
				   size_t len, void *desc, uint64_t data,
				   kfi_addr_t dest_addr, void *context)
{
	return ep->msg->senddata(ep, buf, len, desc, data, dest_addr, context);
}

/**
 * kfi_injectdata() - kfi_inject() with remote completion data
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes, at most inject_size of the transmit attributes
 * @data: value delivered in the receiver's completion, as wide as cq_data_size
 *   of the domain
 * @dest_addr: destination, from an address vector; ignored when connected
 *
 * @buf is free again on return. There is never a success entry in the
 * completion queue; counters count it all the same.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_injectdata(struct kfid_ep *ep, const void *buf,
				     size_t len, uint64_t data,
				     kfi_addr_t dest_addr)
{
	return ep->msg->injectdata(ep, buf, len, data, dest_addr);
}

#endif /* _KFI_ENDPOINT_H_ */
