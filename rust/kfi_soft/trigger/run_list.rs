// SPDX-License-Identifier: GPL-2.0

//! The operations that are due in a domain and yet to be run: counters append to it, and one thread
//! at a time drains it.
//!
//! An operation that runs may change counters, and so make others due. These are only appended, by
//! the thread that changes the counter, and run later by the one that drains: there is no
//! recursion, cascades run breadth first (R-DWQ-30). They end, as every entry runs once (R-DWQ-31).
//!
//! The lock protects the table of what is pending too: an entry frees its slot right before it runs,
//! with the lock that the drainer takes anyway.
//!
//! # Nobody waits for a thread that does not run
//!
//! While one drains the others only append, so that all of the domain depends on the one that
//! drains. `draining` is set only while a thread drains with preemption disabled, or the work item
//! is queued or running. A thread of whatever priority that has appended drains from before it could
//! be preempted until nothing is due or its budget is spent, and leaves the rest to the work queue.
//! The work queue is not bound to a CPU, and its threads have the highest priority that ordinary ones
//! have. On a realtime kernel, where locks may sleep, it does all of the work.
//!
//! The budgets ([`DrainBudget`]) bound how long that is: a few operations where interrupts are disabled, and hardly
//! any data; some more otherwise. All that may be long - batches that have piled up are put in order
//! one by one - is left to the work queue, which may be preempted.
//!
//! # Nothing is referred to that has been given up
//!
//! A thread that has taken back or given up pending operations waits until those that had fired
//! before have run ([`RunList::wait_for_fired`]): batches are numbered when they are appended, and
//! as they leave in that order, one number says how many have run. It sleeps, so it is not called
//! by anything that a drainer runs: operations wake and append, and handlers of consumers run in
//! work queues of their own. It drains by itself if no thread does, so that it does not wait for a
//! thread that has appended and is about to drain.
//!
//! # Nothing is freed under the drainer
//!
//! The effects of an operation may be seen, and a thread that has seen them may close the counters,
//! the domain and the fabric, while the drainer is still on its way out. It touches nothing of an
//! entry once that has run, but it does touch this list, which [`RunList::drain`] is given by
//! reference. That outlives it:
//!
//! - A consumer that changes a counter, and an entry that does so (`HoldOnce::use_last`), are in an
//!   RCU read-side critical section, and so is the completion of deferred work. The memory of the
//!   counter stays until that has ended, and it keeps the domain's, which keeps this list.
//! - The counters of an endpoint are closed after the endpoint, which waits for its operations.
//! - [`RunList::submit`] has a reference of the counter until it returns.
//! - The work item has a reference of the list, and closing the domain waits for it.
//!
//! Nothing is due in a domain that is closed: what was due has run, and nothing is pending without
//! an open counter. So a thread that comes late finds the list empty.

#![forbid(unsafe_code)]

use core::mem;
use kernel::{
    alloc::Flags,
    prelude::*,
    static_lock_class,
    sync::{
        new_mutex,
        new_spinlock_irq,
        Arc,
        Mutex,
        SpinLockIrq, //
    }, //
};

use crate::{
    abi_trace,
    counter::{
        Counter,
        Enqueued, //
    },
    grown::Grown,
    kfi::{
        context::Context,
        fid::Fid,
        linux::{
            interrupts::{
                IrqGuard,
                NoPreemption, //
            },
            random::random_u64,
            task::cond_resched,
            wait_queue::WaitQueue,
            work_queue::{
                new_work,
                Work,
                WorkItem,
                WorkQueue, //
            }, //
        }, //
    },
    trigger::{
        drain_budget::DrainBudget,
        pending::{
            Pending,
            PendingKind,
            Runner, //
        },
        pending_table::{
            Entered,
            FoundWork,
            PendingName,
            PendingOwner,
            PendingTable, //
        }, //
        threshold::{
            Batch,
            BatchQueue,
            BatchStack,
            ThresholdEntry, //
        },
    },
};

/// Entries that are taken at once.
const TAKEN: usize = 64;

/// Entries that are looked for at once in the table.
const FEW: usize = 16;

