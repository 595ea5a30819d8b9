// SPDX-License-Identifier: GPL-2.0

//! A value that many threads add to, and the limit from which on an addition has to be attended to.
//!
//! Counters mostly add, so that is one function of C from the first to the last instruction. From Rust
//! each inline function of the kernel would be a call: the section, the addition and the comparison
//! together would cost several times what the addition does.

use kernel::{
    prelude::*,
    sync::atomic::Atomic, //
};

use super::bindings;

/// A value, and the limit from which on an addition has to be attended to.
// As the functions of C see it.
#[repr(C)]
pub struct Tally {
    /// The value.
    pub value: Atomic<u64>,
    /// Keeps the cache line that every addition writes from what every addition reads: CPUs that add at the
    /// same time would have to fetch it from each other once more, as they read before they write.
    _gap: [u64; 7],
    /// An addition that makes the value this high, or makes it pass 2^64, is attended to.
    pub attention: Atomic<u64>,
    /// How many events have been counted by [`Self::count`].
    pub events: Atomic<u64>,
}

kernel::static_assert!(size_of::<Tally>() == size_of::<bindings::kfi_rust_tally>());
kernel::static_assert!(align_of::<Tally>() >= align_of::<bindings::kfi_rust_tally>());
kernel::static_assert!(
    core::mem::offset_of!(Tally, attention)
        == core::mem::offset_of!(bindings::kfi_rust_tally, attention)
);
kernel::static_assert!(
    core::mem::offset_of!(Tally, events) == core::mem::offset_of!(bindings::kfi_rust_tally, events)
);

/// Attends to an addition; gets its owner, the value that was added, the sum, and how many events had been
/// counted when the addition was yet to be made.
///
/// It is called in an RCU read-side critical section that has begun before the addition.
pub(super) type Attend = unsafe extern "C" fn(*mut c_void, u64, u64, u64);

impl Tally {
    /// Only less than this is added by [`Self::add`] and [`Self::count`]: a thread that sees the
    /// value fall can then tell that it has passed 2^64.
    pub const LIMIT: u64 = 1 << 32;

    /// The value 0.
    pub const fn new(attention: u64) -> Self {
        Self {
            value: Atomic::new(0),
            _gap: [0; 7],
            attention: Atomic::new(attention),
            events: Atomic::new(0),
        }
    }

    /// Returns the tally for C.
    fn as_ptr(&self) -> *mut bindings::kfi_rust_tally {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    /// Adds `value` in an RCU read-side critical section, in which `attend` is called if the sum has
    /// to be attended to.
    ///
    /// Fully ordered: the limit is read after the addition. Returns 0.
    ///
    /// # Safety
    ///
    /// `attend` may be called with `owner` as long as the section lasts. `tally` must be valid when
    /// the call begins, and its memory must stay until the end of an RCU read-side critical section
    /// that has begun before the addition.
    #[inline]
    pub(super) unsafe fn add(
        tally: *const Self,
        value: u64,
        owner: *mut c_void,
        attend: Attend,
    ) -> c_int {
        // SAFETY: By the safety requirements; the layout is the same, and all fields are atomic.
        unsafe { bindings::tally_add(tally.cast_mut().cast(), value, owner, Some(attend)) }
    }

    /// Adds `value`, counts that as so many `events`, and returns the sum if it has to be attended to.
    ///
    /// Fully ordered: the limit is read after the addition.
    #[inline]
    pub fn count(&self, value: u64, events: u64) -> Option<u64> {
        let mut sum = 0;
        // SAFETY: The tally is valid, the layout is the same, and all fields are atomic.
        unsafe { bindings::tally_count(self.as_ptr(), value, events, &mut sum) }.then_some(sum)
    }
}
