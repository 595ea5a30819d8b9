// SPDX-License-Identifier: GPL-2.0

//! Requests about fabrics and domains.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    info::entry,
    opened,
    Argument, //
};
use crate::{
    abi,
    estimate,
    kfi::consumer::{
        op_flags,
        Domain,
        Fabric, //
    },
    object::Answer,
    session::Session, //
};

/// Opens a fabric.
pub(super) fn fabric(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::OpenFabric = argument.read()?;
    let info = Session::get::<Answer>(session, request.info)?;
    let entry = entry(&info, request.index)?;
    opened(
        session,
        request.context,
        estimate::FABRIC,
        |context| Fabric::open(*entry, context),
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
    let info = Session::get::<Answer>(session, request.info)?;
    let entry = entry(&info, request.index)?;
    // A user that neither knows addresses of the kernel nor may learn any cannot use them.
    let by_address = entry
        .domain_attr()
        .is_some_and(|attr| attr.mr_mode.cast_unsigned() & abi::KFI_MR_VIRT_ADDR != 0);
    if by_address {
        return Err(EOPNOTSUPP);
    }
    // The modes that its provider demands of all that is opened on it, whatever is asked for then.
    op_flags(*entry)?;
    let contexts = session.contexts();
    opened(
        session,
        request.context,
        estimate::domain(*entry),
        |context| session.for_its_user(|| Domain::open(&fabric, entry, context, contexts)),
        |result, handle| {
            request.result = result;
            request.domain = handle;
            argument.write(&request)
        },
    )
}
