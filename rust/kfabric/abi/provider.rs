// SPDX-License-Identifier: GPL-2.0

//! Providers as they come from C.
//!
//! A provider that wants to register is a [`Candidate`]. Once it is in the
//! [`Table`](crate::abi::table::Table) there are references to it, each a [`Provider`]. To call it,
//! it is [`Pinned`] besides, together with its module.

use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::{
    abi::{
        answer,
        fabric::Watch, //
    },
    fabrics::Listed,
    kfi::{
        bindings,
        context::Context,
        info::Info,
        linux::modules::{
            ModuleId,
            ModulePin,
            Modules, //
        }, //
    }, //
};

/// The type of [`bindings::kfi_provider::kgetinfo`].
type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *mut bindings::kfi_info,
    *mut *mut bindings::kfi_info,
) -> c_int;

/// The type of [`bindings::kfi_provider::kfabric`].
type OpenFabric = unsafe extern "C" fn(
    *mut bindings::kfi_fabric_attr,
    *mut *mut bindings::kfid_fabric,
    *mut c_void,
) -> c_int;

/// Identifies a provider, whether it exists any more or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProviderId(usize);

impl ProviderId {
    /// Returns the identity of the provider at an address.
    pub(crate) fn new(provider: *const bindings::kfi_provider) -> Self {
        Self(provider.addr())
    }
}

/// A provider's description of itself.
///
/// # Invariants
///
/// `provider` exists, has a name that is a text, and does not change, apart from `comp` and
/// `ref_cnt`. `kgetinfo` and `kfabric` are its callbacks.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    /// The provider. Others write to it meanwhile: to be read field by field.
    provider: NonNull<bindings::kfi_provider>,
    /// Asks what there is.
    kgetinfo: GetInfo,
    /// Opens a fabric.
    kfabric: OpenFabric,
}

impl Fields {
    /// Returns its identity.
    pub(crate) fn id(&self) -> ProviderId {
        ProviderId::new(self.provider.as_ptr())
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &CStr {
        // SAFETY: By the type invariants.
        unsafe { CStr::from_char_ptr((*self.provider.as_ptr()).name) }
    }

    /// Returns its version, in its own numbering.
    pub(crate) fn version(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { (*self.provider.as_ptr()).version }
    }

    /// Returns the version of the API that it was built for.
    pub(crate) fn api_version(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { (*self.provider.as_ptr()).kfi_version }
    }

    /// Returns the module that both callbacks belong to; `None` if that is unknown, or they do not
    /// belong together.
    pub(crate) fn module(&self, modules: &Modules) -> Option<ModuleId> {
        let module = modules.find(self.kfabric as *const ())?;
        (modules.find(self.kgetinfo as *const ()) == Some(module)).then_some(module)
    }
}

/// A provider that wants to register. So far it is only read.
pub(crate) struct Candidate(Fields);

impl Candidate {
    /// Takes a provider from C; `EINVAL` if something is missing.
    ///
    /// # Safety
    ///
    /// `provider` must be null, or a provider whose name is null or a text. It must stay, unchanged
    /// and used by the core's registry only, as long as the candidate exists and, if it gets into
    /// the table, until it is [`Retired`].
    pub(crate) unsafe fn new(provider: *mut bindings::kfi_provider) -> Result<Self> {
        let provider = NonNull::new(provider).ok_or(EINVAL)?;
        let raw = provider.as_ptr();
        // SAFETY: By the safety requirements.
        let (name, kgetinfo, kfabric) = unsafe { ((*raw).name, (*raw).kgetinfo, (*raw).kfabric) };
        // SAFETY: A name is a text by the safety requirements.
        if name.is_null() || unsafe { CStr::from_char_ptr(name) }.is_empty() {
            return Err(EINVAL);
        }
        // INVARIANT: By the safety requirements, and as was checked.
        Ok(Self(Fields {
            provider,
            kgetinfo: kgetinfo.ok_or(EINVAL)?,
            kfabric: kfabric.ok_or(EINVAL)?,
        }))
    }

    /// Makes the first reference, that of the registration.
    ///
    /// # Safety
    ///
    /// There must be no reference to this provider: it has none yet, or was [`Retired`].
    pub(crate) unsafe fn into_provider(self) -> Provider {
        let raw = self.provider.as_ptr();
        // SAFETY: The provider exists, and nobody else uses what is written, as there are no
        // references.
        unsafe {
            bindings::init_completion(&raw mut (*raw).comp);
            (&raw mut (*raw).ref_cnt).write(bindings::atomic_t { counter: 1 });
        }
        // INVARIANT: This is the one reference that is counted.
        Provider(self.0)
    }
}

impl Deref for Candidate {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

/// A reference to a registered provider; deregistration waits until it is dropped.
///
/// # Invariants
///
/// `comp` and `ref_cnt` are initialised, and this owns one of the references that `ref_cnt` counts.
pub(crate) struct Provider(Fields);

// SAFETY: Providers may be called from any thread.
unsafe impl Send for Provider {}
// SAFETY: As above; what is written of a provider while there are references is atomic.
unsafe impl Sync for Provider {}

/// Proof that there is no reference to a provider any more.
pub(crate) struct Retired(ProviderId);

impl Retired {
    /// Returns its identity.
    pub(crate) fn id(&self) -> ProviderId {
        self.0
    }
}

impl Provider {
    /// Keeps the module loaded, to call the provider; `None` if the module is about to go.
    pub(crate) fn pin(&self, modules: &Modules) -> Option<Pinned<'_>> {
        Some(Pinned {
            provider: self,
            // SAFETY: If the module's init fails, it deregisters the provider before, by the contract
            // of `Candidate::new`. That waits for this reference, which is borrowed as long as there
            // is the pin.
            pin: unsafe { modules.pin(self.kfabric as *const ()) }?,
        })
    }

