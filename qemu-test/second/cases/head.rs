// SPDX-License-Identifier: GPL-2.0

//! An object is not handed to C by the provider: nobody would close it, or somebody twice.

use crate::{
    kfi::fid::NewFid,
    provider::Counter, //
};

fn leak(new: NewFid<'_, Counter>) {
    #[cfg(wrong)]
    new.open_into(core::ptr::null_mut()); //~ E0624
}
