// SPDX-License-Identifier: GPL-2.0
/*
 * The ABI of kfabric 1.7 as assertions: every public constant, layout and
 * signature, checked by the compiler when kfabric.ko is built. The object has
 * neither code nor data.
 *
 * A change that breaks one of these breaks modules built for kfabric 1.7, as
 * binaries or as sources. Additions since then are marked as such: they must
 * not move anything else.
 */

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/types.h>

#include <kfabric.h>
#include <kfi_errno.h>
#include <kfi_log.h>
#include <kfi_prov.h>
#include <kfi_eq.h>
#include <kfi_domain.h>
#include <kfi_endpoint.h>
#include <kfi_cm.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>
#include <kfi_atomic.h>
#include <kfi_trigger.h>
#include <kfi_enosys.h>
#include <kfi_direct.h>
#include <kfi_debug.h>
#include <kfi_cxi_ext.h>

/* A constant has this type and value */
#define ABI_CONST(name, type, value)					\
	static_assert(__same_type(name, type) &&			\
		      (unsigned long long)(name) ==			\
		      (unsigned long long)(value), #name)

/* An enumerator has this value */
#define ABI_ENUM(name, value)						\
	static_assert((name) == (value), #name)

/* A string has this value */
#define ABI_STRING(name, value)						\
	static_assert(!__builtin_strcmp(name, value), #name)

/* A typedef stands for this type */
#define ABI_TYPE(name, ...)						\
	static_assert(__same_type(name, __VA_ARGS__), #name)

/* A type has this size in bytes */
#define ABI_SIZE(type, size)						\
	static_assert(sizeof(type) == (size), "sizeof " #type)

/* A member is at this offset, in bytes */
#define ABI_OFFSET(type, member, offset)				\
	static_assert(offsetof(type, member) == (offset),		\
		      "offset of " #type "." #member)

/* A member is at this offset and has this type */
#define ABI_MEMBER(type, member, offset, ...)				\
	ABI_OFFSET(type, member, offset);				\
	static_assert(__same_type(((type *)0)->member, __VA_ARGS__),	\
		      "type of " #type "." #member)

/* A pointer to this function has this type */
#define ABI_FUNC(name, ...)						\
	static_assert(__same_type(&name, __VA_ARGS__), "type of " #name)

/* A stub has exactly the type of the slot that it is for */
#define ABI_STUB(name, type, slot)					\
	static_assert(__same_type(&name, ((type *)0)->slot), "type of " #name)

/*
 * The head of every object contains a struct completion and an atomic_t, whose
 * sizes depend on the configuration; what follows the head moves with it.
 */
#define KFID_SIZE	sizeof(struct kfid)

/*
 * kfabric.h
 */

ABI_CONST(KFI_MAJOR_VERSION, int, 1);
ABI_CONST(KFI_MINOR_VERSION, int, 7);
ABI_CONST(KFI_PROV_SPECIFIC, int, -0x7fffffff - 1);
ABI_CONST(KFI_MSG, unsigned long long, 2);
ABI_CONST(KFI_RMA, unsigned long long, 4);
ABI_CONST(KFI_TAGGED, unsigned long long, 8);
ABI_CONST(KFI_ATOMIC, unsigned long long, 0x10);
ABI_CONST(KFI_ATOMICS, unsigned long long, 0x10);
ABI_CONST(KFI_MULTICAST, unsigned long long, 0x20);
ABI_CONST(KFI_TAGGED_RMA, unsigned long long, 0x40);
ABI_CONST(KFI_READ, unsigned long long, 0x100);
ABI_CONST(KFI_WRITE, unsigned long long, 0x200);
ABI_CONST(KFI_RECV, unsigned long long, 0x400);
ABI_CONST(KFI_SEND, unsigned long long, 0x800);
ABI_CONST(KFI_TRANSMIT, unsigned long long, 0x800);
ABI_CONST(KFI_REMOTE_READ, unsigned long long, 0x1000);
ABI_CONST(KFI_REMOTE_WRITE, unsigned long long, 0x2000);
ABI_CONST(KFI_MULTI_RECV, unsigned long long, 0x10000);
ABI_CONST(KFI_REMOTE_CQ_DATA, unsigned long long, 0x20000);
ABI_CONST(KFI_MORE, unsigned long long, 0x40000);
ABI_CONST(KFI_PEEK, unsigned long long, 0x80000);
ABI_CONST(KFI_TRIGGER, unsigned long long, 0x100000);
ABI_CONST(KFI_FENCE, unsigned long long, 0x200000);
ABI_CONST(KFI_COMPLETION, unsigned long long, 0x1000000);
ABI_CONST(KFI_EVENT, unsigned long long, 0x1000000);
ABI_CONST(KFI_INJECT, unsigned long long, 0x2000000);
ABI_CONST(KFI_INJECT_COMPLETE, unsigned long long, 0x4000000);
ABI_CONST(KFI_TRANSMIT_COMPLETE, unsigned long long, 0x8000000);
ABI_CONST(KFI_DELIVERY_COMPLETE, unsigned long long, 0x10000000);
ABI_CONST(KFI_AFFINITY, unsigned long long, 0x20000000);
ABI_CONST(KFI_COMMIT_COMPLETE, unsigned long long, 0x40000000);
ABI_CONST(KFI_TAGGED_MULTI_RECV, unsigned long long, 0x80000000);
ABI_CONST(KFI_RMA_PMEM, unsigned long long, 0x2000000000000);
ABI_CONST(KFI_SOURCE_ERR, unsigned long long, 0x4000000000000);
ABI_CONST(KFI_LOCAL_COMM, unsigned long long, 0x8000000000000);
ABI_CONST(KFI_REMOTE_COMM, unsigned long long, 0x10000000000000);
ABI_CONST(KFI_SHARED_AV, unsigned long long, 0x20000000000000);
ABI_CONST(KFI_PROV_ATTR_ONLY, unsigned long long, 0x40000000000000);
ABI_CONST(KFI_NUMERICHOST, unsigned long long, 0x80000000000000);
ABI_CONST(KFI_RMA_EVENT, unsigned long long, 0x100000000000000);
ABI_CONST(KFI_SOURCE, unsigned long long, 0x200000000000000);
ABI_CONST(KFI_NAMED_RX_CTX, unsigned long long, 0x400000000000000);
ABI_CONST(KFI_DIRECTED_RECV, unsigned long long, 0x800000000000000);
ABI_CONST(KFI_ADDR_UNSPEC, unsigned long, 0xffffffffffffffff);
ABI_CONST(KFI_ADDR_NOTAVAIL, unsigned long, 0xffffffffffffffff);
ABI_CONST(KFI_KEY_NOTAVAIL, unsigned long, 0xffffffffffffffff);
ABI_CONST(KFI_SHARED_CONTEXT, unsigned long, 0xffffffffffffffff);
ABI_CONST(KFI_MR_LOCAL, int, 2);
ABI_CONST(KFI_MR_RAW, int, 4);
ABI_CONST(KFI_MR_VIRT_ADDR, int, 8);
ABI_CONST(KFI_MR_PROV_KEY, int, 0x10);
ABI_CONST(KFI_MR_RMA_EVENT, int, 0x20);
ABI_CONST(KFI_MR_ENDPOINT, int, 0x40);
ABI_CONST(KFI_ORDER_NONE, int, 0);
ABI_CONST(KFI_ORDER_RAR, int, 1);
ABI_CONST(KFI_ORDER_RAW, int, 2);
ABI_CONST(KFI_ORDER_RAS, int, 4);
ABI_CONST(KFI_ORDER_WAR, int, 8);
ABI_CONST(KFI_ORDER_WAW, int, 0x10);
ABI_CONST(KFI_ORDER_WAS, int, 0x20);
ABI_CONST(KFI_ORDER_SAR, int, 0x40);
ABI_CONST(KFI_ORDER_SAW, int, 0x80);
ABI_CONST(KFI_ORDER_SAS, int, 0x100);
ABI_CONST(KFI_ORDER_STRICT, int, 0x1ff);
ABI_CONST(KFI_ORDER_DATA, int, 0x10000);
ABI_CONST(KFI_CONTEXT, unsigned long long, 0x800000000000000);
ABI_CONST(KFI_MSG_PREFIX, unsigned long long, 0x400000000000000);
ABI_CONST(KFI_ASYNC_IOV, unsigned long long, 0x200000000000000);
ABI_CONST(KFI_RX_CQ_DATA, unsigned long long, 0x100000000000000);
ABI_CONST(KFI_LOCAL_MR, unsigned long long, 0x80000000000000);
ABI_CONST(KFI_NOTIFY_FLAGS_ONLY, unsigned long long, 0x40000000000000);
ABI_CONST(KFI_RESTRICTED_COMP, unsigned long long, 0x20000000000000);
ABI_CONST(KFI_CONTEXT2, unsigned long long, 0x10000000000000);
ABI_CONST(KFI_SELECTIVE_COMPLETION, unsigned long long, 0x800000000000000);

ABI_ENUM(KFI_PATH_MAX, 256);
ABI_ENUM(KFI_NAME_MAX, 64);
ABI_ENUM(KFI_VERSION_MAX, 64);

ABI_ENUM(KFI_FORMAT_UNSPEC, 0);
ABI_ENUM(KFI_SOCKADDR, 1);
ABI_ENUM(KFI_SOCKADDR_IN, 2);
ABI_ENUM(KFI_SOCKADDR_IN6, 3);
ABI_ENUM(KFI_SOCKADDR_IB, 4);
ABI_ENUM(KFI_ADDR_GNI, 5);
ABI_ENUM(KFI_ADDR_CXI, 6);

ABI_ENUM(KFI_AV_UNSPEC, 0);
ABI_ENUM(KFI_AV_MAP, 1);
ABI_ENUM(KFI_AV_TABLE, 2);

ABI_ENUM(KFI_PROGRESS_UNSPEC, 0);
ABI_ENUM(KFI_PROGRESS_AUTO, 1);
ABI_ENUM(KFI_PROGRESS_MANUAL, 2);

ABI_ENUM(KFI_THREAD_UNSPEC, 0);
ABI_ENUM(KFI_THREAD_SAFE, 1);
ABI_ENUM(KFI_THREAD_FID, 2);
ABI_ENUM(KFI_THREAD_DOMAIN, 3);
ABI_ENUM(KFI_THREAD_COMPLETION, 4);
ABI_ENUM(KFI_THREAD_ENDPOINT, 5);

ABI_ENUM(KFI_RM_UNSPEC, 0);
ABI_ENUM(KFI_RM_DISABLED, 1);
ABI_ENUM(KFI_RM_ENABLED, 2);

ABI_ENUM(KFI_EP_UNSPEC, 0);
ABI_ENUM(KFI_EP_MSG, 1);
ABI_ENUM(KFI_EP_DGRAM, 2);
ABI_ENUM(KFI_EP_RDM, 3);
ABI_ENUM(KFI_EP_SOCK_STREAM, 4);
ABI_ENUM(KFI_EP_SOCK_DGRAM, 5);

ABI_ENUM(KFI_PROTO_UNSPEC, 0);
ABI_ENUM(KFI_PROTO_RDMA_CM_IB_RC, 1);
ABI_ENUM(KFI_PROTO_IWARP, 2);
ABI_ENUM(KFI_PROTO_IB_UD, 3);
ABI_ENUM(KFI_PROTO_UDP, 4);
ABI_ENUM(KFI_PROTO_SOCK_TCP, 5);
ABI_ENUM(KFI_PROTO_IWARP_RDM, 6);
ABI_ENUM(KFI_PROTO_IB_RDM, 7);
ABI_ENUM(KFI_PROTO_GNI, 8);
ABI_ENUM(KFI_PROTO_CXI, 9);

ABI_ENUM(KFI_KVEC, 1);
ABI_ENUM(KFI_BVEC, 2);
ABI_ENUM(KFI_SGL, 3);

ABI_ENUM(KFI_TC_UNSPEC, 0);
ABI_ENUM(KFI_TC_DSCP, 256);
ABI_ENUM(KFI_TC_LABEL, 512);
ABI_ENUM(KFI_TC_BEST_EFFORT, 512);
ABI_ENUM(KFI_TC_LOW_LATENCY, 513);
ABI_ENUM(KFI_TC_DEDICATED_ACCESS, 514);
ABI_ENUM(KFI_TC_BULK_DATA, 515);
ABI_ENUM(KFI_TC_SCAVENGER, 516);
ABI_ENUM(KFI_TC_NETWORK_CTRL, 517);

ABI_ENUM(KFI_CLASS_UNSPEC, 0);
ABI_ENUM(KFI_CLASS_FABRIC, 1);
ABI_ENUM(KFI_CLASS_DOMAIN, 2);
ABI_ENUM(KFI_CLASS_EP, 3);
ABI_ENUM(KFI_CLASS_SEP, 4);
ABI_ENUM(KFI_CLASS_RX_CTX, 5);
ABI_ENUM(KFI_CLASS_SRX_CTX, 6);
ABI_ENUM(KFI_CLASS_TX_CTX, 7);
ABI_ENUM(KFI_CLASS_STX_CTX, 8);
ABI_ENUM(KFI_CLASS_PEP, 9);
ABI_ENUM(KFI_CLASS_INTERFACE, 10);
ABI_ENUM(KFI_CLASS_AV, 11);
ABI_ENUM(KFI_CLASS_MR, 12);
ABI_ENUM(KFI_CLASS_EQ, 13);
ABI_ENUM(KFI_CLASS_CQ, 14);
ABI_ENUM(KFI_CLASS_CNTR, 15);
ABI_ENUM(KFI_CLASS_WAIT, 16);
ABI_ENUM(KFI_CLASS_POLL, 17);
ABI_ENUM(KFI_CLASS_CONNREQ, 18);

ABI_ENUM(KFI_GETFIDFLAG, 0);
ABI_ENUM(KFI_SETFIDFLAG, 1);
ABI_ENUM(KFI_GETOPSFLAG, 2);
ABI_ENUM(KFI_SETOPSFLAG, 3);
ABI_ENUM(KFI_ALIAS, 4);
ABI_ENUM(KFI_GETWAIT, 5);
ABI_ENUM(KFI_ENABLE, 6);
ABI_ENUM(KFI_BACKLOG, 7);
ABI_ENUM(KFI_GET_RAW_MR, 8);
ABI_ENUM(KFI_MAP_RAW_MR, 9);
ABI_ENUM(KFI_UNMAP_KEY, 10);
ABI_ENUM(KFI_QUEUE_WORK, 11);
ABI_ENUM(KFI_CANCEL_WORK, 12);
ABI_ENUM(KFI_FLUSH_WORK, 13);
ABI_ENUM(KFI_REFRESH, 14);

ABI_ENUM(KFI_TYPE_INFO, 0);
ABI_ENUM(KFI_TYPE_EP_TYPE, 1);
ABI_ENUM(KFI_TYPE_CAPS, 2);
ABI_ENUM(KFI_TYPE_OP_FLAGS, 3);
ABI_ENUM(KFI_TYPE_ADDR_FORMAT, 4);
ABI_ENUM(KFI_TYPE_TX_ATTR, 5);
ABI_ENUM(KFI_TYPE_RX_ATTR, 6);
ABI_ENUM(KFI_TYPE_EP_ATTR, 7);
ABI_ENUM(KFI_TYPE_DOMAIN_ATTR, 8);
ABI_ENUM(KFI_TYPE_FABRIC_ATTR, 9);
ABI_ENUM(KFI_TYPE_THREADING, 10);
ABI_ENUM(KFI_TYPE_PROGRESS, 11);
ABI_ENUM(KFI_TYPE_PROTOCOL, 12);
ABI_ENUM(KFI_TYPE_MSG_ORDER, 13);
ABI_ENUM(KFI_TYPE_MODE, 14);
ABI_ENUM(KFI_TYPE_AV_TYPE, 15);
ABI_ENUM(KFI_TYPE_ATOMIC_TYPE, 16);
ABI_ENUM(KFI_TYPE_ATOMIC_OP, 17);
ABI_ENUM(KFI_TYPE_VERSION, 18);
ABI_ENUM(KFI_TYPE_EQ_EVENT, 19);
ABI_ENUM(KFI_TYPE_CQ_EVENT_FLAGS, 20);
ABI_ENUM(KFI_TYPE_MR_MODE, 21);
ABI_ENUM(KFI_TYPE_OP_TYPE, 22);

ABI_ENUM(KFI_PARAM_STRING, 0);
ABI_ENUM(KFI_PARAM_INT, 1);
ABI_ENUM(KFI_PARAM_BOOL, 2);

ABI_TYPE(kfid_t, struct kfid *);
ABI_TYPE(kfi_addr_t, uint64_t);
ABI_TYPE(kfi_comp_handler, void (*)(struct kfid_cq *, void *));
ABI_TYPE(kfi_event_handler, void (*)(struct kfid_eq *, void *));

ABI_SIZE(struct kfi_tx_attr, 80);
ABI_MEMBER(struct kfi_tx_attr, caps, 0, uint64_t);
ABI_MEMBER(struct kfi_tx_attr, mode, 8, uint64_t);
ABI_MEMBER(struct kfi_tx_attr, op_flags, 16, uint64_t);
ABI_MEMBER(struct kfi_tx_attr, msg_order, 24, uint64_t);
ABI_MEMBER(struct kfi_tx_attr, comp_order, 32, uint64_t);
ABI_MEMBER(struct kfi_tx_attr, inject_size, 40, size_t);
ABI_MEMBER(struct kfi_tx_attr, size, 48, size_t);
ABI_MEMBER(struct kfi_tx_attr, iov_limit, 56, size_t);
ABI_MEMBER(struct kfi_tx_attr, rma_iov_limit, 64, size_t);
ABI_MEMBER(struct kfi_tx_attr, tclass, 72, uint32_t);

ABI_SIZE(struct kfi_rx_attr, 64);
ABI_MEMBER(struct kfi_rx_attr, caps, 0, uint64_t);
ABI_MEMBER(struct kfi_rx_attr, mode, 8, uint64_t);
ABI_MEMBER(struct kfi_rx_attr, op_flags, 16, uint64_t);
ABI_MEMBER(struct kfi_rx_attr, msg_order, 24, uint64_t);
ABI_MEMBER(struct kfi_rx_attr, comp_order, 32, uint64_t);
ABI_MEMBER(struct kfi_rx_attr, total_buffered_recv, 40, size_t);
ABI_MEMBER(struct kfi_rx_attr, size, 48, size_t);
ABI_MEMBER(struct kfi_rx_attr, iov_limit, 56, size_t);

ABI_SIZE(struct kfi_ep_attr, 96);
ABI_MEMBER(struct kfi_ep_attr, type, 0, enum kfi_ep_type);
ABI_MEMBER(struct kfi_ep_attr, protocol, 4, uint32_t);
ABI_MEMBER(struct kfi_ep_attr, protocol_version, 8, uint32_t);
ABI_MEMBER(struct kfi_ep_attr, max_msg_size, 16, size_t);
ABI_MEMBER(struct kfi_ep_attr, msg_prefix_size, 24, size_t);
ABI_MEMBER(struct kfi_ep_attr, max_order_raw_size, 32, size_t);
ABI_MEMBER(struct kfi_ep_attr, max_order_war_size, 40, size_t);
ABI_MEMBER(struct kfi_ep_attr, max_order_waw_size, 48, size_t);
ABI_MEMBER(struct kfi_ep_attr, mem_tag_format, 56, uint64_t);
ABI_MEMBER(struct kfi_ep_attr, tx_ctx_cnt, 64, size_t);
ABI_MEMBER(struct kfi_ep_attr, rx_ctx_cnt, 72, size_t);
ABI_MEMBER(struct kfi_ep_attr, auth_key_size, 80, size_t);
ABI_MEMBER(struct kfi_ep_attr, auth_key, 88, uint8_t *);

ABI_SIZE(struct kfi_domain_attr, 192);
ABI_MEMBER(struct kfi_domain_attr, domain, 0, struct kfid_domain *);
ABI_MEMBER(struct kfi_domain_attr, name, 8, char *);
ABI_MEMBER(struct kfi_domain_attr, threading, 16, enum kfi_threading);
ABI_MEMBER(struct kfi_domain_attr, control_progress, 20, enum kfi_progress);
ABI_MEMBER(struct kfi_domain_attr, data_progress, 24, enum kfi_progress);
ABI_MEMBER(struct kfi_domain_attr, resource_mgmt, 28, enum kfi_resource_mgmt);
ABI_MEMBER(struct kfi_domain_attr, av_type, 32, enum kfi_av_type);
ABI_MEMBER(struct kfi_domain_attr, mr_mode, 36, int);
ABI_MEMBER(struct kfi_domain_attr, mr_key_size, 40, size_t);
ABI_MEMBER(struct kfi_domain_attr, cq_data_size, 48, size_t);
ABI_MEMBER(struct kfi_domain_attr, cq_cnt, 56, size_t);
ABI_MEMBER(struct kfi_domain_attr, ep_cnt, 64, size_t);
ABI_MEMBER(struct kfi_domain_attr, tx_ctx_cnt, 72, size_t);
ABI_MEMBER(struct kfi_domain_attr, rx_ctx_cnt, 80, size_t);
ABI_MEMBER(struct kfi_domain_attr, max_ep_tx_ctx, 88, size_t);
ABI_MEMBER(struct kfi_domain_attr, max_ep_rx_ctx, 96, size_t);
ABI_MEMBER(struct kfi_domain_attr, max_ep_stx_ctx, 104, size_t);
ABI_MEMBER(struct kfi_domain_attr, max_ep_srx_ctx, 112, size_t);
ABI_MEMBER(struct kfi_domain_attr, cntr_cnt, 120, size_t);
ABI_MEMBER(struct kfi_domain_attr, mr_iov_limit, 128, size_t);
ABI_MEMBER(struct kfi_domain_attr, caps, 136, uint64_t);
ABI_MEMBER(struct kfi_domain_attr, mode, 144, uint64_t);
ABI_MEMBER(struct kfi_domain_attr, auth_key, 152, uint8_t *);
ABI_MEMBER(struct kfi_domain_attr, auth_key_size, 160, size_t);
ABI_MEMBER(struct kfi_domain_attr, max_err_data, 168, size_t);
ABI_MEMBER(struct kfi_domain_attr, mr_cnt, 176, size_t);
ABI_MEMBER(struct kfi_domain_attr, tclass, 184, uint32_t);

ABI_SIZE(struct kfi_fabric_attr, 32);
ABI_MEMBER(struct kfi_fabric_attr, fabric, 0, struct kfid_fabric *);
ABI_MEMBER(struct kfi_fabric_attr, name, 8, char *);
ABI_MEMBER(struct kfi_fabric_attr, prov_name, 16, char *);
ABI_MEMBER(struct kfi_fabric_attr, prov_version, 24, uint32_t);
ABI_MEMBER(struct kfi_fabric_attr, api_version, 28, uint32_t);

ABI_SIZE(struct kfi_info, 112);
ABI_MEMBER(struct kfi_info, next, 0, struct kfi_info *);
ABI_MEMBER(struct kfi_info, caps, 8, uint64_t);
ABI_MEMBER(struct kfi_info, mode, 16, uint64_t);
ABI_MEMBER(struct kfi_info, addr_format, 24, uint32_t);
ABI_MEMBER(struct kfi_info, src_addrlen, 32, size_t);
ABI_MEMBER(struct kfi_info, dest_addrlen, 40, size_t);
ABI_MEMBER(struct kfi_info, src_addr, 48, void *);
ABI_MEMBER(struct kfi_info, dest_addr, 56, void *);
ABI_MEMBER(struct kfi_info, handle, 64, kfid_t);
ABI_MEMBER(struct kfi_info, tx_attr, 72, struct kfi_tx_attr *);
ABI_MEMBER(struct kfi_info, rx_attr, 80, struct kfi_rx_attr *);
ABI_MEMBER(struct kfi_info, ep_attr, 88, struct kfi_ep_attr *);
ABI_MEMBER(struct kfi_info, domain_attr, 96, struct kfi_domain_attr *);
ABI_MEMBER(struct kfi_info, fabric_attr, 104, struct kfi_fabric_attr *);

ABI_SIZE(struct kfi_ops, 40);
ABI_MEMBER(struct kfi_ops, size, 0, size_t);
ABI_MEMBER(struct kfi_ops, close, 8, int (*)(struct kfid *));
ABI_MEMBER(struct kfi_ops, bind, 16,
	   int (*)(struct kfid *, struct kfid *, uint64_t));
ABI_MEMBER(struct kfi_ops, control, 24, int (*)(struct kfid *, int, void *));
ABI_MEMBER(struct kfi_ops, ops_open, 32,
	   int (*)(struct kfid *, const char *, uint64_t, void **, void *));

ABI_MEMBER(struct kfid, fclass, 0, size_t);
ABI_MEMBER(struct kfid, context, 8, void *);
ABI_MEMBER(struct kfid, ops, 16, struct kfi_ops *);
ABI_MEMBER(struct kfid, comp, 24, struct completion);
ABI_MEMBER(struct kfid, ref_cnt,
	   offsetof(struct kfid, comp) + sizeof(struct completion), atomic_t);

/* 40 in kfabric 1.7; trywait was appended here */
ABI_SIZE(struct kfi_ops_fabric, 48);
ABI_MEMBER(struct kfi_ops_fabric, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_fabric, domain, 8,
	   int (*)(struct kfid_fabric *, struct kfi_info *,
		   struct kfid_domain **, void *));
ABI_MEMBER(struct kfi_ops_fabric, passive_ep, 16,
	   int (*)(struct kfid_fabric *, struct kfi_info *, struct kfid_pep **,
		   void *));
ABI_MEMBER(struct kfi_ops_fabric, eq_open, 24,
	   int (*)(struct kfid_fabric *, struct kfi_eq_attr *,
		   struct kfid_eq **, kfi_event_handler, void *));
ABI_MEMBER(struct kfi_ops_fabric, wait_open, 32,
	   int (*)(struct kfid_fabric *, struct kfi_wait_attr *,
		   struct kfid_wait **));
ABI_MEMBER(struct kfi_ops_fabric, trywait, 40,
	   int (*)(struct kfid_fabric *, struct kfid **, int));

ABI_SIZE(struct kfid_fabric, KFID_SIZE + 16);
ABI_MEMBER(struct kfid_fabric, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_fabric, ops, KFID_SIZE, struct kfi_ops_fabric *);
ABI_MEMBER(struct kfid_fabric, api_version, KFID_SIZE + 8, uint32_t);

ABI_SIZE(struct kfi_alias, 16);
ABI_MEMBER(struct kfi_alias, fid, 0, struct kfid **);
ABI_MEMBER(struct kfi_alias, flags, 8, uint64_t);

ABI_SIZE(struct kfi_mr_raw_attr, 32);
ABI_MEMBER(struct kfi_mr_raw_attr, flags, 0, uint64_t);
ABI_MEMBER(struct kfi_mr_raw_attr, base_addr, 8, uint64_t *);
ABI_MEMBER(struct kfi_mr_raw_attr, raw_key, 16, uint8_t *);
ABI_MEMBER(struct kfi_mr_raw_attr, key_size, 24, size_t *);

ABI_SIZE(struct kfi_mr_map_raw, 40);
ABI_MEMBER(struct kfi_mr_map_raw, flags, 0, uint64_t);
ABI_MEMBER(struct kfi_mr_map_raw, base_addr, 8, uint64_t);
ABI_MEMBER(struct kfi_mr_map_raw, raw_key, 16, uint8_t *);
ABI_MEMBER(struct kfi_mr_map_raw, key_size, 24, size_t);
ABI_MEMBER(struct kfi_mr_map_raw, key, 32, uint64_t *);

ABI_SIZE(struct kfi_param, 32);
ABI_MEMBER(struct kfi_param, name, 0, const char *);
ABI_MEMBER(struct kfi_param, type, 8, enum kfi_param_type);
ABI_MEMBER(struct kfi_param, help_string, 16, const char *);
ABI_MEMBER(struct kfi_param, value, 24, const char *);

ABI_SIZE(struct kfi_context, 32);
ABI_MEMBER(struct kfi_context, internal[0], 0, void *);
ABI_SIZE(typeof_member(struct kfi_context, internal), 32);

ABI_SIZE(struct kfi_context2, 64);
ABI_MEMBER(struct kfi_context2, internal[0], 0, void *);
ABI_SIZE(typeof_member(struct kfi_context2, internal), 64);

ABI_FUNC(kfi_tc_dscp_set, uint32_t (*)(uint8_t));
ABI_FUNC(kfi_tc_dscp_get, uint8_t (*)(uint32_t));
ABI_FUNC(kfi_close, int (*)(struct kfid *));
ABI_FUNC(kfi_control, int (*)(struct kfid *, int, void *));
ABI_FUNC(kfi_alias, int (*)(struct kfid *, struct kfid **, uint64_t));
ABI_FUNC(kfi_open_ops,
	 int (*)(struct kfid *, const char *, uint64_t, void **, void *));
ABI_FUNC(kfi_version, uint32_t (*)(void));
ABI_FUNC(kfi_getinfo,
	 int (*)(uint32_t, const char *, const char *, uint64_t,
		 struct kfi_info *, struct kfi_info **));
ABI_FUNC(kfi_freeinfo, void (*)(struct kfi_info *));
ABI_FUNC(kfi_allocinfo, struct kfi_info *(*)(void));
ABI_FUNC(kfi_dupinfo, struct kfi_info *(*)(const struct kfi_info *));
ABI_FUNC(kfi_fabric,
	 int (*)(struct kfi_fabric_attr *, struct kfid_fabric **, void *));
ABI_FUNC(kfi_tostr, char *(*)(const void *, enum kfi_type));
ABI_FUNC(kfi_getparams, int (*)(struct kfi_param **, int *));
ABI_FUNC(kfi_freeparams, void (*)(struct kfi_param *));

/* The head is as long as its members need */
ABI_SIZE(struct kfid,
	 ALIGN(offsetof(struct kfid, ref_cnt) + sizeof(atomic_t),
	       sizeof(void *)));

/* Version macros, also with arguments that are expressions */
ABI_CONST(KFI_VERSION(1, 7), int, 65543);
ABI_CONST(KFI_VERSION(0 | 1, 3 | 4), int, 65543);
ABI_CONST(KFI_MAJOR(KFI_VERSION(1, 7)), int, 1);
ABI_CONST(KFI_MINOR(KFI_VERSION(1, 7)), int, 7);
ABI_ENUM(KFI_VERSION_GE(KFI_VERSION(1, 7), KFI_VERSION(1, 7)), 1);
ABI_ENUM(KFI_VERSION_GE(KFI_VERSION(1, 7), KFI_VERSION(1, 6)), 1);
ABI_ENUM(KFI_VERSION_GE(KFI_VERSION(1, 6), KFI_VERSION(1, 7)), 0);
ABI_ENUM(KFI_VERSION_GE(KFI_VERSION(2, 0), KFI_VERSION(1, 7)), 1);
ABI_ENUM(KFI_VERSION_LT(KFI_VERSION(1, 6), KFI_VERSION(1, 7)), 1);
ABI_ENUM(KFI_VERSION_LT(KFI_VERSION(1, 7), KFI_VERSION(1, 7)), 0);
ABI_ENUM(KFI_VERSION_LT(KFI_VERSION(2, 0), KFI_VERSION(1, 7)), 0);

/* Added since kfabric 1.7 */
ABI_ENUM(KFI_GETWAITOBJ, KFI_REFRESH + 1);
ABI_FUNC(kfi_trywait, int (*)(struct kfid_fabric *, struct kfid **, int));

/*
 * kfi_errno.h
 */

ABI_CONST(KFI_SUCCESS, int, 0);
ABI_CONST(KFI_ENOENT, int, 2);
ABI_CONST(KFI_EIO, int, 5);
ABI_CONST(KFI_E2BIG, int, 7);
ABI_CONST(KFI_EBADF, int, 9);
ABI_CONST(KFI_EAGAIN, int, 11);
ABI_CONST(KFI_ENOMEM, int, 12);
ABI_CONST(KFI_EACCES, int, 13);
ABI_CONST(KFI_EBUSY, int, 16);
ABI_CONST(KFI_ENODEV, int, 19);
ABI_CONST(KFI_EINVAL, int, 22);
ABI_CONST(KFI_EMFILE, int, 24);
ABI_CONST(KFI_ENOSPC, int, 28);
ABI_CONST(KFI_ENOSYS, int, 38);
ABI_CONST(KFI_ENOMSG, int, 42);
ABI_CONST(KFI_ENODATA, int, 61);
ABI_CONST(KFI_EMSGSIZE, int, 90);
ABI_CONST(KFI_ENOPROTOOPT, int, 92);
ABI_CONST(KFI_EOPNOTSUPP, int, 95);
ABI_CONST(KFI_EADDRINUSE, int, 98);
ABI_CONST(KFI_EADDRNOTAVAIL, int, 99);
ABI_CONST(KFI_ENETDOWN, int, 100);
ABI_CONST(KFI_ENETUNREACH, int, 101);
ABI_CONST(KFI_ECONNABORTED, int, 103);
ABI_CONST(KFI_ECONNRESET, int, 104);
ABI_CONST(KFI_EISCONN, int, 106);
ABI_CONST(KFI_ENOTCONN, int, 107);
ABI_CONST(KFI_ESHUTDOWN, int, 108);
ABI_CONST(KFI_ETIMEDOUT, int, 110);
ABI_CONST(KFI_ECONNREFUSED, int, 111);
ABI_CONST(KFI_EHOSTUNREACH, int, 113);
ABI_CONST(KFI_EALREADY, int, 114);
ABI_CONST(KFI_EINPROGRESS, int, 115);
ABI_CONST(KFI_EREMOTEIO, int, 121);
ABI_CONST(KFI_ECANCELED, int, 125);
ABI_CONST(KFI_EKEYREJECTED, int, 129);
ABI_CONST(KFI_ERRNO_OFFSET, int, 256);

ABI_ENUM(KFI_EOTHER, 256);
ABI_ENUM(KFI_ETOOSMALL, 257);
ABI_ENUM(KFI_EOPBADSTATE, 258);
ABI_ENUM(KFI_EAVAIL, 259);
ABI_ENUM(KFI_EBADFLAGS, 260);
ABI_ENUM(KFI_ENOEQ, 261);
ABI_ENUM(KFI_EDOMAIN, 262);
ABI_ENUM(KFI_ENOCQ, 263);
ABI_ENUM(KFI_ECRC, 264);
ABI_ENUM(KFI_ETRUNC, 265);
ABI_ENUM(KFI_ENOKEY, 266);
ABI_ENUM(KFI_ENOAV, 267);
ABI_ENUM(KFI_EOVERRUN, 268);
ABI_ENUM(FI_ERRNO_MAX, 269);

ABI_FUNC(kfi_strerror, const char *(*)(int));

/* Added since kfabric 1.7 */
ABI_ENUM(KFI_ERRNO_MAX, FI_ERRNO_MAX);

/* Behind NOT_USED in kfabric 1.7, some of them misspelt */
ABI_CONST(KFI_EPERM, int, EPERM);
ABI_CONST(KFI_ESRCH, int, ESRCH);
ABI_CONST(KFI_EINTR, int, EINTR);
ABI_CONST(KFI_ENXIO, int, ENXIO);
ABI_CONST(KFI_ENOEXEC, int, ENOEXEC);
ABI_CONST(KFI_ECHILD, int, ECHILD);
ABI_CONST(KFI_EFAULT, int, EFAULT);
ABI_CONST(KFI_ENOTBLK, int, ENOTBLK);
ABI_CONST(KFI_EEXIST, int, EEXIST);
ABI_CONST(KFI_EXDEV, int, EXDEV);
ABI_CONST(KFI_ENOTDIR, int, ENOTDIR);
ABI_CONST(KFI_EISDIR, int, EISDIR);
ABI_CONST(KFI_ENFILE, int, ENFILE);
ABI_CONST(KFI_ENOTTY, int, ENOTTY);
ABI_CONST(KFI_ETXTBSY, int, ETXTBSY);
ABI_CONST(KFI_EFBIG, int, EFBIG);
ABI_CONST(KFI_ESPIPE, int, ESPIPE);
ABI_CONST(KFI_EROFS, int, EROFS);
ABI_CONST(KFI_EMLINK, int, EMLINK);
ABI_CONST(KFI_EPIPE, int, EPIPE);
ABI_CONST(KFI_EDOM, int, EDOM);
ABI_CONST(KFI_ERANGE, int, ERANGE);
ABI_CONST(KFI_EDEADLK, int, EDEADLK);
ABI_CONST(KFI_ENAMETOOLONG, int, ENAMETOOLONG);
ABI_CONST(KFI_ENOLCK, int, ENOLCK);
ABI_CONST(KFI_ENOTEMPTY, int, ENOTEMPTY);
ABI_CONST(KFI_ELOOP, int, ELOOP);
ABI_CONST(KFI_EWOULDBLOCK, int, EWOULDBLOCK);
ABI_CONST(KFI_EIDRM, int, EIDRM);
ABI_CONST(KFI_ECHRNG, int, ECHRNG);
ABI_CONST(KFI_EL2NSYNC, int, EL2NSYNC);
ABI_CONST(KFI_EL3HLT, int, EL3HLT);
ABI_CONST(KFI_EL3RST, int, EL3RST);
ABI_CONST(KFI_ELNRNG, int, ELNRNG);
ABI_CONST(KFI_EUNATCH, int, EUNATCH);
ABI_CONST(KFI_ENOCSI, int, ENOCSI);
ABI_CONST(KFI_EL2HLT, int, EL2HLT);
ABI_CONST(KFI_EBADE, int, EBADE);
ABI_CONST(KFI_EBADR, int, EBADR);
ABI_CONST(KFI_EXFULL, int, EXFULL);
ABI_CONST(KFI_ENOANO, int, ENOANO);
ABI_CONST(KFI_EBADRQC, int, EBADRQC);
ABI_CONST(KFI_EBADSLT, int, EBADSLT);
ABI_CONST(KFI_EDEADLOCK, int, EDEADLOCK);
ABI_CONST(KFI_EBFONT, int, EBFONT);
ABI_CONST(KFI_ENOSTR, int, ENOSTR);
ABI_CONST(KFI_ETIME, int, ETIME);
ABI_CONST(KFI_ENOSR, int, ENOSR);
ABI_CONST(KFI_ENONET, int, ENONET);
ABI_CONST(KFI_ENOPKG, int, ENOPKG);
ABI_CONST(KFI_EREMOTE, int, EREMOTE);
ABI_CONST(KFI_ENOLINK, int, ENOLINK);
ABI_CONST(KFI_EADV, int, EADV);
ABI_CONST(KFI_ESRMNT, int, ESRMNT);
ABI_CONST(KFI_ECOMM, int, ECOMM);
ABI_CONST(KFI_EPROTO, int, EPROTO);
ABI_CONST(KFI_EMULTIHOP, int, EMULTIHOP);
ABI_CONST(KFI_EDOTDOT, int, EDOTDOT);
ABI_CONST(KFI_EBADMSG, int, EBADMSG);
ABI_CONST(KFI_EOVERFLOW, int, EOVERFLOW);
ABI_CONST(KFI_ENOTUNIQ, int, ENOTUNIQ);
ABI_CONST(KFI_EBADFD, int, EBADFD);
ABI_CONST(KFI_EREMCHG, int, EREMCHG);
ABI_CONST(KFI_ELIBACC, int, ELIBACC);
ABI_CONST(KFI_ELIBBAD, int, ELIBBAD);
ABI_CONST(KFI_ELIBSCN, int, ELIBSCN);
ABI_CONST(KFI_ELIBMAX, int, ELIBMAX);
ABI_CONST(KFI_ELIBEXEC, int, ELIBEXEC);
ABI_CONST(KFI_EILSEQ, int, EILSEQ);
ABI_CONST(KFI_ERESTART, int, ERESTART);
ABI_CONST(KFI_ESTRPIPE, int, ESTRPIPE);
ABI_CONST(KFI_EUSERS, int, EUSERS);
ABI_CONST(KFI_ENOTSOCK, int, ENOTSOCK);
ABI_CONST(KFI_EDESTADDRREQ, int, EDESTADDRREQ);
ABI_CONST(KFI_EPROTOTYPE, int, EPROTOTYPE);
ABI_CONST(KFI_EPROTONOSUPPORT, int, EPROTONOSUPPORT);
ABI_CONST(KFI_ESOCKTNOSUPPORT, int, ESOCKTNOSUPPORT);
ABI_CONST(KFI_EPFNOSUPPORT, int, EPFNOSUPPORT);
ABI_CONST(KFI_EAFNOSUPPORT, int, EAFNOSUPPORT);
ABI_CONST(KFI_ENETRESET, int, ENETRESET);
ABI_CONST(KFI_ENOBUFS, int, ENOBUFS);
ABI_CONST(KFI_ETOOMANYREFS, int, ETOOMANYREFS);
ABI_CONST(KFI_EHOSTDOWN, int, EHOSTDOWN);
ABI_CONST(KFI_ESTALE, int, ESTALE);
ABI_CONST(KFI_EUCLEAN, int, EUCLEAN);
ABI_CONST(KFI_ENOTNAM, int, ENOTNAM);
ABI_CONST(KFI_ENAVAIL, int, ENAVAIL);
ABI_CONST(KFI_EISNAM, int, EISNAM);
ABI_CONST(KFI_EDQUOT, int, EDQUOT);
ABI_CONST(KFI_ENOMEDIUM, int, ENOMEDIUM);
ABI_CONST(KFI_EMEDIUMTYPE, int, EMEDIUMTYPE);
ABI_CONST(KFI_EKEYEXPIRED, int, EKEYEXPIRED);
ABI_CONST(KFI_EKEYREVOKED, int, EKEYREVOKED);
ABI_CONST(KFI_EOWNERDEAD, int, EOWNERDEAD);
ABI_CONST(KFI_ENOTRECOVERABLE, int, ENOTRECOVERABLE);

/*
 * kfi_prov.h
 */

ABI_MEMBER(struct kfi_provider, version, 0, uint32_t);
ABI_MEMBER(struct kfi_provider, kfi_version, 4, uint32_t);
ABI_MEMBER(struct kfi_provider, context, 8, struct kfi_context);
ABI_MEMBER(struct kfi_provider, name, 40, const char *);
ABI_MEMBER(struct kfi_provider, kgetinfo, 48,
	   int (*)(uint32_t, const char *, const char *, uint64_t,
		   struct kfi_info *, struct kfi_info **));
ABI_MEMBER(struct kfi_provider, kfabric, 56,
	   int (*)(struct kfi_fabric_attr *, struct kfid_fabric **, void *));
ABI_MEMBER(struct kfi_provider, cleanup, 64, void (*)(void));
ABI_MEMBER(struct kfi_provider, comp, 72, struct completion);
ABI_MEMBER(struct kfi_provider, ref_cnt,
	   offsetof(struct kfi_provider, comp) + sizeof(struct completion),
	   atomic_t);

ABI_FUNC(kfi_ref_provider, void (*)(struct kfi_provider *));
ABI_FUNC(kfi_deref_provider, void (*)(struct kfi_provider *));
ABI_FUNC(kfi_init_id, void (*)(struct kfid *));
ABI_FUNC(kfi_ref_id, void (*)(struct kfid *));
ABI_FUNC(kfi_deref_id, void (*)(struct kfid *));
ABI_FUNC(kfi_close_id, void (*)(struct kfid *));
ABI_FUNC(kfi_provider_register, int (*)(struct kfi_provider *));
ABI_FUNC(kfi_provider_deregister, int (*)(struct kfi_provider *));

/*
 * kfi_eq.h
 */

ABI_ENUM(KFI_WAIT_NONE, 0);
ABI_ENUM(KFI_WAIT_UNSPEC, 1);
ABI_ENUM(KFI_WAIT_SET, 2);
ABI_ENUM(KFI_WAIT_QUEUE, 3);

ABI_ENUM(KFI_NOTIFY, 0);
ABI_ENUM(KFI_CONNREQ, 1);
ABI_ENUM(KFI_CONNECTED, 2);
ABI_ENUM(KFI_SHUTDOWN, 3);
ABI_ENUM(KFI_MR_COMPLETE, 4);
ABI_ENUM(KFI_AV_COMPLETE, 5);
ABI_ENUM(KFI_JOIN_COMPLETE, 6);

ABI_ENUM(KFI_CQ_FORMAT_UNSPEC, 0);
ABI_ENUM(KFI_CQ_FORMAT_CONTEXT, 1);
ABI_ENUM(KFI_CQ_FORMAT_MSG, 2);
ABI_ENUM(KFI_CQ_FORMAT_DATA, 3);
ABI_ENUM(KFI_CQ_FORMAT_TAGGED, 4);

ABI_ENUM(KFI_CQ_COND_NONE, 0);
ABI_ENUM(KFI_CQ_COND_THRESHOLD, 1);

ABI_ENUM(KFI_CNTR_EVENTS_COMP, 0);

ABI_SIZE(struct kfi_wait_attr, 16);
ABI_MEMBER(struct kfi_wait_attr, wait_obj, 0, enum kfi_wait_obj);
ABI_MEMBER(struct kfi_wait_attr, flags, 8, uint64_t);

ABI_SIZE(struct kfid_wait, KFID_SIZE + 8);
ABI_MEMBER(struct kfid_wait, kfid, 0, struct kfid);
ABI_MEMBER(struct kfid_wait, ops, KFID_SIZE, struct kfi_ops_wait *);

ABI_SIZE(struct kfi_ops_wait, 16);
ABI_MEMBER(struct kfi_ops_wait, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_wait, wait, 8, int (*)(struct kfid_wait *, int));

ABI_SIZE(struct kfi_poll_attr, 8);
ABI_MEMBER(struct kfi_poll_attr, flags, 0, uint64_t);

ABI_SIZE(struct kfi_ops_poll, 32);
ABI_MEMBER(struct kfi_ops_poll, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_poll, poll, 8,
	   int (*)(struct kfid_poll *, void **, int));
ABI_MEMBER(struct kfi_ops_poll, poll_add, 16,
	   int (*)(struct kfid_poll *, struct kfid *, uint64_t));
ABI_MEMBER(struct kfi_ops_poll, poll_del, 24,
	   int (*)(struct kfid_poll *, struct kfid *, uint64_t));

ABI_SIZE(struct kfid_poll, KFID_SIZE + 8);
ABI_MEMBER(struct kfid_poll, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_poll, ops, KFID_SIZE, struct kfi_ops_poll *);

ABI_SIZE(struct kfi_eq_attr, 32);
ABI_MEMBER(struct kfi_eq_attr, size, 0, size_t);
ABI_MEMBER(struct kfi_eq_attr, flags, 8, uint64_t);
ABI_MEMBER(struct kfi_eq_attr, wait_obj, 16, enum kfi_wait_obj);
ABI_MEMBER(struct kfi_eq_attr, signaling_vector, 20, int);
ABI_MEMBER(struct kfi_eq_attr, wait_set, 24, struct kfid_wait *);

ABI_SIZE(struct kfi_eq_entry, 24);
ABI_MEMBER(struct kfi_eq_entry, fid, 0, struct kfid *);
ABI_MEMBER(struct kfi_eq_entry, context, 8, void *);
ABI_MEMBER(struct kfi_eq_entry, data, 16, uint64_t);

ABI_SIZE(struct kfi_eq_err_entry, 48);
ABI_MEMBER(struct kfi_eq_err_entry, fid, 0, struct kfid *);
ABI_MEMBER(struct kfi_eq_err_entry, context, 8, void *);
ABI_MEMBER(struct kfi_eq_err_entry, data, 16, uint64_t);
ABI_MEMBER(struct kfi_eq_err_entry, err, 24, int);
ABI_MEMBER(struct kfi_eq_err_entry, prov_errno, 28, int);
ABI_MEMBER(struct kfi_eq_err_entry, err_data, 32, void *);
ABI_MEMBER(struct kfi_eq_err_entry, err_data_size, 40, size_t);

ABI_SIZE(struct kfi_eq_cm_entry, 16);
ABI_MEMBER(struct kfi_eq_cm_entry, fid, 0, struct kfid *);
ABI_MEMBER(struct kfi_eq_cm_entry, info, 8, struct kfi_info *);
ABI_MEMBER(struct kfi_eq_cm_entry, data, 16, uint8_t[]);

ABI_SIZE(struct kfi_ops_eq, 48);
ABI_MEMBER(struct kfi_ops_eq, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_eq, read, 8,
	   ssize_t (*)(struct kfid_eq *, uint32_t *, void *, size_t, uint64_t));
ABI_MEMBER(struct kfi_ops_eq, readerr, 16,
	   ssize_t (*)(struct kfid_eq *, struct kfi_eq_err_entry *, uint64_t));
ABI_MEMBER(struct kfi_ops_eq, write, 24,
	   ssize_t (*)(struct kfid_eq *, uint32_t, const void *, size_t,
		       uint64_t));
ABI_MEMBER(struct kfi_ops_eq, sread, 32,
	   ssize_t (*)(struct kfid_eq *, uint32_t *, void *, size_t, int,
		       uint64_t));
ABI_MEMBER(struct kfi_ops_eq, strerror, 40,
	   const char *(*)(struct kfid_eq *, int, const void *, char *,
			   size_t));

ABI_SIZE(struct kfid_eq, KFID_SIZE + 16);
ABI_MEMBER(struct kfid_eq, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_eq, ops, KFID_SIZE, struct kfi_ops_eq *);
ABI_MEMBER(struct kfid_eq, event_handler, KFID_SIZE + 8, kfi_event_handler);

ABI_SIZE(struct kfi_cq_entry, 8);
ABI_MEMBER(struct kfi_cq_entry, op_context, 0, void *);

ABI_SIZE(struct kfi_cq_msg_entry, 24);
ABI_MEMBER(struct kfi_cq_msg_entry, op_context, 0, void *);
ABI_MEMBER(struct kfi_cq_msg_entry, flags, 8, uint64_t);
ABI_MEMBER(struct kfi_cq_msg_entry, len, 16, size_t);

ABI_SIZE(struct kfi_cq_data_entry, 40);
ABI_MEMBER(struct kfi_cq_data_entry, op_context, 0, void *);
ABI_MEMBER(struct kfi_cq_data_entry, flags, 8, uint64_t);
ABI_MEMBER(struct kfi_cq_data_entry, len, 16, size_t);
ABI_MEMBER(struct kfi_cq_data_entry, buf, 24, void *);
ABI_MEMBER(struct kfi_cq_data_entry, data, 32, uint64_t);

ABI_SIZE(struct kfi_cq_tagged_entry, 48);
ABI_MEMBER(struct kfi_cq_tagged_entry, op_context, 0, void *);
ABI_MEMBER(struct kfi_cq_tagged_entry, flags, 8, uint64_t);
ABI_MEMBER(struct kfi_cq_tagged_entry, len, 16, size_t);
ABI_MEMBER(struct kfi_cq_tagged_entry, buf, 24, void *);
ABI_MEMBER(struct kfi_cq_tagged_entry, data, 32, uint64_t);
ABI_MEMBER(struct kfi_cq_tagged_entry, tag, 40, uint64_t);

ABI_SIZE(struct kfi_cq_err_entry, 80);
ABI_MEMBER(struct kfi_cq_err_entry, op_context, 0, void *);
ABI_MEMBER(struct kfi_cq_err_entry, flags, 8, uint64_t);
ABI_MEMBER(struct kfi_cq_err_entry, len, 16, size_t);
ABI_MEMBER(struct kfi_cq_err_entry, buf, 24, void *);
ABI_MEMBER(struct kfi_cq_err_entry, data, 32, uint64_t);
ABI_MEMBER(struct kfi_cq_err_entry, tag, 40, uint64_t);
ABI_MEMBER(struct kfi_cq_err_entry, olen, 48, size_t);
ABI_MEMBER(struct kfi_cq_err_entry, err, 56, int);
ABI_MEMBER(struct kfi_cq_err_entry, prov_errno, 60, int);
ABI_MEMBER(struct kfi_cq_err_entry, err_data, 64, void *);
ABI_MEMBER(struct kfi_cq_err_entry, err_data_size, 72, size_t);

ABI_SIZE(struct kfi_cq_attr, 40);
ABI_MEMBER(struct kfi_cq_attr, size, 0, size_t);
ABI_MEMBER(struct kfi_cq_attr, flags, 8, uint64_t);
ABI_MEMBER(struct kfi_cq_attr, format, 16, enum kfi_cq_format);
ABI_MEMBER(struct kfi_cq_attr, wait_obj, 20, enum kfi_wait_obj);
ABI_MEMBER(struct kfi_cq_attr, signaling_vector, 24, int);
ABI_MEMBER(struct kfi_cq_attr, wait_cond, 28, enum kfi_cq_wait_cond);
ABI_MEMBER(struct kfi_cq_attr, wait_set, 32, struct kfid_wait *);

ABI_SIZE(struct kfi_ops_cq, 64);
ABI_MEMBER(struct kfi_ops_cq, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_cq, read, 8,
	   ssize_t (*)(struct kfid_cq *, void *, size_t));
ABI_MEMBER(struct kfi_ops_cq, readfrom, 16,
	   ssize_t (*)(struct kfid_cq *, void *, size_t, kfi_addr_t *));
ABI_MEMBER(struct kfi_ops_cq, readerr, 24,
	   ssize_t (*)(struct kfid_cq *, struct kfi_cq_err_entry *, uint64_t));
ABI_MEMBER(struct kfi_ops_cq, sread, 32,
	   ssize_t (*)(struct kfid_cq *, void *, size_t, const void *, int));
ABI_MEMBER(struct kfi_ops_cq, sreadfrom, 40,
	   ssize_t (*)(struct kfid_cq *, void *, size_t, kfi_addr_t *,
		       const void *, int));
ABI_MEMBER(struct kfi_ops_cq, signal, 48, int (*)(struct kfid_cq *));
ABI_MEMBER(struct kfi_ops_cq, strerror, 56,
	   const char *(*)(struct kfid_cq *, int, const void *, char *,
			   size_t));

ABI_SIZE(struct kfid_cq, KFID_SIZE + 16);
ABI_MEMBER(struct kfid_cq, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_cq, ops, KFID_SIZE, struct kfi_ops_cq *);
ABI_MEMBER(struct kfid_cq, comp_handler, KFID_SIZE + 8, kfi_comp_handler);

ABI_SIZE(struct kfi_cntr_attr, 24);
ABI_MEMBER(struct kfi_cntr_attr, events, 0, enum kfi_cntr_events);
ABI_MEMBER(struct kfi_cntr_attr, wait_obj, 4, enum kfi_wait_obj);
ABI_MEMBER(struct kfi_cntr_attr, wait_set, 8, struct kfid_wait *);
ABI_MEMBER(struct kfi_cntr_attr, flags, 16, uint64_t);

ABI_SIZE(struct kfi_ops_cntr, 64);
ABI_MEMBER(struct kfi_ops_cntr, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_cntr, read, 8, uint64_t (*)(struct kfid_cntr *));
ABI_MEMBER(struct kfi_ops_cntr, readerr, 16, uint64_t (*)(struct kfid_cntr *));
ABI_MEMBER(struct kfi_ops_cntr, add, 24, int (*)(struct kfid_cntr *, uint64_t));
ABI_MEMBER(struct kfi_ops_cntr, set, 32, int (*)(struct kfid_cntr *, uint64_t));
ABI_MEMBER(struct kfi_ops_cntr, wait, 40,
	   int (*)(struct kfid_cntr *, uint64_t, int));
ABI_MEMBER(struct kfi_ops_cntr, adderr, 48,
	   int (*)(struct kfid_cntr *, uint64_t));
ABI_MEMBER(struct kfi_ops_cntr, seterr, 56,
	   int (*)(struct kfid_cntr *, uint64_t));

ABI_SIZE(struct kfid_cntr, KFID_SIZE + 8);
ABI_MEMBER(struct kfid_cntr, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_cntr, ops, KFID_SIZE, struct kfi_ops_cntr *);

ABI_FUNC(kfi_wait, int (*)(struct kfid_wait *, int));
ABI_FUNC(kfi_poll, int (*)(struct kfid_poll *, void **, int));
ABI_FUNC(kfi_poll_add, int (*)(struct kfid_poll *, struct kfid *, uint64_t));
ABI_FUNC(kfi_poll_del, int (*)(struct kfid_poll *, struct kfid *, uint64_t));
ABI_FUNC(kfi_eq_open,
	 int (*)(struct kfid_fabric *, struct kfi_eq_attr *, struct kfid_eq **,
		 kfi_event_handler, void *));
ABI_FUNC(kfi_eq_read,
	 ssize_t (*)(struct kfid_eq *, uint32_t *, void *, size_t, uint64_t));
ABI_FUNC(kfi_eq_readerr,
	 ssize_t (*)(struct kfid_eq *, struct kfi_eq_err_entry *, uint64_t));
ABI_FUNC(kfi_eq_write,
	 ssize_t (*)(struct kfid_eq *, uint32_t, const void *, size_t,
		     uint64_t));
ABI_FUNC(kfi_eq_sread,
	 ssize_t (*)(struct kfid_eq *, uint32_t *, void *, size_t, int,
		     uint64_t));
ABI_FUNC(kfi_eq_strerror,
	 const char *(*)(struct kfid_eq *, int, const void *, char *, size_t));
ABI_FUNC(kfi_cq_read, ssize_t (*)(struct kfid_cq *, void *, size_t));
ABI_FUNC(kfi_cq_readfrom,
	 ssize_t (*)(struct kfid_cq *, void *, size_t, kfi_addr_t *));
ABI_FUNC(kfi_cq_readerr,
	 ssize_t (*)(struct kfid_cq *, struct kfi_cq_err_entry *, uint64_t));
ABI_FUNC(kfi_cq_sread,
	 ssize_t (*)(struct kfid_cq *, void *, size_t, const void *, int));
ABI_FUNC(kfi_cq_sreadfrom,
	 ssize_t (*)(struct kfid_cq *, void *, size_t, kfi_addr_t *,
		     const void *, int));
ABI_FUNC(kfi_cq_signal, int (*)(struct kfid_cq *));
ABI_FUNC(kfi_cq_strerror,
	 const char *(*)(struct kfid_cq *, int, const void *, char *, size_t));
ABI_FUNC(kfi_cntr_read, uint64_t (*)(struct kfid_cntr *));
ABI_FUNC(kfi_cntr_readerr, uint64_t (*)(struct kfid_cntr *));
ABI_FUNC(kfi_cntr_add, int (*)(struct kfid_cntr *, uint64_t));
ABI_FUNC(kfi_cntr_adderr, int (*)(struct kfid_cntr *, uint64_t));
ABI_FUNC(kfi_cntr_set, int (*)(struct kfid_cntr *, uint64_t));
ABI_FUNC(kfi_cntr_seterr, int (*)(struct kfid_cntr *, uint64_t));
ABI_FUNC(kfi_cntr_wait, int (*)(struct kfid_cntr *, uint64_t, int));

/*
 * kfi_domain.h
 */

ABI_CONST(KFI_SYMMETRIC, unsigned long long, 0x800000000000000);
ABI_CONST(KFI_SYNC_ERR, unsigned long long, 0x400000000000000);
ABI_CONST(KFI_REG_MR, unsigned long long, 0x800000000000000);

ABI_ENUM(KFI_INT8, 0);
ABI_ENUM(KFI_UINT8, 1);
ABI_ENUM(KFI_INT16, 2);
ABI_ENUM(KFI_UINT16, 3);
ABI_ENUM(KFI_INT32, 4);
ABI_ENUM(KFI_UINT32, 5);
ABI_ENUM(KFI_INT64, 6);
ABI_ENUM(KFI_UINT64, 7);
ABI_ENUM(KFI_FLOAT, 8);
ABI_ENUM(KFI_DOUBLE, 9);
ABI_ENUM(KFI_FLOAT_COMPLEX, 10);
ABI_ENUM(KFI_DOUBLE_COMPLEX, 11);
ABI_ENUM(KFI_LONG_DOUBLE, 12);
ABI_ENUM(KFI_LONG_DOUBLE_COMPLEX, 13);
ABI_ENUM(KFI_DATATYPE_LAST, 14);

ABI_ENUM(KFI_MIN, 0);
ABI_ENUM(KFI_MAX, 1);
ABI_ENUM(KFI_SUM, 2);
ABI_ENUM(KFI_PROD, 3);
ABI_ENUM(KFI_LOR, 4);
ABI_ENUM(KFI_LAND, 5);
ABI_ENUM(KFI_BOR, 6);
ABI_ENUM(KFI_BAND, 7);
ABI_ENUM(KFI_LXOR, 8);
ABI_ENUM(KFI_BXOR, 9);
ABI_ENUM(KFI_ATOMIC_READ, 10);
ABI_ENUM(KFI_ATOMIC_WRITE, 11);
ABI_ENUM(KFI_CSWAP, 12);
ABI_ENUM(KFI_CSWAP_NE, 13);
ABI_ENUM(KFI_CSWAP_LE, 14);
ABI_ENUM(KFI_CSWAP_LT, 15);
ABI_ENUM(KFI_CSWAP_GE, 16);
ABI_ENUM(KFI_CSWAP_GT, 17);
ABI_ENUM(KFI_MSWAP, 18);
ABI_ENUM(KFI_ATOMIC_OP_LAST, 19);

ABI_SIZE(struct kfi_av_attr, 48);
ABI_MEMBER(struct kfi_av_attr, type, 0, enum kfi_av_type);
ABI_MEMBER(struct kfi_av_attr, rx_ctx_bits, 4, int);
ABI_MEMBER(struct kfi_av_attr, count, 8, size_t);
ABI_MEMBER(struct kfi_av_attr, ep_per_node, 16, size_t);
ABI_MEMBER(struct kfi_av_attr, name, 24, const char *);
ABI_MEMBER(struct kfi_av_attr, map_addr, 32, void *);
ABI_MEMBER(struct kfi_av_attr, flags, 40, uint64_t);

ABI_SIZE(struct kfi_ops_av, 56);
ABI_MEMBER(struct kfi_ops_av, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_av, insert, 8,
	   int (*)(struct kfid_av *, const void *, size_t, kfi_addr_t *,
		   uint64_t, void *));
ABI_MEMBER(struct kfi_ops_av, insertsvc, 16,
	   int (*)(struct kfid_av *, const char *, const char *, kfi_addr_t *,
		   uint64_t, void *));
ABI_MEMBER(struct kfi_ops_av, insertsym, 24,
	   int (*)(struct kfid_av *, const char *, size_t, const char *, size_t,
		   kfi_addr_t *, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_av, remove, 32,
	   int (*)(struct kfid_av *, kfi_addr_t *, size_t, uint64_t));
ABI_MEMBER(struct kfi_ops_av, lookup, 40,
	   int (*)(struct kfid_av *, kfi_addr_t, void *, size_t *));
ABI_MEMBER(struct kfi_ops_av, straddr, 48,
	   const char *(*)(struct kfid_av *, const void *, char *, size_t *));

ABI_SIZE(struct kfid_av, KFID_SIZE + 8);
ABI_MEMBER(struct kfid_av, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_av, ops, KFID_SIZE, struct kfi_ops_av *);

ABI_SIZE(struct kfid_mr, KFID_SIZE + 24);
ABI_MEMBER(struct kfid_mr, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_mr, mem_desc, KFID_SIZE, void *);
ABI_MEMBER(struct kfid_mr, key, KFID_SIZE + 8, uint64_t);
ABI_MEMBER(struct kfid_mr, iova, KFID_SIZE + 16, uint64_t);

ABI_SIZE(struct kfi_mr_attr, 72);
ABI_MEMBER(struct kfi_mr_attr, type, 0, enum kfi_iov_type);
ABI_MEMBER(struct kfi_mr_attr, mr_iov, 8, const struct kvec *);
ABI_MEMBER(struct kfi_mr_attr, mr_biov, 8, const struct bio_vec *);
ABI_MEMBER(struct kfi_mr_attr, mr_sgl, 8, const struct scatterlist *);
ABI_MEMBER(struct kfi_mr_attr, iov_count, 16, size_t);
ABI_MEMBER(struct kfi_mr_attr, access, 24, uint64_t);
ABI_MEMBER(struct kfi_mr_attr, offset, 32, uint64_t);
ABI_MEMBER(struct kfi_mr_attr, requested_key, 40, uint64_t);
ABI_MEMBER(struct kfi_mr_attr, context, 48, void *);
ABI_MEMBER(struct kfi_mr_attr, auth_key_size, 56, size_t);
ABI_MEMBER(struct kfi_mr_attr, auth_key, 64, uint8_t *);

ABI_SIZE(struct kfi_mr_modify, 80);
ABI_MEMBER(struct kfi_mr_modify, flags, 0, uint64_t);
ABI_MEMBER(struct kfi_mr_modify, attr, 8, struct kfi_mr_attr);

ABI_SIZE(struct kfi_ops_domain, 80);
ABI_MEMBER(struct kfi_ops_domain, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_domain, av_open, 8,
	   int (*)(struct kfid_domain *, struct kfi_av_attr *,
		   struct kfid_av **, void *));
ABI_MEMBER(struct kfi_ops_domain, cq_open, 16,
	   int (*)(struct kfid_domain *, struct kfi_cq_attr *,
		   struct kfid_cq **, kfi_comp_handler, void *));
ABI_MEMBER(struct kfi_ops_domain, endpoint, 24,
	   int (*)(struct kfid_domain *, struct kfi_info *, struct kfid_ep **,
		   void *));
ABI_MEMBER(struct kfi_ops_domain, scalable_ep, 32,
	   int (*)(struct kfid_domain *, struct kfi_info *, struct kfid_ep **,
		   void *));
ABI_MEMBER(struct kfi_ops_domain, cntr_open, 40,
	   int (*)(struct kfid_domain *, struct kfi_cntr_attr *,
		   struct kfid_cntr **, void *));
ABI_MEMBER(struct kfi_ops_domain, poll_open, 48,
	   int (*)(struct kfid_domain *, struct kfi_poll_attr *,
		   struct kfid_poll **));
ABI_MEMBER(struct kfi_ops_domain, stx_ctx, 56,
	   int (*)(struct kfid_domain *, struct kfi_tx_attr *,
		   struct kfid_stx **, void *));
ABI_MEMBER(struct kfi_ops_domain, srx_ctx, 64,
	   int (*)(struct kfid_domain *, struct kfi_rx_attr *,
		   struct kfid_ep **, void *));
ABI_MEMBER(struct kfi_ops_domain, query_atomic, 72,
	   int (*)(struct kfid_domain *, enum kfi_datatype, enum kfi_op,
		   struct kfi_atomic_attr *, uint64_t));

ABI_SIZE(struct kfi_ops_mr, 48);
ABI_MEMBER(struct kfi_ops_mr, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_mr, reg, 8,
	   int (*)(struct kfid *, const void *, size_t, uint64_t, uint64_t,
		   uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_MEMBER(struct kfi_ops_mr, regv, 16,
	   int (*)(struct kfid *, const struct kvec *, size_t, uint64_t,
		   uint64_t, uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_MEMBER(struct kfi_ops_mr, regbv, 24,
	   int (*)(struct kfid *, const struct bio_vec *, size_t, uint64_t,
		   uint64_t, uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_MEMBER(struct kfi_ops_mr, regattr, 32,
	   int (*)(struct kfid *, const struct kfi_mr_attr *, uint64_t,
		   struct kfid_mr **));
ABI_MEMBER(struct kfi_ops_mr, regsgl, 40,
	   int (*)(struct kfid *, const struct scatterlist *, size_t, uint64_t,
		   uint64_t, uint64_t, uint64_t, struct kfid_mr **, void *));

ABI_SIZE(struct kfid_domain, KFID_SIZE + 16);
ABI_MEMBER(struct kfid_domain, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_domain, ops, KFID_SIZE, struct kfi_ops_domain *);
ABI_MEMBER(struct kfid_domain, mr, KFID_SIZE + 8, struct kfi_ops_mr *);

ABI_FUNC(kfi_domain,
	 int (*)(struct kfid_fabric *, struct kfi_info *, struct kfid_domain **,
		 void *));
ABI_FUNC(kfi_domain_bind,
	 int (*)(struct kfid_domain *, struct kfid *, uint64_t));
ABI_FUNC(kfi_cq_open,
	 int (*)(struct kfid_domain *, struct kfi_cq_attr *, struct kfid_cq **,
		 kfi_comp_handler, void *));
ABI_FUNC(kfi_cntr_open,
	 int (*)(struct kfid_domain *, struct kfi_cntr_attr *,
		 struct kfid_cntr **, void *));
ABI_FUNC(kfi_wait_open,
	 int (*)(struct kfid_fabric *, struct kfi_wait_attr *,
		 struct kfid_wait **));
ABI_FUNC(kfi_poll_open,
	 int (*)(struct kfid_domain *, struct kfi_poll_attr *,
		 struct kfid_poll **));
ABI_FUNC(kfi_mr_reg,
	 int (*)(struct kfid_domain *, const void *, size_t, uint64_t, uint64_t,
		 uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_FUNC(kfi_mr_regv,
	 int (*)(struct kfid_domain *, const struct kvec *, size_t, uint64_t,
		 uint64_t, uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_FUNC(kfi_mr_regbv,
	 int (*)(struct kfid_domain *, const struct bio_vec *, size_t, uint64_t,
		 uint64_t, uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_FUNC(kfi_mr_regsgl,
	 int (*)(struct kfid_domain *, const struct scatterlist *, size_t,
		 uint64_t, uint64_t, uint64_t, uint64_t, struct kfid_mr **,
		 void *));
ABI_FUNC(kfi_mr_regattr,
	 int (*)(struct kfid_domain *, const struct kfi_mr_attr *, uint64_t,
		 struct kfid_mr **));
ABI_FUNC(kfi_mr_desc, void *(*)(struct kfid_mr *));
ABI_FUNC(kfi_mr_key, uint64_t (*)(struct kfid_mr *));
ABI_FUNC(kfi_mr_raw_attr,
	 int (*)(struct kfid_mr *, uint64_t *, uint8_t *, size_t *, uint64_t));
ABI_FUNC(kfi_mr_map_raw,
	 int (*)(struct kfid_domain *, uint64_t, uint8_t *, size_t, uint64_t *,
		 uint64_t));
ABI_FUNC(kfi_mr_unmap_key, int (*)(struct kfid_domain *, uint64_t));
ABI_FUNC(kfi_mr_bind, int (*)(struct kfid_mr *, struct kfid *, uint64_t));
ABI_FUNC(kfi_mr_refresh,
	 int (*)(struct kfid_mr *, const struct kvec *, size_t, uint64_t));
ABI_FUNC(kfi_mr_enable, int (*)(struct kfid_mr *));
ABI_FUNC(kfi_av_open,
	 int (*)(struct kfid_domain *, struct kfi_av_attr *, struct kfid_av **,
		 void *));
ABI_FUNC(kfi_av_bind, int (*)(struct kfid_av *, struct kfid *, uint64_t));
ABI_FUNC(kfi_av_insert,
	 int (*)(struct kfid_av *, const void *, size_t, kfi_addr_t *, uint64_t,
		 void *));
ABI_FUNC(kfi_av_insertsvc,
	 int (*)(struct kfid_av *, const char *, const char *, kfi_addr_t *,
		 uint64_t, void *));
ABI_FUNC(kfi_av_insertsym,
	 int (*)(struct kfid_av *, const char *, size_t, const char *, size_t,
		 kfi_addr_t *, uint64_t, void *));
ABI_FUNC(kfi_av_remove,
	 int (*)(struct kfid_av *, kfi_addr_t *, size_t, uint64_t));
ABI_FUNC(kfi_av_lookup,
	 int (*)(struct kfid_av *, kfi_addr_t, void *, size_t *));
ABI_FUNC(kfi_av_straddr,
	 const char *(*)(struct kfid_av *, const void *, char *, size_t *));
ABI_FUNC(kfi_rx_addr, kfi_addr_t (*)(kfi_addr_t, int, int));

/*
 * kfi_endpoint.h
 */

ABI_ENUM(KFI_OPT_ENDPOINT, 0);

ABI_ENUM(KFI_OPT_MIN_MULTI_RECV, 0);
ABI_ENUM(KFI_OPT_CM_DATA_SIZE, 1);

ABI_SIZE(struct kfi_msg, 56);
ABI_MEMBER(struct kfi_msg, type, 0, enum kfi_iov_type);
ABI_MEMBER(struct kfi_msg, msg_iov, 8, const struct kvec *);
ABI_MEMBER(struct kfi_msg, msg_biov, 8, const struct bio_vec *);
ABI_MEMBER(struct kfi_msg, msg_sgl, 8, const struct scatterlist *);
ABI_MEMBER(struct kfi_msg, desc, 16, void **);
ABI_MEMBER(struct kfi_msg, iov_count, 24, size_t);
ABI_MEMBER(struct kfi_msg, addr, 32, kfi_addr_t);
ABI_MEMBER(struct kfi_msg, context, 40, void *);
ABI_MEMBER(struct kfi_msg, data, 48, uint64_t);

ABI_SIZE(struct kfi_ops_ep, 48);
ABI_MEMBER(struct kfi_ops_ep, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_ep, cancel, 8, ssize_t (*)(struct kfid *, void *));
ABI_MEMBER(struct kfi_ops_ep, getopt, 16,
	   int (*)(struct kfid *, int, int, void *, size_t *));
ABI_MEMBER(struct kfi_ops_ep, setopt, 24,
	   int (*)(struct kfid *, int, int, const void *, size_t));
ABI_MEMBER(struct kfi_ops_ep, tx_ctx, 32,
	   int (*)(struct kfid_ep *, int, struct kfi_tx_attr *,
		   struct kfid_ep **, void *));
ABI_MEMBER(struct kfi_ops_ep, rx_ctx, 40,
	   int (*)(struct kfid_ep *, int, struct kfi_rx_attr *,
		   struct kfid_ep **, void *));

ABI_SIZE(struct kfi_ops_msg, 112);
ABI_MEMBER(struct kfi_ops_msg, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_msg, recv, 8,
	   ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		       void *));
ABI_MEMBER(struct kfi_ops_msg, recvv, 16,
	   ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		       kfi_addr_t, void *));
ABI_MEMBER(struct kfi_ops_msg, recvbv, 24,
	   ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **,
		       size_t, kfi_addr_t, void *));
ABI_MEMBER(struct kfi_ops_msg, recvmsg, 32,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg *, uint64_t));
ABI_MEMBER(struct kfi_ops_msg, send, 40,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *,
		       kfi_addr_t, void *));
ABI_MEMBER(struct kfi_ops_msg, sendv, 48,
	   ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		       kfi_addr_t, void *));
ABI_MEMBER(struct kfi_ops_msg, sendbv, 56,
	   ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **,
		       size_t, kfi_addr_t, void *));
ABI_MEMBER(struct kfi_ops_msg, sendmsg, 64,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg *, uint64_t));
ABI_MEMBER(struct kfi_ops_msg, inject, 72,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t));
ABI_MEMBER(struct kfi_ops_msg, senddata, 80,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		       kfi_addr_t, void *));
ABI_MEMBER(struct kfi_ops_msg, injectdata, 88,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		       kfi_addr_t));
ABI_MEMBER(struct kfi_ops_msg, recvsgl, 96,
	   ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		       size_t, kfi_addr_t, void *));
ABI_MEMBER(struct kfi_ops_msg, sendsgl, 104,
	   ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		       size_t, kfi_addr_t, void *));

ABI_SIZE(struct kfid_ep, KFID_SIZE + 48);
ABI_MEMBER(struct kfid_ep, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_ep, ops, KFID_SIZE, struct kfi_ops_ep *);
ABI_MEMBER(struct kfid_ep, cm, KFID_SIZE + 8, struct kfi_ops_cm *);
ABI_MEMBER(struct kfid_ep, msg, KFID_SIZE + 16, struct kfi_ops_msg *);
ABI_MEMBER(struct kfid_ep, rma, KFID_SIZE + 24, struct kfi_ops_rma *);
ABI_MEMBER(struct kfid_ep, tagged, KFID_SIZE + 32, struct kfi_ops_tagged *);
ABI_MEMBER(struct kfid_ep, atomic, KFID_SIZE + 40, struct kfi_ops_atomic *);

ABI_SIZE(struct kfid_pep, KFID_SIZE + 16);
ABI_MEMBER(struct kfid_pep, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_pep, ops, KFID_SIZE, struct kfi_ops_ep *);
ABI_MEMBER(struct kfid_pep, cm, KFID_SIZE + 8, struct kfi_ops_cm *);

ABI_SIZE(struct kfid_stx, KFID_SIZE + 8);
ABI_MEMBER(struct kfid_stx, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_stx, ops, KFID_SIZE, struct kfi_ops_ep *);

ABI_FUNC(kfi_passive_ep,
	 int (*)(struct kfid_fabric *, struct kfi_info *, struct kfid_pep **,
		 void *));
ABI_FUNC(kfi_endpoint,
	 int (*)(struct kfid_domain *, struct kfi_info *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_scalable_ep,
	 int (*)(struct kfid_domain *, struct kfi_info *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_ep_bind, int (*)(struct kfid_ep *, struct kfid *, uint64_t));
ABI_FUNC(kfi_pep_bind, int (*)(struct kfid_pep *, struct kfid *, uint64_t));
ABI_FUNC(kfi_scalable_ep_bind,
	 int (*)(struct kfid_ep *, struct kfid *, uint64_t));
ABI_FUNC(kfi_enable, int (*)(struct kfid_ep *));
ABI_FUNC(kfi_cancel, ssize_t (*)(struct kfid *, void *));
ABI_FUNC(kfi_setopt, int (*)(struct kfid *, int, int, const void *, size_t));
ABI_FUNC(kfi_getopt, int (*)(struct kfid *, int, int, void *, size_t *));
ABI_FUNC(kfi_ep_alias, int (*)(struct kfid_ep *, struct kfid_ep **, uint64_t));
ABI_FUNC(kfi_tx_context,
	 int (*)(struct kfid_ep *, int, struct kfi_tx_attr *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_rx_context,
	 int (*)(struct kfid_ep *, int, struct kfi_rx_attr *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_stx_context,
	 int (*)(struct kfid_domain *, struct kfi_tx_attr *, struct kfid_stx **,
		 void *));
ABI_FUNC(kfi_srx_context,
	 int (*)(struct kfid_domain *, struct kfi_rx_attr *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_recv,
	 ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		     void *));
ABI_FUNC(kfi_recvv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_recvbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_recvsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, void *));
ABI_FUNC(kfi_recvmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg *, uint64_t));
ABI_FUNC(kfi_send,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     void *));
ABI_FUNC(kfi_sendv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_sendbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_sendsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, void *));
ABI_FUNC(kfi_sendmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg *, uint64_t));
ABI_FUNC(kfi_inject,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t));
ABI_FUNC(kfi_senddata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_injectdata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		     kfi_addr_t));

/*
 * kfi_cm.h
 */

ABI_SIZE(struct kfid_mc, KFID_SIZE + 8);
ABI_MEMBER(struct kfid_mc, fid, 0, struct kfid);
ABI_MEMBER(struct kfid_mc, addr, KFID_SIZE, kfi_addr_t);

ABI_SIZE(struct kfi_ops_cm, 80);
ABI_MEMBER(struct kfi_ops_cm, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_cm, setname, 8, int (*)(kfid_t, void *, size_t));
ABI_MEMBER(struct kfi_ops_cm, getname, 16,
	   int (*)(struct kfid *, void *, size_t *));
ABI_MEMBER(struct kfi_ops_cm, getpeer, 24,
	   int (*)(struct kfid_ep *, void *, size_t *));
ABI_MEMBER(struct kfi_ops_cm, connect, 32,
	   int (*)(struct kfid_ep *, const void *, const void *, size_t));
ABI_MEMBER(struct kfi_ops_cm, listen, 40, int (*)(struct kfid_pep *));
ABI_MEMBER(struct kfi_ops_cm, accept, 48,
	   int (*)(struct kfid_ep *, const void *, size_t));
ABI_MEMBER(struct kfi_ops_cm, reject, 56,
	   int (*)(struct kfid_pep *, kfid_t, const void *, size_t));
ABI_MEMBER(struct kfi_ops_cm, shutdown, 64,
	   int (*)(struct kfid_ep *, uint64_t));
ABI_MEMBER(struct kfi_ops_cm, join, 72,
	   int (*)(struct kfid_ep *, const void *, uint64_t, struct kfid_mc **,
		   void *));

ABI_FUNC(kfi_setname, int (*)(struct kfid *, void *, size_t));
ABI_FUNC(kfi_getname, int (*)(struct kfid *, void *, size_t *));
ABI_FUNC(kfi_getpeer, int (*)(struct kfid_ep *, void *, size_t *));
ABI_FUNC(kfi_listen, int (*)(struct kfid_pep *));
ABI_FUNC(kfi_connect,
	 int (*)(struct kfid_ep *, const void *, const void *, size_t));
ABI_FUNC(kfi_accept, int (*)(struct kfid_ep *, const void *, size_t));
ABI_FUNC(kfi_reject, int (*)(struct kfid_pep *, kfid_t, const void *, size_t));
ABI_FUNC(kfi_shutdown, int (*)(struct kfid_ep *, uint64_t));
ABI_FUNC(kfi_join,
	 int (*)(struct kfid_ep *, const void *, uint64_t, struct kfid_mc **,
		 void *));
ABI_FUNC(kfi_mc_addr, kfi_addr_t (*)(struct kfid_mc *));

/*
 * kfi_rma.h
 */

ABI_SIZE(struct kfi_rma_iov, 24);
ABI_MEMBER(struct kfi_rma_iov, addr, 0, uint64_t);
ABI_MEMBER(struct kfi_rma_iov, len, 8, size_t);
ABI_MEMBER(struct kfi_rma_iov, key, 16, uint64_t);

ABI_SIZE(struct kfi_msg_rma, 72);
ABI_MEMBER(struct kfi_msg_rma, type, 0, enum kfi_iov_type);
ABI_MEMBER(struct kfi_msg_rma, msg_iov, 8, const struct kvec *);
ABI_MEMBER(struct kfi_msg_rma, msg_biov, 8, const struct bio_vec *);
ABI_MEMBER(struct kfi_msg_rma, msg_sgl, 8, const struct scatterlist *);
ABI_MEMBER(struct kfi_msg_rma, desc, 16, void **);
ABI_MEMBER(struct kfi_msg_rma, iov_count, 24, size_t);
ABI_MEMBER(struct kfi_msg_rma, addr, 32, kfi_addr_t);
ABI_MEMBER(struct kfi_msg_rma, rma_iov, 40, const struct kfi_rma_iov *);
ABI_MEMBER(struct kfi_msg_rma, rma_iov_count, 48, size_t);
ABI_MEMBER(struct kfi_msg_rma, context, 56, void *);
ABI_MEMBER(struct kfi_msg_rma, data, 64, uint64_t);

ABI_SIZE(struct kfi_ops_rma, 112);
ABI_MEMBER(struct kfi_ops_rma, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_rma, read, 8,
	   ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		       uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, readv, 16,
	   ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		       kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, readbv, 24,
	   ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **,
		       size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, readmsg, 32,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg_rma *, uint64_t));
ABI_MEMBER(struct kfi_ops_rma, write, 40,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *,
		       kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, writev, 48,
	   ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		       kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, writebv, 56,
	   ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **,
		       size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, writemsg, 64,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg_rma *, uint64_t));
ABI_MEMBER(struct kfi_ops_rma, inject, 72,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		       uint64_t, uint64_t));
ABI_MEMBER(struct kfi_ops_rma, writedata, 80,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		       kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, injectdata, 88,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		       kfi_addr_t, uint64_t, uint64_t));
ABI_MEMBER(struct kfi_ops_rma, readsgl, 96,
	   ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		       size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_rma, writesgl, 104,
	   ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		       size_t, kfi_addr_t, uint64_t, uint64_t, void *));

ABI_FUNC(kfi_read,
	 ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, void *));
