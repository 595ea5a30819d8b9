/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: atomic operations.
 */

#ifndef _KFI_ATOMIC_H_
#define _KFI_ATOMIC_H_

#include "kfi_endpoint.h"
#include "kfi_errno.h"

/**
 * DOC: Atomic operations
 *
 * Operations on elements of a peer's memory region. Three forms: kfi_atomic()
 * changes the target; kfi_fetch_atomic() changes it and returns the old value;
 * kfi_compare_atomic() changes it if a comparison holds, and returns the old
 * value. enum kfi_op says which operation goes with which form, enum
 * kfi_datatype what the elements are.
 *
 * * The rules of "Posting" in kfi_endpoint.h apply, also to result and compare
 *   buffers and their arrays; lengths are given in elements, not in bytes.
 *   Ranges are kernel virtual ones; there are no page range or scatterlist
 *   forms.
 *
 * * Each element is changed in one atomic step with regard to every other
 *   atomic operation through the provider; the elements of an array are changed
 *   one by one.
 *
 * * The initiator's completion says that the target has the new value and that
 *   the result buffer has the old one.
 *
 * * The initiator needs KFI_ATOMIC, and KFI_WRITE for the first form, KFI_READ
 *   for the others. Of the region an operation needs KFI_REMOTE_WRITE if it
 *   changes it, and KFI_REMOTE_READ if it returns the old value:
 *   KFI_ATOMIC_READ needs only that.
 *
 * * The target gets a completion entry as of RMA, see kfi_rma.h, also with
 *   KFI_REMOTE_CQ_DATA in the flags of a call.
 *
 * * Operands, results, values to compare with and target ranges have as many
 *   elements in all each, however these are spread over ranges, else the call is
 *   -KFI_EINVAL. KFI_ATOMIC_READ has no operands: where no target ranges are
 *   given, the results say how many there are.
 *
 * * No elements at all are -KFI_EINVAL.
 *
 * * A type or operation the provider lacks is refused with -KFI_EOPNOTSUPP;
 *   kfi_query_atomic() and the valid calls tell before.
 */

/**
 * struct kfi_ioc - local range of elements
 * @addr: first element
 * @count: number of elements
 */
struct kfi_ioc {
	void *addr;
	size_t count;
};

/**
 * struct kfi_rma_ioc - range of elements in a peer's memory
 * @addr: start: offset in the region, or virtual address with KFI_MR_VIRT_ADDR
 * @count: number of elements
 * @key: key of the region
 */
struct kfi_rma_ioc {
	uint64_t addr;
	size_t count;
	uint64_t key;
};

/**
 * struct kfi_atomic_attr - answer of kfi_query_atomic()
 * @count: most elements in one operation
 * @size: bytes of one element
 */
struct kfi_atomic_attr {
	size_t count;
	size_t size;
};

/**
 * struct kfi_msg_atomic - operation for kfi_atomicmsg(), kfi_fetch_atomicmsg()
 *   and kfi_compare_atomicmsg()
 * @msg_iov: array of operand ranges; unused by KFI_ATOMIC_READ
 * @desc: array of local descriptors, one for each range, or NULL
 * @iov_count: entries of @msg_iov
 * @addr: peer that holds the target
 * @rma_iov: array of target ranges
 * @rma_iov_count: entries of @rma_iov, at most rma_iov_limit of the transmit
 *   attributes
 * @datatype: type of the elements
 * @op: operation
 * @context: caller's value, returned as op_context of the completion
 * @data: with KFI_REMOTE_CQ_DATA: value delivered in the peer's completion;
 *   else unused
 *
 * The structure and its arrays are the caller's and free again when the call
 * returns, see "Posting" in kfi_endpoint.h.
 */
struct kfi_msg_atomic {
	const struct kfi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
	kfi_addr_t addr;
	const struct kfi_rma_ioc *rma_iov;
	size_t rma_iov_count;
	enum kfi_datatype datatype;
	enum kfi_op op;
	void *context;
	uint64_t data;
};

/**
 * struct kfi_msg_fetch - result ranges of a deferred fetch or compare operation
 * @msg_iov: array of ranges for the old target values, of as many elements as
 *   the operation has
 * @desc: array of local descriptors, one for each range, or NULL
 * @iov_count: entries of @msg_iov
 */
