// SPDX-License-Identifier: GPL-2.0

//! The smallest consumer of kfabric in Rust.

mod events;
mod example;
#[path = "../../rust/kfi/kfi.rs"]
pub mod kfi;

use kernel::prelude::*;

use kfi::linux::live::{
    rooted_module,
    Root, //
};

rooted_module! {
    root: KfiRustConsumer,
    name: "kfi_rust_consumer",
    authors: ["kfabric-rs authors"],
    description: "The smallest consumer of kfabric in Rust",
    license: "GPL",
}

/// The loaded module. It has done its work when it is there.
struct KfiRustConsumer;

impl Root for KfiRustConsumer {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        let done = example::example().and_then(|()| example::message());
        let done = done.and_then(|()| {
            let events = events::events();
            pr_info!("events of its own: {events:?}\n");
            events
        });
        // An initialiser returns the module that it has initialised.
        done.map(|()| Self)
    }
}
