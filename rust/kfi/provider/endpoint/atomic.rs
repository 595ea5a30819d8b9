// SPDX-License-Identifier: GPL-2.0

//! Atomic operations (`struct kfi_ops_atomic`).

use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::rcu, //
};

use super::{
    post,
    post_callbacks,
    EndpointOps,
    Form, //
};
use crate::kfi::{
    bindings,
    fid::Fid,
    memory::{
        Buffers,
        RemoteRanges,
        Source,
        SourceBuffers,
        Target,
        TargetBuffers, //
    },
    provider::{
        datatype_size,
        AtomicCall,
        AtomicForm,
        Atomics,
        Kind,
        Operation, //
    }, //
};

/// Returns the table.
pub(super) const fn table<T: EndpointOps>() -> bindings::kfi_ops_atomic {
    bindings::kfi_ops_atomic {
        size: size_of::<bindings::kfi_ops_atomic>(),
        write: Some(write_callback::<T>),
        writev: Some(writev_callback::<T>),
        writemsg: Some(writemsg_callback::<T>),
        inject: Some(inject_callback::<T>),
        readwrite: Some(readwrite_callback::<T>),
        readwritev: Some(readwritev_callback::<T>),
        readwritemsg: Some(readwritemsg_callback::<T>),
        compwrite: Some(compwrite_callback::<T>),
        compwritev: Some(compwritev_callback::<T>),
        compwritemsg: Some(compwritemsg_callback::<T>),
        writevalid: Some(writevalid_callback::<T>),
        readwritevalid: Some(readwritevalid_callback::<T>),
        compwritevalid: Some(compwritevalid_callback::<T>),
    }
}

/// The size of an element of a type; `EOPNOTSUPP` if nothing can be computed with it.
fn size_of_element(datatype: bindings::kfi_datatype) -> Result<usize> {
    datatype_size(datatype).ok_or(EOPNOTSUPP)
}

impl<D> Buffers<'_, D> {
    /// One range of elements.
    ///
    /// # Safety
    ///
    /// `buf` must be null or `count` elements as the type invariants say.
    unsafe fn elements(
        buf: *const c_void,
        count: usize,
        datatype: bindings::kfi_datatype,
    ) -> Result<Self> {
        let len = count
            .checked_mul(size_of_element(datatype)?)
            .ok_or(EINVAL)?;
        // SAFETY: By the safety requirements.
        Ok(unsafe { Self::one(buf, len) })
    }
}

/// Ranges of elements, of a type that is yet to be said.
///
/// # Invariants
///
/// `iov` is null or `count` entries as [`Buffers`] says, during `'a`.
#[derive(Clone, Copy)]
pub(in crate::kfi::provider) struct ElementRanges<'a, D> {
    iov: *const bindings::kfi_ioc,
    count: usize,
    _lifetime: PhantomData<&'a bindings::kfi_ioc>,
    _direction: PhantomData<D>,
}

/// Ranges that are only read.
pub(in crate::kfi::provider) type SourceRanges<'a> = ElementRanges<'a, Source>;

/// Ranges that are written.
pub(in crate::kfi::provider) type TargetRanges<'a> = ElementRanges<'a, Target>;

impl<'a, D> ElementRanges<'a, D> {
    /// Takes ranges from C.
    ///
    /// # Safety
    ///
    /// `iov` must be null or `count` entries as [`Buffers`] says.
    pub(in crate::kfi::provider) unsafe fn new(
        iov: *const bindings::kfi_ioc,
        count: usize,
    ) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            iov,
            count,
            _lifetime: PhantomData,
            _direction: PhantomData,
        }
    }

    /// Returns ranges of elements of a type; `EOPNOTSUPP` if nothing can be computed with it.
    pub(in crate::kfi::provider) fn of(
        self,
        datatype: bindings::kfi_datatype,
    ) -> Result<Buffers<'a, D>> {
        let size = size_of_element(datatype)?;
        // SAFETY: By the type invariants.
        Ok(unsafe { Buffers::ioc(self.iov, self.count, size) })
    }
}

/// An atomic operation as a call describes it.
///
/// # Invariants
///
/// All that it points to is as [`Buffers`] and [`RemoteRanges`] say, during `'a`.
pub(in crate::kfi::provider) struct AtomicMessage<'a>(&'a bindings::kfi_msg_atomic);

impl<'a> AtomicMessage<'a> {
    /// Takes a message from C; `EINVAL` for null.
    ///
    /// # Safety
    ///
    /// `msg` must be null or valid during `'a`, and what it points to as [`Buffers`] and
    /// [`RemoteRanges`] say.
    pub(in crate::kfi::provider) unsafe fn from_raw(
        msg: *const bindings::kfi_msg_atomic,
    ) -> Result<Self> {
        // INVARIANT: By the safety requirements.
        // SAFETY: By the safety requirements.
        Ok(Self(unsafe { msg.as_ref() }.ok_or(EINVAL)?))
    }

