// SPDX-License-Identifier: GPL-2.0

//! Faults on demand, for the sake of consumers.

#![forbid(unsafe_code)]

pub(crate) mod files;
pub(crate) mod injector;
pub(crate) mod knob;
pub(crate) mod replay;
