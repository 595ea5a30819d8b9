// SPDX-License-Identifier: GPL-2.0
/*
 * The structures of /dev/kfi have no padding, of which there would be bytes of the kernel's stack to
 * read: see AsBytes in abi.rs. The compiler refuses one that has.
 */
#include <linux/build_bug.h>
#include <linux/ioctl.h>
#include <linux/types.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
#include <uapi/kfi_shim.h>

/* Clang looks at what is used only: these are, by their sizes. */
#include "requests.h"

/* Structures that are neither those of a request nor in one. */
#define WITHOUT_PADDING(name)	static_assert(sizeof(struct kfi_shim_##name))

WITHOUT_PADDING(info);
WITHOUT_PADDING(wait_event);
WITHOUT_PADDING(cq_entry);
WITHOUT_PADDING(segment);
WITHOUT_PADDING(rma_segment);

#pragma GCC diagnostic pop
