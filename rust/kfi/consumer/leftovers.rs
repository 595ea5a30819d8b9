// SPDX-License-Identifier: GPL-2.0

//! The remains of objects that are closed.
//!
//! Completions stay in their queues when the endpoint is closed whose operations they are about, with
//! their memory and the contexts that they name. So both count, and stay, until it is certain that there
//! are none any more: until each completion queue that was open then has been found empty since, by
//! a thread that was alone in reading it, or is closed.

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
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use super::{
    contexts::{
        Contexts,
        Owner,
        OwnerId, //
    }, //
    quota::Charge,
};

/// The memory that it takes to remember the remains of an object.
pub const LEFT_SIZE: usize = 256;

/// The remains of an object, to be dropped when they are not needed any more.
pub(super) struct Left {
    /// The owner whose contexts are to be forgotten.
    owner: OwnerId,
    /// The share that counted for its operations.
    _charges: [Charge; 4],
}

/// The known queues, and the remains of objects.
///
/// # Invariants
///
/// `by_time` has what `queues` has.
struct List {
    /// When completion queues that are open were found empty last, or were opened.
    queues: RBTree<OwnerId, u64>,
    by_time: RBTree<(u64, OwnerId), ()>,
    /// By the time at which it was left over.
    left: RBTree<u64, Left>,
}

impl List {
    /// Returns the time until which all queues were found empty.
    fn empty_until(&self) -> u64 {
        let first = self.by_time.cursor_front();
        first.map_or(u64::MAX, |cursor| cursor.current().0 .0)
    }

    /// Returns the time of the oldest that was left over; the end of all times if there is nothing.
    fn oldest(&self) -> u64 {
        let first = self.left.cursor_front();
        first.map_or(u64::MAX, |cursor| *cursor.current().0)
    }
}

/// The remains of objects, and until when they are kept.
#[pin_data]
pub(super) struct Leftovers {
    #[pin]
    list: Mutex<List>,
    /// How often something was left over.
    time: Atomic<u64>,
    /// The oldest that there is.
    oldest: Atomic<u64>,
}

impl Leftovers {
    /// Nothing.
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: There are no queues.
        let list = List {
            queues: RBTree::new(),
            by_time: RBTree::new(),
            left: RBTree::new(),
        };
        pin_init!(Self {
            list <- new_mutex!(list, "kfi::Leftovers::list"),
            time: Atomic::new(0),
            oldest: Atomic::new(u64::MAX),
        })
    }

    /// Lets go of what nothing needs any more.
    fn settle(&self, contexts: &Contexts) {
        loop {
            let mut list = self.list.lock();
            let oldest = list.oldest();
            let node = match oldest <= list.empty_until() {
                true => list.left.remove_node(&oldest),
                false => None,
            };
            // Relaxed: see `Reads::found_empty`.
            self.oldest.store(list.oldest(), ordering::Relaxed);
            drop(list);
            let Some(node) = node else {
                return;
            };
            let (_, left) = node.to_key_value();
            contexts.forget(left.owner);
            drop(left);
            // Others want the CPU, too.
            kernel::task::might_sleep();
        }
    }
}

/// An object with operations, and its future remains.
pub(super) struct Account {
    owner: Owner,
    /// The share that counts for its operations.
    charge: Charge,
    /// Closing needs no memory.
    node: RBTreeNodeReservation<u64, Left>,
}

impl Account {
    /// For something for whose operations `charge` counts, [`LEFT_SIZE`] included.
    pub(super) fn new(contexts: &Arc<Contexts>, charge: Charge) -> Result<Self> {
        Ok(Self {
            owner: Contexts::owner(contexts)?,
            charge,
            node: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
        })
    }

    /// Returns the owner of the contexts of its operations.
    pub(super) fn owner(&self) -> OwnerId {
        self.owner.id()
    }

    /// Leaves over what there is, and what else counts for its operations, as it is closed.
    pub(super) fn close(self, more: [Charge; 3]) {
        let Self {
            owner,
            charge,
            node,
        } = self;
        let contexts = owner.contexts().clone();
        let this = contexts.leftovers();
        let mut list = this.list.lock();
        if list.by_time.cursor_front().is_none() {
            // No completion is anywhere.
            drop(list);
            drop((owner, charge, more));
            return;
        }
        // Relaxed: changed with the lock held only. It does not wrap while a machine runs.
        let time = this.time.load(ordering::Relaxed).wrapping_add(1);
        let [first, second, third] = more;
        let left = Left {
            owner: owner.keep(),
            _charges: [charge, first, second, third],
        };
        let old = list.left.insert(node.into_node(time, left));
        // Relaxed: before the time, below.
        this.oldest.store(list.oldest(), ordering::Relaxed);
        // Release: a thread that sees this begins after everything was told that there was to be
        // told; pairs with `Reads::begin`.
        // See `qemu-test/litmus/KFI-leftover.litmus`.
        this.time.store(time, ordering::Release);
        drop(list);
        // There is none, as times are not used again.
        drop(old);
    }
}

