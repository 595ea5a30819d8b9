// SPDX-License-Identifier: GPL-2.0

//! Work queues of our own, and work items that are part of an object.
//!
//! The kernel crate has work items, but no queue that can be created and destroyed, and no cancel.
//! Here a queued item owns a reference of its object, and is written without `unsafe`:
//!
//! ```ignore
//! #[pin_data]
//! struct Receiver {
//!     #[pin]
//!     retry: Work<Receiver>,
//! }
//!
//! impl WorkItem for Receiver {
//!     fn work(&self) -> &Work<Self> {
//!         &self.retry
//!     }
//!
//!     fn run(this: Arc<Self>) {
//!         // ...
//!     }
//! }
//!
//! // In the initialiser: `retry <- new_work!("Receiver::retry")`.
//! queue.queue_delayed(receiver.clone(), msecs_to_jiffies(10));
//! // In `release`: `self.retry.cancel_sync()`.
//! ```
//!
//! # Life
//!
//! Items run code of this module, which does not go before the queue has: see
//! [`live`](super::live). For the module to go, the queue belongs to an object that its users close
//! and that depends on nothing but the module, or on objects that outlive it. When that object is
//! released, before it gives up the first object that it depends on, it calls [`WorkQueue::destroy`],
//! which returns when no item of the queue is running, waiting or delayed, and none can be queued any
//! more. An item that would otherwise wait for a delay is cancelled by the object that it is part of.
//!
//! An item that needs nothing but its own object can be run by a work queue of the kernel's, and keeps
//! the module itself, until it has run: see [`queue_anywhere`].
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h).

use core::{
    marker::PhantomPinned,
    ops::Range,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    container_of,
    cpu::CpuId,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        barrier::smp_mb,
        Arc,
        Completion,
        LockClassKey, //
    },
    time::Jiffies,
    types::Opaque, //
};

use super::bindings;
use super::live::Findable;

/// The kind of a work queue.
#[derive(Clone, Copy)]
pub struct WorkQueueFlags(c_uint);

impl WorkQueueFlags {
    /// Items run on the CPU that queued them, or on the one that was asked for.
    #[allow(dead_code, reason = "not every module needs it")]
    pub const PER_CPU: Self = Self(bindings::wq_flags_WQ_PERCPU);
    /// Items run wherever there is time.
    pub const UNBOUND: Self = Self(bindings::wq_flags_WQ_UNBOUND);
    /// Items of a per-CPU queue that run for long do not keep others from running.
    #[allow(dead_code, reason = "not every module needs it")]
    pub const CPU_INTENSIVE: Self = Self(bindings::wq_flags_WQ_CPU_INTENSIVE);
    /// Items are run by threads of the highest priority that ordinary threads have.
    #[allow(dead_code, reason = "not every module needs it")]
    pub const HIGH_PRIORITY: Self = Self(bindings::wq_flags_WQ_HIGHPRI);
    /// Items make progress even when there is no memory for another thread.
    #[allow(dead_code, reason = "not every module needs it")]
    pub const MEM_RECLAIM: Self = Self(bindings::wq_flags_WQ_MEM_RECLAIM);

    /// Returns the flags of both.
    #[allow(dead_code, reason = "not every module needs it")]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A work queue.
///
/// # Invariants
///
/// - `raw` is a work queue that exists until [`Self::destroy`] destroys it.
/// - `users` is the number of items that are in it or delayed, and of calls that are about to queue
///   one, plus [`Self::CLOSING`] from the beginning of `destroy`, which is final.
/// - With `CLOSING`, `users` only falls. So it comes to 0 once, if it was more when `destroy` began,
///   and the user that brings it there, the last one, completes `idle`. `destroy` waits for that, and
///   nobody gives the queue up before `destroy` returns: the queue stays until the last user is done
///   with it. Each other user does not touch it after it has left.
#[pin_data(PinnedDrop)]
pub struct WorkQueue {
    raw: NonNull<bindings::workqueue_struct>,
    users: Atomic<usize>,
    /// Completed when there are no users any more, and will be none.
    #[pin]
    idle: Completion,
    /// Dropped last: the module stays as long as `raw` may run its code.
    _findable: Findable,
}

// SAFETY: Work queues may be used from any thread.
unsafe impl Send for WorkQueue {}
// SAFETY: As above.
unsafe impl Sync for WorkQueue {}

impl WorkQueue {
    /// Being destroyed.
    const CLOSING: usize = 1 << (usize::BITS - 1);

