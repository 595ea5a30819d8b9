// SPDX-License-Identifier: GPL-2.0

//! Where to find what is pending.
//!
//! Deferred work is cancelled by the value of the pointer that it was queued with, and a triggered
//! operation by its context (R-CTL-2). So that these are found in O(1), everything that is pending
//! has a slot here, which says what it waits for. A slot stays until what it is about was cancelled
//! or is about to run. The slots also bound what may be pending (R-DWQ-24).
//!
//! It is a hash table that grows without ever being rebuilt (linear hashing): as many buckets as
//! slots, and each new bucket takes its part of one other. Slots come in chunks of a page, which are
//! allocated before a lock is taken. Chunks are kept for reuse.
//!
//! Where buckets begin lies apart from the slots: an id leads anywhere, and there are many ids. What
//! is looked at in random order is small, and so more of it stays in the caches.

#![deny(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::threshold::Key;

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots in a chunk: as many as fill a page.
const CHUNK: usize = 4096 / size_of::<Slot<KBox<()>>>();

/// Something pending.
struct Slot<C> {
    /// What it is found by: a pointer that is never looked behind.
    id: usize,
    /// The counter that it waits for; `None` in a free slot.
    counter: Option<C>,
    /// Where it stands there.
    key: Key,
    /// The next slot in the bucket, or the next free one.
    next: u32,
    /// The one before it in the bucket.
    prev: u32,
    /// It is a data transfer.
    transfer: bool,
}

/// What is told about something pending.
pub(crate) struct Found<C> {
    /// The counter that it waits for.
    pub(crate) counter: C,
    /// Where it stands there.
    pub(crate) key: Key,
    /// It is a data transfer.
    pub(crate) transfer: bool,
}

/// Slots and as many buckets.
pub(crate) struct Piece<C> {
    slots: KVec<Slot<C>>,
    /// The first slot of each bucket.
    heads: KVec<u32>,
}

/// Slots, allocated and yet to be added.
pub(crate) struct Chunk<C> {
    piece: Piece<C>,
    /// Room for all pieces, with the first of them.
    pieces: KVVec<Piece<C>>,
}

/// The slots of all that is pending in a domain.
///
/// # Invariants
///
/// - There are [`CHUNK`] slots and as many buckets in every piece.
/// - A slot is either in the bucket of its id, with the later one first if the ids are the same, or
///   in the list of free ones.
pub(crate) struct WorkTable<C> {
    pieces: KVVec<Piece<C>>,
    /// The first free slot.
    free: u32,
    /// The number of slots in use.
    used: usize,
    /// How many may be in use.
    limit: usize,
    /// An odd number that nobody knows who chooses ids.
    secret: u64,
    /// The number of the next submission.
    sequence: u64,
}

impl<C: Clone> WorkTable<C> {
    /// A table for up to `limit` entries; `secret` is for the hash.
    pub(crate) fn new(limit: usize, secret: u64) -> Self {
        Self {
            pieces: KVVec::new(),
            free: NONE,
            used: 0,
            limit: limit.min(NONE as usize - CHUNK),
            secret: secret | 1,
            sequence: 0,
        }
    }

    /// Allocates slots for [`Self::grow`]; `first` says that there are none yet.
    pub(crate) fn new_chunk(limit: usize, first: bool, flags: Flags) -> Result<Chunk<C>> {
        Ok(Chunk {
            piece: Piece {
                slots: KVec::with_capacity(CHUNK, flags)?,
                heads: KVec::with_capacity(CHUNK, flags)?,
            },
            pieces: if first {
                KVVec::with_capacity(limit / CHUNK + 1, flags | __GFP_NOWARN)?
            } else {
                KVVec::new()
            },
        })
    }

    /// Returns how many may be in use.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of slots in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Returns the number of slots.
    pub(crate) fn capacity(&self) -> usize {
        self.pieces.len() * CHUNK
    }

    /// Takes the memory of all slots, for their owner to free where that may sleep; without slots
    /// the table is as new. `None` while one is in use.
    pub(crate) fn take_memory(&mut self) -> Option<KVVec<Piece<C>>> {
        if self.used != 0 {
            return None;
        }
        self.free = NONE;
        Some(core::mem::replace(&mut self.pieces, KVVec::new()))
    }

    /// Returns a slot.
    fn slot(&self, number: u32) -> Option<&Slot<C>> {
        let number = number as usize;
        let piece = self.pieces.get(number / CHUNK)?;
        piece.slots.get(number % CHUNK)
    }

    /// Returns a slot.
    fn slot_mut(&mut self, number: u32) -> Option<&mut Slot<C>> {
        let number = number as usize;
        let piece = self.pieces.get_mut(number / CHUNK)?;
        piece.slots.get_mut(number % CHUNK)
    }

    /// Returns the first slot of a bucket.
    fn head(&self, bucket: u32) -> u32 {
        let bucket = bucket as usize;
        let piece = self.pieces.get(bucket / CHUNK);
        piece
            .and_then(|piece| piece.heads.get(bucket % CHUNK))
            .map_or(NONE, |head| *head)
    }

