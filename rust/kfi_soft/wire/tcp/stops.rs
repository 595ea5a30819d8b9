// SPDX-License-Identifier: GPL-2.0

//! Flows of which requests are not taken, at the target, in the order in which their time comes.
//!
//! The memory for all of them is there from the beginning, so that a flow can always be stopped: that is
//! what is done when there is no memory for a request. Those that are stopped for receivers that are not
//! ready are counted for the users of these; and one user without room keeps no others of a flow from going on.
//!
//! As [`incoming`](super::incoming) this is without input and output, and runs in user space.

#![forbid(unsafe_code)]

use core::ops::DerefMut;

use crate::share;

/// So many milliseconds after a flow was stopped it may go on. The initiator is told so again so many
/// after that, and so on; in the end always after the last ones. A flow that is stopped again goes on with these, unless
/// something of it was carried out.
const PAUSES: [u64; 6] = [50, 100, 200, 400, 800, 1000];

/// The flows of a lane.
pub(crate) const FLOWS: u32 = 4096;

/// So many of them may be stopped for receivers of each user in any case, while there are others.
const FEW: usize = 256;
/// So many users are told apart: as many as may have these few.
const USERS: usize = FLOWS as usize / FEW;

// Both ends of a queue have numbers behind those of the flows, and a time its low bits.
const _: () = assert!((FLOWS as usize) + QUEUES < u16::MAX as usize && PAUSES[5] < 1 << 15);

/// Returns how many flows there are.
fn flow_count() -> usize {
    usize::try_from(FLOWS).unwrap_or(usize::MAX)
}

/// The user to whom requests go, by number; none if that is nobody.
pub(crate) type User = Option<u32>;

/// Why a flow is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A receiver is not ready.
    NotReady,
    /// There was no room for a request.
    NoRoom,
}

/// Why a flow is stopped, if it is, and in which place of [`Users`] it is counted, in a byte.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Cause(u8);

// There is a cause for each place, and for the one behind them, twice.
const _: () = assert!(2 * (USERS + 1) + (Cause::FIRST_PLACE as usize) < u8::MAX as usize);

impl Cause {
    /// It is not stopped, as by default.
    const NONE: Self = Self(0);
    /// There was no room for a request: no other one is taken.
    const NO_ROOM: Self = Self(1);
    /// A receiver of the user in the first place is not ready. Those of others follow; and then those of users
    /// for whose requests there was no room, from the first place on: others are taken.
    const FIRST_PLACE: u8 = 2;

    /// A receiver of the user in a place is not ready, or there was no room for a request to that user.
    fn at(place: usize, why: Why) -> Self {
        let place = match why {
            Why::NotReady => place,
            Why::NoRoom => place.saturating_add(USERS + 1),
        };
        let place = u8::try_from(place).unwrap_or(u8::MAX);
        Self(place.saturating_add(Self::FIRST_PLACE))
    }

    /// Returns the place of the user, if it is such a one, and which of both it is.
    fn place(self) -> Option<(usize, Why)> {
        let place = usize::from(self.0.checked_sub(Self::FIRST_PLACE)?);
        Some(match place.checked_sub(USERS + 1) {
            None => (place, Why::NotReady),
            Some(place) => (place, Why::NoRoom),
        })
    }

    /// Returns why the flow is stopped; nothing if it is not.
    fn why(self) -> Option<Why> {
        match self {
            Self::NONE => None,
            Self::NO_ROOM => Some(Why::NoRoom),
            _ => self.place().map(|(_, why)| why),
        }
    }
}

/// How many flows are stopped for a user.
#[derive(Clone, Copy)]
struct Counted {
    user: User,
    /// As its receivers are not ready.
    count: usize,
    /// As there was no room for requests to it.
    short: usize,
}

/// How many flows are stopped for each user.
///
/// # Invariants
///
/// Each flow whose [`Cause`] has a place counts there, and nothing else does. So a place in which none counts is
/// free.
struct Users {
    /// The users that are told apart.
    apart: [Counted; USERS],
    /// How many flows are stopped for all other users, as their receivers are not ready.
    others: usize,
}

impl Users {
    /// None.
    const NONE: Self = Self {
        apart: [Counted {
            user: None,
            count: 0,
            short: 0,
        }; USERS],
        others: 0,
    };

