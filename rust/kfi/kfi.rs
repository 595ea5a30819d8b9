// SPDX-License-Identifier: GPL-2.0

//! kfabric for Rust: what modules in safe code are made with.
//!
//! Modules share no Rust code: they meet through the C ABI. So each module compiles this folder into
//! its own crate, and uses a part of it: providers [`provider`], consumers [`consumer`], and most of them
//! something of [`linux`], which holds what the kernel crate lacks.
//!
//! `unsafe` is allowed in all files here. Elsewhere in `rust/` it is allowed in the edges, where a
//! module meets C code of its own, in the roots of the crates and in the macro that exports
//! functions; `scripts/check-style` makes sure of that.

pub(crate) mod addr;
pub(crate) mod attr;
pub(crate) mod bindings;
pub(crate) mod consumer;
pub(crate) mod control;
pub(crate) mod errno;
pub(crate) mod fid;
pub(crate) mod flags;
pub(crate) mod hold;
pub(crate) mod info;
pub(crate) mod linux;
pub(crate) mod memory;
pub(crate) mod provider;
pub(crate) mod tally;
pub(crate) mod wait_obj;