ABI_FUNC(kfi_readv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_readbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_readsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_readmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_rma *, uint64_t));
ABI_FUNC(kfi_write,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, void *));
ABI_FUNC(kfi_writev,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_writebv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_writesgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_writemsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_rma *, uint64_t));
ABI_FUNC(kfi_inject_write,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		     uint64_t, uint64_t));
ABI_FUNC(kfi_writedata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_inject_writedata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		     kfi_addr_t, uint64_t, uint64_t));

/*
 * kfi_tagged.h
 */

ABI_CONST(KFI_CLAIM, unsigned long long, 0x800000000000000);
ABI_CONST(KFI_DISCARD, unsigned long long, 0x400000000000000);

ABI_SIZE(struct kfi_msg_tagged, 72);
ABI_MEMBER(struct kfi_msg_tagged, type, 0, enum kfi_iov_type);
ABI_MEMBER(struct kfi_msg_tagged, msg_iov, 8, const struct kvec *);
ABI_MEMBER(struct kfi_msg_tagged, msg_biov, 8, const struct bio_vec *);
ABI_MEMBER(struct kfi_msg_tagged, msg_sgl, 8, const struct scatterlist *);
ABI_MEMBER(struct kfi_msg_tagged, desc, 16, void **);
ABI_MEMBER(struct kfi_msg_tagged, iov_count, 24, size_t);
ABI_MEMBER(struct kfi_msg_tagged, addr, 32, kfi_addr_t);
ABI_MEMBER(struct kfi_msg_tagged, tag, 40, uint64_t);
ABI_MEMBER(struct kfi_msg_tagged, ignore, 48, uint64_t);
ABI_MEMBER(struct kfi_msg_tagged, context, 56, void *);
ABI_MEMBER(struct kfi_msg_tagged, data, 64, uint64_t);

