// SPDX-License-Identifier: GPL-2.0

//! What waits for a counter, in the order of thresholds.
//!
//! A [`ThresholdSet`] is a treap: a binary tree that is sorted by key and, at the same time, a heap
//! by random priorities, so that it is balanced whatever the keys are (nobody who chooses thresholds
//! knows the priorities). Two things are different from the textbook:
//!
//! - The right spine, the path from the root to the last entry, is linked upwards: the set knows its
//!   last entry, and each entry of the spine has the one above it in `right`. So an entry that comes
//!   last is added in O(1), and one that comes near the end is found from there.
//! - The threshold of the first entry is remembered.
//!
//! Everything that is due is cut off in one piece, in O(log n) however much that is; the entries
//! then leave the [`Batch`] one by one, in order. Entries are allocated before they are inserted;
//! nothing else allocates, nothing recurses.
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

#![deny(unsafe_code)]

mod batch;

use kernel::{
    alloc::Flags,
    prelude::*, //
};

pub(crate) use batch::{
    Batch,
    BatchQueue,
    BatchStack, //
};

/// Where an entry stands: by threshold, equal ones by the order of submission (R-TRIG-16).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// An entry, or none.
type Link<T> = Option<KBox<Entry<T>>>;

/// What is in a set, a batch or a queue of batches.
pub(crate) struct Entry<T> {
    key: Key,
    /// Entries with a higher priority are above it.
    priority: u32,
    /// At the head of a batch in a queue: the next one belongs to it.
    paired: bool,
    /// In a set what is below and before it; in a batch what comes next above it.
    left: Link<T>,
    /// In a set what is below and after it, or, on the spine, what is above it.
    right: Link<T>,
    /// At the head of a batch in a queue: the head of the next batch.
    chain: Link<T>,
    /// What waits.
    pub(crate) value: T,
}

impl<T> Entry<T> {
    /// Allocates an entry.
    pub(crate) fn new(value: T, flags: Flags) -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                key: Key {
                    threshold: 0,
                    sequence: 0,
                },
                priority: 0,
                paired: false,
                left: None,
                right: None,
                chain: None,
                value,
            },
            flags,
        )?)
    }

    /// Returns what waits.
    pub(crate) fn into_value(entry: KBox<Self>) -> T {
        KBox::into_inner(entry).value
    }

    /// Returns where it stands.
    pub(crate) fn key(&self) -> Key {
        self.key
    }
}

/// Entries sorted by key.
///
/// # Invariants
///
/// - `last` is the entry with the greatest key, none if the set is empty. From there up, linked by
///   `right`, keys fall and priorities do not.
/// - What is `left` of any entry has smaller keys and no higher priorities. What is `right` of an
///   entry that is not on the spine has greater keys and no higher priorities. All of it comes after
///   the next entry up the spine.
/// - `first` is the threshold of the entry with the smallest key.
pub(crate) struct ThresholdSet<T> {
    last: Link<T>,
    first: Option<u64>,
    /// The state of the generator of priorities; never 0.
    random: u64,
}

