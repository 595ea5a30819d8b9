// SPDX-License-Identifier: GPL-2.0

//! Counters.
//!
//! To add is one atomic addition and one comparison, as long as no thread is due: the attention
//! threshold of the [`Tally`] is the lowest value that a thread waits for, or 0 from when a consumer
//! has asked for the wait queue.
//!
//! # Why no wake-up is lost
//!
//! A thread that adds changes the value and then reads the attention threshold; one that begins to
//! wait stores the threshold and then reads the value. Both have a full barrier between. So either
//! the first one sees the threshold, and looks under the lock for threads that are due, or the second
//! one sees the value, and does not sleep (`qemu-test/litmus/KFI-add-vs-submit.litmus`). A listener
//! to the wait queue has asked for it before, and reads the value after that. The error value
//! changes, and the change is counted, under the lock, where threads that begin to wait look at the
//! number of changes.
//!
//! From when a few are taken out until they are woken, the thread that does both is not preempted:
//! nobody else can wake them.
//!
//! # How many are woken
//!
//! The context of a change may be an interrupt, so it takes out a few of the threads that are due, and
//! wakes these. A work queue of the kernel wakes the others, a few at a time, so that none depends on
//! when another that was due gets a CPU.

use core::ops::Deref;
use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::kfi::{
    control::{
        Control,
        KeptOpFlags, //
    },
    fid::{
        Fid,
        Object, //
    },
    hold::Hold,
    linux::{
        interrupts::NoPreemption,
        task::cond_resched,
        timeout::Timeout,
        waiters::{
            Due,
            Locked,
            WaitGuard,
            WaitLock,
            FEW, //
        },
        work_queue::{
            new_work,
            queue_anywhere,
            Work,
            WorkItem, //
        }, //
    },
    provider::{
        counter_wait::{
            CounterWait,
            ErrorValue, //
        },
        wait_source::{
            WaitSource,
            WaitWith, //
        },
        Absent,
        Counted,
        CounterAttr,
        CounterClass,
        CounterOps,
        DomainOps,
        WaitSetClass, //
    },
    tally::Tally, //
};

/// The part of a counter that its lock protects, beside the threads that wait.
#[allow(unnameable_types, reason = "known to the counter alone")]
pub struct State {
    /// A consumer has asked for the wait queue.
    queue_shared: bool,
}

/// The state under the lock and the waiting threads, kept by a work item that wakes the later ones.
#[pin_data]
struct Waiting {
    #[pin]
    state: WaitLock<State>,
    #[pin]
    work: Work<Waiting>,
}

impl Deref for Waiting {
    type Target = WaitLock<State>;

    fn deref(&self) -> &WaitLock<State> {
        &self.state
    }
}

impl WorkItem for Waiting {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        loop {
            let preemption = NoPreemption::begin();
            let due = this.state.lock().detach_few(FEW);
            let more = due.leaves_others();
            drop(due);
            drop(preemption);
            if !more {
                return;
            }
            cond_resched();
        }
    }
}

/// A counter of a domain `D`. It is in no wait set.
#[pin_data]
pub struct Counter<D: DomainOps> {
    success: Tally,
    error: ErrorValue,
    op_flags: KeptOpFlags,
    state: Arc<Waiting>,
    #[pin]
    source: WaitSource,
    domain: Hold<D>,
}

impl<D: DomainOps> Counter<D> {
    /// Creates a counter with both values 0; there are no flags, and no wait sets.
    pub fn new(domain: Hold<D>, attr: CounterAttr<'_>) -> Result<impl PinInit<Self>> {
        if attr.flags != 0 {
            return Err(EINVAL);
        }
        let wait = WaitWith::new(attr.wait, |_| false)?;
        let state = State {
            queue_shared: false,
        };
        let state = Arc::pin_init(
            pin_init!(Waiting {
                state <- WaitLock::new(state, c"kfi::ready::Counter::state", static_lock_class!()),
                work <- new_work!("kfi::ready::Counter::work"),
            }),
            GFP_KERNEL,
        )?;
        Ok(pin_init!(Self {
            success: Tally::new(u64::MAX),
            error: ErrorValue::new(),
            op_flags: KeptOpFlags::new(),
            state,
            source <- WaitSource::new(wait, c"kfi::ready::Counter::source", static_lock_class!()),
            domain,
        }))
    }

    /// Returns the domain.
    pub fn domain(&self) -> &Arc<Fid<D>> {
        self.domain.fid()
    }

    /// Counts the end of an operation, as a success or as an error. From any context.
    pub fn count(&self, _counted: Counted, is_success: bool) {
        if !is_success {
            return self.change_error(|old| old.wrapping_add(1));
        }
        let _preemption = NoPreemption::begin();
        if let Some(sum) = self.success.count(1, 1) {
            self.attend(sum);
        }
    }

