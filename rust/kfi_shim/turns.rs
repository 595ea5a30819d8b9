// SPDX-License-Identifier: GPL-2.0

//! Turns: of each user so much is done at a time, and the rest waits.
//!
//! A work queue has a place for so many items at once. Where a user may have more of them, which take
//! long, those of others would wait for them.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

/// Waits for its turn, once.
pub(crate) trait Turn: Sized {
    /// Returns where the one is put that comes after this one.
    fn next(&self) -> &SpinLockIrq<Option<Arc<Self>>>;
}

/// How many have their turn, and those that wait, in order.
struct State<T> {
    running: usize,
    first: Option<Arc<T>>,
    last: Option<Arc<T>>,
}

/// The turns of a user.
#[pin_data]
pub(crate) struct Turns<T> {
    /// So many have their turn at once.
    at_once: usize,
    #[pin]
    state: SpinLockIrq<State<T>>,
}

impl<T: Turn> Turns<T> {
    /// Nothing waits; `at_once` may have their turn at once.
    pub(crate) fn new(at_once: usize) -> Result<Arc<Self>> {
        let state = State {
            running: 0,
            first: None,
            last: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                at_once,
                state <- new_spinlock_irq!(state, "kfi_shim::Turns::state"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns `this` if it is its turn; else it waits, and [`Self::end`] returns it. The caller has another
    /// reference of `this`. From any context in which one that has waited may be dropped.
    pub(crate) fn begin(&self, this: Arc<T>) -> Option<Arc<T>> {
        let mut state = self.state.lock();
        if state.running < self.at_once {
            state.running += 1;
            return Some(this);
        }
        let before = state.last.replace(this.clone());
        match &before {
            Some(before) => *before.next().lock() = Some(this),
            None => state.first = Some(this),
        }
        drop(state);
        // Maybe the last reference: since then its turn may have come, and be over.
        drop(before);
        None
    }

    /// One that had its turn is over; returns the one whose turn it is now. From any context.
    pub(crate) fn end(&self) -> Option<Arc<T>> {
        let mut state = self.state.lock();
        let Some(first) = state.first.take() else {
            state.running = state.running.saturating_sub(1);
            return None;
        };
        state.first = first.next().lock().take();
        let last = match &state.first {
            Some(_) => None,
            None => state.last.take(),
        };
        drop(state);
        drop(last);
        Some(first)
    }
}

#[kunit_tests(kfi_shim_turns)]
mod tests {
    use super::*;

    #[pin_data]
    struct Numbered {
        number: usize,
        #[pin]
        next: SpinLockIrq<Option<Arc<Numbered>>>,
    }

    impl Turn for Numbered {
        fn next(&self) -> &SpinLockIrq<Option<Arc<Self>>> {
            &self.next
        }
    }

    fn numbered(number: usize) -> Result<Arc<Numbered>> {
        Arc::pin_init(
            pin_init!(Numbered {
                number,
                next <- new_spinlock_irq!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// So many at once, then one for each that is over, in order.
    #[test]
    fn others_wait_in_order() -> Result {
        const AT_ONCE: usize = 4;
        const COUNT: usize = 3 * AT_ONCE;
        let turns = Turns::new(AT_ONCE)?;
        // The second time nothing is left of the first.
        for _ in 0..2 {
            for number in 0..COUNT {
                let begins = turns.begin(numbered(number)?);
                assert_eq!(begins.is_some(), number < AT_ONCE);
            }
            for number in AT_ONCE..COUNT {
                assert_eq!(turns.end().map(|next| next.number), Some(number));
            }
            // One begins while others are yet to end.
            assert!(turns.begin(numbered(COUNT)?).is_none());
            assert_eq!(turns.end().map(|next| next.number), Some(COUNT));
            for _ in 0..AT_ONCE {
                assert!(turns.end().is_none());
            }
        }
        Ok(())
    }
}
