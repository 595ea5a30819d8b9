// SPDX-License-Identifier: GPL-2.0

//! Some entries that follow each other, sorted.

#![forbid(unsafe_code)]

use core::mem;
use kernel::{
    alloc::Flags,
    prelude::*, //
};

use super::{
    Entry,
    Key, //
};

/// Entries in a block.
pub(super) const ENTRIES: usize = 24;

// It fills one of the sizes that kmalloc has.
kernel::static_assert!(size_of::<Block>() <= 512);

/// A block, or none.
pub(super) type Link = Option<KBox<Block>>;

/// Lets a link that leads nowhere lead to `to`.
///
/// To assign would drop what it led to, and to drop nothing still is a call: dropping blocks is
/// recursive, as they own each other, and so is not inlined.
#[inline]
pub(super) fn set_link(link: &mut Link, to: Link) {
    let none = mem::replace(link, to);
    mem::forget(none);
}

/// A block of entries, in a set or in a batch.
// In this order: all that is looked at on the way to an entry is on the first cache line, unless
// entries have left.
#[repr(C)]
pub(crate) struct Block {
    /// In a set what is below and before it; in a batch what comes next above it.
    pub(super) left: Link,
    /// In a set what is below and after it, or, on the spine, what is above it.
    pub(super) right: Link,
    pub(super) entries: Entries,
}

impl Block {
    /// Allocates an empty one.
    pub(crate) fn new(flags: Flags) -> Result<KBox<Self>> {
        Ok(KBox::new(
            Self {
                left: None,
                right: None,
                entries: Entries {
                    priority: 0,
                    begin: 0,
                    end: 0,
                    is_last: false,
                    thresholds: [0; ENTRIES],
                    sequences: [0; ENTRIES],
                    numbers: [0; ENTRIES],
                },
            },
            flags,
        )?)
    }

    /// Returns whether it was the last block of what became due at once.
    pub(crate) fn is_last_of_batch(&self) -> bool {
        self.entries.is_last
    }

    /// Returns the link that leads to the block that begins at a key, if this one is not on the spine.
    pub(super) fn side(&mut self, key: Key) -> &mut Link {
        if self.entries.starts_after(key) {
            &mut self.left
        } else {
            &mut self.right
        }
    }
}

/// What is in a block.
///
/// # Invariants
///
/// The entries are at the places from `begin` to `end` of the arrays, in the order of their keys.
#[repr(C)]
pub(crate) struct Entries {
    /// In a set blocks with a higher priority are above it.
    pub(super) priority: u32,
    begin: u8,
    end: u8,
    /// In a batch: it is the last block of what became due at once.
    pub(super) is_last: bool,
    thresholds: [u64; ENTRIES],
    sequences: [u64; ENTRIES],
    numbers: [u32; ENTRIES],
}

/// Puts an entry in place of each other one, beginning with the given one; the last one falls out.
#[inline]
fn shift<'a>(
    places: impl Iterator<Item = ((&'a mut u64, &'a mut u64), &'a mut u32)>,
    entry: Entry,
) {
    let Entry {
        key: Key {
            mut threshold,
            mut sequence,
        },
        mut number,
    } = entry;
    for ((next_threshold, next_sequence), next_number) in places {
        threshold = mem::replace(next_threshold, threshold);
        sequence = mem::replace(next_sequence, sequence);
        number = mem::replace(next_number, number);
    }
}

