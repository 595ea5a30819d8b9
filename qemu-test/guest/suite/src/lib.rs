// SPDX-License-Identifier: GPL-2.0

//! Conformance suite of kfabric over `/dev/kfi`.
//!
//! A test is a function with a name, `area/what` or `area/case-NN-what`, where
//! the number only tells cases apart, and the requirements that it shows
//! (`Documentation/requirements.md`). Tests of one area are in one file under `tests/`, with a table of
//! them at the top ([`tests!`]). [`harness`] runs each in a child process of its
//! own, so that a crash, a hang or a killed process is a failed test and
//! nothing worse; [`report`] prints KTAP or something for people.
//!
//! No test asserts that something takes less than some time. That nothing happens
//! before its time is asserted strictly; a wait that takes too long runs into
//! the time limit of the test.

// Results are handed on to be judged.
#![allow(clippy::needless_pass_by_value)]

pub mod check;
pub mod child;
pub mod ends;
pub mod env;
pub mod exchange;
pub mod failing;
pub mod filter;
pub mod fuzz;
pub mod harness;
pub mod kernel_log;
pub mod knobs;
pub mod raw;
pub mod report;
pub mod requests;
pub mod rig;
pub mod sleeper;
pub mod tests;
