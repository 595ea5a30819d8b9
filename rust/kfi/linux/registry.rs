// SPDX-License-Identifier: GPL-2.0

//! Values by keys, each of which is there as long as somebody uses it.
//!
//! Memory is allocated before the lock is taken, and freed after it was released.

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        LockClassKey,
        SpinLockIrq, //
    }, //
};

/// A value, and how many use it.
struct Used<V> {
    value: V,
    users: usize,
}

/// The values that are used.
#[pin_data]
pub struct Registry<K, V> {
    #[pin]
    values: SpinLockIrq<RBTree<K, Used<V>>>,
}

impl<K: Copy + Ord + Unpin, V: Clone + Unpin> Registry<K, V> {
    /// No values.
    pub fn new(name: &'static CStr, class: Pin<&'static LockClassKey>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                values <- SpinLockIrq::new(RBTree::new(), name, class),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins to use the value of a key, which is `new` if nobody uses another. May sleep.
    pub fn get(self: &Arc<Self>, key: K, new: V) -> Result<Registered<K, V>> {
        let used = Used {
            value: new.clone(),
            users: 1,
        };
        let node = RBTreeNode::new(key, used, GFP_KERNEL)?;
        let mut values = self.values.lock();
        let (value, unneeded) = match values.get_mut(&key) {
            Some(used) => {
                used.users = used.users.saturating_add(1);
                (used.value.clone(), Some(node))
            }
            // It takes the place of none.
            None => (new, values.insert(node)),
        };
        drop(values);
        drop(unneeded);
        Ok(Registered {
            registry: self.clone(),
            key,
            value,
        })
    }

    /// Returns the value of a key, if somebody uses it.
    pub fn find(&self, key: &K) -> Option<V> {
        let values = self.values.lock();
        values.get(key).map(|used| used.value.clone())
    }
}

/// The use of a value.
pub struct Registered<K: Ord + Unpin, V: Unpin> {
    registry: Arc<Registry<K, V>>,
    key: K,
    value: V,
}

impl<K: Ord + Unpin, V: Unpin> Registered<K, V> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns the value.
    pub fn value(&self) -> &V {
        &self.value
    }
}

impl<K: Ord + Unpin, V: Unpin> Drop for Registered<K, V> {
    fn drop(&mut self) {
        let mut values = self.registry.values.lock();
        let is_last = values.get_mut(&self.key).is_some_and(|used| {
            used.users = used.users.saturating_sub(1);
            used.users == 0
        });
        let old = if is_last {
            values.remove_node(&self.key)
        } else {
            None
        };
        drop(values);
        drop(old);
    }
}

#[cfg(unit_tests)]
#[kunit_tests(linux_registry)]
mod tests {
    use super::*;
    use kernel::static_lock_class;

    fn registry() -> Result<Arc<Registry<u32, u32>>> {
        Registry::new(c"registry test", static_lock_class!())
    }

    #[test]
    fn users_of_a_key_share_a_value() -> Result {
        let registry = registry()?;
        let (one, other) = (registry.get(7, 70)?, registry.get(7, 71)?);
        let another = registry.get(8, 80)?;
        assert_eq!((one.key(), one.value()), (&7, &70));
        assert_eq!((other.key(), other.value()), (&7, &70));
        assert_eq!((another.key(), another.value()), (&8, &80));
        // The other one is still there.
        drop(one);
        assert_eq!(registry.get(7, 72)?.value(), &70);
        drop(other);
        assert_eq!(registry.get(7, 73)?.value(), &73);
        Ok(())
    }

    #[test]
    fn values_are_found_while_they_are_used() -> Result {
        let registry = registry()?;
        let (one, other) = (registry.get(7, 70)?, registry.get(8, 80)?);
        assert_eq!(registry.find(&7), Some(70));
        assert_eq!(registry.find(&8), Some(80));
        assert_eq!(registry.find(&9), None);
        drop(one);
        assert_eq!(registry.find(&7), None);
        assert_eq!(registry.find(&8), Some(80));
        drop(other);
        assert_eq!(registry.find(&8), None);
        Ok(())
    }

    #[test]
    fn many_keys() -> Result {
        let registry = registry()?;
        let mut held = KVec::new();
        for key in 0..100 {
            held.push(registry.get(key, key)?, GFP_KERNEL)?;
        }
        for one in &held {
            assert_eq!(registry.get(*one.key(), 1000)?.value(), one.value());
        }
        Ok(())
    }
}
