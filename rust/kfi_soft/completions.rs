// SPDX-License-Identifier: GPL-2.0

//! What lies in a completion queue: completions, and errors among them.

#![deny(unsafe_code)]

use kernel::prelude::*;

use crate::{
    kfi::provider::{
        Completion,
        CompletionError, //
    },
    queue::Entries,
    ring::Ring, //
};

/// An entry, of the size of a cache line: what only errors have lies elsewhere.
struct Entry {
    completion: Completion,
    failed: bool,
}

/// What errors have beyond completions.
#[derive(Clone, Copy)]
struct Failure {
    olen: usize,
    err: c_int,
    prov_errno: c_int,
}

/// What comes first.
pub(crate) enum First<'a> {
    /// Nothing.
    Nothing,
    /// A completion.
    Completion(&'a Completion),
    /// An error.
    Error,
    /// The place where entries were lost.
    Overrun,
}

/// The entries of a completion queue, in order.
///
/// # Invariants
///
/// There are as many `failures` as entries that have failed, in the same order.
pub(crate) struct Completions {
    entries: Ring<Entry>,
    failures: Ring<Failure>,
    /// How many entries are before the place where entries were lost.
    overrun: Option<usize>,
}

impl Completions {
    /// Creates a queue for `capacity` entries, at least one.
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        // INVARIANT: None of either.
        Ok(Self {
            entries: Ring::new(capacity)?,
            failures: Ring::new(capacity)?,
            overrun: None,
        })
    }

    /// Returns how many entries there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Adds an entry; `false` if there is no room.
    pub(crate) fn push(&mut self, entry: &CompletionError) -> bool {
        let failed = entry.err != 0;
        if self.entries.is_full() {
            return false;
        }
        if failed {
            let failure = Failure {
                olen: entry.olen,
                err: entry.err,
                prov_errno: entry.prov_errno,
            };
            // As large as the other, and so not full either.
            if self.failures.push(failure).is_err() {
                return false;
            }
        }
        // INVARIANT: The failure was added.
        let completion = entry.completion;
        self.entries.push(Entry { completion, failed }).is_ok()
    }

    /// An entry is lost for lack of room.
    pub(crate) fn lose(&mut self) {
        // More that are lost before that was told are told at the same place.
        if self.overrun.is_none() && self.entries.capacity() != 0 {
            self.overrun = Some(self.entries.len());
        }
    }

    /// Returns what comes first.
    pub(crate) fn first(&self) -> First<'_> {
        if self.overrun == Some(0) {
            return First::Overrun;
        }
        match self.entries.first() {
            None => First::Nothing,
            Some(entry) if entry.failed => First::Error,
            Some(entry) => First::Completion(&entry.completion),
        }
    }

    /// Returns the first entry if it is an error.
    pub(crate) fn first_error(&self) -> Option<CompletionError> {
        if !matches!(self.first(), First::Error) {
            return None;
        }
        let Failure {
            olen,
            err,
            prov_errno,
        } = *self.failures.first()?;
        Some(CompletionError {
            completion: self.entries.first()?.completion,
            olen,
            err,
            prov_errno,
        })
    }

    /// Takes out what comes first; returns how many slots that frees.
    pub(crate) fn pop(&mut self) -> usize {
        if self.overrun == Some(0) {
            self.overrun = None;
            return 0;
        }
        let Some(entry) = self.entries.pop() else {
            return 0;
        };
        if entry.failed {
            // INVARIANT: With its entry.
            self.failures.pop();
        }
        self.overrun = self.overrun.map(|before| before.wrapping_sub(1));
        1
    }
}

impl Entries for Completions {
    fn none() -> Self {
        // INVARIANT: None of either.
        Self {
            entries: Ring::none(),
            failures: Ring::none(),
            overrun: None,
        }
    }

    fn is_ready(&self) -> bool {
        !self.entries.is_empty() || self.overrun.is_some()
    }
}

#[kunit_tests(kfi_soft_completions)]
mod tests {
    use super::*;
    use crate::kfi::{
        fid::Context,
        provider::ADDR_NOTAVAIL, //
    };

    fn entry(number: usize, err: c_int) -> CompletionError {
        CompletionError {
            completion: Completion {
                op_context: Context::from_number(number),
                flags: 0,
                len: 0,
                buf: Context::NONE,
                data: 0,
                tag: 0,
                src_addr: ADDR_NOTAVAIL,
            },
            olen: number + 1,
            err,
            prov_errno: 7,
        }
    }

    /// Takes out what comes first: the number of a completion or, negative, of an error.
    fn take(queue: &mut Completions) -> Option<isize> {
        let number = match queue.first() {
            First::Completion(completion) => completion.op_context.as_number().cast_signed(),
            First::Error => {
                let error = queue.first_error()?;
                let number = error.completion.op_context.as_number();
                assert_eq!(error.olen, number + 1);
                assert_eq!(error.err, 5);
                -number.cast_signed()
            }
            First::Nothing | First::Overrun => return None,
        };
        assert_eq!(queue.pop(), 1);
        Some(number)
    }

    #[test]
    fn entry_fills_a_cache_line() {
        assert_eq!(size_of::<Option<Entry>>(), 64);
    }

    #[test]
    fn errors_lie_among_completions() -> Result {
        let mut queue = Completions::new(4)?;
        for round in 0..5 {
            assert!(!queue.is_ready());
            assert!(queue.push(&entry(round + 1, 0)));
            assert!(queue.push(&entry(round + 2, 5)));
            assert!(queue.push(&entry(round + 3, 5)));
            assert!(queue.push(&entry(round + 4, 0)));
            assert!(!queue.push(&entry(9, 0)));
            assert!(!queue.push(&entry(9, 5)));
            assert!(queue.first_error().is_none());
            let round = round.cast_signed();
            assert_eq!(take(&mut queue), Some(round + 1));
            assert_eq!(take(&mut queue), Some(-(round + 2)));
            assert_eq!(take(&mut queue), Some(-(round + 3)));
            assert_eq!(take(&mut queue), Some(round + 4));
            assert_eq!(take(&mut queue), None);
            assert_eq!(queue.pop(), 0);
        }
        Ok(())
    }

    #[test]
    fn overrun_is_told_once_and_in_its_place() -> Result {
        let mut queue = Completions::new(2)?;
        assert!(queue.push(&entry(1, 0)));
        queue.lose();
        queue.lose();
        assert!(queue.push(&entry(2, 5)));
        assert_eq!(take(&mut queue), Some(1));
        assert!(matches!(queue.first(), First::Overrun));
        assert!(queue.first_error().is_none());
        assert_eq!(queue.pop(), 0);
        assert_eq!(take(&mut queue), Some(-2));
        assert!(!queue.is_ready());
        queue.lose();
        assert!(queue.is_ready());
        assert!(matches!(queue.first(), First::Overrun));
        assert_eq!(queue.pop(), 0);
        assert!(!queue.is_ready());
        Ok(())
    }
}
