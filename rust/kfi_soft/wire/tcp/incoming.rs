// SPDX-License-Identifier: GPL-2.0

//! The target's side of a lane: which requests were read, and which answers are to be sent.
//!
//! As [`outgoing`](super::outgoing) this is without input, output and time, and runs in user space.
//!
//! An answer is kept until the initiator has said that it has read it, and is sent again on a new
//! connection: a request that is sent again is not carried out again.
//!
//! A request for which there is no room, or no memory, is not taken, and its flow is stopped: that needs
//! no memory. So nothing that is short keeps what is behind the request from being read, such as bytes of
//! those that are under way, with the end of which there is room again. If there is none for the user to whom
//! it goes, those of its flow to others are taken still. One that comes when nothing else
//! of its lane is under way is taken whatever others have.

#![forbid(unsafe_code)]

use core::ops::DerefMut;

use super::{
    frame::{
        Broken,
        Common,
        Frame,
        Request,
        Response,
        NOT_READY,
        NO_ROOM, //
    },
    stops::{
        Flow,
        Stops,
        User,
        FLOWS, //
    }, //
};
use crate::wire::awaits::Awaits;

/// The most bytes of results that go in one frame.
const PIECE: usize = 256 << 10;

/// Requests whose bytes are being moved are looked at so often in `peer_timeout`: see [`Lane::look`].
pub(crate) const LOOKS: u32 = 4;
/// One that has not moved when it was looked at so often has to let others move: see there.
const PATIENCE: u32 = 2 * LOOKS;

/// After so many connections on which nothing of a request has moved, or on which the initiator did not say that it has
/// read the oldest answer, no new one gives it more time.
const CONNECTIONS: u32 = 16;

/// When other requests have had so many turns, one after the other, each has had one, though 4 MiB may stand
/// before it in the initiator's socket.
const ROUNDS: u32 = 2 + 16;

/// So many milliseconds after all requests of a lane were looked at for those that wait, they are not looked at
/// again: it takes some while, and may be wanted with each frame.
const WALK_MILLIS: u64 = 10;

/// The errno of a message for which there is no receive: `EREMOTEIO`.
const NO_RECEIVE: u32 = 121;
/// The errno of a request that was withdrawn: `ECANCELED`.
const CANCELLED: u32 = 125;

/// Returns whether a request that has this status did not end as one whose receiver was not ready.
fn is_done(status: u32) -> bool {
    !matches!(status, NO_RECEIVE | CANCELLED)
}

/// An answer, as this has to do with it.
pub(crate) trait Answer {
    /// Returns what is answered, and how many bytes of results there are; with `true` they come before
    /// it as [`Frame::Data`], else with it.
    fn response(&self) -> (Response, usize, bool);

    /// Writes bytes of the results, from `offset` on, all of `to`.
    fn read(&self, offset: usize, to: &mut [u8]);
}

/// The party that requests come to.
pub(crate) trait Target: Sized {
    /// How many requests there is memory for in a chunk of that.
    const CHUNK: usize;

    /// A request as it is kept until it is answered.
    type Open;
    /// The answer to one.
    type Answer: Answer;
    /// A request whose header is right.
    type Checked;
    /// A request whose body is yet to come.
    type Partial;
    /// Says that a request wants its bytes, or lets them be fetched.
    type Start;
    /// Where bytes come from that go straight to where they belong.
    type Input;
    /// Memory for as many requests as [`Self::CHUNK`] says.
    type Chunk: DerefMut<Target = [LaneSlot<Self>]>;

    /// Allocates a chunk, without any request in it; nothing if there is no memory. With `more` the lane has two
    /// already: as many as it needs for [`Self::CHUNK`] requests, from whichever number on.
    fn chunk(&mut self, more: bool) -> Option<Self::Chunk>;

    /// The lane has one chunk more than this one at the most.
    fn is_own(chunk: &mut Self::Chunk);

    /// Takes a header with what it says of the body, and checks it: nothing else is done, and no memory needed.
    fn check(&self, request: &Request<'_>, body: usize) -> Result<Self::Checked, Broken>;

    /// Begins with a request. If it is `alone`, nothing else of the lane is under way, and there is room whatever
    /// others have.
    fn begin(
        &mut self,
        id: u64,
        request: &Request<'_>,
        checked: Self::Checked,
        alone: bool,
    ) -> Begun<Self::Partial>;

    /// Returns the user to whom a request is going to come, of which there is the header.
    fn user_of(&self, checked: &Self::Checked) -> User;

    /// Returns the user to whom a request is going to come that has begun.
    fn partial_user(partial: &Self::Partial) -> User;

    /// Takes bytes of the body of it, from `offset` on.
    fn body(&mut self, partial: &mut Self::Partial, offset: usize, bytes: &[u8]);

    /// All of it is there: carries it out. Returns what is kept; nothing if there is no memory, and nothing
    /// was done.
    fn arrive(&mut self, partial: Self::Partial) -> Option<Self::Open>;

    /// Takes out a request that has started since: its number, how many bytes it wants or lets be fetched,
    /// and whether they are fetched.
    fn started(&mut self) -> Option<(u64, usize, bool, Self::Start)>;

    /// Takes bytes that were wanted, from `offset` on; `false` if there is nowhere to put them any more.
    fn write(&mut self, open: &Self::Open, offset: usize, bytes: &[u8]) -> bool;

    /// Has bytes that were wanted come straight to where they belong, from `offset` on, up to `len`; returns how
    /// many have. Nothing if there is nowhere to put them any more; some may have come all the same.
    fn receive(
        &mut self,
        open: &Self::Open,
        offset: usize,
        len: usize,
        input: &mut Self::Input,
    ) -> Option<usize>;

    /// Fetches bytes, from `offset` on, all of `to`; `false` if they are not there any more.
    fn read(&mut self, open: &Self::Open, offset: usize, to: &mut [u8]) -> bool;

    /// Nothing more is moved of what has started.
    fn end(&mut self, start: Self::Start, moved: Moved);

    /// The initiator does not want it any more. If it has started it is ended besides.
    fn withdraw(&mut self, open: &Self::Open);

    /// Returns whether the initiator does not want it any more.
    fn is_withdrawn(&self, open: &Self::Open) -> bool;

    /// Returns whether it was answered: [`Self::answered`] returns that, or is about to.
    fn is_answered(open: &Self::Open) -> bool;

    /// Returns the flow that a request belongs to.
    fn flow(open: &Self::Open) -> u16;

    /// Returns the user to whom a request has come.
    fn user(open: &Self::Open) -> User;

    /// Takes a request out of where it waits for its receiver, so that nothing is done and nothing is answered;
    /// returns what it has waited for, or nothing if it does not wait there.
    fn take_back(&mut self, open: &Self::Open) -> Option<Awaits>;

    /// Returns whether nobody has begun with a request, and its receiver has not set it aside either: those
    /// before it would come behind it if they were sent again.
    fn is_waiting(&self, open: &Self::Open) -> bool;

    /// Takes out an answer that was given since, with the number of the request.
    fn answered(&mut self) -> Option<(u64, Self::Answer)>;
}

/// The fate of the header of a request.
pub(crate) enum Begun<P> {
    /// It is taken.
    Taken(P),
    /// There is no room for a request to this user; there may be some for others.
    NoRoom(User),
    /// There is no memory.
    NoMemory,
}

/// What is known of the oldest request that is not over.
enum Oldest {
    /// There is none, or it is being carried out.
    Open,
    /// The initiator is yet to be told on this connection what came of it.
    Untold,
    /// The initiator was told.
    Told,
}

/// The fate of the bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All of them have been written, or have landed.
    All,
    /// They have not, as one side is not there any more.
    Lost,
    /// They have not, as the initiator does not want the request any more.
    Withdrawn,
}

