// SPDX-License-Identifier: GPL-2.0

//! Structures that travel between user space and the kernel and grow at their end.

use kernel::{
    prelude::*,
    transmute::{
        AsBytes,
        FromBytes, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

/// A structure that user space and the kernel may know in different versions.
pub trait Versioned: FromBytes + AsBytes + pin_init::Zeroable {
    /// The bytes of the first version.
    const FIRST_SIZE: usize;
}

/// Reads a structure of which the caller has `size` bytes into `value`, which must be zeroed.
///
/// A shorter one is completed with zeros, but must have the bytes of the first version (`EINVAL`).
/// Of a longer one the rest must be 0 (`E2BIG`). `EFAULT` if it cannot be read.
pub fn read_into<T: Versioned>(ptr: UserPtr, size: usize, value: &mut T) -> Result {
    if size < T::FIRST_SIZE {
        return Err(EINVAL);
    }
    let bytes = value.as_bytes_mut();
    let known = size.min(bytes.len());
    let mut reader = UserSlice::new(ptr, size).reader();
    reader.read_slice(bytes.get_mut(..known).ok_or(EINVAL)?)?;

    let mut rest = [0; 64];
    while !reader.is_empty() {
        let part = reader.len().min(rest.len());
        let part = rest.get_mut(..part).ok_or(E2BIG)?;
        reader.read_slice(part)?;
        if part.iter().any(|byte| *byte != 0) {
            return Err(E2BIG);
        }
    }
    Ok(())
}

/// As [`read_into`], for structures that fit on the stack.
pub fn read<T: Versioned>(ptr: UserPtr, size: usize) -> Result<T> {
    let mut value = pin_init::zeroed();
    read_into(ptr, size, &mut value)?;
    Ok(value)
}

/// Writes a structure of which the caller has `size` bytes: no more than these, and zeros where it
/// knows more.
pub fn write<T: Versioned>(ptr: UserPtr, size: usize, value: &T) -> Result {
    let bytes = value.as_bytes();
    let known = bytes.get(..size).unwrap_or(bytes);
    let mut writer = UserSlice::new(ptr, size).writer();
    writer.write_slice(known)?;

    let zeros = [0; 64];
    while !writer.is_empty() {
        let part = writer.len().min(zeros.len());
        writer.write_slice(zeros.get(..part).ok_or(E2BIG)?)?;
    }
    Ok(())
}
