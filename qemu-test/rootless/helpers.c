// SPDX-License-Identifier: GPL-2.0
#include "../../rust/kfi/helpers.inc.c"
