// SPDX-License-Identifier: GPL-2.0

//! What all commands share: the device, output, and what can go wrong.

use std::io::{self, Write};

use kfi::{Session, DEVICE};
use serde::Serialize;
use thiserror::Error;

/// Why a command could not do its work.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    /// There is no device, or it cannot be opened.
    #[error("{DEVICE}: {0}{hint}", hint = hint(*.0))]
    Device(kfi::Error),
    /// A call failed.
    #[error("{0}: {1}")]
    Call(&'static str, kfi::Error),
    /// Nothing to choose from, or no such thing.
    #[error("{0}")]
    Nothing(String),
    /// The output cannot be written.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}

fn hint(error: kfi::Error) -> &'static str {
    match error {
        kfi::Error::Os(rustix::io::Errno::NOENT) => "; is kfi_shim.ko loaded?",
        kfi::Error::Os(rustix::io::Errno::ACCESS) => "; are you root?",
        _ => "",
    }
}

/// Opens the device.
pub(crate) fn open() -> Result<Session, Problem> {
    Session::open().map_err(Problem::Device)
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
