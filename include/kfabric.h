/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: the common part of the API - versions, flags, attributes, objects,
 * discovery and fabrics.
 */

#ifndef _KFABRIC_H_
#define _KFABRIC_H_

#include <linux/types.h>
#include <linux/stddef.h>
#include <linux/kernel.h>
#include <linux/completion.h>

#include "kfi_errno.h"

/*
 * KFABRIC_DIRECT asks for the build time constants of kfi_direct.h. It selects
 * no other implementation of anything.
 */
#ifdef KFABRIC_DIRECT
#include "kfi_direct.h"
#endif

/**
 * DOC: Objects
 *
 * Everything a consumer opens is an object that starts with a struct kfid. Its
 * class says what it is, its ops tables hold the provider's functions, and
 * kfi_close() ends it. An object counts what depends on it: closing one that
 * others still use fails with -KFI_EBUSY and changes nothing, so objects are
 * closed in the reverse order of opening.
 *
 * The calls of this API, apart from the few functions that the core exports,
 * are inline functions that jump through the ops table of the object. Most of
 * them test neither the table nor the slot; providers fill every slot.
 */

/**
 * DOC: Contexts of calls
 *
 * Opening, closing, binding, enabling, registering and controlling objects may
 * sleep and need process context. Posting and cancelling operations, reading
 * completion queues and reading or updating counters never sleep and work in
 * process, softirq and hard interrupt context. Calls with a timeout sleep.
 * Timeouts are in milliseconds; a negative value means no limit and 0 means to
 * look once. Sizes and lengths are in bytes unless stated otherwise.
 */

/**
 * KFI_DEFINE_HANDLE() - declare an opaque handle type
 * @name: name of the type; it becomes a typedef of a pointer to a structure
 *   called @name with "_s" appended
 */
#define KFI_DEFINE_HANDLE(name)						\
	struct name##_s { int dummy; };					\
	typedef struct name##_s *name

/**
 * enum - limits of names, in bytes including the terminating NUL
 * @KFI_PATH_MAX: a path
 * @KFI_NAME_MAX: a name
 * @KFI_VERSION_MAX: the text form of a version
 */
enum {
	KFI_PATH_MAX = 256,
	KFI_NAME_MAX = 64,
	KFI_VERSION_MAX = 64,
};

/* Version of the API that these headers describe */
#define KFI_MAJOR_VERSION	1
#define KFI_MINOR_VERSION	7

/**
 * KFI_VERSION() - make a version number
 * @major: major version
 * @minor: minor version, at most 65535
 */
#define KFI_VERSION(major, minor)	(((major) << 16) | (minor))

/**
 * KFI_MAJOR() - major part of a version number
 * @version: number made by KFI_VERSION()
 */
#define KFI_MAJOR(version)		((version) >> 16)

/**
 * KFI_MINOR() - minor part of a version number
 * @version: number made by KFI_VERSION()
 */
#define KFI_MINOR(version)		((version) & 0xffff)

/**
 * KFI_VERSION_GE() - true if one version is the same as or later than another
 * @v1: version in question
 * @v2: version to compare with
 *
 * Arguments are evaluated more than once.
 */
#define KFI_VERSION_GE(v1, v2)						\
	((KFI_MAJOR(v1) > KFI_MAJOR(v2)) ||				\
	 (KFI_MAJOR(v1) == KFI_MAJOR(v2) &&				\
	  KFI_MINOR(v1) >= KFI_MINOR(v2)))

/**
 * KFI_VERSION_LT() - true if one version is earlier than another
 * @v1: version in question
 * @v2: version to compare with
 *
 * Arguments are evaluated more than once.
 */
#define KFI_VERSION_LT(v1, v2)		(!KFI_VERSION_GE(v1, v2))

/**
 * kfi_version() - version of the API that the core implements
 *
 * kfabric 1.7 has this function but does not export it: a module that is to
 * load there too uses &kfi_fabric_attr.api_version and the macros above.
 *
 * Context: Any; does not sleep.
 *
 * Return: version, see KFI_VERSION().
 */
uint32_t kfi_version(void);

#ifndef UINT64_MAX
#define UINT64_MAX	(~0UL)
#endif

struct kfid;
struct kfid_fabric;
struct kfid_domain;
struct kfid_av;
struct kfid_wait;
struct kfid_poll;
struct kfid_eq;
struct kfid_cq;
struct kfid_cntr;
struct kfid_ep;
struct kfid_pep;
struct kfid_stx;
struct kfid_mr;
struct kfi_eq_attr;
struct kfi_wait_attr;

/* Any object, by its head */
typedef struct kfid *kfid_t;

/**
 * typedef kfi_comp_handler - completion handler of a completion queue
 * @cq: queue that has something to read
 * @context: context given when the queue was opened
 *
 * The handler is one-shot: it is armed when the queue is opened and again
 * whenever a read of the queue returns -KFI_EAGAIN. An entry that arrives
 * between that read and the arming calls the handler, so none is missed.
 * Reading the queue and posting operations are allowed in it. kfi_close() of
 * the queue waits until the handler has returned, and it is not called any
 * more; inside the handler itself that returns -KFI_EBUSY.
 *
 * Context: Process context, with no lock of the provider held. It may run on
 *   several CPUs for several queues at once.
 */
typedef void (*kfi_comp_handler)(struct kfid_cq *cq, void *context);

/**
 * typedef kfi_event_handler - event handler of an event queue
 * @eq: queue that has something to read
 * @context: context given when the queue was opened
 *
 * One-shot, rearmed by reading and waited for by kfi_close(), as
 * &kfi_comp_handler.
 *
 * Context: Process context, with no lock of the provider held.
 */
typedef void (*kfi_event_handler)(struct kfid_eq *eq, void *context);

/*
 * Marks a value that only one provider defines (protocol, address format,
 * control command and the like, all of them 32 bits wide). It is a negative
 * int: do not combine it with 64 bit flags, it would be sign-extended.
 */
#define KFI_PROV_SPECIFIC	((int)(1U << 31))

/**
 * DOC: Flags
 *
 * Capabilities, operation flags, mode bits, bind flags and flags of single
 * calls are 64 bit values. They share one pool of bits but belong to different
 * name spaces: a capability such as KFI_DIRECTED_RECV and a mode bit such as
 * KFI_CONTEXT have the same value, which is harmless as long as each is put
 * only into the member or argument it is meant for. The values are part of the
 * ABI.
 */

/* Capabilities (caps of info and attributes): kinds of transfer */
#define KFI_MSG			(1ULL << 1)	/* untagged messages */
#define KFI_RMA			(1ULL << 2)	/* remote memory access */
#define KFI_TAGGED		(1ULL << 3)	/* tagged messages */
#define KFI_ATOMIC		(1ULL << 4)	/* remote atomic operations */
#define KFI_ATOMICS		KFI_ATOMIC	/* older spelling */
#define KFI_MULTICAST		(1ULL << 5)	/* multicast transfers */
#define KFI_TAGGED_RMA		(1ULL << 6)	/* RMA to tagged receives */

