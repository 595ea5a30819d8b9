// SPDX-License-Identifier: GPL-2.0

//! The initiator's side of an association: it connects when there is something to be sent, and again
//! when the connection breaks, and tells initiators what became of their operations.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
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
    time::Jiffies, //
};

use super::{
    alarm::Alarm,
    bye,
    connection::{
        Connection,
        End,
        Instant,
        STRAIGHT, //
    },
    frame::{
        self,
        Common,
        Frame,
        Hello,
        Kind,
        MAX_REQUEST, //
    },
    nonce,
    outgoing::{
        self,
        Flow,
        Lane,
        Outgoing,
        Sent,
        Terms,
        Window, //
    },
    pace::Pace,
    random,
    retry::{
        Retry,
        LAST_RETRY, //
    },
    secret::{
        self,
        Complaint,
        HelloBytes, //
    },
    stream::Part,
    waiting::Line,
    FreshEntry,
    Pair,
    Shared,
    User, //
};
use crate::{
    budget::Budget,
    kfi::{
        linux::{
            hmac::Mac,
            interrupts::IrqGuard,
            no_io::NoIo,
            queue::{
                Entry,
                EntryQueue,
                Named, //
            },
            socket::{
                SocketEvents,
                TcpSocket, //
            },
            task::cond_resched,
            work_queue::{
                new_work,
                Work,
                WorkItem, //
            }, //
        },
        provider::AtomicCall, //
    },
    owner::Unreached,
    wire::{
        ContextIndex,
        Initiator,
        LentMemory,
        Packet,
        RequestKind,
        Response, //
    }, //
};

/// So often a connection is looked at before others have the work queue.
const TURNS: usize = 64;

/// So many requests are over before the target is told in a frame of its own.
const MANY_UNTOLD: u64 = 16;
/// After so many milliseconds it is told of any.
const ACK_MILLIS: u32 = 10;

/// Connections to peers that were never reached are tried so many milliseconds apart for each user: there may
/// be thousands of them, and each try takes some of the CPUs' time.
const UNREACHED_RETRY: u32 = 10;
/// And so many times as far apart as a try takes, where that is more: all of them together leave most of a CPU
/// to others, however slow it is.
const UNREACHED_REST: u32 = 10;

/// For so many milliseconds a connection may be without a `WELCOME`.
const CONNECT_MILLIS: u32 = 5000;

/// So many connections of a session may break the protocol.
const STRIKES: u32 = 3;

/// Each target takes as many bytes of data with a request.
const LEAST_EAGER: u32 = 8 << 10;

/// The flows of a lane, if the target has as many.
const FLOWS: usize = 4096;

/// So many requests are taken at once to be sent.
const TAKEN: usize = 8;

/// So many are ended at once.
const ENDED: usize = 4;

/// Requests that are not wanted any more may take so many times `peer_timeout`, if something comes of them
/// all the time.
const LONGEST_PARTING: u32 = 16;

/// A request that was not sent yet.
pub(super) struct Fresh<O> {
    /// Its initiator.
    pub(super) origin: O,
}

impl<O: Initiator> Fresh<O> {
    /// A request, in its memory.
    pub(super) fn new(packet: Packet<O>) -> Entry<Self> {
        let Packet { origin, memory } = packet;
        memory.fill(Self { origin })
    }
}

impl<O: Initiator> Named for Fresh<O> {
    type Name = usize;

    fn name(&self) -> usize {
        self.origin.number()
    }
}

/// A request that is being sent, or was.
struct Outbound<O: Initiator> {
    origin: O,
    /// Its memory, from when it is first sent.
    lent: Option<O::Lent>,
}

impl<O: Initiator> Outbound<O> {
    /// A request that is about to be sent, in its memory, unless it has ended.
    fn new(fresh: FreshEntry<O>) -> Entry<Sent<Self>> {
        let (Fresh { origin }, memory) = fresh.empty();
        let lent = origin.send_out();
        memory.fill(Sent::new(Self { origin, lent }))
    }

    /// A request that is not sent, in its memory.
    fn unsent(fresh: FreshEntry<O>) -> Entry<Sent<Self>> {
        let (Fresh { origin }, memory) = fresh.empty();
        memory.fill(Sent::new(Self { origin, lent: None }))
    }

    /// Returns what the frame says of the operation.
    fn kind(&self) -> Option<(Kind, u64, u64)> {
        Some(match self.origin.request().kind {
            RequestKind::Message => (Kind::Message, 0, 0),
            RequestKind::Tagged { tag } => (Kind::Tagged, tag, 0),
            RequestKind::Write => (Kind::Write, 0, 0),
            RequestKind::Read => (Kind::Read, 0, 0),
            RequestKind::TaggedWrite { tag, offset } => (Kind::TaggedWrite, tag, offset),
            RequestKind::TaggedRead { tag, offset } => (Kind::TaggedRead, tag, offset),
            RequestKind::Atomic(atomics) => {
                let kind = Kind::Atomic {
                    form: match atomics.call() {
                        AtomicCall::Plain => 0,
                        AtomicCall::Fetch => 1,
                        AtomicCall::Compare => 2,
                    },
                    op: u8::try_from(atomics.op()).ok()?,
                    datatype: u8::try_from(atomics.datatype()).ok()?,
                };
                (kind, 0, 0)
            }
        })
    }

    /// Returns whether data go with the request, which may bring so many, or need not.
    fn is_eager(&self, most: u64) -> bool {
        self.len() <= most || matches!(self.origin.request().kind, RequestKind::Atomic(_))
    }

    /// Returns how many bytes of data there are, and of values to compare with.
    fn sources(&self) -> (usize, usize) {
        let request = self.origin.request();
        match request.kind {
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
            _ => (request.len, 0),
        }
    }

    /// Ends the operation: in a section with interrupts disabled, which others may share, if that takes no longer
    /// than what is done under a lock. Returns what is to be dropped when that has ended.
    fn end(self, response: Response, section: &mut Option<Budget>) -> O {
        let Self { origin, lent } = self;
        match lent {
            Some(lent) if lent.responds_shortly() => {
                lent.respond(response, section.get_or_insert_with(Budget::section));
            }
            Some(lent) => {
                *section = None;
                lent.respond(response, &mut Budget::thread());
            }
            None => {
                // It was never sent.
                *section = None;
                origin.refuse(EHOSTUNREACH, &mut Budget::thread());
            }
        }
        origin
    }
}

