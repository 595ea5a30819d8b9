// SPDX-License-Identifier: GPL-2.0

//! Parts of the operating system that a test of a kernel needs and the standard
//! library does not have: forks, signals to one thread, mappings that end where
//! they should, keys, and a look at whether a thread sleeps.
//!
//! [`sys`] has all unsafe code of this crate.

pub mod key;
pub mod memory;
pub mod process;
pub mod signal;
pub mod sys;
pub mod thread;
