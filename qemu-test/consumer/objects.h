/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The objects that most tests need: those of the module, counters, queues, sets,
 * and threads that wait for counters.
 */
#ifndef KFI_CONSUMER_OBJECTS_H
#define KFI_CONSUMER_OBJECTS_H

#include <kfabric.h>
#include <kfi_domain.h>
#include <kfi_eq.h>
#include <kfi_errno.h>

#include "harness.h"

struct kfi_info *get_provider_info(struct test *t);
bool open_fabric(struct test *t);
bool open_domain(struct test *t);
void close_all(struct test *t);
struct kfid_cntr *open_cntr(struct test *t, enum kfi_wait_obj wait_obj);
void close_fid(struct test *t, struct kfid *fid);

/**
 * struct waiter - a thread inside kfi_cntr_wait()
 * @job: the thread
 * @cntr: counter
 * @threshold: as in the call
 * @timeout: as in the call
 * @value: value of the counter right after it
 */
struct waiter {
	struct job job;
	struct kfid_cntr *cntr;
	u64 threshold;
	int timeout;
	u64 value;
};

bool waiter_start(struct test *t, struct waiter *w, struct kfid_cntr *cntr,
		  u64 threshold, int timeout);
bool waiter_is_waiting(struct waiter *w);
int waiter_finish(struct waiter *w);

bool add_from_threads(struct test *t, struct kfid_cntr *cntr,
		      unsigned int threads, u64 times);
int add_from_hardirq(struct test *t, struct kfid_cntr *cntr, u64 value,
		     unsigned int delay_ms);

struct kfid_cntr *open_cntr_in(struct test *t, struct kfid_wait *set);
struct kfid_wait *open_set(struct test *t, enum kfi_wait_obj wait_obj);
struct kfid_cq *open_cq_attr(struct test *t, struct kfi_cq_attr *attr,
			     void *context);
struct kfid_cq *open_cq(struct test *t, enum kfi_wait_obj wait_obj,
			struct kfid_wait *set, size_t size, void *context);
struct kfid_eq *open_eq(struct test *t, enum kfi_wait_obj wait_obj,
			struct kfid_wait *set, size_t size);
struct kfi_cq_err_entry entry_of(unsigned long number);
int put_entry(struct kfid_cq *cq, const struct kfi_cq_err_entry *entry);
int put_completion(struct kfid_cq *cq, unsigned long number);
int put_error(struct kfid_cq *cq, unsigned long number);
int put_event(struct kfid_eq *eq, u32 event);
int put_eq_entry(struct kfid_eq *eq, const struct kfi_eq_err_entry *entry);
int put_event_error(struct kfid_eq *eq, unsigned long number);
long get_completion(struct kfid_cq *cq);

/* A fabric and a domain that are not those of the test. */
bool open_others(struct test *t, struct test *others);
void close_others(struct test *t, struct test *others);

#endif
