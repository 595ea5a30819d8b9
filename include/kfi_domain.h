/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: domains, address vectors and memory registration.
 */

#ifndef _KFI_DOMAIN_H_
#define _KFI_DOMAIN_H_

#include "kfabric.h"
#include "kfi_eq.h"
#include "kfi_errno.h"

struct kvec;
struct bio_vec;
struct scatterlist;

/**
 * DOC: Domains, address vectors and memory regions
 *
 * A domain stands for one local NIC or port of a fabric. It is the parent of
 * every object that moves data: address vectors, completion queues, counters,
 * poll sets, endpoints and memory regions.
 *
 * Rules that hold for every call in this header, unless the call says
 * otherwise:
 *
 * * Opening, binding, enabling, registering and closing run in process context
 *   and may sleep.
 *
 * * Attribute structures, names and address arrays belong to the caller and are
 *   read before the call returns; the provider keeps copies, never the
 *   pointers.
 *
 * * Object pointers are written to the output argument on success only.
 *
 * * The ops pointers of objects are not const, nor are some arguments that are
 *   only read (the addresses of kfi_av_remove(), the key of kfi_mr_map_raw()):
 *   kfabric 1.7 has these types, and callers may depend on them.
 *
 * * Wrappers do not test the ops table, so a provider fills every slot
 *   (kfi_enosys.h has stubs for what it lacks). Only kfi_wait_open() and
 *   kfi_poll_open() also accept an absent slot or a table too short to have it.
 *
 * * Calls return 0 or a negative kfabric error number (kfi_errno.h). Common to
 *   all that open something: -KFI_EINVAL for a bad argument, -KFI_ENOSYS for
 *   what the provider does not have, -KFI_ENOMEM.
 */

/*
 * Address vector flag (struct kfi_av_attr.flags): every node has the same
 * number of endpoints, with transport addresses laid out alike and in sequence,
 * so that the provider may compute addresses instead of storing them. The bit
 * is that of KFI_REG_MR and of several flags in other headers, which never meet
 * it in one flags word.
 */
#define KFI_SYMMETRIC		(1ULL << 59)

/*
 * Insertion flag: @context points to an array of int, one for each address,
 * which receives 0 or a positive error number for that address. It lets a
 * partly failed insertion be told apart address by address without an event
 * queue.
 */
#define KFI_SYNC_ERR		(1ULL << 58)

/*
 * Flag of kfi_domain_bind() with an event queue: memory registration on the
 * domain becomes asynchronous; each one ends with a KFI_MR_COMPLETE event on
 * that queue.
 */
#define KFI_REG_MR		(1ULL << 59)

/**
 * struct kfi_av_attr - attributes of an address vector
 * @type: KFI_AV_MAP (addresses are opaque values), KFI_AV_TABLE (addresses are
 *   indices that count up from 0) or KFI_AV_UNSPEC (the provider chooses and
 *   writes its choice back here)
 * @rx_ctx_bits: number of top bits of a kfi_addr_t set aside for the receive
 *   context index of a scalable endpoint; base addresses keep them zero,
 *   kfi_rx_addr() fills them
 * @count: expected number of addresses, a hint; 0 if unknown
 * @ep_per_node: expected number of endpoints on each node, a hint; 0 if unknown
 * @name: name of a shared address vector, or NULL for a private one; the string
 *   is the caller's
 * @map_addr: base address of a shared, named KFI_AV_MAP vector; else NULL
 * @flags: KFI_EVENT (insertions complete through an event queue bound with
 *   kfi_av_bind()), KFI_READ (read only access to a named vector),
 *   KFI_SYMMETRIC
 */
struct kfi_av_attr {
	enum kfi_av_type type;
	int rx_ctx_bits;
	size_t count;
	size_t ep_per_node;
	const char *name;
	void *map_addr;
	uint64_t flags;
};

/**
 * struct kfi_ops_av - operations of an address vector
 * @size: sizeof(struct kfi_ops_av) the provider was built with, in bytes
 * @insert: insert binary addresses, also while memory is being reclaimed, so it
 *   allocates with GFP_NOFS and makes no round trip to the peer; see
 *   kfi_av_insert()
 * @insertsvc: insert the address of a node and service; see kfi_av_insertsvc()
 * @insertsym: insert addresses of consecutive nodes and services; see
 *   kfi_av_insertsym()
 * @remove: remove addresses; see kfi_av_remove()
 * @lookup: binary form of an address; see kfi_av_lookup()
 * @straddr: text form of a binary address; see kfi_av_straddr()
 *
 * All members are called in process context and may sleep. Arrays and strings
 * are the caller's; see the wrappers for how long they stay valid.
 */
struct kfi_ops_av {
	size_t size;
	int (*insert)(struct kfid_av *av, const void *addr, size_t count,
		      kfi_addr_t *kfi_addr, uint64_t flags, void *context);
	int (*insertsvc)(struct kfid_av *av, const char *node,
			 const char *service, kfi_addr_t *kfi_addr,
			 uint64_t flags, void *context);
	int (*insertsym)(struct kfid_av *av, const char *node, size_t nodecnt,
			 const char *service, size_t svccnt,
			 kfi_addr_t *kfi_addr, uint64_t flags, void *context);
	int (*remove)(struct kfid_av *av, kfi_addr_t *kfi_addr, size_t count,
		      uint64_t flags);
	int (*lookup)(struct kfid_av *av, kfi_addr_t kfi_addr, void *addr,
		      size_t *addrlen);
	const char *(*straddr)(struct kfid_av *av, const void *addr, char *buf,
			       size_t *len);
};

