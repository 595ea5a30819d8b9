// SPDX-License-Identifier: GPL-2.0

//! Event counters.
//!
//! A counter has a success value and an error value. Beside them stands the *attention threshold*:
//! the smallest success value at which anything at all is due. To add is one atomic addition, one
//! load and one comparison as long as the value stays below it, however many threads wait. While
//! somebody has to see every change - a wait set, a poll set, the owner of the wait queue - it is 0.
//!
//! # Why nothing is lost
//!
//! A thread that adds and a thread that joins do the following. To join is to begin to wait, to
//! submit something that waits for a value, to ask for the wait queue, to become a member of a poll
//! set, or to say by trywait that one is about to block.
//!
//! ```text
//! add:   success.fetch_add(Full)            join:  attention.store(threshold)
//!        attention.load()                          smp_mb()
//!                                                  success.load()
//! ```
//!
//! This is the store-buffering pattern. Both sides have a full barrier between their write and
//! their read, so that at least one sees what the other wrote: either the adder sees the new
//! attention threshold and looks for what is due, under the lock, or whoever joins sees the new
//! value (`qemu-test/litmus/KFI-add-vs-submit.litmus`). Everybody joins and leaves under the lock,
//! and there the attention threshold is always recomputed, so it never lags behind.
//!
//! Who submits something with a threshold that is not below the attention threshold need not store
//! it nor have a barrier. An adder that has reached that value and does not look under the lock has
//! read an older attention threshold, a higher one. Since then somebody has lowered it, under the
//! lock, and has seen the value that the adder made, by the pattern above; so does who takes the
//! lock later (`qemu-test/litmus/KFI-add-vs-submit-second.litmus`).
//!
//! The error value changes under the lock only. A waiter compares the error *generation*, the
//! number of changes, under the same lock when it joins; a later change finds it in the list. What
//! waits for the sum of both values is due at a lower success value when the error value has risen:
//! that is to join, too.
//!
//! # What fires
//!
//! Something fires if, since it was submitted, the value was ever as high as its threshold, and
//! never else. An adder looks under the lock at the value of that time, not at the one it has made,
//! as that may have been lowered before something was submitted. So who lowers a value makes up for
//! adders that are still on their way: it changes the value under the lock, and fires what was due
//! before (R-TRIG-18, R-TRIG-19). Sums that pass 2^64 lower the value as well, and do this late.
//!
//! # Events
//!
//! A poll set tells of a counter when the provider has changed it, but not when the application has
//! (R-POLL-6). The provider's changes are counted in `events`, always and after the change. When
//! the application changes a watched counter, `events_marked` catches up: what happened before does
//! not count as news any more.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        Arc, //
    }, //
};

use crate::{
    counters,
    domain::Domain,
    kfi::{
        control::Control,
        errno::EAVAIL,
        fid::{
            ExtraOps,
            Fid,
            Object, //
        },
        flags::OpFlags,
        hold::Hold,
        provider::{
            counter_test_ops,
            CounterAttr,
            CounterClass,
            CounterEvents,
            CounterOps,
            CounterStatistics,
            CounterTestOps, //
        },
        tally::Tally,
        timeout::Timeout,
        wait_obj::WaitObj,
        wait_queue::WaitQueue,
        waiters::{
            Due,
            Locked,
            WaitGuard,
            WaitLock,
            Wakeup, //
        }, //
    },
    queue::WaitWith,
    run_list::{
        Duty,
        RunList, //
    },
    threshold::{
        Batch,
        Entry,
        Key, //
    },
    trigger::{
        Kind,
        Pending,
        Triggers, //
    },
    wait_set::WaitSet, //
};

/// Nothing is due at any value.
///
/// A success value that is this large may be taken for due, which finds nothing.
const NEVER: u64 = u64::MAX;

/// The values, on a cache line of their own.
#[repr(align(64))]
struct Values {
    /// The success value; the smallest one at which something is due, written under the lock; how
    /// often the provider has changed the counter.
    success: Tally,
    error: Atomic<u64>,
}

/// What the lock protects.
struct State {
    /// How often the error value has changed.
    error_generation: u64,
    /// How often either value has changed while somebody had to see it.
    changes: u64,
    /// The changes that trywait has told of; none before it was called first.
    changes_tried: Option<u64>,
    /// Somebody has asked for the wait queue.
    queue_shared: bool,
    /// Memberships in poll sets.
    polls: usize,
    /// What waits for a value.
    triggers: Triggers,
    /// How often a change has come here.
    attended: u64,
}

/// Who changes a counter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The application, by kfi_cntr_add and its like.
    Application,
    /// The provider, when an operation has completed.
    Provider,
}

