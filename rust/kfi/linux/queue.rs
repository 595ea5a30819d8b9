// SPDX-License-Identifier: GPL-2.0

//! Queues that allocate nothing when something is put into them.
//!
//! An entry is allocated before any lock is taken, moves into a queue and from one queue to another
//! by changing a few pointers, and is freed by the thread that took it out, when no lock is held.
//!
//! All entries have one size. When the value of one was used, its memory can so carry another value,
//! of whatever type: what is to be told of an operation lies in the memory of the operation itself.
//!
//! A long queue is walked in steps ([`Walk`]), between which the lock that protects it is released:
//! how long interrupts are disabled does not depend on how much is queued. Entries may come and go
//! between two steps; a walk sees each entry that was there all the time, once.
//!
//! Entries that have a name ([`Named`]) are found by it without a walk: those that were added for
//! that ([`EntryQueue::push_named`]) lie in a tree besides, which needs no memory of its own either.
//! [`EntryQueue::find_exact`] looks for a name, [`EntryQueue::find_named`] for that or the next one.
//! In the same way entries may have a key (`Keyed`), by which the first one that is wanted is found among
//! those that have the same one.
//! A queue whose entries are found in some order as well is a `ranked::RankedQueue`.

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
    container_of,
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

use super::bindings;

#[cfg(linux_ranked_queue)]
pub mod ranked;

/// Bytes of an entry, which are one of the sizes that kmalloc has.
const SIZE: usize = 256;

/// The memory of an entry. Its alignment leaves low bits of its address to [`Inbox`].
#[repr(C, align(64))]
struct Block([MaybeUninit<u8>; SIZE]);

/// A value that has a name, by which it is found. The name stays the same while it is in a queue: if
/// it does not, the value may not be found.
pub trait Named {
    /// The name. Several may have the same one.
    type Name: Ord;

    /// Returns the name.
    fn name(&self) -> Self::Name;
}

/// A value that may have a key. The key stays the same while it is in a queue.
#[cfg(linux_keyed_queue)]
pub trait Keyed: Named {
    /// Returns the key, if it has one. Several may have the same one.
    fn key(&self) -> Option<u64>;
}

/// An entry with its links.
struct Node<T> {
    prev: *mut Node<T>,
    next: *mut Node<T>,
    /// Its place in the tree of names of a queue; its parent is itself while it is in none.
    links: bindings::rb_node,
    /// Its place in the tree of keys, in the same way.
    #[cfg(linux_keyed_queue)]
    key_links: bindings::rb_node,
    value: T,
}

impl<T> Node<T> {
    /// Returns the node that is at a place of a tree of keys.
    ///
    /// # Safety
    ///
    /// `links` must be those of such a node.
    #[cfg(linux_keyed_queue)]
    unsafe fn at_key(links: *mut bindings::rb_node) -> *mut Self {
        // SAFETY: By the safety requirements.
        unsafe { container_of!(links, Self, key_links) }
    }

    /// Returns the node that is at a place of a tree.
    ///
    /// # Safety
    ///
    /// `links` must be those of such a node.
    unsafe fn at(links: *mut bindings::rb_node) -> *mut Self {
        // SAFETY: By the safety requirements.
        unsafe { container_of!(links, Self, links) }
    }
}

/// Takes links for such that are in no tree.
///
/// # Safety
///
/// `links` must be valid for writes, and in no tree.
unsafe fn clear(links: *mut bindings::rb_node) {
    // SAFETY: By the safety requirements.
    unsafe { (*links).__rb_parent_color = links.addr() };
}

/// Takes links out of a tree, if they are in it; returns whether they were.
///
/// # Safety
///
/// `links` must be valid for writes, and those of a node of the tree with this root, which nobody else uses
/// meanwhile, or in no tree.
unsafe fn erase(root: *mut bindings::rb_root, links: *mut bindings::rb_node) -> bool {
    // SAFETY: By the safety requirements.
    unsafe {
        let is_linked = (*links).__rb_parent_color != links.addr();
        if is_linked {
            bindings::rb_erase(links, root);
            clear(links);
        }
        is_linked
    }
}

/// Puts a node into a tree: behind all others, but before those of which `is_before` says so, which have to be
/// the last ones.
///
/// # Safety
///
/// `root` must be that of a tree that nobody else uses meanwhile, and `links` valid for writes, and in no
/// tree. `is_before` is called with nodes of the tree.
unsafe fn insert(
    root: *mut bindings::rb_root,
    links: *mut bindings::rb_node,
    mut is_before: impl FnMut(*mut bindings::rb_node) -> bool,
) {
    let mut parent = ptr::null_mut();
    // SAFETY: By the safety requirements.
    let mut place = unsafe { &raw mut (*root).rb_node };
    loop {
        // SAFETY: The root, or a child of a node of the tree, by the safety requirements.
        let at = unsafe { *place };
        if at.is_null() {
            break;
        }
        parent = at;
        // SAFETY: A node of the tree, as above.
        place = unsafe {
            if is_before(at) {
                &raw mut (*at).rb_left
            } else {
                &raw mut (*at).rb_right
            }
        };
    }
    // SAFETY: `place` is where a child of `parent`, or the root, is missing.
    unsafe {
        bindings::rb_link_node(links, parent, place);
        bindings::rb_insert_color(links, root);
    }
}

