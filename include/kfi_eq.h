/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: event queues, completion queues, counters, poll sets and wait sets.
 */

#ifndef _KFI_EQ_H_
#define _KFI_EQ_H_

#include <linux/types.h>

#include "kfabric.h"
#include "kfi_errno.h"

/**
 * DOC: Wrappers of this header
 *
 * Except for kfi_cntr_adderr() and kfi_cntr_seterr() they jump through the ops
 * table without testing it: a provider fills every slot (kfi_enosys.h has stubs
 * for what it lacks). kfi_cq_open(), kfi_cntr_open(), kfi_poll_open() and
 * kfi_wait_open() are in kfi_domain.h.
 *
 * In each "Context" line "any" means process, softirq and hard interrupt
 * context; such calls do not sleep. Results are 0 or a count, or a negative
 * kfabric error number (kfi_errno.h); error numbers inside entries are
 * positive.
 */

/**
 * DOC: Waiting
 *
 * There are three ways to wait for a queue or counter. The call of the object
 * itself: kfi_cq_sread(), kfi_eq_sread(), kfi_cntr_wait(). A wait set, which
 * objects join when they are opened with KFI_WAIT_SET: kfi_wait(). And a Linux
 * wait queue, which kfi_control() with KFI_GETWAIT gives out for an object or
 * set opened with KFI_WAIT_QUEUE and which is woken on every change::
 *
 *	struct kfid *fid = &cntr->fid;
 *	struct wait_queue_head *wq;
 *	DEFINE_WAIT(wait);
 *
 *	kfi_control(fid, KFI_GETWAIT, &wq);
 *	for (;;) {
 *		prepare_to_wait(wq, &wait, TASK_INTERRUPTIBLE);
 *		if (done(cntr) || signal_pending(current))
 *			break;
 *		if (!kfi_trywait(fabric, &fid, 1))
 *			schedule();
 *	}
 *	finish_wait(wq, &wait);
 *
 * The order matters: an event after prepare_to_wait() wakes the thread, and an
 * earlier one is seen by kfi_trywait(). Only one thread at a time may do this
 * for an object or a set: an event that was reported to one thread is not
 * reported to others.
 *
 * Who waits is woken before what the change has made due is run. To find that
 * done, wait for the counter that it changes.
 *
 * A wake function of a consumer's own (init_waitqueue_func_entry()) is called
 * with the lock of the wait queue held and interrupts disabled. It may read
 * counters (kfi_cntr_read(), kfi_cntr_readerr()), wake threads of the
 * consumer's own and queue work. It calls nothing else of kfabric, whatever
 * context that may be called from: any other call may wake the same queue, as
 * kfi_cq_signal(), kfi_eq_write() and kfi_cancel() do, and whoever changes a
 * counter may run what that and other threads have made due. For the same
 * reason no lock that it takes may be held around any call of kfabric but
 * those two.
 */

/**
 * enum kfi_wait_obj - how one waits for an object
 * @KFI_WAIT_NONE: not at all; calls that wait are invalid on the object
 * @KFI_WAIT_UNSPEC: through kfabric calls only, by what means the provider
 *   chooses
 * @KFI_WAIT_SET: through the wait set that the attributes name
 * @KFI_WAIT_QUEUE: through a wait_queue_head_t, or kfabric calls
 *
 * Headers before 1.7 had other kinds, and 3 meant a file descriptor.
 */
enum kfi_wait_obj {
	KFI_WAIT_NONE,
	KFI_WAIT_UNSPEC,
	KFI_WAIT_SET,
	KFI_WAIT_QUEUE,
};

/**
 * struct kfi_wait_attr - attributes of a wait set
 * @wait_obj: KFI_WAIT_UNSPEC or KFI_WAIT_QUEUE
 * @flags: reserved, 0
 */
struct kfi_wait_attr {
	enum kfi_wait_obj wait_obj;
	uint64_t flags;
};

/**
 * struct kfid_wait - wait set
 * @kfid: object head; fclass is KFI_CLASS_WAIT. The one head that is not called
 *   fid: the name is part of the API
 * @ops: operations, constant while the object is open
 */
struct kfid_wait {
	struct kfid kfid;
	struct kfi_ops_wait *ops;
};

/**
 * struct kfi_ops_wait - operations of a wait set
 * @size: sizeof(struct kfi_ops_wait) the provider was built with, in bytes
 * @wait: see kfi_wait(); process context, sleeps
 */