    /// Creates a work queue; may sleep.
    pub fn new(name: &CStr, flags: WorkQueueFlags) -> impl PinInit<Self, Error> + use<'_> {
        // The default number of items at once.
        Self::with_places(name, flags, 0)
    }

    /// Creates a work queue that runs up to `places` items at once; may sleep.
    pub fn with_places(
        name: &CStr,
        flags: WorkQueueFlags,
        places: u8,
    ) -> impl PinInit<Self, Error> + use<'_> {
        try_pin_init!(Self {
            _findable: Findable::new()?,
            // INVARIANT: It exists from here on; nobody uses it.
            // SAFETY: The format takes one text, which `name` is.
            raw: NonNull::new(unsafe {
                bindings::alloc_workqueue_noprof(
                    c"%s".as_char_ptr(),
                    flags.0,
                    c_int::from(places),
                    name.as_char_ptr(),
                )
            })
            .ok_or(ENOMEM)?,
            users: Atomic::new(0),
            idle <- Completion::new(),
        })
    }

    /// Counts a user, unless the queue is being destroyed.
    fn enter(&self) -> bool {
        // Relaxed: only a first guess.
        let mut users = self.users.load(ordering::Relaxed);
        // Not an addition that is taken back: that one might find itself the last user, beside another.
        while users & Self::CLOSING == 0 {
            // INVARIANT: The caller is about to queue an item, and the queue is not being destroyed.
            // Full: the queue is not used before it is known to stay.
            match self
                .users
                .cmpxchg(users, users.wrapping_add(1), ordering::Full)
            {
                Ok(_) => return true,
                Err(current) => users = current,
            }
        }
        false
    }

    /// Takes back what [`Self::enter`] has counted. If the caller is not an item of the queue that
    /// is running, the queue may be gone from here on.
    fn leave(&self) {
        // INVARIANT: The caller was a user. The last one, of which there is one at most, completes.
        // Full: what the user did comes before the end of the queue.
        // See `qemu-test/litmus/work-queue-end.litmus`.
        if self.users.fetch_sub(1, ordering::Full) == Self::CLOSING | 1 {
            self.idle.complete_all();
        }
    }

    /// Queues an item to be run soon; from any context, a hard interrupt included.
    ///
    /// Returns `false` and drops the reference if it is queued already (and is yet to run), or the
    /// queue has been destroyed. An item that is running can be queued again; it does not run on
    /// two CPUs at once. Dropping the reference is what the caller has to be ready for.
    pub fn queue<T: WorkItem<ID>, const ID: u64>(&self, item: Arc<T>) -> bool {
        self.queue_delayed_on(item, 0, || None)
    }

    /// As [`Self::queue`], to be run on `cpu`, if there is one and it is online.
    ///
    /// For per-CPU queues.
    #[allow(dead_code, reason = "not every module needs it")]
    pub fn queue_on<T: WorkItem<ID>, const ID: u64>(
        &self,
        item: Arc<T>,
        cpu: Option<CpuId>,
    ) -> bool {
        self.queue_delayed_on(item, 0, || cpu)
    }

    /// As [`Self::queue`], to be run on another CPU than this one, if there is another one that is online.
    #[allow(dead_code, reason = "not every module needs it")]
    pub fn queue_elsewhere<T: WorkItem<ID>, const ID: u64>(&self, item: Arc<T>) -> bool {
        self.queue_delayed_on(item, 0, other_cpu)
    }

    /// As [`Self::queue`], to be run after `delay`.
    #[allow(dead_code, reason = "not every module needs it")]
    pub fn queue_delayed<T: WorkItem<ID>, const ID: u64>(
        &self,
        item: Arc<T>,
        delay: Jiffies,
    ) -> bool {
        self.queue_delayed_on(item, delay, || None)
    }

    /// As [`Self::queue_delayed`], but an item that is queued and does not run yet is queued
    /// anew, with this delay and in this queue.
    #[allow(dead_code, reason = "not every module needs it")]
    pub fn modify_delayed<T: WorkItem<ID>, const ID: u64>(
        &self,
        item: Arc<T>,
        delay: Jiffies,
    ) -> bool {
        // Not mod_delayed_work(): what it returns does not tell whether the item is in the queue
        // afterwards if somebody cancels it meanwhile.
        item.work().cancel();
        self.queue_delayed_on(item, delay, || None)
    }

    /// Queues an item, if it is not queued yet, to be run on the CPU that `choose` then says, if any.
    fn queue_delayed_on<T: WorkItem<ID>, const ID: u64>(
        &self,
        item: Arc<T>,
        delay: Jiffies,
        choose: impl FnOnce() -> Option<CpuId>,
    ) -> bool {
        if !self.enter() {
            return false;
        }
        // INVARIANT: It owns one use of the queue.
        let Some(work) = take(item, ptr::from_ref(self).cast_mut()) else {
            self.leave();
            return false;
        };
        // SAFETY: See `take`.
        let work = unsafe { work.as_ref() };
        let cpu = choose().filter(|cpu| is_online(*cpu));
        // SAFETY: The queue exists, as it has a user, and keeps the code that the item runs. The item
        // is initialised and stays, as the reference of its object is given up only by the thread
        // that takes `owner` out, which the kernel will not do twice: see `Work`.
        let queued = unsafe {
            bindings::queue_delayed_work_on(
                cpu.map_or(bindings::wq_misc_consts_WORK_CPU_UNBOUND, |cpu| {
                    cpu.as_u32()
                })
                .cast_signed(),
                self.raw.as_ptr(),
                work.raw.get(),
                delay,
            )
        };
        if !queued {
            // It is being cancelled, and is not in any queue.
            // SAFETY: The item is the caller's, as `owner` was taken and the kernel refused it.
            drop(unsafe { work.take_back() });
        }
        queued
    }

    /// Waits until all items that are in the queue, not those that are delayed, have run. For tests.
    #[cfg(all(CONFIG_KUNIT = "y", unit_tests))]
    pub fn flush(&self) {
        if self.enter() {
            // SAFETY: The queue exists, as it has a user.
            unsafe { bindings::__flush_workqueue(self.raw.as_ptr()) };
            self.leave();
        }
    }

    /// Waits for all items and destroys the queue; to do it again has no effect.
    ///
    /// Must not be called by an item of the queue. Sleeps, also until items that are delayed have
    /// run: the owner of such items cancels them before. From the beginning of this on nothing is
    /// queued, by items neither.
    pub fn destroy(&self) {
        // Not an addition, as two of them would cancel each other out.
        let mut users = self.users.load(ordering::Relaxed);
        loop {
            if users & Self::CLOSING != 0 {
                return;
            }
            // INVARIANT: From here on no item is added.
            // Full: what users have done comes before the end of the queue.
            match self
                .users
                .cmpxchg(users, users | Self::CLOSING, ordering::Full)
            {
                Ok(_) => break,
                Err(current) => users = current,
            }
        }
        if users != 0 {
            // A thread that is counted sees the mark when it leaves, and the last one completes
            // this, once: when the wait has ended, nobody else is about to.
            self.idle.wait_for_completion();
        }
        // INVARIANT: Destroyed, once, as the mark is final.
        // SAFETY: The queue exists by the type invariants. Nothing is in it nor delayed, as there
        // are no users; the call waits for items that are running.
        unsafe { bindings::destroy_workqueue(self.raw.as_ptr()) };
    }
}

