// SPDX-License-Identifier: GPL-2.0

//! Tagged messages, and RMA to tagged receives.

use std::time::Duration;

use kfi::{bits, Caps, Error, Form, KfiErrno, Kind, Operation};
use rand::RngExt;

use crate::check::Outcome;
use crate::ends::{
    carries_data, complete, done, expect, expect_error, in_all_forms, injects, quiet, takes_pieces,
    Area, Pair,
};
use crate::env::Env;
use crate::rig::{expect_fabric, until};
use crate::{check, check_eq, tests};

tests! {
    "tagged" parallel;
    "every-form-and-size" ["kfi_tagged.h"] every_form_and_size;
    "tags-and-ignored-bits" ["kfi_tagged.h"] tags_and_ignored_bits;
    "apart-from-messages" ["kfi_tagged.h"] apart_from_messages;
    "peek" ["kfi_tagged.h"] peek;
    "peek-and-claim" ["kfi_tagged.h"] peek_and_claim;
    "peek-and-discard" ["kfi_tagged.h"] peek_and_discard;
    "flags-of-peeking" ["kfi_tagged.h"] flags_of_peeking;
    "several-in-one-buffer" ["kfi_tagged.h"] several_in_one_buffer;
    "cut-off-and-cancelled" ["kfi_tagged.h"] cut_off_and_cancelled;
    "expired-beside-new-receives" ["kfi_endpoint.h"] expired_beside_new_receives;
    "rma-to-a-receive" ["kfi_rma.h"] rma_to_a_receive;
    "model" ["kfi_tagged.h"] model;
}

fn tagged(pair: &Pair, (from, to): (&Area, &Area), len: u64, form: Form, seed: u64) -> Outcome {
    let Pair { a, b, .. } = pair;
    from.fill(seed);
    to.clear();
    let recv_form = match form {
        Form::INJECT | Form::DATA | Form::INJECT_DATA => Form::PLAIN,
        form => form,
    };
    let tag = u64::MAX - seed;
    let mut recv = Operation::new(Kind::TRECV, recv_form)
        .tag(tag, 0)
        .context(seed + 1);
    let mut send = a.operation(Kind::TSEND, form).tag(tag, 0);
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
    let mut flags = done::TAGGED_RECV;
    if carries_data(form) {
        send = send.data(!seed);
        flags |= bits::REMOTE_CQ_DATA;
    }
    b.post(&recv)?;
    a.post(&send)?;
    let entry = expect(&b.rx, seed + 1, flags, len)?;
    check_eq!(entry.tag, tag);
    check_eq!(entry.data, if carries_data(form) { !seed } else { 0 });
    if !injects(form) {
        // No word of the data on the sender's side.
        let entry = expect(&a.tx, seed, done::TAGGED_SEND, len)?;
        check_eq!(entry.data, 0);
    }
    to.has_only(len, seed)
}

fn every_form_and_size(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let mut seed = 0;
    let count = in_all_forms(&pair, |from, to, len, form| {
        seed += 2;
        tagged(&pair, (from, to), len, form, seed)
    })?;
    env.note(format!("{count} messages"));
    pair.close()
}

/// A receive of 32 bytes.
fn trecv(memory: &Area, tag: u64, ignore: u64) -> Operation {
    Operation::new(Kind::TRECV, Form::PLAIN)
        .segment(memory.part(0, 32))
        .tag(tag, ignore)
        .context(tag)
}

/// A send of a number of bytes.
fn tsend(pair: &Pair, memory: &Area, tag: u64, len: u64) -> Operation {
    pair.a
        .operation(Kind::TSEND, Form::PLAIN)
        .segment(memory.part(32, len))
        .tag(tag, 0)
        .context(tag)
}