    /// Returns the place of a user, or one that is free, or, if there is none, that of others.
    fn place(&self, user: User) -> usize {
        let is_free = |counted: &Counted| counted.count == 0 && counted.short == 0;
        let is_theirs = |counted: &Counted| !is_free(counted) && counted.user == user;
        let theirs = self.apart.iter().position(is_theirs);
        let free = || self.apart.iter().position(is_free);
        theirs.or_else(free).unwrap_or(USERS)
    }

    /// Returns whether another flow may be stopped for receivers of a user.
    fn has_room(&self, user: User) -> bool {
        let counts = self.apart.iter().map(|counted| counted.count);
        let all = counts.fold(self.others, usize::saturating_add);
        let own = self.apart.get(self.place(user));
        let own = own.map_or(self.others, |counted| counted.count);
        share::has_room(flow_count(), all, own, FEW)
    }

    /// Returns how many flows count in a place for this reason.
    fn count(&mut self, place: usize, why: Why) -> &mut usize {
        match (self.apart.get_mut(place), why) {
            (Some(counted), Why::NotReady) => &mut counted.count,
            (Some(counted), Why::NoRoom) => &mut counted.short,
            (None, _) => &mut self.others,
        }
    }

    /// Counts a flow for a user, in [`Self::place`].
    fn add(&mut self, place: usize, why: Why, user: User) {
        if let Some(counted) = self.apart.get_mut(place) {
            counted.user = user;
        }
        let count = self.count(place, why);
        *count = count.saturating_add(1);
    }

    /// Counts one less in a place.
    fn remove(&mut self, place: usize, why: Why) {
        let count = self.count(place, why);
        *count = count.saturating_sub(1);
    }
}

/// For which one of [`PAUSES`] a flow is stopped, and whether the initiator was told that it may go on since it is, in
/// a byte. The default is the first one, of which it was not told.
#[derive(Clone, Copy, Default)]
struct Pause(u8);

impl Pause {
    /// The bit of those of which it was told.
    const TOLD: u8 = 1 << 7;

    /// Returns the queue of those that are stopped for that, which is where it is among [`PAUSES`].
    fn queue(self) -> usize {
        usize::from(self.0 & !Self::TOLD)
    }

    /// Returns whether the initiator was told.
    fn is_told(self) -> bool {
        self.0 & Self::TOLD != 0
    }

    /// Returns the same one, of which the initiator was not told.
    fn not_told(self) -> Self {
        Self(self.0 & !Self::TOLD)
    }

    /// Returns the first one, of which the initiator was told if it was of this one.
    fn first(self) -> Self {
        Self(self.0 & Self::TOLD)
    }

    /// Returns how long it is, in milliseconds.
    fn millis(self) -> u64 {
        PAUSES.get(self.queue()).copied().unwrap_or(0)
    }

    /// Returns the one that follows when the initiator has been told.
    fn told(self) -> Self {
        let last = PAUSES.len().saturating_sub(1);
        let next = self.queue().saturating_add(1).min(last);
        Self(u8::try_from(next).unwrap_or(0) | Self::TOLD)
    }
}

/// A flow, as far as it is known. The default is one that is not stopped.
///
/// The initiator is told that it may go on until the first request after that is read: it may not have
/// been able to do anything about it before.
#[derive(Clone, Copy, Default)]
pub(crate) struct Flow {
    /// The flows beside it in its queue, or the end of that.
    before: u16,
    behind: u16,
    /// When the initiator is told that it may send requests again: the low bits of that, in milliseconds.
    at: u16,
    /// The last one for which it is stopped, or was. If it is not stopped, the one for which it is next.
    pause: Pause,
    cause: Cause,
}

// So many of them are one piece of memory whose size is a power of two.
const _: () = assert!(size_of::<Flow>() == 8);

/// The queue of those of which the initiator is told now, behind those of [`PAUSES`].
const DUE: usize = PAUSES.len();
/// How many queues there are.
const QUEUES: usize = DUE + 1;

/// The flows of a lane that are stopped.
///
/// Each of them is in one queue: in that of its pause, which is in the order of their times, as all in
/// there are stopped for as long; or, when its time has come, in the last one. A queue is a ring: both
/// ends of it are one more member, of no flow.
pub(crate) struct Stops<F> {
    /// The time, in milliseconds, as of the last [`Self::look`]. The times of those that are not due are
    /// after that, by no more than the longest pause: so the low bits tell them.
    now: u64,
    flows: F,
    /// The ends of the queues. Their numbers are those behind the flows.
    ends: [Flow; QUEUES],
    /// How many flows are stopped.
    count: usize,
    users: Users,
}