struct kfi_ops_wait {
	size_t size;
	int (*wait)(struct kfid_wait *waitset, int timeout);
};

/**
 * struct kfi_poll_attr - attributes of a poll set
 * @flags: reserved, 0
 */
struct kfi_poll_attr {
	uint64_t flags;
};

/**
 * struct kfi_ops_poll - operations of a poll set
 * @size: sizeof(struct kfi_ops_poll) the provider was built with, in bytes
 * @poll: see kfi_poll()
 * @poll_add: see kfi_poll_add()
 * @poll_del: see kfi_poll_del()
 *
 * All of them are called in process context. @poll does not wait for events;
 * @poll_add and @poll_del may sleep.
 */
struct kfi_ops_poll {
	size_t size;
	int (*poll)(struct kfid_poll *pollset, void **context, int count);
	int (*poll_add)(struct kfid_poll *pollset, struct kfid *event_kfid,
			uint64_t flags);
	int (*poll_del)(struct kfid_poll *pollset, struct kfid *event_kfid,
			uint64_t flags);
};

/**
 * struct kfid_poll - poll set
 * @fid: object head; fclass is KFI_CLASS_POLL
 * @ops: operations, constant while the object is open
 */
struct kfid_poll {
	struct kfid fid;
	struct kfi_ops_poll *ops;
};

/**
 * struct kfi_eq_attr - attributes of an event queue
 * @size: entries wanted; 0 for the provider's choice
 * @flags: KFI_AFFINITY if @signaling_vector is set; KFI_WRITE to allow
 *   kfi_eq_write()
 * @wait_obj: how the consumer waits for the queue
 * @signaling_vector: CPU on which the event handler runs, with KFI_AFFINITY
 * @wait_set: wait set to join; looked at only if @wait_obj is KFI_WAIT_SET
 */
struct kfi_eq_attr {
	size_t size;
	uint64_t flags;
	enum kfi_wait_obj wait_obj;
	int signaling_vector;
	struct kfid_wait *wait_set;
};

/**
 * enum - events of an event queue, with the entry that carries them
 * @KFI_NOTIFY: (struct kfi_eq_entry) notice of the provider
 * @KFI_CONNREQ: (struct kfi_eq_cm_entry) a peer asks for a connection
 * @KFI_CONNECTED: (struct kfi_eq_cm_entry) the connection is up
 * @KFI_SHUTDOWN: (struct kfi_eq_cm_entry) the connection has ended
 * @KFI_MR_COMPLETE: (struct kfi_eq_entry) a memory region is registered
 * @KFI_AV_COMPLETE: (struct kfi_eq_entry) an insertion has ended; data is the
 *   number of addresses inserted
 * @KFI_JOIN_COMPLETE: (struct kfi_eq_entry) a multicast group was joined
 */
enum {
	KFI_NOTIFY,
	KFI_CONNREQ,
	KFI_CONNECTED,
	KFI_SHUTDOWN,
	KFI_MR_COMPLETE,
	KFI_AV_COMPLETE,
	KFI_JOIN_COMPLETE,
};

/**
 * struct kfi_eq_entry - end of an asynchronous control operation
 * @fid: object the operation was for
 * @context: context of the operation
 * @data: depends on the event
 */
struct kfi_eq_entry {
	struct kfid *fid;
	void *context;
	uint64_t data;
};

/**
 * struct kfi_eq_err_entry - control operation that failed
 * @fid: object the operation was for
 * @context: context of the operation
 * @data: depends on the operation; the index of the address for an insertion
 * @err: error number, positive
 * @prov_errno: error number of the provider, for kfi_eq_strerror()
 * @err_data: more data of the provider. With @err_data_size 0 on entry the
 *   provider may point it at memory of its own, valid until the next read of
 *   the queue
 * @err_data_size: on entry bytes of the caller's at @err_data; on return bytes
 *   there are
 */
struct kfi_eq_err_entry {
	struct kfid *fid;
	void *context;
	uint64_t data;
	int err;
	int prov_errno;
	void *err_data;
	size_t err_data_size;
};

/**
 * struct kfi_eq_cm_entry - event of connection management
 * @fid: passive endpoint for a request, endpoint otherwise
 * @info: for KFI_CONNREQ what to open the endpoint with; the consumer frees it
 *   with kfi_freeinfo()
 * @data: what the peer sent along; the result of the read tells its length
 */
struct kfi_eq_cm_entry {
	struct kfid *fid;
	struct kfi_info *info;
	uint8_t data[];
};