/// The readers of a completion queue that is open.
pub(super) struct Reads {
    /// The owner of the contexts that its user writes.
    owner: Owner,
    /// How many are reading it and have not looked up what they were told.
    readers: Atomic<usize>,
}

impl Reads {
    /// For a queue that is about to be opened.
    pub(super) fn new(contexts: &Arc<Contexts>) -> Result<Self> {
        let owner = Contexts::owner(contexts)?;
        let id = owner.id();
        let queue = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let this = contexts.leftovers();
        let mut list = this.list.lock();
        // Relaxed: changed with the lock held only.
        let time = this.time.load(ordering::Relaxed);
        // INVARIANT: Both have it.
        let old = (
            list.queues.insert(queue.into_node(id, time)),
            list.by_time.insert(node.into_node((time, id), ())),
        );
        drop(list);
        // There is none, as owners are not used again.
        drop(old);
        Ok(Self {
            owner,
            readers: Atomic::new(0),
        })
    }

    /// Returns the owner of the contexts that the user of the queue writes.
    pub(super) fn owner(&self) -> OwnerId {
        self.owner.id()
    }

    /// Returns the contexts.
    pub(super) fn contexts(&self) -> &Arc<Contexts> {
        self.owner.contexts()
    }

    /// Begins to read the queue.
    pub(super) fn begin(&self) -> Reading<'_> {
        // Full: a thread that ends later sees that this one reads.
        self.readers.fetch_add(1, ordering::Full);
        // Acquire: what was left over by then has told everything; pairs with `Account::close`.
        let time = self.contexts().leftovers().time.load(ordering::Acquire);
        Reading {
            reads: self,
            time,
            empty: false,
        }
    }

    /// Notes that nothing is in the queue that was told before a time, and nothing of that is yet to be
    /// looked up.
    fn found_empty(&self, time: u64) {
        let contexts = self.contexts();
        let (this, id) = (contexts.leftovers(), self.owner.id());
        // Relaxed: what was left over by that time was noted before the time was seen. Else that it is
        // found later does no harm.
        if time < this.oldest.load(ordering::Relaxed) {
            return;
        }
        let mut list = this.list.lock();
        let Some(seen) = list.queues.get_mut(&id) else {
            return;
        };
        if *seen >= time {
            return;
        }
        let before = core::mem::replace(seen, time);
        if let Some(node) = list.by_time.remove_node(&(before, id)) {
            let node = node.into_reservation();
            // INVARIANT: As `queues`, again.
            let old = list.by_time.insert(node.into_node((time, id), ()));
            drop(list);
            // There is none, as that is the only one of this owner.
            drop(old);
            this.settle(contexts);
        }
    }
}

impl Drop for Reads {
    /// The queue is closed.
    fn drop(&mut self) {
        let contexts = self.contexts();
        let (this, id) = (contexts.leftovers(), self.owner.id());
        let mut list = this.list.lock();
        // INVARIANT: None has it.
        let time = list.queues.get(&id).copied();
        let queue = list.queues.remove_node(&id);
        let node = time.and_then(|time| list.by_time.remove_node(&(time, id)));
        drop(list);
        drop((queue, node));
        this.settle(contexts);
    }
}

/// A reader of a completion queue, until what was read was looked up.
pub(super) struct Reading<'a> {
    reads: &'a Reads,
    /// When this began.
    time: u64,
    /// Whether there was nothing.
    empty: bool,
}

impl Reading<'_> {
    /// Notes what an attempt to take something out that does not wait has found.
    pub(super) fn note<T>(&mut self, read: &Result<T>) {
        self.empty = matches!(read, Err(error) if *error == EAGAIN);
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // Full: after what was looked up, and before others who end later see that.
        let readers = self.reads.readers.fetch_sub(1, ordering::Full);
        if self.empty && readers == 1 {
            self.reads.found_empty(self.time);
        }
    }
}
