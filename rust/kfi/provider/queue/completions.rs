// SPDX-License-Identifier: GPL-2.0

//! The entries of a completion queue: completions, and errors among them.
//!
//! There is a ring, and a backlog behind it: what comes when the ring is full lies in the memory of
//! the operation that it reports. All of the ring was reported before all of the backlog. Completions at
//! the front of the ring may be taken without the lock ([`Taker`]), so that they may go at any time.

use kernel::prelude::*;

use super::{
    completion_ring::{
        Producer,
        Taker, //
    },
    Entries,
    Front,
    Ring, //
};
use crate::kfi::{
    errno::{
        EAVAIL,
        EOVERRUN, //
    },
    linux::queue::{
        Entry,
        EntryQueue,
        Vacant, //
    },
    provider::{
        Completion,
        CompletionBuffer,
        CompletionError,
        ErrorBuffer,
        Failure, //
    }, //
};

/// The kind of the first entry.
pub enum First<'a> {
    /// Nothing.
    Nothing,
    /// A completion.
    Completion,
    /// An error: what it has of a completion, and beyond.
    Error(&'a Completion, &'a Failure),
    /// The place where entries were lost.
    Overrun,
}

/// An entry that was taken out.
pub enum Popped {
    /// An entry of the ring, where there is room for another one now.
    Slot(CompletionError),
    /// An entry of the backlog; its memory is freed when no lock is held.
    Own(Entry<CompletionError>),
    /// No entry.
    Nothing,
}

/// The entries of a completion queue, in order.
///
/// # Invariants
///
/// There are as many `failures` as entries of the ring that have failed, in the same order.
pub struct Completions {
    /// None has room for nothing.
    ring: Option<Producer>,
    failures: Ring<Failure>,
    backlog: EntryQueue<CompletionError>,
    /// The place where entries were lost: the number that an entry of the ring would have there, if all of
    /// the backlog had gone into the ring before it.
    overrun: Option<usize>,
}

impl Completions {
    /// Creates a queue with a ring for `capacity` entries, at least one.
    pub fn new(capacity: usize) -> Result<Self> {
        // INVARIANT: None of either.
        Ok(Self {
            ring: Some(Producer::new(capacity)?),
            failures: Ring::new(capacity)?,
            backlog: EntryQueue::new(),
            overrun: None,
        })
    }

    /// Returns how many entries the ring has room for.
    pub fn capacity(&self) -> usize {
        self.ring.as_ref().map_or(0, Producer::capacity)
    }

    /// Returns whether there is something behind the ring.
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Returns how many entries are behind the ring.
    pub fn backlog_len(&self) -> usize {
        self.backlog.len()
    }

