// SPDX-License-Identifier: GPL-2.0

//! Where to find what is pending.
//!
//! Deferred work is cancelled by the value of the pointer that it was queued with, and a triggered
//! operation by its endpoint and context (R-CTL-2). So that these are found in O(1), everything that
//! is pending has a slot here, which says what it waits for. A slot stays until what it is about was
//! cancelled or is about to run. The slots also bound what may be pending (R-DWQ-24).
//!
//! The operation lies in its slot, too, whatever else refers to it by the number of that: it takes no
//! memory of its own. When it is due it can be linked with others there, so that there is always a place
//! for it (see [`super::due_queue`]).
//!
//! It is a hash table that grows without ever being rebuilt (linear hashing): there are some more buckets
//! than slots, so that most of those that are in use have a single slot, and no other one is looked at;
//! each new bucket takes its part of one other. In a bucket there is one slot for each name, the
//! *leader*; those that have the same name follow it in a list of their own, so that many of a name are
//! in nobody's way. Besides, the slots of an endpoint are linked with each other.
//!
//! # Memory
//!
//! Slots come in pieces of a page. The pointers to the pieces lie in pages as well, of which one leads
//! to some thousand slots. The array that leads to these pages has its final size from the beginning,
//! some hundred bytes, and is allocated when the domain opens, as that may sleep. All that is allocated
//! later may be so in a hard interrupt, and is never larger than a page. Pieces are kept for reuse.
//!
//! Where buckets begin lies apart from the slots: a name leads anywhere, and there are many names.
//! The part that is looked at in random order is small, and so more of it stays in the caches. What
//! links the slots of an endpoint lies apart, too, and only where there is a slot that has one.

#![forbid(unsafe_code)]

use core::hint;
use kernel::{
    alloc::Flags,
    prelude::*, //
};

use crate::{
    grown::Grown,
    trigger::{
        pending::PendingKind,
        threshold::Key, //
    }, //
};

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots in a piece: as many as fill a page.
const SLOTS: usize = 56;

/// Numbers of a piece, some of which no slot has: as a power of two, by which dividing is quick.
const NUMBERS: usize = 64;

kernel::static_assert!(SLOTS <= NUMBERS && i32::MAX as usize / SLOTS < NONE as usize / NUMBERS);

/// Buckets in a piece.
const HEADS: usize = 128;

/// Pieces that a page leads to.
const PIECES: usize = 64;

kernel::static_assert!(size_of::<[Piece<KBox<()>, KBox<()>>; PIECES]>() <= 4096);

/// Pieces that are looked at with the lock held.
const STEP: usize = 64;

/// Names an endpoint in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingOwner(u32);

impl PendingOwner {
    /// The owner of what has no endpoint.
    pub(crate) const NOBODY: Self = Self(NONE);
}

/// The name by which a pending operation is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingName {
    /// A pointer that is never dereferenced.
    pub(crate) id: usize,
    /// The endpoint, of a triggered operation.
    pub(crate) owner: PendingOwner,
    /// The kind of the operation.
    pub(crate) kind: PendingKind,
}

/// How a slot can be found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// Not at all.
    Unlisted,
    /// It is in its bucket.
    Leader,
    /// It comes after a leader that has the same name.
    Follower,
}

/// Something pending.
struct PendingSlot<T, C> {
    id: usize,
    /// The counter that it waits for; `None` in a free slot.
    counter: Option<C>,
    /// The operation; `None` in a free slot.
    value: Option<T>,
    /// Where it stands there.
    key: Key,
    /// The next one in the bucket or after the leader.
    next: u32,
    /// Of a leader the first one after it, the one that was submitted right before it; of one that comes
    /// after a leader the one before it, which may be that.
    near: u32,
    /// The next one that is due.
    next_due: u32,
    /// What [`super::due_queue::DueQueue`] notes about it when it is due.
    mark: u8,
    kind: PendingKind,
    listing: Listing,
    /// It has fired and was cancelled.
    cancelled: bool,
}

impl<T, C> PendingSlot<T, C> {
    /// A free one.
    fn free() -> Self {
        Self {
            id: 0,
            counter: None,
            value: None,
            key: Key {
                threshold: 0,
                sequence: 0,
            },
            next: NONE,
            near: NONE,
            next_due: NONE,
            mark: 0,
            kind: PendingKind::Deferred,
            listing: Listing::Unlisted,
            cancelled: false,
        }
    }

    /// Lets it not be listed any more, and returns where it was.
    fn take_listed(&mut self) -> Listed {
        Listed {
            listing: core::mem::replace(&mut self.listing, Listing::Unlisted),
            next: self.next,
            near: self.near,
        }
    }
}

/// The endpoint of a slot.
struct OwnerLink {
    owner: PendingOwner,
    /// It is linked with the others of the endpoint.
    is_linked: bool,
    /// The next one and the one before it of the endpoint.
    next: u32,
    prev: u32,
}

impl OwnerLink {
    /// None.
    fn nobody() -> Self {
        Self {
            owner: PendingOwner::NOBODY,
            is_linked: false,
            next: NONE,
            prev: NONE,
        }
    }
}

/// The endpoints of the slots of a piece.
type OwnerLinks = KBox<[OwnerLink; SLOTS]>;

/// Where a slot was listed: see [`PendingSlot`].
struct Listed {
    listing: Listing,
    next: u32,
    near: u32,
}

impl Listed {
    /// Returns whether others of the same name may be listed, as they are where it was a follower; if it
    /// was not listed any more, nobody knows.
    fn has_others(&self) -> bool {
        self.listing != Listing::Leader || self.near != NONE
    }
}

