// SPDX-License-Identifier: GPL-2.0

//! The target's side of associations: requests of others, which become [`RemoteRequest`]s, and their
//! answers.

#![forbid(unsafe_code)]

use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    fmt,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        new_spinlock_irq,
        Arc,
        ArcBorrow,
        Mutex,
        SpinLockIrq, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    }, //
};

use super::{
    alarm::Alarm,
    bye,
    connection::{
        Connection,
        End,
        Instant, //
    },
    frame::{
        self,
        Broken,
        Frame,
        Hello,
        Kind,
        MAX_OTHER, //
    },
    idle::Idle,
    incoming::{
        self,
        Begun,
        Lane,
        LaneSlot,
        Moved,
        Target, //
    },
    nonce,
    pace::Pace,
    random,
    stops,
    stream::Part,
    Pair,
    Shared,
    EAGER,
    STEP, //
};
use crate::{
    address::{
        auth_key::KeyNumber,
        native::Address, //
    },
    kfi::{
        linux::{
            hmac::MAC_LEN,
            no_io::NoIo,
            queue::{
                Entry,
                EntryQueue,
                Vacant, //
            },
            socket::SocketEvents,
            task::cond_resched,
            work_queue::{
                new_work,
                Work,
                WorkItem, //
            }, //
        },
        memory::{
            self,
            Cursor,
            Memory,
            RemoteMemory,
            RemoteRange, //
        },
        provider::{
            kfi_datatype,
            kfi_op,
            AtomicCall, //
        }, //
    },
    owner::Recipient,
    share,
    sum::{
        Count,
        Sum, //
    },
    wire::{
        atomics::Atomics,
        awaits::Awaits,
        remote::{
            Answer,
            Answers,
            Charge,
            Name,
            RemotePayload,
            RemoteRequest,
            Start, //
        },
        ContextIndex,
        Request,
        RequestKind, //
    }, //
};

/// So many requests of a lane may be without an `ack`.
const WINDOW: usize = 4096;

/// There is memory for so many of them, and when these are used for as many more.
const CHUNK: usize = 64;
/// So many chunks of memory there may be for all lanes, besides two for each: its first requests lie in two,
/// unless their numbers begin with a multiple of [`CHUNK`].
const MAX_CHUNKS: usize = 16 << 10;

/// So often the association is looked for of which nothing has been under way for longest; then it is one of which
/// nothing is.
const TRIES: u32 = 8;

/// When requests of a NIC that are not over have more bytes than this, those of others are not kept: they
/// are pulled, or fetched, when it is known where they go, or come from.
const PEER_BYTES: usize = 4 << 20;
/// The same, for the requests of all: those to each user have their share of it.
const ALL_BYTES: usize = 256 << 20;
/// The requests to one user may have so many bytes in any case.
const FEW_BYTES: usize = ALL_BYTES / 16;
/// Where there is no other way, they may have so many times as many.
const BYTES_FACTOR: usize = 2;
/// With more than so many times as many no request is taken, as each takes some for itself.
const REQUESTS_FACTOR: usize = 3;
/// A NIC whose requests have no more than these, or a user to whom those have no more, is not concerned by what
/// others have.
const LEAST_BYTES: usize = 32 << 10;

/// So many connections of a session may break the protocol.
const STRIKES: u32 = 3;

/// The most peers.
const MAX_PEERS: usize = 4096;

/// A peer that has asked for nothing for so many times `peer_timeout` has no connection any more. That is
/// longer than what it keeps it for itself.
const QUIET_TIMES: u32 = 8;

/// An answer may be unacknowledged for so many times `peer_timeout`, though other bytes are moved: so long it
/// takes at the most to come to the initiator; a frame there that was begun to end; and the next one to come
/// here.
const ACKNOWLEDGED_TIMES: u32 = 3;

/// So often a connection is looked at before others have the work queue.
const TURNS: usize = 64;
/// And so often requests that have come are handed on meanwhile.
const ROUNDS: usize = 8;

/// Flows that could not be stopped are tried again after so many milliseconds: nothing says when they can be.
const RETRY_MILLIS: u64 = 10;

/// Memory for some requests of a lane.
pub(super) struct Chunk {
    slots: KVec<LaneSlot<Service>>,
    /// None if the lane has this one in any case.
    count: Option<Count>,
}

impl Chunk {
    fn new(shared: &Arc<Shared>, more: bool) -> Result<Self> {
        let chunks = &shared.load.chunks;
        if more && chunks.sum() >= MAX_CHUNKS {
            return Err(ENOMEM);
        }
        let mut slots = KVec::with_capacity(CHUNK, GFP_NOWAIT)?;
        for _ in 0..CHUNK {
            slots.push(None, GFP_NOWAIT)?;
        }
        Ok(Self {
            slots,
            count: more.then(|| chunks.count(1)),
        })
    }
}

impl Deref for Chunk {
    type Target = [LaneSlot<Service>];

    fn deref(&self) -> &Self::Target {
        &self.slots
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.slots
    }
}

/// Memory for the chunks of a lane.
type Chunks = KVec<Option<Chunk>>;

/// The load of all peers, by their requests.
pub(super) struct Load {
    /// Chunks of memory for requests, besides two for each lane.
    chunks: Sum,
    /// Bytes that have come with requests, or go with their answers, and those that these take themselves.
    bytes: Sum,
    /// Counted as a user, to whom requests come that are for nobody: they are answered at once, and kept until
    /// that is acknowledged.
    nobody: Recipient,
}

impl Load {
    /// Nothing.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            chunks: Sum::new()?,
            bytes: Sum::new()?,
            nobody: Recipient::nobody()?,
        })
    }
}

/// The party that the requests of a peer come to.
pub(super) struct Service {
    visitor: Arc<Visitor>,
    /// The session.
    birth: u64,
    /// Requests that have come, each in the memory that is for its entry.
    arrived: EntryQueue<Arc<RemoteRequest>>,
    outcomes: Outcomes,
    /// Requests of which nothing more is moved.
    ended: EntryQueue<Ended>,
    /// The user to whom the last request has come in this run.
    last: Option<(Place, Recipient)>,
}

/// The place that a request comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    address: Address,
    context: ContextIndex,
    auth_key: KeyNumber,
}

impl Place {
    /// That of a request.
    fn of(request: &Request) -> Self {
        Self {
            address: request.destination,
            context: request.context,
            auth_key: request.auth_key,
        }
    }
}

/// What has become of requests, in order.
struct Outcomes {
    answered: EntryQueue<Answer>,
    /// Requests that want their bytes.
    starts: EntryQueue<Start>,
}

