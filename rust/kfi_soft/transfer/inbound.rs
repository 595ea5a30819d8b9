// SPDX-License-Identifier: GPL-2.0

//! Requests that have arrived and wait at their target.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
    time::Jiffies, //
};

use crate::{
    budget::Budget,
    kfi::linux::queue::{
        Entry,
        Keyed,
        Named, //
    },
    transfer::{
        origin::Origin,
        receiver::Receiver, //
    },
    wire::{
        Initiator,
        Packet,
        Request, //
    }, //
};

/// Of [`Inbound::stalled`]: no receive has wanted it while there was no room.
const NEVER_STALLED: u32 = 0;
/// One does.
const STALLED: u32 = 1;
/// One did.
const HAS_STALLED: u32 = 2;

/// A request that has arrived and waits.
pub(crate) struct Inbound {
    /// Its initiator.
    pub(crate) origin: Origin,
    /// The receive context that it has arrived at.
    pub(crate) receiver: Arc<Receiver>,
    /// Since when it has waited for a receive, in jiffies.
    pub(crate) since: Jiffies,
    /// The context that it was set aside for, as a number; else 0.
    aside_for: usize,
    /// Whether a posted receive wants it, and it waits for room at its receiver. Written under the lock
    /// of the queue where it is.
    stalled: Atomic<u32>,
}

/// Names a request that waits: the context that it was set aside for, 0 before, and the number of
/// the operation.
pub(crate) type InboundName = (usize, usize);

impl Inbound {
    /// A request that has just arrived, in its memory.
    pub(crate) fn new(receiver: Arc<Receiver>, packet: Packet<Origin>) -> Entry<Self> {
        let Packet { origin, memory } = packet;
        memory.fill(Self {
            origin,
            receiver,
            since: 0,
            aside_for: 0,
            stalled: Atomic::new(NEVER_STALLED),
        })
    }

    /// Returns the request.
    pub(crate) fn request(&self) -> &Request {
        self.origin.request()
    }

    /// Returns whether it is that of an initiator.
    pub(crate) fn is_of(&self, origin: &Origin) -> bool {
        self.origin.number() == origin.number()
    }

    /// Returns the name under which that of an initiator is found.
    pub(crate) fn name_of(origin: &Origin) -> InboundName {
        (origin.cookie(), origin.number())
    }

    /// It is set aside for a context, while it is in no queue.
    pub(crate) fn set_aside_for(&mut self, context: usize) {
        self.aside_for = context;
        self.origin.set_cookie(context);
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

    /// Refuses one that has waited, unless its sender gives it up now: at once if it does not come from
    /// another domain of this node, else by a work queue, for the reason that [`Receiver::deliver`] has.
    pub(crate) fn refuse(this: Entry<Self>, error: Error, budget: &mut Budget) {
        if this.receiver.is_near(&this.origin) {
            this.origin.refuse(error, budget);
        } else {
            let (inbound, memory) = this.empty();
            inbound.origin.refuse_later(error, memory);
        }
    }
}

impl Named for Inbound {
    type Name = InboundName;

    fn name(&self) -> InboundName {
        (self.aside_for, self.origin.number())
    }
}

/// By the tag.
impl Keyed for Inbound {
    fn key(&self) -> Option<u64> {
        self.request().kind.tag()
    }
}
