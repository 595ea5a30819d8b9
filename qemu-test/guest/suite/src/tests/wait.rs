// SPDX-License-Identifier: GPL-2.0

//! `kfi_cntr_wait`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kfi::{CntrAttr, Counter, KfiErrno, WaitObj};
use kfi_host::process::{self, Status};
use kfi_host::{signal, thread};
use rustix::process::Signal;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, pin, unshare, until, Rig, Waiter};
use crate::{check, check_eq, tests};

tests! {
    "wait" parallel;
    "case-09-satisfied-at-entry" ["R-CNTR-30 R-CNTR-34"] satisfied_at_entry;
    "case-09-satisfied-with-error-pending" ["R-CNTR-30"] satisfied_with_error;
    "case-09-zero-timeout-does-not-sleep" ["R-CNTR-34"] zero_timeout;
    "case-10-never-early" ["R-CNTR-35"] never_early;
    "case-10-longest-timeout" ["R-CNTR-35"] longest_timeout;
    "case-10-negative-is-endless" ["R-CNTR-33"] negative_is_endless;
    "case-11-woken-by-add" ["R-CNTR-30 R-CNTR-36"] woken_by_add;
    "case-11-woken-by-set" ["R-CNTR-19 R-CNTR-30"] woken_by_set;
    "case-11-not-woken-below" ["R-CNTR-30"] not_woken_below;
    "case-11-every-wait-object" ["R-CNTR-12 R-CNTR-15 R-CNTR-8"] every_wait_object;
    "case-11-wide-threshold" ["R-CNTR-4"] wide_threshold;
    "case-12-error-add" ["R-CNTR-31"] error_add;
    "case-12-error-set-up" ["R-CNTR-31"] error_set_up;
    "case-12-error-set-down" ["R-CNTR-31"] error_set_down;
    "case-12-error-there-and-back" ["R-CNTR-31"] error_there_and_back;
    "case-12-error-set-same" ["R-CNTR-31"] error_set_same;
    "case-12-error-before-entry" ["R-CNTR-31 R-CNTR-32"] error_before_entry;
    "case-12-error-wakes-all" ["R-CNTR-31"] error_wakes_all;
    "case-12-threshold-wins" ["R-CNTR-30 R-CNTR-31"] threshold_wins;
    "case-13-timeout-changes-nothing" ["R-CNTR-32"] timeout_changes_nothing;
    "case-14-one-add-wakes-eight" ["R-CNTR-36"] one_add_wakes_eight;
    "case-14-each-at-its-own" ["R-CNTR-36"] each_at_its_own;
    "case-14-equal-thresholds" ["R-CNTR-36"] equal_thresholds;
    "case-15-ping-pong" ["R-CNTR-36"] ping_pong;
    alone "case-15-timeout-race" ["R-CNTR-30 R-CNTR-36"] timeout_race;
    "case-16-signal" ["R-CNTR-38"] signal_interrupts;
    "case-16-kill" ["R-CNTR-38 R-CLOSE-8"] kill;
    "case-17-none" ["R-CNTR-11"] none;
    "case-18-set-back-after-crossing" ["R-CNTR-37"] set_back;
}

const ENDLESS: i32 = -1;

fn satisfied_at_entry(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    for timeout in [0, 1, 1000, i32::MAX, -1, i32::MIN] {
        check_eq!(counter.wait_ms(0, timeout), Ok(()), "0 of 0, {timeout} ms");
    }
    counter.set(10)?;
    for timeout in [0, 1, 1000, i32::MAX, -1, i32::MIN] {
        for threshold in [0, 1, 9, 10] {
            let result = counter.wait_ms(threshold, timeout);
            check_eq!(result, Ok(()), "{threshold} of 10, {timeout} ms");
        }
    }
    check_eq!(counter.read()?, 10, "the value after waits");
    Ok(())
}

fn satisfied_with_error(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.add_err(4)?;
    counter.add(2)?;
    counter.add_err(1)?;
    for timeout in [0, 1000, ENDLESS] {
        check_eq!(counter.wait_ms(2, timeout), Ok(()), "{timeout} ms");
    }
    check_eq!(counter.read_err()?, 5);
    Ok(())
}

fn zero_timeout(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(4)?;
    // A thread that never sleeps is never switched out of its own will.
    let before = voluntary_switches()?;
    for _ in 0..1000 {
        expect_fabric(counter.wait_ms(5, 0), KfiErrno::ETIMEDOUT)?;
    }
    let switches = voluntary_switches()? - before;
    check!(switches < 100, "1000 calls have slept {switches} times");
    check_eq!(counter.read()?, 4);
    Ok(())
}

