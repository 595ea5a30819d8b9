// SPDX-License-Identifier: GPL-2.0

//! A device to map memory for, where there is no hardware.
//!
//! C header: [`include/linux/dma-mapping.h`](srctree/include/linux/dma-mapping.h).

use core::ptr::NonNull;
use kernel::{
    bindings,
    device::{
        Bound,
        Device, //
    },
    error::to_result,
    faux,
    prelude::*,
    str::CStr, //
};

use super::bindings as own_bindings;

/// A device whose DMA is the copying of the CPU, from and to the pages that were mapped; dropped,
/// which may sleep, it is gone.
///
/// # Invariants
///
/// Memory that is mapped for the device is neither bounced nor flushed.
pub struct DmaDevice(faux::Registration);

impl DmaDevice {
    /// Registers a device; `EOPNOTSUPP` if this machine does not leave memory that was mapped alone.
    pub fn new(name: &CStr) -> Result<Self> {
        // For any failure the kernel crate says that there is no device: it was memory, as
        // nobody else has the name.
        let device = faux::Registration::new(name, None).map_err(|_| ENOMEM)?;
        // SAFETY: The device stays during the call, and nobody else knows it yet.
        to_result(unsafe { own_bindings::setup_dma_of_cpu(Self::raw(&device).as_ptr()) })?;
        // INVARIANT: It has just been set up so.
        Ok(Self(device))
    }

    /// Returns the device as C knows it.
    fn raw(device: &faux::Registration) -> NonNull<bindings::device> {
        let device: &faux::Device<Bound> = device.as_ref();
        let device: &Device<Bound> = device.as_ref();
        // `Device` is a transparent wrapper of the structure.
        NonNull::from(device).cast()
    }

    /// Returns the device for C, which may use it as long as this stays.
    pub fn as_raw(&self) -> *mut bindings::device {
        Self::raw(&self.0).as_ptr()
    }
}
