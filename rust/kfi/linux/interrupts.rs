// SPDX-License-Identifier: GPL-2.0

//! Interrupts that are disabled once for several locks, and preemption.
//!
//! Disabling interrupts may cost more than all that is done under the lock: in user-mode Linux it
//! takes two system calls of the host. A lock that is taken while they are already disabled only
//! counts.

use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    interrupt::{
        local_interrupt_disable,
        LocalInterruptDisabled, //
    },
    sync::{
        SpinLockGuard,
        SpinLockIrq,
        SpinLockIrqGuard, //
    },
    types::NotThreadSafe, //
};

use super::bindings;

/// Keeps interrupts disabled on this CPU while it exists, so that the locks that are taken
/// meanwhile need not disable them.
///
/// Hold it for a short time: nothing that takes longer than what is done under a lock.
///
/// On a realtime kernel, where locks do not disable interrupts, neither does this.
pub struct IrqGuard(Option<LocalInterruptDisabled>);

impl IrqGuard {
    /// Disables interrupts.
    #[inline]
    pub fn begin() -> Self {
        let mut irqs = Self::none();
        irqs.resume();
        irqs
    }

    /// Disables nothing.
    #[inline]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Disables interrupts, unless this has.
    #[inline]
    #[allow(dead_code, reason = "not every user of guards passes them on")]
    pub fn or_begin(&self) -> Self {
        match self.0 {
            Some(_) => Self::none(),
            None => Self::begin(),
        }
    }

    /// Disables interrupts again.
    #[inline]
    pub fn resume(&mut self) {
        if cfg!(not(CONFIG_PREEMPT_RT)) && self.0.is_none() {
            self.0 = Some(local_interrupt_disable());
        }
    }

    /// Enables interrupts again, before the guard is dropped.
    #[inline]
    pub fn end(&mut self) {
        drop(self.0.take());
    }

    /// Takes a lock, for which interrupts are not disabled once more if this has.
    #[inline]
    #[allow(dead_code, reason = "not every user of guards takes locks so")]
    pub fn lock<'a, T>(&'a self, lock: &'a SpinLockIrq<T>) -> IrqLockGuard<'a, T> {
        match &self.0 {
            Some(disabled) => IrqLockGuard::Within(lock.lock_with(disabled)),
            None => IrqLockGuard::Alone(lock.lock()),
        }
    }
}

/// A lock that is held.
#[must_use = "the lock is released when this is dropped"]
pub enum IrqLockGuard<'a, T> {
    /// Interrupts have been disabled before, and stay so.
    Within(SpinLockGuard<'a, T>),
    /// It keeps them disabled.
    Alone(SpinLockIrqGuard<'a, T>),
}

impl<T> Deref for IrqLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Within(guard) => guard,
            Self::Alone(guard) => guard,
        }
    }
}

impl<T: Unpin> DerefMut for IrqLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::Within(guard) => guard,
            Self::Alone(guard) => guard,
        }
    }
}

/// Returns whether interrupts are disabled on this CPU, as they are in an interrupt handler.
pub fn are_disabled() -> bool {
    // SAFETY: Callable from any context.
    unsafe { bindings::irqs_disabled() }
}

/// Keeps the thread from being preempted while it exists.
///
/// Has no effect on a realtime kernel, where locks may sleep.
pub struct NoPreemption(NotThreadSafe);

impl NoPreemption {
    /// Disables preemption.
    #[inline]
    pub fn begin() -> Self {
        if cfg!(not(CONFIG_PREEMPT_RT)) {
            // SAFETY: Callable from any context; `drop` enables it again, on the same thread.
            unsafe { bindings::preempt_disable() };
        }
        Self(NotThreadSafe)
    }
}

impl Drop for NoPreemption {
    #[inline]
    fn drop(&mut self) {
        if cfg!(not(CONFIG_PREEMPT_RT)) {
            // SAFETY: This thread has disabled it in `begin`.
            unsafe { bindings::preempt_enable() };
        }
    }
}
