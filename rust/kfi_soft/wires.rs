// SPDX-License-Identifier: GPL-2.0

//! The wires of a node: the one inside of this kernel and, if NICs have addresses, that between machines.

#![forbid(unsafe_code)]

use core::net::Ipv4Addr;
use kernel::{
    fmt,
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    }, //
};

use crate::{
    abi_params,
    address::auth_key::AuthKeys,
    budget::Budget,
    kfi::{
        linux::interrupts::IrqGuard,
        memory::RemoteMemory, //
    },
    limits,
    module_parameters,
    nic::{
        self,
        Nic, //
    },
    transfer::{
        origin::Origin,
        targets::Targets, //
    },
    wire::{
        tcp::{
            secret::Secret,
            FabricId,
            Tcp,
            TcpConfig, //
        },
        Initiator,
        Packet,
        Payload,
        Request,
        Response,
        Wire, //
    }, //
};

/// Fails if there can be no network with the parameters of the module, and says why.
pub(crate) fn check_parameters() -> Result {
    let timeout = *module_parameters::peer_timeout.value_ref();
    if !limits::PEER_TIMEOUTS.contains(&timeout) {
        pr_err!(
            "peer_timeout={}: must be from {} to {}\n",
            timeout,
            limits::PEER_TIMEOUTS.start(),
            limits::PEER_TIMEOUTS.end()
        );
        return Err(EINVAL);
    }
    if *module_parameters::port.value_ref() == 0 {
        pr_err!("port=0: must be from 1 to {}\n", u16::MAX);
        return Err(EINVAL);
    }
    Ok(())
}

/// How a node reaches others.
pub(crate) struct Network {
    tcp: Tcp<Origin>,
    /// The NICs of this node are reached over it, too.
    only: bool,
}

impl Network {
    /// Listens where other nodes reach the NIC of a number, which has this address, once these are let in. May
    /// sleep.
    pub(crate) fn listen(&self, number: u32, address: Ipv4Addr) -> Result {
        self.tcp.listen(number).inspect_err(|error| {
            pr_err!(
                "nobody can listen at {:?}, port {}: {:?}\n",
                address,
                *module_parameters::port.value_ref(),
                error
            );
        })
    }

    /// Ends all that has to do with other nodes. May sleep.
    pub(crate) fn close(&self) {
        self.tcp.close();
    }
}

/// The wires of a node.
pub(crate) struct Wires {
    targets: Arc<Targets>,
    /// From when NICs have addresses.
    network: SetOnce<Network>,
}

impl Wires {
    /// The wires that the parameters ask for. No NIC listens yet.
    pub(crate) fn new(targets: Arc<Targets>, keys: &Arc<AuthKeys>) -> Result<Self> {
        let this = Self {
            targets,
            network: SetOnce::new(),
        };
        if nic::has_network() {
            let network = this.make_network(keys, nic::fabric())?;
            this.network.populate(network);
            this.let_in();
        }
        Ok(this)
    }

    /// Makes a network for NICs whose addresses have these upper bits. Nobody listens yet, and nobody is let in.
    pub(crate) fn make_network(&self, keys: &Arc<AuthKeys>, prefix: u32) -> Result<Network> {
        let only = !*module_parameters::loopback.value_ref();
        let fabric = FabricId {
            prefix,
            port: *module_parameters::port.value_ref(),
        };
        let tcp = Tcp::new(TcpConfig {
            fabric,
            peer_timeout: *module_parameters::peer_timeout.value_ref(),
            local: only,
            arrivals: self.targets.clone(),
            keys: keys.clone(),
            secret: Self::secret(fabric)?,
        })?;
        Ok(Network { tcp, only })
    }

    /// From here on there is this network; it is given back if there is one. By one thread at a time.
    pub(crate) fn join(&self, network: Network) -> core::result::Result<(), Network> {
        if self.network.as_ref().is_some() {
            return Err(network);
        }
        // There was none.
        self.network.populate(network);
        Ok(())
    }

    /// Lets other nodes in, if there is a network. All that they reach is of that from then on: NICs without
    /// addresses are not there any more. May sleep.
    pub(crate) fn let_in(&self) {
        if let Some(Network { tcp, .. }) = self.network.as_ref() {
            tcp.accept();
        }
    }

    /// Returns the secret that the parameters name. May sleep.
    fn secret(fabric: FabricId) -> Result<Option<Secret>> {
        let description = abi_params::secret();
        if description.is_empty() {
            return Ok(None);
        }
        Secret::find(description, fabric).map(Some)
    }

    /// Returns what requests reach here.
    pub(crate) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Lets other nodes reach a NIC of this one, if there is a network. May sleep.
    pub(crate) fn attach(&self, nic: Nic) -> Result {
        match self.network.as_ref() {
            Some(network) => network.listen(nic.number(), nic.inet()),
            None => Ok(()),
        }
    }

    /// Ends all that a NIC without endpoints has to do with other nodes. May sleep.
    pub(crate) fn detach(&self, nic: Nic) {
        if let Some(Network { tcp, .. }) = self.network.as_ref() {
            tcp.leave(nic.number());
        }
    }

    /// Shows the peers of this node. May sleep.
    pub(crate) fn show_peers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network.as_ref() {
            Some(Network { tcp, .. }) => tcp.show(f),
            None => Ok(()),
        }
    }

    /// Ends all that has to do with other nodes. All endpoints are closed. May sleep.
    pub(crate) fn close(&self) {
        if let Some(network) = self.network.as_ref() {
            network.close();
        }
    }

    /// Returns whether there are targets that are reached over a network.
    pub(crate) fn has_network(&self) -> bool {
        self.network.as_ref().is_some()
    }

    /// Returns whether a request's target is reached over a network.
    #[inline]
    pub(crate) fn is_distant(&self, request: &Request) -> bool {
        self.network(request).is_some()
    }

    /// Returns the wire to a request's target, if that is not inside of this kernel. The next time it may be
    /// another one, as NICs come and go.
    #[inline]
    fn network(&self, request: &Request) -> Option<&Tcp<Origin>> {
        let Network { tcp, only } = self.network.as_ref()?;
        (*only || Nic::new(request.destination.nic()).is_none()).then_some(tcp)
    }
}

impl Wire for Wires {
    type Origin = Origin;

    #[inline]
    fn try_now(
        &self,
        request: &Request,
        remote: &RemoteMemory,
        payload: Payload<'_>,
        irqs: &mut IrqGuard,
    ) -> Option<Response> {
        match self.network(request) {
            None => self.targets.ports.try_now(request, remote, payload, irqs),
            Some(tcp) => tcp.try_now(request, remote, payload, irqs),
        }
    }

    fn carry(&self, packet: Packet<Origin>, budget: &mut Budget) {
        match self.network(packet.origin.request()) {
            None => self.targets.ports.carry(packet, budget),
            Some(tcp) => tcp.carry(packet, budget),
        }
    }

    fn withdraw(&self, origin: &Origin) {
        // It may have been carried when its target was no NIC of this node yet.
        if let Some(Network { tcp, .. }) = self.network.as_ref() {
            tcp.withdraw(origin);
        }
        if self.network(origin.request()).is_none() {
            self.targets.ports.withdraw(origin);
        }
    }
}
