// SPDX-License-Identifier: GPL-2.0

//! Entries, which `kfi_getinfo` returns, and takes as hints.

use std::ffi::c_char;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::flags::{
    AddrFormat, AvType, Caps, EpType, Mode, MrMode, OpFlags, Order, Progress, Protocol,
    ResourceMgmt, Tclass, Threading,
};
use crate::object::Handle;
use crate::uapi;

/// A version: major in the upper, minor in the lower 16 bits.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ApiVersion(pub u32);

impl ApiVersion {
    /// The version that this crate was built with.
    pub const CURRENT: Self = Self(uapi::KFI_HEADER_VERSION);
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 16, self.0 & 0xffff)
    }
}

impl Serialize for ApiVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Bytes of an address or a key, shown as hexadecimal digits.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(null)");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            serializer.serialize_none()
        } else {
            serializer.collect_str(self)
        }
    }
}

/// A name as it is printed: one that is not there is `(null)`, as in `fi_info`.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(null)" } else { self.0 })
    }
}

/// Attributes of transmit contexts.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct TxAttr {
    pub caps: Caps,
    pub mode: Mode,
    pub op_flags: OpFlags,
    pub msg_order: Order,
    pub comp_order: Order,
    pub inject_size: u64,
    pub size: u64,
    pub iov_limit: u64,
    pub rma_iov_limit: u64,
    pub tclass: Tclass,
}

/// Attributes of receive contexts.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct RxAttr {
    pub caps: Caps,
    pub mode: Mode,
    pub op_flags: OpFlags,
    pub msg_order: Order,
    pub comp_order: Order,
    pub total_buffered_recv: u64,
    pub size: u64,
    pub iov_limit: u64,
}

/// Attributes of endpoints.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct EpAttr {
    pub r#type: EpType,
    pub protocol: Protocol,
    pub protocol_version: u32,
    pub max_msg_size: u64,
    pub msg_prefix_size: u64,
    pub max_order_raw_size: u64,
    pub max_order_war_size: u64,
    pub max_order_waw_size: u64,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: u64,
    pub rx_ctx_cnt: u64,
    pub auth_key: Bytes,
}

/// Attributes of a domain.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct DomainAttr {
    pub domain: Handle,
    pub name: String,
    pub threading: Threading,
    pub control_progress: Progress,
    pub data_progress: Progress,
    pub resource_mgmt: ResourceMgmt,
    pub av_type: AvType,
    pub mr_mode: MrMode,
    pub mr_key_size: u64,
    pub cq_data_size: u64,
    pub cq_cnt: u64,
    pub ep_cnt: u64,
    pub tx_ctx_cnt: u64,
    pub rx_ctx_cnt: u64,
    pub max_ep_tx_ctx: u64,
    pub max_ep_rx_ctx: u64,
    pub max_ep_stx_ctx: u64,
    pub max_ep_srx_ctx: u64,
    pub cntr_cnt: u64,
    pub mr_iov_limit: u64,
    pub caps: Caps,
    pub mode: Mode,
    pub auth_key: Bytes,
    pub max_err_data: u64,
    pub mr_cnt: u64,
    pub tclass: Tclass,
}

/// Attributes of a fabric.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct FabricAttr {
    pub fabric: Handle,
    pub name: String,
    pub prov_name: String,
    pub prov_version: ApiVersion,
    pub api_version: ApiVersion,
}

/// One answer of `kfi_getinfo`, or hints for it. The default asks for nothing.
///
/// Displayed it is what `fi_info` prints with `-v`: a tree, every attribute.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct InfoEntry {
    pub caps: Caps,
    pub mode: Mode,
    pub addr_format: AddrFormat,
    pub src_addr: Bytes,
    pub dest_addr: Bytes,
    pub tx_attr: TxAttr,
    pub rx_attr: RxAttr,
    pub ep_attr: EpAttr,
    pub domain_attr: DomainAttr,
    pub fabric_attr: FabricAttr,
}

impl InfoEntry {
    /// The short form: what `fi_info` prints without options.
    pub fn short(&self) -> impl fmt::Display + '_ {
        Short(self)
    }
}

