// SPDX-License-Identifier: GPL-2.0

//! Addresses as an address vector gives them out (`kfi_addr_t`), and their formats.

use super::bindings;

/// The address of a peer: an entry of an address vector, and on top the index of a receive context.
///
/// It means nothing outside of its vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct FabricAddr(u64);

impl FabricAddr {
    /// No address, or any source (`KFI_ADDR_UNSPEC`).
    // bindgen makes a signed number of the macro, so the value is spelled out.
    pub const UNSPEC: Self = Self(u64::MAX);

    /// Not known (`KFI_ADDR_NOTAVAIL`).
    pub const NOTAVAIL: Self = Self(u64::MAX);

    /// Takes an address from C.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Returns the address for C.
    pub const fn as_raw(self) -> u64 {
        self.0
    }
}

impl From<u32> for FabricAddr {
    /// The address that is an index.
    fn from(index: u32) -> Self {
        Self(u64::from(index))
    }
}

/// How binary addresses lie in memory, as far as their length is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressFormat {
    /// `struct sockaddr_in`.
    Inet,
    /// `struct sockaddr_in6`.
    Inet6,
    /// 8 bytes of bit fields (`KFI_ADDR_CXI`).
    Cxi,
}

impl AddressFormat {
    /// Takes a format from C, where none means `native`; `None` for others.
    ///
    /// Of any `struct sockaddr` there may be no more bytes than the shortest one has.
    pub fn from_raw(raw: u32, native: Self) -> Option<Self> {
        match raw {
            FORMAT_UNSPEC => Some(native),
            SOCKADDR | SOCKADDR_IN => Some(Self::Inet),
            bindings::KFI_SOCKADDR_IN6 => Some(Self::Inet6),
            ADDR_CXI => Some(Self::Cxi),
            _ => None,
        }
    }

    /// Returns the bytes of an address.
    pub const fn len(self) -> usize {
        match self {
            Self::Inet => 16,
            Self::Inet6 => 28,
            Self::Cxi => 8,
        }
    }
}

/// No address format (`KFI_FORMAT_UNSPEC`).
pub const FORMAT_UNSPEC: u32 = bindings::KFI_FORMAT_UNSPEC;
/// Any `struct sockaddr` (`KFI_SOCKADDR`).
pub const SOCKADDR: u32 = bindings::KFI_SOCKADDR;
/// `struct sockaddr_in` (`KFI_SOCKADDR_IN`).
pub const SOCKADDR_IN: u32 = bindings::KFI_SOCKADDR_IN;
/// 8 bytes of bit fields (`KFI_ADDR_CXI`).
pub const ADDR_CXI: u32 = bindings::KFI_ADDR_CXI;

/// The address family of `struct sockaddr_in` (`AF_INET`).
pub const AF_INET: u16 = 2;