/**
 * struct kfi_ops_eq - operations of an event queue
 * @size: sizeof(struct kfi_ops_eq) the provider was built with, in bytes
 * @read: see kfi_eq_read(); any context
 * @readerr: see kfi_eq_readerr(); any context
 * @write: see kfi_eq_write(); any context
 * @sread: see kfi_eq_sread(); process context, sleeps
 * @strerror: see kfi_eq_strerror(); any context
 */
struct kfi_ops_eq {
	size_t size;
	ssize_t (*read)(struct kfid_eq *eq, uint32_t *event, void *buf,
			size_t len, uint64_t flags);
	ssize_t (*readerr)(struct kfid_eq *eq, struct kfi_eq_err_entry *buf,
			   uint64_t flags);
	ssize_t (*write)(struct kfid_eq *eq, uint32_t event, const void *buf,
			 size_t len, uint64_t flags);
	ssize_t (*sread)(struct kfid_eq *eq, uint32_t *event, void *buf,
			 size_t len, int timeout, uint64_t flags);
	const char *(*strerror)(struct kfid_eq *eq, int prov_errno,
				const void *err_data, char *buf, size_t len);
};

/**
 * struct kfid_eq - event queue
 * @fid: object head; fclass is KFI_CLASS_EQ
 * @ops: operations, constant while the object is open
 * @event_handler: handler given at open, or NULL
 */
struct kfid_eq {
	struct kfid fid;
	struct kfi_ops_eq *ops;
	kfi_event_handler event_handler;
};

/**
 * enum kfi_cq_format - entries that a completion queue is read in
 * @KFI_CQ_FORMAT_UNSPEC: the provider chooses and writes its choice back to the
 *   attributes
 * @KFI_CQ_FORMAT_CONTEXT: struct kfi_cq_entry
 * @KFI_CQ_FORMAT_MSG: struct kfi_cq_msg_entry
 * @KFI_CQ_FORMAT_DATA: struct kfi_cq_data_entry
 * @KFI_CQ_FORMAT_TAGGED: struct kfi_cq_tagged_entry
 */
enum kfi_cq_format {
	KFI_CQ_FORMAT_UNSPEC,
	KFI_CQ_FORMAT_CONTEXT,
	KFI_CQ_FORMAT_MSG,
	KFI_CQ_FORMAT_DATA,
	KFI_CQ_FORMAT_TAGGED,
};

/**
 * struct kfi_cq_entry - completion: which operation
 * @op_context: context of the operation
 */
struct kfi_cq_entry {
	void *op_context;
};

/**
 * struct kfi_cq_msg_entry - completion: also what kind and how long
 * @op_context: context of the operation
 * @flags: what was completed, KFI_MSG | KFI_RECV and the like, without flags of
 *   the operation such as KFI_COMPLETION. KFI_MULTI_RECV says that the buffer
 *   of a receive for several messages is the consumer's again; an entry may
 *   have this flag alone
 * @len: bytes received; undefined for what was sent
 */
struct kfi_cq_msg_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
};

/**
 * struct kfi_cq_data_entry - completion: also where and with what data
 * @op_context: context of the operation
 * @flags: as in struct kfi_cq_msg_entry
 * @len: bytes received
 * @buf: where a message landed in a KFI_MULTI_RECV buffer; NULL for buffers of
 *   pages and scatterlists, and in all other entries
 * @data: remote completion data, with KFI_REMOTE_CQ_DATA in @flags
 */
struct kfi_cq_data_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
};

/**
 * struct kfi_cq_tagged_entry - completion: also the tag
 * @op_context: context of the operation
 * @flags: as in struct kfi_cq_msg_entry
 * @len: bytes received
 * @buf: as in struct kfi_cq_data_entry
 * @data: remote completion data, with KFI_REMOTE_CQ_DATA in @flags
 * @tag: tag of a received tagged message
 */
struct kfi_cq_tagged_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
};

/**
 * struct kfi_cq_err_entry - operation that failed
 * @op_context: context of the operation
 * @flags: as in struct kfi_cq_msg_entry
 * @len: bytes that were placed
 * @buf: as in struct kfi_cq_data_entry
 * @data: as in struct kfi_cq_data_entry
 * @tag: as in struct kfi_cq_tagged_entry
 * @olen: bytes of the message that did not fit
 * @err: error number, positive: KFI_ECANCELED, KFI_EMSGSIZE, KFI_ETIMEDOUT and
 *   so on
 * @prov_errno: error number of the provider, for kfi_cq_strerror()
 * @err_data: more data of the provider. With @err_data_size 0 on entry the
 *   provider may point it at memory of its own, valid until the next read of
 *   the queue
 * @err_data_size: on entry bytes of the caller's at @err_data; on return bytes
 *   there are
 */
