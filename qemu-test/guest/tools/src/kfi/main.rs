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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    const PAGE: &str = include_str!("../../../../../Documentation/man/kfi.1");

    /// Calls `look` with a command and all of its own.
    fn for_each(command: &clap::Command, look: &mut impl FnMut(&clap::Command)) {
        look(command);
        for inner in command.get_subcommands() {
            for_each(inner, look);
        }
    }

    #[test]
    fn the_manual_page_has_all_options() {
        let page = PAGE.replace("\\-", "-");
        let mut command = Arguments::command();
        command.build();
        let mut missing = Vec::new();
        for_each(&command, &mut |command| {
            let path = command.get_bin_name().unwrap_or_default();
            if !page.contains(command.get_name()) {
                missing.push(path.to_owned());
            }
            for option in command.get_arguments() {
                let long = option.get_long().filter(|long| *long != "version");
                if long.is_some_and(|long| !page.contains(&format!("--{long}"))) {
                    missing.push(format!("{path} --{}", long.unwrap_or_default()));
                }
            }
        });
        assert!(missing.is_empty(), "not in kfi.1: {missing:?}");
    }
}
