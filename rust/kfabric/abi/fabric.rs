// SPDX-License-Identifier: GPL-2.0

//! Watching over open fabrics: while one is open, its provider's module stays.
//!
//! Fabrics are closed through their own table of functions. The core puts a table of its own in
//! front, whose close calls the provider's and then lets go of the module. By then no code of the
//! provider runs on behalf of the fabric.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::prelude::*;

use crate::{
    abi::trace,
    fabrics::Listed,
    kfi::{
        bindings,
        linux::modules::LivePin, //
    }, //
};

/// The table in front.
///
/// # Invariants
///
/// `ops` comes first. Once attached, `original` is the provider's table.
#[repr(C)]
pub(crate) struct Watch {
    /// The table that the fabric names.
    ops: bindings::kfi_ops,
    /// The table that it named before.
    original: *const bindings::kfi_ops,
    /// Keeps the module.
    _pin: LivePin,
    /// Lists the fabric.
    listed: Listed,
}

impl Watch {
    /// Prepares to watch, before there is a fabric whose opening would have to be undone.
    pub(crate) fn new(pin: LivePin, listed: Listed) -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                ops: pin_init::zeroed(),
                original: ptr::null(),
                _pin: pin,
                listed,
            },
            GFP_KERNEL,
        )?)
    }

    /// Watches `fabric` until it is closed.
    ///
    /// Fails with `EIO` if the fabric has no table, so that it cannot be used, or is watched
    /// already, so that the provider has not opened a new one.
    ///
    /// # Safety
    ///
    /// `fabric` must be an open fabric of the module that is pinned, known to nobody else.
    pub(crate) unsafe fn attach(
        mut self: KBox<Self>,
        fabric: NonNull<bindings::kfid_fabric>,
    ) -> Result {
        // SAFETY: By the safety requirements.
        let slot = unsafe { &raw mut (*fabric.as_ptr()).fid.ops };
        // SAFETY: As above.
        let original = unsafe { slot.read() };
        // SAFETY: A table is valid as long as the fabric.
        let table = unsafe { original.as_ref() }.ok_or(EIO)?;
        let close: unsafe extern "C" fn(*mut bindings::kfid) -> c_int = Self::close_callback;
        if table
            .close
            .is_some_and(|other| ptr::fn_addr_eq(other, close))
        {
            kernel::pr_warn_once!("a provider opened a fabric that was open already\n");
            return Err(EIO);
        }
        // INVARIANT: `original` is the provider's table.
        self.original = original;
        self.ops = bindings::kfi_ops {
            size: size_of::<bindings::kfi_ops>(),
            close: Some(close),
            bind: table.bind,
            control: table.control,
            ops_open: table.ops_open,
        };
        // `close_callback` takes it back.
        // SAFETY: By the safety requirements.
        unsafe { slot.write(KBox::into_raw(self).cast()) };
        Ok(())
    }

    /// Closes a fabric and, if the provider lets it, ends the watch.
    ///
    /// # Safety
    ///
    /// `fid` must be an open fabric that was given to [`Self::attach`].
    unsafe extern "C" fn close_callback(fid: *mut bindings::kfid) -> c_int {
        // SAFETY: By the safety requirements.
        let this: *mut Self = unsafe { (*fid).ops.cast() };
        // SAFETY: The fabric is open, so that its watch stays, and with it the provider's table.
        let close = unsafe { (*(*this).original).close };
        let Some(close) = close else {
            return ENOSYS.to_errno();
        };
        // SAFETY: The fabric is open, and its module is pinned.
        let ret = unsafe { close(fid) };
        // SAFETY: The watch stays until it is dropped below.
        trace::fabric_close(unsafe { &(*this).listed }.provider(), ret);
        if ret == 0 {
            // SAFETY: `attach` leaked it, and the fabric, which alone referred to it, is gone.
            drop(unsafe { KBox::from_raw(this) });
        }
        ret
    }
}