/// An operation that is about to be pending.
pub(crate) struct Entered<'a, C> {
    /// A pointer that is never dereferenced.
    pub(crate) id: usize,
    /// The endpoint.
    pub(crate) owner: PendingOwner,
    /// The kind of the operation.
    pub(crate) kind: PendingKind,
    /// The counter that it waits for.
    pub(crate) counter: &'a C,
    /// The value that it waits for.
    pub(crate) threshold: u64,
}

impl<C> Entered<'_, C> {
    /// Returns what it is found by.
    fn name(&self) -> PendingName {
        PendingName {
            id: self.id,
            owner: match self.kind {
                PendingKind::Triggered => self.owner,
                PendingKind::Deferred => PendingOwner::NOBODY,
            },
            kind: self.kind,
        }
    }
}

/// A pending operation that was found.
pub(crate) struct FoundWork<C> {
    /// The counter that it waits for.
    pub(crate) counter: C,
    /// Where it stands there.
    pub(crate) key: Key,
    /// The kind of the operation.
    pub(crate) kind: PendingKind,
    /// Its slot.
    pub(crate) slot: u32,
}

/// The former content of a slot.
pub(crate) struct Removed<T, C> {
    /// The operation.
    pub(crate) value: T,
    /// Where it stood.
    pub(crate) key: Key,
    /// The counter that it waited for, to be dropped outside of locks.
    pub(crate) counter: C,
    /// It was cancelled after it had fired.
    pub(crate) cancelled: bool,
    /// Others of its name may be listed; they are, unless it was not listed itself any more.
    pub(crate) others: bool,
}

/// Slots and as many buckets.
struct Piece<T, C> {
    slots: KBox<[PendingSlot<T, C>; SLOTS]>,
    /// The first slot of each bucket.
    heads: KBox<[u32; HEADS]>,
    /// The endpoints, if there ever was one.
    owners: Option<OwnerLinks>,
    /// A bit for each slot that is free.
    free: u64,
    /// The next piece that has a free slot, if this one has.
    next: u32,
}

/// The bits of all slots of a piece.
const ALL_FREE: u64 = (1 << SLOTS) - 1;

/// What has to be allocated so that something can be inserted.
pub(crate) struct Wanted {
    /// A page that leads to pieces.
    page: bool,
    /// A piece.
    piece: bool,
    /// Place for endpoints.
    owners: bool,
}

/// Slots, allocated and yet to be added.
pub(crate) struct Chunk<T, C> {
    piece: Option<Piece<T, C>>,
    /// Leads to this piece and those to come, if there is need for that.
    page: KVec<Piece<T, C>>,
    /// For the first free slot, or this piece.
    owners: Option<OwnerLinks>,
}

/// The memory of a table, to be dropped.
#[expect(dead_code, reason = "it is only dropped")]
pub(crate) struct Pages<T, C>(KVVec<KVec<Piece<T, C>>>);

/// The slots of all that is pending in a domain.
///
/// # Invariants
///
/// - There are [`PIECES`] pieces in every page but the last one.
/// - A slot is free, and so its piece is in the list of those that have free ones, or it is in the bucket of its name, or
///   in the list of those that follow a leader of the same name, the later ones first; or nowhere, if it was
///   cancelled, or has fired and was passed over, since it was found.
/// - The `next` of a leader leads to the next leader of the bucket, its `near` to the first one that
///   follows it. From there on `next` leads to the next one, and `near` to the one before.
pub(crate) struct PendingTable<T, C> {
    pages: KVVec<KVec<Piece<T, C>>>,
    /// The number of pieces.
    pieces: usize,
    /// The first slot of each endpoint; of a free number the next one.
    owners: Grown<u32>,
    /// The first free number for endpoints.
    free_owner: u32,
    /// The first piece that has a free slot.
    free: u32,
    /// The number of slots in use.
    used: usize,
    /// How many may be in use.
    limit: usize,
    /// An odd number, unknown to users who choose ids.
    secret: u64,
    /// The number of the next submission.
    sequence: u64,
}

impl<T, C: Clone> PendingTable<T, C> {
    /// How much memory a piece takes, in one go.
    pub(crate) const PIECE_SIZE: usize = size_of::<[PendingSlot<T, C>; SLOTS]>();

    /// A table for up to `limit` entries; `secret` is for the hash. May sleep.
    pub(crate) fn new(limit: usize, secret: u64) -> Result<Self> {
        let limit = limit.min(i32::MAX as usize - SLOTS);
        let pages = limit.div_ceil(SLOTS).div_ceil(PIECES);
        Ok(Self {
            pages: KVVec::with_capacity(pages, GFP_KERNEL | __GFP_NOWARN)?,
            pieces: 0,
            owners: Grown::new(),
            free_owner: NONE,
            free: NONE,
            used: 0,
            limit,
            secret: secret | 1,
            sequence: 0,
        })
    }

    /// Allocates for [`Self::grow`] what is wanted. Nothing of it is larger than a page.
    pub(crate) fn new_chunk(wanted: &Wanted, flags: Flags) -> Result<Chunk<T, C>> {
        let piece = if wanted.piece {
            let slots = pin_init::init_array_from_fn(|_| PendingSlot::free());
            let heads = pin_init::init_array_from_fn(|_| NONE);
            Some(Piece {
                slots: KBox::init(slots, flags)?,
                heads: KBox::init(heads, flags)?,
                owners: None,
                free: ALL_FREE,
                next: NONE,
            })
        } else {
            None
        };
        let owners = if wanted.owners {
            let links = pin_init::init_array_from_fn(|_| OwnerLink::nobody());
            Some(KBox::init(links, flags)?)
        } else {
            None
        };
        Ok(Chunk {
            piece,
            page: if wanted.page {
                KVec::with_capacity(PIECES, flags)?
            } else {
                KVec::new()
            },
            owners,
        })
    }

