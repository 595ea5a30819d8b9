// SPDX-License-Identifier: GPL-2.0

//! Transmit contexts: where operations on peers begin and end.
//!
//! An operation that can be carried out at once is, on the stack of its poster. Any other becomes a
//! [`Transfer`], which is noted here until it ends, so that it can be cancelled and given up.
//! Operations that have to wait before they begin, for a fence or a credit, wait in a queue, and
//! what is posted later waits behind them.

#![forbid(unsafe_code)]

use core::ops::ControlFlow;
use kernel::{
    alloc::Flags,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    address::{
        auth_key::AuthKey,
        native::Address,
        vector::AddressVector, //
    },
    budget::Budget,
    domain::Domain,
    kfi::{
        addr::FabricAddr,
        context::Context,
        errno::EOPBADSTATE,
        fid::Fid,
        flags::{
            Caps,
            CompletionFlags, //
        },
        linux::{
            interrupts::{
                self,
                IrqGuard,
                NoPreemption, //
            },
            queue::{
                Entry,
                EntryQueue,
                Named,
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
        provider::{
            Failure,
            Outcome, //
        }, //
    },
    limits,
    node::Node,
    queue::completion_queue::EntryPlace,
    transfer::{
        self,
        completer::{
            Completer,
            CompletionSpec,
            CountedEvent,
            MemoryUse, //
        },
        credits::Credits,
        late_deliveries::LateDeliveries,
        origin::Origin,
        outstanding::{
            Inside,
            Transfer,
            TransferConfig, //
        }, //
    },
    wire::{
        Packet,
        Payload,
        Request,
        RequestKind,
        Response, //
    }, //
};

mod preparation;

pub(crate) use preparation::Prepared;

/// Operations that are looked at before others get the lock.
const STEP: usize = 64;

/// So many steps more are made where interrupts are disabled.
const FEW_STEPS: usize = 3;

/// So many credits more are taken, if there are any, when one is handed over.
const CREDITS_AT_ONCE: usize = 8;

/// The work item that begins what waits when a credit was handed over, or gives those back that are of no use.
const CREDITED: u64 = 1;

/// Names an operation that was noted: its context, to be found by, and a number of its own.
pub(crate) type NotedName = (usize, usize);

/// A transfer that was noted.
type Note = RBTreeNode<NotedName, Arc<Transfer>>;

/// The configuration that a transmit context is created from.
pub(crate) struct TxConfig {
    /// How its operations are completed.
    pub(crate) completer: Completer,
    /// The domain.
    pub(crate) domain: Arc<Fid<Domain>>,
    /// The node.
    pub(crate) node: Arc<Node>,
    /// Its address, for its peers.
    pub(crate) source: Address,
    /// Its number; 0 for a plain endpoint.
    pub(crate) index: usize,
    /// Where peers are looked up.
    pub(crate) av: Arc<Fid<AddressVector>>,
    /// Peers that have another one cannot be seen. Its operations send it along.
    pub(crate) auth_key: Arc<AuthKey>,
    /// Its capabilities.
    pub(crate) caps: Caps,
    /// How many operations may be under way, in it and in all that share it.
    pub(crate) credits: Arc<Credits>,
    /// Ranges of memory that an operation may have.
    pub(crate) iov_limit: usize,
    /// Ranges of a peer's memory that an operation may have.
    pub(crate) rma_iov_limit: usize,
    /// The most bytes that are sent from a buffer which is free again at once.
    pub(crate) inject_size: usize,
}

/// An operation that is yet to begin.
pub(crate) struct Unsent {
    transfer: Arc<Transfer>,
    /// Memory to note it; none when that was done.
    note: Option<RBTreeNodeReservation<NotedName, Arc<Transfer>>>,
    /// With which others it is held back for more to come (`KFI_MORE`).
    batch: Option<usize>,
    /// It was posted, and has come with a credit.
    posted: bool,
}

impl Unsent {
    /// Returns how many bytes the operation has.
    pub(crate) fn len(&self) -> usize {
        self.transfer.request().len
    }

    /// Makes a packet of it, in its memory.
    fn into_packet(this: Entry<Self>) -> Packet<Origin> {
        let (unsent, memory) = this.empty();
        Packet {
            origin: Origin::Local(unsent.transfer),
            memory,
        }
    }
}

/// Named by the number of the operation.
impl Named for Unsent {
    type Name = usize;

    fn name(&self) -> usize {
        self.transfer.number()
    }
}

/// The operation of which [`Transmitter::cancel`] tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelledBegun {
    /// It is given up, or its target is asked to do so.
    Now,
    /// It is just ending, and completes by itself.
    Ending,
}

/// An operation that is to be given up.
enum Found {
    /// It was claimed.
    Claimed(Arc<Transfer>),
    /// The wire has it, and is to be asked.
    Sent(Arc<Transfer>),
}

impl Found {
    /// Takes an operation, unless another thread ends it or has asked the wire; `report` says whether
    /// its end is to be reported.
    fn take(transfer: &Arc<Transfer>, report: bool) -> Option<Self> {
        if transfer.claim() {
            Some(Self::Claimed(transfer.clone()))
        } else if transfer.recall(report) {
            Some(Self::Sent(transfer.clone()))
        } else {
            None
        }
    }
}

/// An operation that its target has refused, or would have.
struct Refusal {
    transfer: Arc<Transfer>,
    error: Error,
}

/// A message of a transmit context that a work queue of this node is going to receive. Those that are
/// posted later go behind it.
pub(crate) struct LateSend(Arc<Transmitter>);

impl LateSend {
    /// Counts it.
    pub(crate) fn new(transmitter: &Arc<Transmitter>) -> Self {
        // Relaxed: what is posted later comes after this.
        transmitter.late_sends.fetch_add(1, ordering::Relaxed);
        Self(transmitter.clone())
    }
}

impl Drop for LateSend {
    fn drop(&mut self) {
        // Release: see `Transmitter::has_late_sends`.
        self.0.late_sends.fetch_sub(1, ordering::Release);
    }
}

/// The part of a transmit context that its lock protects.
struct State {
    closed: bool,
    /// Operations that are yet to begin.
    waiting: EntryQueue<Unsent>,
    /// How many credits they have. Those that were submitted have come without one, and the first of
    /// all begins with any: so no two of them wait for each other. No more than operations.
    credits: usize,
    /// How many of them were posted, each with a credit. If there are more than credits, the others are lent to what
    /// has fired and begun: see [`Transmitter::keep_lent`].
    posted: usize,
    /// Memory to get into line for a credit that is shared; none while it is in line, or just given one.
    in_line: Option<Vacant>,
    /// A thread is looking after `waiting`.
    draining: bool,
    /// The number of the operations that are held back for others to come (`KFI_MORE`).
    batch: usize,
    /// Operations that have begun, and those that wait.
    noted: RBTree<NotedName, Arc<Transfer>>,
    /// How many were noted.
    notes: usize,
    /// Operations that the work queue ends.
    refused: EntryQueue<Refusal>,
}

/// A transmit context that is enabled.
#[pin_data]
pub(crate) struct Transmitter {
    config: TxConfig,
    /// No other one has it, before or after.
    number: u64,
    /// Operations that have begun and not ended.
    active: Atomic<usize>,
    /// Whether operations are waiting to begin, or are just beginning.
    backlog: Atomic<bool>,
    /// See [`LateSend`].
    late_sends: Atomic<usize>,
    /// Operations on memory regions that the work queue carries out, and that are not told there.
    late_accesses: Arc<LateDeliveries>,
    closed: Atomic<bool>,
    /// A message has come to where [`Self::close`] may have looked for it before.
    look_again: Atomic<bool>,
    #[pin]
    state: SpinLockIrq<State>,
    #[pin]
    idle: WaitQueue,
    #[pin]
    work: Work<Transmitter>,
    /// See [`CREDITED`].
    #[pin]
    credited: Work<Transmitter, CREDITED>,
}

impl Transmitter {
    /// Creates a transmit context for as many operations at a time as there are credits.
    pub(crate) fn new(config: TxConfig) -> Result<Arc<Self>> {
        let late_accesses = LateDeliveries::new(&config.domain)?;
        let in_line = if config.credits.is_shared() {
            Some(Vacant::new(GFP_KERNEL)?)
        } else {
            None
        };
        let number = config.node.number_transmitter();
        Arc::pin_init(
            pin_init!(Self {
                config,
                number,
                active: Atomic::new(0),
                backlog: Atomic::new(false),
                late_sends: Atomic::new(0),
                late_accesses,
                closed: Atomic::new(false),
                look_again: Atomic::new(false),
                state <- new_spinlock_irq!(
                    State {
                        closed: false,
                        waiting: EntryQueue::new(),
                        credits: 0,
                        posted: 0,
                        in_line,
                        draining: false,
                        batch: 0,
                        noted: RBTree::new(),
                        notes: 0,
                        refused: EntryQueue::new(),
                    },
                    "kfi_soft::Transmitter::state"
                ),
                idle <- WaitQueue::new(c"kfi_soft::Transmitter::idle", static_lock_class!()),
                work <- new_work!("kfi_soft::Transmitter::work"),
                credited <- new_work!("kfi_soft::Transmitter::credited"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a number that no other transmit context has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the bytes of its authorization key.
    pub(crate) fn auth_key(&self) -> &[u8] {
        self.config.auth_key.bytes()
    }

    /// Returns the completer of its operations.
    pub(crate) fn completer(&self) -> &Completer {
        &self.config.completer
    }

    /// Returns its operations on memory regions that the work queue carries out, and that are not told
    /// there.
    pub(crate) fn late_accesses(&self) -> &Arc<LateDeliveries> {
        &self.late_accesses
    }

    /// Returns whether requests may go to other nodes.
    pub(crate) fn has_network(&self) -> bool {
        self.config.node.has_network()
    }

    /// Returns the domain.
    pub(crate) fn domain(&self) -> &Arc<Fid<Domain>> {
        &self.config.domain
    }

    /// Turns a checked operation into one that may wait; `EAGAIN` if it has memory of the reserve, which
    /// is not for those.
    pub(crate) fn pack(
        this: &Arc<Self>,
        prepared: Prepared<'_>,
        gfp: Flags,
    ) -> Result<Entry<Unsent>> {
        let Prepared { mut config, .. } = prepared;
        if config.remote.is_reserved() || config.memory.is_reserved() {
            return Err(EAGAIN);
        }
        config.manner.memory = this.config.completer.memory(gfp)?;
        let transfer = Transfer::new(this.clone(), config, gfp).map_err(enomem_to_eagain)?;
        Entry::new(
            Unsent {
                note: Some(RBTreeNodeReservation::new(gfp).map_err(|_| EAGAIN)?),
                transfer,
                batch: None,
                posted: false,
            },
            gfp,
        )
        .map_err(enomem_to_eagain)
    }

    /// Begins an operation. The caller is not preempted: a peer's receive is in its hands until the end is
    /// reported.
    ///
    /// Not in line, as then what was prepared, which is large, would be moved.
    #[inline(never)]
    pub(crate) fn start(this: &Arc<Self>, prepared: Prepared<'_>) -> Result {
        let ret = Self::start_now(this, prepared);
        if ret == Err(EAGAIN) {
            // None can be posted, so nothing is held back for others.
            this.let_go();
        }
        ret
    }

    /// Returns whether others may wait for the credits that its operations give back.
    pub(crate) fn shares_credits(&self) -> bool {
        self.config.credits.is_shared()
    }

    /// Gives back the credit of an operation that has not begun.
    #[cold]
    fn undo(self: &Arc<Self>, error: Error) -> Error {
        self.config.credits.give();
        // Relaxed: pairs with `queue_up`, store before load on both sides. A thread may have
        // found no credit because of this one.
        if self.backlog.load(ordering::Relaxed) {
            self.drain(&mut Budget::of_caller());
        }
        error
    }

    /// Begins an operation, if there is room for it.
    fn start_now(this: &Arc<Self>, prepared: Prepared<'_>) -> Result {
        let node = &this.config.node;
        let adverse = node.faults.any();
        if adverse {
            node.faults.check_post(this.config.source.nic())?;
        }
        this.config.completer.check_room()?;
        if !this.config.credits.take() {
            return Err(EAGAIN);
        }
        // Relaxed: close waits for the threads that are posting.
        if this.closed.load(ordering::Relaxed) {
            return Err(this.undo(EOPBADSTATE.into()));
        }

        // Acquire: what was posted earlier has begun.
        if prepared.more || prepared.config.fence || this.backlog.load(ordering::Acquire) {
            return Self::start_behind(this, prepared);
        }
        // Full: seen by a fence that is posted later.
        this.active.fetch_add(1, ordering::Full);
        let request = &prepared.config.request;
        // Packets only are held, go behind others, or to other nodes.
        let distant = node.is_distant(request);
        let place = if adverse || distant || (request.kind.is_matched() && this.has_late_sends()) {
            None
        } else {
            // Without a slot it goes as a packet, which has memory for its completion.
            this.config.completer.slot()
        };
        // Once for all locks of something small, in one place; not where a credit is handed over to
        // others at its end.
        let is_short = transfer::is_small(request) && prepared.config.remote.count() <= 1;
        let mut irqs = if is_short && !this.config.completer.counts() && !this.shares_credits() {
            IrqGuard::begin()
        } else {
            IrqGuard::none()
        };
        let ended = place.and_then(|place| {
            let TransferConfig {
                request,
                memory,
                remote,
                ..
            } = &prepared.config;
            let response = node.try_now(request, remote, Payload::of(memory), &mut irqs)?;
            Some((place, response))
        });
        let Some((place, response)) = ended else {
            if !distant {
                irqs.end();
            }
            return Self::start_packet(this, prepared);
        };
        let spec = CompletionSpec {
            of: MemoryUse::Ended(prepared.config.memory.end()),
            manner: prepared.config.manner,
        };
        this.config.credits.give();
        this.report(&prepared.config.request, spec, place, response);
        irqs.end();
        this.ended_here(None);
        Ok(())
    }

    /// Begins an operation that has a credit and is counted, and that cannot be carried out at once.
    #[inline(never)]
    fn start_packet(this: &Arc<Self>, prepared: Prepared<'_>) -> Result {
        let mut unsent = match Self::pack(this, prepared, GFP_NOWAIT) {
            Ok(unsent) => unsent,
            Err(error) => {
                this.config.credits.give();
                this.ended(None);
                return Err(error);
            }
        };
        this.state.lock().note(&mut unsent);
        let packet = Unsent::into_packet(unsent);
        Node::send(&this.config.node, packet, &mut Budget::of_caller());
        Ok(())
    }

    /// Lets an operation that has a credit wait behind others, or for others.
    #[inline(never)]
    fn start_behind(this: &Arc<Self>, prepared: Prepared<'_>) -> Result {
        let more = prepared.more;
        let unsent = Self::pack(this, prepared, GFP_NOWAIT).map_err(|error| this.undo(error))?;
        this.queue_up(unsent, true, more, &mut Budget::of_caller(), || false)
            .map_err(|(error, unsent)| {
                drop(unsent);
                this.undo(error)
            })
    }

    /// Returns whether so many have fired and wait for room that no more are to be submitted.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.state.lock().waiting.len() >= limits::MAX_FIRED
    }

    /// Begins an operation that was packed when it was submitted; it waits for room if there is none.
    /// Given up if the context is closed.
    ///
    /// `begun` is called once, with the lock held that makes it to be found here: if it says so, the
    /// operation is cancelled instead.
    pub(crate) fn start_fired(this: &Arc<Self>, unsent: Entry<Unsent>, begun: &dyn Fn() -> bool) {
        match this.queue_up(unsent, false, false, &mut Budget::due(), begun) {
            Ok(()) => {}
            Err((error, unsent)) if error == ECANCELED => {
                Self::cancel_fired(this, unsent);
            }
            Err((_, unsent)) => drop(unsent),
        }
    }

    /// Lets an operation wait behind those that wait, with a credit if it has one (`credited`). Gives it
    /// back, and leaves that to the caller, if the context is closed.
    ///
    /// With `more` it is held back until one comes without that, or no other may come. `begun` is
    /// called with the lock held; if it says so, the operation is given back with `ECANCELED`.
    fn queue_up(
        self: &Arc<Self>,
        mut unsent: Entry<Unsent>,
        credited: bool,
        more: bool,
        budget: &mut Budget,
        begun: impl FnOnce() -> bool,
    ) -> core::result::Result<(), (Error, Entry<Unsent>)> {
        {
            let mut state = self.state.lock();
            let cancelled = begun();
            if state.closed {
                return Err((EOPBADSTATE.into(), unsent));
            }
            if cancelled {
                return Err((ECANCELED, unsent));
            }
            state.credits = state.credits.wrapping_add(usize::from(credited));
            state.posted = state.posted.wrapping_add(usize::from(credited));
            unsent.posted = credited;
            state.note(&mut unsent);
            if more && !self.config.credits.is_spent() {
                unsent.batch = Some(state.batch);
            } else {
                // And with it those before.
                state.batch = state.batch.wrapping_add(1);
            }
            state.waiting.push_named(unsent);
            // Release: a thread that sees it set finds the operation under the lock.
            self.backlog.store(true, ordering::Release);
        }
        // See `ended`: one of us sees what the other did.
        // See `qemu-test/litmus/KFI-transmit-fence.litmus` and
        // `qemu-test/litmus/KFI-transmit-credit.litmus`.
        smp_mb(ordering::Full);
        self.drain(budget);
        Ok(())
    }

    /// Lets operations begin that are held back for others, as these cannot come.
    pub(crate) fn let_go(self: &Arc<Self>) {
        // Relaxed: set by the threads that have posted what is held back.
        if !self.backlog.load(ordering::Relaxed) {
            return;
        }
        {
            let mut state = self.state.lock();
            state.batch = state.batch.wrapping_add(1);
        }
        self.drain(&mut Budget::of_caller());
    }

    /// Hands over a credit that was given back, and the memory to get into line again; `false` if it
    /// is of no use here. From any context, without its lock.
    pub(super) fn credit(self: &Arc<Self>, in_line: Vacant) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            drop(in_line);
            return false;
        }
        state.in_line = Some(in_line);
        if !self.wants_credit(&state) {
            return false;
        }
        state.credits = state.credits.wrapping_add(1);
        // In line again for the next one, before others come.
        for _ in 0..CREDITS_AT_ONCE {
            let credits = &self.config.credits;
            if !self.wants_credit(&state) || !credits.take_or_wait(self, &mut state.in_line) {
                break;
            }
            state.credits = state.credits.wrapping_add(1);
        }
        // Under the lock: `close` cancels it after it has set that.
        self.late_accesses
            .work_queue()
            .queue::<_, CREDITED>(self.clone());
        true
    }

    /// Returns whether the first operation that waits has to wait for the end of others: that has this look for a credit
    /// then.
    fn is_fenced(&self, state: &State) -> bool {
        // Acquire: what was done before has ended.
        state
            .waiting
            .front()
            .is_some_and(|front| front.transfer.fence())
            && self.active.load(ordering::Acquire) != 0
    }

    /// Returns whether a credit that others may have is of use here: those that have waited for one may have been
    /// cancelled, and what has come since may have a fence.
    fn wants_credit(&self, state: &State) -> bool {
        state.credits < state.waiting.len() && !self.is_fenced(state)
    }

    /// Keeps the credit of an operation that has ended for one that was posted, if one of those has lent its own;
    /// returns whether it does. Else it is to be given back without the lock.
    fn keep_lent(&self, state: &mut State) -> bool {
        // What waits when the context is closed never begins.
        let keeps = state.posted > state.credits && !state.closed;
        state.credits = state.credits.wrapping_add(usize::from(keeps));
        if keeps && state.credits >= state.waiting.len() {
            self.leave_if_served(state);
        }
        keeps
    }

    /// Gets out of the line if another credit is of no use here.
    fn leave_if_served(&self, state: &mut State) {
        if state.in_line.is_none() && !self.wants_credit(state) {
            state.in_line = self.config.credits.leave(self);
        }
    }

    /// Returns how many credits are of use here, those that were lent left out: where a fence keeps the first operation
    /// those that were posted keep theirs (`fenced`: if others may have the rest), else each has one.
    fn kept(&self, state: &State, fenced: bool) -> usize {
        if fenced && !state.closed && self.is_fenced(state) {
            state.posted
        } else {
            state.waiting.len()
        }
    }

    /// Takes out the credits beyond those that are `kept`, and gets out of the line if another one were of no use;
    /// returns how many are to be given back without the lock. There are many where a fence keeps what they were
    /// handed over for: the work queue gives those back that are more than `most`.
    fn take_spare(self: &Arc<Self>, state: &mut State, kept: usize, most: usize) -> usize {
        let all = state.credits.saturating_sub(kept);
        let spare = all.min(most);
        state.credits = state.credits.wrapping_sub(spare);
        // Not once it is closed: then no more are kept than operations wait, each of which takes its own out.
        if spare < all && !state.closed {
            // Under the lock: `close` cancels it after it has set that.
            self.late_accesses
                .work_queue()
                .queue::<_, CREDITED>(self.clone());
        }
        self.leave_if_served(state);
        spare
    }

    /// Gives so many credits back. Without the lock.
    fn give(&self, spare: usize) {
        for _ in 0..spare {
            self.config.credits.give();
        }
    }

    /// Begins what waits, as far as it can and may, and leaves the rest to the work queue.
    ///
    /// The caller is not preempted, as others leave to it what they bring. On a realtime kernel it could be, and
    /// leaves all to the work queue.
    fn drain(self: &Arc<Self>, budget: &mut Budget) {
        if !cfg!(CONFIG_PREEMPT_RT) {
            self.begin_waiting(budget);
            return;
        }
        let state = self.state.lock();
        // Under the lock: `close` cancels it after it has set that.
        if !state.closed {
            self.late_accesses.work_queue().queue::<_, 0>(self.clone());
        }
    }

    /// Begins what waits, unless another thread does: see [`Self::drain`].
    fn begin_waiting(self: &Arc<Self>, budget: &mut Budget) {
        let _preemption = NoPreemption::begin();
        let most = most_spare();
        loop {
            let unsent = {
                let mut state = self.state.lock();
                // Operations that wait when the context is closed are given up, not begun: those
                // they have waited for may have been given up too.
                if state.draining || state.closed {
                    return;
                }
                let Some(front) = state.waiting.front() else {
                    // Release: what was waiting has begun.
                    // See `qemu-test/litmus/KFI-transmit-begun.litmus`.
                    self.backlog.store(false, ordering::Release);
                    return;
                };
                if front.batch == Some(state.batch) {
                    return;
                }
                let request = front.transfer.request();
                let (len, matched) = (request.len, request.kind.is_matched());
                if self.is_fenced(&state) {
                    let kept = self.kept(&state, self.shares_credits());
                    let spare = self.take_spare(&mut state, kept, most);
                    drop(state);
                    if spare != 0 {
                        // Each may be handed over.
                        budget.end_section();
                        self.give(spare);
                    }
                    return;
                }
                // Before the budget is asked: nobody passes it until the work queue has its turn.
                if state.credits == 0 {
                    let credits = &self.config.credits;
                    if !credits.take_or_wait(self, &mut state.in_line) {
                        return;
                    }
                    state.credits = 1;
                }
                if budget.is_comparing() || !budget.spend_operation(len, matched) {
                    // Under the lock: `close` cancels it after it has set that.
                    self.late_accesses.work_queue().queue::<_, 0>(self.clone());
                    return;
                }
                let Some(unsent) = state.waiting.pop_front() else {
                    return;
                };
                state.credits = state.credits.wrapping_sub(1);
                state.posted = state.posted.wrapping_sub(usize::from(unsent.posted));
                state.draining = true;
                // Full: seen by a fence that comes later. Under the lock: a thread that gives up
                // what does not wait any more finds it counted.
                self.active.fetch_add(1, ordering::Full);
                unsent
            };
            Node::send(&self.config.node, Unsent::into_packet(unsent), budget);
            self.state.lock().draining = false;
        }
    }

    /// Ends an operation that was claimed, and from which `inside` was taken.
    pub(crate) fn end(
        self: &Arc<Self>,
        transfer: &Arc<Transfer>,
        inside: Option<Inside>,
        response: Response,
        budget: &mut Budget,
    ) {
        // First: a thread that has seen the completion does not find it any more.
        let (kept, noted) = {
            let mut state = self.state.lock();
            (self.keep_lent(&mut state), state.forget(transfer))
        };
        drop(noted);
        if self.shares_credits() {
            // Another endpoint takes it.
            budget.end_section();
        }
        if !kept {
            // Before that is reported: then there is room for another one.
            self.config.credits.give();
        }
        if let Some(inside) = inside {
            if self.config.completer.counts() || inside.notifies() {
                // Triggers may run.
                budget.end_section();
            }
            self.report(
                transfer.request(),
                inside.end(),
                EntryPlace::Nowhere,
                response,
            );
        }
        self.ended(Some(budget));
    }

    /// Counts the end of an operation that had begun and has given its credit back; the last thing
    /// that is done about it. Without a `budget` that of the caller is used.
    fn ended(self: &Arc<Self>, budget: Option<&mut Budget>) {
        // It is up to this thread to begin what waits for this end.
        let _preemption = NoPreemption::begin();
        self.ended_here(budget);
    }

    /// As [`Self::ended`], by a thread that is not preempted.
    #[inline]
    fn ended_here(self: &Arc<Self>, budget: Option<&mut Budget>) {
        // Full: pairs with `queue_up`, store before load on both sides.
        self.active.fetch_sub(1, ordering::Full);
        if self.backlog.load(ordering::Relaxed) {
            match budget {
                Some(budget) => {
                    // What waits may be anything.
                    budget.end_section();
                    self.drain(budget);
                }
                None => self.drain(&mut Budget::of_caller()),
            }
        }
        if self.closed.load(ordering::Relaxed) {
            self.idle.wake_up_all();
        }
    }

    /// Reports the end of an operation, in the memory that it has, else in `place`.
    fn report(
        &self,
        request: &Request,
        spec: CompletionSpec,
        place: EntryPlace<'_>,
        response: Response,
    ) {
        let (event, flags) = match request.kind {
            RequestKind::Message => (
                CountedEvent::Send,
                CompletionFlags::MSG | CompletionFlags::SEND,
            ),
            RequestKind::Tagged { .. } => (
                CountedEvent::Send,
                CompletionFlags::TAGGED | CompletionFlags::SEND,
            ),
            RequestKind::Write => (
                CountedEvent::Write,
                CompletionFlags::RMA | CompletionFlags::WRITE,
            ),
            RequestKind::Read => (
                CountedEvent::Read,
                CompletionFlags::RMA | CompletionFlags::READ,
            ),
            RequestKind::TaggedWrite { .. } => (
                CountedEvent::Write,
                CompletionFlags::TAGGED
                    | CompletionFlags::RMA
                    | CompletionFlags::WRITE
                    | CompletionFlags::SEND,
            ),
            RequestKind::TaggedRead { .. } => (
                CountedEvent::Read,
                CompletionFlags::TAGGED
                    | CompletionFlags::RMA
                    | CompletionFlags::READ
                    | CompletionFlags::SEND,
            ),
            RequestKind::Atomic(atomics) => match atomics.call() {
                crate::kfi::provider::AtomicCall::Plain => (
                    CountedEvent::Write,
                    CompletionFlags::ATOMIC | CompletionFlags::WRITE,
                ),
                _ => (
                    CountedEvent::Read,
                    CompletionFlags::ATOMIC | CompletionFlags::READ,
                ),
            },
        };
        let outcome = Outcome {
            flags: flags.as_raw(),
            // Messages have none: the sender knows.
            len: if event == CountedEvent::Send {
                0
            } else {
                response.len
            },
            buf: Context::NONE,
            data: 0,
            tag: 0,
            src_addr: FabricAddr::NOTAVAIL.as_raw(),
        };
        let failure = (response.err != 0).then_some(Failure {
            err: response.err,
            ..Failure::NONE
        });
        self.config
            .completer
            .end(event, spec, place, &outcome, failure);
    }

    /// Returns whether a work queue is yet to receive messages that were posted before.
    pub(crate) fn has_late_sends(&self) -> bool {
        // Acquire: those have been received.
        self.late_sends.load(ordering::Acquire) != 0
    }

    /// Lets the work queue refuse an operation, unless another thread ends it before.
    pub(crate) fn refuse_later(
        self: &Arc<Self>,
        transfer: Arc<Transfer>,
        error: Error,
        memory: Vacant,
    ) {
        let refusal = memory.fill(Refusal { transfer, error });
        let mut state = self.state.lock();
        if state.closed {
            // `close` ends it, which claims all that nobody has claimed after it has set that; and no
            // work of this context runs any more.
            drop(state);
            drop(refusal);
            return;
        }
        state.refused.push_back(refusal);
        // Under the lock, as in `drain`.
        self.late_accesses.work_queue().queue::<_, 0>(self.clone());
    }

    /// Returns whether it is being closed.
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: a caller that needs more has a lock.
        self.closed.load(ordering::Relaxed)
    }

    /// Lets the thread that closes this look once more for what was matched.
    pub(crate) fn look_again(&self) {
        // Release: what is to be found comes before.
        self.look_again.store(true, ordering::Release);
        self.idle.wake_up_all();
    }

    /// Finds the first transfer, by name from `next` on, of which `find` makes something; others get the
    /// lock meanwhile. `next` is behind those that were looked at.
    fn find_next<T>(
        &self,
        next: &mut NotedName,
        find: impl Fn(&Arc<Transfer>) -> Option<T>,
    ) -> Option<T> {
        loop {
            let mut state = self.state.lock();
            let mut at = state.noted.cursor_lower_bound_mut(next)?;
            for _ in 0..STEP {
                let ((context, number), transfer) = at.current();
                *next = (*context, number.wrapping_add(1));
                if let Some(found) = find(transfer) {
                    return Some(found);
                }
                at = at.move_next()?;
            }
            drop(state);
            cond_resched();
        }
    }

    /// Takes the first transfer with the context of `next`, from there on, that nobody else ends, as
    /// far as one step goes. `found` is set if there are others of which somebody hears, `next` behind
    /// all that were looked at.
    fn take_named(&self, next: &mut NotedName, found: &mut bool) -> ControlFlow<Option<Found>> {
        let context = next.0;
        let mut state = self.state.lock();
        let mut at = state.noted.cursor_lower_bound_mut(next);
        for _ in 0..STEP {
            let Some(cursor) = at.filter(|at| at.current().0 .0 == context) else {
                return ControlFlow::Break(None);
            };
            let ((_, number), transfer) = cursor.current();
            *next = (context, number.wrapping_add(1));
            // One that is ending already completes by itself, if it is reported.
            *found |= transfer.is_told();
            if let Some(taken) = Found::take(transfer, true) {
                return ControlFlow::Break(Some(taken));
            }
            at = cursor.move_next();
        }
        ControlFlow::Continue(())
    }

    /// Cancels an operation; `None` if there is none with that context of which anybody is told.
    pub(crate) fn cancel(self: &Arc<Self>, context: Context) -> Option<CancelledBegun> {
        let number = context.as_number();
        let mut next = (number, 0);
        let mut found = false;
        let mut steps: usize = 0;
        let taken = loop {
            // Others wait for what is claimed.
            let preemption = NoPreemption::begin();
            match self.take_named(&mut next, &mut found) {
                // All that were looked at are ending, and of so many not one is left to others where
                // no other thread would run meanwhile.
                ControlFlow::Continue(()) if steps == FEW_STEPS && interrupts::are_disabled() => {
                    break None;
                }
                ControlFlow::Continue(()) => steps = steps.saturating_add(1),
                ControlFlow::Break(taken) => {
                    break taken.map(|taken| (taken, preemption));
                }
            }
        };
        match taken {
            Some((Found::Claimed(transfer), _preemption)) => {
                self.give_up(&transfer, true);
                Some(CancelledBegun::Now)
            }
            Some((Found::Sent(transfer), _preemption)) => {
                // It is told of when the answer comes.
                self.config.node.withdraw(&Origin::Local(transfer));
                Some(CancelledBegun::Now)
            }
            None => found.then_some(CancelledBegun::Ending),
        }
    }

    /// Ends a transfer that was claimed without carrying it out.
    fn give_up(self: &Arc<Self>, transfer: &Arc<Transfer>, tell: bool) {
        // As in `cancel`.
        let _preemption = NoPreemption::begin();
        // First: as in `end`.
        let most = most_spare();
        let (waiting, spare, noted) = {
            let mut state = self.state.lock();
            let waiting = state.take_waiting(transfer);
            let spare = match &waiting {
                Some(_) => {
                    // Also of an endpoint that has them for itself: others may be posted then, and what has fired looks
                    // for a credit below.
                    let kept = self.kept(&state, true);
                    self.take_spare(&mut state, kept, most)
                }
                None => usize::from(!self.keep_lent(&mut state)),
            };
            (waiting, spare, state.forget(transfer))
        };
        drop(noted);
        // As in `end`, too.
        self.give(spare);
        // The memory is not used from here on, whether that is reported or not.
        let inside = transfer.take();
        if let Some(inside) = inside.filter(|_| tell) {
            let response = Response::failed(ECANCELED);
            self.report(
                transfer.request(),
                inside.end(),
                EntryPlace::Nowhere,
                response,
            );
        }
        match waiting {
            // It had begun.
            None => {
                let origin = Origin::Local(transfer.clone());
                // Wherever it is by now: in the list here, or at its target.
                drop(self.late_accesses.take(&origin));
                self.config.node.withdraw(&origin);
                self.ended(None);
            }
            Some(unsent) => {
                drop(unsent);
                // Operations that have waited behind it may begin.
                self.drain(&mut Budget::of_caller());
            }
        }
    }

    /// Ends an operation that was never begun, reporting that it was cancelled.
    pub(crate) fn cancel_fired(this: &Arc<Self>, unsent: Entry<Unsent>) {
        let transfer = unsent.into_inner().transfer;
        if !transfer.claim() {
            return;
        }
        if let Some(inside) = transfer.take() {
            let response = Response::failed(ECANCELED);
            this.report(
                transfer.request(),
                inside.end(),
                EntryPlace::Nowhere,
                response,
            );
        }
    }

    /// Closes the context: operations that no target has claimed are given up without completions.
    /// Messages that were matched, and not copied yet, fail on both sides, and this ends them instead
    /// of the work queue; what is being copied fails there at the next chunk. The wire gives back
    /// all that it has. May sleep, but not for long.
    pub(crate) fn close(this: &Arc<Self>) {
        // Relaxed: ordered by the lock.
        this.closed.store(true, ordering::Relaxed);
        let in_line = {
            let mut state = this.state.lock();
            state.closed = true;
            this.config.credits.leave(this)
        };
        drop(in_line);
        // Nothing is noted any more.
        let mut next = (0, 0);
        while let Some((found, preemption)) = this.find_next(&mut next, |transfer| {
            // Others wait for what is claimed: from before the lock is released.
            Found::take(transfer, false).map(|found| (found, NoPreemption::begin()))
        }) {
            match found {
                Found::Claimed(transfer) => this.give_up(&transfer, false),
                Found::Sent(transfer) => this.config.node.withdraw(&Origin::Local(transfer)),
            }
            drop(preemption);
            cond_resched();
        }
        // Acquire: they are over.
        // See `qemu-test/litmus/KFI-transmit-close.litmus`.
        let is_over = || this.active.load(ordering::Acquire) == 0;
        while !is_over() {
            // Others end the transfers that they have claimed, or have left them here. A thread that
            // leaves some meanwhile has this look again.
            let mut next = (0, 0);
            while let Some(transfer) = this.find_next(&mut next, |transfer| {
                transfer.is_claimed().then(|| transfer.clone())
            }) {
                // The transfers it takes out fail before anything is copied; others wait for that.
                let preemption = NoPreemption::begin();
                this.config.node.withdraw(&Origin::Local(transfer));
                drop(preemption);
                cond_resched();
            }
            this.idle.wait_uninterruptible(|| {
                // Acquire: what was left is found.
                is_over() || this.look_again.xchg(false, ordering::Acquire)
            });
        }
        this.late_accesses.close();
        this.credited.cancel_sync();
        this.work.cancel_sync();
        let left = {
            let mut state = this.state.lock();
            // Operations that were given up before they were refused: they refer to this context.
            let refused = core::mem::replace(&mut state.refused, EntryQueue::new());
            // Freeing these may sleep; the thread that drops the last reference may not.
            let noted = core::mem::replace(&mut state.noted, RBTree::new());
            (refused, noted)
        };
        drop(left);
    }
}

impl State {
    /// Notes a transfer, so that it can be found.
    fn note(&mut self, unsent: &mut Unsent) {
        // Each is noted once.
        let Some(node) = unsent.note.take() else {
            return;
        };
        self.notes = self.notes.wrapping_add(1);
        // Relaxed: under the lock.
        unsent
            .transfer
            .note_number
            .store(self.notes, ordering::Relaxed);
        let name = (unsent.transfer.context().as_number(), self.notes);
        let node = node.into_node(name, unsent.transfer.clone());
        // A number comes once.
        let _ = self.noted.insert(node);
    }

    /// Forgets a transfer; returns what is to be dropped without the lock.
    fn forget(&mut self, transfer: &Transfer) -> Option<Note> {
        // Relaxed: under the lock.
        let number = transfer.note_number.load(ordering::Relaxed);
        let name = (transfer.context().as_number(), number);
        self.noted.remove_node(&name)
    }

    /// Takes out an operation that waits, if it does.
    fn take_waiting(&mut self, transfer: &Transfer) -> Option<Entry<Unsent>> {
        let number = transfer.number();
        let unsent = self
            .waiting
            .take_named(&number, |unsent| unsent.name() == number)?;
        self.posted = self.posted.wrapping_sub(usize::from(unsent.posted));
        Some(unsent)
    }
}

/// Returns how many credits are given back one after the other at most, by a thread that has no lock: each may take a
/// transmit context out of the line and several credits for it.
fn most_spare() -> usize {
    if interrupts::are_disabled() {
        CREDITS_AT_ONCE
    } else {
        STEP
    }
}

/// Turns `ENOMEM` into `EAGAIN`: a caller that has run out of memory may try again.
pub(crate) fn enomem_to_eagain(error: Error) -> Error {
    if error == ENOMEM {
        EAGAIN
    } else {
        error
    }
}

impl WorkItem for Transmitter {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        this.begin_waiting(&mut Budget::thread());
        loop {
            let refusal = this.state.lock().refused.pop_front();
            let Some(refusal) = refusal else {
                return;
            };
            let Refusal { transfer, error } = refusal.into_inner();
            transfer.refuse(error, &mut Budget::thread());
            cond_resched();
        }
    }
}

impl WorkItem<CREDITED> for Transmitter {
    fn work(&self) -> &Work<Self, CREDITED> {
        &self.credited
    }

    fn run(this: Arc<Self>) {
        loop {
            this.begin_waiting(&mut Budget::thread());
            {
                // As in `drain`.
                let _preemption = NoPreemption::begin();
                let spare = {
                    let mut state = this.state.lock();
                    let kept = this.kept(&state, this.shares_credits());
                    this.take_spare(&mut state, kept, STEP)
                };
                if spare == 0 {
                    return;
                }
                this.give(spare);
            }
            cond_resched();
        }
    }
}
