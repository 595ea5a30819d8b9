/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: stubs for operations that a provider does not have.
 */

#ifndef _KFI_ENOSYS_H_
#define _KFI_ENOSYS_H_

#include "kfabric.h"
#include "kfi_errno.h"
#include "kfi_domain.h"
#include "kfi_prov.h"
#include "kfi_atomic.h"
#include "kfi_rma.h"
#include "kfi_tagged.h"
#include "kfi_cm.h"

/**
 * DOC: Stubs for operations a provider lacks
 *
 * One function for each member of each ops table, with exactly that member's
 * type. The inline wrappers call most members without testing them, so that a
 * provider fills every slot, and those it has no use for with these. They have
 * no side effects, never sleep and may be called in any context.
 *
 * All return -KFI_ENOSYS, but for those whose result is not an error number:
 * kfi_no_cntr_read() and kfi_no_cntr_readerr() return 0, kfi_no_eq_strerror()
 * and kfi_no_cq_strerror() a constant text, kfi_no_av_straddr() NULL.
 *
 * kfi_no_domain(), kfi_no_eq_open() and kfi_no_cq_open() had other parameters
 * than their members in kfabric 1.7, so that they could be assigned with a cast
 * only; with or without that cast they can be assigned now.
 */

/* Stubs for objects: struct kfi_ops. */

/**
 * kfi_no_close() - stub for &kfi_ops.close
 * @fid: unused
 *
 * For objects that are never closed; the object stays open.
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_close(struct kfid *fid)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_bind() - stub for &kfi_ops.bind
 * @fid: unused
 * @bfid: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_bind(struct kfid *fid, struct kfid *bfid,
			      uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_control() - stub for &kfi_ops.control
 * @fid: unused
 * @command: unused
 * @arg: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_control(struct kfid *fid, int command, void *arg)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_ops_open() - stub for &kfi_ops.ops_open
 * @fid: unused
 * @name: unused
 * @flags: unused
 * @ops: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_ops_open(struct kfid *fid, const char *name,
				  uint64_t flags, void **ops, void *context)
{
	return -KFI_ENOSYS;
}

/* Stubs for fabrics: struct kfi_ops_fabric. */

/**
 * kfi_no_domain() - stub for &kfi_ops_fabric.domain
 * @fabric: unused
 * @info: unused
 * @dom: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_domain(struct kfid_fabric *fabric,
				struct kfi_info *info, struct kfid_domain **dom,
				void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_passive_ep() - stub for &kfi_ops_fabric.passive_ep
 * @fabric: unused
 * @info: unused
 * @pep: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_passive_ep(struct kfid_fabric *fabric,
				    struct kfi_info *info,
				    struct kfid_pep **pep, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_eq_open() - stub for &kfi_ops_fabric.eq_open
 * @fabric: unused
 * @attr: unused
 * @eq: unused
 * @event_handler: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_eq_open(struct kfid_fabric *fabric,
				 struct kfi_eq_attr *attr, struct kfid_eq **eq,
				 kfi_event_handler event_handler, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_wait_open() - stub for &kfi_ops_fabric.wait_open
 * @fabric: unused
 * @attr: unused
 * @waitset: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_wait_open(struct kfid_fabric *fabric,
				   struct kfi_wait_attr *attr,
				   struct kfid_wait **waitset)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_trywait() - stub for &kfi_ops_fabric.trywait
 * @fabric: unused
 * @fids: unused
 * @count: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_trywait(struct kfid_fabric *fabric, struct kfid **fids,
				 int count)
{
	return -KFI_ENOSYS;
}

/* Stubs for address vectors: struct kfi_ops_av. */

/**
 * kfi_no_av_insert() - stub for &kfi_ops_av.insert
 * @av: unused
 * @addr: unused
 * @count: unused
 * @kfi_addr: unused
 * @flags: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_av_insert(struct kfid_av *av, const void *addr,
				   size_t count, kfi_addr_t *kfi_addr,
				   uint64_t flags, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_av_insertsvc() - stub for &kfi_ops_av.insertsvc
 * @av: unused
 * @node: unused
 * @service: unused
 * @kfi_addr: unused
 * @flags: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_av_insertsvc(struct kfid_av *av, const char *node,
				      const char *service, kfi_addr_t *kfi_addr,
				      uint64_t flags, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_av_insertsym() - stub for &kfi_ops_av.insertsym
 * @av: unused
 * @node: unused
 * @nodecnt: unused
 * @service: unused
 * @svccnt: unused
 * @kfi_addr: unused
 * @flags: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_av_insertsym(struct kfid_av *av, const char *node,
				      size_t nodecnt, const char *service,
				      size_t svccnt, kfi_addr_t *kfi_addr,
				      uint64_t flags, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_av_remove() - stub for &kfi_ops_av.remove
 * @av: unused
 * @kfi_addr: unused
 * @count: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_av_remove(struct kfid_av *av, kfi_addr_t *kfi_addr,
				   size_t count, uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_av_lookup() - stub for &kfi_ops_av.lookup
 * @av: unused
 * @kfi_addr: unused
 * @addr: unused
 * @addrlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_av_lookup(struct kfid_av *av, kfi_addr_t kfi_addr,
				   void *addr, size_t *addrlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_av_straddr() - stub for &kfi_ops_av.straddr
 * @av: unused
 * @addr: unused
 * @buf: unused
 * @len: unused
 *
 * Return: NULL.
 */
