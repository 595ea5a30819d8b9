// SPDX-License-Identifier: GPL-2.0

//! The skin: all that is unsafe and needed by more than one module.
//!
//! Every module of this project compiles these files into its own crate, as modules share no Rust
//! code: they meet through the C ABI. What a module does with it is safe Rust.

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
