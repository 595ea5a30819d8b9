// SPDX-License-Identifier: GPL-2.0

//! `kfi dwq`: collectives that run by themselves, worked examples of deferred work.
//!
//! * [`graph`]: the parts of a collective, and how it serves many rounds;
//! * [`team`]: endpoints, and memory that others write to;
//! * [`barrier`], [`bcast`], [`allreduce`]: the collectives, to be read in this order.
//!
//! This module drives them, and looks at them: a member enters a round by adding
//! 1 to a counter. From the last one's entry until all are through, the host does
//! nothing but sleep.

mod allreduce;
mod barrier;
mod bcast;
mod graph;
mod team;

use std::io::{self, Write};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use kfi::{Error, KfiErrno};
use serde::Serialize;

use self::allreduce::Allreduce;
use self::barrier::Barrier;
use self::bcast::Bcast;
use self::graph::{Action, Description, Graph, NamedCounter};
use self::team::Team;
use crate::output::{print_json, During, Problem};
use crate::setup::Choice;

/// Run a collective that is made of deferred work
///
/// Builds it over some endpoints, once; queues the deferred works of all rounds
/// in advance, with rising thresholds; and then runs round after round by adding
/// 1 to a counter. Prints who waits for which counter at which threshold and does
/// what, checks every result, and measures.
///
/// Exit status: 0 if all results are right.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    collective: Collectives,
}

#[derive(Debug, Subcommand)]
enum Collectives {
    /// Nobody goes on before all have arrived
    Barrier(Common),
    /// All get what the first one has
    Bcast {
        #[command(flatten)]
        common: Common,

        /// Bytes
        #[arg(short, long, value_name = "BYTES", default_value_t = 64,
              value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
        size: u64,
    },
    /// All get the sums of what all have
    Allreduce {
        #[command(flatten)]
        common: Common,

        /// Numbers to be summed, each of 64 bits
        #[arg(short, long, value_name = "N", default_value_t = 4,
              value_parser = clap::value_parser!(u64).range(1..=256))]
        count: u64,
    },
}

#[derive(Args, Debug)]
struct Common {
    /// Endpoints that take part
    #[arg(short = 'n', long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u64).range(1..=256))]
    endpoints: u64,

    /// Rounds
    #[arg(short, long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rounds: u64,

    /// Queue so many rounds in advance, and after each round one more; else all, if they are not too many
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    ahead: Option<u64>,

    /// Do not print the graph
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    choice: Choice,

    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A collective whose works have been made.
trait Collective {
    /// The counters that start a round: each member who has to come adds 1.
    fn enter(&self) -> &[Rc<NamedCounter>];

    /// The counters that tell each member that a round is over: 1 in each.
    fn done(&self) -> &[Rc<NamedCounter>];

    /// Puts the data of a round in place.
    fn prepare(&self, round: u64) {
        let _ = round;
    }

    /// Looks at the result of a round.
    fn verify(&self, round: u64) -> Result<(), String> {
        let _ = round;
        Ok(())
    }
}

/// A round that is not over after this time never will be.
const PATIENCE: Duration = Duration::from_secs(30);

/// A provider has limits, and works take memory: so many are queued if nobody wants more.
const MANY: u64 = 20_000;

/// Microseconds, for people and for JSON.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e8).round() / 1e2
}

#[derive(Debug, Serialize)]
struct Times {
    min: f64,
    median: f64,
    max: f64,
}

