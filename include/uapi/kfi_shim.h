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
 * Every open file of /dev/kfi is a session.  It is opened with O_RDWR, without which no buffer can be
 * mapped for writing, and with O_CLOEXEC, or another program that is executed has the session, too.
 * Objects are named by handles, numbers that mean something in the session that got them only.  A
 * handle is never 0 and is not used again for another object of the session; the handle of a closed
 * object is answered with EBADF.
 *
 * Two kinds of errors are kept apart.  The system call fails, with an errno and with nothing done
 * in kfabric, when the request itself cannot be understood or carried to kfabric:
 *
 * * ENOTTY: no such request;
 * * EFAULT: a pointer cannot be read or written;
 * * EINVAL: the structure is shorter than its first version, a reserved member is not 0, a flag is
 *   unknown, a handle names an object of another class, a text is too long;
 * * E2BIG: the structure is longer than this kernel knows and the rest is not all 0; hints, attributes,
 *   or room for an entry or a text are said to have more than 64 KiB, or a structure of a work or of a
 *   batch more than 4 KiB; or a count, or the size of a buffer, is above its limit;
 * * EBADF: a handle or another number names nothing;
 * * EDQUOT: the session, or its user, has as much memory as it may, see %KFI_SHIM_BUFFER;
 * * EBUSY: the object is in use by this session, see %KFI_SHIM_CLOSE;
 * * EMFILE: the session, or its user, holds as many objects as it may, or the session has used up
 *   its handles, or as many descriptors as may listen to the wait queue, see %KFI_SHIM_WAIT_FD;
 * * EAGAIN: other threads are posting so many operations that report no success that no context is free
 *   for this one: try again;
 * * EINTR: a signal, while a long array of segments was read, or while the request waited for another
 *   thread that was closing the object;
 * * ENOMEM: no memory.
 *
 * Otherwise the system call returns 0 and the member @result says what kfabric answered: 0, or a
 * negative kfabric errno (include/kfi_errno.h).  It is a member because kfabric has errnos of its
 * own, such as KFI_EAVAIL, that a system call must not return.  Requests that ask nothing of kfabric,
 * or nothing that can fail, have no such member.
 *
 * Where a call takes an object beside the one that it is about, a counter, a wait set, a member, an
 * endpoint, a queue, a region whose descriptor is handed over, a handle that names an object of another
 * class, or of another fabric or domain than the call is about, is answered with @result -KFI_EINVAL
 * and not handed over: a provider finds its own structures around what it is given.
 *
 * Structures grow at their end only.  The size travels in the request number: a shorter structure
 * of an older program is completed with zeros, a longer one of a newer program is accepted when
 * the unknown rest is 0, and comes back with a rest of 0.
 *
 * Blocking requests sleep interruptibly; a signal ends them with @result -EINTR.  It ends those, too,
 * that have many operations or works to look through: %KFI_SHIM_CANCEL, %KFI_SHIM_FLUSH_WORK and
 * %KFI_SHIM_TRYWAIT, which may be repeated.  Work that the kernel has for the thread, such as a
 * completion of io_uring(7) or a livepatch, ends all of these like a signal, though no handler runs: a
 * program that gets -EINTR asks again unless it knows of a signal that is to end it.
 *
 * Closing the file closes all objects of the session, dependents first.  The last close by the process
 * that has opened it waits for that, unless the task is killed, or another process has ever made a
 * request in the session.  A task that is exiting waits for five seconds at most, and only if it is of
 * the user who has opened the session; other tasks do not wait.  Objects that are not closed by then are
 * closed later, and count until then; the module cannot be unloaded before.
 *
 * The module parameter max_objects says how many objects a session may hold, deferred works
 * included, max_user_objects how many all sessions of the user who opened them may hold.  There each
 * session counts as one, too, so that open(2) may fail with EMFILE as well.  Fabrics and domains, for
 * which a provider may have threads of the kernel, are limited by max_user_domains beside that, and
 * endpoints that have an address, plain and scalable, by max_user_endpoints.
 *
 * Addresses of the kernel never reach user space: memory is named by the handle of a buffer and an
 * offset, objects by their handles, operations by the number that user space gave as context.  Of a
 * pointer that means nothing to the session, user space sees 0.
 */

/**
 * DOC: Memory
 *
 * Operations and memory regions work on memory of the kernel, in buffers (%KFI_SHIM_BUFFER) that
 * user space maps with mmap(2).  A buffer counts in the session's memory, limited by the module
 * parameter max_memory (bytes; half of the machine's memory if it is 0, the default), and in that of
 * all sessions of the user who opened it, limited by max_user_memory (likewise), until nothing needs
 * it any more:
 *
 * * its handle is closed, and
 * * it is not mapped, and
 * * every endpoint or context through which an operation named it, every memory region registered
 *   on it is closed, and every deferred work that names it is released, or its domain closed.
 *
 * Closing the handle only takes the name away, so it always succeeds.
 *
 * Everything else that a request makes the kernel allocate counts as well: objects with about what
 * their provider needs for the sizes asked for, answers, addresses of vectors, members of poll sets, wait
 * descriptors, the contexts of operations, what may be copied of them, deferred works, each time that
 * they are queued, and the arrays of a request while it is carried out.
 *
 * The memory for the operations of an endpoint or context that is closed counts on until it is certain
 * that none of their completions is in a queue any more: until each completion queue of the session that
 * was open then has answered %KFI_SHIM_CQ_READ, with room for an entry, with -KFI_EAGAIN since, while nobody
 * else was reading it, or is closed.
 *
 * A mapping keeps the session, as a descriptor of it does; and so does an endpoint that was being closed by a
 * thread that was killed, until it is closed.
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
 * @node: in: address of a text terminated with 0, or 0; EINVAL for more than 63 bytes before the 0
 * @service: in: address of a text terminated with 0, or 0; likewise
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
 *
 * EOPNOTSUPP for an entry with KFI_MR_VIRT_ADDR, as user space may not know addresses of the kernel, and
 * for one that demands contexts that are structures, arrays that stay, a prefix of messages, or that local
 * memory is registered (KFI_MR_LOCAL, KFI_LOCAL_MR).
 * @result is -KFI_EINVAL for an entry of another provider.
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
 * @wait_obj: in: &enum kfi_wait_obj; 0 is KFI_WAIT_NONE, a counter that cannot be waited for
 * @attr_flags: in: flags of &struct kfi_cntr_attr
 * @context: in: context of the counter, any number
 * @wait_set: in: handle of a wait set of the domain's fabric, which counts if @wait_obj is
 *	KFI_WAIT_SET only, but is looked up in any case; 0 for NULL
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
 * @result: out: what kfi_cntr_wait() returned: 0 at the threshold, -KFI_EAVAIL if the error value
 *	has changed, -KFI_ETIMEDOUT, -KFI_EINTR after a signal, -KFI_EINVAL for a counter that cannot be
 *	waited for
 * @reserved: must be 0
 *
 * %KFI_SHIM_CLOSE of the counter fails with EBUSY meanwhile.  A change of its error value ends the wait.
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
 * @handle: in: handle of any object but an answer of kfi_getinfo() or a buffer
 * @command: in: KFI_GETOPSFLAG, KFI_SETOPSFLAG or KFI_GETWAITOBJ; EINVAL for any other
 * @value: in for KFI_SETOPSFLAG, and for KFI_GETOPSFLAG of endpoints the direction, see kfabric.h;
 *	else out
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
 * EMFILE if 64 descriptors listen to the wait queue already: that of the object or, if it belongs to a
 * wait set, that of the set.
 *
 * The descriptor serves poll(2), select(2), epoll(7) and read(2).  It is readable (EPOLLIN) when
 * the wait queue was woken since the descriptor was made, last read, or last armed by a
 * %KFI_SHIM_TRYWAIT with result 0 that named the object.  The descriptor of a counter has an error
 * condition (EPOLLERR), and is readable, when the counter's error value differs from the one last
 * read.  read(2) returns a &struct kfi_shim_wait_event, sleeps while the descriptor is not readable,
 * and so ends the readable state.
 *
 * read(2) fails with EINVAL if there is less room, and with EAGAIN if it must not sleep; after a
 * signal it is restarted or fails with EINTR, as sigaction(2) says.  The error condition of a counter ends
 * with read(2) alone, not with %KFI_SHIM_CNTR_READERR.
 *
 * To wait for objects without missing an event: %KFI_SHIM_TRYWAIT; if the result is 0, poll the
 * descriptors; then read all events of the objects, and begin again.  One thread at a time does so for
 * an object: what it has seen, and what it has armed, is so for all others, too, who might sleep though
 * they have not seen it.
 *
 * Threads are woken by whoever makes the change if no more than four descriptors listen to the wait queue of
 * the object, no more than four wait for the descriptor, none of them an epoll(7) instance, and somebody
 * has polled or read it since those who wait were woken last.  All others are woken by a thread of the kernel of
 * ordinary priority; if nobody has looked since, up to 10 ms later.
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
 * Closing an endpoint may take long, as peers may have its operations, and only a signal that ends the process ends
 * the wait for it, within a second.  It is closed all the same.
 *
 * EBUSY while another request of the session is using the object, somebody is closing it, or a wait descriptor refers
 * to it; and for a memory region with a descriptor while an endpoint is open through which an operation
 * named that.
 */
