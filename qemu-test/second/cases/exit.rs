// SPDX-License-Identifier: GPL-2.0

//! The abstractions see to it that the module, when it ends, waits for what is left of it.

#[cfg(wrong)]
use crate::kfi::linux::live::Exit; //~ E0603
use crate::LocalModule;

fn end(module: LocalModule) {
    #[cfg(wrong)]
    core::mem::forget(module.exit); //~ E0616
}
