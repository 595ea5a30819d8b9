// SPDX-License-Identifier: GPL-2.0

//! A TCP connection that carries frames: the socket, and the bytes on their way in and out.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Jiffies, //
    }, //
};

use super::{
    frame::{
        Frame,
        MAX_HEAD,
        MAX_OTHER, //
    },
    stream::Stream,
};
use crate::kfi::{
    linux::{
        socket::{
            KeepAlive,
            SocketEvents,
            TcpSocket, //
        },
        timeout::jiffies, //
    },
    memory::{
        self,
        Cursor, //
    }, //
};

/// Bytes that wait to be sent. Any header has room there.
const OUT: usize = 8 << 10;

/// Bodies of which at least as many bytes are left go straight from memory to the socket, and from there to
/// memory: shorter ones by way of the bytes that wait, with what is before and behind them.
pub(super) const STRAIGHT: usize = 4 << 10;

/// Behind a body that has gone straight no more bytes than these are received at first: the next one may go
/// straight, too.
const FIRST: usize = 256;

/// Bytes that went straight not longer ago than these milliseconds say that more of them are to be expected.
const BULK_MILLIS: u32 = 20;

/// When nothing has come for so many milliseconds, and nothing is on its way, a connection has no memory for it.
const REST_MILLIS: u32 = 1000;

/// When there is no memory, some is looked for again after so many milliseconds, and more rarely later.
const MEMORY_MILLIS: u32 = 5;
/// The longest time in between.
const MEMORY_LONGEST: u32 = 100;

/// A point in time, in jiffies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Instant(Jiffies);

impl Instant {
    /// Returns that of now.
    pub(super) fn now() -> Self {
        Self(jiffies())
    }

    /// Returns that of so many jiffies ago.
    pub(super) fn ago(age: Jiffies) -> Self {
        Self(jiffies().wrapping_sub(age))
    }

    /// Returns that of so many jiffies from now.
    pub(super) fn within(delay: Jiffies) -> Self {
        Self(jiffies().wrapping_add(delay))
    }

    /// Returns whether it comes before another one, of which it is not far.
    pub(super) fn is_before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Returns the later one of this and another one, both of which are over.
    pub(super) fn later(self, other: Self) -> Self {
        if self.age() < other.age() {
            self
        } else {
            other
        }
    }

    /// Returns how long ago it was, in jiffies.
    pub(super) fn age(self) -> Jiffies {
        jiffies().wrapping_sub(self.0)
    }

    /// Returns how long ago it was, in milliseconds.
    pub(super) fn millis(self) -> u32 {
        self.age()
            .saturating_mul(1000)
            .checked_div(msecs_to_jiffies(1000))
            .and_then(|millis| u32::try_from(millis).ok())
            .unwrap_or(u32::MAX)
    }

    /// Returns what is left of so many milliseconds after it, in jiffies; none if they are over.
    pub(super) fn left(self, millis: u32) -> Option<Jiffies> {
        let whole = msecs_to_jiffies(millis);
        whole.checked_sub(self.age()).filter(|left| *left != 0)
    }
}

/// Why a connection is given up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It broke, or the other side has closed it.
    Broke,
    /// The other side breaks the protocol.
    Broken,
    /// The other side has lost what it has known of the session, or does not go on with it.
    Lost,
    /// There is no memory.
    NoMemory,
    /// The other side said `BYE`, with this code.
    Bye(u32),
}

/// A connection.
pub(super) struct Connection {
    socket: TcpSocket,
    /// The bytes that were received.
    pub(super) input: Stream<KVVec<u8>>,
    out: KVVec<u8>,
    /// The bytes of `out` that are yet to be sent.
    start: usize,
    end: usize,
    /// The rest of a segment may wait for more.
    corked: bool,
    /// It does, whatever is acknowledged meanwhile.
    held_back: bool,
    /// When something was last received.
    heard: Instant,
    /// When the other side was there, as far as is known without asking.
    alive: Instant,
    /// For how many milliseconds the other side may be silent.
    timeout: u32,
    /// How many bytes were sent and received.
    moved: u64,
    /// It broke while bytes went straight to memory, or from there.
    broke: bool,
    /// There may be something to be received of which nobody is told.
    unread: bool,
    /// The bytes that were last received went straight to memory.
    behind_straight: bool,
    /// When bytes last went straight to memory, or from there.
    straight_at: Option<Instant>,
    /// When the memory for what is sent and received was made.
    roused: Instant,
    /// Since when there has been none, while it is wanted.
    short: Option<Instant>,
}