fn voluntary_switches() -> Result<u64, Stop> {
    thread::voluntary_switches(thread::id())?
        .ok_or_else(|| Stop::Skip("the kernel does not count sleeps".to_owned()))
}

fn never_early(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(4)?;
    // Each on its own first, then all at once on one counter.
    for timeout in [1, 2, 3, 10, 50] {
        let late = timed_out(&counter, timeout)?;
        env.note(format!("{timeout} ms: {late:?} late"));
    }
    let timeouts = [1, 7, 50, 50, 51, 200, 999, 2999];
    let late = in_threads(timeouts, |timeout| timed_out(&counter, timeout))?;
    for (timeout, late) in timeouts.iter().zip(late) {
        env.note(format!("{timeout} ms beside others: {late:?} late"));
    }
    check_eq!(counter.read()?, 4);
    Ok(())
}

/// Waits in vain, and says how late the answer came.
fn timed_out(counter: &Counter, timeout: i32) -> Result<Duration, Stop> {
    let least = Duration::from_millis(u64::from(timeout.unsigned_abs()));
    // Instant is CLOCK_MONOTONIC.
    let start = Instant::now();
    let result = counter.wait_ms(5, timeout);
    let took = start.elapsed();
    expect_fabric(result, KfiErrno::ETIMEDOUT)?;
    took.checked_sub(least)
        .ok_or_else(|| Stop::fail(format!("a timeout of {timeout} ms was over after {took:?}")))
}

fn longest_timeout(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let waiters = [i32::MAX, i32::MAX - 1, i32::MAX / 2, 1 << 24]
        .map(|timeout| Waiter::asleep(&counter, 3, timeout));
    // A timeout that overflowed would be over by now, or soon.
    std::thread::sleep(Duration::from_millis(50));
    for waiter in waiters.iter().flatten() {
        check!(
            waiter.sleeps()?,
            "a waiter with a long timeout has returned"
        );
    }
    counter.add(3)?;
    for waiter in waiters {
        waiter?.join()?.expect_ok()?;
    }
    Ok(())
}

fn negative_is_endless(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let waiters =
        [-1, -2, -1000, i32::MIN + 1, i32::MIN].map(|timeout| Waiter::asleep(&counter, 3, timeout));
    std::thread::sleep(Duration::from_millis(50));
    for waiter in waiters.iter().flatten() {
        check!(waiter.sleeps()?, "a waiter without timeout has returned");
    }
    counter.add(3)?;
    for waiter in waiters {
        waiter?.join()?.expect_ok()?;
    }
    Ok(())
}

fn woken_by_add(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let waiter = Waiter::asleep(&counter, 3, ENDLESS)?;
    counter.add(3)?;
    waiter.join()?.expect_ok()?;
    // By more than enough, with a timeout that would be long.
    let waiter = Waiter::asleep(&counter, 10, 1_000_000)?;
    counter.add(100)?;
    waiter.join()?.expect_ok()?;
    // In single steps.
    let waiter = Waiter::asleep(&counter, 113, ENDLESS)?;
    for _ in 0..9 {
        counter.add(1)?;
    }
    check!(waiter.sleeps()?, "112 has woken the waiter for 113");
    counter.add(1)?;
    waiter.join()?.expect_ok()?;
    check_eq!(counter.read()?, 113);
    Ok(())
}

fn woken_by_set(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let waiter = Waiter::asleep(&counter, 3, ENDLESS)?;
    counter.set(3)?;
    waiter.join()?.expect_ok()?;
    let waiter = Waiter::asleep(&counter, 4, ENDLESS)?;
    counter.set(u64::MAX)?;
    waiter.join()?.expect_ok()
}

fn not_woken_below(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(5)?;
    let waiter = Waiter::asleep(&counter, 10, ENDLESS)?;
    counter.add(4)?;
    check!(waiter.sleeps()?, "9 is enough for 10");
    counter.set(0)?;
    check!(waiter.sleeps()?, "0 is enough for 10");
    counter.add(0)?;
    check!(waiter.sleeps()?, "add(0) ends a wait");
    counter.set(9)?;
    check!(waiter.sleeps()?, "9 is enough for 10, if it is set");
    // Around the end of the numbers.
    counter.add(u64::MAX)?;
    check!(waiter.sleeps()?, "8 is enough for 10, coming from above");
    counter.add(2)?;
    waiter.join()?.expect_ok()
}