/*
 * Capabilities: directions. They also restrict what an endpoint binding of a
 * queue or counter covers, state the access of a memory region, and tell in a
 * completion what has happened.
 */
#define KFI_READ		(1ULL << 8)	/* start reads */
#define KFI_WRITE		(1ULL << 9)	/* start writes */
#define KFI_RECV		(1ULL << 10)	/* receive messages */
#define KFI_SEND		(1ULL << 11)	/* send messages */
#define KFI_TRANSMIT		KFI_SEND	/* transmit side, in flags */
#define KFI_REMOTE_READ		(1ULL << 12)	/* be read by a peer */
#define KFI_REMOTE_WRITE	(1ULL << 13)	/* be written by a peer */

/*
 * Flags of single operations (*msg calls, op_flags of contexts). KFI_MULTI_RECV,
 * KFI_TRIGGER and KFI_FENCE are capabilities as well: an endpoint without the
 * capability refuses the flag, -KFI_EOPNOTSUPP, unless the provider does not
 * look (kfi_soft.strict=0)
 */
#define KFI_MULTI_RECV		(1ULL << 16)	/* one buffer, many messages */
#define KFI_REMOTE_CQ_DATA	(1ULL << 17)	/* carries immediate data */
#define KFI_MORE		(1ULL << 18)	/* another post follows */
#define KFI_PEEK		(1ULL << 19)	/* look for a message only */
#define KFI_TRIGGER		(1ULL << 20)	/* deferred (kfi_trigger.h) */
#define KFI_FENCE		(1ULL << 21)	/* after all earlier ones */

#define KFI_COMPLETION		(1ULL << 24)	/* write a success entry */
#define KFI_EVENT		KFI_COMPLETION	/* report by an event (AV) */
#define KFI_INJECT		(1ULL << 25)	/* buffer reusable on return */

/* Operation flags: when an operation counts as complete */
#define KFI_INJECT_COMPLETE	(1ULL << 26)	/* buffer may be reused */
#define KFI_TRANSMIT_COMPLETE	(1ULL << 27)	/* arrived at the peer */
#define KFI_DELIVERY_COMPLETE	(1ULL << 28)	/* placed in peer's memory */
#define KFI_COMMIT_COMPLETE	(1ULL << 30)	/* placed in durable memory */

/* Flag of event and completion queue attributes: signaling_vector is valid */
#define KFI_AFFINITY		(1ULL << 29)

/*
 * Capability: tagged receives may have the flag KFI_MULTI_RECV. This one is no
 * flag of an operation
 */
#define KFI_TAGGED_MULTI_RECV	(1ULL << 31)

/* Capabilities: further properties; some are flags of kfi_getinfo() as well */
#define KFI_RMA_PMEM		(1ULL << 49)	/* RMA to persistent memory */
#define KFI_SOURCE_ERR		(1ULL << 50)	/* unknown source is reported */
#define KFI_LOCAL_COMM		(1ULL << 51)	/* peers on the same node */
#define KFI_REMOTE_COMM		(1ULL << 52)	/* peers on other nodes */
#define KFI_SHARED_AV		(1ULL << 53)	/* shared address vectors */
#define KFI_PROV_ATTR_ONLY	(1ULL << 54)	/* getinfo: attributes only */
#define KFI_NUMERICHOST		(1ULL << 55)	/* getinfo: node is numeric */
#define KFI_RMA_EVENT		(1ULL << 56)	/* events on an RMA target */
#define KFI_SOURCE		(1ULL << 57)	/* see below */
#define KFI_NAMED_RX_CTX	(1ULL << 58)	/* receive context by address */
#define KFI_DIRECTED_RECV	(1ULL << 59)	/* receive from one source */

/*
 * KFI_SOURCE as a capability: kfi_cq_readfrom() tells where a message came
 * from. As a flag of kfi_getinfo(): node and service are the local address, not
 * the peer's.
 */

/*
 * Values that stand for none. They are all the same number; each has its
 * meaning in the place that the comment names.
 */
#define KFI_ADDR_UNSPEC		UINT64_MAX	/* address: none, any source */
#define KFI_ADDR_NOTAVAIL	UINT64_MAX	/* address: sender not known */
#define KFI_KEY_NOTAVAIL	UINT64_MAX	/* key: only a raw one */
#define KFI_SHARED_CONTEXT	UINT64_MAX	/* count: shared context */

/**
 * enum - address formats (&kfi_info.addr_format)
 * @KFI_FORMAT_UNSPEC: none wanted or given
 * @KFI_SOCKADDR: struct sockaddr, the family tells the rest
 * @KFI_SOCKADDR_IN: struct sockaddr_in, 16 bytes; the port is that of an
 *   endpoint, as in native addresses, and like the address in network order
 * @KFI_SOCKADDR_IN6: struct sockaddr_in6
 * @KFI_SOCKADDR_IB: struct sockaddr_ib
 * @KFI_ADDR_GNI: native address of the GNI provider
 * @KFI_ADDR_CXI: 8 bytes, see struct kcxi_addr in kfi_cxi_ext.h
 */
enum {
	KFI_FORMAT_UNSPEC,
	KFI_SOCKADDR,
	KFI_SOCKADDR_IN,
	KFI_SOCKADDR_IN6,
	KFI_SOCKADDR_IB,
	KFI_ADDR_GNI,
	KFI_ADDR_CXI,
};

/**
 * typedef kfi_addr_t - address of a peer, as an address vector gives it out
 *
 * An opaque value (KFI_AV_MAP) or an index (KFI_AV_TABLE), with the index of a
 * receive context in the top bits where kfi_rx_addr() put one. It means nothing
 * outside the address vector it comes from.
 */
typedef uint64_t kfi_addr_t;

/**
 * enum kfi_av_type - kinds of address vector
 * @KFI_AV_UNSPEC: the provider chooses
 * @KFI_AV_MAP: addresses are opaque
 * @KFI_AV_TABLE: addresses are indices in the order of insertion, from 0
 */
enum kfi_av_type {
	KFI_AV_UNSPEC,
	KFI_AV_MAP,
	KFI_AV_TABLE,
};

/*
 * Memory registration modes (&kfi_domain_attr.mr_mode): what the consumer has
 * to do, or is willing to do when set in hints
 */
#define KFI_MR_LOCAL		(1 << 1)	/* register local buffers too */
#define KFI_MR_RAW		(1 << 2)	/* keys longer than 64 bit */
#define KFI_MR_VIRT_ADDR	(1 << 3)	/* RMA by address */
#define KFI_MR_PROV_KEY		(1 << 4)	/* provider chooses the keys */
#define KFI_MR_RMA_EVENT	(1 << 5)	/* bind counters to regions */
#define KFI_MR_ENDPOINT		(1 << 6)	/* bind regions to endpoints */

