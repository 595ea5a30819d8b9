// SPDX-License-Identifier: GPL-2.0

//! Sessions that go on over another connection, and those that are over.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use kfi::{bits, Error, Form, KfiErrno, Operation};

use super::frame::{Frame, Kind, Response, NOT_READY};
use super::peer::{self, Hello, Peer};
use super::{expect_one, load_network, peers, Node, DONE, EREMOTEIO, HERE, PATIENT, THERE};
use crate::check::{Outcome, Stop};
use crate::ends::{done, expect, expect_error, pattern};
use crate::env::Env;
use crate::rig::until;
use crate::{check, check_eq};

/// Both ends of a connection from a peer.
const BOTH: (Ipv4Addr, Ipv4Addr) = (THERE, HERE);

/// The most bytes of a frame of data that a node sends.
const PIECE: usize = 256 << 10;

/// The answer to a request of so many bytes.
fn success(len: usize) -> Response {
    Response {
        status: 0,
        len: len as u64,
        waited: 0,
    }
}

/// A node, with a peer that listens.
fn with_listener(env: &Env, len: usize) -> Result<(Node, TcpListener), Stop> {
    let mut node = Node::open(env, len as u64)?;
    let listener = Peer::listen(THERE)?;
    node.end.peer = node.end.av.insert(&peer::name(THERE, 5))?;
    Ok((node, listener))
}

/// The connection of a node to a target breaks again and again: what was sent, and read, is not sent again, and
/// what was not is, with the same number; bytes that are pulled go on where that is wanted, and those of a read
/// come from the start again. Each operation ends once.
pub(super) fn goes_on(env: &Env) -> Outcome {
    const LEN: usize = 2 * PIECE;
    const READ: usize = 64 << 10;
    const LONG: usize = 16 << 20;
    let _modules = load_network(env, PATIENT)?;
    let (node, listener) = with_listener(env, LONG)?;
    let end = &node.end;
    let sent = pattern(1, 0, LEN);
    node.buffer.write(0, &sent);
    end.send(node.buffer.segment(0..LEN as u64), 7)?;
    end.send(node.buffer.segment(0..64), 8)?;
    let (mut peer, first) = Peer::accept_again(&listener, 1)?;
    check_eq!((first.birth, first.expected), (0, 0));
    for id in [1, 2] {
        check_eq!(peer.asked()?.0, id);
    }
    peer.pull(1, 0, LEN as u64)?;
    let (offset, bytes) = peer.bytes_of(1)?;
    check!(
        offset == 0 && bytes == sent[..PIECE],
        "other bytes than those that were sent"
    );
    drop(peer);

    // Both were read.
    let again = |next| -> Result<Peer, Stop> {
        let (peer, hello) = Peer::accept_again(&listener, next)?;
        check_eq!(hello.session, first.session);
        check_eq!((hello.birth, hello.expected), (1, 1));
        Ok(peer)
    };
    let mut peer = again(3)?;
    peer.pull(1, PIECE as u64, PIECE as u64)?;
    let (offset, bytes) = peer.bytes_of(1)?;
    check_eq!(offset, PIECE as u64);
    check!(
        bytes == sent[PIECE..],
        "other bytes than those that were sent"
    );
    peer.respond(1, success(LEN))?;
    expect(&end.tx, 7, done::SEND_, LEN as u64)?;
    drop(peer);

    // The second one was not, as it turns out.
    let mut peer = again(2)?;
    check_eq!(peer.asked()?.0, 2);
    peer.respond(2, DONE)?;
    expect(&end.tx, 8, done::SEND_, 64)?;
    // It has read these before.
    peer.respond(2, DONE)?;
    peer.pull(1, 0, 8)?;
    peer.data(1, 0, &[0; 8])?;

    let read = Operation::new(kfi::Kind::READ, Form::PLAIN)
        .segment(node.buffer.segment(0..READ as u64))
        .to(end.peer)
        .rma(0, READ as u64, 5)
        .context(9);
    end.post(&read)?;
    check_eq!(peer.asked()?.0, 3);
    peer.data(3, 0, &vec![1; READ / 2])?;
    // It breaks in the midst of a frame.
    peer.begin_data(3, READ as u64 / 2, READ / 2, &[1; 100])?;
    drop(peer);
    let mut peer = again(4)?;
    let found = pattern(2, 0, READ);
    peer.data(3, 0, &found)?;
    check_eq!(peer.until(|frame| matches!(frame, Frame::Landed))?, 3);
    peer.respond(3, success(READ))?;
    expect(&end.tx, 9, done::RMA_READ, READ as u64)?;
    check!(
        node.buffer.bytes(0..READ) == found,
        "other bytes than those that were read"
    );

    // An answer ends an operation whose bytes are being sent, when that ends which has begun.
    end.send(node.buffer.segment(0..LONG as u64), 10)?;
    check_eq!(peer.asked()?.0, 4);
    peer.pull(4, 0, LONG as u64)?;
    check_eq!(peer.bytes_of(4)?.0, 0);
    peer.respond(
        4,
        Response {
            status: EREMOTEIO,
            len: 0,
            waited: 0,
        },
    )?;
    end.send(node.buffer.segment(0..64), 11)?;
    check_eq!(peer.asked()?.0, 5);
    expect_error(&end.tx, 10, KfiErrno::EREMOTEIO)?;
    // And one whose connection breaks meanwhile.
    peer.respond(5, DONE)?;
    expect(&end.tx, 11, done::SEND_, 64)?;
    end.send(node.buffer.segment(0..LONG as u64), 12)?;
    check_eq!(peer.asked()?.0, 6);
    peer.pull(6, 0, LONG as u64)?;
    check_eq!(peer.bytes_of(6)?.0, 0);
    drop(peer);
    let mut peer = again(7)?;
    peer.respond(6, success(LONG))?;
    expect(&end.tx, 12, done::SEND_, LONG as u64)?;
    end.quiet()?;
    drop((peer, listener));
    node.close()
}

