/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KFI_GUEST_LINUX_COMPLETION_H
#define _KFI_GUEST_LINUX_COMPLETION_H

/* Only part of structures that user space does not use. */
struct completion {
	int done;
};

#endif
