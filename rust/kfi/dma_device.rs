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
    faux,
    prelude::*,
    str::CStr, //
};

/// A device that reaches all memory; dropped, which may sleep, it is gone.
///
/// # Invariants
///
/// The device's DMA masks are those of 64 bits.
pub(crate) struct DmaDevice(faux::Registration);

impl DmaDevice {
    /// Registers a device.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        let device = faux::Registration::new(name, None)?;
        let raw = Self::raw(&device).as_ptr();
        // As dma_coerce_mask_and_coherent() does. On machines without an IOMMU, and with no limit
        // of the device, there is nothing that could object.
        // SAFETY: The device stays, and nobody else knows it yet.
        unsafe {
            (*raw).coherent_dma_mask = u64::MAX;
            (*raw).dma_mask = &raw mut (*raw).coherent_dma_mask;
        }
        // INVARIANT: The masks have just been set.
        Ok(Self(device))
    }

    /// Returns the device as C knows it.
    fn raw(device: &faux::Registration) -> NonNull<bindings::device> {
        let device: &faux::Device<Bound> = device.as_ref();
        let device: &Device<Bound> = device.as_ref();
        // `Device` is a transparent wrapper of the structure.
        NonNull::from(device).cast()
    }

    /// Returns the device for C.
    pub(crate) fn pointer(&self) -> DevicePointer {
        DevicePointer(Self::raw(&self.0).as_ptr())
    }
}

/// A device for C, who may use it as long as whoever handed it out says.
#[derive(Clone, Copy)]
pub(crate) struct DevicePointer(*mut bindings::device);

impl DevicePointer {
    /// Returns the pointer.
    pub(super) fn as_raw(self) -> *mut bindings::device {
        self.0
    }
}
