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

use kfi::{
    linux::live::rooted_module,
    provider::Registration, //
};
use provider::Second;

rooted_module! {
    root: Registration<Second>,
    name: "kfi_second",
    authors: ["kfabric-rs authors"],
    description: "A second provider of kfabric, for tests",
    license: "GPL",
}
