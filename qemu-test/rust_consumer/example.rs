// SPDX-License-Identifier: GPL-2.0

//! The consumer in `Documentation/providers.md`.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::kfi::{
    consumer::{
        getinfo,
        Contexts,
        Counter,
        Domain,
        Fabric, //
        Quota,
    },
    context::Context, //
};

/// Shows a counter at work.
pub(crate) fn example() -> Result {
    let info = getinfo(0, None, None, 0, None)?;
    let fabric = Fabric::open(info.first(), Context::NONE)?;
    let contexts = Contexts::new(Quota::new(1 << 20, None)?)?;
    let domain = Domain::open(&fabric, info.first(), Context::NONE, &contexts)?;
    let counter = Counter::open(&domain, None, Context::NONE)?;

    counter.add(3)?;
    counter.wait(3, 100)?; // at least 3 within 100 ms
    pr_info!("waited for 4: {:?}\n", counter.wait(4, 100)); // Err(ETIMEDOUT)
    Ok(())
}