/// The memory of an entry, without a value.
pub struct Vacant(KBox<MaybeUninit<Block>>);

impl Vacant {
    /// The bytes of an entry, whatever its value.
    pub const SIZE: usize = SIZE;

    /// Allocates it.
    pub fn new(flags: Flags) -> Result<Self> {
        Ok(Self(KBox::new_uninit(flags)?))
    }

    /// Makes an entry of it.
    #[inline]
    pub fn fill<T>(self, value: T) -> Entry<T> {
        const {
            assert!(size_of::<Node<T>>() <= SIZE && align_of::<Node<T>>() <= align_of::<Block>());
        }
        let node: *mut Node<T> = KBox::into_raw(self.0).cast();
        // SAFETY: A block is large enough for the node and aligned as it is, and it is ours.
        unsafe {
            node.write(Node {
                prev: ptr::null_mut(),
                next: ptr::null_mut(),
                links: bindings::rb_node::default(),
                #[cfg(linux_keyed_queue)]
                key_links: bindings::rb_node::default(),
                value,
            });
            clear(&raw mut (*node).links);
            #[cfg(linux_keyed_queue)]
            clear(&raw mut (*node).key_links);
        }
        // INVARIANT: The start of a block that was a box has just become a node, in no tree.
        // SAFETY: The pointer of a box is not null.
        Entry(unsafe { NonNull::new_unchecked(node) })
    }
}

/// Room for the memory of one entry, which the next user need not allocate then. From any context.
///
/// # Invariants
///
/// The pointer is null, or that of a [`Vacant`] which this owns.
pub struct Spare(Atomic<*mut MaybeUninit<Block>>);

impl Spare {
    /// There is none.
    pub const fn new() -> Self {
        // INVARIANT: Null.
        Self(Atomic::new(ptr::null_mut()))
    }

    /// Takes the memory that is there, or allocates some.
    pub fn take(&self, flags: Flags) -> Result<Vacant> {
        // INVARIANT: Null again.
        // Acquire: the user before is done with it. See `qemu-test/litmus/queue-spare.litmus`.
        let memory = self.0.xchg(ptr::null_mut(), ordering::Acquire);
        if memory.is_null() {
            return Vacant::new(flags);
        }
        // SAFETY: It came from a box, by the type invariants, which this thread alone has got.
        Ok(Vacant(unsafe { KBox::from_raw(memory) }))
    }

    /// Keeps memory, or frees it if there is some.
    pub fn give(&self, memory: Vacant) {
        let memory = KBox::into_raw(memory.0);
        // INVARIANT: This owns it if it has come here.
        // Release: the user is done with it.
        let kept = self.0.cmpxchg(ptr::null_mut(), memory, ordering::Release);
        if kept.is_err() {
            // SAFETY: It came from a box above, and did not go here.
            drop(Vacant(unsafe { KBox::from_raw(memory) }));
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        // Relaxed: nobody else uses it.
        let memory = self.0.load(ordering::Relaxed);
        if !memory.is_null() {
            // SAFETY: It came from a box, by the type invariants, and is not used after this.
            drop(Vacant(unsafe { KBox::from_raw(memory) }));
        }
    }
}

/// Entries that come without a lock, to be taken by the one that has it: as long as it leaves room for them.
///
/// # Invariants
///
/// The pointer without its low bits is null, or the first node of a list that this owns, in which each was
/// added after the next one. They are former [`Entry`]s. The low bits say for how many more there is room.
pub struct Inbox<T>(Atomic<*mut Node<T>>);

/// The bits in the address of a block that are 0.
const LOW_BITS: usize = align_of::<Block>() - 1;

impl<T: Send> Inbox<T> {
    /// There is no room.
    pub const fn new() -> Self {
        // INVARIANT: Null.
        Self(Atomic::new(ptr::null_mut()))
    }

    /// Adds an entry behind the others, from any context; gives it back if there is no room.
    #[inline]
    pub fn push(&self, entry: Entry<T>) -> core::result::Result<(), Entry<T>> {
        let node = entry.0.as_ptr();
        // Relaxed: `cmpxchg` validates the value.
        let mut head = self.0.load(ordering::Relaxed);
        loop {
            let Some(room) = (head.addr() & LOW_BITS).checked_sub(1) else {
                return Err(entry);
            };
            // SAFETY: The node is that of the entry, which is ours.
            unsafe { (*node).next = head.map_addr(|at| at & !LOW_BITS) };
            // INVARIANT: The list goes on with what was its first node: though it may have gone and come
            // again meanwhile, it is the first one. The low bits of a node are 0.
            // Full: what the entry is comes before. See `qemu-test/litmus/queue-inbox.litmus`.
            match self
                .0
                .cmpxchg(head, node.map_addr(|at| at | room), ordering::Full)
            {
                Ok(_) => break,
                Err(current) => head = current,
            }
        }
        // It is in the list.
        entry.into_raw();
        Ok(())
    }

