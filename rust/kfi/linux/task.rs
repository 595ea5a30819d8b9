// SPDX-License-Identifier: GPL-2.0

//! Functions of tasks that the kernel crate lacks.

use kernel::prelude::*;

use super::bindings;

/// Lets others have the CPU if they want it; may sleep.
pub fn cond_resched() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { bindings::cond_resched() };
}

/// Returns the flags of the current task.
#[allow(dead_code, reason = "not every module asks")]
fn flags() -> c_uint {
    // SAFETY: A task may look at its own flags, most of which only it changes.
    unsafe { (*kernel::current!().as_ptr()).flags }
}

/// Returns whether the current task is a thread of the kernel.
#[allow(dead_code, reason = "not every module asks")]
pub fn is_kernel_thread() -> bool {
    flags() & bindings::PF_KTHREAD != 0
}

/// Returns whether the current task is about to end. No signal reaches it any more, nor does the one
/// that has killed it end a wait.
#[allow(dead_code, reason = "not every module asks")]
pub fn is_exiting() -> bool {
    flags() & bindings::PF_EXITING != 0
}
