// SPDX-License-Identifier: GPL-2.0

//! The public API for consumers in Rust.
//!
//! Objects close when they are dropped. Who wants to know whether that succeeds closes explicitly:
//! an object with dependents refuses and is given back. Dependents must therefore go first.

mod counter;
mod domain;
mod fabric;
mod object;

pub(crate) use counter::{
    AsWaitSet,
    Counter,
    CounterAttr,
    Listener, //
};
pub(crate) use domain::Domain;
pub(crate) use fabric::{
    getinfo,
    Fabric, //
};
pub(crate) use object::{
    close,
    Closable, //
};

use kernel::prelude::*;

use super::bindings;

/// Returns the version of the API that the core implements, major in the upper, minor in the lower
/// 16 bits.
pub(crate) fn version() -> u32 {
    // SAFETY: Callable from any context.
    unsafe { bindings::kfi_version() }
}
