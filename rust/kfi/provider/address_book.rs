// SPDX-License-Identifier: GPL-2.0

//! Addresses by index, and indices by address: what an address vector keeps.
//!
//! The same address may be inserted many times. Each insertion has an index of its own, and the first
//! of them is what a message from that address is said to come from.

mod table;

use core::num::NonZeroU64;
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        lock::mutex::MutexGuard,
        new_mutex,
        new_spinlock_irq,
        Mutex,
        SpinLockIrq, //
    }, //
};

use table::{
    AddressTable,
    Free, //
};

/// An address that fits into 62 bits.
pub trait BookAddress: Copy + Ord + Send + Sync + Unpin + 'static {
    /// Takes a number for an address; `None` if it is none.
    fn from_u64(raw: u64) -> Option<Self>;

    /// Returns the address as a number, always the same.
    fn as_u64(self) -> u64;
}

/// Any number but 0, of up to 62 bits.
impl BookAddress for NonZeroU64 {
    fn from_u64(raw: u64) -> Option<Self> {
        Self::new(raw)
    }

    fn as_u64(self) -> u64 {
        self.get()
    }
}

/// No index.
const NONE: u32 = u32::MAX;

/// Addresses, found by index without a lock, and indices, found by address.
///
/// # Invariants
///
/// `found` is [`NONE`], or the first index in `indices` of an address. It is written under the lock of these.
#[pin_data]
pub struct AddressBook<A: BookAddress> {
    /// Taken to insert or remove, outside of `indices`.
    #[pin]
    free: Mutex<Free>,
    /// The addresses by index.
    table: AddressTable<A>,
    /// The index that was found last: as a rule the next message is from the same address.
    found: Atomic<u32>,
    /// The indices by address, those of one address in order.
    #[pin]
    indices: SpinLockIrq<RBTree<(A, u32), ()>>,
}

impl<A: BookAddress> AddressBook<A> {
    /// Creates a book without addresses.
    pub fn new() -> Result<impl PinInit<Self>> {
        let table = AddressTable::new()?;
        Ok(pin_init!(Self {
            free <- new_mutex!(Free::new(), "kfi::AddressBook::free"),
            table,
            // INVARIANT: Nothing was found.
            found: Atomic::new(NONE),
            indices <- new_spinlock_irq!(RBTree::new(), "kfi::AddressBook::indices"),
        }))
    }

    /// Returns the address at an index. From any context.
    pub fn get(&self, index: u32) -> Option<A> {
        self.table.get(index)
    }

    /// Returns the first index of an address; any that it has, or has had, while that changes. From any context.
    pub fn find(&self, address: A) -> Option<u32> {
        // Relaxed: it was the first one of an address when it was read, and a thread that has seen a change come to its
        // end reads what was written in the course of that, or later. Whether it is one of this address is said by the
        // entry alone; the first one, too, unless the index went from one address to another in between.
        let last = self.found.load(ordering::Relaxed);
        if last != NONE && self.table.get(last) == Some(address) {
            return Some(last);
        }
        let indices = self.indices.lock();
        let cursor = indices.cursor_lower_bound(&(address, 0))?;
        let (found, index) = *cursor.current().0;
        if found != address {
            return None;
        }
        // INVARIANT: It is the first one.
        // Relaxed: see above.
        self.found.store(index, ordering::Relaxed);
        Some(index)
    }

    /// Begins a change: other changes wait until it is dropped. [`Self::get`] and [`Self::find`] do
    /// not, and may see half of it. May sleep.
    pub fn change(&self) -> Change<'_, A> {
        Change {
            book: self,
            free: self.free.lock(),
        }
    }
}

/// A change of an [`AddressBook`]. Others wait meanwhile.
pub struct Change<'a, A: BookAddress> {
    book: &'a AddressBook<A>,
    free: MutexGuard<'a, Free>,
}