/// Returns the low bits of a time.
fn low(millis: u64) -> u16 {
    let [first, second, ..] = millis.to_le_bytes();
    u16::from_le_bytes([first, second])
}

/// Returns the number of the end of a queue.
fn end(queue: usize) -> u16 {
    u16::try_from(flow_count().saturating_add(queue)).unwrap_or(u16::MAX)
}

impl<F: DerefMut<Target = [Flow]>> Stops<F> {
    /// None, in memory for [`FLOWS`] flows.
    pub(crate) fn new(flows: F) -> Self {
        let mut this = Self {
            now: 0,
            flows,
            ends: [Flow::default(); QUEUES],
            count: 0,
            users: Users::NONE,
        };
        this.clear();
        this
    }

    /// No flow is stopped any more.
    pub(crate) fn clear(&mut self) {
        self.flows.fill(Flow::default());
        self.count = 0;
        // INVARIANT: No flow is stopped.
        self.users = Users::NONE;
        for (queue, place) in self.ends.iter_mut().enumerate() {
            let end = end(queue);
            (place.before, place.behind) = (end, end);
        }
    }

    /// Returns a flow.
    fn flow(&mut self, number: u16) -> Option<&mut Flow> {
        self.flows.get_mut(usize::from(number))
    }

    /// Returns a member of a queue: a flow, or an end.
    fn member(&mut self, number: u16) -> Option<&mut Flow> {
        match number.checked_sub(end(0)) {
            None => self.flow(number),
            Some(queue) => self.ends.get_mut(usize::from(queue)),
        }
    }

    /// Puts a flow behind the others in a queue.
    fn link(&mut self, number: u16, queue: usize) {
        let behind = end(queue);
        let before = self.member(behind).map_or(behind, |end| end.before);
        if let Some(flow) = self.flow(number) {
            (flow.before, flow.behind) = (before, behind);
        }
        if let Some(before) = self.member(before) {
            before.behind = number;
        }
        if let Some(end) = self.member(behind) {
            end.before = number;
        }
    }

    /// Takes a flow out of its queue.
    fn unlink(&mut self, number: u16) {
        let Some(&mut Flow { before, behind, .. }) = self.flow(number) else {
            return;
        };
        if let Some(before) = self.member(before) {
            before.behind = behind;
        }
        if let Some(behind) = self.member(behind) {
            behind.before = before;
        }
    }

