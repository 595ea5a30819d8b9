// SPDX-License-Identifier: GPL-2.0

//! RCU functions that the kernel crate lacks.
//!
//! # Sections
//!
//! Operations that may be called from atomic context run in read-side critical sections of
//! [`kernel::sync::rcu`], for which close waits; code of the provider is in them. That it does not
//! sleep there is a rule of the kernel that no type of the kernel crate enforces, as for what is done
//! with a spinlock held: without `CONFIG_PREEMPT_RCU` a section ends where its thread sleeps, and the
//! object may be gone when it goes on. A kernel with `CONFIG_DEBUG_ATOMIC_SLEEP` complains of a
//! thread that breaks it, which fails any test.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h).

#[cfg(linux_rcu)]
use kernel::{
    prelude::*,
    static_lock_class, //
};

use super::bindings;

/// Waits until all RCU read-side critical sections that have begun are over; may sleep.
///
/// Expedited, as a consumer that shuts down closes many objects and waits for each.
#[cfg(linux_rcu)]
pub fn synchronize_expedited() {
    // SAFETY: May be called from any context that may sleep.
    unsafe { bindings::synchronize_rcu_expedited() };
}

/// Calls `run` once, in a thread that may sleep, when all RCU read-side critical sections that have
/// begun are over; from a context that may sleep.
///
/// Calls within a while share a grace period, and none of them waits for it.
///
/// # Safety
///
/// `work` must be valid for writes and stay in place until `run` has been called with it, and be used
/// by nobody else until then. `run` must be callable with the `work` in it, and its code must stay
/// until it has returned.
#[cfg(linux_rcu)]
pub unsafe fn call_after_sections(
    work: *mut bindings::rcu_work,
    run: unsafe extern "C" fn(*mut bindings::work_struct),
) {
    // SAFETY: By the safety requirements; the name and the key are static, and so is the queue.
    unsafe {
        bindings::init_work_with_key(
            &raw mut (*work).work,
            Some(run),
            false,
            c"rcu::call_after_sections".as_char_ptr(),
            static_lock_class!().as_ptr(),
        );
        bindings::queue_rcu_work(bindings::system_dfl_wq, work);
    }
}

/// Waits until no task is preempted in code that it had entered before; may sleep.
pub fn synchronize_tasks() {
    // SAFETY: As above.
    unsafe { bindings::synchronize_rcu_tasks() };
}