ABI_SIZE(struct kfi_ops_tagged, 112);
ABI_MEMBER(struct kfi_ops_tagged, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_tagged, recv, 8,
	   ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		       uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, recvv, 16,
	   ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		       kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, recvbv, 24,
	   ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **,
		       size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, recvmsg, 32,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg_tagged *,
		       uint64_t));
ABI_MEMBER(struct kfi_ops_tagged, send, 40,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *,
		       kfi_addr_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, sendv, 48,
	   ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		       kfi_addr_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, sendbv, 56,
	   ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **,
		       size_t, kfi_addr_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, sendmsg, 64,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg_tagged *,
		       uint64_t));
ABI_MEMBER(struct kfi_ops_tagged, inject, 72,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		       uint64_t));
ABI_MEMBER(struct kfi_ops_tagged, senddata, 80,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		       kfi_addr_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, injectdata, 88,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		       kfi_addr_t, uint64_t));
ABI_MEMBER(struct kfi_ops_tagged, recvsgl, 96,
	   ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		       size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_MEMBER(struct kfi_ops_tagged, sendsgl, 104,
	   ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		       size_t, kfi_addr_t, uint64_t, void *));

ABI_FUNC(kfi_trecv,
	 ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, void *));
ABI_FUNC(kfi_trecvv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_trecvbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_trecvsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_trecvmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_tagged *,
		     uint64_t));
