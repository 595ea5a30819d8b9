// SPDX-License-Identifier: GPL-2.0

//! Operations: all functions that transfer data.

use core::ptr;
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    buffer::{
        Elements,
        Local,
        One,
        Segment,
        Shape, //
    },
    contexts::Condition,
    quota::{
        Charge,
        Quota, //
    },
    size_result,
    Answer,
    Domain,
    Endpoint, //
};
use crate::kfi::{
    bindings,
    context::Context, //
};

/// The kind of the operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// kfi_send.
    Send,
    /// kfi_recv.
    Recv,
    /// kfi_tsend.
    TaggedSend,
    /// kfi_trecv.
    TaggedRecv,
    /// kfi_read.
    Read,
    /// kfi_write.
    Write,
    /// kfi_atomic.
    Atomic,
    /// kfi_fetch_atomic.
    FetchAtomic,
    /// kfi_compare_atomic.
    CompareAtomic,
}

impl Kind {
    /// Returns whether it is atomic.
    pub fn is_atomic(self) -> bool {
        matches!(self, Self::Atomic | Self::FetchAtomic | Self::CompareAtomic)
    }

    /// Returns the type of deferred work that does it (`enum kfi_op_type`).
    pub(super) fn op_type(self) -> u32 {
        match self {
            Self::Send => bindings::KFI_OP_SEND,
            Self::Recv => bindings::KFI_OP_RECV,
            Self::TaggedSend => bindings::KFI_OP_TSEND,
            Self::TaggedRecv => bindings::KFI_OP_TRECV,
            Self::Read => bindings::KFI_OP_READ,
            Self::Write => bindings::KFI_OP_WRITE,
            Self::Atomic => bindings::KFI_OP_ATOMIC,
            Self::FetchAtomic => bindings::KFI_OP_FETCH_ATOMIC,
            Self::CompareAtomic => bindings::KFI_OP_COMPARE_ATOMIC,
        }
    }

    /// Returns whether it receives.
    pub fn is_receive(self) -> bool {
        matches!(self, Self::Recv | Self::TaggedRecv)
    }
}

/// Which function does it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One address.
    Plain,
    /// An array: v, bv, sgl.
    Array(Shape),
    /// A message structure.
    Msg(Shape),
    /// inject.
    Inject,
    /// data.
    Data,
    /// injectdata.
    InjectData,
}

/// A piece of a peer's memory.
#[derive(Clone, Copy)]
pub struct RmaSegment {
    /// Where it begins.
    pub addr: u64,
    /// Bytes, or elements of atomic operations.
    pub len: usize,
    /// The key.
    pub key: u64,
}

/// The context of an operation, as a provider gets it; only this client makes one.
pub struct OpContext(Context);

impl OpContext {
    /// None, which an operation has until it is posted.
    pub const NONE: Self = Self(Context::NONE);

    /// Takes the context that was made for the operation.
    pub(super) fn new(context: Context) -> Self {
        Self(context)
    }
}

/// An operation.
pub struct Operation<'a> {
    /// The kind of the operation.
    pub kind: Kind,
    /// Which function does it.
    pub form: Form,
    /// Flags for a message structure.
    pub flags: u64,
    /// The peer.
    pub addr: u64,
    /// The number that its user knows it by; injected operations have none.
    pub number: u64,
    /// Its context while it is posted.
    pub context: OpContext,
    /// Data that comes along.
    pub data: u64,
    /// The tag.
    pub tag: u64,
    /// Bits of it that do not count.
    pub ignore: u64,
    /// Local memory.
    pub segments: &'a [Segment],
    /// Where results go.
    pub results: &'a [Segment],
    /// The values that are compared with.
    pub compares: &'a [Segment],
    /// The peer's memory.
    pub rma: &'a [RmaSegment],
    /// Type of elements (`enum kfi_datatype`).
    pub datatype: u32,
    /// Atomic operation (`enum kfi_op`).
    pub op: u32,
}

/// Returns the bytes of an element of a type; 1 if that is unknown.
pub fn element_size(datatype: u32) -> usize {
    match datatype {
        bindings::KFI_INT16 | bindings::KFI_UINT16 => 2,
        bindings::KFI_INT32 | bindings::KFI_UINT32 | bindings::KFI_FLOAT => 4,
        bindings::KFI_INT64
        | bindings::KFI_UINT64
        | bindings::KFI_DOUBLE
        | bindings::KFI_FLOAT_COMPLEX => 8,
        bindings::KFI_DOUBLE_COMPLEX | bindings::KFI_LONG_DOUBLE => 16,
        bindings::KFI_LONG_DOUBLE_COMPLEX => 32,
        _ => 1,
    }
}

