// SPDX-License-Identifier: GPL-2.0

//! Receive contexts: what requests find at an address.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        Arc, //
    }, //
};

use crate::{
    address::{
        native::Address,
        vector::AddressVector, //
    },
    budget::Budget,
    domain::Domain,
    kfi::{
        addr::FabricAddr,
        context::Context,
        errno::{
            EKEYREJECTED,
            ENOMSG,
            EOPBADSTATE, //
        },
        fid::{
            Class,
            Fid, //
        },
        flags::{
            AccessFlags,
            Caps,
            CompletionFlags,
            MrMode, //
        },
        linux::{
            interrupts::{
                IrqGuard,
                NoPreemption, //
            },
            queue::{
                Entry,
                Vacant, //
            },
            task::cond_resched,
            wait_queue::WaitQueue,
            work_queue::{
                new_work,
                Work,
                WorkItem, //
            }, //
        },
        memory::{
            self,
            Cursor,
            RemoteMemory,
            Target, //
        },
        provider::{
            AddressVectorClass,
            AtomicCall,
            Completion,
            CompletionQueueClass,
            CounterClass,
            DomainClass,
            Failure,
            Outcome, //
        }, //
    },
    node::Node,
    owner::Recipient,
    queue::{
        completion_queue::EntryPlace,
        listeners::SpaceListener, //
    },
    transfer::{
        self,
        accepted::{
            Accepted,
            Task, //
        },
        atomic,
        completer::{
            Completer,
            CompletionSpec,
            CountedEvent,
            MemoryUse, //
        },
        inbound::Inbound,
        landing::Ground,
        late_deliveries::LateDeliveries,
        origin::Origin,
        parking::Parking,
        receive_queue::{
            report_cancelled,
            unused,
            Arrival,
            Delivery,
            Match,
            Posted,
            ReceiveBuffer,
            ReceiveQueue,
            Span, //
        },
        region::{
            AllowedRanges,
            Moment,
            RegionRanges,
            RegionUse,
            Regions, //
        }, //
    },
    wire::{
        atomics::Atomics,
        awaits::Awaits,
        loopback::Destination,
        remote::RemoteRequest,
        Initiator,
        LentMemory,
        Packet,
        Payload,
        Request,
        RequestKind,
        Response, //
    }, //
};

/// So many bytes are copied before others get the CPU.
const CHUNK: usize = 256 << 10;

/// Copies in large chunks, before each of which `check` hears how many bytes it has copied, and whose error
/// it fails with.
fn copy<D>(
    to: &mut Cursor<'_, Target>,
    from: &mut Cursor<'_, D>,
    len: usize,
    check: impl Fn(usize) -> Result,
) -> Result<usize> {
    let mut done: usize = 0;
    while let Some(left) = len.checked_sub(done).filter(|left| *left != 0) {
        check(done)?;
        let step = memory::transfer(to, from, left.min(CHUNK));
        if step == 0 {
            break;
        }
        done = done.wrapping_add(step);
    }
    Ok(done)
}

/// Fails with `EHOSTUNREACH` if a copy is not to go on, as one side is not there any more, which is to both
/// of them as if the other were not.
fn check_sides(go_on: impl Fn() -> bool) -> Result {
    if go_on() {
        Ok(())
    } else {
        Err(EHOSTUNREACH)
    }
}

/// The configuration that a receive context is created from.
pub(crate) struct RxConfig {
    /// The receives posted to it, or to all that share them.
    pub(crate) queue: Arc<ReceiveQueue>,
    /// Others receive from that queue too.
    pub(crate) shared: bool,
    /// How its operations are completed.
    pub(crate) completer: Completer,
    /// The domain.
    pub(crate) domain: Arc<Fid<Domain>>,
    /// The node.
    pub(crate) node: Arc<Node>,
    /// The number of its NIC.
    pub(crate) nic: u32,
    /// Where senders are looked up for completions, if they are wanted there.
    pub(crate) sources: Option<Arc<Fid<AddressVector>>>,
    /// Its capabilities.
    pub(crate) caps: Caps,
}

/// A receive context that is enabled.
#[pin_data]
pub(crate) struct Receiver {
    config: RxConfig,
    /// No other one has it, before or after.
    number: u64,
    /// The regions of this context alone (`KFI_MR_ENDPOINT`).
    #[pin]
    regions: Regions,
    /// Requests that are being carried out.
    users: Atomic<usize>,
    closed: Atomic<bool>,
    /// See [`LateReport`].
    late_reports: Atomic<usize>,
    /// Requests that were matched with its receives, and that the work queue carries out.
    deliveries: Arc<LateDeliveries>,
    /// Requests for memory regions that the work queue carries out: those that are told, and those
    /// that come from other nodes.
    late_accesses: Arc<LateDeliveries>,
    /// See [`LateArrival`].
    late_arrivals: Atomic<usize>,
    /// None of its messages that are queued is received before there is room. Written under the lock of
    /// the queue.
    stalling: Atomic<bool>,
    /// Requests that wait for room in the completion queue.
    #[pin]
    parking: Parking,
    /// Takes on what waits there.
    #[pin]
    unpark: Work<Receiver>,
    #[pin]
    idle: WaitQueue,
}

/// A receive context in use, which is not closed meanwhile.
pub(crate) struct ReceiverUse(Arc<Receiver>);

impl ReceiverUse {
    /// Returns the context.
    pub(crate) fn receiver(&self) -> &Arc<Receiver> {
        &self.0
    }
}

impl core::ops::Deref for ReceiverUse {
    type Target = Receiver;

    fn deref(&self) -> &Receiver {
        &self.0
    }
}

impl Drop for ReceiverUse {
    fn drop(&mut self) {
        // Full: what was done comes before, the look at `closed` after.
        if self.0.users.fetch_sub(1, ordering::Full) == 1 && self.0.closed.load(ordering::Relaxed) {
            self.0.idle.wake_up_all();
        }
    }
}

/// A piece of a request's bytes.
pub(crate) enum Piece<'a> {
    /// It goes to memory of this node.
    From(&'a [u8]),
    /// It comes from there.
    To(&'a mut [u8]),
    /// As many bytes as are left, or less, come straight to memory of this node.
    Straight(Straight<'a>),
}

/// Bytes of a request that come straight to where they belong.
pub(crate) struct Straight<'a> {
    /// How many there are, at the most, and how many have come.
    pub(crate) len: usize,
    pub(crate) done: usize,
    /// Has some come to a place, no more than it is told; returns how many.
    pub(crate) receive: &'a mut dyn FnMut(&mut Cursor<'_, Target>, usize) -> usize,
}

