/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Designs of a counter with operations that wait for it: the provider's, and the
 * ones it is compared with. All of them are counters to their users, who call
 * kfi_cntr_add() and kfi_cntr_read(), so that the same loops measure them all.
 */
#ifndef _KFI_BENCH_DESIGN_H_
#define _KFI_BENCH_DESIGN_H_

#include <kfi_eq.h>
#include <kfi_trigger.h>

/**
 * struct bench_work - an operation that waits, which its owner keeps as long
 * @work: for the provider
 * @op: for the provider
 * @entry: for other designs
 */
struct bench_work {
	struct kfi_deferred_work work;
	struct kfi_op_cntr op;
	void *entry;
};

/**
 * struct bench_design - a design
 * @name: what reports call it
 * @linear_add: an addition looks at all that is pending
 * @linear_submit: so does a submission, unless it is the last in order
 * @open: opens a counter
 * @close: closes it
 * @submit: adds 1 to @target once @trigger has reached @threshold; NULL if
 *	nothing can wait
 * @cancel: takes it back
 * @flush: takes back all that waits for a counter
 */
struct bench_design {
	const char *name;
	bool linear_add;
	bool linear_submit;
	int (*open)(struct kfid_cntr **cntr);
	void (*close)(struct kfid_cntr *cntr);
	int (*submit)(struct bench_work *work, struct kfid_cntr *trigger, u64 threshold,
		      struct kfid_cntr *target);
	int (*cancel)(struct bench_work *work);
	int (*flush)(struct kfid_cntr *cntr);
};

extern const struct bench_design bench_kfi_soft;
/* An atomic addition, fully ordered, through a pointer to a function. */
extern const struct bench_design bench_atomic;
/* The same, by one more call. */
extern const struct bench_design bench_atomic_call;
/* The same variable under a lock, with interrupts disabled and without. */
extern const struct bench_design bench_locked_irq, bench_locked;
/* A list that every addition goes through. */
extern const struct bench_design bench_list_irq, bench_list;
/* A list in the order of thresholds, of which an addition looks at the first. */
extern const struct bench_design bench_sorted_irq, bench_sorted;
/* A tree and its smallest threshold, which an addition compares with. */
extern const struct bench_design bench_tree_irq, bench_tree;

#endif /* _KFI_BENCH_DESIGN_H_ */