    /// Shows the entries of the ring to those who take without the lock: all before the place where entries
    /// were lost.
    #[inline]
    fn publish(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.publish(self.overrun);
        }
    }

    /// Adds an entry to the ring; `false` if there is no room.
    #[inline]
    fn push_to_ring(&mut self, entry: CompletionError) -> bool {
        let CompletionError {
            completion,
            failure,
        } = entry;
        let failed = failure.err != 0;
        let Some(ring) = self.ring.as_mut() else {
            return false;
        };
        // As large as the other, and so not full if that is not.
        if failed && (ring.is_full() || self.failures.push(failure).is_err()) {
            return false;
        }
        // INVARIANT: The failure was added.
        let pushed = ring.push(completion, failed);
        self.publish();
        pushed
    }

    /// Adds an entry for which there is room in the ring; `false` if there is none.
    ///
    /// It comes last all the same: what is behind the ring moves up, one place.
    #[inline]
    pub fn push(&mut self, entry: CompletionError) -> bool {
        if self.backlog.is_empty() {
            return self.push_to_ring(entry);
        }
        self.push_behind(entry)
    }

    /// As [`Self::push`], if there is something behind the ring.
    fn push_behind(&mut self, entry: CompletionError) -> bool {
        let Some(first) = self.backlog.pop_front() else {
            return self.push_to_ring(entry);
        };
        let (first, vacant) = first.empty();
        self.backlog.push_back(vacant.fill(entry));
        self.push_to_ring(first)
    }

    /// Adds an entry in memory of its own.
    pub fn push_own(&mut self, entry: CompletionError, memory: Vacant) {
        self.backlog.push_back(memory.fill(entry));
    }

    /// Moves the first entry of the backlog into the ring, where there is room; returns its memory,
    /// which is freed when no lock is held.
    pub fn move_up(&mut self) -> Option<Vacant> {
        let (first, vacant) = self.backlog.pop_front()?.empty();
        self.push_to_ring(first);
        Some(vacant)
    }

    /// An entry is lost for lack of room.
    pub fn lose(&mut self) {
        // More that are lost before that was reported are reported at the same place.
        if let (Some(ring), None) = (&self.ring, self.overrun) {
            self.overrun = Some(ring.tail().wrapping_add(self.backlog.len()));
        }
    }

    /// Returns whether the place where entries were lost comes first.
    fn is_overrun(&self) -> bool {
        let head = self.ring.as_ref().map(Producer::head);
        self.overrun.is_some() && self.overrun == head
    }

    /// Returns what comes first. If that is a completion of the ring, it may be gone by then.
    pub fn first(&self) -> First<'_> {
        if self.is_overrun() {
            return First::Overrun;
        }
        match self.ring.as_ref().map_or((None, false), Producer::error) {
            (Some(completion), _) => match self.failures.first() {
                Some(failure) => First::Error(completion, failure),
                // There is one by the type invariants.
                None => First::Nothing,
            },
            (None, true) => First::Completion,
            // What is not published comes behind the place where entries were lost.
            (None, false) if self.is_overrun() => First::Overrun,
            (None, false) => match self.backlog.front() {
                Some(entry) if entry.failure.err != 0 => {
                    First::Error(&entry.completion, &entry.failure)
                }
                Some(_) => First::Completion,
                None => First::Nothing,
            },
        }
    }

    /// Returns whether what comes first is a completion for a reader who has room for it; else the
    /// read has ended, well if there was something before: with `EAGAIN` if there is nothing, `EAVAIL`
    /// if an error comes first, `EOVERRUN` where entries were lost, once for those that have room.
    pub fn is_for(&mut self, buffer: &CompletionBuffer<'_>) -> Result<bool> {
        let error: Error = match self.first() {
            First::Completion => return Ok(!buffer.is_full()),
            // Entries that were read before come first.
            _ if buffer.len() != 0 => return Ok(false),
            First::Nothing => EAGAIN,
            First::Error(..) => EAVAIL.into(),
            First::Overrun => {
                // Who has no room takes nothing out.
                if !buffer.is_full() {
                    self.pass_overrun();
                }
                EOVERRUN.into()
            }
        };
        Err(error)
    }

    /// It was told that entries were lost.
    fn pass_overrun(&mut self) {
        self.overrun = None;
        self.publish();
    }

    /// Returns whether what comes first is an error that a reader of these takes out; shows it to one
    /// who only looks. `EAGAIN` if it is none.
    pub fn is_error_for(&self, buffer: &mut ErrorBuffer<'_>) -> Result<bool> {
        let First::Error(completion, failure) = self.first() else {
            return Err(EAGAIN);
        };
        let looks = buffer.is_peek();
        if looks {
            buffer.show_parts(completion, failure);
        }
        Ok(!looks)
    }

    /// Takes out what comes first, if that is a completion.
    pub fn pop_completion(&mut self) -> Popped {
        match self.first() {
            First::Completion => self.pop_if(false),
            _ => Popped::Nothing,
        }
    }

    /// Takes out what comes first.
    pub fn pop(&mut self) -> Popped {
        if self.is_overrun() {
            self.pass_overrun();
            return Popped::Nothing;
        }
        self.pop_if(true)
    }

    /// Takes out what comes first, unless it is an error and these are not wanted.
    fn pop_if(&mut self, errors: bool) -> Popped {
        if let Some(ring) = &mut self.ring {
            if let Some((completion, failed)) = ring.pop(errors) {
                let failure = if failed {
                    // INVARIANT: With its entry.
                    self.failures.pop()
                } else {
                    None
                };
                return Popped::Slot(CompletionError {
                    completion,
                    failure: failure.unwrap_or(Failure::NONE),
                });
            }
            // An error, or what comes behind the place where entries were lost.
            if !ring.is_empty() || self.is_overrun() {
                return Popped::Nothing;
            }
        }
        let wanted = |entry: &CompletionError| errors || entry.failure.err == 0;
        if !self.backlog.front().is_some_and(wanted) {
            return Popped::Nothing;
        }
        match self.backlog.pop_front() {
            Some(entry) => {
                // It has had no number.
                self.overrun = self.overrun.map(|at| at.wrapping_sub(1));
                self.publish();
                Popped::Own(entry)
            }
            None => Popped::Nothing,
        }
    }
}

impl Front for Option<Taker> {
    fn len(&self) -> usize {
        self.as_ref().map_or(0, Taker::len)
    }

    fn is_ready(&self) -> bool {
        self.as_ref().is_some_and(Taker::is_ready)
    }
}

impl Entries for Completions {
    type Front = Option<Taker>;

    fn none() -> Self {
        // INVARIANT: None of either.
        Self {
            ring: None,
            failures: Ring::none(),
            backlog: EntryQueue::new(),
            overrun: None,
        }
    }

    fn front(&self) -> Self::Front {
        self.ring.as_ref().map(Producer::taker)
    }

    fn is_ready(&self) -> bool {
        self.is_ready_behind() || self.ring.as_ref().is_some_and(|ring| !ring.is_empty())
    }

    fn is_ready_behind(&self) -> bool {
        !self.backlog.is_empty() || self.overrun.is_some()
    }

    fn has_error(&self) -> bool {
        !self.failures.is_empty()
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_completions)]
mod tests {
    use super::*;
    use crate::kfi::provider::Outcome;

    fn entry(number: usize, err: c_int) -> CompletionError {
        CompletionError {
            completion: Completion::with_number(number, &Outcome::default()),
            failure: Failure {
                olen: number + 1,
                err,
                prov_errno: 7,
            },
        }
    }

