// SPDX-License-Identifier: GPL-2.0

//! Virtual NICs.
//!
//! They have numbers from `nic_base` on or, if they are given IPv4 addresses, the low 20 bits of these.
//! All NICs that reach each other have the upper 12 bits in common, which name their fabric; without
//! addresses these are those of 127.0.0.0.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::SetOnce, //
};

use crate::{
    address::native::{
        self,
        Address, //
    },
    limits,
    personality, //
};

/// The upper bits of the addresses of NICs that were given none.
const LOOPBACK: u32 = 127 << 24;

/// A NIC of this node, by where it is among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Nic(u32);

/// The NICs of this node.
pub(crate) struct Nics {
    /// Their numbers, each once.
    numbers: [u32; limits::MAX_NICS as usize],
    /// How many there are.
    count: u32,
    /// Each number is one more than that before.
    in_a_row: bool,
    /// The bits of their addresses that are no number.
    fabric: u32,
    /// They were given addresses, by which they reach those of other machines.
    has_network: bool,
    /// The name of the fabric, with a null, if they were.
    fabric_name: [u8; FABRIC_NAME],
}

/// Bytes of a fabric's name.
const FABRIC_NAME: usize = 32;

/// The NICs of this node, from when the module is initialised.
static NICS: SetOnce<Nics> = SetOnce::new();

/// Why NICs cannot have the addresses that they were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong<'a> {
    /// This is none.
    NoAddress(&'a [u8]),
    /// This is one of IPv6.
    Inet6(&'a [u8]),
    /// No machine can have this one.
    NotOfMachine(&'a [u8]),
    /// This one is on another fabric than those before.
    OtherFabric(&'a [u8]),
    /// This one is there twice.
    Twice(&'a [u8]),
    /// There are too many.
    TooMany,
}

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, what): (&[u8], _) = match self {
            Self::NoAddress(text) => (text, "no IPv4 address"),
            Self::Inet6(text) => (text, "addresses of IPv6 are not supported"),
            Self::NotOfMachine(text) => (text, "no machine can have it"),
            Self::OtherFabric(text) => (
                text,
                "on another fabric than the first one, as the upper 12 bits differ",
            ),
            Self::Twice(text) => (text, "is there twice"),
            Self::TooMany => (b"", "too many NICs"),
        };
        let text = kernel::str::BStr::from_bytes(text);
        f.write_fmt(fmt!("{}: {}", text, what))
    }
}

impl Nics {
    /// NICs without addresses, with so many numbers from one on; `EINVAL` if there are none such.
    pub(crate) fn numbered(base: u32, count: u32) -> Result<Self> {
        check_count(count)?;
        check_base(base, count)?;
        let mut numbers = [0; limits::MAX_NICS as usize];
        for (number, at) in numbers.iter_mut().zip(0..count) {
            *number = base.wrapping_add(at);
        }
        Ok(Self {
            numbers,
            count,
            in_a_row: true,
            fabric: LOOPBACK,
            has_network: false,
            fabric_name: [0; FABRIC_NAME],
        })
    }

    /// NICs with addresses, of a list with commas between them.
    pub(crate) fn addressed(list: &[u8]) -> core::result::Result<Self, Wrong<'_>> {
        let mut this = Self {
            numbers: [0; limits::MAX_NICS as usize],
            count: 0,
            in_a_row: true,
            fabric: 0,
            has_network: true,
            fabric_name: [0; FABRIC_NAME],
        };
        for text in list.split(|byte| *byte == b',') {
            let Some(address) = native::inet(text) else {
                return Err(if text.contains(&b':') {
                    Wrong::Inet6(text)
                } else {
                    Wrong::NoAddress(text)
                });
            };
            let [first, ..] = address.to_be_bytes();
            // This network, and the addresses of groups and what is reserved.
            if first == 0 || first >= 224 {
                return Err(Wrong::NotOfMachine(text));
            }
            let number = address & Address::MAX_NIC;
            let fabric = address ^ number;
            if this.count == 0 {
                this.fabric = fabric;
            } else if this.fabric != fabric {
                return Err(Wrong::OtherFabric(text));
            }
            let (taken, free) = this.numbers.split_at_mut(this.count as usize);
            if taken.contains(&number) {
                return Err(Wrong::Twice(text));
            }
            let next = taken.last().map(|last| last.wrapping_add(1));
            this.in_a_row &= next.is_none_or(|next| next == number);
            *free.first_mut().ok_or(Wrong::TooMany)? = number;
            this.count = this.count.wrapping_add(1);
        }
        Ok(this)
    }

    /// Makes these the NICs of this node.
    pub(crate) fn use_them(mut self) -> Result {
        let name = personality::current().fabric_name();
        let [a, b, c, d] = self.fabric.to_be_bytes();
        let text = CString::try_from_fmt(fmt!("{}:{}.{}.{}.{}/12", name, a, b, c, d))?;
        let bytes = text.to_bytes_with_nul();
        self.fabric_name
            .get_mut(..bytes.len())
            .ok_or(EINVAL)?
            .copy_from_slice(bytes);
        // Once, as a module is initialised once.
        NICS.populate(self);
        Ok(())
    }

    /// Returns the numbers.
    fn numbers(&self) -> &[u32] {
        self.numbers.get(..self.count as usize).unwrap_or(&[])
    }

    /// Returns the NIC of a number, if it is one of these.
    #[inline]
    fn find(&self, number: u32) -> Option<Nic> {
        if self.in_a_row {
            let [first, ..] = self.numbers;
            let index = number.wrapping_sub(first);
            return (index < self.count).then_some(Nic(index));
        }
        let at = self.numbers().iter().position(|other| *other == number)?;
        Some(Nic(u32::try_from(at).ok()?))
    }
}

