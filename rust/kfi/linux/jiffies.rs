// SPDX-License-Identifier: GPL-2.0

//! The coarse clock that costs nothing to read.
//!
//! C header: [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h).

use kernel::time::{
    msecs_to_jiffies,
    Jiffies, //
};

use super::bindings;

/// A time of the coarse clock, cut to 32 bits.
#[derive(Clone, Copy)]
pub struct Instant(u32);

impl Instant {
    /// Returns the time.
    pub fn now() -> Self {
        // SAFETY: It always exists. It changes at any time, so it is read once, as a whole.
        let jiffies: Jiffies = unsafe { (&raw const bindings::jiffies).read_volatile() };
        // Cut: ages are what counts.
        Self(jiffies as u32)
    }

    /// Returns the milliseconds since then; wrong after some weeks.
    pub fn elapsed_ms(self) -> u64 {
        let jiffies = u64::from(Self::now().0.wrapping_sub(self.0));
        let per_second = msecs_to_jiffies(1000) as u64;
        jiffies
            .saturating_mul(1000)
            .checked_div(per_second)
            .unwrap_or(0)
    }
}
