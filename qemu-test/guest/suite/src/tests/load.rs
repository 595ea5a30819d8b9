// SPDX-License-Identifier: GPL-2.0

//! Much of everything, then the end without warning. `--scale 10` is full size: 1,000 sessions,
//! 10,000 counters, 100,000 pending works and 1,000 endpoints.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use kfi::{
    AddressVector, AvAttr, CompletionQueue, CqAttr, Endpoint, EpInfo, Session, WaitObj, Work,
};
use kfi_host::process::Status;
use rustix::process::{Resource, Rlimit, Signal};

use crate::check::{Outcome, Stop};
use crate::child;
use crate::ends::quiet;
use crate::env::Env;
use crate::rig::Rig;
use crate::tests::module::Modules;
use crate::{check, check_eq, tests};

tests! {
    "load";
    "killed-sessions" ["R-CLOSE-8"] sessions;
    "killed-counters-and-works" ["R-CLOSE-8 R-DWQ-1"] counters_and_works;
    "killed-endpoints" ["R-CLOSE-8"] endpoints;
    "endpoints-of-one-queue" ["R-CLOSE-4"] endpoints_of_one_queue;
    "killed-with-all-and-unloaded" ["R-CLOSE-5 R-CLOSE-8"] all;
}

/// Memory that the kernel itself uses by /proc/meminfo, in KiB.
pub(super) fn kernel_memory() -> Result<BTreeMap<String, i64>, Stop> {
    let mut memory = BTreeMap::new();
    for line in fs::read_to_string("/proc/meminfo")?.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(number)) = (words.next(), words.next()) {
            if ["SUnreclaim:", "VmallocUsed:", "Percpu:"].contains(&name) {
                memory.insert(name.trim_end_matches(':').to_owned(), number.parse()?);
            }
        }
    }
    Ok(memory)
}

