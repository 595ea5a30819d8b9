// SPDX-License-Identifier: GPL-2.0

//! Completion and event queues, and how their readers are notified.

#![forbid(unsafe_code)]

pub(crate) mod completion_queue;
pub(crate) mod completions;
pub(crate) mod cq_space;
pub(crate) mod eq_slots;
pub(crate) mod event_queue;
pub(crate) mod handler;
pub(crate) mod listeners;
pub(crate) mod ring;
pub(crate) mod waiting;
