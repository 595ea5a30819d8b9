// SPDX-License-Identifier: GPL-2.0

//! Entries that threads wait for: the common part of completion and event queues.
//!
//! # Why no wake-up is lost
//!
//! Whether there are entries is known without the lock as well: of the first ones, which may be taken
//! without it, from themselves, of all others from `ready`, which changes with the entries, under the
//! lock. A thread that adds an entry does both before waking; one that waits is in the wait queue, or
//! has taken its snapshot of the wait set, before looking at them.
//!
//! A queue in a wait set is told when it gets its first entry and when it has lost its last one, under the
//! lock: all entries of such a one are taken with it.

mod completion_ring;
mod completions;
mod ring;

use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        SpinLockIrq, //
    }, //
};

use super::{
    wait_source::{
        WaitSource,
        WaitWith, //
    },
    Absent,
    WaitSetClass,
    WaitSetOps, //
};
use crate::kfi::{
    control::Control,
    linux::{
        interrupts::NoPreemption,
        sleep::Wakeup,
        timeout::Timeout, //
    },
    wait_obj::WaitObj, //
};

#[allow(unused_imports, reason = "not every provider writes its name")]
pub use completion_ring::Taker;
#[allow(unused_imports, reason = "not every provider writes its name")]
pub use completions::First;
pub use completions::{
    Completions,
    Popped, //
};
pub use ring::Ring;

/// The first entries of a queue, which may be taken without its lock.
pub trait Front: Send + Sync {
    /// Returns how many there are. What was done before they were added comes before that.
    fn len(&self) -> usize;

    /// Returns whether there are some, as [`Self::len`].
    fn is_ready(&self) -> bool {
        self.len() != 0
    }
}

/// None is taken without the lock.
impl Front for () {
    fn len(&self) -> usize {
        0
    }
}

/// The entries of a queue. Used under its lock, which disables interrupts.
pub trait Entries: Send + Unpin {
    /// Those that may be taken without the lock.
    type Front: Front;

    /// Has room for nothing, and no memory.
    fn none() -> Self;

    /// Returns those that may be taken without the lock.
    fn front(&self) -> Self::Front;

    /// Returns whether there is something to read.
    fn is_ready(&self) -> bool;

    /// Returns whether there is something to read that is not taken without the lock.
    fn is_ready_behind(&self) -> bool;

    /// Returns whether one of those that may be taken without the lock is an error, so that they may not.
    fn has_error(&self) -> bool {
        false
    }
}

/// There are entries that are not taken without the lock.
const BEHIND: u32 = 1;

/// There are entries, if the queue is in a wait set.
const READY: u32 = 2;

/// An entry may be about to be added, of which others learn elsewhere before: whoever finds none looks with the
/// lock.
const COMING: u32 = 4;

/// An error lies among the entries at the front.
const FAILED: u32 = 8;

/// Wait sets that queues are members of. All are called from any context, hard interrupts included, and
/// must not sleep.
pub trait QueueSet: WaitSetOps {
    /// A queue of the set has got its first entry. Under the lock of the queue.
    fn member_ready(&self);

    /// A queue of the set has lost its last entry. Under the lock of the queue.
    fn member_idle(&self);

    /// A queue of the set has got an entry, or its threads are to give up. Without a lock.
    fn signal_queue(&self);
}

impl QueueSet for Absent<WaitSetClass> {
    fn member_ready(&self) {
        self.never()
    }

    fn member_idle(&self) {
        self.never()
    }

    fn signal_queue(&self) {
        self.never()
    }
}

/// A queue of entries that threads wait for.
#[pin_data]
pub struct Queue<T: Entries, S: WaitSetOps = Absent<WaitSetClass>> {
    #[pin]
    entries: SpinLockIrq<T>,
    front: T::Front,
    /// Whether there are entries: [`BEHIND`], [`READY`], [`COMING`], [`FAILED`].
    ready: Atomic<u32>,
    /// How often the threads that wait were asked to give up.
    signals: Atomic<u64>,
    #[pin]
    source: WaitSource<S>,
}

impl<T: Entries, S: QueueSet> Queue<T, S> {
    /// Creates a queue of `entries`, of which there are none yet.
    pub fn new(entries: T, wait: WaitWith<S>) -> impl PinInit<Self> {
        let front = entries.front();
        pin_init!(Self {
            entries <- new_spinlock_irq!(entries, "kfi::Queue::entries"),
            front,
            ready: Atomic::new(0),
            signals: Atomic::new(0),
            source <- WaitSource::new(wait, c"kfi::Queue::source", static_lock_class!()),
        })
    }

    /// Returns whether there are entries.
    pub fn is_ready(&self) -> bool {
        // Acquire: a thread that sees it sees what was done before the entry was added.
        // See `qemu-test/litmus/KFI-queue-entry.litmus`. What moves to the front is there before it is not
        // here any more: `qemu-test/litmus/KFI-queue-moves.litmus`.
        self.ready.load(ordering::Acquire) & BEHIND != 0 || self.front.is_ready()
    }

