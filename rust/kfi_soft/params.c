// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters that are texts, which modules in Rust cannot declare.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "params.h"

char kfi_soft_address[KFI_SOFT_ADDRESS_SIZE];
module_param_string(address, kfi_soft_address, sizeof(kfi_soft_address), 0444);
MODULE_PARM_DESC(address,
		 "IPv4 addresses of the NICs, with commas between them: machines are joined over TCP (default: none, and they are not)");

char kfi_soft_secret[KFI_SOFT_SECRET_SIZE];
module_param_string(secret, kfi_soft_secret, sizeof(kfi_soft_secret), 0400);
MODULE_PARM_DESC(secret,
		 "Description of a key, of type logon or user, whose payload all machines share and strangers do not (default: none, and any machine is a peer)");
