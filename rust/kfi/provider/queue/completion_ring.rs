// SPDX-License-Identifier: GPL-2.0

//! A ring of completions from which readers take without a lock.
//!
//! Completions and errors are added by one party at a time, which has the [`Producer`], and become
//! visible when that publishes them. Whoever has the [`Taker`] takes completions out, in order: a reader
//! copies the first one, and it has it if it can move the head behind it. If it cannot, another reader has it,
//! and the copy, which may be of anything, is thrown away. Errors are for the one that has the producer.
//!
//! The producer fills a slot when it has seen the head behind it, so that a reader that got what was in there
//! before has copied it (`qemu-test/litmus/KFI-ring-slot.litmus`); and a reader that finds a slot before
//! the end finds it filled (`qemu-test/litmus/KFI-ring-entry.litmus`).

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use crate::kfi::provider::Completion;

/// Words of a completion.
const WORDS: usize = size_of::<Completion>() / size_of::<u64>();

/// Slots whose memory is in one piece, a page: it is freed in any context.
const PIECE: usize = 64;

/// A slot, of the size of a cache line.
#[repr(align(64))]
struct Slot {
    words: UnsafeCell<[MaybeUninit<u64>; WORDS]>,
    /// It is an error; what only errors have lies elsewhere.
    failed: Atomic<bool>,
}

// SAFETY: The words are copied in and out as such, and what was copied out is used only by the one that the
// head says it belongs to; a completion may be sent.
unsafe impl Sync for Slot {}

impl Slot {
    /// There is nothing in it.
    fn new() -> Self {
        const {
            assert!(size_of::<Completion>() == WORDS * size_of::<u64>());
            assert!(align_of::<Completion>() <= align_of::<u64>());
            assert!(size_of::<Self>() == 64);
        }
        Self {
            words: UnsafeCell::new([MaybeUninit::uninit(); WORDS]),
            failed: Atomic::new(false),
        }
    }

    /// Returns a copy of what is in it, which is not valid if another thread fills it meanwhile.
    #[inline]
    fn copy(&self) -> MaybeUninit<Completion> {
        let words: *const MaybeUninit<u64> = self.words.get().cast();
        let mut copy = MaybeUninit::<Completion>::uninit();
        let place: *mut MaybeUninit<u64> = copy.as_mut_ptr().cast();
        for at in 0..WORDS {
            // SAFETY: Both have so many words. Those of the slot may change meanwhile, and are accessed with
            // volatile reads and writes of words alone, which are no data races for the kernel.
            unsafe { place.add(at).write(words.add(at).read_volatile()) };
        }
        copy
    }

    /// Fills it.
    #[inline]
    fn fill(&self, completion: Completion, failed: bool) {
        let words: *mut MaybeUninit<u64> = self.words.get().cast();
        let completion = MaybeUninit::new(completion);
        let from: *const MaybeUninit<u64> = completion.as_ptr().cast();
        for at in 0..WORDS {
            // SAFETY: As in `copy`.
            unsafe { words.add(at).write_volatile(from.add(at).read()) };
        }
        // Relaxed: published with the words.
        self.failed.store(failed, ordering::Relaxed);
    }
}

/// The ring.
///
/// # Invariants
///
/// Entries have numbers, which wrap. That of `head` is the first one, `end` is behind the last one that
/// was published, and not behind the producer's `tail`. Slots of numbers from `head` on and before `tail` are
/// filled.
struct Shared {
    /// As many slots as a power of two.
    pieces: KVec<KVec<Slot>>,
    mask: usize,
    head: Atomic<usize>,
    end: Atomic<usize>,
}

impl Shared {
    /// Returns the slot of an entry.
    #[inline]
    fn slot(&self, number: usize) -> Option<&Slot> {
        let at = number & self.mask;
        self.pieces.get(at / PIECE)?.get(at % PIECE)
    }

    /// Returns the first number, and whether there is an entry with it.
    #[inline]
    fn first(&self) -> (usize, bool) {
        // Relaxed: an older end than that to which this belongs is no end behind it. Whoever has to know of an
        // entry sees the end behind it.
        let head = self.head.load(ordering::Relaxed);
        // Acquire: the entry was filled before.
        let end = self.end.load(ordering::Acquire);
        (head, end.wrapping_sub(head).cast_signed() > 0)
    }

    /// Returns how many entries there are, with those that others take meanwhile. As of [`Self::first`], an
    /// older end is none behind the head.
    #[inline]
    fn len(&self) -> usize {
        // Acquire: the end is not older than this head, and so not taken for one far behind it.
        let head = self.head.load(ordering::Acquire);
        // Acquire: as in `first`.
        let end = self.end.load(ordering::Acquire);
        usize::try_from(end.wrapping_sub(head).cast_signed()).unwrap_or(0)
    }

    /// Moves the head behind the entry with a number; `false` if that is not the first one any more.
    #[inline]
    fn pass(&self, number: usize) -> bool {
        // Full: what was copied comes before the slot is filled again, and what the reader does later after it
        // has taken the entry.
        self.head
            .cmpxchg(number, number.wrapping_add(1), ordering::Full)
            .is_ok()
    }

    /// Takes the first entry out, unless it is an error and no `errors` are wanted.
    #[inline]
    fn take(&self, errors: bool) -> Option<(Completion, bool)> {
        loop {
            let (head, is_there) = self.first();
            if !is_there {
                return None;
            }
            let slot = self.slot(head)?;
            let completion = slot.copy();
            // Relaxed: as the words.
            let failed = slot.failed.load(ordering::Relaxed);
            if failed && !errors {
                return None;
            }
            if self.pass(head) {
                // SAFETY: The head was at this entry until now: its slot was filled before it was published, by
                // the type invariants, and cannot have been filled again; and no other reader takes it.
                return Some((unsafe { completion.assume_init() }, failed));
            }
        }
    }
}

