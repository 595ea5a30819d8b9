// SPDX-License-Identifier: GPL-2.0

//! Entries that listen to a wait queue.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h).

use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};
use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::ordering,
        barrier::smp_mb,
        Arc, //
    },
    types::Opaque, //
};

use super::bindings;

/// The callback of a [`WaitEntry`].
pub trait Woken: Send + Sync + 'static {
    /// The wait queue was woken.
    ///
    /// Called with the queue's lock held and interrupts disabled, maybe in a hard interrupt. So it must
    /// not sleep, nor do anything that takes that lock again: whatever wakes the same queue would wait
    /// for itself.
    fn woken(this: &Arc<Self>);
}

/// A listener to a wait queue that does not sleep on it.
///
/// # Invariants
///
/// `entry` is in the queue `queue`, whose owner keeps it until this is dropped.
#[pin_data(PinnedDrop)]
pub struct WaitEntry<T: Woken> {
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
    /// Begins to listen: whoever looks after this sees a change, or it is told.
    ///
    /// # Safety
    ///
    /// `queue` must be an initialised wait queue that stays until the entry is dropped.
    pub unsafe fn new(
        queue: NonNull<bindings::wait_queue_head>,
        listener: Arc<T>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            queue,
            listener,
            _pin: PhantomPinned,
            // Last, since `woken` may be called from here on.
            // INVARIANT: `add_wait_queue` adds the entry.
            entry <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and pinned; the queue is valid by the safety
                // requirements.
                unsafe {
                    bindings::init_waitqueue_func_entry(slot, Some(Self::func_callback));
                    bindings::add_wait_queue(queue.as_ptr(), slot);
                }
                // A thread that has made a change, fully ordered, sees that somebody listens, or the change
                // is seen after this (`qemu-test/litmus/wait-entry.litmus`).
                smp_mb(ordering::Full);
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
        T::woken(&this.listener);
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
