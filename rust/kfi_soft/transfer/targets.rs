// SPDX-License-Identifier: GPL-2.0

//! The targets of requests at this node, which come from itself and from others.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    budget::Budget,
    kfi::{
        linux::queue::Vacant,
        memory::{
            self,
            Cursor, //
        }, //
    },
    owner::Recipient,
    transfer::{
        self,
        landing::Landings,
        origin::Origin,
        receiver::{
            Piece,
            Receiver,
            Straight, //
        }, //
    },
    wire::{
        awaits::Awaits,
        loopback::{
            Destination,
            Loopback, //
        },
        remote::{
            Arrivals,
            RemoteRequest, //
        },
        Initiator,
        Packet,
        Request,
        Response,
        Wire, //
    }, //
};

/// The receive contexts of this node.
#[pin_data]
pub(crate) struct Targets {
    /// By port.
    pub(crate) ports: Loopback<Receiver>,
    /// Requests of other nodes whose bytes come in pieces.
    #[pin]
    pub(crate) landings: Landings,
}

impl Targets {
    /// Without targets yet, for NICs in so many places.
    pub(crate) fn new(nics: u32) -> Result<Arc<Self>> {
        let ports = Loopback::new(nics)?;
        Arc::pin_init(
            pin_init!(Self {
                ports,
                landings <- Landings::new(),
            }),
            GFP_KERNEL,
        )
    }
}

impl Arrivals for Targets {
    fn recipient(&self, request: &Request) -> Option<Recipient> {
        // Under the lock: so there is no reference to the receive context that might be the last one.
        self.ports
            .with_destination(request, |receiver| receiver.recipient())
    }

    fn arrive(&self, request: Arc<RemoteRequest>, memory: Vacant) {
        let receiver;
        // Once for all locks of a small message. Those of other requests, which may name many regions with
        // counters, are not held back for that. The receive context is dropped later.
        let wanted = request.request();
        let is_short = wanted.kind.is_matched() && transfer::is_small(wanted);
        let mut budget = if is_short && !request.is_distant() {
            Budget::section()
        } else {
            Budget::of_caller()
        };
        receiver = self.ports.destination(request.request());
        let origin = Origin::Remote(request);
        let Some(receiver) = &receiver else {
            origin.refuse(EHOSTUNREACH, &mut budget);
            return;
        };
        if receiver.completer().counts() {
            // Triggers may run.
            budget.end_section();
            budget = Budget::of_caller();
        }
        let packet = Packet { origin, memory };
        Receiver::accept(receiver, packet, &mut budget);
    }

    fn withdraw(&self, request: &Arc<RemoteRequest>) {
        if !request.claim() {
            return;
        }
        // As an initiator of this node does.
        self.ports.withdraw(&Origin::Remote(request.clone()));
        request.answer(Response::failed(ECANCELED));
    }

    fn take_back(&self, request: &Arc<RemoteRequest>) -> Option<Awaits> {
        let origin = Origin::Remote(request.clone());
        let receiver = self.ports.destination(request.request())?;
        // First: whoever finds it there claims it, and nobody else answers it after that.
        let awaits = receiver.take_back(&origin)?;
        request.claim().then_some(awaits)
    }

    fn write(&self, request: &Arc<RemoteRequest>, offset: usize, bytes: &[u8]) -> Result {
        self.landings.copy(request, offset, &mut Piece::From(bytes))
    }

    fn receive(
        &self,
        request: &Arc<RemoteRequest>,
        offset: usize,
        len: usize,
        receive: &mut dyn FnMut(&mut Cursor<'_, memory::Target>, usize) -> usize,
    ) -> Result<usize> {
        let mut piece = Piece::Straight(Straight {
            len,
            done: 0,
            receive,
        });
        self.landings.copy(request, offset, &mut piece)?;
        match piece {
            Piece::Straight(straight) => Ok(straight.done),
            _ => Ok(0),
        }
    }

    fn read(&self, request: &Arc<RemoteRequest>, offset: usize, bytes: &mut [u8]) -> Result {
        self.landings.copy(request, offset, &mut Piece::To(bytes))
    }

    fn end(&self, request: &Arc<RemoteRequest>, result: Result) {
        self.landings.end(request, result);
    }
}