/**
 * struct kfid_av - address vector
 * @fid: object head; fclass is KFI_CLASS_AV
 * @ops: operations, constant while the object is open
 */
struct kfid_av {
	struct kfid fid;
	struct kfi_ops_av *ops;
};

/**
 * struct kfid_mr - memory region
 * @fid: object head; fclass is KFI_CLASS_MR
 * @mem_desc: local descriptor, passed as @desc of data transfers; read it with
 *   kfi_mr_desc()
 * @key: key a peer must present to reach the region; read it with kfi_mr_key()
 * @iova: address of the region's first byte as the NIC sees it, for the
 *   provider's use; peers address the region from 0, or by virtual address with
 *   KFI_MR_VIRT_ADDR
 *
 * Filled in by the provider; callers only read it.
 */
struct kfid_mr {
	struct kfid fid;
	void *mem_desc;
	uint64_t key;
	uint64_t iova;
};

/**
 * struct kfi_mr_attr - attributes of a memory registration
 * @type: which member of the union is valid
 * @mr_iov: KFI_KVEC: array of kernel virtual ranges, kmalloc or vmalloc
 * @mr_biov: KFI_BVEC: array of page ranges
 * @mr_sgl: KFI_SGL: scatterlist, unmapped or DMA mapped as the provider demands
 * @iov_count: number of entries of the array or scatterlist
 * @access: operations allowed on the region: KFI_SEND, KFI_RECV, KFI_READ,
 *   KFI_WRITE, KFI_REMOTE_READ, KFI_REMOTE_WRITE or'ed; 0 is refused with
 *   -KFI_EINVAL
 * @offset: reserved, must be 0
 * @requested_key: key wanted for the region; ignored under KFI_MR_PROV_KEY,
 *   where the provider chooses. At most mr_key_size bytes wide, else
 *   -KFI_EKEYREJECTED
 * @context: caller's value for fid.context of the region
 * @auth_key_size: bytes at @auth_key, 0 for the domain's default
 * @auth_key: authorisation key, copied by the provider: peers without it get
 *   KFI_EACCES. A region without a key of its own is open to the peers of every
 *   endpoint that has it
 *
 * The arrays are the caller's and are read before the registration call
 * returns, or, if it completes asynchronously (KFI_REG_MR), until its event.
 * The memory described stays registered, and must stay allocated, until the
 * region is closed.
 */
struct kfi_mr_attr {
	enum kfi_iov_type type;
	union {
		const struct kvec *mr_iov;
		const struct bio_vec *mr_biov;
		const struct scatterlist *mr_sgl;
	};
	size_t iov_count;
	uint64_t access;
	uint64_t offset;
	uint64_t requested_key;
	void *context;
	size_t auth_key_size;
	uint8_t *auth_key;
};

/**
 * struct kfi_mr_modify - argument of the KFI_REFRESH command
 * @flags: flags given to kfi_mr_refresh()
 * @attr: ranges that changed; only type, the iov and iov_count are meaningful
 */
struct kfi_mr_modify {
	uint64_t flags;
	struct kfi_mr_attr attr;
};

/**
 * enum kfi_datatype - element types of atomic operations
 * @KFI_INT8: 8-bit signed integer
 * @KFI_UINT8: 8-bit unsigned integer
 * @KFI_INT16: 16-bit signed integer
 * @KFI_UINT16: 16-bit unsigned integer
 * @KFI_INT32: 32-bit signed integer
 * @KFI_UINT32: 32-bit unsigned integer
 * @KFI_INT64: 64-bit signed integer
 * @KFI_UINT64: 64-bit unsigned integer
 * @KFI_FLOAT: single precision floating point
 * @KFI_DOUBLE: double precision floating point
 * @KFI_FLOAT_COMPLEX: pair of KFI_FLOAT, real part first
 * @KFI_DOUBLE_COMPLEX: pair of KFI_DOUBLE, real part first
 * @KFI_LONG_DOUBLE: extended precision floating point
 * @KFI_LONG_DOUBLE_COMPLEX: pair of KFI_LONG_DOUBLE, real part first
 * @KFI_DATATYPE_LAST: number of types, not a type
 *
 * Integers are in the byte order of the host. A provider that computes with the
 * CPU refuses the floating point and complex types with -KFI_EOPNOTSUPP, as the
 * kernel has no floating point; kfi_query_atomic() tells.
 */
enum kfi_datatype {
	KFI_INT8 = 0,
	KFI_UINT8,
	KFI_INT16,
	KFI_UINT16,
	KFI_INT32,
	KFI_UINT32,
	KFI_INT64,
	KFI_UINT64,
	KFI_FLOAT,
	KFI_DOUBLE,
	KFI_FLOAT_COMPLEX,
	KFI_DOUBLE_COMPLEX,
	KFI_LONG_DOUBLE,
	KFI_LONG_DOUBLE_COMPLEX,
	KFI_DATATYPE_LAST,
};

