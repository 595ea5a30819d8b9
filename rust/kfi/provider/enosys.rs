// SPDX-License-Identifier: GPL-2.0

//! Functions for slots that a provider has nothing for.
//!
//! The inline wrappers of kfabric call most slots without a look, so every slot must be filled.

use kernel::prelude::*;

/// Defines functions of any number and any types of arguments.
macro_rules! stubs {
    ($($name:ident($($ty:ident),*);)*) => {$(
        /// Answers `ENOSYS`.
        pub(super) extern "C" fn $name<$($ty),*>($(_: $ty),*) -> c_int {
            ENOSYS.to_errno()
        }
    )*}
}

stubs! {
    enosys4(A, B, C, D);
    enosys5(A, B, C, D, E);
    enosys9(A, B, C, D, E, F, G, H, I);
}