impl Outcomes {
    /// Nothing.
    const fn new() -> Self {
        Self {
            answered: EntryQueue::new(),
            starts: EntryQueue::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.starts.is_empty()
    }

    /// Takes all out.
    fn take(&mut self) -> Self {
        core::mem::replace(self, Self::new())
    }

    /// Adds what has become of others since.
    fn append(&mut self, mut later: Self) {
        if self.is_empty() {
            *self = later;
            return;
        }
        while let Some(answer) = later.answered.pop_front() {
            self.answered.push_back(answer);
        }
        while let Some(start) = later.starts.pop_front() {
            self.starts.push_back(start);
        }
    }
}

/// The place where those who carry requests out leave what has become of these.
struct Outbox {
    outcomes: Outcomes,
    /// The work item is going to look here in any case, and need not be woken.
    is_looked_at: bool,
}

/// A request of which nothing more is moved.
struct Ended {
    request: Arc<RemoteRequest>,
    moved: Moved,
}

impl Ended {
    /// In the memory of its start.
    fn new(start: Entry<Start>, moved: Moved) -> Entry<Self> {
        let (Start { request, .. }, memory) = start.empty();
        memory.fill(Self { request, moved })
    }
}

/// A request whose header is right.
pub(super) struct Checked {
    request: Request,
    /// How many bytes of operands or data come with it, and how many to compare with.
    bodies: (usize, usize),
}

/// A request whose data are yet to come.
pub(super) struct Partial {
    name: Name,
    request: Request,
    remote: RemoteMemory,
    /// None if its bytes go straight to where they belong.
    bytes: Option<Bytes>,
    /// Counts these, and whatever else there may be a lot of.
    charge: Charge,
    entry: Vacant,
}

/// Memory for the bytes of a request.
struct Bytes {
    data: Memory<memory::Target>,
    compare: Memory<memory::Target>,
    results: Memory<memory::Target>,
}

impl Bytes {
    /// Memory for so many bytes of data, to compare with, and of results, if there is some at once.
    fn new([data, compare, results]: [usize; 3]) -> Result<Self> {
        Ok(Self {
            data: Memory::zeroed(data, GFP_NOWAIT)?,
            compare: Memory::zeroed(compare, GFP_NOWAIT)?,
            results: Memory::zeroed(results, GFP_NOWAIT)?,
        })
    }
}

/// An answer that was given.
pub(super) struct Given(Entry<Answer>);

impl incoming::Answer for Given {
    fn response(&self) -> (frame::Response, usize, bool) {
        let Answer { request, response } = &*self.0;
        let request = request.request();
        // A success is one of all of it.
        let err = match u32::try_from(response.err) {
            Ok(0) if response.len != request.len => EIO.to_errno().unsigned_abs(),
            Ok(err) => err,
            Err(_) => EIO.to_errno().unsigned_abs(),
        };
        let told = frame::Response {
            status: err,
            len: match err {
                0 => u64::try_from(request.len).unwrap_or(u64::MAX),
                _ => 0,
            },
            waited: 0,
        };
        let (reads, fetches) = results(request.kind);
        // The others have gone before.
        let here = !self.0.request.is_distant() && (reads || fetches);
        let len = if err == 0 && here { request.len } else { 0 };
        (told, len, reads)
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        let payload = self.0.request.payload();
        let read = payload.target.cursor(offset).read(to);
        // There is as much memory as results.
        to.get_mut(read..).unwrap_or(&mut []).fill(0);
    }
}

/// Returns the jiffies that so many milliseconds are, at least.
fn millis_to_jiffies(millis: u64) -> Jiffies {
    msecs_to_jiffies(u32::try_from(millis).unwrap_or(u32::MAX))
}

/// Returns what is left of so many milliseconds, of what an initiator has to say, after which it is as good as
/// gone. It begins anew when nobody has looked for long: there may be more than was read then.
fn left_or_lost(since: &mut Instant, millis: u32) -> Result<Jiffies, End> {
    if let Some(left) = since.left(millis) {
        return Ok(left);
    }
    if since.left(millis.saturating_add(millis / 4)).is_some() {
        return Err(End::Lost);
    }
    *since = Instant::now();
    Ok(msecs_to_jiffies(millis))
}

/// How many bytes requests have.
#[derive(Clone, Copy)]
struct Held {
    /// The bytes of requests of the NIC from which one comes.
    nic: usize,
    /// The bytes of requests to the user to whom it comes.
    user: usize,
    /// The bytes of all requests.
    all: usize,
}

impl Held {
    /// Returns whether there is room for one, where requests may have so many times the bytes that they should
    /// have.
    fn has_room(self, times: usize) -> bool {
        let few = self.nic <= LEAST_BYTES || self.user <= LEAST_BYTES;
        few || self.nic <= PEER_BYTES.saturating_mul(times) && self.has_share(times)
    }

    /// Returns whether there is room for one among those of all users.
    ///
    /// A user has a few bytes also if others have more than they should have, as those do of whose requests no
    /// bytes are kept but what these take themselves.
    fn has_share(self, times: usize) -> bool {
        let Self { user, all, .. } = self;
        let most = ALL_BYTES.saturating_mul(times);
        let few = FEW_BYTES.saturating_mul(times);
        let limit = ALL_BYTES.saturating_mul(REQUESTS_FACTOR);
        share::has_room(most, all, user, few) || user < few && all < limit
    }
}

/// Returns whether a request reads memory, and whether it fetches elements.
fn results(kind: RequestKind) -> (bool, bool) {
    match kind {
        RequestKind::Read | RequestKind::TaggedRead { .. } => (true, false),
        RequestKind::Atomic(atomics) => (false, atomics.call() != AtomicCall::Plain),
        _ => (false, false),
    }
}

/// Returns how much memory so many bytes occupy, at most.
fn occupied(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        _ => bytes
            .max(8)
            .checked_next_power_of_two()
            .unwrap_or(usize::MAX),
    }
}

impl Service {
    /// Returns what kind of request a frame is about; `None` if there is none such.
    fn kind(frame: &frame::Request<'_>) -> Option<RequestKind> {
        let (tag, offset) = (frame.tag, frame.offset);
        Some(match frame.kind {
            Kind::Message => RequestKind::Message,
            Kind::Tagged => RequestKind::Tagged { tag },
            Kind::Write => RequestKind::Write,
            Kind::Read => RequestKind::Read,
            Kind::TaggedWrite => RequestKind::TaggedWrite { tag, offset },
            Kind::TaggedRead => RequestKind::TaggedRead { tag, offset },
            Kind::Atomic { form, op, datatype } => {
                let call = match form {
                    0 => AtomicCall::Plain,
                    1 => AtomicCall::Fetch,
                    _ => AtomicCall::Compare,
                };
                let (op, datatype) = (kfi_op::from(op), kfi_datatype::from(datatype));
                let atomics = Atomics::new(datatype, op, call).ok()?;
                // Elements are whole.
                let size = u64::try_from(atomics.size()).ok()?;
                if !frame.ranges.iter().all(|range| range.len % size == 0) {
                    return None;
                }
                RequestKind::Atomic(atomics)
            }
        })
    }

    /// Returns the request that a frame describes; `None` if there is none such.
    fn request(&self, frame: &frame::Request<'_>) -> Option<Request> {
        let (source, target) = self.visitor.pair;
        let context = usize::from(frame.context);
        Some(Request {
            source: Address::new(source, frame.from)?,
            destination: Address::new(target, frame.to)?,
            context: if frame.named {
                ContextIndex::Named(context)
            } else {
                ContextIndex::Beside(context)
            },
            auth_key: self.visitor.shared.config.keys.find(frame.key),
            kind: Self::kind(frame)?,
            data: frame.data,
            len: usize::try_from(frame.len).ok()?,
        })
    }

    /// Returns whether the bytes of a request go straight to where they belong: because there are many of
    /// them, or because they are not `kept`.
    fn is_distant(request: &Request, eager: bool, kept: bool) -> bool {
        match request.kind {
            // They are few, and there is no other way.
            RequestKind::Atomic(_) => false,
            _ if !kept => true,
            RequestKind::Read | RequestKind::TaggedRead { .. } => request.len > EAGER,
            _ => !eager,
        }
    }

    /// Returns how many bytes of operands or data come with a request, and how many to compare with;
    /// `None` if that cannot be.
    fn bodies(request: &Request, eager: bool, body: usize) -> Option<(usize, usize)> {
        let wanted = match request.kind {
            RequestKind::Read | RequestKind::TaggedRead { .. } => (0, 0),
            RequestKind::Atomic(atomics) => {
                let operands = if atomics.has_operands() {
                    request.len
                } else {
                    0
                };
                match atomics.call() {
                    AtomicCall::Compare => (operands, request.len),
                    _ => (operands, 0),
                }
            }
            // No more than it was told.
            _ if eager && request.len > EAGER => return None,
            _ if eager => (request.len, 0),
            _ => (0, 0),
        };
        let sum = wanted.0.checked_add(wanted.1)?;
        (sum == body).then_some(wanted)
    }

    /// Returns the user to whom a request comes, or nobody. Many come to the same one, who is looked for once in
    /// a run: no endpoint that takes the place of another one meanwhile could say that this was before.
    fn recipient(&mut self, request: &Request) -> Recipient {
        let place = Place::of(request);
        if let Some((_, recipient)) = self.last.as_ref().filter(|(last, _)| *last == place) {
            return recipient.clone();
        }
        let Shared { load, config, .. } = &*self.visitor.shared;
        let Some(recipient) = config.arrivals.recipient(request) else {
            return load.nobody.clone();
        };
        self.last = Some((place, recipient.clone()));
        recipient
    }

