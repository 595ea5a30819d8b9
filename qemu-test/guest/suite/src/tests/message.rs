// SPDX-License-Identifier: GPL-2.0

//! Messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kfi::{bits, uapi, Caps, Error, Form, KfiErrno, Kind, Operation, Segment};
use rand::RngExt;

use crate::check::{Outcome, Stop};
use crate::ends::{
    carries_data, complete, done, expect, expect_error, in_all_forms, injects, quiet, takes_pieces,
    Area, End, Pair, Setup,
};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, pin, until};
use crate::{check, check_eq, tests};

tests! {
    "message" parallel;
    "every-form-and-size" ["kfi_endpoint.h"] every_form_and_size;
    "same-forms-of-receives" ["kfi_endpoint.h"] forms_of_receives;
    "in-order" ["kfi_endpoint.h"] in_order;
    "random-pieces" ["kfi_endpoint.h"] random_pieces;
    "injected-memory-is-free" ["kfi_endpoint.h"] injected_memory_is_free;
    "cut-off" ["kfi_eq.h"] cut_off;
    "receiver-not-ready" ["kfi_eq.h"] receiver_not_ready;
    "held-until-received" ["kfi_endpoint.h"] held_until_received;
    "nobody-there" ["kfi_eq.h"] nobody_there;
    "sender-gone" ["R-CLOSE-4"] sender_gone;
    "selective-completion" ["kfi_endpoint.h R-CNTR-6"] selective_completion;
    "default-flags" ["kfi_endpoint.h"] default_flags;
    "several-in-one-buffer" ["kfi_endpoint.h"] several_in_one_buffer;
    "several-in-one-buffer-that-is-gone" ["kfi_endpoint.h kfi_shim.h"] several_in_a_buffer_that_is_gone;
    "directed-receive" ["kfi_endpoint.h"] directed_receive;
    "source" ["kfi_eq.h"] source;
    "more-and-fence" ["kfi_endpoint.h"] more_and_fence;
    "full-transmit-queue" ["kfi_endpoint.h"] full_transmit_queue;
    "full-receive-queue" ["kfi_endpoint.h"] full_receive_queue;
    "full-completion-queue" ["kfi_eq.h"] full_completion_queue;
    "bad-operations" ["kfi_endpoint.h"] bad_operations;
    "cancel" ["kfi_endpoint.h"] cancel;
    alone "cancel-race" ["kfi_endpoint.h"] cancel_race;
}

/// A message of any form; returns what the receiver was told.
fn message(pair: &Pair, (from, to): (&Area, &Area), len: u64, form: Form, seed: u64) -> Outcome {
    let Pair { a, b, .. } = pair;
    from.fill(seed);
    to.clear();
    let recv_form = match form {
        Form::INJECT | Form::DATA | Form::INJECT_DATA => Form::PLAIN,
        form => form,
    };
    let mut recv = Operation::new(Kind::RECV, recv_form).context(seed + 1);
    let mut send = a.operation(Kind::SEND, form);
    if takes_pieces(form) {
        recv = recv.segments(&to.pieces((len + 100).min(to.len), 5));
        send = send.segments(&from.pieces(len, 3));
    } else {
        recv = recv.segment(to.all());
        send = send.segment(from.part(0, len));
    }
    if !injects(form) {
        send = send.context(seed);
    }
    let data = 0x0123_4567_89ab_cdef ^ seed;
    if carries_data(form) {
        send = send.data(data);
    }
    b.post(&recv)?;
    a.post(&send)?;
    let received = if carries_data(form) {
        let entry = expect(&b.rx, seed + 1, done::RECV_ | bits::REMOTE_CQ_DATA, len)?;
        check_eq!(entry.data, data);
        entry
    } else {
        expect(&b.rx, seed + 1, done::RECV_, len)?
    };
    if pair.entry().caps.contains(Caps::SOURCE) {
        check_eq!(received.src_addr, b.peer);
    }
    check_eq!(received.buf, 0, "a place in a buffer for one message");
    if !injects(form) {
        expect(&a.tx, seed, done::SEND_, len)?;
    }
    to.has_only(len, seed)
}

fn every_form_and_size(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let mut seed = 0;
    let count = in_all_forms(&pair, |from, to, len, form| {
        seed += 2;
        message(&pair, (from, to), len, form, seed)
    })?;
    env.note(format!("{count} messages"));
    pair.close()
}

