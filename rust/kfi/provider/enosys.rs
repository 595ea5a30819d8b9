// SPDX-License-Identifier: GPL-2.0

//! Functions for slots that a provider has nothing for.
//!
//! The inline wrappers of kfabric call most slots without a look, so every slot must be filled.

use kernel::prelude::*;

macro_rules! stubs {
    ($($name:ident($($arg:ident: $ty:ident),*);)*) => {$(
        /// Answers `ENOSYS`.
        ///
        /// # Safety
        ///
        /// None.
        pub(super) unsafe extern "C" fn $name<$($ty),*>($($arg: $ty),*) -> c_int {
            let _ = ($($arg),*);
            ENOSYS.to_errno()
        }
    )*}
}

stubs! {
    enosys3(a: A, b: B, c: C);
    enosys4(a: A, b: B, c: C, d: D);
    enosys5(a: A, b: B, c: C, d: D, e: E);
    enosys9(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I);
}
