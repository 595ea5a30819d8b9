// SPDX-License-Identifier: GPL-2.0

//! The software provider: a whole fabric inside one kernel.
//!
//! Lock order, outer before inner. First the lock of the module's parameters, which the kernel holds when
//! a write to one of them comes here (`hotplug`). Then mutexes, all taken in process context:
//!
//! 1. `kfi_soft::PollSet::places`;
//! 2. `kfi::AddressBook::free`, `kfi_soft::EndpointState::setup` and
//!    `kfi_soft::MemoryRegion::state`;
//! 3. `kfi_soft::ScalableEndpoint::state`, `kfi_soft::EndpointState::port`,
//!    `kfi_soft::SharedBinds::binds`, `kfi_soft::TcpListeners::list` and
//!    `kfi_soft::Newcomer::connection`;
//! 4. `kfi_soft::Fabric::handlers`, `kfi_soft::RunList::taking_back`,
//!    `kfi_soft::ReceiveQueue::purging`, `kfi_soft::Domain::late_work`,
//!    `kfi_soft::Listener::socket`, `kfi_soft::Listener::newcomers`,
//!    `kfi_soft::Visitors::known`, `kfi_soft::Visitor::state`,
//!    `kfi_soft::Association::state`, `OPEN_OBJECTS`, `COUNTERS`, `DEVICES`, `FAULT_FILES`
//!    and `NODE`.
//!
//! `kfi_soft::Listeners::list` is a spinlock that is taken in process context, too, with any of these held, and
//! none inside it. The other spinlocks disable interrupts:
//!
//! 5. `kfi_soft::PollSet::members` and `kfi_soft::RunList::past`;
//! 6. `kfi_soft::Counter::state`, `kfi::Queue::entries`, `kfi_soft::Transmitter::state`,
//!    `kfi_soft::ReceiveQueue::state`, `kfi_soft::Tcp::associations` and the locks of
//!    `kfi_soft::Stripes`;
//! 7. `kfi_soft::RunList::inner`, `kfi_soft::Credits::line`, `kfi_soft::Parking::state`,
//!    `kfi_soft::LateDeliveries::requests`, `kfi_soft::Landings::list`, `kfi_soft::Transfer::inside`,
//!    `kfi_soft::RemoteRequest::reply`, `kfi_soft::RemoteRequest::starter`,
//!    `kfi_soft::Association::inbox`, `kfi_soft::Visitor::outbox`, `kfi_soft::Visitor::quiet`,
//!    `kfi_soft::Visitor::accesses`, `kfi_soft::Complaints::limits`,
//!    `kfi_soft::MultiBuffer::notify`, `kfi_soft::NicPorts::ports`,
//!    `kfi_soft::SharedBinds::completer`, `kfi_soft::Regions::regions`,
//!    `kfi_soft::Region::counters`, `kfi_soft::AuthKeys`, `kfi_soft::Owners`,
//!    `kfi::AddressBook::indices` and `kfi_soft::Faults::state`;
//! 8. the locks of wait queues, under which the wake functions of waiters run, and those of
//!    work queues.
//!
//! A wake function of a consumer may read a counter, and so take `kfi_soft::Counter::state` under 8: with that
//! lock held nobody wakes, nor looks at a wait queue under its lock.
//!
//! A thread never holds two locks of the same kind (except for those of `kfi_soft::Stripes`, which
//! are taken in order), nor two of the same number. It wakes, calls and drops with none of 1 to 7 held
//! that the woken thread, the callee or a destructor could want.

mod abi_params;
mod abi_trace;
mod address;
mod attention;
mod budget;
mod counter;
mod debugfs;
mod devices;
mod domain;
mod endpoint;
mod fabric;
mod faults;
mod grown;
mod hotplug;
mod info;
#[path = "../kfi/kfi.rs"]
mod kfi;
mod late_work;
mod limits;
mod memory_region;
mod nic;
mod node;
mod open_objects;
mod owner;
mod personality;
mod poll_set;
mod provider;
mod queue;
mod share;
mod sum;
mod transfer;
mod trigger;
mod wait_set;
mod wire;
mod wires;

use kernel::{
    prelude::*,
    sync::{
        global_lock,
        Arc, //
    }, //
};

use abi_params::AddressChanges;
use address::native::Address;
use devices::Devices;
use faults::files::FaultFileList;
use kfi::{
    linux::{
        live::{
            rooted_module,
            Root, //
        },
        socket::inet_of_device, //
    },
    provider::Registration, //
};
use nic::Nics;
use node::{
    Node,
    NodeUse, //
};
use open_objects::OpenObjects;
use provider::Soft;

