// SPDX-License-Identifier: GPL-2.0

//! A wire and peers that misbehave on demand.
//!
//! Consumers want to see what theirs does when a fabric does what fabrics do: loses requests, is
//! late, refuses. Each NIC has a knob for each [`Fault`], off until it is turned by debugfs.
//! Injected faults are chosen by count or by a seeded random number, and counted.
//!
//! With any fault turned on, each operation still completes once, one that transmits in bounded time,
//! and requests of one context to another stay in order. An operation that is held here has been noted by its
//! transmit context as any other one under way, so that it can be cancelled, and is given up by
//! close.
//!
//! As long as all is off, all of this costs one load.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        SpinLockIrq, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    }, //
};

use crate::{
    address::native::Address,
    budget::Budget,
    faults::{
        knob::Knob,
        replay::Window, //
    },
    kfi::linux::{
        queue::{
            Entry,
            EntryQueue,
            Named, //
        },
        timeout::jiffies, //
    },
    limits::PORTS,
    module_parameters,
    nic::Nic,
    wire::{
        Initiator,
        Packet,
        Request,
        Wire, //
    }, //
};

/// How often what is held is looked at, in milliseconds.
pub(crate) const TICK_MILLIS: u32 = 4;

/// The longest time for which a request can be held, in milliseconds.
const MAX_MILLIS: u32 = 60_000;

/// The faults that can be injected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A request is lost: it fails with `ETIMEDOUT`, after some time.
    Drop,
    /// A request is late, and so are those behind it.
    Delay,
    /// A request is overtaken by one of another pair of contexts.
    Reorder,
    /// A request arrives twice.
    Duplicate,
    /// A post is refused with `EAGAIN`, and so are some of those that follow.
    Again,
    /// An operation fails.
    Fail,
    /// A receiver seems not to be ready.
    NotReady,
    /// A port of the NIC, or all of them, cannot be reached, nor reach others.
    Vanish,
}

impl Fault {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Drop,
        Self::Delay,
        Self::Reorder,
        Self::Duplicate,
        Self::Again,
        Self::Fail,
        Self::NotReady,
        Self::Vanish,
    ];

    /// Returns the name of its file.
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Self::Drop => c"drop",
            Self::Delay => c"delay",
            Self::Reorder => c"reorder",
            Self::Duplicate => c"duplicate",
            Self::Again => c"again",
            Self::Fail => c"fail",
            Self::NotReady => c"not_ready",
            Self::Vanish => c"vanish",
        }
    }

    /// Returns what its value is called, the value if none is given, and the largest one.
    pub(crate) fn value(self) -> (&'static str, u32, u32) {
        match self {
            Self::Drop => ("ms", 500, MAX_MILLIS),
            Self::Delay => ("ms", 10, MAX_MILLIS),
            Self::Reorder => ("ms", 20, MAX_MILLIS),
            Self::Duplicate => ("value", 0, 0),
            Self::Again => ("burst", 1, 1 << 20),
            Self::Fail => ("errno", EIO.to_errno().unsigned_abs(), 4095),
            Self::NotReady => ("ms", MAX_MILLIS, MAX_MILLIS),
            Self::Vanish => ("port", ALL_PORTS, ALL_PORTS),
        }
    }
}

/// Stands for all ports of a NIC.
const ALL_PORTS: u32 = PORTS as u32;

/// A request that is held.
struct HeldRequest<I> {
    /// Its initiator.
    origin: I,
    /// Until when, in jiffies.
    until: Jiffies,
    /// It goes on as soon as another one has overtaken it.
    overtakable: bool,
    /// The error it fails with then; none if it is carried.
    error: Option<Error>,
}

impl<I> HeldRequest<I> {
    /// Holds a request, in its memory.
    fn new(
        packet: Packet<I>,
        until: Jiffies,
        overtakable: bool,
        error: Option<Error>,
    ) -> Entry<Self> {
        let Packet { origin, memory } = packet;
        memory.fill(Self {
            origin,
            until,
            overtakable,
            error,
        })
    }
}

/// Named by the number of the operation.
impl<I: Initiator> Named for HeldRequest<I> {
    type Name = usize;

    fn name(&self) -> usize {
        self.origin.number()
    }
}

/// The fate of a request.
enum Fate<I> {
    /// It is carried, twice if it has a sequence number.
    Carry(Packet<I>, Option<u64>),
    /// It fails.
    Refuse(Packet<I>, Error),
    /// It is held.
    Hold,
}

/// The knobs of a NIC, by fault.
struct Knobs([Knob; Fault::ALL.len()]);

