// SPDX-License-Identifier: GPL-2.0

//! A module that would go while the kernel still finds things in it, if it could be loaded.

#[path = "../../rust/kfi/kfi.rs"]
pub mod kfi;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use kfi::linux::work_queue::{
    WorkQueue,
    WorkQueueFlags, //
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

impl kernel::Module for KfiRootless {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let queue = WorkQueue::new(c"kfi_rootless", WorkQueueFlags::UNBOUND);
        core::mem::forget(Arc::pin_init(queue, GFP_KERNEL)?);
        Ok(Self)
    }
}
