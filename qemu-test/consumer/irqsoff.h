/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loads under which it is measured how long interrupts are off.
 */
#ifndef KFI_CONSUMER_IRQSOFF_H
#define KFI_CONSUMER_IRQSOFF_H

#include <linux/wait.h>

#include <kfi_trigger.h>

#include "transfer.h"

/**
 * struct rig - what a load works with; all that is not 0 is freed after it
 * @t: the test that it is for the parts of other modules
 * @size: how much is queued
 * @trigger: what is queued waits for it
 * @target: counts what was done
 * @members: as many counters
 * @works: as many requests
 * @op: the operation of all requests
 * @contexts: as many conditions of triggered operations
 * @poll: a poll set
 * @regions: as many memory regions
 * @ranges: what one call names of them
 * @listeners: entries of a wait queue
 * @listening: how many they are
 * @queue: that wait queue
 * @woken: how often they were woken
 * @jobs: as many threads
 * @a: an endpoint that sends
 * @b: one that receives
 * @from: memory of @a, of %BYTES bytes
 * @to: memory of @b, of %BYTES bytes
 * @entries: room for as many completions
 */
struct rig {
	struct test *t;
	unsigned int size;
	struct kfid_cntr *trigger;
	struct kfid_cntr *target;
	struct kfid_cntr **members;
	struct kfi_deferred_work *works;
	struct kfi_op_cntr op;
	struct kfi_triggered_context *contexts;
	struct kfid_poll *poll;
	struct kfid_mr **regions;
	struct kfi_rma_iov *ranges;
	struct wait_queue_entry *listeners;
	unsigned int listening;
	struct wait_queue_head *queue;
	unsigned int woken;
	struct job *jobs;
	struct end a;
	struct end b;
	u8 *from;
	u8 *to;
	struct kfi_cq_tagged_entry *entries;
};

/* Of each of the two areas of memory. */
#define BYTES (256 * 1024)
/* Bytes of a message that is not small. */
#define LARGE (16 * 1024)

/**
 * struct load - something that is measured
 * @name: its name
 * @interrupt: @run is called in a hard interrupt
 * @prepare: queues as much as there is to be
 * @run: is measured; returns 0
 * @settle: is measured, too: waits until all has been done; may be absent
 */
struct load {
	const char *name;
	bool interrupt;
	bool (*prepare)(struct rig *r);
	long (*run)(void *rig);
	void (*settle)(struct rig *r);
};

/* Each ends with an entry that is all 0. */
extern const struct load engine_loads[];
extern const struct load transfer_loads[];

bool rig_pair(struct rig *r, const struct setup *sender, const struct setup *receiver);

#endif
