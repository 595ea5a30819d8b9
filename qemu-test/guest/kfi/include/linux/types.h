/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's types that the public headers use, for a reader in user space.
 */
#ifndef _KFI_GUEST_LINUX_TYPES_H
#define _KFI_GUEST_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include_next <linux/types.h>

typedef struct {
	int counter;
} atomic_t;

#endif
