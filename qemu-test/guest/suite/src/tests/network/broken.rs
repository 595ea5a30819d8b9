// SPDX-License-Identifier: GPL-2.0

//! Peers that break the protocol: they are told so, and nothing of what they say is used.

use std::net::{Ipv4Addr, TcpListener};

use kfi::{bits, Form, KfiErrno, Operation};

use super::frame::{Frame, Kind};
use super::peer::{Hello, Peer};
use super::{load_network, Node, DONE, HERE, PATIENT, THERE};
use crate::check::{Outcome, Stop};
use crate::ends::{done, expect, expect_error};
use crate::env::Env;
use crate::{check, check_eq};

/// Both ends of a connection from a peer.
const BOTH: (Ipv4Addr, Ipv4Addr) = (THERE, HERE);

/// Codes of a `BYE`.
const VERSION: u32 = 1;
const STRANGER: u32 = 2;
const OLD: u32 = 3;
const BROKEN: u32 = 4;
const MANY: u32 = 5;

/// So many connections of a session may break the protocol.
const STRIKES: usize = 3;

/// Types of frames.
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const PROOF: u8 = 3;
const REQUEST: u8 = 17;
const DATA: u8 = 18;
const WITHDRAW: u8 = 19;
const ACK: u8 = 20;
const LANDED: u8 = 21;
const RESPONSE: u8 = 32;
const PULL: u8 = 33;
const GO: u8 = 34;
/// One of a later version.
const LATER: u8 = 99;

/// Where members of all frames are, and those of a request.
const HEAD: usize = 2;
const ACKNOWLEDGED: usize = 16;
const KIND: usize = 24;
const FORM: usize = 25;
const OPERATION: usize = 26;
const DATATYPE: usize = 27;
const TO: usize = 30;
const RANGES: usize = 34;
const KEY: usize = 36;
const FLOW: usize = 38;
const LEN: usize = 56;
/// The length of the first range.
const RANGE_LEN: usize = 88;

/// Flags of a request: the context is that of the receiver; and the data come along.
const NAMED: u8 = 1;
const EAGER: u8 = 4;

/// Kinds of a request.
const MESSAGE: u8 = 1;
const READ: u8 = 4;
const ATOMIC: u8 = 7;

/// Of `enum kfi_op` and `enum kfi_datatype`.
const SUM: u8 = 2;
const ATOMIC_READ: u8 = 10;
const UINT64: u8 = 7;

/// The key of a region of the node.
const REGION: u64 = 5;

/// A frame, which need not be one that the protocol allows.
#[derive(Clone)]
struct Raw(Vec<u8>);

impl Raw {
    /// A header of a type with so many bytes, and of nothing but zeros besides. Nothing is over yet.
    fn new(kind: u8, head: u16) -> Self {
        let mut bytes = vec![0; usize::from(head).max(24)];
        bytes[0] = kind;
        Self(bytes)
            .with(HEAD, &head.to_le_bytes())
            .with(ACKNOWLEDGED, &1u64.to_le_bytes())
    }

    /// Of a request.
    fn of(kind: u8, head: u16, id: u64) -> Self {
        Self::new(kind, head).with(8, &id.to_le_bytes())
    }

    /// A message of no bytes to a port.
    fn message(id: u64, port: u16) -> Self {
        Self::of(REQUEST, 80, id)
            .with(1, &[NAMED | EAGER])
            .with(KIND, &[MESSAGE])
            .with(TO, &port.to_le_bytes())
    }

    /// An operation on a range of so many bytes.
    fn on_range(port: u16, kind: u8, len: u64) -> Self {
        let mut this = Self::message(1, port);
        this.0.resize(104, 0);
        this.with(HEAD, &104u16.to_le_bytes())
            .with(KIND, &[kind])
            .with(RANGES, &1u16.to_le_bytes())
            .with(LEN, &len.to_le_bytes())
            .with(RANGE_LEN, &len.to_le_bytes())
    }

    /// An atomic on a range of so many bytes, with so many in its body.
    fn atomic(port: u16, [form, op]: [u8; 2], len: u64, body: usize) -> Self {
        Self::on_range(port, ATOMIC, len)
            .with(FORM, &[form])
            .with(OPERATION, &[op])
            .with(DATATYPE, &[UINT64])
            .body(body)
    }

