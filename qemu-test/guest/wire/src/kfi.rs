// SPDX-License-Identifier: GPL-2.0

//! A stand-in for the crate `kfi`, as far as the files of the kernel use it.

pub(crate) mod linux {
    /// As `rust/kfi/linux/queue.rs`, in memory of its own.
    pub(crate) mod queue {
        use std::collections::VecDeque;
        use std::ops::{Deref, DerefMut};

        pub(crate) trait Named {
            type Name: Ord;

            fn name(&self) -> Self::Name;
        }

        pub(crate) struct Entry<T>(Box<T>);

        impl<T> Entry<T> {
            pub(crate) fn new(value: T) -> Self {
                Self(Box::new(value))
            }

            pub(crate) fn into_inner(self) -> T {
                *self.0
            }
        }

        impl<T> Deref for Entry<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }

        impl<T> DerefMut for Entry<T> {
            fn deref_mut(&mut self) -> &mut T {
                &mut self.0
            }
        }

        pub(crate) struct EntryQueue<T>(VecDeque<Entry<T>>);

        impl<T> EntryQueue<T> {
            pub(crate) fn new() -> Self {
                Self(VecDeque::new())
            }

            pub(crate) fn len(&self) -> usize {
                self.0.len()
            }

            pub(crate) fn front(&self) -> Option<&T> {
                self.0.front().map(|entry| &**entry)
            }

            pub(crate) fn pop_front(&mut self) -> Option<Entry<T>> {
                self.0.pop_front()
            }

            pub(crate) fn push_back(&mut self, entry: Entry<T>) {
                self.0.push_back(entry);
            }
        }

        impl<T: Named> EntryQueue<T> {
            pub(crate) fn push_named(&mut self, entry: Entry<T>) {
                self.0.push_back(entry);
            }

            pub(crate) fn find_named(&mut self, name: &T::Name) -> Option<FoundEntry<'_, T>> {
                let at = (0..self.0.len())
                    .filter(|at| self.0[*at].name() >= *name)
                    .min_by_key(|at| self.0[*at].name())?;
                Some(FoundEntry { at, queue: self })
            }
        }

        pub(crate) struct FoundEntry<'a, T> {
            at: usize,
            queue: &'a mut EntryQueue<T>,
        }

        impl<T> FoundEntry<'_, T> {
            pub(crate) fn take(self) -> Entry<T> {
                self.queue.0.remove(self.at).expect("it was found")
            }
        }

        impl<T> Deref for FoundEntry<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.queue.0[self.at]
            }
        }

        impl<T> DerefMut for FoundEntry<'_, T> {
            fn deref_mut(&mut self) -> &mut T {
                &mut self.queue.0[self.at]
            }
        }
    }
}
