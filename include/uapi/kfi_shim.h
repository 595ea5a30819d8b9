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
 * @handle: in: handle of a fabric, domain or counter
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
 * @handle: in: handle of a counter opened with KFI_WAIT_QUEUE
 * @flags: in: 0 or %KFI_SHIM_WAIT_NONBLOCK
 * @result: out: what kfi_control() returned to KFI_GETWAIT
 * @fd: out: the descriptor, closed on exec
 *
 * The descriptor serves poll(2), select(2), epoll(7) and read(2).  It is readable (EPOLLIN) when
 * the counter has changed since the descriptor was made or last read, and has an error condition
 * (EPOLLERR) when its error value differs from the one last read.  read(2) returns a
 * &struct kfi_shim_wait_event, sleeps while there is no change, and so ends the readable state.
 * It fails with EINVAL if there is less room, with EAGAIN if it must not sleep, and is interrupted
 * by signals.
 *
 * While the descriptor is open, %KFI_SHIM_CLOSE of the counter fails with EBUSY, and the objects
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
 * @value: success value of the counter
 * @error_value: error value of the counter
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

#endif /* _UAPI_KFI_SHIM_H */
