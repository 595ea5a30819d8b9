// SPDX-License-Identifier: GPL-2.0

//! The contexts of an endpoint are of the classes that a consumer asks for.

use kernel::prelude::*;

use crate::{
    kfi::{
        context::Context,
        fid::{
            Fid,
            Object, //
        },
        provider::{
            EndpointOps,
            NoReceiveContext,
            NoTransmitContext,
            Operation,
            ScalableClass, //
        }, //
    },
    provider::Endpoint, //
};

struct Scalable;

impl Object for Scalable {
    type Class = ScalableClass;

    fn release(&self) {}
}

impl EndpointOps for Scalable {
    #[cfg(wrong)]
    type TransmitContext = Endpoint; //~ E0271
    #[cfg(not(wrong))]
    type TransmitContext = NoTransmitContext;
    #[cfg(wrong)]
    type ReceiveContext = NoTransmitContext; //~ E0271
    #[cfg(not(wrong))]
    type ReceiveContext = NoReceiveContext;

    fn post(_this: &Fid<Self>, _operation: Operation<'_>) -> Result {
        Err(EOPNOTSUPP)
    }

    fn cancel(&self, _context: Context) -> Result {
        Err(ENOENT)
    }
}