struct kfi_shim_close {
	__u32 handle;
	__s32 result;
};

/** define KFI_SHIM_NO_ATTR - the open call gets NULL for its attributes */
#define KFI_SHIM_NO_ATTR	(1U << 0)

/** define KFI_SHIM_HANDLER - the queue gets a handler, whose calls %KFI_SHIM_HANDLED counts */
#define KFI_SHIM_HANDLER	(1U << 1)

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
 * @member: in: handle of a counter or queue of the domain
 * @flags: in: flags of kfi_poll_add() or kfi_poll_del()
 * @result: out: what the call returned
 * @reserved: must be 0
 *
 * Closing a member is refused by kfabric; members that are left when the session ends are removed
 * first.
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
 * @contexts: in: address of @count contexts of 64 bits, or 0 for NULL; all are written.  That of a
 *	member that is gone by then may be 0
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
 * @flags: in: %KFI_SHIM_NO_ATTR, %KFI_SHIM_HANDLER
 * @size: in: entries, 0 for the default
 * @attr_flags: in: flags of &struct kfi_cq_attr
 * @context: in: context of the queue, any number
 * @format: in: &enum kfi_cq_format
 * @wait_obj: in: &enum kfi_wait_obj
 * @wait_cond: in: &enum kfi_cq_wait_cond
 * @wait_set: in: handle of a wait set of the domain's fabric, which counts if @wait_obj is
 *	KFI_WAIT_SET only, but is looked up in any case; 0 for NULL
 * @result: out: what kfi_cq_open() returned
 * @cq: out: handle of the queue
 * @signaling_vector: in: CPU of the handler, with KFI_AFFINITY in @attr_flags
 * @reserved: must be 0
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
	__s32 signaling_vector;
	__u32 reserved;
};

/**
 * struct kfi_shim_cq_entry - a completion, in the longest format
 * @op_context: context of the operation
 * @flags: what was done; 0 if the format does not tell
 * @len: bytes transferred; 0 if the format does not tell
 * @buf: where received data lies: the handle of the buffer in the upper, the offset in it in the
 *	lower 32 bits, even if the handle is closed by now; 0 if the format does not tell
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
 * define KFI_SHIM_CQ_NO_SOURCE - use kfi_cq_read() or kfi_cq_sread(), which do not tell who sent
 *	what: &kfi_shim_cq_entry.src_addr is KFI_ADDR_NOTAVAIL
 */
#define KFI_SHIM_CQ_NO_SOURCE	(1U << 0)

/**
 * struct kfi_shim_cq_read - takes completions out: %KFI_SHIM_CQ_READ, %KFI_SHIM_CQ_SREAD
 * @cq: in: handle of a completion queue
 * @count: in: room at @entries; E2BIG above %KFI_SHIM_CQ_READ_MAX
 * @entries: in: address of @count &struct kfi_shim_cq_entry, all of which are written
 * @timeout: in for %KFI_SHIM_CQ_SREAD: milliseconds; negative to wait without end
 * @result: out: what kfi_cq_readfrom() or kfi_cq_sreadfrom() returned: if positive, as many
 *	entries; the rest is 0
 * @cond: in for %KFI_SHIM_CQ_SREAD: condition, a number; see &enum kfi_cq_wait_cond
 * @flags: in: 0 or %KFI_SHIM_CQ_NO_SOURCE
 * @reserved: must be 0
 */
struct kfi_shim_cq_read {
	__u32 cq;
	__u32 count;
	__u64 entries;
	__s32 timeout;
	__s32 result;
	__u64 cond;
	__u32 flags;
	__u32 reserved;
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
 * @flags: in: %KFI_SHIM_NO_ATTR, %KFI_SHIM_HANDLER
 * @size: in: entries, 0 for the default
 * @attr_flags: in: flags of &struct kfi_eq_attr
 * @context: in: context of the queue, any number
 * @wait_obj: in: &enum kfi_wait_obj
 * @wait_set: in: handle of a wait set of the fabric, which counts if @wait_obj is
 *	KFI_WAIT_SET only, but is looked up in any case; 0 for NULL
 * @result: out: what kfi_eq_open() returned
 * @eq: out: handle of the queue
 * @signaling_vector: in: CPU of the handler, with KFI_AFFINITY in @attr_flags
 * @reserved: must be 0
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
	__s32 signaling_vector;
	__u32 reserved;
};

/**
 * struct kfi_shim_eq_event - takes an event out or adds one: %KFI_SHIM_EQ_READ, %KFI_SHIM_EQ_SREAD,
 *	%KFI_SHIM_EQ_WRITE
 * @eq: in: handle of an event queue
 * @event: type of the event; EINVAL for KFI_CONNREQ with %KFI_SHIM_EQ_WRITE: only the provider has
 *	descriptions of connections
 * @flags: in: flags of the call
 * @len: in: bytes of room in @data, or bytes to add; E2BIG above %KFI_SHIM_EVENT_MAX
 * @timeout: in for %KFI_SHIM_EQ_SREAD: milliseconds; negative to wait without end
 * @result: out: what the call returned: if not negative, bytes read or written
 * @reserved: must be 0
 * @data: the entry of the event, as it was written, except that in place of a pointer at its start
 *	there is @object, and see below
 * @object: out: handle of the object that the event is about, if it is open; else 0
 * @reserved2: must be 0
 *
 * Entries begin with a pointer to an object, see &struct kfi_eq_entry and &struct kfi_eq_cm_entry.
 * Entries of the provider are changed in other places, too: the context of an operation, behind the
 * pointer, is the number that the session gave, and the description of a connection request, which is
 * freed, is 0.  Any later word that could be an address of the kernel is 0, too, except for the data of
 * KFI_MR_COMPLETE and KFI_AV_COMPLETE.
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
	__u32 object;
	__u32 reserved2;
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
 * @object: out of %KFI_SHIM_EQ_READERR: handle of the object that the error is about, if it is open;
 *	else 0
 * @reserved: must be 0
 */
struct kfi_shim_eq_error {
	__u32 eq;
	__s32 result;
	__u64 context;
	__u64 data;
	__s32 err;
	__s32 prov_errno;
	__u32 object;
	__u32 reserved;
};

/**
 * struct kfi_shim_handled - reads how often a handler was called: %KFI_SHIM_HANDLED
 * @queue: in: handle of a completion or event queue that was opened with %KFI_SHIM_HANDLER; EINVAL
 *	if it was not
 * @timeout: in: milliseconds to wait until @calls is reached; negative to wait without end, 0 to
 *	read only
 * @calls: in: number of calls to wait for; out: number of calls so far
 * @result: out: 0; -ETIMEDOUT, -EINTR
 * @cpu: out: CPU of the last call, -1 if there was none
 *
 * The handler does nothing but count: the queue is armed again by whoever reads it until it is empty.
 */