static inline const char *kfi_no_av_straddr(struct kfid_av *av,
					    const void *addr, char *buf,
					    size_t *len)
{
	return NULL;
}

/* Stubs for atomic operations: struct kfi_ops_atomic. */

/**
 * kfi_no_atomic_write() - stub for &kfi_ops_atomic.write
 * @ep: unused
 * @buf: unused
 * @count: unused
 * @desc: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @datatype: unused
 * @op: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_write(struct kfid_ep *ep, const void *buf,
					  size_t count, void *desc,
					  kfi_addr_t dest_addr, uint64_t addr,
					  uint64_t key,
					  enum kfi_datatype datatype,
					  enum kfi_op op, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_writev() - stub for &kfi_ops_atomic.writev
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @datatype: unused
 * @op: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_writev(struct kfid_ep *ep,
					   const struct kfi_ioc *iov,
					   void **desc, size_t count,
					   kfi_addr_t dest_addr, uint64_t addr,
					   uint64_t key,
					   enum kfi_datatype datatype,
					   enum kfi_op op, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_writemsg() - stub for &kfi_ops_atomic.writemsg
 * @ep: unused
 * @msg: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_writemsg(struct kfid_ep *ep,
					     const struct kfi_msg_atomic *msg,
					     uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_inject() - stub for &kfi_ops_atomic.inject
 * @ep: unused
 * @buf: unused
 * @count: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @datatype: unused
 * @op: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_inject(struct kfid_ep *ep, const void *buf,
					   size_t count, kfi_addr_t dest_addr,
					   uint64_t addr, uint64_t key,
					   enum kfi_datatype datatype,
					   enum kfi_op op)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_readwrite() - stub for &kfi_ops_atomic.readwrite
 * @ep: unused
 * @buf: unused
 * @count: unused
 * @desc: unused
 * @result: unused
 * @result_desc: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @datatype: unused
 * @op: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_readwrite(struct kfid_ep *ep,
					      const void *buf, size_t count,
					      void *desc, void *result,
					      void *result_desc,
					      kfi_addr_t dest_addr,
					      uint64_t addr, uint64_t key,
					      enum kfi_datatype datatype,
					      enum kfi_op op, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_readwritev() - stub for &kfi_ops_atomic.readwritev
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @resultv: unused
 * @result_desc: unused
 * @result_count: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @datatype: unused
 * @op: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_readwritev(struct kfid_ep *ep,
					       const struct kfi_ioc *iov,
					       void **desc, size_t count,
					       struct kfi_ioc *resultv,
					       void **result_desc,
					       size_t result_count,
					       kfi_addr_t dest_addr,
					       uint64_t addr, uint64_t key,
					       enum kfi_datatype datatype,
					       enum kfi_op op, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_readwritemsg() - stub for &kfi_ops_atomic.readwritemsg
 * @ep: unused
 * @msg: unused
 * @resultv: unused
 * @result_desc: unused
 * @result_count: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t
kfi_no_atomic_readwritemsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
			   struct kfi_ioc *resultv, void **result_desc,
			   size_t result_count, uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_compwrite() - stub for &kfi_ops_atomic.compwrite
 * @ep: unused
 * @buf: unused
 * @count: unused
 * @desc: unused
 * @compare: unused
 * @compare_desc: unused
 * @result: unused
 * @result_desc: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @datatype: unused
 * @op: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_compwrite(struct kfid_ep *ep,
					      const void *buf, size_t count,
					      void *desc, const void *compare,
					      void *compare_desc, void *result,
					      void *result_desc,
					      kfi_addr_t dest_addr,
					      uint64_t addr, uint64_t key,
					      enum kfi_datatype datatype,
					      enum kfi_op op, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_compwritev() - stub for &kfi_ops_atomic.compwritev
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @comparev: unused
 * @compare_desc: unused
 * @compare_count: unused
 * @resultv: unused
 * @result_desc: unused
 * @result_count: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @datatype: unused
 * @op: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_atomic_compwritev(struct kfid_ep *ep,
					       const struct kfi_ioc *iov,
					       void **desc, size_t count,
					       const struct kfi_ioc *comparev,
					       void **compare_desc,
					       size_t compare_count,
					       struct kfi_ioc *resultv,
					       void **result_desc,
					       size_t result_count,
					       kfi_addr_t dest_addr,
					       uint64_t addr, uint64_t key,
					       enum kfi_datatype datatype,
					       enum kfi_op op, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_compwritemsg() - stub for &kfi_ops_atomic.compwritemsg
 * @ep: unused
 * @msg: unused
 * @comparev: unused
 * @compare_desc: unused
 * @compare_count: unused
 * @resultv: unused
 * @result_desc: unused
 * @result_count: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t
kfi_no_atomic_compwritemsg(struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
			   const struct kfi_ioc *comparev, void **compare_desc,
			   size_t compare_count, struct kfi_ioc *resultv,
			   void **result_desc, size_t result_count,
			   uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_writevalid() - stub for &kfi_ops_atomic.writevalid
 * @ep: unused
 * @datatype: unused
 * @op: unused
 * @count: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_atomic_writevalid(struct kfid_ep *ep,
					   enum kfi_datatype datatype,
					   enum kfi_op op, size_t *count)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_readwritevalid() - stub for &kfi_ops_atomic.readwritevalid
 * @ep: unused
 * @datatype: unused
 * @op: unused
 * @count: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_atomic_readwritevalid(struct kfid_ep *ep,
					       enum kfi_datatype datatype,
					       enum kfi_op op, size_t *count)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_atomic_compwritevalid() - stub for &kfi_ops_atomic.compwritevalid
 * @ep: unused
 * @datatype: unused
 * @op: unused
 * @count: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_atomic_compwritevalid(struct kfid_ep *ep,
					       enum kfi_datatype datatype,
					       enum kfi_op op, size_t *count)
{
	return -KFI_ENOSYS;
}

/* Stubs for addressing and connections: struct kfi_ops_cm. */

