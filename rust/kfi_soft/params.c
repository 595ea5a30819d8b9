// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters that are texts, which modules in Rust cannot declare.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "params.h"

/* With the lock of the module's parameters, as all that is done to them. */
static enum kfi_soft_params_stage kfi_soft_params_stage;

/*
 * Waits for those who are within a parameter. The files of parameters are there before the module is
 * initialised, and after it has been left.
 */
void kfi_soft_params_enter(enum kfi_soft_params_stage stage)
{
	kernel_param_lock(THIS_MODULE);
	kfi_soft_params_stage = stage;
	kernel_param_unlock(THIS_MODULE);
}

char kfi_soft_address[KFI_SOFT_ADDRESS_SIZE];

static struct kparam_string kfi_soft_address_text = {
	.maxlen = sizeof(kfi_soft_address),
	.string = kfi_soft_address,
};

static int kfi_soft_address_set(const char *val, const struct kernel_param *kp)
{
	switch (kfi_soft_params_stage) {
	case KFI_SOFT_PARAMS_EARLY:
		/* The file can be found before the module is initialised. */
		if (*val == '+' || *val == '-')
			return -EINVAL;
		return param_set_copystring(val, kp);
	case KFI_SOFT_PARAMS_OPEN:
		return kfi_soft_address_change(val);
	default:
		return -ENODEV;
	}
}

static int kfi_soft_address_get(char *buffer, const struct kernel_param *kp)
{
	if (kfi_soft_params_stage != KFI_SOFT_PARAMS_OPEN)
		return param_get_string(buffer, kp);
	return kfi_soft_address_list(buffer, PAGE_SIZE);
}

static const struct kernel_param_ops kfi_soft_address_ops = {
	.set = kfi_soft_address_set,
	.get = kfi_soft_address_get,
};

module_param_cb(address, &kfi_soft_address_ops, &kfi_soft_address_text, 0644);
__MODULE_PARM_TYPE(address, "string");
MODULE_PARM_DESC(address,
		 "IPv4 addresses of the NICs, or names of network devices that have them, with commas between them: machines are joined over TCP (default: none, and they are not). Later +ADDRESS is one more, -ADDRESS one less");

char kfi_soft_secret[KFI_SOFT_SECRET_SIZE];
module_param_string(secret, kfi_soft_secret, sizeof(kfi_soft_secret), 0400);
MODULE_PARM_DESC(secret,
		 "Description of a key, of type logon or user, whose payload all machines share and strangers do not (default: none, and any machine is a peer)");