rooted_module! {
    root: KfiSoft,
    name: "kfi_soft",
    authors: ["kfabric-rs authors"],
    description: "kfabric software provider",
    license: "GPL",
    params: {
        nics: u32 {
            default: 2,
            description: "Number of virtual NICs (1 to 64, default 2)",
        },
        nic_base: u32 {
            default: 1,
            description: "Number of the first virtual NIC (default 1)",
        },
        kcxi: bool {
            default: false,
            description: "Present the provider as kcxi, its NICs as cxi0 and so on",
        },
        strict: i32 {
            default: -1,
            description: "Refuse operations whose capability was not asked for (1, 0; default: unless kcxi)",
        },
        rnr_timeout: u32 {
            default: 500,
            description: "How long messages wait for a receive, in milliseconds (default 500)",
        },
        pending: usize {
            default: 262144,
            description: "Triggered operations and deferred work per domain (default 262144)",
        },
        port: u16 {
            default: 7471,
            description: "TCP port where NICs with addresses listen, and that they connect to (default 7471)",
        },
        loopback: bool {
            default: true,
            description: "NICs with addresses reach those of the same machine without a network",
        },
        peer_timeout: u32 {
            default: 10000,
            description: "How long a machine may not be heard of before operations on it fail, in milliseconds (2000 to 600000, default 10000)",
        },
    },
}

global_lock! {
    /// The open fabrics and domains.
    // SAFETY: Initialised in the module's init, before the provider is registered.
    pub(crate) unsafe(uninit) static OPEN_OBJECTS: Mutex<OpenObjects> = OpenObjects::new();
}

global_lock! {
    /// The devices of the NICs.
    // SAFETY: As above.
    pub(crate) unsafe(uninit) static DEVICES: Mutex<devices::DeviceList> = devices::DeviceList::new();
}

global_lock! {
    /// The files about the faults of the NICs.
    // SAFETY: As above.
    pub(crate) unsafe(uninit) static FAULT_FILES: Mutex<Option<FaultFileList>> = None;
}

global_lock! {
    /// The node, while the module is there.
    // SAFETY: As above.
    pub(crate) unsafe(uninit) static NODE: Mutex<Option<Arc<Node>>> = None;
}

global_lock! {
    /// The open counters.
    // SAFETY: As above.
    pub(crate) unsafe(uninit) static COUNTERS: Mutex<Option<debugfs::OpenCounters>> = None;
}

/// The loaded module.
#[pin_data]
struct KfiSoft {
    // Dropped in this order: devices and the node stay as long as domains may be open, and NICs neither
    // come nor go while all of it ends.
    _changes: AddressChanges,
    #[pin]
    _registration: Registration<Soft>,
    _devices: Devices,
    _node: NodeUse,
    _files: debugfs::ProviderFiles,
}

/// Returns the NICs that the parameters ask for; `EINVAL` if one of these makes no sense.
fn configure() -> Result<Nics> {
    let list = abi_params::address();
    if list.is_empty() {
        if !abi_params::secret().is_empty() {
            pr_err!("secret: there is nobody to share it with, as no NIC has an address\n");
            return Err(EINVAL);
        }
        let nics = *module_parameters::nics.value_ref();
        let base = *module_parameters::nic_base.value_ref();
        return Nics::numbered(base, nics).inspect_err(|_| {
            pr_err!(
                "nics={} nic_base={}: there may be from 1 to {}, and none has a number above {}\n",
                nics,
                base,
                limits::MAX_NICS,
                Address::MAX_NIC
            );
        });
    }
    wires::check_parameters()?;
    Nics::addressed(list, inet_of_device).map_err(|wrong| {
        pr_err!("address={}\n", wrong);
        wrong.error_at_load()
    })
}

impl Root for KfiSoft {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _: {
                configure()?.use_them()?;
                // SAFETY: Called once, as a module is initialised once.
                unsafe { OPEN_OBJECTS.init() };
                // SAFETY: As above.
                unsafe { DEVICES.init() };
                // SAFETY: As above.
                unsafe { FAULT_FILES.init() };
                // SAFETY: As above.
                unsafe { NODE.init() };
                // SAFETY: As above.
                unsafe { COUNTERS.init() };
            },
            _node: NodeUse::new()?,
            _devices: Devices::new()?,
            _files: debugfs::ProviderFiles::new()?,
            // Consumers may come from here on.
            _registration <- Registration::new(),
            // Last: and so may NICs.
            _changes: AddressChanges::new(),
        }? Error)
    }
}
