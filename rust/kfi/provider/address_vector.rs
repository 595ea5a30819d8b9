// SPDX-License-Identifier: GPL-2.0

//! Address vectors.

use core::{
    marker::PhantomData,
    ptr,
    slice, //
};
use kernel::{
    error::from_result,
    fmt,
    prelude::*,
    str::CStr, //
};

use crate::kfi::{
    addr::{
        AddressFormat,
        FabricAddr, //
    },
    attr::AvType,
    bindings,
    context::Context,
    fid::{
        Class,
        Fid,
        Object,
        Tables, //
    },
    flags::{
        AddressVectorFlags,
        InsertFlags, //
    },
    linux::{
        linear::Linear,
        no_fs::NoFs, //
    }, //
};

/// The class of address vectors.
pub struct AddressVectorClass;

// SAFETY: `struct kfid_av` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for AddressVectorClass {
    type Head = bindings::kfid_av;
    type Tables = bindings::kfi_ops_av;
    type Data = AddressVectorData;
    const FCLASS: usize = bindings::KFI_CLASS_AV as usize;
    // Operations of endpoints look addresses up in such sections, and one of them may drop the last
    // reference that leads here after its endpoint was closed.
    const RCU_OPERATIONS: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &Self::Data) -> Self::Head {
        bindings::kfid_av {
            fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: ptr::from_ref(tables).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        ptr::eq(unsafe { (*head).ops }, tables)
    }
}

/// The data that the abstractions keep of an address vector.
#[allow(unnameable_types, reason = "known to its class alone")]
pub struct AddressVectorData {
    /// The format of its domain.
    pub(super) address_format: AddressFormat,
}

impl Default for AddressVectorData {
    /// With the format of the shortest addresses.
    fn default() -> Self {
        Self {
            address_format: AddressFormat::Cxi,
        }
    }
}

/// The attributes that an address vector is opened with (`struct kfi_av_attr`).
///
/// The number of addresses to be expected is a hint, and left out.
#[derive(Default)]
pub struct AddressVectorAttr {
    /// The kind, `None` if the provider is to choose.
    pub av_type: Option<AvType>,
    /// How many of the highest bits of an address say which receive context is meant.
    pub rx_ctx_bits: u32,
    /// Whether it is to be shared under a name.
    pub is_shared: bool,
    /// Flags, yet to be checked.
    pub flags: AddressVectorFlags,
}

impl AddressVectorAttr {
    /// Reads attributes from C; null means the defaults.
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid.
    pub(super) unsafe fn from_raw(attr: *const bindings::kfi_av_attr) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let Some(attr) = (unsafe { attr.as_ref() }) else {
            return Ok(Self::default());
        };
        Ok(Self {
            av_type: AvType::from_raw(attr.type_)?,
            rx_ctx_bits: u32::try_from(attr.rx_ctx_bits).map_err(|_| EINVAL)?,
            is_shared: !attr.name.is_null() || !attr.map_addr.is_null(),
            flags: AddressVectorFlags::from_raw(attr.flags),
        })
    }
}

/// Addresses to be inserted.
#[derive(Clone, Copy)]
pub enum Addresses<'a> {
    /// Back to back, in the domain's format.
    Binary(&'a [u8]),
    /// As texts: nodes that count up, each with services that count up.
    Text {
        /// The first node.
        node: &'a CStr,
        /// How many nodes.
        #[allow(dead_code, reason = "it follows from how many addresses there are")]
        nodes: usize,
        /// The first service.
        service: &'a CStr,
        /// How many services on each.
        services: usize,
    },
}

/// An insertion: its arguments, and where its results go.
///
/// Both belong to the caller again when the call returns. Where an event tells the end, they must not be
/// used after that event: it is made from what [`Self::end`] returns, which consumes this.
pub struct Insertion<'a> {
    addresses: Addresses<'a>,
    results: Results<'a>,
    _once: Linear,
}

/// Where the results of an insertion go.
///
/// # Invariants
///
/// - `inserted` is null or valid for writes of `count` addresses.
/// - If `flags` have `KFI_SYNC_ERR`, `context` is null or valid for writes of `count` `int`.
pub struct Results<'a> {
    count: usize,
    flags: InsertFlags,
    context: Context,
    inserted: *mut u64,
    _lifetime: PhantomData<&'a mut u64>,
    _once: Linear,
}

