// SPDX-License-Identifier: GPL-2.0

//! Bindings to the public headers of kfabric and to the helpers of this project.
//!
//! Everything that is not declared there (`list_head`, `wait_queue_head`, ...) is the kernel
//! crate's.

#![allow(
    clippy::all,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unnameable_types,
    unnecessary_transmutes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]
#![allow(
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks
)]

pub(crate) use kernel::bindings::*;
use pin_init::MaybeZeroable;

include!(env!("KFI_BINDINGS"));

/// For `linux/last_work.rs`, in which nothing has the name of this project.
#[cfg(linux_last_work)]
pub(crate) type last_work = kfi_rust_last_work;
