// SPDX-License-Identifier: GPL-2.0

//! `kfi cntr`

use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::mpsc::Sender;
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use kfi::{CntrAttr, Counter, Error, Query, WaitObj};
use serde::Serialize;

use crate::output::{open, print_json, Problem};

/// Try a counter by hand
///
/// Opens a counter, does one operation after the other on it, and prints what
/// each one returned. Operations are
///
///   add=N set=N         change the success value
///   adderr=N seterr=N   change the error value
///   read readerr        print a value
///   wait=N              wait until the success value is N or more
///   wait=N,MS           the same, for at most MS milliseconds
///   sleep=MS            do nothing for a while
///   getopsflag          print the default operation flags
///   setopsflag=N        change them
///   getwaitobj          print what waiting threads sleep on
///
/// An operation with @MS at its end is done MS milliseconds after the start, in
/// a thread of its own, while the others go on: so there is somebody to wake a
/// wait.
///
/// N is decimal or hexadecimal (0x10), with a minus sign counted down from 2^64,
/// or max.
///
/// An operation that kfabric answers with an error is no failure of this
/// command.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
        kfi cntr add=5 read wait=3,100 wait=6,100\n  \
        kfi cntr add=2@100 add=3@200 wait=5\n  \
        kfi cntr adderr=1@100 wait=5 readerr\n  \
        kfi cntr set=max add=1 read"
)]
pub(crate) struct Arguments {
    /// What to do, in this order
    #[arg(value_name = "OPERATION", required = true)]
    steps: Vec<Step>,

    /// What a wait sleeps on
    #[arg(short, long, value_enum, default_value = "queue")]
    wait_obj: Wait,

    /// Take the provider of this name, not the first one
    #[arg(short, long, value_name = "NAME")]
    provider: Option<String>,

    /// Take this domain, not the first one
    #[arg(short, long, value_name = "NAME")]
    domain: Option<String>,

    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Wait {
    /// KFI_WAIT_NONE: it cannot
    None,
    /// KFI_WAIT_UNSPEC
    Unspec,
    /// KFI_WAIT_QUEUE
    Queue,
}

/// An operation, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    operation: Operation,
    /// Milliseconds after the start; else after the one before.
    after: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Add(u64),
    AddErr(u64),
    Set(u64),
    SetErr(u64),
    Read,
    ReadErr,
    Wait(u64, i32),
    Sleep(u32),
    GetOpsFlag,
    SetOpsFlag(u64),
    GetWaitObj,
}

impl Operation {
    /// Does it; some give a value.
    fn run(self, counter: &Counter) -> kfi::Result<Option<String>> {
        let text = |value: u64| Some(value.to_string());
        match self {
            Self::Add(value) => counter.add(value).map(|()| None),
            Self::AddErr(value) => counter.add_err(value).map(|()| None),
            Self::Set(value) => counter.set(value).map(|()| None),
            Self::SetErr(value) => counter.set_err(value).map(|()| None),
            Self::Read => counter.read().map(text),
            Self::ReadErr => counter.read_err().map(text),
            Self::Wait(threshold, timeout) => counter.wait_ms(threshold, timeout).map(|()| None),
            Self::Sleep(time) => {
                thread::sleep(Duration::from_millis(time.into()));
                Ok(None)
            }
            Self::GetOpsFlag => counter.ops_flags().map(|flags| Some(format!("{flags:#x}"))),
            Self::SetOpsFlag(flags) => counter.set_ops_flags(flags).map(|()| None),
            Self::GetWaitObj => counter.wait_obj().map(|obj| Some(obj.to_string())),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(value) => write!(f, "add {value}"),
            Self::AddErr(value) => write!(f, "adderr {value}"),
            Self::Set(value) => write!(f, "set {value}"),
            Self::SetErr(value) => write!(f, "seterr {value}"),
            Self::Read => f.write_str("read"),
            Self::ReadErr => f.write_str("readerr"),
            Self::Wait(threshold, timeout @ 0..) => write!(f, "wait {threshold}, {timeout} ms"),
            Self::Wait(threshold, _) => write!(f, "wait {threshold}"),
            Self::Sleep(time) => write!(f, "sleep {time} ms"),
            Self::GetOpsFlag => f.write_str("getopsflag"),
            Self::SetOpsFlag(flags) => write!(f, "setopsflag {flags:#x}"),
            Self::GetWaitObj => f.write_str("getwaitobj"),
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None if digits == "max" => Ok(u64::MAX),
        None => digits.parse(),
    };
    let value = value.map_err(|_| format!("{text:?} is no number"))?;
    Ok(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

fn millis<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no number of milliseconds"))
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (what, after) = match text.split_once('@') {
            Some((what, after)) => (what, Some(millis(after)?)),
            None => (text, None),
        };
        let (name, argument) = match what.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (what, None),
        };
        let value = || number(argument.ok_or(format!("{name} needs a number: {name}=N"))?);
        let operation = match name {
            "add" => Operation::Add(value()?),
            "adderr" => Operation::AddErr(value()?),
            "set" => Operation::Set(value()?),
            "seterr" => Operation::SetErr(value()?),
            "setopsflag" => Operation::SetOpsFlag(value()?),
            "wait" => match argument.and_then(|argument| argument.split_once(',')) {
                Some((threshold, timeout)) => Operation::Wait(number(threshold)?, millis(timeout)?),
                None => Operation::Wait(value()?, -1),
            },
            "sleep" => Operation::Sleep(millis(argument.unwrap_or_default())?),
            "read" | "readerr" | "getopsflag" | "getwaitobj" if argument.is_some() => {
                return Err(format!("{name} takes no argument"));
            }
            "read" => Operation::Read,
            "readerr" => Operation::ReadErr,
            "getopsflag" => Operation::GetOpsFlag,
            "getwaitobj" => Operation::GetWaitObj,
            _ => return Err(format!("what is {name:?}?")),
        };
        Ok(Self { operation, after })
    }
}

