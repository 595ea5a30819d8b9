// SPDX-License-Identifier: GPL-2.0

//! Waiting on a counter: what is common to all whose threads sleep in the order of their thresholds.
//!
//! A thread sleeps until the success value reaches its threshold, or the error value changes. Changes
//! are counted, as the value may be set back to what it was, under the lock of the counter: one step
//! before the value changes and one after it. A wait begins with that number, and only a thread that
//! comes between the steps takes the lock for it: so an error that a thread has read before does not
//! end its wait, and one that comes after does.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb, //
    }, //
};

use super::{
    wait_source::WaitSource,
    CounterOps,
    WaitSetOps, //
};
use crate::kfi::{
    control::{
        Control,
        KeptOpFlags, //
    },
    errno::EAVAIL,
    linux::{
        sleep::Wakeup,
        timeout::Timeout,
        waiters::{
            Locked,
            WaitGuard,
            WaitLock, //
        }, //
    },
    wait_obj::WaitObj, //
};

/// The error value of a counter, and how often it has changed. Both change under the counter's lock.
///
/// # Invariants
///
/// `steps` goes up by one before each change of `value`, and by one after it: it is odd while the lock
/// is held for a change.
pub struct ErrorValue {
    value: Atomic<u64>,
    steps: Atomic<u64>,
}

impl ErrorValue {
    /// The value 0, which has not changed.
    pub const fn new() -> Self {
        // INVARIANT: No change is being made.
        Self {
            value: Atomic::new(0),
            steps: Atomic::new(0),
        }
    }

    /// Returns the value.
    pub fn read(&self) -> u64 {
        // Acquire: a thread that sees the value sees what came before it.
        // See `qemu-test/litmus/KFI-error-value.litmus`.
        self.value.load(ordering::Acquire)
    }

    /// Returns the value, with the lock held.
    pub fn read_locked(&self) -> u64 {
        // Relaxed: written under the lock only.
        self.value.load(ordering::Relaxed)
    }

    /// Changes the value to what `change` makes of it, and returns the old one and the new one; `None`
    /// if they are the same, which is no change. `lock` is that of the counter whose value it is: with
    /// another one waits may miss the change.
    #[allow(dead_code, reason = "not every provider has such counters")]
    pub fn change<T>(
        &self,
        lock: &mut WaitGuard<'_, T>,
        change: impl FnOnce(u64) -> u64,
    ) -> Option<(u64, u64)> {
        self.change_while(lock, change, |_, old, new| (old, new))
    }

    /// As [`Self::change`], and returns what `look` makes of the counter, the old value and the new one. A thread
    /// that has read the new one by [`CounterWait::read_error`] comes after that, with all that it does then.
    pub fn change_while<T, R>(
        &self,
        lock: &mut WaitGuard<'_, T>,
        change: impl FnOnce(u64) -> u64,
        look: impl FnOnce(&mut WaitGuard<'_, T>, u64, u64) -> R,
    ) -> Option<R> {
        let old = self.read_locked();
        let new = change(old);
        if new == old {
            return None;
        }
        // INVARIANT: A change is being made.
        // Relaxed: the next store is a release.
        self.steps.fetch_add(1, ordering::Relaxed);
        // Release: pairs with the acquire of `read`; a thread that has read the value finds the first
        // step in `changes_so_far`.
        // See `qemu-test/litmus/KFI-error-value.litmus` and `qemu-test/litmus/KFI-error-begin.litmus`.
        self.value.store(new, ordering::Release);
        let seen = look(lock, old, new);
        // INVARIANT: The change was made.
        // Release: a thread that finds both steps in `changes_so_far` reads no older value, and what it does then
        // comes after what was looked at.
        // See `qemu-test/litmus/KFI-error-look.litmus`.
        self.steps.fetch_add(1, ordering::Release);
        Some(seen)
    }

    /// Returns a number that any change from now on changes; `None` while one is being made, which the
    /// lock tells the end of.
    fn changes_so_far(&self) -> Option<u64> {
        // Acquire: pairs with the second step; and not before an earlier read of the value, which is
        // an acquire itself.
        // See `qemu-test/litmus/KFI-error-begin.litmus`.
        let steps = self.steps.load(ordering::Acquire);
        (steps % 2 == 0).then_some(steps)
    }

    /// As [`Self::changes_so_far`], for a thread that reads nothing of it afterwards but under the lock.
    fn changes_at_begin(&self) -> Option<u64> {
        // Relaxed: the earlier read of the value is an acquire itself, and the lock comes before later
        // reads. See `qemu-test/litmus/KFI-error-begin.litmus`.
        let steps = self.steps.load(ordering::Relaxed);
        (steps % 2 == 0).then_some(steps)
    }

    /// Returns that number, with the lock held.
    fn changes(&self) -> u64 {
        // Relaxed: changed under the lock.
        self.steps.load(ordering::Relaxed)
    }
}

/// A counter on which threads sleep in the order of the values that they wait for.
///
/// The provided functions are what the calls of [`CounterOps`] and of control commands do. All others
/// are called from any context, hard interrupts included, and must not sleep.
///
/// # Duties of a change
///
/// Waking is up to the counter: [`CounterOps::reached`], [`add_locked`](CounterOps::add_locked),
/// [`set`](CounterOps::set) and both functions that change the error value do the following, in this
/// order, and so does all code that counts the end of an operation. A counter that leaves something out
/// has threads that sleep for ever. `ready::Counter` is an example.
///
/// 1. Preemption is off, by `NoPreemption`, from before threads are taken out until they are woken:
///    nobody else can wake them. The caller of [`CounterOps::reached`] has done this and the next step; a
///    function that other calls share with it, as `attend` in `ready::Counter`, leaves both to them. A
///    thread of a work queue that counts the end of an operation may change the value first: others see
///    it before they are woken, for as long as that thread may be preempted in between, and no wakeup is
///    lost. That spares each operation from disabling preemption once more.
/// 2. The success value changes, with a full barrier between that and any look at what was published,
///    as additions to a `Tally` have it. The error value changes under the lock of this very counter,
///    by [`ErrorValue::change`]; after a `None` there is nothing more to do.
/// 3. Under the lock a few of those that are due are taken out: by [`WaitGuard::detach_due`] with the
///    value that this change has made, whatever others have made of that meanwhile; if the error value
///    has changed by [`WaitGuard::detach_all`], as that ends all waits.
/// 4. With the lock still held, [`Self::publish`].
/// 5. Without the lock what was taken out is dropped, which wakes it. If `Due::leaves_others` has said so
///    before, more are due than were taken out, and a work item goes on with
///    [`WaitGuard::detach_few`], preemption off, until that leaves no others.
/// 6. If a consumer has the wait queue ([`Self::share_queue`]), all that listen to it are woken.
pub trait CounterWait: CounterOps {
    /// The data that the lock of the counter protects, beside the threads that wait.
    type State: Unpin;
    /// The wait sets that it may be in.
    type Set: WaitSetOps;

