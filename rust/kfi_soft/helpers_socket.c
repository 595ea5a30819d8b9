// SPDX-License-Identifier: GPL-2.0
#include "../kfi/helpers_socket.inc.c"
