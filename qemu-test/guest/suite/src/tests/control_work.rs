// SPDX-License-Identifier: GPL-2.0

//! Taking deferred work back.

use std::sync::atomic::{AtomicU64, Ordering};

use kfi::{bits, uapi, CntrAttr, Counter, Error, KfiErrno, OpType, Work, WorkId};
use rand::seq::SliceRandom;

use crate::check::{Outcome, Stop};
use crate::ends::{expect_contexts, quiet, settle, Net, Setup, LONG};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, pin, unshare, until, Rig};
use crate::tests::deferred::{max_pending, queue_all};
use crate::{check, check_eq, tests};

tests! {
    "control-work" parallel;
    "case-48-cancel" ["R-CTL-2 R-CTL-1 R-DWQ-13"] cancel;
    "case-48-cancel-transfer" ["R-CTL-2 R-CLOSE-2"] cancel_transfer;
    "case-48-cancel-of-another-domain" ["R-CTL-2"] cancel_elsewhere;
    "case-48-cancel-freed" ["R-CTL-2"] cancel_freed;
    "case-48-cancel-in-any-order" ["R-CTL-2"] cancel_in_any_order;
    alone "case-49-cancel-races-fire" ["R-CTL-2 R-CTL-5"] cancel_races_fire;
    "case-49-cancel-what-has-fired" ["R-CTL-2 R-CTL-5"] cancel_fired;
    alone "case-49-many-threads-cancel" ["R-CTL-2 R-CTL-5"] many_threads_cancel;
    "case-50-flush" ["R-CTL-3 R-CTL-4"] flush;
    "case-50-flush-leaves-the-rest" ["R-CTL-3 R-CTL-4"] flush_leaves_the_rest;
    "case-50-flush-wrong-argument" ["R-CTL-4"] flush_wrong_argument;
    "case-51-flush-races-add" ["R-CTL-3 R-CTL-5"] flush_races_add;
    "case-51-queue-races-flush" ["R-CTL-3 R-CTL-5"] queue_races_flush;
    alone "case-51-many-threads-flush" ["R-CTL-3 R-CTL-4 R-CTL-5"] many_threads_flush;
}

