// SPDX-License-Identifier: GPL-2.0

//! Wait sets.

use kernel::{
    error::from_result,
    prelude::*,
    sync::rcu, //
};

use crate::kfi::{
    bindings,
    fid::{
        Class,
        Fid,
        Object,
        Tables, //
    },
    hold::Hold,
    linux::{
        timeout::Timeout,
        wait_queue::WaitQueue, //
    },
    wait_obj::WaitObj, //
};

/// The class of wait sets.
pub struct WaitSetClass;

// SAFETY: `struct kfid_wait` starts with its `kfid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for WaitSetClass {
    type Head = bindings::kfid_wait;
    type Tables = bindings::kfi_ops_wait;
    type Data = ();
    const FCLASS: usize = bindings::KFI_CLASS_WAIT as usize;
    const RCU_OPERATIONS: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &()) -> Self::Head {
        bindings::kfid_wait {
            kfid: fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: core::ptr::from_ref(tables).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        core::ptr::eq(unsafe { (*head).ops }, tables)
    }
}

/// The operations of a wait set (`struct kfi_ops_wait`).
pub trait WaitSetOps: Object<Class = WaitSetClass> {
    /// Sleeps until a member is signalled; in process context.
    fn wait(this: &Fid<Self>, timeout: Timeout) -> Result;

    /// Returns the wait queue that is woken when a member is signalled, for the set and for each of
    /// its members; `ENOSYS` if nothing was specified (R-CTL-7). May sleep.
    fn wait_queue(&self) -> Result<&WaitQueue>;
}

/// The attributes that a wait set is opened with (`struct kfi_wait_attr`).
pub struct WaitSetAttr {
    /// The wait object.
    pub wait_obj: WaitObj,
    /// Flags, yet to be checked.
    pub flags: u64,
}

impl WaitSetAttr {
    /// Reads attributes from C; `EINVAL` for null (R-WAIT-4) and for unknown wait objects.
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid.
    pub(super) unsafe fn from_raw(attr: *const bindings::kfi_wait_attr) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let attr = unsafe { attr.as_ref() }.ok_or(EINVAL)?;
        Ok(Self {
            wait_obj: WaitObj::try_from(attr.wait_obj)?,
            flags: attr.flags,
        })
    }
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: WaitSetOps> Tables<WaitSetClass> for T {
    const TABLES: &'static bindings::kfi_ops_wait = &bindings::kfi_ops_wait {
        size: size_of::<bindings::kfi_ops_wait>(),
        wait: Some(wait_callback::<T>),
    };
}

/// Waits for a member.
///
/// # Safety
///
/// `waitset` must be an open wait set of `T`.
unsafe extern "C" fn wait_callback<T: WaitSetOps>(
    waitset: *mut bindings::kfid_wait,
    timeout: c_int,
) -> c_int {
    from_result(|| {
        // Close waits for this section, so that the set stays until it is held.
        let section = rcu::read_lock();
        // SAFETY: By the safety requirements.
        let this = unsafe { Fid::<T>::borrow(waitset) };
        // A set with a thread in here cannot be closed (R-CLOSE-6).
        let hold = Hold::new(this)?;
        drop(section);
        T::wait(hold.fid(), Timeout::from_raw(timeout))?;
        Ok(0)
    })
}
