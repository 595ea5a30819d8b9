// SPDX-License-Identifier: GPL-2.0

//! The entries that wait for a counter, in the order of thresholds.
//!
//! An [`Entry`] is numbers and nothing else: where it stands, and the number of the slot in which the
//! operation itself lies. Entries that follow each other are kept together, in a [`Block`], so that
//! a few cache lines are looked at to find one among many, and those are next to each other.
//!
//! The blocks of a [`ThresholdSet`] are a treap: a binary tree that is sorted by key and, at the same
//! time, a heap by random priorities, so that it is balanced whatever the keys are (no user who chooses
//! thresholds knows the priorities). It can be divided at any block, and two of them can be put one
//! behind the other, in O(log n) and without memory, which a tree with more than two branches would need.
//! Two things are different from the textbook:
//!
//! - The right spine, the path from the root to the last block, is linked upwards: the set knows its
//!   last block, and each block of the spine has the one above it in `right`. So an entry that comes
//!   last is added in O(1), and one that comes near the end is found from there.
//! - The threshold of the first entry is remembered.
//!
//! ```text
//!              5                          set.last -> 9
//!            /   \                                   / \ right: up
//!           2     8       is kept as               -    8
//!          / \   / \                                   / \ right: up
//!         1   4 7   9                                 7   5
//!                                                        / \ right: up, none
//!                                                       2   -
//! ```
//!
//! # What is due
//!
//! Whole blocks are cut off in one piece, in O(log n) however many they are, but for the last one
//! that has anything due: that may have others, which stay. Its entries are taken out one by one, of
//! which there are [`ENTRIES`] at most; where these go there is a place for each of them ([`Rest`]).
//!
//! # Memory
//!
//! Blocks are allocated before they are needed, and nothing else allocates; nothing recurses. A block that
//! is full is divided, but one at either end of the set: there, where entries come in order, a new one
//! is begun, so that blocks are full. A block of which hardly anything is left is put together with the
//! one before it, if that has room.

#![forbid(unsafe_code)]

mod batch;
mod block;

use core::mem::{
    self,
    ManuallyDrop, //
};
use kernel::prelude::*;

use block::{
    set_link,
    Entries,
    Link,
    ENTRIES, //
};

pub(crate) use {
    batch::Batch,
    block::Block, //
};

/// Where an entry stands: by threshold, equal ones by the order of submission (R-TRIG-16).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct Key {
    /// The value that the entry waits for.
    pub(crate) threshold: u64,
    /// The number of the submission.
    pub(crate) sequence: u64,
}

impl Key {
    /// Comes after all that wait for `value` or less, and before all others.
    fn after(value: u64) -> Self {
        Self {
            threshold: value,
            sequence: u64::MAX,
        }
    }
}

/// An operation that waits.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// Where it stands.
    pub(crate) key: Key,
    /// A number for its owner.
    pub(crate) number: u32,
}

/// A block with so few entries is put together with another one, if that has room.
const SPARSE: usize = ENTRIES / 4;

/// Empty blocks, to be used, or dropped where no lock is held.
pub(crate) struct Emptied {
    /// Linked by `left`. Dropped by hand, as to drop none still is a call: see [`set_link`].
    first: ManuallyDrop<Link>,
}

impl Emptied {
    /// None.
    pub(crate) const fn new() -> Self {
        Self {
            first: ManuallyDrop::new(None),
        }
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds one.
    pub(crate) fn push(&mut self, mut block: KBox<Block>) {
        set_link(&mut block.left, self.first.take());
        set_link(&mut self.first, Some(block));
    }

    /// Adds one, if there is one.
    pub(crate) fn push_some(&mut self, block: Option<KBox<Block>>) {
        if let Some(block) = block {
            self.push(block);
        }
    }

    /// Takes one.
    fn pop(&mut self) -> Option<KBox<Block>> {
        let mut block = self.first.take()?;
        set_link(&mut self.first, block.left.take());
        Some(block)
    }

    /// Adds all of another one.
    pub(crate) fn append(&mut self, mut other: Self) {
        while let Some(block) = other.pop() {
            self.push(block);
        }
    }

    /// Drops them one by one, as the blocks own each other.
    #[inline(never)]
    fn clear(&mut self) {
        while self.pop().is_some() {}
    }
}

impl Drop for Emptied {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            self.clear();
        }
    }
}

