// SPDX-License-Identifier: GPL-2.0

//! Operations count, with their copies and completions, until nobody needs these any more.

use std::sync::Barrier;
use std::thread;

use kfi::{
    bits, uapi, AvAttr, BufferKind, Caps, CntrAttr, CqAttr, EpInfo, Error, Form, KfiErrno, Kind,
    OpType, Operation, Work,
};
use rustix::io::Errno;

use super::objects::fill;
use super::{injecting, limited, pair_for, unless_missing};
use crate::check::{Outcome, Stop};
use crate::ends::{complete, Pair, Setup};
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, Rig};
use crate::tests::module::Modules;
use crate::{check, check_eq};

/// Copies of messages that are injected count, for as many as there may be.
pub(super) fn copies_count(env: &Env) -> Outcome {
    limited(env, c"max_memory=2097152", |rig| {
        let mut entry = injecting(rig, 1 << 10)?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let inject = |len| Operation::new(Kind::SEND, Form::INJECT).segment(buffer.segment(0..len));
        let flagged = |len| {
            Operation::new(Kind::SEND, Form::MSG)
                .segment(buffer.segment(0..len))
                .flags(bits::INJECT)
        };
        let plain = |len| Operation::new(Kind::SEND, Form::PLAIN).segment(buffer.segment(0..len));
        let full = Err(Error::Os(Errno::DQUOT));
        let info = kfi::EpInfo::Value(&entry);
        let ep = rig.domain.endpoint(info, 0)?;
        // It is not enabled: nothing but the memory is looked at.
        for operation in [inject(1), flagged(1), plain(4096), inject(4096)] {
            let posted = ep.post(&operation);
            check!(posted != full && posted.is_err(), "{posted:?}");
        }
        check_eq!(ep.post(&inject(1024)), full);
        check_eq!(ep.post(&flagged(1024)), full);
        drop(ep);
        entry.tx_attr.op_flags = kfi::OpFlags::INJECT;
        let ep = rig.domain.endpoint(kfi::EpInfo::Value(&entry), 0)?;
        check_eq!(ep.post(&plain(1024)), full);
        drop((ep, buffer));
        Ok(())
    })
}

/// Memory that a provider keeps of a work that is queued again and again counts each time.
pub(super) fn queueings_count(env: &Env) -> Outcome {
    const MOST: usize = 10_000;
    Modules::new(env)?.with_device(c"max_memory=1048576", || {
        let caps = Caps::MSG | Caps::SEND | Caps::RECV;
        let Pair { a, b, far, rig } = pair_for(env, caps, 16, Setup::default())?;
        let (trigger, target) = (rig.counter()?, rig.counter()?);
        let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
        let requeue = |id| fill(MOST, || rig.session.requeue_work(id)).map(|all| all.len());
        let first = requeue(id)?;
        env.note(format!("{first} times in 1 MiB"));
        rig.domain.cancel_work(id, 0)?;
        // And the one that is the first now.
        check_eq!(requeue(id)?, first + 1);
        rig.domain.flush_work(None)?;
        check_eq!(requeue(id)?, first + 1);
        rig.domain.flush_work(Some(&target))?;
        expect_os(rig.session.release_work(id), Errno::BUSY)?;
        rig.domain.flush_work(Some(&trigger))?;
        rig.session.release_work(id)?;
        check_eq!(target.read()?, 0);

        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let pieces: Vec<_> = (0..16).map(|i| buffer.segment(i..i + 1)).collect();
        let receive = Operation::new(Kind::RECV, Form::MSG).segments(&pieces);
        let work = Work::transfer(OpType::RECV, a.ep.handle(), &receive, &trigger, 5);
        let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        let id = rig.domain.queue_work(&work)?;
        let more = requeue(id)?;
        check!(more < first, "{more} transfers, {first} additions");
        rig.domain.flush_work(None)?;
        expect_os(rig.session.release_work(id), Errno::BUSY)?;
        drop((a, b));
        rig.session.release_work(id)?;
        drop((buffer, trigger, target));
        far.close().map_err(|(_, error)| error)?;
        rig.close()
    })
}