/// Takes completions out of a ring, from any context.
#[derive(Clone)]
pub struct Taker(Arc<Shared>);

impl Taker {
    /// Takes the first entry out, if it is a completion.
    #[inline]
    pub fn take(&self) -> Option<Completion> {
        self.0.take(false).map(|(completion, _)| completion)
    }

    /// Returns whether there is an entry.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.0.first().1
    }

    /// Returns how many entries there are; some may be taken meanwhile.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Adds to a ring.
///
/// # Invariants
///
/// There is one for each ring, `tail` is behind the last entry that was added, and the head is at `passed`,
/// or behind it.
pub struct Producer {
    ring: Arc<Shared>,
    capacity: usize,
    tail: usize,
    passed: usize,
}

impl Producer {
    /// A ring for `capacity` entries, at least one.
    pub fn new(capacity: usize) -> Result<Self> {
        let capacity = capacity.max(1);
        let count = capacity.checked_next_power_of_two().ok_or(ENOMEM)?;
        let mut pieces = KVec::with_capacity(count.div_ceil(PIECE), GFP_KERNEL)?;
        let mut left = count;
        while left != 0 {
            let len = left.min(PIECE);
            let mut piece = KVec::with_capacity(len, GFP_KERNEL)?;
            for _ in 0..len {
                piece.push(Slot::new(), GFP_KERNEL)?;
            }
            pieces.push(piece, GFP_KERNEL)?;
            left = left.wrapping_sub(len);
        }
        // INVARIANT: No entries.
        let ring = Shared {
            pieces,
            mask: count.wrapping_sub(1),
            head: Atomic::new(0),
            end: Atomic::new(0),
        };
        // INVARIANT: As above, and it is the only one.
        Ok(Self {
            ring: Arc::new(ring, GFP_KERNEL)?,
            capacity,
            tail: 0,
            passed: 0,
        })
    }

    /// Returns what takes entries out.
    pub fn taker(&self) -> Taker {
        Taker(self.ring.clone())
    }

    /// Returns how many entries there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns whether there are no entries, published or not. Others may take some meanwhile.
    pub fn is_empty(&self) -> bool {
        self.head() == self.tail
    }

    /// Returns whether there is no room.
    #[inline]
    pub fn is_full(&mut self) -> bool {
        if self.tail.wrapping_sub(self.passed) < self.capacity {
            return false;
        }
        // INVARIANT: As it is now.
        // Acquire: the slots of entries that were taken may be filled.
        self.passed = self.ring.head.load(ordering::Acquire);
        self.tail.wrapping_sub(self.passed) >= self.capacity
    }

    /// Returns the number of the entry that is added next.
    pub fn tail(&self) -> usize {
        self.tail
    }

    /// Returns the number of the first entry.
    pub fn head(&self) -> usize {
        // Relaxed: others may take that meanwhile.
        self.ring.head.load(ordering::Relaxed)
    }

    /// Adds an entry, which is yet to be published; `false` if there is no room.
    #[inline]
    pub fn push(&mut self, completion: Completion, failed: bool) -> bool {
        if self.is_full() {
            return false;
        }
        let Some(slot) = self.ring.slot(self.tail) else {
            return false;
        };
        slot.fill(completion, failed);
        // INVARIANT: The slot is filled, and it was not one of an entry that is there, as there are at
        // least as many slots as entries that there is room for.
        self.tail = self.tail.wrapping_add(1);
        true
    }

    /// Shows readers all entries, or only those before one with a number.
    #[inline]
    pub fn publish(&mut self, before: Option<usize>) {
        // Never more than there are.
        let is_there = |number: &usize| self.tail.wrapping_sub(*number).cast_signed() > 0;
        let end = before.filter(is_there).unwrap_or(self.tail);
        // INVARIANT: As above.
        // Full: they are filled before, and it is looked after it who waits for them.
        // See `qemu-test/litmus/KFI-queue-front.litmus`, `qemu-test/litmus/KFI-queue-moves.litmus`, and
        // `qemu-test/litmus/KFI-queue-coming.litmus`.
        self.ring.end.xchg(end, ordering::Full);
    }

    /// Returns the first entry, if it was published and is an error: it stays then until [`Self::pop`].
    /// Returns also whether there is an entry at all, which may be gone by then if it is none.
    pub fn error(&self) -> (Option<&Completion>, bool) {
        let (head, is_there) = self.ring.first();
        let slot = is_there.then(|| self.ring.slot(head)).flatten();
        // Relaxed: written by whoever had the producer.
        let slot = slot.filter(|slot| slot.failed.load(ordering::Relaxed));
        let Some(slot) = slot else {
            return (None, is_there);
        };
        // The slot is filled by the type invariants, by nobody else while the producer is borrowed, and the head
        // is still there: errors are taken with `pop` only, which borrows the producer as well.
        let completion: *const Completion = slot.words.get().cast();
        // SAFETY: As above, and it is aligned, see `Slot::new`.
        (Some(unsafe { &*completion }), true)
    }

    /// Takes the first entry out that was published, and returns whether it is an error; not if these are not
    /// wanted.
    pub fn pop(&mut self, errors: bool) -> Option<(Completion, bool)> {
        self.ring.take(errors)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // INVARIANT: Nothing is there any more.
        // Relaxed: what was added is not looked at.
        let head = self.ring.head.load(ordering::Relaxed);
        self.ring.end.store(head, ordering::Relaxed);
    }
}
