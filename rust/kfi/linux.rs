// SPDX-License-Identifier: GPL-2.0

//! Abstractions that the kernel crate lacks.
//!
//! Nothing here knows what the modules are for: each file could go upstream as it is, but for the
//! bindings and C helpers that it shares with the others.

use super::bindings;

#[cfg(linux_debugfs)]
pub(crate) mod debugfs;
#[cfg(linux_dma_device)]
pub(crate) mod dma_device;
#[cfg(linux_file)]
pub(crate) mod file;
#[cfg(linux_interrupts)]
pub(crate) mod interrupts;
#[cfg(linux_jiffies)]
pub(crate) mod jiffies;
pub(crate) mod live;
#[cfg(linux_modules)]
pub(crate) mod modules;
#[cfg(linux_no_fs)]
pub(crate) mod no_fs;
#[cfg(linux_queue)]
pub(crate) mod queue;
#[cfg(linux_random)]
pub(crate) mod random;
pub(crate) mod rcu;
#[cfg(linux_task)]
pub(crate) mod task;
#[cfg(linux_timeout)]
pub(crate) mod timeout;
#[cfg(linux_uaccess)]
pub(crate) mod uaccess;
pub(crate) mod users;
#[cfg(linux_wait_queue)]
pub(crate) mod wait_queue;
#[cfg(linux_waiters)]
pub(crate) mod waiters;
#[cfg(linux_work_queue)]
pub(crate) mod work_queue;
