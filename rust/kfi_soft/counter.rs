// SPDX-License-Identifier: GPL-2.0

//! Event counters.
//!
//! A counter has a success value and an error value. Beside them stands the *attention threshold*:
//! the smallest success value at which anything at all is due. To add is one atomic addition, one
//! load and one comparison as long as the value stays below it, however many threads wait.
//!
//! There are those who have to see every change: a wait set, poll sets, and threads that listen to
//! the wait queue. While there may be one the attention threshold is 0, and a second word, `due`,
//! says where it would be without them. An addition below that tells them without the lock: the
//! counter of events of a poll set and of a wait set is atomic, and whether somebody listens to the
//! wait queue can be seen (the addition is fully ordered, and a listener has a full barrier between
//! that and the look at the value: that of prepare_to_wait(), or of trywait). A thread that is
//! about to block and has called trywait has to be told of one change only: the first one disarms
//! it.
//!
//! # Why nothing is lost
//!
//! A thread that adds and a thread that joins do the following. To join is to begin to wait, to
//! submit something that waits for a value, to ask for the wait queue, to become a member of a poll
//! set, or to say by trywait that one is about to block.
//!
//! ```text
//! add:   success.fetch_add(Full)            join:  due.store(threshold)
//!        attention.load()                          attention.store(threshold, or 0)
//!        due.load(), if there is need              smp_mb()
//!                                                  success.load()
//! ```
//!
//! This is the store-buffering pattern. Both sides have a full barrier between their write and
//! their read, so that at least one sees what the other wrote: either the adder sees the new
//! attention threshold and looks for what is due, under the lock, or the thread that joins sees the
//! new value (`qemu-test/litmus/KFI-add-vs-submit.litmus`; `attention.rs` has the very steps, which
//! are tried in all orders in user space). Everybody joins and leaves under the lock, and there the
//! attention threshold is always recomputed, so it never lags behind.
//!
//! A thread that submits something with a threshold not below the attention threshold need not
//! store it nor have a barrier. An adder that has reached that value and does not look under the
//! lock has read an older attention threshold, a higher one. Since then somebody has lowered it,
//! under the lock, and has seen the value that the adder made, by the pattern above; so does a
//! thread that takes the lock later (`qemu-test/litmus/KFI-add-vs-submit-second.litmus`).
//!
//! The error value changes under the lock only. A waiter compares the number of changes under the
//! same lock when it joins; a later change finds it in the list (see [`CounterWait`]). Threads and
//! operations that wait for the sum of both values are due at a lower success value when the error value
//! has risen: that is to join, too.
//!
//! # What fires
//!
//! Something fires if, since it was submitted, the value was ever as high as its threshold, and
//! never else. An adder looks under the lock at the value of that time, not at the one it has made,
//! as that may have been lowered before something was submitted. So a thread that lowers a value
//! makes up for adders that are still on their way: it changes the value under the lock, and fires
//! what was due before (R-TRIG-18, R-TRIG-19).
//!
//! An addition without the lock may pass 2^64, which lowers the value, too. The adder makes up for it
//! as soon as it has the lock, and must not fire what was submitted meanwhile. So the thread that
//! has the lock compares the value with the one that was observed under the lock before,
//! `observed`. If it is lower, an addition has passed 2^64 since, and only then, and only once; all
//! that is pending was submitted before, and what will be was not, so its number is noted
//! ([`Passed`]).
//!
//! - Without the lock nothing is added but values less than 2^32 ([`Tally::LIMIT`]), and the
//!   attention threshold is never higher than 2^63 ([`HIGH`]). So each of these additions that makes
//!   the value 2^63 or more, or passes 2^64, is followed by the lock before the same thread or
//!   interrupt makes another one. There are less than 2^23 of these at a time (as many as threads,
//!   and some for each CPU), which add less than 2^55 together.
//! - So between two observations the value comes from below 2^63 only a little above it, and it
//!   passes 2^64 only from where a little is missing to that. Then it is small, and comes to 2^63 at
//!   most, and a little above it, before the next observation: that is lower than the one before.
//!
//! Should the value pass 2^64 again before the first adder has got the lock, what was submitted
//! between the two is left to the addition that reaches its threshold once more.
//!
//! Only if something was submitted meanwhile, what is due for the adder has to be told from it one by
//! one. The adder does that for a few, and the work queue for the others ([`Overdue`]), still in the
//! order of thresholds. Should more adders than there is place for have left something, each from a
//! lower value than the one before, the last one's is left to the addition that reaches its
//! threshold once more.
//!
//! # Events
//!
//! A poll set reports a counter when the provider has changed it, but not when the application has
//! (R-POLL-6). The provider's changes are counted in `events` and `error_events`, always and after the
//! change. When the application changes a watched counter, `events_marked` becomes what `events` was
//! before that change, before anything runs that this has made due: what happened before does not count
//! as news any more. So does `error_events_marked`, but for additions without the lock, which do not look
//! at it; that an error is reported which came before is allowed (R-POLL-8). Of two changes by the
//! application at the same time the one that saw less may mark last, which is allowed, too.

#![forbid(unsafe_code)]