/// Blocks that were cut off from sets.
///
/// # Invariants
///
/// Keys to the left of a block are smaller, or became due before; priorities below it are not higher.
pub(crate) struct Tree {
    /// Dropped by hand: see [`Emptied`].
    root: ManuallyDrop<Link>,
}

impl Tree {
    /// No blocks.
    pub(crate) const fn new() -> Self {
        Self {
            root: ManuallyDrop::new(None),
        }
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Adds those that have become due later.
    pub(crate) fn append(&mut self, mut later: Self) {
        let tree = merge(self.root.take(), later.root.take());
        set_link(&mut self.root, tree);
    }

    /// Takes them, to leave in order.
    pub(crate) fn take(&mut self) -> Batch {
        Batch::new(self.root.take())
    }
}

impl Drop for Tree {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            // One by one, as the blocks own each other.
            drop(self.take());
        }
    }
}

/// What is due in the first blocks of two sets, in order.
pub(crate) struct Rest<'a> {
    /// For each set the block, and what is due.
    blocks: [Option<(&'a mut Entries, u64)>; 2],
}

/// Returns the first key of a block, if that is due.
fn due_key((entries, value): &(&mut Entries, u64)) -> Option<Key> {
    let key = entries.first()?.key;
    (key.threshold <= *value).then_some(key)
}

impl Iterator for Rest<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let [one, other] = &mut self.blocks;
        let from = match (&*one, &*other) {
            (_, None) => one,
            (None, _) => other,
            (Some(first), Some(second)) => match (due_key(first), due_key(second)) {
                (Some(first), Some(second)) if second < first => other,
                (None, _) => other,
                _ => one,
            },
        };
        let (entries, value) = from.as_mut()?;
        entries.pop_due(*value)
    }
}

/// Entries sorted by key.
///
/// # Invariants
///
/// - `last` is the block with the greatest keys, none if the set is empty. From there up, linked by
///   `right`, keys fall and priorities do not.
/// - Blocks below the `left` of any block have smaller keys and no higher priorities. Those below the
///   `right` of a block that is not on the spine have greater keys and no higher priorities. All of
///   them come after the next block up the spine.
/// - No block is empty.
/// - `first` is the threshold of the entry with the smallest key.
/// - The blocks of `spare` are empty.
pub(crate) struct ThresholdSet {
    last: Link,
    first: Option<u64>,
    spare: Emptied,
    /// The state of the generator of priorities; never 0.
    random: u64,
}

impl ThresholdSet {
    /// An empty set; `seed` is for the priorities.
    pub(crate) fn new(seed: u64) -> Self {
        // INVARIANT: There are no entries.
        Self {
            last: None,
            first: None,
            spare: Emptied::new(),
            random: seed | 1,
        }
    }

    /// Returns the lowest threshold.
    pub(crate) fn first_threshold(&self) -> Option<u64> {
        self.first
    }

    /// Returns whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Returns whether anything waits for `value` or less.
    pub(crate) fn is_due(&self, value: u64) -> bool {
        self.first.is_some_and(|first| first <= value)
    }

    /// Returns how many blocks are to be added by [`Self::add_blocks`] before [`Self::insert`], if that may
    /// need one.
    pub(crate) fn blocks_wanted(&self) -> usize {
        if !self.spare.is_empty() {
            return 0;
        }
        match &self.last {
            None => 1,
            // A set of one block may never need another.
            Some(block) if block.left.is_none() && block.right.is_none() => {
                usize::from(block.entries.is_full())
            }
            // Not more, as a set that is empty keeps them.
            Some(_) => 1,
        }
    }

    /// Adds empty blocks, unless there are some.
    pub(crate) fn add_blocks(&mut self, blocks: &mut Emptied) {
        if self.spare.is_empty() {
            mem::swap(&mut self.spare, blocks);
        }
    }

