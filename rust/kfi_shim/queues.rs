// SPDX-License-Identifier: GPL-2.0

//! The work queues of the module.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kfi::linux::work_queue::{
        WorkQueue,
        WorkQueueFlags, //
    },
    QUEUES, //
};

/// The work queues.
#[derive(Clone)]
pub(crate) struct Queues {
    /// Where sessions end.
    pub(crate) ends: Arc<WorkQueue>,
    /// Where those are woken that wait for a descriptor, if there are many.
    pub(crate) wakes: Arc<WorkQueue>,
}

/// Says that the queues are there; dropped, they are gone, and nothing of them runs any more.
pub(crate) struct QueuesUse(Queues);

impl QueuesUse {
    /// Creates the queues.
    pub(crate) fn new() -> Result<Self> {
        // The memory of sessions that were killed for want of it is freed there.
        let flags = WorkQueueFlags::UNBOUND.union(WorkQueueFlags::MEM_RECLAIM);
        let queue = |name| Arc::pin_init(WorkQueue::new(name, flags), GFP_KERNEL);
        let queues = Queues {
            ends: queue(c"kfi_shim_ends")?,
            wakes: queue(c"kfi_shim_wakes")?,
        };
        *QUEUES.lock() = Some(queues.clone());
        Ok(Self(queues))
    }
}

impl Drop for QueuesUse {
    fn drop(&mut self) {
        let queues = QUEUES.lock().take();
        // What sessions leave to be woken comes last.
        self.0.ends.destroy();
        self.0.wakes.destroy();
        drop(queues);
    }
}

/// Returns the queues.
pub(crate) fn current() -> Result<Queues> {
    QUEUES.lock().clone().ok_or(ENODEV)
}
