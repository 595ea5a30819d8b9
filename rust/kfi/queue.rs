// SPDX-License-Identifier: GPL-2.0

//! Queues that allocate nothing when something is put into them.
//!
//! An entry is allocated before any lock is taken, moves into a queue and from one queue to another
//! by changing a few pointers, and is freed by whoever took it out, when no lock is held.

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// An entry with its links.
struct Node<T> {
    prev: *mut Node<T>,
    next: *mut Node<T>,
    value: T,
}

/// An entry that is in no queue.
pub(crate) struct Entry<T>(KBox<Node<T>>);

// SAFETY: The links of an entry that is in no queue are not used.
unsafe impl<T: Send> Send for Entry<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Entry<T> {}

impl<T> Entry<T> {
    /// Allocates an entry.
    pub(crate) fn new(value: T, flags: Flags) -> Result<Self> {
        Ok(Self(KBox::new(
            Node {
                prev: ptr::null_mut(),
                next: ptr::null_mut(),
                value,
            },
            flags,
        )?))
    }

    /// Takes the value out and frees the entry.
    pub(crate) fn into_inner(self) -> T {
        KBox::into_inner(self.0).value
    }
}

impl<T> core::ops::Deref for Entry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> core::ops::DerefMut for Entry<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.value
    }
}

/// A queue of entries, the first one first.
///
/// # Invariants
///
/// `first` and `last` are the ends of a doubly linked list of `len` nodes that the queue owns, each
/// a former [`Entry`], or both null.
pub(crate) struct EntryQueue<T> {
    first: *mut Node<T>,
    last: *mut Node<T>,
    len: usize,
    _owner: PhantomData<KBox<Node<T>>>,
}

// SAFETY: The queue owns its entries.
unsafe impl<T: Send> Send for EntryQueue<T> {}

impl<T> EntryQueue<T> {
    /// An empty queue.
    pub(crate) const fn new() -> Self {
        // INVARIANT: No nodes.
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
            _owner: PhantomData,
        }
    }

    /// Returns whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry at the end.
    pub(crate) fn push_back(&mut self, entry: Entry<T>) {
        let node = KBox::into_raw(entry.0);
        // SAFETY: The node has just been an entry that nobody else refers to.
        unsafe {
            (*node).prev = self.last;
            (*node).next = ptr::null_mut();
        }
        if self.last.is_null() {
            self.first = node;
        } else {
            // SAFETY: The last node is ours by the type invariants.
            unsafe { (*self.last).next = node };
        }
        // INVARIANT: The node follows what was the last one.
        self.last = node;
        self.len = self.len.wrapping_add(1);
    }

    /// Adds an entry at the start.
    pub(crate) fn push_front(&mut self, entry: Entry<T>) {
        let node = KBox::into_raw(entry.0);
        // SAFETY: The node has just been an entry that nobody else refers to.
        unsafe {
            (*node).prev = ptr::null_mut();
            (*node).next = self.first;
        }
        if self.first.is_null() {
            self.last = node;
        } else {
            // SAFETY: The first node is ours by the type invariants.
            unsafe { (*self.first).prev = node };
        }
        // INVARIANT: The node precedes what was the first one.
        self.first = node;
        self.len = self.len.wrapping_add(1);
    }

    /// Takes a node out.
    ///
    /// # Safety
    ///
    /// `node` must be in this queue.
    unsafe fn unlink(&mut self, node: *mut Node<T>) -> Entry<T> {
        // SAFETY: By the safety requirements.
        let (prev, next) = unsafe { ((*node).prev, (*node).next) };
        if prev.is_null() {
            self.first = next;
        } else {
            // SAFETY: A node of the queue by the type invariants.
            unsafe { (*prev).next = next };
        }
        if next.is_null() {
            self.last = prev;
        } else {
            // SAFETY: As above.
            unsafe { (*next).prev = prev };
        }
        // INVARIANT: The neighbours are linked with each other.
        self.len = self.len.wrapping_sub(1);
        // SAFETY: It came from `KBox::into_raw`, and the queue has given it up.
        Entry(unsafe { KBox::from_raw(node) })
    }

    /// Takes the first entry out.
    pub(crate) fn pop_front(&mut self) -> Option<Entry<T>> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: The first node is in the queue.
        Some(unsafe { self.unlink(self.first) })
    }

    /// Returns the first entry.
    pub(crate) fn front(&self) -> Option<&T> {
        // SAFETY: The first node, if any, is ours by the type invariants.
        unsafe { self.first.as_ref() }.map(|node| &node.value)
    }

    /// Returns the last entry.
    pub(crate) fn back(&self) -> Option<&T> {
        // SAFETY: The last node, if any, is ours by the type invariants.
        unsafe { self.last.as_ref() }.map(|node| &node.value)
    }

    /// Returns the first entry that `found` accepts.
    pub(crate) fn find(&mut self, mut found: impl FnMut(&T) -> bool) -> Option<Found<'_, T>> {
        let mut at = self.first;
        // SAFETY: A node of the queue by the type invariants, or null.
        while let Some(node) = unsafe { at.as_ref() } {
            if found(&node.value) {
                return Some(Found {
                    node: NonNull::from(node),
                    queue: self,
                });
            }
            at = node.next;
        }
        None
    }

    /// Takes the first entry out that `found` accepts.
    pub(crate) fn take(&mut self, found: impl FnMut(&T) -> bool) -> Option<Entry<T>> {
        self.find(found).map(Found::take)
    }

    /// Returns the entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            // SAFETY: A node of the queue by the type invariants, or null; the queue is borrowed.
            let node = unsafe { at.as_ref() }?;
            at = node.next;
            Some(&node.value)
        })
    }
}