    /// With other bytes in a place.
    fn with(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// With a body of so many bytes.
    fn body(self, len: usize) -> Self {
        let mut this = self.with(4, &(len as u32).to_le_bytes());
        this.0.resize(this.0.len() + len, 0);
        this
    }

    /// With another frame behind it.
    fn then(mut self, other: &Self) -> Self {
        self.0.extend_from_slice(&other.0);
        self
    }
}

/// A change of what somebody says of itself.
type Change = fn(&mut Hello);

/// Frames that no initiator may send before all others, and why.
fn of_initiators(port: u16) -> Vec<(&'static str, Raw)> {
    let message = |id| Raw::message(id, port);
    let ack = |ack: u64| Raw::new(ACK, 24).with(ACKNOWLEDGED, &ack.to_le_bytes());
    let of_len = |len: u64| message(1).with(LEN, &len.to_le_bytes());
    vec![
        ("a number that jumps", message(2)),
        ("no number", message(0)),
        ("more is over than was sent", ack(2)),
        ("something is over that is not", message(1).then(&ack(2))),
        ("no such kind", message(1).with(KIND, &[8])),
        ("no such form", Raw::atomic(port, [3, SUM], 8, 8)),
        ("a form of a message", message(1).with(FORM, &[1])),
        (
            "no such port",
            message(1).with(TO, &0x1000u16.to_le_bytes()),
        ),
        (
            "no such flow",
            message(1).with(FLOW, &4096u16.to_le_bytes()),
        ),
        ("too many bytes", of_len((1 << 30) + 1).with(1, &[NAMED])),
        ("a body that is missing", of_len(8)),
        ("more bytes than it was told", of_len(16385).body(16385)),
        (
            "no bytes that are to be pulled",
            message(1).with(1, &[NAMED]),
        ),
        ("ranges of a message", {
            Raw::on_range(port, MESSAGE, 8).body(8)
        }),
        ("a range that is missing", {
            message(1)
                .with(KIND, &[READ])
                .with(RANGES, &1u16.to_le_bytes())
        }),
        ("too many ranges", {
            let request = Raw::on_range(port, READ, 8);
            request.with(RANGES, &257u16.to_le_bytes())
        }),
        ("a range of another length", {
            let request = Raw::on_range(port, READ, 8).with(1, &[NAMED]);
            request.with(RANGE_LEN, &16u64.to_le_bytes())
        }),
        ("ranges without end", {
            let request = Raw::on_range(port, READ, 8).with(1, &[NAMED]);
            request.with(RANGE_LEN, &u64::MAX.to_le_bytes())
        }),
        ("data of a read", Raw::on_range(port, READ, 8).body(8)),
        (
            "a key that is too long",
            message(1).with(KEY, &65u16.to_le_bytes()),
        ),
        (
            "a key that is missing",
            message(1).with(KEY, &8u16.to_le_bytes()),
        ),
        ("no elements", Raw::atomic(port, [0, SUM], 0, 0)),
        ("too many elements", Raw::atomic(port, [0, SUM], 4104, 4104)),
        ("half an element", Raw::atomic(port, [0, SUM], 4, 4)),
        ("no such operation", Raw::atomic(port, [0, 77], 8, 8)),
        (
            "operands of a read",
            Raw::atomic(port, [1, ATOMIC_READ], 8, 8),
        ),
        ("no operands of a sum", Raw::atomic(port, [1, SUM], 8, 0)),
        ("nothing to compare with", Raw::atomic(port, [2, 12], 8, 8)),
        ("data of nothing", Raw::of(DATA, 32, 1).body(8)),
        ("data of no number", Raw::of(DATA, 32, 0).body(8)),
        ("data of no bytes", Raw::of(DATA, 32, 1)),
        ("data behind all", {
            let behind = (1u64 << 30) + 1;
            Raw::of(DATA, 32, 1).with(24, &behind.to_le_bytes()).body(8)
        }),
        ("nothing has landed", Raw::of(LANDED, 24, 1)),
        ("nothing is withdrawn", Raw::of(WITHDRAW, 24, 1)),
        ("no number is withdrawn", Raw::of(WITHDRAW, 24, 0)),
        ("an answer", Raw::of(RESPONSE, 48, 1)),
        ("an answer that is none", {
            Raw::of(RESPONSE, 48, 1).with(24, &5000u32.to_le_bytes())
        }),
        ("a wish for bytes", Raw::of(PULL, 40, 1).with(32, &[8])),
        ("a wish for no bytes", Raw::of(PULL, 40, 1)),
        ("a flow that goes on", Raw::new(GO, 32)),
        ("another proof", Raw::new(PROOF, 56)),
        ("a greeting of something else", Raw::new(HELLO, 160)),
        ("an answer to a greeting", Raw::new(WELCOME, 160)),
        ("a header that is too short", Raw::new(ACK, 16)),
        ("a header of an odd length", Raw::new(ACK, 28)),
        ("a header that is too long", Raw::new(ACK, (1 << 14) + 8)),
        (
            "a header that is too short for a request",
            Raw::of(REQUEST, 72, 1),
        ),
        ("a body that is too long", {
            Raw::new(LATER, 24).with(4, &((1u32 << 20) + 1).to_le_bytes())
        }),
        ("a body of what has none", Raw::new(ACK, 24).body(8)),
    ]
}

/// Says something that breaks the protocol, and is told so.
fn be_told(peer: &mut Peer, what: &str, said: &Raw) -> Outcome {
    peer.say(&said.0)?;
    let code = peer
        .farewell()
        .map_err(|stop| Stop::fail(format!("{what}: {stop:?}")))?;
    check_eq!(code, BROKEN, "{what}");
    Ok(())
}

/// An initiator that breaks the protocol is told so, and nothing of what it has said is done.
pub(super) fn initiator(env: &Env) -> Outcome {
    // Messages wait for their receives.
    let _modules = load_network(env, &format!("{PATIENT} rnr_timeout=600000"))?;
    let node = Node::open(env, 4096)?;
    // Each in a session of its own, which ends what there is of the last one.
    let mut session = 0;
    let mut begin = || {
        session += 1;
        Peer::connect(THERE, HERE, session)
    };
    for (what, said) in of_initiators(node.port) {
        be_told(&mut begin()?, what, &said)?;
    }
    // What is of a later version is skipped, with its body; and a header may be longer.
    let mut peer = begin()?;
    peer.say(&Raw::new(LATER, 64).body(100).0)?;
    peer.say(&Raw::of(LATER, 24, 7).0)?;
    peer.say(&Raw::new(ACK, 16384).0)?;
    node.end.recv(node.buffer.segment(0..64), 7)?;
    peer.message(1, node.port, false, 0)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (1, 0));
    expect(&node.end.rx, 7, done::RECV_, 0)?;
    node.end.quiet()?;
    node.close()
}