/**
 * enum kfi_progress - who moves operations forward
 * @KFI_PROGRESS_UNSPEC: not stated
 * @KFI_PROGRESS_AUTO: the provider, without help
 * @KFI_PROGRESS_MANUAL: the consumer, by reading queues and counters
 */
enum kfi_progress {
	KFI_PROGRESS_UNSPEC,
	KFI_PROGRESS_AUTO,
	KFI_PROGRESS_MANUAL,
};

/**
 * enum kfi_threading - which calls the consumer serializes by itself
 * @KFI_THREAD_UNSPEC: not stated
 * @KFI_THREAD_SAFE: none
 * @KFI_THREAD_FID: those on one object
 * @KFI_THREAD_DOMAIN: those on all objects of one domain
 * @KFI_THREAD_COMPLETION: those on objects that share a completion queue or
 *   counter
 * @KFI_THREAD_ENDPOINT: those on one endpoint
 */
enum kfi_threading {
	KFI_THREAD_UNSPEC,
	KFI_THREAD_SAFE,
	KFI_THREAD_FID,
	KFI_THREAD_DOMAIN,
	KFI_THREAD_COMPLETION,
	KFI_THREAD_ENDPOINT,
};

/**
 * enum kfi_resource_mgmt - who keeps queues from overrunning
 * @KFI_RM_UNSPEC: not stated
 * @KFI_RM_DISABLED: the consumer
 * @KFI_RM_ENABLED: the provider: it holds posts back with -KFI_EAGAIN and
 *   retries messages the receiver was not ready for
 */
enum kfi_resource_mgmt {
	KFI_RM_UNSPEC,
	KFI_RM_DISABLED,
	KFI_RM_ENABLED,
};

/*
 * Ordering (msg_order and comp_order of context attributes). KFI_ORDER_xAy: an
 * operation of kind x is done after an earlier one of kind y, where R is a
 * read, W a write and S a send.
 */
#define KFI_ORDER_NONE		0		/* nothing is ordered */
#define KFI_ORDER_RAR		(1 << 0)
#define KFI_ORDER_RAW		(1 << 1)
#define KFI_ORDER_RAS		(1 << 2)
#define KFI_ORDER_WAR		(1 << 3)
#define KFI_ORDER_WAW		(1 << 4)
#define KFI_ORDER_WAS		(1 << 5)
#define KFI_ORDER_SAR		(1 << 6)
#define KFI_ORDER_SAW		(1 << 7)
#define KFI_ORDER_SAS		(1 << 8)
#define KFI_ORDER_STRICT	0x1ff		/* all of the above */

#define KFI_ORDER_DATA		(1 << 16)	/* bytes land in order too */

/**
 * enum kfi_ep_type - kinds of endpoint
 * @KFI_EP_UNSPEC: not stated
 * @KFI_EP_MSG: connected, reliable
 * @KFI_EP_DGRAM: unconnected, unreliable
 * @KFI_EP_RDM: unconnected, reliable
 * @KFI_EP_SOCK_STREAM: stream of bytes
 * @KFI_EP_SOCK_DGRAM: datagram socket
 */
enum kfi_ep_type {
	KFI_EP_UNSPEC,
	KFI_EP_MSG,
	KFI_EP_DGRAM,
	KFI_EP_RDM,
	KFI_EP_SOCK_STREAM,
	KFI_EP_SOCK_DGRAM,
};

/**
 * enum - wire protocols (&kfi_ep_attr.protocol)
 * @KFI_PROTO_UNSPEC: not stated
 * @KFI_PROTO_RDMA_CM_IB_RC: InfiniBand reliable connections set up by RDMA CM
 * @KFI_PROTO_IWARP: iWARP
 * @KFI_PROTO_IB_UD: InfiniBand unreliable datagrams
 * @KFI_PROTO_UDP: UDP
 * @KFI_PROTO_SOCK_TCP: messages over TCP
 * @KFI_PROTO_IWARP_RDM: reliable datagrams over iWARP
 * @KFI_PROTO_IB_RDM: reliable datagrams over InfiniBand
 * @KFI_PROTO_GNI: Cray Gemini and Aries
 * @KFI_PROTO_CXI: HPE Slingshot
 */
enum {
	KFI_PROTO_UNSPEC,
	KFI_PROTO_RDMA_CM_IB_RC,
	KFI_PROTO_IWARP,
	KFI_PROTO_IB_UD,
	KFI_PROTO_UDP,
	KFI_PROTO_SOCK_TCP,
	KFI_PROTO_IWARP_RDM,
	KFI_PROTO_IB_RDM,
	KFI_PROTO_GNI,
	KFI_PROTO_CXI,
};

/**
 * enum kfi_iov_type - which of the vector pointers of a message is used
 * @KFI_KVEC: struct kvec, kernel virtual addresses (kmalloc or vmalloc)
 * @KFI_BVEC: struct bio_vec, pages
 * @KFI_SGL: struct scatterlist
 */
enum kfi_iov_type {
	KFI_KVEC = 1,
	KFI_BVEC = 2,
	KFI_SGL = 3,
};

/**
 * enum - traffic classes (tclass of attributes)
 * @KFI_TC_UNSPEC: not stated
 * @KFI_TC_DSCP: set in values that hold a DSCP, see kfi_tc_dscp_set()
 * @KFI_TC_LABEL: start of the labels
 * @KFI_TC_BEST_EFFORT: label: default
 * @KFI_TC_LOW_LATENCY: label: short messages that hurry
 * @KFI_TC_DEDICATED_ACCESS: label: reserved for one job
 * @KFI_TC_BULK_DATA: label: large transfers
 * @KFI_TC_SCAVENGER: label: only what others leave
 * @KFI_TC_NETWORK_CTRL: label: network management
 */
enum {
	KFI_TC_UNSPEC = 0,
	KFI_TC_DSCP = 0x100,
	KFI_TC_LABEL = 0x200,
	KFI_TC_BEST_EFFORT = KFI_TC_LABEL,
	KFI_TC_LOW_LATENCY,
	KFI_TC_DEDICATED_ACCESS,
	KFI_TC_BULK_DATA,
	KFI_TC_SCAVENGER,
	KFI_TC_NETWORK_CTRL,
};

/**
 * kfi_tc_dscp_set() - make a traffic class of a DSCP
 * @dscp: differentiated services code point
 *
 * Context: Any; does not sleep.
 *
 * Return: value for the tclass member of an attribute.
 */
static inline uint32_t kfi_tc_dscp_set(uint8_t dscp)
{
	return (uint32_t)dscp | KFI_TC_DSCP;
}

