// SPDX-License-Identifier: GPL-2.0

//! Control commands (kfi_control) with typed arguments.

use kernel::prelude::*;

use super::{
    bindings,
    wait_obj::WaitObj,
    wait_queue::WaitQueue, //
};

/// A control command.
pub(crate) enum Control<'a> {
    /// Asks for the default operation flags (KFI_GETOPSFLAG).
    GetOpsFlag(&'a mut u64),
    /// Changes the default operation flags (KFI_SETOPSFLAG).
    SetOpsFlag(u64),
    /// Asks for the wait object itself (KFI_GETWAIT).
    GetWait(WaitObject<'a>),
    /// Asks for the type of the wait object (KFI_GETWAITOBJ).
    GetWaitObj(WaitObjType<'a>),
    /// A command that has no meaning here.
    Other,
}

/// Where KFI_GETWAIT wants the wait object.
pub(crate) struct WaitObject<'a>(&'a mut *mut c_void);

impl WaitObject<'_> {
    /// Answers with a wait queue, which the caller may use until the object is closed.
    pub(crate) fn set(self, queue: &WaitQueue) {
        *self.0 = queue.as_raw().cast();
    }
}

/// Where KFI_GETWAITOBJ wants the type.
pub(crate) struct WaitObjType<'a>(&'a mut bindings::kfi_wait_obj);

impl WaitObjType<'_> {
    /// Answers with a type.
    pub(crate) fn set(self, wait_obj: WaitObj) {
        *self.0 = wait_obj.as_raw();
    }
}

impl<'a> Control<'a> {
    /// Reads a command from C. Commands that want an argument refuse null with `EINVAL`.
    ///
    /// # Safety
    ///
    /// `arg` must be null or point, for `'a` and exclusively, to what `command` takes.
    pub(super) unsafe fn from_raw(command: c_int, arg: *mut c_void) -> Result<Self> {
        let Ok(command) = u32::try_from(command) else {
            return Ok(Self::Other);
        };
        Ok(match command {
            bindings::KFI_GETOPSFLAG => {
                // SAFETY: The command takes an `uint64_t *`.
                Self::GetOpsFlag(unsafe { arg.cast::<u64>().as_mut() }.ok_or(EINVAL)?)
            }
            bindings::KFI_SETOPSFLAG => {
                // SAFETY: As above.
                Self::SetOpsFlag(*unsafe { arg.cast::<u64>().as_ref() }.ok_or(EINVAL)?)
            }
            bindings::KFI_GETWAIT => {
                // SAFETY: The command takes a `void **`.
                let out = unsafe { arg.cast::<*mut c_void>().as_mut() };
                Self::GetWait(WaitObject(out.ok_or(EINVAL)?))
            }
            bindings::KFI_GETWAITOBJ => {
                // SAFETY: The command takes an `enum kfi_wait_obj *`.
                let out = unsafe { arg.cast::<bindings::kfi_wait_obj>().as_mut() };
                Self::GetWaitObj(WaitObjType(out.ok_or(EINVAL)?))
            }
            _ => Self::Other,
        })
    }
}