/// A request that is not over.
pub(crate) enum Slot<O, A, S> {
    /// It is being carried out.
    Open(O, Option<Moving<S>>),
    /// It was answered.
    Answered(A),
    /// It was not taken; the initiator was told so on this connection, or not.
    Refused(bool, Refusal),
}

/// Why a request was not taken.
#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    /// Its receiver is not ready, for which it has waited itself, for so many milliseconds.
    NotReady(u32),
    /// There was no room for it, or there is none for its completion, or its flow is stopped, perhaps for another
    /// receiver: it does not wait for its own meanwhile. The initiator knows for how long it has before.
    NoRoom,
    /// No flow more is stopped for its user: it fails, as if its time were over.
    NoReceive,
}

impl Refusal {
    /// Returns what the initiator is told.
    fn response(self) -> Response {
        let (status, waited) = match self {
            Self::NotReady(waited) => (NOT_READY, waited),
            Self::NoRoom => (NO_ROOM, 0),
            Self::NoReceive => (NO_RECEIVE, 0),
        };
        Response {
            status,
            len: 0,
            waited,
        }
    }
}

/// The bytes of a request that has started.
pub(crate) struct Moving<S> {
    start: S,
    /// How many there are.
    len: usize,
    /// How many have been moved: written, or sent.
    done: usize,
    /// Bytes that the lane had moved when it was last judged: those of [`Lane::brought`], or, until it is asked,
    /// of [`Lane::sent`].
    before: u64,
    /// The round of the lane when it was first judged.
    since: u32,
    /// The round in which the last piece of it has begun to come.
    round: u32,
    /// How often it was looked at since it has moved, or was asked for.
    looks: u32,
    /// How many connections have begun since it has moved.
    connections: u32,
    /// How many whole pieces of it have been moved, on whichever connection.
    pieces: u32,
    /// They are fetched, not wanted.
    fetched: bool,
    /// They were pulled on this connection, or all have been sent on it.
    asked: bool,
}

impl<S> Moving<S> {
    /// So many bytes of it have been moved. Less than a piece more than before does not count.
    fn note_done(&mut self, done: usize) {
        self.done = done;
        let pieces = u32::try_from(done / PIECE).unwrap_or(u32::MAX);
        if pieces > self.pieces {
            self.pieces = pieces;
            (self.looks, self.connections) = (0, 0);
        }
    }

    /// It is asked for, or not yet on this connection; the lane has moved so many bytes by now. From now on it
    /// has time, but not if one connection after the other begins.
    fn ask(&mut self, asked: bool, bytes: u64) {
        self.asked = asked;
        if self.connections < CONNECTIONS {
            self.looks = 0;
        } else {
            self.before = bytes;
        }
    }

    /// Looks at it; returns whether the initiator goes on. See [`Lane::look`].
    fn look(&mut self, brought: u64, sent: u64, round: u32) -> bool {
        // As long as it is our turn, the initiator has to read what we send.
        let bytes = if self.asked { brought } else { sent };
        self.looks = self.looks.saturating_add(1);
        if self.looks <= LOOKS {
            (self.before, self.since) = (bytes, round);
            return true;
        }
        if self.asked && round.wrapping_sub(self.since) >= ROUNDS {
            return false;
        }
        if self.looks < PATIENCE {
            return true;
        }
        let least = u64::try_from(PIECE).unwrap_or(u64::MAX);
        let goes_on = bytes.wrapping_sub(self.before) >= least;
        (self.before, self.looks) = (bytes, LOOKS);
        goes_on
    }
}

/// A slot of the memory of a lane; none while no request is in it.
pub(crate) type LaneSlot<T> =
    Option<Slot<<T as Target>::Open, <T as Target>::Answer, <T as Target>::Start>>;

/// The outcome of an attempt to take a request back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    /// It is not taken.
    Done,
    /// It is on its way from one place to another: those before it in its flow stay, for now.
    Later,
    /// It does not wait.
    Never,
}

/// Some flows.
struct FlowSet([u64; FLOWS as usize / 64]);

impl FlowSet {
    /// None.
    const NONE: Self = Self([0; FLOWS as usize / 64]);

    /// Returns the bit of a flow, in its word.
    fn bit(flow: u16) -> u64 {
        1 << (flow % 64)
    }

    fn contains(&self, flow: u16) -> bool {
        let word = self.0.get(usize::from(flow / 64));
        word.is_some_and(|word| word & Self::bit(flow) != 0)
    }

    fn insert(&mut self, flow: u16) {
        if let Some(word) = self.0.get_mut(usize::from(flow / 64)) {
            *word |= Self::bit(flow);
        }
    }
}

/// A request whose body is being received.
#[derive(Clone, Copy)]
struct Coming {
    flow: u16,
    /// Its flow was stopped, and goes on with it.
    goes_on: bool,
}

/// The use of the body that is being received.
enum Reading<P> {
    /// A request, from here on.
    Request(P, usize, Coming),
    /// A request that is not taken.
    Refused(Refusal),
    /// Data of a request that were pulled, from here on.
    Data(u64, usize),
}

/// The piece of what is fetched that is being sent.
#[derive(Clone, Copy)]
struct Fetching {
    id: u64,
    offset: usize,
    end: usize,
    /// It was not there any more: the bytes that are sent have no meaning.
    failed: bool,
}

/// The answer that is being sent.
#[derive(Clone, Copy)]
struct Writing {
    id: u64,
    /// Bytes of results whose headers were sent.
    announced: usize,
    /// Bytes of results that were sent.
    offset: usize,
    /// The header of the answer was sent.
    told: bool,
}

