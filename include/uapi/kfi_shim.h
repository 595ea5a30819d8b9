/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of /dev/kfi: user space drives kfabric providers through ioctls.
 */
#ifndef _UAPI_KFI_SHIM_H
#define _UAPI_KFI_SHIM_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: Sessions, handles and results
 *
 * Every open file of /dev/kfi is a session.  Objects are named by handles, numbers that mean
 * something in the session that got them only.  A handle is never 0 and is not used again for
 * another object of the session; the handle of a closed object is answered with EBADF.
 *
 * Two kinds of errors are kept apart.  The system call fails, with an errno and with nothing done
 * in kfabric, when the request itself cannot be understood or carried to kfabric:
 *
 * * ENOTTY: no such request;
 * * EFAULT: a pointer cannot be read or written;
 * * EINVAL: the structure is shorter than its first version, a reserved member is not 0, a flag is
 *   unknown, a handle names an object of another class, a text is too long;
 * * E2BIG: the structure is longer than this kernel knows and the rest is not all 0, or a buffer is
 *   larger than 64 KiB;
 * * EBADF: a handle names nothing;
 * * EBUSY: the object is in use by this session, see %KFI_SHIM_CLOSE;
 * * EMFILE: the session holds as many objects as it may, or has used up its handles;
 * * ENOMEM: no memory.
 *
 * Otherwise the system call returns 0 and the member @result says what kfabric answered: 0, or a
 * negative kfabric errno (include/kfi_errno.h).  It is a member because kfabric has errnos of its
 * own, such as KFI_EAVAIL, that a system call must not return.
 *
 * Structures grow at their end only.  The size travels in the request number: a shorter structure
 * of an older program is completed with zeros, a longer one of a newer program is accepted when
 * the unknown rest is 0, and comes back with a rest of 0.
 *
 * Blocking requests sleep interruptibly; a signal ends them with @result -EINTR.
 *
 * Closing the file closes all objects of the session, dependents first.
 */

/** define KFI_SHIM_INTERFACE - number of this interface, see &struct kfi_shim_version */
#define KFI_SHIM_INTERFACE	1

/** define KFI_SHIM_NAME_MAX - bytes of a name, the terminating 0 included */
#define KFI_SHIM_NAME_MAX	64

/** define KFI_SHIM_ADDR_MAX - bytes of an address */
#define KFI_SHIM_ADDR_MAX	64

/** define KFI_SHIM_AUTH_KEY_MAX - bytes of an authorization key */
#define KFI_SHIM_AUTH_KEY_MAX	64

/**
 * struct kfi_shim_version - what answers: %KFI_SHIM_VERSION
 * @interface: out: %KFI_SHIM_INTERFACE of the running module
 * @api: out: what kfi_version() returns: major version in the upper, minor in the lower 16 bits
 */
struct kfi_shim_version {
	__u32 interface;
	__u32 api;
};

/**
 * struct kfi_shim_tx_attr - &struct kfi_tx_attr by value
 * @caps: capabilities
 * @mode: mode bits
 * @op_flags: default operation flags
 * @msg_order: message order
 * @comp_order: completion order
 * @inject_size: largest injected message in bytes
 * @size: depth of the queue in operations
 * @iov_limit: most segments of an operation
 * @rma_iov_limit: most remote segments of an operation
 * @tclass: traffic class
 * @reserved: must be 0
 */
struct kfi_shim_tx_attr {
	__u64 caps;
	__u64 mode;
	__u64 op_flags;
	__u64 msg_order;
	__u64 comp_order;
	__u64 inject_size;
	__u64 size;
	__u64 iov_limit;
	__u64 rma_iov_limit;
	__u32 tclass;
	__u32 reserved;
};

/**
 * struct kfi_shim_rx_attr - &struct kfi_rx_attr by value
 * @caps: capabilities
 * @mode: mode bits
 * @op_flags: default operation flags
 * @msg_order: message order
 * @comp_order: completion order
 * @total_buffered_recv: bytes that are buffered for unexpected messages
 * @size: depth of the queue in operations
 * @iov_limit: most segments of an operation
 */
