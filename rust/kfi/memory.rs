// SPDX-License-Identifier: GPL-2.0

//! Memory of consumers that operations transfer from and to.
//!
//! A consumer describes memory by one range, or an array of ranges, of kernel virtual addresses
//! (kmalloc or vmalloc), by pages, or by a scatterlist. [`Buffers`] is that description as it comes
//! from C: it refers to the caller's arrays, which are the caller's again when the call returns.
//! [`Memory`] is our copy of it, which lasts as long as the operation.
//!
//! The bytes themselves are the consumer's all the time. They are copied with the CPU, by functions
//! of C: a consumer that changes a buffer while it is being transferred gets what a NIC would give
//! it.
//!
//! # Direction
//!
//! Memory that is sent, written or computed with is a [`Source`], which is only read, maybe from
//! memory that cannot be written at all. Data that is received, read or fetched goes to a
//! [`Target`]. Which it is follows from the operation, and the edge says so when it takes a
//! description from C; nothing makes a target of a source.
//!
//! # Time
//!
//! A consumer may free the memory of an operation as soon as it learns of its end. So a provider
//! holds it by types that it gives back for the right to report the end: see `provider/in_use.rs`.
//! The memory of a region is the consumer's again when close returns, which the abstractions ensure
//! by themselves: see [`region`].

use core::{
    marker::PhantomData,
    ptr,
    slice, //
};
use kernel::{
    alloc::Flags,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

use super::bindings;
use pieces::{
    Piece,
    Pieces,
    Reserve, //
};

pub mod pieces;
pub mod region;
mod remote;
#[cfg(linux_socket)]
mod sockets;

pub use remote::{
    RemoteMemory,
    RemoteRange,
    RemoteRanges, //
};

/// Memory that is only read.
#[derive(Clone, Copy)]
pub enum Source {}

/// Memory that is written. It may be read, too.
#[derive(Clone, Copy)]
pub enum Target {}

/// The beginning of a range.
#[derive(Clone, Copy)]
enum Base {
    /// A kernel virtual address.
    Virtual(*mut u8),
    /// A place behind the start of a page, maybe in a later page that follows it.
    Page(*mut bindings::page, usize),
}

/// A range of memory.
#[derive(Clone, Copy)]
struct Range {
    base: Base,
    len: usize,
}

/// A range of an array, in as few bytes as it takes: as many as a vector may have fit into a page.
#[derive(Clone, Copy)]
struct Packed {
    start: *mut c_void,
    /// Of a virtual range the length; of one in pages that, and the offset in the upper half.
    numbers: u64,
}

// SAFETY: The pointers are to memory that consumers let us use from any thread.
unsafe impl Send for Packed {}
// SAFETY: As above.
unsafe impl Sync for Packed {}

impl Packed {
    /// Packs a range; `EINVAL` if an offset or a length in pages is larger than C has them.
    fn new(range: Range) -> Result<Self> {
        Ok(match range.base {
            Base::Virtual(base) => Self {
                start: base.cast(),
                numbers: range.len as u64,
            },
            Base::Page(page, offset) => Self {
                start: page.cast(),
                numbers: u64::from(u32::try_from(range.len)?)
                    | u64::from(u32::try_from(offset)?) << u32::BITS,
            },
        })
    }

    /// Returns the range, which is in pages or virtual.
    fn range(self, in_pages: bool) -> Range {
        let Self { start, numbers } = self;
        if in_pages {
            Range {
                base: Base::Page(start.cast(), (numbers >> u32::BITS) as usize),
                len: (numbers & u64::from(u32::MAX)) as usize,
            }
        } else {
            Range {
                base: Base::Virtual(start.cast()),
                len: numbers as usize,
            }
        }
    }
}

/// Memory as a caller describes it.
///
/// # Invariants
///
/// - Arrays are valid and unchanged during `'a`.
/// - The memory they name stays valid, for reads and, if `D` is [`Target`], for writes, until the
///   consumer has heard of the end of the operation that it was given for, or the region is closed.
pub struct Buffers<'a, D> {
    list: List,
    _lifetime: PhantomData<&'a ()>,
    _direction: PhantomData<D>,
}

