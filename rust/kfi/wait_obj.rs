// SPDX-License-Identifier: GPL-2.0

//! The types of wait objects.

use kernel::prelude::*;

use super::bindings;

/// How threads wait for events of an object (`enum kfi_wait_obj`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WaitObj {
    /// No thread can wait for the object.
    None,
    /// Waiting goes through kfabric only; the provider chooses how.
    Unspec,
    /// A wait set.
    Set,
    /// A wait queue that the consumer may ask for and wait on by itself.
    Queue,
}

impl WaitObj {
    /// Returns the number that C knows.
    pub fn as_raw(self) -> bindings::kfi_wait_obj {
        match self {
            Self::None => bindings::KFI_WAIT_NONE,
            Self::Unspec => bindings::KFI_WAIT_UNSPEC,
            Self::Set => bindings::KFI_WAIT_SET,
            Self::Queue => bindings::KFI_WAIT_QUEUE,
        }
    }
}

impl TryFrom<bindings::kfi_wait_obj> for WaitObj {
    type Error = Error;

    fn try_from(raw: bindings::kfi_wait_obj) -> Result<Self> {
        match raw {
            bindings::KFI_WAIT_NONE => Ok(Self::None),
            bindings::KFI_WAIT_UNSPEC => Ok(Self::Unspec),
            bindings::KFI_WAIT_SET => Ok(Self::Set),
            bindings::KFI_WAIT_QUEUE => Ok(Self::Queue),
            _ => Err(EINVAL),
        }
    }
}