impl<O: Initiator> Outgoing for Outbound<O> {
    type Output = Connection;

    fn begin(&mut self) -> bool {
        self.lent.is_some()
    }

    fn is_withdrawn(&self) -> bool {
        self.origin.is_withdrawn()
    }

    fn flow(&self, flows: u16, key: u64) -> u16 {
        let request = self.origin.request();
        let (ContextIndex::Named(context) | ContextIndex::Beside(context)) = request.context;
        let to = u64::from(request.destination.port());
        let context = u64::try_from(context).unwrap_or(u64::MAX);
        // Of numbers that mean nothing to others. Users choose the last two, and may guess the first: without the
        // key they would know whose requests have the same flow, which they can have stopped.
        outgoing::spread([self.origin.lane(), to, context], flows, key)
    }

    fn header(&self, id: u64, ack: u64, terms: Terms, bytes: &mut [u8]) -> Option<(usize, usize)> {
        let request = self.origin.request();
        let (kind, tag, offset) = self.kind()?;
        let (named, context) = match request.context {
            ContextIndex::Named(index) => (true, index),
            ContextIndex::Beside(index) => (false, index),
        };
        let has_ranges = matches!(
            request.kind,
            RequestKind::Write | RequestKind::Read | RequestKind::Atomic(_)
        );
        let (data, compare) = self.sources();
        let eager = self.is_eager(terms.eager);
        let body = if eager { data.checked_add(compare)? } else { 0 };
        let reads = matches!(
            request.kind,
            RequestKind::Read | RequestKind::TaggedRead { .. }
        );
        let remote = self.origin.remote();
        let count = if has_ranges { remote.count() } else { 0 };
        let ranges = (0..count)
            .filter_map(|at| remote.get(at))
            .map(|range| frame::Range {
                addr: range.addr,
                len: u64::try_from(range.len).unwrap_or(u64::MAX),
                key: range.key,
            });
        let described = frame::Request {
            kind,
            from: request.source.port(),
            to: request.destination.port(),
            context: u16::try_from(context).ok()?,
            named,
            flow: terms.flow,
            key: self.origin.auth_key(),
            tag,
            data: request.data,
            len: u64::try_from(request.len).ok()?,
            offset,
            ranges: frame::Ranges::NONE,
            eager: eager && !reads,
            restarts: terms.restarts,
            waited: terms.waited,
        };
        let head = described.write(id, ack, body, ranges, bytes)?;
        Some((head, body))
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        let Some(lent) = &self.lent else {
            to.fill(0);
            return;
        };
        let payload = lent.payload();
        let (data, _) = self.sources();
        let split = data.saturating_sub(offset).min(to.len());
        let (own, compared) = to.split_at_mut(split);
        let read = payload.source.cursor(offset).read(own);
        // The memory has as much as the operation; if not, the target gets no more than there is.
        own.get_mut(read..).unwrap_or(&mut []).fill(0);
        let offset = offset.saturating_sub(data);
        let read = payload.compare.cursor(offset).read(compared);
        compared.get_mut(read..).unwrap_or(&mut []).fill(0);
    }

    fn goes_straight(&self) -> bool {
        let (data, compare) = self.sources();
        // What follows is all of one memory, which has as much as the operation.
        let lent = self.lent.as_ref();
        compare == 0 && lent.is_some_and(|lent| lent.payload().source.len() >= data)
    }

    fn send(&self, offset: usize, len: usize, connection: &mut Connection) -> usize {
        let Some(lent) = &self.lent else {
            return 0;
        };
        connection.send_from(&mut lent.payload().source.cursor(offset), len)
    }

    fn data(&self) -> u64 {
        match self.origin.request().kind {
            RequestKind::Atomic(_) => 0,
            _ => {
                // Bytes that go with the request count, too: the target may not keep them.
                let (data, _) = self.sources();
                u64::try_from(data).unwrap_or(u64::MAX)
            }
        }
    }

    fn results(&self) -> (u64, bool) {
        let request = self.origin.request();
        let len = u64::try_from(request.len).unwrap_or(u64::MAX);
        match request.kind {
            RequestKind::Read | RequestKind::TaggedRead { .. } => (len, true),
            RequestKind::Atomic(atomics) if atomics.call() != AtomicCall::Plain => (len, false),
            _ => (0, false),
        }
    }

    fn len(&self) -> u64 {
        u64::try_from(self.origin.request().len).unwrap_or(u64::MAX)
    }

    fn write(&self, offset: usize, from: &[u8]) {
        if let Some(lent) = &self.lent {
            // Bytes that do not fit are dropped.
            lent.payload().target.cursor(offset).write(from);
        }
    }
}

/// Requests that were taken to be sent, and are not of a lane yet.
type Taken<O> = EntryQueue<Sent<Outbound<O>>>;

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// TCP is on its way.
    Connecting,
    /// `HELLO` was sent.
    Hello,
    /// `WELCOME` was read.
    Welcome,
    /// Requests may be sent.
    Ready,
}

impl Phase {
    /// Returns its name.
    fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Hello | Self::Welcome => "hello",
            Self::Ready => "ready",
        }
    }
}

/// A connection of an association.
struct Link {
    connection: Connection,
    phase: Phase,
    since: Instant,
    window: Window,
    /// The frame that was said, once it was.
    hello: HelloBytes,
}

