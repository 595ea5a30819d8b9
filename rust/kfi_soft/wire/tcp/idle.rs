// SPDX-License-Identifier: GPL-2.0

//! Since when nothing of an association is under way.
//!
//! A target that has as many associations as it may ends the one that has been quiet for longest. One that has just
//! connected, to send something, is not in front of all others; one that connects again and again, and sends nothing,
//! has still made no use of it. So the first connection since then renews that time, and no other one does.
//!
//! As [`outgoing`](super::outgoing) this is without input and output, and runs in user space.

#![forbid(unsafe_code)]

/// A time in which nothing is under way.
struct Period<T> {
    /// A number that changes with each request.
    asked: u64,
    /// When it began.
    since: T,
    /// When a connection began first since then.
    connected: Option<T>,
}

/// Since when nothing of an association is under way, if nothing is.
///
/// Nothing is said of one session only: one that asks for nothing goes on with the times of that before, or
/// sessions would renew them without end.
pub(crate) struct Idle<T> {
    period: Option<Period<T>>,
}

impl<T: Copy> Idle<T> {
    /// Of an association that has asked for nothing.
    pub(crate) fn new(since: T) -> Self {
        let period = Period {
            asked: 1,
            since,
            connected: None,
        };
        Self {
            period: Some(period),
        }
    }

    /// Notes how many requests there have been, and one more, if all of them are over.
    pub(crate) fn note(&mut self, asked: Option<u64>, now: impl FnOnce() -> T) {
        if self.period.as_ref().map(|period| period.asked) != asked {
            self.period = asked.map(|asked| Period {
                asked,
                since: now(),
                connected: None,
            });
        }
    }

    /// Notes that a connection has begun.
    pub(crate) fn note_connection(&mut self, now: impl FnOnce() -> T) {
        if let Some(period) = &mut self.period {
            period.connected.get_or_insert_with(now);
        }
    }

    /// Returns since when nothing is under way.
    pub(crate) fn since(&self) -> Option<T> {
        Some(self.period.as_ref()?.since)
    }

    /// Returns since when it counts as quiet among others.
    pub(crate) fn quiet_since(&self) -> Option<T> {
        let period = self.period.as_ref()?;
        Some(period.connected.unwrap_or(period.since))
    }
}
