// SPDX-License-Identifier: GPL-2.0

//! Parameters that are texts, see `params.c`.

use crate::kfi::bindings;

/// Returns the parameter `address`.
pub(crate) fn address() -> &'static [u8] {
    let text = &raw const bindings::kfi_soft_address;
    // SAFETY: It was written before the module was initialised and cannot be written afterwards, and
    // it stays as long as the module.
    let text = unsafe { &*text };
    let len = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(text.len());
    // SAFETY: So many bytes are there, which are as good as characters.
    unsafe { core::slice::from_raw_parts(text.as_ptr().cast(), len) }
}
