// SPDX-License-Identifier: GPL-2.0

//! Only a consumer's call opens objects.

use kernel::prelude::*;

use crate::{
    kfi::{
        context::Context,
        fid::{
            NewFid,
            Opening, //
        }, //
    },
    provider::Counter, //
};

fn open() -> Result {
    #[cfg(wrong)]
    NewFid::new(Counter::new(None), Opening::new(Context::NONE, ()))?; //~ E0624
    Ok(())
}
