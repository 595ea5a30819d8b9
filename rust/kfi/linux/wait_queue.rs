// SPDX-License-Identifier: GPL-2.0

//! Wait queues that C may see, and entries that listen to one.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h).

use core::{
    marker::PhantomPinned,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        LockClassKey, //
    },
    task::TASK_NORMAL,
    types::Opaque, //
};

use super::bindings;
use super::{
    timeout::Deadline,
    waiters::{
        self,
        Wakeup, //
    }, //
};

/// A wait queue head.
///
/// # Invariants
///
/// `head` is an initialised `wait_queue_head_t`.
#[pin_data]
pub(crate) struct WaitQueue {
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
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
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
    pub(crate) fn as_raw(&self) -> *mut bindings::wait_queue_head {
        self.head.get()
    }

    /// Wakes all threads that wait; from any context.
    pub(crate) fn wake_up_all(&self) {
        // SAFETY: The head is initialised by the type invariants.
        unsafe { bindings::__wake_up(self.head.get(), TASK_NORMAL, 0, ptr::null_mut()) };
    }

    /// Returns whether somebody waits.
    ///
    /// A thread that has made the condition of [`Self::wait_until`] true, followed by a full
    /// barrier, and gets `false`, need not wake: a thread that comes now adds itself to the queue,
    /// and sees the condition after the full barrier in `prepare_to_wait_event`. Others that listen
    /// have no such barrier.
    pub(crate) fn has_waiters(&self) -> bool {
        let head = self.head.get();
        // SAFETY: The head is initialised by the type invariants.
        let list = unsafe { &raw mut (*head).head };
        // Relaxed: as waitqueue_active(), for which see above.
        // SAFETY: As above. The pointer is only ever written in one piece, and only compared.
        let next = unsafe { Atomic::from_ptr(&raw mut (*list).next) }.load(ordering::Relaxed);
        next != list
    }

    /// Sleeps until `condition` holds, whatever comes: for ends that are near.
    ///
    /// `condition` runs while the task is about to sleep and must not sleep itself.
    pub(crate) fn wait_uninterruptible(&self, mut condition: impl FnMut() -> bool) {
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
                    kernel::task::TASK_UNINTERRUPTIBLE,
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

    /// Sleeps until `condition` holds, `deadline` passes or a signal is pending.
    ///
    /// `condition` runs while the task is about to sleep and must not sleep itself.
    pub(crate) fn wait_until(
        &self,
        deadline: Deadline,
        mut condition: impl FnMut() -> bool,
    ) -> Wakeup {
        kernel::task::might_sleep();
        if condition() {
            return Wakeup::NotNeeded;
        }
        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: `entry` is valid memory that stays in place until `finish_wait` below.
        unsafe { bindings::init_wait_entry(entry.get(), 0) };
        let mut expired = false;
        let ret = loop {
            // SAFETY: `self` is initialised by the type invariants, `entry` by the call above.
            let signal = unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    entry.get(),
                    kernel::task::TASK_INTERRUPTIBLE,
                )
            };
            if condition() {
                break Wakeup::Woken;
            }
            if signal != 0 {
                break Wakeup::Interrupted;
            }
            if expired {
                break Wakeup::Expired;
            }
            expired = !waiters::schedule_until(deadline);
        };
        // SAFETY: As above. Nothing refers to `entry` any more afterwards.
        unsafe { bindings::finish_wait(self.head.get(), entry.get()) };
        ret
    }
}

/// The callback of a [`WaitEntry`].
pub(crate) trait Woken: Send + Sync + 'static {
    /// The wait queue was woken.
    ///
    /// Called with the queue's lock held and interrupts disabled.
    fn woken(&self);
}

/// A listener to a wait queue that does not sleep on it.
///
/// # Invariants
///
/// `entry` is in the queue `queue`, whose owner keeps it until this is dropped.
#[pin_data(PinnedDrop)]
pub(crate) struct WaitEntry<T: Woken> {
    #[pin]
    entry: Opaque<bindings::wait_queue_entry>,
    queue: NonNull<bindings::wait_queue_head>,
    listener: Arc<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The entry is only touched by functions that take the queue's lock.
unsafe impl<T: Woken> Send for WaitEntry<T> {}
// SAFETY: As above.
unsafe impl<T: Woken> Sync for WaitEntry<T> {}

impl<T: Woken> WaitEntry<T> {
    /// Begins to listen.
    ///
    /// # Safety
    ///
    /// `queue` must be an initialised wait queue that stays until the entry is dropped.
    pub(crate) unsafe fn new(
        queue: NonNull<bindings::wait_queue_head>,
        listener: Arc<T>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            queue,
            listener,
            _pin: PhantomPinned,
            // Last, since `woken` may be called from here on.
            // INVARIANT: `add_wait_queue` adds the entry.
            // SAFETY: `slot` is valid for writes and pinned; the queue is valid by the safety
            // requirements.
            entry <- Opaque::ffi_init(|slot| unsafe {
                bindings::init_waitqueue_func_entry(slot, Some(Self::func_callback));
                bindings::add_wait_queue(queue.as_ptr(), slot);
            }),
        })
    }

    /// Passes a wake-up on.
    ///
    /// # Safety
    ///
    /// `entry` must be the entry of a `WaitEntry` of the same `T` that is in its queue.
    unsafe extern "C" fn func_callback(
        entry: *mut bindings::wait_queue_entry,
        _mode: c_uint,
        _flags: c_int,
        _key: *mut c_void,
    ) -> c_int {
        let entry: *const Opaque<bindings::wait_queue_entry> = Opaque::cast_from(entry);
        // SAFETY: By the safety requirements; the queue's lock, which is held, keeps the entry in
        // the queue.
        let this = unsafe { &*container_of!(entry, Self, entry) };
        this.listener.woken();
        0
    }
}

#[pinned_drop]
impl<T: Woken> PinnedDrop for WaitEntry<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants. No call of `func_callback` outlasts this one, as it
        // takes the queue's lock.
        unsafe { bindings::remove_wait_queue(self.queue.as_ptr(), self.entry.get()) };
    }
}