fn cancel(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let domain = &rig.domain;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    let work = Work::add(&target, 1, &trigger, 1);
    // Pending, and then no more.
    let id = domain.queue_work(&work)?;
    domain.cancel_work(id, 0)?;
    expect_fabric(domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    trigger.add(1)?;
    settle();
    check_eq!(target.read()?, 0);
    trigger.set(0)?;
    // Fired.
    let id = domain.queue_work(&work)?;
    trigger.add(1)?;
    target.wait(1, Some(LONG))?;
    expect_fabric(domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    // Due at once.
    let id = domain.queue_work(&work)?;
    target.wait(2, Some(LONG))?;
    expect_fabric(domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    // Never queued.
    let never = work.clone().shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
    let id = domain.queue_work(&never)?;
    expect_fabric(domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    // Refused.
    let bad = work.clone().completion(target.handle());
    let (id, result) = domain.queue_work_raw(&bad)?;
    expect_fabric(result, KfiErrno::EINVAL)?;
    expect_fabric(domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    // None.
    expect_fabric(domain.cancel_work(0, 0), KfiErrno::EINVAL)?;
    // Queued again after it was cancelled.
    trigger.set(0)?;
    let id = domain.queue_work(&work)?;
    domain.cancel_work(id, 0)?;
    rig.session.requeue_work(id)?;
    trigger.add(1)?;
    target.wait(3, Some(LONG))?;
    check_eq!(target.read()?, 3);
    for counter in [trigger, target] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn cancel_transfer(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let [trigger, done] = [net.counter()?, net.counter()?];
    let ep = net.peers[0].ep.handle();
    let write = net.write(0, 1, 0, 64, 8).context(1);
    let operations = [
        (OpType::WRITE, write.flags(bits::COMPLETION)),
        (OpType::RECV, net.receive(0, 0, 8).flags(bits::COMPLETION)),
    ];
    let mut ids = Vec::new();
    for (op_type, operation) in &operations {
        let work = Work::transfer(*op_type, ep, operation, &trigger, 1);
        let work = work.completion(done.handle());
        ids.push(net.rig.domain.queue_work(&work)?);
    }
    // They are not operations of the endpoint yet.
    expect_fabric(net.peers[0].ep.cancel(1), KfiErrno::ENOENT)?;
    for id in ids {
        net.rig
            .domain
            .cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE)?;
    }
    // The counters are free, and nobody is told.
    trigger.add(1)?;
    settle();
    check_eq!((done.read()?, done.read_err()?), (0, 0));
    for counter in [trigger, done] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    check_eq!(net.peers[1].remote.read()?, 0);
    net.close()
}

fn cancel_elsewhere(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let other = Rig::in_session(env, rig.session.clone())?;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 1))?;
    expect_fabric(other.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    trigger.add(1)?;
    target.wait(1, Some(LONG))?;
    drop((trigger, target));
    other.close()?;
    rig.close()
}

fn cancel_freed(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    let work = Work::add(&target, 1, &trigger, 1);
    for _ in 0..env.scaled(100, 10) {
        let prepared = work.clone().shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
        let id = rig.domain.queue_work(&prepared)?;
        let stale = uapi::KFI_SHIM_WORK_STALE;
        expect_fabric(rig.domain.cancel_work(id, stale), KfiErrno::ENOENT)?;
        let id = rig.domain.queue_work(&work)?;
        rig.domain.cancel_work(id, 0)?;
        expect_fabric(rig.domain.cancel_work(id, stale), KfiErrno::ENOENT)?;
    }
    trigger.add(1)?;
    settle();
    check_eq!(target.read()?, 0);
    drop((trigger, target));
    rig.close()
}

fn cancel_in_any_order(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    let count = env.scaled(20_000, 1_000).min(max_pending());
    let mut rng = env.rng();
    let works: Vec<_> = (0..count)
        .map(|i| Work::add(&target, 1, &trigger, 1 + i * 7919 % count))
        .collect();
    let mut ids = queue_all(&rig.domain, &works)?;
    ids.shuffle(&mut rng);
    let (gone, kept) = ids.split_at(ids.len() / 2);
    for id in gone {
        rig.domain.cancel_work(*id, uapi::KFI_SHIM_WORK_RELEASE)?;
    }
    trigger.add(count)?;
    target.wait(kept.len() as u64, Some(LONG))?;
    for id in kept {
        expect_fabric(rig.domain.cancel_work(*id, 0), KfiErrno::ENOENT)?;
    }
    check_eq!(target.read()?, kept.len() as u64);
    for counter in [trigger, target] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn cancel_races_fire(env: &Env) -> Outcome {
    let mut left = env.scaled(100_000, 5_000);
    let (mut cancelled, mut fired) = (0, 0);
    while left > 0 {
        // Works that have fired are kept, and count, until their domain is closed.
        let rig = Rig::new(env)?;
        let [trigger, target] = [rig.counter()?, rig.counter()?];
        let mut submitted = 0;
        let mut won = 0;
        for _ in 0..5 {
            let count = left.min(1000);
            left -= count;
            submitted += count;
            won += cancel_beside_adds(&rig, &trigger, &target, count)?;
        }
        let kept = submitted - won;
        target.wait(kept, Some(LONG))?;
        settle();
        check_eq!(target.read()?, kept, "fired, {won} cancelled");
        cancelled += won;
        fired += kept;
        for counter in [trigger, target] {
            unshare(counter)?.close().map_err(|(_, error)| error)?;
        }
        rig.close()?;
    }
    env.note(format!("{cancelled} cancelled, {fired} fired"));
    Ok(())
}

/// Cancels a work, and releases it; returns whether it had fired.
fn had_fired(rig: &Rig, id: WorkId) -> Result<bool, Stop> {
    match rig.domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE) {
        Ok(()) => Ok(false),
        Err(Error::Fabric(KfiErrno::ENOENT)) => {
            // Not if it is yet to run: then it goes with its domain.
            rig.session.release_work(id).ok();
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}

/// More threads cancel than are woken at a time, and each waits for what has fired before.
fn many_threads_cancel(env: &Env) -> Outcome {
    const THREADS: u64 = 24;
    let rig = Rig::new(env)?;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    let rounds = env.scaled(400, 40);
    let burst: Vec<_> = (0..50)
        .map(|_| Work::add(&target, 1, &trigger, 1))
        .collect();
    let ended = AtomicU64::new(0);
    let fired = in_threads(0..=THREADS, |thread| -> Result<u64, Stop> {
        let mut fired = 0;
        if thread == 0 {
            // There is always something on its way.
            while ended.load(Ordering::Relaxed) < THREADS {
                trigger.set(0)?;
                let ids = queue_all(&rig.domain, &burst)?;
                trigger.add(1)?;
                for id in ids {
                    fired += u64::from(had_fired(&rig, id)?);
                }
                trigger.add(1)?;
            }
            return Ok(fired);
        }
        for _ in 0..rounds {
            let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 2))?;
            fired += u64::from(had_fired(&rig, id)?);
        }
        ended.fetch_add(1, Ordering::Relaxed);
        Ok(fired)
    })?;
    let fired: u64 = fired.iter().sum();
    env.note(format!("{fired} fired"));
    target.wait(fired, Some(LONG))?;
    settle();
    check_eq!(target.read()?, fired, "what was not cancelled");
    for counter in [trigger, target] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

/// Works that are cancelled while their thresholds are met; returns how many were cancelled.
/// What has fired, and is more than the thread runs that has made it due, is not cancelled, and runs.
fn cancel_fired(env: &Env) -> Outcome {
    const COUNT: u64 = 1000;
    const LEN: u64 = 8192;
    let setup = Setup {
        memory: LEN,
        ..Setup::default()
    };
    for _ in 0..env.scaled(20, 5) {
        let net = Net::new(env, &setup)?;
        let domain = &net.rig.domain;
        let [trigger, done] = [net.counter()?, net.counter()?];
        let write = net.write(0, 1, 0, 0, LEN);
        let ep = net.peers[0].ep.handle();
        let work = Work::transfer(OpType::WRITE, ep, &write, &trigger, 1).completion(done.handle());
        let ids = queue_all(domain, &vec![work; COUNT as usize])?;
        trigger.add(1)?;
        // The last ones to run.
        for id in ids.iter().rev().take(3) {
            expect_fabric(domain.cancel_work(*id, 0), KfiErrno::ENOENT)?;
        }
        done.wait(COUNT, Some(LONG))?;
        settle();
        check_eq!(done.read()?, COUNT);
        net.close()?;
    }
    Ok(())
}

fn cancel_beside_adds(
    rig: &Rig,
    trigger: &Counter,
    target: &Counter,
    count: u64,
) -> Result<u64, Stop> {
    trigger.set(0)?;
    let works: Vec<_> = (1..=count)
        .map(|i| Work::add(target, 1, trigger, i))
        .collect();
    let ids = queue_all(&rig.domain, &works)?;
    let won = in_threads(0..2, |role| {
        pin(role)?;
        let mut won = 0;
        if role == 0 {
            for _ in 0..count {
                trigger.add(1)?;
            }
        } else {
            // From the end, and from near where the other one is.
            for id in ids
                .iter()
                .rev()
                .step_by(2)
                .chain(ids.iter().skip(1).step_by(2))
            {
                match rig.domain.cancel_work(*id, uapi::KFI_SHIM_WORK_RELEASE) {
                    Ok(()) => won += 1,
                    Err(Error::Fabric(errno)) => check_eq!(errno, KfiErrno::ENOENT),
                    Err(error @ Error::Os(_)) => {
                        // Released, as it is in both halves.
                        check_eq!(error, Error::Os(rustix::io::Errno::BADF));
                    }
                }
            }
        }
        Ok(won)
    })?;
    Ok(won.iter().sum())
}

fn flush(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let domain = &rig.domain;
    let [one, two, target] = [rig.counter()?, rig.counter()?, rig.counter()?];
    // Nothing is there.
    domain.flush_work(None)?;
    domain.flush_work(Some(&one))?;
    let count = 100;
    for i in 1..=count {
        domain.queue_work(&Work::add(&target, 1, &one, i))?;
        domain.queue_work(&Work::add(&target, 1000, &two, i))?;
    }
    one.add(10)?;
    target.wait(10, Some(LONG))?;
    // One of them.
    domain.flush_work(Some(&one))?;
    one.add(1000)?;
    settle();
    check_eq!(target.read()?, 10);
    two.add(10)?;
    target.wait(10_010, Some(LONG))?;
    // All.
    domain.flush_work(None)?;
    two.add_err(1000)?;
    settle();
    check_eq!(target.read()?, 10_010);
    // Values stay, and the counters work on.
    check_eq!((one.read()?, two.read()?), (1010, 10));
    domain.queue_work(&Work::add(&target, 1, &one, 1011))?;
    one.add(1)?;
    target.wait(10_011, Some(LONG))?;
    check_eq!(target.read()?, 10_011);
    for counter in [one, two, target] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn flush_leaves_the_rest(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let domain = &net.rig.domain;
    let other = Rig::in_session(env, net.rig.session.clone())?;
    let [one, two] = [net.counter()?, net.counter()?];
    let far = other.domain.counter(&CntrAttr::new())?;
    // Triggered operations are no deferred work.
    let write = net.write(0, 1, 0, 64, 8).context(1).flags(bits::TRIGGER);
    net.peers[0].ep.post(&write.clone().trigger(&one, 1))?;
    // Works that change a counter, or complete there, do not wait for it.
    domain.queue_work(&Work::add(&one, 1, &two, 1))?;
    let ep = net.peers[0].ep.handle();
    let work = Work::transfer(OpType::WRITE, ep, &write, &two, 2);
    domain.queue_work(&work.completion(one.handle()))?;
    other.domain.queue_work(&Work::add(&far, 1, &far, 1))?;
    domain.flush_work(Some(&one))?;
    two.add(1)?;
    one.wait(1, Some(LONG))?;
    expect_contexts(&net.peers[0].tx, &[1])?;
    two.add(1)?;
    one.wait(2, Some(LONG))?;
    // All of a domain are all of that domain.
    net.peers[0].ep.post(&write.trigger(&one, 5))?;
    domain.flush_work(None)?;
    far.add(1)?;
    far.wait(2, Some(LONG))?;
    quiet(&net.peers[0].tx)?;
    one.set(5)?;
    expect_contexts(&net.peers[0].tx, &[1])?;
    drop(far);
    other.close()?;
    net.close()
}

fn flush_wrong_argument(env: &Env) -> Outcome {
    let net = Net::pair(env)?;
    let domain = &net.rig.domain;
    let other = Rig::in_session(env, net.rig.session.clone())?;
    let far = other.counter()?;
    let [trigger, target] = [net.counter()?, net.counter()?];
    domain.queue_work(&Work::add(&target, 1, &trigger, 1))?;
    for handle in [
        domain.handle(),
        net.peers[0].ep.handle(),
        net.peers[0].tx.handle(),
        net.av.handle(),
        far.handle(),
    ] {
        expect_fabric(domain.flush_work_handle(handle), KfiErrno::EINVAL)?;
    }
    // Nothing was taken back.
    trigger.add(1)?;
    target.wait(1, Some(LONG))?;
    drop(far);
    other.close()?;
    net.close()
}

fn flush_races_add(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    let count = 200;
    let works: Vec<_> = (1..=count)
        .map(|i| Work::add(&target, 1, &trigger, i))
        .collect();
    let mut flushed = 0;
    let rounds = env.scaled(100, 20);
    for round in 0..rounds {
        trigger.set(0)?;
        target.set(0)?;
        queue_all(&rig.domain, &works)?;
        in_threads(0..2, |role| {
            pin(role)?;
            if role == 0 {
                for _ in 0..count {
                    trigger.add(1)?;
                }
            } else {
                for _ in 0..round % 64 {
                    target.read()?;
                }
                let which = (round % 2 == 0).then_some(&*trigger);
                rig.domain.flush_work(which)?;
            }
            Ok(())
        })?;
        // Works that had become due run, and no others: all that are left
        // over are gone, so that nothing is pending on the counter.
        trigger.add(count)?;
        let mut fired = target.read()?;
        until(|| {
            settle();
            let now = target.read()?;
            let quiet = now == fired;
            fired = now;
            Ok(quiet)
        })?;
        check!(fired <= count, "{fired} of {count} fired");
        flushed += count - fired;
    }
    env.note(format!("{flushed} of {} flushed", rounds * count));
    for counter in [trigger, target] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

fn queue_races_flush(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let [trigger, target] = [rig.counter()?, rig.counter()?];
    let rounds = env.scaled(50, 5);
    let batch = 200.min(max_pending() / 8);
    let queued = AtomicU64::new(0);
    in_threads(0..4, |role| {
        for round in 0..rounds {
            match role {
                0 | 1 => {
                    let works: Vec<_> = (0..batch)
                        .map(|i| {
                            Work::add(&target, 1, &trigger, 1 + u64::midpoint(round * batch, i))
                        })
                        .collect();
                    queue_all(&rig.domain, &works)?;
                    queued.fetch_add(batch, Ordering::Relaxed);
                }
                2 => {
                    for _ in 0..batch / 4 {
                        trigger.add(1)?;
                    }
                }
                _ => rig
                    .domain
                    .flush_work((round % 2 == 0).then_some(&*trigger))?,
            }
        }
        Ok(())
    })?;
    rig.domain.flush_work(None)?;
    trigger.add(1 << 40)?;
    settle();
    let fired = target.read()?;
    settle();
    check_eq!(target.read()?, fired);
    let queued = queued.into_inner();
    check!(fired <= queued, "{fired} of {queued}");
    env.note(format!("{queued} queued, {fired} fired"));
    for counter in [trigger, target] {
        unshare(counter)?.close().map_err(|(_, error)| error)?;
    }
    rig.close()
}

/// Threads of which each waits, in a flush, for what the others have made due as well: what has fired before
/// has been done when the call returns, and what it takes back is never done.
fn many_threads_flush(env: &Env) -> Outcome {
    const THREADS: usize = 16;
    const DUE: u64 = 60;
    const NEVER: u64 = 20;
    let rig = Rig::new(env)?;
    let rounds = env.scaled(50, 10);
    in_threads(0..THREADS, |_| {
        let [trigger, target] = [rig.counter()?, rig.counter()?];
        let works: Vec<_> = (0..DUE + NEVER)
            .map(|i| Work::add(&target, 1, &trigger, if i < DUE { 1 } else { 2 }))
            .collect();
        for _ in 0..rounds {
            queue_all(&rig.domain, &works)?;
            trigger.add(1)?;
            rig.domain.flush_work(Some(&trigger))?;
            check_eq!(target.read()?, DUE, "after the flush");
            trigger.add(1)?;
            trigger.set(0)?;
            check_eq!(target.read()?, DUE, "of what was taken back");
            target.set(0)?;
        }
        for counter in [trigger, target] {
            unshare(counter)?.close().map_err(|(_, error)| error)?;
        }
        Ok(())
    })?;
    rig.close()
}
