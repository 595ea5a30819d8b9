// SPDX-License-Identifier: GPL-2.0

//! Memory for operations and memory regions.
//!
//! The rule of the API is that memory stays until an operation completes. A consumer that cannot
//! tell keeps it longer: [`Endpoint`](super::Endpoint), [`MemoryRegion`] and
//! [`DeferredWork`](super::DeferredWork) hold an [`Arc`] of each buffer that was named through them,
//! one of each, however often it was named. So the references that stay are not more than the objects
//! and works of a user, and their number, which has 31 bits, does not run over.

use core::ptr::NonNull;
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use super::{
    memory_region::MemoryRegion,
    quota::{
        Charge,
        Quota, //
    }, //
};
use crate::kfi::{
    bindings,
    linux::file::Mappable, //
};

/// How the memory of a buffer is allocated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BufferKind {
    /// In one piece.
    Kmalloc,
    /// Single pages with consecutive addresses.
    Vmalloc,
    /// As [`Self::Vmalloc`], but nobody is told the addresses.
    Pages,
}

/// Memory.
///
/// # Invariants
///
/// `base` is `room` bytes from kmalloc, if `kind` is `Kmalloc`, or else from vmalloc for user space,
/// that are owned by this; `room` is `size` rounded up to pages.
pub struct Buffer {
    base: NonNull<u8>,
    size: usize,
    room: usize,
    kind: BufferKind,
    places: Arc<Places>,
    _charge: Charge,
}

/// Where the buffers of a user are, by the address behind each: the number and the size. Buffers that
/// the user has no name for any more are found, too.
#[pin_data]
pub struct Places {
    #[pin]
    by_end: Mutex<RBTree<usize, (u32, usize)>>,
}

impl Places {
    /// None so far.
    pub fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                by_end <- new_mutex!(RBTree::new(), "kfi::Places::by_end"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Returns the buffer that an address lies in, and where.
    pub fn find(&self, address: usize) -> Option<(u32, usize)> {
        let by_end = self.by_end.lock();
        let behind = address.checked_add(1)?;
        let (&end, &(number, size)) = by_end.cursor_lower_bound(&behind)?.current();
        let offset = address.checked_sub(end.checked_sub(size)?)?;
        Some((number, offset))
    }
}

// SAFETY: The memory is bytes that anybody may use; they are never looked at from Rust.
unsafe impl Send for Buffer {}
// SAFETY: As above.
unsafe impl Sync for Buffer {}

impl BufferKind {
    /// Returns how much memory is allocated for a buffer of a size, in bytes: from a size of more than
    /// two pages on kmalloc takes a power of two.
    pub fn takes(self, size: usize) -> Result<usize> {
        let room = size.checked_next_multiple_of(PAGE_SIZE).ok_or(E2BIG)?;
        match self {
            Self::Kmalloc if room > 2 * PAGE_SIZE => room.checked_next_power_of_two().ok_or(E2BIG),
            Self::Kmalloc | Self::Vmalloc | Self::Pages => Ok(room),
        }
    }
}

impl Buffer {
    /// Allocates zeroed memory; `number` is what the caller knows it by. May sleep.
    pub fn new(
        kind: BufferKind,
        size: usize,
        number: u32,
        charge: Charge,
        places: &Arc<Places>,
    ) -> Result<Self> {
        let room = size.checked_next_multiple_of(PAGE_SIZE).ok_or(E2BIG)?;
        if room == 0 {
            return Err(EINVAL);
        }
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        // SAFETY: Callable from any context that may sleep.
        let base: *mut c_void = unsafe {
            match kind {
                BufferKind::Kmalloc => bindings::kzalloc(room),
                BufferKind::Vmalloc | BufferKind::Pages => bindings::vmalloc_buffer(room),
            }
        };
        // INVARIANT: As allocated.
        let this = Self {
            base: NonNull::new(base.cast()).ok_or(ENOMEM)?,
            size,
            room,
            kind,
            places: places.clone(),
            _charge: charge,
        };
        let node = node.into_node(this.end(), (number, size));
        let old = places.by_end.lock().insert(node);
        // There is none, as buffers do not overlap.
        drop(old);
        Ok(this)
    }

    /// Returns the address behind the last byte.
    fn end(&self) -> usize {
        self.base.as_ptr().addr().saturating_add(self.size)
    }

