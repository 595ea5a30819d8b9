// SPDX-License-Identifier: GPL-2.0

//! Endpoints: how they are opened, bound, enabled and closed.

use std::time::Duration;

use kfi::{
    bits, uapi, AvAttr, Caps, CntrAttr, CqAttr, EpInfo, EqAttr, Error, Form, InfoEntry, KfiErrno,
    Kind, MrAttr, Operation,
};
use kfi_host::process::{self, Status};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::check::{Outcome, Stop};
use crate::ends::{complete, done, expect, expect_error, needs, Area, End, Pair, Setup};
use crate::env::Env;
use crate::rig::{expect_busy, expect_fabric, unshare, Rig};
use crate::{check, check_eq, tests};

tests! {
    "endpoint" parallel;
    "before-it-is-enabled" ["kfi_endpoint.h"] before_it_is_enabled;
    "bind-errors" ["kfi_endpoint.h"] bind_errors;
    "addresses" ["kfi_cm.h"] addresses;
    "attributes" ["kfi_endpoint.h"] attributes;
    "options" ["kfi_endpoint.h"] options;
    "aliases" ["kfi_endpoint.h"] aliases;
    "default-flags-change" ["kfabric.h kfi_endpoint.h"] default_flags_change;
    "scalable" ["kfi_endpoint.h kfi_domain.h"] scalable;
    "shared-receive-context" ["kfi_endpoint.h"] shared_receive_context;
    "shared-transmit-context" ["kfi_endpoint.h"] shared_transmit_context;
    "one-queue-for-both-directions" ["kfi_endpoint.h"] one_queue;
    "keys-isolate" ["kfi_endpoint.h"] keys_isolate;
    "many" ["kfi_endpoint.h"] many;
    "case-71-busy-matrix" ["R-CLOSE-1 R-CLOSE-4 R-CLOSE-7"] busy_matrix;
    "case-71-close-with-everything-pending" ["R-CLOSE-4"] close_with_everything_pending;
    "case-73-exit-with-everything-pending" ["R-CLOSE-8"] exit_with_everything_pending;
    "case-73-killed-with-everything-pending" ["R-CLOSE-8"] killed_with_everything_pending;
    "case-73-killed-in-any-moment" ["R-CLOSE-8"] killed_in_any_moment;
}

/// An endpoint that is not bound to anything.
fn bare(rig: &Rig) -> Result<kfi::Endpoint, Stop> {
    needs(&rig.info.entries()[0], Caps::MSG)?;
    Ok(rig.domain.endpoint(EpInfo::Entry(&rig.info, 0), 0)?)
}

fn before_it_is_enabled(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let ep = bare(&rig)?;
    let memory = Area::plain(&rig.session, 64)?;
    let refused = |ep: &kfi::Endpoint| -> Outcome {
        for kind in [Kind::SEND, Kind::RECV] {
            let operation = Operation::new(kind, Form::PLAIN)
                .segment(memory.all())
                .to(0);
            expect_fabric(ep.post(&operation), KfiErrno::EOPBADSTATE)?;
        }
        Ok(())
    };
    refused(&ep)?;
    expect_fabric(ep.enable(), KfiErrno::ENOAV)?;
    let av = rig.domain.address_vector(&AvAttr::default())?;
    ep.bind(av.handle(), 0)?;
    expect_fabric(ep.enable(), KfiErrno::ENOCQ)?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    ep.bind(cq.handle(), bits::TRANSMIT)?;
    expect_fabric(ep.enable(), KfiErrno::ENOCQ)?;
    refused(&ep)?;
    ep.bind(cq.handle(), bits::RECV)?;
    ep.enable()?;
    // Once, and nothing is bound any more.
    check!(ep.enable().is_err(), "enabled twice");
    let counter = rig.domain.counter(&CntrAttr::new())?;
    let late = ep.bind(counter.handle(), bits::SEND);
    expect_fabric(late, KfiErrno::EOPBADSTATE)?;
    drop((ep, cq, counter, memory));

    // Whatever it transmits, there has to be something that tells of that.
    let good = &rig.info.entries()[0];
    needs(good, Caps::MSG | Caps::RMA)?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    for caps in [
        Caps::MSG | Caps::SEND,
        Caps::RMA | Caps::READ,
        Caps::RMA | Caps::WRITE,
    ] {
        let mut entry = good.clone();
        entry.tx_attr.caps = caps;
        let ep = rig.domain.endpoint(EpInfo::Value(&entry), 0)?;
        ep.bind(av.handle(), 0)?;
        ep.bind(cq.handle(), bits::RECV)?;
        expect_fabric(ep.enable(), KfiErrno::ENOCQ)?;
        ep.bind(cq.handle(), bits::TRANSMIT)?;
        ep.enable()?;
    }
    drop((av, cq));
    rig.close()
}