    /// Allocates what a request needs, if there is room, or it is `alone`. Does not wait for memory.
    fn allocate(
        &mut self,
        (name, alone): (Name, bool),
        checked: Checked,
        frame: &frame::Request<'_>,
    ) -> Result<Begun<Partial>> {
        let Checked {
            request,
            bodies: (data, compare),
        } = checked;
        let recipient = self.recipient(&request);
        let load = &self.visitor.shared.load;
        let (nic, all) = (&self.visitor.bytes, &load.bytes);
        let has_room = |times| {
            let held = Held {
                nic: nic.sum(),
                user: recipient.received().sum(),
                all: all.sum(),
            };
            held.has_room(times)
        };
        let kept = has_room(1);
        let (reads, fetches) = results(request.kind);
        let results = if reads || fetches { request.len } else { 0 };
        let ranges = frame.ranges.iter().map(|range| RemoteRange {
            addr: range.addr,
            len: usize::try_from(range.len).unwrap_or(usize::MAX),
            key: range.key,
        });
        let count = frame.ranges.count();
        let lists = RemoteMemory::pieces(count)
            .map(occupied)
            .fold(0, usize::saturating_add);
        let wanted = [data, compare, results];
        let whole = wanted
            .map(occupied)
            .into_iter()
            .fold(lists, usize::saturating_add);
        let distant = Self::is_distant(&request, frame.eager, kept);
        let sum = if distant { lists } else { whole };
        let times = if sum == 0 {
            REQUESTS_FACTOR
        } else {
            BYTES_FACTOR
        };
        if !alone && !has_room(times) {
            return Ok(Begun::NoRoom(recipient.number()));
        }
        let bytes = match (!distant).then(|| Bytes::new(wanted)).transpose() {
            Ok(bytes) => bytes,
            // They are pulled, or fetched, as those that are not kept.
            Err(_) if Self::is_distant(&request, frame.eager, false) => None,
            Err(error) => return Err(error),
        };
        let sum = if bytes.is_some() { whole } else { lists };
        let sum = sum.saturating_add(RemoteRequest::memory(bytes.is_none()));
        Ok(Begun::Taken(Partial {
            name,
            request,
            remote: RemoteMemory::collect(count, ranges, GFP_NOWAIT)?,
            bytes,
            charge: Charge::new(recipient, [nic, all], sum),
            entry: Vacant::new(GFP_NOWAIT)?,
        }))
    }
}

impl Target for Service {
    type Open = Arc<RemoteRequest>;
    type Answer = Given;
    type Checked = Checked;
    type Partial = Partial;
    type Start = Entry<Start>;
    type Input = Connection;
    type Chunk = Chunk;

    const CHUNK: usize = CHUNK;

    fn chunk(&mut self, more: bool) -> Option<Chunk> {
        Chunk::new(&self.visitor.shared, more).ok()
    }

    fn is_own(chunk: &mut Chunk) {
        chunk.count = None;
    }

    fn check(&self, frame: &frame::Request<'_>, body: usize) -> Result<Checked, Broken> {
        let request = self.request(frame).ok_or(Broken::Value)?;
        let bodies = Self::bodies(&request, frame.eager, body).ok_or(Broken::Body)?;
        Ok(Checked { request, bodies })
    }

    fn begin(
        &mut self,
        id: u64,
        frame: &frame::Request<'_>,
        checked: Checked,
        alone: bool,
    ) -> Begun<Partial> {
        let name = Name {
            session: self.birth,
            number: id,
            flow: frame.flow,
            waited: frame.waited,
        };
        let begun = self.allocate((name, alone), checked, frame);
        begun.unwrap_or(Begun::NoMemory)
    }

    fn user_of(&self, checked: &Checked) -> stops::User {
        let arrivals = &self.visitor.shared.config.arrivals;
        arrivals.recipient(&checked.request)?.number()
    }

    fn partial_user(partial: &Partial) -> stops::User {
        partial.charge.user()
    }

    fn body(&mut self, partial: &mut Partial, offset: usize, bytes: &[u8]) {
        let Some(Bytes { data, compare, .. }) = &partial.bytes else {
            return;
        };
        let split = data.len().saturating_sub(offset).min(bytes.len());
        let (own, compared) = bytes.split_at_checked(split).unwrap_or((bytes, &[]));
        data.cursor(offset).write(own);
        let offset = offset.saturating_sub(data.len());
        compare.cursor(offset).write(compared);
    }

    fn arrive(&mut self, partial: Partial) -> Option<Arc<RemoteRequest>> {
        let Partial {
            name,
            request,
            remote,
            bytes,
            charge,
            entry,
        } = partial;
        let answers: Arc<dyn Answers> = self.visitor.clone();
        let request = match bytes {
            Some(Bytes {
                data,
                compare,
                results,
            }) => {
                let payload = RemotePayload {
                    source: data.into_source(),
                    compare: compare.into_source(),
                    target: results,
                };
                RemoteRequest::new(request, (remote, payload), charge, name, answers)
            }
            None => RemoteRequest::distant(request, remote, charge, name, answers),
        };
        let request = request.ok()?;
        self.arrived.push_back(entry.fill(request.clone()));
        Some(request)
    }

    fn started(&mut self) -> Option<(u64, usize, bool, Entry<Start>)> {
        loop {
            let start = self.outcomes.starts.pop_front()?;
            let name = *start.request.name();
            let whole = start.request.request();
            let ((reads, _), len) = (results(whole.kind), start.len);
            let short = reads && len < whole.len;
            if name.session != self.birth || short {
                // Of an earlier session; or it is going to fail, and there is nothing to be seen of it.
                let moved = if short { Moved::All } else { Moved::Lost };
                self.ended.push_back(Ended::new(start, moved));
                continue;
            }
            return Some((name.number, len, reads, start));
        }
    }

    fn write(&mut self, open: &Arc<RemoteRequest>, offset: usize, bytes: &[u8]) -> bool {
        let arrivals = &self.visitor.shared.config.arrivals;
        arrivals.write(open, offset, bytes).is_ok()
    }

    fn receive(
        &mut self,
        open: &Arc<RemoteRequest>,
        offset: usize,
        len: usize,
        input: &mut Connection,
    ) -> Option<usize> {
        let arrivals = &self.visitor.shared.config.arrivals;
        let receive =
            &mut |place: &mut Cursor<'_, memory::Target>, len| input.receive_to(place, len);
        arrivals.receive(open, offset, len, receive).ok()
    }

    fn read(&mut self, open: &Arc<RemoteRequest>, offset: usize, to: &mut [u8]) -> bool {
        let arrivals = &self.visitor.shared.config.arrivals;
        arrivals.read(open, offset, to).is_ok()
    }

    fn end(&mut self, start: Entry<Start>, moved: Moved) {
        self.ended.push_back(Ended::new(start, moved));
    }

    fn withdraw(&mut self, open: &Arc<RemoteRequest>) {
        open.note_withdrawn();
        self.visitor.shared.config.arrivals.withdraw(open);
    }

    fn is_withdrawn(&self, open: &Arc<RemoteRequest>) -> bool {
        open.is_withdrawn()
    }

    fn is_answered(open: &Arc<RemoteRequest>) -> bool {
        open.is_answered()
    }

    fn flow(open: &Arc<RemoteRequest>) -> u16 {
        open.name().flow
    }

    fn user(open: &Arc<RemoteRequest>) -> stops::User {
        open.user()
    }

    fn take_back(&mut self, open: &Arc<RemoteRequest>) -> Option<Awaits> {
        self.visitor.shared.config.arrivals.take_back(open)
    }

    fn is_waiting(&self, open: &Arc<RemoteRequest>) -> bool {
        open.is_waiting_in_order()
    }

    fn answered(&mut self) -> Option<(u64, Given)> {
        loop {
            let answer = self.outcomes.answered.pop_front()?;
            let Name {
                session, number, ..
            } = *answer.request.name();
            // Answers of an earlier session are not wanted any more.
            if session == self.birth {
                return Some((number, Given(answer)));
            }
        }
    }
}

/// The next thing to be done.
enum Next {
    /// The same again, when others have had their turn.
    Again,
    /// Nothing, before somebody says so.
    Wait,
    /// Nothing, before somebody says so or this time is over.
    Within(Jiffies),
    /// Requests that have come are handed on, and then it goes on.
    HandOn,
    /// The peer is forgotten.
    Forget,
}

/// The part of an association that its work item has.
struct State {
    lane: Lane<Service, Chunks, KVec<stops::Flow>>,
    /// The incarnation of the initiator; 0 if it has said nothing yet.
    incarnation: u64,
    session: u64,
    /// A number of our own for the session.
    birth: u64,
    connection: Option<Connection>,
    /// When the initiator was last heard of, if there is none.
    down: Instant,
    /// Since when all requests that were read have been over, and none has begun to come, on this connection; none
    /// if they are not.
    over: Option<Instant>,
    /// Since when they have, on whichever connections.
    idle: Idle<Instant>,
    /// When [`Lane::look`] was called last, or nothing moved.
    looked: Instant,
    /// The last value of [`Lane::progress`], and when that was new, or nothing was owed.
    progress: (u64, Instant),
    unacknowledged: Unacknowledged,
    /// The last [`Lane::untold`] while the initiator made no room for more, and since when it is that.
    untold: Option<((u64, u64), Instant)>,
    /// How many connections of the session broke the protocol.
    strikes: u32,
    /// How many connections there have been.
    connections: u64,
    /// How many bytes went over those that are over.
    moved: u64,
    /// What the initiator is yet to be told.
    outcomes: Outcomes,
    /// Requests of a session that another one has ended.
    ended: EntryQueue<Ended>,
    /// What the timer is set for.
    alarm: Alarm,
    /// The value of [`Visitor::quiet`].
    quiet: Option<Instant>,
    /// Something may still be done to memory regions for a session that is over.
    lingers: bool,
    /// It is not used any more.
    gone: bool,
}