impl Knobs {
    /// Returns one.
    fn get(&self, fault: Fault) -> Option<&Knob> {
        self.0.get(fault as usize)
    }

    /// Returns one.
    fn get_mut(&mut self, fault: Fault) -> Option<&mut Knob> {
        self.0.get_mut(fault as usize)
    }
}

/// The part that the lock protects.
struct State<I> {
    nics: KVVec<Knobs>,
    /// Requests that are carried later, those of a pair in order.
    held: EntryQueue<HeldRequest<I>>,
    /// Requests that fail later.
    lost: EntryQueue<HeldRequest<I>>,
    /// Requests that were held and are just being carried.
    carrying: Option<I>,
    /// Which of the requests that are carried twice have arrived.
    window: Window,
    /// How many of them have arrived once more.
    suppressed: u64,
}

/// The faults of a node.
#[pin_data]
pub(crate) struct Faults<I> {
    /// [`KNOBS`] and [`HELD`]; 0 as long as all is well.
    on: Atomic<u32>,
    #[pin]
    state: SpinLockIrq<State<I>>,
}

/// A knob is on.
const KNOBS: u32 = 1 << 0;
/// Requests are held, and others may have to wait behind them.
const HELD: u32 = 1 << 1;

/// Returns whether a time has come.
fn is_over(until: Jiffies, now: Jiffies) -> bool {
    // Jiffies wrap.
    until.wrapping_sub(now).cast_signed() <= 0
}

/// Returns the time in so many milliseconds.
fn after(now: Jiffies, millis: u32) -> Jiffies {
    // One more, as part of this one is over.
    now.wrapping_add(msecs_to_jiffies(millis)).wrapping_add(1)
}

/// Returns whether two requests go from one context to another one.
fn are_pair<I: Initiator>(one: &I, other: &I) -> bool {
    let (to, other_to) = (one.request(), other.request());
    one.lane() == other.lane()
        && to.destination == other_to.destination
        && to.context == other_to.context
}

impl<I: Initiator> State<I> {
    /// Asks a knob.
    fn strike(&mut self, nic: u32, fault: Fault) -> Option<u32> {
        let knobs = self.nics.get_mut(Nic::new(nic)?.index())?;
        knobs.get_mut(fault)?.strike()
    }

    /// Returns whether an address cannot be reached.
    fn has_vanished(&mut self, address: Address) -> bool {
        let its = |port: u32| port == ALL_PORTS || port == u32::from(address.port());
        let knob = Nic::new(address.nic())
            .and_then(|nic| self.nics.get_mut(nic.index()))
            .and_then(|knobs| knobs.get_mut(Fault::Vanish));
        knob.is_some_and(|knob| its(knob.value()) && knob.strike().is_some())
    }

    /// Returns until when what is held of the same pair is held, if anything is.
    fn behind(&self, origin: &I, now: Jiffies) -> Option<Jiffies> {
        let same = |held: &&HeldRequest<I>| are_pair(&held.origin, origin);
        // Requests of a pair are held in order: the last one for longest.
        let last = self.held.iter().filter(same).last();
        let carrying = self.carrying.as_ref();
        last.map(|held| held.until).or_else(|| {
            carrying
                .filter(|other| are_pair(*other, origin))
                .map(|_| now)
        })
    }

    /// Decides what becomes of a request.
    fn decide(&mut self, packet: Packet<I>, now: Jiffies) -> Fate<I> {
        let request: Request = *packet.origin.request();
        let nic = request.source.nic();
        if self.has_vanished(request.destination) || self.has_vanished(request.source) {
            return Fate::Refuse(packet, EHOSTUNREACH);
        }
        if let Some(errno) = self.strike(nic, Fault::Fail) {
            let error = Error::from_errno(errno.cast_signed().wrapping_neg());
            return Fate::Refuse(packet, error);
        }
        if let Some(millis) = self.strike(nic, Fault::Drop) {
            return self.lose(packet, after(now, millis), ETIMEDOUT);
        }
        let mut held = None;
        if request.kind.is_matched() {
            if let Some(millis) = self.strike(nic, Fault::NotReady) {
                let limit = *module_parameters::rnr_timeout.value_ref();
                if millis >= limit {
                    return self.lose(packet, after(now, limit), EREMOTEIO);
                }
                held = Some(millis);
            }
        }
        if held.is_none() {
            held = self.strike(nic, Fault::Delay);
        }
        let behind = self.behind(&packet.origin, now);
        // One that overtakes is not overtaken itself, or nobody would go on. A request that waits
        // behind others is not let go before them.
        let overtakes = self
            .held
            .iter()
            .any(|other| other.overtakable && !are_pair(&other.origin, &packet.origin));
        let mut overtakable = false;
        if held.is_none() && behind.is_none() && !overtakes {
            held = self.strike(nic, Fault::Reorder);
            overtakable = held.is_some();
        }
        let until = held.map(|millis| after(now, millis));
        let until = match (until, behind) {
            (None, None) => {
                let sequence = self.sequence(nic);
                return Fate::Carry(packet, sequence);
            }
            (Some(until), None) | (None, Some(until)) => until,
            // The later one.
            (Some(until), Some(behind)) if is_over(behind, until) => until,
            (Some(_), Some(behind)) => behind,
        };
        let held = HeldRequest::new(packet, until, overtakable, None);
        self.held.push_named(held);
        Fate::Hold
    }

