// SPDX-License-Identifier: GPL-2.0

//! Requests that their target is to carry out.

#![forbid(unsafe_code)]

use kernel::sync::Arc;

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
            Receiver,
            ReceiverUse, //
        }, //
    },
    wire::Initiator, //
};

/// What is to be done for a request.
pub(crate) enum Task {
    /// It is received, as it was matched. It has been claimed.
    Receive(ReceiverUse, Match),
    /// It is done to the memory regions that it names.
    Regions(Arc<Receiver>),
}

/// A request that is to be carried out.
pub(crate) struct Accepted {
    /// Its initiator.
    pub(crate) origin: Origin,
    /// What is to be done.
    pub(crate) task: Task,
    /// It is to be reported by the thread that carries it out.
    pub(crate) late_report: Option<LateReport>,
    /// Others that are sent later go behind it.
    pub(crate) late_message: Option<LateMessage>,
}

impl Accepted {
    /// Accepts a request that has arrived; in its memory.
    pub(crate) fn new(
        inbound: Entry<Inbound>,
        task: impl FnOnce(Arc<Receiver>) -> Task,
    ) -> Entry<Self> {
        let (inbound, memory) = inbound.empty();
        memory.fill(Self {
            origin: inbound.origin,
            task: task(inbound.receiver),
            late_report: None,
            late_message: None,
        })
    }

    /// Returns the receive context.
    pub(crate) fn receiver(&self) -> &Arc<Receiver> {
        match &self.task {
            Task::Receive(receiver, _) => receiver.receiver(),
            Task::Regions(receiver) => receiver,
        }
    }
}

impl Named for Accepted {
    type Name = usize;

    fn name(&self) -> usize {
        self.origin.number()
    }
}
