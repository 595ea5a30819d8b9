// SPDX-License-Identifier: GPL-2.0

//! The work queue on which the endpoints of a domain copy what is too large for the poster, and watch
//! deadlines.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    kfi::linux::work_queue::{
        WorkItem,
        WorkQueue,
        WorkQueueFlags, //
    }, //
};

/// So many threads at once copy what is too large for the poster. All domains together share the CPUs
/// with everybody else, and what one domain has to copy waits for its own turn.
const WORKERS: u8 = 8;

/// The work queue of the endpoints of a domain.
///
/// # Invariants
///
/// `lists` is at least the number of lists of requests that are in the queue or run.
#[pin_data]
pub(crate) struct LateWork {
    #[pin]
    queue: WorkQueue,
    lists: Atomic<usize>,
}

impl LateWork {
    /// Nothing is in there; may sleep.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        let flags = WorkQueueFlags::UNBOUND.union(WorkQueueFlags::MEM_RECLAIM);
        try_pin_init!(Self {
            queue <- WorkQueue::with_places(c"kfi_soft_late", flags, WORKERS),
            lists: Atomic::new(0),
        })
    }

    /// Returns the queue, for all but lists of requests.
    pub(crate) fn queue(&self) -> &WorkQueue {
        &self.queue
    }

    /// Queues a list of requests, if it is not. It is to be [removed](Self::remove) when it has run, or
    /// been cancelled.
    pub(crate) fn add<T: WorkItem>(&self, list: Arc<T>) {
        // INVARIANT: Counted before it can be in there.
        // Relaxed, as all of these: whether others wait is a guess, and each change is one of its own.
        self.lists.fetch_add(1, ordering::Relaxed);
        if !self.queue.queue::<_, 0>(list) {
            self.remove();
        }
    }

    /// Counts a list no more that was added.
    pub(crate) fn remove(&self) {
        // INVARIANT: It is not in there any more.
        self.lists.fetch_sub(1, ordering::Relaxed);
    }

    /// Returns whether a list that runs may go on, as none waits for its place, and another place is
    /// left for items that are not lists.
    pub(crate) fn has_place(&self) -> bool {
        self.lists.load(ordering::Relaxed) < usize::from(WORKERS)
    }
}
