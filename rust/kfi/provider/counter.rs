// SPDX-License-Identifier: GPL-2.0

//! Counters.

use kernel::{
    error::from_result,
    prelude::*,
    sync::rcu, //
};

use super::WaitAttr;
use crate::kfi::{
    bindings,
    fid::{
        Class,
        ExtraOps,
        Fid,
        Object,
        OpsName,
        Tables, //
    },
    hold::HoldOnce,
    linux::timeout::Timeout,
    tally::Tally, //
};

/// The class of counters.
pub struct CounterClass;

// SAFETY: `struct kfid_cntr` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for CounterClass {
    type Head = bindings::kfid_cntr;
    type Tables = bindings::kfi_ops_cntr;
    type Data = ();
    const FCLASS: usize = bindings::KFI_CLASS_CNTR as usize;
    const RCU_OPERATIONS: bool = true;
    const MAY_OUTLIVE_CLOSE: bool = true;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables, _data: &()) -> Self::Head {
        bindings::kfid_cntr {
            fid,
            // C declares the table without `const`, and nobody writes to it.
            ops: core::ptr::from_ref(tables).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        core::ptr::eq(unsafe { (*head).ops }, tables)
    }
}

/// The operations of a counter (`struct kfi_ops_cntr`).
///
/// All but [`Self::wait`] may be called from any context, also from hard interrupts, and must not
/// sleep. Updates run in RCU read-side critical sections.
///
/// Beyond what consumers add and set, and what deferred work does, a counter counts by one for each
/// [`Counted`](super::Counted), and that of an operation only if it is bound for that.
pub trait CounterOps: Object<Class = CounterClass> {
    /// Returns the success value.
    fn read(&self) -> u64;

    /// Returns the error value.
    fn readerr(&self) -> u64;

    /// Returns the success value with its limit, always the same one. It only finds that: the call has no
    /// effect that a consumer could see, as an addition calls it before the section that close waits
    /// for. Additions by consumers do not call the provider, except those that reach the limit.
    fn tally(&self) -> &Tally;

    /// Attends to the addition of `value`, which has made `sum`: that has reached the limit, or has
    /// passed 2^64. `events` have been counted by the tally before it, or more.
    ///
    /// The caller has made the addition, fully ordered before this call, and keeps preemption off as
    /// `NoPreemption` does, from before the addition until this returns.
    fn reached(&self, value: u64, sum: u64, events: u64);

    /// Adds `value`, a negative number or one that is not less than [`Tally::LIMIT`].
    fn add_locked(&self, value: u64);

    /// Sets the success value.
    fn set(&self, value: u64) -> Result {
        let _ = value;
        Err(ENOSYS)
    }

    /// Adds to the error value.
    fn adderr(&self, value: u64) -> Result {
        let _ = value;
        Err(ENOSYS)
    }

    /// Sets the error value.
    fn seterr(&self, value: u64) -> Result {
        let _ = value;
        Err(ENOSYS)
    }

    /// Begins to wait: returns `None` if the success value is at least `threshold`, else a number that
    /// any change of the error value changes, for [`Self::wait`]; `EINVAL` if nobody can wait here. From
    /// any context; must not sleep.
    fn begin_wait(&self, threshold: u64) -> Result<Option<u64>> {
        let _ = threshold;
        Err(EINVAL)
    }

    /// Sleeps until the success value is at least `threshold`, or the error value has changed since
    /// [`Self::begin_wait`] has returned `since`: a thread that finds that the counter is waited
    /// on, as it cannot be closed (R-CLOSE-2), ends that by such a change (R-CNTR-31).
    fn wait(this: &Fid<Self>, threshold: u64, since: u64, timeout: Timeout) -> Result {
        let _ = (this, threshold, since, timeout);
        Err(ENOSYS)
    }
}

/// The events that a counter counts (`enum kfi_cntr_events`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CounterEvents {
    /// Successful completions.
    Completions,
}

impl TryFrom<bindings::kfi_cntr_events> for CounterEvents {
    type Error = Error;

    /// Takes a number from C; `ENOSYS` for one that is not known (R-CNTR-8).
    fn try_from(raw: bindings::kfi_cntr_events) -> Result<Self> {
        match raw {
            bindings::KFI_CNTR_EVENTS_COMP => Ok(Self::Completions),
            _ => Err(ENOSYS),
        }
    }
}

