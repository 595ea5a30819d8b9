// SPDX-License-Identifier: GPL-2.0

//! Authorization keys: endpoints with different ones cannot see each other.
//!
//! A key is some bytes. Those in use are numbered, so that requests carry and compare numbers.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

/// The number of a key that is in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyNumber(usize);

impl KeyNumber {
    /// Returns it as a small index.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// A key that somebody uses.
struct Used {
    bytes: KVec<u8>,
    users: usize,
}

/// The keys that are in use.
#[pin_data]
pub(crate) struct AuthKeys {
    #[pin]
    keys: SpinLockIrq<KVec<Option<Used>>>,
}

impl AuthKeys {
    /// No keys.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                keys <- new_spinlock_irq!(KVec::new(), "kfi_soft::AuthKeys::keys"),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins to use a key. May sleep.
    pub(crate) fn get(this: &Arc<Self>, bytes: &[u8]) -> Result<AuthKey> {
        let key = |number| {
            Ok(AuthKey {
                keys: this.clone(),
                number: KeyNumber(number),
            })
        };
        let mut own = KVec::new();
        own.extend_from_slice(bytes, GFP_KERNEL)?;
        let mut room = KVec::new();
        loop {
            let mut keys = this.keys.lock();
            let same = keys.iter_mut().enumerate().find_map(|(number, used)| {
                used.as_mut()
                    .filter(|used| used.bytes[..] == *bytes)
                    .map(|used| (number, used))
            });
            if let Some((number, used)) = same {
                used.users = used.users.saturating_add(1);
                drop(keys);
                return key(number);
            }
            let used = Used {
                bytes: own,
                users: 1,
            };
            if let Some((number, free)) =
                keys.iter_mut().enumerate().find(|(_, used)| used.is_none())
            {
                *free = Some(used);
                drop(keys);
                return key(number);
            }
            if keys.len() < keys.capacity() {
                let number = keys.len();
                let _ = keys.push_within_capacity(Some(used));
                drop(keys);
                return key(number);
            }
            own = used.bytes;
            let len = keys.len();
            if room.capacity() > len {
                // Room for more, made without the lock.
                for used in keys.drain_all() {
                    let _ = room.push_within_capacity(used);
                }
                core::mem::swap(&mut *keys, &mut room);
                continue;
            }
            drop(keys);
            room = KVec::with_capacity(len.saturating_mul(2).max(8), GFP_KERNEL)?;
        }
    }
}

/// A key in use.
pub(crate) struct AuthKey {
    keys: Arc<AuthKeys>,
    number: KeyNumber,
}

impl AuthKey {
    /// Returns its number, which is that of this key only, as long as it is in use.
    pub(crate) fn number(&self) -> KeyNumber {
        self.number
    }
}

impl Drop for AuthKey {
    fn drop(&mut self) {
        let mut keys = self.keys.keys.lock();
        let unused = keys.get_mut(self.number.0).and_then(|slot| {
            let used = slot.as_mut()?;
            used.users = used.users.saturating_sub(1);
            if used.users == 0 {
                slot.take()
            } else {
                None
            }
        });
        drop(keys);
        drop(unused);
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
        let number = two.number();
        drop(two);
        // Whoever comes next may have the number of what is gone.
        assert!(AuthKeys::get(&keys, b"three")?.number() == number);
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
