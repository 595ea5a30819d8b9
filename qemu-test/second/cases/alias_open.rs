// SPDX-License-Identifier: GPL-2.0

//! An alias is a new object.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kfi::{
        fid::{
            Fid,
            NewAlias,
            NewFid, //
        },
        provider::PlainClass, //
    },
    provider::Endpoint, //
};

fn alias<'o>(
    open: Arc<Fid<Endpoint>>,
    new: NewFid<'o, Endpoint>,
) -> Result<NewAlias<'o, PlainClass>> {
    #[cfg(wrong)]
    return Ok(open.into_alias()); //~ E0599
    #[cfg(not(wrong))]
    Ok(new.into_alias())
}
