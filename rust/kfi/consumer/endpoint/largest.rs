// SPDX-License-Identifier: GPL-2.0

//! The memory that counts for the largest operation so far.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use crate::kfi::consumer::quota::{
    Charge,
    Quota, //
};

/// The arrays and the memory that a provider may keep, of as many operations as it takes.
#[pin_data]
pub(super) struct Largest {
    /// The most that it could keep of one so far.
    widest: Atomic<usize>,
    /// How many operations there may be, and what counts for these.
    #[pin]
    charge: Mutex<(usize, Charge)>,
}

impl Largest {
    /// Nothing so far, which counts in `quota`.
    pub(super) fn new(quota: &Arc<Quota>) -> impl PinInit<Self> {
        let charge = Quota::nothing(quota);
        pin_init!(Self {
            widest: Atomic::new(0),
            charge <- new_mutex!((0, charge), "kfi::Largest::charge"),
        })
    }

    /// Counts for `operations`, or more if there are, of which so much may be kept; `EDQUOT` if there
    /// is not as much left.
    pub(super) fn widen(&self, kept: usize, operations: usize) -> Result {
        // Relaxed: only grows, with the lock held.
        if kept <= self.widest.load(ordering::Relaxed) {
            return Ok(());
        }
        let mut state = self.charge.lock();
        let (depth, charge) = &mut *state;
        if kept > self.widest.load(ordering::Relaxed) {
            charge.set(kept.saturating_mul(operations.max(*depth)))?;
            *depth = operations.max(*depth);
            self.widest.store(kept, ordering::Relaxed);
        }
        Ok(())
    }

    /// Counts for `operations`, if that are more than before; returns how many that were. `EDQUOT` if
    /// there is not as much left.
    pub(super) fn deepen(&self, operations: usize) -> Result<usize> {
        let mut state = self.charge.lock();
        let (depth, charge) = &mut *state;
        let before = *depth;
        if operations > before {
            let widest = self.widest.load(ordering::Relaxed);
            charge.set(widest.saturating_mul(operations))?;
            *depth = operations;
        }
        Ok(before)
    }

    /// Counts for as many as before again, after all.
    pub(super) fn restore(&self, operations: usize) {
        let mut state = self.charge.lock();
        let (depth, charge) = &mut *state;
        if operations < *depth {
            let widest = self.widest.load(ordering::Relaxed);
            // Never refused, as it gives back.
            let _ = charge.set(widest.saturating_mul(operations));
            *depth = operations;
        }
    }

    /// Returns how many operations were counted for.
    pub(super) fn depth(&self) -> usize {
        self.charge.lock().0
    }

    /// Takes out what counts.
    pub(super) fn take(&self) -> Charge {
        self.charge.lock().1.take()
    }
}
