// SPDX-License-Identifier: GPL-2.0

//! Domains: a virtual NIC, opened.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use crate::{
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
            CounterAttr,
            DomainClass,
            DomainOps, //
        }, //
    }, //
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
}

impl Object for Domain {
    type Class = DomainClass;

    fn release(&self) {
        self.fabric.release();
    }
}

impl DomainOps for Domain {
    type Counter = Counter;

    fn cntr_open(
        this: ArcBorrow<'_, Fid<Self>>,
        attr: CounterAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Counter>>> {
        let wait_obj = Counter::check_attr(&attr)?;
        Fid::new(Counter::new(Hold::new(this)?, wait_obj), context)
    }
}
