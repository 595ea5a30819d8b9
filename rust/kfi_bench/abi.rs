// SPDX-License-Identifier: GPL-2.0

//! The cases, which are in C: see `bench.h`.

use kernel::{
    error::to_result,
    prelude::*,
    str::CStr,
    sync::atomic::{
        ordering,
        Atomic, //
    }, //
};

use crate::bindings;

/// The result of one measurement.
pub(crate) struct Sample {
    /// Nanoseconds, or bytes.
    pub(crate) total: u64,
    /// Over how many operations.
    pub(crate) count: u64,
}

/// A figure that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Case(&'static bindings::kfi_bench_case);

impl Case {
    /// Returns the case with this number, if there is one.
    pub(crate) fn get(index: usize) -> Option<Self> {
        // SAFETY: Callable at any time; the cases are constants of this module.
        unsafe { bindings::kfi_bench_case(index).as_ref() }.map(Self)
    }

    /// Returns a text of the case.
    fn text(text: *const c_char) -> &'static CStr {
        // SAFETY: The texts of cases are constants of this module.
        unsafe { CStr::from_char_ptr(text) }
    }

    /// Returns what is measured.
    pub(crate) fn item(self) -> &'static CStr {
        Self::text(self.0.item)
    }

    /// Returns whose figure it is.
    pub(crate) fn design(self) -> &'static CStr {
        Self::text(self.0.design)
    }

    /// Returns the unit.
    pub(crate) fn unit(self) -> &'static CStr {
        Self::text(self.0.unit)
    }

    /// Returns what the figure depends on.
    pub(crate) fn size(self) -> u64 {
        self.0.size
    }

    /// Returns whether it takes turns with another one, which is beside it: then what disturbs the
    /// machine disturbs both.
    pub(crate) fn takes_turns(self, other: Self) -> bool {
        let kept = self.0.kept || other.0.kept;
        self.item() == other.item() && (!kept || self.size() == other.size())
    }

    /// Measures once. Latencies of single operations, if they are taken, are added to `latencies`,
    /// as far as there is room. May sleep.
    pub(crate) fn run(self, _objects: &mut Objects, latencies: &mut KVVec<u32>) -> Result<Sample> {
        let room = latencies.spare_capacity_mut();
        let mut sample = bindings::kfi_bench_sample {
            latencies: room.as_mut_ptr().cast(),
            latency_room: u32::try_from(room.len()).unwrap_or(u32::MAX),
            ..Default::default()
        };
        let run = self.0.run.ok_or(EINVAL)?;
        // SAFETY: The case is one, its objects are open and used by no other; the sample is valid, and
        // there is as much room.
        to_result(unsafe { run(self.0, &mut sample) })?;
        let taken = sample.latency_count.min(sample.latency_room) as usize;
        // SAFETY: So many were written behind the last one, where there is room for them.
        unsafe { latencies.inc_len(taken) };
        Ok(Sample {
            total: sample.total,
            count: sample.count,
        })
    }
}

/// The objects that all cases use, open.
///
/// # Invariants
///
/// The objects are open, and there is one of this at most.
pub(crate) struct Objects(());

/// Whether there is an [`Objects`], or was one.
static OPENED: Atomic<bool> = Atomic::new(false);

impl Objects {
    /// Opens them; `EBUSY` if that was done before. May sleep.
    pub(crate) fn open() -> Result<Self> {
        // Relaxed: nothing but that it is the first call hangs on it.
        if OPENED.xchg(true, ordering::Relaxed) {
            return Err(EBUSY);
        }
        // SAFETY: Called once, as was just seen.
        to_result(unsafe { bindings::kfi_bench_setup() })?;
        // INVARIANT: It was the first call.
        Ok(Self(()))
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // SAFETY: They are open by the type invariants, and no case is running, as that would borrow them.
        unsafe { bindings::kfi_bench_teardown() };
    }
}

/// Returns how many rounds count.
pub(crate) fn rounds() -> u32 {
    // SAFETY: Callable at any time.
    unsafe { bindings::kfi_bench_rounds() }
}
