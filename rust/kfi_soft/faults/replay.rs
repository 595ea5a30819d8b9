// SPDX-License-Identifier: GPL-2.0

//! Which of the requests that have a sequence number have arrived.

#![forbid(unsafe_code)]

use kernel::prelude::*;

/// How many numbers may be under way.
const SIZE: u64 = 64;

/// A window of sequence numbers.
///
/// # Invariants
///
/// All below `base` have arrived, of those from there on the ones whose bit, counted from `base`,
/// is set in `seen`; `next` is the number that is given next, at most [`SIZE`] above `base`.
pub(crate) struct Window {
    next: u64,
    base: u64,
    seen: u64,
}

impl Window {
    /// Nothing was sent.
    pub(crate) const fn new() -> Self {
        // INVARIANT: No number was given.
        Self {
            next: 0,
            base: 0,
            seen: 0,
        }
    }

    /// Returns whether there is a number to be given.
    pub(crate) fn has_room(&self) -> bool {
        self.next.wrapping_sub(self.base) < SIZE
    }

    /// Gives a number; none if too many are under way.
    pub(crate) fn assign(&mut self) -> Option<u64> {
        if !self.has_room() {
            return None;
        }
        let sequence = self.next;
        // INVARIANT: There is room.
        self.next = self.next.wrapping_add(1);
        Some(sequence)
    }

    /// Notes that a number has arrived; `false` if it has before, or was never given.
    pub(crate) fn accept(&mut self, sequence: u64) -> bool {
        let at = sequence.wrapping_sub(self.base);
        if at >= self.next.wrapping_sub(self.base) {
            return false;
        }
        let bit = 1u64.wrapping_shl(at as u32);
        if self.seen & bit != 0 {
            return false;
        }
        self.seen |= bit;
        while self.seen & 1 != 0 {
            // INVARIANT: The first one has arrived.
            self.seen >>= 1;
            self.base = self.base.wrapping_add(1);
        }
        true
    }
}

#[kunit_tests(kfi_soft_replay)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_once() {
        let mut window = Window::new();
        for round in 0..1000 {
            assert_eq!(window.assign(), Some(round));
            assert!(window.accept(round));
            assert!(!window.accept(round));
            assert!(!window.accept(round + 1));
            assert!(round == 0 || !window.accept(round - 1));
        }
    }

    #[test]
    fn in_any_order() {
        let mut window = Window::new();
        for sequence in 0..SIZE {
            assert_eq!(window.assign(), Some(sequence));
        }
        assert_eq!(window.assign(), None);
        for sequence in (1..SIZE).rev() {
            assert!(window.accept(sequence));
            assert!(!window.accept(sequence));
            // The first one is yet to arrive.
            assert_eq!(window.assign(), None);
        }
        assert!(window.accept(0));
        assert!((0..SIZE).all(|sequence| !window.accept(sequence)));
        assert_eq!(window.assign(), Some(SIZE));
    }
}
