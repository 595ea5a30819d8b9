// SPDX-License-Identifier: GPL-2.0

//! Memory of operations, from when they are posted until their ends are told.
//!
//! A consumer may free the memory of an operation as soon as it learns of its end. So whoever holds the
//! memory also holds the right to report the end, and gives up the one to get the other:
//!
//! * An [`Operation`] is consumed when its memory is taken. That lies in an [`Outgoing`], a
//!   [`Lasting`], an [`Incoming`] or a [`SharedUse`], which has it alone and only lends it.
//! * An [`Ended`] is what is left of one of these when it is consumed. A [`Completion`] of an
//!   operation is made of it, and read once. The right to count it, [`Counted`], is made of it as well,
//!   but any number of times, and for any counter.
//! * An `Outgoing` cannot outlive the call that has posted the operation. Its use goes on as a
//!   `Lasting`, which has a copy of what is the caller's again when the call returns.
//! * Dropping one of these instead of consuming it ends its use as well. If the memory is shared, no
//!   other use is ever the last one then.
//!
//! No type ensures that these are dropped when the memory is the consumer's again without an end that
//! was told: of an operation that failed to be posted, when an endpoint is closed, and when deferred
//! work is taken back. One that is kept beyond that uses freed memory. This, and everything else
//! that no type ensures, is the contract of [`EndpointOps`], [`CounterOps`] and [`EventQueueOps`].
//!
//! [`EndpointOps`]: super::EndpointOps
//! [`CounterOps`]: super::CounterOps
//! [`EventQueueOps`]: super::EventQueueOps

use core::ops::Deref;
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::{
    completion_queue::RELEASE,
    AtomicForm,
    Completion,
    CompletionError,
    Failure,
    Kind,
    Operation,
    Outcome, //
};
use crate::kfi::{
    context::Context,
    errno::EBADFLAGS,
    flags::{
        CompletionFlags,
        OpFlags, //
    },
    linux::linear::Linear,
    memory::{
        pieces::Reserve,
        Cursor,
        Local,
        Memory,
        Source,
        SourceBuffers,
        Target, //
    }, //
};

/// A use of memory that is over: the right to tell so.
///
/// # Invariants
///
/// The use had the memory of an operation with this context, which is not used any more; only by
/// others that share it, if `part` is [`Part::Some`].
pub struct Ended {
    context: Context,
    told: Told,
    part: Part,
    _once: Linear,
}

/// The kind of an operation, as completions tell it: a consumer may take its context for something else if
/// it is told that another kind of operation has ended.
///
/// These are the flags that all completions of such operations have, which lie in the lower half of the word;
/// with [`RELEASE`], if the memory is for several messages: one of their completions has that, the last.
#[derive(Clone, Copy)]
struct Told(u32);

impl Told {
    /// The flags that the completion of a receive may have besides.
    const MORE: u64 = CompletionFlags::REMOTE_CQ_DATA.as_raw();
    /// The flags that the completion of a tagged receive may have beyond these: a peer may have read or
    /// written its memory.
    const MORE_TAGGED: u64 = CompletionFlags::RMA
        .union(CompletionFlags::READ)
        .union(CompletionFlags::WRITE)
        .as_raw();

    /// A kind with these flags.
    const fn new(flags: CompletionFlags) -> Self {
        assert!(flags.as_raw() >> u32::BITS == 0);
        Self(flags.as_raw() as u32)
    }

    /// Returns the kind of a receive; `None` if the operation is none.
    #[inline(always)]
    fn of_receive(operation: &Operation<'_>) -> Option<Self> {
        type Flags = CompletionFlags;
        let kind = match &operation.kind {
            Kind::Receive => const { Self::new(Flags::MSG.union(Flags::RECV)) },
            Kind::TaggedReceive { .. } => const { Self::new(Flags::TAGGED.union(Flags::RECV)) },
            _ => return None,
        };
        const { assert!(OpFlags::MULTI_RECV.as_raw() == RELEASE) };
        Some(Self(kind.0 | (operation.flags.as_raw() & RELEASE) as u32))
    }