impl<D> Clone for Buffers<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Buffers<'_, D> {}

/// Memory that is only read.
pub type SourceBuffers<'a> = Buffers<'a, Source>;

/// Memory that is written.
pub type TargetBuffers<'a> = Buffers<'a, Target>;

/// The forms of descriptions.
#[derive(Clone, Copy)]
enum List {
    /// One range.
    One(*mut u8, usize),
    /// Ranges of virtual addresses.
    Kvec(*const bindings::kvec, usize),
    /// Ranges of pages.
    Bvec(*const bindings::bio_vec, usize),
    /// A scatterlist.
    Sgl(*mut bindings::scatterlist, usize),
    /// Ranges of elements of a size.
    Ioc(*const bindings::kfi_ioc, usize, usize),
}

impl<D> Buffers<'_, D> {
    /// No memory.
    pub const NONE: Self = Self {
        // INVARIANT: There is nothing to be valid.
        list: List::One(ptr::null_mut(), 0),
        _lifetime: PhantomData,
        _direction: PhantomData,
    };

    /// One range.
    ///
    /// # Safety
    ///
    /// `buf` must be null or name memory as the type invariants say.
    pub(super) unsafe fn one(buf: *const c_void, len: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            list: List::One(buf.cast_mut().cast(), len),
            _lifetime: PhantomData,
            _direction: PhantomData,
        }
    }

    /// Ranges of virtual addresses.
    ///
    /// # Safety
    ///
    /// `iov` must be null or `count` entries as the type invariants say.
    pub(super) unsafe fn kvec(iov: *const bindings::kvec, count: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            list: List::Kvec(iov, count),
            _lifetime: PhantomData,
            _direction: PhantomData,
        }
    }

    /// Ranges of pages.
    ///
    /// # Safety
    ///
    /// `biov` must be null or `count` entries as the type invariants say.
    pub(super) unsafe fn bvec(biov: *const bindings::bio_vec, count: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            list: List::Bvec(biov, count),
            _lifetime: PhantomData,
            _direction: PhantomData,
        }
    }

    /// The first `count` entries of a scatterlist.
    ///
    /// # Safety
    ///
    /// `sgl` must be null or a scatterlist as the type invariants say.
    pub(super) unsafe fn sgl(sgl: *const bindings::scatterlist, count: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            list: List::Sgl(sgl.cast_mut(), count),
            _lifetime: PhantomData,
            _direction: PhantomData,
        }
    }

    /// Ranges of the type that C says; `EINVAL` if there is no such type.
    ///
    /// # Safety
    ///
    /// `list` must be null or what `iov_type` says, with `count` entries as the type invariants say.
    pub(super) unsafe fn of_type(
        iov_type: bindings::kfi_iov_type,
        list: *const c_void,
        count: usize,
    ) -> Result<Self> {
        // SAFETY: By the safety requirements.
        unsafe {
            match iov_type {
                bindings::KFI_KVEC => Ok(Self::kvec(list.cast(), count)),
                bindings::KFI_BVEC => Ok(Self::bvec(list.cast(), count)),
                bindings::KFI_SGL => Ok(Self::sgl(list.cast(), count)),
                _ => Err(EINVAL),
            }
        }
    }

    /// Ranges of elements of `size` bytes.
    ///
    /// # Safety
    ///
    /// `iov` must be null or `count` entries as the type invariants say.
    pub(super) unsafe fn ioc(iov: *const bindings::kfi_ioc, count: usize, size: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            list: List::Ioc(iov, count, size),
            _lifetime: PhantomData,
            _direction: PhantomData,
        }
    }

    /// Returns the number of ranges.
    pub fn count(self) -> usize {
        match self.list {
            List::One(..) => 1,
            List::Kvec(_, count)
            | List::Bvec(_, count)
            | List::Sgl(_, count)
            | List::Ioc(_, count, _) => count,
        }
    }

    /// Hands every range to `each`; `EINVAL` for a null pointer to what is not empty, or a
    /// scatterlist that is shorter than told.
    fn each(self, mut each: impl FnMut(Range) -> Result) -> Result {
        /// Takes an array; an empty one may be null.
        ///
        /// # Safety
        ///
        /// `entries` must be null or valid for `count` entries during `'b`.
        unsafe fn array<'b, T>(entries: *const T, count: usize) -> Result<&'b [T]> {
            if count == 0 {
                return Ok(&[]);
            }
            if entries.is_null() || isize::try_from(count.saturating_mul(size_of::<T>())).is_err() {
                return Err(EINVAL);
            }
            // SAFETY: By the safety requirements; it is neither null nor impossibly long.
            Ok(unsafe { slice::from_raw_parts(entries, count) })
        }

        let mut virtual_range = |base: *mut c_void, len: usize| {
            if base.is_null() && len != 0 {
                return Err(EINVAL);
            }
            each(Range {
                base: Base::Virtual(base.cast()),
                len,
            })
        };
        match self.list {
            List::One(base, len) => virtual_range(base.cast(), len),
            List::Kvec(iov, count) => {
                // SAFETY: By the type invariants.
                for entry in unsafe { array(iov, count) }? {
                    virtual_range(entry.iov_base, entry.iov_len)?;
                }
                Ok(())
            }
            List::Ioc(iov, count, size) => {
                // SAFETY: By the type invariants.
                for entry in unsafe { array(iov, count) }? {
                    let len = entry.count.checked_mul(size).ok_or(EINVAL)?;
                    virtual_range(entry.addr, len)?;
                }
                Ok(())
            }
            List::Bvec(biov, count) => {
                // SAFETY: By the type invariants.
                for entry in unsafe { array(biov, count) }? {
                    let len = usize::try_from(entry.bv_len)?;
                    if entry.bv_page.is_null() && len != 0 {
                        return Err(EINVAL);
                    }
                    each(Range {
                        base: Base::Page(entry.bv_page, usize::try_from(entry.bv_offset)?),
                        len,
                    })?;
                }
                Ok(())
            }
            List::Sgl(sgl, count) => {
                let mut entry = sgl;
                for _ in 0..count {
                    if entry.is_null() {
                        return Err(EINVAL);
                    }
                    // SAFETY: The entry belongs to a scatterlist by the type invariants.
                    let (page, offset, len) = unsafe {
                        (
                            bindings::sg_page(entry),
                            (*entry).offset,
                            usize::try_from((*entry).length)?,
                        )
                    };
                    if page.is_null() && len != 0 {
                        return Err(EINVAL);
                    }
                    each(Range {
                        base: Base::Page(page, usize::try_from(offset)?),
                        len,
                    })?;
                    // SAFETY: As above.
                    entry = unsafe { bindings::sg_next(entry) };
                }
                Ok(())
            }
        }
    }

    /// Checks the description and returns the number of bytes; `EINVAL` if it is none.
    #[inline(always)]
    pub fn len(self) -> Result<usize> {
        match self.list {
            List::One(base, len) => {
                if (base.is_null() && len != 0) || isize::try_from(len).is_err() {
                    return Err(EINVAL);
                }
                Ok(len)
            }
            _ => self.len_of_list(),
        }
    }

    /// As [`Self::len`], whatever the form.
    fn len_of_list(self) -> Result<usize> {
        let mut sum: usize = 0;
        self.each(|range| {
            sum = sum.checked_add(range.len).ok_or(EINVAL)?;
            Ok(())
        })?;
        // No kernel has more memory than that; offsets are computed in `isize`.
        isize::try_from(sum).map_err(|_| EINVAL)?;
        Ok(sum)
    }

    /// Returns the address of the first byte, for display only; it must not be followed; 0 if it has none.
    fn address(self) -> usize {
        let mut first = None;
        // An invalid description has no address, and is refused elsewhere.
        let _ = self.each(|range| {
            first.get_or_insert(range);
            Ok(())
        });
        // SAFETY: Pages are valid by the type invariants.
        first.map_or(0, |range| unsafe { range.address() })
    }

    /// Copies the description. One range needs no memory; `ENOMEM` if there is none for more, nor any
    /// in the reserve.
    ///
    /// # Safety
    ///
    /// The result must not be used any more when the consumer learns of the end of the
    /// operation. It does so
    ///
    /// - when the call that has brought the operation returns, if it fails; of a [`Source`] also if it
    ///   is an inject call, or the flags of the operation have [`OpFlags::INJECT`];
    /// - by an entry of a completion queue or the value of a counter that tells of this operation; of
    ///   one with a buffer for several messages, by that which tells that the buffer is released;
    /// - when the close of the endpoint, or a call that takes deferred work back, returns.
    ///
    /// Memory of a region must not be used any more when the close of the region returns, or the call
    /// that was to open it, if it fails.
    ///
    /// [`OpFlags::INJECT`]: super::flags::OpFlags::INJECT
    #[inline(always)]
    pub(super) unsafe fn capture(
        self,
        flags: Flags,
        reserve: Option<&Arc<Reserve>>,
    ) -> Result<Memory<D>> {
        if let List::One(base, _) = self.list {
            let len = self.len()?;
            // INVARIANT: One range of that length. It is valid by the type invariants as long as it is
            // used by the safety requirements.
            return Ok(Memory {
                ranges: Ranges::One(Range {
                    base: Base::Virtual(base),
                    len,
                }),
                len,
                _direction: PhantomData,
            });
        }
        // SAFETY: By the safety requirements.
        unsafe { self.capture_list(flags, reserve) }
    }

    /// As [`Self::capture`], whatever the form.
    ///
    /// # Safety
    ///
    /// Those of [`Self::capture`].
    unsafe fn capture_list(
        self,
        flags: Flags,
        reserve: Option<&Arc<Reserve>>,
    ) -> Result<Memory<D>> {
        let len = self.len()?;
        if self.count() <= 1 {
            let mut one = Range {
                base: Base::Virtual(ptr::null_mut()),
                len: 0,
            };
            self.each(|range| {
                one = range;
                Ok(())
            })?;
            // INVARIANT: As above.
            return Ok(Memory {
                ranges: Ranges::One(one),
                len,
                _direction: PhantomData,
            });
        }
        let in_pages = matches!(self.list, List::Bvec(..) | List::Sgl(..));
        let ranges = if self.count() <= Piece::<Packed>::MAX {
            let mut ranges = Piece::new(self.count(), flags, reserve)?;
            self.each(|range| ranges.push(Packed::new(range)?))?;
            if in_pages {
                Ranges::Pages(ranges)
            } else {
                Ranges::Virtual(ranges)
            }
        } else {
            let mut ranges = Pieces::new(self.count(), flags, reserve)?;
            self.each(|range| ranges.push(Packed::new(range)?))?;
            Ranges::Many(in_pages, KBox::new(ranges, flags)?)
        };
        // INVARIANT: The ranges have this length together; else as above.
        Ok(Memory {
            ranges,
            len,
            _direction: PhantomData,
        })
    }
}

