// SPDX-License-Identifier: GPL-2.0

//! The node: its virtual NICs and what listens at their ports.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
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
    address::{
        auth_key::{
            AuthKey,
            AuthKeys,
            KeyNumber, //
        },
        native::Address, //
    },
    faults::injector::Faults,
    kfi::linux::work_queue::{
        WorkQueue,
        WorkQueueFlags, //
    },
    limits::PORTS,
    nic,
    transfer::{
        receiver::Receiver,
        stripes::Stripes, //
    },
    wire::{
        ContextIndex,
        Request, //
    },
    NODE, //
};

/// The use of a port.
enum Slot {
    /// Nothing.
    Free,
    /// An endpoint, which receives once it is enabled.
    Endpoint(Option<Arc<Receiver>>),
    /// A scalable endpoint with its receive contexts.
    Scalable(KVec<Option<Arc<Receiver>>>),
}

impl Slot {
    /// Returns the receive context that a request is for.
    fn receiver(&self, context: ContextIndex) -> Option<&Arc<Receiver>> {
        match self {
            Self::Free => None,
            Self::Endpoint(receiver) => (context.of(1)? == 0).then_some(receiver.as_ref()?),
            Self::Scalable(receivers) => receivers.get(context.of(receivers.len())?)?.as_ref(),
        }
    }

    /// Returns the place of a receive context.
    fn context_mut(&mut self, index: usize) -> Option<&mut Option<Arc<Receiver>>> {
        match self {
            Self::Free => None,
            Self::Endpoint(receiver) => (index == 0).then_some(receiver),
            Self::Scalable(receivers) => receivers.get_mut(index),
        }
    }
}

/// Ports of a leaf.
const LEAF: usize = 64;

/// Ports beside each other.
type Leaf = KVec<Slot>;

/// The ports of a NIC for those with one authorization key.
struct Ports {
    /// Made when one of their ports is taken, and kept until all ports are free.
    leaves: KVec<Option<Leaf>>,
    /// How many ports are taken.
    taken: usize,
}

/// The ports of a NIC.
struct AllPorts {
    /// By the authorization key, for those of which ports are taken.
    keys: RBTree<KeyNumber, Ports>,
    /// Where to look for a free port next: not where one was found for another key just before, so
    /// that a peer with the wrong key mostly finds nobody.
    next: usize,
}

/// A virtual NIC.
#[pin_data]
struct NicPorts {
    #[pin]
    ports: SpinLockIrq<AllPorts>,
}

/// Memory that was made for a port that is to be taken.
#[derive(Default)]
struct Spare {
    ports: Option<RBTreeNode<KeyNumber, Ports>>,
    leaf: Option<Leaf>,
}

/// Why a port was not taken.
enum Refused {
    /// [`Spare::ports`] is needed.
    Ports,
    /// [`Spare::leaf`] is needed.
    Leaf,
    /// It is in use, or all are.
    InUse,
}

/// Returns so many values in memory of their own.
fn many<T>(count: usize, mut value: impl FnMut() -> T) -> Result<KVec<T>> {
    let mut values = KVec::with_capacity(count, GFP_KERNEL)?;
    for _ in 0..count {
        values.push(value(), GFP_KERNEL)?;
    }
    Ok(values)
}

impl Ports {
    /// All are free.
    fn new() -> Result<Self> {
        Ok(Self {
            leaves: many(PORTS / LEAF, || None)?,
            taken: 0,
        })
    }

    /// Returns what a port is used for; `None` if it was never used.
    fn slot(&self, port: usize) -> Option<&Slot> {
        self.leaves.get(port / LEAF)?.as_ref()?.get(port % LEAF)
    }

    /// As [`Self::slot`].
    fn slot_mut(&mut self, port: usize) -> Option<&mut Slot> {
        let leaf = self.leaves.get_mut(port / LEAF)?.as_mut()?;
        leaf.get_mut(port % LEAF)
    }

    /// Returns whether a port is free.
    fn is_free(&self, port: usize) -> bool {
        matches!(self.slot(port), None | Some(Slot::Free))
    }

    /// Returns a free port. Port 0 is left to consumers that ask for it.
    fn free(&self, next: &mut usize) -> Option<usize> {
        for _ in 0..PORTS {
            *next = next.wrapping_add(1);
            if *next >= PORTS {
                *next = 1;
            }
            if self.is_free(*next) {
                return Some(*next);
            }
        }
        None
    }
}

/// Takes a port, any if `port` is none, for what is in `slot`; returns its number.
fn take(
    all: &mut AllPorts,
    key: KeyNumber,
    port: Option<usize>,
    slot: &mut Slot,
    spare: &mut Spare,
) -> core::result::Result<usize, Refused> {
    let AllPorts { keys, next } = all;
    if keys.get(&key).is_none() {
        // Nothing is in the way from here on: ports of which none is taken would stay for ever.
        if port.is_some_and(|port| port >= PORTS) {
            return Err(Refused::InUse);
        }
        if spare.leaf.is_none() {
            return Err(Refused::Leaf);
        }
        // There was none.
        let _ = keys.insert(spare.ports.take().ok_or(Refused::Ports)?);
    }
    let ports = keys.get_mut(&key).ok_or(Refused::Ports)?;
    let port = match port {
        Some(port) if port >= PORTS || !ports.is_free(port) => return Err(Refused::InUse),
        Some(port) => port,
        None => ports.free(next).ok_or(Refused::InUse)?,
    };
    let leaf = ports.leaves.get_mut(port / LEAF).ok_or(Refused::InUse)?;
    if leaf.is_none() {
        *leaf = Some(spare.leaf.take().ok_or(Refused::Leaf)?);
    }
    let free = ports.slot_mut(port).ok_or(Refused::InUse)?;
    core::mem::swap(free, slot);
    ports.taken = ports.taken.saturating_add(1);
    Ok(port)
}