fn bind_errors(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let ep = bare(&rig)?;
    let other = rig.fabric.domain(&rig.info, 0)?;
    let (av, cq) = (
        rig.domain.address_vector(&AvAttr::default())?,
        rig.domain.completion_queue(&CqAttr::new())?,
    );
    let (far_av, far_cq) = (
        other.address_vector(&AvAttr::default())?,
        other.completion_queue(&CqAttr::new())?,
    );
    let both = bits::TRANSMIT | bits::RECV;
    // Other domains, other classes, unknown flags.
    expect_fabric(ep.bind(far_av.handle(), 0), KfiErrno::EINVAL)?;
    expect_fabric(ep.bind(far_cq.handle(), both), KfiErrno::EINVAL)?;
    for handle in [rig.domain.handle(), rig.fabric.handle(), ep.handle()] {
        // With any flags.
        for flags in [0, both, 1 << 50] {
            expect_fabric(ep.bind(handle, flags), KfiErrno::EINVAL)?;
        }
    }
    expect_fabric(ep.bind(cq.handle(), 0), KfiErrno::EBADFLAGS)?;
    expect_fabric(ep.bind(cq.handle(), both | 1 << 50), KfiErrno::EBADFLAGS)?;
    expect_fabric(ep.bind(av.handle(), 1 << 50), KfiErrno::EBADFLAGS)?;
    // Twice.
    ep.bind(av.handle(), 0)?;
    expect_fabric(ep.bind(av.handle(), 0), KfiErrno::EINVAL)?;
    ep.bind(cq.handle(), bits::RECV)?;
    expect_fabric(ep.bind(cq.handle(), both), KfiErrno::EINVAL)?;
    expect_fabric(ep.bind(cq.handle(), bits::RECV), KfiErrno::EINVAL)?;
    ep.bind(cq.handle(), bits::TRANSMIT)?;
    // Objects that were refused are not held.
    far_av.close().map_err(|(_, error)| error)?;
    far_cq.close().map_err(|(_, error)| error)?;
    other.close().map_err(|(_, error)| error)?;
    drop((ep, av, cq));
    rig.close()
}

fn addresses(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    check!(pair.a.name != pair.b.name, "two endpoints, one address");
    let len = pair.a.name.len();
    expect_fabric(pair.a.ep.name_in(len - 1), KfiErrno::ETOOSMALL)?;
    check_eq!(pair.a.ep.name_in(len)?, pair.a.name);
    // The address of an endpoint is not given to another one, until it is free.
    let wanted = InfoEntry {
        src_addr: kfi::Bytes(pair.a.name.clone()),
        ..pair.entry().clone()
    };
    let open = || pair.rig.domain.endpoint(EpInfo::Value(&wanted), 0);
    expect_fabric(open(), KfiErrno::EADDRINUSE)?;
    let Pair { a, b, far, rig } = pair;
    let name = a.name.clone();
    drop(a);
    let setup = Setup {
        entry: Some(wanted),
        ..Setup::default()
    };
    let mut again = End::open(&rig.domain, EpInfo::Entry(&rig.info, 0), &setup)?;
    again.enable()?;
    check_eq!(again.name, name);
    // A peer that knew the old one reaches the new one.
    let memory = Area::plain(&rig.session, 64)?;
    again.recv(memory.part(0, 8), 1)?;
    b.send(memory.part(8, 8), 2)?;
    expect(&again.rx, 1, done::RECV_, 8)?;
    expect(&b.tx, 2, done::SEND_, 8)?;
    drop((again, b, memory));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn attributes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let good = rig.info.entries()[0].clone();
    needs(&good, Caps::MSG)?;
    let open = |change: fn(&mut InfoEntry)| {
        let mut entry = good.clone();
        change(&mut entry);
        rig.domain.endpoint(EpInfo::Value(&entry), 0)
    };
    open(|_| ())?;
    for (what, change) in [
        (
            "capabilities",
            (|entry| entry.caps |= Caps::from(1 << 62)) as fn(&mut InfoEntry),
        ),
        ("transmit depth", |entry| entry.tx_attr.size = 1 << 40),
        ("receive depth", |entry| entry.rx_attr.size = 1 << 40),
        ("injection", |entry| entry.tx_attr.inject_size = 1 << 40),
        ("pieces", |entry| entry.tx_attr.iov_limit = 1 << 40),
        ("pieces of receives", |entry| {
            entry.rx_attr.iov_limit = 1 << 40;
        }),
        ("ranges", |entry| entry.tx_attr.rma_iov_limit = 1 << 40),
        ("default flags", |entry| {
            entry.tx_attr.op_flags = kfi::OpFlags::PEEK;
        }),
    ] {
        let result = open(change);
        check!(result.is_err(), "too much of {what} is accepted");
        // Too much to be counted is not even asked for.
        let refusals = [Error::Fabric(KfiErrno::EINVAL), Error::Os(Errno::DQUOT)];
        let refused = result.err();
        check!(
            refused.is_some_and(|error| refusals.contains(&error)),
            "{what}: {refused:?}"
        );
    }
    rig.close()
}