    /// Returns the kind of an operation of a transmit context; `None` if it is none.
    #[inline(always)]
    fn of_transmit(operation: &Operation<'_>) -> Option<Self> {
        type Flags = CompletionFlags;
        const TAGGED_RMA: CompletionFlags = Flags::TAGGED.union(Flags::RMA).union(Flags::SEND);
        let tagged = operation.flags.contains(OpFlags::TAGGED);
        Some(match &operation.kind {
            Kind::Send => const { Self::new(Flags::MSG.union(Flags::SEND)) },
            Kind::TaggedSend { .. } => const { Self::new(Flags::TAGGED.union(Flags::SEND)) },
            Kind::Read { .. } if tagged => const { Self::new(TAGGED_RMA.union(Flags::READ)) },
            Kind::Read { .. } => const { Self::new(Flags::RMA.union(Flags::READ)) },
            Kind::Write { .. } if tagged => const { Self::new(TAGGED_RMA.union(Flags::WRITE)) },
            Kind::Write { .. } => const { Self::new(Flags::RMA.union(Flags::WRITE)) },
            Kind::Atomic(atomics) if atomics.is_plain() => {
                const { Self::new(Flags::ATOMIC.union(Flags::WRITE)) }
            }
            Kind::Atomic(_) => const { Self::new(Flags::ATOMIC.union(Flags::READ)) },
            Kind::Receive | Kind::TaggedReceive { .. } => return None,
        })
    }

    /// Returns the flags of a completion, for which a provider has proposed some.
    #[inline]
    fn flags(self, proposed: u64, part: Part) -> u64 {
        let own = u64::from(self.0) & !RELEASE;
        if own & CompletionFlags::RECV.as_raw() == 0 {
            return own;
        }
        let mut may = u64::from(self.0) | Self::MORE;
        if own & CompletionFlags::TAGGED.as_raw() != 0 {
            may |= Self::MORE_TAGGED;
        }
        if part == Part::Some {
            may &= !RELEASE;
        }
        let flags = proposed & may;
        // The release may be told alone.
        if flags == RELEASE {
            return RELEASE;
        }
        flags | own
    }
}

/// The part of the use that has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The use of all of the memory.
    Whole,
    /// A use of memory that others use, too.
    Some,
    /// The last use of such memory.
    Last,
}

/// The right to count an event, once.
pub struct Counted(Linear);

impl Counted {
    /// The right to count something that a peer did and for which nothing was posted here.
    pub fn remote() -> Self {
        Self(Linear)
    }
}

impl Ended {
    /// Returns whether that was the last use of memory for several messages.
    pub fn is_last(&self) -> bool {
        self.part == Part::Last
    }

    /// Returns the completion that tells it. Only that of memory for several messages can tell the release,
    /// and of uses of it that of the last one. The kind of the operation need not stand in the flags; nor
    /// does another one count.
    #[inline]
    pub fn complete(self, outcome: &Outcome) -> Completion {
        let flags = self.told.flags(outcome.flags, self.part);
        Completion::new(self.context, flags, outcome)
    }

    /// Returns what tells it together with a failure. That a receive was cancelled gives its memory back,
    /// so a use of memory that others use, too, fails with `EIO` instead.
    pub fn fail(self, outcome: &Outcome, mut failure: Failure) -> CompletionError {
        if self.part == Part::Some && failure.err == Failure::from(ECANCELED).err {
            failure.err = Failure::from(EIO).err;
        }
        CompletionError {
            completion: self.complete(outcome),
            failure,
        }
    }

    /// Returns the right to count it, in one of the counters that are bound for it.
    pub fn counted(&self) -> Counted {
        Counted(Linear)
    }
}

/// The memory of an operation of a transmit context, as long as the call that has posted it. To be
/// dropped if that call fails: see [`EndpointOps::post`](super::EndpointOps::post).
///
/// # Invariants
///
/// The memory that is the caller's again when the call returns is in `inject`.
#[must_use = "its consumer waits for its end"]
pub struct Outgoing<'a> {
    memory: Lasting,
    inject: Option<SourceBuffers<'a>>,
}

