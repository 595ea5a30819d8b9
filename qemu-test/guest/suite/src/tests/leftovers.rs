// SPDX-License-Identifier: GPL-2.0

//! What somebody tries who holds a descriptor of /dev/kfi, goes on: what objects leave over that are
//! closed, what is told late or in another order, and what takes long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, PoisonError};
use std::thread;

use kfi::{
    bits, uapi, AvAttr, BufferKind, Caps, CqAttr, EpInfo, Error, Form, KfiErrno, Kind, OpType,
    Operation, Work,
};
use kfi_host::signal;
use rustix::io::Errno;
use rustix::process::Signal;
use zerocopy::{FromZeros, IntoBytes};

use crate::check::{Outcome, Stop};
use crate::ends::{complete, End, Pair, Setup};
use crate::env::Env;
use crate::raw;
use crate::rig::{expect_fabric, expect_os, Rig};
use crate::tests::attacker::{fill, injecting, limited, pair_for, unless_missing};
use crate::tests::module::Modules;
use crate::{check, check_eq, tests};

tests! {
    "attacker";
    "release-before-the-others" ["kfi_shim.h"] release_first;
    "completions-count-after-their-endpoint" ["kfi_shim.h"] completions_count;
    "completions-of-works-count" ["kfi_shim.h"] works_completions_count;
    "closed-endpoints-give-back" ["kfi_shim.h"] closed_endpoints;
    "shared-depths-count" ["kfi_shim.h"] shared_depths;
    "shared-completions-count" ["kfi_shim.h"] shared_completions;
    "operations-count" ["kfi_shim.h"] operations_count;
    "pending-operations-count" ["kfi_shim.h"] pending_count;
    "refused-bindings-count-no-less" ["kfi_shim.h"] refused_bindings;
    "scalable-endpoints-count-when-closed" ["kfi_shim.h"] closed_scalable;
    "vectors-count" ["kfi_shim.h"] vectors_count;
    "released-beside-queueing" ["R-DWQ-4 kfi_shim.h"] released_beside_queueing;
    "refused-operations-take-no-number" ["kfi_shim.h"] refused_numbers;
    "cancel-among-silent-receives" ["R-TRIG-26 kfi_shim.h"] silent_receives;
    "queues-without-a-direction" ["kfi_shim.h"] without_direction;
    "signals-end-long-requests" ["kfi_shim.h"] long_requests;
}

