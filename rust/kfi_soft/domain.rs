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
    endpoint::{
        Endpoint,
        ScalableEndpoint,
        SharedReceiveContext,
        SharedTransmitContext, //
    },
    fabric::Fabric,
    kfi::{
        fid::{
            Context,
            Fid,
            Object, //
        },
        hold::Hold,
        info::InfoRef,
        provider::{
            kfi_datatype,
            kfi_op,
            kfi_rx_attr,
            kfi_tx_attr,
            CompletionQueueAttr,
            CounterAttr,
            DomainClass,
            DomainOps,
            MemoryRegionAttr, //
        }, //
    },
    memory_region::MemoryRegion,
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
    type Endpoint = Endpoint;
    type ScalableEndpoint = ScalableEndpoint;
    type SharedTransmitContext = SharedTransmitContext;
    type SharedReceiveContext = SharedReceiveContext;
    type MemoryRegion = MemoryRegion;

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

    fn endpoint(
        _this: &Fid<Self>,
        _info: InfoRef<'_>,
        _context: Context,
    ) -> Result<Arc<Fid<Endpoint>>> {
        Err(ENOSYS)
    }

    fn scalable_ep(
        _this: &Fid<Self>,
        _info: InfoRef<'_>,
        _context: Context,
    ) -> Result<Arc<Fid<ScalableEndpoint>>> {
        Err(ENOSYS)
    }

    fn stx_ctx(
        _this: &Fid<Self>,
        _attr: Option<&kfi_tx_attr>,
        _context: Context,
    ) -> Result<Arc<Fid<SharedTransmitContext>>> {
        Err(ENOSYS)
    }

    fn srx_ctx(
        _this: &Fid<Self>,
        _attr: Option<&kfi_rx_attr>,
        _context: Context,
    ) -> Result<Arc<Fid<SharedReceiveContext>>> {
        Err(ENOSYS)
    }

    fn mr_reg(_this: &Fid<Self>, _attr: MemoryRegionAttr<'_>) -> Result<Arc<Fid<MemoryRegion>>> {
        Err(ENOSYS)
    }

    fn query_atomic(
        &self,
        _datatype: kfi_datatype,
        _op: kfi_op,
        _flags: u64,
    ) -> Result<(usize, usize)> {
        Err(EOPNOTSUPP)
    }
}