struct kfi_shim_handled {
	__u32 queue;
	__s32 timeout;
	__u64 calls;
	__s32 result;
	__s32 cpu;
};

/** define KFI_SHIM_TEXT_MAX - bytes of a short text, the terminating 0 included */
#define KFI_SHIM_TEXT_MAX	256

/**
 * struct kfi_shim_strerror - describes an errno of the provider: %KFI_SHIM_STRERROR
 * @queue: in: handle of a completion or event queue
 * @prov_errno: in: the number
 * @len: in: room at @text handed to kfi_cq_strerror() or kfi_eq_strerror(), 0 for no buffer; EINVAL
 *	above %KFI_SHIM_TEXT_MAX
 * @result: out: 0, or -EINVAL if the call returned NULL
 * @text: out: the text, terminated with 0
 */
struct kfi_shim_strerror {
	__u32 queue;
	__s32 prov_errno;
	__u32 len;
	__s32 result;
	char text[KFI_SHIM_TEXT_MAX];
};

/**
 * struct kfi_shim_info_text - prints an entry of an answer: %KFI_SHIM_INFO_TEXT
 * @info: in: handle from %KFI_SHIM_GETINFO
 * @index: in: which entry, from 0; EINVAL if there are not as many
 * @text: in: address of @size bytes, which receive the text, cut so that it is terminated with 0
 * @size: in: bytes at @text, at most 64 KiB
 * @len: out: bytes that the whole text takes, the terminating 0 included
 */
struct kfi_shim_info_text {
	__u32 info;
	__u32 index;
	__u64 text;
	__u32 size;
	__u32 len;
};

/**
 * struct kfi_shim_tostr - prints a number: %KFI_SHIM_TOSTR
 * @type: in: &enum kfi_type; EINVAL for those that are structures
 * @size: in: bytes at @text, at most 64 KiB
 * @text: in: address of @size bytes, which receive the text, cut so that it is terminated with 0
 * @value: in: what is to be printed
 * @len: out: bytes that the whole text takes, the terminating 0 included
 * @result: out: 0, or -EINVAL if kfi_tostr() returned NULL
 */
struct kfi_shim_tostr {
	__u32 type;
	__u32 size;
	__u64 text;
	__u64 value;
	__u32 len;
	__s32 result;
};

/**
 * enum kfi_shim_buffer_kind - how the memory of a buffer is allocated
 * @KFI_SHIM_BUFFER_KMALLOC: in one piece, by kmalloc; ENOMEM beyond what that gives (some MiB)
 * @KFI_SHIM_BUFFER_VMALLOC: single pages with consecutive virtual addresses, by vmalloc
 * @KFI_SHIM_BUFFER_PAGES: single pages without common address, for page ranges (bv) and
 *	scatterlists (sgl): wherever an address is needed they are refused with EINVAL
 *
 * Whole pages are allocated in any case, filled with 0.
 */
enum kfi_shim_buffer_kind {
	KFI_SHIM_BUFFER_KMALLOC = 1,
	KFI_SHIM_BUFFER_VMALLOC = 2,
	KFI_SHIM_BUFFER_PAGES = 3,
};

/**
 * struct kfi_shim_buffer - allocates a buffer: %KFI_SHIM_BUFFER
 * @kind: in: &enum kfi_shim_buffer_kind
 * @flags: must be 0
 * @size: in: bytes, from 1 up to 4 GiB - 1; E2BIG above; segments must lie within
 * @buffer: out: handle of the buffer, to be closed with %KFI_SHIM_CLOSE
 * @reserved: must be 0
 * @offset: out: offset for mmap(2), which must be MAP_SHARED, not executable, and end within the
 *	last page of the buffer; a part that begins at a page may be mapped, too
 *
 * EDQUOT if the session would hold more memory than it may.
 *
 * mmap(2) fails with EBADF while another thread closes the buffer.  A mapping is memory for the program,
 * and for system calls that copy; those that take references to pages (vmsplice(2), O_DIRECT, buffers
 * registered with io_uring, futexes that processes share) fail with EFAULT there.
 */
struct kfi_shim_buffer {
	__u32 kind;
	__u32 flags;
	__u64 size;
	__u32 buffer;
	__u32 reserved;
	__u64 offset;
};

/** define KFI_SHIM_SEGMENTS_MAX - most elements of an array of segments; E2BIG above */
#define KFI_SHIM_SEGMENTS_MAX	4096

/**
 * struct kfi_shim_segment - a piece of a buffer
 * @buffer: handle of a buffer; 0 for a NULL address, then @offset and @len must be 0, but for the
 *	operands of KFI_ATOMIC_READ, where @len counts
 * @mr: handle of the memory region whose descriptor is handed over (kfi_mr_desc()); 0 for NULL.  If
 *	it is 0 in all segments, the array of descriptors itself is NULL.  It must be one of the domain;
 *	@result is -KFI_EINVAL else.  EINVAL for one with a descriptor in which the piece does not lie.  The
 *	region cannot be closed before the endpoint, as some providers look behind descriptors
 * @offset: where it begins
 * @len: bytes; EINVAL if it does not end within the buffer.  Of atomic operations elements of the
 *	datatype, or bytes if the datatype is unknown
 *
 * Where a page range (bv) or a scatterlist (sgl) is made of segments, one of a buffer of kind
 * %KFI_SHIM_BUFFER_KMALLOC is one entry, one of another kind is one entry for each page it touches.
 */
struct kfi_shim_segment {
	__u32 buffer;
	__u32 mr;
	__u64 offset;
	__u64 len;
};

/**
 * struct kfi_shim_rma_segment - a piece of a peer's memory
 * @addr: where it begins; of tagged RMA (KFI_TAGGED in the flags), in the buffer of the receive
 * @len: bytes; elements for atomic operations
 * @key: key of the region; of tagged RMA the tag
 */
struct kfi_shim_rma_segment {
	__u64 addr;
	__u64 len;
	__u64 key;
};

/**
 * struct kfi_shim_bind - binds an object to another: %KFI_SHIM_BIND
 * @handle: in: handle of any object but an answer of kfi_getinfo() or a buffer: kfi_ep_bind(),
 *	kfi_scalable_ep_bind(), kfi_pep_bind(), kfi_av_bind(), kfi_mr_bind(), kfi_domain_bind()
 * @other: in: likewise
 * @flags: in: flags of the call
 * @result: out: what the call returned
 * @reserved: must be 0
 */
