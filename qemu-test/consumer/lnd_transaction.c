// SPDX-License-Identifier: GPL-2.0
/*
 * Transactions: random ones, many at a time, each checked to the last byte.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "lnd.h"

#define MAGIC 0x6c6e645f74657374ULL
/* Without a transaction that ends for so long, in ms, something is wrong. */
#define STALLED 60000

/**
 * struct lnd_message - what a message begins with
 * @magic: MAGIC
 * @number: transaction
 * @round: and which of those that were made with it
 * @seed: of what follows
 * @len: bytes of the message
 */
struct lnd_message {
	u64 magic;
	u32 number;
	u32 round;
	u32 seed;
	u32 len;
};

static struct lnd_transaction *transactions;
static unsigned int in_flight;
static bool is_within;
static unsigned int wanted;
static atomic_t started;
static atomic_t ended;
static atomic_t live;

bool lnd_is_transaction(const void *context)
{
	const struct lnd_transaction *t = context;

	return t >= transactions && t < transactions + in_flight;
}

static u64 tag_of(const struct lnd_transaction *t)
{
	return (u64)t->round << 32 | t->number;
}

static u64 pattern(u32 seed, size_t at)
{
	return (seed | 1) * 0x9e3779b97f4a7c15ULL + at;
}

static void fill(void *data, size_t len, u32 seed, size_t at)
{
	u64 word;

	for (; len; len -= min(len, sizeof(word)), data += sizeof(word), at++) {
		word = pattern(seed, at);
		memcpy(data, &word, min(len, sizeof(word)));
	}
}

static bool has(const void *data, size_t len, u32 seed, size_t at)
{
	u64 word;

	for (; len; len -= min(len, sizeof(word)), data += sizeof(word), at++) {
		word = pattern(seed, at);
		if (memcmp(data, &word, min(len, sizeof(word))))
			return false;
	}
	return true;
}

/* Goes through the bytes of a transaction in the pages of one side. */
static bool for_pages(struct lnd_memory *memory, size_t len, u32 seed, bool check)
{
	unsigned int i;

	for (i = 0; len; i++) {
		size_t part = min(len, PAGE_SIZE);
		void *data = page_address(memory->page[i]);
		size_t at = i * (PAGE_SIZE / sizeof(u64));

		if (!check)
			fill(data, part, seed, at);
		else if (!has(data, part, seed, at))
			return false;
		len -= part;
	}
	return true;
}

static int map(struct lnd_memory *memory, struct lnd_end *end, size_t len,
	       enum dma_data_direction direction)
{
	int ret;

	ret = sg_alloc_table_from_pages(&memory->sgt, memory->page,
					DIV_ROUND_UP(len, PAGE_SIZE), 0, len, GFP_KERNEL);
	if (ret || !IS_ENABLED(CONFIG_HAS_DMA))
		return ret;
	ret = dma_map_sgtable(end->node->device, &memory->sgt, direction, 0);
	memory->mapped = !ret;
	return ret;
}

static void unmap(struct lnd_memory *memory, struct lnd_end *end,
		  enum dma_data_direction direction)
{
	if (memory->mapped)
		dma_unmap_sgtable(end->node->device, &memory->sgt, direction, 0);
	memory->mapped = false;
	sg_free_table(&memory->sgt);
}

/* Where data comes from is the peer's side of a get, and one's own of a put. */
static enum dma_data_direction direction_of(const struct lnd_transaction *t, bool own)
{
	return (t->kind == LND_PUT) == own ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
}

static struct lnd_memory *memory_of(struct lnd_transaction *t, bool source)
{
	return (t->kind == LND_PUT) == source ? &t->own : &t->peer;
}

static unsigned int node_number(const struct lnd_end *end)
{
	return end->node - lnd_node;
}

static void schedule_begin(struct lnd_transaction *t)
{
	unsigned int cpu = t->number % num_online_cpus();

	if (atomic_inc_return(&started) > wanted)
		atomic_dec(&live);
	else
		queue_delayed_work_on(cpu, lnd_wq, &t->begin, 0);
}

