// SPDX-License-Identifier: GPL-2.0

//! The users of tasks.

use kernel::task::Kuid;

/// Returns the user of the current task.
pub fn current() -> Kuid {
    kernel::current!().uid()
}
