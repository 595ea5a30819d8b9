// SPDX-License-Identifier: GPL-2.0

//! Only an object that has functions for names is one that has a name.

use kernel::prelude::*;

use crate::kfi::consumer::{
    Counter,
    HasName, //
};

struct Unnamed(Counter);

#[cfg(wrong)]
impl HasName for Unnamed {} //~ E0200

fn name(unnamed: &Unnamed, named: &impl HasName, addr: &mut [u8]) -> Result<u64> {
    named.getname(addr).0?;
    Ok(unnamed.0.read())
}