#[pinned_drop]
impl PinnedDrop for WorkQueue {
    fn drop(self: Pin<&mut Self>) {
        self.destroy();
    }
}

/// Makes a reference of its object the owner of an item, which is to be queued in `queue`; `None` if it
/// has an owner, and the reference is dropped.
///
/// The item is the caller's then, and stays, with the reference that it owns.
fn take<T: WorkItem<ID>, const ID: u64>(
    item: Arc<T>,
    queue: *mut WorkQueue,
) -> Option<NonNull<Work<T, ID>>> {
    let owner = Arc::into_raw(item);
    // SAFETY: The reference that `into_raw` leaks keeps it.
    let work = unsafe { &*owner }.work();
    // INVARIANT: The item is the caller's, and so is one reference of `owner`.
    // Full, and a barrier of its own, as an exchange that fails orders nothing: a thread that
    // finds it taken has done before what the run will see.
    // See `qemu-test/litmus/work-queue-queued.litmus`.
    smp_mb(ordering::Full);
    if work
        .owner
        .cmpxchg(ptr::null_mut(), owner.cast_mut(), ordering::Full)
        .is_err()
    {
        // SAFETY: From `into_raw` above, and not given to the item.
        drop(unsafe { Arc::from_raw(owner) });
        return None;
    }
    work.queue.store(queue, ordering::Release);
    Some(NonNull::from(work))
}

