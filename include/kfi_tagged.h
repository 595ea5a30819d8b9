/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: tagged messages.
 */

#ifndef _KFI_TAGGED_H_
#define _KFI_TAGGED_H_

#include "kfabric.h"
#include "kfi_endpoint.h"

struct kvec;
struct bio_vec;
struct scatterlist;

/**
 * DOC: Tagged messages
 *
 * Messages that carry a 64-bit tag; a receive takes the first message whose tag
 * equals its own outside the ignore mask. Apart from that, the rules of
 * "Posting" in kfi_endpoint.h apply, and tagged and untagged messages do not
 * meet.
 *
 * With KFI_TAGGED_RMA a posted tagged receive is also a one-shot memory region
 * whose key is its tag: one operation of a peer may read or write it, and may
 * be shorter than the buffer.
 */

/*
 * Flag of kfi_trecvmsg(). With KFI_PEEK: if a matching message has arrived, set
 * it aside for this context. Without KFI_PEEK: receive, or with KFI_DISCARD
 * drop, the message that was set aside for the same context. It is not kept for
 * ever, and its sender may take it back: that it is gone, or never was there, is
 * told by an entry in error, KFI_ENOMSG, and the call returns 0.
 */
#define KFI_CLAIM		(1ULL << 59)

/*
 * Flag of kfi_trecvmsg() with KFI_PEEK or KFI_CLAIM: drop the message. The
 * completion tells what it was; no buffer is needed.
 */
#define KFI_DISCARD		(1ULL << 58)

/**
 * struct kfi_msg_tagged - message for kfi_tsendmsg() and kfi_trecvmsg()
 * @type: which member of the union is valid
 * @msg_iov: KFI_KVEC: array of kernel virtual ranges
 * @msg_biov: KFI_BVEC: array of page ranges
 * @msg_sgl: KFI_SGL: scatterlist
 * @desc: array of local descriptors, one for each range, or NULL
 * @iov_count: entries of the array or scatterlist
 * @addr: send: destination; receive: source to accept from (KFI_DIRECTED_RECV)
 *   or KFI_ADDR_UNSPEC
 * @tag: tag of the message
 * @ignore: receive: bits of the tag that need not match; send: unused
 * @context: caller's value, returned as op_context of the completion
 * @data: send with KFI_REMOTE_CQ_DATA: value delivered in the receiver's
 *   completion; else unused
 *
 * The structure and its arrays are the caller's and free again when the call
 * returns, see "Posting" in kfi_endpoint.h.
 */
struct kfi_msg_tagged {
	enum kfi_iov_type type;
	union {
		const struct kvec *msg_iov;
		const struct bio_vec *msg_biov;
		const struct scatterlist *msg_sgl;
	};
	void **desc;
	size_t iov_count;
	kfi_addr_t addr;
	uint64_t tag;
	uint64_t ignore;
	void *context;
	uint64_t data;
};

/**
 * struct kfi_ops_tagged - tagged message operations of an endpoint
 * @size: sizeof(struct kfi_ops_tagged) the provider was built with, in bytes
 * @recv: post a tagged receive buffer; see kfi_trecv()
 * @recvv: post a tagged receive into virtual ranges; see kfi_trecvv()
 * @recvbv: post a tagged receive into page ranges; see kfi_trecvbv()
 * @recvmsg: post or search a tagged receive with flags; see kfi_trecvmsg()
 * @send: send a tagged message; see kfi_tsend()
 * @sendv: send a tagged message gathered from virtual ranges; see kfi_tsendv()
 * @sendbv: send a tagged message gathered from page ranges; see kfi_tsendbv()
 * @sendmsg: send a tagged message with flags; see kfi_tsendmsg()
 * @inject: send a short tagged message from a buffer that may be reused at
 *   once; see kfi_tinject()
 * @senddata: send a tagged message with remote completion data; see
 *   kfi_tsenddata()
 * @injectdata: kfi_tinject() with remote completion data; see kfi_tinjectdata()
 * @recvsgl: post a tagged receive into a scatterlist; see kfi_trecvsgl()
 * @sendsgl: send a tagged message gathered from a scatterlist; see
 *   kfi_tsendsgl()
 *
 * All members are callable in any context and never sleep. Ownership of buffers
 * and arrays, and errors: see "Posting" in kfi_endpoint.h.
 */
