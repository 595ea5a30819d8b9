// SPDX-License-Identifier: GPL-2.0

//! Descriptions of what there is (`struct kfi_info`): chains of entries.
//!
//! All that an entry owns was allocated with kmalloc: its attributes, names, addresses and keys.
//! kfi_freeinfo frees them.

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    prelude::*,
    str::CStr, //
};

use super::{
    bindings,
    flags::Caps, //
};

/// The version of the API that this code implements.
pub(crate) const KFI_VERSION: u32 =
    (bindings::KFI_MAJOR_VERSION << 16) | bindings::KFI_MINOR_VERSION;

/// An owned chain of at least one entry.
///
/// # Invariants
///
/// `first` is a chain that ends with null and is owned by this, with all that it owns.
pub(crate) struct Info {
    first: NonNull<bindings::kfi_info>,
}

// SAFETY: The chain is plain memory.
unsafe impl Send for Info {}
// SAFETY: Shared access only reads.
unsafe impl Sync for Info {}

impl Info {
    /// Allocates an entry with all attributes, everything in it 0.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: May be called from any context that may sleep.
        let first = unsafe { bindings::kfi_allocinfo() };
        Ok(Self {
            // INVARIANT: kfi_allocinfo returns an entry that the caller owns.
            first: NonNull::new(first).ok_or(ENOMEM)?,
        })
    }

    /// Takes a chain from C.
    ///
    /// # Safety
    ///
    /// `first` must be null or a chain that the caller owns.
    pub(crate) unsafe fn from_raw(first: *mut bindings::kfi_info) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            first: NonNull::new(first)?,
        })
    }

    /// Gives the chain to C.
    pub(crate) fn into_raw(self) -> *mut bindings::kfi_info {
        ManuallyDrop::new(self).first.as_ptr()
    }

    /// Appends a chain.
    pub(crate) fn append(&mut self, other: Self) {
        let mut last = self.first;
        // SAFETY: The chain is valid by the type invariants.
        while let Some(next) = NonNull::new(unsafe { last.as_ref() }.next) {
            last = next;
        }
        // INVARIANT: The chain ends where `other` ended, and owns what `other` owned.
        // SAFETY: As above; `self` is borrowed exclusively.
        unsafe { last.as_mut() }.next = other.into_raw();
    }

    /// Returns the entries, the first one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = InfoRef<'_>> {
        // SAFETY: The chain is valid by the type invariants while `self` is borrowed.
        let mut next = unsafe { InfoRef::from_raw(self.first.as_ptr()) };
        core::iter::from_fn(move || {
            let entry = next?;
            next = entry.next();
            Some(entry)
        })
    }

    /// Returns the first entry.
    pub(crate) fn first(&self) -> InfoRef<'_> {
        InfoRef {
            entry: self.first,
            _lifetime: PhantomData,
        }
    }

    /// Returns the first entry for writing.
    pub(crate) fn first_mut(&mut self) -> InfoMut<'_> {
        InfoMut {
            // SAFETY: Valid by the type invariants; `self` is borrowed exclusively.
            entry: unsafe { self.first.as_mut() },
        }
    }

    /// Takes the open objects out that the entries name, and connection requests: an answer is kept
    /// for longer than these are open.
    pub(crate) fn forget_objects(&mut self) {
        let mut next = self.first.as_ptr();
        // SAFETY: The chain and its attributes are owned by the type invariants, and borrowed
        // exclusively.
        unsafe {
            while let Some(entry) = next.as_mut() {
                entry.handle = ptr::null_mut();
                if let Some(attr) = entry.fabric_attr.as_mut() {
                    attr.fabric = ptr::null_mut();
                }
                if let Some(attr) = entry.domain_attr.as_mut() {
                    attr.domain = ptr::null_mut();
                }
                next = entry.next;
            }
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: The chain is owned by the type invariants.
        unsafe { bindings::kfi_freeinfo(self.first.as_ptr()) };
    }
}