impl Nic {
    /// Returns all.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..count()).map(Self)
    }

    /// The NIC of a number; `None` if this node has none such.
    #[inline]
    pub(crate) fn new(number: u32) -> Option<Self> {
        NICS.as_ref()?.find(number)
    }

    /// Finds a NIC of this node by its name.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        Self::new(number(name)?)
    }

    /// Returns its number, which is part of its address.
    pub(crate) fn number(self) -> u32 {
        let number = NICS
            .as_ref()
            .and_then(|nics| nics.numbers.get(self.index()));
        // There is one for each.
        number.copied().unwrap_or(0)
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

/// Returns how many there are.
pub(crate) fn count() -> u32 {
    NICS.as_ref().map_or(0, |nics| nics.count)
}

/// Returns whether those of other machines can be reached.
pub(crate) fn has_network() -> bool {
    NICS.as_ref().is_some_and(|nics| nics.has_network)
}

/// Returns the upper bits of the addresses, which name the fabric.
pub(crate) fn fabric() -> u32 {
    NICS.as_ref().map_or(LOOPBACK, |nics| nics.fabric)
}

/// Returns the name of the fabric, which tells the upper bits if NICs have addresses.
pub(crate) fn fabric_name() -> &'static CStr {
    NICS.as_ref()
        .filter(|nics| nics.has_network)
        .and_then(|nics| CStr::from_bytes_until_nul(&nics.fabric_name).ok())
        .unwrap_or(personality::current().fabric_name())
}

/// Returns the IPv4 address of the NIC with a number.
pub(crate) fn inet(number: u32) -> u32 {
    fabric() | number
}

/// Returns the number of the NIC that has an IPv4 address; `None` if it is on another fabric.
pub(crate) fn of_inet(address: u32) -> Option<u32> {
    let number = address & Address::MAX_NIC;
    (inet(number) == address).then_some(number)
}

/// Returns the number that the NIC of a name has. Where NICs have no addresses this node need not have
/// that NIC.
pub(crate) fn number(name: &[u8]) -> Option<u32> {
    let digits = name.strip_prefix(personality::current().nic_name().as_bytes())?;
    // A NIC has one name.
    let index = native::plain_decimal(digits)?;
    let nics = NICS.as_ref()?;
    if nics.has_network {
        let index = usize::try_from(index).ok()?;
        return nics.numbers().get(index).copied();
    }
    let [base, ..] = nics.numbers;
    base.checked_add(index)
        .filter(|number| *number <= Address::MAX_NIC)
}