fn options(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let ep = bare(&rig)?;
    needs(&rig.info.entries()[0], Caps::MULTI_RECV)?;
    let level = uapi::KFI_OPT_ENDPOINT as i32;
    let name = uapi::KFI_OPT_MIN_MULTI_RECV as i32;
    ep.set_option(level, name, &4321_usize.to_ne_bytes())?;
    check_eq!(ep.option(level, name, 8)?, 4321_usize.to_ne_bytes());
    for (level, name) in [(level + 7, name), (level, name + 77)] {
        check!(ep.option(level, name, 8).is_err(), "option {level} {name}");
        let result = ep.set_option(level, name, &[0; 8]);
        check!(result.is_err(), "option {level} {name} is set");
    }
    check!(ep.set_option(level, 0, &[0; 3]).is_err(), "three bytes");
    drop(ep);
    rig.close()
}

fn aliases(env: &Env) -> Outcome {
    let setup = Setup {
        tx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG, &setup)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    for flags in [0, bits::TRANSMIT | bits::RECV, bits::COMPLETION] {
        expect_fabric(a.ep.alias(flags), KfiErrno::EINVAL)?;
    }
    expect_fabric(a.ep.alias(bits::TRANSMIT | 1 << 50), KfiErrno::EBADFLAGS)?;
    let loud = a.ep.alias(bits::TRANSMIT | bits::COMPLETION)?;
    check_eq!(loud.ops_flags_of(bits::TRANSMIT)?, bits::COMPLETION);
    expect_fabric(loud.ops_flags(), KfiErrno::EINVAL)?;
    check_eq!(loud.name()?, a.name);
    let send = || {
        a.operation(Kind::SEND, Form::PLAIN)
            .segment(memory.part(0, 8))
            .context(1)
    };
    b.recv(memory.part(8, 8), 2)?;
    loud.post(&send())?;
    expect(&a.tx, 1, done::SEND_, 8)?;
    expect(&b.rx, 2, done::RECV_, 8)?;
    // The endpoint is as it was. The sender may not know yet that this one is over.
    b.recv(memory.part(8, 8), 2)?;
    a.post(&send().context(3))?;
    expect(&b.rx, 2, done::RECV_, 8)?;
    a.quiet()?;
    // Operations posted through one are cancelled through the other.
    loud.post(&send())?;
    a.ep.cancel(1)?;
    expect_error(&a.tx, 1, KfiErrno::ECANCELED)?;
    a.post(&send())?;
    loud.cancel(1)?;
    expect_error(&a.tx, 1, KfiErrno::ECANCELED)?;
    // And the endpoint outlives its aliases.
    expect_busy(pair.session.close_handle(a.ep.handle()))?;
    loud.close().map_err(|(_, error)| error)?;
    drop(memory);
    pair.close()
}

/// An entry with several contexts.
fn with_contexts(entry: &InfoEntry, count: u64) -> Result<InfoEntry, Stop> {
    if entry.domain_attr.max_ep_rx_ctx < count || entry.domain_attr.max_ep_tx_ctx < count {
        return Err(Stop::Skip("there are no scalable endpoints".to_owned()));
    }
    let mut entry = entry.clone();
    entry.ep_attr.tx_ctx_cnt = count;
    entry.ep_attr.rx_ctx_cnt = count;
    Ok(entry)
}

fn scalable(env: &Env) -> Outcome {
    let setup = Setup {
        rx_ctx_bits: 2,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG | Caps::NAMED_RX_CTX, &setup)?;
    let a = &pair.a;
    let entry = with_contexts(pair.entry(), 4)?;
    let domain = &pair.rig.domain;
    let sep = domain.scalable_endpoint(EpInfo::Value(&entry), 0)?;
    let av = domain.address_vector(&AvAttr {
        rx_ctx_bits: 2,
        ..AvAttr::default()
    })?;
    sep.bind(av.handle(), 0)?;
    for index in [4, -1, i32::MAX] {
        expect_fabric(sep.tx_context(index, None, 0), KfiErrno::EINVAL)?;
        expect_fabric(sep.rx_context(index, None, 0), KfiErrno::EINVAL)?;
    }
    let mut contexts = Vec::new();
    for index in 0..4 {
        let (tx, rx) = (
            sep.tx_context(index, None, 0)?,
            sep.rx_context(index, None, 0)?,
        );
        expect_fabric(sep.tx_context(index, None, 0), KfiErrno::EADDRINUSE)?;
        expect_fabric(sep.rx_context(index, None, 0), KfiErrno::EADDRINUSE)?;
        let cq = domain.completion_queue(&CqAttr::new())?;
        tx.bind(cq.handle(), bits::TRANSMIT)?;
        rx.bind(cq.handle(), bits::RECV)?;
        // A direction that it does not have.
        expect_fabric(rx.bind(cq.handle(), bits::TRANSMIT), KfiErrno::EINVAL)?;
        tx.enable()?;
        rx.enable()?;
        contexts.push((tx, rx, cq));
    }
    sep.enable()?;
    expect_busy(pair.session.close_handle(sep.handle()))?;
    // It has no operations: its contexts do.
    expect_fabric(sep.cancel(0), KfiErrno::ENOENT)?;
    let memory = Area::plain(&pair.session, 64)?;
    let base = a.av.insert(&sep.name()?)?;
    let to_a = av.insert(&a.name)?;
    check_eq!(base >> 62, 0, "the bits for contexts");
    for (index, (tx, rx, cq)) in (0_u64..).zip(&contexts) {
        // To one context, and no other.
        let recv = Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(0, 8));
        rx.post(&recv.clone().context(index))?;
        expect_fabric(tx.post(&recv), KfiErrno::EOPNOTSUPP)?;
        let send = Operation::new(Kind::SEND, Form::PLAIN).segment(memory.part(8, 8));
        a.post(&send.clone().to(base | index << 62))?;
        expect(cq, index, done::RECV_, 8)?;
        expect(&a.tx, 0, done::SEND_, 8)?;
        // From each context.
        expect_fabric(rx.post(&send.clone().to(to_a)), KfiErrno::EOPNOTSUPP)?;
        a.recv(memory.part(0, 8), 7)?;
        tx.post(&send.to(to_a).context(100 + index))?;
        expect(cq, 100 + index, done::SEND_, 8)?;
        expect(&a.rx, 7, done::RECV_, 8)?;
    }
    // A context that is closed can be opened again; meanwhile nobody is there.
    let (tx, rx, cq) = contexts.remove(2);
    drop((tx, rx));
    let send = Operation::new(Kind::SEND, Form::PLAIN)
        .segment(memory.part(8, 8))
        .to(base | 2 << 62);
    a.post(&send)?;
    expect_error(&a.tx, 0, KfiErrno::EHOSTUNREACH)?;
    let rx = sep.rx_context(2, None, 0)?;
    rx.bind(cq.handle(), bits::RECV)?;
    rx.enable()?;
    rx.post(&Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(0, 8)))?;
    a.post(&send)?;
    expect(&cq, 0, done::RECV_, 8)?;
    expect(&a.tx, 0, done::SEND_, 8)?;
    drop((rx, cq, contexts, sep, av, memory));
    pair.close()
}

