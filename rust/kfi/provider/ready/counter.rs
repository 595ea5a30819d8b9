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
//! From when others see a change until those are woken that wait for it, the thread that has made it
//! is not preempted: nobody else can wake them.
//!
//! # How many are woken
//!
//! The context of a change may be an interrupt, so it takes out a few of the threads that are due, and
//! wakes these. Each thread that has slept does the same before it goes on: all that are due are woken
//! by and by, as long as one was. So a thread that is not among the first few may have to wait until
//! one of these gets a CPU, whatever the priorities of both are. A provider that cannot have that wakes
//! the others from a work queue.

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        Arc, //
    }, //
};

use crate::kfi::{
    control::Control,
    errno::EAVAIL,
    fid::{
        Fid,
        Object, //
    },
    flags::OpFlags,
    hold::Hold,
    linux::{
        interrupts::NoPreemption,
        sleep::Wakeup,
        timeout::Timeout,
        waiters::{
            Due,
            Locked,
            WaitGuard,
            WaitLock,
            FEW, //
        }, //
    },
    provider::{
        wait_source::{
            WaitSource,
            WaitWith, //
        },
        Counted,
        CounterAttr,
        CounterClass,
        CounterOps,
        DomainOps, //
    },
    tally::Tally,
    wait_obj::WaitObj, //
};

/// The part of a counter that its lock protects, beside the threads that wait.
struct State {
    /// A consumer has asked for the wait queue.
    queue_shared: bool,
}

/// A counter of a domain `D`. It is in no wait set.
#[pin_data]
pub struct Counter<D: DomainOps> {
    success: Tally,
    /// The error value, and how often it has changed; both change under the lock.
    error: Atomic<u64>,
    error_changes: Atomic<u64>,
    op_flags: Atomic<u64>,
    #[pin]
    state: WaitLock<State>,
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
        Ok(pin_init!(Self {
            success: Tally::new(u64::MAX),
            error: Atomic::new(0),
            error_changes: Atomic::new(0),
            op_flags: Atomic::new(0),
            state <- WaitLock::new(state, c"kfi::ready::Counter::state", static_lock_class!()),
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
        if let Some(sum) = self.success.count(1) {
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

    /// Publishes from which value on additions have to be attended to; under the lock.
    fn publish(&self, state: &Locked<'_, State>) {
        let attention = match state.queue_shared {
            true => 0,
            false => state.first_threshold().unwrap_or(u64::MAX),
        };
        // Relaxed: written under the lock; see the top for the barrier.
        self.success.attention.store(attention, ordering::Relaxed);
    }

    /// Publishes that for a thread that is about to look at the value.
    fn join(&self, state: &Locked<'_, State>) {
        self.publish(state);
        // See the top.
        smp_mb(ordering::Full);
    }

    /// Wakes a few of those that are due at `value`, and all that listen to the wait queue. The caller
    /// is not preempted.
    fn attend(&self, value: u64) {
        let mut state = self.state.lock();
        let due = state.detach_due(value, FEW);
        self.publish(&state.lend());
        self.wake(due, state);
    }

    /// Wakes some, and all that listen to the wait queue, once the lock is released.
    fn wake(&self, due: Due, state: WaitGuard<'_, State>) {
        let queue_shared = state.queue_shared;
        drop(state);
        drop(due);
        if queue_shared {
            self.source.queue().wake_up_all();
        }
    }

    /// Wakes a few that others have found to be due.
    fn wake_others(&self) {
        let _preemption = NoPreemption::begin();
        let due = self.state.lock().detach_few(FEW);
        drop(due);
    }

    /// Changes the error value, which ends all waits; `change` returns the new one.
    fn change_error(&self, change: impl FnOnce(u64) -> u64) {
        let _preemption = NoPreemption::begin();
        let mut state = self.state.lock();
        // Relaxed: written under the lock only.
        let old = self.error.load(ordering::Relaxed);
        let new = change(old);
        if new == old {
            return;
        }
        // Release: a thread that sees the value sees what came before it.
        // See `qemu-test/litmus/KFI-error-value.litmus`.
        self.error.store(new, ordering::Release);
        // Relaxed: read under the lock.
        self.error_changes.fetch_add(1, ordering::Relaxed);
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
        match command {
            // Relaxed, both: a number that nothing depends on.
            Control::GetOpsFlag(out) => {
                out.set(OpFlags::from_raw(this.op_flags.load(ordering::Relaxed)));
            }
            Control::SetOpsFlag(flags) => {
                this.op_flags.store(flags.as_raw(), ordering::Relaxed);
            }
            command => {
                let asks = matches!(command, Control::GetWait(_));
                if asks && this.source.wait_obj() == WaitObj::Queue {
                    let mut state = this.state.lock();
                    state.queue_shared = true;
                    this.join(&state.lend());
                }
                return this.source.control(command);
            }
        }
        Ok(())
    }
}

impl<D: DomainOps> CounterOps for Counter<D> {
    fn read(&self) -> u64 {
        // Acquire: a thread that sees a value sees what came before it was counted.
        self.success.value.load(ordering::Acquire)
    }

    fn readerr(&self) -> u64 {
        // Acquire: as above.
        self.error.load(ordering::Acquire)
    }

    fn tally(&self) -> &Tally {
        &self.success
    }

    fn reached(&self, _value: u64, sum: u64) {
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
        self.source.check()?;
        // The threshold wins over errors (R-CNTR-30).
        if self.read() >= threshold {
            return Ok(None);
        }
        // An error that can be read already is one from before: no change is half made.
        let _state = self.state.lock();
        // Relaxed: changed under the lock.
        Ok(Some(self.error_changes.load(ordering::Relaxed)))
    }

    fn wait(this: &Fid<Self>, threshold: u64, since: u64, timeout: Timeout) -> Result {
        let deadline = timeout.deadline();
        loop {
            let mut met = false;
            let mut error_changed = false;
            let wakeup = this.state.sleep(
                threshold,
                deadline,
                |state| {
                    this.join(&state);
                    met = this.read() >= threshold;
                    // Relaxed: changed with the lock held.
                    error_changed = this.error_changes.load(ordering::Relaxed) != since;
                    !met && !error_changed
                },
                |state| this.publish(&state),
            );
            this.wake_others();
            if met || this.read() >= threshold {
                return Ok(());
            }
            match wakeup {
                Wakeup::NotNeeded if error_changed => return Err(EAVAIL.into()),
                // An error, or a value that has gone down again (R-CNTR-37): the next round tells.
                Wakeup::NotNeeded | Wakeup::Woken => (),
                Wakeup::Expired => return Err(ETIMEDOUT),
                Wakeup::Interrupted => return Err(EINTR),
            }
        }
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_counter)]
mod tests {
    use super::*;
    use crate::kfi::{
        context::Context,
        fid::TestFid,
        linux::work_queue::{
            new_work,
            Work,
            WorkItem,
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
        // Nobody waits any more.
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
        Ok(())
    }
}