/// A counter.
#[pin_data]
pub(crate) struct Counter {
    values: Values,
    /// What debugfs and events call it.
    id: u64,
    /// The events before the last change by the application that had to be seen.
    events_marked: Atomic<u64>,
    wait_obj: WaitObj,
    set: Option<Hold<WaitSet>>,
    op_flags: Atomic<u64>,
    #[pin]
    state: WaitLock<State>,
    #[pin]
    queue: WaitQueue,
    domain: Hold<Domain>,
}

/// Who has to be woken after a change. Dropped, after the lock was released, it wakes them.
struct Wakeups<'a> {
    /// Threads in kfi_cntr_wait; they wake by being dropped.
    _due: Due,
    queue: Option<&'a WaitQueue>,
    set: Option<&'a WaitSet>,
}

impl Drop for Wakeups<'_> {
    fn drop(&mut self) {
        if let Some(queue) = self.queue {
            queue.wake_up_all();
        }
        if let Some(set) = self.set {
            set.signal_counter();
        }
    }
}

/// What remains to be done after a change, with no lock held.
#[must_use = "what is due has to be run"]
pub(crate) struct After {
    /// The counter's hold on itself, when nothing is pending any more.
    hold: Option<Hold<Counter>>,
    /// The run list has to be drained.
    duty: Option<Duty>,
}

impl After {
    /// Does it.
    pub(crate) fn finish(self, run_list: &Arc<RunList>) {
        // First: what runs may be seen, and then the counter is closed.
        drop(self.hold);
        if let Some(duty) = self.duty {
            run_list.drain(duty);
        }
    }
}

impl Counter {
    /// Creates a counter with both values 0 (R-CNTR-5), if the attributes allow (R-CNTR-8 to 14).
    pub(crate) fn new(domain: Hold<Domain>, attr: &CounterAttr<'_>) -> Result<impl PinInit<Self>> {
        let CounterEvents::Completions = attr.events;
        if attr.flags != 0 {
            return Err(EINVAL);
        }
        let WaitWith { wait_obj, set } = WaitWith::new(attr.wait, domain.fabric())?;
        // A wait set sees every change, from the first one on.
        let attention = if set.is_some() { 0 } else { NEVER };
        Ok(pin_init!(Self {
            id: counters::next_id(),
            values: Values {
                success: Tally::new(attention),
                error: Atomic::new(0),
            },
            events_marked: Atomic::new(0),
            wait_obj,
            set,
            op_flags: Atomic::new(0),
            state <- WaitLock::new(
                State {
                    error_generation: 0,
                    changes: 0,
                    changes_tried: None,
                    queue_shared: false,
                    polls: 0,
                    triggers: Triggers::new(),
                    attended: 0,
                },
                c"kfi_soft::Counter::state",
                static_lock_class!(),
            ),
            queue <- WaitQueue::new(c"kfi_soft::Counter::queue", static_lock_class!()),
            domain,
        }))
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        self.domain.fid()
    }

    /// Returns what debugfs and events call it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the success value.
    fn success(&self) -> u64 {
        // Acquire: who sees a value sees what came before it was counted.
        self.values.success.value.load(ordering::Acquire)
    }

    /// Returns whether somebody has to see every change.
    fn is_watched(&self, state: &State) -> bool {
        self.set.is_some()
            || state.queue_shared
            || state.polls != 0
            || state.changes_tried.is_some()
    }

    /// Publishes the attention threshold; under the lock, after every change of the state.
    fn publish(&self, state: &Locked<'_, State>) {
        let attention = if self.is_watched(state) {
            0
        } else {
            // Relaxed: written under the lock only.
            let error = self.values.error.load(ordering::Relaxed);
            let waiter = state.first_threshold().unwrap_or(NEVER);
            let pending = state.triggers.first_due(error).unwrap_or(NEVER);
            waiter.min(pending)
        };
        // Relaxed: see the proof at the top; who joins adds a full barrier.
        self.values
            .success
            .attention
            .store(attention, ordering::Relaxed);
    }

    /// Publishes the attention threshold for somebody who joins; what they read of the counter
    /// afterwards they read after that.
    fn join(&self, state: &Locked<'_, State>) {
        self.publish(state);
        // See the proof at the top.
        smp_mb(ordering::Full);
    }

    /// Notes a change; under the lock.
    fn note(&self, state: &mut State, origin: Origin) {
        state.changes = state.changes.wrapping_add(1);
        if origin == Origin::Application {
            // Relaxed, both: a poll that sees one without the other tells of the counter once too
            // often, which it may (R-POLL-8).
            let events = self.values.success.events.load(ordering::Relaxed);
            self.events_marked.store(events, ordering::Relaxed);
        }
    }

