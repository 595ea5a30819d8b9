// SPDX-License-Identifier: GPL-2.0

//! Requests about poll sets.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use super::{
    clear,
    has_attr,
    number,
    opened,
    result,
    Argument, //
    ARRAY_MAX,
};
use crate::{
    abi,
    estimate,
    kfi::{
        consumer::{
            Domain,
            PollSet, //
        },
        context::Context, //
    },
    session::Session, //
};

/// Opens a poll set.
pub(super) fn poll_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::PollOpen = argument.read()?;
    let flags = has_attr(request.flags)?.then_some(request.attr_flags);
    let domain = Session::get::<Domain>(session, request.domain)?;
    opened(
        session,
        0,
        estimate::OBJECT,
        |_| match flags {
            None => PollSet::open_null(&domain),
            Some(flags) => PollSet::open(&domain, flags),
        },
        |result, handle| {
            request.result = result;
            request.poll_set = handle;
            argument.write(&request)
        },
    )
}

/// Adds a member to a poll set.
pub(super) fn poll_add(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::PollMember = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let set = Session::get::<PollSet>(session, request.poll_set)?;
    let object = Session::any(session, request.member)?;
    let member = object.any().ok_or(EINVAL)?;
    let place = set.take_place()?;
    let added = session.add_member(request.poll_set, request.member, place, || {
        set.add(member, request.flags)
    })?;
    request.result = result(added);
    argument.write(&request)
}

/// Removes a member from a poll set.
pub(super) fn poll_del(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::PollMember = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let set = Session::get::<PollSet>(session, request.poll_set)?;
    let object = Session::any(session, request.member)?;
    let member = object.any().ok_or(EINVAL)?;
    let removed = session.remove_member(request.poll_set, request.member, || {
        set.del(member, request.flags)
    });
    request.result = result(removed);
    argument.write(&request)
}

/// Asks a poll set for events.
pub(super) fn poll(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Poll = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let room = usize::try_from(request.count).unwrap_or(0);
    if room > ARRAY_MAX {
        return Err(E2BIG);
    }
    let set = Session::get::<PollSet>(session, request.poll_set)?;
    if request.contexts == 0 {
        request.result = number(set.poll_null(request.count));
        return argument.write(&request);
    }
    let ptr = UserPtr::from_addr(usize::try_from(request.contexts)?);
    // Before anything is taken that could not be delivered.
    let size = room * size_of::<u64>();
    clear(ptr, size)?;
    let mut writer = UserSlice::new(ptr, size).writer();
    let _charge = session.charge_arrays(room, size_of::<Context>())?;
    let mut contexts = KVVec::with_capacity(room, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    for _ in 0..room {
        contexts.push(Context::NONE, GFP_KERNEL_ACCOUNT)?;
    }
    let polled = set.poll(&mut contexts, request.count);
    for context in contexts.iter().take(polled.unwrap_or(0)) {
        // An address stands for a number, or for nothing if its object is gone by now.
        writer.write(&session.contexts().number_of(context.as_number()))?;
    }
    request.result = number(polled);
    argument.write(&request)
}