/// Batches that are put in order with the lock held.
const FEW_BATCHES: usize = 64;

/// A counter, as what is pending refers to it.
type CounterRef = Arc<Fid<Counter>>;

/// An entry that is about to run, or none.
type TakenEntry = Option<KBox<ThresholdEntry<Pending>>>;

/// A data transfer that begins at this moment.
struct Beginning {
    owner: PendingOwner,
    context: Context,
    /// It is to be cancelled when it has begun.
    cancelled: bool,
}

/// The part of a run list that its lock protects.
struct Inner {
    /// Operations that have become due since the drainer looked.
    incoming: BatchStack<Pending>,
    /// How many batches that is.
    batches: usize,
    /// A thread drains, or the work queue is about to.
    draining: bool,
    /// Operations that a drainer has left to the work queue.
    rest: BatchQueue<Pending>,
    /// How many batches were ever appended.
    appended: u64,
    /// How many of these the drainer has taken.
    taken: u64,
    /// How many of these have run.
    drained: u64,
    /// How many threads wait for that.
    waiting: usize,
    /// The operation that is neither in the table any more nor with its endpoint yet.
    beginning: Option<Beginning>,
    /// The operations that are pending, or due and yet to be run.
    table: PendingTable<CounterRef>,
}

/// The operations that are due in a domain.
#[pin_data]
pub(crate) struct RunList {
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    work: Work<RunList>,
    work_queue: Arc<WorkQueue>,
    /// How much may be pending.
    limit: usize,
    /// Held by a thread that takes deferred work back, until that is dropped.
    #[pin]
    taking_back: Mutex<()>,
    /// Threads that wait until something has run.
    #[pin]
    past: WaitQueue,
}

/// Obliges its holder to drain a run list, once no lock is held.
///
/// The thread that holds it is not preempted until then, so that nothing depends on a thread that
/// does not run.
#[must_use = "nobody else may drain"]
pub(crate) struct DrainToken {
    _preemption: NoPreemption,
}

/// How far a drainer has come.
enum Progress {
    /// Nothing is due any more, or another thread drains.
    Done,
    /// Its budget is spent.
    Spent,
}

/// The result of [`RunList::take_back`].
pub(crate) struct TakenBack {
    /// There may be others that have that id.
    pub(crate) others: bool,
    /// All that had fired in the domain had run then, so that there is nothing to wait for.
    pub(crate) all_have_run: bool,
}

/// The result of [`RunList::cancel`].
pub(crate) enum Cancelled {
    /// It was pending and is the caller's.
    Taken(FoundWork<CounterRef>, KBox<ThresholdEntry<Pending>>),
    /// It has fired, and will be cancelled instead of being begun, or when it has begun.
    Fired,
    /// There is none.
    NotFound,
}

