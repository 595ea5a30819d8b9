// SPDX-License-Identifier: GPL-2.0

//! Keys that user space has given to the kernel, for all who know their descriptions.
//!
//! C headers: [`include/linux/key.h`](srctree/include/linux/key.h),
//! [`include/keys/user-type.h`](srctree/include/keys/user-type.h).

use core::{
    ptr,
    ptr::NonNull,
    slice, //
};
use kernel::{
    error::to_result,
    prelude::*,
    task::might_sleep, //
};

use super::bindings;

/// The type of a key, by which user space may do more or less with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyType {
    /// Anything; the type is called `user`.
    User,
    /// Not read it; it is called `logon`, and has a colon in each description.
    Logon,
}

/// A key.
///
/// # Invariants
///
/// It is a `struct key` of one of the [types](KeyType), which this has a reference to.
pub struct Key(NonNull<bindings::requested_key>);

impl Key {
    /// Looks for a key in the keyrings that the current thread finds: its own, and those of its process,
    /// session and user. `ENOKEY` if there is none, `EKEYREVOKED` or `EKEYEXPIRED` if it is not to be used any
    /// more, `EOPNOTSUPP` if the kernel has no keys. May sleep.
    pub fn request(kind: KeyType, description: &CStr) -> Result<Self> {
        might_sleep();
        let mut key = ptr::null_mut();
        // SAFETY: The description ends with a null and stays during the call; there is room for a
        // pointer.
        to_result(unsafe {
            bindings::key_request(
                kind == KeyType::Logon,
                description.as_char_ptr(),
                &raw mut key,
            )
        })?;
        // INVARIANT: That one is of the type, and the reference is ours.
        NonNull::new(key).map(Self).ok_or(ENOKEY)
    }

    /// Shows what is in it, which is not changed meanwhile. `EKEYREVOKED` or `EKEYEXPIRED` if it is not to be
    /// used any more. May sleep.
    pub fn read<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        might_sleep();
        let (mut payload, mut len) = (ptr::null(), 0);
        // SAFETY: It is a key by the type invariants; there is room for both.
        to_result(unsafe { bindings::key_lock(self.0.as_ptr(), &raw mut payload, &raw mut len) })?;
        // SAFETY: The key has `len` bytes, and as long as it is locked they stay and are not changed.
        let result = read(unsafe { slice::from_raw_parts(payload, len) });
        // SAFETY: It was locked above.
        unsafe { bindings::key_unlock(self.0.as_ptr()) };
        Ok(result)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: The reference is ours by the type invariants, and goes with this.
        unsafe { bindings::key_give_back(self.0.as_ptr()) };
    }
}

#[cfg(unit_tests)]
#[kernel::macros::kunit_tests(linux_key)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_put_there_is_not_found() {
        for kind in [KeyType::User, KeyType::Logon] {
            let found = Key::request(kind, c"linux_key: what nobody has put there");
            let wanted = if cfg!(CONFIG_KEYS) {
                ENOKEY
            } else {
                EOPNOTSUPP
            };
            assert_eq!(found.err(), Some(wanted));
        }
    }
}