    /// Waits until all other references are gone, and lets the provider clean up.
    pub(crate) fn retire(self) -> Retired {
        let fields = self.0;
        let raw = fields.provider.as_ptr();
        // The last reference completes.
        drop(self);
        // SAFETY: The provider stays until this has returned, by the contract of
        // `Candidate::new`, and its completion is initialised.
        unsafe { bindings::wait_for_completion(&raw mut (*raw).comp) };
        // SAFETY: As above.
        if let Some(cleanup) = unsafe { (*raw).cleanup } {
            // SAFETY: The caller that deregisters a provider keeps its module meanwhile.
            unsafe { cleanup() };
        }
        Retired(fields.id())
    }
}

impl Deref for Provider {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl Clone for Provider {
    fn clone(&self) -> Self {
        // SAFETY: There is a reference by the type invariants, so the count is not 0.
        unsafe { bindings::kfi_ref_provider(self.provider.as_ptr()) };
        // INVARIANT: The new one has just been counted.
        Self(self.0)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // SAFETY: The reference is owned by the type invariants.
        unsafe { bindings::kfi_deref_provider(self.provider.as_ptr()) };
    }
}

/// The arguments that kfi_getinfo passes on to providers, as they came from C.
///
/// # Invariants
///
/// During `'a`, `node` and `service` are null or texts and `hints` is null or valid.
pub(crate) struct RawQuery<'a> {
    /// The version of the API that the caller was written for, or 0.
    version: u32,
    /// The node.
    node: *const c_char,
    /// The service.
    service: *const c_char,
    /// Flags of kfi_getinfo.
    flags: u64,
    /// The offer that the answer must make.
    hints: *mut bindings::kfi_info,
    /// How long the pointers are valid.
    _lifetime: PhantomData<&'a ()>,
}

impl RawQuery<'_> {
    /// Takes the arguments of kfi_getinfo.
    ///
    /// # Safety
    ///
    /// `node` and `service` must be null or texts, `hints` null or valid, during the lifetime of
    /// the query.
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
            _lifetime: PhantomData,
        }
    }

    /// Returns the version of the API that the caller was written for, or 0.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }
}

/// Interprets the return value of a provider; `EIO` for one above 0, which means nothing.
fn outcome(ret: c_int) -> Result {
    if ret > 0 {
        kernel::pr_warn_once!("a provider returned {}, it should be 0 or an error\n", ret);
        return Err(EIO);
    }
    kernel::error::to_result(ret)
}

/// A provider that can be called: its module stays meanwhile.
///
/// The pin goes before the reference, for which deregistration waits: so a module whose init
/// fails is still there when the pin is dropped, if the init deregisters what it has registered.
pub(crate) struct Pinned<'a> {
    /// The provider.
    provider: &'a Provider,
    /// Keeps its module.
    pin: ModulePin,
}

impl Pinned<'_> {
    /// Asks for all that matches, `None` if nothing does.
    pub(crate) fn getinfo(&self, query: &RawQuery<'_>) -> Result<Option<Info>> {
        let mut info = ptr::null_mut();
        // SAFETY: The arguments are valid by the invariants of the query, and the module stays.
        outcome(unsafe {
            (self.provider.kgetinfo)(
                query.version,
                query.node,
                query.service,
                query.flags,
                query.hints,
                &mut info,
            )
        })?;
        // SAFETY: On success the provider gives a chain or nothing.
        unsafe { answer::complete(info, self.provider, query.version) }
    }

    /// Opens a fabric, which keeps the module loaded and is listed until it is closed.
    ///
    /// `ENODEV` if the module's init has not succeeded: if it fails, no pin can keep the module.
    ///
    /// # Safety
    ///
    /// `attr` must be valid.
    pub(crate) unsafe fn fabric(
        self,
        attr: *mut bindings::kfi_fabric_attr,
        context: Context,
        listed: Listed,
    ) -> Result<NonNull<bindings::kfid_fabric>> {
        let watch = Watch::new(self.pin.into_live().ok_or(ENODEV)?, listed)?;
        let mut fabric = ptr::null_mut();
        // SAFETY: `attr` is valid by the safety requirements, and the module stays.
        outcome(unsafe { (self.provider.kfabric)(attr, &mut fabric, context.as_raw()) })?;
        let fabric = NonNull::new(fabric).ok_or(EIO)?;
        // SAFETY: The fabric has just been opened and nobody else knows it.
        unsafe { watch.attach(fabric) }?;
        Ok(fabric)
    }
}
