// SPDX-License-Identifier: GPL-2.0

//! How messages and posted receives of one kind, tagged or not, find each other.
//!
//! A message takes the first posted receive that wants it, a receive the first message that it
//! wants; both come in order. A thread that brings one of them leaves it with those that are yet to
//! be compared. One at a time compares: the first of the messages that have arrived with the
//! receives that are posted, and in turn the first of the receives that are new with the messages
//! that wait. So among the receives that are posted and the messages that wait no two want each
//! other.
//!
//! They are compared in steps with the lock held, between which it is released, and threads that
//! bring something meanwhile leave it to the one that compares. Others may also take entries away:
//! a walk through a queue is not disturbed by that, and one for a receive or message that has left
//! begins anew for the next one.
//!
//! A tag by which either is found, without a look at others, is its key: that of a message, and that of a
//! receive for one tag alone. Among receives one that has no key may want a message before one that has: while
//! such a one is posted, they are compared one after the other.
//!
//! A message that has waited is received as soon as a receive comes that wants it. If there is no room in
//! the completion queue, that may be reported in the memory of the receive; where it could not, or
//! where others too could have that receive, the message stalls: it stays where it is, and so do
//! all others for its receiver, see [`Receiver::stalls`]. When there is room, those that have
//! stalled are compared with the receives once more, before anything else is compared. Messages that
//! arrive while there is no room do not come here yet, see
//! [`Parking`](crate::transfer::parking::Parking).

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    time::Jiffies, //
};

use crate::{
    budget::{
        self,
        Budget, //
    },
    kfi::linux::{
        queue::{
            Batch,
            Entry,
            EntryQueue,
            FoundEntry,
            Keyed,
            Named,
            Step,
            Walk,
            WalkableQueue, //
        },
        timeout::jiffies, //
    },
    transfer::{
        accepted::{
            Accepted,
            Task, //
        },
        inbound::{
            Inbound,
            InboundName, //
        },
        origin::Origin,
        receive_queue::{
            pair,
            Mismatch,
            Posted,
            STEP, //
        },
        receiver::Receiver, //
    },
    wire::{
        Initiator,
        Request, //
    }, //
};

/// How far the first entry of a queue was compared with those of another one.
struct Progress {
    walk: Option<Walk>,
    /// It is compared one after the other, as many have its key.
    walks: bool,
    /// Which entry that is, see [`EntryQueue::departures`].
    departures: usize,
}

impl Progress {
    const fn new() -> Self {
        Self {
            walk: None,
            walks: false,
            departures: 0,
        }
    }

    /// Looks for the first of `others` that is `wanted` by the first entry, which has this key.
    fn step<'a, T: Keyed, const WALKS: usize>(
        &mut self,
        others: &'a mut EntryQueue<T, WALKS>,
        key: Option<u64>,
        limit: &mut usize,
        wanted: impl FnMut(&T) -> bool,
    ) -> Step<'a, T, WALKS> {
        match key.filter(|_| !self.walks && others.are_keyed()) {
            Some(key) => {
                let whole = *limit >= STEP;
                let step = others.step_keyed(key, limit, wanted);
                // Else it is looked for again, in a step of its own.
                self.walks = whole && matches!(step, Step::More);
                step
            }
            None => {
                self.walks = true;
                others.step(&mut self.walk, limit, wanted)
            }
        }
    }

    /// Begins anew if the first entry is another one.
    fn follow<T, const WALKS: usize>(
        &mut self,
        departures: usize,
        others: &mut EntryQueue<T, WALKS>,
    ) {
        if self.departures != departures {
            self.departures = departures;
            self.end(others);
        }
    }

    /// There is none any more.
    fn end<T, const WALKS: usize>(&mut self, others: &mut EntryQueue<T, WALKS>) {
        self.walks = false;
        if let Some(walk) = self.walk.take() {
            others.end_walk(walk);
        }
    }
}