/// What one operation gave, with times in milliseconds since the start.
#[derive(Debug, Serialize)]
struct Done {
    operation: String,
    begin: f64,
    end: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Done {
    fn new(step: Step, counter: &Counter, start: Instant) -> Self {
        let begin = start.elapsed();
        let result = step.operation.run(counter);
        let end = start.elapsed();
        let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let (value, error) = match result {
            Ok(value) => (value, None),
            Err(error) => (None, Some(error_text(error))),
        };
        Self {
            operation: step.operation.to_string(),
            begin: ms(begin),
            end: ms(end),
            value,
            error,
        }
    }
}

fn error_text(error: Error) -> String {
    match error {
        Error::Os(_) => error.to_string(),
        // What it means, `kfi errno` tells.
        Error::Fabric(errno) => match errno.name() {
            Some(name) => format!("-{name}"),
            None => errno.to_string(),
        },
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = match (&self.value, &self.error) {
            (Some(value), _) => value,
            (None, Some(error)) => error,
            (None, None) => "0",
        };
        let Self {
            operation,
            begin,
            end,
            ..
        } = self;
        let took = end - begin;
        write!(f, "{end:10.3} ms  {operation:<24} {result}")?;
        if took >= 1.0 {
            write!(f, "  (took {took:.3} ms)")?;
        }
        Ok(())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let counter = Arc::new(open_counter(arguments)?);
    let (tx, rx) = mpsc::channel();
    let start = Instant::now();

    let done = thread::scope(|scope| {
        for step in &arguments.steps {
            if let Some(after) = step.after {
                let (counter, tx) = (counter.clone(), tx.clone());
                scope.spawn(move || {
                    let time = Duration::from_millis(after.into());
                    thread::sleep(time.saturating_sub(start.elapsed()));
                    tx.send(Done::new(*step, &counter, start))
                });
            }
        }
        scope.spawn({
            let counter = counter.clone();
            move || in_order(&arguments.steps, &counter, start, &tx)
        });
        // As they come: one may take for ever.
        let mut done = Vec::new();
        for one in rx {
            if arguments.json {
                done.push(one);
            } else {
                println!("{one}");
            }
        }
        done
    });
    if arguments.json {
        print_json(&done)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn in_order(steps: &[Step], counter: &Counter, start: Instant, tx: &Sender<Done>) {
    for step in steps.iter().filter(|step| step.after.is_none()) {
        if tx.send(Done::new(*step, counter, start)).is_err() {
            return;
        }
    }
}

fn open_counter(arguments: &Arguments) -> Result<Counter, Problem> {
    let mut query = Query::new();
    if let Some(name) = &arguments.provider {
        query = query.provider(name);
    }
    if let Some(name) = &arguments.domain {
        query = query.domain(name);
    }
    let wait_obj = match arguments.wait_obj {
        Wait::None => WaitObj::NONE,
        Wait::Unspec => WaitObj::UNSPEC,
        Wait::Queue => WaitObj::QUEUE,
    };
    let info = open()?
        .getinfo(&query)
        .map_err(|error| Problem::Call("kfi_getinfo", error))?;
    let fabric = info
        .fabric(0)
        .map_err(|error| Problem::Call("kfi_fabric", error))?;
    let domain = fabric
        .domain(&info, 0)
        .map_err(|error| Problem::Call("kfi_domain", error))?;
    // The counter keeps the domain, and that the fabric.
    domain
        .counter(&CntrAttr::new().wait_obj(wait_obj))
        .map_err(|error| Problem::Call("kfi_cntr_open", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Result<Step, String> {
        text.parse()
    }

    #[allow(clippy::unnecessary_wraps)] // To compare with what may be an error.
    fn now(operation: Operation) -> Result<Step, String> {
        Ok(Step {
            operation,
            after: None,
        })
    }

    #[test]
    fn operations() {
        assert_eq!(step("add=5"), now(Operation::Add(5)));
        assert_eq!(step("add=-1"), now(Operation::Add(u64::MAX)));
        assert_eq!(step("seterr=0x10"), now(Operation::SetErr(16)));
        assert_eq!(step("set=max"), now(Operation::Set(u64::MAX)));
        assert_eq!(step("wait=3"), now(Operation::Wait(3, -1)));
        assert_eq!(step("wait=3,100"), now(Operation::Wait(3, 100)));
        assert_eq!(step("wait=3,-1"), now(Operation::Wait(3, -1)));
        assert_eq!(step("read"), now(Operation::Read));
        assert_eq!(
            step("add=2@150"),
            Ok(Step {
                operation: Operation::Add(2),
                after: Some(150)
            })
        );
    }

    #[test]
    fn mistakes() {
        for text in [
            "", "add", "add=", "add=x", "add=1@", "read=1", "sleep", "wait=1,x", "sub=1",
        ] {
            assert!(step(text).is_err(), "{text}");
        }
    }
}
