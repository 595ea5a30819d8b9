// SPDX-License-Identifier: GPL-2.0

//! Tracepoints, see `trace.h`.

use kernel::{
    prelude::*,
    str::CStr, //
};

/// Defines functions that emit an event about a provider.
macro_rules! events {
    ($($(#[$attr:meta])* $name:ident => $point:ident, $emit:ident;)*) => {$(
        $(#[$attr])*
        #[inline]
        pub(crate) fn $name(provider: &CStr, result: c_int) {
            #[cfg(CONFIG_TRACEPOINTS)]
            {
                use crate::kfi::bindings;

                // SAFETY: The static key of a tracepoint may always be looked at.
                let enabled = unsafe {
                    kernel::jump_label::static_branch_unlikely!(
                        bindings::$point,
                        kernel::bindings::tracepoint,
                        key
                    )
                };
                if enabled {
                    // SAFETY: The text is copied before the call returns.
                    unsafe { bindings::$emit(provider.as_char_ptr(), result) };
                }
            }
            #[cfg(not(CONFIG_TRACEPOINTS))]
            let _ = (provider, result);
        }
    )*}
}

events! {
    /// A provider has registered, or was refused.
    provider_register =>
        __tracepoint_kfi_provider_register, rust_do_trace_kfi_provider_register;
    /// A provider was deregistered.
    provider_deregister =>
        __tracepoint_kfi_provider_deregister, rust_do_trace_kfi_provider_deregister;
    /// A provider has answered with so many entries, or with an errno.
    provider_getinfo =>
        __tracepoint_kfi_provider_getinfo, rust_do_trace_kfi_provider_getinfo;
    /// A provider has opened a fabric, or has not.
    fabric_open => __tracepoint_kfi_fabric_open, rust_do_trace_kfi_fabric_open;
    /// A fabric was closed, or has refused.
    fabric_close => __tracepoint_kfi_fabric_close, rust_do_trace_kfi_fabric_close;
}

/// Returns the result of a call as an event tells it.
pub(crate) fn result(ret: Result) -> c_int {
    ret.map_or_else(Error::to_errno, |()| 0)
}