    /// Keeps a request until it fails.
    fn lose(&mut self, packet: Packet<I>, until: Jiffies, error: Error) -> Fate<I> {
        let lost = HeldRequest::new(packet, until, false, Some(error));
        self.lost.push_named(lost);
        Fate::Hold
    }

    /// Returns a sequence number for a request that is to be carried twice.
    fn sequence(&mut self, nic: u32) -> Option<u64> {
        if !self.window.has_room() {
            return None;
        }
        self.strike(nic, Fault::Duplicate)?;
        self.window.assign()
    }

    /// Takes the next request whose time has come.
    fn next_due(&mut self, now: Jiffies) -> Option<Entry<HeldRequest<I>>> {
        // Also what its sender has given up, in case nobody has told.
        let is_due = |held: &HeldRequest<I>| is_over(held.until, now) || !held.origin.is_waiting();
        if let Some(lost) = self.lost.take(is_due) {
            return Some(lost);
        }
        let held = self.held.take(is_due)?;
        self.carrying = Some(held.origin.clone());
        Some(held)
    }

    /// Returns what is to be stored in [`Faults::on`].
    fn on(&self) -> u32 {
        let mut on = 0;
        if self.nics.iter().flat_map(|knobs| &knobs.0).any(Knob::is_on) {
            on |= KNOBS;
        }
        if !self.held.is_empty() || !self.lost.is_empty() || self.carrying.is_some() {
            on |= HELD;
        }
        on
    }
}

impl<I: Initiator> Faults<I> {
    /// All knobs of NICs in so many places, off.
    pub(crate) fn new(nics: u32) -> Result<impl PinInit<Self>> {
        let mut knobs = KVVec::with_capacity(usize::try_from(nics)?, GFP_KERNEL)?;
        for _ in 0..nics {
            knobs.push(Knobs(Fault::ALL.map(Knob::off)), GFP_KERNEL)?;
        }
        Ok(pin_init!(Self {
            on: Atomic::new(0),
            state <- new_spinlock_irq!(
                State {
                    nics: knobs,
                    held: EntryQueue::new(),
                    lost: EntryQueue::new(),
                    carrying: None,
                    window: Window::new(),
                    suppressed: 0,
                },
                "kfi_soft::Faults::state"
            ),
        }))
    }