impl State {
    /// Takes the connection that is there, which is of no use any more, as the initiator was heard of on another one.
    fn leave_connection(&mut self) -> Option<Connection> {
        let before = self.connection.take();
        let moved = before.as_ref().map_or(0, Connection::moved);
        self.moved = self.moved.saturating_add(moved);
        self.lane.disconnected();
        self.down = Instant::now();
        before
    }
}

/// How much is being done to memory regions for requests that came with their bytes.
struct Accesses {
    count: u32,
    /// The work item is to be queued when there is none any more.
    is_awaited: bool,
}

/// An answer of which the initiator does not say that it has read it.
struct Unacknowledged {
    /// The last [`Lane::unacknowledged`].
    id: Option<u64>,
    /// The last [`Lane::progress`].
    progress: u64,
    /// Since when both are the same, or nothing was told.
    since: Instant,
    /// Since when the first one is.
    told: Instant,
}

impl Unacknowledged {
    /// It is this one since now.
    fn new(id: Option<u64>, progress: u64) -> Self {
        let now = Instant::now();
        Self {
            id,
            progress,
            since: now,
            told: now,
        }
    }
}

/// The way in which an initiator has introduced itself.
pub(super) struct Greeting {
    /// Its `HELLO`.
    pub(super) hello: Hello,
    /// The `ack` of that.
    pub(super) ack: u64,
    /// It has proved itself, and was told that the session has this birth.
    pub(super) promised: Option<u64>,
}

/// The fate of a connection.
struct Attached {
    /// The one that was there before, which is not used any more.
    before: Option<Connection>,
    /// It is not used itself: the code of a `BYE`.
    refused: Option<(Connection, u32)>,
}

impl Attached {
    /// Nothing has changed.
    fn refused(connection: Connection, code: u32) -> Self {
        Self {
            before: None,
            refused: Some((connection, code)),
        }
    }
}

/// Returns what is said of this node to an initiator, whose session has this birth.
pub(super) fn welcome(shared: &Shared, hello: &Hello, birth: u64) -> Hello {
    Hello {
        major: frame::MAJOR,
        minor: frame::MINOR,
        lane: hello.lane,
        lanes: hello.lanes,
        source: hello.source,
        target: hello.target,
        incarnation: shared.incarnation,
        expected: hello.incarnation,
        session: hello.session,
        birth,
        eager: u32::try_from(EAGER).unwrap_or(u32::MAX),
        window: u32::try_from(WINDOW).unwrap_or(u32::MAX),
        flows: stops::FLOWS,
        proof: shared.config.secret.is_some(),
        nonce: nonce(),
    }
}

/// All requests of another NIC to one of this node.
#[pin_data]
pub(super) struct Visitor {
    shared: Arc<Shared>,
    pair: Pair,
    /// Bytes that have come with requests of the other NIC, to whichever of this node, or go with their
    /// answers.
    bytes: Sum,
    #[pin]
    outbox: SpinLockIrq<Outbox>,
    /// The socket has told of something to be received, or that it has changed.
    told: Atomic<bool>,
    /// There is much to be copied, as of the last run.
    bulk: Atomic<bool>,
    /// The timer has rung.
    rang: Atomic<bool>,
    /// Since when nothing of it is under way; none if something is.
    #[pin]
    quiet: SpinLockIrq<Option<Instant>>,
    /// A thread that has claimed a request can be preempted before it does anything. So a new session does not begin
    /// while there is such a thread, and an association that had a session is not forgotten.
    #[pin]
    accesses: SpinLockIrq<Accesses>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    work: Work<Visitor>,
    #[pin]
    timer: Work<Visitor, 1>,
}

impl Visitor {
    /// One of which nothing is known. Does not wait for memory.
    fn new(shared: Arc<Shared>, pair: Pair, bytes: Sum) -> Result<Arc<Self>> {
        let mut chunks = Chunks::with_capacity(WINDOW / CHUNK, GFP_NOWAIT)?;
        for _ in 0..WINDOW / CHUNK {
            chunks.push(None, GFP_NOWAIT)?;
        }
        let flows = usize::try_from(stops::FLOWS)?;
        // In one piece, as the last one that refers to this may not sleep. A peer that is refused for that
        // comes again.
        let flows = KVec::from_elem(stops::Flow::default(), flows, GFP_NOWAIT)?;
        let outbox = Outbox {
            outcomes: Outcomes::new(),
            is_looked_at: false,
        };
        let now = Instant::now();
        Arc::pin_init(
            pin_init!(Self {
                shared,
                pair,
                bytes,
                outbox <- new_spinlock_irq!(outbox, "kfi_soft::Visitor::outbox"),
                told: Atomic::new(false),
                bulk: Atomic::new(false),
                rang: Atomic::new(false),
                quiet <- new_spinlock_irq!(Some(now), "kfi_soft::Visitor::quiet"),
                accesses <- new_spinlock_irq!(
                    Accesses {
                        count: 0,
                        is_awaited: false,
                    },
                    "kfi_soft::Visitor::accesses"
                ),
                state <- new_mutex!(
                    State {
                        lane: Lane::new(chunks, flows),
                        incarnation: 0,
                        session: 0,
                        birth: 0,
                        connection: None,
                        down: now,
                        over: None,
                        idle: Idle::new(now),
                        progress: (0, now),
                        looked: now,
                        unacknowledged: Unacknowledged::new(None, 0),
                        untold: None,
                        strikes: 0,
                        connections: 0,
                        moved: 0,
                        outcomes: Outcomes::new(),
                        ended: EntryQueue::new(),
                        alarm: Alarm::NONE,
                        quiet: Some(now),
                        lingers: false,
                        gone: false,
                    },
                    "kfi_soft::Visitor::state"
                ),
                work <- new_work!("kfi_soft::Visitor::work"),
                timer <- new_work!("kfi_soft::Visitor::timer"),
            }),
            GFP_NOWAIT,
        )
    }

    /// Has the work item run soon.
    fn wake(this: &Arc<Self>) {
        this.shared.queue.queue::<Self, 0>(this.clone());
    }

    /// The socket tells of something.
    fn wake_told(this: ArcBorrow<'_, Self>) {
        // Relaxed: it is about time only.
        let is_bulk = this.bulk.load(ordering::Relaxed);
        this.shared.queue_told::<Self>(this.into(), is_bulk);
    }

    /// Takes a connection on which the initiator has said `HELLO`.
    pub(super) fn attach(this: &Arc<Self>, connection: Connection, greeting: &Greeting) {
        let (attached, is_over) = {
            let mut state = this.state.lock();
            let attached = Self::attach_to(this, &mut state, connection, greeting);
            // Nothing is known of a peer that has had no connection, and nobody else would forget it.
            let is_over = state.connections == 0;
            state.gone |= is_over;
            (attached, is_over)
        };
        // Without the lock.
        if let Some(before) = attached.before {
            // The initiator knows better, and is told again what it has not read.
            before.reset();
        }
        if let Some((connection, code)) = attached.refused {
            connection.bye(code);
        }
        if is_over {
            this.shared.visitors.forget(this);
        } else {
            Self::wake(this);
        }
    }