/// Messages between all forms of the sender and of the receiver.
fn forms_of_receives(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let len = 10_001;
    let from = Area::plain(&pair.session, len)?;
    let to = Area::new(&pair.session, kfi::BufferKind::KMALLOC, 3, len)?;
    let forms = [
        Form::PLAIN,
        Form::V,
        Form::BV,
        Form::SGL,
        Form::MSG,
        Form::MSG_BV,
        Form::MSG_SGL,
    ];
    let mut seed = 0;
    for send in forms {
        for recv in forms {
            seed += 1;
            from.fill(seed);
            to.clear();
            let pieces = |form, area: &Area, count| {
                let count = if takes_pieces(form) { count } else { 1 };
                area.pieces(len, count)
            };
            b.post(&Operation::new(Kind::RECV, recv).segments(&pieces(recv, &to, 7)))?;
            a.post(
                &a.operation(Kind::SEND, send)
                    .segments(&pieces(send, &from, 4)),
            )?;
            expect(&b.rx, 0, done::RECV_, len)?;
            expect(&a.tx, 0, done::SEND_, len)?;
            to.has_only(len, seed)?;
        }
    }
    drop((from, to));
    pair.close()
}

/// Sends meet receives in order, whichever come first, whatever their size.
fn in_order(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let mut rng = env.rng();
    let count = 64;
    let size = 70_000;
    let from = Area::plain(&pair.session, size)?;
    let to = Area::plain(&pair.session, size * count)?;
    from.fill(1);
    for round in 0..env.scaled(20, 4) {
        let lens: Vec<u64> = (0..count)
            .map(|_| [8, 1000, 5000, size][rng.random_range(0..4)])
            .collect();
        let (mut sent, mut posted) = (0, 0);
        let ahead = round % 3;
        while sent < count || posted < count {
            let send = match ahead {
                0 => sent < count && (posted == count || rng.random()),
                1 => sent < count,
                _ => posted == count,
            };
            if send {
                a.send(from.part(0, lens[sent as usize]), sent)?;
                sent += 1;
            } else {
                b.recv(to.part(posted * size, size), posted)?;
                posted += 1;
            }
        }
        let mut received: Vec<_> = (0..count)
            .map(|_| complete(&b.rx).map(|entry| (entry.op_context, entry.len)))
            .collect::<Result<_, _>>()?;
        // Completions have no order, matching has.
        received.sort_unstable();
        let should: Vec<_> = (0..count).zip(lens.iter().copied()).collect();
        check_eq!(received, should, "what was received in round {round}");
        for _ in 0..count {
            check_eq!(complete(&a.tx)?.flags, done::SEND_);
        }
    }
    drop((from, to));
    pair.close()
}

/// Both sides in random pieces at random places.
fn random_pieces(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let mut rng = env.rng();
    let room = 300_000;
    let from = Area::plain(&pair.session, room)?;
    let to = Area::plain(&pair.session, room)?;
    let limit = pair.entry().tx_attr.iov_limit.clamp(1, 200);
    for round in 0..env.scaled(60, 10) {
        let count = rng.random_range(1..=limit);
        let step = room / count;
        let mut cut = |area: &Area| -> Vec<Segment> {
            (0..count)
                .map(|i| {
                    let skip = rng.random_range(0..step / 2 + 1);
                    let len = rng.random_range(0..=step - skip);
                    area.part(i * step + skip, len)
                })
                .collect()
        };
        let (source, target) = (cut(&from), cut(&to));
        from.fill(round);
        to.clear();
        let bytes = |area: &Area, pieces: &[Segment]| -> Vec<u8> {
            pieces
                .iter()
                .flat_map(|piece| area.bytes(piece.offset - area.offset, piece.len))
                .collect()
        };
        let total = |pieces: &[Segment]| pieces.iter().map(|piece| piece.len).sum::<u64>();
        let (sent, space) = (total(&source), total(&target));
        b.post(&Operation::new(Kind::RECV, Form::V).segments(&target))?;
        a.post(&a.operation(Kind::SEND, Form::SGL).segments(&source))?;
        let fits = sent.min(space);
        if sent <= space {
            expect(&b.rx, 0, done::RECV_, sent)?;
            expect(&a.tx, 0, done::SEND_, sent)?;
        } else {
            let error = expect_error(&b.rx, 0, KfiErrno::EMSGSIZE)?;
            check_eq!((error.entry.len, error.olen), (space, sent - space));
            expect_error(&a.tx, 0, KfiErrno::EMSGSIZE)?;
        }
        let (is, should) = (bytes(&to, &target), bytes(&from, &source));
        check!(
            is[..fits as usize] == should[..fits as usize],
            "round {round}: {sent} bytes in {count} pieces differ"
        );
    }
    drop((from, to));
    pair.close()
}