/**
 * kfi_no_setname() - stub for &kfi_ops_cm.setname
 * @fid: unused
 * @addr: unused
 * @addrlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_setname(kfid_t fid, void *addr, size_t addrlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_getname() - stub for &kfi_ops_cm.getname
 * @fid: unused
 * @addr: unused
 * @addrlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_getname(struct kfid *fid, void *addr, size_t *addrlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_getpeer() - stub for &kfi_ops_cm.getpeer
 * @ep: unused
 * @addr: unused
 * @addrlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_getpeer(struct kfid_ep *ep, void *addr,
				 size_t *addrlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_connect() - stub for &kfi_ops_cm.connect
 * @ep: unused
 * @addr: unused
 * @param: unused
 * @paramlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_connect(struct kfid_ep *ep, const void *addr,
				 const void *param, size_t paramlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_listen() - stub for &kfi_ops_cm.listen
 * @pep: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_listen(struct kfid_pep *pep)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_accept() - stub for &kfi_ops_cm.accept
 * @ep: unused
 * @param: unused
 * @paramlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_accept(struct kfid_ep *ep, const void *param,
				size_t paramlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_reject() - stub for &kfi_ops_cm.reject
 * @pep: unused
 * @handle: unused
 * @param: unused
 * @paramlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_reject(struct kfid_pep *pep, kfid_t handle,
				const void *param, size_t paramlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_shutdown() - stub for &kfi_ops_cm.shutdown
 * @ep: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_shutdown(struct kfid_ep *ep, uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_join() - stub for &kfi_ops_cm.join
 * @ep: unused
 * @addr: unused
 * @flags: unused
 * @mc: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_join(struct kfid_ep *ep, const void *addr,
			      uint64_t flags, struct kfid_mc **mc,
			      void *context)
{
	return -KFI_ENOSYS;
}

/* Stubs for domains: struct kfi_ops_domain. */

