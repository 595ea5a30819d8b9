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
    /// What this is a part of.
    whole: Option<Arc<Budget>>,
}

/// Returns half of the machine's memory, in bytes.
pub(crate) fn half_of_memory() -> usize {
    // SAFETY: Callable from any context.
    let pages = unsafe { bindings::memory_pages() };
    pages.saturating_mul(kernel::page::PAGE_SIZE / 2)
}

impl Budget {
    /// Allows `limit` bytes, and no more than are left of the whole.
    pub(crate) fn new(limit: usize, whole: Option<Arc<Self>>) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                used: Atomic::new(0),
                limit,
                whole,
            },
            GFP_KERNEL,
        )?)
    }

    /// Takes `bytes`; `EDQUOT` if there are not as many left.
    pub(crate) fn charge(this: &Arc<Self>, bytes: usize) -> Result<Charge> {
        this.take(bytes)?;
        if let Some(whole) = &this.whole {
            whole.take(bytes).inspect_err(|_| this.give_back(bytes))?;
        }
        Ok(Charge {
            budget: this.clone(),
            bytes,
        })
    }
}

impl Budget {
    /// Notes that `bytes` are used; `EDQUOT` if there are not as many left.
    fn take(&self, bytes: usize) -> Result {
        // Relaxed: a number that nothing else hangs on.
        let mut used = self.used.load(ordering::Relaxed);
        loop {
            let sum = used.checked_add(bytes).ok_or(EDQUOT)?;
            if sum > self.limit {
                return Err(EDQUOT);
            }
            match self.used.cmpxchg(used, sum, ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => used = other,
            }
        }
    }

    /// Notes that `bytes` are not used any more.
    fn give_back(&self, bytes: usize) {
        // Relaxed: as above.
        self.used.fetch_sub(bytes, ordering::Relaxed);
    }
}

/// Bytes that are taken until this is dropped.
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
        if let Some(whole) = &self.budget.whole {
            whole.give_back(self.bytes);
        }
    }
}
