// SPDX-License-Identifier: GPL-2.0

//! Room in a queue: what is posted takes a slot first, so that its completion always fits.
//!
//! Every slot is free, taken by a [`Reservation`], or has an entry in it, from when the entry is
//! written until it is read out.
//!
//! # Why nobody waits for room in vain
//!
//! Who finds no slot and wants to be told sets `starved`, and then looks once more whether there is
//! a free one. Who frees a slot adds it, and then looks at `starved`. Both do so fully ordered, so
//! that one of them sees what the other has done: either the one that looks gets the slot, or all
//! who listen are told after the slot was added. They may be told when there is nothing any more
//! because somebody else was faster; then they find no slot again, and so set `starved` again.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
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

use crate::kfi::fid::{
    Fid,
    Object, //
};

/// Somebody who is told that there is room again.
pub(crate) trait Room: Send + Sync {
    /// There may be free slots.
    ///
    /// Called from any context, by whoever reads the queue or drops a reservation: queues a work
    /// item and returns. May be called without need, and for the last time while
    /// [`Slots::ignore`] returns on another CPU.
    fn room(&self);
}

/// Names a listener of [`Slots::listen`].
pub(crate) struct RoomListener(usize);

/// The listeners by number; who leaves makes no other change its number.
type Listeners = KVec<Option<Arc<dyn Room>>>;

/// The slots of a queue.
#[pin_data]
pub(crate) struct Slots {
    /// How many are free.
    free: Atomic<usize>,
    /// Somebody has found none and wants to be told.
    starved: Atomic<bool>,
    #[pin]
    listeners: SpinLockIrq<Listeners>,
}

impl Slots {
    /// All `count` slots are free.
    pub(crate) fn new(count: usize) -> impl PinInit<Self> {
        pin_init!(Self {
            free: Atomic::new(count),
            starved: Atomic::new(false),
            listeners <- new_spinlock_irq!(KVec::new(), "kfi_soft::Slots::listeners"),
        })
    }

    /// Takes a slot; `false` if there is none. From any context.
    fn take(&self) -> bool {
        // Relaxed: `cmpxchg` validates the value.
        let mut free = self.free.load(ordering::Relaxed);
        while let Some(left) = free.checked_sub(1) {
            // Acquire: what the slot is used for comes after it was freed.
            match self.free.cmpxchg(free, left, ordering::Acquire) {
                Ok(_) => return true,
                Err(current) => free = current,
            }
        }
        false
    }

    /// As [`Self::take`], but if there is none, listeners will be told when there is.
    fn take_or_starve(&self) -> bool {
        if self.take() {
            return true;
        }
        // Full: before the look at the free slots, see the top of this file.
        self.starved.xchg(true, ordering::Full);
        self.take()
    }

    /// Gives slots back. From any context; calls listeners, so that no lock may be held that these
    /// could want.
    pub(crate) fn give(&self, count: usize) {
        if count == 0 {
            return;
        }
        // Full: before the look at `starved`, see the top of this file.
        self.free.fetch_add(count, ordering::Full);
        // Relaxed: ordered by the line before.
        if self.starved.load(ordering::Relaxed) {
            self.tell();
        }
    }

    /// Tells the listeners that there is room, unless somebody else does.
    #[cold]
    fn tell(&self) {
        // Full: who sets it again after this is told again.
        if !self.starved.xchg(false, ordering::Full) {
            return;
        }
        let mut number = 0usize;
        loop {
            let listener = {
                let listeners = self.listeners.lock();
                let Some(listener) = listeners.get(number) else {
                    return;
                };
                listener.clone()
            };
            // Without the lock, as are the reference's end and what it may take along.
            if let Some(listener) = listener {
                listener.room();
            }
            number = number.wrapping_add(1);
        }
    }