    /// Returns the number of the next submission.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns whether [`Self::grow`] needs a page.
    fn needs_page(&self) -> bool {
        self.pieces.is_multiple_of(PIECES)
    }

    /// Returns whether the first free slot has no place for an endpoint.
    fn lacks_owners(&self) -> bool {
        self.piece(self.free as usize)
            .is_some_and(|piece| piece.owners.is_none())
    }

    /// Returns what is needed to insert something of an endpoint.
    pub(crate) fn wanted(&self, owner: PendingOwner) -> Wanted {
        let piece = self.free == NONE;
        Wanted {
            page: piece && self.needs_page(),
            piece,
            owners: owner != PendingOwner::NOBODY && (piece || self.lacks_owners()),
        }
    }

    /// Returns the number of slots.
    fn capacity(&self) -> usize {
        self.pieces * SLOTS
    }

    /// Takes the memory of all slots, for their owner to free where that may sleep; without slots
    /// nothing can be pending any more. `None` while one is in use.
    pub(crate) fn take_memory(&mut self) -> Option<Pages<T, C>> {
        if self.used != 0 {
            return None;
        }
        self.free = NONE;
        self.pieces = 0;
        self.limit = 0;
        Some(Pages(core::mem::replace(&mut self.pages, KVVec::new())))
    }

    /// Takes the memory of the numbers of endpoints, of which there are none any more.
    pub(crate) fn take_owners(&mut self) -> Grown<u32> {
        self.free_owner = NONE;
        core::mem::replace(&mut self.owners, Grown::new())
    }

    /// Returns a piece.
    fn piece(&self, number: usize) -> Option<&Piece<T, C>> {
        self.pages.get(number / PIECES)?.get(number % PIECES)
    }

    /// Returns a piece.
    fn piece_mut(&mut self, number: usize) -> Option<&mut Piece<T, C>> {
        self.pages
            .get_mut(number / PIECES)?
            .get_mut(number % PIECES)
    }

    /// Returns a slot.
    fn slot(&self, number: u32) -> Option<&PendingSlot<T, C>> {
        let number = number as usize;
        self.piece(number / NUMBERS)?.slots.get(number % NUMBERS)
    }

    /// Returns a slot.
    fn slot_mut(&mut self, number: u32) -> Option<&mut PendingSlot<T, C>> {
        let number = number as usize;
        self.piece_mut(number / NUMBERS)?
            .slots
            .get_mut(number % NUMBERS)
    }

    /// Returns the endpoint of a slot.
    fn owner_link(&self, number: u32) -> Option<&OwnerLink> {
        let number = number as usize;
        let owners = self.piece(number / NUMBERS)?.owners.as_ref()?;
        owners.get(number % NUMBERS)
    }

    /// Returns the endpoint of a slot.
    fn owner_link_mut(&mut self, number: u32) -> Option<&mut OwnerLink> {
        let number = number as usize;
        let owners = self.piece_mut(number / NUMBERS)?.owners.as_mut()?;
        owners.get_mut(number % NUMBERS)
    }

    /// Returns what a slot is found by.
    fn name_of(&self, number: u32, slot: &PendingSlot<T, C>) -> PendingName {
        PendingName {
            id: slot.id,
            owner: match slot.kind {
                PendingKind::Triggered => self
                    .owner_link(number)
                    .map_or(PendingOwner::NOBODY, |link| link.owner),
                PendingKind::Deferred => PendingOwner::NOBODY,
            },
            kind: slot.kind,
        }
    }

    /// Returns the next one that is due, and the mark of one that is due.
    pub(super) fn due_mut(&mut self, number: u32) -> Option<(&mut u32, &mut u8)> {
        let slot = self.slot_mut(number)?;
        Some((&mut slot.next_due, &mut slot.mark))
    }

    /// Returns where something due stood, and its mark.
    pub(super) fn due(&self, number: u32) -> Option<(Key, u8)> {
        let slot = self.slot(number)?;
        Some((slot.key, slot.mark))
    }

