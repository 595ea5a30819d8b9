// SPDX-License-Identifier: GPL-2.0

//! The node: its virtual NICs and what listens at their ports.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    address::Address,
    auth_key::AuthKeys,
    faults::Faults,
    kfi::work_queue::{
        WorkQueue,
        WorkQueueFlags, //
    },
    limits::PORTS,
    receiver::Receiver,
    NODE, //
};

/// What a port is used for.
enum Slot {
    /// Nothing.
    Free,
    /// An endpoint, which receives once it is enabled.
    Endpoint(Option<Arc<Receiver>>),
    /// A scalable endpoint with its receive contexts.
    Scalable(KVec<Option<Arc<Receiver>>>),
}

impl Slot {
    /// Returns the place of a receive context.
    fn context_mut(&mut self, index: usize) -> Option<&mut Option<Arc<Receiver>>> {
        match self {
            Self::Free => None,
            Self::Endpoint(receiver) => (index == 0).then_some(receiver),
            Self::Scalable(receivers) => receivers.get_mut(index),
        }
    }
}

/// The ports of a NIC.
struct Ports {
    slots: KVVec<Slot>,
    /// Where to look for a free port next.
    next: usize,
}

/// A virtual NIC.
#[pin_data]
struct Nic {
    #[pin]
    ports: SpinLockIrq<Ports>,
}

/// The node.
#[pin_data]
pub(crate) struct Node {
    nics: KVec<Pin<KBox<Nic>>>,
    /// One element is changed at a time: regions may overlap, and elements need not be aligned.
    #[pin]
    pub(crate) atomics: SpinLockIrq<()>,
    /// Copies what is too large for the poster, and watches deadlines.
    #[pin]
    pub(crate) work_queue: WorkQueue,
    /// The authorization keys of endpoints.
    pub(crate) auth_keys: Arc<AuthKeys>,
    /// What goes wrong on demand.
    #[pin]
    pub(crate) faults: Faults,
}

