// SPDX-License-Identifier: GPL-2.0

//! Space in a completion queue.
//!
//! An operation that is carried out on the stack of its poster has no memory for its completion
//! while the ring is full, so it takes a slot of the ring first. All others have memory of their
//! own, and take a slot only if there is one when they end; else they queue up behind the ring.
//!
//! # Why nothing stays behind a ring that has space
//!
//! Under the lock of the queue, a thread that finds no slot adds its entry to the backlog, sets
//! `backlogged`, and then looks for a slot once more. A thread that gives slots back looks at
//! `backlogged` after that, and takes the lock to move entries up if it is set. Each step is fully
//! ordered before the look, so that one of the two sees what the other has done
//! (`qemu-test/litmus/KFI-cq-backlog.litmus`). Only the first entry of a backlog needs that: behind it,
//! threads that give slots back see `backlogged` set.
//!
//! # Why no operation waits in vain for space
//!
//! Behind the ring of a large queue there may be more entries, up to its size, so that it costs
//! memory only when it is used. With more than that it is crowded: nothing is posted, and arrivals
//! wait. That none of them waits in vain follows in the same way, with `starved`: see
//! [`Listeners`](crate::queue::listeners::Listeners) and `qemu-test/litmus/KFI-cq-starve.litmus`.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

/// The slots of a completion queue's ring, and whether there is something behind it.
pub(crate) struct CqSpace {
    size: usize,
    /// How many entries may be behind the ring before nothing more is to come.
    allowance: usize,
    /// There are more.
    crowded: Atomic<bool>,
    /// Slots with an entry in them, or promised to an operation. Never more than there are.
    taken: Atomic<usize>,
    /// Entries are behind the ring. Changes under the lock of the queue.
    backlogged: Atomic<bool>,
}

impl CqSpace {
    /// All `size` slots are free.
    pub(crate) fn new(size: usize, allowance: usize) -> Self {
        Self {
            size,
            allowance,
            crowded: Atomic::new(false),
            taken: Atomic::new(0),
            backlogged: Atomic::new(false),
        }
    }

    /// Takes a slot; `false` if there is none. From any context.
    pub(crate) fn take(&self) -> bool {
        // Never more than there are, not even for a moment: an operation that finds none may go
        // elsewhere.
        // Relaxed: `cmpxchg` validates the value.
        let mut taken = self.taken.load(ordering::Relaxed);
        while taken < self.size {
            // Acquire: what the slot is used for comes after it was freed.
            // See `qemu-test/litmus/KFI-slot-reuse.litmus`.
            match self
                .taken
                .cmpxchg(taken, taken.wrapping_add(1), ordering::Acquire)
            {
                Ok(_) => return true,
                Err(current) => taken = current,
            }
        }
        false
    }

    /// Gives slots back; returns whether something is to be moved up.
    #[must_use]
    pub(crate) fn give(&self, count: usize) -> bool {
        if count != 0 {
            // Full: before the look at `backlogged`, see the top of this file.
            self.taken.fetch_sub(count, ordering::Full);
        }
        // Relaxed: ordered by the line before.
        self.backlogged.load(ordering::Relaxed)
    }

    /// Returns whether there is something behind the ring.
    pub(crate) fn is_backlogged(&self) -> bool {
        // Relaxed: a caller that needs more has a barrier.
        self.backlogged.load(ordering::Relaxed)
    }

    /// Returns how many entries may be behind the ring before nothing more is to come.
    pub(crate) fn allowance(&self) -> usize {
        self.allowance
    }

    /// Returns whether nothing more is to come.
    pub(crate) fn is_crowded(&self) -> bool {
        // Relaxed: a caller that needs more has a barrier.
        self.crowded.load(ordering::Relaxed)
    }

    /// Notes how many entries are behind the ring, under the lock; returns whether others may go on
    /// that could not before.
    pub(crate) fn note_backlog(&self, count: usize) -> bool {
        let crowded = count > self.allowance;
        if crowded == self.is_crowded() {
            return false;
        }
        // Full: before the look at who has starved.
        self.crowded.xchg(crowded, ordering::Full);
        !crowded
    }

    /// Notes that there is something behind the ring, under the lock; returns whether that is new.
    pub(crate) fn begin_backlog(&self) -> bool {
        // Full: before another look at the slots, see the top of this file.
        !self.backlogged.xchg(true, ordering::Full)
    }

    /// Notes that there is nothing behind the ring any more, under the lock.
    pub(crate) fn end_backlog(&self) {
        // Full: before the look at who has starved.
        self.backlogged.xchg(false, ordering::Full);
    }
}

#[kunit_tests(kfi_soft_cq_space)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are() {
        let space = CqSpace::new(2, 0);
        assert!(space.take());
        assert!(space.take());
        assert!(!space.take());
        assert!(!space.give(1));
        assert!(space.take());
        assert!(!space.take());
        assert!(!space.give(2));
        assert!(space.take());
    }

    #[test]
    fn a_crowd_is_more_than_is_allowed() {
        let space = CqSpace::new(1, 2);
        assert!(!space.note_backlog(2) && !space.is_crowded());
        assert!(!space.note_backlog(3) && space.is_crowded());
        assert!(!space.note_backlog(4) && space.is_crowded());
        assert!(space.note_backlog(2) && !space.is_crowded());
        assert!(!space.note_backlog(0));
    }

    #[test]
    fn who_gives_sees_the_backlog() {
        let space = CqSpace::new(1, 0);
        assert!(space.take());
        assert!(space.begin_backlog());
        assert!(!space.begin_backlog());
        assert!(space.is_backlogged());
        assert!(space.give(1));
        space.end_backlog();
        assert!(!space.is_backlogged());
        assert!(!space.give(0));
    }
}
