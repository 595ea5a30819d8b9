// SPDX-License-Identifier: GPL-2.0

//! `kfi errno`

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use kfi::KfiErrno;
use serde::Serialize;

use crate::output::{print_json, Problem};

/// Explain kfabric's error numbers
///
/// Without an argument all of them. Needs no device.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A number of either sign, such as -259, or a name, such as EAVAIL
    #[arg(value_name = "NUMBER|NAME", allow_hyphen_values = true)]
    which: Option<String>,

    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    number: i32,
    name: &'static str,
    text: &'static str,
    linux: bool,
}

impl Entry {
    fn new(errno: KfiErrno) -> Option<Self> {
        Some(Self {
            number: errno.number(),
            name: errno.name()?,
            text: errno.text()?,
            linux: errno.is_linux(),
        })
    }
}

fn find(which: &str) -> Option<Entry> {
    let errno = match which.parse() {
        Ok(number) => KfiErrno::new(number),
        Err(_) => KfiErrno::by_name(which.trim_start_matches('-'))?,
    };
    Entry::new(errno)
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let entries: Vec<Entry> = match &arguments.which {
        Some(which) => vec![find(which)
            .ok_or_else(|| Problem::Nothing(format!("there is no error number {which}")))?],
        None => KfiErrno::all().filter_map(Entry::new).collect(),
    };
    if arguments.json {
        print_json(&entries)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = io::stdout().lock();
    for entry in entries {
        let origin = if entry.linux { "" } else { ", kfabric only" };
        let Entry {
            number, name, text, ..
        } = entry;
        writeln!(out, "{number:>3}  {name:<20} {text}{origin}")?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn by_number_and_by_name() {
        for which in ["259", "-259", "EAVAIL", "-KFI_EAVAIL", "kfi_eavail"] {
            assert_eq!(find(which).map(|entry| entry.name), Some("KFI_EAVAIL"));
        }
        for which in ["0", "9999", "EGAL", ""] {
            assert!(find(which).is_none(), "{which}");
        }
    }
}
