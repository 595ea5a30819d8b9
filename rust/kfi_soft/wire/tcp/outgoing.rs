// SPDX-License-Identifier: GPL-2.0

//! The initiator's side of a lane: which requests are under way, and what is to be sent for them.
//!
//! There is no input and output here, and no time: bytes that were received go in, bytes that are to be
//! sent come out. So this runs in user space, too, over connections that break at any byte.
//!
//! A request has a number from when it is first sent. It stays here until its answer was read; on a
//! new connection those that the target has not read are sent again, with the same numbers.

#![forbid(unsafe_code)]

use core::ops::DerefMut;

use super::frame::{
    Broken,
    Common,
    Frame,
    Response,
    MAX_ATOMIC,
    MAX_REQUEST,
    NOT_READY,
    NO_ROOM, //
};
use crate::kfi::linux::queue::{
    Entry,
    EntryQueue,
    Named, //
};

/// A request, as this has to do with it.
pub(crate) trait Outgoing {
    /// Where bytes go that are sent straight from where they lie.
    type Output;

    /// Takes it out of the hands of its initiator, or has done so when it was made; `false` if that has ended it.
    fn begin(&mut self) -> bool;

    /// Returns whether its initiator does not want it any more.
    fn is_withdrawn(&self) -> bool;

    /// Returns the flow that it belongs to, of so many, in a lane with this `key`: those of one keep their order.
    fn flow(&self, flows: u16, key: u64) -> u16;

    /// Writes the header of its frame, with this number and this `ack`; returns how long it is, and how many
    /// bytes follow. `None` if there is no room.
    fn header(&self, id: u64, ack: u64, terms: Terms, bytes: &mut [u8]) -> Option<(usize, usize)>;

    /// Writes bytes of what follows, from `offset` on, all of `to`.
    fn read(&self, offset: usize, to: &mut [u8]);

    /// Returns whether what follows can be sent straight from where it lies.
    fn goes_straight(&self) -> bool;

    /// Has bytes of what follows sent straight from where they lie, from `offset` on, up to `len`; returns how many
    /// were.
    fn send(&self, offset: usize, len: usize, output: &mut Self::Output) -> usize;

    /// Returns how many bytes of its data the target may pull.
    fn data(&self) -> u64;

    /// Returns how many bytes of results there may be, and whether they come as [`Frame::Data`].
    fn results(&self) -> (u64, bool);

    /// Returns how many bytes the operation has.
    fn len(&self) -> u64;

    /// Takes bytes of the results, from `offset` on.
    fn write(&self, offset: usize, from: &[u8]);
}

/// The errno of a request that cannot be sent: `EINVAL`.
const INVALID: u32 = 22;
/// The errno of a request that is not wanted any more, and was not taken: `ECANCELED`.
const CANCELLED: u32 = 125;

/// 2^64, divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the flow, of so many, of what has these numbers, in a lane with this `key`. Without the key nobody can
/// tell which other numbers have the same flow.
pub(crate) fn spread(numbers: [u64; 3], flows: u16, key: u64) -> u16 {
    let mut hash = key;
    for number in numbers {
        hash ^= number;
        for _ in 0..2 {
            hash = hash.wrapping_mul(GOLDEN);
            hash ^= hash >> 32;
        }
    }
    let flow = hash.checked_rem(u64::from(flows)).unwrap_or(0);
    u16::try_from(flow).unwrap_or(0)
}

/// So many requests are looked at, or held, in a turn, for each reason: those of others do not wait for more.
const STEP: usize = 64;

/// The most bytes of a frame of data.
const PIECE: u32 = 256 << 10;

/// The terms of the lane for the header of a request.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// The most bytes of data that it may bring.
    pub(crate) eager: u64,
    /// Its flow.
    pub(crate) flow: u16,
    /// It is the first one after its flow was stopped.
    pub(crate) restarts: bool,
    /// For how many milliseconds it has waited for its receiver.
    pub(crate) waited: u32,
}

/// Which one of its flow a request is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The first one after that was stopped.
    First,
    /// Any other.
    Later,
}

/// A request that is under way.
pub(crate) struct Sent<R> {
    /// The request.
    pub(crate) request: R,
    /// Its number.
    id: u64,
    /// Where it stands among those that are held: its flow, one more than that, and in what order they were
    /// begun. Else 0, and its number.
    name: Name,
    /// Its flow.
    flow: u16,
    /// In what order it was begun.
    order: u64,
    turn: Turn,
    /// For how many milliseconds it has waited for its receiver, as far as the target was told or has told.
    waited: u32,
    /// Since when it is kept here, in milliseconds, as its receiver was not ready.
    kept: Option<u64>,
    /// How many bytes of its results have come.
    arrived: u32,
    /// Bytes of its data that the target wants: from here ...
    pulled: u32,
    /// ... to here.
    until: u32,
    /// The target was told that it is not wanted any more, on this connection.
    withdrawn: bool,
    /// It is not wanted any more, and among those of which round that was found.
    unwanted: Option<u64>,
    /// The target is to be told that all its results have come.
    landed: bool,
    /// It was answered, and waits for the end of a frame that is being sent.
    answered: bool,
    /// The answer of the target: 0, or an errno.
    pub(crate) status: u32,
}

impl<R: Outgoing> Sent<R> {
    /// A request that has no number yet.
    pub(crate) fn new(request: R) -> Self {
        Self {
            flow: 0,
            request,
            id: 0,
            name: (0, 0),
            order: 0,
            turn: Turn::Later,
            waited: 0,
            kept: None,
            arrived: 0,
            pulled: 0,
            until: 0,
            withdrawn: false,
            unwanted: None,
            landed: false,
            answered: false,
            status: 0,
        }
    }
}

impl<R> Named for Sent<R> {
    type Name = Name;

    fn name(&self) -> Name {
        self.name
    }
}

