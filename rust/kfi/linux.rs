// SPDX-License-Identifier: GPL-2.0

//! Abstractions that the kernel crate lacks.
//!
//! Nothing here knows what the modules are for: each file could go upstream as it is, but for the
//! bindings and C helpers that it shares with the others.

use super::bindings;

pub(crate) mod debugfs;
pub(crate) mod dma_device;
pub(crate) mod file;
pub(crate) mod interrupts;
pub(crate) mod jiffies;
pub(crate) mod live;
pub(crate) mod modules;
pub(crate) mod no_fs;
pub(crate) mod queue;
pub(crate) mod random;
pub(crate) mod rcu;
pub(crate) mod task;
pub(crate) mod timeout;
pub(crate) mod uaccess;
pub(crate) mod users;
pub(crate) mod wait_queue;
pub(crate) mod waiters;
pub(crate) mod work_queue;
