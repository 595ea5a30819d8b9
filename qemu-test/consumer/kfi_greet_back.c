// SPDX-License-Identifier: GPL-2.0
/*
 * The same once more, so that both can be in one machine.
 */
#include "kfi_greet.c"
