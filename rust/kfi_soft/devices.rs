// SPDX-License-Identifier: GPL-2.0

//! The devices of the NICs, which consumers map memory for.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kfi::linux::dma_device::DmaDevice,
    nic::Nic,
    personality::{
        self,
        Personality, //
    },
    DEVICES, //
};

/// The devices, by number of NIC.
pub(crate) type DeviceList = KVec<Arc<DmaDevice>>;

/// Says that the devices are there; dropped, they are gone.
pub(crate) struct Devices(());

impl Devices {
    /// Registers the devices. On a machine that has none for us only kcxi is refused: others ask for
    /// a device if they want one.
    pub(crate) fn new() -> Result<Self> {
        // A failure below undoes what was done.
        let this = Self(());
        match Self::register() {
            Err(EOPNOTSUPP) => {
                pr_err!(
                    "memory that is mapped for DMA does not stay where it is on this machine\n"
                );
                match personality::current() {
                    Personality::Soft => Ok(this),
                    Personality::Kcxi => Err(EOPNOTSUPP),
                }
            }
            ret => ret.map(|()| this),
        }
    }

    /// Registers a device for each NIC.
    fn register() -> Result {
        for nic in Nic::all() {
            let device = Arc::new(DmaDevice::new(&nic.name()?)?, GFP_KERNEL)?;
            DEVICES.lock().push(device, GFP_KERNEL)?;
        }
        Ok(())
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        let list = core::mem::replace(&mut *DEVICES.lock(), DeviceList::new());
        // Outside of the lock.
        drop(list);
    }
}

/// Returns the device of a NIC.
pub(crate) fn find(nic: Nic) -> Option<Arc<DmaDevice>> {
    DEVICES.lock().get(nic.index()).cloned()
}
