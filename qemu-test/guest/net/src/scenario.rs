// SPDX-License-Identifier: GPL-2.0

//! Scenarios: events at the machines and in the network, and the rules that hold all the same.

use std::time::{Duration, Instant};

use crate::accounts::{Accounts, Sums};
use crate::control::{Order, Plan};
use crate::leader::Leader;
use crate::network::Network;
use crate::{Arguments, Failure};

/// Between two resets in a storm.
const RESETS: Duration = Duration::from_secs(30);

/// Seconds of the shortest storm: in it one machine is reset.
pub(crate) const SHORTEST_STORM: u64 = 2 * RESETS.as_secs();

/// Events while there is traffic.
struct Scenario {
    name: &'static str,
    /// Nothing fails, as the layers below mend all that goes wrong.
    calm: bool,
    happens: fn(&mut Leader, Network) -> Result<(), Failure>,
}

/// All of them, in the order in which they are run.
const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "calm",
        calm: true,
        happens: |_, _| Ok(()),
    },
    Scenario {
        name: "bad-cables",
        calm: true,
        happens: |_, network| Ok(network.spoil()?),
    },
    Scenario {
        name: "connections-reset",
        calm: true,
        happens: |_, network| Ok(network.reset_connections(0.5)?),
    },
    Scenario {
        name: "cable-pulled",
        calm: true,
        happens: |leader, network| {
            leader.pass(Duration::from_secs(1))?;
            network.pull(2)?;
            leader.pass(leader.peer_timeout / 4)?;
            Ok(network.repair()?)
        },
    },
    Scenario {
        name: "cable-out",
        calm: false,
        happens: |leader, network| {
            leader.pass(Duration::from_secs(1))?;
            network.pull(2)?;
            // Until the connection is given up, and for as long as another one is tried.
            leader.pass(leader.peer_timeout * 5 / 2)?;
            Ok(network.repair()?)
        },
    },
    Scenario {
        name: "killed",
        calm: false,
        happens: |leader, _| {
            leader.pass(Duration::from_secs(1))?;
            leader.strike(2, &Order::Kill)
        },
    },
    Scenario {
        name: "unloaded",
        calm: false,
        happens: |leader, _| {
            leader.pass(Duration::from_secs(1))?;
            leader.strike(2, &Order::Reload)
        },
    },
    Scenario {
        name: "reset",
        calm: false,
        happens: |leader, _| {
            leader.pass(Duration::from_secs(1))?;
            leader.strike(2, &Order::Reset)
        },
    },
    Scenario {
        name: "calm-again",
        calm: true,
        happens: |_, _| Ok(()),
    },
];

/// Prints results as KTAP.
#[derive(Default)]
struct Report {
    number: usize,
    failed: usize,
}

impl Report {
    fn result(&mut self, name: &str, wrong: &[String], remark: &str) {
        self.number += 1;
        for line in wrong {
            println!("# {line}");
        }
        if !remark.is_empty() {
            println!("# {name}: {remark}");
        }
        let verdict = if wrong.is_empty() { "ok" } else { "not ok" };
        self.failed += usize::from(!wrong.is_empty());
        println!("{verdict} {} {name}", self.number);
    }
}

/// All that scenarios need.
struct Run<'a> {
    leader: Leader,
    network: Network,
    report: Report,
    accounts: Accounts,
    arguments: &'a Arguments,
}

impl Run<'_> {
    /// Makes traffic while something happens.
    fn one(
        &mut self,
        name: &str,
        calm: bool,
        seconds: u64,
        happens: impl FnOnce(&mut Leader, Network) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let plan = Plan {
            seed: self.arguments.seed.wrapping_add(self.report.number as u64),
            millis: seconds * 1000,
            longest: self.arguments.longest,
        };
        let start = Instant::now();
        self.leader.traffic(&plan)?;
        happens(&mut self.leader, self.network)?;
        let books = self.leader.finish()?;
        self.network.repair()?;
        let mut sums = Sums::default();
        let wrong = self.accounts.settle(&books, calm, &mut sums);
        let remark = format!(
            "{} messages and {} accesses, {} and {} failed, {:.1} s",
            sums.succeeded,
            sums.accesses,
            sums.failed,
            sums.failed_accesses,
            start.elapsed().as_secs_f32()
        );
        self.report.result(&format!("net/{name}"), &wrong, &remark);
        Ok(())
    }
}

/// Frames are lost, and one machine after the other is reset, but for the first.
fn storm(leader: &mut Leader, network: Network, seconds: u64) -> Result<(), Failure> {
    network.lose(2)?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut machine, mut resets) = (1, 0);
    while Instant::now() + RESETS < end {
        leader.pass(RESETS)?;
        // Slow machines take longer than that to come back.
        if leader.away == 0 {
            machine = if machine == leader.machines() {
                2
            } else {
                machine + 1
            };
            leader.strike(machine, &Order::Reset)?;
            resets += 1;
        }
    }
    println!("# net/storm: {resets} resets");
    Ok(())
}

/// Runs the scenarios; returns whether none failed.
pub(crate) fn run(
    mut leader: Leader,
    network: Network,
    arguments: &Arguments,
) -> Result<bool, Failure> {
    println!("KTAP version 1");
    leader.gather()?;
    network.repair()?;
    let mut run = Run {
        leader,
        network,
        report: Report::default(),
        accounts: Accounts::default(),
        arguments,
    };
    run.report.result("net/gathers", &[], "");
    if let Some(seconds) = arguments.storm {
        run.one("storm", false, seconds, |leader, network| {
            storm(leader, network, seconds)
        })?;
        run.one("calm-again", true, arguments.seconds, |_, _| Ok(()))?;
    } else {
        let names = &arguments.scenarios;
        for scenario in SCENARIOS {
            if names.is_empty() || names.iter().any(|name| name == scenario.name) {
                let seconds = arguments.seconds;
                run.one(scenario.name, scenario.calm, seconds, scenario.happens)?;
            }
        }
    }
    println!("1..{}", run.report.number);
    run.leader.dismiss()?;
    Ok(run.report.failed == 0)
}

/// Returns the names of all scenarios.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name)
}