struct kfi_shim_rx_attr {
	__u64 caps;
	__u64 mode;
	__u64 op_flags;
	__u64 msg_order;
	__u64 comp_order;
	__u64 total_buffered_recv;
	__u64 size;
	__u64 iov_limit;
};

/**
 * struct kfi_shim_ep_attr - &struct kfi_ep_attr by value
 * @type: endpoint type, &enum kfi_ep_type
 * @protocol: wire protocol
 * @protocol_version: version of the wire protocol
 * @auth_key_size: bytes of @auth_key that count
 * @max_msg_size: largest message in bytes
 * @msg_prefix_size: bytes of the message prefix
 * @max_order_raw_size: largest size in bytes at which read after write is ordered
 * @max_order_war_size: largest size in bytes at which write after read is ordered
 * @max_order_waw_size: largest size in bytes at which write after write is ordered
 * @mem_tag_format: format of tags
 * @tx_ctx_cnt: transmit contexts
 * @rx_ctx_cnt: receive contexts
 * @auth_key: authorization key
 */
struct kfi_shim_ep_attr {
	__u32 type;
	__u32 protocol;
	__u32 protocol_version;
	__u32 auth_key_size;
	__u64 max_msg_size;
	__u64 msg_prefix_size;
	__u64 max_order_raw_size;
	__u64 max_order_war_size;
	__u64 max_order_waw_size;
	__u64 mem_tag_format;
	__u64 tx_ctx_cnt;
	__u64 rx_ctx_cnt;
	__u8 auth_key[KFI_SHIM_AUTH_KEY_MAX];
};

/**
 * struct kfi_shim_domain_attr - &struct kfi_domain_attr by value
 * @domain: handle of an open domain, or 0
 * @threading: &enum kfi_threading
 * @control_progress: &enum kfi_progress
 * @data_progress: &enum kfi_progress
 * @resource_mgmt: &enum kfi_resource_mgmt
 * @av_type: &enum kfi_av_type
 * @mr_mode: memory registration mode bits
 * @tclass: traffic class
 * @mr_key_size: bytes of a memory key
 * @cq_data_size: bytes of remote CQ data
 * @cq_cnt: completion queues
 * @ep_cnt: endpoints
 * @tx_ctx_cnt: transmit contexts
 * @rx_ctx_cnt: receive contexts
 * @max_ep_tx_ctx: transmit contexts of one endpoint
 * @max_ep_rx_ctx: receive contexts of one endpoint
 * @max_ep_stx_ctx: endpoints that may share a transmit context
 * @max_ep_srx_ctx: endpoints that may share a receive context
 * @cntr_cnt: counters
 * @mr_iov_limit: segments of a memory region
 * @caps: capabilities
 * @mode: mode bits
 * @max_err_data: bytes of error data
 * @mr_cnt: memory regions
 * @auth_key_size: bytes of @auth_key that count
 * @reserved: must be 0
 * @name: name, terminated with 0; empty for none
 * @auth_key: authorization key
 */
struct kfi_shim_domain_attr {
	__u32 domain;
	__u32 threading;
	__u32 control_progress;
	__u32 data_progress;
	__u32 resource_mgmt;
	__u32 av_type;
	__u32 mr_mode;
	__u32 tclass;
	__u64 mr_key_size;
	__u64 cq_data_size;
	__u64 cq_cnt;
	__u64 ep_cnt;
	__u64 tx_ctx_cnt;
	__u64 rx_ctx_cnt;
	__u64 max_ep_tx_ctx;
	__u64 max_ep_rx_ctx;
	__u64 max_ep_stx_ctx;
	__u64 max_ep_srx_ctx;
	__u64 cntr_cnt;
	__u64 mr_iov_limit;
	__u64 caps;
	__u64 mode;
	__u64 max_err_data;
	__u64 mr_cnt;
	__u32 auth_key_size;
	__u32 reserved;
	char name[KFI_SHIM_NAME_MAX];
	__u8 auth_key[KFI_SHIM_AUTH_KEY_MAX];
};

