// SPDX-License-Identifier: GPL-2.0

//! What waits for a counter, and is done when its threshold is reached.
//!
//! There are two kinds. Classic triggered operations (`KFI_TRIGGER`) wait for the success value
//! (R-TRIG-13), deferred work for the sum of success and error value (R-DWQ-5). Both stand in order
//! of thresholds and then of submission, and what becomes due at once is run in that order, whatever
//! kind it is (R-DWQ-18).
//!
//! Everything is allocated and copied when it is submitted. To fire is to move the entry from the
//! counter to the domain's run list, which allocates nothing. An entry is in one place at a time, and
//! belongs to whoever has taken it from there: fire, cancel, flush and close race for it under the
//! lock of the counter, and one of them wins.

#![deny(unsafe_code)]

use kernel::prelude::*;

use crate::{
    abi_trace,
    counter::Counter,
    domain::Domain,
    kfi::{
        fid::{
            Context,
            Fid, //
        },
        hold::{
            Hold,
            HoldOnce, //
        },
        jiffies::Instant,
        random::random_u64, //
    },
    threshold::{
        Batch,
        Entry,
        Key,
        ThresholdSet, //
    }, //
};

/// A data transfer that was prepared when it was submitted: all arguments are copied, everything is
/// allocated.
pub(crate) trait Transfer: Send + Sync {
    /// Begins it, also if its endpoint was closed meanwhile.
    ///
    /// From any context, with no lock held; must not sleep nor allocate. Counters that it completes
    /// append what becomes due to the run list of the domain. To drop it instead gives it up, without
    /// any effect or completion.
    fn begin(self: KBox<Self>);

    /// Completes it with `ECANCELED` (R-TRIG-26); only triggered operations are cancelled so.
    fn cancel(self: KBox<Self>);

    /// Returns what identifies its endpoint in the domain.
    fn owner(&self) -> usize;

    /// Returns its context.
    fn context(&self) -> Context;
}

/// What waits for a counter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A triggered operation.
    Classic,
    /// Deferred work.
    Deferred,
}

/// What is done.
pub(crate) enum Action {
    /// Adds to a counter.
    Add {
        /// The counter.
        counter: HoldOnce<Counter>,
        /// What is added.
        value: u64,
    },
    /// Sets a counter.
    Set {
        /// The counter.
        counter: HoldOnce<Counter>,
        /// The value.
        value: u64,
    },
    /// Begins a data transfer.
    Transfer(KBox<dyn Transfer>),
}

impl Action {
    /// Returns what people call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Add { .. } => "cntr_add",
            Self::Set { .. } => "cntr_set",
            Self::Transfer(_) => "transfer",
        }
    }
}

/// Something that waits for a counter.
pub(crate) struct Pending {
    action: Action,
    /// Where the table of the domain has it.
    slot: u32,
    /// When it was submitted.
    since: Instant,
}

// With its links it fits one of the sizes that kmalloc has.
kernel::static_assert!(size_of::<Entry<Pending>>() <= 96);

impl Pending {
    /// Allocates an entry.
    pub(crate) fn new(action: Action, flags: kernel::alloc::Flags) -> Result<KBox<Entry<Self>>> {
        Entry::new(
            Self {
                action,
                slot: u32::MAX,
                since: Instant::now(),
            },
            flags,
        )
    }

    /// Returns what is done.
    pub(crate) fn action(&self) -> &Action {
        &self.action
    }

    /// Returns for how many milliseconds it has been waiting.
    pub(crate) fn age_ms(&self) -> u64 {
        self.since.elapsed_ms()
    }

    /// Returns whether it is a data transfer.
    pub(crate) fn is_transfer(&self) -> bool {
        matches!(self.action, Action::Transfer(_))
    }

    /// Returns what identifies the endpoint of a data transfer.
    fn owner(&self) -> Option<usize> {
        match &self.action {
            Action::Transfer(transfer) => Some(transfer.owner()),
            Action::Add { .. } | Action::Set { .. } => None,
        }
    }

    /// Returns where the table of the domain has it.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// Notes where the table of the domain has it.
    pub(crate) fn set_slot(&mut self, slot: u32) {
        self.slot = slot;
    }

    /// Does it; from any context, with no lock held.
    pub(crate) fn run(self) {
        match self.action {
            Action::Add { counter, value } => {
                counter.use_last(|counter| counter.add_completed(value));
            }
            Action::Set { counter, value } => {
                counter.use_last(|counter| counter.set_completed(value));
            }
            Action::Transfer(transfer) => transfer.begin(),
        }
    }
}

/// What waits for one counter; under its lock.
pub(crate) struct Triggers {
    /// By success value.
    classic: ThresholdSet<Pending>,
    /// By the sum of success and error value.
    deferred: ThresholdSet<Pending>,
    /// The counter holds itself while anything is pending on it (R-CLOSE-2).
    hold: Option<Hold<Counter>>,
}

