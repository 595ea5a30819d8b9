// SPDX-License-Identifier: GPL-2.0

//! Memory, as the kernel's crate has it: allocated where that is said, and never else.

use std::ops::{BitOr, Deref, DerefMut};

use crate::error::{Error, Result, ENOMEM};

#[derive(Clone, Copy)]
pub(crate) struct Flags;

pub(crate) const GFP_KERNEL: Flags = Flags;
pub(crate) const __GFP_NOWARN: Flags = Flags;

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, _: Self) -> Self {
        self
    }
}

#[derive(Debug)]
pub(crate) struct AllocError;

impl From<AllocError> for Error {
    fn from(_: AllocError) -> Self {
        ENOMEM
    }
}

/// Initializers.
pub(crate) mod pin_init {
    pub(crate) struct ArrayInit<F>(pub(super) F);

    pub(crate) fn init_array_from_fn<F>(make: F) -> ArrayInit<F> {
        ArrayInit(make)
    }
}

#[derive(Debug)]
pub(crate) struct KBox<T: ?Sized>(Box<T>);

impl<T> KBox<T> {
    #[expect(clippy::unnecessary_wraps, reason = "as in the kernel")]
    pub(crate) fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(Box::new(value)))
    }
}

impl<T, const N: usize> KBox<[T; N]> {
    #[expect(clippy::unnecessary_wraps, reason = "as in the kernel")]
    pub(crate) fn init<F>(init: pin_init::ArrayInit<F>, _: Flags) -> Result<Self>
    where
        F: FnMut(usize) -> T,
    {
        Ok(Self(Box::new(core::array::from_fn(init.0))))
    }
}

impl<T: ?Sized> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A sequence that does not grow unless it is told how.
#[derive(Debug)]
pub(crate) struct KVec<T>(Vec<T>);

pub(crate) type KVVec<T> = KVec<T>;

#[derive(Debug)]
pub(crate) struct RemoveError;

impl<T> KVec<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    #[expect(clippy::unnecessary_wraps, reason = "as in the kernel")]
    pub(crate) fn with_capacity(capacity: usize, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(Vec::with_capacity(capacity)))
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    #[expect(clippy::unnecessary_wraps, reason = "as in the kernel")]
    pub(crate) fn push(&mut self, value: T, _: Flags) -> Result<(), AllocError> {
        self.0.push(value);
        Ok(())
    }

    pub(crate) fn push_within_capacity(&mut self, value: T) -> Result<(), T> {
        if self.0.len() == self.0.capacity() {
            return Err(value);
        }
        self.0.push(value);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    pub(crate) fn remove(&mut self, at: usize) -> Result<T, RemoveError> {
        if at < self.0.len() {
            Ok(self.0.remove(at))
        } else {
            Err(RemoveError)
        }
    }
}

impl<T> Default for KVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for KVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for KVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<'a, T> IntoIterator for &'a KVec<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
