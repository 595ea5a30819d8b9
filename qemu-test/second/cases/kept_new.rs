// SPDX-License-Identifier: GPL-2.0

//! A new object is returned from the call that it was made for.

use kernel::prelude::*;

use crate::{
    kfi::fid::NewFid,
    provider::Counter, //
};

fn cntr_open<'o>(
    kept: Option<NewFid<'static, Counter>>,
    new: NewFid<'o, Counter>,
) -> Result<NewFid<'o, Counter>> {
    #[cfg(wrong)]
    return kept.ok_or(EINVAL); //~ lifetime may not live long enough
    #[cfg(not(wrong))]
    Ok(new)
}
