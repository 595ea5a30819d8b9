// SPDX-License-Identifier: GPL-2.0
/*
 * Texts that the core makes of structures, values and flags, and the parameters
 * that it lists.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_atomic.h>
#include <kfi_trigger.h>

#include "consumer.h"

/* Text of some data, or NULL; true if it is the wanted one. */
static bool is_text(struct test *t, const void *data, enum kfi_type type,
		    const char *want, const char *file, int line)
{
	char *text = kfi_tostr(data, type);
	bool same = text && want ? !strcmp(text, want) : text == want;

	if (!same) {
		t->failed = true;
		pr_info("# %s:%d: type %d gives %*pE, expected %*pE\n",
			kbasename(file), line, type,
			text ? (int)strlen(text) : 4, text ?: "NULL",
			want ? (int)strlen(want) : 4, want ?: "NULL");
	}
	kfree(text);
	return same;
}

#define expect_text(t, data, type, want)				\
	is_text(t, data, type, want, __FILE__, __LINE__)

static bool u32_is(struct test *t, enum kfi_type type, u32 value, const char *want)
{
	return expect_text(t, &value, type, want);
}

static bool u64_is(struct test *t, enum kfi_type type, u64 value, const char *want)
{
	return expect_text(t, &value, type, want);
}

/**
 * struct constant - a constant of the public headers
 * @type: what kfi_tostr() is told that it is
 * @value: its value
 * @name: its name
 */
struct constant {
	enum kfi_type type;
	u64 value;
	const char *name;
};

#define CONSTANT(type, name)	{ KFI_TYPE_##type, name, #name }