fn injected_memory_is_free(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let len = pair.entry().tx_attr.inject_size.min(512);
    let from = Area::plain(&pair.session, len)?;
    let to = Area::plain(&pair.session, len * 16)?;
    for i in 0..16 {
        // Nobody receives yet: the message waits without the memory.
        from.fill(i);
        match i % 3 {
            0 => a.post(&a.operation(Kind::SEND, Form::INJECT).segment(from.all()))?,
            1 => a.post(
                &a.operation(Kind::SEND, Form::INJECT_DATA)
                    .segment(from.all())
                    .data(i),
            )?,
            _ => a.post(
                &a.operation(Kind::SEND, Form::MSG)
                    .segment(from.all())
                    .context(i)
                    .flags(bits::INJECT),
            )?,
        }
        from.clear();
    }
    for i in 0..16 {
        b.recv(to.part(i * len, len), i)?;
    }
    for _ in 0..16 {
        let entry = complete(&b.rx)?;
        let data = if entry.op_context % 3 == 1 {
            bits::REMOTE_CQ_DATA
        } else {
            0
        };
        check_eq!(entry.flags, done::RECV_ | data);
        to.has(entry.op_context * len, len, entry.op_context, 0)?;
    }
    // Only the ones of the message form tell.
    for _ in 0..5 {
        let entry = complete(&a.tx)?;
        check_eq!((entry.op_context % 3, entry.flags), (2, done::SEND_));
    }
    quiet(&a.tx)?;
    drop((from, to));
    pair.close()
}

fn cut_off(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 100_000)?;
    for (room, len) in [
        (0, 1),
        (1, 2),
        (100, 4096),
        (4096, 100_000),
        (99_999, 100_000),
    ] {
        let to = Area::plain(&pair.session, room)?;
        from.fill(len);
        b.recv(to.all(), 1)?;
        a.send(from.part(0, len), 2)?;
        let error = expect_error(&b.rx, 1, KfiErrno::EMSGSIZE)?;
        check_eq!(error.entry.len, room, "what was placed of {len} bytes");
        check_eq!(error.olen, len - room, "what did not fit of {len} bytes");
        check_eq!(error.entry.flags, done::RECV_);
        let error = expect_error(&a.tx, 2, KfiErrno::EMSGSIZE)?;
        check_eq!((error.entry.flags, error.entry.len), (done::SEND_, 0));
        to.has_only(room, len)?;
    }
    drop(from);
    pair.close()
}

fn receiver_not_ready(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 100_000)?;
    from.fill(1);
    for len in [0, 8, 100_000] {
        let start = Instant::now();
        a.send(from.part(0, len), len)?;
        let error = expect_error(&a.tx, len, KfiErrno::EREMOTEIO)?;
        check_eq!(error.entry.flags, done::SEND_);
        check!(start.elapsed() < Duration::from_secs(15), "too late");
    }
    // Injected: nothing but the error is told.
    a.post(
        &a.operation(Kind::SEND, Form::INJECT)
            .segment(from.part(0, 8)),
    )?;
    expect_error(&a.tx, 0, KfiErrno::EREMOTEIO)?;
    // Then all is well again, and nothing old arrives.
    let to = Area::plain(&pair.session, 100_000)?;
    b.recv(to.all(), 5)?;
    a.send(from.part(0, 77), 6)?;
    expect(&b.rx, 5, done::RECV_, 77)?;
    expect(&a.tx, 6, done::SEND_, 77)?;
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop((from, to));
    pair.close()
}

fn held_until_received(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 1 << 20)?;
    let to = Area::plain(&pair.session, 1 << 20)?;
    for len in [0, 100, 1 << 20] {
        from.fill(len);
        to.clear();
        a.send(from.part(0, len), 1)?;
        std::thread::sleep(Duration::from_millis(20));
        pair.b.quiet()?;
        b.recv(to.all(), 2)?;
        expect(&b.rx, 2, done::RECV_, len)?;
        expect(&a.tx, 1, done::SEND_, len)?;
        to.has_only(len, len)?;
    }
    drop((from, to));
    pair.close()
}

