// SPDX-License-Identifier: GPL-2.0

//! Requests about completion queues.

#![deny(unsafe_code)]

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
        CompletionQueue,
        CompletionQueueAttr,
        Domain, //
    },
    session::Session, //
};

/// Opens a completion queue.
pub(super) fn cq_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqOpen = argument.read()?;
    let domain = Session::get::<Domain>(session, request.domain)?;
    let context = context(request.context)?;
    let set = wait_set(session, request.wait_set)?;
    let attr = if has_attr(request.flags)? {
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
    opened(
        session,
        || CompletionQueue::open(&domain, attr, context, false),
        |result, handle| {
            request.result = result;
            request.cq = handle;
            argument.write(&request)
        },
    )
}

/// Takes completions out.
pub(super) fn cq_read(session: ArcBorrow<'_, Session>, argument: Argument, sleep: bool) -> Result {
    let mut request: abi::CqRead = argument.read_for_update()?;
    let count = usize::try_from(request.count)?;
    if request.count > abi::KFI_SHIM_CQ_READ_MAX {
        return Err(E2BIG);
    }
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    let ptr = UserPtr::from_addr(usize::try_from(request.entries)?);
    // Before anything is taken out that could not be delivered.
    let size = count * size_of::<abi::CqEntry>();
    clear(ptr, size)?;
    let mut writer = UserSlice::new(ptr, size).writer();
    let completions = cq.read(count, sleep.then_some(request.timeout), 0, true);
    request.result = match completions {
        Ok(completions) => {
            for (entry, src_addr) in &completions {
                writer.write(&abi::CqEntry {
                    op_context: entry.op_context.addr() as u64,
                    flags: entry.flags,
                    len: entry.len as u64,
                    buf: entry.buf.addr() as u64,
                    data: entry.data,
                    tag: entry.tag,
                    src_addr: *src_addr,
                })?;
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
            request.entry = abi::CqEntry {
                op_context: error.op_context.addr() as u64,
                flags: error.flags,
                len: error.len as u64,
                buf: error.buf.addr() as u64,
                data: error.data,
                tag: error.tag,
                src_addr: 0,
            };
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
    let entry = abi::CqErrEntry {
        op_context: context(request.entry.op_context)?.as_raw(),
        flags: request.entry.flags,
        len: usize::try_from(request.entry.len)?,
        buf: context(request.entry.buf)?.as_raw(),
        data: request.entry.data,
        tag: request.entry.tag,
        olen: usize::try_from(request.olen)?,
        err: request.err,
        prov_errno: request.prov_errno,
        ..pin_init::zeroed()
    };
    request.result = result(cq.write(&entry));
    argument.write(&request)
}

/// Ends waits for a completion queue.
pub(super) fn cq_signal(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CqSignal = argument.read_for_update()?;
    let cq = Session::get::<CompletionQueue>(session, request.cq)?;
    request.result = result(cq.signal());
    argument.write(&request)
}