    /// Takes the entries out, and leaves no room for others.
    #[inline]
    pub fn shut(&self) -> Batch<T> {
        // INVARIANT: Null.
        // Full: others come after this, elsewhere. See `qemu-test/litmus/queue-inbox.litmus`.
        let head = self.0.xchg(ptr::null_mut(), ordering::Full);
        let mut node = head.map_addr(|at| at & !LOW_BITS);
        let mut first = ptr::null_mut();
        while !node.is_null() {
            // SAFETY: A node of the list, by the type invariants, which nobody else uses any more.
            let next = unsafe { core::mem::replace(&mut (*node).next, first) };
            first = node;
            node = next;
        }
        // INVARIANT: The list of all of them, the other way round.
        Batch(first)
    }

    /// Makes room for `room` entries, at most [`Self::LIMIT`]. To be called by the one that has shut it.
    #[inline]
    pub fn open(&self, room: usize) {
        let room = ptr::without_provenance_mut(room.min(Self::LIMIT));
        // INVARIANT: Null, but for the low bits.
        // Release: what is done with others before comes before those that are added.
        // If somebody else has opened it, it stays as it is.
        let _ = self.0.cmpxchg(ptr::null_mut(), room, ordering::Release);
    }

    /// The most entries that there can be room for.
    pub const LIMIT: usize = LOW_BITS;
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        // Relaxed: nobody else uses it.
        let mut node = self.0.load(ordering::Relaxed).map_addr(|at| at & !LOW_BITS);
        while !node.is_null() {
            // SAFETY: A node of the list, by the type invariants.
            let next = unsafe { (*node).next };
            // SAFETY: As above, and a former entry.
            drop(unsafe { Entry::from_raw(node) });
            node = next;
        }
    }
}

/// Entries that were taken from an [`Inbox`].
///
/// # Invariants
///
/// The pointer is null, or the first node of a list that this owns, of former [`Entry`]s.
pub struct Batch<T>(*mut Node<T>);

impl<T> Batch<T> {
    /// Takes out the one that was added first.
    #[inline]
    pub fn pop(&mut self) -> Option<Entry<T>> {
        let node = self.0;
        if node.is_null() {
            return None;
        }
        // INVARIANT: The list without its first node.
        // SAFETY: A node of the list, by the type invariants.
        self.0 = unsafe { (*node).next };
        // SAFETY: As above, and a former entry.
        Some(unsafe { Entry::from_raw(node) })
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        while let Some(entry) = self.pop() {
            drop(entry);
        }
    }
}

/// An entry that is in no queue.
///
/// # Invariants
///
/// It is the start of a [`Block`] that [`KBox::into_raw`] returned, which the entry owns, and in
/// which there is a node that is in no tree.
pub struct Entry<T>(NonNull<Node<T>>);

// SAFETY: The entry owns its value; its links are not used while it is in no queue.
unsafe impl<T: Send> Send for Entry<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Entry<T> {}

impl<T> Entry<T> {
    /// Allocates an entry.
    pub fn new(value: T, flags: Flags) -> Result<Self> {
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
    /// `node` must come from [`Self::into_raw`], once for each time, and be in no tree.
    unsafe fn from_raw(node: *mut Node<T>) -> Self {
        // INVARIANT: It was an entry, by the safety requirements.
        // SAFETY: As above.
        Self(unsafe { NonNull::new_unchecked(node) })
    }

    /// Takes the value out and keeps the memory.
    pub fn empty(self) -> (T, Vacant) {
        let node = self.into_raw();
        // SAFETY: There is a node by the type invariants, which nobody uses after this.
        let value = unsafe { ptr::read(&raw const (*node).value) };
        // SAFETY: The memory is a block that came from a box, by the type invariants.
        (value, Vacant(unsafe { KBox::from_raw(node.cast()) }))
    }

    /// Takes the value out and frees the entry.
    pub fn into_inner(self) -> T {
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

/// A queue of entries, the first one first, through which up to `WALKS` walks lead at a time.
///
/// # Invariants
///
/// - `first` and `last` are the ends of a doubly linked list of `len` nodes that the queue owns, each
///   a former [`Entry`], or both null.
/// - `names` and `keys` are the roots of trees of those of its nodes that are linked there, and no others are;
///   `keyed` says how many are in `keys`.
/// - The place of each walk in `walks` is null or a node of the queue.
pub struct EntryQueue<T, const WALKS: usize = 0> {
    first: *mut Node<T>,
    last: *mut Node<T>,
    len: usize,
    /// The entries that are found by name.
    names: bindings::rb_root,
    /// The entries that are found by their key.
    #[cfg(linux_keyed_queue)]
    keys: bindings::rb_root,
    #[cfg(linux_keyed_queue)]
    keyed: usize,
    /// How often the first one has left.
    departures: usize,
    /// The walks, by bit.
    walks: u32,
    /// The entry that each walk comes to next; null at the end.
    places: [*mut Node<T>; WALKS],
    _owner: PhantomData<Entry<T>>,
}

/// A queue that can be walked in steps.
pub type WalkableQueue<T> = EntryQueue<T, 8>;

/// A walk through a queue, by its number there. It is ended by [`EntryQueue::end_walk`].
pub struct Walk(usize);

/// Where a step of a walk has come to.
pub enum Step<'a, T, const WALKS: usize> {
    /// To what was looked for, which is also what the next step begins with, unless it leaves.
    Found(FoundEntry<'a, T, WALKS>),
    /// To its limit.
    More,
    /// To the end.
    End,
}

// SAFETY: The queue owns its entries.
unsafe impl<T: Send, const WALKS: usize> Send for EntryQueue<T, WALKS> {}

impl<T> EntryQueue<T> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self::walkable()
    }
}

impl<T, const WALKS: usize> EntryQueue<T, WALKS> {
    /// An empty queue that can be walked.
    pub const fn walkable() -> Self {
        const {
            assert!(WALKS <= u32::BITS as usize);
        }
        // INVARIANT: No nodes.
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
            names: bindings::rb_root {
                rb_node: ptr::null_mut(),
            },
            #[cfg(linux_keyed_queue)]
            keys: bindings::rb_root {
                rb_node: ptr::null_mut(),
            },
            #[cfg(linux_keyed_queue)]
            keyed: 0,
            departures: 0,
            walks: 0,
            places: [ptr::null_mut(); WALKS],
            _owner: PhantomData,
        }
    }

