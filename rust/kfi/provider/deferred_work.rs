// SPDX-License-Identifier: GPL-2.0

//! Deferred work (`struct kfi_deferred_work`), as it is queued.

use kernel::{
    error::from_result,
    prelude::*, //
};

use super::{
    datatype_size,
    endpoint::{
        AtomicMessage,
        SourceRanges,
        TargetRanges, //
    },
    AtomicForm,
    DomainOps,
    Operation, //
};
use crate::kfi::{
    bindings,
    fid::{
        AnyFid,
        ExtraOps,
        Fid,
        OpsName, //
    },
    flags::OpFlags, //
};

/// The name of a request: the value of the pointer that it was queued with, which is
/// never dereferenced again (R-CTL-2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkId(usize);

impl WorkId {
    /// Takes a request from C.
    fn from_raw(work: *const bindings::kfi_deferred_work) -> Self {
        Self(work.addr())
    }

    /// Returns the value.
    pub fn as_number(self) -> usize {
        self.0
    }
}

/// A request that is being queued.
pub struct DeferredWork<'a> {
    /// Its name.
    pub id: WorkId,
    /// The sum of the success and error value at which it begins.
    pub threshold: u64,
    /// The counter that it waits for: not checked yet, it may be of any class or provider.
    pub triggering: AnyFid<'a>,
    /// The counter that counts its completion: not checked yet; none for counter operations.
    pub completion: Option<AnyFid<'a>>,
    /// The action.
    pub op: DeferredOp<'a>,
}

/// The action of a request.
pub enum DeferredOp<'a> {
    /// Posts an operation.
    Transfer {
        /// The endpoint or context: not checked yet, it may be of any class or provider.
        endpoint: AnyFid<'a>,
        /// The operation. It has no trigger and is not injected (R-DWQ-16, R-DWQ-21).
        operation: Operation<'a>,
    },
    /// Sets a counter.
    CounterSet {
        /// The counter: not checked yet, it may be of any class or provider.
        counter: AnyFid<'a>,
        /// The value.
        value: u64,
    },
    /// Adds to a counter.
    CounterAdd {
        /// The counter: not checked yet, it may be of any class or provider.
        counter: AnyFid<'a>,
        /// The value.
        value: u64,
    },
}

impl<'a> DeferredWork<'a> {
    /// Reads a request from C.
    ///
    /// `EINVAL` for null pointers, `KFI_INJECT`, and a counter operation with a completion counter;
    /// `ENOSYS` for an operation or a type of elements that is not known (R-DWQ-9, 16, 17).
    ///
    /// # Safety
    ///
    /// During `'a`, `work` must be null or valid, and so must the structure of its operation and
    /// what that points to. The objects in both must be null or open.
    unsafe fn from_raw(work: *const bindings::kfi_deferred_work) -> Result<Self> {
        let id = WorkId::from_raw(work);
        // SAFETY: By the safety requirements.
        let work = unsafe { work.as_ref() }.ok_or(EINVAL)?;
        // SAFETY: By the safety requirements.
        let triggering = unsafe { object(work.triggering_cntr) }?;
        // SAFETY: By the safety requirements.
        let completion = unsafe { AnyFid::from_raw(work.completion_cntr.cast()) };
        // SAFETY: By the safety requirements; the type says which structure there is.
        let op = unsafe { DeferredOp::from_raw(work.op_type, &work.op) }?;
        if completion.is_some() && !matches!(op, DeferredOp::Transfer { .. }) {
            return Err(EINVAL);
        }
        Ok(Self {
            id,
            threshold: work.threshold,
            triggering,
            completion,
            op,
        })
    }
}