/**
 * kfi_no_av_open() - stub for &kfi_ops_domain.av_open
 * @domain: unused
 * @attr: unused
 * @av: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_av_open(struct kfid_domain *domain,
				 struct kfi_av_attr *attr, struct kfid_av **av,
				 void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cq_open() - stub for &kfi_ops_domain.cq_open
 * @domain: unused
 * @attr: unused
 * @cq: unused
 * @comp_handler: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cq_open(struct kfid_domain *domain,
				 struct kfi_cq_attr *attr, struct kfid_cq **cq,
				 kfi_comp_handler comp_handler, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_endpoint() - stub for &kfi_ops_domain.endpoint
 * @domain: unused
 * @info: unused
 * @ep: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_endpoint(struct kfid_domain *domain,
				  struct kfi_info *info, struct kfid_ep **ep,
				  void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_scalable_ep() - stub for &kfi_ops_domain.scalable_ep
 * @domain: unused
 * @info: unused
 * @sep: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_scalable_ep(struct kfid_domain *domain,
				     struct kfi_info *info,
				     struct kfid_ep **sep, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cntr_open() - stub for &kfi_ops_domain.cntr_open
 * @domain: unused
 * @attr: unused
 * @cntr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cntr_open(struct kfid_domain *domain,
				   struct kfi_cntr_attr *attr,
				   struct kfid_cntr **cntr, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_poll_open() - stub for &kfi_ops_domain.poll_open
 * @domain: unused
 * @attr: unused
 * @pollset: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_poll_open(struct kfid_domain *domain,
				   struct kfi_poll_attr *attr,
				   struct kfid_poll **pollset)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_stx_ctx() - stub for &kfi_ops_domain.stx_ctx
 * @domain: unused
 * @attr: unused
 * @stx: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_stx_ctx(struct kfid_domain *domain,
				 struct kfi_tx_attr *attr,
				 struct kfid_stx **stx, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_srx_ctx() - stub for &kfi_ops_domain.srx_ctx
 * @domain: unused
 * @attr: unused
 * @rx_ep: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_srx_ctx(struct kfid_domain *domain,
				 struct kfi_rx_attr *attr,
				 struct kfid_ep **rx_ep, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_query_atomic() - stub for &kfi_ops_domain.query_atomic
 * @domain: unused
 * @datatype: unused
 * @op: unused
 * @attr: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_query_atomic(struct kfid_domain *domain,
				      enum kfi_datatype datatype,
				      enum kfi_op op,
				      struct kfi_atomic_attr *attr,
				      uint64_t flags)
{
	return -KFI_ENOSYS;
}

/* Stubs for memory registration: struct kfi_ops_mr. */

/**
 * kfi_no_mr_reg() - stub for &kfi_ops_mr.reg
 * @fid: unused
 * @buf: unused
 * @len: unused
 * @access: unused
 * @offset: unused
 * @requested_key: unused
 * @flags: unused
 * @mr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_mr_reg(struct kfid *fid, const void *buf, size_t len,
				uint64_t access, uint64_t offset,
				uint64_t requested_key, uint64_t flags,
				struct kfid_mr **mr, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_mr_regv() - stub for &kfi_ops_mr.regv
 * @fid: unused
 * @iov: unused
 * @count: unused
 * @access: unused
 * @offset: unused
 * @requested_key: unused
 * @flags: unused
 * @mr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_mr_regv(struct kfid *fid, const struct kvec *iov,
				 size_t count, uint64_t access, uint64_t offset,
				 uint64_t requested_key, uint64_t flags,
				 struct kfid_mr **mr, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_mr_regbv() - stub for &kfi_ops_mr.regbv
 * @fid: unused
 * @biov: unused
 * @count: unused
 * @access: unused
 * @offset: unused
 * @requested_key: unused
 * @flags: unused
 * @mr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_mr_regbv(struct kfid *fid, const struct bio_vec *biov,
				  size_t count, uint64_t access,
				  uint64_t offset, uint64_t requested_key,
				  uint64_t flags, struct kfid_mr **mr,
				  void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_mr_regattr() - stub for &kfi_ops_mr.regattr
 * @fid: unused
 * @attr: unused
 * @flags: unused
 * @mr: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_mr_regattr(struct kfid *fid,
				    const struct kfi_mr_attr *attr,
				    uint64_t flags, struct kfid_mr **mr)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_mr_regsgl() - stub for &kfi_ops_mr.regsgl
 * @fid: unused
 * @sgl: unused
 * @count: unused
 * @access: unused
 * @offset: unused
 * @requested_key: unused
 * @flags: unused
 * @mr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_mr_regsgl(struct kfid *fid,
				   const struct scatterlist *sgl, size_t count,
				   uint64_t access, uint64_t offset,
				   uint64_t requested_key, uint64_t flags,
				   struct kfid_mr **mr, void *context)
{
	return -KFI_ENOSYS;
}

/* Stubs for endpoints: struct kfi_ops_ep. */