    /// Leads the walks that have come to `from` to `to`, which is null or in the queue.
    fn lead(&mut self, from: *mut Node<T>, to: *mut Node<T>) {
        if self.walks == 0 {
            return;
        }
        for place in &mut self.places {
            if *place == from {
                // INVARIANT: By the condition of this function.
                *place = to;
            }
        }
    }

    /// Begins a walk at the first entry; `None` if there are as many as there may be.
    pub fn begin_walk(&mut self) -> Option<Walk> {
        let number = usize::try_from(self.walks.trailing_ones()).ok()?;
        let place = self.places.get_mut(number)?;
        // INVARIANT: Null, or in the queue.
        *place = self.first;
        self.walks |= Self::bit(number);
        Some(Walk(number))
    }

    /// Ends a walk.
    pub fn end_walk(&mut self, walk: Walk) {
        self.walks &= !Self::bit(walk.0);
    }

    /// Returns the bit of a walk.
    fn bit(number: usize) -> u32 {
        u32::try_from(number)
            .ok()
            .and_then(|number| 1u32.checked_shl(number))
            .unwrap_or(0)
    }

    /// Walks on to the first entry that `found` accepts, past as many others as `limit` says, which
    /// is lowered accordingly. A walk that is not one of this queue is at its end.
    pub fn walk_on(
        &mut self,
        walk: &Walk,
        limit: &mut usize,
        mut found: impl FnMut(&T) -> bool,
    ) -> Step<'_, T, WALKS> {
        if self.walks & Self::bit(walk.0) == 0 {
            return Step::End;
        }
        let Some(mut at) = self.places.get(walk.0).copied() else {
            return Step::End;
        };
        let (accepted, more) = loop {
            let Some(node) = NonNull::new(at) else {
                break (None, false);
            };
            let Some(left) = limit.checked_sub(1) else {
                break (None, true);
            };
            *limit = left;
            // SAFETY: A node of the queue by the type invariants; nobody has another reference to it.
            let node_ref = unsafe { node.as_ref() };
            if found(&node_ref.value) {
                break (Some(node), true);
            }
            at = node_ref.next;
        };
        if let Some(place) = self.places.get_mut(walk.0) {
            // INVARIANT: A node of the queue, or null behind the last one.
            *place = at;
        }
        match accepted {
            // INVARIANT: As above.
            Some(node) => Step::Found(FoundEntry { node, queue: self }),
            None if more => Step::More,
            None => Step::End,
        }
    }

    /// As [`Self::walk_on`]; begins the walk if it has not begun. Without room for another walk
    /// nothing is looked at, and the limit is used up.
    pub fn step(
        &mut self,
        walk: &mut Option<Walk>,
        limit: &mut usize,
        found: impl FnMut(&T) -> bool,
    ) -> Step<'_, T, WALKS> {
        if walk.is_none() {
            *walk = self.begin_walk();
        }
        let Some(current) = walk else {
            *limit = 0;
            return Step::More;
        };
        self.walk_on(current, limit, found)
    }

    /// Returns how often the first entry has left the queue: while it does not change, the first one
    /// is the same.
    pub fn departures(&self) -> usize {
        self.departures
    }

    /// Returns whether there is nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry at the end.
    pub fn push_back(&mut self, entry: Entry<T>) {
        self.append(entry);
    }

    /// Adds an entry at the end; returns its node, which is in no tree.
    fn append(&mut self, entry: Entry<T>) -> *mut Node<T> {
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
        // It has come before the walks that were at the end.
        self.lead(ptr::null_mut(), node);
        self.len = self.len.wrapping_add(1);
        node
    }

    /// Takes a node out.
    ///
    /// # Safety
    ///
    /// `node` must be in this queue.
    unsafe fn unlink(&mut self, node: *mut Node<T>) -> Entry<T> {
        // SAFETY: By the safety requirements.
        let (prev, next) = unsafe { ((*node).prev, (*node).next) };
        self.lead(node, next);
        if prev.is_null() {
            self.departures = self.departures.wrapping_add(1);
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
        // INVARIANT: It is not in the trees any more.
        // SAFETY: By the type invariants it is in each of them if it is linked there at all.
        unsafe {
            erase(&raw mut self.names, &raw mut (*node).links);
            #[cfg(linux_keyed_queue)]
            if erase(&raw mut self.keys, &raw mut (*node).key_links) {
                self.keyed = self.keyed.wrapping_sub(1);
            }
        }
        // SAFETY: It was an entry that the queue has taken, and has given up; it is in no tree.
        unsafe { Entry::from_raw(node) }
    }

    /// Takes the first entry out.
    pub fn pop_front(&mut self) -> Option<Entry<T>> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: The first node is in the queue.
        Some(unsafe { self.unlink(self.first) })
    }

    /// Returns the first entry.
    pub fn front(&self) -> Option<&T> {
        // SAFETY: The first node, if any, is ours by the type invariants.
        unsafe { self.first.as_ref() }.map(|node| &node.value)
    }

    /// Returns the first entry that `found` accepts.
    pub fn find(&mut self, found: impl FnMut(&T) -> bool) -> Option<FoundEntry<'_, T, WALKS>> {
        self.find_among(usize::MAX, found)
    }

    /// Returns the first entry that `found` accepts, of as many as `limit` says.
    pub fn find_among(
        &mut self,
        limit: usize,
        mut found: impl FnMut(&T) -> bool,
    ) -> Option<FoundEntry<'_, T, WALKS>> {
        let mut at = self.first;
        for _ in 0..limit {
            let node = NonNull::new(at)?;
            // SAFETY: A node of the queue by the type invariants; nobody has another reference to it.
            let (accepted, next) = unsafe {
                let node = node.as_ref();
                (found(&node.value), node.next)
            };
            if accepted {
                // INVARIANT: As above.
                return Some(FoundEntry { node, queue: self });
            }
            at = next;
        }
        None
    }

    /// Takes the first entry out that `found` accepts.
    #[allow(dead_code, reason = "not every user of queues looks through them")]
    pub fn take(&mut self, found: impl FnMut(&T) -> bool) -> Option<Entry<T>> {
        self.find(found).map(FoundEntry::take)
    }

    /// Returns the entries.
    #[allow(dead_code, reason = "not every user of queues looks through them")]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            // SAFETY: A node of the queue by the type invariants, or null; the queue is borrowed.
            let node = unsafe { at.as_ref() }?;
            at = node.next;
            Some(&node.value)
        })
    }
}

