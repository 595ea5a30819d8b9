// SPDX-License-Identifier: GPL-2.0

//! Descriptions of what there is (`struct kfi_info`): chains of entries.
//!
//! All that an entry owns was allocated with kmalloc: its attributes, names, addresses and keys.
//! kfi_freeinfo frees them.

use core::{
    marker::PhantomData,
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
#[cfg(any(kfi_core, kfi_provider))]
pub const KFI_VERSION: u32 = (bindings::KFI_MAJOR_VERSION << 16) | bindings::KFI_MINOR_VERSION;

/// An owned chain of at least one entry.
///
/// # Invariants
///
/// `first` is a chain that ends with null and is owned by this, with all that it owns.
pub struct Info {
    first: NonNull<bindings::kfi_info>,
}

// SAFETY: The chain is plain memory.
unsafe impl Send for Info {}
// SAFETY: Shared access only reads.
unsafe impl Sync for Info {}

impl Info {
    /// Allocates an entry with all attributes, everything in it 0.
    pub fn new() -> Result<Self> {
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
    #[cfg(any(kfi_core, kfi_consumer))]
    pub unsafe fn from_raw(first: *mut bindings::kfi_info) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            first: NonNull::new(first)?,
        })
    }

    /// Gives the chain to C.
    #[cfg(any(kfi_core, kfi_provider))]
    pub fn into_raw(self) -> *mut bindings::kfi_info {
        core::mem::ManuallyDrop::new(self).first.as_ptr()
    }

    /// Appends a chain.
    #[cfg(any(kfi_core, kfi_provider))]
    pub fn append(&mut self, other: Self) {
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
    #[cfg(any(kfi_core, kfi_consumer))]
    pub fn iter(&self) -> impl Iterator<Item = InfoRef<'_>> {
        // SAFETY: The chain is valid by the type invariants while `self` is borrowed.
        let mut next = unsafe { InfoRef::from_raw(self.first.as_ptr()) };
        core::iter::from_fn(move || {
            let entry = next?;
            next = entry.next();
            Some(entry)
        })
    }

    /// Returns the first entry.
    #[cfg(any(kfi_core, kfi_consumer))]
    pub fn first(&self) -> InfoRef<'_> {
        InfoRef {
            entry: self.first,
            _lifetime: PhantomData,
        }
    }

    /// Returns the first entry for writing.
    pub fn first_mut(&mut self) -> InfoMut<'_> {
        InfoMut {
            // SAFETY: Valid by the type invariants; `self` is borrowed exclusively.
            entry: unsafe { self.first.as_mut() },
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: The chain is owned by the type invariants.
        unsafe { bindings::kfi_freeinfo(self.first.as_ptr()) };
    }
}

/// One entry of a chain.
///
/// # Invariants
///
/// The entry and all it refers to are valid and unchanged during `'a`.
#[derive(Clone, Copy)]
pub struct InfoRef<'a> {
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

/// Returns whether a name is the wanted one, if one is wanted.
#[cfg(kfi_provider)]
pub fn is_named(wanted: Option<&CStr>, name: &CStr) -> bool {
    wanted.is_none_or(|wanted| wanted.is_empty() || wanted == name)
}

impl<'a> InfoRef<'a> {
    /// Takes an entry from C, `None` for null.
    ///
    /// # Safety
    ///
    /// `entry` must be null, or valid and unchanged, with all it refers to, during `'a`.
    pub unsafe fn from_raw(entry: *mut bindings::kfi_info) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            entry: NonNull::new(entry)?,
            _lifetime: PhantomData,
        })
    }

    /// Returns the entry for C.
    #[cfg(kfi_consumer)]
    pub fn as_raw(self) -> *mut bindings::kfi_info {
        self.entry.as_ptr()
    }

    /// Returns the numbers in the entry.
    pub fn get(self) -> &'a bindings::kfi_info {
        // SAFETY: By the type invariants.
        unsafe { self.entry.as_ref() }
    }

    /// Returns the next entry.
    #[cfg(any(kfi_core, kfi_consumer))]
    pub fn next(self) -> Option<Self> {
        // SAFETY: By the type invariants.
        unsafe { Self::from_raw(self.get().next) }
    }

    /// Returns the attributes of transmit contexts.
    pub fn tx_attr(self) -> Option<&'a bindings::kfi_tx_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().tx_attr.as_ref() }
    }

    /// Returns the attributes of receive contexts.
    pub fn rx_attr(self) -> Option<&'a bindings::kfi_rx_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().rx_attr.as_ref() }
    }

    /// Returns the attributes of endpoints.
    pub fn ep_attr(self) -> Option<&'a bindings::kfi_ep_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().ep_attr.as_ref() }
    }

    /// Returns the attributes of the domain.
    pub fn domain_attr(self) -> Option<&'a bindings::kfi_domain_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().domain_attr.as_ref() }
    }

    /// Returns the attributes of the fabric.
    pub fn fabric_attr(self) -> Option<&'a bindings::kfi_fabric_attr> {
        // SAFETY: By the type invariants.
        unsafe { self.get().fabric_attr.as_ref() }
    }

    /// Returns the source address.
    pub fn src_addr(self) -> Option<&'a [u8]> {
        // SAFETY: By the type invariants.
        unsafe { bytes(self.get().src_addr.cast(), self.get().src_addrlen) }
    }

    /// Returns the destination address.
    pub fn dest_addr(self) -> Option<&'a [u8]> {
        // SAFETY: By the type invariants.
        unsafe { bytes(self.get().dest_addr.cast(), self.get().dest_addrlen) }
    }

    /// Returns the authorization key of the endpoint.
    pub fn ep_auth_key(self) -> Option<&'a [u8]> {
        let attr = self.ep_attr()?;
        // SAFETY: By the type invariants.
        unsafe { bytes(attr.auth_key, attr.auth_key_size) }
    }

    /// Returns the authorization key of the domain.
    pub fn domain_auth_key(self) -> Option<&'a [u8]> {
        let attr = self.domain_attr()?;
        // SAFETY: By the type invariants.
        unsafe { bytes(attr.auth_key, attr.auth_key_size) }
    }

    /// Returns the name of the domain.
    pub fn domain_name(self) -> Option<&'a CStr> {
        // SAFETY: By the type invariants.
        unsafe { text(self.domain_attr()?.name) }
    }

    /// Returns the name of the fabric.
    pub fn fabric_name(self) -> Option<&'a CStr> {
        // SAFETY: By the type invariants.
        unsafe { text(self.fabric_attr()?.name) }
    }

    /// Returns the name of the provider.
    pub fn prov_name(self) -> Option<&'a CStr> {
        // SAFETY: By the type invariants.
        unsafe { text(self.fabric_attr()?.prov_name) }
    }
}

