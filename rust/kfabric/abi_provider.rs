// SPDX-License-Identifier: GPL-2.0

//! Providers as they come from C.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::{
    abi_fabric,
    kfi::{
        bindings,
        errno::to_result,
        fid::Context,
        info::Info,
        modules::{
            ModulePin,
            Modules, //
        }, //
    }, //
};

/// A reference to a registered provider; deregistration waits until it is dropped.
///
/// # Invariants
///
/// The provider is initialised, and this owns one of the references that `ref_cnt` counts.
pub(crate) struct Provider(NonNull<bindings::kfi_provider>);

// SAFETY: Providers may be called from any thread.
unsafe impl Send for Provider {}
// SAFETY: As above; what the core writes of a provider is atomic or written before it is shared.
unsafe impl Sync for Provider {}

/// Identifies a provider, whether it exists any more or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProviderId(usize);

impl ProviderId {
    /// Returns the identity of the provider at an address.
    pub(crate) fn new(provider: *const bindings::kfi_provider) -> Self {
        Self(provider.addr())
    }
}

/// What kfi_getinfo passes on to providers, as it came from C.
///
/// # Invariants
///
/// `node` and `service` are null or texts, `hints` is null or valid.
#[derive(Clone, Copy)]
pub(crate) struct RawQuery {
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *mut bindings::kfi_info,
}

impl RawQuery {
    /// # Safety
    ///
    /// `node` and `service` must be null or texts, `hints` null or valid, as long as the query is
    /// used.
    pub(crate) unsafe fn new(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *mut bindings::kfi_info,
    ) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            version,
            node,
            service,
            flags,
            hints,
        }
    }
}

impl Provider {
    /// Prepares a provider for registration.
    ///
    /// # Safety
    ///
    /// `provider` must be null, or a provider whose name is null or a text, and that stays until
    /// [`Self::retire`] of the last reference.
    pub(crate) unsafe fn prepare(provider: *mut bindings::kfi_provider) -> Result<Self> {
        let provider = NonNull::new(provider).ok_or(EINVAL)?;
        // SAFETY: By the safety requirements.
        let fields = unsafe { &mut *provider.as_ptr() };
        if fields.name.is_null() || fields.kgetinfo.is_none() || fields.kfabric.is_none() {
            return Err(EINVAL);
        }
        // SAFETY: The name is a text by the safety requirements.
        if unsafe { CStr::from_char_ptr(fields.name) }.is_empty() {
            return Err(EINVAL);
        }
        // SAFETY: Nobody else uses the provider yet.
        unsafe { bindings::init_completion(&mut fields.comp) };
        // INVARIANT: This is the one reference.
        fields.ref_cnt = bindings::atomic_t { counter: 1 };
        Ok(Self(provider))
    }

    fn get(&self) -> &bindings::kfi_provider {
        // SAFETY: Initialised by the type invariants.
        unsafe { self.0.as_ref() }
    }

    /// Returns who it is.
    pub(crate) fn id(&self) -> ProviderId {
        ProviderId::new(self.0.as_ptr())
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &CStr {
        // SAFETY: `prepare` has checked that there is one.
        unsafe { CStr::from_char_ptr(self.get().name) }
    }

    /// Returns the version of the API that it was written for.
    pub(crate) fn api_version(&self) -> u32 {
        self.get().kfi_version
    }

    /// Keeps the module of the provider loaded.
    ///
    /// Fails if it is about to be unloaded.
    fn pin(&self, modules: &Modules) -> Result<Option<ModulePin>> {
        let function = self
            .get()
            .kfabric
            .map_or(ptr::null(), |function| function as *const ());
        modules.pin(function)
    }

    /// Asks for all that matches, `None` if nothing does.
    pub(crate) fn getinfo(&self, modules: &Modules, query: RawQuery) -> Result<Option<Info>> {
        let _pin = self.pin(modules)?;
        let kgetinfo = self.get().kgetinfo.ok_or(ENOSYS)?;
        let mut info = ptr::null_mut();
        // SAFETY: The arguments are valid by the invariants of the query, and the module stays.
        to_result(unsafe {
            kgetinfo(
                query.version,
                query.node,
                query.service,
                query.flags,
                query.hints,
                &mut info,
            )
        })?;
        // SAFETY: On success the provider gives a chain or nothing.
        Ok(unsafe { Info::from_raw(info) })
    }

    /// Opens a fabric, which keeps the module loaded until it is closed.
    ///
    /// # Safety
    ///
    /// `attr` must be valid.
    pub(crate) unsafe fn fabric(
        &self,
        modules: &Modules,
        attr: *mut bindings::kfi_fabric_attr,
        context: Context,
    ) -> Result<NonNull<bindings::kfid_fabric>> {
        let pin = self.pin(modules)?;
        let kfabric = self.get().kfabric.ok_or(ENOSYS)?;
        let watch = abi_fabric::Watch::new(pin)?;
        let mut fabric = ptr::null_mut();
        // SAFETY: `attr` is valid by the safety requirements, and the module stays.
        to_result(unsafe { kfabric(attr, &mut fabric, context.as_raw()) })?;
        let fabric = NonNull::new(fabric).ok_or(EIO)?;
        // SAFETY: The fabric has just been opened and nobody else knows it.
        unsafe { watch.attach(fabric) };
        Ok(fabric)
    }

    /// Waits until all other references are gone, and lets the provider clean up.
    ///
    /// The provider is the caller's again.
    pub(crate) fn retire(self) {
        let provider = self.0;
        // SAFETY: The provider stays by the contract of `prepare`.
        let comp = unsafe { &raw mut (*provider.as_ptr()).comp };
        // The last reference completes.
        drop(self);
        // SAFETY: `prepare` has initialised the completion.
        unsafe { bindings::wait_for_completion(comp) };
        // SAFETY: Nobody else uses the provider any more; it is the caller's.
        if let Some(cleanup) = unsafe { provider.as_ref() }.cleanup {
            // SAFETY: The provider's module runs the deregistration.
            unsafe { cleanup() };
        }
    }
}

impl Clone for Provider {
    fn clone(&self) -> Self {
        // SAFETY: There is a reference by the type invariants, so the count is not 0.
        unsafe { bindings::kfi_ref_provider(self.0.as_ptr()) };
        // INVARIANT: The new one has just been counted.
        Self(self.0)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // SAFETY: The reference is owned by the type invariants.
        unsafe { bindings::kfi_deref_provider(self.0.as_ptr()) };
    }
}
