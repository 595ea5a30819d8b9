// SPDX-License-Identifier: GPL-2.0

//! The parts of a collective: counters, and deferred works between them.
//!
//! A deferred work starts once, when its counter has reached its threshold, and
//! is gone then. So one work cannot serve two rounds, and the graph is a pattern
//! from which the works of each round are made. Nothing changes from round to
//! round but the thresholds. Counters are never set back: a counter that
//! goes up by 3 in every round is at 3 after the first one, at 6 after the
//! second, and works that wait for 3, 6, 9 belong to the rounds 1, 2, 3.
//!
//! For this reason rounds can be queued ahead, as many as one likes: works for
//! later rounds lie still, since their thresholds are out of reach.

use std::fmt;
use std::rc::Rc;

use kfi::{Counter, Domain, Handle, KfiErrno, OpType, Operation, Work};
use serde::Serialize;

use crate::output::{During, Problem};

/// A counter of a member, with a name for the reader.
#[derive(Debug)]
pub(crate) struct NamedCounter {
    pub(crate) member: usize,
    pub(crate) name: &'static str,
    pub(crate) counter: Counter,
}

/// The action of a work.
#[derive(Debug)]
pub(crate) enum Action {
    /// Adds 1 to a counter.
    Add(Rc<NamedCounter>),
    /// Transfers data.
    Transfer(Box<Transfer>),
}

/// A data transfer.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) op_type: OpType,
    pub(crate) endpoint: Handle,
    pub(crate) operation: Operation,
    /// Goes up when the initiator knows that the transfer is over.
    pub(crate) completion: Option<Rc<NamedCounter>>,
    /// Goes up at the target.
    pub(crate) arrival: Option<Rc<NamedCounter>>,
    pub(crate) target: usize,
    pub(crate) text: String,
}

/// One work of each round.
#[derive(Debug)]
struct Step {
    trigger: Rc<NamedCounter>,
    /// How much the counter goes up in a round before this is due.
    per_round: u64,
    action: Action,
}

impl Step {
    /// The work of a round; rounds count from 1.
    fn work(&self, round: u64) -> Work {
        let trigger = &self.trigger.counter;
        let threshold = round * self.per_round;
        match &self.action {
            Action::Add(counter) => Work::add(&counter.counter, 1, trigger, threshold),
            Action::Transfer(transfer) => {
                let Transfer {
                    op_type,
                    endpoint,
                    operation,
                    completion,
                    ..
                } = &**transfer;
                let work = Work::transfer(*op_type, *endpoint, operation, trigger, threshold);
                match completion {
                    Some(counter) => work.completion(counter.counter.handle()),
                    None => work,
                }
            }
        }
    }

    fn describe(&self) -> Description {
        let place = |counter: &NamedCounter| Place {
            member: counter.member,
            counter: counter.name,
        };
        let (does, to, counts, completes) = match &self.action {
            Action::Add(counter) => ("add 1".to_owned(), counter.member, Some(&**counter), None),
            Action::Transfer(transfer) => (
                transfer.text.clone(),
                transfer.target,
                transfer.arrival.as_deref(),
                transfer.completion.as_deref(),
            ),
        };
        Description {
            when: place(&self.trigger),
            per_round: self.per_round,
            does,
            to,
            counts: counts.map(place),
            completes: completes.map(place),
        }
    }
}

/// All works of a round.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    steps: Vec<Step>,
}

impl Graph {
    /// Adds a step: whenever the counter has gone up by so much, this is done.
    pub(crate) fn when(&mut self, trigger: &Rc<NamedCounter>, per_round: u64, action: Action) {
        self.steps.push(Step {
            trigger: trigger.clone(),
            per_round,
            action,
        });
    }

    /// Works in a round.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Queues the works of a round.
    pub(crate) fn queue(&self, domain: &Domain, round: u64) -> Result<(), Problem> {
        let works: Vec<_> = self.steps.iter().map(|step| step.work(round)).collect();
        // One request for many, for speed: kfabric gets them one by one.
        for part in works.chunks(kfi::uapi::KFI_SHIM_BATCH_MAX as usize) {
            let queued = domain.queue_work_batch(part, true);
            for (_, result) in queued.during("KFI_SHIM_QUEUE_WORK_BATCH")? {
                KfiErrno::check(result).during("KFI_QUEUE_WORK")?;
            }
        }
        Ok(())
    }

    /// Says what waits for what, and does what.
    pub(crate) fn describe(&self) -> Vec<Description> {
        let mut lines: Vec<_> = self.steps.iter().map(Step::describe).collect();
        lines.sort_by_key(|line| line.when.member);
        lines
    }
}

/// A counter, for the reader.
#[derive(Debug, Serialize)]
pub(crate) struct Place {
    member: usize,
    counter: &'static str,
}

/// A step, for the reader.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    when: Place,
    per_round: u64,
    does: String,
    to: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completes: Option<Place>,
}

impl Description {
    /// The title above the lines.
    pub(crate) const TITLE: &str = "member  waits until       and does              which raises";
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threshold = match self.per_round {
            1 => "k".to_owned(),
            many => format!("{many}k"),
        };
        let Place { member, counter } = &self.when;
        let does = &self.does;
        write!(f, "{member:>6}  {counter:<9} >= {threshold:<5}{does:<21}")?;
        // At the target when it arrives, or here when it is over.
        if let Some(Place { member, counter }) = self.counts.as_ref().or(self.completes.as_ref()) {
            write!(f, " {counter} of {member}")?;
        }
        Ok(())
    }
}
