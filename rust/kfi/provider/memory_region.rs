// SPDX-License-Identifier: GPL-2.0

//! Memory regions.

use core::{
    ptr,
    slice, //
};
use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

use super::{
    answer,
    DomainOps, //
};
use crate::kfi::{
    bindings,
    context::Context,
    fid::{
        open_into,
        Class,
        Fid,
        NewFid,
        Object,
        Opening,
        Tables, //
    },
    flags::{
        AccessFlags,
        RegionFlags, //
    },
    linux::linear::Linear,
    memory::{
        region::{
            Captured,
            RegionBuffers,
            RegionData, //
        },
        SourceBuffers, //
    }, //
};

/// There is no key, or none that fits (`KFI_KEY_NOTAVAIL`).
const KEY_NOTAVAIL: u64 = u64::MAX;

/// The class of memory regions.
pub struct MemoryRegionClass;

// SAFETY: `struct kfid_mr` starts with its `fid`; `head` stores where the table is, and `names`
// compares that.
unsafe impl Class for MemoryRegionClass {
    type Head = bindings::kfid_mr;
    // Regions have no other operations than all objects.
    type Tables = bindings::kfi_ops;
    type Data = RegionData;
    const FCLASS: usize = bindings::KFI_CLASS_MR as usize;
    const RCU_OPERATIONS: bool = false;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &RegionData) -> Self::Head {
        bindings::kfid_mr {
            fid: bindings::kfid {
                // C declares the table without `const`, and nobody writes to it.
                ops: ptr::from_ref(tables).cast_mut(),
                ..fid
            },
            mem_desc: ptr::null_mut(),
            key: KEY_NOTAVAIL,
            iova: 0,
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        ptr::eq(unsafe { (*head).fid.ops }, tables)
    }

    fn closing(data: &RegionData) {
        data.close();
    }
}

/// The operations of a memory region, beside those of all objects: it is bound to endpoints and
/// counters, and enabled through [`Object::control`]. All may sleep.
pub trait MemoryRegionOps: Object<Class = MemoryRegionClass> {
    /// Tells the raw key (KFI_GET_RAW_MR).
    fn raw_key(this: &Fid<Self>, out: RawKey<'_>) -> Result {
        let _ = (this, out);
        Err(ENOSYS)
    }

    /// Hears that pages of these ranges have changed (KFI_REFRESH); the flags are yet to be checked.
    fn refresh(this: &Fid<Self>, flags: u64, memory: SourceBuffers<'_>) -> Result {
        let _ = (this, flags, memory);
        Err(ENOSYS)
    }
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: MemoryRegionOps> Tables<MemoryRegionClass> for T {
    const TABLES: &'static bindings::kfi_ops = &Fid::<T>::FID_OPS;

    unsafe fn control_of_class(
        this: &Fid<Self>,
        command: c_int,
        arg: *mut c_void,
    ) -> Option<Result> {
        const GET_RAW_MR: c_int = bindings::KFI_GET_RAW_MR.cast_signed();
        const REFRESH: c_int = bindings::KFI_REFRESH.cast_signed();

        match command {
            GET_RAW_MR | REFRESH if arg.is_null() => Some(Err(EINVAL)),
            GET_RAW_MR => {
                // SAFETY: The command takes a `struct kfi_mr_raw_attr *`, which is not null.
                let out = RawKey(unsafe { &*arg.cast() }, Linear);
                Some(T::raw_key(this, out))
            }
            REFRESH => {
                // SAFETY: The command takes a `struct kfi_mr_modify *`, which is not null.
                let modify = unsafe { &*arg.cast::<bindings::kfi_mr_modify>() };
                // SAFETY: The ranges are valid with the argument.
                let memory = unsafe { memory(&modify.attr) };
                Some(memory.and_then(|memory| T::refresh(this, modify.flags, memory)))
            }
            _ => None,
        }
    }
}

/// Where KFI_GET_RAW_MR wants the raw key.
pub struct RawKey<'a>(&'a bindings::kfi_mr_raw_attr, Linear);