ABI_FUNC(kfi_tsend,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     uint64_t, void *));
ABI_FUNC(kfi_tsendv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_tsendbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_tsendsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_tsendmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_tagged *,
		     uint64_t));
ABI_FUNC(kfi_tinject,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		     uint64_t));
ABI_FUNC(kfi_tsenddata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		     kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_tinjectdata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		     kfi_addr_t, uint64_t));

/*
 * kfi_atomic.h
 */

ABI_SIZE(struct kfi_ioc, 16);
ABI_MEMBER(struct kfi_ioc, addr, 0, void *);
ABI_MEMBER(struct kfi_ioc, count, 8, size_t);

ABI_SIZE(struct kfi_rma_ioc, 24);
ABI_MEMBER(struct kfi_rma_ioc, addr, 0, uint64_t);
ABI_MEMBER(struct kfi_rma_ioc, count, 8, size_t);
ABI_MEMBER(struct kfi_rma_ioc, key, 16, uint64_t);

ABI_SIZE(struct kfi_atomic_attr, 16);
ABI_MEMBER(struct kfi_atomic_attr, count, 0, size_t);
ABI_MEMBER(struct kfi_atomic_attr, size, 8, size_t);

ABI_SIZE(struct kfi_msg_atomic, 72);
ABI_MEMBER(struct kfi_msg_atomic, msg_iov, 0, const struct kfi_ioc *);
ABI_MEMBER(struct kfi_msg_atomic, desc, 8, void **);
ABI_MEMBER(struct kfi_msg_atomic, iov_count, 16, size_t);
ABI_MEMBER(struct kfi_msg_atomic, addr, 24, kfi_addr_t);
ABI_MEMBER(struct kfi_msg_atomic, rma_iov, 32, const struct kfi_rma_ioc *);
ABI_MEMBER(struct kfi_msg_atomic, rma_iov_count, 40, size_t);
ABI_MEMBER(struct kfi_msg_atomic, datatype, 48, enum kfi_datatype);
ABI_MEMBER(struct kfi_msg_atomic, op, 52, enum kfi_op);
ABI_MEMBER(struct kfi_msg_atomic, context, 56, void *);
ABI_MEMBER(struct kfi_msg_atomic, data, 64, uint64_t);