fn tags_and_ignored_bits(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    b.post(&trecv(&memory, 1, 0))?;
    b.post(&trecv(&memory, 0x10, 0xf))?;
    b.post(&trecv(&memory, 0x20, u64::MAX))?;
    // Past those that do not fit, to the first that does.
    a.post(&tsend(&pair, &memory, 0x1f, 3))?;
    check_eq!(expect(&b.rx, 0x10, done::TAGGED_RECV, 3)?.tag, 0x1f);
    a.post(&tsend(&pair, &memory, u64::MAX, 4))?;
    check_eq!(expect(&b.rx, 0x20, done::TAGGED_RECV, 4)?.tag, u64::MAX);
    a.post(&tsend(&pair, &memory, 1, 5))?;
    expect(&b.rx, 1, done::TAGGED_RECV, 5)?;
    for (tag, len) in [(0x1f, 3), (u64::MAX, 4), (1, 5)] {
        check_eq!(expect(&a.tx, tag, done::TAGGED_SEND, len)?.data, 0);
    }
    // The other way round: messages wait, receives choose.
    for (tag, len) in [(5, 1), (6, 2), (5, 3), (7, 4)] {
        a.post(&tsend(&pair, &memory, tag, len))?;
    }
    for (tag, ignore, len) in [(7, 0, 4), (5, 0, 1), (4, 3, 2), (5, 0, 3)] {
        b.post(&trecv(&memory, tag, ignore))?;
        expect(&b.rx, tag, done::TAGGED_RECV, len)?;
    }
    for _ in 0..4 {
        complete(&a.tx)?;
    }
    pair.a.quiet()?;
    drop(memory);
    pair.close()
}

fn apart_from_messages(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED | Caps::MSG)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    b.post(&trecv(&memory, 0, u64::MAX))?;
    a.send(memory.part(32, 3), 1)?;
    std::thread::sleep(Duration::from_millis(20));
    b.quiet()?;
    b.recv(memory.part(0, 32), 2)?;
    expect(&b.rx, 2, done::RECV_, 3)?;
    expect(&a.tx, 1, done::SEND_, 3)?;
    a.post(&tsend(&pair, &memory, 9, 4))?;
    expect(&b.rx, 0, done::TAGGED_RECV, 4)?;
    expect(&a.tx, 9, done::TAGGED_SEND, 4)?;
    drop(memory);
    pair.close()
}

/// Looks for a message with a tag.
pub(crate) fn look(tag: u64, ignore: u64, flags: u64) -> Operation {
    Operation::new(Kind::TRECV, Form::MSG)
        .tag(tag, ignore)
        .context(100 + tag)
        .flags(bits::PEEK | flags)
}

/// Looks until there is such a message; it may take a while to arrive.
fn look_until_there(
    pair: &Pair,
    tag: u64,
    flags: u64,
) -> Result<kfi::Completion, crate::check::Stop> {
    let mut found = None;
    until(|| {
        pair.b.post(&look(tag, 0, flags))?;
        if let Ok(mut entries) = pair.b.rx.sread_ms(1, 20_000) {
            found = entries.pop();
            Ok(true)
        } else {
            let error = pair.b.rx.read_err()?;
            check_eq!(error.err, KfiErrno::ENOMSG.number());
            check_eq!(error.entry.op_context, 100 + tag);
            Ok(false)
        }
    })?;
    found.ok_or_else(|| crate::check::Stop::fail("sread returns nothing"))
}

fn peek(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    b.post(&look(1, 0, 0))?;
    let error = expect_error(&b.rx, 101, KfiErrno::ENOMSG)?;
    check_eq!(error.entry.flags, done::TAGGED_RECV);
    a.post(
        &a.operation(Kind::TSEND, Form::DATA)
            .segment(memory.part(32, 13))
            .tag(1, 0)
            .data(77)
            .context(1),
    )?;
    // It stays, however often it is looked at.
    for _ in 0..3 {
        let entry = look_until_there(&pair, 1, 0)?;
        check_eq!(
            (entry.op_context, entry.flags, entry.len, entry.tag),
            (101, done::TAGGED_RECV | bits::REMOTE_CQ_DATA, 13, 1)
        );
        check_eq!(entry.data, 77);
        if pair.entry().caps.contains(Caps::SOURCE) {
            check_eq!(entry.src_addr, b.peer);
        }
    }
    b.post(&look(2, 0, 0))?;
    expect_error(&b.rx, 102, KfiErrno::ENOMSG)?;
    b.post(&trecv(&memory, 1, 0))?;
    expect(&b.rx, 1, done::TAGGED_RECV | bits::REMOTE_CQ_DATA, 13)?;
    expect(&a.tx, 1, done::TAGGED_SEND, 13)?;
    b.post(&look(1, 0, 0))?;
    expect_error(&b.rx, 101, KfiErrno::ENOMSG)?;
    // A posted receive is no message.
    b.post(&trecv(&memory, 1, 0))?;
    b.post(&look(1, 0, 0))?;
    expect_error(&b.rx, 101, KfiErrno::ENOMSG)?;
    drop(memory);
    pair.close()
}

