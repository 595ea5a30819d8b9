// SPDX-License-Identifier: GPL-2.0

//! How long the addresses of a vector are follows from its domain, and is what it was when the vector was
//! opened.

use crate::kfi::{
    addr::AddressFormat,
    fid::{
        Fid,
        Opening, //
    },
    provider::{
        AddressVectorClass,
        AddressVectorOps, //
    }, //
};

fn av_open(opening: &mut Opening<'_, AddressVectorClass>) {
    #[cfg(wrong)]
    {
        opening.data = Default::default(); //~ E0616
    }
}

fn change<T: AddressVectorOps>(this: &Fid<T>) {
    #[cfg(wrong)]
    let _ = this.data(); //~ E0624
}