/// An insertion whose arguments are not used any more: the right to tell its end.
pub struct Inserted(Context, Linear);

impl Inserted {
    /// Returns the context.
    pub(super) fn context(&self) -> Context {
        self.0
    }
}

impl Insertion<'_> {
    /// Returns the addresses, and where what becomes of them is told.
    pub fn split(&mut self) -> (Addresses<'_>, Results<'_>) {
        let Results {
            count,
            flags,
            context,
            inserted,
            ..
        } = self.results;
        // INVARIANT: As of those of which this is a copy, which are borrowed.
        let results = Results {
            count,
            flags,
            context,
            inserted,
            _lifetime: PhantomData,
            _once: Linear,
        };
        (self.addresses, results)
    }

    /// Returns how many addresses there are.
    pub fn count(&self) -> usize {
        self.results.count
    }

    /// Returns the flags, yet to be checked.
    pub fn flags(&self) -> InsertFlags {
        self.results.flags
    }

    /// Returns the context.
    pub fn context(&self) -> Context {
        self.results.context
    }

    /// Returns whether the caller is told the addresses.
    pub fn wants_addresses(&self) -> bool {
        !self.results.inserted.is_null()
    }

    /// Returns whether the caller is told errors but has given no place for them.
    pub fn lacks_errors(&self) -> bool {
        self.flags().contains(InsertFlags::SYNC_ERR) && self.context().as_raw().is_null()
    }

    /// Ends the use of the arguments.
    pub fn end(self) -> Inserted {
        Inserted(self.results.context, Linear)
    }
}

impl Results<'_> {
    /// Tells what has become of an address.
    pub fn set(&mut self, index: usize, result: Result<FabricAddr>) {
        if index >= self.count {
            return;
        }
        if !self.inserted.is_null() {
            let addr = result.unwrap_or(FabricAddr::NOTAVAIL);
            // SAFETY: By the type invariants, as it is not null and the index is less than `count`.
            unsafe { self.inserted.add(index).write(addr.as_raw()) };
        }
        let errors = self.context.as_raw().cast::<c_int>();
        if self.flags.contains(InsertFlags::SYNC_ERR) && !errors.is_null() {
            let errno = result.map_or_else(|error| error.to_errno().wrapping_neg(), |_| 0);
            // SAFETY: As above.
            unsafe { errors.add(index).write(errno) };
        }
    }
}

/// Addresses as an insertion has told them.
#[derive(Clone, Copy)]
pub struct FabricAddrs<'a>(&'a [u64]);

impl FabricAddrs<'_> {
    /// Returns the addresses.
    pub fn iter(&self) -> impl Iterator<Item = FabricAddr> + Clone + '_ {
        self.0.iter().map(|addr| FabricAddr::from_raw(*addr))
    }
}

/// The operations of an address vector (`struct kfi_ops_av`).
///
/// All may sleep.
pub trait AddressVectorOps: Object<Class = AddressVectorClass> {
    /// Returns the kind.
    fn av_type(&self) -> AvType;