impl<T: Named, const WALKS: usize> EntryQueue<T, WALKS> {
    /// Adds an entry at the end, to be found by its name.
    pub fn push_named(&mut self, entry: Entry<T>) {
        self.append_named(entry);
    }

    /// Adds an entry at the end, to be found by its name; returns its node.
    fn append_named(&mut self, entry: Entry<T>) -> *mut Node<T> {
        let name = entry.name();
        let node = self.append(entry);
        // INVARIANT: The node has just been added, and in no tree before.
        // SAFETY: As above. Nodes of the tree are in the queue by the type invariants; it is borrowed
        // exclusively.
        unsafe {
            // Entries with the same name stay in order.
            let is_before = |at| name < (*Node::<T>::at(at)).value.name();
            insert(&raw mut self.names, &raw mut (*node).links, is_before);
        }
        node
    }

    /// Returns the entry that has a name; of several with that name, the one that was added first. Only
    /// those that were added with their names are found.
    #[allow(dead_code, reason = "not every user of queues looks for one name")]
    pub fn find_exact(&mut self, name: &T::Name) -> Option<FoundEntry<'_, T, WALKS>> {
        self.find_named(name).filter(|found| found.name() == *name)
    }

    /// Returns the first entry, by name, whose name is not less than `name`, which is another one's if
    /// nothing has that name; else as [`Self::find_exact`].
    pub fn find_named(&mut self, name: &T::Name) -> Option<FoundEntry<'_, T, WALKS>> {
        // INVARIANT: A node of the tree is one of the queue.
        NonNull::new(self.lower_bound(name)).map(|node| FoundEntry { node, queue: self })
    }

    /// Returns the node of the entry that [`Self::find_named`] finds, or null.
    fn lower_bound(&self, name: &T::Name) -> *mut Node<T> {
        let mut best = ptr::null_mut();
        let mut at = self.names.rb_node;
        while !at.is_null() {
            // SAFETY: Nodes of the tree are in the queue by the type invariants; it is borrowed.
            unsafe {
                let node = Node::<T>::at(at);
                at = if (*node).value.name() < *name {
                    (*at).rb_right
                } else {
                    best = node;
                    (*at).rb_left
                };
            }
        }
        best
    }

    /// Takes out the entry that [`Self::find_named`] finds, if it is `same`: its name may be another one.
    pub fn take_named(
        &mut self,
        name: &T::Name,
        same: impl FnOnce(&T) -> bool,
    ) -> Option<Entry<T>> {
        let found = self.find_named(name)?;
        same(&found).then(|| found.take())
    }
}

