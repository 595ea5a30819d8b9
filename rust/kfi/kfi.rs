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
pub(crate) mod debugfs;
pub(crate) mod dma_device;
pub(crate) mod errno;
pub(crate) mod fid;
pub(crate) mod file;
pub(crate) mod flags;
pub(crate) mod hold;
pub(crate) mod info;
pub(crate) mod interrupts;
pub(crate) mod jiffies;
pub(crate) mod live;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod no_fs;
pub(crate) mod provider;
pub(crate) mod queue;
pub(crate) mod random;
mod rcu;
pub(crate) mod tally;
pub(crate) mod task;
pub(crate) mod timeout;
pub(crate) mod uaccess;
mod users;
pub(crate) mod wait_obj;
pub(crate) mod wait_queue;
pub(crate) mod waiters;
pub(crate) mod work_queue;
