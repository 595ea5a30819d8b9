/* SPDX-License-Identifier: GPL-2.0 */
#include "../kfi/bindings_helper.h"
#include <uapi/kfi_shim.h>

static const u32 KFI_SHIM_IOC_SIZE_MASK = IOCSIZE_MASK;
#include "requests.h"