impl<'a> Outgoing<'a> {
    /// Takes the memory of an operation; `EINVAL` for a receive. Its description lies in memory of
    /// `reserve`, if there is one and no other.
    #[inline(always)]
    pub fn take(
        operation: Operation<'a>,
        gfp: Flags,
        reserve: Option<&Arc<Reserve>>,
    ) -> Result<Self> {
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
        let told = Told::of_transmit(&operation).ok_or(EINVAL)?;
        let inject = operation.inject || operation.flags.contains(OpFlags::INJECT);
        if inject && compare.is_some() {
            return Err(EBADFLAGS.into());
        }
        // INVARIANT: Only sources are the caller's again when the call returns, and there is no other.
        Ok(Self {
            // INVARIANT: Nobody else is given it: the operation is gone, which has had it alone.
            memory: Lasting {
                // SAFETY: It stays in what is returned, which is consumed when the right to tell the
                // end is made, or dropped. If the operation is injected, it is not part of what
                // lasts longer than the call.
                source: unsafe { source.capture(gfp, reserve) }?,
                compare: match compare {
                    // SAFETY: As above; nothing is compared with what is injected.
                    Some(compare) => unsafe { compare.capture(gfp, reserve) }?,
                    None => Memory::NONE,
                },
                target: match target {
                    // SAFETY: As above; it is no source.
                    Some(target) => unsafe { target.capture(gfp, reserve) }?,
                    None => Memory::NONE,
                },
                context: operation.context,
                told,
            },
            inject: inject.then_some(source),
        })
    }

    /// Returns whether the description of what [`Self::keep`] keeps lies in a reserve.
    pub fn is_reserved(&self) -> bool {
        // Of what is injected a copy is kept.
        self.inject.is_none() && self.memory.source.is_reserved()
            || self.memory.compare.is_reserved()
            || self.memory.target.is_reserved()
    }

    /// Keeps what is needed until the operation ends.
    pub fn keep(self, gfp: Flags) -> Result<Lasting> {
        let Self { mut memory, inject } = self;
        if let Some(buffers) = inject {
            // SAFETY: The call that has brought it has not returned, and the right to tell the end is
            // made of what is returned.
            memory.source = unsafe { buffers.copy(gfp) }?;
        }
        Ok(memory)
    }

    /// Ends its use.
    #[inline]
    pub fn end(self) -> Ended {
        self.memory.end()
    }
}

impl Deref for Outgoing<'_> {
    type Target = Lasting;

    fn deref(&self) -> &Lasting {
        &self.memory
    }
}

/// The memory of an operation of a transmit context. To be dropped if the call fails that has posted
/// it, when the endpoint is closed, and when it is part of deferred work that is taken back: see
/// [`EndpointOps::post`](super::EndpointOps::post).
///
/// # Invariants
///
/// This has the memory alone. Nothing of it is the caller's again before the operation ends, except
/// in an [`Outgoing`].
pub struct Lasting {
    source: Memory<Source>,
    compare: Memory<Source>,
    target: Memory<Target>,
    context: Context,
    told: Told,
}

impl Lasting {
    /// Lends what is sent and written; operands of atomics.
    pub fn source(&self) -> &Memory<Source> {
        &self.source
    }

    /// Lends what elements are compared with.
    pub fn compare(&self) -> &Memory<Source> {
        &self.compare
    }

    /// Lends that to which goes what is read, and elements that were fetched.
    pub fn target(&self) -> &Memory<Target> {
        &self.target
    }

    /// Ends its use.
    #[inline]
    pub fn end(self) -> Ended {
        self.source.end();
        self.compare.end();
        self.target.end();
        // INVARIANT: `self` had the memory alone, and ends with this call.
        Ended {
            context: self.context,
            told: self.told,
            part: Part::Whole,
            _once: Linear,
        }
    }
}

