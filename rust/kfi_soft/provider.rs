// SPDX-License-Identifier: GPL-2.0

//! The provider.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::{
    fabric::Fabric,
    info,
    kfi::{
        fid::{
            NewFid,
            Opening, //
        },
        info::Info,
        provider::{
            FabricAttr,
            FabricClass,
            Provider,
            Query, //
        }, //
    },
    nic,
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

    fn fabric<'o>(
        attr: FabricAttr<'_>,
        opening: Opening<'o, FabricClass>,
    ) -> Result<NewFid<'o, Fabric>> {
        let is_there = || attr.name().is_none_or(|name| name == nic::fabric_name());
        if !is_there() {
            return Err(ENODEV);
        }
        let fabric = NewFid::new(Fabric::new(node::current()?), opening)?;
        // It may be another one by now.
        open_objects::add_fabric(fabric.arc(), is_there)?;
        Ok(fabric)
    }
}

#[kunit_tests(kfi_soft_provider)]
mod tests {
    use super::*;
    use crate::kfi::provider::Registration;

    #[test]
    fn a_module_has_one_provider() {
        let other = KBox::pin_init(Registration::<Soft>::new(), GFP_KERNEL);
        assert_eq!(other.err(), Some(EBUSY));
    }
}