/// As [`WorkQueue::queue`], in a work queue that the kernel has for everybody, whose items run wherever
/// there is time. The module stays until the item has run.
///
/// `false` also if the module is not [`Rooted`](super::live::Rooted), or is going.
#[allow(dead_code, reason = "not every module needs it")]
pub fn queue_anywhere<T: WorkItem<ID>, const ID: u64>(item: Arc<T>) -> bool {
    let Ok(findable) = Findable::new() else {
        return false;
    };
    let Some(work) = take(item, ptr::null_mut()) else {
        return false;
    };
    // SAFETY: See `take`.
    let work = unsafe { work.as_ref() };
    // INVARIANT: The item keeps the module.
    findable.keep();
    // SAFETY: The queue always exists. The item keeps the code that it runs. For the rest see
    // `WorkQueue::queue_delayed_on`.
    let queued = unsafe {
        bindings::queue_delayed_work_on(
            bindings::wq_misc_consts_WORK_CPU_UNBOUND.cast_signed(),
            bindings::system_dfl_wq,
            work.raw.get(),
            0,
        )
    };
    if !queued {
        // It is being cancelled, and is not in any queue.
        // SAFETY: The item is the caller's, as `owner` was taken and the kernel refused it.
        drop(unsafe { work.take_back() });
    }
    queued
}

/// Returns whether a CPU runs things at the moment.
fn is_online(cpu: CpuId) -> bool {
    // SAFETY: The mask always exists; `CpuId` is in its bounds. The bits change under our eyes,
    // which the function is made for.
    unsafe {
        bindings::cpumask_test_cpu(
            cpu.as_u32().cast_signed(),
            &raw mut bindings::__cpu_online_mask,
        )
    }
}

/// Returns the next CPU behind this one that is online.
fn other_cpu() -> Option<CpuId> {
    let this = CpuId::current().as_u32();
    let first_of = |numbers: Range<u32>| {
        let mut cpus = numbers.map_while(CpuId::from_u32);
        cpus.find(|cpu| is_online(*cpu))
    };
    first_of(this.saturating_add(1)..u32::MAX).or_else(|| first_of(0..this))
}