/// Memory that a provider keeps for works of a domain counts until the domain is closed, though nothing
/// is pending any more.
pub(super) fn places_count(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    modules.with_device(c"max_memory=2097152", || {
        let rig = Rig::new(env)?;
        let domain = rig.fabric.domain(&rig.info, 0)?;
        let (trigger, target) = (
            domain.counter(&CntrAttr::new())?,
            domain.counter(&CntrAttr::new())?,
        );
        let id = domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
        let queued = fill(15_000, || rig.session.requeue_work(id))?.len();
        env.note(format!("{queued} times in 2 MiB"));
        domain.cancel_work(id, 0)?;
        rig.session.release_work(id)?;
        let large = || rig.session.buffer(BufferKind::VMALLOC, 7 << 18);
        check_eq!(large().err(), Some(Error::Os(Errno::DQUOT)));
        drop((trigger, target));
        domain.close().map_err(|(_, error)| error)?;
        drop(large()?);
        rig.close()
    })
}

/// An endpoint for so many receives at a time, on one queue.
fn receiver(rig: &Rig, cq: &kfi::CompletionQueue, depth: u64) -> kfi::Result<kfi::Endpoint> {
    let mut entry = rig.info.entries()[0].clone();
    (entry.tx_attr.size, entry.rx_attr.size) = (16, depth);
    let ep = rig.domain.endpoint(EpInfo::Value(&entry), 0)?;
    ep.bind(cq.handle(), bits::TRANSMIT | bits::RECV)?;
    Ok(ep)
}

/// Reads all that was told of operations that were cancelled; returns how many that were.
fn read_errors(cq: &kfi::CompletionQueue) -> Result<usize, Stop> {
    let mut read = 0;
    while let Err(Error::Fabric(KfiErrno::EAVAIL)) = cq.read(1) {
        check_eq!(cq.read_err()?.entry.op_context, 7);
        read += 1;
    }
    expect_fabric(cq.read(1), KfiErrno::EAGAIN)?;
    Ok(read)
}

/// Completions that nobody reads count also when their endpoint is closed, until they are read.
pub(super) fn completions_count(env: &Env) -> Outcome {
    const DEPTH: u64 = 128;
    limited(env, c"max_memory=1048576", |rig| {
        let av = rig.domain.address_vector(&AvAttr::default())?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let receive = Operation::new(Kind::RECV, Form::PLAIN)
            .segment(buffer.segment(0..64))
            .context(7);
        let mut queues = Vec::new();
        let mut first = None;
        for _ in 0..2 {
            let mut closed = 0;
            loop {
                // Once there is more in it than it has room for, nothing more is posted.
                if closed == queues.len() {
                    match rig.domain.completion_queue(&CqAttr::new().size(1)) {
                        Err(Error::Os(Errno::DQUOT)) => break,
                        cq => queues.push(cq?),
                    }
                }
                let ep = match receiver(rig, &queues[closed], DEPTH) {
                    Err(Error::Os(Errno::DQUOT)) => break,
                    ep => unless_missing(ep)?,
                };
                ep.bind(av.handle(), 0)?;
                ep.enable()?;
                for _ in 0..DEPTH {
                    ep.post(&receive)?;
                }
                for _ in 0..DEPTH {
                    ep.cancel(7)?;
                }
                drop(ep);
                closed += 1;
                // Each completion takes 256 bytes.
                check!(closed < 32, "more than 1 MiB of completions");
            }
            // As much again when all are read.
            check_eq!(*first.get_or_insert(closed), closed);
            check!(closed > 2, "only {closed} endpoints one after the other");
            let mut read = 0;
            for cq in &queues {
                read += read_errors(cq)?;
            }
            check_eq!(read, closed * DEPTH as usize);
        }
        // And when the queues are closed, whatever is in them.
        let ep = receiver(rig, &queues[0], DEPTH)?;
        drop((ep, queues));
        let cq = rig.domain.completion_queue(&CqAttr::new().size(1))?;
        drop(receiver(rig, &cq, 5 * DEPTH)?);
        drop((cq, av, buffer));
        Ok(())
    })
}

