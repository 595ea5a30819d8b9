// SPDX-License-Identifier: GPL-2.0

//! Wait objects of counters and queues: a wait queue of their own, or a wait set.

use kernel::{
    prelude::*,
    sync::LockClassKey, //
};

use super::{
    Absent,
    WaitAttr,
    WaitSetClass,
    WaitSetOps, //
};
use crate::kfi::{
    control::Control,
    hold::Hold,
    linux::wait_queue::WaitQueue,
    wait_obj::WaitObj, //
};

/// The wait object that a new counter or queue is to have.
pub struct WaitWith<S: WaitSetOps = Absent<WaitSetClass>> {
    /// Its type.
    wait_obj: WaitObj,
    /// The wait set, for that type.
    set: Option<Hold<S>>,
}

impl<S: WaitSetOps> WaitWith<S> {
    /// Takes what was asked for; `EINVAL` for what is no wait set of this provider, and for one that
    /// `accepts` refuses, as that of another fabric (R-CNTR-13).
    pub fn new(attr: WaitAttr<'_>, accepts: impl FnOnce(&S) -> bool) -> Result<Self> {
        let wait_obj = attr.wait_obj();
        let set = match attr {
            WaitAttr::Set(set) => {
                let set = set.ok_or(EINVAL)?.downcast::<S>().ok_or(EINVAL)?;
                if !accepts(set) {
                    return Err(EINVAL);
                }
                Some(Hold::new(set)?)
            }
            WaitAttr::None | WaitAttr::Unspec | WaitAttr::Queue => None,
        };
        Ok(Self { wait_obj, set })
    }

    /// Returns whether it is a wait set.
    pub fn has_set(&self) -> bool {
        self.set.is_some()
    }
}

/// The wait object of a counter or a queue, whether or not consumers see it.
///
/// A change of the object is followed by a wake-up of [`Self::queue`], or told to [`Self::set`].
#[pin_data]
pub struct WaitSource<S: WaitSetOps = Absent<WaitSetClass>> {
    wait_obj: WaitObj,
    set: Option<Hold<S>>,
    #[pin]
    queue: WaitQueue,
}

impl<S: WaitSetOps> WaitSource<S> {
    /// Creates it, with a name and a class for the lock of the wait queue.
    pub fn new(
        with: WaitWith<S>,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        let WaitWith { wait_obj, set } = with;
        pin_init!(Self {
            wait_obj,
            set,
            queue <- WaitQueue::new(name, key),
        })
    }

    /// Returns the type of the wait object.
    pub fn wait_obj(&self) -> WaitObj {
        self.wait_obj
    }

    /// Returns the type of the wait object as consumers see it: one that was not specified can be
    /// taken for a wait queue.
    pub fn shown(&self) -> WaitObj {
        match self.wait_obj {
            WaitObj::Unspec => WaitObj::Queue,
            wait_obj => wait_obj,
        }
    }

    /// Returns the wait set.
    pub fn set(&self) -> Option<&Hold<S>> {
        self.set.as_ref()
    }

    /// Returns the wait queue.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    /// Returns whether threads can wait for the object by itself; `EINVAL` if it has no wait object,
    /// or is waited for through a wait set only.
    pub fn check(&self) -> Result {
        match self.wait_obj {
            WaitObj::None | WaitObj::Set => Err(EINVAL),
            WaitObj::Unspec | WaitObj::Queue => Ok(()),
        }
    }

    /// Answers control commands about the wait object; `ENOSYS` to all others.
    pub fn control<'a>(&'a self, command: Control<'a>) -> Result {
        match command {
            Control::GetWait(out) => match (self.wait_obj, &self.set) {
                (WaitObj::Queue, _) => out.set(&self.queue),
                (WaitObj::Set, Some(set)) => out.set(set.wait_queue()?),
                (WaitObj::Unspec, _) => return Err(ENOSYS),
                _ => return Err(EINVAL),
            },
            Control::GetWaitObj(out) => out.set(self.shown()),
            _ => return Err(ENOSYS),
        }
        Ok(())
    }

    /// Leaves the wait set; the object is being closed.
    pub fn release(&self) {
        if let Some(set) = &self.set {
            set.release();
        }
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_wait_source)]
mod tests {
    use super::*;
    use crate::kfi::bindings;
    use kernel::static_lock_class;

    /// Asks a wait object, as a consumer does, for its type and for itself.
    fn ask(attr: WaitAttr<'_>) -> Result<(Result<WaitObj>, Result<bool>)> {
        let with = WaitWith::<Absent<WaitSetClass>>::new(attr, |_| false)?;
        let source = KBox::pin_init(
            WaitSource::new(with, c"wait source test", static_lock_class!()),
            GFP_KERNEL,
        )?;
        let mut number = 0;
        // SAFETY: The command takes a `enum kfi_wait_obj *`.
        let command = unsafe {
            Control::from_raw(
                bindings::KFI_GETWAITOBJ.cast_signed(),
                (&raw mut number).cast(),
            )
        }?;
        let wait_obj = source
            .control(command)
            .and_then(|()| WaitObj::try_from(number));
        let mut queue: *mut c_void = core::ptr::null_mut();
        // SAFETY: The command takes a `void **`.
        let command = unsafe {
            Control::from_raw(bindings::KFI_GETWAIT.cast_signed(), (&raw mut queue).cast())
        }?;
        let found = source
            .control(command)
            .map(|()| queue == source.queue().as_raw().cast());
        assert!(source.control(Control::Enable) == Err(ENOSYS));
        assert_eq!(source.check().is_ok(), wait_obj == Ok(WaitObj::Queue));
        Ok((wait_obj, found))
    }

    #[test]
    fn a_wait_queue_is_told() -> Result {
        assert!(ask(WaitAttr::Queue)? == (Ok(WaitObj::Queue), Ok(true)));
        Ok(())
    }

    #[test]
    fn what_was_not_specified_is_not_told_but_named() -> Result {
        assert!(ask(WaitAttr::Unspec)? == (Ok(WaitObj::Queue), Err(ENOSYS)));
        Ok(())
    }

    #[test]
    fn without_a_wait_object_there_is_nothing_to_tell() -> Result {
        assert!(ask(WaitAttr::None)? == (Ok(WaitObj::None), Err(EINVAL)));
        Ok(())
    }

    #[test]
    fn a_wait_set_must_be_one() {
        assert!(ask(WaitAttr::Set(None)).err() == Some(EINVAL));
    }
}