/**
 * kfi_tc_dscp_get() - take the DSCP out of a traffic class
 * @tclass: traffic class
 *
 * Context: Any; does not sleep.
 *
 * Return: the DSCP; 0 if @tclass is a label.
 */
static inline uint8_t kfi_tc_dscp_get(uint32_t tclass)
{
	return tclass & KFI_TC_DSCP ? (uint8_t)tclass : 0;
}

/*
 * Mode bits (&kfi_info.mode): in an answer what the provider demands of the
 * consumer, in hints what the consumer is ready to do. Their bits are also used
 * by capabilities.
 */
#define KFI_CONTEXT		(1ULL << 59)	/* contexts: kfi_context */
#define KFI_MSG_PREFIX		(1ULL << 58)	/* room before each message */
#define KFI_ASYNC_IOV		(1ULL << 57)	/* vectors stay to the end */
#define KFI_RX_CQ_DATA		(1ULL << 56)	/* CQ data uses up a receive */
#define KFI_LOCAL_MR		(1ULL << 55)	/* older form of KFI_MR_LOCAL */
#define KFI_NOTIFY_FLAGS_ONLY	(1ULL << 54)	/* notices have flags only */
#define KFI_RESTRICTED_COMP	(1ULL << 53)	/* queues of alike endpoints */
#define KFI_CONTEXT2		(1ULL << 52)	/* contexts: kfi_context2 */

/*
 * Flag of binding a completion queue to an endpoint: success entries are
 * written only for operations with KFI_COMPLETION. Errors always give an
 * entry.
 */
#define KFI_SELECTIVE_COMPLETION	(1ULL << 59)

/**
 * struct kfi_tx_attr - attributes of a transmit context
 * @caps: capabilities, a subset of those of the endpoint; 0 for all of them
 * @mode: mode bits
 * @op_flags: flags of operations for which the call takes none
 * @msg_order: KFI_ORDER_* between operations as the target sees them
 * @comp_order: KFI_ORDER_* between completions
 * @inject_size: longest message, in bytes, that can be injected
 * @size: depth of the context in operations
 * @iov_limit: entries a local vector may have
 * @rma_iov_limit: entries a remote vector may have
 * @tclass: traffic class
 *
 * In hints 0 means that any value will do; sizes and limits there are minima.
 * The answer has the actual values.
 */
struct kfi_tx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t inject_size;
	size_t size;
	size_t iov_limit;
	size_t rma_iov_limit;
	uint32_t tclass;
};

/**
 * struct kfi_rx_attr - attributes of a receive context
 * @caps: capabilities, a subset of those of the endpoint; 0 for all of them
 * @mode: mode bits
 * @op_flags: flags of operations for which the call takes none
 * @msg_order: KFI_ORDER_* between operations as they arrive
 * @comp_order: KFI_ORDER_* between completions
 * @total_buffered_recv: bytes kept for messages that no receive was posted for
 * @size: depth of the context in operations
 * @iov_limit: entries a local vector may have
 */
struct kfi_rx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t total_buffered_recv;
	size_t size;
	size_t iov_limit;
};

/**
 * struct kfi_ep_attr - attributes of an endpoint
 * @type: kind of endpoint
 * @protocol: wire protocol, KFI_PROTO_*
 * @protocol_version: version of the protocol, the provider's numbering
 * @max_msg_size: longest transfer in bytes
 * @msg_prefix_size: bytes to leave before each message under KFI_MSG_PREFIX
 * @max_order_raw_size: longest read-after-write that stays ordered, in bytes
 * @max_order_war_size: longest write-after-read that stays ordered, in bytes
 * @max_order_waw_size: longest write-after-write that stays ordered, in bytes
 * @mem_tag_format: tag bits that may be used, and how they are grouped: a run
 *   of equal bits is one field
 * @tx_ctx_cnt: transmit contexts of a scalable endpoint, or KFI_SHARED_CONTEXT
 * @rx_ctx_cnt: receive contexts of a scalable endpoint, or KFI_SHARED_CONTEXT
 * @auth_key_size: bytes at @auth_key
 * @auth_key: key that admits the endpoint to its traffic, or NULL for the
 *   domain's; owned by the structure, see kfi_freeinfo()
 */
struct kfi_ep_attr {
	enum kfi_ep_type type;
	uint32_t protocol;
	uint32_t protocol_version;
	size_t max_msg_size;
	size_t msg_prefix_size;
	size_t max_order_raw_size;
	size_t max_order_war_size;
	size_t max_order_waw_size;
	uint64_t mem_tag_format;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t auth_key_size;
	uint8_t *auth_key;
};

/**
 * struct kfi_domain_attr - attributes of a domain
 * @domain: in hints an open domain to look for, or NULL; in the answer the
 *   domain that is open already, if any. Not owned by the structure: it is
 *   there as long as the consumer that has opened it keeps it open
 * @name: name of the domain, usually of the device; owned by the structure
 * @threading: calls that the consumer serializes
 * @control_progress: progress of control operations
 * @data_progress: progress of data transfers
 * @resource_mgmt: who prevents queue overruns
 * @av_type: kind of address vector
 * @mr_mode: KFI_MR_* bits
 * @mr_key_size: bytes of a memory key
 * @cq_data_size: bytes of remote completion data
 * @cq_cnt: completion queues the domain can have
 * @ep_cnt: endpoints the domain can have
 * @tx_ctx_cnt: transmit contexts the domain can have
 * @rx_ctx_cnt: receive contexts the domain can have
 * @max_ep_tx_ctx: transmit contexts one endpoint can have
 * @max_ep_rx_ctx: receive contexts one endpoint can have
 * @max_ep_stx_ctx: endpoints that can share one transmit context
 * @max_ep_srx_ctx: endpoints that can share one receive context
 * @cntr_cnt: counters the domain can have
 * @mr_iov_limit: entries the vector of a memory region may have
 * @caps: capabilities of the domain
 * @mode: mode bits of the domain
 * @auth_key: default key of endpoints and regions, or NULL; owned by the
 *   structure
 * @auth_key_size: bytes at @auth_key
 * @max_err_data: most bytes of provider data in an error entry
 * @mr_cnt: memory regions the domain can have
 * @tclass: default traffic class
 */
struct kfi_domain_attr {
	struct kfid_domain *domain;
	char *name;
	enum kfi_threading threading;
	enum kfi_progress control_progress;
	enum kfi_progress data_progress;
	enum kfi_resource_mgmt resource_mgmt;
	enum kfi_av_type av_type;
	int mr_mode;
	size_t mr_key_size;
	size_t cq_data_size;
	size_t cq_cnt;
	size_t ep_cnt;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t max_ep_tx_ctx;
	size_t max_ep_rx_ctx;
	size_t max_ep_stx_ctx;
	size_t max_ep_srx_ctx;
	size_t cntr_cnt;
	size_t mr_iov_limit;
	uint64_t caps;
	uint64_t mode;
	uint8_t *auth_key;
	size_t auth_key_size;
	size_t max_err_data;
	size_t mr_cnt;
	uint32_t tclass;
};

