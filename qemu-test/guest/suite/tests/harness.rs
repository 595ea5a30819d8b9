// SPDX-License-Identifier: GPL-2.0

//! The harness on tests that go wrong in every way. No device is needed.

// Tests have the form of tests, whatever they need.
#![allow(clippy::unnecessary_wraps)]

use std::path::PathBuf;
use std::time::Duration;

use kfi_host::process;
use kfi_suite::check::{Outcome, Stop};
use kfi_suite::env::{Env, Settings};
use kfi_suite::harness::{self, Options};
use kfi_suite::kernel_log::KernelLog;
use kfi_suite::report::{Form, Report};
use kfi_suite::{check_eq, tests};
use rustix::process::Signal;

tests! {
    "self";
    "passes" ["R-A-1"] passes;
    "fails" ["R-A-2"] fails;
    "skips" ["R-A-3"] skips;
    "panics" ["R-A-4"] panics;
    "dies" ["R-A-5"] dies;
    "exits" ["R-A-6"] exits;
    "hangs" ["R-A-7"] hangs;
    "leaves-a-child" ["R-A-8"] leaves_a_child;
    "says-much" ["R-A-9"] says_much;
    "forks" ["R-A-10"] forks;
    "forks-with-threads" ["R-A-11"] forks_with_threads;
}

fn passes(env: &Env) -> Outcome {
    env.note("a note\nof two lines");
    Ok(())
}

fn fails(env: &Env) -> Outcome {
    env.note("before");
    check_eq!(1 + 1, 3);
    Ok(())
}

fn skips(_: &Env) -> Outcome {
    Err(Stop::Skip("not here".to_owned()))
}

fn panics(_: &Env) -> Outcome {
    panic!("deliberately")
}

fn dies(_: &Env) -> Outcome {
    rustix::process::kill_process(rustix::process::getpid(), Signal::KILL)?;
    Ok(())
}

fn exits(_: &Env) -> Outcome {
    // Status 0, but not a word on the result.
    kfi_host::sys::exit_now(0)
}

fn hangs(env: &Env) -> Outcome {
    env.note("waiting");
    loop {
        std::thread::park();
    }
}

fn leaves_a_child(_: &Env) -> Outcome {
    // It has the pipe, and would keep a harness that waits for its end.
    let child = process::fork(|| loop {
        std::thread::park();
    })?;
    std::mem::forget(child);
    Ok(())
}

fn says_much(env: &Env) -> Outcome {
    // More than a pipe holds.
    for i in 0..20_000 {
        env.note(format!("line {i}"));
    }
    Ok(())
}

fn forks(_: &Env) -> Outcome {
    let mut child = process::fork(|| 7)?;
    check_eq!(child.wait()?, process::Status::Exited(7));
    let mut child = process::fork(|| panic!("in a child"))?;
    check_eq!(child.wait()?, process::Status::Exited(process::PANICKED));
    let mut child = process::fork(|| loop {
        std::thread::park();
    })?;
    check_eq!(child.wait_for(Duration::from_millis(20))?, None);
    check_eq!(child.is_alive()?, true);
    child.kill(Signal::TERM)?;
    check_eq!(child.wait()?, process::Status::Signaled(15));
    check_eq!(child.is_alive()?, false);
    Ok(())
}

fn forks_with_threads(_: &Env) -> Outcome {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || stopped.recv());
    let refused = process::fork(|| 0).is_err();
    drop(stop);
    check_eq!(thread.join().is_ok(), true);
    check_eq!(refused, true);
    Ok(())
}

/// Tests that run beside each other.
mod beside {
    use super::{after_others, hangs, meets, met, passes, tests};

    tests! {
        "beside" parallel;
        alone "after-others" ["R-B-1"] after_others;
        "meets" ["R-B-2"] meets;
        "met" ["R-B-3"] met;
        "hangs" ["R-B-4"] hangs;
        "passes" ["R-B-5"] passes;
    }
}