impl Link {
    /// Closes the connection, and says why, if that is told.
    ///
    /// What the target does not read takes no memory any more, and no `HELLO` comes to it that was said before others.
    fn close(self, code: Option<u32>) {
        let resets = if self.phase == Phase::Ready {
            self.connection.is_behind()
        } else {
            self.connection.is_under_way()
        };
        match code {
            _ if resets => self.connection.reset(),
            Some(code) => self.connection.bye(code),
            None => self.connection.close(),
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
}

/// The part of an association that its work item has.
struct State<O: Initiator> {
    lane: Lane<Outbound<O>, KVVec<Flow>>,
    session: u64,
    /// Incarnation of the target; 0 if it is not known.
    expected: u64,
    /// The number that the target has given to the session; 0 if it is not known.
    birth: u64,
    link: Option<Link>,
    /// If there is no connection that works, though there should be: since when the target has not been heard
    /// of, or something is to be said to it.
    down: Option<Instant>,
    /// Since when something is to be said, and there is no memory for that.
    starved: Option<Instant>,
    /// Since when there is something under way.
    busy: Option<Instant>,
    /// When the last one was tried, and when the next is.
    tried: Instant,
    retry: Retry,
    /// How many milliseconds it took to begin to connect.
    cost: u32,
    /// The association has been without any use for a time since then.
    rested: bool,
    /// How many connections of the session broke the protocol.
    strikes: u32,
    /// How many connections there have been.
    connections: u64,
    /// How many times it was tried to make one.
    tries: u64,
    /// How many bytes went over those that are over.
    moved: u64,
    /// Since when requests are over of which the target was not told.
    ack_since: Option<Instant>,
    /// Requests that are not wanted any more.
    parting: Option<Parting>,
    /// Operations that ended.
    ended: EntryQueue<Sent<Outbound<O>>>,
    /// What the timer is set for.
    alarm: Alarm,
    closed: bool,
}

/// The progress of requests that are not wanted any more.
#[derive(Clone, Copy)]
struct Parting {
    /// The last [`Lane::unwanted`] that was seen, and when that was new.
    round: (u64, Instant),
    /// The last [`Lane::parting`] that was seen, and when that was new.
    progress: (u64, Instant),
}

impl Parting {
    /// Returns how long they may still take, in jiffies; none if that is over.
    fn left(self, timeout: u32) -> Option<Jiffies> {
        let ((_, begun), (_, moved)) = (self.round, self.progress);
        let left = moved.left(timeout)?;
        let whole = begun.left(timeout.saturating_mul(LONGEST_PARTING))?;
        Some(left.min(whole))
    }
}

/// The state of an association that is not used.
#[derive(Clone, Copy)]
pub(super) struct Quiet {
    /// Since when.
    pub(super) since: Instant,
    /// It still has a connection.
    pub(super) connected: bool,
    /// It has had one that was of use.
    pub(super) reached: bool,
}

/// The part of an association in which others leave something for its work item.
struct Inbox<O: Initiator> {
    /// Requests that were not sent yet, in order.
    fresh: Line<Fresh<O>>,
    /// If it is not used: since when, and how it is.
    quiet: Option<Quiet>,
    /// It has had a connection that was of use.
    reached: bool,
    /// Before that: counts it among those of the user for whom it was made.
    unreached: Option<Unreached>,
}

impl<O: Initiator> Inbox<O> {
    /// Returns whether a user may begin to use it. If nobody does, and it was made for another one, and never had
    /// a connection, that is as if there were none: it has to be made anew, if there is room for this user.
    fn is_open_to(&self, user: User) -> bool {
        let is_theirs = || user == self.unreached.as_ref().map(Unreached::user);
        self.quiet.is_none() || self.reached || is_theirs()
    }
}

/// All requests of a NIC to another.
#[pin_data]
pub(super) struct Association<O: Initiator + Send + Sync + 'static> {
    shared: Arc<Shared>,
    pair: Pair,
    #[pin]
    inbox: SpinLockIrq<Inbox<O>>,
    /// There are requests in `inbox`. Set and cleared with its lock, which is not taken to find that there are none.
    /// While it is set the work item is queued, or runs, or waits for what has it run: see [`Self::note_posted`].
    posted: Atomic<bool>,
    /// The socket has told of something to be received, or that it has changed.
    told: Atomic<bool>,
    /// There is much to be copied, as of the last run.
    bulk: Atomic<bool>,
    /// The timer has rung.
    rang: Atomic<bool>,
    /// Some initiators do not want what was sent.
    withdrawals: Atomic<bool>,
    #[pin]
    state: Mutex<State<O>>,
    #[pin]
    work: Work<Association<O>>,
    #[pin]
    timer: Work<Association<O>, 1>,
}

impl<O: Initiator + Send + Sync + 'static> Association<O> {
    /// An association without connection, which nobody uses. `unreached` counts it until it has one. Does not
    /// wait for memory.
    pub(super) fn new(
        shared: Arc<Shared>,
        pair: Pair,
        unreached: Option<Unreached>,
    ) -> Result<Arc<Self>> {
        let session = shared.next_session();
        let inbox = Inbox {
            fresh: Line::new(),
            quiet: Some(Quiet {
                since: Instant::now(),
                connected: false,
                reached: false,
            }),
            reached: false,
            unreached,
        };
        Arc::pin_init(
            pin_init!(Self {
                shared,
                pair,
                inbox <- new_spinlock_irq!(inbox, "kfi_soft::Association::inbox"),
                posted: Atomic::new(false),
                told: Atomic::new(false),
                bulk: Atomic::new(false),
                rang: Atomic::new(false),
                withdrawals: Atomic::new(false),
                state <- new_mutex!(
                    State {
                        // Memory for flows comes with the first answer of the target, if there ever is one, and
                        // goes when the connection rests.
                        lane: Lane::new(KVVec::new(), random()),
                        session,
                        expected: 0,
                        birth: 0,
                        link: None,
                        down: None,
                        starved: None,
                        busy: None,
                        tried: Instant::now(),
                        retry: Retry::new(),
                        cost: 0,
                        rested: false,
                        strikes: 0,
                        connections: 0,
                        tries: 0,
                        moved: 0,
                        ack_since: None,
                        parting: None,
                        ended: EntryQueue::new(),
                        alarm: Alarm::NONE,
                        closed: false,
                    },
                    "kfi_soft::Association::state"
                ),
                work <- new_work!("kfi_soft::Association::work"),
                timer <- new_work!("kfi_soft::Association::timer"),
            }),
            GFP_NOWAIT,
        )
    }

