// SPDX-License-Identifier: GPL-2.0

//! Abstractions that the kernel crate lacks.
//!
//! Nothing here knows what the modules are for: each file could go upstream as it is, but for the
//! bindings and C helpers that it shares with the others.

use super::bindings;

#[cfg(linux_credentials)]
pub mod credentials;
#[cfg(linux_debugfs)]
pub mod debugfs;
#[cfg(linux_dma_device)]
pub mod dma_device;
#[cfg(linux_file)]
pub mod file;
#[cfg(linux_hmac)]
pub mod hmac;
#[cfg(linux_interrupts)]
pub mod interrupts;
#[cfg(linux_jiffies)]
pub mod jiffies;
#[cfg(linux_key)]
pub mod key;
#[cfg(linux_last_work)]
pub mod last_work;
#[cfg(linux_linear)]
pub(super) mod linear;
pub mod live;
#[cfg(linux_module_use)]
pub mod module_use;
#[cfg(linux_modules)]
pub mod modules;
#[cfg(linux_no_fs)]
pub mod no_fs;
#[cfg(linux_no_io)]
pub mod no_io;
#[cfg(linux_process)]
pub mod process;
#[cfg(linux_queue)]
pub mod queue;
#[cfg(linux_random)]
pub mod random;
pub mod rcu;
#[cfg(linux_registry)]
pub mod registry;
#[cfg(linux_sleep)]
pub mod sleep;
#[cfg(linux_socket)]
pub mod socket;
#[cfg(linux_task)]
pub mod task;
#[cfg(linux_timeout)]
pub mod timeout;
#[cfg(linux_uaccess)]
pub mod uaccess;
#[cfg(linux_user)]
pub mod user;
pub mod users;
#[cfg(linux_wait_entry)]
pub mod wait_entry;
#[cfg(linux_wait_queue)]
pub mod wait_queue;
#[cfg(linux_waiters)]
pub mod waiters;
#[cfg(linux_work_queue)]
pub mod work_queue;
