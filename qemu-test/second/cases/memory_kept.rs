// SPDX-License-Identifier: GPL-2.0

//! Memory of operations is not kept without a promise: nobody knows when the consumer hears of the
//! end, and frees it.

use kernel::prelude::*;

use crate::kfi::{
    memory::{
        Local,
        Memory,
        Source,
        SourceBuffers, //
    },
    provider::Operation, //
};

fn post(operation: Operation<'_>) -> Result {
    match operation.local {
        Local::Source(source) => {
            #[cfg(wrong)]
            {
                source.capture(GFP_NOWAIT)?; //~ E0133
                source.copy(GFP_NOWAIT)?; //~ E0133
            }
            source.len()?;
        }
        Local::Target(target) => {
            #[cfg(wrong)]
            target.capture(GFP_NOWAIT)?; //~ E0133
            target.len()?;
        }
    }
    Ok(())
}

fn keep(kept: &mut Option<SourceBuffers<'static>>, operation: Operation<'_>) {
    if let Local::Source(source) = operation.local {
        #[cfg(wrong)]
        kept.replace(source); //~ E0521
    }
}

fn invent() {
    #[cfg(wrong)]
    let _ = SourceBuffers::one(core::ptr::null(), 1); //~ E0624
    let _ = Memory::<Source>::NONE;
}
