// SPDX-License-Identifier: GPL-2.0

//! Addresses by index, found without a lock.
//!
//! A sender looks an address up, from any context, while others insert and remove. So entries
//! never move: they lie in leaves, the leaves in branches, both made when the first entry needs them
//! and kept to the end. All of it is small enough for kmalloc, as freeing that never sleeps.

use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        SetOnce, //
    }, //
};

use super::BookAddress;

/// Bits of an index that say which entry of a leaf is meant.
const LEAF_BITS: u32 = 9;
/// Bits of an index that say which leaf of a branch is meant.
const BRANCH_BITS: u32 = 7;
/// Bits of an index that say which branch is meant.
const ROOT_BITS: u32 = 6;

/// Set in an entry that has an address.
const PRESENT: u64 = 1 << 63;
/// Set in an entry that is about to be removed.
const LEAVING: u64 = 1 << 62;

/// Entries.
type Leaf = KVec<Atomic<u64>>;
/// Leaves, as far as there are any.
type Branch = KVec<SetOnce<Leaf>>;

/// Returns the part of an index that begins at bit `shift` and has `bits` bits.
const fn part(index: u32, shift: u32, bits: u32) -> usize {
    ((index >> shift) & ((1 << bits) - 1)) as usize
}

/// Makes `1 << bits` values.
fn many<T>(bits: u32, mut value: impl FnMut() -> T) -> Result<KVec<T>> {
    let mut values = KVec::with_capacity(1 << bits, GFP_KERNEL)?;
    for _ in 0..1 << bits {
        values.push(value(), GFP_KERNEL)?;
    }
    Ok(values)
}

/// State for insertion and removal; kept under the lock that these take.
///
/// # Invariants
///
/// `first_free` is 0 or 1 more than the index of a free entry, which says in the same way which is
/// the next; all entries from `used` on are free, too, and were never used.
pub(super) struct Free {
    first_free: u32,
    used: u32,
}

impl Free {
    /// All entries are free.
    pub(super) const fn new() -> Self {
        // INVARIANT: None was used.
        Self {
            first_free: 0,
            used: 0,
        }
    }
}

/// Addresses by index.
///
/// # Invariants
///
/// An entry has [`PRESENT`], perhaps [`LEAVING`], and an address, or is an entry of the list that
/// begins in [`Free`], or is 0.
pub(super) struct AddressTable<A> {
    root: KVec<SetOnce<Branch>>,
    _addresses: PhantomData<A>,
}

impl<A: BookAddress> AddressTable<A> {
    /// How many addresses there can be.
    pub(super) const CAPACITY: u32 = 1 << (LEAF_BITS + BRANCH_BITS + ROOT_BITS);

    /// An empty table.
    pub(super) fn new() -> Result<Self> {
        // INVARIANT: There are no entries.
        Ok(Self {
            root: many(ROOT_BITS, SetOnce::new)?,
            _addresses: PhantomData,
        })
    }

    /// Returns an entry, if there are any near it.
    fn entry(&self, index: u32) -> Option<&Atomic<u64>> {
        if index >= Self::CAPACITY {
            return None;
        }
        let branch = self
            .root
            .get(part(index, LEAF_BITS + BRANCH_BITS, ROOT_BITS))?;
        let leaf = branch
            .as_ref()?
            .get(part(index, LEAF_BITS, BRANCH_BITS))?
            .as_ref()?;
        leaf.get(part(index, 0, LEAF_BITS))
    }

    /// Makes sure that an entry is there; under the lock of [`Free`].
    fn grow(&self, index: u32) -> Result<&Atomic<u64>> {
        let at = part(index, LEAF_BITS + BRANCH_BITS, ROOT_BITS);
        let branch = self.root.get(at).ok_or(ENOMEM)?;
        if branch.as_ref().is_none() {
            branch.populate(many(BRANCH_BITS, SetOnce::new)?);
        }
        let at = part(index, LEAF_BITS, BRANCH_BITS);
        let leaf = branch.as_ref().and_then(|branch| branch.get(at));
        let leaf = leaf.ok_or(ENOMEM)?;
        if leaf.as_ref().is_none() {
            // INVARIANT: The new entries are 0.
            leaf.populate(many(LEAF_BITS, || Atomic::new(0))?);
        }
        self.entry(index).ok_or(ENOMEM)
    }

    /// Returns the address at an index. From any context.
    pub(super) fn get(&self, index: u32) -> Option<A> {
        // Relaxed: an entry is complete in itself.
        let entry = self.entry(index)?.load(ordering::Relaxed);
        if entry & PRESENT == 0 {
            return None;
        }
        A::from_u64(entry & !(PRESENT | LEAVING))
    }

    /// Adds an address and returns its index; `ENOMEM` if there is no room, `EINVAL` if it is too large
    /// a number.
    pub(super) fn insert(&self, free: &mut Free, address: A) -> Result<u32> {
        let raw = address.as_u64();
        if raw & (PRESENT | LEAVING) != 0 {
            return Err(EINVAL);
        }
        let (index, entry) = match free.first_free.checked_sub(1) {
            Some(index) => {
                let entry = self.entry(index).ok_or(ENOMEM)?;
                // INVARIANT: The first of the list leaves it; the entry says which is the next.
                // Relaxed: written under the lock.
                free.first_free = entry.load(ordering::Relaxed) as u32;
                (index, entry)
            }
            None => {
                let index = free.used;
                if index >= Self::CAPACITY {
                    return Err(ENOMEM);
                }
                let entry = self.grow(index)?;
                // INVARIANT: The entry is about to be used.
                free.used = index.wrapping_add(1);
                (index, entry)
            }
        };
        // INVARIANT: Present, with an address.
        // Relaxed: the index is made known after this.
        entry.store(PRESENT | raw, ordering::Relaxed);
        Ok(index)
    }

