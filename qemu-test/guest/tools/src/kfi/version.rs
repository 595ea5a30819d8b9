// SPDX-License-Identifier: GPL-2.0

//! `kfi version`

use std::process::ExitCode;

use clap::Args;
use kfi::ApiVersion;
use serde::Serialize;

use crate::output::{open, print_json, Problem};

/// Print the versions of this command and of what it talks to
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Versions {
    command: &'static str,
    built_for_interface: u32,
    built_for_api: ApiVersion,
    interface: u32,
    api: ApiVersion,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let running = open()?
        .version()
        .map_err(|error| Problem::Call("KFI_SHIM_VERSION", error))?;
    let versions = Versions {
        command: env!("CARGO_PKG_VERSION"),
        built_for_interface: kfi::uapi::KFI_SHIM_INTERFACE,
        built_for_api: ApiVersion::CURRENT,
        interface: running.interface,
        api: running.api,
    };
    if arguments.json {
        print_json(&versions)?;
    } else {
        println!("kfi: {}", versions.command);
        println!(
            "interface of {}: {} (built for {})",
            kfi::DEVICE,
            versions.interface,
            versions.built_for_interface
        );
        println!(
            "kfabric API: {} (built for {})",
            versions.api, versions.built_for_api
        );
    }
    Ok(ExitCode::SUCCESS)
}