/// Returns whether a receive takes a message; one that it wants and must not take yet stalls.
fn takes(receive: &Posted, message: &Inbound) -> bool {
    if !receive.wants(message.request()) {
        return false;
    }
    // A message that the receive is not for is refused, which takes no room.
    let stalls = receive.may_take(message.request()) && message.receiver.stalls(receive);
    if stalls {
        message.set_stalled(true);
    }
    !stalls
}

/// Messages that may expire.
pub(crate) struct Expiring<'a> {
    pub(crate) messages: &'a mut WalkableQueue<Inbound>,
    /// Messages do whose time is over at this one, in jiffies; without it, none do.
    pub(crate) at: Option<Jiffies>,
    /// The time of some may be over before that of others in front of them.
    pub(crate) unordered: bool,
}

/// The posted receives and the messages of one kind, tagged or not.
///
/// # Invariants
///
/// - None of `posted` wants one of `unexpected`, unless that has stalled.
/// - While there is something in `arrived` or `new`, or those that have stalled are to be compared again,
///   `comparing` is set.
pub(crate) struct MatchLists {
    /// Receives that were compared.
    posted: WalkableQueue<Posted>,
    /// Receives that are yet to be compared with `unexpected`.
    new: WalkableQueue<Posted>,
    /// Receives that have fired and have no room among those.
    fired: WalkableQueue<Posted>,
    /// Messages that were compared, and wait for a receive.
    unexpected: WalkableQueue<Inbound>,
    /// Messages that are yet to be compared with `posted`.
    arrived: WalkableQueue<Inbound>,
    /// How far the first of `arrived` has come in `posted`.
    arrived_progress: Progress,
    /// How far the first of `new` has come in `unexpected`.
    new_progress: Progress,
    /// Messages that have stalled are to be compared with `posted` again.
    again: bool,
    /// How far these have come in `unexpected`.
    again_walk: Option<Walk>,
    /// How far the one that this has come to has come in `posted`.
    again_progress: Option<Walk>,
    /// Which one that is.
    again_name: InboundName,
    /// A thread compares, or is going to.
    comparing: bool,
    /// The work queue compares, not a thread that posts.
    handed_over: bool,
    /// It is the turn of `new`, if there is something in `arrived`, too.
    turn_of_new: bool,
    /// Until then some of `unexpected` may wait whose time has begun before that of those in front of them.
    unordered_until: Option<Jiffies>,
    /// When it was last looked which of `unexpected` expire.
    looked: Jiffies,
}

impl MatchLists {
    /// How many queues of receives there are.
    pub(crate) const RECEIVES: usize = 3;

    /// How many queues of messages there are.
    pub(crate) const MESSAGES: usize = 2;

    /// Nothing is there.
    pub(crate) const fn new() -> Self {
        // INVARIANT: All of them are empty.
        Self {
            posted: WalkableQueue::walkable(),
            new: WalkableQueue::walkable(),
            fired: WalkableQueue::walkable(),
            unexpected: WalkableQueue::walkable(),
            arrived: WalkableQueue::walkable(),
            arrived_progress: Progress::new(),
            new_progress: Progress::new(),
            again: false,
            again_walk: None,
            again_progress: None,
            again_name: (0, 0),
            comparing: false,
            handed_over: false,
            turn_of_new: false,
            unordered_until: None,
            looked: 0,
        }
    }

    /// Returns a queue of receives by number, in the order in which these go from one to the other.
    pub(crate) fn receives(&mut self, number: usize) -> Option<&mut WalkableQueue<Posted>> {
        match number {
            0 => Some(&mut self.fired),
            1 => Some(&mut self.new),
            2 => Some(&mut self.posted),
            _ => None,
        }
    }

    /// Returns a queue of messages by number, in the order in which these go from one to the other.
    pub(crate) fn messages(&mut self, number: usize) -> Option<&mut WalkableQueue<Inbound>> {
        match number {
            0 => Some(&mut self.arrived),
            1 => Some(&mut self.unexpected),
            _ => None,
        }
    }

