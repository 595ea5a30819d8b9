// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_getinfo(): who is asked, what becomes of the answers, and callbacks that
 * call the core.
 */
#include <linux/err.h>
#include <linux/string.h>

#include "mock.h"

/* Registers providers "mock-1", "mock-2", ... */
static bool have_mocks(struct test *t, struct mock **mocks, unsigned int count)
{
	static const char *const names[MOCKS] = {
		"mock-1", "mock-2", "mock-3", "mock-4", "mock-5", "mock-6",
	};
	unsigned int i;

	for (i = 0; i < count; i++) {
		mocks[i] = mock_init(i, names[i], i + 1);
		if (!expect(t, mock_register(mocks[i]), 0))
			break;
	}
	if (i == count)
		return true;
	while (i--)
		mock_deregister(mocks[i]);
	return false;
}

static void have_no_mocks(struct test *t, struct mock **mocks, unsigned int count)
{
	while (count--) {
		expect(t, mock_deregister(mocks[count]), 0);
		expect(t, atomic_read(&mocks[count]->cleaned), 1);
	}
}

/* Asks everybody. */
static void expect_all_answer(struct test *t, const char *want)
{
	struct kfi_info *info = NULL;

	expect(t, ask(NULL, &info), *want || others_answer() ? 0 : -KFI_ENODATA);
	expect_answers(t, info, want);
	kfi_freeinfo(info);
}

/* Asks one, who fails. */
static void expect_no_answer(struct test *t, const char *name, int error)
{
	/* Not NULL: the call must make it so. */
	struct kfi_info *info = ERR_PTR(-EINVAL);

	expect(t, ask(name, &info), error);
	expect_true(t, !info);
}

static void arguments(struct test *t)
{
	struct kfi_info *hints, *info;
	struct mock *mock;

	expect(t, kfi_getinfo(API_VERSION, NULL, NULL, 0, NULL, NULL), -KFI_EINVAL);
	if (!have_mocks(t, &mock, 1))
		return;
	expect(t, kfi_getinfo(API_VERSION, NULL, NULL, 0, NULL, NULL), -KFI_EINVAL);
	expect(t, atomic_read(&mock->asked), 0);

	/* Hints without attributes name nobody. */
	hints = kfi_allocinfo();
	if (expect_true(t, hints)) {
		if (expect(t, kfi_getinfo(0, NULL, NULL, 0, hints, &info), 0)) {
			expect_answers(t, info, "mock-1");
			kfi_freeinfo(info);
		}
		kfi_freeinfo(hints);
	}
	have_no_mocks(t, &mock, 1);
}

static void version(struct test *t)
{
	static const uint32_t good[] = {
		0, KFI_VERSION(1, 0), KFI_VERSION(1, 1), API_VERSION,
	};
	static const uint32_t bad[] = {
		API_VERSION + 1, KFI_VERSION(KFI_MAJOR_VERSION + 1, 0), U32_MAX,
	};
	struct kfi_info *hints = hints_for("mock-1");
	struct kfi_info *info;
	struct mock *mock;
	unsigned int i;

	if (!expect_true(t, hints))
		return;
	if (!have_mocks(t, &mock, 1))
		goto free_hints;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		/* Not NULL: the call must make it so. */
		info = ERR_PTR(-EINVAL);
		expect(t, kfi_getinfo(bad[i], NULL, NULL, 0, hints, &info),
		       -KFI_ENOSYS);
		expect_true(t, !info);
	}
	expect(t, atomic_read(&mock->asked), 0);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		if (!expect(t, kfi_getinfo(good[i], NULL, NULL, 0, hints, &info), 0))
			continue;
		expect(t, info->fabric_attr->api_version, good[i]);
		kfi_freeinfo(info);
	}
	have_no_mocks(t, &mock, 1);
free_hints:
	kfi_freeinfo(hints);
}

static void order(struct test *t)
{
	struct mock *mocks[3];

	if (!have_mocks(t, mocks, 3))
		return;
	mocks[1]->answer = mock_answer_two;
	expect_all_answer(t, "mock-1 mock-2 mock-2 mock-3");
	/* A provider that comes back comes last. */
	expect(t, mock_deregister(mocks[0]), 0);
	expect(t, mock_register(mocks[0]), 0);
	expect_all_answer(t, "mock-2 mock-2 mock-3 mock-1");
	atomic_set(&mocks[0]->cleaned, 0);
	have_no_mocks(t, mocks, 3);
}

