// SPDX-License-Identifier: GPL-2.0

//! Requests and responses between endpoints, and the wire that carries them.
//!
//! An operation becomes a [`Request`] to an address; what came of it comes back as a [`Response`].
//! Neither names anything of the other side. The bytes travel as a [`Payload`]: what the wire reads
//! them from, or puts them to, at the initiator. Here all endpoints live in one kernel, and the wire
//! hands the initiator's memory to the target, which copies once. A wire to other nodes would hand
//! over the memory of its packets instead.
//!
//! A request either is carried out at once, with everything on the stack of the poster, or it goes
//! as a [`QueuedPacket`], which was allocated before.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::RBTreeNodeReservation,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    address::{
        auth_key::KeyNumber,
        native::Address, //
    },
    faults::injector::{
        Faults,
        Held, //
    },
    kfi::{
        linux::{
            interrupts::{
                self,
                IrqGuard, //
            },
            queue::{
                Entry,
                Named, //
            }, //
        },
        memory::{
            Memory,
            RemoteMemory,
            Source,
            Target, //
        },
        provider::Lasting, //
    },
    node::Node,
    transfer::{
        atomic::Atomics,
        budget::Budget,
        packet::{
            self,
            Transfer, //
        },
        receive_queue::Match,
        receiver::{
            Late,
            Receiver,
            ReceiverUse, //
        },
        stripes,
        transmitter, //
    }, //
};

/// Up to as many bytes are copied in the poster's context, more by the work queue.
pub(crate) const INLINE_LIMIT: usize = 16 << 10;

/// Up to as many bytes are copied with interrupts disabled.
const SECTION_LIMIT: usize = 2 << 10;

/// Which receive context of its target a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
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

impl Request {
    /// Returns whether it is so small that it may be carried out with interrupts disabled.
    pub(crate) fn is_small(&self) -> bool {
        match self.kind {
            RequestKind::Atomic(atomics) => {
                self.len <= stripes::CHUNK.saturating_mul(atomics.size())
            }
            _ => self.len <= SECTION_LIMIT,
        }
    }

    /// Returns whether it is carried out in the poster's context, not by the work queue.
    ///
    /// An element takes much longer than a byte that is copied, and others get the locks of some, but
    /// not an interrupt.
    pub(crate) fn is_inline(&self) -> bool {
        match self.kind {
            RequestKind::Atomic(_) if interrupts::are_disabled() => self.is_small(),
            _ => self.len <= INLINE_LIMIT,
        }
    }
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
    /// That of an operation.
    pub(crate) fn of(memory: &'a Lasting) -> Self {
        Self {
            source: memory.source(),
            compare: memory.compare(),
            target: memory.target(),
        }
    }
}

/// Of [`Packet::stalled`]: no receive has wanted it while there was no room.
pub(crate) const NEVER_STALLED: u32 = 0;
/// One does.
const STALLED: u32 = 1;
/// One did.
const HAS_STALLED: u32 = 2;

/// A request that could not be carried out at once, and what is known of it on its way.
pub(crate) struct Packet {
    /// The operation, to which the response goes.
    pub(crate) transfer: Arc<Transfer>,
    /// Memory for its transmit context to note it.
    pub(crate) note: Option<RBTreeNodeReservation<transmitter::NotedName, Arc<Transfer>>>,
    /// The receive context that it has arrived at.
    pub(crate) receiver: Option<Arc<Receiver>>,
    /// Whether a posted receive wants it, and it waits for room at its receiver. Written under the lock
    /// of the queue where it is.
    pub(crate) stalled: Atomic<u32>,
    /// The receive that it was matched with.
    pub(crate) matched: Option<(ReceiverUse, Match)>,
    /// It is to be reported by the thread that carries it out.
    pub(crate) late: Option<Late>,
    /// Why the thread that carries it out is to refuse it.
    pub(crate) refused: Option<Error>,
    /// With which others it is held back for more to come (`KFI_MORE`).
    pub(crate) batch: Option<usize>,
    /// The state of the wire's hold on it.
    pub(crate) held: Held,
}

impl Packet {
    /// Returns whether it carries an operation.
    pub(crate) fn is_of(&self, transfer: &Arc<Transfer>) -> bool {
        Arc::ptr_eq(&self.transfer, transfer)
    }

    /// Returns whether a posted receive wants it, and it waits for room.
    pub(crate) fn is_stalled(&self) -> bool {
        // Relaxed: under the lock of the queue where it is.
        self.stalled.load(ordering::Relaxed) == STALLED
    }

    /// Returns whether that was so at some time, so that its time may have begun later than that of
    /// those behind it.
    pub(crate) fn has_stalled(&self) -> bool {
        // Relaxed: as above.
        self.stalled.load(ordering::Relaxed) != NEVER_STALLED
    }

    /// Notes whether a posted receive wants it, and it waits for room.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        if stalled {
            // Relaxed: as above.
            self.stalled.store(STALLED, ordering::Relaxed);
        } else if self.is_stalled() {
            // Relaxed: as above.
            self.stalled.store(HAS_STALLED, ordering::Relaxed);
        }
    }
}

/// Named as the operation.
impl Named for Packet {
    type Name = packet::TransferName;

    fn name(&self) -> Self::Name {
        Transfer::name(&self.transfer)
    }
}

/// A packet with the links of a queue, in which it is or may be.
pub(crate) type QueuedPacket = Entry<Packet>;

/// Carries requests to their targets.
pub(crate) trait Wire {
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

    /// Carries a request. The response goes to [`Transfer::respond`], before or after this returns.
    ///
    /// Any context; does not sleep. Requests of one transmit context to one receive context arrive
    /// in order.
    fn send(&self, packet: QueuedPacket, budget: &mut Budget);
}

/// The endpoints of a node reach each other without any network.
impl Wire for Node {
    fn try_now(
        &self,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
    ) -> Option<Response> {
        match self.receiver(request) {
            Some(receiver) => Receiver::try_now(&receiver, request, remote, payload, irqs),
            None => Some(Response::failed(EHOSTUNREACH)),
        }
    }

    fn send(&self, packet: QueuedPacket, budget: &mut Budget) {
        if self.faults.any() {
            Faults::send(packet, budget);
        } else {
            self.carry(packet, budget);
        }
    }
}

impl Node {
    /// Carries a request, whatever else may happen to it.
    pub(crate) fn carry(&self, packet: QueuedPacket, budget: &mut Budget) {
        let request = packet.transfer.request();
        match self.receiver(request) {
            Some(receiver) => Receiver::accept(&receiver, packet, budget),
            None => packet.transfer.refuse(EHOSTUNREACH, budget),
        }
    }
}
