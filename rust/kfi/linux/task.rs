// SPDX-License-Identifier: GPL-2.0

//! Functions of tasks that the kernel crate lacks.

use kernel::{
    pid_namespace::PidNamespace,
    prelude::*,
    task::Pid, //
};

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

/// Returns the number of the current task's process, which is given to another one only after all others were.
#[allow(dead_code, reason = "not every module asks")]
pub fn process() -> Pid {
    // SAFETY: The first namespace is there as long as the kernel is.
    let first = unsafe { PidNamespace::from_ptr(&raw const bindings::init_pid_ns) };
    // Not `Task::tgid()`: in a kernel without CONFIG_SCHEDSTATS Rust looks for that member of
    // `task_struct` where it is not, as bindgen loses the alignment of a structure without members.
    kernel::current!().tgid_nr_ns(Some(first))
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