/// Asks for something of which bytes are moved, until it is the initiator's turn.
fn with_data(node: &Node, peer: &mut Peer, what: &str, kind: Kind) -> Outcome {
    const WANTED: u64 = 64;
    if kind == Kind::Message {
        node.end.recv(node.buffer.segment(0..WANTED), 7)?;
        peer.request(1, kind, (node.port, WANTED), None)?;
        check_eq!(peer.pulled()?, (1, 0, WANTED), "{what}");
        return Ok(());
    }
    peer.request(1, kind, (node.port, node.buffer.size()), Some(REGION))?;
    let mut there = 0;
    while there < node.buffer.size() {
        let (offset, bytes) = peer.bytes_of(1)?;
        check_eq!(offset, there, "{what}");
        there += bytes.len() as u64;
    }
    Ok(())
}

/// So is one whose data are not those that it was asked for.
pub(super) fn data_of_an_initiator(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, 1 << 20)?;
    let region = node.register(bits::REMOTE_READ | bits::REMOTE_WRITE, REGION)?;
    let data = |offset: u64, len| {
        let frame = Raw::of(DATA, 32, 1).with(24, &offset.to_le_bytes());
        frame.body(len)
    };
    let cases = [
        ("data from the middle on", Kind::Message, data(8, 8)),
        ("more data than there are", Kind::Message, data(0, 65)),
        (
            "the same data again",
            Kind::Message,
            data(0, 8).then(&data(0, 8)),
        ),
        ("data of what is read", Kind::Read, data(0, 8)),
    ];
    let mut session = 0;
    let mut begin = || {
        session += 1;
        Peer::connect(THERE, HERE, session)
    };
    for (what, kind, said) in cases {
        let mut peer = begin()?;
        with_data(&node, &mut peer, what, kind)?;
        be_told(&mut peer, what, &said)?;
        // With the next session the last one is over.
        let mut peer = begin()?;
        if kind == Kind::Message {
            expect_error(&node.end.rx, 7, KfiErrno::EHOSTUNREACH)?;
        }
        // Nobody has this key.
        peer.request(1, Kind::Read, (node.port, 8), Some(6))?;
        check_eq!(peer.response()?.0, 1, "{what}");
    }
    node.end.quiet()?;
    region.close().map_err(|(_, error)| error)?;
    node.close()
}

