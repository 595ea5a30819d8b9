// SPDX-License-Identifier: GPL-2.0

//! Completion of operations.
//!
//! Every operation, whatever it was, is completed by one function: first the entry in the
//! completion queue, then the counters, whose triggers run last. No lock is held meanwhile.

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    }, //
};

use crate::{
    counter::Counter,
    kfi::{
        context::Context,
        flags::{
            CompletionFlags,
            OpFlags, //
        },
        hold::Hold,
        linux::queue::Vacant,
        provider::{
            Completion,
            CompletionError,
            Counted,
            Ended,
            Failure,
            Outcome,
            ADDR_NOTAVAIL, //
        }, //
    },
    queue::completion_queue::{
        CompletionQueue,
        EntryPlace, //
    },
    transfer::multi_buffer::MultiUse, //
};

/// The events that counters count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedEvent {
    /// A message was sent.
    Send,
    /// A message was received.
    Receive,
    /// A peer's memory was read, or elements of it were fetched.
    Read,
    /// A peer's memory was written, or elements of it were changed.
    Write,
    /// A peer has read.
    RemoteRead,
    /// A peer has written.
    RemoteWrite,
}

impl CountedEvent {
    /// The number of events.
    pub(crate) const COUNT: usize = 6;
}

/// The completion queue of one direction of an endpoint.
pub(crate) struct BoundQueue {
    /// The queue.
    pub(crate) queue: Hold<CompletionQueue>,
    /// A success is reported only if the operation asks for it.
    pub(crate) selective: bool,
}

/// The counters of an endpoint, by event.
pub(crate) type BoundCounters = [Option<Arc<Hold<Counter>>>; CountedEvent::COUNT];

/// Completes the operations of one direction of an endpoint: by its completion queue and counters.
pub(crate) struct Completer {
    queue: Option<Arc<BoundQueue>>,
    counters: BoundCounters,
}

/// How the end of an operation is reported.
pub(crate) struct Manner {
    /// Whether a success is reported by an entry.
    pub(crate) entry: bool,
    /// Whether the counters of the endpoint count it.
    pub(crate) counted: bool,
    /// The completion counter of deferred work.
    pub(crate) notify: Option<Hold<Counter>>,
    /// Memory for the entry, unless it is known to have a place.
    pub(crate) memory: Option<Vacant>,
}

/// The use of memory that ends with a completion.
pub(crate) enum MemoryUse {
    /// The operation is done with its memory.
    Ended(Ended),
    /// One use of a buffer for several messages, which ends when it is reported.
    Part(MultiUse),
}

/// Everything that is needed to complete an operation.
pub(crate) struct CompletionSpec {
    /// The use that ends.
    pub(crate) of: MemoryUse,
    /// How that is reported.
    pub(crate) manner: Manner,
}

impl Completer {
    /// Reports by a queue and counters.
    pub(crate) fn new(queue: Option<Arc<BoundQueue>>, counters: BoundCounters) -> Self {
        Self { queue, counters }
    }

    /// Reports nothing to anyone.
    pub(crate) fn none() -> Self {
        Self::new(None, BoundCounters::default())
    }

    /// Returns whether an operation with these flags gives an entry when it has succeeded.
    pub(crate) fn wants_entry(&self, flags: OpFlags) -> bool {
        self.queue
            .as_ref()
            .is_some_and(|bound| !bound.selective || flags.contains(OpFlags::COMPLETION))
    }

    /// `EAGAIN` while nothing more is to be posted, as the queue is crowded.
    pub(crate) fn check_room(&self) -> Result {
        if self.is_crowded() {
            return Err(EAGAIN);
        }
        Ok(())
    }

    /// Returns whether the queue is so full that nothing more is to come.
    pub(crate) fn is_crowded(&self) -> bool {
        self.queue
            .as_ref()
            .is_some_and(|bound| bound.queue.is_crowded())
    }

    /// As [`Self::is_crowded`]; if so, the listeners of the queue are notified when it no longer
    /// is. The caller has left what is to go on then where it will be found.
    pub(crate) fn wait_for_room(&self) -> bool {
        self.queue.as_ref().is_some_and(|bound| {
            bound.queue.listeners().starve();
            bound.queue.is_crowded()
        })
    }

