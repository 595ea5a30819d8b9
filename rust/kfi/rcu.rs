// SPDX-License-Identifier: GPL-2.0

//! What the kernel crate's RCU support lacks.
//!
//! # Sections
//!
//! Operations that may be called from atomic context run in read-side critical sections of
//! [`kernel::sync::rcu`], for which close waits; code of the provider is in them. That it does not
//! sleep there is a rule of the kernel that no type of the kernel crate enforces, as for what is done
//! with a spinlock held: without `CONFIG_PREEMPT_RCU` a section ends where its thread sleeps, and the
//! object may be gone when it goes on. A kernel with `CONFIG_DEBUG_ATOMIC_SLEEP` complains of whoever
//! breaks it, which fails any test.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h).

use super::bindings;

/// Waits until all RCU read-side critical sections that have begun are over; may sleep.
///
/// Expedited, as a consumer that shuts down closes objects by the thousand and waits for each.
pub(super) fn synchronize_expedited() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { bindings::synchronize_rcu_expedited() };
}

/// Waits until no task is preempted in code that it had entered before; may sleep.
pub(super) fn synchronize_tasks() {
    // SAFETY: As above.
    unsafe { bindings::synchronize_rcu_tasks() };
}
