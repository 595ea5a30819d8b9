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
    owner::Owner,
    transfer::{
        self,
        late_deliveries::LateDeliveries,
        outstanding::{
            Inside,
            Transfer, //
        },
        receiver::{
            LateArrival,
            Receiver, //
        },
        transmitter::LateSend, //
    },
    wire::{
        self,
        remote::{
            OngoingAccess,
            RemoteRequest, //
        },
        Initiator,
        Payload,
        Request,
        Response, //
    }, //
};

/// The initiator of a request, to be claimed, lent from and answered: all that a target, or a queue
/// of it, knows of the other side.
#[derive(Clone)]
pub(crate) enum Origin {
    /// An operation of this node.
    Local(Arc<Transfer>),
    /// One of another node: it lends what has come with the request, and its answer goes to the wire.
    Remote(Arc<RemoteRequest>),
}

/// The memory of an initiator, until it is answered.
pub(crate) enum LentMemory {
    /// Of one of this node.
    Local(Arc<Transfer>, Inside),
    /// In place of that of one of another node.
    Remote(Arc<RemoteRequest>),
}

/// The memory of an operation that the wire has taken to another node, until it is answered.
pub(crate) struct SentMemory {
    transfer: Arc<Transfer>,
    inside: KBox<Inside>,
}

/// Says that a work queue is going to receive a message, and others that are sent later go behind it.
pub(crate) enum LateMessage {
    /// Others of the same transmit context.
    Sent { _count: LateSend },
    /// Others that come from other nodes to the same receive context.
    Arrived { _count: LateArrival },
}

impl Origin {
    /// Returns whether it may be answered at once by a thread that runs for a domain: it belongs to
    /// that, or is of another node, where nothing runs in this thread.
    pub(crate) fn is_near(&self, domain: &Arc<Fid<Domain>>) -> bool {
        match self {
            Self::Local(transfer) => Arc::ptr_eq(transfer.transmitter().domain(), domain),
            Self::Remote(_) => true,
        }
    }

    /// Returns the request if its bytes come in pieces.
    pub(crate) fn distant(&self) -> Option<&Arc<RemoteRequest>> {
        match self {
            Self::Local(_) => None,
            Self::Remote(request) => Some(request).filter(|request| request.is_distant()),
        }
    }

    /// Notes that something is to be done to memory regions, before the operation is claimed for that: an initiator of
    /// another node that begins a new session waits for that.
    pub(crate) fn note_access(&self) -> Option<OngoingAccess> {
        match self {
            Self::Remote(request) if !request.is_distant() => Some(request.note_access()),
            _ => None,
        }
    }

    /// Claims the right, and the duty, to answer. Nobody else ends the operation then.
    pub(crate) fn claim(&self) -> bool {
        match self {
            Self::Local(transfer) => transfer.claim(),
            Self::Remote(request) => request.claim(),
        }
    }

    /// Borrows the memory, once, for the thread that has claimed.
    pub(crate) fn lend(&self) -> Option<LentMemory> {
        match self {
            Self::Local(transfer) => Some(LentMemory::Local(transfer.clone(), transfer.take()?)),
            Self::Remote(request) => Some(LentMemory::Remote(request.clone())),
        }
    }

    /// Answers, for the thread that has claimed.
    pub(crate) fn respond(&self, response: Response, budget: &mut Budget) {
        match self {
            Self::Local(transfer) => Transfer::respond(transfer, response, budget),
            Self::Remote(request) => request.answer(response),
        }
    }

    /// Returns the requests beside this one that the work queue carries out at `receiver`, and that are
    /// done to memory regions and not told there: those of the same transmit context, or of all other
    /// nodes.
    pub(crate) fn late_accesses<'a>(&'a self, receiver: &'a Receiver) -> &'a Arc<LateDeliveries> {
        match self {
            Self::Local(transfer) => transfer.transmitter().late_accesses(),
            Self::Remote(_) => receiver.late_accesses(),
        }
    }

    /// Returns whether messages that have come before, of the same transmit context, are yet to be
    /// received at `receiver` by a work queue.
    pub(crate) fn has_late_messages(&self, receiver: &Receiver) -> bool {
        match self {
            Self::Local(transfer) => transfer.transmitter().has_late_sends(),
            Self::Remote(_) => receiver.has_late_arrivals(),
        }
    }

