// SPDX-License-Identifier: GPL-2.0

//! Where an endpoint is, or is to be: a NIC, and a port if one was asked for.

#![forbid(unsafe_code)]

use kernel::{
    fmt,
    prelude::*, //
};

use crate::{
    address::native::{
        self,
        Address, //
    },
    kfi::addr,
    nic, //
};

/// How addresses lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressFormat {
    /// As an [`Address`]; with its lowest flag set and port 0 if there is no port yet.
    Native,
    /// As a `struct sockaddr_in`, see [`nic::inet`]; port 0 means that there is none yet.
    Inet,
}

impl AddressFormat {
    /// Takes a format from C; `None` if it is not known or none.
    pub(crate) fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            addr::ADDR_CXI => Some(Self::Native),
            addr::SOCKADDR_IN => Some(Self::Inet),
            // The family tells the rest, and there is one.
            addr::SOCKADDR => Some(Self::Inet),
            _ => None,
        }
    }

    /// Returns the format for C.
    pub(crate) fn as_raw(self) -> u32 {
        match self {
            Self::Native => addr::ADDR_CXI,
            Self::Inet => addr::SOCKADDR_IN,
        }
    }

    /// Returns the bytes of an address.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Native => Address::LEN,
            Self::Inet => INET_LEN,
        }
    }
}

/// Bytes of a `struct sockaddr_in`.
const INET_LEN: usize = 16;

/// The beginning of the text of a `struct sockaddr_in`.
const INET_SCHEME: &str = "fi_sockaddr_in://";

/// An address as it lies in memory.
#[derive(Clone, Copy)]
pub(crate) struct AddressBytes {
    bytes: [u8; INET_LEN],
    format: AddressFormat,
}

impl core::ops::Deref for AddressBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.format.len()).unwrap_or(&[])
    }
}

/// Where an endpoint is, or is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The number of the NIC.
    pub(crate) nic: u32,
    /// The port.
    pub(crate) port: Option<u16>,
}

impl From<Address> for Place {
    fn from(address: Address) -> Self {
        Self {
            nic: address.nic(),
            port: Some(address.port()),
        }
    }
}

impl Place {
    /// Returns the address; `None` without a port.
    pub(crate) fn address(self) -> Option<Address> {
        Address::new(self.nic, self.port?)
    }

    /// Reads an address from memory; `None` if it is malformed.
    pub(crate) fn decode(format: AddressFormat, bytes: &[u8]) -> Option<Self> {
        match format {
            AddressFormat::Native => {
                let raw = u64::from_le_bytes(bytes.try_into().ok()?);
                let address = Address::from_u64(raw & !Address::ANY_PORT)?;
                let any = raw & Address::ANY_PORT != 0;
                if any && address.port() != 0 {
                    return None;
                }
                Some(Self {
                    nic: address.nic(),
                    port: (!any).then_some(address.port()),
                })
            }
            AddressFormat::Inet => {
                let bytes: &[u8; INET_LEN] = bytes.try_into().ok()?;
                // The last 8 bytes are there for the size only.
                let [f0, f1, p0, p1, a0, a1, a2, a3, ..] = *bytes;
                if u16::from_ne_bytes([f0, f1]) != addr::AF_INET {
                    return None;
                }
                let port = u16::from_be_bytes([p0, p1]);
                if port > Address::MAX_PORT {
                    return None;
                }
                Some(Self {
                    nic: nic::of_inet(u32::from_be_bytes([a0, a1, a2, a3]))?,
                    port: (port != 0).then_some(port),
                })
            }
        }
    }

    /// Returns the address as it lies in memory.
    pub(crate) fn encode(self, format: AddressFormat) -> AddressBytes {
        let mut bytes = [0; INET_LEN];
        let port = self.port.unwrap_or(0);
        match format {
            AddressFormat::Native => {
                let any = if self.port.is_none() {
                    Address::ANY_PORT
                } else {
                    0
                };
                // Places are made with numbers that fit.
                let raw = Address::new(self.nic, port).map_or(0, Address::as_u64) | any;
                if let Some(first) = bytes.first_chunk_mut() {
                    *first = raw.to_le_bytes();
                }
            }
            AddressFormat::Inet => {
                let [f0, f1] = addr::AF_INET.to_ne_bytes();
                let [p0, p1] = port.to_be_bytes();
                let [a0, a1, a2, a3] = nic::inet(self.nic).to_be_bytes();
                if let Some(first) = bytes.first_chunk_mut() {
                    *first = [f0, f1, p0, p1, a0, a1, a2, a3];
                }
            }
        }
        AddressBytes { bytes, format }
    }
}

