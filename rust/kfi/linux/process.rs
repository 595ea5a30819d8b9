// SPDX-License-Identifier: GPL-2.0

//! Processes that are remembered.
//!
//! C header: [`include/linux/pid.h`](srctree/include/linux/pid.h).

use core::ptr::NonNull;

use kernel::prelude::*;

use super::bindings;

/// A process, which may be over by now: unlike its number, this never means another one.
///
/// # Invariants
///
/// It owns a reference of the `struct pid`, which no other process gets as long as there is one.
pub struct Process(NonNull<bindings::pid>);

// SAFETY: References are counted from any thread, and nothing else is done with it.
unsafe impl Send for Process {}

// SAFETY: As above; it does not change.
unsafe impl Sync for Process {}

impl Process {
    /// The current task's; `ESRCH` if that has none any more, as it has ended. From any context.
    pub fn current() -> Result<Self> {
        let task = kernel::current!().as_ptr();
        // SAFETY: The current task stays meanwhile.
        let pid = unsafe { bindings::get_task_pid(task, bindings::pid_type_PIDTYPE_TGID) };
        // INVARIANT: The reference that was taken is owned.
        NonNull::new(pid).map(Self).ok_or(ESRCH)
    }

    /// Returns whether the current task is one of its threads.
    pub fn is_current(&self) -> bool {
        // SAFETY: May be called by any task, of itself.
        let current = unsafe { bindings::current_tgid() };
        core::ptr::eq(current, self.0.as_ptr())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: The reference is owned by the type invariants.
        unsafe { bindings::put_pid(self.0.as_ptr()) };
    }
}
