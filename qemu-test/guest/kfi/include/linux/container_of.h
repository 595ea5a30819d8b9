/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KFI_GUEST_LINUX_CONTAINER_OF_H
#define _KFI_GUEST_LINUX_CONTAINER_OF_H

/* Only for functions that user space does not call. */
#define container_of(ptr, type, member)	((type *)((char *)(ptr) - offsetof(type, member)))

#endif
