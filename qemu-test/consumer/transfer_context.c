// SPDX-License-Identifier: GPL-2.0
/*
 * Posting, cancelling and reading from hard interrupts, with interrupts off,
 * and from inside of handlers.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/slab.h>
#include <linux/stop_machine.h>
#include <linux/string.h>

#include <kfi_trigger.h>

#include "transfer.h"

/* All that is done in one interrupt. */
struct in_irq {
	struct end a;
	struct end b;
	struct area from;
	struct area to;
	u64 target[2];
	u64 result;
	size_t len;
	struct op ops[8];
	struct pieces pieces[8];
	ssize_t ret[16];
};

static long post_all(void *arg)
{
	struct in_irq *irq = arg;
	u64 one = 1;
	unsigned int i = 0;

	irq->ret[i++] = op_post(irq->b.ep, &irq->ops[0]);
	irq->ret[i++] = op_post(irq->b.ep, &irq->ops[1]);
	irq->ret[i++] = op_post(irq->a.ep, &irq->ops[2]);
	irq->ret[i++] = op_post(irq->a.ep, &irq->ops[3]);
	irq->ret[i++] = op_post(irq->a.ep, &irq->ops[4]);
	irq->ret[i++] = op_post(irq->a.ep, &irq->ops[5]);
	irq->ret[i++] = kfi_inject_atomic(irq->a.ep, &one, 1, irq->a.peer, 0, 2, KFI_UINT64,
					  KFI_SUM);
	/* One that waits for a message and one that waits for a receive, cancelled. */
	irq->ret[i++] = kfi_recv(irq->a.ep, irq->to.data, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(8));
	irq->ret[i++] = kfi_cancel(&irq->a.ep->fid, CONTEXT(8));
	irq->ret[i++] = kfi_send(irq->b.ep, irq->from.data, irq->len, NULL, irq->b.peer,
				 CONTEXT(7));
	irq->ret[i++] = kfi_cancel(&irq->b.ep->fid, CONTEXT(7));
	irq->ret[i++] = kfi_cancel(&irq->a.ep->fid, CONTEXT(9));
	return i;
}

static void expect_four(struct test *t, struct in_irq *irq)
{
	struct kfi_cq_tagged_entry entry;
	unsigned int seen = 0, i;

	/* Large ones may overtake each other. */
	for (i = 0; i < 4; i++) {
		unsigned long number;

		if (!await(t, irq->a.tx_cq, &entry, NULL))
			return;
		number = entry.op_context - CONTEXT(0);
		expect(t, entry.len, entry.flags & KFI_SEND ? 0 : irq->len);
		seen |= 1 << number;
	}
	expect(t, seen, 0x3c);
}

static void from_hardirq(struct test *t)
{
	static const size_t lens[] = { 0, 100, 16384, 16385, 1 << 20 };
	static struct in_irq irq;
	struct kfid_mr *mr[2];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(lens) && !t->failed; i++) {
		size_t len = lens[i];

		memset(&irq, 0, sizeof(irq));
		irq.len = len;
		if (!pair_open(t, &irq.a, &irq.b, NULL, NULL))
			return;
		if (!area_alloc(t, &irq.from, MEM_KMALLOC, 3, len) ||
		    !area_alloc(t, &irq.to, MEM_VMALLOC, 0, 4 * len))
			break;
		area_fill(&irq.from, 1);
		mr[0] = region_open(t, &irq.b, irq.to.data, 4 * len + 1, KFI_REMOTE_WRITE, 1);
		mr[1] = region_open(t, &irq.b, irq.target, 16, KFI_REMOTE_WRITE, 2);
		if (!mr[0] || !mr[1])
			break;
		for (j = 0; j < 6; j++) {
			irq.ops[j] = (struct op) {
				.len = len,
				.buf = j < 2 ? irq.to.data + j * len : irq.from.data,
				.context = CONTEXT(j),
				.peer = j < 2 ? KFI_ADDR_UNSPEC : irq.a.peer,
				.tag = 3,
				.addr = (j - 2) * len,
				.key = 1,
				.form = j & 1 ? FORM_SGL : FORM_BVEC,
				.family = ((enum family[]) { F_RECV, F_TRECV, F_SEND, F_TSEND,
							     F_WRITE, F_WRITE })[j],
				.pieces = &irq.pieces[j],
			};
			/* Vectors of single pages would be too long. */
			if (j < 2)
				irq.ops[j].form = FORM_PLAIN;
		}
		expect(t, run_in_hardirq(t, post_all, &irq), 12);
		for (j = 0; j < 11; j++)
			expect(t, irq.ret[j], 0);
		expect(t, irq.ret[11], -KFI_ENOENT);
		expect_four(t, &irq);
		expect_failure(t, irq.a.rx_cq, CONTEXT(8), RECEIVED, KFI_ECANCELED, 0, 0);
		for (j = 0; j < 2; j++) {
			struct kfi_cq_tagged_entry entry;

			if (await(t, irq.b.rx_cq, &entry, NULL))
				expect(t, entry.len, len);
		}
		expect_count(t, irq.b.cntr[COUNT_REMOTE_WRITE], 3, 0);
		expect(t, irq.target[0], 1);
		for (j = 0; j < 4 && !t->failed; j++) {
			if (!expect(t, memcmp(irq.to.data + j * len, irq.from.data, len), 0))
				break;
		}
		expect_failure(t, irq.b.tx_cq, CONTEXT(7), SENT, KFI_ECANCELED, 0, 0);
		expect_nothing(t, irq.a.tx_cq);
		expect_nothing(t, irq.b.tx_cq);
		say(t, "%zu bytes, operation %u", len, j);
		close_fid(t, &mr[0]->fid);
		close_fid(t, &mr[1]->fid);
		pair_close(t, &irq.a, &irq.b);
		area_free(&irq.from);
		area_free(&irq.to);
	}
}

