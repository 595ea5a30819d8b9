// SPDX-License-Identifier: GPL-2.0

//! kfabric for Rust: what modules in safe code are made with.
//!
//! Modules share no Rust code: they meet through the C ABI. So each module compiles this folder into
//! its own crate, and of it the parts that its Kbuild names: providers `provider`, consumers
//! `consumer`, and most of them something of [`linux`], which holds what the kernel crate lacks. The
//! `kfi_parts` in the Kbuild at the top makes a cfg of each.
//!
//! `unsafe` is allowed in all files here. Elsewhere in `rust/` it is allowed in the edges, where a
//! module meets C code of its own, in the roots of the crates and in the macro that exports
//! functions; `scripts/check-style` makes sure of that.

#[cfg(kfi_provider)]
pub(crate) mod addr;
#[cfg(kfi_provider)]
pub(crate) mod attr;
pub(crate) mod bindings;
#[cfg(kfi_consumer)]
pub(crate) mod consumer;
pub(crate) mod context;
#[cfg(kfi_provider)]
pub(crate) mod control;
pub(crate) mod errno;
#[cfg(kfi_provider)]
pub(crate) mod fid;
pub(crate) mod flags;
#[cfg(kfi_provider)]
pub(crate) mod hold;
pub(crate) mod info;
pub(crate) mod linux;
#[cfg(kfi_provider)]
pub(crate) mod memory;
#[cfg(kfi_provider)]
pub(crate) mod provider;
#[cfg(kfi_provider)]
pub(crate) mod tally;
pub(crate) mod wait_obj;
