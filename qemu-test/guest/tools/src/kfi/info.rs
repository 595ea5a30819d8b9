// SPDX-License-Identifier: GPL-2.0

//! `kfi info`

use std::ffi::CString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use kfi::{Caps, EpType, Error, GetinfoFlags, KfiErrno, Query};

use crate::output::{open, print_json, Problem};

/// List fabrics, domains and endpoints that are offered
///
/// Prints what kfi_getinfo answers, best first, as fi_info prints it: one block
/// per answer, or with --long all attributes. Without options everything that
/// the loaded providers have.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only this provider
    #[arg(short, long, value_name = "NAME")]
    provider: Option<String>,

    /// Only what has these capabilities: names, with or without KFI_, joined by | or ,
    #[arg(short, long, value_name = "CAPS", value_parser = parse_caps)]
    caps: Option<Caps>,

    /// Only endpoints of this type: rdm, msg or dgram
    #[arg(short = 't', long = "type", value_name = "TYPE", value_parser = parse_type)]
    ep_type: Option<EpType>,

    /// Only this fabric
    #[arg(short, long, value_name = "NAME")]
    fabric: Option<String>,

    /// Only this domain
    #[arg(short, long, value_name = "NAME")]
    domain: Option<String>,

    /// Only this device or address
    #[arg(short, long, value_name = "NODE")]
    node: Option<CString>,

    /// Only this port
    #[arg(short = 'P', long, value_name = "PORT")]
    service: Option<CString>,

    /// NODE and PORT are the local ones, not the peer's
    #[arg(short, long)]
    source: bool,

    /// All attributes, flags by name
    #[arg(short = 'v', long, visible_alias = "verbose")]
    long: bool,

    /// As JSON: always all attributes
    #[arg(long, conflicts_with = "long")]
    json: bool,
}

/// Takes names of capabilities.
fn parse_caps(text: &str) -> Result<Caps, String> {
    let mut caps = Caps::empty();
    for name in text.split(['|', ',']).map(str::trim) {
        caps |= Caps::by_name(name).ok_or_else(|| format!("{name:?} is no capability"))?;
    }
    Ok(caps)
}

/// Takes the name of a type of endpoints.
fn parse_type(text: &str) -> Result<EpType, String> {
    let types = [EpType::RDM, EpType::MSG, EpType::DGRAM];
    EpType::by_name(text)
        .filter(|known| types.contains(known))
        .ok_or_else(|| format!("{text:?} is no type of endpoints"))
}

impl Arguments {
    fn query(&self) -> Query {
        let mut query = Query::new();
        if let Some(name) = &self.provider {
            query = query.provider(name);
        }
        if let Some(caps) = self.caps {
            query = query.caps(caps);
        }
        if let Some(ep_type) = self.ep_type {
            query = query.ep_type(ep_type);
        }
        if let Some(name) = &self.fabric {
            query = query.fabric(name);
        }
        if let Some(name) = &self.domain {
            query = query.domain(name);
        }
        if let Some(node) = &self.node {
            query = query.node(node.clone());
        }
        if let Some(service) = &self.service {
            query = query.service(service.clone());
        }
        if self.source {
            query = query.flags(GetinfoFlags::SOURCE);
        }
        query
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let info = match open()?.getinfo(&arguments.query()) {
        Ok(info) => info,
        // For a list that is for programs no answer is an empty list.
        Err(Error::Fabric(KfiErrno::ENODATA)) if arguments.json => {
            print_json(&[(); 0])?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(Problem::Call("kfi_getinfo", error)),
    };
    if arguments.json {
        print_json(&info.entries())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = io::stdout().lock();
    for (index, entry) in info.entries().iter().enumerate() {
        if arguments.long {
            let text = info.text(index);
            let text = text.map_err(|error| Problem::Call("kfi_tostr", error))?;
            write!(out, "---\n{text}")?;
        } else {
            write!(out, "{}", entry.short())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