fn every_wait_object(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let unspec = CntrAttr::new().wait_obj(WaitObj::UNSPEC);
    let queue = CntrAttr::new().wait_obj(WaitObj::QUEUE);
    for attr in [unspec, queue, CntrAttr::null()] {
        let counter = Arc::new(rig.domain.counter(&attr)?);
        let waiter = Waiter::asleep(&counter, 2, ENDLESS)?;
        counter.add(1)?;
        check!(waiter.sleeps()?, "1 is enough for 2");
        counter.add(1)?;
        waiter.join()?.expect_ok()?;
        expect_fabric(counter.wait_ms(3, 2), KfiErrno::ETIMEDOUT)?;
        let waiter = Waiter::asleep(&counter, 3, ENDLESS)?;
        counter.add_err(1)?;
        waiter.join()?.expect(KfiErrno::EAVAIL)?;
    }
    Ok(())
}

fn wide_threshold(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let over_32 = Waiter::asleep(&counter, 0x1_0000_0000, ENDLESS)?;
    let over_63 = Waiter::asleep(&counter, 0x8000_0000_0000_0000, ENDLESS)?;
    let last = Waiter::asleep(&counter, u64::MAX, ENDLESS)?;
    counter.add(0xffff_ffff)?;
    check!(over_32.sleeps()?, "2^32 - 1 is enough for 2^32");
    counter.add(1)?;
    over_32.join()?.expect_ok()?;
    check!(over_63.sleeps()?, "2^32 is enough for 2^63");
    counter.set(0x7fff_ffff_ffff_ffff)?;
    check!(over_63.sleeps()?, "2^63 - 1 is enough for 2^63");
    counter.add(1)?;
    over_63.join()?.expect_ok()?;
    check!(last.sleeps()?, "2^63 is enough for 2^64 - 1");
    counter.add(0x7fff_ffff_ffff_ffff)?;
    last.join()?.expect_ok()
}

fn error_add(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(2)?;
    let waiter = Waiter::asleep(&counter, 10, ENDLESS)?;
    counter.add_err(1)?;
    waiter.join()?.expect(KfiErrno::EAVAIL)?;
    check_eq!((counter.read()?, counter.read_err()?), (2, 1));
    // Again, with an error value that is not 0, and a timeout.
    let waiter = Waiter::asleep(&counter, 10, 1_000_000)?;
    counter.add_err(u64::MAX)?;
    waiter.join()?.expect(KfiErrno::EAVAIL)?;
    check_eq!((counter.read()?, counter.read_err()?), (2, 0));
    Ok(())
}

fn error_set_up(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let waiter = Waiter::asleep(&counter, 10, ENDLESS)?;
    counter.set_err(5)?;
    waiter.join()?.expect(KfiErrno::EAVAIL)
}

fn error_set_down(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    for to in [2, 0] {
        counter.set_err(5)?;
        let waiter = Waiter::asleep(&counter, 10, ENDLESS)?;
        counter.set_err(to)?;
        waiter.join()?.expect(KfiErrno::EAVAIL)?;
        check_eq!(counter.read_err()?, to);
    }
    Ok(())
}

fn error_there_and_back(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set_err(5)?;
    for _ in 0..env.scaled(200, 20) {
        // The waiter will hardly run before the old value is back.
        let waiter = Waiter::asleep(&counter, 10, ENDLESS)?;
        counter.add_err(1)?;
        counter.set_err(5)?;
        waiter.join()?.expect(KfiErrno::EAVAIL)?;
    }
    Ok(())
}

fn error_set_same(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    for value in [0, 5] {
        counter.set_err(value)?;
        let waiter = Waiter::asleep(&counter, counter.read()? + 1, ENDLESS)?;
        counter.set_err(value)?;
        check!(waiter.sleeps()?, "setting the same error value ends a wait");
        counter.add_err(0)?;
        check!(waiter.sleeps()?, "adding no error ends a wait");
        counter.add(1)?;
        waiter.join()?.expect_ok()?;
    }
    Ok(())
}

fn error_before_entry(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.add_err(1)?;
    // An error from before the call does not end it, read or not.
    expect_fabric(counter.wait_ms(10, 0), KfiErrno::ETIMEDOUT)?;
    expect_fabric(counter.wait_ms(10, 5), KfiErrno::ETIMEDOUT)?;
    let waiter = Waiter::asleep(&counter, 10, ENDLESS)?;
    check_eq!(counter.read_err()?, 1);
    check!(waiter.sleeps()?, "reading the error value ends a wait");
    counter.add(10)?;
    waiter.join()?.expect_ok()
}

