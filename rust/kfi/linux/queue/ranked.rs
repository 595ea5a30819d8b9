// SPDX-License-Identifier: GPL-2.0

//! Queues whose entries have a rank besides their name, and are found by either.
//!
//! There is a tree of the ranks as there is one of the names. It needs no memory of its own, as its links lie
//! beside the values. However long such a queue is, each operation only goes down a tree.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    container_of,
    prelude::*, //
};

use super::{
    bindings,
    insert,
    Entry,
    EntryQueue,
    Named,
    Node, //
};

/// A value that has a rank. The rank stays the same while it is in a queue, as the name does.
pub trait Ranked: Named {
    /// The rank. Several may have the same one.
    type Rank: Ord;

    /// Returns the rank.
    fn rank(&self) -> Self::Rank;
}

/// A value with its place in the tree of ranks.
pub struct Placed<T> {
    links: bindings::rb_node,
    value: T,
}

// SAFETY: The links are used by a queue that owns it, and not while it is in none.
unsafe impl<T: Send> Send for Placed<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Placed<T> {}

impl<T> Placed<T> {
    /// Places a value nowhere.
    pub fn new(value: T) -> Self {
        Self {
            links: bindings::rb_node::default(),
            value,
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the node that is at a place of a tree of ranks.
    ///
    /// # Safety
    ///
    /// `links` must be those of a value in such a node.
    unsafe fn at(links: *mut bindings::rb_node) -> *mut Node<Self> {
        // SAFETY: By the safety requirements.
        unsafe {
            let placed: *mut Self = container_of!(links, Self, links);
            container_of!(placed, Node<Self>, value)
        }
    }
}

impl<T> core::ops::Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> core::ops::DerefMut for Placed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Named> Named for Placed<T> {
    type Name = T::Name;

    fn name(&self) -> T::Name {
        self.value.name()
    }
}

/// A queue of entries in the order of their ranks, those with the same one in the order in which they came.
///
/// # Invariants
///
/// `ranks` is the root of a tree of the links of all values in `queue`, in that order.
pub struct RankedQueue<T> {
    queue: EntryQueue<Placed<T>>,
    ranks: bindings::rb_root,
}

// SAFETY: The queue owns its entries, and the tree is made of them.
unsafe impl<T: Send> Send for RankedQueue<T> {}

impl<T: Ranked> RankedQueue<T> {
    /// An empty queue.
    pub const fn new() -> Self {
        // INVARIANT: No values.
        Self {
            queue: EntryQueue::new(),
            ranks: bindings::rb_root {
                rb_node: ptr::null_mut(),
            },
        }
    }

    /// Returns whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: Entry<Placed<T>>) {
        let rank = entry.rank();
        let node = self.queue.append_named(entry);
        // INVARIANT: The value has just been added, and was in no queue before.
        // SAFETY: As above. What is in the tree is in the queue by the type invariants; it is borrowed
        // exclusively.
        unsafe {
            let is_before = |at| rank < (*Placed::<T>::at(at)).value.rank();
            let links = &raw mut (*node).value.links;
            insert(&raw mut self.ranks, links, is_before);
        }
    }

    /// Takes a node out.
    ///
    /// # Safety
    ///
    /// `node` must be in this queue.
    unsafe fn remove(&mut self, node: NonNull<Node<Placed<T>>>) -> Entry<Placed<T>> {
        let node = node.as_ptr();
        // INVARIANT: It leaves both.
        // SAFETY: By the safety requirements, and the type invariants.
        unsafe {
            bindings::rb_erase(&raw mut (*node).value.links, &raw mut self.ranks);
            self.queue.unlink(node)
        }
    }

    /// Returns the node of the first entry that has a name.
    fn named(&self, name: &T::Name) -> Option<NonNull<Node<Placed<T>>>> {
        let node = NonNull::new(self.queue.lower_bound(name))?;
        // SAFETY: It is in the queue, which is borrowed.
        let found = unsafe { node.as_ref() }.value.name();
        (found == *name).then_some(node)
    }

    /// Returns the nodes of the last entry of which `is_before` says so, and of the next one. It must
    /// say so of none that comes after one of which it does not.
    fn border(&self, is_before: impl Fn(&T) -> bool) -> [Option<NonNull<Node<Placed<T>>>>; 2] {
        let (mut before, mut next) = (ptr::null_mut(), ptr::null_mut());
        let mut at = self.ranks.rb_node;
        while !at.is_null() {
            // SAFETY: What is in the tree is in the queue by the type invariants, which is borrowed.
            unsafe {
                let node = Placed::<T>::at(at);
                at = if is_before(&(*node).value.value) {
                    before = node;
                    (*at).rb_right
                } else {
                    next = node;
                    (*at).rb_left
                };
            }
        }
        [NonNull::new(before), NonNull::new(next)]
    }

    /// Takes a node out if `accepted` says so of what is in it.
    ///
    /// # Safety
    ///
    /// `node` must be in this queue.
    unsafe fn remove_if(
        &mut self,
        node: NonNull<Node<Placed<T>>>,
        accepted: impl FnOnce(&T) -> bool,
    ) -> Option<Entry<Placed<T>>> {
        // SAFETY: By the safety requirements.
        let accepted = accepted(unsafe { &node.as_ref().value.value });
        // SAFETY: As above.
        accepted.then(|| unsafe { self.remove(node) })
    }

    /// Returns the entry that has a name; of several with that name, the one that was added first.
    pub fn get(&self, name: &T::Name) -> Option<&T> {
        let node = self.named(name)?;
        // SAFETY: It is in the queue, which is borrowed for as long.
        Some(unsafe { &node.as_ref().value.value })
    }

    /// Takes out the entry that [`Self::get`] returns.
    pub fn take(&mut self, name: &T::Name) -> Option<Entry<Placed<T>>> {
        let node = self.named(name)?;
        // SAFETY: It is in the queue.
        Some(unsafe { self.remove(node) })
    }

    /// Returns the last entry with a rank that is less than `rank`.
    pub fn last_before(&self, rank: &T::Rank) -> Option<&T> {
        let [before, _] = self.border(|value| value.rank() < *rank);
        // SAFETY: It is in the queue, which is borrowed for as long.
        before.map(|node| unsafe { &node.as_ref().value.value })
    }

    /// Takes out the first entry, if `accepted` says so.
    pub fn take_first(&mut self, accepted: impl FnOnce(&T) -> bool) -> Option<Entry<Placed<T>>> {
        let [_, first] = self.border(|_| false);
        // SAFETY: It is in the queue.
        unsafe { self.remove_if(first?, accepted) }
    }

    /// Takes out the first entry with a rank that is not less than `rank`, if `accepted` says so.
    pub fn take_from(
        &mut self,
        rank: &T::Rank,
        accepted: impl FnOnce(&T) -> bool,
    ) -> Option<Entry<Placed<T>>> {
        let [_, next] = self.border(|value| value.rank() < *rank);
        // SAFETY: It is in the queue.
        unsafe { self.remove_if(next?, accepted) }
    }
}

#[cfg(unit_tests)]
#[kunit_tests(linux_ranked_queue)]
mod tests {
    use super::*;