/// `EINVAL` unless a machine may have as many NICs.
fn check_count(count: u32) -> Result {
    if (1..=limits::MAX_NICS).contains(&count) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// `EINVAL` unless so many NICs from the number `base` on have numbers.
fn check_base(base: u32, count: u32) -> Result {
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
        let base = Nic(0).number();
        let name = Nic(0).name()?;
        assert!(Nic::find(name.to_bytes()) == Some(Nic(0)));
        let last = Address::MAX_NIC - base;
        if !has_network() {
            for index in [0, 1, 63, last].into_iter().filter(|index| *index <= last) {
                assert!(super::number(Nic(index).name()?.to_bytes()) == Some(base + index));
            }
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
    fn a_node_has_its_nics_only() -> Result {
        let nics = Nics::numbered(7, 3)?;
        assert!(nics.find(6).is_none());
        assert_eq!(nics.find(7), Some(Nic(0)));
        assert_eq!(nics.find(9), Some(Nic(2)));
        assert!(nics.find(10).is_none());
        assert!(Nics::numbered(0, 1)?.find(u32::MAX).is_none());
        assert_eq!(Nic::all().count(), count() as usize);
        for nic in Nic::all() {
            assert_eq!(Nic::new(nic.number()), Some(nic));
        }
        Ok(())
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

    #[test]
    fn addresses_have_numbers() -> Result {
        let nics = Nics::addressed(b"10.16.3.7,10.31.255.255,10.16.0.0").map_err(|_| EINVAL)?;
        assert_eq!(nics.numbers(), [0x307, Address::MAX_NIC, 0]);
        assert_eq!(nics.fabric, u32::from_be_bytes([10, 16, 0, 0]));
        assert_eq!(nics.find(0), Some(Nic(2)));
        assert_eq!(nics.find(Address::MAX_NIC), Some(Nic(1)));
        assert_eq!(nics.find(1), None);
        let row = Nics::addressed(b"127.0.0.1,127.0.0.2,127.0.0.3");
        assert!(row.is_ok_and(|row| row.in_a_row && row.find(3) == Some(Nic(2))));
        Ok(())
    }

    #[test]
    fn addresses_that_nics_cannot_have() {
        let wrong = |list| Nics::addressed(list).err();
        assert_eq!(wrong(b"10.0.0.256"), Some(Wrong::NoAddress(b"10.0.0.256")));
        assert_eq!(wrong(b"10.0.0.1,"), Some(Wrong::NoAddress(b"")));
        assert_eq!(wrong(b"eth0"), Some(Wrong::NoAddress(b"eth0")));
        assert_eq!(wrong(b"10.0.0.1 "), Some(Wrong::NoAddress(b"10.0.0.1 ")));
        assert_eq!(wrong(b"fe80::1"), Some(Wrong::Inet6(b"fe80::1")));
        assert_eq!(wrong(b"0.0.0.0"), Some(Wrong::NotOfMachine(b"0.0.0.0")));
        assert_eq!(wrong(b"224.0.0.1"), Some(Wrong::NotOfMachine(b"224.0.0.1")));
        assert_eq!(
            wrong(b"10.0.0.1,10.16.0.2"),
            Some(Wrong::OtherFabric(b"10.16.0.2"))
        );
        assert_eq!(
            wrong(b"10.0.0.1,10.0.0.2,10.0.0.1"),
            Some(Wrong::Twice(b"10.0.0.1"))
        );
    }

    #[test]
    fn as_many_addresses_as_there_are_nics() -> Result {
        let mut list = KVec::new();
        for last in 1..=limits::MAX_NICS {
            let text = CString::try_from_fmt(fmt!("10.0.0.{},", last))?;
            list.extend_from_slice(text.to_bytes(), GFP_KERNEL)?;
        }
        let most = list.get(..list.len() - 1).unwrap_or(&[]);
        assert!(Nics::addressed(most).is_ok_and(|nics| nics.count == limits::MAX_NICS));
        list.extend_from_slice(b"10.0.0.65", GFP_KERNEL)?;
        assert_eq!(Nics::addressed(&list).err(), Some(Wrong::TooMany));
        Ok(())
    }
}
