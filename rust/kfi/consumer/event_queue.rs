// SPDX-License-Identifier: GPL-2.0

//! Event queues.

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
    wait_obj::WaitObj, //
};

/// What an event queue is opened with.
#[derive(Clone, Copy)]
pub(crate) struct EventQueueAttr<'a> {
    /// Entries, 0 for the default.
    pub(crate) size: usize,
    /// Flags.
    pub(crate) flags: u64,
    /// The wait object (`enum kfi_wait_obj`).
    pub(crate) wait_obj: u32,
    /// The wait set.
    pub(crate) wait_set: Option<AnyObject<'a>>,
}

object! {
    /// An open event queue.
    EventQueue(kfid_eq)
}

/// Returns what a call returned that returns a length.
fn length(ret: isize) -> Result<usize> {
    usize::try_from(ret).map_err(|_| Error::from_errno(c_int::try_from(ret).unwrap_or(c_int::MIN)))
}

impl EventQueue {
    /// Opens an event queue; without attributes it has the defaults. May sleep.
    pub(crate) fn open(
        fabric: &Fabric,
        attr: Option<EventQueueAttr<'_>>,
        context: Context,
    ) -> Result<Self> {
        let mut attr = attr.map(|attr| bindings::kfi_eq_attr {
            size: attr.size,
            flags: attr.flags,
            wait_obj: attr.wait_obj,
            wait_set: attr
                .wait_set
                .map_or(ptr::null_mut(), |object| object.as_raw().cast()),
            ..pin_init::zeroed()
        });
        let mut eq = ptr::null_mut();
        // SAFETY: `fabric` is open; `attr` is null or valid, and its wait set null or open.
        to_result(unsafe {
            bindings::kfi_eq_open(
                fabric.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut eq,
                None,
                context.as_raw(),
            )
        })?;
        let eq = NonNull::new(eq).ok_or(EIO)?;
        // SAFETY: It has just been opened.
        Ok(Self(unsafe { Object::new(eq) }))
    }

    /// Takes the first event out, with its type and length; sleeps for it if there is a timeout.
    pub(crate) fn read(
        &self,
        data: &mut [u8],
        flags: u64,
        timeout: Option<c_int>,
    ) -> Result<(u32, usize)> {
        let mut event = 0;
        let (buf, len) = (data.as_mut_ptr().cast(), data.len());
        // SAFETY: The queue is open; there is room for `len` bytes.
        let ret = unsafe {
            match timeout {
                None => bindings::kfi_eq_read(self.as_raw(), &mut event, buf, len, flags),
                Some(timeout) => {
                    bindings::kfi_eq_sread(self.as_raw(), &mut event, buf, len, timeout, flags)
                }
            }
        };
        Ok((event, length(ret)?))
    }

    /// Adds an event; returns its length.
    pub(crate) fn write(&self, event: u32, data: &[u8], flags: u64) -> Result<usize> {
        let (buf, len) = (data.as_ptr().cast(), data.len());
        // SAFETY: The queue is open; there are `len` bytes.
        length(unsafe { bindings::kfi_eq_write(self.as_raw(), event, buf, len, flags) })
    }

    /// Takes the first error out, with what the call returned.
    pub(crate) fn readerr(&self) -> Result<(bindings::kfi_eq_err_entry, usize)> {
        let mut entry = pin_init::zeroed();
        // SAFETY: The queue is open; `entry` is valid for writes.
        let ret = unsafe { bindings::kfi_eq_readerr(self.as_raw(), &mut entry, 0) };
        Ok((entry, length(ret)?))
    }

    /// Adds an error, if the provider is the software provider.
    pub(crate) fn write_error(&self, entry: &bindings::kfi_eq_err_entry) -> Result {
        // SAFETY: That is what the software provider calls it; others do not know the name.
        let ops: &bindings::kfi_soft_eq_ops = unsafe { self.any().open_ops(EQ_OPS) }?;
        let write = ops.write_error.ok_or(ENOSYS)?;
        // SAFETY: The queue is open; `entry` is valid.
        to_result(unsafe { write(self.any().as_raw(), entry) })
    }
}

/// `KFI_SOFT_EQ_OPS_1`.
const EQ_OPS: &CStr = c"kfi_soft_eq_ops_v1";