fn peek_and_claim(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let claim = |flags| {
        Operation::new(Kind::TRECV, Form::MSG)
            .tag(1, 0)
            .context(101)
            .flags(bits::CLAIM | flags)
            .segment(memory.part(0, 32))
    };
    // There is none.
    b.post(&claim(0))?;
    expect_error(&b.rx, 101, KfiErrno::ENOMSG)?;
    for discard in [0, bits::DISCARD] {
        memory.fill(3);
        a.post(&tsend(&pair, &memory, 1, 13))?;
        let entry = look_until_there(&pair, 1, bits::CLAIM)?;
        check_eq!((entry.op_context, entry.len), (101, 13));
        // Nobody else finds it any more.
        b.post(&look(1, 0, 0))?;
        expect_error(&b.rx, 101, KfiErrno::ENOMSG)?;
        b.post(&trecv(&memory, 1, 0))?;
        std::thread::sleep(Duration::from_millis(10));
        quiet(&b.rx)?;
        b.ep.cancel(1)?;
        expect_error(&b.rx, 1, KfiErrno::ECANCELED)?;
        b.post(&claim(discard))?;
        let entry = expect(&b.rx, 101, done::TAGGED_RECV, 13)?;
        check_eq!(entry.tag, 1);
        if discard == 0 {
            memory.has(0, 13, 3, 32)?;
        } else {
            memory.has(0, 13, 3, 0)?;
        }
        expect(&a.tx, 1, done::TAGGED_SEND, 13)?;
        // Once.
        b.post(&claim(discard))?;
        expect_error(&b.rx, 101, KfiErrno::ENOMSG)?;
        quiet(&b.rx)?;
    }
    // Claimed, and never received: it ends with the endpoint.
    a.post(&tsend(&pair, &memory, 1, 13))?;
    look_until_there(&pair, 1, bits::CLAIM)?;
    let Pair { a, b, far, rig } = pair;
    drop(b);
    expect_error(&a.tx, 1, KfiErrno::EHOSTUNREACH)?;
    drop((a, memory));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn peek_and_discard(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    for len in [1, 2, 3] {
        a.post(&tsend(&pair, &memory, 1, len))?;
    }
    for len in [1, 2] {
        let entry = look_until_there(&pair, 1, bits::DISCARD)?;
        check_eq!((entry.flags, entry.len), (done::TAGGED_RECV, len));
        expect(&a.tx, 1, done::TAGGED_SEND, len)?;
    }
    b.post(&trecv(&memory, 1, 0))?;
    expect(&b.rx, 1, done::TAGGED_RECV, 3)?;
    expect(&a.tx, 1, done::TAGGED_SEND, 3)?;
    b.post(&look(1, 0, bits::DISCARD))?;
    expect_error(&b.rx, 101, KfiErrno::ENOMSG)?;
    drop(memory);
    pair.close()
}

fn flags_of_peeking(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED | Caps::MSG)?;
    let b = &pair.b;
    let memory = Area::plain(&pair.session, 64)?;
    for (kind, flags) in [
        (Kind::TRECV, bits::DISCARD),
        (Kind::TRECV, bits::PEEK | bits::MULTI_RECV),
        (Kind::RECV, bits::PEEK),
        (Kind::RECV, bits::CLAIM),
        (Kind::RECV, bits::PEEK | bits::DISCARD),
    ] {
        let operation = Operation::new(kind, Form::MSG)
            .segment(memory.all())
            .flags(flags);
        expect_fabric(b.ep.post(&operation), KfiErrno::EBADFLAGS)?;
    }
    b.quiet()?;
    drop(memory);
    pair.close()
}

