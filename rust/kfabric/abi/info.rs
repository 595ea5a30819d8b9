// SPDX-License-Identifier: GPL-2.0

//! Allocation, copying and release of `struct kfi_info`.

use core::{
    alloc::Layout,
    ptr, //
};
use kernel::prelude::*;

use crate::{
    export::c_export,
    kfi::{
        bindings,
        info::{
            Info,
            ADDRESS_ROOM, //
        }, //
    }, //
};

/// Allocates zeroed memory for a `T`.
fn alloc_zeroed<T: pin_init::Zeroable>() -> Result<*mut T> {
    Ok(KBox::into_raw(KBox::init(
        pin_init::init_zeroed::<T>(),
        GFP_KERNEL,
    )?))
}

/// Copies `len` bytes; nothing is copied to null.
///
/// # Safety
///
/// `from` must be null or valid for reads of `len` bytes.
unsafe fn copy_bytes<T>(from: *const T, len: usize) -> Result<*mut T> {
    if from.is_null() || len == 0 {
        return Ok(ptr::null_mut());
    }
    Layout::array::<u8>(len).map_err(|_| EINVAL)?;
    // SAFETY: By the safety requirements.
    let bytes = unsafe { core::slice::from_raw_parts(from.cast::<u8>(), len) };
    // For readers that believe the format of an address rather than its length.
    let room = len.max(ADDRESS_ROOM);
    let mut copy = KVec::with_capacity(room, GFP_KERNEL)?;
    copy.extend_from_slice(bytes, GFP_KERNEL)?;
    copy.resize(room, 0, GFP_KERNEL)?;
    Ok(copy.into_raw_parts().0.cast())
}

/// Copies a text; nothing is copied to null.
///
/// # Safety
///
/// `from` must be null or a text.
pub(crate) unsafe fn copy_text(from: *const c_char) -> Result<*mut c_char> {
    if from.is_null() {
        return Ok(ptr::null_mut());
    }
    // SAFETY: By the safety requirements.
    let text = unsafe { CStr::from_char_ptr(from) };
    // SAFETY: As above, the terminating 0 included.
    unsafe { copy_bytes(from, text.to_bytes_with_nul().len()) }
}

/// Allocates an entry with all attributes, everything in it 0.
fn alloc() -> Result<Info> {
    let entry = alloc_zeroed::<bindings::kfi_info>()?;
    // SAFETY: The entry is zeroed, that is, a chain of its own that owns nothing.
    let info = unsafe { Info::from_raw(entry) }.ok_or(ENOMEM)?;
    // SAFETY: `info` has it, and nobody else.
    let entry = unsafe { &mut *entry };
    entry.tx_attr = alloc_zeroed()?;
    entry.rx_attr = alloc_zeroed()?;
    entry.ep_attr = alloc_zeroed()?;
    entry.domain_attr = alloc_zeroed()?;
    entry.fabric_attr = alloc_zeroed()?;
    Ok(info)
}

/// Copies a part that an entry owns; `fix` replaces what the part owns in turn.
///
/// # Safety
///
/// `from` must be null or valid.
unsafe fn copy_part<T: Copy + pin_init::Zeroable>(
    from: *const T,
    slot: &mut *mut T,
    fix: impl FnOnce(&T, &mut T) -> Result,
) -> Result {
    // SAFETY: By the safety requirements.
    let Some(from) = (unsafe { from.as_ref() }) else {
        return Ok(());
    };
    *slot = alloc_zeroed()?;
    // SAFETY: It has just been allocated.
    let to = unsafe { &mut **slot };
    fix(from, to)
}