    /// Returns the page at `offset`, how far in it that is, and how many bytes from there lie one
    /// behind the other.
    ///
    /// # Safety
    ///
    /// `offset` must be within the memory.
    unsafe fn piece(&self, offset: usize) -> (*mut bindings::page, usize, usize) {
        let address = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: Within the memory by the safety requirements.
        let page = unsafe { bindings::page_of(address.cast()) };
        // Pages are a power of two, and the memory begins with one.
        let inside = offset & (PAGE_SIZE - 1);
        let len = match self.kind {
            BufferKind::Kmalloc => self.room.saturating_sub(offset),
            BufferKind::Vmalloc | BufferKind::Pages => PAGE_SIZE - inside,
        };
        (page, inside, len)
    }
}

#[allow(dead_code, reason = "programs map their buffers")]
impl Buffer {
    /// Returns where `len` bytes at `offset` lie; `EINVAL` if they do not end within the buffer.
    fn range(&self, offset: usize, len: usize) -> Result<*mut c_void> {
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(self.base.as_ptr().wrapping_add(offset).cast()),
            _ => Err(EINVAL),
        }
    }

    /// Copies bytes at `offset` out; `EINVAL` if they do not end within the buffer. If a provider writes
    /// there meanwhile, any part of that may be among them.
    pub fn read_at(&self, offset: usize, to: &mut [u8]) -> Result {
        let from = self.range(offset, to.len())?;
        // SAFETY: As many bytes are valid at both. C copies them, so that others may write meanwhile.
        unsafe { bindings::copy(to.as_mut_ptr().cast(), from, to.len()) };
        Ok(())
    }

    /// Copies bytes in, to `offset`; `EINVAL` if they do not end within the buffer. A provider that reads
    /// there meanwhile may see any part of them.
    pub fn write_at(&self, offset: usize, from: &[u8]) -> Result {
        let to = self.range(offset, from.len())?;
        // SAFETY: As above.
        unsafe { bindings::copy(to, from.as_ptr().cast(), from.len()) };
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Before another one can be where this one is.
        let old = self.places.by_end.lock().remove_node(&self.end());
        drop(old);
        let base = self.base.as_ptr().cast();
        // SAFETY: Owned by the type invariants, and there are no other users: those hold the
        // buffer.
        unsafe {
            match self.kind {
                BufferKind::Kmalloc => bindings::kfree(base),
                BufferKind::Vmalloc | BufferKind::Pages => bindings::vfree(base),
            }
        }
    }
}

// SAFETY: Both functions that map take back what they have mapped before they fail.
unsafe impl Mappable for Buffer {
    fn room(&self) -> usize {
        self.room
    }

    unsafe fn map(&self, vma: *mut bindings::vm_area_struct, offset: usize) -> Result {
        let address = self.base.as_ptr().wrapping_add(offset).cast();
        // SAFETY: The area is being mapped and ends within the memory, by the safety requirements.
        to_result(unsafe {
            match self.kind {
                BufferKind::Kmalloc => bindings::map_kmalloc(vma, address),
                BufferKind::Vmalloc | BufferKind::Pages => bindings::map_vmalloc(vma, address),
            }
        })
    }
}

/// A piece of a buffer, or of nothing, in bytes.
///
/// # Invariants
///
/// `len` bytes from `offset` on lie within the buffer, if there is one, and these in the region, if
/// there is one.
#[derive(Clone)]
pub struct Segment {
    buffer: Option<Arc<Buffer>>,
    /// The region whose descriptor is handed over.
    region: Option<Arc<MemoryRegion>>,
    offset: usize,
    len: usize,
}

/// The buffers of segments, each of which is kept once.
pub(super) struct Buffers {
    by_address: RBTree<usize, Arc<Buffer>>,
    charge: Charge,
}

/// The memory of an entry of these.
const ENTRY_SIZE: usize = 64;

impl Buffers {
    /// None; those that are added count in `quota`.
    pub(super) fn none(quota: &Arc<Quota>) -> Self {
        Self {
            by_address: RBTree::new(),
            charge: Quota::nothing(quota),
        }
    }

    /// Keeps the buffers of segments. A buffer is known by its address, as its user may give the same
    /// number to several.
    pub(super) fn keep(&mut self, segments: &[Segment]) -> Result {
        let mut last = None;
        for buffer in segments.iter().filter_map(Segment::buffer) {
            let address = Arc::as_ptr(buffer).addr();
            // Pieces of one buffer often come one behind the other.
            let again = last.replace(address) == Some(address);
            if again || self.by_address.get(&address).is_some() {
                continue;
            }
            self.charge.grow(ENTRY_SIZE)?;
            self.by_address
                .try_create_and_insert(address, buffer.clone(), GFP_KERNEL_ACCOUNT)?;
        }
        Ok(())
    }
}