fn several_in_one_buffer(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED | Caps::TAGGED_MULTI_RECV)?;
    let Pair { a, b, .. } = &pair;
    let from = Area::plain(&pair.session, 4096)?;
    let to = Area::plain(&pair.session, 4096)?;
    b.post(
        &Operation::new(Kind::TRECV, Form::MSG)
            .segment(to.all())
            .tag(0x70, 0xf)
            .context(3)
            .flags(bits::MULTI_RECV),
    )?;
    for (at, last) in [(0, false), (1024, false), (2048, false), (3072, true)] {
        from.fill(at);
        let tag = 0x70 + at / 1024;
        a.post(
            &a.operation(Kind::TSEND, Form::PLAIN)
                .segment(from.part(0, 1024))
                .tag(tag, 0),
        )?;
        let released = if last { bits::MULTI_RECV } else { 0 };
        let entry = expect(&b.rx, 3, done::TAGGED_RECV | released, 1024)?;
        check_eq!(entry.tag, tag);
        expect(&a.tx, 0, done::TAGGED_SEND, 1024)?;
        to.has(at, 1024, at, 0)?;
    }
    drop((from, to));
    pair.close()
}

fn cut_off_and_cancelled(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 100)?;
    b.post(&trecv(&memory, 5, 0))?;
    a.post(&tsend(&pair, &memory, 5, 50))?;
    let error = expect_error(&b.rx, 5, KfiErrno::EMSGSIZE)?;
    check_eq!((error.entry.len, error.olen), (32, 18));
    check_eq!((error.entry.flags, error.entry.tag), (done::TAGGED_RECV, 5));
    let error = expect_error(&a.tx, 5, KfiErrno::EMSGSIZE)?;
    check_eq!(error.entry.flags, done::TAGGED_SEND);
    b.post(&trecv(&memory, 6, 0))?;
    b.ep.cancel(6)?;
    let error = expect_error(&b.rx, 6, KfiErrno::ECANCELED)?;
    check_eq!(error.entry.flags, done::TAGGED_RECV);
    a.post(&tsend(&pair, &memory, 7, 1))?;
    let error = expect_error(&a.tx, 7, KfiErrno::EREMOTEIO)?;
    check_eq!(error.entry.flags, done::TAGGED_SEND);
    drop(memory);
    pair.close()
}

/// Messages that no receive wants expire, though receives are posted all the time that are yet to be compared with
/// them; the time limit of the test ends it otherwise.
fn expired_beside_new_receives(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let count = pair.entry().tx_attr.size;
    for _ in 0..count {
        a.post(&tsend(&pair, &memory, 1, 8))?;
    }
    let receive = trecv(&memory, 2, 0);
    let cancel = |context| {
        b.ep.cancel(context)?;
        expect_error(&b.rx, context, KfiErrno::ECANCELED).map(drop)
    };
    let (mut expired, mut oldest, mut next) = (0, 0, 0);
    while expired < count {
        match b.ep.post(&receive.clone().context(next)) {
            Ok(()) => next += 1,
            // As many are posted as may be.
            Err(Error::Fabric(KfiErrno::EAGAIN)) => {
                cancel(oldest)?;
                oldest += 1;
            }
            Err(error) => return Err(error.into()),
        }
        match a.tx.read(1) {
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                let error = a.tx.read_err()?;
                check_eq!(error.err, KfiErrno::EREMOTEIO.number());
                expired += 1;
            }
            result => expect_fabric(result, KfiErrno::EAGAIN)?,
        }
    }
    for context in oldest..next {
        cancel(context)?;
    }
    drop(memory);
    pair.close()
}