static const struct constant values[] = {
	CONSTANT(EP_TYPE, KFI_EP_UNSPEC),
	CONSTANT(EP_TYPE, KFI_EP_MSG),
	CONSTANT(EP_TYPE, KFI_EP_DGRAM),
	CONSTANT(EP_TYPE, KFI_EP_RDM),
	CONSTANT(EP_TYPE, KFI_EP_SOCK_STREAM),
	CONSTANT(EP_TYPE, KFI_EP_SOCK_DGRAM),

	CONSTANT(ADDR_FORMAT, KFI_FORMAT_UNSPEC),
	CONSTANT(ADDR_FORMAT, KFI_SOCKADDR),
	CONSTANT(ADDR_FORMAT, KFI_SOCKADDR_IN),
	CONSTANT(ADDR_FORMAT, KFI_SOCKADDR_IN6),
	CONSTANT(ADDR_FORMAT, KFI_SOCKADDR_IB),
	CONSTANT(ADDR_FORMAT, KFI_ADDR_GNI),
	CONSTANT(ADDR_FORMAT, KFI_ADDR_CXI),

	CONSTANT(THREADING, KFI_THREAD_UNSPEC),
	CONSTANT(THREADING, KFI_THREAD_SAFE),
	CONSTANT(THREADING, KFI_THREAD_FID),
	CONSTANT(THREADING, KFI_THREAD_DOMAIN),
	CONSTANT(THREADING, KFI_THREAD_COMPLETION),
	CONSTANT(THREADING, KFI_THREAD_ENDPOINT),

	CONSTANT(PROGRESS, KFI_PROGRESS_UNSPEC),
	CONSTANT(PROGRESS, KFI_PROGRESS_AUTO),
	CONSTANT(PROGRESS, KFI_PROGRESS_MANUAL),

	CONSTANT(PROTOCOL, KFI_PROTO_UNSPEC),
	CONSTANT(PROTOCOL, KFI_PROTO_RDMA_CM_IB_RC),
	CONSTANT(PROTOCOL, KFI_PROTO_IWARP),
	CONSTANT(PROTOCOL, KFI_PROTO_IB_UD),
	CONSTANT(PROTOCOL, KFI_PROTO_UDP),
	CONSTANT(PROTOCOL, KFI_PROTO_SOCK_TCP),
	CONSTANT(PROTOCOL, KFI_PROTO_IWARP_RDM),
	CONSTANT(PROTOCOL, KFI_PROTO_IB_RDM),
	CONSTANT(PROTOCOL, KFI_PROTO_GNI),
	CONSTANT(PROTOCOL, KFI_PROTO_CXI),

	CONSTANT(AV_TYPE, KFI_AV_UNSPEC),
	CONSTANT(AV_TYPE, KFI_AV_MAP),
	CONSTANT(AV_TYPE, KFI_AV_TABLE),

	CONSTANT(ATOMIC_TYPE, KFI_INT8),
	CONSTANT(ATOMIC_TYPE, KFI_UINT8),
	CONSTANT(ATOMIC_TYPE, KFI_INT16),
	CONSTANT(ATOMIC_TYPE, KFI_UINT16),
	CONSTANT(ATOMIC_TYPE, KFI_INT32),
	CONSTANT(ATOMIC_TYPE, KFI_UINT32),
	CONSTANT(ATOMIC_TYPE, KFI_INT64),
	CONSTANT(ATOMIC_TYPE, KFI_UINT64),
	CONSTANT(ATOMIC_TYPE, KFI_FLOAT),
	CONSTANT(ATOMIC_TYPE, KFI_DOUBLE),
	CONSTANT(ATOMIC_TYPE, KFI_FLOAT_COMPLEX),
	CONSTANT(ATOMIC_TYPE, KFI_DOUBLE_COMPLEX),
	CONSTANT(ATOMIC_TYPE, KFI_LONG_DOUBLE),
	CONSTANT(ATOMIC_TYPE, KFI_LONG_DOUBLE_COMPLEX),

	CONSTANT(ATOMIC_OP, KFI_MIN),
	CONSTANT(ATOMIC_OP, KFI_MAX),
	CONSTANT(ATOMIC_OP, KFI_SUM),
	CONSTANT(ATOMIC_OP, KFI_PROD),
	CONSTANT(ATOMIC_OP, KFI_LOR),
	CONSTANT(ATOMIC_OP, KFI_LAND),
	CONSTANT(ATOMIC_OP, KFI_BOR),
	CONSTANT(ATOMIC_OP, KFI_BAND),
	CONSTANT(ATOMIC_OP, KFI_LXOR),
	CONSTANT(ATOMIC_OP, KFI_BXOR),
	CONSTANT(ATOMIC_OP, KFI_ATOMIC_READ),
	CONSTANT(ATOMIC_OP, KFI_ATOMIC_WRITE),
	CONSTANT(ATOMIC_OP, KFI_CSWAP),
	CONSTANT(ATOMIC_OP, KFI_CSWAP_NE),
	CONSTANT(ATOMIC_OP, KFI_CSWAP_LE),
	CONSTANT(ATOMIC_OP, KFI_CSWAP_LT),
	CONSTANT(ATOMIC_OP, KFI_CSWAP_GE),
	CONSTANT(ATOMIC_OP, KFI_CSWAP_GT),
	CONSTANT(ATOMIC_OP, KFI_MSWAP),

	CONSTANT(EQ_EVENT, KFI_NOTIFY),
	CONSTANT(EQ_EVENT, KFI_CONNREQ),
	CONSTANT(EQ_EVENT, KFI_CONNECTED),
	CONSTANT(EQ_EVENT, KFI_SHUTDOWN),
	CONSTANT(EQ_EVENT, KFI_MR_COMPLETE),
	CONSTANT(EQ_EVENT, KFI_AV_COMPLETE),
	CONSTANT(EQ_EVENT, KFI_JOIN_COMPLETE),

	CONSTANT(OP_TYPE, KFI_OP_RECV),
	CONSTANT(OP_TYPE, KFI_OP_SEND),
	CONSTANT(OP_TYPE, KFI_OP_TRECV),
	CONSTANT(OP_TYPE, KFI_OP_TSEND),
	CONSTANT(OP_TYPE, KFI_OP_READ),
	CONSTANT(OP_TYPE, KFI_OP_WRITE),
	CONSTANT(OP_TYPE, KFI_OP_ATOMIC),
	CONSTANT(OP_TYPE, KFI_OP_FETCH_ATOMIC),
	CONSTANT(OP_TYPE, KFI_OP_COMPARE_ATOMIC),
	CONSTANT(OP_TYPE, KFI_OP_CNTR_SET),
	CONSTANT(OP_TYPE, KFI_OP_CNTR_ADD),
};