/**
 * enum kfi_op - atomic operations
 * @KFI_MIN: target = min(target, operand)
 * @KFI_MAX: target = max(target, operand)
 * @KFI_SUM: target = target + operand, wrapping
 * @KFI_PROD: target = target * operand, wrapping
 * @KFI_LOR: target = target || operand
 * @KFI_LAND: target = target && operand
 * @KFI_BOR: target = target | operand
 * @KFI_BAND: target = target & operand
 * @KFI_LXOR: target = !target != !operand
 * @KFI_BXOR: target = target ^ operand
 * @KFI_ATOMIC_READ: target unchanged; fetch operations only
 * @KFI_ATOMIC_WRITE: target = operand
 * @KFI_CSWAP: if (compare == target) target = operand
 * @KFI_CSWAP_NE: if (compare != target) target = operand
 * @KFI_CSWAP_LE: if (compare <= target) target = operand
 * @KFI_CSWAP_LT: if (compare < target) target = operand
 * @KFI_CSWAP_GE: if (compare >= target) target = operand
 * @KFI_CSWAP_GT: if (compare > target) target = operand
 * @KFI_MSWAP: target = (operand & compare) | (target & ~compare)
 * @KFI_ATOMIC_OP_LAST: number of operations, not an operation
 *
 * Each element is updated atomically; an array as a whole is not. KFI_MIN to
 * KFI_ATOMIC_WRITE are for kfi_atomic() and kfi_fetch_atomic() (of these
 * KFI_ATOMIC_READ only for the latter), KFI_CSWAP to KFI_MSWAP for
 * kfi_compare_atomic().
 */
enum kfi_op {
	KFI_MIN = 0,
	KFI_MAX,
	KFI_SUM,
	KFI_PROD,
	KFI_LOR,
	KFI_LAND,
	KFI_BOR,
	KFI_BAND,
	KFI_LXOR,
	KFI_BXOR,
	KFI_ATOMIC_READ,
	KFI_ATOMIC_WRITE,
	KFI_CSWAP,
	KFI_CSWAP_NE,
	KFI_CSWAP_LE,
	KFI_CSWAP_LT,
	KFI_CSWAP_GE,
	KFI_CSWAP_GT,
	KFI_MSWAP,
	KFI_ATOMIC_OP_LAST,
};

struct kfi_atomic_attr;
struct kfi_cq_attr;
struct kfi_cntr_attr;

/**
 * struct kfi_ops_domain - operations of a domain
 * @size: sizeof(struct kfi_ops_domain) the provider was built with, in bytes
 * @av_open: open an address vector; see kfi_av_open()
 * @cq_open: open a completion queue; see kfi_cq_open()
 * @endpoint: open an endpoint; see kfi_endpoint()
 * @scalable_ep: open a scalable endpoint; see kfi_scalable_ep()
 * @cntr_open: open a counter; see kfi_cntr_open()
 * @poll_open: open a poll set; see kfi_poll_open()
 * @stx_ctx: open a transmit context that endpoints share; see kfi_stx_context()
 * @srx_ctx: open a receive context that endpoints share; see kfi_srx_context()
 * @query_atomic: whether and how a domain supports a type and operation; see
 *   kfi_query_atomic()
 *
 * All members are called in process context and may sleep.
 */
struct kfi_ops_domain {
	size_t size;
	int (*av_open)(struct kfid_domain *domain, struct kfi_av_attr *attr,
		       struct kfid_av **av, void *context);
	int (*cq_open)(struct kfid_domain *domain, struct kfi_cq_attr *attr,
		       struct kfid_cq **cq, kfi_comp_handler comp_handler,
		       void *context);
	int (*endpoint)(struct kfid_domain *domain, struct kfi_info *info,
			struct kfid_ep **ep, void *context);
	int (*scalable_ep)(struct kfid_domain *domain, struct kfi_info *info,
			   struct kfid_ep **sep, void *context);
	int (*cntr_open)(struct kfid_domain *domain, struct kfi_cntr_attr *attr,
			 struct kfid_cntr **cntr, void *context);
	int (*poll_open)(struct kfid_domain *domain, struct kfi_poll_attr *attr,
			 struct kfid_poll **pollset);
	int (*stx_ctx)(struct kfid_domain *domain, struct kfi_tx_attr *attr,
		       struct kfid_stx **stx, void *context);
	int (*srx_ctx)(struct kfid_domain *domain, struct kfi_rx_attr *attr,
		       struct kfid_ep **rx_ep, void *context);
	int (*query_atomic)(struct kfid_domain *domain,
			    enum kfi_datatype datatype, enum kfi_op op,
			    struct kfi_atomic_attr *attr, uint64_t flags);
};

/**
 * struct kfi_ops_mr - memory registration operations of a domain
 * @size: sizeof(struct kfi_ops_mr) the provider was built with, in bytes
 * @reg: register one kernel virtual range; see kfi_mr_reg()
 * @regv: register kernel virtual ranges; see kfi_mr_regv()
 * @regbv: register page ranges; see kfi_mr_regbv()
 * @regattr: register memory described by attributes; see kfi_mr_regattr()
 * @regsgl: register a scatterlist; see kfi_mr_regsgl()
 *
 * All members are called in process context, with the fid of the domain, and
 * may sleep.
 */
struct kfi_ops_mr {
	size_t size;
	int (*reg)(struct kfid *fid, const void *buf, size_t len,
		   uint64_t access, uint64_t offset, uint64_t requested_key,
		   uint64_t flags, struct kfid_mr **mr, void *context);
	int (*regv)(struct kfid *fid, const struct kvec *iov, size_t count,
		    uint64_t access, uint64_t offset, uint64_t requested_key,
		    uint64_t flags, struct kfid_mr **mr, void *context);
	int (*regbv)(struct kfid *fid, const struct bio_vec *biov, size_t count,
		     uint64_t access, uint64_t offset, uint64_t requested_key,
		     uint64_t flags, struct kfid_mr **mr, void *context);
	int (*regattr)(struct kfid *fid, const struct kfi_mr_attr *attr,
		       uint64_t flags, struct kfid_mr **mr);
	int (*regsgl)(struct kfid *fid, const struct scatterlist *sgl,
		      size_t count, uint64_t access, uint64_t offset,
		      uint64_t requested_key, uint64_t flags,
		      struct kfid_mr **mr, void *context);
};

