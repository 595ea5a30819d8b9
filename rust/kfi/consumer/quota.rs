// SPDX-License-Identifier: GPL-2.0

//! A limit for what somebody holds: bytes of memory, or objects.

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

/// How much there may be, and is.
pub struct Quota {
    used: Atomic<usize>,
    limit: usize,
    /// The quota that this is a part of.
    whole: Option<Arc<Quota>>,
}

/// Returns half of the machine's memory, in bytes.
pub fn half_of_memory() -> usize {
    // SAFETY: Callable from any context.
    let pages = unsafe { bindings::memory_pages() };
    pages.saturating_mul(kernel::page::PAGE_SIZE / 2)
}

impl Quota {
    /// Allows `limit`, and no more than is left of the whole.
    pub fn new(limit: usize, whole: Option<Arc<Self>>) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                used: Atomic::new(0),
                limit,
                whole,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Takes `amount`; `EDQUOT` if there is not as much left.
    pub fn charge(this: &Arc<Self>, amount: usize) -> Result<Charge> {
        let mut charge = Self::nothing(this);
        charge.grow(amount)?;
        Ok(charge)
    }

    /// Takes nothing yet.
    pub fn nothing(this: &Arc<Self>) -> Charge {
        Charge {
            quota: this.clone(),
            amount: 0,
        }
    }

    /// Notes that `amount` is used, here and in the whole; `EDQUOT` if there is not as much left.
    fn take(&self, amount: usize) -> Result {
        self.take_here(amount)?;
        match &self.whole {
            Some(whole) => whole
                .take(amount)
                .inspect_err(|_| self.give_back_here(amount)),
            None => Ok(()),
        }
    }

    /// Notes that `amount` is not used any more, here and in the whole.
    fn give_back(&self, amount: usize) {
        self.give_back_here(amount);
        if let Some(whole) = &self.whole {
            whole.give_back(amount);
        }
    }

    /// Notes that `amount` is used; `EDQUOT` if there is not as much left.
    fn take_here(&self, amount: usize) -> Result {
        // Relaxed: a number that nothing else hangs on.
        let mut used = self.used.load(ordering::Relaxed);
        loop {
            let sum = used.checked_add(amount).ok_or(EDQUOT)?;
            if sum > self.limit {
                return Err(EDQUOT);
            }
            match self.used.cmpxchg(used, sum, ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => used = other,
            }
        }
    }

    /// Notes that `amount` is not used any more.
    fn give_back_here(&self, amount: usize) {
        // Relaxed: as above.
        self.used.fetch_sub(amount, ordering::Relaxed);
    }
}

/// A share that is taken until this is dropped.
pub struct Charge {
    quota: Arc<Quota>,
    amount: usize,
}

impl Charge {
    /// Takes more; `EDQUOT` if there is not as much left.
    pub fn grow(&mut self, more: usize) -> Result {
        let amount = self.amount.checked_add(more).ok_or(EDQUOT)?;
        self.quota.take(more)?;
        self.amount = amount;
        Ok(())
    }

    /// Gives back some of it, at most all.
    pub fn shrink(&mut self, fewer: usize) {
        let fewer = fewer.min(self.amount);
        self.quota.give_back(fewer);
        self.amount = self.amount.wrapping_sub(fewer);
    }

    /// Takes out what was taken so far.
    pub(super) fn take(&mut self) -> Self {
        Self {
            quota: self.quota.clone(),
            amount: core::mem::take(&mut self.amount),
        }
    }

    /// Takes more or gives some back, so that it is as much; `EDQUOT` if there is not as much left.
    pub fn set(&mut self, amount: usize) -> Result {
        match amount.checked_sub(self.amount) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.amount.saturating_sub(amount));
                Ok(())
            }
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.quota.give_back(self.amount);
    }
}
