// SPDX-License-Identifier: GPL-2.0

//! Poll sets.

use core::marker::PhantomData;
use kernel::{error::from_result, prelude::*};

use crate::kfi::{
    bindings,
    context::Context,
    fid::{
        AnyFid,
        Class,
        Fid,
        Object,
        Tables, //
    }, //
};

/// The class of poll sets.
pub struct PollSetClass;

// SAFETY: `struct kfid_poll` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for PollSetClass {
    type Head = bindings::kfid_poll;
    type Tables = bindings::kfi_ops_poll;
    type Data = ();
    const FCLASS: usize = bindings::KFI_CLASS_POLL as usize;
    const RCU_OPERATIONS: bool = false;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &()) -> Self::Head {
        bindings::kfid_poll {
            fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: core::ptr::from_ref(tables).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        core::ptr::eq(unsafe { (*head).ops }, tables)
    }
}

/// Where kfi_poll wants the contexts of members with events.
pub struct PollBuffer<'a> {
    contexts: *mut *mut c_void,
    capacity: usize,
    len: usize,
    _lifetime: PhantomData<&'a mut *mut c_void>,
}

impl PollBuffer<'_> {
    /// Returns whether there is no room.
    pub fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Adds a context; `false` if there is no room.
    pub fn push(&mut self, context: Context) -> bool {
        if self.is_full() {
            return false;
        }
        // SAFETY: `poll_callback` was given room for `capacity` contexts, and `len` is less.
        unsafe { self.contexts.add(self.len).write(context.as_raw()) };
        self.len += 1;
        true
    }
}

/// The operations of a poll set (`struct kfi_ops_poll`).
pub trait PollSetOps: Object<Class = PollSetClass> {
    /// Returns the contexts of members with events. Does not sleep.
    fn poll(&self, contexts: &mut PollBuffer<'_>);

    /// Adds a member. May sleep.
    fn add(this: &Fid<Self>, member: AnyFid<'_>, flags: u64) -> Result;

    /// Removes a member. May sleep.
    fn del(this: &Fid<Self>, member: AnyFid<'_>, flags: u64) -> Result;
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: PollSetOps> Tables<PollSetClass> for T {
    const TABLES: &'static bindings::kfi_ops_poll = &bindings::kfi_ops_poll {
        size: size_of::<bindings::kfi_ops_poll>(),
        poll: Some(poll_callback::<T>),
        poll_add: Some(add_callback::<T>),
        poll_del: Some(del_callback::<T>),
    };
}

/// Returns contexts.
///
/// # Safety
///
/// `pollset` must be an open poll set of `T`, `context` null or valid for writes of `count`
/// pointers.
unsafe extern "C" fn poll_callback<T: PollSetOps>(
    pollset: *mut bindings::kfid_poll,
    context: *mut *mut c_void,
    count: c_int,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(pollset) };
    from_result(|| {
        let capacity = usize::try_from(count).map_err(|_| EINVAL)?;
        if capacity != 0 && context.is_null() {
            return Err(EINVAL);
        }
        let mut contexts = PollBuffer {
            contexts: context,
            capacity,
            len: 0,
            _lifetime: PhantomData,
        };
        this.poll(&mut contexts);
        // No more than `count`.
        c_int::try_from(contexts.len).map_err(|_| EOVERFLOW)
    })
}

/// Adds a member.
///
/// # Safety
///
/// `pollset` must be an open poll set of `T`, `member` null or an open object.
unsafe extern "C" fn add_callback<T: PollSetOps>(
    pollset: *mut bindings::kfid_poll,
    member: *mut bindings::kfid,
    flags: u64,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(pollset) };
    // SAFETY: By the safety requirements.
    let member = unsafe { AnyFid::from_raw(member) };
    from_result(|| {
        T::add(this, member.ok_or(EINVAL)?, flags)?;
        Ok(0)
    })
}

/// Removes a member.
///
/// # Safety
///
/// `pollset` must be an open poll set of `T`, `member` null or an open object.
unsafe extern "C" fn del_callback<T: PollSetOps>(
    pollset: *mut bindings::kfid_poll,
    member: *mut bindings::kfid,
    flags: u64,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(pollset) };
    // SAFETY: By the safety requirements.
    let member = unsafe { AnyFid::from_raw(member) };
    from_result(|| {
        T::del(this, member.ok_or(EINVAL)?, flags)?;
        Ok(0)
    })
}
