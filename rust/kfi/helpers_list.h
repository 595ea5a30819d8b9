/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inline functions of the public headers that get a copy out of line as they are:
 * KFI_HELPER(type, name, (parameters), (arguments)).
 */

/* kfi_domain.h */
KFI_HELPER(int, kfi_mr_reg,
	   (struct kfid_domain *domain, const void *buf, size_t len, u64 access, u64 offset,
	    u64 requested_key, u64 flags, struct kfid_mr **mr, void *context),
	   (domain, buf, len, access, offset, requested_key, flags, mr, context))
KFI_HELPER(int, kfi_mr_regv,
	   (struct kfid_domain *domain, const struct kvec *iov, size_t count, u64 access,
	    u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr, void *context),
	   (domain, iov, count, access, offset, requested_key, flags, mr, context))
KFI_HELPER(int, kfi_mr_regbv,
	   (struct kfid_domain *domain, const struct bio_vec *biov, size_t count, u64 access,
	    u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr, void *context),
	   (domain, biov, count, access, offset, requested_key, flags, mr, context))
KFI_HELPER(int, kfi_mr_regsgl,
	   (struct kfid_domain *domain, const struct scatterlist *sgl, size_t count,
	    u64 access, u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr,
	    void *context),
	   (domain, sgl, count, access, offset, requested_key, flags, mr, context))
KFI_HELPER(int, kfi_mr_regattr,
	   (struct kfid_domain *domain, const struct kfi_mr_attr *attr, u64 flags,
	    struct kfid_mr **mr),
	   (domain, attr, flags, mr))
KFI_HELPER(void *, kfi_mr_desc,
	   (struct kfid_mr *mr),
	   (mr))
KFI_HELPER(u64, kfi_mr_key,
	   (struct kfid_mr *mr),
	   (mr))
KFI_HELPER(int, kfi_mr_raw_attr,
	   (struct kfid_mr *mr, u64 *base_addr, u8 *raw_key, size_t *key_size, u64 flags),
	   (mr, base_addr, raw_key, key_size, flags))
KFI_HELPER(int, kfi_mr_map_raw,
	   (struct kfid_domain *domain, u64 base_addr, u8 *raw_key, size_t key_size, u64 *key,
	    u64 flags),
	   (domain, base_addr, raw_key, key_size, key, flags))
KFI_HELPER(int, kfi_mr_unmap_key,
	   (struct kfid_domain *domain, u64 key),
	   (domain, key))
KFI_HELPER(int, kfi_mr_refresh,
	   (struct kfid_mr *mr, const struct kvec *iov, size_t count, u64 flags),
	   (mr, iov, count, flags))
KFI_HELPER(int, kfi_av_open,
	   (struct kfid_domain *domain, struct kfi_av_attr *attr, struct kfid_av **av,
	    void *context),
	   (domain, attr, av, context))
KFI_HELPER(int, kfi_av_insert,
	   (struct kfid_av *av, const void *addr, size_t count, kfi_addr_t *kfi_addr,
	    u64 flags, void *context),
	   (av, addr, count, kfi_addr, flags, context))
KFI_HELPER(int, kfi_av_insertsvc,
	   (struct kfid_av *av, const char *node, const char *service, kfi_addr_t *kfi_addr,
	    u64 flags, void *context),
	   (av, node, service, kfi_addr, flags, context))
KFI_HELPER(int, kfi_av_insertsym,
	   (struct kfid_av *av, const char *node, size_t nodecnt, const char *service,
	    size_t svccnt, kfi_addr_t *kfi_addr, u64 flags, void *context),
	   (av, node, nodecnt, service, svccnt, kfi_addr, flags, context))
KFI_HELPER(int, kfi_av_remove,
	   (struct kfid_av *av, kfi_addr_t *kfi_addr, size_t count, u64 flags),
	   (av, kfi_addr, count, flags))
KFI_HELPER(int, kfi_av_lookup,
	   (struct kfid_av *av, kfi_addr_t kfi_addr, void *addr, size_t *addrlen),
	   (av, kfi_addr, addr, addrlen))
KFI_HELPER(const char *, kfi_av_straddr,
	   (struct kfid_av *av, const void *addr, char *buf, size_t *len),
	   (av, addr, buf, len))

/* kfi_endpoint.h */
KFI_HELPER(int, kfi_passive_ep,
	   (struct kfid_fabric *fabric, struct kfi_info *info, struct kfid_pep **pep,
	    void *context),
	   (fabric, info, pep, context))