impl Node {
    /// A node with so many NICs.
    pub(crate) fn new(nics: u32) -> Result<Arc<Self>> {
        let mut boxes = KVec::with_capacity(usize::try_from(nics)?, GFP_KERNEL)?;
        for _ in 0..nics {
            let mut slots = KVVec::with_capacity(PORTS, GFP_KERNEL)?;
            for _ in 0..PORTS {
                slots.push(Slot::Free, GFP_KERNEL)?;
            }
            let nic = KBox::pin_init(
                pin_init!(Nic {
                    ports <- new_spinlock_irq!(Ports { slots, next: 0 }, "kfi_soft::Nic::ports"),
                }),
                GFP_KERNEL,
            )?;
            boxes.push(nic, GFP_KERNEL)?;
        }
        let auth_keys = AuthKeys::new()?;
        let faults = Faults::new(nics)?;
        Arc::try_pin_init(
            try_pin_init!(Self {
                nics: boxes,
                atomics <- new_spinlock_irq!((), "kfi_soft::Node::atomics"),
                work_queue <- WorkQueue::new(
                    c"kfi_soft",
                    WorkQueueFlags::UNBOUND.union(WorkQueueFlags::MEM_RECLAIM)
                ),
                auth_keys,
                faults <- faults,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Returns a NIC.
    fn nic(&self, number: u32) -> Option<&Nic> {
        Some(self.nics.get(usize::try_from(number).ok()?)?)
    }

    /// Takes a port of a NIC, any if `port` is none, for an endpoint or, with `contexts`, for a
    /// scalable one with as many receive contexts.
    ///
    /// May sleep. `EADDRINUSE` if it is taken or none is free.
    pub(crate) fn take_port(
        this: &Arc<Self>,
        nic: u32,
        port: Option<u16>,
        contexts: Option<usize>,
    ) -> Result<Port> {
        let mut slot = Slot::Endpoint(None);
        if let Some(contexts) = contexts {
            let mut receivers = KVec::with_capacity(contexts, GFP_KERNEL)?;
            for _ in 0..contexts {
                receivers.push(None, GFP_KERNEL)?;
            }
            slot = Slot::Scalable(receivers);
        }
        let mut ports = this.nic(nic).ok_or(EINVAL)?.ports.lock();
        let port = match port {
            Some(port) => usize::from(port),
            None => ports.free().ok_or(EADDRINUSE)?,
        };
        let address = Address::new(nic, u16::try_from(port)?).ok_or(EINVAL)?;
        let place = ports.slots.get_mut(port).ok_or(EINVAL)?;
        if !matches!(place, Slot::Free) {
            drop(ports);
            // Here, and not with the lock held.
            drop(slot);
            return Err(EADDRINUSE);
        }
        *place = slot;
        drop(ports);
        Ok(Port {
            node: this.clone(),
            address,
            taken: Atomic::new(true),
        })
    }

    /// Runs `f` with what a port is used for.
    fn with_slot<R>(&self, address: Address, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let mut ports = self.nic(address.nic())?.ports.lock();
        Some(f(ports.slots.get_mut(usize::from(address.port()))?))
    }

    /// Returns the receive context at an address.
    pub(crate) fn receiver(&self, address: Address, context: usize) -> Option<Arc<Receiver>> {
        self.with_slot(address, |slot| slot.context_mut(context)?.clone())?
    }
}

impl Ports {
    /// Returns a free port. Port 0 is left to those who ask for it.
    fn free(&mut self) -> Option<usize> {
        for _ in 0..PORTS {
            self.next = self.next.wrapping_add(1);
            if self.next >= PORTS {
                self.next = 1;
            }
            if matches!(self.slots.get(self.next), Some(Slot::Free)) {
                return Some(self.next);
            }
        }
        None
    }
}

/// Says that the node is there; dropped, it is gone, and nothing of it runs any more.
pub(crate) struct NodeUse(Arc<Node>);

impl NodeUse {
    /// Creates the node, with so many NICs.
    pub(crate) fn new(nics: u32) -> Result<Self> {
        let node = Node::new(nics)?;
        *NODE.lock() = Some(node.clone());
        Ok(Self(node))
    }
}

impl Drop for NodeUse {
    fn drop(&mut self) {
        let node = NODE.lock().take();
        self.0.faults.stop();
        self.0.work_queue.destroy();
        drop(node);
    }
}

/// Returns the node.
pub(crate) fn current() -> Result<Arc<Node>> {
    NODE.lock().clone().ok_or(ENODEV)
}

/// A port that is in use, until this is closed or dropped.
pub(crate) struct Port {
    node: Arc<Node>,
    address: Address,
    /// Whether it is yet to be given up.
    taken: Atomic<bool>,
}

impl Port {
    /// Returns the address.
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Returns the node.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Lets a receive context be reached.
    pub(crate) fn attach(&self, context: usize, receiver: Arc<Receiver>) -> Result {
        let replaced = self.node.with_slot(self.address, |slot| {
            slot.context_mut(context)
                .map(|place| place.replace(receiver))
        });
        match replaced.flatten() {
            Some(None) => Ok(()),
            Some(Some(_)) => Err(EADDRINUSE),
            None => Err(EINVAL),
        }
    }

    /// Lets a receive context not be reached any more.
    pub(crate) fn detach(&self, context: usize) {
        let receiver = self.node.with_slot(self.address, |slot| {
            slot.context_mut(context).and_then(Option::take)
        });
        drop(receiver);
    }
}

impl Port {
    /// Gives the port up, so that others can have it.
    pub(crate) fn close(&self) {
        // Full: whoever takes it to `false` gives it up, once.
        if !self.taken.xchg(false, ordering::Full) {
            return;
        }
        let slot = self
            .node
            .with_slot(self.address, |slot| core::mem::replace(slot, Slot::Free));
        drop(slot);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.close();
    }
}
