// SPDX-License-Identifier: GPL-2.0
/*
 * A receiver whose completion queue has no room: requests that are refused do not
 * wait for that, and nobody looks for it again and again.
 */
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/slab.h>
#include <linux/stop_machine.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include <kfi_trigger.h>

#include "transfer.h"

/* More than is copied in the context of a caller. */
enum { LARGE = 32 << 10 };

/* Receives that are cancelled fill a queue for fewer entries. */
static void post_some(struct test *t, struct end *e, u8 *to)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		expect(t, kfi_recv(e->ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(100 + i)), 0);
}

static void crowd(struct test *t, struct end *e)
{
	unsigned int i;
	u8 byte;

	for (i = 0; i < 4; i++)
		expect(t, kfi_cancel(&e->ep->fid, CONTEXT(100 + i)), 0);
	expect(t, kfi_recv(e->ep, &byte, 1, NULL, KFI_ADDR_UNSPEC, CONTEXT(99)), -KFI_EAGAIN);
}

/*
 * A request that the target does not allow has no completion there: the sender is
 * told at once, also where others carry it out.
 */
static void not_allowed(struct test *t)
{
	const struct setup narrow = { .rx_cq_size = 1, .caps = KFI_MSG | KFI_RMA };
	static const size_t lengths[] = { 8, LARGE };
	struct area from, region;
	struct kfid_mr *mr;
	struct end a, b;
	unsigned int i;
	u8 to[8];

	if (!pair_open(t, &a, &b, NULL, &narrow))
		return;
	if (!area_alloc(t, &from, MEM_VMALLOC, 0, LARGE))
		goto close;
	if (!area_alloc(t, &region, MEM_VMALLOC, 0, LARGE))
		goto free;
	mr = region_open(t, &b, region.data, LARGE, KFI_REMOTE_READ, 1);
	post_some(t, &b, to);
	crowd(t, &b);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		if (strict) {
			expect(t, kfi_tsend(a.ep, from.data, lengths[i], NULL, a.peer, 1,
					    CONTEXT(1)), 0);
			expect_failure(t, a.tx_cq, CONTEXT(1), TSENT, KFI_EACCES, 0, 0);
		}
		expect(t, kfi_writedata(a.ep, from.data, lengths[i], NULL, 7, a.peer, 0, 1,
					CONTEXT(2)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(2), WRITTEN, KFI_EACCES, 0, 0);
		expect(t, kfi_writedata(a.ep, from.data, lengths[i], NULL, 7, a.peer, 0, 2,
					CONTEXT(3)), 0);
		expect_failure(t, a.tx_cq, CONTEXT(3), WRITTEN, KFI_EKEYREJECTED, 0, 0);
		say(t, "%zu bytes", lengths[i]);
	}
	for (i = 0; i < 4; i++)
		expect_failure(t, b.rx_cq, CONTEXT(100 + i), RECEIVED, KFI_ECANCELED, 0, 0);
	expect_nothing(t, b.rx_cq);
	if (mr)
		close_fid(t, &mr->fid);
	area_free(&region);
free:
	area_free(&from);
close:
	pair_close(t, &a, &b);
}

/*
 * A tagged RMA that only a buffer for several messages wants is refused, too,
 * and no message behind it stalls.
 */
static void no_region(struct test *t)
{
	const struct setup narrow = { .rx_cq_size = 1 };
	static struct kfi_triggered_context trigger;
	u8 from[8] = { 1, 2, 3 }, to[64];
	struct kvec iov = { from, 8 }, buffer = { to, sizeof(to) };
	struct kfi_rma_iov remote = { .len = 8, .key = 5 };
	struct kfi_msg_rma rma = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1, .rma_iov = &remote,
		.rma_iov_count = 1, .context = CONTEXT(1),
	};
	struct kfi_msg_tagged multi = {
		.type = KFI_KVEC, .msg_iov = &buffer, .iov_count = 1, .addr = KFI_ADDR_UNSPEC,
		.tag = 5, .context = &trigger,
	};
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, &narrow))
		return;
	trigger.event_type = KFI_TRIGGER_THRESHOLD;
	trigger.trigger.threshold.cntr = b.cntr[COUNT_READ];
	trigger.trigger.threshold.threshold = 1;
	expect(t, kfi_trecvmsg(b.ep, &multi, KFI_TRIGGER | KFI_MULTI_RECV), 0);
	post_some(t, &b, to);
	rma.addr = a.peer;
	/* It waits for a receive when there is room, and there is none when one comes. */
	expect(t, kfi_writemsg(a.ep, &rma, KFI_TAGGED), 0);
	wait_for_arrival(t);
	crowd(t, &b);
	expect(t, kfi_cntr_add(b.cntr[COUNT_READ], 1), 0);
	expect_failure(t, a.tx_cq, CONTEXT(1), TWRITTEN, KFI_EACCES, 0, 0);
	for (i = 0; i < 4; i++)
		expect_failure(t, b.rx_cq, CONTEXT(100 + i), RECEIVED, KFI_ECANCELED, 0, 0);
	/* The buffer is there, for messages, one of which uses it up. */
	expect(t, kfi_tsend(a.ep, from, 8, NULL, a.peer, 5, CONTEXT(2)), 0);
	expect_completion(t, b.rx_cq, &trigger, TRECEIVED | KFI_MULTI_RECV, 8);
	expect_completion(t, a.tx_cq, CONTEXT(2), TSENT, 8);
	expect(t, memcmp(from, to, 8), 0);
	pair_close(t, &a, &b);
}

