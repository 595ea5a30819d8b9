// SPDX-License-Identifier: GPL-2.0

//! Domains: a virtual NIC, opened.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    completion_queue::CompletionQueue,
    counter::Counter,
    fabric::Fabric,
    kfi::{
        fid::{
            Context,
            Fid,
            Object, //
        },
        hold::Hold,
        provider::{
            CompletionQueueAttr,
            CounterAttr,
            DomainClass,
            DomainOps, //
        }, //
    },
    poll_set::PollSet, //
};

/// An open domain.
pub(crate) struct Domain {
    fabric: Hold<Fabric>,
}

impl Domain {
    /// A domain of a fabric.
    pub(crate) fn new(fabric: Hold<Fabric>) -> Self {
        Self { fabric }
    }

    /// Returns the fabric.
    pub(crate) fn fabric(&self) -> &Arc<Fid<Fabric>> {
        self.fabric.fid()
    }
}

impl Object for Domain {
    type Class = DomainClass;

    fn release(&self) {
        self.fabric.release();
    }
}

impl DomainOps for Domain {
    type Counter = Counter;
    type CompletionQueue = CompletionQueue;
    type PollSet = PollSet;

    fn cntr_open(
        this: &Fid<Self>,
        attr: CounterAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Counter>>> {
        Fid::new(Counter::new(Hold::new(this)?, &attr)?, context)
    }

    fn cq_open(
        this: &Fid<Self>,
        attr: CompletionQueueAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<CompletionQueue>>> {
        Fid::new(CompletionQueue::new(Hold::new(this)?, &attr)?, context)
    }

    fn poll_open(this: &Fid<Self>, flags: u64) -> Result<Arc<Fid<PollSet>>> {
        if flags != 0 {
            return Err(EINVAL);
        }
        Fid::new(PollSet::new(Hold::new(this)?), Context::NONE)
    }
}
