// SPDX-License-Identifier: GPL-2.0

//! Memory of operations, from when they are posted until their ends are told.
//!
//! The skin lets a provider keep the memory of an operation against a promise: nobody uses it any
//! more when the consumer hears of the end of the operation ([`Buffers::capture`]). The promise is
//! made in this file, and nowhere else, and kept by its types:
//!
//! * Memory lies in an [`Outgoing`], a [`Kept`] or an [`Incoming`], which has it alone and only lends
//!   it.
//! * The end of an operation is told with an [`Ended`], which is what is left of one of these when it
//!   is consumed. It is not made otherwise, and not copied.
//! * An `Outgoing` cannot outlive the call that has posted the operation. What is left of it is a
//!   `Kept`, which has a copy of what is the caller's again when the call returns.
//! * What is dropped instead of consumed is not used any more either. So are operations that fail to
//!   be posted, that are given up when an endpoint is closed, and deferred work that is taken back.
//!
//! [`Buffers::capture`]: crate::kfi::memory::Buffers::capture

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::{
    kfi::{
        errno::EBADFLAGS,
        fid::Context,
        flags::OpFlags,
        memory::{
            Cursor,
            Local,
            Memory,
            Source,
            SourceBuffers,
            Target, //
        },
        provider::{
            AtomicForm,
            Kind,
            Operation, //
        }, //
    },
    wire::Payload, //
};

/// An operation whose memory is not used any more: the right to tell its end.
pub(crate) struct Ended(Context);

impl Ended {
    /// Returns the context of the operation.
    pub(crate) fn context(&self) -> Context {
        self.0
    }
}

/// The memory of an operation of a transmit context, as long as the call that has posted it.
///
/// # Invariants
///
/// What is the caller's again when the call returns is in `inject`.
pub(crate) struct Outgoing<'a> {
    memory: Kept,
    inject: Option<SourceBuffers<'a>>,
}

impl<'a> Outgoing<'a> {
    /// Takes the memory of an operation.
    pub(crate) fn new(operation: &Operation<'a>, gfp: Flags) -> Result<Self> {
        let (source, target) = match operation.local {
            Local::Source(source) => (source, None),
            Local::Target(target) => (SourceBuffers::NONE, Some(target)),
        };
        let (compare, target) = match &operation.kind {
            Kind::Atomic(atomics) => match atomics.form {
                AtomicForm::Plain => (None, None),
                AtomicForm::Fetch { result } => (None, Some(result)),
                AtomicForm::Compare { compare, result } => (Some(compare), Some(result)),
            },
            _ => (None, target),
        };
        let inject = operation.inject || operation.flags.contains(OpFlags::INJECT);
        if inject && compare.is_some() {
            return Err(EBADFLAGS.into());
        }
        // INVARIANT: Only sources are the caller's again when the call returns, and there is no other.
        Ok(Self {
            // INVARIANT: Nobody else is given it.
            memory: Kept {
                // SAFETY: It stays in what is returned, which is consumed or dropped before the end is
                // told. If the operation is injected, it is not part of what is kept after the call.
                source: unsafe { source.capture(gfp) }?,
                compare: match compare {
                    // SAFETY: As above; nothing is compared with what is injected.
                    Some(compare) => unsafe { compare.capture(gfp) }?,
                    None => Memory::NONE,
                },
                target: match target {
                    // SAFETY: As above; it is no source.
                    Some(target) => unsafe { target.capture(gfp) }?,
                    None => Memory::NONE,
                },
                context: operation.context,
            },
            inject: inject.then_some(source),
        })
    }

    /// Keeps what is needed until the operation ends.
    pub(crate) fn keep(self, gfp: Flags) -> Result<Kept> {
        let Self { mut memory, inject } = self;
        if let Some(buffers) = inject {
            // SAFETY: The end is told with what is left of what is returned.
            memory.source = unsafe { buffers.copy(gfp) }?;
        }
        Ok(memory)
    }

    /// Lends the memory.
    pub(crate) fn payload(&self) -> Payload<'_> {
        self.memory.payload()
    }

    /// Ends its use.
    pub(crate) fn end(self) -> Ended {
        self.memory.end()
    }
}

/// The memory of an operation of a transmit context.
///
/// # Invariants
///
/// This has the memory alone. Nothing of it is the caller's again before the operation ends, except
/// in an [`Outgoing`].
pub(crate) struct Kept {
    source: Memory<Source>,
    compare: Memory<Source>,
    target: Memory<Target>,
    context: Context,
}

impl Kept {
    /// Lends the memory.
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload {
            source: &self.source,
            compare: &self.compare,
            target: &self.target,
        }
    }

    /// Ends its use.
    pub(crate) fn end(self) -> Ended {
        Ended(self.context)
    }
}

/// The memory of a receive.
///
/// # Invariants
///
/// This has the memory alone.
pub(crate) struct Incoming {
    memory: Memory<Target>,
    context: Context,
}

impl Incoming {
    /// Takes the memory of a receive; `EINVAL` if it is none.
    pub(crate) fn new(operation: &Operation<'_>, gfp: Flags) -> Result<Self> {
        let Local::Target(target) = operation.local else {
            return Err(EINVAL);
        };
        // INVARIANT: Nobody else is given it.
        Ok(Self {
            // SAFETY: It stays in what is returned, which is consumed or dropped before the end is
            // told.
            memory: unsafe { target.capture(gfp) }?,
            context: operation.context,
        })
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Returns the address of the first byte, to be told; 0 if it has none.
    pub(crate) fn address(&self) -> usize {
        self.memory.address()
    }

    /// Returns the context of the receive.
    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Returns a place in the memory.
    pub(crate) fn cursor(&self, offset: usize) -> Cursor<'_, Target> {
        self.memory.cursor(offset)
    }

    /// Ends its use.
    pub(crate) fn end(self) -> Ended {
        Ended(self.context)
    }
}
