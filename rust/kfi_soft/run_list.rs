// SPDX-License-Identifier: GPL-2.0

//! What is due in a domain and is yet to be run: counters append to it, and one at a time drains it.
//!
//! An operation that runs may change counters, and so make others due. These are only appended, by
//! whoever changes the counter, and run later by whoever drains: there is no recursion, cascades run
//! breadth first (R-DWQ-30). They end, as every entry runs once (R-DWQ-31).
//!
//! Who appends while nobody drains becomes the drainer, and drains when it holds no lock any more.
//! After [`BUDGET`] it leaves the rest to the domain's work queue, which goes on in the same order;
//! nobody else drains meanwhile.
//!
//! The lock protects the table of what is pending too: an entry frees its slot right before it runs,
//! with the lock that the drainer takes anyway.

#![deny(unsafe_code)]

use core::mem;
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    abi_trace,
    counter::Counter,
    kfi::{
        fid::Fid,
        interrupts::Section,
        random::random_u64,
        work_queue::{
            new_work,
            Work,
            WorkItem,
            WorkQueue, //
        }, //
    },
    threshold::{
        Batch,
        BatchQueue,
        BatchStack,
        Entry, //
    },
    trigger::{
        Kind,
        Pending, //
    },
    work_table::{
        Found,
        WorkTable, //
    }, //
};

/// What is run before the rest is left to the work queue, in counter operations.
const BUDGET: u64 = 4096;

/// What the beginning of a data transfer is taken for, in counter operations.
const TRANSFER_COST: u64 = 16;

/// Entries that are taken at once.
const TAKEN: usize = 64;

/// Entries that are taken where one is expected; interrupts stay disabled while these run.
const FEW_TAKEN: usize = 8;

/// Batches that are put in order with the lock held.
const FEW_BATCHES: usize = 64;

/// A counter, as what is pending refers to it.
type CounterRef = Arc<Fid<Counter>>;

/// An entry that is about to run, or none.
type TakenEntry = Option<KBox<Entry<Pending>>>;

/// What the lock protects.
struct Inner {
    /// What has become due since the drainer looked.
    incoming: BatchStack<Pending>,
    /// How many batches that is.
    batches: usize,
    /// Somebody drains, or the work queue is about to.
    draining: bool,
    /// What a drainer has left to the work queue.
    rest: BatchQueue<Pending>,
    /// What is pending, or due and yet to run.
    table: WorkTable<CounterRef>,
}

/// What is due in a domain.
#[pin_data]
pub(crate) struct RunList {
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    work: Work<RunList>,
    work_queue: Arc<WorkQueue>,
}

/// What [`RunList::take_back`] has found.
pub(crate) struct Taken {
    /// What it was about.
    pub(crate) found: Found<CounterRef>,
    /// The entry, if it was pending and wanted.
    pub(crate) entry: Option<KBox<Entry<Pending>>>,
    /// There is none with the same id that was submitted before.
    pub(crate) last: bool,
}

/// The duty to drain a run list, once no lock is held.
#[must_use = "nobody else drains"]
pub(crate) struct Duty(());

impl RunList {
    /// An empty list for up to `limit` entries; what is left over runs on `work_queue`.
    pub(crate) fn new(work_queue: Arc<WorkQueue>, limit: usize) -> Result<Arc<Self>> {
        let inner = Inner {
            incoming: BatchStack::new(),
            batches: 0,
            draining: false,
            rest: BatchQueue::new(),
            table: WorkTable::new(limit, random_u64()),
        };
        Arc::pin_init(
            pin_init!(Self {
                inner <- new_spinlock_irq!(inner, "kfi_soft::RunList::inner"),
                work <- new_work!("kfi_soft::RunList::work"),
                work_queue,
            }),
            GFP_KERNEL,
        )
    }

