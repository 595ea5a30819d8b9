// SPDX-License-Identifier: GPL-2.0

//! A small provider in safe code that is complete for counters and messages.

mod endpoint;
#[path = "../../rust/kfi/kfi.rs"]
pub mod kfi;
mod provider;

use kfi::provider::prelude::*;
use provider::Small;

rooted_module! {
    root: Registration<Small>,
    name: "kfi_small",
    authors: ["kfabric-rs authors"],
    description: "A small provider of kfabric, for tests",
    license: "GPL",
}
