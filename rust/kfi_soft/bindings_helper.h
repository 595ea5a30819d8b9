/* SPDX-License-Identifier: GPL-2.0 */
#include "../kfi/bindings_helper.h"
#include "../kfi/helpers_secret.h"
#include "../kfi/helpers_socket.h"
#include "params.h"
#include "trace.h"