impl<R> Sent<R> {
    /// Returns whether its results have come, which is to be said, or the target has pulled data that are to be sent.
    fn is_wanted(&self) -> bool {
        self.landed || self.pulled < self.until
    }

    /// The target says that it has waited for so many milliseconds, and has not taken it. Those that it was
    /// there for another reason do not count, so it is the target that knows. Nor do those from now on, unless
    /// it is its receiver that it waits for: then they are since `kept`.
    fn has_waited(&mut self, millis: u32, kept: Option<u64>) {
        // A target that forgets what it was told changes nothing.
        self.waited = self.waited.max(millis);
        self.kept = kept;
    }

    /// Returns for how many milliseconds it has waited for its receiver: as the target says, and here.
    fn waited(&self, now: u64) -> u32 {
        let kept = self.kept.map_or(0, |since| now.saturating_sub(since));
        let kept = u32::try_from(kept).unwrap_or(u32::MAX);
        self.waited.saturating_add(kept)
    }

    /// The target is told that it has waited for so many milliseconds, and has it.
    fn was_told(&mut self, waited: u32) {
        (self.waited, self.kept) = (waited, None);
    }
}

/// The name of a request.
type Name = (u64, u64);

/// Returns the first name that may be behind another one.
fn behind((flow, order): Name) -> Name {
    (flow, order.saturating_add(1))
}

/// A search among requests, some of them at a time, in the order of their names. The default is over.
///
/// It comes to all that are there when it begins, and stay in their places.
#[derive(Clone, Copy, Default)]
struct Search {
    /// It goes on with the first request that has this name, or a later one; none if it is over.
    next: Option<Name>,
    /// Another one begins when it is over.
    again: bool,
}

impl Search {
    /// The name with which it begins.
    const FIRST: Name = (0, 0);

    /// One that has just begun.
    const BEGUN: Self = Self {
        next: Some(Self::FIRST),
        again: false,
    };

    /// Has all requests be looked at that are there now.
    fn begin(&mut self) {
        if self.is_over() {
            *self = Self::BEGUN;
        } else {
            // It has passed some of them.
            self.again = true;
        }
    }

    /// Has a request be looked at behind which there is none that was to be.
    fn include(&mut self, name: Name) {
        let next = self.next.map_or(name, |next| next.min(name));
        self.next = Some(next);
    }

    /// It has come to a name, or to the end.
    fn go_on(&mut self, next: Option<Name>) {
        let again = next.is_none() && self.again;
        if again {
            *self = Self::BEGUN;
        } else {
            self.next = next;
        }
    }

    /// Returns whether nothing is left to be looked at.
    fn is_over(&self) -> bool {
        self.next.is_none()
    }
}

/// The body that is being received.
#[derive(Clone, Copy)]
struct Body {
    /// The request that it is for; 0 if nobody wants it.
    id: u64,
    /// Where its next byte goes among the results.
    offset: u64,
    /// It is that of the answer.
    last: bool,
}

/// The body that is being sent.
#[derive(Clone, Copy)]
struct Writing {
    id: u64,
    /// The next byte of the data of the request.
    offset: usize,
    /// The end of the body among these.
    end: usize,
    /// It is one that the target has pulled, not that of the request.
    pulled: bool,
}

/// How far a lane may go.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// Numbers behind the last one that the target knows to be over.
    pub(crate) numbers: u64,
    /// The flows that it knows: as many on all connections of a session.
    pub(crate) flows: u32,
    /// The most bytes of data that a request may bring to it.
    pub(crate) eager: u32,
}

impl Window {
    /// Nothing may be sent.
    pub(crate) const NONE: Self = Self {
        numbers: 0,
        flows: 0,
        eager: 0,
    };
}

/// The most bytes of data that go with a request, as those of others wait for that.
const MAX_EAGER: u32 = PIECE;

/// The most numbers that are used of a window.
const MAX_NUMBERS: u64 = 1 << 15;

/// Whether requests of a flow are sent.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Pace {
    /// They are.
    #[default]
    Runs,
    /// They are, and the next one says that it is the first one after that was not so.
    Restarts,
    /// They are not.
    Stopped,
    /// They are not; the target lets them be sent again, and does so when none is under way.
    Goes,
}

/// A flow. The default is one of which there is nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    /// How many of it are under way.
    under_way: u16,
    /// The one behind it, if it is listed.
    next: u16,
    pace: Pace,
    /// Some of it may be held.
    holds: bool,
    /// It is one of those of which a request that is held may be sent.
    listed: bool,
}

impl Flow {
    /// Returns whether requests of it are sent.
    fn is_open(self) -> bool {
        matches!(self.pace, Pace::Runs | Pace::Restarts)
    }
}

/// The flows of which requests that are held may be sent, one after the other: the first one and the last.
type Listed = Option<(u16, u16)>;

