// SPDX-License-Identifier: GPL-2.0

//! Requests about operations.

#![forbid(unsafe_code)]

use core::mem::offset_of;
use kernel::{
    prelude::*,
    sync::ArcBorrow,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

use super::{
    any,
    buffer::{
        segments,
        Segments, //
    },
    optional_any,
    result,
    Argument, //
};
use crate::{
    abi,
    kfi::{
        consumer::{
            element_size,
            ignores_operand,
            Answer,
            Charge,
            Condition,
            Domain,
            Endpoint,
            Form,
            Kind,
            OpContext,
            Operation,
            Quota,
            RmaSegment,
            Shape, //
        },
        linux::uaccess::{
            self,
            Versioned, //
        }, //
    },
    session::Session, //
};

/// Returns the kind of an operation.
fn kind(kind: u32) -> Result<Kind> {
    Ok(match kind {
        abi::KFI_SHIM_OP_SEND => Kind::Send,
        abi::KFI_SHIM_OP_RECV => Kind::Recv,
        abi::KFI_SHIM_OP_TSEND => Kind::TaggedSend,
        abi::KFI_SHIM_OP_TRECV => Kind::TaggedRecv,
        abi::KFI_SHIM_OP_READ => Kind::Read,
        abi::KFI_SHIM_OP_WRITE => Kind::Write,
        abi::KFI_SHIM_OP_ATOMIC => Kind::Atomic,
        abi::KFI_SHIM_OP_FETCH_ATOMIC => Kind::FetchAtomic,
        abi::KFI_SHIM_OP_COMPARE_ATOMIC => Kind::CompareAtomic,
        _ => return Err(EINVAL),
    })
}

/// Returns the form of an operation.
pub(super) fn form(form: u32) -> Result<Form> {
    Ok(match form {
        abi::KFI_SHIM_FORM_PLAIN => Form::Plain,
        abi::KFI_SHIM_FORM_V => Form::Array(Shape::Kvec),
        abi::KFI_SHIM_FORM_BV => Form::Array(Shape::Bvec),
        abi::KFI_SHIM_FORM_SGL => Form::Array(Shape::Sgl),
        abi::KFI_SHIM_FORM_MSG => Form::Msg(Shape::Kvec),
        abi::KFI_SHIM_FORM_MSG_BV => Form::Msg(Shape::Bvec),
        abi::KFI_SHIM_FORM_MSG_SGL => Form::Msg(Shape::Sgl),
        abi::KFI_SHIM_FORM_INJECT => Form::Inject,
        abi::KFI_SHIM_FORM_DATA => Form::Data,
        abi::KFI_SHIM_FORM_INJECT_DATA => Form::InjectData,
        _ => return Err(EINVAL),
    })
}

/// The memory of an operation.
pub(super) struct Lists {
    segments: Segments,
    results: Segments,
    compares: Segments,
    rma: KVVec<RmaSegment>,
    _charge: Charge,
}

impl Lists {
    /// Reads what a request names.
    pub(super) fn read(
        session: ArcBorrow<'_, Session>,
        request: &abi::Op,
        kind: Kind,
    ) -> Result<Self> {
        let element = if kind.is_atomic() {
            element_size(request.datatype)
        } else {
            1
        };
        let null = kind == Kind::FetchAtomic && ignores_operand(request.atomic_op);
        let list = |ptr, count, null| segments(session, ptr, count, element, null);
        let remote = usize::try_from(request.rma_segment_count)?;
        let remote = remote.saturating_mul(size_of::<RmaSegment>());
        let charge = Quota::charge(session.quota(), remote)?;
        Ok(Self {
            segments: list(request.segments, request.segment_count, null)?,
            results: list(request.results, request.result_count, false)?,
            compares: list(request.compares, request.compare_count, false)?,
            rma: rma_segments(request.rma_segments, request.rma_segment_count)?,
            _charge: charge,
        })
    }

    /// Returns the operation.
    pub(super) fn operation(&self, request: &abi::Op, kind: Kind, form: Form) -> Operation<'_> {
        Operation {
            kind,
            form,
            flags: request.flags,
            addr: request.addr,
            number: request.context,
            context: OpContext::NONE,
            data: request.data,
            tag: request.tag,
            ignore: request.ignore,
            segments: &self.segments,
            results: &self.results,
            compares: &self.compares,
            rma: &self.rma,
            datatype: request.datatype,
            op: request.atomic_op,
        }
    }
}

/// Reads pieces of a peer's memory.
fn rma_segments(ptr: u64, count: u32) -> Result<KVVec<RmaSegment>> {
    if count > abi::KFI_SHIM_SEGMENTS_MAX {
        return Err(E2BIG);
    }
    let count = usize::try_from(count)?;
    let ptr = UserPtr::from_addr(usize::try_from(ptr)?);
    let mut reader = UserSlice::new(ptr, count * size_of::<abi::RmaSegmentAt>()).reader();
    let mut segments = KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
    for _ in 0..count {
        let at: abi::RmaSegmentAt = reader.read()?;
        let segment = RmaSegment {
            addr: at.addr,
            len: usize::try_from(at.len)?,
            key: at.key,
        };
        segments.push(segment, GFP_KERNEL_ACCOUNT)?;
    }
    Ok(segments)
}

