// SPDX-License-Identifier: GPL-2.0

//! A module that would go while the kernel still finds things in it, if it could be loaded.

#[path = "../../rust/kfi/kfi.rs"]
pub mod kfi;

use kernel::{
    prelude::*,
    InPlaceModule, //
};

use kfi::linux::live::{
    Root,
    Rooted, //
};

module! {
    type: KfiRootless,
    name: "kfi_rootless",
    authors: ["kfabric-rs authors"],
    description: "A module that must not be loaded, for tests",
    license: "GPL",
}

/// The module as the kernel knows it, which waits for nothing when it is dropped.
struct KfiRootless;

/// The root that it has leaked by then.
struct Leaked;

impl Root for Leaked {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        Ok(Self)
    }
}

impl kernel::Module for KfiRootless {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let root = KBox::pin_init(Rooted::<Leaked>::init(module), GFP_KERNEL)?;
        core::mem::forget(root);
        Ok(Self)
    }
}
