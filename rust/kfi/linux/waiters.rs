// SPDX-License-Identifier: GPL-2.0

//! Sleeping threads in the order of the value that each waits for.
//!
//! A wait queue wakes all threads, or the first. Here a thread says which value it waits for,
//! and the thread that raises the value takes out those that are due and no others. It does so in one
//! cut under the lock of the object that they wait for, in O(log n) steps however many they are, and
//! that decides which threads are due: one that begins to wait later is not.
//! They are woken a few at a time, as it may be an interrupt that wakes them: these are taken out
//! under the lock and woken after it was released.
//!
//! A thread's entry lives on its stack, so that to wait allocates nothing. While it is queued, be it due
//! or not, its thread takes it out under the lock. A waker that takes it out keeps nothing
//! but the thread: that may leave at once, if it is awake for another reason, and the wake-up that
//! comes later is spurious, which every sleeper in the kernel has to tolerate.

mod tree;

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    container_of,
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
    task::Task, //
};

use super::{
    random::random_u64,
    sleep::{
        schedule_until,
        set_current_state,
        set_current_state_unordered,
        TaskState,
        Wakeup, //
    },
    timeout::{
        Deadline,
        Timeout, //
    }, //
};

use tree::{
    Node,
    Tree, //
};

/// In one of the two trees; its thread may take it out.
const QUEUED: u32 = 0;
/// Taken out, as it is due.
const WOKEN: u32 = 1;

/// So many threads are taken out at a time at most.
pub const FEW: usize = 16;

/// A sleeping thread, on its own stack.
///
/// Other threads reach it by raw pointers, with the lock held and while it is queued; the state is
/// atomic, as its thread looks at it without the lock.
///
/// # Invariants
///
/// `task` is the thread that has made this, and does not end while it is queued.
struct Waiter {
    /// Where it stands; its key is the value that the thread waits for.
    node: Node,
    /// The thread. Only a waker takes a reference.
    task: NonNull<Task>,
    /// [`QUEUED`] or [`WOKEN`].
    state: Atomic<u32>,
}

