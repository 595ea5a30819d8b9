// SPDX-License-Identifier: GPL-2.0

//! Virtual NICs.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::CString, //
};

use crate::{
    address::{
        self,
        Address, //
    },
    limits,
    module_parameters,
    personality, //
};

/// A NIC of this node, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nic(u32);

impl Nic {
    /// Returns all.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..*module_parameters::nics.value_ref()).map(Self)
    }

    /// The NIC of a number; `None` if this node has none such.
    pub(crate) fn new(number: u32) -> Option<Self> {
        (number < *module_parameters::nics.value_ref()).then_some(Self(number))
    }

    /// Finds a NIC of this node by its name.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        Self::new(number(name)?)
    }

    /// Returns its number.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Returns its name.
    pub(crate) fn name(self) -> Result<CString> {
        CString::try_from_fmt(fmt!("{}{}", personality::current().nic_name(), self.0))
    }
}

/// Returns the number that the name of a NIC has, whether this node has that NIC or not.
pub(crate) fn number(name: &[u8]) -> Option<u32> {
    let digits = name.strip_prefix(personality::current().nic_name().as_bytes())?;
    // No leading zeros: a NIC has one name.
    if digits.len() > 1 && digits.first() == Some(&b'0') {
        return None;
    }
    address::decimal(digits).filter(|number| *number <= Address::MAX_NIC)
}

/// `EINVAL` unless a machine may have as many NICs.
pub(crate) fn check_count(count: u32) -> Result {
    if (1..=limits::MAX_NICS).contains(&count) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

#[kunit_tests(kfi_soft_nic)]
mod tests {
    use super::*;

    #[test]
    fn nics_have_one_name() -> Result {
        let name = Nic(0).name()?;
        assert!(Nic::find(name.to_bytes()) == Some(Nic(0)));
        for number in [0, 1, 63, Address::MAX_NIC] {
            assert!(super::number(Nic(number).name()?.to_bytes()) == Some(number));
        }
        assert!(super::number(Nic(Address::MAX_NIC + 1).name()?.to_bytes()).is_none());
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
        assert!(Nic::new(count - 1).is_some());
        assert!(Nic::new(count).is_none());
        assert_eq!(Nic::all().count(), count as usize);
    }

    #[test]
    fn limits_of_nics() {
        assert!(check_count(1).is_ok());
        assert!(check_count(limits::MAX_NICS).is_ok());
        assert!(check_count(0).is_err());
        assert!(check_count(limits::MAX_NICS + 1).is_err());
    }
}