impl Connection {
    /// Takes a socket that is connected. `timeout` is for how many milliseconds the other side may be silent.
    pub(super) fn new(socket: TcpSocket, timeout: u32) -> Result<Self> {
        let mut this = Self::unconnected(socket, timeout)?;
        this.prepare()?;
        Ok(this)
    }

    /// Takes a socket that is yet to be connected. Nothing is sent or received before [`Self::rouse`]: those that
    /// never are connected need no memory.
    pub(super) fn unconnected(socket: TcpSocket, timeout: u32) -> Result<Self> {
        socket.set_nodelay();
        // Users of the connection look more closely while they wait for something.
        socket.set_user_timeout(timeout)?;
        let fifth = (timeout / 5000).clamp(1, 10);
        let now = Instant::now();
        socket.set_keepalive(&KeepAlive {
            idle: fifth,
            interval: fifth,
            probes: 5,
        })?;
        Ok(Self {
            socket,
            input: Stream::new(KVVec::new()),
            out: KVVec::new(),
            start: 0,
            end: 0,
            corked: false,
            held_back: false,
            heard: now,
            alive: now,
            timeout,
            moved: 0,
            broke: false,
            unread: true,
            behind_straight: false,
            straight_at: None,
            roused: now,
            short: None,
        })
    }

    /// Makes the memory for what is sent and received: single pages will do. Does not wait for it.
    fn prepare(&mut self) -> Result {
        let input = KVVec::zeroed(MAX_HEAD, GFP_NOWAIT)?;
        self.out = KVVec::zeroed(OUT, GFP_NOWAIT)?;
        self.input = Stream::new(input);
        self.roused = Instant::now();
        Ok(())
    }

    /// Returns whether there is no memory for what is sent and received: it is yet to be connected, or rests.
    pub(super) fn is_at_rest(&self) -> bool {
        self.out.is_empty()
    }

    /// Makes the memory for what is sent and received, if there is none yet, and what `others` make, who do not
    /// wait for it; `false` if that is not to be had now: then it is wanted again after [`Self::shortage`]. The
    /// connection is over if there is none for long. It is not waited for, as others wait for the thread that
    /// does.
    pub(super) fn rouse(&mut self, others: impl FnOnce() -> Result) -> Result<bool, End> {
        if (!self.is_at_rest() || self.prepare().is_ok()) && others().is_ok() {
            self.short = None;
            return Ok(true);
        }
        let since = *self.short.get_or_insert_with(Instant::now);
        since.left(self.timeout).map(|_| false).ok_or(End::NoMemory)
    }

    /// No memory is wanted any more.
    pub(super) fn forget_shortage(&mut self) {
        self.short = None;
    }

    /// Returns after how many jiffies memory is to be looked for again, if there was none.
    pub(super) fn shortage(&self) -> Option<Jiffies> {
        let millis = self.short?.millis() / 4;
        Some(msecs_to_jiffies(
            millis.clamp(MEMORY_MILLIS, MEMORY_LONGEST),
        ))
    }

    /// Returns whether bytes wait for room to be sent.
    pub(super) fn is_blocked(&self) -> bool {
        self.start != self.end
    }

    /// Gives memory back, as nothing is under way, unless something has come not long ago; returns in how many
    /// jiffies it is to be tried again. A machine may have thousands of connections that nobody uses.
    pub(super) fn rest(&mut self) -> Option<Jiffies> {
        let is_empty = self.input.is_between() && !self.is_blocked() && !self.corked;
        if self.is_at_rest() || !is_empty {
            return None;
        }
        // Not at once either if nothing has come of it.
        let left = self.heard.later(self.roused).left(REST_MILLIS);
        if left.is_none() {
            self.input = Stream::new(KVVec::new());
            self.out = KVVec::new();
        }
        left
    }

