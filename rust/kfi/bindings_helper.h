/* SPDX-License-Identifier: GPL-2.0 */
/* What bindgen reads: the public headers, our helpers, and the request numbers of the shim. */
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
#include <uapi/kfi_shim.h>

#include "helpers.h"
#include "../kfabric/trace.h"
#include "../kfi_soft/trace.h"
#include "../kfi_bench/bench.h"

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
static const u32 KFI_SHIM_IOC_STRERROR = KFI_SHIM_STRERROR;
static const u32 KFI_SHIM_IOC_INFO_TEXT = KFI_SHIM_INFO_TEXT;
static const u32 KFI_SHIM_IOC_TOSTR = KFI_SHIM_TOSTR;
static const u32 KFI_SHIM_IOC_BIND = KFI_SHIM_BIND;
static const u32 KFI_SHIM_IOC_ENABLE = KFI_SHIM_ENABLE;
static const u32 KFI_SHIM_IOC_HANDLED = KFI_SHIM_HANDLED;
static const u32 KFI_SHIM_IOC_BUFFER = KFI_SHIM_BUFFER;
static const u32 KFI_SHIM_IOC_AV_OPEN = KFI_SHIM_AV_OPEN;
static const u32 KFI_SHIM_IOC_AV_INSERT = KFI_SHIM_AV_INSERT;
static const u32 KFI_SHIM_IOC_AV_INSERTSVC = KFI_SHIM_AV_INSERTSVC;
static const u32 KFI_SHIM_IOC_AV_INSERTSYM = KFI_SHIM_AV_INSERTSYM;
static const u32 KFI_SHIM_IOC_AV_INSERTED = KFI_SHIM_AV_INSERTED;
static const u32 KFI_SHIM_IOC_AV_REMOVE = KFI_SHIM_AV_REMOVE;
static const u32 KFI_SHIM_IOC_AV_LOOKUP = KFI_SHIM_AV_LOOKUP;
static const u32 KFI_SHIM_IOC_AV_STRADDR = KFI_SHIM_AV_STRADDR;
static const u32 KFI_SHIM_IOC_MR = KFI_SHIM_MR;
static const u32 KFI_SHIM_IOC_MR_KEY = KFI_SHIM_MR_KEY;
static const u32 KFI_SHIM_IOC_MR_REFRESH = KFI_SHIM_MR_REFRESH;
static const u32 KFI_SHIM_IOC_MR_RAW_ATTR = KFI_SHIM_MR_RAW_ATTR;
static const u32 KFI_SHIM_IOC_MR_MAP_RAW = KFI_SHIM_MR_MAP_RAW;
static const u32 KFI_SHIM_IOC_MR_UNMAP_KEY = KFI_SHIM_MR_UNMAP_KEY;
static const u32 KFI_SHIM_IOC_EP_OPEN = KFI_SHIM_EP_OPEN;
static const u32 KFI_SHIM_IOC_TX_CONTEXT = KFI_SHIM_TX_CONTEXT;
static const u32 KFI_SHIM_IOC_RX_CONTEXT = KFI_SHIM_RX_CONTEXT;
static const u32 KFI_SHIM_IOC_STX_CONTEXT = KFI_SHIM_STX_CONTEXT;
static const u32 KFI_SHIM_IOC_SRX_CONTEXT = KFI_SHIM_SRX_CONTEXT;
static const u32 KFI_SHIM_IOC_EP_ALIAS = KFI_SHIM_EP_ALIAS;
static const u32 KFI_SHIM_IOC_CANCEL = KFI_SHIM_CANCEL;
static const u32 KFI_SHIM_IOC_GETOPT = KFI_SHIM_GETOPT;
static const u32 KFI_SHIM_IOC_SETOPT = KFI_SHIM_SETOPT;
static const u32 KFI_SHIM_IOC_GETNAME = KFI_SHIM_GETNAME;
static const u32 KFI_SHIM_IOC_SETNAME = KFI_SHIM_SETNAME;
static const u32 KFI_SHIM_IOC_GETPEER = KFI_SHIM_GETPEER;
static const u32 KFI_SHIM_IOC_LISTEN = KFI_SHIM_LISTEN;
static const u32 KFI_SHIM_IOC_CONNECT = KFI_SHIM_CONNECT;
static const u32 KFI_SHIM_IOC_ACCEPT = KFI_SHIM_ACCEPT;
static const u32 KFI_SHIM_IOC_REJECT = KFI_SHIM_REJECT;
static const u32 KFI_SHIM_IOC_SHUTDOWN = KFI_SHIM_SHUTDOWN;
static const u32 KFI_SHIM_IOC_JOIN = KFI_SHIM_JOIN;
static const u32 KFI_SHIM_IOC_POST = KFI_SHIM_POST;
static const u32 KFI_SHIM_IOC_POST_BATCH = KFI_SHIM_POST_BATCH;
static const u32 KFI_SHIM_IOC_QUERY_ATOMIC = KFI_SHIM_QUERY_ATOMIC;
static const u32 KFI_SHIM_IOC_ATOMIC_VALID = KFI_SHIM_ATOMIC_VALID;
static const u32 KFI_SHIM_IOC_QUEUE_WORK = KFI_SHIM_QUEUE_WORK;
static const u32 KFI_SHIM_IOC_QUEUE_WORK_BATCH = KFI_SHIM_QUEUE_WORK_BATCH;
static const u32 KFI_SHIM_IOC_CANCEL_WORK = KFI_SHIM_CANCEL_WORK;
static const u32 KFI_SHIM_IOC_RELEASE_WORK = KFI_SHIM_RELEASE_WORK;
static const u32 KFI_SHIM_IOC_FLUSH_WORK = KFI_SHIM_FLUSH_WORK;
