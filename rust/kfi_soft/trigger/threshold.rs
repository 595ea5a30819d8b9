// SPDX-License-Identifier: GPL-2.0

//! The entries that wait for a counter, in the order of thresholds.
//!
//! A [`ThresholdSet`] is a treap: a binary tree that is sorted by key and, at the same time, a heap
//! by random priorities, so that it is balanced whatever the keys are (no user who chooses
//! thresholds knows the priorities). Two things are different from the textbook:
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

#![forbid(unsafe_code)]

mod batch;

use core::mem;
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

/// An entry, or none.
type Link<T> = Option<KBox<ThresholdEntry<T>>>;

/// Lets a link that leads nowhere lead to `to`.
///
/// To assign would drop what it led to, and to drop nothing still is a call: dropping entries is
/// recursive, as they own each other, and so is not inlined.
#[inline]
fn set_link<T>(link: &mut Link<T>, to: Link<T>) {
    let none = mem::replace(link, to);
    mem::forget(none);
}

/// An entry of a set, a batch or a queue of batches.
// In this order: the value may fill what is left of a cache line.
#[repr(C)]
pub(crate) struct ThresholdEntry<T> {
    /// In a set what is below and before it; in a batch what comes next above it.
    left: Link<T>,
    /// In a set what is below and after it, or, on the spine, what is above it; at the head of a batch
    /// in a queue the head of the next batch.
    right: Link<T>,
    /// In a set entries with a higher priority are above it; at the head of a batch in a queue
    /// [`PAIRED`] if the next batch belongs to it.
    priority: u32,
    /// A number for its owner.
    pub(crate) number: u32,
    key: Key,
    /// The operation that waits.
    pub(crate) value: T,
}

/// The priority of the head of a batch that leaves together with the next one.
const PAIRED: u32 = 1;