/// The memory of a receive. To be dropped when a [`Lasting`] is.
///
/// # Invariants
///
/// This has the memory alone.
pub struct Incoming {
    memory: Memory<Target>,
    context: Context,
    told: Told,
}

impl Incoming {
    /// Takes the memory of a receive; `EINVAL` if it is none.
    #[inline]
    pub fn take(operation: Operation<'_>, gfp: Flags) -> Result<Self> {
        let Local::Target(target) = operation.local else {
            return Err(EINVAL);
        };
        // What is read goes to a target, too.
        let told = Told::of_receive(&operation).ok_or(EINVAL)?;
        // INVARIANT: Nobody else is given it: the operation is gone, which has had it alone.
        Ok(Self {
            // SAFETY: It stays in what is returned, which is consumed when the right to tell the end
            // is made, or dropped.
            memory: unsafe { target.capture(gfp, None) }?,
            context: operation.context,
            told,
        })
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Returns the address of the first byte, for display only; 0 if it has none.
    pub fn address(&self) -> usize {
        self.memory.address()
    }

    /// Returns a place in the memory.
    pub fn cursor(&self, offset: usize) -> Cursor<'_, Target> {
        self.memory.cursor(offset)
    }

    /// Ends its use.
    #[inline]
    pub fn end(self) -> Ended {
        self.memory.end();
        // INVARIANT: `self` had the memory alone, and ends with this call.
        Ended {
            context: self.context,
            told: self.told,
            part: Part::Whole,
            _once: Linear,
        }
    }
}

/// The memory of a receive for several messages, and what a provider has with it.
///
/// # Invariants
///
/// - There are as many [`SharedUse`]s as `uses`, or less.
/// - The consumer has the memory again by an entry that tells the release, or that the receive was
///   cancelled, and by no other.
#[pin_data]
struct Shared<T> {
    memory: Incoming,
    uses: Atomic<usize>,
    #[pin]
    data: T,
}

/// A use of memory for several messages: by one that lands, or by the receive that is posted. While one
/// was dropped instead of ended, no other is the last one. To be dropped when a [`Lasting`] is.
///
/// # Invariants
///
/// This is counted in the uses.
pub struct SharedUse<T>(Arc<Shared<T>>);

/// The remains of a use that has ended, to be dropped without a lock.
pub struct Left<T>(Arc<Shared<T>>);

impl<T> SharedUse<T> {
    /// Takes the memory of a receive for several messages, of which this is the first use. `EINVAL` if it
    /// is for one: the consumer has that memory again by the first entry, whoever else uses it.
    ///
    /// [`OpFlags::MULTI_RECV`] says what it is, but no type ensures that the flag is meant: among the
    /// default flags it means the receives only, tagged or not, for which the endpoint has the
    /// capability, and all others are to be taken as an [`Incoming`].
    pub fn take(operation: Operation<'_>, data: impl PinInit<T>, gfp: Flags) -> Result<Self> {
        let looks = OpFlags::PEEK | OpFlags::CLAIM | OpFlags::DISCARD;
        let flags = operation.flags;
        if !flags.contains(OpFlags::MULTI_RECV) || flags.intersects(looks) {
            return Err(EINVAL);
        }
        Self::share(Incoming::take(operation, gfp)?, data, gfp)
    }

    /// Shares the memory of a receive for several messages.
    fn share(memory: Incoming, data: impl PinInit<T>, gfp: Flags) -> Result<Self> {
        // INVARIANT: One use, which this is. The receive is for several messages, by the flags that the
        // consumer has posted it with.
        Ok(Self(Arc::pin_init(
            pin_init!(Shared {
                memory,
                uses: Atomic::new(1),
                data <- data,
            }),
            gfp,
        )?))
    }

    /// Returns the memory.
    pub fn memory(&self) -> &Incoming {
        &self.0.memory
    }

    /// Returns what the provider has with it.
    pub fn data(&self) -> &T {
        &self.0.data
    }