/// The same for receives posted by works that are released when their endpoint is closed.
pub(super) fn works_completions_count(env: &Env) -> Outcome {
    const WORKS: usize = 100;
    limited(env, c"max_memory=1048576", |rig| {
        let cq = rig.domain.completion_queue(&CqAttr::new().size(1))?;
        let av = rig.domain.address_vector(&AvAttr::default())?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let trigger = rig.counter()?;
        trigger.add(1)?;
        let receive = Operation::new(Kind::RECV, Form::MSG)
            .segment(buffer.segment(0..64))
            .flags(bits::COMPLETION)
            .context(7);
        let mut first = None;
        for _ in 0..2 {
            let mut released = 0;
            'all: loop {
                let ep = match receiver(rig, &cq, 16) {
                    Err(Error::Os(Errno::DQUOT)) => break,
                    ep => unless_missing(ep)?,
                };
                ep.bind(av.handle(), 0)?;
                ep.enable()?;
                let work = Work::transfer(OpType::RECV, ep.handle(), &receive, &trigger, 1);
                let mut ids = Vec::new();
                let full = loop {
                    match rig.domain.queue_work(&work) {
                        Ok(id) => ids.push(id),
                        Err(Error::Os(Errno::DQUOT)) => break true,
                        Err(error) => return Err(error.into()),
                    }
                    if ids.len() == WORKS {
                        break false;
                    }
                };
                for _ in &ids {
                    ep.cancel(7)?;
                }
                drop(ep);
                released += ids.len();
                for id in ids {
                    rig.session.release_work(id)?;
                }
                if full {
                    break 'all;
                }
                check!(released < 40 * WORKS, "{released} completions in 1 MiB");
            }
            check_eq!(read_errors(&cq)?, released);
            check_eq!(*first.get_or_insert(released), released);
        }
        drop((cq, av, buffer, trigger));
        Ok(())
    })
}

/// Copies that a provider makes of operations count until their endpoint is closed, though works
/// remember the endpoint.
pub(super) fn closed_endpoints(env: &Env) -> Outcome {
    limited(env, c"max_memory=2097152", |rig| {
        let entry = injecting(rig, 512)?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let counter = rig.counter()?;
        let inject = Operation::new(Kind::SEND, Form::INJECT).segment(buffer.segment(0..1024));
        let send = Operation::new(Kind::SEND, Form::MSG).segment(buffer.segment(0..64));
        let mut ids = Vec::new();
        for round in 0..4 {
            let ep = unless_missing(rig.domain.endpoint(EpInfo::Value(&entry), 0))?;
            let work = Work::transfer(OpType::SEND, ep.handle(), &send, &counter, 1);
            let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
            ids.push(rig.domain.queue_work(&work)?);
            // It is not enabled, but memory that might be kept counts.
            let posted = ep.post(&inject);
            let full = Err(Error::Os(Errno::DQUOT));
            check!(
                posted.is_err() && posted != full,
                "{posted:?} in round {round}"
            );
        }
        for id in ids {
            rig.session.release_work(id)?;
        }
        drop((buffer, counter));
        Ok(())
    })
}

/// An endpoint may have as many operations as the transmit context that it shares, and the copies of
/// their data count for as many.
pub(super) fn shared_depths(env: &Env) -> Outcome {
    limited(env, c"max_memory=1048576", |rig| {
        let entry = injecting(rig, 1)?;
        let attr = kfi::TxAttr {
            size: 512,
            ..entry.tx_attr.clone()
        };
        let stx = unless_missing(rig.domain.stx_context(Some(&attr), 0))?;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let inject = Operation::new(Kind::SEND, Form::INJECT).segment(buffer.segment(0..1024));
        let full = Errno::DQUOT;
        for before in [false, true] {
            let ep = rig.domain.endpoint(EpInfo::Value(&entry), 0)?;
            let mut posted = ep.post(&inject);
            check!(posted != Err(Error::Os(full)), "with a depth of 1");
            if before {
                // Copies that count already would count for more operations.
                expect_os(ep.bind(stx.handle(), 0), full)?;
                // And the endpoint has none yet.
                let small = rig.domain.stx_context(Some(&entry.tx_attr), 0)?;
                ep.bind(small.handle(), 0)?;
                drop(ep);
                continue;
            }
            drop(ep);
            let ep = rig.domain.endpoint(EpInfo::Value(&entry), 0)?;
            ep.bind(stx.handle(), 0)?;
            posted = ep.post(&inject);
            check_eq!(posted, Err(Error::Os(full)));
        }
        drop((buffer, stx));
        Ok(())
    })
}

