/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cases that are measured, for the part in Rust that decides how often and
 * reports.
 *
 * The loops are in C because that is how consumers in C meet kfabric: through
 * the inline functions of the public headers.
 */
#ifndef _KFI_BENCH_H_
#define _KFI_BENCH_H_

#include <linux/types.h>

/**
 * struct kfi_bench_sample - what one measurement gave
 * @total: nanoseconds, or bytes
 * @count: over how many operations
 * @latencies: nanoseconds of single operations, if they were taken
 * @latency_room: how many there is room for
 * @latency_count: how many there are
 */
struct kfi_bench_sample {
	u64 total;
	u64 count;
	u32 *latencies;
	u32 latency_room;
	u32 latency_count;
};

/**
 * struct kfi_bench_case - one figure
 * @item: what is measured; cases that are next to each other with the same item
 *	are measured in turn, so that they meet the same conditions, unless one is @kept
 * @design: whose
 * @unit: of the figure: ns or bytes, per operation
 * @size: what it depends on: how much is pending, how long a message is
 * @run: measures once; 0 or an errno
 * @design_data: for @run
 * @kept: what it opens stays open for the next case, which needs more of it: it takes turns
 *	only with cases of the same size
 */
struct kfi_bench_case {
	const char *item;
	const char *design;
	const char *unit;
	u64 size;
	int (*run)(const struct kfi_bench_case *c, struct kfi_bench_sample *sample);
	const void *design_data;
	bool kept;
};

const struct kfi_bench_case *kfi_bench_case(size_t index);
int kfi_bench_setup(void);
void kfi_bench_teardown(void);
u32 kfi_bench_rounds(void);

#endif /* _KFI_BENCH_H_ */