/// The requests of a lane.
///
/// `F` is memory for flows.
pub(crate) struct Lane<R, F> {
    /// The time, in milliseconds.
    now: u64,
    /// The requests that have a number, in order.
    sent: EntryQueue<Sent<R>>,
    /// The requests that were answered, for [`Self::take_answered`].
    answered: EntryQueue<Sent<R>>,
    /// The number that the next one gets.
    next: u64,
    /// The next one to be sent on this connection.
    at: u64,
    /// All below this one are over, as far as the target was told on this connection.
    told: u64,
    window: Window,
    writing: Option<Writing>,
    /// Bodies of which as many bytes are left are for [`Self::send`], if they can be.
    straight: usize,
    body: Option<Body>,
    /// Data of the next one from here on are sent next, of those that were pulled.
    turn: u64,
    /// How many of those that were sent are [`Sent::is_wanted`].
    wanted: usize,
    /// A request is sent next, if there is one.
    request_next: bool,
    /// The next number is for a request that has come since, if there is one; else for one that is held.
    fresh_next: bool,
    /// The search for requests that are not wanted any more, of which the target is to be told.
    tells: Search,
    /// The search for requests of which this was not known yet: among those that have a number, ...
    among_sent: Search,
    /// ... and among those that are held.
    among_held: Search,
    /// How many may still be looked at in this turn, how many held, and how many passed that are not pulled.
    looks: usize,
    holds: usize,
    seeks: usize,
    /// How many are not wanted any more: those of this round, and those of the next one. Or the other way
    /// around, if the number of the round is odd.
    unwanted: [usize; 2],
    round: u64,
    /// The round of those that the search finds.
    joined: u64,
    /// Another number whenever one of this round ends, or bytes are moved of one that is not wanted.
    parting: u64,
    /// The next requests that have come since, and have neither a number nor a flow: see [`Self::keep`].
    ready: EntryQueue<Sent<R>>,
    /// The requests that the target has not taken, and those of the same flows that have come since.
    held: EntryQueue<Sent<R>>,
    /// How many requests have been begun.
    begun: u64,
    flows: F,
    /// How many of them are used.
    used: u16,
    /// A random number, by which requests have their flows.
    key: u64,
    listed: Listed,
}

impl<R: Outgoing, F: DerefMut<Target = [Flow]>> Lane<R, F> {
    /// At the beginning of a session. There is nothing of any flow. `key` is a random number.
    pub(crate) fn new(flows: F, key: u64) -> Self {
        Self {
            now: 0,
            sent: EntryQueue::new(),
            answered: EntryQueue::new(),
            next: 1,
            at: 1,
            told: 1,
            window: Window::NONE,
            writing: None,
            straight: usize::MAX,
            body: None,
            turn: 0,
            wanted: 0,
            request_next: true,
            fresh_next: true,
            tells: Search::default(),
            among_sent: Search::default(),
            among_held: Search::default(),
            looks: 0,
            holds: 0,
            seeks: 0,
            unwanted: [0; 2],
            round: 0,
            joined: 0,
            parting: 0,
            ready: EntryQueue::new(),
            held: EntryQueue::new(),
            begun: 0,
            flows,
            used: 0,
            key,
            listed: None,
        }
    }

    /// Returns whether it has memory for flows, without which it is not to be connected, and nothing to be
    /// received or sent.
    pub(crate) fn has_flows(&self) -> bool {
        !self.flows.is_empty()
    }

    /// Gives it memory for flows, of which there is nothing, always of the same size, when it has none.
    pub(crate) fn set_flows(&mut self, flows: F) {
        self.flows = flows;
    }

    /// Puts `none`, which is of no size, in the place of the memory for flows, and returns that, if there is
    /// nothing of any flow.
    pub(crate) fn take_flows(&mut self, none: F) -> Option<F> {
        // None that is listed or stopped is as by default.
        let is_idle = self.len() == 0 && self.flows.iter().all(|flow| *flow == Flow::default());
        is_idle.then(|| core::mem::replace(&mut self.flows, none))
    }

    /// Leaves bodies of which as many bytes are left to [`Self::send`].
    pub(crate) fn set_straight(&mut self, least: usize) {
        self.straight = least;
    }

    /// Says what time it is, in milliseconds.
    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// Some initiators may not want what was sent, or is held: begins to look for these, and [`Self::fill`]
    /// tells the target. Returns what [`Self::search`] does.
    pub(crate) fn recall(&mut self) -> bool {
        self.tells.begin();
        self.among_sent.begin();
        self.among_held.begin();
        self.search_ready();
        self.search()
    }

    /// Looks at those that are the next, which are few, and ends those of them that are not wanted any more.
    fn search_ready(&mut self) {
        for _ in 0..self.ready.len() {
            match self.ready.pop_front() {
                Some(entry) if entry.request.is_withdrawn() => self.end_held(entry),
                Some(entry) => self.ready.push_back(entry),
                None => return,
            }
        }
    }

    /// Looks for some more requests that are not wanted any more, and ends those of them that are held; returns
    /// whether there are others to be looked at. However many are under way, this takes no longer.
    ///
    /// A request that goes to another place meanwhile is looked at when it does.
    pub(crate) fn search(&mut self) -> bool {
        self.search_sent();
        self.search_held();
        !self.among_sent.is_over() || !self.among_held.is_over()
    }

    /// Looks at some that have a number.
    fn search_sent(&mut self) {
        let round = self.joining();
        let mut next = self.among_sent.next;
        let mut found: usize = 0;
        for _ in 0..STEP {
            let Some(from) = next else {
                break;
            };
            let Some(mut sent) = self.sent.find_named(&from) else {
                next = None;
                break;
            };
            next = Some(behind(sent.name));
            if sent.unwanted.is_none() && sent.request.is_withdrawn() {
                sent.unwanted = Some(round);
                found = found.saturating_add(1);
            }
        }
        self.among_sent.go_on(next);
        if let Some(count) = self.unwanted.get_mut(usize::from(round & 1 != 0)) {
            *count = count.saturating_add(found);
        }
    }

    /// Returns the round of those that the search finds: one for all of them, as long as that is not over.
    fn joining(&mut self) -> u64 {
        let is_over = self.joined.wrapping_sub(self.round) > 1;
        if is_over || self.among_sent.next == Some(Search::FIRST) {
            // Requests that come to this while others are to end wait for these.
            let busy = self.unwanted_of(self.round) != 0;
            self.joined = self.round.wrapping_add(u64::from(busy));
        }
        self.joined
    }

    /// Looks at some that are held.
    fn search_held(&mut self) {
        let mut next = self.among_held.next;
        for _ in 0..STEP {
            let Some(from) = next else {
                break;
            };
            let Some(held) = self.held.find_named(&from) else {
                next = None;
                break;
            };
            next = Some(behind(held.name));
            if held.request.is_withdrawn() {
                let entry = held.take();
                self.end_held(entry);
            }
        }
        self.among_held.go_on(next);
    }

