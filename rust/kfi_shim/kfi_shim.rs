// SPDX-License-Identifier: GPL-2.0

//! /dev/kfi: user space drives kfabric providers.
//!
//! The shim is a consumer like any other: it uses the public API only.
//!
//! Lock order, outer before inner:
//!
//! 1. `kfi_shim::Session::membership`, under which members of poll sets are added and removed;
//! 2. `kfi_shim::Session::table`, under which nothing of kfabric is called.
//!
//! `kfi_shim::Session::works`, `kfi::Uses::buffers`, `kfi::Uses::regions`, `kfi::Largest::charge`,
//! `kfi::Insertions::list`, `kfi::Insertions::addresses` and `kfi::Places::by_end` are taken alone.
//! Deferred work is handed to kfabric under `kfi::DeferredWork::queued`, inside which
//! `kfi::Works::queued`, `kfi::Leftovers::list` and `kfi::Contexts::table` are taken, one after the
//! other. A shared transmit context is bound under `kfi::Uses::binding`, inside which
//! `kfi::Largest::charge` is taken. `kfi::Peak::state` is taken last, also with the first of these or
//! `kfi::Contexts::table` held.
//!
//! `kfi_shim::USERS`, `kfi_shim::QUEUES`, `kfi_shim::EndpointClose::task`, `kfi_shim::EndpointClose::answer` and
//! `kfi_shim::EndpointClose::refused` are taken alone.
//!
//! `kfi_shim::Listeners::wakeups`, a spinlock, is taken in process context, and none inside it.
//!
//! The locks of the wait queue `kfi_shim::WaitFd` and of work queues are taken under that of an object's
//! wait queue, and so are `kfi_shim::Turns::state` and `kfi_shim::Later::last`, which disable interrupts.
//! Inside the first of these only `kfi_shim::Session::next` and `kfi_shim::Listeners::next` are taken, inside
//! the other one only `kfi_shim::Listeners::before`.

mod abi;
mod endpoint_close;
mod estimate;
mod info;
#[path = "../kfi/kfi.rs"]
mod kfi;
mod object;
mod queues;
mod request;
mod session;
mod turns;
mod user;
mod wait_fd;

use kernel::{
    prelude::*,
    sync::global_lock, //
};

use kfi::linux::{
    file::DeviceRegistration,
    live::{
        rooted_module,
        Root, //
    }, //
};
use queues::QueuesUse;
use session::Session;

rooted_module! {
    root: KfiShim,
    name: "kfi_shim",
    authors: ["kfabric-rs authors"],
    description: "kfabric for user space: /dev/kfi",
    license: "GPL",
    params: {
        max_objects: u32 {
            default: 262144,
            description: "Objects and deferred works that a session may hold (default 262144)",
        },
        max_user_objects: u32 {
            default: 1048576,
            description: "Objects that all sessions of a user may hold, themselves included (default 1048576)",
        },
        max_user_domains: u32 {
            default: 1024,
            description: "Fabrics and domains, each with up to two threads of the kernel, that all sessions of a user may hold (default 1024)",
        },
        max_user_endpoints: u32 {
            default: 3072,
            description: "Endpoints with an address that all sessions of a user may hold (default 3072)",
        },
        max_memory: u64 {
            default: 0,
            description: "Bytes of memory that a session may hold (default 0: half of the machine's)",
        },
        max_user_memory: u64 {
            default: 0,
            description: "Bytes of memory that all sessions of a user may hold (default 0: half of the machine's)",
        },
    },
}

global_lock! {
    /// The users who have sessions.
    // SAFETY: Initialised in the module's init, before the device is registered.
    pub(crate) unsafe(uninit) static USERS: Mutex<user::UserList> = user::UserList::new();
}

global_lock! {
    /// Where sessions end, endpoints are closed, and many are woken.
    // SAFETY: Initialised in the module's init, before the device is registered.
    pub(crate) unsafe(uninit) static QUEUES: Mutex<Option<queues::Queues>> = None;
}

/// The loaded module.
#[pin_data]
struct KfiShim {
    // Dropped first: no session begins any more.
    #[pin]
    _device: DeviceRegistration<Session>,
    _queues: QueuesUse,
}

impl Root for KfiShim {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _: {
                // SAFETY: Called once, as a module is initialised once.
                unsafe { USERS.init() };
                // SAFETY: As above.
                unsafe { QUEUES.init() };
            },
            _queues: QueuesUse::new()?,
            _device <- DeviceRegistration::new(),
        })
    }
}