/* A provider that replaces another one takes its place. */
static void order_replaced(struct test *t)
{
	struct mock *mocks[3], *newer;
	struct kfi_info *info = NULL;

	if (!have_mocks(t, mocks, 3))
		return;
	newer = mock_init(3, "mock-1", 100);
	if (expect(t, mock_register(newer), 0)) {
		if (expect(t, ask(NULL, &info), 0)) {
			expect_answers(t, info, "mock-1 mock-2 mock-3");
			kfi_freeinfo(info);
		}
		expect(t, atomic_read(&mocks[0]->asked), 0);
		expect(t, atomic_read(&newer->asked), 1);
		expect(t, mock_deregister(newer), 0);
		expect_all_answer(t, "mock-2 mock-3");
	}
	have_no_mocks(t, mocks, 3);
}

static void named(struct test *t)
{
	struct kfi_info *info;
	struct mock *mocks[3];

	if (!have_mocks(t, mocks, 3))
		return;
	if (expect(t, ask("mock-2", &info), 0)) {
		expect_answers(t, info, "mock-2");
		kfi_freeinfo(info);
	}
	expect(t, atomic_read(&mocks[0]->asked), 0);
	expect(t, atomic_read(&mocks[1]->asked), 1);
	expect(t, atomic_read(&mocks[2]->asked), 0);
	/* The exact name, no part of it and nothing else. */
	expect_no_answer(t, "mock", -KFI_ENODATA);
	expect_no_answer(t, "mock-22", -KFI_ENODATA);
	expect_no_answer(t, "MOCK-2", -KFI_ENODATA);
	expect(t, atomic_read(&mocks[1]->asked), 1);
	/* An empty name is no wish. */
	if (expect(t, ask("", &info), 0)) {
		expect_answers(t, info, "mock-1 mock-2 mock-3");
		kfi_freeinfo(info);
	}
	have_no_mocks(t, mocks, 3);
}

static void failures(struct test *t)
{
	static const int results[] = {
		-KFI_ENODATA, -EIO, -ENOMEM, -EINVAL, -KFI_ENOSYS,
		-KFI_EOPBADSTATE, -4095, 0,
		/* Nonsense. */
		1, KFI_ENODATA, -4096, INT_MIN, INT_MAX,
	};
	struct mock *mocks[3];
	unsigned int i, j;

	if (!have_mocks(t, mocks, 3))
		return;
	for (i = 0; i < ARRAY_SIZE(results); i++) {
		int error = results[i];

		/* 0 and no list is no data; other nonsense is some error. */
		if (!error)
			error = -KFI_ENODATA;
		else if (error > 0)
			error = -EIO;
		else if (error < -4095)
			error = -EINVAL;
		for (j = 0; j < 3; j++) {
			mocks[j]->answer = mock_answer_result;
			mocks[j]->result = results[i];
			expect_all_answer(t, j == 0 ? "mock-2 mock-3" :
					     j == 1 ? "mock-1 mock-3" :
						      "mock-1 mock-2");
			mocks[j]->answer = mock_answer_one;
		}
		mocks[0]->answer = mock_answer_result;
		expect_no_answer(t, "mock-1", error);
		mocks[0]->answer = mock_answer_one;
	}
	for (j = 0; j < 3; j++)
		expect(t, atomic_read(&mocks[j]->inside), 0);
	have_no_mocks(t, mocks, 3);
}

static void best_error(struct test *t)
{
	static const struct {
		int results[3];
		int error;
	} cases[] = {
		{ { -EIO, -ENOMEM, -EPERM }, -EIO },
		{ { -EPERM, -EIO, -ENOMEM }, -EPERM },
		{ { -KFI_ENODATA, -EIO, -EPERM }, -KFI_ENODATA },
		{ { -EIO, -KFI_ENODATA, -EPERM }, -KFI_ENODATA },
		{ { -EIO, -EPERM, -KFI_ENODATA }, -KFI_ENODATA },
		{ { -EIO, -EPERM, 0 }, -KFI_ENODATA },
		{ { 5, -EPERM, -EPERM }, -EIO },
	};
	struct mock *mocks[3];
	unsigned int i, j;

	if (others_answer()) {
		t->skipped = "there are other providers, unload them";
		return;
	}
	expect_no_answer(t, NULL, -KFI_ENODATA);
	if (!have_mocks(t, mocks, 3))
		return;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (j = 0; j < 3; j++) {
			mocks[j]->answer = mock_answer_result;
			mocks[j]->result = cases[i].results[j];
		}
		expect_no_answer(t, NULL, cases[i].error);
	}
	have_no_mocks(t, mocks, 3);
}

/* Entries that cannot be opened are left out. */
static void incomplete(struct test *t)
{
	struct mock *mocks[3];

	if (!have_mocks(t, mocks, 3))
		return;
	mocks[1]->answer = mock_answer_incomplete;
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	mocks[0]->answer = mock_answer_incomplete;
	mocks[2]->answer = mock_answer_incomplete;
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	/* Nothing is left. */
	mocks[1]->result = 1;
	expect_all_answer(t, "mock-1 mock-3");
	expect_no_answer(t, "mock-2", -KFI_ENODATA);
	have_no_mocks(t, mocks, 3);
}