impl Waiter {
    /// The current thread.
    fn new(threshold: u64) -> Self {
        // INVARIANT: It is queued by its thread, which waits until it is not.
        Self {
            node: Node::new(threshold),
            task: NonNull::from(&**kernel::current!()),
            state: Atomic::new(QUEUED),
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

    /// Returns the node of a waiter.
    ///
    /// # Safety
    ///
    /// `waiter` must be in place.
    unsafe fn node(waiter: *mut Self) -> *mut Node {
        // SAFETY: By the safety requirements.
        unsafe { ptr::addr_of_mut!((*waiter).node) }
    }
}

/// The threads that sleep until a value reaches their threshold.
///
/// # Invariants
///
/// - The nodes in both trees are those of waiters in state [`QUEUED`], which stay in place while they
///   are there.
/// - `waiting` is sorted by threshold, equal thresholds by arrival.
struct Waiters {
    /// The waiters that are not due.
    waiting: Tree,
    /// The waiters that are due and yet to be woken, in this order.
    due: Tree,
    /// The state of the generator of priorities; never 0.
    random: u64,
}

impl Waiters {
    /// Without waiters; `seed` is for the priorities.
    const fn new(seed: u64) -> Self {
        // INVARIANT: Both trees are empty.
        Self {
            waiting: Tree::new(),
            due: Tree::new(),
            random: seed | 1,
        }
    }

    /// Returns the next priority (xorshift64*).
    fn next_priority(&mut self) -> u32 {
        let mut x = self.random;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random = x;
        // The upper half is the better one.
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// Returns the lowest threshold of those that wait.
    fn first_threshold(&self) -> Option<u64> {
        self.waiting.first_key()
    }

    /// Lets all be due that wait for `value` or less, and takes out the first `few` that are.
    fn detach_due(&mut self, value: u64, few: usize) -> Due {
        let due = self.waiting.cut(value);
        self.due.append(due);
        self.detach_few(few)
    }

    /// Takes out the first `few` of those that are due, [`FEW`] at most.
    fn detach_few(&mut self, few: usize) -> Due {
        let mut tasks = [const { None }; FEW];
        for task in tasks.iter_mut().take(few) {
            let Some(node) = self.due.pop() else {
                break;
            };
            // SAFETY: By the type invariants it is the node of a waiter that is in place.
            let waiter = unsafe { container_of!(node, Waiter, node) };
            // SAFETY: As above; its thread writes nothing of it while it is queued.
            let thread = unsafe { (*waiter).task };
            // SAFETY: By the type invariants the thread has not ended, as the waiter is queued still.
            *task = Some(ARef::from(unsafe { thread.as_ref() }));
            // INVARIANT: It is in no tree any more.
            // Release: the accesses above come before the thread may discard the waiter, which must
            // not be touched from here on.
            // See `qemu-test/litmus/waiter-discard.litmus`.
            // SAFETY: As above.
            unsafe { Waiter::state(waiter) }.store(WOKEN, ordering::Release);
        }
        Due {
            tasks,
            leaves_others: !self.due.is_empty(),
        }
    }

    /// Puts a waiter where it belongs.
    ///
    /// # Safety
    ///
    /// `waiter` must be valid, in state [`QUEUED`], in no tree, and stay in place until it is
    /// removed or woken.
    unsafe fn insert(&mut self, waiter: *mut Waiter) {
        let priority = self.next_priority();
        // INVARIANT: It is behind those that have the same threshold.
        // SAFETY: By the safety requirements.
        unsafe { self.waiting.insert(Waiter::node(waiter), priority) };
    }

    /// Takes a waiter out; returns whether it was due.
    ///
    /// # Safety
    ///
    /// `waiter` must be among these, in state [`QUEUED`].
    unsafe fn remove(&mut self, waiter: *mut Waiter) -> bool {
        // SAFETY: By the safety requirements it is in place, and in one of the two trees.
        unsafe {
            let node = Waiter::node(waiter);
            let was_due = self.due.contains(node);
            if was_due {
                self.due.remove(node);
            } else {
                self.waiting.remove(node);
            }
            was_due
        }
    }
}

/// Threads that were taken out and are yet to be woken, outside of the lock.
#[must_use = "drop it after the lock was released"]
pub struct Due {
    /// The first of them; there are none behind the first place without one.
    tasks: [Option<ARef<Task>>; FEW],
    leaves_others: bool,
}

impl Due {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tasks.first().is_none_or(Option::is_none)
    }

    /// Returns whether there is one alone.
    #[allow(dead_code, reason = "not every waker tells one from several")]
    pub fn is_one(&self) -> bool {
        !self.is_empty() && self.tasks.get(1).is_none_or(Option::is_none)
    }

    /// Returns whether others were due that are yet to be taken out, by [`WaitGuard::detach_few`].
    pub fn leaves_others(&self) -> bool {
        self.leaves_others
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        for task in self.tasks.iter().map_while(Option::as_ref) {
            task.wake_up();
        }
    }
}

/// The part that the lock protects.
struct Inner<T> {
    waiters: Waiters,
    data: T,
}

/// A spinlock, taken with interrupts disabled, around data that threads wait for.
#[pin_data]
pub struct WaitLock<T> {
    #[pin]
    inner: SpinLockIrq<Inner<T>>,
}

/// The lock, held.
#[must_use = "the lock is released when this is dropped"]
pub struct WaitGuard<'a, T>(Guard<'a, Inner<T>, SpinLockIrqBackend>);

/// The lock, held by the lender of this.
pub struct Locked<'a, T>(&'a mut Inner<T>);

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
    pub fn lend(&mut self) -> Locked<'_, T> {
        Locked(&mut self.0)
    }

    /// Returns whether [`Self::detach_due`] would take anybody out. To move many places about in which there is nobody
    /// takes longer than to ask.
    #[inline]
    #[allow(dead_code, reason = "not every waker asks before")]
    pub fn has_due(&self, value: u64) -> bool {
        let waiters = &self.0.waiters;
        !waiters.due.is_empty()
            || waiters
                .first_threshold()
                .is_some_and(|first| first <= value)
    }

    /// Lets all threads be due that wait for `value` or less, and takes out the first `few` of those
    /// that are due and yet to be woken.
    pub fn detach_due(&mut self, value: u64, few: usize) -> Due {
        self.0.waiters.detach_due(value, few)
    }

    /// Lets all threads be due that wait, as [`Self::detach_due`] does.
    pub fn detach_all(&mut self, few: usize) -> Due {
        self.detach_due(u64::MAX, few)
    }

    /// Takes out the first `few` of those that are due and yet to be woken.
    pub fn detach_few(&mut self, few: usize) -> Due {
        self.0.waiters.detach_few(few)
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
    pub fn first_threshold(&self) -> Option<u64> {
        self.0.waiters.first_threshold()
    }
}

impl<T: Unpin> WaitLock<T> {
    /// Creates a lock.
    pub fn new(
        data: T,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        let inner = Inner {
            waiters: Waiters::new(random_u64()),
            data,
        };
        pin_init!(Self {
            inner <- SpinLockIrq::new(inner, name, key),
        })
    }

