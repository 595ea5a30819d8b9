// SPDX-License-Identifier: GPL-2.0

//! Memory that is registered.
//!
//! It is the consumer's again when the close of the region returns, or the call that was to open it
//! fails. Until then it is used under guards, [`RegionUse`], which the abstractions wait for before
//! they return, whatever the provider does: so the provider need not promise anything.

use core::{
    cell::Cell,
    marker::PhantomPinned,
    ops::Deref, //
};
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    }, //
};

use super::{
    Cursor,
    Memory,
    Source,
    SourceBuffers,
    Target, //
};
use crate::kfi::{
    flags::AccessFlags,
    linux::{
        linear::Linear,
        users::Users, //
    }, //
};

/// Memory as described by the caller that registers it.
///
/// # Invariants
///
/// - It stays valid until the region is closed, for writes if `writable`.
/// - The owner ends the uses of what is put in `captured` before that.
pub struct RegionBuffers<'a> {
    buffers: SourceBuffers<'a>,
    writable: bool,
    captured: &'a Captured,
    _once: Linear,
}

impl<'a> RegionBuffers<'a> {
    /// Memory that may be used as `access` says.
    ///
    /// # Safety
    ///
    /// Until the region is closed, or the call returns that was to open it if it fails, the memory must
    /// be valid, for writes if `access` has [`AccessFlags::REMOTE_WRITE`]. `captured` must be handed to
    /// the region, or dropped before that call returns.
    pub(in crate::kfi) unsafe fn new(
        buffers: SourceBuffers<'a>,
        access: AccessFlags,
        captured: &'a Captured,
    ) -> Self {
        // INVARIANT: By the safety requirements, as `Captured` ends the uses when it is dropped, and
        // the region when it is closed.
        Self {
            buffers,
            writable: access.contains(AccessFlags::REMOTE_WRITE),
            captured,
            _once: Linear,
        }
    }

    /// Returns the number of ranges.
    pub fn count(&self) -> usize {
        self.buffers.count()
    }

    /// Checks the description and returns the number of bytes; `EINVAL` if it is none.
    pub fn len(&self) -> Result<usize> {
        self.buffers.len()
    }

    /// Returns the address of the first byte, for display only; 0 if it has none.
    pub fn address(&self) -> usize {
        self.buffers.address()
    }

    /// Copies the description; `with` is what the provider has to know of the region.
    ///
    /// The memory is used from now on until the region is closed, or the call fails that opens it. `with`
    /// is dropped with the last reference, which may be that of a use, in any context and after the close
    /// has returned: its drop must not sleep.
    pub fn capture<T, E>(
        self,
        with: impl PinInit<T, E>,
        flags: Flags,
    ) -> Result<Arc<RegionMemory<T>>>
    where
        T: Send + Sync + 'static,
        Error: From<E>,
    {
        // SAFETY: It is used under `users` only, which are closed before the region is, by the type
        // invariants.
        let memory = unsafe { self.buffers.capture(flags, None) }?;
        let region = Arc::try_pin_init(
            // INVARIANT: By the type invariants.
            try_pin_init!(RegionMemory {
                memory,
                writable: self.writable,
                users: Users::new_open(),
                with <- with,
                _pin: PhantomPinned,
            }? Error),
            flags,
        )?;
        // INVARIANT: Here it is put. There is none yet, as this is not used twice.
        self.captured.0.set(Some(region.clone()));
        Ok(region)
    }
}

/// Memory of a region.
///
/// # Invariants
///
/// Until `users` are closed, `memory` is valid, for writes if `writable`.
#[pin_data]
pub struct RegionMemory<T> {
    memory: Memory<Source>,
    writable: bool,
    users: Users,
    #[pin]
    with: T,
    /// The memory does not move to another region, as others look for it by this one.
    #[pin]
    _pin: PhantomPinned,
}