/* The same with spinlocks held, and in softirq context. */
static void with_bottom_halves_off(struct test *t)
{
	struct kfi_cq_tagged_entry entry;
	unsigned long flags;
	struct end a, b;
	u8 from[8] = {}, to[8];
	ssize_t ret[4];

	if (!pair_open(t, &a, &b, NULL, NULL))
		return;
	local_bh_disable();
	ret[0] = kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1));
	ret[1] = kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(2));
	ret[2] = kfi_cq_read(a.tx_cq, &entry, 1);
	ret[3] = kfi_cq_read(b.rx_cq, &entry, 1);
	local_bh_enable();
	expect(t, ret[0], 0);
	expect(t, ret[1], 0);
	expect(t, ret[2], 1);
	expect(t, ret[3], 1);
	local_irq_save(flags);
	ret[0] = kfi_send(a.ep, from, 8, NULL, a.peer, CONTEXT(2));
	ret[1] = kfi_recv(b.ep, to, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1));
	/* A message that has waited is received by the work queue. */
	ret[2] = kfi_cq_read(a.tx_cq, &entry, 1);
	ret[3] = kfi_cq_read(b.rx_cq, &entry, 1);
	local_irq_restore(flags);
	expect(t, ret[0], 0);
	expect(t, ret[1], 0);
	if (ret[2] != 1)
		await(t, a.tx_cq, &entry, NULL);
	if (ret[3] != 1)
		await(t, b.rx_cq, &entry, NULL);
	pair_close(t, &a, &b);
}

/* One write to many regions, each of which makes operations due on a counter of its own. */
struct many_regions {
	struct kfid_ep *ep;
	struct kfi_msg_rma msg;
	struct kfid_cntr *target;
	struct kfi_rma_iov there[VECTOR];
	struct kfid_cntr *cntr[VECTOR];
	struct kfid_mr *mr[VECTOR];
	u64 from[VECTOR];
	u64 to[VECTOR];
};

/* On one CPU, while nothing runs on the others. */
static int write_and_count(void *arg)
{
	struct many_regions *m = arg;
	ssize_t ret = kfi_writemsg(m->ep, &m->msg, 0);

	return ret ?: kfi_cntr_read(m->target);
}

/*
 * With interrupts disabled little of what is due is done at once, however many counters
 * have made it due.
 */
