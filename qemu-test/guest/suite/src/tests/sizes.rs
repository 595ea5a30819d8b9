// SPDX-License-Identifier: GPL-2.0

//! Sizes at limits: below, at and above what may be injected, and as many pages as a list may have.

use kfi::{bits, BufferKind, Caps, Form, KfiErrno, Kind, Operation};

use crate::check::Outcome;
use crate::ends::{carries_data, done, expect, Area, Pair};
use crate::env::Env;
use crate::rig::expect_fabric;
use crate::{check_eq, tests};

tests! {
    "sizes" parallel;
    "around-the-inject-limit" ["kfi_endpoint.h kfi_tagged.h kfi_rma.h"] around_the_inject_limit;
    "lists-of-pages" ["kfi_endpoint.h kfi_tagged.h kfi_rma.h"] lists_of_pages;
}

/// Operations with memory of the sender's or writer's.
const OUT: [Kind; 3] = [Kind::SEND, Kind::TSEND, Kind::WRITE];
const TAG: u64 = 0xabc;
const KEY: u64 = 1;

/// Flags of the end of an operation.
fn flags(kind: Kind) -> u64 {
    match kind {
        Kind::SEND => done::SEND_,
        Kind::TSEND => done::TAGGED_SEND,
        Kind::WRITE => done::RMA_WRITE,
        _ => done::RMA_READ,
    }
}

/// Posts what a message needs; nothing for the others.
fn receive(pair: &Pair, kind: Kind, to: &Area, form: Form) -> Outcome {
    let kind = match kind {
        Kind::SEND => Kind::RECV,
        Kind::TSEND => Kind::TRECV,
        _ => return Ok(()),
    };
    let receive = Operation::new(kind, form).tag(TAG, 0).segment(to.all());
    pair.b.post(&receive.context(3))
}

/// Checks that a message has come to the receiver, with data or without.
fn received(pair: &Pair, kind: Kind, len: u64, data: Option<u64>) -> Outcome {
    let flags = match (kind, data) {
        (Kind::SEND, _) => done::RECV_,
        (Kind::TSEND, _) => done::TAGGED_RECV,
        (Kind::WRITE, Some(_)) => done::WRITTEN,
        _ => return Ok(()),
    };
    let context = if kind == Kind::WRITE { 0 } else { 3 };
    let told = if data.is_some() {
        bits::REMOTE_CQ_DATA
    } else {
        0
    };
    let entry = expect(&pair.b.rx, context, flags | told, len)?;
    check_eq!(entry.data, data.unwrap_or(0));
    Ok(())
}

fn around_the_inject_limit(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::TAGGED | Caps::RMA | Caps::FENCE)?;
    let limit = pair.entry().tx_attr.inject_size;
    let a = &pair.a;
    let mut seed = 0;
    for memory in [BufferKind::KMALLOC, BufferKind::VMALLOC] {
        for offset in [0, 1, 4095] {
            let from = Area::new(&pair.session, memory, offset, limit + 1)?;
            let to = Area::new(&pair.session, memory, 4096 - offset, limit + 1)?;
            let region = pair.region(&to, KEY)?;
            for kind in OUT {
                for form in [Form::INJECT, Form::INJECT_DATA, Form::MSG, Form::MSG_SGL] {
                    let msg = [Form::MSG, Form::MSG_SGL].contains(&form);
                    for len in [0, 1, limit - 1, limit, limit + 1] {
                        seed += 1;
                        from.fill(seed);
                        to.clear();
                        let mut operation = a
                            .operation(kind, form)
                            .segment(from.part(0, len))
                            .tag(TAG, 0)
                            .rma(0, len, KEY);
                        if msg {
                            operation = operation.flags(bits::INJECT).context(5);
                        }
                        let data = carries_data(form).then_some(seed);
                        if let Some(data) = data {
                            operation = operation.data(data);
                        }
                        if len > limit {
                            expect_fabric(a.ep.post(&operation), KfiErrno::EMSGSIZE)?;
                            continue;
                        }
                        // Half of them come before their receive.
                        let early = seed % 2 == 0;
                        if early {
                            receive(&pair, kind, &to, Form::PLAIN)?;
                        }
                        a.post(&operation)?;
                        from.clear();
                        if !early {
                            receive(&pair, kind, &to, Form::PLAIN)?;
                        }
                        received(&pair, kind, len, data)?;
                        if msg {
                            expect(&a.tx, 5, flags(kind), len)?;
                        } else if kind == Kind::WRITE {
                            // Nothing tells when it is done, but a read that waits for it.
                            let read = a
                                .operation(Kind::READ, Form::MSG)
                                .segment(from.part(0, 0))
                                .rma(0, 0, KEY)
                                .flags(bits::FENCE);
                            a.post(&read)?;
                            expect(&a.tx, 0, done::RMA_READ, 0)?;
                        }
                        to.has_only(len, seed)?;
                    }
                }
            }
            // Operations that were refused have left nothing.
            pair.a.quiet()?;
            pair.b.quiet()?;
            region.close().map_err(|(_, error)| error)?;
        }
    }
    env.note(format!("{seed} operations around {limit} bytes"));
    pair.close()
}

/// As many pages, none beside the other, as a list may have, and one more.
fn lists_of_pages(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::TAGGED | Caps::RMA)?;
    let limit = pair.entry().tx_attr.iov_limit.min(1024);
    let len = limit << 12;
    // From the start of a page on, a whole list of them and more.
    let area = || Area::new(&pair.session, BufferKind::PAGES, 4032, len + 4096);
    let (from, to) = (area()?, area()?);
    let a = &pair.a;
    for (seed, form) in (1..).zip([Form::BV, Form::SGL, Form::MSG_BV, Form::MSG_SGL]) {
        let region_form = if seed % 2 == 0 { Form::BV } else { Form::SGL };
        let attr = kfi::MrAttr::new(bits::REMOTE_READ | bits::REMOTE_WRITE, KEY).form(region_form);
        let region = pair.far.register(&[to.part(0, len)], &attr)?;
        for kind in [Kind::SEND, Kind::TSEND, Kind::WRITE, Kind::READ] {
            let operation = |len| {
                a.operation(kind, form)
                    .segment(from.part(0, len))
                    .tag(TAG, 0)
                    .rma(0, len, KEY)
                    .context(5)
            };
            // A byte of one page more.
            expect_fabric(a.ep.post(&operation(len + 1)), KfiErrno::EINVAL)?;
            let (source, target) = if kind == Kind::READ {
                (&to, &from)
            } else {
                (&from, &to)
            };
            source.fill(seed);
            target.clear();
            match kind {
                Kind::SEND | Kind::TSEND => {
                    let kind = [Kind::RECV, Kind::TRECV][usize::from(kind == Kind::TSEND)];
                    let receive = Operation::new(kind, form)
                        .tag(TAG, 0)
                        .segment(to.part(0, len))
                        .context(3);
                    pair.b.post(&receive)?;
                }
                _ => {}
            }
            a.post(&operation(len))?;
            received(&pair, kind, len, None)?;
            expect(&a.tx, 5, flags(kind), len)?;
            target.has_only(len, seed)?;
        }
        region.close().map_err(|(_, error)| error)?;
    }
    pair.a.quiet()?;
    pair.b.quiet()?;
    env.note(format!("{limit} pages"));
    drop((from, to));
    pair.close()
}
