// SPDX-License-Identifier: GPL-2.0

//! The software provider: a whole fabric inside one kernel.
//!
//! Lock order, outer before inner:
//!
//! 1. `kfi_soft::Counter::state`, of which a thread never holds two.
//!
//! Nothing is called, woken or dropped with a lock held that it could want.

mod counter;
mod domain;
mod fabric;
mod info;
#[allow(
    dead_code,
    unused_imports,
    reason = "every module uses its part of the skin"
)]
#[path = "../kfi/kfi.rs"]
mod kfi;
mod provider;

use kernel::prelude::*;

use kfi::provider::Registration;
use provider::Soft;

module! {
    type: KfiSoft,
    name: "kfi_soft",
    authors: ["kfabric-rs authors"],
    description: "kfabric software provider",
    license: "GPL",
    params: {
        nics: u32 {
            default: 2,
            description: "Number of virtual NICs (1 to 64, default 2)",
        },
    },
}

/// The loaded module.
#[pin_data]
struct KfiSoft {
    #[pin]
    _registration: Registration<Soft>,
}

impl kernel::InPlaceModule for KfiSoft {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _: {
                info::check_nics(*module_parameters::nics.value_ref())?;
            },
            _registration <- Registration::new(),
        }? Error)
    }
}
