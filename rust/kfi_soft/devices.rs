// SPDX-License-Identifier: GPL-2.0

//! The devices of the NICs, which consumers map memory for.
//!
//! A NIC that goes leaves its device to the next one in its place: consumers may have it yet when their
//! domain is closed, and there are no two devices of one name.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kfi::linux::dma_device::DmaDevice,
    limits,
    nic::Nic,
    personality::{
        self,
        Personality, //
    },
    DEVICES, //
};

/// The devices, by place: with all places while [`Devices`] is there.
pub(crate) type DeviceList = KVec<Option<Arc<DmaDevice>>>;

/// Says that the devices are there; dropped, they are gone.
pub(crate) struct Devices(());

impl Devices {
    /// Registers the devices. On a machine that has none for us only kcxi is refused: others ask for
    /// a device if they want one.
    pub(crate) fn new() -> Result<Self> {
        let places = usize::try_from(limits::MAX_NICS)?;
        let list = DeviceList::from_elem(None, places, GFP_KERNEL)?;
        *DEVICES.lock() = list;
        // A failure below undoes what was done.
        let this = Self(());
        for nic in Nic::all() {
            let added = add(nic);
            // Said once: it is the same for all NICs, also for those that come later.
            if matches!(added, Ok(false) | Err(EOPNOTSUPP)) {
                pr_err!(
                    "memory that is mapped for DMA does not stay where it is on this machine\n"
                );
            }
            if !added? {
                break;
            }
        }
        Ok(this)
    }
}

/// Registers the device of a NIC, unless its place has one; returns whether there is one. Where this
/// machine has none for us only kcxi is refused. By the thread that may change the NICs; may sleep.
pub(crate) fn add(nic: Nic) -> Result<bool> {
    if find(nic).is_some() {
        return Ok(true);
    }
    let registered = register(nic);
    may_do_without(personality::current(), registered)?;
    Ok(registered.is_ok())
}

/// Registers the device of a NIC.
fn register(nic: Nic) -> Result {
    let device = Arc::new(DmaDevice::new(&nic.name()?)?, GFP_KERNEL)?;
    // There is nothing in the place that would be dropped under the lock.
    *DEVICES.lock().get_mut(nic.index()).ok_or(ENODEV)? = Some(device);
    Ok(())
}

impl Drop for Devices {
    fn drop(&mut self) {
        let list = core::mem::replace(&mut *DEVICES.lock(), DeviceList::new());
        // Outside of the lock.
        drop(list);
    }
}

/// Returns what becomes of a provider whose devices were `registered` so.
fn may_do_without(personality: Personality, registered: Result) -> Result {
    match (personality, registered) {
        (Personality::Soft, Err(EOPNOTSUPP)) => Ok(()),
        (_, ret) => ret,
    }
}

/// Returns the device of a NIC.
pub(crate) fn find(nic: Nic) -> Option<Arc<DmaDevice>> {
    DEVICES.lock().get(nic.index())?.clone()
}

#[kunit_tests(kfi_soft_devices)]
mod tests {
    use super::*;

    /// Where memory that is mapped goes by way of other memory, consumers of kcxi would transfer what
    /// they do not mean: it is refused. Any other failure is one, whoever it is.
    #[test]
    fn kcxi_is_refused_where_memory_is_elsewhere() {
        let elsewhere = Err(EOPNOTSUPP);
        assert_eq!(may_do_without(Personality::Kcxi, elsewhere), elsewhere);
        assert_eq!(may_do_without(Personality::Soft, elsewhere), Ok(()));
        for personality in [Personality::Kcxi, Personality::Soft] {
            assert_eq!(may_do_without(personality, Err(ENOMEM)), Err(ENOMEM));
            assert_eq!(may_do_without(personality, Ok(())), Ok(()));
        }
    }
}