ABI_SIZE(struct kfi_msg_fetch, 24);
ABI_MEMBER(struct kfi_msg_fetch, msg_iov, 0, struct kfi_ioc *);
ABI_MEMBER(struct kfi_msg_fetch, desc, 8, void **);
ABI_MEMBER(struct kfi_msg_fetch, iov_count, 16, size_t);

ABI_SIZE(struct kfi_msg_compare, 24);
ABI_MEMBER(struct kfi_msg_compare, msg_iov, 0, const struct kfi_ioc *);
ABI_MEMBER(struct kfi_msg_compare, desc, 8, void **);
ABI_MEMBER(struct kfi_msg_compare, iov_count, 16, size_t);

ABI_SIZE(struct kfi_ops_atomic, 112);
ABI_MEMBER(struct kfi_ops_atomic, size, 0, size_t);
ABI_MEMBER(struct kfi_ops_atomic, write, 8,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *,
		       kfi_addr_t, uint64_t, uint64_t, enum kfi_datatype,
		       enum kfi_op, void *));
ABI_MEMBER(struct kfi_ops_atomic, writev, 16,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **,
		       size_t, kfi_addr_t, uint64_t, uint64_t,
		       enum kfi_datatype, enum kfi_op, void *));
ABI_MEMBER(struct kfi_ops_atomic, writemsg, 24,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		       uint64_t));
ABI_MEMBER(struct kfi_ops_atomic, inject, 32,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		       uint64_t, uint64_t, enum kfi_datatype, enum kfi_op));
ABI_MEMBER(struct kfi_ops_atomic, readwrite, 40,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, void *,
		       void *, kfi_addr_t, uint64_t, uint64_t,
		       enum kfi_datatype, enum kfi_op, void *));