    /// Inserts addresses and returns how many were inserted, or 0 if events tell.
    ///
    /// No allocation made here enters a file system.
    fn insert(this: &Fid<Self>, insertion: Insertion<'_>) -> Result<usize>;

    /// Removes addresses: all or, if one is not in the vector, none and `EINVAL`.
    fn remove(&self, addresses: FabricAddrs<'_>) -> Result {
        let _ = addresses;
        Err(ENOSYS)
    }

    /// Calls `found` with the binary form of an address; `EINVAL` if it is not in the vector.
    fn lookup(&self, addr: FabricAddr, found: impl FnOnce(&[u8])) -> Result {
        let _ = (addr, found);
        Err(ENOSYS)
    }

    /// Returns the text form of a binary address; `None` if it is malformed, or addresses have none.
    fn text(&self, address: &[u8]) -> Option<impl fmt::Display> {
        let _ = address;
        None::<&str>
    }
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: AddressVectorOps> Tables<AddressVectorClass> for T {
    const TABLES: &'static bindings::kfi_ops_av = &bindings::kfi_ops_av {
        size: size_of::<bindings::kfi_ops_av>(),
        insert: Some(insert_callback::<T>),
        insertsvc: Some(insertsvc_callback::<T>),
        insertsym: Some(insertsym_callback::<T>),
        remove: Some(remove_callback::<T>),
        lookup: Some(lookup_callback::<T>),
        straddr: Some(straddr_callback::<T>),
    };
}

/// Inserts `count` addresses.
///
/// # Safety
///
/// `inserted` must be null or valid for writes of `count` addresses. `context` must be null or valid
/// for writes of as many `int` if `flags` have `KFI_SYNC_ERR`.
unsafe fn insert_with<T: AddressVectorOps>(
    this: &Fid<T>,
    addresses: Addresses<'_>,
    count: usize,
    inserted: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> Result<c_int> {
    // The returned values must fit.
    c_int::try_from(count).map_err(|_| EINVAL)?;
    let insertion = Insertion {
        addresses,
        // INVARIANT: By the safety requirements.
        results: Results {
            count,
            flags: InsertFlags::from_raw(flags),
            context: Context::from_raw(context),
            inserted,
            _lifetime: PhantomData,
            _once: Linear,
        },
        _once: Linear,
    };
    let _no_fs = NoFs::new();
    // Consumers count the addresses that they have got by it.
    let number = T::insert(this, insertion)?.min(count);
    c_int::try_from(number).map_err(|_| EOVERFLOW)
}

/// Inserts binary addresses.
///
/// # Safety
///
/// `av` must be an open vector of `T`, `addr` null or valid for reads of `count` addresses of its
/// domain's format; all else as for [`insert_with`].
unsafe extern "C" fn insert_callback<T: AddressVectorOps>(
    av: *mut bindings::kfid_av,
    addr: *const c_void,
    count: usize,
    kfi_addr: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(av) };
    from_result(|| {
        let len = count
            .checked_mul(this.data().address_format.len())
            .filter(|len| isize::try_from(*len).is_ok())
            .ok_or(EINVAL)?;
        let bytes = match (addr.is_null(), len) {
            (_, 0) => &[],
            (true, _) => return Err(EINVAL),
            // SAFETY: By the safety requirements, as it is not null.
            (false, len) => unsafe { slice::from_raw_parts(addr.cast::<u8>(), len) },
        };
        // SAFETY: By the safety requirements.
        unsafe {
            insert_with(
                this,
                Addresses::Binary(bytes),
                count,
                kfi_addr,
                flags,
                context,
            )
        }
    })
}

/// Inserts the address of a node and a service.
///
/// # Safety
///
/// `av` must be an open vector of `T`, `node` and `service` null or texts; all else as for
/// [`insert_with`] with 1 address.
unsafe extern "C" fn insertsvc_callback<T: AddressVectorOps>(
    av: *mut bindings::kfid_av,
    node: *const c_char,
    service: *const c_char,
    kfi_addr: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    unsafe { insertsym_callback::<T>(av, node, 1, service, 1, kfi_addr, flags, context) }
}

/// Inserts the addresses of nodes and services.
///
/// # Safety
///
/// `av` must be an open vector of `T`, `node` and `service` null or texts; all else as for
/// [`insert_with`] with as many addresses as there are nodes times services.
#[allow(
    clippy::too_many_arguments,
    reason = "the function is one of an ops table"
)]
unsafe extern "C" fn insertsym_callback<T: AddressVectorOps>(
    av: *mut bindings::kfid_av,
    node: *const c_char,
    nodes: usize,
    service: *const c_char,
    services: usize,
    kfi_addr: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(av) };
    from_result(|| {
        if node.is_null() {
            return Err(EINVAL);
        }
        let count = nodes.checked_mul(services).ok_or(EINVAL)?;
        let addresses = Addresses::Text {
            // SAFETY: By the safety requirements, as it is not null.
            node: unsafe { CStr::from_char_ptr(node) },
            nodes,
            service: if service.is_null() {
                c""
            } else {
                // SAFETY: As above.
                unsafe { CStr::from_char_ptr(service) }
            },
            services,
        };
        // SAFETY: By the safety requirements.
        unsafe { insert_with(this, addresses, count, kfi_addr, flags, context) }
    })
}