/// A node as a caller names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeName {
    /// The NIC, and the port if the name has one.
    pub(crate) place: Place,
    /// The format that goes with the name.
    pub(crate) format: AddressFormat,
    /// Whether it is an address rather than a name.
    pub(crate) is_numeric: bool,
}

impl NodeName {
    /// Reads a node: the name of a NIC, its number as 0x1 or 1, its IPv4 address, or the text of a whole
    /// address; `None` if it is something else.
    pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
        use AddressFormat::{
            Inet,
            Native, //
        };
        let node = |nic, port, format, is_numeric| Self {
            place: Place { nic, port },
            format,
            is_numeric,
        };
        if let Some(address) = Address::from_text(text) {
            return Some(node(address.nic(), Some(address.port()), Native, true));
        }
        if let Some(rest) = text.strip_prefix(INET_SCHEME.as_bytes()) {
            let colon = rest.iter().position(|byte| *byte == b':')?;
            let nic = nic::of_inet(native::inet(rest.get(..colon)?)?)?;
            let port = port(rest.get(colon.checked_add(1)?..)?)?;
            return Some(node(nic, (port != 0).then_some(port), Inet, true));
        }
        if let Some(nic) = nic::number(text) {
            return Some(node(nic, None, Native, false));
        }
        if let Some(nic) = native::hex(text).or_else(|| native::plain_decimal(text)) {
            return (nic <= Address::MAX_NIC).then_some(node(nic, None, Native, true));
        }
        Some(node(nic::of_inet(native::inet(text)?)?, None, Inet, true))
    }

    /// Returns the place of a port of the node; `None` if it has another one.
    pub(crate) fn at(self, port: Option<u16>) -> Option<Place> {
        // As everywhere on the Internet, 0 is no port.
        let port = port.filter(|port| *port != 0 || self.format == AddressFormat::Native);
        match (self.place.port, port) {
            (Some(has), Some(port)) if has != port => None,
            (has, port) => Some(Place {
                nic: self.place.nic,
                port: port.or(has),
            }),
        }
    }
}

/// Reads a service, which is a decimal port; `None` if it is something else.
pub(crate) fn port(text: &[u8]) -> Option<u16> {
    let port = u16::try_from(native::decimal(text)?).ok()?;
    (port <= Address::MAX_PORT).then_some(port)
}

/// An address, for reading.
pub(crate) struct AddressText(pub(crate) Address, pub(crate) AddressFormat);

impl fmt::Display for AddressText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(address, format) = self;
        match format {
            AddressFormat::Native => address.fmt(f),
            AddressFormat::Inet => {
                let [a, b, c, d] = nic::inet(address.nic()).to_be_bytes();
                f.write_fmt(fmt!(
                    "{}{}.{}.{}.{}:{}",
                    INET_SCHEME,
                    a,
                    b,
                    c,
                    d,
                    address.port()
                ))
            }
        }
    }
}

#[kunit_tests(kfi_soft_place)]
mod tests {
    use super::*;
    use kernel::str::CString;

    const FORMATS: [AddressFormat; 2] = [AddressFormat::Native, AddressFormat::Inet];

    #[test]
    fn bytes_there_and_back() {
        for format in FORMATS {
            for nic in [0, 1, Address::MAX_NIC] {
                for port in [None, Some(1), Some(Address::MAX_PORT)] {
                    let place = Place { nic, port };
                    let bytes = place.encode(format);
                    assert_eq!(bytes.len(), format.len());
                    assert_eq!(Place::decode(format, &bytes), Some(place));
                }
            }
        }
    }

