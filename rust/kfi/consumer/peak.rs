// SPDX-License-Identifier: GPL-2.0

//! Places for entries that come and go, whose memory a provider may keep for the next ones.

use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use super::quota::{
    Charge,
    Quota, //
};

/// How many places there are.
struct State {
    taken: usize,
    /// How many were taken at a time at most.
    most: usize,
    /// The share that counts for these.
    charge: Charge,
}

/// As many places as were taken at a time count in a quota, until this is dropped.
#[pin_data]
pub struct Peak {
    /// The bytes of a place.
    each: usize,
    #[pin]
    state: Mutex<State>,
}

impl Peak {
    /// No places, of which each is to count as so many bytes.
    pub fn new(quota: &Arc<Quota>, each: usize) -> Result<Arc<Self>> {
        let charge = Quota::nothing(quota);
        Arc::pin_init(
            pin_init!(Self {
                each,
                state <- new_mutex!(
                    State {
                        taken: 0,
                        most: 0,
                        charge,
                    },
                    "kfi::Peak::state"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Takes no place yet.
    pub fn none(this: &Arc<Self>) -> Taken {
        Taken {
            peak: this.clone(),
            count: 0,
        }
    }

    /// Takes a place; `EDQUOT` if there is not as much memory left.
    pub fn take(this: &Arc<Self>) -> Result<Taken> {
        let mut taken = Self::none(this);
        taken.set(1)?;
        Ok(taken)
    }
}

/// Places that are taken until this is dropped.
pub struct Taken {
    peak: Arc<Peak>,
    count: usize,
}

impl Taken {
    /// Takes more or gives some back, so that it is as many; `EDQUOT` if there is not as much memory
    /// left.
    pub fn set(&mut self, count: usize) -> Result {
        let mut state = self.peak.state.lock();
        let taken = state.taken.saturating_sub(self.count);
        let taken = taken.checked_add(count).ok_or(EDQUOT)?;
        if let Some(more) = taken.checked_sub(state.most) {
            state.charge.grow(more.saturating_mul(self.peak.each))?;
            state.most = taken;
        }
        state.taken = taken;
        self.count = count;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Never refused, as it gives back.
        let _ = self.set(0);
    }
}

#[cfg(consumer_tests)]
#[kunit_tests(kfi_peak)]
mod tests {
    use super::*;

    /// How many bytes are left of a quota.
    fn left(quota: &Arc<Quota>, limit: usize) -> usize {
        (0..=limit)
            .rev()
            .find(|amount| Quota::charge(quota, *amount).is_ok())
            .unwrap_or(0)
    }

    #[test]
    fn the_most_counts() -> Result {
        let quota = Quota::new(100, None)?;
        let peak = Peak::new(&quota, 10)?;
        let (one, mut more) = (Peak::take(&peak)?, Peak::none(&peak));
        assert_eq!(left(&quota, 100), 90);
        more.set(4)?;
        assert_eq!(left(&quota, 100), 50);
        drop(one);
        more.set(1)?;
        assert_eq!(left(&quota, 100), 50);
        // In the places that there are.
        more.set(5)?;
        assert_eq!(left(&quota, 100), 50);
        assert_eq!(more.set(11), Err(EDQUOT));
        assert_eq!(left(&quota, 100), 50);
        more.set(10)?;
        assert_eq!(left(&quota, 100), 0);
        drop(more);
        assert_eq!(left(&quota, 100), 0);
        drop(peak);
        assert_eq!(left(&quota, 100), 100);
        Ok(())
    }
}
