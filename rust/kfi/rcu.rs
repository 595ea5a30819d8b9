// SPDX-License-Identifier: GPL-2.0

//! What the kernel crate's RCU support lacks.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h).

/// Waits until all RCU read-side critical sections that have begun are over; may sleep.
///
/// Expedited, as a consumer that shuts down closes objects by the thousand and waits for each.
pub(crate) fn synchronize_expedited() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { super::bindings::synchronize_rcu_expedited() };
}
