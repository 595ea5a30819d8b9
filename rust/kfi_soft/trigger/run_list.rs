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
//! any data; not many more where the provider completes an operation, as it may complete many in a row; some more
//! otherwise. The rest is left to the work queue, which may be preempted. It stays
//! where it is, in the queue of what is due ([`DueQueue`]).
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

use kernel::{
    alloc::Flags,
    prelude::*,
    static_lock_class,
    sync::{
        new_mutex,
        new_spinlock_irq,
        Arc,
        Mutex,
        SpinLockIrq,
        SpinLockIrqGuard, //
    }, //
};

use crate::{
    abi_trace,
    counter::{
        ChangedBy,
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
            waiters::WaitLock,
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
        due_queue::DueQueue,
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
            PendingTable,
            Removed, //
        }, //
        threshold::{
            Batch,
            Block,
            Emptied,
            Entry,
            Tree, //
        },
    },
};

/// Entries that are taken at once.
const TAKEN: usize = 32;

/// Entries that are looked for at once in the table.
const FEW: usize = 16;

/// Threads that a drainer wakes at a time.
const FEW_WOKEN: usize = 4;

/// The number of batches that nobody waits for.
const NOBODY: u64 = u64::MAX;

/// The work item that wakes threads.
const WAKE: u64 = 1;

/// A counter, as what is pending refers to it.
type CounterRef = Arc<Fid<Counter>>;

/// An operation that was taken out of its slot.
type Taken = Removed<Pending, CounterRef>;

kernel::static_assert!(PendingTable::<Pending, CounterRef>::PIECE_SIZE <= 4096);

/// A data transfer that begins at this moment.
struct Beginning {
    owner: PendingOwner,
    context: Context,
    /// It is to be cancelled when it has begun.
    cancelled: bool,
}

/// The part of a run list that its lock protects.
struct Inner {
    /// What is due.
    due: DueQueue,
    /// A thread drains, or the work queue is about to.
    draining: bool,
    /// How many batches were ever appended.
    appended: u64,
    /// How many of these have run.
    drained: u64,
    /// How many have to have run before a thread is woken that waits for that; the highest number if none does.
    /// Written under the lock of `past`, too.
    wake_at: u64,
    /// The operation that is neither in the table any more nor with its endpoint yet.
    beginning: Option<Beginning>,
    /// The operations that are pending, or due and yet to be run.
    table: PendingTable<Pending, CounterRef>,
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
    /// Threads that wait until so many batches have run. Taken before the lock.
    #[pin]
    past: WaitLock<()>,
    /// Wakes those of them for which a drainer has no time.
    #[pin]
    wake_work: Work<RunList, WAKE>,
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
    Taken(Taken),
    /// It has fired, and is cancelled instead of being begun, or when it has begun.
    Fired,
    /// There is none.
    NotFound,
}

