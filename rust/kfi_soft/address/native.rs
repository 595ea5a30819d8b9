// SPDX-License-Identifier: GPL-2.0

//! The native address of an endpoint: a NIC and a port of it.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*, //
};

use crate::{
    kfi::provider::address_book::BookAddress,
    limits, //
};

/// An address, as the wire has it: from the lowest bit on 12 bits of port, 20 bits of NIC and 10 bits
/// of flags, all else 0.
///
/// # Invariants
///
/// Flags and the bits above are 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Address(u64);

impl Address {
    /// Bytes of an address.
    pub(crate) const LEN: usize = size_of::<u64>();
    /// The beginning of its text.
    pub(crate) const SCHEME: &'static str = "fi_addr_soft://";

    /// Bits of the port.
    const PORT_BITS: u32 = limits::PORTS.ilog2();
    /// Bits of the NIC.
    const NIC_BITS: u32 = 20;
    /// The bits of the port.
    const PORT_MASK: u64 = (1 << Self::PORT_BITS) - 1;
    /// The bits of the NIC, in its place.
    const NIC_MASK: u64 = ((1 << Self::NIC_BITS) - 1) << Self::PORT_BITS;
    /// The lowest flag: there is no port yet. Set in the addresses of
    /// [`Place`](crate::address::place::Place) only.
    pub(crate) const ANY_PORT: u64 = 1 << (Self::PORT_BITS + Self::NIC_BITS);

    /// The largest port.
    pub(crate) const MAX_PORT: u16 = Self::PORT_MASK as u16;
    /// The largest number of a NIC.
    pub(crate) const MAX_NIC: u32 = (Self::NIC_MASK >> Self::PORT_BITS) as u32;

    /// The address of a port of a NIC; `None` if a number is too large.
    pub(crate) const fn new(nic: u32, port: u16) -> Option<Self> {
        if nic > Self::MAX_NIC || port > Self::MAX_PORT {
            return None;
        }
        // INVARIANT: Both have been found to fit.
        Some(Self(((nic as u64) << Self::PORT_BITS) | port as u64))
    }

    /// Takes an address as one number; `None` if it is malformed.
    pub(crate) const fn from_u64(raw: u64) -> Option<Self> {
        if raw & !(Self::NIC_MASK | Self::PORT_MASK) != 0 {
            return None;
        }
        // INVARIANT: No other bits are set.
        Some(Self(raw))
    }

    /// Returns the address as one number.
    pub(crate) const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the number of the NIC.
    pub(crate) const fn nic(self) -> u32 {
        // The mask leaves 20 bits.
        ((self.0 & Self::NIC_MASK) >> Self::PORT_BITS) as u32
    }

    /// Returns the port.
    pub(crate) const fn port(self) -> u16 {
        // The mask leaves 12 bits.
        (self.0 & Self::PORT_MASK) as u16
    }

    /// Reads what [`fmt::Display`] writes; `None` if it is something else.
    pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
        let rest = text.strip_prefix(Self::SCHEME.as_bytes())?;
        let colon = rest.iter().position(|byte| *byte == b':')?;
        let nic = hex(rest.get(..colon)?)?;
        let port = hex(rest.get(colon.checked_add(1)?..)?)?;
        Self::new(nic, u16::try_from(port).ok()?)
    }
}

impl BookAddress for Address {
    fn from_u64(raw: u64) -> Option<Self> {
        Self::from_u64(raw)
    }

    fn as_u64(self) -> u64 {
        Self::as_u64(self)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!("{}{:#x}:{:#x}", Self::SCHEME, self.nic(), self.port()))
    }
}

/// Reads a hexadecimal number that begins with 0x; `None` if it is something else.
pub(crate) fn hex(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"0x")?;
    // `from_str_radix` would take a sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// Reads a decimal number; `None` if it is something else.
pub(crate) fn decimal(text: &[u8]) -> Option<u32> {
    // `parse` would take a sign.
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// As [`decimal`], without leading zeros, which would mean octal to some.
pub(crate) fn plain_decimal(text: &[u8]) -> Option<u32> {
    match text {
        [b'0', _, ..] => None,
        _ => decimal(text),
    }
}

/// Reads an IPv4 address in dotted form; `None` if it is something else.
pub(crate) fn inet(text: &[u8]) -> Option<u32> {
    let mut address = [0; 4];
    let mut parts = text.split(|byte| *byte == b'.');
    for byte in &mut address {
        *byte = u8::try_from(plain_decimal(parts.next()?)?).ok()?;
    }
    parts
        .next()
        .is_none()
        .then_some(u32::from_be_bytes(address))
}

#[kunit_tests(kfi_soft_address)]
mod tests {
    use super::*;
    use kernel::str::CString;

    #[test]
    fn fields_have_their_places() -> Result {
        let address = Address::new(0x12345, 0x678).ok_or(EINVAL)?;
        assert_eq!(address.as_u64(), 0x1234_5678);
        assert_eq!(address.nic(), 0x12345);
        assert_eq!(address.port(), 0x678);
        assert_eq!(Address::from_u64(address.as_u64()), Some(address));
        Ok(())
    }

    #[test]
    fn limits_of_fields() {
        assert!(Address::new(Address::MAX_NIC, Address::MAX_PORT).is_some());
        assert!(Address::new(Address::MAX_NIC + 1, 0).is_none());
        assert!(Address::new(0, Address::MAX_PORT + 1).is_none());
        assert!(Address::from_u64(u64::from(u32::MAX)).is_some());
        // Each of the flags and one of the bits above.
        for bit in 32..64 {
            assert!(Address::from_u64(1 << bit).is_none());
        }
    }

    #[test]
    fn text_there_and_back() -> Result {
        for (nic, port) in [(0, 0), (1, 0x7f), (Address::MAX_NIC, Address::MAX_PORT)] {
            let address = Address::new(nic, port).ok_or(EINVAL)?;
            let text = CString::try_from_fmt(fmt!("{}", address))?;
            assert_eq!(Address::from_text(text.to_bytes()), Some(address));
        }
        let address = Address::new(1, 0x7f).ok_or(EINVAL)?;
        assert_eq!(
            CString::try_from_fmt(fmt!("{}", address))?.to_bytes(),
            b"fi_addr_soft://0x1:0x7f"
        );
        Ok(())
    }

    #[test]
    fn text_that_is_no_address() {
        for text in [
            "",
            "0x1:0x7f",
            "fi_addr_soft://",
            "fi_addr_soft://0x1",
            "fi_addr_soft://0x1:",
            "fi_addr_soft://:0x1",
            "fi_addr_soft://1:1",
            "fi_addr_soft://0x:0x",
            "fi_addr_soft://0x+1:0x1",
            "fi_addr_soft://0x100000:0x1",
            "fi_addr_soft://0x1:0x1000",
            "fi_addr_soft://0x1:0x1 ",
        ] {
            assert!(Address::from_text(text.as_bytes()).is_none());
        }
    }

    #[test]
    fn order_is_by_nic_then_port() {
        assert!(Address::new(0, 4095) < Address::new(1, 0));
        assert!(Address::new(1, 0) < Address::new(1, 1));
    }
}
