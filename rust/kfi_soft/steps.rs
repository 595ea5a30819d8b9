// SPDX-License-Identifier: GPL-2.0

//! Walks through long queues, in steps between which others get the lock.
//!
//! How long a lock is held does so not depend on how much is queued. The walker is not preempted, as
//! a queue has places for few walks; without one all of it is walked at once.

#![forbid(unsafe_code)]

use kernel::sync::SpinLockIrq;

use crate::kfi::{
    interrupts::NoPreemption,
    queue::{
        Entry,
        Found,
        Step,
        WalkableQueue, //
    }, //
};

/// Entries that are looked at before others get the lock.
pub(crate) const STEP: usize = 64;

/// Hands the first entry that is `same` to `found`, with the lock held.
fn find<S: Unpin, T, R>(
    lock: &SpinLockIrq<S>,
    queue: impl Fn(&mut S) -> Option<&mut WalkableQueue<T>>,
    same: impl Fn(&T) -> bool,
    found: impl FnOnce(Found<'_, T, 8>) -> R,
) -> Option<R> {
    let _preemption = NoPreemption::begin();
    let mut walk = None;
    loop {
        let mut state = lock.lock();
        let queue = queue(&mut state)?;
        let result = match queue.step(&mut walk, &mut { STEP }, &same) {
            Step::More => continue,
            Step::Found(entry) => Some(found(entry)),
            Step::End => None,
        };
        if let Some(walk) = walk {
            queue.end_walk(walk);
        }
        return result;
    }
}

/// Takes out the first entry that is `same`.
pub(crate) fn take<S: Unpin, T>(
    lock: &SpinLockIrq<S>,
    queue: impl Fn(&mut S) -> Option<&mut WalkableQueue<T>>,
    same: impl Fn(&T) -> bool,
) -> Option<Entry<T>> {
    find(lock, queue, same, |found| found.take())
}

/// Returns what `look` makes of the first entry that is `same`.
pub(crate) fn look<S: Unpin, T, R>(
    lock: &SpinLockIrq<S>,
    queue: impl Fn(&mut S) -> Option<&mut WalkableQueue<T>>,
    same: impl Fn(&T) -> bool,
    look: impl FnOnce(&T) -> R,
) -> Option<R> {
    find(lock, queue, same, |found| look(&found))
}