/// How an operation counts what lies in its segments.
///
/// The provider is told the same, so that what it makes of a count is not more than there is.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    /// The bytes of an element.
    pub(super) size: usize,
    /// Whether they are not looked at, so that they may be at NULL.
    pub(super) ignored: bool,
}

impl Elements {
    /// Bytes.
    pub(super) const BYTES: Self = Self {
        size: 1,
        ignored: false,
    };
}

impl Segment {
    /// A piece of `len` bytes; `EINVAL` if it does not end within the buffer, or does not lie in the
    /// region, as a provider may look for it there by the descriptor.
    pub fn new(
        buffer: Arc<Buffer>,
        offset: usize,
        len: usize,
        region: Option<Arc<MemoryRegion>>,
    ) -> Result<Self> {
        let end = offset.checked_add(len).ok_or(EINVAL)?;
        if end > buffer.size {
            return Err(EINVAL);
        }
        let this = Self {
            buffer: Some(buffer),
            region: None,
            offset,
            len,
        };
        if let (Some(region), Some(extent)) = (&region, this.extent()) {
            if !region.covers(extent) {
                return Err(EINVAL);
            }
        }
        // INVARIANT: It ends within, and lies in the region.
        Ok(Self { region, ..this })
    }

    /// Returns where it begins and the address behind it, `None` for no buffer.
    pub(super) fn extent(&self) -> Option<(usize, usize)> {
        let buffer = self.buffer.as_ref()?;
        let start = buffer.base.as_ptr().addr().wrapping_add(self.offset);
        Some((start, start.wrapping_add(self.len)))
    }

    /// A NULL address; more than 0 bytes can be there only if nobody looks at them.
    pub fn null(len: usize) -> Self {
        // INVARIANT: There is no buffer.
        Self {
            buffer: None,
            region: None,
            offset: 0,
            len,
        }
    }

    /// Returns the buffer.
    pub fn buffer(&self) -> Option<&Arc<Buffer>> {
        self.buffer.as_ref()
    }

    /// Returns the region whose descriptor is handed over.
    pub fn region(&self) -> Option<&Arc<MemoryRegion>> {
        self.region.as_ref()
    }

    /// Returns the descriptor for C, null for none.
    fn desc(&self) -> *mut c_void {
        self.region
            .as_ref()
            .map_or(core::ptr::null_mut(), |region| region.desc())
    }

    /// Returns how many pieces [`Self::pieces`] has.
    fn piece_count(&self) -> usize {
        let Some(buffer) = &self.buffer else {
            return 0;
        };
        if self.len == 0 {
            return 0;
        }
        match buffer.kind {
            BufferKind::Kmalloc => 1,
            BufferKind::Vmalloc | BufferKind::Pages => {
                let inside = self.offset & (PAGE_SIZE - 1);
                inside.saturating_add(self.len).div_ceil(PAGE_SIZE)
            }
        }
    }

    /// Returns how many bytes it has.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of whole elements; `EINVAL` for some at NULL that are looked at.
    fn count(&self, elements: Elements) -> Result<usize> {
        if self.buffer.is_none() && self.len != 0 && !elements.ignored {
            return Err(EINVAL);
        }
        self.len.checked_div(elements.size).ok_or(EINVAL)
    }

    /// Returns the address for C; `EINVAL` if the buffer has none.
    fn address(&self) -> Result<*mut c_void> {
        match &self.buffer {
            None => Ok(core::ptr::null_mut()),
            Some(buffer) if buffer.kind == BufferKind::Pages => Err(EINVAL),
            Some(buffer) => Ok(buffer.base.as_ptr().wrapping_add(self.offset).cast()),
        }
    }

    /// Calls `add` with the page, the offset in it and the length of each piece.
    fn pieces(&self, mut add: impl FnMut(*mut bindings::page, u32, u32) -> Result) -> Result {
        let Some(buffer) = &self.buffer else {
            return Ok(());
        };
        let mut offset = self.offset;
        let mut left = self.len;
        while left != 0 {
            // SAFETY: `left` bytes from there are within the buffer by the type invariants.
            let (page, inside, len) = unsafe { buffer.piece(offset) };
            let len = len.min(left);
            add(page, u32::try_from(inside)?, u32::try_from(len)?)?;
            offset = offset.wrapping_add(len);
            left = left.wrapping_sub(len);
        }
        Ok(())
    }
}

/// How memory is described to C.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An array of addresses.
    Kvec,
    /// An array of page ranges.
    Bvec,
    /// A scatterlist.
    Sgl,
}