/// Copies one entry with all that it owns.
///
/// Everything that it refers to without owning it stays shared: the open fabric and domain, and the
/// handle.
///
/// # Safety
///
/// `from` must be valid.
unsafe fn dup(from: &bindings::kfi_info) -> Result<Info> {
    let entry = alloc_zeroed::<bindings::kfi_info>()?;
    // SAFETY: The entry is zeroed, that is, a chain of its own that owns nothing.
    let info = unsafe { Info::from_raw(entry) }.ok_or(ENOMEM)?;
    // From here on `info` owns what is put into the entry, whenever this function returns.
    // SAFETY: `info` has it, and nobody else.
    let to = unsafe { &mut *entry };

    to.caps = from.caps;
    to.mode = from.mode;
    to.addr_format = from.addr_format;
    to.handle = from.handle;
    // SAFETY: `from` is valid by the safety requirements, here and below.
    to.src_addr = unsafe { copy_bytes(from.src_addr, from.src_addrlen) }?;
    to.src_addrlen = from.src_addrlen;
    // SAFETY: As above.
    to.dest_addr = unsafe { copy_bytes(from.dest_addr, from.dest_addrlen) }?;
    to.dest_addrlen = from.dest_addrlen;

    // SAFETY: As above.
    unsafe {
        copy_part(from.tx_attr, &mut to.tx_attr, |from, to| {
            *to = *from;
            Ok(())
        })?;
        copy_part(from.rx_attr, &mut to.rx_attr, |from, to| {
            *to = *from;
            Ok(())
        })?;
        copy_part(from.ep_attr, &mut to.ep_attr, |from, to| {
            *to = bindings::kfi_ep_attr {
                auth_key: ptr::null_mut(),
                ..*from
            };
            to.auth_key = copy_bytes(from.auth_key, from.auth_key_size)?;
            Ok(())
        })?;
        copy_part(from.domain_attr, &mut to.domain_attr, |from, to| {
            *to = bindings::kfi_domain_attr {
                name: ptr::null_mut(),
                auth_key: ptr::null_mut(),
                ..*from
            };
            to.name = copy_text(from.name)?;
            to.auth_key = copy_bytes(from.auth_key, from.auth_key_size)?;
            Ok(())
        })?;
        copy_part(from.fabric_attr, &mut to.fabric_attr, |from, to| {
            *to = bindings::kfi_fabric_attr {
                name: ptr::null_mut(),
                prov_name: ptr::null_mut(),
                ..*from
            };
            to.name = copy_text(from.name)?;
            to.prov_name = copy_text(from.prov_name)?;
            Ok(())
        })?;
    }
    Ok(info)
}

/// Frees one entry with all that it owns.
///
/// # Safety
///
/// `entry` must be valid and owned by the caller, and so must be what it owns, unless it is null.
pub(crate) unsafe fn free(entry: *mut bindings::kfi_info) {
    // SAFETY: By the safety requirements, here and below; kfree takes null.
    unsafe {
        let info = &*entry;
        if let Some(attr) = info.ep_attr.as_ref() {
            bindings::kfree(attr.auth_key.cast());
        }
        if let Some(attr) = info.domain_attr.as_ref() {
            bindings::kfree(attr.name.cast());
            bindings::kfree(attr.auth_key.cast());
        }
        if let Some(attr) = info.fabric_attr.as_ref() {
            bindings::kfree(attr.name.cast());
            bindings::kfree(attr.prov_name.cast());
        }
        bindings::kfree(info.src_addr);
        bindings::kfree(info.dest_addr);
        bindings::kfree(info.tx_attr.cast());
        bindings::kfree(info.rx_attr.cast());
        bindings::kfree(info.ep_attr.cast());
        bindings::kfree(info.domain_attr.cast());
        bindings::kfree(info.fabric_attr.cast());
        bindings::kfree(entry.cast());
    }
}

c_export! {
    /// Implements kfi_allocinfo.
    ///
    /// # Safety
    ///
    /// None.
    unsafe fn kfi_allocinfo() -> *mut bindings::kfi_info {
        alloc().map_or(ptr::null_mut(), Info::into_raw)
    }

    /// Implements kfi_dupinfo: copies the first entry, or makes an empty one of null.
    ///
    /// # Safety
    ///
    /// `info` must be null or valid.
    unsafe fn kfi_dupinfo(info: *const bindings::kfi_info) -> *mut bindings::kfi_info {
        // SAFETY: By the safety requirements.
        let copy = match unsafe { info.as_ref() } {
            // SAFETY: As above.
            Some(info) => unsafe { dup(info) },
            None => alloc(),
        };
        copy.map_or(ptr::null_mut(), Info::into_raw)
    }

    /// Implements kfi_freeinfo: frees a chain, which may be partly built.
    ///
    /// # Safety
    ///
    /// `info` must be null or a chain that the caller owns.
    unsafe fn kfi_freeinfo(info: *mut bindings::kfi_info) {
        let mut entry = info;
        while !entry.is_null() {
            // SAFETY: By the safety requirements.
            let next = unsafe { (*entry).next };
            // SAFETY: By the safety requirements.
            unsafe { free(entry) };
            entry = next;
        }
    }
}