    /// Sets the first slot of a bucket.
    fn set_head(&mut self, bucket: u32, number: u32) {
        let bucket = bucket as usize;
        let piece = self.pieces.get_mut(bucket / CHUNK);
        if let Some(head) = piece.and_then(|piece| piece.heads.get_mut(bucket % CHUNK)) {
            *head = number;
        }
    }

    /// Returns the bucket of an id, were there that many buckets.
    fn bucket(&self, id: usize, buckets: usize) -> u32 {
        // Ids that are close to each other, as are pointers into an array, are in buckets that are
        // close to each other and come one after the other through the caches; but where those
        // begin is a secret. Not many can be meant for one bucket: two that are in the same range
        // and, for `n` buckets, in the same bucket are `16 * n` apart.
        let id = id as u64;
        let base = (id >> 16).wrapping_mul(self.secret) >> 32;
        let hash = base
            .wrapping_add((id >> 4) & 0xfff)
            .wrapping_add((id & 0xf) << 12);
        let mask = buckets.next_power_of_two() as u64 - 1;
        let bucket = hash & mask;
        // The upper half is not there yet.
        let bucket = if bucket < buckets as u64 {
            bucket
        } else {
            bucket & (mask >> 1)
        };
        bucket as u32
    }

    /// Adds slots, unless there are as many as there may be.
    ///
    /// Returns what is left over, to be freed outside of locks.
    pub(crate) fn grow(&mut self, mut chunk: Chunk<C>) -> Option<Chunk<C>> {
        if self.capacity() >= self.limit {
            return Some(chunk);
        }
        if self.pieces.capacity() == 0 {
            core::mem::swap(&mut self.pieces, &mut chunk.pieces);
        }
        let begin = self.capacity();
        for i in 0..CHUNK {
            let slot = Slot {
                id: 0,
                counter: None,
                key: Key {
                    threshold: 0,
                    sequence: 0,
                },
                next: if i + 1 < CHUNK {
                    (begin + i + 1) as u32
                } else {
                    self.free
                },
                prev: NONE,
                transfer: false,
            };
            // There is room: see `new_chunk`.
            let piece = &mut chunk.piece;
            if piece.slots.push_within_capacity(slot).is_err()
                || piece.heads.push_within_capacity(NONE).is_err()
            {
                return Some(chunk);
            }
        }
        let piece = Piece {
            slots: core::mem::take(&mut chunk.piece.slots),
            heads: core::mem::take(&mut chunk.piece.heads),
        };
        if self.pieces.push_within_capacity(piece).is_err() {
            return Some(chunk);
        }
        self.free = begin as u32;
        for bucket in begin..begin + CHUNK {
            self.split_bucket(bucket);
        }
        Some(chunk)
    }

    /// Moves into a new bucket, the last one, what belongs there.
    fn split_bucket(&mut self, bucket: usize) {
        if bucket == 0 {
            return;
        }
        let from = bucket & (((bucket + 1).next_power_of_two() - 1) >> 1);
        let mut tail = NONE;
        let mut next = self.head(from as u32);
        while let Some(slot) = self.slot(next) {
            let (number, id) = (next, slot.id);
            next = slot.next;
            if self.bucket(id, bucket + 1) as usize == bucket {
                self.unlink(number, from as u32);
                // At the end: the order stays.
                self.link(number, tail, NONE, bucket as u32);
                tail = number;
            }
        }
    }

    /// Puts a slot between two others of a bucket.
    fn link(&mut self, number: u32, prev: u32, next: u32, bucket: u32) {
        if let Some(slot) = self.slot_mut(number) {
            slot.prev = prev;
            slot.next = next;
        }
        self.join(prev, number, bucket);
        if let Some(slot) = self.slot_mut(next) {
            slot.prev = number;
        }
    }

    /// Takes a slot out of a bucket.
    fn unlink(&mut self, number: u32, bucket: u32) {
        let Some(slot) = self.slot(number) else {
            return;
        };
        let (prev, next) = (slot.prev, slot.next);
        self.join(prev, next, bucket);
        if let Some(slot) = self.slot_mut(next) {
            slot.prev = prev;
        }
    }

    /// Lets a slot of a bucket, or its head, be followed by another one.
    fn join(&mut self, prev: u32, next: u32, bucket: u32) {
        if prev == NONE {
            self.set_head(bucket, next);
        } else if let Some(slot) = self.slot_mut(prev) {
            slot.next = next;
        }
    }

    /// Notes something that is about to be pending.
    ///
    /// Returns its slot and where it is to stand; `None` if there is no slot, which more slots
    /// help against; `ENOSPC` if they do not (R-DWQ-24).
    pub(crate) fn insert(
        &mut self,
        id: usize,
        counter: &C,
        threshold: u64,
        transfer: bool,
    ) -> Result<Option<(u32, Key)>> {
        if self.used >= self.limit {
            return Err(ENOSPC);
        }
        let number = self.free;
        let bucket = self.bucket(id, self.capacity().max(1));
        let key = Key {
            threshold,
            sequence: self.sequence,
        };
        let Some(slot) = self.slot_mut(number) else {
            return Ok(None);
        };
        slot.id = id;
        slot.counter = Some(counter.clone());
        slot.key = key;
        slot.transfer = transfer;
        self.free = slot.next;
        self.used += 1;
        self.sequence = self.sequence.wrapping_add(1);
        let next = self.head(bucket);
        self.link(number, NONE, next, bucket);
        Ok(Some((number, key)))
    }