static const struct constant flags[] = {
	CONSTANT(CAPS, KFI_MSG),
	CONSTANT(CAPS, KFI_RMA),
	CONSTANT(CAPS, KFI_TAGGED),
	CONSTANT(CAPS, KFI_ATOMIC),
	CONSTANT(CAPS, KFI_MULTICAST),
	CONSTANT(CAPS, KFI_TAGGED_RMA),
	CONSTANT(CAPS, KFI_READ),
	CONSTANT(CAPS, KFI_WRITE),
	CONSTANT(CAPS, KFI_RECV),
	CONSTANT(CAPS, KFI_SEND),
	CONSTANT(CAPS, KFI_REMOTE_READ),
	CONSTANT(CAPS, KFI_REMOTE_WRITE),
	CONSTANT(CAPS, KFI_MULTI_RECV),
	CONSTANT(CAPS, KFI_REMOTE_CQ_DATA),
	CONSTANT(CAPS, KFI_MORE),
	CONSTANT(CAPS, KFI_PEEK),
	CONSTANT(CAPS, KFI_TRIGGER),
	CONSTANT(CAPS, KFI_FENCE),
	CONSTANT(CAPS, KFI_COMPLETION),
	CONSTANT(CAPS, KFI_INJECT),
	CONSTANT(CAPS, KFI_INJECT_COMPLETE),
	CONSTANT(CAPS, KFI_TRANSMIT_COMPLETE),
	CONSTANT(CAPS, KFI_DELIVERY_COMPLETE),
	CONSTANT(CAPS, KFI_AFFINITY),
	CONSTANT(CAPS, KFI_COMMIT_COMPLETE),
	CONSTANT(CAPS, KFI_TAGGED_MULTI_RECV),
	CONSTANT(CAPS, KFI_RMA_PMEM),
	CONSTANT(CAPS, KFI_SOURCE_ERR),
	CONSTANT(CAPS, KFI_LOCAL_COMM),
	CONSTANT(CAPS, KFI_REMOTE_COMM),
	CONSTANT(CAPS, KFI_SHARED_AV),
	CONSTANT(CAPS, KFI_RMA_EVENT),
	CONSTANT(CAPS, KFI_SOURCE),
	CONSTANT(CAPS, KFI_NAMED_RX_CTX),
	CONSTANT(CAPS, KFI_DIRECTED_RECV),

	CONSTANT(OP_FLAGS, KFI_MSG),
	CONSTANT(OP_FLAGS, KFI_RMA),
	CONSTANT(OP_FLAGS, KFI_TAGGED),
	CONSTANT(OP_FLAGS, KFI_ATOMIC),
	CONSTANT(OP_FLAGS, KFI_MULTICAST),
	CONSTANT(OP_FLAGS, KFI_TAGGED_RMA),
	CONSTANT(OP_FLAGS, KFI_READ),
	CONSTANT(OP_FLAGS, KFI_WRITE),
	CONSTANT(OP_FLAGS, KFI_RECV),
	CONSTANT(OP_FLAGS, KFI_SEND),
	CONSTANT(OP_FLAGS, KFI_REMOTE_READ),
	CONSTANT(OP_FLAGS, KFI_REMOTE_WRITE),
	CONSTANT(OP_FLAGS, KFI_MULTI_RECV),
	CONSTANT(OP_FLAGS, KFI_REMOTE_CQ_DATA),
	CONSTANT(OP_FLAGS, KFI_MORE),
	CONSTANT(OP_FLAGS, KFI_PEEK),
	CONSTANT(OP_FLAGS, KFI_TRIGGER),
	CONSTANT(OP_FLAGS, KFI_FENCE),
	CONSTANT(OP_FLAGS, KFI_COMPLETION),
	CONSTANT(OP_FLAGS, KFI_INJECT),
	CONSTANT(OP_FLAGS, KFI_INJECT_COMPLETE),
	CONSTANT(OP_FLAGS, KFI_TRANSMIT_COMPLETE),
	CONSTANT(OP_FLAGS, KFI_DELIVERY_COMPLETE),
	CONSTANT(OP_FLAGS, KFI_AFFINITY),
	CONSTANT(OP_FLAGS, KFI_COMMIT_COMPLETE),
	CONSTANT(OP_FLAGS, KFI_TAGGED_MULTI_RECV),
	CONSTANT(OP_FLAGS, KFI_DISCARD),
	CONSTANT(OP_FLAGS, KFI_CLAIM),

	CONSTANT(CQ_EVENT_FLAGS, KFI_MSG),
	CONSTANT(CQ_EVENT_FLAGS, KFI_RMA),
	CONSTANT(CQ_EVENT_FLAGS, KFI_TAGGED),
	CONSTANT(CQ_EVENT_FLAGS, KFI_ATOMIC),
	CONSTANT(CQ_EVENT_FLAGS, KFI_MULTICAST),
	CONSTANT(CQ_EVENT_FLAGS, KFI_TAGGED_RMA),
	CONSTANT(CQ_EVENT_FLAGS, KFI_READ),
	CONSTANT(CQ_EVENT_FLAGS, KFI_WRITE),
	CONSTANT(CQ_EVENT_FLAGS, KFI_RECV),
	CONSTANT(CQ_EVENT_FLAGS, KFI_SEND),
	CONSTANT(CQ_EVENT_FLAGS, KFI_REMOTE_READ),
	CONSTANT(CQ_EVENT_FLAGS, KFI_REMOTE_WRITE),
	CONSTANT(CQ_EVENT_FLAGS, KFI_MULTI_RECV),
	CONSTANT(CQ_EVENT_FLAGS, KFI_REMOTE_CQ_DATA),
	CONSTANT(CQ_EVENT_FLAGS, KFI_MORE),
	CONSTANT(CQ_EVENT_FLAGS, KFI_TAGGED_MULTI_RECV),
	CONSTANT(CQ_EVENT_FLAGS, KFI_DISCARD),
	CONSTANT(CQ_EVENT_FLAGS, KFI_CLAIM),

	CONSTANT(MSG_ORDER, KFI_ORDER_NONE),
	CONSTANT(MSG_ORDER, KFI_ORDER_STRICT),
	CONSTANT(MSG_ORDER, KFI_ORDER_RAR),
	CONSTANT(MSG_ORDER, KFI_ORDER_RAW),
	CONSTANT(MSG_ORDER, KFI_ORDER_RAS),
	CONSTANT(MSG_ORDER, KFI_ORDER_WAR),
	CONSTANT(MSG_ORDER, KFI_ORDER_WAW),
	CONSTANT(MSG_ORDER, KFI_ORDER_WAS),
	CONSTANT(MSG_ORDER, KFI_ORDER_SAR),
	CONSTANT(MSG_ORDER, KFI_ORDER_SAW),
	CONSTANT(MSG_ORDER, KFI_ORDER_SAS),
	CONSTANT(MSG_ORDER, KFI_ORDER_DATA),

	CONSTANT(MODE, KFI_CONTEXT2),
	CONSTANT(MODE, KFI_RESTRICTED_COMP),
	CONSTANT(MODE, KFI_NOTIFY_FLAGS_ONLY),
	CONSTANT(MODE, KFI_LOCAL_MR),
	CONSTANT(MODE, KFI_RX_CQ_DATA),
	CONSTANT(MODE, KFI_ASYNC_IOV),
	CONSTANT(MODE, KFI_MSG_PREFIX),
	CONSTANT(MODE, KFI_CONTEXT),

	CONSTANT(MR_MODE, KFI_MR_LOCAL),
	CONSTANT(MR_MODE, KFI_MR_RAW),
	CONSTANT(MR_MODE, KFI_MR_VIRT_ADDR),
	CONSTANT(MR_MODE, KFI_MR_PROV_KEY),
	CONSTANT(MR_MODE, KFI_MR_RMA_EVENT),
	CONSTANT(MR_MODE, KFI_MR_ENDPOINT),
};