/// The requests of a lane.
///
/// The memory has one slot for each number from the first one on that is not over, so that a request
/// that is further on breaks the protocol. It has places for chunks with [`Self::window`] slots, and there
/// are those chunks that have such numbers, but for what there was no memory. A number that is not over and
/// has no slot, or an empty one, is that of a request that was not taken for that reason.
///
/// `M` is memory for chunks, `F` for flows.
#[allow(
    clippy::struct_excessive_bools,
    reason = "they have nothing to do with each other"
)]
pub(crate) struct Lane<T: Target, M, F> {
    chunks: M,
    /// How many there are.
    count: usize,
    /// One that was used before.
    spare: Option<T::Chunk>,
    /// All below this one are over.
    first: u64,
    /// The next one that was not read.
    next: u64,
    /// How many were read in all sessions, and one more.
    asked: u64,
    /// How many are open.
    open: usize,
    /// Answers of before this connection are sent again, from this number on ...
    again: u64,
    /// ... up to this one.
    until: u64,
    /// The oldest number that was not over when this connection began, and how many have begun, this one included, when
    /// its answer was there already.
    unread: (u64, u32),
    reading: Option<Reading<T::Partial>>,
    writing: Option<Writing>,
    fetching: Option<Fetching>,
    /// Of requests that move bytes the one from here on is next.
    turn: u64,
    /// There may be some.
    busy: bool,
    /// An answer is sent next, if there is one.
    answer_next: bool,
    /// That a flow may go on is said next, if one may.
    go_next: bool,
    /// Some requests may have started, and not ended.
    moving: bool,
    /// Another number whenever bytes of one of those are moved, or asked for.
    progress: u64,
    /// How many bytes have come that were wanted, or with requests.
    brought: u64,
    /// How many bytes were sent.
    sent: u64,
    /// Another one begins whenever a piece of data begins to come of a request of which one has begun to come in
    /// this one.
    round: u32,
    /// Flows that are stopped.
    stops: Stops<F>,
    /// How many requests there are of which the initiator is to be told that they were not taken ...
    refusals: usize,
    /// ... from this number on.
    refused: u64,
    /// Of those that have no slot it was told on this connection below this number.
    told_bare: u64,
    /// There was no room for a request, and the oldest one was not found to wait since.
    short: bool,
    /// The oldest request when [`Self::relieve`] was called last.
    relieved: u64,
    /// Of flows that are stopped some requests may wait for their receivers: a flow was stopped, or a request of
    /// one was taken, and they were not looked at since.
    behind: bool,
    /// When they were, in milliseconds.
    walked: u64,
}

