// SPDX-License-Identifier: GPL-2.0

//! Uses of something that somebody waits for before it goes.
//!
//! C header: [`include/linux/wait_bit.h`](srctree/include/linux/wait_bit.h).

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

use super::bindings;

/// Counts uses, from when there may be some until there are to be no more.
///
/// # Invariants
///
/// The word is the number of uses, and of calls that find out that there are to be none, plus
/// [`Self::UNOPENED`] until [`Self::open`] or [`Self::close`], and [`Self::CLOSED`] from the
/// beginning of [`Self::close`], which is final.
pub struct Users(Atomic<usize>);

/// A use.
#[cfg(linux_users)]
pub struct Use<'a>(&'a Users);

impl Users {
    /// No use begins any more.
    const CLOSED: usize = 1 << (usize::BITS - 1);

    /// No use begins yet.
    const UNOPENED: usize = Self::CLOSED >> 1;

    /// No uses before [`Self::open`].
    pub const fn new() -> Self {
        // INVARIANT: There are none.
        Self(Atomic::new(Self::UNOPENED))
    }

    /// No uses so far, but there may be some from the beginning.
    #[cfg(linux_users)]
    pub const fn new_open() -> Self {
        // INVARIANT: There are none.
        Self(Atomic::new(0))
    }

    /// Lets there be uses, unless it is open, or [`Self::close`] has begun; returns whether it does.
    pub fn open(&self) -> bool {
        // Relaxed: `cmpxchg` validates it.
        let mut word = self.0.load(ordering::Relaxed);
        while word & Self::UNOPENED != 0 {
            // INVARIANT: Open from here on; a thread that came too early goes on to leave.
            // Release: a thread that uses it sees all that was done to make it.
            // See `qemu-test/litmus/users-open.litmus`.
            match self
                .0
                .cmpxchg(word, word & !Self::UNOPENED, ordering::Release)
            {
                Ok(_) => return true,
                Err(current) => word = current,
            }
        }
        false
    }

    /// Returns how many uses there are.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub fn count(&self) -> usize {
        // Relaxed: a snapshot.
        self.0.load(ordering::Relaxed) & !(Self::CLOSED | Self::UNOPENED)
    }

    /// Begins a use; `false` if it is too early or too late. From any context.
    pub fn enter(&self) -> bool {
        // INVARIANT: One more, which the caller or the line below ends.
        // Acquire: what is used is not looked at before.
        if self.0.fetch_add(1, ordering::Acquire) & (Self::CLOSED | Self::UNOPENED) == 0 {
            return true;
        }
        self.leave();
        false
    }

    /// Ends a use that [`Self::enter`] has begun. `self` may be gone from then on.
    pub fn leave(&self) {
        let word = core::ptr::from_ref(&self.0);
        // INVARIANT: The caller is a user.
        // Full: what the use did comes before the end, and the end before the look at the waiting
        // threads.
        // See `qemu-test/litmus/users-end.litmus` and
        // `qemu-test/litmus/users-wait.litmus`.
        if self.0.fetch_sub(1, ordering::Full) == Self::CLOSED | 1 {
            // SAFETY: It looks for threads that wait under that address, and not behind it.
            unsafe { bindings::wake_up_var(word.cast_mut().cast()) };
        }
    }

    /// As [`Self::enter`], for a use that ends when what is returned is dropped.
    #[cfg(linux_users)]
    pub fn use_it(&self) -> Option<Use<'_>> {
        // Not `then_some`: to drop a use ends it.
        self.enter().then(|| Use(self))
    }

    /// Returns whether somebody waits for the end of the uses, or has done so. From any context.
    #[cfg(linux_users)]
    pub fn is_closing(&self) -> bool {
        // Relaxed: a hint to end a use soon, which nothing else hangs on.
        self.0.load(ordering::Relaxed) & Self::CLOSED != 0
    }

    /// Lets no use begin any more and waits until those that have begun are over; may sleep. To do
    /// it again only waits.
    pub fn close(&self) {
        kernel::task::might_sleep();
        self.refuse_more();
        let word = core::ptr::from_ref(&self.0).cast_mut();
        // SAFETY: The word stays during the call, and is changed atomically only.
        unsafe { bindings::wait_for_value(word.cast(), Self::CLOSED.cast_signed()) };
    }

    /// As [`Self::close`], but waits for so many milliseconds at most; returns whether all are over.
    pub fn close_within(&self, ms: c_uint) -> bool {
        kernel::task::might_sleep();
        self.refuse_more();
        let (word, value) = (core::ptr::from_ref(&self.0), Self::CLOSED.cast_signed());
        // SAFETY: The word stays during the call, and is changed atomically only.
        unsafe { bindings::wait_for_value_within(word.cast_mut().cast(), value, ms) }
    }

    /// As [`Self::close`], and if some are not over after so many milliseconds says how many.
    pub fn close_or_tell(&self, ms: c_uint, tell: impl FnOnce(usize)) {
        if !self.close_within(ms) {
            // Relaxed: a snapshot.
            tell(self.0.load(ordering::Relaxed) & !Self::CLOSED);
        }
        self.close();
    }

    /// Lets no use begin any more.
    fn refuse_more(&self) {
        let mut word = self.0.load(ordering::Relaxed);
        while word & Self::CLOSED == 0 {
            // INVARIANT: From here on no use begins, nor is it opened.
            // Full: what comes after the close comes after this.
            let closed = (word & !Self::UNOPENED) | Self::CLOSED;
            match self.0.cmpxchg(word, closed, ordering::Full) {
                Ok(_) => break,
                Err(current) => word = current,
            }
        }
    }
}

#[cfg(linux_users)]
impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(unit_tests)]
#[kernel::macros::kunit_tests(linux_users)]
mod tests {
    use super::*;

    #[test]
    fn uses_end() {
        let users = Users::new_open();
        let one = users.use_it();
        let other = users.use_it();
        assert!(one.is_some() && other.is_some());
        drop((one, other));
        users.close();
        users.close();
    }

    #[test]
    fn nobody_uses_what_is_not_open_yet() {
        let users = Users::new();
        assert!(users.use_it().is_none());
        assert!(!users.enter());
        assert!(users.open());
        assert!(users.use_it().is_some());
        users.close();
    }

    #[test]
    fn a_close_that_takes_long_tells_how_many_there_are() {
        let users = Users::new_open();
        let uses = (users.use_it(), users.use_it());
        let mut told = None;
        assert!(!users.is_closing());
        users.close_or_tell(1, |count| {
            told = Some(count);
            // A user may end before it is done.
            assert!(users.is_closing());
            drop(uses);
        });
        assert_eq!(told, Some(2));
        // There are none.
        assert!(users.close_within(1));
        users.close_or_tell(1, |count| told = Some(count));
        assert_eq!(told, Some(2));
    }

    #[test]
    fn it_opens_once() {
        let users = Users::new();
        assert!(users.open());
        let one = users.use_it();
        assert!(!users.open());
        assert_eq!(users.count(), 1);
        drop(one);
        users.close();
        assert!(!users.open());
        assert!(users.use_it().is_none());
    }

    #[test]
    fn what_never_opens_can_be_closed() {
        let users = Users::new();
        users.close();
        assert!(users.use_it().is_none());
        // The thread that was to open it comes too late.
        assert!(!users.open());
        assert!(users.use_it().is_none());
        users.close();
    }

    #[test]
    fn nobody_uses_what_is_closed() {
        let users = Users::new_open();
        users.close();
        assert!(users.use_it().is_none());
        assert!(!users.enter());
        users.close();
    }
}
