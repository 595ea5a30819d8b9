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
    budget::Budget,
    kfi::{
        context::Context,
        memory::RemoteMemory,
        provider::{
            Lasting,
            Outgoing, //
        }, //
    },
    transfer::{
        completer::{
            CompletionSpec,
            Manner,
            MemoryUse, //
        },
        transmitter::Transmitter, //
    },
    wire::{
        Payload,
        Request,
        Response, //
    }, //
};

/// Waits for the target; the thread that claims it ends it.
const WAITING: u32 = 0;
/// A thread is ending it.
const CLAIMED: u32 = 1;
/// The wire has it, and ends it by an answer.
const SENT: u32 = 2;
/// As [`SENT`], but it is not wanted any more: it was cancelled.
const CANCELLED: u32 = 3;
/// As [`SENT`], but it is not wanted any more, nor a report of that: its transmit context is closed.
const ABANDONED: u32 = 4;

/// An operation, with all that it needs until it ends.
///
/// It is ended by the party that claims it: the target that carries it out, or a thread that gives
/// it up. One that leaves this node is the wire's alone from then on, which is asked to give it up.
#[pin_data]
pub(crate) struct Transfer {
    transmitter: Arc<Transmitter>,
    request: Request,
    remote: RemoteMemory,
    /// The context, to be found by.
    context: Context,
    /// Whether all earlier ones have to end first.
    fence: bool,
    /// Whether an entry reports its success.
    told: bool,
    state: Atomic<u32>,
    /// The number under which the transmitter has noted it; `usize::MAX` before.
    pub(crate) note_number: Atomic<usize>,
    /// Says to the target for which context it was set aside there, so that it is found, besides by its
    /// number; 0 before.
    cookie: Atomic<usize>,
    /// The part that the thread that ends it takes out.
    #[pin]
    inside: SpinLockIrq<Option<Kept>>,
}

/// Where the memory of a transfer is noted.
enum Kept {
    /// Here, as there are no other nodes: it goes no further than to a thread of this one.
    Here(Inside),
    /// Apart, so that the wire to other nodes can have it: also of an operation to a NIC of this node, which
    /// may have gone when it is carried.
    Apart(KBox<Inside>),
}

/// The memory of a transfer, and how its end is reported.
pub(crate) struct Inside {
    memory: Lasting,
    manner: Manner,
}

impl Inside {
    /// Lends the memory.
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload::of(&self.memory)
    }

    /// Returns whether a counter of its own is told of the end.
    pub(crate) fn notifies(&self) -> bool {
        self.manner.notify.is_some()
    }

    /// Ends the use of the memory. Returns what the end has to do.
    pub(crate) fn end(self) -> CompletionSpec {
        CompletionSpec {
            of: MemoryUse::Ended(self.memory.end()),
            manner: self.manner,
        }
    }
}

/// The configuration that a transfer is created from.
pub(crate) struct TransferConfig<'a> {
    /// The request.
    pub(crate) request: Request,
    /// The initiator's memory.
    pub(crate) memory: Outgoing<'a>,
    /// The target's memory that is meant.
    pub(crate) remote: RemoteMemory,
    /// The context, to be found by.
    pub(crate) context: Context,
    /// How its end is reported.
    pub(crate) manner: Manner,
    /// Whether all earlier ones have to end first.
    pub(crate) fence: bool,
}

impl Transfer {
    /// A transfer of a transmit context.
    pub(crate) fn new(
        transmitter: Arc<Transmitter>,
        config: TransferConfig<'_>,
        flags: Flags,
    ) -> Result<Arc<Self>> {
        let TransferConfig {
            request,
            memory,
            remote,
            context,
            manner,
            fence,
        } = config;
        let memory = memory.keep(flags)?;
        let told = manner.entry;
        let inside = Inside { memory, manner };
        let inside = if transmitter.has_network() {
            Kept::Apart(KBox::new(inside, flags)?)
        } else {
            Kept::Here(inside)
        };
        Arc::pin_init(
            pin_init!(Self {
                transmitter,
                request,
                remote,
                context,
                fence,
                told,
                state: Atomic::new(WAITING),
                note_number: Atomic::new(usize::MAX),
                cookie: Atomic::new(0),
                inside <- new_spinlock_irq!(Some(inside), "kfi_soft::Transfer::inside"),
            }),
            flags,
        )
    }