impl SourceBuffers<'_> {
    /// Copies the bytes themselves, so that the memory is not needed any more.
    ///
    /// # Safety
    ///
    /// The consumer must not learn of the end of the operation before this returns.
    pub(super) unsafe fn copy(self, flags: Flags) -> Result<Memory<Source>> {
        let len = self.len()?;
        // SAFETY: It is used in this call only, and by the safety requirements nobody hears of the
        // end meanwhile.
        let source = unsafe { self.capture(flags, None) }?;
        let mut bytes = KVec::with_capacity(len, flags)?;
        for _ in 0..len {
            bytes.push_within_capacity(0u8).map_err(|_| EINVAL)?;
        }
        // INVARIANT: As many bytes, which are its own.
        let copy: Memory<Target> = Memory {
            ranges: Ranges::Owned(bytes),
            len,
            _direction: PhantomData,
        };
        transfer(&mut copy.cursor(0), &mut source.cursor(0), len);
        // INVARIANT: As above.
        Ok(Memory {
            ranges: copy.ranges,
            len,
            _direction: PhantomData,
        })
    }
}

/// The memory of the caller of an operation.
#[derive(Clone, Copy)]
pub enum Local<'a> {
    /// Data come from it.
    Source(SourceBuffers<'a>),
    /// Data go to it.
    Target(TargetBuffers<'a>),
}

impl<'a> From<SourceBuffers<'a>> for Local<'a> {
    fn from(source: SourceBuffers<'a>) -> Self {
        Self::Source(source)
    }
}

