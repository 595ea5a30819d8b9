/* SPDX-License-Identifier: GPL-2.0 */
#include <assert.h>

/* As in the kernel, without a message as well: not every compiler takes it so. */
#undef static_assert
#define static_assert(expr, ...)	_KFI_STATIC_ASSERT(expr, ##__VA_ARGS__, #expr)
#define _KFI_STATIC_ASSERT(expr, text, ...)	_Static_assert(expr, text)