/**
 * struct kfi_shim_fabric_attr - &struct kfi_fabric_attr by value
 * @fabric: handle of an open fabric, or 0
 * @prov_version: version of the provider
 * @api_version: version of the API that the caller was written for
 * @reserved: must be 0
 * @name: name, terminated with 0; empty for none
 * @prov_name: name of the provider, terminated with 0; empty for none
 */
struct kfi_shim_fabric_attr {
	__u32 fabric;
	__u32 prov_version;
	__u32 api_version;
	__u32 reserved;
	char name[KFI_SHIM_NAME_MAX];
	char prov_name[KFI_SHIM_NAME_MAX];
};

/**
 * struct kfi_shim_info - &struct kfi_info by value
 * @caps: capabilities
 * @mode: mode bits
 * @addr_format: format of the addresses
 * @src_addrlen: bytes of @src_addr that count
 * @dest_addrlen: bytes of @dest_addr that count
 * @reserved: must be 0
 * @src_addr: source address
 * @dest_addr: destination address
 * @tx_attr: attributes of transmit contexts
 * @rx_attr: attributes of receive contexts
 * @ep_attr: attributes of endpoints
 * @domain_attr: attributes of the domain
 * @fabric_attr: attributes of the fabric
 *
 * As hints, a member that is 0 (a name that is empty) asks for nothing.
 */
struct kfi_shim_info {
	__u64 caps;
	__u64 mode;
	__u32 addr_format;
	__u32 src_addrlen;
	__u32 dest_addrlen;
	__u32 reserved;
	__u8 src_addr[KFI_SHIM_ADDR_MAX];
	__u8 dest_addr[KFI_SHIM_ADDR_MAX];
	struct kfi_shim_tx_attr tx_attr;
	struct kfi_shim_rx_attr rx_attr;
	struct kfi_shim_ep_attr ep_attr;
	struct kfi_shim_domain_attr domain_attr;
	struct kfi_shim_fabric_attr fabric_attr;
};

/**
 * struct kfi_shim_getinfo - asks what there is: %KFI_SHIM_GETINFO
 * @version: in: version of the API that the caller was written for, or 0
 * @hints_size: in: bytes at @hints, at least the size of &struct kfi_shim_info in interface 1
 * @flags: in: flags of kfi_getinfo()
 * @node: in: address of a text terminated with 0, or 0
 * @service: in: address of a text terminated with 0, or 0
 * @hints: in: address of a &struct kfi_shim_info, or 0
 * @result: out: what kfi_getinfo() returned
 * @info: out: handle of the answer, to be closed with %KFI_SHIM_CLOSE
 * @count: out: number of entries in the answer
 * @reserved: must be 0
 */
struct kfi_shim_getinfo {
	__u32 version;
	__u32 hints_size;
	__u64 flags;
	__u64 node;
	__u64 service;
	__u64 hints;
	__s32 result;
	__u32 info;
	__u32 count;
	__u32 reserved;
};

/**
 * struct kfi_shim_read_info - copies one entry of an answer: %KFI_SHIM_READ_INFO
 * @info: in: handle from %KFI_SHIM_GETINFO
 * @index: in: which entry, from 0; EINVAL if there are not as many
 * @buffer: in: address of a &struct kfi_shim_info
 * @buffer_size: in: bytes at @buffer, all of which are written, those with 0 that this kernel does
 *	not know; EINVAL if it is less than the size of &struct kfi_shim_info in interface 1
 * @reserved: must be 0
 */
struct kfi_shim_read_info {
	__u32 info;
	__u32 index;
	__u64 buffer;
	__u32 buffer_size;
	__u32 reserved;
};

/**
 * struct kfi_shim_fabric - opens a fabric: %KFI_SHIM_FABRIC
 * @info: in: handle from %KFI_SHIM_GETINFO
 * @index: in: which of its entries, from 0
 * @context: in: context of the fabric, any number
 * @result: out: what kfi_fabric() returned
 * @fabric: out: handle of the fabric
 */
struct kfi_shim_fabric {
	__u32 info;
	__u32 index;
	__u64 context;
	__s32 result;
	__u32 fabric;
};

