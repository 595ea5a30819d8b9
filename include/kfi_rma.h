/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: remote memory access.
 */

#ifndef _KFI_RMA_H_
#define _KFI_RMA_H_

#include "kfabric.h"
#include "kfi_endpoint.h"

struct kvec;
struct bio_vec;
struct scatterlist;

/**
 * DOC: Remote memory access
 *
 * Reads and writes of a peer's memory region (kfi_mr_reg()). The rules of
 * "Posting" in kfi_endpoint.h apply.
 *
 * * The initiator's completion of a write says that the target memory has the
 *   data; that of a read that the local buffer has it.
 *
 * * The target gets a completion entry only if the operation carries remote
 *   completion data, the region was registered with KFI_RMA_EVENT, or the
 *   target's endpoint or context has the capability KFI_RMA_EVENT. It belongs to
 *   no operation of the target's: op_context is NULL. A counter bound to the
 *   region, or to the endpoint with KFI_REMOTE_READ or KFI_REMOTE_WRITE, counts
 *   arrivals.
 *
 * * An error at the peer is told by the completion, not by the return value:
 *   KFI_EKEYREJECTED or KFI_EACCES for a bad key, range or access,
 *   KFI_EHOSTUNREACH and the like, in the err member of the error entry.
 *
 * * Tagged RMA: with KFI_TAGGED in the flags of kfi_readmsg() and
 *   kfi_writemsg() the one remote range names a posted tagged receive in place
 *   of a region: its key is the tag, its addr an offset in the buffer. The
 *   receive completes and is counted as receives are, its entry with KFI_RMA
 *   and KFI_READ or KFI_WRITE; beyond the end of its buffer both sides have
 *   KFI_EMSGSIZE. Without a receive it waits for one, as messages do: then the
 *   initiator has KFI_EREMOTEIO. A receive for several messages is refused:
 *   KFI_EACCES. The initiator needs KFI_RMA and KFI_TAGGED_RMA, else the call
 *   is -KFI_EOPNOTSUPP; the target needs KFI_TAGGED_RMA, and KFI_REMOTE_READ or
 *   KFI_REMOTE_WRITE, else the operation fails with KFI_EACCES. More than one
 *   remote range is -KFI_EINVAL.
 */

/**
 * struct kfi_rma_iov - range of a peer's memory
 * @addr: start: offset in the region, or virtual address with KFI_MR_VIRT_ADDR
 * @len: length in bytes
 * @key: key of the region
 */
struct kfi_rma_iov {
	uint64_t addr;
	size_t len;
	uint64_t key;
};

/**
 * struct kfi_msg_rma - operation for kfi_readmsg() and kfi_writemsg()
 * @type: which member of the union is valid
 * @msg_iov: KFI_KVEC: array of kernel virtual ranges
 * @msg_biov: KFI_BVEC: array of page ranges
 * @msg_sgl: KFI_SGL: scatterlist
 * @desc: array of local descriptors, one for each range, or NULL
 * @iov_count: entries of the array or scatterlist
 * @addr: peer
 * @rma_iov: array of remote ranges
 * @rma_iov_count: entries of @rma_iov, at most rma_iov_limit of the transmit
 *   attributes
 * @context: caller's value, returned as op_context of the completion
 * @data: with KFI_REMOTE_CQ_DATA: value delivered in the peer's completion;
 *   else unused
 *
 * Local and remote ranges must have the same total length, else the call is
 * -KFI_EINVAL. The structure and its arrays are the caller's and free again when
 * the call returns, see "Posting" in kfi_endpoint.h.
 */
struct kfi_msg_rma {
	enum kfi_iov_type type;
	union {
		const struct kvec *msg_iov;
		const struct bio_vec *msg_biov;
		const struct scatterlist *msg_sgl;
	};
	void **desc;
	size_t iov_count;
	kfi_addr_t addr;
	const struct kfi_rma_iov *rma_iov;
	size_t rma_iov_count;
	void *context;
	uint64_t data;
};

/**
 * struct kfi_ops_rma - remote memory access operations of an endpoint
 * @size: sizeof(struct kfi_ops_rma) the provider was built with, in bytes
 * @read: read from a peer; see kfi_read()
 * @readv: read from a peer into virtual ranges; see kfi_readv()
 * @readbv: read from a peer into page ranges; see kfi_readbv()
 * @readmsg: read from a peer with flags; see kfi_readmsg()
 * @write: write to a peer; see kfi_write()
 * @writev: write to a peer from virtual ranges; see kfi_writev()
 * @writebv: write to a peer from page ranges; see kfi_writebv()
 * @writemsg: write to a peer with flags; see kfi_writemsg()
 * @inject: short write from a buffer that may be reused at once; see
 *   kfi_inject_write()
 * @writedata: write to a peer with remote completion data; see kfi_writedata()
 * @injectdata: kfi_inject_write() with remote completion data; see
 *   kfi_inject_writedata()
 * @readsgl: read from a peer into a scatterlist; see kfi_readsgl()
 * @writesgl: write to a peer from a scatterlist; see kfi_writesgl()
 *
 * All members are callable in any context and never sleep. Ownership of buffers
 * and arrays, and errors: see "Posting" in kfi_endpoint.h.
 */