    /// Adds the next requests of a user, with the lock of all associations; none, and returns `false`, if it has
    /// to be made anew for that. Any context; does not sleep.
    pub(super) fn add(
        this: &Arc<Self>,
        user: User,
        mut next: impl FnMut() -> Option<FreshEntry<O>>,
    ) -> bool {
        {
            let mut inbox = this.inbox.lock();
            if !inbox.is_open_to(user) {
                return false;
            }
            inbox.quiet = None;
            while let Some(entry) = next() {
                inbox.fresh.push(entry);
            }
            Self::note_posted(this, &inbox);
        }
        true
    }

    /// Adds the requests that have waited for it, which are the first ones, with the lock of all associations.
    /// Any context; does not sleep.
    pub(super) fn take_on(this: &Arc<Self>, line: Line<Fresh<O>>) {
        let mut inbox = this.inbox.lock();
        // It is counted already.
        inbox.quiet = None;
        inbox.fresh = line;
        Self::note_posted(this, &inbox);
    }

    /// Returns since when nobody uses it, if that is so. With the lock of all associations nobody begins to.
    pub(super) fn quiet(&self) -> Option<Quiet> {
        self.inbox.lock().quiet
    }

    /// There may be requests that were not sent yet; with the lock of `inbox`. Has the work item run if it knows of
    /// none.
    ///
    /// One that knows of some takes these as well when it comes to the others: it does not end before the inbox is
    /// empty, unless it has a timer set, or waits for the target or for room in the socket, which have it run. So
    /// most of those who post many requests in a row need not queue it.
    fn note_posted(this: &Arc<Self>, inbox: &Inbox<O>) {
        // Relaxed: written with the lock.
        if inbox.fresh.is_empty() || this.posted.load(ordering::Relaxed) {
            return;
        }
        // Relaxed: the work item, which is queued after that, sees it, also if it was queued before and has yet to
        // begin to run.
        this.posted.store(true, ordering::Relaxed);
        // With the lock: others rely on it, and are not to wait for a thread that is preempted in between.
        Self::wake(this);
    }

    /// Takes out the next request that was not sent yet.
    fn next_posted(&self) -> Option<FreshEntry<O>> {
        // Relaxed: see above. All others are written with the lock.
        if !self.posted.load(ordering::Relaxed) {
            return None;
        }
        let mut inbox = self.inbox.lock();
        let next = inbox.fresh.pop();
        if inbox.fresh.is_empty() {
            self.posted.store(false, ordering::Relaxed);
        }
        next
    }

    /// Takes out the next request that was not sent yet, to send it, and some more of them into `taken`, from
    /// which it takes the next ones; no more than `most`.
    fn next_to_send(&self, taken: &mut Taken<O>, most: u64) -> Option<Entry<Sent<Outbound<O>>>> {
        if let Some(next) = taken.pop_front() {
            return Some(next);
        }
        // Relaxed: as above.
        if !self.posted.load(ordering::Relaxed) {
            return None;
        }
        let most = usize::try_from(most).unwrap_or(TAKEN).clamp(1, TAKEN);
        let mut fresh = EntryQueue::new();
        // Once for all locks.
        let _irqs = IrqGuard::begin();
        {
            let mut inbox = self.inbox.lock();
            while fresh.len() < most {
                match inbox.fresh.pop() {
                    Some(entry) => fresh.push_back(entry),
                    None => break,
                }
            }
            if inbox.fresh.is_empty() {
                self.posted.store(false, ordering::Relaxed);
            }
        }
        while let Some(entry) = fresh.pop_front() {
            taken.push_back(Outbound::new(entry));
        }
        taken.pop_front()
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

    /// An initiator has ended its operation, or asked for the end of one that was sent out. Returns what is to
    /// be dropped of it. With the lock of all associations; any context; does not sleep.
    pub(super) fn withdraw(this: &Arc<Self>, origin: &O) -> Option<FreshEntry<O>> {
        let number = origin.number();
        let same = |fresh: &Fresh<O>| fresh.origin.number() == number;
        let (fresh, is_empty) = {
            let mut inbox = this.inbox.lock();
            let fresh = inbox.fresh.take(&number, same);
            let is_empty = inbox.fresh.is_empty();
            if is_empty {
                // Else memory would be looked for, for nobody. Relaxed: see `next_posted`.
                this.posted.store(false, ordering::Relaxed);
            }
            (fresh, is_empty)
        };
        if fresh.is_none() {
            // Full: the note of the initiator comes before.
            // See `qemu-test/litmus/KFI-recall.litmus`.
            this.withdrawals.xchg(true, ordering::Full);
        }
        if fresh.is_none() || is_empty {
            // Perhaps nobody uses it any more.
            Self::wake(this);
        }
        fresh
    }

    /// Returns the numbers of the NICs: the source, and the target.
    pub(super) fn pair(&self) -> Pair {
        self.pair
    }

    /// Shows how far it is, in a line. May sleep.
    pub(super) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fresh = self.inbox.lock().fresh.len();
        let (phase, session, expected, connections, tries, len, held, moved, ack) = {
            let state = self.state.lock();
            let phase = match &state.link {
                None => "idle",
                Some(link) => link.phase.name(),
            };
            let moved = state
                .link
                .as_ref()
                .map_or(0, |link| link.connection.moved());
            (
                phase,
                state.session,
                state.expected,
                state.connections,
                state.tries,
                state.lane.len(),
                state.lane.held(),
                state.moved.saturating_add(moved),
                state.lane.ack(),
            )
        };
        let (source, target) = self.pair;
        // Without the lock, which whoever sends and receives waits for.
        f.write_fmt(fmt!(
            "to {} {} {} {} 0x{:x} {} {} {} {} {} 0 {}\n",
            source,
            target,
            phase,
            session,
            expected,
            connections,
            tries.saturating_sub(1),
            len.saturating_add(fresh),
            held.saturating_add(fresh),
            moved,
            ack,
        ))
    }

    /// Ends everything. May sleep.
    pub(super) fn close(this: &Arc<Self>) {
        {
            let mut state = this.state.lock();
            state.closed = true;
            if let Some(link) = state.link.take() {
                link.close(None);
            }
        }
        // The run before that may have set the timer, which is not set again.
        this.work.cancel_sync();
        this.timer.cancel_sync();
        this.work.cancel_sync();
        // It may have been added since.
        <Self as WorkItem>::run(this.clone());
    }