impl<T> RegionMemory<T> {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Begins to use the memory; `None` if the region is closed. From any context.
    ///
    /// Close waits for the end of the use, whatever signals come, and must not be waited for in it: see
    /// [`RegionUse::is_closing`].
    pub fn enter(this: &Arc<Self>) -> Option<RegionUse<T>> {
        // INVARIANT: Counted from here on. Not `then_some`: to drop a use ends it.
        this.users.enter().then(|| RegionUse(this.clone()))
    }
}

impl<T> Deref for RegionMemory<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.with
    }
}

/// A use of the memory of a region, which is not closed meanwhile.
///
/// # Invariants
///
/// This is counted in the users of the memory.
pub struct RegionUse<T>(Arc<RegionMemory<T>>);

impl<T> RegionUse<T> {
    /// Returns a place in the memory, from which it is read.
    pub fn source(&self, offset: usize) -> Cursor<'_, Source> {
        self.0.memory.cursor(offset)
    }

    /// Returns a place in the memory, from which it is read or written; `EACCES` if the region is
    /// none that peers may write.
    pub fn target(&self, offset: usize) -> Result<Cursor<'_, Target>> {
        if !self.0.writable {
            return Err(EACCES);
        }
        // SAFETY: It is writable, and in use by the type invariants.
        Ok(unsafe { self.0.memory.target_cursor(offset) })
    }

    /// Returns whether the region is being closed, which waits for the end of this: a use that takes
    /// long is to end early. From any context.
    pub fn is_closing(&self) -> bool {
        self.0.users.is_closing()
    }
}

impl<T> Deref for RegionUse<T> {
    type Target = RegionMemory<T>;

    fn deref(&self) -> &RegionMemory<T> {
        &self.0
    }
}

impl<T> Drop for RegionUse<T> {
    fn drop(&mut self) {
        // INVARIANT: Dropped.
        self.0.users.leave();
    }
}

/// Memory of a region, whatever the provider has to know of that.
trait Registered: Send + Sync {
    /// Lets no use begin any more and waits until those that have begun are over; may sleep.
    fn close(&self);
}

impl<T: Send + Sync> Registered for RegionMemory<T> {
    fn close(&self) {
        self.users.close();
    }
}

/// The memory of a region that is being opened. Dropped, it closes it.
#[derive(Default)]
pub(in crate::kfi) struct Captured(Cell<Option<Arc<dyn Registered>>>);

impl Captured {
    /// Hands it to the region, which was opened.
    pub(in crate::kfi) fn hand_to(&self, region: &RegionData) {
        if let Some(memory) = self.0.take() {
            // A region is opened once.
            region.0.populate(memory);
        }
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        if let Some(memory) = self.0.take() {
            memory.close();
        }
    }
}

/// The data that the abstractions keep of a region: its memory, if the provider uses it.
#[derive(Default)]
pub struct RegionData(SetOnce<Arc<dyn Registered>>);

impl RegionData {
    /// Ends the use of the memory; may sleep.
    pub(in crate::kfi) fn close(&self) {
        if let Some(memory) = self.0.as_ref() {
            memory.close();
        }
    }
}

#[cfg(unit_tests)]
#[kernel::macros::kunit_tests(kfi_region_memory)]
mod tests {
    use super::*;
    use crate::kfi::linux::work_queue::{
        new_work,
        Work,
        WorkItem,
        WorkQueue,
        WorkQueueFlags, //
    };
    use kernel::{
        new_spinlock,
        sync::{
            atomic::{
                ordering,
                Atomic, //
            },
            SpinLock, //
        },
        time::{
            delay::fsleep,
            Delta, //
        }, //
    };

    /// Writes to a region, late.
    #[pin_data]
    struct Late {
        #[pin]
        used: SpinLock<Option<RegionUse<()>>>,
        /// Whether the region was being closed meanwhile.
        waited_for: Atomic<bool>,
        #[pin]
        work: Work<Late>,
    }

