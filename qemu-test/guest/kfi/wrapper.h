/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read by bindgen (build.rs): the ioctl interface, and the numbers of kfabric
 * that it carries.
 */
#include <kfi_errno.h>
#include <kfabric.h>
#include <kfi_atomic.h>
#include <kfi_domain.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>
#include <kfi_tagged.h>
#include <kfi_trigger.h>
#include <uapi/kfi_shim.h>

/* KFI_REQUEST_...: the numbers of the requests, by build.rs. */
#include "requests.h"

/* The version of the API that the headers describe. */
static const __u32 KFI_HEADER_VERSION =
	KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION);