    /// Returns the lock, with the threads that wait.
    fn waiters(&self) -> &WaitLock<Self::State>;

    /// Returns the error value.
    fn error_value(&self) -> &ErrorValue;

    /// Returns the wait object.
    fn wait_source(&self) -> &WaitSource<Self::Set>;

    /// Notes that a consumer has the wait queue from now on; under the lock.
    fn share_queue(state: &mut Self::State);

    /// Publishes from which value on changes have to be attended to, which is what the attention of a
    /// `Tally` is: no more than [`Locked::first_threshold`], and 0 once a consumer has the wait queue;
    /// under the lock, after every change of the state.
    fn publish(&self, state: &Locked<'_, Self::State>);

    /// Publishes that for a thread that begins to wait, or otherwise has to be told of changes, with a
    /// full barrier: what the thread reads of the counter afterwards is not older.
    fn join(&self, state: &Locked<'_, Self::State>) {
        self.publish(state);
        // A thread that changes the counter has a barrier, too, between the change and the look at
        // what was published: so it sees this, or the change is seen here.
        // See `qemu-test/litmus/KFI-add-vs-submit.litmus`.
        smp_mb(ordering::Full);
    }

    /// Returns the error value, as [`CounterOps::readerr`] does: one that is being changed when the change was made.
    /// From any context.
    fn read_error(&self) -> u64 {
        let value = self.error_value().read();
        // If it is a new one, at least one of the steps is found.
        // See `qemu-test/litmus/KFI-error-look.litmus`.
        if self.error_value().changes_so_far().is_some() {
            return value;
        }
        let _lock = self.waiters().lock();
        self.error_value().read_locked()
    }

    /// Returns whether the success value is at least `threshold`; if it is, what came before that was
    /// counted has been seen.
    fn has_reached(&self, threshold: u64) -> bool {
        // Relaxed: of a lower value nothing is made. Most often it is one, for a thread that is about to
        // sleep, and where an acquire is a full barrier that is spared.
        self.tally().value.load(ordering::Relaxed) >= threshold && self.read() >= threshold
    }

    /// Begins to wait, as [`CounterOps::begin_wait`] does. From any context.
    fn begin(&self, threshold: u64) -> Result<Option<u64>> {
        self.wait_source().check()?;
        // The threshold wins over errors (R-CNTR-30).
        if self.has_reached(threshold) {
            return Ok(None);
        }
        // An error that can be read already is one from before, and one that cannot is not.
        if let Some(changes) = self.error_value().changes_at_begin() {
            return Ok(Some(changes));
        }
        // It may or may not: until the change was made.
        let _lock = self.waiters().lock();
        Ok(Some(self.error_value().changes()))
    }

    /// Sleeps, as [`CounterOps::wait`] does. In process context.
    fn sleep(&self, threshold: u64, since: u64, timeout: Timeout) -> Result {
        let deadline = timeout.deadline();
        loop {
            let mut met = false;
            let mut error_changed = false;
            let wakeup = self.waiters().sleep(
                threshold,
                deadline,
                |state| {
                    self.join(&state);
                    met = self.has_reached(threshold);
                    error_changed = self.error_value().changes() != since;
                    !met && !error_changed
                },
                |state| self.publish(&state),
            );
            if met || self.has_reached(threshold) {
                return Ok(());
            }
            match wakeup {
                Wakeup::NotNeeded if error_changed => return Err(EAVAIL.into()),
                // An error, or a value that has gone down again (R-CNTR-37): the next round tells.
                Wakeup::NotNeeded | Wakeup::Woken => (),
                Wakeup::Expired => return Err(ETIMEDOUT),
                Wakeup::Interrupted => return Err(EINTR),
            }
        }
    }

    /// Answers control commands about the flags and the wait object; `ENOSYS` to all others.
    fn answer<'a>(&'a self, flags: &KeptOpFlags, command: Control<'a>) -> Result {
        let Some(command) = flags.answer(command) else {
            return Ok(());
        };
        let asks = matches!(command, Control::GetWait(_));
        if asks && self.wait_source().wait_obj() == WaitObj::Queue {
            let mut state = self.waiters().lock();
            Self::share_queue(&mut state);
            self.join(&state.lend());
        }
        self.wait_source().control(command)
    }
}
