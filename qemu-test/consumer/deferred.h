/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the tests of deferred work.
 */
#ifndef KFI_CONSUMER_DEFERRED_H
#define KFI_CONSUMER_DEFERRED_H

#include <kfi_trigger.h>

#include "consumer.h"

/* A debug kernel does the same with less. */
#define MANY (IS_ENABLED(CONFIG_KASAN) ? 4000U : 100000U)
#define SOME (IS_ENABLED(CONFIG_KASAN) ? 1000U : 10000U)

int queue_add(struct test *t, struct kfid_cntr *trigger, u64 threshold,
	      struct kfid_cntr *target, u64 value);
int flush(struct test *t, struct kfid_cntr *cntr);
bool open_cntrs(struct test *t, struct kfid_cntr **cntrs, unsigned int count);
void close_cntrs(struct test *t, struct kfid_cntr **cntrs, unsigned int count);
bool fire_many(struct test *t, struct kfid_cntr *trigger, struct kfid_cntr *target);

/* Argument of add_slowly(): a counter, and how often it is to add 1. */
struct adder {
	struct kfid_cntr *cntr;
	unsigned int times;
};

long add_slowly(void *arg);

#endif
