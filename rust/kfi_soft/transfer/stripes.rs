// SPDX-License-Identifier: GPL-2.0

//! Locks of the memory that atomic operations change, by address.
//!
//! An element is changed with the lock of its place held. A place is where in its page memory lies:
//! that is the same however the page is mapped, so that regions may overlap, and may name the same
//! memory by addresses that differ. An element that is in several places, since it is not aligned or
//! lies in several pieces of memory, is changed with the locks of all of them held.

#![forbid(unsafe_code)]

use kernel::{
    c_str,
    page::PAGE_SIZE,
    prelude::*,
    static_lock_class,
    sync::SpinLockIrq, //
};

use crate::kfi::memory::Cursor;

/// Places, each with a lock.
const COUNT: usize = 16;

/// Bytes of a place.
const SIZE: usize = PAGE_SIZE / COUNT;

/// So many elements are changed before others get the lock.
pub(crate) const CHUNK: usize = 64;

/// The locks, each in a cache line of its own.
pub(crate) struct Stripes(KVec<Pin<KBox<SpinLockIrq<()>>>>);

impl Stripes {
    /// Creates the locks.
    pub(crate) fn new() -> Result<Self> {
        // Several are held at a time, in order, so each is a class of its own.
        let classes = [
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
            static_lock_class!(),
        ];
        let mut locks = KVec::with_capacity(COUNT, GFP_KERNEL)?;
        for class in classes {
            let lock = SpinLockIrq::new((), c_str!("kfi_soft::Stripes"), class);
            locks.push(KBox::pin_init(lock, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        Ok(Self(locks))
    }

    /// Runs `change` for each chunk of elements of `size` bytes that `target` begins with and that
    /// fill `len` bytes; with the number of elements, and the locks of their places held. It moves
    /// `target` on. Returns the number of bytes.
    pub(crate) fn for_each_chunk<D>(
        &self,
        target: &mut Cursor<'_, D>,
        len: usize,
        size: usize,
        mut change: impl FnMut(&mut Cursor<'_, D>, usize),
    ) -> usize {
        let mut done: usize = 0;
        while let Some(left) = len.checked_sub(done).filter(|left| *left >= size) {
            let (at, together) = target.place();
            let first = place(at);
            let rest = SIZE.wrapping_sub(at.wrapping_rem(SIZE));
            // The elements that are wholly in the first place.
            let fits = left.min(together).min(rest);
            let count = fits.checked_div(size).unwrap_or(0);
            if count != 0 {
                let count = count.min(CHUNK);
                let _locked = self.0.get(first).map(|lock| lock.lock());
                change(target, count);
                done = done.wrapping_add(count.wrapping_mul(size));
            } else {
                self.change_split(target, size, &mut change);
                done = done.wrapping_add(size);
            }
        }
        done
    }

    /// As [`Self::for_each_chunk`], for one element that is in several places.
    #[cold]
    fn change_split<D>(
        &self,
        target: &mut Cursor<'_, D>,
        size: usize,
        change: &mut impl FnMut(&mut Cursor<'_, D>, usize),
    ) {
        let mut places = [false; COUNT];
        let mut ahead = target.clone();
        for _ in 0..size {
            let (at, _) = ahead.place();
            if let Some(place) = places.get_mut(place(at)) {
                *place = true;
            }
            ahead.skip(1);
        }
        // In order, so that no thread waits for one that waits for it.
        let mut locked = [const { None }; COUNT];
        for ((place, lock), locked) in places.iter().zip(&self.0).zip(&mut locked) {
            if *place {
                *locked = Some(lock.lock());
            }
        }
        change(target, 1);
    }
}

/// Returns which place an offset in a page is in.
fn place(at: usize) -> usize {
    at.wrapping_rem(PAGE_SIZE) / SIZE
}

#[kunit_tests(kfi_soft_stripes)]
mod tests {
    use super::*;
    use crate::kfi::memory::{
        Memory,
        Target, //
    };

    #[test]
    fn every_byte_is_changed_once() -> Result {
        let stripes = Stripes::new()?;
        let bytes = KVec::from_elem(0u8, 3 * PAGE_SIZE, GFP_KERNEL)?;
        let memory: Memory<Target> = Memory::owned(bytes);
        for (from, size) in [
            (0, 8),
            (1, 8),
            (3, 4),
            (SIZE - 1, 2),
            (PAGE_SIZE - 5, 8),
            (7, 1),
        ] {
            let mut target = memory.cursor(from);
            let len = 2 * PAGE_SIZE / size * size - 8 * size;
            let mut elements = 0;
            let done = stripes.for_each_chunk(&mut target, len, size, |target, count| {
                assert!((1..=CHUNK).contains(&count));
                elements += count;
                target.skip(count * size);
            });
            assert_eq!(done, len);
            assert_eq!(elements, len / size);
        }
        Ok(())
    }
}
