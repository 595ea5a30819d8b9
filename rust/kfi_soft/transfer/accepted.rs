// SPDX-License-Identifier: GPL-2.0

//! Requests that their target is to carry out.

#![forbid(unsafe_code)]

use crate::{
    kfi::linux::queue::{
        Entry,
        Named, //
    },
    transfer::{
        inbound::Inbound,
        origin::{
            LateMessage,
            Origin, //
        },
        receive_queue::Match,
        receiver::{
            LateReport,
            ReceiverName,
            ReceiverUse, //
        }, //
    },
    wire::Initiator, //
};

/// The work that a request makes.
pub(crate) enum Task {
    /// It is received, as it was matched. It has been claimed.
    Receive(ReceiverUse, Match),
    /// It is done to the memory regions that it names, by a receive context that is looked up when it is
    /// its turn: what waits for that keeps none that is closed meanwhile. (One that was found is kept for the
    /// next requests of the same turn.)
    Regions(ReceiverName),
}

/// A request that is to be carried out.
pub(crate) struct Accepted {
    /// Its initiator.
    pub(crate) origin: Origin,
    /// The work that it makes.
    pub(crate) task: Task,
    /// It is to be reported by the thread that carries it out.
    pub(crate) late_report: Option<LateReport>,
    /// Others that are sent later go behind it.
    pub(crate) late_message: Option<LateMessage>,
}

impl Accepted {
    /// Accepts a request that has arrived; in its memory.
    pub(crate) fn new(inbound: Entry<Inbound>, task: Task) -> Entry<Self> {
        let (inbound, memory) = inbound.empty();
        memory.fill(Self {
            origin: inbound.origin,
            task,
            late_report: None,
            late_message: None,
        })
    }

    /// Returns whether its initiator has ended it.
    pub(crate) fn is_given_up(&self) -> bool {
        match &self.task {
            Task::Receive(..) => false,
            Task::Regions(_) => !self.origin.is_waiting(),
        }
    }
}

impl Named for Accepted {
    type Name = usize;

    fn name(&self) -> usize {
        self.origin.number()
    }
}