    /// Returns the socket.
    pub(super) fn socket(&self) -> &TcpSocket {
        &self.socket
    }

    /// Returns when the other side was last heard of.
    pub(super) fn heard_of(&self) -> Instant {
        Instant::ago(self.socket.silence())
    }

    /// Returns how long the other side may still be silent, which it may be for so many milliseconds after it was
    /// heard of; none if that is over.
    pub(super) fn silence_left(&mut self, millis: u32) -> Option<Jiffies> {
        let left = self.alive.left(millis);
        if left.is_some() {
            return left;
        }
        // TCP knows of acknowledgements, too. It is not asked more often, as that takes the lock of the socket.
        self.alive = self.heard_of();
        self.alive.left(millis)
    }

    /// Has these told when there is something to be done, from now on. Does not wait for memory.
    pub(super) fn set_events<E: SocketEvents>(&mut self, events: Arc<E>) -> Result {
        // Nobody has told these of what is there already.
        self.unread = true;
        self.socket.set_events(events)
    }

    /// They were told of something to be received, or that the connection has changed.
    pub(super) fn note_told(&mut self) {
        self.unread = true;
    }

    /// Returns whether there may be something to be received.
    pub(super) fn may_receive(&self) -> bool {
        self.unread
    }

    /// Counts bytes that were sent or received.
    fn note_moved(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.moved = self.moved.saturating_add(count);
    }

    /// Returns how many bytes were sent and received.
    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    /// So many bytes were received.
    fn note_received(&mut self, count: usize) {
        self.note_moved(count);
        self.heard = Instant::now();
        self.alive = self.heard;
    }

    /// Receives what is there; `false` if that is nothing. It has memory.
    pub(super) fn receive(&mut self) -> Result<bool, End> {
        let few = self.behind_straight && self.input.is_between();
        let room = self.input.room();
        let most = if few { FIRST } else { room.len() };
        let most = most.min(room.len());
        match self.socket.receive(room.get_mut(..most).unwrap_or(&mut [])) {
            Ok(0) => Err(End::Broke),
            Ok(count) => {
                self.behind_straight = false;
                self.input.received(count);
                self.note_received(count);
                // What has come since is told.
                self.unread = count == most || self.socket.has_more_to_tell();
                Ok(true)
            }
            Err(EAGAIN) => {
                self.unread = false;
                Ok(false)
            }
            Err(_) => Err(End::Broke),
        }
    }

    /// Returns how many bytes come next that may go straight to memory; 0 if that is not worth it.
    pub(super) fn straight(&self) -> usize {
        let len = self.input.body_to_come();
        if len < STRAIGHT {
            0
        } else {
            len
        }
    }

    /// Receives some of [`Self::straight`] to a place, up to `len`; returns how many. If it broke, [`Self::check`]
    /// says so.
    pub(super) fn receive_to(
        &mut self,
        place: &mut Cursor<'_, memory::Target>,
        len: usize,
    ) -> usize {
        match place.receive(&self.socket, len) {
            Ok(count) if count != 0 => {
                self.input.pass(count);
                self.note_received(count);
                self.behind_straight = true;
                self.straight_at = Some(self.heard);
                count
            }
            Err(EAGAIN) => {
                self.unread = false;
                0
            }
            _ => {
                self.broke = true;
                0
            }
        }
    }

    /// Sends bytes from a place, up to `len`, when nothing else waits; returns how many. If it broke, [`Self::check`]
    /// says so.
    pub(super) fn send_from<D>(&mut self, place: &mut Cursor<'_, D>, len: usize) -> usize {
        if !self.held_back {
            // Else each acknowledgement would send the rest of a segment, though more is to follow at once: one
            // segment more for each frame.
            self.socket.set_cork(true);
            (self.corked, self.held_back) = (true, true);
        }
        match place.send(&self.socket, len, true) {
            Ok(count) if count != 0 => {
                self.note_moved(count);
                self.straight_at = Some(Instant::now());
                count
            }
            Err(EAGAIN) => 0,
            _ => {
                self.broke = true;
                0
            }
        }
    }

    /// Returns whether it has broken as bytes went straight.
    pub(super) fn check(&self) -> Result<(), End> {
        if self.broke {
            Err(End::Broke)
        } else {
            Ok(())
        }
    }

