// SPDX-License-Identifier: GPL-2.0

//! Wait sets, and trywait.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*, //
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
    Fabric, //
};
use crate::kfi::{
    bindings,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

object! {
    /// An open wait set.
    WaitSet(kfid_wait, WaitSet)
}

impl WaitSet {
    /// Opens a wait set with a wait object (`enum kfi_wait_obj`) and flags. May sleep.
    pub fn open(fabric: &Fabric, wait_obj: u32, flags: u64) -> Result<Self> {
        Self::open_with(fabric, Some((wait_obj, flags)))
    }

    /// As [`Self::open`], with a null pointer for the attributes.
    pub fn open_null(fabric: &Fabric) -> Result<Self> {
        Self::open_with(fabric, None)
    }

    /// Opens a wait set with a wait object and flags, or with a null pointer for the attributes.
    fn open_with(fabric: &Fabric, attr: Option<(u32, u64)>) -> Result<Self> {
        let mut attr = attr.map(|(wait_obj, flags)| bindings::kfi_wait_attr { wait_obj, flags });
        let mut set = ptr::null_mut();
        // SAFETY: `fabric` is open, `attr` null or valid.
        to_result(unsafe {
            bindings::kfi_wait_open(
                fabric.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut set,
            )
        })?;
        let set = NonNull::new(set).ok_or(EIO)?;
        // SAFETY: It has just been opened.
        Ok(unsafe { Self::new(set, fabric.lineage()) })
    }

    /// Sleeps until a member is signalled, at most `timeout` milliseconds, or without end if that
    /// is negative.
    pub fn wait(&self, timeout: c_int) -> Result {
        // SAFETY: The set is open.
        to_result(unsafe { bindings::kfi_wait(self.as_raw(), timeout) })
    }
}

impl Fabric {
    /// Fails with `EAGAIN` if it is not safe to block on the wait objects of `objects`; with `EINVAL`
    /// if one of them has none, or is of another fabric. In process context; may sleep, other than
    /// kfi_trywait: between prepare_to_wait() and schedule() it is no use.
    pub fn trywait(&self, objects: &[AnyObject<'_>]) -> Result {
        let count = c_int::try_from(objects.len())?;
        let mut fids = KVVec::with_capacity(objects.len(), GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        for object in objects {
            fids.push(object.waitable(self.lineage())?, GFP_KERNEL_ACCOUNT)?;
        }
        // SAFETY: The fabric and the objects are open, and of one provider; there are `count`.
        to_result(unsafe { bindings::kfi_trywait(self.as_raw(), fids.as_mut_ptr(), count) })
    }

    /// As [`Self::trywait`], with a null pointer for the array.
    pub fn trywait_null(&self, count: u32) -> Result {
        let count = c_int::try_from(count)?;
        // SAFETY: The fabric is open.
        to_result(unsafe { bindings::kfi_trywait(self.as_raw(), ptr::null_mut(), count) })
    }
}