    /// As [`Self::is_ready`]; or there may be an entry that is known elsewhere, and is yet to be added by a thread
    /// that has the lock ([`Self::take_announced`]).
    pub fn may_be_ready(&self) -> bool {
        // Acquire: as in `is_ready`. An entry that is not coming any more is there.
        // See `qemu-test/litmus/KFI-queue-coming.litmus`.
        self.ready.load(ordering::Acquire) & (BEHIND | COMING) != 0 || self.front.is_ready()
    }

    /// Returns whether a thread that waits for so many entries, at least one, is to read: there are as many, or no
    /// reader gets as many at once, as some are not at the front, or an error is among them.
    fn has(&self, count: usize) -> bool {
        // Acquire: as in `is_ready`.
        self.ready.load(ordering::Acquire) & (BEHIND | FAILED) != 0 || self.front.len() >= count
    }

    /// Returns the entries that may be taken without the lock, if they may be of this queue. The caller is not to
    /// be preempted from when it takes one until it has dealt with what that is for others.
    pub fn front(&self) -> Option<&T::Front> {
        self.source.set().is_none().then_some(&self.front)
    }

    /// Returns what threads wait on.
    pub fn source(&self) -> &WaitSource<S> {
        &self.source
    }

    /// Brings `ready` in line with the entries; under their lock.
    fn update(&self, entries: &T) {
        let set = self.source.set();
        let mut ready = if entries.is_ready_behind() { BEHIND } else { 0 };
        if entries.has_error() {
            ready |= FAILED;
        }
        if set.is_some() && entries.is_ready() {
            ready |= READY;
        }
        // Relaxed: it changes under the lock only. If it does not, nobody waits for that: a thread has seen what it
        // is, or was seen by the one that has changed it, or that has shown an entry at the front.
        if self.ready.load(ordering::Relaxed) == ready {
            return;
        }
        // Full: what was done before comes before it, and a waker looks for waiting threads after
        // it, and whether the handler is armed.
        // See `qemu-test/litmus/KFI-queue-wait.litmus`, and `qemu-test/litmus/KFI-queue-front.litmus` for what
        // is taken without the lock.
        let before = self.ready.xchg(ready, ordering::Full);
        if let Some(set) = set {
            match (before & READY, ready & READY) {
                (0, READY) => set.member_ready(),
                (READY, 0) => set.member_idle(),
                _ => (),
            }
        }
    }

    /// Changes the entries, and brings `ready` in line.
    pub fn take<R>(&self, take: impl FnOnce(&mut T) -> R) -> R {
        let mut entries = self.entries.lock();
        let ret = take(&mut entries);
        self.update(&entries);
        ret
    }

    /// As [`Self::take`], where others learn of an entry by what `take` does, before that is there: one that has
    /// learnt of it finds it, if it looks with the lock when [`Self::may_be_ready`] says so.
    pub fn take_announced<R>(&self, take: impl FnOnce(&mut T) -> R) -> R {
        let mut entries = self.entries.lock();
        // Relaxed: it changes under the lock only.
        let ready = self.ready.load(ordering::Relaxed);
        // Full: comes before that.
        self.ready.xchg(ready | COMING, ordering::Full);
        let ret = take(&mut entries);
        self.update(&entries);
        ret
    }

    /// Adds to the entries and wakes the threads that wait. The caller is not preempted between: nobody
    /// else would wake them.
    pub fn add<R>(&self, add: impl FnOnce(&mut T) -> R) -> R {
        let _preemption = NoPreemption::begin();
        let ret = self.take(add);
        self.wake();
        ret
    }

    /// Wakes the threads that wait. Something that they look at was changed, fully ordered.
    pub fn wake(&self) {
        let queue = self.source.queue();
        match (self.source.wait_obj(), self.source.set()) {
            (WaitObj::Set, Some(set)) => set.signal_queue(),
            (WaitObj::None, _) => (),
            // The wait queue is known to `read_blocking` only.
            (WaitObj::Unspec, _) if !queue.has_waiters() => (),
            _ => queue.wake_up_all(),
        }
    }

    /// Asks the threads that wait to give up.
    pub fn signal(&self) {
        let _preemption = NoPreemption::begin();
        // Full: before the wake-up.
        // See `qemu-test/litmus/KFI-queue-signal.litmus`.
        self.signals.fetch_add(1, ordering::Full);
        self.wake();
    }

