// SPDX-License-Identifier: GPL-2.0

//! Discovery and fabrics.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    str::CStr, //
};

use super::object::{
    object,
    AnyObject,
    Closable,
    HasWaitQueue,
    Object, //
};
use crate::kfi::{
    bindings,
    errno::to_result,
    fid::Context,
    flags::OpFlags,
    info::{
        Hints,
        Info,
        InfoRef, //
    },
    wait_obj::WaitObj, //
};

/// Asks all providers what there is; `ENODATA` if nothing matches.
///
/// May sleep.
pub(crate) fn getinfo(
    version: u32,
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: Option<&Hints<'_>>,
) -> Result<Info> {
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
    unsafe { Info::from_raw(info) }.ok_or(ENODATA)
}

object! {
    /// An open fabric.
    Fabric(kfid_fabric)
}

impl Fabric {
    /// Opens the fabric that `info` describes.
    ///
    /// May sleep.
    pub(crate) fn open(info: InfoRef<'_>, context: Context) -> Result<Self> {
        let mut fabric = ptr::null_mut();
        // SAFETY: `info` is valid; the provider only reads the attributes.
        to_result(unsafe {
            bindings::kfi_fabric(info.get().fabric_attr, &mut fabric, context.as_raw())
        })?;
        let fabric = NonNull::new(fabric).ok_or(EIO)?;
        // SAFETY: It has just been opened.
        Ok(Self(unsafe { Object::new(fabric) }))
    }
}