static void choose(struct lnd_transaction *t)
{
	static const unsigned long steps[LND_KINDS] = {
		[LND_MESSAGE] = BIT(STEP_SENT) | BIT(STEP_ARRIVED),
		[LND_GET] = BIT(STEP_SENT) | BIT(STEP_ARRIVED) | BIT(STEP_TAGGED) |
			    BIT(STEP_ANSWERED),
		[LND_PUT] = BIT(STEP_SENT) | BIT(STEP_ARRIVED) | BIT(STEP_TAGGED) |
			    BIT(STEP_ANSWERED),
		[LND_NAK] = BIT(STEP_SENT) | BIT(STEP_ARRIVED) | BIT(STEP_TAGGED) |
			    BIT(STEP_ANSWERED),
		[LND_CANCEL] = BIT(STEP_TAGGED),
	};
	struct rnd_state *random = &t->random;
	unsigned int from = prandom_u32_state(random) % NODES;
	unsigned int to = is_within ? from : (from + 1) % NODES;

	t->round++;
	t->kind = prandom_u32_state(random) % LND_KINDS;
	t->from = &lnd_node[from].end[prandom_u32_state(random) % PAIRS];
	t->to = &lnd_node[to].end[prandom_u32_state(random) % PAIRS];
	t->seed = prandom_u32_state(random);
	if (t->kind == LND_MESSAGE)
		t->len = sizeof(struct lnd_message) +
			 prandom_u32_state(random) % (MESSAGE_SIZE - sizeof(struct lnd_message));
	else
		t->len = 1 + prandom_u32_state(random) % (t->own.count * PAGE_SIZE);
	WRITE_ONCE(t->steps, steps[t->kind]);
}

/* The message is what is long, or asks for what is long. */
static size_t message_len(const struct lnd_transaction *t)
{
	return t->kind == LND_MESSAGE ? t->len : sizeof(struct lnd_message);
}

static int prepare(struct lnd_transaction *t)
{
	struct lnd_message *message = t->message;

	choose(t);
	*message = (struct lnd_message) {
		.magic = MAGIC,
		.number = t->number,
		.round = t->round,
		.seed = t->seed,
		.len = message_len(t),
	};
	fill(message + 1, message->len - sizeof(*message), t->seed, 0);
	if (t->kind == LND_MESSAGE)
		return 0;
	for_pages(memory_of(t, true), t->len, t->seed, false);
	for_pages(memory_of(t, false), t->len, ~t->seed, false);
	return map(&t->own, t->from, t->len, direction_of(t, true));
}

/* The buffer that the peer may use once, or a status may come for. */
static int post_tagged(struct lnd_transaction *t)
{
	struct kfi_msg_tagged message = {
		.type = KFI_SGL,
		.msg_sgl = t->own.sgt.sgl,
		.iov_count = t->own.sgt.nents,
		.addr = t->from->node->peer[node_number(t->to)],
		.tag = tag_of(t),
		.context = t,
	};

	return kfi_trecvmsg(t->from->rx, &message, KFI_COMPLETION);
}

static int post_message(struct lnd_transaction *t)
{
	kfi_addr_t addr = kfi_rx_addr(t->from->node->peer[node_number(t->to)], t->to->number,
				      RX_CTX_BITS);

	if (t->kind == LND_CANCEL)
		return kfi_cancel(&t->from->rx->fid, t);
	return kfi_send(t->from->tx, t->message, message_len(t), NULL, addr, t);
}

/*
 * Begins a transaction; where it has got to if a queue is full is what is yet to
 * be done again. Nobody else touches it before its message is sent.
 */
