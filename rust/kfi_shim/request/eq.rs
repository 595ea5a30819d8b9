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
    number,
    opened,
    queue_flags,
    result,
    wait_set,
    Argument, //
};
use crate::{
    abi,
    kfi::consumer::{
        is_address,
        EventQueue,
        EventQueueAttr,
        Fabric,
        Wanted, //
    },
    session::Session, //
};

/// Opens an event queue.
pub(super) fn eq_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqOpen = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    let context = context(request.context)?;
    let set = wait_set(session, request.wait_set)?;
    let (with_attr, handler) = queue_flags(request.flags)?;
    let attr = if with_attr {
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
        || EventQueue::open(&fabric, attr, context, handler),
        |result, handle| {
            request.result = result;
            request.eq = handle;
            argument.write(&request)
        },
    )
}

/// The pointers that an entry of an event begins with.
const POINTER: usize = size_of::<usize>();

/// Returns the pointer at the start of an entry, or behind that; none if the entry is too short.
fn pointer(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..at.checked_add(POINTER)?)?;
    Some(usize::from_ne_bytes(bytes.try_into().ok()?))
}

/// Changes it.
fn set_pointer(data: &mut [u8], at: usize, value: usize) {
    if let Some(bytes) = data.get_mut(at..at.saturating_add(POINTER)) {
        bytes.copy_from_slice(&value.to_ne_bytes());
    }
}

/// Takes the pointers out of the entry of an event; returns the handle of the object that it is
/// about, 0 if that is not known.
fn translate(session: &Session, event: u32, data: &mut [u8], done: bool) -> Result<u32> {
    let Some(address) = pointer(data, 0) else {
        return Ok(0);
    };
    if !is_address(address) {
        return Ok(0);
    }
    // Something that user space has written?
    if let Some(number) = session.contexts().resolve(address, done) {
        set_pointer(data, 0, usize::try_from(number)?);
        return Ok(0);
    }
    let object = session.handle_of(address).unwrap_or(0);
    set_pointer(data, 0, usize::try_from(object)?);
    if matches!(
        event,
        abi::KFI_CONNREQ | abi::KFI_CONNECTED | abi::KFI_SHUTDOWN
    ) {
        // These have another one behind it.
        set_pointer(data, POINTER, 0);
    }
    Ok(object)
}

/// Reads a request about an event and checks it.
fn eq_request(argument: Argument) -> Result<abi::EqEvent> {
    let request: abi::EqEvent = argument.read_for_update()?;
    if request.reserved != 0 || request.reserved2 != 0 {
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
    request.object = 0;
    let data = request.data.get_mut(..len).ok_or(E2BIG)?;
    match eq.read(data, request.flags, sleep.then_some(request.timeout)) {
        Ok((event, len)) => {
            let data = data.get_mut(..len).ok_or(EIO)?;
            let done = request.flags & u64::from(abi::KFI_PEEK) == 0;
            request.object = translate(&session, event, data, done)?;
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
    // What looks like a pointer is found again when it is read.
    let contexts = session.contexts();
    let mut copy = request.data;
    let data = copy.get_mut(..usize::try_from(request.len)?).ok_or(E2BIG)?;
    let mut context = None;
    if let Some(address) = pointer(data, 0).filter(|address| is_address(*address)) {
        let noted = contexts.context(request.eq, address as u64, Wanted::Number, true)?;
        set_pointer(data, 0, noted.as_number());
        context = Some(noted);
    }
    let written = eq.write(request.event, data, request.flags);
    if let (Some(context), true) = (context, written.is_err()) {
        contexts.forget(context);
    }
    request.object = 0;
    request.result = number(written);
    argument.write(&request)
}

/// Takes an error out of an event queue.
pub(super) fn eq_readerr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EqError = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    request.object = 0;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    match eq.readerr() {
        Ok((error, len)) => {
            request.result = number(Ok(len));
            request.context = error.context.addr() as u64;
            request.object = session.handle_of(error.fid.addr()).unwrap_or(0);
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
    if request.reserved != 0 {
        return Err(EINVAL);
    }
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
