// SPDX-License-Identifier: GPL-2.0

//! Whole blocks of due entries, in order.

#![forbid(unsafe_code)]

use core::hint;
use kernel::prelude::*;

use super::{
    block::{
        set_link,
        Block,
        Link, //
    },
    Entry,
    Key, //
};

/// Blocks whose entries leave in order.
///
/// # Invariants
///
/// `next` has the smallest keys. The `right` of a block is a tree of greater keys, and its `left`, if
/// there is one, comes after all these. No block is empty.
pub(crate) struct Batch {
    next: Link,
}

impl Batch {
    /// Takes the blocks of a tree.
    pub(super) fn new(tree: Link) -> Self {
        let mut batch = Self::empty();
        batch.put_before(tree);
        batch
    }

    /// No entries.
    pub(crate) const fn empty() -> Self {
        Self { next: None }
    }

    /// Puts a tree before what there is.
    fn put_before(&mut self, mut tree: Link) {
        while let Some(mut block) = tree {
            // It is next but one at the earliest; meanwhile it comes into the caches.
            hint::black_box(block.right.as_ref().map(|right| right.entries.priority));
            tree = block.left.take();
            // INVARIANT: It and what is right of it come before the others, and what was left of
            // it before that.
            set_link(&mut block.left, self.next.take());
            set_link(&mut self.next, Some(block));
        }
    }

    /// Returns where the first entry stood.
    pub(crate) fn first_key(&self) -> Option<Key> {
        Some(self.next.as_ref()?.entries.first()?.key)
    }

    /// Returns the first entry.
    pub(crate) fn first(&self) -> Option<Entry> {
        self.next.as_ref()?.entries.first()
    }

    /// Returns the numbers of what comes next, as many as are near.
    pub(crate) fn near(&self) -> impl Iterator<Item = u32> + '_ {
        let block = self.next.as_deref();
        let after = block.and_then(|block| {
            let mut after = block.right.as_deref().or(block.left.as_deref());
            // The first one of that tree; what was linked by `left` after it has none there.
            if block.right.is_some() {
                while let Some(left) = after.and_then(|after| after.left.as_deref()) {
                    after = Some(left);
                }
            }
            after
        });
        [block, after]
            .into_iter()
            .flatten()
            .flat_map(|block| block.entries.numbers().iter().copied())
    }

    /// Takes out the first entry; and its block, to be freed, if it was the last one there.
    pub(crate) fn pop(&mut self) -> Option<(Entry, Option<KBox<Block>>)> {
        let entries = &mut self.next.as_mut()?.entries;
        let entry = entries.pop()?;
        if !entries.is_empty() {
            return Some((entry, None));
        }
        let mut block = self.next.take()?;
        set_link(&mut self.next, block.left.take());
        self.put_before(block.right.take());
        Some((entry, Some(block)))
    }

    /// Returns whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // One by one, as the blocks own each other.
        while self.pop().is_some() {}
    }
}
