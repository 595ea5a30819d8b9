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
//! As long as all is off, all of this costs one load. With a knob on, what is done under the lock takes about as
//! long however much is held: of each pair of contexts the first request is found by its pair and by its time,
//! and those behind it by their pair in order.

#![forbid(unsafe_code)]

use core::cmp::Ordering;
use kernel::{
    fmt,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
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
            ranked::{
                Placed,
                Ranked,
                RankedQueue, //
            },
            Entry,
            Named, //
        },
        timeout::jiffies, //
    },
    limits::PORTS,
    module_parameters,
    nic::Nic,
    wire::{
        ContextIndex,
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

/// Requests of a pair go from one context to another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    lane: u64,
    destination: Address,
    context: ContextIndex,
}

impl Pair {
    /// Returns the pair of a request.
    fn of(origin: &impl Initiator) -> Self {
        let request = origin.request();
        Self {
            lane: origin.lane(),
            destination: request.destination,
            context: request.context,
        }
    }
}

/// A time in jiffies, which wrap: those that are compared are less than half of all apart.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Moment(Jiffies);

impl Moment {
    /// Returns the time in so many milliseconds.
    fn after(self, millis: u32) -> Self {
        // One more, as part of this one is over.
        Self(
            self.0
                .wrapping_add(msecs_to_jiffies(millis))
                .wrapping_add(1),
        )
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.wrapping_sub(other.0).cast_signed().cmp(&0)
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The event for which a request that is held waits.
#[derive(Clone, Copy)]
enum Place {
    /// For its time; then it is carried. It is the first one of its pair.
    First,
    /// For those of its pair with lower numbers, and then for its time.
    Behind(u64),
    /// For its time; then it fails.
    Lost(Error),
}

/// A request that is held.
struct HeldRequest<I> {
    /// Its initiator.
    origin: I,
    /// Until when. No earlier than those of its pair that are before it.
    until: Moment,
    place: Place,
}

impl<I: Initiator> HeldRequest<I> {
    /// Holds a request, in its memory.
    fn new(packet: Packet<I>, until: Moment, place: Place) -> Entry<Placed<Self>> {
        let Packet { origin, memory } = packet;
        memory.fill(Placed::new(Self {
            origin,
            until,
            place,
        }))
    }

    /// Returns whether its time has come, and it waits for nothing else.
    fn is_due(&self, now: Moment) -> bool {
        matches!(self.rank(), Rank::Time(until) if until <= now)
    }
}

/// By what a request is found.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    /// The first one of a pair.
    First(Pair),
    /// Any other one, by the number of the operation.
    Number(usize),
}

impl<I: Initiator> Named for HeldRequest<I> {
    type Name = Name;

    fn name(&self) -> Name {
        match self.place {
            Place::First => Name::First(Pair::of(&self.origin)),
            Place::Behind(_) | Place::Lost(_) => Name::Number(self.origin.number()),
        }
    }
}

/// The order of what is held: what waits for its time alone comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// By its time.
    Time(Moment),
    /// By its number among those of its pair.
    Behind(Pair, u64),
}

impl<I: Initiator> Ranked for HeldRequest<I> {
    type Rank = Rank;

    fn rank(&self) -> Rank {
        match self.place {
            Place::Behind(number) => Rank::Behind(Pair::of(&self.origin), number),
            Place::First | Place::Lost(_) => Rank::Time(self.until),
        }
    }
}

/// Requests that are carried, or fail, later. Those of a pair are carried in order.
struct Held<I> {
    /// Where there are some of a pair behind others, there is a first one.
    requests: RankedQueue<HeldRequest<I>>,
    /// The number of the one that was held last.
    last: u64,
    /// The pair whose first request goes on as soon as one of another pair has overtaken it.
    overtakable: Option<Pair>,
}

impl<I: Initiator> Held<I> {
    /// Nothing.
    fn new() -> Self {
        Self {
            requests: RankedQueue::new(),
            last: 0,
            overtakable: None,
        }
    }

