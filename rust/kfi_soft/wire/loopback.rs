// SPDX-License-Identifier: GPL-2.0

//! The wire inside of one kernel: the ports of its NICs, and what is reached there.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    ContextIndex,
    Initiator,
    Packet,
    Payload,
    Request,
    Response,
    Wire, //
};
use crate::{
    address::{
        auth_key::KeyNumber,
        native::Address, //
    },
    budget::Budget,
    kfi::{
        linux::interrupts::IrqGuard,
        memory::RemoteMemory, //
    },
    limits::PORTS,
    nic::Nic, //
};

/// A receive context, which requests come to at an address.
pub(crate) trait Destination: Sized {
    /// The initiators of these.
    type Origin: Initiator;

    /// As [`Wire::try_now`].
    fn try_now(
        this: Arc<Self>,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
    ) -> Option<Response>;

    /// Takes a request.
    fn accept(this: &Arc<Self>, packet: Packet<Self::Origin>, budget: &mut Budget);

    /// Gives a request up that its initiator has ended, if it is here.
    fn withdraw(&self, origin: &Self::Origin);
}

/// The use of a port.
enum PortUse<D> {
    /// Nothing.
    Free,
    /// An endpoint, which receives once it is enabled.
    Endpoint(Option<Arc<D>>),
    /// A scalable endpoint with its receive contexts.
    Scalable(KVec<Option<Arc<D>>>),
}

impl<D> PortUse<D> {
    /// Returns the receive context that a request is for.
    fn receiver(&self, context: ContextIndex) -> Option<&Arc<D>> {
        match self {
            Self::Free => None,
            Self::Endpoint(receiver) => (context.of(1)? == 0).then_some(receiver.as_ref()?),
            Self::Scalable(receivers) => receivers.get(context.of(receivers.len())?)?.as_ref(),
        }
    }