struct kfi_cq_err_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	size_t olen;
	int err;
	int prov_errno;
	void *err_data;
	size_t err_data_size;
};

/**
 * enum kfi_cq_wait_cond - what the cond argument of kfi_cq_sread() is
 * @KFI_CQ_COND_NONE: nothing, it is ignored
 * @KFI_CQ_COND_THRESHOLD: a number, cast to a pointer: entries to wait for. A
 *   hint: fewer are returned if @count, or the queue, has no room for so many,
 *   if an error lies among them, and if something else ends the wait. Until
 *   then they are there for other readers
 */
enum kfi_cq_wait_cond {
	KFI_CQ_COND_NONE,
	KFI_CQ_COND_THRESHOLD,
};

/**
 * struct kfi_cq_attr - attributes of a completion queue
 * @size: entries wanted; 0 for the provider's choice
 * @flags: KFI_AFFINITY if @signaling_vector is set
 * @format: entries that the queue is read in
 * @wait_obj: how the consumer waits for the queue
 * @signaling_vector: CPU on which the completion handler runs, with
 *   KFI_AFFINITY
 * @wait_cond: meaning of the condition of kfi_cq_sread()
 * @wait_set: wait set to join; looked at only if @wait_obj is KFI_WAIT_SET
 */
struct kfi_cq_attr {
	size_t size;
	uint64_t flags;
	enum kfi_cq_format format;
	enum kfi_wait_obj wait_obj;
	int signaling_vector;
	enum kfi_cq_wait_cond wait_cond;
	struct kfid_wait *wait_set;
};

/**
 * struct kfi_ops_cq - operations of a completion queue
 * @size: sizeof(struct kfi_ops_cq) the provider was built with, in bytes
 * @read: see kfi_cq_read(); any context
 * @readfrom: see kfi_cq_readfrom(); any context
 * @readerr: see kfi_cq_readerr(); any context
 * @sread: see kfi_cq_sread(); process context, sleeps
 * @sreadfrom: see kfi_cq_sreadfrom(); process context, sleeps
 * @signal: see kfi_cq_signal(); any context
 * @strerror: see kfi_cq_strerror(); any context
 */
struct kfi_ops_cq {
	size_t size;
	ssize_t (*read)(struct kfid_cq *cq, void *buf, size_t count);
	ssize_t (*readfrom)(struct kfid_cq *cq, void *buf, size_t count,
			    kfi_addr_t *src_addr);
	ssize_t (*readerr)(struct kfid_cq *cq, struct kfi_cq_err_entry *buf,
			   uint64_t flags);
	ssize_t (*sread)(struct kfid_cq *cq, void *buf, size_t count,
			 const void *cond, int timeout);
	ssize_t (*sreadfrom)(struct kfid_cq *cq, void *buf, size_t count,
			     kfi_addr_t *src_addr, const void *cond,
			     int timeout);
	int (*signal)(struct kfid_cq *cq);
	const char *(*strerror)(struct kfid_cq *cq, int prov_errno,
				const void *err_data, char *buf, size_t len);
};

/**
 * struct kfid_cq - completion queue
 * @fid: object head; fclass is KFI_CLASS_CQ
 * @ops: operations, constant while the object is open
 * @comp_handler: handler given at open, or NULL
 */
struct kfid_cq {
	struct kfid fid;
	struct kfi_ops_cq *ops;
	kfi_comp_handler comp_handler;
};

/**
 * enum kfi_cntr_events - what a counter counts
 * @KFI_CNTR_EVENTS_COMP: completions of what the counter is bound to, whether
 *   or not they also write an entry to a queue (R-CNTR-6)
 */
enum kfi_cntr_events {
	KFI_CNTR_EVENTS_COMP,
};

/**
 * struct kfi_cntr_attr - attributes of a counter
 * @events: what to count
 * @wait_obj: how the consumer waits for the counter
 * @wait_set: wait set to join; looked at only if @wait_obj is KFI_WAIT_SET
 *   (R-CNTR-14)
 * @flags: reserved, 0
 */
struct kfi_cntr_attr {
	enum kfi_cntr_events events;
	enum kfi_wait_obj wait_obj;
	struct kfid_wait *wait_set;
	uint64_t flags;
};