/**
 * struct kfid_domain - domain
 * @fid: object head; fclass is KFI_CLASS_DOMAIN
 * @ops: operations, constant while the domain is open
 * @mr: memory registration operations, likewise
 *
 * Deferred work is submitted, cancelled and flushed through kfi_control() on
 * &kfid_domain.fid: see struct kfi_deferred_work in kfi_trigger.h.
 */
struct kfid_domain {
	struct kfid fid;
	struct kfi_ops_domain *ops;
	struct kfi_ops_mr *mr;
};

/**
 * kfi_domain() - open a domain
 * @fabric: open fabric; gains a dependent until the domain is closed
 * @info: answer of kfi_getinfo() that names the domain
 * @domain: receives the domain; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events for it; never dereferenced
 *
 * The name, attributes and address format come from an answer of kfi_getinfo().
 * All addresses that are given to objects of the domain, and got from them, are
 * in that format. @info stays the caller's; what is kept is copied.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @info is not an answer of this provider;
 *   -KFI_ENODEV if the device is gone, or another one has its name since;
 *   -KFI_ENOMEM.
 */
static inline int kfi_domain(struct kfid_fabric *fabric, struct kfi_info *info,
			     struct kfid_domain **domain, void *context)
{
	return fabric->ops->domain(fabric, info, domain, context);
}

/**
 * kfi_domain_bind() - bind an event queue to a domain
 * @domain: domain
 * @fid: &kfid_eq.fid; busy until the domain is closed
 * @flags: 0, or KFI_REG_MR to make memory registration asynchronous
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for an object of another class or fabric, or if one is
 *   bound already.
 */
static inline int kfi_domain_bind(struct kfid_domain *domain, struct kfid *fid,
				  uint64_t flags)
{
	return domain->fid.ops->bind(&domain->fid, fid, flags);
}

/**
 * kfi_cq_open() - open a completion queue
 * @domain: domain the object is opened on; gains a dependent until the object
 *   is closed
 * @attr: size in entries, entry format and wait object; the provider writes
 *   back the size and the format that it chose. KFI_WAIT_UNSPEC stays:
 *   KFI_GETWAITOBJ tells what it stands for. NULL for the provider's defaults,
 *   which not every provider takes
 * @cq: receives the queue; close it with kfi_close()
 * @comp_handler: function called when completions arrive, or NULL
 * @context: caller's value: second argument of @comp_handler and what
 *   kfi_poll() reports
 *
 * @comp_handler is one-shot: it is armed when the queue is opened and again
 * only by a read that returns -KFI_EAGAIN. It runs in process context with no
 * lock of the provider held, and may read the queue and post operations.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for a bad format, wait object or wait set, a signaling
 *   vector that is no CPU, a size that the provider does not have, or a handler
 *   if the provider calls none; -KFI_ENOMEM.
 */
static inline int kfi_cq_open(struct kfid_domain *domain,
			      struct kfi_cq_attr *attr, struct kfid_cq **cq,
			      kfi_comp_handler comp_handler, void *context)
{
	return domain->ops->cq_open(domain, attr, cq, comp_handler, context);
}

/**
 * kfi_cntr_open() - open a counter
 * @domain: domain the object is opened on; gains a dependent until the object
 *   is closed
 * @attr: events counted and wait object; attr->wait_set is looked at for
 *   KFI_WAIT_SET only. A provider may accept NULL: count completions,
 *   KFI_WAIT_UNSPEC
 * @cntr: receives the counter; close it with kfi_close()
 * @context: caller's value, what kfi_poll() reports
 *
 * The success and the error value start at 0.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for attr->flags other than 0, an unknown wait object,
 *   or KFI_WAIT_SET with a wait_set that is not one; -KFI_ENOSYS for unknown
 *   attr->events; -KFI_ENOMEM. See fi_cntr(3).
 */
static inline int kfi_cntr_open(struct kfid_domain *domain,
				struct kfi_cntr_attr *attr,
				struct kfid_cntr **cntr, void *context)
{
	return domain->ops->cntr_open(domain, attr, cntr, context);
}

/**
 * kfi_wait_open() - open a wait set
 * @fabric: open fabric; gains a dependent until the set is closed
 * @attr: wait object wanted
 * @waitset: receives the set; close it with kfi_close()
 *
 * Completion queues, event queues and counters join the set when they are
 * opened with KFI_WAIT_SET. The set has no caller's value of its own. Closing
 * it fails with -KFI_EBUSY until the last of its members is closed
 * (fi_poll(3)).
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @attr is NULL, attr->flags is not 0 or
 *   attr->wait_obj is neither KFI_WAIT_UNSPEC nor KFI_WAIT_QUEUE; -KFI_ENOSYS
 *   if the provider has no wait sets, also if its ops table lacks the slot.
 */
static inline int kfi_wait_open(struct kfid_fabric *fabric,
				struct kfi_wait_attr *attr,
				struct kfid_wait **waitset)
{
	if (!KFI_CHECK_OP(fabric->ops, struct kfi_ops_fabric, wait_open))
		return -KFI_ENOSYS;

	return fabric->ops->wait_open(fabric, attr, waitset);
}

/**
 * kfi_poll_open() - open a poll set
 * @domain: domain the object is opened on; gains a dependent until the object
 *   is closed
 * @attr: flags, reserved and 0. A provider may accept NULL for the same
 * @pollset: receives the set; close it with kfi_close()
 *
 * The set has no caller's value of its own. Closing it fails with -KFI_EBUSY
 * until it has no members (fi_poll(3)).
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if attr->flags is not 0; -KFI_ENOMEM; -KFI_ENOSYS if
 *   the provider has no poll sets, also if its ops table lacks the slot.
 */