fn nobody_there(env: &Env) -> Outcome {
    let mut pair = Pair::prepare(env, Caps::MSG, &Setup::default())?;
    pair.connect()?;
    let from = Area::plain(&pair.session, 100)?;
    let Pair { a, b, far, rig } = pair;
    // A message that waits there, and one that comes later.
    a.send(from.all(), 1)?;
    drop(b);
    expect_error(&a.tx, 1, KfiErrno::EHOSTUNREACH)?;
    a.send(from.all(), 2)?;
    expect_error(&a.tx, 2, KfiErrno::EHOSTUNREACH)?;
    // One that is not known at all.
    a.av.remove(&[a.peer])?;
    expect_fabric(
        a.ep.post(&a.operation(Kind::SEND, Form::PLAIN).segment(from.all())),
        KfiErrno::EINVAL,
    )?;
    a.quiet()?;
    drop((a, from));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// Receives that wait at an endpoint that is closed, and messages that it has sent and nobody has received,
/// are given up.
fn sender_gone(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let memory = Area::plain(&pair.session, 300_000)?;
    memory.fill(1);
    let Pair { a, b, far, rig } = pair;
    for len in [8, 100_000] {
        a.send(memory.part(0, len), len)?;
        a.recv(memory.part(100_000, len), len)?;
    }
    let End { ep, tx, rx, av, .. } = a;
    ep.close().map_err(|(_, error)| error)?;
    quiet(&tx)?;
    quiet(&rx)?;
    // The memory is the consumer's again.
    memory.fill(2);
    b.recv(memory.part(200_000, 100_000), 2)?;
    std::thread::sleep(Duration::from_millis(20));
    b.quiet()?;
    memory.has(0, memory.len, 2, 0)?;
    b.ep.cancel(2)?;
    expect_error(&b.rx, 2, KfiErrno::ECANCELED)?;
    quiet(&tx)?;
    quiet(&rx)?;
    drop((tx, rx, av, b, memory));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn selective_completion(env: &Env) -> Outcome {
    let setup = Setup {
        tx_bind: bits::SELECTIVE_COMPLETION,
        rx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG, &setup)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 64)?;
    let to = Area::plain(&pair.session, 64)?;
    let round = |send: Option<u64>, recv: Option<u64>| -> Outcome {
        let operation = |kind, flags: Option<u64>| match flags {
            Some(flags) => Operation::new(kind, Form::MSG).flags(flags),
            None => Operation::new(kind, Form::PLAIN),
        };
        b.post(&operation(Kind::RECV, recv).segment(to.all()).context(1))?;
        a.post(
            &operation(Kind::SEND, send)
                .segment(from.all())
                .to(a.peer)
                .context(2),
        )
    };
    // Completions that nobody asks for are not told.
    for _ in 0..3 {
        round(None, None)?;
        round(Some(0), Some(0))?;
    }
    round(Some(bits::COMPLETION), Some(0))?;
    expect(&a.tx, 2, done::SEND_, 64)?;
    round(Some(0), Some(bits::COMPLETION))?;
    expect(&b.rx, 1, done::RECV_, 64)?;
    pair.a.quiet()?;
    pair.b.quiet()?;
    // Errors are told always.
    b.post(
        &Operation::new(Kind::RECV, Form::PLAIN)
            .segment(to.part(0, 8))
            .context(4),
    )?;
    a.send(from.all(), 5)?;
    expect_error(&b.rx, 4, KfiErrno::EMSGSIZE)?;
    expect_error(&a.tx, 5, KfiErrno::EMSGSIZE)?;
    a.send(from.all(), 6)?;
    a.ep.cancel(6)?;
    expect_error(&a.tx, 6, KfiErrno::ECANCELED)?;
    b.recv(to.all(), 7)?;
    b.ep.cancel(7)?;
    expect_error(&b.rx, 7, KfiErrno::ECANCELED)?;
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop((from, to));
    pair.close()
}

/// Default flags hold for the forms without flags, and for no others.
fn default_flags(env: &Env) -> Outcome {
    let rig_entry = {
        let rig = crate::rig::Rig::new(env)?;
        rig.info.entries()[0].clone()
    };
    let mut entry = rig_entry;
    entry.tx_attr.op_flags = kfi::OpFlags::COMPLETION;
    let setup = Setup {
        entry: Some(entry),
        tx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG, &setup)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 64)?;
    let to = Area::plain(&pair.session, 64)?;
    b.recv(to.all(), 1)?;
    a.send(from.all(), 2)?;
    expect(&a.tx, 2, done::SEND_, 64)?;
    expect(&b.rx, 1, done::RECV_, 64)?;
    b.recv(to.all(), 1)?;
    a.post(
        &a.operation(Kind::SEND, Form::MSG)
            .segment(from.all())
            .context(3),
    )?;
    expect(&b.rx, 1, done::RECV_, 64)?;
    quiet(&a.tx)?;
    drop((from, to));
    pair.close()
}

/// A completion that is read when the buffer is gone tells no place in it, and no address of the kernel.
fn several_in_a_buffer_that_is_gone(env: &Env) -> Outcome {
    let Pair { a, b, far, rig } = Pair::new(env, Caps::MSG | Caps::MULTI_RECV)?;
    let from = Area::plain(&rig.session, 64)?;
    let to = Area::plain(&rig.session, 8192)?;
    b.post(
        &Operation::new(Kind::RECV, Form::MSG)
            .segment(to.all())
            .context(7)
            .flags(bits::MULTI_RECV),
    )?;
    a.send(from.all(), 1)?;
    expect(&a.tx, 1, done::SEND_, 64)?;
    drop(b.ep);
    drop(to);
    let entry = expect(&b.rx, 7, done::RECV_, 64)?;
    check_eq!(entry.buf, 0);
    drop((a, far, rig));
    Ok(())
}

