// SPDX-License-Identifier: GPL-2.0

//! Objects that a call names are known to be open during the call only.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use crate::kfi::fid::AnyFid;

type Kept = Arc<Mutex<Option<AnyFid<'static>>>>;

fn bind(kept: &Kept, other: AnyFid<'_>) {
    #[cfg(wrong)]
    kept.lock().replace(other); //~ E0521
    let _ = (kept, other);
}
