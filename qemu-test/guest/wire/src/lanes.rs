// SPDX-License-Identifier: GPL-2.0

//! Both sides of a lane, over connections that break at any byte.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use proptest::prelude::*;

use crate::frame::{
    Broken, Frame, Kind, Range, Ranges, Request, Response, MAX_HEAD, MAX_OTHER, MAX_REQUEST,
    NOT_READY, NO_ROOM,
};
use crate::incoming::{self, Begun, Moved, LOOKS};
use crate::kfi::linux::queue::Entry;
use crate::outgoing::{self, Flow, Sent, Terms, Window};
use crate::stops::{self, Stops, User, Why, FLOWS};
use crate::stream::{Part, Stream};
use crate::wire::awaits::Awaits;

/// Numbers of a test, each from the one before.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// Has data.
    Send,
    /// Its results come as data.
    Read,
    /// Its data are pulled.
    Long,
    /// Its results are fetched.
    LongRead,
    /// Has data, and its results come with the answer.
    Fetch,
    /// No frame can say it.
    Unsayable,
}

/// An operation.
#[derive(Debug)]
struct Operation {
    number: u64,
    what: What,
    len: usize,
    results: RefCell<Vec<u8>>,
    /// Its initiator has ended it before it was sent.
    gone: Cell<bool>,
    begun: Cell<bool>,
    withdrawn: Cell<bool>,
    /// How often it was asked whether it is wanted.
    looked: Cell<usize>,
    answers: Cell<usize>,
}

/// Returns the flow of an operation.
fn flow(number: u64) -> u16 {
    (number % 3) as u16
}

/// Returns the user to whom an operation goes, of so many: the same one, if there are none, but for very high
/// numbers.
fn user(number: u64, users: u64) -> u32 {
    match users {
        0 => (number >> 16) as u32,
        _ => (number % users) as u32,
    }
}

/// Returns byte `at` of the data, or of the results, of an operation.
fn byte(number: u64, at: usize, result: bool) -> u8 {
    (number as usize * 31 + at * 7 + usize::from(result) * 101) as u8
}

/// What takes bytes straight from an operation, so many of them.
struct Output {
    bytes: Vec<u8>,
    most: usize,
}

/// Bytes that come straight to the target, so many of them.
struct Input {
    bytes: VecDeque<u8>,
    most: usize,
    taken: usize,
}

impl outgoing::Outgoing for Rc<Operation> {
    type Output = Output;

    fn begin(&mut self) -> bool {
        self.begun.set(true);
        !self.gone.get()
    }

    fn is_withdrawn(&self) -> bool {
        self.looked.set(self.looked.get() + 1);
        self.withdrawn.get()
    }

    fn flow(&self, _flows: u16, _key: u64) -> u16 {
        flow(self.number)
    }

    fn header(&self, id: u64, ack: u64, terms: Terms, bytes: &mut [u8]) -> Option<(usize, usize)> {
        let (kind, body) = match self.what {
            What::Send => (Kind::Message, self.len),
            What::Long => (Kind::Write, 0),
            What::Read | What::LongRead => (Kind::Read, 0),
            What::Fetch => (
                Kind::Atomic {
                    form: 1,
                    op: 2,
                    datatype: 0,
                },
                self.len,
            ),
            What::Unsayable => return None,
        };
        let range = Range {
            addr: 0,
            len: self.len as u64,
            key: 0,
        };
        let ranges = usize::from(self.what != What::Send);
        let ranges = std::iter::repeat_n(range, ranges);
        let request = Request {
            kind,
            from: 1,
            to: 2,
            context: 0,
            named: false,
            flow: terms.flow,
            key: b"",
            tag: self.number
                | if self.what == What::LongRead {
                    1 << 32
                } else {
                    0
                },
            data: None,
            len: self.len as u64,
            offset: 0,
            ranges: Ranges::NONE,
            eager: matches!(self.what, What::Send | What::Fetch),
            restarts: terms.restarts,
            waited: terms.waited,
        };
        let head = request.write(id, ack, body, ranges, bytes)?;
        Some((head, body))
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        for (at, to) in to.iter_mut().enumerate() {
            *to = byte(self.number, offset + at, false);
        }
    }

    fn goes_straight(&self) -> bool {
        matches!(self.what, What::Send | What::Long)
    }

    fn send(&self, offset: usize, len: usize, output: &mut Output) -> usize {
        assert_eq!(self.answers.get(), 0, "data after the answer");
        let count = len.min(output.most);
        let bytes = (offset..offset + count).map(|at| byte(self.number, at, false));
        output.bytes.extend(bytes);
        count
    }

    fn data(&self) -> u64 {
        match self.what {
            // It may be that the target does not keep what goes with the request.
            What::Long | What::Send => self.len as u64,
            _ => 0,
        }
    }

    fn results(&self) -> (u64, bool) {
        match self.what {
            What::Send | What::Long | What::Unsayable => (0, false),
            What::Read | What::LongRead => (self.len as u64, true),
            What::Fetch => (self.len as u64, false),
        }
    }

    fn len(&self) -> u64 {
        self.len as u64
    }

    fn write(&self, offset: usize, from: &[u8]) {
        assert_eq!(self.answers.get(), 0, "results after the answer");
        self.results.borrow_mut()[offset..offset + from.len()].copy_from_slice(from);
    }
}

/// An answer of the target.
struct Reply {
    request: Asked,
    status: u32,
    /// Its share of the target's room.
    _room: Option<Rc<()>>,
}

/// A request as the target has it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u64,
    number: u64,
    what: What,
    len: usize,
    /// Milliseconds.
    waited: u32,
    flow: u16,
    user: u32,
}

impl incoming::Answer for Reply {
    fn response(&self) -> (Response, usize, bool) {
        let Asked { what, len, .. } = self.request;
        let results = match what {
            What::Send | What::Long | What::LongRead | What::Unsayable => 0,
            _ if self.status != 0 => 0,
            _ => len,
        };
        let response = Response {
            status: self.status,
            len: if self.status == 0 { len as u64 } else { 0 },
            waited: 0,
        };
        (response, results, what == What::Read)
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        for (at, to) in to.iter_mut().enumerate() {
            *to = byte(self.request.number, offset + at, true);
        }
    }
}

/// A request that is open: its number in the lane, its own, its flow, its user, and whether it was answered.
type Kept = (u64, u64, u16, u32, Rc<Cell<bool>>);

/// When there is no memory.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Lack {
    #[default]
    Never,
    AtTimes,
    /// For any request when all of it is there.
    AtEnd,
}

/// A target that notes what it is asked.
#[derive(Default)]
struct Model {
    /// Bytes change on the way, so that they are not what they were.
    noisy: bool,
    /// Requests that have come, and were not taken back.
    there: BTreeSet<u64>,
    /// Their numbers in the lane.
    numbers: BTreeMap<u64, u64>,
    /// How many users there are, if they are told apart.
    users: u64,
    /// Requests of the same flow and user that were sent before another one, and came after it.
    overtaken: BTreeSet<u64>,
    /// How many were taken back.
    back: usize,
    open: Vec<Asked>,
    withdrawn: Vec<u64>,
    /// None can be taken out of where it waits.
    stuck: bool,
    /// The number in the lane of one that is on its way from one place to another.
    on_its_way: Option<u64>,
    /// The number in the lane of one that its receiver has set aside.
    aside: Option<u64>,
    /// From which one on none waits for a receive, but for room at its receiver.
    crowded: Option<u64>,
    /// For how many milliseconds those have waited that are.
    waits: u32,
    /// For how many they may.
    longest: Option<u32>,
    /// How many chunks of memory were asked for, and whether there is none at times, as of other memory.
    chunks: usize,
    lack: Lack,
    /// Other lanes have as many chunks as count.
    full: bool,
    /// As many uses of these are kept as there are chunks, and as count.
    memory: Rc<()>,
    counted: Rc<()>,
    /// How often other memory was asked for.
    allocations: usize,
    /// How often there was none for a request when all of it was there.
    lacked: usize,
    /// There is room for so many requests that have data and results, until they are over; for the last user
    /// there is none, if they are told apart.
    most: Option<usize>,
    /// As many uses of this are kept as there are such requests: by their numbers in the lane before they are
    /// answered.
    room: Rc<()>,
    rooms: BTreeMap<u64, Rc<()>>,
    /// How many were not taken for lack of room.
    refused: usize,
    started: VecDeque<Asked>,
    /// How much of those has come.
    landed: Vec<(u64, usize)>,
    answered: VecDeque<(u64, u32, Asked)>,
    /// Whether those that have come were answered, by their numbers in the lane.
    said: BTreeMap<u64, Rc<Cell<bool>>>,
    /// Whether the bytes of those that have started were moved.
    ends: Vec<(u64, Moved)>,
}

impl Model {
    /// Returns whether there is no memory now.
    fn is_short(&mut self) -> bool {
        self.allocations += 1;
        self.lack == Lack::AtTimes && self.allocations % 7 == 0
    }

    /// Answers one.
    fn reply(&mut self, asked: Asked, status: u32) {
        if let Some(said) = self.said.get(&asked.id) {
            said.set(true);
        }
        self.answered.push_back((asked.id, status, asked));
    }

    /// Returns how many requests that have data and results are not over.
    fn kept(&self) -> usize {
        Rc::strong_count(&self.room) - 1
    }

    /// Returns whether there is room for one more to a user.
    fn has_room(&self, user: u32) -> bool {
        let is_last = self.users > 1 && u64::from(user) + 1 == self.users;
        self.most.is_none_or(|most| !is_last && self.kept() < most)
    }
}

impl incoming::Target for Model {
    type Open = Kept;
    type Answer = Reply;
    type Checked = (u64, usize);
    type Partial = (Asked, Vec<u8>);
    type Start = Asked;
    type Input = Input;
    type Chunk = Chunk;

    const CHUNK: usize = WINDOW / 4;

    fn chunk(&mut self, more: bool) -> Option<Chunk> {
        self.chunks += 1;
        let there = self.lack != Lack::AtTimes || self.chunks % 3 != 0;
        let there = there && !(more && self.full);
        there.then(|| Chunk {
            slots: (0..Self::CHUNK).map(|_| None).collect(),
            count: more.then(|| self.counted.clone()),
            _there: self.memory.clone(),
        })
    }

    fn is_own(chunk: &mut Chunk) {
        chunk.count = None;
    }

    fn check(&self, request: &Request<'_>, body: usize) -> Result<(u64, usize), Broken> {
        if request.to > 4095 {
            return Err(Broken::Value);
        }
        Ok((request.tag & 0xffff_ffff, body))
    }

    fn begin(
        &mut self,
        id: u64,
        request: &Request<'_>,
        (number, body): (u64, usize),
        alone: bool,
    ) -> Begun<Self::Partial> {
        if self.is_short() {
            return Begun::NoMemory;
        }
        let what = match request.kind {
            Kind::Message => What::Send,
            Kind::Write => What::Long,
            Kind::Read if request.tag >> 32 != 0 => What::LongRead,
            Kind::Read => What::Read,
            _ => What::Fetch,
        };
        let user = user(number, self.users);
        if what == What::Fetch && !alone && !self.has_room(user) {
            self.refused += 1;
            return Begun::NoRoom(Some(user));
        }
        // It has no room for the data of some.
        let kept = what != What::Send || request.len == 0 || number % 5 != 4;
        let asked = Asked {
            id,
            number,
            what: if kept { what } else { What::Long },
            len: request.len as usize,
            waited: request.waited,
            flow: request.flow,
            user,
        };
        let body = vec![0; if kept { body } else { 0 }];
        Begun::Taken((asked, body))
    }

    fn user_of(&self, (number, _): &(u64, usize)) -> User {
        Some(user(*number, self.users))
    }

    fn partial_user((asked, _): &Self::Partial) -> User {
        Some(asked.user)
    }