fn several_in_one_buffer(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::MULTI_RECV)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 8192)?;
    let to = Area::plain(&pair.session, 8192)?;
    let min: usize = 100;
    b.ep.set_option(
        uapi::KFI_OPT_ENDPOINT as i32,
        uapi::KFI_OPT_MIN_MULTI_RECV as i32,
        &min.to_ne_bytes(),
    )?;
    let mut rng = env.rng();
    for round in 0..env.scaled(30, 5) {
        to.clear();
        b.post(
            &Operation::new(Kind::RECV, Form::MSG)
                .segment(to.all())
                .context(u64::MAX - round)
                .flags(bits::MULTI_RECV),
        )?;
        let mut at = 0;
        loop {
            let left = 8192 - at;
            let len = rng.random_range(0..3000).min(left);
            from.fill(round + at);
            a.send(from.part(0, len), len)?;
            expect(&a.tx, len, done::SEND_, len)?;
            let last = left - len < min as u64;
            let released = if last { bits::MULTI_RECV } else { 0 };
            let entry = expect(&b.rx, u64::MAX - round, done::RECV_ | released, len)?;
            check_eq!(
                entry.buf,
                u64::from(to.buffer.handle()) << 32 | (to.offset + at),
                "where the message has landed"
            );
            to.has(at, len, round + at, 0)?;
            at += len;
            if last {
                break;
            }
        }
    }
    // Nobody is there any more.
    a.send(from.part(0, 1), 3)?;
    expect_error(&a.tx, 3, KfiErrno::EREMOTEIO)?;
    // Cancelled while it is used in part.
    b.post(
        &Operation::new(Kind::RECV, Form::MSG)
            .segment(to.all())
            .context(9)
            .flags(bits::MULTI_RECV),
    )?;
    a.send(from.part(0, 10), 4)?;
    expect(&b.rx, 9, done::RECV_, 10)?;
    expect(&a.tx, 4, done::SEND_, 10)?;
    b.ep.cancel(9)?;
    expect_error(&b.rx, 9, KfiErrno::ECANCELED)?;
    expect_fabric(b.ep.cancel(9), KfiErrno::ENOENT)?;
    drop((from, to));
    pair.close()
}

fn directed_receive(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::DIRECTED_RECV)?;
    let Pair { a, b, .. } = &pair;
    // A third endpoint, beside the second.
    let mut third = End::open(
        &pair.far,
        kfi::EpInfo::Entry(&pair.rig.info, pair.rig.info.entries().len() - 1),
        &Setup::default(),
    )?;
    third.enable()?;
    third.connect(b)?;
    let from_third = b.av.insert(&third.name)?;
    let memory = Area::plain(&pair.session, 64)?;
    let recv = |source, context| {
        b.post(
            &Operation::new(Kind::RECV, Form::PLAIN)
                .segment(memory.part(0, 32))
                .to(source)
                .context(context),
        )
    };
    recv(from_third, 1)?;
    recv(b.peer, 2)?;
    recv(u64::MAX, 3)?;
    a.send(memory.part(32, 8), 10)?;
    expect(&b.rx, 2, done::RECV_, 8)?;
    a.send(memory.part(32, 9), 11)?;
    expect(&b.rx, 3, done::RECV_, 9)?;
    third.send(memory.part(32, 10), 12)?;
    let entry = expect(&b.rx, 1, done::RECV_, 10)?;
    if pair.entry().caps.contains(Caps::SOURCE) {
        check_eq!(entry.src_addr, from_third);
    }
    // Somebody whom nobody knows.
    let unknown = Operation::new(Kind::RECV, Form::PLAIN)
        .segment(memory.all())
        .to(from_third + 1000);
    expect_fabric(b.ep.post(&unknown), KfiErrno::EINVAL)?;
    for (context, len) in [(10, 8), (11, 9)] {
        expect(&a.tx, context, done::SEND_, len)?;
    }
    expect(&third.tx, 12, done::SEND_, 10)?;
    drop((third, memory));
    pair.close()
}

fn source(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::SOURCE)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let arrives = |source| -> Outcome {
        b.recv(memory.part(0, 32), 1)?;
        a.send(memory.part(32, 8), 2)?;
        check_eq!(expect(&b.rx, 1, done::RECV_, 8)?.src_addr, source);
        check_eq!(
            expect(&a.tx, 2, done::SEND_, 8)?.src_addr,
            kfi::ADDR_NOTAVAIL
        );
        Ok(())
    };
    arrives(b.peer)?;
    // A sender that is not in the vector is not known.
    b.av.remove(&[b.peer])?;
    arrives(kfi::ADDR_NOTAVAIL)?;
    let again = b.av.insert(&a.name)?;
    arrives(again)?;
    drop(memory);
    pair.close()
}