impl RunList {
    /// An empty list for up to `limit` entries; what is left over runs on `work_queue`.
    pub(crate) fn new(work_queue: Arc<WorkQueue>, limit: usize) -> Result<Arc<Self>> {
        let inner = Inner {
            due: DueQueue::new(),
            draining: false,
            appended: 0,
            drained: 0,
            wake_at: NOBODY,
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
                past <- WaitLock::new((), c"kfi_soft::RunList::past", static_lock_class!()),
                wake_work <- new_work!("kfi_soft::RunList::wake_work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes an operation pending on a counter: notes it under `id` and queues it there.
    ///
    /// From any context that `flags` suit. `ENOSPC` if too much is pending (R-DWQ-24), `EINVAL` if
    /// the counter is closing, `ENOMEM`. Runs what is due.
    pub(crate) fn submit(
        self: &Arc<Self>,
        counter: &Fid<Counter>,
        kind: PendingKind,
        pending: Pending,
        id: usize,
        threshold: u64,
        flags: Flags,
    ) -> Result {
        // Keeps the list too, when what is due has been seen, and everything was closed: see the top
        // of this file.
        let reference = counter.arc();
        let owner = pending.owner();
        let entered = Entered {
            id,
            owner,
            kind,
            counter: &reference,
            threshold,
        };
        let mut pending = Some(pending);
        let mut blocks = Emptied::new();
        loop {
            match self.try_submit(counter, &entered, &mut pending, &mut blocks) {
                Enqueued::Pending(_) => return Ok(()),
                Enqueued::Refused(error) => return Err(error),
                Enqueued::NoBlock(wanted) => {
                    for _ in 0..wanted {
                        match Block::new(flags) {
                            Ok(block) => blocks.push(block),
                            // One is enough for now.
                            Err(_) if !blocks.is_empty() => break,
                            Err(error) => return Err(error),
                        }
                    }
                }
                Enqueued::NoSlot => {
                    let wanted = self.inner.lock().table.wanted(owner);
                    let chunk = PendingTable::new_chunk(&wanted, flags)?;
                    // The rest is dropped after the lock was released.
                    let _left = self.inner.lock().table.grow(chunk);
                }
            }
        }
    }

    /// As [`Self::submit`], with the memory that there is and `blocks`. Takes the operation if it succeeds.
    // Apart from the loop, before which the compiler would do all that is the same each time.
    #[inline(never)]
    fn try_submit(
        self: &Arc<Self>,
        counter: &Fid<Counter>,
        entered: &Entered<'_, CounterRef>,
        pending: &mut Option<Pending>,
        blocks: &mut Emptied,
    ) -> Enqueued {
        let note = || self.inner.lock().table.insert(entered, pending);
        let (after, enqueued) = Counter::enqueue(counter, entered.kind, blocks, note);
        if let Enqueued::Pending(key) = &enqueued {
            abi_trace::submit(counter.id(), *key, entered.kind);
        }
        after.finish(self, ChangedBy::Application);
        enqueued
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
                if found.counter.remove(found.kind, found.key) {
                    drop(self.take(found.slot));
                }
            }
            cond_resched();
        }
        drop(self.taking_back.lock());
        self.wait_for_fired();
        self.inner.lock().table.remove_owner(owner);
    }

    /// Takes an operation that does not run out of its slot.
    fn take(&self, number: u32) -> Option<Taken> {
        self.inner.lock().table.remove(number)
    }

    /// Calls `show` with an operation.
    pub(crate) fn peek<R>(&self, number: u32, show: impl FnOnce(&Pending) -> R) -> Option<R> {
        Some(show(self.inner.lock().table.value(number)?))
    }

    /// Frees the slots of entries that do not run, and drops the operations; returns how many they were. May
    /// sleep.
    pub(crate) fn forget_all(&self, mut entries: Batch) -> u64 {
        let mut count = 0;
        while !entries.is_empty() {
            let mut taken = [const { None }; TAKEN];
            let mut emptied = Emptied::new();
            let mut inner = self.inner.lock();
            for number in entries.near().take(TAKEN) {
                inner.table.prefetch(number);
            }
            for place in &mut taken {
                let Some((entry, block)) = entries.pop() else {
                    break;
                };
                emptied.push_some(block);
                *place = inner.table.remove(entry.number);
                count += 1;
            }
            drop(inner);
            drop((taken, emptied));
            cond_resched();
        }
        count
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
            let found = interrupts.lock(&self.inner).table.find(name)?;
            let was_pending = found.counter.remove(PendingKind::Deferred, found.key);
            let mut inner = interrupts.lock(&self.inner);
            let removed = if was_pending {
                inner.table.remove(found.slot)
            } else {
                inner.table.pass_over(&found);
                None
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
            cond_resched();
        }
    }

    /// Cancels the last triggered operation of an endpoint with a context; or the operation that is just beginning,
    /// which may be a deferred one.
    ///
    /// One that has fired and is yet to begin is marked, and then completed instead of being begun.
    /// From any context.
    pub(crate) fn cancel(&self, owner: PendingOwner, context: Context) -> Cancelled {
        let name = PendingName {
            id: context.as_number(),
            owner,
            kind: PendingKind::Triggered,
        };
        let found = {
            let mut inner = self.inner.lock();
            match inner.table.find(name) {
                // From here on it is this thread's to cancel: others find another one, and a drainer that takes
                // it out finds that it is cancelled.
                Some(found) => {
                    inner.table.cancel(&found);
                    found
                }
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
        if found.counter.remove(PendingKind::Triggered, found.key) {
            if let Some(taken) = self.take(found.slot) {
                return Cancelled::Taken(taken);
            }
        }
        Cancelled::Fired
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
        // What other threads have taken out is not there any more, but they may still refer to it.
        drop(self.taking_back.lock());
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
        self.drain(ChangedBy::Application);
        // Batches are counted in 64 bits, so that a larger number is a later one.
        let ticket = self.inner.lock().appended;
        self.past.sleep_uninterruptible(ticket, |_| {
            let mut inner = self.inner.lock();
            if inner.drained >= ticket {
                return false;
            }
            inner.wake_at = inner.wake_at.min(ticket);
            true
        });
    }

    /// Wakes a few of those that wait for what has run, so many batches, and leaves the others to the work queue.
    /// From any context.
    fn wake_few(self: &Arc<Self>, drained: u64) {
        // Nobody else wakes those that were taken out.
        let _preemption = NoPreemption::begin();
        let due = {
            let mut past = self.past.lock();
            let due = past.detach_due(drained, FEW_WOKEN);
            let next = past.lend().first_threshold();
            self.inner.lock().wake_at = next.unwrap_or(NOBODY);
            due
        };
        if due.leaves_others() {
            self.work_queue.queue::<_, WAKE>(self.clone());
        }
        drop(due);
    }

    /// Appends what has become due on a counter, with the lock of the counter held, so that what
    /// becomes due on it later comes later: see [`DueQueue::append`].
    ///
    /// Returns the token of the drainer if nobody drains.
    pub(crate) fn append(
        &self,
        trees: [Tree; 2],
        row: impl Iterator<Item = Entry>,
    ) -> Option<DrainToken> {
        let mut inner = self.inner.lock();
        let Inner { due, table, .. } = &mut *inner;
        due.append(table, trees, row);
        inner.note_append()
    }

    /// As [`Self::append`], for a single one.
    pub(crate) fn append_single(&self, entry: Entry) -> Option<DrainToken> {
        let mut inner = self.inner.lock();
        let Inner { due, table, .. } = &mut *inner;
        due.append_single(table, entry);
        inner.note_append()
    }

    /// As [`Self::drain`], for the holder of the token.
    pub(crate) fn drain_for(self: &Arc<Self>, drain_token: DrainToken, origin: ChangedBy) {
        self.drain(origin);
        drop(drain_token);
    }

    /// Runs what is due, unless another thread does, until nothing is or the budget is spent; with
    /// no lock held.
    ///
    /// From any context. For the duties of the caller, see the top of this file. `origin` has made due what that is,
    /// for all that the caller knows.
    pub(crate) fn drain(self: &Arc<Self>, origin: ChangedBy) {
        // On a realtime kernel, a thread that has claimed the list could be preempted. If the item is
        // queued already it takes all that is there; once the queue is destroyed nothing is due.
        if cfg!(CONFIG_PREEMPT_RT) {
            self.work_queue.queue::<_, 0>(self.clone());
            return;
        }
        let _preemption = NoPreemption::begin();
        let mut budget = DrainBudget::of_caller(origin);
        let mut begins = true;
        while matches!(self.advance(&mut budget, begins), Progress::Spent) {
            abi_trace::drain(budget.spent(), true);
            // Unless that takes nothing any more.
            if self.work_queue.queue::<_, 0>(self.clone()) {
                return;
            }
            budget = budget.renewed();
            begins = false;
        }
    }

    /// Runs what is due.
    ///
    /// If it `begins`, nothing may be due, or another thread may drain.
    fn advance(self: &Arc<Self>, budget: &mut DrainBudget, mut begins: bool) -> Progress {
        loop {
            // Once for the lock here and those of the counters that are changed.
            let mut interrupts = IrqGuard::begin();
            let mut inner = self.inner.lock();
            if begins {
                if inner.draining || inner.due.is_empty() {
                    return Progress::Done;
                }
                inner.draining = true;
                begins = false;
            }
            let wake = inner.note_run();
            let done = inner.due.is_empty();
            if done || wake || budget.is_spent() {
                inner.draining = !done;
                let drained = inner.drained;
                drop(inner);
                interrupts.end();
                if wake {
                    self.wake_few(drained);
                    budget.charge(FEW_WOKEN as u32);
                }
                if done {
                    abi_trace::drain(budget.spent(), false);
                    return Progress::Done;
                }
                if budget.is_spent() {
                    return Progress::Spent;
                }
                continue;
            }
            // Most often there is one.
            let Some(taken) = inner.take_single() else {
                self.run_many(inner, interrupts, budget);
                continue;
            };
            drop(inner);
            abi_trace::fire(taken.counter.id(), taken.key);
            budget.spend(1);
            let Taken { value, counter, .. } = taken;
            value.run(&mut interrupts);
            drop(interrupts);
            // May be the last reference to one that was closed meanwhile.
            drop(counter);
        }
    }

    /// Runs some of what is due.
    // Apart from what runs a single one, which does not need as much of the stack.
    #[inline(never)]
    fn run_many(
        &self,
        mut inner: SpinLockIrqGuard<'_, Inner>,
        mut interrupts: IrqGuard,
        budget: &mut DrainBudget,
    ) {
        let mut taken = [const { None }; TAKEN];
        let mut emptied = Emptied::new();
        let places = taken.iter_mut().take(budget.operations() as usize);
        let count = inner.take_some(places, &mut emptied);
        let transfer = if count == 0 {
            inner.take_transfer(budget, &mut emptied)
        } else {
            None
        };
        drop(inner);
        if let Some(taken) = transfer {
            interrupts.end();
            drop(emptied);
            self.begin(taken);
            return;
        }
        budget.spend(count);
        run(&mut taken, interrupts);
        drop(emptied);
    }

    /// Begins a data transfer, or cancels it if that was asked for after it had fired.
    fn begin(&self, taken: Taken) {
        let Taken {
            value,
            key,
            counter,
            cancelled,
            ..
        } = taken;
        abi_trace::fire(counter.id(), key);
        if let Some(transfer) = value.into_transfer() {
            if cancelled {
                transfer.cancel();
            } else {
                transfer.begin(&|| {
                    let beginning = self.inner.lock().beginning.take();
                    beginning.is_some_and(|beginning| beginning.cancelled)
                });
            }
        }
        // May be the last reference to one that was closed meanwhile.
        drop(counter);
    }
}

impl Inner {
    /// Notes that a batch was appended; returns the token of the drainer if nobody drains.
    #[inline]
    fn note_append(&mut self) -> Option<DrainToken> {
        self.appended = self.appended.wrapping_add(1);
        (!self.draining).then(|| DrainToken {
            _preemption: NoPreemption::begin(),
        })
    }

    /// Notes that all that was taken has run. Returns whether threads wait that have to know.
    fn note_run(&mut self) -> bool {
        let drained = self.due.left(&self.table);
        self.drained = drained;
        drained >= self.wake_at
    }

    /// Takes a counter operation if nothing else is due.
    fn take_single(&mut self) -> Option<Taken> {
        let Self { due, table, .. } = self;
        due.take_single(table, |value| !value.is_transfer())
    }

    /// Takes counter operations up to the first data transfer, as many as there are places for; returns
    /// how many.
    fn take_some<'a>(
        &mut self,
        places: impl Iterator<Item = &'a mut Option<Taken>>,
        emptied: &mut Emptied,
    ) -> u32 {
        let Self { due, table, .. } = self;
        due.prefetch(table, TAKEN);
        due.take(table, places, emptied, |value| !value.is_transfer())
    }

    /// Takes a data transfer, which is then about to begin, if the budget allows.
    fn take_transfer(&mut self, budget: &mut DrainBudget, emptied: &mut Emptied) -> Option<Taken> {
        let Self { due, table, .. } = self;
        let mut taken = [None];
        due.take(table, &mut taken, emptied, |value| {
            budget.spend_transfer(value.bytes())
        });
        let [taken] = taken;
        let taken: Taken = taken?;
        // A thread that looks for it finds it here until it is with its endpoint.
        if let (Pending::Transfer { transfer, .. }, false) = (&taken.value, taken.cancelled) {
            self.beginning = Some(Beginning {
                owner: transfer.owner(),
                context: transfer.context(),
                cancelled: false,
            });
        }
        Some(taken)
    }
}

/// Runs counter operations, and leaves nothing behind. Interrupts stay disabled by `irqs` for the first step at the
/// most: as a rule the only one, in which all of them are made.
fn run(taken: &mut [Option<Taken>], irqs: IrqGuard) {
    let mut runner = Runner::new(irqs);
    // May be the last references to counters that were closed meanwhile: dropped with interrupts as they were.
    let mut counters = [const { None }; TAKEN];
    let mut counters_left = counters.iter_mut();
    for place in taken {
        let Some(Taken {
            value,
            key,
            counter,
            ..
        }) = place.take()
        else {
            break;
        };
        abi_trace::fire(counter.id(), key);
        if let Some(place) = counters_left.next() {
            *place = Some(counter);
        }
        runner.run(value);
    }
    runner.end();
    drop(counters);
}

impl WorkItem for RunList {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        // The drainer that left the rest left `draining` set. Where the kernel is a realtime one
        // nobody has.
        let mut begins = cfg!(CONFIG_PREEMPT_RT);
        let mut budget = DrainBudget::THREAD;
        while matches!(this.advance(&mut budget, begins), Progress::Spent) {
            cond_resched();
            budget = budget.renewed();
            begins = false;
        }
    }
}

impl WorkItem<WAKE> for RunList {
    fn work(&self) -> &Work<Self, WAKE> {
        &self.wake_work
    }

    fn run(this: Arc<Self>) {
        loop {
            let more = {
                // Nobody else wakes those that were taken out.
                let _preemption = NoPreemption::begin();
                let due = this.past.lock().detach_few(FEW_WOKEN);
                due.leaves_others()
            };
            if !more {
                break;
            }
            cond_resched();
        }
    }
}
