// SPDX-License-Identifier: GPL-2.0

//! Requests about fabrics and domains.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    context,
    info::entry,
    opened,
    Argument, //
};
use crate::{
    abi,
    kfi::{
        consumer::{
            Domain,
            Fabric, //
        },
        info::Info, //
    },
    session::Session, //
};

/// Opens a fabric.
pub(super) fn fabric(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenFabric = argument.read()?;
    let info = Session::get::<Info>(session, request.info)?;
    let entry = entry(&info, request.index)?;
    let context = context(request.context)?;
    opened(
        session,
        || Fabric::open(entry, context),
        |result, handle| {
            request.result = result;
            request.fabric = handle;
            argument.write(&request)
        },
    )
}

/// Opens a domain.
pub(super) fn domain(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenDomain = argument.read()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let fabric = Session::get::<Fabric>(session, request.fabric)?;
    let info = Session::get::<Info>(session, request.info)?;
    let entry = entry(&info, request.index)?;
    let context = context(request.context)?;
    opened(
        session,
        || Domain::open(&fabric, entry, context),
        |result, handle| {
            request.result = result;
            request.domain = handle;
            argument.write(&request)
        },
    )
}
