// SPDX-License-Identifier: GPL-2.0

//! Requests about objects of any class.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    result,
    Argument, //
};
use crate::{
    abi,
    kfi::{
        consumer,
        flags::OpFlags,
        linux::uaccess::Versioned, //
    },
    object::{
        for_object,
        Object, //
    },
    session::Session, //
};

/// Says what answers.
pub(super) fn version(_session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    if argument.size < abi::Version::FIRST_SIZE {
        return Err(EINVAL);
    }
    argument.write(&abi::Version {
        interface: abi::KFI_SHIM_INTERFACE,
        api: consumer::version(),
    })
}

/// Closes an object.
pub(super) fn close(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Close = argument.read_for_update()?;
    request.result = result(Session::close(session, request.handle)?);
    argument.write(&request)
}

/// Carries out a control command.
pub(super) fn control(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::ControlRequest = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let object = Session::any(session, request.handle)?;

    let ret = for_object!(
        &*object,
        object => match request.command {
            abi::KFI_GETOPSFLAG => object
                .ops_flag(OpFlags::from_raw(request.value))
                .map(OpFlags::as_raw),
            abi::KFI_SETOPSFLAG => object
                .set_ops_flag(OpFlags::from_raw(request.value))
                .map(|()| request.value),
            abi::KFI_GETWAITOBJ => object.wait_obj().map(|wait_obj| wait_obj.as_raw().into()),
            _ => return Err(EINVAL),
        },
        return Err(EINVAL)
    );
    match ret {
        Ok(value) => {
            request.result = 0;
            request.value = value;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Binds an object to another.
pub(super) fn bind(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Bind = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let object = Session::any(session, request.handle)?;
    let other = Session::any(session, request.other)?;
    let to = other.any().ok_or(EINVAL)?;
    let bound = match (&*object, &*other) {
        (Object::Endpoint(ep), Object::SharedTransmit(stx)) => {
            ep.bind_shared(stx, request.flags)?
        }
        (Object::Endpoint(ep), Object::CompletionQueue(queue)) => {
            ep.bind_queue(queue, request.flags)
        }
        (Object::SharedTransmit(stx), Object::CompletionQueue(queue)) => {
            stx.bind_queue(queue, request.flags)
        }
        _ => object.any().ok_or(EINVAL)?.bind(to, request.flags),
    };
    request.result = result(bound);
    argument.write(&request)
}

/// Makes an object usable.
pub(super) fn enable(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Enable = argument.read_for_update()?;
    let object = Session::any(session, request.handle)?;
    request.result = result(object.any().ok_or(EINVAL)?.enable());
    argument.write(&request)
}

/// Reads how often a handler was called.
pub(super) fn handled(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Handled = argument.read_for_update()?;
    let object = Session::any(session, request.queue)?;
    let calls = match &*object {
        Object::CompletionQueue(queue) => queue.handled(),
        Object::EventQueue(queue) => queue.handled(),
        _ => None,
    };
    let calls = calls.ok_or(EINVAL)?;
    request.result = match request.timeout {
        0 => 0,
        timeout => result(calls.wait(request.calls, timeout)),
    };
    request.calls = calls.count();
    request.cpu = calls.cpu();
    argument.write(&request)
}

/// Describes an errno of the provider.
pub(super) fn strerror(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::StrError = argument.read_for_update()?;
    let len = usize::try_from(request.len)?;
    if len > request.text.len() {
        return Err(EINVAL);
    }
    request.text.fill(0);
    let object = Session::any(session, request.queue)?;
    let described = match &*object {
        Object::CompletionQueue(queue) => {
            queue.strerror(request.prov_errno, &mut request.text, len)
        }
        Object::EventQueue(queue) => queue.strerror(request.prov_errno, &mut request.text, len),
        _ => return Err(EINVAL),
    };
    request.result = if described { 0 } else { EINVAL.to_errno() };
    argument.write(&request)
}
