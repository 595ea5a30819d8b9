// SPDX-License-Identifier: GPL-2.0

//! An area of user space's memory is mapped once.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::kfi::linux::file::{
    Area,
    Mappable, //
};

fn map<T: Mappable>(area: Area<'_>, memory: Arc<T>) -> Result {
    #[cfg(wrong)]
    area.map(memory.clone(), 0)?;
    area.map(memory, 0) //~ E0382
}
