// SPDX-License-Identifier: GPL-2.0

//! Data transfers, as they are posted.
//!
//! kfabric has some fifty functions that post something: five families in up to thirteen forms. They
//! all come down to one type, [`Operation`], so that a provider implements one function.

use kernel::prelude::*;

use crate::kfi::{
    addr::FabricAddr,
    bindings,
    context::Context,
    fid::AnyFid,
    flags::OpFlags,
    linux::linear::Linear,
    memory::{
        Local,
        RemoteRanges,
        SourceBuffers,
        TargetBuffers, //
    },
    provider::endpoint::Direction, //
};

pub use bindings::{
    kfi_datatype,
    kfi_op, //
};

/// A data transfer that is being posted. It has its memory until that is taken: see [`Outgoing`] and
/// [`Incoming`].
///
/// The local descriptors that a consumer may have passed are not in it: a provider in Rust is not to
/// demand `KFI_MR_LOCAL`.
///
/// [`Incoming`]: super::Incoming
/// [`Outgoing`]: super::Outgoing
pub struct Operation<'a> {
    /// The kind of the transfer.
    pub(super) kind: Kind<'a>,
    /// The memory of the caller: source of what is sent and written, operands of atomics, target of
    /// what is received and read. Nothing for `KFI_ATOMIC_READ`, which has no operands.
    pub(super) local: Local<'a>,
    /// The peer; for receives the one that is accepted from.
    pub addr: FabricAddr,
    /// Remote completion data: there is some if and only if the flags have `KFI_REMOTE_CQ_DATA`.
    pub data: Option<u64>,
    /// The flags of the call if it has any, else the default flags of the endpoint.
    pub(super) flags: OpFlags,
    /// Whether the flags are those of the call, and not the default flags.
    pub own_flags: bool,
    /// Whether an inject call has posted it, which never gives a success completion, whatever the
    /// flags and bindings say.
    pub(super) inject: bool,
    /// The context that the completion reports.
    pub(super) context: Context,
    /// The condition that it waits for, if it has `KFI_TRIGGER`.
    pub trigger: Option<Trigger<'a>>,
    /// There is one of it.
    pub(super) _once: Linear,
}

impl<'a> Operation<'a> {
    /// Returns what is transferred how.
    pub fn kind(&self) -> Kind<'a> {
        self.kind
    }

    /// Returns the description of the memory of the caller.
    pub fn local(&self) -> Local<'a> {
        self.local
    }

    /// Returns the flags.
    pub fn flags(&self) -> OpFlags {
        self.flags
    }

    /// Returns whether an inject call has posted it.
    pub fn is_injected(&self) -> bool {
        self.inject
    }

    /// Returns what the completion tells.
    pub fn context(&self) -> Context {
        self.context
    }

    /// An operation whose flags are not known yet.
    pub(super) fn new(
        kind: Kind<'a>,
        local: impl Into<Local<'a>>,
        addr: bindings::kfi_addr_t,
        context: *mut c_void,
    ) -> Self {
        Self {
            kind,
            local: local.into(),
            addr: FabricAddr::from_raw(addr),
            data: None,
            flags: OpFlags::NONE,
            own_flags: true,
            inject: false,
            context: Context::from_raw(context),
            trigger: None,
            _once: Linear,
        }
    }

    /// Adds remote completion data.
    pub(super) fn with_data(mut self, data: u64) -> Self {
        self.data = Some(data);
        self.flags = self.flags | OpFlags::REMOTE_CQ_DATA;
        self
    }

    /// Sets the flags of a call, one of which says whether `data` is meant.
    pub(super) fn with_flags(mut self, flags: u64, data: u64) -> Self {
        self.flags = OpFlags::from_raw(flags);
        self.data = self.flags.contains(OpFlags::REMOTE_CQ_DATA).then_some(data);
        self
    }
}

/// The kind of the transfer.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// Sends a message.
    Send,
    /// Receives messages.
    Receive,
    /// Sends a tagged message.
    TaggedSend {
        /// The tag.
        tag: u64,
    },
    /// Receives a tagged message.
    TaggedReceive {
        /// The tag.
        tag: u64,
        /// Bits of the tag that need not match.
        ignore: u64,
    },
    /// Reads a peer's memory.
    Read {
        /// The ranges. With [`OpFlags::TAGGED`] in the flags there has to be one, which names a posted
        /// tagged receive instead of a region: its key is the tag, its address an offset in the buffer.
        /// A provider without tagged RMA answers `EBADFLAGS`.
        remote: RemoteRanges<'a>,
    },
    /// Writes a peer's memory.
    Write {
        /// The ranges; see [`Kind::Read`] for what they are with [`OpFlags::TAGGED`].
        remote: RemoteRanges<'a>,
    },
    /// Changes elements of a peer's memory.
    Atomic(Atomics<'a>),
}

/// The description of an atomic operation.
#[derive(Clone, Copy)]
pub struct Atomics<'a> {
    /// Where.
    pub remote: RemoteRanges<'a>,
    /// The type of the elements (`enum kfi_datatype`).
    pub datatype: bindings::kfi_datatype,
    /// The operation (`enum kfi_op`).
    pub op: bindings::kfi_op,
    /// Which of the three forms it is.
    pub form: AtomicForm<'a>,
}

