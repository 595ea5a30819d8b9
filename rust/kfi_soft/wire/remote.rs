// SPDX-License-Identifier: GPL-2.0

//! Requests from other kernels, as their targets see them.
//!
//! A wire makes a [`RemoteRequest`] of what it has read, and gives it to the [`Arrivals`] of this node,
//! who answer it, once, at any later time. The initiator's memory is elsewhere: the data that the
//! request has brought lie in memory of its own, and so do the results that it will take along.

#![forbid(unsafe_code)]

use kernel::{
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

use super::{
    awaits::Awaits,
    Payload,
    Request,
    Response, //
};
use crate::{
    kfi::{
        linux::queue::{
            Entry,
            Vacant, //
        },
        memory::{
            Cursor,
            Memory,
            RemoteMemory,
            Source,
            Target, //
        }, //
    },
    owner::Recipient,
    sum::{
        Count,
        Sum, //
    }, //
};

/// It waits; the party that claims it answers.
const WAITING: u32 = 0;
/// It is being answered, or was.
const CLAIMED: u32 = 1;

/// The party that requests from other kernels come to.
pub(crate) trait Arrivals: Send + Sync {
    /// Returns the user to whom a request comes, as far as can be told before it has arrived; nothing if nobody
    /// is there.
    ///
    /// Process context; does not sleep.
    fn recipient(&self, request: &Request) -> Option<Recipient>;

    /// Takes a request, which is answered before or after this returns. `memory` is for its entry in a
    /// queue, and in the end for that of its completion.
    ///
    /// Called in process context, by the thread that reads from the initiator: it does not sleep for
    /// more than a lock. Requests of one transmit context to one receive context come in order.
    fn arrive(&self, request: Arc<RemoteRequest>, memory: Vacant);

    /// The initiator of a request does not want it any more, or is gone: if it waits, it is claimed and
    /// answered with `ECANCELED`; else nothing is done.
    ///
    /// Process context, as [`Self::arrive`]. May be called with requests that were answered.
    fn withdraw(&self, request: &Arc<RemoteRequest>);

    /// Takes a request out of where it waits for its receiver, so that nothing is done and it is not
    /// answered; returns what it has waited for, with the time of [`Name::waited`], or nothing if it is not
    /// found waiting there.
    ///
    /// Process context, as [`Self::arrive`], and by the thread that has given it.
    fn take_back(&self, request: &Arc<RemoteRequest>) -> Option<Awaits>;

    /// Takes bytes of a request that has asked for them ([`Answers::start`]), from `offset` on. After an
    /// error there is only [`Self::end`]. It fails when the request was answered meanwhile, as nobody
    /// wants the bytes any more.
    ///
    /// Process context. This one, [`Self::read`] and [`Self::end`] are called by one thread at a time for a
    /// request.
    fn write(&self, request: &Arc<RemoteRequest>, offset: usize, bytes: &[u8]) -> Result;

    /// As [`Self::write`], but `receive` has bytes come, up to `len`, where they belong: it is given places, and for
    /// how many bytes each is, and returns how many have come. When these are less, nothing more comes now.
    /// Returns how many have come. It may sleep for a short time.
    fn receive(
        &self,
        request: &Arc<RemoteRequest>,
        offset: usize,
        len: usize,
        receive: &mut dyn FnMut(&mut Cursor<'_, Target>, usize) -> usize,
    ) -> Result<usize>;

    /// Fetches bytes of a request that lets them be fetched, from `offset` on, all of `bytes`. As
    /// [`Self::write`].
    fn read(&self, request: &Arc<RemoteRequest>, offset: usize, bytes: &mut [u8]) -> Result;

    /// All bytes of a request have been written or read, or, with an error, none will be any more. It is
    /// answered, with `ECANCELED` if that is the error; the consumer that has posted a receive for it is told
    /// that its initiator is not there any more.
    ///
    /// Process context. Nothing happens unless it has started, and not ended.
    fn end(&self, request: &Arc<RemoteRequest>, result: Result);
}

/// Where answers go.
pub(crate) trait Answers: Send + Sync {
    /// Takes an answer. Any context; does not sleep.
    fn answer(self: Arc<Self>, answer: Entry<Answer>);

    /// A request that was distant ([`RemoteRequest::distant`]) knows where its bytes go, or come from: it
    /// wants them now, or lets them be fetched. Any context; does not sleep.
    fn start(self: Arc<Self>, start: Entry<Start>);

    /// Something is done to memory regions for a request that was not distant, from before it is claimed until
    /// [`Self::access_ends`]. Any context; does not sleep.
    fn access_begins(&self);

    /// See [`Self::access_begins`].
    fn access_ends(self: Arc<Self>);
}

/// Something is done to memory regions for a request, as long as there is this.
pub(crate) struct OngoingAccess(Arc<dyn Answers>);

impl Drop for OngoingAccess {
    fn drop(&mut self) {
        self.0.clone().access_ends();
    }
}

/// A request that wants its bytes.
pub(crate) struct Start {
    /// Which one.
    pub(crate) request: Arc<RemoteRequest>,
    /// How many bytes, from the first one on: not all if a receive is too short.
    pub(crate) len: usize,
}

/// The answer to a request, with the results in that.
pub(crate) struct Answer {
    /// The request.
    pub(crate) request: Arc<RemoteRequest>,
    /// Its outcome.
    pub(crate) response: Response,
}

/// The memory of a request, in place of that of its initiator.
pub(crate) struct RemotePayload {
    /// The data that have come with it; operands of atomics.
    pub(crate) source: Memory<Source>,
    /// The values that elements are compared with.
    pub(crate) compare: Memory<Source>,
    /// Room for what is read, and elements that were fetched.
    pub(crate) target: Memory<Target>,
}

/// Counts the memory of a request as long as there is this: among that of its NIC, of the user to whom it has
/// come, and of all.
pub(crate) struct Charge {
    /// Dropped first: before that the user is not forgotten.
    _counts: [Count; 3],
    recipient: Recipient,
}

impl Charge {
    /// Counts so many bytes of a request for its recipient, if it has one, in the sum of the NIC that it
    /// comes from, and in the sum of all.
    pub(crate) fn new(recipient: Recipient, [nic, all]: [&Sum; 2], bytes: usize) -> Self {
        let counts = [nic, recipient.received(), all].map(|sum| sum.count(bytes));
        Self {
            _counts: counts,
            recipient,
        }
    }

    /// Returns the number of the user; none if that is nobody.
    pub(crate) fn user(&self) -> Option<u32> {
        self.recipient.number()
    }
}

/// The name of a request where it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    /// The session that it belongs to.
    pub(crate) session: u64,
    /// Its number there.
    pub(crate) number: u64,
    /// Its flow.
    pub(crate) flow: u16,
    /// For how many milliseconds it says that it has waited for its receiver before.
    pub(crate) waited: u32,
}

/// A request of another kernel that is under way.
#[pin_data]
pub(crate) struct RemoteRequest {
    request: Request,
    remote: RemoteMemory,
    payload: RemotePayload,
    /// For itself, and for the memory of both.
    charge: Charge,
    /// Its bytes come, or are fetched, when it has started.
    distant: bool,
    name: Name,
    answers: Arc<dyn Answers>,
    state: Atomic<u32>,
    /// Its initiator does not want it any more.
    withdrawn: Atomic<bool>,
    /// As that of an operation of this node.
    cookie: Atomic<usize>,
    /// It has left the order in which requests have come: since then it has a cookie.
    aside: Atomic<bool>,
    /// Memory for the answer; none when it was given.
    #[pin]
    reply: SpinLockIrq<Option<Vacant>>,
    /// Memory to start it, if it is distant; none when it has started.
    #[pin]
    starter: SpinLockIrq<Option<Vacant>>,
}

impl RemoteRequest {
    /// A request that was read; does not wait for memory, which may come by what is behind it.
    pub(crate) fn new(
        request: Request,
        (remote, payload): (RemoteMemory, RemotePayload),
        charge: Charge,
        name: Name,
        answers: Arc<dyn Answers>,
    ) -> Result<Arc<Self>> {
        Self::create(request, (remote, Some(payload)), charge, name, answers)
    }

    /// As [`Self::new`], one whose header was read: its bytes come, or are fetched, when it has started.
    pub(crate) fn distant(
        request: Request,
        remote: RemoteMemory,
        charge: Charge,
        name: Name,
        answers: Arc<dyn Answers>,
    ) -> Result<Arc<Self>> {
        Self::create(request, (remote, None), charge, name, answers)
    }

    fn create(
        request: Request,
        (remote, payload): (RemoteMemory, Option<RemotePayload>),
        charge: Charge,
        name: Name,
        answers: Arc<dyn Answers>,
    ) -> Result<Arc<Self>> {
        let distant = payload.is_none();
        let reply = Vacant::new(GFP_NOWAIT)?;
        let starter = if distant {
            Some(Vacant::new(GFP_NOWAIT)?)
        } else {
            None
        };
        let payload = payload.unwrap_or(RemotePayload {
            source: Memory::NONE,
            compare: Memory::NONE,
            target: Memory::NONE,
        });
        Arc::pin_init(
            pin_init!(Self {
                request,
                remote,
                payload,
                charge,
                distant,
                name,
                answers,
                state: Atomic::new(WAITING),
                withdrawn: Atomic::new(false),
                cookie: Atomic::new(0),
                aside: Atomic::new(false),
                reply <- new_spinlock_irq!(Some(reply), "kfi_soft::RemoteRequest::reply"),
                starter <- new_spinlock_irq!(starter, "kfi_soft::RemoteRequest::starter"),
            }),
            GFP_NOWAIT,
        )
    }

    /// Returns how many bytes one takes, besides the memory that it is given, until it is over; with the
    /// entries in queues that it needs.
    pub(crate) const fn memory(distant: bool) -> usize {
        // Where it arrives, and where it is answered; and where it starts.
        let entries = if distant { 3 } else { 2 };
        size_of::<Self>().saturating_add(Vacant::SIZE.saturating_mul(entries))
    }

    /// Returns the request.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the number of the user to whom it has come; none if that is nobody.
    pub(crate) fn user(&self) -> Option<u32> {
        self.charge.user()
    }

    /// Returns the memory of this node that is meant.
    pub(crate) fn remote(&self) -> &RemoteMemory {
        &self.remote
    }

    /// Returns the memory that stands for that of the initiator, for the thread that has claimed.
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload {
            source: &self.payload.source,
            compare: &self.payload.compare,
            target: &self.payload.target,
        }
    }

    /// Returns whether its bytes come, or are fetched, when it has started.
    pub(crate) fn is_distant(&self) -> bool {
        self.distant
    }

    /// Starts one that is distant, for the thread that has claimed: the first `len` bytes are wanted, or
    /// may be fetched. The wire ends it by [`Arrivals::end`].
    ///
    /// Any context; does not sleep.
    pub(crate) fn start(self: &Arc<Self>, len: usize) {
        let starter = self.starter.lock().take();
        // It starts once.
        let Some(starter) = starter else {
            return;
        };
        self.answers.clone().start(starter.fill(Start {
            request: self.clone(),
            len,
        }));
    }

    /// Returns what it is, where it comes from.
    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// Returns a number that it alone has while it is under way.
    pub(crate) fn number(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Notes that something is to be done to memory regions for it, which is not distant, before it is claimed for that.
    pub(crate) fn note_access(&self) -> OngoingAccess {
        self.answers.access_begins();
        OngoingAccess(self.answers.clone())
    }

    /// Claims the right, and the duty, to answer.
    pub(crate) fn claim(&self) -> bool {
        // Full: all that the one before did to it comes first.
        // See `qemu-test/litmus/KFI-claim.litmus`.
        self.state.cmpxchg(WAITING, CLAIMED, ordering::Full).is_ok()
    }

    /// Returns whether it is unclaimed, as far as can be told.
    pub(crate) fn is_waiting(&self) -> bool {
        // Relaxed: a hint; a thread that acts on it claims.
        self.state.load(ordering::Relaxed) == WAITING
    }

    /// As [`Self::is_waiting`], and its receiver has not set it aside: those before it in its flow come before
    /// it.
    pub(super) fn is_waiting_in_order(&self) -> bool {
        // Relaxed: as above.
        self.is_waiting() && !self.aside.load(ordering::Relaxed)
    }

    /// Notes that its initiator does not want it any more.
    pub(super) fn note_withdrawn(&self) {
        // Relaxed: for the thread of the wire, which alone asks.
        self.withdrawn.store(true, ordering::Relaxed);
    }

    /// Returns whether that was noted.
    pub(super) fn is_withdrawn(&self) -> bool {
        // Relaxed: as above.
        self.withdrawn.load(ordering::Relaxed)
    }

    /// Returns the number that the target has given to it; 0 at first.
    pub(crate) fn cookie(&self) -> usize {
        // Relaxed: it is in no queue of the target's while that is written.
        self.cookie.load(ordering::Relaxed)
    }

    /// Gives it a number by which it is found, besides its own.
    pub(crate) fn set_cookie(&self, cookie: usize) {
        // Relaxed: as above.
        self.cookie.store(cookie, ordering::Relaxed);
        // Relaxed: a hint.
        self.aside.store(true, ordering::Relaxed);
    }

    /// Returns whether it was answered: that is with [`Answers`], or about to be.
    pub(crate) fn is_answered(&self) -> bool {
        self.reply.lock().is_none()
    }

    /// Answers, for the thread that has claimed. The bytes in the room for results go along.
    ///
    /// Any context; does not sleep.
    pub(crate) fn answer(self: &Arc<Self>, response: Response) {
        let reply = self.reply.lock().take();
        // One answer is enough.
        let Some(reply) = reply else {
            return;
        };
        self.answers.clone().answer(reply.fill(Answer {
            request: self.clone(),
            response,
        }));
    }
}