use core::{
    mem,
    ops::Deref, //
};
use kernel::{
    prelude::*,
    static_lock_class,
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
    attention::{
        self,
        Words, //
    },
    debugfs,
    domain::Domain,
    kfi::{
        control::{
            Control,
            KeptOpFlags, //
        },
        fid::{
            ExtraOps,
            Fid,
            NewFid,
            Object,
            Opening,
            OpsName, //
        },
        hold::Hold,
        linux::{
            interrupts::{
                IrqGuard,
                NoPreemption, //
            },
            task::cond_resched,
            timeout::Timeout,
            waiters::{
                Due,
                Locked,
                WaitGuard,
                WaitLock, //
            },
            work_queue::{
                new_work,
                Work,
                WorkItem, //
            }, //
        },
        provider::{
            counter_test_ops,
            counter_wait::{
                CounterWait,
                ErrorValue, //
            },
            wait_source::WaitSource,
            Counted, CounterAttr, CounterClass, CounterEvents, CounterOps, CounterStatistics,
            CounterTestOps,
        },
        tally::Tally, //
    },
    queue::wait_with,
    trigger::{
        pending::{
            Pending,
            PendingKind,
            Triggers, //
        },
        run_list::{
            DrainToken,
            RunList, //
        },
        threshold::{
            Batch,
            Emptied,
            Entry,
            Key,
            Rest,
            Tree, //
        }, //
    },
    wait_set::WaitSet, //
};

/// Nothing is due at any value.
const NEVER: u64 = u64::MAX;

/// From this value on every addition is attended to, which may find nothing: see the top of this
/// file.
const HIGH: u64 = 1 << 63;

/// The value that additions write, on a cache line of its own, and on the next one what they read; that changes
/// where the provider counts, and else seldom.
// In this order: the attention threshold of the tally begins the second line.
#[repr(C, align(64))]
struct Values {
    /// The success value; the attention threshold, written under the lock; how often the provider
    /// has changed the counter.
    success: Tally,
    error: ErrorValue,
    /// The smallest value at which the lock has to be taken, written under it.
    due: Atomic<u64>,
}

impl Words for Values {
    #[inline]
    fn success(&self) -> u64 {
        // Relaxed: see the proof at the top.
        self.success.value.load(ordering::Relaxed)
    }

    #[inline]
    fn due(&self) -> u64 {
        // Relaxed: under the lock, or after an addition, which was fully ordered.
        self.due.load(ordering::Relaxed)
    }

    #[inline]
    fn publish(&self, due: u64, attention: u64) {
        // Relaxed, both: see the proof at the top; a thread that joins adds a full barrier.
        self.due.store(due, ordering::Relaxed);
        self.success.attention.store(attention, ordering::Relaxed);
    }

    #[inline]
    fn full_barrier(&self) {
        smp_mb(ordering::Full);
    }
}

/// Additions without the lock that have passed 2^64, whose adders are yet to make up for it.
struct Passed {
    /// How many there are.
    count: usize,
    /// Operations with a lower number were submitted before the first of them.
    before: u64,
}

/// The operations that an addition past 2^64 has left to be fired.
struct Overdue {
    /// Operations that wait for the success value were due up to this.
    success: u64,
    /// Operations that wait for the sum of both values were due up to this.
    sum: u64,
    /// Operations with a lower number were submitted before.
    before: u64,
    /// Up to which entry it was made up for.
    last: Option<Key>,
}

/// The state of trywait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    /// No thread is about to block; `changed`: the counter has changed while the lock was held.
    Idle { changed: bool },
    /// A thread is about to block, or does: the next change has to be seen.
    Armed,
}

/// The part of a counter that its lock protects.
pub(crate) struct State {
    /// The state of trywait.
    tried: Tried,
    /// The success value that was looked at last, or set.
    observed: u64,
    /// Additions that have passed 2^64.
    passed: Passed,
    /// Operations that the work queue is to fire.
    left: [Option<Overdue>; LEFT],
    /// A consumer has asked for the wait queue.
    queue_shared: bool,
    /// Memberships in poll sets.
    polls: usize,
    /// Operations that wait for a value.
    triggers: Triggers,
    /// How often a change has come here.
    attended: u64,
}

/// How many changes by the provider have been counted.
#[derive(Clone, Copy, Default)]
pub(crate) struct EventCounts {
    /// Of the success value.
    successes: u64,
    /// Of the error value.
    errors: u64,
}

/// The origin of a change to a counter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangedBy {
    /// The application, by kfi_cntr_add and its like.
    Application,
    /// The provider, when an operation has completed.
    Provider,
    /// The provider, as an operation that has changed the counter of one memory region has read or written another one:
    /// one call may change the counters of as many as it names. So nothing of what that makes due is done at once.
    NextRegion,
}

impl ChangedBy {
    /// Returns how many threads are woken at once.
    fn few(self) -> usize {
        match self {
            Self::Application => FEW,
            Self::Provider => VERY_FEW,
            Self::NextRegion => 0,
        }
    }

    /// Returns whether it is an event to a poll set.
    fn is_event(self) -> bool {
        self != Self::Application
    }
}

/// The state under the lock and the waiting threads, kept by a thread that wakes these late.
#[pin_data]
struct Waiting {
    #[pin]
    state: WaitLock<State>,
    /// Wakes those that are too many for the context that has changed the counter, maybe an
    /// interrupt.
    #[pin]
    work: Work<Waiting>,
}

