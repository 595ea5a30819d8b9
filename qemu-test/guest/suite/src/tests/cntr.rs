// SPDX-License-Identifier: GPL-2.0

//! Counters: values, attributes, and many threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kfi::{CntrAttr, Counter, KfiErrno, WaitObj};
use rand::RngExt;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{expect_fabric, in_threads, pin, Rig};
use crate::{check, check_eq, tests};

tests! {
    "cntr" parallel;
    "case-01-values" ["R-CNTR-3 R-CNTR-17 R-CNTR-18 R-CNTR-19"] values;
    "case-01-initially-zero" ["R-CNTR-5"] initially_zero;
    "case-01-add-zero" ["R-CNTR-18"] add_zero;
    "case-02-64-bits" ["R-CNTR-4"] wide;
    "case-02-wrap" ["R-CNTR-20"] wrap;
    "case-03-attr-flags" ["R-CNTR-9"] attr_flags;
    "case-03-attr-wait-obj" ["R-CNTR-10"] attr_wait_obj;
    "case-03-attr-events" ["R-CNTR-8"] attr_events;
    "case-03-attr-null" ["R-CNTR-8"] attr_null;
    "case-03-set-without-wait-set" ["R-CNTR-13"] set_without_wait_set;
    "case-03-wait-set-ignored" ["R-CNTR-14"] wait_set_ignored;
    alone "case-07-threads-lose-nothing" ["R-CNTR-18"] threads_lose_nothing;
    alone "case-08-monotone-reader" ["R-CNTR-18 R-CNTR-21"] monotone_reader;
    alone "case-08-no-torn-values" ["R-CNTR-4 R-CNTR-21"] no_torn_values;
    alone "case-08-set-or-add-first" ["R-CNTR-21"] set_or_add_first;
    "model-random-operations" ["R-CNTR-3 R-CNTR-17 R-CNTR-18 R-CNTR-19 R-CNTR-20 R-CNTR-30"] model;
}

/// Both values at once.
fn values_of(counter: &Counter) -> kfi::Result<(u64, u64)> {
    Ok((counter.read()?, counter.read_err()?))
}

fn values(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let mut counters = Vec::new();
    for _ in 0..64 {
        counters.push(rig.counter()?);
    }
    for (i, counter) in (0..).zip(&counters) {
        counter.set(i)?;
        check_eq!(values_of(counter)?, (i, 0));
        counter.set_err(2 * i)?;
        check_eq!(values_of(counter)?, (i, 2 * i));
        counter.add(i)?;
        check_eq!(values_of(counter)?, (2 * i, 2 * i));
        counter.add_err(i)?;
        check_eq!(values_of(counter)?, (2 * i, 3 * i));
    }
    // None has touched another.
    for (i, counter) in (0..).zip(&counters) {
        check_eq!(values_of(counter)?, (2 * i, 3 * i), "counter {i}");
    }
    Ok(())
}

fn initially_zero(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    // Also in memory that another counter has left.
    for _ in 0..20 {
        let counter = rig.counter()?;
        check_eq!(values_of(&counter)?, (0, 0));
        counter.set(u64::MAX)?;
        counter.set_err(u64::MAX)?;
    }
    Ok(())
}

fn add_zero(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(7)?;
    counter.set_err(9)?;
    counter.add(0)?;
    counter.add_err(0)?;
    check_eq!(values_of(&counter)?, (7, 9));
    Ok(())
}