/**
 * kfi_no_cancel() - stub for &kfi_ops_ep.cancel
 * @fid: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_cancel(struct kfid *fid, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_getopt() - stub for &kfi_ops_ep.getopt
 * @fid: unused
 * @level: unused
 * @optname: unused
 * @optval: unused
 * @optlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_getopt(struct kfid *fid, int level, int optname,
				void *optval, size_t *optlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_setopt() - stub for &kfi_ops_ep.setopt
 * @fid: unused
 * @level: unused
 * @optname: unused
 * @optval: unused
 * @optlen: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_setopt(struct kfid *fid, int level, int optname,
				const void *optval, size_t optlen)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tx_ctx() - stub for &kfi_ops_ep.tx_ctx
 * @sep: unused
 * @index: unused
 * @attr: unused
 * @tx_ep: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_tx_ctx(struct kfid_ep *sep, int index,
				struct kfi_tx_attr *attr,
				struct kfid_ep **tx_ep, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rx_ctx() - stub for &kfi_ops_ep.rx_ctx
 * @sep: unused
 * @index: unused
 * @attr: unused
 * @rx_ep: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_rx_ctx(struct kfid_ep *sep, int index,
				struct kfi_rx_attr *attr,
				struct kfid_ep **rx_ep, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rx_size_left() - stub without an ops table member
 * @ep: unused
 *
 * Kept for source compatibility: no ops table has had a rx_size_left member
 * since 1.7.
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rx_size_left(struct kfid_ep *ep)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tx_size_left() - stub without an ops table member
 * @ep: unused
 *
 * Kept for source compatibility: no ops table has had a tx_size_left member
 * since 1.7.
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tx_size_left(struct kfid_ep *ep)
{
	return -KFI_ENOSYS;
}

/* Stubs for messages: struct kfi_ops_msg. */

/**
 * kfi_no_msg_recv() - stub for &kfi_ops_msg.recv
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @src_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_recv(struct kfid_ep *ep, void *buf, size_t len,
				      void *desc, kfi_addr_t src_addr,
				      void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_recvv() - stub for &kfi_ops_msg.recvv
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_recvv(struct kfid_ep *ep,
				       const struct kvec *iov, void **desc,
				       size_t count, kfi_addr_t src_addr,
				       void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_recvbv() - stub for &kfi_ops_msg.recvbv
 * @ep: unused
 * @biov: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_recvbv(struct kfid_ep *ep,
					const struct bio_vec *biov, void **desc,
					size_t count, kfi_addr_t src_addr,
					void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_recvmsg() - stub for &kfi_ops_msg.recvmsg
 * @ep: unused
 * @msg: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_recvmsg(struct kfid_ep *ep,
					 const struct kfi_msg *msg,
					 uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_send() - stub for &kfi_ops_msg.send
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @dest_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_send(struct kfid_ep *ep, const void *buf,
				      size_t len, void *desc,
				      kfi_addr_t dest_addr, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_sendv() - stub for &kfi_ops_msg.sendv
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_sendv(struct kfid_ep *ep,
				       const struct kvec *iov, void **desc,
				       size_t count, kfi_addr_t dest_addr,
				       void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_sendbv() - stub for &kfi_ops_msg.sendbv
 * @ep: unused
 * @biov: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_sendbv(struct kfid_ep *ep,
					const struct bio_vec *biov, void **desc,
					size_t count, kfi_addr_t dest_addr,
					void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_sendmsg() - stub for &kfi_ops_msg.sendmsg
 * @ep: unused
 * @msg: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_sendmsg(struct kfid_ep *ep,
					 const struct kfi_msg *msg,
					 uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_inject() - stub for &kfi_ops_msg.inject
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @dest_addr: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_inject(struct kfid_ep *ep, const void *buf,
					size_t len, kfi_addr_t dest_addr)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_senddata() - stub for &kfi_ops_msg.senddata
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @data: unused
 * @dest_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_senddata(struct kfid_ep *ep, const void *buf,
					  size_t len, void *desc, uint64_t data,
					  kfi_addr_t dest_addr, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_injectdata() - stub for &kfi_ops_msg.injectdata
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @data: unused
 * @dest_addr: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_injectdata(struct kfid_ep *ep, const void *buf,
					    size_t len, uint64_t data,
					    kfi_addr_t dest_addr)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_recvsgl() - stub for &kfi_ops_msg.recvsgl
 * @ep: unused
 * @sgl: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_recvsgl(struct kfid_ep *ep,
					 const struct scatterlist *sgl,
					 void **desc, size_t count,
					 kfi_addr_t src_addr, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_msg_sendsgl() - stub for &kfi_ops_msg.sendsgl
 * @ep: unused
 * @sgl: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_msg_sendsgl(struct kfid_ep *ep,
					 const struct scatterlist *sgl,
					 void **desc, size_t count,
					 kfi_addr_t dest_addr, void *context)
{
	return -KFI_ENOSYS;
}

/* Stubs for wait sets: struct kfi_ops_wait. */

/**
 * kfi_no_wait() - stub for &kfi_ops_wait.wait
 * @waitset: unused
 * @timeout: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_wait(struct kfid_wait *waitset, int timeout)
{
	return -KFI_ENOSYS;
}

/* Stubs for poll sets: struct kfi_ops_poll. */