impl Waiting {
    fn new(state: State) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- WaitLock::new(state, c"kfi_soft::Counter::state", static_lock_class!()),
                work <- new_work!("kfi_soft::Counter::work"),
            }),
            GFP_KERNEL,
        )
    }
}

impl Deref for Waiting {
    type Target = WaitLock<State>;

    fn deref(&self) -> &WaitLock<State> {
        &self.state
    }
}

impl WorkItem for Waiting {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        loop {
            // As in [`Counter::finish`].
            let preemption = NoPreemption::begin();
            let (few, counter) = {
                let mut state = this.state.lock();
                (state.detach_few(FEW), state.with_left())
            };
            let mut more = few.leaves_others();
            drop(few);
            drop(preemption);
            if let Some(counter) = counter {
                more |= counter.fire_left();
            }
            if !more {
                return;
            }
            cond_resched();
        }
    }
}

impl State {
    /// Returns the counter if there is something left to be fired, for [`Counter::fire_left`].
    fn with_left(&mut self) -> Option<Arc<Fid<Counter>>> {
        if self.left.iter().all(Option::is_none) {
            return None;
        }
        let counter = self.triggers.holder();
        if counter.is_none() {
            // Nothing is pending any more.
            self.left = [const { None }; LEFT];
        }
        counter
    }
}

/// A counter.
#[pin_data]
pub(crate) struct Counter {
    values: Values,
    /// Its number in debugfs and trace events.
    id: u64,
    /// How many changes of the error value by the provider have been counted.
    error_events: Atomic<u64>,
    /// The events before the last change by the application that had to be seen.
    events_marked: Atomic<u64>,
    /// As before, of the error value.
    error_events_marked: Atomic<u64>,
    op_flags: KeptOpFlags,
    state: Arc<Waiting>,
    #[pin]
    source: WaitSource<WaitSet>,
    domain: Hold<Domain>,
}

/// Work that remains to be done after the lock is released, as something has become due.
#[must_use = "what is due has to be run"]
pub(crate) struct AfterUnlock {
    /// The hold that the counter had on itself, released.
    hold: Option<Hold<Counter>>,
    /// The run list has to be drained.
    drain_token: Option<DrainToken>,
    /// The work queue has to fire what is left.
    leaves_others: bool,
    /// Blocks that have no entries any more.
    emptied: Emptied,
}

impl AfterUnlock {
    /// There is nothing to do.
    const NOTHING: Self = Self {
        hold: None,
        drain_token: None,
        leaves_others: false,
        emptied: Emptied::new(),
    };

    /// Does it.
    pub(crate) fn finish(self, run_list: &Arc<RunList>, origin: ChangedBy) {
        if let Some(drain_token) = self.drain_token {
            run_list.drain_for(drain_token, origin);
        }
        // The caller has what keeps the counter, see `RunList`.
        drop(self.hold);
        drop(self.emptied);
    }

    /// Joins what remains to be done twice.
    fn and(mut self, other: Self) -> Self {
        self.emptied.append(other.emptied);
        Self {
            emptied: self.emptied,
            hold: self.hold.or(other.hold),
            drain_token: self.drain_token.or(other.drain_token),
            leaves_others: self.leaves_others || other.leaves_others,
        }
    }
}

/// Threads that are woken at a time, by the application and by the work queue.
const FEW: usize = 16;

/// Threads that are woken at once when the provider changes a counter, which it may do many times
/// before it returns.
const VERY_FEW: usize = 4;

/// How often additions are tried to be made as one while others change the value.
const JOIN_TRIES: usize = 4;

/// Entries that are looked at before others get the lock, after an addition has passed 2^64.
const MADE_UP: usize = 16;

/// Additions of which something may be left.
const LEFT: usize = 4;

/// The result of [`Counter::enqueue`].
pub(crate) enum Enqueued {
    /// It stands there, or was due.
    Pending(Key),
    /// There was no block for it: so many are wanted.
    NoBlock(usize),
    /// There was no slot for it.
    NoSlot,
    /// It was refused.
    Refused(Error),
}