impl<T> Drop for EntryQueue<T> {
    fn drop(&mut self) {
        while self.pop_front().is_some() {}
    }
}

/// An entry that was found in a queue.
///
/// # Invariants
///
/// `node` is in `queue`.
pub(crate) struct Found<'a, T> {
    node: NonNull<Node<T>>,
    queue: &'a mut EntryQueue<T>,
}

impl<T> Found<'_, T> {
    /// Takes it out.
    pub(crate) fn take(self) -> Entry<T> {
        // SAFETY: It is in the queue by the type invariants.
        unsafe { self.queue.unlink(self.node.as_ptr()) }
    }
}

impl<T> core::ops::Deref for Found<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: It is in the queue by the type invariants, which is borrowed exclusively.
        unsafe { &self.node.as_ref().value }
    }
}

impl<T> core::ops::DerefMut for Found<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As above.
        unsafe { &mut self.node.as_mut().value }
    }
}

#[cfg(kfi_tests)]
#[kunit_tests(kfi_queue)]
mod tests {
    use super::*;

    fn filled(values: core::ops::Range<u32>) -> Result<EntryQueue<u32>> {
        let mut queue = EntryQueue::new();
        for value in values {
            queue.push_back(Entry::new(value, GFP_KERNEL)?);
        }
        Ok(queue)
    }

    #[test]
    fn first_in_first_out() -> Result {
        let mut queue = filled(0..5)?;
        assert_eq!(queue.len(), 5);
        for value in 0..5 {
            assert_eq!(queue.pop_front().map(Entry::into_inner), Some(value));
        }
        assert!(queue.is_empty() && queue.pop_front().is_none());
        Ok(())
    }

    #[test]
    fn entries_leave_from_anywhere() -> Result {
        for gone in 0..4 {
            let mut queue = filled(0..4)?;
            assert_eq!(queue.take(|value| *value == gone).as_deref(), Some(&gone));
            assert!(queue.take(|value| *value == gone).is_none());
            queue.push_front(Entry::new(100, GFP_KERNEL)?);
            queue.push_back(Entry::new(200, GFP_KERNEL)?);
            let wanted = [100, 0, 1, 2, 3, 200].into_iter();
            assert!(queue
                .iter()
                .copied()
                .eq(wanted.filter(|value| *value != gone)));
        }
        Ok(())
    }

    #[test]
    fn what_was_found_can_be_changed() -> Result {
        let mut queue = filled(0..3)?;
        if let Some(mut found) = queue.find(|value| *value == 1) {
            *found = 7;
        }
        assert!(queue.iter().copied().eq([0, 7, 2]));
        Ok(())
    }
}
