// SPDX-License-Identifier: GPL-2.0

//! Wait sets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kfi::{
    CntrAttr, Completion, CompletionError, CompletionQueue, Counter, CqAttr, Domain, EqAttr,
    EventQueue, KfiErrno, Session, WaitObj, WaitSet, WaitSetAttr,
};
use kfi_host::process::{self, Status};
use kfi_host::signal;
use rand::RngExt;
use rustix::process::Signal;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{expect_busy, expect_fabric, in_threads, pin, Rig};
use crate::sleeper::Sleeper;
use crate::{check, check_eq, tests};

tests! {
    "waitset" parallel;
    alone "case-62-two-queues" ["R-WAIT-1 R-WAIT-5 R-WAIT-6"] two_queues;
    "case-63-queue-is-a-level" ["R-WAIT-6"] queue_is_a_level;
    "case-63-counter-is-consumed" ["R-WAIT-6 R-WAIT-7"] counter_is_consumed;
    "case-63-timeouts" ["R-WAIT-5"] timeouts;
    "case-63-attributes" ["R-WAIT-2 R-WAIT-3 R-WAIT-4 R-CTL-8"] attributes;
    "case-63-joining" ["R-WAIT-10 R-CNTR-13 R-CNTR-14"] joining;
    "case-64-all-wake" ["R-WAIT-8"] all_wake;
    "case-64-another-thread-drains" ["R-WAIT-8"] another_thread_drains;
    "case-65-domains-of-one-fabric" ["R-WAIT-1 R-WAIT-10"] domains_of_one_fabric;
    "case-66-close" ["R-CLOSE-6"] close_;
    "case-66-close-while-waiting" ["R-CLOSE-6"] close_while_waiting;
    "case-66-member-closed-while-waiting" ["R-WAIT-9"] member_closed;
    alone "case-66-members-come-and-go" ["R-WAIT-9 R-WAIT-10"] members_come_and_go;
    "interrupted" ["R-WAIT-5"] interrupted;
    "session-with-everything-open" ["R-CLOSE-8"] session_with_everything_open;
    "killed-while-waiting" ["R-CLOSE-8"] killed_while_waiting;
}

/// A wait set with a wait queue.
pub fn open(rig: &Rig) -> Result<Arc<WaitSet>, Stop> {
    let attr = WaitSetAttr::new().wait_obj(WaitObj::QUEUE);
    Ok(Arc::new(rig.fabric.wait_set(&attr)?))
}

/// A completion queue that is a member.
pub fn cq_in(domain: &Domain, set: &WaitSet) -> kfi::Result<CompletionQueue> {
    let attr = CqAttr::new().wait_obj(WaitObj::SET).wait_set(set.handle());
    domain.completion_queue(&attr)
}

/// An event queue that is a member.
pub fn eq_in(rig: &Rig, set: &WaitSet) -> kfi::Result<EventQueue> {
    let attr = EqAttr::new().wait_obj(WaitObj::SET).wait_set(set.handle());
    rig.fabric.event_queue(&attr)
}

/// A counter that is a member.
pub fn counter_in(domain: &Domain, set: &WaitSet) -> kfi::Result<Counter> {
    let attr = CntrAttr::new()
        .wait_obj(WaitObj::SET)
        .wait_set(set.handle());
    domain.counter(&attr)
}

/// A completion that tells nothing but a context.
pub fn completion(op_context: u64) -> Completion {
    Completion {
        op_context,
        ..Completion::default()
    }
}

/// Takes all completions out.
pub fn drain(cq: &CompletionQueue) -> Result<Vec<u64>, Stop> {
    let mut contexts = Vec::new();
    loop {
        match cq.read(64) {
            Ok(entries) => contexts.extend(entries.iter().map(|entry| entry.op_context)),
            Err(kfi::Error::Fabric(KfiErrno::EAGAIN)) => return Ok(contexts),
            Err(error) => return Err(error.into()),
        }
    }
}

/// There is nothing to wait for.
fn is_idle(set: &WaitSet) -> Outcome {
    expect_fabric(set.wait_ms(0), KfiErrno::ETIMEDOUT)
}