/// Posts an operation; returns what kfabric says.
fn post_one(session: ArcBorrow<'_, Session>, request: &abi::Op) -> Result<Answer> {
    if request.reserved != 0 || request.shim_flags & !abi::KFI_SHIM_OP_TRIGGERED != 0 {
        return Err(EINVAL);
    }
    let kind = kind(request.kind)?;
    let form = form(request.form)?;
    let injected = matches!(form, Form::Inject | Form::InjectData);
    let triggered = request.shim_flags & abi::KFI_SHIM_OP_TRIGGERED != 0;
    if !matches!(form, Form::Msg(_)) && request.flags != 0
        || injected && (request.context != 0 || triggered)
    {
        return Err(EINVAL);
    }
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    let lists = Lists::read(session, request, kind)?;
    let cntr = if triggered {
        optional_any(session, request.trigger_cntr)?
    } else {
        None
    };
    let condition = if triggered {
        Some(Condition {
            event: request.trigger_event,
            cntr: any(&cntr)?,
            threshold: usize::try_from(request.threshold)?,
        })
    } else {
        None
    };
    ep.post(lists.operation(request, kind, form), condition)
}

/// Posts an operation.
pub(super) fn post(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::Op = argument.read_for_update()?;
    request.result = result(post_one(session, &request)?);
    argument.write(&request)
}

/// Carries out requests that lie in an array, one by one; each call of `one` fills in what the
/// structure tells, and returns its result.
pub(super) fn batch<T: Versioned>(
    argument: Argument,
    mut one: impl FnMut(&mut T) -> Result<i32>,
) -> Result {
    let mut request: abi::Batch = argument.read_for_update()?;
    if request.flags & !abi::KFI_SHIM_BATCH_STOP != 0 {
        return Err(EINVAL);
    }
    let size = usize::try_from(request.size)?;
    if size < T::FIRST_SIZE {
        return Err(EINVAL);
    }
    if request.count > abi::KFI_SHIM_BATCH_MAX || size > ELEMENT_MAX {
        return Err(E2BIG);
    }
    let array = usize::try_from(request.array)?;
    request.done = 0;
    while request.done < request.count {
        let at = size
            .checked_mul(usize::try_from(request.done)?)
            .ok_or(EFAULT)?;
        let ptr = UserPtr::from_addr(array.checked_add(at).ok_or(EFAULT)?);
        let mut element = |ptr| {
            let mut value: T = uaccess::read(ptr, size)?;
            // Before anything is done that could not be told of.
            uaccess::write(ptr, size, &value)?;
            let result = one(&mut value)?;
            uaccess::write(ptr, size, &value)?;
            Ok::<i32, Error>(result)
        };
        match element(ptr) {
            Ok(result) => {
                request.done += 1;
                if result != 0 && request.flags & abi::KFI_SHIM_BATCH_STOP != 0 {
                    break;
                }
            }
            Err(error) if request.done == 0 => return Err(error),
            Err(_) => break,
        }
        if kernel::current!().signal_pending() {
            break;
        }
        // Others want the CPU, too.
        kernel::task::might_sleep();
    }
    argument.write(&request)
}

/// The largest size of an element of a batch; more than any version will have.
pub(super) const ELEMENT_MAX: usize = 1 << 12;

/// Posts operations.
pub(super) fn post_batch(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    batch(argument, |request: &mut abi::Op| {
        request.result = result(post_one(session, request)?);
        Ok(request.result)
    })
}

// The element's result lies where every version has it.
kernel::prelude::static_assert!(offset_of!(abi::Op, result) < abi::Op::FIRST_SIZE);

/// Asks for an atomic operation.
pub(super) fn query_atomic(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::QueryAtomic = argument.read_for_update()?;
    let domain = Session::get::<Domain>(session, request.domain)?;
    let answer = domain.query_atomic(request.datatype, request.op, request.flags);
    let (count, size) = answer.unwrap_or((0, 0));
    request.result = result(answer.map(|_| ()));
    request.count = count as u64;
    request.size = size as u64;
    argument.write(&request)
}

/// Asks an endpoint for an atomic operation.
pub(super) fn atomic_valid(session: ArcBorrow<'_, Session>, argument: Argument) -> Result {
    let mut request: abi::AtomicValid = argument.read_for_update()?;
    if request.reserved != 0 {
        return Err(EINVAL);
    }
    let ep = Session::get::<Endpoint>(session, request.ep)?;
    let answer = ep.atomic_valid(kind(request.kind)?, request.datatype, request.op)?;
    request.count = answer.unwrap_or(0) as u64;
    request.result = result(answer.map(|_| ()));
    argument.write(&request)
}
