// SPDX-License-Identifier: GPL-2.0

//! Control commands (kfi_control) with typed arguments.

use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

use super::{
    bindings,
    flags::OpFlags,
    linux::wait_queue::WaitQueue,
    wait_obj::WaitObj, //
};

/// A control command that objects of any class may have, but for KFI_ALIAS, which opens an object.
pub enum Control<'a> {
    /// Asks for the default operation flags (KFI_GETOPSFLAG).
    GetOpsFlag(OpsFlag<'a>),
    /// Changes the default operation flags (KFI_SETOPSFLAG). An endpoint only approves of them: the
    /// abstractions keep its flags.
    SetOpsFlag(OpFlags),
    /// Asks for the wait object itself (KFI_GETWAIT).
    GetWait(WaitObject<'a>),
    /// Asks for the type of the wait object (KFI_GETWAITOBJ).
    GetWaitObj(WaitObjType<'a>),
    /// Makes an endpoint, context or region active (KFI_ENABLE).
    Enable,
    /// A command that has no meaning here.
    Other,
}

/// Where KFI_GETOPSFLAG wants the flags.
pub struct OpsFlag<'a>(*mut u64, PhantomData<&'a mut u64>);

impl OpsFlag<'_> {
    /// Returns what the caller has put there: of endpoints it names the direction.
    pub fn asked(&self) -> OpFlags {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for reads, too.
        OpFlags::from_raw(unsafe { self.0.read() })
    }

    /// Answers with flags.
    pub fn set(self, flags: OpFlags) {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for writes.
        unsafe { self.0.write(flags.as_raw()) };
    }
}

/// Where KFI_GETWAIT wants the wait object.
///
/// `'a` is invariant: whatever is answered lives as long as the object that was asked.
pub struct WaitObject<'a>(*mut *mut c_void, PhantomData<fn(&'a ()) -> &'a ()>);

impl<'a> WaitObject<'a> {
    /// Answers with a wait queue, which the caller may use until the object is closed.
    pub fn set(self, queue: &'a WaitQueue) {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for writes.
        unsafe { self.0.write(queue.as_raw().cast()) };
    }
}

/// Where KFI_GETWAITOBJ wants the type.
pub struct WaitObjType<'a>(
    *mut bindings::kfi_wait_obj,
    PhantomData<&'a mut bindings::kfi_wait_obj>,
);

impl WaitObjType<'_> {
    /// Answers with a type.
    pub fn set(self, wait_obj: WaitObj) {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for writes.
        unsafe { self.0.write(wait_obj.as_raw()) };
    }
}

/// The default operation flags of an object that has no operations: they are kept, and mean nothing.
pub struct KeptOpFlags(Atomic<u64>);

impl KeptOpFlags {
    /// No flags.
    pub const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Answers the commands about them; returns any other.
    pub fn answer<'a>(&self, command: Control<'a>) -> Option<Control<'a>> {
        match command {
            // Relaxed, both: a number that nothing depends on.
            Control::GetOpsFlag(out) => out.set(OpFlags::from_raw(self.0.load(ordering::Relaxed))),
            Control::SetOpsFlag(flags) => self.0.store(flags.as_raw(), ordering::Relaxed),
            command => return Some(command),
        }
        None
    }
}

/// Returns whether a command opens an alias.
pub(super) fn wants_alias(command: c_int) -> bool {
    command == bindings::KFI_ALIAS.cast_signed()
}

/// Reads what KFI_ALIAS takes: the flags of the alias, and where it is wanted. `EINVAL` for null.
///
/// # Safety
///
/// `arg` must be null or a `struct kfi_alias`.
pub(super) unsafe fn alias(arg: *mut c_void) -> Result<(OpFlags, *mut *mut bindings::kfid)> {
    // SAFETY: By the safety requirements.
    let alias = unsafe { arg.cast::<bindings::kfi_alias>().as_ref() }.ok_or(EINVAL)?;
    if alias.fid.is_null() {
        return Err(EINVAL);
    }
    Ok((OpFlags::from_raw(alias.flags), alias.fid))
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
        let arg_of = |wanted| {
            if command == wanted && arg.is_null() {
                return Err(EINVAL);
            }
            Ok(command == wanted)
        };
        if arg_of(bindings::KFI_GETOPSFLAG)? {
            return Ok(Self::GetOpsFlag(OpsFlag(arg.cast(), PhantomData)));
        }
        if arg_of(bindings::KFI_SETOPSFLAG)? {
            // SAFETY: The command takes an `uint64_t *`, which is not null.
            let flags = unsafe { arg.cast::<u64>().read() };
            return Ok(Self::SetOpsFlag(OpFlags::from_raw(flags)));
        }
        if arg_of(bindings::KFI_GETWAIT)? {
            return Ok(Self::GetWait(WaitObject(arg.cast(), PhantomData)));
        }
        if arg_of(bindings::KFI_GETWAITOBJ)? {
            return Ok(Self::GetWaitObj(WaitObjType(arg.cast(), PhantomData)));
        }
        if command == bindings::KFI_ENABLE {
            return Ok(Self::Enable);
        }
        Ok(Self::Other)
    }
}
