// SPDX-License-Identifier: GPL-2.0

//! An alias of an endpoint is an endpoint: the consumer looks for its tables.

use kernel::prelude::*;

use crate::{
    kfi::{
        fid::{
            Fid,
            NewAlias,
            NewFid,
            Opening, //
        },
        provider::PlainClass, //
    },
    provider::{
        Counter,
        Endpoint, //
    }, //
};

fn alias<'o>(
    counter: NewFid<'o, Counter>,
    endpoint: NewFid<'o, Endpoint>,
) -> Result<NewAlias<'o, PlainClass>> {
    #[cfg(wrong)]
    return Ok(counter.into_alias()); //~ E0308
    #[cfg(not(wrong))]
    Ok(endpoint.into_alias())
}