/// The node.
#[pin_data]
pub(crate) struct Node {
    nics: KVec<Pin<KBox<NicPorts>>>,
    /// The locks of the memory that atomic operations change.
    pub(crate) stripes: Stripes,
    /// Copies what is too large for the poster, and watches deadlines.
    #[pin]
    pub(crate) work_queue: WorkQueue,
    /// The authorization keys of endpoints.
    pub(crate) auth_keys: Arc<AuthKeys>,
    /// The faults that are injected.
    #[pin]
    pub(crate) faults: Faults,
}

impl Node {
    /// A node with so many NICs.
    pub(crate) fn new(nics: u32) -> Result<Arc<Self>> {
        let mut boxes = KVec::with_capacity(usize::try_from(nics)?, GFP_KERNEL)?;
        for _ in 0..nics {
            let nic = KBox::pin_init(
                pin_init!(NicPorts {
                    ports <- new_spinlock_irq!(
                        AllPorts {
                            keys: RBTree::new(),
                            next: 0,
                        },
                        "kfi_soft::NicPorts::ports"
                    ),
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
                stripes: Stripes::new()?,
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
    fn nic(&self, number: u32) -> Option<&NicPorts> {
        Some(self.nics.get(nic::Nic::new(number)?.index())?)
    }

    /// Takes a port of a NIC, any if `port` is none, for an endpoint or, with `contexts`, for a
    /// scalable one with as many receive contexts. Each authorization key has ports of its own.
    ///
    /// May sleep. `EADDRINUSE` if it is taken or none is free.
    pub(crate) fn take_port(
        this: &Arc<Self>,
        key: &Arc<AuthKey>,
        nic: u32,
        port: Option<u16>,
        contexts: Option<usize>,
    ) -> Result<Port> {
        let mut slot = match contexts {
            None => Slot::Endpoint(None),
            Some(contexts) => Slot::Scalable(many(contexts, || None)?),
        };
        let all = &this.nic(nic).ok_or(EINVAL)?.ports;
        let number = key.number();
        let mut spare = Spare::default();
        let port = loop {
            let wanted = port.map(usize::from);
            let taken = take(&mut all.lock(), number, wanted, &mut slot, &mut spare);
            // Memory is made, and what is not needed is given up, without the lock.
            match taken {
                Ok(port) => break port,
                Err(Refused::InUse) => return Err(EADDRINUSE),
                Err(Refused::Ports) => {
                    spare.ports = Some(RBTreeNode::new(number, Ports::new()?, GFP_KERNEL)?);
                }
                Err(Refused::Leaf) => spare.leaf = Some(many(LEAF, || Slot::Free)?),
            }
        };
        Ok(Port {
            node: this.clone(),
            key: key.clone(),
            address: Address::new(nic, u16::try_from(port)?).ok_or(EINVAL)?,
            taken: Atomic::new(true),
        })
    }

    /// Runs `f` with what a port is used for by those with a key.
    fn with_slot<R>(
        &self,
        key: KeyNumber,
        address: Address,
        f: impl FnOnce(&mut Slot) -> R,
    ) -> Option<R> {
        let mut all = self.nic(address.nic())?.ports.lock();
        let ports = all.keys.get_mut(&key)?;
        Some(f(ports.slot_mut(usize::from(address.port()))?))
    }

    /// Returns the receive context that a request is for. Those with another key are not there.
    pub(crate) fn receiver(&self, request: &Request) -> Option<Arc<Receiver>> {
        self.with_slot(request.auth_key, request.destination, |slot| {
            slot.receiver(request.context).cloned()
        })?
    }

    /// Gives a port up; returns what is to be dropped without the lock.
    fn give_port(
        &self,
        key: KeyNumber,
        address: Address,
    ) -> Option<(Slot, Option<RBTreeNode<KeyNumber, Ports>>)> {
        let mut all = self.nic(address.nic())?.ports.lock();
        let ports = all.keys.get_mut(&key)?;
        let slot = ports.slot_mut(usize::from(address.port()))?;
        let slot = core::mem::replace(slot, Slot::Free);
        ports.taken = ports.taken.saturating_sub(1);
        // Those with the last port take the memory along.
        let unused = if ports.taken == 0 {
            all.keys.remove_node(&key)
        } else {
            None
        };
        Some((slot, unused))
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
    /// Stays in use, so that its number does.
    key: Arc<AuthKey>,
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
        let replaced = self
            .node
            .with_slot(self.key.number(), self.address, |slot| {
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
        let receiver = self
            .node
            .with_slot(self.key.number(), self.address, |slot| {
                slot.context_mut(context).and_then(Option::take)
            });
        drop(receiver);
    }
}

impl Port {
    /// Gives the port up, so that others can have it.
    pub(crate) fn close(&self) {
        // Full: the thread that sets it to `false` gives it up, once.
        if !self.taken.xchg(false, ordering::Full) {
            return;
        }
        let slot = self.node.give_port(self.key.number(), self.address);
        drop(slot);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.close();
    }
}
