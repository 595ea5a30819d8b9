// SPDX-License-Identifier: GPL-2.0

//! The members that `kfi wait` and `kfi poll` watch: counters `a`, `b`, ..., and a completion queue `q`.

use std::fmt;

use clap::Args;
use kfi::{
    CntrAttr, Completion, CompletionQueue, Counter, CqAttr, Error, Handle, KfiErrno, WaitObj,
};

use crate::output::{During, Problem};
use crate::setup::{Choice, Place};
use crate::steps::{millis, number, sleep};

/// How many there are to be, and where.
#[derive(Args, Debug)]
pub(crate) struct MemberArguments {
    /// Counters
    #[arg(short, long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u8).range(1..=16))]
    counters: u8,

    #[command(flatten)]
    pub(crate) choice: Choice,

    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Counters, and a completion queue.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) counters: Vec<Counter>,
    pub(crate) queue: CompletionQueue,
}

impl Members {
    /// Opens them, as members of a wait set if there is one.
    pub(crate) fn new(
        arguments: &MemberArguments,
        place: &Place,
        wait_set: Option<Handle>,
    ) -> Result<Self, Problem> {
        let mut cntr_attr = CntrAttr::new();
        let mut cq_attr = CqAttr::new();
        if let Some(wait_set) = wait_set {
            cntr_attr = cntr_attr.wait_obj(WaitObj::SET).wait_set(wait_set);
            cq_attr = cq_attr.wait_obj(WaitObj::SET).wait_set(wait_set);
        }
        let counters = (0..arguments.counters)
            .map(|index| {
                let context = Member::Counter(index).context();
                let counter = place.domain.counter(&cntr_attr.context(context));
                counter.during("kfi_cntr_open")
            })
            .collect::<Result<_, _>>()?;
        let queue = cq_attr.context(Member::Queue.context());
        let queue = place.domain.completion_queue(&queue);
        Ok(Self {
            counters,
            queue: queue.during("kfi_cq_open")?,
        })
    }

    /// The counter of a name; as if its handle were not known if there is none.
    pub(crate) fn counter(&self, member: Member) -> kfi::Result<&Counter> {
        let none = Error::Fabric(KfiErrno::EINVAL);
        match member {
            Member::Counter(index) => self.counters.get(usize::from(index)).ok_or(none),
            Member::Queue => Err(none),
        }
    }
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Member {
    Counter(u8),
    Queue,
}

impl Member {
    /// Takes a name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.as_bytes() {
            b"q" => Ok(Self::Queue),
            [name @ b'a'..=b'p'] => Ok(Self::Counter(name - b'a')),
            _ => Err(format!("{text:?} is neither a counter (a, b, ...) nor q")),
        }
    }

    /// Its context, by which poll sets report it.
    pub(crate) fn context(self) -> u64 {
        match self {
            Self::Queue => 100,
            Self::Counter(index) => 1 + u64::from(index),
        }
    }

    /// Which one it is.
    pub(crate) fn by_context(context: u64) -> Option<Self> {
        match context {
            100 => Some(Self::Queue),
            1..=16 => Some(Self::Counter(context as u8 - 1)),
            _ => None,
        }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(index) => write!(f, "{}", char::from(b'a' + index)),
            Self::Queue => f.write_str("q"),
        }
    }
}

/// An operation on a member, or on none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Add(Member, u64),
    AddErr(Member, u64),
    Write,
    Read(Member),
    Sleep(u32),
}

impl Change {
    /// Takes it from the command line; `None` if it is something else.
    pub(crate) fn parse(name: &str, argument: Option<&str>) -> Result<Option<Self>, String> {
        let argument = || argument.ok_or(format!("{name} needs an argument"));
        // MEMBER or MEMBER,N
        let amount = || {
            let argument = argument()?;
            let (member, value) = match argument.split_once(',') {
                Some((member, value)) => (member, number(value)?),
                None => (argument, 1),
            };
            match Member::parse(member)? {
                Member::Queue => Err(format!("{name} wants a counter")),
                counter @ Member::Counter(_) => Ok((counter, value)),
            }
        };
        Ok(Some(match name {
            "add" => amount().map(|(member, value)| Self::Add(member, value))?,
            "adderr" => amount().map(|(member, value)| Self::AddErr(member, value))?,
            "write" => match Member::parse(argument()?)? {
                Member::Queue => Self::Write,
                Member::Counter(_) => return Err("write wants a queue: write=q".to_owned()),
            },
            "read" => Self::Read(Member::parse(argument()?)?),
            "sleep" => Self::Sleep(millis(argument()?)?),
            _ => return Ok(None),
        }))
    }

    /// Does it; some give a value.
    pub(crate) fn run(&self, members: &Members) -> kfi::Result<Option<String>> {
        match *self {
            Self::Add(member, value) => members.counter(member)?.add(value).map(|()| None),
            Self::AddErr(member, value) => members.counter(member)?.add_err(value).map(|()| None),
            Self::Write => members.queue.write(&Completion::default()).map(|()| None),
            Self::Read(Member::Queue) => {
                let taken = members.queue.read(16)?.len();
                Ok(Some(format!("{taken} taken out")))
            }
            Self::Read(member) => {
                let counter = members.counter(member)?;
                let (value, errors) = (counter.read()?, counter.read_err()?);
                Ok(Some(match errors {
                    0 => value.to_string(),
                    _ => format!("{value}, errors {errors}"),
                }))
            }
            Self::Sleep(time) => {
                sleep(time);
                Ok(None)
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(member, value) => write!(f, "add {value} to {member}"),
            Self::AddErr(member, value) => write!(f, "add {value} to errors of {member}"),
            Self::Write => f.write_str("completion for q"),
            Self::Read(member) => write!(f, "read {member}"),
            Self::Sleep(time) => write!(f, "sleep {time} ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_names_and_contexts() {
        for name in ["a", "b", "p", "q"] {
            let member = Member::parse(name).ok();
            assert_eq!(member.map(|m| m.to_string()).as_deref(), Some(name));
            assert_eq!(member.and_then(|m| Member::by_context(m.context())), member);
        }
        for name in ["", "r", "ab", "A", "0"] {
            assert!(Member::parse(name).is_err(), "{name}");
        }
        assert_eq!(Member::by_context(0), None);
    }

    #[test]
    fn changes() {
        let add = Change::Add(Member::Counter(1), 1);
        assert_eq!(Change::parse("add", Some("b")), Ok(Some(add)));
        let add = Change::Add(Member::Counter(0), 7);
        assert_eq!(Change::parse("add", Some("a,7")), Ok(Some(add)));
        assert_eq!(Change::parse("write", Some("q")), Ok(Some(Change::Write)));
        assert_eq!(Change::parse("poll", None), Ok(None));
        for (name, argument) in [("add", None), ("add", Some("q")), ("write", Some("a"))] {
            assert!(Change::parse(name, argument).is_err(), "{name}");
        }
    }
}