    /// As [`Self::attach`], with the lock.
    fn attach_to(
        this: &Arc<Self>,
        state: &mut State,
        mut connection: Connection,
        greeting: &Greeting,
    ) -> Attached {
        let &Greeting {
            ref hello,
            ack,
            promised,
        } = greeting;
        let idle_before = state.lane.idle();
        if state.gone {
            return Attached::refused(connection, bye::NONE);
        }
        let same = state.incarnation == hello.incarnation && state.session == hello.session;
        if same && state.strikes >= STRIKES {
            return Attached::refused(connection, bye::BROKEN);
        }
        if state.incarnation == hello.incarnation && hello.session < state.session {
            return Attached::refused(connection, bye::OLD);
        }
        if !same {
            // The work item tells of these before it gives anybody a request of the new session.
            let mut ended = core::mem::replace(&mut state.ended, EntryQueue::new());
            this.end_session(state, &mut ended);
            state.ended = ended;
            state.incarnation = hello.incarnation;
            state.session = hello.session;
            if let Some(promised) = promised {
                state.birth = promised;
            }
        }
        if this.lingers(state) {
            // What begins on this connection is not to be overtaken by that. The initiator comes again, and on the
            // connection that was there nothing more is read, as it is of the session that is over.
            return Attached {
                before: state.leave_connection(),
                refused: Some((connection, bye::NONE)),
            };
        }
        if promised.is_some_and(|promised| promised != state.birth) {
            // It has begun since, on another connection.
            return Attached::refused(connection, bye::NONE);
        }
        // An initiator that has known the session before we have is told that it is another one.
        let lost = hello.birth != 0 && hello.birth != state.birth;
        if same && lost {
            this.welcome(state, &mut connection, greeting);
            // It closes the connection.
            return Attached::refused(connection, bye::OLD);
        }
        if same && !state.lane.may_connect(ack) {
            // Perhaps an older `HELLO`, of a connection that was given up. It is no word of the initiator as it is
            // now, so the connection that is there, and the time, go on.
            return Attached::refused(connection, bye::OLD);
        }
        // The connection that was there is of no use to the session, or to the lane, any more.
        let before = state.leave_connection();
        let refused = if lost {
            this.welcome(state, &mut connection, greeting);
            Some(bye::OLD)
        } else if state.lane.connected(ack).is_err() {
            Some(bye::OLD)
        } else if connection.set_events(this.clone()).is_err() {
            // There is no memory, which is said before the initiator is told that it may begin: so its time
            // goes on.
            Some(bye::MANY)
        } else {
            let next = this.welcome(state, &mut connection, greeting);
            connection.put(&Frame::Ack, 0, next);
            None
        };
        let refused = match refused {
            Some(code) => Some((connection, code)),
            None => {
                state.connections = state.connections.saturating_add(1);
                state.connection = Some(connection);
                // From now on.
                (state.over, state.untold) = (None, None);
                state.idle.note(state.lane.idle(), Instant::now);
                // It does not count if requests are over by what its initiator says on it.
                if state.lane.idle() == idle_before {
                    state.idle.note_connection(Instant::now);
                }
                if state.lane.gives_time() {
                    state.unacknowledged = Unacknowledged::new(None, 0);
                }
                this.note_quiet(state);
                None
            }
        };
        Attached { before, refused }
    }

    /// Puts the answer to a `HELLO` into a connection, unless it was given already to who has proved itself;
    /// returns the first number that was not read.
    fn welcome(&self, state: &State, connection: &mut Connection, greeting: &Greeting) -> u64 {
        let next = state.lane.next();
        if greeting.promised.is_none() {
            let welcome = welcome(&self.shared, &greeting.hello, state.birth);
            connection.put(&Frame::Welcome(welcome, [0; MAC_LEN]), 0, next);
        }
        next
    }

