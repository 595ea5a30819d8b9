// SPDX-License-Identifier: GPL-2.0

//! Keys that are given to the kernel.

use std::ffi::CStr;
use std::io;

use crate::sys;

/// A key in the keyring of the user; it is taken away when this is dropped.
#[derive(Debug)]
pub struct UserKey(i32);

impl UserKey {
    /// Gives the kernel a key of a type, in place of one of the same description if there is one.
    /// [`io::ErrorKind::Unsupported`] if the kernel has no keys.
    pub fn add(kind: &CStr, description: &CStr, payload: &[u8]) -> io::Result<Self> {
        sys::add_key(kind, description, payload).map(Self)
    }

    /// Makes it of no use.
    pub fn revoke(&self) -> io::Result<()> {
        sys::revoke_key(self.0)
    }
}

impl Drop for UserKey {
    fn drop(&mut self) {
        // Another one may be in its place.
        let _ = sys::unlink_key(self.0);
    }
}