fn shared_receive_context(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let a = &pair.a;
    let domain = &pair.rig.domain;
    let srx = match domain.srx_context(None, 0) {
        Err(kfi::Error::Fabric(KfiErrno::ENOSYS)) => {
            return Err(Stop::Skip("receives are not shared".to_owned()));
        }
        srx => srx?,
    };
    let memory = Area::plain(&pair.session, 64)?;
    let mut ends = Vec::new();
    for _ in 0..3 {
        let mut end = End::open(domain, EpInfo::Entry(&pair.rig.info, 0), &Setup::default())?;
        end.ep.bind(srx.handle(), 0)?;
        end.enable()?;
        ends.push((a.av.insert(&end.name)?, end));
    }
    expect_busy(pair.session.close_handle(srx.handle()))?;
    let recv = Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(0, 8));
    for context in 0..9 {
        srx.post(&recv.clone().context(context))?;
    }
    // The endpoint that is sent to takes the next one, and tells of it.
    for context in 0..9 {
        let (to, end) = &ends[context as usize % 3];
        let send = Operation::new(Kind::SEND, Form::PLAIN).segment(memory.part(8, 8));
        a.post(&send.to(*to))?;
        expect(&end.rx, context, done::RECV_, 8)?;
        expect(&a.tx, 0, done::SEND_, 8)?;
    }
    for (_, end) in &ends {
        end.quiet()?;
    }
    // One goes, the others stay.
    ends.remove(0);
    srx.post(&recv.clone().context(20))?;
    srx.post(&recv.context(21))?;
    srx.cancel(20)?;
    let (to, end) = &ends[0];
    let send = Operation::new(Kind::SEND, Form::PLAIN).segment(memory.part(8, 8));
    a.post(&send.to(*to))?;
    expect(&end.rx, 21, done::RECV_, 8)?;
    drop((ends, memory));
    srx.close().map_err(|(_, error)| error)?;
    pair.close()
}

fn shared_transmit_context(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let b = &pair.b;
    let domain = &pair.rig.domain;
    let stx = match domain.stx_context(None, 0) {
        Err(kfi::Error::Fabric(KfiErrno::ENOSYS)) => {
            return Err(Stop::Skip("transmit contexts are not shared".to_owned()));
        }
        stx => stx?,
    };
    let memory = Area::plain(&pair.session, 64)?;
    let mut ends = Vec::new();
    for _ in 0..3 {
        let mut end = End::open(domain, EpInfo::Entry(&pair.rig.info, 0), &Setup::default())?;
        end.ep.bind(stx.handle(), 0)?;
        end.enable()?;
        end.connect(b)?;
        ends.push(end);
    }
    expect_busy(pair.session.close_handle(stx.handle()))?;
    for round in 0..30 {
        let end = &ends[round % 3];
        b.recv(memory.part(0, 8), 1)?;
        end.send(memory.part(8, 8), 2)?;
        expect(&b.rx, 1, done::RECV_, 8)?;
        expect(&end.tx, 2, done::SEND_, 8)?;
    }
    drop((ends, memory));
    stx.close().map_err(|(_, error)| error)?;
    pair.close()
}

