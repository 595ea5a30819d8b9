// SPDX-License-Identifier: GPL-2.0
#include "../kfi/helpers_secret.inc.c"