    /// Has a slot come into the caches.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        if let Some(slot) = self.slot(number) {
            hint::black_box((slot.id, slot.mark));
        }
    }

    /// Returns an operation.
    pub(super) fn value(&self, number: u32) -> Option<&T> {
        self.slot(number)?.value.as_ref()
    }

    /// Returns the first slot of a bucket.
    fn head(&self, bucket: u32) -> u32 {
        let bucket = bucket as usize;
        self.piece(bucket / HEADS)
            .and_then(|piece| piece.heads.get(bucket % HEADS))
            .map_or(NONE, |head| *head)
    }

    /// Returns where the first slot of a bucket stands.
    #[inline]
    fn head_mut(&mut self, bucket: u32) -> Option<&mut u32> {
        let bucket = bucket as usize;
        self.piece_mut(bucket / HEADS)?
            .heads
            .get_mut(bucket % HEADS)
    }

    /// Sets the first slot of a bucket.
    fn set_head(&mut self, bucket: u32, number: u32) {
        if let Some(head) = self.head_mut(bucket) {
            *head = number;
        }
    }

    /// Returns the bucket of a name.
    fn bucket_of(&self, name: PendingName) -> u32 {
        self.bucket(name, (self.pieces * HEADS).max(1))
    }

    /// Returns a number of a name, the low bits of which say in which bucket it is.
    fn hash(&self, name: PendingName) -> u64 {
        // Ids that are close to each other, as are pointers into an array, are in buckets that are
        // close to each other and come one after the other through the caches; but where those
        // begin is a secret, and different for each endpoint. Not many can be meant for one bucket:
        // there are 2^16 ids in a range, and each is in another one of so many buckets. What ids
        // point to is hardly ever smaller than a cache line.
        let id = name.id as u64;
        let range = (id >> 16) ^ u64::from(name.owner.0.wrapping_add(1)).rotate_right(24);
        // Twice, so that all of it has a part in the low bits.
        let base = range.wrapping_mul(self.secret);
        let base = (base ^ (base >> 32)).wrapping_mul(self.secret) >> 32;
        base.wrapping_add((id >> 6) & 0x3ff)
            .wrapping_add((id & 0x3f) << 10)
    }

    /// Returns the bucket of a name, were there that many buckets.
    fn bucket(&self, name: PendingName, buckets: usize) -> u32 {
        let hash = self.hash(name);
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

    /// Adds what was wanted, unless there is no need any more, as another thread may have been faster, or
    /// there are as many slots as there may be.
    ///
    /// Returns what is left over, to be freed outside of locks.
    pub(crate) fn grow(&mut self, mut chunk: Chunk<T, C>) -> Option<Chunk<T, C>> {
        if self.free != NONE || self.capacity() >= self.limit {
            let place = self.piece_mut(self.free as usize);
            if let Some(Piece {
                owners: place @ None,
                ..
            }) = place
            {
                core::mem::swap(place, &mut chunk.owners);
            }
            return Some(chunk);
        }
        if self.needs_page() && self.pages.len() * PIECES == self.pieces {
            if chunk.page.capacity() < PIECES {
                return Some(chunk);
            }
            let page = core::mem::take(&mut chunk.page);
            // There is room: see `new`.
            if let Err(error) = self.pages.push_within_capacity(page) {
                drop(error);
                return Some(chunk);
            }
        }
        let Some(mut piece) = chunk.piece.take() else {
            return Some(chunk);
        };
        piece.owners = chunk.owners.take();
        let Some(page) = self.pages.last_mut() else {
            return Some(chunk);
        };
        if let Err(error) = page.push_within_capacity(piece) {
            // INVARIANT: Not reached, as a page that is full is followed by another.
            drop(error);
            return Some(chunk);
        }
        let piece = self.pieces;
        self.free = piece as u32;
        self.pieces += 1;
        self.split_buckets(piece);
        Some(chunk)
    }

    /// Moves into the buckets of a piece, the last one, what belongs there.
    fn split_buckets(&mut self, piece: usize) {
        // The first one has nothing to take from. Of any other each bucket takes from the one whose number lacks the
        // highest bit, and so all of them from those of one piece.
        let Some(mask) = ((piece + 1).next_power_of_two() >> 1).checked_sub(1) else {
            return;
        };
        let from = (piece & mask) * HEADS;
        for bucket in 0..HEADS {
            let from = (from + bucket) as u32;
            if self.head(from) != NONE {
                self.split_bucket(from, (piece * HEADS + bucket) as u32);
            }
        }
    }

    /// Moves from a bucket into a new one what belongs there. One bit is set in the number of that alone.
    fn split_bucket(&mut self, from: u32, bucket: u32) {
        let bit = u64::from(bucket ^ from);
        let mut before = NONE;
        let mut next = self.head(from);
        while let Some(slot) = self.slot(next) {
            let (number, name) = (next, self.name_of(next, slot));
            next = slot.next;
            if self.hash(name) & bit != 0 {
                self.set_next(from, before, next);
                let head = self.head(bucket);
                if let Some(slot) = self.slot_mut(number) {
                    slot.next = head;
                }
                self.set_head(bucket, number);
            } else {
                before = number;
            }
        }
    }

    /// Lets a leader of a bucket be followed by another one, or, without one, the bucket begin with it.
    fn set_next(&mut self, bucket: u32, before: u32, next: u32) {
        if before == NONE {
            self.set_head(bucket, next);
        } else if let Some(slot) = self.slot_mut(before) {
            slot.next = next;
        }
    }

    /// Returns the first leader in a bucket of which something is true, if there is one, and the one
    /// before it.
    #[inline]
    fn find_leader(
        &self,
        bucket: u32,
        is_it: impl Fn(u32, &PendingSlot<T, C>) -> bool,
    ) -> (u32, u32) {
        let mut before = NONE;
        let mut number = self.head(bucket);
        while let Some(slot) = self.slot(number) {
            if is_it(number, slot) {
                break;
            }
            before = number;
            number = slot.next;
        }
        (before, number)
    }

    /// Returns the leader of a name, if there is one, and the one before it.
    fn leader(&self, bucket: u32, name: PendingName) -> (u32, u32) {
        self.find_leader(bucket, |number, slot| {
            slot.id == name.id && self.name_of(number, slot) == name
        })
    }

    /// Lets a slot be found, before those of the same name.
    fn list(&mut self, number: u32, name: PendingName) {
        let bucket = self.bucket_of(name);
        let (before, leader) = self.leader(bucket, name);
        let next = if leader == NONE {
            let head = self.head_mut(bucket);
            head.map_or(NONE, |head| core::mem::replace(head, number))
        } else {
            self.set_next(bucket, before, number);
            self.slot_mut(leader).map_or(NONE, |slot| {
                slot.listing = Listing::Follower;
                let first = core::mem::replace(&mut slot.near, number);
                core::mem::replace(&mut slot.next, first)
            })
        };
        if let Some(slot) = self.slot_mut(number) {
            slot.listing = Listing::Leader;
            slot.near = leader;
            slot.next = next;
        }
    }

    /// Lets a slot not be found any more.
    fn unlist(&mut self, number: u32) {
        if let Some(slot) = self.slot_mut(number) {
            let listed = slot.take_listed();
            self.close_gap(number, listed);
        }
    }

    /// Joins what was before and after a slot that is not listed any more.
    fn close_gap(&mut self, number: u32, listed: Listed) {
        let Listed {
            listing,
            next,
            near,
        } = listed;
        match listing {
            Listing::Unlisted => {}
            Listing::Follower => {
                if let Some(newer) = self.slot_mut(near) {
                    if newer.listing == Listing::Leader {
                        newer.near = next;
                    } else {
                        newer.next = next;
                    }
                }
                if let Some(older) = self.slot_mut(next) {
                    older.near = near;
                }
            }
            Listing::Leader => {
                let Some(slot) = self.slot(number) else {
                    return;
                };
                let bucket = self.bucket_of(self.name_of(number, slot));
                // Most buckets have one.
                if near == NONE {
                    if let Some(head) = self.head_mut(bucket).filter(|head| **head == number) {
                        *head = next;
                        return;
                    }
                }
                let (before, _) = self.find_leader(bucket, |other, _| other == number);
                let mut leader = next;
                if let Some(older) = self.slot_mut(near) {
                    // The one that was submitted before it leads from now on.
                    older.listing = Listing::Leader;
                    older.near = core::mem::replace(&mut older.next, next);
                    leader = near;
                }
                self.set_next(bucket, before, leader);
            }
        }
    }

    /// Links a slot with the others of its endpoint.
    fn own(&mut self, number: u32, owner: PendingOwner) {
        let Some(head) = self.owners.get_mut(owner.0 as usize) else {
            return;
        };
        let next = core::mem::replace(head, number);
        if let Some(link) = self.owner_link_mut(number) {
            link.is_linked = true;
            link.prev = NONE;
            link.next = next;
        }
        self.set_owner_prev(next, number);
    }

    /// Sets what is before a slot among those of its endpoint, if there is one.
    fn set_owner_prev(&mut self, number: u32, prev: u32) {
        if let Some(link) = self.owner_link_mut(number) {
            link.prev = prev;
        }
    }

    /// Takes a slot out of those of its endpoint.
    fn disown(&mut self, number: u32) {
        let Some(link) = self.owner_link_mut(number) else {
            return;
        };
        let OwnerLink {
            owner, prev, next, ..
        } = *link;
        if !core::mem::replace(&mut link.is_linked, false) {
            return;
        }
        if let Some(link) = self.owner_link_mut(prev) {
            link.next = next;
        } else if let Some(head) = self.owners.get_mut(owner.0 as usize) {
            *head = next;
        }
        self.set_owner_prev(next, prev);
    }

    /// Returns the number of numbers for endpoints, if a new one needs memory.
    pub(crate) fn owners_wanted(&self) -> Option<usize> {
        (self.free_owner == NONE && self.owners.is_full()).then(|| self.owners.len())
    }

    /// Adds memory for the numbers of endpoints.
    pub(crate) fn grow_owners(&mut self, more: KVVec<u32>) -> KVVec<u32> {
        self.owners.grow(more)
    }

    /// Gives an endpoint a number; `None` if there is no memory for it.
    pub(crate) fn add_owner(&mut self) -> Option<PendingOwner> {
        let number = self.free_owner;
        if let Some(place) = self.owners.get_mut(number as usize) {
            self.free_owner = core::mem::replace(place, NONE);
            return Some(PendingOwner(number));
        }
        let number = u32::try_from(self.owners.len()).ok()?;
        self.owners.push_within_capacity(NONE).ok()?;
        Some(PendingOwner(number))
    }

    /// Takes a number back from an endpoint of which there is nothing in the table.
    pub(crate) fn remove_owner(&mut self, owner: PendingOwner) {
        let free = self.free_owner;
        if let Some(place) = self.owners.get_mut(owner.0 as usize) {
            *place = free;
            self.free_owner = owner.0;
        }
    }

    /// Takes something out of what belongs to an endpoint, so that it is not returned again.
    pub(crate) fn take_owned(&mut self, owner: PendingOwner) -> Option<FoundWork<C>> {
        let number = *self.owners.get_mut(owner.0 as usize)?;
        let found = self.found(number);
        self.disown(number);
        found
    }

    /// Notes something that is about to be pending, and takes it from `value`.
    ///
    /// Returns its slot and where it is to stand; `None` if there is no memory for it, which
    /// [`Self::wanted`] helps against; `ENOSPC` if there are too many (R-DWQ-24).
    pub(crate) fn insert(
        &mut self,
        entered: &Entered<'_, C>,
        value: &mut Option<T>,
    ) -> Result<Option<(u32, Key)>> {
        if self.used >= self.limit {
            return Err(ENOSPC);
        }
        let key = Key {
            threshold: entered.threshold,
            sequence: self.sequence,
        };
        let is_owned = entered.owner != PendingOwner::NOBODY;
        let free = self.free as usize;
        let Some(piece) = self.piece_mut(free) else {
            return Ok(None);
        };
        // The first one, so that slots which are used one after the other are next to each other.
        let place = piece.free.trailing_zeros() as usize;
        let Some(slot) = piece.slots.get_mut(place) else {
            return Ok(None);
        };
        if let Some(links) = &mut piece.owners {
            if let Some(link) = links.get_mut(place) {
                link.owner = entered.owner;
            }
        } else if is_owned {
            return Ok(None);
        }
        let number = (free * NUMBERS + place) as u32;
        piece.free &= piece.free.wrapping_sub(1);
        let next = (piece.free == 0).then_some(piece.next);
        slot.id = entered.id;
        slot.counter = Some(entered.counter.clone());
        // There is nothing in a free one, so that nothing is dropped.
        core::mem::swap(&mut slot.value, value);
        slot.key = key;
        slot.kind = entered.kind;
        slot.cancelled = false;
        if let Some(next) = next {
            self.free = next;
        }
        self.used = self.used.wrapping_add(1);
        self.sequence = self.sequence.wrapping_add(1);
        self.list(number, entered.name());
        if is_owned {
            self.own(number, entered.owner);
        }
        Ok(Some((number, key)))
    }

    /// Frees a slot.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Removed<T, C>> {
        self.remove_if(number, |_, _| true)
    }

    /// Frees a slot, if its operation is `allowed`, which is told its mark, too.
    #[inline]
    pub(super) fn remove_if(
        &mut self,
        number: u32,
        allowed: impl FnOnce(u8, &T) -> bool,
    ) -> Option<Removed<T, C>> {
        let free = self.free;
        let piece = self.piece_mut(number as usize / NUMBERS)?;
        let slot = piece.slots.get_mut(number as usize % NUMBERS)?;
        if !allowed(slot.mark, slot.value.as_ref()?) {
            return None;
        }
        let value = slot.value.take()?;
        let counter = slot.counter.take()?;
        let key = slot.key;
        let cancelled = slot.cancelled;
        let listed = slot.take_listed();
        let has_owners = piece.owners.is_some();
        let was_full = piece.free == 0;
        if was_full {
            piece.next = free;
        }
        piece.free |= 1 << (number as usize % NUMBERS);
        if was_full {
            self.free = number / NUMBERS as u32;
        }
        self.used = self.used.wrapping_sub(1);
        let others = listed.has_others();
        self.close_gap(number, listed);
        if has_owners {
            self.disown(number);
        }
        Some(Removed {
            value,
            key,
            counter,
            cancelled,
            others,
        })
    }

    /// Tells about a slot, if it is in use.
    fn found(&self, number: u32) -> Option<FoundWork<C>> {
        let slot = self.slot(number)?;
        Some(FoundWork {
            counter: slot.counter.clone()?,
            key: slot.key,
            kind: slot.kind,
            slot: number,
        })
    }

    /// Finds the last one of a name.
    pub(crate) fn find(&self, name: PendingName) -> Option<FoundWork<C>> {
        self.found(self.leader(self.bucket_of(name), name).1)
    }

    /// Returns whether what was found is still in its slot.
    fn is_there(&self, found: &FoundWork<C>) -> bool {
        self.slot(found.slot)
            .is_some_and(|slot| slot.counter.is_some() && slot.key == found.key)
    }

    /// Notes that something which was found has fired: it is not found again. Does nothing if it is
    /// not in the table any more.
    pub(crate) fn pass_over(&mut self, found: &FoundWork<C>) {
        if self.is_there(found) {
            self.unlist(found.slot);
        }
    }

    /// Notes that something which was found is cancelled: it is not found again, and the thread that takes it out,
    /// if it fires before another one has taken it from its counter, is told. Does nothing if it is not in the table
    /// any more.
    pub(crate) fn cancel(&mut self, found: &FoundWork<C>) {
        if !self.is_there(found) {
            return;
        }
        self.unlist(found.slot);
        if let Some(slot) = self.slot_mut(found.slot) {
            slot.cancelled = true;
        }
    }

    /// Looks for deferred work from a number on, as far as that is done with a lock held. Returns
    /// where to go on, `None` at the end, and what was found.
    pub(crate) fn next_deferred(&self, begin: usize) -> (Option<usize>, Option<FoundWork<C>>) {
        let mut piece = begin / NUMBERS;
        let mut first = begin % NUMBERS;
        for _ in 0..STEP {
            let Some(Piece { slots, free, .. }) = self.piece(piece) else {
                return (None, None);
            };
            let empty = *free == ALL_FREE;
            if !empty {
                let mut rest = slots.iter().skip(first);
                let is_deferred = |slot: &PendingSlot<T, C>| {
                    slot.counter.is_some() && slot.kind == PendingKind::Deferred
                };
                if let Some(at) = rest.position(is_deferred) {
                    let number = piece * NUMBERS + first + at;
                    return (Some(number + 1), self.found(number as u32));
                }
            }
            piece += 1;
            first = 0;
            if !empty {
                break;
            }
        }
        (Some(piece * NUMBERS), None)
    }
}