impl<T> ThresholdSet<T> {
    /// An empty set; `seed` is for the priorities.
    pub(crate) fn new(seed: u64) -> Self {
        // INVARIANT: There are no entries.
        Self {
            last: None,
            first: None,
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

    /// Adds an entry at `key`, which no entry of the set may have.
    pub(crate) fn insert(&mut self, mut entry: KBox<Entry<T>>, key: Key) {
        entry.key = key;
        entry.priority = self.next_priority();
        let priority = entry.priority;
        self.first = Some(
            self.first
                .map_or(key.threshold, |first| first.min(key.threshold)),
        );

        // Up the spine, past whatever comes after the entry.
        let (link, later) = above(&mut self.last, key);
        let middle = match later {
            Some((later_priority, left)) if *later_priority >= priority => {
                // INVARIANT: It is not on the spine, and comes before the lowest that is after it.
                insert_below(left, entry);
                return;
            }
            // It comes above that, so it is on the spine; what was between them is divided.
            Some((_, left)) => {
                let (before, after) = split(left.take(), key);
                *left = after;
                before
            }
            None => None,
        };
        // What it outranks on the spine becomes its left.
        let mut up = link.take();
        let mut below = middle;
        while let Some(mut lower) = up {
            if lower.priority >= priority {
                up = Some(lower);
                break;
            }
            up = lower.right.take();
            lower.right = below;
            below = Some(lower);
        }
        // INVARIANT: Keys below are smaller and so are priorities; those above have higher ones.
        entry.left = below;
        entry.right = up;
        *link = Some(entry);
    }

    /// Removes the entry at `key`, if it is in the set and `wanted`.
    pub(crate) fn remove_if(
        &mut self,
        key: Key,
        wanted: impl FnOnce(&T) -> bool,
    ) -> Option<KBox<Entry<T>>> {
        let (link, later) = above(&mut self.last, key);
        let removed = if link.as_ref().is_some_and(|entry| entry.key == key) {
            if !link.as_ref().is_some_and(|entry| wanted(&entry.value)) {
                return None;
            }
            let mut removed = link.take()?;
            // Part of what was before it comes onto the spine: that which outranks the lowest one
            // after it. The rest goes below that one.
            let mut up = removed.right.take();
            let mut rest = removed.left.take();
            let limit = later.as_ref().map(|(priority, _)| **priority);
            while let Some(mut entry) = rest {
                if limit.is_some_and(|limit| entry.priority <= limit) {
                    rest = Some(entry);
                    break;
                }
                rest = entry.right.take();
                entry.right = up;
                up = Some(entry);
            }
            // INVARIANT: The order of keys is as before, and see above for priorities.
            *link = up;
            if let Some((_, left)) = later {
                *left = merge(rest, left.take());
            }
            removed
        } else {
            remove_below(later?.1, key, wanted)?
        };
        if self.first == Some(key.threshold) {
            self.first = self.find_first();
        }
        Some(removed)
    }

    /// Removes the entry at `key`, if it is in the set.
    pub(crate) fn remove(&mut self, key: Key) -> Option<KBox<Entry<T>>> {
        self.remove_if(key, |_| true)
    }

    /// Cuts off all that wait for `value` or less.
    pub(crate) fn detach_due(&mut self, value: u64) -> Batch<T> {
        if self.first.is_none_or(|first| first > value) {
            return Batch::new(None);
        }
        let bound = Key::after(value);
        let (link, later) = above(&mut self.last, bound);
        // INVARIANT: The spine ends before those that are due, and so does what is below its end.
        let mut spine = link.take();
        if let Some((_, left)) = later {
            let (due, rest) = split(left.take(), bound);
            *left = rest;
            spine = lengthen(spine, due);
        }
        self.first = self.find_first();
        Batch::new(hang(spine))
    }

    /// Cuts off everything.
    pub(crate) fn detach_all(&mut self) -> Batch<T> {
        self.detach_due(u64::MAX)
    }

    /// Returns the entry with the smallest key that is greater than `key`.
    pub(crate) fn next_after(&self, key: Option<Key>) -> Option<&Entry<T>> {
        let is_after = |entry: &Entry<T>| key.is_none_or(|key| entry.key > key);
        let mut found = None;
        let mut next = self.last.as_deref();
        // Up the spine, as long as it comes after.
        while let Some(entry) = next.filter(|entry| is_after(entry)) {
            found = Some(entry);
            next = entry.right.as_deref();
        }
        // What is before the lowest of these, down.
        next = found?.left.as_deref();
        while let Some(entry) = next {
            next = if is_after(entry) {
                found = Some(entry);
                entry.left.as_deref()
            } else {
                entry.right.as_deref()
            };
        }
        found
    }

    /// Looks for the lowest threshold.
    fn find_first(&self) -> Option<u64> {
        let mut entry = self.last.as_deref()?;
        while let Some(up) = entry.right.as_deref() {
            entry = up;
        }
        while let Some(left) = entry.left.as_deref() {
            entry = left;
        }
        Some(entry.key.threshold)
    }
}

impl<T> Drop for ThresholdSet<T> {
    fn drop(&mut self) {
        // One by one, as the entries own each other.
        drop(self.detach_all());
    }
}

/// Walks up a spine past all entries after `key`.
///
/// Returns the link to the first that is not after it; and, of the last that is, the priority and
/// what is before it.
#[expect(clippy::type_complexity, reason = "two parts of one entry")]
fn above<T>(
    mut link: &mut Link<T>,
    key: Key,
) -> (&mut Link<T>, Option<(&mut u32, &mut Link<T>)>) {
    let mut later = None;
    while link.as_ref().is_some_and(|entry| entry.key > key) {
        match link {
            Some(entry) => {
                let entry = &mut **entry;
                later = Some((&mut entry.priority, &mut entry.left));
                link = &mut entry.right;
            }
            // Not reached: the loop has just seen it.
            None => break,
        }
    }
    (link, later)
}

/// Inserts an entry that has its key and priority into a tree.
fn insert_below<T>(mut link: &mut Link<T>, mut entry: KBox<Entry<T>>) {
    while link
        .as_ref()
        .is_some_and(|other| other.priority >= entry.priority)
    {
        match link {
            Some(other) if entry.key < other.key => link = &mut other.left,
            Some(other) => link = &mut other.right,
            // Not reached: the loop has just seen it.
            None => break,
        }
    }
    (entry.left, entry.right) = split(link.take(), entry.key);
    *link = Some(entry);
}

/// Removes the entry at `key` from a tree, if it is there and `wanted`.
fn remove_below<T>(
    mut link: &mut Link<T>,
    key: Key,
    wanted: impl FnOnce(&T) -> bool,
) -> Option<KBox<Entry<T>>> {
    while link.as_ref().is_some_and(|other| other.key != key) {
        match link {
            Some(other) if key < other.key => link = &mut other.left,
            Some(other) => link = &mut other.right,
            // Not reached: the loop has just seen it.
            None => break,
        }
    }
    if !link.as_ref().is_some_and(|entry| wanted(&entry.value)) {
        return None;
    }
    let mut removed = link.take()?;
    *link = merge(removed.left.take(), removed.right.take());
    Some(removed)
}

/// Divides a tree into what is before `key` and what is after it.
fn split<T>(mut tree: Link<T>, key: Key) -> (Link<T>, Link<T>) {
    let (mut before, mut after) = (None, None);
    let (mut before_end, mut after_end) = (&mut before, &mut after);
    while let Some(mut entry) = tree {
        if entry.key < key {
            tree = entry.right.take();
            before_end = &mut before_end.insert(entry).right;
        } else {
            tree = entry.left.take();
            after_end = &mut after_end.insert(entry).left;
        }
    }
    (before, after)
}

/// Joins two trees, of which the one comes before the other.
fn merge<T>(mut before: Link<T>, mut after: Link<T>) -> Link<T> {
    let mut tree = None;
    let mut end = &mut tree;
    loop {
        match (before, after) {
            (None, rest) | (rest, None) => {
                *end = rest;
                return tree;
            }
            (Some(mut upper), Some(lower)) if upper.priority > lower.priority => {
                before = upper.right.take();
                after = Some(lower);
                end = &mut end.insert(upper).right;
            }
            (Some(lower), Some(mut upper)) => {
                before = Some(lower);
                after = upper.left.take();
                end = &mut end.insert(upper).left;
            }
        }
    }
}

/// Adds a tree at the lower end of a spine.
fn lengthen<T>(mut spine: Link<T>, mut tree: Link<T>) -> Link<T> {
    while let Some(mut entry) = tree {
        tree = entry.right.take();
        entry.right = spine;
        spine = Some(entry);
    }
    spine
}

/// Turns a spine into a tree.
fn hang<T>(mut spine: Link<T>) -> Link<T> {
    let mut tree = None;
    while let Some(mut entry) = spine {
        spine = entry.right.take();
        entry.right = tree;
        tree = Some(entry);
    }
    tree
}