/// A file that tests of one run know of.
fn common_file(name: &str) -> Result<PathBuf, Stop> {
    let run = rustix::process::getppid().ok_or_else(|| Stop::fail("no parent"))?;
    let name = format!("kfi-suite-{}-{name}", run.as_raw_nonzero());
    Ok(std::env::temp_dir().join(name))
}

/// Makes a file and waits for another one, which somebody else makes meanwhile.
fn meet(own: &str, other: &str) -> Outcome {
    std::fs::write(common_file(own)?, "")?;
    let other = common_file(other)?;
    while !other.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn meets(_: &Env) -> Outcome {
    meet("one", "other")
}

fn met(_: &Env) -> Outcome {
    meet("other", "one")
}

fn after_others(_: &Env) -> Outcome {
    for name in ["one", "other"] {
        std::fs::remove_file(common_file(name)?)?;
    }
    Ok(())
}

fn main() {
    let mut out = Vec::new();
    let options = Options {
        settings: Settings::default(),
        time_limit: Duration::from_secs(2),
        fail_fast: false,
        jobs: 1,
    };
    let mut log = KernelLog::open();
    let mut report = Report::new(Form::Ktap, &mut out, TESTS.len()).unwrap();
    assert!(harness::run(TESTS, &options, &mut report, &mut log).unwrap());
    report.finish().unwrap();
    let text = String::from_utf8(out).unwrap();

    let lines: Vec<_> = text.lines().collect();
    let has = |line: &str| assert!(lines.contains(&line), "no {line:?} in\n{text}");
    has("1..11");
    has("# a note");
    has("# of two lines");
    has("ok 1 self/passes # R-A-1");
    has("not ok 2 self/fails # R-A-2");
    assert!(
        text.contains(": 1 + 1 is 2, should be 3\nnot ok 2 "),
        "{text}"
    );
    has("ok 3 self/skips # SKIP not here");
    has("# panicked");
    has("# deliberately");
    has("not ok 4 self/panics # R-A-4");
    has("# the test died: killed by signal 9");
    has("not ok 5 self/dies # R-A-5");
    has("# the test died: exit status 0");
    has("not ok 6 self/exits # R-A-6");
    has("# waiting");
    has("# not done after 2s");
    has("not ok 7 self/hangs # R-A-7");
    has("ok 8 self/leaves-a-child # R-A-8");
    has("# line 19999");
    has("ok 9 self/says-much # R-A-9");
    has("ok 10 self/forks # R-A-10");
    has("ok 11 self/forks-with-threads # R-A-11");
    has("# 5 passed, 5 failed, 1 skipped");

    // The first failure ends the list, if so wanted.
    let mut out = Vec::new();
    let options = Options {
        fail_fast: true,
        ..options
    };
    let mut report = Report::new(Form::Ktap, &mut out, TESTS.len()).unwrap();
    assert!(!harness::run(TESTS, &options, &mut report, &mut log).unwrap());
    assert_eq!(report.totals.passed + report.totals.failed, 2);

    // Two at a time, then the one that is to be alone.
    let mut out = Vec::new();
    let options = Options {
        fail_fast: false,
        jobs: 2,
        ..options
    };
    let mut report = Report::new(Form::Ktap, &mut out, beside::TESTS.len()).unwrap();
    assert!(harness::run(beside::TESTS, &options, &mut report, &mut log).unwrap());
    let text = String::from_utf8(out).unwrap();
    let results: Vec<_> = text.lines().filter(|line| line.contains("ok ")).collect();
    for name in [" beside/meets ", " beside/met "] {
        assert!(
            results[..2].iter().any(|line| line.contains(name)),
            "{text}"
        );
    }
    let rest = [
        "ok 3 beside/passes # R-B-5",
        "not ok 4 beside/hangs # R-B-4",
        "ok 5 beside/after-others # R-B-1",
    ];
    assert_eq!(results[2..], rest, "{text}");
    println!("the harness tells every kind of failure");
}