/* Each value of an enumeration is its name. */
static void names(struct test *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		u32_is(t, values[i].type, values[i].value, values[i].name);
}

/* What has no name is a number; those of a provider have a bit that says so. */
static void no_names(struct test *t)
{
	static const enum kfi_type types[] = {
		KFI_TYPE_EP_TYPE, KFI_TYPE_ADDR_FORMAT, KFI_TYPE_THREADING,
		KFI_TYPE_PROGRESS, KFI_TYPE_PROTOCOL, KFI_TYPE_AV_TYPE,
		KFI_TYPE_ATOMIC_TYPE, KFI_TYPE_ATOMIC_OP, KFI_TYPE_EQ_EVENT,
		KFI_TYPE_OP_TYPE,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		u32_is(t, types[i], 77, "Unknown (77)");
		u32_is(t, types[i], 0x7fffffff, "Unknown (2147483647)");
		u32_is(t, types[i], (u32)KFI_PROV_SPECIFIC | 7,
		       "Provider specific (0x80000007)");
	}
	/* The ends of these enumerations are no values. */
	u32_is(t, KFI_TYPE_ATOMIC_TYPE, KFI_LONG_DOUBLE_COMPLEX + 1, "Unknown (14)");
	u32_is(t, KFI_TYPE_ATOMIC_OP, KFI_MSWAP + 1, "Unknown (19)");
}

/* Each flag alone is its name in brackets. */
static void flag_names(struct test *t)
{
	char want[64];
	unsigned int i;
	int mode;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		scnprintf(want, sizeof(want), "[ %s ]", flags[i].name);
		if (flags[i].type == KFI_TYPE_MR_MODE) {
			mode = flags[i].value;
			expect_text(t, &mode, flags[i].type, want);
		} else {
			u64_is(t, flags[i].type, flags[i].value, want);
		}
	}
}