#[kunit_tests(kfi_soft_pending_table)]
mod tests {
    use super::*;

    type Table = PendingTable<u64, u32>;

    /// The name of deferred work.
    fn name(id: usize) -> PendingName {
        PendingName {
            id,
            owner: PendingOwner::NOBODY,
            kind: PendingKind::Deferred,
        }
    }

    /// Inserts, growing when there is no room.
    fn insert_for(
        table: &mut Table,
        id: usize,
        counter: u32,
        owner: PendingOwner,
        kind: PendingKind,
    ) -> Result<(u32, Key)> {
        let entered = Entered {
            id,
            owner,
            kind,
            counter: &counter,
            threshold: 7,
        };
        let mut value = Some(u64::from(counter) + 1);
        loop {
            if let Some(inserted) = table.insert(&entered, &mut value)? {
                assert!(value.is_none());
                return Ok(inserted);
            }
            let chunk = Table::new_chunk(&table.wanted(owner), GFP_KERNEL)?;
            drop(table.grow(chunk));
        }
    }

    /// Inserts deferred work that has no endpoint.
    fn insert(table: &mut Table, id: usize, counter: u32) -> Result<(u32, Key)> {
        insert_for(
            table,
            id,
            counter,
            PendingOwner::NOBODY,
            PendingKind::Deferred,
        )
    }

