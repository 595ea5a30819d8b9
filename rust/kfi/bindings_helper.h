/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read by bindgen for every module, by way of the bindings_helper.h of the module if it has headers
 * of its own: the public headers, and the helpers.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/uio.h>
#include <linux/bvec.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>

#include <kfabric.h>
#include <kfi_errno.h>
#include <kfi_prov.h>
#include <kfi_eq.h>
#include <kfi_domain.h>
#include <kfi_endpoint.h>
#include <kfi_cm.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>
#include <kfi_atomic.h>
#include <kfi_trigger.h>
#include <kfi_soft_ext.h>
#include <kfi_cxi_ext.h>

#include "helpers.h"
