// SPDX-License-Identifier: GPL-2.0

//! What keeps the code of this module.
//!
//! A fabric that is open pins the module. But the last dependent of a fabric may still be on its way
//! out, or the memory of an object outlive its close in the hands of a work item, when the fabric is
//! closed and the module unloaded: they run code of the module once more, and may sleep in it. So the
//! module's exit waits for them.
//!
//! Nor may anything stay that the kernel would find in the module: a work queue, a file, the
//! registration of a provider or a device. These end with what owns them, which the module drops. But
//! safe code may forget or leak it. So the last that a module does is to wait for all of that, too:
//! see [`Exit`]. What was leaked, nothing ends, and the module never goes; its memory and its code are
//! there for those who still look at them.

use kernel::prelude::*;

use super::{
    rcu,
    users::Users, //
};

/// The objects of this module: every module compiles this file.
static LIVE: Users = Users::new_open();

/// What the kernel finds in this module, while there is an [`Exit`].
static KEPT: Users = Users::new();

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
/// nothing any more; may sleep. The end of a provider.
pub(super) fn wait_for_the_last() {
    LIVE.close();
    // Whoever dropped the last one may have been preempted on the way out, with nothing left to do
    // but return.
    rcu::synchronize_tasks();
}

/// Something that the kernel finds in this module. The module stays until the last is dropped.
pub(super) struct Kept(());

impl Kept {
    /// One more; `ENODEV` if the module has no [`Exit`], or is going.
    pub(super) fn new() -> Result<Self> {
        // As for `Live`.
        KEPT.enter().then(|| Self(())).ok_or(ENODEV)
    }
}

/// Returns how many there are.
#[cfg(all(CONFIG_KUNIT = "y", kfi_tests))]
fn count() -> usize {
    KEPT.count()
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.leave();
    }
}

/// The end of the module: when it is dropped it waits until the kernel finds nothing of the module any
/// more, and nobody is in its code that led to that.
///
/// Without it a module has no work queues, files, registrations and listeners. It is the last field
/// of the module's type, and the first that is initialised: so it is there before what it waits for,
/// and waits after that has been dropped, if the init fails, too.
pub(crate) struct Exit(());

impl Exit {
    /// Lets the kernel find things in the module.
    ///
    /// # Safety
    ///
    /// Called once. What is returned must be dropped before the module's exit or its init, if that
    /// fails, returns.
    pub(crate) unsafe fn new() -> Self {
        KEPT.open();
        Self(())
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        KEPT.close();
        // As for the end of a provider.
        rcu::synchronize_tasks();
    }
}

#[cfg(kfi_tests)]
#[kunit_tests(kfi_live)]
mod tests {
    use super::*;
    use crate::kfi::{
        debugfs::Dir,
        work_queue::{
            WorkQueue,
            WorkQueueFlags, //
        }, //
    };
    use kernel::{
        fmt,
        sync::Arc, //
    };

    /// Shows nothing.
    fn nothing(_: &(), _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    #[test]
    fn what_the_kernel_finds_is_waited_for() -> Result {
        let before = count();
        let queue = WorkQueue::new(c"kfi_test", WorkQueueFlags::UNBOUND);
        let queue = Arc::pin_init(queue, GFP_KERNEL)?;
        assert_eq!(count(), before + 1);
        // Not before it is gone: its memory may be where its items are.
        queue.destroy();
        assert_eq!(count(), before + 1);
        drop(queue);
        assert_eq!(count(), before);

        let dir = Dir::new(c"kfi_test")?;
        let file = dir.read_callback_file(c"file", (), nothing);
        let file = KBox::pin_init(file, GFP_KERNEL)?;
        assert_eq!(count(), before + 2);
        drop((dir, file));
        assert_eq!(count(), before);
        Ok(())
    }

    #[test]
    fn a_handler_is_waited_for() -> Result {
        let before = count();
        let calls = crate::kfi::consumer::Calls::new()?;
        assert_eq!(count(), before + 1);
        drop(calls);
        assert_eq!(count(), before);
        Ok(())
    }
}