    /// Returns a number that it alone has.
    pub(crate) fn number(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Returns what the target has set; 0 at first.
    pub(crate) fn cookie(&self) -> usize {
        // Relaxed: it is in no queue of the target's while that is written.
        self.cookie.load(ordering::Relaxed)
    }

    /// Sets it, for the target alone.
    pub(crate) fn set_cookie(&self, cookie: usize) {
        // Relaxed: as above.
        self.cookie.store(cookie, ordering::Relaxed);
    }

    /// Returns what it asks for.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the target's memory that is meant.
    pub(crate) fn remote(&self) -> &RemoteMemory {
        &self.remote
    }

    /// Returns the context.
    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Returns whether an entry reports its success.
    pub(crate) fn is_told(&self) -> bool {
        self.told
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
        // See `qemu-test/litmus/KFI-claim.litmus`.
        self.state.cmpxchg(WAITING, CLAIMED, ordering::Full).is_ok()
    }

    /// Returns whether it is unclaimed.
    pub(crate) fn is_waiting(&self) -> bool {
        // Relaxed: a hint; a thread that acts on it claims.
        self.state.load(ordering::Relaxed) == WAITING
    }

    /// Returns whether it is not wanted any more, while the wire has it.
    pub(crate) fn is_withdrawn(&self) -> bool {
        // Acquire: pairs with `recall`; the wire that has not seen it is asked after that.
        matches!(self.state.load(ordering::Acquire), CANCELLED | ABANDONED)
    }

    /// Returns whether a thread of this node has claimed it.
    pub(crate) fn is_claimed(&self) -> bool {
        // Relaxed: a thread that acts on it finds it where that thread has left it, or does not.
        self.state.load(ordering::Relaxed) == CLAIMED
    }

    /// Hands it to the wire, which is to end it; `None` if it is claimed.
    pub(crate) fn send_out(&self) -> Option<KBox<Inside>> {
        // Full: as in `claim`.
        let sent = self.state.cmpxchg(WAITING, SENT, ordering::Full).is_ok();
        match sent.then(|| self.inside.lock().take()).flatten() {
            Some(Kept::Apart(inside)) => Some(inside),
            // Nothing is sent out where there are no other nodes.
            Some(Kept::Here(_)) | None => None,
        }
    }

    /// It is not wanted any more, if the wire has it; `report` says whether that is to be reported when
    /// it has ended. Returns whether the wire is to be asked.
    pub(crate) fn recall(&self, report: bool) -> bool {
        let state = if report { CANCELLED } else { ABANDONED };
        // Full: the wire that is asked after this sees it.
        // See `qemu-test/litmus/KFI-recall.litmus`.
        self.state.cmpxchg(SENT, state, ordering::Full).is_ok()
    }

    /// Returns whether an answer is to be reported.
    fn is_reported(&self, response: Response) -> bool {
        // Relaxed: written before the transmit context waits for the answer.
        let abandoned = self.state.load(ordering::Relaxed) == ABANDONED;
        let nothing_done = [ECANCELED, EHOSTUNREACH]
            .iter()
            .any(|error| error.to_errno().saturating_neg() == response.err);
        !(abandoned && nothing_done)
    }

    /// Takes out the memory, and how the end is reported; once, by the thread that has claimed it.
    pub(crate) fn take(&self) -> Option<Inside> {
        let kept = self.inside.lock().take();
        Some(match kept? {
            Kept::Here(inside) => inside,
            Kept::Apart(inside) => KBox::into_inner(inside),
        })
    }

    /// Answers a request that was claimed.
    pub(crate) fn respond(this: &Arc<Self>, response: Response, budget: &mut Budget) {
        this.transmitter.end(this, this.take(), response, budget);
    }

    /// Answers a request that was claimed, and whose memory was used.
    pub(crate) fn respond_after(
        this: &Arc<Self>,
        inside: Inside,
        response: Response,
        budget: &mut Budget,
    ) {
        let inside = Some(inside).filter(|_| this.is_reported(response));
        this.transmitter.end(this, inside, response, budget);
    }

    /// Answers a request that is unclaimed, unless another thread claims it now.
    pub(crate) fn refuse(self: &Arc<Self>, error: Error, budget: &mut Budget) {
        if self.claim() {
            Self::respond(self, Response::failed(error), budget);
        }
    }
}