    /// Returns the next priority (xorshift64*).
    fn next_priority(&mut self) -> u32 {
        let mut x = self.random;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random = x;
        // The upper half is the better one.
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// Adds an entry, at whose key there may not be another one.
    ///
    /// Returns `false` if a block is needed: see [`Self::blocks_wanted`].
    pub(crate) fn insert(&mut self, entry: Entry) -> bool {
        let key = entry.key;
        let at_end = self
            .last
            .as_ref()
            .is_none_or(|block| !block.entries.starts_after(key));
        let block = match block_of(&mut self.last, key) {
            Some(entries) if !entries.is_full() => {
                entries.insert(entry);
                None
            }
            full => {
                let Some(mut block) = self.spare.pop() else {
                    return false;
                };
                match full {
                    Some(entries) if !entries.begins_or_ends(key, at_end) => {
                        entries.split_off(&mut block.entries);
                        if block.entries.starts_after(key) {
                            entries.insert(entry);
                        } else {
                            block.entries.insert(entry);
                        }
                    }
                    // Those that follow it may have room there.
                    _ => block.entries.insert(entry),
                }
                block.entries.priority = self.next_priority();
                Some(block)
            }
        };
        if let Some(block) = block {
            self.insert_block(block);
        }
        self.first = Some(
            self.first
                .map_or(key.threshold, |first| first.min(key.threshold)),
        );
        true
    }

    /// Adds a block that is not empty and has a priority; no other one begins where it does.
    fn insert_block(&mut self, mut block: KBox<Block>) {
        let Some(Entry { key, .. }) = block.entries.first() else {
            return;
        };
        let priority = block.entries.priority;

        // Up the spine, past whatever comes after the block.
        let (link, later) = above(&mut self.last, key);
        let middle = match later {
            Some((later_priority, left)) if later_priority >= priority => {
                // INVARIANT: It is not on the spine, and comes before the lowest that is after it.
                insert_below(left, block, key);
                return;
            }
            // It comes above that, so it is on the spine; what was between them is divided.
            Some((_, left)) => {
                let (before, after) = split(left.take(), key);
                set_link(left, after);
                before
            }
            None => None,
        };
        // The blocks that it outranks on the spine go to its left.
        let mut up = link.take();
        let mut below = middle;
        while let Some(mut lower) = up {
            if lower.entries.priority >= priority {
                up = Some(lower);
                break;
            }
            up = lower.right.take();
            set_link(&mut lower.right, below);
            below = Some(lower);
        }
        // INVARIANT: Keys below are smaller and so are priorities; those above have higher ones.
        set_link(&mut block.left, below);
        set_link(&mut block.right, up);
        set_link(link, Some(block));
    }

    /// Removes the entry at `key`, if it is in the set; returns its number, and a block that is to be
    /// dropped outside of locks.
    pub(crate) fn remove(&mut self, key: Key) -> Option<(u32, Option<KBox<Block>>)> {
        let entries = block_of(&mut self.last, key)?;
        let place = entries.find(key)?;
        let (removed, emptied) = if entries.len() > SPARSE {
            (entries.remove(place)?, None)
        } else {
            // INVARIANT: No block is in the set that is empty.
            let begin = entries.first()?.key;
            let mut block = self.remove_block(begin)?;
            let removed = block.entries.remove(place)?;
            (removed, self.put_back(block, begin))
        };
        if self.first == Some(key.threshold) {
            self.first = self.find_first();
        }
        Some((removed.number, emptied.and_then(|block| self.keep(block))))
    }

    /// Puts the entries of a block that began at a key, and of which few are left, into another one;
    /// returns it then, or if it is empty. Else adds it again.
    fn put_back(&mut self, mut block: KBox<Block>, begin: Key) -> Option<KBox<Block>> {
        if !block.entries.is_empty() {
            let left = &mut block.entries;
            let has_room = |other: &Entries, len| other.len().wrapping_add(len) <= ENTRIES;
            // The one before, or else, as that may be full wherever entries leave from the back to the front, the
            // one after.
            let len = left.len();
            if let Some(before) =
                block_of(&mut self.last, begin).filter(|before| has_room(before, len))
            {
                before.absorb(left);
                return Some(block);
            }
            let after = self.next_after(left.last().map(|last| last.key));
            let after = after.and_then(|first| block_of(&mut self.last, first.key));
            match after.filter(|after| has_room(after, len)) {
                // INVARIANT: It begins lower, and nothing is in between.
                Some(after) => after.absorb(left),
                None => {
                    self.insert_block(block);
                    return None;
                }
            }
        }
        Some(block)
    }

    /// Keeps an empty block for later; returns it if there is one, to be dropped outside of locks.
    fn keep(&mut self, mut block: KBox<Block>) -> Option<KBox<Block>> {
        if !self.spare.is_empty() {
            return Some(block);
        }
        block.entries.reset();
        self.spare.push(block);
        None
    }

    /// Removes the block that begins at `key`, if it is in the set.
    fn remove_block(&mut self, key: Key) -> Option<KBox<Block>> {
        let (link, later) = above(&mut self.last, key);
        if !link
            .as_ref()
            .is_some_and(|block| block.entries.starts_at(key))
        {
            return remove_below(later?.1, key);
        }
        let mut removed = link.take()?;
        // Part of what was before it comes onto the spine: that which outranks the lowest one
        // after it. The rest goes below that one.
        let mut up = removed.right.take();
        let mut rest = removed.left.take();
        let limit = later.as_ref().map(|(priority, _)| *priority);
        while let Some(mut block) = rest {
            if limit.is_some_and(|limit| block.entries.priority <= limit) {
                rest = Some(block);
                break;
            }
            rest = block.right.take();
            set_link(&mut block.right, up);
            up = Some(block);
        }
        // INVARIANT: The order of keys is as before, and see above for priorities.
        set_link(link, up);
        if let Some((_, left)) = later {
            let after = left.take();
            set_link(left, merge(rest, after));
        }
        Some(removed)
    }

    /// Takes out the first entry if the next one is in the same block and waits for more than `value`; the first one
    /// waits for no more.
    #[inline]
    pub(crate) fn pop_single_due(&mut self, value: u64) -> Option<Entry> {
        let entries = first_block(&mut self.last)?;
        let next = entries.second_threshold()?;
        if next <= value {
            return None;
        }
        let entry = entries.pop();
        // INVARIANT: The next one is the first now.
        self.first = Some(next);
        entry
    }

    /// Cuts off the blocks of which everything waits for `value` or less. The last block of which
    /// anything does is not among them: it is returned beside them, or stays if it is to be divided.
    fn cut(&mut self, value: u64) -> (Tree, Option<KBox<Block>>) {
        let mut tree = Tree::new();
        let bound = Key::after(value);
        let Some(last) = first_block(&mut self.last).and_then(|entries| entries.last()) else {
            return (tree, None);
        };
        if last.key > bound {
            // A part of the first block, if anything.
            return (tree, None);
        }
        let (link, later) = above(&mut self.last, bound);
        // INVARIANT: The spine ends before those that are due, and so does what is below its end.
        let mut spine = link.take();
        if let Some((_, left)) = later {
            let (due, rest) = split(left.take(), bound);
            set_link(left, rest);
            spine = lengthen(spine, due);
        }
        let Some(mut block) = spine else {
            return (tree, None);
        };
        let mut others = lengthen(block.right.take(), block.left.take());
        if let Some(last) = &mut others {
            last.entries.is_last = true;
        }
        set_link(&mut tree.root, hang(others));
        if block.entries.last().is_some_and(|last| last.key > bound) {
            // A part of it.
            self.insert_block(block);
            return (tree, None);
        }
        (tree, Some(block))
    }

    /// Cuts off everything.
    pub(crate) fn detach_all(&mut self) -> Batch {
        self.first = None;
        Batch::new(hang(self.last.take()))
    }

    /// Returns the entry with the smallest key that is greater than `key`.
    pub(crate) fn next_after(&self, key: Option<Key>) -> Option<Entry> {
        let is_after = |block: &Block| key.is_none_or(|key| block.entries.starts_after(key));
        // The last block that begins at the key or before, and the next one.
        let (mut found, mut next) = (None, None);
        let mut below = None;
        let mut spine = self.last.as_deref();
        while let Some(block) = spine {
            if !is_after(block) {
                found = Some(block);
                break;
            }
            next = Some(block);
            below = block.left.as_deref();
            spine = block.right.as_deref();
        }
        while let Some(block) = below {
            below = if is_after(block) {
                next = Some(block);
                block.left.as_deref()
            } else {
                found = Some(block);
                block.right.as_deref()
            };
        }
        found
            .and_then(|block| block.entries.after(key))
            .or_else(|| next?.entries.first())
    }

    /// Looks for the lowest threshold.
    fn find_first(&self) -> Option<u64> {
        let mut block = self.last.as_deref()?;
        while let Some(up) = block.right.as_deref() {
            block = up;
        }
        while let Some(left) = block.left.as_deref() {
            block = left;
        }
        block.entries.first_threshold()
    }
}

impl Drop for ThresholdSet {
    fn drop(&mut self) {
        // One by one, as the blocks own each other.
        drop(self.detach_all());
    }
}

/// A set of which something is taken out.
struct Cut<'a> {
    set: &'a mut ThresholdSet,
    value: u64,
    /// Something waits for the value or less.
    is_due: bool,
    /// Blocks that were cut off.
    tree: Tree,
    /// The last one of these, of which everything is due; else a part of the first block of the set is.
    block: Option<KBox<Block>>,
}

