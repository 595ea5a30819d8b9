// SPDX-License-Identifier: GPL-2.0

//! Runs the conformance suite: see `--help`.

// The documentation of the arguments is the text of --help.
#![allow(clippy::doc_markdown)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use kfi_suite::env::Settings;
use kfi_suite::filter::{selects, Filter};
use kfi_suite::fuzz::recipe::Recipe;
use kfi_suite::fuzz::replay::Replay;
use kfi_suite::harness::{self, Options, Test};
use kfi_suite::kernel_log::KernelLog;
use kfi_suite::report::{Form, Report};
use kfi_suite::tests;

/// Conformance suite of kfabric over /dev/kfi
///
/// Each test runs in a process of its own and with a session of its own. What
/// the kernel complains about while a test runs, the test has failed for; if
/// several run, all of them have.
///
/// FILTER is a text to be found in a test's name or, with * or ?, a pattern for
/// the whole name. The results are printed as KTAP, each with the requirements
/// that it shows.
///
/// Exit status: 0 if nothing has failed, 1 if something has, 2 if no test could
/// be run.
#[derive(Debug, Parser)]
#[command(name = "kfi-suite", version)]
struct Arguments {
    /// Run only tests that fit one of these
    #[arg(value_name = "FILTER")]
    wanted: Vec<Filter>,

    /// The same as an option
    #[arg(short, long, value_name = "FILTER")]
    filter: Vec<Filter>,

    /// Do not run tests that fit
    #[arg(short = 'x', long, value_name = "FILTER")]
    exclude: Vec<Filter>,

    /// Run so many at a time of the tests that say that they may, before the
    /// others; 0 for as many as there are CPUs. The last one counts
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 1,
        overrides_with = "jobs"
    )]
    jobs: usize,

    /// Print the names of the tests, whether others may run beside them, and
    /// requirements, and run none
    #[arg(short, long)]
    list: bool,

    /// Run the whole list so often, each time with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,

    /// Seed of random numbers; else one that is printed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// How much stress tests do, as a factor: 0.1 for a slow kernel
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    scale: f64,

    /// Seconds that the random traffic of soak tests goes on for
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    soak: f64,

    /// Seconds after which a test has failed, soak tests that much later
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,

    /// Start no more tests after the first failure
    #[arg(long)]
    fail_fast: bool,

    /// Provider to test; else the first one that kfi_getinfo names
    #[arg(short, long, value_name = "NAME")]
    provider: Option<String>,

    /// Where the modules are, for the tests that load them
    #[arg(long, value_name = "FOLDER", default_value = "/modules")]
    modules: PathBuf,

    /// Fuzz for so long in each test of the area fuzz, instead of so many rounds
    #[arg(long, value_name = "SECONDS")]
    fuzz_seconds: Option<u64>,

    /// Run this round in the tests of the area fuzz, as a failed one names itself
    #[arg(long, value_name = "SEED/STEPS/PROCESSES[/KEPT]")]
    fuzz_replay: Option<Replay>,

    /// Run this sequence in the test fuzz/learning, as a failed one names itself
    #[arg(long, value_name = "SEQUENCE")]
    fuzz_sequence: Option<Recipe>,

    /// The sequences that fuzz/learning begins with; there may be no such file
    #[arg(long, value_name = "FILE", default_value = "/extra/dev_kfi.jsonl")]
    corpus: PathBuf,

    /// Tell which so many tests took longest
    #[arg(long, value_name = "N", default_value_t = 0)]
    slowest: usize,

    /// Print for people
    #[arg(long)]
    human: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number above 0, at most 1000000".to_owned()),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && factor <= 1000.0 => Ok(factor),
        _ => Err("a number above 0, at most 1000".to_owned()),
    }
}

/// A seed that is different next time, and short enough to be typed.
fn new_seed() -> u64 {
    let time = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default();
    (time.as_nanos() ^ u128::from(std::process::id()) << 16) as u64 % 1_000_000
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("kfi-suite: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let wanted = [&arguments.wanted[..], &arguments.filter].concat();
    let tests: Vec<Test> = tests::all()
        .into_iter()
        .filter(|test| selects(&wanted, &arguments.exclude, &test.full_name()))
        .collect();
    if tests.is_empty() {
        return Err(io::Error::other("no test has such a name"));
    }
    if arguments.list {
        for test in &tests {
            let company = if test.parallel { "parallel" } else { "alone" };
            let name = test.full_name();
            println!("{name:<48} {company:<8} {}", test.requirements);
        }
        return Ok(ExitCode::SUCCESS);
    }

    let jobs = match arguments.jobs {
        0 => kfi_host::thread::cpus()?.len(),
        jobs => jobs,
    };
    let seed = arguments.seed.unwrap_or_else(new_seed);
    let mut log = KernelLog::open();
    let form = if arguments.human {
        Form::Human
    } else {
        Form::Ktap
    };
    let count = tests.len() * arguments.repeat as usize;
    let mut report = Report::new(form, io::stdout().lock(), count)?;
    report.remark(&format!("seed {seed}, scale {}", arguments.scale))?;
    if !log.is_open() {
        report.remark("the kernel's log cannot be read here")?;
    }

    let mut options = Options {
        settings: Settings {
            seed,
            scale: arguments.scale,
            soak: arguments.soak,
            provider: arguments.provider.clone(),
            modules: arguments.modules.clone(),
            fuzz_time: arguments.fuzz_seconds.map(Duration::from_secs),
            replay: arguments.fuzz_replay.clone(),
            corpus: arguments.corpus.clone(),
            sequence: arguments.fuzz_sequence.clone(),
        },
        // Time that was asked for does not count as slow.
        time_limit: Duration::from_secs(arguments.time_limit)
            .saturating_add(Duration::from_secs(arguments.fuzz_seconds.unwrap_or(0)))
            .saturating_add(Duration::from_secs_f64(arguments.soak)),
        fail_fast: arguments.fail_fast,
        jobs,
    };
    let mut complete = true;
    for _ in 0..arguments.repeat {
        complete = complete && harness::run(&tests, &options, &mut report, &mut log)?;
        options.settings.seed = options.settings.seed.wrapping_add(1);
    }
    report.slowest(arguments.slowest)?;
    report.finish()?;
    Ok(ExitCode::from(u8::from(
        !complete || report.totals.failed > 0,
    )))
}
