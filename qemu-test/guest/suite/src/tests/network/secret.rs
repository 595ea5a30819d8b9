// SPDX-License-Identifier: GPL-2.0

//! Secrets, which machines share and strangers do not have.

use std::ffi::CStr;
use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::Instant;

use kfi::KfiErrno;
use kfi_host::key::UserKey;
use rustix::io::Errno;

use super::frame::{Frame, Kind, Response};
use super::hmac::hmac;
use super::peer::{self, Peer};
use super::{
    load_network, log_lines, needs_network, over_tcp_with, reload, text, Node, HERE, PATIENT, THERE,
};
use crate::check::{Outcome, Stop};
use crate::ends::{done, expect, expect_error};
use crate::env::Env;
use crate::tests::module::Modules;
use crate::{check, check_eq};

/// The secret, and another one.
const SECRET: &[u8] = b"what all machines of the test share";
const OTHER: &[u8] = b"what somebody else has for a secret";

/// The name of the key that has it.
const NAME: &CStr = c"kfi_soft:test";

/// The parameter with which that is used.
const PARAMETER: &str = "secret=kfi_soft:test";

/// The code of the `BYE` of a machine without a secret to one that wants one.
const BYE_SECRET: u32 = 6;

/// Fabrics that have the same secret: one with other addresses, and one at another port.
const OTHER_ADDRESSES: [u8; 8] = peer::fabric([10, 16, 0, 0], 7471);
const OTHER_PORT: [u8; 8] = peer::fabric([127, 0, 0, 0], 7472);

/// Makes a code of the greetings.
type Code = fn(&peer::Said) -> [u8; 32];

/// A success of a request of so many bytes.
fn success(len: u64) -> Response {
    Response {
        status: 0,
        len,
        waited: 0,
    }
}

/// Gives the kernel a key; skips the test if there are none.
fn key(kind: &CStr, name: &CStr, payload: &[u8]) -> Result<UserKey, Stop> {
    match UserKey::add(kind, name, payload) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            Err(Stop::Skip("the kernel has no keys".to_owned()))
        }
        result => Ok(result?),
    }
}

/// The module looks for the key when it is loaded, and says what is wrong if that is none.
pub(super) fn is_found(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    needs_network()?;
    let refused = |parameters: &str, errno: Errno, why: &str| {
        let said = log_lines(why)?;
        let result = modules.reload_provider(&text(parameters));
        check_eq!(result, Err(errno), "{parameters}");
        check!(log_lines(why)? > said, "{parameters}: nothing about {why}");
        Ok::<_, Stop>(())
    };
    refused(PARAMETER, Errno::INVAL, "as no NIC has an address")?;
    let parameters = format!("{PATIENT} {PARAMETER}");
    let secret = match key(c"logon", NAME, SECRET) {
        Err(Stop::Skip(why)) => {
            refused(&parameters, Errno::OPNOTSUPP, "CONFIG_KEYS")?;
            env.note(why);
            return modules.load_all();
        }
        result => result?,
    };
    reload(&modules, &parameters)?;
    drop(secret);
    refused(&parameters, Errno::NOKEY, "no key of type logon or user")?;
    // Nobody is told the payload, nor its length.
    let short = key(c"user", NAME, &SECRET[..15])?;
    refused(&parameters, Errno::INVAL, "less than 16 bytes")?;
    drop(short);
    let secret = key(c"user", NAME, &SECRET[..16])?;
    reload(&modules, &parameters)?;
    secret.revoke()?;
    refused(
        &parameters,
        Errno::KEYREVOKED,
        "no key of type logon or user",
    )?;
    modules.load_all()
}

/// NICs that share a secret reach each other as others do.
pub(super) fn between_nics(env: &Env) -> Outcome {
    let _secret = key(c"logon", NAME, SECRET)?;
    over_tcp_with(
        env,
        &format!("{} {PARAMETER}", super::OVER_TCP),
        "tagged",
        &[],
    )
}