fn rma_to_a_receive(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED | Caps::RMA | Caps::TAGGED_RMA)?;
    let Pair { a, b, .. } = &pair;
    let local = Area::plain(&pair.session, 100_000)?;
    let target = Area::plain(&pair.session, 100_000)?;
    let receive = |tag| {
        b.post(
            &Operation::new(Kind::TRECV, Form::PLAIN)
                .segment(target.all())
                .tag(tag, 0)
                .context(tag),
        )
    };
    let rma = |kind, tag, offset, len| {
        a.post(
            &a.operation(kind, Form::MSG)
                .segment(local.part(0, len))
                .rma(offset, len, tag)
                .context(9)
                .flags(bits::TAGGED),
        )
    };
    for (tag, offset, len) in [
        (1, 0, 100_000),
        (2, 1, 8),
        (3, 99_999, 1),
        (4, 5000, 70_000),
        (5, 0, 0),
    ] {
        local.fill(tag);
        target.fill(99);
        receive(tag)?;
        rma(Kind::WRITE, tag, offset, len)?;
        expect(&a.tx, 9, done::TAGGED_RMA_WRITE, len)?;
        let entry = expect(&b.rx, tag, done::HIT_BY_TAGGED_WRITE, len)?;
        check_eq!(entry.tag, tag);
        target.has(offset, len, tag, 0)?;
        target.has(0, offset, 99, 0)?;
        let end = offset + len;
        target.has(end, 100_000 - end, 99, end as usize as u64)?;

        target.fill(tag + 50);
        local.clear();
        receive(tag)?;
        rma(Kind::READ, tag, offset, len)?;
        expect(&a.tx, 9, done::TAGGED_RMA_READ, len)?;
        expect(&b.rx, tag, done::HIT_BY_TAGGED_READ, len)?;
        local.has(0, len, tag + 50, offset)?;
    }
    // Beyond its end: both are told, and the receive is used up.
    for (offset, len, olen) in [(99_999, 2, 1), (100_001, 0, 0), (u64::MAX, 1, 1)] {
        receive(5)?;
        rma(Kind::WRITE, 5, offset, len)?;
        expect_error(&a.tx, 9, KfiErrno::EMSGSIZE)?;
        let error = expect_error(&b.rx, 5, KfiErrno::EMSGSIZE)?;
        check_eq!((error.entry.len, error.olen), (len - olen, olen));
    }
    receive(6)?;
    rma(Kind::WRITE, 6, 10, 10)?;
    expect(&a.tx, 9, done::TAGGED_RMA_WRITE, 10)?;
    expect(&b.rx, 6, done::HIT_BY_TAGGED_WRITE, 10)?;
    // Once only.
    rma(Kind::READ, 6, 0, 1)?;
    expect_error(&a.tx, 9, KfiErrno::EREMOTEIO)?;
    drop((local, target));
    pair.close()
}

/// Random tags and masks, against the rule that the first one that fits is taken.
fn model(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::TAGGED)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let mut rng = env.rng();
    // Receives as (tag, mask, number), messages as (tag, number); the lengths are the numbers of
    // the messages.
    let mut receives: Vec<(u64, u64, u64)> = Vec::new();
    let mut messages: Vec<(u64, u64)> = Vec::new();
    let mut sent = 0;
    for number in 0..env.scaled(3_000, 300) {
        let tag = rng.random_range(0..8);
        let matched = if rng.random() && receives.len() < 40 {
            let ignore = [0, 1, 6, 7][rng.random_range(0..4)];
            b.post(
                &Operation::new(Kind::TRECV, Form::PLAIN)
                    .segment(memory.part(0, 32))
                    .tag(tag, ignore)
                    .context(number),
            )?;
            let at = messages
                .iter()
                .position(|message| (message.0 ^ tag) & !ignore == 0);
            if let Some(at) = at {
                Some((number, messages.remove(at).1))
            } else {
                receives.push((tag, ignore, number));
                None
            }
        } else if messages.len() < 20 {
            sent += 1;
            let len = sent % 32;
            a.post(
                &a.operation(Kind::TSEND, Form::INJECT)
                    .segment(memory.part(32, len))
                    .tag(tag, 0),
            )?;
            let at = receives
                .iter()
                .position(|receive| (receive.0 ^ tag) & !receive.1 == 0);
            if let Some(at) = at {
                Some((receives.remove(at).2, len))
            } else {
                messages.push((tag, len));
                None
            }
        } else {
            // Nothing may stay too long.
            let (tag, len) = messages.remove(0);
            b.post(
                &Operation::new(Kind::TRECV, Form::PLAIN)
                    .segment(memory.part(0, 32))
                    .tag(tag, 0)
                    .context(number),
            )?;
            Some((number, len))
        };
        if let Some((context, len)) = matched {
            expect(&b.rx, context, done::TAGGED_RECV, len)?;
        }
        quiet(&b.rx)?;
    }
    check!(sent > 0, "nothing was sent");
    // Injected, so that nothing but the failure of what is left over is told.
    drop(memory);
    pair.close()
}