ABI_MEMBER(struct kfi_ops_atomic, readwritev, 48,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **,
		       size_t, struct kfi_ioc *, void **, size_t, kfi_addr_t,
		       uint64_t, uint64_t, enum kfi_datatype, enum kfi_op,
		       void *));
ABI_MEMBER(struct kfi_ops_atomic, readwritemsg, 56,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		       struct kfi_ioc *, void **, size_t, uint64_t));
ABI_MEMBER(struct kfi_ops_atomic, compwrite, 64,
	   ssize_t (*)(struct kfid_ep *, const void *, size_t, void *,
		       const void *, void *, void *, void *, kfi_addr_t,
		       uint64_t, uint64_t, enum kfi_datatype, enum kfi_op,
		       void *));
ABI_MEMBER(struct kfi_ops_atomic, compwritev, 72,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **,
		       size_t, const struct kfi_ioc *, void **, size_t,
		       struct kfi_ioc *, void **, size_t, kfi_addr_t, uint64_t,
		       uint64_t, enum kfi_datatype, enum kfi_op, void *));
ABI_MEMBER(struct kfi_ops_atomic, compwritemsg, 80,
	   ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		       const struct kfi_ioc *, void **, size_t,
		       struct kfi_ioc *, void **, size_t, uint64_t));
ABI_MEMBER(struct kfi_ops_atomic, writevalid, 88,
	   int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_MEMBER(struct kfi_ops_atomic, readwritevalid, 96,
	   int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_MEMBER(struct kfi_ops_atomic, compwritevalid, 104,
	   int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));

ABI_FUNC(kfi_atomic,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, enum kfi_datatype, enum kfi_op,
		     void *));
