// SPDX-License-Identifier: GPL-2.0

//! Requests about objects of any class.

#![deny(unsafe_code)]

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
        uaccess::Versioned, //
    },
    object::Object,
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
    request.result = result(session.close(request.handle)?);
    argument.write(&request)
}

/// Carries out a control command.
pub(super) fn control(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::ControlRequest = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let object = Session::any(session, request.handle)?;

    macro_rules! carry_out {
        ($object:expr) => {
            match request.command {
                abi::KFI_GETOPSFLAG => $object.ops_flag().map(OpFlags::as_raw),
                abi::KFI_SETOPSFLAG => $object
                    .set_ops_flag(OpFlags::from_raw(request.value))
                    .map(|()| request.value),
                abi::KFI_GETWAITOBJ => $object.wait_obj().map(|wait_obj| wait_obj.as_raw().into()),
                _ => return Err(EINVAL),
            }
        };
    }
    let ret = match &*object {
        Object::Info(_) => return Err(EINVAL),
        Object::Fabric(fabric) => carry_out!(fabric),
        Object::Domain(domain) => carry_out!(domain),
        Object::Counter(counter) => carry_out!(counter),
        Object::CompletionQueue(queue) => carry_out!(queue),
        Object::EventQueue(queue) => carry_out!(queue),
        Object::WaitSet(set) => carry_out!(set),
        Object::PollSet(set) => carry_out!(set),
    };
    match ret {
        Ok(value) => {
            request.result = 0;
            request.value = value;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}
