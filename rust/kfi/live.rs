// SPDX-License-Identifier: GPL-2.0

//! What keeps the code of this module.
//!
//! A fabric that is open pins the module. But the last dependent of a fabric may still be on its way
//! out, or the memory of an object outlive its close in the hands of a work item, when the fabric is
//! closed and the module unloaded: they run code of the module once more, and may sleep in it. So the
//! module's exit waits for them.

use kernel::prelude::*;

use super::{
    rcu,
    users::Users, //
};

/// Of this module: every module compiles this file.
static LIVE: Users = Users::new_open();

/// Something whose end is code of this module. The module stays until the last is dropped.
pub(super) struct Live(());

impl Live {
    /// One more; `ENODEV` if the module is going.
    pub(super) fn new() -> Result<Self> {
        // To drop one that has not begun would end another.
        LIVE.enter().then(|| Self(())).ok_or(ENODEV)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.leave();
    }
}

/// Waits until there is nothing of it left and nobody in code that led to that, and lets there be
/// nothing any more; may sleep. The end of a module.
pub(super) fn wait_for_the_last() {
    LIVE.close();
    // Whoever dropped the last one may have been preempted on the way out, with nothing left to do
    // but return.
    rcu::synchronize_tasks();
}
