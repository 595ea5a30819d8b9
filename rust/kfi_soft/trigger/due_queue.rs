// SPDX-License-Identifier: GPL-2.0

//! What is due in a domain, in order, on its way to be run.
//!
//! What becomes due at once is a *batch*: of each kind of operation some whole blocks of entries, cut off
//! from the set of the counter, and some single ones, those of the last block. The single ones are put
//! in a row, linked through their slots in the table, where each has a place, so that nothing is
//! allocated; and however many become due, they are few. Of each kind there is one tree of blocks, in
//! the order in which they came: to put a tree behind another one takes O(log n).
//!
//! So the first one of a batch in the row, of which each batch has one at least, tells of which kinds it
//! has blocks, and the last block of it in each tree says that it is. The first of the row and the first
//! of each tree are sorted by comparing them.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::trigger::{
    pending_table::{
        PendingTable,
        Removed, //
    },
    threshold::{
        Batch,
        Emptied,
        Entry,
        Key,
        Tree, //
    },
};

/// No slot.
const NONE: u32 = u32::MAX;

/// It is the first one of a batch in the row.
const BEGINS: u8 = 1;

/// Its batch has blocks of the one kind, or the other.
const BLOCKS: [u8; 2] = [2, 4];

/// Where the next ones are.
#[derive(Clone, Copy)]
enum Next {
    /// The first one in the row.
    Row,
    /// In the blocks of a kind: those that stood before a key, if there is one.
    Blocks(usize, Option<Key>),
}

/// Blocks of one kind.
struct Blocks {
    /// Those that are taken from.
    batch: Batch,
    /// Those that came since.
    tree: Tree,
    /// The batch that leaves has some of them.
    leave: bool,
}

impl Blocks {
    /// None.
    const fn new() -> Self {
        Self {
            batch: Batch::empty(),
            tree: Tree::new(),
            leave: false,
        }
    }

    /// Begins to take those of a batch.
    fn begin(&mut self) {
        if self.batch.is_empty() {
            self.batch = self.tree.take();
        }
        self.leave = true;
    }

    /// Returns where the first one stood, if it is of the batch that leaves.
    fn first_key(&self) -> Option<Key> {
        if self.leave {
            self.batch.first_key()
        } else {
            None
        }
    }

    /// Takes out the first entry.
    fn pop(&mut self, emptied: &mut Emptied) {
        if let Some((_, Some(block))) = self.batch.pop() {
            self.leave = !block.is_last_of_batch();
            emptied.push(block);
        }
    }
}

/// What is due.
///
/// # Invariants
///
/// Slots from `first` to `last` are linked with each other, and in use. Blocks are there for as many
/// batches as those say.
pub(crate) struct DueQueue {
    first: u32,
    last: u32,
    blocks: [Blocks; 2],
    /// How many batches have begun to leave.
    begun: u64,
}

impl DueQueue {
    /// Nothing.
    pub(crate) const fn new() -> Self {
        Self {
            first: NONE,
            last: NONE,
            blocks: [const { Blocks::new() }; 2],
            begun: 0,
        }
    }

    /// Returns whether a part of a batch has left, and another one has not.
    fn is_in_batch(&self) -> bool {
        self.blocks.iter().any(|blocks| blocks.leave)
    }