/// The offer that an answer must make.
///
/// # Invariants
///
/// The open objects that the entry names are open during `'a`.
pub(crate) struct Hints<'a> {
    info: Info,
    _objects: PhantomData<&'a ()>,
}

impl<'a> Hints<'a> {
    /// Hints that name no objects.
    pub(crate) fn new(mut info: Info) -> Self {
        let entry = info.first_mut();
        // SAFETY: The entry owns its attributes and is borrowed exclusively.
        unsafe {
            if let Some(attr) = entry.entry.fabric_attr.as_mut() {
                attr.fabric = ptr::null_mut();
            }
            if let Some(attr) = entry.entry.domain_attr.as_mut() {
                attr.domain = ptr::null_mut();
            }
        }
        // INVARIANT: No objects are named.
        Self {
            info,
            _objects: PhantomData,
        }
    }

    /// Names the provider of an open object, so that no other one is asked; `ENODATA` if another one
    /// is named.
    fn provider(&mut self, name: &CStr) -> Result {
        match self.info.first().prov_name() {
            Some(other) if !other.is_empty() && other != name => return Err(ENODATA),
            _ => {}
        }
        let _ = self.info.first_mut().fabric_attr()?.prov_name(name)?;
        Ok(())
    }

    /// Names an open fabric; `ENODATA` if the hints name another provider than `provider`.
    ///
    /// # Safety
    ///
    /// The fabric must be open during `'a`.
    pub(super) unsafe fn open_fabric(
        mut self,
        fabric: *mut bindings::kfid_fabric,
        provider: &CStr,
    ) -> Result<Self> {
        self.provider(provider)?;
        // INVARIANT: By the safety requirements.
        self.info.first_mut().fabric_attr()?.0.fabric = fabric;
        Ok(self)
    }

    /// Names an open domain; `ENODATA` if the hints name another provider than `provider`.
    ///
    /// # Safety
    ///
    /// The domain must be open during `'a`.
    pub(super) unsafe fn open_domain(
        mut self,
        domain: *mut bindings::kfid_domain,
        provider: &CStr,
    ) -> Result<Self> {
        self.provider(provider)?;
        // INVARIANT: By the safety requirements.
        self.info.first_mut().domain_attr()?.0.domain = domain;
        Ok(self)
    }

    /// Returns the entry.
    pub(crate) fn first(&self) -> InfoRef<'_> {
        self.info.first()
    }
}

/// One entry of a chain.
///
/// # Invariants
///
/// The entry and all it refers to are valid and unchanged during `'a`.
#[derive(Clone, Copy)]
pub(crate) struct InfoRef<'a> {
    entry: NonNull<bindings::kfi_info>,
    _lifetime: PhantomData<&'a bindings::kfi_info>,
}

/// Returns a text, `None` for null.
///
/// # Safety
///
/// `text` must be null or a text that stays during `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: By the safety requirements.
    (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) })
}

/// Returns bytes, `None` for null.
///
/// # Safety
///
/// `bytes` must be null or `len` bytes that stay during `'a`.
unsafe fn bytes<'a>(bytes: *const u8, len: usize) -> Option<&'a [u8]> {
    // SAFETY: By the safety requirements.
    (!bytes.is_null()).then(|| unsafe { slice::from_raw_parts(bytes, len) })
}

