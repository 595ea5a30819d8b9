// SPDX-License-Identifier: GPL-2.0

//! Posted receives and messages that have arrived, and how they find each other.
//!
//! A message takes the first posted receive that wants it, a receive the first message that it
//! wants; both queues are in order. What is found is taken out under the lock and carried out after
//! it. A message that nobody wants yet waits here, with the sender's memory still in use, until
//! somebody wants it or the sender's time is over.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::ordering,
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    }, //
};

use crate::{
    address::Address,
    completion_queue::Space,
    counter::Counter,
    kfi::{
        errno::EOPBADSTATE,
        fid::Context,
        flags::OpFlags,
        hold::Hold,
        memory::{
            Cursor,
            Memory, //
        },
        queue::{
            Entry,
            EntryQueue, //
        },
        timeout::jiffies,
        work_queue::{
            new_work,
            Work,
            WorkItem, //
        }, //
    },
    limits,
    listeners::Room,
    module_parameters,
    multi_buffer::MultiBuffer,
    node::Node,
    receiver::{
        Receiver,
        ReceiverUse, //
    },
    reporter::Ending,
    transfer::Transfer,
    wire::{
        Carried,
        Packet,
        Request,
        RequestKind,
        Response, //
    }, //
};

/// How often messages are tried again for which there was no room in a completion queue.
const RETRY_MILLIS: u32 = 10;

/// A posted receive.
pub(crate) struct Posted {
    /// Where messages go.
    pub(crate) buffer: Buffer,
    /// The tag and the bits that need not match, if it is for tagged messages.
    pub(crate) tag: Option<(u64, u64)>,
    /// Whom it accepts messages from, if not from everybody.
    pub(crate) source: Option<Address>,
    /// What completions tell.
    pub(crate) context: Context,
    /// The flags of the operation.
    pub(crate) flags: OpFlags,
    /// It is deferred work.
    pub(crate) deferred: bool,
    /// The completion counter of deferred work, unless the buffer for several messages has it.
    pub(crate) notify: Option<Hold<Counter>>,
    /// The receive context that it was submitted for, if it was not posted at once.
    pub(crate) fired_for: Option<Arc<Receiver>>,
    /// Names it, if it was not posted at once; else 0.
    pub(crate) number: u64,
}

/// The memory of a posted receive.
pub(crate) enum Buffer {
    /// For one message.
    One(Memory),
    /// For several, with the place of the next one.
    Multi(Arc<MultiBuffer>, usize),
}

/// The place of a message in the memory of a posted receive.
pub(crate) struct Landing {
    target: Target,
    /// Bytes that there is room for.
    pub(crate) room: usize,
    ending: Ending,
}

/// The memory of a landing.
enum Target {
    /// All of it.
    Whole(Memory),
    /// A part, from a place on.
    Part(Arc<MultiBuffer>, usize),
}

impl Landing {
    /// Returns the place in the memory.
    pub(crate) fn cursor(&self, offset: usize) -> Cursor<'_> {
        match &self.target {
            Target::Whole(memory) => memory.cursor(offset),
            Target::Part(buffer, at) => buffer.memory().cursor(at.saturating_add(offset)),
        }
    }

    /// Returns the address, to be told, of a part of a buffer for several messages; else 0.
    pub(crate) fn part_address(&self) -> usize {
        match &self.target {
            Target::Whole(_) => 0,
            Target::Part(buffer, at) => match buffer.memory().address() {
                0 => 0,
                start => start.wrapping_add(*at),
            },
        }
    }

    /// Ends the use of the memory. Returns what the completion has to do.
    pub(crate) fn finish(self) -> Ending {
        let mut ending = self.ending;
        if let Target::Part(buffer, _) = self.target {
            ending.buffer = Some(buffer);
        }
        ending
    }
}

impl Posted {
    /// Returns whether it wants what `request` brings.
    fn wants(&self, request: &Request) -> bool {
        let tag = match (self.tag, request.kind.tag()) {
            (None, None) => true,
            (Some((tag, ignore)), Some(other)) => (tag ^ other) & !ignore == 0,
            _ => false,
        };
        tag && self.source.is_none_or(|source| source == request.source)
    }