static inline int kfi_poll_open(struct kfid_domain *domain,
				struct kfi_poll_attr *attr,
				struct kfid_poll **pollset)
{
	if (!KFI_CHECK_OP(domain->ops, struct kfi_ops_domain, poll_open))
		return -KFI_ENOSYS;

	return domain->ops->poll_open(domain, attr, pollset);
}

/**
 * kfi_mr_reg() - register one kernel virtual range
 * @domain: domain
 * @buf: first byte, kmalloc or vmalloc memory
 * @len: length in bytes
 * @access: operations allowed on the region, see &kfi_mr_attr.access
 * @offset: reserved, must be 0
 * @requested_key: key wanted, see &kfi_mr_attr.requested_key
 * @flags: 0, or KFI_RMA_EVENT for a completion entry whenever a peer has used
 *   the region; an unknown flag is refused with -KFI_EBADFLAGS
 * @mr: receives the region; close it with kfi_close()
 * @context: caller's value for fid.context of the region
 *
 * With KFI_MR_ENDPOINT the region is usable after kfi_mr_bind() to an endpoint
 * and kfi_mr_enable(); else at once. If an event queue was bound with
 * KFI_REG_MR, success means started: a KFI_MR_COMPLETE event follows. The
 * memory must stay allocated until the region is closed.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for no access or a bad range; -KFI_EBADFLAGS;
 *   -KFI_EKEYREJECTED if the key is too wide; -KFI_ENOKEY if it is taken;
 *   -KFI_EAGAIN if an event queue was bound with KFI_REG_MR and has no room for
 *   the event; -KFI_ENOMEM.
 */
static inline int kfi_mr_reg(struct kfid_domain *domain, const void *buf,
			     size_t len, uint64_t access, uint64_t offset,
			     uint64_t requested_key, uint64_t flags,
			     struct kfid_mr **mr, void *context)
{
	return domain->mr->reg(&domain->fid, buf, len, access, offset,
			       requested_key, flags, mr, context);
}

/**
 * kfi_mr_regv() - register kernel virtual ranges
 * @domain: domain
 * @iov: array of ranges, the caller's, see &struct kfi_mr_attr
 * @count: entries of @iov, at most mr_iov_limit of the domain
 * @access: operations allowed on the region, see &kfi_mr_attr.access
 * @offset: reserved, must be 0
 * @requested_key: key wanted, see &kfi_mr_attr.requested_key
 * @flags: 0, or KFI_RMA_EVENT for a completion entry whenever a peer has used
 *   the region; an unknown flag is refused with -KFI_EBADFLAGS
 * @mr: receives the region; close it with kfi_close()
 * @context: caller's value for fid.context of the region
 *
 * As kfi_mr_reg(); peers see the ranges as one, in order.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for no access or a bad range; -KFI_EBADFLAGS;
 *   -KFI_EKEYREJECTED if the key is too wide; -KFI_ENOKEY if it is taken;
 *   -KFI_EAGAIN if an event queue was bound with KFI_REG_MR and has no room for
 *   the event; -KFI_ENOMEM.
 */
static inline int kfi_mr_regv(struct kfid_domain *domain,
			      const struct kvec *iov, size_t count,
			      uint64_t access, uint64_t offset,
			      uint64_t requested_key, uint64_t flags,
			      struct kfid_mr **mr, void *context)
{
	return domain->mr->regv(&domain->fid, iov, count, access, offset,
				requested_key, flags, mr, context);
}

/**
 * kfi_mr_regbv() - register page ranges
 * @domain: domain
 * @biov: array of page ranges, the caller's, see &struct kfi_mr_attr
 * @count: entries of @biov, at most mr_iov_limit of the domain
 * @access: operations allowed on the region, see &kfi_mr_attr.access
 * @offset: reserved, must be 0
 * @requested_key: key wanted, see &kfi_mr_attr.requested_key
 * @flags: 0, or KFI_RMA_EVENT for a completion entry whenever a peer has used
 *   the region; an unknown flag is refused with -KFI_EBADFLAGS
 * @mr: receives the region; close it with kfi_close()
 * @context: caller's value for fid.context of the region
 *
 * As kfi_mr_regv().
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for no access or a bad range; -KFI_EBADFLAGS;
 *   -KFI_EKEYREJECTED if the key is too wide; -KFI_ENOKEY if it is taken;
 *   -KFI_EAGAIN if an event queue was bound with KFI_REG_MR and has no room for
 *   the event; -KFI_ENOMEM.
 */
static inline int kfi_mr_regbv(struct kfid_domain *domain,
			       const struct bio_vec *biov, size_t count,
			       uint64_t access, uint64_t offset,
			       uint64_t requested_key, uint64_t flags,
			       struct kfid_mr **mr, void *context)
{
	return domain->mr->regbv(&domain->fid, biov, count, access, offset,
				 requested_key, flags, mr, context);
}

/**
 * kfi_mr_regsgl() - register a scatterlist
 * @domain: domain
 * @sgl: scatterlist, the caller's, see &struct kfi_mr_attr
 * @count: entries of @sgl, at most mr_iov_limit of the domain
 * @access: operations allowed on the region, see &kfi_mr_attr.access
 * @offset: reserved, must be 0
 * @requested_key: key wanted, see &kfi_mr_attr.requested_key
 * @flags: 0, or KFI_RMA_EVENT for a completion entry whenever a peer has used
 *   the region; an unknown flag is refused with -KFI_EBADFLAGS
 * @mr: receives the region; close it with kfi_close()
 * @context: caller's value for fid.context of the region
 *
 * As kfi_mr_regv().
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for no access or a bad range; -KFI_EBADFLAGS;
 *   -KFI_EKEYREJECTED if the key is too wide; -KFI_ENOKEY if it is taken;
 *   -KFI_EAGAIN if an event queue was bound with KFI_REG_MR and has no room for
 *   the event; -KFI_ENOMEM.
 */