static void unnamed(struct test *t)
{
	struct kfi_info *info, *entry;
	struct mock *mocks[2];

	if (!have_mocks(t, mocks, 2))
		return;
	mocks[1]->answer = mock_answer_unnamed;
	expect_all_answer(t, "mock-1 mock-2 mock-2 mock-other");
	if (expect(t, ask("mock-2", &info), 0)) {
		expect_answers(t, info, "mock-2 mock-2 mock-other");
		for (entry = info; entry; entry = entry->next) {
			struct kfi_fabric_attr *attr = entry->fabric_attr;
			bool other = !strcmp(attr->prov_name, "mock-other");

			/* The last one is left as it is. */
			expect(t, attr->prov_version, other ? 77 : 2);
			expect(t, attr->api_version,
			       other ? KFI_VERSION(1, 1) : API_VERSION);
			expect_true(t, attr->prov_name != mocks[1]->provider.name);
		}
		kfi_freeinfo(info);
	}
	have_no_mocks(t, mocks, 2);
}

/*
 * Callbacks that call the core.
 */

struct seen {
	int result;
	struct kfi_info *info;
	struct mock *other;
	bool nested;
};

static void on_getinfo_ask(struct mock *mock)
{
	struct seen *seen = mock->data;

	/* All are asked, the asking one too. */
	if (!seen->nested) {
		seen->nested = true;
		seen->result = ask(NULL, &seen->info);
	}
}

static void asks(struct test *t)
{
	struct mock *mocks[3];
	struct seen seen = {};

	if (!have_mocks(t, mocks, 3))
		return;
	mocks[1]->on_getinfo = on_getinfo_ask;
	mocks[1]->data = &seen;
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	expect(t, seen.result, 0);
	expect_answers(t, seen.info, "mock-1 mock-2 mock-3");
	kfi_freeinfo(seen.info);
	expect(t, atomic_read(&mocks[0]->asked), 2);
	expect(t, atomic_read(&mocks[1]->asked), 2);
	expect(t, atomic_read(&mocks[2]->asked), 2);
	have_no_mocks(t, mocks, 3);
}

static void on_getinfo_open(struct mock *mock)
{
	struct seen *seen = mock->data;

	seen->result = open_and_close("mock-1") ?: open_and_close("mock-2") ?:
		       open_and_close("mock-3");
}

static void opens(struct test *t)
{
	struct mock *mocks[3];
	struct seen seen = { .result = -EINVAL };

	if (!have_mocks(t, mocks, 3))
		return;
	mocks[1]->on_getinfo = on_getinfo_open;
	mocks[1]->data = &seen;
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	expect(t, seen.result, 0);
	have_no_mocks(t, mocks, 3);
}

static void on_getinfo_register(struct mock *mock)
{
	struct seen *seen = mock->data;

	if (!seen->nested)
		seen->result = mock_register(seen->other);
	seen->nested = true;
}

/* A provider registered meanwhile is asked the next time. */
static void registers(struct test *t)
{
	struct mock *mocks[3], *other = mock_init(3, "mock-new", 1);
	struct seen seen = { .other = other };

	if (!have_mocks(t, mocks, 3))
		return;
	mocks[0]->on_getinfo = on_getinfo_register;
	mocks[0]->data = &seen;
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	if (expect(t, seen.result, 0)) {
		expect(t, atomic_read(&other->asked), 0);
		expect_all_answer(t, "mock-1 mock-2 mock-3 mock-new");
		expect(t, mock_deregister(other), 0);
	}
	have_no_mocks(t, mocks, 3);
}

static void on_getinfo_register_again(struct mock *mock)
{
	struct mock *next = mock->data;

	/* So does the next one, and so on. */
	if (next)
		mock_register(next);
}

/* A query comes to an end even if every provider registers another one. */
static void register_chain(struct test *t)
{
	static const char *const names[MOCKS] = {
		"mock-1", "mock-2", "mock-3", "mock-4", "mock-5", "mock-6",
	};
	struct mock *mocks[MOCKS];
	unsigned int i;

	for (i = 0; i < MOCKS; i++) {
		mocks[i] = mock_init(i, names[i], 1);
		mocks[i]->on_getinfo = on_getinfo_register_again;
		if (i)
			mocks[i - 1]->data = mocks[i];
	}
	if (!expect(t, mock_register(mocks[0]), 0))
		return;
	expect_all_answer(t, "mock-1");
	expect_all_answer(t, "mock-1 mock-2");
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	for (i = 4; i--;)
		expect(t, mock_deregister(mocks[i]), 0);
}

