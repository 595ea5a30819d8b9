// SPDX-License-Identifier: GPL-2.0

//! Allocating in work that the reclaim of memory waits for.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h).

use kernel::{
    prelude::*,
    types::NotThreadSafe, //
};

use super::bindings;

/// While it lives, no allocation of this task begins input or output, whatever its flags.
///
/// It has to be dropped in the reverse order of creation, as its users, which keep it in a scope, do.
pub struct NoIo {
    /// The flags of the task before.
    before: c_uint,
    /// It is about the current task.
    _not_send: NotThreadSafe,
}

impl NoIo {
    /// Begins.
    pub fn new() -> Self {
        Self {
            // SAFETY: Changes a flag of the current task, which is restored when this is dropped.
            before: unsafe { bindings::memalloc_noio_save() },
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for NoIo {
    fn drop(&mut self) {
        // SAFETY: Of the same task, as this cannot be sent.
        unsafe { bindings::memalloc_noio_restore(self.before) };
    }
}
