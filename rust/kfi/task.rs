// SPDX-License-Identifier: GPL-2.0

//! What the kernel crate's tasks lack.

use super::bindings;

/// Lets others have the CPU if they want it; may sleep.
pub(crate) fn cond_resched() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { bindings::cond_resched() };
}
