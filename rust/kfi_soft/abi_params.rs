// SPDX-License-Identifier: GPL-2.0

//! Parameters that are texts, see `params.c`.

use core::ptr;
use kernel::{
    error::from_result,
    prelude::*,
    str::CString, //
};

use crate::{
    hotplug::{
        self,
        AddressList, //
    },
    kfi::bindings, //
};

/// Returns the parameter `address`, as it was when the module was loaded.
pub(crate) fn address() -> &'static [u8] {
    // SAFETY: It is for any thread that may sleep, without the lock of the parameters.
    unsafe { bindings::kfi_soft_params_enter(bindings::KFI_SOFT_PARAMS_CLOSED) };
    let text = &raw const bindings::kfi_soft_address;
    // SAFETY: It is written in the first stage only, which is over and never comes again, and it stays
    // as long as the module.
    let text: &[u8] = unsafe { &*text };
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Returns the parameter `secret`.
pub(crate) fn secret() -> &'static CStr {
    let text = &raw const bindings::kfi_soft_secret;
    // SAFETY: It was written before the module was initialised and cannot be written afterwards, and
    // it stays as long as the module.
    let text: &[u8] = unsafe { &*text };
    // The last byte is a null in any case.
    CStr::from_bytes_until_nul(text).unwrap_or_default()
}

/// Says that what is written to `address` is carried out; dropped, nothing of it is, nor is it being.
pub(crate) struct AddressChanges(());

impl AddressChanges {
    /// For a module that has all that it consists of.
    pub(crate) fn new() -> Self {
        // SAFETY: As in `address`.
        unsafe { bindings::kfi_soft_params_enter(bindings::KFI_SOFT_PARAMS_OPEN) };
        Self(())
    }
}

impl Drop for AddressChanges {
    fn drop(&mut self) {
        // SAFETY: As in `address`.
        unsafe { bindings::kfi_soft_params_enter(bindings::KFI_SOFT_PARAMS_CLOSED) };
    }
}

/// Carries out what was written to `address`.
///
/// # Safety
///
/// `text` must end with a null, and stay during the call. The caller has the lock of the module's
/// parameters, and there are [`AddressChanges`].
#[no_mangle]
unsafe extern "C" fn kfi_soft_address_change(text: *const c_char) -> c_int {
    // SAFETY: By the safety requirements.
    let text = unsafe { CStr::from_char_ptr(text) };
    from_result(|| {
        hotplug::change(text.to_bytes())?;
        Ok(0)
    })
}

/// Writes what is to be read from `address`, with a line's end; returns how many bytes these are.
///
/// # Safety
///
/// `text` must be valid for writes of `size` bytes. The caller has the lock of the module's parameters, and
/// there are [`AddressChanges`].
#[no_mangle]
unsafe extern "C" fn kfi_soft_address_list(text: *mut c_char, size: usize) -> c_int {
    from_result(|| {
        let list = CString::try_from_fmt(fmt!("{}\n", AddressList))?;
        let list = list.to_bytes();
        if list.len() > size {
            return Err(EINVAL);
        }
        // SAFETY: There are as many bytes, by the safety requirements, in memory of somebody else.
        unsafe { ptr::copy_nonoverlapping(list.as_ptr(), text.cast(), list.len()) };
        Ok(c_int::try_from(list.len())?)
    })
}

// A function that differs from its declaration does not compile: both arms have one type.
const _: () = {
    if true {
        bindings::kfi_soft_address_change
    } else {
        kfi_soft_address_change
    };
    if true {
        bindings::kfi_soft_address_list
    } else {
        kfi_soft_address_list
    };
};
