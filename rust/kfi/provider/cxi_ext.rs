// SPDX-License-Identifier: GPL-2.0

//! The extensions that consumers of the kcxi provider use (`include/kfi_cxi_ext.h`).

use core::marker::PhantomData;
use kernel::{
    error::from_result,
    prelude::*,
    str::CStr, //
};

use super::{
    DomainOps,
    FabricOps, //
};
use crate::kfi::{
    bindings,
    dma_device::DevicePointer,
    fid::{
        ExtraOps,
        Fid, //
    }, //
};

/// The extensions of a fabric (`struct kfi_cxi_fabric_ops`). All may sleep.
pub(crate) trait CxiFabricOps: FabricOps {
    /// Lets resources be taken when they are needed, or in advance.
    fn enable_dynamic_rsrc_alloc(&self, enable: bool) -> Result;
}

/// The extensions of a domain (`struct kfi_cxi_domain_ops`). All may sleep.
pub(crate) trait CxiDomainOps: DomainOps {
    /// Returns the device, which must stay while the domain is open.
    fn device(&self) -> Result<DevicePointer>;
}

/// Returns the extensions of a fabric; `EINVAL` for other names.
pub(crate) fn cxi_fabric_ops<T: CxiFabricOps>(_fabric: &Fid<T>, name: &CStr) -> Result<ExtraOps> {
    struct Table<T>(PhantomData<T>);
    impl<T: CxiFabricOps> Table<T> {
        const OPS: bindings::kfi_cxi_fabric_ops = bindings::kfi_cxi_fabric_ops {
            enable_dynamic_rsrc_alloc: Some(enable_dynamic_rsrc_alloc_callback::<T>),
        };
    }

    if name.to_bytes_with_nul() != bindings::KFI_CXI_FAB_OPS_1 {
        return Err(EINVAL);
    }
    // SAFETY: It expects fabrics of `T`.
    Ok(unsafe { ExtraOps::new(const { &Table::<T>::OPS }) })
}

/// Returns the extensions of a domain; `EINVAL` for other names.
pub(crate) fn cxi_domain_ops<T: CxiDomainOps>(_domain: &Fid<T>, name: &CStr) -> Result<ExtraOps> {
    struct Table<T>(PhantomData<T>);
    impl<T: CxiDomainOps> Table<T> {
        const OPS: bindings::kfi_cxi_domain_ops = bindings::kfi_cxi_domain_ops {
            get_device: Some(get_device_callback::<T>),
        };
    }

    if name.to_bytes_with_nul() != bindings::KFI_CXI_DOM_OPS_1 {
        return Err(EINVAL);
    }
    // SAFETY: It expects domains of `T`.
    Ok(unsafe { ExtraOps::new(const { &Table::<T>::OPS }) })
}

/// Lets resources be taken when they are needed, or in advance.
///
/// # Safety
///
/// `fid` must be the start of an open fabric of `T`.
unsafe extern "C" fn enable_dynamic_rsrc_alloc_callback<T: CxiFabricOps>(
    fid: *mut bindings::kfid,
    enable: bool,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    from_result(|| {
        this.enable_dynamic_rsrc_alloc(enable)?;
        Ok(0)
    })
}

/// Tells the device of a domain.
///
/// # Safety
///
/// `fid` must be the start of an open domain of `T`, `device` null or valid for writes.
unsafe extern "C" fn get_device_callback<T: CxiDomainOps>(
    fid: *mut bindings::kfid,
    device: *mut *mut bindings::device,
) -> c_int {
    // SAFETY: By the safety requirements; the head starts with a `struct kfid`.
    let this = unsafe { Fid::<T>::borrow(fid.cast()) };
    from_result(|| {
        if device.is_null() {
            return Err(EINVAL);
        }
        let found = this.device()?;
        // SAFETY: `device` is valid for writes, as it is not null.
        unsafe { device.write(found.as_raw()) };
        Ok(0)
    })
}
