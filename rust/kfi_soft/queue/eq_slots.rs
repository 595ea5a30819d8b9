// SPDX-License-Identifier: GPL-2.0

//! Space in an event queue: an operation takes a slot when it begins, so that its event always
//! fits.
//!
//! Every slot is free, taken by a [`Reservation`], or has an entry in it, from when the entry is
//! written until it is read out.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::kfi::fid::{
    Fid,
    Object, //
};

/// The slots of an event queue.
pub(crate) struct EqSlots {
    /// How many are free.
    free: Atomic<usize>,
}

impl EqSlots {
    /// All `count` slots are free.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            free: Atomic::new(count),
        }
    }

    /// Takes a slot; `false` if there is none. From any context.
    fn take(&self) -> bool {
        // Relaxed: `cmpxchg` validates the value.
        let mut free = self.free.load(ordering::Relaxed);
        while let Some(left) = free.checked_sub(1) {
            // Acquire: what the slot is used for comes after it was freed.
            match self.free.cmpxchg(free, left, ordering::Acquire) {
                Ok(_) => return true,
                Err(current) => free = current,
            }
        }
        false
    }

    /// Gives slots back. From any context.
    pub(crate) fn give(&self, count: usize) {
        // Release: a thread that takes them comes after what they were used for.
        // See `qemu-test/litmus/KFI-slot-reuse.litmus`.
        self.free.fetch_add(count, ordering::Release);
    }

    /// Returns how many slots are free.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn free(&self) -> usize {
        // Relaxed: a snapshot.
        self.free.load(ordering::Relaxed)
    }
}

/// A queue with slots.
pub(crate) trait Bounded: Object {
    /// Returns the slots.
    fn slots(&self) -> &EqSlots;
}

/// A slot of a queue that an entry can be written to later, once.
///
/// Keeps the memory of the queue, not the queue itself, from being closed: after that there is
/// nobody to write for. Dropping it frees the slot.
pub(crate) struct Reservation<T: Bounded>(Option<Arc<Fid<T>>>);

impl<T: Bounded> Reservation<T> {
    /// Takes a slot; `None` if there is none. From any context.
    pub(crate) fn new(queue: &Fid<T>) -> Option<Self> {
        queue.slots().take().then(|| Self(Some(queue.arc())))
    }

    /// Uses the slot, for an entry that frees it when it is read out.
    pub(crate) fn redeem(mut self, write: impl FnOnce(&Fid<T>)) {
        if let Some(queue) = self.0.take() {
            write(&queue);
        }
    }
}

impl<T: Bounded> Drop for Reservation<T> {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.slots().give(1);
        }
    }
}

#[kunit_tests(kfi_soft_eq_slots)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are() {
        let slots = EqSlots::new(2);
        assert!(slots.take());
        assert!(slots.take());
        assert!(!slots.take());
        slots.give(1);
        assert!(slots.take());
        assert!(!slots.take());
        assert_eq!(slots.free(), 0);
        slots.give(2);
        assert_eq!(slots.free(), 2);
    }
}