impl Straight<'_> {
    /// Has up to `len` bytes come to a place; returns whether that were all.
    fn receive(&mut self, place: &mut Cursor<'_, Target>, len: usize) -> bool {
        let count = (self.receive)(place, len).min(len);
        self.done = self.done.saturating_add(count);
        count == len
    }
}

impl Piece<'_> {
    /// Returns how many bytes there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::From(bytes) => bytes.len(),
            Self::To(bytes) => bytes.len(),
            Self::Straight(straight) => straight.len,
        }
    }

    /// Copies it to or from a place.
    pub(crate) fn copy(&mut self, place: &mut Cursor<'_, Target>) {
        match self {
            Self::From(bytes) => {
                place.write(bytes);
            }
            Self::To(bytes) => {
                place.read(bytes);
            }
            Self::Straight(straight) => {
                straight.receive(place, straight.len);
            }
        }
    }
}

/// Stands for a receive context, and does not keep it.
pub(crate) struct ReceiverName {
    node: Arc<Node>,
    number: u64,
}

impl ReceiverName {
    /// Begins to use the context, which a request has arrived at; `None` if it is closed. `last` is the
    /// one that was found last.
    fn enter(&self, request: &Request, last: &mut Option<Arc<Receiver>>) -> Option<ReceiverUse> {
        if let Some(same) = last.as_ref().filter(|last| last.number == self.number) {
            let same = same.clone();
            if same.is_closed() {
                // Its memory is not kept for the others.
                *last = None;
                return None;
            }
            return Receiver::enter(same);
        }
        let found = self.node.receiver(request)?;
        if found.number != self.number {
            // Another one has the address by now.
            return None;
        }
        *last = Some(found.clone());
        Receiver::enter(found)
    }
}

/// How many operations the work queue is to report before more have to wait.
const MAX_LATE: usize = 64;

/// When there is not more than this, what waits goes on.
const FEW_LATE: usize = MAX_LATE / 2;

/// So many requests that have waited for room are taken on before others have their turn.
const UNPARKED: usize = 64;

/// An operation that the work queue carries out for a receive context, and will report.
pub(crate) struct LateReport(Arc<Receiver>);

impl LateReport {
    /// Counts it.
    fn new(receiver: &Arc<Receiver>) -> Self {
        // Relaxed: a thread that finds too many has counted one of them before.
        receiver.late_reports.fetch_add(1, ordering::Relaxed);
        Self(receiver.clone())
    }
}

impl Drop for LateReport {
    fn drop(&mut self) {
        let receiver = &self.0;
        // Full: what waits was noted before that was found too much, or is not there yet; pairs with
        // `Receiver::wait_for_room`, store before load on both sides.
        let before = receiver.late_reports.fetch_sub(1, ordering::Full);
        let waits = receiver.parking.is_occupied() || receiver.is_stalling();
        if before == FEW_LATE.wrapping_add(1) && waits {
            Receiver::unpark_later(receiver);
        }
    }
}

/// A message of another node that a work queue is going to receive. Those that arrive later go behind
/// it.
pub(crate) struct LateArrival(Arc<Receiver>);

impl LateArrival {
    /// Counts it.
    pub(crate) fn new(receiver: &Arc<Receiver>) -> Self {
        // Relaxed: what is matched later comes after this.
        receiver.late_arrivals.fetch_add(1, ordering::Relaxed);
        Self(receiver.clone())
    }
}

impl Drop for LateArrival {
    fn drop(&mut self) {
        // Release: see `Receiver::has_late_arrivals`.
        self.0.late_arrivals.fetch_sub(1, ordering::Release);
    }
}

impl ReceiverUse {
    /// Counts an operation that is going to be reported, if it is `told` and there is a queue for that.
    fn late_report(&self, told: bool) -> Option<LateReport> {
        let counts = told && self.config.completer.has_queue();
        counts.then(|| LateReport::new(&self.0))
    }
}