/**
 * kfi_no_poll() - stub for &kfi_ops_poll.poll
 * @pollset: unused
 * @context: unused
 * @count: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_poll(struct kfid_poll *pollset, void **context,
			      int count)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_poll_add() - stub for &kfi_ops_poll.poll_add
 * @pollset: unused
 * @event_kfid: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_poll_add(struct kfid_poll *pollset,
				  struct kfid *event_kfid, uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_poll_del() - stub for &kfi_ops_poll.poll_del
 * @pollset: unused
 * @event_kfid: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_poll_del(struct kfid_poll *pollset,
				  struct kfid *event_kfid, uint64_t flags)
{
	return -KFI_ENOSYS;
}

/* Stubs for event queues: struct kfi_ops_eq. */

/**
 * kfi_no_eq_read() - stub for &kfi_ops_eq.read
 * @eq: unused
 * @event: unused
 * @buf: unused
 * @len: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_eq_read(struct kfid_eq *eq, uint32_t *event,
				     void *buf, size_t len, uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_eq_readerr() - stub for &kfi_ops_eq.readerr
 * @eq: unused
 * @buf: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_eq_readerr(struct kfid_eq *eq,
					struct kfi_eq_err_entry *buf,
					uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_eq_write() - stub for &kfi_ops_eq.write
 * @eq: unused
 * @event: unused
 * @buf: unused
 * @len: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_eq_write(struct kfid_eq *eq, uint32_t event,
				      const void *buf, size_t len,
				      uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_eq_sread() - stub for &kfi_ops_eq.sread
 * @eq: unused
 * @event: unused
 * @buf: unused
 * @len: unused
 * @timeout: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_eq_sread(struct kfid_eq *eq, uint32_t *event,
				      void *buf, size_t len, int timeout,
				      uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_eq_strerror() - stub for &kfi_ops_eq.strerror
 * @eq: unused
 * @prov_errno: unused
 * @err_data: unused
 * @buf: unused
 * @len: unused
 *
 * Return: a constant text.
 */
static inline const char *kfi_no_eq_strerror(struct kfid_eq *eq, int prov_errno,
					     const void *err_data, char *buf,
					     size_t len)
{
	return "no error text";
}

/* Stubs for completion queues: struct kfi_ops_cq. */

/**
 * kfi_no_cq_read() - stub for &kfi_ops_cq.read
 * @cq: unused
 * @buf: unused
 * @count: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_cq_read(struct kfid_cq *cq, void *buf,
				     size_t count)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cq_readfrom() - stub for &kfi_ops_cq.readfrom
 * @cq: unused
 * @buf: unused
 * @count: unused
 * @src_addr: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_cq_readfrom(struct kfid_cq *cq, void *buf,
					 size_t count, kfi_addr_t *src_addr)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cq_readerr() - stub for &kfi_ops_cq.readerr
 * @cq: unused
 * @buf: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_cq_readerr(struct kfid_cq *cq,
					struct kfi_cq_err_entry *buf,
					uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cq_sread() - stub for &kfi_ops_cq.sread
 * @cq: unused
 * @buf: unused
 * @count: unused
 * @cond: unused
 * @timeout: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_cq_sread(struct kfid_cq *cq, void *buf,
				      size_t count, const void *cond,
				      int timeout)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cq_sreadfrom() - stub for &kfi_ops_cq.sreadfrom
 * @cq: unused
 * @buf: unused
 * @count: unused
 * @src_addr: unused
 * @cond: unused
 * @timeout: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_cq_sreadfrom(struct kfid_cq *cq, void *buf,
					  size_t count, kfi_addr_t *src_addr,
					  const void *cond, int timeout)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cq_signal() - stub for &kfi_ops_cq.signal
 * @cq: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cq_signal(struct kfid_cq *cq)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cq_strerror() - stub for &kfi_ops_cq.strerror
 * @cq: unused
 * @prov_errno: unused
 * @err_data: unused
 * @buf: unused
 * @len: unused
 *
 * Return: a constant text.
 */
static inline const char *kfi_no_cq_strerror(struct kfid_cq *cq, int prov_errno,
					     const void *err_data, char *buf,
					     size_t len)
{
	return "no error text";
}

/* Stubs for counters: struct kfi_ops_cntr. */

/**
 * kfi_no_cntr_read() - stub for &kfi_ops_cntr.read
 * @cntr: unused
 *
 * Return: 0.
 */
static inline uint64_t kfi_no_cntr_read(struct kfid_cntr *cntr)
{
	return 0;
}

/**
 * kfi_no_cntr_readerr() - stub for &kfi_ops_cntr.readerr
 * @cntr: unused
 *
 * Return: 0.
 */
