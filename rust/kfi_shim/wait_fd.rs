// SPDX-License-Identifier: GPL-2.0

//! Descriptors for wait objects: what poll, select, epoll and read do with an object.
//!
//! The wait queue of an object is woken with interrupts disabled, and maybe those of many objects one
//! after the other. So only so many descriptors listen to a queue, see
//! [`Session::note_descriptor`](crate::session::Session::note_descriptor), and if more than a few
//! threads wait for a descriptor a work queue wakes them.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        UniqueArc, //
    },
    uaccess::UserPtr, //
};

use crate::{
    abi::WaitEvent,
    estimate,
    kfi::{
        consumer::{
            Answer,
            Charge,
            CompletionQueue,
            Counter,
            EventQueue,
            HasWaitQueue,
            Listener,
            Quota,
            WaitSet, //
        },
        linux::{
            file::{
                AnonymousFile,
                FileOps,
                Poller,
                Ready, //
            },
            sleep::Wakeup,
            timeout::Timeout,
            uaccess,
            wait_entry::Woken,
            wait_queue::WaitQueue,
            work_queue::{
                new_work,
                Work,
                WorkItem,
                WorkQueue, //
            }, //
        }, //
    },
    session::Use, //
};

/// Counts how often the wait queue of an object was woken, and passes that on.
#[pin_data]
pub(crate) struct Wakeups {
    /// How often the wait queue was woken.
    generation: Atomic<u64>,
    /// The generation that user space has been told of.
    seen: Atomic<u64>,
    #[pin]
    queue: WaitQueue,
    work_queue: Arc<WorkQueue>,
    /// Wakes those who wait, if they are many.
    #[pin]
    work: Work<Wakeups>,
}

/// Not more than so many are woken where the wait queue of an object is.
const FEW: u32 = 16;

impl Wakeups {
    /// Returns how often the wait queue was woken.
    pub(crate) fn generation(&self) -> u64 {
        // Acquire: what is read of the object afterwards is at least as new.
        self.generation.load(ordering::Acquire)
    }

    /// Notes that user space has been told of a generation.
    pub(crate) fn see(&self, generation: u64) {
        // Relaxed: only compared. Two threads at once may leave the older number, which makes the
        // descriptor readable once more, never less.
        self.seen.store(generation, ordering::Relaxed);
    }

    /// Returns whether there is news.
    fn is_new(&self) -> bool {
        // Relaxed: only compared.
        self.generation() != self.seen.load(ordering::Relaxed)
    }
}

impl Woken for Wakeups {
    fn woken(this: &Arc<Self>) {
        // Full: the change comes before its number, and that before the wake-up.
        // See `qemu-test/litmus/KFI-wait-descriptor.litmus`.
        this.generation.fetch_add(1, ordering::Full);
        if this.queue.is_short(FEW) {
            this.queue.wake_up_all();
        } else {
            this.work_queue.queue::<_, 0>(this.clone());
        }
    }
}

impl WorkItem for Wakeups {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        this.queue.wake_up_all();
    }
}

/// An object that can have a wait descriptor.
pub(crate) trait Waitable: HasWaitQueue {
    /// Returns what read(2) tells, when the wait queue was woken `generation` times.
    fn event(&self, generation: u64) -> WaitEvent {
        WaitEvent {
            value: generation,
            error_value: 0,
        }
    }

    /// Returns the error value; 0 for objects that have none.
    fn error_value(&self) -> u64 {
        0
    }
}

impl Waitable for Counter {
    fn event(&self, _generation: u64) -> WaitEvent {
        WaitEvent {
            value: self.read(),
            error_value: self.readerr(),
        }
    }

    fn error_value(&self) -> u64 {
        self.readerr()
    }
}

impl Waitable for CompletionQueue {}
impl Waitable for EventQueue {}
impl Waitable for WaitSet {}

/// The data of a wait descriptor.
#[pin_data]
pub(crate) struct WaitFd<O: Waitable> {
    // Dropped first: nobody listens any more when the object is let go.
    #[pin]
    listener: Listener<O, Wakeups>,
    wakeups: Noted<O>,
    /// The error value read last.
    seen_error: Atomic<u64>,
}

/// Wake-ups that the session knows of, as long as this is not dropped.
struct Noted<O> {
    wakeups: Arc<Wakeups>,
    /// The name by which the session knows them, beside the handle of the object.
    number: u64,
    /// The number of the wait queue that they listen to.
    source: usize,
    _charge: Charge,
    object: Use<Arc<O>>,
}

