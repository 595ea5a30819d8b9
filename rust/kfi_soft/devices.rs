// SPDX-License-Identifier: GPL-2.0

//! The devices of the NICs, which consumers of kcxi want to map memory for.

#![deny(unsafe_code)]

use kernel::prelude::*;

use crate::{
    kfi::dma_device::{
        DevicePointer,
        DmaDevice, //
    },
    nic::Nic,
    personality::{
        self,
        Personality, //
    },
    DEVICES, //
};

/// The devices, by number of NIC.
pub(crate) type List = KVec<DmaDevice>;

/// Says that the devices are there; dropped, they are gone.
pub(crate) struct Devices(());

impl Devices {
    /// Registers the devices, as far as the personality has any.
    pub(crate) fn new() -> Result<Self> {
        // What fails below takes back what was done.
        let this = Self(());
        if personality::current() == Personality::Kcxi {
            for nic in Nic::all() {
                let device = DmaDevice::new(&nic.name()?)?;
                DEVICES.lock().push(device, GFP_KERNEL)?;
            }
        }
        Ok(this)
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        let list = core::mem::replace(&mut *DEVICES.lock(), List::new());
        // Outside of the lock.
        drop(list);
    }
}

/// Returns the device of a NIC, which stays while the module does.
pub(crate) fn find(nic: Nic) -> Option<DevicePointer> {
    let at = usize::try_from(nic.number()).ok()?;
    Some(DEVICES.lock().get(at)?.pointer())
}
