// SPDX-License-Identifier: GPL-2.0

//! Works that are queued, fired and released in ways that nobody needs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, PoisonError};
use std::thread;

use kfi::uapi::request;
use kfi::{bits, uapi, BufferKind, Error, Form, KfiErrno, Kind, OpType, Operation, Work, WorkId};
use rustix::io::Errno;
use zerocopy::FromZeros;

use super::pair;
use crate::check::{Outcome, Stop};
use crate::ends::{complete, Pair};
use crate::env::Env;
use crate::rig::{expect_fabric, expect_os, Rig};
use crate::{check, check_eq};

/// A receive, to be queued once a counter is at 1.
fn receive_work(pair: &Pair, buffer: &kfi::Buffer, trigger: &kfi::Counter) -> Work {
    let receive = Operation::new(Kind::RECV, Form::MSG)
        .segment(buffer.all())
        .flags(bits::COMPLETION)
        .context(77);
    Work::transfer(OpType::RECV, pair.a.ep.handle(), &receive, trigger, 1)
}

/// A receive that was posted by a work uses its memory, whatever becomes of the work when it is
/// queued once more.
pub(super) fn fired_work(env: &Env) -> Outcome {
    let pair = pair(env)?;
    let counter = pair.rig.counter()?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    let work = receive_work(&pair, &buffer, &counter);
    let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
    let id: WorkId = pair.domain.queue_work(&work)?;
    counter.set(1)?;
    pair.session.requeue_work(id)?;
    // It is posted. Once more it waits, and that can be taken back.
    counter.set(0)?;
    pair.session.requeue_work(id)?;
    pair.domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE)?;
    // But the first one is still there.
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    let stale = pair.domain.cancel_work(id, uapi::KFI_SHIM_WORK_STALE);
    expect_os(stale, Errno::BUSY)?;
    drop(buffer);
    let from = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    from.fill(0x5a);
    pair.b.send(from.segment(0..1 << 20), 1)?;
    let entry = complete(&pair.a.rx)?;
    check_eq!((entry.op_context, entry.len), (77, 1 << 20));
    complete(&pair.b.tx)?;
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    drop((from, counter));
    pair.close()
}

