// SPDX-License-Identifier: GPL-2.0

//! How many addresses an insertion has, and where its results go, is the consumer's; so is all of it
//! when the end is told.

use kernel::prelude::*;

use crate::kfi::{
    flags::InsertFlags,
    provider::{
        Event,
        Insertion,
        Results, //
    }, //
};

fn insert(insertion: &mut Insertion<'_>, results: &mut Results<'_>) -> usize {
    #[cfg(wrong)]
    {
        results.count = usize::MAX; //~ E0616
        results.flags = InsertFlags::SYNC_ERR; //~ E0616
        insertion.results.context = insertion.context(); //~ E0616
    }
    insertion.count()
}

fn end(mut insertion: Insertion<'_>) -> Event {
    let context = insertion.context();
    let (addresses, mut results) = insertion.split();
    results.set(0, Err(EINVAL));
    #[cfg(wrong)]
    let event = Event::av_complete(context, &insertion.end(), 0); //~ E0505
    #[cfg(not(wrong))]
    let event = Event::av_complete(context, &insertion.end(), 0);
    #[cfg(wrong)]
    {
        results.set(0, Err(EINVAL));
        let _ = addresses;
    }
    event
}

fn end_without(context: crate::kfi::context::Context) -> Event {
    #[cfg(wrong)]
    return Event::av_complete(context, &context, 0); //~ E0308
    #[cfg(not(wrong))]
    Event::mr_complete(context, context, 0)
}
