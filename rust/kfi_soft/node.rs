// SPDX-License-Identifier: GPL-2.0

//! The node: its virtual NICs, the wire between them, and the faults that are injected into it.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
    time::msecs_to_jiffies, //
};

use crate::{
    address::{
        auth_key::{
            AuthKey,
            AuthKeys, //
        },
        native::Address, //
    },
    budget::Budget,
    faults::injector::{
        self,
        Faults, //
    },
    kfi::{
        linux::{
            interrupts::IrqGuard,
            work_queue::{
                new_work,
                Work,
                WorkItem,
                WorkQueue,
                WorkQueueFlags, //
            }, //
        },
        memory::RemoteMemory, //
    },
    limits,
    nic::Nic,
    owner::Owners,
    transfer::{
        origin::Origin,
        receiver::Receiver,
        stripes::Stripes,
        targets::Targets, //
    },
    wire::{
        Packet,
        Payload,
        Request,
        Response,
        Wire, //
    },
    wires::{
        Network,
        Wires, //
    },
    NODE, //
};

/// The node.
#[pin_data]
pub(crate) struct Node {
    wires: Wires,
    /// The locks of the memory that atomic operations change.
    pub(crate) stripes: Stripes,
    /// Tells those who wait for room in completion queues, and goes on with what the faults hold: nothing
    /// that takes long, as it is for all domains. The work that endpoints leave goes to their domains.
    #[pin]
    pub(crate) work_queue: WorkQueue,
    /// The authorization keys of endpoints.
    pub(crate) auth_keys: Arc<AuthKeys>,
    /// The users of domains.
    pub(crate) owners: Owners,
    /// The faults that are injected.
    #[pin]
    pub(crate) faults: Faults<Origin>,
    /// Goes on with what these hold.
    #[pin]
    tick: Work<Node>,
    /// How many receive contexts there have been.
    receivers: Atomic<u64>,
    /// How many transmit contexts there have been.
    transmitters: Atomic<u64>,
}