/**
 * struct kfi_fabric_attr - attributes of a fabric
 * @fabric: in hints an open fabric to look for, or NULL; in the answer the
 *   fabric that is open already, if any. Not owned by the structure: it is
 *   there as long as the consumer that has opened it keeps it open
 * @name: name of the fabric; owned by the structure
 * @prov_name: name of the provider, matched exactly; owned by the structure
 * @prov_version: version of the provider, its own numbering
 * @api_version: version of the API the consumer asked for
 */
struct kfi_fabric_attr {
	struct kfid_fabric *fabric;
	char *name;
	char *prov_name;
	uint32_t prov_version;
	uint32_t api_version;
};

/**
 * struct kfi_info - what a consumer wants (hints) or can have (answers)
 * @next: next answer, less preferred; NULL at the end and in hints
 * @caps: capabilities; in hints those that are needed
 * @mode: mode bits; in hints those the consumer supports
 * @addr_format: format of both addresses
 * @src_addrlen: bytes at @src_addr
 * @dest_addrlen: bytes at @dest_addr
 * @src_addr: local address, or NULL; owned by the structure
 * @dest_addr: address of the peer, or NULL; owned by the structure
 * @handle: connection request or passive endpoint to open the endpoint with, or
 *   NULL; not owned by the structure
 * @tx_attr: attributes of transmit contexts
 * @rx_attr: attributes of receive contexts
 * @ep_attr: attributes of the endpoint
 * @domain_attr: attributes of the domain
 * @fabric_attr: attributes of the fabric
 *
 * The attribute structures are owned by this one; those of an answer are always
 * present, those of hints may be NULL. Take structures from kfi_allocinfo() or
 * kfi_dupinfo() and give them back with kfi_freeinfo(). Strings, addresses and
 * keys put into one are to be allocated with the kmalloc family, for
 * kfi_freeinfo() frees them.
 */
struct kfi_info {
	struct kfi_info *next;
	uint64_t caps;
	uint64_t mode;
	uint32_t addr_format;
	size_t src_addrlen;
	size_t dest_addrlen;
	void *src_addr;
	void *dest_addr;
	kfid_t handle;
	struct kfi_tx_attr *tx_attr;
	struct kfi_rx_attr *rx_attr;
	struct kfi_ep_attr *ep_attr;
	struct kfi_domain_attr *domain_attr;
	struct kfi_fabric_attr *fabric_attr;
};

/**
 * enum - classes of object (&kfid.fclass)
 * @KFI_CLASS_UNSPEC: none; no object has it
 * @KFI_CLASS_FABRIC: struct kfid_fabric
 * @KFI_CLASS_DOMAIN: struct kfid_domain
 * @KFI_CLASS_EP: struct kfid_ep, an endpoint
 * @KFI_CLASS_SEP: struct kfid_ep, a scalable endpoint
 * @KFI_CLASS_RX_CTX: struct kfid_ep, a receive context
 * @KFI_CLASS_SRX_CTX: struct kfid_ep, a shared receive context
 * @KFI_CLASS_TX_CTX: struct kfid_ep, a transmit context
 * @KFI_CLASS_STX_CTX: struct kfid_stx, a shared transmit context
 * @KFI_CLASS_PEP: struct kfid_pep, a passive endpoint
 * @KFI_CLASS_INTERFACE: object opened by kfi_open_ops()
 * @KFI_CLASS_AV: struct kfid_av
 * @KFI_CLASS_MR: struct kfid_mr
 * @KFI_CLASS_EQ: struct kfid_eq
 * @KFI_CLASS_CQ: struct kfid_cq
 * @KFI_CLASS_CNTR: struct kfid_cntr
 * @KFI_CLASS_WAIT: struct kfid_wait
 * @KFI_CLASS_POLL: struct kfid_poll
 * @KFI_CLASS_CONNREQ: connection request, the handle in a struct kfi_info
 */
enum {
	KFI_CLASS_UNSPEC,
	KFI_CLASS_FABRIC,
	KFI_CLASS_DOMAIN,
	KFI_CLASS_EP,
	KFI_CLASS_SEP,
	KFI_CLASS_RX_CTX,
	KFI_CLASS_SRX_CTX,
	KFI_CLASS_TX_CTX,
	KFI_CLASS_STX_CTX,
	KFI_CLASS_PEP,
	KFI_CLASS_INTERFACE,
	KFI_CLASS_AV,
	KFI_CLASS_MR,
	KFI_CLASS_EQ,
	KFI_CLASS_CQ,
	KFI_CLASS_CNTR,
	KFI_CLASS_WAIT,
	KFI_CLASS_POLL,
	KFI_CLASS_CONNREQ,
};

/**
 * struct kfi_ops - operations that every object has
 * @size: sizeof(struct kfi_ops) the provider was built with, in bytes
 * @close: end the object, see kfi_close()
 * @bind: associate @bfid with @fid; which flags and classes go together is told
 *   by the calls that use it (kfi_domain_bind(), kfi_ep_bind(), kfi_mr_bind(),
 *   kfi_av_bind()). Returns 0; -KFI_EINVAL for a wrong class, a second object
 *   of the same kind or one of another domain
 * @control: see kfi_control()
 * @ops_open: see kfi_open_ops(). Callers do not test this slot either: it
 *   exists on every object
 *
 * All of them are called in process context and may sleep.
 */
struct kfi_ops {
	size_t size;
	int (*close)(struct kfid *fid);
	int (*bind)(struct kfid *fid, struct kfid *bfid, uint64_t flags);
	int (*control)(struct kfid *fid, int command, void *arg);
	int (*ops_open)(struct kfid *fid, const char *name, uint64_t flags,
			void **ops, void *context);
};

/**
 * struct kfid - head of every object
 * @fclass: class of the object, KFI_CLASS_*
 * @context: what the consumer gave when it opened the object; poll sets return
 *   it, handlers receive it
 * @ops: common operations; on a fabric the core puts a table of its own in
 *   front of the provider's
 * @comp: for the provider, see kfi_close_id()
 * @ref_cnt: for the provider, see kfi_ref_id()
 *
 * Its size depends on the configuration of the kernel: a module must be built
 * for the kernel it runs on, as always. Consumers may read fclass and context;
 * all else is the provider's.
 */
struct kfid {
	size_t fclass;
	void *context;
	struct kfi_ops *ops;
	struct completion comp;
	atomic_t ref_cnt;
};

