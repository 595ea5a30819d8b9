// SPDX-License-Identifier: GPL-2.0

//! The sleep of the current task.

use core::ptr;
#[cfg(linux_waiters)]
use kernel::prelude::*;

use super::bindings;
use super::timeout::Deadline;

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wakeup {
    /// There was no need to sleep.
    NotNeeded,
    /// Its threshold was due.
    Woken,
    /// The deadline has passed.
    Expired,
    /// A signal is pending.
    Interrupted,
}

/// Sets the state of the current task, with a full barrier after it.
#[cfg(linux_waiters)]
pub fn set_current_state(state: c_int) {
    // SAFETY: A task may always set its own state.
    unsafe { bindings::set_current_state(state.cast_unsigned()) };
}

/// Sleeps until woken or `deadline`; returns `false` when it has passed.
pub fn schedule_until(deadline: Deadline) -> bool {
    let mut expires = deadline.as_nanos();
    let expires = expires.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: `expires` is null or valid for the call; the caller has set the task's state.
    unsafe { bindings::schedule_hrtimeout(expires, bindings::hrtimer_mode_HRTIMER_MODE_ABS) != 0 }
}