    /// Makes an entry pending on a counter: notes it under `id` and queues it there.
    ///
    /// From any context that `flags` suit. `ENOSPC` if too much is pending (R-DWQ-24), `EINVAL` if
    /// the counter is closing, `ENOMEM`. Runs what is due.
    pub(crate) fn submit(
        self: &Arc<Self>,
        counter: &Fid<Counter>,
        kind: Kind,
        mut entry: KBox<Entry<Pending>>,
        id: usize,
        threshold: u64,
        flags: Flags,
    ) -> Result {
        let reference = counter.arc();
        let transfer = entry.value.is_transfer();
        loop {
            let (first, limit) = {
                // Once for both locks.
                let interrupts = Section::begin();
                let mut inner = self.inner.lock();
                if let Some((slot, key)) =
                    inner.table.insert(id, &reference, threshold, transfer)?
                {
                    drop(inner);
                    entry.value.set_slot(slot);
                    let enqueued = Counter::enqueue(counter, kind, entry, key);
                    drop(interrupts);
                    return match enqueued {
                        Ok(after) => {
                            abi_trace::submit(counter.id(), key, kind);
                            after.finish(self);
                            Ok(())
                        }
                        Err(entry) => {
                            self.forget(&entry);
                            Err(EINVAL)
                        }
                    };
                }
                (inner.table.capacity() == 0, inner.table.limit())
            };
            let chunk = WorkTable::new_chunk(limit, first, flags)?;
            // Whatever is left over is dropped after the lock was released.
            let _left = self.inner.lock().table.grow(chunk);
        }
    }

    /// Frees what the table of a closed domain occupies; may sleep, as freeing much memory does.
    /// The last reference may be dropped where nothing may.
    pub(crate) fn release(&self) {
        let memory = self.inner.lock().table.take_memory();
        drop(memory);
    }

    /// Frees the slot of an entry that does not run.
    pub(crate) fn forget(&self, entry: &Entry<Pending>) {
        let counter = self.inner.lock().table.remove(entry.value.slot());
        drop(counter);
    }

    /// Frees the slots of entries that do not run, and drops them; returns how many they were.
    pub(crate) fn forget_all(&self, mut entries: Batch<Pending>) -> u64 {
        let mut count = 0;
        loop {
            let mut taken = [const { None }; TAKEN];
            let mut counters = [const { None }; TAKEN];
            fill(&mut taken, || entries.pop());
            if is_empty(&taken) {
                return count;
            }
            let mut inner = self.inner.lock();
            inner.remove(&taken, &mut counters);
            drop(inner);
            count += taken.iter().flatten().count() as u64;
        }
    }

    /// Takes out the last entry with this id that was submitted before the number `before`, if it
    /// is pending on its counter and `wanted`.
    ///
    /// Returns `None` if there is none with this id; else what was found, and the entry if it was
    /// taken out.
    pub(crate) fn take_back(
        &self,
        kind: Kind,
        id: usize,
        before: u64,
        wanted: impl FnOnce(&Pending) -> bool,
    ) -> Option<Taken> {
        // Once for all locks.
        let interrupts = Section::begin();
        let found = self.inner.lock().table.find(id, before)?;
        let entry = found.counter.remove(kind, found.key, wanted);
        let mut inner = self.inner.lock();
        let slot = entry
            .as_ref()
            .and_then(|entry| inner.table.remove(entry.value.slot()));
        let last = !inner.table.contains(id, found.key.sequence);
        drop(inner);
        drop(interrupts);
        drop(slot);
        Some(Taken { found, entry, last })
    }