    /// Returns whether nothing is due.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE && !self.is_in_batch()
    }

    /// Returns how many batches have left.
    pub(crate) fn left<T, C: Clone>(&self, table: &PendingTable<T, C>) -> u64 {
        let begins = table
            .due(self.first)
            .is_none_or(|(_, mark)| mark & BEGINS != 0);
        if self.is_in_batch() || !begins {
            self.begun.wrapping_sub(1)
        } else {
            self.begun
        }
    }

    /// Adds what has become due at once: blocks of each kind, and some single ones, in order, of which
    /// there has to be one.
    pub(crate) fn append<T, C: Clone>(
        &mut self,
        table: &mut PendingTable<T, C>,
        trees: [Tree; 2],
        row: impl Iterator<Item = Entry>,
    ) {
        let mut mark = BEGINS;
        for ((tree, blocks), has_blocks) in trees.into_iter().zip(&mut self.blocks).zip(BLOCKS) {
            if !tree.is_empty() {
                mark |= has_blocks;
                blocks.tree.append(tree);
            }
        }
        for Entry { number, .. } in row {
            if self.link(table, number, mark) {
                mark = 0;
            }
        }
    }

    /// Adds one that has become due alone.
    #[inline]
    pub(crate) fn append_single<T, C: Clone>(
        &mut self,
        table: &mut PendingTable<T, C>,
        entry: Entry,
    ) {
        self.link(table, entry.number, BEGINS);
    }

    /// Adds one to the row; returns whether there is such a slot.
    #[inline]
    fn link<T, C: Clone>(&mut self, table: &mut PendingTable<T, C>, number: u32, mark: u8) -> bool {
        let Some((next, noted)) = table.due_mut(number) else {
            return false;
        };
        *next = NONE;
        *noted = mark;
        // INVARIANT: The last one leads to it.
        if self.last == NONE {
            self.first = number;
        } else if let Some((next, _)) = table.due_mut(self.last) {
            *next = number;
        }
        self.last = number;
        true
    }

    /// Takes out what is due, if it is a single one and `allowed`.
    #[inline]
    pub(crate) fn take_single<T, C: Clone>(
        &mut self,
        table: &mut PendingTable<T, C>,
        allowed: impl FnOnce(&T) -> bool,
    ) -> Option<Removed<T, C>> {
        if self.first != self.last || self.is_in_batch() {
            return None;
        }
        let mut begins = 0;
        let removed = table.remove_if(self.first, |mark, value| {
            begins = mark;
            // Without blocks.
            mark & !BEGINS == 0 && allowed(value)
        })?;
        if begins & BEGINS != 0 {
            self.begun = self.begun.wrapping_add(1);
        }
        // INVARIANT: There was no other one.
        self.first = NONE;
        self.last = NONE;
        Some(removed)
    }

    /// Returns where the next ones are.
    fn next<T, C: Clone>(&mut self, table: &mut PendingTable<T, C>) -> Option<Next> {
        if !self.is_in_batch() {
            let (_, mark) = table.due_mut(self.first)?;
            if *mark & BEGINS != 0 {
                self.begun = self.begun.wrapping_add(1);
            }
            let has = BLOCKS.map(|has_blocks| *mark & has_blocks != 0);
            *mark = 0;
            if has == [false; 2] {
                return Some(Next::Row);
            }
            for (blocks, has) in self.blocks.iter_mut().zip(has) {
                if has {
                    blocks.begin();
                }
            }
        }
        let row = match table.due(self.first) {
            Some((key, mark)) if mark & BEGINS == 0 => Some(key),
            // It is of the next batch.
            _ => None,
        };
        let [one, other] = [0, 1].map(|kind| self.blocks.get(kind)?.first_key());
        // No two are equal.
        let is_before = |one: Option<Key>, other: Option<Key>| {
            one.is_some_and(|one| other.is_none_or(|other| one < other))
        };
        let first_of = |one, other| if is_before(one, other) { one } else { other };
        Some(if is_before(one, first_of(other, row)) {
            Next::Blocks(0, first_of(other, row))
        } else if is_before(other, row) {
            Next::Blocks(1, first_of(one, row))
        } else {
            Next::Row
        })
    }

    /// Takes out what is next, as many as there are places for, up to the first one that is not
    /// `allowed`; returns how many. Blocks without entries are added to `emptied`.
    pub(crate) fn take<'a, T: 'a, C: Clone + 'a>(
        &mut self,
        table: &mut PendingTable<T, C>,
        places: impl IntoIterator<Item = &'a mut Option<Removed<T, C>>>,
        emptied: &mut Emptied,
        mut allowed: impl FnMut(&T) -> bool,
    ) -> u32 {
        let mut count: u32 = 0;
        let mut places = places.into_iter();
        let mut place = places.next();
        while place.is_some() {
            let Some(next) = self.next(table) else {
                break;
            };
            let (kind, end) = match next {
                Next::Row => {
                    let number = self.first;
                    let Some(removed) = table.remove_if(number, |_, value| allowed(value)) else {
                        break;
                    };
                    if let Some(place) = place {
                        *place = Some(removed);
                    }
                    count = count.wrapping_add(1);
                    place = places.next();
                    // Nobody has used it again.
                    self.first = table.due_mut(number).map_or(NONE, |(next, _)| *next);
                    if self.first == NONE {
                        self.last = NONE;
                    }
                    continue;
                }
                Next::Blocks(kind, end) => (kind, end),
            };
            let Some(blocks) = self.blocks.get_mut(kind) else {
                break;
            };
            while blocks.leave && place.is_some() {
                let Some(Entry { key, number }) = blocks.batch.first() else {
                    break;
                };
                if end.is_some_and(|end| key > end) {
                    break;
                }
                let Some(removed) = table.remove_if(number, |_, value| allowed(value)) else {
                    return count;
                };
                if let Some(place) = place.take() {
                    *place = Some(removed);
                }
                count = count.wrapping_add(1);
                place = places.next();
                blocks.pop(emptied);
            }
        }
        count
    }

    /// Has the slots come into the caches of what is next, up to so many of a kind.
    pub(crate) fn prefetch<T, C: Clone>(&self, table: &PendingTable<T, C>, count: usize) {
        for blocks in &self.blocks {
            if blocks.leave {
                for number in blocks.batch.near().take(count) {
                    table.prefetch(number);
                }
            }
        }
    }
}

