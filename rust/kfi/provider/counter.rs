// SPDX-License-Identifier: GPL-2.0

//! Counters.

use kernel::{
    error::from_result,
    prelude::*,
    sync::{
        rcu,
        ArcBorrow, //
    }, //
};

use crate::kfi::{
    bindings,
    fid::{
        AnyFid,
        Class,
        Fid,
        Object,
        OpsTable, //
    },
    timeout::Timeout,
    wait_obj::WaitObj, //
};

/// The class of counters.
pub(crate) struct CounterClass;

// SAFETY: `struct kfid_cntr` starts with its `fid`; `head` stores `ops`, which `ops` returns.
unsafe impl Class for CounterClass {
    type Head = bindings::kfid_cntr;
    type Ops = bindings::kfi_ops_cntr;
    const FCLASS: usize = bindings::KFI_CLASS_CNTR as usize;

    fn head(fid: bindings::kfid, ops: *mut Self::Ops) -> Self::Head {
        bindings::kfid_cntr { fid, ops }
    }

    unsafe fn ops(head: *const Self::Head) -> *const Self::Ops {
        // SAFETY: By the safety requirements.
        unsafe { (*head).ops }
    }
}

/// The operations of a counter (`struct kfi_ops_cntr`).
///
/// All but [`Self::wait`] may be called from any context, also from hard interrupts, and run in an
/// RCU read-side critical section: they must not sleep.
pub(crate) trait CounterOps: Object<Class = CounterClass> {
    /// Returns the success value.
    fn read(&self) -> u64;

    /// Returns the error value.
    fn readerr(&self) -> u64;

    /// Adds to the success value.
    fn add(&self, value: u64) -> Result;

    /// Sets the success value.
    fn set(&self, value: u64) -> Result;

    /// Adds to the error value.
    fn adderr(&self, value: u64) -> Result;

    /// Sets the error value.
    fn seterr(&self, value: u64) -> Result;

    /// Sleeps until the success value is at least `threshold`.
    fn wait(this: ArcBorrow<'_, Fid<Self>>, threshold: u64, timeout: Timeout) -> Result;
}

/// How threads want to wait for a counter.
#[derive(Clone, Copy)]
pub(crate) enum CounterWait<'a> {
    /// Not at all.
    None,
    /// Through kfabric.
    Unspec,
    /// Through a wait set, which is yet to be checked.
    Set(Option<AnyFid<'a>>),
    /// Through a wait queue.
    Queue,
}

/// What a counter is opened with (`struct kfi_cntr_attr`).
pub(crate) struct CounterAttr<'a> {
    /// What is counted (`enum kfi_cntr_events`), yet to be checked.
    pub(crate) events: u32,
    /// How threads want to wait.
    pub(crate) wait: CounterWait<'a>,
    /// Flags, yet to be checked.
    pub(crate) flags: u64,
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
            return Ok(Self {
                events: bindings::KFI_CNTR_EVENTS_COMP,
                wait: CounterWait::Unspec,
                flags: 0,
            });
        };
        let wait = match WaitObj::try_from(attr.wait_obj)? {
            WaitObj::None => CounterWait::None,
            WaitObj::Unspec => CounterWait::Unspec,
            // SAFETY: By the safety requirements. The head of a wait set starts with its `kfid`.
            WaitObj::Set => CounterWait::Set(unsafe { AnyFid::from_raw(attr.wait_set.cast()) }),
            WaitObj::Queue => CounterWait::Queue,
        };
        Ok(Self {
            events: attr.events,
            wait,
            flags: attr.flags,
        })
    }
}

impl<T: CounterOps> OpsTable<CounterClass> for T {
    const OPS: &'static bindings::kfi_ops_cntr = &bindings::kfi_ops_cntr {
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

/// # Safety
///
/// `cntr` must be an open counter of `T`.
unsafe extern "C" fn read_callback<T: CounterOps>(cntr: *mut bindings::kfid_cntr) -> u64 {
    // SAFETY: By the safety requirements.
    unsafe { Fid::<T>::borrow(cntr) }.read()
}

/// # Safety
///
/// `cntr` must be an open counter of `T`.
unsafe extern "C" fn readerr_callback<T: CounterOps>(cntr: *mut bindings::kfid_cntr) -> u64 {
    // SAFETY: By the safety requirements.
    unsafe { Fid::<T>::borrow(cntr) }.readerr()
}

macro_rules! update_callback {
    ($($name:ident => $op:ident;)*) => {$(
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
    add_callback => add;
    set_callback => set;
    adderr_callback => adderr;
    seterr_callback => seterr;
}

/// # Safety
///
/// `cntr` must be an open counter of `T`.
unsafe extern "C" fn wait_callback<T: CounterOps>(
    cntr: *mut bindings::kfid_cntr,
    threshold: u64,
    timeout: c_int,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(cntr) };
    from_result(|| {
        T::wait(this, threshold, Timeout::from_raw(timeout))?;
        Ok(0)
    })
}