impl Triggers {
    /// Nothing waits.
    pub(crate) fn new() -> Self {
        let seed = random_u64();
        Self {
            classic: ThresholdSet::new(seed),
            deferred: ThresholdSet::new(seed.rotate_left(32)),
            hold: None,
        }
    }

    /// Returns what waits for the one or the other.
    pub(crate) fn set(&self, kind: Kind) -> &ThresholdSet<Pending> {
        match kind {
            Kind::Classic => &self.classic,
            Kind::Deferred => &self.deferred,
        }
    }

    /// Returns what waits for the one or the other.
    fn set_mut(&mut self, kind: Kind) -> &mut ThresholdSet<Pending> {
        match kind {
            Kind::Classic => &mut self.classic,
            Kind::Deferred => &mut self.deferred,
        }
    }

    /// Returns the smallest success value at which anything is due, the error value being `error`.
    pub(crate) fn first_due(&self, error: u64) -> Option<u64> {
        // success + error >= threshold, without overflow, is success >= threshold - error, or 0.
        let deferred = self
            .deferred
            .first_threshold()
            .map(|threshold| threshold.saturating_sub(error));
        match (self.classic.first_threshold(), deferred) {
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

    /// Returns the hold when nothing is pending, to be dropped outside of locks.
    pub(crate) fn take_hold(&mut self) -> Option<Hold<Counter>> {
        if self.classic.is_empty() && self.deferred.is_empty() {
            self.hold.take()
        } else {
            None
        }
    }

    /// Adds an entry.
    pub(crate) fn insert(&mut self, kind: Kind, entry: KBox<Entry<Pending>>, key: Key) {
        self.set_mut(kind).insert(entry, key);
    }

    /// Takes out all that is due.
    pub(crate) fn detach_due(
        &mut self,
        success: u64,
        error: u64,
    ) -> (Batch<Pending>, Batch<Pending>) {
        (
            self.classic.detach_due(success),
            // The sum saturates (R-CNTR-20).
            self.deferred.detach_due(success.saturating_add(error)),
        )
    }

    /// Takes out one entry, if it is pending and `wanted`.
    pub(crate) fn remove_if(
        &mut self,
        kind: Kind,
        key: Key,
        wanted: impl FnOnce(&Pending) -> bool,
    ) -> Option<KBox<Entry<Pending>>> {
        self.set_mut(kind).remove_if(key, wanted)
    }

    /// Takes out all of a kind.
    pub(crate) fn detach_all(&mut self, kind: Kind) -> Batch<Pending> {
        self.set_mut(kind).detach_all()
    }
}

/// Submits a triggered operation: `transfer` begins when the success value of `counter`, which is of
/// the domain of the endpoint, reaches `threshold`, at once if it has (R-TRIG-11).
///
/// From any context. `EAGAIN` if there is no memory (R-TRIG-27), `ENOSPC` if too much is pending,
/// `EINVAL` if the counter is closing; then `transfer` was dropped.
pub(crate) fn submit_classic(
    counter: &Fid<Counter>,
    threshold: u64,
    transfer: KBox<dyn Transfer>,
) -> Result {
    let no_memory = |error| if error == ENOMEM { EAGAIN } else { error };
    let id = transfer.context().as_number();
    let entry = Pending::new(Action::Transfer(transfer), GFP_NOWAIT).map_err(no_memory)?;
    counter
        .domain()
        .run_list()
        .submit(counter, Kind::Classic, entry, id, threshold, GFP_NOWAIT)
        .map_err(no_memory)
}

/// Cancels a triggered operation that is pending: the last one of the endpoint with this context.
///
/// It completes with `ECANCELED` (R-TRIG-26). `ENOENT` if there is none.
pub(crate) fn cancel(domain: &Domain, owner: usize, context: Context) -> Result {
    let run_list = domain.run_list();
    let mut before = u64::MAX;
    let wanted = |pending: &Pending| pending.owner() == Some(owner);
    while let Some(taken) = run_list.take_back(Kind::Classic, context.as_number(), before, wanted) {
        before = taken.found.key.sequence;
        if let Some(entry) = taken.entry {
            abi_trace::cancel(taken.found.counter.id(), taken.found.key, Kind::Classic);
            if let Action::Transfer(transfer) = Entry::into_value(entry).action {
                transfer.cancel();
            }
            return Ok(());
        }
        if taken.last {
            break;
        }
    }
    Err(ENOENT)
}

/// Gives up everything pending of an endpoint that is being closed, silently (R-CLOSE-4).
///
/// From process context. What has fired and not begun yet begins later: see [`Transfer::begin`].
pub(crate) fn discard(domain: &Domain, owner: usize) {
    let run_list = domain.run_list();
    run_list.for_each(|found| {
        if !found.transfer {
            return;
        }
        for kind in [Kind::Classic, Kind::Deferred] {
            let removed = found
                .counter
                .remove(kind, found.key, |pending| pending.owner() == Some(owner));
            if let Some(entry) = removed {
                run_list.forget(&entry);
            }
        }
    });
}