/**
 * struct kfi_ops_cntr - operations of a counter
 * @size: sizeof(struct kfi_ops_cntr) the provider was built with, in bytes
 * @read: see kfi_cntr_read(); any context
 * @readerr: see kfi_cntr_readerr(); any context
 * @add: see kfi_cntr_add(); any context
 * @set: see kfi_cntr_set(); any context
 * @wait: see kfi_cntr_wait(); process context, sleeps
 * @adderr: see kfi_cntr_adderr(); any context. May be absent
 * @seterr: see kfi_cntr_seterr(); any context. May be absent
 */
struct kfi_ops_cntr {
	size_t size;
	uint64_t (*read)(struct kfid_cntr *cntr);
	uint64_t (*readerr)(struct kfid_cntr *cntr);
	int (*add)(struct kfid_cntr *cntr, uint64_t value);
	int (*set)(struct kfid_cntr *cntr, uint64_t value);
	int (*wait)(struct kfid_cntr *cntr, uint64_t threshold, int timeout);
	int (*adderr)(struct kfid_cntr *cntr, uint64_t value);
	int (*seterr)(struct kfid_cntr *cntr, uint64_t value);
};

/**
 * struct kfid_cntr - counter
 * @fid: object head; fclass is KFI_CLASS_CNTR
 * @ops: operations, constant while the object is open
 *
 * A counter has two values of 64 bits, both 0 at first: successes and errors. A
 * completion adds one to one of them (R-CNTR-3).
 */
struct kfid_cntr {
	struct kfid fid;
	struct kfi_ops_cntr *ops;
};

/**
 * kfi_wait() - wait for any member of a wait set
 * @waitset: wait set
 * @timeout: limit in ms; negative for none, 0 to look once
 *
 * A queue is ready while it has an entry, a counter when either of its values
 * has changed since this call last returned 0. Returning 0 uses up the changes
 * of counters: read the members, all of them, to learn what happened
 * (R-WAIT-6).
 *
 * Context: Process context; sleeps.
 *
 * Return: 0 if a member is ready; -KFI_ETIMEDOUT; -KFI_EINTR if a signal
 *   interrupted the wait of a user's thread.
 */
static inline int kfi_wait(struct kfid_wait *waitset, int timeout)
{
	return waitset->ops->wait(waitset, timeout);
}

/**
 * kfi_poll() - find the members of a poll set that have something to read
 * @pollset: poll set
 * @context: receives the contexts the members were opened with
 * @count: entries of @context
 *
 * A completion queue is reported while it has an entry, of success or error. A
 * counter is reported if either of its values changed since the last
 * kfi_poll(), other than by the consumer's own kfi_cntr_add(), kfi_cntr_set()
 * and so on (R-POLL-6). Members for which there was no room are reported next
 * time. Nothing is taken from a queue. A report may be false: read the member.
 *
 * Context: Process context; does not wait.
 *
 * Return: entries written, 0 if there is nothing; -KFI_EINVAL for a negative
 *   @count.
 */
static inline int kfi_poll(struct kfid_poll *pollset, void **context, int count)
{
	return pollset->ops->poll(pollset, context, count);
}

/**
 * kfi_poll_add() - make an object a member of a poll set
 * @pollset: poll set
 * @event_kfid: head of a completion queue or counter of the same domain; it
 *   cannot be closed while it is a member
 * @flags: reserved, 0
 *
 * Adding a member again changes nothing (R-POLL-2).
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for another class, another domain or @flags not 0;
 *   -KFI_ENOMEM.
 */
static inline int kfi_poll_add(struct kfid_poll *pollset,
			       struct kfid *event_kfid, uint64_t flags)
{
	return pollset->ops->poll_add(pollset, event_kfid, flags);
}

/**
 * kfi_poll_del() - remove a member from a poll set
 * @pollset: poll set
 * @event_kfid: head of the member
 * @flags: reserved, 0
 *
 * Its context is not reported any more by calls that start after this returned.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL if it is not a member or @flags is not 0 (R-POLL-3).
 */
static inline int kfi_poll_del(struct kfid_poll *pollset,
			       struct kfid *event_kfid, uint64_t flags)
{
	return pollset->ops->poll_del(pollset, event_kfid, flags);
}

/**
 * kfi_eq_open() - open an event queue
 * @fabric: open fabric; gains a dependent until the queue is closed
 * @attr: attributes, which stay the caller's, or NULL for the provider's
 *   defaults, which not every provider takes
 * @eq: receives the queue; close it with kfi_close()
 * @event_handler: handler, or NULL
 * @context: becomes &kfid.context of the queue and is passed to @event_handler
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL for bad attributes; -KFI_ENOSYS if the provider has no
 *   event queues; -KFI_ENOMEM.
 */
