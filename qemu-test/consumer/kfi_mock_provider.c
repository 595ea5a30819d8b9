// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_enosys.h>
#include <kfi_prov.h>

static int mock_close(struct kfid *fid)
{
	kfree(container_of(fid, struct kfid_fabric, fid));
	return 0;
}

static struct kfi_ops mock_fid_ops = {
	.size = sizeof(mock_fid_ops),
	.close = mock_close,
	.bind = kfi_no_bind,
	.control = kfi_no_control,
	.ops_open = kfi_no_ops_open,
};

static struct kfi_ops_fabric mock_fabric_ops = {
	.size = sizeof(mock_fabric_ops),
	.domain = kfi_no_domain,
	.passive_ep = kfi_no_passive_ep,
	.eq_open = kfi_no_eq_open,
	.wait_open = kfi_no_wait_open,
	.trywait = kfi_no_trywait,
};

static int mock_fabric(struct kfi_fabric_attr *attr, struct kfid_fabric **fabric, void *context)
{
	*fabric = kzalloc_obj(**fabric);
	if (!*fabric)
		return -KFI_ENOMEM;
	(*fabric)->fid.fclass = KFI_CLASS_FABRIC;
	(*fabric)->fid.context = context;
	(*fabric)->fid.ops = &mock_fid_ops;
	(*fabric)->ops = &mock_fabric_ops;
	(*fabric)->api_version = attr->api_version;
	return 0;
}

static int mock_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			struct kfi_info *hints, struct kfi_info **info)
{
	/* It can do nothing, so it matches only those who want nothing. */
	if (node || service || (hints && hints->caps))
		return -KFI_ENODATA;
	*info = kfi_allocinfo();
	if (!*info)
		return -KFI_ENOMEM;
	/* The core fills in the provider's name and version. */
	(*info)->fabric_attr->name = kstrdup("mock", GFP_KERNEL);
	(*info)->domain_attr->name = kstrdup("mock0", GFP_KERNEL);
	if ((*info)->fabric_attr->name && (*info)->domain_attr->name)
		return 0;
	kfi_freeinfo(*info);
	return -KFI_ENOMEM;
}

static struct kfi_provider mock_provider = {
	.name = "kfi_mock_provider",
	.version = KFI_VERSION(1, 0),
	.kfi_version = KFI_VERSION(1, 7),
	.kgetinfo = mock_getinfo,	/* what there is: a list of struct kfi_info */
	.kfabric = mock_fabric,		/* opens a fabric; all else follows from its operations */
};

static int __init kfi_mock_provider_init(void)
{
	return kfi_provider_register(&mock_provider);
}
module_init(kfi_mock_provider_init);

static void __exit kfi_mock_provider_exit(void)
{
	kfi_provider_deregister(&mock_provider);
}
module_exit(kfi_mock_provider_exit);

MODULE_DESCRIPTION("The smallest provider of kfabric");
MODULE_LICENSE("GPL");
