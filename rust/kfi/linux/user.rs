// SPDX-License-Identifier: GPL-2.0

//! The users of tasks.

use kernel::task::Kuid;

/// Returns whose the current task is.
pub fn current() -> Kuid {
    kernel::current!().uid()
}