/* Several flags, none, and those without a name. */
static void sets(struct test *t)
{
	static const struct {
		int value;
		const char *want;
	} modes[] = {
		{ 0, "[ ]" },
		{ KFI_MR_RAW | KFI_MR_LOCAL, "[ KFI_MR_LOCAL, KFI_MR_RAW ]" },
		{ KFI_MR_RMA_EVENT | 1, "[ KFI_MR_RMA_EVENT, 0x1 ]" },
		/* It has 32 bits, which are not extended. */
		{ INT_MIN, "[ 0x80000000 ]" },
	};
	unsigned int i;

	u64_is(t, KFI_TYPE_CAPS, 0, "[ ]");
	u64_is(t, KFI_TYPE_CAPS, KFI_RMA | KFI_MSG, "[ KFI_MSG, KFI_RMA ]");
	u64_is(t, KFI_TYPE_CAPS, KFI_LOCAL_COMM | 1ULL << 63 | 1,
	       "[ KFI_LOCAL_COMM, 0x8000000000000001 ]");
	u64_is(t, KFI_TYPE_OP_FLAGS, KFI_INJECT | KFI_COMPLETION | KFI_MORE,
	       "[ KFI_MORE, KFI_COMPLETION, KFI_INJECT ]");
	u64_is(t, KFI_TYPE_MODE, 1, "[ 0x1 ]");
	u64_is(t, KFI_TYPE_CQ_EVENT_FLAGS, KFI_MSG | KFI_RECV,
	       "[ KFI_MSG, KFI_RECV ]");
	/* There is a name for none, and one for many. */
	u64_is(t, KFI_TYPE_MSG_ORDER, KFI_ORDER_STRICT | KFI_ORDER_DATA,
	       "[ KFI_ORDER_STRICT, KFI_ORDER_DATA ]");
	u64_is(t, KFI_TYPE_MSG_ORDER, KFI_ORDER_DATA | KFI_ORDER_SAS | KFI_ORDER_RAR,
	       "[ KFI_ORDER_RAR, KFI_ORDER_SAS, KFI_ORDER_DATA ]");
	for (i = 0; i < ARRAY_SIZE(modes); i++)
		expect_text(t, &modes[i].value, KFI_TYPE_MR_MODE, modes[i].want);
}

/* Of a text that has lines: whether this is one of them, with its indentation. */
static bool has_line(struct test *t, const void *data, enum kfi_type type, const char *line)
{
	char *text = kfi_tostr(data, type), *rest = text, *found = NULL;

	while (rest && !found) {
		char *next = strsep(&rest, "\n");

		if (!strcmp(next, line))
			found = next;
	}
	if (!found) {
		t->failed = true;
		pr_info("# type %d has no line %*pE\n", type, (int)strlen(line), line);
	}
	kfree(text);
	return found;
}

/* An address is shown as its format says, or, if it is none of that format, as bytes. */
static void addresses(struct test *t)
{
#define IN	"\x02\x00\x1f\x90\x0a\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"
#define IN6	"\x0a\x00\x00\x50\x00\x00\x00\x00\xfe\x80\x00\x00\x00\x00\x00\x00" \
		"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"
#define ZEROS	"0000000000000000000000000000000000000000000000000000000000000000"
	static const struct {
		u32 format;
		const char *bytes;
		size_t size;
		const char *want;
	} cases[] = {
		{ KFI_SOCKADDR_IN, IN, 16, "kfi_sockaddr_in://10.0.0.1:8080" },
		{ KFI_SOCKADDR_IN, IN, 8, "kfi_sockaddr_in://10.0.0.1:8080" },
		{ KFI_SOCKADDR_IN, IN, 7, "kfi_addr://0x02001f900a0000" },
		{ KFI_SOCKADDR_IN6, IN6, 28, "kfi_sockaddr_in6://[fe80::1]:80" },
		{ KFI_SOCKADDR_IN6, IN6, 8, "kfi_addr://0x0a00005000000000" },
		{ KFI_SOCKADDR_IN6, IN, 7, "kfi_addr://0x02001f900a0000" },
		/* The family says which of both. */
		{ KFI_SOCKADDR, IN, 16, "kfi_sockaddr_in://10.0.0.1:8080" },
		{ KFI_SOCKADDR, IN6, 28, "kfi_sockaddr_in6://[fe80::1]:80" },
		{ KFI_SOCKADDR, "\xff\xff\xff", 3, "kfi_addr://0xffffff" },
		{ KFI_SOCKADDR, "\x02", 1, "kfi_addr://0x02" },
		{ KFI_ADDR_CXI, "\x90\x78\x56\x34\x12\x00\x00\x00", 8,
		  "kfi_addr_cxi://0x1234567890" },
		{ KFI_ADDR_CXI, "\x05\x00\x00\x00\x00\x00\x00\x00", 8,
		  "kfi_addr_cxi://0x00000005" },
		{ KFI_ADDR_CXI, "\x05\x00\x00\x00", 4, "kfi_addr://0x05000000" },
		{ KFI_ADDR_GNI, "\x01\xab", 2, "kfi_addr://0x01ab" },
		{ KFI_FORMAT_UNSPEC, "", 0, "kfi_addr://0x" },
	};
	u8 longest[65] = {};
	struct kfi_info info = {};
	char line[192];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		info.addr_format = cases[i].format;
		info.src_addr = (void *)cases[i].bytes;
		info.src_addrlen = cases[i].size;
		info.dest_addr = NULL;
		info.dest_addrlen = 0;
		scnprintf(line, sizeof(line), "    src_addr: %s", cases[i].want);
		has_line(t, &info, KFI_TYPE_INFO, line);
		has_line(t, &info, KFI_TYPE_INFO, "    dest_addr: (null)");
		swap(info.src_addr, info.dest_addr);
		swap(info.src_addrlen, info.dest_addrlen);
		scnprintf(line, sizeof(line), "    dest_addr: %s", cases[i].want);
		has_line(t, &info, KFI_TYPE_INFO, line);
		has_line(t, &info, KFI_TYPE_INFO, "    src_addr: (null)");
	}
	/* Of many bytes the first ones are shown. */
	info.addr_format = KFI_SOCKADDR_IB;
	info.src_addr = longest;
	info.src_addrlen = 64;
	has_line(t, &info, KFI_TYPE_INFO, "    src_addr: kfi_addr://0x" ZEROS ZEROS);
	info.src_addrlen = 65;
	has_line(t, &info, KFI_TYPE_INFO, "    src_addr: kfi_addr://0x" ZEROS ZEROS "...");
}