static inline uint64_t kfi_no_cntr_readerr(struct kfid_cntr *cntr)
{
	return 0;
}

/**
 * kfi_no_cntr_add() - stub for &kfi_ops_cntr.add
 * @cntr: unused
 * @value: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cntr_add(struct kfid_cntr *cntr, uint64_t value)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cntr_set() - stub for &kfi_ops_cntr.set
 * @cntr: unused
 * @value: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cntr_set(struct kfid_cntr *cntr, uint64_t value)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cntr_wait() - stub for &kfi_ops_cntr.wait
 * @cntr: unused
 * @threshold: unused
 * @timeout: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cntr_wait(struct kfid_cntr *cntr, uint64_t threshold,
				   int timeout)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cntr_adderr() - stub for &kfi_ops_cntr.adderr
 * @cntr: unused
 * @value: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cntr_adderr(struct kfid_cntr *cntr, uint64_t value)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_cntr_seterr() - stub for &kfi_ops_cntr.seterr
 * @cntr: unused
 * @value: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline int kfi_no_cntr_seterr(struct kfid_cntr *cntr, uint64_t value)
{
	return -KFI_ENOSYS;
}

/* Stubs for remote memory access: struct kfi_ops_rma. */

/**
 * kfi_no_rma_read() - stub for &kfi_ops_rma.read
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @src_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_read(struct kfid_ep *ep, void *buf, size_t len,
				      void *desc, kfi_addr_t src_addr,
				      uint64_t addr, uint64_t key,
				      void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_readv() - stub for &kfi_ops_rma.readv
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_readv(struct kfid_ep *ep,
				       const struct kvec *iov, void **desc,
				       size_t count, kfi_addr_t src_addr,
				       uint64_t addr, uint64_t key,
				       void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_readbv() - stub for &kfi_ops_rma.readbv
 * @ep: unused
 * @biov: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_readbv(struct kfid_ep *ep,
					const struct bio_vec *biov, void **desc,
					size_t count, kfi_addr_t src_addr,
					uint64_t addr, uint64_t key,
					void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_readmsg() - stub for &kfi_ops_rma.readmsg
 * @ep: unused
 * @msg: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_readmsg(struct kfid_ep *ep,
					 const struct kfi_msg_rma *msg,
					 uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_write() - stub for &kfi_ops_rma.write
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_write(struct kfid_ep *ep, const void *buf,
				       size_t len, void *desc,
				       kfi_addr_t dest_addr, uint64_t addr,
				       uint64_t key, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_writev() - stub for &kfi_ops_rma.writev
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_writev(struct kfid_ep *ep,
					const struct kvec *iov, void **desc,
					size_t count, kfi_addr_t dest_addr,
					uint64_t addr, uint64_t key,
					void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_writebv() - stub for &kfi_ops_rma.writebv
 * @ep: unused
 * @biov: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_writebv(struct kfid_ep *ep,
					 const struct bio_vec *biov,
					 void **desc, size_t count,
					 kfi_addr_t dest_addr, uint64_t addr,
					 uint64_t key, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_writemsg() - stub for &kfi_ops_rma.writemsg
 * @ep: unused
 * @msg: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_writemsg(struct kfid_ep *ep,
					  const struct kfi_msg_rma *msg,
					  uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_inject() - stub for &kfi_ops_rma.inject
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_inject(struct kfid_ep *ep, const void *buf,
					size_t len, kfi_addr_t dest_addr,
					uint64_t addr, uint64_t key)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_writedata() - stub for &kfi_ops_rma.writedata
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @data: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_writedata(struct kfid_ep *ep, const void *buf,
					   size_t len, void *desc,
					   uint64_t data, kfi_addr_t dest_addr,
					   uint64_t addr, uint64_t key,
					   void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_injectdata() - stub for &kfi_ops_rma.injectdata
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @data: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_injectdata(struct kfid_ep *ep, const void *buf,
					    size_t len, uint64_t data,
					    kfi_addr_t dest_addr, uint64_t addr,
					    uint64_t key)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_readsgl() - stub for &kfi_ops_rma.readsgl
 * @ep: unused
 * @sgl: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_readsgl(struct kfid_ep *ep,
					 const struct scatterlist *sgl,
					 void **desc, size_t count,
					 kfi_addr_t src_addr, uint64_t addr,
					 uint64_t key, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_rma_writesgl() - stub for &kfi_ops_rma.writesgl
 * @ep: unused
 * @sgl: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @addr: unused
 * @key: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_rma_writesgl(struct kfid_ep *ep,
					  const struct scatterlist *sgl,
					  void **desc, size_t count,
					  kfi_addr_t dest_addr, uint64_t addr,
					  uint64_t key, void *context)
{
	return -KFI_ENOSYS;
}

/* Stubs for tagged messages: struct kfi_ops_tagged. */

