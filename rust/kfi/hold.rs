// SPDX-License-Identifier: GPL-2.0

//! The dependents of an object, and when it may be closed.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        rcu,
        Arc, //
    }, //
};

use super::fid::{
    Class,
    Fid,
    Object, //
};

/// Counts the dependents of an object and knows whether it is open.
///
/// "No dependents, so close" is one atomic step: the count shares a word with the bit that says "not
/// open", so that a new dependent and a close cannot both win.
///
/// # Invariants
///
/// The word is either [`Self::NOT_OPEN`], before [`Self::open`] and after [`Self::close`], or the
/// number of dependents.
pub struct Dependents(Atomic<usize>);

impl Dependents {
    /// The object is not open yet, or is closing.
    const NOT_OPEN: usize = 1 << (usize::BITS - 1);

    /// No dependents, not open.
    pub(super) const fn new() -> Self {
        // INVARIANT: Not open.
        Self(Atomic::new(Self::NOT_OPEN))
    }

    /// Lets there be dependents; called once, when the object opens.
    pub(super) fn open(&self) {
        // INVARIANT: The number of dependents is 0.
        // Release: a thread that holds it sees all that was done to make it.
        // See `qemu-test/litmus/KFI-hold-open.litmus`.
        self.0.store(0, ordering::Release);
    }

    /// Adds a dependent, if the object is open.
    pub(super) fn hold(&self) -> bool {
        // Relaxed: `cmpxchg` validates the value.
        let mut old = self.0.load(ordering::Relaxed);
        // Memory cannot hold as many dependents as that.
        while old < Self::NOT_OPEN - 1 {
            // INVARIANT: `old` was the number of dependents; there is one more.
            // Acquire: no later access may move up, before the object is known to stay.
            match self.0.cmpxchg(old, old + 1, ordering::Acquire) {
                Ok(_) => return true,
                Err(current) => old = current,
            }
        }
        false
    }

    /// Removes `count` dependents that [`Self::hold`] added.
    pub(super) fn release(&self, count: usize) {
        // INVARIANT: These were dependents, so the word is a number that is not less.
        // Release: pairs with the acquire in `close`, which must see all that the dependents did.
        // See `qemu-test/litmus/KFI-hold-close.litmus`.
        self.0.fetch_sub(count, ordering::Release);
    }

    /// Begins to close; fails if there are dependents or it is not open.
    pub(super) fn close(&self) -> bool {
        // INVARIANT: Nobody depends on the object, and nobody will: `hold` fails from here on.
        // Full: acquires what dependents released, and no later access moves up.
        self.0.cmpxchg(0, Self::NOT_OPEN, ordering::Full).is_ok()
    }

    /// Returns whether the object is open; it may be closed at once.
    pub(super) fn is_open(&self) -> bool {
        // Relaxed: a snapshot.
        self.0.load(ordering::Relaxed) & Self::NOT_OPEN == 0
    }

    /// Returns the number of dependents, 0 when it is not open. For diagnostics.
    pub fn count(&self) -> usize {
        // Relaxed: a snapshot.
        self.0.load(ordering::Relaxed) & !Self::NOT_OPEN
    }
}

/// A dependent's hold on an object, which cannot be closed meanwhile.
///
/// # Invariants
///
/// `held` says whether this is counted in the dependents of `fid`.
pub struct Hold<T: Object> {
    fid: Arc<Fid<T>>,
    held: Atomic<bool>,
}

impl<T: Object> Hold<T> {
    /// Becomes a dependent of `fid`. Fails with `EINVAL` if it is not open.
    pub fn new(fid: &Fid<T>) -> Result<Self> {
        if !fid.dependents().hold() {
            return Err(EINVAL);
        }
        // INVARIANT: It has just been counted.
        Ok(Self {
            fid: fid.arc(),
            held: Atomic::new(true),
        })
    }

    /// Gives up the hold; the object's memory stays until this is dropped.
    ///
    /// To do it again has no effect.
    pub fn release(&self) {
        // INVARIANT: The thread that takes `held` from `true` to `false` removes the count.
        // Full: the accesses made under the hold come before it ends.
        // See `qemu-test/litmus/KFI-once.litmus`.
        if self.held.xchg(false, ordering::Full) {
            self.fid.dependents().release(1);
        }
    }

    /// Returns the object.
    pub fn fid(&self) -> &Arc<Fid<T>> {
        &self.fid
    }
}

impl<T: Object> core::ops::Deref for Hold<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.fid
    }
}

impl<T: Object> Drop for Hold<T> {
    fn drop(&mut self) {
        // INVARIANT: Nobody else can take it from `true` to `false` any more.
        if core::mem::replace(self.held.get_mut(), false) {
            self.fid.dependents().release(1);
        }
    }
}

/// A dependent's hold on an object that ends with its last use.
///
/// A thread that sees the effects of that may close the object at once, so that the hold has to
/// end before the use. Close waits for RCU read-side critical sections, or the memory of the object
/// does, so that the use is in one.
///
/// There is no reference that keeps the object's memory, as the object cannot be closed: that is why
/// it costs less than [`Hold`].
///
/// # Invariants
///
/// This is counted in the dependents of the object, so that its memory stays; and the class of the
/// object has operations for which close waits.
pub struct HoldOnce<T: Object>(NonNull<Fid<T>>);

