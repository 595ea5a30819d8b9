// SPDX-License-Identifier: GPL-2.0

//! Requests about event queues.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    any,
    context,
    has_attr,
    number,
    opened,
    result,
    wait_set,
    Argument, //
};
use crate::{
    abi,
    kfi::consumer::{
        EventQueue,
        EventQueueAttr,
        Fabric, //
    },
    session::Session, //
};

/// Opens an event queue.
pub(super) fn eq_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqOpen = argument.read()?;
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    let context = context(request.context)?;
    let set = wait_set(session, request.wait_set)?;
    let attr = if has_attr(request.flags)? {
        Some(EventQueueAttr {
            size: usize::try_from(request.size)?,
            flags: request.attr_flags,
            wait_obj: request.wait_obj,
            wait_set: any(&set)?,
            signaling_vector: request.signaling_vector,
        })
    } else {
        None
    };
    opened(
        session,
        || EventQueue::open(&fabric, attr, context, false),
        |result, handle| {
            request.result = result;
            request.eq = handle;
            argument.write(&request)
        },
    )
}

/// Reads a request about an event and checks it.
fn eq_request(argument: Argument) -> Result<abi::EqEvent> {
    let request: abi::EqEvent = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    if request.len > abi::KFI_SHIM_EVENT_MAX {
        return Err(E2BIG);
    }
    Ok(request)
}

/// Takes an event out.
pub(super) fn eq_read(session: ArcBorrow<'_, Session>, argument: Argument, sleep: bool) -> Result {
    let mut request = eq_request(argument)?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    let len = usize::try_from(request.len)?;
    request.data.fill(0);
    let data = request.data.get_mut(..len).ok_or(E2BIG)?;
    match eq.read(data, request.flags, sleep.then_some(request.timeout)) {
        Ok((event, len)) => {
            request.event = event;
            request.result = number(Ok(len));
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Adds an event.
pub(super) fn eq_write(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = eq_request(argument)?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    let data = request.data.get(..usize::try_from(request.len)?);
    let data = data.ok_or(E2BIG)?;
    request.result = number(eq.write(request.event, data, request.flags));
    argument.write(&request)
}

/// Takes an error out of an event queue.
pub(super) fn eq_readerr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqError = argument.read_for_update()?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    match eq.readerr() {
        Ok((error, len)) => {
            request.result = number(Ok(len));
            request.context = error.context.addr() as u64;
            request.data = error.data;
            request.err = error.err;
            request.prov_errno = error.prov_errno;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Adds an error to an event queue, as the software provider lets tests do.
pub(super) fn eq_write_error(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqError = argument.read_for_update()?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    let entry = abi::EqErrEntry {
        context: context(request.context)?.as_raw(),
        data: request.data,
        err: request.err,
        prov_errno: request.prov_errno,
        ..pin_init::zeroed()
    };
    request.result = result(eq.write_error(&entry));
    argument.write(&request)
}
