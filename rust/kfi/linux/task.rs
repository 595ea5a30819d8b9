// SPDX-License-Identifier: GPL-2.0

//! Functions of tasks that the kernel crate lacks.

use super::bindings;

/// Lets others have the CPU if they want it; may sleep.
pub fn cond_resched() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { bindings::cond_resched() };
}