impl Times {
    /// Of one time at least.
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |index: usize| times.get(index).copied().map_or(0.0, micros);
        Self {
            min: at(0),
            median: at(times.len() / 2),
            max: at(times.len().saturating_sub(1)),
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    collective: &'static str,
    domain: String,
    endpoints: usize,
    rounds: u64,
    /// Rounds that were queued in advance.
    ahead: u64,
    works_per_round: usize,
    graph: Vec<Description>,
    verified: bool,
    queue_us_per_round: f64,
    round_us: Times,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let mut graph = Graph::default();
    let (name, common) = match &arguments.collective {
        Collectives::Barrier(common) => ("barrier", common),
        Collectives::Bcast { common, .. } => ("bcast", common),
        Collectives::Allreduce { common, .. } => ("allreduce", common),
    };
    let team = Team::new(&common.choice, common.endpoints as usize)?;
    let collective: Box<dyn Collective> = match arguments.collective {
        Collectives::Barrier(_) => Box::new(Barrier::new(&team, &mut graph)?),
        Collectives::Bcast { size, .. } => Box::new(Bcast::new(&team, &mut graph, size as usize)?),
        Collectives::Allreduce { count, .. } => {
            Box::new(Allreduce::new(&team, &mut graph, count as usize)?)
        }
    };
    let report = drive(name, common, &team, graph, &*collective)?;
    if common.json {
        print_json(&report)?;
    } else {
        print(&report, common.quiet)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs all rounds.
fn drive(
    name: &'static str,
    common: &Common,
    team: &Team,
    mut graph: Graph,
    collective: &dyn Collective,
) -> Result<Report, Problem> {
    let works_per_round = graph.len();
    let description = graph.describe();
    let domain = &team.place.domain;

    // So that the host can sleep until everybody is through, and not ask one by
    // one, one more counter goes up by as many as there are in each round.
    let finished = team.counter(0, "finished")?;
    for done in collective.done() {
        graph.when(done, 1, Action::Add(finished.clone()));
    }

    let most = (MANY / graph.len() as u64).max(1);
    let ahead = common.ahead.unwrap_or(most).min(common.rounds);
    let mut queueing = Duration::ZERO;
    let mut queue = |round| {
        let start = Instant::now();
        graph.queue(domain, round)?;
        queueing += start.elapsed();
        Ok::<_, Problem>(())
    };
    for round in 1..=ahead {
        queue(round)?;
    }
    let mut times = Vec::new();
    for round in 1..=common.rounds {
        times.push(run_round(round, team, collective, &finished)?);
        // The counters stand where this round has left them; the works of a
        // round to come have thresholds above that.
        if round + ahead <= common.rounds {
            queue(round + ahead)?;
        }
    }
    team.check_errors()?;
    let entry = team.place.info.entries().first();
    Ok(Report {
        collective: name,
        domain: entry.map_or_else(String::new, |entry| entry.domain_attr.name.clone()),
        endpoints: team.size(),
        rounds: common.rounds,
        ahead,
        works_per_round,
        graph: description,
        verified: true,
        queue_us_per_round: micros(queueing / common.rounds as u32),
        round_us: Times::new(times),
    })
}

/// Runs one round, and checks it; returns the time from the last one's entry
/// until all are through.
fn run_round(
    round: u64,
    team: &Team,
    collective: &dyn Collective,
    finished: &NamedCounter,
) -> Result<Duration, Problem> {
    let enter = |counter: &NamedCounter| counter.counter.add(1).during("kfi_cntr_add");
    collective.prepare(round);

    // Another one is the last in every round.
    let entries = collective.enter();
    let last = round as usize % entries.len();
    for (index, counter) in entries.iter().enumerate() {
        if index != last {
            enter(counter)?;
        }
    }
    for counter in collective.done() {
        if counter.counter.read().during("kfi_cntr_read")? != round - 1 {
            let NamedCounter { member, .. } = **counter;
            return Err(Problem::Wrong(format!(
                "round {round}: member {member} is through before all have come"
            )));
        }
    }

    let start = Instant::now();
    enter(&entries[last])?;
    let through = round * team.size() as u64;
    let result = finished.counter.wait(through, Some(PATIENCE));
    let took = start.elapsed();
    if result == Err(Error::Fabric(KfiErrno::ETIMEDOUT)) {
        // It may say why.
        team.check_errors()?;
        return Err(stuck(round, collective));
    }
    result.during("kfi_cntr_wait")?;

    for counter in collective.done() {
        let is = counter.counter.read().during("kfi_cntr_read")?;
        if is != round {
            let NamedCounter { member, name, .. } = **counter;
            return Err(Problem::Wrong(format!(
                "round {round}: {name} of member {member} is {is}"
            )));
        }
    }
    collective
        .verify(round)
        .map_err(|what| Problem::Wrong(format!("round {round}: {what}")))?;
    Ok(took)
}

/// Says who is not through.
fn stuck(round: u64, collective: &dyn Collective) -> Problem {
    let waiting: Vec<_> = collective
        .done()
        .iter()
        .filter(|counter| counter.counter.read().is_ok_and(|is| is < round))
        .map(|counter| counter.member.to_string())
        .collect();
    let waiting = waiting.join(", ");
    Problem::Wrong(format!("round {round} does not end for members {waiting}"))
}

fn print(report: &Report, quiet: bool) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    let Report {
        collective,
        domain,
        endpoints,
        rounds,
        ahead,
        works_per_round,
        ..
    } = report;
    writeln!(
        out,
        "{collective} of {endpoints} endpoints of {domain}: {works_per_round} deferred works in each round"
    )?;
    if !quiet && !report.graph.is_empty() {
        writeln!(out, "\nIn round k:\n\n{}", Description::TITLE)?;
        for line in &report.graph {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    let queued = if ahead == rounds {
        "all queued before the first".to_owned()
    } else {
        format!("{ahead} queued ahead")
    };
    writeln!(out, "{rounds} rounds, {queued}; all are checked")?;
    writeln!(out, "queueing a round: {:.1} us", report.queue_us_per_round)?;
    let Times { min, median, max } = report.round_us;
    writeln!(
        out,
        "a round, from the last entry until all are through: median {median:.1} us, {min:.1} to {max:.1} us"
    )?;
    Ok(())
}