/// Asks for something of a port where nobody is, so that the answer comes at once.
fn is_served(peer: &mut Peer, id: u64) -> Outcome {
    peer.request(id, Kind::Message, (0xfff, 64), None)?;
    let (answered, response) = peer.response()?;
    check_eq!(answered, id);
    check!(response.status != 0, "somebody is there");
    Ok(())
}

/// A stranger without the secret gets one `WELCOME`, changes nothing, and disturbs nobody who has it.
pub(super) fn strangers(env: &Env) -> Outcome {
    const BOTH: (Ipv4Addr, Ipv4Addr) = (THERE, HERE);

    let modules = Modules::new(env)?;
    needs_network()?;
    let _secret = key(c"logon", NAME, SECRET)?;
    reload(&modules, &format!("{PATIENT} {PARAMETER}"))?;
    let complaint = "127.0.0.3 does not have the secret";
    let said = log_lines(complaint)?;
    let (mut friend, before) = Peer::connect_with(BOTH, 5, SECRET)?;
    is_served(&mut friend, 1)?;

    // One that wants no proof, and gives none.
    let (mut stranger, _) = Peer::call(BOTH, 6, false)?;
    stranger.ends_silently()?;
    is_served(&mut friend, 2)?;
    check!(log_lines(complaint)? > said, "the log says nothing");

    // Initiators without a proof: in the place of it there is ...
    let proofs: [(&str, Code); 6] = [
        ("nothing", |_| [0; 32]),
        ("that of another secret", |said| said.initiator(OTHER)),
        // ... that of somebody who has it, and means a NIC of the same number elsewhere: this is passed on
        // from there, ...
        ("that of other addresses", |said| {
            said.initiator_of(OTHER_ADDRESSES, SECRET)
        }),
        ("that of another port", |said| {
            said.initiator_of(OTHER_PORT, SECRET)
        }),
        // ... the target's own, ...
        ("a reflection", peer::Said::mac),
        // ... or that which this secret has for words that nobody has said.
        ("a code of something else", |_| {
            hmac(SECRET, &[b"kfi-soft initiator", &peer::FABRIC])
        }),
    ];
    for (id, (what, proof)) in (3..).zip(proofs) {
        // A session that is later than that of the one who has it.
        let (mut stranger, said) = Peer::call(BOTH, 100 + id, true)?;
        stranger.prove(proof(&said))?;
        stranger
            .ends_silently()
            .map_err(|stop| Stop::fail(format!("{what}: {stop:?}")))?;
        is_served(&mut friend, id)?;
    }

    // Others are named, too, though that was just before, and also if they name a session that is not there.
    for (last, birth) in [(7, 0), (8, 1)] {
        let other = Ipv4Addr::new(127, 0, 0, last);
        let complaint = format!("a caller from {other} does not have the secret");
        let said = log_lines(&complaint)?;
        let (mut stranger, _) = Peer::call_again((other, HERE), birth)?;
        stranger.prove([0; 32])?;
        stranger.ends_silently()?;
        check!(log_lines(&complaint)? > said, "nothing about {other}");
    }
    // Initiators say nothing more when they have learned that theirs is over.
    let other = Ipv4Addr::new(127, 0, 0, 6);
    let accused = format!("{other} does not have the secret");
    let said = log_lines(&accused)?;
    drop(Peer::call_again((other, HERE), 1)?);
    is_served(&mut friend, 9)?;
    check_eq!(log_lines(&accused)?, said);

    // The same words as those of the one who has it, with the proof of then.
    let (mut stranger, now) = Peer::replay(BOTH, &before)?;
    check!(now.welcome != before.welcome, "the same WELCOME again");
    stranger.prove(before.initiator(SECRET))?;
    stranger.ends_silently()?;
    is_served(&mut friend, 10)?;

    // A request in place of the proof.
    let (mut stranger, _) = Peer::call(BOTH, 6, true)?;
    stranger.request(1, Kind::Message, (0xfff, 64), None)?;
    stranger.ends_silently()?;
    is_served(&mut friend, 11)?;

    // Nothing at all, from somebody who was never here, and is not remembered.
    let begun = Instant::now();
    let (mut stranger, _) = Peer::call((Ipv4Addr::new(127, 0, 0, 9), HERE), 1, true)?;
    stranger.ends_silently()?;
    let waited = begun.elapsed();
    check!(waited.as_secs() >= 4, "it was {waited:?}");
    is_served(&mut friend, 12)?;
    let peers = fs::read_to_string("/sys/kernel/debug/kfi_soft/peers")?;
    check!(peers.contains("from 3 1 ready 5 "), "{peers}");
    check!(!peers.contains("from 9 "), "{peers}");

    // A peer that has it goes on where it was, on another connection, or begins anew.
    drop(friend);
    let (mut friend, _) = Peer::connect_with(BOTH, 6, SECRET)?;
    is_served(&mut friend, 1)
}

