// SPDX-License-Identifier: GPL-2.0
/*
 * Many NICs, each of which has a connection to each other one: what it takes to
 * make one, and the memory that it has when nothing goes on there.
 *
 * The provider keeps its connections, so every round makes others, until the
 * last one has made all. One NIC has at both ends of a connection as much as a
 * node has of a peer with which it has one in each direction.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include <kfi_endpoint.h>

#include "link.h"
#include "rig.h"
#include "socket.h"

#define NICS 64U
/* From a NIC to the next, the one after that, and so on, up to that before it. */
#define DISTANCES (NICS - 1)
/*
 * To so many of these at once. Connections that a user has begun and that were never made are no
 * more than there is room left for, but for 256 in any case: a full mesh leaves hardly any room.
 */
#define AT_ONCE 3U
/* Bytes of the message for which a connection is made. */
#define SMALL 8U
/* After that everything has been acknowledged, and connections at rest have no buffers any more. */
#define QUIET_MS 2500

/* The memory of the connections that a round has made. */
struct memory {
	u64 bytes;
	u64 count;
};

static struct memory peer_memory, socket_memory;

/* Rounds that there were. */
static u32 round_count;

struct node {
	struct bench_endpoint end;
	kfi_addr_t peers[NICS];
};

/* Inodes of sockets count as memory that can be reclaimed. */
static u64 used_memory(void)
{
	u64 reclaimable;

	msleep(QUIET_MS);
	reclaimable = global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B);
	return bench_used_memory() + (reclaimable << PAGE_SHIFT);
}

static void note(struct memory *memory, u64 before, u64 count)
{
	u64 after = used_memory();

	memory->bytes = after > before ? after - before : 0;
	memory->count = count;
}

static void close_nodes(struct node *nodes)
{
	u32 i;

	for (i = 0; i < NICS && nodes[i].end.domain; i++) {
		bench_close_endpoint(&nodes[i].end);
		kfi_close(&nodes[i].end.domain->fid);
	}
	kvfree(nodes);
}

/* An endpoint at each NIC, all of which know each other; or an error. */
static struct node *open_nodes(void)
{
	struct node *nodes = kvcalloc(NICS, sizeof(*nodes), GFP_KERNEL);
	struct kfi_info *info = bench_info;
	int ret = 0;
	u32 i, peer;

	if (!nodes)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < NICS && !ret; i++, info = info->next) {
		struct bench_endpoint *end = &nodes[i].end;

		ret = info ? kfi_domain(bench_fabric, info, &end->domain, NULL) : -ENODEV;
		if (ret)
			break;
		end->info = info;
		ret = bench_open_endpoint(end);
	}
	for (i = 0; i < NICS && !ret; i++) {
		for (peer = 0; peer < NICS && !ret; peer++)
			ret = bench_introduce(&nodes[peer].end, &nodes[i].end,
					      &nodes[i].peers[peer]);
	}
	if (ret) {
		close_nodes(nodes);
		return ERR_PTR(ret);
	}
	return nodes;
}

/* Sends from each NIC to those at these distances, and waits until that has come about. */
static int send_all(struct node *nodes, u8 *memory, u32 first, u32 end)
{
	u32 distance, i;
	int ret = 0;

	for (distance = first; distance < end && !ret; distance++) {
		for (i = 0; i < NICS && !ret; i++)
			ret = kfi_send(nodes[i].end.ep, memory, SMALL, NULL,
				       nodes[i].peers[(i + distance) % NICS], NULL);
	}
	/* Each has got as many as it has sent. */
	for (i = 0; i < NICS && !ret; i++)
		ret = bench_take(nodes[i].end.cq, 2 * (end - first));
	return ret;
}

static int connect_peers(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	u32 rounds = kfi_bench_rounds() + 1, first, end, next, i, distance;
	struct node *nodes;
	u64 before;
	u8 *memory;
	int ret = 0;

	peer_memory = (struct memory) {};
	if (round_count == rounds)
		return -ERANGE;
	first = 1 + round_count * DISTANCES / rounds;
	end = 1 + (round_count + 1) * DISTANCES / rounds;
	round_count++;

	memory = kzalloc(2 * SMALL, GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	nodes = open_nodes();
	if (IS_ERR(nodes)) {
		ret = PTR_ERR(nodes);
		goto free;
	}
	for (distance = first; distance < end; distance++) {
		for (i = 0; i < NICS && !ret; i++)
			ret = kfi_recv(nodes[i].end.ep, memory + SMALL, SMALL, NULL,
				       KFI_ADDR_UNSPEC, NULL);
	}
	before = used_memory();
	sample->count = NICS * (end - first);
	sample->total = bench_now();
	for (distance = first; distance < end && !ret; distance = next) {
		next = min(distance + AT_ONCE, end);
		ret = send_all(nodes, memory, distance, next);
	}
	sample->total = bench_now() - sample->total;
	if (!ret)
		note(&peer_memory, before, sample->count);
	close_nodes(nodes);
free:
	kfree(memory);
	return ret;
}

/* The same bytes in both directions. */
static int exchange(struct socket *ends[2], u8 *memory)
{
	int i, ret = 0;

	for (i = 0; i < 2 && ret >= 0; i++) {
		ret = bench_socket_send(ends[i], memory, SMALL);
		if (!ret)
			ret = bench_socket_receive(ends[!i], memory + SMALL, SMALL, false);
	}
	return min(ret, 0);
}

/* One after the other: there is nobody to wait for. */
static int connect_sockets(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	u32 count = NICS * (DISTANCES / (kfi_bench_rounds() + 1)), i;
	struct socket *(*sockets)[2] = kvcalloc(count, sizeof(*sockets), GFP_KERNEL);
	u8 *memory = kzalloc(2 * SMALL, GFP_KERNEL);
	struct bench_listener listener;
	u64 before;
	int ret;

	socket_memory = (struct memory) {};
	ret = sockets && memory ? bench_listen(&listener) : -ENOMEM;
	if (ret)
		goto free;
	before = used_memory();
	sample->count = count;
	sample->total = bench_now();
	for (i = 0; i < count && !ret; i++) {
		ret = bench_connect(&listener, sockets[i]);
		if (!ret)
			ret = exchange(sockets[i], memory);
	}
	sample->total = bench_now() - sample->total;
	if (!ret)
		note(&socket_memory, before, count);
	for (i = 0; i < count; i++) {
		bench_close_socket(sockets[i][0]);
		bench_close_socket(sockets[i][1]);
	}
	bench_close_listener(&listener);
free:
	kfree(memory);
	kvfree(sockets);
	return ret;
}

/* The memory that the case before has found in this round. */
static int memory_of(const struct kfi_bench_case *c, struct kfi_bench_sample *sample)
{
	const struct memory *memory = c->design_data;

	if (!memory->count)
		return -ENODATA;
	sample->total = memory->bytes;
	sample->count = memory->count;
	return 0;
}

#define CONNECT(name, function) \
	{ .item = "TCP, mesh", .design = name, .unit = "ns", .size = NICS, .run = function }
#define MEMORY(name, memory) \
	{ .item = "TCP, mesh", .design = name, .unit = "bytes", .size = NICS, .run = memory_of, \
	  .design_data = &(memory) }

/* Each round begins with what makes connections. */
const struct kfi_bench_case bench_mesh_cases[] = {
	CONNECT("kfi_soft", connect_peers),
	MEMORY("kfi_soft, memory", peer_memory),
	CONNECT("socket", connect_sockets),
	MEMORY("socket, memory", socket_memory),
	{}
};
