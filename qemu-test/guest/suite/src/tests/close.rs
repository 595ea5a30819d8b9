// SPDX-License-Identifier: GPL-2.0

//! Closing objects, in any order, at any time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use kfi::uapi::KFI_GETWAITOBJ;
use kfi::{
    bits, Caps, CntrAttr, CompletionQueue, Error, Form, KfiErrno, Kind, Operation, Session,
    WaitObj, Work,
};
use kfi_host::process::{self, Status};
use kfi_host::thread;
use rustix::io::Errno;
use rustix::process::Signal;

use crate::check::{Outcome, Stop};
use crate::ends::{Area, End, Pair, LONG};
use crate::env::Env;
use crate::rig::{
    expect_busy, expect_fabric, expect_os, in_threads, is_busy, pin, query, unshare, Rig, Waiter,
};
use crate::tests::deferred::queue_all;
use crate::tests::tagged::look;
use crate::{check, check_eq, tests};

tests! {
    "close" parallel;
    "case-71-busy-matrix" ["R-CLOSE-1 R-CLOSE-2 R-CLOSE-5 R-CLOSE-9"] busy_matrix;
    "case-71-every-dependent-counts" ["R-CLOSE-5"] every_dependent_counts;
    "case-71-info-is-independent" ["kfi_shim.h"] info_is_independent;
    "case-71-thread-inside-wait" ["R-CLOSE-2"] thread_inside_wait;
    alone "case-71-refused-close-is-not-felt" ["R-CLOSE-1"] refused_close_is_not_felt;
    alone "case-72-right-after-wait" ["R-CLOSE-3"] right_after_wait;
    "case-73-session-with-everything-open" ["R-CLOSE-8"] session_with_everything_open;
    "case-73-killed-with-everything-open" ["R-CLOSE-8"] killed_with_everything_open;
    "case-73-killed-in-any-moment" ["R-CLOSE-8"] killed_in_any_moment;
    "case-73-killed-while-works-fire" ["R-CLOSE-2 R-CLOSE-8"] killed_while_works_fire;
    alone "large-messages-matched" ["R-CLOSE-4 R-CLOSE-8"] large_messages_matched;
    alone "killed-with-large-messages-matched" ["R-CLOSE-8"] killed_with_large_messages;
    "closed-is-closed" ["kfi_shim.h"] closed_is_closed;
    "handles-are-not-reused" ["kfi_shim.h"] handles_are_not_reused;
    "open-and-close-again" ["R-CLOSE-1 R-CNTR-5"] open_and_close_again;
}

/// Closes an object that must let itself be closed.
macro_rules! close {
    ($object:expr) => {
        $object.close().map_err(|(_, error)| error)?
    };
}

fn busy_matrix(env: &Env) -> Outcome {
    let Rig {
        domain,
        fabric,
        info,
        session,
    } = Rig::new(env)?;
    let counter = domain.counter(&CntrAttr::new())?;
    counter.add(5)?;

    for _ in 0..3 {
        expect_busy(session.close_handle(fabric.handle()))?;
        expect_busy(session.close_handle(domain.handle()))?;
        // Nothing has happened by that.
        counter.add(1)?;
        close!(domain.counter(&CntrAttr::new())?);
    }
    check_eq!(counter.read()?, 8);
    close!(counter);
    expect_busy(session.close_handle(fabric.handle()))?;
    close!(domain);
    // A fabric that was refused before can be used again.
    close!(fabric.domain(&info, 0)?);
    close!(fabric);
    close!(info);
    Ok(())
}

