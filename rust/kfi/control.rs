// SPDX-License-Identifier: GPL-2.0

//! Control commands (kfi_control) with typed arguments.

use core::marker::PhantomData;
use kernel::prelude::*;

use super::{
    bindings,
    fid::{
        AnyFid,
        Class, //
    },
    flags::OpFlags,
    linux::wait_queue::WaitQueue,
    memory::SourceBuffers,
    provider::{
        answer,
        memory,
        DomainClass,
        MemoryRegionClass,
        WorkId, //
    },
    wait_obj::WaitObj, //
};

/// A control command, but for KFI_ALIAS, which opens an object, and KFI_QUEUE_WORK: what it takes is
/// much larger than all others, and would be copied again and again. These have functions of their
/// own.
pub(crate) enum Control<'a> {
    /// Asks for the default operation flags (KFI_GETOPSFLAG).
    GetOpsFlag(OpsFlag<'a>),
    /// Changes the default operation flags (KFI_SETOPSFLAG). Those of endpoints, once they are
    /// approved, are changed for them.
    SetOpsFlag(OpFlags),
    /// Asks for the wait object itself (KFI_GETWAIT).
    GetWait(WaitObject<'a>),
    /// Asks for the type of the wait object (KFI_GETWAITOBJ).
    GetWaitObj(WaitObjType<'a>),
    /// Makes an endpoint, context or region active (KFI_ENABLE).
    Enable,
    /// Takes deferred work back (KFI_CANCEL_WORK).
    CancelWork(WorkId),
    /// Takes all deferred work of a domain back, or that which waits for one counter
    /// (KFI_FLUSH_WORK); whatever object it is.
    FlushWork(Option<AnyFid<'a>>),
    /// Asks for the raw key of a memory region (KFI_GET_RAW_MR).
    GetRawMr(RawKey<'a>),
    /// Tells that pages of a memory region have changed (KFI_REFRESH).
    Refresh {
        /// Flags, yet to be checked.
        flags: u64,
        /// The ranges that have changed.
        memory: SourceBuffers<'a>,
    },
    /// A command that has no meaning here.
    Other,
}

/// Where KFI_GETOPSFLAG wants the flags.
pub(crate) struct OpsFlag<'a>(*mut u64, PhantomData<&'a mut u64>);

impl OpsFlag<'_> {
    /// Returns what the caller has put there: of endpoints it names the direction.
    pub(crate) fn asked(&self) -> OpFlags {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for reads, too.
        OpFlags::from_raw(unsafe { self.0.read() })
    }

    /// Answers with flags.
    pub(crate) fn set(self, flags: OpFlags) {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for writes.
        unsafe { self.0.write(flags.as_raw()) };
    }
}

/// Where KFI_GETWAIT wants the wait object.
///
/// `'a` is invariant: whatever is answered lives as long as the object that was asked.
pub(crate) struct WaitObject<'a>(*mut *mut c_void, PhantomData<fn(&'a ()) -> &'a ()>);

impl<'a> WaitObject<'a> {
    /// Answers with a wait queue, which the caller may use until the object is closed.
    pub(crate) fn set(self, queue: &'a WaitQueue) {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for writes.
        unsafe { self.0.write(queue.as_raw().cast()) };
    }
}

/// Where KFI_GETWAITOBJ wants the type.
pub(crate) struct WaitObjType<'a>(
    *mut bindings::kfi_wait_obj,
    PhantomData<&'a mut bindings::kfi_wait_obj>,
);

impl WaitObjType<'_> {
    /// Answers with a type.
    pub(crate) fn set(self, wait_obj: WaitObj) {
        // SAFETY: `Control::from_raw` was given a pointer that is valid for writes.
        unsafe { self.0.write(wait_obj.as_raw()) };
    }
}

/// Where KFI_GET_RAW_MR wants the raw key.
pub(crate) struct RawKey<'a>(&'a bindings::kfi_mr_raw_attr);

impl RawKey<'_> {
    /// Returns the flags, yet to be checked.
    pub(crate) fn flags(&self) -> u64 {
        self.0.flags
    }

    /// Answers with the address of the first byte and the key; `ETOOSMALL` if there is no room.
    pub(crate) fn answer(self, base_addr: u64, key: &[u8]) -> Result {
        if self.0.base_addr.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: `Control::from_raw` was given pointers that are null or valid for writes, the key
        // for as many bytes as its size says.
        unsafe {
            answer(key, self.0.raw_key.cast(), self.0.key_size)?;
            self.0.base_addr.write(base_addr);
        }
        Ok(())
    }
}

/// Returns whether a command queues deferred work on an object of class `fclass`.
pub(super) fn queues_work(fclass: usize, command: c_int) -> bool {
    fclass == DomainClass::FCLASS && command == bindings::KFI_QUEUE_WORK.cast_signed()
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
    /// Reads a command to an object of class `fclass` from C. Commands that want an argument refuse
    /// null with `EINVAL`.
    ///
    /// # Safety
    ///
    /// `arg` must be null or point, for `'a` and exclusively, to what `command` takes if objects of
    /// that class have it. That of KFI_CANCEL_WORK may be any pointer.
    pub(super) unsafe fn from_raw(fclass: usize, command: c_int, arg: *mut c_void) -> Result<Self> {
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
        if fclass == DomainClass::FCLASS {
            if arg_of(bindings::KFI_CANCEL_WORK)? {
                return Ok(Self::CancelWork(WorkId::from_raw(arg.cast())));
            }
            if command == bindings::KFI_FLUSH_WORK {
                // SAFETY: The command takes null or a `struct kfid_cntr *`, which starts with a
                // `struct kfid`.
                return Ok(Self::FlushWork(unsafe { AnyFid::from_raw(arg.cast()) }));
            }
        }
        if fclass == MemoryRegionClass::FCLASS {
            if arg_of(bindings::KFI_GET_RAW_MR)? {
                // SAFETY: The command takes a `struct kfi_mr_raw_attr *`, which is not null.
                return Ok(Self::GetRawMr(RawKey(unsafe { &*arg.cast() })));
            }
            if arg_of(bindings::KFI_REFRESH)? {
                // SAFETY: The command takes a `struct kfi_mr_modify *`, which is not null.
                let modify = unsafe { &*arg.cast::<bindings::kfi_mr_modify>() };
                return Ok(Self::Refresh {
                    flags: modify.flags,
                    // SAFETY: The ranges are valid with the argument.
                    memory: unsafe { memory(&modify.attr) }?,
                });
            }
        }
        Ok(Self::Other)
    }
}