    /// Calls `visit` with everything that is pending at the time of the call, without a lock.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(Found<CounterRef>)) {
        let capacity = {
            let inner = self.inner.lock();
            if inner.table.used() == 0 {
                return;
            }
            inner.table.capacity()
        };
        for number in 0..capacity {
            let found = self.inner.lock().table.get(number);
            if let Some(found) = found {
                visit(found);
            }
        }
    }

    /// Appends what has become due on a counter, with the lock of the counter held, so that what
    /// becomes due on it later comes later.
    ///
    /// Returns the duty to drain if nobody else has it.
    pub(crate) fn append(&self, one: Batch<Pending>, other: Batch<Pending>) -> Option<Duty> {
        if one.is_empty() && other.is_empty() {
            return None;
        }
        let mut inner = self.inner.lock();
        inner.incoming.push(one, other);
        inner.batches += 1;
        let draining = mem::replace(&mut inner.draining, true);
        (!draining).then_some(Duty(()))
    }

    /// Runs what is due, until nothing is or the budget is spent; with no lock held.
    ///
    /// From any context. The caller sees to it that the domain stays open meanwhile.
    pub(crate) fn drain(self: &Arc<Self>, mut duty: Duty) {
        let mut queue = mem::replace(&mut self.inner.lock().rest, BatchQueue::new());
        let mut taken = [const { None }; FEW_TAKEN];
        let mut counters = [const { None }; FEW_TAKEN];
        let mut spent: u64 = 0;
        loop {
            if queue.is_empty() {
                // Once for the lock here and those of the counters that are changed.
                let mut interrupts = Section::begin();
                let mut inner = self.inner.lock();
                let few = inner.batches <= FEW_BATCHES;
                // Nobody else takes, so that order and number cannot change.
                inner.batches = 0;
                if few {
                    queue = inner.incoming.take();
                } else {
                    let mut incoming = mem::replace(&mut inner.incoming, BatchStack::new());
                    drop(inner);
                    interrupts.end();
                    queue = incoming.take();
                    interrupts.resume();
                    inner = self.inner.lock();
                }
                fill(&mut taken, || queue.pop());
                if is_empty(&taken) {
                    inner.draining = false;
                    drop(inner);
                    drop(interrupts);
                    abi_trace::drain(spent, false);
                    return;
                }
                inner.remove(&taken, &mut counters);
                drop(inner);
                spent += run(&mut taken, &mut counters, interrupts);
            } else {
                spent += self.run_many(&mut queue, BUDGET.saturating_sub(spent));
            }
            if spent < BUDGET {
                continue;
            }
            match self.leave(queue, duty) {
                None => {
                    abi_trace::drain(spent, true);
                    return;
                }
                Some((kept, kept_duty)) => {
                    queue = kept;
                    duty = kept_duty;
                    spent = 0;
                }
            }
        }
    }

    /// Runs what is in a queue until it is empty or the budget is spent; returns what was spent.
    // Apart from what runs a single entry, which does not need as much of the stack.
    #[inline(never)]
    fn run_many(&self, queue: &mut BatchQueue<Pending>, budget: u64) -> u64 {
        let mut taken = [const { None }; TAKEN];
        let mut counters = [const { None }; TAKEN];
        let mut spent: u64 = 0;
        loop {
            // Before the table is looked at, so that what is far away is fetched together.
            fill(&mut taken, || queue.pop());
            if is_empty(&taken) {
                return spent;
            }
            self.inner.lock().remove(&taken, &mut counters);
            // Most of them need no lock.
            spent += run(&mut taken, &mut counters, Section::none());
            if spent >= budget {
                return spent;
            }
        }
    }

    /// Leaves the rest to the work queue; returns it if that takes nothing any more.
    fn leave(
        self: &Arc<Self>,
        queue: BatchQueue<Pending>,
        duty: Duty,
    ) -> Option<(BatchQueue<Pending>, Duty)> {
        let empty = mem::replace(&mut self.inner.lock().rest, queue);
        drop(empty);
        if self.work_queue.queue::<_, 0>(self.clone()) {
            return None;
        }
        let queue = mem::replace(&mut self.inner.lock().rest, BatchQueue::new());
        Some((queue, duty))
    }
}

impl Inner {
    /// Frees the slots of entries that are about to run, and takes the counters that they waited
    /// for.
    fn remove(&mut self, taken: &[TakenEntry], counters: &mut [Option<CounterRef>]) {
        for (entry, counter) in taken.iter().zip(counters) {
            let Some(entry) = entry else {
                break;
            };
            *counter = self.table.remove(entry.value.slot());
        }
    }
}

/// Runs entries, and leaves nothing behind; returns what that cost.
fn run(
    taken: &mut [TakenEntry],
    counters: &mut [Option<CounterRef>],
    mut interrupts: Section,
) -> u64 {
    let mut spent = 0;
    for (place, counter) in taken.iter_mut().zip(counters.iter()) {
        let Some(entry) = place.take() else {
            break;
        };
        if let Some(counter) = counter {
            abi_trace::fire(counter.id(), entry.key());
        }
        spent += if entry.value.is_transfer() {
            // It may take long.
            interrupts.end();
            TRANSFER_COST
        } else {
            1
        };
        Entry::into_value(entry).run();
    }
    drop(interrupts);
    // May be the last reference to one that was closed meanwhile.
    counters.fill_with(|| None);
    spent
}

/// Takes entries, as many as there is room for.
fn fill(taken: &mut [TakenEntry], mut next: impl FnMut() -> TakenEntry) {
    for place in taken {
        let Some(entry) = next() else {
            break;
        };
        place.get_or_insert(entry);
    }
}

/// Returns whether nothing was taken.
fn is_empty(taken: &[TakenEntry]) -> bool {
    taken.first().is_none_or(Option::is_none)
}

impl WorkItem for RunList {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        // Who left the rest left the duty.
        this.drain(Duty(()));
    }
}
