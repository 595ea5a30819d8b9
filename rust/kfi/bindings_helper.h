/* SPDX-License-Identifier: GPL-2.0 */
/* What bindgen reads: the public headers, our helpers, and the request numbers of the shim. */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/uio.h>
#include <linux/bvec.h>
#include <linux/scatterlist.h>

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
#include <uapi/kfi_shim.h>

#include "helpers.h"
#include "../kfabric/trace.h"
#include "../kfi_soft/trace.h"

/* bindgen does not evaluate macros that contain sizeof; it does evaluate constants. */
static const u32 KFI_SHIM_IOC_SIZE_MASK = IOCSIZE_MASK;
static const u32 KFI_SHIM_IOC_VERSION = KFI_SHIM_VERSION;
static const u32 KFI_SHIM_IOC_CLOSE = KFI_SHIM_CLOSE;
static const u32 KFI_SHIM_IOC_GETINFO = KFI_SHIM_GETINFO;
static const u32 KFI_SHIM_IOC_READ_INFO = KFI_SHIM_READ_INFO;
static const u32 KFI_SHIM_IOC_CONTROL = KFI_SHIM_CONTROL;
static const u32 KFI_SHIM_IOC_WAIT_FD = KFI_SHIM_WAIT_FD;
static const u32 KFI_SHIM_IOC_FABRIC = KFI_SHIM_FABRIC;
static const u32 KFI_SHIM_IOC_DOMAIN = KFI_SHIM_DOMAIN;
static const u32 KFI_SHIM_IOC_CNTR_OPEN = KFI_SHIM_CNTR_OPEN;
static const u32 KFI_SHIM_IOC_CNTR_READ = KFI_SHIM_CNTR_READ;
static const u32 KFI_SHIM_IOC_CNTR_READERR = KFI_SHIM_CNTR_READERR;
static const u32 KFI_SHIM_IOC_CNTR_ADD = KFI_SHIM_CNTR_ADD;
static const u32 KFI_SHIM_IOC_CNTR_ADDERR = KFI_SHIM_CNTR_ADDERR;
static const u32 KFI_SHIM_IOC_CNTR_SET = KFI_SHIM_CNTR_SET;
static const u32 KFI_SHIM_IOC_CNTR_SETERR = KFI_SHIM_CNTR_SETERR;
static const u32 KFI_SHIM_IOC_CNTR_WAIT = KFI_SHIM_CNTR_WAIT;
static const u32 KFI_SHIM_IOC_WAIT_OPEN = KFI_SHIM_WAIT_OPEN;
static const u32 KFI_SHIM_IOC_WAIT = KFI_SHIM_WAIT;
static const u32 KFI_SHIM_IOC_TRYWAIT = KFI_SHIM_TRYWAIT;
static const u32 KFI_SHIM_IOC_POLL_OPEN = KFI_SHIM_POLL_OPEN;
static const u32 KFI_SHIM_IOC_POLL_ADD = KFI_SHIM_POLL_ADD;
static const u32 KFI_SHIM_IOC_POLL_DEL = KFI_SHIM_POLL_DEL;
static const u32 KFI_SHIM_IOC_POLL = KFI_SHIM_POLL;
static const u32 KFI_SHIM_IOC_CQ_OPEN = KFI_SHIM_CQ_OPEN;
static const u32 KFI_SHIM_IOC_CQ_READ = KFI_SHIM_CQ_READ;
static const u32 KFI_SHIM_IOC_CQ_SREAD = KFI_SHIM_CQ_SREAD;
static const u32 KFI_SHIM_IOC_CQ_READERR = KFI_SHIM_CQ_READERR;
static const u32 KFI_SHIM_IOC_CQ_WRITE = KFI_SHIM_CQ_WRITE;
static const u32 KFI_SHIM_IOC_CQ_SIGNAL = KFI_SHIM_CQ_SIGNAL;
static const u32 KFI_SHIM_IOC_EQ_OPEN = KFI_SHIM_EQ_OPEN;
static const u32 KFI_SHIM_IOC_EQ_READ = KFI_SHIM_EQ_READ;
static const u32 KFI_SHIM_IOC_EQ_SREAD = KFI_SHIM_EQ_SREAD;
static const u32 KFI_SHIM_IOC_EQ_WRITE = KFI_SHIM_EQ_WRITE;
static const u32 KFI_SHIM_IOC_EQ_READERR = KFI_SHIM_EQ_READERR;
static const u32 KFI_SHIM_IOC_EQ_WRITE_ERROR = KFI_SHIM_EQ_WRITE_ERROR;
