// SPDX-License-Identifier: GPL-2.0

//! Objects and the registration of a provider, for which the module stays.
//!
//! A fabric that is open pins the module. But the last dependent of a fabric may still be on its way
//! out, or the memory of an object outlive its close in the hands of a work item, when the fabric is
//! closed and the module unloaded: they run code of the module once more, and may sleep in it. So the
//! end of the registration waits for them, which is in the module's exit.

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

use super::linux::{
    live::REPORT_AFTER_MS,
    rcu,
    users::Users, //
};

/// The objects of this module: every module compiles this file.
static LIVE: Users = Users::new_open();

/// Whether there is, or has been, the registration of a provider: its end is that of [`LIVE`].
static PROVIDER: Atomic<bool> = Atomic::new(false);

/// Lets there be the registration of a provider; `EBUSY` for all but the first.
pub(super) fn only_provider() -> Result {
    // Relaxed: nothing else is told by it.
    let first = PROVIDER.cmpxchg(false, true, ordering::Relaxed);
    first.map(drop).map_err(|_| EBUSY)
}

/// Something whose end is code of this module. The module stays until the last is dropped.
pub struct Live(());

impl Live {
    /// One more; `ENODEV` if the module is going.
    pub fn new() -> Result<Self> {
        // To drop one that has not begun would end another.
        LIVE.enter().then(|| Self(())).ok_or(ENODEV)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.leave();
    }
}

/// Waits until the last [`Live`] was dropped, and no thread is in code any more that has dropped one;
/// from here on there is no new one. May sleep. Ends the registration of a provider.
pub(super) fn wait_for_the_last() {
    LIVE.close_or_tell(REPORT_AFTER_MS, |count| {
        pr_warn!("its end waits for {count} objects that are still referred to\n");
    });
    // The thread that dropped the last one may have been preempted on the way out, with nothing
    // left to do but return.
    rcu::synchronize_tasks();
}