/// Of strangers from many addresses the log names the first ones, and says that there are others. They keep
/// nobody out who has the secret.
pub(super) fn many_strangers(env: &Env) -> Outcome {
    const NAMED: usize = 8;
    let modules = Modules::new(env)?;
    needs_network()?;
    let _secret = key(c"logon", NAME, SECRET)?;
    reload(&modules, &format!("{PATIENT} {PARAMETER}"))?;
    let call = |last| -> Outcome {
        let stranger = Ipv4Addr::new(127, 0, 5, last);
        let (mut stranger, _) = Peer::call((stranger, HERE), 1, true)?;
        stranger.prove([0; 32])?;
        stranger.ends_silently()
    };
    let complaint = "does not have the secret";
    let others = "others as well, of whom no more are named for a while: a caller from ";
    let (complaints, before) = (log_lines(complaint)?, log_lines(others)?);
    let mut last = 0;
    // Those of some time ago are named again, if a machine is that slow.
    while log_lines(others)? == before {
        check!(last < 200, "the log names all of them");
        last += 1;
        call(last)?;
    }
    let named = log_lines(complaint)? - complaints - 1;
    check!(named >= NAMED, "{named} are named");
    check_eq!(named, usize::from(last) - 1);
    for last in 200..=230 {
        call(last)?;
    }
    let more = log_lines(complaint)? - complaints - 1 - named;
    check!(more < 30, "the log names all of the others");
    let (mut friend, _) = Peer::connect_with((THERE, HERE), 1, SECRET)?;
    is_served(&mut friend, 1)
}

