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
        Reading,
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
        |context, _| CompletionQueue::open(&domain, attr, context, handler),
        |result, handle, _| {
            request.result = result;
            request.cq = handle;
            argument.write(&request)
        },
    )
}

/// Returns what user space may know of where something was received: the place in a buffer.
fn place(session: &Session, address: usize) -> u64 {
    match session.places().find(address) {
        Some((buffer, offset)) => u64::from(buffer) << 32 | offset as u64,
        None if is_address(address) => 0,
        None => address as u64,
    }
}

/// Returns what user space may know of a completion that was read from a queue, and still is.
fn cq_entry(
    session: &Session,
    queue: &CompletionQueue,
    completion: Completion,
    _reading: &Reading<'_>,
) -> abi::CqEntry {
    let contexts = session.contexts();
    let queue = queue.owner();
    let last = completion.flags & u64::from(abi::KFI_MULTI_RECV) != 0;
    // A context that stands for nothing does not leave the kernel.
    let (op_context, written) = contexts
        .complete(queue, completion.context, last)
        .unwrap_or((0, false));
    let buf = completion.buf.address();
    // A provider's place may be that of something else by now.
    let number = if written {
        contexts.read_back(queue, buf, true)
    } else {
        None
    };
    abi::CqEntry {
        op_context,
        flags: completion.flags,
        len: completion.len as u64,
        buf: number.unwrap_or_else(|| place(session, buf)),
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
    let mut reading = cq.reading();
    let completions = cq.read(
        &mut reading,
        count,
        sleep.then_some(request.timeout),
        cond,
        source,
    );
    request.result = match completions {
        Ok(completions) => {
            let read = completions.len();
            for completion in completions {
                writer.write(&cq_entry(&session, &cq, completion, &reading))?;
            }
            number(Ok(read))
        }
        Err(error) => error.to_errno(),
    };
    argument.write(&request)
}

/// Takes an error out.
pub(super) fn cq_readerr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqError = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    let mut reading = cq.reading();
    match cq.readerr(&mut reading) {
        Ok(error) => {
            request.result = 1;
            request.entry = cq_entry(&session, &cq, error.completion, &reading);
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
