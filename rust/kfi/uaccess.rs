// SPDX-License-Identifier: GPL-2.0

//! Structures that travel between user space and the kernel and grow at their end.

use core::mem::MaybeUninit;
use kernel::{
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

/// A structure of plain numbers.
///
/// # Safety
///
/// Every bit pattern must be valid, and there must be no padding and no interior mutability.
pub(crate) unsafe trait Plain {}

/// The bytes of a structure.
fn as_bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: There is no padding, so all bytes are initialised.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Reads a structure of which the caller has `size` bytes.
///
/// A shorter one is completed with zeros, but must have the `first` bytes of its first version
/// (`EINVAL`). Of a longer one the rest must be 0 (`E2BIG`). `EFAULT` if it cannot be read.
pub(crate) fn read<T: Plain>(ptr: UserPtr, size: usize, first: usize) -> Result<T> {
    if size < first {
        return Err(EINVAL);
    }
    let known = size.min(size_of::<T>());
    let mut reader = UserSlice::new(ptr, size).reader();

    // SAFETY: Zeros are a valid `T`, as every bit pattern is.
    let mut value: T = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: Every bit pattern is valid, so the bytes may be written.
    let bytes = unsafe {
        core::slice::from_raw_parts_mut(core::ptr::from_mut(&mut value).cast::<u8>(), known)
    };
    reader.read_slice(bytes)?;

    let mut rest = [0; 64];
    while !reader.is_empty() {
        let part = reader.len().min(rest.len());
        let Some(part) = rest.get_mut(..part) else {
            return Err(E2BIG);
        };
        reader.read_slice(part)?;
        if part.iter().any(|byte| *byte != 0) {
            return Err(E2BIG);
        }
    }
    Ok(value)
}

/// Writes a structure of which the caller has `size` bytes; no more than these.
pub(crate) fn write<T: Plain>(ptr: UserPtr, size: usize, value: &T) -> Result {
    let bytes = as_bytes(value);
    let known = bytes.get(..size).unwrap_or(bytes);
    UserSlice::new(ptr, known.len()).writer().write_slice(known)
}