// SAFETY: It refers to the object as a shared reference does, and objects are `Sync`. It never drops
// the object.
unsafe impl<T: Object> Send for HoldOnce<T> {}
// SAFETY: As above.
unsafe impl<T: Object> Sync for HoldOnce<T> {}

impl<T: Object> HoldOnce<T> {
    /// Becomes a dependent of `fid`. Fails with `EINVAL` if it is not open.
    pub fn new(fid: &Fid<T>) -> Result<Self> {
        const { assert!(<T::Class as Class>::RCU_OPERATIONS) };
        if !fid.dependents().hold() {
            return Err(EINVAL);
        }
        // INVARIANT: It has just been counted, and see above for the class.
        Ok(Self(NonNull::from(fid)))
    }

    /// Returns the object.
    #[inline]
    pub fn fid(&self) -> &Fid<T> {
        // SAFETY: By the type invariants it is not closed as long as this exists.
        unsafe { self.0.as_ref() }
    }

    /// Ends the hold and uses the object, from any context.
    #[inline]
    pub fn use_last(self, f: impl FnOnce(&T)) {
        HoldsOnce::new(self).use_last(f);
    }
}

impl<T: Object> Drop for HoldOnce<T> {
    fn drop(&mut self) {
        // Close may free the object as soon as this has taken effect, but for the section.
        let _section = rcu::read_lock();
        // SAFETY: By the type invariants, as above.
        unsafe { self.0.as_ref() }.dependents().release(1);
    }
}

/// Some [`HoldOnce`] on one object, which end together with a single use of it.
///
/// # Invariants
///
/// As for [`HoldOnce`], and this is counted `count` times.
pub struct HoldsOnce<T: Object> {
    fid: NonNull<Fid<T>>,
    count: usize,
}

impl<T: Object> HoldsOnce<T> {
    /// One hold.
    #[inline]
    pub fn new(hold: HoldOnce<T>) -> Self {
        let hold = ManuallyDrop::new(hold);
        // INVARIANT: That was counted once, and is not dropped.
        Self {
            fid: hold.0,
            count: 1,
        }
    }

    /// Adds a hold on the same object; returns one that is on another object.
    #[inline]
    pub fn add(&mut self, hold: HoldOnce<T>) -> core::result::Result<(), HoldOnce<T>> {
        if self.fid != hold.0 {
            return Err(hold);
        }
        let _counted = ManuallyDrop::new(hold);
        // INVARIANT: That was counted once, and is not dropped. There are not more dependents than a word
        // can count.
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// Ends the holds and uses the object, from any context.
    #[inline]
    pub fn use_last(self, f: impl FnOnce(&T)) {
        let this = ManuallyDrop::new(self);
        let _section = rcu::read_lock();
        // SAFETY: By the type invariants the object was not closed when the section began, and close,
        // or the thread that frees it then, waits for its end.
        let fid = unsafe { this.fid.as_ref() };
        // INVARIANT: Counted until here, and dropped no more.
        fid.dependents().release(this.count);
        f(fid);
    }
}

impl<T: Object> Drop for HoldsOnce<T> {
    fn drop(&mut self) {
        // As in `HoldOnce`.
        let _section = rcu::read_lock();
        // SAFETY: By the type invariants, as there.
        unsafe { self.fid.as_ref() }
            .dependents()
            .release(self.count);
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_hold)]
mod tests {
    use super::*;

    fn opened() -> Dependents {
        let dependents = Dependents::new();
        dependents.open();
        dependents
    }

    #[test]
    fn nobody_holds_or_closes_what_is_not_open() {
        let dependents = Dependents::new();
        assert!(!dependents.is_open());
        assert!(!dependents.hold());
        assert!(!dependents.close());
        assert_eq!(dependents.count(), 0);
        dependents.open();
        assert!(dependents.is_open());
        assert!(dependents.hold());
        assert!(dependents.is_open());
    }

    #[test]
    fn close_waits_for_the_last_dependent() {
        let dependents = opened();
        assert!(dependents.hold());
        assert!(dependents.hold());
        assert!(!dependents.close());
        dependents.release(1);
        assert!(!dependents.close());
        assert_eq!(dependents.count(), 1);
        dependents.release(1);
        assert!(dependents.close());
    }

    #[test]
    fn some_leave_together() {
        let dependents = opened();
        for _ in 0..3 {
            assert!(dependents.hold());
        }
        dependents.release(2);
        assert_eq!(dependents.count(), 1);
        assert!(!dependents.close());
        dependents.release(1);
        assert!(dependents.close());
    }

    #[test]
    fn nobody_holds_what_is_closing() {
        let dependents = opened();
        assert!(dependents.close());
        assert!(!dependents.is_open());
        assert!(!dependents.hold());
        assert!(!dependents.close());
        assert_eq!(dependents.count(), 0);
    }

    #[test]
    fn refused_close_changes_nothing() {
        let dependents = opened();
        assert!(dependents.hold());
        assert!(!dependents.close());
        assert!(dependents.hold());
        assert_eq!(dependents.count(), 2);
    }
}