/// The most entries of a description: a GiB in pages.
const ENTRIES_MAX: usize = 1 << 18;

/// A description of memory, as arrays for C. The buffers are held by somebody else.
pub(super) struct Local {
    list: List,
    descs: Option<KVVec<*mut c_void>>,
}

/// The array of a description.
enum List {
    Kvec(KVVec<bindings::kvec>),
    Bvec(KVVec<bindings::bio_vec>),
    Sgl(KVVec<bindings::scatterlist>),
    Ioc(KVVec<bindings::kfi_ioc>),
}

// SAFETY: The pointers are for C, which may use them from any thread.
unsafe impl Send for Local {}
// SAFETY: As above.
unsafe impl Sync for Local {}

impl Local {
    /// Returns how many entries there are for segments.
    pub(super) fn entries(segments: &[Segment], shape: Shape) -> usize {
        match shape {
            Shape::Kvec => segments.len(),
            Shape::Bvec | Shape::Sgl => segments.iter().fold(0, |sum: usize, segment| {
                sum.saturating_add(segment.piece_count())
            }),
        }
    }

    /// Returns how much memory a description takes; one of elements is as large as a `Kvec`.
    pub(super) fn size(segments: &[Segment], shape: Shape) -> usize {
        let entry = match shape {
            Shape::Kvec => size_of::<bindings::kvec>(),
            Shape::Bvec => size_of::<bindings::bio_vec>(),
            Shape::Sgl => size_of::<bindings::scatterlist>(),
        };
        let with_descs = segments.iter().any(|segment| segment.region.is_some());
        let desc = if with_descs { size_of::<usize>() } else { 0 };
        Self::entries(segments, shape).saturating_mul(entry.saturating_add(desc))
    }

    /// Describes segments in bytes; `EINVAL` for memory without address if one is needed, `E2BIG` if
    /// there would be too many entries.
    pub(super) fn new(segments: &[Segment], shape: Shape) -> Result<Self> {
        Self::described(segments, shape, None)
    }

    /// Describes segments in elements; `EINVAL` for memory without address, and for elements at NULL
    /// that are looked at.
    pub(super) fn of_elements(segments: &[Segment], elements: Elements) -> Result<Self> {
        Self::described(segments, Shape::Kvec, Some(elements))
    }

