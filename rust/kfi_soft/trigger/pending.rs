// SPDX-License-Identifier: GPL-2.0

//! Operations that are pending on a counter until it reaches a threshold.
//!
//! There are two kinds. Triggered operations (`KFI_TRIGGER`) wait for the success value
//! (R-TRIG-13), deferred work for the sum of success and error value (R-DWQ-5). Both are ordered by
//! threshold and then by submission, and those that become due at once are run in that order,
//! whatever their kind (R-DWQ-18).
//!
//! Everything is allocated and copied at submission. The operation lies in its slot of the table of the
//! domain; what the counter has is an entry with the number of that. Firing moves the entry from the
//! counter to the domain's run list, which allocates nothing. An entry is in one place at a time, and
//! the operation belongs to the thread that has taken it from there: fire, cancel, flush and close race
//! for it under the lock of the counter, and one of them wins.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    abi_trace,
    counter::Counter,
    domain::Domain,
    kfi::{
        context::Context,
        fid::Fid,
        hold::{
            Hold,
            HoldOnce,
            HoldsOnce, //
        },
        linux::{
            interrupts::IrqGuard,
            jiffies::Instant,
            random::random_u64, //
        }, //
    },
    trigger::{
        pending_table::PendingOwner,
        run_list::Cancelled,
        threshold::{
            self,
            Batch,
            Block,
            Emptied,
            Entry,
            Key,
            Rest,
            ThresholdSet,
            Tree, //
        },
    }, //
};

/// A data transfer that begins when it is triggered.
///
/// It was prepared at submission: all arguments are copied, everything is allocated.
pub(crate) trait TriggeredOp: Send + Sync {
    /// Begins it, also if its endpoint is being closed.
    ///
    /// Calls `begun` once, in the step that lets it be found in its endpoint; if that says that it was
    /// cancelled meanwhile, it is completed with `ECANCELED` instead.
    ///
    /// From any context, with no lock held; must not sleep nor allocate. Counters that it completes
    /// append what becomes due to the run list of the domain. To drop it instead gives it up, without
    /// any effect or completion.
    fn begin(self: KBox<Self>, begun: &dyn Fn() -> bool);

    /// Completes it with `ECANCELED` (R-TRIG-26); only triggered operations are cancelled so.
    fn cancel(self: KBox<Self>);

    /// Returns what identifies its endpoint in the domain.
    fn owner(&self) -> PendingOwner;

    /// Returns the most bytes that are copied when it begins.
    fn bytes(&self) -> usize;

    /// Returns its context.
    fn context(&self) -> Context;
}

/// The kind of a pending operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingKind {
    /// A triggered operation.
    Triggered,
    /// Deferred work.
    Deferred,
}

/// An operation that is pending on a counter.
// Each with the time, as a member beside them would not fit in.
pub(crate) enum Pending {
    /// Adds to a counter.
    Add {
        /// The counter.
        counter: HoldOnce<Counter>,
        /// The value to add.
        value: u64,
        /// When it was submitted.
        since: Instant,
    },
    /// Sets a counter.
    Set {
        /// The counter.
        counter: HoldOnce<Counter>,
        /// The value.
        value: u64,
        /// When it was submitted.
        since: Instant,
    },
    /// Begins a data transfer.
    Transfer {
        /// The data transfer.
        transfer: KBox<dyn TriggeredOp>,
        /// When it was submitted.
        since: Instant,
    },
}

kernel::static_assert!(size_of::<Option<Pending>>() == 24);

