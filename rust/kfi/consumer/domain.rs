// SPDX-License-Identifier: GPL-2.0

//! Domains.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    deferred_work::Works,
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Object, //
    },
    Fabric, //
};
use crate::kfi::{
    bindings,
    errno::to_result,
    fid::Context,
    flags::OpFlags,
    info::InfoRef,
    wait_obj::WaitObj, //
};

object! {
    /// An open domain as C knows it.
    DomainObject(kfid_domain)
}

/// An open domain, with the deferred work that may be queued on it.
pub(crate) struct Domain {
    domain: DomainObject,
    /// Kept until the domain is closed.
    pub(super) works: Arc<Works>,
}

impl core::ops::Deref for Domain {
    type Target = DomainObject;

    fn deref(&self) -> &DomainObject {
        &self.domain
    }
}

impl Closable for Domain {
    type Head = bindings::kfid_domain;

    fn object(&mut self) -> &mut Object<bindings::kfid_domain> {
        self.domain.object()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if !self.domain.object().end() {
            // The provider may still use the requests.
            core::mem::forget(self.works.clone());
        }
    }
}

impl Domain {
    /// Opens the domain that `info` describes.
    ///
    /// May sleep.
    pub(crate) fn open(fabric: &Fabric, info: InfoRef<'_>, context: Context) -> Result<Self> {
        // Before the domain, which could not be closed without.
        let works = Works::new()?;
        let mut domain = ptr::null_mut();
        // SAFETY: `fabric` is open, `info` is valid; the provider only reads it.
        to_result(unsafe {
            bindings::kfi_domain(
                fabric.as_raw(),
                info.as_raw(),
                &mut domain,
                context.as_raw(),
            )
        })?;
        let domain = NonNull::new(domain).ok_or(EIO)?;
        Ok(Self {
            // SAFETY: It has just been opened.
            domain: DomainObject(unsafe { Object::new(domain) }),
            works,
        })
    }
}
