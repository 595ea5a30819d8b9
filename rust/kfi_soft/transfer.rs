// SPDX-License-Identifier: GPL-2.0

//! Operations of a transmit context that are not done at once.

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    kfi::{
        fid::Context,
        memory::{
            Memory,
            RemoteMemory, //
        }, //
    },
    reporter::Ending,
    transmitter::Transmitter,
    wire::{
        Payload,
        Request,
        Response, //
    }, //
};

/// Waits for the target; whoever claims it ends it.
const WAITING: u32 = 0;
/// Somebody is ending it.
const CLAIMED: u32 = 1;

/// An operation, with all that it needs until it ends.
///
/// It is ended by whoever claims it: the target that carries it out, or somebody who gives it up.
#[pin_data]
pub(crate) struct Transfer {
    transmitter: Arc<Transmitter>,
    request: Request,
    local: Memory,
    compare: Memory,
    result: Memory,
    remote: RemoteMemory,
    /// The context, to be found by.
    context: Context,
    /// Whether all earlier ones have to end first.
    fence: bool,
    state: Atomic<u32>,
    /// As what the transmitter has noted it; nothing before.
    pub(crate) place: Atomic<usize>,
    /// Since when it has waited for the target to be ready, in jiffies.
    pub(crate) since: Atomic<usize>,
    #[pin]
    ending: SpinLockIrq<Option<Ending>>,
}

/// What a transfer is made of.
pub(crate) struct Parts {
    /// What it asks for.
    pub(crate) request: Request,
    /// See [`Payload`].
    pub(crate) local: Memory,
    /// See [`Payload`].
    pub(crate) compare: Memory,
    /// See [`Payload`].
    pub(crate) result: Memory,
    /// See [`Payload`].
    pub(crate) remote: RemoteMemory,
    /// What its end has to do.
    pub(crate) ending: Ending,
    /// Whether all earlier ones have to end first.
    pub(crate) fence: bool,
}

impl Parts {
    /// Returns the memory.
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload {
            local: &self.local,
            compare: &self.compare,
            result: &self.result,
            remote: &self.remote,
        }
    }
}

impl Transfer {
    /// A transfer of a transmit context.
    pub(crate) fn new(
        transmitter: Arc<Transmitter>,
        parts: Parts,
        flags: Flags,
    ) -> Result<Arc<Self>> {
        let Parts {
            request,
            local,
            compare,
            result,
            remote,
            ending,
            fence,
        } = parts;
        Arc::pin_init(
            pin_init!(Self {
                transmitter,
                request,
                local,
                compare,
                result,
                remote,
                context: ending.context,
                fence,
                state: Atomic::new(WAITING),
                place: Atomic::new(usize::MAX),
                since: Atomic::new(0),
                ending <- new_spinlock_irq!(Some(ending), "kfi_soft::Transfer::ending"),
            }),
            flags,
        )
    }

    /// Returns what it asks for.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the memory.
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload {
            local: &self.local,
            compare: &self.compare,
            result: &self.result,
            remote: &self.remote,
        }
    }

    /// Returns the context.
    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Returns whether all earlier ones have to end first.
    pub(crate) fn fence(&self) -> bool {
        self.fence
    }

    /// Returns the transmit context.
    pub(crate) fn transmitter(&self) -> &Arc<Transmitter> {
        &self.transmitter
    }

    /// Claims the right, and the duty, to end it.
    pub(crate) fn claim(&self) -> bool {
        // Full: what the one before did to it comes first.
        self.state.cmpxchg(WAITING, CLAIMED, ordering::Full).is_ok()
    }

    /// Returns whether nobody has claimed it.
    pub(crate) fn is_waiting(&self) -> bool {
        // Relaxed: a hint; who acts on it claims.
        self.state.load(ordering::Relaxed) == WAITING
    }

    /// Takes out what the end has to do; once, by whoever has claimed it.
    pub(crate) fn take_ending(&self) -> Option<Ending> {
        self.ending.lock().take()
    }

    /// Answers a request that was claimed.
    pub(crate) fn respond(this: &Arc<Self>, response: Response) {
        this.transmitter.end(this, response);
    }

    /// Answers a request that nobody has claimed, unless somebody does now.
    pub(crate) fn refuse(self: &Arc<Self>, error: Error) {
        if self.claim() {
            Self::respond(self, Response::failed(error));
        }
    }
}
