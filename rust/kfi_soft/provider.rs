// SPDX-License-Identifier: GPL-2.0

//! The provider.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

use crate::{
    fabric::Fabric,
    info,
    kfi::{
        fid::{
            Context,
            Fid, //
        },
        info::Info,
        provider::{
            FabricAttr,
            Provider,
            Query, //
        }, //
    },
    module_parameters, //
};

/// The software provider.
pub(crate) struct Soft;

impl Provider for Soft {
    const NAME: &'static CStr = c"kfi_soft";
    const VERSION: u32 = 1 << 16;
    type Fabric = Fabric;

    fn getinfo(query: &Query<'_>) -> Result<Info> {
        info::answer(query, *module_parameters::nics.value_ref())
    }

    fn fabric(attr: FabricAttr<'_>, context: Context) -> Result<Arc<Fid<Fabric>>> {
        if attr.name().is_some_and(|name| name != info::FABRIC_NAME) {
            return Err(ENODEV);
        }
        Fid::new(Fabric::new(), context)
    }
}
