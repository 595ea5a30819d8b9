// SPDX-License-Identifier: GPL-2.0

//! Addresses in address vectors (`kfi_addr_t`).

/// An address: an entry of an address vector, with the number of a receive context in the top bits
/// where the vector has them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FabricAddr(u64);

impl FabricAddr {
    /// No address, or any source (`KFI_ADDR_UNSPEC`).
    pub(crate) const UNSPEC: Self = Self(u64::MAX);
    /// An address that is not known (`KFI_ADDR_NOTAVAIL`).
    pub(crate) const NOTAVAIL: Self = Self(u64::MAX);

    /// Takes an address from C.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Returns the address for C.
    pub(crate) const fn as_raw(self) -> u64 {
        self.0
    }
}