    /// Does what can be done now.
    fn go_on(this: &Arc<Self>, state: &mut State<O>) -> Next {
        let timeout = this.shared.config.peer_timeout;
        for _ in 0..TURNS {
            if state.closed {
                this.end_session(state, true);
                return Next::Wait;
            }
            // Some of them in each turn, so that others do not wait for all that is queued.
            // Full: see `withdraw`.
            let searches = if this.withdrawals.xchg(false, ordering::Full) {
                state.lane.recall()
            } else {
                state.lane.search()
            };
            if state.is_overdue(timeout) {
                // The target may be alive, but initiators wait for their memory.
                match state.link {
                    Some(_) => this.end_connection(state, End::Lost),
                    None => this.end_session(state, false),
                }
                continue;
            }
            let result = match &state.link {
                None => match this.before_connection(state) {
                    Some(_) if searches => continue,
                    Some(next) => return next,
                    None => {
                        // If that fails, it is tried again in a while.
                        state.link = Self::connect(this).ok();
                        state.cost = state.tried.millis();
                        continue;
                    }
                },
                Some(link) if link.phase != Phase::Ready && state.is_given_up(timeout) => {
                    Err(End::Broke)
                }
                Some(link) if link.phase == Phase::Connecting => this.connecting(state),
                Some(_) => this.exchange(state),
            };
            match result {
                Ok(true) => {}
                Ok(false) if this.is_over(state) => this.end_connection(state, End::Broke),
                Ok(false) => match state.pause(timeout) {
                    Ok(_) if searches => {}
                    Ok(next) => return next,
                    Err(end) => this.end_connection(state, end),
                },
                Err(end) => this.end_connection(state, end),
            }
        }
        Next::Again
    }

    /// Returns what is to be done while there is no connection; nothing if one is to be made.
    fn before_connection(&self, state: &mut State<O>) -> Option<Next> {
        if state.lane.len() == 0 && self.note_quiet(false) {
            state.note_over();
            state.rested = true;
            return Some(Next::Wait);
        }
        let down = *state.down.get_or_insert_with(Instant::now);
        let Some(left) = down.left(self.shared.config.peer_timeout) else {
            self.end_session(state, true);
            state.note_over();
            return Some(Next::Again);
        };
        if let Some(pause) = state.tried.left(state.retry.pause()) {
            return Some(Next::Within(pause.min(left)));
        }
        if core::mem::take(&mut state.rested) {
            // After a rest the pauses begin anew, but only when the last one is over: else whoever cancels and
            // posts again would have a connection tried each time.
            state.retry.begin_anew();
        }
        state.tried = Instant::now();
        state.tries = state.tries.saturating_add(1);
        state.retry.note_try(self.unreached_pause(state.cost));
        None
    }

    /// Returns for how many milliseconds it leaves tries to others of its user that never had a connection
    /// either, if one takes `cost` milliseconds; none if it had one.
    fn unreached_pause(&self, cost: u32) -> u32 {
        let inbox = self.inbox.lock();
        let others = inbox.unreached.as_ref().map_or(0, Unreached::sum);
        drop(inbox);
        // It has some tries in any case.
        u32::try_from(others)
            .unwrap_or(u32::MAX)
            .saturating_mul(UNREACHED_RETRY.max(cost.saturating_mul(UNREACHED_REST)))
            .min(self.shared.config.peer_timeout / 4)
    }

    /// Notes that nobody uses it, unless something has come; returns whether that is so.
    fn note_quiet(&self, connected: bool) -> bool {
        let mut inbox = self.inbox.lock();
        if !inbox.fresh.is_empty() {
            return false;
        }
        let since = match inbox.quiet {
            Some(quiet) => quiet.since,
            None => Instant::now(),
        };
        let reached = inbox.reached;
        inbox.quiet = Some(Quiet {
            since,
            connected,
            reached,
        });
        true
    }

    /// Notes that there is a connection that is of use.
    fn note_reached(&self) {
        let count = {
            let mut inbox = self.inbox.lock();
            inbox.reached = true;
            inbox.unreached.take()
        };
        // Without the lock.
        drop(count);
    }

    /// Returns whether nobody waits any more for the connection that is being made; notes when nobody uses
    /// one that is there.
    fn is_over(&self, state: &State<O>) -> bool {
        let ready = matches!(&state.link, Some(link) if link.phase == Phase::Ready);
        state.lane.len() == 0 && self.note_quiet(ready) && !ready
    }

    /// Returns whether there is nothing to be sent or received on a connection that rests.
    fn may_rest_on(
        &self,
        lane: &Lane<Outbound<O>, KVVec<Flow>>,
        connection: &Connection,
        phase: Phase,
    ) -> bool {
        // Or is about to, as it has got some of its memory, and not all.
        lacks_memory(lane, connection, phase)
            && !connection.may_receive()
            && lane.len() == 0
            // Relaxed: see `note_posted`.
            && !self.posted.load(ordering::Relaxed)
    }

    /// Begins to connect.
    fn connect(this: &Arc<Self>) -> Result<Link> {
        let config = &this.shared.config;
        let (source, target) = this.pair;
        let socket = TcpSocket::new()?;
        socket.bind(this.shared.address(source, 0))?;
        let mut connection = Connection::unconnected(socket, config.peer_timeout)?;
        connection.set_events(this.clone())?;
        let to = this.shared.address(target, config.fabric.port);
        if let Err(error) = connection.socket().connect(to) {
            connection.close();
            return Err(error);
        }
        Ok(Link {
            connection,
            phase: Phase::Connecting,
            since: Instant::now(),
            window: Window::NONE,
            hello: [0; frame::HELLO],
        })
    }

