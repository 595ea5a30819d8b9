// SPDX-License-Identifier: GPL-2.0

//! A limit for memory.

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

use crate::kfi::bindings;

/// How much memory there may be, and is.
pub(crate) struct Budget {
    used: Atomic<usize>,
    limit: usize,
}

/// Returns half of the machine's memory, in bytes.
pub(crate) fn half_of_memory() -> usize {
    // SAFETY: Callable from any context.
    let pages = unsafe { bindings::memory_pages() };
    pages.saturating_mul(kernel::page::PAGE_SIZE / 2)
}

impl Budget {
    /// Allows `limit` bytes.
    pub(crate) fn new(limit: usize) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                used: Atomic::new(0),
                limit,
            },
            GFP_KERNEL,
        )?)
    }

    /// Takes `bytes`; `EDQUOT` if there are not as many left.
    pub(crate) fn charge(this: &Arc<Self>, bytes: usize) -> Result<Charge> {
        // Relaxed: a number that nothing else hangs on.
        let mut used = this.used.load(ordering::Relaxed);
        loop {
            let sum = used.checked_add(bytes).ok_or(EDQUOT)?;
            if sum > this.limit {
                return Err(EDQUOT);
            }
            match this.used.cmpxchg(used, sum, ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => used = other,
            }
        }
        Ok(Charge {
            budget: this.clone(),
            bytes,
        })
    }
}

/// Bytes that are taken until this is dropped.
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.budget.used.fetch_sub(self.bytes, ordering::Relaxed);
    }
}