impl<'a> Cut<'a> {
    /// Cuts off whole blocks of all that waits for `value` or less.
    fn new((set, value): (&'a mut ThresholdSet, u64)) -> Self {
        let is_due = set.is_due(value);
        let (tree, block) = if is_due {
            set.cut(value)
        } else {
            (Tree::new(), None)
        };
        Self {
            set,
            value,
            is_due,
            tree,
            block,
        }
    }

    /// Takes the blocks that were cut off.
    fn take_tree(&mut self) -> Tree {
        mem::replace(&mut self.tree, Tree::new())
    }

    /// Returns the rest of what is due: the block, and the value.
    fn rest(&mut self) -> Option<(&mut Entries, u64)> {
        if !self.is_due {
            return None;
        }
        let entries = match &mut self.block {
            Some(block) => &mut block.entries,
            None => first_block(&mut self.set.last)?,
        };
        Some((entries, self.value))
    }

    /// Notes that the rest was taken. Returns a block that is to be dropped outside of locks.
    fn end(self) -> Option<KBox<Block>> {
        if self.is_due {
            self.set.first = self.set.find_first();
        }
        self.set.keep(self.block?)
    }
}

/// Takes out of two sets all that waits for `value` or less of each, if there is anything, and calls
/// `append` with it: whole blocks of either, and the rest of both. All of the rest has to be taken.
///
/// `append` is also told whether nothing is left in either of them then.
///
/// Returns blocks that are to be dropped outside of locks, and what `append` returns.
pub(crate) fn detach_due<R>(
    one: (&mut ThresholdSet, u64),
    other: (&mut ThresholdSet, u64),
    append: impl FnOnce(bool, [Tree; 2], &mut Rest<'_>) -> R,
) -> Option<([Option<KBox<Block>>; 2], R)> {
    if !one.0.is_due(one.1) && !other.0.is_due(other.1) {
        return None;
    }
    let (mut one, mut other) = (Cut::new(one), Cut::new(other));
    let all = one.set.is_empty() && other.set.is_empty();
    let trees = [one.take_tree(), other.take_tree()];
    let mut rest = Rest {
        blocks: [one.rest(), other.rest()],
    };
    let result = append(all, trees, &mut rest);
    Some(([one.end(), other.end()], result))
}

/// Returns the block where a key belongs: the last one that does not begin after it, or the first one.
fn block_of(last: &mut Link, key: Key) -> Option<&mut Entries> {
    let mut found = None;
    let mut begins_before = false;
    let mut below = None;
    let mut spine = last.as_deref_mut();
    while let Some(Block {
        left,
        right,
        entries,
    }) = spine
    {
        begins_before = !entries.starts_after(key);
        found = Some(entries);
        if begins_before {
            break;
        }
        below = left.as_deref_mut();
        spine = right.as_deref_mut();
    }
    while let Some(Block {
        left,
        right,
        entries,
    }) = below
    {
        if !entries.starts_after(key) {
            begins_before = true;
            found = Some(entries);
            below = right.as_deref_mut();
        } else {
            if !begins_before {
                found = Some(entries);
            }
            below = left.as_deref_mut();
        }
    }
    found
}

/// Returns the first block.
fn first_block(last: &mut Link) -> Option<&mut Entries> {
    let mut found = None;
    let mut below = None;
    let mut spine = last.as_deref_mut();
    while let Some(Block {
        left,
        right,
        entries,
    }) = spine
    {
        found = Some(entries);
        below = left.as_deref_mut();
        spine = right.as_deref_mut();
    }
    while let Some(Block { left, entries, .. }) = below {
        found = Some(entries);
        below = left.as_deref_mut();
    }
    found
}

/// Walks up a spine past all blocks that begin after `key`.
///
/// Returns the link to the first that does not; and, of the last that does, the priority and what is
/// before it.
fn above(mut link: &mut Link, key: Key) -> (&mut Link, Option<(u32, &mut Link)>) {
    let mut later = None;
    while link
        .as_ref()
        .is_some_and(|block| block.entries.starts_after(key))
    {
        match link {
            Some(block) => {
                let block = &mut **block;
                later = Some((block.entries.priority, &mut block.left));
                link = &mut block.right;
            }
            // Not reached: the loop has just seen it.
            None => break,
        }
    }
    (link, later)
}

/// Inserts a block that begins at a key, and has its priority, into a tree.
fn insert_below(mut link: &mut Link, mut block: KBox<Block>, key: Key) {
    let priority = block.entries.priority;
    while link
        .as_ref()
        .is_some_and(|other| other.entries.priority >= priority)
    {
        match link {
            Some(other) => link = other.side(key),
            // Not reached: the loop has just seen it.
            None => break,
        }
    }
    let (before, after) = split(link.take(), key);
    set_link(&mut block.left, before);
    set_link(&mut block.right, after);
    set_link(link, Some(block));
}

/// Removes the block that begins at `key` from a tree, if it is there.
fn remove_below(mut link: &mut Link, key: Key) -> Option<KBox<Block>> {
    while link
        .as_ref()
        .is_some_and(|other| !other.entries.starts_at(key))
    {
        match link {
            Some(other) => link = other.side(key),
            // Not reached: the loop has just seen it.
            None => break,
        }
    }
    let mut removed = link.take()?;
    set_link(link, merge(removed.left.take(), removed.right.take()));
    Some(removed)
}

/// Divides a tree into what begins at `key` or before, and what begins after it.
fn split(mut tree: Link, key: Key) -> (Link, Link) {
    let (mut before, mut after) = (None, None);
    let (mut before_end, mut after_end) = (&mut before, &mut after);
    while let Some(mut block) = tree {
        if block.entries.starts_after(key) {
            tree = block.left.take();
            after_end = &mut after_end.get_or_insert(block).left;
        } else {
            tree = block.right.take();
            before_end = &mut before_end.get_or_insert(block).right;
        }
    }
    (before, after)
}

/// Joins two trees, of which the one comes before the other.
fn merge(mut before: Link, mut after: Link) -> Link {
    let mut tree = None;
    let mut end = &mut tree;
    loop {
        match (before, after) {
            (None, rest) | (rest, None) => {
                set_link(end, rest);
                return tree;
            }
            (Some(mut upper), Some(lower)) if upper.entries.priority > lower.entries.priority => {
                before = upper.right.take();
                after = Some(lower);
                end = &mut end.get_or_insert(upper).right;
            }
            (Some(lower), Some(mut upper)) => {
                before = Some(lower);
                after = upper.left.take();
                end = &mut end.get_or_insert(upper).left;
            }
        }
    }
}

/// Adds a tree at the lower end of a spine.
fn lengthen(mut spine: Link, mut tree: Link) -> Link {
    while let Some(mut block) = tree {
        tree = block.right.take();
        set_link(&mut block.right, spine);
        spine = Some(block);
    }
    spine
}

/// Turns a spine into a tree.
fn hang(mut spine: Link) -> Link {
    let mut tree = None;
    while let Some(mut block) = spine {
        spine = block.right.take();
        set_link(&mut block.right, tree);
        tree = Some(block);
    }
    tree
}

#[kunit_tests(kfi_soft_threshold)]
mod tests {
    use super::*;

    /// Inserts, with as many blocks as are wanted.
    fn insert(set: &mut ThresholdSet, key: Key) -> Result {
        let mut blocks = Emptied::new();
        for _ in 0..set.blocks_wanted() {
            blocks.push(Block::new(GFP_KERNEL)?);
        }
        set.add_blocks(&mut blocks);
        assert!(blocks.is_empty());
        let number = key.sequence as u32;
        assert!(set.insert(Entry { key, number }));
        Ok(())
    }

    /// Returns the number of blocks below a link, and checks their priorities.
    fn count_blocks(link: &Link, above: u32) -> usize {
        let Some(block) = link else {
            return 0;
        };
        let priority = block.entries.priority;
        assert!(priority <= above && !block.entries.is_empty() && !block.entries.is_last);
        1 + count_blocks(&block.left, priority) + count_blocks(&block.right, priority)
    }

    /// A set with the sorted list of what should be in it.
    struct Checked {
        set: ThresholdSet,
        model: KVec<Key>,
        sequence: u64,
    }

    impl Checked {
        fn new() -> Self {
            Self {
                set: ThresholdSet::new(0x1234_5678_9abc_def1),
                model: KVec::new(),
                sequence: 0,
            }
        }

        /// Inserts an entry that has the number of its submission.
        fn insert(&mut self, threshold: u64) -> Result<Key> {
            let key = Key {
                threshold,
                sequence: self.sequence,
            };
            self.sequence += 1;
            insert(&mut self.set, key)?;
            self.model.push(key, GFP_KERNEL)?;
            let mut at = self.model.len() - 1;
            while at > 0 && self.model.get(at - 1) > Some(&key) {
                self.model.swap(at - 1, at);
                at -= 1;
            }
            Ok(key)
        }

        /// Removes an entry, if it is there.
        fn remove(&mut self, key: Key) -> Result {
            let removed = self.set.remove(key);
            let at = self.model.iter().position(|other| *other == key);
            assert_eq!(removed.is_some(), at.is_some());
            assert!(removed.is_none_or(|(number, _)| u64::from(number) == key.sequence));
            if let Some(at) = at {
                self.model.remove(at).map_err(|_| EINVAL)?;
            }
            Ok(())
        }

        /// Removes the first one from the model, which an entry has to be.
        fn check_next(&mut self, entry: Option<Entry>, value: u64) {
            let first = self.model.first().copied();
            assert!(first.is_some_and(|first| first.threshold <= value));
            assert!(entry.map(|entry| entry.key) == first);
            assert!(entry.is_some_and(|entry| u64::from(entry.number) == entry.key.sequence));
            drop(self.model.remove(0));
        }

        /// Cuts off what is due and compares.
        fn detach(&mut self, value: u64) {
            let mut other = ThresholdSet::new(1);
            let mut due = KVec::new();
            let detached = detach_due(
                (&mut self.set, value),
                (&mut other, value),
                |all, [mut tree, none], rest| -> Result<bool> {
                    assert!(none.is_empty());
                    let mut batch = tree.take();
                    while let Some((entry, block)) = batch.pop() {
                        due.push(entry, GFP_KERNEL)?;
                        // The last block of a batch says so.
                        assert!(
                            block.is_none_or(|block| block.is_last_of_batch() == batch.is_empty())
                        );
                    }
                    let before = due.len();
                    for entry in rest {
                        due.push(entry, GFP_KERNEL)?;
                    }
                    assert!(due.len() > before && due.len() <= before + ENTRIES);
                    Ok(all)
                },
            );
            for entry in &due {
                self.check_next(Some(*entry), value);
            }
            assert!(self.model.first().is_none_or(|key| key.threshold > value));
            let all = detached.map(|(_, all)| all == Ok(true));
            assert_eq!(all, (!due.is_empty()).then_some(self.model.is_empty()));
        }

        /// Compares all, and checks the invariants.
        fn check(&self) {
            assert_eq!(
                self.set.first_threshold(),
                self.model.first().map(|key| key.threshold)
            );
            assert_eq!(self.set.is_empty(), self.model.is_empty());
            let mut at = None;
            for key in &self.model {
                let entry = self.set.next_after(at);
                assert!(entry.is_some_and(|entry| entry.key == *key));
                at = Some(*key);
            }
            assert!(self.set.next_after(at).is_none());
            let mut spine = self.set.last.as_deref();
            while let Some(block) = spine {
                let entries = &block.entries;
                assert!(!entries.is_empty());
                let begin = entries.first().map(|entry| entry.key);
                if let Some(up) = block.right.as_deref() {
                    assert!(up.entries.last().map(|entry| entry.key) < begin);
                    assert!(up.entries.priority >= entries.priority);
                }
                count_blocks(&block.left, entries.priority);
                spine = block.right.as_deref();
            }
        }

        /// Returns the number of blocks.
        fn blocks(&self) -> usize {
            let mut count = 0;
            let mut spine = self.set.last.as_deref();
            while let Some(block) = spine {
                count += 1 + count_blocks(&block.left, u32::MAX);
                spine = block.right.as_deref();
            }
            count
        }
    }

    #[test]
    fn leaves_by_threshold_then_submission() -> Result {
        let mut set = Checked::new();
        for threshold in [30, 10, 20, 10, 1, 2, 1, 0, u64::MAX] {
            set.insert(threshold)?;
            set.check();
        }
        set.detach(9);
        set.check();
        set.detach(10);
        set.detach(19);
        set.check();
        set.detach(u64::MAX - 1);
        set.check();
        set.detach(u64::MAX);
        set.check();
        assert!(set.set.is_empty());
        Ok(())
    }

    #[test]
    fn random_sequences_match_the_model() -> Result {
        let mut random = ThresholdSet::new(0xdead_beef_cafe_f00d);
        for range in [1, 4, 100, u32::MAX] {
            let mut set = Checked::new();
            let mut keys = KVec::new();
            for _ in 0..3000 {
                let number = random.next_priority();
                let threshold =
                    u64::from(random.next_priority()).wrapping_mul(u64::from(range)) >> 32;
                match number % 16 {
                    // More leave than come, after a while.
                    0..=7 => keys.push(set.insert(threshold)?, GFP_KERNEL)?,
                    8..=12 => {
                        let at = (number >> 8) as usize % (keys.len() + 1);
                        if let Some(key) = keys.get(at).copied() {
                            set.remove(key)?;
                        }
                    }
                    13 if number & 0x700 == 0 => set.detach(threshold),
                    14 => set.detach(threshold >> 6),
                    _ => set.check(),
                }
            }
            set.check();
            set.detach(u64::MAX);
            set.check();
        }
        Ok(())
    }

    /// Thresholds that rise or fall, and equal ones.
    #[test]
    fn blocks_are_full_where_entries_come_in_order() -> Result {
        for step in [1, u64::MAX, 0] {
            let mut set = Checked::new();
            let mut threshold = 1_u64 << 32;
            for _ in 0..100 * ENTRIES {
                insert(
                    &mut set.set,
                    Key {
                        threshold,
                        sequence: set.sequence,
                    },
                )?;
                threshold = threshold.wrapping_add(step);
                set.sequence += 1;
            }
            assert_eq!(set.blocks(), 100);
        }
        Ok(())
    }

    #[test]
    fn rising_thresholds_are_balanced() -> Result {
        let count = 1000 * ENTRIES as u64;
        let mut set = Checked::new();
        for threshold in 0..count {
            insert(
                &mut set.set,
                Key {
                    threshold,
                    sequence: threshold,
                },
            )?;
        }
        // The spine is as long as the number of records in a random sequence: about ln 1000.
        let mut length = 0;
        let mut spine = set.set.last.as_deref();
        while let Some(block) = spine {
            length += 1;
            spine = block.right.as_deref();
        }
        assert!(length < 60);
        let mut batch = set.set.detach_all();
        for threshold in 0..count {
            let popped = batch.pop();
            assert!(popped.is_some_and(|(entry, _)| entry.key.threshold == threshold));
        }
        assert!(batch.is_empty() && set.set.is_empty());
        Ok(())
    }

    /// Of which few entries are left, in order or not.
    /// Fills 64 blocks and removes the entries that `order` names, but for those whose threshold is a multiple of
    /// `left`; few blocks stay.
    fn thin_out(order: impl Fn(u64, u64) -> u64, left: u64) -> Result {
        let count = 64 * ENTRIES as u64;
        let mut set = Checked::new();
        for _ in 0..count {
            set.insert(set.sequence)?;
        }
        assert_eq!(set.blocks(), 64);
        for i in 0..count {
            let threshold = order(i, count);
            if threshold % left != 0 {
                set.remove(Key {
                    threshold,
                    sequence: threshold,
                })?;
            }
        }
        set.check();
        // No two that follow each other fit into one with much room left.
        assert!(set.blocks() <= 16);
        set.detach(u64::MAX);
        Ok(())
    }

    #[test]
    fn sparse_blocks_are_put_together() -> Result {
        thin_out(|i, _| i, 16)?;
        thin_out(|i, count| i * 7 % count, 16)?;
        // From the back, where the block before is always full.
        thin_out(|i, count| count - 1 - i, ENTRIES as u64)
    }

    #[test]
    fn no_block_is_asked_for_while_there_is_room() -> Result {
        let mut set = ThresholdSet::new(3);
        for sequence in 0..=ENTRIES as u64 {
            let wanted = usize::from(sequence == 0 || sequence == ENTRIES as u64);
            assert_eq!(set.blocks_wanted(), wanted);
            let key = Key {
                threshold: 5,
                sequence,
            };
            if wanted != 0 {
                assert!(!set.insert(Entry { key, number: 0 }));
                assert_eq!(set.next_after(None).is_none(), sequence == 0);
            }
            insert(&mut set, key)?;
        }
        assert_eq!(set.blocks_wanted(), 1);
        // One that was emptied is used again.
        let mut set = ThresholdSet::new(3);
        for sequence in 0..100 {
            assert_eq!(set.blocks_wanted(), usize::from(sequence == 0));
            let key = Key {
                threshold: 5,
                sequence,
            };
            insert(&mut set, key)?;
            assert!(set.remove(key).is_some_and(|(_, block)| block.is_none()));
        }
        Ok(())
    }
}