/// The connection of an initiator to a node breaks again and again: nothing is done twice, and what the initiator
/// does not say that it has read is said again.
pub(super) fn goes_on_at_its_target(env: &Env) -> Outcome {
    const LEN: usize = 1 << 20;
    const HALF: usize = LEN / 2;
    const KEY: u64 = 5;
    let _modules = load_network(env, PATIENT)?;
    let node = Node::open(env, LEN as u64)?;
    let region = node.register(bits::REMOTE_READ | bits::REMOTE_WRITE, KEY)?;
    let (mut peer, birth) = Peer::begin(BOTH, 1)?;
    let again = |ack: u64, next: u64| -> Result<Peer, Stop> {
        let (peer, is) = Peer::resume(BOTH, (1, birth), ack)?;
        check_eq!(is, next, "the first number that was not read");
        Ok(peer)
    };
    // A request that has not come, all of it, was not read.
    node.end.recv(node.buffer.segment(0..64), 6)?;
    peer.half_a_message(1, node.port, &[9; 32], false)?;
    drop(peer);
    let mut peer = again(1, 1)?;
    peer.message_of(1, node.port, &[8; 64])?;
    check_eq!(peer.response()?, (1, success(64)));
    expect(&node.end.rx, 6, done::RECV_, 64)?;
    check_eq!(node.buffer.bytes(0..64), [8; 64]);
    peer.acknowledge(2)?;

    // Bytes are pulled from where they have come to.
    node.end.recv(node.buffer.segment(0..LEN as u64), 7)?;
    let ask = |peer: &mut Peer| peer.request(2, Kind::Message, (node.port, LEN as u64), None);
    ask(&mut peer)?;
    check_eq!(peer.pulled()?, (2, 0, LEN as u64));
    peer.data(2, 0, &vec![1; HALF])?;
    until(|| Ok(node.buffer.bytes(HALF - 1..HALF) == [1]))?;
    drop(peer);
    let mut peer = again(2, 3)?;
    // It has read this before.
    ask(&mut peer)?;
    check_eq!(peer.pulled()?, (2, HALF as u64, HALF as u64));
    peer.data(2, HALF as u64, &vec![2; HALF])?;
    check_eq!(peer.response()?, (2, success(LEN)));
    drop(peer);
    let mut peer = again(2, 3)?;
    check_eq!(peer.response()?, (2, success(LEN)));
    peer.acknowledge(3)?;
    expect(&node.end.rx, 7, done::RECV_, LEN as u64)?;
    let bytes = node.buffer.bytes(0..LEN);
    check!(
        bytes == [vec![1; HALF], vec![2; HALF]].concat(),
        "other bytes than those that were sent"
    );

    // Those of a read are sent from the start.
    peer.request(3, Kind::Read, (node.port, LEN as u64), Some(KEY))?;
    check_eq!(peer.bytes_of(3)?.0, 0);
    drop(peer);
    let mut peer = again(3, 4)?;
    let read_all = |peer: &mut Peer| -> Outcome {
        let mut there = Vec::new();
        while there.len() < LEN {
            let (offset, bytes) = peer.bytes_of(3)?;
            check_eq!(offset, there.len() as u64);
            there.extend(bytes);
        }
        check!(there == bytes, "other bytes than those that are there");
        Ok(())
    };
    read_all(&mut peer)?;
    drop(peer);
    let mut peer = again(3, 4)?;
    read_all(&mut peer)?;
    peer.write(&Frame::Landed, 3)?;
    check_eq!(peer.response()?, (3, success(LEN)));
    peer.acknowledge(4)?;

    // A sum is made once, whatever is sent again.
    node.buffer.write(0, &5u64.to_le_bytes());
    peer.add(4, (node.port, KEY), 10)?;
    let fetched = |number: u64| number.to_le_bytes().to_vec();
    check_eq!(peer.results()?, (4, 0, fetched(5)));
    drop(peer);
    let mut peer = again(4, 5)?;
    check_eq!(peer.results()?, (4, 0, fetched(5)));
    peer.add(4, (node.port, KEY), 10)?;
    peer.add(5, (node.port, KEY), 1)?;
    check_eq!(peer.results()?, (5, 0, fetched(15)));
    check_eq!(node.buffer.bytes(0..8), fetched(16));

    // Words about requests that are over mean nothing, and those of a later version neither.
    peer.acknowledge(5)?;
    peer.write(&Frame::Landed, 3)?;
    peer.data(2, 0, &[0; 64])?;
    for id in [1, 5] {
        peer.withdraw(id)?;
    }
    // It goes, and comes again.
    peer.write(&Frame::Bye(0), 0)?;
    peer.until_closed()?;
    let mut peer = again(6, 6)?;
    peer.add(6, (node.port, KEY), 0)?;
    check_eq!(peer.results()?, (6, 0, fetched(16)));
    node.end.quiet()?;
    drop(peer);
    region.close().map_err(|(_, error)| error)?;
    node.close()
}

