// SPDX-License-Identifier: GPL-2.0

//! Nothing changes how many completions a receive has without the client's knowledge, which keeps its
//! context until the last.

use kernel::prelude::*;

use crate::kfi::{
    consumer::Endpoint,
    flags::OpFlags, //
};

fn change(ep: &Endpoint, flags: OpFlags) -> Result {
    #[cfg(wrong)]
    (**ep).set_ops_flag(flags)?; //~ E0624
    ep.set_ops_flag(flags)
}
