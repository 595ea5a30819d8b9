// SPDX-License-Identifier: GPL-2.0

//! Event counters.
//!
//! A counter has a success value and an error value. Beside them stands the *attention threshold*:
//! the smallest success value at which anything at all is due. To add is one atomic addition, one
//! load and one comparison as long as the value stays below it, however many threads wait.
//!
//! # Why no wake-up is lost
//!
//! A thread that adds and a thread that begins to wait do the following:
//!
//! ```text
//! add:   success.fetch_add(Full)            wait:  attention.store(threshold)
//!        attention.load()                          smp_mb()
//!                                                  success.load()
//! ```
//!
//! This is the store-buffering pattern. Both sides have a full barrier between their write and
//! their read, so that at least one sees what the other wrote: either the adder sees the new
//! attention threshold and looks for who is due, under the lock, or the waiter sees the new value
//! and does not sleep. Waiters join and leave under the lock only, and there the attention
//! threshold is always recomputed, so it never lags behind.
//!
//! The error value changes under the lock only. A waiter compares the error *generation*, the
//! number of changes, under the same lock when it joins; a later change finds it in the list.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        new_spinlock_irq,
        ArcBorrow,
        SpinLockIrq, //
    }, //
};

use crate::{
    domain::Domain,
    kfi::{
        control::Control,
        errno::EAVAIL,
        fid::{
            Fid,
            Object, //
        },
        hold::Hold,
        provider::{
            CounterAttr,
            CounterClass,
            CounterOps,
            CounterWait, //
        },
        timeout::Timeout,
        wait_obj::WaitObj,
        wait_queue::WaitQueue,
        waiters::{
            self,
            Due,
            Waiters,
            Wakeup, //
        }, //
    }, //
};

/// Nothing is due at any value.
///
/// A success value that is this large may be taken for due, which finds nothing.
const NEVER: u64 = u64::MAX;

/// What counts: successful completions (`KFI_CNTR_EVENTS_COMP`).
const EVENTS_COMPLETIONS: u32 = 0;

/// The values, on a cache line of their own.
#[repr(align(64))]
struct Values {
    success: Atomic<u64>,
    error: Atomic<u64>,
    /// The smallest success value at which something is due; written under the lock.
    attention: Atomic<u64>,
}

struct State {
    /// The threads in kfi_cntr_wait.
    waiters: Waiters,
    /// How often the error value has changed.
    error_generation: u64,
    /// Somebody has asked for the wait queue, which must see every change from then on.
    queue_shared: bool,
}

/// A counter.
#[pin_data]
pub(crate) struct Counter {
    values: Values,
    wait_obj: WaitObj,
    op_flags: Atomic<u64>,
    #[pin]
    state: SpinLockIrq<State>,
    #[pin]
    queue: WaitQueue,
    domain: Hold<Domain>,
}

/// Who has to be woken after a change, outside of the lock.
struct Wakeups<'a> {
    _due: Due,
    queue: Option<&'a WaitQueue>,
}

impl Drop for Wakeups<'_> {
    fn drop(&mut self) {
        if let Some(queue) = self.queue {
            queue.wake_up_all();
        }
    }
}

impl Counter {
    /// Checks the attributes of a new counter and returns its wait object (R-CNTR-8 to 14).
    pub(crate) fn check_attr(attr: &CounterAttr<'_>) -> Result<WaitObj> {
        if attr.events != EVENTS_COMPLETIONS {
            return Err(ENOSYS);
        }
        if attr.flags != 0 {
            return Err(EINVAL);
        }
        match attr.wait {
            CounterWait::None => Ok(WaitObj::None),
            CounterWait::Unspec => Ok(WaitObj::Unspec),
            CounterWait::Queue => Ok(WaitObj::Queue),
            // There are no wait sets yet, so this is none.
            CounterWait::Set(_) => Err(EINVAL),
        }
    }

    /// Creates a counter with both values 0 (R-CNTR-5).
    pub(crate) fn new(domain: Hold<Domain>, wait_obj: WaitObj) -> impl PinInit<Self> {
        pin_init!(Self {
            values: Values {
                success: Atomic::new(0),
                error: Atomic::new(0),
                attention: Atomic::new(NEVER),
            },
            wait_obj,
            op_flags: Atomic::new(0),
            state <- new_spinlock_irq!(
                State {
                    waiters: Waiters::new(),
                    error_generation: 0,
                    queue_shared: false,
                },
                "kfi_soft::Counter::state"
            ),
            queue <- WaitQueue::new(c"kfi_soft::Counter::queue", static_lock_class!()),
            domain,
        })
    }

    fn success(&self) -> u64 {
        // Acquire: who sees a value sees what came before it was counted.
        self.values.success.load(ordering::Acquire)
    }

    /// Publishes the attention threshold; under the lock, after every change of the state.
    fn publish(&self, state: &State) {
        let attention = if state.queue_shared {
            0
        } else {
            state.waiters.first().unwrap_or(NEVER)
        };
        // Relaxed: see the proof at the top; who joins adds a full barrier.
        self.values.attention.store(attention, ordering::Relaxed);
    }

