// SPDX-License-Identifier: GPL-2.0
/*
 * The exports of the core.  The functions are written in Rust; their prototypes
 * come from the public headers, so that symbol versions follow the C types.
 */
#include <linux/export.h>
#include <linux/module.h>

#include <kfabric.h>
#include <kfi_errno.h>
#include <kfi_prov.h>

EXPORT_SYMBOL_GPL(kfi_version);
EXPORT_SYMBOL_GPL(kfi_getinfo);
EXPORT_SYMBOL_GPL(kfi_fabric);
EXPORT_SYMBOL_GPL(kfi_allocinfo);
EXPORT_SYMBOL_GPL(kfi_dupinfo);
EXPORT_SYMBOL_GPL(kfi_freeinfo);
EXPORT_SYMBOL_GPL(kfi_provider_register);
EXPORT_SYMBOL_GPL(kfi_provider_deregister);
EXPORT_SYMBOL_GPL(kfi_strerror);
EXPORT_SYMBOL_GPL(kfi_tostr);
EXPORT_SYMBOL_GPL(kfi_getparams);
EXPORT_SYMBOL_GPL(kfi_freeparams);