    /// Frees a slot. Returns the reference of the counter, to be dropped outside of locks.
    pub(crate) fn remove(&mut self, number: u32) -> Option<C> {
        let id = self.slot(number)?.id;
        self.unlink(number, self.bucket(id, self.capacity().max(1)));
        let free = self.free;
        let slot = self.slot_mut(number)?;
        let counter = slot.counter.take();
        slot.next = free;
        self.free = number;
        self.used = self.used.saturating_sub(1);
        counter
    }

    /// Finds the last slot with an id that was submitted before the number `before`.
    fn find_slot(&self, id: usize, before: u64) -> Option<&Slot<C>> {
        let bucket = self.bucket(id, self.capacity().max(1));
        let mut next = self.head(bucket);
        while let Some(slot) = self.slot(next) {
            if slot.id == id && slot.key.sequence < before {
                return Some(slot);
            }
            next = slot.next;
        }
        None
    }

    /// Finds the last with an id that was submitted before the number `before`.
    pub(crate) fn find(&self, id: usize, before: u64) -> Option<Found<C>> {
        Found::new(self.find_slot(id, before)?)
    }

    /// Returns whether [`Self::find`] would find one.
    pub(crate) fn contains(&self, id: usize, before: u64) -> bool {
        self.find_slot(id, before).is_some()
    }

    /// Returns what a slot is about, if it is in use.
    pub(crate) fn get(&self, number: usize) -> Option<Found<C>> {
        Found::new(self.slot(u32::try_from(number).ok()?)?)
    }
}

impl<C: Clone> Found<C> {
    /// Tells about a slot, if it is in use.
    fn new(slot: &Slot<C>) -> Option<Self> {
        Some(Self {
            counter: slot.counter.clone()?,
            key: slot.key,
            transfer: slot.transfer,
        })
    }
}

#[kunit_tests(kfi_soft_work_table)]
mod tests {
    use super::*;

    type Table = WorkTable<u32>;

    /// Inserts, growing when there is no room.
    fn insert(table: &mut Table, id: usize, counter: u32) -> Result<(u32, Key)> {
        loop {
            if let Some(inserted) = table.insert(id, &counter, 7, false)? {
                return Ok(inserted);
            }
            let chunk = Table::new_chunk(table.limit(), table.capacity() == 0, GFP_KERNEL)?;
            table.grow(chunk);
        }
    }

    #[test]
    fn found_after_growing() -> Result {
        let mut table = Table::new(3000, 0x9e37_79b9_7f4a_7c15);
        let mut slots = KVec::new();
        for i in 0..3000 {
            slots.push(insert(&mut table, i * 64, i as u32)?, GFP_KERNEL)?;
        }
        assert!(insert(&mut table, 1, 1).is_err_and(|error| error == ENOSPC));
        for i in 0..3000 {
            let found = table.find(i * 64, u64::MAX).ok_or(ENOENT)?;
            assert_eq!(found.counter, i as u32);
            assert_eq!(found.key.sequence, i as u64);
        }
        assert!(table.find(1, u64::MAX).is_none());
        // Every other one leaves.
        for (slot, _) in slots.iter().step_by(2) {
            assert!(table.remove(*slot).is_some());
        }
        assert_eq!(table.used(), 1500);
        for i in 0..3000 {
            assert_eq!(table.find(i * 64, u64::MAX).is_some(), i % 2 == 1);
        }
        // The slots are used again.
        for i in 0..1500 {
            insert(&mut table, i, 0)?;
        }
        assert!(insert(&mut table, 1, 1).is_err());
        Ok(())
    }

    #[test]
    fn memory_leaves_when_nothing_is_in_use() -> Result {
        let mut table = Table::new(1000, 1);
        for _ in 0..2 {
            let (first, _) = insert(&mut table, 1, 1)?;
            let (second, _) = insert(&mut table, 2, 2)?;
            assert!(table.remove(first).is_some());
            assert!(table.take_memory().is_none());
            assert!(table.find(2, u64::MAX).is_some());
            assert!(table.remove(second).is_some());
            assert!(table.take_memory().is_some_and(|memory| memory.len() == 1));
            assert_eq!(table.capacity(), 0);
        }
        Ok(())
    }

    #[test]
    fn the_same_id_is_found_backwards() -> Result {
        let mut table = Table::new(1000, 12345);
        // Others between them, so that buckets are split.
        for i in 0..500 {
            insert(&mut table, 4096, i)?;
            insert(&mut table, i as usize, 0)?;
        }
        let mut before = u64::MAX;
        for i in (0..500).rev() {
            let found = table.find(4096, before).ok_or(ENOENT)?;
            assert_eq!(found.counter, i);
            before = found.key.sequence;
        }
        assert!(table.find(4096, before).is_none());
        Ok(())
    }
}
