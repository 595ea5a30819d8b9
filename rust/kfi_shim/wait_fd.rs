// SPDX-License-Identifier: GPL-2.0

//! Descriptors for wait objects: what poll, select, epoll and read do with a counter.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        ArcBorrow, //
    },
    uaccess::UserPtr, //
};

use crate::{
    abi::WaitEvent,
    kfi::{
        consumer::{
            Counter,
            Listener, //
        },
        file::{
            AnonymousFile,
            FileOps,
            Poller,
            Ready, //
        },
        uaccess,
        wait_queue::{
            WaitQueue,
            Woken, //
        }, //
    },
    session::Use, //
};

/// Counts the changes of a counter and passes them on.
#[pin_data]
struct Changes {
    /// How often the counter's wait queue was woken.
    generation: Atomic<u64>,
    #[pin]
    queue: WaitQueue,
}

impl Changes {
    fn generation(&self) -> u64 {
        // Acquire: what is read of the counter afterwards is at least as new.
        self.generation.load(ordering::Acquire)
    }
}

impl Woken for Changes {
    fn woken(&self) {
        // Full: the change comes before its number, and that before the wake-up.
        self.generation.fetch_add(1, ordering::Full);
        self.queue.wake_up_all();
    }
}

/// The data of a wait descriptor.
#[pin_data]
pub(crate) struct WaitFd {
    // Dropped first: nobody listens any more when the counter is let go.
    #[pin]
    listener: Listener<Changes>,
    changes: Arc<Changes>,
    /// The generation read last.
    seen: Atomic<u64>,
    /// The error value read last.
    seen_error: Atomic<u64>,
    _counter: Use<Counter>,
}

impl WaitFd {
    /// Creates a file for the counter; fails with what KFI_GETWAIT says.
    pub(crate) fn new_file(counter: Use<Counter>, nonblock: bool) -> Result<AnonymousFile> {
        let changes = Arc::pin_init(
            pin_init!(Changes {
                generation: Atomic::new(0),
                queue <- WaitQueue::new(c"kfi_shim::WaitFd", static_lock_class!()),
            }),
            GFP_KERNEL,
        )?;
        let listener = Listener::new(counter.object()?.clone(), changes.clone())?;
        let error = counter.object()?.readerr();
        let this = Arc::pin_init(
            pin_init!(Self {
                listener <- listener,
                changes,
                seen: Atomic::new(0),
                seen_error: Atomic::new(error),
                _counter: counter,
            }),
            GFP_KERNEL,
        )?;
        AnonymousFile::new::<_, crate::LocalModule>(c"[kfi-wait]", this, nonblock)
    }

    fn has_changed(&self) -> bool {
        // Relaxed: only compared; who reads the counter does so in `read`.
        self.changes.generation() != self.seen.load(ordering::Relaxed)
    }
}

impl FileOps for WaitFd {
    fn read(this: ArcBorrow<'_, Self>, buffer: UserPtr, len: usize, nonblock: bool) -> Result<usize> {
        if len < size_of::<WaitEvent>() {
            return Err(EINVAL);
        }
        if !this.has_changed() {
            if nonblock {
                return Err(EAGAIN);
            }
            this.changes.queue.wait_interruptible(|| this.has_changed())?;
        }
        // Before the values: a change that they miss has a later number.
        let generation = this.changes.generation();
        let event = WaitEvent {
            value: this.listener.counter().read(),
            error_value: this.listener.counter().readerr(),
        };
        uaccess::write(buffer, size_of::<WaitEvent>(), &event)?;
        // Relaxed: two threads that read at once may leave the older number, which makes the
        // descriptor readable once more, never less.
        this.seen_error.store(event.error_value, ordering::Relaxed);
        this.seen.store(generation, ordering::Relaxed);
        Ok(size_of::<WaitEvent>())
    }

    fn poll(this: ArcBorrow<'_, Self>, poller: &Poller<'_>) -> Ready {
        poller.wait(&this.changes.queue);
        let mut ready = Ready::NONE;
        if this.has_changed() {
            ready = ready | Ready::READABLE;
        }
        // Relaxed: as above.
        if this.listener.counter().readerr() != this.seen_error.load(ordering::Relaxed) {
            ready = ready | Ready::ERROR;
        }
        ready
    }
}
