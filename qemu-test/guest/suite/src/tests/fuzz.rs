// SPDX-License-Identifier: GPL-2.0

//! Random sequences of requests: see [`crate::fuzz`].

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::fuzz::execute::{self, Ending, Memory};
use crate::fuzz::generate::sequence;
use crate::fuzz::replay::Replay;
use crate::fuzz::shrink::shrink;
use crate::knobs::Knobs;
use crate::rig::Rig;
use crate::{check, check_eq, tests};

tests! {
    "fuzz";
    "one-process" ["kfi_shim.h R-CLOSE-8"] one_process;
    "two-processes" ["kfi_shim.h R-CLOSE-8 R-CTL-5"] two_processes;
    "without-memory" ["kfi_shim.h R-CLOSE-8 R-TRIG-27"] without_memory;
}

/// Requests of a process in a round: enough to fill a scene, and few enough to be
/// looked at.
const STEPS: usize = 300;
/// Runs to find a shorter sequence.
const TRIES: usize = 300;
/// So often chance is given a chance to show the fault again.
const REPEATS: usize = 5;
/// Steps that are shown.
const SHOWN: usize = 40;

fn one_process(env: &Env) -> Outcome {
    fuzz(env, 1, Memory::Plenty)
}

fn two_processes(env: &Env) -> Outcome {
    fuzz(env, 2, Memory::Plenty)
}

/// Allocations fail in the middle of requests.
fn without_memory(env: &Env) -> Outcome {
    let folder = Path::new("/sys/kernel/debug/failslab");
    if !folder.exists() {
        return Err(Stop::Skip("this kernel has no failslab".to_owned()));
    }
    let mut knobs = Knobs::new();
    for (knob, value) in [
        ("task-filter", "Y"),
        ("ignore-gfp-wait", "N"),
        ("probability", "5"),
        ("interval", "1"),
        ("times", "-1"),
        // That it was injected need not be told thousands of times.
        ("verbose", "0"),
    ] {
        // Not every kernel has every knob.
        if folder.join(knob).exists() {
            knobs.set(folder.join(knob), value)?;
        }
    }
    fuzz(env, 1, Memory::Scarce)
}

pub(super) fn fuzz(env: &Env, processes: usize, memory: Memory) -> Outcome {
    // Somebody who has nothing to do with it.
    let bystander = Rig::new(env)?;
    let counter = bystander.counter()?;
    counter.set(7)?;

    let (mut rounds, mut made, mut good, mut failures) = (0, 0, 0, 0);
    let most = env.scaled(10, 3);
    let start = Instant::now();
    loop {
        let replay = match &env.settings.replay {
            Some(replay) if replay.processes == processes => replay.clone(),
            Some(_) => return Err(Stop::Skip("another test runs this".to_owned())),
            None => Replay::new(env.settings.seed.wrapping_add(rounds), STEPS, processes),
        };
        // Whoever finds a dead machine knows what it died of.
        announce(&replay);
        match execute::round(&replay, memory)? {
            Ending::Fine {
                made: m,
                good: g,
                failed,
            } => {
                made += m;
                good += g;
                failures += failed;
            }
            Ending::Wrong(why) => return Err(explain(env, &replay, memory, &why)),
        }
        rounds += 1;
        let enough = match env.settings.fuzz_time {
            _ if env.settings.replay.is_some() => true,
            Some(time) => start.elapsed() >= time,
            None => rounds >= most,
        };
        if enough {
            break;
        }
    }
    env.note(format!(
        "{rounds} rounds, {made} requests, {good} succeeded"
    ));
    if memory == Memory::Each {
        env.note(format!("{failures} failures injected"));
    }
    check!(
        env.settings.replay.is_some() || good * 10 > made,
        "hardly a request succeeds"
    );
    check_eq!((counter.read()?, counter.read_err()?), (7, 0));
    drop(counter);
    bystander.close()
}

/// Writes a line to the kernel's log.
fn announce(replay: &Replay) {
    if let Ok(mut log) = OpenOptions::new().write(true).open("/dev/kmsg") {
        let _ = log.write_all(format!("kfi-suite: fuzz {replay}\n").as_bytes());
    }
}

/// Shows a shorter round that fails, too.
fn explain(env: &Env, replay: &Replay, memory: Memory, why: &str) -> Stop {
    let fails = |numbers: &[usize]| -> Result<bool, Stop> {
        let part = replay.keep(numbers);
        let certain = replay.processes == 1 && memory == Memory::Plenty;
        let repeats = if certain { 1 } else { REPEATS };
        for _ in 0..repeats {
            if matches!(execute::round(&part, memory)?, Ending::Wrong(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let part = match shrink(replay.numbers(), TRIES, fails) {
        Ok(numbers) => replay.keep(&numbers),
        Err(stop) => return stop,
    };
    for (number, process) in part
        .numbers()
        .iter()
        .map(|n| (n % replay.steps, n / replay.steps))
        .take(SHOWN)
    {
        let (_, steps) = sequence(replay.seed, process as u64, replay.steps);
        if let Some(step) = steps.get(number) {
            env.note(format!("{process}.{number}: {step}"));
        }
    }
    Stop::fail(format!("{why}: --fuzz-replay {part}"))
}