impl Receiver {
    /// Creates a receive context.
    pub(crate) fn new(config: RxConfig) -> Result<Arc<Self>> {
        // A thread that sends may look this up just before it is closed, and drop the last reference
        // with interrupts disabled. It is in a read-side critical section of RCU then, or is not
        // preempted, for which each close of what `config` refers to waits, and comes later: so what is
        // large there, as a vector may be, is dropped by a thread that closes, and may sleep.
        const {
            assert!(<AddressVectorClass as Class>::RCU_OPERATIONS);
            assert!(<CompletionQueueClass as Class>::RCU_OPERATIONS);
            assert!(<CounterClass as Class>::RCU_OPERATIONS);
            assert!(<DomainClass as Class>::RCU_OPERATIONS);
        }
        let deliveries = LateDeliveries::new(&config.domain)?;
        let late_accesses = LateDeliveries::new(&config.domain)?;
        let number = config.node.number_receiver();
        Arc::pin_init(
            pin_init!(Self {
                config,
                number,
                regions <- Regions::new(),
                users: Atomic::new(0),
                closed: Atomic::new(false),
                late_reports: Atomic::new(0),
                deliveries,
                late_accesses,
                late_arrivals: Atomic::new(0),
                stalling: Atomic::new(false),
                parking <- Parking::new(),
                unpark <- new_work!("kfi_soft::Receiver::unpark"),
                idle <- WaitQueue::new(c"kfi_soft::Receiver::idle", static_lock_class!()),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the completer of its operations.
    pub(crate) fn completer(&self) -> &Completer {
        &self.config.completer
    }

    /// Returns whether endpoints share its receives.
    pub(crate) fn is_shared(&self) -> bool {
        self.config.shared
    }

    /// Returns what is done to memory regions, and the work queue carries out: what is to be told, and
    /// what comes from other nodes.
    pub(crate) fn late_accesses(&self) -> &Arc<LateDeliveries> {
        &self.late_accesses
    }

    /// Returns whether a work queue is yet to receive messages of other nodes that have come before.
    pub(crate) fn has_late_arrivals(&self) -> bool {
        // Acquire: those have been received.
        self.late_arrivals.load(ordering::Acquire) != 0
    }

    /// Returns the regions of this context alone.
    pub(crate) fn own_regions(&self) -> &Regions {
        &self.regions
    }

    /// Returns what stands for it where it is only compared, never 0.
    pub(crate) fn id(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Returns the regions that requests name.
    fn regions(&self) -> &Regions {
        if self.config.domain.mr_mode().contains(MrMode::ENDPOINT) {
            &self.regions
        } else {
            self.config.domain.regions()
        }
    }

    /// Returns whether it is being closed.
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: a caller that needs more has a barrier or a lock.
        self.closed.load(ordering::Relaxed)
    }

    /// Begins to use the context; `None` if it is closed.
    pub(crate) fn enter(this: Arc<Self>) -> Option<ReceiverUse> {
        // Full: pairs with `close`, store before load on both sides: one sees the other.
        // See `qemu-test/litmus/KFI-receive-close.litmus`.
        this.users.fetch_add(1, ordering::Full);
        let entered = ReceiverUse(this);
        if entered.is_closed() {
            return None;
        }
        Some(entered)
    }

    /// Closes the context: messages that wait are refused, receives are given up without completions.
    /// Messages that were matched, and are not copied yet, fail on both sides, and this ends them
    /// instead of the work queue; those that are being copied fail there at the next chunk, those that
    /// come from another node at once. May sleep, but not for long.
    pub(crate) fn close(this: &Arc<Self>) {
        // Relaxed, and a full barrier: see `enter`.
        this.closed.store(true, ordering::Relaxed);
        smp_mb(ordering::Full);
        if !this.config.shared {
            this.config.queue.close();
        }
        this.parking.close();
        this.unpark.cancel_sync();
        this.config.queue.purge(this);
        this.config.node.targets().landings.close(this);
        // Acquire: what users did is over.
        let is_unused = || this.users.load(ordering::Acquire) == 0;
        while !is_unused() {
            loop {
                // Its sender waits for the thread that has taken it out.
                let preemption = NoPreemption::begin();
                let Some(accepted) = this.deliveries.take_first() else {
                    break;
                };
                // It fails before anything is copied.
                Self::carry_out(accepted, &mut None, || (), &mut Budget::thread());
                drop(preemption);
                cond_resched();
            }
            // A thread that has matched others meanwhile adds them, and wakes this one.
            this.idle
                .wait_uninterruptible(|| is_unused() || !this.deliveries.is_empty());
        }
        // No thread adds to these any more.
        this.deliveries.close();
        this.late_accesses.close();
        this.unpark.cancel_sync();
        if !this.config.shared {
            // Once more: one of them may have left a watch behind.
            this.config.queue.close();
        }
    }

    /// Lets the work queue go on with what waits for room.
    fn unpark_later(this: &Arc<Self>) {
        this.deliveries.work_queue().queue::<_, 0>(this.clone());
    }

    /// Returns the address of a sender, for completions.
    fn source(&self, request: &Request) -> FabricAddr {
        match &self.config.sources {
            Some(av) => av.find(request.source),
            None => FabricAddr::NOTAVAIL,
        }
    }

    /// Keeps a request until there is room for its completion.
    fn park(this: &Arc<Self>, inbound: Entry<Inbound>, budget: &mut Budget) {
        if let Err(inbound) = this.parking.add(inbound) {
            inbound.origin.refuse(EHOSTUNREACH, budget);
        } else if !this.wait_for_room() {
            // There is room again.
            Self::unpark_later(this);
        }
    }

    /// Returns whether messages that a receive wants wait for room all the same, under the lock of the
    /// queue of that: these and all that come later, until [`ReceiveQueue::resume`].
    ///
    /// A message whose entry lies in the memory of a receive of this context alone does not start a
    /// stall: there are only as many of these as receives. Other entries would lie in memory of senders,
    /// or of shared receives, whose owners could post again at once.
    pub(crate) fn stalls(&self, receive: &Posted) -> bool {
        if self.is_stalling() {
            return true;
        }
        let bounded = !self.config.shared && matches!(receive.buffer, ReceiveBuffer::One(_));
        if bounded || self.is_closed() || !self.is_crowded() {
            return false;
        }
        // Relaxed: as in `is_stalling`, and before another look at the room.
        self.stalling.store(true, ordering::Relaxed);
        let waits = self.wait_for_room();
        self.stalling.store(waits, ordering::Relaxed);
        waits
    }

    /// Returns whether nothing more is to come, as there is no room for its completion.
    fn is_crowded(&self) -> bool {
        // Relaxed: a hint.
        self.late_reports.load(ordering::Relaxed) >= MAX_LATE || self.config.completer.is_crowded()
    }

    /// As [`Self::is_crowded`], but if so, the work queue goes on with what waits when there is room.
    /// The operation that waits has been noted before.
    fn wait_for_room(&self) -> bool {
        // Full: see `LateReport`.
        // See `qemu-test/litmus/KFI-receive-room.litmus`.
        smp_mb(ordering::Full);
        // Relaxed: ordered by the line before.
        self.late_reports.load(ordering::Relaxed) >= MAX_LATE
            || self.config.completer.wait_for_room()
    }

    /// Returns whether messages that are queued wait for room.
    pub(crate) fn is_stalling(&self) -> bool {
        // Relaxed: under the lock of the queue, or ordered by the caller.
        self.stalling.load(ordering::Relaxed)
    }

    /// Lets messages that are queued be received, under the lock of the queue; returns whether some had
    /// to wait.
    pub(crate) fn end_stalling(&self) -> bool {
        let stalling = self.is_stalling();
        // Relaxed: as above.
        self.stalling.store(false, ordering::Relaxed);
        stalling
    }

    /// Returns whether what arrives has to wait for room.
    fn lacks_room(&self) -> bool {
        self.parking.is_occupied() || self.is_crowded()
    }

    /// Takes a request whose completion is not kept waiting.
    fn take_on(this: &Arc<Self>, inbound: Entry<Inbound>, budget: &mut Budget) {
        let Some(receiver) = Self::enter(this.clone()) else {
            inbound.origin.refuse(EHOSTUNREACH, budget);
            return;
        };
        let request = inbound.request();
        let (matched, allowed) = (request.kind.is_matched(), receiver.allows(request));
        if !matched {
            Self::begin_access(receiver, inbound, budget);
        } else if allowed {
            receiver.config.queue.accept(&receiver, inbound, budget);
        } else {
            inbound.origin.refuse(EACCES, budget);
        }
    }

    /// Receives what was matched: at once if it is small and does not come from another domain of this
    /// node, else by the work queue, and then what follows it too: so messages complete in order, but
    /// for one that its poster delivers itself while another thread is just matching the one before.
    ///
    /// Operations that are due in a domain do not run inside of each other. But those that one
    /// makes due in another domain would run inside of the one that has begun it, and so on from
    /// domain to domain (R-DWQ-30).
    pub(crate) fn deliver(mut accepted: Entry<Accepted>, budget: &mut Budget) {
        let Task::Receive(receiver, _) = &accepted.task else {
            // Was not matched, and does not come here.
            return;
        };
        let this = receiver.receiver().clone();
        let origin = &accepted.origin;
        if this.does_at_once(origin) && !origin.has_late_messages(&this) {
            Self::carry_out(accepted, &mut None, || (), budget);
            return;
        }
        let origin = origin.clone();
        let late_message = origin.late_message(&this);
        accepted.late_report = receiver.late_report(true);
        accepted.late_message = Some(late_message);
        this.deliveries.add(accepted);
        // A thread that closes either side and has not found it there: ordered by the lock of the
        // list, which that thread takes when `closed` is set.
        if this.is_closed() {
            this.idle.wake_up_all();
        }
        if origin.is_closed() {
            origin.can_be_taken_back();
        }
    }

    /// Returns whether what an initiator asks for is done in the context of whoever comes to it.
    fn does_at_once(&self, origin: &Origin) -> bool {
        // Pieces are copied one after the other.
        let small = transfer::is_inline(origin.request()) || origin.distant().is_some();
        small && self.is_near(origin)
    }

    /// Returns whether an initiator may be answered at once, see [`Origin::is_near`].
    pub(crate) fn is_near(&self, origin: &Origin) -> bool {
        origin.is_near(&self.config.domain)
    }

    /// Carries out a request that was accepted, and answers; it fails as soon as either side is being
    /// closed. `last` is the receive context that was found last, `relax` is called between large chunks.
    pub(crate) fn carry_out(
        accepted: Entry<Accepted>,
        last: &mut Option<Arc<Self>>,
        relax: impl Fn(),
        budget: &mut Budget,
    ) {
        let (accepted, memory) = accepted.empty();
        let Accepted {
            origin,
            task,
            // Until it has been answered.
            late_report,
            late_message: _late_message,
        } = accepted;
        match task {
            Task::Receive(receiver, matched) => {
                let delivery = matched.into_delivery(&receiver);
                if let Some(distant) = origin.distant() {
                    // Not what the section was begun for, which comes all at once.
                    budget.end_section();
                    let span = delivery.span(distant.request());
                    if receiver.is_closed() {
                        let gone = Err(EHOSTUNREACH);
                        let wanted = distant.request();
                        let response = receiver.end_landing(wanted, delivery, span, gone, memory);
                        distant.answer(response);
                        return;
                    }
                    let late_report = late_report.or_else(|| receiver.late_report(true));
                    let ground = Ground::Receive(delivery, span);
                    Self::land(distant, receiver, ground, late_report, memory);
                    return;
                }
                let Some(lent) = origin.lend() else {
                    return;
                };
                let payload = lent.payload();
                let place = EntryPlace::Own(memory);
                if !transfer::is_small(origin.request()) {
                    // Not what the section was begun for.
                    budget.end_section();
                }
                let irqs = budget.irqs();
                let go_on = || {
                    relax();
                    !(receiver.is_closed() || origin.is_closed())
                };
                let response =
                    receiver.receive(origin.request(), payload, delivery, place, irqs, go_on);
                lent.respond(response, budget);
            }
            Task::Regions(name) => {
                let Some(receiver) = name.enter(origin.request(), last) else {
                    origin.refuse(EHOSTUNREACH, budget);
                    return;
                };
                if late_report.is_none() && receiver.is_told(&origin) {
                    // Not when it arrived, but since: it waits for room as others do.
                    Self::accept(receiver.receiver(), Packet { origin, memory }, budget);
                    return;
                }
                Self::carry_out_access(receiver, origin, memory, relax, budget);
            }
        }
    }

    /// Does what a request wants of memory regions: at once or, for the reasons that
    /// [`Self::deliver`] has, by the work queue.
    fn begin_access(receiver: ReceiverUse, inbound: Entry<Inbound>, budget: &mut Budget) {
        if receiver.does_at_once(&inbound.origin) {
            let (inbound, memory) = inbound.empty();
            Self::carry_out_access(receiver, inbound.origin, memory, || (), budget);
            return;
        }
        let name = ReceiverName {
            node: receiver.config.node.clone(),
            number: receiver.number,
        };
        let mut accepted = Accepted::new(inbound, Task::Regions(name));
        let origin = &accepted.origin;
        let late_report = receiver.late_report(receiver.is_told(origin));
        let list = match late_report {
            Some(_) => receiver.late_accesses.clone(),
            None => origin.late_accesses(&receiver).clone(),
        };
        accepted.late_report = late_report;
        list.add(accepted);
    }

    /// Does it now, and answers.
    fn carry_out_access(
        receiver: ReceiverUse,
        origin: Origin,
        memory: Vacant,
        relax: impl Fn(),
        budget: &mut Budget,
    ) {
        // Until it has been answered.
        let _access = origin.note_access();
        if !origin.claim() {
            return;
        }
        let (request, remote) = (origin.request(), origin.remote());
        if let Some(distant) = origin.distant() {
            let ranges = receiver.ranges(remote);
            let told = receiver.check(request, ranges).map(|allowed| allowed.told);
            match told {
                Ok(told) => {
                    let late_report = receiver.late_report(told);
                    let ground = Ground::Regions(ranges.moment);
                    Self::land(distant, receiver, ground, late_report, memory);
                }
                Err(error) => distant.answer(Response::failed(error)),
            }
            return;
        }
        let Some(lent) = origin.lend() else {
            return;
        };
        let find_place = || Some(EntryPlace::Own(memory));
        if !transfer::is_small(request) {
            // As above.
            budget.end_section();
        }
        let irqs = budget.irqs();
        let go_on = || {
            relax();
            !(receiver.is_closed() || origin.is_closed())
        };
        let response = receiver.access(request, remote, lent.payload(), find_place, irqs, go_on);
        // There is a place.
        let response = response.unwrap_or_else(|| Response::failed(EAGAIN));
        lent.respond(response, budget);
    }

    /// Begins with a request that was claimed, and whose bytes come in pieces.
    fn land(
        request: &Arc<RemoteRequest>,
        receiver: ReceiverUse,
        ground: Ground,
        late_report: Option<LateReport>,
        memory: Vacant,
    ) {
        let node = receiver.config.node.clone();
        let landings = &node.targets().landings;
        landings.begin(request.clone(), receiver, ground, late_report, memory);
    }

    /// Copies a piece of what is done to memory regions, of those that there were at a moment.
    pub(crate) fn copy_piece(
        &self,
        request: &RemoteRequest,
        moment: Moment,
        offset: usize,
        piece: &mut Piece<'_>,
    ) -> Result {
        let (access, _) = Self::needed(request.request());
        let auth_key = request.request().auth_key;
        let regions = self.regions();
        let mut before = offset;
        let mut done: usize = 0;
        for range in request.remote().ranges_from(0) {
            let Some(behind) = range.len.checked_sub(before).filter(|len| *len != 0) else {
                before = before.wrapping_sub(range.len);
                continue;
            };
            let len = behind.min(piece.len().saturating_sub(done));
            if len == 0 {
                break;
            }
            let region = regions.find(range.key, self.id(), moment)?;
            let start = region.check(region.len(), range, access, auth_key)?;
            let start = start.checked_add(before).ok_or(EINVAL)?;
            let part = done..done.wrapping_add(len);
            match piece {
                Piece::From(bytes) => {
                    region.target(start)?.write(bytes.get(part).ok_or(EINVAL)?);
                }
                Piece::To(bytes) => {
                    region
                        .source(start)
                        .read(bytes.get_mut(part).ok_or(EINVAL)?);
                }
                Piece::Straight(straight) => {
                    if !straight.receive(&mut region.target(start)?, len) {
                        // The others have not come yet.
                        return Ok(());
                    }
                }
            }
            done = done.wrapping_add(len);
            before = 0;
        }
        if done == piece.len() {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Counts and reports what was done to memory regions in pieces; returns the answer.
    pub(crate) fn end_access(
        &self,
        request: &RemoteRequest,
        moment: Moment,
        memory: Vacant,
    ) -> Response {
        let remote = request.remote();
        let ranges = RegionRanges { remote, moment };
        let request = request.request();
        let allowed = match self.check(request, ranges) {
            Ok(allowed) => allowed,
            Err(error) => return Response::failed(error),
        };
        let place = if allowed.told {
            EntryPlace::Own(memory)
        } else {
            EntryPlace::Nowhere
        };
        let irqs = &mut IrqGuard::none();
        match self.for_each_range(request, allowed, irqs, |_, _, len| Ok(len)) {
            Ok(len) => {
                self.report(request, place, len);
                Response::done(len)
            }
            Err(error) => Response::failed(error),
        }
    }

    /// Reports what was received in pieces, or that not all of them have come; returns the answer.
    pub(crate) fn end_landing(
        &self,
        request: &Request,
        delivery: Delivery,
        span: Span,
        result: Result,
        memory: Vacant,
    ) -> Response {
        let landed = match result {
            Ok(()) => span,
            Err(_) => Span { len: 0, ..span },
        };
        let place = EntryPlace::Own(memory);
        let irqs = &mut IrqGuard::none();
        self.finish(request, delivery, landed, result.err(), place, irqs)
    }

    /// Receives what was matched with a posted receive, unless it is not to `go_on`. The entry lies in
    /// the memory of the receive if that is used up, else in `place`.
    fn receive(
        &self,
        request: &Request,
        payload: Payload<'_>,
        delivery: Delivery,
        place: EntryPlace<'_>,
        irqs: &mut IrqGuard,
        go_on: impl Fn() -> bool,
    ) -> Response {
        let span = delivery.span(request);
        let check = |_: usize| check_sides(&go_on);
        let len = match request.kind {
            RequestKind::TaggedRead { .. } => {
                let to = &mut payload.target.cursor(0);
                copy(to, &mut delivery.cursor(span.offset), span.len, check)
            }
            _ => {
                let from = &mut payload.source.cursor(0);
                copy(&mut delivery.cursor(span.offset), from, span.len, check)
            }
        };
        let (len, error) = match len {
            Ok(len) => (len, None),
            Err(error) => (0, Some(error)),
        };
        let landed = Span { len, ..span };
        self.finish(request, delivery, landed, error, place, irqs)
    }

    /// Reports what was received, when its bytes have landed, or, with an error, that they have not;
    /// returns the answer.
    fn finish(
        &self,
        request: &Request,
        delivery: Delivery,
        landed: Span,
        error: Option<Error>,
        place: EntryPlace<'_>,
        irqs: &mut IrqGuard,
    ) -> Response {
        let mut flags = match request.kind {
            RequestKind::Message => CompletionFlags::MSG | CompletionFlags::RECV,
            RequestKind::TaggedWrite { .. } => {
                CompletionFlags::TAGGED
                    | CompletionFlags::RMA
                    | CompletionFlags::WRITE
                    | CompletionFlags::RECV
            }
            RequestKind::TaggedRead { .. } => {
                CompletionFlags::TAGGED
                    | CompletionFlags::RMA
                    | CompletionFlags::READ
                    | CompletionFlags::RECV
            }
            _ => CompletionFlags::TAGGED | CompletionFlags::RECV,
        };
        let Span { len, cut_off, .. } = landed;
        let olen = request.len.saturating_sub(len);
        let address = delivery.part_address();
        let spec = delivery.finish();
        if request.data.is_some() {
            flags = flags | CompletionFlags::REMOTE_CQ_DATA;
        }
        let outcome = Outcome {
            flags: flags.as_raw(),
            len,
            buf: Context::from_number(address),
            data: request.data.unwrap_or(0),
            tag: request.kind.tag().unwrap_or(0),
            src_addr: self.source(request).as_raw(),
        };
        // A message that was cut off fails on both sides.
        let error = error.or(cut_off.then_some(EMSGSIZE));
        let response = error.map_or_else(|| Response::done(request.len), Response::failed);
        let failure = error.map(|_| Failure {
            err: response.err,
            olen,
            ..Failure::NONE
        });
        let is_part = matches!(spec.of, MemoryUse::Part(_));
        if is_part || spec.manner.notify.is_some() || self.config.completer.counts() {
            irqs.end();
        }
        self.config
            .completer
            .end(CountedEvent::Receive, spec, place, &outcome, failure);
        response
    }

    /// Carries out what is done to memory regions.
    ///
    /// `find_place` is asked for the place of an entry if one is to report it; without a place
    /// nothing is done, and nothing returned.
    fn access<'a>(
        &'a self,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        find_place: impl FnOnce() -> Option<EntryPlace<'a>>,
        irqs: &mut IrqGuard,
        go_on: impl Fn() -> bool,
    ) -> Option<Response> {
        let allowed = match self.check(request, self.ranges(remote)) {
            Ok(allowed) => allowed,
            Err(error) => return Some(Response::failed(error)),
        };
        let place = if allowed.told {
            find_place()?
        } else {
            EntryPlace::Nowhere
        };
        let done = match request.kind {
            RequestKind::Atomic(atomics) => self.atomic(request, allowed, payload, irqs, atomics),
            _ => self.rma(request, allowed, payload, irqs, go_on),
        };
        Some(match done {
            Ok(len) => {
                self.report(request, place, len);
                Response::done(len)
            }
            Err(error) => Response::failed(error),
        })
    }

    /// Returns whether posted receives may take a request.
    fn allows(&self, request: &Request) -> bool {
        let needed = match request.kind {
            RequestKind::Message => Caps::MSG | Caps::RECV,
            RequestKind::Tagged { .. } => Caps::TAGGED | Caps::RECV,
            // They read and write the buffers of those receives.
            RequestKind::TaggedRead { .. } => Caps::TAGGED_RMA | Caps::REMOTE_READ,
            RequestKind::TaggedWrite { .. } => Caps::TAGGED_RMA | Caps::REMOTE_WRITE,
            // Regions are asked for these.
            RequestKind::Read | RequestKind::Write | RequestKind::Atomic(_) => return true,
        };
        self.config.caps.contains(needed)
    }

    /// Returns what the regions of a request have to allow.
    fn needed(request: &Request) -> (AccessFlags, Caps) {
        match request.kind {
            RequestKind::Atomic(atomics) => {
                let mut access = AccessFlags::NONE;
                let mut caps = Caps::ATOMIC;
                if !atomics.is_read_only() {
                    access = access | AccessFlags::REMOTE_WRITE;
                    caps = caps | Caps::REMOTE_WRITE;
                }
                if atomics.call() != AtomicCall::Plain {
                    access = access | AccessFlags::REMOTE_READ;
                    caps = caps | Caps::REMOTE_READ;
                }
                (access, caps)
            }
            RequestKind::Write => (AccessFlags::REMOTE_WRITE, Caps::RMA | Caps::REMOTE_WRITE),
            _ => (AccessFlags::REMOTE_READ, Caps::RMA | Caps::REMOTE_READ),
        }
    }

    /// Returns whether a request changes regions, rather than only reads them.
    fn writes(request: &Request) -> bool {
        match request.kind {
            RequestKind::Atomic(atomics) => !atomics.is_read_only(),
            RequestKind::Write => true,
            _ => false,
        }
    }

    /// Checks all that a request wants to do to memory regions.
    fn check<'a>(&self, request: &Request, ranges: RegionRanges<'a>) -> Result<AllowedRanges<'a>> {
        let (access, caps) = Self::needed(request);
        if !self.config.caps.contains(caps) {
            return Err(EACCES);
        }
        let regions = self.regions();
        let mut told = self.tells(request);
        let mut first = None;
        // Nothing is touched unless all of it may be.
        for range in ranges.remote.ranges_from(0) {
            let region = regions.find(range.key, self.id(), ranges.moment)?;
            region.check(region.len(), range, access, request.auth_key)?;
            told |= region.event;
            first.get_or_insert(region);
        }
        Ok(AllowedRanges {
            ranges,
            told,
            first,
        })
    }

    /// Returns whether an entry is to report what a request does to memory regions, whichever these are.
    fn tells(&self, request: &Request) -> bool {
        request.data.is_some() || self.config.caps.contains(Caps::RMA_EVENT)
    }

    /// Returns what a request that begins now names of regions.
    fn ranges<'a>(&self, remote: &'a RemoteMemory) -> RegionRanges<'a> {
        let moment = self.regions().moment();
        RegionRanges { remote, moment }
    }

    /// Returns whether an entry would report what is done to memory regions.
    fn is_told(&self, origin: &Origin) -> bool {
        let request = origin.request();
        // Mostly no region has to be looked up for that.
        if !(self.tells(request) || self.regions().may_report()) {
            return false;
        }
        let check = || self.check(request, self.ranges(origin.remote()));
        self.config.completer.has_queue() && check().is_ok_and(|allowed| allowed.told)
    }

    /// Tells of what was done to memory regions.
    fn report(&self, request: &Request, place: EntryPlace<'_>, len: usize) {
        let kind = match request.kind {
            RequestKind::Atomic(_) => CompletionFlags::ATOMIC,
            _ => CompletionFlags::RMA,
        };
        let (counted, mut flags) = if Self::writes(request) {
            (
                CountedEvent::RemoteWrite,
                kind | CompletionFlags::REMOTE_WRITE,
            )
        } else {
            (
                CountedEvent::RemoteRead,
                kind | CompletionFlags::REMOTE_READ,
            )
        };
        if request.data.is_some() {
            flags = flags | CompletionFlags::REMOTE_CQ_DATA;
        }
        let completion = (!matches!(place, EntryPlace::Nowhere)).then(|| {
            Completion::remote(&Outcome {
                flags: flags.as_raw(),
                len,
                buf: Context::NONE,
                data: request.data.unwrap_or(0),
                tag: 0,
                src_addr: self.source(request).as_raw(),
            })
        });
        self.config.completer.remote(counted, completion, place);
    }

    /// Does something to each of the ranges of a request, and counts its arrival at each of the
    /// regions, once, when that is done to all of it (R-CNTR-3). Returns how many bytes there were.
    fn for_each_range(
        &self,
        request: &Request,
        allowed: AllowedRanges<'_>,
        irqs: &mut IrqGuard,
        mut act: impl FnMut(&RegionUse, usize, usize) -> Result<usize>,
    ) -> Result<usize> {
        let (access, _) = Self::needed(request);
        let regions = self.regions();
        let RegionRanges { remote, moment } = allowed.ranges;
        let mut first = allowed.first;
        let mut done: usize = 0;
        let mut is_first = true;
        for (at, range) in remote.ranges_from(0).enumerate() {
            let region = match first.take() {
                Some(region) => region,
                None => regions.find(range.key, self.id(), moment)?,
            };
            let start = region.check(region.len(), range, access, request.auth_key)?;
            done = done.wrapping_add(act(&region, start, range.len)?);
            let next = at.wrapping_add(1);
            let counts = region.counts() && !remote.has_key_from(next, range.key);
            if next == remote.count() || counts {
                // Triggers may run.
                irqs.end();
            }
            if counts {
                // The very region that was used, which cannot be closed before this.
                region.count(Self::writes(request), is_first);
                is_first = false;
            }
        }
        irqs.end();
        Ok(done)
    }

    /// Reads or writes memory regions; `EHOSTUNREACH` if it was not to `go_on`, `EKEYREJECTED` if one of
    /// them was closed before its end. An atomic operation is short, and goes on in that case.
    fn rma(
        &self,
        request: &Request,
        allowed: AllowedRanges<'_>,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
        go_on: impl Fn() -> bool,
    ) -> Result<usize> {
        let write = Self::writes(request);
        let mut source = payload.source.cursor(0);
        let mut target = payload.target.cursor(0);
        self.for_each_range(request, allowed, irqs, |region, start, len| {
            let check = |done: usize| -> Result {
                check_sides(&go_on)?;
                // Whoever closes the region cannot be killed while that waits, which is not to be for more
                // than a chunk. When the first one begins the region has just been found.
                if done != 0 && region.is_closing() {
                    return Err(EKEYREJECTED.into());
                }
                Ok(())
            };
            if write {
                copy(&mut region.target(start)?, &mut source, len, check)
            } else {
                copy(&mut target, &mut region.source(start), len, check)
            }
        })
    }

    /// Changes elements of memory regions.
    fn atomic(
        &self,
        request: &Request,
        allowed: AllowedRanges<'_>,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
        atomics: Atomics,
    ) -> Result<usize> {
        let size = atomics.size();
        let mut operands = payload.source.cursor(0);
        let mut compare = payload.compare.cursor(0);
        let mut results = payload.target.cursor(0);
        let stripes = &self.config.node.stripes;
        if atomics.is_read_only() {
            return self.for_each_range(request, allowed, irqs, |region, start, len| {
                let mut source = region.source(start);
                let done = stripes.for_each_chunk(&mut source, len, size, |source, count| {
                    for _ in 0..count {
                        memory::transfer(&mut results, source, size);
                    }
                });
                Ok(done)
            });
        }
        self.for_each_range(request, allowed, irqs, |region, start, len| {
            let mut target = region.target(start)?;
            // Elements change one after the other, in order; between chunks of them others may.
            let done = stripes.for_each_chunk(&mut target, len, size, |target, count| {
                for _ in 0..count {
                    let mut old = [0; 8];
                    let mut operand = [0; 8];
                    let mut with = [0; 8];
                    let mut place = target.clone();
                    if let Some(old) = old.get_mut(..size) {
                        target.read(old);
                    }
                    if let Some(operand) = operand.get_mut(..size) {
                        operands.read(operand);
                    }
                    if let Some(with) = with.get_mut(..size) {
                        compare.read(with);
                    }
                    if let Some(new) = atomic::apply(atomics, old, operand, with) {
                        place.write(new.get(..size).unwrap_or(&[]));
                    }
                    if atomics.call() != AtomicCall::Plain {
                        results.write(old.get(..size).unwrap_or(&[]));
                    }
                }
            });
            Ok(done)
        })
    }

    /// `EAGAIN` if nothing more is to be posted, as entries are behind the ring of the completion
    /// queue, or if a post is to be refused on demand.
    pub(crate) fn check_post(&self) -> Result {
        self.config.completer.check_room()?;
        let faults = &self.config.node.faults;
        if faults.any() {
            faults.check_post(self.config.nic)?;
        }
        Ok(())
    }

    /// Posts a receive.
    pub(crate) fn post(&self, posted: Entry<Posted>) -> Result {
        if self.is_closed() {
            return Err(EOPBADSTATE.into());
        }
        self.config.queue.post(posted)
    }

    /// Returns whether so many have fired and wait for room that no more are to be submitted.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.config.queue.is_backed_up()
    }

