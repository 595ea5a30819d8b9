// SPDX-License-Identifier: GPL-2.0

//! Requests that the work queue carries out, one after the other.
//!
//! A receive context has such a list for what was matched with its receives. What is done to memory
//! regions is not ordered with that, nor does it take anything of the receive context, so that it is in
//! a list of its initiator: much of it keeps nobody else waiting.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    budget::Budget,
    kfi::linux::{
        interrupts::NoPreemption,
        queue::{
            Entry,
            EntryQueue,
            Named, //
        },
        task::cond_resched,
        work_queue::{
            new_work,
            Work,
            WorkItem, //
        }, //
    },
    node::Node,
    transfer::{
        accepted::Accepted,
        origin::Origin,
        receiver::Receiver, //
    },
    wire::Initiator, //
};

/// A list of requests that the work queue carries out.
#[pin_data]
pub(crate) struct LateDeliveries {
    node: Arc<Node>,
    #[pin]
    requests: SpinLockIrq<EntryQueue<Accepted>>,
    #[pin]
    work: Work<LateDeliveries>,
}

impl LateDeliveries {
    /// None.
    pub(crate) fn new(node: Arc<Node>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                node,
                requests <- new_spinlock_irq!(
                    EntryQueue::new(),
                    "kfi_soft::LateDeliveries::requests"
                ),
                work <- new_work!("kfi_soft::LateDeliveries::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a request.
    pub(crate) fn add(self: &Arc<Self>, accepted: Entry<Accepted>) {
        self.requests.lock().push_named(accepted);
        self.node.work_queue.queue(self.clone());
    }

    /// Gives up a request that its initiator has ended, if it is here.
    pub(crate) fn withdraw(&self, origin: &Origin) {
        let number = origin.number();
        let withdrawn = self
            .requests
            .lock()
            .take_named(&number, |accepted| accepted.name() == number);
        // Without the lock.
        drop(withdrawn);
    }

    /// Refuses what is left. What may still be added has been ended by its initiator. May sleep.
    pub(crate) fn close(&self) {
        self.work.cancel_sync();
        loop {
            // Its sender waits for the thread that has taken it out.
            let preemption = NoPreemption::begin();
            let accepted = self.requests.lock().pop_front();
            let Some(accepted) = accepted else {
                return;
            };
            let budget = &mut Budget::thread();
            accepted.origin.refuse(EHOSTUNREACH, budget);
            drop(accepted);
            drop(preemption);
            cond_resched();
        }
    }
}

impl WorkItem for LateDeliveries {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        loop {
            let accepted = this.requests.lock().pop_front();
            let Some(accepted) = accepted else {
                return;
            };
            Receiver::carry_out(accepted, cond_resched, &mut Budget::thread());
            cond_resched();
        }
    }
}