    /// Begins another use.
    pub fn enter(&self) -> Self {
        // Relaxed: this use itself keeps the count above 0.
        self.0.uses.fetch_add(1, ordering::Relaxed);
        // INVARIANT: Counted above.
        Self(self.0.clone())
    }

    /// Ends the use.
    pub fn end(self) -> (Ended, Left<T>) {
        let Self(shared) = self;
        // INVARIANT: This is gone.
        // Full: what the others did comes before what the last one does.
        // See `qemu-test/litmus/KFI-in-use.litmus`.
        let last = shared.uses.fetch_sub(1, ordering::Full) == 1;
        // INVARIANT: All users are gone, and the last one has found that there is nobody else.
        let ended = Ended {
            context: shared.memory.context,
            told: shared.memory.told,
            part: if last { Part::Last } else { Part::Some },
            _once: Linear,
        };
        (ended, Left(shared))
    }
}

impl<T> Left<T> {
    /// Returns what the provider has with the memory.
    pub fn data(&self) -> &T {
        &self.0.data
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_in_use)]
mod tests {
    use super::*;
    use crate::kfi::{
        memory::{
            RemoteRanges,
            TargetBuffers, //
        },
        provider::ADDR_NOTAVAIL, //
    };
    use core::ptr;

    /// The flags of a receive.
    const RECEIVED: u64 = CompletionFlags::MSG.union(CompletionFlags::RECV).as_raw();

    /// Memory of a receive.
    fn incoming() -> Incoming {
        Incoming {
            memory: Memory::NONE,
            context: Context::from_number(5),
            told: const { Told::new(CompletionFlags::from_raw(RECEIVED | RELEASE)) },
        }
    }

    /// The outcome as the provider reports it, which may be wrong.
    fn outcome(flags: u64) -> Outcome {
        Outcome {
            flags,
            len: 1,
            buf: Context::NONE,
            data: 2,
            tag: 3,
            src_addr: ADDR_NOTAVAIL,
        }
    }

    #[test]
    fn release_is_told_by_the_last_use() -> Result {
        let first = SharedUse::share(incoming(), (), GFP_KERNEL)?;
        let second = first.enter();
        let (ended, left) = first.end();
        assert!(!ended.is_last());
        // Regardless of what the provider says.
        let completion = ended.complete(&outcome(RELEASE | RECEIVED));
        assert_eq!(completion.outcome().flags, RECEIVED);
        assert_eq!(completion.op_context().as_number(), 5);
        drop(left);
        let (ended, _left) = second.end();
        assert!(ended.is_last());
        let completion = ended.complete(&outcome(RELEASE | RECEIVED));
        assert_eq!(completion.outcome().flags, RELEASE | RECEIVED);
        Ok(())
    }

    #[test]
    fn release_is_told_alone_by_the_last_use() -> Result {
        let first = SharedUse::share(incoming(), (), GFP_KERNEL)?;
        let second = first.enter();
        let flags = |ended: Ended| ended.complete(&outcome(RELEASE)).outcome().flags;
        assert_eq!(flags(first.end().0), RECEIVED);
        assert_eq!(flags(second.end().0), RELEASE);
        Ok(())
    }