    /// Describes segments.
    fn described(segments: &[Segment], shape: Shape, elements: Option<Elements>) -> Result<Self> {
        let flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
        let with_descs = segments.iter().any(|segment| segment.region.is_some());
        let entries = Self::entries(segments, shape);
        if entries > ENTRIES_MAX {
            return Err(E2BIG);
        }
        let mut descs = KVVec::new();
        if with_descs {
            descs.reserve(entries, flags)?;
        }
        let mut note = |segment: &Segment| {
            if with_descs {
                descs.push(segment.desc(), flags)?;
            }
            Ok(())
        };
        let list = match (shape, elements) {
            (Shape::Kvec, None) => {
                let mut list = KVVec::with_capacity(entries, flags)?;
                for segment in segments {
                    note(segment)?;
                    let entry = bindings::kvec {
                        iov_base: segment.address()?,
                        iov_len: segment.count(Elements::BYTES)?,
                    };
                    list.push(entry, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
                }
                List::Kvec(list)
            }
            (_, Some(elements)) => {
                let mut list = KVVec::with_capacity(entries, flags)?;
                for segment in segments {
                    note(segment)?;
                    let entry = bindings::kfi_ioc {
                        addr: segment.address()?,
                        count: segment.count(elements)?,
                    };
                    list.push(entry, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
                }
                List::Ioc(list)
            }
            (Shape::Bvec, None) => {
                let mut list = KVVec::with_capacity(entries, flags)?;
                for segment in segments {
                    segment.pieces(|page, offset, len| {
                        note(segment)?;
                        let entry = bindings::bio_vec {
                            bv_page: page,
                            bv_len: len,
                            bv_offset: offset,
                        };
                        Ok(list.push(entry, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?)
                    })?;
                }
                List::Bvec(list)
            }
            (Shape::Sgl, None) => List::Sgl(Self::scatterlist(segments, entries, note)?),
        };
        Ok(Self {
            list,
            descs: with_descs.then_some(descs),
        })
    }

    /// Makes a scatterlist.
    fn scatterlist(
        segments: &[Segment],
        entries: usize,
        mut note: impl FnMut(&Segment) -> Result,
    ) -> Result<KVVec<bindings::scatterlist>> {
        let mut list = KVVec::with_capacity(entries, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        for segment in segments {
            segment.pieces(|_, _, _| {
                note(segment)?;
                Ok(list.push(pin_init::zeroed(), GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?)
            })?;
        }
        let entries = list.as_mut_ptr();
        if !list.is_empty() {
            let count = u32::try_from(list.len())?;
            // SAFETY: There are as many entries.
            unsafe { bindings::sg_init_table(entries, count) };
        }
        let mut next = list.iter_mut();
        for segment in segments {
            segment.pieces(|page, offset, len| {
                let entry = next.next().ok_or(EINVAL)?;
                // SAFETY: The entry is initialised, the page one of a buffer.
                unsafe { bindings::sg_set_page(entry, page, len, offset) };
                Ok(())
            })?;
        }
        Ok(list)
    }

    /// Returns the array for C, null if it is empty.
    pub(super) fn as_ptr<T>(&self) -> *const T {
        let (array, count): (*const c_void, usize) = match &self.list {
            List::Kvec(list) => (list.as_ptr().cast(), list.len()),
            List::Bvec(list) => (list.as_ptr().cast(), list.len()),
            List::Sgl(list) => (list.as_ptr().cast(), list.len()),
            List::Ioc(list) => (list.as_ptr().cast(), list.len()),
        };
        if count == 0 {
            return core::ptr::null();
        }
        array.cast()
    }

    /// Returns the number of entries.
    pub(super) fn count(&self) -> usize {
        match &self.list {
            List::Kvec(list) => list.len(),
            List::Bvec(list) => list.len(),
            List::Sgl(list) => list.len(),
            List::Ioc(list) => list.len(),
        }
    }

    /// Returns the descriptors for C, null if there are none.
    pub(super) fn descs(&self) -> *mut *mut c_void {
        self.descs
            .as_ref()
            .map_or(core::ptr::null_mut(), |descs| descs.as_ptr().cast_mut())
    }

    /// Returns the type of the array (`enum kfi_iov_type`).
    pub(super) fn iov_type(&self) -> bindings::kfi_iov_type {
        match &self.list {
            List::Kvec(_) | List::Ioc(_) => bindings::KFI_KVEC,
            List::Bvec(_) => bindings::KFI_BVEC,
            List::Sgl(_) => bindings::KFI_SGL,
        }
    }
}

/// One address, the number of elements there, and its descriptor.
#[derive(Clone, Copy)]
pub(super) struct One {
    pub(super) address: *mut c_void,
    pub(super) count: usize,
    pub(super) desc: *mut c_void,
}

impl One {
    /// Takes the only segment, or nothing; `EINVAL` if there are more, if its buffer has no address, or
    /// for elements at NULL that are looked at.
    pub(super) fn new(segments: &[Segment], elements: Elements) -> Result<Self> {
        match segments {
            [] => Ok(Self {
                address: core::ptr::null_mut(),
                count: 0,
                desc: core::ptr::null_mut(),
            }),
            [segment] => Ok(Self {
                address: segment.address()?,
                count: segment.count(elements)?,
                desc: segment.desc(),
            }),
            _ => Err(EINVAL),
        }
    }
}

#[cfg(consumer_tests)]
#[kunit_tests(kfi_buffers)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_kept_once() -> Result {
        let quota = Quota::new(usize::MAX, None)?;
        let places = Places::new()?;
        let buffer = || {
            let charge = Quota::charge(&quota, 0)?;
            // Each has the same number.
            let buffer = Buffer::new(BufferKind::Kmalloc, 4096, 1, charge, &places)?;
            Ok::<_, Error>(Arc::new(buffer, GFP_KERNEL)?)
        };
        let (first, second) = (buffer()?, buffer()?);
        let mut segments = KVec::new();
        for at in 0..64 {
            let buffer = if at % 2 == 0 { &first } else { &second };
            segments.push(Segment::new(buffer.clone(), at, 0, None)?, GFP_KERNEL)?;
        }
        let mut buffers = Buffers::none(&quota);
        buffers.keep(&segments)?;
        buffers.keep(&segments)?;
        assert_eq!(buffers.by_address.iter().count(), 2);
        let mut few = Buffers::none(&Quota::new(ENTRY_SIZE, None)?);
        assert!(few.keep(&segments) == Err(EDQUOT));
        drop((segments, few, buffers));
        // Nothing else keeps the buffers.
        assert!(Arc::into_unique_or_drop(first).is_some());
        assert!(Arc::into_unique_or_drop(second).is_some());
        Ok(())
    }
}
