// SPDX-License-Identifier: GPL-2.0

//! Arrays in pieces of at most a page.
//!
//! Consumers post when memory is being reclaimed: there may be pages then, but no two of them together,
//! or none at all. For that there is a [`Reserve`].
//!
//! C header: [`include/linux/mempool.h`](srctree/include/linux/mempool.h).

use core::{
    mem::MaybeUninit,
    ptr::NonNull,
    slice, //
};
use kernel::{
    alloc::Flags,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

use crate::kfi::bindings;

/// Pages for arrays, if there is no other memory. A page goes back to the reserve after its use.
///
/// # Invariants
///
/// It is a pool of elements of a page.
pub struct Reserve(NonNull<bindings::kfi_rust_reserve>);

// SAFETY: Pools may be used by any thread.
unsafe impl Send for Reserve {}
// SAFETY: As above, and by several at a time.
unsafe impl Sync for Reserve {}

impl Reserve {
    /// A reserve of so many pages; may sleep.
    pub fn new(pages: u16) -> Result<Arc<Self>> {
        // SAFETY: May be called from any context that may sleep.
        let pool = unsafe { bindings::reserve_create(c_int::from(pages), PAGE_SIZE) };
        // INVARIANT: That is what it was created as.
        let reserve = Self(NonNull::new(pool).ok_or(ENOMEM)?);
        Ok(Arc::new(reserve, GFP_KERNEL)?)
    }

    /// Takes a page; `None` if there is none left. From any context.
    fn take(&self) -> Option<NonNull<u8>> {
        // SAFETY: The pool is there by the type invariants.
        NonNull::new(unsafe { bindings::reserve_take(self.0.as_ptr()) }.cast())
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // SAFETY: The pool is there by the type invariants, and none of it is in use: a user holds
        // a reference to this.
        unsafe { bindings::reserve_destroy(self.0.as_ptr()) };
    }
}

/// A piece of an array, no larger than a page.
///
/// # Invariants
///
/// - `start` is what a [`KVec`] of `capacity` has or, with a reserve, a page of that, which has room for
///   as many.
/// - The first `len` entries are initialised.
pub(super) struct Piece<T: Copy> {
    start: NonNull<T>,
    len: u32,
    capacity: u32,
    reserve: Option<Arc<Reserve>>,
}

// SAFETY: It owns its entries.
unsafe impl<T: Copy + Send> Send for Piece<T> {}
// SAFETY: As above; what is shared does not change.
unsafe impl<T: Copy + Sync> Sync for Piece<T> {}

impl<T: Copy> Piece<T> {
    /// As many entries as a piece may have.
    pub(super) const MAX: usize = PAGE_SIZE / size_of::<MaybeUninit<T>>();

    /// No entries, and no room for any.
    const NONE: Self = {
        assert!(align_of::<T>() <= 8 && size_of::<T>() != 0);
        // INVARIANT: As an empty vector.
        Self {
            start: NonNull::dangling(),
            len: 0,
            capacity: 0,
            reserve: None,
        }
    };

    /// An empty piece for `capacity` entries, [`Self::MAX`] at the most; of a reserve, if there is one
    /// and no other memory.
    pub(super) fn new(
        capacity: usize,
        flags: Flags,
        reserve: Option<&Arc<Reserve>>,
    ) -> Result<Self> {
        match KVec::with_capacity(capacity.min(Self::MAX), flags) {
            Ok(entries) => {
                let (start, _, capacity) = KVec::into_raw_parts(entries);
                // INVARIANT: That of a vector; no entries.
                Ok(Self {
                    start: NonNull::new(start).ok_or(ENOMEM)?,
                    len: 0,
                    // Fewer bytes than a page has.
                    capacity: capacity as u32,
                    reserve: None,
                })
            }
            Err(error) => Self::reserved(reserve.ok_or(error)?),
        }
    }

    /// An empty piece in a page of a reserve; `ENOMEM` if it has none left.
    fn reserved(reserve: &Arc<Reserve>) -> Result<Self> {
        let start = reserve.take().ok_or(ENOMEM)?.cast();
        // INVARIANT: A page of the reserve; no entries.
        Ok(Self {
            start,
            len: 0,
            capacity: Self::MAX as u32,
            reserve: Some(reserve.clone()),
        })
    }

    /// Adds an entry; `EINVAL` if there is no room.
    pub(super) fn push(&mut self, entry: T) -> Result {
        if self.len >= self.capacity {
            return Err(EINVAL);
        }
        // SAFETY: There is room for one more, by the comparison and the type invariants.
        unsafe { self.start.add(self.len as usize).write(entry) };
        // INVARIANT: Initialised above.
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Returns whether it is in a page of a reserve.
    pub(super) fn is_reserved(&self) -> bool {
        self.reserve.is_some()
    }

    /// Returns the entries.
    pub(super) fn entries(&self) -> &[T] {
        // SAFETY: As many are initialised, by the type invariants.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len as usize) }
    }
}

impl<T: Copy> Drop for Piece<T> {
    fn drop(&mut self) {
        match &self.reserve {
            Some(reserve) => {
                // SAFETY: The page came from this pool, and nobody else has it.
                unsafe { bindings::reserve_give(reserve.0.as_ptr(), self.start.as_ptr().cast()) };
            }
            None => {
                // SAFETY: They are those of a vector, by the type invariants.
                drop(unsafe {
                    KVec::from_raw_parts(
                        self.start.as_ptr(),
                        self.len as usize,
                        self.capacity as usize,
                    )
                });
            }
        }
    }
}

/// An array, no piece of which is larger than a page.
///
/// # Invariants
///
/// All pieces before the last one have [`Piece::MAX`] entries.
pub struct Pieces<T: Copy> {
    first: [Piece<T>; 2],
    rest: KVec<Piece<T>>,
    len: usize,
}

impl<T: Copy> Pieces<T> {
    /// Returns how many bytes each piece of an array of `capacity` entries has.
    pub(super) fn sizes(capacity: usize) -> impl Iterator<Item = usize> {
        let most = Piece::<T>::MAX;
        (0..capacity.div_ceil(most)).map(move |at| {
            let before = at.saturating_mul(most);
            let count = capacity.saturating_sub(before).min(most);
            count.saturating_mul(size_of::<T>())
        })
    }

    /// An empty array with room for `capacity` entries.
    pub(super) fn new(
        capacity: usize,
        flags: Flags,
        reserve: Option<&Arc<Reserve>>,
    ) -> Result<Self> {
        let mut left = capacity;
        let mut piece = || {
            let count = left.min(Piece::<T>::MAX);
            left = left.saturating_sub(count);
            if count == 0 {
                return Ok(Piece::NONE);
            }
            Piece::new(count, flags, reserve)
        };
        let first = [piece()?, piece()?];
        let pieces = capacity.div_ceil(Piece::<T>::MAX).saturating_sub(2);
        let mut rest = KVec::new();
        if pieces != 0 {
            rest.reserve(pieces, flags)?;
        }
        for _ in 0..pieces {
            rest.push_within_capacity(piece()?).map_err(|_| EINVAL)?;
        }
        // INVARIANT: No entries.
        Ok(Self {
            first,
            rest,
            len: 0,
        })
    }

    /// Adds an entry; `EINVAL` if there is no room.
    pub(super) fn push(&mut self, entry: T) -> Result {
        let at = self.len / Piece::<T>::MAX;
        let piece = match self.first.get_mut(at) {
            Some(piece) => piece,
            None => self.rest.get_mut(at.saturating_sub(2)).ok_or(EINVAL)?,
        };
        // INVARIANT: To the next piece only when this one has as many as it may.
        piece.push(entry)?;
        self.len = self.len.wrapping_add(1);
        Ok(())
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether any piece is in a page of a reserve.
    pub fn is_reserved(&self) -> bool {
        let mut pieces = [self.first.as_slice(), &self.rest].into_iter().flatten();
        pieces.any(Piece::is_reserved)
    }

    /// Returns an entry.
    pub fn get(&self, at: usize) -> Option<&T> {
        let piece = at / Piece::<T>::MAX;
        let piece = match self.first.get(piece) {
            Some(piece) => piece,
            None => self.rest.get(piece.saturating_sub(2))?,
        };
        piece.entries().get(at % Piece::<T>::MAX)
    }

    /// Returns the entries from one on, as they lie beside each other.
    pub(super) fn slices_from(&self, first: usize) -> impl Iterator<Item = &[T]> {
        let pieces = [self.first.as_slice(), &self.rest].into_iter().flatten();
        let mut before = first % Piece::<T>::MAX;
        pieces.skip(first / Piece::<T>::MAX).map(move |piece| {
            let before = core::mem::take(&mut before);
            piece.entries().get(before..).unwrap_or(&[])
        })
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_pieces)]
mod tests {
    use super::*;

    /// Fills an array that has no memory but that of a reserve.
    fn fill<const WORDS: usize>(
        count: usize,
        reserve: &Arc<Reserve>,
    ) -> Result<Pieces<[u64; WORDS]>> {
        let mut pieces = Pieces {
            first: [Piece::NONE, Piece::NONE],
            rest: KVec::new(),
            len: 0,
        };
        for at in 0..count.div_ceil(Piece::<[u64; WORDS]>::MAX).min(2) {
            if let Some(piece) = pieces.first.get_mut(at) {
                *piece = Piece::reserved(reserve)?;
            }
        }
        for number in 0..count {
            pieces.push([number as u64; WORDS])?;
        }
        Ok(pieces)
    }

    #[test]
    fn pieces_follow_each_other() -> Result {
        for count in [0, 1, 2, 170, 171, 256, 257, 341, 342, 1000] {
            let mut pieces = Pieces::new(count, GFP_KERNEL, None)?;
            for number in 0..count {
                pieces.push([number as u64; 3])?;
            }
            assert_eq!(pieces.len(), count);
            assert!(!pieces.is_reserved());
            for number in 0..count {
                assert_eq!(pieces.get(number), Some(&[number as u64; 3]));
            }
            assert!(pieces.get(count).is_none());
            for first in [0, 1, 169, 170, 171, 340, 341, 999, 1000, 1001] {
                let rest = pieces.slices_from(first).flatten();
                let wanted = (first..count).map(|number| [number as u64; 3]);
                assert!(rest.copied().eq(wanted));
            }
        }
        Ok(())
    }

    #[test]
    fn as_many_as_a_vector_may_have_fit_into_a_page() {
        assert!(Piece::<[u64; 2]>::MAX >= 256);
        assert!(Piece::<[u64; 3]>::MAX * 2 >= 256);
    }

    #[test]
    fn what_is_given_back_can_be_had_again() -> Result {
        let reserve = Reserve::new(2)?;
        for _ in 0..3 {
            let one = fill::<2>(256, &reserve)?;
            let other = fill::<2>(3, &reserve)?;
            assert_eq!(fill::<2>(1, &reserve).err(), Some(ENOMEM));
            assert!(one.is_reserved() && other.is_reserved());
            assert_eq!(one.get(255), Some(&[255; 2]));
            assert!(one.get(256).is_none());
            assert_eq!(other.get(2), Some(&[2; 2]));
            drop((one, other));
            let both = fill::<3>(256, &reserve)?;
            assert_eq!(both.get(255), Some(&[255; 3]));
            assert_eq!(fill::<2>(1, &reserve).err(), Some(ENOMEM));
        }
        Ok(())
    }
}