static inline int kfi_eq_open(struct kfid_fabric *fabric,
			      struct kfi_eq_attr *attr, struct kfid_eq **eq,
			      kfi_event_handler event_handler, void *context)
{
	return fabric->ops->eq_open(fabric, attr, eq, event_handler, context);
}

/**
 * kfi_eq_read() - read one event
 * @eq: event queue
 * @event: receives the event, KFI_NOTIFY and so on
 * @buf: receives the entry that belongs to the event
 * @len: bytes at @buf
 * @flags: KFI_PEEK to leave the event in the queue, or 0
 *
 * Context: Any.
 *
 * Return: bytes written; -KFI_EAGAIN if there is none, which arms the event
 *   handler; -KFI_EAVAIL if an error is to be read first; -KFI_ETOOSMALL if the
 *   entry is longer than @len.
 */
static inline ssize_t kfi_eq_read(struct kfid_eq *eq, uint32_t *event,
				  void *buf, size_t len, uint64_t flags)
{
	return eq->ops->read(eq, event, buf, len, flags);
}

/**
 * kfi_eq_readerr() - read one error entry
 * @eq: event queue
 * @buf: receives the entry; its err_data and err_data_size are set by the
 *   caller
 * @flags: KFI_PEEK to leave the entry in the queue, or 0
 *
 * Context: Any.
 *
 * Return: bytes written; -KFI_EAGAIN if there is no error entry.
 */
static inline ssize_t kfi_eq_readerr(struct kfid_eq *eq,
				     struct kfi_eq_err_entry *buf,
				     uint64_t flags)
{
	return eq->ops->readerr(eq, buf, flags);
}

/**
 * kfi_eq_write() - put an event into a queue
 * @eq: event queue, opened with KFI_WRITE; kfi_soft takes any
 * @event: event
 * @buf: entry, copied
 * @len: bytes at @buf
 * @flags: reserved, 0
 *
 * Context: Any.
 *
 * Return: bytes taken; -KFI_EAGAIN if the queue is full; -KFI_EINVAL for flags,
 *   or for an entry longer than the provider takes (kfi_soft: 128 bytes);
 *   -KFI_ENOSYS if the provider does not offer it.
 */
static inline ssize_t kfi_eq_write(struct kfid_eq *eq, uint32_t event,
				   const void *buf, size_t len, uint64_t flags)
{
	return eq->ops->write(eq, event, buf, len, flags);
}

/**
 * kfi_eq_sread() - wait for an event and read it
 * @eq: event queue
 * @event: receives the event
 * @buf: receives the entry that belongs to the event
 * @len: bytes at @buf
 * @timeout: limit in ms; negative for none, 0 to look once
 * @flags: as for kfi_eq_read()
 *
 * Context: Process context; sleeps.
 *
 * Return: as kfi_eq_read(), but -KFI_ETIMEDOUT if there was none in time, and
 *   -KFI_EINTR if a signal interrupted the wait; -KFI_EINVAL if the queue was
 *   opened with KFI_WAIT_NONE or KFI_WAIT_SET.
 */
static inline ssize_t kfi_eq_sread(struct kfid_eq *eq, uint32_t *event,
				   void *buf, size_t len, int timeout,
				   uint64_t flags)
{
	return eq->ops->sread(eq, event, buf, len, timeout, flags);
}

/**
 * kfi_eq_strerror() - describe a provider's error number
 * @eq: event queue
 * @prov_errno: prov_errno of the error entry
 * @err_data: err_data of the error entry, or NULL
 * @buf: receives the text, as much of it as fits, or NULL
 * @len: bytes at @buf
 *
 * Context: Any.
 *
 * Return: the text: @buf if it was given and @len is not 0, else a constant
 *   string.
 */
static inline const char *kfi_eq_strerror(struct kfid_eq *eq, int prov_errno,
					  const void *err_data, char *buf,
					  size_t len)
{
	return eq->ops->strerror(eq, prov_errno, err_data, buf, len);
}

