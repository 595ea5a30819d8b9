// SPDX-License-Identifier: GPL-2.0

//! Timeouts in milliseconds, and the deadlines they mean.

#[cfg(linux_jiffies)]
use kernel::time::Jiffies;
use kernel::{
    prelude::*,
    time::NSEC_PER_MSEC, //
};

use super::bindings;

/// How long a call may block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timeout {
    /// Without end.
    Infinite,
    /// Milliseconds; 0 to check only.
    Millis(u32),
}

impl Timeout {
    /// Takes a timeout from C: milliseconds, any negative number for no end.
    pub fn from_raw(timeout: c_int) -> Self {
        match u32::try_from(timeout) {
            Ok(millis) => Self::Millis(millis),
            Err(_) => Self::Infinite,
        }
    }

    /// Returns the deadline of a call that begins now.
    pub fn deadline(self) -> Deadline {
        match self {
            Self::Infinite => Deadline(None),
            Self::Millis(millis) => {
                // SAFETY: Callable from any context that is not an NMI.
                let now = unsafe { bindings::ktime_get() };
                // At most 2^31 ms, 25 days, is added to the time since boot in 63 bits.
                Deadline(Some(now.saturating_add(i64::from(millis) * NSEC_PER_MSEC)))
            }
        }
    }
}

/// The time until which a call may block: nanoseconds of the monotonic clock, or no end.
#[derive(Clone, Copy)]
pub struct Deadline(Option<i64>);

impl Deadline {
    /// Returns the nanoseconds, `None` for no end.
    pub fn as_nanos(self) -> Option<i64> {
        self.0
    }

    /// Returns this one or another one, whichever comes first.
    #[allow(dead_code, reason = "not every module has two")]
    pub fn earlier(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(one), Some(other)) => Self(Some(one.min(other))),
            (one, other) => Self(one.or(other)),
        }
    }

    /// Returns whether it has come.
    #[allow(dead_code, reason = "not every module asks")]
    pub fn has_passed(self) -> bool {
        // SAFETY: Callable from any context that is not an NMI.
        self.0
            .is_some_and(|end| unsafe { bindings::ktime_get() } >= end)
    }
}

/// Returns the jiffies of now.
#[cfg(linux_jiffies)]
pub fn jiffies() -> Jiffies {
    // SAFETY: A word that the kernel changes; it may be read at any time.
    unsafe { (&raw const bindings::jiffies).read_volatile() }
}

#[cfg(unit_tests)]
#[kunit_tests(linux_timeout)]
mod tests {
    use super::*;

    #[test]
    fn negative_means_infinite() {
        assert_eq!(Timeout::from_raw(-1), Timeout::Infinite);
        assert_eq!(Timeout::from_raw(c_int::MIN), Timeout::Infinite);
        assert_eq!(Timeout::from_raw(0), Timeout::Millis(0));
        assert_eq!(Timeout::from_raw(c_int::MAX), Timeout::Millis(2147483647));
    }

    #[test]
    fn the_earlier_one_comes_first() {
        let [one, other, never] = [Some(1), Some(2), None].map(Deadline);
        for (pair, earlier) in [
            ((one, other), one),
            ((other, one), one),
            ((one, never), one),
            ((never, other), other),
            ((never, never), never),
        ] {
            assert_eq!(pair.0.earlier(pair.1).as_nanos(), earlier.as_nanos());
        }
        assert!(one.has_passed() && !never.has_passed());
        assert!(!Timeout::Millis(u32::MAX).deadline().has_passed());
    }

    #[test]
    fn longest_timeout_does_not_overflow() -> Result {
        let now = Timeout::Millis(0).deadline().as_nanos().ok_or(EINVAL)?;
        let end = Timeout::from_raw(c_int::MAX).deadline();
        assert!(end.as_nanos().ok_or(EINVAL)? - now >= 2147483647 * 1_000_000);
        assert!(Timeout::Infinite.deadline().as_nanos().is_none());
        Ok(())
    }
}
