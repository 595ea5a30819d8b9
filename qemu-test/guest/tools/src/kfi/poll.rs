// SPDX-License-Identifier: GPL-2.0

//! `kfi poll`

use std::fmt;
use std::process::ExitCode;

use clap::Args;
use kfi::{Caps, PollSet};

use crate::members::{Change, Member, MemberArguments, Members};
use crate::output::{During, Problem};
use crate::steps::{play, Operation, Step};

/// Try a poll set by hand
///
/// Opens a poll set whose members are counters, named a, b and so on, and a
/// completion queue, named q. Does one operation after the other, and prints what
/// each one returned. Operations are
///
///   poll           print which members have something new
///   poll=N         the same, N members at most
///   del=M insert=M take a member out of the set, or put it in again
///   add=M,N        add N, or 1, to counter M
///   adderr=M,N     the same for its error value
///   write=q        put a completion into the queue, if the provider lets tests do that
///   read=M         print a counter, or take completions out of the queue
///   sleep=MS       do nothing for a while
///
/// An operation with @MS at its end is done MS milliseconds after the start, in
/// a thread of its own, while the others go on.
///
/// A queue is told of as long as it is not empty. A counter is told of when
/// completions have changed it; the caller knows what add and adderr do.
///
/// An operation that kfabric answers with an error is no failure of this
/// command.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
        kfi poll poll write=q poll poll read=q poll\n  \
        kfi poll write=q del=q poll insert=q poll"
)]
pub(crate) struct Arguments {
    /// Operations, done in this order
    #[arg(value_name = "OPERATION", required = true)]
    steps: Vec<Step<PollOperation>>,

    #[command(flatten)]
    members: MemberArguments,
}

/// An operation of `kfi poll`.
#[derive(Clone, Debug, PartialEq)]
enum PollOperation {
    Poll(usize),
    Insert(Member),
    Delete(Member),
    Change(Change),
}

/// The objects that operations work on.
struct Target {
    set: PollSet,
    members: Members,
}

/// As many members can have something new.
const ALL: usize = 17;

impl Operation for PollOperation {
    type Target = Target;

    fn parse(name: &str, argument: Option<&str>) -> Result<Self, String> {
        let member = || Member::parse(argument.ok_or(format!("{name} needs a member"))?);
        match (name, argument) {
            ("poll", None) => Ok(Self::Poll(ALL)),
            ("poll", Some(count)) => match count.parse() {
                Ok(count @ 0..=ALL) => Ok(Self::Poll(count)),
                _ => Err(format!("{count:?} is no number up to {ALL}")),
            },
            ("insert", _) => member().map(Self::Insert),
            ("del", _) => member().map(Self::Delete),
            _ => Change::parse(name, argument)?
                .map(Self::Change)
                .ok_or(format!("what is {name:?}?")),
        }
    }

    fn run(&self, target: &Target) -> kfi::Result<Option<String>> {
        let Target { set, members } = target;
        match *self {
            Self::Poll(room) => {
                let names: Vec<_> = set
                    .poll(room)?
                    .into_iter()
                    .map(|context| match Member::by_context(context) {
                        Some(member) => member.to_string(),
                        None => format!("{context:#x}"),
                    })
                    .collect();
                Ok(Some(if names.is_empty() {
                    "nobody".to_owned()
                } else {
                    names.join(" ")
                }))
            }
            Self::Insert(Member::Queue) => set.add(&members.queue).map(|()| None),
            Self::Insert(member) => set.add(members.counter(member)?).map(|()| None),
            Self::Delete(Member::Queue) => set.del(&members.queue).map(|()| None),
            Self::Delete(member) => set.del(members.counter(member)?).map(|()| None),
            Self::Change(ref change) => change.run(members),
        }
    }
}

impl fmt::Display for PollOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poll(ALL) => f.write_str("poll"),
            Self::Poll(room) => write!(f, "poll, {room} at most"),
            Self::Insert(member) => write!(f, "insert {member}"),
            Self::Delete(member) => write!(f, "delete {member}"),
            Self::Change(change) => change.fmt(f),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let place = arguments.members.choice.open(Caps::empty())?;
    let members = Members::new(&arguments.members, &place, None)?;
    let set = place.domain.poll_set().during("kfi_poll_open")?;
    for counter in &members.counters {
        set.add(counter).during("kfi_poll_add")?;
    }
    set.add(&members.queue).during("kfi_poll_add")?;
    let target = Target { set, members };
    play(&arguments.steps, &target, arguments.members.json)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        let step = |text: &str| text.parse::<Step<PollOperation>>().map(|s| s.operation);
        assert_eq!(step("poll"), Ok(PollOperation::Poll(ALL)));
        assert_eq!(step("poll=1"), Ok(PollOperation::Poll(1)));
        assert_eq!(step("del=q"), Ok(PollOperation::Delete(Member::Queue)));
        for text in ["", "poll=x", "poll=18", "wait", "del", "insert=z"] {
            assert!(step(text).is_err(), "{text}");
        }
    }
}