impl<O> Noted<O> {
    /// Lets the session of `object` know of its wake-ups, which listen to a wait queue; `EMFILE` if as
    /// many do as may.
    fn new(object: Use<Arc<O>>, source: usize, wakeups: Arc<Wakeups>) -> Result<Self> {
        let session = object.session();
        let charge = Quota::charge(session.quota(), estimate::DESCRIPTOR)?;
        let number = session.note_descriptor(object.handle(), source, wakeups.clone())?;
        Ok(Self {
            wakeups,
            number,
            source,
            _charge: charge,
            object,
        })
    }
}

impl<O> core::ops::Deref for Noted<O> {
    type Target = Wakeups;

    fn deref(&self) -> &Wakeups {
        &self.wakeups
    }
}

impl<O> Drop for Noted<O> {
    fn drop(&mut self) {
        let object = &self.object;
        object
            .session()
            .forget_descriptor(object.handle(), self.number, self.source);
    }
}

impl<O: Waitable> WaitFd<O> {
    /// Creates a file for an object; the answer is that to KFI_GETWAIT.
    pub(crate) fn new_file(object: Use<Arc<O>>, nonblock: bool) -> Result<Answer<AnonymousFile>> {
        let source = match Listener::<O, Wakeups>::queue_of(&object) {
            Ok(source) => source,
            Err(error) => return Ok(Err(error)),
        };
        let work_queue = object.session().queues().wakes.clone();
        // First: what follows is let go in the order of its members, whatever fails.
        let room = UniqueArc::<Self>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let wakeups = Arc::pin_init(
            pin_init!(Wakeups {
                generation: Atomic::new(0),
                seen: Atomic::new(0),
                queue <- WaitQueue::new(c"kfi_shim::WaitFd", static_lock_class!()),
                work_queue,
                work <- new_work!("kfi_shim::WaitFd"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        // Dropped last, if anything fails: a thread that finds no marks finds no references either.
        let wakeups = Noted::new(object, source, wakeups)?;
        let object: &Arc<O> = &wakeups.object;
        let listener = match Listener::new(object.clone(), wakeups.wakeups.clone()) {
            Ok(listener) => listener,
            Err(error) => return Ok(Err(error)),
        };
        // Any later value differs from this one, or the listener hears of it.
        let seen_error = object.error_value();
        let this = room.pin_init_with(pin_init!(Self {
            listener <- listener,
            wakeups,
            seen_error: Atomic::new(seen_error),
        }))?;
        let this: Arc<Self> = this.into();
        let file = AnonymousFile::new::<_, crate::LocalModule>(c"[kfi-wait]", this, nonblock)?;
        Ok(Ok(file))
    }

    /// Returns whether the error value is not the one read last.
    fn error_differs(&self) -> bool {
        // Relaxed: only compared.
        self.listener.object().error_value() != self.seen_error.load(ordering::Relaxed)
    }

    /// Returns whether there is something to read.
    fn is_ready(&self) -> bool {
        self.wakeups.is_new() || self.error_differs()
    }
}

#[vtable]
impl<O: Waitable> FileOps for WaitFd<O> {
    fn read(&self, buffer: UserPtr, len: usize, nonblock: bool) -> Result<usize> {
        let size = size_of::<WaitEvent>();
        if len < size {
            return Err(EINVAL);
        }
        if !self.is_ready() {
            if nonblock {
                return Err(EAGAIN);
            }
            let queue = &self.wakeups.queue;
            if queue.wait_until(Timeout::Infinite.deadline(), || self.is_ready())
                == Wakeup::Interrupted
            {
                return Err(ERESTARTSYS);
            }
        }
        // Before the values: a change that they miss has a later number.
        let generation = self.wakeups.generation();
        let event = self.listener.object().event(generation);
        uaccess::write(buffer, size, &event)?;
        // Relaxed: as for `Wakeups::see`.
        self.seen_error.store(event.error_value, ordering::Relaxed);
        self.wakeups.see(generation);
        Ok(size)
    }

    fn poll<'a>(&'a self, poller: &Poller<'a>) -> Ready {
        poller.wait(&self.wakeups.queue);
        let mut ready = Ready::NONE;
        if self.is_ready() {
            ready = ready | Ready::READABLE;
        }
        if self.error_differs() {
            ready = ready | Ready::ERROR;
        }
        ready
    }
}
