// SPDX-License-Identifier: GPL-2.0

//! What the kernel crate's RCU support lacks.
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