    /// A name and a rank.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Card(u32, u32);

    impl Named for Card {
        type Name = u32;

        fn name(&self) -> u32 {
            self.0
        }
    }

    impl Ranked for Card {
        type Rank = u32;

        fn rank(&self) -> u32 {
            self.1
        }
    }

    fn card(name: u32, rank: u32) -> Result<Entry<Placed<Card>>> {
        Entry::new(Placed::new(Card(name, rank)), GFP_KERNEL)
    }

    fn value(entry: Entry<Placed<Card>>) -> Card {
        entry.into_inner().into_inner()
    }

    /// Names in an order that is none, and ranks in another one, each of them twice.
    fn filled() -> Result<RankedQueue<Card>> {
        let mut queue = RankedQueue::new();
        for number in 0..200u32 {
            queue.push(card(
                number.wrapping_mul(37) % 200,
                number.wrapping_mul(11) % 100,
            )?);
        }
        Ok(queue)
    }

    #[test]
    fn in_the_order_of_ranks() -> Result {
        let mut queue = filled()?;
        for rank in 0..100u32 {
            // 91 is the inverse of 11.
            let number = rank.wrapping_mul(91) % 100;
            for number in [number, number.wrapping_add(100)] {
                assert!(queue.take_first(|first| first.1 != rank).is_none());
                let first = queue.take_first(|_| true).map(value);
                let name = number.wrapping_mul(37) % 200;
                assert_eq!(first, Some(Card(name, rank)));
                assert!(queue.get(&name).is_none());
            }
        }
        assert!(queue.is_empty() && queue.take_first(|_| true).is_none());
        Ok(())
    }

    #[test]
    fn by_name_and_by_rank() -> Result {
        let mut queue = filled()?;
        for name in 0..200u32 {
            if name % 3 == 0 {
                assert_eq!(queue.take(&name).map(value).map(|card| card.0), Some(name));
                assert!(queue.take(&name).is_none());
            }
        }
        let last = queue.last_before(&100).copied();
        assert_eq!(last.map(|card| card.1), Some(99));
        for rank in 0..100u32 {
            assert!(queue.last_before(&rank).is_none());
            while let Some(entry) = queue.take_from(&rank, |next| next.1 == rank) {
                let name = value(entry).0;
                assert!(name % 3 != 0);
                // With another rank it is somewhere else.
                queue.push(card(name, 1000)?);
                assert_eq!(queue.get(&name), Some(&Card(name, 1000)));
            }
        }
        assert!(queue.take_first(|first| first.1 < 1000).is_none());
        let mut left = 0u32;
        while queue.take_first(|_| true).is_some() {
            left = left.wrapping_add(1);
        }
        assert_eq!(left, 133);
        Ok(())
    }

    #[test]
    fn what_is_left_is_freed() -> Result {
        let mut queue = filled()?;
        let rest = core::mem::replace(&mut queue, RankedQueue::new());
        assert!(queue.is_empty() && !rest.is_empty());
        assert!(rest.get(&7).is_some());
        drop(rest);
        Ok(())
    }
}