/// Returns whether an atomic operation does not look at its operand.
pub fn ignores_operand(op: u32) -> bool {
    op == bindings::KFI_ATOMIC_READ
}

/// The arrays of an operation for C.
pub(super) struct Arrays {
    local: Local,
    results: Local,
    compares: Local,
    rma: KVVec<bindings::kfi_rma_iov>,
    rma_ioc: KVVec<bindings::kfi_rma_ioc>,
    _charge: Charge,
}

impl Operation<'_> {
    /// An operation without memory or a peer: the rest is for the caller to fill in.
    #[allow(dead_code, reason = "a request says everything")]
    pub fn new(kind: Kind, form: Form, number: u64) -> Self {
        Self {
            kind,
            form,
            flags: 0,
            addr: u64::MAX,
            number,
            context: OpContext::NONE,
            data: 0,
            tag: 0,
            ignore: 0,
            segments: &[],
            results: &[],
            compares: &[],
            rma: &[],
            datatype: 0,
            op: 0,
        }
    }

    /// Checks the shape of local memory; `EINVAL` if there is no such operation with it.
    fn check_shape(&self, shape: Shape) -> Result {
        // Atomic operations have no other form.
        if self.kind.is_atomic() && shape != Shape::Kvec {
            return Err(EINVAL);
        }
        Ok(())
    }

    /// Returns how the provider counts what lies in the segments of operands.
    fn operands(&self) -> Elements {
        if !self.kind.is_atomic() {
            return Elements::BYTES;
        }
        Elements {
            size: element_size(self.datatype),
            ignored: self.kind == Kind::FetchAtomic && ignores_operand(self.op),
        }
    }

    /// Returns how the provider counts what lies in the segments of results and of what is compared
    /// with.
    fn others(&self) -> Elements {
        Elements {
            ignored: false,
            ..self.operands()
        }
    }

    /// Makes the arrays, which count in `quota`.
    pub(super) fn arrays(&self, shape: Shape, quota: &Arc<Quota>) -> Result<Arrays> {
        self.check_shape(shape)?;
        let remote = self.rma.len();
        let sizes = [
            Local::size(self.segments, shape),
            Local::size(self.results, Shape::Kvec),
            Local::size(self.compares, Shape::Kvec),
            remote.saturating_mul(size_of::<bindings::kfi_rma_iov>()),
        ];
        let size = sizes
            .iter()
            .fold(0, |sum: usize, size| sum.saturating_add(*size));
        let charge = Quota::charge(quota, size)?;
        let mut rma = KVVec::new();
        let mut rma_ioc = KVVec::new();
        if self.kind.is_atomic() {
            rma_ioc.reserve(remote, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        } else {
            rma.reserve(remote, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?;
        }
        for piece in self.rma {
            if self.kind.is_atomic() {
                rma_ioc.push(
                    bindings::kfi_rma_ioc {
                        addr: piece.addr,
                        count: piece.len,
                        key: piece.key,
                    },
                    GFP_KERNEL_ACCOUNT | __GFP_NOWARN,
                )?;
            } else {
                rma.push(
                    bindings::kfi_rma_iov {
                        addr: piece.addr,
                        len: piece.len,
                        key: piece.key,
                    },
                    GFP_KERNEL_ACCOUNT | __GFP_NOWARN,
                )?;
            }
        }
        Ok(Arrays {
            local: if self.kind.is_atomic() {
                Local::of_elements(self.segments, self.operands())?
            } else {
                Local::new(self.segments, shape)?
            },
            results: Local::of_elements(self.results, self.others())?,
            compares: Local::of_elements(self.compares, self.others())?,
            rma,
            rma_ioc,
            _charge: charge,
        })
    }

    /// Returns a message for C.
    pub(super) fn msg(&self, arrays: &Arrays) -> bindings::kfi_msg {
        bindings::kfi_msg {
            type_: arrays.local.iov_type(),
            // All members are pointers, and this one is of the type that `type_` says.
            __bindgen_anon_1: bindings::kfi_msg__bindgen_ty_1 {
                msg_iov: arrays.local.as_ptr(),
            },
            desc: arrays.local.descs(),
            iov_count: arrays.local.count(),
            addr: self.addr,
            context: self.context.0.as_raw(),
            data: self.data,
        }
    }

    /// Returns a tagged message for C.
    pub(super) fn msg_tagged(&self, arrays: &Arrays) -> bindings::kfi_msg_tagged {
        bindings::kfi_msg_tagged {
            type_: arrays.local.iov_type(),
            // As above.
            __bindgen_anon_1: bindings::kfi_msg_tagged__bindgen_ty_1 {
                msg_iov: arrays.local.as_ptr(),
            },
            desc: arrays.local.descs(),
            iov_count: arrays.local.count(),
            addr: self.addr,
            tag: self.tag,
            ignore: self.ignore,
            context: self.context.0.as_raw(),
            data: self.data,
        }
    }

    /// Returns a transfer from or to a peer's memory for C.
    pub(super) fn msg_rma(&self, arrays: &Arrays) -> bindings::kfi_msg_rma {
        bindings::kfi_msg_rma {
            type_: arrays.local.iov_type(),
            // As above.
            __bindgen_anon_1: bindings::kfi_msg_rma__bindgen_ty_1 {
                msg_iov: arrays.local.as_ptr(),
            },
            desc: arrays.local.descs(),
            iov_count: arrays.local.count(),
            addr: self.addr,
            rma_iov: first(&arrays.rma),
            rma_iov_count: arrays.rma.len(),
            context: self.context.0.as_raw(),
            data: self.data,
        }
    }

    /// Returns an atomic operation for C.
    pub(super) fn msg_atomic(&self, arrays: &Arrays) -> bindings::kfi_msg_atomic {
        bindings::kfi_msg_atomic {
            msg_iov: arrays.local.as_ptr(),
            desc: arrays.local.descs(),
            iov_count: arrays.local.count(),
            addr: self.addr,
            rma_iov: first(&arrays.rma_ioc),
            rma_iov_count: arrays.rma_ioc.len(),
            datatype: self.datatype,
            op: self.op,
            context: self.context.0.as_raw(),
            data: self.data,
        }
    }

    /// Returns whether there are as many elements in all lists of an operation that has several: those
    /// of its operands, where it has any, of results, of what is compared with, and of the peer's memory,
    /// if that `has_lengths`. A provider that goes by one of them stays within the others then.
    pub(super) fn has_equal_totals(&self, has_lengths: bool) -> bool {
        let elements = self.operands();
        let (fetches, compares, remote) = match self.kind {
            Kind::Send | Kind::Recv | Kind::TaggedSend | Kind::TaggedRecv => return true,
            Kind::Read | Kind::Write | Kind::Atomic => (false, false, has_lengths),
            Kind::FetchAtomic => (true, false, has_lengths),
            Kind::CompareAtomic => (true, true, has_lengths),
        };
        let local = |list: &[Segment]| {
            // The provider is not told of what is nowhere.
            total(list.iter().map(|segment| match segment.buffer() {
                None if segment.len() != 0 => None,
                _ => segment.len().checked_div(elements.size),
            }))
        };
        let totals = [
            (!elements.ignored).then(|| local(self.segments)),
            fetches.then(|| local(self.results)),
            compares.then(|| local(self.compares)),
            remote.then(|| total(self.rma.iter().map(|piece| Some(piece.len)))),
        ];
        let mut totals = totals.into_iter().flatten();
        match totals.next() {
            Some(Some(first)) => totals.all(|total| total == Some(first)),
            _ => false,
        }
    }

    /// Returns the only piece of the peer's memory; `EINVAL` if there is not exactly one.
    fn target(&self) -> Result<RmaSegment> {
        match self.rma {
            [target] => Ok(*target),
            _ => Err(EINVAL),
        }
    }

    /// Returns the only segment of results or of what is compared with, for as many elements as
    /// there are operands; `EINVAL` if there is not exactly one.
    fn other(&self, segments: &[Segment], operand: One) -> Result<One> {
        let other = One::new(segments, self.others())?;
        if segments.is_empty() || other.count < operand.count {
            return Err(EINVAL);
        }
        Ok(other)
    }
}

impl Arrays {
    /// Returns where results go, for C.
    pub(super) fn fetch(&self) -> bindings::kfi_msg_fetch {
        bindings::kfi_msg_fetch {
            msg_iov: self.results.as_ptr::<bindings::kfi_ioc>().cast_mut(),
            desc: self.results.descs(),
            iov_count: self.results.count(),
        }
    }

    /// Returns what is compared with, for C.
    pub(super) fn compare(&self) -> bindings::kfi_msg_compare {
        bindings::kfi_msg_compare {
            msg_iov: self.compares.as_ptr(),
            desc: self.compares.descs(),
            iov_count: self.compares.count(),
        }
    }
}

/// Returns the sum of counts; none if one of them is none, or if that is too large.
fn total(mut counts: impl Iterator<Item = Option<usize>>) -> Option<usize> {
    counts.try_fold(0, |sum: usize, count| sum.checked_add(count?))
}

/// Returns the first element for C, null if there is none.
fn first<T>(array: &[T]) -> *const T {
    array.first().map_or(ptr::null(), ptr::from_ref)
}

impl Endpoint {
    /// Posts an operation, with a condition if it is to be triggered. Its buffers stay until the
    /// endpoint is closed. In process context; may sleep, other than the functions of C do: it keeps
    /// the buffers, and a context.
    ///
    /// `EINVAL` if the kind has no such form. The answer is that of kfabric, or what it would be:
    /// `EINVAL` for a condition with a counter or a descriptor of a region that is none of the domain,
    /// for more entries than the endpoint takes, or for lists that differ in how much they have in all.
    pub fn post(
        &self,
        mut operation: Operation<'_>,
        condition: Option<Condition<'_>>,
    ) -> Result<Answer> {
        kernel::task::might_sleep();
        if !self.can(operation.kind) {
            return Ok(Err(ENOSYS));
        }
        if !self.owns_regions(&operation) {
            return Ok(Err(EINVAL));
        }
        if let Form::Array(shape) | Form::Msg(shape) = operation.form {
            operation.check_shape(shape)?;
            let has_lengths = matches!(operation.form, Form::Msg(_));
            if !self.limits().allow(&operation, shape) || !operation.has_equal_totals(has_lengths) {
                return Ok(Err(EINVAL));
            }
        }
        self.widen(&operation)?;
        self.hold(operation.segments)?;
        self.hold(operation.results)?;
        self.hold(operation.compares)?;
        if matches!(operation.form, Form::Inject | Form::InjectData) {
            return self.post_with_context(&operation);
        }
        let context = match self.context_for(&operation, condition)? {
            Ok(context) => context,
            Err(error) => return Ok(Err(error)),
        };
        operation.context = OpContext::new(context);
        let ret = self.post_with_context(&operation);
        let accepted = matches!(ret, Ok(Ok(())));
        self.posted(&operation, context, accepted);
        ret
    }

    /// Posts an operation with its context.
    fn post_with_context(&self, operation: &Operation<'_>) -> Result<Answer> {
        let ret = match operation.form {
            Form::Array(shape) => self.post_array(operation, shape)?,
            Form::Msg(shape) => self.post_msg(operation, shape)?,
            _ => self.post_one(operation)?,
        };
        Ok(size_result(ret).map(|_| ()))
    }

    /// Posts an operation with one address.
    fn post_one(&self, operation: &Operation<'_>) -> Result<isize> {
        let ep = self.as_raw();
        let one = One::new(operation.segments, operation.operands())?;
        // Of all but atomic operations, the elements are bytes.
        let (buf, len, desc) = (one.address, one.count, one.desc);
        let context = operation.context.0.as_raw();
        let Operation {
            addr,
            data,
            tag,
            ignore,
            ..
        } = *operation;
        // SAFETY: The endpoint is open and has the tables. There are `len` bytes at the address, as `One`
        // has counted them; the memory stays until the endpoint is closed, which is after the operation,
        // as `hold` keeps it. The context is null or a structure of `Contexts`, which stays until the
        // operation has completed or the endpoint is closed.
        Ok(unsafe {
            match (operation.kind, operation.form) {
                (Kind::Send, Form::Plain) => bindings::kfi_send(ep, buf, len, desc, addr, context),
                (Kind::Send, Form::Inject) => bindings::kfi_inject(ep, buf, len, addr),
                (Kind::Send, Form::Data) => {
                    bindings::kfi_senddata(ep, buf, len, desc, data, addr, context)
                }
                (Kind::Send, Form::InjectData) => {
                    bindings::kfi_injectdata(ep, buf, len, data, addr)
                }
                (Kind::Recv, Form::Plain) => bindings::kfi_recv(ep, buf, len, desc, addr, context),
                (Kind::TaggedSend, Form::Plain) => {
                    bindings::kfi_tsend(ep, buf, len, desc, addr, tag, context)
                }
                (Kind::TaggedSend, Form::Inject) => bindings::kfi_tinject(ep, buf, len, addr, tag),
                (Kind::TaggedSend, Form::Data) => {
                    bindings::kfi_tsenddata(ep, buf, len, desc, data, addr, tag, context)
                }
                (Kind::TaggedSend, Form::InjectData) => {
                    bindings::kfi_tinjectdata(ep, buf, len, data, addr, tag)
                }
                (Kind::TaggedRecv, Form::Plain) => {
                    bindings::kfi_trecv(ep, buf, len, desc, addr, tag, ignore, context)
                }
                _ => return self.post_one_at(operation, one),
            }
        })
    }

    /// Posts an operation with one address on a piece of the peer's memory; `EINVAL` if it is of another
    /// kind.
    fn post_one_at(&self, operation: &Operation<'_>, one: One) -> Result<isize> {
        let ep = self.as_raw();
        let RmaSegment {
            addr: target, key, ..
        } = operation.target()?;
        let (buf, count, desc) = (one.address, one.count, one.desc);
        // Of all but atomic operations, the elements are bytes.
        let len = count;
        let context = operation.context.0.as_raw();
        let Operation {
            addr,
            data,
            datatype,
            op,
            ..
        } = *operation;
        // SAFETY: As for `post_one`. There are `len` bytes, or as many elements of the type, at each
        // address.
        Ok(unsafe {
            match (operation.kind, operation.form) {
                (Kind::Read, Form::Plain) => {
                    bindings::kfi_read(ep, buf, len, desc, addr, target, key, context)
                }
                (Kind::Write, Form::Plain) => {
                    bindings::kfi_write(ep, buf, len, desc, addr, target, key, context)
                }
                (Kind::Write, Form::Inject) => {
                    bindings::kfi_inject_write(ep, buf, len, addr, target, key)
                }
                (Kind::Write, Form::Data) => {
                    bindings::kfi_writedata(ep, buf, len, desc, data, addr, target, key, context)
                }
                (Kind::Write, Form::InjectData) => {
                    bindings::kfi_inject_writedata(ep, buf, len, data, addr, target, key)
                }
                (Kind::Atomic, Form::Plain) => bindings::kfi_atomic(
                    ep, buf, count, desc, addr, target, key, datatype, op, context,
                ),
                (Kind::Atomic, Form::Inject) => {
                    bindings::kfi_inject_atomic(ep, buf, count, addr, target, key, datatype, op)
                }
                (Kind::FetchAtomic, Form::Plain) => {
                    let result = operation.other(operation.results, one)?;
                    bindings::kfi_fetch_atomic(
                        ep,
                        buf,
                        count,
                        desc,
                        result.address,
                        result.desc,
                        addr,
                        target,
                        key,
                        datatype,
                        op,
                        context,
                    )
                }
                (Kind::CompareAtomic, Form::Plain) => {
                    let result = operation.other(operation.results, one)?;
                    let compare = operation.other(operation.compares, one)?;
                    bindings::kfi_compare_atomic(
                        ep,
                        buf,
                        count,
                        desc,
                        compare.address,
                        compare.desc,
                        result.address,
                        result.desc,
                        addr,
                        target,
                        key,
                        datatype,
                        op,
                        context,
                    )
                }
                _ => return Err(EINVAL),
            }
        })
    }

    /// Posts an operation with an array.
    fn post_array(&self, operation: &Operation<'_>, shape: Shape) -> Result<isize> {
        let ep = self.as_raw();
        let arrays = operation.arrays(shape, self.quota())?;
        let local = &arrays.local;
        let (desc, count) = (local.descs(), local.count());
        let context = operation.context.0.as_raw();
        let Operation {
            addr, tag, ignore, ..
        } = *operation;

        /// Calls the function for the shape, with the arguments behind the array.
        macro_rules! call {
            ($v:ident, $bv:ident, $sgl:ident, $($argument:expr),*) => {
                // SAFETY: As for `post_one`, for each entry. The array has the type that the function
                // takes; arrays are read during the call, as no endpoint wants them for longer that
                // was opened.
                unsafe {
                    match shape {
                        Shape::Kvec => bindings::$v(ep, local.as_ptr(), desc, count, $($argument),*),
                        Shape::Bvec => {
                            bindings::$bv(ep, local.as_ptr(), desc, count, $($argument),*)
                        }
                        Shape::Sgl => {
                            bindings::$sgl(ep, local.as_ptr(), desc, count, $($argument),*)
                        }
                    }
                }
            };
        }
        Ok(match operation.kind {
            Kind::Send => call!(kfi_sendv, kfi_sendbv, kfi_sendsgl, addr, context),
            Kind::Recv => call!(kfi_recvv, kfi_recvbv, kfi_recvsgl, addr, context),
            Kind::TaggedSend => {
                call!(kfi_tsendv, kfi_tsendbv, kfi_tsendsgl, addr, tag, context)
            }
            Kind::TaggedRecv => call!(
                kfi_trecvv,
                kfi_trecvbv,
                kfi_trecvsgl,
                addr,
                tag,
                ignore,
                context
            ),
            Kind::Read | Kind::Write => {
                let RmaSegment {
                    addr: target, key, ..
                } = operation.target()?;
                if operation.kind == Kind::Read {
                    call!(
                        kfi_readv,
                        kfi_readbv,
                        kfi_readsgl,
                        addr,
                        target,
                        key,
                        context
                    )
                } else {
                    call!(
                        kfi_writev,
                        kfi_writebv,
                        kfi_writesgl,
                        addr,
                        target,
                        key,
                        context
                    )
                }
            }
            Kind::Atomic | Kind::FetchAtomic | Kind::CompareAtomic => {
                self.post_atomic_array(operation, &arrays)?
            }
        })
    }

    /// Posts an atomic operation with its arrays.
    fn post_atomic_array(&self, operation: &Operation<'_>, arrays: &Arrays) -> Result<isize> {
        let ep = self.as_raw();
        let (local, results, compares) = (&arrays.local, &arrays.results, &arrays.compares);
        let (desc, count) = (local.descs(), local.count());
        let context = operation.context.0.as_raw();
        let Operation {
            addr, datatype, op, ..
        } = *operation;
        let RmaSegment {
            addr: target, key, ..
        } = operation.target()?;
        let result = results.as_ptr::<bindings::kfi_ioc>().cast_mut();
        // SAFETY: As for `post_array`.
        Ok(unsafe {
            match operation.kind {
                Kind::FetchAtomic => bindings::kfi_fetch_atomicv(
                    ep,
                    local.as_ptr(),
                    desc,
                    count,
                    result,
                    results.descs(),
                    results.count(),
                    addr,
                    target,
                    key,
                    datatype,
                    op,
                    context,
                ),
                Kind::CompareAtomic => bindings::kfi_compare_atomicv(
                    ep,
                    local.as_ptr(),
                    desc,
                    count,
                    compares.as_ptr(),
                    compares.descs(),
                    compares.count(),
                    result,
                    results.descs(),
                    results.count(),
                    addr,
                    target,
                    key,
                    datatype,
                    op,
                    context,
                ),
                _ => bindings::kfi_atomicv(
                    ep,
                    local.as_ptr(),
                    desc,
                    count,
                    addr,
                    target,
                    key,
                    datatype,
                    op,
                    context,
                ),
            }
        })
    }

    /// Posts an operation with a message structure.
    fn post_msg(&self, operation: &Operation<'_>, shape: Shape) -> Result<isize> {
        let ep = self.as_raw();
        let arrays = operation.arrays(shape, self.quota())?;
        let flags = operation.flags;
        let fetch = arrays.fetch();
        let compare = arrays.compare();
        // SAFETY: As for `post_array`.
        Ok(unsafe {
            match operation.kind {
                Kind::Send => bindings::kfi_sendmsg(ep, &operation.msg(&arrays), flags),
                Kind::Recv => bindings::kfi_recvmsg(ep, &operation.msg(&arrays), flags),
                Kind::TaggedSend => {
                    bindings::kfi_tsendmsg(ep, &operation.msg_tagged(&arrays), flags)
                }
                Kind::TaggedRecv => {
                    bindings::kfi_trecvmsg(ep, &operation.msg_tagged(&arrays), flags)
                }
                Kind::Read => bindings::kfi_readmsg(ep, &operation.msg_rma(&arrays), flags),
                Kind::Write => bindings::kfi_writemsg(ep, &operation.msg_rma(&arrays), flags),
                Kind::Atomic => bindings::kfi_atomicmsg(ep, &operation.msg_atomic(&arrays), flags),
                Kind::FetchAtomic => bindings::kfi_fetch_atomicmsg(
                    ep,
                    &operation.msg_atomic(&arrays),
                    fetch.msg_iov,
                    fetch.desc,
                    fetch.iov_count,
                    flags,
                ),
                Kind::CompareAtomic => bindings::kfi_compare_atomicmsg(
                    ep,
                    &operation.msg_atomic(&arrays),
                    compare.msg_iov,
                    compare.desc,
                    compare.iov_count,
                    fetch.msg_iov,
                    fetch.desc,
                    fetch.iov_count,
                    flags,
                ),
            }
        })
    }

    /// Asks for an atomic operation; returns how many elements one may have. `EINVAL` for a kind that is
    /// not atomic. May sleep.
    pub fn atomic_valid(&self, kind: Kind, datatype: u32, op: u32) -> Result<Answer<usize>> {
        if !self.can(Kind::Atomic) {
            return Ok(Err(ENOSYS));
        }
        let mut count = 0;
        // SAFETY: The endpoint is open and has the table.
        let ret = to_result(unsafe {
            match kind {
                Kind::Atomic => bindings::kfi_atomicvalid(self.as_raw(), datatype, op, &mut count),
                Kind::FetchAtomic => {
                    bindings::kfi_fetch_atomicvalid(self.as_raw(), datatype, op, &mut count)
                }
                Kind::CompareAtomic => {
                    bindings::kfi_compare_atomicvalid(self.as_raw(), datatype, op, &mut count)
                }
                _ => return Err(EINVAL),
            }
        });
        Ok(ret.map(|()| count))
    }
}

impl Domain {
    /// Asks for an atomic operation; returns how many elements one may have, and their size. May
    /// sleep.
    pub fn query_atomic(&self, datatype: u32, op: u32, flags: u64) -> Result<(usize, usize)> {
        let mut attr: bindings::kfi_atomic_attr = pin_init::zeroed();
        // SAFETY: The domain is open; `attr` is valid for writes.
        to_result(unsafe {
            bindings::kfi_query_atomic(self.as_raw(), datatype, op, &mut attr, flags)
        })?;
        Ok((attr.count, attr.size))
    }
}

#[cfg(consumer_tests)]
#[kunit_tests(kfi_operation)]
mod tests {
    use super::*;
    use crate::kfi::consumer::{
        Buffer,
        BufferKind,
        Places, //
    };

    /// A page of memory.
    fn page() -> Result<Arc<Buffer>> {
        let quota = Quota::new(usize::MAX, None)?;
        let charge = Quota::charge(&quota, 0)?;
        let buffer = Buffer::new(BufferKind::Kmalloc, 4096, 1, charge, &Places::new()?)?;
        Ok(Arc::new(buffer, GFP_KERNEL)?)
    }

    /// An operation on a type of elements that fetches.
    fn fetch(segments: &[Segment], datatype: u32, op: u32) -> Operation<'_> {
        Operation {
            kind: Kind::FetchAtomic,
            form: Form::Plain,
            flags: 0,
            addr: 0,
            number: 0,
            context: OpContext::NONE,
            data: 0,
            tag: 0,
            ignore: 0,
            segments,
            results: segments,
            compares: &[],
            rma: &[],
            datatype,
            op,
        }
    }

    #[test]
    fn elements_end_where_the_buffer_does() -> Result {
        let buffer = page()?;
        assert!(Segment::new(buffer.clone(), 3585, 512, None).is_err());
        assert!(Segment::new(buffer.clone(), usize::MAX, 2, None).is_err());
        let segments = [Segment::new(buffer, 3584, 512, None)?];
        for (datatype, count) in [
            (bindings::KFI_UINT8, 512),
            (bindings::KFI_UINT64, 64),
            (bindings::KFI_LONG_DOUBLE_COMPLEX, 16),
        ] {
            let operation = fetch(&segments, datatype, bindings::KFI_SUM);
            let one = One::new(operation.segments, operation.operands())?;
            assert_eq!(one.count, count);
            assert_eq!(operation.other(operation.results, one)?.count, count);

            let quota = Quota::new(usize::MAX, None)?;
            let arrays = operation.arrays(Shape::Kvec, &quota)?;
            for list in [&arrays.local, &arrays.results] {
                assert_eq!(list.count(), 1);
                // SAFETY: Atomic operations have such arrays, and this one has an entry.
                assert_eq!(unsafe { *list.as_ptr::<bindings::kfi_ioc>() }.count, count);
            }
        }
        Ok(())
    }

    #[test]
    fn what_is_left_of_an_element_does_not_count() -> Result {
        let segments = [Segment::new(page()?, 0, 23, None)?];
        let operation = fetch(&segments, bindings::KFI_UINT64, bindings::KFI_SUM);
        let one = One::new(operation.segments, operation.operands())?;
        assert_eq!(one.count, 2);
        Ok(())
    }

    #[test]
    fn only_what_is_not_looked_at_lies_at_null() -> Result {
        let null = [Segment::null(64)];
        let read = fetch(&null, bindings::KFI_UINT64, bindings::KFI_ATOMIC_READ);
        assert_eq!(One::new(read.segments, read.operands())?.count, 8);
        assert!(One::new(read.results, read.others()).is_err());
        let sum = fetch(&null, bindings::KFI_UINT64, bindings::KFI_SUM);
        assert!(One::new(sum.segments, sum.operands()).is_err());
        let bytes = Operation {
            kind: Kind::Send,
            ..fetch(&null, bindings::KFI_UINT64, bindings::KFI_ATOMIC_READ)
        };
        assert!(One::new(bytes.segments, bytes.operands()).is_err());
        assert!(Local::new(&null, Shape::Kvec).is_err());
        assert_eq!(One::new(&[Segment::null(0)], bytes.operands())?.count, 0);
        Ok(())
    }

    #[test]
    fn all_lists_have_as_many_elements() -> Result {
        let buffer = page()?;
        let bytes = |len| Segment::new(buffer.clone(), 0, len, None);
        let target = |len| RmaSegment {
            addr: 0,
            len,
            key: 1,
        };
        let (pieces, less, more) = ([bytes(8)?, bytes(24)?], [bytes(24)?], [bytes(40)?]);
        // What is left of an element does not count.
        let whole = [bytes(39)?];
        let (there, less_there, huge) = (
            [target(1), target(3)],
            [target(3)],
            [target(usize::MAX), target(5)],
        );
        let bytes_there = [target(32)];
        let base = || Operation {
            rma: &there,
            ..fetch(&pieces, bindings::KFI_UINT64, bindings::KFI_SUM)
        };
        for kind in [Kind::FetchAtomic, Kind::CompareAtomic] {
            for (results, equal) in [(&pieces[..], true), (&whole, true), (&less, false)] {
                let operation = Operation {
                    kind,
                    results,
                    compares: &pieces,
                    ..base()
                };
                assert_eq!(operation.has_equal_totals(true), equal);
                assert_eq!(operation.has_equal_totals(false), equal);
            }
            for others in [&less[..], &more, &[]] {
                let (segments, results, compares) = match kind {
                    Kind::FetchAtomic => (others, &pieces[..], &pieces[..]),
                    _ => (&pieces[..], &pieces[..], others),
                };
                let operation = Operation {
                    kind,
                    segments,
                    results,
                    compares,
                    ..base()
                };
                assert!(!operation.has_equal_totals(false));
            }
        }
        for kind in [
            Kind::Read,
            Kind::Write,
            Kind::Atomic,
            Kind::FetchAtomic,
            Kind::CompareAtomic,
        ] {
            // The lists that a kind has not are not looked at.
            let results = match kind {
                Kind::FetchAtomic | Kind::CompareAtomic => &pieces[..],
                _ => &less,
            };
            let exact = if kind.is_atomic() {
                &there[..]
            } else {
                &bytes_there
            };
            for (rma, equal) in [
                (exact, true),
                (&less_there[..], false),
                (&huge, false),
                (&[], false),
            ] {
                let operation = Operation {
                    kind,
                    results,
                    compares: &pieces,
                    rma,
                    ..base()
                };
                assert_eq!(operation.has_equal_totals(true), equal);
                assert!(operation.has_equal_totals(false));
            }
        }
        // It has no operands, and as many elements as results.
        let read = Operation {
            segments: &[],
            op: bindings::KFI_ATOMIC_READ,
            ..base()
        };
        assert!(read.has_equal_totals(true));
        let read = Operation {
            results: &more,
            ..read
        };
        assert!(!read.has_equal_totals(true));
        let nowhere = Operation {
            kind: Kind::Write,
            segments: &[Segment::null(32)],
            rma: &bytes_there,
            ..base()
        };
        assert!(!nowhere.has_equal_totals(true));
        // Messages have no other lists.
        let send = Operation {
            kind: Kind::Send,
            ..read
        };
        assert!(send.has_equal_totals(true));
        Ok(())
    }
}