fn two_queues(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let queues = [cq_in(&rig.domain, &set)?, cq_in(&rig.domain, &set)?];
    let read = rig.counter()?;
    let total = env.scaled(10_000, 500);

    let waits = in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        if thread == 0 {
            let mut rng = env.rng();
            let mut written = 0;
            while written < total {
                for _ in 0..rng.random_range(1..=3).min(total - written) {
                    written += 1;
                    queues[rng.random_range(0..2)].write(&completion(written))?;
                }
                if rng.random_ratio(3, 4) || written % 128 < 3 {
                    // Until the other has seen all and may be asleep.
                    read.wait_ms(written, -1)?;
                }
            }
            return Ok(0);
        }
        let (mut seen, mut waits) = (0, 0_u64);
        while seen < total {
            set.wait_ms(-1)?;
            waits += 1;
            let before = seen;
            for queue in &queues {
                seen += drain(queue)?.len() as u64;
            }
            if seen != before {
                read.add(seen - before)?;
            }
        }
        Ok(waits)
    })?;
    env.note(format!("{total} completions, {} waits", waits[1]));
    Ok(())
}

fn queue_is_a_level(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    is_idle(&set)?;
    let (one, two) = (cq_in(&rig.domain, &set)?, cq_in(&rig.domain, &set)?);
    let eq = eq_in(&rig, &set)?;
    is_idle(&set)?;

    one.write(&completion(1))?;
    two.write(&completion(2))?;
    for timeout in [0, 1, -1, i32::MAX, i32::MIN] {
        set.wait_ms(timeout)?;
    }
    check_eq!(drain(&one)?, [1]);
    set.wait_ms(-1)?;
    check_eq!(drain(&two)?, [2]);
    is_idle(&set)?;

    // An error is something to read as well.
    one.write_err(&CompletionError {
        err: 5,
        ..CompletionError::default()
    })?;
    set.wait_ms(-1)?;
    expect_fabric(one.read(1), KfiErrno::EAVAIL)?;
    set.wait_ms(-1)?;
    check_eq!(one.read_err()?.err, 5);
    is_idle(&set)?;

    eq.write(7, b"event")?;
    eq.write_err(&kfi::EventError {
        err: 6,
        ..kfi::EventError::default()
    })?;
    set.wait_ms(-1)?;
    eq.peek(16)?;
    set.wait_ms(-1)?;
    eq.read(16)?;
    set.wait_ms(-1)?;
    check_eq!(eq.read_err()?.err, 6);
    is_idle(&set)
}

type Change = fn(&Counter) -> kfi::Result<()>;

const CHANGES: [(&str, Change); 7] = [
    ("add", |c| c.add(1)),
    ("set up", |c| c.set(100)),
    ("set down", |c| c.set(0)),
    ("adderr", |c| c.add_err(2)),
    ("seterr up", |c| c.set_err(10)),
    ("seterr down", |c| c.set_err(1)),
    ("there and back", |c| {
        c.add(1).and_then(|()| c.add(u64::MAX))
    }),
];

fn counter_is_consumed(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let (one, two) = (
        counter_in(&rig.domain, &set)?,
        counter_in(&rig.domain, &set)?,
    );
    is_idle(&set)?;
    for (name, change) in CHANGES {
        for timeout in [0, -1] {
            change(&one)?;
            let (value, error) = (one.read()?, one.read_err()?);
            if timeout == 0 && name.starts_with("set") {
                // Setting a value to what it is may count as a change or not.
                let _ = set.wait_ms(0);
                one.set(value + 1)?;
                one.set_err(error + 1)?;
            } else if name.starts_with("set") {
                one.set(value + 2)?;
            }
            set.wait_ms(timeout)?;
            expect_fabric(set.wait_ms(1), KfiErrno::ETIMEDOUT)?;
        }
    }
    // Changes of both are told of at once.
    one.add(1)?;
    two.add_err(1)?;
    set.wait_ms(-1)?;
    is_idle(&set)?;
    // Reading values consumes nothing.
    two.add(1)?;
    check_eq!((two.read()?, two.read_err()?), (1, 1));
    set.wait_ms(-1)?;
    is_idle(&set)
}

