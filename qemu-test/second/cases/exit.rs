// SPDX-License-Identifier: GPL-2.0

//! That the module ends with waiting for what is left of it the skin sees to.

#[cfg(wrong)]
use crate::kfi::linux::live::Exit; //~ E0603
use crate::{
    kfi::linux::live::Rooted,
    KfiSecond, //
};

fn end(module: Rooted<KfiSecond>) {
    #[cfg(wrong)]
    core::mem::forget(module.exit); //~ E0616
}
