// SPDX-License-Identifier: GPL-2.0

//! kfabric for Rust: the parts that modules in safe code are made of.
//!
//! Modules share no Rust code: they meet through the C ABI. So each module compiles this folder into
//! its own crate, and of it the parts that its Kbuild names: providers `provider`, consumers
//! `consumer`, and most of them something of [`linux`], which holds what the kernel crate lacks. The
//! `kfi_parts` in the Kbuild at the top makes a cfg of each.
//!
//! In a crate with `mod kfi` the compiler tells what is not used of these parts. Together `kfi_soft`
//! and `kfi_shim` use nearly all; crates that use little have `pub mod kfi`.
//!
//! What is safe here is so for a module that adds no inherent `impl` of its own to the types of this
//! folder, as it could not if they were in another crate: its functions would come before those that a
//! type has by [`Deref`](core::ops::Deref) or a trait, also where this folder calls them.
//!
//! `unsafe` is allowed in all files here. Elsewhere in `rust/` it is allowed in the edges, where a
//! module meets C code of its own, in the roots of the crates and in the macro that exports
//! functions; `scripts/check-style` makes sure of that.

#![allow(
    unreachable_pub,
    clippy::len_without_is_empty,
    clippy::new_without_default,
    rustdoc::private_intra_doc_links,
    reason = "an interface, but within a module"
)]

#[cfg(kfi_provider)]
pub mod addr;
#[cfg(kfi_provider)]
pub mod attr;
pub(crate) mod bindings;
#[cfg(kfi_consumer)]
pub mod consumer;
pub mod context;
#[cfg(kfi_provider)]
pub mod control;
#[cfg(any(kfi_provider, kfi_consumer))]
#[allow(dead_code, reason = "consumers look at some of them, if at all")]
pub mod errno;
#[cfg(kfi_provider)]
pub mod fid;
pub mod flags;
#[cfg(kfi_provider)]
pub mod hold;
pub mod info;
pub mod linux;
#[cfg(kfi_provider)]
pub mod live_objects;
#[cfg(kfi_provider)]
pub mod memory;
#[cfg(kfi_provider)]
pub mod provider;
#[cfg(kfi_provider)]
pub mod tally;
pub mod wait_obj;
