// SPDX-License-Identifier: GPL-2.0

//! How threads want to wait for an object that is being opened.

use kernel::prelude::*;

use crate::kfi::{
    bindings,
    fid::AnyFid,
    wait_obj::WaitObj, //
};

/// The wait object that was asked for.
#[derive(Clone, Copy)]
pub enum WaitAttr<'a> {
    /// No thread can wait for the object.
    None,
    /// Through kfabric.
    Unspec,
    /// Through a wait set, which is yet to be checked.
    Set(Option<AnyFid<'a>>),
    /// Through a wait queue.
    Queue,
}

impl WaitAttr<'_> {
    /// Returns the type of the wait object.
    pub fn wait_obj(&self) -> WaitObj {
        match self {
            Self::None => WaitObj::None,
            Self::Unspec => WaitObj::Unspec,
            Self::Set(_) => WaitObj::Set,
            Self::Queue => WaitObj::Queue,
        }
    }

    /// Reads a wait object from C; `EINVAL` for an unknown one (R-CNTR-10).
    ///
    /// # Safety
    ///
    /// `wait_set` must be null or an open object if `wait_obj` is `KFI_WAIT_SET`, and may be
    /// anything if not (R-CNTR-14).
    pub(super) unsafe fn from_raw(
        wait_obj: bindings::kfi_wait_obj,
        wait_set: *mut bindings::kfid_wait,
    ) -> Result<Self> {
        Ok(match WaitObj::try_from(wait_obj)? {
            WaitObj::None => Self::None,
            WaitObj::Unspec => Self::Unspec,
            // SAFETY: By the safety requirements. The head of a wait set starts with its `kfid`.
            WaitObj::Set => Self::Set(unsafe { AnyFid::from_raw(wait_set.cast()) }),
            WaitObj::Queue => Self::Queue,
        })
    }
}
