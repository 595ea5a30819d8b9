// SPDX-License-Identifier: GPL-2.0

//! How much a thread runs of what is due before it leaves the rest to the work queue.

#![forbid(unsafe_code)]

use crate::{
    budget::INLINE_LIMIT,
    counter::ChangedBy,
    kfi::linux::interrupts, //
};

/// How many counter operations the beginning of a data transfer counts as.
const TRANSFER_COST: u32 = 16;

/// How much may be run before the rest is left to the work queue.
pub(super) struct DrainBudget {
    /// Counter operations.
    operations: u32,
    /// Bytes that are copied.
    bytes: usize,
    /// How many counter operations were spent, this budget's and those before it.
    spent: u64,
}

impl DrainBudget {
    /// With interrupts disabled.
    const INTERRUPT: Self = Self {
        operations: 2 * TRANSFER_COST,
        bytes: 4096,
        spent: 0,
    };

    /// With preemption disabled, for what an operation makes due that the provider completes: it may complete many
    /// before it returns.
    const COMPLETION: Self = Self {
        operations: 4 * TRANSFER_COST,
        bytes: INLINE_LIMIT,
        spent: 0,
    };

    /// With preemption disabled.
    pub(super) const THREAD: Self = Self {
        operations: 1024,
        bytes: 32 * INLINE_LIMIT,
        spent: 0,
    };

    /// Nothing.
    const NONE: Self = Self {
        operations: 0,
        bytes: 0,
        spent: 0,
    };

    /// Returns that of a caller, for what `origin` has made due.
    pub(super) fn of_caller(origin: ChangedBy) -> Self {
        match origin {
            _ if cfg!(CONFIG_PREEMPT_RT) => Self::NONE,
            ChangedBy::NextRegion => Self::NONE,
            _ if interrupts::are_disabled() => Self::INTERRUPT,
            ChangedBy::Application => Self::THREAD,
            ChangedBy::Provider => Self::COMPLETION,
        }
    }

    /// Returns that of a thread which goes on.
    pub(super) fn renewed(&self) -> Self {
        Self {
            spent: self.spent,
            ..Self::THREAD
        }
    }

    /// Returns whether it is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.operations == 0
    }

    /// Spends it.
    pub(super) fn spend(&mut self, operations: u32) {
        self.operations = self.operations.saturating_sub(operations);
        self.spent = self.spent.wrapping_add(u64::from(operations));
    }

    /// As [`Self::spend`], for something else that takes as long as so many.
    pub(super) fn charge(&mut self, operations: u32) {
        self.operations = self.operations.saturating_sub(operations);
    }

    /// Spends what a data transfer takes, unless there is not as much: then all of it.
    pub(super) fn spend_transfer(&mut self, bytes: usize) -> bool {
        match self.bytes.checked_sub(bytes) {
            Some(left) if !self.is_spent() => {
                self.bytes = left;
                self.spend(TRANSFER_COST);
                true
            }
            _ => {
                self.operations = 0;
                false
            }
        }
    }

    /// Returns how many counter operations may still be run.
    pub(super) fn operations(&self) -> u32 {
        self.operations
    }

    /// Returns how many counter operations were spent.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }
}