ABI_FUNC(kfi_atomicv,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, enum kfi_datatype,
		     enum kfi_op, void *));
ABI_FUNC(kfi_atomicmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		     uint64_t));
ABI_FUNC(kfi_inject_atomic,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		     uint64_t, uint64_t, enum kfi_datatype, enum kfi_op));
ABI_FUNC(kfi_fetch_atomic,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, void *,
		     void *, kfi_addr_t, uint64_t, uint64_t, enum kfi_datatype,
		     enum kfi_op, void *));
ABI_FUNC(kfi_fetch_atomicv,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **, size_t,
		     struct kfi_ioc *, void **, size_t, kfi_addr_t, uint64_t,
		     uint64_t, enum kfi_datatype, enum kfi_op, void *));
ABI_FUNC(kfi_fetch_atomicmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		     struct kfi_ioc *, void **, size_t, uint64_t));
ABI_FUNC(kfi_compare_atomic,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *,
		     const void *, void *, void *, void *, kfi_addr_t, uint64_t,
		     uint64_t, enum kfi_datatype, enum kfi_op, void *));
ABI_FUNC(kfi_compare_atomicv,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **, size_t,
		     const struct kfi_ioc *, void **, size_t, struct kfi_ioc *,
		     void **, size_t, kfi_addr_t, uint64_t, uint64_t,
		     enum kfi_datatype, enum kfi_op, void *));
ABI_FUNC(kfi_compare_atomicmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		     const struct kfi_ioc *, void **, size_t, struct kfi_ioc *,
		     void **, size_t, uint64_t));
ABI_FUNC(kfi_atomicvalid,
	 int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_FUNC(kfi_fetch_atomicvalid,
	 int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_FUNC(kfi_compare_atomicvalid,
	 int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_FUNC(kfi_query_atomic,
	 int (*)(struct kfid_domain *, enum kfi_datatype, enum kfi_op,
		 struct kfi_atomic_attr *, uint64_t));

/*
 * kfi_trigger.h
 */

ABI_ENUM(KFI_TRIGGER_THRESHOLD, 0);

ABI_ENUM(KFI_OP_RECV, 0);
ABI_ENUM(KFI_OP_SEND, 1);
ABI_ENUM(KFI_OP_TRECV, 2);
ABI_ENUM(KFI_OP_TSEND, 3);
ABI_ENUM(KFI_OP_READ, 4);
ABI_ENUM(KFI_OP_WRITE, 5);
ABI_ENUM(KFI_OP_ATOMIC, 6);
ABI_ENUM(KFI_OP_FETCH_ATOMIC, 7);
ABI_ENUM(KFI_OP_COMPARE_ATOMIC, 8);
ABI_ENUM(KFI_OP_CNTR_SET, 9);
ABI_ENUM(KFI_OP_CNTR_ADD, 10);

ABI_SIZE(struct kfi_trigger_threshold, 16);
ABI_MEMBER(struct kfi_trigger_threshold, cntr, 0, struct kfid_cntr *);
ABI_MEMBER(struct kfi_trigger_threshold, threshold, 8, size_t);

ABI_SIZE(struct kfi_op_msg, 72);
ABI_MEMBER(struct kfi_op_msg, ep, 0, struct kfid_ep *);
ABI_MEMBER(struct kfi_op_msg, msg, 8, struct kfi_msg);
ABI_MEMBER(struct kfi_op_msg, flags, 64, uint64_t);

ABI_SIZE(struct kfi_op_tagged, 88);
ABI_MEMBER(struct kfi_op_tagged, ep, 0, struct kfid_ep *);
ABI_MEMBER(struct kfi_op_tagged, msg, 8, struct kfi_msg_tagged);
ABI_MEMBER(struct kfi_op_tagged, flags, 80, uint64_t);

ABI_SIZE(struct kfi_op_rma, 88);
ABI_MEMBER(struct kfi_op_rma, ep, 0, struct kfid_ep *);
ABI_MEMBER(struct kfi_op_rma, msg, 8, struct kfi_msg_rma);
ABI_MEMBER(struct kfi_op_rma, flags, 80, uint64_t);

ABI_SIZE(struct kfi_op_atomic, 88);
ABI_MEMBER(struct kfi_op_atomic, ep, 0, struct kfid_ep *);
ABI_MEMBER(struct kfi_op_atomic, msg, 8, struct kfi_msg_atomic);
ABI_MEMBER(struct kfi_op_atomic, flags, 80, uint64_t);

ABI_SIZE(struct kfi_op_fetch_atomic, 112);
ABI_MEMBER(struct kfi_op_fetch_atomic, ep, 0, struct kfid_ep *);
ABI_MEMBER(struct kfi_op_fetch_atomic, msg, 8, struct kfi_msg_atomic);
ABI_MEMBER(struct kfi_op_fetch_atomic, fetch, 80, struct kfi_msg_fetch);
ABI_MEMBER(struct kfi_op_fetch_atomic, flags, 104, uint64_t);

ABI_SIZE(struct kfi_op_cntr, 16);
ABI_MEMBER(struct kfi_op_cntr, cntr, 0, struct kfid_cntr *);
ABI_MEMBER(struct kfi_op_cntr, value, 8, uint64_t);

ABI_SIZE(struct kfi_triggered_context, 32);
ABI_MEMBER(struct kfi_triggered_context, event_type, 0, enum kfi_trigger_event);
ABI_OFFSET(struct kfi_triggered_context, trigger, 8);
ABI_MEMBER(struct kfi_triggered_context, trigger.threshold, 8,
	   struct kfi_trigger_threshold);
ABI_MEMBER(struct kfi_triggered_context, trigger.internal[0], 8, void *);
ABI_SIZE(typeof_member(struct kfi_triggered_context, trigger.internal), 24);

ABI_SIZE(struct kfi_triggered_context2, 64);
ABI_MEMBER(struct kfi_triggered_context2, event_type, 0,
	   enum kfi_trigger_event);
ABI_OFFSET(struct kfi_triggered_context2, trigger, 8);
ABI_MEMBER(struct kfi_triggered_context2, trigger.threshold, 8,
	   struct kfi_trigger_threshold);
ABI_MEMBER(struct kfi_triggered_context2, trigger.internal[0], 8, void *);
ABI_SIZE(typeof_member(struct kfi_triggered_context2, trigger.internal), 56);

ABI_SIZE(struct kfi_deferred_work, 104);
ABI_MEMBER(struct kfi_deferred_work, context, 0, struct kfi_context2);
ABI_MEMBER(struct kfi_deferred_work, threshold, 64, uint64_t);
ABI_MEMBER(struct kfi_deferred_work, triggering_cntr, 72, struct kfid_cntr *);
ABI_MEMBER(struct kfi_deferred_work, completion_cntr, 80, struct kfid_cntr *);
ABI_MEMBER(struct kfi_deferred_work, op_type, 88, enum kfi_op_type);
ABI_OFFSET(struct kfi_deferred_work, op, 96);
ABI_MEMBER(struct kfi_deferred_work, op.msg, 96, struct kfi_op_msg *);
ABI_MEMBER(struct kfi_deferred_work, op.tagged, 96, struct kfi_op_tagged *);
ABI_MEMBER(struct kfi_deferred_work, op.rma, 96, struct kfi_op_rma *);
ABI_MEMBER(struct kfi_deferred_work, op.atomic, 96, struct kfi_op_atomic *);
ABI_MEMBER(struct kfi_deferred_work, op.fetch_atomic, 96,
	   struct kfi_op_fetch_atomic *);
ABI_MEMBER(struct kfi_deferred_work, op.compare_atomic, 96,
	   struct kfi_op_compare_atomic *);
ABI_MEMBER(struct kfi_deferred_work, op.cntr, 96, struct kfi_op_cntr *);

/* Triggered contexts take the place of plain ones */
ABI_SIZE(struct kfi_triggered_context, sizeof(struct kfi_context));
ABI_SIZE(struct kfi_triggered_context2, sizeof(struct kfi_context2));

/* Added since kfabric 1.7, which names the structure but does not define it */
ABI_SIZE(struct kfi_op_compare_atomic, 136);
ABI_MEMBER(struct kfi_op_compare_atomic, ep, 0, struct kfid_ep *);
ABI_MEMBER(struct kfi_op_compare_atomic, msg, 8, struct kfi_msg_atomic);
ABI_MEMBER(struct kfi_op_compare_atomic, fetch, 80, struct kfi_msg_fetch);
ABI_MEMBER(struct kfi_op_compare_atomic, compare, 104,
	   struct kfi_msg_compare);
ABI_MEMBER(struct kfi_op_compare_atomic, flags, 128, uint64_t);

/*
 * kfi_enosys.h
 */

ABI_FUNC(kfi_no_bind, int (*)(struct kfid *, struct kfid *, uint64_t));
ABI_FUNC(kfi_no_control, int (*)(struct kfid *, int, void *));
ABI_FUNC(kfi_no_ops_open,
	 int (*)(struct kfid *, const char *, uint64_t, void **, void *));

/* Had other parameters than the slot in kfabric 1.7, now fits it */
ABI_STUB(kfi_no_domain, struct kfi_ops_fabric, domain);

ABI_FUNC(kfi_no_passive_ep,
	 int (*)(struct kfid_fabric *, struct kfi_info *, struct kfid_pep **,
		 void *));

/* Had other parameters than the slot in kfabric 1.7, now fits it */
ABI_STUB(kfi_no_eq_open, struct kfi_ops_fabric, eq_open);

ABI_FUNC(kfi_no_wait_open,
	 int (*)(struct kfid_fabric *, struct kfi_wait_attr *,
		 struct kfid_wait **));
ABI_FUNC(kfi_no_av_insert,
	 int (*)(struct kfid_av *, const void *, size_t, kfi_addr_t *, uint64_t,
		 void *));
ABI_FUNC(kfi_no_av_insertsvc,
	 int (*)(struct kfid_av *, const char *, const char *, kfi_addr_t *,
		 uint64_t, void *));
ABI_FUNC(kfi_no_av_insertsym,
	 int (*)(struct kfid_av *, const char *, size_t, const char *, size_t,
		 kfi_addr_t *, uint64_t, void *));
ABI_FUNC(kfi_no_atomic_write,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, enum kfi_datatype, enum kfi_op,
		     void *));
ABI_FUNC(kfi_no_atomic_writev,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, enum kfi_datatype,
		     enum kfi_op, void *));
ABI_FUNC(kfi_no_atomic_writemsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		     uint64_t));
ABI_FUNC(kfi_no_atomic_inject,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		     uint64_t, uint64_t, enum kfi_datatype, enum kfi_op));
ABI_FUNC(kfi_no_atomic_readwrite,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, void *,
		     void *, kfi_addr_t, uint64_t, uint64_t, enum kfi_datatype,
		     enum kfi_op, void *));