    /// Posts a receive that was prepared when it was submitted; for `begun` see
    /// [`ReceiveQueue::post_fired`].
    pub(crate) fn post_fired(
        &self,
        posted: Entry<Posted>,
        begun: &dyn Fn() -> bool,
    ) -> Option<Entry<Posted>> {
        self.config.queue.post_fired(posted, begun)
    }

    /// Ends a receive that was never posted, reporting that it was cancelled.
    pub(crate) fn cancel_fired(&self, posted: Entry<Posted>) {
        self.report_cancelled(posted);
    }

    /// Looks for a tagged message, and reports the result by a completion.
    pub(crate) fn peek(this: &Arc<Self>, wanted: Entry<Posted>) -> Result {
        if let Some((wanted, found)) = this.config.queue.peek(this, wanted)? {
            this.report_peeked(wanted, found);
        }
        Ok(())
    }

    /// Drops the message that was set aside for a context; reports that there is none if it is gone, or
    /// never was there.
    pub(crate) fn discard_aside(&self, wanted: Entry<Posted>) {
        // The sender waits for the thread that claims its operation.
        let _preemption = NoPreemption::begin();
        let inbound = self.config.queue.take_aside(wanted.context);
        let found = inbound.and_then(|inbound| {
            let origin = inbound.into_inner().origin;
            let request = *origin.request();
            if !origin.claim() {
                // The sender has given it up meanwhile.
                return None;
            }
            let response = Response::done(request.len);
            origin.respond(response, &mut Budget::of_caller());
            Some(request)
        });
        self.report_peeked(wanted, found);
    }

