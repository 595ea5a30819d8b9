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
    node,
    open_objects,
    personality, //
};

/// The software provider.
pub(crate) struct Soft;

impl Provider for Soft {
    const VERSION: u32 = 1 << 16;
    type Fabric = Fabric;

    fn name() -> &'static CStr {
        personality::current().provider_name()
    }

    fn getinfo(query: &Query<'_>) -> Result<Info> {
        info::answer(query)
    }

    fn fabric(attr: FabricAttr<'_>, context: Context) -> Result<Arc<Fid<Fabric>>> {
        let fabric_name = personality::current().fabric_name();
        if attr.name().is_some_and(|name| name != fabric_name) {
            return Err(ENODEV);
        }
        let fabric = Fid::new(Fabric::new(node::current()?), context)?;
        open_objects::add_fabric(&fabric)?;
        Ok(fabric)
    }
}
