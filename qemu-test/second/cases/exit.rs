// SPDX-License-Identifier: GPL-2.0

//! The abstractions see to it that the module, when it ends, waits for what is left of it.

use kernel::{
    prelude::*,
    InPlaceModule, //
};

#[cfg(wrong)]
use crate::kfi::linux::live::Exit; //~ E0603
use crate::{
    kfi::linux::live::{
        Loaded,
        Root,
        Rooted, //
    },
    LocalModule, //
};

fn end(module: LocalModule) {
    #[cfg(wrong)]
    core::mem::forget(module.exit); //~ E0616
}

/// The root of a module that is not the one that the kernel loads: safe code may leak it.
struct Leaked;

impl Root for Leaked {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        Ok(Self)
    }
}

fn begin(module: &'static ThisModule) -> Result {
    #[cfg(wrong)]
    core::mem::forget(KBox::pin_init(Rooted::<Leaked>::init(module), GFP_KERNEL)?); //~ E0599
    Ok(())
}

/// Another one, which says that it is.
struct Claimed;

impl Root for Claimed {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        Ok(Self)
    }
}

#[cfg(wrong)]
impl Loaded for Claimed {} //~ E0200
