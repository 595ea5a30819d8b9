// SPDX-License-Identifier: GPL-2.0

//! A call opens one object.

use kernel::prelude::*;

use crate::{
    kfi::{
        fid::{
            Fid,
            NewFid,
            Opening, //
        },
        provider::CounterClass, //
    },
    provider::Counter, //
};

fn cntr_open<'o>(opening: Opening<'o, CounterClass>) -> Result<NewFid<'o, Counter>> {
    let new = NewFid::new(Counter::new(None), opening)?;
    #[cfg(wrong)]
    NewFid::new(Counter::new(None), opening)?; //~ E0382
    Ok(new)
}
