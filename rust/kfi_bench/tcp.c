// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers between two NICs that reach each other over TCP, and the same bytes
 * through bare sockets. In both, one thread on each of two CPUs blocks until
 * there is something for it.
 */
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include <kfi_endpoint.h>
#include <kfi_rma.h>

#include "link.h"
#include "rig.h"
#include "socket.h"

/* A message that is small. */
#define SMALL 8U

/* Two endpoints, in the domains of the first two NICs. */
static int open_link(struct bench_link *l, size_t len)
{
	struct kfid_domain *domain;
	struct kfi_info *info = bench_info->next;
	int ret;

	if (!info)
		return -ENODEV;
	ret = kfi_domain(bench_fabric, info, &domain, NULL);
	if (ret)
		return ret;
	*l = (struct bench_link) {
		.ends = {
			{ .info = bench_info, .domain = bench_domain },
			{ .info = info, .domain = domain },
		},
	};
	ret = bench_open_link(l, len);
	if (ret)
		kfi_close(&domain->fid);
	return ret;
}

static void close_link(struct bench_link *l)
{
	bench_close_link(l);
	kfi_close(&l->ends[1].domain->fid);
}

/*
 * Whether to post once more what was first posted at @begin: until there is
 * room. Telling the time would take long.
 */
static bool is_full(ssize_t ret, unsigned long begin)
{
	if (likely(ret != -KFI_EAGAIN))
		return false;
	cond_resched();
	return time_before(jiffies, begin + msecs_to_jiffies(BENCH_TIMEOUT_MS));
}

static int post_receive(struct bench_endpoint *end, u8 *memory, size_t len)
{
	unsigned long begin = jiffies;
	ssize_t ret;

	do {
		ret = kfi_recv(end->ep, memory, len, NULL, KFI_ADDR_UNSPEC, NULL);
	} while (is_full(ret, begin));
	return ret;
}

/* --- round trips -------------------------------------------------------------- */

/* Round trips that are timed together. */
#define TRIP_LAP 50U
#define TRIPS 4000U
#define TRIPS_WARM 100U
/* They may take long. */
#define TRIPS_NS (NSEC_PER_SEC / 2)

/* One side of a ping-pong. */
struct player {
	bool first;
	/* With kfabric, or without it. */
	struct bench_endpoint *end;
	struct socket *socket;
	/* Bytes that it sends, and that it receives. The first byte of the last message is 1. */
	u8 *out, *in;
	struct kfi_bench_sample *sample;
};

static int say_to_peer(struct player *p)
{
	unsigned long begin = jiffies;
	ssize_t ret;

	do {
		ret = kfi_inject(p->end->ep, p->out, SMALL, p->end->peer);
	} while (is_full(ret, begin));
	return ret;
}

/* Before anything comes. */
static int expect_peer(struct player *p)
{
	return post_receive(p->end, p->in, SMALL);
}

static int hear_peer(struct player *p, bool *last)
{
	int ret = bench_take(p->end->cq, 1);

	*last = p->in[0];
	return ret ? ret : expect_peer(p);
}

static int say_to_socket(struct player *p)
{
	return bench_socket_send(p->socket, p->out, SMALL);
}

static int hear_socket(struct player *p, bool *last)
{
	int ret = bench_socket_receive(p->socket, p->in, SMALL, false);

	*last = p->in[0];
	return min(ret, 0);
}

static __always_inline int answer(struct player *p, int (*say)(struct player *p),
				  int (*hear)(struct player *p, bool *last))
{
	bool last = false;
	int ret = 0;

	while (!ret && !last) {
		ret = hear(p, &last);
		if (!ret)
			ret = say(p);
	}
	return ret;
}

