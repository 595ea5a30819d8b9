// SPDX-License-Identifier: GPL-2.0

//! Interrupts that are disabled once for several locks.
//!
//! To disable interrupts may cost more than all that is done under the lock, as in user-mode Linux,
//! where it takes two system calls of the host. Locks that are taken while they are disabled already
//! only count.

use kernel::interrupt::{
    local_interrupt_disable,
    LocalInterruptDisabled, //
};

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