    /// Takes out what comes first: the number of a completion or, negative, of an error.
    fn take(queue: &mut Completions) -> Option<isize> {
        let shown = match queue.first() {
            First::Completion => None,
            First::Error(completion, failure) => Some((completion.op_context(), *failure)),
            First::Nothing | First::Overrun => return None,
        };
        let taken = match queue.pop() {
            Popped::Slot(entry) => entry,
            Popped::Own(entry) => entry.into_inner(),
            Popped::Nothing => return None,
        };
        let number = taken.completion.op_context().as_number();
        let Some((context, failure)) = shown else {
            assert_eq!(taken.failure.err, 0);
            return Some(number.cast_signed());
        };
        assert_eq!(context.as_number(), number);
        assert_eq!(failure.olen, number + 1);
        assert_eq!(failure.err, 5);
        assert_eq!(taken.failure.olen, number + 1);
        Some(-number.cast_signed())
    }

    #[test]
    fn errors_lie_among_completions() -> Result {
        let mut queue = Completions::new(4)?;
        for round in 0..5 {
            assert!(!queue.is_ready());
            assert!(queue.push(entry(round + 1, 0)));
            assert!(queue.push(entry(round + 2, 5)));
            assert!(queue.push(entry(round + 3, 5)));
            assert!(queue.push(entry(round + 4, 0)));
            assert!(!queue.push(entry(9, 0)));
            assert!(!queue.push(entry(9, 5)));
            assert!(matches!(queue.first(), First::Completion));
            let round = round.cast_signed();
            assert_eq!(take(&mut queue), Some(round + 1));
            assert_eq!(take(&mut queue), Some(-(round + 2)));
            assert_eq!(take(&mut queue), Some(-(round + 3)));
            assert_eq!(take(&mut queue), Some(round + 4));
            assert_eq!(take(&mut queue), None);
            assert!(matches!(queue.pop(), Popped::Nothing));
        }
        Ok(())
    }

    #[test]
    fn completions_are_taken_without_the_lock() -> Result {
        let mut queue = Completions::new(4)?;
        let front = queue.front().ok_or(EINVAL)?;
        let take_one = || Some(front.take()?.op_context().as_number());
        for _ in 0..5 {
            assert!(take_one().is_none() && !front.is_ready());
            for (number, err) in [(1, 0), (2, 0), (3, 5)] {
                assert!(queue.push(entry(number, err)));
            }
            assert_eq!((take_one(), take_one()), (Some(1), Some(2)));
            // An error is taken with the lock only, and nothing that comes behind it.
            assert!(queue.push(entry(4, 0)));
            assert!(take_one().is_none() && front.is_ready());
            assert_eq!(take(&mut queue), Some(-3));
            queue.lose();
            assert!(queue.push(entry(5, 0)));
            assert_eq!(take_one(), Some(4));
            // Nor what comes behind the place where entries were lost.
            assert!(take_one().is_none() && queue.is_ready_behind());
            assert!(matches!(queue.first(), First::Overrun));
            assert!(matches!(queue.pop(), Popped::Nothing));
            assert_eq!(take_one(), Some(5));
            assert!(!queue.is_ready());
        }
        assert!(queue.push(entry(1, 0)));
        assert!(front.is_ready());
        drop(queue);
        assert!(!front.is_ready() && take_one().is_none());
        Ok(())
    }

    #[test]
    fn backlog_keeps_the_order() -> Result {
        let mut queue = Completions::new(2)?;
        assert!(queue.push(entry(1, 0)));
        // The other slot is promised.
        for number in 2..6 {
            let err = if number % 2 == 0 { 5 } else { 0 };
            queue.push_own(entry(number, err), Vacant::new(GFP_KERNEL)?);
        }
        assert!(queue.has_backlog());
        // An entry that was promised a slot comes last all the same.
        assert!(queue.push(entry(6, 0)));
        assert_eq!(take(&mut queue), Some(1));
        assert!(queue.move_up().is_some());
        for number in [-2, 3, -4, 5] {
            assert_eq!(take(&mut queue), Some(number));
        }
        assert!(matches!(queue.pop(), Popped::Own(_)));
        assert!(!queue.has_backlog() && !queue.is_ready());
        assert!(queue.move_up().is_none());
        Ok(())
    }

    #[test]
    fn overrun_is_told_once_and_in_its_place() -> Result {
        let mut queue = Completions::new(2)?;
        assert!(queue.push(entry(1, 0)));
        queue.lose();
        queue.lose();
        assert!(queue.push(entry(2, 5)));
        assert_eq!(take(&mut queue), Some(1));
        assert!(matches!(queue.first(), First::Overrun));
        assert!(matches!(queue.pop(), Popped::Nothing));
        assert_eq!(take(&mut queue), Some(-2));
        assert!(!queue.is_ready());
        queue.lose();
        assert!(queue.is_ready());
        assert!(matches!(queue.first(), First::Overrun));
        assert!(matches!(queue.pop(), Popped::Nothing));
        assert!(!queue.is_ready());
        Ok(())
    }
}
