// SPDX-License-Identifier: GPL-2.0

//! Endpoints: not implemented yet. To open one answers `ENOSYS`, see [`Domain`], so there is none.
//!
//! [`Domain`]: crate::domain::Domain

#![deny(unsafe_code)]

use kernel::prelude::*;

use crate::kfi::{
    fid::{
        Context,
        Fid,
        Object, //
    },
    flags::OpFlags,
    provider::{
        EndpointOps,
        NoContext,
        Operation,
        PlainClass,
        ScalableClass,
        SharedReceiveClass,
        SharedTransmitClass,
        SharedTransmitOps, //
    }, //
};

/// Defines kinds of endpoints of which there are none.
macro_rules! none {
    ($($(#[$attr:meta])* $name:ident: $class:ident;)*) => {$(
        $(#[$attr])*
        pub(crate) enum $name {}

        impl Object for $name {
            type Class = $class;

            fn release(&self) {
                match *self {}
            }
        }

        impl EndpointOps for $name {
            type TransmitContext = NoContext;
            type ReceiveContext = NoContext;

            fn default_flags(&self, _receive: bool) -> OpFlags {
                match *self {}
            }

            fn post(this: &Fid<Self>, _operation: Operation<'_>) -> Result {
                match **this {}
            }

            fn cancel(&self, _context: Context) -> Result {
                match *self {}
            }
        }
    )*}
}

none! {
    /// An endpoint.
    Endpoint: PlainClass;
    /// A scalable endpoint.
    ScalableEndpoint: ScalableClass;
    /// A receive context that endpoints share.
    SharedReceiveContext: SharedReceiveClass;
}

/// A transmit context that endpoints share.
pub(crate) enum SharedTransmitContext {}

impl Object for SharedTransmitContext {
    type Class = SharedTransmitClass;

    fn release(&self) {
        match *self {}
    }
}

impl SharedTransmitOps for SharedTransmitContext {}
