// SPDX-License-Identifier: GPL-2.0

//! The common part of completion and event queues: entries, and threads that wait for them.
//!
//! # Why no wake-up is lost
//!
//! Whether there are entries is kept in `ready` as well, which changes with the entries, under the
//! lock. A thread that adds an entry sets it before waking; one that waits is in the wait queue, or
//! has taken its snapshot of the wait set, before looking at it.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    fabric::Fabric,
    kfi::{
        control::Control,
        fid::Fid,
        hold::Hold,
        linux::{
            sleep::Wakeup,
            timeout::{
                Deadline,
                Timeout, //
            },
            wait_queue::WaitQueue, //
        },
        provider::WaitAttr,
        wait_obj::WaitObj, //
    },
    wait_set::WaitSet, //
};

/// The wait object of a new object.
pub(crate) struct WaitWith {
    /// Its type.
    pub(crate) wait_obj: WaitObj,
    /// The wait set, for that type.
    pub(crate) set: Option<Hold<WaitSet>>,
}

impl WaitWith {
    /// Checks what was asked for; a wait set must be one, of the same fabric (R-CNTR-13).
    pub(crate) fn new(attr: WaitAttr<'_>, fabric: &Arc<Fid<Fabric>>) -> Result<Self> {
        let (wait_obj, set) = match attr {
            WaitAttr::None => (WaitObj::None, None),
            WaitAttr::Unspec => (WaitObj::Unspec, None),
            WaitAttr::Queue => (WaitObj::Queue, None),
            WaitAttr::Set(set) => {
                let set = set.ok_or(EINVAL)?.downcast::<WaitSet>().ok_or(EINVAL)?;
                if !Arc::ptr_eq(set.fabric(), fabric) {
                    return Err(EINVAL);
                }
                (WaitObj::Set, Some(Hold::new(set)?))
            }
        };
        Ok(Self { wait_obj, set })
    }
}

/// The entries of a queue.
pub(crate) trait Entries: Send + Unpin {
    /// Has room for nothing, and no memory.
    fn none() -> Self;

    /// Returns whether there is something to read.
    fn is_ready(&self) -> bool;
}

/// A queue of entries that threads wait for.
#[pin_data]
pub(crate) struct Queue<T> {
    #[pin]
    entries: SpinLockIrq<T>,
    /// Whether there are entries.
    ready: Atomic<bool>,
    /// How often the threads that wait were asked to give up.
    signals: Atomic<u64>,
    #[pin]
    wait_queue: WaitQueue,
    wait_obj: WaitObj,
    set: Option<Hold<WaitSet>>,
}

