// SPDX-License-Identifier: GPL-2.0

//! Buffers that are posted for several messages.
//!
//! # Why the release is reported last
//!
//! Messages for one buffer land on several CPUs at once, and their completions may come in any
//! order; the last one carries the release (`KFI_MULTI_RECV`). To end the use of the buffer and to
//! add the completion are one step: both are done with the lock of the completion queue held. So
//! the thread whose use is the last one adds its entry behind those of all others. Where
//! endpoints share receives, these may lie in other queues, which are read without a lock: the thread that
//! ends a use there says before that its entry is coming. So a reader that has seen the release, and finds
//! none, takes the lock of that queue after that thread, and finds it (`qemu-test/litmus/KFI-queue-coming.litmus`).

#![forbid(unsafe_code)]

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        new_spinlock_irq,
        SpinLockIrq, //
    }, //
};

use crate::{
    counter::Counter,
    kfi::{
        hold::Hold,
        memory::{
            Cursor,
            Target, //
        },
        provider::{
            Ended,
            Left,
            Operation,
            SharedUse, //
        }, //
    }, //
};

/// The state that goes with the memory of a buffer for several messages.
#[pin_data]
pub(crate) struct MultiBuffer {
    /// When less is left the buffer is released.
    min: usize,
    /// The completion counter of deferred work, for the last completion.
    #[pin]
    notify: SpinLockIrq<Option<Hold<Counter>>>,
}

/// A use of a buffer for several messages, which is not released meanwhile: by a message that lands,
/// or by the receive that is posted.
pub(crate) struct MultiUse(SharedUse<MultiBuffer>);

/// The remains of a use that has ended, to be dropped without a lock.
pub(crate) struct MultiLeft {
    /// The completion counter of deferred work, if it was the last use.
    pub(crate) notify: Option<Hold<Counter>>,
    _buffer: Left<MultiBuffer>,
}

impl MultiUse {
    /// Takes the buffer of a receive, which is released when less than `min` bytes are left; `EINVAL` if
    /// it has no bytes.
    pub(crate) fn take(operation: Operation<'_>, min: usize, flags: Flags) -> Result<Self> {
        let buffer = pin_init!(MultiBuffer {
            min,
            notify <- new_spinlock_irq!(None, "kfi_soft::MultiBuffer::notify"),
        });
        let shared = SharedUse::take(operation, buffer, flags)?;
        if shared.memory().len() == 0 {
            return Err(EINVAL);
        }
        Ok(Self(shared))
    }

    /// Returns a place in the memory.
    pub(crate) fn cursor(&self, offset: usize) -> Cursor<'_, Target> {
        self.0.memory().cursor(offset)
    }

    /// Returns the address of the first byte, for completions; 0 if it has none.
    pub(crate) fn address(&self) -> usize {
        self.0.memory().address()
    }

    /// Sets the completion counter of deferred work.
    pub(crate) fn set_notify(&self, notify: Option<Hold<Counter>>) {
        let old = core::mem::replace(&mut *self.0.data().notify.lock(), notify);
        // Without the lock.
        drop(old);
    }

    /// Begins another use.
    pub(crate) fn enter(&self) -> Self {
        Self(self.0.enter())
    }

    /// Ends the use.
    ///
    /// If the end is reported, then with the lock of the completion queue held, see the top of this
    /// file.
    pub(crate) fn leave(self) -> (Ended, MultiLeft) {
        let (ended, left) = self.0.end();
        let notify = if ended.is_last() {
            left.data().notify.lock().take()
        } else {
            None
        };
        let left = MultiLeft {
            notify,
            _buffer: left,
        };
        (ended, left)
    }

    /// Returns the bytes behind a place, and whether a message of `len` bytes there exhausts the
    /// buffer.
    pub(crate) fn part(&self, at: usize, len: usize) -> (usize, bool) {
        let left = self.0.memory().len().saturating_sub(at);
        let rest = left.saturating_sub(len);
        (left, rest == 0 || rest < self.0.data().min)
    }
}