    /// Changes the success value in another way than by an addition that few have to look at; `change`
    /// returns the value up to which all are due.
    fn change_success(&self, change: impl FnOnce(&Atomic<u64>) -> u64) {
        let _preemption = NoPreemption::begin();
        let value = change(&self.success.value);
        self.attend(value);
    }

    /// Wakes those that are due at `value`, and all that listen to the wait queue. The caller is not
    /// preempted.
    fn attend(&self, value: u64) {
        let mut state = self.state.lock();
        let due = state.detach_due(value, FEW);
        self.publish(&state.lend());
        self.wake(due, state);
    }

    /// Wakes these, and all that listen to the wait queue, once the lock is released; the work queue
    /// wakes what others are due.
    fn wake(&self, due: Due, state: WaitGuard<'_, State>) {
        let queue_shared = state.queue_shared;
        drop(state);
        if due.leaves_others() {
            queue_anywhere::<_, 0>(self.state.clone());
        }
        drop(due);
        if queue_shared {
            self.source.queue().wake_up_all();
        }
    }

    /// Changes the error value, which ends all waits; `change` returns the new one.
    fn change_error(&self, change: impl FnOnce(u64) -> u64) {
        let _preemption = NoPreemption::begin();
        let mut state = self.state.lock();
        if self.error.change(&mut state, change).is_none() {
            return;
        }
        let due = state.detach_all(FEW);
        self.publish(&state.lend());
        self.wake(due, state);
    }
}

impl<D: DomainOps> Object for Counter<D> {
    type Class = CounterClass;

    fn release(&self) {
        self.domain.release();
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        this.answer(&this.op_flags, command)
    }
}

impl<D: DomainOps> CounterWait for Counter<D> {
    type State = State;
    type Set = Absent<WaitSetClass>;

    fn waiters(&self) -> &WaitLock<State> {
        &self.state
    }

    fn error_value(&self) -> &ErrorValue {
        &self.error
    }

    fn wait_source(&self) -> &WaitSource {
        &self.source
    }

    fn share_queue(state: &mut State) {
        state.queue_shared = true;
    }

    fn publish(&self, state: &Locked<'_, State>) {
        let attention = match state.queue_shared {
            true => 0,
            false => state.first_threshold().unwrap_or(u64::MAX),
        };
        // Relaxed: written under the lock; see the top for the barrier.
        self.success.attention.store(attention, ordering::Relaxed);
    }
}

impl<D: DomainOps> CounterOps for Counter<D> {
    fn read(&self) -> u64 {
        // Acquire: a thread that sees a value sees what came before it was counted.
        self.success.value.load(ordering::Acquire)
    }

    fn readerr(&self) -> u64 {
        self.error.read()
    }

    fn tally(&self) -> &Tally {
        &self.success
    }

    fn reached(&self, _value: u64, sum: u64, _events: u64) {
        self.attend(sum);
    }

    fn add_locked(&self, value: u64) {
        // Full, here and below: before a look at who waits.
        self.change_success(|success| {
            let before = success.fetch_add(value, ordering::Full);
            before.wrapping_add(value)
        });
    }

    fn set(&self, value: u64) -> Result {
        self.change_success(|success| {
            success.xchg(value, ordering::Full);
            value
        });
        Ok(())
    }

    fn adderr(&self, value: u64) -> Result {
        self.change_error(|old| old.wrapping_add(value));
        Ok(())
    }

    fn seterr(&self, value: u64) -> Result {
        self.change_error(|_| value);
        Ok(())
    }

    fn begin_wait(&self, threshold: u64) -> Result<Option<u64>> {
        self.begin(threshold)
    }

    fn wait(this: &Fid<Self>, threshold: u64, since: u64, timeout: Timeout) -> Result {
        this.sleep(threshold, since, timeout)
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_counter)]
mod tests {
    use super::*;
    use crate::kfi::{
        context::Context,
        errno::EAVAIL,
        fid::TestFid,
        linux::work_queue::{
            WorkQueue,
            WorkQueueFlags, //
        },
        provider::{
            ready::tests::{
                domain,
                Domain, //
            },
            WaitAttr, //
        }, //
    };
    use kernel::time::{
        delay::fsleep,
        Delta, //
    };

    /// Opens a counter, to be closed before its domain.
    fn counter(domain: &Fid<Domain>, wait: WaitAttr<'_>) -> Result<TestFid<Counter<Domain>>> {
        let attr = CounterAttr {
            wait,
            ..CounterAttr::default()
        };
        TestFid::open(Counter::new(Hold::new(domain)?, attr)?, Context::NONE)
    }

