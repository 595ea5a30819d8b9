// SPDX-License-Identifier: GPL-2.0

//! A first-in, first-out queue of fixed capacity.

use kernel::prelude::*;

/// A queue that never grows.
///
/// # Invariants
///
/// `len` entries, beginning at `head` and wrapping at the end, are present, the others are not.
pub struct Ring<T> {
    entries: KVVec<Option<T>>,
    head: usize,
    len: usize,
}

impl<T> Ring<T> {
    /// Creates a queue for `capacity` entries, at least one.
    pub fn new(capacity: usize) -> Result<Self> {
        let capacity = capacity.max(1);
        let mut entries = KVVec::with_capacity(capacity, GFP_KERNEL | __GFP_NOWARN)?;
        for _ in 0..capacity {
            entries.push(None, GFP_KERNEL)?;
        }
        // INVARIANT: No entries.
        Ok(Self {
            entries,
            head: 0,
            len: 0,
        })
    }

    /// Has room for nothing, and no memory.
    pub const fn none() -> Self {
        // INVARIANT: No entries.
        Self {
            entries: KVVec::new(),
            head: 0,
            len: 0,
        }
    }

    /// Returns how many entries there is room for.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether there is no room.
    pub fn is_full(&self) -> bool {
        self.len == self.entries.len()
    }

    /// Takes a position that may be behind the end, by less than the capacity, back into it.
    fn wrap(&self, at: usize) -> usize {
        at.checked_sub(self.entries.len()).unwrap_or(at)
    }

    /// Adds an entry; gives it back if there is no room.
    #[inline]
    pub fn push(&mut self, entry: T) -> core::result::Result<(), T> {
        if self.is_full() {
            return Err(entry);
        }
        let at = self.wrap(self.head.wrapping_add(self.len));
        match self.entries.get_mut(at) {
            // INVARIANT: The entry behind the last is present.
            Some(slot) => *slot = Some(entry),
            None => return Err(entry),
        }
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Returns the first entry.
    pub fn first(&self) -> Option<&T> {
        self.entries.get(self.head)?.as_ref()
    }

    /// Takes the first entry out.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// Takes the first entry out if it is `wanted`.
    #[inline]
    pub fn pop_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let slot = self.entries.get_mut(self.head)?;
        let entry = slot.take_if(|entry| wanted(entry))?;
        // INVARIANT: The first entry is gone.
        self.head = self.wrap(self.head.wrapping_add(1));
        self.len = self.len.wrapping_sub(1);
        Some(entry)
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ring)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_across_the_end() -> Result {
        let mut ring = Ring::new(3)?;
        for round in 0..7 {
            assert!(ring.is_empty());
            for i in 0..3 {
                assert!(ring.push(round * 10 + i).is_ok());
            }
            assert_eq!(ring.push(99), Err(99));
            assert_eq!(ring.first(), Some(&(round * 10)));
            // One out, one in, so that the start moves.
            assert_eq!(ring.pop(), Some(round * 10));
            assert!(ring.push(round * 10 + 3).is_ok());
            for i in 1..4 {
                assert_eq!(ring.pop(), Some(round * 10 + i));
            }
            assert_eq!(ring.pop(), None);
        }
        Ok(())
    }

    #[test]
    fn what_is_not_wanted_stays() -> Result {
        let mut ring = Ring::new(2)?;
        assert_eq!(ring.pop_if(|_| true), None);
        assert!(ring.push(1).is_ok() && ring.push(2).is_ok());
        assert_eq!(ring.pop_if(|entry| *entry != 1), None);
        assert!(ring.is_full());
        assert_eq!(ring.pop_if(|entry| *entry == 1), Some(1));
        assert_eq!(ring.pop(), Some(2));
        Ok(())
    }

    #[test]
    fn none_takes_nothing() {
        let mut ring = Ring::none();
        assert!(ring.is_empty());
        assert_eq!(ring.push(1), Err(1));
        assert_eq!(ring.first(), None);
        assert_eq!(ring.pop(), None);
    }

    #[test]
    fn no_capacity_means_one() -> Result {
        let mut ring = Ring::new(0)?;
        assert!(ring.push(1).is_ok());
        assert_eq!(ring.push(2), Err(2));
        Ok(())
    }
}
