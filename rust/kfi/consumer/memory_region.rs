// SPDX-License-Identifier: GPL-2.0

//! Memory regions.

use core::{
    cmp::Reverse,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::{
    buffer::{
        Buffers,
        Elements,
        Local,
        One,
        Segment,
        Shape, //
    },
    object::{
        object,
        AnyObject,
        Closable,
        Ending,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    quota::{
        Charge,
        Quota, //
    },
    Answer,
    Domain, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

/// A region whose descriptor operations may still use.
pub(super) struct RegionUse {
    // Dropped before the mark: a thread that finds no marks finds no references either.
    _region: Arc<MemoryRegion>,
    _mark: Mark,
}

impl RegionUse {
    /// Begins such a use.
    pub(super) fn new(region: &Arc<MemoryRegion>) -> Self {
        // Relaxed: see `MemoryRegion::is_used`.
        region.uses.fetch_add(1, ordering::Relaxed);
        Self {
            _region: region.clone(),
            _mark: Mark(region.uses.clone()),
        }
    }
}

/// The mark that counts in the uses of a region.
struct Mark(Arc<Atomic<usize>>);

impl Drop for Mark {
    fn drop(&mut self) {
        // Release: after the reference is gone; pairs with `MemoryRegion::is_used`.
        // See `qemu-test/litmus/KFI-last-use.litmus`.
        self.0.fetch_sub(1, ordering::Release);
    }
}

/// Which function registers.
#[derive(Clone, Copy)]
pub enum RegisterForm {
    /// kfi_mr_reg.
    One,
    /// kfi_mr_regv, kfi_mr_regbv, kfi_mr_regsgl.
    Array(Shape),
    /// kfi_mr_regattr.
    Attr(Shape),
}

/// The memory to be registered, and how.
pub struct Register<'a> {
    /// The function.
    pub form: RegisterForm,
    /// The memory.
    pub segments: &'a [Segment],
    /// Operations allowed.
    pub access: u64,
    /// Reserved by kfabric.
    pub offset: u64,
    /// The key wanted.
    pub requested_key: u64,
    /// Flags.
    pub flags: u64,
    /// The context of the region.
    pub context: Context,
    /// The authorization key.
    pub auth_key: &'a [u8],
}

object! {
    /// An open memory region as C knows it.
    Region(kfid_mr, MemoryRegion)
}

/// An open memory region, with what it needs.
pub struct MemoryRegion {
    mr: Region,
    /// Until the region is closed; the array as well, since a registration may end with an event.
    held: Option<Arc<Held>>,
    /// Where memory counts.
    quota: Arc<Quota>,
    /// Endpoints whose operations may use its descriptor.
    uses: Arc<Atomic<usize>>,
}

/// The memory of an entry in the copy that a provider keeps of the array of a region, rounded up: there
/// is one for each page if the array is of pages.
const COPIED_ENTRY_SIZE: usize = 32;

/// The memory that a region needs.
struct Held {
    _buffers: Buffers,
    extents: Extents,
    _local: Option<Local>,
    _charge: Charge,
}

/// The address of a piece of memory, and the one behind it.
type Extent = (usize, usize);

/// The addresses of memory whose pieces follow each other in an order.
///
/// # Invariants
///
/// Where they begin ascends, and so does where they end.
struct Extents(KVVec<Extent>);

impl Extents {
    /// Returns those of segments.
    ///
    /// A provider may look for the first segment in which a piece begins, and go on with those behind it: so only segments
    /// are joined that follow each other. Empty ones are nowhere.
    fn of(segments: &[Segment]) -> Result<Self> {
        let mut joined: KVVec<Extent> =
            KVVec::with_capacity(segments.len(), GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        let extents = segments.iter().filter_map(Segment::extent);
        for (start, end) in extents.filter(|(start, end)| start != end) {
            match joined.last_mut() {
                Some((_, before)) if start == *before => *before = end,
                _ => joined.push((start, end), GFP_KERNEL_ACCOUNT)?,
            }
        }
        // Of those that begin at the same address the longest comes first.
        joined.sort_unstable_by_key(|&(start, end)| (start, Reverse(end)));
        let mut last = None;
        joined.retain(|&mut (_, end)| {
            let is_within = last.is_some_and(|last| end <= last);
            if !is_within {
                last = Some(end);
            }
            !is_within
        });
        // INVARIANT: They were sorted, and those that lie within another one taken out.
        Ok(Self(joined))
    }

    /// Returns whether all of a piece is in one of them: in the last one that begins before it, if in any.
    fn cover(&self, (start, end): Extent) -> bool {
        let behind = self.0.partition_point(|(first, _)| *first <= start);
        let before = behind.checked_sub(1).and_then(|index| self.0.get(index));
        before.is_some_and(|(_, last)| end <= *last)
    }
}

impl Held {
    /// Keeps the memory that is to be registered, and describes it unless that is for one address;
    /// counts in `quota`. `EINVAL` or `E2BIG` if it cannot be described.
    fn new(register: &Register<'_>, quota: &Arc<Quota>) -> Result<Arc<Self>> {
        let segments = register.segments;
        let shape = match register.form {
            RegisterForm::One => None,
            RegisterForm::Array(shape) | RegisterForm::Attr(shape) => Some(shape),
        };
        let size = {
            let shape = shape.unwrap_or(Shape::Kvec);
            let copy = Local::entries(segments, shape).saturating_mul(COPIED_ENTRY_SIZE);
            let extents = segments.len().saturating_mul(size_of::<Extent>());
            Local::size(segments, shape)
                .saturating_add(copy)
                .saturating_add(extents)
        };
        let charge = Quota::charge(quota, size)?;
        let mut buffers = Buffers::none(quota);
        buffers.keep(segments)?;
        let local = match shape {
            Some(shape) => Some(Local::new(segments, shape)?),
            None => None,
        };
        let held = Self {
            _buffers: buffers,
            extents: Extents::of(segments)?,
            _local: local,
            _charge: charge,
        };
        Ok(Arc::new(held, GFP_KERNEL_ACCOUNT)?)
    }
}

impl core::ops::Deref for MemoryRegion {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.mr
    }
}

impl Closable for MemoryRegion {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.mr.close_with(permit)
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        if !self.mr.end() {
            // Peers may still use the memory.
            core::mem::forget(self.held.take());
        }
    }
}

impl MemoryRegion {
    /// Registers memory, which stays until the region is closed. May sleep.
    pub fn register(domain: &Domain, register: Register<'_>) -> Result<Answer<Self>> {
        // Before the region, which needs it at once.
        let held = Held::new(&register, domain.contexts().quota())?;
        let Register {
            form,
            segments,
            access,
            offset,
            requested_key,
            flags,
            context,
            auth_key,
        } = register;
        let one = match form {
            RegisterForm::One => Some(One::new(segments, Elements::BYTES)?),
            _ => None,
        };
        let uses = Arc::new(Atomic::new(0), GFP_KERNEL_ACCOUNT)?;
        let lineage = domain.lineage();
        let quota = domain.contexts().quota().clone();
        let (domain, context) = (domain.as_raw(), context.as_raw());
        let mut mr = ptr::null_mut();
        let ret = match (&held._local, form, one) {
            // SAFETY: The domain is open; the memory stays until the region is closed.
            (None, _, Some(one)) => unsafe {
                bindings::kfi_mr_reg(
                    domain,
                    one.address,
                    one.count,
                    access,
                    offset,
                    requested_key,
                    flags,
                    &mut mr,
                    context,
                )
            },
            (Some(local), RegisterForm::Attr(_), _) => {
                let mut key = KVec::new();
                key.extend_from_slice(auth_key, GFP_KERNEL_ACCOUNT)?;
                let attr = bindings::kfi_mr_attr {
                    type_: local.iov_type(),
                    __bindgen_anon_1: bindings::kfi_mr_attr__bindgen_ty_1 {
                        mr_iov: local.as_ptr(),
                    },
                    iov_count: local.count(),
                    access,
                    offset,
                    requested_key,
                    context,
                    auth_key_size: key.len(),
                    auth_key: if key.is_empty() {
                        ptr::null_mut()
                    } else {
                        key.as_mut_ptr()
                    },
                };
                // SAFETY: As above, and so does the array; the attributes are read during the call.
                unsafe { bindings::kfi_mr_regattr(domain, &attr, flags, &mut mr) }
            }
            (Some(local), RegisterForm::Array(shape), _) => {
                macro_rules! register {
                    ($function:ident) => {
                        // SAFETY: As above; the array has the type that the function takes.
                        unsafe {
                            bindings::$function(
                                domain,
                                local.as_ptr(),
                                local.count(),
                                access,
                                offset,
                                requested_key,
                                flags,
                                &mut mr,
                                context,
                            )
                        }
                    };
                }
                match shape {
                    Shape::Kvec => register!(kfi_mr_regv),
                    Shape::Bvec => register!(kfi_mr_regbv),
                    Shape::Sgl => register!(kfi_mr_regsgl),
                }
            }
            _ => return Err(EINVAL),
        };
        if let Err(error) = to_result(ret) {
            return Ok(Err(error));
        }
        let mr = NonNull::new(mr).ok_or(EIO)?;
        Ok(Ok(Self {
            // SAFETY: It has just been opened.
            mr: unsafe { Region::new(mr, lineage) },
            held: Some(held),
            quota,
            uses,
        }))
    }

    /// Returns the key.
    pub fn key(&self) -> u64 {
        // SAFETY: The region is open.
        unsafe { bindings::kfi_mr_key(self.as_raw()) }
    }

    /// Returns the descriptor, null for none. It is worth nothing when the region is closed.
    pub(super) fn desc(&self) -> *mut c_void {
        // SAFETY: The region is open.
        unsafe { bindings::kfi_mr_desc(self.as_raw()) }
    }

    /// Returns whether there is a descriptor.
    pub fn has_desc(&self) -> bool {
        !self.desc().is_null()
    }

    /// Returns whether memory at these addresses is registered with it.
    pub(super) fn covers(&self, extent: Extent) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| held.extents.cover(extent))
    }

    /// Returns whether operations may use its descriptor, until their endpoint is closed.
    pub fn is_used(&self) -> bool {
        // The caller sees to it that no operation is being posted that names the region. Acquire:
        // those that are not among the uses any more have let go of it; pairs with that of `Mark`.
        self.uses.load(ordering::Acquire) != 0
    }

    /// Tells that pages have changed. May sleep.
    pub fn refresh(&self, segments: &[Segment], flags: u64) -> Result<Answer> {
        let size = Local::size(segments, Shape::Kvec);
        let _charge = Quota::charge(&self.quota, size)?;
        let local = Local::new(segments, Shape::Kvec)?;
        // SAFETY: The region is open; the array is read during the call.
        Ok(to_result(unsafe {
            bindings::kfi_mr_refresh(self.as_raw(), local.as_ptr(), local.count(), flags)
        }))
    }

    /// Returns the base address and the length of the raw key, even if there is not as much room.
    /// May sleep.
    pub fn raw_attr(&self, key: &mut [u8], flags: u64) -> (Result, u64, usize) {
        let (mut base, mut len) = (0, key.len());
        // SAFETY: The region is open; there is room for `len` bytes.
        let ret = to_result(unsafe {
            bindings::kfi_mr_raw_attr(self.as_raw(), &mut base, key.as_mut_ptr(), &mut len, flags)
        });
        (ret, base, len)
    }
}

