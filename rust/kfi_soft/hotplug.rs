// SPDX-License-Identifier: GPL-2.0

//! NICs that come and go while the module is loaded: what is written to its parameter `address`.
//!
//! `+ADDRESS` is a NIC that comes, in the first place that is free, `-ADDRESS` one that goes. The fabric
//! stays, as all that consumers have opened belongs to it: so all addresses have the upper 12 bits of the first
//! one.
//!
//! Where NICs have no addresses the first one that comes with one is of another fabric, with another name, and
//! other addresses of endpoints. A node has one fabric: so the NICs without addresses make place for it, and
//! that is refused while anybody has opened theirs. A fabric that is being opened meanwhile is either found
//! open, or is not there any more by its name ([`open_objects::unless_open`]). All that can fail is done
//! before: after that there are no NICs but that one. Other nodes are let in at the very end, so that none of
//! them reaches a NIC without address, nor a network that does not come about. As no domain was open nothing
//! is under way between those that go.
//!
//! A NIC with an open domain stays. When it has none no endpoint is left to which requests could come, or
//! from which they could go. A domain that is being opened meanwhile, from an answer of `kfi_getinfo` that
//! is older, either keeps the NIC ([`NicUse`](crate::nic::NicUse)) or does not find it any more. Nothing of
//! what follows can fail. All of that, and all that makes a NIC come, is done by one thread at a time: the one
//! that has the lock of the module's parameters. So no other NIC gets the place before it is done.
//!
//! A request that was posted before goes to where its target is when it is carried: to a NIC of this node, or
//! by the network. It is withdrawn from both.

#![forbid(unsafe_code)]

use core::net::Ipv4Addr;
use kernel::{
    fmt,
    prelude::*, //
};

use crate::{
    address::native::Address,
    devices,
    faults::files,
    kfi::linux::socket::inet_of_device,
    nic::{
        self,
        FabricName,
        Nic,
        Wrong, //
    },
    node,
    open_objects,
    wires, //
};

/// Carries out what was written. By the thread that may change the NICs; may sleep.
///
/// # Errors
///
/// `EINVAL`: this is neither, or not with an address; `EAFNOSUPPORT`: with one of IPv6; `EADDRNOTAVAIL`: a
/// network device without address, or no interface of this machine has it. Of a NIC that is to come `ERANGE`:
/// it is of another fabric; `EEXIST`: it is there; `ENOSPC`: there are too many; `EADDRINUSE`; `EBUSY`: NICs have no
/// addresses, and their fabric is open. Of one that is to go `ENOENT`: it is not there; `EBUSY`: a domain is open on it.
/// There are the same NICs as before then, and the log says why, unless a domain is open.
pub(crate) fn change(written: &[u8]) -> Result {
    // `echo` ends the text with a new line.
    let text = written.strip_suffix(b"\n").unwrap_or(written);
    match text.split_first() {
        Some((b'+', text)) if !nic::has_network() => begin_network(text),
        Some((b'+', text)) => add(text),
        Some((b'-', text)) => remove(text),
        _ => {
            let text = kernel::str::BStr::from_bytes(text);
            pr_err!("address: {}: neither +ADDRESS nor -ADDRESS\n", text);
            Err(EINVAL)
        }
    }
}

/// Tells the log, and the writer, what is wrong.
fn refuse(wrong: Wrong<'_>) -> Error {
    pr_err!("address: {}\n", wrong);
    wrong.error()
}

/// Adds a NIC.
fn add(text: &[u8]) -> Result {
    let address = nic::parse(text, inet_of_device).map_err(refuse)?;
    let nic = Nic::prepare(address, text).map_err(refuse)?;
    let node = node::current()?;
    devices::add(nic)?;
    node.attach(nic)?;
    // A failure from here on undoes what was done, but for the device, which is the place's.
    files::add(nic).inspect_err(|_| node.detach(nic))?;
    // No other thread changes NICs meanwhile, so the place is free.
    nic.add().inspect_err(|_| {
        files::remove(nic);
        node.detach(nic);
    })
}

/// Adds the first NIC with an address, and removes those without.
fn begin_network(text: &[u8]) -> Result {
    let address = nic::parse(text, inet_of_device).map_err(refuse)?;
    wires::check_parameters()?;
    let number = address & Address::MAX_NIC;
    let fabric = address ^ number;
    let name = FabricName::new(fabric)?;
    // The first place has a device, and files about its faults, which its NIC takes over.
    let mut others = KVec::new();
    for nic in Nic::without_addresses().skip(1) {
        others.push(nic, GFP_KERNEL)?;
    }
    let node = node::current()?;
    let network = node.network(fabric)?;
    let listens = network.listen(number, Ipv4Addr::from_bits(address));
    let mut unused = Some(network);
    let result = listens.and_then(|()| {
        open_objects::unless_open(|| {
            Nic::begin_network(address, name)?;
            unused = unused.take().and_then(|network| node.join(network).err());
            Ok(())
        })
    });
    if let Some(network) = unused {
        network.close();
    }
    if result == Err(EBUSY) {
        let text = kernel::str::BStr::from_bytes(text);
        pr_err!(
            "address: {}: on another fabric than NICs without addresses, which is open\n",
            text
        );
    }
    result?;
    for nic in others {
        files::remove(nic);
    }
    node.reset_faults();
    // Not before: numbers that others know might be those of NICs without addresses.
    node.let_in();
    Ok(())
}

/// Removes a NIC.
fn remove(text: &[u8]) -> Result {
    let address = nic::parse(text, inet_of_device).map_err(refuse)?;
    let node = node::current()?;
    let found = if nic::has_network() {
        nic::of_inet(address).and_then(Nic::new)
    } else {
        // NICs without addresses only look as if they had some.
        None
    };
    let Some(nic) = found else {
        let text = kernel::str::BStr::from_bytes(text);
        pr_err!("address: {}: no NIC has it\n", text);
        return Err(ENOENT);
    };
    nic.remove()?;
    // Before the knobs are turned off: nobody turns them on after that.
    files::remove(nic);
    node.detach(nic);
    Ok(())
}

/// The addresses of the NICs, as they are written when the module is loaded.
pub(crate) struct AddressList;

impl fmt::Display for AddressList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !nic::has_network() {
            return Ok(());
        }
        for (at, nic) in Nic::all().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            f.write_fmt(fmt!("{}{:?}", comma, nic.inet()))?;
        }
        Ok(())
    }
}
