// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h).

use super::bindings;

/// Returns a number that nobody can foresee.
pub fn random_u64() -> u64 {
    // SAFETY: May be called from any context.
    unsafe { bindings::get_random_u64() }
}