impl Atomics<'_> {
    /// Returns whether nothing is fetched.
    pub fn is_plain(&self) -> bool {
        matches!(self.form, AtomicForm::Plain)
    }
}

/// The forms of atomic operations.
#[derive(Clone, Copy)]
pub enum AtomicForm<'a> {
    /// Changes elements.
    Plain,
    /// Changes elements and fetches what they were.
    Fetch {
        /// Where that goes.
        result: TargetBuffers<'a>,
    },
    /// Changes elements under a condition and fetches what they were.
    Compare {
        /// The values that they are compared with.
        compare: SourceBuffers<'a>,
        /// Where what they were goes.
        result: TargetBuffers<'a>,
    },
}

impl AtomicForm<'_> {
    /// Returns which of the three forms it is.
    pub fn call(&self) -> AtomicCall {
        match self {
            Self::Plain => AtomicCall::Plain,
            Self::Fetch { .. } => AtomicCall::Fetch,
            Self::Compare { .. } => AtomicCall::Compare,
        }
    }
}

/// Which of the three forms an atomic operation has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AtomicCall {
    /// Changes elements (kfi_atomic).
    Plain,
    /// Changes elements and fetches what they were (kfi_fetch_atomic).
    Fetch,
    /// Changes elements under a condition and fetches what they were (kfi_compare_atomic).
    Compare,
}

impl Kind<'_> {
    /// Returns whether the operation is one of a receive context.
    pub fn is_receive(&self) -> bool {
        self.direction() == Direction::Receive
    }

    /// Returns the direction of the operation.
    #[inline]
    pub fn direction(&self) -> Direction {
        match self {
            Self::Receive | Self::TaggedReceive { .. } => Direction::Receive,
            _ => Direction::Transmit,
        }
    }

    /// Returns whether `KFI_INJECT` may be meant if it is among the default flags: there is memory of
    /// the caller that is only read, and none that is to be written to when the call has returned.
    #[inline]
    pub(super) fn can_be_injected(&self) -> bool {
        match self {
            Self::Send | Self::TaggedSend { .. } | Self::Write { .. } => true,
            Self::Atomic(atomics) => atomics.is_plain(),
            Self::Receive | Self::TaggedReceive { .. } | Self::Read { .. } => false,
        }
    }
}

/// The condition that a triggered operation waits for (`struct kfi_triggered_context`).
pub struct Trigger<'a> {
    /// The counter: not checked yet, it may be of any class or provider.
    pub counter: AnyFid<'a>,
    /// The success value at which the operation begins.
    pub threshold: u64,
}

impl Trigger<'_> {
    /// Reads the condition from the context of an operation; `EINVAL` if there is none.
    ///
    /// # Safety
    ///
    /// `context` must be null or a `struct kfi_triggered_context`, and the counter in it null or an
    /// open object.
    pub(super) unsafe fn from_context(context: *mut c_void) -> Result<Self> {
        let context = context.cast::<bindings::kfi_triggered_context>();
        // SAFETY: By the safety requirements.
        let context = unsafe { context.as_ref() }.ok_or(EINVAL)?;
        if context.event_type != bindings::KFI_TRIGGER_THRESHOLD {
            return Err(EINVAL);
        }
        // SAFETY: The type of the event says that this member is valid.
        let threshold = unsafe { context.trigger.threshold };
        // SAFETY: By the safety requirements.
        let counter = unsafe { AnyFid::from_raw(threshold.cntr.cast()) };
        Ok(Self {
            counter: counter.ok_or(EINVAL)?,
            threshold: threshold.threshold as u64,
        })
    }
}

/// The size of an element of a type; `None` if there is no such type, or if it takes floating point
/// to compute with it, which the kernel has not.
pub fn datatype_size(datatype: bindings::kfi_datatype) -> Option<usize> {
    match datatype {
        bindings::KFI_INT8 | bindings::KFI_UINT8 => Some(1),
        bindings::KFI_INT16 | bindings::KFI_UINT16 => Some(2),
        bindings::KFI_INT32 | bindings::KFI_UINT32 => Some(4),
        bindings::KFI_INT64 | bindings::KFI_UINT64 => Some(8),
        _ => None,
    }
}

/// The types and operations of atomic operations, by the names of C.
pub mod atomics {
    #[allow(unused_imports, reason = "all that there are")]
    pub use crate::kfi::bindings::{
        KFI_ATOMIC_OP_LAST,
        KFI_ATOMIC_READ,
        KFI_ATOMIC_WRITE,
        KFI_BAND,
        KFI_BOR,
        KFI_BXOR,
        KFI_CSWAP,
        KFI_CSWAP_GE,
        KFI_CSWAP_GT,
        KFI_CSWAP_LE,
        KFI_CSWAP_LT,
        KFI_CSWAP_NE,
        KFI_DOUBLE,
        KFI_INT16,
        KFI_INT32,
        KFI_INT64,
        KFI_INT8,
        KFI_LAND,
        KFI_LOR,
        KFI_LXOR,
        KFI_MAX,
        KFI_MIN,
        KFI_MSWAP,
        KFI_PROD,
        KFI_SUM,
        KFI_UINT16,
        KFI_UINT32,
        KFI_UINT64,
        KFI_UINT8, //
    };
}