fn wide(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    for value in [
        0xffff_ffff,
        0x1_0000_0000,
        0xabcd_ef01_2345_6789,
        1 << 48,
        1 << 63,
        u64::MAX,
    ] {
        counter.set(value)?;
        counter.set_err(!value)?;
        check_eq!(values_of(&counter)?, (value, !value));
        check_eq!(counter.wait_ms(value, 0), Ok(()));
    }
    // A carry into the upper half.
    counter.set(0xffff_ffff)?;
    counter.add(1)?;
    counter.set_err(0xffff_ffff)?;
    counter.add_err(2)?;
    check_eq!(values_of(&counter)?, (0x1_0000_0000, 0x1_0000_0001));
    counter.add(0xabcd_ef01_0000_0000)?;
    check_eq!(counter.read()?, 0xabcd_ef02_0000_0000);

    // Compared in full: 2^32 is more than 5, and 5 less than 2^32.
    counter.set(0x1_0000_0000)?;
    check_eq!(counter.wait_ms(5, 0), Ok(()));
    counter.set(5)?;
    expect_fabric(counter.wait_ms(0x1_0000_0000, 0), KfiErrno::ETIMEDOUT)?;
    expect_fabric(counter.wait_ms(0x1_0000_0005, 0), KfiErrno::ETIMEDOUT)?;
    // And without a sign.
    counter.set(1 << 63)?;
    check_eq!(counter.wait_ms(1, 0), Ok(()));
    expect_fabric(counter.wait_ms(u64::MAX, 0), KfiErrno::ETIMEDOUT)
}

fn wrap(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    counter.set(u64::MAX)?;
    counter.set_err(u64::MAX)?;
    counter.add(1)?;
    check_eq!(values_of(&counter)?, (0, u64::MAX));
    counter.add_err(1)?;
    check_eq!(values_of(&counter)?, (0, 0));
    // -1 takes one away.
    counter.add(10)?;
    counter.add(u64::MAX)?;
    check_eq!(counter.read()?, 9);
    counter.add_err(u64::MAX)?;
    check_eq!(counter.read_err()?, u64::MAX);
    // The value counts, not the way in which it came there.
    expect_fabric(counter.wait_ms(10, 0), KfiErrno::ETIMEDOUT)?;
    check_eq!(counter.wait_ms(9, 0), Ok(()));
    Ok(())
}

fn attr_flags(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for bit in 0..64 {
        let attr = CntrAttr::new().flags(1 << bit);
        expect_fabric(rig.domain.counter(&attr), KfiErrno::EINVAL)?;
    }
    rig.close() // Nothing was left in the domain.
}

fn attr_wait_obj(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for number in [4, 5, 6, 64, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let attr = CntrAttr::new().wait_obj(WaitObj(number));
        expect_fabric(rig.domain.counter(&attr), KfiErrno::EINVAL)?;
    }
    for wait_obj in [WaitObj::NONE, WaitObj::UNSPEC, WaitObj::QUEUE] {
        let counter = rig.counter_with(wait_obj)?;
        counter.add(3)?;
        check_eq!(counter.read()?, 3, "with {wait_obj}");
    }
    rig.close()
}

fn attr_events(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for events in [1, 2, 0x7fff_ffff, u32::MAX] {
        let attr = CntrAttr::new().events(events);
        expect_fabric(rig.domain.counter(&attr), KfiErrno::ENOSYS)?;
    }
    rig.close()
}

fn attr_null(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.domain.counter(&CntrAttr::null())?;
    counter.add(2)?;
    // KFI_WAIT_UNSPEC: it can be waited for.
    check_eq!(counter.wait_ms(2, 0), Ok(()));
    expect_fabric(counter.wait_ms(3, 5), KfiErrno::ETIMEDOUT)?;
    check_eq!(values_of(&counter)?, (2, 0));
    Ok(())
}

fn set_without_wait_set(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let set = CntrAttr::new().wait_obj(WaitObj::SET);
    expect_fabric(rig.domain.counter(&set), KfiErrno::EINVAL)?;
    for handle in [rig.fabric.handle(), rig.domain.handle(), counter.handle()] {
        let attr = set.wait_set(handle);
        expect_fabric(rig.domain.counter(&attr), KfiErrno::EINVAL)?;
    }
    // None of them is held by the attempt.
    drop(counter);
    rig.close()
}