impl Counter {
    /// Opens a counter, which debugfs shows from then on.
    pub(crate) fn open<'o>(
        domain: &Fid<Domain>,
        attr: CounterAttr<'_>,
        opening: Opening<'o, CounterClass>,
    ) -> Result<NewFid<'o, Self>> {
        let counter = NewFid::new(Self::new(Hold::new(domain)?, attr)?, opening)?;
        debugfs::insert(counter.arc())?;
        Ok(counter)
    }

    /// Creates a counter with both values 0 (R-CNTR-5), if the attributes allow (R-CNTR-8 to 14).
    fn new(domain: Hold<Domain>, attr: CounterAttr<'_>) -> Result<impl PinInit<Self>> {
        let CounterEvents::Completions = attr.events;
        if attr.flags != 0 {
            return Err(EINVAL);
        }
        let wait = wait_with(attr.wait, domain.fabric())?;
        // A wait set sees every change, from the first one on.
        let attention = if wait.has_set() { 0 } else { HIGH };
        let state = Waiting::new(State {
            tried: Tried::Idle { changed: false },
            observed: 0,
            passed: Passed {
                count: 0,
                before: 0,
            },
            left: [const { None }; LEFT],
            queue_shared: false,
            polls: 0,
            triggers: Triggers::new(),
            attended: 0,
        })?;
        Ok(pin_init!(Self {
            id: debugfs::next_id(),
            values: Values {
                success: Tally::new(attention),
                error: ErrorValue::new(),
                due: Atomic::new(HIGH),
            },
            error_events: Atomic::new(0),
            events_marked: Atomic::new(0),
            error_events_marked: Atomic::new(0),
            op_flags: KeptOpFlags::new(),
            state,
            source <- WaitSource::new(wait, c"kfi_soft::Counter::source", static_lock_class!()),
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
        // Acquire: a thread that sees a value sees what came before it was counted.
        self.values.success.value.load(ordering::Acquire)
    }

    /// Returns whether there may be a listener that has to see every change.
    fn is_watched(&self, state: &State) -> bool {
        self.source.set().is_some() || state.queue_shared || state.polls != 0
    }

    /// Returns the smallest value at which something is due.
    fn due(&self, state: &Locked<'_, State>) -> u64 {
        if state.tried == Tried::Armed {
            return 0;
        }
        let error = self.values.error.read_locked();
        let waiter = state.first_threshold().unwrap_or(NEVER);
        let pending = state.triggers.first_due(error).unwrap_or(NEVER);
        waiter.min(pending).min(HIGH)
    }

    /// Observes the success value, which is changed without the lock; under the lock.
    fn observe(&self, state: &mut State, value: u64) {
        let before = mem::replace(&mut state.observed, value);
        // Lower: see the top of this file.
        if value < before {
            self.note_passed(state);
        }
    }

    /// Notes that an addition has passed 2^64.
    #[cold]
    fn note_passed(&self, state: &mut State) {
        if state.passed.count == 0 {
            state.passed.before = self.domain.run_list().next_sequence();
        }
        state.passed.count += 1;
    }

    /// Makes up for an addition without the lock that has passed 2^64 from `peak`: fires what was due
    /// then, or leaves some of it to the work queue.
    #[cold]
    fn make_up(&self, state: &mut State, peak: u64) -> AfterUnlock {
        let error = self.values.error.read_locked();
        let before = state.passed.before;
        state.passed.count = state.passed.count.saturating_sub(1);
        if before == self.domain.run_list().next_sequence() {
            return self.fire(state, peak, error);
        }
        let mut left = Overdue {
            success: peak,
            // It saturates (R-CNTR-20).
            sum: peak.saturating_add(error),
            before,
            last: None,
        };
        let (after, all) = self.fire_some(state, &mut left);
        if all {
            return after;
        }
        // The remains of an earlier addition are part of these, unless they were due at more.
        let is_part = |other: &Overdue| other.success <= left.success && other.sum <= left.sum;
        for place in &mut state.left {
            if place.as_ref().is_some_and(is_part) {
                *place = None;
            }
        }
        if let Some(place) = state.left.iter_mut().find(|place| place.is_none()) {
            *place = Some(left);
        }
        AfterUnlock {
            leaves_others: true,
            ..after
        }
    }

    /// Fires some of what an addition has left, in order; under the lock. Returns whether that is
    /// all.
    fn fire_some(&self, state: &mut State, left: &mut Overdue) -> (AfterUnlock, bool) {
        let mut found = [None; MADE_UP];
        let mut emptied = Emptied::new();
        let mut all = false;
        for place in &mut found {
            let next = state.triggers.next_due(left.last, left.success, left.sum);
            let Some((kind, key)) = next else {
                all = true;
                break;
            };
            left.last = Some(key);
            if key.sequence < left.before {
                if let Some((number, block)) = state.triggers.remove(kind, key) {
                    *place = Some(Entry { key, number });
                    emptied.push_some(block);
                }
            }
        }
        let hold = self.release_hold(state);
        let mut due = found.into_iter().flatten().peekable();
        let drain_token = due.peek().is_some().then(|| {
            let none = [const { Tree::new() }; 2];
            self.domain.run_list().append(none, due)
        });
        let after = AfterUnlock {
            hold,
            drain_token: drain_token.flatten(),
            leaves_others: false,
            emptied,
        };
        (after, all)
    }

    /// Fires some of what additions have left, and returns whether there may be more.
    fn fire_left(&self) -> bool {
        let (after, more) = {
            let mut state = self.state.lock();
            let first = state.left.iter_mut().find_map(Option::take);
            let Some(mut left) = first else {
                return false;
            };
            let (after, all) = self.fire_some(&mut state, &mut left);
            if !all {
                if let Some(place) = state.left.iter_mut().find(|place| place.is_none()) {
                    *place = Some(left);
                }
            }
            self.publish(&state.lend());
            (after, state.left.iter().any(Option::is_some))
        };
        after.finish(self.domain.run_list(), ChangedBy::Application);
        more
    }

    /// Takes changes by the provider up to `events` for seen to a poll set, as the application has
    /// changed the counter after them; before anything runs that this has made due, whose changes are
    /// news (R-DWQ-20).
    fn mark(&self, events: u64) {
        // Relaxed: a poll that does not see it reports the counter once too often, which it may
        // (R-POLL-8).
        self.events_marked.store(events, ordering::Relaxed);
    }

    /// As [`Self::mark`], for changes of the error value too, if the application has changed the counter;
    /// with the lock held.
    fn mark_all(&self, origin: ChangedBy, events: EventCounts) {
        if origin == ChangedBy::Application {
            self.mark(events.successes);
            // Relaxed: as there.
            self.error_events_marked
                .store(events.errors, ordering::Relaxed);
        }
    }

    /// Returns how many changes by the provider have been counted.
    fn events(&self) -> EventCounts {
        // Acquire: a thread that sees an event sees the change.
        // See `qemu-test/litmus/KFI-poll-event.litmus` and
        // `qemu-test/litmus/KFI-poll-locked.litmus`.
        EventCounts {
            successes: self.values.success.events.load(ordering::Acquire),
            errors: self.error_events.load(ordering::Acquire),
        }
    }

    /// Notifies the listeners that have to see every change; without the lock. `irqs` ends before
    /// anybody is woken.
    fn tell(&self, irqs: &mut IrqGuard) {
        // After the change, fully ordered: additions are by themselves, changes of the error value by the
        // `join` in `change_error`. Nobody listens before the queue was asked for.
        // See `qemu-test/litmus/KFI-add-vs-listen.litmus` and `qemu-test/litmus/wait-entry.litmus`.
        let queue = self.source.queue();
        if queue.has_waiters() {
            irqs.end();
            queue.wake_up_all();
        }
        if let Some(set) = self.source.set() {
            irqs.end();
            set.signal_counter();
        }
    }

    /// Takes out what is due at these values and hands it to the run list; under the lock, and
    /// before the attention threshold is published.
    fn fire(&self, state: &mut State, success: u64, error: u64) -> AfterUnlock {
        if !state.triggers.is_due(success, error) {
            return AfterUnlock::NOTHING;
        }
        // As in a chain, of which each step is due by itself.
        match state.triggers.pop_single_due(success, error) {
            Some(entry) => AfterUnlock {
                drain_token: self.domain.run_list().append_single(entry),
                ..AfterUnlock::NOTHING
            },
            None => self.fire_many(state, success, error),
        }
    }

    /// As [`Self::fire`], however much is due.
    #[inline(never)]
    fn fire_many(&self, state: &mut State, success: u64, error: u64) -> AfterUnlock {
        let run_list = self.domain.run_list();
        let append = |trees: [Tree; 2], rest: &mut Rest<'_>| run_list.append(trees, rest);
        let Some(detached) = state.triggers.detach_due(success, error, append) else {
            return AfterUnlock::NOTHING;
        };
        let mut emptied = Emptied::new();
        for block in detached.blocks {
            emptied.push_some(block);
        }
        AfterUnlock {
            drain_token: detached.result,
            hold: detached.hold,
            leaves_others: false,
            emptied,
        }
    }

    /// Releases the counter's hold on itself if nothing is pending on it any more.
    ///
    /// Before anything can run: a thread that has seen what all that was pending has done may close
    /// the counter (R-CLOSE-2).
    fn release_hold(&self, state: &mut State) -> Option<Hold<Self>> {
        let hold = state.triggers.take_hold()?;
        hold.release();
        Some(hold)
    }

    /// Attends to a change of the success value; under the lock. Takes out who waits for a value that
    /// is due, if anybody does, and returns what remains to be done.
    ///
    /// `peak` is the highest value that there has been in the course of that.
    fn attend(
        &self,
        origin: ChangedBy,
        state: &mut WaitGuard<'_, State>,
        peak: u64,
        due: &mut Option<Due>,
    ) -> AfterUnlock {
        if state.has_due(peak) {
            *due = Some(state.detach_due(peak, origin.few()));
        }
        let error = self.values.error.read_locked();
        let after = self.fire(state, peak, error);
        self.changed(state);
        after
    }

    /// Notes a change; under the lock, as the last thing.
    fn changed(&self, state: &mut WaitGuard<'_, State>) {
        state.attended = state.attended.wrapping_add(1);
        state.tried = Tried::Idle { changed: true };
        self.publish(&state.lend());
    }

    /// Wakes the threads that wait and runs what is due, without the lock. `irqs` ends before that, and `one`
    /// as well, but for one thread. If many wait, the work queue wakes the others.
    ///
    /// The caller has not been preempted since it has taken `due` out: nobody else can wake those.
    /// They and those who listen come first: what is due may be much.
    fn finish(
        &self,
        origin: ChangedBy,
        irqs: &mut IrqGuard,
        mut one: IrqGuard,
        due: &mut Option<Due>,
        after: AfterUnlock,
    ) {
        let mut leaves_others = after.leaves_others;
        if let Some(due) = due {
            irqs.end();
            if !due.is_one() {
                one.end();
            }
            leaves_others |= due.leaves_others();
        }
        if leaves_others {
            one.end();
            self.domain.go_on_later(self.state.clone());
        }
        if due.is_some() {
            *due = None;
        }
        one.end();
        self.tell(irqs);
        after.finish(self.domain.run_list(), origin);
    }

    /// Attends to an addition that was made without the lock, of `value`, which has made `sum`.
    #[cold]
    fn attend_late(&self, value: u64, sum: u64, origin: ChangedBy, irqs: &mut IrqGuard) {
        if !attention::needs_lock(&self.values, value, sum) {
            self.tell(irqs);
            return;
        }
        let _preemption = NoPreemption::begin();
        // Once for the lock, and those that a thread is woken with.
        let one = irqs.or_begin();
        let mut due = None;
        let after = {
            let mut state = self.state.lock();
            // Relaxed: it is the value that this thread has made, or a later one.
            let now = self.values.success.value.load(ordering::Relaxed);
            self.observe(&mut state, now);
            if sum < value {
                // From what it was before.
                let passed = self.make_up(&mut state, sum.wrapping_sub(value));
                passed.and(self.attend(origin, &mut state, now, &mut due))
            } else {
                self.attend(origin, &mut state, now, &mut due)
            }
        };
        self.finish(origin, irqs, one, &mut due, after);
    }

    /// Changes the success value under the lock, which may go down; `change` is given the error value, and returns
    /// the old success value and the new one. It is one change, or several at once.
    fn change_success(
        &self,
        origin: ChangedBy,
        changes: u64,
        irqs: &mut IrqGuard,
        change: impl FnOnce(u64, &Atomic<u64>) -> (u64, u64),
    ) {
        let _preemption = NoPreemption::begin();
        let mut due = None;
        let after = {
            let mut state = self.state.lock();
            let events = self.events();
            let error = self.values.error.read_locked();
            let (old, new) = change(error, &self.values.success.value);
            self.observe(&mut state, old);
            if old == new {
                return;
            }
            state.observed = new;
            self.mark_all(origin, events);
            self.count_events(origin, changes);
            self.attend(origin, &mut state, old.max(new), &mut due)
        };
        self.finish(origin, irqs, IrqGuard::none(), &mut due, after);
    }

    /// Counts changes by the provider.
    fn count_events(&self, origin: ChangedBy, changes: u64) {
        if origin.is_event() {
            // Release: after the change.
            let events = &self.values.success.events;
            events.fetch_add(changes, ordering::Release);
        }
    }

    /// Adds to the success value, for the provider; one that adds without the lock counts so many
    /// `events`.
    ///
    /// Threads of users that come here have disabled preemption before. Threads of work queues need not: there
    /// only a change for which the lock is needed does that, and after the value has changed (see the
    /// duties in [`CounterWait`]).
    fn count(&self, value: u64, events: u64, origin: ChangedBy, irqs: &mut IrqGuard) {
        if value >= Tally::LIMIT {
            self.add_locked_from(value, origin, irqs);
        } else if let Some(sum) = self.values.success.count(value, events) {
            self.attend_late(value, sum, origin, irqs);
        }
    }

    /// Adds what is not added without the lock: a large value, or a negative one, as for credits
    /// (R-CNTR-20).
    fn add_locked_from(&self, value: u64, origin: ChangedBy, irqs: &mut IrqGuard) {
        self.change_success(origin, 1, irqs, |_, success| {
            // Full: orders what came before for readers of the value without the lock, as an
            // addition does that is made without it (`qemu-test/litmus/KFI-take-off.litmus`).
            let old = success.fetch_add(value, ordering::Full);
            (old, old.wrapping_add(value))
        });
    }

    /// Sets the success value.
    fn set_from(&self, value: u64, origin: ChangedBy, irqs: &mut IrqGuard) {
        self.change_success(origin, 1, irqs, |_, success| {
            // Full: orders what came before for readers of the value without the lock.
            (success.xchg(value, ordering::Full), value)
        });
    }

    /// Changes the error value; `change` returns the new one.
    fn change_error(&self, origin: ChangedBy, change: impl FnOnce(u64) -> u64) {
        let _preemption = NoPreemption::begin();
        let mut due = None;
        let after = {
            let mut state = self.state.lock();
            let change = |old| {
                let new = change(old);
                if new != old {
                    // Before the change, whose effects are counted later.
                    self.mark_all(origin, self.events());
                }
                new
            };
            let look = |state: &mut WaitGuard<'_, State>, old: u64, new: u64| {
                if origin.is_event() {
                    // Release: after the change.
                    self.error_events.fetch_add(1, ordering::Release);
                }
                // Operations that wait for the sum are due at other success values than before. Its barrier
                // also comes between the change and the look for listeners in `tell`.
                // See `qemu-test/litmus/KFI-add-vs-error.litmus` and
                // `qemu-test/litmus/KFI-error-vs-listen.litmus`.
                self.join(&state.lend());
                // Relaxed: see the proof at the top. With the higher error value, see there too: an addition by
                // a thread that has read the lower one is not seen.
                let value = self.values.success.value.load(ordering::Relaxed);
                (value, old.max(new))
            };
            let changed = self.values.error.change_while(&mut state, change, look);
            let Some((value, error)) = changed else {
                return;
            };
            if state.has_due(u64::MAX) {
                due = Some(state.detach_all(origin.few()));
            }
            self.observe(&mut state, value);
            let after = self.fire(&mut state, value, error);
            self.changed(&mut state);
            after
        };
        let (irqs, one) = (&mut IrqGuard::none(), IrqGuard::none());
        self.finish(origin, irqs, one, &mut due, after);
    }

    /// Queues an operation, for which `note` finds a slot, and takes out what is due, this one perhaps
    /// included, in one step (R-TRIG-11): a thread that finds the slot finds the entry here, or
    /// due. Takes `blocks` if there is need for any.
    ///
    /// In any case something may remain to be done.
    pub(crate) fn enqueue(
        this: &Fid<Self>,
        kind: PendingKind,
        blocks: &mut Emptied,
        note: impl FnOnce() -> Result<Option<(u32, Key)>>,
    ) -> (AfterUnlock, Enqueued) {
        let mut state = this.state.lock();
        let wanted = state.triggers.blocks_wanted(kind, blocks);
        if wanted != 0 {
            return (AfterUnlock::NOTHING, Enqueued::NoBlock(wanted));
        }
        // Before it gets its number.
        // Relaxed, all: written under the lock only, but for the success value; see the proof at the
        // top for that.
        let value = this.values.success.value.load(ordering::Relaxed);
        this.observe(&mut state, value);
        let hold = if state.triggers.needs_hold() {
            match Hold::new(this) {
                Ok(hold) => Some(hold),
                Err(error) => return (AfterUnlock::NOTHING, Enqueued::Refused(error)),
            }
        } else {
            None
        };
        let (slot, key) = match note() {
            Ok(Some(noted)) => noted,
            Ok(None) => return (AfterUnlock::NOTHING, Enqueued::NoSlot),
            Err(error) => return (AfterUnlock::NOTHING, Enqueued::Refused(error)),
        };
        if let Some(hold) = hold {
            state.triggers.set_hold(hold);
        }
        // There is a block, so that this does not fail.
        let _ = state.triggers.insert(kind, Entry { key, number: slot });
        let error = this.values.error.read_locked();
        let first = state.triggers.first_due(error).unwrap_or(NEVER);
        let joins = || this.join(&state.lend());
        let value = attention::look_after_submit(&this.values, first, joins);
        this.observe(&mut state, value);
        if first > value {
            return (AfterUnlock::NOTHING, Enqueued::Pending(key));
        }
        let after = this.fire(&mut state, value, error);
        this.publish(&state.lend());
        (after, Enqueued::Pending(key))
    }

    /// Takes out an entry; returns whether it was pending.
    pub(crate) fn remove(&self, kind: PendingKind, key: Key) -> bool {
        let (block, hold) = {
            let mut state = self.state.lock();
            let Some((_, block)) = state.triggers.remove(kind, key) else {
                return false;
            };
            self.publish(&state.lend());
            (block, state.triggers.take_hold())
        };
        drop((block, hold));
        true
    }

    /// Takes out all of a kind, and the counter's hold on itself if nothing else is pending.
    pub(crate) fn detach_all(&self, kind: PendingKind) -> (Batch, Option<Hold<Self>>) {
        let mut state = self.state.lock();
        let entries = state.triggers.detach_all(kind);
        self.publish(&state.lend());
        (entries, state.triggers.take_hold())
    }

    /// Calls `show` with the operation after `key`, or the first one, and returns where that stands.
    pub(crate) fn peek<R>(
        &self,
        kind: PendingKind,
        key: Option<Key>,
        show: impl FnOnce(&Pending) -> R,
    ) -> Option<(Key, R)> {
        let state = self.state.lock();
        let Entry { key, number } = state.triggers.set(kind).next_after(key)?;
        // Its slot is in use as long as it is here.
        Some((key, self.domain.run_list().peek(number, show)?))
    }

    /// Counts an operation that has succeeded. From any context, with no lock held.
    pub(crate) fn complete(&self, _: Counted) {
        self.count(1, 1, ChangedBy::Provider, &mut IrqGuard::none());
    }

    /// Counts what an operation has done to a memory region, behind the counter of another one. From any context, with no
    /// lock held.
    pub(crate) fn complete_next_region(&self, _: Counted) {
        self.count(1, 1, ChangedBy::NextRegion, &mut IrqGuard::none());
    }

    /// Counts an operation that has failed. From any context, with no lock held.
    pub(crate) fn fail(&self, _: Counted) {
        self.change_error(ChangedBy::Provider, |old| old.wrapping_add(1));
    }

    /// Adds as deferred work does (R-DWQ-20). From any context, with no lock held; `irqs` ends before anybody
    /// is woken.
    pub(crate) fn add_completed(&self, value: u64, irqs: &mut IrqGuard) {
        if value != 0 {
            self.count(value, 1, ChangedBy::Provider, irqs);
        }
    }

    /// As `works` times [`Self::add_completed`], less than [`Tally::LIMIT`] in all, in one step if nobody can tell
    /// that.
    ///
    /// Somebody can, if
    ///
    /// - one of the additions makes the value as high as another one, which passes 2^64, does not; or
    /// - there is an error value: deferred work is due at a lower success value then than triggered
    ///   operations with the same threshold, so that what one addition makes due would be sorted among
    ///   what the next one does.
    ///
    /// Both are looked at in that step: a change of either value that came to its end before is not passed over.
    pub(crate) fn add_completed_many(&self, value: u64, works: u64, irqs: &mut IrqGuard) {
        let all = value.saturating_mul(works);
        if all == 0 {
            return;
        }
        let mut joined = false;
        if works > 1 && all < Tally::LIMIT {
            joined = self.add_joined(all, works, irqs);
        }
        if !joined {
            for _ in 0..works {
                self.count(value, 1, ChangedBy::Provider, irqs);
                irqs.end();
            }
        }
    }

    /// Adds what `works` additions add together; `false` if they have to be told apart, or other threads change the
    /// value again and again.
    fn add_joined(&self, all: u64, works: u64, irqs: &mut IrqGuard) -> bool {
        let mut joined = false;
        self.change_success(ChangedBy::Provider, works, irqs, |error, success| {
            // Relaxed: only to be exchanged.
            let mut old = success.load(ordering::Relaxed);
            for _ in 0..JOIN_TRIES {
                if old >= HIGH || error != 0 {
                    break;
                }
                let new = old.wrapping_add(all);
                // Full: as an addition without the lock.
                match success.cmpxchg(old, new, ordering::Full) {
                    Ok(_) => {
                        joined = true;
                        return (old, new);
                    }
                    Err(now) => old = now,
                }
            }
            (old, old)
        });
        joined
    }

    /// Sets as deferred work does (R-DWQ-20). From any context, with no lock held.
    pub(crate) fn set_completed(&self, value: u64, irqs: &mut IrqGuard) {
        self.set_from(value, ChangedBy::Provider, irqs);
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

    /// Returns the numbers of events if there is news for a poll set that has reported `told`.
    pub(crate) fn events_since(&self, told: EventCounts) -> Option<EventCounts> {
        let events = self.events();
        // Events are counted in 64 bits, so that a larger number is a later one.
        // Relaxed, both: see `mark`.
        let news = (events.successes > told.successes
            && events.successes > self.events_marked.load(ordering::Relaxed))
            || (events.errors > told.errors
                && events.errors > self.error_events_marked.load(ordering::Relaxed));
        news.then_some(events)
    }

    /// `EAGAIN` if the counter has changed since this was called last (R-TRYWAIT-7).
    ///
    /// Does not sleep.
    pub(crate) fn trywait(&self) -> Result {
        if let Some(set) = self.source.set() {
            return set.trywait();
        }
        let mut state = self.state.lock();
        let before = mem::replace(&mut state.tried, Tried::Armed);
        // Also if it is armed already: a listener to the wait queue needs the barrier.
        // See `qemu-test/litmus/KFI-add-vs-listen.litmus` and
        // `qemu-test/litmus/KFI-error-vs-listen.litmus`.
        self.join(&state.lend());
        let changed = match before {
            Tried::Armed => false,
            Tried::Idle { changed } => {
                // Changes from before it was armed, without the lock, show in the values.
                changed || self.success() != 0 || self.readerr() != 0
            }
        };
        if changed {
            return Err(EAGAIN);
        }
        Ok(())
    }

    /// Returns what threads wait on.
    pub(crate) fn source(&self) -> &WaitSource<WaitSet> {
        &self.source
    }
}

impl Object for Counter {
    type Class = CounterClass;

    fn release(&self) {
        debugfs::remove(self.id);
        self.source.release();
        self.domain.release();
    }

    fn may_outlive_close(&self) -> bool {
        // No other listener has to be notified of a change.
        self.source.set().is_none() && !self.state.lock().queue_shared
    }

    fn ops_open<'o>(this: &Fid<Self>, name: OpsName<'o>) -> Result<ExtraOps<'o, Self>> {
        counter_test_ops(this, name)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.answer(&this.op_flags, command)
    }
}

