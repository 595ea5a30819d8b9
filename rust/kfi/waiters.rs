// SPDX-License-Identifier: GPL-2.0

//! Sleeping threads in the order of the value that each waits for.
//!
//! A wait queue wakes everybody, or whoever comes first. Here a thread says which value it waits
//! for, and whoever raises the value wakes those that are due and nobody else: they are detached
//! under the lock of the object that they wait for and woken after it was released. They are a few at
//! a time, as it may be an interrupt that wakes them; up to where others are due is noted.
//!
//! A thread's entry lives on its stack, so that to wait allocates nothing. The entry may leave the
//! stack when it is in nobody's hands: while it is queued, its thread takes it out under the lock;
//! once it was detached, its thread stays until the waker has let go of it.

use core::{
    mem::ManuallyDrop,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            ordering,
            Atomic, //
        },
        lock::{
            spinlock::SpinLockIrqBackend,
            Guard, //
        },
        LockClassKey,
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

/// Threads that are woken at a time.
const FEW: usize = 16;

/// In the list; its thread may take it out.
const QUEUED: u32 = 0;
/// Taken out by a waker, who still uses it.
const DETACHED: u32 = 1;
/// The waker has let go of it.
const WOKEN: u32 = 2;

/// A sleeping thread, on its own stack.
///
/// Other threads reach it by raw pointers, and only the fields that are theirs at the time: the
/// links and the threshold belong to whoever holds the lock of the list, or to the waker once it is
/// detached; the state is atomic.
struct Waiter {
    /// The value that the thread waits for.
    threshold: u64,
    /// The thread.
    task: ARef<Task>,
    /// [`QUEUED`], [`DETACHED`] or [`WOKEN`].
    state: Atomic<u32>,
    /// The one before it, null for none.
    prev: *mut Waiter,
    /// The one after it, null for none.
    next: *mut Waiter,
}

impl Waiter {
    /// The current thread.
    fn new(threshold: u64) -> Self {
        Self {
            threshold,
            task: ARef::from(&**kernel::current!()),
            state: Atomic::new(QUEUED),
            prev: ptr::null_mut(),
            next: ptr::null_mut(),
        }
    }

    /// Returns the state of a waiter.
    ///
    /// # Safety
    ///
    /// `waiter` must be in place during `'a`.
    unsafe fn state<'a>(waiter: *const Self) -> &'a Atomic<u32> {
        // SAFETY: By the safety requirements; the state is atomic, so it may be shared while other
        // fields are written.
        unsafe { &*ptr::addr_of!((*waiter).state) }
    }
}