/**
 * kfi_no_tagged_recv() - stub for &kfi_ops_tagged.recv
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @src_addr: unused
 * @tag: unused
 * @ignore: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_recv(struct kfid_ep *ep, void *buf,
					 size_t len, void *desc,
					 kfi_addr_t src_addr, uint64_t tag,
					 uint64_t ignore, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_recvv() - stub for &kfi_ops_tagged.recvv
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @tag: unused
 * @ignore: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_recvv(struct kfid_ep *ep,
					  const struct kvec *iov, void **desc,
					  size_t count, kfi_addr_t src_addr,
					  uint64_t tag, uint64_t ignore,
					  void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_recvbv() - stub for &kfi_ops_tagged.recvbv
 * @ep: unused
 * @biov: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @tag: unused
 * @ignore: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_recvbv(struct kfid_ep *ep,
					   const struct bio_vec *biov,
					   void **desc, size_t count,
					   kfi_addr_t src_addr, uint64_t tag,
					   uint64_t ignore, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_recvmsg() - stub for &kfi_ops_tagged.recvmsg
 * @ep: unused
 * @msg: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_recvmsg(struct kfid_ep *ep,
					    const struct kfi_msg_tagged *msg,
					    uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_send() - stub for &kfi_ops_tagged.send
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @dest_addr: unused
 * @tag: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_send(struct kfid_ep *ep, const void *buf,
					 size_t len, void *desc,
					 kfi_addr_t dest_addr, uint64_t tag,
					 void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_sendv() - stub for &kfi_ops_tagged.sendv
 * @ep: unused
 * @iov: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @tag: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_sendv(struct kfid_ep *ep,
					  const struct kvec *iov, void **desc,
					  size_t count, kfi_addr_t dest_addr,
					  uint64_t tag, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_sendbv() - stub for &kfi_ops_tagged.sendbv
 * @ep: unused
 * @biov: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @tag: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_sendbv(struct kfid_ep *ep,
					   const struct bio_vec *biov,
					   void **desc, size_t count,
					   kfi_addr_t dest_addr, uint64_t tag,
					   void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_sendmsg() - stub for &kfi_ops_tagged.sendmsg
 * @ep: unused
 * @msg: unused
 * @flags: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_sendmsg(struct kfid_ep *ep,
					    const struct kfi_msg_tagged *msg,
					    uint64_t flags)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_inject() - stub for &kfi_ops_tagged.inject
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @dest_addr: unused
 * @tag: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_inject(struct kfid_ep *ep, const void *buf,
					   size_t len, kfi_addr_t dest_addr,
					   uint64_t tag)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_senddata() - stub for &kfi_ops_tagged.senddata
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @desc: unused
 * @data: unused
 * @dest_addr: unused
 * @tag: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_senddata(struct kfid_ep *ep,
					     const void *buf, size_t len,
					     void *desc, uint64_t data,
					     kfi_addr_t dest_addr, uint64_t tag,
					     void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_injectdata() - stub for &kfi_ops_tagged.injectdata
 * @ep: unused
 * @buf: unused
 * @len: unused
 * @data: unused
 * @dest_addr: unused
 * @tag: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_injectdata(struct kfid_ep *ep,
					       const void *buf, size_t len,
					       uint64_t data,
					       kfi_addr_t dest_addr,
					       uint64_t tag)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_recvsgl() - stub for &kfi_ops_tagged.recvsgl
 * @ep: unused
 * @sgl: unused
 * @desc: unused
 * @count: unused
 * @src_addr: unused
 * @tag: unused
 * @ignore: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_recvsgl(struct kfid_ep *ep,
					    const struct scatterlist *sgl,
					    void **desc, size_t count,
					    kfi_addr_t src_addr, uint64_t tag,
					    uint64_t ignore, void *context)
{
	return -KFI_ENOSYS;
}

/**
 * kfi_no_tagged_sendsgl() - stub for &kfi_ops_tagged.sendsgl
 * @ep: unused
 * @sgl: unused
 * @desc: unused
 * @count: unused
 * @dest_addr: unused
 * @tag: unused
 * @context: unused
 *
 * Return: -KFI_ENOSYS.
 */
static inline ssize_t kfi_no_tagged_sendsgl(struct kfid_ep *ep,
					    const struct scatterlist *sgl,
					    void **desc, size_t count,
					    kfi_addr_t dest_addr, uint64_t tag,
					    void *context)
{
	return -KFI_ENOSYS;
}

#endif /* _KFI_ENOSYS_H_ */