struct kfi_ops_rma {
	size_t size;
	ssize_t (*read)(struct kfid_ep *ep, void *buf, size_t len, void *desc,
			kfi_addr_t src_addr, uint64_t addr, uint64_t key,
			void *context);
	ssize_t (*readv)(struct kfid_ep *ep, const struct kvec *iov,
			 void **desc, size_t count, kfi_addr_t src_addr,
			 uint64_t addr, uint64_t key, void *context);
	ssize_t (*readbv)(struct kfid_ep *ep, const struct bio_vec *biov,
			  void **desc, size_t count, kfi_addr_t src_addr,
			  uint64_t addr, uint64_t key, void *context);
	ssize_t (*readmsg)(struct kfid_ep *ep, const struct kfi_msg_rma *msg,
			   uint64_t flags);
	ssize_t (*write)(struct kfid_ep *ep, const void *buf, size_t len,
			 void *desc, kfi_addr_t dest_addr, uint64_t addr,
			 uint64_t key, void *context);
	ssize_t (*writev)(struct kfid_ep *ep, const struct kvec *iov,
			  void **desc, size_t count, kfi_addr_t dest_addr,
			  uint64_t addr, uint64_t key, void *context);
	ssize_t (*writebv)(struct kfid_ep *ep, const struct bio_vec *biov,
			   void **desc, size_t count, kfi_addr_t dest_addr,
			   uint64_t addr, uint64_t key, void *context);
	ssize_t (*writemsg)(struct kfid_ep *ep, const struct kfi_msg_rma *msg,
			    uint64_t flags);
	ssize_t (*inject)(struct kfid_ep *ep, const void *buf, size_t len,
			  kfi_addr_t dest_addr, uint64_t addr, uint64_t key);
	ssize_t (*writedata)(struct kfid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, kfi_addr_t dest_addr,
			     uint64_t addr, uint64_t key, void *context);
	ssize_t (*injectdata)(struct kfid_ep *ep, const void *buf, size_t len,
			      uint64_t data, kfi_addr_t dest_addr,
			      uint64_t addr, uint64_t key);
	ssize_t (*readsgl)(struct kfid_ep *ep, const struct scatterlist *sgl,
			   void **desc, size_t count, kfi_addr_t src_addr,
			   uint64_t addr, uint64_t key, void *context);
	ssize_t (*writesgl)(struct kfid_ep *ep, const struct scatterlist *sgl,
			    void **desc, size_t count, kfi_addr_t dest_addr,
			    uint64_t addr, uint64_t key, void *context);
};