    /// Takes the lock.
    pub fn lock(&self) -> WaitGuard<'_, T> {
        WaitGuard(self.inner.lock())
    }

    /// Sleeps until `threshold` is due, `deadline` passes or a signal is pending.
    ///
    /// `enter` runs under the lock once the thread is among those that wait, and says whether there
    /// is need to sleep; `leave` runs under the lock when the thread, not being due, took itself out
    /// again. A thread that is due counts as woken, even if its deadline or a signal comes first.
    ///
    /// A thread that raises the value must either see this one, which was put in under the lock, or
    /// be seen by `enter`.
    pub fn sleep(
        &self,
        threshold: u64,
        deadline: Deadline,
        enter: impl FnOnce(Locked<'_, T>) -> bool,
        leave: impl FnOnce(Locked<'_, T>),
    ) -> Wakeup {
        self.sleep_as(TaskState::Interruptible, threshold, deadline, enter, leave)
    }

    /// As [`Self::sleep`], whatever comes, until `threshold` is due. The kernel does not complain about a
    /// task that sleeps so for long.
    #[allow(dead_code, reason = "not every module has such ends")]
    pub fn sleep_uninterruptible(&self, threshold: u64, enter: impl FnOnce(Locked<'_, T>) -> bool) {
        let deadline = Timeout::Infinite.deadline();
        // Neither a signal nor a deadline ends it.
        let _ = self.sleep_as(TaskState::Idle, threshold, deadline, enter, |_| ());
    }

    /// Sleeps in a state, as [`Self::sleep`] says.
    #[inline]
    fn sleep_as(
        &self,
        asleep: TaskState,
        threshold: u64,
        deadline: Deadline,
        enter: impl FnOnce(Locked<'_, T>) -> bool,
        leave: impl FnOnce(Locked<'_, T>),
    ) -> Wakeup {
        kernel::task::might_sleep();

        let mut waiter = Waiter::new(threshold);
        // From here on the waiter is reached through this pointer only. It stays in place until the
        // end of the function, which comes after it was removed, or is seen to be woken.
        let waiter = ptr::addr_of_mut!(waiter);
        // SAFETY: It is in place.
        let state = unsafe { Waiter::state(waiter) };

        {
            let mut guard = self.inner.lock();
            // SAFETY: It is queued and in no tree; see above for how long it stays.
            unsafe { guard.waiters.insert(waiter) };
            if !enter(Locked(&mut guard)) {
                // SAFETY: It has just been inserted, and closures cannot reach the waiters.
                unsafe { guard.waiters.remove(waiter) };
                leave(Locked(&mut guard));
                return Wakeup::NotNeeded;
            }
            // A waker finds the waiter under the lock, and so the state of the task, without a
            // barrier here: its wake-up is not lost, and there is no need to look before the task
            // sleeps. A signal is looked for by the scheduler.
            // See `qemu-test/litmus/waiter-asleep.litmus`.
            set_current_state_unordered(asleep);
        }

        let ended = loop {
            if asleep.minds_signals() && kernel::current!().signal_pending() {
                break Wakeup::Interrupted;
            }
            let expired = !schedule_until(deadline);
            // Acquire: the waker has let go of the waiter.
            if state.load(ordering::Acquire) == WOKEN {
                break Wakeup::Woken;
            }
            if expired {
                break Wakeup::Expired;
            }
            // It was woken for another reason. This time without the lock: the state of the task is
            // set before the state of the waiter is read, with a full barrier between. A waker does
            // both the other way round: its wake-up is not lost.
            // See `qemu-test/litmus/waiter-wake-up.litmus`.
            set_current_state(asleep);
            // Acquire: as above.
            if state.load(ordering::Acquire) == WOKEN {
                break Wakeup::Woken;
            }
        };
        // It may be about to sleep still; a wake-up that is on its way finds it running.
        set_current_state_unordered(TaskState::Running);
        if ended == Wakeup::Woken {
            return ended;
        }

        let mut guard = self.inner.lock();
        // Relaxed: it changes under the lock only.
        if state.load(ordering::Relaxed) == WOKEN {
            return Wakeup::Woken;
        }
        // SAFETY: It is among those that wait, or are due, while it is queued.
        if unsafe { guard.waiters.remove(waiter) } {
            // Before the deadline, or the signal, for all that anybody can tell.
            return Wakeup::Woken;
        }
        leave(Locked(&mut guard));
        ended
    }
}

#[cfg(unit_tests)]
#[kunit_tests(linux_waiters)]
mod tests {
    use super::*;
    use kernel::static_lock_class;

    /// Without waiters.
    fn none() -> Waiters {
        Waiters::new(0x1234_5678_9abc_def1)
    }

    /// Checks which waiters are left in a tree, and empties it.
    fn check_tree(tree: &mut Tree, base: *mut Waiter, expected: &[usize]) {
        for &i in expected {
            // SAFETY: `i` is in bounds for all callers.
            assert!(tree.pop() == Some(unsafe { Waiter::node(base.add(i)) }));
        }
        assert!(tree.is_empty());
    }

    /// Returns whether a waiter was taken out to be woken.
    fn is_woken(base: *const Waiter, i: usize) -> bool {
        // SAFETY: `i` is in bounds for all callers.
        let state = unsafe { Waiter::state(base.add(i)) };
        // Relaxed: there is one thread only.
        state.load(ordering::Relaxed) == WOKEN
    }

    /// Returns how many of the first waiters were.
    fn count_woken(base: *const Waiter, count: usize) -> usize {
        (0..count).filter(|i| is_woken(base, *i)).count()
    }

    /// Inserts waiters with `thresholds`, cuts at `value` and compares what is due and what stays.
    fn check<const N: usize>(thresholds: [u64; N], value: u64, due: &[usize], rest: &[usize]) {
        let mut list = none();
        let mut waiters = thresholds.map(Waiter::new);
        let base = waiters.as_mut_ptr();
        for i in 0..N {
            // SAFETY: `i` is in bounds; the waiters stay in place until the end of the function.
            unsafe { list.insert(base.add(i)) };
        }
        // One by one, to see in which order.
        let mut cut = list.detach_due(value, 1);
        for (at, &i) in due.iter().enumerate() {
            assert!(!cut.is_empty());
            assert!(is_woken(base, i));
            assert_eq!(count_woken(base, N), at + 1);
            assert_eq!(cut.leaves_others(), at + 1 != due.len());
            cut = list.detach_few(1);
        }
        assert!(cut.is_empty() && !cut.leaves_others());
        check_tree(&mut list.waiting, base, rest);
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

        let mut list = none();
        let mut waiters = [5; MANY].map(Waiter::new);
        let base = waiters.as_mut_ptr();
        for i in 0..MANY {
            // SAFETY: `i` is in bounds; the waiters stay in place until the end of the function.
            unsafe { list.insert(base.add(i)) };
        }
        let mut due = list.detach_due(4, FEW);
        assert!(due.is_empty() && !due.leaves_others());
        drop(due);
        due = list.detach_due(5, FEW);
        // All are, at once.
        assert_eq!(list.first_threshold(), None);
        let mut woken = 0;
        while !due.is_empty() {
            woken = (woken + FEW).min(MANY);
            assert_eq!(count_woken(base, MANY), woken);
            assert_eq!(count_woken(base, woken), woken);
            assert_eq!(due.leaves_others(), woken != MANY);
            // No more than there is room for.
            due = list.detach_few(MANY);
        }
        assert_eq!(woken, MANY);
    }

    #[test]
    fn others_are_not_due_with_those_that_are() {
        const MANY: usize = FEW + 3;

        let mut list = none();
        let mut waiters = [7; MANY + 2].map(Waiter::new);
        let base = waiters.as_mut_ptr();
        for i in 0..MANY {
            // SAFETY: `i` is in bounds; the waiters stay in place until the end of the function.
            unsafe { list.insert(base.add(i)) };
        }
        let few = list.detach_due(7, FEW);
        assert!(few.leaves_others());
        drop(few);
        // Waiters that come now wait, and the last one that is due leaves by itself.
        for i in [MANY, MANY + 1] {
            // SAFETY: As above.
            unsafe { list.insert(base.add(i)) };
        }
        // SAFETY: It is queued, in one of the trees.
        assert!(unsafe { list.remove(base.add(MANY - 1)) });
        // SAFETY: As above.
        assert!(!unsafe { list.remove(base.add(MANY)) });
        // Waiters that are due at a lower value come behind.
        let few = list.detach_due(6, FEW);
        assert_eq!(count_woken(base, MANY - 1), MANY - 1);
        assert_eq!(count_woken(base, MANY + 2), MANY - 1);
        assert!(!few.leaves_others());
        drop(few);
        check_tree(&mut list.waiting, base, &[MANY + 1]);
    }

    #[test]
    fn removal_keeps_order() {
        let mut list = none();
        let mut waiters = [1, 2, 3].map(Waiter::new);
        let base = waiters.as_mut_ptr();
        for i in [1, 0, 2] {
            // SAFETY: `i` is in bounds; the waiters stay in place until the end of the function.
            unsafe { list.insert(base.add(i)) };
        }
        for (i, left) in [(1, Some(1)), (0, Some(3)), (2, None)] {
            // SAFETY: The waiter is among them, as each is removed once.
            assert!(!unsafe { list.remove(base.add(i)) });
            assert_eq!(list.first_threshold(), left);
        }
        assert!(list.waiting.is_empty());
    }

    fn lock() -> Result<Pin<KBox<WaitLock<u32>>>> {
        KBox::pin_init(
            WaitLock::new(0, c"waiters test", static_lock_class!()),
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
