// SPDX-License-Identifier: GPL-2.0

//! The time for which the timer of a connection's work item is set.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    time::Jiffies, //
};

use super::connection::Instant;

/// When a timer rings. It is set for earlier than before only: to set it takes longer than much of what is done for a
/// message, and what is waited for moves on with each of them. When it rings too early nothing is to be done, and it
/// is set anew.
///
/// # Invariants
///
/// If there is a time, the timer rings at that time or, as nothing runs on time, later, and then [`Self::NONE`] takes
/// its place.
pub(super) struct Alarm(Option<Instant>);

impl Alarm {
    /// It is not set.
    pub(super) const NONE: Self = Self(None);

    /// Something is to be done in so many jiffies; returns whether the timer is to be set for that. The caller does
    /// that.
    #[must_use]
    pub(super) fn set(&mut self, delay: Jiffies) -> bool {
        let time = Instant::within(delay);
        if self.0.is_some_and(|set| !time.is_before(set)) {
            return false;
        }
        // INVARIANT: By the caller.
        self.0 = Some(time);
        true
    }
}

#[kunit_tests(kfi_soft_alarm)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_set_for_earlier_only() {
        // Longer than the test takes.
        const MINUTE: Jiffies = 100_000;
        let mut alarm = Alarm::NONE;
        assert!(alarm.set(10 * MINUTE));
        assert!(!alarm.set(11 * MINUTE));
        assert!(alarm.set(5 * MINUTE));
        assert!(!alarm.set(6 * MINUTE));
        assert!(!alarm.set(10 * MINUTE));
        assert!(alarm.set(0));
        assert!(!alarm.set(MINUTE));
    }

    #[test]
    fn an_alarm_that_has_rung_is_set_again() {
        let mut alarm = Alarm::NONE;
        assert!(alarm.set(0));
        alarm = Alarm::NONE;
        assert!(alarm.set(100_000));
    }
}