impl Domain {
    /// Makes a key of the raw key of a peer. May sleep.
    pub fn map_raw(&self, base: u64, raw_key: &mut [u8], flags: u64) -> Result<u64> {
        let mut key = 0;
        // SAFETY: The domain is open; the key has as many bytes.
        to_result(unsafe {
            bindings::kfi_mr_map_raw(
                self.as_raw(),
                base,
                raw_key.as_mut_ptr(),
                raw_key.len(),
                &mut key,
                flags,
            )
        })?;
        Ok(key)
    }

    /// Releases such a key. May sleep.
    pub fn unmap_key(&self, key: u64) -> Result {
        // SAFETY: The domain is open.
        to_result(unsafe { bindings::kfi_mr_unmap_key(self.as_raw(), key) })
    }
}

#[cfg(consumer_tests)]
#[kunit_tests(kfi_extents)]
mod tests {
    use super::*;
    use crate::kfi::consumer::{
        Buffer,
        BufferKind,
        Places, //
    };

    #[test]
    fn what_is_registered_covers_all_of_it_and_nothing_else() -> Result {
        const SIZE: usize = 4096;

        let quota = Quota::new(usize::MAX, None)?;
        let charge = Quota::charge(&quota, 0)?;
        let buffer = Buffer::new(BufferKind::Kmalloc, SIZE, 1, charge, &Places::new()?)?;
        let buffer = Arc::new(buffer, GFP_KERNEL)?;
        let segment = |start, end| Segment::new(buffer.clone(), start, end - start, None);
        let pieces = [
            segment(3000, 4000)?,
            segment(100, 200)?,
            segment(900, 900)?,
            segment(200, 300)?,
            segment(300, 400)?,
            // Not in the order of their addresses.
            segment(700, 800)?,
            segment(600, 700)?,
            segment(120, 130)?,
            // Together longer than the one that begins there, too.
            segment(700, 750)?,
            segment(750, 820)?,
            Segment::null(0),
        ];
        let extents = Extents::of(&pieces)?;
        for (start, end, covered) in [
            (100, 400, true),
            (100, 100, true),
            (150, 350, true),
            (400, 400, true),
            (3000, 4000, true),
            (600, 700, true),
            (710, 820, true),
            (600, 701, false),
            (699, 800, false),
            (99, 200, false),
            (100, 401, false),
            (401, 401, false),
            (900, 900, false),
            (350, 3100, false),
            (2999, 2999, false),
            (0, SIZE, false),
        ] {
            let extent = segment(start, end)?.extent().ok_or(EINVAL)?;
            assert_eq!(extents.cover(extent), covered);
        }
        assert!(!Extents::of(&[])?.cover((0, 0)));
        Ok(())
    }
}
