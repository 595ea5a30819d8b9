// SPDX-License-Identifier: GPL-2.0

//! Providers and their registration with the core.

use core::marker::{
    PhantomData,
    PhantomPinned, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    str::CStr,
    types::Opaque, //
};

use super::{
    fabric::FabricData,
    FabricAttr,
    FabricClass,
    FabricOps, //
};
use crate::kfi::{
    bindings,
    context::Context,
    fid::{
        open_into,
        NewFid,
        Opening, //
    },
    info::{
        Info,
        InfoRef,
        KFI_VERSION, //
    },
    linux::live::{
        Findable,
        Root, //
    },
    live_objects, //
};

/// The question that kfi_getinfo asks.
pub struct Query<'a> {
    /// The version of the API that the caller was written for, or 0.
    pub version: u32,
    /// The node.
    pub node: Option<&'a CStr>,
    /// The service.
    pub service: Option<&'a CStr>,
    /// Flags of kfi_getinfo.
    pub flags: u64,
    /// The offer that the answer must make.
    pub hints: Option<InfoRef<'a>>,
}

/// A provider (`struct kfi_provider`).
///
/// All may sleep and may call the core.
pub trait Provider: Send + Sync + Sized + 'static {
    /// Its version, major in the upper, minor in the lower 16 bits.
    const VERSION: u32;
    /// Its fabrics.
    type Fabric: FabricOps;

    /// Returns its name, always the same.
    fn name() -> &'static CStr;

    /// Returns all that matches; `ENODATA` if nothing does.
    fn getinfo(query: &Query<'_>) -> Result<Info>;

    /// Opens a fabric.
    fn fabric<'o>(
        attr: FabricAttr<'_>,
        opening: Opening<'o, FabricClass>,
    ) -> Result<NewFid<'o, Self::Fabric>>;
}

/// The registration of a provider; dropped, it deregisters, and waits for the last object of the
/// module. So a module has one in its life, as a field of its [`Root`], or, if it has nothing else, for
/// its root.
///
/// As a field it is declared first and initialised last: fields are dropped in the order in which they
/// are declared, and what objects use has to be there until the last of these is gone.
///
/// # Invariants
///
/// `provider` is registered.
#[pin_data(PinnedDrop)]
pub struct Registration<P: Provider> {
    #[pin]
    provider: Opaque<bindings::kfi_provider>,
    #[pin]
    _pin: PhantomPinned,
    _provider: PhantomData<P>,
    /// Dropped last: the provider names code of this module.
    _findable: Findable,
}

// SAFETY: The provider is the core's until it is deregistered.
unsafe impl<P: Provider> Send for Registration<P> {}
// SAFETY: As above.
unsafe impl<P: Provider> Sync for Registration<P> {}

impl<P: Provider> Registration<P> {
    /// Registers the provider. `EBUSY` for another one of this module, also if the first has failed or is
    /// gone.
    ///
    /// In a module's init, kfi_getinfo may be asked from here on, even before this returns: what answers
    /// that is initialised before. The core opens no fabric before the init has succeeded
    /// (`include/kfi_prov.h`), so what follows may fail.
    pub fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _findable: {
                live_objects::only_provider()?;
                Findable::new()?
            },
            // INVARIANT: `kfi_provider_register` succeeds, or there is no registration.
            provider <- Opaque::try_ffi_init(|slot: *mut bindings::kfi_provider| {
                let provider = bindings::kfi_provider {
                    version: P::VERSION,
                    kfi_version: KFI_VERSION,
                    name: P::name().as_char_ptr(),
                    kgetinfo: Some(Self::kgetinfo_callback),
                    kfabric: Some(Self::kfabric_callback),
                    cleanup: Some(Self::cleanup_callback),
                    ..pin_init::zeroed()
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(provider) };
                // SAFETY: `slot` is initialised, pinned, and stays until it is deregistered, as does
                // what it names.
                to_result(unsafe { bindings::kfi_provider_register(slot) })
            }),
            _pin: PhantomPinned,
            _provider: PhantomData,
        })
    }

    /// Answers kfi_getinfo.
    ///
    /// # Safety
    ///
    /// `node` and `service` must be null or texts, `hints` null or valid, `info` null or valid for
    /// writes.
    unsafe extern "C" fn kgetinfo_callback(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *mut bindings::kfi_info,
        info: *mut *mut bindings::kfi_info,
    ) -> c_int {
        from_result(|| {
            if info.is_null() {
                return Err(EINVAL);
            }
            let query = Query {
                version,
                // SAFETY: By the safety requirements.
                node: (!node.is_null()).then(|| unsafe { CStr::from_char_ptr(node) }),
                // SAFETY: By the safety requirements.
                service: (!service.is_null()).then(|| unsafe { CStr::from_char_ptr(service) }),
                flags,
                // SAFETY: By the safety requirements.
                hints: unsafe { InfoRef::from_raw(hints) },
            };
            let answer = P::getinfo(&query)?;
            // SAFETY: By the safety requirements.
            unsafe { info.write(answer.into_raw()) };
            Ok(0)
        })
    }

    /// Opens a fabric.
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid, `fabric` null or valid for writes.
    unsafe extern "C" fn kfabric_callback(
        attr: *mut bindings::kfi_fabric_attr,
        fabric: *mut *mut bindings::kfid_fabric,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let attr = unsafe { attr.as_ref() };
        // SAFETY: By the safety requirements.
        unsafe {
            open_into(fabric, || {
                let attr = attr.ok_or(EINVAL)?;
                let data = FabricData {
                    api_version: attr.api_version,
                };
                let opening = Opening::new(Context::from_raw(context), data);
                P::fabric(FabricAttr::new(attr), opening)
            })
        }
    }

    /// Nothing to do: a provider goes with its module.
    extern "C" fn cleanup_callback() {}
}

impl<P: Provider> Root for Registration<P> {
    /// Loads a module that has nothing but its provider.
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        Self::new()
    }
}

#[pinned_drop]
impl<P: Provider> PinnedDrop for Registration<P> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the type invariants.
        let ret = unsafe { bindings::kfi_provider_deregister(self.provider.get()) };
        if ret != 0 {
            pr_err!("deregistration failed: {}\n", ret);
        }
        // The provider is not called any more, but threads that called it may be on the way out. The code
        // must not vanish under them.
        live_objects::wait_for_the_last();
    }
}
