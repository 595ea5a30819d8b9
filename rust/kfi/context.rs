// SPDX-License-Identifier: GPL-2.0

//! The contexts of objects and operations.

use core::ptr;
use kernel::prelude::*;

/// A value that a consumer finds again in events: a number or a pointer, never looked into.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Context(*mut c_void);

// SAFETY: The pointer is a token, it is never dereferenced.
unsafe impl Send for Context {}
// SAFETY: As above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of nobody.
    pub const NONE: Self = Self(ptr::null_mut());

    /// Takes a context from C.
    pub fn from_raw(context: *mut c_void) -> Self {
        Self(context)
    }

    /// A number for a context.
    pub fn from_number(number: usize) -> Self {
        Self(ptr::without_provenance_mut(number))
    }

    /// Returns the context as a number.
    pub fn as_number(self) -> usize {
        self.0.addr()
    }

    /// Returns the context for C.
    pub fn as_raw(self) -> *mut c_void {
        self.0
    }
}