/// An object with a [`Work`] that belongs to it.
///
/// With several of them, `ID` tells them apart.
pub trait WorkItem<const ID: u64 = 0>: Send + Sync + Sized + 'static {
    /// Returns the item, always the same one.
    fn work(&self) -> &Work<Self, ID>;

    /// Does the work; in process context, it may sleep.
    fn run(this: Arc<Self>);
}

/// A work item of an object, which may be queued with or without a delay.
///
/// # Invariants
///
/// - `raw` is initialised and calls [`Self::run_callback`].
/// - `owner` is null, or the object that the item was queued with. The thread that makes it
///   non-null owns the item, with one reference of the object and one use of `queue`, or, if that is
///   null, with a kept [`Findable`], and hands it to the kernel; the thread that the kernel hands it
///   to next, by running it or by saying that a cancel has found it, owns it then. The owner makes
///   `owner` null.
///
/// The object lends the item for as long as the object itself is borrowed, and does not move it,
/// as it is pinned. So the reference keeps the item too.
#[pin_data]
pub struct Work<T, const ID: u64 = 0> {
    #[pin]
    raw: Opaque<bindings::delayed_work>,
    owner: Atomic<*mut T>,
    queue: Atomic<*mut WorkQueue>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: Work items may be used from any thread, and objects with items are `Send` and `Sync`.
unsafe impl<T: Send + Sync, const ID: u64> Send for Work<T, ID> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync, const ID: u64> Sync for Work<T, ID> {}

impl<T: WorkItem<ID>, const ID: u64> Work<T, ID> {
    /// Creates an item that is not queued; see [`new_work`].
    pub fn new(
        name: &'static CStr,
        work_key: Pin<&'static LockClassKey>,
        timer_key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            // INVARIANT: Initialised, not queued.
            // SAFETY: `slot` is valid for writes and pinned, the names and keys are static. The
            // timer is that of a delayed work item, and is used by work queues only.
            raw <- Opaque::ffi_init(|slot: *mut bindings::delayed_work| unsafe {
                bindings::init_work_with_key(
                    &raw mut (*slot).work,
                    Some(Self::run_callback),
                    false,
                    name.as_char_ptr(),
                    work_key.as_ptr(),
                );
                bindings::timer_init_key(
                    &raw mut (*slot).timer,
                    Some(bindings::delayed_work_timer_fn),
                    bindings::TIMER_IRQSAFE,
                    name.as_char_ptr(),
                    timer_key.as_ptr(),
                );
            }),
            owner: Atomic::new(ptr::null_mut()),
            queue: Atomic::new(ptr::null_mut()),
            _pin: PhantomPinned,
        })
    }

    /// Takes the item back from the kernel and gives up its use of the queue; returns what else it owns:
    /// the object, and what keeps the module.
    ///
    /// # Safety
    ///
    /// The caller must own the item. Unless it is running, the queue may be gone afterwards.
    unsafe fn take_back(&self) -> (Arc<T>, Option<Findable>) {
        // Acquire: it is valid, and what was written when it was is seen.
        let queue = self.queue.load(ordering::Acquire);
        // INVARIANT: The item has no owner any more.
        // Full: from here on it can be queued again, and what was done before is seen by its run.
        let owner = self.owner.xchg(ptr::null_mut(), ordering::Full);
        let findable = if queue.is_null() {
            // SAFETY: The caller owned one that was kept.
            Some(unsafe { Findable::from_kept() })
        } else {
            // SAFETY: The caller owned one use of the queue, which exists so long.
            unsafe { &*queue }.leave();
            None
        };
        // SAFETY: The caller owned one reference, which `take` had leaked.
        (unsafe { Arc::from_raw(owner) }, findable)
    }

    /// Runs an item.
    ///
    /// # Safety
    ///
    /// `work` must be the start of a `Work` of the same type, run by the work queue.
    unsafe extern "C" fn run_callback(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements.
        let raw = unsafe { container_of!(work, bindings::delayed_work, work) };
        let raw: *const Opaque<bindings::delayed_work> = Opaque::cast_from(raw);
        // SAFETY: By the safety requirements; the reference that the item owns keeps it.
        let this = unsafe { &*container_of!(raw, Self, raw) };
        // SAFETY: The kernel has handed it to us by running it.
        let (object, findable) = unsafe { this.take_back() };
        T::run(object);
        // From here on nothing is left to do but to return.
        drop(findable);
    }

    /// Takes the item out of its queue if it does not run yet; from any context.
    ///
    /// Returns whether it was in a queue.
    #[allow(dead_code, reason = "not every module needs it")]
    pub fn cancel(&self) -> bool {
        // SAFETY: The item is initialised by the type invariants.
        let cancelled = unsafe { bindings::cancel_delayed_work(self.raw.get()) };
        if cancelled {
            // SAFETY: The kernel has handed it to us by saying so.
            drop(unsafe { self.take_back() });
        }
        cancelled
    }

    /// As [`Self::cancel`], and then waits until it is not running either; may sleep.
    ///
    /// The caller makes sure that the item is not queued meanwhile: then it never runs again. The
    /// item must not call this itself.
    #[allow(dead_code, reason = "not every module needs it")]
    pub fn cancel_sync(&self) -> bool {
        // SAFETY: The item is initialised by the type invariants.
        let cancelled = unsafe { bindings::cancel_delayed_work_sync(self.raw.get()) };
        if cancelled {
            // SAFETY: The kernel has handed it to us by saying so.
            drop(unsafe { self.take_back() });
        }
        cancelled
    }

    /// Returns whether this is called by the item, as part of its run.
    #[allow(dead_code, reason = "not every module needs it")]
    pub fn is_current(&self) -> bool {
        // SAFETY: Callable from any context.
        let current = unsafe { bindings::current_work() };
        // The work item comes first in a delayed one.
        ptr::addr_eq(current, self.raw.get())
    }
}

