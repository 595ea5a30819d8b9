// SPDX-License-Identifier: GPL-2.0

//! Parameters that are texts, see `params.c`.

use kernel::prelude::*;

use crate::kfi::bindings;

/// Returns the parameter `address`.
pub(crate) fn address() -> &'static [u8] {
    let text = &raw const bindings::kfi_soft_address;
    // SAFETY: It was written before the module was initialised and cannot be written afterwards, and
    // it stays as long as the module.
    let text: &[u8] = unsafe { &*text };
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Returns the parameter `secret`.
pub(crate) fn secret() -> &'static CStr {
    let text = &raw const bindings::kfi_soft_secret;
    // SAFETY: As above.
    let text: &[u8] = unsafe { &*text };
    // The last byte is a null in any case.
    CStr::from_bytes_until_nul(text).unwrap_or_default()
}