    /// Runs `read` until it returns something else than `EAGAIN`.
    ///
    /// With a `count` above one it sleeps until there are so many entries, or something that ends a read; what there is
    /// is read when the wait ends otherwise.
    ///
    /// `EAGAIN` when asked to give up, `ETIMEDOUT`, `EINTR`.
    pub fn read_blocking<R>(
        &self,
        timeout: Timeout,
        count: usize,
        mut read: impl FnMut() -> Result<R>,
    ) -> Result<R> {
        self.source.check()?;
        let deadline = timeout.deadline();
        // Relaxed: only compared.
        let signals = self.signals.load(ordering::Relaxed);
        let signalled = || self.signals.load(ordering::Acquire) != signals;
        let is_due = || self.has(count) || signalled();
        let some = count > 1;
        // How the wait has ended without as many as were wanted.
        let mut ended = (timeout == Timeout::Millis(0)).then_some(ETIMEDOUT);
        loop {
            if !some || ended.is_some() || self.has(count) {
                match read() {
                    Err(error) if error == EAGAIN => (),
                    ret => return ret,
                }
            }
            if let Some(error) = ended {
                return Err(error);
            }
            let wakeup = match some {
                // Whoever adds an entry need not ask whether it is the last one that was missing.
                false => self.source.queue().wait_until(deadline, is_due),
                true => self.source.queue().wait_until_due(deadline, &is_due),
            };
            if self.has(count) {
                continue;
            }
            let error = match wakeup {
                Wakeup::NotNeeded | Wakeup::Woken if signalled() => EAGAIN,
                // Another thread was faster.
                Wakeup::NotNeeded | Wakeup::Woken => continue,
                Wakeup::Expired => ETIMEDOUT,
                Wakeup::Interrupted => EINTR,
            };
            if !some {
                return Err(error);
            }
            ended = Some(error);
        }
    }

    /// Answers control commands about the wait object; `ENOSYS` to all others.
    pub fn control<'a>(&'a self, command: Control<'a>) -> Result {
        self.source.control(command)
    }

    /// Gives up the entries and leaves the wait set; the queue is being closed.
    pub fn release(&self) {
        let entries = {
            let mut entries = self.entries.lock();
            let old = core::mem::replace(&mut *entries, T::none());
            self.update(&entries);
            old
        };
        // Here, since it may sleep, and later nothing may.
        drop(entries);
        self.source.release();
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_queue)]
mod tests {
    use super::*;
    use crate::kfi::provider::WaitAttr;

    impl Entries for Ring<u32> {
        type Front = ();

        fn none() -> Self {
            Ring::none()
        }

        fn front(&self) {}

        fn is_ready(&self) -> bool {
            !self.is_empty()
        }

        fn is_ready_behind(&self) -> bool {
            !self.is_empty()
        }
    }

    /// A queue with room for two entries.
    fn queue(attr: WaitAttr<'_>) -> Result<Pin<KBox<Queue<Ring<u32>>>>> {
        let wait = WaitWith::new(attr, |_| false)?;
        KBox::pin_init(Queue::new(Ring::new(2)?, wait), GFP_KERNEL)
    }

    /// Waits for an entry.
    fn wait(queue: &Queue<Ring<u32>>, timeout: Timeout) -> Result<u32> {
        queue.read_blocking(timeout, 1, || queue.take(Ring::pop).ok_or(EAGAIN))
    }

    #[test]
    fn it_is_ready_while_there_are_entries() -> Result {
        let queue = queue(WaitAttr::Unspec)?;
        assert!(!queue.is_ready());
        assert_eq!(queue.add(|ring| ring.push(1)), Ok(()));
        assert_eq!(queue.add(|ring| ring.push(2)), Ok(()));
        assert!(queue.is_ready());
        assert_eq!(wait(&queue, Timeout::Infinite), Ok(1));
        assert!(queue.is_ready());
        assert_eq!(wait(&queue, Timeout::Millis(0)), Ok(2));
        assert!(!queue.is_ready());
        assert_eq!(wait(&queue, Timeout::Millis(0)), Err(ETIMEDOUT));
        assert_eq!(wait(&queue, Timeout::Millis(2)), Err(ETIMEDOUT));
        Ok(())
    }

    #[test]
    fn a_signal_ends_waits_that_have_begun() -> Result {
        let queue = queue(WaitAttr::Queue)?;
        // One that comes before is not for those that come later.
        queue.signal();
        let mut rounds = 0;
        let ended = queue.read_blocking(Timeout::Infinite, 1, || -> Result {
            rounds += 1;
            queue.signal();
            Err(EAGAIN)
        });
        assert_eq!((ended, rounds), (Err(EAGAIN), 1));
        assert_eq!(wait(&queue, Timeout::Millis(1)), Err(ETIMEDOUT));
        Ok(())
    }

    #[test]
    fn without_a_wait_object_nobody_waits() -> Result {
        let queue = queue(WaitAttr::None)?;
        assert_eq!(queue.add(|ring| ring.push(1)), Ok(()));
        assert_eq!(wait(&queue, Timeout::Infinite), Err(EINVAL));
        assert_eq!(queue.take(Ring::pop), Some(1));
        Ok(())
    }

    #[test]
    fn a_queue_that_is_closed_takes_nothing() -> Result {
        let queue = queue(WaitAttr::Unspec)?;
        assert_eq!(queue.add(|ring| ring.push(1)), Ok(()));
        queue.release();
        assert!(!queue.is_ready());
        assert_eq!(queue.add(|ring| ring.push(2)), Err(2));
        assert!(!queue.is_ready());
        Ok(())
    }
}
