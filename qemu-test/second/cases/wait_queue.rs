// SPDX-License-Identifier: GPL-2.0

//! A wait queue that is told lives as long as the object.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    kfi::{
        control::Control,
        fid::Fid,
        linux::wait_queue::WaitQueue, //
    },
    provider::Counter, //
};

fn control<'a>(
    _this: &'a Fid<Counter>,
    command: Control<'a>,
    lasting: &'a WaitQueue,
    other: Arc<WaitQueue>,
) -> Result {
    if let Control::GetWait(out) = command {
        #[cfg(wrong)]
        out.set(&other); //~ E0597
        #[cfg(not(wrong))]
        out.set(lasting);
    }
    Ok(())
}