impl<'a> InfoRef<'a> {
    /// Takes an entry from C, `None` for null.
    ///
    /// # Safety
    ///
    /// `entry` must be null, or valid and unchanged, with all it refers to, during `'a`.
    pub(crate) unsafe fn from_raw(entry: *mut bindings::kfi_info) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            entry: NonNull::new(entry)?,
            _lifetime: PhantomData,
        })
    }

    /// Returns the entry for C.
    pub(crate) fn as_raw(self) -> *mut bindings::kfi_info {
        self.entry.as_ptr()
    }

    /// Returns the numbers in the entry.
    pub(crate) fn get(self) -> &'a bindings::kfi_info {
        // SAFETY: By the type invariants.
        unsafe { self.entry.as_ref() }
    }

    /// Returns the next entry.
    pub(crate) fn next(self) -> Option<Self> {
        // SAFETY: By the type invariants.
        unsafe { Self::from_raw(self.get().next) }
    }

    /// Returns whether there is a connection request or passive endpoint.
    pub(crate) fn has_handle(self) -> bool {
        !self.get().handle.is_null()
    }

    /// Returns whether threads may use the objects of the domain at the same time: the provider has
    /// said so, or has not said anything.
    pub(crate) fn is_thread_safe(self) -> bool {
        let safe = [bindings::KFI_THREAD_SAFE, bindings::KFI_THREAD_UNSPEC];
        self.domain_attr()
            .is_none_or(|attr| safe.contains(&attr.threading))
    }

    /// Returns the attributes of transmit contexts.
    pub(crate) fn tx_attr(self) -> Option<&'a bindings::kfi_tx_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().tx_attr.as_ref() }
    }

    /// Returns the attributes of receive contexts.
    pub(crate) fn rx_attr(self) -> Option<&'a bindings::kfi_rx_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().rx_attr.as_ref() }
    }

    /// Returns the attributes of endpoints.
    pub(crate) fn ep_attr(self) -> Option<&'a bindings::kfi_ep_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().ep_attr.as_ref() }
    }

    /// Returns the attributes of the domain.
    pub(crate) fn domain_attr(self) -> Option<&'a bindings::kfi_domain_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().domain_attr.as_ref() }
    }

    /// Returns the attributes of the fabric.
    pub(crate) fn fabric_attr(self) -> Option<&'a bindings::kfi_fabric_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().fabric_attr.as_ref() }
    }

    /// Returns the source address.
    pub(crate) fn src_addr(self) -> Option<&'a [u8]> {
        // SAFETY: By the type invariants.
        unsafe { bytes(self.get().src_addr.cast(), self.get().src_addrlen) }
    }

    /// Returns the destination address.
    pub(crate) fn dest_addr(self) -> Option<&'a [u8]> {
        // SAFETY: By the type invariants.
        unsafe { bytes(self.get().dest_addr.cast(), self.get().dest_addrlen) }
    }

    /// Returns the authorization key of the endpoint.
    pub(crate) fn ep_auth_key(self) -> Option<&'a [u8]> {
        let attr = self.ep_attr()?;
        // SAFETY: By the type invariants.
        unsafe { bytes(attr.auth_key, attr.auth_key_size) }
    }

    /// Returns the authorization key of the domain.
    pub(crate) fn domain_auth_key(self) -> Option<&'a [u8]> {
        let attr = self.domain_attr()?;
        // SAFETY: By the type invariants.
        unsafe { bytes(attr.auth_key, attr.auth_key_size) }
    }

    /// Returns the name of the domain.
    pub(crate) fn domain_name(self) -> Option<&'a CStr> {
        // SAFETY: By the type invariants.
        unsafe { text(self.domain_attr()?.name) }
    }

    /// Returns the name of the fabric.
    pub(crate) fn fabric_name(self) -> Option<&'a CStr> {
        // SAFETY: By the type invariants.
        unsafe { text(self.fabric_attr()?.name) }
    }

    /// Returns the name of the provider.
    pub(crate) fn prov_name(self) -> Option<&'a CStr> {
        // SAFETY: By the type invariants.
        unsafe { text(self.fabric_attr()?.prov_name) }
    }
}

/// One entry of an owned chain, for writing.
pub(crate) struct InfoMut<'a> {
    entry: &'a mut bindings::kfi_info,
}

/// An address has so much memory at least, for readers that believe its format rather than its
/// length: as much as an address of any family (`struct sockaddr_storage`).
pub(crate) const ADDRESS_ROOM: usize = 128;

