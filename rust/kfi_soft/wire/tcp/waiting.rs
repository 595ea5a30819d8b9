// SPDX-License-Identifier: GPL-2.0

//! Lines of entries: one for each key.
//!
//! Nothing is allocated for a line, and so there may be as many as there are entries: a line lies in
//! the memory of one of its entries, which has the memory of the next one when that has left. It is found by
//! its key without a look at the others, and taken out in one step, however long it is.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use crate::kfi::linux::queue::{
    Entry,
    EntryQueue,
    FoundEntry,
    Named, //
};

/// Entries in order, also found by their names.
pub(super) struct Line<T: Named> {
    /// The first one, if the line has lain in the memory of an entry.
    first: Option<Entry<T>>,
    /// The others.
    behind: EntryQueue<T>,
}

impl<T: Named> Line<T> {
    /// An empty one.
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            behind: EntryQueue::new(),
        }
    }

    /// Returns whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.behind.is_empty()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        let first = usize::from(self.first.is_some());
        self.behind.len().saturating_add(first)
    }

    /// Adds an entry at the end.
    pub(super) fn push(&mut self, entry: Entry<T>) {
        self.behind.push_named(entry);
    }

    /// Takes the first entry out.
    pub(super) fn pop(&mut self) -> Option<Entry<T>> {
        match self.first.take() {
            Some(first) => Some(first),
            None => self.behind.pop_front(),
        }
    }

    /// Takes out the entry that has a name, if it is `same`. No two have the same name.
    pub(super) fn take(&mut self, name: &T::Name, same: impl Fn(&T) -> bool) -> Option<Entry<T>> {
        let is_first = |first: &mut Entry<T>| first.name() == *name && same(first);
        match self.first.take_if(is_first) {
            Some(first) => Some(first),
            None => take_from(&mut self.behind, name, same),
        }
    }
}

/// Takes out the entry that has a name, if it is `same`; the queue itself may find one with a later name.
fn take_from<T: Named>(
    queue: &mut EntryQueue<T>,
    name: &T::Name,
    same: impl Fn(&T) -> bool,
) -> Option<Entry<T>> {
    queue.take_named(name, |value| value.name() == *name && same(value))
}

/// A line, in the memory of an entry.
struct Headed<K, T> {
    key: K,
    first: T,
    behind: EntryQueue<T>,
    /// See [`Lines::note`].
    noted: Option<u64>,
}

impl<K: Copy + Ord, T> Named for Headed<K, T> {
    type Name = K;

    fn name(&self) -> K {
        self.key
    }
}

impl<K, T> Headed<K, T> {
    /// Takes the first entry out of a line, which keeps its place, and ends with its last entry.
    fn pop(mut line: FoundEntry<'_, Self>) -> Entry<T> {
        let Some(next) = line.behind.pop_front() else {
            let (line, memory) = line.take().empty();
            return memory.fill(line.first);
        };
        let (next, memory) = next.empty();
        memory.fill(core::mem::replace(&mut line.first, next))
    }
}

/// Lines by their keys. None of them is empty.
pub(super) struct Lines<K, T>(EntryQueue<Headed<K, T>>);

impl<K: Copy + Ord, T: Named> Lines<K, T> {
    /// None.
    pub(super) const fn new() -> Self {
        Self(EntryQueue::new())
    }

    /// Returns the key of the first line, and its first entry. They are in the order in which they began, but
    /// for those that were sent behind the others.
    pub(super) fn first(&self) -> Option<(K, &T)> {
        self.0.front().map(|line| (line.key, &line.first))
    }

