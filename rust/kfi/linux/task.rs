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
    let task = kernel::current!().as_ptr();
    // As READ_ONCE() does: others may change some of them meanwhile.
    // SAFETY: A task may look at its own flags.
    unsafe { (&raw const (*task).flags).read_volatile() }
}

/// Returns whether the current task never is in user space: it is a thread of the kernel, or one that works
/// for a process there, as those of io_uring.
#[allow(dead_code, reason = "not every module asks")]
pub fn runs_in_kernel_only() -> bool {
    flags() & (bindings::PF_KTHREAD | bindings::PF_USER_WORKER) != 0
}

/// Returns whether the current task is about to end, and no signal is meant for it any more. The one that has killed
/// it, or kills its process now, may end a wait or not.
#[allow(dead_code, reason = "not every module asks")]
pub fn is_exiting() -> bool {
    flags() & bindings::PF_EXITING != 0
}

/// Returns whether the current task or its whole process ends, though it may not have begun to do so. That of
/// a process that was killed may have taken its signal already, so that none ends a wait of it.
#[allow(dead_code, reason = "not every module asks")]
pub fn has_to_end() -> bool {
    // SAFETY: A task may look at its own flags, and those of its process.
    unsafe { bindings::has_to_end() }
}
