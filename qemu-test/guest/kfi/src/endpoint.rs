// SPDX-License-Identifier: GPL-2.0

//! Endpoints, aliases and contexts.

use std::sync::Arc;

use zerocopy::FromZeros;

use crate::info::{InfoEntry, RxAttr, TxAttr};
use crate::object::{object, Domain, Fabric, Handle, InfoList, Object};
use crate::operation::{Kind, Operation};
use crate::session::Session;
use crate::sys::{self, request, Request};
use crate::uapi;
use crate::{Error, KfiErrno, Result};

/// An endpoint, an alias, a scalable or passive endpoint, or a context.
#[derive(Debug)]
pub struct Endpoint {
    object: Arc<Object>,
}

object!(Endpoint);

/// The entry that an endpoint is opened with.
#[derive(Clone, Copy, Debug)]
pub enum EpInfo<'a> {
    /// An entry of an answer.
    Entry(&'a InfoList, usize),
    /// An entry that need not be of an answer.
    Value(&'a InfoEntry),
}

fn open(parent: &Arc<Object>, kind: u32, info: EpInfo<'_>, context: u64) -> Result<Endpoint> {
    let mut argument = uapi::kfi_shim_ep_open {
        parent: parent.handle,
        kind,
        context,
        ..FromZeros::new_zeroed()
    };
    let value;
    match info {
        EpInfo::Entry(info, index) => {
            argument.info = info.handle();
            argument.index = index as u32;
        }
        EpInfo::Value(entry) => {
            value = uapi::kfi_shim_info::from(entry);
            argument.attr = std::ptr::from_ref(&value) as u64;
            argument.attr_size = size_of_val(&value) as u32;
        }
    }
    parent.session.ioctl(request::EP_OPEN, &mut argument)?;
    KfiErrno::check(argument.result)?;
    Ok(Endpoint {
        object: Object::new(parent.session.clone(), argument.ep, Some(parent)),
    })
}

impl Domain {
    /// Opens an endpoint.
    pub fn endpoint(&self, info: EpInfo<'_>, context: u64) -> Result<Endpoint> {
        open(&self.object, uapi::KFI_SHIM_EP, info, context)
    }

    /// Opens a scalable endpoint.
    pub fn scalable_endpoint(&self, info: EpInfo<'_>, context: u64) -> Result<Endpoint> {
        open(&self.object, uapi::KFI_SHIM_SEP, info, context)
    }

    /// Opens a receive context that endpoints share.
    pub fn srx_context(&self, attr: Option<&RxAttr>, context: u64) -> Result<Endpoint> {
        rx(&self.object, request::SRX_CONTEXT, 0, attr, context)
    }

    /// Opens a transmit context that endpoints share.
    pub fn stx_context(&self, attr: Option<&TxAttr>, context: u64) -> Result<Endpoint> {
        tx(&self.object, request::STX_CONTEXT, 0, attr, context)
    }

    /// Whether and how there is an atomic operation: elements, and their size.
    pub fn query_atomic(&self, datatype: u32, op: u32, flags: u64) -> Result<(u64, u64)> {
        let mut argument = uapi::kfi_shim_query_atomic {
            domain: self.handle(),
            datatype,
            op,
            flags,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::QUERY_ATOMIC, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok((argument.count, argument.size))
    }

    /// Binds an event queue.
    pub fn bind(&self, other: Handle, flags: u64) -> Result<()> {
        self.session().bind(self.handle(), other, flags)
    }
}

impl Fabric {
    /// Opens a passive endpoint.
    pub fn passive_endpoint(&self, info: EpInfo<'_>, context: u64) -> Result<Endpoint> {
        open(&self.object, uapi::KFI_SHIM_PEP, info, context)
    }
}

fn tx(
    parent: &Arc<Object>,
    request: Request<uapi::kfi_shim_tx_context>,
    index: i32,
    attr: Option<&TxAttr>,
    context: u64,
) -> Result<Endpoint> {
    let mut argument = uapi::kfi_shim_tx_context {
        parent: parent.handle,
        index,
        context,
        ..FromZeros::new_zeroed()
    };
    match attr {
        Some(attr) => argument.attr = attr.into(),
        None => argument.flags = uapi::KFI_SHIM_NO_ATTR,
    }
    parent.session.ioctl(request, &mut argument)?;
    KfiErrno::check(argument.result)?;
    Ok(Endpoint {
        object: Object::new(parent.session.clone(), argument.ep, Some(parent)),
    })
}

fn rx(
    parent: &Arc<Object>,
    request: Request<uapi::kfi_shim_rx_context>,
    index: i32,
    attr: Option<&RxAttr>,
    context: u64,
) -> Result<Endpoint> {
    let mut argument = uapi::kfi_shim_rx_context {
        parent: parent.handle,
        index,
        context,
        ..FromZeros::new_zeroed()
    };
    match attr {
        Some(attr) => argument.attr = attr.into(),
        None => argument.flags = uapi::KFI_SHIM_NO_ATTR,
    }
    parent.session.ioctl(request, &mut argument)?;
    KfiErrno::check(argument.result)?;
    Ok(Endpoint {
        object: Object::new(parent.session.clone(), argument.ep, Some(parent)),
    })
}

impl Endpoint {
    /// Opens a transmit context of a scalable endpoint.
    pub fn tx_context(&self, index: i32, attr: Option<&TxAttr>, context: u64) -> Result<Self> {
        tx(&self.object, request::TX_CONTEXT, index, attr, context)
    }

    /// Opens a receive context of a scalable endpoint.
    pub fn rx_context(&self, index: i32, attr: Option<&RxAttr>, context: u64) -> Result<Self> {
        rx(&self.object, request::RX_CONTEXT, index, attr, context)
    }

    /// Opens an alias.
    pub fn alias(&self, flags: u64) -> Result<Self> {
        let mut argument = uapi::kfi_shim_ep_alias {
            ep: self.handle(),
            flags,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::EP_ALIAS, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(Self {
            object: Object::new(self.session().clone(), argument.alias, Some(&self.object)),
        })
    }

    /// Binds an object.
    pub fn bind(&self, other: Handle, flags: u64) -> Result<()> {
        self.session().bind(self.handle(), other, flags)
    }

    /// Makes it usable.
    pub fn enable(&self) -> Result<()> {
        self.session().enable(self.handle())
    }

    /// Default operation flags of an alias or a context.
    pub fn ops_flags(&self) -> Result<u64> {
        self.ops_flags_of(0)
    }

    /// Default operation flags of a direction, `KFI_TRANSMIT` or `KFI_RECV`.
    pub fn ops_flags_of(&self, direction: u64) -> Result<u64> {
        self.session()
            .control(self.handle(), uapi::KFI_GETOPSFLAG, direction)
    }

    /// Sets the default operation flags of the direction that they name, too.
    pub fn set_ops_flags(&self, flags: u64) -> Result<()> {
        self.session()
            .control(self.handle(), uapi::KFI_SETOPSFLAG, flags)
            .map(drop)
    }

    /// Posts an operation.
    pub fn post(&self, operation: &Operation) -> Result<()> {
        let raw = operation.raw(self.handle());
        let mut argument = raw.op;
        self.session().ioctl(request::POST, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Posts operations in one request; returns the results of those that got
    /// to kfabric. With `stop` the first that is refused is the last one.
    pub fn post_batch(&self, operations: &[Operation], stop: bool) -> Result<Vec<i32>> {
        let raw: Vec<_> = operations.iter().map(|o| o.raw(self.handle())).collect();
        let mut array: Vec<_> = raw.iter().map(|raw| raw.op).collect();
        let flags = if stop { uapi::KFI_SHIM_BATCH_STOP } else { 0 };
        let done = sys::batch(self.session(), request::POST_BATCH, &mut array, flags)?;
        Ok(array.iter().take(done).map(|op| op.result).collect())
    }

    /// Cancels an operation.
    pub fn cancel(&self, context: u64) -> Result<()> {
        let mut argument = uapi::kfi_shim_cancel {
            ep: self.handle(),
            context,
            result: 0,
        };
        self.session().ioctl(request::CANCEL, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Whether there is an atomic operation, and of how many elements.
    pub fn atomic_valid(&self, kind: Kind, datatype: u32, op: u32) -> Result<u64> {
        let mut argument = uapi::kfi_shim_atomic_valid {
            ep: self.handle(),
            kind: kind.0,
            datatype,
            op,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::ATOMIC_VALID, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(argument.count)
    }

    fn name_with(&self, request: Request<uapi::kfi_shim_name>, room: usize) -> Result<Vec<u8>> {
        let mut argument = uapi::kfi_shim_name {
            ep: self.handle(),
            addr_len: room as u32,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let len = (argument.addr_len as usize).min(argument.addr.len());
        Ok(argument.addr[..len].to_vec())
    }

    /// The source address.
    pub fn name(&self) -> Result<Vec<u8>> {
        self.name_with(request::GETNAME, uapi::KFI_SHIM_ADDR_MAX as usize)
    }

    /// The source address, for which there is room for so many bytes.
    pub fn name_in(&self, room: usize) -> Result<Vec<u8>> {
        self.name_with(request::GETNAME, room)
    }

    /// The address of the peer.
    pub fn peer(&self) -> Result<Vec<u8>> {
        self.name_with(request::GETPEER, uapi::KFI_SHIM_ADDR_MAX as usize)
    }

    /// Sets the source address.
    pub fn set_name(&self, addr: &[u8]) -> Result<()> {
        let mut argument = uapi::kfi_shim_name {
            ep: self.handle(),
            addr_len: addr.len() as u32,
            ..FromZeros::new_zeroed()
        };
        argument.addr[..addr.len()].copy_from_slice(addr);
        self.session().ioctl(request::SETNAME, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Reads an option.
    pub fn option(&self, level: i32, name: i32, room: usize) -> Result<Vec<u8>> {
        let mut argument = uapi::kfi_shim_opt {
            ep: self.handle(),
            level,
            optname: name,
            optlen: room as u32,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::GETOPT, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let len = (argument.optlen as usize).min(argument.value.len());
        Ok(argument.value[..len].to_vec())
    }

    /// Sets an option.
    pub fn set_option(&self, level: i32, name: i32, value: &[u8]) -> Result<()> {
        let mut argument = uapi::kfi_shim_opt {
            ep: self.handle(),
            level,
            optname: name,
            optlen: value.len() as u32,
            ..FromZeros::new_zeroed()
        };
        argument.value[..value.len()].copy_from_slice(value);
        self.session().ioctl(request::SETOPT, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    fn cm(&self, request: Request<uapi::kfi_shim_cm>, addr: &[u8]) -> Result<()> {
        let mut argument = uapi::kfi_shim_cm {
            ep: self.handle(),
            ..FromZeros::new_zeroed()
        };
        argument.addr[..addr.len()].copy_from_slice(addr);
        self.session().ioctl(request, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// Begins to listen.
    pub fn listen(&self) -> Result<()> {
        self.cm(request::LISTEN, &[])
    }

    /// Requests a connection.
    pub fn connect(&self, addr: &[u8]) -> Result<()> {
        self.cm(request::CONNECT, addr)
    }

    /// Accepts a connection.
    pub fn accept(&self) -> Result<()> {
        self.cm(request::ACCEPT, &[])
    }

    /// Ends a connection.
    pub fn shutdown(&self) -> Result<()> {
        self.cm(request::SHUTDOWN, &[])
    }
}