    fn body(&mut self, (_, body): &mut Self::Partial, offset: usize, bytes: &[u8]) {
        if !body.is_empty() {
            body[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn arrive(&mut self, (asked, body): Self::Partial) -> Option<Kept> {
        if self.lack == Lack::AtEnd {
            self.lacked += 1;
            return None;
        }
        if self.is_short() {
            return None;
        }
        for (at, have) in body.iter().enumerate().filter(|_| !self.noisy) {
            assert_eq!(*have, byte(asked.number, at, false), "data of {asked:?}");
        }
        if !self.noisy {
            let users = self.users;
            let place = |number| (flow(number), user(number, users));
            let earlier = (0..asked.number).filter(|other| place(*other) == place(asked.number));
            let missing = earlier.filter(|other| !self.there.contains(other));
            self.overtaken.extend(missing);
            assert!(self.there.insert(asked.number), "once");
            self.numbers.insert(asked.id, asked.number);
        }
        if asked.what == What::Fetch {
            self.rooms.insert(asked.id, self.room.clone());
        }
        self.open.push(asked);
        let said = Rc::new(Cell::new(false));
        self.said.insert(asked.id, said.clone());
        Some((asked.id, asked.number, asked.flow, asked.user, said))
    }

    fn started(&mut self) -> Option<(u64, usize, bool, Asked)> {
        let asked = self.started.pop_front()?;
        self.landed.push((asked.id, 0));
        Some((asked.id, asked.len, asked.what == What::LongRead, asked))
    }

    fn write(&mut self, (id, number, ..): &Kept, offset: usize, bytes: &[u8]) -> bool {
        let landed = self.landed.iter_mut().find(|(other, _)| other == id);
        let (_, landed) = landed.expect("it has started");
        assert_eq!(offset, *landed, "no gap, and nothing twice");
        *landed += bytes.len();
        if self.noisy {
            return true;
        }
        for (at, have) in bytes.iter().enumerate() {
            assert_eq!(*have, byte(*number, offset + at, false), "of {number}");
        }
        // Some are closed meanwhile.
        number % 7 != 3 || offset < 5000
    }

    fn receive(
        &mut self,
        open: &Kept,
        offset: usize,
        len: usize,
        input: &mut Input,
    ) -> Option<usize> {
        let count = len.min(input.most).min(input.bytes.len());
        if count == 0 {
            return Some(0);
        }
        let bytes: Vec<_> = input.bytes.drain(..count).collect();
        input.taken += count;
        self.write(open, offset, &bytes).then_some(count)
    }

    fn read(&mut self, (_, number, ..): &Kept, offset: usize, to: &mut [u8]) -> bool {
        if self.noisy {
            return true;
        }
        for (at, to) in to.iter_mut().enumerate() {
            *to = byte(*number, offset + at, true);
        }
        number % 7 != 3 || offset < 5000
    }

    fn end(&mut self, asked: Asked, moved: Moved) {
        let status = match moved {
            Moved::All => 0,
            Moved::Lost => 5,
            Moved::Withdrawn => 125,
        };
        if moved == Moved::All && asked.what == What::Long {
            assert!(self.landed.contains(&(asked.id, asked.len)), "all of it");
        }
        self.ends.push((asked.id, moved));
        self.reply(asked, status);
    }

    fn withdraw(&mut self, (id, ..): &Kept) {
        self.withdrawn.push(*id);
    }

    fn is_withdrawn(&self, (id, ..): &Kept) -> bool {
        self.withdrawn.contains(id)
    }

    fn is_answered((.., said): &Kept) -> bool {
        said.get()
    }

    fn flow((_, _, flow, ..): &Kept) -> u16 {
        *flow
    }

    fn user((.., user, _): &Kept) -> User {
        Some(*user)
    }

    fn take_back(&mut self, (id, number, ..): &Kept) -> Option<Awaits> {
        let at = self.open.iter().position(|asked| asked.id == *id)?;
        if self.stuck || [self.aside, self.on_its_way].contains(&Some(*id)) {
            return None;
        }
        let asked = self.open.remove(at);
        self.there.remove(number);
        self.rooms.remove(id);
        self.back += 1;
        if self.crowded.is_some_and(|first| *id >= first) {
            return Some(Awaits::Room);
        }
        Some(Awaits::Receive {
            millis: asked.waited + self.waits,
            compared: true,
            over: self
                .longest
                .is_some_and(|longest| asked.waited + self.waits >= longest),
        })
    }

    fn is_waiting(&self, (id, ..): &Kept) -> bool {
        self.aside != Some(*id) && self.open.iter().any(|asked| asked.id == *id)
    }

    fn answered(&mut self) -> Option<(u64, Reply)> {
        let (id, status, request) = self.answered.pop_front()?;
        let reply = Reply {
            request,
            status,
            _room: self.rooms.remove(&id),
        };
        Some((id, reply))
    }
}

/// Memory for some requests.
struct Chunk {
    slots: Vec<incoming::LaneSlot<Model>>,
    /// A use of [`Model::counted`], if it counts.
    count: Option<Rc<()>>,
    _there: Rc<()>,
}

impl Deref for Chunk {
    type Target = [incoming::LaneSlot<Model>];

    fn deref(&self) -> &Self::Target {
        &self.slots
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.slots
    }
}

/// How many requests may be without an `ack`.
const WINDOW: usize = 16;

type Chunks = Vec<Option<Chunk>>;

/// Memory for flows, none of which is stopped.
fn no_flows() -> Vec<stops::Flow> {
    vec![stops::Flow::default(); FLOWS as usize]
}

/// Both sides, and what is between them.
struct World {
    random: Random,
    /// Milliseconds.
    now: u64,
    initiator: outgoing::Lane<Rc<Operation>, Vec<Flow>>,
    target: incoming::Lane<Model, Chunks, Vec<stops::Flow>>,
    model: Model,
    posted: VecDeque<Rc<Operation>>,
    operations: Vec<Rc<Operation>>,
    there: VecDeque<u8>,
    back: VecDeque<u8>,
    at_target: Stream<Vec<u8>>,
    at_initiator: Stream<Vec<u8>>,
    /// How many bytes went straight, from there and to there.
    straight: (usize, usize),
}

impl World {
    fn new(seed: u64) -> Self {
        let chunks = (0..4).map(|_| None).collect();
        let mut world = Self {
            random: Random(seed | 1),
            now: 10_000,
            initiator: outgoing::Lane::new(vec![Flow::default(); 64], 0),
            target: incoming::Lane::new(chunks, no_flows()),
            model: Model::default(),
            posted: VecDeque::new(),
            operations: Vec::new(),
            there: VecDeque::new(),
            back: VecDeque::new(),
            at_target: Stream::new(vec![0; MAX_HEAD]),
            at_initiator: Stream::new(vec![0; MAX_HEAD]),
            straight: (0, 0),
        };
        world.initiator.set_now(world.now);
        world.connect();
        world
    }

    /// The connection breaks, and there is another one.
    fn connect(&mut self) {
        self.initiator.disconnected();
        self.target.disconnected();
        self.end_answered();
        self.there.clear();
        self.back.clear();
        self.at_target = Stream::new(vec![0; MAX_HEAD]);
        self.at_initiator = Stream::new(vec![0; MAX_HEAD]);
        let ack = self.initiator.ack();
        self.target.connected(ack).expect("it was sent");
        let window = Window {
            numbers: WINDOW as u64,
            flows: FLOWS,
            eager: 1 << 20,
        };
        self.initiator
            .connected(self.target.next(), window)
            .expect("it was read");
    }

    /// The initiator does without memory for flows for a time; returns whether it could.
    fn rest(&mut self) -> bool {
        let flows = self.initiator.take_flows(Vec::new());
        let Some(flows) = flows else {
            return false;
        };
        assert!(!self.initiator.has_flows());
        self.initiator.set_flows(vec![Flow::default(); flows.len()]);
        true
    }

    /// The target does what is due after so many milliseconds, and the initiator rests if it can.
    fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.rest();
        self.target.let_go(self.now);
        self.initiator.set_now(self.now);
    }

    /// Returns whether flows are stopped.
    fn has_stopped(&self) -> bool {
        self.target.has_stopped()
    }

    /// The target stops flows that keep others waiting; returns whether it has to try again.
    fn relieve(&mut self) -> bool {
        self.target.relieve(&mut self.model, self.now)
    }

    /// All that was under way has failed.
    fn begin_session(&mut self) {
        self.initiator.disconnected();
        self.end_answered();
        let mut failed = self.initiator.end_session();
        while let Some(sent) = failed.pop_front() {
            let operation = sent.into_inner().request;
            operation.answers.set(operation.answers.get() + 1);
        }
        if self.random.0 & (1 << 40) != 0 {
            // Else they are sent in the next one.
            let mut failed = self.initiator.take_ready();
            while let Some(sent) = failed.pop_front() {
                let operation = sent.into_inner().request;
                operation.answers.set(operation.answers.get() + 1);
            }
        }
        self.target.end_session(|_, _| {});
        let noisy = self.model.noisy;
        self.model = Model {
            noisy,
            ..Model::default()
        };
        self.connect();
    }

    fn post(&mut self) {
        let kinds = [
            What::Send,
            What::Read,
            What::Fetch,
            What::Long,
            What::LongRead,
        ];
        let what = kinds[self.random.below(5)];
        let len = match what {
            What::Fetch => 1 + self.random.below(4096),
            What::Read => 1 + self.random.below(20_000),
            What::Long | What::LongRead => 1 + self.random.below(60_000),
            What::Send if self.random.below(2) == 0 => self.random.below(40),
            What::Send => self.random.below(20_000),
            What::Unsayable => 0,
        };
        self.post_one(what, len);
    }

    fn post_one(&mut self, what: What, len: usize) {
        let operation = Rc::new(Operation {
            number: self.operations.len() as u64,
            what,
            len,
            results: RefCell::new(match what {
                What::Send | What::Long | What::Unsayable => Vec::new(),
                _ => vec![0; len],
            }),
            gone: Cell::new(false),
            begun: Cell::new(false),
            withdrawn: Cell::new(false),
            looked: Cell::new(0),
            answers: Cell::new(0),
        });
        self.operations.push(operation.clone());
        self.posted.push_back(operation);
    }

    /// The initiator of some operation does not want it any more.
    fn cancel(&mut self) {
        if self.operations.is_empty() {
            return;
        }
        let at = self.random.below(self.operations.len());
        let operation = &self.operations[at];
        if operation.begun.get() {
            operation.withdrawn.set(true);
            self.initiator.recall();
        } else {
            operation.gone.set(true);
        }
    }

    fn send(&mut self) {
        let room = 24 + self.random.below(9000);
        let mut out = vec![0; room];
        // Some are taken at once, and those that were not asked for are kept.
        let at_once = 1 + (self.random.0 >> 40) as usize % 8;
        let posted = &mut self.posted;
        let mut taken = VecDeque::new();
        let fresh = |most: u64| {
            if taken.is_empty() {
                let count = at_once.min(most as usize).min(posted.len());
                taken.extend(posted.drain(..count));
            }
            taken.pop_front().map(|next| Entry::new(Sent::new(next)))
        };
        let mut count = self.initiator.fill(&mut out, fresh);
        // Else it would go on looking for what has been pulled, and there is none.
        assert!(self.initiator.len() != 0 || !self.initiator.has_more());
        for next in taken {
            self.initiator.keep(Entry::new(Sent::new(next)));
        }
        if self.random.below(3) == 0 {
            count += self.initiator.fill_ack(&mut out[count..]);
        }
        let is_full = room - count < MAX_REQUEST;
        if !is_full && !self.initiator.has_more() && !self.initiator.has_straight() {
            // A side that has sent this waits until it is told of something.
            let posted = &mut self.posted;
            let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
            assert_eq!(self.initiator.fill(&mut out[count..], fresh), 0);
        }
        self.there.extend(&out[..count]);
        let most = self.random.below(9000);
        let mut output = Output {
            bytes: Vec::new(),
            most,
        };
        let sent = self.initiator.send(&mut output);
        assert_eq!(sent.unwrap_or(0), output.bytes.len());
        self.straight.0 += output.bytes.len();
        self.there.extend(output.bytes);
        self.end_answered();
        let room = 24 + self.random.below(9000);
        let mut out = vec![0; room];
        let count = self.target.fill(&mut self.model, &mut out);
        if room - count >= MAX_OTHER {
            assert_eq!(self.target.fill(&mut self.model, &mut out[count..]), 0);
        }
        self.back.extend(&out[..count]);
    }

    /// Receives some of what was sent; fails if a side finds that the other breaks the protocol.
    fn receive(&mut self) -> Result<(), Broken> {
        let len = self.at_target.body_to_come();
        if len != 0 && self.random.below(2) == 0 {
            let mut input = Input {
                bytes: std::mem::take(&mut self.there),
                most: self.random.below(9000),
                taken: 0,
            };
            self.target.receive(&mut self.model, len, &mut input);
            self.there = input.bytes;
            self.at_target.pass(input.taken);
            self.straight.1 += input.taken;
        }
        let count = self.random.below(self.there.len() + 1);
        let room = self.at_target.room();
        let count = count.min(room.len());
        for to in &mut room[..count] {
            *to = self.there.pop_front().expect("that many");
        }
        self.at_target.received(count);
        while let Some(part) = self.at_target.next()? {
            match part {
                Part::Head(common, frame) => {
                    self.target.head(&mut self.model, &common, &frame)?;
                }
                Part::Body(bytes, last) => self.target.body(&mut self.model, bytes, last),
            }
        }
        let count = self.random.below(self.back.len() + 1);
        let room = self.at_initiator.room();
        let count = count.min(room.len());
        for to in &mut room[..count] {
            *to = self.back.pop_front().expect("that many");
        }
        self.at_initiator.received(count);
        while let Some(part) = self.at_initiator.next()? {
            match part {
                Part::Head(common, frame) => self.initiator.head(&common, &frame)?,
                Part::Body(bytes, last) => self.initiator.body(bytes, last),
            }
            self.end_answered();
        }
        Ok(())
    }

    /// Takes what the initiator was answered.
    fn end_answered(&mut self) {
        let mut answered = self.initiator.take_answered();
        while let Some(sent) = answered.pop_front() {
            let sent = sent.into_inner();
            let operation = sent.request;
            for (at, have) in operation.results.borrow().iter().enumerate() {
                let wanted = byte(operation.number, at, true);
                let right = sent.status != 0 || self.model.noisy || *have == wanted;
                assert!(right, "results of {}", operation.number);
            }
            operation.answers.set(operation.answers.get() + 1);
        }
    }

    /// Sends and receives until nothing more comes of that.
    fn settle(&mut self) {
        self.settle_for(500);
    }

    /// Sends and receives so many times.
    fn settle_for(&mut self, steps: usize) {
        for _ in 0..steps {
            self.send();
            self.receive().expect("both keep to the protocol");
        }
    }

    /// The target ends something, in any order.
    fn answer(&mut self) {
        if self.model.open.is_empty() {
            return;
        }
        let at = self.random.below(self.model.open.len());
        let asked = self.model.open.remove(at);
        let early = self.random.below(4) == 0;
        if matches!(asked.what, What::Long | What::LongRead) && !early {
            self.model.started.push_back(asked);
            return;
        }
        let status = if early { 5 } else { 0 };
        self.model.reply(asked, status);
    }

    fn check(&self) {
        for id in &self.model.withdrawn {
            let number = self.model.numbers[id];
            let withdrawn = self.operations[number as usize].withdrawn.get();
            assert!(withdrawn, "{number} was not withdrawn");
        }
        for operation in &self.operations {
            let number = operation.number;
            // One that was not taken, and is not wanted any more, does not come again.
            let wanted = !operation.gone.get() && !operation.withdrawn.get();
            if wanted {
                assert!(self.model.there.contains(&number), "{number} has come");
                assert!(
                    !self.model.overtaken.contains(&number),
                    "{number}: in order"
                );
            } else if operation.gone.get() {
                assert!(!self.model.there.contains(&number), "{number} was not sent");
            }
            let wanted = usize::from(!operation.gone.get());
            assert_eq!(
                operation.answers.get(),
                wanted,
                "answers of {}",
                operation.number
            );
        }
    }
}

/// Runs operations over connections of which one in `breaks` steps breaks.
fn run(seed: u64, count: usize, breaks: usize) {
    let mut world = World::new(seed);
    if seed % 4 < 2 {
        world.initiator.set_straight(1 + seed as usize % 5000);
    }
    if seed % 2 == 0 {
        world.model.lack = Lack::AtTimes;
    }
    world.model.most = (seed % 3 != 0).then_some(seed as usize % 5);
    world.model.users = [0, 1, 2, 5][seed as usize / 3 % 4];
    let mut steps = 0;
    loop {
        if world.operations.len() < count && world.random.below(3) == 0 {
            world.post();
        }
        if world.random.below(20) == 0 {
            world.wait(100);
        }
        match world.random.below(8) {
            0..3 => world.send(),
            3..6 => {
                world.relieve();
                world.receive().expect("both keep to the protocol");
            }
            6 => world.answer(),
            _ if world.random.below(10) == 0 => world.cancel(),
            _ => {}
        }
        // In the end it is left alone.
        if steps < count * 100 && world.random.below(breaks) == 0 {
            world.connect();
        }
        steps += 1;
        let over = world.operations.len() == count
            && world.posted.is_empty()
            && world.initiator.len() == 0;
        if over {
            break;
        }
        assert!(steps < count * 10_000, "it does not end");
    }
    world.end_answered();
    world.check();
}

/// As [`run`], but bytes change on the way. Whichever do, nothing is touched that is not
/// the other side's, and each operation ends at most once.
fn run_noisy(seed: u64, steps: usize, noise: usize) {
    let mut world = World::new(seed);
    world.initiator.set_straight(1 + seed as usize % 5000);
    world.model.noisy = true;
    for _ in 0..steps {
        if world.random.below(3) == 0 {
            world.post();
        }
        match world.random.below(8) {
            0..3 => world.send(),
            3..6 => {
                if world.random.below(noise) == 0 {
                    let value = world.random.next() as u8;
                    let at = world.random.next() as usize;
                    let pipe = match world.random.below(2) {
                        0 => &mut world.there,
                        _ => &mut world.back,
                    };
                    let len = pipe.len();
                    if let Some(byte) = pipe.get_mut(at % len.max(1)) {
                        *byte = value;
                    }
                }
                world.relieve();
                if world.random.below(9) == 0 {
                    world.wait(100);
                }
                if world.receive().is_err() {
                    world.begin_session();
                }
            }
            6 => world.answer(),
            _ => {}
        }
    }
    for operation in &world.operations {
        assert!(
            operation.answers.get() <= 1,
            "answers of {}",
            operation.number
        );
    }
}

/// Long bodies go straight from where they lie, and to where they belong.
#[test]
fn long_bodies_go_straight() {
    let mut world = World::new(3);
    world.initiator.set_straight(1000);
    for len in [999, 1000, 60_000] {
        world.post_one(What::Long, len);
    }
    for _ in 0..200 {
        world.send();
        world.receive().expect("both keep to the protocol");
        world.answer();
    }
    let (sent, received) = world.straight;
    assert!((50_000..=61_000).contains(&sent), "{sent}");
    assert!((10_000..=61_999).contains(&received), "{received}");
    finish(world, 1000);
}

/// One that waits does not keep others waiting for ever: its flow is stopped, and goes on later.
#[test]
fn only_its_own_flow_waits() {
    let mut world = World::new(9);
    let of_flow = |number: u64| flow(number) == 0;
    // None of flow 0 is ever answered: far more of the others than there is room for are.
    for round in 0..300 {
        world.post_one(What::Send, 10);
        if round % 3 == 2 {
            world.settle();
            world.relieve();
            while let Some(at) = world
                .model
                .open
                .iter()
                .position(|asked| !of_flow(asked.number))
            {
                let asked = world.model.open.remove(at);
                world.model.reply(asked, 0);
            }
            world.settle();
        }
    }
    assert!(world.has_stopped(), "that of those that wait");
    let answered = |operation: &Rc<Operation>| operation.answers.get() == 1;
    for operation in &world.operations {
        assert_eq!(
            answered(operation),
            !of_flow(operation.number),
            "{operation:?}"
        );
    }
    assert!(world.initiator.len() > WINDOW, "some are held");
    // It goes on, and all of it comes, in order.
    for _ in 0..200 {
        world.wait(1000);
        world.settle();
        if world.random.below(3) == 0 {
            for asked in std::mem::take(&mut world.model.open) {
                world.model.reply(asked, 0);
            }
        }
        world.relieve();
        if world.random.below(9) == 0 {
            world.connect();
        }
    }
    assert!(world.model.back > 0);
    world.check();
}

/// Sends so many requests that wait for their receiver that the target is about to stop their flow.
fn pinned() -> World {
    let mut world = World::new(9);
    for _ in 0..WINDOW * 2 {
        world.post_one(What::Send, 10);
    }
    world.settle();
    assert_eq!(world.model.open.len(), WINDOW);
    world
}

/// Answers all that comes until everything is over, and waits for so many milliseconds in between; fails if
/// that is never so.
fn finish(mut world: World, millis: u64) {
    for _ in 0..100 {
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
        world.wait(millis);
    }
    assert_eq!(world.initiator.len(), 0, "some never go on");
    world.check();
}

/// A target that has answered requests which it says that it has not read keeps nothing but its own from going on.
#[test]
fn answers_to_what_was_not_read_stop_nothing() {
    let mut world = World::new(9);
    for _ in 0..4 {
        world.post_one(What::Send, 10);
    }
    world.settle();
    let mut open = std::mem::take(&mut world.model.open);
    assert_eq!(open.len(), 4);
    let first = open.remove(0);
    for asked in open {
        world.model.reply(asked, 0);
    }
    world.settle();
    assert_eq!(world.initiator.len(), 1, "the first one has no answer");
    let window = Window {
        numbers: WINDOW as u64,
        flows: FLOWS,
        eager: 1 << 20,
    };
    world.initiator.disconnected();
    world
        .initiator
        .connected(first.id + 1, window)
        .expect("it may have read the first one");
    world.post_one(What::Send, 10);
    let mut out = [0; 1000];
    let posted = &mut world.posted;
    let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
    assert_ne!(
        world.initiator.fill(&mut out, fresh),
        0,
        "it waits for ever"
    );
}

/// A flow of which nothing can be taken back goes on as it is.
#[test]
fn a_flow_of_which_all_is_taken_is_not_stopped() {
    let mut world = pinned();
    world.model.stuck = true;
    // They may be on their way from one place to another.
    assert!(world.relieve(), "it is tried again");
    assert!(!world.has_stopped());
    finish(world, 1000);
}

/// One that its receiver has set aside does not keep those of its flow before it from being taken back; nor are
/// others taken back when it is the oldest one.
#[test]
fn one_that_is_set_aside_is_passed_over() {
    for last in [true, false] {
        let mut world = pinned();
        let first = &world.model.open[0];
        let (first, of_flow) = (first.id, first.flow);
        let same = |asked: &&Asked| asked.flow == of_flow;
        let newest = world.model.open.iter().rev().find(same);
        let newest = newest.expect("there is one at least").id;
        let aside = if last { newest } else { first };
        world.model.aside = Some(aside);
        assert!(!world.relieve());
        let left = world.model.open.iter().filter(same).count();
        if last {
            assert_eq!(left, 1);
        } else {
            assert_eq!(world.model.back, 0);
        }
        world.model.aside = None;
        finish(world, 1000);
    }
}

/// The receiver says that a flow goes on until it does: on a new connection at once, ...
#[test]
fn a_flow_goes_on_when_the_connection_breaks() {
    let mut world = pinned();
    world.relieve();
    world.settle();
    assert!(world.has_stopped());
    let mut out = [0; 1000];
    world.wait(1000);
    // It is lost on its way; and there are others that are not over.
    assert_ne!(world.target.fill(&mut world.model, &mut out), 0);
    world.connect();
    finish(world, 0);
}

/// ... and on the same one from time to time.
#[test]
fn a_flow_is_let_go_until_it_goes_on() {
    let mut world = pinned();
    world.relieve();
    world.settle();
    let mut out = [0; 1000];
    let mut waits = Vec::new();
    while waits.len() < 8 {
        let wait = world.target.let_go(world.now).expect("it is stopped");
        waits.push(wait);
        assert_eq!(world.target.fill(&mut world.model, &mut out), 0);
        world.now += wait;
        assert_eq!(world.target.let_go(world.now), None, "it is due");
        // Nobody reads it.
        assert_eq!(world.target.fill(&mut world.model, &mut out), 32);
    }
    assert_eq!(waits, [50, 100, 200, 400, 800, 1000, 1000, 1000]);
    finish(world, 1000);
}

/// Each of many flows is let go when its time has come, whatever the others do, until it goes on.
#[test]
fn many_flows_are_let_go_each_in_its_time() {
    const MANY: u16 = 300;
    let mut stops = Stops::new(no_flows());
    let mut told = vec![Vec::new(); usize::from(MANY)];
    for now in 0..1000 {
        let flow = now as u16;
        if flow < MANY {
            stops.stop_not_ready(flow, None, now);
        }
        let next = stops.look(now);
        assert!(next != Some(0), "it is due");
        while let Some(flow) = stops.first_due() {
            told[usize::from(flow)].push(now - u64::from(flow));
            stops.tell();
        }
        // Flows that go on are never told of again, wherever they are.
        let flow = (now % 400) as u16;
        if flow < MANY && flow % 7 == 3 {
            assert_eq!(stops.why(flow).is_some(), now < 400);
            assert_eq!(stops.go_on(flow), now < 400);
            assert_eq!(stops.why(flow), None);
        }
    }
    for (flow, told) in told.iter().enumerate() {
        let goes_on = flow % 7 == 3;
        let wanted = [50, 150, 350, 750, 1550].into_iter();
        let wanted = wanted.filter(|at| at + (flow as u64) < 1000 && !goes_on);
        assert!(told.iter().copied().eq(wanted), "{flow}: {told:?}");
    }
    assert!(!stops.is_empty());
    for flow in 0..MANY {
        assert_eq!(stops.go_on(flow), flow % 7 != 3);
    }
    assert!(stops.is_empty());
}

/// A flow that is stopped again before any request of it was carried out is so for no shorter a pause than the one that
/// it had come to; else its pauses begin anew.
#[test]
fn pauses_of_a_flow_go_on() {
    let mut stops = Stops::new(no_flows());
    let mut now = 0;
    let mut stop = |stops: &mut Stops<Vec<stops::Flow>>, round: u64| {
        match round % 3 {
            0 => stops.stop_short(5, None),
            1 => stops.stop_short(5, Some(7)),
            _ => stops.stop_not_ready(5, Some(7), now),
        }
        let pause = stops.look(now).expect("it is stopped");
        now += pause;
        assert_eq!(stops.look(now), None, "it is due");
        stops.tell();
        pause
    };
    for _ in 0..2 {
        let pauses = [50, 100, 200, 400, 800, 1000, 1000];
        for (round, pause) in (0..).zip(pauses) {
            assert_eq!(stop(&mut stops, round), pause);
            // That of another one does not count.
            stops.note_done(6);
            assert!(stops.go_on(5));
        }
        stops.note_done(5);
    }
    // While it is stopped it stays so, until it goes on.
    for pause in [50, 100, 200] {
        assert_eq!(stop(&mut stops, 2), pause);
        assert!(stops.go_on(5));
    }
    stops.stop_not_ready(5, Some(7), 10_000);
    stops.note_done(5);
    assert_eq!(stops.look(10_000), Some(400));
    assert!(stops.go_on(5));
    stops.stop_not_ready(5, Some(7), 11_000);
    assert_eq!(stops.look(11_000), Some(50));
}

/// When a connection begins the initiator is told again that a flow goes on if it was told that since the flow is
/// stopped, whatever it was told before.
#[test]
fn what_was_told_is_told_again() {
    let mut stops = Stops::new(no_flows());
    for number in [5, 6, 7] {
        stops.stop_not_ready(number, Some(7), 0);
    }
    stops.tell_again();
    assert_eq!(stops.first_due(), None);
    assert_eq!(stops.look(50), None);
    for number in [5, 6] {
        assert_eq!(stops.first_due(), Some(number));
        stops.tell();
    }
    // One goes on, and is stopped again, for the pause to which it has come.
    assert!(stops.go_on(5));
    stops.stop_not_ready(5, Some(7), 60);
    assert_eq!(stops.first_due(), Some(7));
    stops.tell();
    stops.tell_again();
    let mut due = Vec::new();
    while let Some(number) = stops.first_due() {
        due.push(number);
        stops.tell();
    }
    assert_eq!(due, [6, 7]);
    // Not before its time.
    assert_eq!(stops.look(159), Some(1));
    assert_eq!(stops.look(160), Some(100));
    assert_eq!(stops.first_due(), Some(5));
}

/// Stops as many flows more for receivers of a user as may be; returns how many.
fn stop_all_of(stops: &mut Stops<Vec<stops::Flow>>, user: User) -> u32 {
    let mut count = 0;
    for flow in 0..FLOWS as u16 {
        if !stops.has_room(user) {
            break;
        }
        if stops.why(flow).is_none() {
            stops.stop_not_ready(flow, user, 0);
            count += 1;
        }
    }
    count
}

/// The flows that are stopped for receivers of a user leave as many for others, and some for those that have
/// few; and when they go on they are free again.
#[test]
fn flows_that_are_stopped_leave_others() {
    let users = [None, Some(0), Some(7), Some(8), Some(9), Some(10)];
    let mut stops = Stops::new(no_flows());
    for _ in 0..2 {
        let counts = users.map(|user| stop_all_of(&mut stops, user));
        assert_eq!(counts, [2048, 1024, 512, 256, 256, 0]);
        assert_eq!(counts.iter().sum::<u32>(), FLOWS);
        for flow in 0..FLOWS as u16 {
            // One that is stopped does not count twice, nor for anybody else.
            stops.stop_not_ready(flow, Some(10), 0);
            stops.stop_short(flow, Some(10));
            assert!(stops.go_on(flow));
            assert!(!stops.go_on(flow));
        }
        assert!(stops.is_empty());
    }
    // Flows for which there is no room count for nobody.
    for flow in 0..FLOWS as u16 / 2 {
        let user = (flow % 2 == 0).then_some(7);
        stops.stop_short(flow, user);
    }
    assert_eq!(stop_all_of(&mut stops, Some(7)), 2048);
    stops.clear();
    assert_eq!(stop_all_of(&mut stops, Some(8)), 2048);
}

/// A flow that is stopped for lack of room for one user is not for others, until one of these has none.
#[test]
fn a_flow_is_stopped_for_a_user_without_room() {
    let mut stops = Stops::new(no_flows());
    let why = |stops: &Stops<Vec<stops::Flow>>, user| stops.why_not(5, || user);
    stops.stop_short(5, Some(7));
    assert_eq!(stops.why(5), Some(Why::NoRoom));
    assert_eq!(why(&stops, Some(7)), Some(Why::NoRoom));
    assert_eq!(why(&stops, None), Some(Why::NoRoom));
    assert_eq!(why(&stops, Some(8)), None);
    stops.stop_short(5, Some(8));
    assert_eq!(why(&stops, Some(9)), Some(Why::NoRoom));
    assert!(stops.go_on(5));
    assert_eq!(why(&stops, Some(7)), None);
    // As there is no memory, or a receiver is not ready, it is stopped for all.
    stops.stop_short(5, None);
    assert_eq!(why(&stops, Some(9)), Some(Why::NoRoom));
    assert!(stops.go_on(5));
    stops.stop_not_ready(5, Some(7), 0);
    assert_eq!(why(&stops, Some(9)), Some(Why::NotReady));
    assert!(stops.go_on(5));
    assert!(stops.is_empty());
}

/// Of more users than are told apart those that are not have one share together; each of the others has its own.
#[test]
fn flows_of_very_many_users_are_counted() {
    const TOLD_APART: usize = 16;
    let mut stops = Stops::new(no_flows());
    let mut counts = [0; 40];
    for flow in 0..FLOWS as u16 {
        let user = usize::from(flow) % counts.len();
        if stops.has_room(Some(user as u32)) {
            stops.stop_not_ready(flow, Some(user as u32), 0);
            counts[user] += 1;
        }
    }
    assert_eq!(counts[..TOLD_APART], [103; TOLD_APART]);
    // There is room for each of these, but not for all.
    let others: u32 = counts[TOLD_APART..].iter().sum();
    assert!((1500..1600).contains(&others), "{others} of the others");
    for flow in 0..FLOWS as u16 {
        stops.go_on(flow);
    }
    assert!(stops.is_empty());
    assert_eq!(stop_all_of(&mut stops, Some(39)), 2048);
}

/// Sends a message without the initiator: of which flow it is, whether as the first one after that was stopped, and
/// to which port.
fn say_message(
    world: &mut World,
    (id, ack): (u64, u64),
    number: u64,
    (flow, restarts, to): (u16, bool, u16),
) -> Result<(), Broken> {
    let request = Request {
        kind: Kind::Message,
        from: 1,
        to,
        context: 0,
        named: false,
        flow,
        key: b"",
        tag: number,
        data: None,
        len: 0,
        offset: 0,
        ranges: Ranges::NONE,
        eager: true,
        restarts,
        waited: 0,
    };
    let mut bytes = [0; MAX_HEAD];
    let head = request.write(id, ack, 0, std::iter::empty(), &mut bytes);
    let head = head.expect("there is room");
    let (common, frame) = Frame::parse(&bytes[..head]).expect("it is a frame");
    world.target.head(&mut world.model, &common, &frame)
}

/// Sends a message of a flow without the initiator, and has the target stop flows that keep others waiting;
/// returns the first answer, if there is one: of which request, and its status.
fn send_in(world: &mut World, numbers: (u64, u64), number: u64, flow: u16) -> Option<(u64, u32)> {
    let taken = say_message(world, numbers, number, (flow, false, 2));
    taken.expect("it is right");
    assert!(!world.relieve());
    let mut out = [0; 48];
    let count = world.target.fill(&mut world.model, &mut out);
    let answer = (count != 0).then(|| Frame::parse(&out[..count]).expect("it is a frame"))?;
    let (common, Frame::Response(response)) = answer else {
        panic!("no answer");
    };
    Some((common.id, response.status))
}

/// Messages fail that keep others waiting, when as many flows are stopped for receivers of their user as may be;
/// those to others come again, and so do those that wait for anything but a receive.
#[test]
fn what_goes_beyond_the_share_of_its_user_fails() {
    const HALF: u64 = WINDOW as u64 / 2;
    const MOST: u64 = FLOWS as u64 / 2;
    const EREMOTEIO: u32 = 121;
    let mut world = World::new(37);
    // Nothing is looked at but what becomes of them.
    world.model.noisy = true;
    let first_of_other = MOST + HALF + 1;
    world.model.crowded = Some(first_of_other + 1);
    let mut ack = 1;
    for id in 1..=first_of_other + HALF {
        let of_other = id == first_of_other;
        let number = id + (u64::from(of_other) << 16);
        let answer = send_in(&mut world, (id, ack), number, (id - 1) as u16);
        let Some(oldest) = (id + 1).checked_sub(HALF).filter(|oldest| *oldest != 0) else {
            assert_eq!(answer, None);
            continue;
        };
        let status = match oldest {
            _ if oldest > first_of_other => NO_ROOM,
            _ if oldest <= MOST || oldest == first_of_other => NOT_READY,
            _ => EREMOTEIO,
        };
        assert_eq!(answer, Some((oldest, status)));
        ack = oldest + 1;
    }
}

/// A user for whom there is no room keeps requests to others waiting in no flow, though these belong to the same
/// ones.
#[test]
fn a_user_without_room_keeps_no_others_waiting() {
    let mut world = World::new(41);
    // There is none for those with odd numbers.
    world.model.users = 2;
    world.model.most = Some(WINDOW);
    world.post_one(What::LongRead, 300 << 10);
    world.settle();
    // Nothing is over before this one.
    let long = world.model.open.remove(0);
    // All that can be is sent before any answer is read.
    let send = |world: &mut World| {
        for _ in 0..20 {
            world.send();
        }
        world.settle();
    };
    let go = |world: &mut World| {
        world.wait(1000);
        let mut out = [0; 1000];
        let count = world.target.fill(&mut world.model, &mut out);
        world.back.extend(&out[..count]);
        while !world.back.is_empty() {
            world.receive().expect("both keep to the protocol");
        }
        send(world);
    };
    let come = |world: &mut World| -> Vec<u64> {
        let open = std::mem::take(&mut world.model.open);
        let numbers = open.iter().map(|asked| asked.number).collect();
        let answered = open.into_iter().map(|asked| (asked.id, 0, asked));
        world.model.answered.extend(answered);
        world.settle();
        numbers
    };
    for _ in 1..=6 {
        world.post_one(What::Fetch, 100);
    }
    send(&mut world);
    assert_eq!(come(&mut world), [2, 4, 6]);
    go(&mut world);
    assert!(come(&mut world).is_empty());
    for what in [What::Send, What::Fetch] {
        world.post_one(what, 10);
    }
    world.settle();
    assert!(come(&mut world).is_empty(), "their flows are stopped");
    // The first one is of the user without room, and stays behind what that has sent before.
    go(&mut world);
    assert_eq!(come(&mut world), [8]);
    // Three flows, of which two have come again twice; the third one has the long request, and waits for that.
    assert_eq!(world.model.refused, 3 + 2 * 2);
    world.model.most = None;
    world.model.started.push_back(long);
    finish(world, 1000);
}

/// One that takes long lets as many others go by as there are numbers; there is memory for those of them
/// that are not over, and for a chunk more.
#[test]
fn memory_is_for_what_is_not_over() {
    let mut world = World::new(5);
    for _ in 0..WINDOW * 10 {
        world.post_one(What::Send, 0);
        world.settle();
        let asked = world.model.open.remove(0);
        world.model.reply(asked, 0);
        world.settle();
    }
    assert!(world.model.chunks <= 2, "{} chunks", world.model.chunks);
    world.post_one(What::Send, 0);
    world.settle();
    for _ in 1..WINDOW {
        world.post_one(What::Send, 0);
        world.settle();
        let asked = world.model.open.remove(1);
        world.model.reply(asked, 0);
        world.settle();
    }
    world.post_one(What::Send, 0);
    world.settle();
    assert_eq!(world.model.open.len(), 1, "there are no more numbers");
    assert!(world.model.chunks <= 4, "{} chunks", world.model.chunks);
    finish(world, 1000);
}

/// The memory that a lane has in any case does not count, two chunks whichever these are; and when all requests are
/// over there is no more than one.
#[test]
fn a_lane_at_rest_has_memory_of_its_own_only() {
    let mut world = World::new(61);
    let others = |world: &World| Rc::strong_count(&world.model.counted) - 1;
    let all = |world: &World| Rc::strong_count(&world.model.memory) - 1;
    for round in 0..3 * WINDOW {
        let count = 1 + round * 7 % WINDOW;
        for _ in 0..count {
            world.post_one(What::Send, 0);
        }
        world.settle();
        assert_eq!(world.model.open.len(), count);
        let (others_now, all_now) = (others(&world), all(&world));
        assert_eq!(others_now, all_now.saturating_sub(2), "in round {round}");
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
        assert!(world.target.is_over());
        world.target.rest();
        assert_eq!((others(&world), all(&world)), (0, 1), "in round {round}");
    }
}

/// Requests that were taken at once are sent in this order, whichever flows are theirs, and however often there is no
/// room for some of them.
#[test]
fn what_is_taken_at_once_is_sent_in_order() {
    let mut world = World::new(71);
    for _ in 0..WINDOW {
        world.post_one(What::Send, 3000);
    }
    world.settle();
    let numbers = world.model.open.iter().map(|asked| asked.number);
    assert!(numbers.eq(0..WINDOW as u64));
}

/// An initiator needs no memory for flows while nothing is under way, unless one is stopped or has to say that it
/// goes on.
#[test]
fn flows_need_memory_only_while_there_is_something_of_them() {
    let mut world = World::new(67);
    assert!(world.rest());
    for _ in 0..3 {
        world.post_one(What::Send, 10);
    }
    world.settle();
    assert!(!world.rest());
    for asked in std::mem::take(&mut world.model.open) {
        world.model.reply(asked, 0);
    }
    world.settle();
    assert!(world.rest());
    let go = |world: &mut World| {
        let mut out = [0; 32];
        Frame::Go(2).write(0, 1, 0, &mut out);
        let (common, frame) = Frame::parse(&out).expect("it is a frame");
        world.initiator.head(&common, &frame)
    };
    assert!(go(&mut world).is_ok());
    assert_eq!(world.initiator.len(), 0);
    assert!(!world.rest());
    world.initiator.end_session();
    assert!(world.rest());
}

/// A lane has memory for as many requests as a chunk has, whatever others have, and whichever numbers these are.
#[test]
fn a_lane_has_memory_for_its_first_requests() {
    const FIRST: usize = <Model as incoming::Target>::CHUNK;
    let mut world = World::new(67);
    world.model.full = true;
    let take = |world: &mut World, count: usize| {
        for _ in 0..count {
            world.post_one(What::Send, 0);
        }
        world.settle();
        let open = std::mem::take(&mut world.model.open);
        assert_eq!(open.len(), count, "at {}", world.target.next());
        let answered = open.into_iter().map(|asked| (asked.id, 0, asked));
        world.model.answered.extend(answered);
        world.settle();
        world.target.rest();
    };
    for _ in 0..2 * WINDOW {
        take(&mut world, FIRST);
        // From another number on.
        take(&mut world, 1);
    }
    assert!(!world.has_stopped());
    finish(world, 1000);
}

/// A request that there is no room for is not taken, and comes again when there is some: that is so when the
/// requests under way have ended, which nothing keeps them from; nor does it keep others from going by.
#[test]
fn what_there_is_no_room_for_comes_again() {
    const LEN: usize = 300 << 10;
    for what in [What::Long, What::LongRead] {
        let mut world = World::new(17);
        world.model.most = Some(2);
        world.post_one(what, LEN);
        world.settle();
        let long = world.model.open.remove(0);
        // Nothing is over before the first one.
        let before = world.model.refused;
        while world.model.refused == before {
            world.post_one(What::Fetch, 100);
            world.settle();
            for asked in std::mem::take(&mut world.model.open) {
                world.model.reply(asked, 0);
            }
            world.settle();
        }
        assert_eq!(world.model.kept(), 2, "{what:?}");
        assert!(world.has_stopped(), "{what:?}");
        let last = world.operations.last().expect("some were posted");
        assert_eq!(last.answers.get(), 0, "{what:?}: there is no room");
        // Requests of other flows.
        let flow_of_last = flow(last.number);
        while world.operations.len() < 8 {
            world.post_one(What::Send, 10);
        }
        world.settle();
        for asked in std::mem::take(&mut world.model.open) {
            assert_ne!(flow(asked.number), flow_of_last, "{what:?}: in order");
            world.model.reply(asked, 0);
        }
        world.settle();
        for operation in &world.operations[1..] {
            let of_last = flow(operation.number) == flow_of_last;
            let over = operation.answers.get() == 1;
            assert!(over || of_last, "{what:?}: {operation:?}");
        }
        // On one connection: it would begin anew on each.
        world.model.started.push_back(long);
        finish(world, 1000);
    }
}

/// A lane without memory for any number more takes no request, and goes on when there is some.
#[test]
fn numbers_without_memory_are_told() {
    let mut world = World::new(19);
    world.post_one(What::LongRead, 300 << 10);
    world.settle();
    let long = world.model.open.remove(0);
    let chunks = world.model.chunks;
    for _ in 0..WINDOW * 2 {
        // Each third one is refused.
        world.model.lack = Lack::AtTimes;
        world.model.chunks = 2;
        world.post_one(What::Send, 0);
        world.settle();
        world.model.lack = Lack::Never;
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
        world.wait(30);
    }
    assert!(chunks < world.model.chunks, "more was asked for");
    assert_eq!(world.operations[0].answers.get(), 0);
    // All of them are told again.
    world.connect();
    world.settle();
    assert_eq!(
        world.target.unacknowledged(),
        None,
        "nothing came of the oldest one"
    );
    world.model.started.push_back(long);
    finish(world, 1000);
}

/// A request for which there is no memory when all of it is there comes again after longer and longer pauses, as
/// one for which there is none when it begins to come.
#[test]
fn what_lacks_memory_at_its_end_comes_more_rarely() {
    let mut world = World::new(41);
    world.model.lack = Lack::AtEnd;
    world.post_one(What::Send, 100);
    for _ in 0..200 {
        world.settle();
        world.wait(50);
    }
    // The sixth one comes after 1.5 seconds, and those that follow are a second apart, within 10 of them.
    let lacked = world.model.lacked;
    assert!((10..=16).contains(&lacked), "{lacked} times");
    world.model.lack = Lack::Never;
    finish(world, 1000);
}

/// A flow whose first request has come in part when the connection breaks has not gone on.
#[test]
fn a_flow_does_not_go_on_with_half_a_request() {
    let mut world = World::new(43);
    world.model.lack = Lack::AtEnd;
    // More than is received at a time.
    world.post_one(What::Send, 200_000);
    world.settle();
    assert!(world.has_stopped());
    world.wait(50);
    while world.has_stopped() {
        world.send();
        world.receive().expect("both keep to the protocol");
    }
    assert_eq!(world.model.lacked, 1, "not all of it is there");
    world.connect();
    assert!(world.has_stopped());
    world.model.lack = Lack::Never;
    finish(world, 1000);
}

/// It is known that nothing is under way but flows that are stopped, whichever connections there are, until a request
/// has come, all of it.
#[test]
fn what_only_connects_is_idle() {
    let mut world = World::new(43);
    assert_eq!(world.target.idle(), Some(1));
    world.model.lack = Lack::AtEnd;
    world.post_one(What::Send, 200_000);
    world.settle();
    assert!(world.has_stopped());
    assert_eq!(world.target.idle(), Some(2));
    world.wait(50);
    while world.has_stopped() {
        world.send();
        world.receive().expect("both keep to the protocol");
    }
    assert!(!world.target.is_over());
    assert_eq!(world.target.idle(), Some(2), "half of one has come");
    world.target.disconnected();
    assert!(world.has_stopped() && world.target.is_over());
    for _ in 0..3 {
        world.connect();
        assert!(world.has_stopped() && world.target.is_over());
        assert_eq!(world.target.idle(), Some(2));
    }
    world.model.lack = Lack::Never;
    world.wait(100);
    world.settle();
    assert_eq!(world.target.idle(), None);
    finish(world, 1000);
}

/// The number by which it is told whether requests have come is no other one in a session that asks for nothing,
/// and goes on where that before has ended.
#[test]
fn sessions_go_on_counting_what_was_asked() {
    let mut world = World::new(44);
    for _ in 0..2 {
        world.target.end_session(|_, _| ());
        assert_eq!(world.target.idle(), Some(1));
    }
    world.post_one(What::Send, 10);
    world.settle();
    let asked = world.model.open.remove(0);
    world.model.reply(asked, 0);
    world.settle();
    assert_eq!(world.target.idle(), Some(2));
    world.target.end_session(|_, _| ());
    assert_eq!(world.target.idle(), Some(2));
    let taken = say_message(&mut world, (1, 1), 1, (7, false, 0));
    assert!(taken.is_ok());
    assert_eq!(world.target.idle(), None);
    world.target.end_session(|_, _| ());
    assert_eq!(world.target.idle(), Some(3));
}

/// A request that cannot be breaks the protocol also if it would not be taken, and changes nothing.
#[test]
fn what_cannot_be_is_not_refused() {
    let mut world = World::new(43);
    world.model.lack = Lack::AtEnd;
    assert!(say_message(&mut world, (1, 1), 0, (7, false, 2)).is_ok());
    assert!(world.has_stopped());
    let mut out = [0; 48];
    assert_eq!(world.target.fill(&mut world.model, &mut out), 48);
    for restarts in [false, true] {
        let taken = say_message(&mut world, (2, 1), 0, (7, restarts, 4096));
        assert_eq!(taken, Err(Broken::Value));
        assert!(world.has_stopped());
        assert_eq!(world.target.next(), 2);
    }
    let chunks = world.model.chunks;
    assert_eq!(world.target.fill(&mut world.model, &mut out), 0);
    assert!(say_message(&mut world, (2, 2), 0, (7, false, 2)).is_ok());
    assert_eq!((world.target.next(), world.model.chunks), (3, chunks));
}

/// A request that found no room has not waited for its receiver.
#[test]
fn what_waits_for_room_does_not_wait_for_its_receiver() {
    let mut world = World::new(23);
    world.model.most = Some(0);
    world.post_one(What::LongRead, 100);
    world.settle();
    let long = world.model.open.remove(0);
    for _ in 0..2 {
        world.post_one(What::Fetch, 100);
    }
    // Each time they take two more of the numbers that there are before the first one is over.
    for _ in 0..4 {
        world.settle();
        world.wait(700);
    }
    assert_eq!(world.model.refused, 8, "they come again and again");
    world.model.most = None;
    world.wait(1000);
    world.settle();
    assert_eq!(world.model.open.len(), 2);
    assert!(world.model.open.iter().all(|asked| asked.waited == 0));
    world.model.started.push_back(long);
    finish(world, 1000);
}

/// A request that waits for its receiver does not keep the room that others need: its flow is stopped.
#[test]
fn what_waits_for_its_receiver_makes_room() {
    let mut world = World::new(31);
    world.model.most = Some(1);
    world.post_one(What::Send, 10);
    world.settle();
    world.post_one(What::Fetch, 100);
    world.settle();
    let asked = world.model.open.remove(1);
    world.model.reply(asked, 0);
    world.settle();
    assert!(!world.relieve());
    assert_eq!(world.model.back, 0, "there is room");
    world.post_one(What::Fetch, 100);
    world.settle();
    assert_eq!(world.model.refused, 1);
    assert!(!world.relieve());
    assert_eq!(world.model.back, 1);
    world.settle();
    world.wait(50);
    world.settle();
    assert_eq!(world.model.refused, 1, "there is room again");
    assert_eq!(world.model.open.len(), 2);
    // There was none once.
    assert!(!world.relieve());
    assert_eq!(world.model.back, 1);
    finish(world, 1000);
}

/// Waits until a request has come, while no receiver is ready; fails if it never does.
fn await_request(world: &mut World, number: u64) {
    for _ in 0..20 {
        world.wait(1000);
        world.relieve();
        world.settle();
    }
    assert!(
        world.model.there.contains(&number),
        "{number} never goes on"
    );
}

/// Checks that a request of a flow that was stopped for lack of room does not keep it from going on while it waits
/// for its receiver, though it is not the oldest one, which is of another flow.
fn check_behind(oldest: What) {
    let mut world = World::new(47);
    world.model.most = Some(0);
    world.post_one(oldest, 100);
    world.settle();
    let long = (oldest == What::LongRead).then(|| world.model.open.remove(0));
    for what in [What::Send, What::Send, What::Send, What::Fetch] {
        world.post_one(what, 100);
    }
    world.settle();
    assert_eq!(world.model.refused, 1);
    assert_eq!(flow(1), flow(4));
    // There was no room at that time only.
    world.model.most = None;
    assert!(world.target.is_behind());
    assert!(!world.relieve() && !world.target.is_behind());
    world.settle();
    world.model.started.extend(long);
    world.settle();
    await_request(&mut world, 4);
    finish(world, 1000);
}

/// Requests of a stopped flow that wait are taken back, though the oldest request takes long.
#[test]
fn what_waits_behind_one_that_takes_long_is_taken_back() {
    check_behind(What::LongRead);
}

/// And so it is if the oldest one waits, too, and is of another flow.
#[test]
fn what_waits_behind_another_flow_is_taken_back() {
    check_behind(What::Send);
}

/// Nor does one to another user that was taken when its flow was stopped already.
#[test]
fn what_comes_of_a_stopped_flow_and_waits_is_taken_back() {
    let mut world = World::new(53);
    // There is no room for those with odd numbers.
    world.model.users = 2;
    world.model.most = Some(WINDOW);
    world.post_one(What::LongRead, 100);
    world.settle();
    let long = world.model.open.remove(0);
    // All is sent before the answer to the first one of this flow is read.
    world.post_one(What::Fetch, 100);
    for _ in 0..3 {
        world.post_one(What::Send, 5000);
    }
    assert_eq!(flow(1), flow(4));
    while !world.posted.is_empty() {
        world.send();
    }
    for _ in 0..20 {
        world.send();
    }
    while !world.there.is_empty() {
        world.receive().expect("both keep to the protocol");
        world.relieve();
    }
    let is_4 = |asked: &Asked| asked.number == 4;
    assert!(world.model.open.iter().any(is_4), "it was taken");
    assert_eq!(world.model.refused, 1);
    world.settle();
    world.model.most = None;
    await_request(&mut world, 1);
    world.model.started.push_back(long);
    finish(world, 1000);
}

/// One that is on its way from one place to another keeps those before it from being taken back, and nothing of
/// other flows. All are not looked at more often than in so many milliseconds.
#[test]
fn one_that_is_on_its_way_keeps_no_other_flow() {
    let mut world = World::new(59);
    world.model.most = Some(0);
    world.post_one(What::LongRead, 100);
    world.settle();
    let long = world.model.open.remove(0);
    for _ in 1..=5 {
        world.post_one(What::Send, 10);
    }
    world.post_one(What::Read, 10);
    for _ in 7..=8 {
        world.post_one(What::Fetch, 10);
    }
    world.settle();
    assert_eq!(world.model.refused, 2, "of flows 1 and 2");
    // Of flow 2, of which 2 is as well.
    let last = world.model.open.iter().find(|asked| asked.number == 5);
    world.model.on_its_way = last.map(|asked| asked.id);
    assert!(world.relieve(), "it is to be tried again");
    let left = |world: &World| -> Vec<u64> {
        let numbers = world.model.open.iter().map(|asked| asked.number);
        numbers.collect()
    };
    assert_eq!(left(&world), [2, 3, 5, 6]);
    world.model.on_its_way = None;
    assert!(world.relieve(), "they were looked at just now");
    assert_eq!(left(&world), [2, 3, 5, 6]);
    world.wait(10);
    assert!(!world.relieve());
    assert_eq!(left(&world), [3, 6]);
    world.model.most = None;
    world.model.started.push_back(long);
    await_request(&mut world, 8);
    finish(world, 1000);
}

/// A request that comes alone is taken whatever there is room for.
#[test]
fn what_comes_alone_is_taken() {
    let mut world = World::new(29);
    world.model.most = Some(0);
    for number in 0..5 {
        world.post_one(What::Fetch, 100);
        world.settle();
        let asked = world.model.open.remove(0);
        assert_eq!(asked.number, number);
        world.model.reply(asked, 0);
        world.settle();
    }
    assert_eq!(world.model.refused, 0);
    finish(world, 1000);
}

/// Flows that go on take turns.
#[test]
fn flows_that_go_on_take_turns() {
    let mut world = pinned();
    while !world.model.open.is_empty() {
        world.relieve();
        world.settle();
    }
    world.wait(1000);
    // All are let go before any goes on.
    let mut out = [0; 1000];
    let count = world.target.fill(&mut world.model, &mut out);
    world.back.extend(&out[..count]);
    while !world.back.is_empty() {
        world.receive().expect("both keep to the protocol");
    }
    world.settle();
    let flows: Vec<_> = world
        .model
        .open
        .iter()
        .map(|asked| flow(asked.number))
        .collect();
    assert_eq!(flows.len(), WINDOW);
    for turns in flows.chunks_exact(3) {
        assert_ne!(turns[0], turns[1]);
        assert_ne!(turns[1], turns[2]);
        assert_ne!(turns[2], turns[0]);
    }
    finish(world, 1000);
}

/// The target says something to the initiator.
fn say(world: &mut World, frame: &Frame<'_>, id: u64) {
    let mut out = [0; MAX_OTHER];
    let count = frame.write(id, 1, 0, &mut out).expect("there is room");
    let (common, frame) = Frame::parse(&out[..count]).expect("it is a frame");
    let taken = world.initiator.head(&common, &frame);
    taken.expect("it is right");
}

/// Returns a world in which the first requests were sent, one of each flow, and those of some flows were not taken.
fn with_stopped(flows: &[u16]) -> World {
    let mut world = World::new(73);
    let window = Window {
        numbers: 1000,
        flows: FLOWS,
        eager: 1 << 20,
    };
    let connected = world.initiator.connected(1, window);
    connected.expect("nothing was sent");
    for _ in 0..3 {
        world.post_one(What::Send, 0);
    }
    assert_eq!(fill(&mut world, 1000), [0, 1, 2]);
    for of_flow in flows {
        assert_eq!(flow(u64::from(*of_flow)), *of_flow);
        let response = Response {
            status: NOT_READY,
            len: 0,
            waited: 0,
        };
        say(
            &mut world,
            &Frame::Response(response),
            u64::from(*of_flow) + 1,
        );
    }
    world
}

/// The initiator sends as many bytes of requests without data as there is room for; returns the numbers of these.
fn fill(world: &mut World, room: usize) -> Vec<u64> {
    let mut out = vec![0; room];
    let posted = &mut world.posted;
    let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
    let count = world.initiator.fill(&mut out, fresh);
    let mut numbers = Vec::new();
    let mut rest = &out[..count];
    while let Some(head) = rest.get(2..4) {
        let head = usize::from(u16::from_le_bytes([head[0], head[1]]));
        match Frame::parse(&rest[..head]).expect("it is a frame").1 {
            Frame::Request(request) => numbers.push(request.tag),
            frame => panic!("no request: {frame:?}"),
        }
        rest = &rest[head..];
    }
    numbers
}

/// Requests that are held, and may be sent, keep those of other flows that have come since waiting for no more than one
/// of them each time, however many they are.
#[test]
fn what_is_held_and_what_comes_since_take_turns() {
    let mut world = with_stopped(&[0]);
    for _ in 0..3 * STEP {
        world.post_one(What::Send, 0);
    }
    while !world.posted.is_empty() {
        fill(&mut world, 100_000);
    }
    let held = world.initiator.held();
    assert_eq!(held, STEP + 1);
    let first = world.operations.len() as u64;
    for _ in 0..STEP {
        world.post_one(What::Send, 0);
    }
    let of_others = (first..).take(STEP).filter(|number| flow(*number) != 0);
    let of_others: Vec<_> = of_others.collect();
    say(&mut world, &Frame::Go(0), 0);
    let mut sent = Vec::new();
    loop {
        // Some in each turn, and one.
        let numbers = fill(&mut world, [80, 1000][sent.len() % 2]);
        if numbers.is_empty() {
            break;
        }
        sent.extend(numbers);
    }
    assert!(world.posted.is_empty());
    for turns in sent[..2 * of_others.len()].chunks_exact(2) {
        let count = turns.iter().filter(|number| flow(**number) == 0).count();
        assert_eq!(count, 1, "{sent:?}");
    }
    // Each of both in order, and those of flow 0 that have come since behind the others of that.
    let of_flow = |wanted: bool| {
        sent.iter()
            .filter(move |number| (flow(**number) == 0) == wanted)
    };
    assert!(of_flow(false).eq(&of_others));
    assert!(of_flow(true).is_sorted());
    assert_eq!(sent.len(), held + STEP);
}

/// Nor are requests that are held, and may be sent, kept waiting by those that come all the time and are held as well.
#[test]
fn what_comes_to_be_held_stands_before_no_other() {
    let mut world = with_stopped(&[0, 1, 2]);
    say(&mut world, &Frame::Go(0), 0);
    let mut sent = Vec::new();
    for _ in 0..4 {
        while world.posted.len() < 2 * STEP {
            let of_stopped = flow(world.operations.len() as u64) != 0;
            world.post_one(What::Send, 0);
            if !of_stopped {
                world.posted.pop_back();
            }
        }
        sent.extend(fill(&mut world, 80));
    }
    assert_eq!(sent, [0]);
    assert!(world.initiator.held() > STEP);
}

/// A flow of which nothing is left is as one of which there never was anything, however many went on at the same time.
#[test]
fn flows_that_have_gone_on_need_no_memory() {
    let mut world = stopped();
    hold(&mut world, 10);
    world.wait(1000);
    // All are let go before any goes on.
    let mut out = [0; 1000];
    let count = world.target.fill(&mut world.model, &mut out);
    world.back.extend(&out[..count]);
    while !world.back.is_empty() {
        world.receive().expect("both keep to the protocol");
    }
    while world.initiator.len() != 0 {
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
    }
    assert!(world.rest());
    finish(world, 1000);
}

/// Transmit contexts, ports and receive contexts close to each other are spread over all flows, and which of them
/// share one is another question in each lane.
#[test]
fn nobody_knows_who_shares_a_flow() {
    const FLOWS: u16 = 4096;
    let mut random = Random(7);
    let numbers: Vec<_> = (0..16)
        .flat_map(|lane| (0..16).map(move |port| (lane, port)))
        .flat_map(|(lane, port)| (0..16).map(move |context| [1000 + lane, port, context]))
        .collect();
    assert_eq!(numbers.len(), usize::from(FLOWS));
    let mut shared = BTreeSet::new();
    for _ in 0..4 {
        let key = random.next();
        let mut of_flow: BTreeMap<u16, Vec<_>> = BTreeMap::new();
        for numbers in &numbers {
            let flow = outgoing::spread(*numbers, FLOWS, key);
            assert!(flow < FLOWS);
            assert_eq!(outgoing::spread(*numbers, FLOWS, key), flow);
            of_flow.entry(flow).or_default().push(*numbers);
        }
        // As many as if each were drawn: one in e is not.
        let count = of_flow.len();
        assert!((2400..2800).contains(&count), "{count} flows");
        let most = of_flow.values().map(Vec::len).max();
        assert!(most < Some(16), "{most:?} of one flow");
        let pairs = of_flow
            .values()
            .flat_map(|numbers| numbers.windows(2))
            .map(<[_]>::to_vec);
        let pairs: BTreeSet<_> = pairs.collect();
        let both = shared.intersection(&pairs).count();
        assert!(both < 40, "{both} of {} as before", pairs.len());
        shared = pairs;
    }
    // There may be fewer, or none yet.
    assert!(outgoing::spread([1, 2, 3], 5, 7) < 5);
    assert_eq!(outgoing::spread([1, 2, 3], 0, 7), 0);
}

/// How many flows there are stays as it is in a session, and both sides keep to it.
#[test]
fn a_session_has_as_many_flows_as_its_target() {
    let mut world = World::new(1);
    let window = |flows: u32| Window {
        numbers: WINDOW as u64,
        flows,
        eager: 1 << 20,
    };
    let go = |world: &mut World, flow: u16| {
        let mut out = [0; 32];
        Frame::Go(flow).write(0, 1, 0, &mut out);
        let (common, frame) = Frame::parse(&out).expect("it is a frame");
        world.initiator.head(&common, &frame)
    };
    assert!(world.initiator.connected(1, window(5)).is_ok());
    assert!(go(&mut world, 4).is_ok());
    assert!(go(&mut world, 5).is_err());
    world.post_one(What::Send, 10);
    world.send();
    assert!(world.initiator.connected(1, window(4)).is_err());
    assert!(world.initiator.connected(1, window(5)).is_ok());
    world.initiator.end_session();
    assert!(world.initiator.connected(1, window(0)).is_err());
    assert!(world.initiator.connected(1, window(4)).is_ok());
}

/// Returns request 0, which has come again, and answers those before it: so it is the oldest one.
fn sent_again(world: &mut World) -> Asked {
    let open = &mut world.model.open;
    let again = open.iter().find(|asked| asked.number == 0);
    let again = *again.expect("it is sent again");
    let before: Vec<_> = open.extract_if(.., |asked| asked.id < again.id).collect();
    for asked in before {
        world.model.reply(asked, 0);
    }
    world.settle();
    again
}

/// For how long a request has waited for its receiver is known, whoever has it, and however often it was not
/// taken.
#[test]
fn how_long_a_receiver_was_not_ready_is_known() {
    let mut world = pinned();
    world.model.waits = 30;
    world.relieve();
    world.settle();
    let of_flow = |asked: &&Asked| flow(asked.number) == 0;
    assert_eq!(world.model.open.iter().filter(of_flow).count(), 0);
    let others = world.model.open.iter().all(|asked| asked.waited == 0);
    assert!(others, "nothing is known of those");
    world.model.waits = 5;
    // It comes again after longer pauses.
    for (pause, waited) in [(100, 130), (100, 235), (200, 440)] {
        world.wait(pause);
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
        assert_eq!(sent_again(&mut world).waited, waited);
        world.connect();
        while world.model.open.len() < WINDOW {
            world.post_one(What::Send, 10);
            world.settle();
        }
        world.relieve();
        world.settle();
    }
}

/// However often those that keep others waiting are taken back before their receiver finds that their time is over,
/// they fail when it is.
#[test]
fn what_is_taken_back_all_the_time_fails_in_time() {
    let mut world = pinned();
    (world.model.waits, world.model.longest) = (1, Some(500));
    for round in 0.. {
        world.relieve();
        world.settle();
        world.wait(50);
        if world.initiator.len() < WINDOW / 2 {
            break;
        }
        assert!(round < 200, "some never fail");
    }
}

/// Messages whose receiver is not ready come again after longer and longer pauses, which begin anew when one of them is
/// received, and not when one fails.
#[test]
fn what_is_not_received_comes_more_rarely() {
    const EREMOTEIO: u32 = 121;
    let mut world = pinned();
    // Counts how often a message comes again in so many times 50 milliseconds.
    let count = |world: &mut World, number: u64, times: usize| {
        let mut count = 0;
        for _ in 0..times {
            world.relieve();
            world.settle();
            let was_there = world.model.there.contains(&number);
            world.wait(50);
            world.settle();
            count += usize::from(!was_there && world.model.there.contains(&number));
        }
        count
    };
    // After 50, 150, 350, 750 and 1550 milliseconds, and then in each second.
    let often = count(&mut world, 0, 200);
    assert!((5..=14).contains(&often), "{often} times");
    for (number, status, wanted) in [(0, 0, true), (3, EREMOTEIO, false), (6, 0, true)] {
        while !world.model.there.contains(&number) {
            count(&mut world, number, 1);
        }
        let open = &mut world.model.open;
        let at = open.iter().position(|asked| asked.number == number);
        let asked = open.remove(at.expect("it is open"));
        world.model.reply(asked, status);
        world.settle();
        // The next one is the first of its flow now.
        let often = count(&mut world, number + 3, 8);
        assert_eq!(often > 1, wanted, "{number}: {often} times");
    }
    finish(world, 1000);
}

/// Time in which a request has waited at the target for room there, and not for its receiver, does not count:
/// the target does not say it, and the initiator adds no more than what it has kept it for itself.
#[test]
fn only_what_waits_for_a_receiver_counts() {
    let mut world = pinned();
    world.model.waits = 30;
    for (pause, waited) in [(100, 130), (100, 260), (200, 490)] {
        world.wait(5000);
        world.relieve();
        world.settle();
        world.wait(pause);
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
        assert_eq!(sent_again(&mut world).waited, waited);
        world.connect();
        while world.model.open.len() < WINDOW {
            world.post_one(What::Send, 10);
            world.settle();
        }
    }
}

/// A request that waits for room at its receiver does not wait for a receive, not even while it is kept here until its
/// flow goes on; and the initiator does not forget for how long it has before.
#[test]
fn what_waits_for_room_at_its_receiver_has_not_waited() {
    let mut world = pinned();
    world.model.waits = 30;
    let rounds = [
        (None, 100, 130),
        (Some(0), 100, 130),
        (Some(0), 200, 130),
        (None, 400, 560),
    ];
    for (crowded, pause, waited) in rounds {
        world.model.crowded = crowded;
        world.relieve();
        world.settle();
        world.wait(pause);
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
        assert_eq!(sent_again(&mut world).waited, waited, "{crowded:?}");
        world.connect();
        while world.model.open.len() < WINDOW {
            world.post_one(What::Send, 10);
            world.settle();
        }
    }
}

/// Time in which the flow of a request is stopped for others is none for which it has waited for its own receiver:
/// nobody makes messages of others fail early whose flow is the same.
#[test]
fn what_stands_behind_others_has_not_waited() {
    let mut world = World::new(9);
    let of_flow = |number: &u64| flow(*number) == 0;
    for _ in 0..WINDOW / 2 {
        world.post_one(What::Send, 10);
    }
    world.settle();
    world.model.waits = 30;
    world.relieve();
    let back: Vec<_> = (0..world.operations.len() as u64).filter(of_flow).collect();
    assert_eq!(world.model.back, back.len());
    // Sent before the initiator knows.
    let first = world.operations.len();
    for _ in 0..3 {
        world.post_one(What::Send, 10);
    }
    let mut out = [0; 4000];
    let posted = &mut world.posted;
    let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
    let count = world.initiator.fill(&mut out, fresh);
    assert!(world.posted.is_empty());
    world.there.extend(&out[..count]);
    while !world.there.is_empty() {
        world.receive().expect("both keep to the protocol");
    }
    world.settle();
    assert_eq!(world.initiator.held(), back.len() + 1);
    for asked in std::mem::take(&mut world.model.open) {
        world.model.reply(asked, 0);
    }
    world.settle();
    world.wait(100);
    world.settle();
    assert_eq!(world.model.open.len(), back.len() + 1);
    for asked in &world.model.open {
        let was_there = back.contains(&asked.number);
        assert_eq!(was_there, asked.number < first as u64);
        assert_eq!(asked.waited, if was_there { 130 } else { 0 }, "{asked:?}");
    }
    finish(world, 1000);
}

/// A request that was lost with a connection is sent again as it was, whenever that is.
#[test]
fn how_long_it_was_under_way_does_not_count() {
    let mut world = pinned();
    world.model.waits = 30;
    world.relieve();
    world.settle();
    for asked in std::mem::take(&mut world.model.open) {
        world.model.reply(asked, 0);
    }
    world.wait(100);
    // The initiator is told, and the bytes that it sends are lost.
    for _ in 0..50 {
        world.send();
        world.there.clear();
        let count = world.back.len().min(1000);
        let bytes: Vec<_> = world.back.drain(..count).collect();
        world.at_initiator.room()[..count].copy_from_slice(&bytes);
        world.at_initiator.received(count);
        while let Some(part) = world.at_initiator.next().expect("they are frames") {
            match part {
                Part::Head(common, frame) => world.initiator.head(&common, &frame).expect("right"),
                Part::Body(bytes, last) => world.initiator.body(bytes, last),
            }
        }
    }
    assert!(world.model.open.is_empty());
    world.wait(3000);
    world.connect();
    world.settle();
    let asked = world.model.open.iter().find(|asked| asked.number == 0);
    assert_eq!(asked.expect("it is sent again").waited, 130);
}

/// An initiator that knows of no stop, or whose requests that were not taken are not wanted any more,
/// begins anew all the same.
#[test]
fn a_flow_is_let_go_in_every_state() {
    let first = |world: &mut World| {
        world.post_one(What::Send, 10);
        let number = world.posted.back().expect("it was posted").number;
        let posted = &mut world.posted;
        let mut out = [0; 1000];
        let count = world.initiator.fill(&mut out, |_| {
            posted.pop_front().map(Sent::new).map(Entry::new)
        });
        assert_ne!(count, 0);
        let head = usize::from(out[2]);
        let (_, frame) = Frame::parse(&out[..head]).expect("it is a frame");
        let Frame::Request(request) = frame else {
            panic!("no request: {frame:?}");
        };
        assert_eq!(request.tag, number);
        request.restarts
    };
    let go = |world: &mut World| {
        let mut out = [0; 32];
        let count = Frame::Go(0).write(0, world.initiator.ack(), 0, &mut out);
        let (common, frame) =
            Frame::parse(&out[..count.expect("there is room")]).expect("it is one");
        world.initiator.head(&common, &frame).expect("it is right");
    };
    let mut world = World::new(1);
    go(&mut world);
    assert!(first(&mut world), "none was under way");
    // Requests of other flows have nothing to do with it.
    assert!(!first(&mut world));
    assert!(!first(&mut world));
    // It is flow 0 again, of which one is under way, and may come to be not taken.
    go(&mut world);
    assert!(!first(&mut world), "one is under way");
}

/// A request that is not wanted any more is withdrawn on the connection on which it is sent, whenever that
/// is: before and after the target has read it, and if it was about to be sent.
#[test]
fn what_is_sent_again_is_withdrawn_again() {
    #[derive(Debug)]
    enum When {
        AboutToBeSent,
        Sent,
        Read,
    }

    for when in [When::AboutToBeSent, When::Sent, When::Read] {
        let mut world = World::new(7);
        world.post_one(What::Send, 100);
        match when {
            When::AboutToBeSent => {
                let first = world.posted.pop_front().expect("it was posted");
                let mut first = Some(Entry::new(Sent::new(first)));
                let count = world.initiator.fill(&mut [0; 24], |_| first.take());
                assert_eq!((count, first.is_none()), (0, true), "there is no room");
            }
            When::Sent => world.send(),
            When::Read => world.settle(),
        }
        world.operations[0].withdrawn.set(true);
        world.initiator.recall();
        // Lost with the connection, or too early.
        world.initiator.fill(&mut [0; 24], |_| None);
        if !matches!(when, When::AboutToBeSent) {
            world.connect();
        }
        world.settle();
        assert_eq!(world.model.withdrawn, [1], "{when:?}");
        assert!(world.initiator.unwanted().is_some(), "{when:?}");
    }
}

/// How many requests are looked at, or held, in a turn.
const STEP: usize = 64;

/// Returns a world in which all flows are stopped.
fn stopped() -> World {
    let mut world = pinned();
    while !world.model.open.is_empty() {
        world.relieve();
        world.settle();
    }
    world
}

/// Posts requests and has them held, as their flows are stopped.
fn hold(world: &mut World, count: usize) {
    for _ in 0..count {
        world.post_one(What::Send, 10);
    }
    world.settle();
    assert!(world.posted.is_empty() && world.model.open.is_empty());
    assert_eq!(world.initiator.held(), world.operations.len());
}

/// A request that no frame can say fails, and those behind it are sent without waiting for anything.
#[test]
fn what_cannot_be_said_keeps_no_others() {
    let mut world = World::new(5);
    for _ in 0..STEP {
        world.post_one(What::Unsayable, 0);
    }
    world.post_one(What::Send, 10);
    // In turns, as all that keeps others waiting.
    for sends in [false, true] {
        let posted = &mut world.posted;
        let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
        let count = world.initiator.fill(&mut [0; MAX_REQUEST], fresh);
        assert_eq!(count != 0, sends);
        assert_eq!(world.initiator.has_more(), !sends);
    }
    assert_eq!(world.initiator.len(), 1);
    let mut answered = world.initiator.take_answered();
    for _ in 0..STEP {
        let sent = answered.pop_front().expect("it has failed");
        assert_eq!(sent.status, 22);
    }
    assert!(answered.pop_front().is_none());
}

/// Requests of flows that are stopped are held, some in each turn, however many have come.
#[test]
fn requests_are_held_in_turns() {
    let mut world = stopped();
    for _ in 0..=3 * STEP {
        world.post_one(What::Send, 10);
    }
    let mut left = world.posted.len();
    while left != 0 {
        let posted = &mut world.posted;
        let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
        world.initiator.fill(&mut [0; 1000], fresh);
        assert_eq!(left - world.posted.len(), left.min(STEP));
        left = world.posted.len();
        assert_eq!(world.initiator.has_more(), left != 0);
    }
    finish(world, 1000);
}

/// However many requests are held, a turn looks at some of them; in the end all are found that are not wanted
/// any more, also those that the search had passed.
#[test]
fn requests_that_are_held_are_looked_at_in_turns() {
    let mut world = stopped();
    hold(&mut world, 10 * STEP);
    let looked = |world: &World| -> usize {
        let operations = world.operations.iter();
        operations.map(|operation| operation.looked.get()).sum()
    };
    let held = world.initiator.held();
    let last = world.operations.len() - 1;
    world.operations[last].withdrawn.set(true);
    let mut before = looked(&world);
    let mut turns = 1;
    let mut more = world.initiator.recall();
    // It was passed: it is the first one of its flow, which is the first.
    world.operations[0].withdrawn.set(true);
    assert!(world.initiator.recall());
    while more {
        let now = looked(&world);
        assert!(now - before <= 2 * STEP, "{} of {held}", now - before);
        before = now;
        more = world.initiator.search();
        turns += 1;
    }
    assert!(turns > 2 * (held / STEP) - 2, "{turns} turns for {held}");
    world.end_answered();
    assert_eq!(world.initiator.held(), held - 2);
    for at in [0, last] {
        assert_eq!(world.operations[at].answers.get(), 1, "{at}");
    }
    finish(world, 1000);
}

/// A request that is not wanted any more, and goes on before the search has come to it, is not sent.
#[test]
fn what_was_not_found_is_not_sent() {
    let mut world = stopped();
    hold(&mut world, 2 * STEP);
    let last = world.operations.len() - 1;
    world.operations[last].withdrawn.set(true);
    assert!(world.initiator.recall(), "it is behind all others");
    // Nobody goes on with the search.
    for _ in 0..30 {
        for asked in std::mem::take(&mut world.model.open) {
            world.model.reply(asked, 0);
        }
        world.settle();
        world.wait(1000);
    }
    assert_eq!(world.initiator.len(), 0);
    assert!(!world.model.there.contains(&(last as u64)));
    world.check();
}

/// Returns an initiator that has sent so many requests whose bytes the target may pull, in one go, to `out`.
fn with_many_sent(count: usize, out: &mut [u8]) -> World {
    let mut world = World::new(3);
    let window = Window {
        numbers: 1000,
        flows: FLOWS,
        eager: 1 << 20,
    };
    let connected = world.initiator.connected(1, window);
    connected.expect("nothing was sent");
    for _ in 0..count {
        world.post_one(What::Long, 10);
    }
    let posted = &mut world.posted;
    let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
    assert_ne!(world.initiator.fill(out, fresh), 0);
    assert!(world.posted.is_empty() && !world.initiator.has_more());
    world
}

/// However many requests were sent, a turn tells of some that are not wanted any more.
#[test]
fn requests_that_were_sent_are_looked_at_in_turns() {
    const COUNT: usize = 5 * STEP - 7;
    const WITHDRAW: usize = 24;
    let mut out = vec![0; 100_000];
    let mut world = with_many_sent(COUNT, &mut out);
    for operation in &world.operations {
        operation.withdrawn.set(true);
    }
    assert!(world.initiator.recall());
    let round = world.initiator.unwanted();
    assert!(round.is_some());
    while world.initiator.search() {}
    assert_eq!(world.initiator.unwanted(), round);
    let mut told = 0;
    loop {
        let count = world.initiator.fill(&mut out, |_| None);
        assert!(count <= STEP * WITHDRAW);
        told += count;
        if !world.initiator.has_more() {
            break;
        }
    }
    assert_eq!(told, COUNT * WITHDRAW);
}

/// Those that are found by one search, in however many turns, are to end together, and those that come to this meanwhile
/// are the next: none of these lets the others have more time.
#[test]
fn requests_that_are_not_wanted_end_in_rounds() {
    const COUNT: usize = 2 * STEP;
    let mut world = with_many_sent(COUNT + 3, &mut vec![0; 100_000]);
    let withdraw = |world: &mut World, id: usize| {
        world.operations[id - 1].withdrawn.set(true);
        world.initiator.recall();
        while world.initiator.search() {}
        world.initiator.unwanted().expect("it was withdrawn")
    };
    let end = |world: &mut World, id: usize| {
        let response = Response {
            status: 125,
            len: 0,
            waited: 0,
        };
        say(world, &Frame::Response(response), id as u64);
        world.initiator.unwanted()
    };
    for operation in &world.operations[1..COUNT] {
        operation.withdrawn.set(true);
    }
    let first = withdraw(&mut world, 1);
    // They wait for the first ones, and not for each other.
    assert_eq!(withdraw(&mut world, COUNT + 1), first);
    assert_eq!(withdraw(&mut world, COUNT + 2), first);
    for id in 1..COUNT {
        assert_eq!(end(&mut world, id), Some(first), "{id}");
    }
    let second = end(&mut world, COUNT).expect("two are left");
    assert_ne!(second, first);
    // The next one waits for these.
    assert_eq!(withdraw(&mut world, COUNT + 3), second);
    assert_eq!(end(&mut world, COUNT + 1), Some(second));
    let third = end(&mut world, COUNT + 2).expect("one is left");
    assert_ne!(third, second);
    assert_eq!(end(&mut world, COUNT + 3), None);
}

/// However many requests are under way, a turn passes some of them to find those that the target has pulled.
#[test]
fn requests_that_are_pulled_are_looked_for_in_turns() {
    const COUNT: usize = 5 * STEP - 7;
    let mut out = vec![0; 100_000];
    let mut world = with_many_sent(COUNT, &mut out);
    // Where it begins to look for them, and as far from there as there is any; and then one of either kind.
    for (ids, turns) in [(vec![1], 1), (vec![COUNT], 5), (vec![2, COUNT - 1], 5)] {
        for &id in &ids {
            say(&mut world, &Frame::Pull { offset: 0, len: 10 }, id as u64);
        }
        let mut found = Vec::new();
        let mut last = 0;
        for turn in 1.. {
            let count = world.initiator.fill(&mut out, |_| None);
            if count != 0 {
                let (common, _) = Frame::parse(&out[..32]).expect("it is a frame");
                found.push(common.id as usize);
                last = turn;
            }
            if !world.initiator.has_more() {
                // All were passed twice.
                assert!(turn <= 3 * COUNT / STEP + 3, "{turn} turns");
                break;
            }
        }
        assert_eq!((found, last), (ids, turns));
    }
}

/// While a request is looked for that was pulled, however many turns that takes, no more than one of those that have
/// come since is sent: an initiator that only sends these does not go on.
#[test]
fn requests_that_come_since_do_not_go_before_what_is_pulled() {
    const COUNT: usize = 5 * STEP - 7;
    let mut world = with_many_sent(COUNT, &mut vec![0; 100_000]);
    for _ in 0..1000 - COUNT {
        world.post_one(What::Send, 0);
    }
    for id in [COUNT, 1, COUNT - 1] {
        say(&mut world, &Frame::Pull { offset: 0, len: 10 }, id as u64);
        let mut requests = 0;
        let mut stream = Stream::new(vec![0; MAX_HEAD]);
        let mut is_found = false;
        while !is_found {
            let posted = &mut world.posted;
            let fresh = |_| posted.pop_front().map(|next| Entry::new(Sent::new(next)));
            let mut out = [0; 300];
            let count = world.initiator.fill(&mut out, fresh);
            assert!(count != 0 || world.initiator.has_more());
            let mut rest = &out[..count];
            while !rest.is_empty() {
                let len = rest.len().min(stream.room().len());
                stream.room()[..len].copy_from_slice(&rest[..len]);
                stream.received(len);
                rest = &rest[len..];
                while let Some(part) = stream.next().expect("it is a frame") {
                    match part {
                        Part::Head(_, Frame::Request(_)) if !is_found => requests += 1,
                        Part::Head(common, Frame::Data(_)) => {
                            assert_eq!(common.id, id as u64);
                            is_found = true;
                        }
                        _ => (),
                    }
                }
            }
        }
        assert!(requests <= 1, "{requests} requests before {id}");
        while world.initiator.has_more() {
            world.initiator.fill(&mut [0; 300], |_| None);
        }
    }
    assert!(!world.posted.is_empty());
}

/// Requests whose results have come and that were answered meanwhile are not looked for: others go at once.
#[test]
fn requests_go_when_nothing_is_wanted() {
    const COUNT: usize = 5 * STEP;
    let mut world = with_many_sent(COUNT, &mut vec![0; 100_000]);
    for id in 1..=COUNT / 2 {
        say(&mut world, &Frame::Pull { offset: 0, len: 10 }, id as u64);
        let response = Response {
            status: 7,
            len: 0,
            waited: 0,
        };
        say(&mut world, &Frame::Response(response), id as u64);
        world.post_one(What::Send, 0);
        world.post_one(What::Send, 0);
        assert_eq!(fill(&mut world, 1000).len(), 2, "after {id}");
        assert!(!world.initiator.has_more());
    }
}

/// Flows of which it is to be told that they may go on, however many, keep neither a request that is to be pulled nor an
/// answer waiting for more than one of them each.
#[test]
fn flows_that_are_let_go_take_turns_with_what_moves() {
    const STOPPED: u16 = 300;
    let mut world = World::new(23);
    world.model.noisy = true;
    world.model.lack = Lack::AtEnd;
    for flow in 0..STOPPED {
        let id = u64::from(flow) + 1;
        say_message(&mut world, (id, id), id, (flow, false, 2)).expect("it is right");
        let count = world.target.fill(&mut world.model, &mut [0; 48]);
        assert_eq!(count, 48, "there is no memory for {id}");
    }
    world.model.lack = Lack::Never;
    let first = u64::from(STOPPED) + 1;
    for id in [first, first + 1] {
        let taken = say_message(&mut world, (id, first), id, (STOPPED, false, 2));
        taken.expect("it is right");
    }
    world.target.let_go(world.now);
    world.now += 1000;
    world.target.let_go(world.now);
    let answered = world.model.open.remove(0);
    world.model.reply(answered, 0);
    let mut moving = world.model.open.remove(0);
    (moving.what, moving.len) = (What::Long, 10);
    world.model.started.push_back(moving);
    let mut out = [0; 32 * 8];
    let count = world.target.fill(&mut world.model, &mut out);
    let mut frames = Vec::new();
    let mut rest = &out[..count];
    while let Some(head) = rest.get(2..4) {
        let head = usize::from(u16::from_le_bytes([head[0], head[1]]));
        frames.push(
            match Frame::parse(&rest[..head]).expect("it is a frame").1 {
                Frame::Go(_) => "go",
                Frame::Pull { .. } => "pull",
                Frame::Response(_) => "response",
                frame => panic!("{frame:?}"),
            },
        );
        rest = &rest[head..];
    }
    assert_eq!(frames[..4], ["go", "response", "go", "pull"]);
    assert!(frames.len() > 5 && frames[4..].iter().all(|frame| *frame == "go"));
}

/// How long requests have not been wanted is known: it begins anew when all have ended that were not
/// wanted when it began, and not before, whatever breaks and whatever else is not wanted since.
#[test]
fn how_long_requests_have_not_been_wanted_is_known() {
    let mut world = World::new(3);
    for _ in 0..4 {
        world.post_one(What::Send, 10);
    }
    world.settle();
    assert_eq!(world.initiator.unwanted(), None);
    let unwanted = |world: &mut World, at: usize| {
        world.operations[at].withdrawn.set(true);
        world.initiator.recall();
        world.initiator.unwanted().expect("that is one")
    };
    let end = |world: &mut World, number: u64| {
        let place = world
            .model
            .open
            .iter()
            .position(|asked| asked.number == number);
        let asked = world.model.open.remove(place.expect("it is open"));
        world.model.reply(asked, 125);
        world.settle();
    };
    world.operations[0].withdrawn.set(true);
    let first = unwanted(&mut world, 1);
    assert_eq!(unwanted(&mut world, 2), first);
    end(&mut world, 0);
    assert_eq!(world.initiator.unwanted(), Some(first), "one is left");
    world.connect();
    assert_eq!(unwanted(&mut world, 3), first);
    end(&mut world, 2);
    assert_eq!(
        world.initiator.unwanted(),
        Some(first),
        "it was none of these"
    );
    end(&mut world, 1);
    let second = world.initiator.unwanted().expect("another one");
    assert_ne!(second, first);
    end(&mut world, 3);
    assert_eq!(world.initiator.unwanted(), None);
}

/// A request whose bytes are being moved ends when it is withdrawn: in the middle of a frame, before the
/// first one, and if it starts later.
#[test]
fn what_moves_is_withdrawn() {
    #[derive(Clone, Copy, Debug)]
    enum When {
        BeforeItStarts,
        BeforeAFrame,
        InAFrame,
    }

    const LEN: usize = 600 << 10;
    let times = [When::BeforeItStarts, When::BeforeAFrame, When::InAFrame];
    for (what, when) in [What::Long, What::LongRead]
        .into_iter()
        .flat_map(|what| times.map(|when| (what, when)))
    {
        let mut world = World::new(11);
        world.post_one(what, LEN);
        world.settle();
        let asked = world.model.open.remove(0);
        match when {
            When::BeforeItStarts => {}
            When::BeforeAFrame => {
                world.model.started.push_back(asked);
                let count = world.target.fill(&mut world.model, &mut [0; 24]);
                assert_eq!(count, 0, "there is no room");
            }
            When::InAFrame => {
                world.model.started.push_back(asked);
                let moves = |world: &World| match what {
                    What::Long => world.model.landed.iter().any(|(_, landed)| *landed != 0),
                    _ => !world.target.is_between(),
                };
                while !moves(&world) {
                    world.send();
                    world.receive().expect("both keep to the protocol");
                }
            }
        }
        world.operations[0].withdrawn.set(true);
        world.initiator.recall();
        let parting = world.initiator.parting();
        world.settle();
        if matches!(when, When::BeforeItStarts) {
            assert_eq!(world.initiator.parting(), parting, "nothing comes of it");
            world.model.started.push_back(asked);
            world.settle();
        }
        assert_eq!(
            world.model.ends,
            [(1, Moved::Withdrawn)],
            "{what:?} {when:?}"
        );
        let landed = world.model.landed.iter().map(|(_, landed)| landed);
        assert!(landed.sum::<usize>() < LEN, "{what:?} {when:?}");
        assert_eq!(world.operations[0].answers.get(), 1, "{what:?} {when:?}");
        assert_ne!(world.initiator.parting(), parting);
        assert_eq!(world.initiator.unwanted(), None);
        // The connection is as good as before.
        world.post_one(What::Read, 100);
        world.settle();
        let asked = world.model.open.remove(0);
        world.model.reply(asked, 0);
        world.settle();
        assert_eq!(world.operations[1].answers.get(), 1, "{what:?} {when:?}");
    }
}

/// A target that does not end what it has begun, but goes on with it, is seen to.
#[test]
fn what_still_moves_is_no_silence() {
    for what in [What::Long, What::LongRead] {
        let mut world = World::new(13);
        world.post_one(what, 200 << 10);
        world.settle();
        world.operations[0].withdrawn.set(true);
        world.initiator.recall();
        // It is lost on the way.
        world.initiator.fill(&mut [0; 24], |_| None);
        let asked = world.model.open.remove(0);
        world.model.started.push_back(asked);
        let mut before = world.initiator.parting();
        for _ in 0..3 {
            world.settle_for(10);
            let now = world.initiator.parting();
            assert_ne!(now, before, "{what:?}");
            before = now;
        }
        assert_eq!(world.operations[0].answers.get(), 0, "{what:?}: too early");
        world.settle();
        assert_eq!(world.operations[0].answers.get(), 1, "{what:?}");
        assert_eq!(world.model.ends, [(1, Moved::All)], "{what:?}");
    }
}

/// When there was no room for a request, and another one becomes the oldest, it is to be looked at whether that waits
/// for its receiver.
#[test]
fn the_next_one_that_is_the_oldest_is_looked_at() {
    let mut world = World::new(21);
    world.model.noisy = true;
    let say = |world: &mut World, id, ack| {
        let taken = say_message(world, (id, ack), id, (id as u16, false, 2));
        taken.expect("it is right");
    };
    say(&mut world, 1, 1);
    say(&mut world, 2, 1);
    let moving = world.model.open.remove(0);
    world.model.started.push_back(moving);
    world.target.fill(&mut world.model, &mut [0; 1000]);
    world.model.lack = Lack::AtEnd;
    say(&mut world, 3, 1);
    world.model.lack = Lack::Never;
    assert!(world.target.is_behind());
    assert!(!world.relieve());
    assert!(!world.target.is_behind(), "the oldest one moves");
    world.model.reply(moving, 0);
    assert_ne!(world.target.fill(&mut world.model, &mut [0; 1000]), 0);
    say(&mut world, 4, 2);
    assert!(world.target.is_behind());
    assert!(!world.relieve());
    assert!(!world.target.is_behind());
    let left: Vec<_> = world.model.open.iter().map(|asked| asked.id).collect();
    assert_eq!(left, [4], "the other one was taken back");
}

/// A target knows when it is the initiator's turn to say that it has read what came of its oldest request.
#[test]
fn what_an_initiator_has_to_acknowledge_is_known() {
    let mut world = World::new(21);
    world.post_one(What::Send, 10);
    world.post_one(What::Send, 10);
    world.settle();
    assert_eq!(world.target.unacknowledged(), None, "nothing was answered");
    let mut out = [0; 1000];
    let asked = world.model.open.remove(1);
    world.model.reply(asked, 0);
    assert_eq!(world.target.fill(&mut world.model, &mut out), 48);
    assert_eq!(
        world.target.unacknowledged(),
        None,
        "nothing came of the oldest one"
    );
    let asked = world.model.open.remove(0);
    world.model.reply(asked, 0);
    assert_eq!(world.target.fill(&mut world.model, &mut [0; 24]), 0);
    assert_eq!(
        world.target.unacknowledged(),
        None,
        "it is about to be said"
    );
    assert_eq!(world.target.fill(&mut world.model, &mut out), 48);
    assert_eq!(world.target.unacknowledged(), Some(1));
    // The acknowledgement was lost.
    world.connect();
    assert_eq!(
        world.target.unacknowledged(),
        None,
        "it is to be said again"
    );
    assert_eq!(world.target.fill(&mut world.model, &mut out), 96);
    assert_eq!(world.target.unacknowledged(), Some(1));
    world.connect();
    world.settle();
    assert_eq!(world.target.unacknowledged(), None, "it was read");
    assert!(world.target.is_over());
    // The news that it was not taken is acknowledged, too.
    let mut world = pinned();
    world.relieve();
    assert_eq!(world.target.unacknowledged(), None);
    let count = world.target.fill(&mut world.model, &mut out);
    world.back.extend(&out[..count]);
    assert_eq!(world.target.unacknowledged(), Some(1));
    world.settle();
    assert_ne!(world.target.unacknowledged(), Some(1), "it was read");
}

/// While the oldest answer is to be said, it is known how much is sent before that.
#[test]
fn what_is_sent_before_the_oldest_answer_is_known() {
    let mut world = World::new(21);
    for (what, len) in [(What::Send, 10), (What::Fetch, 10)] {
        world.post_one(what, len);
    }
    world.post_one(What::LongRead, 4 * PIECE);
    assert_eq!(world.target.untold(), None, "nothing was asked");
    world.settle();
    assert_eq!(world.target.untold(), None, "nothing was answered");
    // Behind a piece that has begun.
    let long = world.model.open.remove(2);
    world.model.started.push_back(long);
    assert_eq!(world.target.fill(&mut world.model, &mut [0; 1000]), 1000);
    assert_eq!(world.target.untold(), None);
    let first = world.model.open.remove(0);
    world.model.reply(first, 0);
    let mut out = vec![0; 1000];
    let mut sent = 1000;
    while let Some(untold) = world.target.untold() {
        assert_eq!(world.target.unacknowledged(), None);
        assert_eq!(untold, (1, (sent / PIECE) as u64));
        sent += world.target.fill(&mut world.model, &mut out);
    }
    assert!((PIECE..3 * PIECE).contains(&sent), "after {sent} bytes");
    assert_eq!(world.target.unacknowledged(), Some(1), "it was said");
    // It is said on a new connection again.
    world.connect();
    assert_eq!(world.target.untold(), Some((1, (sent / PIECE) as u64)));
    world.settle();
    assert_eq!(world.target.untold(), None);
}

/// An initiator that does not say that it has read the oldest answer is waited for on one connection after the other, but
/// not for ever, however soon each of them ends, and whatever else it reads.
#[test]
fn connections_give_no_time_to_read_for_ever() {
    // Connections on which nothing was read or sent, or all was that the initiator then does not remember.
    for reads in [false, true] {
        let mut world = World::new(21);
        world.model.most = Some(1);
        for what in [What::Fetch, What::Send] {
            world.post_one(what, 10);
        }
        world.settle();
        // No answer has been given.
        for _ in 0..50 {
            world.connect();
            assert_eq!(world.target.unacknowledged(), None);
        }
        let asked = world.model.open.remove(0);
        world.model.reply(asked, 0);
        let mut out = [0; 1000];
        assert_ne!(world.target.fill(&mut world.model, &mut out), 0);
        assert_eq!(world.target.unacknowledged(), Some(1));
        for connection in 1..16 {
            world.connect();
            assert_eq!(world.target.unacknowledged(), None, "{connection}");
            assert!(world.target.gives_time());
            if reads {
                assert_ne!(world.target.fill(&mut world.model, &mut out), 0);
                assert_eq!(world.target.unacknowledged(), Some(1));
            }
        }
        for _ in 0..3 {
            world.connect();
            assert!(!world.target.gives_time());
            assert_eq!(world.target.unacknowledged(), Some(1));
        }
        // It begins anew with the next one.
        world.settle();
        assert_eq!(world.operations[0].answers.get(), 1);
        assert!(world.target.gives_time());
        for _ in 0..50 {
            world.connect();
            assert_eq!(world.target.unacknowledged(), None);
        }
        let asked = world.model.open.remove(0);
        world.model.reply(asked, 0);
        assert_ne!(world.target.fill(&mut world.model, &mut out), 0);
        for connection in 1..16 {
            world.connect();
            assert!(world.target.gives_time(), "{connection}");
        }
        world.connect();
        assert!(!world.target.gives_time());
        // So it does with another session.
        world.begin_session();
        assert!(world.target.gives_time());
    }
    // Nor is it for an answer for which there was never room.
    let mut world = World::new(21);
    for what in [What::Send, What::Read] {
        world.post_one(what, 10_000);
    }
    world.settle();
    let (first, second) = (world.model.open[0], world.model.open[1]);
    world.model.reply(second, 0);
    assert_ne!(world.target.fill(&mut world.model, &mut [0; 100]), 0);
    for _ in 0..50 {
        world.connect();
        assert!(world.target.gives_time(), "no answer was given");
    }
    world.model.reply(first, 0);
    for connection in 1..=16 {
        assert!(world.target.gives_time(), "{connection}");
        assert_eq!(world.target.unacknowledged(), None);
        world.connect();
        assert_ne!(world.target.fill(&mut world.model, &mut [0; 100]), 0);
    }
    assert!(!world.target.gives_time());
    assert_eq!(world.target.unacknowledged(), Some(1));
    // Nor is it for what was not taken.
    let mut world = pinned();
    world.relieve();
    for connection in 1..=16 {
        assert!(world.target.gives_time(), "{connection}");
        world.connect();
    }
    assert!(!world.target.gives_time());
    assert_eq!(world.target.unacknowledged(), Some(1));
    finish(world, 1000);
}

/// A target knows when it is the initiator's turn, and whether that goes on.
#[test]
fn what_an_initiator_owes_is_known() {
    for what in [What::Long, What::LongRead] {
        let mut world = World::new(5);
        world.post_one(what, 30_000);
        world.settle();
        assert!(!world.target.is_owed(), "{what:?}: it was not asked");
        let asked = world.model.open.remove(0);
        world.model.started.push_back(asked);
        let mut out = vec![0; 100_000];
        let before = world.target.progress();
        world.target.fill(&mut world.model, &mut out);
        assert!(world.target.is_owed(), "{what:?}: it was asked");
        let asked = world.target.progress();
        assert_ne!(asked, before, "{what:?}");
        // Nothing comes, and nothing changes, whatever else does.
        world.post_one(What::Send, 10);
        world.settle();
        assert!(world.target.is_owed(), "{what:?}: nothing has come");
        assert_eq!(world.target.progress(), asked, "{what:?}");
        // It is a new connection that asks again.
        world.connect();
        assert!(!world.target.is_owed(), "{what:?}: not on this connection");
        world.settle();
        assert!(!world.target.is_owed(), "{what:?}: all has come");
        assert_ne!(world.target.progress(), asked, "{what:?}");
        assert_eq!(world.operations[0].answers.get(), 1, "{what:?}");
    }
}

/// The most bytes that go in one turn.
const PIECE: usize = 256 << 10;

/// Returns a world with operations that have started, for which the target has sent all that there is room for.
fn moving(operations: &[(What, usize)], room: usize) -> World {
    let mut world = World::new(23);
    for (what, len) in operations {
        world.post_one(*what, *len);
    }
    world.settle();
    let open = std::mem::take(&mut world.model.open);
    assert_eq!(open.len(), operations.len());
    world.model.started.extend(open);
    world.target.fill(&mut world.model, &mut vec![0; room]);
    world
}

/// The target reads a frame of data of a request, and so many bytes of it.
fn bring(world: &mut World, id: u64, offset: usize, body: usize, there: usize) {
    let mut head = [0; 64];
    let count = Frame::Data(offset as u64).write(id, 1, body, &mut head);
    let head = &head[..count.expect("there is room")];
    let (common, frame) = Frame::parse(head).expect("it is a frame");
    let taken = world.target.head(&mut world.model, &common, &frame);
    taken.expect("it was asked for");
    more(world, id, offset, there, there == body);
}

/// The target reads more bytes of a frame.
fn more(world: &mut World, id: u64, offset: usize, count: usize, last: bool) {
    let bytes: Vec<_> = (offset..offset + count)
        .map(|at| byte(id - 1, at, false))
        .collect();
    world.target.body(&mut world.model, &bytes, last);
}

/// Looks until an initiator is found not to go on, which does something before each look; returns how often
/// that was, or nothing if it goes on.
fn looks(world: &mut World, mut act: impl FnMut(&mut World, usize)) -> Option<u32> {
    let mut at = 0;
    (1..=10 * LOOKS).find(|_| {
        act(world, at);
        at += 1;
        !world.target.look()
    })
}

/// An initiator that brings bytes of a request now and then does not go on, with this one or with others.
#[test]
fn to_bring_a_byte_is_not_to_go_on() {
    let both = [(What::Long, 2 * PIECE), (What::Long, 2 * PIECE)];
    for requests in [1, 2] {
        // Each in a frame of its own.
        let mut world = moving(&both[..requests], 1000);
        let found = looks(&mut world, |world, at| bring(world, 1, at, 1, 1));
        assert_eq!(found, Some(2 * LOOKS));
        // In one frame.
        let mut world = moving(&both[..requests], 1000);
        bring(&mut world, 1, 0, PIECE, 1);
        let found = looks(&mut world, |world, at| more(world, 1, at + 1, 1, false));
        assert_eq!(found, Some(2 * LOOKS));
        // Not at all.
        let mut world = moving(&both[..requests], 1000);
        assert_eq!(looks(&mut world, |_, _| ()), Some(2 * LOOKS));
    }
}

/// An initiator that lets nothing be sent does not go on with what starts meanwhile, for which it is not asked.
#[test]
fn a_start_needs_no_room() {
    let mut world = World::new(29);
    for _ in 0..2 {
        world.post_one(What::Long, 2 * PIECE);
    }
    world.settle();
    let open = std::mem::take(&mut world.model.open);
    world.model.started.extend(open);
    assert!(!world.target.is_moving());
    world.target.collect(&mut world.model);
    assert!(world.target.is_moving());
    assert_eq!(looks(&mut world, |_, _| ()), Some(2 * LOOKS));
}

/// An initiator that brings as much as it likes, but nothing of one request, does not go on; but 4 MiB may have
/// been on their way before.
#[test]
fn none_is_passed_over() {
    for other in [What::Long, What::LongRead] {
        let operations = [(What::Long, 30 * PIECE), (other, 20_000)];
        let mut world = moving(&operations, 100_000);
        let found = looks(&mut world, |world, at| {
            bring(world, 1, at * PIECE, PIECE, PIECE);
        });
        assert_eq!(found, Some(LOOKS + 2 + 16), "{other:?}");
    }
}

/// An initiator that takes requests in turns goes on, however long each waits for its own, and if it brings
/// no more than a piece in `peer_timeout`.
#[test]
fn turns_may_take_long() {
    const PIECES: usize = 3;
    let mut world = moving(&[(What::Long, PIECES * PIECE); 3], 1000);
    for piece in 0..PIECES {
        for id in 1..=3 {
            bring(&mut world, id, piece * PIECE, PIECE, PIECE);
            for look in 0..LOOKS {
                assert!(world.target.look(), "{piece} of {id}: {look}");
            }
        }
    }
    let ended: Vec<_> = (1..=3u64).map(|id| (id, Moved::All)).collect();
    assert_eq!(world.model.ends, ended);
    assert!(world.target.look());
    assert!(!world.target.is_moving());
}

/// An initiator that does not read what it wants to read does not go on; one that reads it slowly does.
#[test]
fn results_are_to_be_read() {
    let mut world = moving(&[(What::LongRead, 4 * PIECE)], 1000);
    assert_eq!(looks(&mut world, |_, _| ()), Some(2 * LOOKS));
    let mut world = moving(&[(What::LongRead, 4 * PIECE)], 1000);
    for _ in 0..4 {
        for _ in 0..LOOKS {
            let room = &mut vec![0; PIECE / LOOKS as usize];
            world.target.fill(&mut world.model, room);
            assert!(world.target.look());
        }
    }
    world.target.fill(&mut world.model, &mut vec![0; 2000]);
    assert!(world.target.is_owed());
    // It was looked at once since all of it was sent.
    assert_eq!(looks(&mut world, |_, _| ()), Some(2 * LOOKS - 1));
}

/// A new connection gives a request more time, but not one after the other.
#[test]
fn connections_give_no_time_for_ever() {
    let mut world = moving(&[(What::Long, 2 * PIECE)], 1000);
    let connect = |world: &mut World| {
        world.connect();
        let count = world.target.fill(&mut world.model, &mut [0; 1000]);
        assert_ne!(count, 0, "it is pulled again");
    };
    for connection in 1..16 {
        connect(&mut world);
        for _ in 0..=LOOKS {
            assert!(world.target.look(), "{connection}");
        }
    }
    connect(&mut world);
    let found = looks(&mut world, |world, _| connect(world));
    assert_eq!(found, Some(LOOKS - 1));
    // It begins anew with a piece.
    let mut world = moving(&[(What::Long, 2 * PIECE)], 1000);
    for _ in 0..20 {
        connect(&mut world);
    }
    bring(&mut world, 1, 0, PIECE, PIECE);
    connect(&mut world);
    assert_eq!(looks(&mut world, |_, _| ()), Some(2 * LOOKS));
}

/// A stream knows when a frame has begun to come.
#[test]
fn a_frame_that_has_begun_is_known() {
    let mut stream = Stream::new(vec![0; MAX_HEAD]);
    let mut bytes = vec![0; 100];
    let head = Frame::Data(0).write(1, 1, 5, &mut bytes);
    let len = head.expect("there is room") + 5;
    assert!(stream.is_between());
    for (at, byte) in bytes[..len].iter().enumerate() {
        assert_eq!(stream.is_between(), at == 0, "before byte {at}");
        stream.room()[0] = *byte;
        stream.received(1);
        while stream.next().expect("it is a frame").is_some() {}
    }
    assert!(stream.is_between());
}

/// Fewer than of frames, as each is many frames.
fn config() -> ProptestConfig {
    let cases = std::env::var("KFI_WIRE_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse::<u32>().ok());
    ProptestConfig {
        cases: cases.unwrap_or(0) / 10_000 + 12,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// However often connections break, each request is carried out once, in order, and answered once.
    #[test]
    fn requests_are_done_once(seed in any::<u64>(), breaks in 5..200usize) {
        run(seed, 60, breaks);
    }

    /// A side that keeps to the protocol does no harm to itself, whatever bytes come.
    #[test]
    fn noise_does_no_harm(seed in any::<u64>(), noise in 1..20usize) {
        run_noisy(seed, 3000, noise);
    }
}