/// Messages that were not taken are not taken again, on another connection, before their flow goes on; and the
/// initiator is told so again.
pub(super) fn not_taken(env: &Env) -> Outcome {
    // None of them ends by itself.
    let _modules = load_network(env, &format!("{PATIENT} rnr_timeout=600000"))?;
    let node = Node::open(env, 4096)?;
    let (mut peer, birth) = Peer::begin(BOTH, 1)?;
    let half = peer.window() / 2;
    for id in 1..=half {
        peer.message(id, node.port, false, 0)?;
    }
    let all_come_again = |peer: &mut Peer| -> Outcome {
        for wanted in 1..=half {
            let (id, response) = peer.response()?;
            check_eq!((id, response.status), (wanted, NOT_READY));
        }
        Ok(())
    };
    all_come_again(&mut peer)?;
    drop(peer);
    let (mut peer, next) = Peer::resume(BOTH, (1, birth), 1)?;
    check_eq!(next, half + 1);
    all_come_again(&mut peer)?;
    peer.acknowledge(next)?;
    peer.until(|frame| matches!(frame, Frame::Go(0)))?;
    drop(peer);
    // So is the flow.
    let (mut peer, _) = Peer::resume(BOTH, (1, birth), next)?;
    peer.until(|frame| matches!(frame, Frame::Go(0)))?;
    // The first one that comes again, and not all of it.
    node.end.recv(node.buffer.segment(0..64), 7)?;
    peer.half_a_message(next, node.port, &[1; 32], true)?;
    drop(peer);
    let (mut peer, again) = Peer::resume(BOTH, (1, birth), next)?;
    check_eq!(again, next);
    peer.message(next, node.port, true, 0)?;
    check_eq!(peer.response()?, (next, success(0)));
    expect(&node.end.rx, 7, done::RECV_, 0)?;
    node.end.quiet()?;
    drop(peer);
    node.close()
}

