// SPDX-License-Identifier: GPL-2.0

//! Operations that wait for counters, and are done when their thresholds are reached.

#![forbid(unsafe_code)]

pub(crate) mod deferred;
mod drain_budget;
mod due_queue;
pub(crate) mod pending;
pub(crate) mod pending_table;
pub(crate) mod run_list;
pub(crate) mod threshold;
