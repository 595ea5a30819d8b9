// SPDX-License-Identifier: GPL-2.0

//! Watching over open fabrics: while one is open, its provider's module stays.
//!
//! Fabrics are closed through their own table of functions. The core puts a table of its own in
//! front, whose close calls the provider's and then lets go of the module. By then no code of the
//! provider runs on behalf of the fabric.

use core::ptr::NonNull;
use kernel::prelude::*;

use crate::kfi::{
    bindings,
    modules::ModulePin, //
};

/// The table in front.
///
/// # Invariants
///
/// `ops` comes first. Once attached, `original` is the provider's table.
#[repr(C)]
pub(crate) struct Watch {
    ops: bindings::kfi_ops,
    original: *mut bindings::kfi_ops,
    pin: Option<ModulePin>,
}

impl Watch {
    /// Prepares to watch, before there is a fabric whose opening would have to be undone.
    pub(crate) fn new(pin: Option<ModulePin>) -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                ops: pin_init::zeroed(),
                original: core::ptr::null_mut(),
                pin,
            },
            GFP_KERNEL,
        )?)
    }

    /// Watches `fabric` until it is closed.
    ///
    /// # Safety
    ///
    /// `fabric` must be an open fabric of the module that is pinned, known to nobody else.
    pub(crate) unsafe fn attach(mut self: KBox<Self>, fabric: NonNull<bindings::kfid_fabric>) {
        // SAFETY: By the safety requirements.
        let fid = unsafe { &mut (*fabric.as_ptr()).fid };
        // SAFETY: An open object has a table.
        let original = unsafe { &*fid.ops };
        // INVARIANT: `original` is the provider's table.
        self.original = fid.ops;
        self.ops = bindings::kfi_ops {
            size: size_of::<bindings::kfi_ops>(),
            close: Some(Self::close_callback),
            bind: original.bind,
            control: original.control,
            ops_open: original.ops_open,
        };
        // `close_callback` takes it back.
        fid.ops = KBox::into_raw(self).cast();
    }

    /// # Safety
    ///
    /// `fid` must be an open fabric that was given to [`Self::attach`].
    unsafe extern "C" fn close_callback(fid: *mut bindings::kfid) -> c_int {
        // SAFETY: By the safety requirements.
        let this: *mut Self = unsafe { (*fid).ops.cast() };
        // SAFETY: The fabric is open, so that its watch stays.
        let close = unsafe { (*(*this).original).close };
        let Some(close) = close else {
            return ENOSYS.to_errno();
        };
        // SAFETY: The fabric is open, and its module is pinned.
        let ret = unsafe { close(fid) };
        if ret == 0 {
            // SAFETY: `attach` leaked it, and the fabric, which alone referred to it, is gone.
            drop(unsafe { KBox::from_raw(this) });
        }
        ret
    }
}