impl Pending {
    /// Returns what people call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Add { .. } => "cntr_add",
            Self::Set { .. } => "cntr_set",
            Self::Transfer { .. } => "transfer",
        }
    }

    /// Returns for how many milliseconds it has been waiting.
    pub(crate) fn age_ms(&self) -> u64 {
        let (Self::Add { since, .. } | Self::Set { since, .. } | Self::Transfer { since, .. }) =
            self;
        since.elapsed_ms()
    }

    /// Returns whether it is a data transfer.
    pub(crate) fn is_transfer(&self) -> bool {
        matches!(self, Self::Transfer { .. })
    }

    /// Returns what identifies the endpoint of a data transfer.
    pub(crate) fn owner(&self) -> PendingOwner {
        match self {
            Self::Transfer { transfer, .. } => transfer.owner(),
            Self::Add { .. } | Self::Set { .. } => PendingOwner::NOBODY,
        }
    }

    /// Returns the most bytes that are copied when it runs.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Transfer { transfer, .. } => transfer.bytes(),
            Self::Add { .. } | Self::Set { .. } => 0,
        }
    }

    /// Does it, if it is a counter operation; from any context, with no lock held. Interrupts that
    /// are disabled by `irqs` are enabled before any thread is woken.
    pub(crate) fn run(self, irqs: &mut IrqGuard) {
        match self {
            Self::Add { counter, value, .. } => {
                counter.use_last(|counter| counter.add_completed(value, irqs));
            }
            Self::Set { counter, value, .. } => {
                counter.use_last(|counter| counter.set_completed(value, irqs));
            }
            Self::Transfer { transfer, .. } => drop(transfer),
        }
    }

    /// Returns the data transfer, if it is one.
    pub(crate) fn into_transfer(self) -> Option<KBox<dyn TriggeredOp>> {
        match self {
            Self::Transfer { transfer, .. } => Some(transfer),
            Self::Add { .. } | Self::Set { .. } => None,
        }
    }
}

/// Additions of the same value to one counter that follow each other, to be made as one.
struct Additions {
    counter: HoldsOnce<Counter>,
    /// What each adds.
    value: u64,
    /// How many they are.
    count: u64,
}

impl Additions {
    /// A single one.
    fn new(counter: HoldOnce<Counter>, value: u64) -> Self {
        Self {
            counter: HoldsOnce::new(counter),
            value,
            count: 1,
        }
    }

    /// Adds another one; returns it if that is to another counter, or of another value.
    fn join(&mut self, counter: HoldOnce<Counter>, value: u64) -> Option<(HoldOnce<Counter>, u64)> {
        if self.value != value {
            return Some((counter, value));
        }
        if let Err(counter) = self.counter.add(counter) {
            return Some((counter, value));
        }
        self.count = self.count.wrapping_add(1);
        None
    }

    /// Makes them.
    fn run(self, irqs: &mut IrqGuard) {
        let Self {
            counter,
            value,
            count,
        } = self;
        counter.use_last(|counter| match count {
            1 => counter.add_completed(value, irqs),
            _ => counter.add_completed_many(value, count, irqs),
        });
    }
}

/// Runs counter operations that follow each other, without anything in between; from any context, with
/// no lock held.
#[must_use = "the last ones are made at the end"]
pub(crate) struct Runner {
    /// Yet to be made.
    additions: Option<Additions>,
    /// Keeps interrupts disabled until something is made.
    irqs: IrqGuard,
}

impl Runner {
    /// Has run nothing. Interrupts that are disabled by `irqs` are enabled after the first step.
    pub(crate) fn new(irqs: IrqGuard) -> Self {
        Self {
            additions: None,
            irqs,
        }
    }

    /// Runs an operation, now or later, but before what comes after it.
    pub(crate) fn run(&mut self, pending: Pending) {
        let (counter, value) = match (pending, &mut self.additions) {
            (Pending::Add { counter, value, .. }, Some(additions)) => {
                match additions.join(counter, value) {
                    None => return,
                    Some(other) => other,
                }
            }
            (Pending::Add { counter, value, .. }, None) => (counter, value),
            (other, _) => {
                self.make();
                other.run(&mut self.irqs);
                self.irqs.end();
                return;
            }
        };
        self.make();
        self.additions = Some(Additions::new(counter, value));
    }

    /// Makes the additions.
    fn make(&mut self) {
        if let Some(additions) = self.additions.take() {
            additions.run(&mut self.irqs);
            self.irqs.end();
        }
    }