    #[test]
    fn completions_tell_what_kind_of_operation_has_ended() -> Result {
        let flags = |kind, flags, proposed| -> Result<u64> {
            let operation = Operation {
                flags,
                ..Operation::new(kind, SourceBuffers::NONE, 0, ptr::null_mut())
            };
            let ended = Outgoing::take(operation, GFP_KERNEL, None)?.end();
            Ok(ended.complete(&outcome(proposed)).outcome().flags)
        };
        let remote = RemoteRanges::one(0, 1, 0);
        let sent = CompletionFlags::MSG | CompletionFlags::SEND;
        let written = CompletionFlags::RMA | CompletionFlags::WRITE;
        let tagged = written | CompletionFlags::TAGGED | CompletionFlags::SEND;
        for proposed in [0, RECEIVED, u64::MAX] {
            let send = flags(Kind::Send, OpFlags::COMPLETION, proposed)?;
            assert_eq!(send, sent.as_raw());
            let write = flags(Kind::Write { remote }, OpFlags::NONE, proposed)?;
            assert_eq!(write, written.as_raw());
            let write = flags(Kind::Write { remote }, OpFlags::TAGGED, proposed)?;
            assert_eq!(write, tagged.as_raw());
        }
        let receive = |flags| -> Result<u64> {
            let operation = Operation {
                flags,
                ..Operation::new(Kind::Receive, TargetBuffers::NONE, 0, ptr::null_mut())
            };
            let ended = Incoming::take(operation, GFP_KERNEL)?.end();
            Ok(ended.complete(&outcome(RELEASE)).outcome().flags)
        };
        assert_eq!(receive(OpFlags::COMPLETION)?, RECEIVED);
        assert_eq!(receive(OpFlags::MULTI_RECV)?, RELEASE);
        let data = CompletionFlags::REMOTE_CQ_DATA.as_raw();
        for (proposed, told) in [
            (0, RECEIVED),
            (data | sent.as_raw(), data | RECEIVED),
            (u64::MAX, data | RELEASE | RECEIVED),
        ] {
            let completion = incoming().end().complete(&outcome(proposed));
            assert_eq!(completion.outcome().flags, told);
        }
        Ok(())
    }

    #[test]
    fn what_a_peer_did_is_no_operation_of_here() {
        let read = CompletionFlags::RMA | CompletionFlags::REMOTE_READ;
        let completion = Completion::remote(&outcome(read.as_raw() | RELEASE | RECEIVED));
        assert_eq!(completion.outcome().flags, read.as_raw());
    }

    #[test]
    fn that_it_was_cancelled_is_told_by_the_last_use() -> Result {
        let cancelled = Failure {
            olen: 7,
            ..ECANCELED.into()
        };
        let fails_with = |ended: Ended, failure: Failure| {
            let error = ended.fail(&outcome(RECEIVED), failure);
            assert_eq!(error.failure().olen, failure.olen);
            let err = error.failure().err;
            assert_eq!(error.into_completion().outcome().flags, RECEIVED);
            err
        };
        let first = SharedUse::share(incoming(), (), GFP_KERNEL)?;
        let (second, third) = (first.enter(), first.enter());
        assert_eq!(fails_with(first.end().0, cancelled), Failure::from(EIO).err);
        assert_eq!(
            fails_with(second.end().0, ENOMEM.into()),
            Failure::from(ENOMEM).err
        );
        assert_eq!(fails_with(third.end().0, cancelled), cancelled.err);
        assert_eq!(fails_with(incoming().end(), cancelled), cancelled.err);
        Ok(())
    }

    #[test]
    fn memory_is_shared_of_receives_for_several_messages_only() {
        let take = |kind, flags: OpFlags| {
            let operation = Operation {
                flags,
                ..Operation::new(kind, TargetBuffers::NONE, 0, ptr::null_mut())
            };
            SharedUse::take(operation, (), GFP_KERNEL).err()
        };
        let tagged = Kind::TaggedReceive { tag: 0, ignore: 0 };
        let remote = RemoteRanges::one(0, 1, 0);
        let several = OpFlags::MULTI_RECV | OpFlags::COMPLETION;
        for kind in [Kind::Receive, tagged] {
            assert_eq!(take(kind, several), None);
            assert_eq!(take(kind, OpFlags::COMPLETION), Some(EINVAL));
            assert_eq!(take(kind, several | OpFlags::PEEK), Some(EINVAL));
        }
        assert_eq!(take(Kind::Read { remote }, several), Some(EINVAL));
    }

    #[test]
    fn a_whole_receive_is_told_as_it_was() {
        let completion = incoming().end().complete(&outcome(RECEIVED));
        assert_eq!(completion.outcome().flags, RECEIVED);
        assert_eq!(completion.outcome().data, 2);
    }
}