impl CounterWait for Counter {
    type State = State;
    type Set = WaitSet;

    fn waiters(&self) -> &WaitLock<State> {
        &self.state
    }

    fn error_value(&self) -> &ErrorValue {
        &self.values.error
    }

    fn wait_source(&self) -> &WaitSource<WaitSet> {
        &self.source
    }

    fn share_queue(state: &mut State) {
        state.queue_shared = true;
    }

    fn publish(&self, state: &Locked<'_, State>) {
        attention::publish(&self.values, self.due(state), self.is_watched(state));
    }

    fn join(&self, state: &Locked<'_, State>) {
        // See the proof at the top.
        attention::join(&self.values, self.due(state), self.is_watched(state));
    }
}

impl CounterOps for Counter {
    fn read(&self) -> u64 {
        self.success()
    }

    fn readerr(&self) -> u64 {
        self.read_error()
    }

    fn tally(&self) -> &Tally {
        &self.values.success
    }

    fn reached(&self, value: u64, sum: u64, events: u64) {
        // Whatever has changed the value since: see `qemu-test/litmus/KFI-poll-mark.litmus`.
        self.mark(events);
        self.attend_late(value, sum, ChangedBy::Application, &mut IrqGuard::none());
    }

    fn add_locked(&self, value: u64) {
        self.add_locked_from(value, ChangedBy::Application, &mut IrqGuard::none());
    }

    fn set(&self, value: u64) -> Result {
        self.set_from(value, ChangedBy::Application, &mut IrqGuard::none());
        Ok(())
    }

    fn adderr(&self, value: u64) -> Result {
        self.change_error(ChangedBy::Application, |old| old.wrapping_add(value));
        Ok(())
    }

    fn seterr(&self, value: u64) -> Result {
        self.change_error(ChangedBy::Application, |_| value);
        Ok(())
    }

    fn begin_wait(&self, threshold: u64) -> Result<Option<u64>> {
        self.begin(threshold)
    }

    fn wait(this: &Fid<Self>, threshold: u64, since: u64, timeout: Timeout) -> Result {
        this.sleep(threshold, since, timeout)
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