    /// A request that was held is not wanted any more.
    fn end_held(&mut self, mut entry: Entry<Sent<R>>) {
        entry.status = CANCELLED;
        self.answered.push_back(entry);
    }

    /// Returns how many of a round are not wanted any more.
    fn unwanted_of(&self, round: u64) -> usize {
        let [even, odd] = self.unwanted;
        if round & 1 == 0 {
            even
        } else {
            odd
        }
    }

    /// Returns a number while some requests are not wanted any more, told or not: another one when all have
    /// ended that were not wanted when it was first returned.
    pub(crate) fn unwanted(&self) -> Option<u64> {
        (self.unwanted != [0; 2]).then_some(self.round)
    }

    /// Returns a number that changes whenever a request of that round ends, or bytes are moved of any that
    /// is not wanted.
    pub(crate) fn parting(&self) -> u64 {
        self.parting
    }

    /// Notes what [`Self::parting`] tells.
    fn note_parting(&mut self) {
        self.parting = self.parting.wrapping_add(1);
    }

    /// One of the requests that were sent was [`Sent::is_wanted`] before, and is now.
    fn note_wanted(wanted: &mut usize, before: bool, now: bool) {
        *wanted = wanted
            .saturating_add(usize::from(now))
            .saturating_sub(usize::from(before));
    }

    /// A request that had a number is over.
    fn end(&mut self, entry: Entry<Sent<R>>) {
        Self::note_wanted(&mut self.wanted, entry.is_wanted(), false);
        if let Some(round) = entry.unwanted {
            if round == self.round {
                self.note_parting();
            }
            if let Some(count) = self.unwanted.get_mut(usize::from(round & 1 != 0)) {
                *count = count.saturating_sub(1);
            }
            if self.unwanted_of(self.round) == 0 {
                self.round = self.round.wrapping_add(1);
            }
        }
        let flow = entry.flow;
        self.answered.push_back(entry);
        self.left(flow);
    }

    /// Returns how many requests are under way.
    pub(crate) fn len(&self) -> usize {
        let held = self.held.len().saturating_add(self.ready.len());
        self.sent.len().saturating_add(held)
    }

    /// Returns how many of these are held until their flow goes on.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the first number that is not over.
    pub(crate) fn ack(&self) -> u64 {
        self.sent.front().map_or(self.next, |first| first.id)
    }

    /// Returns whether the target is to be told that requests are over, though nothing else is to be
    /// sent.
    pub(crate) fn owes_ack(&self) -> bool {
        self.ack() != self.told
    }

    /// Returns how many requests are over of which the target was not told.
    pub(crate) fn untold(&self) -> u64 {
        self.ack().saturating_sub(self.told)
    }

    /// A connection begins, to a target that has read all below `next`.
    pub(crate) fn connected(&mut self, next: u64, window: Window) -> Result<(), Broken> {
        // It has read those that are over, and none that was not sent.
        if next < self.ack() || next > self.next {
            return Err(Broken::Value);
        }
        let most = self.flows.len().min(usize::from(u16::MAX));
        let told = usize::try_from(window.flows).unwrap_or(usize::MAX);
        let used = u16::try_from(told.min(most)).unwrap_or(u16::MAX);
        if used == 0 || (self.used != used && self.begun != 0) {
            return Err(Broken::Value);
        }
        self.used = used;
        self.disconnected();
        self.at = next;
        // Nothing is sure to have arrived of what was told before.
        self.told = 1;
        self.window = window;
        // Asked for again, as that may have been lost.
        self.tells = Search::BEGUN;
        let mut from = 0;
        while let Some(mut sent) = self.sent.find_named(&(0, from)) {
            sent.withdrawn = false;
            sent.landed = false;
            // The target pulls what it lacks.
            (sent.pulled, sent.until) = (0, 0);
            from = sent.id.saturating_add(1);
        }
        self.wanted = 0;
        Ok(())
    }

    /// The connection is over.
    pub(crate) fn disconnected(&mut self) {
        self.body = None;
        if let Some(writing) = self.writing.take() {
            self.end_body(writing);
        }
    }

    /// Takes out the requests that were not asked for yet.
    pub(crate) fn take_ready(&mut self) -> EntryQueue<Sent<R>> {
        core::mem::replace(&mut self.ready, EntryQueue::new())
    }

    /// Takes out all that is under way, as a session is over; requests that come later belong to the next one, and
    /// so do those that were not asked for yet.
    pub(crate) fn end_session(&mut self) -> EntryQueue<Sent<R>> {
        self.disconnected();
        let mut ended = core::mem::replace(&mut self.sent, EntryQueue::new());
        let mut held = core::mem::replace(&mut self.held, EntryQueue::new());
        while let Some(entry) = held.pop_front() {
            ended.push_back(entry);
        }
        self.flows.fill(Flow::default());
        (self.listed, self.begun) = (None, 0);
        (self.next, self.at, self.told) = (1, 1, 1);
        (self.turn, self.wanted, self.request_next) = (0, 0, true);
        self.fresh_next = true;
        let over = Search::default();
        (self.tells, self.among_sent, self.among_held) = (over, over, over);
        self.unwanted = [0; 2];
        self.round = self.round.wrapping_add(1);
        ended
    }

    /// Takes out the requests that were answered.
    pub(crate) fn take_answered(&mut self) -> EntryQueue<Sent<R>> {
        core::mem::replace(&mut self.answered, EntryQueue::new())
    }