/**
 * struct kfi_shim_domain - opens a domain: %KFI_SHIM_DOMAIN
 * @fabric: in: handle of a fabric
 * @info: in: handle from %KFI_SHIM_GETINFO
 * @index: in: which of its entries, from 0
 * @reserved: must be 0
 * @context: in: context of the domain, any number
 * @result: out: what kfi_domain() returned
 * @domain: out: handle of the domain
 */
struct kfi_shim_domain {
	__u32 fabric;
	__u32 info;
	__u32 index;
	__u32 reserved;
	__u64 context;
	__s32 result;
	__u32 domain;
};

/** define KFI_SHIM_CNTR_NO_ATTR - kfi_cntr_open() gets NULL for its attributes */
#define KFI_SHIM_CNTR_NO_ATTR	(1U << 0)

/**
 * struct kfi_shim_cntr_open - opens a counter: %KFI_SHIM_CNTR_OPEN
 * @domain: in: handle of a domain
 * @flags: in: 0 or %KFI_SHIM_CNTR_NO_ATTR
 * @events: in: &enum kfi_cntr_events
 * @wait_obj: in: &enum kfi_wait_obj
 * @attr_flags: in: flags of &struct kfi_cntr_attr
 * @context: in: context of the counter, any number
 * @wait_set: in: handle of an object that is handed over as wait set, whatever its class; 0 for
 *	NULL
 * @reserved: must be 0
 * @result: out: what kfi_cntr_open() returned
 * @cntr: out: handle of the counter
 */
struct kfi_shim_cntr_open {
	__u32 domain;
	__u32 flags;
	__u32 events;
	__u32 wait_obj;
	__u64 attr_flags;
	__u64 context;
	__u32 wait_set;
	__u32 reserved;
	__s32 result;
	__u32 cntr;
};

/**
 * struct kfi_shim_cntr - reads or changes a counter
 * @cntr: in: handle of a counter
 * @result: out: what kfabric returned; 0 for the two reads, which cannot fail
 * @value: in for %KFI_SHIM_CNTR_ADD, %KFI_SHIM_CNTR_ADDERR, %KFI_SHIM_CNTR_SET and
 *	%KFI_SHIM_CNTR_SETERR, out for %KFI_SHIM_CNTR_READ and %KFI_SHIM_CNTR_READERR
 */
struct kfi_shim_cntr {
	__u32 cntr;
	__s32 result;
	__u64 value;
};

/**
 * struct kfi_shim_cntr_wait - waits for a counter: %KFI_SHIM_CNTR_WAIT
 * @cntr: in: handle of a counter
 * @timeout: in: milliseconds; negative to wait without end, 0 to check only
 * @threshold: in: success value to wait for
 * @result: out: what kfi_cntr_wait() returned
 * @reserved: must be 0
 */