/// The threads that sleep until a value reaches their threshold, the lowest first.
///
/// # Invariants
///
/// - `first` and `last` are the ends of a doubly linked list of waiters, or both null.
/// - The list is sorted by threshold, equal thresholds by arrival.
/// - Every waiter in the list is in state [`QUEUED`] and stays in place while it is in the list.
struct Waiters {
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
    const fn new() -> Self {
        // INVARIANT: The list is empty.
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
        }
    }

    /// Returns the lowest threshold.
    fn first_threshold(&self) -> Option<u64> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: By the type invariants, the first waiter is in place.
        Some(unsafe { (*self.first).threshold })
    }

    /// Takes out all that wait for `value` or less.
    fn detach_due(&mut self, value: u64) -> Due {
        let first = self.first;
        let mut last_due = ptr::null_mut();
        let mut end = first;
        // SAFETY: By the type invariants, whatever is in the list is in place.
        while !end.is_null() && unsafe { (*end).threshold } <= value {
            // Relaxed: the thread looks at it under the lock that protects the list.
            // SAFETY: As above.
            unsafe { Waiter::state(end) }.store(DETACHED, ordering::Relaxed);
            last_due = end;
            // SAFETY: As above.
            end = unsafe { (*end).next };
        }
        if last_due.is_null() {
            return Due::NONE;
        }
        // INVARIANT: What comes before `end` is cut off; the rest is sorted as before.
        self.first = end;
        if end.is_null() {
            self.last = ptr::null_mut();
        } else {
            // SAFETY: As above.
            unsafe { (*end).prev = ptr::null_mut() };
        }
        // SAFETY: As above; it has just been detached, and its thread leaves it in place.
        unsafe { (*last_due).next = ptr::null_mut() };
        // INVARIANT: A list that ends with null of waiters that have just been detached.
        Due {
            first,
            last: last_due,
        }
    }

    /// Puts a waiter where it belongs.
    ///
    /// # Safety
    ///
    /// `waiter` must be valid, in state [`QUEUED`], in no list, and stay in place until it is
    /// removed or detached and let go.
    unsafe fn insert(&mut self, waiter: *mut Waiter) {
        // SAFETY: `waiter` is valid by the safety requirements.
        let threshold = unsafe { (*waiter).threshold };
        // From the end: threads mostly wait for rising values.
        let mut prev = self.last;
        // SAFETY: By the type invariants, whatever is in the list is in place, here and below.
        while !prev.is_null() && unsafe { (*prev).threshold } > threshold {
            // SAFETY: As above.
            prev = unsafe { (*prev).prev };
        }
        let next = if prev.is_null() {
            self.first
        } else {
            // SAFETY: As above.
            unsafe { (*prev).next }
        };
        // SAFETY: `waiter` is valid by the safety requirements.
        unsafe {
            (*waiter).prev = prev;
            (*waiter).next = next;
        }
        // INVARIANT: What precedes has no higher threshold, what follows has a higher one.
        self.link(prev, next, waiter, waiter);
    }

    /// Takes a waiter out.
    ///
    /// # Safety
    ///
    /// `waiter` must be in this list.
    unsafe fn remove(&mut self, waiter: *mut Waiter) {
        // SAFETY: By the safety requirements.
        let (prev, next) = unsafe { ((*waiter).prev, (*waiter).next) };
        // INVARIANT: The neighbours are linked with each other; the order stays.
        self.link(prev, next, next, prev);
    }

    /// Lets `prev`, or the head, be followed by `after`, and `next`, or the tail, be preceded by
    /// `before`.
    fn link(
        &mut self,
        prev: *mut Waiter,
        next: *mut Waiter,
        after: *mut Waiter,
        before: *mut Waiter,
    ) {
        if prev.is_null() {
            self.first = after;
        } else {
            // SAFETY: `prev` is in the list, so it is in place by the type invariants.
            unsafe { (*prev).next = after };
        }
        if next.is_null() {
            self.last = before;
        } else {
            // SAFETY: As above.
            unsafe { (*next).prev = before };
        }
    }
}

/// Threads that were taken out and are yet to be woken, outside of the lock.
///
/// # Invariants
///
/// `first` is a list, linked by `next` and ending with null, of waiters in state [`DETACHED`]; `last`
/// is the last of them, unless there is none.
#[must_use = "drop it after the lock was released"]
pub(crate) struct Due {
    first: *mut Waiter,
    last: *mut Waiter,
}

// SAFETY: The waiters in it belong to it until they are woken.
unsafe impl Send for Due {}

impl Due {
    /// Nobody.
    pub(crate) const NONE: Self = Self {
        // INVARIANT: The list is empty.
        first: ptr::null_mut(),
        last: ptr::null_mut(),
    };

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Takes out the first few of them, to be woken at once.
    pub(crate) fn take_few(&mut self) -> Self {
        let first = self.first;
        let mut last = ptr::null_mut();
        for _ in 0..FEW {
            if self.first.is_null() {
                break;
            }
            last = self.first;
            // SAFETY: By the type invariants; the thread of a detached waiter leaves it in place.
            self.first = unsafe { (*last).next };
        }
        if last.is_null() {
            return Self::NONE;
        }
        // SAFETY: As above.
        unsafe { (*last).next = ptr::null_mut() };
        // INVARIANT: The list was cut in two.
        Self { first, last }
    }

    /// Adds others behind these.
    pub(crate) fn append(&mut self, others: Self) {
        let others = ManuallyDrop::new(others);
        if others.first.is_null() {
            return;
        }
        if self.first.is_null() {
            self.first = others.first;
        } else {
            // SAFETY: As above.
            unsafe { (*self.last).next = others.first };
        }
        // INVARIANT: The lists are one.
        self.last = others.last;
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        while !self.first.is_null() {
            let waiter = self.first;
            // SAFETY: By the type invariants; the thread of a detached waiter leaves it in place.
            let (next, task) = unsafe { ((*waiter).next, (*waiter).task.clone()) };
            self.first = next;
            // Release: the accesses above come before the thread may discard the waiter, which
            // must not be touched from here on.
            // SAFETY: As above.
            unsafe { Waiter::state(waiter) }.store(WOKEN, ordering::Release);
            task.wake_up();
        }
    }
}

/// What the lock protects.
struct Inner<T> {
    waiters: Waiters,
    data: T,
}

/// A spinlock, taken with interrupts disabled, around data that threads wait for.
#[pin_data]
pub(crate) struct WaitLock<T> {
    #[pin]
    inner: SpinLockIrq<Inner<T>>,
}

