// SPDX-License-Identifier: GPL-2.0

//! Due entries, in order, on their way to be run.
//!
//! Batches are linked through the first of their entries, so that nothing is allocated for them.

#![forbid(unsafe_code)]

use core::hint;
use kernel::prelude::*;

use super::{
    set_link,
    Link,
    ThresholdEntry,
    PAIRED, //
};

/// Entries that leave in order.
///
/// # Invariants
///
/// `next` has the smallest key. The `right` of an entry is a tree of greater keys, and its `left`, if
/// there is one, comes after all these.
pub(crate) struct Batch<T> {
    next: Link<T>,
}

impl<T> Batch<T> {
    /// Takes the entries of a tree.
    pub(super) fn new(tree: Link<T>) -> Self {
        let mut batch = Self { next: None };
        batch.put_before(tree);
        batch
    }

    /// No entries.
    pub(crate) const fn empty() -> Self {
        Self { next: None }
    }

    /// Puts an entry, which was removed from a set, before all others. They have greater keys.
    pub(crate) fn put_first(&mut self, mut entry: KBox<ThresholdEntry<T>>) {
        // INVARIANT: Nothing is right of it, and all others come after it.
        set_link(&mut entry.left, self.next.take());
        set_link(&mut self.next, Some(entry));
    }

    /// Puts a tree before what there is.
    fn put_before(&mut self, mut tree: Link<T>) {
        while let Some(mut entry) = tree {
            // It is next but one at the earliest; meanwhile it comes into the caches.
            hint::black_box(entry.right.as_ref().map(|right| right.priority));
            tree = entry.left.take();
            // INVARIANT: It and what is right of it come before the others, and what was left of
            // it before that.
            set_link(&mut entry.left, self.next.take());
            set_link(&mut self.next, Some(entry));
        }
    }

    /// Takes out the first entry.
    pub(crate) fn pop(&mut self) -> Option<KBox<ThresholdEntry<T>>> {
        let mut entry = self.next.take()?;
        set_link(&mut self.next, entry.left.take());
        self.put_before(entry.right.take());
        Some(entry)
    }

    /// Returns whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        // One by one, as the entries own each other.
        while self.pop().is_some() {}
    }
}

/// Batches, the one that came last on top.
///
/// # Invariants
///
/// `top` is the head of the batch on top. The `left` of a head is what comes next in its batch, and its
/// `right` is the head of the next batch.
pub(crate) struct BatchStack<T> {
    top: Link<T>,
}

impl<T> BatchStack<T> {
    /// No batches.
    pub(crate) const fn new() -> Self {
        Self { top: None }
    }

    /// Adds what became due at once: two batches, which are to leave as one, sorted.
    pub(crate) fn push(&mut self, one: Batch<T>, other: Batch<T>) {
        let paired = if other.is_empty() { 0 } else { PAIRED };
        self.push_one(one, paired);
        self.push_one(other, 0);
    }

    /// Adds a batch, unless it is empty.
    fn push_one(&mut self, mut batch: Batch<T>, paired: u32) {
        if let Some(mut head) = batch.pop() {
            head.priority = paired;
            // INVARIANT: All that was right of the head is in the batch, and comes next.
            set_link(&mut head.left, batch.next.take());
            set_link(&mut head.right, self.top.take());
            set_link(&mut self.top, Some(head));
        }
    }

    /// Takes all, the one that came first first.
    pub(crate) fn take(&mut self) -> BatchQueue<T> {
        let mut stack = self.top.take();
        let mut first = None;
        while let Some(mut head) = stack {
            stack = head.right.take();
            set_link(&mut head.right, first);
            first = Some(head);
        }
        // INVARIANT: The heads are linked as they were, the other way round.
        BatchQueue {
            current: Batch { next: None },
            paired: Batch { next: None },
            rest: first,
        }
    }
}

impl<T> Drop for BatchStack<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Batches whose entries leave in the order in which the batches came.
///
/// # Invariants
///
/// `rest` is the head of the next batch; heads are as in a [`BatchStack`].
pub(crate) struct BatchQueue<T> {
    current: Batch<T>,
    /// The batch that leaves together with `current`.
    paired: Batch<T>,
    rest: Link<T>,
}

impl<T> BatchQueue<T> {
    /// No batches.
    pub(crate) const fn new() -> Self {
        Self {
            current: Batch { next: None },
            paired: Batch { next: None },
            rest: None,
        }
    }

    /// Returns whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty() && self.paired.is_empty() && self.rest.is_none()
    }

    /// Takes out the next batch; with its head, as nothing is right of that any more.
    fn next_head(&mut self) -> Link<T> {
        let mut head = self.rest.take()?;
        set_link(&mut self.rest, head.right.take());
        Some(head)
    }

    /// Takes out the next entry.
    pub(crate) fn pop(&mut self) -> Option<KBox<ThresholdEntry<T>>> {
        if self.current.is_empty() && self.paired.is_empty() {
            let head = self.next_head()?;
            if head.priority == PAIRED {
                let paired = self.next_head();
                set_link(&mut self.paired.next, paired);
            }
            set_link(&mut self.current.next, Some(head));
        }
        let from_paired = match (&self.current.next, &self.paired.next) {
            (Some(one), Some(other)) => other.key < one.key,
            (one, _) => one.is_none(),
        };
        if from_paired {
            self.paired.pop()
        } else {
            self.current.pop()
        }
    }

    /// Puts back the entry that was taken out last.
    pub(crate) fn put_back(&mut self, entry: KBox<ThresholdEntry<T>>) {
        // It had the smallest key of both batches, so that it may come first in either.
        self.current.put_first(entry);
    }
}

impl<T> Drop for BatchQueue<T> {
    fn drop(&mut self) {
        // One by one, as the entries own each other.
        while self.pop().is_some() {}
    }
}
