/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of this module share.
 */
#ifndef KFI_CONSUMER_TEST_H
#define KFI_CONSUMER_TEST_H

#include <linux/completion.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <kfabric.h>
#include <kfi_domain.h>
#include <kfi_eq.h>
#include <kfi_errno.h>

/* In milliseconds: what should happen at once has happened by then. */
#define SOON 20000

/**
 * struct test - a test that runs
 * @info: answer of kfi_getinfo() that the objects were opened with
 * @fabric: fabric, open
 * @domain: domain, open
 * @failed: an expectation was not met
 */
struct test {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	bool failed;
};

/**
 * struct test_case - one line of the results
 * @name: area, number of the case in the project's list, what is shown
 * @requirements: what the case is about
 * @run: the test; it leaves nothing open that it opened
 */
struct test_case {
	const char *name;
	const char *requirements;
	void (*run)(struct test *t);
};

/* Each ends with an entry that is all 0. */
extern const struct test_case info_tests[];
extern const struct test_case cntr_tests[];
extern const struct test_case wait_tests[];
extern const struct test_case control_tests[];
extern const struct test_case close_tests[];
extern const struct test_case queue_tests[];
extern const struct test_case handler_tests[];
extern const struct test_case wait_set_tests[];
extern const struct test_case poll_set_tests[];
extern const struct test_case trywait_tests[];
extern const struct test_case deferred_tests[];
extern const struct test_case av_tests[];

bool expect_value(struct test *t, long long got, long long want,
		  const char *what, const char *file, int line);

/* True if both are the same; else says so, and the test has failed. */
#define expect(t, got, want)						\
	expect_value(t, (long long)(got), (long long)(want), #got,	\
		     __FILE__, __LINE__)

/* For pointers and conditions. */
#define expect_true(t, what)						\
	expect_value(t, !!(what), 1, #what, __FILE__, __LINE__)

/* For calls that must fail, where the documents leave open how. */
#define expect_errno(t, got)						\
	expect_errno_value(t, got, #got, __FILE__, __LINE__)

bool expect_errno_value(struct test *t, long long got, const char *what,
			const char *file, int line);

/* For those that sleep: what a kernel with CONFIG_DEBUG_ATOMIC_SLEEP says. */
#define SLEEPS "BUG: sleeping function called from invalid context"

void expect_report(const char *title);
void end_expected_report(void);

struct kfi_info *get_provider_info(struct test *t);
struct kfid_cntr *open_cntr(struct test *t, enum kfi_wait_obj wait_obj);
void close_fid(struct test *t, struct kfid *fid);

/**
 * struct waiter - a thread inside kfi_cntr_wait()
 * @cntr: counter
 * @threshold: as in the call
 * @timeout: as in the call
 * @result: what the call returned
 * @value: value of the counter right after it
 * @task: the thread
 * @entered: it is about to make the call
 * @done: it is back
 */
struct waiter {
	struct kfid_cntr *cntr;
	u64 threshold;
	int timeout;
	int result;
	u64 value;
	struct task_struct *task;
	struct completion entered;
	struct completion done;
};

bool waiter_start(struct test *t, struct waiter *w, struct kfid_cntr *cntr,
		  u64 threshold, int timeout);
bool waiter_is_waiting(struct waiter *w);
int waiter_finish(struct waiter *w);

bool add_from_threads(struct test *t, struct kfid_cntr *cntr,
		      unsigned int threads, u64 times);
int add_from_hardirq(struct test *t, struct kfid_cntr *cntr, u64 value,
		     unsigned int delay_ms);

/**
 * struct job - a thread that makes one call
 * @run: the call
 * @arg: argument of @run
 * @result: what the call returned
 * @task: the thread
 * @entered: it is about to make the call
 * @done: it is back
 */
struct job {
	long (*run)(void *arg);
	void *arg;
	long result;
	struct task_struct *task;
	struct completion entered;
	struct completion done;
};

/* For job_start(): no particular CPU. */
#define ANY_CPU UINT_MAX

bool job_start(struct test *t, struct job *job, long (*run)(void *arg),
	       void *arg, unsigned int cpu);
void job_settle(struct job *job);
bool job_is_waiting(struct job *job);
long job_finish(struct job *job);
unsigned int other_cpu(unsigned int cpu);

long run_in_hardirq(struct test *t, long (*run)(void *arg), void *arg);

struct kfid_cntr *open_cntr_in(struct test *t, struct kfid_wait *set);
struct kfid_wait *open_set(struct test *t, enum kfi_wait_obj wait_obj);
struct kfid_cq *open_cq(struct test *t, enum kfi_wait_obj wait_obj,
			struct kfid_wait *set, size_t size, void *context);
struct kfid_eq *open_eq(struct test *t, enum kfi_wait_obj wait_obj,
			struct kfid_wait *set, size_t size);
int put_completion(struct kfid_cq *cq, unsigned long number);
int put_error(struct kfid_cq *cq, unsigned long number);
int put_event(struct kfid_eq *eq, u32 event);
long get_completion(struct kfid_cq *cq);

/* A fabric and a domain that are not those of the test. */
bool open_others(struct test *t, struct test *others);
void close_others(struct test *t, struct test *others);

/* Name of the provider under test. */
extern char *provider;

#endif