    /// Returns until when what is held of a pair is held, if anything is.
    fn until(&self, pair: Pair) -> Option<Moment> {
        let first = self.requests.get(&Name::First(pair))?;
        // They are held in order: the last one for longest.
        let last = self.requests.last_before(&Rank::Behind(pair, u64::MAX));
        let is_behind =
            |held: &&HeldRequest<I>| matches!(held.rank(), Rank::Behind(of, _) if of == pair);
        Some(last.filter(is_behind).unwrap_or(first).until)
    }

    /// Holds a request until it is carried. It is not held for less long than those of its pair.
    fn hold(&mut self, packet: Packet<I>, until: Moment) {
        let pair = Pair::of(&packet.origin);
        let place = match self.requests.get(&Name::First(pair)) {
            Some(_) => {
                self.last = self.last.wrapping_add(1);
                Place::Behind(self.last)
            }
            None => Place::First,
        };
        self.requests.push(HeldRequest::new(packet, until, place));
    }

    /// Keeps a request until it fails.
    fn lose(&mut self, packet: Packet<I>, until: Moment, error: Error) {
        let lost = HeldRequest::new(packet, until, Place::Lost(error));
        self.requests.push(lost);
    }

    /// Lets the next one of its pair be the first one, if this was that.
    fn left(&mut self, held: &HeldRequest<I>) {
        if !matches!(held.place, Place::First) {
            return;
        }
        let pair = Pair::of(&held.origin);
        if self.overtakable == Some(pair) {
            self.overtakable = None;
        }
        let next = self.requests.take_from(
            &Rank::Behind(pair, 0),
            |next| matches!(next.rank(), Rank::Behind(of, _) if of == pair),
        );
        if let Some(mut next) = next {
            next.place = Place::First;
            self.requests.push(next);
        }
    }

    /// Takes out the request of an operation.
    fn withdraw(&mut self, origin: &I) -> Option<Entry<Placed<HeldRequest<I>>>> {
        let number = origin.number();
        let first = Name::First(Pair::of(origin));
        let is_it = |held: &HeldRequest<I>| held.origin.number() == number;
        let name = if self.requests.get(&first).is_some_and(is_it) {
            first
        } else {
            Name::Number(number)
        };
        let held = self.requests.take(&name)?;
        self.left(&held);
        Some(held)
    }

    /// Takes out the next request whose time has come.
    fn next_due(&mut self, now: Moment) -> Option<Entry<Placed<HeldRequest<I>>>> {
        let held = self.requests.take_first(|held| held.is_due(now))?;
        self.left(&held);
        Some(held)
    }