fn wait_set_ignored(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    for wait_obj in [WaitObj::NONE, WaitObj::UNSPEC, WaitObj::QUEUE] {
        for handle in [rig.fabric.handle(), rig.domain.handle()] {
            let attr = CntrAttr::new().wait_obj(wait_obj).wait_set(handle);
            let counter = rig.domain.counter(&attr)?;
            counter.add(1)?;
            check_eq!(counter.read()?, 1, "with {wait_obj}");
        }
    }
    rig.close()
}

fn threads_lose_nothing(env: &Env) -> Outcome {
    const THREADS: u64 = 4;
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let each = env.scaled(250_000, 1_000);

    in_threads(0..THREADS, |thread| {
        pin(thread as usize)?;
        // The error value moves as well, and neither disturbs the other.
        for i in 0..each {
            counter.add(1)?;
            if i % 16 == 0 {
                counter.add_err(2)?;
            }
        }
        Ok(())
    })?;
    let errors = THREADS * each.div_ceil(16) * 2;
    check_eq!(values_of(&counter)?, (THREADS * each, errors));
    env.note(format!("{THREADS} threads, {each} adds each"));
    Ok(())
}

/// Adds to both halves of a value alike, so that a torn value shows.
const BOTH: u64 = 0x1_0000_0001;

fn halves_agree(value: u64) -> bool {
    value >> 32 == value & 0xffff_ffff
}

/// So often at least each reader looks beside those that write.
const LOOKS: u64 = 100;

/// Counts how often readers look; those that write go on until each has looked often enough.
#[derive(Default)]
struct Looks([AtomicU64; 2]);

impl Looks {
    /// Whether there is more to be written, for a thread that has written so often.
    fn want_more(&self, written: u64, at_least: u64) -> bool {
        // Relaxed, here and below: numbers that nothing else hangs on.
        written < at_least || self.0.iter().any(|n| n.load(Ordering::Relaxed) < LOOKS)
    }

    /// Looks again and again, as reader number `index`, as long as `writing` says.
    fn look(
        &self,
        index: usize,
        writing: impl Fn() -> bool,
        mut look: impl FnMut() -> Outcome,
    ) -> Result<u64, Stop> {
        let looks = &self.0[index];
        let mut outcome = Ok(());
        while outcome.is_ok() && writing() {
            outcome = look();
            looks.fetch_add(1, Ordering::Relaxed);
        }
        let count = looks.load(Ordering::Relaxed);
        self.nobody(index);
        outcome.map(|()| count)
    }

    /// Nobody waits for that reader.
    fn nobody(&self, index: usize) {
        self.0[index].store(LOOKS, Ordering::Relaxed);
    }
}

fn monotone_reader(env: &Env) -> Outcome {
    const WRITERS: usize = 2;
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let each = env.scaled(50_000, 1_000);
    let writing = AtomicUsize::new(WRITERS);
    let looks = Looks::default();
    looks.nobody(1);

    let counts = in_threads(0..=WRITERS, |thread| {
        pin(thread)?;
        if thread < WRITERS {
            let mut adds = 0;
            while looks.want_more(adds, each) {
                counter.add(BOTH)?;
                counter.add_err(BOTH)?;
                adds += 1;
            }
            writing.fetch_sub(1, Ordering::Relaxed);
            return Ok(adds);
        }
        let mut last = (0, 0);
        let writing = || writing.load(Ordering::Relaxed) > 0;
        looks.look(0, writing, || {
            let now = values_of(&counter)?;
            check!(
                now.0 >= last.0 && now.1 >= last.1,
                "values went back from {last:x?} to {now:x?}"
            );
            check!(
                halves_agree(now.0) && halves_agree(now.1),
                "torn values {now:x?}"
            );
            last = now;
            Ok(())
        })
    })?;
    let adds: u64 = counts[..WRITERS].iter().sum();
    check_eq!(values_of(&counter)?, (adds * BOTH, adds * BOTH));
    let reads = counts[WRITERS];
    check!(reads >= LOOKS, "{reads} reads");
    env.note(format!("{reads} reads beside {adds} adds"));
    Ok(())
}