static inline int kfi_mr_regsgl(struct kfid_domain *domain,
				const struct scatterlist *sgl, size_t count,
				uint64_t access, uint64_t offset,
				uint64_t requested_key, uint64_t flags,
				struct kfid_mr **mr, void *context)
{
	return domain->mr->regsgl(&domain->fid, sgl, count, access, offset,
				  requested_key, flags, mr, context);
}

/**
 * kfi_mr_regattr() - register memory described by attributes
 * @domain: domain
 * @attr: what to register and how
 * @flags: 0, or KFI_RMA_EVENT for a completion entry whenever a peer has used
 *   the region; an unknown flag is refused with -KFI_EBADFLAGS
 * @mr: receives the region; close it with kfi_close()
 *
 * The general form of kfi_mr_reg(), with a key for authorisation.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for no access or a bad range; -KFI_EBADFLAGS;
 *   -KFI_EKEYREJECTED if the key is too wide; -KFI_ENOKEY if it is taken;
 *   -KFI_EAGAIN if an event queue was bound with KFI_REG_MR and has no room for
 *   the event; -KFI_ENOMEM.
 */
static inline int kfi_mr_regattr(struct kfid_domain *domain,
				 const struct kfi_mr_attr *attr, uint64_t flags,
				 struct kfid_mr **mr)
{
	return domain->mr->regattr(&domain->fid, attr, flags, mr);
}

/**
 * kfi_mr_desc() - local descriptor of a region
 * @mr: memory region
 *
 * Context: Any context.
 *
 * Return: what data transfers take as @desc for buffers inside the region, and
 * for no others: a provider need not check that.
 */
static inline void *kfi_mr_desc(struct kfid_mr *mr)
{
	return mr->mem_desc;
}

/**
 * kfi_mr_key() - remote key of a region
 * @mr: memory region
 *
 * Context: Any context.
 *
 * Return: the key peers use; KFI_KEY_NOTAVAIL while there is none that fits,
 *   see kfi_mr_raw_attr().
 */
static inline uint64_t kfi_mr_key(struct kfid_mr *mr)
{
	return mr->key;
}

/**
 * kfi_mr_raw_attr() - read the address and raw key of a region
 * @mr: memory region
 * @base_addr: receives the address peers use for the first byte
 * @raw_key: buffer of the caller's that receives the key
 * @key_size: in: bytes at @raw_key; out: length of the key in bytes
 * @flags: reserved, must be 0
 *
 * For keys that do not fit into 64 bits (KFI_MR_RAW). Issues KFI_GET_RAW_MR.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ETOOSMALL if @raw_key is too short, with the length needed in
 *   @key_size; -KFI_ENOSYS if the provider has no raw keys.
 */
static inline int kfi_mr_raw_attr(struct kfid_mr *mr, uint64_t *base_addr,
				  uint8_t *raw_key, size_t *key_size,
				  uint64_t flags)
{
	struct kfi_mr_raw_attr attr = {
		.flags = flags,
		.base_addr = base_addr,
		.raw_key = raw_key,
		.key_size = key_size,
	};

	return mr->fid.ops->control(&mr->fid, KFI_GET_RAW_MR, &attr);
}

/**
 * kfi_mr_map_raw() - turn a peer's raw key into a 64-bit key
 * @domain: domain
 * @base_addr: address the peer got from kfi_mr_raw_attr()
 * @raw_key: key the peer got from it, the caller's
 * @key_size: bytes at @raw_key
 * @key: receives the key to use in RMA and atomic operations
 * @flags: reserved, must be 0
 *
 * Issues KFI_MAP_RAW_MR. Undo it with kfi_mr_unmap_key().
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for a malformed key; -KFI_ENOSYS if the provider has
 *   no raw keys.
 */
static inline int kfi_mr_map_raw(struct kfid_domain *domain, uint64_t base_addr,
				 uint8_t *raw_key, size_t key_size,
				 uint64_t *key, uint64_t flags)
{
	struct kfi_mr_map_raw map = {
		.flags = flags,
		.base_addr = base_addr,
		.raw_key = raw_key,
		.key_size = key_size,
		.key = key,
	};

	return domain->fid.ops->control(&domain->fid, KFI_MAP_RAW_MR, &map);
}

/**
 * kfi_mr_unmap_key() - release a key of kfi_mr_map_raw()
 * @domain: domain
 * @key: key to release
 *
 * Issues KFI_UNMAP_KEY with a pointer to the key.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for an unknown key; -KFI_ENOSYS if the provider has no
 *   raw keys.
 */
static inline int kfi_mr_unmap_key(struct kfid_domain *domain, uint64_t key)
{
	return domain->fid.ops->control(&domain->fid, KFI_UNMAP_KEY, &key);
}

/**
 * kfi_mr_bind() - bind a region to an endpoint or a counter
 * @mr: memory region
 * @bfid: fid of the endpoint or counter; busy until the region is closed
 * @flags: 0 for an endpoint; KFI_REMOTE_READ, KFI_REMOTE_WRITE or both for a
 *   counter
 *
 * To an endpoint or receive context, before kfi_mr_enable(), under
 * KFI_MR_ENDPOINT; to a counter to count the operations of peers that are done
 * to the region: with KFI_REMOTE_READ those that only read it, atomics among
 * them, with KFI_REMOTE_WRITE those that write to it. There is one counter for
 * each direction, which may be the same one for both.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for an object of another class or domain, or if an
 *   endpoint, or a counter of one of the directions, is bound already;
 *   -KFI_EBADFLAGS for other flags, of a counter also for 0; -KFI_EOPBADSTATE
 *   for an endpoint or context that is not enabled.
 */