/// The lock, held.
#[must_use = "the lock is released when this is dropped"]
pub(crate) struct WaitGuard<'a, T>(Guard<'a, Inner<T>, SpinLockIrqBackend>);

/// The lock, held by whoever lends this.
pub(crate) struct Locked<'a, T>(&'a mut Inner<T>);

impl<T> core::ops::Deref for WaitGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.data
    }
}

impl<T: Unpin> core::ops::DerefMut for WaitGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.data
    }
}

impl<T: Unpin> WaitGuard<'_, T> {
    /// Lends the lock.
    pub(crate) fn lend(&mut self) -> Locked<'_, T> {
        Locked(&mut self.0)
    }

    /// Takes out the threads that wait for `value` or less.
    pub(crate) fn detach_due(&mut self, value: u64) -> Due {
        self.0.waiters.detach_due(value)
    }

    /// Takes out all threads.
    pub(crate) fn detach_all(&mut self) -> Due {
        self.detach_due(u64::MAX)
    }
}

impl<T> core::ops::Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.data
    }
}

impl<T> core::ops::DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.data
    }
}

impl<T> Locked<'_, T> {
    /// Returns the lowest value that a thread waits for.
    pub(crate) fn first_threshold(&self) -> Option<u64> {
        self.0.waiters.first_threshold()
    }
}

impl<T: Unpin> WaitLock<T> {
    /// Creates a lock.
    pub(crate) fn new(
        data: T,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        let inner = Inner {
            waiters: Waiters::new(),
            data,
        };
        pin_init!(Self {
            inner <- SpinLockIrq::new(inner, name, key),
        })
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> WaitGuard<'_, T> {
        WaitGuard(self.inner.lock())
    }

