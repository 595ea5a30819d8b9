// SPDX-License-Identifier: GPL-2.0

//! Wait queues that C may see.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h).

use core::{
    marker::PhantomPinned,
    ptr, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        LockClassKey, //
    },
    task::TASK_NORMAL,
    types::Opaque, //
};

use super::bindings;
use super::{
    sleep::{
        self,
        Wakeup, //
    },
    timeout::Deadline, //
};

/// A wait queue head.
///
/// # Invariants
///
/// `head` is an initialised `wait_queue_head_t`.
#[pin_data]
pub struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: A wait queue may be used from any thread.
unsafe impl Send for WaitQueue {}
// SAFETY: A wait queue is protected by its own lock.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Creates a wait queue.
    pub fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: `__init_waitqueue_head` initialises the head.
            // SAFETY: `slot` is valid for writes; `name` and `key` are static.
            head <- Opaque::ffi_init(|slot| unsafe {
                bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
            }),
            _pin: PhantomPinned,
        })
    }

    /// Returns the wait queue for C.
    pub fn as_raw(&self) -> *mut bindings::wait_queue_head {
        self.head.get()
    }

    /// Wakes all threads that wait; from any context.
    pub fn wake_up_all(&self) {
        // SAFETY: The head is initialised by the type invariants.
        unsafe { bindings::__wake_up(self.head.get(), TASK_NORMAL, 0, ptr::null_mut()) };
    }

    /// Returns whether somebody waits.
    ///
    /// A thread that has made the condition of [`Self::wait_until`] true, followed by a full
    /// barrier, and gets `false`, need not wake: a thread that comes now adds itself to the queue,
    /// and sees the condition after the full barrier in `prepare_to_wait_event`
    /// (`qemu-test/litmus/wait-queue-listeners.litmus`). So does a `WaitEntry`;
    /// others that listen need a barrier of their own.
    #[allow(dead_code, reason = "not every module asks")]
    pub fn has_waiters(&self) -> bool {
        let head = self.head.get();
        // SAFETY: The head is initialised by the type invariants.
        let list = unsafe { &raw mut (*head).head };
        // Relaxed: as waitqueue_active(), for which see above.
        // SAFETY: As above. The pointer is only ever written in one piece, and only compared.
        let next = unsafe { Atomic::from_ptr(&raw mut (*list).next) }.load(ordering::Relaxed);
        next != list
    }

    /// Sleeps until `condition` holds, whatever comes.
    ///
    /// The kernel does not complain about a task that sleeps so for long: what it waits for may be on
    /// another machine. It is as if the task had nothing to do.
    ///
    /// `condition` runs while the task is about to sleep and must not sleep itself.
    #[allow(dead_code, reason = "not every module has such ends")]
    pub fn wait_uninterruptible(&self, mut condition: impl FnMut() -> bool) {
        kernel::task::might_sleep();
        if condition() {
            return;
        }
        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: `entry` is valid memory that stays in place until `finish_wait` below.
        unsafe { bindings::init_wait_entry(entry.get(), 0) };
        loop {
            // SAFETY: `self` is initialised by the type invariants, `entry` by the call above.
            unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    entry.get(),
                    bindings::TASK_IDLE.cast_signed(),
                )
            };
            if condition() {
                break;
            }
            // SAFETY: May be called from any context that may sleep.
            unsafe { bindings::schedule() };
        }
        // SAFETY: As above.
        unsafe { bindings::finish_wait(self.head.get(), entry.get()) };
    }

    /// Wakes all, if no more than `few` threads wait, and nobody listens of whom it is not known how many there are
    /// behind, as behind an epoll instance; else wakes nobody and returns `false`. From any context.
    #[allow(dead_code, reason = "not every module has queues that may be long")]
    pub fn wake_up_few(&self, few: u32) -> bool {
        // SAFETY: The head is initialised by the type invariants.
        unsafe { bindings::wake_up_few(self.head.get(), few) }
    }

    /// Sleeps until `condition` holds, `deadline` passes or a signal is pending.
    ///
    /// `condition` runs while the task is about to sleep and must not sleep itself.
    pub fn wait_until(&self, deadline: Deadline, condition: impl FnMut() -> bool) -> Wakeup {
        self.wait_as(kernel::task::TASK_INTERRUPTIBLE, deadline, condition)
    }

    /// As [`Self::wait_until`], but of the signals only those end it that end the process.
    #[allow(dead_code, reason = "not every module waits so")]
    pub fn wait_killable(&self, deadline: Deadline, condition: impl FnMut() -> bool) -> Wakeup {
        let state = bindings::TASK_KILLABLE.cast_signed();
        self.wait_as(state, deadline, condition)
    }

    /// As [`Self::wait_until`], but no signal ends it.
    #[allow(dead_code, reason = "not every module waits so")]
    pub fn wait_for_a_while(&self, deadline: Deadline, condition: impl FnMut() -> bool) -> Wakeup {
        let state = bindings::TASK_IDLE.cast_signed();
        self.wait_as(state, deadline, condition)
    }

    /// As [`Self::wait_until`], but a wake-up before `condition` holds costs no more than to ask it: the thread
    /// goes on to sleep.
    ///
    /// `condition` is asked by whoever wakes, too, under the lock of the queue: from any context.
    #[allow(dead_code, reason = "not every module has queues")]
    pub fn wait_until_due<C: Fn() -> bool + Sync>(
        &self,
        deadline: Deadline,
        condition: &C,
    ) -> Wakeup {
        let waiter = DueWaiter {
            entry: Opaque::uninit(),
            condition,
        };
        let state = kernel::task::TASK_INTERRUPTIBLE;
        self.wait_with(state, deadline, condition, &waiter.entry, |entry| {
            // SAFETY: `entry` is that of `waiter`, initialised and in no queue yet.
            unsafe { (*entry).func = Some(DueWaiter::<C>::wake_callback) };
        })
    }

    /// Sleeps in `state`, as [`Self::wait_until`] says.
    fn wait_as(&self, state: c_int, deadline: Deadline, condition: impl FnMut() -> bool) -> Wakeup {
        let entry = Opaque::uninit();
        self.wait_with(state, deadline, condition, &entry, |_| ())
    }

    /// As [`Self::wait_as`], with an entry that is yet to be initialised, and is changed by `change` then.
    ///
    /// The entry is in the queue before `condition` is asked: see `qemu-test/litmus/wait-queue-listeners.litmus`.
    #[inline]
    fn wait_with(
        &self,
        state: c_int,
        deadline: Deadline,
        mut condition: impl FnMut() -> bool,
        entry: &Opaque<bindings::wait_queue_entry>,
        change: impl FnOnce(*mut bindings::wait_queue_entry),
    ) -> Wakeup {
        kernel::task::might_sleep();
        if condition() {
            return Wakeup::NotNeeded;
        }
        // SAFETY: `entry` is valid memory that stays in place until `finish_wait` below, as it is borrowed.
        unsafe { bindings::init_wait_entry(entry.get(), 0) };
        change(entry.get());
        let mut expired = false;
        let ret = loop {
            // SAFETY: `self` is initialised by the type invariants, `entry` by the call above.
            let signal =
                unsafe { bindings::prepare_to_wait_event(self.head.get(), entry.get(), state) };
            if condition() {
                break Wakeup::Woken;
            }
            if signal != 0 {
                break Wakeup::Interrupted;
            }
            if expired {
                break Wakeup::Expired;
            }
            expired = !sleep::schedule_until(deadline);
        };
        // SAFETY: As above. Nothing refers to `entry` any more afterwards.
        unsafe { bindings::finish_wait(self.head.get(), entry.get()) };
        ret
    }
}

/// A thread that waits in [`WaitQueue::wait_until_due`].
#[repr(C)]
struct DueWaiter<'a, C> {
    /// First, as C knows the waiter by it.
    entry: Opaque<bindings::wait_queue_entry>,
    condition: &'a C,
}

impl<C: Fn() -> bool + Sync> DueWaiter<'_, C> {
    /// Wakes the thread if its condition holds.
    ///
    /// # Safety
    ///
    /// `entry` must be that of a `DueWaiter<C>` in a wait queue whose lock is held.
    unsafe extern "C" fn wake_callback(
        entry: *mut bindings::wait_queue_entry,
        mode: c_uint,
        flags: c_int,
        key: *mut c_void,
    ) -> c_int {
        // SAFETY: The waiter begins with its entry, and stays as long as that is in the queue. The condition may
        // be asked from any thread.
        let is_due = unsafe { ((*entry.cast::<Self>()).condition)() };
        if !is_due {
            return 0;
        }
        // SAFETY: `entry` is valid, and in a queue whose lock is held, by the safety requirements. It is not looked
        // at any more.
        unsafe { bindings::autoremove_wake_function(entry, mode, flags, key) }
    }
}