struct Short<'a>(&'a InfoEntry);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(info) = self;
        writeln!(f, "provider: {}", Name(&info.fabric_attr.prov_name))?;
        writeln!(f, "    fabric: {}", Name(&info.fabric_attr.name))?;
        writeln!(f, "    domain: {}", Name(&info.domain_attr.name))?;
        writeln!(f, "    version: {}", info.fabric_attr.prov_version)?;
        writeln!(f, "    type: {}", info.ep_attr.r#type)?;
        writeln!(f, "    protocol: {}", info.ep_attr.protocol)
    }
}

/// Prints lines `name: value`, indented.
macro_rules! lines {
    ($f:expr, $indent:expr, $($name:literal: $value:expr,)*) => {
        $(writeln!($f, "{:indent$}{}: {}", "", $name, $value, indent = $indent)?;)*
    };
}

impl fmt::Display for InfoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kfi_info:")?;
        lines!(f, 4,
            "caps": self.caps,
            "mode": self.mode,
            "addr_format": self.addr_format,
            "src_addrlen": self.src_addr.0.len(),
            "dest_addrlen": self.dest_addr.0.len(),
            "src_addr": self.src_addr,
            "dest_addr": self.dest_addr,
        );

        let tx = &self.tx_attr;
        writeln!(f, "    kfi_tx_attr:")?;
        lines!(f, 8,
            "caps": tx.caps,
            "mode": tx.mode,
            "op_flags": tx.op_flags,
            "msg_order": tx.msg_order,
            "comp_order": tx.comp_order,
            "inject_size": tx.inject_size,
            "size": tx.size,
            "iov_limit": tx.iov_limit,
            "rma_iov_limit": tx.rma_iov_limit,
            "tclass": tx.tclass,
        );

        let rx = &self.rx_attr;
        writeln!(f, "    kfi_rx_attr:")?;
        lines!(f, 8,
            "caps": rx.caps,
            "mode": rx.mode,
            "op_flags": rx.op_flags,
            "msg_order": rx.msg_order,
            "comp_order": rx.comp_order,
            "total_buffered_recv": rx.total_buffered_recv,
            "size": rx.size,
            "iov_limit": rx.iov_limit,
        );

        let ep = &self.ep_attr;
        writeln!(f, "    kfi_ep_attr:")?;
        lines!(f, 8,
            "type": ep.r#type,
            "protocol": ep.protocol,
            "protocol_version": ep.protocol_version,
            "max_msg_size": ep.max_msg_size,
            "msg_prefix_size": ep.msg_prefix_size,
            "max_order_raw_size": ep.max_order_raw_size,
            "max_order_war_size": ep.max_order_war_size,
            "max_order_waw_size": ep.max_order_waw_size,
            "mem_tag_format": format_args!("{:#018x}", ep.mem_tag_format),
            "tx_ctx_cnt": ep.tx_ctx_cnt,
            "rx_ctx_cnt": ep.rx_ctx_cnt,
            "auth_key_size": ep.auth_key.0.len(),
            "auth_key": ep.auth_key,
        );

        let domain = &self.domain_attr;
        writeln!(f, "    kfi_domain_attr:")?;
        lines!(f, 8,
            "domain": format_args!("{:#x}", domain.domain),
            "name": Name(&domain.name),
            "threading": domain.threading,
            "control_progress": domain.control_progress,
            "data_progress": domain.data_progress,
            "resource_mgmt": domain.resource_mgmt,
            "av_type": domain.av_type,
            "mr_mode": domain.mr_mode,
            "mr_key_size": domain.mr_key_size,
            "cq_data_size": domain.cq_data_size,
            "cq_cnt": domain.cq_cnt,
            "ep_cnt": domain.ep_cnt,
            "tx_ctx_cnt": domain.tx_ctx_cnt,
            "rx_ctx_cnt": domain.rx_ctx_cnt,
            "max_ep_tx_ctx": domain.max_ep_tx_ctx,
            "max_ep_rx_ctx": domain.max_ep_rx_ctx,
            "max_ep_stx_ctx": domain.max_ep_stx_ctx,
            "max_ep_srx_ctx": domain.max_ep_srx_ctx,
            "cntr_cnt": domain.cntr_cnt,
            "mr_iov_limit": domain.mr_iov_limit,
            "caps": domain.caps,
            "mode": domain.mode,
            "auth_key_size": domain.auth_key.0.len(),
            "auth_key": domain.auth_key,
            "max_err_data": domain.max_err_data,
            "mr_cnt": domain.mr_cnt,
            "tclass": domain.tclass,
        );

        let fabric = &self.fabric_attr;
        writeln!(f, "    kfi_fabric_attr:")?;
        lines!(f, 8,
            "fabric": format_args!("{:#x}", fabric.fabric),
            "name": Name(&fabric.name),
            "prov_name": Name(&fabric.prov_name),
            "prov_version": fabric.prov_version,
            "api_version": fabric.api_version,
        );
        Ok(())
    }
}

