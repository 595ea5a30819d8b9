// SPDX-License-Identifier: GPL-2.0

//! Functions of tasks that the kernel crate lacks.

use super::bindings;

/// Lets others have the CPU if they want it; may sleep.
pub fn cond_resched() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { bindings::cond_resched() };
}

/// Returns whether the current task is a thread of the kernel.
#[allow(dead_code, reason = "not every module asks")]
pub fn is_kernel_thread() -> bool {
    // SAFETY: A task may look at its own flags, most of which only it changes.
    let flags = unsafe { (*kernel::current!().as_ptr()).flags };
    flags & bindings::PF_KTHREAD != 0
}