static void transmit_attributes(struct test *t)
{
	const struct kfi_tx_attr attr = {
		.caps = KFI_MSG,
		.op_flags = KFI_DELIVERY_COMPLETE,
		.msg_order = KFI_ORDER_SAS,
		.inject_size = 64,
		.size = 1024,
		.iov_limit = 4,
		.rma_iov_limit = 1,
		.tclass = kfi_tc_dscp_set(1),
	};

	expect_text(t, &attr, KFI_TYPE_TX_ATTR,
		    "kfi_tx_attr:\n"
		    "    caps: [ KFI_MSG ]\n"
		    "    mode: [ ]\n"
		    "    op_flags: [ KFI_DELIVERY_COMPLETE ]\n"
		    "    msg_order: [ KFI_ORDER_SAS ]\n"
		    "    comp_order: [ KFI_ORDER_NONE ]\n"
		    "    inject_size: 64\n"
		    "    size: 1024\n"
		    "    iov_limit: 4\n"
		    "    rma_iov_limit: 1\n"
		    "    tclass: KFI_TC_DSCP (1)\n");
}

static void traffic_classes(struct test *t)
{
	static const struct {
		u32 tclass;
		const char *want;
	} cases[] = {
		{ KFI_TC_UNSPEC, "    tclass: KFI_TC_UNSPEC" },
		{ KFI_TC_DSCP | 46, "    tclass: KFI_TC_DSCP (46)" },
		{ KFI_TC_DSCP | 255, "    tclass: KFI_TC_DSCP (255)" },
		{ KFI_TC_BEST_EFFORT, "    tclass: KFI_TC_BEST_EFFORT" },
		{ KFI_TC_LOW_LATENCY, "    tclass: KFI_TC_LOW_LATENCY" },
		{ KFI_TC_DEDICATED_ACCESS, "    tclass: KFI_TC_DEDICATED_ACCESS" },
		{ KFI_TC_BULK_DATA, "    tclass: KFI_TC_BULK_DATA" },
		{ KFI_TC_SCAVENGER, "    tclass: KFI_TC_SCAVENGER" },
		{ KFI_TC_NETWORK_CTRL, "    tclass: KFI_TC_NETWORK_CTRL" },
		{ 0x300, "    tclass: Unknown (768)" },
		{ 0xff, "    tclass: Unknown (255)" },
	};
	struct kfi_tx_attr attr = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		attr.tclass = cases[i].tclass;
		has_line(t, &attr, KFI_TYPE_TX_ATTR, cases[i].want);
	}
}

static void receive_attributes(struct test *t)
{
	const struct kfi_rx_attr attr = {
		.mode = KFI_CONTEXT2,
		.total_buffered_recv = SIZE_MAX,
		.iov_limit = 3,
	};

	expect_text(t, &attr, KFI_TYPE_RX_ATTR,
		    "kfi_rx_attr:\n"
		    "    caps: [ ]\n"
		    "    mode: [ KFI_CONTEXT2 ]\n"
		    "    op_flags: [ ]\n"
		    "    msg_order: [ KFI_ORDER_NONE ]\n"
		    "    comp_order: [ KFI_ORDER_NONE ]\n"
		    "    total_buffered_recv: 18446744073709551615\n"
		    "    size: 0\n"
		    "    iov_limit: 3\n");
}

