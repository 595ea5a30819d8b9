// SPDX-License-Identifier: GPL-2.0

//! The edge of the core: the functions that it exports, and what C hands to them.

pub(crate) mod answer;
pub(crate) mod exported;
pub(crate) mod fabric;
pub(crate) mod info;
pub(crate) mod installed;
pub(crate) mod provider;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod trace;
