// SPDX-License-Identifier: GPL-2.0

//! The public API for consumers in Rust.
//!
//! Objects close when they are dropped. Who wants to know whether that succeeds closes explicitly:
//! an object with dependents refuses and is given back. Dependents must therefore go first.

mod completion_queue;
mod counter;
mod domain;
mod event_queue;
mod fabric;
mod object;
mod poll_set;
mod wait_set;

pub(crate) use completion_queue::{
    CompletionQueue,
    CompletionQueueAttr, //
};
pub(crate) use counter::{
    Counter,
    CounterAttr, //
};
pub(crate) use domain::Domain;
pub(crate) use event_queue::{
    EventQueue,
    EventQueueAttr, //
};
pub(crate) use fabric::{
    getinfo,
    Fabric, //
};
pub(crate) use object::{
    close,
    AnyObject,
    Closable,
    HasWaitQueue,
    Listener, //
};
pub(crate) use poll_set::PollSet;
pub(crate) use wait_set::WaitSet;

use kernel::prelude::*;

use super::bindings;

/// Returns the version of the API that the core implements, major in the upper, minor in the lower
/// 16 bits.
pub(crate) fn version() -> u32 {
    // SAFETY: Callable from any context.
    unsafe { bindings::kfi_version() }
}
