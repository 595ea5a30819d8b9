// SPDX-License-Identifier: GPL-2.0

//! Requests that the work queue carries out, one after the other.
//!
//! A receive context has such a list for what was matched with its receives, and one for what is done
//! to memory regions and is to be told, which takes room in its completion queue, or comes from other
//! nodes. A request that is not told takes nothing of the receive context, so that it is in a list of
//! its initiator: many of these keep nobody else waiting, and nothing there refers to a receive context.
//! The lists of a domain take turns.

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
    domain::Domain,
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
            WorkItem,
            WorkQueue, //
        }, //
    },
    late_work::LateWork,
    transfer::{
        accepted::Accepted,
        origin::Origin,
        receiver::Receiver, //
    },
    wire::Initiator, //
};

/// So many requests are carried out before it is the turn of other lists.
const TURN: usize = 64;

/// So many bytes, which the last request may exceed.
const TURN_BYTES: usize = 1 << 20;

/// A turn with more bytes is the last one in a row.
const MOST_BYTES: usize = 2 * TURN_BYTES;

/// So many turns follow each other if no other list waits for one, and none of them was for a large
/// request: to be queued again would cost as much as copying some 100 KiB, and may move it to another
/// CPU. Not more, as what else the endpoints of a domain leave to the work queue may wait for the place.
const TURNS: usize = 16;

/// A list of requests that the work queue carries out.
#[pin_data]
pub(crate) struct LateDeliveries {
    late_work: Arc<LateWork>,
    #[pin]
    requests: SpinLockIrq<EntryQueue<Accepted>>,
    #[pin]
    work: Work<LateDeliveries>,
}

impl LateDeliveries {
    /// None, yet, for an endpoint of a domain.
    pub(crate) fn new(domain: &Domain) -> Result<Arc<Self>> {
        let late_work = domain.late_work()?;
        Arc::pin_init(
            pin_init!(Self {
                late_work,
                requests <- new_spinlock_irq!(
                    EntryQueue::new(),
                    "kfi_soft::LateDeliveries::requests"
                ),
                work <- new_work!("kfi_soft::LateDeliveries::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the work queue.
    pub(crate) fn work_queue(&self) -> &WorkQueue {
        self.late_work.queue()
    }

    /// Adds a request. Drops it if its initiator has given it up meanwhile, and not found it.
    pub(crate) fn add(self: &Arc<Self>, accepted: Entry<Accepted>) {
        {
            let mut requests = self.requests.lock();
            if accepted.is_given_up() {
                drop(requests);
                return;
            }
            requests.push_named(accepted);
        }
        self.late_work.add(self.clone());
    }

    /// Takes a request out, if it is here.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Entry<Accepted>> {
        let number = origin.number();
        self.requests
            .lock()
            .take_named(&number, |accepted| accepted.name() == number)
    }

    /// Takes the first request out.
    pub(crate) fn take_first(&self) -> Option<Entry<Accepted>> {
        self.requests.lock().pop_front()
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.lock().is_empty()
    }

    /// Carries out as many as one turn has; returns whether there may be another one at once.
    fn take_turn(&self) -> bool {
        let mut bytes: usize = 0;
        // Mostly they are for the same one.
        let mut receiver = None;
        for _ in 0..TURN {
            let Some(accepted) = self.take_first() else {
                return false;
            };
            bytes = bytes.saturating_add(accepted.origin.request().len);
            let budget = &mut Budget::thread();
            Receiver::carry_out(accepted, &mut receiver, cond_resched, budget);
            if bytes >= TURN_BYTES {
                // A large one is a turn of its own.
                return bytes <= MOST_BYTES;
            }
            cond_resched();
        }
        true
    }

    /// Refuses the requests that are left. Any that may still be added have been ended by their
    /// initiators. May sleep.
    pub(crate) fn close(&self) {
        if self.work.cancel_sync() {
            self.late_work.remove();
        }
        loop {
            // Its sender waits for the thread that has taken it out.
            let preemption = NoPreemption::begin();
            let Some(accepted) = self.take_first() else {
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
        let late_work = this.late_work.clone();
        for turn in 0..TURNS {
            if turn != 0 && !late_work.has_place() {
                break;
            }
            if !this.take_turn() {
                break;
            }
        }
        if !this.is_empty() {
            // Behind other lists.
            late_work.add(this);
        }
        late_work.remove();
    }
}
