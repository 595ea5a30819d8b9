// SPDX-License-Identifier: GPL-2.0

//! Addresses in text form.

#![forbid(unsafe_code)]

use core::net::Ipv6Addr;

use kernel::{
    fmt,
    prelude::*, //
};

use crate::kfi::bindings;

/// Of an address of unknown format so many bytes are shown.
const BYTES_SHOWN: usize = 64;

/// An address, if there is one.
pub(super) struct Address<'a> {
    format: u32,
    bytes: Option<&'a [u8]>,
}

impl<'a> Address<'a> {
    /// Takes an address of a format.
    pub(super) fn new(format: u32, bytes: Option<&'a [u8]>) -> Self {
        Self { format, bytes }
    }
}

/// Writes a `struct sockaddr_in`, if it is one.
fn sockaddr_in(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> Option<fmt::Result> {
    let &[_, _, p, q, a, b, c, d, ..] = bytes else {
        return None;
    };
    let port = u16::from_be_bytes([p, q]);
    Some(write!(f, "kfi_sockaddr_in://{a}.{b}.{c}.{d}:{port}"))
}

/// Writes a `struct sockaddr_in6`, if it is one.
fn sockaddr_in6(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> Option<fmt::Result> {
    let &[_, _, p, q, _, _, _, _, ref rest @ ..] = bytes else {
        return None;
    };
    let addr = Ipv6Addr::from(*rest.first_chunk::<16>()?);
    let port = u16::from_be_bytes([p, q]);
    Some(write!(f, "kfi_sockaddr_in6://[{addr}]:{port}"))
}

/// Writes a `struct sockaddr` of a known family.
fn sockaddr(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> Option<fmt::Result> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    match u32::from(family) {
        bindings::AF_INET => sockaddr_in(f, bytes),
        bindings::AF_INET6 => sockaddr_in6(f, bytes),
        _ => None,
    }
}

/// Writes a `struct kcxi_addr`, if it is one.
fn cxi(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> Option<fmt::Result> {
    let addr = u64::from_ne_bytes(bytes.try_into().ok()?);
    Some(write!(f, "kfi_addr_cxi://{addr:#010x}"))
}

/// Writes bytes of unknown meaning.
fn bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("kfi_addr://0x")?;
    for byte in bytes.iter().take(BYTES_SHOWN) {
        write!(f, "{byte:02x}")?;
    }
    if bytes.len() > BYTES_SHOWN {
        f.write_str("...")?;
    }
    Ok(())
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(addr) = self.bytes else {
            return f.write_str("(null)");
        };
        let known = match self.format {
            bindings::KFI_SOCKADDR => sockaddr(f, addr),
            bindings::KFI_SOCKADDR_IN => sockaddr_in(f, addr),
            bindings::KFI_SOCKADDR_IN6 => sockaddr_in6(f, addr),
            bindings::KFI_ADDR_CXI => cxi(f, addr),
            _ => None,
        };
        known.unwrap_or_else(|| bytes(f, addr))
    }
}

#[kunit_tests(kfabric_tostr_addr)]
mod tests {
    use kernel::str::CString;

    use super::*;

    fn check(format: u32, bytes: &[u8], expected: &str) -> Result {
        let text = CString::try_from_fmt(fmt!("{}", Address::new(format, Some(bytes))))?;
        if text.to_bytes() != expected.as_bytes() {
            pr_err!("not expected: {}\n", &*text);
            return Err(EINVAL);
        }
        Ok(())
    }

    const IN: &[u8] = &[2, 0, 0x1f, 0x90, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn internet() -> Result {
        let expected = "kfi_sockaddr_in://10.0.0.1:8080";
        check(bindings::KFI_SOCKADDR_IN, IN, expected)?;
        let mut in6 = [0; 28];
        in6[3] = 80;
        in6[8] = 0xfe;
        in6[9] = 0x80;
        in6[23] = 1;
        let expected = "kfi_sockaddr_in6://[fe80::1]:80";
        check(bindings::KFI_SOCKADDR_IN6, &in6, expected)
    }

    #[test]
    fn family() -> Result {
        let mut addr = [0; 16];
        addr.copy_from_slice(IN);
        addr[..2].copy_from_slice(&2_u16.to_ne_bytes());
        let expected = "kfi_sockaddr_in://10.0.0.1:8080";
        check(bindings::KFI_SOCKADDR, &addr, expected)?;
        check(bindings::KFI_SOCKADDR, &[0xff; 3], "kfi_addr://0xffffff")
    }

    #[test]
    fn cxi() -> Result {
        let addr = 0x0012_3456_7890_u64.to_ne_bytes();
        let expected = "kfi_addr_cxi://0x1234567890";
        check(bindings::KFI_ADDR_CXI, &addr, expected)?;
        let addr = 5_u64.to_ne_bytes();
        check(bindings::KFI_ADDR_CXI, &addr, "kfi_addr_cxi://0x00000005")
    }

    #[test]
    fn too_short() -> Result {
        for format in 0..=bindings::KFI_ADDR_CXI {
            check(format, &[1, 2], "kfi_addr://0x0102")?;
            check(format, &[], "kfi_addr://0x")?;
        }
        let expected = "kfi_addr://0x0000000000000000";
        check(bindings::KFI_SOCKADDR_IN6, &[0; 8], expected)
    }

    #[test]
    fn too_long() -> Result {
        let addr = [0; 65];
        let text = CString::try_from_fmt(fmt!("{}", Address::new(5, Some(&addr))))?;
        let text = text.to_str().map_err(|_| EINVAL)?;
        assert_eq!(text.len(), "kfi_addr://0x...".len() + 128);
        assert!(text.ends_with("00..."));
        Ok(())
    }
}
