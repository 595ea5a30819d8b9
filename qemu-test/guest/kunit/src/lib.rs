// SPDX-License-Identifier: GPL-2.0

//! The kernel's attribute for unit tests, in user space.

use proc_macro::TokenStream;

/// Lets the unit tests of a file of the kernel be those of a crate in user space.
#[proc_macro_attribute]
pub fn kunit_tests(_name: TokenStream, tests: TokenStream) -> TokenStream {
    let only: TokenStream = "#[cfg(test)]".parse().expect("an attribute");
    only.into_iter().chain(tests).collect()
}
