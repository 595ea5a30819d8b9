// SPDX-License-Identifier: GPL-2.0

//! The opening of one object does not open another, of which the consumer has said other things.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
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

type Kept = Arc<Mutex<Option<Opening<'static, CounterClass>>>>;

fn keep<'o>(kept: &Kept, opening: Opening<'o, CounterClass>) {
    #[cfg(wrong)]
    kept.lock().replace(opening); //~ E0521
    let _ = kept;
}

fn use_kept<'o>(
    kept: Opening<'static, CounterClass>,
    opening: Opening<'o, CounterClass>,
) -> Result<NewFid<'o, Counter>> {
    #[cfg(wrong)]
    return NewFid::new(Counter::new(None), kept); //~ lifetime may not live long enough
    #[cfg(not(wrong))]
    NewFid::new(Counter::new(None), opening)
}
