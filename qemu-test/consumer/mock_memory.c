// SPDX-License-Identifier: GPL-2.0
/*
 * No memory, at each allocation in turn. Needs failslab:
 *
 *   echo N >/sys/kernel/debug/failslab/ignore-gfp-wait
 */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "mock.h"

/* More allocations than any call makes. */
#define MANY 1000

#ifdef CONFIG_FAULT_INJECTION
/* The nth allocation of this thread fails, until allocations_succeed(). */
static void fail_allocation(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

/*
 * Returns whether there was an nth allocation. It need not have been one of the
 * call's: those who watch over memory allocate too, and do without.
 */
static bool allocations_succeed(void)
{
	bool failed = !READ_ONCE(current->fail_nth);

	WRITE_ONCE(current->fail_nth, 0);
	return failed;
}
#else
static void fail_allocation(unsigned int nth)
{
}

static bool allocations_succeed(void)
{
	return false;
}
#endif

static bool can_fail(struct test *t)
{
	void *memory;
	bool failed;

	fail_allocation(1);
	memory = kmalloc(64, GFP_KERNEL);
	failed = allocations_succeed() && !memory;
	kfree(memory);
	if (!failed)
		t->skipped = "failslab fails nothing: ignore-gfp-wait has to be N";
	return failed;
}

/* An entry that has all there is. */
static struct kfi_info *full_info(void)
{
	struct kfi_info *info = kfi_allocinfo();

	if (!info)
		return NULL;
	info->src_addrlen = 8;
	info->src_addr = kzalloc(8, GFP_KERNEL);
	info->dest_addrlen = 16;
	info->dest_addr = kzalloc(16, GFP_KERNEL);
	info->ep_attr->auth_key_size = 4;
	info->ep_attr->auth_key = kzalloc(4, GFP_KERNEL);
	info->domain_attr->auth_key_size = 4;
	info->domain_attr->auth_key = kzalloc(4, GFP_KERNEL);
	info->domain_attr->name = kstrdup("domain", GFP_KERNEL);
	info->fabric_attr->name = kstrdup("fabric", GFP_KERNEL);
	info->fabric_attr->prov_name = kstrdup("provider", GFP_KERNEL);
	return info;
}

static void allocinfo(struct test *t)
{
	struct kfi_info *info;
	unsigned int i, failures = 0;
	bool failed;

	if (!can_fail(t))
		return;
	for (i = 1; i < MANY; i++) {
		fail_allocation(i);
		info = kfi_allocinfo();
		failed = allocations_succeed();
		failures += !info;
		kfi_freeinfo(info);
		if (!failed)
			break;
	}
	expect_true(t, info);
	expect_true(t, failures);
}

static void dupinfo(struct test *t)
{
	struct kfi_info *info, *copy = NULL;
	unsigned int i, failures = 0;
	bool failed;

	if (!can_fail(t))
		return;
	info = full_info();
	if (!expect_true(t, info))
		return;
	for (i = 1; i < MANY; i++) {
		fail_allocation(i);
		copy = kfi_dupinfo(info);
		failed = allocations_succeed();
		failures += !copy;
		kfi_freeinfo(copy);
		if (!failed)
			break;
	}
	expect_true(t, copy);
	expect_true(t, failures);
	kfi_freeinfo(info);
}

/* Providers that get memory answer, and others do not keep them from that. */
static void getinfo(struct test *t)
{
	struct mock *first = mock_init(0, "mock-1", 1);
	struct mock *second = mock_init(1, "mock-2", 1);
	unsigned int i, failures = 0;
	struct kfi_info *info;
	bool failed;
	int ret;

	if (!can_fail(t))
		return;
	first->answer = mock_answer_unnamed;
	second->answer = mock_answer_two;
	if (!expect(t, mock_register(first), 0))
		return;
	expect(t, mock_register(second), 0);
	for (i = 1; i < MANY; i++) {
		info = NULL;
		fail_allocation(i);
		ret = kfi_getinfo(API_VERSION, NULL, NULL, 0, NULL, &info);
		failed = allocations_succeed();
		/* At most one of them has failed. */
		expect(t, ret, 0);
		expect_true(t, info);
		kfi_freeinfo(info);
		if (!failed)
			break;
	}
	expect_true(t, i < MANY);
	expect(t, mock_deregister(second), 0);
	for (i = 1; i < MANY; i++) {
		struct kfi_info *hints = hints_for("mock-1");

		if (!expect_true(t, hints))
			break;
		info = NULL;
		fail_allocation(i);
		ret = kfi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info);
		failed = allocations_succeed();
		expect(t, ret, info ? 0 : -ENOMEM);
		failures += !info;
		kfi_freeinfo(info);
		kfi_freeinfo(hints);
		if (!failed)
			break;
	}
	expect(t, ret, 0);
	expect_true(t, failures);
	expect(t, mock_deregister(first), 0);
}

static void registers(struct test *t)
{
	struct mock *mocks[MOCKS];
	unsigned int i, slot;
	bool failed;
	int ret;

	if (!can_fail(t))
		return;
	/* If there were as many before, there is room for them. */
	for (slot = 0; slot < MOCKS; slot++) {
		static const char *const names[MOCKS] = {
			"mock-0", "mock-1", "mock-2", "mock-3", "mock-4", "mock-5",
		};
		struct mock *mock = mock_init(slot, names[slot], 1);
		struct kfi_provider before = mock->provider;

		for (i = 1; i < MANY; i++) {
			fail_allocation(i);
			ret = mock_register(mock);
			failed = allocations_succeed();
			if (!ret)
				break;
			expect(t, ret, failed ? -ENOMEM : 0);
			expect(t, memcmp(&before, &mock->provider, sizeof(before)), 0);
			expect(t, mock_deregister(mock), -KFI_EINVAL);
			expect(t, ask_and_free(names[slot]), -KFI_ENODATA);
		}
		mocks[slot] = mock;
	}
	for (slot = 0; slot < MOCKS; slot++) {
		fail_allocation(1);
		ret = mock_deregister(mocks[slot]);
		allocations_succeed();
		expect(t, ret, 0);
	}
}

static void fabric(struct test *t)
{
	int users = module_refcount(THIS_MODULE);
	struct mock *mock = mock_init(0, "mock", 1);
	unsigned int i, failures = 0;
	struct kfid_fabric *fabric;
	bool failed;
	int ret;

	if (!can_fail(t))
		return;
	if (!expect(t, mock_register(mock), 0))
		return;
	for (i = 1; i < MANY; i++) {
		fail_allocation(i);
		ret = open_fabric_of("mock", &fabric);
		failed = allocations_succeed();
		expect(t, module_refcount(THIS_MODULE), users + !ret);
		if (ret) {
			expect(t, ret, failed ? -ENOMEM : 0);
			failures++;
			continue;
		}
		/* To close takes no memory. */
		fail_allocation(1);
		ret = kfi_close(&fabric->fid);
		allocations_succeed();
		expect(t, ret, 0);
		if (!failed)
			break;
	}
	expect_true(t, failures && i < MANY);
	expect(t, atomic_read(&mock->fabrics), 0);
	expect(t, mock_deregister(mock), 0);
}

const struct test_case memory_tests[] = {
	{ "memory/allocinfo", "", allocinfo },
	{ "memory/dupinfo", "", dupinfo },
	{ "memory/getinfo", "", getinfo },
	{ "memory/register", "", registers },
	{ "memory/fabric", "", fabric },
	{}
};