/**
 * kfi_read() - read from a peer
 * @ep: endpoint or transmit context
 * @buf: buffer for the data
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @src_addr: peer to read from, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_read(struct kfid_ep *ep, void *buf, size_t len,
			       void *desc, kfi_addr_t src_addr, uint64_t addr,
			       uint64_t key, void *context)
{
	return ep->rma->read(ep, buf, len, desc, src_addr, addr, key, context);
}

/**
 * kfi_readv() - read from a peer into virtual ranges
 * @ep: endpoint or transmit context
 * @iov: ranges the data is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @src_addr: peer to read from, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_readv(struct kfid_ep *ep, const struct kvec *iov,
				void **desc, size_t count, kfi_addr_t src_addr,
				uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->readv(ep, iov, desc, count, src_addr, addr, key,
			      context);
}

/**
 * kfi_readbv() - read from a peer into page ranges
 * @ep: endpoint or transmit context
 * @biov: page ranges the data is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @biov
 * @src_addr: peer to read from, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_readbv(struct kfid_ep *ep, const struct bio_vec *biov,
				 void **desc, size_t count, kfi_addr_t src_addr,
				 uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->readbv(ep, biov, desc, count, src_addr, addr, key,
			       context);
}

/**
 * kfi_readsgl() - read from a peer into a scatterlist
 * @ep: endpoint or transmit context
 * @sgl: scatterlist the data is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @sgl
 * @src_addr: peer to read from, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_readsgl(struct kfid_ep *ep,
				  const struct scatterlist *sgl, void **desc,
				  size_t count, kfi_addr_t src_addr,
				  uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->readsgl(ep, sgl, desc, count, src_addr, addr, key,
				context);
}

/**
 * kfi_readmsg() - read from a peer with flags
 * @ep: endpoint or transmit context
 * @msg: local and remote ranges, peer, context and data
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_REMOTE_CQ_DATA, KFI_FENCE, KFI_TRIGGER,
 *   KFI_TAGGED
 *
 * With KFI_REMOTE_CQ_DATA the target gets an entry, as of a write, that says
 * KFI_REMOTE_READ.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_readmsg(struct kfid_ep *ep,
				  const struct kfi_msg_rma *msg, uint64_t flags)
{
	return ep->rma->readmsg(ep, msg, flags);
}

/**
 * kfi_write() - write to a peer
 * @ep: endpoint or transmit context
 * @buf: data to write
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @dest_addr: peer to write to, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_write(struct kfid_ep *ep, const void *buf, size_t len,
				void *desc, kfi_addr_t dest_addr, uint64_t addr,
				uint64_t key, void *context)
{
	return ep->rma->write(ep, buf, len, desc, dest_addr, addr, key,
			      context);
}

/**
 * kfi_writev() - write to a peer from virtual ranges
 * @ep: endpoint or transmit context
 * @iov: ranges the data is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @dest_addr: peer to write to, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_writev(struct kfid_ep *ep, const struct kvec *iov,
				 void **desc, size_t count,
				 kfi_addr_t dest_addr, uint64_t addr,
				 uint64_t key, void *context)
{
	return ep->rma->writev(ep, iov, desc, count, dest_addr, addr, key,
			       context);
}

/**
 * kfi_writebv() - write to a peer from page ranges
 * @ep: endpoint or transmit context
 * @biov: page ranges the data is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @biov
 * @dest_addr: peer to write to, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_writebv(struct kfid_ep *ep,
				  const struct bio_vec *biov, void **desc,
				  size_t count, kfi_addr_t dest_addr,
				  uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->writebv(ep, biov, desc, count, dest_addr, addr, key,
				context);
}

/**
 * kfi_writesgl() - write to a peer from a scatterlist
 * @ep: endpoint or transmit context
 * @sgl: scatterlist the data is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @sgl
 * @dest_addr: peer to write to, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_writesgl(struct kfid_ep *ep,
				   const struct scatterlist *sgl, void **desc,
				   size_t count, kfi_addr_t dest_addr,
				   uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->writesgl(ep, sgl, desc, count, dest_addr, addr, key,
				 context);
}

/**
 * kfi_writemsg() - write to a peer with flags
 * @ep: endpoint or transmit context
 * @msg: local and remote ranges, peer, context and data
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_INJECT, KFI_REMOTE_CQ_DATA, KFI_FENCE,
 *   KFI_TRIGGER, KFI_TAGGED and the completion levels
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_writemsg(struct kfid_ep *ep,
				   const struct kfi_msg_rma *msg,
				   uint64_t flags)
{
	return ep->rma->writemsg(ep, msg, flags);
}

/**
 * kfi_inject_write() - short write from a buffer that may be reused at once
 * @ep: endpoint or transmit context
 * @buf: data to write
 * @len: its length in bytes, at most inject_size of the transmit attributes
 * @dest_addr: peer to write to, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 *
 * @buf is free again on return. There is never a success entry in the
 * completion queue; counters count it all the same.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_inject_write(struct kfid_ep *ep, const void *buf,
				       size_t len, kfi_addr_t dest_addr,
				       uint64_t addr, uint64_t key)
{
	return ep->rma->inject(ep, buf, len, dest_addr, addr, key);
}

/**
 * kfi_writedata() - write to a peer with remote completion data
 * @ep: endpoint or transmit context
 * @buf: data to write
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @data: value delivered in the peer's completion, as wide as cq_data_size of
 *   the domain
 * @dest_addr: peer to write to, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @context: caller's value, returned as op_context of the completion
 *
 * The peer gets a completion entry with the data.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_writedata(struct kfid_ep *ep, const void *buf,
				    size_t len, void *desc, uint64_t data,
				    kfi_addr_t dest_addr, uint64_t addr,
				    uint64_t key, void *context)
{
	return ep->rma->writedata(ep, buf, len, desc, data, dest_addr, addr,
				  key, context);
}

/**
 * kfi_inject_writedata() - kfi_inject_write() with remote completion data
 * @ep: endpoint or transmit context
 * @buf: data to write
 * @len: its length in bytes, at most inject_size of the transmit attributes
 * @data: value delivered in the peer's completion, as wide as cq_data_size of
 *   the domain
 * @dest_addr: peer to write to, from an address vector; ignored when connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 *
 * @buf is free again on return. There is never a success entry in the
 * completion queue; counters count it all the same.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_inject_writedata(struct kfid_ep *ep, const void *buf,
					   size_t len, uint64_t data,
					   kfi_addr_t dest_addr, uint64_t addr,
					   uint64_t key)
{
	return ep->rma->injectdata(ep, buf, len, data, dest_addr, addr, key);
}

#endif /* _KFI_RMA_H_ */