    /// Returns from which value on additions are attended to.
    fn attention(counter: &Counter<Domain>) -> u64 {
        counter.success.attention.load(ordering::Relaxed)
    }

    /// Waits as kfi_cntr_wait does.
    fn wait(counter: &Fid<Counter<Domain>>, threshold: u64, millis: u32) -> Result {
        match counter.begin_wait(threshold)? {
            Some(since) => Counter::wait(counter, threshold, since, Timeout::Millis(millis)),
            None => Ok(()),
        }
    }

    #[test]
    fn both_values_are_counted() -> Result {
        let domain = domain()?;
        let counter = counter(&domain, WaitAttr::None)?;
        counter.count(Counted::remote(), true);
        counter.count(Counted::remote(), false);
        counter.count(Counted::remote(), true);
        assert_eq!((counter.read(), counter.readerr()), (2, 1));
        counter.add_locked(u64::MAX);
        counter.adderr(5)?;
        assert_eq!((counter.read(), counter.readerr()), (1, 6));
        counter.set(9)?;
        counter.seterr(0)?;
        assert_eq!((counter.read(), counter.readerr()), (9, 0));
        assert_eq!(counter.begin_wait(1), Err(EINVAL));
        Ok(())
    }

    #[test]
    fn a_wait_ends_by_the_value_or_in_time() -> Result {
        let domain = domain()?;
        let counter = counter(&domain, WaitAttr::Unspec)?;
        assert_eq!(wait(&counter, 0, 0), Ok(()));
        assert_eq!(wait(&counter, 1, 2), Err(ETIMEDOUT));
        // There is no waiter left.
        assert_eq!(attention(&counter), u64::MAX);
        counter.set(3)?;
        assert_eq!(wait(&counter, 3, 0), Ok(()));
        assert_eq!(wait(&counter, 4, 2), Err(ETIMEDOUT));
        Ok(())
    }

    #[test]
    fn a_change_of_the_error_value_ends_waits_that_have_begun() -> Result {
        let domain = domain()?;
        let counter = counter(&domain, WaitAttr::Unspec)?;
        counter.adderr(1)?;
        let since = counter.begin_wait(1)?.ok_or(EINVAL)?;
        // These change nothing.
        counter.adderr(0)?;
        counter.seterr(1)?;
        let wait = || Counter::wait(&counter, 1, since, Timeout::Millis(2));
        assert_eq!(wait(), Err(ETIMEDOUT));
        counter.count(Counted::remote(), false);
        assert_eq!(wait(), Err(EAVAIL.into()));
        // The threshold wins.
        counter.count(Counted::remote(), true);
        assert_eq!(wait(), Ok(()));
        Ok(())
    }

    #[test]
    fn each_change_is_attended_to_once_the_wait_queue_is_known() -> Result {
        let domain = domain()?;
        let counter = counter(&domain, WaitAttr::Queue)?;
        assert_eq!(attention(&counter), u64::MAX);
        let mut queue: *mut c_void = core::ptr::null_mut();
        let command = crate::kfi::bindings::KFI_GETWAIT.cast_signed();
        // SAFETY: The command takes a `void **`.
        let command = unsafe { Control::from_raw(command, (&raw mut queue).cast()) }?;
        Counter::control(&counter, command)?;
        assert!(queue == counter.source.queue().as_raw().cast());
        assert_eq!(attention(&counter), 0);
        counter.count(Counted::remote(), true);
        assert_eq!(attention(&counter), 0);
        Ok(())
    }

    /// Waits for a counter on a work queue.
    #[pin_data]
    struct Waiter {
        counter: Arc<Fid<Counter<Domain>>>,
        threshold: u64,
        /// The number of those that have been woken in time.
        woken: Arc<Atomic<usize>>,
        #[pin]
        work: Work<Waiter>,
    }