/// A session whose connections break the protocol too often has no more of them, and the next one has.
pub(super) fn too_often(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, 4096)?;
    let (mut peer, birth) = Peer::begin(BOTH, 1)?;
    for strike in 1..=STRIKES {
        be_told(&mut peer, "an answer", &Raw::of(RESPONSE, 48, 1))?;
        if strike < STRIKES {
            (peer, _) = Peer::resume(BOTH, (1, birth), 1)?;
        }
    }
    let (_, said) = Peer::call_as(BOTH, 1, |hello| hello.birth = birth)?;
    let answer = Frame::parse(&said.welcome).map(|(_, frame)| frame);
    check_eq!(answer, Ok(Frame::Bye(BROKEN)));
    let (mut peer, other) = Peer::begin(BOTH, 2)?;
    check!(other != birth, "it is the same session");
    node.end.recv(node.buffer.segment(0..64), 7)?;
    peer.message(1, node.port, false, 0)?;
    let (id, response) = peer.response()?;
    check_eq!((id, response.status), (1, 0));
    drop(peer);
    node.close()
}

/// Greetings that do not belong to the node, and those of sessions that are over, are answered with why that is so.
pub(super) fn greetings(env: &Env) -> Outcome {
    const SESSION: u64 = 5;
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, 4096)?;
    let (mut peer, birth) = Peer::begin(BOTH, SESSION)?;
    // Two requests are over.
    for id in [1, 2] {
        peer.request(id, Kind::Message, (0xfff, 64), None)?;
        check_eq!(peer.response()?.0, id);
    }
    peer.acknowledge(3)?;
    // Then that was read.
    peer.request(3, Kind::Message, (0xfff, 64), None)?;
    check_eq!(peer.response()?.0, 3);

    let refused: [(&str, u32, Change); 7] = [
        ("another version", VERSION, |hello| {
            // Nothing else of it is looked at.
            (hello.major, hello.source, hello.session) = (2, 77, 0);
        }),
        ("another source", STRANGER, |hello| hello.source += 1),
        ("another target", STRANGER, |hello| hello.target += 1),
        ("another fabric", STRANGER, |hello| hello.source |= 1 << 20),
        ("several lanes", MANY, |hello| hello.lanes = 2),
        ("another lane", MANY, |hello| {
            (hello.lane, hello.lanes) = (1, 2);
        }),
        ("an old session", OLD, |hello| hello.session = SESSION - 1),
    ];
    for (what, code, change) in refused {
        let (mut stranger, said) = Peer::call_as(BOTH, SESSION, change)?;
        let answer = Frame::parse(&said.welcome).map(|(_, frame)| frame);
        check_eq!(answer, Ok(Frame::Bye(code)), "{what}");
        stranger.ends_silently()?;
    }
    // One that has known another session of this number is told which one it is.
    let (mut stranger, said) = Peer::call_as(BOTH, SESSION, |hello| hello.birth = birth ^ 1)?;
    match Frame::parse(&said.welcome) {
        Ok((_, Frame::Welcome(welcome, _))) => check_eq!(welcome.birth, birth),
        other => return Err(Stop::fail(format!("{other:?}"))),
    }
    check_eq!(stranger.farewell()?, OLD);
    // Nobody has ended the connection that was there.
    peer.request(4, Kind::Message, (0xfff, 64), None)?;
    check_eq!(peer.response()?.0, 4);

    // Those that know less, or more, than was said.
    for ack in [2, 6] {
        let mut old = Peer::open(THERE, HERE)?;
        let hello = Raw(said.hello.clone())
            .with(ACKNOWLEDGED, &u64::to_le_bytes(ack))
            .with(72, &birth.to_le_bytes());
        old.say(&hello.0)?;
        check_eq!(old.farewell()?, OLD, "{ack}");
    }
    // They are no words of the initiator as it is now: the connection that was there goes on.
    peer.request(5, Kind::Message, (0xfff, 64), None)?;
    check_eq!(peer.response()?.0, 5);
    // One that knows what was said ends it: there is one connection at a time.
    let (mut second, next) = Peer::resume(BOTH, (SESSION, birth), 3)?;
    check_eq!(next, 6);
    peer.until_closed()?;
    let (mut third, next) = Peer::resume(BOTH, (SESSION, birth), 6)?;
    check_eq!(next, 6);
    second.until_closed()?;
    third.request(6, Kind::Message, (0xfff, 64), None)?;
    check_eq!(third.response()?.0, 6);

    // Those that say something else first are told nothing.
    let hello = Raw(said.hello);
    for (what, first) in [
        ("a request", Raw::message(1, node.port)),
        ("a proof", Raw::new(PROOF, 56)),
        ("something later", Raw::new(LATER, 24)),
        ("an answer", Raw::new(WELCOME, 160)),
        ("nothing that is known", hello.clone().with(24, b"kfi-hard")),
        ("no incarnation", hello.clone().with(48, &[0; 8])),
        ("no session", hello.clone().with(64, &[0; 8])),
        ("no lanes", hello.clone().with(38, &[0; 2])),
        (
            "too few flows",
            hello.clone().with(92, &63u32.to_le_bytes()),
        ),
        ("half a wish for proof", hello.clone().with(88, &[2])),
        ("too much of a greeting", hello.clone().body(8)),
        ("too little of a greeting", {
            Raw(hello.0[..152].to_vec()).with(HEAD, &152u16.to_le_bytes())
        }),
        (
            "something in another language",
            Raw(b"GET / HTTP/1.1\r\n\r\n      ".to_vec()),
        ),
    ] {
        let mut stranger = Peer::open(THERE, HERE)?;
        stranger.say(&first.0)?;
        stranger
            .ends_silently()
            .map_err(|stop| Stop::fail(format!("{what}: {stop:?}")))?;
    }
    third.request(7, Kind::Message, (0xfff, 64), None)?;
    check_eq!(third.response()?.0, 7);
    drop(third);
    node.close()
}