impl<T> ThresholdEntry<T> {
    /// Allocates an entry.
    pub(crate) fn new(value: T, flags: Flags) -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                key: Key {
                    threshold: 0,
                    sequence: 0,
                },
                priority: 0,
                number: 0,
                left: None,
                right: None,
                value,
            },
            flags,
        )?)
    }

    /// Returns what waits.
    pub(crate) fn into_value(entry: KBox<Self>) -> T {
        // Its links lead nowhere any more: see `set_link`.
        let Self {
            left, right, value, ..
        } = KBox::into_inner(entry);
        mem::forget((left, right));
        value
    }

    /// Returns the link that leads to a key, if the entry is not on the spine.
    fn side(&mut self, key: Key) -> &mut Link<T> {
        if key < self.key {
            &mut self.left
        } else {
            &mut self.right
        }
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
/// - Entries below the `left` of any entry have smaller keys and no higher priorities. Those below the
///   `right` of an entry that is not on the spine have greater keys and no higher priorities. All of
///   them come after the next entry up the spine.
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
    pub(crate) fn insert(&mut self, mut entry: KBox<ThresholdEntry<T>>, key: Key) {
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
                set_link(left, after);
                before
            }
            None => None,
        };
        // The entries that it outranks on the spine go to its left.
        let mut up = link.take();
        let mut below = middle;
        while let Some(mut lower) = up {
            if lower.priority >= priority {
                up = Some(lower);
                break;
            }
            up = lower.right.take();
            set_link(&mut lower.right, below);
            below = Some(lower);
        }
        // INVARIANT: Keys below are smaller and so are priorities; those above have higher ones.
        set_link(&mut entry.left, below);
        set_link(&mut entry.right, up);
        set_link(link, Some(entry));
    }

    /// Removes the entry at `key`, if it is in the set.
    pub(crate) fn remove(&mut self, key: Key) -> Option<KBox<ThresholdEntry<T>>> {
        let (link, later) = above(&mut self.last, key);
        let removed = if link.as_ref().is_some_and(|entry| entry.key == key) {
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
                set_link(&mut entry.right, up);
                up = Some(entry);
            }
            // INVARIANT: The order of keys is as before, and see above for priorities.
            set_link(link, up);
            if let Some((_, left)) = later {
                let after = left.take();
                set_link(left, merge(rest, after));
            }
            removed
        } else {
            remove_below(later?.1, key)?
        };
        if self.first == Some(key.threshold) {
            self.first = self.find_first();
        }
        Some(removed)
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
            set_link(left, rest);
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
    pub(crate) fn next_after(&self, key: Option<Key>) -> Option<&ThresholdEntry<T>> {
        let is_after = |entry: &ThresholdEntry<T>| key.is_none_or(|key| entry.key > key);
        let mut found = None;
        let mut next = self.last.as_deref();
        // Up the spine, as long as it comes after.
        while let Some(entry) = next.filter(|entry| is_after(entry)) {
            found = Some(entry);
            next = entry.right.as_deref();
        }
        // Then down, among the entries before the lowest of these.
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
fn above<T>(mut link: &mut Link<T>, key: Key) -> (&mut Link<T>, Option<(&mut u32, &mut Link<T>)>) {
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
fn insert_below<T>(mut link: &mut Link<T>, mut entry: KBox<ThresholdEntry<T>>) {
    while link
        .as_ref()
        .is_some_and(|other| other.priority >= entry.priority)
    {
        match link {
            Some(other) => link = other.side(entry.key),
            // Not reached: the loop has just seen it.
            None => break,
        }
    }
    let (before, after) = split(link.take(), entry.key);
    set_link(&mut entry.left, before);
    set_link(&mut entry.right, after);
    set_link(link, Some(entry));
}

/// Removes the entry at `key` from a tree, if it is there.
fn remove_below<T>(mut link: &mut Link<T>, key: Key) -> Option<KBox<ThresholdEntry<T>>> {
    while link.as_ref().is_some_and(|other| other.key != key) {
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

/// Divides a tree into what is before `key` and what is after it.
fn split<T>(mut tree: Link<T>, key: Key) -> (Link<T>, Link<T>) {
    let (mut before, mut after) = (None, None);
    let (mut before_end, mut after_end) = (&mut before, &mut after);
    while let Some(mut entry) = tree {
        if entry.key < key {
            tree = entry.right.take();
            before_end = &mut before_end.get_or_insert(entry).right;
        } else {
            tree = entry.left.take();
            after_end = &mut after_end.get_or_insert(entry).left;
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
                set_link(end, rest);
                return tree;
            }
            (Some(mut upper), Some(lower)) if upper.priority > lower.priority => {
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
fn lengthen<T>(mut spine: Link<T>, mut tree: Link<T>) -> Link<T> {
    while let Some(mut entry) = tree {
        tree = entry.right.take();
        set_link(&mut entry.right, spine);
        spine = Some(entry);
    }
    spine
}

/// Turns a spine into a tree.
fn hang<T>(mut spine: Link<T>) -> Link<T> {
    let mut tree = None;
    while let Some(mut entry) = spine {
        spine = entry.right.take();
        set_link(&mut entry.right, tree);
        tree = Some(entry);
    }
    tree
}

#[kunit_tests(kfi_soft_threshold)]
mod tests {
    use super::*;

    /// A set with the sorted list of what should be in it.
    struct Checked {
        set: ThresholdSet<u64>,
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

        /// Inserts an entry that has its own number as its value.
        fn insert(&mut self, threshold: u64) -> Result<Key> {
            let key = Key {
                threshold,
                sequence: self.sequence,
            };
            self.sequence += 1;
            self.set
                .insert(ThresholdEntry::new(key.sequence, GFP_KERNEL)?, key);
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
            assert!(removed.is_none_or(|entry| entry.value == key.sequence));
            if let Some(at) = at {
                self.model.remove(at).map_err(|_| EINVAL)?;
            }
            Ok(())
        }

        /// Cuts off what is due and compares.
        fn detach(&mut self, value: u64) {
            let mut batch = self.set.detach_due(value);
            while let Some(key) = self.model.first().copied() {
                if key.threshold > value {
                    break;
                }
                let entry = batch.pop();
                assert!(entry.is_some_and(|entry| entry.key == key && entry.value == key.sequence));
                drop(self.model.remove(0));
            }
            assert!(batch.pop().is_none());
        }

        /// Compares all, and checks the invariants.
        fn check(&self) {
            assert_eq!(
                self.set.first_threshold(),
                self.model.first().map(|key| key.threshold)
            );
            let mut at = None;
            for key in &self.model {
                let entry = self.set.next_after(at);
                assert!(entry.is_some_and(|entry| entry.key == *key));
                at = Some(*key);
            }
            assert!(self.set.next_after(at).is_none());
            let mut spine = self.set.last.as_deref();
            while let Some(entry) = spine {
                if let Some(up) = entry.right.as_deref() {
                    assert!(up.key < entry.key && up.priority >= entry.priority);
                }
                if let Some(left) = entry.left.as_deref() {
                    assert!(left.key < entry.key && left.priority <= entry.priority);
                }
                spine = entry.right.as_deref();
            }
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
        let mut random = ThresholdSet::<()>::new(0xdead_beef_cafe_f00d);
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

    #[test]
    fn rising_thresholds_are_balanced() -> Result {
        let mut set = Checked::new();
        for threshold in 0..4000 {
            set.set.insert(
                ThresholdEntry::new(threshold, GFP_KERNEL)?,
                Key {
                    threshold,
                    sequence: threshold,
                },
            );
        }
        // The spine is as long as the number of records in a random sequence: about ln 4000.
        let mut length = 0;
        let mut spine = set.set.last.as_deref();
        while let Some(entry) = spine {
            length += 1;
            spine = entry.right.as_deref();
        }
        assert!(length < 60);
        let mut batch = set.set.detach_due(1999);
        for threshold in 0..2000 {
            assert!(batch.pop().is_some_and(|entry| entry.value == threshold));
        }
        assert!(batch.is_empty());
        assert_eq!(set.set.first_threshold(), Some(2000));
        Ok(())
    }

    /// Makes a batch of thresholds and sequence numbers.
    fn batch(keys: &[(u64, u64)]) -> Result<Batch<u64>> {
        let mut set = ThresholdSet::new(5);
        for &(threshold, sequence) in keys {
            let key = Key {
                threshold,
                sequence,
            };
            set.insert(ThresholdEntry::new(sequence, GFP_KERNEL)?, key);
        }
        Ok(set.detach_all())
    }

    #[test]
    fn removed_one_by_one_and_put_together() -> Result {
        let mut set = ThresholdSet::new(7);
        let mut taken = KVec::new();
        for sequence in 0..100 {
            let key = Key {
                threshold: sequence / 3,
                sequence,
            };
            set.insert(ThresholdEntry::new(sequence, GFP_KERNEL)?, key);
        }
        let mut last = None;
        while let Some(key) = set.next_after(last).map(ThresholdEntry::key) {
            last = Some(key);
            if key.sequence % 2 == 0 {
                taken.push(set.remove(key).ok_or(ENOENT)?, GFP_KERNEL)?;
            }
        }
        let mut batch = Batch::empty();
        while let Some(entry) = taken.pop() {
            batch.put_first(entry);
        }
        for sequence in 0..50 {
            assert!(batch.pop().is_some_and(|entry| entry.value == 2 * sequence));
        }
        assert!(batch.is_empty());
        assert_eq!(set.detach_all().pop().map(|entry| entry.value), Some(1));
        Ok(())
    }

    #[test]
    fn batches_leave_in_the_order_in_which_they_came() -> Result {
        let mut stack = BatchStack::new();
        stack.push(batch(&[(9, 1), (8, 0)])?, batch(&[])?);
        // Two that became due at once are merged.
        stack.push(
            batch(&[(1, 2), (3, 4), (5, 6)])?,
            batch(&[(1, 3), (4, 5), (9, 7)])?,
        );
        stack.push(batch(&[])?, batch(&[(0, 8)])?);
        let mut queue = stack.take();
        for sequence in 0..9 {
            // Also if it is put back.
            let entry = queue.pop().ok_or(ENOENT)?;
            queue.put_back(entry);
            assert!(!queue.is_empty());
            assert!(queue.pop().is_some_and(|entry| entry.value == sequence));
        }
        assert!(queue.pop().is_none());
        Ok(())
    }
}