impl<'a> DeferredOp<'a> {
    /// Reads an operation from C.
    ///
    /// # Safety
    ///
    /// The member of `op` that `op_type` says must be null or valid, as for
    /// [`DeferredWork::from_raw`].
    unsafe fn from_raw(
        op_type: bindings::kfi_op_type,
        op: &bindings::kfi_deferred_work__bindgen_ty_1,
    ) -> Result<Self> {
        // SAFETY: The members are pointers, and the one that is read is null or valid, by the safety
        // requirements. So is what it points to.
        unsafe {
            match op_type {
                bindings::KFI_OP_RECV => Self::message(op.msg, true),
                bindings::KFI_OP_SEND => Self::message(op.msg, false),
                bindings::KFI_OP_TRECV => Self::tagged(op.tagged, true),
                bindings::KFI_OP_TSEND => Self::tagged(op.tagged, false),
                bindings::KFI_OP_READ => Self::rma(op.rma, false),
                bindings::KFI_OP_WRITE => Self::rma(op.rma, true),
                bindings::KFI_OP_ATOMIC => {
                    let op = op.atomic.as_ref().ok_or(EINVAL)?;
                    Self::atomic(op.ep, &op.msg, op.flags, |_| Ok(AtomicForm::Plain))
                }
                bindings::KFI_OP_FETCH_ATOMIC => {
                    let op = op.fetch_atomic.as_ref().ok_or(EINVAL)?;
                    Self::atomic(op.ep, &op.msg, op.flags, |datatype| {
                        let result = &op.fetch;
                        Ok(AtomicForm::Fetch {
                            result: TargetRanges::new(result.msg_iov, result.iov_count)
                                .of(datatype)?,
                        })
                    })
                }
                bindings::KFI_OP_COMPARE_ATOMIC => {
                    let op = op.compare_atomic.as_ref().ok_or(EINVAL)?;
                    Self::atomic(op.ep, &op.msg, op.flags, |datatype| {
                        let bindings::kfi_op_compare_atomic {
                            fetch: result,
                            compare,
                            ..
                        } = op;
                        Ok(AtomicForm::Compare {
                            compare: SourceRanges::new(compare.msg_iov, compare.iov_count)
                                .of(datatype)?,
                            result: TargetRanges::new(result.msg_iov, result.iov_count)
                                .of(datatype)?,
                        })
                    })
                }
                bindings::KFI_OP_CNTR_SET => {
                    let op = op.cntr.as_ref().ok_or(EINVAL)?;
                    Ok(Self::CounterSet {
                        counter: object(op.cntr)?,
                        value: op.value,
                    })
                }
                bindings::KFI_OP_CNTR_ADD => {
                    let op = op.cntr.as_ref().ok_or(EINVAL)?;
                    Ok(Self::CounterAdd {
                        counter: object(op.cntr)?,
                        value: op.value,
                    })
                }
                _ => Err(ENOSYS),
            }
        }
    }

    /// A message.
    ///
    /// # Safety
    ///
    /// As for [`Self::from_raw`].
    unsafe fn message(op: *const bindings::kfi_op_msg, receive: bool) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let op = unsafe { op.as_ref() }.ok_or(EINVAL)?;
        let flags = flags(op.flags)?;
        Ok(Self::Transfer {
            // SAFETY: By the safety requirements.
            endpoint: unsafe { object(op.ep) }?,
            // SAFETY: By the safety requirements.
            operation: unsafe { Operation::from_message(&op.msg, flags, receive) }?,
        })
    }

    /// A tagged message.
    ///
    /// # Safety
    ///
    /// As for [`Self::from_raw`].
    unsafe fn tagged(op: *const bindings::kfi_op_tagged, receive: bool) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let op = unsafe { op.as_ref() }.ok_or(EINVAL)?;
        let flags = flags(op.flags)?;
        Ok(Self::Transfer {
            // SAFETY: By the safety requirements.
            endpoint: unsafe { object(op.ep) }?,
            // SAFETY: By the safety requirements.
            operation: unsafe { Operation::from_tagged(&op.msg, flags, receive) }?,
        })
    }

    /// A remote memory access.
    ///
    /// # Safety
    ///
    /// As for [`Self::from_raw`].
    unsafe fn rma(op: *const bindings::kfi_op_rma, write: bool) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let op = unsafe { op.as_ref() }.ok_or(EINVAL)?;
        let flags = flags(op.flags)?;
        Ok(Self::Transfer {
            // SAFETY: By the safety requirements.
            endpoint: unsafe { object(op.ep) }?,
            // SAFETY: By the safety requirements.
            operation: unsafe { Operation::from_rma(&op.msg, flags, write) }?,
        })
    }

    /// An atomic operation.
    ///
    /// # Safety
    ///
    /// As for [`Self::from_raw`].
    unsafe fn atomic(
        ep: *mut bindings::kfid_ep,
        msg: &'a bindings::kfi_msg_atomic,
        raw_flags: u64,
        form: impl FnOnce(bindings::kfi_datatype) -> Result<AtomicForm<'a>>,
    ) -> Result<Self> {
        // Unlike direct calls, which answer `EOPNOTSUPP` (R-DWQ-17).
        datatype_size(msg.datatype).ok_or(ENOSYS)?;
        let flags = flags(raw_flags)?;
        Ok(Self::Transfer {
            // SAFETY: By the safety requirements.
            endpoint: unsafe { object(ep) }?,
            // SAFETY: By the safety requirements.
            operation: unsafe { AtomicMessage::from_raw(msg) }?.operation(flags, form)?,
        })
    }
}

