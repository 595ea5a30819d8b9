// SPDX-License-Identifier: GPL-2.0

//! References that keep the code of this module.
//!
//! When a module goes, nothing may stay that the kernel would find in it: a work queue, a file, the
//! registration of a device. These end with what owns them, which the module drops. But safe code may
//! forget or leak it. So the last that a module does is to wait for all of that: see [`Rooted`], and
//! [`rooted_module!`], which makes such a module. An object that was leaked never ends, so the module
//! is never unloaded; its memory and its code are there for threads that still look at them.

use kernel::{
    prelude::*,
    InPlaceModule, //
};

use super::{
    rcu,
    users::Users, //
};

/// Functions and data that the kernel finds in this module, until its [`Exit`].
static FOUND: Users = Users::new();

/// After so many milliseconds the end of a module says what it waits for. It waits for leaked objects
/// for ever.
pub const REPORT_AFTER_MS: c_uint = 10_000;

/// Something that the kernel finds in this module. The module stays until the last is dropped.
pub struct Findable(());

impl Findable {
    /// One more; `ENODEV` if the module is not [`Rooted`], or is going.
    pub fn new() -> Result<Self> {
        // To drop one that has not begun would end another.
        FOUND.enter().then(|| Self(())).ok_or(ENODEV)
    }
}

#[cfg(linux_work_queue)]
impl Findable {
    /// Leaves it to [`Self::from_kept`] to have it dropped.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    /// Returns one that was kept.
    ///
    /// # Safety
    ///
    /// Each call belongs to one of [`Self::keep`] before it, and to no other.
    pub(super) unsafe fn from_kept() -> Self {
        Self(())
    }
}

/// Returns how many there are.
#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
pub(super) fn count() -> usize {
    FOUND.count()
}

impl Drop for Findable {
    fn drop(&mut self) {
        FOUND.leave();
    }
}

/// The root object of a module, for [`rooted_module!`].
pub trait Root: Sized + Send + Sync + 'static {
    /// Loads the module.
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error>;
}

/// A [`Root`] that the kernel loads and unloads. [`rooted_module!`] implements this.
///
/// # Safety
///
/// The module that this crate becomes must have been made by `module!` with the type `Rooted<Self>`.
pub unsafe trait Loaded: Root {}

/// A loaded module, as the kernel knows it: what it consists of, and how it ends.
///
/// Without it a module has no work queues, files, registrations and listeners. Only that of the
/// module's own type can be made, by the kernel, which drops it before the module goes. Any other safe
/// code could leak.
#[pin_data]
pub struct Rooted<T> {
    #[pin]
    root: T,
    // Dropped last, and the first that is initialised: so it is there before what it waits for, and
    // waits after that has been dropped, also if the init fails.
    exit: Exit,
}

impl<T: Loaded> InPlaceModule for Rooted<T> {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            exit: Exit::new()?,
            root <- T::init(module),
        }? Error)
    }
}

/// Makes a module of a [`Root`]: `root: TYPE`, and then what `module!` takes after its `type`.
///
/// A module that was made by `module!` itself is not [`Rooted`].
// Two of these in a crate, or one beside a `module!`, would both define the functions that the kernel
// loads a module with, and do not compile.
#[allow(unused_macros, reason = "a module need not be one of these")]
macro_rules! rooted_module {
    (root: $root:ty, $($rest:tt)*) => {
        ::kernel::prelude::module! {
            type: $crate::kfi::linux::live::Rooted<$root>,
            $($rest)*
        }

        // SAFETY: `module!` is above, in this crate.
        unsafe impl $crate::kfi::linux::live::Loaded for $root {}
    };
}
#[allow(unused_imports, reason = "not every module needs it")]
pub(crate) use rooted_module;

/// The end of the module: when it is dropped it waits until the kernel finds nothing of the module any
/// more, and nobody is in its code that led to that.
struct Exit(());

impl Exit {
    /// Lets the kernel find things in the module; `EBUSY` for all but the first.
    ///
    /// There is one in a [`Rooted`] of the module's own type only. The first of these is that of the
    /// kernel, which initialises a module before any code of it runs elsewhere, and drops it before the
    /// module goes.
    fn new() -> Result<Self> {
        FOUND.open().then(|| Self(())).ok_or(EBUSY)
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        FOUND.close_or_tell(REPORT_AFTER_MS, |count| {
            pr_warn!("its end waits for {count} work queues, files, handlers or the like\n");
        });
        // The thread that dropped the last one may have been preempted on the way out, with nothing
        // left to do but return.
        rcu::synchronize_tasks();
    }
}

#[cfg(unit_tests)]
#[kunit_tests(linux_live)]
mod tests {
    use super::super::{
        debugfs::Dir,
        work_queue::{
            WorkQueue,
            WorkQueueFlags, //
        }, //
    };
    use super::*;
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
        let queue = WorkQueue::new(c"linux_test", WorkQueueFlags::UNBOUND);
        let queue = Arc::pin_init(queue, GFP_KERNEL)?;
        assert_eq!(count(), before + 1);
        // Not before it is gone: its memory may be where its items are.
        queue.destroy();
        assert_eq!(count(), before + 1);
        drop(queue);
        assert_eq!(count(), before);

        let dir = Dir::new(c"linux_test")?;
        let file = dir.read_callback_file(c"file", (), nothing);
        let file = KBox::pin_init(file, GFP_KERNEL)?;
        assert_eq!(count(), before + 2);
        drop((dir, file));
        assert_eq!(count(), before);
        Ok(())
    }

    #[test]
    fn folders_stay_as_long_as_what_is_below_them() -> Result {
        let before = count();
        // A folder that goes takes all with it that is in it.
        let dir = Dir::new(c"linux_test_above")?.subdir(c"b")?.subdir(c"c")?;
        assert_eq!(count(), before + 3);
        let file = dir.read_callback_file(c"file", (), nothing);
        let file = KBox::pin_init(file, GFP_KERNEL)?;
        drop(dir);
        assert_eq!(count(), before + 4);
        drop(file);
        assert_eq!(count(), before);
        Ok(())
    }

    #[test]
    fn a_module_has_one_root() {
        let module = kernel::module::this_module::<crate::LocalModule>();
        let again = KBox::pin_init(crate::LocalModule::init(module), GFP_KERNEL);
        assert_eq!(again.err(), Some(EBUSY));
    }
}