static void begin(struct work_struct *work)
{
	struct lnd_transaction *t = container_of(to_delayed_work(work), struct lnd_transaction,
						 begin);
	int ret = 0;

	switch (t->phase) {
	case PHASE_PREPARE:
		ret = prepare(t);
		if (ret)
			break;
		t->phase = t->kind == LND_MESSAGE ? PHASE_MESSAGE : PHASE_TAGGED;
		fallthrough;
	case PHASE_TAGGED:
		if (t->kind != LND_MESSAGE)
			ret = post_tagged(t);
		if (ret)
			break;
		t->phase = PHASE_MESSAGE;
		fallthrough;
	case PHASE_MESSAGE:
		/* Once it is posted the transaction may end, and the next one begin. */
		t->phase = PHASE_PREPARE;
		ret = post_message(t);
		if (ret)
			t->phase = PHASE_MESSAGE;
		break;
	}
	if (ret == -KFI_EAGAIN) {
		queue_delayed_work(lnd_wq, &t->begin, 1);
	} else if (ret) {
		lnd_problem("kind %u cannot be posted: %d", t->kind, ret);
		atomic_dec(&live);
	}
}

/* The peer does what it was asked for. */
static void answer(struct work_struct *work)
{
	struct lnd_transaction *t = container_of(to_delayed_work(work), struct lnd_transaction,
						 answer);
	struct kfi_rma_iov iov = { .len = t->len, .key = tag_of(t) };
	struct kfi_msg_rma message = {
		.type = KFI_SGL,
		.addr = kfi_rx_addr(t->to->node->peer[node_number(t->from)], t->from->number,
				    RX_CTX_BITS),
		.rma_iov = &iov,
		.rma_iov_count = 1,
		.context = t,
	};
	int ret = 0;

	if (t->kind != LND_NAK && !t->peer.sgt.sgl)
		ret = map(&t->peer, t->to, t->len, direction_of(t, false));
	message.msg_sgl = t->peer.sgt.sgl;
	message.iov_count = t->peer.sgt.nents;
	if (ret)
		goto out;
	switch (t->kind) {
	case LND_GET:
		ret = kfi_writemsg(t->to->tx, &message, KFI_TAGGED | KFI_COMPLETION);
		break;
	case LND_PUT:
		ret = kfi_readmsg(t->to->tx, &message, KFI_TAGGED | KFI_COMPLETION);
		break;
	case LND_NAK:
		ret = kfi_tsenddata(t->to->tx, NULL, 0, NULL, t->seed, message.addr, iov.key, t);
		break;
	default:
		break;
	}
out:
	if (ret == -KFI_EAGAIN)
		queue_delayed_work(lnd_wq, &t->answer, 1);
	else if (ret)
		lnd_problem("kind %u cannot be answered: %d", t->kind, ret);
}

/* A message has landed in a buffer. */
void lnd_arrived(struct lnd_end *end, struct lnd_buffer *buffer,
		 const struct kfi_cq_data_entry *entry)
{
	const struct lnd_message *message = entry->buf;
	struct lnd_transaction *t;
	size_t offset = entry->buf - buffer->data;

	if (buffer->end != end || offset >= BUFFER_SIZE || entry->len > BUFFER_SIZE - offset ||
	    entry->len < sizeof(*message) || entry->data) {
		lnd_problem("landed at %zu, %zu bytes, data %#llx", offset, entry->len,
			    entry->data);
		return;
	}
	if (message->magic != MAGIC || message->number >= in_flight ||
	    message->len != entry->len) {
		lnd_problem("landed at %zu, %zu bytes: no message", offset, entry->len);
		return;
	}
	t = &transactions[message->number];
	if (message->round != t->round || end != t->to ||
	    !has(message + 1, message->len - sizeof(*message), message->seed, 0))
		lnd_problem("message %u of round %u, not %u", message->number, message->round,
			    t->round);
	if (t->kind != LND_MESSAGE)
		queue_delayed_work(lnd_wq, &t->answer, 0);
	lnd_step(t, STEP_ARRIVED);
}

/* One of the steps has been made; the last one ends the transaction. */
void lnd_step(struct lnd_transaction *t, enum lnd_step step)
{
	unsigned long old, new;

	do {
		old = READ_ONCE(t->steps);
		new = old & ~BIT(step);
	} while (cmpxchg(&t->steps, old, new) != old);
	if (!(old & BIT(step)))
		lnd_problem("kind %u: step %u again", t->kind, step);
	else if (!new)
		queue_work(lnd_wq, &t->end);
}

