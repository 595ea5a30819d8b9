// SPDX-License-Identifier: GPL-2.0

//! Sleeping threads in the order of the value that each waits for.
//!
//! A wait queue wakes everybody, or whoever comes first. Here a thread says which value it waits
//! for, and whoever raises the value wakes those that are due and nobody else: they are detached
//! under the lock of the object that they wait for and woken after it was released.
//!
//! A thread's entry lives on its stack, so that to wait allocates nothing. The entry may leave the
//! stack when it is in nobody's hands: while it is queued, its thread takes it out under the lock;
//! once it was detached, its thread stays until the waker has let go of it.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            ordering,
            Atomic, //
        },
        SpinLockIrq, //
    },
    task::{
        Task,
        TASK_INTERRUPTIBLE, //
    }, //
};

use super::{
    bindings,
    timeout::Deadline, //
};

/// In the list; its thread may take it out.
const QUEUED: u32 = 0;
/// Taken out by a waker, who still uses it.
const DETACHED: u32 = 1;
/// The waker has let go of it.
const WOKEN: u32 = 2;

/// A sleeping thread, on its own stack.
struct Waiter {
    threshold: u64,
    task: ARef<Task>,
    state: Atomic<u32>,
    prev: *mut Waiter,
    next: *mut Waiter,
}

/// The threads that sleep until a value reaches their threshold, the lowest first.
///
/// # Invariants
///
/// - `first` and `last` are the ends of a doubly linked list of waiters, or both null.
/// - The list is sorted by threshold, equal thresholds by arrival.
/// - Every waiter in the list is in state [`QUEUED`] and stays in place while it is in the list.
pub(crate) struct Waiters {
    first: *mut Waiter,
    last: *mut Waiter,
}

// SAFETY: The waiters are reached by whoever has exclusive access to the list only.
unsafe impl Send for Waiters {}

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// There was no need to sleep.
    NotNeeded,
    /// A waker found the threshold due.
    Woken,
    /// The deadline has passed.
    Expired,
    /// A signal is pending.
    Interrupted,
}

impl Waiters {
    /// Nobody sleeps.
    pub(crate) const fn new() -> Self {
        // INVARIANT: The list is empty.
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
        }
    }

    /// Returns the lowest threshold.
    pub(crate) fn first(&self) -> Option<u64> {
        // SAFETY: By the type invariants, the first waiter is in place.
        unsafe { self.first.as_ref() }.map(|waiter| waiter.threshold)
    }

    /// Takes out all that wait for `value` or less.
    pub(crate) fn detach_due(&mut self, value: u64) -> Due {
        let first = self.first;
        let mut end = first;
        // SAFETY: By the type invariants, whatever is in the list is in place.
        while let Some(waiter) = unsafe { end.as_mut() } {
            if waiter.threshold > value {
                break;
            }
            // Relaxed: the thread looks at it under the lock that the caller holds.
            waiter.state.store(DETACHED, ordering::Relaxed);
            end = waiter.next;
        }
        if end == first {
            return Due {
                first: ptr::null_mut(),
            };
        }
        // INVARIANT: What comes before `end` is cut off; the rest is sorted as before.
        self.first = end;
        // SAFETY: As above.
        let last_due = match unsafe { end.as_mut() } {
            Some(waiter) => core::mem::replace(&mut waiter.prev, ptr::null_mut()),
            None => core::mem::replace(&mut self.last, ptr::null_mut()),
        };
        // SAFETY: `last_due` comes before `end` in the list, and there is such a waiter, as `end`
        // is not the first.
        unsafe { (*last_due).next = ptr::null_mut() };
        // INVARIANT: A list that ends with null of waiters that have just been detached.
        Due { first }
    }

    /// Takes out everybody.
    pub(crate) fn detach_all(&mut self) -> Due {
        self.detach_due(u64::MAX)
    }

    /// # Safety
    ///
    /// `waiter` must be valid, in state [`QUEUED`], in no list, and stay in place until it is
    /// removed or detached.
    unsafe fn insert(&mut self, waiter: NonNull<Waiter>) {
        let waiter = waiter.as_ptr();
        // SAFETY: `waiter` is valid by the safety requirements.
        let threshold = unsafe { (*waiter).threshold };
        // From the end: threads mostly wait for rising values.
        let mut prev = self.last;
        // SAFETY: By the type invariants, whatever is in the list is in place.
        while let Some(other) = unsafe { prev.as_ref() } {
            if other.threshold <= threshold {
                break;
            }
            prev = other.prev;
        }
        // SAFETY: As above.
        let next = match unsafe { prev.as_mut() } {
            Some(prev) => core::mem::replace(&mut prev.next, waiter),
            None => core::mem::replace(&mut self.first, waiter),
        };
        // SAFETY: As above.
        match unsafe { next.as_mut() } {
            Some(next) => next.prev = waiter,
            None => self.last = waiter,
        }
        // INVARIANT: What precedes has no higher threshold, what follows has a higher one.
        // SAFETY: `waiter` is valid by the safety requirements.
        unsafe {
            (*waiter).prev = prev;
            (*waiter).next = next;
        }
    }

    /// # Safety
    ///
    /// `waiter` must be in this list.
    unsafe fn remove(&mut self, waiter: NonNull<Waiter>) {
        // SAFETY: By the safety requirements.
        let (prev, next) = unsafe { (waiter.as_ref().prev, waiter.as_ref().next) };
        // INVARIANT: The neighbours are linked with each other; the order stays.
        // SAFETY: By the type invariants, whatever is in the list is in place.
        match unsafe { prev.as_mut() } {
            Some(prev) => prev.next = next,
            None => self.first = next,
        }
        // SAFETY: As above.
        match unsafe { next.as_mut() } {
            Some(next) => next.prev = prev,
            None => self.last = prev,
        }
    }
}

