// SPDX-License-Identifier: GPL-2.0

//! The exported functions, as declared in the public headers.

use kernel::{
    error::from_result,
    prelude::*,
    str::CStr, //
};

use crate::{
    abi_core::installed,
    abi_provider::{
        Provider,
        ProviderId,
        RawQuery, //
    },
    export::c_export,
    kfi::{
        bindings,
        fid::Context,
        info::{
            Info,
            InfoRef, //
        },
        provider::KFI_VERSION, //
    },
    strerror, //
};

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
            // SAFETY: By the safety requirements; the query is not kept.
            let query = unsafe { RawQuery::new(version, node, service, flags, hints) };
            let core = installed()?;
            let answer = core.registry.getinfo(&core.modules, name, query);
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
            let name = unsafe { (*attr).prov_name };
            if name.is_null() {
                return Err(EINVAL);
            }
            let core = installed()?;
            // SAFETY: The name in valid attributes is a text.
            let provider = core.registry.find(unsafe { CStr::from_char_ptr(name) });
            let provider = provider.ok_or(ENODEV)?;
            // SAFETY: `attr` is valid.
            let opened =
                unsafe { provider.fabric(&core.modules, attr, Context::from_raw(context)) }?;
            // SAFETY: `fabric` is valid for writes, as it is not null.
            unsafe { fabric.write(opened.as_ptr()) };
            Ok(0)
        })
    }

    /// Implements kfi_provider_register.
    ///
    /// # Safety
    ///
    /// `provider` must be null, or a provider that stays until it is deregistered and whose name is
    /// null or a text.
    unsafe fn kfi_provider_register(provider: *mut bindings::kfi_provider) -> c_int {
        from_result(|| {
            let core = installed()?;
            // SAFETY: By the safety requirements.
            core.registry.register(unsafe { Provider::prepare(provider) }?)?;
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
            Ok(0)
        })
    }

    /// Implements kfi_strerror.
    ///
    /// # Safety
    ///
    /// None.
    unsafe fn kfi_strerror(errnum: c_int) -> *const c_char {
        strerror::strerror(errnum).as_char_ptr()
    }
}
