/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For all tests of data transfers: endpoints with all that they need, memory
 * with a pattern in it, every way to post an operation, completions.
 */
#ifndef KFI_CONSUMER_TRANSFER_H
#define KFI_CONSUMER_TRANSFER_H

#include <linux/bvec.h>
#include <linux/scatterlist.h>
#include <linux/uio.h>

#include <kfi_atomic.h>
#include <kfi_cm.h>
#include <kfi_endpoint.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

#include "completion_flags.h"
#include "objects.h"

/* Operations whose capability was not asked for are refused. */
extern int strict;
/* As the module parameter of the provider, in milliseconds. */
extern unsigned int rnr_timeout;
/* The NICs reach each other, and themselves, over a network. */
extern bool network;

/* Contexts of operations: numbers that tell them apart. */
#define CONTEXT(number) ((void *)(0xc000UL + (number)))

extern const struct test_case basic_tests[];
extern const struct test_case form_tests[];
extern const struct test_case atomic_tests[];
extern const struct test_case receive_tests[];
extern const struct test_case endpoint_tests[];
extern const struct test_case scalable_tests[];
extern const struct test_case room_tests[];
extern const struct test_case region_tests[];
extern const struct test_case error_tests[];
extern const struct test_case backlog_tests[];
extern const struct test_case crowded_tests[];
extern const struct test_case waiting_tests[];
extern const struct test_case late_tests[];
extern const struct test_case busy_tests[];
extern const struct test_case context_tests[];
extern const struct test_case trigger_tests[];
extern const struct test_case chain_tests[];
extern const struct test_case large_tests[];
extern const struct test_case argument_tests[];
extern const struct test_case stress_tests[];

/* The two NICs: their entries of kfi_getinfo(), and a domain on each. */
extern struct kfi_info *nic_info[2];
extern struct kfid_domain *nic_domain[2];

bool nics_open(struct test *t);
void nics_close(struct test *t);

/* Which counter counts what. */
enum counted {
	COUNT_SEND,
	COUNT_RECV,
	COUNT_READ,
	COUNT_WRITE,
	COUNT_REMOTE_READ,
	COUNT_REMOTE_WRITE,
	COUNTERS,
};

/**
 * struct setup - how an endpoint is to be, where 0 is as usual
 * @tx_cq_size: entries of the queue of the transmit direction
 * @rx_cq_size: entries of the queue of the receive direction
 * @tx_size: depth of the transmit context
 * @rx_size: depth of the receive context
 * @tx_bind: further flags of binding the transmit queue
 * @rx_bind: further flags of binding the receive queue
 * @tx_flags: default flags of the transmit direction
 * @rx_flags: default flags of the receive direction
 * @caps: capabilities
 * @no_counters: without counters
 * @no_rx_cq: only counters tell of the receive direction
 * @no_enable: not enabled
 * @rx_ctx_bits: of the address vector
 * @domain: instead of that of the NIC
 * @key: authorization key
 * @name: its address, of 8 bytes
 * @handler: of the receive queue
 * @handler_context: for @handler
 * @srx: shared receive context
 * @stx: shared transmit context
 */
struct setup {
	size_t tx_cq_size;
	size_t rx_cq_size;
	size_t tx_size;
	size_t rx_size;
	u64 tx_bind;
	u64 rx_bind;
	u64 tx_flags;
	u64 rx_flags;
	u64 caps;
	bool no_counters;
	bool no_rx_cq;
	bool no_enable;
	int rx_ctx_bits;
	struct kfid_domain *domain;
	const char *key;
	const void *name;
	kfi_comp_handler handler;
	void *handler_context;
	struct kfid_ep *srx;
	struct kfid_stx *stx;
};

/**
 * struct end - an endpoint and what is bound to it
 * @nic: number of its NIC
 * @domain: its domain
 * @av: address vector
 * @tx_cq: queue of the transmit direction
 * @rx_cq: queue of the receive direction
 * @cntr: counters
 * @ep: the endpoint
 * @peer: address of the peer in @av
 */
struct end {
	unsigned int nic;
	struct kfid_domain *domain;
	struct kfid_av *av;
	struct kfid_cq *tx_cq;
	struct kfid_cq *rx_cq;
	struct kfid_cntr *cntr[COUNTERS];
	struct kfid_ep *ep;
	kfi_addr_t peer;
};

bool end_open(struct test *t, struct end *e, unsigned int nic,
	      const struct setup *setup);
void end_close(struct test *t, struct end *e);
bool end_knows(struct test *t, struct end *e, struct kfid_ep *peer,
	       kfi_addr_t *addr);
bool pair_open(struct test *t, struct end *a, struct end *b,
	       const struct setup *setup_a, const struct setup *setup_b);
void pair_close(struct test *t, struct end *a, struct end *b);

struct kfid_cq *cq_open(struct test *t, struct kfid_domain *domain, size_t size);

/* Endpoints of wait_for_arrival(), one on each NIC. */
bool couriers_open(struct test *t);
void couriers_close(struct test *t);

