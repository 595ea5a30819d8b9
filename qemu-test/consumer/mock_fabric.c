// SPDX-License-Identifier: GPL-2.0
/*
 * kfi_fabric(), and what keeps the module of a provider loaded.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "mock.h"

static void arguments(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);
	struct kfid_fabric *fabric = ERR_PTR(-EINVAL);
	struct kfi_fabric_attr attr = { .name = "mock" };

	if (!expect(t, mock_register(mock), 0))
		return;
	expect(t, kfi_fabric(NULL, &fabric, NULL), -KFI_EINVAL);
	expect(t, kfi_fabric(&attr, &fabric, NULL), -KFI_EINVAL);
	attr.prov_name = "";
	expect(t, kfi_fabric(&attr, &fabric, NULL), -KFI_EINVAL);
	attr.prov_name = "mock";
	expect(t, kfi_fabric(&attr, NULL, NULL), -KFI_EINVAL);
	attr.prov_name = "mock-other";
	expect(t, kfi_fabric(&attr, &fabric, NULL), -KFI_ENODEV);
	expect(t, atomic_read(&mock->opened), 0);
	expect_true(t, fabric == ERR_PTR(-EINVAL));

	/* Its own name is the provider's business. */
	attr.prov_name = "mock";
	attr.name = NULL;
	if (expect(t, kfi_fabric(&attr, &fabric, t), 0)) {
		expect_true(t, fabric->fid.context == t);
		expect(t, fabric->fid.fclass, KFI_CLASS_FABRIC);
		expect(t, kfi_close(&fabric->fid), 0);
	}
	expect(t, mock_deregister(mock), 0);
}

static void pins(struct test *t)
{
	int users = module_refcount(THIS_MODULE);
	struct mock *mock = mock_init(0, "mock", 1);
	struct kfid_fabric *fabrics[3];
	unsigned int i;

	if (!expect(t, mock_register(mock), 0))
		return;
	/* A provider that only is there pins nothing. */
	expect(t, module_refcount(THIS_MODULE), users);
	expect(t, ask_and_free("mock"), 0);
	expect(t, module_refcount(THIS_MODULE), users);
	for (i = 0; i < 3; i++) {
		if (!expect(t, open_fabric_of("mock", &fabrics[i]), 0))
			break;
		expect(t, module_refcount(THIS_MODULE), users + i + 1);
	}
	while (i--) {
		container_of(fabrics[i], struct mock_fabric, fabric)->busy = true;
		expect(t, kfi_close(&fabrics[i]->fid), -KFI_EBUSY);
		expect(t, kfi_close(&fabrics[i]->fid), -KFI_EBUSY);
		expect(t, module_refcount(THIS_MODULE), users + i + 1);
		container_of(fabrics[i], struct mock_fabric, fabric)->busy = false;
		expect(t, kfi_close(&fabrics[i]->fid), 0);
		expect(t, module_refcount(THIS_MODULE), users + i);
	}
	expect(t, atomic_read(&mock->fabrics), 0);
	expect(t, mock_deregister(mock), 0);
}

/* The provider's functions are reached as before. */
static void calls(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);
	struct kfid_fabric *fabric;
	struct mock_fabric *own;
	void *ops = NULL;

	if (!expect(t, mock_register(mock), 0))
		return;
	if (expect(t, open_fabric_of("mock", &fabric), 0)) {
		own = container_of(fabric, struct mock_fabric, fabric);
		expect(t, fabric->fid.ops->size, sizeof(struct kfi_ops));
		expect(t, kfi_control(&fabric->fid, KFI_GETWAIT, NULL), 0);
		expect(t, own->control, KFI_GETWAIT);
		expect(t, fabric->fid.ops->bind(&fabric->fid, NULL, 0), -KFI_ENOSYS);
		expect(t, kfi_open_ops(&fabric->fid, "none", 0, &ops, NULL),
		       -KFI_ENOSYS);
		expect(t, kfi_close(&fabric->fid), 0);
	}
	expect(t, mock_deregister(mock), 0);
}