fn one_queue(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let rig = &pair.rig;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    let mut eps = Vec::new();
    for _ in 0..2 {
        let ep = bare(rig)?;
        ep.bind(pair.a.av.handle(), 0)?;
        ep.bind(cq.handle(), bits::TRANSMIT | bits::RECV)?;
        ep.enable()?;
        let addr = pair.a.av.insert(&ep.name()?)?;
        eps.push((ep, addr));
    }
    let memory = Area::plain(&rig.session, 64)?;
    for i in 0..10 {
        let (from, to) = (&eps[i % 2], &eps[(i + 1) % 2]);
        let recv = Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(0, 8));
        to.0.post(&recv.context(1))?;
        let send = Operation::new(Kind::SEND, Form::PLAIN).segment(memory.part(8, 8));
        from.0.post(&send.to(to.1).context(2))?;
        let mut flags = [complete(&cq)?.flags, complete(&cq)?.flags];
        flags.sort_unstable();
        let mut should = [done::SEND_, done::RECV_];
        should.sort_unstable();
        check_eq!(flags, should);
    }
    drop((eps, cq, memory));
    pair.close()
}

/// Endpoints come and go; ports and handles are not used up.
fn many(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let b = &pair.b;
    let memory = Area::plain(&pair.session, 64)?;
    let rounds = env.scaled(500, 200);
    let entry = EpInfo::Entry(&pair.rig.info, 0);
    for round in 0..rounds {
        let mut end = End::open(&pair.rig.domain, entry, &Setup::default())?;
        end.enable()?;
        end.connect(b)?;
        if round % 8 == 0 {
            b.recv(memory.part(0, 8), 1)?;
            end.send(memory.part(8, 8), 2)?;
            expect(&b.rx, 1, done::RECV_, 8)?;
        }
        drop(end);
        // Though closed, it counts until the queues were found empty.
        for queue in [&pair.a.tx, &pair.a.rx, &b.tx, &b.rx] {
            expect_fabric(queue.read(1), KfiErrno::EAGAIN)?;
        }
    }
    // And many at a time.
    let count = env.scaled(250, 50);
    let mut ends = Vec::new();
    // They count for less than by default, so that all are within the limit.
    let mut small = pair.entry().clone();
    small.tx_attr.size = 64;
    let setup = Setup {
        entry: Some(small),
        ..Setup::default()
    };
    for _ in 0..count {
        let mut end = End::open(&pair.rig.domain, entry, &setup)?;
        end.enable()?;
        end.connect(b)?;
        ends.push(end);
    }
    for end in &ends {
        b.recv(memory.part(0, 8), 1)?;
        end.send(memory.part(8, 8), 2)?;
        expect(&b.rx, 1, done::RECV_, 8)?;
        expect(&end.tx, 2, done::SEND_, 8)?;
    }
    drop((ends, memory));
    pair.close()
}

/// Closes an object that must let itself be closed.
macro_rules! close {
    ($object:expr) => {
        $object.close().map_err(|(_, error)| error)?
    };
}

fn busy_matrix(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let entry = rig.info.entries()[0].clone();
    needs(&entry, Caps::MSG)?;
    let session = rig.session.clone();
    let busy = |handle| expect_busy(session.close_handle(handle));
    let Rig {
        domain,
        fabric,
        info,
        ..
    } = rig;
    // Each object keeps what it was opened on.
    let eq = fabric.event_queue(&EqAttr::new())?;
    busy(fabric.handle())?;
    let av = domain.address_vector(&AvAttr::default())?;
    busy(domain.handle())?;
    let (tx, rx) = (
        domain.completion_queue(&CqAttr::new())?,
        domain.completion_queue(&CqAttr::new())?,
    );
    let (sends, arrivals) = (
        domain.counter(&CntrAttr::new())?,
        domain.counter(&CntrAttr::new())?,
    );
    let ep = domain.endpoint(EpInfo::Entry(&info, 0), 0)?;
    ep.bind(av.handle(), 0)?;
    ep.bind(tx.handle(), bits::TRANSMIT)?;
    ep.bind(rx.handle(), bits::RECV)?;
    ep.bind(sends.handle(), bits::SEND)?;
    ep.bind(arrivals.handle(), bits::RECV | bits::REMOTE_WRITE)?;
    let bound = [
        av.handle(),
        tx.handle(),
        rx.handle(),
        sends.handle(),
        arrivals.handle(),
        domain.handle(),
    ];
    // Before it is enabled and after.
    for enabled in [false, true] {
        if enabled {
            ep.enable()?;
        }
        for handle in bound {
            for _ in 0..2 {
                busy(handle)?;
            }
        }
    }
    // Nothing is felt of all the refusals.
    let own = av.insert(&ep.name()?)?;
    let memory = Area::plain(&session, 64)?;
    ep.post(&Operation::new(Kind::RECV, Form::PLAIN).segment(memory.part(0, 8)))?;
    let send = Operation::new(Kind::SEND, Form::PLAIN).segment(memory.part(8, 8));
    ep.post(&send.to(own))?;
    expect(&tx, 0, done::SEND_, 8)?;
    expect(&rx, 0, done::RECV_, 8)?;
    check_eq!((sends.read()?, arrivals.read()?), (1, 1));
    // A poll set keeps its members, an alias its endpoint, a region its counter and domain.
    let set = domain.poll_set()?;
    set.add(&tx)?;
    let alias = ep.alias(bits::TRANSMIT)?;
    busy(ep.handle())?;
    let region = domain.register(&[memory.all()], &MrAttr::new(bits::REMOTE_WRITE, 1))?;
    region.bind(sends.handle(), bits::REMOTE_WRITE)?;
    close!(alias);
    close!(ep);
    busy(tx.handle())?;
    busy(sends.handle())?;
    busy(domain.handle())?;
    // The address vector, the other queue and counter are free.
    close!(av);
    close!(rx);
    close!(arrivals);
    close!(region);
    close!(sends);
    busy(set.handle())?;
    set.del(&tx)?;
    close!(set);
    close!(tx);
    busy(fabric.handle())?;
    close!(domain);
    busy(fabric.handle())?;
    close!(eq);
    close!(fabric);
    Ok(())
}