fn more_and_fence(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::FENCE)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 1 << 20)?;
    let to = Area::plain(&pair.session, 1 << 20)?;
    let mut rng = env.rng();
    let count = 40;
    for _ in 0..env.scaled(20, 3) {
        for i in 0..count {
            b.recv(to.all(), i)?;
        }
        let mut fences = Vec::new();
        for i in 0..count {
            // The last one lets those go that are held back.
            let kinds = if i + 1 == count { 2 } else { 3 };
            let flags = [bits::FENCE, 0, bits::MORE][rng.random_range(0..kinds)];
            if flags == bits::FENCE {
                fences.push(i);
            }
            let len = [8, 1 << 20][usize::from(rng.random_ratio(1, 8))];
            a.post(
                &a.operation(Kind::SEND, Form::MSG)
                    .segment(from.part(0, len))
                    .context(i)
                    .flags(flags),
            )?;
        }
        let mut ended = Vec::new();
        for _ in 0..count {
            ended.push(complete(&a.tx)?.op_context);
            complete(&b.rx)?;
        }
        // All operations posted before a fence have ended before it.
        for fence in fences {
            let at = ended.iter().position(|context| *context == fence);
            let before = &ended[..at.unwrap_or_default()];
            for earlier in 0..fence {
                check!(
                    before.contains(&earlier),
                    "{earlier} ends after the fence {fence}: {ended:?}"
                );
            }
        }
    }
    drop((from, to));
    pair.close()
}

fn full_transmit_queue(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let size = pair.entry().tx_attr.size;
    let send = a
        .operation(Kind::SEND, Form::PLAIN)
        .segment(memory.part(0, 8));
    for round in 0..3 {
        // Nobody receives: at some point no more is taken.
        let mut posted = 0;
        let full = loop {
            match a.ep.post(&send.clone().context(posted)) {
                Ok(()) => posted += 1,
                Err(error) => break error,
            }
            check!(posted <= 4 * size, "more than {size} is taken");
        };
        check_eq!(full, Error::Fabric(KfiErrno::EAGAIN));
        check!(posted >= size, "only {posted} of {size} are taken");
        // Where posting takes long the first are given up by now, and others while this receives.
        let given_up = KfiErrno::EREMOTEIO.number();
        let mut ended = Ended::default();
        let mut receives = 0;
        while receives + ended.count(given_up) < posted {
            b.recv(memory.part(32, 8), 0)?;
            receives += 1;
            while ended.read(&a.tx)? {}
        }
        until(|| {
            while ended.read(&a.tx)? {}
            Ok(ended.by_context.len() as u64 >= posted)
        })?;
        ended.once(posted)?;
        let sent = ended.count(0);
        check!(sent > 0, "round {round}: nothing is sent");
        check_eq!(sent + ended.count(given_up), posted, "round {round}");
        for _ in 0..sent {
            complete(&b.rx)?;
        }
        for _ in sent..receives {
            b.ep.cancel(0)?;
            expect_error(&b.rx, 0, KfiErrno::ECANCELED)?;
        }
        pair.a.quiet()?;
    }
    drop(memory);
    pair.close()
}

fn full_receive_queue(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let size = pair.entry().rx_attr.size;
    let recv = Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(0, 8));
    let mut posted = 0;
    let full = loop {
        match b.ep.post(&recv.clone().context(posted)) {
            Ok(()) => posted += 1,
            Err(error) => break error,
        }
        check!(posted <= 4 * size, "more than {size} is taken");
    };
    check_eq!(full, Error::Fabric(KfiErrno::EAGAIN));
    check!(posted >= size, "only {posted} of {size} are taken");
    for i in 0..2 * posted {
        a.send(memory.part(32, 8), i)?;
        complete(&a.tx)?;
        let entry = complete(&b.rx)?;
        check_eq!(entry.op_context, i % posted);
        b.post(&recv.clone().context(entry.op_context))?;
    }
    drop(memory);
    pair.close()
}