/// Does something twice until it is refused for its memory, and has the queue found empty after each;
/// returns how often it was done.
fn until_full(
    cq: &kfi::CompletionQueue,
    most: usize,
    one: impl Fn() -> kfi::Result<()>,
) -> Result<usize, Stop> {
    let mut first = None;
    for _ in 0..2 {
        let mut done = 0;
        let full = loop {
            match one() {
                Ok(()) => done += 1,
                Err(error) => break error,
            }
            check!(done < most, "{most} are in no limit");
        };
        check_eq!(full, Error::Os(Errno::DQUOT));
        expect_fabric(cq.read(1), KfiErrno::EAGAIN)?;
        check_eq!(*first.get_or_insert(done), done);
    }
    Ok(first.unwrap_or_default())
}

/// As the operations of a transmit context that is shared may be posted again while completions are
/// not read, these count for each endpoint, also when it is closed.
pub(super) fn shared_completions(env: &Env) -> Outcome {
    limited(env, c"max_memory=2097152", |rig| {
        let cq = rig.domain.completion_queue(&CqAttr::new().size(1))?;
        let mut entry = rig.info.entries()[0].clone();
        let attr = kfi::TxAttr {
            size: 1 << 10,
            ..entry.tx_attr.clone()
        };
        (entry.tx_attr.size, entry.rx_attr.size) = (1, 1);
        let stx = unless_missing(rig.domain.stx_context(Some(&attr), 0))?;
        let done = until_full(&cq, 8, || {
            let ep = rig.domain.endpoint(EpInfo::Value(&entry), 0)?;
            // A bind that is refused gives back all that counted for it.
            for _ in 0..8 {
                if let Err(full @ Error::Os(_)) = ep.bind(stx.handle(), 1) {
                    return Err(full);
                }
            }
            ep.bind(stx.handle(), 0)
        })?;
        check!(done > 1, "only {done} endpoints");
        drop((stx, cq));
        Ok(())
    })
}

/// Operations count for what they take: more for one that transmits, and a receive as one for messages,
/// as one for tagged ones, each for several messages, and as one that looks for such.
pub(super) fn operations_count(env: &Env) -> Outcome {
    limited(env, c"max_memory=1048576", |rig| {
        let mut entry = rig.info.entries()[0].clone();
        let mut open = |transmits, receives| {
            (entry.tx_attr.size, entry.rx_attr.size) = (transmits, receives);
            rig.domain.endpoint(EpInfo::Value(&entry), 0).map(drop)
        };
        unless_missing(open(256, 256))?;
        expect_os(open(1024, 1), Errno::DQUOT)?;
        // Of 256 bytes each, and two times 128 for several messages.
        expect_os(open(1, 1024), Errno::DQUOT)
    })
}

/// An operation that waits for a counter counts for what it takes then, and until it has ended.
pub(super) fn pending_count(env: &Env) -> Outcome {
    const STEP: u64 = 16 << 10;
    // 1,088 as any, 160 in what it waits in, and 352 for its context.
    const EACH: usize = 1_600;
    Modules::new(env)?.with_device(c"max_memory=786432", || {
        let pair = pair_for(env, Caps::MSG | Caps::SEND, 16, Setup::default())?;
        let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
        let counter = pair.rig.counter()?;
        let send = pair.a.operation(Kind::SEND, Form::MSG);
        let send = send
            .segment(buffer.segment(0..64))
            .flags(bits::TRIGGER | bits::COMPLETION)
            .context(7)
            .trigger(&counter, 1_000);
        // Memory that is left, and a page.
        let fits = |len: &u64| pair.session.buffer(BufferKind::VMALLOC, *len).is_ok();
        let left = (1..64).map(|n| n * STEP).find(|len| !fits(len));
        let most = usize::try_from(left.unwrap_or(0) + 4096)? / EACH;
        let mut first = None;
        for _ in 0..2 {
            let posted = fill(most, || pair.a.ep.post(&send))?.len();
            check!(posted > 50, "only {posted}");
            check_eq!(*first.get_or_insert(posted), posted);
            for _ in 0..posted {
                pair.a.ep.cancel(7)?;
                check_eq!(pair.a.tx.read_err()?.entry.op_context, 7);
            }
        }
        drop((buffer, counter));
        pair.close()
    })
}

