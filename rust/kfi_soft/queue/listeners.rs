// SPDX-License-Identifier: GPL-2.0

//! Those who wait for the end of a completion queue's backlog.
//!
//! # Why nobody waits in vain
//!
//! Whoever finds a backlog leaves what it has where it will be found when it is told, sets `starved`,
//! and then looks once more whether there still is a backlog. The reader who ends the backlog looks
//! at `starved` after that. Both do so fully ordered, so that one of them sees what the other has
//! done. All are told; one for whom there is a backlog again starves again.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use crate::{
    kfi::linux::{
        interrupts::NoPreemption,
        work_queue::{
            new_work,
            Work,
            WorkItem, //
        }, //
    },
    node::Node, //
};

/// Somebody who is told that there is room again.
pub(crate) trait Room: Send + Sync {
    /// There may be room.
    ///
    /// Called in process context without locks. May be called without need, and for the last time
    /// while [`Listeners::ignore`] returns on another CPU.
    fn room(&self);
}

/// Names a listener of [`Listeners::listen`].
pub(crate) struct RoomListener(usize);

/// The listeners by number; who leaves makes no other change its number.
type List = KVec<Option<Arc<dyn Room>>>;

/// The listeners of a completion queue.
#[pin_data]
pub(crate) struct Listeners {
    /// Somebody wants to be told.
    starved: Atomic<bool>,
    #[pin]
    list: Mutex<List>,
    node: Arc<Node>,
    /// Tells them: a reader, which may be a hard interrupt, does not look at each of them.
    #[pin]
    work: Work<Listeners>,
}

impl Listeners {
    /// Nobody listens.
    pub(crate) fn new(node: Arc<Node>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                starved: Atomic::new(false),
                list <- new_mutex!(KVec::new(), "kfi_soft::Listeners::list"),
                node,
                work <- new_work!("kfi_soft::Listeners::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Asks for the listeners to be told; the caller looks whether there is a backlog after that.
    pub(crate) fn starve(&self) {
        // Full: see the top of this file.
        self.starved.xchg(true, ordering::Full);
    }

    /// Lets the listeners be told if somebody has starved. From any context, after the end of a
    /// backlog, fully ordered.
    pub(crate) fn tell(self: &Arc<Self>) {
        // Relaxed: ordered by the caller.
        if !self.starved.load(ordering::Relaxed) {
            return;
        }
        // All others leave it to whoever takes the flag.
        let _preemption = NoPreemption::begin();
        // Full: who sets it again after this is told again.
        if self.starved.xchg(false, ordering::Full) {
            self.node.work_queue.queue(self.clone());
        }
    }

    /// Adds a listener; may sleep.
    ///
    /// It keeps the listener until [`Self::ignore`] or [`Self::close`].
    pub(crate) fn listen(&self, listener: Arc<dyn Room>) -> Result<RoomListener> {
        let mut more = KVec::new();
        loop {
            let mut list = self.list.lock();
            let unused = list.iter().position(Option::is_none);
            if let Some((number, place)) =
                unused.and_then(|number| Some((number, list.get_mut(number)?)))
            {
                *place = Some(listener);
                return Ok(RoomListener(number));
            }
            let len = list.len();
            if len < more.capacity() {
                // Moves the others to where there is room for them and new ones.
                for listener in list.iter_mut() {
                    more.push_within_capacity(listener.take())?;
                }
                while more.len() < more.capacity() {
                    more.push_within_capacity(None)?;
                }
                core::mem::swap(&mut *list, &mut more);
                // The lock is given up before what was replaced is freed.
                drop(list);
                more = KVec::new();
                continue;
            }
            drop(list);
            more = KVec::with_capacity(len.saturating_mul(2).max(4), GFP_KERNEL)?;
        }
    }

    /// Removes a listener; what is just being told is not waited for. May sleep.
    pub(crate) fn ignore(&self, listener: &RoomListener) {
        let removed = self.list.lock().get_mut(listener.0).and_then(Option::take);
        // Without the lock.
        drop(removed);
    }

    /// Removes all listeners and waits until none is being told; may sleep.
    pub(crate) fn close(&self) {
        self.work.cancel_sync();
        let list = core::mem::replace(&mut *self.list.lock(), KVec::new());
        // Without the lock.
        drop(list);
    }
}

impl WorkItem for Listeners {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        let mut number = 0usize;
        loop {
            let listener = {
                let list = this.list.lock();
                let Some(listener) = list.get(number) else {
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
}

#[kunit_tests(kfi_soft_listeners)]
mod tests {
    use super::*;

    /// Counts how often it was told.
    struct Told(Atomic<usize>);

    impl Room for Told {
        fn room(&self) {
            self.0.fetch_add(1, ordering::Relaxed);
        }
    }

    /// Nobody else tells them: no time has to pass, and nothing else has to happen.
    #[test]
    fn told_by_the_end_of_a_backlog() -> Result {
        let node = Node::new(1)?;
        let listeners = Listeners::new(node.clone())?;
        let told = [Told(Atomic::new(0)), Told(Atomic::new(0))];
        let [one, other] = told.map(|told| Arc::new(told, GFP_KERNEL));
        let (one, other) = (one?, other?);
        listeners.listen(one.clone())?;
        let left = listeners.listen(other.clone())?;
        // Nobody has starved.
        listeners.tell();
        assert_eq!(one.0.load(ordering::Relaxed), 0);
        listeners.ignore(&left);
        listeners.starve();
        listeners.tell();
        listeners.tell();
        // All that was queued has run when this returns.
        node.work_queue.destroy();
        assert_eq!(one.0.load(ordering::Relaxed), 1);
        assert_eq!(other.0.load(ordering::Relaxed), 0);
        listeners.close();
        Ok(())
    }
}