impl RunList {
    /// An empty list for up to `limit` entries; what is left over runs on `work_queue`.
    pub(crate) fn new(work_queue: Arc<WorkQueue>, limit: usize) -> Result<Arc<Self>> {
        let inner = Inner {
            incoming: BatchStack::new(),
            batches: 0,
            draining: false,
            rest: BatchQueue::new(),
            appended: 0,
            taken: 0,
            drained: 0,
            waiting: 0,
            beginning: None,
            table: PendingTable::new(limit, random_u64())?,
        };
        Arc::pin_init(
            pin_init!(Self {
                inner <- new_spinlock_irq!(inner, "kfi_soft::RunList::inner"),
                work <- new_work!("kfi_soft::RunList::work"),
                work_queue,
                limit,
                taking_back <- new_mutex!((), "kfi_soft::RunList::taking_back"),
                past <- WaitQueue::new(c"kfi_soft::RunList::past", static_lock_class!()),
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
        kind: PendingKind,
        mut entry: KBox<ThresholdEntry<Pending>>,
        id: usize,
        threshold: u64,
        flags: Flags,
    ) -> Result {
        // Keeps the list too, when what is due has been seen, and everything was closed: see the top
        // of this file.
        let reference = counter.arc();
        let entered = Entered {
            id,
            owner: entry.value.owner(),
            kind,
            counter: &reference,
            threshold,
        };
        loop {
            let note = || self.inner.lock().table.insert(&entered);
            let (after, enqueued) = Counter::enqueue(counter, kind, entry, note);
            if let Enqueued::Pending(key) = &enqueued {
                abi_trace::submit(counter.id(), *key, kind);
            }
            after.finish(self);
            entry = match enqueued {
                Enqueued::Pending(_) => return Ok(()),
                Enqueued::Refused(entry, error) => {
                    drop(entry);
                    return Err(error);
                }
                Enqueued::NoSlot(entry) => entry,
            };
            let needs_page = self.inner.lock().table.needs_page();
            let chunk = PendingTable::new_chunk(needs_page, flags)?;
            // The rest is dropped after the lock was released.
            let _left = self.inner.lock().table.grow(chunk);
        }
    }

    /// Frees what the table of a closed domain occupies; may sleep, as freeing much memory does.
    /// The last reference may be dropped where nothing may.
    pub(crate) fn release(&self) {
        let memory = {
            let mut inner = self.inner.lock();
            (inner.table.take_memory(), inner.table.take_owners())
        };
        drop(memory);
    }

    /// Gives an endpoint a number; may sleep.
    pub(crate) fn add_owner(&self) -> Result<PendingOwner> {
        loop {
            let len = {
                let mut inner = self.inner.lock();
                match inner.table.owners_wanted() {
                    None => return inner.table.add_owner().ok_or(ENOMEM),
                    Some(len) => len,
                }
            };
            let more = Grown::allocate(len)?;
            // Another thread may have been faster.
            let left = self.inner.lock().table.grow_owners(more);
            drop(left);
        }
    }

    /// Gives up everything of an endpoint, to which nothing is added any more, silently
    /// (R-CLOSE-4), and takes its number back. May sleep.
    ///
    /// Waits until what has fired has begun: see [`Self::wait_for_fired`].
    pub(crate) fn remove_owner(self: &Arc<Self>, owner: PendingOwner) {
        loop {
            let mut found = [const { None }; FEW];
            {
                let mut inner = self.inner.lock();
                for place in &mut found {
                    *place = inner.table.take_owned(owner);
                }
            }
            if found.first().is_none_or(Option::is_none) {
                break;
            }
            for found in found.into_iter().flatten() {
                // Else it has fired, or another thread is just taking it back.
                if let Some(entry) = found.counter.remove(found.kind, found.key) {
                    self.forget(&entry);
                }
            }
        }
        drop(self.taking_back.lock());
        self.wait_for_fired();
        self.inner.lock().table.remove_owner(owner);
    }

    /// Frees the slot of an entry that does not run.
    pub(crate) fn forget(&self, entry: &ThresholdEntry<Pending>) {
        let removed = self.inner.lock().table.remove(entry.number);
        drop(removed);
    }

    /// Frees the slots of entries that do not run, and drops them; returns how many they were.
    pub(crate) fn forget_all(&self, mut entries: Batch<Pending>) -> u64 {
        let mut count = 0;
        loop {
            let mut taken = [const { None }; TAKEN];
            let mut counters = [const { None }; TAKEN];
            for place in &mut taken {
                *place = entries.pop();
            }
            let some = taken.iter().flatten().count() as u64;
            if some == 0 {
                return count;
            }
            self.inner.lock().remove(&taken, &mut counters);
            count += some;
        }
    }

    /// Takes out the last deferred work with an id that is pending, and calls `told` with where it
    /// stood. `None` if there was none.
    ///
    /// Operations that have fired are passed over, and not looked at again. May sleep.
    pub(crate) fn take_back(
        &self,
        id: usize,
        told: impl FnOnce(&FoundWork<CounterRef>),
    ) -> Option<TakenBack> {
        let name = PendingName {
            id,
            owner: PendingOwner::NOBODY,
            kind: PendingKind::Deferred,
        };
        // Dropped after what is taken out.
        let _taking_back = self.taking_back.lock();
        loop {
            // Once for all locks.
            let interrupts = IrqGuard::begin();
            let found = self.inner.lock().table.find(name)?;
            let entry = found.counter.remove(PendingKind::Deferred, found.key);
            let mut inner = self.inner.lock();
            let removed = match &entry {
                Some(entry) => inner.table.remove(entry.number),
                None => {
                    inner.table.pass_over(&found);
                    None
                }
            };
            let all_have_run = inner.drained == inner.appended;
            drop(inner);
            drop(interrupts);
            if let Some(removed) = removed {
                told(&found);
                return Some(TakenBack {
                    others: removed.others,
                    all_have_run,
                });
            }
        }
    }

    /// Cancels the last triggered operation of an endpoint with a context.
    ///
    /// One that has fired and is yet to begin is marked, and then completed instead of being begun.
    /// From any context.
    pub(crate) fn cancel(&self, owner: PendingOwner, context: Context) -> Cancelled {
        let name = PendingName {
            id: context.as_number(),
            owner,
            kind: PendingKind::Triggered,
        };
        loop {
            let found = {
                let mut inner = self.inner.lock();
                match inner.table.find(name) {
                    Some(found) => found,
                    None => {
                        let beginning = inner.beginning.as_mut().filter(|beginning| {
                            beginning.owner == owner
                                && beginning.context.as_number() == context.as_number()
                        });
                        return match beginning {
                            Some(beginning) if !beginning.cancelled => {
                                beginning.cancelled = true;
                                Cancelled::Fired
                            }
                            _ => Cancelled::NotFound,
                        };
                    }
                }
            };
            if let Some(entry) = found.counter.remove(PendingKind::Triggered, found.key) {
                self.forget(&entry);
                return Cancelled::Taken(found, entry);
            }
            // It has fired: either it is marked before the drainer takes it out of the table, or
            // the next round finds it beginning, or with its endpoint.
            if self.inner.lock().table.cancel(&found) {
                return Cancelled::Fired;
            }
        }
    }

    /// Returns a number that is higher than that of anything that was submitted, and not of what will
    /// be.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.inner.lock().table.next_sequence()
    }

    /// Returns how much may be pending.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes out all deferred work that is pending; returns how much it was. May sleep.
    pub(crate) fn flush(&self) -> u64 {
        let mut flushed = 0;
        let mut at = Some(0);
        while let Some(begin) = at {
            let found;
            (at, found) = self.inner.lock().table.next_deferred(begin);
            if let Some(found) = found {
                // All that waits for that counter.
                flushed += self.flush_counter(&found.counter);
            }
            cond_resched();
        }
        flushed
    }

    /// Takes out the deferred work that waits for a counter; returns how much it was. May sleep.
    pub(crate) fn flush_counter(&self, counter: &Counter) -> u64 {
        let _taking_back = self.taking_back.lock();
        let (entries, hold) = counter.detach_all(PendingKind::Deferred);
        let flushed = self.forget_all(entries);
        drop(hold);
        flushed
    }

    /// Waits until everything has run that had fired when this was called, so that nothing of it is
    /// referred to any more. May sleep; not to be called by what a drainer runs.
    pub(crate) fn wait_for_fired(self: &Arc<Self>) {
        // One number says how many have run, and so whether there is anything to wait for.
        {
            let inner = self.inner.lock();
            if inner.drained == inner.appended {
                return;
            }
        }
        // A thread that has appended may be about to drain.
        self.drain();
        let ticket = {
            let mut inner = self.inner.lock();
            if inner.drained == inner.appended {
                return;
            }
            inner.waiting += 1;
            inner.appended
        };
        self.past.wait_uninterruptible(|| {
            // Batches are counted in 64 bits, so that a larger number is a later one.
            self.inner.lock().drained >= ticket
        });
        self.inner.lock().waiting -= 1;
    }

    /// Appends what has become due on a counter, with the lock of the counter held, so that what
    /// becomes due on it later comes later.
    ///
    /// Returns the token of the drainer if nobody drains.
    pub(crate) fn append(&self, one: Batch<Pending>, other: Batch<Pending>) -> Option<DrainToken> {
        if one.is_empty() && other.is_empty() {
            return None;
        }
        let mut inner = self.inner.lock();
        inner.incoming.push(one, other);
        inner.batches += 1;
        inner.appended = inner.appended.wrapping_add(1);
        (!inner.draining).then(|| DrainToken {
            _preemption: NoPreemption::begin(),
        })
    }

    /// As [`Self::drain`], for the holder of the token.
    pub(crate) fn drain_for(self: &Arc<Self>, drain_token: DrainToken) {
        self.drain();
        drop(drain_token);
    }

    /// Runs what is due, unless another thread does, until nothing is or the budget is spent; with
    /// no lock held.
    ///
    /// From any context. For the duties of the caller, see the top of this file.
    pub(crate) fn drain(self: &Arc<Self>) {
        // On a realtime kernel, a thread that has claimed the list could be preempted. If the item is
        // queued already it takes all that is there; once the queue is destroyed nothing is due.
        if cfg!(CONFIG_PREEMPT_RT) {
            self.work_queue.queue::<_, 0>(self.clone());
            return;
        }
        let _preemption = NoPreemption::begin();
        let mut budget = DrainBudget::of_caller();
        let mut queue = BatchQueue::new();
        let mut progress = self.advance(&mut queue, &mut budget, true, false);
        while matches!(progress, Progress::Spent) {
            match self.leave(queue, budget.spent()) {
                None => return,
                Some(kept) => queue = kept,
            }
            budget = budget.renewed();
            progress = self.advance(&mut queue, &mut budget, false, false);
        }
    }

    /// Runs what is in a queue and what comes after it.
    ///
    /// If it `begins`, the queue is empty and nothing may be due, or another thread may drain. Work that
    /// may be long is left to a `patient` caller.
    fn advance(
        &self,
        queue: &mut BatchQueue<Pending>,
        budget: &mut DrainBudget,
        mut begins: bool,
        patient: bool,
    ) -> Progress {
        loop {
            if !queue.is_empty() {
                self.run_many(queue, budget);
                if budget.is_spent() {
                    return Progress::Spent;
                }
            }
            // Once for the lock here and those of the counters that are changed.
            let mut interrupts = IrqGuard::begin();
            let mut inner = self.inner.lock();
            if begins {
                if inner.draining || inner.batches == 0 {
                    return Progress::Done;
                }
                inner.draining = true;
                begins = false;
            }
            // Everything that was taken has run.
            inner.drained = inner.taken;
            let wake = inner.waiting != 0;
            if inner.batches == 0 {
                inner.draining = false;
                drop(inner);
                interrupts.end();
                if wake {
                    self.past.wake_up_all();
                }
                abi_trace::drain(budget.spent(), false);
                return Progress::Done;
            }
            let few = inner.batches <= FEW_BATCHES;
            if budget.is_spent() || !(few || patient) {
                drop(inner);
                interrupts.end();
                if wake {
                    self.past.wake_up_all();
                }
                return Progress::Spent;
            }
            // No other thread takes, so that order and number cannot change.
            inner.batches = 0;
            inner.taken = inner.appended;
            if wake || !few {
                let mut incoming = mem::replace(&mut inner.incoming, BatchStack::new());
                drop(inner);
                interrupts.end();
                if wake {
                    self.past.wake_up_all();
                }
                *queue = incoming.take();
                continue;
            }
            *queue = inner.incoming.take();
            // Most often there is one.
            match queue.pop() {
                None => {}
                Some(entry) if entry.value.is_transfer() => queue.put_back(entry),
                Some(entry) => {
                    let removed = inner.table.remove(entry.number);
                    drop(inner);
                    if let Some(removed) = &removed {
                        abi_trace::fire(removed.counter.id(), entry.key());
                    }
                    budget.spend(1);
                    ThresholdEntry::into_value(entry).run(&mut interrupts);
                    drop(interrupts);
                    // May be the last reference to one that was closed meanwhile.
                    drop(removed);
                    if budget.is_spent() {
                        return Progress::Spent;
                    }
                }
            }
        }
    }

    /// Runs what is in a queue until it is empty or the budget is spent.
    // Apart from what runs a single entry, which does not need as much of the stack.
    #[inline(never)]
    fn run_many(&self, queue: &mut BatchQueue<Pending>, budget: &mut DrainBudget) {
        let mut taken = [const { None }; TAKEN];
        let mut counters = [const { None }; TAKEN];
        while !budget.is_spent() {
            // Before the table is looked at, so that what is far away is fetched together.
            let mut count = 0;
            let mut transfer = None;
            for place in taken.iter_mut().take(budget.operations() as usize) {
                match queue.pop() {
                    Some(entry) if entry.value.is_transfer() => {
                        transfer = Some(entry);
                        break;
                    }
                    Some(entry) => *place = Some(entry),
                    None => break,
                }
                count += 1;
            }
            if count != 0 {
                self.inner.lock().remove(&taken, &mut counters);
                budget.spend(count);
                run(&mut taken, &mut counters);
            }
            if let Some(entry) = transfer {
                if !budget.spend_transfer(entry.value.bytes()) {
                    queue.put_back(entry);
                    return;
                }
                self.begin(entry);
            } else if count == 0 {
                return;
            }
        }
    }

    /// Begins a data transfer, or cancels it if that was asked for after it had fired.
    fn begin(&self, entry: KBox<ThresholdEntry<Pending>>) {
        let key = entry.key();
        let slot = entry.number;
        let Some(transfer) = ThresholdEntry::into_value(entry).into_transfer() else {
            return;
        };
        let removed = {
            let mut inner = self.inner.lock();
            let removed = inner.table.remove(slot);
            // A thread that looks for it finds it here until it is with its endpoint.
            if !removed.as_ref().is_some_and(|removed| removed.cancelled) {
                inner.beginning = Some(Beginning {
                    owner: transfer.owner(),
                    context: transfer.context(),
                    cancelled: false,
                });
            }
            removed
        };
        if let Some(removed) = &removed {
            abi_trace::fire(removed.counter.id(), key);
        }
        if removed.as_ref().is_some_and(|removed| removed.cancelled) {
            transfer.cancel();
        } else {
            transfer.begin(&|| {
                let beginning = self.inner.lock().beginning.take();
                beginning.is_some_and(|beginning| beginning.cancelled)
            });
        }
        drop(removed);
    }

    /// Leaves the rest to the work queue, when so much was spent; returns it if that takes nothing any
    /// more.
    fn leave(
        self: &Arc<Self>,
        queue: BatchQueue<Pending>,
        spent: u64,
    ) -> Option<BatchQueue<Pending>> {
        abi_trace::drain(spent, true);
        let empty = mem::replace(&mut self.inner.lock().rest, queue);
        drop(empty);
        if self.work_queue.queue::<_, 0>(self.clone()) {
            return None;
        }
        Some(mem::replace(&mut self.inner.lock().rest, BatchQueue::new()))
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
            let removed = self.table.remove(entry.number);
            *counter = removed.map(|removed| removed.counter);
        }
    }
}

/// Runs counter operations, and leaves nothing behind.
fn run(taken: &mut [TakenEntry], counters: &mut [Option<CounterRef>]) {
    let mut runner = Runner::new();
    for (place, counter) in taken.iter_mut().zip(counters.iter()) {
        let Some(entry) = place.take() else {
            break;
        };
        if let Some(counter) = counter {
            abi_trace::fire(counter.id(), entry.key());
        }
        runner.run(ThresholdEntry::into_value(entry));
    }
    runner.end();
    // May be the last references to some that were closed meanwhile.
    counters.fill_with(|| None);
}

impl WorkItem for RunList {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        // The drainer that left the rest left `draining` set. Where the kernel is a realtime one
        // nobody has.
        let mut begins = cfg!(CONFIG_PREEMPT_RT);
        let mut queue = mem::replace(&mut this.inner.lock().rest, BatchQueue::new());
        let mut budget = DrainBudget::THREAD;
        loop {
            match this.advance(&mut queue, &mut budget, begins, true) {
                Progress::Done => return,
                Progress::Spent => cond_resched(),
            }
            budget = budget.renewed();
            begins = false;
        }
    }
}