/* Waits for some time, or until something of a sender fails: then its work begins. */
static void wait_quietly(struct kfid_cntr *sent)
{
	unsigned long until = jiffies + max(10UL, msecs_to_jiffies(50));

	while (time_before(jiffies, until) && !kfi_cntr_readerr(sent))
		schedule_timeout_uninterruptible(1);
}

#ifdef CONFIG_TRACEPOINTS
/* Counts how often work of the provider begins. */
struct working {
	struct tracepoint *begins;
	atomic_t times;
};

static void find_tracepoint(struct tracepoint *tp, void *arg)
{
	struct working *working = arg;

	if (!strcmp(tp->name, "workqueue_execute_start"))
		working->begins = tp;
}

static void count_work(void *arg, struct work_struct *work)
{
	struct working *working = arg;
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol(name, (unsigned long)work->func);
	if (strstr(name, "[kfi_soft]"))
		atomic_inc(&working->times);
}

/* Returns how often work begins while nothing fails; -1 if the kernel does not tell. */
static int count_works(struct test *t, struct kfid_cntr *sent)
{
	struct working working = {};

	for_each_kernel_tracepoint(find_tracepoint, &working);
	if (!working.begins)
		return -1;
	if (!expect(t, tracepoint_probe_register(working.begins, count_work, &working), 0))
		return -1;
	wait_quietly(sent);
	tracepoint_probe_unregister(working.begins, count_work, &working);
	tracepoint_synchronize_unregister();
	return atomic_read(&working.times);
}
#else
static int count_works(struct test *t, struct kfid_cntr *sent)
{
	wait_quietly(sent);
	return -1;
}
#endif

/*
 * Work of the provider does not begin again and again: it looks after 10 ms, and a timer
 * takes up to a jiffy more. Where a jiffy is that long, a look at each jiffy is not told
 * from that, but one without any delay is. What was begun before may take its time, so
 * this holds from some time on, before something fails.
 */
static void expect_rest(struct test *t, struct end *sender)
{
	enum { TRIES = 20 };
	unsigned long begin, passed = 0;
	int times = 0, most = 0;
	unsigned int i;

	for (i = 0; i < TRIES && !(i && kfi_cntr_readerr(sender->cntr[COUNT_SEND])); i++) {
		begin = jiffies;
		times = count_works(t, sender->cntr[COUNT_SEND]);
		passed = jiffies - begin;
		if (times < 0)
			pr_info("# this kernel does not tell of work queues\n");
		most = 3 + 2 * passed / (2 + msecs_to_jiffies(10));
		if (times <= most)
			return;
	}
	expect_true(t, times <= most);
	say(t, "%d times in %lu jiffies", times, passed);
}