    /// Returns what the completion of a message for `receiver` has to do.
    fn ending(&self, receiver: &Receiver) -> Ending {
        let asked = self.flags.contains(OpFlags::COMPLETION);
        Ending {
            context: self.context,
            entry: if self.deferred {
                asked
            } else {
                receiver.reporter().wants_entry(self.flags)
            },
            counted: !self.deferred || asked,
            notify: None,
            buffer: None,
            memory: None,
        }
    }

    /// Sets the completion counter of deferred work.
    pub(crate) fn set_notify(&mut self, notify: Option<Hold<Counter>>) {
        match &self.buffer {
            Buffer::One(_) => self.notify = notify,
            Buffer::Multi(buffer, _) => buffer.set_notify(notify),
        }
    }

    /// Gives it up without a completion.
    pub(crate) fn give_up(self) {
        let notify = match self.buffer {
            Buffer::One(_) => self.notify,
            Buffer::Multi(buffer, _) => buffer.leave().and_then(|released| released.notify),
        };
        if let Some(notify) = &notify {
            notify.release();
        }
    }
}

/// Ends a posted receive without a message: what its completion has to do.
pub(crate) fn unused(posted: Entry<Posted>, receiver: &Receiver) -> Ending {
    let (mut posted, memory) = posted.empty();
    let mut ending = posted.ending(receiver);
    ending.notify = posted.notify.take();
    ending.memory = Some(memory);
    if let Buffer::Multi(buffer, _) = posted.buffer {
        ending.buffer = Some(buffer);
    }
    ending
}

/// How a message was matched, under the lock.
pub(crate) enum Match {
    /// With a receive that is used up.
    One(Entry<Posted>),
    /// With a part of a buffer, maybe its last one.
    Part(Landing, Option<Entry<Posted>>),
}

impl Match {
    /// Makes a landing of it, without the lock. It has memory for its completion if a receive was
    /// used up.
    pub(crate) fn into_landing(self, receiver: &Receiver) -> Landing {
        match self {
            Self::Part(mut landing, exhausted) => {
                if let Some(posted) = exhausted {
                    let (posted, memory) = posted.empty();
                    landing.ending.memory = Some(memory);
                    // Not the last use: the landing is one.
                    posted.give_up();
                }
                landing
            }
            Self::One(posted) => {
                let (mut posted, entry) = posted.empty();
                let mut ending = posted.ending(receiver);
                ending.notify = posted.notify.take();
                ending.memory = Some(entry);
                let memory = match posted.buffer {
                    Buffer::One(memory) => memory,
                    // Buffers for several messages are not used up at once.
                    Buffer::Multi(..) => Memory::NONE,
                };
                Landing {
                    room: memory.len(),
                    ending,
                    target: Target::Whole(memory),
                }
            }
        }
    }
}

/// Why a message was not matched.
#[derive(PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// Nobody wants it yet.
    Unwanted,
    /// Its completion has to wait: entries are behind the ring of the completion queue, or it has
    /// no memory and the ring is full.
    NoRoom,
    /// It is for one operation on memory, and who wants it is a buffer for several messages.
    NoRegion,
    /// The sender has given it up.
    Gone,
}

/// Finds a posted receive for a message and takes it, or the part of it that the message needs.
///
/// `claim` says whether the sender still wants it, and whether there is room for its completion if
/// that does not lie in the memory of the receive.
fn match_posted(
    posted: &mut EntryQueue<Posted>,
    request: &Request,
    receiver: &Receiver,
    claim: impl FnOnce(bool) -> core::result::Result<(), Mismatch>,
) -> core::result::Result<Match, Mismatch> {
    let Some(mut found) = posted.find(|posted| posted.wants(request)) else {
        return Err(Mismatch::Unwanted);
    };
    if receiver.reporter().is_crowded() {
        return Err(Mismatch::NoRoom);
    }
    match &found.buffer {
        Buffer::One(_) => {
            claim(false)?;
            Ok(Match::One(found.take()))
        }
        Buffer::Multi(buffer, next) => {
            if is_access(request) {
                // A region is for one operation.
                return Err(Mismatch::NoRegion);
            }
            let at = *next;
            let (room, exhausted) = buffer.part(at, request.len);
            claim(!exhausted)?;
            let buffer = buffer.clone();
            buffer.enter();
            let landing = Landing {
                room,
                ending: found.ending(receiver),
                target: Target::Part(buffer, at),
            };
            if let Buffer::Multi(_, next) = &mut found.buffer {
                *next = at.saturating_add(request.len);
            }
            Ok(Match::Part(landing, exhausted.then(|| found.take())))
        }
    }
}

