// SPDX-License-Identifier: GPL-2.0

//! A device that is told is one that is counted.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::linux::dma_device::DmaDevice;

fn device(lasting: &Arc<DmaDevice>) -> Result<Arc<DmaDevice>> {
    #[cfg(wrong)]
    return DmaDevice::new(c"gone"); //~ E0308
    #[cfg(not(wrong))]
    Ok(lasting.clone())
}
