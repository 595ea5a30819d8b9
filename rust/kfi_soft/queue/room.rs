// SPDX-License-Identifier: GPL-2.0

//! Room in a completion queue.
//!
//! An operation that is carried out on the stack of its poster has nothing where its completion
//! could lie while the ring is full, so it takes a slot of the ring first. All others have memory of
//! their own, and take a slot only if there is one when they end; else they queue up behind the ring.
//!
//! # Why nothing stays behind a ring that has room
//!
//! Under the lock of the queue, whoever finds no slot adds its entry to the backlog, sets
//! `backlogged`, and then looks for a slot once more. Whoever gives slots back looks at `backlogged`
//! after that, and takes the lock to move entries up if it is set. Each step is fully ordered before
//! the look, so that one of the two sees what the other has done. Only the first entry of a backlog
//! needs that: behind it, those who give slots back see `backlogged` set.
//!
//! # Why nobody waits in vain for room
//!
//! Behind the ring of a large queue some entries more may lie, up to its size, so that it costs
//! memory only when it is used. With more than these it is crowded: nothing is posted, and arrivals
//! wait. That nobody does so in vain is the same again, with `starved`: see
//! [`Listeners`](crate::queue::listeners::Listeners).

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

/// The slots of a ring, and whether there is something behind it.
pub(crate) struct Room {
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

impl Room {
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
        // Never more than there are, not even for a moment: whoever finds none may go elsewhere.
        // Relaxed: `cmpxchg` validates the value.
        let mut taken = self.taken.load(ordering::Relaxed);
        while taken < self.size {
            // Acquire: what the slot is used for comes after it was freed.
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
        // Relaxed: whoever needs more has a barrier.
        self.backlogged.load(ordering::Relaxed)
    }

    /// Returns how many entries may be behind the ring before nothing more is to come.
    pub(crate) fn allowance(&self) -> usize {
        self.allowance
    }

    /// Returns whether nothing more is to come.
    pub(crate) fn is_crowded(&self) -> bool {
        // Relaxed: whoever needs more has a barrier.
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

#[kunit_tests(kfi_soft_room)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are() {
        let room = Room::new(2, 0);
        assert!(room.take());
        assert!(room.take());
        assert!(!room.take());
        assert!(!room.give(1));
        assert!(room.take());
        assert!(!room.take());
        assert!(!room.give(2));
        assert!(room.take());
    }

    #[test]
    fn a_crowd_is_more_than_is_allowed() {
        let room = Room::new(1, 2);
        assert!(!room.note_backlog(2) && !room.is_crowded());
        assert!(!room.note_backlog(3) && room.is_crowded());
        assert!(!room.note_backlog(4) && room.is_crowded());
        assert!(room.note_backlog(2) && !room.is_crowded());
        assert!(!room.note_backlog(0));
    }

    #[test]
    fn who_gives_sees_the_backlog() {
        let room = Room::new(1, 0);
        assert!(room.take());
        assert!(room.begin_backlog());
        assert!(!room.begin_backlog());
        assert!(room.is_backlogged());
        assert!(room.give(1));
        room.end_backlog();
        assert!(!room.is_backlogged());
        assert!(!room.give(0));
    }
}