    /// Gives an endpoint a number.
    fn add_owner(table: &mut Table) -> Result<PendingOwner> {
        if let Some(len) = table.owners_wanted() {
            drop(table.grow_owners(Grown::allocate(len)?));
        }
        table.add_owner().ok_or(ENOMEM)
    }

    #[test]
    fn found_after_growing() -> Result {
        let mut table = Table::new(3000, 0x9e37_79b9_7f4a_7c15)?;
        let mut slots = KVec::new();
        for i in 0..3000 {
            slots.push(insert(&mut table, i * 64, i as u32)?, GFP_KERNEL)?;
        }
        assert!(insert(&mut table, 1, 1).is_err_and(|error| error == ENOSPC));
        for i in 0..3000 {
            let found = table.find(name(i * 64)).ok_or(ENOENT)?;
            assert_eq!(found.counter, i as u32);
            assert_eq!(found.key.sequence, i as u64);
        }
        assert!(table.find(name(1)).is_none());
        // Every other one leaves.
        for (slot, _) in slots.iter().step_by(2) {
            assert!(table.remove(*slot).is_some());
            assert!(table.remove(*slot).is_none());
        }
        assert_eq!(table.used, 1500);
        for i in 0..3000 {
            assert_eq!(table.find(name(i * 64)).is_some(), i % 2 == 1);
        }
        // The slots are used again.
        for i in 0..1500 {
            insert(&mut table, i, 0)?;
        }
        assert!(insert(&mut table, 1, 1).is_err());
        Ok(())
    }