fn timeouts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let cq = cq_in(&rig.domain, &set)?;
    for timeout in [0, 1, 20, 50] {
        let start = Instant::now();
        expect_fabric(set.wait_ms(timeout), KfiErrno::ETIMEDOUT)?;
        let (took, least) = (start.elapsed(), Duration::from_millis(timeout as u64));
        check!(took >= least, "{timeout} ms have passed after {took:?}");
    }
    for timeout in [-1, i32::MIN, i32::MAX, 1_000_000] {
        let waiter = Sleeper::asleep({
            let set = set.clone();
            move || set.wait_ms(timeout)
        })?;
        cq.write(&completion(1))?;
        waiter.join()?.0?;
        drain(&cq)?;
        is_idle(&set)?;
    }
    Ok(())
}

fn attributes(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let fabric = &rig.fabric;
    let open = |attr: WaitSetAttr| fabric.wait_set(&attr);
    expect_fabric(open(WaitSetAttr::null()), KfiErrno::EINVAL)?;
    for wait_obj in [WaitObj::UNSPEC, WaitObj::QUEUE] {
        let attr = WaitSetAttr::new().wait_obj(wait_obj);
        let set = open(attr)?;
        check_eq!(set.wait_obj()?, WaitObj::QUEUE, "wait object of {wait_obj}");
        for bit in 0..64 {
            expect_fabric(open(attr.flags(1 << bit)), KfiErrno::EINVAL)?;
        }
        set.close().map_err(|(_, error)| error)?;
    }
    let others = [WaitObj::NONE, WaitObj::SET];
    let unknown = [4, 5, 100, 0x8000_0000, u32::MAX].map(WaitObj);
    for wait_obj in others.into_iter().chain(unknown) {
        let attr = WaitSetAttr::new().wait_obj(wait_obj);
        expect_fabric(open(attr), KfiErrno::EINVAL)?;
    }
    rig.close()
}

fn joining(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let counter = rig.counter()?;
    let wrong = [
        0,
        rig.fabric.handle(),
        rig.domain.handle(),
        counter.handle(),
    ];
    for handle in wrong {
        let cq = CqAttr::new().wait_obj(WaitObj::SET).wait_set(handle);
        expect_fabric(rig.domain.completion_queue(&cq), KfiErrno::EINVAL)?;
        let eq = EqAttr::new().wait_obj(WaitObj::SET).wait_set(handle);
        expect_fabric(rig.fabric.event_queue(&eq), KfiErrno::EINVAL)?;
        let cntr = CntrAttr::new().wait_obj(WaitObj::SET).wait_set(handle);
        expect_fabric(rig.domain.counter(&cntr), KfiErrno::EINVAL)?;
    }
    // Without being asked for, the set is none of their business.
    let attr = CqAttr::new()
        .wait_obj(WaitObj::QUEUE)
        .wait_set(set.handle());
    let cq = rig.domain.completion_queue(&attr)?;
    cq.write(&completion(1))?;
    is_idle(&set)?;
    let set = Arc::into_inner(set).ok_or_else(|| Stop::fail("the set is shared"))?;
    set.close().map_err(|(_, error)| error)?;

    // A member is waited for through its set only.
    let set = self::open(&rig)?;
    let cq = cq_in(&rig.domain, &set)?;
    let eq = eq_in(&rig, &set)?;
    let counter = counter_in(&rig.domain, &set)?;
    expect_fabric(cq.sread_ms(1, 0), KfiErrno::EINVAL)?;
    expect_fabric(eq.sread_ms(1, 0), KfiErrno::EINVAL)?;
    expect_fabric(counter.wait_ms(1, 0), KfiErrno::EINVAL)?;
    check_eq!(cq.wait_obj()?, WaitObj::SET);
    check_eq!(eq.wait_obj()?, WaitObj::SET);
    check_eq!(counter.wait_obj()?, WaitObj::SET);
    Ok(())
}

/// Some threads that wait without end.
fn waiters(set: &Arc<WaitSet>, count: usize) -> Result<Vec<Sleeper<kfi::Result<()>>>, Stop> {
    (0..count)
        .map(|_| {
            let set = set.clone();
            Sleeper::asleep(move || set.wait_ms(-1))
        })
        .collect()
}