    /// Runs what was left.
    pub(crate) fn end(mut self) {
        self.make();
    }
}

/// The operations that are pending on one counter; under its lock.
pub(crate) struct Triggers {
    /// By success value.
    triggered: ThresholdSet,
    /// By the sum of success and error value.
    deferred: ThresholdSet,
    /// The counter holds itself while anything is pending on it (R-CLOSE-2).
    hold: Option<Hold<Counter>>,
}

impl Triggers {
    /// Nothing waits.
    pub(crate) fn new() -> Self {
        let seed = random_u64();
        Self {
            triggered: ThresholdSet::new(seed),
            deferred: ThresholdSet::new(seed.rotate_left(32)),
            hold: None,
        }
    }

    /// Returns what waits for the one or the other.
    pub(crate) fn set(&self, kind: PendingKind) -> &ThresholdSet {
        match kind {
            PendingKind::Triggered => &self.triggered,
            PendingKind::Deferred => &self.deferred,
        }
    }

    /// Returns what waits for the one or the other.
    fn set_mut(&mut self, kind: PendingKind) -> &mut ThresholdSet {
        match kind {
            PendingKind::Triggered => &mut self.triggered,
            PendingKind::Deferred => &mut self.deferred,
        }
    }

    /// Returns the smallest success value at which anything is due, the error value being `error`.
    pub(crate) fn first_due(&self, error: u64) -> Option<u64> {
        // success + error >= threshold, without overflow, is success >= threshold - error, or 0.
        let deferred = self
            .deferred
            .first_threshold()
            .map(|threshold| threshold.saturating_sub(error));
        match (self.triggered.first_threshold(), deferred) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Returns whether the counter must be held for [`Self::insert`].
    pub(crate) fn needs_hold(&self) -> bool {
        self.hold.is_none()
    }

    /// Holds the counter, from before the first is inserted.
    pub(crate) fn set_hold(&mut self, hold: Hold<Counter>) {
        self.hold = Some(hold);
    }

    /// Returns the counter, if anything is pending.
    pub(crate) fn holder(&self) -> Option<Arc<Fid<Counter>>> {
        Some(self.hold.as_ref()?.fid().clone())
    }

    /// Returns the hold when nothing is pending, to be dropped outside of locks.
    pub(crate) fn take_hold(&mut self) -> Option<Hold<Counter>> {
        if self.triggered.is_empty() && self.deferred.is_empty() {
            self.hold.take()
        } else {
            None
        }
    }

    /// Adds blocks if there are any; returns how many are needed.
    pub(crate) fn blocks_wanted(&mut self, kind: PendingKind, blocks: &mut Emptied) -> usize {
        let set = self.set_mut(kind);
        set.add_blocks(blocks);
        set.blocks_wanted()
    }

    /// Adds an entry; `false` if a block is needed.
    #[must_use]
    pub(crate) fn insert(&mut self, kind: PendingKind, entry: Entry) -> bool {
        self.set_mut(kind).insert(entry)
    }

    /// Returns whether anything is due.
    #[inline]
    pub(crate) fn is_due(&self, success: u64, error: u64) -> bool {
        // The sum saturates (R-CNTR-20).
        self.triggered.is_due(success) || self.deferred.is_due(success.saturating_add(error))
    }

    /// Takes out what is due, if that is a single operation and more is pending, as can be seen at once.
    #[inline]
    pub(crate) fn pop_single_due(&mut self, success: u64, error: u64) -> Option<Entry> {
        let sum = success.saturating_add(error);
        match (self.triggered.is_due(success), self.deferred.is_due(sum)) {
            (true, false) => self.triggered.pop_single_due(success),
            (false, true) => self.deferred.pop_single_due(sum),
            _ => None,
        }
    }

    /// Takes out all that is due and calls `append` with it, if there is anything. If nothing else is
    /// pending the hold is released before, and returned.
    ///
    /// A thread that has seen what all that was pending has done may close the counter (R-CLOSE-2).
    pub(crate) fn detach_due<R>(
        &mut self,
        success: u64,
        error: u64,
        append: impl FnOnce([Tree; 2], &mut Rest<'_>) -> R,
    ) -> Option<Detached<R>> {
        // The sum saturates (R-CNTR-20).
        let sum = success.saturating_add(error);
        let mut hold = None;
        let (blocks, result) = threshold::detach_due(
            (&mut self.triggered, success),
            (&mut self.deferred, sum),
            |all, trees, rest| {
                if all {
                    hold = self.hold.take();
                }
                if let Some(hold) = &hold {
                    hold.release();
                }
                append(trees, rest)
            },
        )?;
        Some(Detached {
            hold,
            blocks,
            result,
        })
    }

    /// Returns the next entry after `last` that is due at these values, of either kind.
    pub(crate) fn next_due(
        &self,
        last: Option<Key>,
        success: u64,
        sum: u64,
    ) -> Option<(PendingKind, Key)> {
        let next = |kind, value| {
            let key = self.set(kind).next_after(last)?.key;
            (key.threshold <= value).then_some((kind, key))
        };
        match (
            next(PendingKind::Triggered, success),
            next(PendingKind::Deferred, sum),
        ) {
            (Some(one), Some(other)) if other.1 < one.1 => Some(other),
            (one, other) => one.or(other),
        }
    }

    /// Takes out one entry, if it is pending; returns its number, and a block that is to be dropped
    /// outside of locks.
    pub(crate) fn remove(
        &mut self,
        kind: PendingKind,
        key: Key,
    ) -> Option<(u32, Option<KBox<Block>>)> {
        self.set_mut(kind).remove(key)
    }

    /// Takes out all of a kind.
    pub(crate) fn detach_all(&mut self, kind: PendingKind) -> Batch {
        self.set_mut(kind).detach_all()
    }
}

/// The result of [`Triggers::detach_due`].
pub(crate) struct Detached<R> {
    /// The hold, to be dropped outside of locks.
    pub(crate) hold: Option<Hold<Counter>>,
    /// Blocks that are to be dropped outside of locks.
    pub(crate) blocks: [Option<KBox<Block>>; 2],
    /// What was returned.
    pub(crate) result: R,
}

/// Submits a triggered operation: `transfer` begins when the success value of `counter`, which is of
/// the domain of the endpoint, reaches `threshold`, at once if it has (R-TRIG-11).
///
/// From any context. `EAGAIN` if there is no memory (R-TRIG-27), `ENOSPC` if too much is pending,
/// `EINVAL` if the counter is closing; then `transfer` was dropped.
pub(crate) fn submit_triggered(
    counter: &Fid<Counter>,
    threshold: u64,
    transfer: KBox<dyn TriggeredOp>,
) -> Result {
    let no_memory = |error| if error == ENOMEM { EAGAIN } else { error };
    let id = transfer.context().as_number();
    let pending = Pending::Transfer {
        transfer,
        since: Instant::now(),
    };
    counter
        .domain()
        .run_list()
        .submit(
            counter,
            PendingKind::Triggered,
            pending,
            id,
            threshold,
            GFP_NOWAIT,
        )
        .map_err(no_memory)
}

/// Cancels a triggered operation that has not begun: the last one of the endpoint with this context.
///
/// It completes with `ECANCELED` (R-TRIG-26). `ENOENT` if there is none.
pub(crate) fn cancel(domain: &Domain, owner: PendingOwner, context: Context) -> Result {
    match domain.run_list().cancel(owner, context) {
        Cancelled::Taken(taken) => {
            abi_trace::cancel(taken.counter.id(), taken.key, PendingKind::Triggered);
            if let Some(transfer) = taken.value.into_transfer() {
                transfer.cancel();
            }
            Ok(())
        }
        Cancelled::Fired => Ok(()),
        Cancelled::NotFound => Err(ENOENT),
    }
}