/// Replaces memory that an entry owns by a copy of `new`, with zeroes behind it up to `room`; an empty
/// copy is null.
///
/// # Safety
///
/// `*slot` must be null or an owned allocation of kmalloc.
unsafe fn replace(slot: &mut *mut u8, new: &[u8], room: usize) -> Result {
    let copy = if new.is_empty() {
        ptr::null_mut()
    } else {
        let mut copy = KVec::with_capacity(new.len().max(room), GFP_KERNEL)?;
        copy.extend_from_slice(new, GFP_KERNEL)?;
        copy.resize(new.len().max(room), 0, GFP_KERNEL)?;
        copy.into_raw_parts().0
    };
    // SAFETY: By the safety requirements.
    unsafe { bindings::kfree(core::mem::replace(slot, copy).cast()) };
    Ok(())
}

/// As [`replace`], for texts.
///
/// # Safety
///
/// As for [`replace`].
unsafe fn replace_text(slot: &mut *mut c_char, new: &CStr) -> Result {
    let mut raw = slot.cast::<u8>();
    // SAFETY: By the safety requirements.
    unsafe { replace(&mut raw, new.to_bytes_with_nul(), 0) }?;
    *slot = raw.cast();
    Ok(())
}

/// Defines a type that sets numbers in attributes.
macro_rules! numbers {
    ($(#[$attr:meta])* $name:ident($raw:ident) { $($field:ident: $ty:ty,)* }) => {
        $(#[$attr])*
        pub(crate) struct $name<'a>(pub(super) &'a mut bindings::$raw);

        impl $name<'_> {$(
            #[doc = concat!("Sets `", stringify!($field), "`.")]
            pub(crate) fn $field(self, value: $ty) -> Self {
                self.0.$field = value;
                self
            }
        )*}
    };
}

numbers! {
    /// Attributes of endpoints, for writing.
    EpAttrMut(kfi_ep_attr) {
        type_: bindings::kfi_ep_type,
        protocol: u32,
        protocol_version: u32,
        max_msg_size: usize,
        msg_prefix_size: usize,
        max_order_raw_size: usize,
        max_order_war_size: usize,
        max_order_waw_size: usize,
        mem_tag_format: u64,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
    }
}

impl EpAttrMut<'_> {
    /// Sets the authorization key.
    pub(crate) fn auth_key(self, key: &[u8]) -> Result<Self> {
        // SAFETY: The entry owns its key.
        unsafe { replace(&mut self.0.auth_key, key, 0) }?;
        self.0.auth_key_size = key.len();
        Ok(self)
    }
}

numbers! {
    /// Attributes of the domain, for writing.
    DomainAttrMut(kfi_domain_attr) {
        threading: bindings::kfi_threading,
        control_progress: bindings::kfi_progress,
        data_progress: bindings::kfi_progress,
        resource_mgmt: bindings::kfi_resource_mgmt,
        av_type: bindings::kfi_av_type,
        mr_mode: c_int,
        mr_key_size: usize,
        cq_data_size: usize,
        cq_cnt: usize,
        ep_cnt: usize,
        tx_ctx_cnt: usize,
        rx_ctx_cnt: usize,
        max_ep_tx_ctx: usize,
        max_ep_rx_ctx: usize,
        max_ep_stx_ctx: usize,
        max_ep_srx_ctx: usize,
        cntr_cnt: usize,
        mr_iov_limit: usize,
        caps: u64,
        mode: u64,
        max_err_data: usize,
        mr_cnt: usize,
        tclass: u32,
    }
}

impl DomainAttrMut<'_> {
    /// Sets the name.
    pub(crate) fn name(self, name: &CStr) -> Result<Self> {
        // SAFETY: The entry owns its names.
        unsafe { replace_text(&mut self.0.name, name) }?;
        Ok(self)
    }

    /// Sets the authorization key.
    pub(crate) fn auth_key(self, key: &[u8]) -> Result<Self> {
        // SAFETY: The entry owns its key.
        unsafe { replace(&mut self.0.auth_key, key, 0) }?;
        self.0.auth_key_size = key.len();
        Ok(self)
    }
}