/* A provider that is replaced while it is asked is not asked again. */
static void replaces(struct test *t)
{
	struct mock *mocks[3], *newer = mock_init(3, "mock-2", 100);
	struct seen seen = { .other = newer };

	if (!have_mocks(t, mocks, 3))
		return;
	mocks[1]->on_getinfo = on_getinfo_register;
	mocks[1]->data = &seen;
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	if (expect(t, seen.result, 0)) {
		expect(t, atomic_read(&newer->asked), 0);
		expect_all_answer(t, "mock-1 mock-2 mock-3");
		expect(t, atomic_read(&newer->asked), 1);
		expect(t, atomic_read(&mocks[1]->asked), 1);
		expect(t, mock_deregister(newer), 0);
	}
	have_no_mocks(t, mocks, 3);
}

/* Replaced before its turn: the new one is asked, and not the old one. */
static void replaces_next(struct test *t)
{
	struct mock *mocks[3], *newer = mock_init(3, "mock-2", 100);
	struct seen seen = { .other = newer };

	if (!have_mocks(t, mocks, 3))
		return;
	mocks[0]->on_getinfo = on_getinfo_register;
	mocks[0]->data = &seen;
	expect_all_answer(t, "mock-1 mock-2 mock-3");
	if (expect(t, seen.result, 0)) {
		expect(t, atomic_read(&newer->asked), 1);
		expect(t, atomic_read(&mocks[1]->asked), 0);
		expect(t, mock_deregister(newer), 0);
	}
	have_no_mocks(t, mocks, 3);
}

static void on_getinfo_deregister(struct mock *mock)
{
	struct seen *seen = mock->data;

	if (!seen->nested)
		seen->result = mock_deregister(seen->other);
	seen->nested = true;
}

/* One that leaves before its turn is not asked; one that leaves later has answered. */
static void deregisters(struct test *t)
{
	struct seen seen;
	struct mock *mocks[3];
	unsigned int i;

	for (i = 0; i < 3; i += 2) {
		seen = (struct seen) {};
		if (!have_mocks(t, mocks, 3))
			return;
		seen.other = mocks[i];
		mocks[1]->on_getinfo = on_getinfo_deregister;
		mocks[1]->data = &seen;
		expect_all_answer(t, i ? "mock-1 mock-2" : "mock-1 mock-2 mock-3");
		expect(t, seen.result, 0);
		expect(t, atomic_read(&mocks[i]->cleaned), 1);
		expect(t, atomic_read(&mocks[i]->asked), i ? 0 : 1);
		expect_all_answer(t, i ? "mock-1 mock-2" : "mock-2 mock-3");
		expect(t, mock_deregister(mocks[i]), -KFI_EINVAL);
		expect(t, mock_deregister(mocks[1]), 0);
		expect(t, mock_deregister(mocks[2 - i]), 0);
	}
}

/* Everybody else leaves and comes back. */
static void on_getinfo_shuffle(struct mock *mock)
{
	struct seen *seen = mock->data;

	seen->result = mock_deregister(seen->other) ?:
		       mock_register(seen->other);
}

static void shuffles(struct test *t)
{
	struct mock *mocks[2];
	struct seen seen = {};

	if (!have_mocks(t, mocks, 2))
		return;
	seen.other = mocks[1];
	mocks[0]->on_getinfo = on_getinfo_shuffle;
	mocks[0]->data = &seen;
	/* It has gone before its turn, and come after the query began. */
	expect_all_answer(t, "mock-1");
	expect(t, seen.result, 0);
	expect_all_answer(t, "mock-1");
	mocks[0]->on_getinfo = NULL;
	expect_all_answer(t, "mock-1 mock-2");
	atomic_set(&mocks[1]->cleaned, 0);
	have_no_mocks(t, mocks, 2);
}

const struct test_case getinfo_tests[] = {
	{ "getinfo/arguments", "", arguments },
	{ "getinfo/version", "", version },
	{ "getinfo/order", "", order },
	{ "getinfo/order-replaced", "", order_replaced },
	{ "getinfo/named", "", named },
	{ "getinfo/failures", "", failures },
	{ "getinfo/best-error", "", best_error },
	{ "getinfo/incomplete", "", incomplete },
	{ "getinfo/unnamed", "", unnamed },
	{ "getinfo/callback-asks", "", asks },
	{ "getinfo/callback-opens", "", opens },
	{ "getinfo/callback-registers", "", registers },
	{ "getinfo/callback-registers-chain", "", register_chain },
	{ "getinfo/callback-replaces", "", replaces },
	{ "getinfo/callback-replaces-next", "", replaces_next },
	{ "getinfo/callback-deregisters", "", deregisters },
	{ "getinfo/callback-shuffles", "", shuffles },
	{}
};
