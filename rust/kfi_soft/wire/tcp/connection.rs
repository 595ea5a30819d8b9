// SPDX-License-Identifier: GPL-2.0

//! A TCP connection that carries frames: the socket, and the bytes on their way in and out.

#![forbid(unsafe_code)]

use kernel::{
    alloc::KVec,
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
        MAX_HEAD, //
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

/// A point in time, in jiffies.
#[derive(Clone, Copy)]
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

    /// Returns the later one of this and another one.
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
    pub(super) input: Stream<KVec<u8>>,
    out: KVec<u8>,
    /// The bytes of `out` that are yet to be sent.
    start: usize,
    end: usize,
    /// The rest of a segment may wait for more.
    corked: bool,
    /// When something was last received.
    heard: Instant,
    /// For how many milliseconds the other side may be silent.
    timeout: u32,
    /// How many bytes were sent and received.
    moved: u64,
    /// It broke while bytes went straight to memory, or from there.
    broke: bool,
}

impl Connection {
    /// Takes a socket that is connected. `timeout` is for how many milliseconds the other side may be silent.
    pub(super) fn new(socket: TcpSocket, timeout: u32) -> Result<Self> {
        let mut this = Self::unconnected(socket, timeout)?;
        this.prepare()?;
        Ok(this)
    }

    /// Takes a socket that is yet to be connected. Nothing is sent or received before [`Self::prepare`].
    pub(super) fn unconnected(socket: TcpSocket, timeout: u32) -> Result<Self> {
        socket.set_nodelay();
        // Users of the connection look more closely while they wait for something.
        socket.set_user_timeout(timeout)?;
        let fifth = (timeout / 5000).clamp(1, 10);
        socket.set_keepalive(&KeepAlive {
            idle: fifth,
            interval: fifth,
            probes: 5,
        })?;
        Ok(Self {
            socket,
            input: Stream::new(KVec::new()),
            out: KVec::new(),
            start: 0,
            end: 0,
            corked: false,
            heard: Instant::now(),
            timeout,
            moved: 0,
            broke: false,
        })
    }

    /// Makes the memory for what is sent and received, when the socket is connected: those that never are
    /// need none. Does not wait for it.
    pub(super) fn prepare(&mut self) -> Result {
        self.input = Stream::new(KVec::zeroed(MAX_HEAD, GFP_NOWAIT)?);
        self.out = KVec::zeroed(OUT, GFP_NOWAIT)?;
        Ok(())
    }

    /// Returns the socket.
    pub(super) fn socket(&self) -> &TcpSocket {
        &self.socket
    }

    /// Returns when the other side was last heard of.
    pub(super) fn heard_of(&self) -> Instant {
        Instant::ago(self.socket.silence())
    }

    /// Has these told when there is something to be done, from now on. Does not wait for memory.
    pub(super) fn set_events<E: SocketEvents>(&self, events: Arc<E>) -> Result {
        self.socket.set_events(events)
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

    /// Receives what is there; `false` if that is nothing.
    pub(super) fn receive(&mut self) -> Result<bool, End> {
        let room = self.input.room();
        match self.socket.receive(room) {
            Ok(0) => Err(End::Broke),
            Ok(count) => {
                self.input.received(count);
                self.note_moved(count);
                self.heard = Instant::now();
                Ok(true)
            }
            Err(EAGAIN) => Ok(false),
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
                self.note_moved(count);
                self.heard = Instant::now();
                count
            }
            Err(EAGAIN) => 0,
            _ => {
                self.broke = true;
                0
            }
        }
    }

    /// Sends bytes from a place, up to `len`, when nothing else waits; returns how many. If it broke, [`Self::check`]
    /// says so.
    pub(super) fn send_from<D>(&mut self, place: &mut Cursor<'_, D>, len: usize) -> usize {
        match place.send(&self.socket, len, true) {
            Ok(count) if count != 0 => {
                self.corked = true;
                self.note_moved(count);
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
                    self.corked = more;
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
        if core::mem::take(&mut self.corked) {
            // TCP does that when it is told so, again, too.
            self.socket.set_nodelay();
        }
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
        if self.put(&Frame::Bye(code), 0, 0) {
            // If not, the other side finds out by itself.
            let _ = self.flush(false);
        }
        self.close();
    }

    /// Closes it.
    pub(super) fn close(self) {
        self.socket.clear_events();
    }
}
