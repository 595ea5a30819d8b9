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
    number,
    opened_by,
    queue_flags,
    result,
    wait_set,
    Argument, //
};
use crate::{
    abi,
    kfi::consumer::{
        CompletionQueue,
        CompletionQueueAttr,
        Domain,
        Wanted, //
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
    let context = context(request.context)?;
    let set = wait_set(session, request.wait_set)?;
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
    let number = request.context;
    opened_by(
        session,
        |handle| {
            let queue = CompletionQueue::open(&domain, attr, context, handler);
            if let Some((_, address)) = queue.as_ref().ok().and_then(|queue| queue.handled()) {
                session.contexts().note(handle, number, address)?;
            }
            Ok(queue)
        },
        |result, handle, _| {
            request.result = result;
            request.cq = handle;
            argument.write(&request)
        },
    )
}

/// Returns what user space may know of a pointer in a completion: the number it stands for, or else
/// the place in a buffer.
fn place(session: &Session, pointer: *mut c_void) -> u64 {
    let address = pointer.addr();
    if let Some(number) = session.contexts().resolve(address, true) {
        return number;
    }
    match session.find_buffer(address) {
        Some((buffer, offset)) => u64::from(buffer) << 32 | offset as u64,
        None => 0,
    }
}

/// Returns the number that the context of an operation stands for.
fn op_context(session: &Session, pointer: *mut c_void) -> u64 {
    // What stands for nothing does not leave the kernel.
    session
        .contexts()
        .resolve(pointer.addr(), true)
        .unwrap_or(0)
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
    let completions = cq.read(count, sleep.then_some(request.timeout), cond, source);
    request.result = match completions {
        Ok(completions) => {
            for (entry, src_addr) in &completions {
                writer.write(&abi::CqEntry {
                    op_context: op_context(&session, entry.op_context),
                    flags: entry.flags,
                    len: entry.len as u64,
                    buf: place(&session, entry.buf),
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
                op_context: op_context(&session, error.op_context),
                flags: error.flags,
                len: error.len as u64,
                buf: place(&session, error.buf),
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
    // Found again when they are read.
    let contexts = session.contexts();
    let op_context =
        contexts.context(request.cq, request.entry.op_context, Wanted::Number, true)?;
    let buf = contexts
        .context(request.cq, request.entry.buf, Wanted::Number, true)
        .inspect_err(|_| contexts.forget(op_context))?;
    let entry = abi::CqErrEntry {
        op_context: op_context.as_raw(),
        flags: request.entry.flags,
        len: usize::try_from(request.entry.len)?,
        buf: buf.as_raw(),
        data: request.entry.data,
        tag: request.entry.tag,
        olen: usize::try_from(request.olen)?,
        err: request.err,
        prov_errno: request.prov_errno,
        ..pin_init::zeroed()
    };
    let written = cq.write(&entry);
    if written.is_err() {
        contexts.forget(op_context);
        contexts.forget(buf);
    }
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
