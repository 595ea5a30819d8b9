// SPDX-License-Identifier: GPL-2.0

//! Domains.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::prelude::*;

use super::{
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
    /// An open domain.
    Domain(kfid_domain)
}

impl Domain {
    /// Opens the domain that `info` describes.
    ///
    /// May sleep.
    pub(crate) fn open(fabric: &Fabric, info: InfoRef<'_>, context: Context) -> Result<Self> {
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
        // SAFETY: It has just been opened.
        Ok(Self(unsafe { Object::new(domain) }))
    }
}