    /// Takes out the first receive whose name is not less than `name`, if it is `same`.
    pub(crate) fn take_receive(
        &mut self,
        name: &<Posted as Named>::Name,
        same: impl Fn(&Posted) -> bool,
    ) -> Option<Entry<Posted>> {
        [&mut self.posted, &mut self.new, &mut self.fired]
            .into_iter()
            .find_map(|queue| queue.take_named(name, &same))
    }

    /// Takes out a message, if it is here.
    pub(crate) fn take_message(&mut self, origin: &Origin) -> Option<Entry<Inbound>> {
        let name = Inbound::name_of(origin);
        [&mut self.unexpected, &mut self.arrived]
            .into_iter()
            .find_map(|queue| queue.take_named(&name, |inbound| inbound.is_of(origin)))
    }

    /// As [`Self::take_message`]; returns as well whether it was compared with all receives, so that none wants
    /// it, unless it has stalled.
    pub(crate) fn take_compared(&mut self, origin: &Origin) -> Option<(Entry<Inbound>, bool)> {
        let name = Inbound::name_of(origin);
        let is_it = |inbound: &Inbound| inbound.is_of(origin);
        let compared = !self.has_new();
        if let Some(message) = self.unexpected.take_named(&name, is_it) {
            return Some((message, compared));
        }
        let message = self.arrived.take_named(&name, is_it)?;
        Some((message, false))
    }

    /// Returns the messages that no posted receive wants yet.
    pub(crate) fn unexpected(&mut self) -> &mut WalkableQueue<Inbound> {
        &mut self.unexpected
    }

    /// Messages arrive that have waited before; the time of none is over later than `until`.
    pub(crate) fn note_unordered(&mut self, until: Jiffies) {
        self.unordered_until = Some(until);
    }

    /// Returns whether it is to be looked now which messages expire. While receives are yet to be compared that is
    /// no more often than every `pause`, as it is done after each round of comparisons, and may take longer.
    pub(crate) fn begin_look(&mut self, now: Jiffies, pause: Jiffies) -> bool {
        if self.has_new() && now.wrapping_sub(self.looked) < pause {
            return false;
        }
        self.looked = now;
        true
    }

