// SPDX-License-Identifier: GPL-2.0

//! A second provider in safe code.
//!
//! As a module it does what the compiler cannot forbid: see the tests `second/*`. And it is what the
//! files in `cases` are compiled with, each of which shows something that a provider in safe code
//! could do to the kernel, if it compiled.

#[cfg(cases)]
mod cases;
#[path = "../../rust/kfi/kfi.rs"]
pub mod kfi;
mod provider;

use kernel::prelude::*;

use kfi::{
    linux::live::Rooted,
    provider::Registration, //
};
use provider::Second;

module! {
    type: Rooted<Registration<Second>>,
    name: "kfi_second",
    authors: ["kfabric-rs authors"],
    description: "A second provider of kfabric, for tests",
    license: "GPL",
}
