// SPDX-License-Identifier: GPL-2.0

//! Queues that allocate nothing when something is put into them.
//!
//! An entry is allocated before any lock is taken, moves into a queue and from one queue to another
//! by changing a few pointers, and is freed by whoever took it out, when no lock is held.
//!
//! All entries have one size. When the value of one was used, its memory can so carry another value,
//! of whatever type: what is to be told of an operation lies in the memory of the operation itself.

use core::{
    marker::PhantomData,
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// Bytes of an entry, which are one of the sizes that kmalloc has.
const SIZE: usize = 256;

/// The memory of an entry.
#[repr(C, align(8))]
struct Block([MaybeUninit<u8>; SIZE]);

/// An entry with its links.
struct Node<T> {
    prev: *mut Node<T>,
    next: *mut Node<T>,
    value: T,
}

/// The memory of an entry, without a value.
pub(crate) struct Vacant(KBox<MaybeUninit<Block>>);

impl Vacant {
    /// Allocates it.
    pub(crate) fn new(flags: Flags) -> Result<Self> {
        Ok(Self(KBox::new_uninit(flags)?))
    }

    /// Makes an entry of it.
    pub(crate) fn fill<T>(self, value: T) -> Entry<T> {
        const {
            assert!(size_of::<Node<T>>() <= SIZE && align_of::<Node<T>>() <= align_of::<Block>());
        }
        let node: *mut Node<T> = KBox::into_raw(self.0).cast();
        // SAFETY: A block is large enough for the node and aligned as it is, and it is ours.
        unsafe {
            node.write(Node {
                prev: ptr::null_mut(),
                next: ptr::null_mut(),
                value,
            });
        }
        // INVARIANT: The start of a block that was a box has just become a node.
        // SAFETY: The pointer of a box is not null.
        Entry(unsafe { NonNull::new_unchecked(node) })
    }
}

/// An entry that is in no queue.
///
/// # Invariants
///
/// It is the start of a [`Block`] that [`KBox::into_raw`] returned, which the entry owns, and in
/// which there is a node.
pub(crate) struct Entry<T>(NonNull<Node<T>>);

// SAFETY: The entry owns its value; its links are not used while it is in no queue.
unsafe impl<T: Send> Send for Entry<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Entry<T> {}

impl<T> Entry<T> {
    /// Allocates an entry.
    pub(crate) fn new(value: T, flags: Flags) -> Result<Self> {
        Ok(Vacant::new(flags)?.fill(value))
    }

    /// Gives the node up, to be taken back by [`Self::from_raw`].
    fn into_raw(self) -> *mut Node<T> {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Takes a node back.
    ///
    /// # Safety
    ///
    /// `node` must come from [`Self::into_raw`], once for each time.
    unsafe fn from_raw(node: *mut Node<T>) -> Self {
        // INVARIANT: It was an entry, by the safety requirements.
        // SAFETY: As above.
        Self(unsafe { NonNull::new_unchecked(node) })
    }

    /// Takes the value out and keeps the memory.
    pub(crate) fn empty(self) -> (T, Vacant) {
        let node = self.into_raw();
        // SAFETY: There is a node by the type invariants, which nobody uses after this.
        let value = unsafe { ptr::read(&raw const (*node).value) };
        // SAFETY: The memory is a block that came from a box, by the type invariants.
        (value, Vacant(unsafe { KBox::from_raw(node.cast()) }))
    }

    /// Takes the value out and frees the entry.
    pub(crate) fn into_inner(self) -> T {
        self.empty().0
    }
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        let node = self.0.as_ptr();
        // SAFETY: By the type invariants there is a node in a block that came from a box; nobody
        // uses either after this.
        unsafe {
            ptr::drop_in_place(node);
            drop(KBox::<MaybeUninit<Block>>::from_raw(node.cast()));
        }
    }
}

impl<T> core::ops::Deref for Entry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: There is a node, which the entry owns, by the type invariants.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T> core::ops::DerefMut for Entry<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As above.
        unsafe { &mut self.0.as_mut().value }
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
    _owner: PhantomData<Entry<T>>,
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
        let node = entry.into_raw();
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
        let node = entry.into_raw();
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
        // SAFETY: It was an entry that the queue has taken, and has given up.
        unsafe { Entry::from_raw(node) }
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
        while let Some(node) = NonNull::new(at) {
            // SAFETY: A node of the queue by the type invariants; nobody has another reference to it.
            let (accepted, next) = unsafe {
                let node = node.as_ref();
                (found(&node.value), node.next)
            };
            if accepted {
                // INVARIANT: As above.
                return Some(Found { node, queue: self });
            }
            at = next;
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
    fn memory_serves_again() -> Result {
        let text = KBox::new([7u64; 3], GFP_KERNEL)?;
        let (text, vacant) = Entry::new(text, GFP_KERNEL)?.empty();
        assert_eq!(*text, [7; 3]);
        let mut queue = EntryQueue::new();
        queue.push_back(vacant.fill([9u8; 100]));
        let (bytes, vacant) = queue.pop_front().ok_or(EINVAL)?.empty();
        assert_eq!(bytes, [9; 100]);
        assert_eq!(vacant.fill(3u8).into_inner(), 3);
        drop(Entry::new(text, GFP_KERNEL)?);
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