/// The way in which a target ends a session.
#[derive(Clone, Copy)]
enum Farewell {
    /// It says so.
    Bye(u32),
    /// It says something else of itself on another connection.
    Welcome(fn(&mut Hello)),
    /// It has read something else.
    Read(u64),
}

/// A target that has forgotten a session, or refuses it, ends it: what is under way fails, once, and the next
/// operation begins another one. A target that only goes does not.
pub(super) fn ended_by_its_target(env: &Env) -> Outcome {
    let _modules = load_network(env, PATIENT)?;
    let (node, listener) = with_listener(env, 4096)?;
    let end = &node.end;
    let segment = || node.buffer.segment(0..64);
    let cases = [
        ("another version", Farewell::Bye(1)),
        ("not for it", Farewell::Bye(2)),
        ("an old session", Farewell::Bye(3)),
        ("a secret", Farewell::Bye(6)),
        (
            "another birth",
            Farewell::Welcome(|welcome| welcome.birth = 9),
        ),
        (
            "another one",
            Farewell::Welcome(|welcome| welcome.incarnation = 9),
        ),
        (
            "more flows",
            Farewell::Welcome(|welcome| welcome.flows = 128),
        ),
        ("less than was answered", Farewell::Read(1)),
        ("more than was sent", Farewell::Read(4)),
    ];
    let mut last = 0;
    for (what, farewell) in cases {
        end.send(segment(), 1)?;
        end.send(segment(), 2)?;
        let (mut peer, hello) = Peer::accept_again(&listener, 1)?;
        check!(hello.session > last, "{what}: the session goes on");
        check_eq!((hello.birth, hello.expected), (0, 0), "{what}");
        last = hello.session;
        for id in [1, 2] {
            check_eq!(peer.asked()?.0, id, "{what}");
        }
        peer.respond(1, DONE)?;
        expect(&end.tx, 1, done::SEND_, 64)?;
        match farewell {
            Farewell::Bye(code) => peer.write(&Frame::Bye(code), 0)?,
            Farewell::Welcome(change) => {
                drop(peer);
                let (other, hello, _) = Peer::take(&listener)?;
                peer = other;
                check_eq!(hello.session, last, "{what}");
                peer.welcome_as(&hello, change)?;
                // It may have gone by now.
                let _ = peer.has_read(3);
            }
            Farewell::Read(next) => {
                drop(peer);
                (peer, _) = Peer::accept_again(&listener, next)?;
            }
        }
        expect_error(&end.tx, 2, KfiErrno::EHOSTUNREACH)?;
        peer.until_closed()?;
        end.quiet()?;
    }
    // Whoever goes for no reason, or another one, is looked for.
    end.send(segment(), 1)?;
    let (mut peer, hello) = Peer::accept_again(&listener, 1)?;
    check!(hello.session > last, "the session goes on");
    for code in [0, 4, 5] {
        check_eq!(peer.asked()?.0, 1);
        peer.write(&Frame::Bye(code), 0)?;
        let (other, again) = Peer::accept_again(&listener, 1)?;
        check_eq!(again.session, hello.session, "{code}");
        peer = other;
    }
    check_eq!(peer.asked()?.0, 1);
    peer.respond(1, DONE)?;
    expect(&end.tx, 1, done::SEND_, 64)?;
    drop((peer, listener));
    node.close()
}