    /// Takes a header that was received.
    pub(crate) fn head(&mut self, common: &Common, frame: &Frame<'_>) -> Result<(), Broken> {
        if common.ack > self.at {
            return Err(Broken::Value);
        }
        self.body = None;
        match frame {
            Frame::Data(offset) => self.data(common, *offset),
            Frame::Response(response) => self.response(common, *response),
            Frame::Pull { offset, len } => self.pull(common, *offset, *len),
            Frame::Go(flow) if *flow < self.used => {
                self.let_go(*flow);
                Ok(())
            }
            Frame::Ack | Frame::Unknown => Ok(()),
            // Not from a target, or not before it was asked for.
            _ => Err(Broken::Value),
        }
    }

    /// Checks that a frame is about a request that was sent, all of it.
    fn check_id(&self, id: u64) -> Result<(), Broken> {
        let writes = self
            .writing
            .is_some_and(|writing| writing.id == id && !writing.pulled);
        if id == 0 || id >= self.at || writes {
            return Err(Broken::Value);
        }
        Ok(())
    }

    fn data(&mut self, common: &Common, offset: u64) -> Result<(), Broken> {
        self.check_id(common.id)?;
        let Some(mut sent) = self.sent.find_named(&(0, common.id)) else {
            return Ok(());
        };
        if sent.id != common.id || sent.answered {
            // It was answered on an earlier connection.
            return Ok(());
        }
        let (most, as_data) = sent.request.results();
        let len = u64::try_from(common.body).unwrap_or(u64::MAX);
        let end = offset.checked_add(len).ok_or(Broken::Value)?;
        // From the start again on a new connection.
        let next = offset == 0 || offset == u64::from(sent.arrived);
        if !as_data || end > most || !next {
            return Err(Broken::Value);
        }
        // How much has come in full is known when the body has.
        sent.arrived = u32::try_from(offset).map_err(|_| Broken::Value)?;
        self.body = Some(Body {
            id: common.id,
            offset,
            last: false,
        });
        Ok(())
    }

    fn pull(&mut self, common: &Common, offset: u64, len: u64) -> Result<(), Broken> {
        self.check_id(common.id)?;
        let Some(mut sent) = self.sent.find_named(&(0, common.id)) else {
            return Ok(());
        };
        if sent.id != common.id || sent.answered {
            return Ok(());
        }
        let end = offset.checked_add(len).ok_or(Broken::Value)?;
        // One after the other.
        if end > sent.request.data() || sent.pulled != sent.until {
            return Err(Broken::Value);
        }
        let offset = u32::try_from(offset).map_err(|_| Broken::Value)?;
        let end = u32::try_from(end).map_err(|_| Broken::Value)?;
        let before = sent.is_wanted();
        (sent.pulled, sent.until) = (offset, end);
        Self::note_wanted(&mut self.wanted, before, sent.is_wanted());
        Ok(())
    }

    fn response(&mut self, common: &Common, response: Response) -> Result<(), Broken> {
        self.check_id(common.id)?;
        let Some(mut sent) = self.sent.find_named(&(0, common.id)) else {
            return Ok(());
        };
        if sent.id != common.id || sent.answered {
            return Ok(());
        }
        if matches!(response.status, NOT_READY | NO_ROOM) {
            if self.writing.is_some_and(|writing| writing.id == common.id) {
                // A request of which it has pulled bytes was taken.
                return Err(Broken::Value);
            }
            let kept = (response.status == NOT_READY).then_some(self.now);
            sent.has_waited(response.waited, kept);
            let entry = sent.take();
            self.hold_back(entry);
            return Ok(());
        }
        let (most, as_data) = sent.request.results();
        let len = u64::try_from(common.body).unwrap_or(u64::MAX);
        let wanted = match (response.status, as_data) {
            (0, false) => most,
            _ => 0,
        };
        let arrived = !as_data || u64::from(sent.arrived) == most;
        let whole = response.len == sent.request.len() && arrived;
        if len != wanted || len > MAX_ATOMIC || (response.status == 0 && !whole) {
            return Err(Broken::Value);
        }
        sent.status = response.status;
        if common.body == 0 {
            let id = sent.id;
            if self.writing.is_some_and(|writing| writing.id == id) {
                // Its memory is used until the frame is out.
                let before = sent.is_wanted();
                sent.answered = true;
                sent.pulled = sent.until;
                Self::note_wanted(&mut self.wanted, before, sent.is_wanted());
            } else {
                let entry = sent.take();
                self.end(entry);
            }
        } else {
            self.body = Some(Body {
                id: common.id,
                offset: 0,
                last: true,
            });
        }
        Ok(())
    }

    /// Takes bytes of the body of the last frame; with `last` there are no more of them.
    pub(crate) fn body(&mut self, bytes: &[u8], last: bool) {
        let Some(body) = &mut self.body else {
            return;
        };
        let id = body.id;
        let found = self.sent.find_named(&(0, id));
        let Some(mut sent) = found.filter(|sent| sent.id == id) else {
            return;
        };
        if sent.id != body.id {
            return;
        }
        let offset = usize::try_from(body.offset).unwrap_or(usize::MAX);
        sent.request.write(offset, bytes);
        let parting = u64::from(sent.unwanted.is_some());
        self.parting = self.parting.wrapping_add(parting);
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        body.offset = body.offset.saturating_add(len);
        if last && body.last {
            let entry = sent.take();
            self.end(entry);
        } else if last {
            sent.arrived = u32::try_from(body.offset).unwrap_or(u32::MAX);
            let (most, _) = sent.request.results();
            let before = sent.is_wanted();
            sent.landed = body.offset == most;
            Self::note_wanted(&mut self.wanted, before, sent.is_wanted());
        }
    }