/// Posts everything that can be pending: receives of all kinds, messages that nobody receives,
/// large ones under way, RMA, triggered operations, a region, an alias, contexts.
fn fill(pair: &Pair, memory: &Area) -> Result<Vec<u32>, Stop> {
    let Pair { a, b, .. } = pair;
    let mut left = Vec::new();
    for i in 0..20 {
        let recv = Operation::new(Kind::TRECV, Form::PLAIN).segment(memory.part(0, 64));
        b.post(&recv.tag(1000 + i, 0).context(i))?;
        let recv = Operation::new(Kind::TRECV, Form::PLAIN).segment(memory.part(64, 64));
        a.post(&recv.tag(1000 + i, 0).context(u64::MAX - i))?;
    }
    if pair.entry().caps.contains(Caps::MULTI_RECV) {
        let recv = Operation::new(Kind::RECV, Form::MSG).segment(memory.part(0, 4096));
        a.post(&recv.flags(bits::MULTI_RECV))?;
        // In use in part.
        b.send(memory.part(4096, 100), 1)?;
    }
    for i in 0..20 {
        let len = [8, 100_000][i as usize % 2];
        a.send(memory.part(0, len), i)?;
        let send = a.operation(Kind::TSEND, Form::INJECT).tag(i, 0);
        a.post(&send.segment(memory.part(0, 16)))?;
    }
    // One of these waits there, set aside.
    let claim = Operation::new(Kind::TRECV, Form::MSG).tag(3, 0);
    b.post(&claim.flags(bits::PEEK | bits::CLAIM).context(55))?;
    let region = pair.region(memory, 9)?;
    for _ in 0..8 {
        let write = a.operation(Kind::WRITE, Form::PLAIN);
        a.post(
            &write
                .segment(memory.part(0, 200_000))
                .rma(300_000, 200_000, 9),
        )?;
    }
    // Behind a fence.
    let fenced = a.operation(Kind::SEND, Form::MSG).flags(bits::FENCE);
    a.post(&fenced.segment(memory.part(0, 8)))?;
    if pair.entry().caps.contains(Caps::TRIGGER) {
        let counter = pair.rig.domain.counter(&CntrAttr::new())?;
        for threshold in 1..5 {
            let send = a.operation(Kind::SEND, Form::MSG).flags(bits::TRIGGER);
            let send = send.segment(memory.part(0, 8)).trigger(&counter, threshold);
            a.post(&send.context(threshold))?;
        }
        left.push(counter.into_handle());
    }
    left.push(region.into_handle());
    Ok(left)
}

const PENDING: Caps = Caps::MSG
    .union(Caps::TAGGED)
    .union(Caps::RMA)
    .union(Caps::FENCE);

fn close_with_everything_pending(env: &Env) -> Outcome {
    for round in 0..env.scaled(40, 4) {
        let pair = Pair::new(env, PENDING)?;
        let memory = Area::plain(&pair.session, 500_000)?;
        let left = fill(&pair, &memory)?;
        let Pair { a, b, far, rig } = pair;
        // Either end first; the queues stay, and nothing comes there any more.
        let (first, second) = if round % 2 == 0 { (a, b) } else { (b, a) };
        let End { ep, tx, rx, av, .. } = first;
        close!(ep);
        let drain = |cq: &kfi::CompletionQueue| -> Result<u64, Stop> {
            let mut count = 0;
            loop {
                match cq.read(16) {
                    Ok(entries) => count += entries.len() as u64,
                    Err(kfi::Error::Fabric(KfiErrno::EAVAIL)) => {
                        let _ = cq.read_err();
                        count += 1;
                    }
                    Err(_) => return Ok(count),
                }
            }
        };
        drain(&tx)?;
        drain(&rx)?;
        memory.fill(round);
        std::thread::sleep(Duration::from_millis(5));
        check_eq!(drain(&tx)? + drain(&rx)?, 0, "completions after the close");
        memory.has(0, memory.len, round, 0)?;
        close!(tx);
        close!(rx);
        close!(unshare(av)?);
        drop(second);
        for handle in left {
            rig.session.close_handle(handle)?;
        }
        drop(memory);
        close!(far);
        rig.close()?;
    }
    Ok(())
}

