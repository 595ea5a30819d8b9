/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of the software provider: what is submitted, what becomes of it.
 * Counters have the numbers that debugfs shows.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kfi_soft

#if !defined(_KFI_SOFT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KFI_SOFT_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(kfi_soft_pending,
	TP_PROTO(u64 counter, u64 threshold, u64 sequence, bool deferred),
	TP_ARGS(counter, threshold, sequence, deferred),
	TP_STRUCT__entry(
		__field(u64, counter)
		__field(u64, threshold)
		__field(u64, sequence)
		__field(bool, deferred)
	),
	TP_fast_assign(
		__entry->counter = counter;
		__entry->threshold = threshold;
		__entry->sequence = sequence;
		__entry->deferred = deferred;
	),
	TP_printk("counter=%llu threshold=%llu sequence=%llu kind=%s",
		  __entry->counter, __entry->threshold, __entry->sequence,
		  __entry->deferred ? "deferred" : "classic")
);

/* Something was submitted; it may have fired by then. */
DEFINE_EVENT(kfi_soft_pending, kfi_soft_submit,
	TP_PROTO(u64 counter, u64 threshold, u64 sequence, bool deferred),
	TP_ARGS(counter, threshold, sequence, deferred)
);

/* Something was cancelled. */
DEFINE_EVENT(kfi_soft_pending, kfi_soft_cancel,
	TP_PROTO(u64 counter, u64 threshold, u64 sequence, bool deferred),
	TP_ARGS(counter, threshold, sequence, deferred)
);

/* Something that was due runs now. */
TRACE_EVENT(kfi_soft_fire,
	TP_PROTO(u64 counter, u64 threshold, u64 sequence),
	TP_ARGS(counter, threshold, sequence),
	TP_STRUCT__entry(
		__field(u64, counter)
		__field(u64, threshold)
		__field(u64, sequence)
	),
	TP_fast_assign(
		__entry->counter = counter;
		__entry->threshold = threshold;
		__entry->sequence = sequence;
	),
	TP_printk("counter=%llu threshold=%llu sequence=%llu",
		  __entry->counter, __entry->threshold, __entry->sequence)
);

/* Deferred work was flushed. */
TRACE_EVENT(kfi_soft_flush,
	TP_PROTO(u64 entries),
	TP_ARGS(entries),
	TP_STRUCT__entry(
		__field(u64, entries)
	),
	TP_fast_assign(
		__entry->entries = entries;
	),
	TP_printk("entries=%llu", __entry->entries)
);

/*
 * A drainer has ended: the run list is empty, or the rest goes to the work
 * queue. Spent are counter operations; a data transfer counts as 16 of them.
 */
TRACE_EVENT(kfi_soft_drain,
	TP_PROTO(u64 spent, bool left),
	TP_ARGS(spent, left),
	TP_STRUCT__entry(
		__field(u64, spent)
		__field(bool, left)
	),
	TP_fast_assign(
		__entry->spent = spent;
		__entry->left = left;
	),
	TP_printk("spent=%llu rest=%s", __entry->spent,
		  __entry->left ? "queued" : "none")
);

#endif /* _KFI_SOFT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