impl<'a> From<TargetBuffers<'a>> for Local<'a> {
    fn from(target: TargetBuffers<'a>) -> Self {
        Self::Target(target)
    }
}

impl<'a> Local<'a> {
    /// Ranges of the type that C says, to which data go if it is a `target`; `EINVAL` if there is no
    /// such type.
    ///
    /// # Safety
    ///
    /// `list` must be null or what `iov_type` says, with `count` entries as the invariants of
    /// [`SourceBuffers`] or, if it is a `target`, of [`TargetBuffers`] say.
    pub(super) unsafe fn of_type(
        target: bool,
        iov_type: bindings::kfi_iov_type,
        list: *const c_void,
        count: usize,
    ) -> Result<Self> {
        Ok(if target {
            // SAFETY: By the safety requirements.
            Self::Target(unsafe { Buffers::of_type(iov_type, list, count) }?)
        } else {
            // SAFETY: By the safety requirements.
            Self::Source(unsafe { Buffers::of_type(iov_type, list, count) }?)
        })
    }

    /// Returns the number of ranges.
    pub fn count(self) -> usize {
        match self {
            Self::Source(source) => source.count(),
            Self::Target(target) => target.count(),
        }
    }

    /// Checks the description and returns the number of bytes; `EINVAL` if it is none.
    pub fn len(self) -> Result<usize> {
        match self {
            Self::Source(source) => source.len(),
            Self::Target(target) => target.len(),
        }
    }
}