/// Injected messages count, also beside a binding that is refused.
pub(super) fn refused_bindings(env: &Env) -> Outcome {
    limited(env, c"max_memory=2097152", |rig| {
        let mut entry = injecting(rig, 1)?;
        let stx = unless_missing(rig.domain.stx_context(Some(&entry.tx_attr), 0))?;
        entry.tx_attr.size = 512;
        let buffer = rig.session.buffer(BufferKind::VMALLOC, 4096)?;
        let inject = Operation::new(Kind::SEND, Form::INJECT).segment(buffer.segment(0..1024));
        for _ in 0..env.scaled(500, 50) {
            let ep = rig.domain.endpoint(EpInfo::Value(&entry), 0)?;
            let start = Barrier::new(2);
            let refused = thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    // It is not enabled, but memory that might be kept counts.
                    let _ = ep.post(&inject);
                });
                start.wait();
                ep.bind(stx.handle(), 1)
            });
            check!(matches!(refused, Err(Error::Fabric(_))), "{refused:?}");
            // Of the endpoint's operations there are 512 KiB, and of what it injects as much.
            let large = rig.session.buffer(BufferKind::VMALLOC, 1 << 20);
            expect_os(large.map(drop), Errno::DQUOT)?;
        }
        drop((buffer, stx));
        Ok(())
    })
}

/// The remains of a closed endpoint without operations of its own count, too.
pub(super) fn closed_scalable(env: &Env) -> Outcome {
    limited(env, c"max_memory=262144", |rig| {
        let cq = rig.domain.completion_queue(&CqAttr::new().size(1))?;
        let entry = rig.info.entries()[0].clone();
        unless_missing(rig.domain.scalable_endpoint(EpInfo::Value(&entry), 0))?;
        expect_fabric(cq.read(1), KfiErrno::EAGAIN)?;
        // Each leaves over 256 bytes.
        let done = until_full(&cq, 1024, || {
            drop(rig.domain.scalable_endpoint(EpInfo::Value(&entry), 0)?);
            Ok(())
        })?;
        check!(done > 50, "only {done} endpoints");
        drop(cq);
        Ok(())
    })
}

/// A queue is for the direction of a context if none is named, and one of a shared context for those
/// that have none: operations whose success is not told there do not use up the memory.
pub(super) fn without_direction(env: &Env) -> Outcome {
    // Their contexts would take more than there is.
    const COUNT: u64 = 400;
    Modules::new(env)?.with_device(c"max_memory=671744", || {
        let caps = Caps::MSG | Caps::SEND | Caps::RECV;
        let pair = pair_for(env, caps, 16, Setup::default())?;
        let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
        let cq = pair.domain.completion_queue(&CqAttr::new().size(64))?;
        let mut entry = pair.entry().clone();
        entry.ep_attr.tx_ctx_cnt = 1;
        entry.ep_attr.rx_ctx_cnt = 1;
        (entry.tx_attr.size, entry.rx_attr.size) = (16, 16);
        let many = |ep: &kfi::Endpoint| -> Outcome {
            for number in 0..COUNT {
                pair.b.recv(buffer.segment(0..64), 1)?;
                let send = Operation::new(Kind::SEND, Form::PLAIN)
                    .segment(buffer.segment(64..128))
                    .to(pair.a.peer)
                    .context(1_000_000 + number);
                loop {
                    match ep.post(&send) {
                        Err(Error::Fabric(KfiErrno::EAGAIN)) => kfi_host::thread::relax(),
                        posted => break posted?,
                    }
                }
                complete(&pair.b.rx)?;
            }
            expect_fabric(cq.read(1), KfiErrno::EAGAIN)
        };
        let sep = pair.domain.scalable_endpoint(EpInfo::Value(&entry), 0);
        let sep = unless_missing(sep)?;
        sep.bind(pair.a.av.handle(), 0)?;
        let tx = sep.tx_context(0, None, 0)?;
        tx.bind(cq.handle(), bits::SELECTIVE_COMPLETION)?;
        sep.enable()?;
        tx.enable()?;
        many(&tx)?;
        drop((tx, sep));

        let stx = unless_missing(pair.domain.stx_context(Some(&entry.tx_attr), 0))?;
        let ep = pair.domain.endpoint(EpInfo::Value(&entry), 0)?;
        ep.bind(pair.a.av.handle(), 0)?;
        ep.bind(stx.handle(), 0)?;
        ep.bind(cq.handle(), bits::RECV)?;
        stx.bind(cq.handle(), bits::SELECTIVE_COMPLETION)?;
        ep.enable()?;
        many(&ep)?;
        drop(ep);
        drop((stx, cq, buffer));
        pair.close()
    })
}
