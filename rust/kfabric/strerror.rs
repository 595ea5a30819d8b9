// SPDX-License-Identifier: GPL-2.0

//! Texts for error numbers.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::kfi::bindings;

/// Returns a text for an error number, positive or negative.
pub(crate) fn strerror(errnum: c_int) -> &'static CStr {
    match errnum.unsigned_abs() {
        0 => c"Success",
        bindings::KFI_EAVAIL => c"An error is available",
        _ => c"Unknown error",
    }
}