    /// Threads that find no slot at the same time add one piece, not one each.
    #[test]
    fn grows_by_what_is_wanted() -> Result {
        let mut table = Table::new(3000, 1)?;
        for piece in 1..4 {
            for i in 0..SLOTS {
                insert(&mut table, piece * SLOTS + i, 0)?;
            }
            assert_eq!(table.capacity(), piece * SLOTS);
            let chunks = [
                Table::new_chunk(&table.wanted(PendingOwner::NOBODY), GFP_KERNEL)?,
                Table::new_chunk(&table.wanted(PendingOwner::NOBODY), GFP_KERNEL)?,
            ];
            for chunk in chunks {
                drop(table.grow(chunk));
            }
            assert_eq!(table.capacity(), (piece + 1) * SLOTS);
        }
        Ok(())
    }

    /// A thread that has come with a piece, for a page that others have filled meanwhile, has to come again.
    #[test]
    fn piece_without_a_page() -> Result {
        let mut table = Table::new(3 * PIECES * SLOTS, 1)?;
        for i in 0..(PIECES - 1) * SLOTS {
            insert(&mut table, i, 0)?;
        }
        let late = Table::new_chunk(&table.wanted(PendingOwner::NOBODY), GFP_KERNEL)?;
        for i in 0..SLOTS {
            insert(&mut table, i, 0)?;
        }
        assert_eq!(table.capacity(), PIECES * SLOTS);
        drop(table.grow(late));
        assert_eq!(table.capacity(), PIECES * SLOTS);
        for i in 0..PIECES * SLOTS {
            insert(&mut table, i, 0)?;
        }
        assert_eq!(table.pages.len(), 2);
        Ok(())
    }

    #[test]
    fn pages_follow_each_other() -> Result {
        let limit = 2 * PIECES * SLOTS + 5;
        let mut table = Table::new(limit, 3)?;
        for i in 0..limit {
            insert(&mut table, i * 48, i as u32)?;
        }
        assert!(insert(&mut table, 1, 1).is_err());
        for i in (0..limit).step_by(97) {
            let found = table.find(name(i * 48)).ok_or(ENOENT)?;
            assert_eq!(found.counter, i as u32);
        }
        assert_eq!(table.pages.len(), 3);
        Ok(())
    }

    #[test]
    fn memory_leaves_when_nothing_is_in_use() -> Result {
        let mut table = Table::new(1000, 1)?;
        let (first, _) = insert(&mut table, 1, 1)?;
        let (second, _) = insert(&mut table, 2, 2)?;
        assert!(table.remove(first).is_some());
        assert!(table.take_memory().is_none());
        assert!(table.find(name(2)).is_some());
        assert!(table.remove(second).is_some());
        assert!(table.take_memory().is_some());
        assert_eq!(table.capacity(), 0);
        assert!(insert(&mut table, 1, 1).is_err_and(|error| error == ENOSPC));
        Ok(())
    }