    /// Returns the messages that no posted receive wants yet, to have some of them expire.
    ///
    /// A receive that is yet to be compared may want a message whose time was not over when it was posted. So only
    /// those expire whose time was over before the first of these was posted. How long they wait at most depends on
    /// how many receives may be posted, but not on whether others are posted all the time.
    pub(crate) fn expiring(&mut self, now: Jiffies) -> Expiring<'_> {
        let at = match self.new.front() {
            // They lie in the order in which they were posted.
            Some(receive) => receive.since.wrapping_sub(1),
            None => now,
        };
        // Jiffies wrap.
        let is_later = |until: &mut Jiffies| until.wrapping_sub(at).cast_signed() > 0;
        let _ = self.unordered_until.take_if(|until| !is_later(until));
        Expiring {
            at: (!self.again).then_some(at),
            unordered: self.unordered_until.is_some(),
            messages: &mut self.unexpected,
        }
    }

    /// Adds a receive to those that are yet to be compared.
    fn add_new(&mut self, mut posted: Entry<Posted>) {
        posted.since = jiffies();
        self.new.push_named(posted);
    }

    /// Returns whether no receive is to be posted: as many are as there may be, or others have fired
    /// before and wait for room.
    pub(crate) fn is_full(&self, size: usize) -> bool {
        !self.fired.is_empty() || !self.has_room(size)
    }

    /// Returns whether fewer receives are posted than there may be.
    fn has_room(&self, size: usize) -> bool {
        self.posted.len().saturating_add(self.new.len()) < size
    }

    /// Returns how many receives may be posted without the lock, of up to `size` at all: none while one might
    /// want what waits, or has to wait itself.
    pub(crate) fn room(&self, size: usize) -> usize {
        if self.comparing || !self.unexpected.is_empty() || !self.fired.is_empty() {
            return 0;
        }
        // By the type invariants there are none in `new`.
        size.saturating_sub(self.posted.len())
    }

    /// Adds receives that were posted without the lock, since [`Self::room`] has said that there is room.
    pub(crate) fn add_receives(&mut self, mut posted: Batch<Posted>) {
        while let Some(posted) = posted.pop() {
            // INVARIANT: No message waits: before one comes these are added.
            self.posted.push_keyed(posted);
        }
    }

    /// Returns whether receives are posted that may want what waits.
    pub(crate) fn has_new(&self) -> bool {
        self.again || !self.new.is_empty()
    }

    /// Returns how many receives have fired and wait for room.
    pub(crate) fn fired(&self) -> usize {
        self.fired.len()
    }

    /// Adds a message; returns whether the caller is to compare.
    #[must_use]
    pub(crate) fn add_message(&mut self, message: Entry<Inbound>) -> bool {
        self.arrived.push_named(message);
        self.begin()
    }

    /// Adds a receive; returns whether the caller is to compare.
    #[must_use]
    pub(crate) fn add_receive(&mut self, posted: Entry<Posted>) -> bool {
        if self.unexpected.is_empty() && self.new.is_empty() {
            // INVARIANT: No message waits. One that is being compared comes to it.
            self.posted.push_keyed(posted);
            return false;
        }
        self.add_new(posted);
        self.begin()
    }

    /// Adds a receive that has fired, behind others for which there is no room; returns whether the
    /// caller is to compare.
    #[must_use]
    pub(crate) fn add_fired(&mut self, posted: Entry<Posted>, size: usize) -> bool {
        if !self.is_full(size) {
            return self.add_receive(posted);
        }
        self.fired.push_named(posted);
        // Room may have come for the first one.
        self.has_room(size) && self.begin()
    }

    /// Returns whether the caller is to compare, as there is room now for what has fired.
    #[must_use]
    pub(crate) fn begin_refill(&mut self) -> bool {
        !self.fired.is_empty() && self.begin()
    }

    /// Lets messages that have stalled be compared again; returns whether the caller is to compare.
    #[must_use]
    pub(crate) fn begin_again(&mut self) -> bool {
        self.end_again();
        // The entry that is just being compared may have passed some of them.
        self.arrived_progress.end(&mut self.posted);
        self.new_progress.end(&mut self.unexpected);
        self.again = true;
        self.begin()
    }

    /// Ends the walks through what has stalled.
    fn end_again(&mut self) {
        if let Some(walk) = self.again_walk.take() {
            self.unexpected.end_walk(walk);
        }
        if let Some(walk) = self.again_progress.take() {
            self.posted.end_walk(walk);
        }
    }

    /// Returns whether the caller is to compare.
    fn begin(&mut self) -> bool {
        // INVARIANT: Set.
        !core::mem::replace(&mut self.comparing, true)
    }

    /// Leaves it to the work queue to compare.
    pub(crate) fn hand_over(&mut self) {
        self.handed_over = true;
    }

    /// Returns whether the work queue is to compare.
    pub(crate) fn take_over(&mut self) -> bool {
        core::mem::replace(&mut self.handed_over, false)
    }

    /// Finds a posted receive, among the first ones, for a message that was not added. None that were
    /// sent before it are yet to be compared, or are about to be delivered.
    pub(crate) fn find_receive(
        &mut self,
        request: &Request,
        limit: usize,
    ) -> Option<FoundEntry<'_, Posted, 8>> {
        if self.comparing {
            return None;
        }
        let wanted = |posted: &Posted| posted.wants(request);
        match request.kind.tag().filter(|_| self.posted.are_keyed()) {
            Some(tag) => match self.posted.step_keyed(tag, &mut { limit }, wanted) {
                Step::Found(found) => Some(found),
                Step::More | Step::End => None,
            },
            None => self.posted.find_among(limit, wanted),
        }
    }

    /// Makes as many comparisons as `limit` says, which is lowered accordingly, or until as much was
    /// settled as `budget` covers. Up to `size` receives may be posted.
    ///
    /// Returns whether there are more to make, by the caller.
    #[must_use]
    pub(crate) fn compare(
        &mut self,
        size: usize,
        limit: &mut usize,
        budget: &Budget,
        settled: &mut Settled,
    ) -> bool {
        while *limit != 0 && budget.covers(settled.len(), settled.bytes()) {
            if self.again {
                self.compare_again(limit, settled);
                continue;
            }
            if !self.arrived.is_empty() && (self.new.is_empty() || !self.turn_of_new) {
                // What is not over has the next turn, too, with all of its limit: else it would begin anew.
                self.turn_of_new = self.compare_message(limit, settled);
            } else if !self.new.is_empty() {
                self.turn_of_new = !self.compare_receive(limit, settled);
            } else if self.fired.is_empty() || !self.has_room(size) {
                // Settled messages are dealt with before another thread compares: in order.
                if settled.len() != 0 {
                    return true;
                }
                self.arrived_progress.end(&mut self.posted);
                self.new_progress.end(&mut self.unexpected);
                // INVARIANT: Both are empty.
                self.comparing = false;
                return false;
            } else if let Some(posted) = self.fired.pop_front() {
                self.add_new(posted);
            }
        }
        true
    }

    /// Compares the first message that has arrived; returns whether that is over.
    fn compare_message(&mut self, limit: &mut usize, settled: &mut Settled) -> bool {
        let Self {
            posted,
            unexpected,
            arrived,
            arrived_progress: progress,
            ..
        } = self;
        progress.follow(arrived.departures(), posted);
        let Some(message) = arrived.front() else {
            return true;
        };
        if progress.walk.is_none() {
            // Of another comparison.
            message.set_stalled(false);
        }
        let wanted = |posted: &Posted| takes(posted, message);
        let found = match progress.step(posted, message.key(), limit, wanted) {
            Step::More => return false,
            Step::Found(found) => Some(found),
            Step::End => None,
        };
        let Some(message) = arrived.pop_front() else {
            return true;
        };
        match found {
            Some(found) => settled.pair(message, found),
            None => {
                // INVARIANT: Nobody wants it, or it has stalled.
                unexpected.push_keyed(message);
                settled.kept = true;
                // It counts, too, where there was nothing to compare it with.
                *limit = limit.saturating_sub(1);
            }
        }
        true
    }

    /// Compares the next message that has stalled, unless its receiver stalls again.
    fn compare_again(&mut self, limit: &mut usize, settled: &mut Settled) {
        let Self {
            posted,
            unexpected,
            again_walk,
            again_progress: progress,
            again_name,
            ..
        } = self;
        let stalls = |message: &Inbound, alone: bool| {
            let receiver = &message.receiver;
            receiver.is_stalling() && !(alone && receiver.is_shared())
        };
        if unexpected
            .front()
            .is_some_and(|message| stalls(message, true))
        {
            // All are for the same one.
            self.end_again();
            self.again = false;
            return;
        }
        let again = |message: &Inbound| message.is_stalled() && !stalls(message, false);
        let mut message = match unexpected.step(again_walk, limit, again) {
            Step::More => return,
            Step::Found(message) => message,
            Step::End => {
                self.end_again();
                self.again = false;
                return;
            }
        };
        let name = message.name();
        if core::mem::replace(again_name, name) != name {
            if let Some(walk) = progress.take() {
                posted.end_walk(walk);
            }
        }
        // INVARIANT: If it does not stall again, no receive wants it.
        message.set_stalled(false);
        let found = match posted.step(progress, limit, |posted| takes(posted, &message)) {
            Step::More => {
                message.set_stalled(true);
                return;
            }
            Step::Found(found) => Some(found),
            Step::End => None,
        };
        match found {
            Some(found) => settled.pair(message.take(), found),
            None if message.is_stalled() => {}
            None => {
                // Its time begins anew.
                message.since = jiffies();
                settled.kept = true;
            }
        }
        if let Some(walk) = progress.take() {
            posted.end_walk(walk);
        }
    }

    /// Compares the first receive that is new; returns whether that is over.
    fn compare_receive(&mut self, limit: &mut usize, settled: &mut Settled) -> bool {
        let Self {
            posted,
            new,
            unexpected,
            new_progress: progress,
            ..
        } = self;
        progress.follow(new.departures(), unexpected);
        let Some(receive) = new.front() else {
            return true;
        };
        let wanted = |message: &Inbound| takes(receive, message);
        let message = match progress.step(unexpected, receive.key(), limit, wanted) {
            Step::More => return false,
            Step::Found(found) => Some(found.take()),
            Step::End => None,
        };
        match message {
            Some(message) => {
                if let Some(receive) = new.find(|_| true) {
                    settled.pair(message, receive);
                }
            }
            None => {
                if let Some(receive) = new.pop_front() {
                    // INVARIANT: It wants none of those that wait but such as have stalled.
                    posted.push_keyed(receive);
                }
                *limit = limit.saturating_sub(1);
            }
        }
        true
    }
}

