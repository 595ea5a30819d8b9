// SPDX-License-Identifier: GPL-2.0

//! A hold that ends with a use of the object is used once.

use kernel::prelude::*;

use crate::{
    kfi::{
        fid::Fid,
        hold::HoldOnce, //
    },
    provider::Counter, //
};

fn hold(counter: &Fid<Counter>) -> Result {
    let hold = HoldOnce::new(counter)?;
    hold.use_last(|_| ());
    #[cfg(wrong)]
    hold.use_last(|_| ()); //~ E0382
    Ok(())
}
