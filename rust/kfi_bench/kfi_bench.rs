// SPDX-License-Identifier: GPL-2.0

//! Measures the software provider beside other designs and the limits of the machine, in one run.
//!
//! Everything is measured while the module loads; each figure is a line of JSON in the kernel's log.
//! The provider is used as any consumer uses it, through the public API: what is measured is what is
//! shipped. The cases and their loops are in C, as most consumers are; how often they run, and what
//! the figures are, is decided here.

mod abi;
#[path = "../kfi/bindings.rs"]
mod bindings;
mod figure;
mod schedule;

use kernel::prelude::*;

module! {
    type: KfiBench,
    name: "kfi_bench",
    authors: ["kfabric-rs authors"],
    description: "kfabric benchmarks",
    license: "GPL",
}

/// The loaded module.
struct KfiBench;

impl kernel::Module for KfiBench {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        schedule::run()?;
        Ok(Self)
    }
}