impl<A: BookAddress> Change<'_, A> {
    /// Inserts an address and returns its index.
    pub fn insert(&mut self, address: A) -> Result<u32> {
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let index = self.book.table.insert(&mut self.free, address)?;
        let node = node.into_node((address, index), ());
        let old = {
            let mut indices = self.book.indices.lock();
            // INVARIANT: Another one of that address may be the first from here on.
            // Relaxed: see `AddressBook::find`.
            self.book.found.store(NONE, ordering::Relaxed);
            indices.insert(node)
        };
        // An index is there once.
        drop(old);
        Ok(index)
    }

    /// Removes the address at an index, if there is one.
    pub fn remove(&mut self, index: u32) {
        if let Some(address) = self.book.table.remove(&mut self.free, index) {
            let node = {
                let mut indices = self.book.indices.lock();
                // INVARIANT: It may have been the first one of its address.
                // Relaxed: see `AddressBook::find`.
                self.book.found.store(NONE, ordering::Relaxed);
                indices.remove_node(&(address, index))
            };
            // Outside of the lock.
            drop(node);
        }
    }

    /// Removes the addresses at all of these indices or, if one has none or is there twice, nothing,
    /// and fails with `EINVAL`.
    pub fn remove_all(&mut self, indices: impl Iterator<Item = Option<u32>> + Clone) -> Result {
        let table = &self.book.table;
        for (at, index) in indices.clone().enumerate() {
            if !index.is_some_and(|index| table.mark(index)) {
                let marked = indices.take(at).flatten();
                marked.for_each(|index| table.unmark(index));
                return Err(EINVAL);
            }
        }
        for index in indices.flatten() {
            self.remove(index);
        }
        Ok(())
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_address_book)]
mod tests {
    use super::*;

    /// An address below 100.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Small(u64);

    impl BookAddress for Small {
        fn from_u64(raw: u64) -> Option<Self> {
            (raw < 100).then_some(Self(raw))
        }

        fn as_u64(self) -> u64 {
            self.0
        }
    }

    /// A book with these addresses, at the indices from 0 on.
    fn book(addresses: &[u64]) -> Result<Pin<KBox<AddressBook<Small>>>> {
        let book = KBox::pin_init(AddressBook::new()?, GFP_KERNEL)?;
        for (at, address) in addresses.iter().enumerate() {
            assert_eq!(book.change().insert(Small(*address)), Ok(at as u32));
        }
        Ok(book)
    }

    #[test]
    fn the_first_index_of_an_address_is_found() -> Result {
        let book = book(&[7, 9, 7, 8, 7])?;
        assert_eq!(book.get(3), Some(Small(8)));
        assert_eq!(book.get(5), None);
        assert_eq!(book.find(Small(7)), Some(0));
        assert_eq!(book.find(Small(9)), Some(1));
        assert_eq!(book.find(Small(10)), None);
        book.change().remove(0);
        assert_eq!(book.find(Small(7)), Some(2));
        book.change().remove(2);
        book.change().remove(4);
        assert_eq!(book.find(Small(7)), None);
        Ok(())
    }

    /// What was found last is found again as long as it is the first one.
    #[test]
    fn the_first_index_is_found_again() -> Result {
        let book = book(&[7, 9, 7])?;
        let find = |address, index| {
            for _ in 0..2 {
                assert_eq!(book.find(Small(address)), index);
            }
        };
        find(7, Some(0));
        find(9, Some(1));
        find(8, None);
        find(7, Some(0));
        book.change().remove(0);
        find(7, Some(2));
        // At the lowest index that is free.
        assert_eq!(book.change().insert(Small(7)), Ok(0));
        find(7, Some(0));
        book.change().remove(0);
        book.change().remove(2);
        find(7, None);
        // Of another address.
        assert_eq!(book.change().insert(Small(8)), Ok(2));
        find(7, None);
        find(8, Some(2));
        Ok(())
    }

    #[test]
    fn all_are_removed_or_none() -> Result {
        let book = book(&[1, 2, 3])?;
        for indices in [
            &[Some(0), Some(3)][..],
            &[Some(1), Some(1)],
            &[Some(2), None],
        ] {
            let removed = book.change().remove_all(indices.iter().copied());
            assert_eq!(removed, Err(EINVAL));
            for index in 0..3 {
                assert_eq!(book.get(index), Some(Small(u64::from(index) + 1)));
            }
        }
        let indices = [Some(2), Some(0)];
        assert_eq!(book.change().remove_all(indices.into_iter()), Ok(()));
        assert_eq!((book.get(0), book.get(2)), (None, None));
        assert_eq!(book.find(Small(2)), Some(1));
        assert_eq!(book.change().remove_all(core::iter::empty()), Ok(()));
        Ok(())
    }

    #[test]
    fn indices_are_used_again() -> Result {
        let book = book(&[1, 2])?;
        book.change().remove(0);
        assert_eq!(book.change().insert(Small(5)), Ok(0));
        assert_eq!(book.find(Small(5)), Some(0));
        Ok(())
    }
}
