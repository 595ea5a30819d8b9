// SPDX-License-Identifier: GPL-2.0

//! That the module ends with waiting for what is left of it only its root promises.

use crate::kfi::live::Exit;

fn exit() -> Option<Exit> {
    #[cfg(wrong)]
    return Some(Exit::new()); //~ E0133
    #[cfg(not(wrong))]
    None
}
