// SPDX-License-Identifier: GPL-2.0

//! The extensions that consumers of the kcxi provider use (`include/kfi_cxi_ext.h`).

use core::marker::PhantomData;
use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    DomainOps,
    FabricOps, //
};
use crate::kfi::{
    bindings,
    fid::{
        ExtraOps,
        Fid,
        OpsName, //
    },
    linux::dma_device::DmaDevice, //
};

/// The extensions of a fabric (`struct kfi_cxi_fabric_ops`). All may sleep.
pub trait CxiFabricOps: FabricOps {
    /// Lets resources be taken when they are needed, or in advance.
    fn enable_dynamic_rsrc_alloc(&self, enable: bool) -> Result;
}

/// The extensions of a domain (`struct kfi_cxi_domain_ops`). All may sleep.
pub trait CxiDomainOps: DomainOps {
    /// Returns the device. The one that is returned first stays until the domain is closed, and is the
    /// only one that consumers are told; it is given up before [`Object::release`] is called. Others are
    /// given up before this call returns to the consumer.
    ///
    /// [`Object::release`]: crate::kfi::fid::Object::release
    fn device(&self) -> Result<Arc<DmaDevice>>;
}

/// Returns the extensions of a fabric; `EINVAL` for other names.
pub fn cxi_fabric_ops<'o, T: CxiFabricOps>(
    _fabric: &Fid<T>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, T>> {
    struct Table<T>(PhantomData<T>);
    impl<T: CxiFabricOps> Table<T> {
        const OPS: bindings::kfi_cxi_fabric_ops = bindings::kfi_cxi_fabric_ops {
            enable_dynamic_rsrc_alloc: Some(enable_dynamic_rsrc_alloc_callback::<T>),
        };
    }

    // SAFETY: It is the table of that name, and expects fabrics of `T`.
    unsafe {
        ExtraOps::new(
            name,
            bindings::KFI_CXI_FAB_OPS_1,
            const { &Table::<T>::OPS },
        )
    }
    .ok_or(EINVAL)
}

/// Returns the extensions of a domain; `EINVAL` for other names.
pub fn cxi_domain_ops<'o, T: CxiDomainOps>(
    _domain: &Fid<T>,
    name: OpsName<'o>,
) -> Result<ExtraOps<'o, T>> {
    struct Table<T>(PhantomData<T>);
    impl<T: CxiDomainOps> Table<T> {
        const OPS: bindings::kfi_cxi_domain_ops = bindings::kfi_cxi_domain_ops {
            get_device: Some(get_device_callback::<T>),
        };
    }

    // SAFETY: It is the table of that name, and expects domains of `T`.
    unsafe {
        ExtraOps::new(
            name,
            bindings::KFI_CXI_DOM_OPS_1,
            const { &Table::<T>::OPS },
        )
    }
    .ok_or(EINVAL)
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
        // SAFETY: By the safety requirements it is open, and consumers close nothing during a call of its
        // operations.
        let told = unsafe { this.data().device.get_or(|| this.device()) }?;
        // SAFETY: `device` is valid for writes, as it is not null.
        unsafe { device.write(told) };
        Ok(0)
    })
}
