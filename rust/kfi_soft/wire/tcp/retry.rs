// SPDX-License-Identifier: GPL-2.0

//! The pauses between tries to connect to a target.
//!
//! As [`outgoing`](super::outgoing) this is without input, output and time, and runs in user space.

#![forbid(unsafe_code)]

/// The second wait before another connection is tried, in milliseconds; it is twice as long each time.
const FIRST_RETRY: u32 = 50;
/// The longest one.
pub(crate) const LAST_RETRY: u32 = 1000;

/// The pauses between tries.
pub(crate) struct Retry {
    /// How many milliseconds after the last try the next one is.
    pause: u32,
    /// While the target is looked for: it has answered, and does not know the session.
    answered: bool,
}

impl Retry {
    /// Nothing was tried yet.
    pub(crate) const fn new() -> Self {
        Self {
            pause: 0,
            answered: false,
        }
    }

    /// Returns how many milliseconds after the last try the next one is.
    pub(crate) fn pause(&self) -> u32 {
        self.pause
    }

    /// One is tried now. The next one is after twice as long a pause, and `least` at least.
    pub(crate) fn note_try(&mut self, least: u32) {
        let pause = self.pause.saturating_mul(2).clamp(FIRST_RETRY, LAST_RETRY);
        self.pause = pause.max(least);
    }

    /// The next one may be at once, and the pauses begin anew.
    pub(crate) fn begin_anew(&mut self) {
        self.pause = 0;
    }

    /// The target is not looked for any more: it is there, or nobody wants it.
    pub(crate) fn note_end(&mut self) {
        self.answered = false;
    }

    /// The target that is looked for has answered, and does not know the session: it was started again. So there is
    /// another try soon. Returns whether there is time for that, whatever time was left before.
    ///
    /// That is so once: one that answers so each time is tried as rarely as one that does not answer, and is waited for
    /// no longer.
    #[must_use]
    pub(crate) fn note_answer(&mut self) -> bool {
        if self.answered {
            return false;
        }
        self.answered = true;
        self.pause = self.pause.min(FIRST_RETRY);
        true
    }
}