    /// Receives the message that was set aside for a context; reports that there is none if it is gone,
    /// or never was there.
    pub(crate) fn receive_aside(this: &Arc<Self>, wanted: Entry<Posted>) -> Result {
        let Some(receiver) = Self::enter(this.clone()) else {
            wanted.into_inner().give_up();
            return Err(EOPBADSTATE.into());
        };
        // As in `discard_aside`.
        let _preemption = NoPreemption::begin();
        let inbound = this.config.queue.take_aside(wanted.context);
        let Some(inbound) = inbound.filter(|inbound| inbound.origin.claim()) else {
            // A receive is counted, unlike a look.
            this.report_found(unused(wanted), None);
            return Ok(());
        };
        let task = Task::Receive(receiver, Match::One(wanted));
        Self::deliver(Accepted::new(inbound, task), &mut Budget::of_caller());
        Ok(())
    }

    /// Reports the result of a look by a completion, whether one was asked for or not.
    pub(crate) fn report_peeked(&self, wanted: Entry<Posted>, found: Option<Request>) {
        let mut spec = unused(wanted);
        // To look is not to receive.
        spec.manner.counted = false;
        self.report_found(spec, found);
    }

    /// Reports which message was found, or that there is none.
    fn report_found(&self, spec: CompletionSpec, found: Option<Request>) {
        let mut flags = CompletionFlags::TAGGED | CompletionFlags::RECV;
        let mut outcome = Outcome {
            flags: 0,
            len: 0,
            buf: Context::NONE,
            data: 0,
            tag: 0,
            src_addr: FabricAddr::NOTAVAIL.as_raw(),
        };
        if let Some(request) = &found {
            outcome.len = request.len;
            outcome.tag = request.kind.tag().unwrap_or(0);
            outcome.data = request.data.unwrap_or(0);
            outcome.src_addr = self.source(request).as_raw();
            if request.data.is_some() {
                flags = flags | CompletionFlags::REMOTE_CQ_DATA;
            }
        }
        outcome.flags = flags.as_raw();
        let failure = found.is_none().then(|| Failure {
            err: Error::from(ENOMSG).to_errno().saturating_neg(),
            ..Failure::NONE
        });
        self.config.completer.end(
            CountedEvent::Receive,
            spec,
            EntryPlace::Nowhere,
            &outcome,
            failure,
        );
    }

