// SPDX-License-Identifier: GPL-2.0

//! A stand-in for `#[export]`, which knows the kernel's declarations only.

/// Defines functions that C calls, checked against their declarations in the public headers.
macro_rules! c_export {
    ($(
        $(#[$attr:meta])*
        unsafe fn $name:ident($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block
    )*) => {$(
        $(#[$attr])*
        #[no_mangle]
        pub(crate) unsafe extern "C" fn $name($($arg : $ty),*) $(-> $ret)? $body

        // Both arms have one type: what differs from the declaration does not compile.
        const _: () = {
            if true {
                $crate::kfi::bindings::$name
            } else {
                $name
            };
        };
    )*}
}
pub(crate) use c_export;
