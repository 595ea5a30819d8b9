// SPDX-License-Identifier: GPL-2.0

//! How many operations may be under way in a transmit context, or in all endpoints that share one.
//!
//! An operation that was posted and finds no credit is refused. One that has fired waits, and those behind it do, too.
//! In an endpoint that has its credits for itself one of its own operations gives one back, and the thread that ends
//! that operation begins what waits.
//!
//! Endpoints that share credits wait in a line, each in one place: a credit that is given back goes to the first of
//! them, whose work queue begins the operation. As long as one waits there is none for those that come later, be it to
//! post, or because more of their own operations wait: so nobody is passed over.

#![forbid(unsafe_code)]

use kernel::{
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
    kfi::linux::{
        interrupts::NoPreemption,
        queue::{
            EntryQueue,
            Named,
            Vacant, //
        }, //
    },
    transfer::transmitter::Transmitter, //
};

/// A transmit context in line.
struct Waiter(Arc<Transmitter>);

/// Named by the number of the transmit context.
impl Named for Waiter {
    type Name = u64;

    fn name(&self) -> u64 {
        self.0.number()
    }
}

/// How many operations may be under way.
///
/// # Invariants
///
/// - If they are shared, `used` changes under the lock of `line` only.
/// - Nobody is in `line` unless all are used and they are shared.
#[pin_data]
pub(crate) struct Credits {
    used: Atomic<usize>,
    size: usize,
    /// Several endpoints have them.
    is_shared: bool,
    /// The transmit contexts that wait for one.
    #[pin]
    line: SpinLockIrq<EntryQueue<Waiter>>,
}

impl Credits {
    /// For `size` operations at a time, of one endpoint.
    pub(crate) fn new(size: usize) -> Result<Arc<Self>> {
        Self::with_line(size, false)
    }

    /// For `size` operations at a time, of several endpoints.
    pub(crate) fn new_shared(size: usize) -> Result<Arc<Self>> {
        Self::with_line(size, true)
    }

    /// For `size` operations at a time.
    fn with_line(size: usize, is_shared: bool) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                used: Atomic::new(0),
                size,
                is_shared,
                // INVARIANT: Empty.
                line <- new_spinlock_irq!(EntryQueue::new(), "kfi_soft::Credits::line"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether several endpoints have them.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Takes one; `false` if there is none.
    #[inline]
    pub(super) fn take(&self) -> bool {
        if self.is_shared {
            let _line = self.line.lock();
            return self.take_now();
        }
        self.take_now()
    }

    /// Takes one for the first operation that waits in a transmit context. If there is none, and they are shared, it
    /// gets into line, with the memory for that, unless it is there, or is just given one:
    /// [`Transmitter::credit`] is called when it is its turn. With the lock of the transmit context held.
    pub(super) fn take_or_wait(
        &self,
        transmitter: &Arc<Transmitter>,
        memory: &mut Option<Vacant>,
    ) -> bool {
        if !self.is_shared {
            return self.take_now();
        }
        let mut line = self.line.lock();
        if self.take_now() {
            return true;
        }
        if let Some(memory) = memory.take() {
            // INVARIANT: All are used.
            line.push_named(memory.fill(Waiter(transmitter.clone())));
        }
        false
    }

    /// Takes one; `false` if there is none. With the lock of the line held if they are shared.
    #[inline]
    fn take_now(&self) -> bool {
        // Never more than there are, not even for a moment: an operation that finds none waits
        // until one is given back. Relaxed: `cmpxchg` validates the value.
        let mut used = self.used.load(ordering::Relaxed);
        while used < self.size {
            // INVARIANT: Nobody waits, as not all are used.
            // Acquire: what was done with it is over.
            match self
                .used
                .cmpxchg(used, used.wrapping_add(1), ordering::Acquire)
            {
                Ok(_) => return true,
                Err(current) => used = current,
            }
        }
        false
    }

    /// Returns whether there is none left.
    pub(super) fn is_spent(&self) -> bool {
        // Relaxed: a thread that is wrong finds none next time.
        self.used.load(ordering::Relaxed) >= self.size
    }

    /// Gives one back, or to the first transmit context in line that has a use for it. From any context, without the
    /// lock of a transmit context.
    #[inline]
    pub(super) fn give(&self) {
        if self.is_shared {
            self.give_in_line();
        } else {
            self.give_now();
        }
    }

    /// See [`Self::give`].
    fn give_in_line(&self) {
        // Hardly any have no use for one: they leave the line by themselves. Others wait for what this thread has
        // until it is handed over.
        let _preemption = NoPreemption::begin();
        loop {
            let first = {
                let mut line = self.line.lock();
                let Some(first) = line.pop_front() else {
                    self.give_now();
                    return;
                };
                first
            };
            let (Waiter(transmitter), memory) = first.empty();
            if transmitter.credit(memory) {
                return;
            }
        }
    }

    /// Gives one back. With the lock of the line held if they are shared, and nobody in it.
    #[inline]
    fn give_now(&self) {
        // Full: the thread that takes it sees the operation over, and the one that gives it looks
        // for those that wait after that.
        // See `qemu-test/litmus/KFI-slot-reuse.litmus` and
        // `qemu-test/litmus/KFI-transmit-credit.litmus`.
        self.used.fetch_sub(1, ordering::Full);
    }

    /// Takes a transmit context out of the line that has no use for a credit any more, if it is there; returns the
    /// memory for that. It may be given one just then. With the lock of the transmit context held.
    pub(super) fn leave(&self, transmitter: &Transmitter) -> Option<Vacant> {
        if !self.is_shared {
            return None;
        }
        let number = transmitter.number();
        let waiter = self
            .line
            .lock()
            .take_named(&number, |waiter| waiter.name() == number)?;
        // Not the last reference, as the caller has one.
        let (waiter, memory) = waiter.empty();
        drop(waiter);
        Some(memory)
    }
}
