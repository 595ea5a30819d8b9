// SPDX-License-Identifier: GPL-2.0

//! A small provider in safe code that is complete for counters and messages.

mod counter;
mod endpoint;
#[path = "../../rust/kfi/kfi.rs"]
pub mod kfi;
mod provider;
mod queue;
mod vector;

use kfi::{
    linux::live::{
        Root,
        Rooted, //
    },
    provider::Registration, //
};
use prelude::*;

/// What the files of this crate use.
mod prelude {
    pub(crate) use crate::{
        counter::*,
        endpoint::*,
        kfi::{
            addr::*,
            attr::*,
            context::*,
            control::Control,
            errno::*,
            fid::*,
            flags::*,
            hold::Hold,
            info::*,
            linux::{
                queue::*,
                rcu::synchronize_expedited,
                sleep::Wakeup,
                timeout::Timeout,
                wait_queue::WaitQueue, //
            },
            memory::transfer,
            provider::*,
            tally::Tally,
            wait_obj::WaitObj, //
        },
        provider::*,
        queue::*,
        vector::*, //
    };
    pub(crate) use kernel::{
        fmt,
        prelude::*,
        static_lock_class,
        sync::{
            atomic::{
                ordering::*,
                Atomic, //
            },
            *, //
        }, //
    };
}

module! {
    type: Rooted<KfiSmall>,
    name: "kfi_small",
    authors: ["kfabric-rs authors"],
    description: "A small provider of kfabric, for tests",
    license: "GPL",
}

/// The loaded module.
#[pin_data]
struct KfiSmall {
    #[pin]
    _registration: Registration<Small>,
}

impl Root for KfiSmall {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _registration <- Registration::new(),
        }? Error)
    }
}