/// Creates a [`Work`] with a name for lockdep.
#[allow(
    unused_macros,
    reason = "every module uses its part of the abstractions"
)]
macro_rules! new_work {
    ($name:literal) => {
        $crate::kfi::linux::work_queue::Work::new(
            ::kernel::c_str!($name),
            ::kernel::static_lock_class!(),
            ::kernel::static_lock_class!(),
        )
    };
}
#[allow(unused_imports, reason = "not every module needs it")]
pub(crate) use new_work;

#[cfg(unit_tests)]
#[kunit_tests(linux_work_queue)]
mod tests {
    use super::super::live::count;
    use super::*;
    use kernel::{
        sync::new_spinlock_irq,
        time::{
            delay::fsleep,
            msecs_to_jiffies,
            Delta, //
        }, //
    };

    /// Counts how often it has run.
    #[pin_data]
    struct Counting {
        runs: Atomic<usize>,
        was_current: Atomic<bool>,
        #[pin]
        started: Completion,
        #[pin]
        proceed: Completion,
        wait: bool,
        #[pin]
        work: Work<Counting>,
        #[pin]
        other: Work<Counting, 1>,
    }

    impl Counting {
        fn new(wait: bool) -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    runs: Atomic::new(0),
                    was_current: Atomic::new(false),
                    started <- Completion::new(),
                    proceed <- Completion::new(),
                    wait,
                    work <- new_work!("work queue test"),
                    other <- new_work!("work queue other test"),
                }),
                GFP_KERNEL,
            )
        }

        fn runs(&self) -> usize {
            self.runs.load(ordering::Acquire)
        }
    }

    impl WorkItem for Counting {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            this.was_current
                .store(this.work.is_current(), ordering::Release);
            this.started.complete_all();
            if this.wait {
                this.proceed.wait_for_completion();
            }
            this.runs.fetch_add(1, ordering::Full);
        }
    }

    impl WorkItem<1> for Counting {
        fn work(&self) -> &Work<Self, 1> {
            &self.other
        }

        fn run(this: Arc<Self>) {
            this.runs.fetch_add(100, ordering::Full);
        }
    }

    /// Returns whether nothing but `this` refers to the object.
    fn is_alone(this: Arc<Counting>) -> bool {
        Arc::into_unique_or_drop(this).is_some()
    }

    fn queue() -> Result<Arc<WorkQueue>> {
        Arc::pin_init(
            WorkQueue::new(
                c"linux_test",
                WorkQueueFlags::PER_CPU.union(WorkQueueFlags::MEM_RECLAIM),
            ),
            GFP_KERNEL,
        )
    }

    const LONG: u32 = 1_000_000;

    #[test]
    fn runs_elsewhere() -> Result {
        let queue = queue()?;
        let item = Counting::new(false)?;
        for i in 1..4 {
            assert!(queue.queue_elsewhere::<_, 0>(item.clone()));
            queue.flush();
            assert_eq!(item.runs(), i);
        }
        queue.destroy();
        assert!(is_alone(item));

        let lock = Arc::pin_init(new_spinlock_irq!((), "work queue test"), GFP_KERNEL)?;
        // This stays the same CPU meanwhile.
        let _guard = lock.lock();
        let this = CpuId::current();
        match other_cpu() {
            Some(other) => assert!(other != this && is_online(other)),
            None => {
                let mut others = (0..this.as_u32()).filter_map(CpuId::from_u32);
                assert!(others.all(|cpu| !is_online(cpu)));
            }
        }
        Ok(())
    }

    #[test]
    fn runs_once_per_queueing_and_gives_its_reference_back() -> Result {
        let queue = queue()?;
        let item = Counting::new(false)?;
        for i in 1..4 {
            assert!(queue.queue::<_, 0>(item.clone()));
            queue.flush();
            assert_eq!(item.runs(), i);
        }
        assert!(item.was_current.load(ordering::Acquire));
        assert!(!item.work.is_current());
        queue.destroy();
        assert!(is_alone(item));
        Ok(())
    }

    #[test]
    fn queued_twice_before_it_runs_is_once() -> Result {
        let queue = queue()?;
        let item = Counting::new(true)?;
        assert!(queue.queue::<_, 0>(item.clone()));
        item.started.wait_for_completion();
        // It is running: once more.
        assert!(queue.queue::<_, 0>(item.clone()));
        assert!(!queue.queue::<_, 0>(item.clone()));
        // The other one of the same object is on its own.
        assert!(queue.queue::<_, 1>(item.clone()));
        item.proceed.complete_all();
        queue.flush();
        assert_eq!(item.runs(), 102);
        queue.destroy();
        assert!(is_alone(item));
        Ok(())
    }

    #[test]
    fn cancelled_does_not_run() -> Result {
        let queue = queue()?;
        let item = Counting::new(false)?;
        assert!(!item.work.cancel_sync());
        assert!(queue.queue_delayed::<_, 0>(item.clone(), msecs_to_jiffies(LONG)));
        assert!(!queue.queue::<_, 0>(item.clone()));
        assert!(item.work.cancel_sync());
        assert!(!item.work.cancel());
        // It can be used again.
        assert!(queue.queue_delayed::<_, 0>(item.clone(), 1));
        queue.destroy();
        assert_eq!(item.runs(), 1);
        assert!(is_alone(item));
        Ok(())
    }

    #[test]
    fn cancel_waits_for_the_run() -> Result {
        let queue = queue()?;
        let item = Counting::new(true)?;
        assert!(queue.queue_on::<_, 0>(item.clone(), CpuId::from_u32(0)));
        item.started.wait_for_completion();
        item.proceed.complete_all();
        assert!(!item.work.cancel_sync());
        assert_eq!(item.runs(), 1);
        queue.destroy();
        assert!(is_alone(item));
        Ok(())
    }

    #[test]
    fn delay_is_modified() -> Result {
        let queue = queue()?;
        let item = Counting::new(false)?;
        assert!(queue.modify_delayed::<_, 0>(item.clone(), msecs_to_jiffies(LONG)));
        assert!(queue.modify_delayed::<_, 0>(item.clone(), 1));
        item.started.wait_for_completion();
        queue.flush();
        assert_eq!(item.runs(), 1);
        queue.destroy();
        assert!(is_alone(item));
        Ok(())
    }

    #[test]
    fn destroyed_takes_nothing() -> Result {
        let queue = queue()?;
        let item = Counting::new(false)?;
        queue.destroy();
        queue.destroy();
        assert!(!queue.queue::<_, 0>(item.clone()));
        assert!(!queue.queue_delayed::<_, 0>(item.clone(), 1));
        queue.flush();
        assert_eq!(item.runs(), 0);
        assert!(is_alone(item));
        Ok(())
    }

    /// Destroys a queue.
    #[pin_data]
    struct Destroying {
        queue: Arc<WorkQueue>,
        is_done: Atomic<bool>,
        #[pin]
        work: Work<Destroying>,
    }

    impl WorkItem for Destroying {
        fn work(&self) -> &Work<Self> {
            &self.work
        }

        fn run(this: Arc<Self>) {
            this.queue.destroy();
            this.is_done.store(true, ordering::Release);
        }
    }

    /// A call that comes while the last user is leaving is no user: the queue would go under the
    /// hands of one of the two.
    #[test]
    fn nobody_enters_beside_the_last_user() -> Result {
        let (doomed, other) = (queue()?, queue()?);
        let given = doomed.clone();
        let item = Counting::new(false)?;
        let destroying = Arc::pin_init(
            pin_init!(Destroying {
                queue: given,
                is_done: Atomic::new(false),
                work <- new_work!("work queue destroying test"),
            }),
            GFP_KERNEL,
        )?;
        assert!(doomed.enter());
        assert!(other.queue::<_, 0>(destroying.clone()));
        while doomed.users.load(ordering::Acquire) & WorkQueue::CLOSING == 0 {
            fsleep(Delta::from_millis(1));
        }
        // The user is the last one, and about to say so.
        let before = doomed.users.fetch_sub(1, ordering::Full);
        assert_eq!(before, WorkQueue::CLOSING | 1);
        assert!(!doomed.enter());
        assert!(!doomed.queue::<_, 0>(item.clone()));
        doomed.flush();
        fsleep(Delta::from_millis(20));
        assert!(!destroying.is_done.load(ordering::Acquire));
        doomed.idle.complete_all();
        other.destroy();
        assert!(destroying.is_done.load(ordering::Acquire));
        assert!(is_alone(item));
        Ok(())
    }

    #[test]
    fn destroy_waits_for_a_delay() -> Result {
        let queue = queue()?;
        let item = Counting::new(false)?;
        assert!(queue.queue_delayed::<_, 0>(item.clone(), msecs_to_jiffies(30)));
        queue.destroy();
        assert_eq!(item.runs(), 1);
        assert!(is_alone(item));
        Ok(())
    }

    #[test]
    fn anywhere_it_keeps_the_module_until_it_has_run() -> Result {
        let before = count();
        let item = Counting::new(true)?;
        assert!(queue_anywhere::<_, 0>(item.clone()));
        item.started.wait_for_completion();
        assert_eq!(count(), before + 1);
        // It is running: once more.
        assert!(queue_anywhere::<_, 0>(item.clone()));
        assert!(!queue_anywhere::<_, 0>(item.clone()));
        assert_eq!(count(), before + 2);
        item.proceed.complete_all();
        // It has run, or is taken out, after this.
        while item.runs() != 2 {
            fsleep(Delta::from_millis(1));
        }
        item.work.cancel_sync();
        assert_eq!(count(), before);
        assert!(is_alone(item));
        Ok(())
    }
}
