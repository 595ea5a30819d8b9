// SPDX-License-Identifier: GPL-2.0

//! Addresses and connections (`struct kfi_ops_cm`); there are no connections.

use kernel::{
    error::from_result,
    prelude::*, //
};

use super::EndpointOps;
use crate::kfi::{
    bindings,
    fid::Fid,
    provider::{
        enosys::{
            enosys1,
            enosys2,
            enosys3,
            enosys4,
            enosys5, //
        },
        Answer, //
    }, //
};

/// Returns the table.
pub(super) const fn table<T: EndpointOps>() -> bindings::kfi_ops_cm {
    bindings::kfi_ops_cm {
        size: size_of::<bindings::kfi_ops_cm>(),
        setname: Some(setname_callback::<T>),
        getname: Some(getname_callback::<T>),
        getpeer: Some(enosys3),
        connect: Some(enosys4),
        listen: Some(enosys1),
        accept: Some(enosys3),
        reject: Some(enosys4),
        shutdown: Some(enosys2),
        join: Some(enosys5),
    }
}

/// Changes the address.
///
/// # Safety
///
/// `fid` must be the start of an open endpoint of `T`, `addr` null or valid for reads of `addrlen`
/// bytes.
unsafe extern "C" fn setname_callback<T: EndpointOps>(
    fid: *mut bindings::kfid,
    addr: *mut c_void,
    addrlen: usize,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    from_result(|| {
        if addr.is_null() || isize::try_from(addrlen).is_err() {
            return Err(EINVAL);
        }
        // SAFETY: `addr` is valid for reads of that many bytes, and not null.
        let name = unsafe { core::slice::from_raw_parts(addr.cast(), addrlen) };
        T::set_name(this, name)?;
        Ok(0)
    })
}

/// Returns the address.
///
/// # Safety
///
/// `fid` must be the start of an open endpoint of `T`, `addrlen` null or valid, and `addr` null or
/// valid for writes of that many bytes.
unsafe extern "C" fn getname_callback<T: EndpointOps>(
    fid: *mut bindings::kfid,
    addr: *mut c_void,
    addrlen: *mut usize,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    from_result(|| {
        // SAFETY: By the safety requirements.
        let answer = unsafe { Answer::new(addr, addrlen) };
        this.name(answer)?;
        Ok(0)
    })
}
