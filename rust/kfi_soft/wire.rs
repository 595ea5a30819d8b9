// SPDX-License-Identifier: GPL-2.0

//! Requests and responses between the initiator of an operation and its target, and the wires that carry them.
//!
//! An operation becomes a [`Request`] to an address; its outcome comes back as a [`Response`].
//! Neither names anything of the other side. The bytes travel as a [`Payload`]: what the wire reads
//! them from, or puts them to, at the initiator. A wire inside of one kernel hands the initiator's
//! memory to the target, which copies once.
//!
//! A request either is carried out at once, with everything on the stack of the poster, or it goes
//! as a [`Packet`], whose memory was allocated before and serves each of those who keep it for a
//! time.
//!
//! Nothing here knows who sends and who receives: these are an [`Initiator`] and, inside of one kernel, a
//! [`Destination`](loopback::Destination). A request from another kernel is a
//! [`RemoteRequest`](remote::RemoteRequest), which comes to [`Arrivals`](remote::Arrivals).

#![forbid(unsafe_code)]

pub(crate) mod atomics;
pub(crate) mod awaits;
pub(crate) mod loopback;
pub(crate) mod remote;
pub(crate) mod tcp;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    address::{
        auth_key::KeyNumber,
        native::Address, //
    },
    budget::Budget,
    kfi::{
        linux::{
            interrupts::IrqGuard,
            queue::Vacant, //
        },
        memory::{
            Memory,
            RemoteMemory,
            Source,
            Target, //
        },
        provider::Lasting, //
    },
    owner::Owner, //
};
use atomics::Atomics;

/// Which receive context of its target a request is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ContextIndex {
    /// A certain one.
    Named(usize),
    /// The one that goes with a transmit context. Where there are fewer, several go with one.
    Beside(usize),
}

impl ContextIndex {
    /// Returns the number of the context at a target that has `count` of them.
    pub(crate) fn of(self, count: usize) -> Option<usize> {
        match self {
            Self::Named(index) => Some(index),
            Self::Beside(index) => index.checked_rem(count),
        }
    }
}

/// An operation on its way to its target.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    /// The sender.
    pub(crate) source: Address,
    /// The target.
    pub(crate) destination: Address,
    /// The receive context there.
    pub(crate) context: ContextIndex,
    /// Without the same key there the target cannot be seen.
    pub(crate) auth_key: KeyNumber,
    /// The kind of operation.
    pub(crate) kind: RequestKind,
    /// Remote completion data.
    pub(crate) data: Option<u64>,
    /// Bytes of the payload.
    pub(crate) len: usize,
}

/// The kinds of requests.
#[derive(Clone, Copy)]
pub(crate) enum RequestKind {
    /// To be received.
    Message,
    /// To be received by a receive that wants the tag.
    Tagged {
        /// The tag.
        tag: u64,
    },
    /// To be written to memory regions.
    Write,
    /// To be read from memory regions.
    Read,
    /// To be written to a posted tagged receive.
    TaggedWrite {
        /// The tag.
        tag: u64,
        /// Where in its buffer.
        offset: u64,
    },
    /// To be read from a posted tagged receive.
    TaggedRead {
        /// The tag.
        tag: u64,
        /// Where in its buffer.
        offset: u64,
    },
    /// To change elements in memory regions.
    Atomic(Atomics),
}

impl RequestKind {
    /// Returns the tag of what has to be matched with a tagged receive.
    pub(crate) fn tag(self) -> Option<u64> {
        match self {
            Self::Tagged { tag } | Self::TaggedWrite { tag, .. } | Self::TaggedRead { tag, .. } => {
                Some(tag)
            }
            _ => None,
        }
    }

    /// Returns whether it is matched with a posted receive.
    pub(crate) fn is_matched(self) -> bool {
        matches!(self, Self::Message) || self.tag().is_some()
    }
}

/// The outcome of a request.
#[derive(Clone, Copy)]
pub(crate) struct Response {
    /// A positive errno, 0 for success.
    pub(crate) err: c_int,
    /// Bytes transferred.
    pub(crate) len: usize,
}

impl Response {
    /// All went well.
    pub(crate) fn done(len: usize) -> Self {
        Self { err: 0, len }
    }

    /// Nothing was transferred.
    pub(crate) fn failed(error: Error) -> Self {
        Self {
            err: error.to_errno().saturating_neg(),
            len: 0,
        }
    }
}

