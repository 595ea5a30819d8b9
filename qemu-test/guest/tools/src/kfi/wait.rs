// SPDX-License-Identifier: GPL-2.0

//! `kfi wait`

use std::fmt;
use std::process::ExitCode;

use clap::Args;
use kfi::{Caps, WaitSet, WaitSetAttr};

use crate::members::{Change, MemberArguments, Members};
use crate::output::{During, Problem};
use crate::steps::{millis, play, Operation, Step};

/// Try a wait set by hand
///
/// Opens a wait set whose members are counters, named a, b and so on, and a
/// completion queue, named q. Does one operation after the other, and prints what
/// each one returned. Operations are
///
///   wait           wait until something has happened to a member
///   wait=MS        the same, for at most MS milliseconds
///   add=M,N        add N, or 1, to counter M
///   adderr=M,N     the same for its error value
///   write=q        put a completion into the queue, if the provider lets tests do that
///   read=M         print a counter, or take completions out of the queue
///   sleep=MS       do nothing for a while
///
/// An operation with @MS at its end is done MS milliseconds after the start, in
/// a thread of its own, while the others go on: so there is somebody to wake a
/// wait.
///
/// A queue that is not empty makes the set ready, and so does a counter that was
/// changed since the last wait has told of it.
///
/// An operation that kfabric answers with an error is no failure of this
/// command.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
        kfi wait add=b@100 wait read=b wait=50\n  \
        kfi wait write=q wait wait read=q wait=50"
)]
pub(crate) struct Arguments {
    /// Operations, done in this order
    #[arg(value_name = "OPERATION", required = true)]
    steps: Vec<Step<WaitOperation>>,

    #[command(flatten)]
    members: MemberArguments,
}

/// An operation of `kfi wait`.
#[derive(Clone, Debug, PartialEq)]
enum WaitOperation {
    Wait(i32),
    Change(Change),
}

/// The objects that operations work on; the members are closed first.
struct Target {
    members: Members,
    set: WaitSet,
}

impl Operation for WaitOperation {
    type Target = Target;

    fn parse(name: &str, argument: Option<&str>) -> Result<Self, String> {
        if name == "wait" {
            return Ok(Self::Wait(argument.map_or(Ok(-1), millis)?));
        }
        Change::parse(name, argument)?
            .map(Self::Change)
            .ok_or(format!("what is {name:?}?"))
    }

    fn run(&self, target: &Target) -> kfi::Result<Option<String>> {
        match self {
            Self::Wait(timeout) => target.set.wait_ms(*timeout).map(|()| None),
            Self::Change(change) => change.run(&target.members),
        }
    }
}

impl fmt::Display for WaitOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait(timeout @ 0..) => write!(f, "wait, {timeout} ms"),
            Self::Wait(_) => f.write_str("wait"),
            Self::Change(change) => change.fmt(f),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let place = arguments.members.choice.open(Caps::empty())?;
    let set = place.fabric.wait_set(&WaitSetAttr::new());
    let set = set.during("kfi_wait_open")?;
    let members = Members::new(&arguments.members, &place, Some(set.handle()))?;
    let target = Target { members, set };
    play(&arguments.steps, &target, arguments.members.json)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        let step = |text: &str| text.parse::<Step<WaitOperation>>().map(|s| s.operation);
        assert_eq!(step("wait"), Ok(WaitOperation::Wait(-1)));
        assert_eq!(step("wait=50"), Ok(WaitOperation::Wait(50)));
        let write = WaitOperation::Change(Change::Write);
        assert_eq!(step("write=q@5"), Ok(write));
        for text in ["", "wait=x", "poll", "add"] {
            assert!(step(text).is_err(), "{text}");
        }
    }
}
