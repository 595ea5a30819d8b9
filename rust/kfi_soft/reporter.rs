// SPDX-License-Identifier: GPL-2.0

//! How the end of an operation is told.
//!
//! Whatever an operation was, its end is told by one function: first the entry in the completion
//! queue, then the counters, whose triggers run last. None of that is done with a lock held.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc, //
    }, //
};

use crate::{
    completion_queue::CompletionQueue,
    counter::Counter,
    kfi::{
        fid::{
            Context,
            Fid, //
        },
        flags::OpFlags,
        hold::Hold,
        provider::{
            Completion,
            CompletionError,
            CompletionQueueOps, //
        }, //
    },
    slots, //
};

/// Room for the completion of an operation.
pub(crate) type Reservation = slots::Reservation<CompletionQueue>;

/// What counters count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
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

impl Event {
    /// The number of events.
    pub(crate) const COUNT: usize = 6;
}

/// The completion queue of one direction of an endpoint.
pub(crate) struct BoundQueue {
    /// The queue.
    pub(crate) queue: Hold<CompletionQueue>,
    /// Successes are told only if the operation asks for it.
    pub(crate) selective: bool,
}

/// The counters of an endpoint, by event.
pub(crate) type Counters = [Option<Arc<Hold<Counter>>>; Event::COUNT];

/// How the ends of the operations of one direction of an endpoint are told.
pub(crate) struct Reporter {
    queue: Option<Arc<BoundQueue>>,
    counters: Counters,
}

/// What the end of an operation has to do.
pub(crate) struct Ending {
    /// What the completion tells.
    pub(crate) context: Context,
    /// Whether success is told by an entry.
    pub(crate) entry: bool,
    /// Whether the counters of the endpoint count it.
    pub(crate) counted: bool,
    /// The completion counter of deferred work.
    pub(crate) notify: Option<Hold<Counter>>,
    /// Room for the entry.
    pub(crate) reservation: Option<Reservation>,
}

/// How much of an operation was done.
pub(crate) struct Failure {
    /// A positive errno.
    pub(crate) err: c_int,
    /// Bytes that did not fit.
    pub(crate) olen: usize,
}

impl Reporter {
    /// Tells by a queue and counters.
    pub(crate) fn new(queue: Option<Arc<BoundQueue>>, counters: Counters) -> Self {
        Self { queue, counters }
    }

    /// Returns whether an operation with these flags gives an entry when it has succeeded.
    pub(crate) fn wants_entry(&self, flags: OpFlags) -> bool {
        self.queue
            .as_ref()
            .is_some_and(|bound| !bound.selective || flags.contains(OpFlags::COMPLETION))
    }

    /// Reserves room for an entry; `EAGAIN` if there is none. None is needed without a queue.
    pub(crate) fn reserve(&self) -> Result<Option<Reservation>> {
        match &self.queue {
            Some(bound) => Ok(Some(
                CompletionQueue::reserve(bound.queue.fid()).ok_or(EAGAIN)?,
            )),
            None => Ok(None),
        }
    }

    /// As [`Self::reserve`], but if there is none, those who listen to the queue are told when there
    /// is.
    pub(crate) fn reserve_or_starve(&self) -> Result<Option<Reservation>> {
        match &self.queue {
            Some(bound) => Ok(Some(
                CompletionQueue::reserve_or_starve(bound.queue.fid()).ok_or(EAGAIN)?,
            )),
            None => Ok(None),
        }
    }

    /// Returns the completion queue.
    pub(crate) fn queue(&self) -> Option<&Arc<Fid<CompletionQueue>>> {
        self.queue.as_ref().map(|bound| bound.queue.fid())
    }

    /// Returns the counter of an event.
    fn counter(&self, event: Event) -> Option<&Hold<Counter>> {
        self.counters.get(event as usize)?.as_deref()
    }

    /// Returns whether there are counters, which may have triggers.
    pub(crate) fn counts(&self) -> bool {
        self.counters.iter().any(Option::is_some)
    }

    /// Writes an entry.
    fn write(&self, reservation: Option<Reservation>, entry: &CompletionError) {
        let Some(bound) = &self.queue else {
            return;
        };
        match reservation {
            Some(reservation) => reservation.complete(entry),
            // The queue tells of entries for which there was no room.
            None => {
                CompletionQueue::write_unreserved(bound.queue.fid(), entry);
            }
        }
    }

    /// Tells that an operation has ended, without or with a failure.
    pub(crate) fn end(
        &self,
        event: Event,
        ending: Ending,
        mut completion: Completion,
        failure: Option<Failure>,
    ) {
        completion.op_context = ending.context;
        let failed = failure.is_some();
        if let Some(Failure { err, olen }) = failure {
            self.write(
                ending.reservation,
                &CompletionError {
                    completion,
                    olen,
                    err,
                    prov_errno: 0,
                },
            );
        } else if ending.entry {
            self.write(
                ending.reservation,
                &CompletionError {
                    completion,
                    olen: 0,
                    err: 0,
                    prov_errno: 0,
                },
            );
        } else {
            drop(ending.reservation);
        }

        let counter = self.counter(event).filter(|_| ending.counted);
        if let Some(counter) = counter {
            // The completion counter of deferred work counts once (R-DWQ-11).
            let same = ending
                .notify
                .as_ref()
                .is_some_and(|notify| Arc::ptr_eq(notify.fid(), counter.fid()));
            if !same {
                count(counter, failed);
            }
        }
        if let Some(notify) = &ending.notify {
            // Who sees the new value may close the counter at once, so the hold has to go before
            // that; a close that succeeds waits for the end of this section.
            let _section = rcu::read_lock();
            notify.release();
            count(notify, failed);
        }
    }

    /// Tells of something that a peer did, for which nothing was posted: by the counter, and by an
    /// entry if it is wanted.
    pub(crate) fn remote(&self, event: Event, completion: Option<Completion>) {
        if let Some(completion) = completion {
            self.write(
                None,
                &CompletionError {
                    completion,
                    olen: 0,
                    err: 0,
                    prov_errno: 0,
                },
            );
        }
        if let Some(counter) = self.counter(event) {
            count(counter, false);
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

/// Counts one operation.
fn count(counter: &Counter, failed: bool) {
    if failed {
        counter.fail();
    } else {
        counter.complete();
    }
}
