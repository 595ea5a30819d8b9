// SPDX-License-Identifier: GPL-2.0

//! How much one call may do for others, before the rest is left to a work queue.
//!
//! A call that posts, cancels or completes something may set a lot going: a receive may be what many
//! messages have waited for, and the end of an operation what many others have. It has one budget for
//! all of that, which is handed down through whatever it sets going. So budgets do not multiply where
//! one thing leads to another.
//!
//! An operation that ends inside of a comparison of messages and receives does not begin others
//! that have waited for it: that is left to the work queue at once. So the stack does not grow with
//! what is queued.
//!
//! Operations that a counter makes due have budgets of their own, one after the other, which
//! together are that of the thread that drains what is due (see
//! [`RunList`](crate::trigger::run_list::RunList)): a small one for each operation that is completed here.

#![forbid(unsafe_code)]

use crate::kfi::linux::interrupts::{
    self,
    IrqGuard, //
};

/// Up to as many bytes are copied in the context of a caller, more by a work queue.
pub(crate) const INLINE_LIMIT: usize = 16 << 10;

/// How much may be done.
pub(crate) struct Budget {
    /// Messages and receives that are compared.
    comparisons: usize,
    /// Operations that begin.
    operations: usize,
    /// Messages that come together with a receive.
    messages: usize,
    /// Bytes that are copied. The last operation or message may have more than are left.
    bytes: usize,
    /// This is inside of a comparison.
    comparing: bool,
    /// Keeps interrupts disabled, once for all locks of something short.
    irqs: IrqGuard,
}

impl Budget {
    /// With interrupts disabled.
    const INTERRUPT: Self = Self {
        comparisons: 256,
        operations: 2,
        messages: 2,
        bytes: 4096,
        comparing: false,
        irqs: IrqGuard::none(),
    };

    /// With preemption disabled.
    const THREAD: Self = Self {
        comparisons: 4096,
        operations: 64,
        messages: 64,
        bytes: 32 * INLINE_LIMIT,
        comparing: false,
        irqs: IrqGuard::none(),
    };

    /// For one operation that is begun because it is due.
    const DUE: Self = Self {
        comparisons: 256,
        operations: 1,
        messages: 1,
        bytes: INLINE_LIMIT,
        comparing: false,
        irqs: IrqGuard::none(),
    };

    /// Returns that of a thread.
    pub(crate) const fn thread() -> Self {
        Self::THREAD
    }

    /// Disables interrupts, as for a lock, and returns the budget for something short. Whatever is set going ends
    /// that by [`Self::end_section`] before it does anything that may take longer than what is done under a lock.
    pub(crate) fn section() -> Self {
        let irqs = IrqGuard::begin();
        Self {
            irqs,
            ..Self::of_caller()
        }
    }

    /// Returns what keeps interrupts disabled, if anything does.
    pub(crate) fn irqs(&mut self) -> &mut IrqGuard {
        &mut self.irqs
    }

    /// Ends the section, if there is one.
    pub(crate) fn end_section(&mut self) {
        self.irqs.end();
    }

    /// Returns that of an operation that is begun because it is due; another one may have waited before it.
    pub(crate) fn due() -> Self {
        if interrupts::are_disabled() {
            Self {
                bytes: Self::INTERRUPT.bytes,
                ..Self::DUE
            }
        } else {
            Self::DUE
        }
    }

    /// Returns that of a caller.
    pub(crate) fn of_caller() -> Self {
        if interrupts::are_disabled() {
            Self::INTERRUPT
        } else {
            Self::THREAD
        }
    }

    /// Returns whether it is spent.
    pub(crate) fn is_spent(&self) -> bool {
        self.comparisons == 0 || self.messages == 0 || self.bytes == 0
    }

    /// Returns how many comparisons may be made.
    pub(crate) fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// Returns whether another message may come together with a receive, after so many that have, with
    /// so many bytes.
    pub(crate) fn covers(&self, messages: usize, bytes: usize) -> bool {
        messages < self.messages && bytes < self.bytes
    }

    /// Spends what comparisons take.
    pub(crate) fn spend_comparisons(&mut self, comparisons: usize, messages: usize, bytes: usize) {
        self.comparisons = self.comparisons.saturating_sub(comparisons);
        self.messages = self.messages.saturating_sub(messages);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Spends what it takes to begin an operation on `len` bytes, which may be `matched` with a receive;
    /// `false` if there is not as much.
    pub(crate) fn spend_operation(&mut self, len: usize, matched: bool) -> bool {
        let bytes = copied(len);
        if self.is_spent() || self.operations == 0 || self.bytes < bytes {
            return false;
        }
        self.operations = self.operations.saturating_sub(1);
        // Messages that are compared spend their bytes when they are received.
        if !matched {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        true
    }

    /// Does something as part of a comparison.
    pub(crate) fn in_comparison(&mut self, act: impl FnOnce(&mut Self)) {
        let outer = core::mem::replace(&mut self.comparing, true);
        act(self);
        self.comparing = outer;
    }

    /// Returns whether this is inside of a comparison.
    pub(crate) fn is_comparing(&self) -> bool {
        self.comparing
    }
}

/// Returns how many of `len` bytes are copied at once: none if there are more than are copied in the
/// context of a caller.
pub(crate) fn copied(len: usize) -> usize {
    if len <= INLINE_LIMIT {
        len
    } else {
        0
    }
}