KFI_HELPER(int, kfi_endpoint,
	   (struct kfid_domain *domain, struct kfi_info *info, struct kfid_ep **ep,
	    void *context),
	   (domain, info, ep, context))
KFI_HELPER(int, kfi_scalable_ep,
	   (struct kfid_domain *domain, struct kfi_info *info, struct kfid_ep **sep,
	    void *context),
	   (domain, info, sep, context))
KFI_HELPER(int, kfi_ep_bind,
	   (struct kfid_ep *ep, struct kfid *bfid, u64 flags),
	   (ep, bfid, flags))
KFI_HELPER(ssize_t, kfi_cancel,
	   (struct kfid *fid, void *context),
	   (fid, context))
KFI_HELPER(int, kfi_setopt,
	   (struct kfid *fid, int level, int optname, const void *optval, size_t optlen),
	   (fid, level, optname, optval, optlen))
KFI_HELPER(int, kfi_getopt,
	   (struct kfid *fid, int level, int optname, void *optval, size_t *optlen),
	   (fid, level, optname, optval, optlen))
KFI_HELPER(int, kfi_ep_alias,
	   (struct kfid_ep *ep, struct kfid_ep **alias_ep, u64 flags),
	   (ep, alias_ep, flags))
KFI_HELPER(int, kfi_tx_context,
	   (struct kfid_ep *ep, int index, struct kfi_tx_attr *attr, struct kfid_ep **tx_ep,
	    void *context),
	   (ep, index, attr, tx_ep, context))
KFI_HELPER(int, kfi_rx_context,
	   (struct kfid_ep *ep, int index, struct kfi_rx_attr *attr, struct kfid_ep **rx_ep,
	    void *context),
	   (ep, index, attr, rx_ep, context))
KFI_HELPER(int, kfi_stx_context,
	   (struct kfid_domain *domain, struct kfi_tx_attr *attr, struct kfid_stx **stx,
	    void *context),
	   (domain, attr, stx, context))
KFI_HELPER(int, kfi_srx_context,
	   (struct kfid_domain *domain, struct kfi_rx_attr *attr, struct kfid_ep **rx_ep,
	    void *context),
	   (domain, attr, rx_ep, context))
KFI_HELPER(ssize_t, kfi_recv,
	   (struct kfid_ep *ep, void *buf, size_t len, void *desc, kfi_addr_t src_addr,
	    void *context),
	   (ep, buf, len, desc, src_addr, context))
KFI_HELPER(ssize_t, kfi_recvv,
	   (struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
	    kfi_addr_t src_addr, void *context),
	   (ep, iov, desc, count, src_addr, context))
KFI_HELPER(ssize_t, kfi_recvbv,
	   (struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
	    kfi_addr_t src_addr, void *context),
	   (ep, biov, desc, count, src_addr, context))
KFI_HELPER(ssize_t, kfi_recvsgl,
	   (struct kfid_ep *ep, const struct scatterlist *sgl, void **desc, size_t count,
	    kfi_addr_t src_addr, void *context),
	   (ep, sgl, desc, count, src_addr, context))
KFI_HELPER(ssize_t, kfi_recvmsg,
	   (struct kfid_ep *ep, const struct kfi_msg *msg, u64 flags),
	   (ep, msg, flags))
KFI_HELPER(ssize_t, kfi_send,
	   (struct kfid_ep *ep, const void *buf, size_t len, void *desc, kfi_addr_t dest_addr,
	    void *context),
	   (ep, buf, len, desc, dest_addr, context))
KFI_HELPER(ssize_t, kfi_sendv,
	   (struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
	    kfi_addr_t dest_addr, void *context),
	   (ep, iov, desc, count, dest_addr, context))
KFI_HELPER(ssize_t, kfi_sendbv,
	   (struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
	    kfi_addr_t dest_addr, void *context),
	   (ep, biov, desc, count, dest_addr, context))
KFI_HELPER(ssize_t, kfi_sendsgl,
	   (struct kfid_ep *ep, const struct scatterlist *sgl, void **desc, size_t count,
	    kfi_addr_t dest_addr, void *context),
	   (ep, sgl, desc, count, dest_addr, context))
KFI_HELPER(ssize_t, kfi_sendmsg,
	   (struct kfid_ep *ep, const struct kfi_msg *msg, u64 flags),
	   (ep, msg, flags))
KFI_HELPER(ssize_t, kfi_inject,
	   (struct kfid_ep *ep, const void *buf, size_t len, kfi_addr_t dest_addr),
	   (ep, buf, len, dest_addr))