/// A target that is started again, and answers in the last second before it would be given up, gets what was not sent
/// to the one before: only that fails which was.
pub(super) fn started_again(env: &Env) -> Outcome {
    const TIMEOUT: Duration = Duration::from_secs(4);
    // Behind the last try but one, and before the last one.
    const AWAY: Duration = Duration::from_millis(2800);
    // On a slow machine that may take longer than there is time.
    const ATTEMPTS: usize = 10;
    let _modules = load_network(env, "address=127.0.0.1 loopback=0 peer_timeout=4000")?;
    let (node, listener) = with_listener(env, 4096)?;
    let end = &node.end;
    let send = |context| end.send(node.buffer.segment(0..64), context);
    // Whether a message has failed, and which one.
    let failed = || match end.tx.read_err() {
        Ok(error) => {
            check_eq!(error.err, KfiErrno::EHOSTUNREACH.number());
            Ok(Some(error.entry.op_context))
        }
        Err(Error::Fabric(KfiErrno::EAGAIN)) => Ok(None),
        Err(error) => Err(Stop::from(error)),
    };
    let mut listening = Some(listener);
    for attempt in 1..=ATTEMPTS {
        let listener = match listening.take() {
            Some(listener) => listener,
            None => Peer::listen(THERE)?,
        };
        send(1)?;
        let (mut peer, _) = Peer::accept_again(&listener, 1)?;
        check_eq!(peer.asked()?.0, 1);
        let gone = Instant::now();
        drop((peer, listener));
        send(2)?;
        thread::sleep(AWAY.saturating_sub(gone.elapsed()));
        let listener = Peer::listen(THERE)?;
        listener.set_nonblocking(true)?;
        // Waits for a connection, or that a message fails.
        let next = || -> Result<Result<(Peer, Hello), u64>, Stop> {
            loop {
                if let Ok((peer, hello, _)) = Peer::take(&listener) {
                    return Ok(Ok((peer, hello)));
                }
                if let Some(context) = failed()? {
                    return Ok(Err(context));
                }
                kfi_host::thread::relax();
            }
        };
        let first = next()?;
        let in_time = gone.elapsed() + Duration::from_millis(100) < TIMEOUT;
        let (mut peer, hello) = match first {
            Ok(first) if in_time => first,
            other => {
                let mut left = if other.is_err() { 1 } else { 2 };
                drop(other);
                drop(listener);
                until(|| {
                    left -= usize::from(failed()?.is_some());
                    Ok(left == 0)
                })?;
                env.note(format!("attempt {attempt}: too late"));
                continue;
            }
        };
        peer.welcome_as(&hello, |welcome| {
            (welcome.incarnation, welcome.birth) = (9, 9);
        })?;
        peer.until_closed()?;
        expect_error(&end.tx, 1, KfiErrno::EHOSTUNREACH)?;
        let (mut peer, hello) = match next()? {
            Ok(next) => next,
            Err(context) => return Err(Stop::fail(format!("{context} has failed"))),
        };
        peer.welcome_as(&hello, |welcome| {
            (welcome.incarnation, welcome.birth) = (9, 9);
        })?;
        peer.has_read(1)?;
        check_eq!(peer.asked()?.0, 1);
        peer.respond(1, DONE)?;
        expect(&end.tx, 2, done::SEND_, 64)?;
        end.quiet()?;
        drop((peer, listener));
        return node.close();
    }
    Err(Stop::Skip("the machine is too slow".to_owned()))
}

