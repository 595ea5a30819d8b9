// SPDX-License-Identifier: GPL-2.0

//! Interrupts that are disabled once for several locks, and preemption.
//!
//! To disable interrupts may cost more than all that is done under the lock, as in user-mode Linux,
//! where it takes two system calls of the host. Locks that are taken while they are disabled already
//! only count.

use kernel::{
    interrupt::{
        local_interrupt_disable,
        LocalInterruptDisabled, //
    },
    types::NotThreadSafe, //
};

use super::bindings;

/// A part of a path in which interrupts are disabled, so that its locks need not.
///
/// It is short: nothing in it takes longer than what is done under a lock, and it ends before
/// anybody's triggers run.
///
/// Where the kernel is a realtime one, locks do not disable interrupts, and neither does this.
pub(crate) struct Section(Option<LocalInterruptDisabled>);

impl Section {
    /// Disables interrupts.
    #[inline]
    pub(crate) fn begin() -> Self {
        let mut section = Self::none();
        section.resume();
        section
    }

    /// Disables nothing.
    #[inline]
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Disables interrupts again.
    #[inline]
    pub(crate) fn resume(&mut self) {
        if cfg!(not(CONFIG_PREEMPT_RT)) && self.0.is_none() {
            self.0 = Some(local_interrupt_disable());
        }
    }

    /// Ends it early.
    #[inline]
    pub(crate) fn end(&mut self) {
        drop(self.0.take());
    }
}

/// Returns whether the caller has interrupts disabled, or is one.
pub(crate) fn are_disabled() -> bool {
    // SAFETY: Callable from any context.
    unsafe { bindings::irqs_disabled() }
}

/// A part of a path in which the thread is not preempted.
///
/// Not where the kernel is a realtime one: there locks may sleep.
pub(crate) struct NoPreemption(NotThreadSafe);

impl NoPreemption {
    /// Disables preemption.
    #[inline]
    pub(crate) fn begin() -> Self {
        if cfg!(not(CONFIG_PREEMPT_RT)) {
            // SAFETY: Callable from any context; `drop` enables it again, on the same thread.
            unsafe { bindings::preempt_disable() };
        }
        Self(NotThreadSafe)
    }
}

impl Drop for NoPreemption {
    #[inline]
    fn drop(&mut self) {
        if cfg!(not(CONFIG_PREEMPT_RT)) {
            // SAFETY: This thread has disabled it in `begin`.
            unsafe { bindings::preempt_enable() };
        }
    }
}
