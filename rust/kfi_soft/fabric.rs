// SPDX-License-Identifier: GPL-2.0

//! Fabrics: the virtual NICs of this kernel see each other through one.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use crate::{
    domain::Domain,
    info::Nic,
    kfi::{
        fid::{
            Context,
            Fid,
            Object, //
        },
        hold::Hold,
        info::InfoRef,
        provider::{
            FabricClass,
            FabricOps, //
        }, //
    },
    module_parameters, //
};

/// An open fabric.
pub(crate) struct Fabric(());

impl Fabric {
    /// A fabric.
    pub(crate) fn new() -> Self {
        Self(())
    }
}

impl Object for Fabric {
    type Class = FabricClass;

    fn release(&self) {}
}

impl FabricOps for Fabric {
    type Domain = Domain;

    fn domain(
        this: ArcBorrow<'_, Fid<Self>>,
        info: InfoRef<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Domain>>> {
        let name = info.domain_name().ok_or(EINVAL)?;
        Nic::find(name, *module_parameters::nics.value_ref()).ok_or(ENODEV)?;
        Fid::new(Domain::new(Hold::new(this)?), context)
    }
}