/// The ranges of a memory.
enum Ranges {
    /// One.
    One(Range),
    /// Several in pages, one after the other.
    Pages(Piece<Packed>),
    /// Several virtual ones, likewise.
    Virtual(Piece<Packed>),
    /// More of them, in pages or virtual.
    Many(bool, KBox<Pieces<Packed>>),
    /// Bytes of our own.
    Owned(KVec<u8>),
    /// More of them, in pieces.
    OwnedPieces(KVec<KVec<u8>>),
}

impl Range {
    /// Bytes of our own.
    fn owned(bytes: &KVec<u8>) -> Self {
        Self {
            base: Base::Virtual(bytes.as_ptr().cast_mut()),
            len: bytes.len(),
        }
    }

    /// Returns the address, for display only; it must not be followed; 0 if it has none.
    ///
    /// # Safety
    ///
    /// If it begins in a page, that must be valid.
    unsafe fn address(self) -> usize {
        match self.base {
            Base::Virtual(base) => base.addr(),
            // SAFETY: By the safety requirements.
            Base::Page(page, offset) => unsafe { bindings::page_address(page) }
                .addr()
                .wrapping_add(offset),
        }
    }
}

/// Memory that an operation uses, as a [`Source`] or as a [`Target`].
///
/// # Invariants
///
/// - The ranges are `len` bytes together.
/// - While this is used, ranges of others are valid for reads and, if `D` is [`Target`], for writes.
pub struct Memory<D> {
    ranges: Ranges,
    len: usize,
    _direction: PhantomData<D>,
}