    /// Returns how long the other side may still take to go on with what it has begun to send; none if
    /// it has begun nothing. TCP watches over those that are gone, and not over those that are there and do
    /// not go on.
    pub(super) fn patience(&self) -> Result<Option<Jiffies>, End> {
        if self.input.is_between() {
            return Ok(None);
        }
        self.heard.left(self.timeout).map(Some).ok_or(End::Lost)
    }

    /// Sends what waits; `false` if not all of it could be sent, and it will be told when more can.
    /// With `more` the rest of a segment waits for that, or for [`Self::push`].
    pub(super) fn flush(&mut self, more: bool) -> Result<bool, End> {
        while let Some(bytes) = self.out.get(self.start..self.end) {
            if bytes.is_empty() {
                break;
            }
            match self.socket.send(bytes, more) {
                Ok(count) => {
                    self.start = self.start.saturating_add(count);
                    self.corked = more || self.held_back;
                    self.note_moved(count);
                }
                Err(EAGAIN) => return Ok(false),
                Err(_) => return Err(End::Broke),
            }
        }
        (self.start, self.end) = (0, 0);
        Ok(true)
    }

    /// There is no more for now: bytes that wait for more are sent.
    pub(super) fn push(&mut self) {
        if core::mem::take(&mut self.held_back) {
            self.socket.set_cork(false);
        } else if self.corked {
            // TCP does that when it is told so, again, too.
            self.socket.set_nodelay();
        }
        self.corked = false;
    }

    /// Returns room for bytes that are to be sent.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.out.get_mut(self.end..).unwrap_or(&mut [])
    }

    /// So many bytes were put there.
    pub(super) fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.out.len());
    }

    /// Puts a frame without a body behind what waits; `false` if there is no room.
    pub(super) fn put(&mut self, frame: &Frame<'_>, id: u64, ack: u64) -> bool {
        let count = frame.write(id, ack, 0, self.room());
        self.filled(count.unwrap_or(0));
        count.is_some()
    }

    /// Says why it is over, if that can be sent at once, and closes it. Between two frames only.
    pub(super) fn bye(mut self, code: u32) {
        let frame = Frame::Bye(code);
        // If it cannot be sent, the other side finds out by itself.
        if self.is_at_rest() {
            let mut bytes = [0; MAX_OTHER];
            let count = frame.write(0, 0, 0, &mut bytes);
            let said = count.and_then(|count| bytes.get(..count));
            let _ = self.socket.send(said.unwrap_or(&[]), false);
        } else if self.put(&frame, 0, 0) {
            let _ = self.flush(false);
        }
        self.close();
    }

    /// Closes it. What was sent still goes out.
    pub(super) fn close(self) {
        self.socket.clear_events();
    }

    /// Closes it, as nobody reads any more what was sent, or may. That takes no memory any more: else whoever connects
    /// again and again, and reads nothing, would have some of each connection.
    pub(super) fn reset(self) {
        self.socket.clear_events();
        self.socket.reset();
    }

    /// Returns after how many jiffies it is to be tried again to send, while something `waits` for room. That is told,
    /// unless nothing is under way whose end would be: then there was no memory. The kernel may tell all the same, and at
    /// once, as it does for programs that poll; then it is tried again before.
    pub(super) fn no_room(&self, waits: bool) -> Option<Jiffies> {
        let is_told = !waits || self.socket.unacknowledged() != 0;
        (!is_told).then(|| msecs_to_jiffies(MEMORY_LONGEST))
    }

    /// Returns whether anything of what was sent has not come to the other side.
    pub(super) fn is_under_way(&self) -> bool {
        self.socket.unacknowledged() != 0
    }

    /// Returns whether there is much to be copied: bytes went straight to memory, or from there, not long ago.
    pub(super) fn is_bulk(&self) -> bool {
        self.straight_at
            .is_some_and(|at| at.left(BULK_MILLIS).is_some())
    }

    /// Returns whether much of what was sent has not come to the other side.
    pub(super) fn is_behind(&self) -> bool {
        self.socket.unacknowledged() > OUT
    }
}