    /// Adds a listener; may sleep.
    ///
    /// It keeps the listener until [`Self::ignore`] or [`Self::clear`].
    pub(crate) fn listen(&self, listener: Arc<dyn Room>) -> Result<RoomListener> {
        let mut more = KVec::new();
        loop {
            let mut listeners = self.listeners.lock();
            let unused = listeners.iter().position(Option::is_none);
            if let Some((number, place)) =
                unused.and_then(|number| Some((number, listeners.get_mut(number)?)))
            {
                *place = Some(listener);
                return Ok(RoomListener(number));
            }
            let len = listeners.len();
            if len < more.capacity() {
                // Moves the others to where there is room for them and new ones.
                for listener in listeners.iter_mut() {
                    more.push_within_capacity(listener.take())?;
                }
                while more.len() < more.capacity() {
                    more.push_within_capacity(None)?;
                }
                core::mem::swap(&mut *listeners, &mut more);
                // The lock is given up before what was replaced is freed.
                drop(listeners);
                more = KVec::new();
                continue;
            }
            drop(listeners);
            more = KVec::with_capacity(len.saturating_mul(2).max(4), GFP_KERNEL)?;
        }
    }

    /// Removes a listener; what is just being told is not waited for.
    pub(crate) fn ignore(&self, listener: &RoomListener) {
        let removed = self
            .listeners
            .lock()
            .get_mut(listener.0)
            .and_then(Option::take);
        // Without the lock.
        drop(removed);
    }

    /// Removes all listeners; the queue is being closed.
    pub(crate) fn clear(&self) {
        let listeners = core::mem::replace(&mut *self.listeners.lock(), KVec::new());
        // Without the lock.
        drop(listeners);
    }

    /// Returns how many slots are free.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn free(&self) -> usize {
        // Relaxed: a snapshot.
        self.free.load(ordering::Relaxed)
    }
}

/// A queue with slots.
pub(crate) trait Bounded: Object {
    /// Returns the slots.
    fn slots(&self) -> &Slots;
}

/// A slot of a queue that an entry can be written to later, once.
///
/// Keeps the memory of the queue, not the queue itself, from being closed: after that there is
/// nobody to write for. Dropping it frees the slot, which may call listeners, see [`Slots::give`].
pub(crate) struct Reservation<T: Bounded>(Option<Arc<Fid<T>>>);

impl<T: Bounded> Reservation<T> {
    /// Takes a slot; `None` if there is none. From any context.
    pub(crate) fn new(queue: &Fid<T>) -> Option<Self> {
        queue.slots().take().then(|| Self(Some(queue.arc())))
    }

    /// As [`Self::new`], but if there is none, listeners will be told when there is.
    pub(crate) fn new_or_starve(queue: &Fid<T>) -> Option<Self> {
        queue
            .slots()
            .take_or_starve()
            .then(|| Self(Some(queue.arc())))
    }

    /// Uses the slot, for an entry that frees it when it is read out.
    pub(crate) fn redeem(mut self, write: impl FnOnce(&Fid<T>)) {
        if let Some(queue) = self.0.take() {
            write(&queue);
        }
    }
}

impl<T: Bounded> Drop for Reservation<T> {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.slots().give(1);
        }
    }
}

#[kunit_tests(kfi_soft_slots)]
mod tests {
    use super::*;
    use crate::kfi::work_queue::{
        new_work,
        Work,
        WorkItem,
        WorkQueue,
        WorkQueueFlags, //
    };
    use kernel::time::{
        delay::fsleep,
        Delta, //
    };

    /// Counts what it is told.
    struct Told(Atomic<usize>);

    impl Room for Told {
        fn room(&self) {
            self.0.fetch_add(1, ordering::Full);
        }
    }

    fn slots(count: usize) -> Result<Pin<KBox<Slots>>> {
        KBox::pin_init(Slots::new(count), GFP_KERNEL)
    }

    fn told() -> Result<Arc<Told>> {
        Ok(Arc::new(Told(Atomic::new(0)), GFP_KERNEL)?)
    }

    fn times(told: &Told) -> usize {
        told.0.load(ordering::Relaxed)
    }

    #[test]
    fn as_many_as_there_are() -> Result {
        let slots = slots(2)?;
        assert!(slots.take());
        assert!(slots.take());
        assert!(!slots.take());
        slots.give(1);
        assert!(slots.take_or_starve());
        assert!(!slots.take());
        assert_eq!(slots.free(), 0);
        slots.give(2);
        assert_eq!(slots.free(), 2);
        Ok(())
    }

