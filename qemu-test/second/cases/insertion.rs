// SPDX-License-Identifier: GPL-2.0

//! How many addresses an insertion has, and where its results go, is the consumer's; so is all of it
//! when the end is told, which is told once. An event names an object, of the class that it is about.

use kernel::prelude::*;

use crate::kfi::{
    context::Context,
    fid::{
        Fid,
        Object, //
    },
    flags::InsertFlags,
    provider::{
        AddressVectorClass,
        Event,
        EventError,
        Insertion,
        MemoryRegionClass,
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

fn end(
    vector: &Fid<impl Object<Class = AddressVectorClass>>,
    mut insertion: Insertion<'_>,
) -> Event {
    let (addresses, mut results) = insertion.split();
    results.set(0, Err(EINVAL));
    #[cfg(wrong)]
    let event = Event::av_complete(vector, insertion.end(), 0); //~ E0505
    #[cfg(not(wrong))]
    let event = Event::av_complete(vector, insertion.end(), 0);
    #[cfg(wrong)]
    {
        results.set(0, Err(EINVAL));
        let _ = addresses;
    }
    event
}

fn end_without(
    vector: &Fid<impl Object<Class = AddressVectorClass>>,
    region: &Fid<impl Object<Class = MemoryRegionClass>>,
    context: Context,
) -> Event {
    #[cfg(wrong)]
    return Event::av_complete(vector, context, 0); //~ E0308
    #[cfg(not(wrong))]
    Event::mr_complete(region, 0)
}

fn end_twice(
    vector: &Fid<impl Object<Class = AddressVectorClass>>,
    insertion: Insertion<'_>,
) -> Event {
    let ended = insertion.end();
    #[cfg(wrong)]
    let _ = Event::av_complete(vector, ended, 0);
    #[cfg(wrong)]
    return Event::av_complete(vector, ended, 0); //~ E0382
    #[cfg(not(wrong))]
    Event::av_complete(vector, ended, 0)
}

fn name_what_is_none(
    vector: &Fid<impl Object<Class = AddressVectorClass>>,
    context: Context,
) -> EventError {
    #[cfg(wrong)]
    {
        let _ = Event::mr_complete(context, 0); //~ E0308
        let _ = Event::mr_complete(vector, 0); //~ E0271
        let _ = EventError::new(context, context, 0, EINVAL); //~ E0308
    }
    let mut error = EventError::new(vector, context, 0, EINVAL);
    error.prov_errno = 1;
    #[cfg(wrong)]
    {
        error.fid = context; //~ E0616
    }
    error
}