impl Entries {
    /// Returns the number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.end.wrapping_sub(self.begin))
    }

    /// Returns whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// Returns whether there is no room for another one.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == ENTRIES
    }

    /// Returns the entry at a place.
    fn at(&self, place: usize) -> Option<Entry> {
        if place >= usize::from(self.end) {
            return None;
        }
        Some(Entry {
            key: Key {
                threshold: *self.thresholds.get(place)?,
                sequence: *self.sequences.get(place)?,
            },
            number: *self.numbers.get(place)?,
        })
    }

    /// Returns the first entry.
    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.at(usize::from(self.begin))
    }

    /// Returns the last entry.
    pub(super) fn last(&self) -> Option<Entry> {
        self.at(usize::from(self.end).checked_sub(1)?)
    }

    /// Returns whether a key comes before all entries; or, if they are the last ones of a set, after all.
    pub(super) fn begins_or_ends(&self, key: Key, at_end: bool) -> bool {
        self.starts_after(key) || (at_end && self.last().is_none_or(|last| last.key < key))
    }

    /// Returns the lowest threshold.
    pub(super) fn first_threshold(&self) -> Option<u64> {
        Some(self.first()?.key.threshold)
    }

    /// Returns the threshold of the second entry.
    #[inline]
    pub(super) fn second_threshold(&self) -> Option<u64> {
        let second = self.begin.wrapping_add(1);
        if second >= self.end {
            return None;
        }
        self.thresholds.get(usize::from(second)).copied()
    }

    /// Returns the numbers of the entries.
    pub(super) fn numbers(&self) -> &[u32] {
        let (begin, end) = (usize::from(self.begin), usize::from(self.end));
        self.numbers.get(begin..end).unwrap_or(&[])
    }

    /// Returns whether the first entry comes after a key.
    // Without the sequence number if the threshold says so: that is on another cache line.
    #[inline]
    pub(super) fn starts_after(&self, key: Key) -> bool {
        let begin = usize::from(self.begin);
        let Some(threshold) = self.thresholds.get(begin) else {
            return false;
        };
        if *threshold != key.threshold {
            return *threshold > key.threshold;
        }
        let sequence = self.sequences.get(begin);
        sequence.is_some_and(|sequence| *sequence > key.sequence)
    }

    /// Returns whether the first entry is at a key.
    pub(super) fn starts_at(&self, key: Key) -> bool {
        self.first().is_some_and(|entry| entry.key == key)
    }

    /// Returns the place of the first entry that is not before a key.
    fn place(&self, key: Key) -> usize {
        let (begin, end) = (usize::from(self.begin), usize::from(self.end));
        let thresholds = self.thresholds.get(begin..end).unwrap_or(&[]);
        // All of them, as that can be foreseen.
        let before = thresholds
            .iter()
            .map(|threshold| usize::from(*threshold < key.threshold))
            .sum();
        let equal = thresholds.iter().skip(before);
        let sequences = self.sequences.iter().skip(begin.wrapping_add(before));
        let same = equal
            .zip(sequences)
            .take_while(|(threshold, sequence)| {
                **threshold == key.threshold && **sequence < key.sequence
            })
            .count();
        begin.wrapping_add(before).wrapping_add(same)
    }

    /// Returns the first entry after a key.
    pub(super) fn after(&self, key: Option<Key>) -> Option<Entry> {
        let Some(key) = key else {
            return self.first();
        };
        let place = self.place(key);
        match self.at(place) {
            Some(entry) if entry.key == key => self.at(place.wrapping_add(1)),
            other => other,
        }
    }

    /// Returns the place of an entry.
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        let place = self.place(key);
        (self.at(place)?.key == key).then_some(place)
    }

    /// Adds an entry, unless it is full.
    pub(super) fn insert(&mut self, entry: Entry) {
        let (begin, end) = (usize::from(self.begin), usize::from(self.end));
        let place = self.place(entry.key);
        // INVARIANT: Those that come after it, or those that come before, make room.
        if end < ENTRIES {
            shift(self.places(place, end.wrapping_add(1)), entry);
            self.end = self.end.wrapping_add(1);
        } else if let Some(begin) = begin.checked_sub(1) {
            shift(self.places(begin, place).rev(), entry);
            self.begin = self.begin.wrapping_sub(1);
        }
    }

    /// Returns all places from one to before another one.
    #[inline]
    fn places(
        &mut self,
        begin: usize,
        end: usize,
    ) -> impl DoubleEndedIterator<Item = ((&mut u64, &mut u64), &mut u32)> {
        let thresholds = self.thresholds.get_mut(begin..end).unwrap_or(&mut []);
        let sequences = self.sequences.get_mut(begin..end).unwrap_or(&mut []);
        let numbers = self.numbers.get_mut(begin..end).unwrap_or(&mut []);
        thresholds.iter_mut().zip(sequences).zip(numbers)
    }

    /// Adds an entry that comes after all others, if there is room behind them.
    fn push(&mut self, entry: Entry) {
        let end = usize::from(self.end);
        if end < ENTRIES {
            // INVARIANT: It comes last.
            shift(self.places(end, end.wrapping_add(1)), entry);
            self.end = self.end.wrapping_add(1);
        }
    }

    /// Removes the entry at a place.
    pub(super) fn remove(&mut self, place: usize) -> Option<Entry> {
        let entry = self.at(place)?;
        let end = usize::from(self.end);
        // INVARIANT: Those that come after it close the gap.
        shift(self.places(place, end).rev(), entry);
        self.end = self.end.wrapping_sub(1);
        Some(entry)
    }

    /// Takes out the first entry.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.first()?;
        self.begin = self.begin.wrapping_add(1);
        Some(entry)
    }

    /// Takes out the first entry if it waits for `value` or less.
    pub(super) fn pop_due(&mut self, value: u64) -> Option<Entry> {
        if self.first_threshold()? > value {
            return None;
        }
        self.pop()
    }

    /// Forgets where entries were, when there are none.
    pub(super) fn reset(&mut self) {
        // INVARIANT: There are none.
        self.begin = 0;
        self.end = 0;
        self.is_last = false;
    }

    /// Moves the upper half to a block that is empty.
    pub(super) fn split_off(&mut self, other: &mut Self) {
        let middle = usize::from(self.begin).wrapping_add(self.len() / 2);
        let mut place = middle;
        while let Some(entry) = self.at(place) {
            other.push(entry);
            place = place.wrapping_add(1);
        }
        // INVARIANT: All from there on were moved.
        self.end = middle as u8;
    }

    /// Takes the entries of another block, for which there is room.
    pub(super) fn absorb(&mut self, other: &mut Self) {
        while let Some(entry) = other.pop() {
            self.insert(entry);
        }
    }
}