    /// Returns the operation; `form` makes its form of the type of the elements.
    pub(in crate::kfi::provider) fn operation(
        self,
        flags: u64,
        form: impl FnOnce(bindings::kfi_datatype) -> Result<AtomicForm<'a>>,
    ) -> Result<Operation<'a>> {
        let msg = self.0;
        let size = size_of_element(msg.datatype)?;
        let form = form(msg.datatype)?;
        let local = if msg.op == bindings::KFI_ATOMIC_READ {
            // There are no operands.
            SourceBuffers::NONE
        } else {
            // SAFETY: By the type invariants.
            unsafe { SourceBuffers::ioc(msg.msg_iov, msg.iov_count, size) }
        };
        let kind = Kind::Atomic(Atomics {
            // SAFETY: By the type invariants.
            remote: unsafe { RemoteRanges::ioc(msg.rma_iov, msg.rma_iov_count, size) },
            datatype: msg.datatype,
            op: msg.op,
            form,
        });
        let operation = Operation::new(kind, local, msg.addr, msg.context);
        Ok(operation.with_flags(flags, msg.data))
    }
}

/// The operation and its elements, in calls that name one range.
struct Elements {
    peer: bindings::kfi_addr_t,
    addr: u64,
    key: u64,
    datatype: bindings::kfi_datatype,
    op: bindings::kfi_op,
}

impl Elements {
    /// An operation on as many elements as there are operands or, if it has none, results.
    fn operation<'a>(
        self,
        operands: SourceBuffers<'a>,
        form: AtomicForm<'a>,
        context: *mut c_void,
    ) -> Result<Operation<'a>> {
        let (local, len) = match form {
            AtomicForm::Fetch { result } if self.op == bindings::KFI_ATOMIC_READ => {
                (SourceBuffers::NONE, result.len()?)
            }
            _ => (operands, operands.len()?),
        };
        let kind = Kind::Atomic(Atomics {
            remote: RemoteRanges::one(self.addr, len, self.key),
            datatype: self.datatype,
            op: self.op,
            form,
        });
        Ok(Operation::new(kind, local, self.peer, context))
    }
}

