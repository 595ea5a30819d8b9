// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>

#include <kfabric.h>
#include <kfi_domain.h>
#include <kfi_eq.h>

static int __init kfi_example_init(void)
{
	struct kfi_cntr_attr attr = { .wait_obj = KFI_WAIT_QUEUE };
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfid_cntr *cntr;
	struct kfi_info *info;
	int ret;

	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, NULL, &info);
	if (ret)
		return ret;
	ret = kfi_fabric(info->fabric_attr, &fabric, NULL);
	if (ret)
		goto free_info;
	ret = kfi_domain(fabric, info, &domain, NULL);
	if (ret)
		goto close_fabric;
	ret = kfi_cntr_open(domain, &attr, &cntr, NULL);
	if (ret)
		goto close_domain;

	kfi_cntr_add(cntr, 3);
	pr_info("%s: waited for 3: %d\n", info->domain_attr->name, kfi_cntr_wait(cntr, 3, 100));
	pr_info("%s: waited for 4: %d\n", info->domain_attr->name, kfi_cntr_wait(cntr, 4, 100));

	kfi_close(&cntr->fid);
close_domain:
	kfi_close(&domain->fid);
close_fabric:
	kfi_close(&fabric->fid);
free_info:
	kfi_freeinfo(info);
	return ret;
}
module_init(kfi_example_init);

static void __exit kfi_example_exit(void)
{
}
module_exit(kfi_example_exit);

MODULE_DESCRIPTION("The smallest consumer of kfabric");
MODULE_LICENSE("GPL");