#[cfg(linux_keyed_queue)]
impl<T: Keyed, const WALKS: usize> EntryQueue<T, WALKS> {
    /// Adds an entry at the end, to be found by its name, and by its key if it has one.
    pub fn push_keyed(&mut self, entry: Entry<T>) {
        let key = entry.key();
        let node = self.append_named(entry);
        let Some(key) = key else {
            return;
        };
        // INVARIANT: As in `append_named`.
        // SAFETY: As there.
        unsafe {
            // Entries with the same key stay in order; one without a key is not in the tree.
            let is_before = |at| Some(key) < (*Node::<T>::at_key(at)).value.key();
            insert(&raw mut self.keys, &raw mut (*node).key_links, is_before);
        }
        self.keyed = self.keyed.wrapping_add(1);
    }

    /// Returns whether all entries are found by their keys.
    pub fn are_keyed(&self) -> bool {
        self.keyed == self.len
    }

    /// Looks at the entries that have a key, up to as many as `limit` says, which is lowered accordingly, for
    /// the first one that `found` accepts. [`Step::More`] if there are more of them than that.
    pub fn step_keyed(
        &mut self,
        key: u64,
        limit: &mut usize,
        mut found: impl FnMut(&T) -> bool,
    ) -> Step<'_, T, WALKS> {
        let mut first = ptr::null_mut();
        let mut at = self.keys.rb_node;
        while !at.is_null() {
            // SAFETY: Nodes of the tree are in the queue by the type invariants; it is borrowed.
            unsafe {
                at = if (*Node::<T>::at_key(at)).value.key() < Some(key) {
                    (*at).rb_right
                } else {
                    first = at;
                    (*at).rb_left
                };
            }
        }
        let mut at = first;
        while !at.is_null() {
            // SAFETY: As above.
            let node = unsafe { Node::<T>::at_key(at) };
            // SAFETY: As above.
            let value = unsafe { &(*node).value };
            if value.key() != Some(key) {
                break;
            }
            let Some(left) = limit.checked_sub(1) else {
                return Step::More;
            };
            *limit = left;
            if found(value) {
                // SAFETY: A node of a queue is not null.
                let node = unsafe { NonNull::new_unchecked(node) };
                // INVARIANT: It is in the queue, as above.
                return Step::Found(FoundEntry { node, queue: self });
            }
            // SAFETY: A node of the tree, which is borrowed.
            at = unsafe { bindings::rb_next(at) };
        }
        Step::End
    }
}

impl<T, const WALKS: usize> Drop for EntryQueue<T, WALKS> {
    #[inline]
    fn drop(&mut self) {
        while !self.is_empty() {
            drop(self.pop_front());
        }
    }
}

/// An entry that was found in a queue.
///
/// # Invariants
///
/// `node` is in `queue`.
pub struct FoundEntry<'a, T, const WALKS: usize = 0> {
    node: NonNull<Node<T>>,
    queue: &'a mut EntryQueue<T, WALKS>,
}

impl<T, const WALKS: usize> FoundEntry<'_, T, WALKS> {
    /// Takes it out.
    pub fn take(self) -> Entry<T> {
        // SAFETY: It is in the queue by the type invariants.
        unsafe { self.queue.unlink(self.node.as_ptr()) }
    }
}

impl<T, const WALKS: usize> core::ops::Deref for FoundEntry<'_, T, WALKS> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: It is in the queue by the type invariants, which is borrowed exclusively.
        unsafe { &self.node.as_ref().value }
    }
}

impl<T, const WALKS: usize> core::ops::DerefMut for FoundEntry<'_, T, WALKS> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As above.
        unsafe { &mut self.node.as_mut().value }
    }
}

