// SPDX-License-Identifier: GPL-2.0

//! Buffers that are posted for several messages.
//!
//! # Why the release is told last
//!
//! Messages for one buffer land on several CPUs at once, and their completions may come in any
//! order; the last one carries the release (`KFI_MULTI_RECV`). To end the use of the buffer and to
//! add the completion are one step: both are done with the lock of the completion queue held. So
//! whoever finds that its use is the last one adds its entry behind those of all others. Where
//! endpoints share receives, these may lie in other queues: a reader who has seen the release takes
//! the lock of the other queue after whoever has ended a use there, and so finds its entry.

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        new_spinlock_irq,
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    counter::Counter,
    kfi::{
        hold::Hold,
        memory::Memory, //
    }, //
};

/// A buffer for several messages.
#[pin_data]
pub(crate) struct MultiBuffer {
    memory: Memory,
    /// When less is left the buffer is released.
    min: usize,
    /// Messages that are landing in it, and one more while it is posted.
    uses: Atomic<usize>,
    /// The completion counter of deferred work, for the last completion.
    #[pin]
    notify: SpinLockIrq<Option<Hold<Counter>>>,
}

/// What the end of the last use leaves.
pub(crate) struct Released {
    /// The completion counter of deferred work.
    pub(crate) notify: Option<Hold<Counter>>,
}

impl MultiBuffer {
    /// A buffer that is released when less than `min` bytes are left.
    pub(crate) fn new(memory: Memory, min: usize, flags: Flags) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                memory,
                min,
                uses: Atomic::new(1),
                notify <- new_spinlock_irq!(None, "kfi_soft::MultiBuffer::notify"),
            }),
            flags,
        )
    }

    /// Returns the memory.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Sets the completion counter of deferred work.
    pub(crate) fn set_notify(&self, notify: Option<Hold<Counter>>) {
        let old = core::mem::replace(&mut *self.notify.lock(), notify);
        // Without the lock.
        drop(old);
    }

    /// Begins another use of a buffer that is posted.
    pub(crate) fn enter(&self) {
        // Relaxed: the use of the posted receive itself keeps the count above 0.
        self.uses.fetch_add(1, ordering::Relaxed);
    }

    /// Ends a use; returns what is for the last completion if it was the last.
    ///
    /// If the end is told, then with the lock of the completion queue held, see the top of this file.
    pub(crate) fn leave(&self) -> Option<Released> {
        // Full: what the others did comes before what the last one does.
        if self.uses.fetch_sub(1, ordering::Full) != 1 {
            return None;
        }
        Some(Released {
            notify: self.notify.lock().take(),
        })
    }

    /// Returns the bytes behind a place, and whether a message of `len` bytes there exhausts the
    /// buffer.
    pub(crate) fn part(&self, at: usize, len: usize) -> (usize, bool) {
        let left = self.memory.len().saturating_sub(at);
        let rest = left.saturating_sub(len);
        (left, rest == 0 || rest < self.min)
    }
}