ABI_FUNC(kfi_no_atomic_readwritev,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **, size_t,
		     struct kfi_ioc *, void **, size_t, kfi_addr_t, uint64_t,
		     uint64_t, enum kfi_datatype, enum kfi_op, void *));
ABI_FUNC(kfi_no_atomic_readwritemsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		     struct kfi_ioc *, void **, size_t, uint64_t));
ABI_FUNC(kfi_no_atomic_compwrite,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *,
		     const void *, void *, void *, void *, kfi_addr_t, uint64_t,
		     uint64_t, enum kfi_datatype, enum kfi_op, void *));
ABI_FUNC(kfi_no_atomic_compwritev,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_ioc *, void **, size_t,
		     const struct kfi_ioc *, void **, size_t, struct kfi_ioc *,
		     void **, size_t, kfi_addr_t, uint64_t, uint64_t,
		     enum kfi_datatype, enum kfi_op, void *));
ABI_FUNC(kfi_no_atomic_compwritemsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_atomic *,
		     const struct kfi_ioc *, void **, size_t, struct kfi_ioc *,
		     void **, size_t, uint64_t));
ABI_FUNC(kfi_no_atomic_writevalid,
	 int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_FUNC(kfi_no_atomic_readwritevalid,
	 int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_FUNC(kfi_no_atomic_compwritevalid,
	 int (*)(struct kfid_ep *, enum kfi_datatype, enum kfi_op, size_t *));
ABI_FUNC(kfi_no_setname, int (*)(kfid_t, void *, size_t));
ABI_FUNC(kfi_no_getname, int (*)(kfid_t, void *, size_t *));
ABI_FUNC(kfi_no_getpeer, int (*)(struct kfid_ep *, void *, size_t *));
ABI_FUNC(kfi_no_connect,
	 int (*)(struct kfid_ep *, const void *, const void *, size_t));
ABI_FUNC(kfi_no_listen, int (*)(struct kfid_pep *));
ABI_FUNC(kfi_no_accept, int (*)(struct kfid_ep *, const void *, size_t));
ABI_FUNC(kfi_no_reject,
	 int (*)(struct kfid_pep *, kfid_t, const void *, size_t));
ABI_FUNC(kfi_no_shutdown, int (*)(struct kfid_ep *, uint64_t));
ABI_FUNC(kfi_no_join,
	 int (*)(struct kfid_ep *, const void *, uint64_t, struct kfid_mc **,
		 void *));

/* Had other parameters than the slot in kfabric 1.7, now fits it */
ABI_STUB(kfi_no_cq_open, struct kfi_ops_domain, cq_open);

ABI_FUNC(kfi_no_endpoint,
	 int (*)(struct kfid_domain *, struct kfi_info *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_no_cntr_open,
	 int (*)(struct kfid_domain *, struct kfi_cntr_attr *,
		 struct kfid_cntr **, void *));
ABI_FUNC(kfi_no_poll_open,
	 int (*)(struct kfid_domain *, struct kfi_poll_attr *,
		 struct kfid_poll **));
ABI_FUNC(kfi_no_stx_ctx,
	 int (*)(struct kfid_domain *, struct kfi_tx_attr *, struct kfid_stx **,
		 void *));
ABI_FUNC(kfi_no_srx_ctx,
	 int (*)(struct kfid_domain *, struct kfi_rx_attr *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_no_query_atomic,
	 int (*)(struct kfid_domain *, enum kfi_datatype, enum kfi_op,
		 struct kfi_atomic_attr *, uint64_t));
ABI_FUNC(kfi_no_mr_reg,
	 int (*)(struct kfid *, const void *, size_t, uint64_t, uint64_t,
		 uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_FUNC(kfi_no_mr_regv,
	 int (*)(struct kfid *, const struct kvec *, size_t, uint64_t, uint64_t,
		 uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_FUNC(kfi_no_mr_regbv,
	 int (*)(struct kfid *, const struct bio_vec *, size_t, uint64_t,
		 uint64_t, uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_FUNC(kfi_no_mr_regsgl,
	 int (*)(struct kfid *, const struct scatterlist *, size_t, uint64_t,
		 uint64_t, uint64_t, uint64_t, struct kfid_mr **, void *));
ABI_FUNC(kfi_no_mr_regattr,
	 int (*)(struct kfid *, const struct kfi_mr_attr *, uint64_t,
		 struct kfid_mr **));
ABI_FUNC(kfi_no_cancel, ssize_t (*)(kfid_t, void *));
ABI_FUNC(kfi_no_getopt, int (*)(kfid_t, int, int, void *, size_t *));
ABI_FUNC(kfi_no_setopt, int (*)(kfid_t, int, int, const void *, size_t));
ABI_FUNC(kfi_no_tx_ctx,
	 int (*)(struct kfid_ep *, int, struct kfi_tx_attr *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_no_rx_ctx,
	 int (*)(struct kfid_ep *, int, struct kfi_rx_attr *, struct kfid_ep **,
		 void *));
ABI_FUNC(kfi_no_rx_size_left, ssize_t (*)(struct kfid_ep *));
ABI_FUNC(kfi_no_tx_size_left, ssize_t (*)(struct kfid_ep *));
ABI_FUNC(kfi_no_msg_recv,
	 ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		     void *));
ABI_FUNC(kfi_no_msg_recvv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_no_msg_recvbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_no_msg_recvsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, void *));
ABI_FUNC(kfi_no_msg_recvmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg *, uint64_t));
ABI_FUNC(kfi_no_msg_send,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     void *));
ABI_FUNC(kfi_no_msg_sendv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_no_msg_sendbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_no_msg_sendsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, void *));
ABI_FUNC(kfi_no_msg_sendmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg *, uint64_t));
ABI_FUNC(kfi_no_msg_inject,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t));
ABI_FUNC(kfi_no_msg_senddata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		     kfi_addr_t, void *));
ABI_FUNC(kfi_no_msg_injectdata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		     kfi_addr_t));
ABI_FUNC(kfi_no_eq_write,
	 ssize_t (*)(struct kfid_eq *, uint32_t, const void *, size_t,
		     uint64_t));
ABI_FUNC(kfi_no_eq_sread,
	 ssize_t (*)(struct kfid_eq *, uint32_t *, void *, size_t, int,
		     uint64_t));
ABI_FUNC(kfi_no_cq_readfrom,
	 ssize_t (*)(struct kfid_cq *, void *, size_t, kfi_addr_t *));
ABI_FUNC(kfi_no_cq_sread,
	 ssize_t (*)(struct kfid_cq *, void *, size_t, const void *, int));
ABI_FUNC(kfi_no_cq_sreadfrom,
	 ssize_t (*)(struct kfid_cq *, void *, size_t, kfi_addr_t *,
		     const void *, int));
ABI_FUNC(kfi_no_cq_signal, int (*)(struct kfid_cq *));
ABI_FUNC(kfi_no_rma_read,
	 ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_readv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_readbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_readsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_readmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_rma *, uint64_t));
ABI_FUNC(kfi_no_rma_write,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_writev,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_writebv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_writesgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_writemsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_rma *, uint64_t));
ABI_FUNC(kfi_no_rma_inject,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		     uint64_t, uint64_t));
ABI_FUNC(kfi_no_rma_writedata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_rma_injectdata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		     kfi_addr_t, uint64_t, uint64_t));
ABI_FUNC(kfi_no_tagged_recv,
	 ssize_t (*)(struct kfid_ep *, void *, size_t, void *, kfi_addr_t,
		     uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_recvv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_recvbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_recvsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_recvmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_tagged *,
		     uint64_t));
ABI_FUNC(kfi_no_tagged_send,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, kfi_addr_t,
		     uint64_t, void *));
ABI_FUNC(kfi_no_tagged_sendv,
	 ssize_t (*)(struct kfid_ep *, const struct kvec *, void **, size_t,
		     kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_sendbv,
	 ssize_t (*)(struct kfid_ep *, const struct bio_vec *, void **, size_t,
		     kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_sendsgl,
	 ssize_t (*)(struct kfid_ep *, const struct scatterlist *, void **,
		     size_t, kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_sendmsg,
	 ssize_t (*)(struct kfid_ep *, const struct kfi_msg_tagged *,
		     uint64_t));
ABI_FUNC(kfi_no_tagged_inject,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, kfi_addr_t,
		     uint64_t));
ABI_FUNC(kfi_no_tagged_senddata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, void *, uint64_t,
		     kfi_addr_t, uint64_t, void *));
ABI_FUNC(kfi_no_tagged_injectdata,
	 ssize_t (*)(struct kfid_ep *, const void *, size_t, uint64_t,
		     kfi_addr_t, uint64_t));

/* Added since kfabric 1.7 */
ABI_STUB(kfi_no_close, struct kfi_ops, close);
ABI_STUB(kfi_no_trywait, struct kfi_ops_fabric, trywait);
ABI_STUB(kfi_no_av_remove, struct kfi_ops_av, remove);
ABI_STUB(kfi_no_av_lookup, struct kfi_ops_av, lookup);
ABI_STUB(kfi_no_av_straddr, struct kfi_ops_av, straddr);
ABI_STUB(kfi_no_av_open, struct kfi_ops_domain, av_open);
ABI_STUB(kfi_no_scalable_ep, struct kfi_ops_domain, scalable_ep);
ABI_STUB(kfi_no_wait, struct kfi_ops_wait, wait);
ABI_STUB(kfi_no_poll, struct kfi_ops_poll, poll);
ABI_STUB(kfi_no_poll_add, struct kfi_ops_poll, poll_add);
ABI_STUB(kfi_no_poll_del, struct kfi_ops_poll, poll_del);
ABI_STUB(kfi_no_eq_read, struct kfi_ops_eq, read);
ABI_STUB(kfi_no_eq_readerr, struct kfi_ops_eq, readerr);
ABI_STUB(kfi_no_eq_strerror, struct kfi_ops_eq, strerror);
ABI_STUB(kfi_no_cq_read, struct kfi_ops_cq, read);
ABI_STUB(kfi_no_cq_readerr, struct kfi_ops_cq, readerr);
ABI_STUB(kfi_no_cq_strerror, struct kfi_ops_cq, strerror);
ABI_STUB(kfi_no_cntr_read, struct kfi_ops_cntr, read);
ABI_STUB(kfi_no_cntr_readerr, struct kfi_ops_cntr, readerr);
ABI_STUB(kfi_no_cntr_add, struct kfi_ops_cntr, add);
ABI_STUB(kfi_no_cntr_set, struct kfi_ops_cntr, set);
ABI_STUB(kfi_no_cntr_wait, struct kfi_ops_cntr, wait);
ABI_STUB(kfi_no_cntr_adderr, struct kfi_ops_cntr, adderr);
ABI_STUB(kfi_no_cntr_seterr, struct kfi_ops_cntr, seterr);

/*
 * kfi_direct.h
 */

ABI_ENUM(KFI_FXR_MAX_MSG_SIZE, 1073741824);
ABI_ENUM(KFI_FXR_INJECT_SIZE, 8);
ABI_ENUM(KFI_FXR_TOTAL_BUFFERED_RECV, 1073741824);
ABI_ENUM(KFI_FXR_MAX_ORDER_RAW_SIZE, 8192);
ABI_ENUM(KFI_FXR_MAX_ORDER_WAR_SIZE, 8192);
ABI_ENUM(KFI_FXR_MAX_ORDER_WAW_SIZE, 8192);
ABI_ENUM(KFI_FXR_MR_KEY_SIZE, 8);
ABI_ENUM(KFI_FXR_CQ_DATA_SIZE, 8);

/*
 * kfi_log.h
 */

ABI_STRING(MODULE_NAME, "KFI");

/*
 * kfi_debug.h
 */

ABI_ENUM(DEBUG_NONE, 0);
ABI_ENUM(DEBUG_LOW, 1);
ABI_ENUM(DEBUG_MED, 2);
ABI_ENUM(DEBUG_HIGH, 4);
ABI_ENUM(DEBUG_TRACE, 8);
ABI_ENUM(DEBUG_NEXT, 16);
ABI_ENUM(DEBUG_LEVEL_LOW, 1);
ABI_ENUM(DEBUG_LEVEL_MED, 3);
ABI_ENUM(DEBUG_LEVEL_HI, 7);

/*
 * kfi_cxi_ext.h
 */

ABI_STRING(KFI_CXI_FAB_OPS_1, "cxi_fab_ops_v1");
ABI_STRING(KFI_CXI_DOM_OPS_1, "cxi_dom_ops_v1");

ABI_SIZE(struct kfi_cxi_fabric_ops, 8);
ABI_MEMBER(struct kfi_cxi_fabric_ops, enable_dynamic_rsrc_alloc, 0,
	   int (*)(struct kfid *, bool));

ABI_SIZE(struct kfi_cxi_domain_ops, 8);
ABI_MEMBER(struct kfi_cxi_domain_ops, get_device, 0,
	   int (*)(struct kfid *, struct device **));

ABI_SIZE(struct kcxi_addr, 8);
ABI_MEMBER(struct kcxi_addr, qw, 0, uint64_t);
