// SPDX-License-Identifier: GPL-2.0

//! Memory of peers, as operations on it name it.

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

use super::pieces::{
    Pieces,
    Reserve, //
};
use crate::kfi::bindings;

/// A range of a peer's memory.
#[derive(Clone, Copy, Default)]
pub struct RemoteRange {
    /// Where it begins in the region.
    pub addr: u64,
    /// Bytes.
    pub len: usize,
    /// The key of the region, or the tag of a receive.
    pub key: u64,
}

/// Ranges of a peer's memory as a caller describes them.
///
/// # Invariants
///
/// Arrays are valid and unchanged during `'a`.
#[derive(Clone, Copy)]
pub struct RemoteRanges<'a> {
    list: RemoteList,
    _lifetime: PhantomData<&'a ()>,
}

/// The forms of descriptions.
#[derive(Clone, Copy)]
enum RemoteList {
    /// One range.
    One(RemoteRange),
    /// Ranges of bytes.
    Rma(*const bindings::kfi_rma_iov, usize),
    /// Ranges of elements of a size.
    Ioc(*const bindings::kfi_rma_ioc, usize, usize),
}

impl RemoteRanges<'_> {
    /// No range.
    pub const NONE: Self = Self {
        // INVARIANT: No array.
        list: RemoteList::Rma(ptr::null(), 0),
        _lifetime: PhantomData,
    };

    /// One range.
    pub fn one(addr: u64, len: usize, key: u64) -> Self {
        // INVARIANT: No array.
        Self {
            list: RemoteList::One(RemoteRange { addr, len, key }),
            _lifetime: PhantomData,
        }
    }

    /// Ranges of bytes.
    ///
    /// # Safety
    ///
    /// `iov` must be null or `count` entries as the type invariants say.
    pub(in crate::kfi) unsafe fn rma(iov: *const bindings::kfi_rma_iov, count: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            list: RemoteList::Rma(iov, count),
            _lifetime: PhantomData,
        }
    }

    /// Ranges of elements of `size` bytes.
    ///
    /// # Safety
    ///
    /// `iov` must be null or `count` entries as the type invariants say.
    pub(in crate::kfi) unsafe fn ioc(
        iov: *const bindings::kfi_rma_ioc,
        count: usize,
        size: usize,
    ) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            list: RemoteList::Ioc(iov, count, size),
            _lifetime: PhantomData,
        }
    }

    /// Returns the number of ranges.
    pub fn count(self) -> usize {
        match self.list {
            RemoteList::One(_) => 1,
            RemoteList::Rma(_, count) | RemoteList::Ioc(_, count, _) => count,
        }
    }

    /// Copies the description. One range needs no memory; `ENOMEM` if there is none for more, nor any
    /// in the reserve, `EINVAL` if it is none.
    #[inline]
    pub fn capture(self, flags: Flags, reserve: Option<&Arc<Reserve>>) -> Result<RemoteMemory> {
        match self.list {
            RemoteList::One(range) => Ok(RemoteMemory::One(range)),
            _ if self.count() == 0 => Ok(RemoteMemory::One(RemoteRange::default())),
            _ => self.capture_list(flags, reserve),
        }
    }

    /// As [`Self::capture`], of one range or more.
    fn capture_list(self, flags: Flags, reserve: Option<&Arc<Reserve>>) -> Result<RemoteMemory> {
        let count = self.count();
        let mut many = Pieces::new(if count > 1 { count } else { 0 }, flags, reserve)?;
        let mut one = RemoteRange::default();
        for at in 0..count {
            one = match self.list {
                RemoteList::Rma(iov, _) => {
                    let iov = NonNull::new(iov.cast_mut()).ok_or(EINVAL)?;
                    // SAFETY: `at` is less than the number of entries, by the type invariants.
                    let entry = unsafe { iov.add(at).read() };
                    RemoteRange {
                        addr: entry.addr,
                        len: entry.len,
                        key: entry.key,
                    }
                }
                RemoteList::Ioc(iov, _, size) => {
                    let iov = NonNull::new(iov.cast_mut()).ok_or(EINVAL)?;
                    // SAFETY: As above.
                    let entry = unsafe { iov.add(at).read() };
                    RemoteRange {
                        addr: entry.addr,
                        len: entry.count.checked_mul(size).ok_or(EINVAL)?,
                        key: entry.key,
                    }
                }
                RemoteList::One(range) => range,
            };
            if count > 1 {
                many.push(one)?;
            }
        }
        if count > 1 {
            Ok(RemoteMemory::Many(many))
        } else {
            Ok(RemoteMemory::One(one))
        }
    }
}

/// Ranges of a peer's memory.
pub enum RemoteMemory {
    /// One.
    One(RemoteRange),
    /// Several, one after the other.
    Many(Pieces<RemoteRange>),
}

impl RemoteMemory {
    /// Several ranges, or one; `EINVAL` if there are more of them than `count`. May sleep, if the flags say so.
    pub fn collect(
        count: usize,
        mut ranges: impl Iterator<Item = RemoteRange>,
        flags: Flags,
    ) -> Result<Self> {
        if count <= 1 {
            return Ok(Self::One(ranges.next().unwrap_or_default()));
        }
        let mut many = Pieces::new(count, flags, None)?;
        for range in ranges {
            many.push(range)?;
        }
        Ok(Self::Many(many))
    }

    /// Returns how many bytes there are in each piece of memory that is allocated for so many ranges.
    pub fn pieces(count: usize) -> impl Iterator<Item = usize> {
        // One takes no memory of its own.
        Pieces::<RemoteRange>::sizes(if count > 1 { count } else { 0 })
    }

    /// Returns the number of ranges.
    pub fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(ranges) => ranges.len(),
        }
    }

    /// Returns whether the description lies in a reserve.
    pub fn is_reserved(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::Many(ranges) => ranges.is_reserved(),
        }
    }

    /// Returns a range.
    pub fn get(&self, at: usize) -> Option<&RemoteRange> {
        match self {
            Self::One(range) => (at == 0).then_some(range),
            Self::Many(ranges) => ranges.get(at),
        }
    }

    /// Returns the ranges from one on.
    pub fn ranges_from(&self, first: usize) -> impl Iterator<Item = &RemoteRange> {
        (first..self.count()).map_while(|at| self.get(at))
    }

    /// Returns whether one of the ranges from `first` on has this key.
    pub fn has_key_from(&self, first: usize, key: u64) -> bool {
        let has_key = |range: &RemoteRange| range.key == key;
        match self {
            Self::One(range) => first == 0 && has_key(range),
            Self::Many(ranges) => ranges
                .slices_from(first)
                .any(|ranges| ranges.iter().any(has_key)),
        }
    }

    /// Returns the number of bytes; `EINVAL` if it is none.
    pub fn len(&self) -> Result<usize> {
        let mut sum: usize = 0;
        for range in self.ranges_from(0) {
            sum = sum.checked_add(range.len).ok_or(EINVAL)?;
        }
        Ok(sum)
    }
}
