// SPDX-License-Identifier: GPL-2.0

//! How many addresses an insertion has, and where its results go, is the consumer's.

use crate::kfi::{
    flags::InsertFlags,
    provider::Insertion, //
};

fn insert(insertion: &mut Insertion<'_>) -> usize {
    #[cfg(wrong)]
    {
        insertion.count = usize::MAX; //~ E0616
        insertion.flags = InsertFlags::SYNC_ERR; //~ E0616
        insertion.context = insertion.context(); //~ E0616
    }
    insertion.count()
}