    /// Returns the line that has a key.
    fn find(&mut self, key: K) -> Option<FoundEntry<'_, Headed<K, T>>> {
        let found = self.0.find_named(&key)?;
        (found.key == key).then_some(found)
    }

    /// Returns whether there is a line that has a key.
    pub(super) fn has(&mut self, key: K) -> bool {
        self.find(key).is_some()
    }

    /// Adds an entry at the end of the line that has a key.
    pub(super) fn push(&mut self, key: K, entry: Entry<T>) {
        if let Some(mut line) = self.find(key) {
            line.behind.push_named(entry);
            return;
        }
        let (first, memory) = entry.empty();
        let line = memory.fill(Headed {
            key,
            first,
            behind: EntryQueue::new(),
            noted: None,
        });
        self.0.push_named(line);
    }

    /// Returns the number of lines.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Notes a number with the line that has a key, unless there is one already; returns that which is there.
    pub(super) fn note(&mut self, key: K, number: u64) -> Option<u64> {
        let mut line = self.find(key)?;
        Some(*line.noted.get_or_insert(number))
    }

    /// Forgets what was noted with the line that has a key.
    pub(super) fn forget(&mut self, key: K) {
        if let Some(mut line) = self.find(key) {
            line.noted = None;
        }
    }

    /// Takes the first entry out of the line that has a key. The line keeps its place.
    pub(super) fn pop(&mut self, key: K) -> Option<Entry<T>> {
        self.find(key).map(Headed::pop)
    }

    /// Sends the line that has a key behind all others.
    pub(super) fn send_back(&mut self, key: K) {
        if let Some(line) = self.find(key).map(FoundEntry::take) {
            self.0.push_named(line);
        }
    }

    /// Takes out the line that has a key.
    pub(super) fn take_line(&mut self, key: K) -> Option<Line<T>> {
        let (line, memory) = self.find(key)?.take().empty();
        let Headed { first, behind, .. } = line;
        Some(Line {
            first: Some(memory.fill(first)),
            behind,
        })
    }

    /// Takes the entry that has a name out of the line that has a key, if it is `same`. No two of a line have
    /// the same name. The line keeps its place.
    pub(super) fn take(
        &mut self,
        key: K,
        name: &T::Name,
        same: impl Fn(&T) -> bool,
    ) -> Option<Entry<T>> {
        let mut line = self.find(key)?;
        if line.first.name() == *name && same(&line.first) {
            return Some(Headed::pop(line));
        }
        take_from(&mut line.behind, name, same)
    }
}

#[kunit_tests(kfi_soft_waiting)]
mod tests {
    use super::*;

    /// A name, and a number.
    struct Value(u32, u32);

    impl Named for Value {
        type Name = u32;

        fn name(&self) -> u32 {
            self.0
        }
    }

    fn entry(name: u32, number: u32) -> Result<Entry<Value>> {
        Entry::new(Value(name, number), GFP_KERNEL)
    }

    /// Returns the key of the first line.
    fn first(lines: &Lines<u32, Value>) -> Option<u32> {
        lines.first().map(|(key, _)| key)
    }

    /// Takes all out of a line; returns their names.
    fn names(mut line: Line<Value>) -> Result<KVec<u32>> {
        let mut names = KVec::new();
        while let Some(entry) = line.pop() {
            names.push(entry.into_inner().0, GFP_KERNEL)?;
        }
        assert!(line.is_empty());
        Ok(names)
    }

    /// Lines with the keys 0, 1 and 2, whose entries have come in turn, with names from 0 to 8.
    fn three() -> Result<Lines<u32, Value>> {
        let mut lines = Lines::new();
        for name in 0..9 {
            lines.push(name % 3, entry(name, name)?);
        }
        Ok(lines)
    }

    #[test]
    fn each_key_has_a_line() -> Result {
        let mut lines = three()?;
        assert_eq!(first(&lines), Some(0));
        assert!(lines.take_line(3).is_none());
        let line = lines.take_line(1).ok_or(EINVAL)?;
        assert_eq!(line.len(), 3);
        assert_eq!(names(line)?.as_slice(), &[1, 4, 7]);
        assert!(lines.take_line(1).is_none());
        // The others do not notice.
        assert_eq!(first(&lines), Some(0));
        assert_eq!(
            names(lines.take_line(0).ok_or(EINVAL)?)?.as_slice(),
            &[0, 3, 6]
        );
        assert_eq!(first(&lines), Some(2));
        lines.push(1, entry(9, 9)?);
        assert_eq!(
            names(lines.take_line(2).ok_or(EINVAL)?)?.as_slice(),
            &[2, 5, 8]
        );
        assert_eq!(names(lines.take_line(1).ok_or(EINVAL)?)?.as_slice(), &[9]);
        assert_eq!(first(&lines), None);
        Ok(())
    }