/// Messages that were taken out, to be dealt with when the lock was released.
pub(crate) struct Settled {
    /// They are delivered.
    deliveries: EntryQueue<Accepted>,
    /// They name what is no region.
    refused: EntryQueue<Inbound>,
    /// Their receivers are not there any more.
    unreachable: EntryQueue<Inbound>,
    /// Their time is over.
    expired: EntryQueue<Inbound>,
    /// Their senders have given them up.
    gone: EntryQueue<Inbound>,
    /// Bytes that are copied when they are delivered.
    bytes: usize,
    /// Some wait now.
    kept: bool,
}

impl Settled {
    /// Nothing was taken out.
    pub(crate) const fn new() -> Self {
        Self {
            deliveries: EntryQueue::new(),
            refused: EntryQueue::new(),
            unreachable: EntryQueue::new(),
            expired: EntryQueue::new(),
            gone: EntryQueue::new(),
            bytes: 0,
            kept: false,
        }
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        [&self.refused, &self.unreachable, &self.expired, &self.gone]
            .into_iter()
            .fold(self.deliveries.len(), |sum, queue| {
                sum.saturating_add(queue.len())
            })
    }

    /// Returns how many bytes are copied when they are delivered.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether messages wait now that have not waited before.
    pub(crate) fn kept(&self) -> bool {
        self.kept
    }