impl<T, M, F> Lane<T, M, F>
where
    T: Target,
    M: DerefMut<Target = [Option<T::Chunk>]>,
    F: DerefMut<Target = [Flow]>,
{
    /// At the beginning of a session. There are no chunks, and there is memory for [`FLOWS`] flows.
    pub(crate) fn new(chunks: M, flows: F) -> Self {
        Self {
            chunks,
            count: 0,
            spare: None,
            first: 1,
            next: 1,
            asked: 1,
            open: 0,
            again: 1,
            until: 1,
            unread: (1, 0),
            reading: None,
            writing: None,
            fetching: None,
            turn: 0,
            busy: false,
            answer_next: true,
            go_next: true,
            moving: false,
            progress: 0,
            brought: 0,
            sent: 0,
            round: 1,
            stops: Stops::new(flows),
            refusals: 0,
            refused: 1,
            told_bare: 1,
            short: false,
            relieved: 0,
            behind: false,
            walked: 0,
        }
    }

    /// Returns how many numbers it has room for.
    pub(crate) fn window(&self) -> usize {
        self.chunks.len().saturating_mul(T::CHUNK)
    }

    /// As [`Self::window`].
    fn numbers(&self) -> u64 {
        u64::try_from(self.window()).unwrap_or(u64::MAX)
    }

    /// Returns where the slot of a number is: in which chunk, and where there.
    fn place(&self, id: u64) -> Option<(usize, usize)> {
        let at = usize::try_from(id.checked_rem(self.numbers())?).ok()?;
        Some((at.checked_div(T::CHUNK)?, at.checked_rem(T::CHUNK)?))
    }

    /// Returns whether there is a slot for the next request, for which it makes one if it can.
    fn make_room(&mut self, target: &mut T) -> bool {
        let place = self.place(self.next);
        let place = place.and_then(|(chunk, _)| self.chunks.get_mut(chunk));
        match place {
            None => false,
            Some(Some(_)) => true,
            Some(place @ None) => {
                *place = match self.spare.take() {
                    Some(chunk) => Some(chunk),
                    None => target.chunk(self.count > 1),
                };
                let made = place.is_some();
                self.count = self.count.saturating_add(usize::from(made));
                made
            }
        }
    }

    /// All numbers of a chunk are over, of which this is the last one.
    fn leave_chunk(&mut self, last: u64) {
        let size = u64::try_from(T::CHUNK).unwrap_or(u64::MAX);
        let again = last.saturating_add(1).saturating_add(self.numbers());
        if self.next > again.saturating_sub(size) {
            // There are others in it by now.
            return;
        }
        let Some((chunk, _)) = self.place(last) else {
            return;
        };
        if let Some(chunk) = self.chunks.get_mut(chunk).and_then(Option::take) {
            self.count = self.count.saturating_sub(1);
            self.spare = Some(chunk);
        }
    }

    /// All requests are over: one chunk is kept at the most.
    pub(crate) fn rest(&mut self) {
        if self.count != 0 {
            self.spare = None;
        }
        let chunks = self.chunks.iter_mut().flatten();
        if let (Some(chunk), 0 | 1) = (chunks.chain(&mut self.spare).next(), self.count) {
            T::is_own(chunk);
        }
    }

    /// Returns the first number that was not read.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether all requests that were read are over, and none has begun to come. Some may come again
    /// that were not taken ([`Self::has_stopped`]).
    pub(crate) fn is_over(&self) -> bool {
        self.first == self.next && self.reading.is_none()
    }

    /// Returns a number if all requests that were read are over: another one whenever some have come since, of
    /// whichever session. One that has begun to come changes nothing: it may never be there.
    pub(crate) fn idle(&self) -> Option<u64> {
        (self.first == self.next).then_some(self.asked)
    }

    /// Returns whether the initiator may need more time to say that it has read the oldest answer, as there is a
    /// new connection; not after too many of them.
    pub(crate) fn gives_time(&self) -> bool {
        let (id, connections) = self.unread;
        id != self.first || connections < CONNECTIONS
    }

    /// Looks at the oldest request that is not over.
    fn oldest(&mut self) -> Oldest {
        let id = self.first;
        if id == self.next {
            return Oldest::Open;
        }
        let writes = self.writing.is_some_and(|writing| writing.id == id);
        let again = (self.again..self.until).contains(&id);
        let bare = id < self.told_bare;
        let told = match self.slot(id) {
            Some(Some(Slot::Open(open, _))) if !T::is_answered(open) => return Oldest::Open,
            // There was no room yet to say it.
            Some(Some(Slot::Open(..))) => false,
            Some(Some(Slot::Answered(_))) => !writes && !again,
            Some(Some(Slot::Refused(told, _))) => *told,
            None | Some(None) => bare,
        };
        if told {
            Oldest::Told
        } else {
            Oldest::Untold
        }
    }

    /// Returns the oldest number that is not over, if the initiator was told on this connection what came of
    /// it, or on too many before: it is the initiator's turn to say that it knows.
    pub(crate) fn unacknowledged(&mut self) -> Option<u64> {
        let told = !self.gives_time() || matches!(self.oldest(), Oldest::Told);
        told.then_some(self.first)
    }

    /// Returns the oldest number that is not over, if the initiator is yet to be told on this connection what came
    /// of it, and a number that changes with each piece that is sent before that.
    pub(crate) fn untold(&mut self) -> Option<(u64, u64)> {
        let piece = u64::try_from(PIECE).unwrap_or(u64::MAX);
        let pieces = self.sent.checked_div(piece).unwrap_or(0);
        matches!(self.oldest(), Oldest::Untold).then_some((self.first, pieces))
    }

    /// Returns how many requests are being carried out.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Returns a number that changes whenever bytes of requests that have started are moved or asked for.
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// Returns whether the initiator is to send bytes, or to say that they have come, before a request
    /// can end.
    pub(crate) fn is_owed(&mut self) -> bool {
        if !self.moving {
            return false;
        }
        let mut owed = false;
        self.moving = false;
        for slot in self.chunks.iter().flatten().flat_map(|chunk| chunk.iter()) {
            if let Some(Slot::Open(_, Some(moving))) = slot {
                self.moving = true;
                owed |= moving.asked;
            }
        }
        owed
    }

    /// Returns whether some requests may have started, and not ended.
    pub(crate) fn is_moving(&self) -> bool {
        self.moving
    }

    /// Looks at the requests whose bytes are being moved, [`LOOKS`] times in `peer_timeout`; returns whether the
    /// initiator goes on with each of them.
    ///
    /// It takes those that it was asked for in turns, of a piece at the most. So from when it knows, which takes
    /// no more than `peer_timeout`, none of the others has two turns before each has had one; and something has
    /// one all the time, so that the lane is not moving if it moves less than a piece in `peer_timeout`. Bytes
    /// of a request that are less than a piece do not count as its turn.
    pub(crate) fn look(&mut self) -> bool {
        let (brought, sent, round) = (self.brought, self.sent, self.round);
        let mut goes_on = true;
        self.moving = false;
        let chunks = self.chunks.iter_mut().flatten();
        for slot in chunks.flat_map(|chunk| chunk.iter_mut()) {
            if let Some(Slot::Open(_, Some(moving))) = slot {
                self.moving = true;
                goes_on &= moving.look(brought, sent, round);
            }
        }
        goes_on
    }

    /// Counts bytes that have come.
    fn note_brought(&mut self, bytes: &[u8]) {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.brought = self.brought.wrapping_add(count);
    }

    /// Bytes of a request that has started were moved, or asked for.
    fn note_progress(&mut self) {
        self.progress = self.progress.wrapping_add(1);
    }

    /// Returns whether a connection may begin, of an initiator to which all below `ack` are over: it has known no more
    /// before, and knows nothing that it was not told. Changes nothing: who says something else ends no other connection.
    pub(crate) fn may_connect(&mut self, ack: u64) -> bool {
        let first = self.first;
        first <= ack
            && ack <= self.next
            && (first..ack)
                .all(|id| !matches!(self.slot(id).as_deref(), Some(Some(Slot::Open(..)))))
    }

    /// The connection is over: what was half read comes again on the next one, if it comes at all.
    pub(crate) fn disconnected(&mut self) {
        if let Some(Reading::Request(_, _, coming)) = self.reading.take() {
            if coming.goes_on {
                // It has not.
                self.stops.stop_short(coming.flow, None);
            }
        }
    }

    /// A connection begins, of an initiator to which all below `ack` are over.
    pub(crate) fn connected(&mut self, ack: u64) -> Result<(), Broken> {
        // As one that was there before may be given up.
        self.disconnected();
        self.writing = None;
        self.fetching = None;
        if ack < self.first {
            // It has known more before.
            return Err(Broken::Value);
        }
        self.over(ack)?;
        (self.again, self.until) = (self.first, self.next);
        self.note_unread();
        self.stops.tell_again();
        // Requests that have no slot were not taken.
        let numbers = self.next.saturating_sub(self.first);
        self.refusals = usize::try_from(numbers).unwrap_or(usize::MAX);
        (self.refused, self.told_bare) = (self.first, self.first);
        // Bytes that were pulled are pulled again from where they have come to, others fetched from the start.
        let chunks = self.chunks.iter_mut().flatten();
        for slot in chunks.flat_map(|chunk| chunk.iter_mut()) {
            match slot {
                None => {}
                Some(Slot::Refused(told, _)) => *told = false,
                Some(Slot::Open(..) | Slot::Answered(_)) => {
                    self.refusals = self.refusals.saturating_sub(1);
                }
            }
            if let Some(Slot::Open(_, Some(moving))) = slot {
                moving.connections = moving.connections.saturating_add(1);
                moving.ask(false, self.sent);
                if moving.fetched {
                    moving.done = 0;
                }
                self.busy = true;
            }
        }
        Ok(())
    }

    /// A connection begins: notes whether the oldest answer is to be said on it.
    fn note_unread(&mut self) {
        let id = self.first;
        let is_answered = match self.slot(id) {
            // Also if there was no room to say it.
            Some(Some(Slot::Open(open, _))) => T::is_answered(open),
            Some(Some(_)) => true,
            // One that has no slot was not taken.
            None | Some(None) => id < self.next,
        };
        let (last, connections) = self.unread;
        let before = if last == id { connections } else { 0 };
        self.unread = (id, before.saturating_add(u32::from(is_answered)));
    }

    /// Takes out everything, as the session is over: `each` is given those that are open, and the start of
    /// those that move bytes.
    pub(crate) fn end_session(&mut self, mut each: impl FnMut(T::Open, Option<T::Start>)) {
        for place in self.chunks.iter_mut() {
            let Some(mut chunk) = place.take() else {
                continue;
            };
            for slot in chunk.iter_mut() {
                if let Some(Slot::Open(open, moving)) = slot.take() {
                    each(open, moving.map(|moving| moving.start));
                }
            }
        }
        (self.count, self.spare) = (0, None);
        (self.fetching, self.turn) = (None, 0);
        (self.busy, self.moving) = (false, false);
        (self.first, self.next, self.open) = (1, 1, 0);
        (self.again, self.until) = (1, 1);
        self.unread = (1, 0);
        (self.reading, self.writing) = (None, None);
        self.stops.clear();
        (self.refusals, self.refused, self.told_bare) = (0, 1, 1);
        (self.short, self.behind) = (false, false);
    }

    /// Returns the slot of a number.
    fn slot(&mut self, id: u64) -> Option<&mut LaneSlot<T>> {
        if !(self.first..self.next).contains(&id) {
            return None;
        }
        let (chunk, at) = self.place(id)?;
        self.chunks.get_mut(chunk)?.as_mut()?.get_mut(at)
    }

    /// Takes a header that was received.
    pub(crate) fn head(
        &mut self,
        target: &mut T,
        common: &Common,
        frame: &Frame<'_>,
    ) -> Result<(), Broken> {
        self.over(common.ack)?;
        match frame {
            Frame::Request(request) => self.request(target, common, request),
            Frame::Withdraw => {
                if common.id == 0 || common.id >= self.next {
                    return Err(Broken::Value);
                }
                if let Some(Some(Slot::Open(open, place))) = self.slot(common.id) {
                    target.withdraw(open);
                    // The rest of a frame of it is skipped, or has no meaning.
                    if let Some(moving) = place.take() {
                        target.end(moving.start, Moved::Withdrawn);
                    }
                }
                Ok(())
            }
            Frame::Data(offset) => self.data(common, *offset),
            Frame::Landed => self.landed(target, common.id),
            Frame::Ack | Frame::Unknown => Ok(()),
            // Not from an initiator, or not before it was asked for.
            _ => Err(Broken::Value),
        }
    }

    /// All requests below `ack` are over.
    fn over(&mut self, ack: u64) -> Result<(), Broken> {
        if ack > self.next {
            return Err(Broken::Value);
        }
        while self.first < ack {
            let id = self.first;
            let bare = id >= self.told_bare;
            let mut slot = self.slot(id);
            // An answer that is being sent again may have been read before.
            let untold = match slot.as_deref() {
                Some(Some(Slot::Open(..))) => return Err(Broken::Value),
                Some(Some(Slot::Answered(_))) => false,
                Some(Some(Slot::Refused(told, _))) => !*told,
                None | Some(None) => bare,
            };
            if let Some(slot) = &mut slot {
                **slot = None;
            }
            let untold = usize::from(untold);
            self.refusals = self.refusals.saturating_sub(untold);
            self.first = id.saturating_add(1);
            if self.place(self.first).is_some_and(|(_, at)| at == 0) {
                self.leave_chunk(id);
            }
        }
        self.again = self.again.max(self.first);
        Ok(())
    }

    fn request(
        &mut self,
        target: &mut T,
        common: &Common,
        request: &Request<'_>,
    ) -> Result<(), Broken> {
        if common.id < self.next {
            // It was read on an earlier connection, and its body is skipped.
            return Ok(());
        }
        if common.id > self.next || common.id.saturating_sub(self.first) >= self.numbers() {
            return Err(Broken::Value);
        }
        let flow = request.flow;
        if u32::from(flow) >= FLOWS {
            return Err(Broken::Value);
        }
        // Also of one that is not taken.
        let checked = target.check(request, common.body)?;
        let room = self.make_room(target);
        let goes_on = request.restarts && self.stops.go_on(flow);
        let why = self.stops.why_not(flow, || target.user_of(&checked));
        let partial = if why.is_some() {
            // It would overtake those that were not taken.
            Err(Refusal::NoRoom)
        } else {
            let alone = self.first == self.next;
            let begun = if room {
                target.begin(common.id, request, checked, alone)
            } else {
                Begun::NoMemory
            };
            match begun {
                Begun::Taken(partial) => Ok(partial),
                Begun::NoRoom(user) => Err(self.stop_short(flow, user)),
                Begun::NoMemory => Err(self.stop_short(flow, None)),
            }
        };
        let coming = Coming { flow, goes_on };
        match partial {
            Ok(partial) if common.body == 0 => self.arrive(target, partial, coming),
            Ok(partial) => self.reading = Some(Reading::Request(partial, 0, coming)),
            Err(refusal) if common.body == 0 => self.refuse(refusal),
            Err(refusal) => self.reading = Some(Reading::Refused(refusal)),
        }
        Ok(())
    }

    /// The next request is there, all of it.
    fn arrive(&mut self, target: &mut T, partial: T::Partial, coming: Coming) {
        let id = self.number_next();
        // The slot was made with its header.
        let open = match self.slot(id) {
            Some(_) => target.arrive(partial),
            None => None,
        };
        let Some(open) = open else {
            let refusal = self.stop_short(coming.flow, None);
            self.note_refused(id, refusal);
            return;
        };
        self.open = self.open.saturating_add(1);
        self.behind |= self.stops.why(coming.flow).is_some();
        if let Some(slot) = self.slot(id) {
            *slot = Some(Slot::Open(open, None));
        }
    }

    /// Stops the flow of a request for which there is no room: for the user who has none, or for all. So others
    /// go on, whatever that user does.
    fn stop_short(&mut self, flow: u16, user: User) -> Refusal {
        (self.short, self.behind) = (true, true);
        self.stops.stop_short(flow, user);
        Refusal::NoRoom
    }

    /// The next request is there, all of it, and is not taken.
    fn refuse(&mut self, refusal: Refusal) {
        let id = self.number_next();
        self.note_refused(id, refusal);
    }

    /// Returns the number of the next request, which is there, all of it.
    fn number_next(&mut self) -> u64 {
        let id = self.next;
        self.next = id.saturating_add(1);
        self.asked = self.asked.wrapping_add(1);
        id
    }

    /// Notes that the last request was not taken. Without a slot no more is known of it: then its flow is
    /// stopped, and for how long it has waited before the initiator knows.
    fn note_refused(&mut self, id: u64, refusal: Refusal) {
        self.refusals = self.refusals.saturating_add(1);
        if let Some(slot) = self.slot(id) {
            *slot = Some(Slot::Refused(false, refusal));
        }
    }

    /// Returns whether one request keeps so many others waiting that it is to be sent again later.
    pub(crate) fn is_pinned(&self) -> bool {
        let span = self.next.saturating_sub(self.first);
        span >= (self.numbers() / 2).max(1)
    }

    /// Takes requests back that wait for their receivers: those of flows that are stopped, as these go on when
    /// none of them is under way any more; and those of the flow of the oldest request, if that has waited for its
    /// receiver while many others came, or there was no room for others. So their numbers are over, and what others
    /// keep until then. Nothing has come that was not given to receivers. `now` is in milliseconds.
    ///
    /// Returns whether that could not be done now, and nobody says when it can: it is to be tried again
    /// soon.
    pub(crate) fn relieve(&mut self, target: &mut T, now: u64) -> bool {
        self.relieved = self.first;
        let behind = self.take_back_stopped(target, now);
        // Else all that were not taken have come again, and there was room.
        self.short &= self.has_stopped();
        let oldest = self.take_back_oldest(target, now);
        behind || oldest
    }

    /// Returns whether [`Self::relieve`] is to be called, as of flows that are stopped some requests may wait for their
    /// receivers, or another request has become the oldest while there was no room for others.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind || self.short && self.relieved != self.first
    }

    /// Takes back what waits of flows that are stopped; returns whether some may be left.
    ///
    /// One that is on its way keeps no other flow from going on, however long a user makes that. There are no
    /// more requests than [`Self::window`], which are looked at no more often than [`WALK_MILLIS`] says.
    fn take_back_stopped(&mut self, target: &mut T, now: u64) -> bool {
        if !self.behind {
            return false;
        }
        if now.wrapping_sub(self.walked) < WALK_MILLIS {
            return true;
        }
        (self.behind, self.walked) = (false, now);
        let mut passed = FlowSet::NONE;
        // The newest one first, so that none overtakes those before it.
        for id in (self.first..self.next).rev() {
            let (flow, user) = match self.slot(id) {
                // Others need not be looked for where they might wait.
                Some(Some(Slot::Open(open, None))) if target.is_waiting(open) => {
                    (T::flow(open), T::user(open))
                }
                _ => continue,
            };
            if self.stops.why(flow).is_none() || passed.contains(flow) {
                continue;
            }
            // From now on the flow is stopped for this user, too.
            if self.take_back(target, id, (flow, user), false, now) == Back::Later {
                passed.insert(flow);
                self.behind = true;
            }
        }
        self.behind
    }

    /// Stops the flow of the oldest request if that has to wait no longer, and takes back all that waits of it.
    ///
    /// When as many flows are stopped for receivers of its user as may be, those of the flow to that user fail
    /// that wait for a receive: else they would keep all flows from going on that others have. Those that wait
    /// for anything else do not fail, as their time does not run.
    ///
    /// Returns whether it is to be tried again soon.
    fn take_back_oldest(&mut self, target: &mut T, now: u64) -> bool {
        if !self.short && !self.is_pinned() {
            return false;
        }
        let (flow, user) = match self.slot(self.first) {
            Some(Some(Slot::Open(oldest, None))) if target.is_waiting(oldest) => {
                (T::flow(oldest), T::user(oldest))
            }
            // It ends by itself, or the initiator is about to say that it is over.
            _ => return false,
        };
        let fails = self.stops.why(flow).is_none() && !self.stops.has_room(user);
        let mut later = false;
        // As above.
        for id in (self.first..self.next).rev() {
            let Some(Some(Slot::Open(open, None))) = self.slot(id) else {
                continue;
            };
            if T::flow(open) != flow || fails && T::user(open) != user {
                continue;
            }
            if self.take_back(target, id, (flow, user), fails, now) == Back::Later {
                later = true;
                break;
            }
        }
        if later || fails {
            // Then not all that waits of it was taken back.
            self.behind |= self.stops.why(flow).is_some();
        }
        if !later {
            // If there is no room still, the next request that is not taken says so.
            self.short = false;
        }
        later
    }

    /// Takes a request back that waits for its receiver, and stops its flow for this user, or, with `fails` or if its
    /// time is over, has it fail if it waits for a receive.
    fn take_back(
        &mut self,
        target: &mut T,
        id: u64,
        (flow, user): (u16, User),
        fails: bool,
        now: u64,
    ) -> Back {
        let Some(slot @ Some(Slot::Open(..))) = self.slot(id) else {
            return Back::Never;
        };
        let Some(Slot::Open(open, _)) = slot else {
            return Back::Never;
        };
        let Some(awaits) = target.take_back(open) else {
            // One that was set aside has left the order.
            return if target.is_waiting(open) {
                Back::Later
            } else {
                Back::Never
            };
        };
        let refusal = match awaits {
            Awaits::Receive {
                compared: true,
                over,
                ..
            } if fails || over => Refusal::NoReceive,
            // The flow is stopped, but not before one was refused: the initiator knows by that.
            Awaits::Receive { millis, .. } => Refusal::NotReady(millis),
            // As above.
            Awaits::Room => Refusal::NoRoom,
        };
        *slot = Some(Slot::Refused(false, refusal));
        self.open = self.open.saturating_sub(1);
        self.refusals = self.refusals.saturating_add(1);
        self.refused = self.refused.min(id);
        if !matches!(refusal, Refusal::NoReceive) {
            self.stops.stop_not_ready(flow, user, now);
        }
        Back::Done
    }

    /// Notes which flows may go on that have been stopped for a while, of which the initiator is told;
    /// returns in how many milliseconds to look again, if there are others of which it is to be told.
    /// `now` is in milliseconds, too.
    pub(crate) fn let_go(&mut self, now: u64) -> Option<u64> {
        self.stops.look(now)
    }

    /// Returns whether flows are stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        !self.stops.is_empty()
    }

    /// Takes bytes of the body of the last frame; with `last` there are no more of them.
    pub(crate) fn body(&mut self, target: &mut T, bytes: &[u8], last: bool) {
        if self.reading.is_some() {
            self.note_brought(bytes);
        }
        match self.reading.take() {
            Some(Reading::Request(mut partial, offset, coming)) => {
                target.body(&mut partial, offset, bytes);
                if last {
                    let user = || T::partial_user(&partial);
                    if self.stops.why_not(coming.flow, user).is_some() {
                        // Since it has begun to come.
                        self.refuse(Refusal::NoRoom);
                    } else {
                        self.arrive(target, partial, coming);
                    }
                    return;
                }
                let offset = offset.saturating_add(bytes.len());
                self.reading = Some(Reading::Request(partial, offset, coming));
            }
            Some(Reading::Refused(refusal)) if last => self.refuse(refusal),
            Some(Reading::Refused(refusal)) => self.reading = Some(Reading::Refused(refusal)),
            Some(Reading::Data(id, offset)) => {
                let next = offset.saturating_add(bytes.len());
                if self.write(target, id, offset, bytes) && !last {
                    self.reading = Some(Reading::Data(id, next));
                }
            }
            None => {}
        }
    }

    /// Has bytes of the body of the last frame come straight to where they belong; `len` are left of it. Returns
    /// how many have. Nothing if that is not possible: what is left then is for [`Self::body`].
    pub(crate) fn receive(
        &mut self,
        target: &mut T,
        len: usize,
        input: &mut T::Input,
    ) -> Option<usize> {
        let Some(Reading::Data(id, offset)) = self.reading else {
            return None;
        };
        let Some(Some(Slot::Open(open, Some(_)))) = self.slot(id) else {
            return None;
        };
        let came = target.receive(open, offset, len, input);
        let count = came.unwrap_or(0);
        if came == Some(0) {
            return came;
        }
        self.brought = self
            .brought
            .wrapping_add(u64::try_from(count).unwrap_or(u64::MAX));
        let goes_on = self.note_written(target, id, offset.saturating_add(count), came.is_some());
        self.reading =
            (goes_on && count < len).then(|| Reading::Data(id, offset.saturating_add(count)));
        came
    }

    /// Takes the header of data that were pulled.
    fn data(&mut self, common: &Common, offset: u64) -> Result<(), Broken> {
        if common.id >= self.next {
            return Err(Broken::Value);
        }
        let round = self.round;
        let Some(Some(Slot::Open(_, Some(moving)))) = self.slot(common.id) else {
            // It has ended early.
            return Ok(());
        };
        let offset = usize::try_from(offset).map_err(|_| Broken::Value)?;
        let end = offset.checked_add(common.body).ok_or(Broken::Value)?;
        if moving.fetched || !moving.asked || offset != moving.done || end > moving.len {
            return Err(Broken::Value);
        }
        // The second one of this round, or not.
        let again = moving.round == round;
        moving.round = round.wrapping_add(u32::from(again));
        self.round = moving.round;
        self.reading = Some(Reading::Data(common.id, offset));
        Ok(())
    }

    /// Writes bytes that were pulled; returns whether more may be.
    fn write(&mut self, target: &mut T, id: u64, offset: usize, bytes: &[u8]) -> bool {
        let there = match self.slot(id) {
            Some(Some(Slot::Open(open, Some(_)))) => target.write(open, offset, bytes),
            _ => false,
        };
        self.note_written(target, id, offset.saturating_add(bytes.len()), there)
    }

    /// Bytes that were pulled have been written, up to `end`, or, if not, there is nowhere to put them; returns
    /// whether more may be.
    fn note_written(&mut self, target: &mut T, id: u64, end: usize, there: bool) -> bool {
        self.note_progress();
        let Some(Some(Slot::Open(_, place))) = self.slot(id) else {
            return false;
        };
        let Some(moving) = place else {
            return false;
        };
        moving.note_done(end);
        if there && moving.done < moving.len {
            return true;
        }
        if let Some(moving) = place.take() {
            let moved = if there { Moved::All } else { Moved::Lost };
            target.end(moving.start, moved);
        }
        false
    }

    /// The initiator has all that was fetched.
    fn landed(&mut self, target: &mut T, id: u64) -> Result<(), Broken> {
        if id >= self.next {
            return Err(Broken::Value);
        }
        let Some(Some(Slot::Open(_, place))) = self.slot(id) else {
            return Ok(());
        };
        let over = |moving: &mut Moving<T::Start>| moving.fetched && moving.asked;
        if let Some(moving) = place.take_if(over) {
            target.end(moving.start, Moved::All);
            self.note_progress();
        }
        Ok(())
    }

    /// Writes what is to be sent, as far as there is room; returns how many bytes.
    pub(crate) fn fill(&mut self, target: &mut T, out: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(room) = out.get_mut(done..).filter(|room| !room.is_empty()) {
            if let Some(fetching) = self.fetching {
                done = done.saturating_add(self.fill_fetched(target, fetching, room));
                continue;
            }
            if self.writing.is_none() {
                let mut told = self.fill_refusal(room);
                if told.is_none() && self.go_next {
                    told = self.fill_go(room);
                }
                if let Some(count) = told {
                    done = done.saturating_add(count);
                    continue;
                }
                self.go_next = true;
                self.collect(target);
                if self.busy && !self.answer_next {
                    self.answer_next = true;
                    if let Some(count) = self.fill_moving(room) {
                        done = done.saturating_add(count);
                        continue;
                    }
                }
                self.writing = self.next_answer(target);
                self.answer_next = false;
            }
            let Some(mut writing) = self.writing else {
                let count = match self.fill_moving(room) {
                    Some(count) => Some(count),
                    None => self.fill_go(room),
                };
                let Some(count) = count else {
                    break;
                };
                done = done.saturating_add(count);
                continue;
            };
            let next = self.next;
            let Some(Some(Slot::Answered(answer))) = self.slot(writing.id) else {
                // The initiator has it: only the frame that was begun is ended.
                let left = writing.announced.saturating_sub(writing.offset);
                let count = left.min(room.len());
                room.get_mut(..count).unwrap_or(&mut []).fill(0);
                writing.offset = writing.offset.saturating_add(count);
                done = done.saturating_add(count);
                self.writing = (count < left).then_some(writing);
                continue;
            };
            let Some(count) = writing.write(answer, next, room) else {
                break;
            };
            done = done.saturating_add(count);
            self.writing = (!writing.is_done(answer)).then_some(writing);
        }
        let count = u64::try_from(done).unwrap_or(u64::MAX);
        self.sent = self.sent.wrapping_add(count);
        done
    }

    /// Returns whether an answer of before this connection is to be sent again, which is that of
    /// [`Self::again`].
    fn says_again(&mut self) -> bool {
        while self.again < self.until {
            if let Some(Some(Slot::Answered(_))) = self.slot(self.again) {
                return true;
            }
            self.again = self.again.saturating_add(1);
        }
        false
    }

    /// Returns the next answer to be sent.
    fn next_answer(&mut self, target: &mut T) -> Option<Writing> {
        if self.says_again() {
            let id = self.again;
            self.again = id.saturating_add(1);
            return Some(Writing::new(id));
        }
        loop {
            let (id, answer) = target.answered()?;
            // Requests of an earlier session have no slot.
            if let Some(place @ Some(Slot::Open(..))) = self.slot(id) {
                let (response, ..) = answer.response();
                let open = place.replace(Slot::Answered(answer));
                self.open = self.open.saturating_sub(1);
                if let Some(Slot::Open(open, _)) = open {
                    if is_done(response.status) {
                        self.stops.note_done(T::flow(&open));
                    }
                }
                return Some(Writing::new(id));
            }
        }
    }

    /// Writes that a request was not taken. No more of these come at a time than there are numbers.
    fn fill_refusal(&mut self, room: &mut [u8]) -> Option<usize> {
        let next = self.next;
        while self.refusals != 0 && self.refused < next {
            let id = self.refused;
            let bare = id >= self.told_bare && id >= self.first;
            let refusal = match self.slot(id) {
                Some(Some(Slot::Refused(false, refusal))) => Some(*refusal),
                None | Some(None) if bare => Some(Refusal::NoRoom),
                _ => None,
            };
            if let Some(refusal) = refusal {
                let response = Frame::Response(refusal.response());
                let count = response.write(id, next, 0, room)?;
                match self.slot(id) {
                    Some(Some(Slot::Refused(told, _))) => *told = true,
                    _ => self.told_bare = id.saturating_add(1),
                }
                self.refusals = self.refusals.saturating_sub(1);
                self.refused = id.saturating_add(1);
                return Some(count);
            }
            self.refused = id.saturating_add(1);
        }
        None
    }

    /// Writes that a flow may go on, when it was said of all requests that were not taken. These and other frames take
    /// turns: flows are told again and again, and those of one user may be more than a slow network carries.
    fn fill_go(&mut self, room: &mut [u8]) -> Option<usize> {
        let is_all_said = self.refusals == 0 || self.refused >= self.next;
        let flow = self.stops.first_due().filter(|_| is_all_said)?;
        if self.says_again() {
            // An answer that is said again comes first.
            return None;
        }
        let count = Frame::Go(flow).write(0, self.next, 0, room)?;
        self.stops.tell();
        self.go_next = false;
        Some(count)
    }

    /// Notes the requests that have started.
    pub(crate) fn collect(&mut self, target: &mut T) {
        while let Some((id, len, fetched, start)) = target.started() {
            let Some(Some(Slot::Open(open, place @ None))) = self.slot(id) else {
                target.end(start, Moved::Lost);
                continue;
            };
            if target.is_withdrawn(open) {
                // Since before it has started.
                target.end(start, Moved::Withdrawn);
                continue;
            }
            *place = Some(Moving {
                start,
                len,
                fetched,
                done: 0,
                before: 0,
                since: 0,
                round: 0,
                looks: 0,
                connections: 0,
                pieces: 0,
                asked: false,
            });
            (self.busy, self.moving) = (true, true);
        }
    }

    /// Writes a `PULL`, or the header of what is fetched; each request has its turn.
    fn fill_moving(&mut self, room: &mut [u8]) -> Option<usize> {
        if !self.busy {
            return None;
        }
        let (first, next, brought) = (self.first, self.next, self.brought);
        let turn = self.turn.clamp(first, next);
        for id in (turn..next).chain(first..turn) {
            let Some(Some(Slot::Open(_, Some(moving)))) = self.slot(id) else {
                continue;
            };
            if moving.asked {
                continue;
            }
            let left = moving.len.saturating_sub(moving.done);
            let offset = u64::try_from(moving.done).ok()?;
            let mut fetching = None;
            let count = if moving.fetched {
                let body = left.min(PIECE);
                let count = Frame::Data(offset).write(id, next, body, room)?;
                let end = moving.done.saturating_add(body);
                fetching = Some(Fetching {
                    id,
                    offset: moving.done,
                    end,
                    failed: false,
                });
                moving.note_done(end);
                count
            } else {
                let len = u64::try_from(left).ok()?;
                let count = Frame::Pull { offset, len }.write(id, next, 0, room)?;
                moving.ask(true, brought);
                count
            };
            self.fetching = fetching;
            self.turn = id.saturating_add(1);
            self.note_progress();
            return Some(count);
        }
        self.busy = false;
        None
    }

    /// Writes more of what is fetched.
    fn fill_fetched(&mut self, target: &mut T, fetching: Fetching, room: &mut [u8]) -> usize {
        let Fetching {
            id,
            offset,
            end,
            mut failed,
        } = fetching;
        self.note_progress();
        let count = room.len().min(end.saturating_sub(offset));
        let to = room.get_mut(..count).unwrap_or(&mut []);
        let there = match self.slot(id) {
            Some(Some(Slot::Open(open, Some(_)))) if !failed => target.read(open, offset, to),
            _ => false,
        };
        if !there {
            failed = true;
            to.fill(0);
        }
        let offset = offset.saturating_add(count);
        self.fetching = (offset < end).then_some(Fetching {
            id,
            offset,
            end,
            failed,
        });
        if self.fetching.is_none() {
            let brought = self.brought;
            if let Some(Some(Slot::Open(_, place))) = self.slot(id) {
                if failed {
                    if let Some(moving) = place.take() {
                        target.end(moving.start, Moved::Lost);
                    }
                } else if let Some(moving) =
                    place.as_mut().filter(|moving| moving.done == moving.len)
                {
                    // The last piece.
                    moving.ask(true, brought);
                }
            }
        }
        count
    }

    /// Returns whether it is between two frames of what it sends.
    pub(crate) fn is_between(&self) -> bool {
        let writing = self.writing;
        self.fetching.is_none()
            && writing.is_none_or(|writing| writing.offset == writing.announced && !writing.told)
    }
}

