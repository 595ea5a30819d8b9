// SPDX-License-Identifier: GPL-2.0

//! The core of kfabric: consumers ask it for fabrics, providers register with it.
//!
//! Locks, none of which is ever taken under another, and none held while a provider is called:
//!
//! - `CORE`: the core while the module is loaded;
//! - `kfabric::Registry`: the registered providers;
//! - `kfabric::Fabrics`: the open fabrics;
//! - `kfi::Modules::known`: the modules that a provider may belong to. The module notifier takes it
//!   too, under the lock of its chain, so the notifier comes and goes with none of them held.

mod abi;
mod debugfs;
mod export;
mod fabrics;
#[path = "../kfi/kfi.rs"]
pub mod kfi;
mod registry;
mod strerror;
mod tostr;

use kernel::prelude::*;

use kfi::linux::live::{
    rooted_module,
    Root, //
};

rooted_module! {
    root: Kfabric,
    name: "kfabric",
    authors: ["kfabric-rs authors"],
    description: "kfabric core: one API over many fabrics",
    license: "GPL",
}

/// The loaded module.
#[pin_data]
struct Kfabric {
    _core: abi::installed::Installed,
}

impl Root for Kfabric {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _core: abi::installed::Installed::new(module)?,
        }? Error)
    }
}
