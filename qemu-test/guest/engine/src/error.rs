// SPDX-License-Identifier: GPL-2.0

//! Errors, as the kernel's crate has them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Error(i32);

pub(crate) type Result<T = (), E = Error> = core::result::Result<T, E>;

pub(crate) const ENOENT: Error = Error(2);
pub(crate) const ENOMEM: Error = Error(12);
pub(crate) const EINVAL: Error = Error(22);
pub(crate) const ENOSPC: Error = Error(28);
