// SPDX-License-Identifier: GPL-2.0

//! What is used once does not become `Copy` by code of the crate that sees none of its fields, and what
//! keeps it from that has no name there.

use crate::kfi::{
    fid::Opening,
    linux::file::Area,
    memory::region::RegionBuffers,
    provider::{
        Answer,
        Completion,
        Counted,
        CounterClass,
        Ended,
        Inserted,
        Insertion,
        Operation,
        RawKey,
        Results,
        Trigger, //
    }, //
};

#[cfg(wrong)]
use crate::kfi::linux::linear::Linear; //~ E0603

/// Makes copies of a type, if the compiler lets it.
macro_rules! copy {
    ($($type:ty),*) => { $(
        impl Clone for $type {
            fn clone(&self) -> Self {
                loop {}
            }
        }
        impl Copy for $type {}
    )* };
}

// Of what is in an operation it may be copied.
copy!(Trigger<'_>);
#[cfg(copied)]
mod copied {
    use super::*;

    copy!(Answer<'_>); //~ E0204
    copy!(Area<'_>); //~ E0204
    copy!(Completion); //~ E0204
    copy!(Counted); //~ E0204
    copy!(Ended); //~ E0204
    copy!(Inserted); //~ E0204
    copy!(Insertion<'_>); //~ E0204
    copy!(Opening<'_, CounterClass>); //~ E0204
    copy!(Operation<'_>); //~ E0204
    copy!(RawKey<'_>); //~ E0204
    copy!(RegionBuffers<'_>); //~ E0204
    copy!(Results<'_>); //~ E0204
}
