// SPDX-License-Identifier: GPL-2.0

//! Domains.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use super::{
    enosys::{
        enosys3,
        enosys4,
        enosys5,
        enosys9, //
    },
    CounterAttr,
    CounterOps, //
};
use crate::kfi::{
    bindings,
    fid::{
        open_into,
        Class,
        Context,
        Fid,
        Object,
        OpsTable, //
    }, //
};

/// The class of domains.
pub(crate) struct DomainClass;

// SAFETY: `struct kfid_domain` starts with its `fid`; `head` stores `ops`, which `ops` returns.
unsafe impl Class for DomainClass {
    type Head = bindings::kfid_domain;
    type Ops = bindings::kfi_ops_domain;
    const FCLASS: usize = bindings::KFI_CLASS_DOMAIN as usize;

    fn head(fid: bindings::kfid, ops: *mut Self::Ops) -> Self::Head {
        bindings::kfid_domain {
            fid,
            ops,
            // C declares the table without `const`, and nobody writes to it.
            mr: core::ptr::from_ref(&MR_OPS).cast_mut(),
        }
    }

    unsafe fn ops(head: *const Self::Head) -> *const Self::Ops {
        // SAFETY: By the safety requirements.
        unsafe { (*head).ops }
    }
}

/// Memory registration, which no domain has yet.
static MR_OPS: bindings::kfi_ops_mr = bindings::kfi_ops_mr {
    size: size_of::<bindings::kfi_ops_mr>(),
    reg: Some(enosys9),
    regv: Some(enosys9),
    regbv: Some(enosys9),
    regattr: Some(enosys4),
    regsgl: Some(enosys9),
};

/// The operations of a domain (`struct kfi_ops_domain`).
///
/// All may sleep.
pub(crate) trait DomainOps: Object<Class = DomainClass> {
    /// The counters of the domain.
    type Counter: CounterOps;

    /// Opens a counter.
    fn cntr_open(
        this: ArcBorrow<'_, Fid<Self>>,
        attr: CounterAttr<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::Counter>>>;
}

impl<T: DomainOps> OpsTable<DomainClass> for T {
    const OPS: &'static bindings::kfi_ops_domain = &bindings::kfi_ops_domain {
        size: size_of::<bindings::kfi_ops_domain>(),
        av_open: Some(enosys4),
        cq_open: Some(enosys5),
        endpoint: Some(enosys4),
        scalable_ep: Some(enosys4),
        cntr_open: Some(cntr_open_callback::<T>),
        poll_open: Some(enosys3),
        stx_ctx: Some(enosys4),
        srx_ctx: Some(enosys4),
        query_atomic: Some(enosys5),
    };
}

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
