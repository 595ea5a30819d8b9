// SPDX-License-Identifier: GPL-2.0

//! The users of tasks.

use kernel::task::Kuid;

use super::bindings;

/// Returns the user for whom the current task acts: its own one, but for the time in which it has the credentials
/// of somebody else.
pub fn current() -> Kuid {
    // SAFETY: In process context a task has credentials.
    Kuid::from_raw(unsafe { bindings::current_uid() })
}
