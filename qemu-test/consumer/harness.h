/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The harness of all test modules: expectations, results in the kernel log as
 * KTAP, and threads. The objects that tests work with are in objects.h,
 * transfer.h, mock.h and lnd.h.
 */
#ifndef KFI_CONSUMER_HARNESS_H
#define KFI_CONSUMER_HARNESS_H

#include <linux/completion.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/types.h>

struct kfi_info;
struct kfid_domain;
struct kfid_fabric;

/* In milliseconds: what should happen at once has happened by then. */
#define SOON 20000
/* In milliseconds: what should not happen would have happened by then. */
#define A_WHILE 50

/**
 * struct test - a test that runs
 * @info: answer of kfi_getinfo() that the objects were opened with
 * @fabric: fabric, open
 * @domain: domain, open
 * @skipped: why nothing was tested, or NULL
 * @failed: an expectation was not met
 *
 * The objects are those of the module, if it has any for all of its tests.
 */
struct test {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	const char *skipped;
	bool failed;
};

/**
 * struct test_case - one line of the results
 * @name: area, number of the case in the project's list, what is shown
 * @requirements: what the case is about
 * @run: the test; it leaves nothing open that it opened
 * @within_node: about what is so only where no network is between the NICs
 */
struct test_case {
	const char *name;
	const char *requirements;
	void (*run)(struct test *t);
	bool within_node;
};

/**
 * struct plan - the tests of a module
 * @suites: each ends with an entry that is all 0
 * @count: number of @suites
 * @only: beginning of the names of those that are to run; NULL for all
 * @network: there is a network between the NICs
 * @after: called after each test, or NULL
 */
struct plan {
	const struct test_case *const *suites;
	unsigned int count;
	const char *only;
	bool network;
	void (*after)(struct test *t);
};

/* Parameters of modules: the provider under test, and rounds of the long tests. */
extern char *provider;
extern unsigned int rounds;

/* Expectations. */
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

/* Results: how many there will be, and each of them. */
void begin_results(unsigned int count);
void print_result(const struct test *t, const char *name,
		  const char *requirements);
unsigned int count_tests(const struct plan *plan);
void run_tests(struct test *t, const struct plan *plan);

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
unsigned int some_cpu(unsigned int index);

bool happens_soon(struct completion *what);
void wait_without_end(struct completion *what);

long run_in_hardirq(struct test *t, long (*run)(void *arg), void *arg);

#endif