    /// Writes what is to be sent, as far as there is room; returns how many bytes. `fresh` is asked for
    /// requests that have come since, and told of how many more there may be. One call is a turn: see
    /// [`Self::has_more`].
    pub(crate) fn fill(
        &mut self,
        out: &mut [u8],
        mut fresh: impl FnMut(u64) -> Option<Entry<Sent<R>>>,
    ) -> usize {
        let mut done = 0;
        (self.looks, self.holds, self.seeks) = (STEP, STEP, STEP);
        while let Some(room) = out.get_mut(done..).filter(|room| !room.is_empty()) {
            if self.writing.is_none() && self.looks != 0 && !self.tells.is_over() {
                // Before more of what they would end.
                done = done.saturating_add(self.fill_withdrawals(room));
                if self.looks != 0 && !self.tells.is_over() {
                    // The others when there is room.
                    break;
                }
                continue;
            }
            let writing = self.writing;
            let more = match writing {
                // The caller sends it.
                Some(writing) if self.goes_straight(writing) => None,
                Some(writing) => self.fill_body(writing, room),
                None if self.wanted != 0 && !self.request_next => {
                    let pulled = self.fill_pulled(room);
                    if pulled.is_none() && self.is_seeking() {
                        // No more requests before it is found: the target waits for it.
                        break;
                    }
                    self.request_next = true;
                    match pulled {
                        Some(count) => Some(count),
                        None => self.fill_head(room, &mut fresh),
                    }
                }
                None => {
                    self.request_next = false;
                    match self.fill_head(room, &mut fresh) {
                        Some(count) => Some(count),
                        None => self.fill_pulled(room),
                    }
                }
            };
            match more {
                Some(count) => done = done.saturating_add(count),
                None => break,
            }
        }
        done
    }

    /// Returns whether [`Self::fill`] has ended its turn before it has done all for which there was room.
    pub(crate) fn has_more(&self) -> bool {
        let untold = self.looks == 0 && !self.tells.is_over();
        untold || self.holds == 0 || self.is_seeking()
    }

    /// Returns whether a turn has passed as many requests as it may, and there may be more of those that were pulled.
    fn is_seeking(&self) -> bool {
        self.seeks == 0 && self.wanted != 0
    }

    /// Returns whether there is a body for [`Self::send`].
    pub(crate) fn has_straight(&mut self) -> bool {
        self.writing
            .is_some_and(|writing| self.goes_straight(writing))
    }

    /// Returns whether the rest of a body is for [`Self::send`].
    fn goes_straight(&mut self, writing: Writing) -> bool {
        if writing.end.saturating_sub(writing.offset) < self.straight {
            return false;
        }
        let found = self.sent.find_named(&(0, writing.id));
        found.is_some_and(|sent| sent.id == writing.id && sent.request.goes_straight())
    }

    /// When all that [`Self::fill`] has written was sent: has bytes of the body that follows sent straight from where
    /// they lie; returns how many were. Nothing if there is no such body: then there may be more to fill.
    pub(crate) fn send(&mut self, output: &mut R::Output) -> Option<usize> {
        let writing = self.writing?;
        if !self.goes_straight(writing) {
            return None;
        }
        let sent = self.sent.find_named(&(0, writing.id))?;
        let left = writing.end.saturating_sub(writing.offset);
        let count = sent.request.send(writing.offset, left, output).min(left);
        let parting = u64::from(sent.unwanted.is_some() && count != 0);
        self.parting = self.parting.wrapping_add(parting);
        self.written(writing, count);
        Some(count)
    }

    /// So many bytes more of a body have gone.
    fn written(&mut self, writing: Writing, count: usize) {
        let offset = writing.offset.saturating_add(count);
        self.writing = (offset < writing.end).then_some(Writing { offset, ..writing });
        if self.writing.is_none() {
            self.end_body(writing);
        }
    }

    /// Writes more of a body.
    fn fill_body(&mut self, writing: Writing, room: &mut [u8]) -> Option<usize> {
        let count = room.len().min(writing.end.saturating_sub(writing.offset));
        let piece = room.get_mut(..count)?;
        match self.sent.find_named(&(0, writing.id)) {
            Some(sent) if sent.id == writing.id => {
                sent.request.read(writing.offset, piece);
                let parting = u64::from(sent.unwanted.is_some());
                self.parting = self.parting.wrapping_add(parting);
            }
            // It is not answered before all of it was sent.
            _ => piece.fill(0),
        }
        self.written(writing, count);
        Some(count)
    }

    /// The memory of a request is not sent from any more, for now.
    fn end_body(&mut self, writing: Writing) {
        if let Some(sent) = self.sent.find_named(&(0, writing.id)) {
            if sent.id == writing.id && sent.answered {
                let entry = sent.take();
                self.end(entry);
            }
        }
    }

    /// Writes that the results of a request have come, or the header of data that were pulled; each
    /// request has its turn. Passes no more of the others than may be in this turn.
    fn fill_pulled(&mut self, room: &mut [u8]) -> Option<usize> {
        let ack = self.ack();
        while self.seeks != 0 && self.wanted != 0 {
            let Some(mut sent) = self.sent.find_named(&(0, self.turn)) else {
                // It is one of those before.
                self.turn = 0;
                self.seeks = self.seeks.saturating_sub(1);
                continue;
            };
            let id = sent.id;
            if sent.landed {
                let count = Frame::Landed.write(id, ack, 0, room)?;
                sent.landed = false;
                Self::note_wanted(&mut self.wanted, true, sent.is_wanted());
                self.told = ack;
                return Some(count);
            }
            if sent.pulled < sent.until {
                let len = sent.until.saturating_sub(sent.pulled).min(PIECE);
                let body = usize::try_from(len).ok()?;
                let at = u64::from(sent.pulled);
                let count = Frame::Data(at).write(id, ack, body, room)?;
                let offset = usize::try_from(sent.pulled).ok()?;
                sent.pulled = sent.pulled.saturating_add(len);
                Self::note_wanted(&mut self.wanted, true, sent.is_wanted());
                self.writing = Some(Writing {
                    id,
                    offset,
                    end: offset.saturating_add(body),
                    pulled: true,
                });
                self.told = ack;
                self.turn = id.saturating_add(1);
                return Some(count);
            }
            self.turn = id.saturating_add(1);
            self.seeks = self.seeks.saturating_sub(1);
        }
        None
    }