fn all_wake(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let cq = cq_in(&rig.domain, &set)?;
    let eq = eq_in(&rig, &set)?;
    let counter = counter_in(&rig.domain, &set)?;
    let events: [(&str, &dyn Fn() -> Outcome); 4] = [
        ("a completion", &|| Ok(cq.write(&completion(1))?)),
        ("an event", &|| Ok(eq.write(7, &[]).map(drop)?)),
        ("a change", &|| Ok(counter.add(1)?)),
        ("an error", &|| Ok(counter.add_err(1)?)),
    ];
    for (name, event) in events {
        let all = waiters(&set, 8)?;
        event()?;
        for waiter in all {
            let (result, _) = waiter.join()?;
            check_eq!(result, Ok(()), "a wait for {name}");
        }
        drain(&cq)?;
        let _ = eq.read(1);
        is_idle(&set)?;
    }
    Ok(())
}

fn another_thread_drains(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let cq = Arc::new(cq_in(&rig.domain, &set)?);
    let rounds = env.scaled(150, 30);
    for round in 0..rounds {
        // The first to wake takes it all; the others must not sleep on.
        let all = (0..3)
            .map(|_| {
                let (set, cq) = (set.clone(), cq.clone());
                Sleeper::asleep(move || set.wait_ms(-1).map(|()| cq.read(8).is_ok()))
            })
            .collect::<Result<Vec<_>, _>>()?;
        cq.write(&completion(round))?;
        let mut taken = 0;
        for waiter in all {
            taken += usize::from(waiter.join()?.0?);
        }
        check_eq!(taken, 1, "threads that have read the completion");
    }
    Ok(())
}

