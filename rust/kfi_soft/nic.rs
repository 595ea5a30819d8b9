// SPDX-License-Identifier: GPL-2.0

//! Virtual NICs.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CString, //
};

use crate::{
    address::native::{
        self,
        Address, //
    },
    limits,
    module_parameters,
    personality, //
};

/// A NIC of this node, by where it is among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nic(u32);

impl Nic {
    /// Returns all.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..*module_parameters::nics.value_ref()).map(Self)
    }

    /// The NIC of a number; `None` if this node has none such.
    pub(crate) fn new(number: u32) -> Option<Self> {
        let index = number.checked_sub(*module_parameters::nic_base.value_ref())?;
        (index < *module_parameters::nics.value_ref()).then_some(Self(index))
    }

    /// Finds a NIC of this node by its name.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        Self::new(number(name)?)
    }

    /// Returns its number, which is part of its address.
    pub(crate) fn number(self) -> u32 {
        // No number is too large: see `check_base`.
        self.0
            .wrapping_add(*module_parameters::nic_base.value_ref())
    }

    /// Returns where it is among the NICs of the node, from 0.
    pub(crate) fn index(self) -> usize {
        // At most `MAX_NICS`.
        self.0 as usize
    }

    /// Returns its name.
    pub(crate) fn name(self) -> Result<CString> {
        CString::try_from_fmt(fmt!("{}{}", personality::current().nic_name(), self.0))
    }
}

/// Returns the number that the NIC of a name has, whether this node has that NIC or not.
pub(crate) fn number(name: &[u8]) -> Option<u32> {
    let digits = name.strip_prefix(personality::current().nic_name().as_bytes())?;
    // A NIC has one name.
    native::plain_decimal(digits)?
        .checked_add(*module_parameters::nic_base.value_ref())
        .filter(|number| *number <= Address::MAX_NIC)
}

/// `EINVAL` unless a machine may have as many NICs.
pub(crate) fn check_count(count: u32) -> Result {
    if (1..=limits::MAX_NICS).contains(&count) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// `EINVAL` unless so many NICs from the number `base` on have numbers.
pub(crate) fn check_base(base: u32, count: u32) -> Result {
    match base.checked_add(count.saturating_sub(1)) {
        Some(last) if last <= Address::MAX_NIC => Ok(()),
        _ => Err(EINVAL),
    }
}

#[kunit_tests(kfi_soft_nic)]
mod tests {
    use super::*;

    #[test]
    fn nics_have_one_name() -> Result {
        let base = *module_parameters::nic_base.value_ref();
        let name = Nic(0).name()?;
        assert!(Nic::find(name.to_bytes()) == Some(Nic(0)));
        assert!(Nic(0).number() == base);
        let last = Address::MAX_NIC - base;
        for index in [0, 1, 63, last].into_iter().filter(|index| *index <= last) {
            assert!(super::number(Nic(index).name()?.to_bytes()) == Some(base + index));
        }
        assert!(super::number(Nic(last + 1).name()?.to_bytes()).is_none());
        let prefix = personality::current().nic_name();
        for rest in ["", "00", "01", "+1", "-1", "0 ", "x", "4294967296"] {
            let name = CString::try_from_fmt(fmt!("{}{}", prefix, rest))?;
            assert!(super::number(name.to_bytes()).is_none());
        }
        assert!(super::number(b"Soft0").is_none());
        assert!(super::number(b"").is_none());
        Ok(())
    }

    #[test]
    fn a_node_has_its_nics_only() {
        let count = *module_parameters::nics.value_ref();
        let base = *module_parameters::nic_base.value_ref();
        assert!(Nic::new(base + count - 1).is_some());
        assert!(Nic::new(base + count).is_none());
        assert!(base == 0 || Nic::new(base - 1).is_none());
        assert_eq!(Nic::all().count(), count as usize);
    }

    #[test]
    fn limits_of_nics() {
        assert!(check_count(1).is_ok());
        assert!(check_count(limits::MAX_NICS).is_ok());
        assert!(check_count(0).is_err());
        assert!(check_count(limits::MAX_NICS + 1).is_err());
        assert!(check_base(0, limits::MAX_NICS).is_ok());
        assert!(check_base(Address::MAX_NIC, 1).is_ok());
        assert!(check_base(Address::MAX_NIC, 2).is_err());
        assert!(check_base(u32::MAX, 2).is_err());
    }
}
