// SPDX-License-Identifier: GPL-2.0

//! A table of further operations is that which the consumer has asked for.

use kernel::prelude::*;

use crate::kfi::{
    fid::{
        ExtraOps,
        Fid,
        OpsName, //
    },
    provider::{
        cxi_domain_ops,
        CxiDomainOps, //
    }, //
};

fn ops_open<'o, T: CxiDomainOps>(
    domain: &Fid<T>,
    kept: OpsName<'static>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, T>> {
    #[cfg(wrong)]
    return cxi_domain_ops(domain, kept); //~ lifetime may not live long enough
    #[cfg(not(wrong))]
    cxi_domain_ops(domain, name)
}