fn domains_of_one_fabric(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let second = rig.fabric.domain(&rig.info, 0)?;
    let set = open(&rig)?;
    for domain in [&rig.domain, &second, &rig.domain] {
        let cq = cq_in(domain, &set)?;
        let counter = counter_in(domain, &set)?;
        let all = waiters(&set, 2)?;
        cq.write(&completion(1))?;
        for waiter in all {
            waiter.join()?.0?;
        }
        drain(&cq)?;
        let all = waiters(&set, 2)?;
        counter.add(1)?;
        for waiter in all {
            waiter.join()?.0?;
        }
        is_idle(&set)?;
    }
    // But not of another fabric.
    let other = rig.info.fabric(0)?;
    let attr = WaitSetAttr::new().wait_obj(WaitObj::QUEUE);
    let foreign = other.wait_set(&attr)?;
    expect_fabric(cq_in(&rig.domain, &foreign), KfiErrno::EINVAL)?;
    expect_fabric(counter_in(&rig.domain, &foreign), KfiErrno::EINVAL)?;
    expect_fabric(eq_in(&rig, &foreign), KfiErrno::EINVAL)?;
    foreign.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn close_(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let cq = cq_in(&rig.domain, &set)?;
    let eq = eq_in(&rig, &set)?;
    let counter = counter_in(&rig.domain, &set)?;
    let handle = set.handle();
    let busy = || expect_busy(rig.session.close_handle(handle));

    cq.write(&completion(1))?;
    busy()?;
    expect_busy(rig.session.close_handle(rig.fabric.handle()))?;
    // A close that is refused has no effect.
    set.wait_ms(-1)?;
    counter.add(1)?;
    counter.close().map_err(|(_, error)| error)?;
    busy()?;
    cq.close().map_err(|(_, error)| error)?;
    busy()?;
    // A queue that has gone with an entry in it leaves nothing to be told, apart from
    // changes that have been.
    let _ = set.wait_ms(0);
    is_idle(&set)?;
    eq.close().map_err(|(_, error)| error)?;
    let set = Arc::into_inner(set).ok_or_else(|| Stop::fail("the set is shared"))?;
    set.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn close_while_waiting(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let all = waiters(&set, 2)?;
    for _ in 0..3 {
        expect_busy(rig.session.close_handle(set.handle()))?;
    }
    for waiter in &all {
        check!(waiter.sleeps()?, "a refused close ends a wait");
    }
    let counter = counter_in(&rig.domain, &set)?;
    counter.add(1)?;
    for waiter in all {
        waiter.join()?.0?;
    }
    drop(counter);
    let set = Arc::into_inner(set).ok_or_else(|| Stop::fail("the set is shared"))?;
    set.close().map_err(|(_, error)| error)?;
    rig.close()
}

fn member_closed(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let cq = cq_in(&rig.domain, &set)?;
    let eq = eq_in(&rig, &set)?;
    let counter = counter_in(&rig.domain, &set)?;
    let last = cq_in(&rig.domain, &set)?;
    let all = waiters(&set, 4)?;
    cq.close().map_err(|(_, error)| error)?;
    eq.close().map_err(|(_, error)| error)?;
    counter.close().map_err(|(_, error)| error)?;
    for waiter in &all {
        check!(waiter.sleeps()?, "closing a member ends a wait");
    }
    last.write(&completion(1))?;
    for waiter in all {
        waiter.join()?.0?;
    }
    Ok(())
}

/// Members are opened and closed, empty and not, while threads wait.
fn members_come_and_go(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let end = rig.counter()?;
    let rounds = env.scaled(300, 100);
    let waits = in_threads([0_usize, 1, 2], |thread| {
        pin(thread)?;
        if thread == 0 {
            let mut rng = env.rng();
            for _ in 0..rounds {
                let cq = cq_in(&rig.domain, &set)?;
                let counter = counter_in(&rig.domain, &set)?;
                if rng.random() {
                    cq.write(&completion(1))?;
                }
                counter.add(1)?;
                if rng.random() {
                    drain(&cq)?;
                }
            }
            end.add(1)?;
            return Ok(0);
        }
        let mut waits = 0;
        while end.read()? == 0 {
            match set.wait_ms(1) {
                Ok(()) => waits += 1,
                result => expect_fabric(result, KfiErrno::ETIMEDOUT)?,
            }
        }
        Ok(waits)
    })?;
    env.note(format!("{rounds} rounds, {waits:?} waits"));
    let _ = set.wait_ms(0);
    is_idle(&set)
}

fn interrupted(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let set = open(&rig)?;
    let counter = counter_in(&rig.domain, &set)?;
    signal::count(Signal::USR1, true)?;
    for timeout in [-1, 1_000_000] {
        let wait = {
            let set = set.clone();
            move || set.wait_ms(timeout)
        };
        let waiter = Sleeper::asleep(wait)?;
        signal::send_to_thread(waiter.tid(), Signal::USR1)?;
        expect_fabric(waiter.join()?.0, KfiErrno::EINTR)?;
    }
    // Nothing is lost or left by that.
    is_idle(&set)?;
    counter.add(1)?;
    set.wait_ms(-1)?;
    Ok(())
}

/// A set with members, all of which are left to the session.
fn leave(rig: Rig) -> Result<(Arc<WaitSet>, Session), Stop> {
    let set = open(&rig)?;
    for _ in 0..20 {
        let cq = cq_in(&rig.domain, &set)?;
        cq.write(&completion(1))?;
        cq.into_handle();
        let eq = eq_in(&rig, &set)?;
        eq.write(7, b"1")?;
        eq.into_handle();
        let counter = counter_in(&rig.domain, &set)?;
        counter.add(1)?;
        counter.into_handle();
    }
    rig.domain.into_handle();
    rig.fabric.into_handle();
    rig.info.into_handle();
    Ok((set, rig.session))
}

fn session_with_everything_open(env: &Env) -> Outcome {
    for _ in 0..3 {
        let (set, session) = leave(Rig::new(env)?)?;
        let set = Arc::into_inner(set).ok_or_else(|| Stop::fail("the set is shared"))?;
        set.into_handle();
        drop(session);
    }
    Rig::new(env)?.close()
}

fn killed_while_waiting(env: &Env) -> Outcome {
    for timeout in [-1, i32::MAX] {
        let mut child = process::fork(|| {
            let wait = || -> Outcome {
                let rig = Rig::new(env)?;
                let set = open(&rig)?;
                let _members = (
                    cq_in(&rig.domain, &set)?,
                    eq_in(&rig, &set)?,
                    counter_in(&rig.domain, &set)?,
                );
                Ok(set.wait_ms(timeout)?)
            };
            i32::from(wait().is_err())
        })?;
        let pid = child.pid();
        check!(
            kfi_host::thread::until_asleep(pid, pid)?,
            "the child does not sleep"
        );
        child.kill(Signal::KILL)?;
        check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    }
    Rig::new(env)?.close()
}