    /// Says who has to be woken after a change.
    fn wakeups(&self, state: &WaitGuard<'_, State>, due: Due) -> Wakeups<'_> {
        Wakeups {
            _due: due,
            queue: state.queue_shared.then_some(&self.queue),
            set: self.set.as_deref(),
        }
    }

    /// Takes out what is due at these values and hands it to the run list; under the lock, and
    /// before the attention threshold is published.
    fn fire(&self, state: &mut State, success: u64, error: u64) -> After {
        let (classic, deferred) = state.triggers.detach_due(success, error);
        After {
            duty: self.domain.run_list().append(classic, deferred),
            hold: state.triggers.take_hold(),
        }
    }

    /// Attends to what is due now that the success value has changed; under the lock.
    ///
    /// `peak` is the highest value that it has had in the course of that.
    fn attend<'a>(
        &'a self,
        mut state: WaitGuard<'a, State>,
        peak: u64,
        origin: Origin,
    ) -> (Wakeups<'a>, After) {
        let due = state.detach_due(peak);
        // Relaxed: written under the lock only.
        let error = self.values.error.load(ordering::Relaxed);
        let after = self.fire(&mut state, peak, error);
        state.attended = state.attended.wrapping_add(1);
        if self.is_watched(&state) {
            self.note(&mut state, origin);
        }
        self.publish(&state.lend());
        (self.wakeups(&state, due), after)
    }

    /// Attends to what is due after an addition that was made without the lock.
    ///
    /// `peak` is as high as the value has been for sure, if that is not what it is now.
    #[cold]
    fn attend_late(&self, peak: u64, origin: Origin) {
        let state = self.state.lock();
        // Relaxed: it is the value that this thread has made, or a later one.
        let value = self.values.success.value.load(ordering::Relaxed);
        let (wakeups, after) = self.attend(state, value.max(peak), origin);
        drop(wakeups);
        after.finish(self.domain.run_list());
    }

    /// Changes the success value, which may go down; `change` returns the old one and the new one.
    fn change_success(&self, origin: Origin, change: impl FnOnce(&Atomic<u64>) -> (u64, u64)) {
        let (wakeups, after) = {
            let state = self.state.lock();
            let (old, new) = change(&self.values.success.value);
            if old == new {
                return;
            }
            self.count_event(origin);
            self.attend(state, old.max(new), origin)
        };
        drop(wakeups);
        after.finish(self.domain.run_list());
    }

    /// Counts a change by the provider.
    fn count_event(&self, origin: Origin) {
        if origin == Origin::Provider {
            // Release: after the change.
            self.values.success.events.fetch_add(1, ordering::Release);
        }
    }

    /// Adds to the success value, for the provider.
    fn count(&self, value: u64) {
        if value.cast_signed() < 0 {
            self.take_off_from(value, Origin::Provider);
        } else if let Some(sum) = self.values.success.count(value) {
            self.reached_from(value, sum, Origin::Provider);
        }
    }

    /// Attends to an addition that was made without the lock.
    fn reached_from(&self, value: u64, sum: u64, origin: Origin) {
        // Addition wraps (R-CNTR-20). If the sum has passed 2^64, what was due before still is.
        let peak = if sum < value {
            sum.wrapping_sub(value)
        } else {
            0
        };
        self.attend_late(peak, origin);
    }

    /// Adds a negative value, as for credits (R-CNTR-20).
    fn take_off_from(&self, value: u64, origin: Origin) {
        self.change_success(origin, |success| {
            // Relaxed: under the lock.
            let old = success.fetch_add(value, ordering::Relaxed);
            (old, old.wrapping_add(value))
        });
    }

    /// Sets the success value.
    fn set_from(&self, value: u64, origin: Origin) {
        self.change_success(origin, |success| {
            // Full: orders what came before for who reads the value without the lock.
            (success.xchg(value, ordering::Full), value)
        });
    }

    /// Changes the error value; `change` returns the new one.
    fn change_error(&self, origin: Origin, change: impl FnOnce(u64) -> u64) {
        let (wakeups, after) = {
            let mut state = self.state.lock();
            // Relaxed: written under the lock only.
            let old = self.values.error.load(ordering::Relaxed);
            let new = change(old);
            if new == old {
                return;
            }
            // Release: who sees the value sees what came before it.
            self.values.error.store(new, ordering::Release);
            self.count_event(origin);
            state.error_generation = state.error_generation.wrapping_add(1);
            state.attended = state.attended.wrapping_add(1);
            self.note(&mut state, origin);
            let due = state.detach_all();
            // What waits for the sum is due at other success values than before.
            self.join(&state.lend());
            // Relaxed: see the proof at the top. With the higher error value, see there too.
            let value = self.values.success.value.load(ordering::Relaxed);
            let after = self.fire(&mut state, value, old.max(new));
            self.publish(&state.lend());
            (self.wakeups(&state, due), after)
        };
        drop(wakeups);
        after.finish(self.domain.run_list());
    }

