// SPDX-License-Identifier: GPL-2.0

//! A call that opens an object is not answered with one that is open: it would be closed twice.

use kernel::{
    prelude::*,
    sync::Arc, //
};

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

fn cntr_open<'o>(
    open: &Arc<Fid<Counter>>,
    opening: Opening<'o, CounterClass>,
) -> Result<NewFid<'o, Counter>> {
    #[cfg(wrong)]
    return Ok(open.clone()); //~ E0308
    #[cfg(not(wrong))]
    NewFid::new(Counter::new(None), opening)
}