    /// Adds a message whose time is over.
    pub(crate) fn expire(&mut self, message: Entry<Inbound>) {
        self.expired.push_back(message);
    }

    /// Adds a message that a receive wants.
    fn pair<const WALKS: usize>(
        &mut self,
        message: Entry<Inbound>,
        found: FoundEntry<'_, Posted, WALKS>,
    ) {
        let Some(receiver) = Receiver::enter(message.receiver.clone()) else {
            // It is being closed.
            self.unreachable.push_back(message);
            return;
        };
        let origin = &message.origin;
        let matched = pair(found, origin.request(), &receiver, |_| {
            // It has memory of its own for its completion.
            if origin.claim() {
                Ok(())
            } else {
                Err(Mismatch::Gone)
            }
        });
        match matched {
            Ok(matched) => {
                let bytes = budget::copied(message.request().len);
                self.bytes = self.bytes.saturating_add(bytes);
                // The reference that is dropped here is not the last one: the use has another.
                let accepted = Accepted::new(message, Task::Receive(receiver, matched));
                self.deliveries.push_back(accepted);
            }
            Err(Mismatch::NoRegion) => self.refused.push_back(message),
            Err(Mismatch::Gone | Mismatch::NoRoom) => self.gone.push_back(message),
        }
    }

    /// Answers those that are not delivered, and delivers the others.
    pub(crate) fn settle(mut self, budget: &mut Budget) {
        while let Some(message) = self.refused.pop_front() {
            Inbound::refuse(message, EACCES, budget);
        }
        while let Some(message) = self.unreachable.pop_front() {
            Inbound::refuse(message, EHOSTUNREACH, budget);
        }
        while let Some(message) = self.expired.pop_front() {
            Inbound::refuse(message, EREMOTEIO, budget);
        }
        while let Some(accepted) = self.deliveries.pop_front() {
            Receiver::deliver(accepted, budget);
        }
    }
}
