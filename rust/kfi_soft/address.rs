// SPDX-License-Identifier: GPL-2.0

//! Addresses: of NICs and ports, how they are written, and the vectors in which consumers keep them.

#![forbid(unsafe_code)]

pub(crate) mod auth_key;
pub(crate) mod native;
pub(crate) mod place;
pub(crate) mod vector;
