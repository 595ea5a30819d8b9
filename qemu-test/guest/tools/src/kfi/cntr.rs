// SPDX-License-Identifier: GPL-2.0

//! `kfi cntr`

use std::fmt;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use kfi::{Caps, CntrAttr, Counter, WaitObj};

use crate::output::{During, Problem};
use crate::setup::Choice;
use crate::steps::{self, millis, number, play, sleep, Step};

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
    /// Operations, done in this order
    #[arg(value_name = "OPERATION", required = true)]
    steps: Vec<Step<Operation>>,

    /// Object that a wait sleeps on
    #[arg(short, long, value_enum, default_value = "queue")]
    wait_obj: Wait,

    #[command(flatten)]
    choice: Choice,

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

/// An operation on a counter.
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

impl steps::Operation for Operation {
    type Target = Counter;

    fn parse(name: &str, argument: Option<&str>) -> Result<Self, String> {
        let value = || number(argument.ok_or(format!("{name} needs a number: {name}=N"))?);
        Ok(match name {
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
        })
    }

    fn run(&self, counter: &Counter) -> kfi::Result<Option<String>> {
        let text = |value: u64| Some(value.to_string());
        match *self {
            Self::Add(value) => counter.add(value).map(|()| None),
            Self::AddErr(value) => counter.add_err(value).map(|()| None),
            Self::Set(value) => counter.set(value).map(|()| None),
            Self::SetErr(value) => counter.set_err(value).map(|()| None),
            Self::Read => counter.read().map(text),
            Self::ReadErr => counter.read_err().map(text),
            Self::Wait(threshold, timeout) => counter.wait_ms(threshold, timeout).map(|()| None),
            Self::Sleep(time) => {
                sleep(time);
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

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let wait_obj = match arguments.wait_obj {
        Wait::None => WaitObj::NONE,
        Wait::Unspec => WaitObj::UNSPEC,
        Wait::Queue => WaitObj::QUEUE,
    };
    // The counter keeps the domain, and that the fabric.
    let counter = arguments
        .choice
        .open(Caps::empty())?
        .domain
        .counter(&CntrAttr::new().wait_obj(wait_obj))
        .during("kfi_cntr_open")?;
    play(&arguments.steps, &counter, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Result<Step<Operation>, String> {
        text.parse()
    }

    #[allow(clippy::unnecessary_wraps)] // To compare with what may be an error.
    fn now(operation: Operation) -> Result<Step<Operation>, String> {
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
