// SPDX-License-Identifier: GPL-2.0

//! Completion and event queues, and how their readers are notified.

#![forbid(unsafe_code)]

pub(crate) mod completion_queue;
pub(crate) mod cq_space;
pub(crate) mod eq_slots;
pub(crate) mod event_queue;
pub(crate) mod handler;
pub(crate) mod listeners;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    fabric::Fabric,
    kfi::{
        fid::Fid,
        provider::{
            queue,
            wait_source::WaitWith,
            WaitAttr, //
        }, //
    },
    wait_set::WaitSet, //
};

/// A queue of entries that threads wait for, maybe through a wait set.
pub(crate) type Queue<T> = queue::Queue<T, WaitSet>;

/// Takes the wait object that was asked for; a wait set must be of the same fabric (R-CNTR-13).
pub(crate) fn wait_with(
    attr: WaitAttr<'_>,
    fabric: &Arc<Fid<Fabric>>,
) -> Result<WaitWith<WaitSet>> {
    WaitWith::new(attr, |set: &WaitSet| Arc::ptr_eq(set.fabric(), fabric))
}
