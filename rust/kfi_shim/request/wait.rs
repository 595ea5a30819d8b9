// SPDX-License-Identifier: GPL-2.0

//! Requests about waiting: wait sets, trywait, wait descriptors.

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
    has_attr,
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
            Answer,
            AnyObject,
            CompletionQueue,
            Counter,
            EventQueue,
            Fabric,
            WaitSet, //
        },
        linux::file::{
            AnonymousFile,
            Descriptor, //
        }, //
    },
    object::{
        Class,
        Object, //
    },
    session::{
        Session,
        Use, //
    },
    wait_fd::{
        WaitFd,
        Waitable, //
    }, //
};

/// Makes a descriptor for an object.
pub(super) fn wait_fd(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenWaitFd = argument.read()?;
    if request.flags & !abi::KFI_SHIM_WAIT_NONBLOCK != 0 {
        return Err(EINVAL);
    }
    let nonblock = request.flags & abi::KFI_SHIM_WAIT_NONBLOCK != 0;
    let descriptor = Descriptor::reserve()?;
    let file = match &*Session::any(session, request.handle)? {
        Object::Counter(_) => file_for::<Counter>(session, request.handle, nonblock),
        Object::CompletionQueue(_) => {
            file_for::<CompletionQueue>(session, request.handle, nonblock)
        }
        Object::EventQueue(_) => file_for::<EventQueue>(session, request.handle, nonblock),
        Object::WaitSet(_) => file_for::<WaitSet>(session, request.handle, nonblock),
        _ => return Err(EINVAL),
    };
    match file? {
        Ok(file) => {
            request.result = 0;
            request.fd = i32::try_from(descriptor.number())?;
            argument.write(&request)?;
            descriptor.install(file);
            Ok(())
        }
        Err(error) => {
            request.result = error.to_errno();
            request.fd = -1;
            argument.write(&request)
        }
    }
}

/// Makes a file for the object of a class.
fn file_for<O: Class + Waitable>(
    session: ArcBorrow<'_, Session>,
    handle: u32,
    nonblock: bool,
) -> Result<Answer<AnonymousFile>> {
    WaitFd::<O>::new_file(Session::get(session, handle)?, nonblock)
}

/// Opens a wait set.
pub(super) fn wait_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::WaitOpen = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let attr = has_attr(request.flags)?.then_some((request.wait_obj, request.attr_flags));
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    opened(
        session,
        0,
        estimate::OBJECT,
        |_| match attr {
            None => WaitSet::open_null(&fabric),
            Some((wait_obj, flags)) => WaitSet::open(&fabric, wait_obj, flags),
        },
        |result, handle| {
            request.result = result;
            request.wait_set = handle;
            argument.write(&request)
        },
    )
}

/// Waits for a wait set.
pub(super) fn wait(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Wait = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let set = Session::get::<WaitSet>(session, request.wait_set)?;
    request.result = result(set.wait(request.timeout));
    argument.write(&request)
}

/// Asks whether it is safe to block.
pub(super) fn trywait(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::TryWait = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let count = usize::try_from(request.count)?;
    if count > ARRAY_MAX {
        return Err(E2BIG);
    }
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    if request.handles == 0 {
        request.result = result(fabric.trywait_null(request.count));
        return argument.write(&request);
    }
    let ptr = UserPtr::from_addr(usize::try_from(request.handles)?);
    let mut reader = UserSlice::new(ptr, count * size_of::<u32>()).reader();
    // The last are those of the fids, here and as C has them.
    let each = size_of::<u32>()
        + size_of::<Use<Object>>()
        + size_of::<AnyObject<'_>>()
        + size_of::<usize>();
    let _charge = session.charge_arrays(count, each)?;
    let mut handles = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    let mut objects = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    for _ in 0..count {
        let handle = reader.read::<u32>()?;
        handles.push(handle, GFP_KERNEL_ACCOUNT)?;
        objects.push(Session::any(session, handle)?, GFP_KERNEL_ACCOUNT)?;
    }
    let mut fids = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    for object in &objects {
        fids.push(object.any().ok_or(EINVAL)?, GFP_KERNEL_ACCOUNT)?;
    }
    request.result = result(session.arm(&handles, || fabric.trywait(&fids))?);
    argument.write(&request)
}
