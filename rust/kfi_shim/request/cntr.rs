// SPDX-License-Identifier: GPL-2.0

//! Requests about counters.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    opened,
    optional_any,
    result,
    Argument, //
};
use crate::{
    abi,
    estimate,
    kfi::consumer::{
        Counter,
        CounterAttr,
        Domain, //
    },
    session::Session, //
};

/// Opens a counter.
pub(super) fn cntr_open(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CntrOpen = argument.read()?;
    if request.reserved != 0 || request.flags & !abi::KFI_SHIM_CNTR_NO_ATTR != 0 {
        return Err(EINVAL);
    }
    let domain = Session::get::<Domain>(session, request.domain)?;
    let wait_set = optional_any(session, request.wait_set)?;
    let attr = if request.flags & abi::KFI_SHIM_CNTR_NO_ATTR == 0 {
        Some(CounterAttr {
            events: request.events,
            wait_obj: request.wait_obj,
            wait_set: match &wait_set {
                None => None,
                Some(object) => Some(object.any().ok_or(EINVAL)?),
            },
            flags: request.attr_flags,
        })
    } else {
        None
    };
    opened(
        session,
        request.context,
        estimate::COUNTER,
        |context| match attr {
            None => Counter::open_null(&domain, context),
            attr => Counter::open(&domain, attr, context),
        },
        |result, handle| {
            request.result = result;
            request.cntr = handle;
            argument.write(&request)
        },
    )
}

/// Reads or changes a counter.
pub(super) fn cntr(
    session: ArcBorrow<'_, Session>,
    argument: Argument,
    operation: impl FnOnce(&Counter, &mut u64) -> Result,
) -> Result {
    let mut request: abi::Cntr = argument.read_for_update()?;
    let cntr = Session::get::<Counter>(session, request.cntr)?;
    request.result = result(operation(&cntr, &mut request.value));
    argument.write(&request)
}

/// Waits for a counter.
pub(super) fn cntr_wait(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CntrWait = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let cntr = Session::get::<Counter>(session, request.cntr)?;
    request.result = result(cntr.wait(request.threshold, request.timeout));
    argument.write(&request)
}