    #[test]
    fn whatever_leaves_a_line_it_stays_in_order() -> Result {
        for gone in [1, 4, 7] {
            let mut lines = three()?;
            // Another one of that name, and one of another line.
            assert!(lines.take(1, &gone, |_| false).is_none());
            assert!(lines.take(2, &gone, |_| true).is_none());
            let taken = lines.take(1, &gone, |value| value.1 == gone);
            assert_eq!(taken.ok_or(EINVAL)?.into_inner().0, gone);
            assert!(lines.take(1, &gone, |_| true).is_none());
            lines.push(1, entry(10, 10)?);
            let line = names(lines.take_line(1).ok_or(EINVAL)?)?;
            let rest = [1, 4, 7, 10].into_iter().filter(|name| *name != gone);
            assert!(line.iter().copied().eq(rest));
        }
        Ok(())
    }

    #[test]
    fn a_line_ends_with_its_last_entry() -> Result {
        let mut lines = three()?;
        for name in [6, 0, 3] {
            assert!(lines.take(0, &name, |_| true).is_some());
        }
        assert!(lines.take_line(0).is_none());
        assert_eq!(first(&lines), Some(1));
        Ok(())
    }

    #[test]
    fn a_line_keeps_its_place() -> Result {
        let mut lines = three()?;
        // Also when its first entry leaves.
        assert!(lines.take(0, &0, |_| true).is_some());
        assert_eq!(first(&lines), Some(0));
        assert_eq!(lines.pop(0).ok_or(EINVAL)?.into_inner().0, 3);
        lines.push(0, entry(9, 9)?);
        assert_eq!(first(&lines), Some(0));
        assert_eq!(lines.pop(0).ok_or(EINVAL)?.into_inner().0, 6);
        assert_eq!(lines.pop(0).ok_or(EINVAL)?.into_inner().0, 9);
        assert!(lines.pop(0).is_none() && !lines.has(0));
        assert_eq!(first(&lines), Some(1));
        // Unless it is sent away.
        lines.send_back(1);
        assert_eq!(first(&lines), Some(2));
        lines.send_back(0);
        drop(lines.take_line(2));
        assert!(lines.has(1));
        let line = names(lines.take_line(1).ok_or(EINVAL)?)?;
        assert_eq!(line.as_slice(), &[1, 4, 7]);
        Ok(())
    }

    #[test]
    fn a_number_stays_with_its_line() -> Result {
        let mut lines = three()?;
        assert_eq!(lines.note(0, 7), Some(7));
        assert_eq!((lines.note(1, 8), lines.note(3, 8)), (Some(8), None));
        // Whatever leaves it, and wherever it is.
        assert!(lines.take(0, &0, |_| true).is_some());
        lines.send_back(0);
        assert_eq!(lines.note(0, 9), Some(7));
        // Another one with its key is not the same.
        drop(lines.take_line(0));
        assert_eq!(lines.len(), 2);
        lines.push(0, entry(9, 9)?);
        assert_eq!((lines.note(0, 9), lines.note(1, 9)), (Some(9), Some(8)));
        lines.forget(1);
        lines.forget(3);
        assert_eq!((lines.note(0, 10), lines.note(1, 10)), (Some(9), Some(10)));
        Ok(())
    }

    #[test]
    fn what_was_taken_on_is_a_line_as_any_other() -> Result {
        for gone in [1, 4] {
            let mut line = three()?.take_line(1).ok_or(EINVAL)?;
            line.push(entry(10, 10)?);
            assert!(line.take(&gone, |_| false).is_none());
            let taken = line.take(&gone, |_| true).ok_or(EINVAL)?;
            assert_eq!(taken.into_inner().0, gone);
            assert_eq!(line.len(), 3);
            let rest = [1, 4, 7, 10].into_iter().filter(|name| *name != gone);
            assert!(names(line)?.iter().copied().eq(rest));
        }
        assert!(Line::<Value>::new().pop().is_none());
        Ok(())
    }
}