/// A node with an operation under way to a target that breaks the protocol.
struct Asking {
    node: Node,
    listener: TcpListener,
    /// How many connections of the session have broken the protocol.
    strikes: usize,
    /// The sessions there have been.
    sessions: Vec<u64>,
}

impl Asking {
    const CONTEXT: u64 = 7;

    fn new(env: &Env) -> Result<Self, Stop> {
        let mut node = Node::open(env, 4096)?;
        node.end.peer = node.end.av.insert(&super::peer::name(THERE, 5))?;
        Ok(Self {
            node,
            listener: Peer::listen(THERE)?,
            strikes: 0,
            sessions: Vec::new(),
        })
    }

    /// Takes a connection of an operation that is posted if there is none.
    fn take(&mut self, operation: &Operation) -> Result<(Peer, Hello), Stop> {
        if self.strikes == 0 {
            self.node
                .end
                .post(&operation.clone().context(Self::CONTEXT))?;
        }
        let (peer, hello, _) = Peer::take(&self.listener)?;
        match (self.strikes, self.sessions.last()) {
            (0, Some(last)) => check!(hello.session > *last, "the session goes on"),
            (0, None) => {}
            (_, last) => check_eq!(Some(&hello.session), last),
        }
        if self.strikes == 0 {
            self.sessions.push(hello.session);
        }
        Ok((peer, hello))
    }