/// Claims a message that has memory of its own.
fn claim(transfer: &Transfer) -> core::result::Result<(), Mismatch> {
    if transfer.claim() {
        Ok(())
    } else {
        Err(Mismatch::Gone)
    }
}

/// Receives and messages of one kind, tagged or not.
struct Side {
    posted: EntryQueue<Posted>,
    messages: EntryQueue<Carried>,
    /// A message waits that somebody wants, for whose completion there was no room. While that is
    /// not so, messages that wait are wanted by nobody.
    stalled: bool,
}

impl Side {
    const fn new() -> Self {
        Self {
            posted: EntryQueue::new(),
            messages: EntryQueue::new(),
            stalled: false,
        }
    }

    /// As [`match_posted`], for a message that has just arrived.
    fn match_arrival(
        &mut self,
        request: &Request,
        receiver: &Receiver,
        claim: impl FnOnce(bool) -> core::result::Result<(), Mismatch>,
    ) -> core::result::Result<Match, Mismatch> {
        // What waits for room must not be overtaken by a later one of the same sender.
        let overtakes = self.stalled
            && self.messages.iter().any(|message| {
                let other = message.transfer.request();
                other.source == request.source
                    && other.destination == request.destination
                    && other.context == request.context
                    && self
                        .posted
                        .iter()
                        .any(|posted| posted.wants(other) && posted.wants(request))
            });
        if overtakes {
            return Err(Mismatch::NoRoom);
        }
        match_posted(&mut self.posted, request, receiver, claim)
    }

    /// Takes out the messages that somebody wants, and for whose completions there is room.
    ///
    /// Those for the same receive context wait behind it, but not those for others that share the
    /// queue. `number` tells this sweep from others.
    fn sweep(&mut self, number: usize, swept: &mut Swept) {
        let mut no_room = false;
        loop {
            let Self {
                posted,
                messages,
                stalled,
            } = self;
            let wanted = |message: &Carried| {
                let request = message.transfer.request();
                if no_room && message.is_behind(number) {
                    return false;
                }
                if *stalled {
                    posted.iter().any(|posted| posted.wants(request))
                } else {
                    // Nobody else can want one.
                    posted.back().is_some_and(|posted| posted.wants(request))
                }
            };
            let Some(found) = messages.find(wanted) else {
                *stalled = no_room;
                return;
            };
            let Some(receiver) = found.receiver.as_ref().and_then(Receiver::enter) else {
                // It is being closed.
                swept.unreachable.push_back(found.take());
                continue;
            };
            let transfer = &found.transfer;
            let matched = match_posted(posted, transfer.request(), &receiver, |_| claim(transfer));
            match matched {
                Ok(matched) => {
                    let mut packet = found.take();
                    packet.matched = Some((receiver, matched));
                    swept.landing.push_back(packet);
                }
                Err(Mismatch::NoRoom) => {
                    if !receiver.reporter().starves() {
                        // There is room again.
                        continue;
                    }
                    receiver.stall(number);
                    no_room = true;
                    // What others want may lie further in front.
                    *stalled = true;
                }
                Err(Mismatch::NoRegion) => swept.refused.push_back(found.take()),
                Err(Mismatch::Gone | Mismatch::Unwanted) => swept.gone.push_back(found.take()),
            }
        }
    }
}

/// Messages that were taken out, to be dealt with when the lock was released.
struct Swept {
    /// They land.
    landing: EntryQueue<Carried>,
    /// They name what is no region.
    refused: EntryQueue<Carried>,
    /// Whom they were for is not there any more.
    unreachable: EntryQueue<Carried>,
    /// Their time is over.
    expired: EntryQueue<Carried>,
    /// Their senders have given them up.
    gone: EntryQueue<Carried>,
}

impl Swept {
    const fn new() -> Self {
        Self {
            landing: EntryQueue::new(),
            refused: EntryQueue::new(),
            unreachable: EntryQueue::new(),
            expired: EntryQueue::new(),
            gone: EntryQueue::new(),
        }
    }

    /// Answers those that do not land, and lets the others land.
    fn settle(mut self) {
        while let Some(packet) = self.refused.pop_front() {
            Receiver::refuse(packet, EACCES);
        }
        while let Some(packet) = self.unreachable.pop_front() {
            Receiver::refuse(packet, EHOSTUNREACH);
        }
        while let Some(packet) = self.expired.pop_front() {
            Receiver::refuse(packet, EREMOTEIO);
        }
        while let Some(packet) = self.landing.pop_front() {
            Receiver::land(packet);
        }
    }
}

