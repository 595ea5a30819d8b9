// SPDX-License-Identifier: GPL-2.0

//! Enumerations in attributes.

use super::bindings;

/// Kinds of address vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AvType {
    /// Addresses are opaque (`KFI_AV_MAP`).
    Map,
    /// Addresses are indices (`KFI_AV_TABLE`).
    Table,
}

impl AvType {
    /// Takes a kind from C: `Ok(None)` if none was chosen, `Err` if it is unknown.
    pub fn from_raw(raw: bindings::kfi_av_type) -> Result<Option<Self>, UnknownValue> {
        match raw {
            bindings::KFI_AV_UNSPEC => Ok(None),
            bindings::KFI_AV_MAP => Ok(Some(Self::Map)),
            bindings::KFI_AV_TABLE => Ok(Some(Self::Table)),
            _ => Err(UnknownValue),
        }
    }

    /// Returns the kind for C.
    pub fn as_raw(self) -> bindings::kfi_av_type {
        match self {
            Self::Map => bindings::KFI_AV_MAP,
            Self::Table => bindings::KFI_AV_TABLE,
        }
    }
}

/// The party that keeps queues from overrunning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceMgmt {
    /// The consumer (`KFI_RM_DISABLED`).
    Disabled,
    /// The provider (`KFI_RM_ENABLED`).
    Enabled,
}

impl ResourceMgmt {
    /// Takes a value from C: `Ok(None)` if none was chosen, `Err` if it is unknown.
    pub fn from_raw(raw: bindings::kfi_resource_mgmt) -> Result<Option<Self>, UnknownValue> {
        match raw {
            bindings::KFI_RM_UNSPEC => Ok(None),
            bindings::KFI_RM_DISABLED => Ok(Some(Self::Disabled)),
            bindings::KFI_RM_ENABLED => Ok(Some(Self::Enabled)),
            _ => Err(UnknownValue),
        }
    }

    /// Returns the value for C.
    pub fn as_raw(self) -> bindings::kfi_resource_mgmt {
        match self {
            Self::Disabled => bindings::KFI_RM_DISABLED,
            Self::Enabled => bindings::KFI_RM_ENABLED,
        }
    }
}

/// A value that an enumeration does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownValue;

impl From<UnknownValue> for kernel::error::Error {
    fn from(_: UnknownValue) -> Self {
        kernel::error::code::EINVAL
    }
}

/// The threading that any consumer can live with (`KFI_THREAD_SAFE`).
pub const THREAD_SAFE: u32 = bindings::KFI_THREAD_SAFE;

/// Returns whether a threading model is known.
pub fn is_threading(threading: bindings::kfi_threading) -> bool {
    threading <= bindings::KFI_THREAD_ENDPOINT
}

/// Progress without help (`KFI_PROGRESS_AUTO`).
pub const PROGRESS_AUTO: u32 = bindings::KFI_PROGRESS_AUTO;

/// Returns whether a kind of progress is known.
pub fn is_progress(progress: bindings::kfi_progress) -> bool {
    progress <= bindings::KFI_PROGRESS_MANUAL
}

/// The default traffic class (`KFI_TC_BEST_EFFORT`).
pub const TC_BEST_EFFORT: u32 = bindings::KFI_TC_BEST_EFFORT;

/// Returns whether a traffic class is known: none, a DSCP of 6 bits, or a label.
pub fn is_traffic_class(tclass: u32) -> bool {
    let dscp = bindings::KFI_TC_DSCP..bindings::KFI_TC_DSCP + (1 << 6);
    tclass == bindings::KFI_TC_UNSPEC
        || dscp.contains(&tclass)
        || (bindings::KFI_TC_LABEL..=bindings::KFI_TC_NETWORK_CTRL).contains(&tclass)
}
