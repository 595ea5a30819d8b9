// SPDX-License-Identifier: GPL-2.0

//! Functions of tasks that the kernel crate lacks.

use kernel::task::Kuid;

use super::bindings;

/// Returns whose the current task is.
pub(crate) fn user() -> Kuid {
    kernel::current!().uid()
}

/// Lets others have the CPU if they want it; may sleep.
pub(crate) fn cond_resched() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { bindings::cond_resched() };
}
