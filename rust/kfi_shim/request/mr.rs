// SPDX-License-Identifier: GPL-2.0

//! Requests about memory regions.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    buffer::segments,
    length,
    opened_by,
    part,
    result,
    Argument, //
};
use crate::{
    abi,
    estimate,
    kfi::{
        consumer::{
            Domain,
            MemoryRegion,
            Register,
            RegisterForm,
            Shape, //
        },
        context::Context, //
    },
    session::Session, //
};

/// Registers memory.
pub(super) fn mr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Mr = argument.read()?;
    let form = match request.form {
        abi::KFI_SHIM_FORM_PLAIN => RegisterForm::One,
        abi::KFI_SHIM_FORM_V => RegisterForm::Array(Shape::Kvec),
        abi::KFI_SHIM_FORM_BV => RegisterForm::Array(Shape::Bvec),
        abi::KFI_SHIM_FORM_SGL => RegisterForm::Array(Shape::Sgl),
        abi::KFI_SHIM_FORM_MSG => RegisterForm::Attr(Shape::Kvec),
        abi::KFI_SHIM_FORM_MSG_BV => RegisterForm::Attr(Shape::Bvec),
        abi::KFI_SHIM_FORM_MSG_SGL => RegisterForm::Attr(Shape::Sgl),
        _ => return Err(EINVAL),
    };
    if request.form == abi::KFI_SHIM_FORM_PLAIN && request.segment_count != 1 {
        return Err(EINVAL);
    }
    let domain = Session::get::<Domain>(session, request.domain)?;
    let segments = segments(session, request.segments, request.segment_count, 1, false)?;
    let mut key = request.auth_key;
    let auth_key = part(&mut key, request.auth_key_size)?;
    let register = Register {
        form,
        segments: &segments,
        access: request.access,
        offset: request.offset,
        requested_key: request.requested_key,
        flags: request.flags,
        context: Context::NONE,
        auth_key,
    };
    opened_by(
        session,
        request.context,
        estimate::OBJECT,
        |context, _| {
            MemoryRegion::register(
                &domain,
                Register {
                    context,
                    ..register
                },
            )
        },
        |result, handle, mr| {
            request.result = result;
            request.mr = handle;
            request.key = mr.map_or(0, MemoryRegion::key);
            argument.write(&request)
        },
    )
}

/// Reads the key of a region.
pub(super) fn mr_key(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::MrKey = argument.read()?;
    let mr = Session::get::<MemoryRegion>(session, request.mr)?;
    request.key = mr.key();
    request.has_desc = mr.has_desc().into();
    argument.write(&request)
}

/// Tells that pages have changed.
pub(super) fn mr_refresh(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::MrRefresh = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let mr = Session::get::<MemoryRegion>(session, request.mr)?;
    let segments = segments(session, request.segments, request.segment_count, 1, false)?;
    request.result = result(mr.refresh(&segments, request.flags)?);
    argument.write(&request)
}

/// Reads a request about a raw key.
fn raw_key(argument: Argument) -> Result<abi::RawKey> {
    let request: abi::RawKey = argument.read_for_update()?;
    if request.reserved != 0 || usize::try_from(request.key_size)? > request.raw_key.len() {
        return Err(EINVAL);
    }
    Ok(request)
}

/// Reads the raw key of a region.
pub(super) fn mr_raw_attr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = raw_key(argument)?;
    let mr = Session::get::<MemoryRegion>(session, request.handle)?;
    request.raw_key.fill(0);
    let key = part(&mut request.raw_key, request.key_size)?;
    let (ret, base, len) = mr.raw_attr(key, request.flags);
    request.result = result(ret);
    // Numbers that are no offset from 0 are addresses of the kernel.
    request.base_addr = session.contexts().number_of(usize::try_from(base)?);
    request.key_size = length(len);
    argument.write(&request)
}

/// Makes a key of a raw key.
pub(super) fn mr_map_raw(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = raw_key(argument)?;
    let domain = Session::get::<Domain>(session, request.handle)?;
    let key = part(&mut request.raw_key, request.key_size)?;
    match domain.map_raw(request.base_addr, key, request.flags) {
        Ok(key) => {
            request.result = 0;
            request.key = key;
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Releases a key.
pub(super) fn mr_unmap_key(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = raw_key(argument)?;
    let domain = Session::get::<Domain>(session, request.handle)?;
    request.result = result(domain.unmap_key(request.key));
    argument.write(&request)
}