    /// Says `HELLO` as soon as TCP is there; returns whether it is.
    fn connecting(&self, state: &mut State<O>) -> Result<bool, End> {
        let Some(link) = &mut state.link else {
            return Err(End::Broke);
        };
        if link.since.left(CONNECT_MILLIS).is_none() {
            return Err(End::Broke);
        }
        match link.connection.socket().is_connected() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(_) => return Err(End::Broke),
        }
        if !link.connection.rouse(|| Ok(()))? {
            return Ok(false);
        }
        let (source, target) = self.pair;
        let hello = Hello {
            major: frame::MAJOR,
            minor: frame::MINOR,
            lane: 0,
            lanes: 1,
            source,
            target,
            incarnation: self.shared.incarnation,
            expected: state.expected,
            session: state.session,
            birth: state.birth,
            eager: 0,
            window: 0,
            flows: 0,
            proof: self.shared.config.secret.is_some(),
            nonce: nonce(),
        };
        let (frame, ack) = (Frame::Hello(hello), state.lane.ack());
        link.hello = secret::bytes(&frame, ack);
        link.connection.put(&frame, 0, ack);
        link.phase = Phase::Hello;
        link.since = Instant::now();
        Ok(true)
    }

    /// Receives and sends; returns whether there may be more to receive, or to send.
    fn exchange(&self, state: &mut State<O>) -> Result<bool, End> {
        state.lane.set_now(self.shared.now());
        let State {
            lane,
            link: Some(link),
            starved,
            ..
        } = state
        else {
            return Err(End::Broke);
        };
        let Link {
            connection,
            phase,
            since,
            window,
            hello: said,
        } = link;
        if *phase != Phase::Ready && since.left(CONNECT_MILLIS).is_none() {
            return Err(End::Broke);
        }
        // Full: what is told later is told again, and what was told before is received below.
        if self.told.load(ordering::Relaxed) && self.told.xchg(false, ordering::Full) {
            connection.note_told();
        }
        if self.may_rest_on(lane, connection, *phase) {
            // What memory was wanted for has been given up.
            *starved = None;
            connection.forget_shortage();
            return Ok(false);
        }
        // Or has got some of its memory, and not all. Relaxed: see `note_posted`.
        if lacks_memory(lane, connection, *phase) && self.posted.load(ordering::Relaxed) {
            starved.get_or_insert_with(Instant::now);
        }
        let flows = || provide_flows(lane, *phase);
        if !connection.rouse(flows)? {
            return Ok(false);
        }
        *starved = None;
        let heard = connection.may_receive() && connection.receive()?;
        while let Some(part) = connection.input.next().map_err(|_| End::Broken)? {
            match part {
                Part::Head(_, Frame::Bye(code)) => return Err(End::Bye(code)),
                Part::Head(_, Frame::Welcome(hello, mac)) if *phase == Phase::Hello => {
                    let proof = self.prove(said, connection.input.header(), &hello, &mac)?;
                    // It is none of strangers.
                    *phase = Phase::Welcome;
                    let identity = TargetIdentity {
                        pair: self.pair,
                        session: state.session,
                        expected: &mut state.expected,
                        birth: &mut state.birth,
                    };
                    *window = identity.welcome(&hello)?;
                    if let Some(proof) = proof {
                        connection.put(&Frame::Proof(proof), 0, lane.ack());
                    }
                }
                Part::Head(Common { ack, .. }, Frame::Ack) if *phase == Phase::Welcome => {
                    // Those that never come so far need none.
                    provide_flows(lane, Phase::Ready).map_err(|_| End::NoMemory)?;
                    // It does not know what it has known.
                    lane.connected(ack, *window).map_err(|_| End::Lost)?;
                    lane.set_straight(STRAIGHT);
                    *phase = Phase::Ready;
                    self.note_reached();
                    state.connections = state.connections.saturating_add(1);
                    *since = Instant::now();
                    state.down = None;
                    state.retry.note_end();
                }
                Part::Head(common, frame) if *phase == Phase::Ready => {
                    lane.head(&common, &frame).map_err(|_| End::Broken)?;
                }
                Part::Body(bytes, last) if *phase == Phase::Ready => lane.body(bytes, last),
                _ => return Err(End::Broken),
            }
        }
        if !heard {
            connection.patience()?;
        }
        if !connection.flush(false)? || *phase != Phase::Ready {
            return Ok(connection.may_receive());
        }
        let room = connection.room();
        let size = room.len();
        let mut taken = Taken::new();
        let fresh = |most| self.next_to_send(&mut taken, most);
        let mut count = lane.fill(room, fresh);
        while let Some(entry) = taken.pop_front() {
            lane.keep(entry);
        }
        if !lane.owes_ack() {
            state.ack_since = None;
        } else if lane.untold() >= MANY_UNTOLD
            || state
                .ack_since
                .is_some_and(|since| since.left(ACK_MILLIS).is_none())
        {
            let rest = room.get_mut(count..).unwrap_or(&mut []);
            count = count.saturating_add(lane.fill_ack(rest));
            state.ack_since = None;
        }
        connection.filled(count);
        // It has not ended for want of room if there was some for any header.
        let is_full = size.saturating_sub(count) < MAX_REQUEST;
        let straight = lane.has_straight();
        // What follows goes into the same segment.
        if !connection.flush(is_full || straight)? {
            return Ok(connection.may_receive());
        }
        if straight {
            let sent = lane.send(connection);
            connection.check()?;
            // If that is nothing, it is told when there is room.
            return Ok(sent.is_none_or(|sent| sent != 0) || connection.may_receive());
        }
        if !is_full {
            connection.push();
        }
        // There may be more when others have had their turn, or nothing.
        Ok(is_full || lane.has_more() || connection.may_receive())
    }

    /// Looks at whether a `WELCOME` is of somebody who has the secret; returns the code that is to be
    /// answered. None if no secret is shared, which both sides have to agree on.
    fn prove(
        &self,
        said: &HelloBytes,
        header: &[u8],
        welcome: &Hello,
        mac: &Mac,
    ) -> Result<Option<Mac>, End> {
        let (_, target) = self.pair;
        match &self.shared.config.secret {
            None if welcome.proof => {
                self.shared.complain(Complaint::TargetWants, target);
                Err(End::Bye(bye::SECRET))
            }
            None => Ok(None),
            Some(secret) if welcome.proof && secret.is_proved(said, header, mac) => {
                Ok(Some(secret.initiator(said, header)))
            }
            Some(_) => {
                self.shared.complain(Complaint::Target, target);
                Err(End::Broke)
            }
        }
    }

    /// Returns what the end of a connection is, of which this is seen. An end by a side that has not proved to
    /// have the secret, though one is shared, is nothing but a break: it changes nothing.
    fn believe(&self, phase: Phase, end: End) -> End {
        if phase != Phase::Hello || self.shared.config.secret.is_none() {
            return end;
        }
        if end == End::Bye(bye::SECRET) {
            let (_, target) = self.pair;
            self.shared.complain(Complaint::Target, target);
        }
        End::Broke
    }

    /// A connection is over.
    fn end_connection(&self, state: &mut State<O>, mut end: End) {
        let phase = state.link.as_ref().map(|link| link.phase);
        if let Some(link) = state.link.take() {
            end = self.believe(link.phase, end);
            let moved = link.connection.moved();
            state.moved = state.moved.saturating_add(moved);
            let between = link.phase != Phase::Ready || state.lane.is_between();
            if link.phase == Phase::Ready {
                // Without memory nothing was under way, and requests have waited since then.
                let unheard = state.unheard_of(&link.connection);
                state.down = unheard.or(state.starved.take());
            }
            state.lane.disconnected();
            if link.phase == Phase::Ready && link.since.left(LAST_RETRY).is_none() {
                // This connection was good, so that the next may come at once.
                state.retry.begin_anew();
            }
            link.close((end == End::Broken && between).then_some(bye::BROKEN));
        }
        match end {
            End::Broken => {
                state.strikes = state.strikes.saturating_add(1);
                if state.strikes >= STRIKES {
                    self.end_session(state, true);
                }
            }
            End::Bye(bye::VERSION | bye::STRANGER | bye::SECRET) => self.end_session(state, true),
            End::Bye(bye::OLD) | End::Lost => {
                self.end_session(state, false);
                let answered = phase == Some(Phase::Welcome) || end != End::Lost;
                // It had a connection that worked, and is there again: what is yet to be sent has as long for the
                // next one as if it had been heard of on one that worked.
                if answered
                    && state.down.is_some()
                    && state.connections != 0
                    && state.retry.note_answer()
                {
                    state.down = Some(Instant::now());
                }
            }
            End::Bye(_) | End::Broke | End::NoMemory => {}
        }
    }

    /// All that was sent has failed, and if `all` the rest, too; another session begins.
    fn end_session(&self, state: &mut State<O>, all: bool) {
        let unreachable = EHOSTUNREACH.to_errno().unsigned_abs();
        state.collect();
        let fail = |mut entries: EntryQueue<Sent<Outbound<O>>>, ended: &mut EntryQueue<_>| {
            while let Some(mut entry) = entries.pop_front() {
                entry.status = unreachable;
                ended.push_back(entry);
                // There may be very many.
                cond_resched();
            }
        };
        fail(state.lane.end_session(), &mut state.ended);
        if all {
            fail(state.lane.take_ready(), &mut state.ended);
            self.end_fresh(state);
        }
        state.session = self.shared.next_session();
        (state.expected, state.birth, state.strikes) = (0, 0, 0);
    }

    /// All that was not sent has failed.
    fn end_fresh(&self, state: &mut State<O>) {
        loop {
            let Some(fresh) = self.next_posted() else {
                return;
            };
            state.ended.push_back(Outbound::unsent(fresh));
            cond_resched();
        }
    }
}