/**
 * kfi_cq_read() - read completions
 * @cq: completion queue
 * @buf: receives entries of the queue's format; may be NULL if @count is 0
 * @count: entries there is room for
 *
 * Several threads may read one queue. After -KFI_EAGAIN the completion handler
 * is armed again. With @count 0 nothing is taken out: the call only tells what
 * another one would find.
 *
 * Context: Any.
 *
 * Return: entries written, at least one, or 0 if there are some and @count is 0;
 *   -KFI_EAGAIN if there is none; -KFI_EAVAIL if the next one is an error, to be
 *   read with kfi_cq_readerr(); -KFI_EOVERRUN if entries were lost; -KFI_EINVAL
 *   if @buf is NULL and @count is not 0.
 */
static inline ssize_t kfi_cq_read(struct kfid_cq *cq, void *buf, size_t count)
{
	return cq->ops->read(cq, buf, count);
}

/**
 * kfi_cq_readfrom() - read completions and where they came from
 * @cq: completion queue
 * @buf: receives entries of the queue's format; may be NULL if @count is 0
 * @count: entries there is room for, in @src_addr as well
 * @src_addr: receives for each entry the address of the sender;
 *   KFI_ADDR_NOTAVAIL for what was not received, for an unknown sender and
 *   without KFI_SOURCE
 *
 * Context: Any.
 *
 * Return: as kfi_cq_read().
 */
static inline ssize_t kfi_cq_readfrom(struct kfid_cq *cq, void *buf,
				      size_t count, kfi_addr_t *src_addr)
{
	return cq->ops->readfrom(cq, buf, count, src_addr);
}

/**
 * kfi_cq_readerr() - read one error entry
 * @cq: completion queue
 * @buf: receives the entry; its err_data and err_data_size are set by the
 *   caller
 * @flags: KFI_PEEK to leave the entry in the queue, or 0
 *
 * Context: Any.
 *
 * Return: 1; -KFI_EAGAIN if there is no error entry.
 */
static inline ssize_t kfi_cq_readerr(struct kfid_cq *cq,
				     struct kfi_cq_err_entry *buf,
				     uint64_t flags)
{
	return cq->ops->readerr(cq, buf, flags);
}

/**
 * kfi_cq_sread() - wait for completions and read them
 * @cq: completion queue
 * @buf: receives entries of the queue's format
 * @count: entries there is room for
 * @cond: condition, see enum kfi_cq_wait_cond
 * @timeout: limit in ms; negative for none, 0 to look once
 *
 * Only -KFI_EAGAIN arms the completion handler again, -KFI_ETIMEDOUT does not.
 *
 * Context: Process context; sleeps.
 *
 * Return: as kfi_cq_read(), but -KFI_ETIMEDOUT if there was none in time;
 *   -KFI_EAGAIN if kfi_cq_signal() ended the wait; -KFI_EINTR if a signal
 *   interrupted it; -KFI_EINVAL if @count is 0, or the queue was opened with
 *   KFI_WAIT_NONE or KFI_WAIT_SET.
 */
static inline ssize_t kfi_cq_sread(struct kfid_cq *cq, void *buf, size_t count,
				   const void *cond, int timeout)
{
	return cq->ops->sread(cq, buf, count, cond, timeout);
}

/**
 * kfi_cq_sreadfrom() - wait for completions, read them and where they came from
 * @cq: completion queue
 * @buf: receives entries of the queue's format
 * @count: entries there is room for, in @src_addr as well
 * @src_addr: as for kfi_cq_readfrom()
 * @cond: condition, see enum kfi_cq_wait_cond
 * @timeout: limit in ms; negative for none, 0 to look once
 *
 * Context: Process context; sleeps.
 *
 * Return: as kfi_cq_sread().
 */
static inline ssize_t kfi_cq_sreadfrom(struct kfid_cq *cq, void *buf,
				       size_t count, kfi_addr_t *src_addr,
				       const void *cond, int timeout)
{
	return cq->ops->sreadfrom(cq, buf, count, src_addr, cond, timeout);
}

/**
 * kfi_cq_signal() - wake threads in kfi_cq_sread() and kfi_cq_sreadfrom()
 * @cq: completion queue
 *
 * Context: Any.
 *
 * Return: 0; -KFI_ENOSYS if the provider does not offer it.
 */
static inline int kfi_cq_signal(struct kfid_cq *cq)
{
	return cq->ops->signal(cq);
}

/**
 * kfi_cq_strerror() - describe a provider's error number
 * @cq: completion queue
 * @prov_errno: prov_errno of the error entry
 * @err_data: err_data of the error entry, or NULL
 * @buf: receives the text, as much of it as fits, or NULL
 * @len: bytes at @buf
 *
 * Context: Any.
 *
 * Return: the text: @buf if it was given and @len is not 0, else a constant
 *   string.
 */
