// SPDX-License-Identifier: GPL-2.0

//! Runs the benchmarks of the kernel and says what they found: see `--help`.

// The documentation of the arguments is the text of --help.
#![allow(clippy::doc_markdown)]
// Figures are for people, and few.
#![allow(clippy::cast_precision_loss, clippy::format_push_string)]

mod busy;
mod collect;
mod compare;
mod figure;
mod irqsoff;
mod page;
mod plot;
mod run;
mod table;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::figure::Results;
use crate::run::Set;

/// An error that ends a command.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// A file that cannot be read or written.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// The module cannot be used.
    #[error("kfi_bench.ko: {0}")]
    Module(std::io::Error),
    /// The provider cannot be loaded with other parameters.
    #[error("kfi_soft.ko: {0}")]
    Provider(std::io::Error),
    /// Input that is no result.
    #[error("{0}")]
    Results(String),
    /// A plot that cannot be drawn.
    #[error("{0}: {1}")]
    Plot(String, String),
}

/// Benchmarks of kfabric
///
/// `run` and `irqsoff` are for the guest, all others for the host; `make bench` and `make irqsoff` do
/// all.
#[derive(Debug, Parser)]
#[command(name = "kfi-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Load kfi_bench.ko and print what it measures, a line of JSON for each figure
    ///
    /// Each set has a kfi_soft.ko of its own, with the parameters that it needs: one in which much may
    /// be pending, or NICs that have addresses. Afterwards it is loaded as it was. Rows of the tables
    /// whose rounds are far apart are measured again.
    Run {
        /// Measure only these
        #[arg(long, value_enum, value_name = "SET", value_delimiter = ',')]
        sets: Vec<Set>,
        /// Measure only items whose names contain one of these words
        #[arg(long, value_name = "WORD", value_delimiter = ',')]
        items: Vec<String>,
        /// Rounds that count
        #[arg(long, value_name = "N", default_value_t = 7)]
        rounds: u32,
        /// The module, beside which kfi_soft.ko lies
        #[arg(long, value_name = "FILE", default_value = "/modules/kfi_bench.ko")]
        module: PathBuf,
    },
    /// Load kfi_irqsoff.ko and print how long interrupts are off under its loads, in microseconds:
    /// a table, in which loads whose time grows with the size are bold
    Irqsoff {
        /// Only loads whose names contain one of these words
        #[arg(long, value_name = "WORD", value_delimiter = ',')]
        loads: Vec<String>,
        /// How much is queued
        #[arg(
            long,
            value_name = "N",
            value_delimiter = ',',
            default_values_t = [16, 64, 512, 4096]
        )]
        sizes: Vec<u32>,
        /// Show what was called where the longest time of the largest size has ended
        #[arg(long)]
        stacks: bool,
        /// The module
        #[arg(long, value_name = "FILE", default_value = "/modules/kfi_irqsoff.ko")]
        module: PathBuf,
    },
    /// Read what `run` prints, show it, and write a file of results
    Collect {
        /// Where it runs
        #[arg(long, value_name = "NAME")]
        vehicle: String,
        /// The file of results
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Write tables and plots of results, and a page with all of them, `index.html`
    Report {
        /// The file of results
        results: PathBuf,
        /// Results in QEMU, for columns of their own in `ratios.md` and `tcp.md`
        #[arg(long, value_name = "FILE")]
        qemu: Option<PathBuf>,
        /// Where tables and plots go
        #[arg(long, value_name = "FOLDER")]
        output: PathBuf,
    },
    /// Compare two files of results
    Compare {
        /// The file to compare with
        old: PathBuf,
        /// The file that is compared
        new: PathBuf,
        /// Changes below this many percent are noise
        #[arg(long, value_name = "PERCENT", default_value_t = 10.0)]
        noise: f64,
    },
    /// Replace the tables in a file, between the lines `<!-- NAME: begin -->` and
    /// `<!-- NAME: end -->`, where NAME is `bench` and `bench over TCP`
    Insert {
        /// Where `report` has written them
        tables: PathBuf,
        /// The file, Documentation/benchmarks.md
        file: PathBuf,
    },
}

fn execute(command: Command) -> Result<(), Error> {
    match command {
        Command::Run {
            sets,
            items,
            rounds,
            module,
        } => run::run(&module, &sets, &items, rounds),
        Command::Irqsoff {
            loads,
            sizes,
            stacks,
            module,
        } => irqsoff::run(&module, &loads, &sizes, stacks),
        Command::Collect { vehicle, output } => collect::collect(&vehicle, &output),
        Command::Report {
            results,
            qemu,
            output,
        } => {
            let results = Results::read(&results)?;
            let qemu = qemu.map(|path| Results::read(&path)).transpose()?;
            table::write(&results, qemu.as_ref(), &output)?;
            let plots = plot::write(&results, &output)?;
            page::write(&results, qemu.as_ref(), &plots, &output)
        }
        Command::Compare { old, new, noise } => {
            compare::compare(&Results::read(&old)?, &Results::read(&new)?, noise);
            Ok(())
        }
        Command::Insert { tables, file } => table::insert(&tables, &file),
    }
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kfi-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments() {
        Arguments::command().debug_assert();
        let arguments = ["kfi-bench", "run", "--sets", "tcp,mesh", "--items", "mesh"];
        let Command::Run { sets, items, .. } = Arguments::parse_from(arguments).command else {
            panic!("not what was asked for");
        };
        assert_eq!(sets, [Set::Tcp, Set::Mesh]);
        assert_eq!(items, ["mesh"]);
    }
}