static void end(struct work_struct *work)
{
	struct lnd_transaction *t = container_of(work, struct lnd_transaction, end);

	if (t->own.sgt.sgl)
		unmap(&t->own, t->from, direction_of(t, true));
	if (t->peer.sgt.sgl)
		unmap(&t->peer, t->to, direction_of(t, false));
	if ((t->kind == LND_GET || t->kind == LND_PUT) &&
	    !for_pages(memory_of(t, false), t->len, t->seed, true))
		lnd_problem("kind %u, %zu bytes: other ones", t->kind, t->len);
	if ((t->kind == LND_NAK || t->kind == LND_CANCEL) &&
	    !for_pages(&t->own, t->len, ~t->seed, true))
		lnd_problem("kind %u, %zu bytes: written to", t->kind, t->len);
	atomic_inc(&ended);
	schedule_begin(t);
}

static void free_memory(struct lnd_memory *memory)
{
	while (memory->count)
		__free_page(memory->page[--memory->count]);
}

static int alloc_memory(struct lnd_memory *memory, unsigned int pages)
{
	for (; memory->count < pages; memory->count++) {
		memory->page[memory->count] = alloc_page(GFP_KERNEL);
		if (!memory->page[memory->count])
			return -ENOMEM;
	}
	return 0;
}

/* After all nodes are closed, if a transaction has not ended. */
void lnd_free(void)
{
	unsigned int i;

	for (i = 0; transactions && i < in_flight; i++) {
		free_memory(&transactions[i].own);
		free_memory(&transactions[i].peer);
		kfree(transactions[i].message);
	}
	kvfree(transactions);
	transactions = NULL;
	in_flight = 0;
}

static int alloc_all(unsigned int count, u64 seed)
{
	unsigned int i;
	int ret;

	transactions = kvcalloc(count, sizeof(*transactions), GFP_KERNEL);
	if (!transactions)
		return -ENOMEM;
	in_flight = count;
	for (i = 0; i < count; i++) {
		struct lnd_transaction *t = &transactions[i];
		/* A few have as much data as there can be. */
		unsigned int pages = i % 32 ? SHORT_PAGES : PAGES;

		t->number = i;
		prandom_seed_state(&t->random, seed + i);
		INIT_DELAYED_WORK(&t->begin, begin);
		INIT_DELAYED_WORK(&t->answer, answer);
		INIT_WORK(&t->end, end);
		t->message = kzalloc(MESSAGE_SIZE, GFP_KERNEL);
		if (!t->message)
			return -ENOMEM;
		ret = alloc_memory(&t->own, pages);
		ret = ret ?: alloc_memory(&t->peer, pages);
		if (ret)
			return ret;
	}
	return 0;
}

/* Makes so many transactions, between the nodes or within each of them. */
int lnd_run(unsigned int count, unsigned int at_a_time, bool within, u64 seed)
{
	unsigned int i, before = 0, ms = 0;
	int ret = alloc_all(at_a_time, seed);

	if (ret) {
		lnd_free();
		return ret;
	}
	wanted = count;
	is_within = within;
	atomic_set(&started, 0);
	atomic_set(&ended, 0);
	atomic_set(&live, at_a_time);
	for (i = 0; i < at_a_time; i++)
		schedule_begin(&transactions[i]);
	while (atomic_read(&live)) {
		msleep(20);
		ms = before == atomic_read(&ended) ? ms + 20 : 0;
		before = atomic_read(&ended);
		if (ms < STALLED)
			continue;
		for (i = 0; i < at_a_time; i++) {
			if (transactions[i].steps)
				lnd_problem("kind %u waits for steps %#lx", transactions[i].kind,
					    transactions[i].steps);
		}
		return -ETIMEDOUT;
	}
	flush_workqueue(lnd_wq);
	lnd_free();
	return before == count ? 0 : -EIO;
}
