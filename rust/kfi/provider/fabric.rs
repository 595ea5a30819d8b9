// SPDX-License-Identifier: GPL-2.0

//! Fabrics.

use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use super::{
    enosys::{
        enosys3,
        enosys4,
        enosys5, //
    },
    DomainOps, //
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
    },
    info::InfoRef, //
};

/// The class of fabrics.
pub(crate) struct FabricClass;

// SAFETY: `struct kfid_fabric` starts with its `fid`; `head` stores `ops`, which `ops` returns.
unsafe impl Class for FabricClass {
    type Head = bindings::kfid_fabric;
    type Ops = bindings::kfi_ops_fabric;
    const FCLASS: usize = bindings::KFI_CLASS_FABRIC as usize;

    fn head(fid: bindings::kfid, ops: *mut Self::Ops) -> Self::Head {
        bindings::kfid_fabric {
            fid,
            ops,
            api_version: 0,
        }
    }

    unsafe fn ops(head: *const Self::Head) -> *const Self::Ops {
        // SAFETY: By the safety requirements.
        unsafe { (*head).ops }
    }
}

/// The operations of a fabric (`struct kfi_ops_fabric`).
///
/// All may sleep.
pub(crate) trait FabricOps: Object<Class = FabricClass> {
    /// The domains of the fabric.
    type Domain: DomainOps;

    /// Opens a domain as `info` describes it.
    fn domain(
        this: ArcBorrow<'_, Fid<Self>>,
        info: InfoRef<'_>,
        context: Context,
    ) -> Result<Arc<Fid<Self::Domain>>>;
}

/// What a fabric is opened with (`struct kfi_fabric_attr`).
pub(crate) struct FabricAttr<'a>(&'a bindings::kfi_fabric_attr);

impl<'a> FabricAttr<'a> {
    /// # Safety
    ///
    /// The names in `attr` must be null or texts that stay during `'a`.
    pub(super) unsafe fn new(attr: &'a bindings::kfi_fabric_attr) -> Self {
        Self(attr)
    }

    /// Returns the name of the fabric.
    pub(crate) fn name(&self) -> Option<&'a CStr> {
        // SAFETY: By the safety requirements of `new`.
        (!self.0.name.is_null()).then(|| unsafe { CStr::from_char_ptr(self.0.name) })
    }
}

impl<T: FabricOps> OpsTable<FabricClass> for T {
    const OPS: &'static bindings::kfi_ops_fabric = &bindings::kfi_ops_fabric {
        size: size_of::<bindings::kfi_ops_fabric>(),
        domain: Some(domain_callback::<T>),
        passive_ep: Some(enosys4),
        eq_open: Some(enosys5),
        wait_open: Some(enosys3),
        trywait: Some(enosys3),
    };
}

/// # Safety
///
/// `fabric` must be an open fabric of `T`. `info` must be null or valid. `domain` must be null or
/// valid for writes.
unsafe extern "C" fn domain_callback<T: FabricOps>(
    fabric: *mut bindings::kfid_fabric,
    info: *mut bindings::kfi_info,
    domain: *mut *mut bindings::kfid_domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirements.
    let this = unsafe { Fid::<T>::borrow(fabric) };
    // SAFETY: By the safety requirements.
    let info = unsafe { InfoRef::from_raw(info) };
    // SAFETY: By the safety requirements.
    unsafe {
        open_into(domain, || {
            T::domain(this, info.ok_or(EINVAL)?, Context::from_raw(context))
        })
    }
}