    /// Shows how far it is, in a line. May sleep.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (phase, session, incarnation, connections, open, left, moved, next) = {
            let state = self.state.lock();
            let phase = match &state.connection {
                None => "idle",
                Some(_) => "ready",
            };
            let moved = state.connection.as_ref().map_or(0, Connection::moved);
            (
                phase,
                state.session,
                state.incarnation,
                state.connections,
                state.lane.open(),
                state.outcomes.answered.len(),
                state.moved.saturating_add(moved),
                state.lane.next(),
            )
        };
        let answered = self.outbox.lock().outcomes.answered.len();
        let (source, target) = self.pair;
        // Without the locks, which whoever carries requests out waits for.
        f.write_fmt(fmt!(
            "from {} {} {} {} 0x{:x} {} {} {} {} {} {} {}\n",
            source,
            target,
            phase,
            session,
            incarnation,
            connections,
            connections.saturating_sub(1),
            open,
            answered.saturating_add(left),
            moved,
            self.bytes.sum(),
            next,
        ))
    }

    /// Ends a session, with all that it has left here: requests that wait end without a report, those whose
    /// bytes are being moved end, and answers are dropped, as are those of what is being carried out, when
    /// they come. The next session has another birth.
    fn end_session(&self, state: &mut State, ended: &mut EntryQueue<Ended>) {
        let arrivals = &self.shared.config.arrivals;
        state.lane.end_session(|open, start| match start {
            Some(start) => ended.push_back(Ended::new(start, Moved::Lost)),
            None => arrivals.withdraw(&open),
        });
        self.clear(&mut state.outcomes, ended);
        state.birth = random();
        state.strikes = 0;
        // A thread that has claimed one of these before has noted first that it does something.
        state.lingers = true;
    }

    /// Returns whether something may still be done for a session that is over. If so, the work item is queued later.
    fn lingers(&self, state: &mut State) -> bool {
        if state.lingers {
            let mut accesses = self.accesses.lock();
            accesses.is_awaited = accesses.count != 0;
            state.lingers = accesses.is_awaited;
        }
        state.lingers
    }

    /// Ends what has started, and drops what was answered, as no session wants it: nobody else would, as
    /// what lies here refers to the association.
    fn clear(&self, outcomes: &mut Outcomes, ended: &mut EntryQueue<Ended>) {
        self.collect(outcomes);
        let Outcomes {
            answered,
            mut starts,
        } = outcomes.take();
        while let Some(start) = starts.pop_front() {
            ended.push_back(Ended::new(start, Moved::Lost));
        }
        // Without the lock.
        drop(answered);
    }

    /// Adds what has become of requests since.
    fn collect(&self, outcomes: &mut Outcomes) {
        let later = {
            let mut outbox = self.outbox.lock();
            outbox.is_looked_at = false;
            outbox.outcomes.take()
        };
        outcomes.append(later);
    }

    /// Leaves what has become of a request for the work item.
    fn leave(this: &Arc<Self>, leave: impl FnOnce(&mut Outcomes)) {
        let is_looked_at = {
            let mut outbox = this.outbox.lock();
            leave(&mut outbox.outcomes);
            outbox.is_looked_at
        };
        if !is_looked_at {
            Self::wake(this);
        }
    }

    /// Ends the session when the initiator is gone.
    fn give_up(&self, state: &mut State, service: &mut Service) {
        state.outcomes.append(service.outcomes.take());
        self.end_session(state, &mut service.ended);
        service.birth = state.birth;
    }

    /// Notes whether something of it is under way, and since when nothing is; returns since when that is so on this
    /// connection.
    ///
    /// Flows that are stopped are under way, too: the initiator may have requests that it sends again. But
    /// one that is there and has nothing else to do does that as soon as it is told that they go on, so one
    /// that does not for `peer_timeout` has none, however often it connects meanwhile.
    fn note_quiet(&self, state: &mut State) -> Option<Instant> {
        let is_over = state.lane.is_over();
        if is_over {
            state.lane.rest();
        }
        let over = state.over.take().filter(|_| is_over);
        state.over = is_over.then(|| over.unwrap_or_else(Instant::now));
        state.idle.note(state.lane.idle(), Instant::now);
        let over = state.over.filter(|_| self.may_go_on(state).is_none());
        let since = over.and(state.idle.quiet_since());
        let quiet = since.filter(|_| !self.lingers(state));
        if quiet != state.quiet {
            *self.quiet.lock() = quiet;
            state.quiet = quiet;
        }
        over
    }

    /// Returns for how long flows that are stopped, and nothing else, are under way.
    fn may_go_on(&self, state: &State) -> Option<Jiffies> {
        let since = state.idle.since().filter(|_| state.lane.has_stopped())?;
        since.left(self.shared.config.peer_timeout)
    }

    /// Tells of requests of which nothing more is moved.
    fn finish(&self, mut ended: EntryQueue<Ended>) {
        while let Some(entry) = ended.pop_front() {
            let Ended { request, moved } = entry.into_inner();
            let result = match moved {
                Moved::All => Ok(()),
                Moved::Lost => Err(EHOSTUNREACH),
                Moved::Withdrawn => Err(ECANCELED),
            };
            self.shared.config.arrivals.end(&request, result);
            cond_resched();
        }
    }

    /// Does what can be done now; returns what is next, and what is to be handed on, and was ended, without the lock.
    fn round(this: &Arc<Self>) -> (Next, EntryQueue<Arc<RemoteRequest>>, EntryQueue<Ended>) {
        // As of initiators.
        let _no_io = NoIo::new();
        let mut state = this.state.lock();
        // As initiators do.
        if this.rang.load(ordering::Relaxed) {
            this.rang.store(false, ordering::Relaxed);
            state.alarm = Alarm::NONE;
        }
        let mut service = Service {
            visitor: this.clone(),
            birth: state.birth,
            arrived: EntryQueue::new(),
            outcomes: state.outcomes.take(),
            ended: core::mem::replace(&mut state.ended, EntryQueue::new()),
            last: None,
        };
        let mut next = this.go_on(&mut state, &mut service);
        if let Next::Within(delay) = next {
            if !state.alarm.set(delay) {
                next = Next::Wait;
            }
        }
        this.note_quiet(&mut state);
        let is_bulk = state.connection.as_ref().is_some_and(Connection::is_bulk);
        // Relaxed: as in `wake_told`.
        this.bulk.store(is_bulk, ordering::Relaxed);
        let Service {
            arrived,
            outcomes,
            ended,
            ..
        } = service;
        state.outcomes = outcomes;
        (next, arrived, ended)
    }

    /// Ends everything. May sleep.
    fn close(this: &Arc<Self>) {
        let mut ended = EntryQueue::new();
        {
            let mut state = this.state.lock();
            this.close_with(&mut state, &mut ended);
        }
        this.finish(ended);
        // The run before that may have set the timer, which is not set again.
        this.work.cancel_sync();
        this.timer.cancel_sync();
        this.work.cancel_sync();
        // For requests that have started or were answered since.
        <Self as WorkItem>::run(this.clone());
    }

    /// As [`Self::close`], with the lock: the rest is for the work item.
    fn close_with(&self, state: &mut State, ended: &mut EntryQueue<Ended>) {
        state.gone = true;
        if let Some(connection) = state.connection.take() {
            if state.lane.is_between() && !connection.is_behind() {
                connection.bye(bye::NONE);
            } else {
                connection.reset();
            }
        }
        self.end_session(state, ended);
    }

    /// Ends it if nothing of it is under way, nor has been since then, if that matters; returns whether it is at its
    /// end. May sleep.
    fn retire(this: &Arc<Self>, since: Option<Instant>) -> bool {
        {
            let mut state = this.state.lock();
            if !state.gone {
                this.note_quiet(&mut state);
                // It may have been used, and be quiet again.
                if state.quiet.is_none() || since.is_some_and(|since| state.quiet != Some(since)) {
                    return false;
                }
            }
            state.gone = true;
        }
        Self::close(this);
        true
    }

    /// Does what can be done now.
    fn go_on(&self, state: &mut State, service: &mut Service) -> Next {
        // All requests that have come before were given to receivers.
        let again = state.lane.relieve(service, self.shared.now());
        for _ in 0..TURNS {
            self.collect(&mut service.outcomes);
            let now = self.shared.now();
            state.lane.let_go(now);
            if state.gone {
                self.clear(&mut service.outcomes, &mut service.ended);
                return Next::Wait;
            }
            if state.connection.is_none() {
                let timeout = self.shared.config.peer_timeout;
                self.note_quiet(state);
                return match state.down.left(timeout) {
                    // When flows that are stopped keep it no more is noted, too.
                    Some(left) => Next::Within(self.may_go_on(state).unwrap_or(left).min(left)),
                    // The session was given up before.
                    None if self.lingers(state) => Next::Wait,
                    None => {
                        self.give_up(state, service);
                        if self.lingers(state) {
                            return Next::Wait;
                        }
                        state.gone = true;
                        Next::Forget
                    }
                };
            }
            // One who comes again and again, and goes before anything was read, has no more time than others.
            let patience = if state.lane.gives_time() {
                Ok(None)
            } else {
                self.patience(state)
            };
            let result = match patience.and_then(|_| self.exchange(state, service)) {
                // Perhaps they are answered at once, and one of them may be what others have to wait for. Nobody's
                // patience is put off by that for long: an initiator that does not go on comes to the end of its
                // window.
                Ok(false) if !service.arrived.is_empty() => return Next::HandOn,
                Ok(false) => self.pause(state),
                Ok(true) => continue,
                // Each connection is looked at, however short it is: else one who comes again and again, and goes at
                // once, would keep what it does not go on with.
                Err(end) => Err(match self.patience(state) {
                    Err(End::Lost) => End::Lost,
                    _ => end,
                }),
            };
            match result {
                Ok(left) => {
                    // When they are told once more that have just been told.
                    let go = state.lane.let_go(now);
                    // Flows may have been stopped since.
                    let again = again || state.lane.is_behind();
                    let again = again.then(|| millis_to_jiffies(RETRY_MILLIS));
                    let left = [left, go.map(millis_to_jiffies), again];
                    return match left.into_iter().flatten().min() {
                        Some(left) => Next::Within(left),
                        None => Next::Wait,
                    };
                }
                Err(end) => self.end(state, service, end),
            }
        }
        // Bytes may come all the time, and not be those that others wait for.
        if let Err(end) = self.patience(state) {
            self.end(state, service, end);
        }
        Next::Again
    }

    /// Returns how long nothing is to be done on a connection, if nothing can be done now.
    fn pause(&self, state: &mut State) -> Result<Option<Jiffies>, End> {
        let left = self.patience(state)?;
        let long = self.shared.config.peer_timeout.saturating_mul(QUIET_TIMES);
        let quiet = match self.note_quiet(state) {
            Some(since) => Some(since.left(long).ok_or(End::Broke)?),
            None => None,
        };
        let may_go_on = self.may_go_on(state);
        // A flow that is stopped may go on, which is then to be said.
        let is_quiet = quiet.is_some() && !state.lane.has_stopped() && state.lane.is_between();
        let (short, rest) = match &mut state.connection {
            Some(connection) if is_quiet => (connection.shortage(), connection.rest()),
            Some(connection) => (connection.shortage(), None),
            None => (None, None),
        };
        let connection = state.connection.as_ref();
        let room = connection.and_then(|connection| connection.no_room(connection.is_blocked()));
        let all = [left, quiet, may_go_on, short, rest, room];
        Ok(all.into_iter().flatten().min())
    }

    /// A connection is over.
    fn end(&self, state: &mut State, service: &mut Service, end: End) {
        if end == End::Lost {
            // Others wait for what it was given.
            self.give_up(state, service);
        }
        Self::end_connection(state, end);
    }

    /// Returns how long the initiator may still take to go on, if it is its turn. An initiator that is there
    /// and does not go on is as good as gone.
    fn patience(&self, state: &mut State) -> Result<Option<Jiffies>, End> {
        let Some(connection) = &mut state.connection else {
            return Ok(None);
        };
        let timeout = self.shared.config.peer_timeout;
        let frame = connection.patience()?;
        let frame = match state.lane.open() {
            0 => frame,
            _ => {
                let silent = connection.silence_left(timeout).ok_or(End::Lost)?;
                Some(frame.map_or(silent, |frame| frame.min(silent)))
            }
        };
        let acknowledgement = Self::acknowledgement(state, timeout)?;
        let untold = Self::telling(state, timeout)?;
        let looked = Self::look(state, timeout)?;
        let (progress, since) = &mut state.progress;
        let now = state.lane.progress();
        let owed = if now != *progress || !state.lane.is_owed() {
            (*progress, *since) = (now, Instant::now());
            None
        } else {
            Some(left_or_lost(since, timeout)?)
        };
        let all = [frame, acknowledgement, untold, looked, owed];
        Ok(all.into_iter().flatten().min())
    }

    /// Looks whether the initiator goes on with each request that it owes something, when it is time for that;
    /// returns how long that is. It is as good as gone if it goes on with others only.
    fn look(state: &mut State, timeout: u32) -> Result<Option<Jiffies>, End> {
        if !state.lane.is_moving() {
            state.looked = Instant::now();
            return Ok(None);
        }
        let between = timeout.checked_div(incoming::LOOKS).unwrap_or(timeout);
        if let Some(left) = state.looked.left(between) {
            return Ok(Some(left));
        }
        // However long nobody has looked, that counts once: there may be more than was read since.
        state.looked = Instant::now();
        if state.lane.look() {
            Ok(Some(msecs_to_jiffies(between)))
        } else {
            Err(End::Lost)
        }
    }

    /// Returns how long the initiator may still take to say that it knows what it was told. It does so with the
    /// next frame, whatever else it waits for; but that may be behind bytes that are moved, for no longer than
    /// there is for these.
    fn acknowledgement(state: &mut State, timeout: u32) -> Result<Option<Jiffies>, End> {
        let (id, progress) = (state.lane.unacknowledged(), state.lane.progress());
        let last = &mut state.unacknowledged;
        if id.is_none() || id != last.id {
            *last = Unacknowledged::new(id, progress);
        } else if progress != last.progress {
            (last.progress, last.since) = (progress, Instant::now());
        }
        if id.is_none() {
            return Ok(None);
        }
        let most = timeout.saturating_mul(ACKNOWLEDGED_TIMES);
        let told = if state.lane.gives_time() {
            left_or_lost(&mut last.told, most)?
        } else {
            // Nobody looks while there is no connection, which is no reason to begin anew.
            last.told.left(most).ok_or(End::Lost)?
        };
        let left = left_or_lost(&mut last.since, timeout)?;
        Ok(Some(left.min(told)))
    }

    /// Returns how long the initiator may still take to let more be sent, if it makes no room for that, and is yet to be
    /// told of the oldest answer, which keeps all others: a piece in this time, however it reads.
    fn telling(state: &mut State, timeout: u32) -> Result<Option<Jiffies>, End> {
        // Where nothing is under way there is no memory, which is not the initiator's doing.
        let waits = |connection: &Connection| connection.is_blocked() && connection.is_under_way();
        let untold = match &state.connection {
            Some(connection) if waits(connection) => state.lane.untold(),
            _ => None,
        };
        let Some(untold) = untold else {
            state.untold = None;
            return Ok(None);
        };
        let same = state.untold.filter(|(last, _)| *last == untold);
        let (_, since) = state
            .untold
            .insert(same.unwrap_or_else(|| (untold, Instant::now())));
        left_or_lost(since, timeout).map(Some)
    }

    /// Receives and sends; returns whether there may be more to receive, or to send.
    fn exchange(&self, state: &mut State, service: &mut Service) -> Result<bool, End> {
        let State {
            lane,
            connection: Some(connection),
            ..
        } = state
        else {
            return Err(End::Broke);
        };
        // Full: what is told later is told again, and what was told before is received below.
        if self.told.load(ordering::Relaxed) && self.told.xchg(false, ordering::Full) {
            connection.note_told();
        }
        if connection.is_at_rest() {
            let is_wanted = connection.may_receive() || !service.outcomes.is_empty();
            if !is_wanted || !connection.rouse(|| Ok(()))? {
                return Ok(false);
            }
        }
        if connection.may_receive() {
            let came = match connection.straight() {
                0 => None,
                len => lane.receive(service, len, connection),
            };
            connection.check()?;
            if came.is_none() {
                connection.receive()?;
            }
        }
        while let Some(part) = connection.input.next().map_err(|_| End::Broken)? {
            match part {
                Part::Head(_, Frame::Bye(code)) => return Err(End::Bye(code)),
                Part::Head(common, frame) => {
                    let taken = lane.head(service, &common, &frame);
                    taken.map_err(|_| End::Broken)?;
                }
                Part::Body(bytes, last) => lane.body(service, bytes, last),
            }
        }
        // Also if nothing can be sent: from then on it is seen to that the initiator reads.
        lane.collect(service);
        if !connection.flush(false)? {
            return Ok(connection.may_receive());
        }
        let room = connection.room();
        let size = room.len();
        let count = lane.fill(service, room);
        connection.filled(count);
        // As the initiator does.
        let is_full = size.saturating_sub(count) < MAX_OTHER;
        if !connection.flush(is_full)? {
            return Ok(connection.may_receive());
        }
        if !is_full {
            connection.push();
        }
        Ok(is_full || connection.may_receive())
    }

    /// The connection is over.
    fn end_connection(state: &mut State, end: End) {
        let Some(connection) = state.connection.take() else {
            return;
        };
        state.lane.disconnected();
        state.down = connection.heard_of();
        state.moved = state.moved.saturating_add(connection.moved());
        if end == End::Broken {
            state.strikes = state.strikes.saturating_add(1);
            if state.lane.is_between() && !connection.is_behind() {
                connection.bye(bye::BROKEN);
                return;
            }
        }
        // On the next one it is told again what it has not read.
        connection.reset();
    }
}