/// Objects that are opened anew work, and nothing of the past is in them.
fn works_again(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG)?;
    let memory = Area::plain(&pair.session, 64)?;
    pair.b.recv(memory.part(0, 8), 1)?;
    pair.a.send(memory.part(8, 8), 2)?;
    expect(&pair.b.rx, 1, done::RECV_, 8)?;
    expect(&pair.a.tx, 2, done::SEND_, 8)?;
    drop(memory);
    pair.close()
}

fn exit_with_everything_pending(env: &Env) -> Outcome {
    needs(&Rig::new(env)?.info.entries()[0], PENDING)?;
    for _ in 0..env.scaled(20, 3) {
        let mut child = process::fork(|| {
            let pending = || -> Outcome {
                let pair = Pair::new(env, PENDING)?;
                let memory = Area::plain(&pair.session, 500_000)?;
                fill(&pair, &memory)?;
                let alias = pair.a.ep.alias(bits::TRANSMIT)?;
                // Nothing is closed but by the end of the process.
                std::mem::forget((alias, memory, pair));
                Ok(())
            };
            i32::from(pending().is_err())
        })?;
        check_eq!(child.wait()?, Status::Exited(0), "the child");
        works_again(env)?;
    }
    Ok(())
}

fn killed_with_everything_pending(env: &Env) -> Outcome {
    needs(&Rig::new(env)?.info.entries()[0], PENDING)?;
    for _ in 0..env.scaled(20, 3) {
        let (reader, writer) = rustix::pipe::pipe()?;
        let mut child = process::fork(move || {
            let pending = || -> Outcome {
                let pair = Pair::new(env, PENDING)?;
                let memory = Area::plain(&pair.session, 500_000)?;
                fill(&pair, &memory)?;
                let _ = rustix::io::write(&writer, b"y");
                // Asleep in the middle of it.
                pair.b.rx.sread_ms(1, -1)?;
                loop {
                    std::thread::park();
                }
            };
            i32::from(pending().is_err())
        })?;
        let mut byte = [0];
        check_eq!(
            rustix::io::read(&reader, &mut byte)?,
            1,
            "what the child says"
        );
        child.kill(Signal::KILL)?;
        check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
        works_again(env)?;
    }
    Ok(())
}

fn killed_in_any_moment(env: &Env) -> Outcome {
    needs(&Rig::new(env)?.info.entries()[0], PENDING)?;
    for round in 0..env.scaled(60, 10) {
        let mut child = process::fork(|| {
            let busy = || -> Outcome {
                loop {
                    let pair = Pair::new(env, PENDING)?;
                    let memory = Area::plain(&pair.session, 500_000)?;
                    for handle in fill(&pair, &memory)? {
                        let _ = pair.session.close_handle(handle);
                    }
                }
            };
            i32::from(busy().is_err())
        })?;
        std::thread::sleep(Duration::from_micros(500 + round * 1379 % 30_000));
        child.kill(Signal::KILL)?;
        check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    }
    works_again(env)
}

/// Endpoints with another authorization key are not there: neither for messages nor for memory.
fn keys_isolate(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let entry = rig.info.entries()[0].clone();
    needs(&entry, Caps::MSG | Caps::RMA | Caps::TAGGED)?;
    let long = vec![7; 64];
    let keys: [&[u8]; 5] = [b"", b"one", b"two", b"on", &long];
    let memory = Area::plain(&rig.session, 64)?;
    let access = bits::REMOTE_READ | bits::REMOTE_WRITE;
    let region = rig
        .domain
        .register(&[memory.part(0, 8)], &MrAttr::new(access, 1))?;
    let mut ends = Vec::new();
    for key in keys {
        let mut entry = entry.clone();
        entry.ep_attr.auth_key = kfi::Bytes(key.to_vec());
        let setup = Setup {
            entry: Some(entry),
            ..Setup::default()
        };
        let mut end = End::open(&rig.domain, EpInfo::Entry(&rig.info, 0), &setup)?;
        end.enable()?;
        ends.push(end);
    }
    for (i, a) in ends.iter().enumerate() {
        for (j, b) in ends.iter().enumerate() {
            let same = i == j;
            // Addresses are known, whoever uses them.
            let peer = a.av.insert(&b.name)?;
            let operation = |kind| {
                Operation::new(kind, Form::PLAIN)
                    .to(peer)
                    .segment(memory.part(16, 8))
                    .context(5)
            };
            b.recv(memory.part(32, 8), 1)?;
            b.post(
                &Operation::new(Kind::TRECV, Form::PLAIN)
                    .segment(memory.part(40, 8))
                    .context(2),
            )?;
            memory.write(0, &[0; 8]);
            memory.write(16, &[j as u8 + 1; 8]);
            for (operation, flags) in [
                (operation(Kind::SEND), done::SEND_),
                (operation(Kind::TSEND), done::TAGGED_SEND),
                (operation(Kind::WRITE).rma(0, 8, 1), done::RMA_WRITE),
                (operation(Kind::READ).rma(0, 8, 1), done::RMA_READ),
            ] {
                a.post(&operation)?;
                if same {
                    expect(&a.tx, 5, flags, 8)?;
                } else {
                    let error = expect_error(&a.tx, 5, KfiErrno::EHOSTUNREACH)?;
                    check_eq!(error.entry.flags, flags);
                }
            }
            if same {
                expect(&b.rx, 1, done::RECV_, 8)?;
                expect(&b.rx, 2, done::TAGGED_RECV, 8)?;
            } else {
                check_eq!(memory.bytes(0, 8), [0; 8], "keys {i} and {j}");
                b.quiet()?;
                for context in [1, 2] {
                    b.ep.cancel(context)?;
                    expect_error(&b.rx, context, KfiErrno::ECANCELED)?;
                }
            }
            a.quiet()?;
        }
    }
    drop((ends, region, memory));
    rig.close()
}