    /// Returns whether anything is due at `value`, right after an atomic change with full ordering.
    fn is_due(&self, value: u64) -> bool {
        // Relaxed: ordered after the change by that.
        value >= self.values.attention.load(ordering::Relaxed)
    }

    /// Wakes who is due now that the success value was, or is, `value`.
    #[cold]
    fn attend(&self, value: u64) {
        let wakeups = {
            let mut state = self.state.lock();
            let due = state.waiters.detach_due(value);
            self.publish(&state);
            self.wakeups(&state, due)
        };
        drop(wakeups);
    }

    fn wakeups(&self, state: &State, due: Due) -> Wakeups<'_> {
        Wakeups {
            _due: due,
            queue: state.queue_shared.then_some(&self.queue),
        }
    }

    /// Changes the error value; `change` returns the new one.
    fn change_error(&self, change: impl FnOnce(u64) -> u64) {
        let wakeups = {
            let mut state = self.state.lock();
            // Relaxed: written under the lock only.
            let old = self.values.error.load(ordering::Relaxed);
            let new = change(old);
            if new == old {
                return;
            }
            // Release: who sees the value sees what came before it.
            self.values.error.store(new, ordering::Release);
            state.error_generation = state.error_generation.wrapping_add(1);
            let due = state.waiters.detach_all();
            self.publish(&state);
            self.wakeups(&state, due)
        };
        drop(wakeups);
    }
}

impl Object for Counter {
    type Class = CounterClass;

    fn release(&self) {
        self.domain.release();
    }

    fn control(this: ArcBorrow<'_, Fid<Self>>, command: Control<'_>) -> Result {
        match command {
            Control::GetOpsFlag(flags) => {
                // Relaxed: a number that nothing depends on.
                *flags = this.op_flags.load(ordering::Relaxed);
                Ok(())
            }
            Control::SetOpsFlag(flags) => {
                // Relaxed: as above.
                this.op_flags.store(flags, ordering::Relaxed);
                Ok(())
            }
            Control::GetWait(out) => match this.wait_obj {
                WaitObj::Queue => {
                    let mut state = this.state.lock();
                    state.queue_shared = true;
                    this.publish(&state);
                    drop(state);
                    out.set(&this.queue);
                    Ok(())
                }
                WaitObj::Unspec => Err(ENOSYS),
                WaitObj::None | WaitObj::Set => Err(EINVAL),
            },
            Control::GetWaitObj(out) => {
                out.set(match this.wait_obj {
                    // What it is in truth.
                    WaitObj::Unspec => WaitObj::Queue,
                    wait_obj => wait_obj,
                });
                Ok(())
            }
            Control::Other => Err(ENOSYS),
        }
    }
}

impl CounterOps for Counter {
    fn read(&self) -> u64 {
        self.success()
    }

    fn readerr(&self) -> u64 {
        // Acquire: pairs with the release of the change.
        self.values.error.load(ordering::Acquire)
    }

    fn add(&self, value: u64) -> Result {
        if value != 0 {
            // Full: see the proof at the top. Addition wraps (R-CNTR-20).
            let old = self.values.success.fetch_add(value, ordering::Full);
            let new = old.wrapping_add(value);
            if self.is_due(new) {
                self.attend(new);
            }
        }
        Ok(())
    }

    fn set(&self, value: u64) -> Result {
        // Full: as for `add`.
        let old = self.values.success.xchg(value, ordering::Full);
        if old != value && self.is_due(value) {
            self.attend(value);
        }
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

    fn wait(this: ArcBorrow<'_, Fid<Self>>, threshold: u64, timeout: Timeout) -> Result {
        kernel::task::might_sleep();
        if matches!(this.wait_obj, WaitObj::None | WaitObj::Set) {
            return Err(EINVAL);
        }
        // The threshold wins over errors (R-CNTR-30).
        if this.success() >= threshold {
            return Ok(());
        }
        if timeout == Timeout::Millis(0) {
            return Err(ETIMEDOUT);
        }

        // A counter with a thread in here cannot be closed (R-CLOSE-2).
        let _hold = Hold::new(this)?;
        let deadline = timeout.deadline();
        let mut entered = None;
        let mut error_changed = false;
        loop {
            let wakeup = waiters::sleep(
                &this.state,
                |state| &mut state.waiters,
                threshold,
                deadline,
                |state| {
                    this.publish(state);
                    // See the proof at the top.
                    smp_mb(ordering::Full);
                    let generation = *entered.get_or_insert(state.error_generation);
                    error_changed = state.error_generation != generation;
                    !error_changed && this.success() < threshold
                },
                |state| this.publish(state),
            );
            if this.success() >= threshold {
                return Ok(());
            }
            match wakeup {
                // Either of the two was the reason, or the value has gone down again, and the next
                // round finds out (R-CNTR-37).
                Wakeup::NotNeeded | Wakeup::Woken if !error_changed => (),
                Wakeup::NotNeeded | Wakeup::Woken => return Err(EAVAIL.into()),
                Wakeup::Expired => return Err(ETIMEDOUT),
                Wakeup::Interrupted => return Err(EINTR),
            }
        }
    }
}
