// SPDX-License-Identifier: GPL-2.0

//! The exported functions, as declared in the public headers.

use kernel::{
    error::from_result,
    prelude::*,
    str::CStr, //
};

use crate::{
    abi::{
        installed::installed,
        provider::{
            Candidate,
            ProviderId,
            RawQuery, //
        },
        trace, //
    },
    export::c_export,
    fabrics::Fabrics,
    kfi::{
        bindings,
        context::Context,
        info::{
            Info,
            InfoRef,
            KFI_VERSION, //
        }, //
    }, //
};

/// Takes a text from C, `None` for null.
///
/// # Safety
///
/// `text` must be null or a text that stays during `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: By the safety requirements.
    (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) })
}

c_export! {
    /// Implements kfi_version.
    ///
    /// # Safety
    ///
    /// None.
    unsafe fn kfi_version() -> u32 {
        KFI_VERSION
    }

    /// Implements kfi_getinfo.
    ///
    /// # Safety
    ///
    /// `node` and `service` must be null or texts, `hints` null or valid, `info` null or valid for
    /// writes.
    unsafe fn kfi_getinfo(
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
            // SAFETY: `hints` is null or valid by the safety requirements.
            let name = unsafe { InfoRef::from_raw(hints) }.and_then(InfoRef::prov_name);
            let name = name.filter(|name| !name.is_empty());
            // SAFETY: By the safety requirements, during the call.
            let query = unsafe { RawQuery::new(version, node, service, flags, hints) };
            let answer =
                installed().and_then(|core| core.registry.getinfo(&core.modules, name, &query));
            let (ret, answer) = match answer {
                Ok(answer) => (Ok(0), Info::into_raw(answer)),
                Err(error) => (Err(error), core::ptr::null_mut()),
            };
            // SAFETY: `info` is valid for writes, as it is not null.
            unsafe { info.write(answer) };
            ret
        })
    }

    /// Implements kfi_fabric.
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid, `fabric` null or valid for writes.
    unsafe fn kfi_fabric(
        attr: *mut bindings::kfi_fabric_attr,
        fabric: *mut *mut bindings::kfid_fabric,
        context: *mut c_void,
    ) -> c_int {
        from_result(|| {
            if attr.is_null() || fabric.is_null() {
                return Err(EINVAL);
            }
            // SAFETY: `attr` is valid, as it is not null.
            let (prov_name, name) = unsafe { ((*attr).prov_name, (*attr).name) };
            // SAFETY: A name in valid attributes is null or a text.
            let (prov_name, name) = unsafe { (text(prov_name), text(name)) };
            let prov_name = prov_name.filter(|name| !name.is_empty());
            let prov_name = prov_name.ok_or(EINVAL)?;
            let core = installed()?;
            let open = || {
                let (registration, provider) = core.registry.find(prov_name).ok_or(ENODEV)?;
                let listed = Fabrics::add(&core.fabrics, registration, prov_name, name)?;
                let pinned = provider.pin(&core.modules).ok_or(ENODEV)?;
                // SAFETY: `attr` is valid.
                unsafe { pinned.fabric(attr, Context::from_raw(context), listed) }
            };
            let opened = open();
            trace::fabric_open(prov_name, trace::result(opened.as_ref().map(|_| ()).map_err(|e| *e)));
            let opened = opened?;
            // SAFETY: `fabric` is valid for writes, as it is not null.
            unsafe { fabric.write(opened.as_ptr()) };
            Ok(0)
        })
    }

    /// Implements kfi_provider_register.
    ///
    /// # Safety
    ///
    /// `provider` must be null, or a provider whose name is null or a text. If it gets registered,
    /// it must stay, unchanged, until it is deregistered.
    unsafe fn kfi_provider_register(provider: *mut bindings::kfi_provider) -> c_int {
        from_result(|| {
            let core = installed()?;
            // SAFETY: By the safety requirements.
            let candidate = unsafe { Candidate::new(provider) }?;
            let ret = core.registry.register(&core.modules, candidate);
            // SAFETY: There was a name for the candidate, and it stays during the call.
            let name = unsafe { CStr::from_char_ptr((*provider).name) };
            trace::provider_register(name, trace::result(ret));
            ret?;
            Ok(0)
        })
    }

    /// Implements kfi_provider_deregister.
    ///
    /// # Safety
    ///
    /// None.
    unsafe fn kfi_provider_deregister(provider: *mut bindings::kfi_provider) -> c_int {
        from_result(|| {
            installed()?.registry.deregister(ProviderId::new(provider))?;
            // SAFETY: It was registered, so it is a provider with a name, and the caller's again.
            let name = unsafe { CStr::from_char_ptr((*provider).name) };
            trace::provider_deregister(name, 0);
            Ok(0)
        })
    }
}