#[cfg(unit_tests)]
#[kunit_tests(linux_queue)]
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
            queue.push_back(Entry::new(200, GFP_KERNEL)?);
            let wanted = [0, 1, 2, 3, 200].into_iter();
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
    fn one_spare_is_kept() -> Result {
        let spare = Spare::new();
        let one = spare.take(GFP_KERNEL)?;
        let other = spare.take(GFP_KERNEL)?;
        let at = one.0.as_ptr();
        spare.give(one);
        spare.give(other);
        let again = spare.take(GFP_KERNEL)?;
        assert!(again.0.as_ptr() == at);
        drop(spare.take(GFP_KERNEL)?);
        // Whatever lies here goes with it.
        spare.give(again);
        Ok(())
    }

    /// Takes out what is in an inbox.
    fn shut(inbox: &Inbox<u32>) -> Result<KVec<u32>> {
        let mut values = KVec::new();
        let mut batch = inbox.shut();
        while let Some(entry) = batch.pop() {
            values.push(entry.into_inner(), GFP_KERNEL)?;
        }
        Ok(values)
    }

    #[test]
    fn an_inbox_has_as_much_room_as_was_left() -> Result {
        let inbox = Inbox::new();
        let push = |value| Ok::<_, Error>(inbox.push(Entry::new(value, GFP_KERNEL)?).is_ok());
        assert!(!push(0)?);
        for room in [1, 3] {
            inbox.open(room);
            for value in 0..3 {
                assert_eq!(push(value)?, (value as usize) < room);
            }
            // There are entries: it is not shut.
            inbox.open(5);
            assert!(!push(3)?);
            assert_eq!(
                shut(&inbox)?.as_slice(),
                [0, 1, 2].get(..room).unwrap_or(&[])
            );
            assert!(!push(4)? && shut(&inbox)?.is_empty());
        }
        inbox.open(usize::MAX);
        for _ in 0..Inbox::<u32>::LIMIT {
            assert!(push(5)?);
        }
        // What is left in it, or was taken and not wanted, is freed.
        assert!(!push(6)?);
        drop(inbox.shut());
        inbox.open(1);
        assert!(push(7)?);
        Ok(())
    }

    /// Numbers in tens: those of a ten have its number for a key, but the last one, which has none.
    #[cfg(linux_keyed_queue)]
    struct InTens(u32);

    #[cfg(linux_keyed_queue)]
    impl Named for InTens {
        type Name = u32;

        fn name(&self) -> u32 {
            self.0
        }
    }

    #[cfg(linux_keyed_queue)]
    impl Keyed for InTens {
        fn key(&self) -> Option<u64> {
            (self.0 % 10 != 9).then_some(u64::from(self.0 / 10))
        }
    }

    #[cfg(linux_keyed_queue)]
    #[test]
    fn the_first_one_with_a_key_is_found() -> Result {
        let mut queue = EntryQueue::new();
        for number in [20, 11, 25, 31, 12, 10, 19] {
            assert!(queue.are_keyed());
            queue.push_keyed(Entry::new(InTens(number), GFP_KERNEL)?);
        }
        assert!(!queue.are_keyed());
        let mut find = |key, limit: usize, least: u32| {
            let mut left = limit;
            let found = match queue.step_keyed(key, &mut left, |value| value.0 >= least) {
                Step::Found(found) => Some(found.take().into_inner().0),
                Step::More => Some(0),
                Step::End => None,
            };
            (found, limit - left)
        };
        assert_eq!(find(0, 9, 0), (None, 0));
        assert_eq!(find(4, 9, 0), (None, 0));
        assert_eq!(find(1, 9, 20), (None, 3));
        assert_eq!(find(1, 2, 20), (Some(0), 2));
        assert_eq!(find(1, 9, 12), (Some(12), 2));
        assert_eq!(find(1, 9, 0), (Some(11), 1));
        assert_eq!(find(1, 9, 0), (Some(10), 1));
        assert_eq!(find(1, 9, 0), (None, 0));
        assert_eq!(find(2, 9, 0), (Some(20), 1));
        assert_eq!(find(3, 9, 0), (Some(31), 1));
        assert!(!queue.are_keyed());
        assert_eq!(
            queue
                .take(|value| value.0 == 19)
                .map(|entry| entry.into_inner().0),
            Some(19)
        );
        assert!(queue.are_keyed());
        assert_eq!(
            queue.pop_front().map(|entry| entry.into_inner().0),
            Some(25)
        );
        assert!(queue.are_keyed() && queue.is_empty());
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

    fn walkable(values: core::ops::Range<u32>) -> Result<EntryQueue<u32, 2>> {
        let mut queue = EntryQueue::walkable();
        for value in values {
            queue.push_back(Entry::new(value, GFP_KERNEL)?);
        }
        Ok(queue)
    }

    /// Walks one entry on; returns it.
    fn next(queue: &mut EntryQueue<u32, 2>, walk: &Walk) -> Option<u32> {
        let mut seen = None;
        let mut limit = 1;
        let mut look = |value: &u32| {
            seen = Some(*value);
            false
        };
        // Found is nothing.
        let _ = queue.walk_on(walk, &mut limit, &mut look);
        seen
    }

    #[test]
    fn a_walk_sees_what_stays() -> Result {
        let mut queue = walkable(0..4)?;
        let walk = queue.begin_walk().ok_or(EINVAL)?;
        assert_eq!(next(&mut queue, &walk), Some(0));
        // The next entry, one that was seen, and the last one leave.
        for gone in [1, 0, 3] {
            assert!(queue.take(|value| *value == gone).is_some());
        }
        assert_eq!(next(&mut queue, &walk), Some(2));
        assert_eq!(next(&mut queue, &walk), None);
        queue.push_back(Entry::new(9, GFP_KERNEL)?);
        assert_eq!(next(&mut queue, &walk), Some(9));
        assert_eq!(next(&mut queue, &walk), None);
        queue.end_walk(walk);
        Ok(())
    }

    #[test]
    fn a_walk_stops_at_its_limit() -> Result {
        let mut queue = walkable(0..5)?;
        let mut walk = None;
        let mut limit = 3;
        assert!(matches!(
            queue.step(&mut walk, &mut limit, |_| false),
            Step::More
        ));
        assert_eq!(limit, 0);
        limit = 10;
        match queue.step(&mut walk, &mut limit, |value| *value > 2) {
            Step::Found(found) => assert_eq!(found.take().into_inner(), 3),
            _ => return Err(EINVAL),
        }
        assert_eq!(limit, 9);
        assert!(matches!(
            queue.step(&mut walk, &mut limit, |_| false),
            Step::End
        ));
        Ok(())
    }

    #[test]
    fn only_so_many_walks() -> Result {
        let mut queue = walkable(0..2)?;
        let first = queue.begin_walk().ok_or(EINVAL)?;
        let second = queue.begin_walk().ok_or(EINVAL)?;
        assert!(queue.begin_walk().is_none());
        // Later, then.
        let (mut walk, mut limit) = (None, 7);
        assert!(matches!(
            queue.step(&mut walk, &mut limit, |value| *value == 1),
            Step::More
        ));
        assert!(walk.is_none());
        assert_eq!(limit, 0);
        queue.end_walk(first);
        assert_eq!(next(&mut queue, &second), Some(0));
        // One of another queue.
        let mut other = walkable(0..2)?;
        assert_eq!(next(&mut other, &second), None);
        queue.end_walk(second);
        Ok(())
    }

    #[test]
    fn the_first_one_is_known_to_have_left() -> Result {
        let mut queue = walkable(0..3)?;
        let before = queue.departures();
        drop(queue.take(|value| *value == 1));
        assert_eq!(queue.departures(), before);
        drop(queue.pop_front());
        assert!(queue.departures() != before);
        Ok(())
    }

    /// A name, and what tells those with the same one apart.
    impl Named for (u32, u32) {
        type Name = u32;

        fn name(&self) -> u32 {
            self.0
        }
    }

    #[test]
    fn found_by_name() -> Result {
        let mut queue = EntryQueue::new();
        // In an order that is none, some of them twice.
        for value in 0..200u32 {
            let name = value.wrapping_mul(37) % 100;
            queue.push_named(Entry::new((name, value), GFP_KERNEL)?);
        }
        // One that is not to be found.
        queue.push_back(Entry::new((50, 1000), GFP_KERNEL)?);
        for name in 0..100u32 {
            let first = queue.find_named(&name).ok_or(EINVAL)?;
            assert_eq!(first.0, name);
            assert!(first.1 < 100);
            let first = first.take().into_inner();
            let second = queue.take_named(&name, |value| value.0 == name);
            let second = second.ok_or(EINVAL)?.into_inner();
            assert_eq!(second, (name, first.1.wrapping_add(100)));
            assert!(queue.take_named(&name, |value| value.0 == name).is_none());
            // Only the next one, if any.
            assert!(queue.find_exact(&name).is_none());
            let next = queue.find_named(&name).map(|found| found.0);
            assert_eq!(next, (name < 99).then_some(name.wrapping_add(1)));
            let next = queue.find_exact(&name.wrapping_add(1));
            assert_eq!(next.is_some(), name < 99);
        }
        assert_eq!(queue.pop_front().map(Entry::into_inner), Some((50, 1000)));
        assert!(queue.is_empty() && queue.find_named(&0).is_none());
        Ok(())
    }

    #[test]
    fn what_leaves_is_not_found() -> Result {
        let mut queue = EntryQueue::new();
        for value in 0..50u32 {
            queue.push_named(Entry::new((value % 7, value), GFP_KERNEL)?);
        }
        // However it leaves, it is not found any more, and can come again.
        let mut other = EntryQueue::new();
        for _ in 0..20 {
            other.push_named(queue.pop_front().ok_or(EINVAL)?);
        }
        assert_eq!(queue.find_named(&6).as_deref(), Some(&(6, 20)));
        assert_eq!(other.find_named(&6).as_deref(), Some(&(6, 6)));
        while let Some(entry) = queue.take(|_| true) {
            other.push_named(entry);
        }
        assert!(queue.find_named(&0).is_none());
        let mut moved = core::mem::replace(&mut other, EntryQueue::new());
        assert!(other.find_named(&0).is_none());
        for value in 0..50u32 {
            let name = value % 7;
            assert!(moved.find_named(&name).is_some_and(|found| found.0 == name));
            assert!(moved.take(|other| other.1 == value).is_some());
        }
        assert!(moved.find_named(&0).is_none());
        Ok(())
    }
}