/**
 * kfi_getinfo() - ask the registered providers what they offer
 * @version: version of the API the consumer was written for, or 0 for any
 * @node: device, host name or address, or NULL; the peer's, or with KFI_SOURCE
 *   the local one
 * @service: port or service in text form, or NULL for any
 * @flags: KFI_SOURCE, KFI_NUMERICHOST, KFI_PROV_ATTR_ONLY or 0
 * @hints: what is wanted, or NULL; not changed, stays the caller's
 * @info: receives the answers, best first; NULL if there is none
 *
 * With neither @node nor @service and with KFI_SOURCE there is an answer for
 * each local device.
 *
 * If the hints name a provider, only that one is asked; an empty name is as
 * none. Providers are asked in the order of their registration, where one that
 * replaced another has its place. A provider that fails does not hide the
 * answers of others. Each entry has fabric attributes with a prov_name.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0 and a list to be freed with kfi_freeinfo(); -KFI_ENODATA if nothing
 *   matches, or no provider of the wanted name is there; -KFI_ENOSYS if
 *   @version is newer than that of the core; -KFI_EINVAL if @info is NULL;
 *   -KFI_ENOMEM; or, if no provider said -KFI_ENODATA, what the first one that
 *   was asked returned. After an error what @info points to is NULL.
 */
int kfi_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, struct kfi_info *hints, struct kfi_info **info);

/**
 * kfi_freeinfo() - free a list of info structures
 * @info: first of the list, or NULL
 *
 * Frees every structure of the list with the attributes, strings, addresses and
 * keys in it. Objects that it refers to stay open.
 *
 * Context: Process context.
 */
void kfi_freeinfo(struct kfi_info *info);

/**
 * kfi_allocinfo() - allocate an info structure for use as hints
 *
 * All members are 0, the five attribute structures are present and empty.
 *
 * Context: Process context; may sleep.
 *
 * Return: the structure, or NULL if there is no memory.
 */
struct kfi_info *kfi_allocinfo(void);

/**
 * kfi_dupinfo() - copy one info structure
 * @info: structure to copy; what follows it in a list is left out. NULL gives
 *   an empty one, as kfi_allocinfo()
 *
 * Attributes, strings, addresses and keys are copied, references to open
 * objects are taken over as they are.
 *
 * Context: Process context; may sleep.
 *
 * Return: the copy, to be freed with kfi_freeinfo(), or NULL if there is no
 *   memory.
 */
struct kfi_info *kfi_dupinfo(const struct kfi_info *info);

/**
 * struct kfi_ops_fabric - operations of a fabric
 * @size: sizeof(struct kfi_ops_fabric) the provider was built with, in bytes
 * @domain: open a domain, see kfi_domain()
 * @passive_ep: open a passive endpoint, see kfi_passive_ep()
 * @eq_open: open an event queue, see kfi_eq_open()
 * @wait_open: open a wait set, see kfi_wait_open()
 * @trywait: see kfi_trywait(). Not in kfabric 1.7: present only if @size covers
 *   it
 *
 * The opens are called in process context and may sleep; @trywait does not
 * sleep.
 */
struct kfi_ops_fabric {
	size_t size;
	int (*domain)(struct kfid_fabric *fabric, struct kfi_info *info,
		      struct kfid_domain **dom, void *context);
	int (*passive_ep)(struct kfid_fabric *fabric, struct kfi_info *info,
			  struct kfid_pep **pep, void *context);
	int (*eq_open)(struct kfid_fabric *fabric, struct kfi_eq_attr *attr,
		       struct kfid_eq **eq, kfi_event_handler event_handler,
		       void *context);
	int (*wait_open)(struct kfid_fabric *fabric, struct kfi_wait_attr *attr,
			 struct kfid_wait **waitset);
	int (*trywait)(struct kfid_fabric *fabric, struct kfid **fids,
		       int count);
};

/**
 * struct kfid_fabric - fabric, a set of devices that can reach one another
 * @fid: object head; fclass is KFI_CLASS_FABRIC
 * @ops: operations, constant while the object is open
 * @api_version: version of the API that the fabric was opened for
 */
struct kfid_fabric {
	struct kfid fid;
	struct kfi_ops_fabric *ops;
	uint32_t api_version;
};

/**
 * kfi_fabric() - open a fabric
 * @attr: attributes from an answer of kfi_getinfo(); prov_name selects the
 *   provider. Stays the caller's
 * @fabric: receives the fabric; close it with kfi_close()
 * @context: becomes &kfid.context of the fabric
 *
 * A fabric may be opened several times; each open gives an object of its own.
 * While it is open the module of its provider cannot be unloaded.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for a missing argument, or a provider name that is
 *   missing or empty; -KFI_ENODEV if no provider of that name is registered, if
 *   its module is being loaded or unloaded, or if it does not have the fabric;
 *   -KFI_ENOMEM; or what the provider returned. After an error @fabric is
 *   unchanged.
 */
int kfi_fabric(struct kfi_fabric_attr *attr, struct kfid_fabric **fabric,
	       void *context);

/**
 * KFI_CHECK_OP() - true if an ops table has a certain operation
 * @ops: pointer to the table, not NULL; evaluated more than once
 * @opstype: type of the table, as "struct kfi_ops_fabric"
 * @op: member in question
 *
 * The table may come from a provider built with headers in which the type ended
 * earlier: the operation counts as present if the table's size reaches beyond
 * its offset and the slot is not NULL.
 */
#define KFI_CHECK_OP(ops, opstype, op)					\
	((ops)->size > offsetof(opstype, op) && (ops)->op)

/**
 * kfi_close() - close an object
 * @fid: head of the object, not NULL
 *
 * On success the object is gone. On failure it is as before and remains usable.
 *
 * Calls on the object whose context is "Any" may still be on their way out on
 * other CPUs when it is closed: the caller may have seen the effect of such a
 * call before it has returned. Waits may still be sleeping, for which the answer
 * is -KFI_EBUSY. All other calls on the object - those without an effect that
 * could be seen, as kfi_cntr_read(), and those that may sleep: opening something
 * on it, binding, kfi_control() and what issues it, registration, address
 * vectors, names - must have returned, or be known to keep it busy: that nobody
 * begins one beside a close that may succeed is up to the caller.
 *
 * The operations of an endpoint are over when this has returned: posted receives
 * and pending triggered operations are given up without completions. Where a
 * peer has some of them it may sleep until the peer answers or is given up,
 * which may be minutes, and no signal ends that.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EBUSY while other objects depend on it, or a thread waits on
 *   it.
 */
static inline int kfi_close(struct kfid *fid)
{
	return fid->ops->close(fid);
}

/**
 * struct kfi_alias - argument of KFI_ALIAS
 * @fid: where the alias is put
 * @flags: operation flags of the alias
 */
struct kfi_alias {
	struct kfid **fid;
	uint64_t flags;
};

/**
 * struct kfi_mr_raw_attr - argument of KFI_GET_RAW_MR
 * @flags: reserved, 0
 * @base_addr: receives the base address of the region
 * @raw_key: receives the key; room of the caller
 * @key_size: bytes at @raw_key; receives the bytes the key has
 */
