// SPDX-License-Identifier: GPL-2.0

//! The description of what is looked for.

use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    prelude::*,
    str::CStr, //
};

use super::{
    Domain,
    Fabric, //
};
use crate::kfi::info::{
    Info,
    InfoRef, //
};

/// The offer that an answer must make.
///
/// # Invariants
///
/// The open objects that the entry names are open during `'a`.
pub struct Hints<'a> {
    info: Info,
    _objects: PhantomData<&'a ()>,
}

impl<'a> Hints<'a> {
    /// Hints that name no objects.
    pub fn new(mut info: Info) -> Self {
        let entry = info.first_mut();
        // SAFETY: The entry owns its attributes and is borrowed exclusively.
        unsafe {
            if let Some(attr) = entry.entry.fabric_attr.as_mut() {
                attr.fabric = ptr::null_mut();
            }
            if let Some(attr) = entry.entry.domain_attr.as_mut() {
                attr.domain = ptr::null_mut();
            }
        }
        // INVARIANT: No objects are named.
        Self {
            info,
            _objects: PhantomData,
        }
    }

    /// Names the provider of an open object, so that no other one is asked; `ENODATA` if another one
    /// is named.
    fn provider(&mut self, name: &CStr) -> Result {
        match self.info.first().prov_name() {
            Some(other) if !other.is_empty() && other != name => return Err(ENODATA),
            _ => {}
        }
        let _ = self.info.first_mut().fabric_attr()?.prov_name(name)?;
        Ok(())
    }

    /// Names an open fabric; `ENODATA` if the hints name another provider.
    pub fn fabric(mut self, fabric: &'a Fabric) -> Result<Self> {
        self.provider(fabric.provider())?;
        // INVARIANT: The fabric is open during `'a`.
        self.info.first_mut().fabric_attr()?.0.fabric = fabric.as_raw();
        Ok(self)
    }

    /// Names an open domain; `ENODATA` if the hints name another provider.
    pub fn domain(mut self, domain: &'a Domain) -> Result<Self> {
        self.provider(domain.provider())?;
        // INVARIANT: The domain is open during `'a`.
        self.info.first_mut().domain_attr()?.0.domain = domain.as_raw();
        Ok(self)
    }

    /// Returns the entry.
    pub fn first(&self) -> InfoRef<'_> {
        self.info.first()
    }
}