    /// Returns whether anything may go wrong. The one load that this costs if not.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        // Relaxed: a knob works sometime after it was turned; a thread that has posted a request
        // that is held has set it before, and sees it.
        self.on.load(ordering::Relaxed) != 0
    }

    /// Publishes whether anything may go wrong, with the lock held.
    fn publish(&self, state: &State<I>) {
        // Relaxed: see `any`.
        self.on.store(state.on(), ordering::Relaxed);
    }

    /// `EAGAIN` if a post to a NIC is to be refused.
    pub(crate) fn check_post(&self, nic: u32) -> Result {
        match self.state.lock().strike(nic, Fault::Again) {
            Some(_) => Err(EAGAIN),
            None => Ok(()),
        }
    }

    /// Sends a request through all that may happen to it. Returns whether [`Self::go_on`] is to look at
    /// it, in a while.
    #[must_use]
    pub(crate) fn send(
        &self,
        packet: Packet<I>,
        wire: &impl Wire<Origin = I>,
        budget: &mut Budget,
    ) -> bool {
        let fate = {
            let mut state = self.state.lock();
            let fate = state.decide(packet, jiffies());
            self.publish(&state);
            fate
        };
        match fate {
            Fate::Carry(packet, sequence) => {
                let origin = packet.origin.clone();
                self.carry(packet, sequence, wire, budget);
                self.overtaken_by(&origin);
                false
            }
            Fate::Refuse(packet, error) => {
                packet.origin.refuse(error, budget);
                false
            }
            Fate::Hold => true,
        }
    }

    /// Carries a request; twice, if it has a sequence number.
    fn carry(
        &self,
        packet: Packet<I>,
        sequence: Option<u64>,
        wire: &impl Wire<Origin = I>,
        budget: &mut Budget,
    ) {
        let Some(sequence) = sequence else {
            return wire.carry(packet, budget);
        };
        let mut packet = Some(packet);
        for _ in 0..2 {
            if self.has_arrived(sequence) {
                continue;
            }
            if let Some(packet) = packet.take() {
                wire.carry(packet, budget);
            }
        }
    }

    /// Says whether what arrives has arrived before.
    fn has_arrived(&self, sequence: u64) -> bool {
        let mut state = self.state.lock();
        let again = !state.window.accept(sequence);
        if again {
            state.suppressed = state.suppressed.wrapping_add(1);
        }
        again
    }

    /// Lets those go on that were to be overtaken, and were.
    fn overtaken_by(&self, origin: &I) {
        // Relaxed: a request that is not seen waits for another one, or for its time.
        if self.on.load(ordering::Relaxed) & HELD == 0 {
            return;
        }
        let now = jiffies();
        let mut state = self.state.lock();
        while let Some(mut found) = state
            .held
            .find(|held| held.overtakable && !are_pair(&held.origin, origin))
        {
            found.overtakable = false;
            found.until = now;
        }
    }

    /// Gives up a request that its initiator has ended, if it is held.
    pub(crate) fn withdraw(&self, origin: &I) {
        // Relaxed: the thread that holds it has set it, before it was noted that the transfer had
        // begun; and one that is missed is dropped when its time has come.
        if self.on.load(ordering::Relaxed) & HELD == 0 {
            return;
        }
        let number = origin.number();
        let same = |held: &HeldRequest<I>| held.origin.number() == number;
        let withdrawn = {
            let mut state = self.state.lock();
            match state.held.take_named(&number, same) {
                Some(held) => Some(held),
                None => state.lost.take_named(&number, same),
            }
        };
        // Without the lock.
        drop(withdrawn);
    }

    /// Drops what is held. All endpoints are closed.
    pub(crate) fn stop(&self) {
        let rest = {
            let mut state = self.state.lock();
            (
                core::mem::replace(&mut state.held, EntryQueue::new()),
                core::mem::replace(&mut state.lost, EntryQueue::new()),
            )
        };
        // Without the lock. Requests that were given up hold their senders, which hold the node.
        drop(rest);
    }

    /// Carries, or fails, what was held long enough. Returns whether to look again, in a while.
    #[must_use]
    pub(crate) fn go_on(&self, wire: &impl Wire<Origin = I>) -> bool {
        loop {
            let (held, sequence, done) = {
                let mut state = self.state.lock();
                let done = state.carrying.take();
                let held = state.next_due(jiffies());
                let carried = held.as_ref().filter(|held| held.error.is_none());
                let nic = carried.map(|held| held.origin.request().source.nic());
                let sequence = nic.and_then(|nic| state.sequence(nic));
                self.publish(&state);
                (held, sequence, done)
            };
            // Without the lock.
            drop(done);
            let Some(held) = held else {
                break;
            };
            let (held, memory) = held.empty();
            let origin = held.origin;
            let mut budget = Budget::thread();
            if let Some(error) = held.error {
                origin.refuse(error, &mut budget);
            } else if origin.is_waiting() {
                self.carry(Packet { origin, memory }, sequence, wire, &mut budget);
            }
        }
        // Relaxed: a thread that holds one after this has it looked at itself.
        self.on.load(ordering::Relaxed) & HELD != 0
    }

    /// Turns a knob.
    pub(crate) fn turn(&self, nic: usize, fault: Fault, knob: Knob) {
        let mut state = self.state.lock();
        if let Some(place) = state
            .nics
            .get_mut(nic)
            .and_then(|knobs| knobs.get_mut(fault))
        {
            *place = knob;
        }
        self.publish(&state);
    }

    /// Turns all knobs of a place off.
    pub(crate) fn reset(&self, nic: usize) {
        for fault in Fault::ALL {
            self.turn(nic, fault, Knob::off(fault));
        }
    }

    /// Shows a knob.
    pub(crate) fn show(&self, nic: usize, fault: Fault, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (knob, suppressed) = {
            let state = self.state.lock();
            let knob = state.nics.get(nic).and_then(|knobs| knobs.get(fault));
            (knob.copied(), state.suppressed)
        };
        let Some(knob) = knob else {
            return Ok(());
        };
        f.write_fmt(fmt!("{}", knob))?;
        if fault == Fault::Duplicate {
            f.write_fmt(fmt!(" suppressed={}", suppressed))?;
        }
        f.write_str("\n")
    }
}