impl RawKey<'_> {
    /// Returns the flags, yet to be checked.
    pub fn flags(&self) -> u64 {
        self.0.flags
    }

    /// Answers with the address of the first byte and the key; `ETOOSMALL` if there is no room.
    pub fn answer(self, base_addr: u64, key: &[u8]) -> Result {
        if self.0.base_addr.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: The command takes pointers that are null or valid for writes, the key for as many
        // bytes as its size says.
        unsafe {
            answer(key, self.0.raw_key.cast(), self.0.key_size)?;
            self.0.base_addr.write(base_addr);
        }
        Ok(())
    }
}

impl<T: MemoryRegionOps> Fid<T> {
    /// Sets the key that peers use, which is [`KEY_NOTAVAIL`] till then. C may read it meanwhile.
    pub fn set_key(&self, key: u64) {
        // SAFETY: The head is valid. From now on it is only read, at once and by C, and written
        // like this.
        let field = unsafe { Atomic::from_ptr(&raw mut (*self.head()).key) };
        // Relaxed: the key is made known by other means.
        field.store(key, ordering::Relaxed);
    }

    /// Sets the local descriptor, which is null till then, for what consumers do with it themselves:
    /// posted operations do not bring it back (see [`Operation`](super::Operation)). C may read it
    /// meanwhile.
    #[allow(dead_code, reason = "not every provider has any")]
    pub fn set_descriptor(&self, descriptor: Context) {
        // SAFETY: As above; a pointer has the layout of `usize`.
        let field: &Atomic<usize> =
            unsafe { Atomic::from_ptr((&raw mut (*self.head()).mem_desc).cast()) };
        // Relaxed: as above.
        field.store(descriptor.as_number(), ordering::Relaxed);
    }

    /// Sets the address of the first byte as the NIC sees it, which is 0 till then. C may read it
    /// meanwhile.
    pub fn set_iova(&self, iova: u64) {
        // SAFETY: As above.
        let field = unsafe { Atomic::from_ptr(&raw mut (*self.head()).iova) };
        // Relaxed: as above.
        field.store(iova, ordering::Relaxed);
    }

    /// Returns the key that peers use.
    pub fn key(&self) -> u64 {
        // SAFETY: As above.
        let field = unsafe { Atomic::from_ptr(&raw mut (*self.head()).key) };
        // Relaxed: as above.
        field.load(ordering::Relaxed)
    }
}

/// The attributes that a memory region is registered with (`struct kfi_mr_attr`).
pub struct MemoryRegionAttr<'a> {
    /// The memory. It stays until the region is closed, its description only during the call.
    pub memory: RegionBuffers<'a>,
    /// The access that is allowed, yet to be checked: `EINVAL` for none, `EBADFLAGS` for bits that the
    /// provider does not know.
    pub access: AccessFlags,
    /// Reserved, yet to be checked: `EINVAL` unless it is 0.
    pub offset: u64,
    /// The key that is wanted.
    pub requested_key: u64,
    /// Flags, yet to be checked: `EBADFLAGS` for those that the provider does not have.
    pub flags: RegionFlags,
    /// A key for authorisation; none for that of the domain.
    pub auth_key: Option<&'a [u8]>,
    /// The context of the region.
    pub context: Context,
}

impl<'a> MemoryRegionAttr<'a> {
    /// Reads attributes from C; `EINVAL` for null.
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid, and what it points to as [`RegionBuffers::new`] says, which says
    /// the same of `captured`. Its key for authorisation must be null or valid.
    unsafe fn from_raw(
        attr: *const bindings::kfi_mr_attr,
        flags: u64,
        captured: &'a Captured,
    ) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let attr = unsafe { attr.as_ref() }.ok_or(EINVAL)?;
        // SAFETY: By the safety requirements.
        let memory = unsafe { memory(attr) }?;
        let auth_key = match attr.auth_key_size {
            0 => None,
            _ if attr.auth_key.is_null() => return Err(EINVAL),
            // The longest slice that there is.
            size if isize::try_from(size).is_err() => return Err(EINVAL),
            // SAFETY: It is valid for that many bytes, as it is not null.
            size => Some(unsafe { slice::from_raw_parts(attr.auth_key, size) }),
        };
        let access = AccessFlags::from_raw(attr.access);
        Ok(Self {
            // SAFETY: By the safety requirements.
            memory: unsafe { RegionBuffers::new(memory, access, captured) },
            access,
            offset: attr.offset,
            requested_key: attr.requested_key,
            flags: RegionFlags::from_raw(flags),
            auth_key,
            context: Context::from_raw(attr.context),
        })
    }
}

