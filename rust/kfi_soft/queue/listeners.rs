// SPDX-License-Identifier: GPL-2.0

//! Listeners that are notified at the end of a completion queue's backlog.
//!
//! # Why no listener waits in vain
//!
//! A thread that finds a backlog leaves its operation where its listener will find it, sets
//! `starved`, and then looks once more whether there still is a backlog. The reader that ends the
//! backlog looks at `starved` after that. Both do so fully ordered, so that one of them sees what
//! the other has done (`qemu-test/litmus/KFI-cq-starve.litmus`). All listeners are notified; one that
//! finds a backlog again starves again.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock,
        Arc,
        SpinLock, //
    }, //
};

use crate::{
    kfi::linux::{
        interrupts::NoPreemption,
        task::cond_resched,
        work_queue::{
            new_work,
            Work,
            WorkItem, //
        }, //
    },
    node::Node, //
};

/// An object that is notified when there is space in a completion queue again.
pub(crate) trait SpaceListener: Send + Sync {
    /// There may be space.
    ///
    /// Called in process context without locks. May be called without need, and for the last time
    /// while [`Listeners::ignore`] returns on another CPU.
    fn space_available(&self);
}

/// Names a listener of [`Listeners::listen`].
pub(crate) struct ListenerId(u64);

/// The part that the lock protects.
struct List {
    /// By number.
    listeners: RBTree<u64, Arc<dyn SpaceListener>>,
    /// The number given last.
    last: u64,
}

/// The listeners of a completion queue.
#[pin_data]
pub(crate) struct Listeners {
    /// A listener wants to be notified.
    starved: Atomic<bool>,
    #[pin]
    list: SpinLock<List>,
    node: Arc<Node>,
    /// Notifies them: a reader, which may be a hard interrupt, does not look at each of them.
    #[pin]
    work: Work<Listeners>,
}

impl Listeners {
    /// No listeners.
    pub(crate) fn new(node: Arc<Node>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                starved: Atomic::new(false),
                list <- new_spinlock!(
                    List {
                        listeners: RBTree::new(),
                        last: 0,
                    },
                    "kfi_soft::Listeners::list"
                ),
                node,
                work <- new_work!("kfi_soft::Listeners::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Asks for the listeners to be notified; the caller looks whether there is a backlog after
    /// that.
    pub(crate) fn starve(&self) {
        // Full: see the top of this file.
        self.starved.xchg(true, ordering::Full);
    }

    /// Lets the listeners be notified if one has starved. From any context, after the end of a
    /// backlog, fully ordered.
    pub(crate) fn notify(self: &Arc<Self>) {
        // Relaxed: ordered by the caller.
        if !self.starved.load(ordering::Relaxed) {
            return;
        }
        // All others leave it to the thread that takes the flag.
        let _preemption = NoPreemption::begin();
        // Full: a listener for which it is set again after this is notified again.
        if self.starved.xchg(false, ordering::Full) {
            self.node.work_queue.queue(self.clone());
        }
    }

    /// Adds a listener; may sleep.
    ///
    /// It keeps the listener until [`Self::ignore`] or [`Self::close`].
    pub(crate) fn listen(&self, listener: Arc<dyn SpaceListener>) -> Result<ListenerId> {
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let mut list = self.list.lock();
        // They last for the time of a machine.
        list.last = list.last.wrapping_add(1);
        let number = list.last;
        // There was none.
        let _ = list.listeners.insert(node.into_node(number, listener));
        Ok(ListenerId(number))
    }

    /// Removes a listener; does not wait for a notification that is under way. May sleep.
    pub(crate) fn ignore(&self, listener: &ListenerId) {
        let removed = self.list.lock().listeners.remove_node(&listener.0);
        // Without the lock.
        drop(removed);
    }

    /// Removes all listeners and waits until none is being notified; may sleep.
    pub(crate) fn close(&self) {
        self.work.cancel_sync();
        let listeners = core::mem::replace(&mut self.list.lock().listeners, RBTree::new());
        // Without the lock.
        drop(listeners);
    }
}

impl WorkItem for Listeners {
    fn work(&self) -> &Work<Self> {
        &self.work
    }

    fn run(this: Arc<Self>) {
        let mut next = 0;
        loop {
            let (number, listener) = {
                let mut list = this.list.lock();
                let Some(at) = list.listeners.cursor_lower_bound_mut(&next) else {
                    return;
                };
                let (number, listener) = at.current();
                (*number, listener.clone())
            };
            // Without the lock, as are the reference's end and what it may take along.
            listener.space_available();
            drop(listener);
            next = number.wrapping_add(1);
            cond_resched();
        }
    }
}

#[kunit_tests(kfi_soft_listeners)]
mod tests {
    use super::*;

    /// Counts how often it was notified.
    struct Told(Atomic<usize>);

    impl SpaceListener for Told {
        fn space_available(&self) {
            self.0.fetch_add(1, ordering::Relaxed);
        }
    }

    /// Nothing else notifies them: no time has to pass, and nothing else has to happen.
    #[test]
    fn told_by_the_end_of_a_backlog() -> Result {
        let node = Node::new()?;
        let listeners = Listeners::new(node.clone())?;
        let told = [Told(Atomic::new(0)), Told(Atomic::new(0))];
        let [one, other] = told.map(|told| Arc::new(told, GFP_KERNEL));
        let (one, other) = (one?, other?);
        listeners.listen(one.clone())?;
        let left = listeners.listen(other.clone())?;
        // No listener has starved.
        listeners.notify();
        assert_eq!(one.0.load(ordering::Relaxed), 0);
        listeners.ignore(&left);
        listeners.starve();
        listeners.notify();
        listeners.notify();
        // All that was queued has run when this returns.
        node.work_queue.destroy();
        assert_eq!(one.0.load(ordering::Relaxed), 1);
        assert_eq!(other.0.load(ordering::Relaxed), 0);
        listeners.close();
        Ok(())
    }
}
