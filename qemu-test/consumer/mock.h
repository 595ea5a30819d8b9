/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Providers that do as they are told, for the tests of the core.
 */
#ifndef KFI_MOCK_H
#define KFI_MOCK_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/types.h>

#include <kfabric.h>
#include <kfi_errno.h>
#include <kfi_prov.h>

#include "harness.h"

#define API_VERSION KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION)

/* Each ends with an entry that is all 0. */
extern const struct test_case register_tests[];
extern const struct test_case getinfo_tests[];
extern const struct test_case fabric_tests[];
extern const struct test_case thread_tests[];
extern const struct test_case memory_tests[];

/**
 * struct gate - where a callback waits until the test lets it go on
 * @reached: somebody has come
 * @opened: who comes may pass
 */
struct gate {
	struct completion reached;
	struct completion opened;
};

void gate_init(struct gate *gate);
void gate_pass(struct gate *gate);

/**
 * struct mock - a provider that does as it is told
 * @provider: the provider
 * @answer: makes the answer of its kgetinfo; mock_answer_one() by default
 * @result: what mock_answer_result() returns, and kfabric if it is not 0
 * @opens: makes the fabric of its kfabric; mock_open() by default
 * @on_getinfo: called first in kgetinfo, or NULL
 * @on_fabric: called first in kfabric, or NULL
 * @on_cleanup: called in cleanup, or NULL
 * @gate: waited for in kgetinfo, or NULL
 * @data: for the callbacks above
 * @asked: calls of kgetinfo
 * @opened: calls of kfabric
 * @cleaned: calls of cleanup
 * @inside: callbacks that run
 * @fabrics: fabrics that are open
 */
struct mock {
	struct kfi_provider provider;
	int (*answer)(struct mock *mock, struct kfi_info **info);
	int result;
	int (*opens)(struct mock *mock, struct kfid_fabric **fabric,
		     void *context);
	void (*on_getinfo)(struct mock *mock);
	void (*on_fabric)(struct mock *mock);
	void (*on_cleanup)(struct mock *mock);
	struct gate *gate;
	void *data;
	atomic_t asked;
	atomic_t opened;
	atomic_t cleaned;
	atomic_t inside;
	atomic_t fabrics;
};

/**
 * struct mock_fabric - a fabric of a mock
 * @fabric: the fabric
 * @mock: its provider
 * @busy: close answers -KFI_EBUSY
 * @control: command of the last control call
 */
struct mock_fabric {
	struct kfid_fabric fabric;
	struct mock *mock;
	bool busy;
	int control;
};

/* How many there may be at a time. */
#define MOCKS 6

struct mock *mock_init(unsigned int slot, const char *name, uint32_t version);
int mock_register(struct mock *mock);
int mock_deregister(struct mock *mock);

int mock_answer_one(struct mock *mock, struct kfi_info **info);
int mock_answer_two(struct mock *mock, struct kfi_info **info);
int mock_answer_result(struct mock *mock, struct kfi_info **info);
int mock_answer_incomplete(struct mock *mock, struct kfi_info **info);
int mock_answer_unnamed(struct mock *mock, struct kfi_info **info);
int mock_open(struct mock *mock, struct kfid_fabric **fabric, void *context);

struct kfi_info *hints_for(const char *prov_name);
int ask(const char *prov_name, struct kfi_info **info);
int ask_and_free(const char *prov_name);
int open_fabric_of(const char *prov_name, struct kfid_fabric **fabric);
int open_and_close(const char *prov_name);
bool others_answer(void);

bool expect_answers_at(struct test *t, const struct kfi_info *info,
		       const char *want, const char *file, int line);

/*
 * True if the entries of mocks in the list have these provider names, in this
 * order, separated by spaces.
 */
#define expect_answers(t, info, want)					\
	expect_answers_at(t, info, want, __FILE__, __LINE__)

#endif