fn no_torn_values(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let rounds = env.scaled(40_000, 1_000);
    let writing = AtomicUsize::new(1);
    let looks = Looks::default();

    let counts = in_threads(0..3_usize, |thread| {
        pin(thread)?;
        if thread == 0 {
            let mut round = 0;
            while looks.want_more(round, rounds) {
                // Halves that have no bit in common with those before.
                let value = if round % 2 == 0 { 0 } else { u64::MAX };
                counter.set(value)?;
                counter.set_err(!value)?;
                round += 1;
            }
            writing.store(0, Ordering::Relaxed);
            return Ok(round);
        }
        let writing = || writing.load(Ordering::Relaxed) > 0;
        looks.look(thread - 1, writing, || {
            let now = values_of(&counter)?;
            check!(
                halves_agree(now.0) && halves_agree(now.1),
                "torn values {now:x?}"
            );
            Ok(())
        })
    })?;
    check!(
        counts.iter().all(|count| *count >= LOOKS),
        "{counts:?} looks"
    );
    Ok(())
}

fn set_or_add_first(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counter = rig.counter()?;
    let rounds = env.scaled(8_000, 500);
    let start = std::sync::Barrier::new(2);
    let failed = AtomicBool::new(false);

    let results = in_threads([0_usize, 1], |thread| {
        pin(thread)?;
        let mut set_first = 0_u64;
        for i in 0..rounds {
            let base = (i + 1) << 32;
            start.wait();
            if thread == 0 {
                counter.set(base)?;
            } else {
                counter.add(1)?;
            }
            start.wait();
            // One looks, and the other waits until it has.
            if thread == 0 {
                let value = counter.read()?;
                if value == base + 1 {
                    set_first += 1;
                } else if value != base {
                    failed.store(true, Ordering::Relaxed);
                }
            }
            start.wait();
            if failed.load(Ordering::Relaxed) {
                return Err(Stop::fail(format!(
                    "set({base:#x}) beside add(1) gives {:#x}",
                    counter.read()?
                )));
            }
        }
        Ok(set_first)
    })?;
    env.note(format!(
        "{rounds} rounds, in {} the set was first",
        results[0]
    ));
    Ok(())
}

/// A sequence of random operations gives what arithmetic says.
fn model(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let counters = [rig.counter()?, rig.counter()?, rig.counter()?];
    let mut model = [(0_u64, 0_u64); 3];
    let mut rng = env.rng();
    let operations = env.scaled(50_000, 2_000);

    for step in 0..operations {
        let which = rng.random_range(0..counters.len());
        let (counter, (value, errors)) = (&counters[which], &mut model[which]);
        // Small steps around the value, and sometimes anything.
        let number = match rng.random_range(0..4) {
            0 => rng.random(),
            1 => value.wrapping_add(rng.random_range(0..4)).wrapping_sub(2),
            _ => rng.random_range(0..10),
        };
        match rng.random_range(0..7) {
            0 => {
                counter.add(number)?;
                *value = value.wrapping_add(number);
            }
            1 => {
                counter.set(number)?;
                *value = number;
            }
            2 => {
                counter.add_err(number)?;
                *errors = errors.wrapping_add(number);
            }
            3 => {
                counter.set_err(number)?;
                *errors = number;
            }
            4 => check_eq!(counter.read()?, *value, "value in step {step}"),
            5 => check_eq!(counter.read_err()?, *errors, "errors in step {step}"),
            _ => {
                let result = counter.wait_ms(number, 0);
                if *value >= number {
                    check_eq!(result, Ok(()), "wait in step {step}");
                } else {
                    expect_fabric(result, KfiErrno::ETIMEDOUT)?;
                }
            }
        }
    }
    for (counter, values) in counters.iter().zip(model) {
        check_eq!(values_of(counter)?, values);
    }
    Ok(())
}