static inline int kfi_mr_bind(struct kfid_mr *mr, struct kfid *bfid,
			      uint64_t flags)
{
	return mr->fid.ops->bind(&mr->fid, bfid, flags);
}

/**
 * kfi_mr_refresh() - tell the provider that mappings inside a region changed
 * @mr: memory region
 * @iov: array of the ranges that changed, the caller's, read before the call
 *   returns
 * @count: entries of @iov
 * @flags: reserved, must be 0
 *
 * Issues KFI_REFRESH.
 *
 * Context: Process context; may sleep.
 *
 * A provider that needs no refresh may succeed without looking at the ranges.
 *
 * Return: 0; -KFI_EINVAL for flags, or for ranges outside the region;
 *   -KFI_ENOSYS if the provider knows no refresh.
 */
static inline int kfi_mr_refresh(struct kfid_mr *mr, const struct kvec *iov,
				 size_t count, uint64_t flags)
{
	struct kfi_mr_modify modify = {
		.flags = flags,
		.attr = {
			.type = KFI_KVEC,
			.mr_iov = iov,
			.iov_count = count,
		},
	};

	return mr->fid.ops->control(&mr->fid, KFI_REFRESH, &modify);
}

/**
 * kfi_mr_enable() - make a region usable
 * @mr: memory region
 *
 * Needed under KFI_MR_ENDPOINT, after kfi_mr_bind(). Issues KFI_ENABLE.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EOPBADSTATE if no endpoint is bound, or if it is enabled
 *   already; -KFI_ENOKEY if the endpoint has a region with this key already.
 */
static inline int kfi_mr_enable(struct kfid_mr *mr)
{
	return mr->fid.ops->control(&mr->fid, KFI_ENABLE, NULL);
}

/**
 * kfi_av_open() - open an address vector
 * @domain: domain the object is opened on; gains a dependent until the object
 *   is closed
 * @attr: attributes; the provider writes back what it chose. NULL for the
 *   provider's defaults, which not every provider takes
 * @av: receives the vector; close it with kfi_close()
 * @context: caller's value, stored in the new object's fid.context and handed
 *   back by events for it; never dereferenced
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for a bad type or too many rx_ctx_bits; -KFI_ENOSYS
 *   for shared vectors if the provider has none; -KFI_ENOMEM.
 */
static inline int kfi_av_open(struct kfid_domain *domain,
			      struct kfi_av_attr *attr, struct kfid_av **av,
			      void *context)
{
	return domain->ops->av_open(domain, attr, av, context);
}

/**
 * kfi_av_bind() - bind an event queue to an address vector
 * @av: address vector
 * @fid: &kfid_eq.fid; busy until the vector is closed
 * @flags: reserved, must be 0
 *
 * Needed before insertions when the vector was opened with KFI_EVENT.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for an object of another class or fabric, or if one is
 *   bound already.
 */
static inline int kfi_av_bind(struct kfid_av *av, struct kfid *fid,
			      uint64_t flags)
{
	return av->fid.ops->bind(&av->fid, fid, flags);
}

/**
 * kfi_av_insert() - insert binary addresses
 * @av: address vector
 * @addr: array of addresses, back to back, in the domain's address format
 * @count: number of addresses
 * @kfi_addr: array of @count entries that receives the addresses to use in data
 *   transfers; may be NULL for KFI_AV_TABLE
 * @flags: 0, KFI_MORE (more insertions follow at once) or KFI_SYNC_ERR, which is
 *   -KFI_EINVAL on a vector opened with KFI_EVENT
 * @context: with KFI_EVENT the context of the events; with KFI_SYNC_ERR an
 *   array of int, one for each address, that receives the errors; else unused
 *
 * No round trip is made: a peer that is down is inserted all the same. With
 * KFI_EVENT each failed address gives an error entry whose data is its index,
 * and then one KFI_AV_COMPLETE event follows whose data is the number inserted;
 * @addr and @kfi_addr must stay valid until then.
 *
 * Context: Process context; may sleep, also while memory is being reclaimed
 *   (GFP_NOFS).
 *
 * Return: number of addresses inserted, which may be less than asked for;
 *   entries of @kfi_addr that failed are KFI_ADDR_NOTAVAIL. On a vector opened
 *   with KFI_EVENT: 0 if started; -KFI_EAGAIN if the queue has no room for the
 *   events, -KFI_ETOOSMALL if it never can have. Else -KFI_ENOEQ if KFI_EVENT
 *   was asked for and no queue is bound, -KFI_EINVAL, -KFI_ENOMEM.
 */
static inline int kfi_av_insert(struct kfid_av *av, const void *addr,
				size_t count, kfi_addr_t *kfi_addr,
				uint64_t flags, void *context)
{
	return av->ops->insert(av, addr, count, kfi_addr, flags, context);
}

