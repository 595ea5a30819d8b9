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

use crate::kfi::linux::work_queue::{
    WorkItem,
    WorkQueue,
    WorkQueueFlags, //
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

#[kunit_tests(kfi_soft_late_work)]
mod tests {
    use super::*;
    use crate::kfi::linux::work_queue::{
        new_work,
        Work, //
    };
    use kernel::sync::Completion;

    /// A list that runs until it is told to end.
    #[pin_data]
    struct Busy {
        late_work: Arc<LateWork>,
        #[pin]
        started: Completion,
        #[pin]
        proceed: Completion,
        #[pin]
        work: Work<Busy>,
    }

    impl Busy {
        fn new(late_work: &Arc<LateWork>) -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    late_work: late_work.clone(),
                    started <- Completion::new(),
                    proceed <- Completion::new(),
                    work <- new_work!("late work test"),
                }),
                GFP_KERNEL,
            )
        }
    }

    impl WorkItem for Busy {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            this.started.complete_all();
            this.proceed.wait_for_completion();
            this.late_work.remove();
        }
    }

    /// As many lists run as have places but one, and may go on; with another one, none may.
    #[test]
    fn lists_take_turns_when_places_are_short() -> Result {
        let late_work = Arc::pin_init(LateWork::new(), GFP_KERNEL)?;
        let mut lists = KVec::new();
        for count in 1..=WORKERS {
            let list = Busy::new(&late_work)?;
            late_work.add(list.clone());
            list.started.wait_for_completion();
            lists.push(list, GFP_KERNEL)?;
            assert_eq!(late_work.has_place(), count < WORKERS);
        }
        // One that is queued already, and cancelled, is not counted for that.
        let waiting = Busy::new(&late_work)?;
        late_work.add(waiting.clone());
        late_work.add(waiting.clone());
        assert_eq!(
            late_work.lists.load(ordering::Relaxed),
            usize::from(WORKERS).wrapping_add(1)
        );
        assert!(waiting.work.cancel_sync());
        late_work.remove();
        for list in &lists {
            list.proceed.complete_all();
        }
        late_work.queue().destroy();
        assert_eq!(late_work.lists.load(ordering::Relaxed), 0);
        // Nothing is added any more, nor counted.
        late_work.add(waiting);
        assert_eq!(late_work.lists.load(ordering::Relaxed), 0);
        Ok(())
    }
}
