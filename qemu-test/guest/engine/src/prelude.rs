// SPDX-License-Identifier: GPL-2.0

//! Names that every file of the kernel imports.

pub(crate) use kfi_kunit::kunit_tests;

pub(crate) use crate::alloc::{pin_init, KBox, KVVec, KVec, __GFP_NOWARN, GFP_KERNEL};
pub(crate) use crate::error::{Result, EINVAL, ENOENT, ENOMEM, ENOSPC};