/// A receive for several messages that two endpoints share: that it is used up is read from the queue
/// of the one, before the message that the other one got.
fn release_first(env: &Env) -> Outcome {
    let pair = Pair::new(env, Caps::MSG | Caps::SEND | Caps::RECV)?;
    let srx = unless_missing(pair.domain.srx_context(None, 0))?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let mut ends = Vec::new();
    for _ in 0..2 {
        let entry = EpInfo::Entry(&pair.rig.info, 0);
        let mut end = End::open(&pair.domain, entry, &Setup::default())?;
        end.ep.bind(srx.handle(), 0)?;
        end.enable()?;
        ends.push((pair.a.av.insert(&end.name)?, end));
    }
    let receive = |context, len, flags| {
        Operation::new(Kind::RECV, Form::MSG)
            .segment(buffer.segment(0..len))
            .flags(flags)
            .context(context)
    };
    for round in 0..4 {
        srx.post(&receive(7, 256, bits::MULTI_RECV | bits::COMPLETION))?;
        for (at, len) in [(0, 100), (1, 150)] {
            let send = Operation::new(Kind::SEND, Form::PLAIN)
                .segment(buffer.segment(1024..1024 + len))
                .to(ends[at].0);
            pair.a.post(&send)?;
            complete(&pair.a.tx)?;
        }
        let last = complete(&ends[1].1.rx)?;
        check_eq!((last.op_context, last.len), (7, 150), "round {round}");
        check!(last.flags & bits::MULTI_RECV != 0, "it is not used up");
        // Whatever is freed is soon had again.
        for number in 0..16 {
            srx.post(&receive(1000 + 100 * round + number, 64, bits::COMPLETION))?;
        }
        let first = complete(&ends[0].1.rx)?;
        check_eq!((first.op_context, first.len), (7, 100), "round {round}");
        for number in 0..16 {
            srx.cancel(1000 + 100 * round + number)?;
        }
    }
    drop((ends, buffer));
    srx.close().map_err(|(_, error)| error)?;
    pair.close()
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
fn completions_count(env: &Env) -> Outcome {
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

/// The same of what was posted by works that are released when their endpoint is closed.
fn works_completions_count(env: &Env) -> Outcome {
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

/// What a provider copies of operations counts until their endpoint is closed, whoever remembers the
/// endpoint.
fn closed_endpoints(env: &Env) -> Outcome {
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
            // It is not enabled, but what might be kept counts.
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

/// An endpoint may have as many operations as the transmit context that it shares, and what is copied
/// of them counts for as many.
fn shared_depths(env: &Env) -> Outcome {
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
                // What counts already counts for more.
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
fn shared_completions(env: &Env) -> Outcome {
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
            // What is refused gives back what counted.
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
fn operations_count(env: &Env) -> Outcome {
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
fn pending_count(env: &Env) -> Outcome {
    const STEP: u64 = 16 << 10;
    // 1,088 as any, 160 in what it waits in, and 352 for its context.
    const EACH: usize = 1_600;
    Modules::new(env)?.with_device(c"max_memory=655360", || {
        let pair = pair_for(env, Caps::MSG | Caps::SEND, 16, Setup::default())?;
        let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
        let counter = pair.rig.counter()?;
        let send = pair.a.operation(Kind::SEND, Form::MSG);
        let send = send
            .segment(buffer.segment(0..64))
            .flags(bits::TRIGGER | bits::COMPLETION)
            .context(7)
            .trigger(&counter, 1_000);
        // What is left, and a page.
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

/// What is injected counts, also beside a binding that is refused.
fn refused_bindings(env: &Env) -> Outcome {
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
                    // It is not enabled, but what might be kept counts.
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

/// What an endpoint leaves over that has no operations of its own counts, too.
fn closed_scalable(env: &Env) -> Outcome {
    limited(env, c"max_memory=196608", |rig| {
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

/// A vector counts with what it takes for its first address.
fn vectors_count(env: &Env) -> Outcome {
    const MEMORY: usize = 1 << 20;
    const EACH: usize = 12 << 10;
    Modules::new(env)?.with_device(c"max_memory=1048576", || {
        let pair = pair_for(env, Caps::MSG, 16, Setup::default())?;
        let mut vectors = Vec::new();
        let full = loop {
            let av = match pair.domain.address_vector(&AvAttr::default()) {
                Ok(av) => av,
                Err(error) => break error,
            };
            match av.insert(&pair.b.name) {
                Ok(_) => vectors.push(av),
                Err(error) => break error,
            }
            check!(
                vectors.len() * EACH <= MEMORY,
                "{} vectors with an address",
                vectors.len()
            );
        };
        check_eq!(full, Error::Os(Errno::DQUOT));
        check!(vectors.len() > 30, "{} vectors", vectors.len());
        drop(vectors);
        pair.close()
    })
}

/// A work that is released is not queued by somebody who has just begun to.
fn released_beside_queueing(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let work = Work::add(&counter, 1, &counter, 1000);
    let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
    let rounds = env.scaled(10_000, 1_000);
    let (start, end) = (Barrier::new(2), Barrier::new(2));
    let id = std::sync::Mutex::new(None);
    let released = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                start.wait();
                let id = *id.lock().unwrap_or_else(PoisonError::into_inner);
                let done = id.is_some_and(|id| rig.session.release_work(id).is_ok());
                released.store(done, Ordering::Release);
                end.wait();
            }
        });
        let mut outcome = Ok(());
        let mut counts = [0; 2];
        for round in 0..rounds {
            let prepared = match &outcome {
                Ok(()) => rig.domain.queue_work(&work).map_err(Stop::from),
                Err(_) => Err(Stop::fail("over")),
            };
            let prepared = prepared.map_err(|stop| outcome = outcome.clone().and(Err(stop)));
            *id.lock().unwrap_or_else(PoisonError::into_inner) = prepared.ok();
            start.wait();
            let queued = prepared.map(|id| rig.session.requeue_work(id));
            end.wait();
            let Ok(queued) = queued else { continue };
            let is_released = released.load(Ordering::Acquire);
            counts[usize::from(is_released)] += 1;
            let fine = match queued {
                Ok(()) => !is_released,
                Err(Error::Os(Errno::BADF)) => is_released,
                Err(_) => false,
            };
            if !fine && outcome.is_ok() {
                let what = format!("{queued:?}, released: {is_released}, in round {round}");
                outcome = Err(Stop::fail(what));
            }
            if !is_released {
                if let Ok(id) = prepared {
                    let _ = rig.domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE);
                }
            }
        }
        env.note(format!("{} queued, {} released", counts[0], counts[1]));
        outcome
    })?;
    drop(counter);
    rig.close()
}

/// Operations that are refused do not take the numbers away from those whose success nobody is told of.
fn refused_numbers(env: &Env) -> Outcome {
    const DEPTH: u64 = 4;
    let setup = Setup {
        tx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = pair_for(env, Caps::MSG | Caps::SEND | Caps::RECV, DEPTH, setup)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let send = pair.a.operation(Kind::SEND, Form::PLAIN);
    let send = send.segment(buffer.segment(0..64));
    // Nobody receives.
    let mut accepted = Vec::new();
    for number in 1..=6 * DEPTH {
        match pair.a.ep.post(&send.clone().context(number)) {
            Ok(()) => accepted.push(number),
            Err(Error::Fabric(KfiErrno::EAGAIN)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if accepted.len() as u64 > 2 * DEPTH {
        return Err(Stop::Skip(format!("{} are accepted", accepted.len())));
    }
    // Those that have waited for too long by now have failed already.
    for number in &accepted {
        let _ = pair.a.ep.cancel(*number);
    }
    let mut told = Vec::new();
    while told.len() < accepted.len() {
        match pair.a.tx.read(1) {
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                told.push(pair.a.tx.read_err()?.entry.op_context);
            }
            Err(Error::Fabric(KfiErrno::EAGAIN)) => kfi_host::thread::relax(),
            other => return Err(Stop::fail(format!("{other:?} after {told:?}"))),
        }
    }
    told.sort_unstable();
    check_eq!(told, accepted);
    drop(buffer);
    pair.close()
}

/// A receive whose success nobody would be told of is found by its number, however many came and went.
fn silent_receives(env: &Env) -> Outcome {
    const DEPTH: u64 = 32;
    let setup = Setup {
        rx_bind: bits::SELECTIVE_COMPLETION,
        ..Setup::default()
    };
    let pair = pair_for(env, Caps::TAGGED | Caps::SEND | Caps::RECV, DEPTH, setup)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let receive = |tag, context| {
        Operation::new(Kind::TRECV, Form::MSG)
            .segment(buffer.segment(0..64))
            .tag(tag, 0)
            .context(context)
    };
    pair.a.ep.post(&receive(99, 1))?;
    for number in 0..8 * DEPTH {
        pair.a.post(&receive(1, 1000 + number))?;
        let send = pair.b.operation(Kind::TSEND, Form::PLAIN);
        pair.b
            .post(&send.segment(buffer.segment(64..128)).tag(1, 0))?;
        complete(&pair.b.tx)?;
    }
    // None but the first one is there.
    for number in 0..8 * DEPTH {
        expect_fabric(pair.a.ep.cancel(1000 + number), KfiErrno::ENOENT)?;
    }
    pair.a.ep.cancel(1)?;
    check_eq!(pair.a.rx.read_err()?.entry.op_context, 1);
    drop(buffer);
    pair.close()
}

/// A queue is for the direction of a context if none is named, and one of a shared context for those
/// that have none: operations whose success is not told there do not use up the memory.
fn without_direction(env: &Env) -> Outcome {
    // Their contexts would take more than there is.
    const COUNT: u64 = 400;
    Modules::new(env)?.with_device(c"max_memory=540672", || {
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

/// Repeats a request while signals are sent, until one of them ends it.
fn until_interrupted(
    env: &Env,
    what: &str,
    mut request: impl FnMut() -> Result<bool, Stop>,
) -> Outcome {
    const MOST: usize = 20_000;
    let stop = AtomicBool::new(false);
    let tid = rustix::thread::gettid();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = signal::send_to_thread(tid, Signal::USR1);
                thread::yield_now();
            }
        });
        let mut outcome = Err(Stop::fail(format!("no signal ends {what}")));
        for round in 0..MOST {
            match request() {
                Ok(false) => {}
                Ok(true) => {
                    env.note(format!("{what}: ended in round {round}"));
                    outcome = Ok(());
                    break;
                }
                Err(stop) => {
                    outcome = Err(stop);
                    break;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Works of an endpoint that is closed are released.
fn release_all(rig: &Rig, works: Vec<kfi::WorkId>) -> Outcome {
    rig.domain.flush_work(None)?;
    for id in works {
        rig.session.release_work(id)?;
    }
    Ok(())
}

/// Whatever takes long by what was asked for is ended by a signal.
fn long_requests(env: &Env) -> Outcome {
    signal::count(Signal::USR1, false)?;
    let setup = Setup {
        cq_size: 1000,
        ..Setup::default()
    };
    let pair = Pair::with(env, Caps::MSG | Caps::SEND | Caps::RECV, &setup)?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    let counter = pair.rig.counter()?;
    let interrupted = |result: kfi::Result<()>| match result {
        Err(Error::Fabric(KfiErrno::EINTR) | Error::Os(Errno::INTR)) => Ok(true),
        Err(error) => Err(Stop::from(error)),
        Ok(()) => Ok(false),
    };

    // Works that are looked at by each flush, as their endpoint is open.
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(buffer.segment(0..64))
        .flags(bits::COMPLETION)
        .context(9);
    let ready = pair.rig.counter()?;
    let work = Work::transfer(OpType::RECV, pair.a.ep.handle(), &receive, &ready, 0);
    let works = (0..env.scaled(4_000, 1_000))
        .map(|_| pair.domain.queue_work(&work))
        .collect::<Result<Vec<_>, _>>()?;
    until_interrupted(env, "a flush", || interrupted(pair.domain.flush_work(None)))?;
    pair.domain.flush_work(None)?;

    // Receives of one number that have ended, but nobody has read that.
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(buffer.segment(0..64))
        .flags(bits::TRIGGER | bits::COMPLETION)
        .context(5);
    for _ in 0..500 {
        pair.a.post(&receive.clone().trigger(&counter, 1_000_000))?;
    }
    let mut there = 500;
    while there > 0 {
        if !interrupted(pair.a.ep.cancel(5))? {
            there -= 1;
        }
    }
    until_interrupted(env, "a cancel by number", || match pair.a.ep.cancel(5) {
        Err(Error::Fabric(KfiErrno::ENOENT)) => Ok(false),
        result => interrupted(result),
    })?;

    // Segments.
    let at = uapi::kfi_shim_segment {
        buffer: buffer.handle(),
        ..FromZeros::new_zeroed()
    };
    let list = vec![at; uapi::KFI_SHIM_SEGMENTS_MAX as usize];
    let operation = uapi::kfi_shim_op {
        ep: pair.a.ep.handle(),
        kind: uapi::KFI_SHIM_OP_SEND,
        form: uapi::KFI_SHIM_FORM_MSG,
        segments: list.as_ptr().addr() as u64,
        segment_count: uapi::KFI_SHIM_SEGMENTS_MAX,
        ..FromZeros::new_zeroed()
    };
    until_interrupted(env, "a list of segments", || {
        let mut operation = operation;
        match raw::bytes(
            &pair.session,
            uapi::KFI_REQUEST_POST,
            operation.as_mut_bytes(),
        ) {
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(Stop::fail(format!("{error} for the list"))),
            Ok(()) => Ok(false),
        }
    })?;
    drop((list, buffer));
    let Pair { a, b, far, rig } = pair;
    drop((a, b));
    release_all(&rig, works)?;
    drop((counter, ready));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}
