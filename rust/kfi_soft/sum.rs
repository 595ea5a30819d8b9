// SPDX-License-Identifier: GPL-2.0

//! Sums of what is used, to which each part belongs as long as it is there.

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

/// A sum of what is used, by whoever uses it.
#[derive(Clone)]
pub(crate) struct Sum(Arc<Atomic<usize>>);

impl Sum {
    /// Nothing.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Arc::new(Atomic::new(0), GFP_KERNEL)?))
    }

    /// As [`Self::new`], but does not wait for memory.
    pub(crate) fn new_at_once() -> Result<Self> {
        Ok(Self(Arc::new(Atomic::new(0), GFP_NOWAIT)?))
    }

    /// Returns the sum.
    pub(crate) fn sum(&self) -> usize {
        // Relaxed: it bounds, and what is added beside this may be beyond that.
        self.0.load(ordering::Relaxed)
    }

    /// Adds something that is used.
    pub(crate) fn count(&self, used: usize) -> Count {
        // Relaxed: as above.
        self.0.fetch_add(used, ordering::Relaxed);
        Count {
            sum: self.clone(),
            used,
        }
    }
}

/// A part of a sum, as long as there is this.
pub(crate) struct Count {
    sum: Sum,
    used: usize,
}

impl Drop for Count {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.sum.0.fetch_sub(self.used, ordering::Relaxed);
    }
}