    impl WorkItem for Waiter {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            if wait(&this.counter, this.threshold, 20_000).is_ok() {
                this.woken.fetch_add(1, ordering::Relaxed);
            }
        }
    }

    #[test]
    fn all_that_are_due_are_woken() -> Result {
        /// More than are woken by a change.
        const MANY: usize = 2 * FEW + 3;

        let domain = domain()?;
        let counter = counter(&domain, WaitAttr::Unspec)?;
        let woken = Arc::new(Atomic::new(0usize), GFP_KERNEL)?;
        let flags = WorkQueueFlags::UNBOUND;
        let queue = Arc::pin_init(WorkQueue::new(c"kfi_test", flags), GFP_KERNEL)?;
        for number in 0..MANY as u64 {
            let (waited, woken) = (counter.arc(), woken.clone());
            let waiter = pin_init!(Waiter {
                counter: waited,
                // Most of them for the same value.
                threshold: 10 + number % 2 * (number % 3),
                woken,
                work <- new_work!("kfi_test::Waiter::work"),
            });
            queue.queue::<_, 0>(Arc::pin_init(waiter, GFP_KERNEL)?);
        }
        // Whether or not they sleep by now.
        for _ in 0..12 {
            counter.count(Counted::remote(), true);
        }
        queue.destroy();
        assert_eq!(woken.load(ordering::Relaxed), MANY);
        assert_eq!(attention(&counter), u64::MAX);
        // Other tests count what keeps the module.
        counter.state.work.cancel_sync();
        Ok(())
    }

    /// Sleeps for a counter without the help of [`Counter::wait`]: wakes nobody when it is woken.
    #[pin_data]
    struct Sleeper {
        counter: Arc<Fid<Counter<Domain>>>,
        /// How many threads sleep, or are about to.
        asleep: Arc<Atomic<usize>>,
        #[pin]
        work: Work<Sleeper>,
    }

    impl WorkItem for Sleeper {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            let enter = |state: Locked<'_, State>| {
                this.counter.join(&state);
                this.asleep.fetch_add(1, ordering::Relaxed);
                this.counter.read() == 0
            };
            let deadline = Timeout::Millis(20_000).deadline();
            let leave = |state: Locked<'_, State>| this.counter.publish(&state);
            let _ = this.counter.state.sleep(1, deadline, enter, leave);
        }
    }

    #[test]
    fn no_thread_that_is_due_depends_on_another() -> Result {
        let domain = domain()?;
        let counter = counter(&domain, WaitAttr::Unspec)?;
        let (woken, asleep) = (
            Arc::new(Atomic::new(0usize), GFP_KERNEL)?,
            Arc::new(Atomic::new(0usize), GFP_KERNEL)?,
        );
        let flags = WorkQueueFlags::UNBOUND;
        let queue = Arc::pin_init(WorkQueue::new(c"kfi_test", flags), GFP_KERNEL)?;
        // The last of those that are due.
        let (waited, counted) = (counter.arc(), woken.clone());
        let last = pin_init!(Waiter {
            counter: waited,
            threshold: 2,
            woken: counted,
            work <- new_work!("kfi_test::Waiter::work"),
        });
        queue.queue::<_, 0>(Arc::pin_init(last, GFP_KERNEL)?);
        while attention(&counter) != 2 {
            fsleep(Delta::from_millis(1));
        }
        for _ in 0..FEW {
            let (waited, counted) = (counter.arc(), asleep.clone());
            let sleeper = pin_init!(Sleeper {
                counter: waited,
                asleep: counted,
                work <- new_work!("kfi_test::Sleeper::work"),
            });
            queue.queue::<_, 0>(Arc::pin_init(sleeper, GFP_KERNEL)?);
        }
        while asleep.load(ordering::Relaxed) != FEW {
            fsleep(Delta::from_millis(1));
        }
        counter.set(2)?;
        queue.destroy();
        assert_eq!(woken.load(ordering::Relaxed), 1);
        assert_eq!(attention(&counter), u64::MAX);
        // Other tests count what keeps the module.
        counter.state.work.cancel_sync();
        Ok(())
    }

    /// Changes the error value again and again.
    #[pin_data]
    struct Failing {
        counter: Arc<Fid<Counter<Domain>>>,
        #[pin]
        work: Work<Failing>,
    }

    impl Failing {
        /// How often it changes.
        const CHANGES: u64 = 20_000;
    }

    impl WorkItem for Failing {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            for _ in 0..Self::CHANGES {
                this.counter.count(Counted::remote(), false);
            }
        }
    }

    #[test]
    fn an_error_that_was_read_before_ends_no_wait() -> Result {
        let domain = domain()?;
        let counter = counter(&domain, WaitAttr::Unspec)?;
        let flags = WorkQueueFlags::UNBOUND;
        let queue = Arc::pin_init(WorkQueue::new(c"kfi_test", flags), GFP_KERNEL)?;
        let waited = counter.arc();
        let failing = pin_init!(Failing {
            counter: waited,
            work <- new_work!("kfi_test::Failing::work"),
        });
        queue.queue::<_, 0>(Arc::pin_init(failing, GFP_KERNEL)?);
        let mut read = 0;
        while read != Failing::CHANGES {
            read = counter.readerr();
            // Each change adds 1, so this is the number of changes, too.
            assert!(counter.begin_wait(1)? >= Some(read));
            cond_resched();
        }
        queue.destroy();
        Ok(())
    }
}
