// SPDX-License-Identifier: GPL-2.0

//! The common part of all commands: the device, output, and errors.

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
    /// Something happened that should not have.
    #[error("{0}")]
    Wrong(String),
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

/// Says which call failed.
pub(crate) trait During<T> {
    /// The result of this call.
    fn during(self, call: &'static str) -> Result<T, Problem>;
}

impl<T> During<T> for kfi::Result<T> {
    fn during(self, call: &'static str) -> Result<T, Problem> {
        self.map_err(|error| Problem::Call(call, error))
    }
}

/// Opens the device.
pub(crate) fn open() -> Result<Session, Problem> {
    Session::open().map_err(Problem::Device)
}

/// An error of kfabric by its name alone: `kfi errno` tells what it means.
pub(crate) fn error_text(error: kfi::Error) -> String {
    match error {
        kfi::Error::Os(_) => error.to_string(),
        kfi::Error::Fabric(errno) => match errno.name() {
            Some(name) => format!("-{name}"),
            None => errno.to_string(),
        },
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