/* Of a key there is the size only. */
static void endpoint_attributes(struct test *t)
{
	const struct kfi_ep_attr attr = {
		.type = KFI_EP_RDM,
		.protocol = KFI_PROTO_CXI,
		.protocol_version = 1,
		.max_msg_size = 4096,
		.mem_tag_format = 0xaaaa,
		.tx_ctx_cnt = KFI_SHARED_CONTEXT,
		.rx_ctx_cnt = 2,
		.auth_key_size = 6,
		.auth_key = (u8 *)"secret",
	};

	expect_text(t, &attr, KFI_TYPE_EP_ATTR,
		    "kfi_ep_attr:\n"
		    "    type: KFI_EP_RDM\n"
		    "    protocol: KFI_PROTO_CXI\n"
		    "    protocol_version: 1\n"
		    "    max_msg_size: 4096\n"
		    "    msg_prefix_size: 0\n"
		    "    max_order_raw_size: 0\n"
		    "    max_order_war_size: 0\n"
		    "    max_order_waw_size: 0\n"
		    "    mem_tag_format: 0x000000000000aaaa\n"
		    "    tx_ctx_cnt: KFI_SHARED_CONTEXT\n"
		    "    rx_ctx_cnt: 2\n"
		    "    auth_key_size: 6\n");
}

static void domain_attributes(struct test *t)
{
	const struct kfi_domain_attr attr = {
		/* What would begin a line does not. */
		.name = "soft0\n",
		.threading = KFI_THREAD_SAFE,
		.control_progress = KFI_PROGRESS_MANUAL,
		.data_progress = KFI_PROGRESS_AUTO,
		.resource_mgmt = KFI_RM_ENABLED,
		.av_type = KFI_AV_TABLE,
		.mr_mode = KFI_MR_LOCAL | KFI_MR_RAW,
		.cntr_cnt = 7,
		.caps = KFI_LOCAL_COMM,
		.tclass = KFI_TC_BEST_EFFORT,
	};

	expect_text(t, &attr, KFI_TYPE_DOMAIN_ATTR,
		    "kfi_domain_attr:\n"
		    "    domain: (null)\n"
		    "    name: soft0\\x0a\n"
		    "    threading: KFI_THREAD_SAFE\n"
		    "    control_progress: KFI_PROGRESS_MANUAL\n"
		    "    data_progress: KFI_PROGRESS_AUTO\n"
		    "    resource_mgmt: KFI_RM_ENABLED\n"
		    "    av_type: KFI_AV_TABLE\n"
		    "    mr_mode: [ KFI_MR_LOCAL, KFI_MR_RAW ]\n"
		    "    mr_key_size: 0\n"
		    "    cq_data_size: 0\n"
		    "    cq_cnt: 0\n"
		    "    ep_cnt: 0\n"
		    "    tx_ctx_cnt: 0\n"
		    "    rx_ctx_cnt: 0\n"
		    "    max_ep_tx_ctx: 0\n"
		    "    max_ep_rx_ctx: 0\n"
		    "    max_ep_stx_ctx: 0\n"
		    "    max_ep_srx_ctx: 0\n"
		    "    cntr_cnt: 7\n"
		    "    mr_iov_limit: 0\n"
		    "    caps: [ KFI_LOCAL_COMM ]\n"
		    "    mode: [ ]\n"
		    "    auth_key_size: 0\n"
		    "    max_err_data: 0\n"
		    "    mr_cnt: 0\n"
		    "    tclass: KFI_TC_BEST_EFFORT\n");
}

static void fabric_attributes(struct test *t)
{
	struct kfi_fabric_attr attr = {
		.name = "loop",
		.prov_name = "soft",
		.prov_version = KFI_VERSION(2, 3),
		.api_version = KFI_VERSION(1, 7),
	};

	expect_text(t, &attr, KFI_TYPE_FABRIC_ATTR,
		    "kfi_fabric_attr:\n"
		    "    fabric: (null)\n"
		    "    name: loop\n"
		    "    prov_name: soft\n"
		    "    prov_version: 2.3\n"
		    "    api_version: 1.7\n");
	attr.name = NULL;
	attr.prov_name = NULL;
	has_line(t, &attr, KFI_TYPE_FABRIC_ATTR, "    name: (null)");
	has_line(t, &attr, KFI_TYPE_FABRIC_ATTR, "    prov_name: (null)");
}