impl Answers for Visitor {
    fn answer(self: Arc<Self>, answer: Entry<Answer>) {
        Self::leave(&self, |outcomes| outcomes.answered.push_back(answer));
    }

    fn start(self: Arc<Self>, start: Entry<Start>) {
        Self::leave(&self, |outcomes| outcomes.starts.push_back(start));
    }

    fn access_begins(&self) {
        let mut accesses = self.accesses.lock();
        accesses.count = accesses.count.wrapping_add(1);
    }

    fn access_ends(self: Arc<Self>) {
        let is_awaited = {
            let mut accesses = self.accesses.lock();
            accesses.count = accesses.count.wrapping_sub(1);
            accesses.is_awaited && accesses.count == 0
        };
        if is_awaited {
            Self::wake(&self);
        }
    }
}

impl SocketEvents for Visitor {
    fn readable(this: ArcBorrow<'_, Self>) {
        // Relaxed: the work item, which is queued after that, sees it.
        this.told.store(true, ordering::Relaxed);
        Self::wake_told(this);
    }

    fn writable(this: ArcBorrow<'_, Self>) {
        Self::wake_told(this);
    }

    fn changed(this: ArcBorrow<'_, Self>) {
        Self::readable(this);
    }
}

impl WorkItem for Visitor {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        for round in 1..=ROUNDS {
            let (next, mut arrived, ended) = Self::round(&this);
            this.finish(ended);
            let goes_on = matches!(next, Next::HandOn) && round < ROUNDS;
            if goes_on {
                // Those that are answered below are told of in the next round.
                this.outbox.lock().is_looked_at = true;
            }
            // Without the lock, in order.
            let mut pace = Pace::new();
            while let Some(entry) = arrived.pop_front() {
                let (request, memory) = entry.empty();
                let len = request.request().len.min(EAGER);
                this.shared.config.arrivals.arrive(request, memory);
                pace.step(len);
            }
            if goes_on {
                continue;
            }
            match next {
                Next::Again | Next::HandOn => Self::wake(&this),
                Next::Wait => {}
                Next::Within(delay) => {
                    let queue = &this.shared.queue;
                    queue.modify_delayed::<Self, 1>(this.clone(), delay);
                }
                Next::Forget => {
                    // It may be set for later, and the queue waits for it in the end.
                    this.timer.cancel();
                    this.shared.visitors.forget(&this);
                }
            }
            return;
        }
    }
}

impl WorkItem<1> for Visitor {
    fn work(&self) -> &Work<Self, 1> {
        &self.timer
    }

    fn run(this: Arc<Self>) {
        // Relaxed: the work item, which is queued after that, sees it.
        this.rang.store(true, ordering::Relaxed);
        Self::wake(&this);
    }
}

/// The peers that are known.
struct Known {
    visitors: RBTree<Pair, Arc<Visitor>>,
    count: usize,
    closed: bool,
}

impl Known {
    /// Returns the bytes of the requests of a NIC: there is one sum for all that it asks. Does not wait for
    /// memory.
    fn bytes_of(&self, source: u32) -> Result<Sum> {
        let first = self.visitors.cursor_lower_bound(&(source, 0));
        match first.as_ref().map(|cursor| cursor.current()) {
            Some((&(other, _), visitor)) if other == source => Ok(visitor.bytes.clone()),
            _ => Sum::new_at_once(),
        }
    }
}

/// The peers that ask this node for something.
#[pin_data]
pub(super) struct Visitors {
    #[pin]
    known: Mutex<Known>,
}