/// The attributes that a counter is opened with (`struct kfi_cntr_attr`).
pub struct CounterAttr<'a> {
    /// The events that are counted.
    pub events: CounterEvents,
    /// How threads want to wait.
    pub wait: WaitAttr<'a>,
    /// Flags, yet to be checked.
    pub flags: u64,
}

impl Default for CounterAttr<'_> {
    /// As C has it without attributes (R-CNTR-8).
    fn default() -> Self {
        Self {
            events: CounterEvents::Completions,
            wait: WaitAttr::Unspec,
            flags: 0,
        }
    }
}

impl CounterAttr<'_> {
    /// Reads attributes from C; null means the defaults (R-CNTR-8).
    ///
    /// # Safety
    ///
    /// `attr` must be null or valid. Its wait set must be null or an open object if its wait object
    /// is `KFI_WAIT_SET`, and may be anything if not (R-CNTR-14).
    pub(super) unsafe fn from_raw(attr: *const bindings::kfi_cntr_attr) -> Result<Self> {
        // SAFETY: By the safety requirements.
        let Some(attr) = (unsafe { attr.as_ref() }) else {
            return Ok(Self::default());
        };
        Ok(Self {
            events: CounterEvents::try_from(attr.events)?,
            // SAFETY: By the safety requirements.
            wait: unsafe { WaitAttr::from_raw(attr.wait_obj, attr.wait_set) }?,
            flags: attr.flags,
        })
    }
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: CounterOps> Tables<CounterClass> for T {
    const TABLES: &'static bindings::kfi_ops_cntr = &bindings::kfi_ops_cntr {
        size: size_of::<bindings::kfi_ops_cntr>(),
        read: Some(read_callback::<T>),
        readerr: Some(readerr_callback::<T>),
        add: Some(add_callback::<T>),
        set: Some(set_callback::<T>),
        wait: Some(wait_callback::<T>),
        adderr: Some(adderr_callback::<T>),
        seterr: Some(seterr_callback::<T>),
    };
}

/// Returns the success value.
///
/// # Safety
///
/// `cntr` must be an open counter of `T`.
unsafe extern "C" fn read_callback<T: CounterOps>(cntr: *mut bindings::kfid_cntr) -> u64 {
    // SAFETY: By the safety requirements.
    unsafe { Fid::<T>::borrow(cntr) }.read()
}

/// Returns the error value.
///
/// # Safety
///
/// `cntr` must be an open counter of `T`.
unsafe extern "C" fn readerr_callback<T: CounterOps>(cntr: *mut bindings::kfid_cntr) -> u64 {
    // SAFETY: By the safety requirements.
    unsafe { Fid::<T>::borrow(cntr) }.readerr()
}

/// Adds to the success value.
///
/// # Safety
///
/// As for [`set_callback`].
unsafe extern "C" fn add_callback<T: CounterOps>(
    cntr: *mut bindings::kfid_cntr,
    value: u64,
) -> c_int {
    if value.wrapping_sub(1) >= Tally::LIMIT - 1 {
        // SAFETY: By the safety requirements.
        return unsafe { add_locked::<T>(cntr, value) };
    }
    // SAFETY: By the safety requirements it is open, and stays so: `tally` has no effect that tells a
    // consumer of the addition, so that nobody can have cause to close it before the tally is found.
    let tally = core::ptr::from_ref(unsafe { Fid::<T>::borrow(cntr) }.tally());
    // SAFETY: By the safety requirements the counter is open when this begins, and close waits for
    // sections that have begun by then. It is a counter of `T`.
    unsafe { Tally::add(tally, value, cntr.cast(), reached_callback::<T>) }
}

/// Attends to an addition.
///
/// # Safety
///
/// `cntr` must be a counter of `T` that stays until the end of an RCU read-side critical section in
/// which this is called.
unsafe extern "C" fn reached_callback<T: CounterOps>(
    cntr: *mut c_void,
    value: u64,
    sum: u64,
    events: u64,
) {
    // SAFETY: By the safety requirements.
    unsafe { Fid::<T>::borrow(cntr.cast()) }.reached(value, sum, events);
}

