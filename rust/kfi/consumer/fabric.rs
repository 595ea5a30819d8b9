// SPDX-License-Identifier: GPL-2.0

//! Discovery and fabrics.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::{
        CStr,
        CString, //
    }, //
};

use super::{
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    Offers, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    info::{
        Info,
        InfoRef, //
    },
    wait_obj::WaitObj, //
};

/// Asks all providers what there is; `ENODATA` if nothing matches.
///
/// May sleep.
pub fn getinfo(
    version: u32,
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&super::Hints<'_>>,
) -> Result<Offers> {
    let mut info = ptr::null_mut();
    // SAFETY: All pointers are null or valid for the call, and so are the objects that the hints name.
    to_result(unsafe {
        bindings::kfi_getinfo(
            version,
            node.map_or(ptr::null(), CStr::as_char_ptr),
            service.map_or(ptr::null(), CStr::as_char_ptr),
            flags,
            hints.map_or(ptr::null_mut(), |hints| hints.first().as_raw()),
            &mut info,
        )
    })?;
    // SAFETY: On success the caller owns the chain.
    let mut info = unsafe { Info::from_raw(info) }.ok_or(ENODATA)?;
    info.forget_objects();
    // SAFETY: It has just been answered, and the objects were taken out.
    Ok(unsafe { Offers::new(info) })
}

object! {
    /// An open fabric as C knows it.
    FabricObject(kfid_fabric, Fabric)
}

/// An open fabric.
pub struct Fabric {
    fabric: FabricObject,
    /// The name of its provider.
    provider: CString,
}

impl core::ops::Deref for Fabric {
    type Target = FabricObject;

    fn deref(&self) -> &FabricObject {
        &self.fabric
    }
}

impl Closable for Fabric {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.fabric.close_with(permit)
    }
}

impl Fabric {
    /// Opens the fabric that `info` describes.
    ///
    /// May sleep.
    pub fn open(info: InfoRef<'_>, context: Context) -> Result<Self> {
        let provider = CString::try_from(info.prov_name().ok_or(EINVAL)?)?;
        let mut fabric = ptr::null_mut();
        // SAFETY: `info` is valid; the provider only reads the attributes.
        to_result(unsafe {
            bindings::kfi_fabric(info.get().fabric_attr, &mut fabric, context.as_raw())
        })?;
        let fabric = NonNull::new(fabric).ok_or(EIO)?;
        Ok(Self {
            // SAFETY: It has just been opened.
            fabric: unsafe { FabricObject::new(fabric, Lineage::of_fabric(fabric)) },
            provider,
        })
    }

    /// Returns the name of its provider.
    pub fn provider(&self) -> &CStr {
        &self.provider
    }
}

impl Info {
    /// Takes the open objects out that the entries name, and connection requests: an answer is kept
    /// for longer than these are open.
    fn forget_objects(&mut self) {
        let mut next = ptr::from_mut(self.first_mut().entry);
        // SAFETY: The chain and its attributes are owned by the type invariants, and borrowed
        // exclusively.
        unsafe {
            while let Some(entry) = next.as_mut() {
                entry.handle = ptr::null_mut();
                if let Some(attr) = entry.fabric_attr.as_mut() {
                    attr.fabric = ptr::null_mut();
                }
                if let Some(attr) = entry.domain_attr.as_mut() {
                    attr.domain = ptr::null_mut();
                }
                next = entry.next;
            }
        }
    }
}
