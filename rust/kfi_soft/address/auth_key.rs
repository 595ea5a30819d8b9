// SPDX-License-Identifier: GPL-2.0

//! Authorization keys: endpoints with different ones cannot see each other.
//!
//! A key is some bytes. Those in use are numbered, so that requests carry and compare numbers. A
//! number is not used again: what names it after its key is gone names nothing.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::limits;

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
    /// That of no key.
    const NONE: Self = Self(0);
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

/// A key that is in use.
struct Used {
    number: KeyNumber,
    users: usize,
}

/// The part that the lock protects.
struct Numbered {
    keys: RBTree<KeyBytes, Used>,
    /// The number given last.
    last: u64,
}

/// The keys that are in use.
#[pin_data]
pub(crate) struct AuthKeys {
    #[pin]
    keys: SpinLockIrq<Numbered>,
}

impl AuthKeys {
    /// No keys.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                keys <- new_spinlock_irq!(
                    Numbered {
                        keys: RBTree::new(),
                        last: 0,
                    },
                    "kfi_soft::AuthKeys::keys"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins to use a key; `EINVAL` if it is too long. May sleep.
    pub(crate) fn get(this: &Arc<Self>, bytes: &[u8]) -> Result<AuthKey> {
        let bytes = KeyBytes::new(bytes)?;
        // Made without the lock; not needed if somebody uses the key.
        let mut node = Some(RBTreeNodeReservation::new(GFP_KERNEL)?);
        let mut keys = this.keys.lock();
        let Numbered { keys: used, last } = &mut *keys;
        if used.get(&bytes).is_none() {
            if let Some(node) = node.take() {
                // They last for the time of a machine.
                *last = last.wrapping_add(1);
                let new = Used {
                    number: KeyNumber(*last),
                    users: 0,
                };
                // There was none.
                let _ = used.insert(node.into_node(bytes, new));
            }
        }
        let found = used.get_mut(&bytes).map(|used| {
            used.users = used.users.saturating_add(1);
            used.number
        });
        drop(keys);
        drop(node);
        Ok(AuthKey {
            keys: this.clone(),
            bytes,
            number: found.ok_or(ENOMEM)?,
        })
    }
}

impl AuthKeys {
    /// Returns the number of a key, or, if nobody uses it, one that no key has.
    pub(crate) fn find(&self, bytes: &[u8]) -> KeyNumber {
        let Ok(bytes) = KeyBytes::new(bytes) else {
            return KeyNumber::NONE;
        };
        let keys = self.keys.lock();
        keys.keys
            .get(&bytes)
            .map_or(KeyNumber::NONE, |used| used.number)
    }
}

/// A key in use.
pub(crate) struct AuthKey {
    keys: Arc<AuthKeys>,
    bytes: KeyBytes,
    number: KeyNumber,
}

impl AuthKey {
    /// Returns its number, which is that of this key only.
    pub(crate) fn number(&self) -> KeyNumber {
        self.number
    }

    /// Returns its bytes. A transmit context has its key, so nobody looks for the bytes by the number.
    pub(crate) fn bytes(&self) -> &[u8] {
        // No key is longer than the array.
        self.bytes.bytes.get(..self.bytes.len).unwrap_or(&[])
    }
}

impl Drop for AuthKey {
    fn drop(&mut self) {
        let mut keys = self.keys.keys.lock();
        let unused = keys.keys.get_mut(&self.bytes).is_some_and(|used| {
            used.users = used.users.saturating_sub(1);
            used.users == 0
        });
        let old = if unused {
            keys.keys.remove_node(&self.bytes)
        } else {
            None
        };
        drop(keys);
        drop(old);
    }
}

#[kunit_tests(kfi_soft_auth_key)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_have_the_same_number() -> Result {
        let keys = AuthKeys::new()?;
        let one = AuthKeys::get(&keys, b"one")?;
        let two = AuthKeys::get(&keys, b"two")?;
        assert!(one.number() != two.number());
        assert!(AuthKeys::get(&keys, b"one")?.number() == one.number());
        assert!(AuthKeys::get(&keys, b"")?.number() != one.number());
        assert!(AuthKeys::get(&keys, b"one\0")?.number() != one.number());
        let number = two.number();
        drop(two);
        // Nobody has the number of what is gone.
        assert!(AuthKeys::get(&keys, b"three")?.number() != number);
        assert!(AuthKeys::get(&keys, b"two")?.number() != number);
        Ok(())
    }

    #[test]
    fn keys_are_found() -> Result {
        let keys = AuthKeys::new()?;
        let one = AuthKeys::get(&keys, b"one")?;
        let other = AuthKeys::get(&keys, b"other")?;
        assert!(keys.find(b"one") == one.number());
        assert!(keys.find(b"other") == other.number());
        assert!(keys.find(b"") == KeyNumber::NONE);
        drop(one);
        assert!(keys.find(b"one") == KeyNumber::NONE);
        Ok(())
    }

    #[test]
    fn keys_have_their_bytes() -> Result {
        let keys = AuthKeys::new()?;
        assert_eq!(AuthKeys::get(&keys, b"")?.bytes(), b"");
        assert_eq!(AuthKeys::get(&keys, b"one\0")?.bytes(), b"one\0");
        let longest = [7; limits::MAX_AUTH_KEY_SIZE];
        assert_eq!(AuthKeys::get(&keys, &longest)?.bytes(), longest);
        Ok(())
    }

    #[test]
    fn many_keys() -> Result {
        let keys = AuthKeys::new()?;
        let mut held = KVec::new();
        for number in 0..100u32 {
            held.push(AuthKeys::get(&keys, &number.to_ne_bytes())?, GFP_KERNEL)?;
        }
        for (at, key) in held.iter().enumerate() {
            let same = AuthKeys::get(&keys, &u32::try_from(at)?.to_ne_bytes())?;
            assert!(same.number() == key.number());
        }
        Ok(())
    }
}