fn error_wakes_all(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let other = rig.counter()?;
    let mut waiters = Vec::new();
    for i in 0..8 {
        waiters.push(Waiter::asleep(&counter, 10 * (i + 1), ENDLESS)?);
    }
    let bystander = Waiter::asleep(&other, 10, ENDLESS)?;
    counter.add_err(1)?;
    for waiter in waiters {
        waiter.join()?.expect(KfiErrno::EAVAIL)?;
    }
    check!(
        bystander.sleeps()?,
        "the error of another counter ends a wait"
    );
    other.add(10)?;
    bystander.join()?.expect_ok()
}

fn threshold_wins(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    for _ in 0..env.scaled(300, 30) {
        // Reached from the first change on: an error does not take it back.
        let next = counter.read()? + 1;
        let waiter = Waiter::asleep(&counter, next, ENDLESS)?;
        counter.add(1)?;
        counter.add_err(1)?;
        waiter.join()?.expect_ok()?;
    }
    Ok(())
}

fn timeout_changes_nothing(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(7)?;
    counter.set_err(3)?;
    for timeout in [0, 1, 20] {
        expect_fabric(counter.wait_ms(8, timeout), KfiErrno::ETIMEDOUT)?;
        check_eq!((counter.read()?, counter.read_err()?), (7, 3));
    }
    Ok(())
}

fn one_add_wakes_eight(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let mut waiters = Vec::new();
    // In no order.
    for threshold in [50, 10, 80, 30, 20, 70, 60, 40] {
        waiters.push(Waiter::asleep(&counter, threshold, ENDLESS)?);
    }
    counter.add(80)?;
    for waiter in waiters {
        waiter.join()?.expect_ok()?;
    }
    Ok(())
}

fn each_at_its_own(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let mut waiters = Vec::new();
    for threshold in [50, 10, 80, 30, 20, 70, 60, 40] {
        waiters.push((threshold, Waiter::asleep(&counter, threshold, ENDLESS)?));
    }
    waiters.sort_by_key(|(threshold, _)| *threshold);
    while !waiters.is_empty() {
        // One less than the lowest threshold wakes nobody.
        let (threshold, lowest) = waiters.remove(0);
        counter.set(threshold - 1)?;
        check!(
            lowest.sleeps()?,
            "{} is enough for {threshold}",
            threshold - 1
        );
        counter.add(1)?;
        lowest.join()?.expect_ok()?;
        for (other, waiter) in &waiters {
            check!(waiter.sleeps()?, "{threshold} is enough for {other}");
        }
    }
    Ok(())
}

fn equal_thresholds(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    for round in 0..env.scaled(20, 5) {
        let mut waiters = Vec::new();
        for _ in 0..8 {
            waiters.push(Waiter::asleep(&counter, round + 1, ENDLESS)?);
        }
        counter.add(1)?;
        for waiter in waiters {
            waiter.join()?.expect_ok()?;
        }
    }
    Ok(())
}

/// Longer than any machine stands still: a thread that waits that long was forgotten.
const FORGOTTEN: i32 = 60_000;

fn ping_pong(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let (ping, pong) = (rig.counter()?, rig.counter()?);
    let rounds = env.scaled(100_000, 1_000);

    let start = Instant::now();
    in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        for round in 1..=rounds {
            if thread == 0 {
                ping.add(1)?;
                reached(&pong, round)?;
            } else {
                reached(&ping, round)?;
                pong.add(1)?;
            }
        }
        Ok(())
    })?;
    let time = start.elapsed();
    check_eq!((ping.read()?, pong.read()?), (rounds, rounds));
    env.note(format!(
        "{rounds} rounds on two CPUs, {} us each",
        time.as_micros() / u128::from(rounds)
    ));
    Ok(())
}

/// Waits for a threshold that will come.
fn reached(counter: &Counter, threshold: u64) -> Outcome {
    if let Err(error) = counter.wait_ms(threshold, FORGOTTEN) {
        let value = counter.read()?;
        return Err(Stop::fail(format!(
            "waiting for {threshold}: {error}; the value is {value}"
        )));
    }
    Ok(())
}

/// Timeouts that end at about the time of the add: whichever comes first, the
/// answer is true.
fn timeout_race(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let rounds = env.scaled(500, 50);
    let start = std::sync::Barrier::new(2);

    let counts = in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        let mut in_time = 0_u64;
        for round in 1..=rounds {
            start.wait();
            if thread == 0 {
                // Around the millisecond that the other one waits.
                std::thread::sleep(Duration::from_micros(800 + round * 17 % 600));
                counter.add(1)?;
            } else {
                match counter.wait_ms(round, 1) {
                    Ok(()) => {
                        check!(counter.read()? >= round, "success before the add");
                        in_time += 1;
                    }
                    error => expect_fabric(error, KfiErrno::ETIMEDOUT)?,
                }
                reached(&counter, round)?;
            }
        }
        Ok(in_time)
    })?;
    env.note(format!("{} of {rounds} in time", counts[1]));
    Ok(())
}