impl Writing {
    /// Nothing of an answer was sent.
    fn new(id: u64) -> Self {
        Self {
            id,
            announced: 0,
            offset: 0,
            told: false,
        }
    }

    /// Returns whether all of it was sent.
    fn is_done(&self, answer: &impl Answer) -> bool {
        let (_, len, _) = answer.response();
        self.told && self.offset == len
    }

    /// Writes the next header, or more of a body; returns how many bytes. `None` if there is no room.
    fn write(&mut self, answer: &impl Answer, next: u64, room: &mut [u8]) -> Option<usize> {
        let (response, len, as_data) = answer.response();
        if self.offset < self.announced {
            let count = room.len().min(self.announced.saturating_sub(self.offset));
            answer.read(self.offset, room.get_mut(..count)?);
            self.offset = self.offset.saturating_add(count);
            return Some(count);
        }
        if as_data && self.offset < len {
            let body = len.saturating_sub(self.offset).min(PIECE);
            let offset = u64::try_from(self.offset).ok()?;
            let count = Frame::Data(offset).write(self.id, next, body, room)?;
            self.announced = self.offset.saturating_add(body);
            return Some(count);
        }
        let body = len.saturating_sub(self.offset);
        let count = Frame::Response(response).write(self.id, next, body, room)?;
        self.announced = len;
        self.told = true;
        Some(count)
    }
}
