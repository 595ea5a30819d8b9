// SPDX-License-Identifier: GPL-2.0

//! What waits for counters, and is done when its threshold is reached.

#![forbid(unsafe_code)]

pub(crate) mod deferred;
pub(crate) mod pending;
pub(crate) mod run_list;
pub(crate) mod threshold;
pub(crate) mod work_table;