fn every_dependent_counts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let second = rig.fabric.domain(&rig.info, 0)?;
    let mut counters = Vec::new();
    for i in 0..30 {
        let domain = if i % 3 == 0 { &second } else { &rig.domain };
        counters.push(domain.counter(&CntrAttr::new())?);
    }
    let (first, session) = (rig.domain.handle(), &rig.session);
    // The last one of each domain counts as much as the first.
    while let Some(counter) = counters.pop() {
        expect_busy(session.close_handle(second.handle()))?;
        if !counters.is_empty() {
            expect_busy(session.close_handle(first))?;
        }
        close!(counter);
        if counters.len() == 1 {
            break;
        }
    }
    // Only the first counter is left, in the second domain.
    close!(rig.domain);
    expect_busy(session.close_handle(second.handle()))?;
    expect_busy(session.close_handle(rig.fabric.handle()))?;
    close!(counters.remove(0));
    close!(second);
    close!(rig.fabric);
    Ok(())
}

fn info_is_independent(env: &Env) -> Outcome {
    let session = Session::open()?;
    let info = session.getinfo(&query(env))?;
    let fabric = info.fabric(0)?;
    // The answer is a copy: closing it while objects made from it are open.
    close!(info);
    let info = session.getinfo(&query(env))?;
    let domain = fabric.domain(&info, 0)?;
    close!(info);
    let counter = domain.counter(&CntrAttr::new())?;
    counter.add(1)?;
    check_eq!(counter.read()?, 1);
    close!(counter);
    close!(domain);
    close!(fabric);
    Ok(())
}

fn thread_inside_wait(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let waiters = [
        Waiter::asleep(&counter, 5, -1)?,
        Waiter::asleep(&counter, 6, 1_000_000)?,
    ];
    for _ in 0..3 {
        expect_busy(rig.session.close_handle(counter.handle()))?;
    }
    // The refusal is not felt by those who wait.
    for waiter in &waiters {
        check!(waiter.sleeps()?, "a refused close ends a wait");
    }
    counter.add(5)?;
    let [first, second] = waiters;
    first.join()?.expect_ok()?;
    expect_busy(rig.session.close_handle(counter.handle()))?;
    counter.add_err(1)?;
    second.join()?.expect(KfiErrno::EAVAIL)?;
    close!(unshare(counter)?);
    rig.close()
}

/// One thread asks again and again for what is refused, another one works on.
fn refused_close_is_not_felt(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let rounds = env.scaled(3_000, 500);
    let working = AtomicBool::new(true);

    let counts = in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        if thread == 0 {
            let mut refused = 0_u64;
            while working.load(Ordering::Relaxed) {
                expect_busy(rig.session.close_handle(rig.domain.handle()))?;
                expect_busy(rig.session.close_handle(rig.fabric.handle()))?;
                refused += 2;
            }
            return Ok(refused);
        }
        let work = || -> Outcome {
            for round in 0..rounds {
                // Uses of the domain, and of the fabric.
                if round % 16 == 0 {
                    close!(rig.fabric.domain(&rig.info, 0)?);
                }
                let result = rig.session.control(rig.domain.handle(), KFI_GETWAITOBJ, 0);
                expect_fabric(result, KfiErrno::ENOSYS)?;
                counter.add(1)?;
            }
            Ok(())
        };
        let result = work();
        working.store(false, Ordering::Relaxed);
        result.map(|()| rounds)
    })?;
    env.note(format!("{rounds} rounds, {} refused closes", counts[0]));
    check_eq!(counter.read()?, rounds);
    Ok(())
}

/// A thread that sees the counter reach its threshold closes it, while the one that
/// added may still be on the way out.
fn right_after_wait(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let rounds = env.scaled(3_000, 300);
    let (tx, rx) = std::sync::mpsc::sync_channel::<u32>(0);
    let session = rig.session.clone();

    let busy = std::thread::scope(|scope| {
        let updater = scope.spawn(move || -> Outcome {
            pin(0)?;
            for handle in rx {
                let mut argument = kfi::uapi::kfi_shim_cntr {
                    cntr: handle,
                    result: 0,
                    value: 1,
                };
                session.ioctl(kfi::uapi::request::CNTR_ADD, &mut argument)?;
                check_eq!(argument.result, 0);
            }
            Ok(())
        });
        pin(1)?;
        let mut busy = 0_u64;
        for round in 0..rounds {
            let wait_obj = if round % 2 == 0 {
                WaitObj::QUEUE
            } else {
                WaitObj::UNSPEC
            };
            let mut counter = rig.domain.counter(&CntrAttr::new().wait_obj(wait_obj))?;
            tx.send(counter.handle())?;
            counter.wait_ms(1, -1)?;
            // In use as long as the add has not returned, and no longer.
            loop {
                match counter.close() {
                    Ok(()) => break,
                    Err((back, error)) if is_busy(&error) => {
                        busy += 1;
                        counter = back;
                        thread::relax();
                    }
                    Err((_, error)) => return Err(Stop::from(error)),
                }
            }
        }
        drop(tx);
        updater
            .join()
            .map_err(|_| Stop::fail("the updater panicked"))??;
        Ok(busy)
    })?;
    env.note(format!("{rounds} rounds, {busy} times busy"));
    rig.close()
}

