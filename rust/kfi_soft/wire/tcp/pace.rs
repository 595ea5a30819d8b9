// SPDX-License-Identifier: GPL-2.0

//! How often a thread that goes through many requests lets others have the CPU.

#![forbid(unsafe_code)]

use crate::kfi::linux::task::cond_resched;

/// So many small requests are gone through before others have the CPU.
const REQUESTS: usize = 16;
/// One for which so many bytes are copied takes as long as two.
const BYTES: usize = 2 << 10;

/// A thread's way through many requests, each of which may wake somebody.
///
/// One that is woken on this CPU by the first of them, and has it at once, finds that one, and waits again: two
/// switches for each request. When it has the CPU a little later, it finds many.
pub(super) struct Pace(usize);

impl Pace {
    /// The beginning.
    pub(super) fn new() -> Self {
        Self(0)
    }

    /// A request is done, for which so many bytes were copied: others may have the CPU if it is time for that, and
    /// they want it. May sleep.
    pub(super) fn step(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(1).saturating_add(bytes / BYTES);
        if self.0 >= REQUESTS {
            self.0 = 0;
            cond_resched();
        }
    }
}