/// Removes addresses.
///
/// # Safety
///
/// `av` must be an open vector of `T`, `kfi_addr` null or valid for reads of `count` addresses.
unsafe extern "C" fn remove_callback<T: AddressVectorOps>(
    av: *mut bindings::kfid_av,
    kfi_addr: *mut u64,
    count: usize,
    flags: u64,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(av) };
    from_result(|| {
        if flags != 0 || (kfi_addr.is_null() && count != 0) {
            return Err(EINVAL);
        }
        let addresses = if count == 0 {
            &[]
        } else {
            // SAFETY: By the safety requirements, as it is not null.
            unsafe { slice::from_raw_parts(kfi_addr.cast_const(), count) }
        };
        // As insertions: consumers let peers go while they write back for memory.
        let _no_fs = NoFs::new();
        this.remove(FabricAddrs(addresses))?;
        Ok(0)
    })
}

/// Finds the binary form of an address.
///
/// # Safety
///
/// `av` must be an open vector of `T`, `addrlen` null or valid, `addr` null or valid for writes of
/// `*addrlen` bytes.
unsafe extern "C" fn lookup_callback<T: AddressVectorOps>(
    av: *mut bindings::kfid_av,
    kfi_addr: u64,
    addr: *mut c_void,
    addrlen: *mut usize,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(av) };
    from_result(|| {
        // SAFETY: By the safety requirements.
        let len = unsafe { addrlen.as_mut() }.ok_or(EINVAL)?;
        if addr.is_null() && *len != 0 {
            return Err(EINVAL);
        }
        this.lookup(FabricAddr::from_raw(kfi_addr), |address| {
            let count = address.len().min(*len);
            // SAFETY: There is room for `*len` bytes; nothing is written to null, as that is 0 then.
            unsafe { ptr::copy_nonoverlapping(address.as_ptr(), addr.cast(), count) };
            *len = address.len();
        })?;
        Ok(0)
    })
}

/// A text for C, cut where its buffer ends.
struct TextBuffer {
    /// The buffer.
    buf: *mut u8,
    /// Its bytes.
    room: usize,
    /// Bytes that the text needs so far.
    len: usize,
}

impl fmt::Write for TextBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is for the end.
        let left = self.room.saturating_sub(1).saturating_sub(self.len);
        let count = text.len().min(left);
        if count != 0 {
            // SAFETY: `straddr_callback` was given room for `room` bytes, and these are less.
            unsafe { ptr::copy_nonoverlapping(text.as_ptr(), self.buf.add(self.len), count) };
        }
        self.len = self.len.saturating_add(text.len());
        Ok(())
    }
}

/// Writes the text form of an address.
///
/// # Safety
///
/// `av` must be an open vector of `T`, `addr` null or a binary address of its domain's format, `len`
/// null or valid, `buf` null or valid for writes of `*len` bytes.
unsafe extern "C" fn straddr_callback<T: AddressVectorOps>(
    av: *mut bindings::kfid_av,
    addr: *const c_void,
    buf: *mut c_char,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(av) };
    // SAFETY: By the safety requirements.
    let Some(len) = (unsafe { len.as_mut() }) else {
        return ptr::null();
    };
    if addr.is_null() {
        return ptr::null();
    }
    // SAFETY: By the safety requirements, as it is not null.
    let address =
        unsafe { slice::from_raw_parts(addr.cast::<u8>(), this.data().address_format.len()) };
    let Some(text) = this.text(address) else {
        return ptr::null();
    };
    let mut buffer = TextBuffer {
        buf: buf.cast(),
        room: if buf.is_null() { 0 } else { *len },
        len: 0,
    };
    if fmt::Write::write_fmt(&mut buffer, fmt!("{}", text)).is_err() {
        return ptr::null();
    }
    if let Some(last) = buffer.room.checked_sub(1) {
        // SAFETY: There is room for `room` bytes.
        unsafe { buf.add(buffer.len.min(last)).write(0) };
    }
    *len = buffer.len.saturating_add(1);
    buf
}
