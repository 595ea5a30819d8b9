// SPDX-License-Identifier: GPL-2.0

//! `kfi-net`: what several machines do to each other over one fabric, checked end to end.
//!
//! Every machine runs the same command: see qemu-test/machines, which tells each by MACHINE and
//! MACHINES which one it is and how many there are. The first one leads, and prints the results; the
//! others do as they are told, by plain TCP beside the fabric.

// The documentation of the arguments is the text of --help.
#![allow(clippy::doc_markdown)]

mod accounts;
mod control;
mod demo;
mod keeper;
mod leader;
mod ledger;
mod message;
mod network;
mod place;
mod scenario;
mod traffic;
mod worker;

use std::fs;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Parser;

/// Why a machine cannot go on.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Let machines exchange messages, memory and counts, and check what arrives
///
/// Each machine runs this with the same arguments; MACHINE and MACHINES in its environment say which
/// one it is, from 1 on, and how many there are. The first one prints KTAP; the network and the second
/// one are what things happen to.
///
/// Exit status: 0 if nothing failed.
#[derive(Clone, Debug, Parser)]
#[command(name = "kfi-net", version)]
pub(crate) struct Arguments {
    /// Address of the first machine
    #[arg(long, default_value_t = Ipv4Addr::new(10, 0, 3, 1))]
    leader: Ipv4Addr,

    /// Seed of random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Seconds of traffic in each scenario
    #[arg(long, default_value_t = 5)]
    seconds: u64,

    /// Bytes of the longest messages
    #[arg(long, default_value_t = 64 << 10, value_parser = clap::value_parser!(u64).range(message::SHORTEST..=worker::LONGEST))]
    longest: u64,

    /// Instead of the scenarios: so many seconds of traffic while 2 % of all frames are lost and a machine
    /// is reset every 30 seconds, if the one before is back
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(scenario::SHORTEST_STORM..))]
    storm: Option<u64>,

    /// Show it to somebody who watches, with two machines, and print no results
    #[arg(long)]
    demo: bool,

    /// Only give the switch this order, on the first machine, and end: see qemu-test/switch.py; may be repeated
    #[arg(long, value_name = "TEXT")]
    order: Vec<String>,

    /// Be what the program starts on each machine but the first
    #[arg(long, hide = true)]
    worker: bool,

    /// Only these
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(scenario::names()))]
    scenarios: Vec<String>,
}

/// A number in the environment.
fn number(name: &str) -> Result<u32, Failure> {
    let text = std::env::var(name).map_err(|_| format!("{name} is not set"))?;
    Ok(text
        .parse()
        .map_err(|error| format!("{name}={text}: {error}"))?)
}

/// After how long without a word `kfi_soft` gives a machine up.
fn peer_timeout() -> Result<Duration, Failure> {
    let line = fs::read_to_string("/proc/cmdline")?;
    let parameters = keeper::parameters(&line, "kfi_soft");
    let own = |word: &&str| word.strip_prefix("peer_timeout=").map(str::to_owned);
    let millis = parameters.iter().find_map(own);
    Ok(Duration::from_millis(match millis {
        Some(millis) => millis.parse()?,
        None => 10_000,
    }))
}

fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let machine = number("MACHINE")?;
    let machines = number("MACHINES")?;
    let network = network::Network {
        own: arguments.leader,
        machines,
    };
    if !arguments.order.is_empty() {
        network.order(&arguments.order.join("\n"))?;
        return Ok(true);
    }
    if arguments.demo {
        demo::play(machine, arguments.leader)?;
        return Ok(true);
    }
    if arguments.worker {
        worker::work(machine, machines, arguments.leader)?;
        return Ok(true);
    }
    if machine != 1 {
        return Ok(keeper::keep()?.success());
    }
    let leader = leader::Leader::new(machines, peer_timeout()?)?;
    // The first machine takes part, too.
    let local = thread::spawn(move || worker::work(machine, machines, Ipv4Addr::LOCALHOST));
    let all_passed = scenario::run(leader, network, arguments)?;
    local.join().map_err(|_| "a thread has panicked")??;
    Ok(all_passed)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("Bail out! {error}");
            ExitCode::FAILURE
        }
    }
}
