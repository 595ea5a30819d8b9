/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints of the core: who registers, who is asked, what is opened. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kfabric

#if !defined(_KFABRIC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _KFABRIC_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(kfi_provider_result,
	TP_PROTO(const char *provider, int result),
	TP_ARGS(provider, result),
	TP_STRUCT__entry(
		__string(provider, provider)
		__field(int, result)
	),
	TP_fast_assign(
		__assign_str(provider);
		__entry->result = result;
	),
	TP_printk("provider=%s result=%d", __get_str(provider), __entry->result)
);

/* A provider has registered, or was refused. */
DEFINE_EVENT(kfi_provider_result, kfi_provider_register,
	TP_PROTO(const char *provider, int result),
	TP_ARGS(provider, result)
);

/* A provider was deregistered; nobody uses it any more. */
DEFINE_EVENT(kfi_provider_result, kfi_provider_deregister,
	TP_PROTO(const char *provider, int result),
	TP_ARGS(provider, result)
);

/* A provider has answered kfi_getinfo(): the number of entries, or an errno. */
DEFINE_EVENT(kfi_provider_result, kfi_provider_getinfo,
	TP_PROTO(const char *provider, int result),
	TP_ARGS(provider, result)
);

/* A provider has opened a fabric, or has not. */
DEFINE_EVENT(kfi_provider_result, kfi_fabric_open,
	TP_PROTO(const char *provider, int result),
	TP_ARGS(provider, result)
);

/* A fabric was closed, or has refused. */
DEFINE_EVENT(kfi_provider_result, kfi_fabric_close,
	TP_PROTO(const char *provider, int result),
	TP_ARGS(provider, result)
);

#endif /* _KFABRIC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
