// SPDX-License-Identifier: GPL-2.0

//! Texts for people.

use core::ptr::NonNull;
use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::kfi::{
    bindings,
    info::InfoRef, //
};

/// A text that kfi_tostr returned.
///
/// # Invariants
///
/// A text from kmalloc that is owned by this.
pub struct Text(NonNull<c_char>);

impl Text {
    /// Takes what kfi_tostr returned.
    ///
    /// # Safety
    ///
    /// `text` must be null or such a text.
    unsafe fn from_raw(text: *mut c_char) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        NonNull::new(text).map(Self)
    }

    /// Prints an entry.
    pub fn of_info(info: InfoRef<'_>) -> Option<Self> {
        // SAFETY: The entry is valid.
        unsafe {
            Self::from_raw(bindings::kfi_tostr(
                info.as_raw().cast(),
                bindings::KFI_TYPE_INFO,
            ))
        }
    }

    /// Prints a number; `EINVAL` for types that are structures, no text for unknown types.
    pub fn of_number(type_: u32, value: u64) -> Result<Option<Self>> {
        // Values that do not fit are printed as what is left of them, as C would.
        #[allow(clippy::cast_possible_truncation)]
        let narrow = value as u32;
        let data: *const c_void = match type_ {
            bindings::KFI_TYPE_INFO
            | bindings::KFI_TYPE_TX_ATTR
            | bindings::KFI_TYPE_RX_ATTR
            | bindings::KFI_TYPE_EP_ATTR
            | bindings::KFI_TYPE_DOMAIN_ATTR
            | bindings::KFI_TYPE_FABRIC_ATTR => return Err(EINVAL),
            bindings::KFI_TYPE_EP_TYPE
            | bindings::KFI_TYPE_ADDR_FORMAT
            | bindings::KFI_TYPE_THREADING
            | bindings::KFI_TYPE_PROGRESS
            | bindings::KFI_TYPE_PROTOCOL
            | bindings::KFI_TYPE_AV_TYPE
            | bindings::KFI_TYPE_ATOMIC_TYPE
            | bindings::KFI_TYPE_ATOMIC_OP
            | bindings::KFI_TYPE_EQ_EVENT
            | bindings::KFI_TYPE_MR_MODE
            | bindings::KFI_TYPE_OP_TYPE => (&raw const narrow).cast(),
            _ => (&raw const value).cast(),
        };
        // SAFETY: Of the types that there are, those that are left take a number of 64 bits, or
        // nothing.
        Ok(unsafe { Self::from_raw(bindings::kfi_tostr(data, type_)) })
    }

    /// Returns whether there is such a type of numbers: then no text means no memory.
    pub fn has_number(type_: u32) -> bool {
        type_ <= bindings::KFI_TYPE_OP_TYPE
    }

    /// Returns the text.
    pub fn as_c_str(&self) -> &CStr {
        // SAFETY: By the type invariants.
        unsafe { CStr::from_char_ptr(self.0.as_ptr()) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: Owned by the type invariants.
        unsafe { bindings::kfree(self.0.as_ptr().cast()) };
    }
}