struct kfi_ops_tagged {
	size_t size;
	ssize_t (*recv)(struct kfid_ep *ep, void *buf, size_t len, void *desc,
			kfi_addr_t src_addr, uint64_t tag, uint64_t ignore,
			void *context);
	ssize_t (*recvv)(struct kfid_ep *ep, const struct kvec *iov,
			 void **desc, size_t count, kfi_addr_t src_addr,
			 uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*recvbv)(struct kfid_ep *ep, const struct bio_vec *biov,
			  void **desc, size_t count, kfi_addr_t src_addr,
			  uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*recvmsg)(struct kfid_ep *ep, const struct kfi_msg_tagged *msg,
			   uint64_t flags);
	ssize_t (*send)(struct kfid_ep *ep, const void *buf, size_t len,
			void *desc, kfi_addr_t dest_addr, uint64_t tag,
			void *context);
	ssize_t (*sendv)(struct kfid_ep *ep, const struct kvec *iov,
			 void **desc, size_t count, kfi_addr_t dest_addr,
			 uint64_t tag, void *context);
	ssize_t (*sendbv)(struct kfid_ep *ep, const struct bio_vec *biov,
			  void **desc, size_t count, kfi_addr_t dest_addr,
			  uint64_t tag, void *context);
	ssize_t (*sendmsg)(struct kfid_ep *ep, const struct kfi_msg_tagged *msg,
			   uint64_t flags);
	ssize_t (*inject)(struct kfid_ep *ep, const void *buf, size_t len,
			  kfi_addr_t dest_addr, uint64_t tag);
	ssize_t (*senddata)(struct kfid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, kfi_addr_t dest_addr,
			    uint64_t tag, void *context);
	ssize_t (*injectdata)(struct kfid_ep *ep, const void *buf, size_t len,
			      uint64_t data, kfi_addr_t dest_addr,
			      uint64_t tag);
	ssize_t (*recvsgl)(struct kfid_ep *ep, const struct scatterlist *sgl,
			   void **desc, size_t count, kfi_addr_t src_addr,
			   uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*sendsgl)(struct kfid_ep *ep, const struct scatterlist *sgl,
			   void **desc, size_t count, kfi_addr_t dest_addr,
			   uint64_t tag, void *context);
};