/// No completion is lost, however long nobody reads.
fn full_completion_queue(env: &Env) -> Outcome {
    let setup = Setup {
        cq_size: 8,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG, &setup)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let total = env.scaled(300, 50);
    let (mut posted, mut sent) = (0, 0);
    let (mut received, mut ended) = (Vec::new(), Vec::new());
    let mut refused = 0;
    // Until there was no room: a work queue that is late takes many before their ends need some.
    while refused == 0 || posted < total || received.len().min(ended.len()) < posted as usize {
        let mut progress = false;
        while posted < total || refused == 0 {
            let recv = Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(0, 8));
            match b.ep.post(&recv.context(posted)) {
                Ok(()) => posted += 1,
                Err(Error::Fabric(KfiErrno::EAGAIN)) => break,
                Err(error) => return Err(error.into()),
            }
            progress = true;
        }
        while sent < posted {
            let send = a.operation(Kind::SEND, Form::PLAIN);
            match a.ep.post(&send.segment(memory.part(32, 8)).context(sent)) {
                Ok(()) => sent += 1,
                Err(Error::Fabric(KfiErrno::EAGAIN)) => break,
                Err(error) => return Err(error.into()),
            }
            progress = true;
        }
        refused += u64::from(sent < posted);
        for (cq, contexts) in [(&b.rx, &mut received), (&a.tx, &mut ended)] {
            match cq.read(3) {
                Ok(entries) => {
                    progress = true;
                    contexts.extend(entries.iter().map(|entry| entry.op_context));
                }
                result => expect_fabric(result, KfiErrno::EAGAIN)?,
            }
        }
        if !progress {
            kfi_host::thread::relax();
        }
    }
    for contexts in [&mut received, &mut ended] {
        contexts.sort_unstable();
        check_eq!(*contexts, (0..posted).collect::<Vec<_>>());
    }
    drop(memory);
    pair.close()
}

fn bad_operations(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let a = &pair.a;
    let memory = Area::plain(&pair.session, 8192)?;
    let send = |form: Form| a.operation(Kind::SEND, form).segment(memory.part(0, 8));
    let fails = |operation: Operation, errno| expect_fabric(a.ep.post(&operation), errno);
    fails(send(Form::PLAIN).to(12_345), KfiErrno::EINVAL)?;
    fails(send(Form::PLAIN).to(u64::MAX), KfiErrno::EINVAL)?;
    fails(send(Form::MSG).flags(1 << 50), KfiErrno::EBADFLAGS)?;
    fails(send(Form::MSG).flags(bits::PEEK), KfiErrno::EBADFLAGS)?;
    fails(
        Operation::new(Kind::RECV, Form::MSG)
            .segment(memory.all())
            .flags(bits::INJECT),
        KfiErrno::EBADFLAGS,
    )?;
    let too_much = pair.entry().tx_attr.inject_size + 1;
    fails(
        a.operation(Kind::SEND, Form::INJECT)
            .segment(memory.part(0, too_much)),
        KfiErrno::EMSGSIZE,
    )?;
    fails(
        a.operation(Kind::SEND, Form::MSG)
            .segment(memory.part(0, too_much))
            .flags(bits::INJECT),
        KfiErrno::EMSGSIZE,
    )?;
    let pieces = pair.entry().tx_attr.iov_limit + 1;
    if pieces < 1000 {
        let segments: Vec<_> = (0..pieces).map(|i| memory.part(i, 1)).collect();
        fails(
            a.operation(Kind::SEND, Form::V).segments(&segments),
            KfiErrno::EINVAL,
        )?;
        a.post(
            &a.operation(Kind::SEND, Form::V)
                .segments(&segments[1..])
                .context(77),
        )?;
        pair.b.recv(memory.part(4096, 4096), 78)?;
        expect(&pair.b.rx, 78, done::RECV_, pieces - 1)?;
        expect(&a.tx, 77, done::SEND_, pieces - 1)?;
    }
    // Nothing has come of all that.
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop(memory);
    pair.close()
}

fn cancel(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    expect_fabric(b.ep.cancel(1), KfiErrno::ENOENT)?;
    for i in 0..5 {
        b.recv(memory.part(0, 8), i)?;
    }
    for i in [2, 0, 4] {
        b.ep.cancel(i)?;
        let error = expect_error(&b.rx, i, KfiErrno::ECANCELED)?;
        check_eq!((error.entry.flags, error.entry.len), (done::RECV_, 0));
        expect_fabric(b.ep.cancel(i), KfiErrno::ENOENT)?;
    }
    // The others are where they were.
    for i in [1, 3] {
        a.send(memory.part(32, 8), i)?;
        expect(&b.rx, i, done::RECV_, 8)?;
        expect(&a.tx, i, done::SEND_, 8)?;
    }
    // A send that nobody receives.
    a.send(memory.part(32, 8), 9)?;
    a.ep.cancel(9)?;
    let error = expect_error(&a.tx, 9, KfiErrno::ECANCELED)?;
    check_eq!(error.entry.flags, done::SEND_);
    expect_fabric(a.ep.cancel(9), KfiErrno::ENOENT)?;
    // It is not there to be received.
    b.recv(memory.part(0, 8), 10)?;
    a.send(memory.part(32, 7), 11)?;
    expect(&b.rx, 10, done::RECV_, 7)?;
    expect(&a.tx, 11, done::SEND_, 7)?;
    // Of several with one context, one.
    for _ in 0..3 {
        b.recv(memory.part(0, 8), 6)?;
    }
    for _ in 0..3 {
        b.ep.cancel(6)?;
        expect_error(&b.rx, 6, KfiErrno::ECANCELED)?;
    }
    expect_fabric(b.ep.cancel(6), KfiErrno::ENOENT)?;
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop(memory);
    pair.close()
}

