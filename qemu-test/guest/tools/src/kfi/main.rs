// SPDX-License-Identifier: GPL-2.0

//! `kfi`, the command line of kfabric: see `--help`.

// The documentation of the arguments is the text of --help.
#![allow(clippy::doc_markdown)]

mod cntr;
mod dwq;
mod errno;
mod info;
mod members;
mod output;
mod pingpong;
mod poll;
mod setup;
mod stat;
mod steps;
mod trigger;
mod version;
mod wait;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::output::Problem;

/// Look at kfabric, and try it by hand
///
/// kfabric is the kernel twin of libfabric. This command reaches it through
/// /dev/kfi, which is there when kfi_shim.ko is loaded; a provider, such as
/// kfi_soft.ko, makes it useful.
#[derive(Debug, Parser)]
#[command(name = "kfi", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Arguments),
    Cntr(cntr::Arguments),
    Pingpong(pingpong::Arguments),
    Wait(wait::Arguments),
    Poll(poll::Arguments),
    Trigger(trigger::Arguments),
    Dwq(dwq::Arguments),
    Stat(stat::Arguments),
    Errno(errno::Arguments),
    Version(version::Arguments),
}

fn main() -> ExitCode {
    let result = match &Arguments::parse().command {
        Command::Info(arguments) => info::run(arguments),
        Command::Cntr(arguments) => cntr::run(arguments),
        Command::Pingpong(arguments) => pingpong::run(arguments),
        Command::Wait(arguments) => wait::run(arguments),
        Command::Poll(arguments) => poll::run(arguments),
        Command::Trigger(arguments) => trigger::run(arguments),
        Command::Dwq(arguments) => dwq::run(arguments),
        Command::Stat(arguments) => stat::run(arguments),
        Command::Errno(arguments) => errno::run(arguments),
        Command::Version(arguments) => version::run(arguments),
    };
    match result {
        Ok(status) => status,
        // `kfi info | head` is no mistake.
        Err(Problem::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("kfi: {problem}");
            ExitCode::FAILURE
        }
    }
}