struct kfi_shim_cntr_wait {
	__u32 cntr;
	__s32 timeout;
	__u64 threshold;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_control - kfi_control() with a number for argument: %KFI_SHIM_CONTROL
 * @handle: in: handle of any object but an answer of kfi_getinfo()
 * @command: in: KFI_GETOPSFLAG, KFI_SETOPSFLAG or KFI_GETWAITOBJ; EINVAL for any other
 * @value: in for KFI_SETOPSFLAG, else out
 * @result: out: what kfi_control() returned
 * @reserved: must be 0
 */
struct kfi_shim_control {
	__u32 handle;
	__u32 command;
	__u64 value;
	__s32 result;
	__u32 reserved;
};

/** define KFI_SHIM_WAIT_NONBLOCK - read(2) of the descriptor fails with EAGAIN instead of sleeping */
#define KFI_SHIM_WAIT_NONBLOCK	(1U << 0)

/**
 * struct kfi_shim_wait_fd - a descriptor for an object's wait object: %KFI_SHIM_WAIT_FD
 * @handle: in: handle of a counter, completion queue, event queue or wait set, which gives its wait
 *	queue to KFI_GETWAIT
 * @flags: in: 0 or %KFI_SHIM_WAIT_NONBLOCK
 * @result: out: what kfi_control() returned to KFI_GETWAIT
 * @fd: out: the descriptor, closed on exec
 *
 * The descriptor serves poll(2), select(2), epoll(7) and read(2).  It is readable (EPOLLIN) when
 * the wait queue was woken since the descriptor was made, last read, or last armed by a
 * %KFI_SHIM_TRYWAIT with result 0 that named the object.  The descriptor of a counter has an error
 * condition (EPOLLERR), and is readable, when the counter's error value differs from the one last
 * read.  read(2) returns a &struct kfi_shim_wait_event, sleeps while the descriptor is not readable,
 * and so ends the readable state.
 *
 * To wait for objects without missing an event: %KFI_SHIM_TRYWAIT; if the result is 0, poll the
 * descriptors; then read all events of the objects, and begin again.
 * It fails with EINVAL if there is less room, with EAGAIN if it must not sleep, and is interrupted
 * by signals.
 *
 * While the descriptor is open, %KFI_SHIM_CLOSE of the object fails with EBUSY, and the objects
 * of the session live on even when its own file is closed.
 */
struct kfi_shim_wait_fd {
	__u32 handle;
	__u32 flags;
	__s32 result;
	__s32 fd;
};

/**
 * struct kfi_shim_wait_event - what read(2) of a wait descriptor returns
 * @value: success value of a counter; for other objects how often the wait queue was woken since
 *	the descriptor was made
 * @error_value: error value of a counter; 0 for other objects
 */
struct kfi_shim_wait_event {
	__u64 value;
	__u64 error_value;
};

/**
 * struct kfi_shim_close - closes an object: %KFI_SHIM_CLOSE
 * @handle: in: handle of any object of the session
 * @result: out: what kfi_close() returned; when not 0 the handle stays valid
 *
 * EBUSY while another request of the session is using the object or a wait descriptor refers to
 * it.
 */
struct kfi_shim_close {
	__u32 handle;
	__s32 result;
};

/** define KFI_SHIM_NO_ATTR - the open call gets NULL for its attributes */
#define KFI_SHIM_NO_ATTR	(1U << 0)

/**
 * struct kfi_shim_wait_open - opens a wait set: %KFI_SHIM_WAIT_OPEN
 * @fabric: in: handle of a fabric
 * @flags: in: 0 or %KFI_SHIM_NO_ATTR
 * @attr_flags: in: flags of &struct kfi_wait_attr
 * @wait_obj: in: &enum kfi_wait_obj
 * @reserved: must be 0
 * @result: out: what kfi_wait_open() returned
 * @wait_set: out: handle of the wait set
 */
struct kfi_shim_wait_open {
	__u32 fabric;
	__u32 flags;
	__u64 attr_flags;
	__u32 wait_obj;
	__u32 reserved;
	__s32 result;
	__u32 wait_set;
};

/**
 * struct kfi_shim_wait - waits for a wait set: %KFI_SHIM_WAIT
 * @wait_set: in: handle of a wait set
 * @timeout: in: milliseconds; negative to wait without end, 0 to check only
 * @result: out: what kfi_wait() returned
 * @reserved: must be 0
 */
struct kfi_shim_wait {
	__u32 wait_set;
	__s32 timeout;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_poll_open - opens a poll set: %KFI_SHIM_POLL_OPEN
 * @domain: in: handle of a domain
 * @flags: in: 0 or %KFI_SHIM_NO_ATTR
 * @attr_flags: in: flags of &struct kfi_poll_attr
 * @result: out: what kfi_poll_open() returned
 * @poll_set: out: handle of the poll set
 */
struct kfi_shim_poll_open {
	__u32 domain;
	__u32 flags;
	__u64 attr_flags;
	__s32 result;
	__u32 poll_set;
};

/**
 * struct kfi_shim_poll_member - adds or removes a member: %KFI_SHIM_POLL_ADD, %KFI_SHIM_POLL_DEL
 * @poll_set: in: handle of a poll set
 * @member: in: handle of an object of any class but an answer of kfi_getinfo()
 * @flags: in: flags of kfi_poll_add() or kfi_poll_del()
 * @result: out: what the call returned
 * @reserved: must be 0
 *
 * A member that the session closes, or that is left when the session ends, is refused by kfabric or
 * removed first, respectively.
 */
struct kfi_shim_poll_member {
	__u32 poll_set;
	__u32 member;
	__u64 flags;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_poll - asks a poll set for events: %KFI_SHIM_POLL
 * @poll_set: in: handle of a poll set
 * @count: in: how many contexts there is room for, handed to kfi_poll() as it is; E2BIG above 4096
 * @contexts: in: address of @count contexts of 64 bits, or 0 for NULL; all are written
 * @result: out: what kfi_poll() returned: if positive, as many contexts; the rest is 0
 * @reserved: must be 0
 */
struct kfi_shim_poll {
	__u32 poll_set;
	__s32 count;
	__u64 contexts;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_trywait - asks whether it is safe to block: %KFI_SHIM_TRYWAIT
 * @fabric: in: handle of a fabric
 * @count: in: number of handles; E2BIG above 4096
 * @handles: in: address of @count handles of 32 bits, or 0 for NULL
 * @result: out: what kfi_trywait() returned; if 0, the wait descriptors of the objects are armed
 * @reserved: must be 0
 */
struct kfi_shim_trywait {
	__u32 fabric;
	__u32 count;
	__u64 handles;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_cq_open - opens a completion queue: %KFI_SHIM_CQ_OPEN
 * @domain: in: handle of a domain
 * @flags: in: 0 or %KFI_SHIM_NO_ATTR
 * @size: in: entries, 0 for the default
 * @attr_flags: in: flags of &struct kfi_cq_attr
 * @context: in: context of the queue, any number
 * @format: in: &enum kfi_cq_format
 * @wait_obj: in: &enum kfi_wait_obj
 * @wait_cond: in: &enum kfi_cq_wait_cond
 * @wait_set: in: handle of an object that is handed over as wait set, whatever its class; 0 for
 *	NULL
 * @result: out: what kfi_cq_open() returned
 * @cq: out: handle of the queue
 */
struct kfi_shim_cq_open {
	__u32 domain;
	__u32 flags;
	__u64 size;
	__u64 attr_flags;
	__u64 context;
	__u32 format;
	__u32 wait_obj;
	__u32 wait_cond;
	__u32 wait_set;
	__s32 result;
	__u32 cq;
};

/**
 * struct kfi_shim_cq_entry - a completion, in the longest format
 * @op_context: context of the operation
 * @flags: what was done; 0 if the format does not tell
 * @len: bytes transferred; 0 if the format does not tell
 * @buf: address of received data; 0 if the format does not tell
 * @data: data that came along; 0 if the format does not tell
 * @tag: tag; 0 if the format does not tell
 * @src_addr: who sent it, KFI_ADDR_NOTAVAIL if that is not known
 */
struct kfi_shim_cq_entry {
	__u64 op_context;
	__u64 flags;
	__u64 len;
	__u64 buf;
	__u64 data;
	__u64 tag;
	__u64 src_addr;
};

/** define KFI_SHIM_CQ_READ_MAX - most completions of one %KFI_SHIM_CQ_READ */
#define KFI_SHIM_CQ_READ_MAX	64

/**
 * struct kfi_shim_cq_read - takes completions out: %KFI_SHIM_CQ_READ, %KFI_SHIM_CQ_SREAD
 * @cq: in: handle of a completion queue
 * @count: in: room at @entries; E2BIG above %KFI_SHIM_CQ_READ_MAX
 * @entries: in: address of @count &struct kfi_shim_cq_entry, all of which are written
 * @timeout: in for %KFI_SHIM_CQ_SREAD: milliseconds; negative to wait without end
 * @result: out: what kfi_cq_readfrom() or kfi_cq_sreadfrom() returned: if positive, as many
 *	entries; the rest is 0
 */
struct kfi_shim_cq_read {
	__u32 cq;
	__u32 count;
	__u64 entries;
	__s32 timeout;
	__s32 result;
};

/**
 * struct kfi_shim_cq_error - takes an error out, or adds a completion or an error:
 *	%KFI_SHIM_CQ_READERR, %KFI_SHIM_CQ_WRITE
 * @cq: in: handle of a completion queue
 * @result: out: what kfi_cq_readerr() returned, or the provider's function to add, which only the
 *	software provider has (include/kfi_soft_ext.h)
 * @entry: the operation; &kfi_shim_cq_entry.src_addr is ignored
 * @olen: bytes that did not fit
 * @err: errno, positive; 0 to add a completion
 * @prov_errno: errno of the provider
 */
struct kfi_shim_cq_error {
	__u32 cq;
	__s32 result;
	struct kfi_shim_cq_entry entry;
	__u64 olen;
	__s32 err;
	__s32 prov_errno;
};

/**
 * struct kfi_shim_cq_signal - ends waits: %KFI_SHIM_CQ_SIGNAL
 * @cq: in: handle of a completion queue
 * @result: out: what kfi_cq_signal() returned
 */
struct kfi_shim_cq_signal {
	__u32 cq;
	__s32 result;
};

/** define KFI_SHIM_EVENT_MAX - bytes of the longest event */
#define KFI_SHIM_EVENT_MAX	128

/**
 * struct kfi_shim_eq_open - opens an event queue: %KFI_SHIM_EQ_OPEN
 * @fabric: in: handle of a fabric
 * @flags: in: 0 or %KFI_SHIM_NO_ATTR
 * @size: in: entries, 0 for the default
 * @attr_flags: in: flags of &struct kfi_eq_attr
 * @context: in: context of the queue, any number
 * @wait_obj: in: &enum kfi_wait_obj
 * @wait_set: in: handle of an object that is handed over as wait set, whatever its class; 0 for
 *	NULL
 * @result: out: what kfi_eq_open() returned
 * @eq: out: handle of the queue
 */
struct kfi_shim_eq_open {
	__u32 fabric;
	__u32 flags;
	__u64 size;
	__u64 attr_flags;
	__u64 context;
	__u32 wait_obj;
	__u32 wait_set;
	__s32 result;
	__u32 eq;
};

/**
 * struct kfi_shim_eq_event - takes an event out or adds one: %KFI_SHIM_EQ_READ, %KFI_SHIM_EQ_SREAD,
 *	%KFI_SHIM_EQ_WRITE
 * @eq: in: handle of an event queue
 * @event: type of the event
 * @flags: in: flags of the call
 * @len: in: bytes of room in @data, or bytes to add; E2BIG above %KFI_SHIM_EVENT_MAX
 * @timeout: in for %KFI_SHIM_EQ_SREAD: milliseconds; negative to wait without end
 * @result: out: what the call returned: if not negative, bytes read or written
 * @reserved: must be 0
 * @data: the entry of the event, as it was written
 */
struct kfi_shim_eq_event {
	__u32 eq;
	__u32 event;
	__u64 flags;
	__u32 len;
	__s32 timeout;
	__s32 result;
	__u32 reserved;
	__u8 data[KFI_SHIM_EVENT_MAX];
};

/**
 * struct kfi_shim_eq_error - takes an error out or adds one: %KFI_SHIM_EQ_READERR,
 *	%KFI_SHIM_EQ_WRITE_ERROR
 * @eq: in: handle of an event queue
 * @result: out: what kfi_eq_readerr() returned, or the provider's function to add, which only the
 *	software provider has (include/kfi_soft_ext.h)
 * @context: context of the operation or object
 * @data: data of the event
 * @err: errno, positive
 * @prov_errno: errno of the provider
 */
struct kfi_shim_eq_error {
	__u32 eq;
	__s32 result;
	__u64 context;
	__u64 data;
	__s32 err;
	__s32 prov_errno;
};

/** define KFI_SHIM_IOC_MAGIC - type of the requests of /dev/kfi */
#define KFI_SHIM_IOC_MAGIC	0xF1

#define KFI_SHIM_VERSION	_IOR(KFI_SHIM_IOC_MAGIC, 0x00, struct kfi_shim_version)
#define KFI_SHIM_CLOSE		_IOWR(KFI_SHIM_IOC_MAGIC, 0x01, struct kfi_shim_close)
#define KFI_SHIM_GETINFO	_IOWR(KFI_SHIM_IOC_MAGIC, 0x02, struct kfi_shim_getinfo)
#define KFI_SHIM_READ_INFO	_IOW(KFI_SHIM_IOC_MAGIC, 0x03, struct kfi_shim_read_info)
#define KFI_SHIM_CONTROL	_IOWR(KFI_SHIM_IOC_MAGIC, 0x04, struct kfi_shim_control)
#define KFI_SHIM_WAIT_FD	_IOWR(KFI_SHIM_IOC_MAGIC, 0x05, struct kfi_shim_wait_fd)
#define KFI_SHIM_FABRIC		_IOWR(KFI_SHIM_IOC_MAGIC, 0x10, struct kfi_shim_fabric)
#define KFI_SHIM_DOMAIN		_IOWR(KFI_SHIM_IOC_MAGIC, 0x11, struct kfi_shim_domain)
#define KFI_SHIM_CNTR_OPEN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x20, struct kfi_shim_cntr_open)
#define KFI_SHIM_CNTR_READ	_IOWR(KFI_SHIM_IOC_MAGIC, 0x21, struct kfi_shim_cntr)
#define KFI_SHIM_CNTR_READERR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x22, struct kfi_shim_cntr)
#define KFI_SHIM_CNTR_ADD	_IOWR(KFI_SHIM_IOC_MAGIC, 0x23, struct kfi_shim_cntr)
#define KFI_SHIM_CNTR_ADDERR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x24, struct kfi_shim_cntr)
#define KFI_SHIM_CNTR_SET	_IOWR(KFI_SHIM_IOC_MAGIC, 0x25, struct kfi_shim_cntr)
#define KFI_SHIM_CNTR_SETERR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x26, struct kfi_shim_cntr)
#define KFI_SHIM_CNTR_WAIT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x27, struct kfi_shim_cntr_wait)
#define KFI_SHIM_WAIT_OPEN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x30, struct kfi_shim_wait_open)
#define KFI_SHIM_WAIT		_IOWR(KFI_SHIM_IOC_MAGIC, 0x31, struct kfi_shim_wait)
#define KFI_SHIM_TRYWAIT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x32, struct kfi_shim_trywait)
#define KFI_SHIM_POLL_OPEN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x33, struct kfi_shim_poll_open)
#define KFI_SHIM_POLL_ADD	_IOWR(KFI_SHIM_IOC_MAGIC, 0x34, struct kfi_shim_poll_member)
#define KFI_SHIM_POLL_DEL	_IOWR(KFI_SHIM_IOC_MAGIC, 0x35, struct kfi_shim_poll_member)
#define KFI_SHIM_POLL		_IOWR(KFI_SHIM_IOC_MAGIC, 0x36, struct kfi_shim_poll)
#define KFI_SHIM_CQ_OPEN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x40, struct kfi_shim_cq_open)
#define KFI_SHIM_CQ_READ	_IOWR(KFI_SHIM_IOC_MAGIC, 0x41, struct kfi_shim_cq_read)
#define KFI_SHIM_CQ_SREAD	_IOWR(KFI_SHIM_IOC_MAGIC, 0x42, struct kfi_shim_cq_read)
#define KFI_SHIM_CQ_READERR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x43, struct kfi_shim_cq_error)
#define KFI_SHIM_CQ_WRITE	_IOWR(KFI_SHIM_IOC_MAGIC, 0x44, struct kfi_shim_cq_error)
#define KFI_SHIM_CQ_SIGNAL	_IOWR(KFI_SHIM_IOC_MAGIC, 0x45, struct kfi_shim_cq_signal)
#define KFI_SHIM_EQ_OPEN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x50, struct kfi_shim_eq_open)
#define KFI_SHIM_EQ_READ	_IOWR(KFI_SHIM_IOC_MAGIC, 0x51, struct kfi_shim_eq_event)
#define KFI_SHIM_EQ_SREAD	_IOWR(KFI_SHIM_IOC_MAGIC, 0x52, struct kfi_shim_eq_event)
#define KFI_SHIM_EQ_WRITE	_IOWR(KFI_SHIM_IOC_MAGIC, 0x53, struct kfi_shim_eq_event)
#define KFI_SHIM_EQ_READERR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x54, struct kfi_shim_eq_error)
#define KFI_SHIM_EQ_WRITE_ERROR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x55, struct kfi_shim_eq_error)

#endif /* _UAPI_KFI_SHIM_H */
