// SPDX-License-Identifier: GPL-2.0
/*
 * Registration, replacement and deregistration.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "mock.h"

/* A provider is refused, and stays as it was. */
static void expect_refused(struct test *t, struct mock *mock, int error)
{
	struct kfi_provider before = mock->provider;

	expect(t, mock_register(mock), error);
	expect(t, memcmp(&before, &mock->provider, sizeof(before)), 0);
	expect(t, mock_deregister(mock), -KFI_EINVAL);
	expect(t, memcmp(&before, &mock->provider, sizeof(before)), 0);
	expect(t, atomic_read(&mock->cleaned), 0);
}

/* Takes a provider back and expects that it was told so, once. */
static void expect_deregistered(struct test *t, struct mock *mock)
{
	int cleaned = atomic_read(&mock->cleaned);

	expect(t, mock_deregister(mock), 0);
	expect(t, atomic_read(&mock->cleaned), cleaned + 1);
	expect(t, mock_deregister(mock), -KFI_EINVAL);
	expect(t, atomic_read(&mock->cleaned), cleaned + 1);
}

static void arguments(struct test *t)
{
	struct mock *mock;

	expect(t, kfi_provider_register(NULL), -KFI_EINVAL);
	expect_refused(t, mock_init(0, NULL, 1), -KFI_EINVAL);
	expect_refused(t, mock_init(0, "", 1), -KFI_EINVAL);
	mock = mock_init(0, "mock", 1);
	mock->provider.kgetinfo = NULL;
	expect_refused(t, mock, -KFI_EINVAL);
	mock = mock_init(0, "mock", 1);
	mock->provider.kfabric = NULL;
	expect_refused(t, mock, -KFI_EINVAL);
}

static void api_version(struct test *t)
{
	static const uint32_t bad[] = {
		0,
		1,
		KFI_VERSION(0, 99),
		KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION + 1),
		KFI_VERSION(KFI_MAJOR_VERSION + 1, 0),
		U32_MAX,
	};
	struct mock *mock;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		mock = mock_init(0, "mock", 1);
		mock->provider.kfi_version = bad[i];
		expect_refused(t, mock, -KFI_ENOSYS);
	}
	mock = mock_init(0, "mock", 1);
	mock->provider.kfi_version = KFI_VERSION(KFI_MAJOR_VERSION, 0);
	if (!expect(t, mock_register(mock), 0))
		return;
	expect(t, ask_and_free("mock"), 0);
	expect_deregistered(t, mock);
}

/* The module of the callbacks could not be kept loaded. */
static void foreign_callbacks(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);

	/* A function of the kernel proper, not meant to be called. */
	mock->provider.kfabric = (void *)kfree;
	expect_refused(t, mock, -KFI_EINVAL);
	mock = mock_init(0, "mock", 1);
	mock->provider.kgetinfo = (void *)kfree;
	expect_refused(t, mock, -KFI_EINVAL);
	/* A function of the core: a module, but not that of the other one. */
	mock = mock_init(0, "mock", 1);
	mock->provider.kgetinfo = kfi_getinfo;
	expect_refused(t, mock, -KFI_EINVAL);
}

static void twice(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);
	struct kfi_provider before;

	if (!expect(t, mock_register(mock), 0))
		return;
	expect(t, atomic_read(&mock->provider.ref_cnt), 1);
	before = mock->provider;
	expect(t, mock_register(mock), -KFI_EEXIST);
	expect(t, memcmp(&before, &mock->provider, sizeof(before)), 0);
	/* Not even under another name, or as a newer one. */
	mock->provider.name = "mock-other";
	mock->provider.version = 2;
	expect(t, mock_register(mock), -KFI_EEXIST);
	mock->provider.name = before.name;
	mock->provider.version = before.version;
	expect(t, ask_and_free("mock"), 0);
	expect_deregistered(t, mock);
}

static void again(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);
	int i;

	for (i = 1; i <= 3; i++) {
		if (!expect(t, mock_register(mock), 0))
			return;
		expect(t, ask_and_free("mock"), 0);
		expect(t, atomic_read(&mock->asked), i);
		expect_deregistered(t, mock);
		expect(t, ask_and_free("mock"), -KFI_ENODATA);
		expect(t, open_and_close("mock"), -KFI_ENODEV);
		expect(t, atomic_read(&mock->asked), i);
	}
}

static void without_cleanup(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);

	mock->provider.cleanup = NULL;
	if (!expect(t, mock_register(mock), 0))
		return;
	expect(t, mock_deregister(mock), 0);
	expect(t, atomic_read(&mock->cleaned), 0);
}