/**
 * kfi_trecv() - post a tagged receive buffer
 * @ep: endpoint or receive context
 * @buf: buffer for the message
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @tag: tag to match
 * @ignore: bits of the tag that need not match
 * @context: caller's value, returned as op_context of the completion
 *
 * Among the messages that match, those of one sending context are taken in
 * order. A message longer than the room completes with KFI_EMSGSIZE: len is
 * what was placed, olen the bytes that did not fit.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_trecv(struct kfid_ep *ep, void *buf, size_t len,
				void *desc, kfi_addr_t src_addr, uint64_t tag,
				uint64_t ignore, void *context)
{
	return ep->tagged->recv(ep, buf, len, desc, src_addr, tag, ignore,
				context);
}

/**
 * kfi_trecvv() - post a tagged receive into virtual ranges
 * @ep: endpoint or receive context
 * @iov: ranges the message is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @tag: tag to match
 * @ignore: bits of the tag that need not match
 * @context: caller's value, returned as op_context of the completion
 *
 * As kfi_trecv().
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_trecvv(struct kfid_ep *ep, const struct kvec *iov,
				 void **desc, size_t count, kfi_addr_t src_addr,
				 uint64_t tag, uint64_t ignore, void *context)
{
	return ep->tagged->recvv(ep, iov, desc, count, src_addr, tag, ignore,
				 context);
}

/**
 * kfi_trecvbv() - post a tagged receive into page ranges
 * @ep: endpoint or receive context
 * @biov: page ranges the message is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @biov
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @tag: tag to match
 * @ignore: bits of the tag that need not match
 * @context: caller's value, returned as op_context of the completion
 *
 * As kfi_trecv().
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_trecvbv(struct kfid_ep *ep,
				  const struct bio_vec *biov, void **desc,
				  size_t count, kfi_addr_t src_addr,
				  uint64_t tag, uint64_t ignore, void *context)
{
	return ep->tagged->recvbv(ep, biov, desc, count, src_addr, tag, ignore,
				  context);
}

/**
 * kfi_trecvsgl() - post a tagged receive into a scatterlist
 * @ep: endpoint or receive context
 * @sgl: scatterlist the message is scattered to
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @sgl
 * @src_addr: source to accept from if the endpoint has KFI_DIRECTED_RECV, or
 *   KFI_ADDR_UNSPEC for any; else ignored
 * @tag: tag to match
 * @ignore: bits of the tag that need not match
 * @context: caller's value, returned as op_context of the completion
 *
 * As kfi_trecv().
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_trecvsgl(struct kfid_ep *ep,
				   const struct scatterlist *sgl, void **desc,
				   size_t count, kfi_addr_t src_addr,
				   uint64_t tag, uint64_t ignore, void *context)
{
	return ep->tagged->recvsgl(ep, sgl, desc, count, src_addr, tag, ignore,
				   context);
}

/**
 * kfi_trecvmsg() - post or search a tagged receive with flags
 * @ep: endpoint or receive context
 * @msg: buffers, source, tag and context
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_MULTI_RECV, KFI_PEEK, KFI_CLAIM,
 *   KFI_DISCARD, KFI_TRIGGER
 *
 * With KFI_PEEK nothing is posted: a message that has arrived and matches is
 * reported by an entry with its length, tag and data, and stays unless KFI_CLAIM
 * or KFI_DISCARD is given too; if there is none the entry is in error,
 * KFI_ENOMSG. The entry is what the call is for: it comes without KFI_COMPLETION
 * also where others need that (KFI_SELECTIVE_COMPLETION), it is not counted, and
 * without a completion queue the call is refused, -KFI_EBADFLAGS, as KFI_CLAIM
 * is. So it is with KFI_DISCARD of what was claimed.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_trecvmsg(struct kfid_ep *ep,
				   const struct kfi_msg_tagged *msg,
				   uint64_t flags)
{
	return ep->tagged->recvmsg(ep, msg, flags);
}

/**
 * kfi_tsend() - send a tagged message
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @dest_addr: destination, from an address vector; ignored when connected
 * @tag: tag of the message
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tsend(struct kfid_ep *ep, const void *buf, size_t len,
				void *desc, kfi_addr_t dest_addr, uint64_t tag,
				void *context)
{
	return ep->tagged->send(ep, buf, len, desc, dest_addr, tag, context);
}

/**
 * kfi_tsendv() - send a tagged message gathered from virtual ranges
 * @ep: endpoint or transmit context
 * @iov: ranges the message is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @dest_addr: destination, from an address vector; ignored when connected
 * @tag: tag of the message
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tsendv(struct kfid_ep *ep, const struct kvec *iov,
				 void **desc, size_t count,
				 kfi_addr_t dest_addr, uint64_t tag,
				 void *context)
{
	return ep->tagged->sendv(ep, iov, desc, count, dest_addr, tag, context);
}

/**
 * kfi_tsendbv() - send a tagged message gathered from page ranges
 * @ep: endpoint or transmit context
 * @biov: page ranges the message is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @biov
 * @dest_addr: destination, from an address vector; ignored when connected
 * @tag: tag of the message
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tsendbv(struct kfid_ep *ep,
				  const struct bio_vec *biov, void **desc,
				  size_t count, kfi_addr_t dest_addr,
				  uint64_t tag, void *context)
{
	return ep->tagged->sendbv(ep, biov, desc, count, dest_addr, tag,
				  context);
}

/**
 * kfi_tsendsgl() - send a tagged message gathered from a scatterlist
 * @ep: endpoint or transmit context
 * @sgl: scatterlist the message is gathered from
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @sgl
 * @dest_addr: destination, from an address vector; ignored when connected
 * @tag: tag of the message
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tsendsgl(struct kfid_ep *ep,
				   const struct scatterlist *sgl, void **desc,
				   size_t count, kfi_addr_t dest_addr,
				   uint64_t tag, void *context)
{
	return ep->tagged->sendsgl(ep, sgl, desc, count, dest_addr, tag,
				   context);
}

/**
 * kfi_tsendmsg() - send a tagged message with flags
 * @ep: endpoint or transmit context
 * @msg: buffers, destination, tag, context and data
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_INJECT, KFI_REMOTE_CQ_DATA, KFI_FENCE,
 *   KFI_TRIGGER and the completion levels
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tsendmsg(struct kfid_ep *ep,
				   const struct kfi_msg_tagged *msg,
				   uint64_t flags)
{
	return ep->tagged->sendmsg(ep, msg, flags);
}

/**
 * kfi_tinject() - send a short tagged message from a buffer that may be reused
 *   at once
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes, at most inject_size of the transmit attributes
 * @dest_addr: destination, from an address vector; ignored when connected
 * @tag: tag of the message
 *
 * @buf is free again on return. There is never a success entry in the
 * completion queue; counters count it all the same.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tinject(struct kfid_ep *ep, const void *buf,
				  size_t len, kfi_addr_t dest_addr,
				  uint64_t tag)
{
	return ep->tagged->inject(ep, buf, len, dest_addr, tag);
}

/**
 * kfi_tsenddata() - send a tagged message with remote completion data
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes
 * @desc: local descriptor, or NULL
 * @data: value delivered in the receiver's completion, as wide as cq_data_size
 *   of the domain
 * @dest_addr: destination, from an address vector; ignored when connected
 * @tag: tag of the message
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tsenddata(struct kfid_ep *ep, const void *buf,
				    size_t len, void *desc, uint64_t data,
				    kfi_addr_t dest_addr, uint64_t tag,
				    void *context)
{
	return ep->tagged->senddata(ep, buf, len, desc, data, dest_addr, tag,
				    context);
}

/**
 * kfi_tinjectdata() - kfi_tinject() with remote completion data
 * @ep: endpoint or transmit context
 * @buf: data to send
 * @len: its length in bytes, at most inject_size of the transmit attributes
 * @data: value delivered in the receiver's completion, as wide as cq_data_size
 *   of the domain
 * @dest_addr: destination, from an address vector; ignored when connected
 * @tag: tag of the message
 *
 * @buf is free again on return. There is never a success entry in the
 * completion queue; counters count it all the same.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_tinjectdata(struct kfid_ep *ep, const void *buf,
				      size_t len, uint64_t data,
				      kfi_addr_t dest_addr, uint64_t tag)
{
	return ep->tagged->injectdata(ep, buf, len, data, dest_addr, tag);
}

#endif /* _KFI_TAGGED_H_ */