static inline const char *kfi_cq_strerror(struct kfid_cq *cq, int prov_errno,
					  const void *err_data, char *buf,
					  size_t len)
{
	return cq->ops->strerror(cq, prov_errno, err_data, buf, len);
}

/**
 * kfi_cntr_read() - success value of a counter
 * @cntr: counter
 *
 * Context: Any.
 *
 * Return: the value; never an error number (R-CNTR-17).
 */
static inline uint64_t kfi_cntr_read(struct kfid_cntr *cntr)
{
	return cntr->ops->read(cntr);
}

/**
 * kfi_cntr_readerr() - error value of a counter
 * @cntr: counter
 *
 * Context: Any.
 *
 * Return: the value; never an error number.
 */
static inline uint64_t kfi_cntr_readerr(struct kfid_cntr *cntr)
{
	return cntr->ops->readerr(cntr);
}

/**
 * kfi_cntr_add() - add to the success value
 * @cntr: counter
 * @value: what to add, modulo 2^64 (R-CNTR-18, R-CNTR-20)
 *
 * Releases all that waits for the values that are reached: threads, triggered
 * operations, deferred work.
 *
 * Context: Any.
 *
 * Return: 0.
 */
static inline int kfi_cntr_add(struct kfid_cntr *cntr, uint64_t value)
{
	return cntr->ops->add(cntr, value);
}

/**
 * kfi_cntr_adderr() - add to the error value
 * @cntr: counter
 * @value: what to add, modulo 2^64
 *
 * Threads in kfi_cntr_wait() return, and deferred work that becomes due by the
 * sum of both values is started (R-CNTR-31, R-DWQ-5).
 *
 * Context: Any.
 *
 * Return: 0; -KFI_ENOSYS if the provider does not have the operation.
 */
static inline int kfi_cntr_adderr(struct kfid_cntr *cntr, uint64_t value)
{
	if (!KFI_CHECK_OP(cntr->ops, struct kfi_ops_cntr, adderr))
		return -KFI_ENOSYS;

	return cntr->ops->adderr(cntr, value);
}

/**
 * kfi_cntr_set() - set the success value
 * @cntr: counter
 * @value: new value
 *
 * Releases what is due as kfi_cntr_add() does. A lower value takes back nothing
 * that was released before. Against completions and additions that happen at
 * the same time the order is not defined (R-CNTR-19, R-CNTR-21).
 *
 * Context: Any.
 *
 * Return: 0.
 */
static inline int kfi_cntr_set(struct kfid_cntr *cntr, uint64_t value)
{
	return cntr->ops->set(cntr, value);
}

/**
 * kfi_cntr_seterr() - set the error value
 * @cntr: counter
 * @value: new value
 *
 * A change releases as kfi_cntr_adderr() does, also one to a lower value.
 *
 * Context: Any.
 *
 * Return: 0; -KFI_ENOSYS if the provider does not have the operation.
 */
static inline int kfi_cntr_seterr(struct kfid_cntr *cntr, uint64_t value)
{
	if (!KFI_CHECK_OP(cntr->ops, struct kfi_ops_cntr, seterr))
		return -KFI_ENOSYS;

	return cntr->ops->seterr(cntr, value);
}

/**
 * kfi_cntr_wait() - wait until the success value reaches a threshold
 * @cntr: counter
 * @threshold: value to wait for
 * @timeout: limit in ms; negative for none, 0 to look once
 *
 * Returns at once if the threshold is met already. Any change of the error
 * value after the call began ends the wait; errors from before do not, so look
 * at kfi_cntr_readerr() first or give a finite timeout (R-CNTR-30, R-CNTR-31).
 * Neither value is changed by the call. The caller sees to it that the value
 * does not drop again while it waits: a threshold that was only passed through
 * does not count (R-CNTR-37).
 *
 * Context: Process context; sleeps.
 *
 * Return: 0 if the value was at least @threshold; -KFI_EAVAIL if the error
 *   value changed; -KFI_ETIMEDOUT; -KFI_EINTR if a signal interrupted the wait
 *   of a user's thread; -KFI_EINVAL if the counter was opened with
 *   KFI_WAIT_NONE or KFI_WAIT_SET.
 */
static inline int kfi_cntr_wait(struct kfid_cntr *cntr, uint64_t threshold,
				int timeout)
{
	return cntr->ops->wait(cntr, threshold, timeout);
}

#endif /* _KFI_EQ_H_ */
