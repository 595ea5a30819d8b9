/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A consumer of the shape that network drivers of file systems have: nodes with
 * a scalable endpoint, a pair of contexts for each of some CPUs, large buffers
 * for many short messages, and long data by way of tagged receives that the
 * peer reads from or writes to.
 *
 * Locking: there is none but the completion queues' own. Each step of a
 * transaction is made by one party, and the last one of them ends it.
 */
#ifndef KFI_CONSUMER_LND_H
#define KFI_CONSUMER_LND_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include <kfabric.h>
#include <kfi_cxi_ext.h>
#include <kfi_domain.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>
#include <kfi_errno.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

/* Nodes, each on a NIC of its own, and their contexts. */
#define NODES		2
#define PAIRS		2
/* CPUs that read one completion queue. */
#define READERS		2
/* Buffers of a receive context, in which many messages land. */
#define BUFFERS		8
#define BUFFER_SIZE	(2UL << 20)
/* The longest message; a buffer with less room than that is given back. */
#define MESSAGE_SIZE	4096
/* The longest data. */
#define PAGES		256
/* Most data is shorter. */
#define SHORT_PAGES	8
/* Bits of an address that say which receive context is meant. */
#define RX_CTX_BITS	8

#define PROBLEMS	20

struct lnd_end;
struct lnd_node;

/**
 * struct lnd_buffer - a buffer for messages
 * @end: the receive context that it is posted to
 * @page: its memory
 * @data: its memory
 * @users: the post, and everybody who looks at a message in it
 * @repost: posts it again once nobody can be about to become a user
 */
struct lnd_buffer {
	struct lnd_end *end;
	struct page *page;
	void *data;
	atomic_t users;
	struct rcu_work repost;
};

/**
 * struct lnd_reader - a CPU's part in reading a completion queue
 * @queue: the queue
 * @work: reads
 */
struct lnd_reader {
	struct lnd_queue *queue;
	struct work_struct work;
};

/**
 * struct lnd_queue - a completion queue
 * @end: where it belongs
 * @cq: the queue
 * @transmit: of the transmit context
 * @reader: who read it
 */
struct lnd_queue {
	struct lnd_end *end;
	struct kfid_cq *cq;
	bool transmit;
	struct lnd_reader reader[READERS];
};

/**
 * struct lnd_end - a transmit and a receive context
 * @node: their node
 * @number: their number
 * @tx_queue: queue of @tx
 * @rx_queue: queue of @rx
 * @tx: transmit context
 * @rx: receive context
 * @buffer: buffers posted to @rx
 */
struct lnd_end {
	struct lnd_node *node;
	unsigned int number;
	struct lnd_queue tx_queue;
	struct lnd_queue rx_queue;
	struct kfid_ep *tx;
	struct kfid_ep *rx;
	struct lnd_buffer buffer[BUFFERS];
};

/**
 * struct lnd_node - a node
 * @fabric: fabric
 * @domain: domain
 * @device: device to map memory for, or NULL
 * @av: address vector
 * @sep: scalable endpoint
 * @address: its address
 * @peer: addresses of the nodes
 * @end: contexts
 * @stopping: nothing is posted any more
 */
struct lnd_node {
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct device *device;
	struct kfid_av *av;
	struct kfid_ep *sep;
	struct kcxi_addr address;
	kfi_addr_t peer[NODES];
	struct lnd_end end[PAIRS];
	bool stopping;
};

/**
 * enum lnd_kind - what a transaction is
 * @LND_MESSAGE: a message
 * @LND_GET: a message, upon which the peer writes to a tagged receive
 * @LND_PUT: a message, upon which the peer reads from a tagged receive
 * @LND_NAK: a message, upon which the peer sends a status to a tagged receive
 * @LND_CANCEL: a tagged receive that is cancelled
 */
enum lnd_kind {
	LND_MESSAGE,
	LND_GET,
	LND_PUT,
	LND_NAK,
	LND_CANCEL,
	LND_KINDS,
};

/* How far the beginning of a transaction has got. */
enum lnd_phase {
	PHASE_PREPARE,
	PHASE_TAGGED,
	PHASE_MESSAGE,
};

/* The steps that a transaction waits for, as bits. */
enum lnd_step {
	/* The message was sent. */
	STEP_SENT,
	/* The message has arrived. */
	STEP_ARRIVED,
	/* The tagged receive has ended. */
	STEP_TAGGED,
	/* The peer's answer has ended. */
	STEP_ANSWERED,
};

/**
 * struct lnd_memory - memory of one side
 * @sgt: its pages, as long as the data of the transaction is
 * @page: all of its pages
 * @count: number of @page
 * @mapped: @sgt is mapped for the device
 */
struct lnd_memory {
	struct sg_table sgt;
	struct page *page[PAGES];
	unsigned int count;
	bool mapped;
};

/**
 * struct lnd_transaction - a transaction
 * @number: which one it is; part of its tags
 * @round: how many were made with it
 * @kind: what it is
 * @from: who begins it
 * @to: the peer
 * @phase: how far its beginning has got
 * @steps: what has yet to come
 * @seed: of all that is sent
 * @len: bytes of the message, or of the data
 * @message: message to be sent
 * @own: memory of @from
 * @peer: memory of @to
 * @begin: begins the next one
 * @answer: does what the message asks for
 * @end: checks and ends it
 * @random: decides
 */
struct lnd_transaction {
	unsigned int number;
	u32 round;
	enum lnd_kind kind;
	struct lnd_end *from;
	struct lnd_end *to;
	enum lnd_phase phase;
	unsigned long steps;
	u32 seed;
	size_t len;
	void *message;
	struct lnd_memory own;
	struct lnd_memory peer;
	struct delayed_work begin;
	struct delayed_work answer;
	struct work_struct end;
	struct rnd_state random;
};

extern struct workqueue_struct *lnd_wq;
extern struct lnd_node lnd_node[NODES];

/* lnd_main.c */
__printf(1, 2) void lnd_problem(const char *format, ...);

/* lnd_node.c */
int lnd_node_open(struct lnd_node *node, const char *device, u16 port);
int lnd_node_meet(struct lnd_node *node);
void lnd_node_close(struct lnd_node *node);

/* lnd_end.c */
int lnd_end_open(struct lnd_end *end, struct lnd_node *node, unsigned int number);
int lnd_end_post(struct lnd_end *end);
void lnd_end_stop(struct lnd_end *end);
void lnd_end_close(struct lnd_end *end);
void lnd_buffer_put(struct lnd_buffer *buffer);

/* lnd_queue.c */
int lnd_queue_open(struct lnd_queue *queue, struct lnd_end *end, size_t size, bool transmit);
void lnd_queue_close(struct lnd_queue *queue);

/* lnd_transaction.c */
int lnd_run(unsigned int count, unsigned int in_flight, bool within, u64 seed);
void lnd_free(void);
void lnd_arrived(struct lnd_end *end, struct lnd_buffer *buffer,
		 const struct kfi_cq_data_entry *entry);
void lnd_step(struct lnd_transaction *t, enum lnd_step step);
bool lnd_is_transaction(const void *context);

#endif
