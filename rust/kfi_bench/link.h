/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Endpoints with what they need, and two of them with memory to transfer.
 */
#ifndef _KFI_BENCH_LINK_H_
#define _KFI_BENCH_LINK_H_

#include <linux/types.h>

#include <kfabric.h>
#include <kfi_domain.h>

/* How long anything may take before it has failed. */
#define BENCH_TIMEOUT_MS 30000
/* The most completions that bench_take_some() takes. */
#define BENCH_PORTION 64U

/**
 * struct bench_endpoint - an endpoint
 * @info: what it is made of
 * @domain: where it is opened; the caller's
 * @av: whom it knows
 * @cq: of all its operations
 * @ep: the endpoint
 * @peer: the other end of a link
 */
struct bench_endpoint {
	struct kfi_info *info;
	struct kfid_domain *domain;
	struct kfid_av *av;
	struct kfid_cq *cq;
	struct kfid_ep *ep;
	kfi_addr_t peer;
};

/* Opens and enables it in the domain that it names. If that fails nothing of it is left open. */
int bench_open_endpoint(struct bench_endpoint *end);
void bench_close_endpoint(struct bench_endpoint *end);

/* Makes an endpoint known to another one, which gets its address. */
int bench_introduce(struct bench_endpoint *end, struct bench_endpoint *to, kfi_addr_t *address);

/**
 * struct bench_link - two endpoints
 * @ends: the endpoints, which know each other
 * @from: memory of the first one
 * @to: memory of the second one
 * @mr: a region of that, which the first one may access
 * @base: where it begins, for those who access it
 */
struct bench_link {
	struct bench_endpoint ends[2];
	u8 *from, *to;
	struct kfid_mr *mr;
	u64 base;
};

/**
 * bench_open_link() - opens two endpoints
 * @l: the link, of which @info and @domain of the ends are set
 * @len: bytes of memory of each end
 *
 * Return: 0, or an error, when nothing is left open
 */
int bench_open_link(struct bench_link *l, size_t len);
void bench_close_link(struct bench_link *l);

/* Takes @count completions, in whatever portions they come. */
int bench_take(struct kfid_cq *cq, u32 count);

/* Waits for completions; returns how many it has taken, up to @most, or an error. */
int bench_take_some(struct kfid_cq *cq, u32 least, u32 most);

#endif /* _KFI_BENCH_LINK_H_ */
