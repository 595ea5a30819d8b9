// SPDX-License-Identifier: GPL-2.0

//! Handlers that consumers open queues with.

use crate::kfi::linux::users::Users;

/// The handler of a queue, and its calls. It is called while the queue is open.
pub(super) struct Handler<F> {
    function: Option<F>,
    calls: Users,
}

impl<F: Copy> Handler<F> {
    /// A handler, if there is one, of a queue that is not open yet.
    pub(super) fn new(function: Option<F>) -> Self {
        Self {
            function,
            calls: Users::new(),
        }
    }

    /// Returns the handler.
    pub(super) fn function(&self) -> Option<F> {
        self.function
    }

    /// The queue is open.
    pub(super) fn opened(&self) {
        // C knows the queue already, and may have closed it; then this does nothing.
        let _ = self.calls.open();
    }

    /// Waits for the calls that are under way, and lets no other begin.
    pub(super) fn closing(&self) {
        self.calls.close();
    }

    /// Has `call` call the handler, if there is one and the queue is open, which it is until this
    /// returns. In process context, without locks: the handler may sleep.
    pub(super) fn call(&self, call: impl FnOnce(F)) {
        kernel::task::might_sleep();
        let Some(function) = self.function else {
            return;
        };
        let Some(_use) = self.calls.use_it() else {
            return;
        };
        call(function);
    }
}

#[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
pub(super) mod tests {
    use crate::kfi::{
        context::Context,
        fid::{
            Class,
            Fid,
            NewFid,
            Object,
            Opening,
            TestFid, //
        }, //
    };
    use core::ptr;
    use kernel::{
        prelude::*,
        sync::atomic::{
            ordering,
            Atomic, //
        }, //
    };

    /// Counts a call.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a number.
    pub(in crate::kfi::provider) unsafe extern "C" fn count<H>(
        _queue: *mut H,
        context: *mut c_void,
    ) {
        // SAFETY: By the safety requirements.
        unsafe { &*context.cast::<Atomic<u32>>() }.fetch_add(1, ordering::Relaxed);
    }

    /// Checks that `call` calls the handler [`count`], of which `data` knows, while a queue is open.
    pub(in crate::kfi::provider) fn is_called_while_open<T: Object>(
        queue: impl Fn() -> T,
        data: impl Fn() -> <T::Class as Class>::Data,
        call: impl Fn(&Fid<T>),
    ) -> Result {
        let calls = Atomic::new(0u32);
        let count_of = || calls.load(ordering::Relaxed);
        let context = Context::from_raw(ptr::from_ref(&calls).cast_mut().cast());

        let new = NewFid::new(queue(), Opening::new(context, data()))?;
        let never = new.arc();
        call(&never);
        drop(new);
        call(&never);
        assert_eq!(count_of(), 0);

        let open = TestFid::open_with(queue(), context, data())?;
        call(&open);
        assert_eq!(count_of(), 1);
        let closed = open.arc();
        drop(open);
        call(&closed);
        assert_eq!(count_of(), 1);
        // The thread that was opening it comes too late.
        T::Class::opened(closed.data());
        call(&closed);
        assert_eq!(count_of(), 1);
        Ok(())
    }
}