/**
 * kfi_av_insertsvc() - insert the address of a node and service
 * @av: address vector
 * @node: device name, NIC number or network address, whatever the address
 *   format of the domain; or the text of a whole address, as kfi_av_straddr()
 *   gives it
 * @service: decimal port; NULL or empty only if @node has the port
 * @kfi_addr: receives the address to use in data transfers
 * @flags: 0, KFI_MORE (more insertions follow at once) or KFI_SYNC_ERR, which is
 *   -KFI_EINVAL on a vector opened with KFI_EVENT
 * @context: with KFI_EVENT the context of the events; with KFI_SYNC_ERR an
 *   array of int, one for each address, that receives the errors; else unused
 *
 * As kfi_av_insert(), for one address given as text.
 *
 * Context: Process context; may sleep.
 *
 * Return: number of addresses inserted, which may be less than asked for;
 *   entries of @kfi_addr that failed are KFI_ADDR_NOTAVAIL. On a vector opened
 *   with KFI_EVENT: 0 if started; -KFI_EAGAIN if the queue has no room for the
 *   events, -KFI_ETOOSMALL if it never can have. Else -KFI_ENOEQ if KFI_EVENT
 *   was asked for and no queue is bound; -KFI_EINVAL, also for a node or a
 *   service that names nothing; -KFI_ENOMEM. With these nothing is inserted,
 *   and neither @kfi_addr nor the errors of KFI_SYNC_ERR are written.
 */
static inline int kfi_av_insertsvc(struct kfid_av *av, const char *node,
				   const char *service, kfi_addr_t *kfi_addr,
				   uint64_t flags, void *context)
{
	return av->ops->insertsvc(av, node, service, kfi_addr, flags, context);
}

/**
 * kfi_av_insertsym() - insert addresses of consecutive nodes and services
 * @av: address vector
 * @node: first node
 * @nodecnt: number of nodes
 * @service: first service, decimal
 * @svccnt: number of services on each node
 * @kfi_addr: array of @nodecnt * @svccnt entries that receives the addresses
 * @flags: 0, KFI_MORE (more insertions follow at once) or KFI_SYNC_ERR, which is
 *   -KFI_EINVAL on a vector opened with KFI_EVENT
 * @context: with KFI_EVENT the context of the events; with KFI_SYNC_ERR an
 *   array of int, one for each address, that receives the errors; else unused
 *
 * As kfi_av_insert(), for the @nodecnt nodes whose names count up from @node,
 * each with the @svccnt services that count up from @service; the services of
 * one node are next to each other in @kfi_addr.
 *
 * Context: Process context; may sleep.
 *
 * Return: number of addresses inserted, which may be less than asked for;
 *   entries of @kfi_addr that failed are KFI_ADDR_NOTAVAIL. On a vector opened
 *   with KFI_EVENT: 0 if started; -KFI_EAGAIN if the queue has no room for the
 *   events, -KFI_ETOOSMALL if it never can have. Else -KFI_ENOEQ if KFI_EVENT
 *   was asked for and no queue is bound; -KFI_EINVAL, also for a node or a
 *   service that names nothing; -KFI_ENOMEM. With these nothing is inserted,
 *   and neither @kfi_addr nor the errors of KFI_SYNC_ERR are written.
 */
static inline int kfi_av_insertsym(struct kfid_av *av, const char *node,
				   size_t nodecnt, const char *service,
				   size_t svccnt, kfi_addr_t *kfi_addr,
				   uint64_t flags, void *context)
{
	return av->ops->insertsym(av, node, nodecnt, service, svccnt, kfi_addr,
				  flags, context);
}

/**
 * kfi_av_remove() - remove addresses
 * @av: address vector
 * @kfi_addr: array of addresses returned by an insertion, the caller's
 * @count: entries of @kfi_addr
 * @flags: reserved, must be 0
 *
 * The addresses must not be in use by operations in flight.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if one is not in the vector.
 */
static inline int kfi_av_remove(struct kfid_av *av, kfi_addr_t *kfi_addr,
				size_t count, uint64_t flags)
{
	return av->ops->remove(av, kfi_addr, count, flags);
}

/**
 * kfi_av_lookup() - binary form of an address
 * @av: address vector
 * @kfi_addr: address returned by an insertion
 * @addr: buffer of the caller's
 * @addrlen: in: bytes at @addr; out: length of the address in bytes, also if it
 *   did not fit
 *
 * Writes at most the room given; a short buffer gets the leading bytes and is
 * no error.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if @kfi_addr is not in the vector.
 */
static inline int kfi_av_lookup(struct kfid_av *av, kfi_addr_t kfi_addr,
				void *addr, size_t *addrlen)
{
	return av->ops->lookup(av, kfi_addr, addr, addrlen);
}

/**
 * kfi_av_straddr() - text form of a binary address
 * @av: address vector
 * @addr: binary address in the domain's address format
 * @buf: buffer of the caller's
 * @len: in: bytes at @buf; out: bytes the text needs, with its NUL
 *
 * Context: Process context; may sleep.
 *
 * Return: @buf, a NUL terminated string, cut if it did not fit; NULL if @addr
 *   is malformed.
 */
static inline const char *kfi_av_straddr(struct kfid_av *av, const void *addr,
					 char *buf, size_t *len)
{
	return av->ops->straddr(av, addr, buf, len);
}

/**
 * kfi_rx_addr() - address of one receive context of a scalable endpoint
 * @kfi_addr: base address, from an insertion
 * @rx_index: index of the receive context, below 2^@rx_ctx_bits
 * @rx_ctx_bits: value the address vector was opened with
 *
 * Puts @rx_index into the top @rx_ctx_bits bits.
 *
 * Context: Any context.
 *
 * Return: the address to use in data transfers; @kfi_addr itself if
 *   @rx_ctx_bits is 0.
 */
static inline kfi_addr_t kfi_rx_addr(kfi_addr_t kfi_addr, int rx_index,
				     int rx_ctx_bits)
{
	if (!rx_ctx_bits)
		return kfi_addr;

	return ((kfi_addr_t)rx_index << (64 - rx_ctx_bits)) | kfi_addr;
}

#endif /* _KFI_DOMAIN_H_ */
