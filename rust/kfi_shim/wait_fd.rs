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
        Arc, //
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
        timeout::Deadline,
        uaccess,
        wait_queue::{
            WaitQueue,
            Woken, //
        },
        waiters::Wakeup, //
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
    /// Returns how often the counter has changed.
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
    _counter: Use<Arc<Counter>>,
}

/// What KFI_GETWAIT refuses.
pub(crate) struct Refused(pub(crate) Error);

impl WaitFd {
    /// Creates a file for the counter.
    pub(crate) fn new_file(
        counter: Use<Arc<Counter>>,
        nonblock: bool,
    ) -> Result<core::result::Result<AnonymousFile, Refused>> {
        let changes = Arc::pin_init(
            pin_init!(Changes {
                generation: Atomic::new(0),
                queue <- WaitQueue::new(c"kfi_shim::WaitFd", static_lock_class!()),
            }),
            GFP_KERNEL,
        )?;
        let listener = match Listener::new(counter.clone(), changes.clone()) {
            Ok(listener) => listener,
            Err(error) => return Ok(Err(Refused(error))),
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                listener <- listener,
                changes,
                seen: Atomic::new(0),
                // A change that this misses is heard of.
                seen_error: Atomic::new(counter.readerr()),
                _counter: counter,
            }),
            GFP_KERNEL,
        )?;
        let file = AnonymousFile::new::<_, crate::LocalModule>(c"[kfi-wait]", this, nonblock)?;
        Ok(Ok(file))
    }

    /// Returns whether the error value is not the one read last.
    fn error_differs(&self) -> bool {
        // Relaxed: only compared.
        self.listener.counter().readerr() != self.seen_error.load(ordering::Relaxed)
    }

    /// Returns whether there is something to read.
    fn has_changed(&self) -> bool {
        // Relaxed: only compared; who reads the counter does so in `read`.
        self.changes.generation() != self.seen.load(ordering::Relaxed) || self.error_differs()
    }
}

#[vtable]
impl FileOps for WaitFd {
    fn read(&self, buffer: UserPtr, len: usize, nonblock: bool) -> Result<usize> {
        let size = size_of::<WaitEvent>();
        if len < size {
            return Err(EINVAL);
        }
        if !self.has_changed() {
            if nonblock {
                return Err(EAGAIN);
            }
            let queue = &self.changes.queue;
            if queue.wait_until(Deadline::NEVER, || self.has_changed()) == Wakeup::Interrupted {
                return Err(ERESTARTSYS);
            }
        }
        // Before the values: a change that they miss has a later number.
        let generation = self.changes.generation();
        let event = WaitEvent {
            value: self.listener.counter().read(),
            error_value: self.listener.counter().readerr(),
        };
        uaccess::write(buffer, size, &event)?;
        // Relaxed: two threads that read at once may leave the older ones, which makes the
        // descriptor readable once more, never less.
        self.seen_error.store(event.error_value, ordering::Relaxed);
        self.seen.store(generation, ordering::Relaxed);
        Ok(size)
    }

    fn poll<'a>(&'a self, poller: &Poller<'a>) -> Ready {
        poller.wait(&self.changes.queue);
        let mut ready = Ready::NONE;
        if self.has_changed() {
            ready = ready | Ready::READABLE;
        }
        if self.error_differs() {
            ready = ready | Ready::ERROR;
        }
        ready
    }
}