    #[test]
    fn native_port_0_is_a_port() {
        let place = Place {
            nic: 1,
            port: Some(0),
        };
        let bytes = place.encode(AddressFormat::Native);
        assert_eq!(&*bytes, &(1u64 << 12).to_le_bytes());
        assert_eq!(Place::decode(AddressFormat::Native, &bytes), Some(place));
    }

    /// Returns whether NICs have the addresses that they have if they are given none.
    fn is_plain() -> bool {
        nic::inet(0) == u32::from_be_bytes([127, 0, 0, 0])
    }

    #[test]
    fn inet_is_big_endian() {
        if !is_plain() {
            return;
        }
        let place = Place {
            nic: 1,
            port: Some(0x123),
        };
        let bytes = place.encode(AddressFormat::Inet);
        assert_eq!(bytes.get(2..8), Some(&[1, 0x23, 127, 0, 0, 1][..]));
    }

    #[test]
    fn malformed_bytes() {
        // Too short, too long.
        for format in FORMATS {
            assert!(Place::decode(format, &[]).is_none());
            assert!(Place::decode(format, &[0; 7]).is_none());
            assert!(Place::decode(format, &[0; 17]).is_none());
            // Flags that nobody knows; no family.
            let bytes = [0xff; INET_LEN];
            assert!(Place::decode(format, bytes.get(..format.len()).unwrap_or(&[])).is_none());
        }
        // A port, and none.
        let raw = Address::ANY_PORT | 1;
        assert!(Place::decode(AddressFormat::Native, &raw.to_le_bytes()).is_none());
    }

    #[test]
    fn names_of_nodes() {
        if !is_plain() {
            return;
        }
        let native = |nic, port, is_numeric| {
            Some(NodeName {
                place: Place { nic, port },
                format: AddressFormat::Native,
                is_numeric,
            })
        };
        let inet = |nic, port| {
            Some(NodeName {
                place: Place { nic, port },
                format: AddressFormat::Inet,
                is_numeric: true,
            })
        };
        assert_eq!(NodeName::from_text(b"0x0"), native(0, None, true));
        assert_eq!(NodeName::from_text(b"0xfffff"), native(0xfffff, None, true));
        assert_eq!(NodeName::from_text(b"0"), native(0, None, true));
        assert_eq!(NodeName::from_text(b"1048575"), native(0xfffff, None, true));
        assert_eq!(
            NodeName::from_text(b"fi_addr_soft://0x1:0x7f"),
            native(1, Some(0x7f), true)
        );
        assert_eq!(NodeName::from_text(b"127.0.0.1"), inet(1, None));
        assert_eq!(NodeName::from_text(b"127.0.1.0"), inet(256, None));
        assert_eq!(NodeName::from_text(b"127.0.0.0"), inet(0, None));
        assert_eq!(
            NodeName::from_text(b"fi_sockaddr_in://127.0.0.2:7"),
            inet(2, Some(7))
        );
        for text in [
            "",
            "01",
            "1048576",
            "0x100000",
            "0x",
            "x0",
            "127.16.0.0",
            "127.0.0",
            "127.0.0.1.",
            "127.0.0.01",
            "127.0.0.256",
            "127.0.0.-1",
            "10.0.0.1",
            "255.255.255.255",
            "fi_sockaddr_in://127.0.0.2",
            "nobody",
        ] {
            assert!(NodeName::from_text(text.as_bytes()).is_none());
        }
    }

    #[test]
    fn services() {
        assert_eq!(port(b"0"), Some(0));
        assert_eq!(port(b"4095"), Some(4095));
        for text in ["4096", "65536", "-1", "+1", "0x1", "", " 1", "ssh"] {
            assert!(port(text.as_bytes()).is_none());
        }
    }

    #[test]
    fn texts_name_what_they_come_from() -> Result {
        let address = Address::new(3, 77).ok_or(EINVAL)?;
        for format in FORMATS {
            let text = CString::try_from_fmt(fmt!("{}", AddressText(address, format)))?;
            let node = NodeName::from_text(text.to_bytes()).ok_or(EINVAL)?;
            assert_eq!(node.at(None), Some(Place::from(address)));
            assert_eq!(node.at(Some(77)), Some(Place::from(address)));
            assert_eq!(node.at(Some(78)), None);
            assert_eq!(node.format, format);
        }
        Ok(())
    }
}