    /// Returns the place of a receive context.
    fn context_mut(&mut self, index: usize) -> Option<&mut Option<Arc<D>>> {
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
struct Leaf<D> {
    slots: KVec<PortUse<D>>,
    /// How many of them are taken.
    taken: usize,
}

/// The ports of a NIC for those with one authorization key.
struct Ports<D> {
    /// Each is made when one of its ports is taken, and kept until all of them are free.
    leaves: KVec<Option<Leaf<D>>>,
    /// How many ports are taken.
    taken: usize,
}

/// The ports of a NIC.
struct AllPorts<D> {
    /// By the authorization key, for those of which ports are taken.
    keys: RBTree<KeyNumber, Ports<D>>,
    /// Where to look for a free port next: not where one was found for another key just before, so
    /// that a peer with the wrong key mostly finds nobody.
    next: usize,
}

/// A virtual NIC.
#[pin_data]
struct NicPorts<D> {
    #[pin]
    ports: SpinLockIrq<AllPorts<D>>,
}

/// Memory that was made for a port that is to be taken.
struct Spare<D> {
    ports: Option<RBTreeNode<KeyNumber, Ports<D>>>,
    leaf: Option<Leaf<D>>,
}

/// The memory that was used for a port, and for those beside it and with the same key if these are free, too.
struct Unused<D> {
    _slot: PortUse<D>,
    _leaf: Option<Leaf<D>>,
    _ports: Option<RBTreeNode<KeyNumber, Ports<D>>>,
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

impl<D> Ports<D> {
    /// All are free.
    fn new() -> Result<Self> {
        Ok(Self {
            leaves: many(PORTS / LEAF, || None)?,
            taken: 0,
        })
    }

    /// Returns what a port is used for; `None` if it was never used.
    fn slot(&self, port: usize) -> Option<&PortUse<D>> {
        let leaf = self.leaves.get(port / LEAF)?.as_ref()?;
        leaf.slots.get(port % LEAF)
    }

    /// As [`Self::slot`].
    fn slot_mut(&mut self, port: usize) -> Option<&mut PortUse<D>> {
        let leaf = self.leaves.get_mut(port / LEAF)?.as_mut()?;
        leaf.slots.get_mut(port % LEAF)
    }

    /// Frees a port; returns what it was used for, and the leaf if it was the last one in there.
    fn release(&mut self, port: usize) -> Option<(PortUse<D>, Option<Leaf<D>>)> {
        let place = self.leaves.get_mut(port / LEAF)?;
        let leaf = place.as_mut()?;
        let slot = core::mem::replace(leaf.slots.get_mut(port % LEAF)?, PortUse::Free);
        leaf.taken = leaf.taken.saturating_sub(1);
        let unused = place.take_if(|leaf| leaf.taken == 0);
        self.taken = self.taken.saturating_sub(1);
        Some((slot, unused))
    }

    /// Returns whether a port is free.
    fn is_free(&self, port: usize) -> bool {
        matches!(self.slot(port), None | Some(PortUse::Free))
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
fn take<D>(
    all: &mut AllPorts<D>,
    key: KeyNumber,
    port: Option<usize>,
    slot: &mut PortUse<D>,
    spare: &mut Spare<D>,
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
    let place = ports.leaves.get_mut(port / LEAF).ok_or(Refused::InUse)?;
    if place.is_none() {
        *place = Some(spare.leaf.take().ok_or(Refused::Leaf)?);
    }
    let leaf = place.as_mut().ok_or(Refused::InUse)?;
    let free = leaf.slots.get_mut(port % LEAF).ok_or(Refused::InUse)?;
    core::mem::swap(free, slot);
    leaf.taken = leaf.taken.saturating_add(1);
    ports.taken = ports.taken.saturating_add(1);
    Ok(port)
}

/// The NICs of this kernel, which reach each other without any network.
pub(crate) struct Loopback<D> {
    nics: KVec<Pin<KBox<NicPorts<D>>>>,
}

impl<D> Loopback<D> {
    /// Joins NICs that are in so many places.
    pub(crate) fn new(nics: u32) -> Result<Self> {
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
        Ok(Self { nics: boxes })
    }

    /// Returns a NIC, and its ports.
    fn nic(&self, number: u32) -> Option<(Nic, &NicPorts<D>)> {
        let nic = Nic::new(number)?;
        let ports: &NicPorts<D> = self.nics.get(nic.index())?;
        Some((nic, ports))
    }

    /// Takes a port of a NIC, any if `port` is none, for an endpoint or, with `contexts`, for a
    /// scalable one with as many receive contexts. Each authorization key has ports of its own.
    ///
    /// May sleep. `EADDRINUSE` if it is taken or none is free.
    pub(crate) fn take_port(
        &self,
        key: KeyNumber,
        nic: u32,
        port: Option<u16>,
        contexts: Option<usize>,
    ) -> Result<Address> {
        let mut slot = match contexts {
            None => PortUse::Endpoint(None),
            Some(contexts) => PortUse::Scalable(many(contexts, || None)?),
        };
        // It stays, as the domain uses it for which that is done.
        let (_, NicPorts { ports: all }) = self.nic(nic).ok_or(EINVAL)?;
        let mut spare = Spare {
            ports: None,
            leaf: None,
        };
        let port = loop {
            let wanted = port.map(usize::from);
            let taken = take(&mut all.lock(), key, wanted, &mut slot, &mut spare);
            // Memory is made, and given up that is not needed, without the lock.
            match taken {
                Ok(port) => break port,
                Err(Refused::InUse) => return Err(EADDRINUSE),
                Err(Refused::Ports) => {
                    spare.ports = Some(RBTreeNode::new(key, Ports::new()?, GFP_KERNEL)?);
                }
                Err(Refused::Leaf) => {
                    spare.leaf = Some(Leaf {
                        slots: many(LEAF, || PortUse::Free)?,
                        taken: 0,
                    });
                }
            }
        };
        Address::new(nic, u16::try_from(port)?).ok_or(EINVAL)
    }

    /// Runs `f` with what a port is used for by those with a key; not if its NIC has gone, though there may be
    /// another one in the same place by now, with the same port.
    fn with_slot<R>(
        &self,
        key: KeyNumber,
        address: Address,
        f: impl FnOnce(&mut PortUse<D>) -> R,
    ) -> Option<R> {
        let (nic, NicPorts { ports: all }) = self.nic(address.nic())?;
        let mut all = all.lock();
        // With the lock, under which those of another one have got their ports.
        if !nic.is_there() {
            return None;
        }
        let ports = all.keys.get_mut(&key)?;
        Some(f(ports.slot_mut(usize::from(address.port()))?))
    }

    /// Lets a receive context be reached at a port that was taken.
    pub(crate) fn attach(
        &self,
        key: KeyNumber,
        address: Address,
        context: usize,
        destination: Arc<D>,
    ) -> Result {
        let replaced = self.with_slot(key, address, |slot| {
            slot.context_mut(context)
                .map(|place| place.replace(destination))
        });
        match replaced.flatten() {
            Some(None) => Ok(()),
            Some(Some(_)) => Err(EADDRINUSE),
            None => Err(EINVAL),
        }
    }

    /// Lets a receive context not be reached any more.
    pub(crate) fn detach(&self, key: KeyNumber, address: Address, context: usize) {
        let destination = self.with_slot(key, address, |slot| {
            slot.context_mut(context).and_then(Option::take)
        });
        drop(destination);
    }

    /// Gives a port up.
    pub(crate) fn give_port(&self, key: KeyNumber, address: Address) {
        let given = self.take_back(key, address);
        // Without the lock.
        drop(given);
    }

    /// Gives a port up; returns what is to be dropped without the lock.
    fn take_back(&self, key: KeyNumber, address: Address) -> Option<Unused<D>> {
        let (_, NicPorts { ports: all }) = self.nic(address.nic())?;
        let mut all = all.lock();
        let ports = all.keys.get_mut(&key)?;
        let (slot, leaf) = ports.release(usize::from(address.port()))?;
        // The last port that is given up takes the memory along.
        let ports = if ports.taken == 0 {
            all.keys.remove_node(&key)
        } else {
            None
        };
        Some(Unused {
            _slot: slot,
            _leaf: leaf,
            _ports: ports,
        })
    }

    /// Returns what a request is for. Those with another key are not there.
    pub(crate) fn destination(&self, request: &Request) -> Option<Arc<D>> {
        self.with_destination(request, Arc::clone)
    }

    /// Runs `f`, which takes no time to speak of, with what a request is for, if that is there.
    pub(crate) fn with_destination<R>(
        &self,
        request: &Request,
        f: impl FnOnce(&Arc<D>) -> R,
    ) -> Option<R> {
        self.with_slot(request.auth_key, request.destination, |slot| {
            slot.receiver(request.context).map(f)
        })?
    }
}

impl<D: Destination> Wire for Loopback<D> {
    type Origin = D::Origin;

    fn try_now(
        &self,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
    ) -> Option<Response> {
        match self.destination(request) {
            Some(destination) => D::try_now(destination, request, remote, payload, irqs),
            None => Some(Response::failed(EHOSTUNREACH)),
        }
    }

    fn carry(&self, packet: Packet<D::Origin>, budget: &mut Budget) {
        match self.destination(packet.origin.request()) {
            Some(destination) => D::accept(&destination, packet, budget),
            None => packet.origin.refuse(EHOSTUNREACH, budget),
        }
    }

    fn withdraw(&self, origin: &D::Origin) {
        if let Some(destination) = self.destination(origin.request()) {
            destination.withdraw(origin);
        }
    }
}

#[kunit_tests(kfi_soft_loopback)]
mod tests {
    use super::*;
    use crate::{
        address::auth_key::AuthKeys,
        nic::Nic, //
    };

    /// Returns how many leaves there are for a key on a NIC.
    fn leaves(wire: &Loopback<()>, key: KeyNumber, nic: u32) -> usize {
        let Some((_, NicPorts { ports })) = wire.nic(nic) else {
            return 0;
        };
        let all = ports.lock();
        all.keys
            .get(&key)
            .map_or(0, |ports| ports.leaves.iter().flatten().count())
    }

    /// One port is taken all the time, another one each time.
    #[test]
    fn leaves_go_with_their_last_port() -> Result {
        let wire = Loopback::<()>::new(1)?;
        let keys = AuthKeys::new()?;
        let key = keys.get(b"leaves")?;
        let first = Nic::all().next().ok_or(ENODEV)?;
        let (number, nic) = (key.number(), first.number());
        let kept = wire.take_port(number, nic, Some(1), None)?;
        for port in (LEAF..PORTS).step_by(LEAF) {
            let port = u16::try_from(port)?;
            let one = wire.take_port(number, nic, Some(port), None)?;
            let other = wire.take_port(number, nic, Some(port + 1), None)?;
            assert_eq!(leaves(&wire, number, nic), 2);
            wire.give_port(number, one);
            assert_eq!(leaves(&wire, number, nic), 2);
            assert!(wire.take_port(number, nic, Some(port + 1), None).is_err());
            wire.give_port(number, other);
            assert_eq!(leaves(&wire, number, nic), 1);
        }
        wire.give_port(number, kept);
        assert_eq!(leaves(&wire, number, nic), 0);
        Ok(())
    }
}