fn signal_interrupts(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set_err(2)?;
    for restart in [false, true] {
        signal::count(Signal::USR1, restart)?;
        for timeout in [ENDLESS, 1_000_000] {
            let before = signal::counted();
            let waiter = Waiter::asleep(&counter, 5, timeout)?;
            signal::send_to_thread(waiter.tid(), Signal::USR1)?;
            waiter.join()?.expect(KfiErrno::EINTR)?;
            check_eq!(signal::counted(), before + 1, "signals handled");
        }
    }
    check_eq!((counter.read()?, counter.read_err()?), (0, 2));
    // A signal that is ignored does not interrupt.
    let waiter = Waiter::asleep(&counter, 5, ENDLESS)?;
    signal::send_to_thread(waiter.tid(), Signal::WINCH)?;
    check!(waiter.sleeps()?, "an ignored signal ends a wait");
    counter.add(5)?;
    waiter.join()?.expect_ok()
}

fn kill(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    // One that shares the session.
    let theirs = counter.clone();
    let mut child = process::fork(move || i32::from(theirs.wait_ms(5, ENDLESS).is_ok()))?;
    until_waiting(&child)?;
    child.kill(Signal::KILL)?;
    check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));
    counter.add(5)?;
    check_eq!(counter.wait_ms(5, 0), Ok(()));
    // The dead one does not hold it.
    let counter = unshare(counter)?;
    counter.close().map_err(|(_, error)| error)?;

    // One with a session of its own, with several threads inside.
    let mut child = process::fork(|| {
        let wait = || -> Result<(), Stop> {
            let rig = Rig::new(env)?;
            let counter = rig.counter()?;
            for threshold in 1..=4 {
                Waiter::asleep(&counter, threshold, ENDLESS)?;
            }
            counter.wait_ms(5, ENDLESS)?;
            Ok(())
        };
        i32::from(wait().is_err())
    })?;
    until(|| Ok(threads_asleep(&child)? == 5))?;
    child.kill(Signal::KILL)?;
    check_eq!(child.wait()?, Status::Signaled(Signal::KILL.as_raw()));

    // All that it had is free: a session like it works.
    let again = Rig::new(env)?;
    again.counter()?.add(1)?;
    again.close()?;
    rig.close()
}

fn until_waiting(child: &process::Child) -> Outcome {
    check!(
        thread::until_asleep(child.pid(), child.pid())?,
        "the child has ended"
    );
    Ok(())
}

fn threads_asleep(child: &process::Child) -> Result<usize, Stop> {
    let mut asleep = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", child.pid().as_raw_nonzero()))? {
        let tid = task?.file_name().to_string_lossy().parse()?;
        let tid = rustix::process::Pid::from_raw(tid).ok_or_else(|| Stop::fail("thread 0"))?;
        if thread::state(child.pid(), tid)? == Some('S') {
            asleep += 1;
        }
    }
    Ok(asleep)
}

fn none(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter_with(WaitObj::NONE)?;
    // At once, also if there would be nothing to wait for.
    for timeout in [0, 1, 1_000_000, ENDLESS] {
        expect_fabric(counter.wait_ms(1, timeout), KfiErrno::EINVAL)?;
        expect_fabric(counter.wait_ms(0, timeout), KfiErrno::EINVAL)?;
    }
    // All else works.
    counter.add(2)?;
    counter.add_err(3)?;
    check_eq!((counter.read()?, counter.read_err()?), (2, 3));
    counter.set(0)?;
    counter.set_err(0)?;
    check_eq!((counter.read()?, counter.read_err()?), (0, 0));
    Ok(())
}

fn set_back(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let rounds = env.scaled(300, 30);
    let mut seen = 0_u64;
    for _ in 0..rounds {
        let waiter = Waiter::asleep(&counter, 5, ENDLESS)?;
        counter.add(5)?;
        counter.set(0)?;
        // It has seen 5 and returned, or it has not and waits on.
        if waiter.sleeps()? {
            counter.add(5)?;
        } else {
            seen += 1;
        }
        waiter.join()?.expect_ok()?;
        counter.set(0)?;
    }
    env.note(format!(
        "{seen} of {rounds} have seen the value that was set back"
    ));
    Ok(())
}