    impl WorkItem for Late {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            let used = this.used.lock().take();
            fsleep(Delta::from_millis(20));
            let waited_for = used.as_ref().is_some_and(RegionUse::is_closing);
            this.waited_for.store(waited_for, ordering::Relaxed);
            if let Some(mut target) = used.as_ref().and_then(|used| used.target(0).ok()) {
                target.write(&[7]);
            }
        }
    }

    /// Memory as C describes it.
    fn buffers<'a>(
        bytes: &'a mut [u8],
        access: AccessFlags,
        captured: &'a Captured,
    ) -> RegionBuffers<'a> {
        // SAFETY: The memory is valid longer than the regions of the tests, which close them.
        unsafe {
            let buffers = SourceBuffers::one(bytes.as_mut_ptr().cast(), bytes.len());
            RegionBuffers::new(buffers, access, captured)
        }
    }

    #[test]
    fn only_what_peers_may_write_is_written() -> Result {
        let mut bytes = [1u8, 2, 3];
        for (access, writable) in [
            (AccessFlags::REMOTE_READ, false),
            (AccessFlags::READ, false),
            (AccessFlags::REMOTE_WRITE, true),
        ] {
            let captured = Captured::default();
            let memory = buffers(&mut bytes, access, &captured);
            assert_eq!(memory.len()?, 3);
            let memory = memory.capture((), GFP_KERNEL)?;
            let used = RegionMemory::enter(&memory).ok_or(EINVAL)?;
            assert!(!used.is_closing());
            let mut read = [0u8; 2];
            assert_eq!(used.source(1).read(&mut read), 2);
            assert_eq!(read, [2, 3]);
            assert_eq!(used.target(0).is_ok(), writable);
            if let Ok(mut target) = used.target(0) {
                assert_eq!(target.write(&[7]), 1);
            }
        }
        assert_eq!(bytes, [7, 2, 3]);
        Ok(())
    }

    #[test]
    fn what_is_not_opened_is_not_used() -> Result {
        let mut bytes = [0u8; 4];
        let captured = Captured::default();
        let access = AccessFlags::REMOTE_WRITE;
        let memory = buffers(&mut bytes, access, &captured);
        let memory = memory.capture((), GFP_KERNEL)?;
        assert!(RegionMemory::enter(&memory).is_some());
        // The call has failed.
        drop(captured);
        assert!(RegionMemory::enter(&memory).is_none());
        Ok(())
    }

    #[test]
    fn what_is_closed_is_not_used() -> Result {
        let mut bytes = [0u8; 4];
        let captured = Captured::default();
        let access = AccessFlags::REMOTE_WRITE;
        let memory = buffers(&mut bytes, access, &captured);
        let memory = memory.capture((), GFP_KERNEL)?;
        let region = RegionData::default();
        captured.hand_to(&region);
        drop(captured);
        assert!(RegionMemory::enter(&memory).is_some());
        region.close();
        assert!(RegionMemory::enter(&memory).is_none());
        region.close();
        Ok(())
    }

    #[test]
    fn close_waits_for_the_last_use() -> Result {
        let queue = KBox::pin_init(
            WorkQueue::new(c"kfi_test", WorkQueueFlags::PER_CPU),
            GFP_KERNEL,
        )?;
        let mut bytes = [0u8; 4];
        let captured = Captured::default();
        let access = AccessFlags::REMOTE_WRITE;
        let memory = buffers(&mut bytes, access, &captured);
        let memory = memory.capture((), GFP_KERNEL)?;
        let late = Arc::pin_init(
            pin_init!(Late {
                used <- new_spinlock!(RegionMemory::enter(&memory)),
                waited_for: Atomic::new(false),
                work <- new_work!("kfi_region_memory test"),
            }),
            GFP_KERNEL,
        )?;
        assert!(queue.queue(late.clone()));
        // The memory may be freed from here on.
        drop(captured);
        assert_eq!(bytes, [7, 0, 0, 0]);
        // Relaxed: before the end of the use, which was waited for.
        assert!(late.waited_for.load(ordering::Relaxed));
        Ok(())
    }
}