#[kunit_tests(kfi_soft_due_queue)]
mod tests {
    use super::*;
    use crate::trigger::{
        pending::PendingKind,
        pending_table::{
            Entered,
            PendingOwner, //
        },
        threshold::{
            detach_due,
            Block,
            ThresholdSet, //
        },
    };

    /// What is due, and what may become so. Each operation is the number of its submission.
    struct Due {
        table: PendingTable<u64, u32>,
        queue: DueQueue,
        sets: [ThresholdSet; 2],
    }

    impl Due {
        fn new() -> Result<Self> {
            Ok(Self {
                table: PendingTable::new(10_000, 0x9e37_79b9_7f4a_7c15)?,
                queue: DueQueue::new(),
                sets: [ThresholdSet::new(5), ThresholdSet::new(7)],
            })
        }

        /// Submits one of a kind.
        fn submit(&mut self, kind: usize, threshold: u64) -> Result {
            let entered = Entered {
                id: 64 * threshold as usize,
                owner: PendingOwner::NOBODY,
                kind: PendingKind::Deferred,
                counter: &1,
                threshold,
            };
            let mut value = Some(self.table.next_sequence());
            let (number, key) = loop {
                if let Some(inserted) = self.table.insert(&entered, &mut value)? {
                    break inserted;
                }
                let wanted = self.table.wanted(PendingOwner::NOBODY);
                drop(
                    self.table
                        .grow(PendingTable::new_chunk(&wanted, GFP_KERNEL)?),
                );
            };
            let set = self.sets.get_mut(kind).ok_or(EINVAL)?;
            let mut blocks = Emptied::new();
            for _ in 0..set.blocks_wanted() {
                blocks.push(Block::new(GFP_KERNEL)?);
            }
            set.add_blocks(&mut blocks);
            assert!(set.insert(Entry { key, number }));
            Ok(())
        }

        /// Lets become due what waits for a value of its kind or less.
        fn fire(&mut self, values: [u64; 2]) {
            let Self { table, queue, sets } = self;
            let ([one, other], [value, other_value]) = (sets, values);
            drop(detach_due(
                (one, value),
                (other, other_value),
                |_, trees, rest| queue.append(table, trees, rest),
            ));
        }

        /// Lets become due what alone waits for a value of its kind, which is not the last one.
        fn fire_single(&mut self, kind: usize, value: u64) -> Result {
            let Self { table, queue, sets } = self;
            let set = sets.get_mut(kind).ok_or(EINVAL)?;
            assert!(set.is_due(value));
            let entry = set.pop_single_due(value).ok_or(EINVAL)?;
            assert_eq!(entry.key.threshold, value);
            queue.append_single(table, entry);
            Ok(())
        }

        /// Takes what is due if it is alone, unless it is refused.
        fn take_single(&mut self, allowed: bool) -> Option<u64> {
            let Self { table, queue, .. } = self;
            Some(queue.take_single(table, |_| allowed)?.value)
        }