/// Threads that were taken out and are yet to be woken, outside of the lock.
///
/// # Invariants
///
/// `first` is a list, linked by `next` and ending with null, of waiters in state [`DETACHED`].
#[must_use = "drop it after the lock was released"]
pub(crate) struct Due {
    first: *mut Waiter,
}

// SAFETY: The waiters in it belong to it until they are woken.
unsafe impl Send for Due {}

impl Due {
    /// Returns whether there is nobody to wake.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        // SAFETY: By the type invariants; the thread of a detached waiter leaves it in place.
        while let Some(waiter) = unsafe { self.first.as_ref() } {
            self.first = waiter.next;
            let task = waiter.task.clone();
            // Release: the accesses above come before the thread may discard the waiter, which
            // must not be touched from here on.
            waiter.state.store(WOKEN, ordering::Release);
            task.wake_up();
        }
    }
}

/// Sleeps until `threshold` is due, `deadline` passes or a signal is pending.
///
/// `waiters` finds the list in what `lock` protects. `enter` runs under the lock once the thread
/// is in the list and says whether there is need to sleep; `leave` runs under the lock when the
/// thread took itself out of the list again.
///
/// Whoever raises the value must either see the entry, made under the lock, or be seen by
/// `enter`.
pub(crate) fn sleep<T: Unpin>(
    lock: &SpinLockIrq<T>,
    waiters: impl Fn(&mut T) -> &mut Waiters,
    threshold: u64,
    deadline: Deadline,
    enter: impl FnOnce(&mut T) -> bool,
    leave: impl FnOnce(&mut T),
) -> Wakeup {
    kernel::task::might_sleep();

    let mut waiter = Waiter {
        threshold,
        task: ARef::from(&**kernel::current!()),
        state: Atomic::new(QUEUED),
        prev: ptr::null_mut(),
        next: ptr::null_mut(),
    };
    // From here on `waiter` is accessed through `entry` only, and it stays in place until the end
    // of the function.
    let entry = NonNull::from(&mut waiter);
    // SAFETY: `waiter` is in place; its state is atomic.
    let state = || unsafe { &(*entry.as_ptr()).state };

    {
        let mut guard = lock.lock();
        // SAFETY: `waiter` is queued, in no list, and this function returns only after it was
        // removed, or detached and let go.
        unsafe { waiters(&mut guard).insert(entry) };
        if !enter(&mut guard) {
            // SAFETY: It has just been inserted, under the same lock.
            unsafe { waiters(&mut guard).remove(entry) };
            leave(&mut guard);
            return Wakeup::NotNeeded;
        }
    }

    let ended = loop {
        // The state of the task is set before the state of the waiter is read, with a full barrier
        // between. A waker does both the other way round, so its wake-up is not lost.
        set_current_state(TASK_INTERRUPTIBLE);
        // Acquire: the waker has let go of the waiter.
        if state().load(ordering::Acquire) == WOKEN {
            break Wakeup::Woken;
        }
        if kernel::current!().signal_pending() {
            break Wakeup::Interrupted;
        }
        if !schedule_until(deadline) {
            break Wakeup::Expired;
        }
    };
    set_current_state(bindings::TASK_RUNNING.cast_signed());
    if ended == Wakeup::Woken {
        return ended;
    }

    {
        let mut guard = lock.lock();
        // Relaxed: it changes from `QUEUED` under the lock only.
        if state().load(ordering::Relaxed) == QUEUED {
            // SAFETY: It is in the list while it is queued.
            unsafe { waiters(&mut guard).remove(entry) };
            leave(&mut guard);
            return ended;
        }
    }

    // A waker has detached it and is about to let go of it.
    loop {
        set_current_state(bindings::TASK_UNINTERRUPTIBLE.cast_signed());
        // Acquire: as above.
        if state().load(ordering::Acquire) == WOKEN {
            break;
        }
        // SAFETY: The waker wakes the task after it has let go.
        unsafe { bindings::schedule() };
    }
    set_current_state(bindings::TASK_RUNNING.cast_signed());
    Wakeup::Woken
}