impl<T: Entries> Queue<T> {
    /// Creates a queue of `entries`, of which there are none yet.
    pub(crate) fn new(entries: T, wait: WaitWith) -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_spinlock_irq!(entries, "kfi_soft::Queue::entries"),
            ready: Atomic::new(false),
            signals: Atomic::new(0),
            wait_queue <- WaitQueue::new(c"kfi_soft::Queue::wait_queue", static_lock_class!()),
            wait_obj: wait.wait_obj,
            set: wait.set,
        })
    }

    /// Returns whether there are entries.
    pub(crate) fn is_ready(&self) -> bool {
        // Acquire: a thread that sees it sees what was done before the entry was added.
        self.ready.load(ordering::Acquire)
    }

    /// Returns the type of the wait object.
    pub(crate) fn wait_obj(&self) -> WaitObj {
        self.wait_obj
    }

    /// Returns the wait set.
    pub(crate) fn set(&self) -> Option<&Hold<WaitSet>> {
        self.set.as_ref()
    }

    /// Brings `ready` in line with the entries; under their lock.
    fn update(&self, entries: &T) {
        let ready = entries.is_ready();
        // Full: what was done before comes before it, and a waker looks for waiting threads after
        // it, and whether the handler is armed.
        let before = self.ready.xchg(ready, ordering::Full);
        if let Some(set) = &self.set {
            match (before, ready) {
                (false, true) => set.member_ready(),
                (true, false) => set.member_idle(),
                _ => (),
            }
        }
    }

    /// Changes the entries, and brings `ready` in line.
    pub(crate) fn take<R>(&self, take: impl FnOnce(&mut T) -> R) -> R {
        let mut entries = self.entries.lock();
        let ret = take(&mut entries);
        self.update(&entries);
        ret
    }

    /// Adds to the entries and wakes the threads that wait.
    pub(crate) fn add<R>(&self, add: impl FnOnce(&mut T) -> R) -> R {
        let ret = self.take(add);
        self.wake();
        ret
    }

    /// Wakes the threads that wait. Something that they look at was changed, fully ordered.
    pub(crate) fn wake(&self) {
        match (self.wait_obj, &self.set) {
            (WaitObj::Set, Some(set)) => set.signal_queue(),
            (WaitObj::None, _) => (),
            // Nobody but `read_blocking` has the wait queue.
            (WaitObj::Unspec, _) if !self.wait_queue.has_waiters() => (),
            _ => self.wait_queue.wake_up_all(),
        }
    }

    /// Asks the threads that wait to give up.
    pub(crate) fn signal(&self) {
        // Full: before the wake-up.
        self.signals.fetch_add(1, ordering::Full);
        self.wake();
    }

    /// Runs `read` until it returns something else than `EAGAIN`.
    ///
    /// `EAGAIN` when asked to give up, `ETIMEDOUT`, `EINTR`.
    pub(crate) fn read_blocking<R>(
        &self,
        timeout: Timeout,
        mut read: impl FnMut() -> Result<R>,
    ) -> Result<R> {
        if matches!(self.wait_obj, WaitObj::None | WaitObj::Set) {
            return Err(EINVAL);
        }
        let deadline: Deadline = timeout.deadline();
        // Relaxed: only compared.
        let signals = self.signals.load(ordering::Relaxed);
        loop {
            match read() {
                Err(error) if error == EAGAIN => (),
                ret => return ret,
            }
            if timeout == Timeout::Millis(0) {
                return Err(ETIMEDOUT);
            }
            let signalled = || self.signals.load(ordering::Acquire) != signals;
            let wakeup = self
                .wait_queue
                .wait_until(deadline, || self.is_ready() || signalled());
            if !self.is_ready() {
                match wakeup {
                    Wakeup::NotNeeded | Wakeup::Woken if signalled() => return Err(EAGAIN),
                    // Another thread was faster.
                    Wakeup::NotNeeded | Wakeup::Woken => (),
                    Wakeup::Expired => return Err(ETIMEDOUT),
                    Wakeup::Interrupted => return Err(EINTR),
                }
            }
        }
    }

    /// Answers control commands about the wait object.
    pub(crate) fn control<'a>(&'a self, command: Control<'a>) -> Result {
        match command {
            Control::GetWait(out) => match (self.wait_obj, &self.set) {
                (WaitObj::Queue, _) => out.set(&self.wait_queue),
                (WaitObj::Set, Some(set)) => out.set(set.queue()?),
                (WaitObj::Unspec, _) => return Err(ENOSYS),
                _ => return Err(EINVAL),
            },
            Control::GetWaitObj(out) => out.set(match self.wait_obj {
                // What it is in truth.
                WaitObj::Unspec => WaitObj::Queue,
                wait_obj => wait_obj,
            }),
            _ => return Err(ENOSYS),
        }
        Ok(())
    }

    /// Gives up the entries and leaves the wait set; the queue is being closed.
    pub(crate) fn release(&self) {
        let entries = {
            let mut entries = self.entries.lock();
            let old = core::mem::replace(&mut *entries, T::none());
            self.update(&entries);
            old
        };
        // Here, since it may sleep, and later nothing may.
        drop(entries);
        if let Some(set) = &self.set {
            set.release();
        }
    }
}
