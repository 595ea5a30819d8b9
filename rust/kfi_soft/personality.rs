// SPDX-License-Identifier: GPL-2.0

//! As whom the provider presents itself.
//!
//! Some consumers know one provider only, by its names. For them this one can take those names.

#![forbid(unsafe_code)]

use kernel::str::CStr;

use crate::{
    kfi::flags::{
        KFI_PROTO_CXI,
        PROV_SPECIFIC, //
    },
    module_parameters, //
};

/// As whom the provider presents itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Personality {
    /// As itself.
    Soft,
    /// As kcxi.
    Kcxi,
}

/// Returns the one that was chosen when the module was loaded.
pub(crate) fn current() -> Personality {
    if *module_parameters::kcxi.value_ref() {
        Personality::Kcxi
    } else {
        Personality::Soft
    }
}

/// Returns whether endpoints may do only what they have asked for: as the headers have it, and as
/// hardware that does not look does not.
pub(crate) fn is_strict() -> bool {
    match *module_parameters::strict.value_ref() {
        0 => false,
        chosen if chosen > 0 => true,
        _ => current() != Personality::Kcxi,
    }
}

impl Personality {
    /// Returns the name of the provider.
    pub(crate) fn provider_name(self) -> &'static CStr {
        match self {
            Self::Soft => c"kfi_soft",
            Self::Kcxi => c"kcxi",
        }
    }

    /// Returns the name of the one fabric, see [`fabric_name`](crate::nic::fabric_name).
    pub(crate) fn fabric_name(self) -> &'static CStr {
        match self {
            Self::Soft => c"soft",
            Self::Kcxi => c"cxi",
        }
    }

    /// Returns what the names of NICs begin with; their number follows.
    pub(crate) fn nic_name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Kcxi => "cxi",
        }
    }

    /// Returns the wire protocol.
    pub(crate) fn protocol(self) -> u32 {
        match self {
            Self::Soft => PROV_SPECIFIC | 1,
            Self::Kcxi => KFI_PROTO_CXI,
        }
    }
}