struct kfi_mr_raw_attr {
	uint64_t flags;
	uint64_t *base_addr;
	uint8_t *raw_key;
	size_t *key_size;
};

/**
 * struct kfi_mr_map_raw - argument of KFI_MAP_RAW_MR
 * @flags: reserved, 0
 * @base_addr: base address that the peer told
 * @raw_key: key that the peer told; stays the caller's
 * @key_size: bytes at @raw_key
 * @key: receives the 64 bit key to use in its place
 */
struct kfi_mr_map_raw {
	uint64_t flags;
	uint64_t base_addr;
	uint8_t *raw_key;
	size_t key_size;
	uint64_t *key;
};

/**
 * enum - commands of kfi_control(), with the type of their argument
 * @KFI_GETFIDFLAG: (``uint64_t *``) read the flags of the object
 * @KFI_SETFIDFLAG: (``uint64_t *``) change the flags of the object
 * @KFI_GETOPSFLAG: (``uint64_t *``) read the default flags of operations; of an
 *   endpoint, in: KFI_TRANSMIT or KFI_RECV, the direction
 * @KFI_SETOPSFLAG: (``uint64_t *``) change the default flags of operations; of
 *   an endpoint or context together with KFI_TRANSMIT or KFI_RECV, the
 *   direction: exactly one, also if there is but one (-KFI_EINVAL). They hold
 *   for operations that are posted later, and of an alias for its own direction
 *   only
 * @KFI_ALIAS: (``struct kfi_alias *``) make an alias, see kfi_alias()
 * @KFI_GETWAIT: (``void **``) read the wait object of a queue, counter or wait
 *   set: for KFI_WAIT_QUEUE, and for the set behind KFI_WAIT_SET, a pointer to
 *   its wait_queue_head_t, valid until the object is closed. -KFI_EINVAL for
 *   KFI_WAIT_NONE; for KFI_WAIT_UNSPEC it may fail
 * @KFI_ENABLE: (NULL) make an endpoint, context or memory region active
 * @KFI_BACKLOG: (``int *``) set the backlog of a passive endpoint
 * @KFI_GET_RAW_MR: (``struct kfi_mr_raw_attr *``) read the raw key of a memory
 *   region
 * @KFI_MAP_RAW_MR: (``struct kfi_mr_map_raw *``) map a peer's raw key, on a
 *   domain
 * @KFI_UNMAP_KEY: (``uint64_t *``) undo that, on a domain
 * @KFI_QUEUE_WORK: (``struct kfi_deferred_work *``) queue deferred work, on a
 *   domain; see kfi_trigger.h
 * @KFI_CANCEL_WORK: (``struct kfi_deferred_work *``) cancel deferred work, on a
 *   domain
 * @KFI_FLUSH_WORK: (NULL or ``struct kfid_cntr *``) cancel all deferred work
 *   of a domain, or that which the counter is to trigger
 * @KFI_REFRESH: (``struct kfi_mr_modify *``) tell that the pages of a memory
 *   region changed
 * @KFI_GETWAITOBJ: (``enum kfi_wait_obj *``) read the kind of wait object of a
 *   queue, counter or wait set. Not in kfabric 1.7, whose providers answer an
 *   error
 */
enum {
	KFI_GETFIDFLAG,
	KFI_SETFIDFLAG,
	KFI_GETOPSFLAG,
	KFI_SETOPSFLAG,
	KFI_ALIAS,
	KFI_GETWAIT,
	KFI_ENABLE,
	KFI_BACKLOG,
	KFI_GET_RAW_MR,
	KFI_MAP_RAW_MR,
	KFI_UNMAP_KEY,
	KFI_QUEUE_WORK,
	KFI_CANCEL_WORK,
	KFI_FLUSH_WORK,
	KFI_REFRESH,
	KFI_GETWAITOBJ,
};

/**
 * kfi_control() - read or change a property of an object
 * @fid: head of the object
 * @command: command, see the enumeration above
 * @arg: argument as the command demands; stays the caller's
 *
 * With KFI_THREAD_SAFE, and on a fabric and what is opened on it but domains,
 * other calls on the object may run at the same time. With any other threading
 * the caller makes sure that none does, as enum kfi_threading says.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ENOSYS for a command that the object does not have;
 *   -KFI_EINVAL for a bad or missing argument; others by the command.
 */
static inline int kfi_control(struct kfid *fid, int command, void *arg)
{
	return fid->ops->control(fid, command, arg);
}

/**
 * kfi_alias() - open a second handle of an endpoint, with other default flags
 * @fid: head of the endpoint
 * @alias_fid: receives the alias; close it with kfi_close()
 * @flags: operation flags of the alias, with exactly one of KFI_TRANSMIT and
 *   KFI_RECV for the direction they apply to. With KFI_TRIGGER every transfer
 *   through the alias is deferred, see kfi_trigger.h
 *
 * The endpoint keeps its flags. It cannot be closed while an alias is open.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL unless exactly one direction is named, which the
 *   endpoint has; -KFI_EBADFLAGS for other flags than those of that direction;
 *   -KFI_ENOSYS if the object has no aliases.
 */
static inline int kfi_alias(struct kfid *fid, struct kfid **alias_fid,
			    uint64_t flags)
{
	struct kfi_alias alias = {
		.fid = alias_fid,
		.flags = flags,
	};

	return kfi_control(fid, KFI_ALIAS, &alias);
}

/**
 * kfi_open_ops() - open operations that only one provider has
 * @fid: head of the object
 * @name: name of the ops table, as the provider's header gives it
 * @flags: as the provider's header says
 * @ops: receives the table, which stays the provider's
 * @context: as the provider's header says
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ENOSYS or -KFI_EINVAL if the object has no table of that
 *   name.
 */
static inline int kfi_open_ops(struct kfid *fid, const char *name,
			       uint64_t flags, void **ops, void *context)
{
	return fid->ops->ops_open(fid, name, flags, ops, context);
}

/**
 * kfi_trywait() - ask whether it is safe to sleep on wait objects
 * @fabric: fabric that all the objects belong to
 * @fids: heads of event queues, completion queues, counters or wait sets; an
 *   object that belongs to a wait set is covered by the set
 * @count: entries of @fids
 *
 * For use with the wait queues that KFI_GETWAIT gives out. Prepare to wait on
 * the queue first, then call this, and sleep only if it returned 0: then no
 * event is missed (R-TRYWAIT-9). All objects of one call use the same kind of
 * wait object. Not in kfabric 1.7.
 *
 * Context: Any; does not sleep.
 *
 * Return: 0 if there is nothing to read; -KFI_EAGAIN if there is: read it and
 *   ask again; -KFI_EINVAL for an object of another class, one with
 *   KFI_WAIT_NONE or a mix of kinds; -KFI_ENOSYS if the provider does not
 *   offer it.
 */