/// Returns how many messages the node keeps until their flow goes on.
fn held() -> Result<usize, Stop> {
    let of_line = |line: &String| line.split(' ').nth(9)?.parse::<usize>().ok();
    Ok(peers("to")?.iter().filter_map(of_line).sum())
}

/// Messages that the target has not taken, and those that wait for them, end when they are cancelled, and it is
/// not told. The others go on.
pub(super) fn cancelled_while_held(env: &Env) -> Outcome {
    const MANY: u64 = 150;
    const NOT_TAKEN: Response = Response {
        status: NOT_READY,
        len: 0,
        waited: 0,
    };
    let _modules = load_network(env, PATIENT)?;
    let (node, listener) = with_listener(env, 4096)?;
    let end = &node.end;
    let send = |context| end.send(node.buffer.segment(0..64), context);
    for context in [1, 2, 3] {
        send(context)?;
    }
    let mut peer = Peer::accept(&listener)?;
    let (_, flow, ..) = peer.asked()?;
    for id in [2, 3] {
        check_eq!(peer.asked()?, (id, flow, false, 0));
    }
    for id in [1, 2, 3] {
        peer.respond(id, NOT_TAKEN)?;
    }
    // Those of before come first.
    until(|| Ok(held()? == 3))?;
    send(4)?;
    until(|| Ok(held()? == 4))?;
    for context in [2, 4] {
        end.ep.cancel(context)?;
        expect_error(&end.tx, context, KfiErrno::ECANCELED)?;
    }
    // Returns the number of a request that is the next frame but for an ACK, and whether it is the first one after its
    // flow was stopped.
    let next = |peer: &mut Peer| -> Result<(u64, bool), Stop> {
        let found = peer.pick(|common, frame| match frame {
            Frame::Ack => None,
            Frame::Request(request) => Some(Ok((common.id, request.restarts))),
            other => Some(Err(format!("{other:?}"))),
        })?;
        found.map_err(Stop::fail)
    };
    peer.write(&Frame::Go(flow), 0)?;
    check_eq!(next(&mut peer)?, (4, true));
    check_eq!(next(&mut peer)?, (5, false));
    for (id, context) in [(4, 1), (5, 3)] {
        peer.respond(id, DONE)?;
        expect(&end.tx, context, done::SEND_, 64)?;
    }

    // Many of them, and all.
    for context in 0..MANY {
        send(100 + context)?;
    }
    for id in 6..6 + MANY {
        check_eq!(next(&mut peer)?, (id, false));
    }
    for id in 6..6 + MANY {
        peer.respond(id, NOT_TAKEN)?;
    }
    until(|| Ok(held()? == MANY as usize))?;
    let mut left: BTreeSet<u64> = (100..100 + MANY).collect();
    for context in left.clone() {
        end.ep.cancel(context)?;
    }
    while !left.is_empty() {
        let entry = end.tx.sread_ms(1, -1);
        check!(entry.is_err(), "{entry:?}");
        let error = end.tx.read_err()?;
        check_eq!(error.err, KfiErrno::ECANCELED.number());
        check!(left.remove(&error.entry.op_context), "{error:?} twice");
    }
    peer.write(&Frame::Go(flow), 0)?;
    let id = 6 + MANY;
    // The `GO` may come later than the message, which is the first one of its flow in any case.
    send(5)?;
    check_eq!(next(&mut peer)?, (id, true));

    // One that is cancelled before it is known that it was not taken.
    end.ep.cancel(5)?;
    check_eq!(peer.until(|frame| matches!(frame, Frame::Withdraw))?, id);
    peer.respond(id, NOT_TAKEN)?;
    expect_error(&end.tx, 5, KfiErrno::ECANCELED)?;
    peer.write(&Frame::Go(flow), 0)?;
    send(6)?;
    check_eq!(next(&mut peer)?, (id + 1, true));
    peer.respond(id + 1, DONE)?;
    expect_one(end)?;
    end.quiet()?;
    drop((peer, listener));
    node.close()
}
