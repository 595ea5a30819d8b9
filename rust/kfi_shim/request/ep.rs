// SPDX-License-Identifier: GPL-2.0

//! Requests about endpoints.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    has_attr,
    info::{
        entry,
        raw_hints, //
    },
    length,
    opened,
    part,
    result,
    Argument, //
};
use crate::{
    abi,
    estimate::{
        self,
        Needs, //
    },
    info,
    kfi::{
        consumer::{
            op_flags,
            refuse,
            Domain,
            Endpoint,
            EndpointKind,
            Fabric,
            HasName,
            PassiveEndpoint,
            Quota,
            SharedTransmit, //
        },
        info::InfoRef, //
    },
    object::{
        Answer,
        Object, //
    },
    session::Session, //
};

/// Opens an endpoint.
pub(super) fn ep_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let request: abi::EpOpen = argument.read()?;
    if request.reserved != 0 || (request.info != 0) == (request.attr != 0) {
        return Err(EINVAL);
    }
    if let Some(raw) = raw_hints(request.attr, request.attr_size)? {
        let info = info::hints(&raw)?;
        return ep_open_with(session, argument, request, info.first());
    }
    let info = Session::get::<Answer>(session, request.info)?;
    let entry = entry(&info, request.index)?;
    ep_open_with(session, argument, request, *entry)
}

/// Opens an endpoint with an entry.
fn ep_open_with(
    session: ArcBorrow<'_, Session>,
    argument: Argument,
    mut request: abi::EpOpen,
    info: InfoRef<'_>,
) -> Result {
    op_flags(info)?;
    let number = request.context;
    let (parent, kind) = (request.parent, request.kind);
    let answer = |result, handle| {
        request.result = result;
        request.ep = handle;
        argument.write(&request)
    };
    let kind = match kind {
        abi::KFI_SHIM_EP => EndpointKind::Plain,
        abi::KFI_SHIM_SEP => EndpointKind::Scalable,
        abi::KFI_SHIM_PEP => {
            let fabric = Session::get::<Fabric>(session, parent)?;
            return opened(
                session,
                number,
                estimate::OBJECT,
                |context| PassiveEndpoint::open(&fabric, info, context),
                answer,
            );
        }
        _ => return Err(EINVAL),
    };
    let domain = Session::get::<Domain>(session, parent)?;
    let (size, operations) = match kind {
        EndpointKind::Plain => (estimate::OBJECT, estimate::endpoint(info)),
        EndpointKind::Scalable => (estimate::scalable_endpoint(info), estimate::LEFT),
    };
    let needs = Needs::of_endpoint(size);
    let charge = Quota::charge(session.quota(), operations)?;
    opened(
        session,
        number,
        needs,
        |context| Endpoint::open(&domain, kind, info, context, charge),
        answer,
    )
}

/// Opens a transmit context, shared or not.
pub(super) fn tx_context(
    session: ArcBorrow<'_, Session>,
    argument: Argument,
    shared: bool,
) -> Result {
    let mut request: abi::TxContext = argument.read()?;
    if request.reserved != 0 || shared && request.index != 0 {
        return Err(EINVAL);
    }
    let attr = if has_attr(request.flags)? {
        refuse(request.attr.mode)?;
        Some(info::tx_attr(&request.attr)?)
    } else {
        None
    };
    let number = request.context;
    let asked = attr.as_ref().map(|attr| attr.size);
    let (parent, index) = (request.parent, request.index);
    let answer = |result, handle| {
        request.result = result;
        request.ep = handle;
        argument.write(&request)
    };
    if shared {
        let domain = Session::get::<Domain>(session, parent)?;
        let needs = estimate::context_of(asked, 0, estimate::TRANSMIT);
        let charge = Quota::charge(session.quota(), needs)?;
        return opened(
            session,
            number,
            estimate::OBJECT,
            |context| SharedTransmit::open(&domain, attr, context, charge),
            answer,
        );
    }
    let ep = Session::get::<Endpoint>(session, parent)?;
    let needs = estimate::context_of(asked, ep.depths().0, estimate::TRANSMIT);
    let charge = Quota::charge(session.quota(), needs)?;
    opened(
        session,
        number,
        estimate::OBJECT,
        |context| ep.tx_context(index, attr, context, charge),
        answer,
    )
}

/// Opens a receive context, shared or not.
pub(super) fn rx_context(
    session: ArcBorrow<'_, Session>,
    argument: Argument,
    shared: bool,
) -> Result {
    let mut request: abi::RxContext = argument.read()?;
    if request.reserved != 0 || shared && request.index != 0 {
        return Err(EINVAL);
    }
    let attr = if has_attr(request.flags)? {
        refuse(request.attr.mode)?;
        Some(info::rx_attr(&request.attr)?)
    } else {
        None
    };
    let number = request.context;
    let asked = attr.as_ref().map(|attr| attr.size);
    let (parent, index) = (request.parent, request.index);
    let answer = |result, handle| {
        request.result = result;
        request.ep = handle;
        argument.write(&request)
    };
    if shared {
        let domain = Session::get::<Domain>(session, parent)?;
        let needs = estimate::context_of(asked, 0, estimate::RECEIVE);
        let charge = Quota::charge(session.quota(), needs)?;
        return opened(
            session,
            number,
            estimate::OBJECT,
            |context| Endpoint::srx_context(&domain, attr, context, charge),
            answer,
        );
    }
    let ep = Session::get::<Endpoint>(session, parent)?;
    let needs = estimate::context_of(asked, ep.depths().1, estimate::RECEIVE);
    let charge = Quota::charge(session.quota(), needs)?;
    opened(
        session,
        number,
        estimate::OBJECT,
        |context| ep.rx_context(index, attr, context, charge),
        answer,
    )
}