    /// Queues an entry, and takes out what is due, this one perhaps included, in one step
    /// (R-TRIG-11).
    ///
    /// Returns the entry if the counter is closing.
    pub(crate) fn enqueue(
        this: &Fid<Self>,
        kind: Kind,
        entry: KBox<Entry<Pending>>,
        key: Key,
    ) -> Result<After, KBox<Entry<Pending>>> {
        let mut state = this.state.lock();
        if state.triggers.needs_hold() {
            match Hold::new(this) {
                Ok(hold) => state.triggers.set_hold(hold),
                Err(_) => return Err(entry),
            }
        }
        state.triggers.insert(kind, entry, key);
        // Relaxed, all: written under the lock only, but for the success value; see the proof at the
        // top for that.
        let error = this.values.error.load(ordering::Relaxed);
        let first = state.triggers.first_due(error).unwrap_or(NEVER);
        if first < this.values.success.attention.load(ordering::Relaxed) {
            this.join(&state.lend());
        }
        let value = this.values.success.value.load(ordering::Relaxed);
        if first > value {
            return Ok(After {
                hold: None,
                duty: None,
            });
        }
        let after = this.fire(&mut state, value, error);
        this.publish(&state.lend());
        Ok(after)
    }

    /// Takes out an entry that is pending, if it is `wanted`.
    pub(crate) fn remove(
        &self,
        kind: Kind,
        key: Key,
        wanted: impl FnOnce(&Pending) -> bool,
    ) -> Option<KBox<Entry<Pending>>> {
        let (removed, hold) = {
            let mut state = self.state.lock();
            let removed = state.triggers.remove_if(kind, key, wanted)?;
            self.publish(&state.lend());
            (removed, state.triggers.take_hold())
        };
        drop(hold);
        Some(removed)
    }

    /// Takes out all of a kind, and the counter's hold on itself if nothing else is pending.
    pub(crate) fn detach_all(&self, kind: Kind) -> (Batch<Pending>, Option<Hold<Self>>) {
        let mut state = self.state.lock();
        let entries = state.triggers.detach_all(kind);
        self.publish(&state.lend());
        (entries, state.triggers.take_hold())
    }

    /// Calls `show` with the entry after `key`, or the first one, and returns where that stands.
    pub(crate) fn peek<R>(
        &self,
        kind: Kind,
        key: Option<Key>,
        show: impl FnOnce(Key, &Pending) -> R,
    ) -> Option<R> {
        let state = self.state.lock();
        let entry = state.triggers.set(kind).next_after(key)?;
        Some(show(entry.key(), &entry.value))
    }

    /// Counts an operation that has succeeded. From any context, with no lock held.
    pub(crate) fn complete(&self) {
        self.count(1);
    }

    /// Counts an operation that has failed. From any context, with no lock held.
    pub(crate) fn fail(&self) {
        self.change_error(Origin::Provider, |old| old.wrapping_add(1));
    }

    /// Adds as deferred work does (R-DWQ-20). From any context, with no lock held.
    pub(crate) fn add_completed(&self, value: u64) {
        if value != 0 {
            self.count(value);
        }
    }

    /// Sets as deferred work does (R-DWQ-20). From any context, with no lock held.
    pub(crate) fn set_completed(&self, value: u64) {
        self.set_from(value, Origin::Provider);
    }

    /// Becomes a member of a poll set.
    pub(crate) fn watch(&self) {
        let mut state = self.state.lock();
        state.polls += 1;
        self.join(&state.lend());
    }

    /// Leaves a poll set.
    pub(crate) fn unwatch(&self) {
        let mut state = self.state.lock();
        state.polls = state.polls.saturating_sub(1);
        self.publish(&state.lend());
    }

    /// Returns the number of events if there is news for a poll set that has told of `told`.
    pub(crate) fn events_since(&self, told: u64) -> Option<u64> {
        // Acquire: who sees an event sees the change.
        let events = self.values.success.events.load(ordering::Acquire);
        // Relaxed: see `note`.
        let marked = self.events_marked.load(ordering::Relaxed);
        // Events are counted in 64 bits, so that a larger number is a later one.
        (events > told.max(marked)).then_some(events)
    }

