// SPDX-License-Identifier: GPL-2.0

//! A sequence that grows under a spinlock without ever being copied.
//!
//! Its parts are each as large as all before it together, so that there are few, and what leads to
//! them never grows. Memory for more is allocated before the lock is taken; it is given back when
//! the whole is dropped, where that may sleep.

#![forbid(unsafe_code)]

use kernel::prelude::*;

/// Entries of the first part, and of the second.
const FIRST: usize = 64;

/// Parts: more entries than memory can hold.
const PARTS: usize = 32;

/// Entries by number, from 0 on.
///
/// # Invariants
///
/// The first parts have memory for as many entries as [`Self::size`] says, the others have none.
/// All parts after one that is not full are empty.
pub(crate) struct Grown<T> {
    parts: [KVVec<T>; PARTS],
    /// The number of parts with memory.
    grown: usize,
    len: usize,
}

impl<T> Grown<T> {
    /// No entries and no memory.
    pub(crate) const fn new() -> Self {
        Self {
            parts: [const { KVVec::new() }; PARTS],
            grown: 0,
            len: 0,
        }
    }

    /// Returns how many entries a part has.
    fn size(part: usize) -> usize {
        FIRST << part.saturating_sub(1)
    }

    /// Returns in which part an entry is, and where.
    fn place(at: usize) -> (usize, usize) {
        let Some(log) = (at / FIRST).checked_ilog2() else {
            return (0, at);
        };
        let part = log as usize + 1;
        (part, at - Self::size(part))
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether another entry needs [`Self::grow`].
    pub(crate) fn is_full(&self) -> bool {
        Self::place(self.len).0 >= self.grown
    }

    /// Allocates memory for [`Self::grow`] of a sequence that is full with `len` entries; may sleep.
    pub(crate) fn allocate(len: usize) -> Result<KVVec<T>> {
        let size = Self::size(Self::place(len).0);
        Ok(KVVec::with_capacity(size, GFP_KERNEL | __GFP_NOWARN)?)
    }

    /// Adds memory, if there is need for it. Returns what is left over, to be freed outside of locks.
    pub(crate) fn grow(&mut self, more: KVVec<T>) -> KVVec<T> {
        if !self.is_full() || more.capacity() < Self::size(self.grown) {
            return more;
        }
        match self.parts.get_mut(self.grown) {
            Some(part) => {
                // INVARIANT: It has as much memory as it takes.
                self.grown += 1;
                core::mem::replace(part, more)
            }
            None => more,
        }
    }

    /// Adds an entry; gives it back if there is no memory.
    pub(crate) fn push_within_capacity(&mut self, entry: T) -> core::result::Result<(), T> {
        let (part, at) = Self::place(self.len);
        match self.parts.get_mut(part) {
            Some(part) if at < part.capacity() => {
                if let Err(error) = part.push_within_capacity(entry) {
                    // INVARIANT: Not reached, as there is room.
                    drop(error);
                }
                self.len += 1;
                Ok(())
            }
            _ => Err(entry),
        }
    }

    /// Returns an entry.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let (part, at) = Self::place(at);
        self.parts.get_mut(part)?.get_mut(at)
    }

    /// Takes an entry out, and puts the last one in its place.
    pub(crate) fn swap_remove(&mut self, at: usize) -> Option<T> {
        if at >= self.len {
            return None;
        }
        let (last_part, _) = Self::place(self.len - 1);
        let last = self.parts.get_mut(last_part)?.pop()?;
        self.len -= 1;
        match self.get_mut(at) {
            Some(entry) => Some(core::mem::replace(entry, last)),
            None => Some(last),
        }
    }
}

#[kunit_tests(kfi_soft_grown)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks() -> Result {
        let mut grown = Grown::new();
        for i in 0..1000 {
            if grown.is_full() {
                assert!(grown.push_within_capacity(i).is_err());
                let more = Grown::allocate(grown.len())?;
                assert_eq!(grown.grow(more).capacity(), 0);
                // Not twice.
                let more = KVVec::with_capacity(2000, GFP_KERNEL)?;
                assert!(grown.grow(more).capacity() != 0);
            }
            assert!(grown.push_within_capacity(i).is_ok());
            assert_eq!(grown.len(), i + 1);
        }
        for i in 0..1000 {
            assert_eq!(grown.get_mut(i).copied(), Some(i));
        }
        assert!(grown.get_mut(1000).is_none());
        assert!(grown.swap_remove(1000).is_none());
        assert_eq!(grown.swap_remove(999), Some(999));
        assert_eq!(grown.swap_remove(3), Some(3));
        assert_eq!(grown.get_mut(3).copied(), Some(998));
        while let Some(taken) = grown.swap_remove(0) {
            assert!(taken < 1000);
        }
        assert_eq!(grown.len(), 0);
        assert!(!grown.is_full());
        Ok(())
    }
}
