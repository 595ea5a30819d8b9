/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: triggered operations and deferred work.
 */

#ifndef _KFI_TRIGGER_H_
#define _KFI_TRIGGER_H_

#include <linux/build_bug.h>

#include "kfabric.h"
#include "kfi_tagged.h"
#include "kfi_rma.h"
#include "kfi_atomic.h"

struct kfid_cntr;

/**
 * DOC: Triggered operations
 *
 * A triggered operation is a data transfer that is posted as usual but starts
 * only when a counter reaches a threshold; see fi_trigger(3) and the
 * requirements R-TRIG in Documentation/requirements.md.
 *
 * * Asked for with KFI_TRIGGER in the flags of a msg call, or by posting
 *   anything to a triggerable alias (kfi_ep_alias() with KFI_TRIGGER). Inject
 *   calls, which have no context, are not triggerable: -KFI_ENOSYS on the
 *   alias; KFI_INJECT together with KFI_TRIGGER is -KFI_EINVAL. The endpoint
 *   needs the capability KFI_TRIGGER, else -KFI_EOPNOTSUPP; deferred work does
 *   not need it.
 *
 * * The @context of the call is a struct kfi_triggered_context with the
 *   condition; NULL, an unknown event type, or a counter of another domain is
 *   -KFI_EINVAL. The provider may change its contents from then on. It must stay
 *   allocated until the completion of the operation was read, or was counted if
 *   a counter alone tells it; if nobody is told of a success, until the endpoint
 *   is closed. kfi_cancel() alone does not give it back: on 0 a completion with
 *   this context follows, maybe the real one.
 *
 * * It starts when the success value of the counter is at or above the
 *   threshold, at once if it is already. Operations on one counter start in the
 *   order of their thresholds, whatever the counter is raised by, and those
 *   with the same threshold in the order in which they were posted. Each starts
 *   once; lowering the counter afterwards changes nothing.
 *
 * * The message structure and its arrays are free again when the call returns.
 *   Data buffers are not looked at before the start.
 *
 * * It completes like any other operation, with the triggered context as
 *   op_context. kfi_cancel() finds it by that context.
 *
 * * Posting never sleeps, as for any data transfer; -KFI_EAGAIN if memory is
 *   short, -KFI_ENOSPC beyond a limit of the provider on what a domain has
 *   pending, deferred work included. Both are worth repeating: the latter when
 *   something that was pending has started or was cancelled.
 */

/**
 * DOC: Deferred work
 *
 * Deferred work extends triggered operations to several endpoints, to counter
 * updates and to a completion counter of its own, as building blocks for
 * collectives; see fi_trigger(3) and the requirements R-DWQ and R-CTL. It goes
 * through kfi_control() on the domain's fid:
 *
 * * KFI_QUEUE_WORK with a struct kfi_deferred_work pointer queues a request.
 *   -KFI_EINVAL for a bad argument, -KFI_ENOSYS for an operation, type or
 *   atomic the provider lacks, -KFI_EOPNOTSUPP for a direction the endpoint
 *   lacks, -KFI_EBADFLAGS for flags the operation has not, -KFI_EMSGSIZE for
 *   more bytes than it may have, -KFI_EOPBADSTATE for an endpoint that is not
 *   enabled, -KFI_ENOSPC beyond a limit of the provider, -KFI_EAGAIN if too
 *   many have started and wait for room, -KFI_EAGAIN or -KFI_ENOMEM if memory
 *   is short; nothing is queued then.
 *
 * * KFI_CANCEL_WORK takes back what was queued with a pointer. The pointer is
 *   compared by value with those queued on the domain and never dereferenced:
 *   the request may be gone, or have been queued elsewhere. 0: it never starts
 *   and the structures may be freed; -KFI_ENOENT: it has started, was cancelled,
 *   or never was queued on this domain. A request that is queued several times
 *   is several: all of them that are pending are taken back, and 0 means that
 *   one was, although others may have started before. In either case what has
 *   started on a counter (KFI_OP_CNTR_SET, KFI_OP_CNTR_ADD) has ended when the
 *   call returns: the provider waits for it, and does not use its structures any
 *   more.
 *
 * * KFI_FLUSH_WORK takes back everything queued on the domain (NULL) or
 *   everything that waits for one counter (its struct kfid_cntr pointer).
 *   Nothing of it starts after the call; counters keep their values. Operations
 *   on counters that have started have ended, as after a cancellation.
 *
 * The commands may sleep. Requests that are never triggered stay queued until
 * they are cancelled or flushed.
 */

/**
 * enum kfi_trigger_event - what starts a triggered operation
 * @KFI_TRIGGER_THRESHOLD: a counter reaches a threshold
 */
enum kfi_trigger_event {
	KFI_TRIGGER_THRESHOLD = 0,
};