/// One entry of an owned chain, for writing.
pub struct InfoMut<'a> {
    pub(super) entry: &'a mut bindings::kfi_info,
}

/// An address has so much memory at least, for readers that believe its format rather than its
/// length: as much as an address of any family (`struct sockaddr_storage`).
pub const ADDRESS_ROOM: usize = 128;

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
        pub struct $name<'a>(pub(super) &'a mut bindings::$raw);

        #[allow(dead_code, reason = "all numbers can be set")]
        impl $name<'_> {$(
            #[doc = concat!("Sets `", stringify!($field), "`.")]
            pub fn $field(self, value: $ty) -> Self {
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
    pub fn auth_key(self, key: &[u8]) -> Result<Self> {
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
    pub fn name(self, name: &CStr) -> Result<Self> {
        // SAFETY: The entry owns its names.
        unsafe { replace_text(&mut self.0.name, name) }?;
        Ok(self)
    }

    /// Sets the authorization key.
    pub fn auth_key(self, key: &[u8]) -> Result<Self> {
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
    pub fn name(self, name: &CStr) -> Result<Self> {
        // SAFETY: The entry owns its names.
        unsafe { replace_text(&mut self.0.name, name) }?;
        Ok(self)
    }

    /// Sets the name of the provider.
    pub fn prov_name(self, name: &CStr) -> Result<Self> {
        // SAFETY: The entry owns its names.
        unsafe { replace_text(&mut self.0.prov_name, name) }?;
        Ok(self)
    }
}

/// Defines functions that return attributes for writing.
macro_rules! attributes {
    ($($(#[$attr:meta])* $name:ident: $ty:ty = $wrap:expr;)*) => {$(
        $(#[$attr])*
        pub fn $name(&mut self) -> Result<$ty> {
            // SAFETY: The entry owns its attributes and is borrowed exclusively.
            unsafe { self.entry.$name.as_mut() }.map($wrap).ok_or(EINVAL)
        }
    )*}
}

impl InfoMut<'_> {
    /// Sets the capabilities.
    pub fn caps(&mut self, caps: Caps) -> &mut Self {
        self.entry.caps = caps.as_raw();
        self
    }

    /// Sets the mode bits.
    #[cfg(any(kfi_core, kfi_consumer))]
    pub fn mode(&mut self, mode: u64) -> &mut Self {
        self.entry.mode = mode;
        self
    }

    /// Sets the format of addresses. One that a provider in C has answered may have less memory than
    /// another format takes: set it anew as well.
    pub fn addr_format(&mut self, addr_format: u32) -> &mut Self {
        self.entry.addr_format = addr_format;
        self
    }

    /// Sets the source address.
    pub fn src_addr(&mut self, addr: &[u8]) -> Result<&mut Self> {
        let mut raw = self.entry.src_addr.cast::<u8>();
        // SAFETY: The entry owns its addresses.
        unsafe { replace(&mut raw, addr, ADDRESS_ROOM) }?;
        self.entry.src_addr = raw.cast();
        self.entry.src_addrlen = addr.len();
        Ok(self)
    }

    /// Sets the destination address.
    pub fn dest_addr(&mut self, addr: &[u8]) -> Result<&mut Self> {
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