/// Returns whether a request uses a tagged receive as a memory region.
fn is_access(request: &Request) -> bool {
    matches!(
        request.kind,
        RequestKind::TaggedWrite { .. } | RequestKind::TaggedRead { .. }
    )
}

/// Returns how long messages wait for a receive.
fn rnr_timeout() -> Jiffies {
    msecs_to_jiffies(*module_parameters::rnr_timeout.value_ref())
}

/// What the lock protects.
struct State {
    closed: bool,
    /// Messages without tags.
    plain: Side,
    /// Messages with tags.
    tagged: Side,
    /// Messages that were set aside for a context.
    claimed: EntryQueue<Carried>,
    /// Accesses to memory regions that wait for room for their entries.
    parked: EntryQueue<Carried>,
    /// Deferred receives that have fired and found no room.
    fired: EntryQueue<Posted>,
    /// When somebody looks at what waits, in jiffies.
    watch_at: Option<Jiffies>,
    /// The first of them is being posted.
    reposting: bool,
    /// There is room again for completions: the time of those that have waited for it begins anew.
    resumed: bool,
    /// The number of the last sweep.
    sweeps: usize,
}

impl State {
    fn side(&mut self, tagged: bool) -> &mut Side {
        if tagged {
            &mut self.tagged
        } else {
            &mut self.plain
        }
    }

    /// Lets the time of all messages begin anew.
    fn begin_anew(&self, now: Jiffies) {
        let messages = [&self.plain.messages, &self.tagged.messages, &self.claimed];
        for message in messages.into_iter().flat_map(EntryQueue::iter) {
            // Relaxed: read under the same lock.
            let deadline = now.wrapping_add(rnr_timeout());
            message.transfer.deadline.store(deadline, ordering::Relaxed);
        }
    }

    /// See [`Side::sweep`].
    fn sweep(&mut self, tagged: bool, swept: &mut Swept) {
        // Long before it has come round nobody remembers.
        self.sweeps = self.sweeps.wrapping_add(1);
        let number = self.sweeps;
        self.side(tagged).sweep(number, swept);
    }
}

/// The receives posted to one or, if they share it, several endpoints.
#[pin_data]
pub(crate) struct ReceiveQueue {
    #[pin]
    state: SpinLockIrq<State>,
    /// How many receives may be posted.
    size: usize,
    node: Arc<Node>,
    #[pin]
    watch: Work<ReceiveQueue>,
}

/// What became of a message.
pub(crate) enum Arrival<'a> {
    /// It lands.
    Landing(Landing, Space<'a>),
    /// It has to wait.
    NotReady,
    /// It is refused.
    Refused(Error),
}