/// Flags of a direction, of the endpoint and of an alias, hold for what is posted afterwards.
fn default_flags_change(env: &Env) -> Outcome {
    let setup = Setup {
        tx_bind: bits::SELECTIVE_COMPLETION,
        rx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG, &setup)?;
    let Pair { a, b, .. } = &pair;
    let memory = Area::plain(&pair.session, 64)?;
    let alias = a.ep.alias(bits::TRANSMIT)?;
    let both = bits::TRANSMIT | bits::RECV;
    for ep in [&a.ep, &alias] {
        expect_fabric(ep.ops_flags_of(both), KfiErrno::EINVAL)?;
        expect_fabric(ep.set_ops_flags(both), KfiErrno::EINVAL)?;
        for flags in [1 << 50, bits::PEEK, bits::MULTI_RECV, bits::REMOTE_CQ_DATA] {
            let result = ep.set_ops_flags(bits::TRANSMIT | flags);
            expect_fabric(result, KfiErrno::EINVAL)?;
            let result = ep.ops_flags_of(bits::TRANSMIT | flags);
            expect_fabric(result, KfiErrno::EINVAL)?;
        }
        check_eq!(ep.ops_flags_of(bits::TRANSMIT)?, 0);
        check_eq!(ep.ops_flags_of(bits::RECV)?, 0);
    }
    // Which direction?
    expect_fabric(a.ep.ops_flags(), KfiErrno::EINVAL)?;
    expect_fabric(a.ep.set_ops_flags(bits::COMPLETION), KfiErrno::EINVAL)?;
    // Not that of the endpoint.
    let result = alias.set_ops_flags(bits::RECV | bits::COMPLETION);
    expect_fabric(result, KfiErrno::EINVAL)?;

    let told = |ep: &kfi::Endpoint, sent: bool, received: bool| -> Outcome {
        b.recv(memory.part(0, 8), 1)?;
        ep.post(
            &a.operation(Kind::SEND, Form::PLAIN)
                .segment(memory.part(8, 8))
                .context(2),
        )?;
        // One that is told in any case comes behind it.
        let loud = |kind| Operation::new(kind, Form::MSG).flags(bits::COMPLETION);
        b.post(&loud(Kind::RECV).segment(memory.part(16, 8)).context(3))?;
        a.post(
            &loud(Kind::SEND)
                .segment(memory.part(24, 8))
                .to(a.peer)
                .context(4),
        )?;
        if sent {
            expect(&a.tx, 2, done::SEND_, 8)?;
        }
        expect(&a.tx, 4, done::SEND_, 8)?;
        if received {
            expect(&b.rx, 1, done::RECV_, 8)?;
        }
        expect(&b.rx, 3, done::RECV_, 8)?;
        a.quiet()?;
        b.quiet()
    };
    told(&a.ep, false, false)?;
    a.ep.set_ops_flags(bits::TRANSMIT | bits::COMPLETION)?;
    check_eq!(a.ep.ops_flags_of(bits::TRANSMIT)?, bits::COMPLETION);
    check_eq!(a.ep.ops_flags_of(bits::RECV)?, 0);
    told(&a.ep, true, false)?;
    // The alias has flags of its own.
    told(&alias, false, false)?;
    alias.set_ops_flags(bits::TRANSMIT | bits::COMPLETION)?;
    a.ep.set_ops_flags(bits::TRANSMIT)?;
    told(&alias, true, false)?;
    told(&a.ep, false, false)?;
    b.ep.set_ops_flags(bits::RECV | bits::COMPLETION)?;
    told(&a.ep, false, true)?;
    expect_fabric(alias.set_ops_flags(0), KfiErrno::EINVAL)?;
    alias.set_ops_flags(bits::TRANSMIT)?;
    check_eq!(alias.ops_flags_of(bits::TRANSMIT)?, 0);
    told(&alias, false, true)?;
    alias.close().map_err(|(_, error)| error)?;
    drop(memory);
    pair.close()
}