impl<O: Initiator> State<O> {
    /// Notes the operations that were answered.
    fn collect(&mut self) {
        let mut answered = self.lane.take_answered();
        while let Some(entry) = answered.pop_front() {
            self.ended.push_back(entry);
        }
    }

    /// Returns whether nothing has come of requests that are not wanted any more for so many milliseconds,
    /// whatever the target was told, and on however many connections.
    fn is_overdue(&mut self, timeout: u32) -> bool {
        let progress = self.lane.parting();
        let new = |round| Parting {
            round: (round, Instant::now()),
            progress: (progress, Instant::now()),
        };
        self.parting = self.lane.unwanted().map(|round| match self.parting {
            Some(same) if (same.round.0, same.progress.0) == (round, progress) => same,
            Some(same) if same.round.0 == round => Parting {
                round: same.round,
                ..new(round)
            },
            _ => new(round),
        });
        self.parting
            .is_some_and(|parting| parting.left(timeout).is_none())
    }

    /// No connection is wanted any more.
    fn note_over(&mut self) {
        self.down = None;
        self.retry.note_end();
    }

    /// Returns whether the target has not been heard of for so many milliseconds, when there is no
    /// connection that works.
    fn is_given_up(&self, timeout: u32) -> bool {
        self.down.is_some_and(|down| down.left(timeout).is_none())
    }

    /// Returns since when the target has not been heard of on a connection, while something is under way.
    fn unheard_of(&mut self, connection: &Connection) -> Option<Instant> {
        if self.lane.len() == 0 {
            self.busy = None;
            return None;
        }
        let busy = *self.busy.get_or_insert_with(Instant::now);
        Some(connection.heard_of().later(busy))
    }