impl ReceiveQueue {
    /// A queue for `size` receives.
    pub(crate) fn new(node: Arc<Node>, size: usize) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock_irq!(
                    State {
                        closed: false,
                        plain: Side::new(),
                        tagged: Side::new(),
                        claimed: EntryQueue::new(),
                        parked: EntryQueue::new(),
                        fired: EntryQueue::new(),
                        watch_at: None,
                        reposting: false,
                        resumed: false,
                        sweeps: 0,
                    },
                    "kfi_soft::ReceiveQueue::state"
                ),
                size,
                node,
                watch <- new_work!("kfi_soft::ReceiveQueue::watch"),
            }),
            GFP_KERNEL,
        )
    }

    /// Finds a receive for a message that is to land at once. It lands in a part of a buffer only if
    /// there is room for its completion in the ring.
    pub(crate) fn arrive<'a>(&self, receiver: &'a Receiver, request: &Request) -> Arrival<'a> {
        let mut space = Space::Nowhere;
        let matched = self
            .state
            .lock()
            .side(request.kind.tag().is_some())
            .match_arrival(request, receiver, |needs_room| {
                if needs_room {
                    space = receiver.reporter().slot().ok_or(Mismatch::NoRoom)?;
                }
                Ok(())
            });
        match matched {
            Ok(matched) => Arrival::Landing(matched.into_landing(receiver), space),
            Err(Mismatch::NoRegion) => Arrival::Refused(EACCES),
            Err(_) => Arrival::NotReady,
        }
    }

    /// Takes a message: returns it once it is matched, or keeps it until somebody wants it.
    pub(crate) fn accept(
        self: &Arc<Self>,
        receiver: ReceiverUse,
        mut packet: Packet,
    ) -> Option<Packet> {
        let transfer = packet.transfer.clone();
        let request = *transfer.request();
        packet.receiver = Some(receiver.receiver().clone());

        let mut state = self.state.lock();
        if receiver.is_closed() {
            drop(state);
            transfer.refuse(EHOSTUNREACH);
            return None;
        }
        let side = state.side(request.kind.tag().is_some());
        match side.match_arrival(&request, &receiver, |_| claim(&transfer)) {
            Ok(matched) => {
                drop(state);
                packet.matched = Some((receiver, matched));
                Some(packet)
            }
            Err(Mismatch::NoRegion) => {
                drop(state);
                transfer.refuse(EACCES);
                None
            }
            Err(Mismatch::Gone) => None,
            // Given up meanwhile, by somebody who has not found it here.
            Err(_) if !transfer.is_waiting() => None,
            Err(mismatch @ (Mismatch::Unwanted | Mismatch::NoRoom)) => {
                let timeout = rnr_timeout();
                // Relaxed: read under the same lock.
                transfer
                    .deadline
                    .store(jiffies().wrapping_add(timeout), ordering::Relaxed);
                let no_room = mismatch == Mismatch::NoRoom;
                side.stalled |= no_room;
                side.messages.push_back(packet);
                let go_on = no_room && !receiver.reporter().starves();
                drop(state);
                self.watch_after(if go_on { 0 } else { timeout });
                None
            }
        }
    }

    /// Keeps an access to memory regions, of which an entry is to tell, until there is room for that.
    pub(crate) fn park(self: &Arc<Self>, receiver: &Receiver, packet: Packet) {
        let mut state = self.state.lock();
        if receiver.is_closed() {
            drop(state);
            packet.transfer.refuse(EHOSTUNREACH);
            return;
        }
        if !packet.transfer.is_waiting() {
            // Given up meanwhile, by somebody who has not found it here.
            return;
        }
        state.parked.push_back(packet);
        let go_on = !receiver.reporter().starves();
        drop(state);
        if go_on {
            self.watch_after(0);
        }
    }

    /// Looks at the messages that wait, after a delay or earlier.
    fn watch_after(self: &Arc<Self>, delay: Jiffies) {
        let mut state = self.state.lock();
        let at = jiffies().wrapping_add(delay);
        // Jiffies wrap.
        let is_earlier = |other: Jiffies| at.wrapping_sub(other).cast_signed() < 0;
        if state.closed || state.watch_at.is_some_and(|other| !is_earlier(other)) {
            return;
        }
        state.watch_at = Some(at);
        // With the lock held: else a later time could replace an earlier one that was set meanwhile.
        self.node.work_queue.modify_delayed(self.clone(), delay);
    }

    /// Posts a receive, and lets land what has waited for it; `EAGAIN` if there are as many posted
    /// as there may be. Gives back what was not posted.
    pub(crate) fn try_post(
        self: &Arc<Self>,
        posted: Entry<Posted>,
    ) -> core::result::Result<(), (Error, Entry<Posted>)> {
        let mut swept = Swept::new();
        {
            let mut state = self.state.lock();
            let closed = state.closed;
            let side = state.side(posted.tag.is_some());
            if closed || side.posted.len() >= self.size {
                let error = if closed { EOPBADSTATE.into() } else { EAGAIN };
                return Err((error, posted));
            }
            let tagged = posted.tag.is_some();
            side.posted.push_back(posted);
            if !side.messages.is_empty() {
                state.sweep(tagged, &mut swept);
            }
        }
        swept.settle();
        Ok(())
    }

    /// Returns whether so many have fired and wait for room that no more are to be submitted.
    pub(crate) fn is_backed_up(&self) -> bool {
        self.state.lock().fired.len() >= limits::MAX_FIRED
    }

    /// As [`Self::try_post`], but what is not posted is given up.
    pub(crate) fn post(self: &Arc<Self>, posted: Entry<Posted>) -> Result {
        self.try_post(posted).map_err(|(error, posted)| {
            posted.into_inner().give_up();
            error
        })
    }

    /// Posts a receive that was prepared when it was submitted, now or as soon as there is room.
    /// Given up if the queue is closed.
    pub(crate) fn post_fired(self: &Arc<Self>, posted: Entry<Posted>) {
        // In order: behind those that wait for room.
        let wait = |posted: Entry<Posted>| {
            let mut state = self.state.lock();
            if state.closed {
                drop(state);
                posted.into_inner().give_up();
                return;
            }
            state.fired.push_back(posted);
            drop(state);
            self.watch_after(msecs_to_jiffies(RETRY_MILLIS));
        };
        let others_wait = {
            let state = self.state.lock();
            state.reposting || !state.fired.is_empty()
        };
        if others_wait {
            return wait(posted);
        }
        if let Err((_, posted)) = self.try_post(posted) {
            wait(posted);
        }
    }

    /// Posts what has fired and waits for room, as far as there is some.
    fn post_waiting(self: &Arc<Self>) -> bool {
        loop {
            let front = {
                let mut state = self.state.lock();
                let front = state.fired.pop_front();
                // Nobody overtakes it.
                state.reposting = front.is_some();
                front
            };
            let Some(posted) = front else {
                return false;
            };
            let Err((_, refused)) = self.try_post(posted) else {
                continue;
            };
            let mut state = self.state.lock();
            state.reposting = false;
            if state.closed {
                drop(state);
                refused.into_inner().give_up();
                return false;
            }
            state.fired.push_front(refused);
            return true;
        }
    }

    /// Looks at what waits, as there may be room for completions again.
    fn resume(self: &Arc<Self>) {
        self.state.lock().resumed = true;
        self.watch_after(0);
    }

    /// Takes out a receive with a context.
    pub(crate) fn take(&self, context: Context) -> Option<Entry<Posted>> {
        self.take_same(|posted| posted.context.as_number() == context.as_number())
    }

    /// Takes out the receive that has a number.
    pub(crate) fn take_number(&self, number: u64) -> Option<Entry<Posted>> {
        self.take_same(|posted| posted.number == number)
    }

    /// Takes out the first receive that is `same`.
    fn take_same(&self, same: impl Fn(&Posted) -> bool) -> Option<Entry<Posted>> {
        let mut state = self.state.lock();
        let taken = state.plain.posted.take(&same);
        let taken = match taken {
            Some(posted) => Some(posted),
            None => state.tagged.posted.take(&same),
        };
        match taken {
            Some(posted) => Some(posted),
            None => state.fired.take(&same),
        }
    }

    /// Looks for a tagged message that has arrived (`KFI_PEEK`); `None` if there is none.
    ///
    /// What is found stays, or is set aside for the context of `wanted`, or dropped.
    pub(crate) fn peek(
        self: &Arc<Self>,
        wanted: &Posted,
        claim: bool,
        discard: bool,
    ) -> Option<Request> {
        let mut gone = EntryQueue::new();
        let mut dropped = None;
        let request = loop {
            let mut state = self.state.lock();
            let Some(mut found) = state.tagged.messages.find(|message| {
                let transfer = &message.transfer;
                // What the sender is just giving up is not there any more.
                let request = transfer.request();
                transfer.is_waiting() && !is_access(request) && wanted.wants(request)
            }) else {
                break None;
            };
            let request = *found.transfer.request();
            if discard {
                let packet = found.take();
                if !packet.transfer.claim() {
                    gone.push_back(packet);
                    continue;
                }
                dropped = Some(packet);
            } else if claim {
                found.claimed_for = Some(wanted.context);
                let packet = found.take();
                // The time of the receiver begins anew. Relaxed: read under the same lock.
                let timeout = rnr_timeout();
                packet
                    .transfer
                    .deadline
                    .store(jiffies().wrapping_add(timeout), ordering::Relaxed);
                state.claimed.push_back(packet);
                drop(state);
                self.watch_after(timeout);
            }
            break Some(request);
        };
        if let Some(packet) = dropped {
            let transfer = packet.into_inner().transfer;
            // The message has been received, if only to be thrown away.
            Transfer::respond(
                &transfer,
                Response::done(request.map_or(0, |request| request.len)),
            );
        }
        request
    }

    /// Takes the message that was set aside for a context.
    pub(crate) fn take_claimed(&self, context: Context) -> Option<Packet> {
        let same = |message: &Carried| {
            message
                .claimed_for
                .is_some_and(|other| other.as_number() == context.as_number())
        };
        self.state.lock().claimed.take(same)
    }

    /// Takes out a message that its sender has given up, if it is here.
    pub(crate) fn forget(&self, transfer: &Arc<Transfer>) {
        let same = |message: &Carried| Arc::ptr_eq(&message.transfer, transfer);
        let forgotten = {
            let mut state = self.state.lock();
            let side = state.side(transfer.request().kind.tag().is_some());
            match side.messages.take(same) {
                Some(packet) => Some(packet),
                None => match state.claimed.take(same) {
                    Some(packet) => Some(packet),
                    None => state.parked.take(same),
                },
            }
        };
        // Without the lock.
        drop(forgotten);
    }

    /// Takes out all messages for a receive context that is being closed, and refuses them.
    pub(crate) fn purge(&self, receiver: &Arc<Receiver>) {
        let mut refused = EntryQueue::new();
        {
            let mut state = self.state.lock();
            let State {
                plain,
                tagged,
                claimed,
                parked,
                ..
            } = &mut *state;
            for messages in [&mut plain.messages, &mut tagged.messages, claimed, parked] {
                let same = |message: &Carried| {
                    message
                        .receiver
                        .as_ref()
                        .is_some_and(|other| Arc::ptr_eq(other, receiver))
                };
                while let Some(packet) = messages.take(same) {
                    refused.push_back(packet);
                }
            }
        }
        while let Some(packet) = refused.pop_front() {
            packet.transfer.refuse(EHOSTUNREACH);
        }
    }

    /// Gives up all receives; none can be posted any more. May sleep.
    pub(crate) fn close(self: &Arc<Self>) {
        let (plain, tagged, fired) = {
            let mut state = self.state.lock();
            state.closed = true;
            (
                core::mem::replace(&mut state.plain.posted, EntryQueue::new()),
                core::mem::replace(&mut state.tagged.posted, EntryQueue::new()),
                core::mem::replace(&mut state.fired, EntryQueue::new()),
            )
        };
        for mut posted in [plain, tagged, fired] {
            while let Some(posted) = posted.pop_front() {
                posted.into_inner().give_up();
            }
        }
        self.watch.cancel_sync();
    }
}