static int opens_nothing(struct mock *mock, struct kfid_fabric **fabric,
			 void *context)
{
	return 0;
}

static int opens_without_ops(struct mock *mock, struct kfid_fabric **fabric,
			     void *context)
{
	static struct kfid_fabric broken = {
		.fid.fclass = KFI_CLASS_FABRIC,
	};

	*fabric = &broken;
	return 0;
}

/* One that is open already. */
static int opens_again(struct mock *mock, struct kfid_fabric **fabric,
		       void *context)
{
	*fabric = mock->data;
	return 0;
}

static void failures(struct test *t)
{
	static const int results[] = {
		-KFI_ENODEV, -ENOMEM, -KFI_EOPBADSTATE, -4095, 1, INT_MAX,
		INT_MIN,
	};
	int users = module_refcount(THIS_MODULE);
	struct mock *mock = mock_init(0, "mock", 1);
	struct kfi_fabric_attr attr = { .prov_name = "mock", .name = "mock" };
	struct kfid_fabric *fabric = NULL;
	unsigned int i;

	if (!expect(t, mock_register(mock), 0))
		return;
	for (i = 0; i < ARRAY_SIZE(results); i++) {
		int error = results[i];

		/* Nonsense is some error. */
		if (error > 0)
			error = -EIO;
		else if (error < -4095)
			error = -EINVAL;
		mock->result = results[i];
		expect(t, kfi_fabric(&attr, &fabric, NULL), error);
		expect_true(t, !fabric);
		expect(t, module_refcount(THIS_MODULE), users);
	}
	mock->result = 0;
	mock->opens = opens_nothing;
	expect(t, kfi_fabric(&attr, &fabric, NULL), -EIO);
	expect_true(t, !fabric);
	mock->opens = opens_without_ops;
	expect(t, kfi_fabric(&attr, &fabric, NULL), -EIO);
	expect_true(t, !fabric);
	expect(t, module_refcount(THIS_MODULE), users);

	mock->opens = mock_open;
	if (expect(t, open_fabric_of("mock", &fabric), 0)) {
		struct kfid_fabric *second = NULL;

		mock->data = fabric;
		mock->opens = opens_again;
		expect(t, kfi_fabric(&attr, &second, NULL), -EIO);
		expect_true(t, !second);
		expect(t, module_refcount(THIS_MODULE), users + 1);
		expect(t, kfi_close(&fabric->fid), 0);
		expect(t, module_refcount(THIS_MODULE), users);
	}
	expect(t, mock_deregister(mock), 0);
}

static void on_fabric_call(struct mock *mock)
{
	int *results = mock->data;

	results[0] = ask_and_free("mock-1");
	results[1] = ask_and_free("mock-2");
	results[2] = open_and_close("mock-2");
	results[3] = kfi_provider_register(&mock->provider);
}

static void callback_calls(struct test *t)
{
	struct mock *first = mock_init(0, "mock-1", 1);
	struct mock *second = mock_init(1, "mock-2", 1);
	int results[4] = { 1, 1, 1, 1 };

	if (!expect(t, mock_register(first), 0))
		return;
	expect(t, mock_register(second), 0);
	first->on_fabric = on_fabric_call;
	first->data = results;
	expect(t, open_and_close("mock-1"), 0);
	expect(t, results[0], 0);
	expect(t, results[1], 0);
	expect(t, results[2], 0);
	expect(t, results[3], -KFI_EEXIST);
	expect(t, mock_deregister(second), 0);
	expect(t, mock_deregister(first), 0);
}

const struct test_case fabric_tests[] = {
	{ "fabric/arguments", "", arguments },
	{ "fabric/pins", "", pins },
	{ "fabric/calls", "", calls },
	{ "fabric/failures", "", failures },
	{ "fabric/callback-calls", "", callback_calls },
	{}
};