static void deregister_unknown(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);

	expect(t, kfi_provider_deregister(NULL), -KFI_EINVAL);
	expect(t, mock_deregister(mock), -KFI_EINVAL);
	/* Not even looked at. */
	expect(t, kfi_provider_deregister(ERR_PTR(-EINVAL)), -KFI_EINVAL);
	expect(t, atomic_read(&mock->cleaned), 0);
}

static void not_newer(struct test *t)
{
	struct mock *first = mock_init(0, "mock", KFI_VERSION(1, 5));

	if (!expect(t, mock_register(first), 0))
		return;
	expect_refused(t, mock_init(1, "mock", KFI_VERSION(1, 5)), -KFI_EEXIST);
	expect_refused(t, mock_init(1, "mock", KFI_VERSION(1, 4)), -KFI_EEXIST);
	expect_refused(t, mock_init(1, "mock", 0), -KFI_EEXIST);
	expect(t, ask_and_free("mock"), 0);
	expect(t, atomic_read(&first->asked), 1);
	expect_deregistered(t, first);
}

/* This is the provider that answers to the name. */
static void expect_answer_of(struct test *t, struct mock *mock)
{
	int asked = atomic_read(&mock->asked);
	int opened = atomic_read(&mock->opened);
	struct kfi_info *info;

	if (!expect(t, ask("mock", &info), 0))
		return;
	expect(t, info->fabric_attr->prov_version, mock->provider.version);
	expect_true(t, !info->next);
	expect(t, open_and_close("mock"), 0);
	expect(t, atomic_read(&mock->asked), asked + 1);
	expect(t, atomic_read(&mock->opened), opened + 1);
	kfi_freeinfo(info);
}

static void replace(struct test *t)
{
	struct mock *old = mock_init(0, "mock", KFI_VERSION(1, 5));
	struct mock *new = mock_init(1, "mock", KFI_VERSION(1, 6));

	if (!expect(t, mock_register(old), 0))
		return;
	expect_answer_of(t, old);
	if (!expect(t, mock_register(new), 0))
		goto deregister_old;
	expect_answer_of(t, new);
	expect(t, atomic_read(&old->asked), 1);
	expect(t, atomic_read(&old->opened), 1);
	/* Still registered. */
	expect(t, atomic_read(&old->cleaned), 0);
	expect(t, mock_register(old), -KFI_EEXIST);

	/* It is compared with the one that answers. */
	expect_refused(t, mock_init(2, "mock", KFI_VERSION(1, 5)), -KFI_EEXIST);

	/* With the new one the name goes: the old one does not come back. */
	expect_deregistered(t, new);
	expect(t, ask_and_free("mock"), -KFI_ENODATA);
	expect(t, open_and_close("mock"), -KFI_ENODEV);
	expect(t, atomic_read(&old->asked), 1);

	/* Then any version will do. */
	new = mock_init(2, "mock", 1);
	if (expect(t, mock_register(new), 0)) {
		expect_answer_of(t, new);
		expect_deregistered(t, new);
	}
deregister_old:
	expect_deregistered(t, old);
	/* It may come back if it registers anew. */
	if (expect(t, mock_register(old), 0)) {
		expect_answer_of(t, old);
		expect_deregistered(t, old);
	}
}

/* Three versions, which leave in each order. */
static void replace_twice(struct test *t)
{
	static const int orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct mock *mocks[3];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		bool newest_there = true;

		for (j = 0; j < 3; j++) {
			mocks[j] = mock_init(j, "mock", KFI_VERSION(1, j));
			if (expect(t, mock_register(mocks[j]), 0))
				expect_answer_of(t, mocks[j]);
		}
		for (j = 0; j < 3; j++) {
			int leaves = orders[i][j];

			expect_deregistered(t, mocks[leaves]);
			newest_there &= leaves != 2;
			if (newest_there)
				expect_answer_of(t, mocks[2]);
			else
				expect(t, ask_and_free("mock"), -KFI_ENODATA);
		}
	}
}

/* A fabric of the replaced one stays open and closes as always. */
static void replace_open(struct test *t)
{
	struct mock *old = mock_init(0, "mock", 1);
	struct mock *new = mock_init(1, "mock", 2);
	struct kfid_fabric *old_fabric, *new_fabric;

	if (!expect(t, mock_register(old), 0))
		return;
	expect(t, open_fabric_of("mock", &old_fabric), 0);
	if (expect(t, mock_register(new), 0)) {
		expect(t, open_fabric_of("mock", &new_fabric), 0);
		expect(t, atomic_read(&old->fabrics), 1);
		expect(t, atomic_read(&new->fabrics), 1);
		expect(t, kfi_control(&old_fabric->fid, KFI_GETOPSFLAG, NULL), 0);
		expect(t, kfi_close(&old_fabric->fid), 0);
		expect(t, atomic_read(&old->fabrics), 0);
		expect(t, kfi_close(&new_fabric->fid), 0);
		expect_deregistered(t, new);
	}
	expect_deregistered(t, old);
}