KFI_HELPER(ssize_t, kfi_senddata,
	   (struct kfid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
	    kfi_addr_t dest_addr, void *context),
	   (ep, buf, len, desc, data, dest_addr, context))
KFI_HELPER(ssize_t, kfi_injectdata,
	   (struct kfid_ep *ep, const void *buf, size_t len, u64 data, kfi_addr_t dest_addr),
	   (ep, buf, len, data, dest_addr))

/* kfi_cm.h */
KFI_HELPER(int, kfi_setname,
	   (struct kfid *fid, void *addr, size_t addrlen),
	   (fid, addr, addrlen))
KFI_HELPER(int, kfi_getname,
	   (struct kfid *fid, void *addr, size_t *addrlen),
	   (fid, addr, addrlen))
KFI_HELPER(int, kfi_getpeer,
	   (struct kfid_ep *ep, void *addr, size_t *addrlen),
	   (ep, addr, addrlen))
KFI_HELPER(int, kfi_listen,
	   (struct kfid_pep *pep),
	   (pep))
KFI_HELPER(int, kfi_connect,
	   (struct kfid_ep *ep, const void *addr, const void *param, size_t paramlen),
	   (ep, addr, param, paramlen))
KFI_HELPER(int, kfi_accept,
	   (struct kfid_ep *ep, const void *param, size_t paramlen),
	   (ep, param, paramlen))
KFI_HELPER(int, kfi_reject,
	   (struct kfid_pep *pep, kfid_t connreq, const void *param, size_t paramlen),
	   (pep, connreq, param, paramlen))
KFI_HELPER(int, kfi_shutdown,
	   (struct kfid_ep *ep, u64 flags),
	   (ep, flags))
KFI_HELPER(int, kfi_join,
	   (struct kfid_ep *ep, const void *addr, u64 flags, struct kfid_mc **mc,
	    void *context),
	   (ep, addr, flags, mc, context))

/* kfi_tagged.h */
KFI_HELPER(ssize_t, kfi_trecv,
	   (struct kfid_ep *ep, void *buf, size_t len, void *desc, kfi_addr_t src_addr,
	    u64 tag, u64 ignore, void *context),
	   (ep, buf, len, desc, src_addr, tag, ignore, context))
KFI_HELPER(ssize_t, kfi_trecvv,
	   (struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
	    kfi_addr_t src_addr, u64 tag, u64 ignore, void *context),
	   (ep, iov, desc, count, src_addr, tag, ignore, context))
KFI_HELPER(ssize_t, kfi_trecvbv,
	   (struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
	    kfi_addr_t src_addr, u64 tag, u64 ignore, void *context),
	   (ep, biov, desc, count, src_addr, tag, ignore, context))
KFI_HELPER(ssize_t, kfi_trecvsgl,
	   (struct kfid_ep *ep, const struct scatterlist *sgl, void **desc, size_t count,
	    kfi_addr_t src_addr, u64 tag, u64 ignore, void *context),
	   (ep, sgl, desc, count, src_addr, tag, ignore, context))
KFI_HELPER(ssize_t, kfi_trecvmsg,
	   (struct kfid_ep *ep, const struct kfi_msg_tagged *msg, u64 flags),
	   (ep, msg, flags))
KFI_HELPER(ssize_t, kfi_tsend,
	   (struct kfid_ep *ep, const void *buf, size_t len, void *desc, kfi_addr_t dest_addr,
	    u64 tag, void *context),
	   (ep, buf, len, desc, dest_addr, tag, context))
KFI_HELPER(ssize_t, kfi_tsendv,
	   (struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
	    kfi_addr_t dest_addr, u64 tag, void *context),
	   (ep, iov, desc, count, dest_addr, tag, context))
KFI_HELPER(ssize_t, kfi_tsendbv,
	   (struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
	    kfi_addr_t dest_addr, u64 tag, void *context),
	   (ep, biov, desc, count, dest_addr, tag, context))
KFI_HELPER(ssize_t, kfi_tsendsgl,
	   (struct kfid_ep *ep, const struct scatterlist *sgl, void **desc, size_t count,
	    kfi_addr_t dest_addr, u64 tag, void *context),
	   (ep, sgl, desc, count, dest_addr, tag, context))
KFI_HELPER(ssize_t, kfi_tsendmsg,
	   (struct kfid_ep *ep, const struct kfi_msg_tagged *msg, u64 flags),
	   (ep, msg, flags))
KFI_HELPER(ssize_t, kfi_tinject,
	   (struct kfid_ep *ep, const void *buf, size_t len, kfi_addr_t dest_addr, u64 tag),
	   (ep, buf, len, dest_addr, tag))