/// Ends of the operations of one side.
#[derive(Debug, Default)]
struct Ended {
    /// How often each context has ended, and how the last time.
    by_context: HashMap<u64, (u32, i32)>,
}

impl Ended {
    /// Reads what there is.
    fn read(&mut self, cq: &kfi::CompletionQueue) -> Result<bool, Stop> {
        let mut end = |context, err| {
            let entry = self.by_context.entry(context).or_insert((0, 0));
            *entry = (entry.0 + 1, err);
        };
        match cq.read(16) {
            Ok(entries) => {
                for entry in entries {
                    end(entry.op_context, 0);
                }
            }
            Err(Error::Fabric(KfiErrno::EAVAIL)) => match cq.read_err() {
                Ok(error) => end(error.entry.op_context, error.err),
                result => expect_fabric(result, KfiErrno::EAGAIN)?,
            },
            Err(Error::Fabric(KfiErrno::EAGAIN)) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// How many have ended so.
    fn count(&self, err: i32) -> u64 {
        let mut errs = self.by_context.values().map(|(_, err)| *err);
        errs.by_ref().filter(|is| *is == err).count() as u64
    }

    /// Each has ended once.
    fn once(&self, posted: u64) -> Outcome {
        check_eq!(
            self.by_context.len() as u64,
            posted,
            "operations that ended"
        );
        for (context, (times, _)) in &self.by_context {
            check_eq!(*times, 1, "how often {context} has ended");
        }
        Ok(())
    }
}

/// One thread posts and cancels receives, another sends and cancels: each operation
/// ends once, and as many messages arrive as were sent.
fn cancel_race(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let rounds = env.scaled(20_000, 1_000);
    let finished = AtomicU64::new(0);
    let results = in_threads([0_usize, 1], |which| {
        pin(which)?;
        let mut rng = env.rng();
        let mut ended = Ended::default();
        let mut cancelled = 0_u64;
        let (end, cq) = if which == 0 { (a, &a.tx) } else { (b, &b.rx) };
        let operation = if which == 0 {
            a.operation(Kind::SEND, Form::PLAIN)
                .segment(memory.part(0, 8))
        } else {
            Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(32, 8))
        };
        for context in 0..rounds {
            loop {
                match end.ep.post(&operation.clone().context(context)) {
                    Err(Error::Fabric(KfiErrno::EAGAIN)) => {
                        // An old one makes room.
                        if !ended.read(cq)? {
                            let old = context.saturating_sub(rng.random_range(1..200));
                            let _ = end.ep.cancel(old);
                        }
                    }
                    result => break result?,
                }
            }
            let target = context.saturating_sub(rng.random_range(0..3));
            match end.ep.cancel(target) {
                Ok(()) => cancelled += 1,
                result => expect_fabric(result, KfiErrno::ENOENT)?,
            }
            if context % 8 == 0 {
                while ended.read(cq)? {}
            }
        }
        // Operations that are left are cancelled once both are done.
        finished.fetch_add(1, Ordering::SeqCst);
        until(|| {
            while ended.read(cq)? {}
            Ok(finished.load(Ordering::SeqCst) == 2)
        })?;
        until(|| {
            while ended.read(cq)? {}
            // One that is as old as the race may still be there.
            for context in 0..rounds {
                if !ended.by_context.contains_key(&context) {
                    let _ = end.ep.cancel(context);
                }
            }
            while ended.read(cq)? {}
            Ok(ended.by_context.len() as u64 >= rounds)
        })?;
        ended.once(rounds)?;
        Ok((ended, cancelled))
    })?;
    let cancelled = KfiErrno::ECANCELED.number();
    let late = KfiErrno::EREMOTEIO.number();
    let [(sent, _), (received, _)] = &results[..] else {
        return Err(Stop::fail("two threads"));
    };
    env.note(format!(
        "{rounds} each: {} sent, {} sends cancelled, {} given up; {} received, {} cancelled",
        sent.count(0),
        sent.count(cancelled),
        sent.count(late),
        received.count(0),
        received.count(cancelled)
    ));
    check_eq!(sent.count(0), received.count(0), "messages");
    check_eq!(received.count(0) + received.count(cancelled), rounds);
    check_eq!(
        sent.count(0) + sent.count(cancelled) + sent.count(late),
        rounds
    );
    check!(sent.count(0) > 0, "nothing has met");
    pair.a.quiet()?;
    pair.b.quiet()?;
    drop(memory);
    pair.close()
}