    /// Takes the request out that gets the next number, when there are so many `numbers` left.
    ///
    /// Those that are held and those that have come since take turns. Else one kind could wait for ever: there may always
    /// be more of the other, as flows are stopped and go on again, and initiators go on posting. A turn of which
    /// nothing comes, as no more may be held in this call of [`Self::fill`], counts as one.
    fn take_next(
        &mut self,
        numbers: u64,
        fresh: &mut impl FnMut(u64) -> Option<Entry<Sent<R>>>,
    ) -> Option<Entry<Sent<R>>> {
        let fresh_next = self.fresh_next;
        self.fresh_next = !fresh_next;
        if fresh_next {
            let next = self.take_fresh(numbers, fresh);
            next.or_else(|| self.take_held())
        } else {
            let next = self.take_held();
            next.or_else(|| self.take_fresh(numbers, fresh))
        }
    }

    /// Takes a request out that has come since, and that need not be held, when there are so many `numbers` left. In
    /// a turn no more are held than may be, however fast others come.
    fn take_fresh(
        &mut self,
        numbers: u64,
        fresh: &mut impl FnMut(u64) -> Option<Entry<Sent<R>>>,
    ) -> Option<Entry<Sent<R>>> {
        while let Some(left) = self.holds.checked_sub(1) {
            let mut entry = match self.ready.pop_front() {
                Some(entry) => entry,
                None => fresh(numbers)?,
            };
            // Without a lock, as nobody else has it.
            if entry.request.begin() {
                entry.order = self.begun;
                entry.flow = entry.request.flow(self.used, self.key);
                self.begun = self.begun.saturating_add(1);
                let flow = self.flow(entry.flow);
                if flow.is_none_or(|flow| flow.is_open() && !flow.holds) {
                    return Some(entry);
                }
                self.hold(entry);
            }
            self.holds = left;
        }
        None
    }

    /// Keeps a request that has come since and that [`Self::fill`] did not ask for, behind those that it did: it
    /// is asked for before others.
    pub(crate) fn keep(&mut self, mut entry: Entry<Sent<R>>) {
        if entry.request.begin() {
            self.ready.push_back(entry);
        }
    }

    /// Takes a request out that was held, of a flow that goes on; each flow has its turn.
    fn take_held(&mut self) -> Option<Entry<Sent<R>>> {
        while let Some(left) = self.holds.checked_sub(1) {
            let number = self.unlist()?;
            if let Some(entry) = self.take_held_of(number) {
                return Some(entry);
            }
            self.holds = left;
        }
        None
    }

    /// Takes the first request out that is held of a flow, if that goes on. A request that is not wanted any more
    /// ends instead.
    fn take_held_of(&mut self, number: u16) -> Option<Entry<Sent<R>>> {
        if self.flow(number).is_none_or(|flow| !flow.is_open()) {
            // Stopped again. It is listed when it goes on.
            return None;
        }
        let entry = self.next_held(number);
        if self.next_held_is_none(number) {
            if let Some(flow) = self.flow(number) {
                flow.holds = false;
            }
        }
        self.list(number);
        let entry = entry?;
        if entry.request.is_withdrawn() {
            // The search has not come to it, and may have passed the place that it would go to.
            self.end_held(entry);
            return None;
        }
        Some(entry)
    }

    /// Returns a flow.
    fn flow(&mut self, number: u16) -> Option<&mut Flow> {
        self.flows.get_mut(usize::from(number))
    }

    /// Puts a flow behind those of which requests that are held may be sent, if that is so.
    fn list(&mut self, number: u16) {
        let Some(flow) = self.flow(number) else {
            return;
        };
        if flow.listed || !flow.holds || !flow.is_open() {
            return;
        }
        flow.listed = true;
        let first = match self.listed {
            Some((first, last)) => {
                if let Some(last) = self.flow(last) {
                    last.next = number;
                }
                first
            }
            None => number,
        };
        self.listed = Some((first, number));
    }

    /// Takes the first one out.
    fn unlist(&mut self) -> Option<u16> {
        let (first, last) = self.listed?;
        let flow = self.flow(first)?;
        flow.listed = false;
        // One that is not listed is as if it never was: see [`Self::take_flows`].
        let next = core::mem::take(&mut flow.next);
        self.listed = (first != last).then_some((next, last));
        Some(first)
    }

    /// Takes the first request out that is held of a flow.
    fn next_held(&mut self, flow: u16) -> Option<Entry<Sent<R>>> {
        let found = self
            .held
            .find_named(&(u64::from(flow).saturating_add(1), 0))?;
        (found.flow == flow).then(|| found.take())
    }

    /// Returns whether none is held of a flow.
    fn next_held_is_none(&mut self, flow: u16) -> bool {
        let found = self
            .held
            .find_named(&(u64::from(flow).saturating_add(1), 0));
        found.is_none_or(|found| found.flow != flow)
    }

    /// Gives a request the next number.
    fn number(&mut self, mut entry: Entry<Sent<R>>) {
        if let Some(flow) = self.flow(entry.flow) {
            flow.under_way = flow.under_way.saturating_add(1);
            entry.turn = match flow.pace {
                Pace::Restarts => {
                    flow.pace = Pace::Runs;
                    Turn::First
                }
                _ => Turn::Later,
            };
        }
        entry.id = self.next;
        entry.name = (0, self.next);
        self.next = self.next.saturating_add(1);
        self.sent.push_named(entry);
    }

    /// Keeps a request until its flow goes on.
    fn hold(&mut self, mut entry: Entry<Sent<R>>) {
        if let Some(flow) = self.flow(entry.flow) {
            flow.holds = true;
        }
        entry.name = (u64::from(entry.flow).saturating_add(1), entry.order);
        self.held.push_named(entry);
    }