numbers! {
    /// Attributes of the fabric, for writing.
    FabricAttrMut(kfi_fabric_attr) {
        prov_version: u32,
        api_version: u32,
    }
}

impl FabricAttrMut<'_> {
    /// Sets the name.
    pub(crate) fn name(self, name: &CStr) -> Result<Self> {
        // SAFETY: The entry owns its names.
        unsafe { replace_text(&mut self.0.name, name) }?;
        Ok(self)
    }

    /// Sets the name of the provider.
    pub(crate) fn prov_name(self, name: &CStr) -> Result<Self> {
        // SAFETY: The entry owns its names.
        unsafe { replace_text(&mut self.0.prov_name, name) }?;
        Ok(self)
    }
}

/// Defines functions that return attributes for writing.
macro_rules! attributes {
    ($($(#[$attr:meta])* $name:ident: $ty:ty = $wrap:expr;)*) => {$(
        $(#[$attr])*
        pub(crate) fn $name(&mut self) -> Result<$ty> {
            // SAFETY: The entry owns its attributes and is borrowed exclusively.
            unsafe { self.entry.$name.as_mut() }.map($wrap).ok_or(EINVAL)
        }
    )*}
}

impl InfoMut<'_> {
    /// Sets the capabilities.
    pub(crate) fn caps(&mut self, caps: Caps) -> &mut Self {
        self.entry.caps = caps.as_raw();
        self
    }

    /// Sets the mode bits.
    pub(crate) fn mode(&mut self, mode: u64) -> &mut Self {
        self.entry.mode = mode;
        self
    }

    /// Sets the format of addresses.
    pub(crate) fn addr_format(&mut self, addr_format: u32) -> &mut Self {
        self.entry.addr_format = addr_format;
        self
    }

    /// Sets the source address.
    pub(crate) fn src_addr(&mut self, addr: &[u8]) -> Result<&mut Self> {
        let mut raw = self.entry.src_addr.cast::<u8>();
        // SAFETY: The entry owns its addresses.
        unsafe { replace(&mut raw, addr, ADDRESS_ROOM) }?;
        self.entry.src_addr = raw.cast();
        self.entry.src_addrlen = addr.len();
        Ok(self)
    }

    /// Sets the destination address.
    pub(crate) fn dest_addr(&mut self, addr: &[u8]) -> Result<&mut Self> {
        let mut raw = self.entry.dest_addr.cast::<u8>();
        // SAFETY: The entry owns its addresses.
        unsafe { replace(&mut raw, addr, ADDRESS_ROOM) }?;
        self.entry.dest_addr = raw.cast();
        self.entry.dest_addrlen = addr.len();
        Ok(self)
    }

    attributes! {
        /// Returns the attributes of transmit contexts.
        tx_attr: &mut bindings::kfi_tx_attr = |attr| attr;
        /// Returns the attributes of receive contexts.
        rx_attr: &mut bindings::kfi_rx_attr = |attr| attr;
        /// Returns the attributes of endpoints.
        ep_attr: EpAttrMut<'_> = EpAttrMut;
        /// Returns the attributes of the domain.
        domain_attr: DomainAttrMut<'_> = DomainAttrMut;
        /// Returns the attributes of the fabric.
        fabric_attr: FabricAttrMut<'_> = FabricAttrMut;
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_info)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_is_for_several_threads() -> Result {
        for threading in 0..=bindings::KFI_THREAD_ENDPOINT + 1 {
            let mut info = Info::new()?;
            info.first_mut().domain_attr()?.threading(threading);
            let safe = matches!(
                threading,
                bindings::KFI_THREAD_SAFE | bindings::KFI_THREAD_UNSPEC
            );
            assert_eq!(info.first().is_thread_safe(), safe);
        }
        Ok(())
    }
}
