// SPDX-License-Identifier: GPL-2.0

//! Authorization keys: endpoints with different ones cannot see each other.
//!
//! A key is some bytes. Those in use are numbered, so that requests carry and compare numbers. A
//! number is not used again: what names it after its key is gone names nothing. Only the key without bytes has
//! the same number at all times.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::{
    kfi::linux::registry::{
        Registered,
        Registry, //
    },
    limits, //
};

/// The number of a key that is in use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyNumber(u64);

/// The bytes of a key, in the order of their number and then of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeyBytes {
    len: usize,
    bytes: [u8; limits::MAX_AUTH_KEY_SIZE],
}

impl KeyNumber {
    /// The number that no key has.
    const NONE: Self = Self(0);
    /// The number of the key without bytes, which is that of most: it is known without looking.
    const EMPTY: Self = Self(1);
}

impl KeyBytes {
    /// Copies a key; `EINVAL` if it is too long.
    fn new(key: &[u8]) -> Result<Self> {
        let mut bytes = [0; limits::MAX_AUTH_KEY_SIZE];
        let place = bytes.get_mut(..key.len()).ok_or(EINVAL)?;
        place.copy_from_slice(key);
        Ok(Self {
            len: key.len(),
            bytes,
        })
    }
}

/// The keys that are in use.
pub(crate) struct AuthKeys {
    keys: Arc<Registry<KeyBytes, KeyNumber>>,
    /// The number given last.
    last: Atomic<u64>,
}

impl AuthKeys {
    /// No keys.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let this = Self {
            keys: Registry::new(c"kfi_soft::AuthKeys", static_lock_class!())?,
            last: Atomic::new(KeyNumber::EMPTY.0),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Begins to use a key; `EINVAL` if it is too long. May sleep.
    pub(crate) fn get(&self, bytes: &[u8]) -> Result<AuthKey> {
        let is_empty = bytes.is_empty();
        let bytes = KeyBytes::new(bytes)?;
        if is_empty {
            return self.keys.get(bytes, KeyNumber::EMPTY).map(AuthKey);
        }
        // A key that is in use has its number, and this one is lost: they last for the time of a machine.
        // Relaxed: no two get the same.
        let last = self.last.fetch_add(1, ordering::Relaxed);
        let number = KeyNumber(last.wrapping_add(1));
        self.keys.get(bytes, number).map(AuthKey)
    }

    /// Returns the number of a key, or, if nobody uses it, one that no key in use has.
    pub(crate) fn find(&self, bytes: &[u8]) -> KeyNumber {
        if bytes.is_empty() {
            return KeyNumber::EMPTY;
        }
        let bytes = KeyBytes::new(bytes).ok();
        bytes
            .and_then(|bytes| self.keys.find(&bytes))
            .unwrap_or(KeyNumber::NONE)
    }
}

/// A key in use.
pub(crate) struct AuthKey(Registered<KeyBytes, KeyNumber>);

impl AuthKey {
    /// Returns its number, which is that of this key only.
    pub(crate) fn number(&self) -> KeyNumber {
        *self.0.value()
    }

    /// Returns its bytes. A transmit context has its key, so nobody looks for the bytes by the number.
    pub(crate) fn bytes(&self) -> &[u8] {
        let KeyBytes { len, bytes } = self.0.key();
        // No key is longer than the array.
        bytes.get(..*len).unwrap_or(&[])
    }
}

#[kunit_tests(kfi_soft_auth_key)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_have_the_same_number() -> Result {
        let keys = AuthKeys::new()?;
        let one = keys.get(b"one")?;
        let two = keys.get(b"two")?;
        assert!(one.number() != two.number());
        assert!(keys.get(b"one")?.number() == one.number());
        assert!(keys.get(b"")?.number() != one.number());
        assert!(keys.get(b"one\0")?.number() != one.number());
        let number = two.number();
        drop(two);
        // No other key gets the number of one that is gone.
        assert!(keys.get(b"three")?.number() != number);
        assert!(keys.get(b"two")?.number() != number);
        Ok(())
    }

    #[test]
    fn keys_are_found() -> Result {
        let keys = AuthKeys::new()?;
        let one = keys.get(b"one")?;
        let other = keys.get(b"other")?;
        assert!(keys.find(b"one") == one.number());
        assert!(keys.find(b"other") == other.number());
        assert!(keys.find(b"none") == KeyNumber::NONE);
        assert!(keys.find(b"") == keys.get(b"")?.number());
        drop(one);
        assert!(keys.find(b"one") == KeyNumber::NONE);
        Ok(())
    }

    #[test]
    fn keys_have_their_bytes() -> Result {
        let keys = AuthKeys::new()?;
        assert_eq!(keys.get(b"")?.bytes(), b"");
        assert_eq!(keys.get(b"one\0")?.bytes(), b"one\0");
        let longest = [7; limits::MAX_AUTH_KEY_SIZE];
        assert_eq!(keys.get(&longest)?.bytes(), longest);
        Ok(())
    }
}
