// SPDX-License-Identifier: GPL-2.0

//! The work queues of the module.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kfi::{
        consumer::Quota,
        linux::{
            users::Users,
            work_queue::{
                WorkItem,
                WorkQueue,
                WorkQueueFlags, //
            }, //
        }, //
    },
    QUEUES, //
};

/// How long the module waits at a time for sessions that end, or endpoints that are closed, in milliseconds: less
/// than makes the kernel report a task that hangs.
const WAIT_SLICE_MS: u32 = 10_000;

/// So many endpoints of all users are closed by the work queue at once. It has places for twice as many, which the
/// kernel shares out among the nodes of the machine: with one node, or two equal ones, none of them waits for another
/// one.
const CLOSES_AT_ONCE: usize = 512;

/// Where sessions end, or endpoints are closed.
pub(crate) struct Ends {
    queue: Arc<WorkQueue>,
    /// Those that are queued, and those that are ending.
    under_way: Users,
}

impl Ends {
    /// Creates a queue of this name.
    fn new(name: &CStr) -> Result<Arc<Self>> {
        let under_way = Users::new();
        under_way.open();
        let queue = new_queue(name)?;
        Ok(Arc::new(Self { queue, under_way }, GFP_KERNEL)?)
    }

    /// Queues the end of a session, or the close of an endpoint, which calls [`Self::leave`] when it has run; `false`
    /// if the module goes, or it is queued already.
    pub(crate) fn queue<T: WorkItem>(&self, end: Arc<T>) -> bool {
        if !self.under_way.enter() {
            return false;
        }
        let is_queued = self.queue.queue::<_, 0>(end);
        if !is_queued {
            self.under_way.leave();
        }
        is_queued
    }

    /// What was queued has run.
    pub(crate) fn leave(&self) {
        self.under_way.leave();
    }

    /// Waits until all that was queued has run, and destroys the queue.
    fn destroy(&self) {
        // A session with very much takes minutes to end on a slow machine, as it should; but nothing hangs.
        while !self.under_way.close_within(WAIT_SLICE_MS) {}
        self.queue.destroy();
    }
}

/// Creates a work queue.
fn new_queue(name: &CStr) -> Result<Arc<WorkQueue>> {
    // The memory of sessions that were killed for want of it is freed there.
    let flags = WorkQueueFlags::UNBOUND.union(WorkQueueFlags::MEM_RECLAIM);
    Arc::pin_init(WorkQueue::new(name, flags), GFP_KERNEL)
}

/// The work queues.
#[derive(Clone)]
pub(crate) struct Queues {
    /// Where endpoints are closed. Sessions end elsewhere, so that these do not wait for what the peers of those
    /// keep.
    pub(crate) closes: Arc<Ends>,
    /// How many are closed there.
    pub(crate) closes_at_once: Arc<Quota>,
    /// Where sessions end.
    pub(crate) ends: Arc<Ends>,
    /// Where those are woken that wait for a descriptor, unless they are a few threads.
    pub(crate) wakes: Arc<WorkQueue>,
}

/// Keeps the queues. When it has been dropped they are gone, and none of their work runs any more.
pub(crate) struct QueuesUse(Queues);

impl QueuesUse {
    /// Creates the queues.
    pub(crate) fn new() -> Result<Self> {
        let queues = Queues {
            closes: Ends::new(c"kfi_shim_closes")?,
            closes_at_once: Quota::new(CLOSES_AT_ONCE, None)?,
            ends: Ends::new(c"kfi_shim_ends")?,
            wakes: new_queue(c"kfi_shim_wakes")?,
        };
        *QUEUES.lock() = Some(queues.clone());
        Ok(Self(queues))
    }
}

impl Drop for QueuesUse {
    fn drop(&mut self) {
        let queues = QUEUES.lock().take();
        // Sessions that end have endpoints closed by the next queue, where one that is closed ends its session itself
        // from here on. The one for wake-ups goes last, as sessions that end may leave some to it.
        self.0.ends.destroy();
        self.0.closes.destroy();
        self.0.wakes.destroy();
        drop(queues);
    }
}

/// Returns the queues.
pub(crate) fn current() -> Result<Queues> {
    QUEUES.lock().clone().ok_or(ENODEV)
}