post_callbacks! {
    /// Changes elements.
    write_callback(
        buf: *const c_void,
        count: usize,
        _desc: *mut c_void,
        peer: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
        context: *mut c_void,
    ) => Plain,
        [operands = SourceBuffers::elements(buf, count, datatype)]
        {
            let elements = Elements { peer, addr, key, datatype, op };
            elements.operation(operands?, AtomicForm::Plain, context)
        };

    /// Changes elements, operands in ranges.
    writev_callback(
        iov: *const bindings::kfi_ioc,
        _desc: *mut *mut c_void,
        count: usize,
        peer: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
        context: *mut c_void,
    ) => Plain,
        [operands = SourceRanges::new(iov, count)]
        {
            let elements = Elements { peer, addr, key, datatype, op };
            elements.operation(operands.of(datatype)?, AtomicForm::Plain, context)
        };

    /// Changes elements, with flags.
    writemsg_callback(
        msg: *const bindings::kfi_msg_atomic,
        flags: u64,
    ) => Message,
        [message = AtomicMessage::from_raw(msg)]
        message?.operation(flags, |_| Ok(AtomicForm::Plain));

    /// Changes elements, operands in a buffer that is free at once.
    inject_callback(
        buf: *const c_void,
        count: usize,
        peer: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
    ) => Inject,
        [operands = SourceBuffers::elements(buf, count, datatype)]
        {
            let elements = Elements { peer, addr, key, datatype, op };
            elements.operation(operands?, AtomicForm::Plain, ptr::null_mut())
        };

    /// Changes and fetches elements.
    readwrite_callback(
        buf: *const c_void,
        count: usize,
        _desc: *mut c_void,
        result: *mut c_void,
        _result_desc: *mut c_void,
        peer: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
        context: *mut c_void,
    ) => Plain,
        [operands = SourceBuffers::elements(buf, count, datatype), results = TargetBuffers::elements(result, count, datatype)]
        {
            let elements = Elements { peer, addr, key, datatype, op };
            elements.operation(operands?, AtomicForm::Fetch { result: results? }, context)
        };

    /// Changes and fetches elements, in ranges.
    readwritev_callback(
        iov: *const bindings::kfi_ioc,
        _desc: *mut *mut c_void,
        count: usize,
        resultv: *mut bindings::kfi_ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        peer: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
        context: *mut c_void,
    ) => Plain,
        [
            operands = SourceRanges::new(iov, count),
            results = TargetRanges::new(resultv, result_count)
        ]
        {
            let elements = Elements { peer, addr, key, datatype, op };
            let form = AtomicForm::Fetch { result: results.of(datatype)? };
            elements.operation(operands.of(datatype)?, form, context)
        };

    /// Changes and fetches elements, with flags.
    readwritemsg_callback(
        msg: *const bindings::kfi_msg_atomic,
        resultv: *mut bindings::kfi_ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        flags: u64,
    ) => Message,
        [
            message = AtomicMessage::from_raw(msg),
            results = TargetRanges::new(resultv, result_count)
        ]
        message?.operation(flags, |datatype| {
            Ok(AtomicForm::Fetch { result: results.of(datatype)? })
        });

    /// Changes elements under a condition and fetches them.
    compwrite_callback(
        buf: *const c_void,
        count: usize,
        _desc: *mut c_void,
        compare: *const c_void,
        _compare_desc: *mut c_void,
        result: *mut c_void,
        _result_desc: *mut c_void,
        peer: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
        context: *mut c_void,
    ) => Plain,
        [
            operands = SourceBuffers::elements(buf, count, datatype),
            others = SourceBuffers::elements(compare, count, datatype),
            results = TargetBuffers::elements(result, count, datatype)
        ]
        {
            let elements = Elements { peer, addr, key, datatype, op };
            let form = AtomicForm::Compare { compare: others?, result: results? };
            elements.operation(operands?, form, context)
        };

    /// Changes elements under a condition and fetches them, in ranges.
    compwritev_callback(
        iov: *const bindings::kfi_ioc,
        _desc: *mut *mut c_void,
        count: usize,
        comparev: *const bindings::kfi_ioc,
        _compare_desc: *mut *mut c_void,
        compare_count: usize,
        resultv: *mut bindings::kfi_ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        peer: bindings::kfi_addr_t,
        addr: u64,
        key: u64,
        datatype: bindings::kfi_datatype,
        op: bindings::kfi_op,
        context: *mut c_void,
    ) => Plain,
        [
            operands = SourceRanges::new(iov, count),
            others = SourceRanges::new(comparev, compare_count),
            results = TargetRanges::new(resultv, result_count)
        ]
        {
            let elements = Elements { peer, addr, key, datatype, op };
            let form = AtomicForm::Compare {
                compare: others.of(datatype)?,
                result: results.of(datatype)?,
            };
            elements.operation(operands.of(datatype)?, form, context)
        };

    /// Changes elements under a condition and fetches them, with flags.
    compwritemsg_callback(
        msg: *const bindings::kfi_msg_atomic,
        comparev: *const bindings::kfi_ioc,
        _compare_desc: *mut *mut c_void,
        compare_count: usize,
        resultv: *mut bindings::kfi_ioc,
        _result_desc: *mut *mut c_void,
        result_count: usize,
        flags: u64,
    ) => Message,
        [
            message = AtomicMessage::from_raw(msg),
            others = SourceRanges::new(comparev, compare_count),
            results = TargetRanges::new(resultv, result_count)
        ]
        message?.operation(flags, |datatype| {
            Ok(AtomicForm::Compare {
                compare: others.of(datatype)?,
                result: results.of(datatype)?,
            })
        });
}

/// Defines functions that tell how many elements an operation may have.
macro_rules! valid_callbacks {
    ($($name:ident => $call:ident;)*) => {$(
        /// Tells the most elements of an operation.
        ///
        /// # Safety
        ///
        /// `ep` must be an open endpoint of `T`, `count` null or valid for writes.
        unsafe extern "C" fn $name<T: EndpointOps>(
            ep: *mut bindings::kfid_ep,
            datatype: bindings::kfi_datatype,
            op: bindings::kfi_op,
            count: *mut usize,
        ) -> c_int {
            // Close waits for this section, so that the endpoint stays until the call has ended.
            let _guard = rcu::read_lock();
            // SAFETY: By the safety requirements.
            let this = unsafe { Fid::<T>::borrow(ep) };
            from_result(|| {
                let limit = this.atomic_limit(AtomicCall::$call, datatype, op)?;
                if count.is_null() {
                    return Err(EINVAL);
                }
                // SAFETY: `count` is valid for writes, as it is not null.
                unsafe { count.write(limit) };
                Ok(0)
            })
        }
    )*}
}

valid_callbacks! {
    writevalid_callback => Plain;
    readwritevalid_callback => Fetch;
    compwritevalid_callback => Compare;
}