    /// Returns what is to be done when nothing can be done now.
    fn pause(&mut self, timeout: u32) -> Result<Next, End> {
        let Some(link) = &mut self.link else {
            return Ok(Next::Again);
        };
        let short = link.connection.shortage();
        let recall = self
            .parting
            .map(|parting| parting.left(timeout).unwrap_or(1));
        if link.phase != Phase::Ready {
            let attempt = link.since.left(CONNECT_MILLIS).unwrap_or(1);
            let down = self.down.map(|down| down.left(timeout).unwrap_or(1));
            // `HELLO`, or `PROOF`.
            let room = link.connection.no_room(link.connection.is_blocked());
            let left = [recall, down, short, room].into_iter().flatten().min();
            return Ok(Next::Within(left.map_or(attempt, |left| left.min(attempt))));
        }
        // Another connection may do before it is given up.
        let another = timeout.saturating_sub(timeout / 4);
        let silent = if self.lane.len() == 0 {
            self.busy = None;
            None
        } else {
            let busy = *self.busy.get_or_insert_with(Instant::now);
            // It has as long from when there is something under way.
            let left = match busy.left(another) {
                Some(left) => Some(left),
                None => link.connection.silence_left(another),
            };
            Some(left.ok_or(End::Broke)?)
        };
        let is_quiet = self.lane.len() == 0 && !self.lane.owes_ack() && self.lane.is_between();
        let rest = if is_quiet {
            link.connection.rest()
        } else {
            None
        };
        if is_quiet && link.connection.is_at_rest() {
            // Unless one of them is still stopped.
            drop(self.lane.take_flows(KVVec::new()));
        }
        let frame = link.connection.patience().unwrap_or(Some(1));
        // Behind what waits for room, and behind the rest of a body, it would wait, too.
        let waits = link.connection.is_blocked() || !self.lane.is_between();
        let room = link.connection.no_room(waits);
        let says_ack = self.lane.owes_ack() && !waits;
        let ack = says_ack.then(|| {
            let since = *self.ack_since.get_or_insert_with(Instant::now);
            since.left(ACK_MILLIS).unwrap_or(1)
        });
        Ok(
            match [frame, recall, ack, silent, rest, short, room]
                .into_iter()
                .flatten()
                .min()
            {
                Some(left) => Next::Within(left),
                None => Next::Wait,
            },
        )
    }
}

/// Ends the next operations that were answered, in this order; returns how many.
fn end_some<O: Initiator>(ended: &mut EntryQueue<Sent<Outbound<O>>>) -> usize {
    let mut origins = [const { None }; ENDED];
    let mut count: usize = 0;
    // Once for all locks of those that end shortly.
    let mut section = None;
    for place in &mut origins {
        let Some(entry) = ended.pop_front() else {
            break;
        };
        let Sent {
            request, status, ..
        } = entry.into_inner();
        let response = match c_int::try_from(status) {
            Ok(0) => Response::done(request.origin.request().len),
            Ok(err) => Response { err, len: 0 },
            Err(_) => Response::failed(EIO),
        };
        *place = Some(request.end(response, &mut section));
        count = count.saturating_add(1);
    }
    drop(section);
    // May be the last references.
    drop(origins);
    count
}

/// Returns whether a connection lacks memory without which nothing is sent or received.
fn lacks_memory<O: Initiator>(
    lane: &Lane<Outbound<O>, KVVec<Flow>>,
    connection: &Connection,
    phase: Phase,
) -> bool {
    connection.is_at_rest() || phase == Phase::Ready && !lane.has_flows()
}

/// Makes the memory for flows of a connection that is ready, if there is none. Does not wait for it.
fn provide_flows<O: Initiator>(lane: &mut Lane<Outbound<O>, KVVec<Flow>>, phase: Phase) -> Result {
    if phase == Phase::Ready && !lane.has_flows() {
        lane.set_flows(KVVec::from_elem(Flow::default(), FLOWS, GFP_NOWAIT)?);
    }
    Ok(())
}

/// The target of an association, as far as that knows it.
struct TargetIdentity<'a> {
    pair: Pair,
    session: u64,
    expected: &'a mut u64,
    birth: &'a mut u64,
}

impl TargetIdentity<'_> {
    /// Takes what the target says of itself; returns how far it lets a lane go.
    fn welcome(self, hello: &Hello) -> Result<Window, End> {
        let Self {
            pair,
            session,
            expected,
            birth,
        } = self;
        let same = (hello.source, hello.target) == pair
            && (hello.lane, hello.lanes) == (0, 1)
            && hello.session == session
            && hello.major == frame::MAJOR;
        let enough = hello.eager >= LEAST_EAGER;
        if !same || !enough || hello.window == 0 || hello.birth == 0 {
            return Err(End::Broken);
        }
        let other = |known: u64, told: u64| known != 0 && known != told;
        if other(*expected, hello.incarnation) || other(*birth, hello.birth) {
            return Err(End::Lost);
        }
        (*expected, *birth) = (hello.incarnation, hello.birth);
        Ok(Window {
            numbers: u64::from(hello.window),
            flows: hello.flows,
            eager: hello.eager,
        })
    }
}

impl<O: Initiator + Send + Sync + 'static> SocketEvents for Association<O> {
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

impl<O: Initiator + Send + Sync + 'static> WorkItem for Association<O> {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        let (next, mut ended) = {
            // Operations that are posted by the reclaim of memory wait for this.
            let _no_io = NoIo::new();
            let mut state = this.state.lock();
            // Relaxed: the timer has this run after it has said so. Only a run sets it again.
            if this.rang.load(ordering::Relaxed) {
                this.rang.store(false, ordering::Relaxed);
                state.alarm = Alarm::NONE;
            }
            let mut next = Self::go_on(&this, &mut state);
            if let Next::Within(delay) = next {
                if !state.alarm.set(delay) {
                    next = Next::Wait;
                }
            }
            state.collect();
            let link = state.link.as_ref();
            let is_bulk = link.is_some_and(|link| link.connection.is_bulk());
            // Relaxed: as in `wake_told`.
            this.bulk.store(is_bulk, ordering::Relaxed);
            let ended = core::mem::replace(&mut state.ended, EntryQueue::new());
            (next, ended)
        };
        // Without the lock.
        let mut pace = Pace::new();
        while !ended.is_empty() {
            let count = end_some(&mut ended);
            for _ in 0..count {
                // They were copied before.
                pace.step(0);
            }
        }
        match next {
            Next::Again => Self::wake(&this),
            Next::Wait => {}
            Next::Within(delay) => {
                let queue = &this.shared.queue;
                queue.modify_delayed::<Self, 1>(this.clone(), delay);
            }
        }
    }
}

impl<O: Initiator + Send + Sync + 'static> WorkItem<1> for Association<O> {
    fn work(&self) -> &Work<Self, 1> {
        &self.timer
    }

    fn run(this: Arc<Self>) {
        // Relaxed: the work item, which is queued after that, sees it.
        this.rang.store(true, ordering::Relaxed);
        Self::wake(&this);
    }
}