/// Everything that a session of this interface can hold, and threads that
/// sleep in it.
fn fill(env: &Env, waiters: u64) -> Result<Vec<Waiter>, Stop> {
    let rig = Rig::new(env)?;
    let second = rig.fabric.domain(&rig.info, 0)?;
    let other_fabric = rig.info.fabric(0)?;
    let mut sleeping = Vec::new();
    for i in 0..16 {
        let counter = rig.counter_with([WaitObj::UNSPEC, WaitObj::QUEUE][i % 2])?;
        counter.add(3)?;
        counter.add_err(1)?;
        if i == 1 {
            for threshold in 0..waiters {
                sleeping.push(Waiter::asleep(&counter, 100 + threshold, -1)?);
            }
        }
        if i % 2 == 1 {
            // Open as long as the process is.
            std::mem::forget(counter.wait_fd()?.into_fd());
        }
        std::mem::forget(counter);
        second.counter(&CntrAttr::new())?.into_handle();
    }
    second.into_handle();
    other_fabric.into_handle();
    rig.domain.into_handle();
    rig.fabric.into_handle();
    rig.info.into_handle();
    // Without waiters this is the last of the session, but for the
    // descriptors.
    Ok(sleeping)
}

/// A session like one that was cut off works, and nothing of that is in it.
fn works_again(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    check_eq!((counter.read()?, counter.read_err()?), (0, 0));
    counter.add(1)?;
    drop(counter);
    rig.close()
}

fn session_with_everything_open(env: &Env) -> Outcome {
    for _ in 0..env.scaled(20, 5) {
        // Objects are given up, then the file is closed.
        let rig = Rig::new(env)?;
        for _ in 0..8 {
            unshare(rig.counter()?)?.into_handle();
        }
        let Rig {
            domain,
            fabric,
            info,
            session,
        } = rig;
        domain.into_handle();
        fabric.into_handle();
        info.into_handle();
        drop(session);
        works_again(env)?;
    }
    Ok(())
}

fn killed_with_everything_open(env: &Env) -> Outcome {
    for waiters in [0, 1, 8] {
        let (reader, writer) = rustix::pipe::pipe()?;
        let mut child = process::fork(move || match fill(env, waiters) {
            Ok(_waiters) => {
                let _ = rustix::io::write(&writer, b"y");
                loop {
                    std::thread::park();
                }
            }
            Err(_) => 1,
        })?;
        let mut byte = [0];
        let count = rustix::io::read(&reader, &mut byte)?;
        check_eq!(count, 1, "what the child could open");
        child.kill(Signal::KILL)?;
        check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
        works_again(env)?;
    }
    Ok(())
}