    /// Returns whether its transmit context, if it is of this node, is being closed.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Local(transfer) => transfer.transmitter().is_closed(),
            Self::Remote(_) => false,
        }
    }

    /// A message that was claimed can be taken back by the thread that closes its transmit context.
    pub(crate) fn can_be_taken_back(&self) {
        if let Self::Local(transfer) = self {
            transfer.transmitter().look_again();
        }
    }

    /// Counts a message that a work queue is going to receive at `receiver`.
    pub(crate) fn late_message(&self, receiver: &Arc<Receiver>) -> LateMessage {
        match self {
            Self::Local(transfer) => LateMessage::Sent {
                _count: LateSend::new(transfer.transmitter()),
            },
            Self::Remote(_) => LateMessage::Arrived {
                _count: LateArrival::new(receiver),
            },
        }
    }

    /// Returns for how many milliseconds it has waited for a receive before it has arrived, as its sender says.
    pub(crate) fn waited(&self) -> u32 {
        match self {
            Self::Local(_) => 0,
            Self::Remote(request) => request.name().waited,
        }
    }

    /// Returns the number that the target has given to it; 0 at first.
    pub(crate) fn cookie(&self) -> usize {
        match self {
            Self::Local(transfer) => transfer.cookie(),
            Self::Remote(request) => request.cookie(),
        }
    }

    /// Gives it a number by which its request is found, besides its own.
    pub(crate) fn set_cookie(&self, cookie: usize) {
        match self {
            Self::Local(transfer) => transfer.set_cookie(cookie),
            Self::Remote(request) => request.set_cookie(cookie),
        }
    }
}

impl Initiator for Origin {
    type Lent = SentMemory;

    fn request(&self) -> &Request {
        match self {
            Self::Local(transfer) => transfer.request(),
            Self::Remote(request) => request.request(),
        }
    }

    fn remote(&self) -> &RemoteMemory {
        match self {
            Self::Local(transfer) => transfer.remote(),
            Self::Remote(request) => request.remote(),
        }
    }

    fn auth_key(&self) -> &[u8] {
        match self {
            Self::Local(transfer) => transfer.transmitter().auth_key(),
            // Nothing is sent on that has come from another node, so nobody asks.
            Self::Remote(_) => &[],
        }
    }

    fn owner(&self) -> Option<&Arc<Owner>> {
        match self {
            Self::Local(transfer) => Some(transfer.transmitter().domain().owner()),
            Self::Remote(_) => None,
        }
    }

    fn send_out(&self) -> Option<SentMemory> {
        match self {
            Self::Local(transfer) => Some(SentMemory {
                transfer: transfer.clone(),
                inside: transfer.send_out()?,
            }),
            // It has come from there.
            Self::Remote(_) => None,
        }
    }

    fn is_withdrawn(&self) -> bool {
        match self {
            Self::Local(transfer) => transfer.is_withdrawn(),
            Self::Remote(_) => false,
        }
    }

    fn is_waiting(&self) -> bool {
        match self {
            Self::Local(transfer) => transfer.is_waiting(),
            Self::Remote(request) => request.is_waiting(),
        }
    }

    fn number(&self) -> usize {
        match self {
            Self::Local(transfer) => transfer.number(),
            Self::Remote(request) => request.number(),
        }
    }

    fn lane(&self) -> u64 {
        match self {
            Self::Local(transfer) => transfer.transmitter().number(),
            // Nothing is sent on that has come from another node, so nobody asks.
            Self::Remote(request) => u64::from(request.name().flow),
        }
    }

    fn refuse(&self, error: Error, budget: &mut Budget) {
        match self {
            Self::Local(transfer) => transfer.refuse(error, budget),
            Self::Remote(request) => {
                if request.claim() {
                    request.answer(Response::failed(error));
                }
            }
        }
    }

    fn refuse_later(self, error: Error, memory: Vacant) {
        match self {
            Self::Local(transfer) => {
                let transmitter = transfer.transmitter().clone();
                transmitter.refuse_later(transfer, error, memory);
            }
            Self::Remote(_) => self.refuse(error, &mut Budget::of_caller()),
        }
    }
}

impl wire::LentMemory for SentMemory {
    fn payload(&self) -> Payload<'_> {
        self.inside.payload()
    }

    fn responds_shortly(&self) -> bool {
        let Self { transfer, inside } = self;
        let transmitter = transfer.transmitter();
        // Where it counts, triggers may run; and a credit may be handed over to others.
        let counts = transmitter.completer().counts() || inside.notifies();
        transfer::is_small(transfer.request()) && !counts && !transmitter.shares_credits()
    }

    fn respond(self, response: Response, budget: &mut Budget) {
        let Self { transfer, inside } = self;
        Transfer::respond_after(&transfer, KBox::into_inner(inside), response, budget);
    }
}

impl wire::LentMemory for LentMemory {
    fn payload(&self) -> Payload<'_> {
        match self {
            Self::Local(_, inside) => inside.payload(),
            Self::Remote(request) => request.payload(),
        }
    }

    fn responds_shortly(&self) -> bool {
        false
    }

    fn respond(self, response: Response, budget: &mut Budget) {
        match self {
            Self::Local(transfer, inside) => {
                Transfer::respond_after(&transfer, inside, response, budget);
            }
            Self::Remote(request) => request.answer(response),
        }
    }
}
