// SPDX-License-Identifier: GPL-2.0

//! Requests about memory.

#![forbid(unsafe_code)]

use kernel::{
    page::PAGE_SHIFT,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use super::Argument;
use crate::{
    abi,
    estimate,
    kfi::{
        consumer::{
            Buffer,
            BufferKind,
            Charge,
            MemoryRegion,
            Quota,
            Segment, //
        },
        linux::file::Area, //
    },
    object::Object,
    session::{
        Session,
        Use, //
    }, //
};

/// The bits of an offset in a buffer, for mmap(2) and where a place in a buffer is told.
const OFFSET_BITS: u32 = 32;

/// Allocates a buffer.
pub(super) fn buffer(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::AllocBuffer = argument.read_for_update()?;
    if request.flags != 0 || request.reserved != 0 {
        return Err(EINVAL);
    }
    let kind = match request.kind {
        abi::KFI_SHIM_BUFFER_KMALLOC => BufferKind::Kmalloc,
        abi::KFI_SHIM_BUFFER_VMALLOC => BufferKind::Vmalloc,
        abi::KFI_SHIM_BUFFER_PAGES => BufferKind::Pages,
        _ => return Err(EINVAL),
    };
    if request.size >> OFFSET_BITS != 0 {
        return Err(E2BIG);
    }
    let size = usize::try_from(request.size)?;
    let slot = session.reserve(0, estimate::OBJECT)?;
    let charge = Quota::charge(session.quota(), kind.takes(size)?)?;
    let buffer = Buffer::new(kind, size, slot.handle(), charge, session.places())?;
    let buffer = Arc::new(buffer, GFP_KERNEL_ACCOUNT)?;
    request.buffer = slot.handle();
    request.offset = u64::from(slot.handle()) << OFFSET_BITS;
    argument.write(&request)?;
    slot.fill(Object::Buffer(buffer));
    Ok(())
}

/// Maps a buffer, or a part of one.
pub(crate) fn map(session: ArcBorrow<'_, Session>, area: Area<'_>) -> Result {
    let page = area.page_offset();
    let page_bits = OFFSET_BITS - u32::try_from(PAGE_SHIFT)?;
    let handle = u32::try_from(page >> page_bits).map_err(|_| EBADF)?;
    let first = page & ((1usize << page_bits) - 1);
    // The lock of the process's memory is held: nobody waits here for what may take long.
    let buffer = Session::get_now::<Buffer>(session, handle)?;
    area.map(Arc::clone(&buffer), first << PAGE_SHIFT)
}

/// Segments, their part in the memory, and the regions whose descriptors are handed over, which
/// cannot be closed meanwhile.
pub(super) struct Segments {
    // Dropped before the regions: a thread that finds no marks finds no references either.
    list: KVVec<Segment>,
    _regions: KVVec<Use<Arc<MemoryRegion>>>,
    _charge: Charge,
}

impl core::ops::Deref for Segments {
    type Target = [Segment];

    fn deref(&self) -> &[Segment] {
        &self.list
    }
}

/// After so many segments signals are looked for.
const LOOK_AROUND: usize = 256;

/// Reads segments, for elements of a size; `null` says whether there may be elements at NULL.
pub(super) fn segments(
    session: ArcBorrow<'_, Session>,
    ptr: u64,
    count: u32,
    element: usize,
    null: bool,
) -> Result<Segments> {
    if count > abi::KFI_SHIM_SEGMENTS_MAX {
        return Err(E2BIG);
    }
    let count = usize::try_from(count)?;
    let ptr = UserPtr::from_addr(usize::try_from(ptr)?);
    let mut reader = UserSlice::new(ptr, count * size_of::<abi::SegmentAt>()).reader();
    // The list of regions grows by doubling.
    let each = size_of::<Segment>() + 4 * size_of::<Use<Arc<MemoryRegion>>>();
    let charge = Quota::charge(session.quota(), count.saturating_mul(each))?;
    // Dropped after the list, here as in `Segments`.
    let mut regions = KVVec::new();
    let mut list = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    for index in 0..count {
        if index % LOOK_AROUND == LOOK_AROUND - 1 && kernel::current!().signal_pending() {
            return Err(EINTR);
        }
        let at: abi::SegmentAt = reader.read()?;
        let len = usize::try_from(at.len)?
            .checked_mul(element)
            .ok_or(EINVAL)?;
        let segment = if at.buffer == 0 {
            if at.offset != 0 || at.mr != 0 || len != 0 && !null {
                return Err(EINVAL);
            }
            Segment::null(len)
        } else {
            let region = match at.mr {
                0 => None,
                mr => {
                    let region = Session::get::<MemoryRegion>(session, mr)?;
                    // Room first: a holder of a reference to an object has its mark until after
                    // that.
                    regions.reserve(1, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
                    let named = region.has_desc().then(|| Arc::clone(&region));
                    if named.is_some() {
                        regions.push(region, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
                    }
                    named
                }
            };
            let buffer = Session::get::<Buffer>(session, at.buffer)?;
            let offset = usize::try_from(at.offset)?;
            Segment::new(Arc::clone(&buffer), offset, len, region)?
        };
        list.push(segment, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(Segments {
        list,
        _regions: regions,
        _charge: charge,
    })
}