KFI_HELPER(ssize_t, kfi_tsenddata,
	   (struct kfid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
	    kfi_addr_t dest_addr, u64 tag, void *context),
	   (ep, buf, len, desc, data, dest_addr, tag, context))
KFI_HELPER(ssize_t, kfi_tinjectdata,
	   (struct kfid_ep *ep, const void *buf, size_t len, u64 data, kfi_addr_t dest_addr,
	    u64 tag),
	   (ep, buf, len, data, dest_addr, tag))

/* kfi_rma.h */
KFI_HELPER(ssize_t, kfi_read,
	   (struct kfid_ep *ep, void *buf, size_t len, void *desc, kfi_addr_t src_addr,
	    u64 addr, u64 key, void *context),
	   (ep, buf, len, desc, src_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_readv,
	   (struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
	    kfi_addr_t src_addr, u64 addr, u64 key, void *context),
	   (ep, iov, desc, count, src_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_readbv,
	   (struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
	    kfi_addr_t src_addr, u64 addr, u64 key, void *context),
	   (ep, biov, desc, count, src_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_readsgl,
	   (struct kfid_ep *ep, const struct scatterlist *sgl, void **desc, size_t count,
	    kfi_addr_t src_addr, u64 addr, u64 key, void *context),
	   (ep, sgl, desc, count, src_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_readmsg,
	   (struct kfid_ep *ep, const struct kfi_msg_rma *msg, u64 flags),
	   (ep, msg, flags))
KFI_HELPER(ssize_t, kfi_write,
	   (struct kfid_ep *ep, const void *buf, size_t len, void *desc, kfi_addr_t dest_addr,
	    u64 addr, u64 key, void *context),
	   (ep, buf, len, desc, dest_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_writev,
	   (struct kfid_ep *ep, const struct kvec *iov, void **desc, size_t count,
	    kfi_addr_t dest_addr, u64 addr, u64 key, void *context),
	   (ep, iov, desc, count, dest_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_writebv,
	   (struct kfid_ep *ep, const struct bio_vec *biov, void **desc, size_t count,
	    kfi_addr_t dest_addr, u64 addr, u64 key, void *context),
	   (ep, biov, desc, count, dest_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_writesgl,
	   (struct kfid_ep *ep, const struct scatterlist *sgl, void **desc, size_t count,
	    kfi_addr_t dest_addr, u64 addr, u64 key, void *context),
	   (ep, sgl, desc, count, dest_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_writemsg,
	   (struct kfid_ep *ep, const struct kfi_msg_rma *msg, u64 flags),
	   (ep, msg, flags))
KFI_HELPER(ssize_t, kfi_inject_write,
	   (struct kfid_ep *ep, const void *buf, size_t len, kfi_addr_t dest_addr, u64 addr,
	    u64 key),
	   (ep, buf, len, dest_addr, addr, key))
KFI_HELPER(ssize_t, kfi_writedata,
	   (struct kfid_ep *ep, const void *buf, size_t len, void *desc, u64 data,
	    kfi_addr_t dest_addr, u64 addr, u64 key, void *context),
	   (ep, buf, len, desc, data, dest_addr, addr, key, context))
KFI_HELPER(ssize_t, kfi_inject_writedata,
	   (struct kfid_ep *ep, const void *buf, size_t len, u64 data, kfi_addr_t dest_addr,
	    u64 addr, u64 key),
	   (ep, buf, len, data, dest_addr, addr, key))

/* kfi_atomic.h */
KFI_HELPER(ssize_t, kfi_atomic,
	   (struct kfid_ep *ep, const void *buf, size_t count, void *desc,
	    kfi_addr_t dest_addr, u64 addr, u64 key, enum kfi_datatype datatype,
	    enum kfi_op op, void *context),
	   (ep, buf, count, desc, dest_addr, addr, key, datatype, op, context))
KFI_HELPER(ssize_t, kfi_atomicv,
	   (struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc, size_t count,
	    kfi_addr_t dest_addr, u64 addr, u64 key, enum kfi_datatype datatype,
	    enum kfi_op op, void *context),
	   (ep, iov, desc, count, dest_addr, addr, key, datatype, op, context))
KFI_HELPER(ssize_t, kfi_atomicmsg,
	   (struct kfid_ep *ep, const struct kfi_msg_atomic *msg, u64 flags),
	   (ep, msg, flags))
KFI_HELPER(ssize_t, kfi_inject_atomic,
	   (struct kfid_ep *ep, const void *buf, size_t count, kfi_addr_t dest_addr, u64 addr,
	    u64 key, enum kfi_datatype datatype, enum kfi_op op),
	   (ep, buf, count, dest_addr, addr, key, datatype, op))
KFI_HELPER(ssize_t, kfi_fetch_atomic,
	   (struct kfid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	    void *result_desc, kfi_addr_t dest_addr, u64 addr, u64 key,
	    enum kfi_datatype datatype, enum kfi_op op, void *context),
	   (ep, buf, count, desc, result, result_desc, dest_addr, addr, key, datatype, op,
	    context))
KFI_HELPER(ssize_t, kfi_fetch_atomicv,
	   (struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc, size_t count,
	    struct kfi_ioc *resultv, void **result_desc, size_t result_count,
	    kfi_addr_t dest_addr, u64 addr, u64 key, enum kfi_datatype datatype,
	    enum kfi_op op, void *context),
	   (ep, iov, desc, count, resultv, result_desc, result_count, dest_addr, addr, key,
	    datatype, op, context))
KFI_HELPER(ssize_t, kfi_fetch_atomicmsg,
	   (struct kfid_ep *ep, const struct kfi_msg_atomic *msg, struct kfi_ioc *resultv,
	    void **result_desc, size_t result_count, u64 flags),
	   (ep, msg, resultv, result_desc, result_count, flags))
KFI_HELPER(ssize_t, kfi_compare_atomic,
	   (struct kfid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
	    void *compare_desc, void *result, void *result_desc, kfi_addr_t dest_addr,
	    u64 addr, u64 key, enum kfi_datatype datatype, enum kfi_op op, void *context),
	   (ep, buf, count, desc, compare, compare_desc, result, result_desc, dest_addr, addr,
	    key, datatype, op, context))
KFI_HELPER(ssize_t, kfi_compare_atomicv,
	   (struct kfid_ep *ep, const struct kfi_ioc *iov, void **desc, size_t count,
	    const struct kfi_ioc *comparev, void **compare_desc, size_t compare_count,
	    struct kfi_ioc *resultv, void **result_desc, size_t result_count,
	    kfi_addr_t dest_addr, u64 addr, u64 key, enum kfi_datatype datatype,
	    enum kfi_op op, void *context),
	   (ep, iov, desc, count, comparev, compare_desc, compare_count, resultv, result_desc,
	    result_count, dest_addr, addr, key, datatype, op, context))
KFI_HELPER(ssize_t, kfi_compare_atomicmsg,
	   (struct kfid_ep *ep, const struct kfi_msg_atomic *msg,
	    const struct kfi_ioc *comparev, void **compare_desc, size_t compare_count,
	    struct kfi_ioc *resultv, void **result_desc, size_t result_count, u64 flags),
	   (ep, msg, comparev, compare_desc, compare_count, resultv, result_desc, result_count,
	    flags))
KFI_HELPER(int, kfi_atomicvalid,
	   (struct kfid_ep *ep, enum kfi_datatype datatype, enum kfi_op op, size_t *count),
	   (ep, datatype, op, count))
KFI_HELPER(int, kfi_fetch_atomicvalid,
	   (struct kfid_ep *ep, enum kfi_datatype datatype, enum kfi_op op, size_t *count),
	   (ep, datatype, op, count))
KFI_HELPER(int, kfi_compare_atomicvalid,
	   (struct kfid_ep *ep, enum kfi_datatype datatype, enum kfi_op op, size_t *count),
	   (ep, datatype, op, count))
KFI_HELPER(int, kfi_query_atomic,
	   (struct kfid_domain *domain, enum kfi_datatype datatype, enum kfi_op op,
	    struct kfi_atomic_attr *attr, u64 flags),
	   (domain, datatype, op, attr, flags))

/* kfi_eq.h */
KFI_HELPER(const char *, kfi_eq_strerror,
	   (struct kfid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len),
	   (eq, prov_errno, err_data, buf, len))
KFI_HELPER(ssize_t, kfi_cq_read,
	   (struct kfid_cq *cq, void *buf, size_t count),
	   (cq, buf, count))
KFI_HELPER(ssize_t, kfi_cq_sread,
	   (struct kfid_cq *cq, void *buf, size_t count, const void *cond, int timeout),
	   (cq, buf, count, cond, timeout))
KFI_HELPER(const char *, kfi_cq_strerror,
	   (struct kfid_cq *cq, int prov_errno, const void *err_data, char *buf, size_t len),
	   (cq, prov_errno, err_data, buf, len))