    /// Says something that breaks the protocol, and is told so; when that was too often the initiator gives up.
    fn break_with(
        &mut self,
        operation: &Operation,
        what: &str,
        say: impl FnOnce(&mut Peer, &Hello) -> Outcome,
    ) -> Outcome {
        let (mut peer, hello) = self.take(operation)?;
        say(&mut peer, &hello)?;
        check_eq!(peer.farewell()?, BROKEN, "{what}");
        self.strikes += 1;
        if self.strikes == STRIKES {
            let end = &self.node.end;
            expect_error(&end.tx, Self::CONTEXT, KfiErrno::EHOSTUNREACH)?;
            end.quiet()?;
            self.strikes = 0;
        }
        Ok(())
    }

    /// As [`Self::break_with`], and tells which one it was if something goes wrong.
    fn breaks(
        &mut self,
        operation: &Operation,
        what: &str,
        say: impl FnOnce(&mut Peer, &Hello) -> Outcome,
    ) -> Outcome {
        let outcome = self.break_with(operation, what, say);
        outcome.map_err(|stop| Stop::fail(format!("{what}: {stop:?}")))
    }

    /// Answers a request with something that breaks the protocol.
    fn answer(&mut self, operation: &Operation, what: &str, said: &Raw) -> Outcome {
        self.breaks(operation, what, |peer, hello| {
            peer.welcome_as(hello, |_| ())?;
            peer.has_read(1)?;
            check_eq!(peer.asked()?.0, 1);
            peer.say(&said.0)
        })
    }

    /// Ends the session that is left, if there is one, and checks that the next one is as good as ever.
    fn close(mut self) -> Outcome {
        let send = Operation::new(kfi::Kind::SEND, Form::PLAIN)
            .segment(self.node.buffer.segment(0..64))
            .to(self.node.end.peer);
        let (mut peer, hello) = self.take(&send)?;
        peer.welcome_as(&hello, |_| ())?;
        peer.has_read(1)?;
        peer.asked()?;
        peer.respond(1, DONE)?;
        expect(&self.node.end.tx, Self::CONTEXT, done::SEND_, 64)?;
        drop((peer, self.listener));
        self.node.close()
    }
}

