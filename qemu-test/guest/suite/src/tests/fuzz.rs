// SPDX-License-Identifier: GPL-2.0

//! Random sequences of requests: see [`crate::fuzz`].

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use rand::seq::SliceRandom;

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::fuzz::execute::{self, Ending, Memory};
use crate::fuzz::generate::sequence;
use crate::fuzz::learn::{Failure, Ground, Learner};
use crate::fuzz::recipe::{Recipe, Source};
use crate::fuzz::replay::Replay;
use crate::fuzz::shrink::shrink;
use crate::fuzz::text::Entry;
use crate::fuzz::watched::{read_corpus, Until, Watched};
use crate::knobs::Knobs;
use crate::rig::Rig;
use crate::{check, check_eq, tests};

tests! {
    "fuzz";
    "one-process" ["kfi_shim.h R-CLOSE-8"] one_process;
    "two-processes" ["kfi_shim.h R-CLOSE-8 R-CTL-5"] two_processes;
    "without-memory" ["kfi_shim.h R-CLOSE-8 R-TRIG-27"] without_memory;
    "learning" ["kfi_shim.h R-CLOSE-8"] learning;
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
        // The log need not say thousands of times that a failure was injected.
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
        // The log of a dead machine names the sequences that it died of.
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

/// Sequences that come to code where none was before are kept, and others made of them.
fn learning(env: &Env) -> Outcome {
    let start = Instant::now();
    let until = match env.settings.fuzz_time {
        Some(time) => Until::Time(start, time),
        None => Until::Runs(env.scaled(300, 30)),
    };
    let mut kernel = Watched::new(until);
    let (entries, unread) = read_corpus(&env.settings.corpus)?;
    for why in &unread {
        env.note(format!("{}: {why}", env.settings.corpus.display()));
    }
    if let Some(recipe) = &env.settings.sequence {
        return one_sequence(env, &mut kernel, recipe, &entries);
    }
    if !kernel.tells() && entries.is_empty() {
        let why = "these modules do not tell what has run, and nothing was kept where they did";
        return Err(Stop::Skip(why.to_owned()));
    }
    // Somebody who has nothing to do with it.
    let bystander = Rig::new(env)?;
    let counter = bystander.counter()?;
    counter.set(7)?;

    let mut learner = Learner::new(env.settings.seed);
    if let Err(failure) = learn(env, &mut kernel, &mut learner, entries.clone()) {
        // The sequences that were left out, too: one may be the cause.
        let known = [learner.entries(), &entries].concat();
        return Err(explain_sequence(env, &mut kernel, failure, &known));
    }
    let (runs, seconds) = (kernel.runs, start.elapsed().as_secs().max(1));
    env.note(format!(
        "{runs} sequences, {} a second, {} requests, {} succeeded",
        runs / seconds,
        kernel.made,
        kernel.good
    ));
    if kernel.tells() {
        env.note(format!(
            "{} places reached, {} sequences kept, {} of them new; {} came to new places by chance",
            learner.reached(),
            learner.entries().len(),
            kernel.kept,
            learner.chance
        ));
        check!(learner.reached() > 0, "no place was reached");
    }
    check_eq!((counter.read()?, counter.read_err()?), (7, 0));
    drop(counter);
    bystander.close()
}

/// Runs what was kept before, then what is made of it. A kernel that does not tell runs what was
/// kept, in any order.
fn learn(
    env: &Env,
    kernel: &mut Watched,
    learner: &mut Learner,
    mut entries: Vec<Entry>,
) -> Result<(), Failure> {
    if !kernel.tells() {
        entries.shuffle(&mut env.rng());
        for entry in &entries {
            if kernel.has_time() {
                kernel.run(&Recipe::new(Source::Entry(entry.name)), &entry.steps)?;
            }
        }
        return Ok(());
    }
    let count = entries.len();
    let useless = learner.recall(kernel, entries)?;
    env.note(format!(
        "{} places reached by {} sequences of {count} that were kept before",
        learner.reached(),
        learner.entries().len()
    ));
    for name in useless {
        kernel.forget(name);
    }
    while kernel.has_time() {
        learner.explore(kernel)?;
    }
    Ok(())
}

/// Runs a sequence that has a name.
fn one_sequence(env: &Env, kernel: &mut Watched, recipe: &Recipe, entries: &[Entry]) -> Outcome {
    let steps = recipe.steps(entries).ok_or_else(|| {
        let corpus = env.settings.corpus.display();
        Stop::fail(format!("{recipe} is made of something that {corpus} lacks"))
    })?;
    for (number, step) in steps.iter().enumerate() {
        env.note(format!("{number}: {step}"));
    }
    match kernel.run(recipe, &steps) {
        Ok(places) => {
            let (made, good) = (kernel.made, kernel.good);
            let places = places.len();
            env.note(format!(
                "{made} requests, {good} succeeded, {places} places reached"
            ));
            Ok(())
        }
        Err(Failure::Wrong { why, .. }) => Err(Stop::fail(why)),
        Err(Failure::Stop(stop)) => Err(stop),
    }
}

/// Shows a shorter sequence that fails, too.
fn explain_sequence(env: &Env, kernel: &mut Watched, failure: Failure, known: &[Entry]) -> Stop {
    let (recipe, why) = match failure {
        Failure::Wrong { recipe, why } => (recipe, why),
        Failure::Stop(stop) => return stop,
    };
    let Some(steps) = recipe.steps(known) else {
        return Stop::fail(format!("{why}: {recipe}"));
    };
    // If it is a part itself its steps have the numbers that they have in the whole.
    let numbers = match &recipe.kept {
        Some(kept) => kept.clone(),
        None => (0..steps.len()).collect(),
    };
    let fails = |numbers: &[usize]| -> Result<bool, Stop> {
        let part = recipe.keep(numbers);
        let steps = part.steps(known).unwrap_or_default();
        match kernel.run(&part, &steps) {
            Ok(_) => Ok(false),
            Err(Failure::Wrong { .. }) => Ok(true),
            Err(Failure::Stop(stop)) => Err(stop),
        }
    };
    let part = match shrink(numbers, TRIES, fails) {
        Ok(numbers) => recipe.keep(&numbers),
        Err(stop) => return stop,
    };
    for step in part.steps(known).unwrap_or_default().iter().take(SHOWN) {
        env.note(step);
    }
    Stop::fail(format!("{why}: --fuzz-sequence {part}"))
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