    /// Returns the first flow of a queue.
    fn first(&self, queue: usize) -> Option<u16> {
        let first = self.ends.get(queue)?.behind;
        (first < end(0)).then_some(first)
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns why a flow is stopped; nothing if it is not.
    pub(crate) fn why(&self, number: u16) -> Option<Why> {
        self.flows.get(usize::from(number))?.cause.why()
    }

    /// Returns why a request of a flow is not taken; nothing if it is. `user` says to whom it goes, if that
    /// matters: requests to others than the one user without room may be taken, as no receive context belongs to
    /// both.
    pub(crate) fn why_not(&self, number: u16, user: impl FnOnce() -> User) -> Option<Why> {
        let cause = self.flows.get(usize::from(number))?.cause;
        if let Some((place, Why::NoRoom)) = cause.place() {
            let short = self.users.apart.get(place).map(|counted| counted.user);
            let user = user();
            if user.is_some() && short.is_some_and(|short| short != user) {
                return None;
            }
        }
        cause.why()
    }

    /// Returns whether another flow may be stopped for receivers of a user: those that are, are no more than are
    /// left for others, or few.
    pub(crate) fn has_room(&self, user: User) -> bool {
        self.users.has_room(user)
    }

    /// Stops a flow as a receiver of a user is not ready: it may go on after its pause from `now` on, in
    /// milliseconds. If it is stopped it is so for all from now on.
    pub(crate) fn stop_not_ready(&mut self, number: u16, user: User, now: u64) {
        // Then times are after that.
        self.look(now);
        let place = self.users.place(user);
        if self.stop(number, Cause::at(place, Why::NotReady)) {
            // INVARIANT: It is stopped now.
            self.users.add(place, Why::NotReady, user);
        }
    }

    /// Stops a flow as there is no room for a request, for those to this user, or for all: it may go on after
    /// its pause from the time of the last [`Self::look`] on. If it is stopped it is so for all from now on.
    pub(crate) fn stop_short(&mut self, number: u16, user: User) {
        let place = self.users.place(user);
        if user.is_none() || place >= USERS {
            self.stop(number, Cause::NO_ROOM);
        } else if self.stop(number, Cause::at(place, Why::NoRoom)) {
            // INVARIANT: It is stopped now.
            self.users.add(place, Why::NoRoom, user);
        }
    }

    /// Stops a flow from the time of the last [`Self::look`] on; returns whether it was not stopped. If it was,
    /// it is stopped for all from now on.
    fn stop(&mut self, number: u16, cause: Cause) -> bool {
        let now = self.now;
        let Some(flow) = self.flow(number) else {
            return false;
        };
        if flow.cause != Cause::NONE {
            if let Some((place, Why::NoRoom)) = flow.cause.place() {
                // INVARIANT: It was counted there, and has no place any more.
                flow.cause = Cause::NO_ROOM;
                self.users.remove(place, Why::NoRoom);
            }
            return false;
        }
        let pause = flow.pause.not_told();
        let at = low(now.saturating_add(pause.millis()));
        (flow.at, flow.pause, flow.cause) = (at, pause, cause);
        self.link(number, pause.queue());
        self.count = self.count.saturating_add(1);
        true
    }

    /// A flow goes on; returns whether it was stopped.
    pub(crate) fn go_on(&mut self, number: u16) -> bool {
        let Some(flow) = self.flow(number) else {
            return false;
        };
        let cause = core::mem::take(&mut flow.cause);
        if cause == Cause::NONE {
            return false;
        }
        if let Some((place, why)) = cause.place() {
            // INVARIANT: It was counted there, and is not stopped any more.
            self.users.remove(place, why);
        }
        self.unlink(number);
        self.count = self.count.saturating_sub(1);
        true
    }

    /// A request of a flow was carried out: its pauses begin anew. One for which it is stopped ends when it does.
    pub(crate) fn note_done(&mut self, number: u16) {
        if let Some(flow) = self.flow(number) {
            flow.pause = flow.pause.first();
        }
    }

    /// Notes what time it is, in milliseconds, and those that are due by that; returns in how many to look
    /// again, if there are others.
    pub(crate) fn look(&mut self, now: u64) -> Option<u64> {
        let now = now.max(self.now);
        let mut soonest: Option<u64> = None;
        for queue in 0..DUE {
            // As many as are to be told of.
            while let Some(number) = self.first(queue) {
                let at = self.flow(number).map_or(0, |flow| flow.at);
                let left = u64::from(at.wrapping_sub(low(self.now)));
                let left = self.now.saturating_add(left).saturating_sub(now);
                if left != 0 {
                    soonest = Some(soonest.map_or(left, |soonest| soonest.min(left)));
                    break;
                }
                self.unlink(number);
                self.link(number, DUE);
            }
        }
        self.now = now;
        soonest
    }

    /// Returns the first flow that is due.
    pub(crate) fn first_due(&self) -> Option<u16> {
        self.first(DUE)
    }

    /// The initiator is told of the first flow that is due; again after a while.
    pub(crate) fn tell(&mut self) {
        let Some(number) = self.first(DUE) else {
            return;
        };
        self.unlink(number);
        let now = self.now;
        let Some(flow) = self.flow(number) else {
            return;
        };
        flow.pause = flow.pause.told();
        flow.at = low(now.saturating_add(flow.pause.millis()));
        let queue = flow.pause.queue();
        self.link(number, queue);
    }

    /// All of which the initiator was told are due again, as that may have been lost.
    pub(crate) fn tell_again(&mut self) {
        for queue in 0..DUE {
            let mut next = self.first(queue);
            while let Some(number) = next {
                let Some(&mut Flow { behind, pause, .. }) = self.flow(number) else {
                    break;
                };
                next = (behind < end(0)).then_some(behind);
                if pause.is_told() {
                    self.unlink(number);
                    self.link(number, DUE);
                }
            }
        }
    }
}