/// A target that breaks the protocol is told so, and does not end an operation with it. When it has done so three
/// times in a session, all that is under way fails, and another session begins.
pub(super) fn target(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let mut asking = Asking::new(env)?;
    let send = Operation::new(kfi::Kind::SEND, Form::PLAIN)
        .segment(asking.node.buffer.segment(0..64))
        .to(asking.node.end.peer);
    let of_len = |len: u64| Raw::of(RESPONSE, 48, 1).with(32, &len.to_le_bytes());
    let pull = |offset: u64, len: u64| {
        let frame = Raw::of(PULL, 40, 1).with(24, &offset.to_le_bytes());
        frame.with(32, &len.to_le_bytes())
    };
    let of_message = [
        ("more was read than was sent", {
            Raw::new(ACK, 24).with(ACKNOWLEDGED, &3u64.to_le_bytes())
        }),
        ("an answer of another length", of_len(63)),
        ("an answer to nothing", of_len(64).with(8, &[2])),
        ("an answer to no number", of_len(64).with(8, &[0])),
        ("results of a message", of_len(64).body(8)),
        ("results of an error", of_len(0).with(24, &[5]).body(8)),
        ("no such error", of_len(0).with(24, &5000u32.to_le_bytes())),
        ("data of a message", Raw::of(DATA, 32, 1).body(8)),
        ("data of nothing", Raw::of(DATA, 32, 2).body(8)),
        ("a wish for more than there is", pull(32, 64)),
        ("a wish for nothing", pull(0, 0)),
        ("a wish for bytes of nothing", pull(0, 8).with(8, &[2])),
        ("two wishes at once", pull(0, 8).then(&pull(8, 8))),
        (
            "no such flow",
            Raw::new(GO, 32).with(24, &64u16.to_le_bytes()),
        ),
        ("a request", Raw::message(1, 5)),
        ("something that is not wanted", Raw::of(WITHDRAW, 24, 1)),
        ("something that has landed", Raw::of(LANDED, 24, 1)),
        ("half a greeting", Raw::new(WELCOME, 160)),
        ("a header that is too short", Raw::new(ACK, 16)),
    ];
    for (what, said) in &of_message {
        asking.answer(&send, what, said)?;
    }
    // It says what it likes in the place of a `WELCOME`.
    for (what, said) in [
        ("nothing but an ACK", Raw::new(ACK, 24)),
        ("an answer before all", of_len(64)),
        ("a greeting in its place", Raw::new(HELLO, 160)),
        ("a wish before all", pull(0, 8)),
    ] {
        asking.breaks(&send, what, |peer, _| peer.say(&said.0))?;
    }
    let welcomes: [(&str, Change); 9] = [
        ("another version", |welcome| welcome.major = 2),
        ("another source", |welcome| welcome.source += 1),
        ("another target", |welcome| welcome.target += 1),
        ("another lane", |welcome| {
            (welcome.lane, welcome.lanes) = (1, 2);
        }),
        ("more lanes", |welcome| welcome.lanes = 2),
        ("another session", |welcome| welcome.session += 1),
        ("no room for data", |welcome| welcome.eager = 4096),
        ("no room for requests", |welcome| welcome.window = 0),
        ("no birth", |welcome| welcome.birth = 0),
    ];
    for (what, change) in welcomes {
        asking.breaks(&send, what, |peer, hello| peer.welcome_as(hello, change))?;
    }
    asking.breaks(&send, "two greetings", |peer, hello| {
        peer.welcome_as(hello, |_| ())?;
        peer.welcome_as(hello, |_| ())
    })?;

    // The results of what is read, and of atomics.
    let end = &asking.node.end;
    let read = Operation::new(kfi::Kind::READ, Form::PLAIN)
        .segment(asking.node.buffer.segment(0..64))
        .to(end.peer)
        .rma(0, 64, 5);
    let data = |offset: u64, len| {
        let frame = Raw::of(DATA, 32, 1).with(24, &offset.to_le_bytes());
        frame.body(len)
    };
    // All of the session before fails.
    while asking.strikes != 0 {
        asking.answer(&send, "an answer of another length", &of_len(63))?;
    }
    for (what, said) in [
        ("an answer before the data", of_len(64)),
        (
            "an answer in the midst of the data",
            data(0, 32).then(&of_len(64)),
        ),
        ("data from the middle on", data(8, 32)),
        ("data beyond the end", data(0, 65)),
        ("data with a gap", data(0, 16).then(&data(32, 32))),
        ("data in the answer", data(0, 64).then(&of_len(64).body(8))),
        ("a wish for bytes of a read", pull(0, 8)),
        (
            "data of an answer of another length",
            data(0, 64).then(&of_len(32)),
        ),
        ("no such error", of_len(0).with(24, &5000u32.to_le_bytes())),
    ] {
        asking.answer(&read, what, &said)?;
    }
    check_eq!(asking.strikes, 0);
    let fetch = Operation::new(kfi::Kind::FETCH_ATOMIC, Form::PLAIN)
        .segment(asking.node.buffer.elements(0, 1))
        .result(asking.node.buffer.elements(64, 1))
        .to(asking.node.end.peer)
        .rma(0, 1, 5)
        .atomic(kfi::uapi::KFI_UINT64, kfi::uapi::KFI_SUM);
    for (what, said) in [
        ("no results", of_len(8)),
        ("too many results", of_len(8).body(16)),
        ("results as data", data(0, 8)),
        // They have gone with the request.
        ("a wish for the first byte of operands", pull(0, 1)),
        ("a wish for operands", pull(0, 8)),
        ("a wish for what is behind operands", pull(8, 8)),
    ] {
        asking.answer(&fetch, what, &said)?;
    }
    check_eq!(asking.strikes, 0);
    asking.close()
}
