// SPDX-License-Identifier: GPL-2.0

//! Requests about address vectors.

#![forbid(unsafe_code)]

use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    str::CStr,
    sync::ArcBorrow,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use super::{
    clear,
    has_attr,
    info::{
        text,
        TEXT_MAX, //
    },
    length,
    number,
    opened_by,
    part,
    result,
    Argument, //
};
use crate::{
    abi,
    estimate,
    kfi::consumer::{
        AddressVector,
        AddressVectorAttr,
        Charge,
        Domain,
        Insert,
        Quota,
        ADDR_MAX, //
    },
    session::Session, //
};

/// Opens an address vector.
pub(super) fn av_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::AvOpen = argument.read()?;
    let domain = Session::get::<Domain>(session, request.domain)?;
    let copy = request.name;
    let name = CStr::from_bytes_until_nul(&copy).map_err(|_| EINVAL)?;
    let attr = if has_attr(request.flags)? {
        Some(AddressVectorAttr {
            type_: request.type_,
            rx_ctx_bits: request.rx_ctx_bits,
            count: usize::try_from(request.count)?,
            ep_per_node: usize::try_from(request.ep_per_node)?,
            name: (!name.is_empty()).then_some(name),
            flags: request.attr_flags,
        })
    } else {
        None
    };
    let size = estimate::address_vector(attr.as_ref().map_or(0, |attr| attr.count));
    opened_by(
        session,
        request.context,
        size,
        |context, _| {
            Ok(match attr {
                None => AddressVector::open_null(&domain, context),
                attr => AddressVector::open(&domain, attr, context),
            })
        },
        |result, handle, av| {
            request.result = result;
            request.av = handle;
            if let Some(av) = av {
                request.type_ = av.type_();
            }
            argument.write(&request)
        },
    )
}

/// The addresses that are inserted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Binary addresses.
    Binary,
    /// A node and a service.
    Service,
    /// Nodes and services.
    Symmetric,
}

/// The most addresses of a request.
const COUNT_MAX: usize = abi::KFI_SHIM_AV_MAX as usize;

/// Reads binary addresses, with room for as many of any format.
fn addresses(request: &abi::AvInsert) -> Result<Insert<'static>> {
    let count = usize::try_from(request.count)?;
    let len = usize::try_from(request.addr_len)?;
    if count > COUNT_MAX {
        return Err(E2BIG);
    }
    if len > count * ADDR_MAX {
        return Err(EINVAL);
    }
    if request.addr == 0 {
        return Ok(Insert::Null(count));
    }
    // One more, so that there is an address even if there is none.
    let mut bytes = KVVec::from_elem(
        0u8,
        (count + 1) * ADDR_MAX,
        GFP_KERNEL_ACCOUNT | __GFP_NOWARN,
    )?;
    let ptr = UserPtr::from_addr(usize::try_from(request.addr)?);
    let mut reader = UserSlice::new(ptr, len).reader();
    reader.read_slice(bytes.get_mut(..len).ok_or(EINVAL)?)?;
    Ok(Insert::Binary(bytes, count))
}

