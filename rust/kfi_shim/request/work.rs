// SPDX-License-Identifier: GPL-2.0

//! Requests about deferred work.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    uaccess::UserPtr, //
};

use super::{
    any,
    op::{
        batch,
        form,
        Lists,
        ELEMENT_MAX, //
    },
    optional_any,
    result,
    Argument, //
};
use crate::{
    abi,
    kfi::{
        consumer::{
            Answer,
            DeferredWork,
            Domain,
            Form,
            Kind,
            WorkObjects,
            WorkOperation, //
        },
        linux::uaccess, //
    },
    object::Object,
    session::{
        Session,
        Use,
        Work, //
    }, //
};

/// The objects that a work names, in use.
struct Objects {
    ep: Option<Use<Object>>,
    triggering_cntr: Option<Use<Object>>,
    completion_cntr: Option<Use<Object>>,
    cntr: Option<Use<Object>>,
}

impl Objects {
    /// Finds them by their handles.
    fn get(session: ArcBorrow<'_, Session>, handles: [u32; 4]) -> Result<Self> {
        let [ep, triggering_cntr, completion_cntr, cntr] = handles;
        Ok(Self {
            ep: optional_any(session, ep)?,
            triggering_cntr: optional_any(session, triggering_cntr)?,
            completion_cntr: optional_any(session, completion_cntr)?,
            cntr: optional_any(session, cntr)?,
        })
    }

    /// Returns them as kfabric knows them.
    fn for_work(&self) -> Result<WorkObjects<'_>> {
        Ok(WorkObjects {
            ep: any(&self.ep)?,
            triggering_cntr: any(&self.triggering_cntr)?,
            completion_cntr: any(&self.completion_cntr)?,
            cntr: any(&self.cntr)?,
        })
    }
}

/// Flags of a work that is made.
const MAKE_FLAGS: u32 =
    abi::KFI_SHIM_WORK_PREPARE | abi::KFI_SHIM_WORK_NULL | abi::KFI_SHIM_WORK_NO_OP;

/// Returns the kind of a data transfer; none for other types.
fn kind(op_type: u32) -> Option<Kind> {
    Some(match op_type {
        abi::KFI_OP_RECV => Kind::Recv,
        abi::KFI_OP_SEND => Kind::Send,
        abi::KFI_OP_TRECV => Kind::TaggedRecv,
        abi::KFI_OP_TSEND => Kind::TaggedSend,
        abi::KFI_OP_READ => Kind::Read,
        abi::KFI_OP_WRITE => Kind::Write,
        abi::KFI_OP_ATOMIC => Kind::Atomic,
        abi::KFI_OP_FETCH_ATOMIC => Kind::FetchAtomic,
        abi::KFI_OP_COMPARE_ATOMIC => Kind::CompareAtomic,
        _ => return None,
    })
}

/// Makes a work; returns its id.
fn make(
    session: ArcBorrow<'_, Session>,
    request: &abi::Work,
    domain: &Domain,
) -> Result<(u64, Arc<Work>)> {
    let with_op = request.flags & abi::KFI_SHIM_WORK_NO_OP == 0;
    let transfer = match kind(request.op_type) {
        Some(kind) if with_op => {
            let size = usize::try_from(request.op_size)?;
            if size > ELEMENT_MAX {
                return Err(E2BIG);
            }
            let ptr = UserPtr::from_addr(usize::try_from(request.op)?);
            let op: abi::Op = uaccess::read(ptr, size)?;
            if op.reserved != 0 || op.shim_flags & !abi::KFI_SHIM_OP_TRIGGERED != 0 {
                return Err(EINVAL);
            }
            let form = form(op.form)?;
            let Form::Msg(shape) = form else {
                return Err(EINVAL);
            };
            Some((op, kind, form, shape))
        }
        _ => None,
    };
    let ep = transfer.as_ref().map_or(0, |(op, ..)| op.ep);
    let handles = [
        ep,
        request.triggering_cntr,
        request.completion_cntr,
        request.cntr,
    ];
    let objects = Objects::get(session, handles)?;
    let named = objects.for_work()?;
    let lists = match &transfer {
        Some((op, kind, ..)) => Some(Lists::read(session, op, *kind)?),
        None => None,
    };
    let operation = match (&transfer, &lists) {
        (Some((op, kind, form, shape)), Some(lists)) => {
            WorkOperation::Transfer(lists.operation(op, *kind, *form), *shape)
        }
        _ if with_op && request.op_type == abi::KFI_OP_CNTR_SET => {
            WorkOperation::CounterSet(request.value)
        }
        _ if with_op && request.op_type == abi::KFI_OP_CNTR_ADD => {
            WorkOperation::CounterAdd(request.value)
        }
        _ => WorkOperation::None(request.op_type),
    };
    let charge = session.object()?;
    let endpoint = match objects.ep.as_deref() {
        Some(Object::Endpoint(ep)) => Some(&**ep),
        _ => None,
    };
    let work = DeferredWork::new(domain, request.threshold, &named, endpoint, operation)?;
    session.add_work(Work {
        request: work,
        domain: request.domain,
        ep,
        triggering_cntr: request.triggering_cntr,
        completion_cntr: request.completion_cntr,
        cntr: request.cntr,
        _charge: charge,
    })
}

