/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What build.rs has bindgen read: the ioctl interface, and the numbers of
 * kfabric that it carries.
 */
#include <kfi_errno.h>
#include <kfabric.h>
#include <kfi_eq.h>
#include <uapi/kfi_shim.h>

/* bindgen does not evaluate _IOWR(), the compiler does. */
#define REQUEST(name) static const __u32 KFI_REQUEST_##name = KFI_SHIM_##name

REQUEST(VERSION);
REQUEST(CLOSE);
REQUEST(GETINFO);
REQUEST(READ_INFO);
REQUEST(CONTROL);
REQUEST(WAIT_FD);
REQUEST(FABRIC);
REQUEST(DOMAIN);
REQUEST(CNTR_OPEN);
REQUEST(CNTR_READ);
REQUEST(CNTR_READERR);
REQUEST(CNTR_ADD);
REQUEST(CNTR_ADDERR);
REQUEST(CNTR_SET);
REQUEST(CNTR_SETERR);
REQUEST(CNTR_WAIT);

/* The version of the API that the headers describe. */
static const __u32 KFI_HEADER_VERSION =
	KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION);
