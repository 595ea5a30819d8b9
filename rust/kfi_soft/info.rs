// SPDX-License-Identifier: GPL-2.0

//! What the provider offers: one entry for each virtual NIC.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    str::{
        CStr,
        CString, //
    }, //
};

use crate::{
    kfi::{
        flags::{
            Caps,
            KFI_EP_RDM, //
        },
        info::{
            Info,
            InfoRef, //
        },
        provider::{
            Provider,
            Query,
            KFI_VERSION, //
        }, //
    },
    provider::Soft, //
};

/// The one fabric.
pub(crate) const FABRIC_NAME: &CStr = c"soft";

/// What the names of NICs begin with; their number follows.
const NIC_NAME: &str = "soft";

/// No machine has more.
pub(crate) const MAX_NICS: u32 = 64;

/// Counters that a domain may have; they are limited by memory only.
const COUNTERS: usize = 1 << 20;

/// Completion queues that a domain may have; they are limited by memory only.
const QUEUES: usize = 1 << 16;

/// What is offered: a NIC reaches the others of the node.
const CAPS: Caps = Caps::LOCAL_COMM;

/// A virtual NIC, by number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nic(u32);

impl Nic {
    /// Returns its name.
    fn name(self) -> Result<CString> {
        CString::try_from_fmt(fmt!("{}{}", NIC_NAME, self.0))
    }

    /// Finds a NIC by its name, of `count`.
    pub(crate) fn find(name: &CStr, count: u32) -> Option<Self> {
        let digits = name.to_bytes().strip_prefix(NIC_NAME.as_bytes())?;
        // No sign, no leading zeros: a NIC has one name.
        if digits.len() > 1 && digits.first() == Some(&b'0') {
            return None;
        }
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number: u32 = core::str::from_utf8(digits).ok()?.parse().ok()?;
        (number < count).then_some(Self(number))
    }
}

/// `EINVAL` unless a machine may have as many NICs.
pub(crate) fn check_nics(count: u32) -> Result {
    if (1..=MAX_NICS).contains(&count) {
        Ok(())
    } else {
        Err(EINVAL)
    }
}

/// Answers kfi_getinfo.
pub(crate) fn answer(query: &Query<'_>, nics: u32) -> Result<Info> {
    // There are no ports yet.
    if query.service.is_some() {
        return Err(ENODATA);
    }
    let mut answer: Option<Info> = None;
    for nic in (0..nics).map(Nic) {
        let name = nic.name()?;
        if query.node.is_some_and(|node| node != &*name) {
            continue;
        }
        if query.hints.is_some_and(|hints| !matches(hints, &name)) {
            continue;
        }
        let info = describe(&name, query.version)?;
        match &mut answer {
            Some(answer) => answer.append(info),
            None => answer = Some(info),
        }
    }
    answer.ok_or(ENODATA)
}

/// Returns whether the NIC of a name offers what `hints` want.
///
/// Whatever is not offered must not be wanted: 0 in the hints.
fn matches(hints: InfoRef<'_>, name: &CStr) -> bool {
    let named = |wanted: Option<&CStr>, offered: &CStr| {
        wanted.is_none_or(|wanted| wanted.is_empty() || wanted == offered)
    };
    let has = |wanted: u64| CAPS.contains(Caps::from_raw(wanted));

    has(hints.get().caps)
        && hints.get().addr_format == 0
        && hints.src_addr().is_none()
        && hints.dest_addr().is_none()
        && named(hints.prov_name(), Soft::NAME)
        && named(hints.fabric_name(), FABRIC_NAME)
        && named(hints.domain_name(), name)
        && hints.ep_attr().is_none_or(|attr| {
            (attr.type_ == 0 || attr.type_ == KFI_EP_RDM)
                && attr.protocol == 0
                && attr.auth_key_size == 0
                && all_zero(&[
                    attr.max_msg_size,
                    attr.msg_prefix_size,
                    attr.max_order_raw_size,
                    attr.max_order_war_size,
                    attr.max_order_waw_size,
                    attr.tx_ctx_cnt,
                    attr.rx_ctx_cnt,
                ])
        })
        && hints.domain_attr().is_none_or(|attr| {
            has(attr.caps)
                // Open objects are looked for among those of the node, of which none is kept.
                && attr.domain.is_null()
                && attr.mr_mode == 0
                && attr.tclass == 0
                && attr.auth_key_size == 0
                && attr.cntr_cnt <= COUNTERS
                && attr.cq_cnt <= QUEUES
                && all_zero(&[
                    attr.mr_key_size,
                    attr.cq_data_size,
                    attr.ep_cnt,
                    attr.tx_ctx_cnt,
                    attr.rx_ctx_cnt,
                    attr.max_ep_tx_ctx,
                    attr.max_ep_rx_ctx,
                    attr.max_ep_stx_ctx,
                    attr.max_ep_srx_ctx,
                    attr.mr_iov_limit,
                    attr.max_err_data,
                    attr.mr_cnt,
                ])
        })
        && hints.tx_attr().is_none_or(|attr| {
            has(attr.caps)
                && attr.op_flags == 0
                && attr.msg_order == 0
                && attr.comp_order == 0
                && attr.tclass == 0
                && all_zero(&[
                    attr.inject_size,
                    attr.size,
                    attr.iov_limit,
                    attr.rma_iov_limit,
                ])
        })
        && hints.rx_attr().is_none_or(|attr| {
            has(attr.caps)
                && attr.op_flags == 0
                && attr.msg_order == 0
                && attr.comp_order == 0
                && all_zero(&[attr.total_buffered_recv, attr.size, attr.iov_limit])
        })
        && hints.fabric_attr().is_none_or(|attr| attr.fabric.is_null())
}

/// Returns whether nothing is wanted.
fn all_zero(wanted: &[usize]) -> bool {
    wanted.iter().all(|wanted| *wanted == 0)
}

/// Describes the NIC of a name to somebody who was written for `version` of the API.
fn describe(name: &CStr, version: u32) -> Result<Info> {
    let mut info = Info::new()?;
    let mut entry = info.first_mut();
    entry.caps(CAPS);
    entry.ep_attr()?.type_(KFI_EP_RDM);
    entry
        .domain_attr()?
        .name(name)?
        .caps(CAPS.as_raw())
        .cntr_cnt(COUNTERS)
        .cq_cnt(QUEUES);
    entry
        .fabric_attr()?
        .name(FABRIC_NAME)?
        .prov_name(Soft::NAME)?
        .prov_version(Soft::VERSION)
        .api_version(if version == 0 { KFI_VERSION } else { version });
    Ok(info)
}

#[kunit_tests(kfi_soft_info)]
mod tests {
    use super::*;

    #[test]
    fn nics_have_one_name() {
        assert!(Nic::find(c"soft0", 2) == Some(Nic(0)));
        assert!(Nic::find(c"soft1", 2) == Some(Nic(1)));
        for name in [
            c"soft2",
            c"soft",
            c"soft00",
            c"soft01",
            c"soft+1",
            c"soft-1",
            c"Soft0",
            c"soft0 ",
            c"soft4294967296",
            c"",
        ] {
            assert!(Nic::find(name, 2).is_none());
        }
    }

    #[test]
    fn limits_of_nics() {
        assert!(check_nics(1).is_ok());
        assert!(check_nics(MAX_NICS).is_ok());
        assert!(check_nics(0).is_err());
        assert!(check_nics(MAX_NICS + 1).is_err());
    }
}