static __always_inline int play(struct player *p, int (*say)(struct player *p),
				int (*hear)(struct player *p, bool *last))
{
	struct kfi_bench_sample *sample = p->sample;
	u64 begin = bench_now(), before, now;
	struct bench_laps laps = {};
	bool last = false, ignored;
	u32 trips;
	int ret = 0;

	if (!p->first)
		return answer(p, say, hear);
	for (trips = 1; !ret; trips++) {
		before = bench_now();
		last = trips == TRIPS_WARM + TRIPS || before - begin > TRIPS_NS;
		p->out[0] = last;
		ret = say(p);
		if (!ret)
			ret = hear(p, &ignored);
		now = bench_now();
		if (trips == TRIPS_WARM)
			bench_begin(&laps);
		if (trips > TRIPS_WARM && trips % TRIP_LAP == 0)
			bench_lap(&laps);
		if (sample->latency_count < sample->latency_room)
			sample->latencies[sample->latency_count++] = now - before;
		if (last)
			break;
	}
	if (laps.count) {
		bench_end(&laps, TRIP_LAP, sample);
	} else {
		sample->total = bench_now() - begin;
		sample->count = trips;
	}
	return ret;
}

static int play_peer(void *data)
{
	return play(data, say_to_peer, hear_peer);
}

static int play_socket(void *data)
{
	struct player *p = data;
	int ret = play(p, say_to_socket, hear_socket);

	/* Nobody waits for who has given up. */
	if (ret)
		kernel_sock_shutdown(p->socket, SHUT_RDWR);
	return ret;
}

static int peer_ping_pong(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct player players[2];
	struct bench_link l;
	int i, ret;

	/* In the memory of each there is room for what it says and hears. */
	ret = open_link(&l, 2 * SMALL);
	if (ret)
		return ret;
	for (i = 0; i < 2; i++) {
		u8 *memory = i ? l.to : l.from;

		players[i] = (struct player) {
			.first = !i, .end = &l.ends[i],
			.out = memory, .in = memory + SMALL, .sample = sample,
		};
	}
	ret = expect_peer(&players[0]);
	if (!ret)
		ret = expect_peer(&players[1]);
	if (!ret)
		ret = bench_on_cpus(c->design_data, play_peer,
				    (void *[]) { &players[0], &players[1] });
	close_link(&l);
	return ret;
}

static int socket_ping_pong(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	u8 *memory = kzalloc(4 * SMALL, GFP_KERNEL);
	struct bench_listener listener;
	struct socket *sockets[2];
	struct player players[2];
	int i, ret;

	if (!memory)
		return -ENOMEM;
	ret = bench_listen(&listener);
	if (ret)
		goto free;
	ret = bench_connect(&listener, sockets);
	if (ret)
		goto close;
	for (i = 0; i < 2; i++)
		players[i] = (struct player) {
			.first = !i, .socket = sockets[i],
			.out = memory + i * 2 * SMALL, .in = memory + (i * 2 + 1) * SMALL,
			.sample = sample,
		};
	ret = bench_on_cpus(c->design_data, play_socket, (void *[]) { &players[0], &players[1] });
	bench_close_socket(sockets[0]);
	bench_close_socket(sockets[1]);
close:
	bench_close_listener(&listener);
free:
	kfree(memory);
	return ret;
}

/* --- many under way ----------------------------------------------------------- */

/* How much is sent, and of that how much at a time. */
struct plan {
	/* Messages that were not answered yet, at most. */
	u32 window;
	/*
	 * One answer of a bare socket is for so many, and of kfabric's completions
	 * a side that has nothing to do waits for as many.
	 */
	u32 batch;
	/* Messages that are timed together, and how many times. */
	u32 lap;
	u32 laps;
	/* In place of messages. */
	bool rma;
};

/* They may take long. */
#define STREAM_NS NSEC_PER_SEC

/*
 * A message is complete for its sender when the other side has it, whether somebody has read
 * that yet or not: so many times as many receives are posted as messages are under way.
 */
#define RECEIVES 4

/* One side of a stream. */
struct side {
	const struct plan *plan;
	size_t size;
	bool first;
	struct bench_link *link;
	struct socket *socket;
	u8 *memory;
	/* Messages that were sent and not answered. */
	u32 open;
	/* How many there are in all, for both sides: known before the last ones are sent. */
	u64 *end;
	struct kfi_bench_sample *sample;
};