/*
 * Waits until all that was posted and cancelled so far has come to where it goes,
 * and was answered if it could be. Within a node that is so when a call returns,
 * and nothing is done. Over a network the requests of one NIC to another one come
 * in the order in which they were posted, whoever has posted them, if none was
 * refused: so those before a message have come when that has been received.
 */
void wait_for_arrival(struct test *t);

/* Kinds of memory. */
enum memory {
	MEM_KMALLOC,
	MEM_VMALLOC,
	MEMORIES,
};

/* The memory around the bytes that a test uses: its size, and its content. */
#define GUARD	256
#define FILL	0xee

/**
 * struct area - memory with a pattern
 * @base: start of what was allocated
 * @size: bytes of it
 * @data: what is used
 * @len: bytes of it
 */
struct area {
	u8 *base;
	size_t size;
	u8 *data;
	size_t len;
};

bool area_alloc(struct test *t, struct area *area, enum memory memory,
		size_t offset, size_t len);
void area_free(struct area *area);
void area_clear(struct area *area);
void area_fill(struct area *area, u32 seed);
bool area_has(struct test *t, const struct area *area, u32 seed, size_t from,
	      size_t len, size_t pattern_from);
u8 pattern(u32 seed, size_t at);

/* Families of operations. */
enum family {
	F_SEND,
	F_RECV,
	F_TSEND,
	F_TRECV,
	F_WRITE,
	F_READ,
	FAMILIES,
};

/* Forms of operations. */
enum form {
	FORM_PLAIN,
	FORM_KVEC,
	FORM_BVEC,
	FORM_SGL,
	FORM_MSG_KVEC,
	FORM_MSG_BVEC,
	FORM_MSG_SGL,
	FORM_DATA,
	FORM_INJECT,
	FORM_INJECT_DATA,
	FORMS,
};

#define VECTOR 256

/* An area in pieces. */
struct pieces {
	struct kvec kvec[VECTOR];
	struct bio_vec bvec[VECTOR];
	struct scatterlist sgl[VECTOR];
	size_t count;
};

/**
 * struct op - an operation
 * @family: what
 * @form: how
 * @buf: memory
 * @len: bytes
 * @flags: flags, for the forms with messages
 * @peer: peer
 * @addr: remote address
 * @key: remote key
 * @tag: tag
 * @ignore: bits that need not match
 * @data: remote completion data
 * @context: context
 * @pieces: for the forms with vectors; NULL for a static one
 */
struct op {
	enum family family;
	enum form form;
	void *buf;
	size_t len;
	u64 flags;
	kfi_addr_t peer;
	u64 addr;
	u64 key;
	u64 tag;
	u64 ignore;
	u64 data;
	void *context;
	struct pieces *pieces;
};

bool form_exists(enum family family, enum form form);
ssize_t op_post(struct kfid_ep *ep, const struct op *op);
const char *form_name(enum form form);

/* Completions. */
bool await(struct test *t, struct kfid_cq *cq, struct kfi_cq_tagged_entry *entry,
	   kfi_addr_t *source);
bool await_error(struct test *t, struct kfid_cq *cq,
		 struct kfi_cq_err_entry *entry);

/* The completions of a queue, by how they ended. */
struct drained {
	u64 good;
	u64 failed;
};

/*
 * Takes all that is in a queue, in whatever order it lies there. A message that was
 * matched when an endpoint closed has been copied or fails with KFI_EHOSTUNREACH.
 */
struct drained drain(struct test *t, struct kfid_cq *cq, void *context);
bool expect_completion_at(struct test *t, struct kfid_cq *cq, void *context,
			  u64 flags, size_t len, const char *file, int line);
bool expect_failure_at(struct test *t, struct kfid_cq *cq, void *context,
		       u64 flags, int err, size_t len, size_t olen,
		       const char *file, int line);
bool expect_count_at(struct test *t, struct kfid_cntr *cntr, u64 value,
		     u64 errors, const char *file, int line);

/* The next entry, by its context, flags and length, which are all compared. */
#define expect_completion(t, cq, context, flags, len)			\
	expect_completion_at(t, cq, context, flags, len, __FILE__, __LINE__)
/* The next entry is an error. */
#define expect_failure(t, cq, context, flags, err, len, olen)		\
	expect_failure_at(t, cq, context, flags, err, len, olen,	\
			  __FILE__, __LINE__)
/* Nothing is in the queue. */
#define expect_nothing(t, cq)						\
	expect(t, kfi_cq_read(cq, &(struct kfi_cq_tagged_entry) {}, 1),	\
	       -KFI_EAGAIN)
/* A counter reaches both values, and no more. */
#define expect_count(t, cntr, value, errors)				\
	expect_count_at(t, cntr, value, errors, __FILE__, __LINE__)

struct kfid_mr *region_open(struct test *t, struct end *e, void *buf, size_t len,
			    u64 access, u64 key);

/* Says in the log what a table is at, once the test has failed. */
#define say(t, format, ...)						\
	do {								\
		if ((t)->failed)					\
			pr_info("#   " format "\n", ##__VA_ARGS__);	\
	} while (0)

#endif