/// Opens an alias.
pub(super) fn ep_alias(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::EpAlias = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    let flags = request.flags;
    opened(
        session,
        0,
        estimate::OBJECT,
        |_| ep.alias(flags),
        |result, handle| {
            request.result = result;
            request.alias = handle;
            argument.write(&request)
        },
    )
}

/// Cancels an operation.
pub(super) fn cancel(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Cancel = argument.read_for_update()?;
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    request.result = result(ep.cancel(request.context));
    argument.write(&request)
}

/// Reads a request about an option.
fn option(argument: Argument) -> Result<abi::EpOption> {
    let request: abi::EpOption = argument.read_for_update()?;
    if request.reserved != 0 || usize::try_from(request.optlen)? > request.value.len() {
        return Err(EINVAL);
    }
    Ok(request)
}

/// Reads an option.
pub(super) fn getopt(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = option(argument)?;
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    request.value.fill(0);
    let value = part(&mut request.value, request.optlen)?;
    let (ret, len) = ep.getopt(request.level, request.optname, value);
    request.result = result(ret);
    request.optlen = length(len);
    argument.write(&request)
}

/// Sets an option.
pub(super) fn setopt(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = option(argument)?;
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    let value = part(&mut request.value, request.optlen)?;
    request.result = result(ep.setopt(request.level, request.optname, value));
    argument.write(&request)
}

/// Reads a request about a name.
fn name(argument: Argument) -> Result<abi::EpName> {
    let request: abi::EpName = argument.read_for_update()?;
    if request.reserved != 0 || usize::try_from(request.addr_len)? > request.addr.len() {
        return Err(EINVAL);
    }
    Ok(request)
}

/// Reads the source address.
pub(super) fn getname(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = name(argument)?;
    request.addr.fill(0);
    let addr = part(&mut request.addr, request.addr_len)?;
    let (ret, len) = match &*Session::any(session, request.ep)? {
        Object::Endpoint(ep) => ep.getname(addr),
        Object::PassiveEndpoint(ep) => ep.getname(addr),
        _ => return Err(EINVAL),
    };
    request.result = result(ret);
    request.addr_len = length(len);
    argument.write(&request)
}

/// Sets the source address.
pub(super) fn setname(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = name(argument)?;
    // A copy with room for any format, whatever length is told.
    let mut addr = request.addr;
    let addr = part(&mut addr, request.addr_len)?;
    request.result = result(match &*Session::any(session, request.ep)? {
        Object::Endpoint(ep) => ep.setname(addr),
        Object::PassiveEndpoint(ep) => ep.setname(addr),
        _ => return Err(EINVAL),
    });
    argument.write(&request)
}

/// Reads the address of the peer.
pub(super) fn getpeer(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request = name(argument)?;
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    request.addr.fill(0);
    let addr = part(&mut request.addr, request.addr_len)?;
    let (ret, len) = ep.getpeer(addr);
    request.result = result(ret);
    request.addr_len = length(len);
    argument.write(&request)
}

/// Reads a request about connections.
fn cm_request(argument: Argument) -> Result<KBox<abi::Cm>> {
    let request = KBox::new(argument.read_for_update::<abi::Cm>()?, GFP_KERNEL_ACCOUNT)?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    Ok(request)
}

/// Does something about the connection of an endpoint.
pub(super) fn cm(
    session: ArcBorrow<'_, Session>,
    argument: Argument,
    operation: impl FnOnce(&Endpoint, &abi::Cm, &[u8]) -> Result,
) -> Result {
    let mut request = cm_request(argument)?;
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    let mut param = request.param;
    let param = part(&mut param, request.param_len)?;
    request.result = result(operation(&ep, &request, param));
    argument.write(&*request)
}

/// Does something about connections to a passive endpoint.
pub(super) fn cm_passive(
    session: ArcBorrow<'_, Session>,
    argument: Argument,
    operation: impl FnOnce(&PassiveEndpoint, &[u8]) -> Result,
) -> Result {
    let mut request = cm_request(argument)?;
    let pep = Session::get::<PassiveEndpoint>(session, request.ep)?;
    let mut param = request.param;
    let param = part(&mut param, request.param_len)?;
    request.result = result(operation(&pep, param));
    argument.write(&*request)
}

/// Joins a multicast group.
pub(super) fn join(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Join = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    let number = request.context;
    let (addr, flags) = (request.addr, request.flags);
    opened(
        session,
        number,
        estimate::OBJECT,
        |context| ep.join(&addr, flags, context),
        |result, handle| {
            request.result = result;
            request.mc = handle;
            argument.write(&request)
        },
    )
}
