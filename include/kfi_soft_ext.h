/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The extensions of the software provider, to be had through kfi_open_ops().
 */
#ifndef _KFI_SOFT_EXT_H_
#define _KFI_SOFT_EXT_H_

#include <kfi_eq.h>

/**
 * define KFI_SOFT_CQ_OPS_1 - name for kfi_open_ops() on a completion queue, which then gives a
 *	&struct kfi_soft_cq_ops
 */
#define KFI_SOFT_CQ_OPS_1 "kfi_soft_cq_ops_v1"

/**
 * struct kfi_soft_cq_ops - puts completions into a queue without an operation, for tests
 * @size: size of the structure in bytes
 * @write: adds a completion if &kfi_cq_err_entry.err is 0, else an error; ``err_data`` is ignored.
 *	Callable from any context. 0, -KFI_EINVAL for a NULL entry or a negative
 *	&kfi_cq_err_entry.err, -KFI_ENOSPC if the queue is full.
 * @write_unreserved: as @write, but in the way of what nobody has kept room for: a queue that is
 *	full loses the entry and returns -KFI_EOVERRUN to a reader
 */
struct kfi_soft_cq_ops {
	size_t size;
	int (*write)(struct kfid *cq, const struct kfi_cq_err_entry *entry);
	int (*write_unreserved)(struct kfid *cq, const struct kfi_cq_err_entry *entry);
};

/**
 * define KFI_SOFT_EQ_OPS_1 - name for kfi_open_ops() on an event queue, which then gives a
 *	&struct kfi_soft_eq_ops
 */
#define KFI_SOFT_EQ_OPS_1 "kfi_soft_eq_ops_v1"

/**
 * struct kfi_soft_eq_ops - puts errors into an event queue, for tests
 * @size: size of the structure in bytes
 * @write_error: adds an error; ``err_data`` is ignored. Callable from any context. 0, -KFI_EINVAL
 *	for a NULL entry or an &kfi_eq_err_entry.err that is not positive, -KFI_EAGAIN if the queue
 *	is full. Events are added with kfi_eq_write().
 */
struct kfi_soft_eq_ops {
	size_t size;
	int (*write_error)(struct kfid *eq, const struct kfi_eq_err_entry *entry);
};

/**
 * define KFI_SOFT_CNTR_OPS_1 - name for kfi_open_ops() on a counter, which then gives a
 *	&struct kfi_soft_cntr_ops
 */
#define KFI_SOFT_CNTR_OPS_1 "kfi_soft_cntr_ops_v1"

/**
 * struct kfi_soft_cntr_stats - what a counter has had to do
 * @attended: changes after which it had to look for what is due: all others have touched nothing
 *	that waits for the counter
 */
struct kfi_soft_cntr_stats {
	uint64_t attended;
};

/**
 * struct kfi_soft_cntr_ops - tells about a counter, for tests
 * @size: size of the structure in bytes
 * @stats: tells what the counter has had to do. Callable from any context. 0, -KFI_EINVAL for NULL.
 */
struct kfi_soft_cntr_ops {
	size_t size;
	int (*stats)(struct kfid *cntr, struct kfi_soft_cntr_stats *stats);
};

/**
 * define KFI_SOFT_DOM_OPS_1 - name for kfi_open_ops() on a domain, which then gives a
 *	&struct kfi_soft_dom_ops
 */
#define KFI_SOFT_DOM_OPS_1 "kfi_soft_dom_ops_v1"

/**
 * struct kfi_soft_dom_ops - takes back what was queued with any pointer, for tests
 * @size: size of the structure in bytes
 * @cancel_work: as KFI_CANCEL_WORK; the pointer is compared and never dereferenced, so it may be that of a
 *	request of another domain or provider, of one that is gone, or of nothing
 */
struct kfi_soft_dom_ops {
	size_t size;
	int (*cancel_work)(struct kfid *domain, const void *work);
};

/**
 * define KFI_SOFT_ADDR_ANY_PORT - flag of the ``flags`` of &struct kcxi_addr: there is no port yet
 *
 * kfi_getinfo() sets it in addresses for which no service was named; the port is 0 then. An
 * endpoint that is opened with such a source address gets a port, and has an address without
 * flags. Address vectors take no addresses with flags.
 */
#define KFI_SOFT_ADDR_ANY_PORT 1

#endif /* _KFI_SOFT_EXT_H_ */
