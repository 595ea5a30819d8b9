// SPDX-License-Identifier: GPL-2.0

//! The words of a counter that additions look at without the lock, and in which order they are
//! written and read.
//!
//! Why nothing is lost stands at the top of `counter.rs`. The code that this is about is here, with the
//! words behind a trait: in user space the very same file runs in all orders that its reads and writes
//! can have (`qemu-test/guest/engine/src/attention_orders.rs`), with and without the barrier.

#![forbid(unsafe_code)]

/// The words.
pub(crate) trait Words {
    /// Returns the success value; relaxed.
    fn success(&self) -> u64;

    /// Returns the smallest value at which the lock has to be taken; relaxed.
    fn due(&self) -> u64;

    /// Writes that, and from which value on an addition looks for it at all, the attention threshold;
    /// relaxed.
    fn publish(&self, due: u64, attention: u64);

    /// A full barrier.
    fn full_barrier(&self);
}

/// Publishes from which value on something is `due`; under the lock, after every change of what
/// waits. With listeners that have to see every change it `is_watched`.
#[inline]
pub(crate) fn publish(words: &impl Words, due: u64, is_watched: bool) {
    words.publish(due, if is_watched { 0 } else { due });
}

/// Publishes that for a thread that joins; what it reads of the counter afterwards it reads after
/// that.
#[inline]
pub(crate) fn join(words: &impl Words, due: u64, is_watched: bool) {
    publish(words, due, is_watched);
    words.full_barrier();
}

/// Looks at the success value after something was added under the lock to what waits, of which the
/// first is due at `first`; `joins` where that has to be published before.
#[inline]
pub(crate) fn look_after_submit(words: &impl Words, first: u64, joins: impl FnOnce()) -> u64 {
    if first < words.due() {
        joins();
    }
    words.success()
}

/// Returns whether an addition of `value`, which has made `sum` and has reached the attention threshold,
/// has to take the lock. If not, somebody listens to every change.
#[inline]
pub(crate) fn needs_lock(words: &impl Words, value: u64, sum: u64) -> bool {
    // Less: it has passed 2^64.
    sum < value || sum >= words.due()
}