    #[test]
    fn the_same_name_is_found_backwards() -> Result {
        let mut table = Table::new(1000, 12345)?;
        let mut slots = KVec::new();
        // Others between them, so that buckets are split.
        for i in 0..500 {
            slots.push(insert(&mut table, 4096, i)?.0, GFP_KERNEL)?;
            insert(&mut table, i as usize, 0)?;
        }
        // Some leave from between.
        for slot in slots.iter().skip(1).step_by(3) {
            assert!(table.remove(*slot).is_some());
        }
        for i in (0..500).rev().filter(|i| i % 3 != 1) {
            let found = table.find(name(4096)).ok_or(ENOENT)?;
            assert_eq!(found.counter, i);
            // In one way or the other.
            match i % 3 {
                0 => assert!(table.remove(found.slot).is_some()),
                _ => table.pass_over(&found),
            }
        }
        assert!(table.find(name(4096)).is_none());
        for i in 0..500 {
            assert!(table.find(name(i)).is_some());
        }
        // An operation that was passed over still has its slot.
        for slot in slots.iter().skip(2).step_by(3) {
            assert!(table
                .remove(*slot)
                .is_some_and(|removed| !removed.cancelled));
        }
        assert_eq!(table.used, 500);
        Ok(())
    }

    #[test]
    fn others_of_a_name_are_told() -> Result {
        let mut table = Table::new(1000, 4711)?;
        let mut slots = KVec::new();
        for counter in 0..4 {
            slots.push(insert(&mut table, 4096, counter)?.0, GFP_KERNEL)?;
            insert(&mut table, 64 * counter as usize, 0)?;
        }
        // One in the middle, the first one, the last one, and that which is left.
        for (at, others) in [(1, true), (0, true), (3, true), (2, false)] {
            let removed = table.remove(*slots.get(at).ok_or(ENOENT)?).ok_or(ENOENT)?;
            assert_eq!(removed.others, others);
            assert_eq!(table.find(name(4096)).is_some(), others);
        }
        Ok(())
    }

    #[test]
    fn cancelled_once() -> Result {
        let mut table = Table::new(1000, 99)?;
        let owner = add_owner(&mut table)?;
        let (slot, _) = insert_for(&mut table, 5, 1, owner, PendingKind::Triggered)?;
        // It is found by its endpoint only.
        assert!(table.find(name(5)).is_none());
        let of_owner = PendingName {
            id: 5,
            owner,
            kind: PendingKind::Triggered,
        };
        let found = table.find(of_owner).ok_or(ENOENT)?;
        table.cancel(&found);
        // No other thread finds it.
        assert!(table.find(of_owner).is_none());
        table.cancel(&found);
        assert!(table.remove(slot).is_some_and(|removed| removed.cancelled));
        table.cancel(&found);
        // The slot now belongs to another operation.
        let (again, _) = insert(&mut table, 6, 1)?;
        assert_eq!(again, slot);
        table.cancel(&found);
        assert!(table.remove(slot).is_some_and(|removed| !removed.cancelled));
        Ok(())
    }

    #[test]
    fn all_of_an_id_says_where_it_is() -> Result {
        const BUCKETS: usize = 2048;
        for secret in [
            0x9e37_79b9_7f4a_7c15,
            0x1234_5678_9abc_def1,
            0xfedc_ba98_7654_3211,
        ] {
            let table = Table::new(1000, secret)?;
            let mut counts = KVec::with_capacity(BUCKETS, GFP_KERNEL)?;
            for _ in 0..BUCKETS {
                counts.push(0_usize, GFP_KERNEL)?;
            }
            // Some that are close to each other, in ranges that differ in their highest bits only.
            for id in (0..32_usize).flat_map(|i| (0..28).map(move |j| (i << 59) | (2 * j))) {
                if let Some(count) = counts.get_mut(table.bucket(name(id), BUCKETS) as usize) {
                    *count += 1;
                }
            }
            assert_eq!(counts.iter().sum::<usize>(), 32 * 28);
            assert!(counts.iter().all(|count| *count <= 4 * 28));
        }
        Ok(())
    }

    #[test]
    fn endpoints_have_their_own() -> Result {
        let mut table = Table::new(1000, 7)?;
        let mut owners = KVec::new();
        for _ in 0..100 {
            owners.push(add_owner(&mut table)?, GFP_KERNEL)?;
        }
        let mut slots = KVec::new();
        for round in 0..3u32 {
            for (i, owner) in owners.iter().enumerate() {
                let kind = if round == 1 {
                    PendingKind::Deferred
                } else {
                    PendingKind::Triggered
                };
                let counter = i as u32 * 10 + round;
                slots.push(
                    insert_for(&mut table, 77, counter, *owner, kind)?.0,
                    GFP_KERNEL,
                )?;
            }
            insert(&mut table, 77, 5)?;
        }
        for (i, owner) in owners.iter().enumerate() {
            // The middle one of some leaves.
            if i % 2 == 0 {
                let slot = *slots.get(100 + i).ok_or(ENOENT)?;
                assert!(table.remove(slot).is_some());
            }
            let found = table.find(PendingName {
                id: 77,
                owner: *owner,
                kind: PendingKind::Triggered,
            });
            assert!(found.is_some_and(|found| found.counter == i as u32 * 10 + 2));
            let mut seen = 0;
            while let Some(found) = table.take_owned(*owner) {
                assert_eq!(found.counter / 10, i as u32);
                assert!(table.remove(found.slot).is_some());
                seen += 1;
            }
            assert_eq!(seen, if i % 2 == 0 { 2 } else { 3 });
            table.remove_owner(*owner);
        }
        assert_eq!(table.used, 3);
        // Numbers are used again.
        for _ in 0..100 {
            assert!(table.owners_wanted().is_none());
            assert!(table.add_owner().is_some_and(|owner| owner.0 < 100));
        }
        let mut deferred = 0;
        let mut at = Some(0);
        while let Some(begin) = at {
            let found;
            (at, found) = table.next_deferred(begin);
            deferred += usize::from(found.is_some());
        }
        assert_eq!(deferred, 3);
        Ok(())
    }
}