/// A stranger that takes the address of a target, and does not have the secret, gets a `HELLO` and nothing more,
/// and ends nothing, whatever it says.
pub(super) fn false_targets(env: &Env) -> Outcome {
    const LEN: u64 = 64;

    let modules = Modules::new(env)?;
    needs_network()?;
    let _secret = key(c"logon", NAME, SECRET)?;
    reload(&modules, &format!("{PATIENT} {PARAMETER}"))?;
    let complaint = "127.0.0.3 does not have the secret";
    let complaints = log_lines(complaint)?;
    let mut node = Node::open(env, 4096)?;
    node.end.peer = node.end.av.insert(&peer::name(THERE, 5))?;

    let listener = Peer::listen(THERE)?;
    node.end.send(node.buffer.segment(0..LEN), 1)?;
    let (mut friend, before) = Peer::accept_with(&listener, SECRET)?;
    friend.until(|frame| matches!(frame, Frame::Request(_)))?;
    friend.respond(1, success(LEN))?;
    expect(&node.end.tx, 1, done::SEND_, LEN)?;
    drop(friend);

    node.end.send(node.buffer.segment(0..LEN), 2)?;
    let answers: [Code; 5] = [
        |_| [0; 32],
        |said| said.target(OTHER),
        // The codes of NICs of the same numbers elsewhere, passed on from there.
        |said| said.target_of(OTHER_ADDRESSES, SECRET),
        |said| said.target_of(OTHER_PORT, SECRET),
        // The code that an initiator proves itself with.
        |said| said.initiator(SECRET),
    ];
    let mut session = None;
    let mut same = |other: u64| *session.get_or_insert(other) == other;
    for answer in answers {
        let (mut stranger, hello, said) = Peer::take(&listener)?;
        check!(hello.proof, "no secret is wanted");
        check!(same(hello.session), "another session");
        stranger.answer(&hello, said, answer)?;
        stranger.ends_silently()?;
    }
    // One that wants no proof.
    let (mut stranger, hello, said) = Peer::take(&listener)?;
    let hello = peer::Hello {
        proof: false,
        ..hello
    };
    stranger.answer(&hello, said, |said| said.target(SECRET))?;
    stranger.ends_silently()?;
    // One that has heard another.
    let (mut stranger, hello, _) = Peer::take(&listener)?;
    stranger.say(&before.welcome)?;
    stranger.ends_silently()?;
    check!(same(hello.session), "another session");
    check!(log_lines(complaint)? > complaints, "the log says nothing");
    // Answers that would end the session if they were believed: no secret, an old one, and nonsense.
    for _ in 0..4 {
        for code in [1, BYE_SECRET, 3] {
            let (mut stranger, hello, _) = Peer::take(&listener)?;
            check!(same(hello.session), "another session");
            stranger.write(&Frame::Bye(code), 0)?;
            stranger.ends_silently()?;
        }
        let (mut stranger, _, _) = Peer::take(&listener)?;
        stranger.write(&Frame::Ack, 0)?;
        stranger.ends_silently()?;
    }
    // The right one goes on where it was.
    let (mut friend, _) = Peer::accept_with(&listener, SECRET)?;
    let id = friend.until(|frame| matches!(frame, Frame::Request(_)))?;
    check_eq!(id, 2);
    friend.respond(2, success(LEN))?;
    expect(&node.end.tx, 2, done::SEND_, LEN)?;
    drop((friend, listener));
    node.close()
}

/// Of two machines only one has a secret: nothing goes from one to the other, and both logs say why.
pub(super) fn of_one_side(env: &Env) -> Outcome {
    // Here is none.
    let modules = load_network(env, PATIENT)?;
    let complaint = "127.0.0.3 wants a secret";
    let calls = "a caller from 127.0.0.3 wants a secret";
    let (said, called) = (log_lines(complaint)?, log_lines(calls)?);
    let (mut stranger, answer) = Peer::call((THERE, HERE), 1, true)?;
    let parsed = Frame::parse(&answer.welcome).map(|(_, frame)| frame);
    check_eq!(parsed, Ok(Frame::Bye(BYE_SECRET)));
    stranger.ends_silently()?;
    check_eq!(log_lines(calls)?, called + 1);

    let send = |answer: &mut dyn FnMut(&mut Peer, peer::Hello, Vec<u8>) -> Outcome| {
        let mut node = Node::open(env, 4096)?;
        let listener = Peer::listen(THERE)?;
        node.send_to(THERE, 1)?;
        let (mut stranger, hello, said) = Peer::take(&listener)?;
        answer(&mut stranger, hello, said)?;
        stranger.ends_silently()?;
        // If it comes again, nobody is there.
        drop((stranger, listener));
        expect_error(&node.end.tx, 1, KfiErrno::EHOSTUNREACH)?;
        node.close()
    };
    // At once: others are not heard of for ten minutes before they are given up.
    send(&mut |stranger, hello, said| {
        check!(!hello.proof, "a secret is wanted");
        let hello = peer::Hello {
            proof: true,
            ..hello
        };
        stranger.answer(&hello, said, |_| [0; 32]).map(drop)
    })?;
    check_eq!(log_lines(complaint)?, said + 2);

    // Here is one, and there is none.
    let _secret = key(c"logon", NAME, SECRET)?;
    reload(
        &modules,
        &format!("address=127.0.0.1 loopback=0 peer_timeout=2000 {PARAMETER}"),
    )?;
    let complaint = "127.0.0.3 does not have the secret";
    let said = log_lines(complaint)?;
    send(&mut |stranger, _, _| stranger.write(&Frame::Bye(BYE_SECRET), 0))?;
    check_eq!(log_lines(complaint)?, said + 1);
    Ok(())
}