        /// Takes so many at most, none of which is `refused`.
        fn take(&mut self, count: usize, refused: Option<u64>) -> Result<KVec<u64>> {
            let mut places = [const { None }; 64];
            let mut emptied = Emptied::new();
            let taken = self.queue.take(
                &mut self.table,
                places.iter_mut().take(count),
                &mut emptied,
                |value| Some(*value) != refused,
            );
            let mut values = KVec::new();
            for removed in places.iter().flatten() {
                values.push(removed.value, GFP_KERNEL)?;
            }
            assert_eq!(values.len(), taken as usize);
            Ok(values)
        }
    }

    #[test]
    fn batches_leave_in_the_order_in_which_they_came() -> Result {
        let mut due = Due::new()?;
        assert!(due.queue.is_empty());
        due.submit(0, 8)?;
        due.submit(0, 9)?;
        due.fire([9, 9]);
        // Two that became due at once are sorted.
        for (kind, threshold) in [(0, 1), (1, 1), (0, 3), (1, 4), (0, 5), (1, 9)] {
            due.submit(kind, threshold)?;
        }
        due.fire([5, 9]);
        due.submit(1, 0)?;
        due.fire([0, 0]);
        assert!(!due.queue.is_empty() && due.take_single(true).is_none());
        let mut expected = 0;
        for count in [1, 2, 3, 1, 1] {
            for value in &due.take(count, None)? {
                assert_eq!(*value, expected);
                expected += 1;
            }
        }
        // A single one is left.
        assert_eq!(due.take_single(false), None);
        assert_eq!(due.queue.left(&due.table), 2);
        assert_eq!(due.take_single(true), Some(8));
        assert_eq!(due.queue.left(&due.table), 3);
        assert!(due.queue.is_empty());
        assert_eq!(due.take_single(true), None);
        // Those that become due one by one are batches of their own.
        for threshold in 1..4 {
            due.submit(0, threshold)?;
        }
        for threshold in 1..3 {
            due.fire_single(0, threshold)?;
        }
        assert!(!due.sets[0].is_due(2) && due.sets[0].pop_single_due(3).is_none());
        assert_eq!(due.take_single(true), None);
        assert_eq!(due.take(1, None)?.first(), Some(&9));
        assert_eq!(due.queue.left(&due.table), 4);
        assert_eq!(due.take_single(true), Some(10));
        assert_eq!(due.queue.left(&due.table), 5);
        Ok(())
    }

    /// As a data transfer does for which there is no time.
    #[test]
    fn what_is_not_allowed_stays() -> Result {
        let mut due = Due::new()?;
        for threshold in 0..200 {
            due.submit(0, threshold)?;
        }
        due.fire([199, 0]);
        for refused in [0, 7, 100, 180, 199] {
            while !due.take(64, Some(refused))?.is_empty() {}
            assert!(!due.queue.is_empty());
            assert_eq!(due.take(1, None)?.first(), Some(&refused));
        }
        assert!(due.queue.is_empty());
        Ok(())
    }

    /// Many at once, of both kinds, several times before any leaves.
    #[test]
    fn blocks_of_several_batches_are_told_apart() -> Result {
        let mut due = Due::new()?;
        let mut submitted = 0;
        for round in 0..4 {
            for i in 0..300 {
                // Batches whose thresholds are lower than those of the ones before.
                due.submit(i % 2, 10_000 - 1000 * round + i as u64)?;
                submitted += 1;
            }
            // One kind has no blocks in some of them.
            let other = if round % 2 == 0 { u64::MAX } else { 0 };
            due.fire([u64::MAX, other]);
            if other == 0 {
                due.fire([0, u64::MAX]);
            }
        }
        let mut values = KVec::new();
        while !due.queue.is_empty() {
            for value in &due.take(48, None)? {
                values.push(*value, GFP_KERNEL)?;
            }
        }
        assert_eq!(values.len(), submitted);
        assert_eq!(due.queue.left(&due.table), 6);
        for (round, batch) in values.chunks(300).enumerate() {
            for (i, value) in batch.iter().enumerate() {
                let expected = match round % 2 {
                    0 => i,
                    // The one kind, then the other.
                    _ if i < 150 => 2 * i,
                    _ => 2 * (i - 150) + 1,
                };
                assert_eq!(*value, (300 * round + expected) as u64);
            }
        }
        Ok(())
    }
}