/// Works that have fired and are yet to run when their session ends keep nothing open: the
/// kernel's log would tell of that.
fn killed_while_works_fire(env: &Env) -> Outcome {
    const WORKS: u64 = 1000;
    let rounds = env.scaled(20, 5);
    for round in 0..rounds {
        let mut child = process::fork(|| {
            let busy = || -> Outcome {
                let rig = Rig::new(env)?;
                let (trigger, target) = (rig.counter()?, rig.counter()?);
                for round in 0.. {
                    let works: Vec<_> = (0..WORKS)
                        .map(|_| Work::add(&target, 1, &trigger, round + 1))
                        .collect();
                    if queue_all(&rig.domain, &works).is_err() {
                        // As many as it may have.
                        break;
                    }
                    trigger.add(1)?;
                }
                loop {
                    std::thread::park();
                }
            };
            i32::from(busy().is_err())
        })?;
        std::thread::sleep(std::time::Duration::from_micros(
            2_000 + round * 1_379 % 30_000,
        ));
        child.kill(Signal::KILL)?;
        check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    }
    works_again(env)
}

fn killed_in_any_moment(env: &Env) -> Outcome {
    let rounds = env.scaled(60, 10);
    for round in 0..rounds {
        let mut child = process::fork(|| {
            let busy = || -> Outcome {
                let rig = Rig::new(env)?;
                let (ping, pong) = (rig.counter()?, rig.counter()?);
                std::thread::spawn({
                    let (ping, pong) = (ping.clone(), pong.clone());
                    move || {
                        let mut round = 0;
                        while ping.wait_ms(round, -1).is_ok() && pong.add(1).is_ok() {
                            round += 1;
                        }
                    }
                });
                for round in 1.. {
                    pong.wait_ms(round, -1)?;
                    ping.add(1)?;
                    let counter = rig.counter()?;
                    counter.wait_fd()?;
                    counter.add(1)?;
                    rig.info.fabric(0)?;
                }
                Ok(())
            };
            i32::from(busy().is_err())
        })?;
        std::thread::sleep(std::time::Duration::from_micros(200 + round * 379 % 9_000));
        child.kill(Signal::KILL)?;
        check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    }
    works_again(env)
}

/// Messages of [`post_large`]: not so many that the receiver makes some of them wait.
const LARGE: u64 = 60;

/// Messages of [`post_large`] that were copied meanwhile, as the sender and the receiver know.
struct Copied {
    sent: u64,
    received: u64,
}

/// Posts messages of a GiB from one end to the other, and receives for all of them: a work queue copies
/// them one after the other, from and to the same few MiB. All have been matched then.
fn post_large(pair: &Pair) -> Result<(Area, Copied), Stop> {
    const PIECES: usize = 256;
    const LAST: u64 = 1;
    let memory = Area::plain(&pair.session, 4 << 20)?;
    let pieces = vec![memory.all(); PIECES];
    for context in 0..LARGE {
        let send = pair.a.operation(Kind::TSEND, Form::V);
        pair.a.post(&send.segments(&pieces).context(context))?;
        let receive = Operation::new(Kind::TRECV, Form::V).segments(&pieces);
        pair.b.post(&receive.context(context))?;
    }
    // Messages arrive in order, by whatever way: one without a receive comes after those that have one.
    let last = pair.a.operation(Kind::TSEND, Form::PLAIN);
    let last = last.segment(memory.part(0, 1)).tag(LAST, 0).context(LARGE);
    pair.a.post(&last)?;
    let look = look(LAST, 0, bits::DISCARD).context(LARGE);
    pair.b.post(&look)?;
    let received = others_before(&pair.b.rx, || pair.b.post(&look))?;
    let sent = others_before(&pair.a.tx, || Err(Stop::fail("it was not sent")))?;
    Ok((memory, Copied { sent, received }))
}