impl Node {
    /// A node with as many places as there may be NICs.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let targets = Targets::new(limits::MAX_NICS)?;
        let auth_keys = AuthKeys::new()?;
        let wires = Wires::new(targets, &auth_keys)?;
        let faults = Faults::new(limits::MAX_NICS)?;
        Arc::try_pin_init(
            try_pin_init!(Self {
                wires,
                stripes: Stripes::new()?,
                work_queue <- WorkQueue::new(
                    c"kfi_soft",
                    WorkQueueFlags::UNBOUND.union(WorkQueueFlags::MEM_RECLAIM)
                ),
                auth_keys,
                owners: Owners::new()?,
                faults <- faults,
                tick <- new_work!("kfi_soft::Node::tick"),
                receivers: Atomic::new(0),
                transmitters: Atomic::new(0),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Returns what requests reach here.
    pub(crate) fn targets(&self) -> &Targets {
        self.wires.targets()
    }

    /// Shows the peers. May sleep.
    pub(crate) fn show_peers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wires.show_peers(f)
    }

    /// Lets a NIC be reached from other nodes, if there is a network. May sleep.
    pub(crate) fn attach(&self, nic: Nic) -> Result {
        self.wires.attach(nic)
    }

    /// Ends all that a NIC without endpoints has to do with other nodes, and turns its knobs off. May sleep.
    pub(crate) fn detach(&self, nic: Nic) {
        self.wires.detach(nic);
        self.faults.reset(nic.index());
    }

    /// Makes a network for NICs of a fabric, which has its upper bits in `prefix`, without any of these yet. May
    /// sleep.
    pub(crate) fn network(&self, prefix: u32) -> Result<Network> {
        self.wires.make_network(&self.auth_keys, prefix)
    }

    /// From here on there is this network, if there was none; else it is given back.
    pub(crate) fn join(&self, network: Network) -> core::result::Result<(), Network> {
        self.wires.join(network)
    }

    /// Lets other nodes in, if there is a network. May sleep.
    pub(crate) fn let_in(&self) {
        self.wires.let_in();
    }

    /// Turns the knobs of all NICs off.
    pub(crate) fn reset_faults(&self) {
        for place in 0..limits::MAX_NICS as usize {
            self.faults.reset(place);
        }
    }

    /// Returns whether requests may go to other nodes, or as if they did.
    pub(crate) fn has_network(&self) -> bool {
        self.wires.has_network()
    }

    /// Takes a port of a NIC; see [`Loopback::take_port`](crate::wire::loopback::Loopback::take_port).
    pub(crate) fn take_port(
        this: &Arc<Self>,
        key: &Arc<AuthKey>,
        nic: u32,
        port: Option<u16>,
        contexts: Option<usize>,
    ) -> Result<Port> {
        let address = this
            .targets()
            .ports
            .take_port(key.number(), nic, port, contexts)?;
        Ok(Port {
            node: this.clone(),
            key: key.clone(),
            address,
            taken: Atomic::new(true),
        })
    }

    /// Returns whether a request goes to another node, or as if it did.
    pub(crate) fn is_distant(&self, request: &Request) -> bool {
        self.wires.is_distant(request)
    }

    /// Carries a request out, if that can be done at once; see [`Wire::try_now`]. No fault happens to
    /// it.
    pub(crate) fn try_now(
        &self,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
    ) -> Option<Response> {
        self.wires.try_now(request, remote, payload, irqs)
    }

    /// Sends a request, through all that may happen to it; see [`Wire::carry`].
    pub(crate) fn send(this: &Arc<Self>, packet: Packet<Origin>, budget: &mut Budget) {
        if !this.faults.any() {
            this.wires.carry(packet, budget);
        } else if this.faults.send(packet, &this.wires, budget) {
            this.tick_later();
        }
    }

    /// A request that is under way has been ended by its initiator.
    pub(crate) fn withdraw(&self, origin: &Origin) {
        self.faults.withdraw(origin);
        self.wires.withdraw(origin);
    }

    /// Returns the receive context that a request is for.
    pub(crate) fn receiver(&self, request: &Request) -> Option<Arc<Receiver>> {
        self.targets().ports.destination(request)
    }

    /// Returns a number for a receive context, which no other one has had.
    pub(crate) fn number_receiver(&self) -> u64 {
        // Relaxed: a number that stands for itself.
        self.receivers.fetch_add(1, ordering::Relaxed)
    }

    /// Returns a number for a transmit context, which no other one has had.
    pub(crate) fn number_transmitter(&self) -> u64 {
        // Relaxed: as above.
        self.transmitters.fetch_add(1, ordering::Relaxed)
    }

    /// Looks at what the faults hold, in a while.
    fn tick_later(self: &Arc<Self>) {
        // Nothing to do if that is going to happen anyhow.
        self.work_queue
            .queue_delayed(self.clone(), msecs_to_jiffies(injector::TICK_MILLIS));
    }
}

impl WorkItem for Node {
    fn work(&self) -> &Work<Self> {
        &self.tick
    }

    fn run(this: Arc<Self>) {
        if this.faults.go_on(&this.wires) {
            this.tick_later();
        }
    }
}

/// Says that the node is there; dropped, it is gone, and nothing of it runs any more.
pub(crate) struct NodeUse(Arc<Node>);

impl NodeUse {
    /// Creates the node, with the NICs that there are.
    pub(crate) fn new() -> Result<Self> {
        let node = Node::new()?;
        *NODE.lock() = Some(node.clone());
        // A failure undoes what was done.
        let this = Self(node);
        for nic in Nic::all() {
            this.0.attach(nic)?;
        }
        Ok(this)
    }
}

impl Drop for NodeUse {
    fn drop(&mut self) {
        let node = NODE.lock().take();
        // First: nothing comes any more.
        self.0.wires.close();
        self.0.tick.cancel_sync();
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
        let ports = &self.node.targets().ports;
        ports.attach(self.key.number(), self.address, context, receiver)
    }

    /// Lets a receive context not be reached any more.
    pub(crate) fn detach(&self, context: usize) {
        let ports = &self.node.targets().ports;
        ports.detach(self.key.number(), self.address, context);
    }
}

impl Port {
    /// Gives the port up, so that others can have it.
    pub(crate) fn close(&self) {
        // Full: the thread that sets it to `false` gives it up, once.
        // See `qemu-test/litmus/KFI-once.litmus`.
        if !self.taken.xchg(false, ordering::Full) {
            return;
        }
        self.node
            .targets()
            .ports
            .give_port(self.key.number(), self.address);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.close();
    }
}