/**
 * enum kfi_op_type - operation of a deferred work request
 * @KFI_OP_RECV: receive, as kfi_recvmsg(); op.msg
 * @KFI_OP_SEND: send, as kfi_sendmsg(); op.msg
 * @KFI_OP_TRECV: tagged receive, as kfi_trecvmsg(); op.tagged
 * @KFI_OP_TSEND: tagged send, as kfi_tsendmsg(); op.tagged
 * @KFI_OP_READ: read, as kfi_readmsg(); op.rma
 * @KFI_OP_WRITE: write, as kfi_writemsg(); op.rma
 * @KFI_OP_ATOMIC: atomic, as kfi_atomicmsg(); op.atomic
 * @KFI_OP_FETCH_ATOMIC: atomic with result, as kfi_fetch_atomicmsg();
 *   op.fetch_atomic
 * @KFI_OP_COMPARE_ATOMIC: conditional atomic with result, as
 *   kfi_compare_atomicmsg(); op.compare_atomic
 * @KFI_OP_CNTR_SET: as kfi_cntr_set(); op.cntr
 * @KFI_OP_CNTR_ADD: as kfi_cntr_add(); op.cntr
 */
enum kfi_op_type {
	KFI_OP_RECV = 0,
	KFI_OP_SEND,
	KFI_OP_TRECV,
	KFI_OP_TSEND,
	KFI_OP_READ,
	KFI_OP_WRITE,
	KFI_OP_ATOMIC,
	KFI_OP_FETCH_ATOMIC,
	KFI_OP_COMPARE_ATOMIC,
	KFI_OP_CNTR_SET,
	KFI_OP_CNTR_ADD,
};

/**
 * struct kfi_trigger_threshold - condition of KFI_TRIGGER_THRESHOLD
 * @cntr: counter of the endpoint's domain; busy while the operation is pending
 * @threshold: success value at which the operation starts; 0 starts it at once.
 *   Of type size_t in kfabric 1.7, so narrower than the counter on 32-bit
 *   machines
 */
struct kfi_trigger_threshold {
	struct kfid_cntr *cntr;
	size_t threshold;
};

/**
 * struct kfi_op_msg - deferred KFI_OP_RECV or KFI_OP_SEND
 * @ep: endpoint or context of the domain the work is queued to
 * @msg: message
 * @flags: flags of the operation; without KFI_COMPLETION it leaves no success
 *   entry in the completion queue and does not count in the endpoint's
 *   counters, except in the one that is the completion counter
 */
struct kfi_op_msg {
	struct kfid_ep *ep;
	struct kfi_msg msg;
	uint64_t flags;
};

/**
 * struct kfi_op_tagged - deferred KFI_OP_TRECV or KFI_OP_TSEND
 * @ep: endpoint or context of the domain the work is queued to
 * @msg: tagged message
 * @flags: flags of the operation, see &kfi_op_msg.flags
 */
struct kfi_op_tagged {
	struct kfid_ep *ep;
	struct kfi_msg_tagged msg;
	uint64_t flags;
};

/**
 * struct kfi_op_rma - deferred KFI_OP_READ or KFI_OP_WRITE
 * @ep: endpoint or context of the domain the work is queued to
 * @msg: local and remote ranges
 * @flags: flags of the operation, see &kfi_op_msg.flags
 */
struct kfi_op_rma {
	struct kfid_ep *ep;
	struct kfi_msg_rma msg;
	uint64_t flags;
};

/**
 * struct kfi_op_atomic - deferred KFI_OP_ATOMIC
 * @ep: endpoint or context of the domain the work is queued to
 * @msg: operands and targets
 * @flags: flags of the operation, see &kfi_op_msg.flags
 */
struct kfi_op_atomic {
	struct kfid_ep *ep;
	struct kfi_msg_atomic msg;
	uint64_t flags;
};

/**
 * struct kfi_op_fetch_atomic - deferred KFI_OP_FETCH_ATOMIC
 * @ep: endpoint or context of the domain the work is queued to
 * @msg: operands and targets
 * @fetch: where the old target values go
 * @flags: flags of the operation, see &kfi_op_msg.flags
 */
struct kfi_op_fetch_atomic {
	struct kfid_ep *ep;
	struct kfi_msg_atomic msg;
	struct kfi_msg_fetch fetch;
	uint64_t flags;
};

/**
 * struct kfi_op_compare_atomic - deferred KFI_OP_COMPARE_ATOMIC
 * @ep: endpoint or context of the domain the work is queued to
 * @msg: operands and targets
 * @fetch: where the old target values go
 * @compare: values to compare with
 * @flags: flags of the operation, see &kfi_op_msg.flags
 *
 * kfabric 1.7 refers to this structure and does not define it; this is our
 * definition, laid out as &struct kfi_op_fetch_atomic.
 */