/// Carries out a command about the deferred work of a domain; `None` for all others.
///
/// # Safety
///
/// For KFI_QUEUE_WORK `arg` must be as [`DeferredWork::from_raw`] says, for KFI_FLUSH_WORK null or a
/// counter that is open.
pub(super) unsafe fn control<T: DomainOps>(
    this: &Fid<T>,
    command: c_int,
    arg: *mut c_void,
) -> Option<Result> {
    const QUEUE: c_int = bindings::KFI_QUEUE_WORK.cast_signed();
    const CANCEL: c_int = bindings::KFI_CANCEL_WORK.cast_signed();
    const FLUSH: c_int = bindings::KFI_FLUSH_WORK.cast_signed();

    match command {
        QUEUE => {
            // SAFETY: By the safety requirements.
            let work = unsafe { DeferredWork::from_raw(arg.cast()) };
            Some(work.and_then(|work| T::queue_work(this, work)))
        }
        CANCEL => Some(cancel(this, arg)),
        FLUSH => {
            // SAFETY: By the safety requirements; a counter starts with a `struct kfid`.
            let triggering = unsafe { AnyFid::from_raw(arg.cast()) };
            Some(T::flush_work(this, triggering))
        }
        _ => None,
    }
}

/// Takes back what was queued with a pointer, which may be any.
fn cancel<T: DomainOps>(this: &Fid<T>, work: *const c_void) -> Result {
    if work.is_null() {
        return Err(EINVAL);
    }
    T::cancel_work(this, WorkId::from_raw(work.cast()))
}

/// Takes back what was queued with a pointer, which may be any.
///
/// # Safety
///
/// `domain` must be the start of an open domain of `T`.
unsafe extern "C" fn cancel_callback<T: DomainOps>(
    domain: *mut bindings::kfid,
    work: *const c_void,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(domain.cast()) };
    from_result(|| {
        cancel(this, work)?;
        Ok(0)
    })
}

/// Returns the table that lets tests cancel pointers to anything at a domain of `T`, if that is what
/// `name` asks for.
pub fn domain_test_ops<'o, T: DomainOps>(
    _domain: &Fid<T>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, T>> {
    struct Table<T>(core::marker::PhantomData<T>);
    impl<T: DomainOps> Table<T> {
        const OPS: bindings::kfi_soft_dom_ops = bindings::kfi_soft_dom_ops {
            size: size_of::<bindings::kfi_soft_dom_ops>(),
            cancel_work: Some(cancel_callback::<T>),
        };
    }

    // SAFETY: It is the table of that name, and expects domains of `T`; a `WorkId` is a number.
    unsafe {
        ExtraOps::new(
            name,
            bindings::KFI_SOFT_DOM_OPS_1,
            const { &Table::<T>::OPS },
        )
    }
    .ok_or(ENOSYS)
}

/// Takes an object from C; `EINVAL` for null.
///
/// # Safety
///
/// `head` must be null or the head of an object that is open for `'a`.
unsafe fn object<'a, H>(head: *mut H) -> Result<AnyFid<'a>> {
    // SAFETY: By the safety requirements; every head starts with a `struct kfid`.
    unsafe { AnyFid::from_raw(head.cast()) }.ok_or(EINVAL)
}

/// Checks the flags of an operation.
fn flags(raw: u64) -> Result<u64> {
    let flags = OpFlags::from_raw(raw);
    if flags.contains(OpFlags::INJECT) {
        return Err(EINVAL);
    }
    // Not deferred twice (R-DWQ-21).
    Ok(flags.without(OpFlags::TRIGGER).as_raw())
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_deferred_work)]
mod tests {
    use core::ptr;

    use super::*;
    use crate::kfi::provider::Kind;

    /// A request that sends nothing, with what it points to.
    struct Request {
        counter: bindings::kfid_cntr,
        endpoint: bindings::kfid_ep,
        msg: bindings::kfi_op_msg,
        work: bindings::kfi_deferred_work,
    }

    impl Request {
        fn new() -> Self {
            let mut this = Self {
                counter: pin_init::zeroed(),
                endpoint: pin_init::zeroed(),
                msg: pin_init::zeroed(),
                work: pin_init::zeroed(),
            };
            this.msg.msg.type_ = bindings::KFI_KVEC;
            this.work.op_type = bindings::KFI_OP_SEND;
            this.work.threshold = 7;
            this
        }

