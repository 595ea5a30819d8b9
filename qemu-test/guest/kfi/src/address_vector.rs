// SPDX-License-Identifier: GPL-2.0

//! Address vectors.

use std::ffi::CStr;
use std::sync::Arc;

use zerocopy::FromZeros;

use crate::flags::AvType;
use crate::object::{object, Domain, Handle, Object};
use crate::session::Session;
use crate::sys::{self, request, Request};
use crate::{bits, uapi};
use crate::{Error, KfiErrno, Result};

/// `KFI_ADDR_NOTAVAIL`: in place of an address that could not be had.
pub const ADDR_NOTAVAIL: u64 = u64::MAX;

/// Attributes of an address vector: by default of the provider's type.
#[derive(Clone, Debug, Default)]
pub struct AvAttr {
    /// No attributes: the provider is given NULL.
    pub no_attr: bool,
    /// The type.
    pub av_type: AvType,
    /// Top bits of an address that are set aside.
    pub rx_ctx_bits: i32,
    /// Expected number of addresses.
    pub count: u64,
    /// Flags.
    pub flags: u64,
    /// Name of a shared one.
    pub name: String,
    /// Context.
    pub context: u64,
}

/// An address vector.
#[derive(Debug)]
pub struct AddressVector {
    object: Arc<Object>,
    av_type: AvType,
}

object!(AddressVector);

/// The result of an insertion.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inserted {
    /// How many were inserted.
    pub count: usize,
    /// The addresses.
    pub addrs: Vec<u64>,
    /// An error for each, if they were asked for.
    pub errors: Vec<i32>,
    /// The number of an insertion that goes on.
    pub insertion: u32,
}

impl Domain {
    /// Opens an address vector.
    pub fn address_vector(&self, attr: &AvAttr) -> Result<AddressVector> {
        let mut argument = uapi::kfi_shim_av_open {
            domain: self.handle(),
            flags: if attr.no_attr {
                uapi::KFI_SHIM_NO_ATTR
            } else {
                0
            },
            type_: attr.av_type.0,
            rx_ctx_bits: attr.rx_ctx_bits,
            count: attr.count,
            attr_flags: attr.flags,
            context: attr.context,
            ..FromZeros::new_zeroed()
        };
        for (to, from) in argument.name.iter_mut().zip(attr.name.bytes().take(63)) {
            *to = from as _;
        }
        self.session().ioctl(request::AV_OPEN, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(AddressVector {
            object: Object::new(self.session().clone(), argument.av, Some(&self.object)),
            av_type: AvType(argument.type_),
        })
    }
}

impl AddressVector {
    /// The type, as the provider has chosen.
    pub fn av_type(&self) -> AvType {
        self.av_type
    }

    fn insert_with(
        &self,
        request: Request<uapi::kfi_shim_av_insert>,
        argument: &mut uapi::kfi_shim_av_insert,
        count: usize,
    ) -> Result<Inserted> {
        argument.av = self.handle();
        let mut inserted = Inserted {
            addrs: vec![0; count],
            ..Inserted::default()
        };
        if argument.flags & bits::SYNC_ERR != 0 {
            inserted.errors = vec![0; count];
        }
        sys::av_insert(
            self.session(),
            request,
            argument,
            &mut inserted.addrs,
            &mut inserted.errors,
        )?;
        inserted.count = KfiErrno::check_number(argument.result)?;
        inserted.insertion = argument.insertion;
        Ok(inserted)
    }

    /// Binds an event queue.
    pub fn bind(&self, other: Handle, flags: u64) -> Result<()> {
        self.session().bind(self.handle(), other, flags)
    }

    /// Inserts one binary address; returns what it is in the vector.
    pub fn insert(&self, addr: &[u8]) -> Result<u64> {
        Ok(self.insert_all(addr, 1, 0, 0)?.addrs[0])
    }

    /// Inserts binary addresses that lie back to back.
    pub fn insert_all(
        &self,
        bytes: &[u8],
        count: usize,
        flags: u64,
        context: u64,
    ) -> Result<Inserted> {
        let mut argument = uapi::kfi_shim_av_insert {
            addr_len: bytes.len() as u32,
            addr: bytes.as_ptr() as u64,
            count: count as u32,
            flags,
            context,
            ..FromZeros::new_zeroed()
        };
        self.insert_with(request::AV_INSERT, &mut argument, count)
    }

    /// Inserts the address of a node and a service.
    pub fn insert_service(&self, node: &CStr, service: &CStr, flags: u64) -> Result<Inserted> {
        self.insert_service_with(node, service, flags, 0)
    }

    /// As [`Self::insert_service`], with a context for the event.
    pub fn insert_service_with(
        &self,
        node: &CStr,
        service: &CStr,
        flags: u64,
        context: u64,
    ) -> Result<Inserted> {
        let mut argument = uapi::kfi_shim_av_insert {
            node: node.as_ptr() as u64,
            service: service.as_ptr() as u64,
            flags,
            context,
            ..FromZeros::new_zeroed()
        };
        self.insert_with(request::AV_INSERTSVC, &mut argument, 1)
    }

    /// Inserts the addresses of nodes and services that count up.
    pub fn insert_symmetric(
        &self,
        node: &CStr,
        nodes: u32,
        service: &CStr,
        services: u32,
        flags: u64,
    ) -> Result<Inserted> {
        let mut argument = uapi::kfi_shim_av_insert {
            node: node.as_ptr() as u64,
            service: service.as_ptr() as u64,
            count: nodes,
            service_count: services,
            flags,
            ..FromZeros::new_zeroed()
        };
        let count = nodes as usize * services as usize;
        self.insert_with(request::AV_INSERTSYM, &mut argument, count)
    }

    /// The addresses from an insertion whose event has come.
    pub fn inserted(&self, insertion: u32, count: usize) -> Result<Vec<u64>> {
        let mut addrs = vec![0; count];
        let count = sys::av_inserted(self.session(), self.handle(), insertion, &mut addrs)?;
        addrs.truncate(count);
        Ok(addrs)
    }

    /// Removes addresses.
    pub fn remove(&self, addrs: &[u64]) -> Result<()> {
        let mut argument = uapi::kfi_shim_av_remove {
            av: self.handle(),
            count: addrs.len() as u32,
            kfi_addrs: addrs.as_ptr() as u64,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::AV_REMOVE, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// The binary form of an address, of which there is room for so many bytes,
    /// and how long it is.
    pub fn lookup(&self, addr: u64, room: usize) -> Result<(Vec<u8>, usize)> {
        let mut argument = uapi::kfi_shim_av_lookup {
            av: self.handle(),
            addr_len: room as u32,
            kfi_addr: addr,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::AV_LOOKUP, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let len = argument.addr_len as usize;
        Ok((argument.addr[..room.min(len)].to_vec(), len))
    }

    /// The text of a binary address, of which there is room for so many bytes,
    /// and how long it is with its end.
    pub fn straddr(&self, addr: &[u8], room: usize) -> Result<(String, usize)> {
        let mut argument = uapi::kfi_shim_av_straddr {
            av: self.handle(),
            len: room as u32,
            ..FromZeros::new_zeroed()
        };
        argument.addr[..addr.len()].copy_from_slice(addr);
        self.session().ioctl(request::AV_STRADDR, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let text: Vec<u8> = argument.text.iter().map(|c| *c as u8).collect();
        let text = text.split(|c| *c == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        Ok((text, argument.len as usize))
    }
}