/// Checks that memory is back where it was, or soon is: memory that is freed after a grace period, or
/// kept for the next one, is not lost.
pub(super) fn check_memory(env: &Env, before: &BTreeMap<String, i64>, slack: i64) -> Outcome {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let now = kernel_memory()?;
        let differences: Vec<_> = before
            .iter()
            .map(|(name, was)| (name, now.get(name).copied().unwrap_or(0) - was))
            .collect();
        if differences.iter().all(|(_, more)| *more <= slack) {
            env.note(format!("memory afterwards, in KiB: {differences:?}"));
            return Ok(());
        }
        // KASAN keeps what is freed for a while; there kmemleak looks at the end of the run.
        if Path::new("/sys/kernel/debug/kmemleak").exists() {
            env.note(format!("a debug kernel: {differences:?}"));
            return Ok(());
        }
        check!(Instant::now() < end, "memory is not back: {differences:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs something in a process of its own, which is killed when it says that all is there.
fn kill_when_full(fill: impl FnOnce() -> Outcome) -> Outcome {
    let (status, text) = child::run(|| {
        let limit = Rlimit {
            current: Some(8192),
            maximum: Some(8192),
        };
        let _ = rustix::process::setrlimit(Resource::Nofile, limit);
        fill()
    })?;
    check_eq!(status, Status::Signaled(Signal::KILL.as_raw()), "{text}");
    Ok(())
}

/// The end of this process, without any warning.
fn die() -> Outcome {
    rustix::process::kill_process(rustix::process::getpid(), Signal::KILL)?;
    loop {
        std::thread::park();
    }
}

fn fill_sessions(env: &Env, count: u64) -> Result<Vec<Rig>, Stop> {
    let mut rigs = Vec::new();
    for _ in 0..count {
        let rig = Rig::in_session(env, Session::open()?)?;
        std::mem::forget(rig.counter()?);
        rigs.push(rig);
    }
    Ok(rigs)
}

fn fill_counters(rig: &Rig, counters: u64, works: u64) -> Outcome {
    let mut all = Vec::new();
    for _ in 0..counters {
        all.push(rig.counter_with(WaitObj::NONE)?);
    }
    let mut batch = Vec::new();
    for number in 0..works {
        let trigger = &all[(number % counters) as usize];
        let target = &all[((number + 1) % counters) as usize];
        batch.push(Work::add(target, 1, trigger, 1 + number % 1000));
        if batch.len() == 100 || number + 1 == works {
            for (_, result) in rig.domain.queue_work_batch(&batch, true)? {
                check_eq!(result, 0, "work {number}");
            }
            batch.clear();
        }
    }
    std::mem::forget(all);
    Ok(())
}

/// Opens an endpoint that is ready. It counts for less than by default, so that many are within the limit.
fn small_endpoint(rig: &Rig, av: &AddressVector, cq: &CompletionQueue) -> Result<Endpoint, Stop> {
    let mut entry = rig.info.entries()[0].clone();
    (entry.tx_attr.size, entry.rx_attr.size) = (64, 64);
    let ep = rig.domain.endpoint(EpInfo::Value(&entry), 0)?;
    ep.bind(av.handle(), 0)?;
    let both = u64::from(kfi::uapi::KFI_TRANSMIT) | u64::from(kfi::uapi::KFI_RECV);
    ep.bind(cq.handle(), both)?;
    ep.enable()?;
    Ok(ep)
}

fn fill_endpoints(rig: &Rig, count: u64) -> Outcome {
    let av = rig.domain.address_vector(&AvAttr::default())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    for _ in 0..count {
        std::mem::forget(small_endpoint(rig, &av, &cq)?);
    }
    std::mem::forget((av, cq));
    Ok(())
}

/// A queue that stays keeps nothing of endpoints that have come and gone.
fn endpoints_of_one_queue(env: &Env) -> Outcome {
    let rig = Rig::new(env)?;
    let av = rig.domain.address_vector(&AvAttr::default())?;
    let cq = rig.domain.completion_queue(&CqAttr::new())?;
    drop(small_endpoint(&rig, &av, &cq)?);
    let before = kernel_memory()?;
    for _ in 0..4000 {
        drop(small_endpoint(&rig, &av, &cq)?);
        // Then it has no completion of it.
        quiet(&cq)?;
    }
    // Less than half a KiB for each.
    check_memory(env, &before, 1900)
}

/// Counters of one session, of at most so many objects.
const PER_SESSION: u64 = 1000;

fn fill_works(env: &Env, counters: u64, works: u64) -> Result<Vec<Rig>, Stop> {
    let parts = counters.div_ceil(PER_SESSION);
    let mut rigs = fill_sessions(env, parts)?;
    for rig in &mut rigs {
        fill_counters(rig, counters / parts, works / parts)?;
    }
    Ok(rigs)
}

/// Twice: caches that the first round fills are full already in the second one.
fn twice(env: &Env, mut round: impl FnMut() -> Outcome) -> Outcome {
    round()?;
    let before = kernel_memory()?;
    let start = Instant::now();
    round()?;
    env.note(format!("filled, killed and gone in {:?}", start.elapsed()));
    check_memory(env, &before, 2048)
}

fn sessions(env: &Env) -> Outcome {
    let count = env.scaled(100, 10);
    env.note(format!("{count} sessions"));
    twice(env, || {
        kill_when_full(|| {
            let _rigs = fill_sessions(env, count)?;
            die()
        })
    })
}

fn counters_and_works(env: &Env) -> Outcome {
    let (counters, works) = (env.scaled(1_000, 100), env.scaled(10_000, 1_000));
    // A debug kernel is told to allow less.
    let works = works.min(counters * 10);
    env.note(format!("{counters} counters, {works} works"));
    twice(env, || {
        kill_when_full(|| {
            let _rigs = fill_works(env, counters, works)?;
            die()
        })
    })
}

fn endpoints(env: &Env) -> Outcome {
    let count = env.scaled(100, 10);
    env.note(format!("{count} endpoints"));
    twice(env, || {
        kill_when_full(|| {
            let rig = Rig::new(env)?;
            fill_endpoints(&rig, count)?;
            die()
        })
    })
}

fn all(env: &Env) -> Outcome {
    let modules = Modules::new(env)?;
    let round = || {
        modules.load_all()?;
        kill_when_full(|| {
            let rigs = fill_sessions(env, env.scaled(100, 10))?;
            let (counters, works) = (env.scaled(1_000, 100), env.scaled(10_000, 1_000));
            let _more = fill_works(env, counters, works.min(counters * 10))?;
            fill_endpoints(&rigs[0], env.scaled(100, 10))?;
            die()
        })?;
        Modules::unload_all()
    };
    round()?;
    let before = kernel_memory()?;
    round()?;
    check_memory(env, &before, 1024)?;
    modules.load_all()?;
    Rig::new(env)?.close()
}