/* Messages and writes that wait for room do nothing meanwhile, and go on when it is there. */
static void arrivals_rest(struct test *t)
{
	enum { COUNT = 20 };
	const struct setup narrow = { .rx_cq_size = 2, .rx_size = 64 };
	struct kfi_cq_tagged_entry entry;
	u8 from[8] = {}, to[8], target[8];
	struct kfid_mr *mr;
	struct end a, b;
	unsigned int i;

	if (!pair_open(t, &a, &b, NULL, &narrow))
		return;
	mr = region_open(t, &b, target, 8, KFI_REMOTE_WRITE, 1);
	if (!mr)
		goto close;
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(i)), 0);
	for (i = 0; i < COUNT; i++) {
		expect(t, kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(i)), 0);
		expect(t, kfi_writedata(a.ep, from, 8, NULL, i, a.peer, 0, 1, CONTEXT(i)), 0);
	}
	wait_for_arrival(t);
	msleep(A_WHILE);
	expect_rest(t, &a);
	expect_true(t, kfi_cntr_read(b.cntr[COUNT_RECV]) < COUNT);
	for (i = 0; i < 2 * COUNT && await(t, b.rx_cq, &entry, NULL); i++)
		;
	expect_count(t, b.cntr[COUNT_RECV], COUNT, 0);
	expect_count(t, b.cntr[COUNT_REMOTE_WRITE], COUNT, 0);
	expect_nothing(t, b.rx_cq);
	close_fid(t, &mr->fid);
close:
	pair_close(t, &a, &b);
}

/* A look that finds nothing among many, and a buffer for which there is too little room. */
struct posting {
	struct end *end;
	u8 *to;
	size_t len;
	ssize_t looks;
	ssize_t posts;
};

/* On one CPU, while nothing runs on the others. */
static int look_and_post(void *arg)
{
	struct posting *p = arg;
	struct kvec iov = { p->to, p->len };
	struct kfi_msg_tagged look = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1, .addr = KFI_ADDR_UNSPEC,
		.tag = U64_MAX, .context = CONTEXT(1),
	};
	struct kfi_msg multi = {
		.type = KFI_KVEC, .msg_iov = &iov, .iov_count = 1, .addr = KFI_ADDR_UNSPEC,
		.context = CONTEXT(2),
	};

	p->looks = kfi_trecvmsg(p->end->ep, &look, KFI_PEEK);
	p->posts = kfi_recvmsg(p->end->ep, &multi, KFI_MULTI_RECV);
	return 0;
}

/*
 * A look that a work queue is to answer waits until the messages before it have
 * room, and the work queue does nothing meanwhile.
 */
static void looks_rest(struct test *t)
{
	enum { OTHERS = 400, COUNT = 100 };
	const struct setup many = { .tx_cq_size = 1024, .tx_size = 1024 };
	const struct setup narrow = { .rx_cq_size = 2 };
	struct kfi_cq_err_entry error = {};
	struct kfi_cq_tagged_entry entry;
	unsigned long until;
	struct posting p;
	unsigned int i;
	struct end a, b;
	u8 byte = 1;
	ssize_t ret;

	p = (struct posting) { .end = &b, .len = 2 * COUNT };
	p.to = kzalloc(p.len, GFP_KERNEL);
	if (!expect_true(t, p.to) || !pair_open(t, &a, &b, &many, &narrow))
		goto free;
	for (i = 0; i < OTHERS; i++)
		expect(t, kfi_tinject(a.ep, &byte, 1, a.peer, i), 0);
	for (i = 0; i < COUNT; i++)
		expect(t, kfi_injectdata(a.ep, &byte, 1, i, a.peer), 0);
	wait_for_arrival(t);
	expect(t, stop_machine(look_and_post, &p, NULL), 0);
	expect(t, p.looks, 0);
	expect(t, p.posts, 0);
	/* Then all is done for which there is room. */
	msleep(A_WHILE);
	expect_rest(t, &a);
	/* Messages that have room come in order, and the answer with them, behind any number. */
	i = 0;
	until = jiffies + msecs_to_jiffies(SOON);
	do {
		ret = kfi_cq_read(b.rx_cq, &entry, 1);
		if (ret == -KFI_EAGAIN)
			usleep_range(50, 100);
		else if (ret == 1)
			expect(t, entry.data, i++);
	} while (ret != -KFI_EAVAIL && !t->failed && expect_true(t, time_before(jiffies, until)));
	if (expect(t, ret, -KFI_EAVAIL) && expect(t, kfi_cq_readerr(b.rx_cq, &error, 0), 1)) {
		expect(t, error.op_context, CONTEXT(1));
		expect(t, error.err, KFI_ENOMSG);
	}
	pair_close(t, &a, &b);
free:
	kfree(p.to);
}

const struct test_case crowded_tests[] = {
	{ "backlog/not-allowed", "", not_allowed },
	{ "backlog/no-region", "", no_region },
	{ "backlog/arrivals-rest", "", arrivals_rest },
	{ "waiting/looks-rest", "R-TRIG-26", looks_rest },
	{}
};
