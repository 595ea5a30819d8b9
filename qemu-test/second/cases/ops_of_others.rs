// SPDX-License-Identifier: GPL-2.0

//! A table of further operations expects objects of the type that answers with it.

use kernel::prelude::*;

use crate::{
    kfi::{
        fid::{
            ExtraOps,
            Fid,
            OpsName, //
        },
        provider::{
            cxi_domain_ops,
            CxiDomainOps, //
        }, //
    },
    provider::Counter, //
};

fn ops_open<'o, T: CxiDomainOps>(
    domain: &Fid<T>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, Counter>> {
    #[cfg(wrong)]
    return cxi_domain_ops(domain, name); //~ E0308
    let _ = (domain, name);
    Err(ENOSYS)
}
