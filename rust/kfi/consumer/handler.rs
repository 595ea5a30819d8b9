// SPDX-License-Identifier: GPL-2.0

//! Handlers of queues, which count, and queues with handlers.

use core::ptr::NonNull;
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

use super::{
    contexts::{
        Contexts,
        Note,
        OwnerId, //
    },
    object::{
        Closable,
        Ending,
        HasWaitQueue,
        ToClose, //
    }, //
};
use crate::kfi::{
    bindings,
    context::Context,
    linux::{
        live::Findable,
        sleep::Wakeup,
        timeout::Timeout,
        wait_queue::WaitQueue, //
    }, //
};

/// How often a handler was called.
#[pin_data]
pub struct Calls {
    count: Atomic<u64>,
    /// The CPU of the last call.
    cpu: Atomic<i32>,
    #[pin]
    queue: WaitQueue,
    /// As long as there is this the handlers may be called, and the module stays. Of a queue that
    /// cannot be closed that is for ever.
    _findable: Findable,
}

/// The count of a queue's handler, whose address stands for a number.
pub(super) struct Handler {
    // Dropped first: as long as the calls are noted, nothing else is where they are.
    _note: Note,
    calls: Arc<Calls>,
}

impl Handler {
    /// For a queue that is `owner`, whose context stands for a number; none without.
    pub(super) fn new(
        contexts: &Arc<Contexts>,
        owner: OwnerId,
        number: Option<u64>,
    ) -> Result<Option<Self>> {
        let Some(number) = number else {
            return Ok(None);
        };
        let calls = Calls::new()?;
        let address = Arc::as_ptr(&calls).addr();
        Ok(Some(Self {
            _note: Contexts::note(contexts, owner, number, address)?,
            calls,
        }))
    }

    /// Returns the calls.
    pub(super) fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// Returns where the calls are, which is the context of the queue.
    pub(super) fn address(&self) -> *mut c_void {
        Arc::as_ptr(&self.calls).cast_mut().cast()
    }
}

/// A queue, and what stays until it is closed: its handler, if it has one, and whatever `K` is.
pub(super) struct Handled<Q: Ending, K> {
    queue: Q,
    handler: Option<Handler>,
    kept: Arc<K>,
}

impl<Q: Ending, K> Handled<Q, K> {
    /// Opens a queue. `open` gets to know whether it has a handler, and the context of the queue: what
    /// the handler counts, or else the one given.
    pub(super) fn open(
        handler: Option<Handler>,
        kept: Arc<K>,
        context: Context,
        open: impl FnOnce(bool, *mut c_void) -> Result<Q>,
    ) -> Result<Self> {
        let context = handler.as_ref().map_or(context.as_raw(), Handler::address);
        Ok(Self {
            queue: open(handler.is_some(), context)?,
            handler,
            kept,
        })
    }

    /// Returns what the handler counts.
    pub(super) fn handled(&self) -> Option<&Arc<Calls>> {
        self.handler.as_ref().map(Handler::calls)
    }

    /// Returns what is kept.
    pub(super) fn kept(&self) -> &K {
        &self.kept
    }
}

impl<Q: Ending, K> Drop for Handled<Q, K> {
    fn drop(&mut self) {
        if !self.queue.end() {
            // The handler may still be called, and what is told may be about anything.
            core::mem::forget((self.handler.take(), self.kept.clone()));
        }
    }
}

impl<Q: Ending, K> core::ops::Deref for Handled<Q, K> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.queue
    }
}

impl<Q: Ending + Closable, K> Closable for Handled<Q, K> {
    fn close_with(&mut self, permit: ToClose) -> Result {
        self.queue.close_with(permit)
    }
}

// SAFETY: As for what it wraps, which is dropped with it.
unsafe impl<Q, K> HasWaitQueue for Handled<Q, K>
where
    Q: Ending + HasWaitQueue,
    K: Send + Sync + 'static,
{
    fn wait_queue(&self) -> Result<NonNull<bindings::wait_queue_head>> {
        self.queue.wait_queue()
    }
}

impl Calls {
    /// None so far.
    pub(in crate::kfi) fn new() -> Result<Arc<Self>> {
        let findable = Findable::new()?;
        Arc::pin_init(
            pin_init!(Self {
                count: Atomic::new(0),
                cpu: Atomic::new(-1),
                queue <- WaitQueue::new(c"kfi::Calls", static_lock_class!()),
                _findable: findable,
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Counts a call.
    fn called(&self) {
        // SAFETY: Callable from any context.
        let cpu = unsafe { bindings::raw_smp_processor_id() };
        // Relaxed: published by the count.
        self.cpu.store(cpu, ordering::Relaxed);
        // Full: before the wake-up.
        // See `qemu-test/litmus/KFI-handler-calls.litmus`.
        self.count.fetch_add(1, ordering::Full);
        self.queue.wake_up_all();
    }

    /// Counts a call of the handler of a completion queue.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a `Calls` that is not dropped meanwhile.
    pub(super) unsafe extern "C" fn comp_handler(
        _cq: *mut bindings::kfid_cq,
        context: *mut c_void,
    ) {
        // SAFETY: By the safety requirements.
        unsafe { &*context.cast::<Self>() }.called();
    }

    /// Counts a call of the handler of an event queue.
    ///
    /// # Safety
    ///
    /// As for [`Self::comp_handler`].
    pub(super) unsafe extern "C" fn event_handler(
        _eq: *mut bindings::kfid_eq,
        context: *mut c_void,
    ) {
        // SAFETY: By the safety requirements.
        unsafe { &*context.cast::<Self>() }.called();
    }

    /// Sleeps until there were `calls`, at most `timeout` milliseconds, or without end if that is
    /// negative.
    pub fn wait(&self, calls: u64, timeout: c_int) -> Result {
        let deadline = Timeout::from_raw(timeout).deadline();
        match self.queue.wait_until(deadline, || self.count() >= calls) {
            Wakeup::NotNeeded | Wakeup::Woken => Ok(()),
            Wakeup::Expired => Err(ETIMEDOUT),
            Wakeup::Interrupted => Err(EINTR),
        }
    }

    /// Returns how many calls there were.
    pub fn count(&self) -> u64 {
        // Acquire: the CPU is at least as new.
        self.count.load(ordering::Acquire)
    }

    /// Returns the CPU of the last call, -1 if there was none.
    pub fn cpu(&self) -> i32 {
        // Relaxed: only shown.
        self.cpu.load(ordering::Relaxed)
    }
}