/// Queues a work; fills in what the request tells.
fn queue_one(session: ArcBorrow<'_, Session>, request: &mut abi::Work) -> Result {
    if request.flags & !MAKE_FLAGS != 0 {
        return Err(EINVAL);
    }
    if request.flags & abi::KFI_SHIM_WORK_NULL != 0 {
        if request.id != 0 || request.flags != abi::KFI_SHIM_WORK_NULL {
            return Err(EINVAL);
        }
        let domain = Session::get::<Domain>(session, request.domain)?;
        request.result = result(domain.queue_null());
        return Ok(());
    }
    let made = request.id == 0;
    let (id, work) = if made {
        let domain = Session::get::<Domain>(session, request.domain)?;
        make(session, request, &domain)?
    } else {
        let work = session.work(request.id)?;
        if request.flags != 0 || request.domain != 0 && request.domain != work.domain {
            return Err(EINVAL);
        }
        (request.id, work)
    };
    request.id = id;
    request.result = 0;
    if request.flags & abi::KFI_SHIM_WORK_PREPARE == 0 {
        match queue(session, &work) {
            Ok(ret) => request.result = result(ret),
            Err(error) => {
                drop(work);
                if made {
                    // The caller does not learn its id.
                    drop(session.take_work(id));
                }
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Queues a work; returns what kfabric says.
fn queue(session: ArcBorrow<'_, Session>, work: &Work) -> Result<Answer> {
    let domain = Session::get::<Domain>(session, work.domain)?;
    let handles = [
        work.ep,
        work.triggering_cntr,
        work.completion_cntr,
        work.cntr,
    ];
    let objects = Objects::get(session, handles)?;
    domain.queue_work(&work.request, &objects.for_work()?)
}

/// Queues a work.
pub(super) fn queue_work(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Work = argument.read_for_update()?;
    queue_one(session, &mut request)?;
    argument.write(&request)
}

/// Queues works.
pub(super) fn queue_work_batch(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    batch(argument, |request: &mut abi::Work| {
        queue_one(session, request)?;
        Ok(request.result)
    })
}

/// Cancels a work.
pub(super) fn cancel_work(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CancelWork = argument.read_for_update()?;
    let known = abi::KFI_SHIM_WORK_RELEASE | abi::KFI_SHIM_WORK_STALE;
    if request.reserved != 0 || request.flags & !known != 0 {
        return Err(EINVAL);
    }
    if request.id == 0 {
        if request.flags != 0 {
            return Err(EINVAL);
        }
        let domain = Session::get::<Domain>(session, request.domain)?;
        request.result = result(domain.cancel_null());
        return argument.write(&request);
    }
    let work = session.work(request.id)?;
    let domain = match request.domain {
        0 => work.domain,
        domain => domain,
    };
    let domain = Session::get::<Domain>(session, domain)?;
    request.result = if request.flags & abi::KFI_SHIM_WORK_STALE != 0 {
        drop(work);
        let work = session.take_work(request.id)?;
        let stale = work.request.clone();
        drop(work);
        result(domain.cancel_stale(stale)?)
    } else {
        let ret = domain.cancel_work(&work.request);
        if ret.is_ok() && request.flags & abi::KFI_SHIM_WORK_RELEASE != 0 {
            // Unless it was queued again meanwhile.
            let _ = session.take_work(request.id);
        }
        result(ret)
    };
    argument.write(&request)
}

/// Frees a work.
pub(super) fn release_work(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::CancelWork = argument.read_for_update()?;
    if request.reserved != 0 || request.flags != 0 || request.domain != 0 {
        return Err(EINVAL);
    }
    let work = session.work(request.id)?;
    if !work.request.is_idle() && work.request.has_no_endpoint() {
        // Operations that have fired have ended. If the domain is being closed, all of it has.
        if let Ok(domain) = Session::get::<Domain>(session, work.domain) {
            let _ = domain.cancel_work(&work.request);
        }
    }
    drop(work);
    let work = session.take_work(request.id)?;
    drop(work);
    request.result = 0;
    argument.write(&request)
}

/// Cancels all works.
pub(super) fn flush_work(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::FlushWork = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let domain = Session::get::<Domain>(session, request.domain)?;
    let cntr = optional_any(session, request.cntr)?;
    request.result = result(domain.flush_work(any(&cntr)?));
    argument.write(&request)
}