    /// The target has not taken a request.
    fn hold_back(&mut self, mut entry: Entry<Sent<R>>) {
        let number = entry.flow;
        Self::note_wanted(&mut self.wanted, entry.is_wanted(), false);
        (entry.pulled, entry.until, entry.arrived) = (0, 0, 0);
        (entry.withdrawn, entry.landed) = (false, false);
        if let Some(flow) = self.flow(number).filter(|flow| flow.is_open()) {
            flow.pace = Pace::Stopped;
        }
        if entry.request.is_withdrawn() {
            entry.status = CANCELLED;
            self.end(entry);
        } else {
            self.hold(entry);
            self.left(number);
        }
    }

    /// A request of a flow is not under way any more.
    fn left(&mut self, number: u16) {
        if let Some(flow) = self.flow(number) {
            flow.under_way = flow.under_way.saturating_sub(1);
        }
        self.settle(number);
    }

    /// The target lets a flow go on.
    fn let_go(&mut self, number: u16) {
        let Some(flow) = self.flow(number) else {
            return;
        };
        match flow.pace {
            Pace::Stopped => flow.pace = Pace::Goes,
            // Requests that it has not taken are not wanted any more, or the flow was stopped in its eyes
            // alone: it takes none before the first one after that.
            Pace::Runs if flow.under_way == 0 => flow.pace = Pace::Restarts,
            // Else it has gone on, or one that is under way is the first that is not taken; then the target
            // says so again.
            _ => {}
        }
        self.settle(number);
    }

    /// Lets a flow go on, if the target does, and none is under way: those would not be taken either, and
    /// come before others.
    fn settle(&mut self, number: u16) {
        let Some(flow) = self.flow(number) else {
            return;
        };
        if flow.pace == Pace::Goes && flow.under_way == 0 {
            flow.pace = Pace::Restarts;
            self.list(number);
        }
    }

    /// Writes the header of the next request.
    fn fill_head(
        &mut self,
        room: &mut [u8],
        fresh: &mut impl FnMut(u64) -> Option<Entry<Sent<R>>>,
    ) -> Option<usize> {
        let ack = self.ack();
        loop {
            if self.at == self.next {
                // The target knows `ack` by the header that is about to be written.
                let most = self.window.numbers.min(MAX_NUMBERS);
                let numbers = most.saturating_sub(self.next.saturating_sub(ack));
                if numbers == 0 {
                    return None;
                }
                let entry = self.take_next(numbers, fresh)?;
                self.number(entry);
            }
            let Some(mut sent) = self.sent.find_named(&(0, self.at)) else {
                // Those from `at` on were answered without having been read. No target does that, and others
                // are not to wait for it.
                self.at = self.next;
                continue;
            };
            let id = sent.id;
            let terms = Terms {
                eager: u64::from(self.window.eager.min(MAX_EAGER)),
                flow: sent.flow,
                restarts: sent.turn == Turn::First,
                waited: sent.waited(self.now),
            };
            // Requests between `at` and this one were answered without having been read: no target does that.
            let Some((head, len)) = sent.request.header(id, ack, terms, room) else {
                if room.len() < MAX_REQUEST || id.saturating_add(1) != self.next {
                    return None;
                }
                // No frame can say it. The number is that of the next one.
                let mut entry = sent.take();
                entry.status = INVALID;
                if entry.turn == Turn::First {
                    if let Some(flow) = self.flow(entry.flow) {
                        flow.pace = Pace::Restarts;
                    }
                }
                self.end(entry);
                self.next = id;
                // It counts as one that is held.
                self.holds = self.holds.checked_sub(1)?;
                continue;
            };
            sent.was_told(terms.waited);
            self.at = id.saturating_add(1);
            self.told = ack;
            // While it was not sent, on this connection, there was nothing to be said of it.
            if sent.request.is_withdrawn() {
                self.tells.include(sent.name);
            }
            self.writing = (len != 0).then_some(Writing {
                id,
                offset: 0,
                end: len,
                pulled: false,
            });
            return Some(head);
        }
    }

    /// Writes that the initiators of some requests do not want them any more, as far as there is room, and as
    /// more may be looked at in this turn; returns how many bytes. Between two frames only.
    fn fill_withdrawals(&mut self, out: &mut [u8]) -> usize {
        let (ack, at) = (self.ack(), self.at);
        let mut done = 0;
        while let Some(from) = self.tells.next {
            let Some(left) = self.looks.checked_sub(1) else {
                break;
            };
            // Requests that are sent later are looked at when that is done.
            let found = self.sent.find_named(&from).filter(|sent| sent.id < at);
            let Some(mut sent) = found else {
                self.looks = left;
                self.tells.go_on(None);
                continue;
            };
            let over = sent.withdrawn || sent.answered;
            if !over && sent.request.is_withdrawn() {
                let room = out.get_mut(done..).unwrap_or(&mut []);
                let Some(count) = Frame::Withdraw.write(sent.id, ack, 0, room) else {
                    // It and the others when there is room.
                    break;
                };
                sent.withdrawn = true;
                self.told = ack;
                done = done.saturating_add(count);
            }
            self.looks = left;
            self.tells.go_on(Some(behind(sent.name)));
        }
        done
    }

    /// Writes that requests are over, if there is something to be told; returns how many bytes. Between
    /// two frames only.
    pub(crate) fn fill_ack(&mut self, out: &mut [u8]) -> usize {
        if self.writing.is_some() || !self.owes_ack() {
            return 0;
        }
        let ack = self.ack();
        let count = Frame::Ack.write(0, ack, 0, out).unwrap_or(0);
        if count != 0 {
            self.told = ack;
        }
        count
    }

    /// Returns whether it is between two frames of what it sends.
    pub(crate) fn is_between(&self) -> bool {
        self.writing.is_none()
    }
}