/// Reads the memory of attributes from C.
///
/// # Safety
///
/// All that `attr` points to must be as [`SourceBuffers`] says.
unsafe fn memory<'a>(attr: &bindings::kfi_mr_attr) -> Result<SourceBuffers<'a>> {
    // SAFETY: All members are pointers, of which the type says what they point to.
    unsafe {
        SourceBuffers::of_type(
            attr.type_,
            attr.__bindgen_anon_1.mr_iov.cast(),
            attr.iov_count,
        )
    }
}

/// Returns the table of a domain.
pub(super) const fn table<T: DomainOps>() -> bindings::kfi_ops_mr {
    bindings::kfi_ops_mr {
        size: size_of::<bindings::kfi_ops_mr>(),
        reg: Some(reg_callback::<T>),
        regv: Some(regv_callback::<T>),
        regbv: Some(regbv_callback::<T>),
        regattr: Some(regattr_callback::<T>),
        regsgl: Some(regsgl_callback::<T>),
    }
}

/// Defines functions that register memory: name, the two arguments that describe it, and what
/// [`SourceBuffers`] makes of them.
macro_rules! reg_callbacks {
    ($(
        $(#[$attr:meta])*
        $name:ident($list:ident: $ty:ty, $count:ident) => $buffers:ident;
    )*) => {$(
        $(#[$attr])*
        ///
        /// # Safety
        ///
        /// `fid` must be the start of an open domain of `T`. The memory must be null or as
        /// [`SourceBuffers`] says, `mr` null or valid for writes.
        unsafe extern "C" fn $name<T: DomainOps>(
            fid: *mut bindings::kfid,
            $list: $ty,
            $count: usize,
            access: u64,
            offset: u64,
            requested_key: u64,
            flags: u64,
            mr: *mut *mut bindings::kfid_mr,
            context: *mut c_void,
        ) -> c_int {
            // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
            let this = unsafe { Fid::<T>::borrow(fid.cast()) };
            // SAFETY: By the safety requirements.
            let memory = unsafe { SourceBuffers::$buffers($list, $count) };
            let access = AccessFlags::from_raw(access);
            let captured = Captured::default();
            let attr = MemoryRegionAttr {
                // SAFETY: By the safety requirements; `captured` is dropped when this returns.
                memory: unsafe { RegionBuffers::new(memory, access, &captured) },
                access,
                offset,
                requested_key,
                flags: RegionFlags::from_raw(flags),
                auth_key: None,
                context: Context::from_raw(context),
            };
            // SAFETY: By the safety requirements.
            unsafe { open_into(mr, || register::<T>(this, attr, &captured)) }
        }
    )*}
}

reg_callbacks! {
    /// Registers one range.
    reg_callback(buf: *const c_void, len) => one;
    /// Registers virtual ranges.
    regv_callback(iov: *const bindings::kvec, count) => kvec;
    /// Registers pages.
    regbv_callback(biov: *const bindings::bio_vec, count) => bvec;
    /// Registers a scatterlist.
    regsgl_callback(sgl: *const bindings::scatterlist, count) => sgl;
}

/// Registers memory that attributes describe.
///
/// # Safety
///
/// `fid` must be the start of an open domain of `T`, `attr` as [`MemoryRegionAttr::from_raw`] says,
/// `mr` null or valid for writes.
unsafe extern "C" fn regattr_callback<T: DomainOps>(
    fid: *mut bindings::kfid,
    attr: *const bindings::kfi_mr_attr,
    flags: u64,
    mr: *mut *mut bindings::kfid_mr,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    let captured = Captured::default();
    // SAFETY: By the safety requirements; `captured` is dropped when this returns.
    let attr = unsafe { MemoryRegionAttr::from_raw(attr, flags, &captured) };
    // SAFETY: By the safety requirements.
    unsafe { open_into(mr, || register(this, attr?, &captured)) }
}

/// Registers memory; `EINVAL` for a description that is none. `captured` is the memory that the
/// provider has begun to use; a region that is opened takes it over.
fn register<'o, T: DomainOps>(
    domain: &Fid<T>,
    attr: MemoryRegionAttr<'_>,
    captured: &Captured,
) -> Result<NewFid<'o, T::MemoryRegion>> {
    attr.memory.len()?;
    let opening = Opening::new(attr.context, RegionData::default());
    let region = T::mr_reg(domain, attr, opening)?;
    captured.hand_to(region.data());
    Ok(region)
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_memory_region)]
mod tests {
    use super::*;
    use crate::kfi::{
        fid::TestFid,
        memory::region::RegionMemory, //
    };