static inline int kfi_trywait(struct kfid_fabric *fabric, struct kfid **fids,
			      int count)
{
	if (!KFI_CHECK_OP(fabric->ops, struct kfi_ops_fabric, trywait))
		return -KFI_ENOSYS;

	return fabric->ops->trywait(fabric, fids, count);
}

/**
 * enum kfi_type - what kfi_tostr() is to print
 * @KFI_TYPE_INFO: struct kfi_info
 * @KFI_TYPE_EP_TYPE: enum kfi_ep_type
 * @KFI_TYPE_CAPS: uint64_t, capabilities
 * @KFI_TYPE_OP_FLAGS: uint64_t, operation flags
 * @KFI_TYPE_ADDR_FORMAT: uint32_t, address format
 * @KFI_TYPE_TX_ATTR: struct kfi_tx_attr
 * @KFI_TYPE_RX_ATTR: struct kfi_rx_attr
 * @KFI_TYPE_EP_ATTR: struct kfi_ep_attr
 * @KFI_TYPE_DOMAIN_ATTR: struct kfi_domain_attr
 * @KFI_TYPE_FABRIC_ATTR: struct kfi_fabric_attr
 * @KFI_TYPE_THREADING: enum kfi_threading
 * @KFI_TYPE_PROGRESS: enum kfi_progress
 * @KFI_TYPE_PROTOCOL: uint32_t, protocol
 * @KFI_TYPE_MSG_ORDER: uint64_t, KFI_ORDER_*
 * @KFI_TYPE_MODE: uint64_t, mode bits
 * @KFI_TYPE_AV_TYPE: enum kfi_av_type
 * @KFI_TYPE_ATOMIC_TYPE: enum kfi_datatype
 * @KFI_TYPE_ATOMIC_OP: enum kfi_op
 * @KFI_TYPE_VERSION: nothing, the data pointer is ignored; prints the version
 * @KFI_TYPE_EQ_EVENT: uint32_t, event of an event queue
 * @KFI_TYPE_CQ_EVENT_FLAGS: uint64_t, flags of a completion
 * @KFI_TYPE_MR_MODE: int, KFI_MR_* bits
 * @KFI_TYPE_OP_TYPE: enum kfi_op_type
 */
enum kfi_type {
	KFI_TYPE_INFO,
	KFI_TYPE_EP_TYPE,
	KFI_TYPE_CAPS,
	KFI_TYPE_OP_FLAGS,
	KFI_TYPE_ADDR_FORMAT,
	KFI_TYPE_TX_ATTR,
	KFI_TYPE_RX_ATTR,
	KFI_TYPE_EP_ATTR,
	KFI_TYPE_DOMAIN_ATTR,
	KFI_TYPE_FABRIC_ATTR,
	KFI_TYPE_THREADING,
	KFI_TYPE_PROGRESS,
	KFI_TYPE_PROTOCOL,
	KFI_TYPE_MSG_ORDER,
	KFI_TYPE_MODE,
	KFI_TYPE_AV_TYPE,
	KFI_TYPE_ATOMIC_TYPE,
	KFI_TYPE_ATOMIC_OP,
	KFI_TYPE_VERSION,
	KFI_TYPE_EQ_EVENT,
	KFI_TYPE_CQ_EVENT_FLAGS,
	KFI_TYPE_MR_MODE,
	KFI_TYPE_OP_TYPE,
};

/**
 * kfi_tostr() - print a structure, an enumeration value or a set of flags
 * @data: pointer to what is to be printed; not changed
 * @datatype: what that is
 *
 * A value of an enumeration is printed as its name, or as ``Unknown (7)`` or
 * ``Provider specific (0x80000007)``. Flags are names in brackets, with what
 * has no name as a number at the end: ``[ KFI_MSG, KFI_RMA, 0x1 ]``. A
 * structure is its name and one line for each member, indented by four spaces a
 * level and ended by a newline. Of a list of struct kfi_info only the first one
 * is printed. Open objects are printed as the kernel prints pointers, of keys
 * only the size.
 *
 * The text is for people and may change from version to version.
 *
 * kfabric 1.7 declares this function but does not have it.
 *
 * Context: Process context; may sleep.
 *
 * Return: the text, which the caller frees with kfree(); NULL if there is no
 *   memory, if @datatype is not known, or if @data is NULL where it is needed.
 */
char *kfi_tostr(const void *data, enum kfi_type datatype);

/**
 * enum kfi_param_type - types of a parameter
 * @KFI_PARAM_STRING: text
 * @KFI_PARAM_INT: integer
 * @KFI_PARAM_BOOL: 0 or 1
 */
enum kfi_param_type {
	KFI_PARAM_STRING,
	KFI_PARAM_INT,
	KFI_PARAM_BOOL,
};

/**
 * struct kfi_param - a parameter of the core or of a provider
 * @name: name
 * @type: type
 * @help_string: one line of description
 * @value: current value as text, or NULL if it was not set
 */
struct kfi_param {
	const char *name;
	enum kfi_param_type type;
	const char *help_string;
	const char *value;
};

/**
 * kfi_getparams() - list the parameters
 * @params: receives an array, or NULL if there are no parameters; free it with
 *   kfi_freeparams()
 * @count: receives the number of parameters
 *
 * Behind the last parameter the array has an entry whose name is NULL. The
 * values are those at the time of the call.
 *
 * The core of this version has no parameters, so that the answer is 0 of them.
 * Module parameters are not among them: the kernel lists those in /sys/module.
 *
 * kfabric 1.7 declares this function but does not have it.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if an argument is NULL; -KFI_ENOMEM. After an error
 *   neither argument was changed.
 */
int kfi_getparams(struct kfi_param **params, int *count);

/**
 * kfi_freeparams() - free the array that kfi_getparams() returned
 * @params: array, or NULL
 *
 * Frees the values in it too: nothing of the array may be used any more.
 *
 * kfabric 1.7 declares this function but does not have it.
 *
 * Context: Process context.
 */
void kfi_freeparams(struct kfi_param *params);

/**
 * struct kfi_context - room for the provider in the context of an operation
 * @internal: the provider's
 *
 * Under the mode bit KFI_CONTEXT every operation's context points to one of
 * these, which stays valid until the completion of the operation was read, or
 * was counted if a counter alone tells it. An operation of whose success nobody
 * is told needs it until its endpoint is closed. kfi_cancel() does not give it
 * back where a completion follows, see there.
 */
struct kfi_context {
	void *internal[4];
};

/**
 * struct kfi_context2 - more room for the provider, under KFI_CONTEXT2
 * @internal: the provider's
 */
struct kfi_context2 {
	void *internal[8];
};

#endif /* _KFABRIC_H_ */