    /// Lets the one go on that was to be overtaken, and was by another one.
    fn overtaken_by(&mut self, origin: &I, now: Moment) {
        let other = Pair::of(origin);
        let Some(pair) = self.overtakable.take_if(|pair| *pair != other) else {
            return;
        };
        if let Some(mut held) = self.requests.take(&Name::First(pair)) {
            held.until = now;
            self.requests.push(held);
        }
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
    held: Held<I>,
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

    /// Returns until when what goes before others of a pair is held, if anything does.
    fn behind(&self, pair: Pair, now: Moment) -> Option<Moment> {
        let is_carried = || {
            let carrying = self.carrying.as_ref();
            carrying.is_some_and(|other| Pair::of(other) == pair)
        };
        self.held
            .until(pair)
            .or_else(|| is_carried().then_some(now))
    }

    /// Decides what becomes of a request.
    fn decide(&mut self, packet: Packet<I>, now: Moment) -> Fate<I> {
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
            self.held.lose(packet, now.after(millis), ETIMEDOUT);
            return Fate::Hold;
        }
        let mut held = None;
        if request.kind.is_matched() {
            if let Some(millis) = self.strike(nic, Fault::NotReady) {
                let limit = *module_parameters::rnr_timeout.value_ref();
                if millis >= limit {
                    self.held.lose(packet, now.after(limit), EREMOTEIO);
                    return Fate::Hold;
                }
                held = Some(millis);
            }
        }
        if held.is_none() {
            held = self.strike(nic, Fault::Delay);
        }
        let pair = Pair::of(&packet.origin);
        let behind = self.behind(pair, now);
        // One that overtakes is not overtaken itself, or nobody would go on. A request that waits
        // behind others is not let go before them. So there is at most one to be overtaken.
        let overtakes = self.held.overtakable.is_some_and(|other| other != pair);
        if held.is_none() && behind.is_none() && !overtakes {
            held = self.strike(nic, Fault::Reorder);
            if held.is_some() {
                self.held.overtakable = Some(pair);
            }
        }
        let until = held.map(|millis| now.after(millis));
        let until = match (until, behind) {
            (None, None) => {
                let sequence = self.sequence(nic);
                return Fate::Carry(packet, sequence);
            }
            (Some(until), None) | (None, Some(until)) => until,
            // In order.
            (Some(until), Some(behind)) => until.max(behind),
        };
        self.held.hold(packet, until);
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
    fn next_due(&mut self, now: Moment) -> Option<Entry<Placed<HeldRequest<I>>>> {
        let held = self.held.next_due(now)?;
        if !matches!(held.place, Place::Lost(_)) {
            self.carrying = Some(held.origin.clone());
        }
        Some(held)
    }

    /// Returns what is to be stored in [`Faults::on`].
    fn on(&self) -> u32 {
        let mut on = 0;
        if self.nics.iter().flat_map(|knobs| &knobs.0).any(Knob::is_on) {
            on |= KNOBS;
        }
        if !self.held.requests.is_empty() || self.carrying.is_some() {
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
                    held: Held::new(),
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
        let origin = packet.origin.clone();
        let fate = {
            let mut state = self.state.lock();
            let fate = state.decide(packet, Moment(jiffies()));
            self.publish(&state);
            fate
        };
        match fate {
            Fate::Carry(packet, sequence) => {
                self.carry(packet, sequence, wire, budget);
                self.overtaken_by(&origin);
                false
            }
            Fate::Refuse(packet, error) => {
                packet.origin.refuse(error, budget);
                false
            }
            Fate::Hold => {
                // As in `withdraw`: one of the two sees what the other one did.
                // See `qemu-test/litmus/KFI-fault-withdraw.litmus`.
                smp_mb(ordering::Full);
                if !origin.is_waiting() {
                    self.withdraw(&origin);
                }
                true
            }
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

    /// Lets the one go on that was to be overtaken, and was.
    fn overtaken_by(&self, origin: &I) {
        // Relaxed: a request that is not seen waits for another one, or for its time.
        if self.on.load(ordering::Relaxed) & HELD == 0 {
            return;
        }
        let now = Moment(jiffies());
        self.state.lock().held.overtaken_by(origin, now);
    }

    /// Gives up a request that its initiator has ended, if it is held.
    pub(crate) fn withdraw(&self, origin: &I) {
        // Relaxed: it was claimed before, fully ordered. A thread that has it held and is not seen here
        // sees that, and gives it up itself.
        // See `qemu-test/litmus/KFI-fault-withdraw.litmus`.
        if self.on.load(ordering::Relaxed) & HELD == 0 {
            return;
        }
        let withdrawn = self.state.lock().held.withdraw(origin);
        // Without the lock.
        drop(withdrawn);
    }

    /// Drops what is held. All endpoints are closed.
    pub(crate) fn stop(&self) {
        let rest = {
            let mut state = self.state.lock();
            core::mem::replace(&mut state.held, Held::new())
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
                let held = state.next_due(Moment(jiffies()));
                let carried = held.as_ref().and(state.carrying.as_ref());
                let nic = carried.map(|origin| origin.request().source.nic());
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
            let HeldRequest { origin, place, .. } = held.into_inner();
            let mut budget = Budget::thread();
            if let Place::Lost(error) = place {
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

#[kunit_tests(kfi_soft_faults)]
mod tests {
    use super::*;
    use crate::{
        address::auth_key::AuthKeys,
        kfi::{
            linux::queue::Vacant,
            memory::RemoteMemory, //
        },
        owner::Owner,
        wire::{
            LentMemory,
            Payload,
            RequestKind,
            Response, //
        }, //
    };
    use kernel::sync::Arc;

    /// Memory that nobody lends.
    enum NoMemory {}

    impl LentMemory for NoMemory {
        fn payload(&self) -> Payload<'_> {
            match *self {}
        }

        fn responds_shortly(&self) -> bool {
            match *self {}
        }

        fn respond(self, _response: Response, _budget: &mut Budget) {
            match self {}
        }
    }

    /// A message that is never sent.
    struct Message {
        number: usize,
        lane: u64,
        request: Request,
        remote: RemoteMemory,
    }

    #[derive(Clone)]
    struct Sender(Arc<Message>);

    impl Initiator for Sender {
        type Lent = NoMemory;

        fn request(&self) -> &Request {
            &self.0.request
        }

        fn remote(&self) -> &RemoteMemory {
            &self.0.remote
        }

        fn auth_key(&self) -> &[u8] {
            &[]
        }

        fn owner(&self) -> Option<&Arc<Owner>> {
            None
        }

        fn send_out(&self) -> Option<NoMemory> {
            None
        }

        fn is_waiting(&self) -> bool {
            true
        }

        fn number(&self) -> usize {
            self.0.number
        }

        fn lane(&self) -> u64 {
            self.0.lane
        }

        fn refuse(&self, _error: Error, _budget: &mut Budget) {}

        fn refuse_later(self, _error: Error, _memory: Vacant) {}
    }

    /// Jiffies that are about to wrap.
    const NOW: Moment = Moment(Jiffies::MAX.wrapping_sub(5));

    /// Returns the time in so many jiffies.
    fn later(jiffies: Jiffies) -> Moment {
        Moment(NOW.0.wrapping_add(jiffies))
    }

    /// Returns a message from a context to one of three.
    fn message(number: usize, lane: u64) -> Result<Packet<Sender>> {
        let request = Request {
            source: Address::new(0, 1).ok_or(EINVAL)?,
            destination: Address::new(0, 2).ok_or(EINVAL)?,
            context: ContextIndex::Named(usize::try_from(lane % 3)?),
            auth_key: AuthKeys::new()?.find(b""),
            kind: RequestKind::Message,
            data: None,
            len: 0,
        };
        let message = Message {
            number,
            lane,
            request,
            remote: RemoteMemory::collect(0, core::iter::empty(), GFP_KERNEL)?,
        };
        Ok(Packet {
            origin: Sender(Arc::new(message, GFP_KERNEL)?),
            memory: Vacant::new(GFP_KERNEL)?,
        })
    }

    /// Holds a message, for no less long than those before it.
    fn hold(held: &mut Held<Sender>, packet: Packet<Sender>, until: Moment) {
        let behind = held.until(Pair::of(&packet.origin));
        held.hold(packet, behind.map_or(until, |behind| behind.max(until)));
    }

    /// Takes out the next one that is due; returns its number.
    fn due(held: &mut Held<Sender>, now: Moment) -> Option<usize> {
        let due = held.next_due(now)?;
        Some(due.origin.number())
    }

    #[test]
    fn those_of_a_pair_stay_in_order() -> Result {
        let mut held = Held::new();
        for (number, lane, until) in [(1, 7, 9), (2, 7, 3), (3, 8, 6), (4, 7, 12), (5, 7, 0)] {
            hold(&mut held, message(number, lane)?, later(until));
        }
        held.lose(message(6, 7)?, later(7), ETIMEDOUT);
        let pair = Pair::of(&message(0, 7)?.origin);
        assert!(held.until(pair) == Some(later(12)));
        assert_eq!(due(&mut held, later(5)), None);
        // What fails waits for nobody, nor does another pair.
        for number in [3, 6] {
            assert_eq!(due(&mut held, later(8)), Some(number));
        }
        assert_eq!(due(&mut held, later(8)), None);
        for number in [1, 2] {
            assert_eq!(due(&mut held, later(11)), Some(number));
        }
        assert_eq!(due(&mut held, later(11)), None);
        for number in [4, 5] {
            assert_eq!(due(&mut held, later(12)), Some(number));
        }
        assert!(held.until(pair).is_none() && held.requests.is_empty());
        Ok(())
    }

    #[test]
    fn what_is_given_up_keeps_nobody() -> Result {
        // Of four of a pair each one, and one that waits for its end.
        for gone in 1..=5 {
            let mut held = Held::new();
            let mut origins = KVec::new();
            for number in 1..=5 {
                let packet = message(number, 7)?;
                origins.push(packet.origin.clone(), GFP_KERNEL)?;
                match number {
                    5 => held.lose(packet, later(0), ETIMEDOUT),
                    number => hold(&mut held, packet, later(number)),
                }
            }
            let origin = origins.iter().find(|origin| origin.number() == gone);
            let origin = origin.ok_or(EINVAL)?;
            assert!(held.withdraw(origin).is_some());
            assert!(held.withdraw(origin).is_none());
            let last = if gone == 4 { 3 } else { 4 };
            assert!(held.until(Pair::of(origin)) == Some(later(last)));
            for number in [5, 1, 2, 3, 4] {
                if number != gone {
                    assert_eq!(due(&mut held, later(100)), Some(number));
                }
            }
            assert!(held.requests.is_empty());
        }
        Ok(())
    }

    #[test]
    fn one_of_another_pair_overtakes() -> Result {
        let mut held = Held::new();
        let (first, other) = (message(1, 7)?, message(9, 8)?.origin);
        let origin = first.origin.clone();
        held.hold(first, later(50));
        held.overtakable = Some(Pair::of(&origin));
        hold(&mut held, message(2, 7)?, later(0));
        // Not one of its own.
        held.overtaken_by(&origin, NOW);
        assert_eq!(due(&mut held, later(49)), None);
        held.overtaken_by(&other, NOW);
        assert!(held.overtakable.is_none());
        assert_eq!(due(&mut held, NOW), Some(1));
        // The one behind it has been promised a time.
        assert_eq!(due(&mut held, later(49)), None);
        assert_eq!(due(&mut held, later(50)), Some(2));
        // One that is gone is not overtaken.
        held.hold(message(3, 7)?, later(60));
        held.overtakable = Some(Pair::of(&origin));
        assert_eq!(due(&mut held, later(60)), Some(3));
        assert!(held.overtakable.is_none());
        Ok(())
    }

    /// Many, of which a third is given up.
    #[test]
    fn each_comes_once() -> Result {
        const COUNT: usize = 600;
        const LANES: u64 = 7;
        let mut held = Held::new();
        let mut origins = KVVec::new();
        for number in 0..COUNT {
            let random = number.wrapping_mul(7919);
            let packet = message(number, u64::try_from(random)? % LANES)?;
            origins.push(packet.origin.clone(), GFP_KERNEL)?;
            hold(&mut held, packet, later(random % 101));
        }
        for origin in origins.iter().filter(|origin| origin.number() % 3 == 0) {
            assert!(held.withdraw(origin).is_some());
        }
        let mut seen = 0;
        let mut last = [None; LANES as usize];
        for now in 0..=100 {
            while let Some(entry) = held.next_due(later(now)) {
                let number = entry.origin.number();
                assert!(number % 3 != 0);
                let lane = usize::try_from(entry.origin.lane())?;
                let before = last.get_mut(lane).ok_or(EINVAL)?;
                assert!(before.replace(number) < Some(number));
                seen = usize::wrapping_add(seen, 1);
            }
        }
        assert_eq!(seen, COUNT - COUNT / 3);
        assert!(held.requests.is_empty());
        Ok(())
    }
}
