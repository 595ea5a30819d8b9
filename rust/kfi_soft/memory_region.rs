// SPDX-License-Identifier: GPL-2.0

//! Memory regions: not implemented yet. To register memory answers `ENOSYS`, see [`Domain`], so
//! there is none.
//!
//! [`Domain`]: crate::domain::Domain

#![deny(unsafe_code)]

use crate::kfi::{
    fid::Object,
    provider::{
        MemoryRegionClass,
        MemoryRegionOps, //
    }, //
};

/// A memory region.
pub(crate) enum MemoryRegion {}

impl Object for MemoryRegion {
    type Class = MemoryRegionClass;

    fn release(&self) {
        match *self {}
    }
}

impl MemoryRegionOps for MemoryRegion {}
