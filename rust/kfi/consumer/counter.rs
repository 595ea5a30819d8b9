// SPDX-License-Identifier: GPL-2.0

//! Counters.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

use super::{
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Lineage,
        Object,
        ObjectClass,
        ToClose, //
    },
    Domain, //
};
use crate::kfi::{
    bindings,
    context::Context,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

/// The attributes that a counter is opened with.
#[derive(Clone, Copy)]
pub struct CounterAttr<'a> {
    /// The events that are counted (`enum kfi_cntr_events`).
    pub events: u32,
    /// The wait object (`enum kfi_wait_obj`).
    pub wait_obj: u32,
    /// The wait set.
    pub wait_set: Option<AnyObject<'a>>,
    /// Flags.
    pub flags: u64,
}

impl Default for CounterAttr<'_> {
    fn default() -> Self {
        Self {
            events: bindings::KFI_CNTR_EVENTS_COMP,
            wait_obj: bindings::KFI_WAIT_UNSPEC,
            wait_set: None,
            flags: 0,
        }
    }
}

object! {
    /// An open counter.
    Counter(kfid_cntr, Counter)
}

impl Counter {
    /// Opens a counter; without attributes it has the defaults. `EINVAL` for a wait set that is
    /// none, or of another fabric.
    ///
    /// May sleep.
    pub fn open(domain: &Domain, attr: Option<CounterAttr<'_>>, context: Context) -> Result<Self> {
        Self::open_with(domain, Some(attr.unwrap_or_default()), context)
    }

    /// As [`Self::open`], with a null pointer for the attributes.
    pub fn open_null(domain: &Domain, context: Context) -> Result<Self> {
        Self::open_with(domain, None, context)
    }

    /// Opens a counter with attributes, or with a null pointer for them.
    fn open_with(domain: &Domain, attr: Option<CounterAttr<'_>>, context: Context) -> Result<Self> {
        let lineage = domain.lineage();
        let mut attr = match attr {
            None => None,
            Some(attr) => Some(bindings::kfi_cntr_attr {
                events: attr.events,
                wait_obj: attr.wait_obj,
                wait_set: AnyObject::wait_set(attr.wait_set, attr.wait_obj, lineage)?,
                flags: attr.flags,
            }),
        };
        let mut cntr = ptr::null_mut();
        // SAFETY: `domain` is open; `attr` is null or valid, and its wait set null or open and of
        // the domain's fabric.
        to_result(unsafe {
            bindings::kfi_cntr_open(
                domain.as_raw(),
                attr.as_mut().map_or(ptr::null_mut(), ptr::from_mut),
                &mut cntr,
                context.as_raw(),
            )
        })?;
        let cntr = NonNull::new(cntr).ok_or(EIO)?;
        // SAFETY: It has just been opened.
        Ok(unsafe { Self::new(cntr, lineage) })
    }

    /// Returns the success value; from any context.
    pub fn read(&self) -> u64 {
        // SAFETY: The counter is open.
        unsafe { bindings::kfi_cntr_read(self.as_raw()) }
    }

    /// Returns the error value; from any context.
    pub fn readerr(&self) -> u64 {
        // SAFETY: The counter is open.
        unsafe { bindings::kfi_cntr_readerr(self.as_raw()) }
    }

    /// Adds to the success value; from any context.
    pub fn add(&self, value: u64) -> Result {
        // SAFETY: The counter is open.
        to_result(unsafe { bindings::kfi_cntr_add(self.as_raw(), value) })
    }

    /// Adds to the error value; from any context.
    pub fn adderr(&self, value: u64) -> Result {
        // SAFETY: The counter is open.
        to_result(unsafe { bindings::kfi_cntr_adderr(self.as_raw(), value) })
    }

    /// Sets the success value; from any context.
    pub fn set(&self, value: u64) -> Result {
        // SAFETY: The counter is open.
        to_result(unsafe { bindings::kfi_cntr_set(self.as_raw(), value) })
    }

    /// Sets the error value; from any context.
    pub fn seterr(&self, value: u64) -> Result {
        // SAFETY: The counter is open.
        to_result(unsafe { bindings::kfi_cntr_seterr(self.as_raw(), value) })
    }

    /// Sleeps until the success value is at least `threshold`, at most `timeout` milliseconds, or
    /// without end if that is negative.
    pub fn wait(&self, threshold: u64, timeout: c_int) -> Result {
        // SAFETY: The counter is open.
        to_result(unsafe { bindings::kfi_cntr_wait(self.as_raw(), threshold, timeout) })
    }
}