    /// A region.
    struct Region;

    impl Object for Region {
        type Class = MemoryRegionClass;

        fn release(&self) {}
    }

    impl MemoryRegionOps for Region {}

    /// A region of another type.
    struct Other;

    impl Object for Other {
        type Class = MemoryRegionClass;

        fn release(&self) {}
    }

    impl MemoryRegionOps for Other {}

    #[test]
    fn c_reads_the_key() -> Result {
        let region = TestFid::open(Region, Context::NONE)?;
        let head = region.head();
        // SAFETY: The head is valid, and nobody else writes to it.
        let read = || unsafe { ((*head).key, (*head).mem_desc.addr(), (*head).iova) };

        assert_eq!(read(), (KEY_NOTAVAIL, 0, 0));
        region.set_key(7);
        region.set_descriptor(Context::from_number(8));
        region.set_iova(9);
        assert_eq!(read(), (7, 8, 9));
        assert_eq!(region.key(), 7);
        Ok(())
    }

    #[test]
    fn regions_are_known_by_their_type() -> Result {
        let region = TestFid::open(Region, Context::NONE)?;
        // SAFETY: The object is open as long as `region`.
        let any = unsafe { crate::kfi::fid::AnyFid::from_raw(region.head().cast()) };
        let any = any.ok_or(EINVAL)?;

        assert!(any.downcast::<Region>().is_some());
        assert!(any.downcast::<Other>().is_none());
        Ok(())
    }

    #[test]
    fn close_ends_the_use_of_the_memory() -> Result {
        let mut bytes = [0u8; 4];
        let captured = Captured::default();
        // SAFETY: The memory is valid longer than the region, to which it is handed below.
        let memory = unsafe {
            let buffers = SourceBuffers::one(bytes.as_mut_ptr().cast(), bytes.len());
            RegionBuffers::new(buffers, AccessFlags::REMOTE_WRITE, &captured)
        };
        let memory = memory.capture((), GFP_KERNEL)?;
        let region = TestFid::open(Region, Context::NONE)?;
        captured.hand_to(region.data());
        drop(captured);
        assert!(RegionMemory::enter(&memory).is_some());
        // `Region` does nothing for that.
        drop(region);
        assert!(RegionMemory::enter(&memory).is_none());
        Ok(())
    }

    #[test]
    fn attributes_are_read() -> Result {
        let key = [1u8, 2];
        let mut attr: bindings::kfi_mr_attr = pin_init::zeroed();
        let captured = Captured::default();
        let flags = RegionFlags::RMA_EVENT.as_raw();
        // SAFETY: No memory, null or valid.
        let read = |attr: &bindings::kfi_mr_attr| unsafe {
            MemoryRegionAttr::from_raw(attr, flags, &captured)
        };

        assert!(read(&attr).err() == Some(EINVAL));
        attr.type_ = bindings::KFI_SGL;
        attr.access = AccessFlags::REMOTE_READ.as_raw();
        attr.requested_key = 3;
        let wanted = read(&attr)?;
        assert!(wanted.access == AccessFlags::REMOTE_READ);
        assert!(wanted.flags == RegionFlags::RMA_EVENT);
        assert!(wanted.auth_key.is_none());
        assert_eq!(wanted.requested_key, 3);
        assert_eq!(wanted.memory.len()?, 0);
        attr.auth_key_size = key.len();
        assert!(read(&attr).err() == Some(EINVAL));
        attr.auth_key = key.as_ptr().cast_mut();
        assert!(read(&attr)?.auth_key == Some(&key[..]));
        Ok(())
    }
}