/* A list is its first entry, with all its parts, of which none has to be there. */
static void lists(struct test *t)
{
	struct kfi_tx_attr tx_attr = { .size = 16 };
	struct kfi_fabric_attr fabric_attr = { .name = "loop" };
	struct kfi_info next = {};
	struct kfi_info info = {
		.next = &next,
		.caps = KFI_MSG | KFI_RMA,
		.mode = KFI_CONTEXT,
		.addr_format = KFI_ADDR_CXI,
	};

	expect_text(t, &info, KFI_TYPE_INFO,
		    "kfi_info:\n"
		    "    caps: [ KFI_MSG, KFI_RMA ]\n"
		    "    mode: [ KFI_CONTEXT ]\n"
		    "    addr_format: KFI_ADDR_CXI\n"
		    "    src_addrlen: 0\n"
		    "    dest_addrlen: 0\n"
		    "    src_addr: (null)\n"
		    "    dest_addr: (null)\n"
		    "    handle: (null)\n"
		    "    kfi_tx_attr: (null)\n"
		    "    kfi_rx_attr: (null)\n"
		    "    kfi_ep_attr: (null)\n"
		    "    kfi_domain_attr: (null)\n"
		    "    kfi_fabric_attr: (null)\n");
	info.tx_attr = &tx_attr;
	info.fabric_attr = &fabric_attr;
	has_line(t, &info, KFI_TYPE_INFO, "    kfi_tx_attr:");
	has_line(t, &info, KFI_TYPE_INFO, "        size: 16");
	has_line(t, &info, KFI_TYPE_INFO, "    kfi_rx_attr: (null)");
	has_line(t, &info, KFI_TYPE_INFO, "    kfi_fabric_attr:");
	has_line(t, &info, KFI_TYPE_INFO, "        name: loop");
}

/* What the provider offers, and the objects that are open, as the kernel prints pointers. */
static void answers(struct test *t)
{
	struct kfi_info *info = kfi_dupinfo(t->info);
	char line[128];

	if (!expect_true(t, info))
		return;
	info->fabric_attr->fabric = t->fabric;
	info->domain_attr->domain = t->domain;
	info->handle = &t->domain->fid;
	scnprintf(line, sizeof(line), "        name: %s", info->domain_attr->name);
	has_line(t, info, KFI_TYPE_INFO, line);
	scnprintf(line, sizeof(line), "        prov_name: %s", info->fabric_attr->prov_name);
	has_line(t, info, KFI_TYPE_INFO, line);
	scnprintf(line, sizeof(line), "        fabric: 0x%p", t->fabric);
	has_line(t, info, KFI_TYPE_INFO, line);
	scnprintf(line, sizeof(line), "        domain: 0x%p", t->domain);
	has_line(t, info, KFI_TYPE_INFO, line);
	scnprintf(line, sizeof(line), "    handle: 0x%p", &t->domain->fid);
	has_line(t, info, KFI_TYPE_INFO, line);
	has_line(t, info, KFI_TYPE_INFO, "        type: KFI_EP_RDM");
	kfi_freeinfo(info);
}

/* There is a text of each type, and of nothing else; of nothing but the version without data. */
static void types(struct test *t)
{
	const u64 zeros[64] = {};
	enum kfi_type type;
	char *text;

	BUILD_BUG_ON(sizeof(zeros) < sizeof(struct kfi_domain_attr));
	for (type = KFI_TYPE_INFO; type <= KFI_TYPE_OP_TYPE; type++) {
		text = kfi_tostr(zeros, type);
		if (expect_true(t, text))
			expect_true(t, *text);
		kfree(text);
		if (type != KFI_TYPE_VERSION)
			expect_text(t, NULL, type, NULL);
	}
	expect_text(t, NULL, KFI_TYPE_VERSION, "1.7");
	expect_text(t, zeros, KFI_TYPE_OP_TYPE + 1, NULL);
	expect_text(t, zeros, INT_MAX, NULL);
}

/* The core has none, and wants to know where to say so. */
static void no_params(struct test *t)
{
	struct kfi_param *params = ERR_PTR(-EINVAL);
	int count = 5;

	expect(t, kfi_getparams(NULL, &count), -KFI_EINVAL);
	expect(t, count, 5);
	expect(t, kfi_getparams(&params, NULL), -KFI_EINVAL);
	expect_true(t, params == ERR_PTR(-EINVAL));
	expect(t, kfi_getparams(&params, &count), 0);
	expect_true(t, !params);
	expect(t, count, 0);
	kfi_freeparams(params);
}

const struct test_case tostr_tests[] = {
	{ "tostr/names", "", names },
	{ "tostr/no-names", "", no_names },
	{ "tostr/flag-names", "", flag_names },
	{ "tostr/sets", "", sets },
	{ "tostr/addresses", "", addresses },
	{ "tostr/transmit-attributes", "", transmit_attributes },
	{ "tostr/traffic-classes", "", traffic_classes },
	{ "tostr/receive-attributes", "", receive_attributes },
	{ "tostr/endpoint-attributes", "", endpoint_attributes },
	{ "tostr/domain-attributes", "", domain_attributes },
	{ "tostr/fabric-attributes", "", fabric_attributes },
	{ "tostr/lists", "", lists },
	{ "tostr/answers", "", answers },
	{ "tostr/types", "", types },
	{ "params/none", "", no_params },
	{}
};