    /// Returns the user of its domain, to whom requests of other nodes come.
    pub(crate) fn recipient(&self) -> Recipient {
        Recipient::of(self.config.domain.owner())
    }

    /// Takes a request of another node out that waits for a receive, or for room; returns which, or nothing
    /// if it does not wait, or was set aside for somebody.
    pub(crate) fn take_back(&self, origin: &Origin) -> Option<Awaits> {
        if self.parking.withdraw(origin).is_some() {
            return Some(Awaits::Room);
        }
        self.config.queue.take_back(origin)
    }

    /// Cancels a posted receive; `ENOENT` if there is none with that context.
    pub(crate) fn cancel(&self, context: Context) -> Result {
        if self.config.shared {
            // They were not posted here.
            return Err(ENOENT);
        }
        let posted = self.config.queue.take(context).ok_or(ENOENT)?;
        self.report_cancelled(posted);
        Ok(())
    }

    /// Reports that a receive was cancelled.
    fn report_cancelled(&self, posted: Entry<Posted>) {
        // If it has not ended, the last message that is being delivered to it reports.
        let _ = report_cancelled(&self.config.completer, posted);
    }

    /// Returns the address of the peer that a receive accepts from.
    pub(crate) fn directed(&self, addr: FabricAddr, av: &AddressVector) -> Result<Option<Address>> {
        if addr == FabricAddr::UNSPEC || !self.config.caps.contains(Caps::DIRECTED_RECV) {
            return Ok(None);
        }
        let (address, _) = av.resolve(addr).ok_or(EINVAL)?;
        Ok(Some(address))
    }
}