static int send_to_peer(struct side *s)
{
	struct bench_endpoint *end = &s->link->ends[0];
	struct bench_link *l = s->link;
	unsigned long begin = jiffies;
	ssize_t ret;

	if (s->open == s->plan->window) {
		ret = bench_take_some(end->cq, s->plan->batch, s->open);
		if (ret < 0)
			return ret;
		s->open -= ret;
	}
	do {
		if (s->plan->rma)
			ret = kfi_write(end->ep, l->from, s->size, NULL, end->peer, l->base,
					kfi_mr_key(l->mr), NULL);
		else
			ret = kfi_send(end->ep, l->from, s->size, NULL, end->peer, NULL);
	} while (is_full(ret, begin));
	if (!ret)
		s->open++;
	return ret;
}

static int send_to_socket(struct side *s)
{
	u8 answers[64];
	int ret;

	if (s->open == s->plan->window) {
		ret = bench_socket_receive(s->socket, answers, sizeof(answers), true);
		if (ret < 0)
			return ret;
		s->open -= ret * s->plan->batch;
	}
	ret = bench_socket_send(s->socket, s->memory, s->size);
	if (!ret)
		s->open++;
	return ret;
}

/* Always as many as are under way, so that every lap ends as many as it begins. */
static __always_inline int send_all(struct side *s, int (*send)(struct side *s))
{
	const struct plan *plan = s->plan;
	u64 begin = bench_now();
	struct bench_laps laps;
	bool last = false;
	int ret = 0;
	u32 lap, i;

	bench_begin(&laps);
	for (lap = 1; !ret && !last; lap++) {
		last = lap == plan->laps || bench_now() - begin > STREAM_NS;
		/* The other side looks when it has received one of these. */
		if (last)
			WRITE_ONCE(*s->end, (u64)lap * plan->lap);
		for (i = 0; i < plan->lap && !ret; i++)
			ret = send(s);
		bench_lap(&laps);
	}
	bench_end(&laps, plan->lap, s->sample);
	return ret;
}

static int expect_message(struct side *s)
{
	return post_receive(&s->link->ends[1], s->link->to, s->size);
}

static int receive_from_peer(struct side *s)
{
	u64 received = 0, left;
	int i, got, ret = 0;

	while (!ret && received < READ_ONCE(*s->end)) {
		/* The last ones are waited for one by one: the sender waits for all. */
		left = READ_ONCE(*s->end) - received;
		got = bench_take_some(s->link->ends[1].cq, min(left, s->plan->batch),
				      s->plan->window);
		if (got < 0)
			return got;
		for (i = 0; i < got && !ret; i++)
			ret = expect_message(s);
		received += got;
	}
	return ret;
}

static int receive_from_socket(struct side *s)
{
	bool small = s->size < PAGE_SIZE;
	u64 bytes = 0, received = 0, answered = 0;
	u8 answers[64] = {};
	int ret = 0;

	while (ret >= 0 && received < READ_ONCE(*s->end)) {
		ret = bench_socket_receive(s->socket, s->memory, small ? PAGE_SIZE : s->size,
					   small);
		if (ret < 0)
			break;
		bytes += ret;
		received = div64_u64(bytes, s->size);
		while (ret >= 0 && received - answered >= s->plan->batch) {
			u32 count = min(div_u64(received - answered, s->plan->batch),
					sizeof(answers));

			ret = bench_socket_send(s->socket, answers, count);
			answered += count * s->plan->batch;
		}
	}
	return min(ret, 0);
}

static int stream_peer(void *data)
{
	struct side *s = data;
	int ret;

	if (!s->first)
		return s->plan->rma ? 0 : receive_from_peer(s);
	ret = send_all(s, send_to_peer);
	return ret ? ret : bench_take(s->link->ends[0].cq, s->open);
}

static int stream_socket(void *data)
{
	struct side *s = data;
	int ret = s->first ? send_all(s, send_to_socket) : receive_from_socket(s);

	if (ret)
		kernel_sock_shutdown(s->socket, SHUT_RDWR);
	return ret;
}

static const unsigned int same_cpu[2] = { 0, 0 };
static const unsigned int other_cpu[2] = { 0, 1 };

