// SPDX-License-Identifier: GPL-2.0

//! Functions for slots that a provider has nothing for.
//!
//! The inline wrappers of kfabric call most slots without a look, so every slot must be filled.

use kernel::{
    error::from_result,
    prelude::*, //
};

/// Defines functions of any number and any types of arguments.
macro_rules! stubs {
    ($($name:ident($($ty:ident),*) -> $ret:ty;)*) => {$(
        /// Answers `ENOSYS`.
        pub(super) extern "C" fn $name<$($ty),*>($(_: $ty),*) -> $ret {
            from_result(|| Err(ENOSYS))
        }
    )*}
}

stubs! {
    enosys1(A) -> c_int;
    enosys2(A, B) -> c_int;
    enosys3(A, B, C) -> c_int;
    enosys4(A, B, C, D) -> c_int;
    enosys5(A, B, C, D, E) -> c_int;
    enosys2_size(A, B) -> isize;
}