/// The text in an array, up to the first 0.
fn text(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array
        .iter()
        .map(|&c| c as u8)
        .take_while(|&c| c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text into an array. One too long is cut off without a terminating 0, so
/// that the kernel refuses it.
fn set_text<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(text.bytes()) {
        *to = from as c_char;
    }
    array
}

/// The first `length` bytes of an array.
fn bytes(array: &[u8], length: u32) -> Bytes {
    Bytes(array[..array.len().min(length as usize)].to_vec())
}

/// Bytes into an array; their number is carried apart.
fn set_bytes<const N: usize>(bytes: &Bytes) -> [u8; N] {
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(&bytes.0) {
        *to = *from;
    }
    array
}

impl From<&uapi::kfi_shim_info> for InfoEntry {
    fn from(info: &uapi::kfi_shim_info) -> Self {
        let tx = &info.tx_attr;
        let rx = &info.rx_attr;
        let ep = &info.ep_attr;
        let domain = &info.domain_attr;
        let fabric = &info.fabric_attr;
        Self {
            caps: info.caps.into(),
            mode: info.mode.into(),
            addr_format: info.addr_format.into(),
            src_addr: bytes(&info.src_addr, info.src_addrlen),
            dest_addr: bytes(&info.dest_addr, info.dest_addrlen),
            tx_attr: TxAttr {
                caps: tx.caps.into(),
                mode: tx.mode.into(),
                op_flags: tx.op_flags.into(),
                msg_order: tx.msg_order.into(),
                comp_order: tx.comp_order.into(),
                inject_size: tx.inject_size,
                size: tx.size,
                iov_limit: tx.iov_limit,
                rma_iov_limit: tx.rma_iov_limit,
                tclass: tx.tclass.into(),
            },
            rx_attr: RxAttr {
                caps: rx.caps.into(),
                mode: rx.mode.into(),
                op_flags: rx.op_flags.into(),
                msg_order: rx.msg_order.into(),
                comp_order: rx.comp_order.into(),
                total_buffered_recv: rx.total_buffered_recv,
                size: rx.size,
                iov_limit: rx.iov_limit,
            },
            ep_attr: EpAttr {
                r#type: ep.type_.into(),
                protocol: ep.protocol.into(),
                protocol_version: ep.protocol_version,
                max_msg_size: ep.max_msg_size,
                msg_prefix_size: ep.msg_prefix_size,
                max_order_raw_size: ep.max_order_raw_size,
                max_order_war_size: ep.max_order_war_size,
                max_order_waw_size: ep.max_order_waw_size,
                mem_tag_format: ep.mem_tag_format,
                tx_ctx_cnt: ep.tx_ctx_cnt,
                rx_ctx_cnt: ep.rx_ctx_cnt,
                auth_key: bytes(&ep.auth_key, ep.auth_key_size),
            },
            domain_attr: DomainAttr {
                domain: domain.domain,
                name: text(&domain.name),
                threading: domain.threading.into(),
                control_progress: domain.control_progress.into(),
                data_progress: domain.data_progress.into(),
                resource_mgmt: domain.resource_mgmt.into(),
                av_type: domain.av_type.into(),
                mr_mode: u64::from(domain.mr_mode).into(),
                mr_key_size: domain.mr_key_size,
                cq_data_size: domain.cq_data_size,
                cq_cnt: domain.cq_cnt,
                ep_cnt: domain.ep_cnt,
                tx_ctx_cnt: domain.tx_ctx_cnt,
                rx_ctx_cnt: domain.rx_ctx_cnt,
                max_ep_tx_ctx: domain.max_ep_tx_ctx,
                max_ep_rx_ctx: domain.max_ep_rx_ctx,
                max_ep_stx_ctx: domain.max_ep_stx_ctx,
                max_ep_srx_ctx: domain.max_ep_srx_ctx,
                cntr_cnt: domain.cntr_cnt,
                mr_iov_limit: domain.mr_iov_limit,
                caps: domain.caps.into(),
                mode: domain.mode.into(),
                auth_key: bytes(&domain.auth_key, domain.auth_key_size),
                max_err_data: domain.max_err_data,
                mr_cnt: domain.mr_cnt,
                tclass: domain.tclass.into(),
            },
            fabric_attr: FabricAttr {
                fabric: fabric.fabric,
                name: text(&fabric.name),
                prov_name: text(&fabric.prov_name),
                prov_version: ApiVersion(fabric.prov_version),
                api_version: ApiVersion(fabric.api_version),
            },
        }
    }
}

impl From<&TxAttr> for uapi::kfi_shim_tx_attr {
    fn from(tx: &TxAttr) -> Self {
        Self {
            caps: tx.caps.bits(),
            mode: tx.mode.bits(),
            op_flags: tx.op_flags.bits(),
            msg_order: tx.msg_order.bits(),
            comp_order: tx.comp_order.bits(),
            inject_size: tx.inject_size,
            size: tx.size,
            iov_limit: tx.iov_limit,
            rma_iov_limit: tx.rma_iov_limit,
            tclass: tx.tclass.0,
            reserved: 0,
        }
    }
}

impl From<&RxAttr> for uapi::kfi_shim_rx_attr {
    fn from(rx: &RxAttr) -> Self {
        Self {
            caps: rx.caps.bits(),
            mode: rx.mode.bits(),
            op_flags: rx.op_flags.bits(),
            msg_order: rx.msg_order.bits(),
            comp_order: rx.comp_order.bits(),
            total_buffered_recv: rx.total_buffered_recv,
            size: rx.size,
            iov_limit: rx.iov_limit,
        }
    }
}

impl From<&InfoEntry> for uapi::kfi_shim_info {
    fn from(info: &InfoEntry) -> Self {
        let tx = &info.tx_attr;
        let rx = &info.rx_attr;
        let ep = &info.ep_attr;
        let domain = &info.domain_attr;
        let fabric = &info.fabric_attr;
        Self {
            caps: info.caps.bits(),
            mode: info.mode.bits(),
            addr_format: info.addr_format.0,
            src_addrlen: info.src_addr.0.len() as u32,
            dest_addrlen: info.dest_addr.0.len() as u32,
            reserved: 0,
            src_addr: set_bytes(&info.src_addr),
            dest_addr: set_bytes(&info.dest_addr),
            tx_attr: tx.into(),
            rx_attr: rx.into(),
            ep_attr: uapi::kfi_shim_ep_attr {
                type_: ep.r#type.0,
                protocol: ep.protocol.0,
                protocol_version: ep.protocol_version,
                auth_key_size: ep.auth_key.0.len() as u32,
                max_msg_size: ep.max_msg_size,
                msg_prefix_size: ep.msg_prefix_size,
                max_order_raw_size: ep.max_order_raw_size,
                max_order_war_size: ep.max_order_war_size,
                max_order_waw_size: ep.max_order_waw_size,
                mem_tag_format: ep.mem_tag_format,
                tx_ctx_cnt: ep.tx_ctx_cnt,
                rx_ctx_cnt: ep.rx_ctx_cnt,
                auth_key: set_bytes(&ep.auth_key),
            },
            domain_attr: uapi::kfi_shim_domain_attr {
                domain: domain.domain,
                threading: domain.threading.0,
                control_progress: domain.control_progress.0,
                data_progress: domain.data_progress.0,
                resource_mgmt: domain.resource_mgmt.0,
                av_type: domain.av_type.0,
                mr_mode: domain.mr_mode.bits() as u32,
                tclass: domain.tclass.0,
                mr_key_size: domain.mr_key_size,
                cq_data_size: domain.cq_data_size,
                cq_cnt: domain.cq_cnt,
                ep_cnt: domain.ep_cnt,
                tx_ctx_cnt: domain.tx_ctx_cnt,
                rx_ctx_cnt: domain.rx_ctx_cnt,
                max_ep_tx_ctx: domain.max_ep_tx_ctx,
                max_ep_rx_ctx: domain.max_ep_rx_ctx,
                max_ep_stx_ctx: domain.max_ep_stx_ctx,
                max_ep_srx_ctx: domain.max_ep_srx_ctx,
                cntr_cnt: domain.cntr_cnt,
                mr_iov_limit: domain.mr_iov_limit,
                caps: domain.caps.bits(),
                mode: domain.mode.bits(),
                max_err_data: domain.max_err_data,
                mr_cnt: domain.mr_cnt,
                auth_key_size: domain.auth_key.0.len() as u32,
                reserved: 0,
                name: set_text(&domain.name),
                auth_key: set_bytes(&domain.auth_key),
            },
            fabric_attr: uapi::kfi_shim_fabric_attr {
                fabric: fabric.fabric,
                prov_version: fabric.prov_version.0,
                api_version: fabric.api_version.0,
                reserved: 0,
                name: set_text(&fabric.name),
                prov_name: set_text(&fabric.prov_name),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::{FromBytes, IntoBytes};

    use super::*;

    /// A structure in which every byte is different from its neighbours.
    fn pattern() -> uapi::kfi_shim_info {
        let bytes: Vec<u8> = (1..=250)
            .cycle()
            .take(size_of::<uapi::kfi_shim_info>())
            .collect();
        let mut info = uapi::kfi_shim_info::read_from_bytes(&bytes).unwrap();
        // Sizes that a kernel keeps in bounds, and fields that it keeps at 0.
        info.src_addrlen = 64;
        info.dest_addrlen = 64;
        info.ep_attr.auth_key_size = 64;
        info.domain_attr.auth_key_size = 64;
        info.reserved = 0;
        info.tx_attr.reserved = 0;
        info.domain_attr.reserved = 0;
        info.fabric_attr.reserved = 0;
        info.domain_attr.name = set_text("soft0");
        info.fabric_attr.name = set_text("soft");
        info.fabric_attr.prov_name = set_text("provider");
        info
    }

    #[test]
    fn no_member_is_lost_or_mixed_up() {
        let info = pattern();
        let back = uapi::kfi_shim_info::from(&InfoEntry::from(&info));
        assert_eq!(back.as_bytes(), info.as_bytes());
    }

    #[test]
    fn lengths_beyond_the_array_are_cut() {
        let mut info = pattern();
        info.src_addrlen = u32::MAX;
        assert_eq!(InfoEntry::from(&info).src_addr.0.len(), 64);
    }

    #[test]
    fn long_texts_stay_unterminated() {
        let long = "x".repeat(100);
        let array: [c_char; 64] = set_text(&long);
        assert!(array.iter().all(|&c| c != 0));
        assert_eq!(text(&array).len(), 64);
    }

    #[test]
    fn short_form() {
        let mut info = InfoEntry::from(&pattern());
        info.ep_attr.r#type = EpType::RDM;
        info.ep_attr.protocol = Protocol::UNSPEC;
        info.fabric_attr.prov_version = ApiVersion(0x0001_0002);
        assert_eq!(
            info.short().to_string(),
            "provider: provider\n    fabric: soft\n    domain: soft0\n    version: 1.2\n    \
             type: KFI_EP_RDM\n    protocol: KFI_PROTO_UNSPEC\n"
        );
    }

    #[test]
    fn long_form_is_a_tree() {
        let text = InfoEntry::default().to_string();
        for line in [
            "kfi_info:",
            "    caps: [ ]",
            "    src_addr: (null)",
            "    kfi_tx_attr:",
            "        inject_size: 0",
            "    kfi_domain_attr:",
            "        name: (null)",
            "    kfi_fabric_attr:",
            "        prov_version: 0.0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line:?} in\n{text}");
        }
    }
}