    /// `EAGAIN` if the counter has changed since this was called last (R-TRYWAIT-7).
    ///
    /// Does not sleep.
    pub(crate) fn trywait(&self) -> Result {
        if let Some(set) = &self.set {
            return set.trywait();
        }
        let mut state = self.state.lock();
        let changes = state.changes;
        let changed = match state.changes_tried.replace(changes) {
            Some(told) => told != changes,
            None => {
                // From now on every change is counted. What was before was counted if somebody had
                // to see it, else it shows in the values, unless it was undone.
                self.join(&state.lend());
                changes != 0 || self.success() != 0 || self.readerr() != 0
            }
        };
        if changed {
            return Err(EAGAIN);
        }
        Ok(())
    }

    /// Returns the type of the wait object.
    pub(crate) fn wait_obj(&self) -> WaitObj {
        self.wait_obj
    }
}

impl Object for Counter {
    type Class = CounterClass;

    fn release(&self) {
        counters::remove(self.id);
        if let Some(set) = &self.set {
            set.release();
        }
        self.domain.release();
    }

    fn ops_open(this: &Fid<Self>, name: &CStr) -> Result<ExtraOps> {
        counter_test_ops(this, name)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            Control::GetOpsFlag(out) => {
                // Relaxed: a number that nothing depends on.
                out.set(OpFlags::from_raw(this.op_flags.load(ordering::Relaxed)));
            }
            Control::SetOpsFlag(flags) => {
                // Relaxed: as above.
                this.op_flags.store(flags.as_raw(), ordering::Relaxed);
            }
            Control::GetWait(out) => match (this.wait_obj, &this.set) {
                (WaitObj::Queue, _) => {
                    let mut state = this.state.lock();
                    state.queue_shared = true;
                    this.join(&state.lend());
                    drop(state);
                    out.set(&this.queue);
                }
                (WaitObj::Set, Some(set)) => out.set(set.queue()),
                (WaitObj::Unspec, _) => return Err(ENOSYS),
                _ => return Err(EINVAL),
            },
            Control::GetWaitObj(out) => out.set(match this.wait_obj {
                // What it can be taken for.
                WaitObj::Unspec => WaitObj::Queue,
                wait_obj => wait_obj,
            }),
            _ => return Err(ENOSYS),
        }
        Ok(())
    }
}

impl CounterOps for Counter {
    fn read(&self) -> u64 {
        self.success()
    }

    fn readerr(&self) -> u64 {
        // Acquire: pairs with the release of the change.
        self.values.error.load(ordering::Acquire)
    }

    fn tally(&self) -> &Tally {
        &self.values.success
    }

    fn reached(&self, value: u64, sum: u64) {
        self.reached_from(value, sum, Origin::Application);
    }

    fn take_off(&self, value: u64) {
        self.take_off_from(value, Origin::Application);
    }

    fn set(&self, value: u64) -> Result {
        self.set_from(value, Origin::Application);
        Ok(())
    }

    fn adderr(&self, value: u64) -> Result {
        self.change_error(Origin::Application, |old| old.wrapping_add(value));
        Ok(())
    }

    fn seterr(&self, value: u64) -> Result {
        self.change_error(Origin::Application, |_| value);
        Ok(())
    }

    fn wait(this: &Fid<Self>, threshold: u64, timeout: Timeout) -> Result {
        kernel::task::might_sleep();
        if matches!(this.wait_obj, WaitObj::None | WaitObj::Set) {
            return Err(EINVAL);
        }
        // The threshold wins over errors (R-CNTR-30).
        if this.success() >= threshold {
            return Ok(());
        }
        if timeout == Timeout::Millis(0) {
            return Err(ETIMEDOUT);
        }

        // A counter with a thread in here cannot be closed (R-CLOSE-2).
        let _hold = Hold::new(this)?;
        let deadline = timeout.deadline();
        let mut entered = None;
        loop {
            let mut met = false;
            let mut error_changed = false;
            let wakeup = this.state.sleep(
                threshold,
                deadline,
                |state| {
                    this.join(&state);
                    met = this.success() >= threshold;
                    let generation = *entered.get_or_insert(state.error_generation);
                    error_changed = state.error_generation != generation;
                    !met && !error_changed
                },
                |state| this.publish(&state),
            );
            if met || this.success() >= threshold {
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
}

impl CounterTestOps for Counter {
    fn statistics(&self) -> CounterStatistics {
        let state = self.state.lock();
        CounterStatistics {
            attended: state.attended,
        }
    }
}
