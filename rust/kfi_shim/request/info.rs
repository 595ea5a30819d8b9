// SPDX-License-Identifier: GPL-2.0

//! Requests about what there is.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        ArcBorrow, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use super::Argument;
use crate::{
    abi,
    estimate,
    info,
    kfi::{
        consumer::{
            self,
            Domain,
            Fabric,
            Hints,
            Offer,
            Offers,
            Quota,
            Text, //
        },
        linux::uaccess::{
            self,
            Versioned, //
        }, //
    },
    object::{
        Answer,
        Class,
        Object, //
    },
    session::{
        Session,
        Use, //
    }, //
};

/// Reads a text of user space, `None` for null; `EINVAL` if it is too long.
pub(super) fn text<'a>(ptr: u64, buffer: &'a mut [u8; TEXT_MAX + 1]) -> Result<Option<&'a CStr>> {
    if ptr == 0 {
        return Ok(None);
    }
    let ptr = UserPtr::from_addr(usize::try_from(ptr)?);
    let reader = UserSlice::new(ptr, buffer.len()).reader();
    let text = reader.strcpy_into_buf(buffer)?;
    if text.to_bytes_with_nul().len() > TEXT_MAX {
        return Err(EINVAL);
    }
    Ok(Some(text))
}

/// The longest text, the terminating 0 included.
pub(super) const TEXT_MAX: usize = abi::KFI_SHIM_NAME_MAX as usize;

/// The largest size of a structure beside the request's own; more than any version will have.
const BUFFER_MAX: usize = 1 << 16;

/// Reads hints of user space, `None` for null.
pub(super) fn raw_hints(ptr: u64, size: u32) -> Result<Option<KBox<abi::ShimInfo>>> {
    if ptr == 0 {
        return Ok(None);
    }
    let ptr = UserPtr::from_addr(usize::try_from(ptr)?);
    let size = usize::try_from(size)?;
    if size > BUFFER_MAX {
        return Err(E2BIG);
    }
    let mut raw = KBox::init(pin_init::init_zeroed::<abi::ShimInfo>(), GFP_KERNEL_ACCOUNT)?;
    uaccess::read_into(ptr, size, &mut *raw)?;
    Ok(Some(raw))
}

/// Returns the object of a class that a handle names, `None` for 0.
fn optional<T: Class>(session: ArcBorrow<'_, Session>, handle: u32) -> Result<Option<Use<Arc<T>>>> {
    match handle {
        0 => Ok(None),
        handle => Ok(Some(Session::get(session, handle)?)),
    }
}

/// Asks what there is.
pub(super) fn getinfo(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::GetInfo = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let (mut node, mut service) = ([0; TEXT_MAX + 1], [0; TEXT_MAX + 1]);
    let node = text(request.node, &mut node)?;
    let service = text(request.service, &mut service)?;
    let raw = raw_hints(request.hints, request.hints_size)?;
    // The objects that the hints name stay open until the answer is there.
    let (mut fabric, mut domain) = (None, None);
    if let Some(raw) = &raw {
        fabric = optional::<Fabric>(session, raw.fabric_attr.fabric)?;
        domain = optional::<Domain>(session, raw.domain_attr.domain)?;
    }
    let hints = match &raw {
        Some(raw) => {
            let mut hints = Ok(Hints::new(info::hints(raw)?));
            if let Some(fabric) = &fabric {
                hints = hints.and_then(|hints| hints.fabric(fabric));
            }
            if let Some(domain) = &domain {
                hints = hints.and_then(|hints| hints.domain(domain));
            }
            hints.map(Some)
        }
        None => Ok(None),
    };
    let slot = session.reserve(0, estimate::info(1))?;

    let answer = hints.and_then(|hints| {
        consumer::getinfo(
            request.version,
            node,
            service,
            request.flags,
            hints.as_ref(),
        )
    });
    request.info = 0;
    request.count = 0;
    match answer {
        Ok(answer) => {
            let count = answer.iter().count();
            let charge = Quota::charge(session.quota(), estimate::info(count))?;
            let answer = Answer::new(answer, charge);
            request.result = 0;
            request.info = slot.handle();
            request.count = u32::try_from(count)?;
            let answer = Arc::new(answer, GFP_KERNEL_ACCOUNT)?;
            argument.write(&request)?;
            slot.fill(Object::Answer(answer));
            Ok(())
        }
        Err(error) => {
            request.result = error.to_errno();
            argument.write(&request)
        }
    }
}

/// Returns an entry of an answer; `EINVAL` if there is none.
pub(super) fn entry(offers: &Offers, index: u32) -> Result<Offer<'_>> {
    offers.iter().nth(usize::try_from(index)?).ok_or(EINVAL)
}

/// Copies an entry of an answer.
pub(super) fn read_info(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let request: abi::ReadInfo = argument.read()?;
    let size = usize::try_from(request.buffer_size)?;
    if request.reserved != 0 || size < abi::ShimInfo::FIRST_SIZE {
        return Err(EINVAL);
    }
    if size > BUFFER_MAX {
        return Err(E2BIG);
    }
    let info = Session::get::<Answer>(session, request.info)?;
    let value = info::by_value(*entry(&info, request.index)?)?;
    let buffer = UserPtr::from_addr(usize::try_from(request.buffer)?);
    uaccess::write(buffer, size, &*value)
}

/// Copies a text to user space, cut so that it ends; returns how long it is, with its end.
fn put_text(text: &CStr, ptr: u64, size: u32) -> Result<u32> {
    let bytes = text.to_bytes();
    let ptr = UserPtr::from_addr(usize::try_from(ptr)?);
    let mut writer = UserSlice::new(ptr, usize::try_from(size)?).writer();
    if let Some(room) = writer.len().checked_sub(1) {
        writer.write_slice(bytes.get(..room).unwrap_or(bytes))?;
        writer.write_slice(&[0])?;
    }
    Ok(u32::try_from(text.to_bytes_with_nul().len())?)
}

/// Prints an entry of an answer.
pub(super) fn info_text(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::InfoText = argument.read()?;
    if usize::try_from(request.size)? > BUFFER_MAX {
        return Err(E2BIG);
    }
    let info = Session::get::<Answer>(session, request.info)?;
    let text = Text::of_info(*entry(&info, request.index)?).ok_or(ENOMEM)?;
    request.len = put_text(text.as_c_str(), request.text, request.size)?;
    argument.write(&request)
}

/// Prints a number.
pub(super) fn tostr(_session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::ToStr = argument.read()?;
    if usize::try_from(request.size)? > BUFFER_MAX {
        return Err(E2BIG);
    }
    match Text::of_number(request.type_, request.value)? {
        Some(text) => {
            request.len = put_text(text.as_c_str(), request.text, request.size)?;
            request.result = 0;
        }
        None if Text::has_number(request.type_) => return Err(ENOMEM),
        None => {
            request.len = 0;
            request.result = EINVAL.to_errno();
        }
    }
    argument.write(&request)
}