impl Destination for Receiver {
    type Origin = Origin;

    fn try_now(
        this: Arc<Self>,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
    ) -> Option<Response> {
        if !transfer::is_inline(request) {
            return None;
        }
        let Some(receiver) = Receiver::enter(this) else {
            return Some(Response::failed(EHOSTUNREACH));
        };
        if !request.kind.is_matched() {
            // Nothing lies behind a ring with room in it.
            let find_place = || receiver.config.completer.slot();
            return receiver.access(request, remote, payload, find_place, irqs, || true);
        }
        if !receiver.allows(request) {
            return Some(Response::failed(EACCES));
        }
        if receiver.lacks_room() {
            return None;
        }
        let arrival = receiver.config.queue.arrive(&receiver, request);
        match arrival {
            Arrival::Delivery(delivery, place) => {
                Some(receiver.receive(request, payload, delivery, place, irqs, || true))
            }
            Arrival::Refused(error) => Some(Response::failed(error)),
            Arrival::NotReady => None,
        }
    }

    fn accept(this: &Arc<Self>, packet: Packet<Origin>, budget: &mut Budget) {
        let parks = this.lacks_room() && {
            let request = packet.origin.request();
            // A message that is not allowed has no completion here, and is refused.
            match request.kind.is_matched() {
                true => this.allows(request),
                false => this.is_told(&packet.origin),
            }
        };
        let inbound = Inbound::new(this.clone(), packet);
        if parks {
            Self::park(this, inbound, budget);
        } else {
            Self::take_on(this, inbound, budget);
        }
    }