    /// Sleeps until `threshold` is due, `deadline` passes or a signal is pending.
    ///
    /// `enter` runs under the lock once the thread is among those that wait, and says whether there
    /// is need to sleep; `leave` runs under the lock when the thread took itself out again.
    ///
    /// Whoever raises the value must either see the thread, which was put in under the lock, or be
    /// seen by `enter`.
    pub(crate) fn sleep(
        &self,
        threshold: u64,
        deadline: Deadline,
        enter: impl FnOnce(Locked<'_, T>) -> bool,
        leave: impl FnOnce(Locked<'_, T>),
    ) -> Wakeup {
        kernel::task::might_sleep();

        let mut waiter = Waiter::new(threshold);
        // From here on the waiter is reached through this pointer only. It stays in place until the
        // end of the function, which comes after it was removed, or detached and let go.
        let waiter = ptr::addr_of_mut!(waiter);
        // SAFETY: It is in place.
        let state = unsafe { Waiter::state(waiter) };

        {
            let mut guard = self.inner.lock();
            // SAFETY: It is queued and in no list; see above for how long it stays.
            unsafe { guard.waiters.insert(waiter) };
            if !enter(Locked(&mut guard)) {
                // SAFETY: It has just been inserted, and closures cannot reach the list.
                unsafe { guard.waiters.remove(waiter) };
                leave(Locked(&mut guard));
                return Wakeup::NotNeeded;
            }
        }

        let ended = loop {
            // The state of the task is set before the state of the waiter is read, with a full
            // barrier between. A waker does both the other way round: its wake-up is not lost.
            set_current_state(TASK_INTERRUPTIBLE);
            // Acquire: the waker has let go of the waiter.
            if state.load(ordering::Acquire) == WOKEN {
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
            let mut guard = self.inner.lock();
            // Relaxed: it changes from `QUEUED` under the lock only.
            if state.load(ordering::Relaxed) == QUEUED {
                // SAFETY: It is in the list while it is queued.
                unsafe { guard.waiters.remove(waiter) };
                leave(Locked(&mut guard));
                return ended;
            }
        }

        // A waker has detached it and is about to let go of it.
        loop {
            set_current_state(bindings::TASK_UNINTERRUPTIBLE.cast_signed());
            // Acquire: as above.
            if state.load(ordering::Acquire) == WOKEN {
                break;
            }
            // SAFETY: The waker wakes the task after it has let go.
            unsafe { bindings::schedule() };
        }
        set_current_state(bindings::TASK_RUNNING.cast_signed());
        Wakeup::Woken
    }
}

/// Sets the state of the current task, with a full barrier after it.
pub(super) fn set_current_state(state: c_int) {
    // SAFETY: A task may always set its own state.
    unsafe { bindings::set_current_state(state.cast_unsigned()) };
}

/// Sleeps until woken or `deadline`; returns `false` when it has passed.
pub(super) fn schedule_until(deadline: Deadline) -> bool {
    let mut expires = deadline.as_nanos();
    let expires = expires.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: `expires` is null or valid for the call; the caller has set the task's state.
    unsafe { bindings::schedule_hrtimeout(expires, bindings::hrtimer_mode_HRTIMER_MODE_ABS) != 0 }
}

#[cfg(kfi_tests)]
#[kunit_tests(kfi_waiters)]
mod tests {
    use super::*;
    use crate::kfi::timeout::Timeout;
    use kernel::static_lock_class;

    /// Inserts waiters with `thresholds`, cuts at `value` and compares what is due and what stays.
    fn check<const N: usize>(thresholds: [u64; N], value: u64, due: &[usize], rest: &[usize]) {
        let mut list = Waiters::new();
        let mut waiters = thresholds.map(Waiter::new);
        let base = waiters.as_mut_ptr();
        for i in 0..N {
            // SAFETY: `i` is in bounds; the waiters stay in place until the end of the function.
            unsafe { list.insert(base.add(i)) };
        }
        let cut = list.detach_due(value);
        for (mut at, expected) in [(cut.first, due), (list.first, rest)] {
            for &i in expected {
                // SAFETY: `i` is in bounds.
                assert!(at == unsafe { base.add(i) });
                // SAFETY: `at` is one of the waiters.
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
    fn a_few_at_a_time() {
        const MANY: usize = 2 * FEW + 1;

        let mut list = Waiters::new();
        let mut waiters = [5; MANY].map(Waiter::new);
        let base = waiters.as_mut_ptr();
        for i in 0..MANY {
            // SAFETY: `i` is in bounds; the waiters stay in place until the end of the function.
            unsafe { list.insert(base.add(i)) };
        }
        let mut due = Due::NONE;
        due.append(Due::NONE);
        due.append(list.detach_due(4));
        assert!(due.is_empty());
        let mut all = list.detach_due(5);
        assert_eq!(list.first_threshold(), None);
        // In two parts, which become one again.
        let first = all.take_few();
        due.append(first);
        due.append(all);
        let mut woken = 0;
        while !due.is_empty() {
            let few = due.take_few();
            let mut at = few.first;
            while !at.is_null() {
                // SAFETY: `woken` is in bounds.
                assert!(at == unsafe { base.add(woken) });
                woken += 1;
                // SAFETY: `at` is one of the waiters.
                at = unsafe { (*at).next };
            }
            assert!(woken.is_multiple_of(FEW) || woken == MANY);
        }
        assert!(due.take_few().is_empty());
        assert_eq!(woken, MANY);
    }

    #[test]
    fn removal_keeps_order() {
        let mut list = Waiters::new();
        let mut waiters = [1, 2, 3].map(Waiter::new);
        let base = waiters.as_mut_ptr();
        for i in [1, 0, 2] {
            // SAFETY: `i` is in bounds; the waiters stay in place until the end of the function.
            unsafe { list.insert(base.add(i)) };
        }
        for (i, left) in [(1, Some(1)), (0, Some(3)), (2, None)] {
            // SAFETY: The waiter is in the list, as each is removed once.
            unsafe { list.remove(base.add(i)) };
            assert_eq!(list.first_threshold(), left);
        }
        assert!(list.last.is_null());
    }

    fn lock() -> Result<Pin<KBox<WaitLock<u32>>>> {
        KBox::pin_init(
            WaitLock::new(0, c"kfi_waiters test", static_lock_class!()),
            GFP_KERNEL,
        )
    }

    #[test]
    fn sleep_expires_and_leaves_the_list() -> Result {
        let lock = lock()?;
        let mut left = false;
        let deadline = Timeout::from_raw(2).deadline();
        let wakeup = lock.sleep(1, deadline, |_| true, |_| left = true);
        assert!(wakeup == Wakeup::Expired);
        assert!(left);
        assert_eq!(lock.lock().lend().first_threshold(), None);
        Ok(())
    }

    #[test]
    fn no_sleep_when_not_needed() -> Result {
        let lock = lock()?;
        let deadline = Timeout::from_raw(-1).deadline();
        let wakeup = lock.sleep(
            1,
            deadline,
            |locked| locked.first_threshold() != Some(1),
            |_| (),
        );
        assert!(wakeup == Wakeup::NotNeeded);
        assert_eq!(lock.lock().lend().first_threshold(), None);
        Ok(())
    }
}