static void many_regions_with_interrupts_off(struct test *t)
{
	enum { WORKS = 16 };
	struct many_regions *m = kzalloc_obj(*m);
	struct kfi_op_cntr op = { .value = 1 };
	struct kfi_deferred_work work = {
		.threshold = 1,
		.op_type = KFI_OP_CNTR_ADD,
		.op.cntr = &op,
	};
	struct kvec here;
	struct end a, b;
	unsigned int i, j;
	int done;

	if (!expect_true(t, m))
		return;
	/* Counters are opened in the domain of the first one, which is the target. */
	if (!pair_open(t, &b, &a, NULL, NULL))
		goto free;
	m->target = open_cntr(t, KFI_WAIT_UNSPEC);
	if (!m->target)
		goto close;
	op.cntr = m->target;
	here = (struct kvec) { .iov_base = m->from, .iov_len = sizeof(m->from) };
	m->ep = a.ep;
	m->msg = (struct kfi_msg_rma) {
		.type = KFI_KVEC, .msg_iov = &here, .iov_count = 1, .addr = a.peer,
		.rma_iov = m->there, .rma_iov_count = VECTOR, .context = CONTEXT(1),
	};
	for (i = 0; i < VECTOR && !t->failed; i++) {
		m->from[i] = i + 1;
		m->there[i] = (struct kfi_rma_iov) { .len = sizeof(m->to[i]), .key = i };
		m->cntr[i] = open_cntr(t, KFI_WAIT_UNSPEC);
		m->mr[i] = region_open(t, &b, &m->to[i], sizeof(m->to[i]), KFI_REMOTE_WRITE, i);
		if (!m->cntr[i] || !m->mr[i])
			break;
		expect(t, kfi_mr_bind(m->mr[i], &m->cntr[i]->fid, KFI_REMOTE_WRITE), 0);
		work.triggering_cntr = m->cntr[i];
		for (j = 0; j < WORKS; j++)
			expect(t, kfi_control(&t->domain->fid, KFI_QUEUE_WORK, &work), 0);
	}
	if (t->failed)
		goto close;
	done = stop_machine(write_and_count, m, NULL);
	expect_true(t, done >= 0 && done <= 64);
	say(t, "%d were done", done);
	expect_completion(t, a.tx_cq, CONTEXT(1), WRITTEN, sizeof(m->from));
	expect(t, memcmp(m->to, m->from, sizeof(m->to)), 0);
	expect(t, kfi_cntr_wait(m->target, VECTOR * WORKS, 12 * SOON), 0);
	for (i = 0; i < VECTOR; i++)
		expect_count(t, m->cntr[i], 1, 0);
	expect_count(t, m->target, VECTOR * WORKS, 0);
close:
	for (i = 0; i < VECTOR; i++) {
		if (m->mr[i])
			close_fid(t, &m->mr[i]->fid);
	}
	expect(t, kfi_control(&t->domain->fid, KFI_FLUSH_WORK, NULL), 0);
	for (i = 0; i < VECTOR; i++) {
		if (m->cntr[i])
			close_fid(t, &m->cntr[i]->fid);
	}
	if (m->target)
		close_fid(t, &m->target->fid);
	pair_close(t, &b, &a);
free:
	kfree(m);
}

/* Two endpoints that answer each other in their handlers. */
struct player {
	struct end end;
	u8 in[8];
	u8 out[8];
	atomic_t *left;
	struct completion *done;
	unsigned int bad;
	bool other_context;
};

static void play(struct kfid_cq *cq, void *context)
{
	struct player *p = context;
	struct kfi_cq_tagged_entry entry, sent;
	ssize_t ret;

	if (!in_task() || irqs_disabled())
		p->other_context = true;
	while ((ret = kfi_cq_read(cq, &entry, 1)) == 1) {
		int left = atomic_dec_return(p->left);

		if (entry.flags != RECEIVED || entry.len != 8)
			p->bad++;
		if (left <= 0) {
			complete(p->done);
			continue;
		}
		if (kfi_recv(p->end.ep, p->in, 8, NULL, KFI_ADDR_UNSPEC, CONTEXT(1)))
			p->bad++;
		while (kfi_cq_read(p->end.tx_cq, &sent, 1) == 1)
			;
		memcpy(p->out, &left, sizeof(left));
		if (kfi_send(p->end.ep, p->out, 8, NULL, p->end.peer, CONTEXT(2)))
			p->bad++;
	}
	if (ret != -KFI_EAGAIN)
		p->bad++;
}

static void ping_pong(struct test *t)
{
	static struct player players[2];
	DECLARE_COMPLETION_ONSTACK(done);
	struct setup setup[2] = {};
	atomic_t left = ATOMIC_INIT(min(rounds, 5000U));
	unsigned long ended;
	unsigned int i;
	int last;

	memset(players, 0, sizeof(players));
	for (i = 0; i < 2; i++) {
		players[i].left = &left;
		players[i].done = &done;
		setup[i].handler = play;
		setup[i].handler_context = &players[i];
	}
	if (!pair_open(t, &players[0].end, &players[1].end, &setup[0], &setup[1]))
		return;
	for (i = 0; i < 2; i++)
		expect(t, kfi_recv(players[i].end.ep, players[i].in, 8, NULL, KFI_ADDR_UNSPEC,
				   CONTEXT(1)), 0);
	expect(t, kfi_send(players[0].end.ep, players[0].out, 8, NULL, players[0].end.peer,
			   CONTEXT(2)), 0);
	/* However slow the machine is: it goes on. */
	do {
		last = atomic_read(&left);
		ended = wait_for_completion_timeout(&done, 20 * HZ);
	} while (!ended && atomic_read(&left) != last);
	expect_true(t, ended);
	for (i = 0; i < 2; i++) {
		expect(t, players[i].bad, 0);
		expect(t, players[i].other_context, false);
	}
	pair_close(t, &players[0].end, &players[1].end);
}

const struct test_case context_tests[] = {
	{ "context/hard-interrupt", "", from_hardirq },
	{ "context/many-regions-with-interrupts-off", "R-DWQ-31", many_regions_with_interrupts_off },
	{ "context/interrupts-off", "", with_bottom_halves_off, true },
	{ "context/ping-pong-in-handlers", "", ping_pong },
	{}
};
