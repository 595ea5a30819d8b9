// SPDX-License-Identifier: GPL-2.0

//! What every file of the kernel has.

pub(crate) use kfi_kunit::kunit_tests;

pub(crate) use crate::alloc::{pin_init, KBox, KVVec, KVec, __GFP_NOWARN, GFP_KERNEL};
pub(crate) use crate::error::{Result, EINVAL, ENOENT, ENOMEM, ENOSPC};