    /// Notes that an address is to be removed; `false` if there is none, or it was noted before.
    ///
    /// Under the lock of [`Free`].
    pub(super) fn mark(&self, index: u32) -> bool {
        let Some(entry) = self.entry(index) else {
            return false;
        };
        // Relaxed: written under the lock.
        let value = entry.load(ordering::Relaxed);
        if value & (PRESENT | LEAVING) != PRESENT {
            return false;
        }
        // Relaxed: the address is as it was.
        entry.store(value | LEAVING, ordering::Relaxed);
        true
    }

    /// Takes a note of [`Self::mark`] back.
    pub(super) fn unmark(&self, index: u32) {
        if let Some(entry) = self.entry(index) {
            // Relaxed: as in `mark`.
            let value = entry.load(ordering::Relaxed);
            entry.store(value & !LEAVING, ordering::Relaxed);
        }
    }

    /// Removes an address and returns it; `None` if there is none.
    pub(super) fn remove(&self, free: &mut Free, index: u32) -> Option<A> {
        let address = self.get(index)?;
        // INVARIANT: The entry becomes the first of the list.
        // Relaxed: written under the lock; a sender to the address at the same time may still
        // find it.
        self.entry(index)?
            .store(u64::from(free.first_free), ordering::Relaxed);
        free.first_free = index.wrapping_add(1);
        Some(address)
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_address_table)]
mod tests {
    use super::*;

    /// An address that may be any number.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Address(u64);

    impl BookAddress for Address {
        fn from_u64(raw: u64) -> Option<Self> {
            Some(Self(raw))
        }

        fn as_u64(self) -> u64 {
            self.0
        }
    }

    type AddressTable = super::AddressTable<Address>;

    /// Some address that is another one for each number.
    fn address(number: u32) -> Result<Address> {
        Ok(Address(u64::from(number) << 20))
    }

    #[test]
    fn no_address_is_taken_for_a_mark() -> Result {
        let (table, mut free) = (AddressTable::new()?, Free::new());
        for raw in [PRESENT, LEAVING, u64::MAX] {
            assert_eq!(table.insert(&mut free, Address(raw)), Err(EINVAL));
        }
        assert_eq!(table.insert(&mut free, Address(LEAVING - 1)), Ok(0));
        assert_eq!(table.get(0), Some(Address(LEAVING - 1)));
        Ok(())
    }

    #[test]
    fn indices_count_up() -> Result {
        let (table, mut free) = (AddressTable::new()?, Free::new());
        assert!(table.get(0).is_none());
        // Across the borders of leaves.
        for number in 0..2000 {
            assert_eq!(table.insert(&mut free, address(number)?)?, number);
        }
        for number in 0..2000 {
            assert_eq!(table.get(number), Some(address(number)?));
        }
        assert!(table.get(2000).is_none());
        Ok(())
    }

    #[test]
    fn across_the_border_of_a_branch() -> Result {
        let (table, mut free) = (AddressTable::new()?, Free::new());
        let count = (1 << (LEAF_BITS + BRANCH_BITS)) + 3;
        for number in 0..count {
            table.insert(&mut free, address(number)?)?;
        }
        for number in [0, count - 4, count - 3, count - 1] {
            assert_eq!(table.get(number), Some(address(number)?));
        }
        Ok(())
    }

    #[test]
    fn beyond_the_end() -> Result {
        let table = AddressTable::new()?;
        for index in [AddressTable::CAPACITY - 1, AddressTable::CAPACITY, u32::MAX] {
            assert!(table.get(index).is_none());
            assert!(!table.mark(index));
        }
        // As if all had been used.
        let mut free = Free {
            first_free: 0,
            used: AddressTable::CAPACITY - 1,
        };
        let last = AddressTable::CAPACITY - 1;
        assert_eq!(table.insert(&mut free, address(7)?)?, last);
        assert!(table.insert(&mut free, address(8)?) == Err(ENOMEM));
        assert_eq!(table.get(last), Some(address(7)?));
        // A removed entry can be used again.
        assert_eq!(table.remove(&mut free, last), Some(address(7)?));
        assert_eq!(table.insert(&mut free, address(9)?)?, last);
        Ok(())
    }

    #[test]
    fn removed_indices_are_used_again() -> Result {
        let (table, mut free) = (AddressTable::new()?, Free::new());
        for number in 0..4 {
            table.insert(&mut free, address(number)?)?;
        }
        assert_eq!(table.remove(&mut free, 1), Some(address(1)?));
        assert_eq!(table.remove(&mut free, 1), None);
        assert_eq!(table.remove(&mut free, 3), Some(address(3)?));
        assert!(table.get(1).is_none());
        assert!(table.get(3).is_none());
        assert_eq!(table.insert(&mut free, address(10)?)?, 3);
        assert_eq!(table.insert(&mut free, address(11)?)?, 1);
        assert_eq!(table.insert(&mut free, address(12)?)?, 4);
        assert_eq!(table.get(0), Some(address(0)?));
        assert_eq!(table.get(1), Some(address(11)?));
        Ok(())
    }

    #[test]
    fn marks() -> Result {
        let (table, mut free) = (AddressTable::new()?, Free::new());
        table.insert(&mut free, address(5)?)?;
        assert!(!table.mark(1));
        assert!(table.mark(0));
        assert!(!table.mark(0));
        // Still there.
        assert_eq!(table.get(0), Some(address(5)?));
        table.unmark(0);
        assert!(table.mark(0));
        assert_eq!(table.remove(&mut free, 0), Some(address(5)?));
        assert!(!table.mark(0));
        Ok(())
    }
}