/// Adds 0, a large number or a negative one to the success value.
///
/// # Safety
///
/// As for [`set_callback`].
#[cold]
unsafe fn add_locked<T: CounterOps>(cntr: *mut bindings::kfid_cntr, value: u64) -> c_int {
    // As in the functions below.
    let _guard = rcu::read_lock();
    if value != 0 {
        // SAFETY: By the safety requirements.
        unsafe { Fid::<T>::borrow(cntr) }.add_locked(value);
    }
    0
}

/// Defines the other functions that change a counter.
macro_rules! update_callback {
    ($($name:ident => $op:ident;)*) => {$(
        /// Changes the counter.
        ///
        /// # Safety
        ///
        /// `cntr` must be a counter of `T` that is open when the call begins. It may be closed as
        /// soon as the update can be observed.
        unsafe extern "C" fn $name<T: CounterOps>(
            cntr: *mut bindings::kfid_cntr,
            value: u64,
        ) -> c_int {
            // Close waits for this section, so that the counter stays until the update has ended.
            let _guard = rcu::read_lock();
            // SAFETY: By the safety requirements; see above for the end.
            let this = unsafe { Fid::<T>::borrow(cntr) };
            from_result(|| {
                this.$op(value)?;
                Ok(0)
            })
        }
    )*}
}

update_callback! {
    set_callback => set;
    adderr_callback => adderr;
    seterr_callback => seterr;
}

/// Waits for the success value.
///
/// # Safety
///
/// `cntr` must be an open counter of `T`.
unsafe extern "C" fn wait_callback<T: CounterOps>(
    cntr: *mut bindings::kfid_cntr,
    threshold: u64,
    timeout: c_int,
) -> c_int {
    kernel::task::might_sleep();
    from_result(|| {
        // Close waits for this section, so that the counter stays until it is held.
        let section = rcu::read_lock();
        // SAFETY: By the safety requirements; see above.
        let this = unsafe { Fid::<T>::borrow(cntr) };
        let Some(since) = this.begin_wait(threshold)? else {
            return Ok(0);
        };
        let timeout = Timeout::from_raw(timeout);
        if timeout == Timeout::Millis(0) {
            return Err(ETIMEDOUT);
        }
        // A counter with a thread in here cannot be closed (R-CLOSE-2), which keeps its memory, too.
        let hold = HoldOnce::new(this)?;
        drop(section);
        T::wait(hold.fid(), threshold, since, timeout)?;
        Ok(0)
    })
}

/// The statistics of a counter for tests (`struct kfi_soft_cntr_stats`).
pub struct CounterStatistics {
    /// How many changes did not stop at the comparison with the attention threshold.
    pub attended: u64,
}

/// Counters that tell tests about themselves. From any context; must not sleep.
pub trait CounterTestOps: CounterOps {
    /// Tells.
    fn statistics(&self) -> CounterStatistics;
}

/// Returns the table that lets tests ask a counter of `T`, if that is what `name` asks for.
pub fn counter_test_ops<'o, T: CounterTestOps>(
    _cntr: &Fid<T>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, T>> {
    struct Table<T>(core::marker::PhantomData<T>);
    impl<T: CounterTestOps> Table<T> {
        const OPS: bindings::kfi_soft_cntr_ops = bindings::kfi_soft_cntr_ops {
            size: size_of::<bindings::kfi_soft_cntr_ops>(),
            stats: Some(stats_callback::<T>),
        };
    }

    // SAFETY: It is the table of that name, and expects counters of `T`.
    unsafe {
        ExtraOps::new(
            name,
            bindings::KFI_SOFT_CNTR_OPS_1,
            const { &Table::<T>::OPS },
        )
    }
    .ok_or(ENOSYS)
}

/// Tells tests about a counter.
///
/// # Safety
///
/// `cntr` must be an open counter of `T`, `stats` null or valid for writes.
unsafe extern "C" fn stats_callback<T: CounterTestOps>(
    cntr: *mut bindings::kfid,
    stats: *mut bindings::kfi_soft_cntr_stats,
) -> c_int {
    if stats.is_null() {
        return EINVAL.to_errno();
    }
    // SAFETY: By the safety requirements; the head starts with its `fid`.
    let statistics = unsafe { Fid::<T>::borrow(cntr.cast()) }.statistics();
    // SAFETY: By the safety requirements.
    unsafe {
        stats.write(bindings::kfi_soft_cntr_stats {
            attended: statistics.attended,
        });
    }
    0
}