struct kfi_msg_fetch {
	struct kfi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

/**
 * struct kfi_msg_compare - compare ranges of a deferred compare operation
 * @msg_iov: array of ranges of the values to compare with, of as many elements
 *   as the operation has
 * @desc: array of local descriptors, one for each range, or NULL
 * @iov_count: entries of @msg_iov
 */
struct kfi_msg_compare {
	const struct kfi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

/**
 * struct kfi_ops_atomic - atomic operations of an endpoint
 * @size: sizeof(struct kfi_ops_atomic) the provider was built with, in bytes
 * @write: change elements at a peer; see kfi_atomic()
 * @writev: change elements at a peer, operands in ranges; see kfi_atomicv()
 * @writemsg: change elements at a peer, with flags; see kfi_atomicmsg()
 * @inject: change elements at a peer, operands in a buffer that may be reused
 *   at once; see kfi_inject_atomic()
 * @readwrite: change elements at a peer and fetch the old values; see
 *   kfi_fetch_atomic()
 * @readwritev: change elements at a peer and fetch the old values, in ranges;
 *   see kfi_fetch_atomicv()
 * @readwritemsg: change elements at a peer and fetch the old values, with
 *   flags; see kfi_fetch_atomicmsg()
 * @compwrite: change elements at a peer under a condition and fetch the old
 *   values; see kfi_compare_atomic()
 * @compwritev: change elements at a peer under a condition and fetch the old
 *   values, in ranges; see kfi_compare_atomicv()
 * @compwritemsg: change elements at a peer under a condition and fetch the old
 *   values, with flags; see kfi_compare_atomicmsg()
 * @writevalid: whether kfi_atomic() supports a type and operation; see
 *   kfi_atomicvalid()
 * @readwritevalid: whether kfi_fetch_atomic() supports a type and operation;
 *   see kfi_fetch_atomicvalid()
 * @compwritevalid: whether kfi_compare_atomic() supports a type and operation;
 *   see kfi_compare_atomicvalid()
 *
 * All members are callable in any context and never sleep. Ownership of buffers
 * and arrays, and errors: see "Posting" in kfi_endpoint.h.
 */
struct kfi_ops_atomic {
	size_t size;
	ssize_t (*write)(struct kfid_ep *ep, const void *buf, size_t count,
			 void *desc, kfi_addr_t dest_addr, uint64_t addr,
			 uint64_t key, enum kfi_datatype datatype,
			 enum kfi_op op, void *context);
	ssize_t (*writev)(struct kfid_ep *ep, const struct kfi_ioc *iov,
			  void **desc, size_t count, kfi_addr_t dest_addr,
			  uint64_t addr, uint64_t key,
			  enum kfi_datatype datatype, enum kfi_op op,
			  void *context);
	ssize_t (*writemsg)(struct kfid_ep *ep,
			    const struct kfi_msg_atomic *msg, uint64_t flags);
	ssize_t (*inject)(struct kfid_ep *ep, const void *buf, size_t count,
			  kfi_addr_t dest_addr, uint64_t addr, uint64_t key,
			  enum kfi_datatype datatype, enum kfi_op op);
	ssize_t (*readwrite)(struct kfid_ep *ep, const void *buf, size_t count,
			     void *desc, void *result, void *result_desc,
			     kfi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum kfi_datatype datatype, enum kfi_op op,
			     void *context);
	ssize_t (*readwritev)(struct kfid_ep *ep, const struct kfi_ioc *iov,
			      void **desc, size_t count,
			      struct kfi_ioc *resultv, void **result_desc,
			      size_t result_count, kfi_addr_t dest_addr,
			      uint64_t addr, uint64_t key,
			      enum kfi_datatype datatype, enum kfi_op op,
			      void *context);
	ssize_t (*readwritemsg)(struct kfid_ep *ep,
				const struct kfi_msg_atomic *msg,
				struct kfi_ioc *resultv, void **result_desc,
				size_t result_count, uint64_t flags);
	ssize_t (*compwrite)(struct kfid_ep *ep, const void *buf, size_t count,
			     void *desc, const void *compare,
			     void *compare_desc, void *result,
			     void *result_desc, kfi_addr_t dest_addr,
			     uint64_t addr, uint64_t key,
			     enum kfi_datatype datatype, enum kfi_op op,
			     void *context);
	ssize_t (*compwritev)(struct kfid_ep *ep, const struct kfi_ioc *iov,
			      void **desc, size_t count,
			      const struct kfi_ioc *comparev,
			      void **compare_desc, size_t compare_count,
			      struct kfi_ioc *resultv, void **result_desc,
			      size_t result_count, kfi_addr_t dest_addr,
			      uint64_t addr, uint64_t key,
			      enum kfi_datatype datatype, enum kfi_op op,
			      void *context);
	ssize_t (*compwritemsg)(struct kfid_ep *ep,
				const struct kfi_msg_atomic *msg,
				const struct kfi_ioc *comparev,
				void **compare_desc, size_t compare_count,
				struct kfi_ioc *resultv, void **result_desc,
				size_t result_count, uint64_t flags);
	int (*writevalid)(struct kfid_ep *ep, enum kfi_datatype datatype,
			  enum kfi_op op, size_t *count);
	int (*readwritevalid)(struct kfid_ep *ep, enum kfi_datatype datatype,
			      enum kfi_op op, size_t *count);
	int (*compwritevalid)(struct kfid_ep *ep, enum kfi_datatype datatype,
			      enum kfi_op op, size_t *count);
};

/**
 * kfi_atomic() - change elements at a peer
 * @ep: endpoint or transmit context
 * @buf: operands, one for each element
 * @count: number of elements
 * @desc: local descriptor, or NULL
 * @dest_addr: peer that holds the target, from an address vector; ignored when
 *   connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @datatype: type of the elements
 * @op: operation
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_atomic(struct kfid_ep *ep, const void *buf,
				 size_t count, void *desc, kfi_addr_t dest_addr,
				 uint64_t addr, uint64_t key,
				 enum kfi_datatype datatype, enum kfi_op op,
				 void *context)
{
	return ep->atomic->write(ep, buf, count, desc, dest_addr, addr, key,
				 datatype, op, context);
}

/**
 * kfi_atomicv() - change elements at a peer, operands in ranges
 * @ep: endpoint or transmit context
 * @iov: ranges of operands
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @dest_addr: peer that holds the target, from an address vector; ignored when
 *   connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @datatype: type of the elements
 * @op: operation
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_atomicv(struct kfid_ep *ep, const struct kfi_ioc *iov,
				  void **desc, size_t count,
				  kfi_addr_t dest_addr, uint64_t addr,
				  uint64_t key, enum kfi_datatype datatype,
				  enum kfi_op op, void *context)
{
	return ep->atomic->writev(ep, iov, desc, count, dest_addr, addr, key,
				  datatype, op, context);
}

/**
 * kfi_atomicmsg() - change elements at a peer, with flags
 * @ep: endpoint or transmit context
 * @msg: operands, targets, operation and context
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_INJECT, KFI_REMOTE_CQ_DATA, KFI_FENCE,
 *   KFI_TRIGGER and the completion levels
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_atomicmsg(struct kfid_ep *ep,
				    const struct kfi_msg_atomic *msg,
				    uint64_t flags)
{
	return ep->atomic->writemsg(ep, msg, flags);
}

/**
 * kfi_inject_atomic() - change elements at a peer, operands in a buffer that
 *   may be reused at once
 * @ep: endpoint or transmit context
 * @buf: operands, one for each element
 * @count: number of elements; at most inject_size bytes of the transmit
 *   attributes
 * @dest_addr: peer that holds the target, from an address vector; ignored when
 *   connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @datatype: type of the elements
 * @op: operation
 *
 * @buf is free again on return. There is never a success entry in the
 * completion queue; counters count it all the same.
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_inject_atomic(struct kfid_ep *ep, const void *buf,
					size_t count, kfi_addr_t dest_addr,
					uint64_t addr, uint64_t key,
					enum kfi_datatype datatype,
					enum kfi_op op)
{
	return ep->atomic->inject(ep, buf, count, dest_addr, addr, key,
				  datatype, op);
}

/**
 * kfi_fetch_atomic() - change elements at a peer and fetch the old values
 * @ep: endpoint or transmit context
 * @buf: operands, one for each element; unused by KFI_ATOMIC_READ
 * @count: number of elements
 * @desc: local descriptor, or NULL
 * @result: buffer for the old target values, one for each element
 * @result_desc: local descriptor of @result, or NULL
 * @dest_addr: peer that holds the target, from an address vector; ignored when
 *   connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @datatype: type of the elements
 * @op: operation
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_fetch_atomic(struct kfid_ep *ep, const void *buf,
				       size_t count, void *desc, void *result,
				       void *result_desc, kfi_addr_t dest_addr,
				       uint64_t addr, uint64_t key,
				       enum kfi_datatype datatype,
				       enum kfi_op op, void *context)
{
	return ep->atomic->readwrite(ep, buf, count, desc, result, result_desc,
				     dest_addr, addr, key, datatype, op,
				     context);
}

/**
 * kfi_fetch_atomicv() - change elements at a peer and fetch the old values, in
 *   ranges
 * @ep: endpoint or transmit context
 * @iov: ranges of operands
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @resultv: ranges for the old target values; the array is the caller's, as
 *   @iov
 * @result_desc: local descriptors, one for each entry of @resultv, or NULL
 * @result_count: entries of @resultv
 * @dest_addr: peer that holds the target, from an address vector; ignored when
 *   connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @datatype: type of the elements
 * @op: operation
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_fetch_atomicv(struct kfid_ep *ep,
					const struct kfi_ioc *iov, void **desc,
					size_t count, struct kfi_ioc *resultv,
					void **result_desc, size_t result_count,
					kfi_addr_t dest_addr, uint64_t addr,
					uint64_t key,
					enum kfi_datatype datatype,
					enum kfi_op op, void *context)
{
	return ep->atomic->readwritev(ep, iov, desc, count, resultv,
				      result_desc, result_count, dest_addr,
				      addr, key, datatype, op, context);
}

/**
 * kfi_fetch_atomicmsg() - change elements at a peer and fetch the old values,
 *   with flags
 * @ep: endpoint or transmit context
 * @msg: operands, targets, operation and context
 * @resultv: ranges for the old target values; the array is the caller's, as
 *   @iov
 * @result_desc: local descriptors, one for each entry of @resultv, or NULL
 * @result_count: entries of @resultv
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_REMOTE_CQ_DATA, KFI_FENCE, KFI_TRIGGER
 *   and the completion levels
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_fetch_atomicmsg(struct kfid_ep *ep,
					  const struct kfi_msg_atomic *msg,
					  struct kfi_ioc *resultv,
					  void **result_desc,
					  size_t result_count, uint64_t flags)
{
	return ep->atomic->readwritemsg(ep, msg, resultv, result_desc,
					result_count, flags);
}

/**
 * kfi_compare_atomic() - change elements at a peer under a condition and fetch
 *   the old values
 * @ep: endpoint or transmit context
 * @buf: operands, one for each element
 * @count: number of elements
 * @desc: local descriptor, or NULL
 * @compare: values to compare with, one for each element
 * @compare_desc: local descriptor of @compare, or NULL
 * @result: buffer for the old target values, one for each element
 * @result_desc: local descriptor of @result, or NULL
 * @dest_addr: peer that holds the target, from an address vector; ignored when
 *   connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @datatype: type of the elements
 * @op: operation
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_compare_atomic(struct kfid_ep *ep, const void *buf,
					 size_t count, void *desc,
					 const void *compare,
					 void *compare_desc, void *result,
					 void *result_desc,
					 kfi_addr_t dest_addr, uint64_t addr,
					 uint64_t key,
					 enum kfi_datatype datatype,
					 enum kfi_op op, void *context)
{
	return ep->atomic->compwrite(ep, buf, count, desc, compare,
				     compare_desc, result, result_desc,
				     dest_addr, addr, key, datatype, op,
				     context);
}

/**
 * kfi_compare_atomicv() - change elements at a peer under a condition and fetch
 *   the old values, in ranges
 * @ep: endpoint or transmit context
 * @iov: ranges of operands
 * @desc: local descriptors, one for each range, or NULL
 * @count: entries of @iov
 * @comparev: ranges of values to compare with; the array is the caller's, as
 *   @iov
 * @compare_desc: local descriptors, one for each entry of @comparev, or NULL
 * @compare_count: entries of @comparev
 * @resultv: ranges for the old target values; the array is the caller's, as
 *   @iov
 * @result_desc: local descriptors, one for each entry of @resultv, or NULL
 * @result_count: entries of @resultv
 * @dest_addr: peer that holds the target, from an address vector; ignored when
 *   connected
 * @addr: start in the peer's region: offset, or virtual address with
 *   KFI_MR_VIRT_ADDR
 * @key: key of the peer's region
 * @datatype: type of the elements
 * @op: operation
 * @context: caller's value, returned as op_context of the completion
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_compare_atomicv(struct kfid_ep *ep,
					  const struct kfi_ioc *iov,
					  void **desc, size_t count,
					  const struct kfi_ioc *comparev,
					  void **compare_desc,
					  size_t compare_count,
					  struct kfi_ioc *resultv,
					  void **result_desc,
					  size_t result_count,
					  kfi_addr_t dest_addr, uint64_t addr,
					  uint64_t key,
					  enum kfi_datatype datatype,
					  enum kfi_op op, void *context)
{
	return ep->atomic->compwritev(ep, iov, desc, count, comparev,
				      compare_desc, compare_count, resultv,
				      result_desc, result_count, dest_addr,
				      addr, key, datatype, op, context);
}

/**
 * kfi_compare_atomicmsg() - change elements at a peer under a condition and
 *   fetch the old values, with flags
 * @ep: endpoint or transmit context
 * @msg: operands, targets, operation and context
 * @comparev: ranges of values to compare with; the array is the caller's, as
 *   @iov
 * @compare_desc: local descriptors, one for each entry of @comparev, or NULL
 * @compare_count: entries of @comparev
 * @resultv: ranges for the old target values; the array is the caller's, as
 *   @iov
 * @result_desc: local descriptors, one for each entry of @resultv, or NULL
 * @result_count: entries of @resultv
 * @flags: KFI_COMPLETION, KFI_MORE, KFI_REMOTE_CQ_DATA, KFI_FENCE, KFI_TRIGGER
 *   and the completion levels
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0 if accepted; -KFI_EAGAIN if the queue is full, see "Posting"; other
 *   negative error numbers.
 */
static inline ssize_t kfi_compare_atomicmsg(struct kfid_ep *ep,
					    const struct kfi_msg_atomic *msg,
					    const struct kfi_ioc *comparev,
					    void **compare_desc,
					    size_t compare_count,
					    struct kfi_ioc *resultv,
					    void **result_desc,
					    size_t result_count, uint64_t flags)
{
	return ep->atomic->compwritemsg(ep, msg, comparev, compare_desc,
					compare_count, resultv, result_desc,
					result_count, flags);
}

/**
 * kfi_atomicvalid() - whether kfi_atomic() supports a type and operation
 * @ep: endpoint or transmit context
 * @datatype: type of the elements
 * @op: operation
 * @count: receives the most elements in one operation
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0; -KFI_EOPNOTSUPP if the endpoint lacks the type or operation in
 *   this form, or the capability to post it: a receive context has none.
 */
static inline int kfi_atomicvalid(struct kfid_ep *ep,
				  enum kfi_datatype datatype, enum kfi_op op,
				  size_t *count)
{
	return ep->atomic->writevalid(ep, datatype, op, count);
}

/**
 * kfi_fetch_atomicvalid() - whether kfi_fetch_atomic() supports a type and
 *   operation
 * @ep: endpoint or transmit context
 * @datatype: type of the elements
 * @op: operation
 * @count: receives the most elements in one operation
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0; -KFI_EOPNOTSUPP if the endpoint lacks the type or operation in
 *   this form, or the capability to post it: a receive context has none.
 */
static inline int kfi_fetch_atomicvalid(struct kfid_ep *ep,
					enum kfi_datatype datatype,
					enum kfi_op op, size_t *count)
{
	return ep->atomic->readwritevalid(ep, datatype, op, count);
}

/**
 * kfi_compare_atomicvalid() - whether kfi_compare_atomic() supports a type and
 *   operation
 * @ep: endpoint or transmit context
 * @datatype: type of the elements
 * @op: operation
 * @count: receives the most elements in one operation
 *
 * Context: Any, including hard interrupt; never sleeps.
 *
 * Return: 0; -KFI_EOPNOTSUPP if the endpoint lacks the type or operation in
 *   this form, or the capability to post it: a receive context has none.
 */
static inline int kfi_compare_atomicvalid(struct kfid_ep *ep,
					  enum kfi_datatype datatype,
					  enum kfi_op op, size_t *count)
{
	return ep->atomic->compwritevalid(ep, datatype, op, count);
}

/**
 * kfi_query_atomic() - whether and how a domain supports a type and operation
 * @domain: domain
 * @datatype: type of the elements
 * @op: operation
 * @attr: receives the limits
 * @flags: must be 0: kfabric 1.7 names no flags for the fetch and compare
 *   forms, so the form follows from @op
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EOPNOTSUPP if the domain lacks the type or operation;
 *   -KFI_EINVAL; -KFI_ENOSYS if the ops table is too short to have the slot.
 */
static inline int kfi_query_atomic(struct kfid_domain *domain,
				   enum kfi_datatype datatype, enum kfi_op op,
				   struct kfi_atomic_attr *attr, uint64_t flags)
{
	return KFI_CHECK_OP(domain->ops, struct kfi_ops_domain, query_atomic) ?
		domain->ops->query_atomic(domain, datatype, op, attr, flags) :
		-KFI_ENOSYS;
}

#endif /* _KFI_ATOMIC_H_ */