struct kfi_shim_bind {
	__u32 handle;
	__u32 other;
	__u64 flags;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_enable - makes an object usable: %KFI_SHIM_ENABLE
 * @handle: in: handle of any object but an answer of kfi_getinfo() or a buffer: kfi_enable(),
 *	kfi_mr_enable()
 * @result: out: what kfi_control() returned to KFI_ENABLE
 */
struct kfi_shim_enable {
	__u32 handle;
	__s32 result;
};

/**
 * struct kfi_shim_av_open - opens an address vector: %KFI_SHIM_AV_OPEN
 * @domain: in: handle of a domain
 * @flags: in: 0 or %KFI_SHIM_NO_ATTR
 * @type: in: &enum kfi_av_type; out: what the provider chose
 * @rx_ctx_bits: in: bits of an address that are set aside
 * @count: in: expected number of addresses
 * @ep_per_node: in: expected number of endpoints on each node
 * @attr_flags: in: flags of &struct kfi_av_attr
 * @context: in: context of the vector, any number
 * @result: out: what kfi_av_open() returned
 * @av: out: handle of the vector
 * @name: in: name, terminated with 0; empty for NULL
 */
struct kfi_shim_av_open {
	__u32 domain;
	__u32 flags;
	__u32 type;
	__s32 rx_ctx_bits;
	__u64 count;
	__u64 ep_per_node;
	__u64 attr_flags;
	__u64 context;
	__s32 result;
	__u32 av;
	char name[KFI_SHIM_NAME_MAX];
};

/** define KFI_SHIM_AV_MAX - most addresses of one request; E2BIG above */
#define KFI_SHIM_AV_MAX		65536

/**
 * struct kfi_shim_av_insert - inserts addresses: %KFI_SHIM_AV_INSERT, %KFI_SHIM_AV_INSERTSVC,
 *	%KFI_SHIM_AV_INSERTSYM
 * @av: in: handle of an address vector
 * @addr_len: in for %KFI_SHIM_AV_INSERT: bytes at @addr, of all addresses; what is missing of them
 *	is taken as 0; EINVAL if it is more than %KFI_SHIM_ADDR_MAX for each
 * @flags: in: flags of the call
 * @context: in: context of the events, any number.  With KFI_SYNC_ERR in @flags the call gets an
 *	array for the errors instead; EINVAL if the vector was opened with KFI_EVENT
 * @addr: in for %KFI_SHIM_AV_INSERT: address of the addresses, back to back, or 0 for NULL
 * @node: in for %KFI_SHIM_AV_INSERTSVC and %KFI_SHIM_AV_INSERTSYM: address of a text terminated with
 *	0, or 0 for NULL; EINVAL for more than 63 bytes before the 0
 * @service: likewise
 * @count: in for %KFI_SHIM_AV_INSERT: number of addresses; for %KFI_SHIM_AV_INSERTSYM: nodecnt
 * @service_count: in for %KFI_SHIM_AV_INSERTSYM: svccnt
 * @kfi_addrs: in: address of an array of 64 bits for each address, or 0 for NULL.  Zeroed before the
 *	call, and written unless @result is negative; neither if the vector was opened with KFI_EVENT
 * @errors: in: address of an array of 32 bits for each address, or 0; written if KFI_SYNC_ERR is in
 *	@flags, whatever @result is
 * @result: out: what the call returned: if not negative, addresses inserted
 * @insertion: out: number for %KFI_SHIM_AV_INSERTED, if the vector was opened with KFI_EVENT and
 *	@kfi_addrs is not 0; else 0
 */
struct kfi_shim_av_insert {
	__u32 av;
	__u32 addr_len;
	__u64 flags;
	__u64 context;
	__u64 addr;
	__u64 node;
	__u64 service;
	__u32 count;
	__u32 service_count;
	__u64 kfi_addrs;
	__u64 errors;
	__s32 result;
	__u32 insertion;
};

/**
 * struct kfi_shim_av_inserted - what an insertion with KFI_EVENT has given: %KFI_SHIM_AV_INSERTED
 * @av: in: handle of an address vector
 * @insertion: in: from &kfi_shim_av_insert.insertion; EBADF if there is none
 * @kfi_addrs: in: address of an array of @count times 64 bits
 * @count: in: at most as many are written; out: how many addresses the insertion was of
 * @reserved: must be 0
 *
 * The addresses are valid after the event KFI_AV_COMPLETE, and kept until the vector is closed.
 */
struct kfi_shim_av_inserted {
	__u32 av;
	__u32 insertion;
	__u64 kfi_addrs;
	__u32 count;
	__u32 reserved;
};

/**
 * struct kfi_shim_av_remove - removes addresses: %KFI_SHIM_AV_REMOVE
 * @av: in: handle of an address vector
 * @count: in: number of addresses
 * @kfi_addrs: in: address of as many, 64 bits each, or 0 for NULL
 * @flags: in: flags of the call
 * @result: out: what kfi_av_remove() returned
 * @reserved: must be 0
 */
struct kfi_shim_av_remove {
	__u32 av;
	__u32 count;
	__u64 kfi_addrs;
	__u64 flags;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_av_lookup - looks an address up: %KFI_SHIM_AV_LOOKUP
 * @av: in: handle of an address vector
 * @addr_len: in: room handed to the call, EINVAL above %KFI_SHIM_ADDR_MAX; out: what it says
 * @kfi_addr: in: the address
 * @result: out: what kfi_av_lookup() returned
 * @reserved: must be 0
 * @addr: out: its binary form
 */
struct kfi_shim_av_lookup {
	__u32 av;
	__u32 addr_len;
	__u64 kfi_addr;
	__s32 result;
	__u32 reserved;
	__u8 addr[KFI_SHIM_ADDR_MAX];
};

/**
 * struct kfi_shim_av_straddr - prints an address: %KFI_SHIM_AV_STRADDR
 * @av: in: handle of an address vector
 * @len: in: room handed to the call, EINVAL above %KFI_SHIM_TEXT_MAX; out: what it says
 * @result: out: 0, or -EINVAL if kfi_av_straddr() returned NULL
 * @reserved: must be 0
 * @addr: in: binary address
 * @text: out: its text, terminated with 0
 */
struct kfi_shim_av_straddr {
	__u32 av;
	__u32 len;
	__s32 result;
	__u32 reserved;
	__u8 addr[KFI_SHIM_ADDR_MAX];
	char text[KFI_SHIM_TEXT_MAX];
};

/**
 * enum kfi_shim_form - which of the calls for an operation is made
 * @KFI_SHIM_FORM_PLAIN: without suffix, as kfi_send(), kfi_mr_reg(): one address
 * @KFI_SHIM_FORM_V: v, as kfi_sendv(), kfi_atomicv(), kfi_mr_regv(): an array of addresses
 * @KFI_SHIM_FORM_BV: bv, as kfi_sendbv(), kfi_mr_regbv(): page ranges
 * @KFI_SHIM_FORM_SGL: sgl, as kfi_sendsgl(), kfi_mr_regsgl(): a scatterlist
 * @KFI_SHIM_FORM_MSG: msg, as kfi_sendmsg(), or kfi_mr_regattr(): with an array of addresses
 * @KFI_SHIM_FORM_MSG_BV: likewise, with page ranges
 * @KFI_SHIM_FORM_MSG_SGL: likewise, with a scatterlist
 * @KFI_SHIM_FORM_INJECT: inject, as kfi_inject(), kfi_inject_write()
 * @KFI_SHIM_FORM_DATA: data, as kfi_senddata(), kfi_writedata()
 * @KFI_SHIM_FORM_INJECT_DATA: injectdata, as kfi_injectdata(), kfi_inject_writedata()
 */
enum kfi_shim_form {
	KFI_SHIM_FORM_PLAIN = 1,
	KFI_SHIM_FORM_V = 2,
	KFI_SHIM_FORM_BV = 3,
	KFI_SHIM_FORM_SGL = 4,
	KFI_SHIM_FORM_MSG = 5,
	KFI_SHIM_FORM_MSG_BV = 6,
	KFI_SHIM_FORM_MSG_SGL = 7,
	KFI_SHIM_FORM_INJECT = 8,
	KFI_SHIM_FORM_DATA = 9,
	KFI_SHIM_FORM_INJECT_DATA = 10,
};

/**
 * struct kfi_shim_mr - registers memory: %KFI_SHIM_MR
 * @domain: in: handle of a domain
 * @form: in: &enum kfi_shim_form: PLAIN, V, BV, SGL; MSG, MSG_BV and MSG_SGL for kfi_mr_regattr()
 * @segments: in: address of an array of &struct kfi_shim_segment; @kfi_shim_segment.mr must be 0
 * @segment_count: in: number of segments; with PLAIN exactly 1
 * @auth_key_size: in: bytes of @auth_key that count, for kfi_mr_regattr()
 * @access: in: operations allowed
 * @offset: in: reserved by kfabric
 * @requested_key: in: key wanted
 * @flags: in: flags of the call
 * @context: in: context of the region, any number
 * @result: out: what the call returned
 * @mr: out: handle of the region
 * @key: out: kfi_mr_key()
 * @auth_key: in: authorization key
 */
struct kfi_shim_mr {
	__u32 domain;
	__u32 form;
	__u64 segments;
	__u32 segment_count;
	__u32 auth_key_size;
	__u64 access;
	__u64 offset;
	__u64 requested_key;
	__u64 flags;
	__u64 context;
	__s32 result;
	__u32 mr;
	__u64 key;
	__u8 auth_key[KFI_SHIM_AUTH_KEY_MAX];
};

/**
 * struct kfi_shim_mr_key - the key of a region: %KFI_SHIM_MR_KEY
 * @mr: in: handle of a memory region
 * @has_desc: out: 1 if kfi_mr_desc() is not NULL, else 0
 * @key: out: kfi_mr_key(), which may have changed with the region's registration or enabling
 */
struct kfi_shim_mr_key {
	__u32 mr;
	__u32 has_desc;
	__u64 key;
};

/**
 * struct kfi_shim_mr_refresh - tells that pages changed: %KFI_SHIM_MR_REFRESH
 * @mr: in: handle of a memory region
 * @segment_count: in: number of segments
 * @segments: in: address of an array of &struct kfi_shim_segment
 * @flags: in: flags of the call
 * @result: out: what kfi_mr_refresh() returned
 * @reserved: must be 0
 */
struct kfi_shim_mr_refresh {
	__u32 mr;
	__u32 segment_count;
	__u64 segments;
	__u64 flags;
	__s32 result;
	__u32 reserved;
};

/** define KFI_SHIM_RAW_KEY_MAX - bytes of a raw key */
#define KFI_SHIM_RAW_KEY_MAX	256

/**
 * struct kfi_shim_raw_key - raw keys: %KFI_SHIM_MR_RAW_ATTR, %KFI_SHIM_MR_MAP_RAW,
 *	%KFI_SHIM_MR_UNMAP_KEY
 * @handle: in: handle of a memory region for %KFI_SHIM_MR_RAW_ATTR, else of a domain
 * @key_size: bytes of @raw_key that count, EINVAL above %KFI_SHIM_RAW_KEY_MAX; in for
 *	%KFI_SHIM_MR_RAW_ATTR as well, how much room there is
 * @base_addr: out for %KFI_SHIM_MR_RAW_ATTR, in for %KFI_SHIM_MR_MAP_RAW
 * @key: out for %KFI_SHIM_MR_MAP_RAW, in for %KFI_SHIM_MR_UNMAP_KEY
 * @flags: in: flags of the call
 * @result: out: what kfi_mr_raw_attr(), kfi_mr_map_raw() or kfi_mr_unmap_key() returned
 * @reserved: must be 0
 * @raw_key: out for %KFI_SHIM_MR_RAW_ATTR, in for %KFI_SHIM_MR_MAP_RAW
 */
struct kfi_shim_raw_key {
	__u32 handle;
	__u32 key_size;
	__u64 base_addr;
	__u64 key;
	__u64 flags;
	__s32 result;
	__u32 reserved;
	__u8 raw_key[KFI_SHIM_RAW_KEY_MAX];
};

/**
 * enum kfi_shim_ep_kind - kinds of endpoints
 * @KFI_SHIM_EP: kfi_endpoint(), on a domain
 * @KFI_SHIM_SEP: kfi_scalable_ep(), on a domain
 * @KFI_SHIM_PEP: kfi_passive_ep(), on a fabric
 */
enum kfi_shim_ep_kind {
	KFI_SHIM_EP = 1,
	KFI_SHIM_SEP = 2,
	KFI_SHIM_PEP = 3,
};

/**
 * struct kfi_shim_ep_open - opens an endpoint: %KFI_SHIM_EP_OPEN
 * @parent: in: handle of a domain or fabric
 * @kind: in: &enum kfi_shim_ep_kind
 * @info: in: handle from %KFI_SHIM_GETINFO; 0 if there is @attr
 * @index: in: which of its entries, from 0
 * @attr: in: address of a &struct kfi_shim_info to open the endpoint with instead of an entry of an
 *	answer, such as an entry that user space has changed; else 0
 * @attr_size: in: bytes at @attr
 * @reserved: must be 0
 * @context: in: context of the endpoint, any number
 * @result: out: what the call returned
 * @ep: out: handle of the endpoint
 *
 * EOPNOTSUPP if the entry demands KFI_CONTEXT, KFI_CONTEXT2, KFI_ASYNC_IOV, KFI_MSG_PREFIX, KFI_LOCAL_MR
 * or KFI_MR_LOCAL of its consumer: contexts here are numbers, and descriptors are not asked for.
 */
struct kfi_shim_ep_open {
	__u32 parent;
	__u32 kind;
	__u32 info;
	__u32 index;
	__u64 attr;
	__u32 attr_size;
	__u32 reserved;
	__u64 context;
	__s32 result;
	__u32 ep;
};

/**
 * struct kfi_shim_tx_context - opens a transmit context: %KFI_SHIM_TX_CONTEXT, %KFI_SHIM_STX_CONTEXT
 * @parent: in: handle of a scalable endpoint, or of a domain for a context that is shared
 * @index: in for %KFI_SHIM_TX_CONTEXT: which one
 * @flags: in: 0 or %KFI_SHIM_NO_ATTR
 * @reserved: must be 0
 * @context: in: context of the object, any number
 * @result: out: what kfi_tx_context() or kfi_stx_context() returned; -KFI_EINVAL for an endpoint that is
 *	not scalable
 * @ep: out: handle of the context
 * @attr: in: attributes
 */
struct kfi_shim_tx_context {
	__u32 parent;
	__s32 index;
	__u32 flags;
	__u32 reserved;
	__u64 context;
	__s32 result;
	__u32 ep;
	struct kfi_shim_tx_attr attr;
};

/**
 * struct kfi_shim_rx_context - opens a receive context: %KFI_SHIM_RX_CONTEXT, %KFI_SHIM_SRX_CONTEXT
 * @parent: in: handle of a scalable endpoint, or of a domain for a context that is shared
 * @index: in for %KFI_SHIM_RX_CONTEXT: which one
 * @flags: in: 0 or %KFI_SHIM_NO_ATTR
 * @reserved: must be 0
 * @context: in: context of the object, any number
 * @result: out: what kfi_rx_context() or kfi_srx_context() returned; -KFI_EINVAL for an endpoint that is
 *	not scalable
 * @ep: out: handle of the context
 * @attr: in: attributes
 */
struct kfi_shim_rx_context {
	__u32 parent;
	__s32 index;
	__u32 flags;
	__u32 reserved;
	__u64 context;
	__s32 result;
	__u32 ep;
	struct kfi_shim_rx_attr attr;
};

/**
 * struct kfi_shim_ep_alias - opens an alias: %KFI_SHIM_EP_ALIAS
 * @ep: in: handle of an endpoint or context
 * @reserved: must be 0
 * @flags: in: flags of the alias
 * @result: out: what kfi_ep_alias() returned
 * @alias: out: handle of the alias, an endpoint itself
 */
struct kfi_shim_ep_alias {
	__u32 ep;
	__u32 reserved;
	__u64 flags;
	__s32 result;
	__u32 alias;
};

/**
 * struct kfi_shim_cancel - cancels an operation: %KFI_SHIM_CANCEL
 * @ep: in: handle of an endpoint or context
 * @result: out: what kfi_cancel() returned
 * @context: in: context of the operation, triggered or not
 *
 * Of operations that transmit and report only failures, see &struct kfi_shim_op, only the latest
 * numbers are known.  An older operation is not found, or is cancelled by the newer number that took
 * its place; nor is it found while another one is being posted in its place, even if that is refused.
 */
struct kfi_shim_cancel {
	__u32 ep;
	__s32 result;
	__u64 context;
};

/** define KFI_SHIM_OPT_MAX - bytes of the value of an option */
#define KFI_SHIM_OPT_MAX	64

/**
 * struct kfi_shim_opt - options of endpoints: %KFI_SHIM_GETOPT, %KFI_SHIM_SETOPT
 * @ep: in: handle of an endpoint or context
 * @level: in: level
 * @optname: in: option
 * @optlen: in: bytes of @value, EINVAL above %KFI_SHIM_OPT_MAX; out of %KFI_SHIM_GETOPT: what the
 *	call says
 * @result: out: what kfi_getopt() or kfi_setopt() returned
 * @reserved: must be 0
 * @value: the value, a size_t of the kernel for most
 */
struct kfi_shim_opt {
	__u32 ep;
	__s32 level;
	__s32 optname;
	__u32 optlen;
	__s32 result;
	__u32 reserved;
	__u8 value[KFI_SHIM_OPT_MAX];
};

/**
 * struct kfi_shim_name - names of endpoints: %KFI_SHIM_SETNAME, %KFI_SHIM_GETNAME, %KFI_SHIM_GETPEER
 * @ep: in: handle of an endpoint or context, scalable or passive endpoint
 * @addr_len: in: bytes of @addr handed to the call, EINVAL above %KFI_SHIM_ADDR_MAX; out of
 *	%KFI_SHIM_GETNAME and %KFI_SHIM_GETPEER: what it says
 * @result: out: what the call returned
 * @reserved: must be 0
 * @addr: the address
 */
struct kfi_shim_name {
	__u32 ep;
	__u32 addr_len;
	__s32 result;
	__u32 reserved;
	__u8 addr[KFI_SHIM_ADDR_MAX];
};

/** define KFI_SHIM_CM_DATA_MAX - most bytes that connection requests carry */
#define KFI_SHIM_CM_DATA_MAX	256

/**
 * struct kfi_shim_cm - connections: %KFI_SHIM_LISTEN, %KFI_SHIM_CONNECT, %KFI_SHIM_ACCEPT,
 *	%KFI_SHIM_REJECT, %KFI_SHIM_SHUTDOWN
 * @ep: in: handle of a passive endpoint (listen, reject) or of an endpoint
 * @reserved: must be 0; %KFI_SHIM_REJECT hands over NULL for the request
 * @flags: in for %KFI_SHIM_SHUTDOWN: flags
 * @param_len: in: bytes of @param handed to the call, 0 for NULL; EINVAL above
 *	%KFI_SHIM_CM_DATA_MAX
 * @result: out: what kfi_listen(), kfi_connect() and so on returned
 * @addr: in for %KFI_SHIM_CONNECT: address of the peer
 * @param: in: data for the peer
 */
struct kfi_shim_cm {
	__u32 ep;
	__u32 reserved;
	__u64 flags;
	__u32 param_len;
	__s32 result;
	__u8 addr[KFI_SHIM_ADDR_MAX];
	__u8 param[KFI_SHIM_CM_DATA_MAX];
};

/**
 * struct kfi_shim_join - joins a multicast group: %KFI_SHIM_JOIN
 * @ep: in: handle of an endpoint
 * @reserved: must be 0
 * @flags: in: flags of the call
 * @context: in: context of the group, any number
 * @result: out: what kfi_join() returned
 * @mc: out: handle of the group
 * @addr: in: address of the group
 */
struct kfi_shim_join {
	__u32 ep;
	__u32 reserved;
	__u64 flags;
	__u64 context;
	__s32 result;
	__u32 mc;
	__u8 addr[KFI_SHIM_ADDR_MAX];
};

/**
 * enum kfi_shim_op_kind - operations
 * @KFI_SHIM_OP_SEND: kfi_send() and its forms
 * @KFI_SHIM_OP_RECV: kfi_recv(): PLAIN, V, BV, SGL and the MSG forms
 * @KFI_SHIM_OP_TSEND: kfi_tsend() and its forms
 * @KFI_SHIM_OP_TRECV: kfi_trecv(): PLAIN, V, BV, SGL and the MSG forms
 * @KFI_SHIM_OP_READ: kfi_read(): PLAIN, V, BV, SGL and the MSG forms
 * @KFI_SHIM_OP_WRITE: kfi_write() and its forms
 * @KFI_SHIM_OP_ATOMIC: kfi_atomic(): PLAIN, V, MSG, INJECT
 * @KFI_SHIM_OP_FETCH_ATOMIC: kfi_fetch_atomic(): PLAIN, V, MSG
 * @KFI_SHIM_OP_COMPARE_ATOMIC: kfi_compare_atomic(): PLAIN, V, MSG
 *
 * EINVAL for a form that an operation does not have.
 */
enum kfi_shim_op_kind {
	KFI_SHIM_OP_SEND = 1,
	KFI_SHIM_OP_RECV = 2,
	KFI_SHIM_OP_TSEND = 3,
	KFI_SHIM_OP_TRECV = 4,
	KFI_SHIM_OP_READ = 5,
	KFI_SHIM_OP_WRITE = 6,
	KFI_SHIM_OP_ATOMIC = 7,
	KFI_SHIM_OP_FETCH_ATOMIC = 8,
	KFI_SHIM_OP_COMPARE_ATOMIC = 9,
};

/**
 * define KFI_SHIM_OP_TRIGGERED - the context of the call is a &struct kfi_triggered_context with a
 *	condition, see &struct kfi_shim_op
 */
#define KFI_SHIM_OP_TRIGGERED	(1U << 0)

/**
 * struct kfi_shim_op - an operation: %KFI_SHIM_POST
 * @ep: in: handle of an endpoint, alias or context
 * @kind: in: &enum kfi_shim_op_kind
 * @form: in: &enum kfi_shim_form
 * @shim_flags: in: 0 or %KFI_SHIM_OP_TRIGGERED
 * @flags: in: flags, for the MSG forms; must be 0 for others
 * @addr: in: address of the peer, from an address vector, or KFI_ADDR_UNSPEC
 * @context: in: context, any number; must be 0 for INJECT and INJECT_DATA
 * @data: in: data that comes along, for the MSG forms and those with data
 * @tag: in: tag of a tagged message; not of tagged RMA, see &struct kfi_shim_rma_segment
 * @ignore: in: bits of @tag that a tagged receive ignores
 * @segments: in: address of an array of &struct kfi_shim_segment: local memory
 * @results: in: likewise, for what the atomic operations with result fetch
 * @compares: in: likewise, for what KFI_SHIM_OP_COMPARE_ATOMIC compares with
 * @rma_segments: in: address of an array of &struct kfi_shim_rma_segment; forms other than MSG take
 *	one, whose length does not count
 * @segment_count: in: elements at @segments; forms with one address take 1, or 0 for NULL and 0 bytes
 * @result_count: in: elements at @results
 * @compare_count: in: elements at @compares
 * @rma_segment_count: in: elements at @rma_segments
 * @datatype: in: &enum kfi_datatype, for atomic operations
 * @atomic_op: in: &enum kfi_op, for atomic operations
 * @trigger_event: in: &enum kfi_trigger_event, with %KFI_SHIM_OP_TRIGGERED
 * @trigger_cntr: in: handle of a counter of the endpoint's domain; 0 for NULL
 * @threshold: in: threshold, with %KFI_SHIM_OP_TRIGGERED
 * @result: out: what the call returned
 * @reserved: must be 0
 *
 * Completions show @context.  What the provider gets as context is a &struct kfi_triggered_context in
 * the kernel's memory, whatever the flags: one for each number of an endpoint, and one for each
 * operation with %KFI_SHIM_OP_TRIGGERED.  It lives until as many completions were read as there were
 * operations, or else, since an operation may have none or several, until the endpoint is closed and
 * completions of it are in no queue any more, see "Memory".  That is so of each receive that may take
 * several messages, for its KFI_MULTI_RECV or that of its endpoint, and of receives whose success is
 * told to nobody: a program that posts many of them should use the same numbers again.
 *
 * Of operations that transmit and report only failures, as the queue is bound with
 * KFI_SELECTIVE_COMPLETION, only the latest numbers are known, twice as many as the endpoint takes
 * operations.  An older operation that fails is reported, and cancelled, under the newer number that
 * took its place.
 *
 * An operation that would be triggered for its KFI_TRIGGER, or for that of its endpoint, and comes
 * without %KFI_SHIM_OP_TRIGGERED, has an event type that does not exist.
 *
 * @result is -KFI_EINVAL for arrays with more entries than the attributes of the endpoint allow, and for
 * arrays that do not have as many bytes or elements in all as the others of the operation.
 */
struct kfi_shim_op {
	__u32 ep;
	__u32 kind;
	__u32 form;
	__u32 shim_flags;
	__u64 flags;
	__u64 addr;
	__u64 context;
	__u64 data;
	__u64 tag;
	__u64 ignore;
	__u64 segments;
	__u64 results;
	__u64 compares;
	__u64 rma_segments;
	__u32 segment_count;
	__u32 result_count;
	__u32 compare_count;
	__u32 rma_segment_count;
	__u32 datatype;
	__u32 atomic_op;
	__u32 trigger_event;
	__u32 trigger_cntr;
	__u64 threshold;
	__s32 result;
	__u32 reserved;
};

/** define KFI_SHIM_BATCH_MAX - most elements of a batch; E2BIG above */
#define KFI_SHIM_BATCH_MAX	4096

/** define KFI_SHIM_BATCH_STOP - end the batch after the first element whose result is not 0 */
#define KFI_SHIM_BATCH_STOP	(1U << 0)

/**
 * struct kfi_shim_batch - several requests in one: %KFI_SHIM_POST_BATCH, %KFI_SHIM_QUEUE_WORK_BATCH
 * @count: in: number of structures
 * @size: in: bytes of each structure
 * @array: in: address of @count structures: &struct kfi_shim_op, or &struct kfi_shim_work
 * @flags: in: 0 or %KFI_SHIM_BATCH_STOP
 * @done: out: how many were handed to kfabric; each of them has its result in it
 *
 * They are handed over one by one.  A structure with which the request for itself would fail ends
 * the batch: the system call fails in the same way if it is the first, else it succeeds with @done.
 * A signal ends the batch after the structure under way, with success: @done says how far it came.
 */
struct kfi_shim_batch {
	__u32 count;
	__u32 size;
	__u64 array;
	__u32 flags;
	__u32 done;
};

/**
 * struct kfi_shim_query_atomic - asks for an atomic operation: %KFI_SHIM_QUERY_ATOMIC
 * @domain: in: handle of a domain
 * @datatype: in: &enum kfi_datatype, or any other number
 * @op: in: &enum kfi_op, or any other number
 * @result: out: what kfi_query_atomic() returned
 * @flags: in: flags of the call
 * @count: out: &kfi_atomic_attr.count
 * @size: out: &kfi_atomic_attr.size
 */
struct kfi_shim_query_atomic {
	__u32 domain;
	__u32 datatype;
	__u32 op;
	__s32 result;
	__u64 flags;
	__u64 count;
	__u64 size;
};

/**
 * struct kfi_shim_atomic_valid - asks an endpoint for an atomic operation: %KFI_SHIM_ATOMIC_VALID
 * @ep: in: handle of an endpoint or context
 * @kind: in: %KFI_SHIM_OP_ATOMIC, %KFI_SHIM_OP_FETCH_ATOMIC or %KFI_SHIM_OP_COMPARE_ATOMIC
 * @datatype: in: &enum kfi_datatype, or any other number
 * @op: in: &enum kfi_op, or any other number
 * @result: out: what kfi_atomicvalid(), kfi_fetch_atomicvalid() or kfi_compare_atomicvalid() returned
 * @reserved: must be 0
 * @count: out: elements of one operation
 */
struct kfi_shim_atomic_valid {
	__u32 ep;
	__u32 kind;
	__u32 datatype;
	__u32 op;
	__s32 result;
	__u32 reserved;
	__u64 count;
};

/**
 * DOC: Deferred work
 *
 * A &struct kfi_deferred_work lives in the kernel's memory, with all that it refers to, and is named
 * by a number, its id.  It is kept until the domain is closed that it was made for, or
 * %KFI_SHIM_RELEASE_WORK lets it go, which it does as soon as it is certain that nobody needs the work:
 *
 * * one that changes a counter, when %KFI_SHIM_CANCEL_WORK has answered 0 or -KFI_ENOENT, or
 *   %KFI_SHIM_FLUSH_WORK 0, since it was queued: then nothing of it is pending, nor carried out;
 * * a data transfer, when its endpoint is closed.  What has fired may use its memory until then, as a
 *   receive does for which no message comes.  Before, a work counts how often it was queued without
 *   having been cancelled, and is let go at 0 only.  A cancellation takes back all that is pending and
 *   does not tell how much that was: it counts as one.
 *
 * Each time that it is queued counts in the memory until then.
 */

/** define KFI_SHIM_WORK_PREPARE - make the work but do not queue it */
#define KFI_SHIM_WORK_PREPARE	(1U << 0)

/** define KFI_SHIM_WORK_NULL - hand over NULL in place of the work; nothing is made */
#define KFI_SHIM_WORK_NULL	(1U << 1)

/** define KFI_SHIM_WORK_NO_OP - &kfi_deferred_work.op is NULL */
#define KFI_SHIM_WORK_NO_OP	(1U << 2)

/**
 * struct kfi_shim_work - queues deferred work: %KFI_SHIM_QUEUE_WORK
 * @domain: in: handle of a domain.  If @id is not 0: 0, or the domain of the work
 * @flags: in: %KFI_SHIM_WORK_PREPARE, %KFI_SHIM_WORK_NULL, %KFI_SHIM_WORK_NO_OP
 * @id: in: 0 to make a work of the members below; else one that there is, which is queued again as
 *	it is, whether or not it is queued already: @flags must be 0 then, and the members below @id are
 *	ignored.  out: the id, also if @result is not 0; 0 with %KFI_SHIM_WORK_NULL
 * @op: in: address of a &struct kfi_shim_op, whose form is one of the MSG forms, for @op_type that is
 *	a data transfer.  Its @kind is ignored, and so are the trigger and @result
 * @op_size: in: bytes at @op
 * @op_type: in: &enum kfi_op_type, or any other number, with which &kfi_deferred_work.op is NULL
 * @triggering_cntr: in: handle of a counter of the domain; 0 for NULL
 * @completion_cntr: in: likewise
 * @cntr: in: likewise, counter of KFI_OP_CNTR_SET and KFI_OP_CNTR_ADD
 * @result: out: what kfi_control() returned to KFI_QUEUE_WORK; 0 with %KFI_SHIM_WORK_PREPARE
 * @value: in: value of KFI_OP_CNTR_SET and KFI_OP_CNTR_ADD
 * @threshold: in: threshold
 *
 * A data transfer must have an endpoint, one of the domain, too, that has such operations and is neither
 * scalable nor a context of the other direction.  Whether all that is so, and whether the arrays have no
 * more entries than the endpoint takes, and as many bytes or elements in all as each other, is told when
 * the work is queued: @result is -KFI_EINVAL else.
 *
 * EDQUOT if what the provider would keep of it is more memory than there may be; EBADF if one of the
 * objects is not open any more when the work is queued, or it was released meanwhile.  If the call itself
 * fails, no work has been made.
 */
struct kfi_shim_work {
	__u32 domain;
	__u32 flags;
	__u64 id;
	__u64 op;
	__u32 op_size;
	__u32 op_type;
	__u32 triggering_cntr;
	__u32 completion_cntr;
	__u32 cntr;
	__s32 result;
	__u64 value;
	__u64 threshold;
};

/** define KFI_SHIM_WORK_RELEASE - %KFI_SHIM_RELEASE_WORK, too, if the work is cancelled */
#define KFI_SHIM_WORK_RELEASE	(1U << 0)

/**
 * define KFI_SHIM_WORK_STALE - free the work first, and cancel a pointer to where it was; EBUSY unless
 *	%KFI_SHIM_RELEASE_WORK is possible.  The pointer reaches the software provider only, which
 *	looks for works by its value and does not look behind it; the result is -KFI_ENOSYS for others.
 *	A newer work may be at that address by then, if another thread has made one
 */
#define KFI_SHIM_WORK_STALE	(1U << 1)

/**
 * struct kfi_shim_cancel_work - cancels deferred work: %KFI_SHIM_CANCEL_WORK, %KFI_SHIM_RELEASE_WORK
 * @domain: in: handle of a domain; 0 for that of the work.  Another one gets the work if it is the
 *	software provider's; the result is -KFI_ENOSYS else.  Must be 0 for %KFI_SHIM_RELEASE_WORK
 * @flags: in: %KFI_SHIM_WORK_RELEASE, %KFI_SHIM_WORK_STALE; must be 0 for %KFI_SHIM_RELEASE_WORK
 * @id: in: id of the work; for %KFI_SHIM_CANCEL_WORK 0 for NULL, if there is @domain.  EBADF if there
 *	is none
 * @result: out: what kfi_control() returned to KFI_CANCEL_WORK, or, with another domain or
 *	%KFI_SHIM_WORK_STALE, the function of the software provider (include/kfi_soft_ext.h); 0 for
 *	%KFI_SHIM_RELEASE_WORK
 * @reserved: must be 0
 *
 * %KFI_SHIM_RELEASE_WORK frees the work and its id.  EBUSY if somebody may need it, see above.
 */
struct kfi_shim_cancel_work {
	__u32 domain;
	__u32 flags;
	__u64 id;
	__s32 result;
	__u32 reserved;
};

/**
 * struct kfi_shim_flush_work - cancels all deferred work: %KFI_SHIM_FLUSH_WORK
 * @domain: in: handle of a domain
 * @cntr: in: handle of a counter of the domain; 0 for NULL, all
 * @result: out: what kfi_control() returned to KFI_FLUSH_WORK; -KFI_EINTR if a signal came while the
 *	works were looked through: none is pending then, but %KFI_SHIM_RELEASE_WORK may not know yet
 * @reserved: must be 0
 */
struct kfi_shim_flush_work {
	__u32 domain;
	__u32 cntr;
	__s32 result;
	__u32 reserved;
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
#define KFI_SHIM_STRERROR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x06, struct kfi_shim_strerror)
#define KFI_SHIM_INFO_TEXT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x07, struct kfi_shim_info_text)
#define KFI_SHIM_TOSTR		_IOWR(KFI_SHIM_IOC_MAGIC, 0x08, struct kfi_shim_tostr)
#define KFI_SHIM_BIND		_IOWR(KFI_SHIM_IOC_MAGIC, 0x09, struct kfi_shim_bind)
#define KFI_SHIM_ENABLE		_IOWR(KFI_SHIM_IOC_MAGIC, 0x0a, struct kfi_shim_enable)
#define KFI_SHIM_HANDLED	_IOWR(KFI_SHIM_IOC_MAGIC, 0x0b, struct kfi_shim_handled)
#define KFI_SHIM_BUFFER		_IOWR(KFI_SHIM_IOC_MAGIC, 0x0c, struct kfi_shim_buffer)
#define KFI_SHIM_AV_OPEN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x60, struct kfi_shim_av_open)
#define KFI_SHIM_AV_INSERT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x61, struct kfi_shim_av_insert)
#define KFI_SHIM_AV_INSERTSVC	_IOWR(KFI_SHIM_IOC_MAGIC, 0x62, struct kfi_shim_av_insert)
#define KFI_SHIM_AV_INSERTSYM	_IOWR(KFI_SHIM_IOC_MAGIC, 0x63, struct kfi_shim_av_insert)
#define KFI_SHIM_AV_INSERTED	_IOWR(KFI_SHIM_IOC_MAGIC, 0x64, struct kfi_shim_av_inserted)
#define KFI_SHIM_AV_REMOVE	_IOWR(KFI_SHIM_IOC_MAGIC, 0x65, struct kfi_shim_av_remove)
#define KFI_SHIM_AV_LOOKUP	_IOWR(KFI_SHIM_IOC_MAGIC, 0x66, struct kfi_shim_av_lookup)
#define KFI_SHIM_AV_STRADDR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x67, struct kfi_shim_av_straddr)
#define KFI_SHIM_MR		_IOWR(KFI_SHIM_IOC_MAGIC, 0x70, struct kfi_shim_mr)
#define KFI_SHIM_MR_KEY		_IOWR(KFI_SHIM_IOC_MAGIC, 0x71, struct kfi_shim_mr_key)
#define KFI_SHIM_MR_REFRESH	_IOWR(KFI_SHIM_IOC_MAGIC, 0x72, struct kfi_shim_mr_refresh)
#define KFI_SHIM_MR_RAW_ATTR	_IOWR(KFI_SHIM_IOC_MAGIC, 0x73, struct kfi_shim_raw_key)
#define KFI_SHIM_MR_MAP_RAW	_IOWR(KFI_SHIM_IOC_MAGIC, 0x74, struct kfi_shim_raw_key)
#define KFI_SHIM_MR_UNMAP_KEY	_IOWR(KFI_SHIM_IOC_MAGIC, 0x75, struct kfi_shim_raw_key)
#define KFI_SHIM_EP_OPEN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x80, struct kfi_shim_ep_open)
#define KFI_SHIM_TX_CONTEXT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x81, struct kfi_shim_tx_context)
#define KFI_SHIM_RX_CONTEXT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x82, struct kfi_shim_rx_context)
#define KFI_SHIM_STX_CONTEXT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x83, struct kfi_shim_tx_context)
#define KFI_SHIM_SRX_CONTEXT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x84, struct kfi_shim_rx_context)
#define KFI_SHIM_EP_ALIAS	_IOWR(KFI_SHIM_IOC_MAGIC, 0x85, struct kfi_shim_ep_alias)
#define KFI_SHIM_CANCEL		_IOWR(KFI_SHIM_IOC_MAGIC, 0x86, struct kfi_shim_cancel)
#define KFI_SHIM_GETOPT		_IOWR(KFI_SHIM_IOC_MAGIC, 0x87, struct kfi_shim_opt)
#define KFI_SHIM_SETOPT		_IOWR(KFI_SHIM_IOC_MAGIC, 0x88, struct kfi_shim_opt)
#define KFI_SHIM_GETNAME	_IOWR(KFI_SHIM_IOC_MAGIC, 0x89, struct kfi_shim_name)
#define KFI_SHIM_SETNAME	_IOWR(KFI_SHIM_IOC_MAGIC, 0x8a, struct kfi_shim_name)
#define KFI_SHIM_GETPEER	_IOWR(KFI_SHIM_IOC_MAGIC, 0x8b, struct kfi_shim_name)
#define KFI_SHIM_LISTEN		_IOWR(KFI_SHIM_IOC_MAGIC, 0x8c, struct kfi_shim_cm)
#define KFI_SHIM_CONNECT	_IOWR(KFI_SHIM_IOC_MAGIC, 0x8d, struct kfi_shim_cm)
#define KFI_SHIM_ACCEPT		_IOWR(KFI_SHIM_IOC_MAGIC, 0x8e, struct kfi_shim_cm)
#define KFI_SHIM_REJECT		_IOWR(KFI_SHIM_IOC_MAGIC, 0x8f, struct kfi_shim_cm)
#define KFI_SHIM_SHUTDOWN	_IOWR(KFI_SHIM_IOC_MAGIC, 0x90, struct kfi_shim_cm)
#define KFI_SHIM_JOIN		_IOWR(KFI_SHIM_IOC_MAGIC, 0x91, struct kfi_shim_join)
#define KFI_SHIM_POST		_IOWR(KFI_SHIM_IOC_MAGIC, 0xa0, struct kfi_shim_op)
#define KFI_SHIM_POST_BATCH	_IOWR(KFI_SHIM_IOC_MAGIC, 0xa1, struct kfi_shim_batch)
#define KFI_SHIM_QUERY_ATOMIC	_IOWR(KFI_SHIM_IOC_MAGIC, 0xa2, struct kfi_shim_query_atomic)
#define KFI_SHIM_ATOMIC_VALID	_IOWR(KFI_SHIM_IOC_MAGIC, 0xa3, struct kfi_shim_atomic_valid)
#define KFI_SHIM_QUEUE_WORK	_IOWR(KFI_SHIM_IOC_MAGIC, 0xb0, struct kfi_shim_work)
#define KFI_SHIM_QUEUE_WORK_BATCH _IOWR(KFI_SHIM_IOC_MAGIC, 0xb1, struct kfi_shim_batch)
#define KFI_SHIM_CANCEL_WORK	_IOWR(KFI_SHIM_IOC_MAGIC, 0xb2, struct kfi_shim_cancel_work)
#define KFI_SHIM_RELEASE_WORK	_IOWR(KFI_SHIM_IOC_MAGIC, 0xb3, struct kfi_shim_cancel_work)
#define KFI_SHIM_FLUSH_WORK	_IOWR(KFI_SHIM_IOC_MAGIC, 0xb4, struct kfi_shim_flush_work)

#endif /* _UAPI_KFI_SHIM_H */