    #[test]
    fn only_who_starves_is_told_and_once() -> Result {
        let slots = slots(1)?;
        let told = told()?;
        slots.listen(told.clone())?;
        assert!(slots.take());
        assert!(!slots.take());
        slots.give(1);
        assert_eq!(times(&told), 0);
        assert!(slots.take());
        assert!(!slots.take_or_starve());
        slots.give(0);
        assert_eq!(times(&told), 0);
        slots.give(1);
        assert_eq!(times(&told), 1);
        assert!(slots.take());
        slots.give(1);
        assert_eq!(times(&told), 1);
        Ok(())
    }

    #[test]
    fn listeners_come_and_go() -> Result {
        let slots = slots(0)?;
        let mut listeners = KVec::new();
        for _ in 0..9 {
            let told = told()?;
            let number = slots.listen(told.clone())?;
            listeners.push((told, number), GFP_KERNEL)?;
        }
        for (told, number) in listeners.iter().step_by(2) {
            slots.ignore(number);
            slots.ignore(number);
            assert_eq!(times(told), 0);
        }
        assert!(!slots.take_or_starve());
        slots.give(1);
        for (i, (told, _)) in listeners.iter().enumerate() {
            assert_eq!(times(told), i & 1);
        }
        let late = told()?;
        slots.listen(late.clone())?;
        assert!(slots.take());
        assert!(!slots.take_or_starve());
        slots.give(1);
        assert_eq!(times(&late), 1);
        slots.clear();
        assert!(slots.take());
        assert!(!slots.take_or_starve());
        slots.give(1);
        assert_eq!(times(&late), 1);
        Ok(())
    }

    /// Two work items: one takes slots and sleeps when there is none, the other gives them back.
    #[pin_data]
    struct Race {
        #[pin]
        slots: Slots,
        taken: Atomic<usize>,
        told: Atomic<bool>,
        stuck: Atomic<bool>,
        #[pin]
        take: Work<Race>,
        #[pin]
        give: Work<Race, 1>,
    }

    const ROUNDS: usize = 200;

    impl Room for Race {
        fn room(&self) {
            self.told.store(true, ordering::Release);
        }
    }

    /// Waits for a condition, some seconds at most.
    fn happens(condition: impl Fn() -> bool) -> bool {
        for _ in 0..1000 {
            if condition() {
                return true;
            }
            core::hint::spin_loop();
        }
        for _ in 0..5000 {
            if condition() {
                return true;
            }
            fsleep(Delta::from_millis(1));
        }
        false
    }

    impl WorkItem for Race {
        fn work(&self) -> &Work<Self> {
            &self.take
        }

        fn run(this: Arc<Self>) {
            for _ in 0..ROUNDS {
                // Told before it has found none: that was for the one before.
                this.told.store(false, ordering::Release);
                while !this.slots.take_or_starve() {
                    if !happens(|| this.told.xchg(false, ordering::Full)) {
                        this.stuck.store(true, ordering::Release);
                        return;
                    }
                }
                this.taken.fetch_add(1, ordering::Full);
            }
        }
    }

    impl WorkItem<1> for Race {
        fn work(&self) -> &Work<Self, 1> {
            &self.give
        }

        fn run(this: Arc<Self>) {
            for given in 0..ROUNDS {
                let taken = || this.taken.load(ordering::Acquire) > given;
                if !happens(|| taken() || this.stuck.load(ordering::Acquire)) || !taken() {
                    return;
                }
                this.slots.give(1);
            }
        }
    }

    #[test]
    fn room_is_not_missed() -> Result {
        let queue = Arc::pin_init(
            WorkQueue::new(c"kfi_soft_slots_test", WorkQueueFlags::UNBOUND),
            GFP_KERNEL,
        )?;
        let race = Arc::pin_init(
            pin_init!(Race {
                slots <- Slots::new(1),
                taken: Atomic::new(0),
                told: Atomic::new(false),
                stuck: Atomic::new(false),
                take <- new_work!("kfi_soft_slots take test"),
                give <- new_work!("kfi_soft_slots give test"),
            }),
            GFP_KERNEL,
        )?;
        let listener = race.slots.listen(race.clone())?;
        assert!(queue.queue::<_, 0>(race.clone()));
        assert!(queue.queue::<_, 1>(race.clone()));
        queue.destroy();
        race.slots.ignore(&listener);
        assert_eq!(race.taken.load(ordering::Acquire), ROUNDS);
        assert!(!race.stuck.load(ordering::Acquire));
        Ok(())
    }
}