/// A work that was queued twice and cancelled once is not pending.
pub(super) fn queued_twice(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (trigger, target) = (rig.counter()?, rig.counter()?);
    let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
    rig.domain.cancel_work(id, 0)?;
    expect_fabric(rig.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    // Queued once and cancelled, it is nobody's any more.
    rig.session.release_work(id)?;
    expect_os(rig.session.release_work(id), Errno::BADF)?;

    // Its domain need not be named, but may not be another one; and it has the flags with which it was made.
    let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
    rig.domain.cancel_work(id, 0)?;
    let other = rig.fabric.domain(&rig.info, 0)?;
    for (domain, flags, errno) in [
        (rig.domain.handle(), 0, None),
        (other.handle(), 0, Some(Errno::INVAL)),
        (0, uapi::KFI_SHIM_WORK_PREPARE, Some(Errno::INVAL)),
    ] {
        let mut argument = uapi::kfi_shim_work {
            id,
            domain,
            flags,
            ..FromZeros::new_zeroed()
        };
        let queued = rig.session.ioctl(request::QUEUE_WORK, &mut argument);
        check_eq!(queued.err(), errno);
        match errno {
            None => rig.domain.cancel_work(id, 0)?,
            Some(_) => expect_fabric(rig.domain.cancel_work(id, 0), KfiErrno::ENOENT)?,
        }
    }
    rig.session.release_work(id)?;
    drop(other);

    let id = rig.domain.queue_work(&Work::add(&target, 1, &trigger, 5))?;
    rig.session.requeue_work(id)?;
    trigger.add(5)?;
    expect_fabric(rig.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    target.wait_ms(2, 20_000)?;
    trigger.set(0)?;
    rig.session.requeue_work(id)?;
    expect_os(rig.session.release_work(id), Errno::BUSY)?;
    // Operations on counters have ended that are not pending any more.
    rig.domain.cancel_work(id, uapi::KFI_SHIM_WORK_RELEASE)?;
    expect_os(rig.session.release_work(id), Errno::BADF)?;
    check_eq!(target.read()?, 2);
    drop((trigger, target));
    rig.close()
}

/// A work is released as soon as it is certain that nobody needs it.
pub(super) fn ended_work(env: &Env) -> Outcome {
    let pair = pair(env)?;
    let (trigger, target) = (pair.rig.counter()?, pair.rig.counter()?);
    let add = Work::add(&target, 1, &trigger, 1);
    let id = pair.domain.queue_work(&add)?;
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    trigger.add(1)?;
    target.wait_ms(1, 20_000)?;
    // It has fired: there is nothing to be cancelled, and nothing that goes on.
    expect_fabric(pair.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    pair.session.release_work(id)?;
    // The same by a flush, of those that wait and those that do not.
    let (fired, waits) = (
        pair.domain.queue_work(&add)?,
        pair.domain
            .queue_work(&Work::add(&target, 1, &trigger, 9))?,
    );
    target.wait_ms(2, 20_000)?;
    pair.domain.flush_work(None)?;
    pair.session.release_work(fired)?;
    pair.session.release_work(waits)?;
    // Receives that were posted may be used until the endpoint is closed, and then no more.
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 1 << 20)?;
    let id = pair
        .domain
        .queue_work(&receive_work(&pair, &buffer, &trigger))?;
    expect_fabric(pair.domain.cancel_work(id, 0), KfiErrno::ENOENT)?;
    pair.domain.flush_work(None)?;
    expect_os(pair.session.release_work(id), Errno::BUSY)?;
    let Pair { a, b, far, rig } = pair;
    drop(a);
    rig.session.release_work(id)?;
    expect_os(rig.session.release_work(id), Errno::BADF)?;
    drop((b, buffer, trigger, target));
    far.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// Flags of the operation of a work that nobody knows yet are refused, and no work is made.
pub(super) fn unknown_flags(env: &Env) -> Outcome {
    let pair = pair(env)?;
    let counter = pair.rig.counter()?;
    let buffer = pair.session.buffer(BufferKind::VMALLOC, 4096)?;
    let work = receive_work(&pair, &buffer, &counter);
    let work = work.shim_flags(uapi::KFI_SHIM_WORK_PREPARE);
    let before = pair.domain.queue_work(&work)?;
    let made = |shim_flags: u32, reserved: u32| {
        let op = uapi::kfi_shim_op {
            ep: pair.a.ep.handle(),
            form: uapi::KFI_SHIM_FORM_MSG,
            shim_flags,
            reserved,
            addr: u64::MAX,
            ..FromZeros::new_zeroed()
        };
        let mut argument = uapi::kfi_shim_work {
            domain: pair.domain.handle(),
            flags: uapi::KFI_SHIM_WORK_PREPARE,
            op: std::ptr::from_ref(&op) as u64,
            op_size: size_of_val(&op) as u32,
            op_type: uapi::KFI_OP_RECV,
            triggering_cntr: counter.handle(),
            threshold: 1,
            ..FromZeros::new_zeroed()
        };
        let made = pair.session.ioctl(request::QUEUE_WORK, &mut argument);
        made.map(|()| argument.id)
    };
    for flag in (0..32).map(|bit| 1 << bit) {
        if flag != uapi::KFI_SHIM_OP_TRIGGERED {
            check_eq!(made(flag, 0), Err(Errno::INVAL), "flag {flag:#x}");
        }
        check_eq!(made(0, flag), Err(Errno::INVAL), "reserved {flag:#x}");
    }
    // The condition is that of the work.
    for flags in [0, uapi::KFI_SHIM_OP_TRIGGERED] {
        let id = made(flags, 0)?;
        check!(id > before, "work {id} after {before}");
        pair.session.release_work(id)?;
    }
    check_eq!(pair.domain.queue_work(&work)?, before + 3);
    drop((buffer, counter));
    pair.close()
}

/// A work that is released is not queued by somebody who has just begun to.
pub(super) fn released_beside_queueing(env: &Env) -> Outcome {
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