/// Sets the state of the current task, with a full barrier after it.
fn set_current_state(state: c_int) {
    // SAFETY: A task may always set its own state.
    unsafe { bindings::set_current_state(state.cast_unsigned()) };
}

/// Sleeps until woken or `deadline`; returns `false` when it has passed.
fn schedule_until(deadline: Deadline) -> bool {
    let mut expires = deadline.as_nanos();
    let expires = expires
        .as_mut()
        .map_or(ptr::null_mut(), |nanos| ptr::from_mut(nanos));
    // SAFETY: `expires` is null or valid for the call; the caller has set the task's state.
    unsafe { bindings::schedule_hrtimeout(expires, bindings::hrtimer_mode_HRTIMER_MODE_ABS) != 0 }
}

#[cfg(kfi_tests)]
#[kunit_tests(kfi_waiters)]
mod tests {
    use super::*;
    use crate::kfi::timeout::Timeout;
    use kernel::sync::new_spinlock_irq;

    fn waiter(threshold: u64) -> Waiter {
        Waiter {
            threshold,
            task: ARef::from(&**kernel::current!()),
            state: Atomic::new(QUEUED),
            prev: ptr::null_mut(),
            next: ptr::null_mut(),
        }
    }

    /// Inserts waiters with `thresholds`, cuts at `value` and compares what is due and what stays.
    fn check<const N: usize>(thresholds: [u64; N], value: u64, due: &[usize], rest: &[usize]) {
        let mut list = Waiters::new();
        let mut entries = thresholds.map(waiter);
        let base = entries.as_mut_ptr();
        for i in 0..N {
            // SAFETY: The entries stay in place until the end of the function; `i` is in bounds.
            unsafe { list.insert(NonNull::new_unchecked(base.add(i))) };
        }
        let cut = list.detach_due(value);
        for (mut at, expected) in [(cut.first, due), (list.first, rest)] {
            for &i in expected {
                // SAFETY: `i` is in bounds.
                assert!(at == unsafe { base.add(i) });
                // SAFETY: `at` is one of the entries.
                at = unsafe { (*at).next };
            }
            assert!(at.is_null());
        }
        assert!(list.last.is_null() == rest.is_empty());
        drop(cut);
    }

    #[test]
    fn nobody_is_due_in_an_empty_list() {
        check([], u64::MAX, &[], &[]);
    }

    #[test]
    fn due_in_order_of_threshold_then_arrival() {
        check([30, 10, 20, 10], 20, &[1, 3, 2], &[0]);
    }

    #[test]
    fn none_due() {
        check([5, 7, 6], 4, &[], &[0, 2, 1]);
    }

    #[test]
    fn all_due() {
        check([u64::MAX, 0, 7], u64::MAX, &[1, 2, 0], &[]);
    }

    #[test]
    fn removal_keeps_order() {
        let mut list = Waiters::new();
        let mut entries = [1, 2, 3].map(waiter);
        let base = entries.as_mut_ptr();
        let entry = |i| {
            // SAFETY: `i` is in bounds.
            unsafe { NonNull::new_unchecked(base.add(i)) }
        };
        for i in [1, 0, 2] {
            // SAFETY: The entries stay in place until the end of the function.
            unsafe { list.insert(entry(i)) };
        }
        // SAFETY: The entry is in the list.
        unsafe { list.remove(entry(1)) };
        assert_eq!(list.first(), Some(1));
        // SAFETY: As above.
        unsafe { list.remove(entry(0)) };
        assert_eq!(list.first(), Some(3));
        // SAFETY: As above.
        unsafe { list.remove(entry(2)) };
        assert_eq!(list.first(), None);
        assert!(list.last.is_null());
    }

    #[test]
    fn sleep_expires_and_leaves_the_list() -> Result {
        let lock = KBox::pin_init(new_spinlock_irq!(Waiters::new()), GFP_KERNEL)?;
        let mut left = false;
        let deadline = Timeout::from_raw(2).deadline();
        let wakeup = sleep(&lock, |list| list, 1, deadline, |_| true, |_| left = true);
        assert!(wakeup == Wakeup::Expired);
        assert!(left);
        assert_eq!(lock.lock().first(), None);
        Ok(())
    }

    #[test]
    fn no_sleep_when_not_needed() -> Result {
        let lock = KBox::pin_init(new_spinlock_irq!(Waiters::new()), GFP_KERNEL)?;
        let deadline = Timeout::from_raw(-1).deadline();
        let wakeup = sleep(&lock, |list| list, 1, deadline, |_| false, |_| ());
        assert!(wakeup == Wakeup::NotNeeded);
        assert_eq!(lock.lock().first(), None);
        Ok(())
    }
}