/// Inserts addresses.
pub(super) fn av_insert(session: ArcBorrow<'_, Session>, argument: Argument, form: Form) -> Result {
    let mut request: abi::AvInsert = argument.read_for_update()?;
    let (mut node, mut service) = ([0; TEXT_MAX + 1], [0; TEXT_MAX + 1]);
    let count = match form {
        Form::Binary => usize::try_from(request.count)?,
        Form::Service => 1,
        Form::Symmetric => {
            let services = usize::try_from(request.service_count)?;
            let nodes = usize::try_from(request.count)?;
            nodes.checked_mul(services).ok_or(E2BIG)?
        }
    };
    if count > COUNT_MAX {
        return Err(E2BIG);
    }
    let each = ADDR_MAX + size_of::<u64>() + size_of::<i32>();
    let charge = Quota::charge(session.quota(), (count + 1) * each)?;
    let what = match form {
        Form::Binary => addresses(&request)?,
        Form::Service => Insert::Service(
            text(request.node, &mut node)?,
            text(request.service, &mut service)?,
        ),
        Form::Symmetric => Insert::Symmetric(
            text(request.node, &mut node)?,
            usize::try_from(request.count)?,
            text(request.service, &mut service)?,
            usize::try_from(request.service_count)?,
        ),
    };
    let av = Session::get::<AddressVector>(session, request.av)?;
    // An event tells it, or nobody.
    let context = av.context_of(request.context)?;
    let sync_err = request.flags & abi::KFI_SYNC_ERR != 0;
    let mut errors = KVVec::new();
    if sync_err {
        errors = KVVec::from_elem(0i32, count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    }
    // Before anything is inserted that could not be told of.
    let (addrs_at, errors_at) = (
        UserPtr::from_addr(usize::try_from(request.kfi_addrs)?),
        UserPtr::from_addr(usize::try_from(request.errors)?),
    );
    let want_addrs = request.kfi_addrs != 0;
    let want_errors = sync_err && request.errors != 0;
    if want_addrs && !av.is_asynchronous() {
        clear(addrs_at, count * size_of::<u64>())?;
    }
    if want_errors {
        clear(errors_at, count * size_of::<i32>())?;
    }
    let inserted = av.insert(
        what,
        want_addrs,
        request.flags,
        context.context(),
        sync_err.then_some(&mut errors),
        charge,
    )?;
    request.insertion = 0;
    match inserted {
        Ok(inserted) => {
            av.keep(context);
            request.result = number(Ok(inserted.count));
            request.insertion = inserted.number;
            if want_addrs && !av.is_asynchronous() {
                let mut writer = UserSlice::new(addrs_at, count * size_of::<u64>()).writer();
                for addr in &inserted.kfi_addrs {
                    writer.write(addr)?;
                }
            }
        }
        Err(error) => request.result = error.to_errno(),
    }
    if want_errors {
        let mut writer = UserSlice::new(errors_at, count * size_of::<i32>()).writer();
        for error in &errors {
            writer.write(error)?;
        }
    }
    argument.write(&request)
}

/// Copies what an insertion has given.
pub(super) fn av_inserted(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::AvInserted = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let room = usize::try_from(request.count)?;
    if room > COUNT_MAX {
        return Err(E2BIG);
    }
    let _charge = for_array(session, room)?;
    let av = Session::get::<AddressVector>(session, request.av)?;
    let mut addrs = KVVec::with_capacity(room, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    let count = av.inserted(request.insertion, |count, values| {
        for value in values.take(room) {
            addrs.push(value, GFP_KERNEL_ACCOUNT)?;
        }
        Ok::<usize, Error>(count)
    })??;
    let ptr = UserPtr::from_addr(usize::try_from(request.kfi_addrs)?);
    let mut writer = UserSlice::new(ptr, addrs.len() * size_of::<u64>()).writer();
    for addr in &addrs {
        writer.write(addr)?;
    }
    request.count = length(count);
    argument.write(&request)
}

/// Counts an array of addresses for the duration of a request, unless it is small: a user that has
/// used up all memory may give something back in small parts.
fn for_array(session: ArcBorrow<'_, Session>, count: usize) -> Result<Option<Charge>> {
    let size = count * size_of::<u64>();
    if size <= PAGE_SIZE {
        return Ok(None);
    }
    Ok(Some(Quota::charge(session.quota(), size)?))
}

/// Removes addresses.
pub(super) fn av_remove(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::AvRemove = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let count = usize::try_from(request.count)?;
    if count > COUNT_MAX {
        return Err(E2BIG);
    }
    let _charge = for_array(session, count)?;
    let av = Session::get::<AddressVector>(session, request.av)?;
    let mut addrs = KVVec::new();
    if request.kfi_addrs != 0 {
        let ptr = UserPtr::from_addr(usize::try_from(request.kfi_addrs)?);
        let mut reader = UserSlice::new(ptr, count * size_of::<u64>()).reader();
        addrs = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        for _ in 0..count {
            addrs.push(reader.read::<u64>()?, GFP_KERNEL_ACCOUNT)?;
        }
    }
    let array = (request.kfi_addrs != 0).then_some(&mut *addrs);
    request.result = result(av.remove(array, count, request.flags));
    argument.write(&request)
}

/// Looks an address up.
pub(super) fn av_lookup(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::AvLookup = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    request.addr.fill(0);
    let addr = part(&mut request.addr, request.addr_len)?;
    let av = Session::get::<AddressVector>(session, request.av)?;
    match av.lookup(request.kfi_addr, addr) {
        Ok(len) => {
            request.result = 0;
            request.addr_len = length(len);
        }
        Err(error) => request.result = error.to_errno(),
    }
    argument.write(&request)
}

/// Prints an address.
pub(super) fn av_straddr(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::AvStrAddr = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    request.text.fill(0);
    let text = part(&mut request.text, request.len)?;
    let av = Session::get::<AddressVector>(session, request.av)?;
    match av.straddr(&request.addr, text) {
        Some(len) => {
            request.result = 0;
            request.len = length(len);
        }
        None => request.result = EINVAL.to_errno(),
    }
    argument.write(&request)
}