// SAFETY: The pointers are to memory that consumers let us use from any thread.
unsafe impl<D> Send for Memory<D> {}
// SAFETY: As above; what is shared are descriptions, which do not change.
unsafe impl<D> Sync for Memory<D> {}

impl<D> Memory<D> {
    /// No memory.
    pub const NONE: Self = Self {
        // INVARIANT: No bytes.
        ranges: Ranges::One(Range {
            base: Base::Virtual(ptr::null_mut()),
            len: 0,
        }),
        len: 0,
        _direction: PhantomData,
    };

    /// Memory of our own.
    #[cfg(CONFIG_KUNIT = "y")]
    pub fn owned(bytes: KVec<u8>) -> Self {
        // INVARIANT: As many bytes, which are its own.
        Self {
            len: bytes.len(),
            ranges: Ranges::Owned(bytes),
            _direction: PhantomData,
        }
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// As dropping it, but in line where there is nothing to be freed.
    #[inline]
    pub(super) fn end(self) {
        match self.ranges {
            Ranges::One(_) => core::mem::forget(self),
            _ => drop(self),
        }
    }

    /// Returns whether the description lies in a reserve.
    pub fn is_reserved(&self) -> bool {
        match &self.ranges {
            Ranges::One(_) | Ranges::Owned(_) | Ranges::OwnedPieces(_) => false,
            Ranges::Pages(ranges) | Ranges::Virtual(ranges) => ranges.is_reserved(),
            Ranges::Many(_, ranges) => ranges.is_reserved(),
        }
    }

    /// Returns the address of the first byte, for display only; 0 if it has none.
    pub fn address(&self) -> usize {
        let first = match &self.ranges {
            Ranges::Owned(_) | Ranges::OwnedPieces(_) => None,
            ranges => ranges.get(0),
        };
        // SAFETY: Pages are valid by the type invariants.
        first.map_or(0, |range| unsafe { range.address() })
    }

    /// Returns a place in the memory.
    #[inline]
    pub fn cursor(&self, offset: usize) -> Cursor<'_, D> {
        // INVARIANT: The memory is used as long as this borrows it.
        let mut cursor = Cursor {
            ranges: &self.ranges,
            at: 0,
            offset: 0,
            left: self.len,
            _direction: PhantomData,
        };
        cursor.skip(offset);
        cursor
    }
}

/// The most bytes of a piece of memory of our own.
const OWNED_PIECE: usize = 16 << 10;

impl Memory<Target> {
    /// Memory of our own, so many bytes, all 0. May sleep, if the flags say so.
    pub fn zeroed(len: usize, flags: Flags) -> Result<Self> {
        if len == 0 {
            return Ok(Self::NONE);
        }
        let ranges = if len <= OWNED_PIECE {
            Ranges::Owned(KVec::zeroed(len, flags)?)
        } else {
            let mut pieces = KVec::with_capacity(len.div_ceil(OWNED_PIECE), flags)?;
            let mut left = len;
            while left != 0 {
                let piece = left.min(OWNED_PIECE);
                pieces.push(KVec::zeroed(piece, flags)?, flags)?;
                left = left.saturating_sub(piece);
            }
            Ranges::OwnedPieces(pieces)
        };
        // INVARIANT: The pieces have as many bytes together, which are its own.
        Ok(Self {
            ranges,
            len,
            _direction: PhantomData,
        })
    }

    /// Lets it only be read from here on.
    pub fn into_source(self) -> Memory<Source> {
        // INVARIANT: The same memory; what may be written may be read.
        Memory {
            ranges: self.ranges,
            len: self.len,
            _direction: PhantomData,
        }
    }
}

impl Memory<Source> {
    /// Returns a place in memory that can be written all the same.
    ///
    /// # Safety
    ///
    /// The ranges must be valid for writes while this is used.
    unsafe fn target_cursor(&self, offset: usize) -> Cursor<'_, Target> {
        let Cursor {
            ranges,
            at,
            offset,
            left,
            ..
        } = self.cursor(offset);
        // INVARIANT: By the safety requirements.
        Cursor {
            ranges,
            at,
            offset,
            left,
            _direction: PhantomData,
        }
    }
}

