// SPDX-License-Identifier: GPL-2.0

//! Memory of operations is had by the types that give it back for the right to tell the end, and
//! taken once.

use kernel::prelude::*;

use crate::kfi::{
    memory::{
        Local,
        Memory,
        Source,
        SourceBuffers, //
    },
    provider::{
        Incoming,
        Lasting,
        Operation,
        Outgoing, //
    }, //
};

fn post(operation: Operation<'_>) -> Result {
    match operation.local() {
        Local::Source(source) => {
            #[cfg(wrong)]
            {
                source.capture(GFP_NOWAIT, None)?; //~ E0624
                source.copy(GFP_NOWAIT)?; //~ E0624
            }
            source.len()?;
        }
        Local::Target(target) => {
            #[cfg(wrong)]
            target.capture(GFP_NOWAIT, None)?; //~ E0624
            target.len()?;
        }
    }
    Ok(())
}

fn exchange(one: &mut Operation<'_>, other: Operation<'_>) {
    #[cfg(wrong)]
    {
        one.local = other.local(); //~ E0616
        one.context = other.context(); //~ E0616
        one.inject = false; //~ E0616
        one.flags = other.flags(); //~ E0616
        one.kind = other.kind(); //~ E0616
    }
}

fn take_twice(operation: Operation<'_>) -> Result<(Incoming, Incoming)> {
    let one = Incoming::take(operation, GFP_NOWAIT)?;
    #[cfg(wrong)]
    let other = Incoming::take(operation, GFP_NOWAIT)?; //~ E0382
    #[cfg(not(wrong))]
    let other = return Err(EINVAL);
    Ok((one, other))
}

fn outlive(kept: &mut Option<Outgoing<'static>>, operation: Operation<'_>) -> Result {
    let memory = Outgoing::take(operation, GFP_NOWAIT, None)?;
    #[cfg(wrong)]
    kept.replace(memory); //~ E0521
    Ok(())
}

fn keep(kept: &mut Option<SourceBuffers<'static>>, operation: Operation<'_>) {
    if let Local::Source(source) = operation.local() {
        #[cfg(wrong)]
        kept.replace(source); //~ E0521
    }
}

fn invent() {
    #[cfg(wrong)]
    let _ = SourceBuffers::one(core::ptr::null(), 1); //~ E0624
    let _ = Memory::<Source>::NONE;
}