    fn withdraw(&self, origin: &Origin) {
        if self.parking.withdraw(origin).is_some() || self.config.queue.withdraw(origin).is_some() {
            return;
        }
        if !origin.request().kind.is_matched() {
            drop(self.late_accesses.take(origin));
        } else if let Some(accepted) = self.deliveries.take(origin) {
            // A matched message is withdrawn only where its transmit context is being closed: so nothing
            // is copied.
            Self::carry_out(accepted, &mut None, || (), &mut Budget::thread());
        }
    }
}

impl WorkItem for Receiver {
    fn work(&self) -> &Work<Self> {
        &self.unpark
    }

    fn run(this: Arc<Self>) {
        for _ in 0..UNPARKED {
            if this.wait_for_room() {
                return;
            }
            // Messages that have stalled have come first.
            this.config.queue.resume(&this);
            let Some(inbound) = this.parking.take() else {
                return;
            };
            Self::take_on(&this, inbound, &mut Budget::thread());
            cond_resched();
        }
        // Behind others.
        Self::unpark_later(&this);
    }
}

/// Takes on what waits when a completion queue has room again.
pub(crate) struct SpaceWatch(pub(crate) Arc<Receiver>);

impl SpaceListener for SpaceWatch {
    fn space_available(&self) {
        Receiver::unpark_later(&self.0);
    }
}