impl Ranges {
    /// Returns a range by number.
    #[inline]
    fn get(&self, at: usize) -> Option<Range> {
        match self {
            Self::One(range) => (at == 0).then_some(*range),
            _ => self.get_of_many(at),
        }
    }

    /// As [`Self::get`], if there are several, or bytes of our own.
    fn get_of_many(&self, at: usize) -> Option<Range> {
        match self {
            Self::One(_) => None,
            Self::Pages(ranges) => Some(ranges.entries().get(at)?.range(true)),
            Self::Virtual(ranges) => Some(ranges.entries().get(at)?.range(false)),
            Self::Many(in_pages, ranges) => Some(ranges.get(at)?.range(*in_pages)),
            Self::Owned(bytes) => (at == 0).then_some(Range::owned(bytes)),
            Self::OwnedPieces(pieces) => pieces.get(at).map(Range::owned),
        }
    }
}

/// A place in a memory.
///
/// # Invariants
///
/// - `left` bytes follow the place, which is `offset` bytes behind the start of range `at`.
/// - While this is used, ranges of others are valid for reads and, if `D` is [`Target`], for writes.
pub struct Cursor<'a, D> {
    ranges: &'a Ranges,
    at: usize,
    offset: usize,
    left: usize,
    _direction: PhantomData<D>,
}

impl<D> Clone for Cursor<'_, D> {
    fn clone(&self) -> Self {
        // INVARIANT: The same place.
        Self { ..*self }
    }
}

impl<D> Cursor<'_, D> {
    /// Returns the bytes that follow in one piece.
    #[inline]
    fn piece(&mut self) -> Option<Range> {
        loop {
            let range = self.ranges.get(self.at)?;
            // INVARIANT: The place behind a range is the start of the next one.
            match range.len.checked_sub(self.offset) {
                Some(len) if len != 0 => {
                    return Some(Range {
                        base: match range.base {
                            Base::Virtual(base) => Base::Virtual(base.wrapping_add(self.offset)),
                            Base::Page(page, offset) => {
                                Base::Page(page, offset.wrapping_add(self.offset))
                            }
                        },
                        len,
                    })
                }
                _ => {
                    self.at = self.at.wrapping_add(1);
                    self.offset = 0;
                }
            }
        }
    }

    /// Returns where the bytes that follow begin, and how many there are, if the memory is one virtual range.
    #[inline]
    fn rest(&self) -> Option<(*mut u8, usize)> {
        match self.ranges {
            Ranges::One(Range {
                base: Base::Virtual(base),
                len,
            }) if self.at == 0 => {
                let len = len.checked_sub(self.offset)?;
                Some((base.wrapping_add(self.offset), len))
            }
            _ => None,
        }
    }

    /// Moves on inside of a piece.
    #[inline]
    fn advance(&mut self, len: usize) {
        // INVARIANT: `len` bytes further on, as many less follow.
        self.offset = self.offset.wrapping_add(len);
        self.left = self.left.saturating_sub(len);
    }

    /// Returns where the bytes that follow lie in their page, and how many of them lie together, in
    /// that page or behind it.
    pub fn place(&mut self) -> (usize, usize) {
        let Some(piece) = self.piece() else {
            return (0, 0);
        };
        let at = match piece.base {
            Base::Virtual(base) => base.addr(),
            Base::Page(_, offset) => offset,
        };
        (at.wrapping_rem(PAGE_SIZE), piece.len)
    }

    /// Moves on, at most to the end.
    #[inline]
    pub fn skip(&mut self, mut len: usize) {
        while len != 0 {
            let Some(piece) = self.piece() else {
                return;
            };
            let step = piece.len.min(len);
            self.advance(step);
            len = len.wrapping_sub(step);
        }
    }

    /// Reads bytes to `to`; returns how many there were.
    pub fn read(&mut self, to: &mut [u8]) -> usize {
        let len = to.len();
        // SAFETY: `to` is valid for writes of its length.
        unsafe { self.raw(to.as_mut_ptr(), len, true) }
    }

    /// Copies between the place and `other`; returns how many bytes.
    ///
    /// # Safety
    ///
    /// If `to_other`, `other` must be valid for writes of `len` bytes; else it must be valid for
    /// reads, and this be a place in a [`Target`].
    unsafe fn raw(&mut self, other: *mut u8, len: usize, to_other: bool) -> usize {
        let mut done: usize = 0;
        while let Some(left) = len.checked_sub(done).filter(|left| *left != 0) {
            let Some(piece) = self.piece() else {
                break;
            };
            let step = piece.len.min(left);
            let there = Base::Virtual(other.wrapping_add(done));
            let (to, from) = if to_other {
                (there, piece.base)
            } else {
                (piece.base, there)
            };
            // SAFETY: `step` bytes are valid at both, by the safety requirements and by the type
            // invariants.
            unsafe { copy(to, from, step) };
            self.advance(step);
            done = done.wrapping_add(step);
        }
        done
    }
}