/// The memory of the initiator, as the wire sees it.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    /// The data to be sent or written; operands of atomics.
    pub(crate) source: &'a Memory<Source>,
    /// The values that elements are compared with.
    pub(crate) compare: &'a Memory<Source>,
    /// Where what is read, and elements that were fetched, go.
    pub(crate) target: &'a Memory<Target>,
}

impl<'a> Payload<'a> {
    /// The memory of an operation.
    pub(crate) fn of(memory: &'a Lasting) -> Self {
        Self {
            source: memory.source(),
            compare: memory.compare(),
            target: memory.target(),
        }
    }
}

/// The memory of an initiator whose operation is in the hands of the wire alone, until it is answered.
pub(crate) trait LentMemory: Send {
    /// Returns the memory.
    fn payload(&self) -> Payload<'_>;

    /// Returns whether [`Self::respond`] takes no longer than what is done under a lock.
    fn responds_shortly(&self) -> bool;

    /// Gives it back with the answer.
    ///
    /// Any context; does not sleep.
    fn respond(self, response: Response, budget: &mut Budget);
}

/// The initiator of a request that is under way, as those see it that carry the request.
pub(crate) trait Initiator: Clone + Unpin {
    /// Its memory, with the right and the duty to answer.
    type Lent: LentMemory;

    /// Returns the request.
    fn request(&self) -> &Request;

    /// Returns the target's memory that is meant.
    fn remote(&self) -> &RemoteMemory;

    /// Returns the bytes of the authorization key, of which the request has the number; none for none.
    fn auth_key(&self) -> &[u8];

    /// Returns the user whose it is, if that is one of this kernel.
    fn owner(&self) -> Option<&Arc<Owner>>;

    /// Takes the operation out of the hands of its initiator, to be sent to another kernel: the wire
    /// alone ends it from here on. `None` if it has been ended meanwhile, or was sent out before.
    ///
    /// If the initiator cancels or closes after that, it calls [`Wire::withdraw`] and waits for the
    /// answer all the same: its memory is in use.
    ///
    /// Any context; does not sleep.
    fn send_out(&self) -> Option<Self::Lent>;

    /// Returns whether the initiator has asked for the end of what was sent out.
    fn is_withdrawn(&self) -> bool {
        false
    }

    /// Returns whether the response is still to come, as far as can be told.
    fn is_waiting(&self) -> bool;

    /// Returns a number that the operation alone has while it is under way.
    fn number(&self) -> usize;

    /// Returns a number that all operations of its transmit context have, and no others.
    fn lane(&self) -> u64;

    /// Answers that nothing was done, unless another thread answers now.
    ///
    /// Any context; does not sleep.
    fn refuse(&self, error: Error, budget: &mut Budget);

    /// As [`Self::refuse`], but the outcome is dealt with elsewhere, for its initiator alone: for a thread that
    /// works for all. `memory` is that of the request.
    ///
    /// Any context; does not sleep.
    fn refuse_later(self, error: Error, memory: Vacant);
}

/// A request that is under way.
pub(crate) struct Packet<I> {
    /// Its initiator.
    pub(crate) origin: I,
    /// Memory for an entry in a queue of the party that has it, and in the end for its completion.
    pub(crate) memory: Vacant,
}

/// Carries requests to their targets.
pub(crate) trait Wire {
    /// The initiators of what it carries.
    type Origin: Initiator;

    /// Carries a request out, if that can be done at once; if not, nothing has happened.
    ///
    /// Any context; does not sleep.
    ///
    /// `irqs` ends before anything is done in it that may take longer than a lock is held.
    fn try_now(
        &self,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
    ) -> Option<Response>;

    /// Carries a request. The response goes to its initiator, before or after this returns.
    ///
    /// Any context; does not sleep. Requests of one transmit context to one receive context arrive
    /// in order.
    fn carry(&self, packet: Packet<Self::Origin>, budget: &mut Budget);

    /// The initiator has ended a request that is under way: the party that keeps it gives it up.
    ///
    /// Any context; does not sleep. The initiator has claimed the operation before, and asks at every
    /// place; a party that moves a request on looks at [`Initiator::is_waiting`] under the lock of the new
    /// place. So it is found where it stays, or dropped by the party that moves it after that place
    /// was asked.
    ///
    /// One that was sent out ([`Initiator::send_out`]) is only asked for: it ends by its answer.
    fn withdraw(&self, origin: &Self::Origin);
}