        /// Fills in the pointers and reads the request.
        fn read(&mut self) -> Result<DeferredWork<'_>> {
            self.msg.ep = &raw mut self.endpoint;
            self.work.triggering_cntr = &raw mut self.counter;
            self.work.op.msg = &raw mut self.msg;
            // SAFETY: All is valid, and nothing looks behind objects.
            unsafe { DeferredWork::from_raw(&raw const self.work) }
        }
    }

    #[test]
    fn requests_are_read() -> Result {
        let mut request = Request::new();
        request.msg.flags = (OpFlags::COMPLETION | OpFlags::TRIGGER).as_raw();
        request.msg.msg.context = ptr::without_provenance_mut(5);
        let id = (&raw const request.work).addr();
        let work = request.read()?;

        assert_eq!(work.id.as_number(), id);
        assert_eq!(work.threshold, 7);
        assert!(work.completion.is_none());
        let DeferredOp::Transfer { operation, .. } = work.op else {
            return Err(EINVAL);
        };
        assert!(matches!(operation.kind, Kind::Send));
        assert!(operation.flags == OpFlags::COMPLETION);
        assert!(operation.trigger.is_none() && !operation.inject);
        assert_eq!(operation.context.as_number(), 5);
        assert_eq!(operation.local.len()?, 0);
        Ok(())
    }

    #[test]
    fn bad_requests_are_refused() {
        /// Reads a request after `change`.
        fn refused(change: impl FnOnce(&mut Request)) -> Option<Error> {
            let mut request = Request::new();
            change(&mut request);
            let result = request.read();
            result.err()
        }

        let inject = OpFlags::INJECT.as_raw();
        assert!(refused(|request| request.msg.flags = inject) == Some(EINVAL));
        assert!(refused(|request| request.msg.msg.type_ = 0) == Some(EINVAL));
        assert!(refused(|_| ()).is_none());
        assert!(refused(|request| request.work.op_type = 11) == Some(ENOSYS));
        // SAFETY: Null is allowed.
        let null = unsafe { DeferredWork::from_raw(ptr::null()) };
        assert!(null.err() == Some(EINVAL));
    }

    #[test]
    fn null_pointers_are_refused() {
        for op_type in bindings::KFI_OP_RECV..=bindings::KFI_OP_CNTR_ADD {
            let mut counter: bindings::kfid_cntr = pin_init::zeroed();
            let mut work: bindings::kfi_deferred_work = pin_init::zeroed();
            work.op_type = op_type;
            // SAFETY: Null is allowed.
            let no_counter = unsafe { DeferredWork::from_raw(&raw const work) };
            assert!(no_counter.err() == Some(EINVAL));
            work.triggering_cntr = &raw mut counter;
            // SAFETY: As above.
            let no_op = unsafe { DeferredWork::from_raw(&raw const work) };
            assert!(no_op.err() == Some(EINVAL));

            // As long as the longest of the structures, and all null.
            let mut op: bindings::kfi_op_compare_atomic = pin_init::zeroed();
            work.op.compare_atomic = &raw mut op;
            // SAFETY: As above.
            let no_object = unsafe { DeferredWork::from_raw(&raw const work) };
            assert!(no_object.err() == Some(EINVAL));
        }
    }

    #[test]
    fn counter_operations_have_no_completion_counter() -> Result {
        let mut counter: bindings::kfid_cntr = pin_init::zeroed();
        let mut op = bindings::kfi_op_cntr {
            cntr: &raw mut counter,
            value: 3,
        };
        let mut work: bindings::kfi_deferred_work = pin_init::zeroed();
        work.triggering_cntr = &raw mut counter;
        work.op.cntr = &raw mut op;
        for op_type in [bindings::KFI_OP_CNTR_SET, bindings::KFI_OP_CNTR_ADD] {
            work.op_type = op_type;
            work.completion_cntr = ptr::null_mut();
            // SAFETY: All is valid, and nothing looks behind objects.
            let alone = unsafe { DeferredWork::from_raw(&raw const work) }?;
            assert!(matches!(
                alone.op,
                DeferredOp::CounterSet { value: 3, .. } | DeferredOp::CounterAdd { value: 3, .. }
            ));
            work.completion_cntr = &raw mut counter;
            // SAFETY: As above.
            let counted = unsafe { DeferredWork::from_raw(&raw const work) };
            assert!(counted.err() == Some(EINVAL));
        }
        Ok(())
    }

    #[test]
    fn unknown_elements_are_refused() {
        let mut counter: bindings::kfid_cntr = pin_init::zeroed();
        let mut endpoint: bindings::kfid_ep = pin_init::zeroed();
        let mut op: bindings::kfi_op_atomic = pin_init::zeroed();
        op.ep = &raw mut endpoint;
        let mut work: bindings::kfi_deferred_work = pin_init::zeroed();
        work.op_type = bindings::KFI_OP_ATOMIC;
        work.triggering_cntr = &raw mut counter;
        for (datatype, error) in [
            (bindings::KFI_UINT64, None),
            (bindings::KFI_FLOAT, Some(ENOSYS)),
            (bindings::KFI_DATATYPE_LAST, Some(ENOSYS)),
        ] {
            op.msg.datatype = datatype;
            work.op.atomic = &raw mut op;
            // SAFETY: All is valid, and nothing looks behind objects.
            let result = unsafe { DeferredWork::from_raw(&raw const work) };
            assert!(result.err() == error);
        }
    }
}