impl Cursor<'_, Target> {
    /// Writes bytes from `from`; returns for how many there was room.
    pub fn write(&mut self, from: &[u8]) -> usize {
        // SAFETY: `from` is valid for reads of its length, and is only read.
        unsafe { self.raw(from.as_ptr().cast_mut(), from.len(), false) }
    }
}

/// Copies at most `len` bytes from one place to another and moves both on; returns how many there
/// were. The memory may overlap, then what arrives is undefined but nothing else is touched.
pub fn transfer<D>(to: &mut Cursor<'_, Target>, from: &mut Cursor<'_, D>, len: usize) -> usize {
    if let (Some((target, room)), Some((source, there))) = (to.rest(), from.rest()) {
        let step = room.min(there).min(len);
        if step != 0 {
            // SAFETY: `step` bytes are valid at both by the type invariants of `Cursor`.
            unsafe { bindings::copy(target.cast(), source.cast_const().cast(), step) };
        }
        to.advance(step);
        from.advance(step);
        return step;
    }
    transfer_pieces(to, from, len)
}

/// As [`transfer`], whatever the memory.
fn transfer_pieces<D>(to: &mut Cursor<'_, Target>, from: &mut Cursor<'_, D>, len: usize) -> usize {
    let mut done: usize = 0;
    while let Some(left) = len.checked_sub(done).filter(|left| *left != 0) {
        let (Some(target), Some(source)) = (to.piece(), from.piece()) else {
            break;
        };
        let step = target.len.min(source.len).min(left);
        // SAFETY: `step` bytes are valid at both by the type invariants of `Cursor`.
        unsafe { copy(target.base, source.base, step) };
        to.advance(step);
        from.advance(step);
        done = done.wrapping_add(step);
    }
    done
}

/// Copies bytes.
///
/// # Safety
///
/// `to` must be valid for writes and `from` for reads of `len` bytes.
unsafe fn copy(to: Base, from: Base, len: usize) {
    match (to, from) {
        (Base::Virtual(to), Base::Virtual(from)) => {
            // SAFETY: By the safety requirements.
            unsafe { bindings::copy(to.cast(), from.cast_const().cast(), len) };
        }
        (Base::Page(page, offset), Base::Virtual(from)) => {
            // SAFETY: By the safety requirements.
            unsafe { bindings::copy_to_pages(page, offset, from.cast_const().cast(), len) };
        }
        (Base::Virtual(to), Base::Page(page, offset)) => {
            // SAFETY: By the safety requirements.
            unsafe { bindings::copy_from_pages(to.cast(), page, offset, len) };
        }
        (Base::Page(to, to_offset), Base::Page(from, from_offset)) => {
            // SAFETY: By the safety requirements.
            unsafe { bindings::copy_pages(to, to_offset, from, from_offset, len) };
        }
    }
}
