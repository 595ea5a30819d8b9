// SPDX-License-Identifier: GPL-2.0

//! Domains.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    enosys::{
        enosys4,
        enosys5,
        enosys9, //
    },
    CompletionQueueAttr,
    CompletionQueueOps,
    CounterAttr,
    CounterOps,
    PollSetOps, //
};
use crate::kfi::{
    bindings,
    fid::{
        open_into,
        Class,
        Context,
        Fid,
        Object,
        Tables, //
    }, //
};

/// The class of domains.
pub(crate) struct DomainClass;

// SAFETY: `struct kfid_domain` starts with its `fid`; `head` stores where the table is,
// and `names` compares that.
unsafe impl Class for DomainClass {
    type Head = bindings::kfid_domain;
    type Tables = DomainTables;
    const FCLASS: usize = bindings::KFI_CLASS_DOMAIN as usize;
    const RCU_OPERATIONS: bool = false;

    fn head(fid: bindings::kfid, tables: &'static Self::Tables) -> Self::Head {
        bindings::kfid_domain {
            fid,
            // C declares the tables without `const`, and nobody writes to them.
            ops: core::ptr::from_ref(&tables.domain).cast_mut(),
            mr: core::ptr::from_ref(&tables.mr).cast_mut(),
        }
    }

    unsafe fn names(head: *const Self::Head, tables: &'static Self::Tables) -> bool {
        // SAFETY: By the safety requirements.
        core::ptr::eq(unsafe { (*head).ops }, &tables.domain)
    }
}

/// The tables that a domain names.
pub(crate) struct DomainTables {
    /// The domain's own operations.
    domain: bindings::kfi_ops_domain,
    /// Memory registration.
    mr: bindings::kfi_ops_mr,
}

/// The operations of a domain (`struct kfi_ops_domain`).
///
/// All may sleep.
pub(crate) trait DomainOps: Object<Class = DomainClass> {
    /// The counters of the domain.
    type Counter: CounterOps;
    /// The completion queues of the domain.
    type CompletionQueue: CompletionQueueOps;
    /// The poll sets of the domain.
    type PollSet: PollSetOps;

    /// Opens a counter.
    fn cntr_open(
        this: &Fid<Self>,
        attr: CounterAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::Counter>>>;

    /// Opens a completion queue.
    fn cq_open(
        this: &Fid<Self>,
        attr: CompletionQueueAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::CompletionQueue>>>;

    /// Opens a poll set.
    fn poll_open(this: &Fid<Self>, flags: u64) -> Result<Arc<Fid<Self::PollSet>>>;
}

// SAFETY: The functions expect heads of `Fid<T>`.
unsafe impl<T: DomainOps> Tables<DomainClass> for T {
    const TABLES: &'static DomainTables = &DomainTables {
        domain: bindings::kfi_ops_domain {
            size: size_of::<bindings::kfi_ops_domain>(),
            av_open: Some(enosys4),
            cq_open: Some(cq_open_callback::<T>),
            endpoint: Some(enosys4),
            scalable_ep: Some(enosys4),
            cntr_open: Some(cntr_open_callback::<T>),
            poll_open: Some(poll_open_callback::<T>),
            stx_ctx: Some(enosys4),
            srx_ctx: Some(enosys4),
            query_atomic: Some(enosys5),
        },
        mr: bindings::kfi_ops_mr {
            size: size_of::<bindings::kfi_ops_mr>(),
            reg: Some(enosys9),
            regv: Some(enosys9),
            regbv: Some(enosys9),
            regattr: Some(enosys4),
            regsgl: Some(enosys9),
        },
    };
}

/// Opens a counter.
///
/// # Safety
///
/// `domain` must be an open domain of `T`. `attr` must be null or valid, and its wait set an open
/// object if it asks for one. `cntr` must be null or valid for writes.
unsafe extern "C" fn cntr_open_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut bindings::kfi_cntr_attr,
    cntr: *mut *mut bindings::kfid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(cntr, || {
            T::cntr_open(
                this,
                CounterAttr::from_raw(attr)?,
                Context::from_raw(context),
            )
        })
    }
}

/// Opens a completion queue.
///
/// # Safety
///
/// `domain` must be an open domain of `T`. `attr` must be null or valid, and its wait set an open
/// object if it asks for one. `cq` must be null or valid for writes.
unsafe extern "C" fn cq_open_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut bindings::kfi_cq_attr,
    cq: *mut *mut bindings::kfid_cq,
    comp_handler: bindings::kfi_comp_handler,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(cq, || {
            let wanted = CompletionQueueAttr::from_raw(attr, comp_handler)?;
            let opened = T::cq_open(this, wanted, Context::from_raw(context))?;
            if let Some(attr) = attr.as_mut() {
                attr.size = opened.size();
                attr.format = opened.format().as_raw();
            }
            Ok(opened)
        })
    }
}

/// Opens a poll set.
///
/// # Safety
///
/// `domain` must be an open domain of `T`, `attr` null or valid, `pollset` null or valid for writes.
unsafe extern "C" fn poll_open_callback<T: DomainOps>(
    domain: *mut bindings::kfid_domain,
    attr: *mut bindings::kfi_poll_attr,
    pollset: *mut *mut bindings::kfid_poll,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(domain) };
    // SAFETY: By the safety requirements.
    let flags = unsafe { attr.as_ref() }.map_or(0, |attr| attr.flags);
    // SAFETY: By the safety requirements.
    unsafe { open_into(pollset, || T::poll_open(this, flags)) }
}
