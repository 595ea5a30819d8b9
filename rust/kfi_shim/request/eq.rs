// SPDX-License-Identifier: GPL-2.0

//! Requests about event queues.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    any,
    number,
    opened_by,
    optional_any,
    queue_flags,
    result,
    Argument, //
};
use crate::{
    abi,
    estimate,
    kfi::consumer::{
        is_address,
        Event,
        EventQueue,
        EventQueueAttr,
        Fabric,
        First, //
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
    let set = optional_any(session, request.wait_set)?;
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
    let handler = handler.then_some(request.context);
    let contexts = session.contexts();
    opened_by(
        session,
        request.context,
        estimate::queue(attr.map_or(0, |attr| attr.size)),
        |context, _| match attr {
            None => EventQueue::open_null(&fabric, context, contexts, handler),
            attr => EventQueue::open(&fabric, attr, context, contexts, handler),
        },
        |result, handle, _| {
            request.result = result;
            request.eq = handle;
            argument.write(&request)
        },
    )
}

/// The size of pointers in an entry of an event.
const WORD: usize = size_of::<usize>();

/// Where `data` of `struct kfi_eq_entry` lies.
const DATA: usize = 2 * WORD;

/// Takes the pointers out of the entry of an event; returns the handle of the object that it is
/// about, 0 if that is not known.
///
/// An entry that user space has written begins with what stands for a number, and the rest is
/// its own. All others are entries of the provider: an object, and then a context and a number, or
/// what belongs to a connection.
fn translate(session: &Session, event: &Event, data: &mut [u8]) -> u32 {
    let First::Object(address) = event.first else {
        return 0;
    };
    let contexts = session.contexts();
    let object = session.handle_of(address).unwrap_or(0);
    set_word(data, 0, object.into());
    let connection = matches!(
        event.event,
        abi::KFI_CONNREQ | abi::KFI_CONNECTED | abi::KFI_SHUTDOWN
    );
    if connection {
        // A description that user space cannot have, and then data of the peer.
        set_word(data, WORD, 0);
        return object;
    }
    for at in (WORD..data.len()).step_by(WORD) {
        let word = data.get(at..).and_then(|rest| rest.first_chunk::<WORD>());
        let Some(word) = word.map(|bytes| usize::from_ne_bytes(*bytes)) else {
            break;
        };
        // Only a context by the API is looked up: a user that could have a number of its own
        // looked up would find out where structures of the kernel lie.
        match at {
            WORD => set_word(data, at, contexts.number_of(word)),
            DATA if is_number(event) => {}
            _ if is_address(word) => set_word(data, at, 0),
            _ => {}
        }
    }
    object
}

/// Returns whether the last word of an entry is a number, as user space has given it or is told it
/// elsewhere, too: the key of a region, or how many addresses were inserted.
fn is_number(event: &Event) -> bool {
    matches!(event.event, abi::KFI_MR_COMPLETE | abi::KFI_AV_COMPLETE)
}

/// Changes a pointer in an entry.
fn set_word(data: &mut [u8], at: usize, value: u64) {
    let rest = data.get_mut(at..).unwrap_or(&mut []);
    if let (Some(bytes), Ok(value)) = (rest.first_chunk_mut::<WORD>(), usize::try_from(value)) {
        *bytes = value.to_ne_bytes();
    }
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
    request.object = 0;
    request.data.fill(0);
    let data = request.data.get_mut(..len).ok_or(E2BIG)?;
    match eq.read(data, request.flags, sleep.then_some(request.timeout)) {
        Ok(event) => {
            let data = data.get_mut(..event.len).ok_or(EIO)?;
            request.object = translate(&session, &event, data);
            request.event = event.event;
            request.result = number(Ok(event.len));
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Adds an event.
pub(super) fn eq_write(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = eq_request(argument)?;
    let eq = Session::get::<EventQueue>(session, request.eq)?;
    let len = usize::try_from(request.len)?;
    let data = request.data.get(..len).ok_or(E2BIG)?;
    let written = eq.write(request.event, data, request.flags)?;
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
        Ok(error) => {
            request.result = number(Ok(error.len));
            request.context = error.context;
            request.object = session.handle_of(error.object).unwrap_or(0);
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
    let (context, data) = (request.context, request.data);
    let written = eq.write_error(context, data, request.err, request.prov_errno)?;
    request.result = result(written);
    argument.write(&request)
}
