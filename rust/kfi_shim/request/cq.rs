// SPDX-License-Identifier: GPL-2.0

//! Requests about completion queues.

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
    any,
    clear,
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
        Completion,
        CompletionQueue,
        CompletionQueueAttr,
        Domain,
        Place,
        Written, //
    },
    session::Session, //
};

/// Opens a completion queue.
pub(super) fn cq_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqOpen = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let domain = Session::get::<Domain>(session, request.domain)?;
    let set = optional_any(session, request.wait_set)?;
    let (with_attr, handler) = queue_flags(request.flags)?;
    let attr = if with_attr {
        Some(CompletionQueueAttr {
            size: usize::try_from(request.size)?,
            flags: request.attr_flags,
            format: request.format,
            wait_obj: request.wait_obj,
            wait_cond: request.wait_cond,
            wait_set: any(&set)?,
            signaling_vector: request.signaling_vector,
        })
    } else {
        None
    };
    let handler = handler.then_some(request.context);
    opened_by(
        session,
        request.context,
        estimate::queue(attr.map_or(0, |attr| attr.size)),
        |context, _| match attr {
            None => CompletionQueue::open_null(&domain, context, handler),
            attr => CompletionQueue::open(&domain, attr, context, handler),
        },
        |result, handle, _| {
            request.result = result;
            request.cq = handle;
            argument.write(&request)
        },
    )
}

/// Returns what user space may know of where something was received: the place in a buffer.
fn place(session: &Session, place: Place) -> u64 {
    let address = match place {
        Place::Written(number) => return number,
        Place::Address(address) => address,
    };
    match session.places().find(address) {
        Some((buffer, offset)) => u64::from(buffer) << 32 | offset as u64,
        None if is_address(address) => 0,
        None => address as u64,
    }
}

/// Returns what user space may know of a completion.
fn cq_entry(session: &Session, completion: &Completion) -> abi::CqEntry {
    abi::CqEntry {
        // A context that stands for nothing does not leave the kernel.
        op_context: completion.context.unwrap_or(0),
        flags: completion.flags,
        len: completion.len as u64,
        buf: place(session, completion.buf),
        data: completion.data,
        tag: completion.tag,
        src_addr: completion.src_addr,
    }
}

/// Takes completions out.
pub(super) fn cq_read(session: ArcBorrow<'_, Session>, argument: Argument, sleep: bool) -> Result {
    let mut request: abi::CqRead = argument.read_for_update()?;
    let count = usize::try_from(request.count)?;
    if request.reserved != 0 || request.flags & !abi::KFI_SHIM_CQ_NO_SOURCE != 0 {
        return Err(EINVAL);
    }
    if request.count > abi::KFI_SHIM_CQ_READ_MAX {
        return Err(E2BIG);
    }
    let source = request.flags & abi::KFI_SHIM_CQ_NO_SOURCE == 0;
    let cond = usize::try_from(request.cond)?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    let ptr = UserPtr::from_addr(usize::try_from(request.entries)?);
    // Before anything is taken out that could not be delivered.
    let size = count * size_of::<abi::CqEntry>();
    clear(ptr, size)?;
    let mut writer = UserSlice::new(ptr, size).writer();
    request.result = match cq.read(count, sleep.then_some(request.timeout), cond, source) {
        Ok(completions) => {
            for completion in &completions {
                writer.write(&cq_entry(&session, completion))?;
            }
            number(Ok(completions.len()))
        }
        Err(error) => error.to_errno(),
    };
    argument.write(&request)
}

/// Takes an error out.
pub(super) fn cq_readerr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqError = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    match cq.readerr() {
        Ok(error) => {
            request.result = 1;
            request.entry = cq_entry(&session, &error.completion);
            request.olen = error.olen as u64;
            request.err = error.err;
            request.prov_errno = error.prov_errno;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Adds a completion or an error, as the software provider lets tests do.
pub(super) fn cq_write(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqError = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    let written = cq.write(&Written {
        context: request.entry.op_context,
        buf: request.entry.buf,
        flags: request.entry.flags,
        len: usize::try_from(request.entry.len)?,
        data: request.entry.data,
        tag: request.entry.tag,
        olen: usize::try_from(request.olen)?,
        err: request.err,
        prov_errno: request.prov_errno,
    })?;
    request.result = result(written);
    argument.write(&request)
}

/// Ends waits for a completion queue.
pub(super) fn cq_signal(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqSignal = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    request.result = result(cq.signal());
    argument.write(&request)
}
