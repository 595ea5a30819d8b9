// SPDX-License-Identifier: GPL-2.0

//! The sleep of the current task.
//!
//! Its state and its sleep belong to code that makes sure that somebody wakes it: wait queues, and waits
//! for values. So these functions are for this folder.

use core::ptr;
#[cfg(linux_waiters)]
use kernel::{
    prelude::*,
    task::TASK_INTERRUPTIBLE, //
};

use super::bindings;
use super::timeout::Deadline;

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wakeup {
    /// There was no need to sleep.
    NotNeeded,
    /// Its threshold was due, or its condition holds.
    Woken,
    /// The deadline has passed.
    Expired,
    /// A signal is pending.
    Interrupted,
}

/// A state that a task may have which goes on by itself or is woken. In others, such as that of a task
/// that is dead, it would never run again and its stack would be given away.
#[cfg(linux_waiters)]
#[derive(Clone, Copy)]
pub(super) enum TaskState {
    /// It runs.
    Running,
    /// It sleeps at its next [`schedule_until`], until somebody or a signal wakes it.
    Interruptible,
    /// It sleeps at its next [`schedule_until`], until somebody wakes it, as if it had nothing to do.
    Idle,
}

#[cfg(linux_waiters)]
impl TaskState {
    /// Returns whether a signal ends the sleep.
    pub(super) fn minds_signals(self) -> bool {
        matches!(self, Self::Interruptible)
    }

    /// Returns what C calls it.
    fn as_raw(self) -> c_uint {
        match self {
            Self::Running => bindings::TASK_RUNNING,
            Self::Interruptible => TASK_INTERRUPTIBLE.cast_unsigned(),
            Self::Idle => bindings::TASK_IDLE,
        }
    }
}

/// Sets the state of the current task, with a full barrier after it.
#[cfg(linux_waiters)]
pub(super) fn set_current_state(state: TaskState) {
    // SAFETY: A task may always begin to run, or to sleep, so that it can be woken.
    unsafe { bindings::set_current_state(state.as_raw()) };
}

/// Sets the state of the current task without any order: to run, or under a lock that whoever wakes the
/// task takes first.
#[cfg(linux_waiters)]
pub(super) fn set_current_state_unordered(state: TaskState) {
    // SAFETY: As above.
    unsafe { bindings::set_current_state_unordered(state.as_raw()) };
}

/// Sleeps until woken or `deadline`; returns `false` when it has passed. A task that runs goes on at once.
pub(super) fn schedule_until(deadline: Deadline) -> bool {
    let mut expires = deadline.as_nanos();
    let expires = expires.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: `expires` is null or valid for the call, and in all states that a task may be given here
    // it comes back.
    unsafe { bindings::schedule_hrtimeout(expires, bindings::hrtimer_mode_HRTIMER_MODE_ABS) != 0 }
}
