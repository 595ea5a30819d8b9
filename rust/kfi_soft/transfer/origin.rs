// SPDX-License-Identifier: GPL-2.0

//! The party that has asked for what a request wants, as its target knows it.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    budget::Budget,
    domain::Domain,
    kfi::{
        fid::Fid,
        linux::queue::Vacant,
        memory::RemoteMemory, //
    },
    transfer::{
        late_deliveries::LateDeliveries,
        outstanding::{
            Inside,
            Transfer, //
        },
        transmitter::LateSend, //
    },
    wire::{
        self,
        Initiator,
        Payload,
        Request,
        Response, //
    }, //
};

/// The initiator of a request, to be claimed, lent from and answered: all that a target, or a queue
/// of it, knows of the other side.
#[derive(Clone)]
pub(crate) struct Origin(Arc<Transfer>);

/// The memory of an initiator, until it is answered.
pub(crate) struct LentMemory {
    transfer: Arc<Transfer>,
    inside: Inside,
}

impl Origin {
    /// That of an operation of this node.
    pub(crate) fn new(transfer: Arc<Transfer>) -> Self {
        Self(transfer)
    }

    /// Returns whether it belongs to a domain.
    pub(crate) fn is_of(&self, domain: &Arc<Fid<Domain>>) -> bool {
        Arc::ptr_eq(self.0.transmitter().domain(), domain)
    }

    /// Claims the right, and the duty, to answer. Nobody else ends the operation then.
    pub(crate) fn claim(&self) -> bool {
        self.0.claim()
    }

    /// Borrows the memory, once, for the thread that has claimed.
    pub(crate) fn lend(&self) -> Option<LentMemory> {
        let inside = self.0.take()?;
        Some(LentMemory {
            transfer: self.0.clone(),
            inside,
        })
    }

    /// Answers, for the thread that has claimed.
    pub(crate) fn respond(&self, response: Response, budget: &mut Budget) {
        Transfer::respond(&self.0, response, budget);
    }

    /// As [`Initiator::refuse`], by a work queue.
    pub(crate) fn refuse_later(self, error: Error, memory: Vacant) {
        let transmitter = self.0.transmitter().clone();
        transmitter.refuse_later(self.0, error, memory);
    }

    /// Returns the requests of the same transmit context that the work queue carries out, and that are
    /// done to memory regions.
    pub(crate) fn late_accesses(&self) -> &Arc<LateDeliveries> {
        self.0.transmitter().late_accesses()
    }

    /// Returns whether messages of the same transmit context that have come before are yet to be
    /// received by a work queue.
    pub(crate) fn has_late_sends(&self) -> bool {
        self.0.transmitter().has_late_sends()
    }

    /// Counts a message that a work queue is going to receive.
    pub(crate) fn late_send(&self) -> LateSend {
        LateSend::new(self.0.transmitter())
    }

    /// Returns the number that the target has given to it; 0 at first.
    pub(crate) fn cookie(&self) -> usize {
        self.0.cookie()
    }

    /// Gives it a number by which its request is found, besides its own.
    pub(crate) fn set_cookie(&self, cookie: usize) {
        self.0.set_cookie(cookie);
    }
}

impl Initiator for Origin {
    type Lent = LentMemory;

    fn request(&self) -> &Request {
        self.0.request()
    }

    fn remote(&self) -> &RemoteMemory {
        self.0.remote()
    }

    fn send_out(&self) -> Option<LentMemory> {
        if !self.claim() {
            return None;
        }
        self.lend()
    }

    fn is_waiting(&self) -> bool {
        self.0.is_waiting()
    }

    fn number(&self) -> usize {
        self.0.number()
    }

    fn lane(&self) -> usize {
        Arc::as_ptr(self.0.transmitter()).addr()
    }

    fn refuse(&self, error: Error, budget: &mut Budget) {
        self.0.refuse(error, budget);
    }
}

impl wire::LentMemory for LentMemory {
    fn payload(&self) -> Payload<'_> {
        self.inside.payload()
    }

    fn respond(self, response: Response, budget: &mut Budget) {
        Transfer::respond_after(&self.transfer, self.inside, response, budget);
    }
}