static int peer_stream(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct plan *plan = c->design_data;
	struct side sides[2];
	u64 end = U64_MAX;
	struct bench_link l;
	int ret;
	u32 i;

	ret = open_link(&l, c->size);
	if (ret)
		return ret;
	for (i = 0; i < 2; i++)
		sides[i] = (struct side) {
			.plan = plan, .size = c->size, .first = !i, .link = &l,
			.end = &end, .sample = sample,
		};
	for (i = 0; i < RECEIVES * plan->window && !ret && !plan->rma; i++)
		ret = expect_message(&sides[1]);
	if (!ret)
		ret = bench_on_cpus(other_cpu, stream_peer, (void *[]) { &sides[0], &sides[1] });
	close_link(&l);
	return ret;
}

static int socket_stream(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	struct bench_listener listener;
	struct side sides[2] = {};
	struct socket *sockets[2];
	u64 end = U64_MAX;
	int i, ret = 0;

	for (i = 0; i < 2; i++) {
		sides[i] = (struct side) {
			.plan = c->design_data, .size = c->size, .first = !i,
			.memory = kvzalloc(max(c->size, PAGE_SIZE), GFP_KERNEL),
			.end = &end, .sample = sample,
		};
		if (!sides[i].memory)
			ret = -ENOMEM;
	}
	if (ret)
		goto free;
	ret = bench_listen(&listener);
	if (ret)
		goto free;
	ret = bench_connect(&listener, sockets);
	if (ret)
		goto close;
	sides[0].socket = sockets[0];
	sides[1].socket = sockets[1];
	ret = bench_on_cpus(other_cpu, stream_socket, (void *[]) { &sides[0], &sides[1] });
	bench_close_socket(sockets[0]);
	bench_close_socket(sockets[1]);
close:
	bench_close_listener(&listener);
free:
	kvfree(sides[0].memory);
	kvfree(sides[1].memory);
	return ret;
}

/*
 * A lap is several windows: messages that share the wire in pieces end together,
 * so that of shorter laps the one in the middle might be one in which none ends.
 */

/* A bare socket has an answer to 16 messages, or, as the provider has, to each. */
static const struct plan small = { .window = 64, .batch = 16, .lap = 1024, .laps = 64 };
static const struct plan small_answered = { .window = 64, .batch = 1, .lap = 1024, .laps = 64 };
static const struct plan medium = { .window = 16, .batch = 1, .lap = 64, .laps = 32 };
static const struct plan medium_rma = { .window = 16, .lap = 64, .laps = 32, .rma = true };
static const struct plan large = { .window = 16, .batch = 1, .lap = 64, .laps = 16 };
static const struct plan large_rma = { .window = 16, .lap = 64, .laps = 16, .rma = true };

#define TRIP(title, name, function, cpus) \
	{ .item = title, .design = name, .unit = "ns", .size = SMALL, .run = function, \
	  .design_data = cpus }
#define STREAM(title, name, bytes, function, how) \
	{ .item = title, .design = name, .unit = "ns", .size = bytes, .run = function, \
	  .design_data = &(how) }

const struct kfi_bench_case bench_tcp_cases[] = {
	TRIP("TCP, round trip", "kfi_soft", peer_ping_pong, other_cpu),
	TRIP("TCP, round trip", "socket", socket_ping_pong, other_cpu),
	TRIP("TCP, round trip, same CPU", "kfi_soft", peer_ping_pong, same_cpu),
	TRIP("TCP, round trip, same CPU", "socket", socket_ping_pong, same_cpu),
	STREAM("TCP, 64 under way", "send", SMALL, peer_stream, small),
	STREAM("TCP, 64 under way", "socket", SMALL, socket_stream, small),
	STREAM("TCP, 64 under way", "socket, all answered", SMALL, socket_stream, small_answered),
	STREAM("TCP, stream", "send", 65536, peer_stream, medium),
	STREAM("TCP, stream", "write", 65536, peer_stream, medium_rma),
	STREAM("TCP, stream", "socket", 65536, socket_stream, medium),
	STREAM("TCP, stream", "send", 1048576, peer_stream, large),
	STREAM("TCP, stream", "write", 1048576, peer_stream, large_rma),
	STREAM("TCP, stream", "socket", 1048576, socket_stream, large),
	{}
};
