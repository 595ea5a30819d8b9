// SPDX-License-Identifier: GPL-2.0

//! Errors that kfabric has and Linux has not.
//!
//! Inside, everything returns [`Result`]; the numbers of kfabric appear here only. Those below 256
//! are the errnos of Linux, see [`kernel::error::code`].
//!
//! C header: `include/kfi_errno.h`.

use kernel::prelude::*;

use super::bindings;

/// An error number of kfabric that lies beyond the errnos of Linux.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KfiErrno(c_int);

impl From<KfiErrno> for Error {
    fn from(errno: KfiErrno) -> Self {
        // The numbers end below 4095, so that they fit an `Error`.
        Error::from_errno(-errno.0)
    }
}

/// Declares error numbers.
macro_rules! declare_errno {
    ($($name:ident = $value:ident, $doc:literal;)*) => {$(
        #[doc = $doc]
        pub const $name: KfiErrno = KfiErrno(bindings::$value as c_int);
    )*}
}

declare_errno! {
    EAVAIL = KFI_EAVAIL, "An error is available to be read.";
    EBADFLAGS = KFI_EBADFLAGS, "Flags that are not supported.";
    EKEYREJECTED = KFI_EKEYREJECTED, "The key was rejected.";
    ENOAV = KFI_ENOAV, "No address vector is bound.";
    ENOCQ = KFI_ENOCQ, "No completion queue is bound.";
    ENOEQ = KFI_ENOEQ, "No event queue is bound.";
    ENOMSG = KFI_ENOMSG, "There is no such message.";
    ENOKEY = KFI_ENOKEY, "The key is not available.";
    EOPBADSTATE = KFI_EOPBADSTATE, "The object is not in a state that allows the operation.";
    EOVERRUN = KFI_EOVERRUN, "A queue has overrun.";
    ETOOSMALL = KFI_ETOOSMALL, "The buffer is too small.";
}