/* Deregistered while a fabric is open: the fabric stays, whoever comes next. */
static void deregister_open(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);
	struct kfid_fabric *fabric;

	if (!expect(t, mock_register(mock), 0))
		return;
	expect(t, open_fabric_of("mock", &fabric), 0);
	expect_deregistered(t, mock);
	expect(t, atomic_read(&mock->fabrics), 1);
	if (expect(t, mock_register(mock), 0)) {
		expect(t, open_and_close("mock"), 0);
		expect_deregistered(t, mock);
	}
	expect(t, kfi_close(&fabric->fid), 0);
	expect(t, atomic_read(&mock->fabrics), 0);
}

static void many(struct test *t)
{
	static const char *const names[MOCKS] = {
		"mock-0", "mock-1", "mock-2", "mock-3", "mock-4", "mock-5",
	};
	struct mock *mocks[MOCKS];
	struct kfi_info *info;
	unsigned int i;

	for (i = 0; i < MOCKS; i++) {
		mocks[i] = mock_init(i, names[i], 1);
		expect(t, mock_register(mocks[i]), 0);
	}
	if (expect(t, ask(NULL, &info), 0)) {
		expect_answers(t, info,
			       "mock-0 mock-1 mock-2 mock-3 mock-4 mock-5");
		kfi_freeinfo(info);
	}
	for (i = 0; i < MOCKS; i++) {
		expect(t, ask_and_free(names[i]), 0);
		expect(t, open_and_close(names[i]), 0);
		expect(t, atomic_read(&mocks[i]->asked), 2);
		expect(t, atomic_read(&mocks[i]->opened), 1);
	}
	/* Every other one first. */
	for (i = 0; i < MOCKS; i += 2)
		expect_deregistered(t, mocks[i]);
	if (expect(t, ask(NULL, &info), 0)) {
		expect_answers(t, info, "mock-1 mock-3 mock-5");
		kfi_freeinfo(info);
	}
	for (i = 1; i < MOCKS; i += 2)
		expect_deregistered(t, mocks[i]);
}

/* Asks for the name that its provider has, and opens it. */
static void on_cleanup_ask(struct mock *mock)
{
	int *results = mock->data;

	results[0] = ask_and_free(mock->provider.name);
	results[1] = open_and_close(mock->provider.name);
	results[2] = mock_register(mock);
	results[3] = mock_deregister(mock);
}

static void cleanup_reenters(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);
	int results[4] = {};

	mock->on_cleanup = on_cleanup_ask;
	mock->data = results;
	if (!expect(t, mock_register(mock), 0))
		return;
	expect_deregistered(t, mock);
	expect(t, results[0], -KFI_ENODATA);
	expect(t, results[1], -KFI_ENODEV);
	expect(t, results[2], -KFI_EEXIST);
	expect(t, results[3], -KFI_EINVAL);
	expect(t, atomic_read(&mock->asked), 0);
}

/* One provider's cleanup takes another one back. */
static void on_cleanup_deregister(struct mock *mock)
{
	mock_deregister(mock->data);
}

static void cleanup_deregisters(struct test *t)
{
	struct mock *first = mock_init(0, "mock-1", 1);
	struct mock *second = mock_init(1, "mock-2", 1);

	first->on_cleanup = on_cleanup_deregister;
	first->data = second;
	if (!expect(t, mock_register(first), 0))
		return;
	expect(t, mock_register(second), 0);
	expect_deregistered(t, first);
	expect(t, atomic_read(&second->cleaned), 1);
	expect(t, mock_deregister(second), -KFI_EINVAL);
}

const struct test_case register_tests[] = {
	{ "register/arguments", "", arguments },
	{ "register/api-version", "", api_version },
	{ "register/foreign-callbacks", "", foreign_callbacks },
	{ "register/twice", "", twice },
	{ "register/again", "", again },
	{ "register/without-cleanup", "", without_cleanup },
	{ "register/many", "", many },
	{ "register/not-newer", "", not_newer },
	{ "register/replace", "", replace },
	{ "register/replace-twice", "", replace_twice },
	{ "register/replace-open", "", replace_open },
	{ "deregister/unknown", "", deregister_unknown },
	{ "deregister/open", "", deregister_open },
	{ "deregister/cleanup-reenters", "", cleanup_reenters },
	{ "deregister/cleanup-deregisters", "", cleanup_deregisters },
	{}
};