    /// Returns room for an entry in the ring; `None` if there is none.
    pub(crate) fn slot(&self) -> Option<EntryPlace<'_>> {
        match &self.queue {
            Some(bound) => bound.queue.slot().map(EntryPlace::Slot),
            None => Some(EntryPlace::Nowhere),
        }
    }

    /// Returns memory for an entry, if there is a queue; `EAGAIN` if there is none.
    pub(crate) fn memory(&self, flags: Flags) -> Result<Option<Vacant>> {
        match &self.queue {
            Some(bound) => Ok(Some(bound.queue.memory(flags).map_err(|_| EAGAIN)?)),
            None => Ok(None),
        }
    }

    /// Returns memory for a receive, in which its entry comes to lie; `EAGAIN` if there is none.
    pub(crate) fn receive_memory(&self, flags: Flags) -> Result<Vacant> {
        let memory = match &self.queue {
            Some(bound) => bound.queue.memory(flags),
            None => Vacant::new(flags),
        };
        memory.map_err(|_| EAGAIN)
    }

    /// Returns the counter of an event.
    fn counter(&self, event: CountedEvent) -> Option<&Hold<Counter>> {
        self.counters.get(event as usize)?.as_deref()
    }

    /// Returns whether there are counters, which may have triggers.
    pub(crate) fn counts(&self) -> bool {
        self.counters.iter().any(Option::is_some)
    }

    /// Adds the entry that `entry` returns, if any; returns whether it is one.
    fn report(
        &self,
        place: EntryPlace<'_>,
        entry: impl FnOnce() -> Option<CompletionError>,
    ) -> bool {
        match &self.queue {
            Some(bound) => CompletionQueue::report(bound.queue.fid(), place, entry),
            None => entry().is_some(),
        }
    }

    /// As [`Self::report`], for one use of a buffer for several messages, whose release may be in another queue.
    fn report_part(
        &self,
        place: EntryPlace<'_>,
        entry: impl FnOnce() -> Option<CompletionError>,
    ) -> bool {
        match &self.queue {
            Some(bound) => CompletionQueue::report_announced(bound.queue.fid(), place, entry),
            None => entry().is_some(),
        }
    }

    /// Completes an operation, with or without a failure. The entry lies in the memory of `spec`,
    /// else in `place`.
    pub(crate) fn end(
        &self,
        event: CountedEvent,
        spec: CompletionSpec,
        place: EntryPlace<'_>,
        outcome: &Outcome,
        failure: Option<Failure>,
    ) {
        let CompletionSpec { of, mut manner } = spec;
        let wanted = failure.is_some() || manner.entry;
        let place = manner.memory.take().map_or(place, EntryPlace::Own);
        let counts = match of {
            MemoryUse::Ended(ended) => {
                let counts = Counts::of(&ended);
                if wanted {
                    self.report(place, || Some(entry(ended, outcome, failure)));
                } else {
                    drop(place);
                }
                Some(counts)
            }
            MemoryUse::Part(part) => {
                let told = wanted.then_some((outcome, failure));
                self.end_part(part, &mut manner.notify, place, told)
            }
        };
        if let Some(counts) = counts {
            self.count(event, &manner, counts, failure.is_some());
        }
    }

    /// Reports the end of one use of a buffer for several messages: what is `told` of it, and, by the
    /// last one, the release.
    #[inline(never)]
    fn end_part(
        &self,
        part: MultiUse,
        notify: &mut Option<Hold<Counter>>,
        place: EntryPlace<'_>,
        told: Option<(&Outcome, Option<Failure>)>,
    ) -> Option<Counts> {
        // The remains of a use are dropped without the lock of the queue.
        let mut left = None;
        let mut counts = None;
        self.report_part(place, || {
            let (ended, last) = part.leave();
            counts = Some(Counts::of(&ended));
            let last = left.insert(last);
            if !ended.is_last() {
                return told.map(|(outcome, failure)| entry(ended, outcome, failure));
            }
            *notify = last.notify.take();
            // Maybe the release alone.
            let (outcome, failure) = told.unwrap_or((&NOTHING, None));
            let outcome = Outcome {
                flags: outcome.flags | CompletionFlags::MULTI_RECV.as_raw(),
                ..*outcome
            };
            Some(entry(ended, &outcome, failure))
        });
        counts
    }

    /// Completes a receive without a message, unless messages are landing in its buffer, the last
    /// of which ends it. Returns whether it has ended.
    pub(crate) fn end_unused(
        &self,
        spec: CompletionSpec,
        outcome: &Outcome,
        failure: Failure,
    ) -> bool {
        let CompletionSpec { of, mut manner } = spec;
        let place = manner
            .memory
            .take()
            .map_or(EntryPlace::Nowhere, EntryPlace::Own);
        let counts = match of {
            MemoryUse::Part(part) => {
                let notify = &mut manner.notify;
                // As above.
                let mut left = None;
                let mut counts = None;
                self.report_part(place, || {
                    let (ended, last) = part.leave();
                    let last = left.insert(last);
                    if !ended.is_last() {
                        return None;
                    }
                    *notify = last.notify.take();
                    counts = Some(Counts::of(&ended));
                    Some(entry(ended, outcome, Some(failure)))
                });
                counts
            }
            MemoryUse::Ended(ended) => {
                let counts = Counts::of(&ended);
                self.report(place, || Some(entry(ended, outcome, Some(failure))));
                Some(counts)
            }
        };
        let Some(counts) = counts else {
            return false;
        };
        self.count(CountedEvent::Receive, &manner, counts, true);
        true
    }

    /// Returns whether there is a queue.
    pub(crate) fn has_queue(&self) -> bool {
        self.queue.is_some()
    }

    /// Counts the end of an operation.
    #[inline]
    fn count(&self, event: CountedEvent, manner: &Manner, counts: Counts, failed: bool) {
        // As a rule of messages.
        if manner.notify.is_none() && self.counter(event).is_none() {
            return;
        }
        self.count_now(event, manner, counts, failed);
    }

    /// As [`Self::count`], if there is a counter.
    #[inline(never)]
    fn count_now(&self, event: CountedEvent, manner: &Manner, counts: Counts, failed: bool) {
        let counter = self.counter(event).filter(|_| manner.counted);
        if let Some(counter) = counter {
            // The completion counter of deferred work counts once (R-DWQ-11).
            let same = manner
                .notify
                .as_ref()
                .is_some_and(|notify| Arc::ptr_eq(notify.fid(), counter.fid()));
            if !same {
                count(counter, counts.bound, failed);
            }
        }
        if let Some(notify) = &manner.notify {
            // A thread that sees the new value may close the counter at once, so the hold has to go
            // before that; a close that succeeds waits for the end of this section.
            let _section = rcu::read_lock();
            notify.release();
            count(notify, counts.notified, failed);
        }
    }

    /// Reports what a peer did and for which nothing was posted: by the counter, and by an entry if
    /// one is wanted.
    pub(crate) fn remote(
        &self,
        event: CountedEvent,
        completion: Option<Completion>,
        place: EntryPlace<'_>,
    ) {
        if let Some(completion) = completion {
            self.report(place, || Some(completion.into()));
        }
        if let Some(counter) = self.counter(event) {
            count(counter, Counted::remote(), false);
        }
    }

    /// Gives up the queue and the counters.
    pub(crate) fn release(&self) {
        if let Some(bound) = &self.queue {
            bound.queue.release();
        }
        for counter in self.counters.iter().flatten() {
            counter.release();
        }
    }
}

/// An outcome that reports nothing.
const NOTHING: Outcome = Outcome {
    flags: 0,
    len: 0,
    buf: Context::NONE,
    data: 0,
    tag: 0,
    src_addr: ADDR_NOTAVAIL,
};

/// The right to count the end of an operation, by the counter that is bound for it and by the
/// completion counter of deferred work.
struct Counts {
    bound: Counted,
    notified: Counted,
}

impl Counts {
    fn of(ended: &Ended) -> Self {
        Self {
            bound: ended.counted(),
            notified: ended.counted(),
        }
    }
}

/// Returns the entry that reports the end of an operation.
fn entry(ended: Ended, outcome: &Outcome, failure: Option<Failure>) -> CompletionError {
    match failure {
        Some(failure) => ended.fail(outcome, failure),
        None => ended.complete(outcome).into(),
    }
}

/// Counts one operation.
fn count(counter: &Counter, counted: Counted, failed: bool) {
    if failed {
        counter.fail(counted);
    } else {
        counter.complete(counted);
    }
}