struct kfi_op_compare_atomic {
	struct kfid_ep *ep;
	struct kfi_msg_atomic msg;
	struct kfi_msg_fetch fetch;
	struct kfi_msg_compare compare;
	uint64_t flags;
};

/**
 * struct kfi_op_cntr - deferred KFI_OP_CNTR_SET or KFI_OP_CNTR_ADD
 * @cntr: counter of the domain; changed as if by the caller: waiters wake and
 *   its triggers run
 * @value: value to set or to add
 */
struct kfi_op_cntr {
	struct kfid_cntr *cntr;
	uint64_t value;
};

/**
 * struct kfi_triggered_context - context of a triggered operation
 * @event_type: which condition is given
 * @trigger: the condition
 * @trigger.threshold: condition of KFI_TRIGGER_THRESHOLD
 * @trigger.internal: for the provider, once the operation is posted
 *
 * Takes the place of struct kfi_context, hence the same size (R-TRIG-7). The
 * caller allocates it, passes it as @context and keeps it as long as "Triggered
 * operations" says; it must not be used twice at a time.
 */
struct kfi_triggered_context {
	enum kfi_trigger_event event_type;
	union {
		struct kfi_trigger_threshold threshold;
		void *internal[3];
	} trigger;
};

/**
 * struct kfi_triggered_context2 - context of a triggered operation under
 *   KFI_CONTEXT2
 * @event_type: which condition is given
 * @trigger: the condition
 * @trigger.threshold: condition of KFI_TRIGGER_THRESHOLD
 * @trigger.internal: for the provider, once the operation is posted
 *
 * Takes the place of struct kfi_context2, hence the same size (R-TRIG-7). The
 * caller allocates it, passes it as @context and keeps it as long as "Triggered
 * operations" says; it must not be used twice at a time.
 */
struct kfi_triggered_context2 {
	enum kfi_trigger_event event_type;
	union {
		struct kfi_trigger_threshold threshold;
		void *internal[7];
	} trigger;
};

static_assert(sizeof(struct kfi_triggered_context) ==
	      sizeof(struct kfi_context));
static_assert(sizeof(struct kfi_triggered_context2) ==
	      sizeof(struct kfi_context2));

/**
 * struct kfi_deferred_work - deferred work request
 * @context: for the provider while the request is queued; not for finding the
 *   request when it is cancelled, see KFI_CANCEL_WORK
 * @threshold: the request starts when the sum of success and error value of
 *   @triggering_cntr is at or above this; 0 starts it at once
 * @triggering_cntr: counter of the domain; busy while the request is queued
 * @completion_cntr: counter of the domain that goes up by one when the data
 *   transfer completes: its success value, or its error value if the transfer
 *   failed. May be NULL; must be for counter operations
 * @op_type: which operation, and so which member of @op
 * @op: the operation; the structure is the caller's
 * @op.msg: KFI_OP_RECV, KFI_OP_SEND
 * @op.tagged: KFI_OP_TRECV, KFI_OP_TSEND
 * @op.rma: KFI_OP_READ, KFI_OP_WRITE
 * @op.atomic: KFI_OP_ATOMIC
 * @op.fetch_atomic: KFI_OP_FETCH_ATOMIC
 * @op.compare_atomic: KFI_OP_COMPARE_ATOMIC
 * @op.cntr: KFI_OP_CNTR_SET, KFI_OP_CNTR_ADD
 *
 * The caller keeps the request, the operation structure and the arrays and
 * buffers it names until the operation completes or is cancelled
 * (fi_trigger(3)). Data buffers are not looked at before the start.
 * KFI_CANCEL_WORK ends it with 0, and a counter operation also with
 * -KFI_ENOENT. The end of a data transfer that has started is learned from
 * @completion_cntr, or, with KFI_COMPLETION in its flags, from the completion
 * of its endpoint; without either, from the close of the endpoint.
 *
 * An operation with KFI_COMPLETION gives a completion queue entry whose
 * op_context is the context of its message. Failed operations give an error
 * entry in any case.
 */
struct kfi_deferred_work {
	struct kfi_context2 context;
	uint64_t threshold;
	struct kfid_cntr *triggering_cntr;
	struct kfid_cntr *completion_cntr;
	enum kfi_op_type op_type;
	union {
		struct kfi_op_msg *msg;
		struct kfi_op_tagged *tagged;
		struct kfi_op_rma *rma;
		struct kfi_op_atomic *atomic;
		struct kfi_op_fetch_atomic *fetch_atomic;
		struct kfi_op_compare_atomic *compare_atomic;
		struct kfi_op_cntr *cntr;
	} op;
};

#endif /* _KFI_TRIGGER_H_ */