impl Visitors {
    /// None.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            known <- new_mutex!(
                Known {
                    visitors: RBTree::new(),
                    count: 0,
                    closed: false,
                },
                "kfi_soft::Visitors::known"
            ),
        })
    }

    /// Returns the one that has said `HELLO`; `EBUSY` if there are too many of which something is under
    /// way. May sleep.
    pub(super) fn find(shared: &Arc<Shared>, pair: Pair) -> Result<Arc<Visitor>> {
        let mut tries = 0;
        loop {
            if let Some(visitor) = shared.visitors.find_or_add(shared, pair)? {
                return Ok(visitor);
            }
            let Some((since, longest)) = shared.visitors.longest_quiet() else {
                // Another thread may have made the place that it had looked for.
                return shared.visitors.find_or_add(shared, pair)?.ok_or(EBUSY);
            };
            // If it has been used since, there is another one, or there is none; but nobody waits for long because
            // all are used in turn.
            let since = (tries < TRIES).then_some(since);
            if Visitor::retire(&longest, since) {
                shared.visitors.forget(&longest);
            }
            tries = tries.wrapping_add(1);
            cond_resched();
        }
    }

    /// Returns the one that has said `HELLO`; `None` if there are as many others as there may be.
    fn find_or_add(&self, shared: &Arc<Shared>, pair: Pair) -> Result<Option<Arc<Visitor>>> {
        let mut known = self.known.lock();
        if known.closed {
            return Err(ENODEV);
        }
        if let Some(visitor) = known.visitors.get(&pair) {
            return Ok(Some(visitor.clone()));
        }
        if known.count >= MAX_PEERS {
            return Ok(None);
        }
        let (source, _) = pair;
        let visitor = Visitor::new(shared.clone(), pair, known.bytes_of(source)?)?;
        let node = RBTreeNode::new(pair, visitor.clone(), GFP_NOWAIT)?;
        // There was none.
        let _ = known.visitors.insert(node);
        known.count = known.count.saturating_add(1);
        Ok(Some(visitor))
    }

    /// Returns the one of which nothing has been under way for longest, if there is one, and since when.
    fn longest_quiet(&self) -> Option<(Instant, Arc<Visitor>)> {
        let known = self.known.lock();
        let quiet = known.visitors.values().filter_map(|visitor| {
            let since = *visitor.quiet.lock();
            Some((since?, visitor))
        });
        let (since, longest) = quiet.max_by_key(|(since, _)| since.age())?;
        Some((since, longest.clone()))
    }

    /// Returns the birth of the session of a `HELLO`: that which it has, or else will have.
    pub(super) fn birth(shared: &Shared, pair: Pair, hello: &Hello) -> u64 {
        let visitor = shared.visitors.known.lock().visitors.get(&pair).cloned();
        let known = visitor.and_then(|visitor| {
            let state = visitor.state.lock();
            let same = state.incarnation == hello.incarnation && state.session == hello.session;
            (same && !state.gone).then_some(state.birth)
        });
        known.unwrap_or_else(random)
    }

    /// Shows all, in a line each. May sleep.
    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = (0, 0);
        loop {
            let visitor = {
                let known = self.known.lock();
                let Some(cursor) = known.visitors.cursor_lower_bound(&next) else {
                    return Ok(());
                };
                cursor.current().1.clone()
            };
            visitor.show(f)?;
            let (source, target) = visitor.pair;
            next = (source, target.saturating_add(1));
        }
    }

    /// Forgets one that is gone.
    fn forget(&self, visitor: &Arc<Visitor>) {
        let forgotten = {
            let mut known = self.known.lock();
            let same = known
                .visitors
                .get(&visitor.pair)
                .is_some_and(|known| Arc::ptr_eq(known, visitor));
            if !same {
                return;
            }
            known.count = known.count.saturating_sub(1);
            known.visitors.remove_node(&visitor.pair)
        };
        drop(forgotten);
    }

    /// Ends those that ask a NIC for something, where nobody listens any more. May sleep.
    pub(super) fn remove(&self, nic: u32) {
        let mut next = Some((0, 0));
        while let Some(from) = next {
            let visitors = {
                let mut known = self.known.lock();
                let (visitors, count, rest) = take_target(&mut known.visitors, nic, from);
                known.count = known.count.saturating_sub(count);
                next = rest;
                visitors
            };
            Self::close_all(&visitors);
            // Others have the lock meanwhile.
            cond_resched();
        }
    }

    /// Ends all. May sleep.
    pub(super) fn close(&self) {
        let visitors = {
            let mut known = self.known.lock();
            known.closed = true;
            core::mem::replace(&mut known.visitors, RBTree::new())
        };
        Self::close_all(&visitors);
    }

    /// Ends these, without the lock. May sleep.
    fn close_all(visitors: &RBTree<Pair, Arc<Visitor>>) {
        for visitor in visitors.values() {
            Visitor::close(visitor);
            cond_resched();
        }
    }
}

/// Looks at some associations, from one on, and takes out what is of those with a target; returns that, how much it
/// is, and from which one on others are to be looked at, if there may be some.
fn take_target<T>(
    tree: &mut RBTree<Pair, T>,
    nic: u32,
    from: Pair,
) -> (RBTree<Pair, T>, usize, Option<Pair>) {
    let (mut taken, mut count) = (RBTree::new(), 0usize);
    let mut rest = from;
    let mut next = tree.cursor_lower_bound_mut(&from);
    for _ in 0..STEP {
        let Some(cursor) = next else {
            return (taken, count, None);
        };
        let (&(source, target), _) = cursor.current();
        rest = (source, target.saturating_add(1));
        next = if target == nic {
            // Behind the last one it goes back to the one before, which is of another target.
            let (next, node) = cursor.remove_current();
            // There was none.
            let _ = taken.insert(node);
            count = count.saturating_add(1);
            next
        } else {
            cursor.move_next()
        };
    }
    (taken, count, Some(rest))
}

#[kunit_tests(kfi_soft_target)]
mod tests {
    use super::*;

    /// Checks what is taken out of associations, and what stays.
    fn check(pairs: &[Pair], nic: u32, taken: &[Pair], rest: &[Pair]) -> Result {
        let mut tree = RBTree::new();
        for &pair in pairs {
            tree.try_create_and_insert(pair, (), GFP_KERNEL)?;
        }
        let (found, count, next) = take_target(&mut tree, nic, (0, 0));
        assert!(found.keys().eq(taken));
        assert_eq!(count, taken.len());
        assert!(tree.keys().eq(rest));
        assert_eq!(next, None);
        Ok(())
    }

    #[test]
    fn all_of_a_target_are_taken() -> Result {
        check(&[], 2, &[], &[])?;
        check(&[(1, 2)], 2, &[(1, 2)], &[])?;
        check(&[(1, 3), (2, 1)], 2, &[], &[(1, 3), (2, 1)])?;
        // At both ends, and several in a row.
        let pairs = [(1, 2), (1, 3), (2, 1), (2, 2), (3, 2), (4, 1), (5, 2)];
        let taken = [(1, 2), (2, 2), (3, 2), (5, 2)];
        check(&pairs, 2, &taken, &[(1, 3), (2, 1), (4, 1)])?;
        check(&pairs[..2], 2, &taken[..1], &pairs[1..2])?;
        check(&taken, 2, &taken, &[])
    }

    #[test]
    fn those_of_a_target_are_taken_in_turns() -> Result {
        const COUNT: usize = 3 * STEP + 1;
        let mut tree = RBTree::new();
        for (source, target) in (0..).zip([2, 3].into_iter().cycle()).take(COUNT) {
            tree.try_create_and_insert((source, target), (), GFP_KERNEL)?;
        }
        let (mut next, mut turns, mut taken) = (Some((0, 0)), 0, 0);
        while let Some(from) = next {
            let (found, count, rest) = take_target(&mut tree, 2, from);
            assert!(count <= STEP && found.keys().all(|&(_, target)| target == 2));
            taken += count;
            turns += 1;
            next = rest;
        }
        assert_eq!((turns, taken), (4, COUNT / 2 + 1));
        assert!(tree.keys().all(|&(_, target)| target == 3));
        Ok(())
    }

    /// Returns whether there is room where requests of a NIC have so many bytes, those to a user, and all.
    fn has_room(nic: usize, user: usize, all: usize, times: usize) -> bool {
        Held { nic, user, all }.has_room(times)
    }

    #[test]
    fn room_is_for_each_nic() {
        let many = LEAST_BYTES + 1;
        for times in 1..=REQUESTS_FACTOR {
            let most = PEER_BYTES * times;
            assert!(has_room(most, many, most, times));
            assert!(!has_room(most + 1, many, most + 1, times));
            // However much others have, or other users of the NIC.
            assert!(has_room(LEAST_BYTES, usize::MAX, usize::MAX, times));
            assert!(has_room(usize::MAX, LEAST_BYTES, usize::MAX, times));
        }
    }

    /// Returns how many bytes requests to a user may have, besides so many to others.
    fn most(others: usize, times: usize) -> usize {
        let is_full = |user: &usize| {
            let all = others.saturating_add(*user);
            !has_room(LEAST_BYTES + 1, *user, all, times)
        };
        (0..=ALL_BYTES * times)
            .step_by(1 << 20)
            .find(is_full)
            .unwrap_or(usize::MAX)
    }

    #[test]
    fn users_share_the_room() {
        for times in 1..=REQUESTS_FACTOR {
            let half = ALL_BYTES * times / 2;
            assert_eq!(most(0, times), half);
            assert_eq!(most(half, times), half / 2);
            assert_eq!(most(half + half / 2, times), half / 4);
        }
    }

    #[test]
    fn a_user_has_a_few_bytes_whatever_others_have() {
        const LIMIT: usize = ALL_BYTES * REQUESTS_FACTOR;
        for times in 1..=REQUESTS_FACTOR {
            let few = FEW_BYTES * times;
            for others in [ALL_BYTES * times, LIMIT] {
                assert_eq!(most(others - few, times), few);
            }
            assert!(!has_room(LEAST_BYTES + 1, few, LIMIT - 1, times));
            assert!(has_room(LEAST_BYTES + 1, few - 1, LIMIT - 1, times));
            // More than that there never is.
            assert!(!has_room(LEAST_BYTES + 1, few - 1, LIMIT, times));
        }
    }

    #[test]
    fn a_request_takes_some_for_itself() {
        let here = RemoteRequest::memory(false);
        assert!(here > 2 * Vacant::SIZE);
        assert!(RemoteRequest::memory(true) > here);
    }
}
