// SPDX-License-Identifier: GPL-2.0

//! Memory regions.

use std::sync::Arc;

use zerocopy::FromZeros;

use crate::buffer::{raw_segments, Segment};
use crate::object::{object, Domain, Handle, Object};
use crate::operation::Form;
use crate::session::Session;
use crate::sys::request;
use crate::uapi;
use crate::{Error, KfiErrno, Result};

/// How memory is registered: by default with `kfi_mr_regv`.
#[derive(Clone, Copy, Debug)]
pub struct MrAttr {
    /// The call.
    pub form: Form,
    /// Operations allowed.
    pub access: u64,
    /// Reserved by kfabric.
    pub offset: u64,
    /// Key wanted.
    pub requested_key: u64,
    /// Flags.
    pub flags: u64,
    /// Context.
    pub context: u64,
}

impl MrAttr {
    /// For some operations, with a key.
    pub fn new(access: u64, requested_key: u64) -> Self {
        Self {
            form: Form::V,
            access,
            offset: 0,
            requested_key,
            flags: 0,
            context: 0,
        }
    }

    /// With another call.
    #[must_use]
    pub fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// With flags.
    #[must_use]
    pub fn flags(self, flags: u64) -> Self {
        Self { flags, ..self }
    }

    /// With a context.
    #[must_use]
    pub fn context(self, context: u64) -> Self {
        Self { context, ..self }
    }
}

/// A memory region.
#[derive(Debug)]
pub struct MemoryRegion {
    object: Arc<Object>,
}

object!(MemoryRegion);

impl Domain {
    /// Registers memory.
    pub fn register(&self, segments: &[Segment], attr: &MrAttr) -> Result<MemoryRegion> {
        let segments = raw_segments(segments);
        let mut argument = uapi::kfi_shim_mr {
            domain: self.handle(),
            form: attr.form.0,
            segments: segments.as_ptr() as u64,
            segment_count: segments.len() as u32,
            access: attr.access,
            offset: attr.offset,
            requested_key: attr.requested_key,
            flags: attr.flags,
            context: attr.context,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::MR, &mut argument)?;
        KfiErrno::check(argument.result)?;
        Ok(MemoryRegion {
            object: Object::new(self.session().clone(), argument.mr, Some(&self.object)),
        })
    }
}

impl MemoryRegion {
    /// The key.
    pub fn key(&self) -> Result<u64> {
        let mut argument = uapi::kfi_shim_mr_key {
            mr: self.handle(),
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::MR_KEY, &mut argument)?;
        Ok(argument.key)
    }

    /// Binds a counter or an endpoint.
    pub fn bind(&self, other: Handle, flags: u64) -> Result<()> {
        self.session().bind(self.handle(), other, flags)
    }

    /// Makes it usable.
    pub fn enable(&self) -> Result<()> {
        self.session().enable(self.handle())
    }

    /// Tells that pages have changed.
    pub fn refresh(&self, segments: &[Segment], flags: u64) -> Result<()> {
        let segments = raw_segments(segments);
        let mut argument = uapi::kfi_shim_mr_refresh {
            mr: self.handle(),
            segment_count: segments.len() as u32,
            segments: segments.as_ptr() as u64,
            flags,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::MR_REFRESH, &mut argument)?;
        KfiErrno::check(argument.result)
    }

    /// The base address and the raw key.
    pub fn raw_attr(&self) -> Result<(u64, Vec<u8>)> {
        let mut argument = uapi::kfi_shim_raw_key {
            handle: self.handle(),
            key_size: uapi::KFI_SHIM_RAW_KEY_MAX,
            ..FromZeros::new_zeroed()
        };
        self.session().ioctl(request::MR_RAW_ATTR, &mut argument)?;
        KfiErrno::check(argument.result)?;
        let len = (argument.key_size as usize).min(argument.raw_key.len());
        Ok((argument.base_addr, argument.raw_key[..len].to_vec()))
    }
}