/// Waits for the completion of the last message; returns how many others come before. Does something if that
/// has failed.
fn others_before(queue: &CompletionQueue, failed: impl Fn() -> Outcome) -> Result<u64, Stop> {
    let mut others = 0;
    loop {
        match queue.sread(1, Some(LONG)) {
            Ok(entries) if entries.iter().any(|entry| entry.op_context == LARGE) => {
                return Ok(others);
            }
            Ok(_) => others += 1,
            Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                check_eq!(queue.read_err()?.err, KfiErrno::ENOMSG.number());
                failed()?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Either side is closed while messages are queued that have been matched: they are not copied, and
/// complete with an error at the other side.
fn large_messages_matched(env: &Env) -> Outcome {
    for sender in [true, false] {
        let pair = Pair::new(env, Caps::TAGGED)?;
        let (memory, copied) = post_large(&pair)?;
        let Pair { a, b, far, rig } = pair;
        let (closed, other, copied) = if sender {
            (a, &b.rx, copied.received)
        } else {
            (b, &a.tx, copied.sent)
        };
        let End { ep, tx, rx, av, .. } = closed;
        ep.close().map_err(|(_, error)| error)?;
        let (mut good, mut failed) = (copied, 0);
        while good + failed < LARGE {
            match other.sread(1, Some(LONG)) {
                Ok(entries) => good += entries.len() as u64,
                Err(Error::Fabric(KfiErrno::EAVAIL)) => {
                    check_eq!(other.read_err()?.err, KfiErrno::EHOSTUNREACH.number());
                    failed += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        env.note(format!("{good} copied, {failed} ended"));
        check!(failed > LARGE / 2, "only {failed} were not copied");
        drop((tx, rx, av, memory));
        drop((far, rig));
    }
    works_again(env)
}

fn killed_with_large_messages(env: &Env) -> Outcome {
    let (reader, writer) = rustix::pipe::pipe()?;
    let mut child = process::fork(move || {
        let post = || {
            let pair = Pair::new(env, Caps::TAGGED)?;
            let memory = post_large(&pair)?;
            Ok::<_, Stop>((memory, pair))
        };
        match post() {
            Ok(_posted) => {
                let _ = rustix::io::write(&writer, b"y");
                loop {
                    std::thread::park();
                }
            }
            Err(_) => 1,
        }
    })?;
    let mut byte = [0];
    let count = rustix::io::read(&reader, &mut byte)?;
    check_eq!(count, 1, "what the child could post");
    child.kill(Signal::KILL)?;
    check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    works_again(env)
}

fn closed_is_closed(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let session = &rig.session;
    session.close_handle(counter.handle())?;
    expect_os(session.close_handle(counter.handle()), Errno::BADF)?;
    expect_os(counter.read(), Errno::BADF)?;
    expect_os(counter.add(1), Errno::BADF)?;
    expect_os(counter.wait_ms(0, 0), Errno::BADF)?;
    expect_os(counter.wait_fd(), Errno::BADF)?;
    expect_os(counter.ops_flags(), Errno::BADF)?;

    session.close_handle(rig.domain.handle())?;
    expect_os(rig.domain.counter(&CntrAttr::new()), Errno::BADF)?;
    session.close_handle(rig.fabric.handle())?;
    expect_os(rig.fabric.domain(&rig.info, 0), Errno::BADF)?;
    session.close_handle(rig.info.handle())?;
    expect_os(rig.info.fabric(0), Errno::BADF)?;
    expect_os(session.close_handle(rig.info.handle()), Errno::BADF)
}

fn handles_are_not_reused(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let mut seen = HashSet::from([
        0,
        rig.info.handle(),
        rig.fabric.handle(),
        rig.domain.handle(),
    ]);
    check_eq!(seen.len(), 4, "0 and three handles");
    for _ in 0..env.scaled(1_000, 200) {
        let counter = rig.counter()?;
        let handle = counter.handle();
        check!(seen.insert(handle), "handle {handle} was there before");
    }
    for _ in 0..20 {
        let info = rig.session.getinfo(&query(env))?;
        let handle = info.handle();
        check!(seen.insert(handle), "handle {handle} was there before");
    }
    Ok(())
}

fn open_and_close_again(env: &Env) -> Outcome {
    let session = Session::open()?;
    for round in 0..env.scaled(300, 30) {
        let rig = Rig::in_session(env, session.clone())?;
        let counter = rig.counter()?;
        check_eq!((counter.read()?, counter.read_err()?), (0, 0));
        counter.set(round)?;
        counter.set_err(!round)?;
        close!(Arc::into_inner(counter).ok_or(Error::Os(Errno::BUSY))?);
        rig.close()?;
    }
    Ok(())
}