/// Looks after what waits when a completion queue has room again.
pub(crate) struct RoomWatch(pub(crate) Arc<ReceiveQueue>);

impl Room for RoomWatch {
    fn room(&self) {
        self.0.resume();
    }
}

/// Takes out the messages whose time is over, and brings the time of the next look in line with the
/// others.
fn expire(
    messages: &mut EntryQueue<Carried>,
    now: Jiffies,
    swept: &mut Swept,
    next: &mut Option<Jiffies>,
) {
    let left = |message: &Carried| {
        // Relaxed: written under the same lock.
        let deadline = message.transfer.deadline.load(ordering::Relaxed);
        // Jiffies wrap.
        deadline.wrapping_sub(now).cast_signed()
    };
    for message in messages.iter().filter(|message| message.is_starved()) {
        // Their time does not run.
        let deadline = now.wrapping_add(rnr_timeout());
        message.transfer.deadline.store(deadline, ordering::Relaxed);
    }
    while let Some(found) = messages.find(|message| left(message) <= 0) {
        swept.expired.push_back(found.take());
    }
    for message in messages.iter() {
        let wait = left(message).max(1).cast_unsigned();
        *next = Some(next.map_or(wait, |next| next.min(wait)));
    }
}

impl WorkItem for ReceiveQueue {
    fn work(&self) -> &Work<Self> {
        &self.watch
    }

    fn run(this: Arc<Self>) {
        let now = jiffies();
        this.state.lock().watch_at = None;
        let mut swept = Swept::new();
        let mut next: Option<Jiffies> = None;
        if this.post_waiting() {
            next = Some(msecs_to_jiffies(RETRY_MILLIS));
        }
        {
            let mut state = this.state.lock();
            if core::mem::replace(&mut state.resumed, false) {
                state.begin_anew(now);
            }
            for tagged in [false, true] {
                // First: what can be received must not expire.
                state.sweep(tagged, &mut swept);
                expire(&mut state.side(tagged).messages, now, &mut swept, &mut next);
            }
            expire(&mut state.claimed, now, &mut swept, &mut next);
            // They wait for nothing else.
            while let Some(packet) = state.parked.take(|packet| !packet.is_starved()) {
                swept.landing.push_back(packet);
            }
        }
        if let Some(next) = next {
            this.watch_after(next);
        }
        swept.settle();
    }
}
