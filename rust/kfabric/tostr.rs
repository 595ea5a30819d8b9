// SPDX-License-Identifier: GPL-2.0

//! Text forms of structures, enumerations and sets of flags.
//!
//! A value of an enumeration is its name, a set of flags the names in brackets, and a structure one
//! line per member below its name, indented by four spaces a level. A value without a name is a number.

#![forbid(unsafe_code)]

mod addr;
mod names;
mod tree;

use kernel::{
    fmt,
    prelude::*, //
};

use crate::kfi::{
    bindings,
    info::{
        InfoRef,
        KFI_VERSION, //
    }, //
};

pub(crate) use names::{
    Enum,
    Flags, //
};
pub(crate) use tree::{
    DomainAttr,
    FabricAttr, //
};

/// Something that has a text form.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    /// A value of an enumeration.
    Enum(&'static Enum, u32),
    /// A set of flags.
    Flags(&'static Flags, u64),
    /// The modes of memory registration.
    MrMode(c_int),
    /// One entry of a chain.
    Info(InfoRef<'a>),
    /// Attributes of a transmit context.
    TxAttr(&'a bindings::kfi_tx_attr),
    /// Attributes of a receive context.
    RxAttr(&'a bindings::kfi_rx_attr),
    /// Attributes of an endpoint.
    EpAttr(&'a bindings::kfi_ep_attr),
    /// Attributes of a domain.
    DomainAttr(DomainAttr<'a>),
    /// Attributes of a fabric.
    FabricAttr(FabricAttr<'a>),
    /// The version of the API.
    Version,
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Enum(names, value) => names.show(value).fmt(f),
            Self::Flags(names, value) => names.show(value).fmt(f),
            Self::MrMode(mode) => names::MrMode(mode).fmt(f),
            Self::Info(info) => tree::show(f, &info),
            Self::TxAttr(attr) => tree::show(f, attr),
            Self::RxAttr(attr) => tree::show(f, attr),
            Self::EpAttr(attr) => tree::show(f, attr),
            Self::DomainAttr(attr) => tree::show(f, &attr),
            Self::FabricAttr(attr) => tree::show(f, &attr),
            Self::Version => tree::Version(KFI_VERSION).fmt(f),
        }
    }
}

#[kunit_tests(kfabric_tostr)]
mod tests {
    use kernel::str::CString;

    use super::{
        names::*,
        *, //
    };
    use crate::kfi::{
        flags::Caps,
        info::Info, //
    };

    fn check(value: Value<'_>, expected: &str) -> Result {
        let text = CString::try_from_fmt(fmt!("{value}"))?;
        if text.to_bytes() != expected.as_bytes() {
            pr_err!("not expected: {}\n", &*text);
            return Err(EINVAL);
        }
        Ok(())
    }

    #[test]
    fn enumerations() -> Result {
        check(Value::Enum(&EP_TYPE, bindings::KFI_EP_RDM), "KFI_EP_RDM")?;
        check(Value::Enum(&ADDR_FORMAT, 6), "KFI_ADDR_CXI")?;
        check(Value::Enum(&THREADING, 3), "KFI_THREAD_DOMAIN")?;
        check(Value::Enum(&PROGRESS, 1), "KFI_PROGRESS_AUTO")?;
        check(Value::Enum(&PROTOCOL, 9), "KFI_PROTO_CXI")?;
        check(Value::Enum(&AV_TYPE, 2), "KFI_AV_TABLE")?;
        check(Value::Enum(&ATOMIC_TYPE, 13), "KFI_LONG_DOUBLE_COMPLEX")?;
        check(Value::Enum(&ATOMIC_OP, 18), "KFI_MSWAP")?;
        check(Value::Enum(&EQ_EVENT, 6), "KFI_JOIN_COMPLETE")?;
        check(Value::Enum(&OP_TYPE, 10), "KFI_OP_CNTR_ADD")
    }

    #[test]
    fn values_without_a_name() -> Result {
        check(Value::Enum(&EP_TYPE, 17), "Unknown (17)")?;
        // The ends of these enumerations are no values.
        check(Value::Enum(&ATOMIC_TYPE, 14), "Unknown (14)")?;
        check(Value::Enum(&ATOMIC_OP, 19), "Unknown (19)")?;
        check(
            Value::Enum(&PROTOCOL, 0x8000_0001),
            "Provider specific (0x80000001)",
        )
    }

    #[test]
    fn flags() -> Result {
        check(Value::Flags(&CAPS, 0), "[ ]")?;
        check(Value::Flags(&CAPS, 6), "[ KFI_MSG, KFI_RMA ]")?;
        check(
            Value::Flags(&CAPS, Caps::LOCAL_COMM.as_raw() | 1 << 63 | 1),
            "[ KFI_LOCAL_COMM, 0x8000000000000001 ]",
        )?;
        check(Value::MrMode(0x80), "[ 0x80 ]")?;
        check(Value::MrMode(c_int::MIN), "[ 0x80000000 ]")
    }

    /// The same bit has another name in another word.
    #[test]
    fn flags_of_one_value() -> Result {
        check(Value::Flags(&CAPS, 1 << 59), "[ KFI_DIRECTED_RECV ]")?;
        check(Value::Flags(&MODE, 1 << 59), "[ KFI_CONTEXT ]")?;
        check(Value::Flags(&OP_FLAGS, 1 << 59), "[ KFI_CLAIM ]")?;
        check(Value::Flags(&CQ_EVENT_FLAGS, 1 << 11), "[ KFI_SEND ]")?;
        check(Value::MrMode(1 << 1), "[ KFI_MR_LOCAL ]")
    }

    #[test]
    fn orders() -> Result {
        check(Value::Flags(&MSG_ORDER, 0), "[ KFI_ORDER_NONE ]")?;
        check(Value::Flags(&MSG_ORDER, 0x1ff), "[ KFI_ORDER_STRICT ]")?;
        check(
            Value::Flags(&MSG_ORDER, 0x1_01ff),
            "[ KFI_ORDER_STRICT, KFI_ORDER_DATA ]",
        )?;
        check(
            Value::Flags(&MSG_ORDER, 0x1_0101),
            "[ KFI_ORDER_RAR, KFI_ORDER_SAS, KFI_ORDER_DATA ]",
        )
    }

    #[test]
    fn version() -> Result {
        check(Value::Version, "1.7")
    }

    #[test]
    fn transmit_attributes() -> Result {
        let attr = bindings::kfi_tx_attr {
            caps: 2,
            op_flags: 1 << 28,
            msg_order: 1 << 8,
            inject_size: 64,
            size: 1024,
            iov_limit: 4,
            rma_iov_limit: 1,
            tclass: 0x101,
            ..Default::default()
        };
        check(
            Value::TxAttr(&attr),
            "kfi_tx_attr:
    caps: [ KFI_MSG ]
    mode: [ ]
    op_flags: [ KFI_DELIVERY_COMPLETE ]
    msg_order: [ KFI_ORDER_SAS ]
    comp_order: [ KFI_ORDER_NONE ]
    inject_size: 64
    size: 1024
    iov_limit: 4
    rma_iov_limit: 1
    tclass: KFI_TC_DSCP (1)
",
        )
    }

    #[test]
    fn receive_attributes() -> Result {
        let attr = bindings::kfi_rx_attr {
            mode: 1 << 52,
            total_buffered_recv: usize::MAX,
            ..Default::default()
        };
        check(
            Value::RxAttr(&attr),
            "kfi_rx_attr:
    caps: [ ]
    mode: [ KFI_CONTEXT2 ]
    op_flags: [ ]
    msg_order: [ KFI_ORDER_NONE ]
    comp_order: [ KFI_ORDER_NONE ]
    total_buffered_recv: 18446744073709551615
    size: 0
    iov_limit: 0
",
        )
    }

    #[test]
    fn traffic_classes() -> Result {
        let show = |tclass, expected: &str| {
            let text = CString::try_from_fmt(fmt!("{}", tree::TrafficClass(tclass)))?;
            assert_eq!(text.to_str().map_err(|_| EINVAL)?, expected);
            Ok::<(), Error>(())
        };
        show(0, "KFI_TC_UNSPEC")?;
        show(0x12e, "KFI_TC_DSCP (46)")?;
        show(0x200, "KFI_TC_BEST_EFFORT")?;
        show(0x205, "KFI_TC_NETWORK_CTRL")?;
        show(0x300, "Unknown (768)")
    }

    #[test]
    fn info_with_everything() -> Result {
        let mut info = Info::new()?;
        let mut entry = info.first_mut();
        entry
            .caps(Caps::from_raw(6))
            .mode(1 << 59)
            .addr_format(bindings::KFI_ADDR_CXI)
            .src_addr(&0x1234_5678_u64.to_ne_bytes())?;
        let attr = entry.tx_attr()?;
        attr.size = 16;
        attr.tclass = bindings::KFI_TC_LOW_LATENCY;
        entry.rx_attr()?.size = 32;
        entry
            .ep_attr()?
            .type_(bindings::KFI_EP_RDM)
            .protocol(0x8000_0000)
            .protocol_version(1)
            .max_msg_size(4096)
            .mem_tag_format(0xaaaa)
            .tx_ctx_cnt(usize::MAX)
            .rx_ctx_cnt(1)
            .auth_key(b"secret")?;
        entry
            .domain_attr()?
            .name(c"soft0\n")?
            .threading(bindings::KFI_THREAD_SAFE)
            .mr_mode(6)
            .cntr_cnt(7)
            .caps(1 << 51)
            .tclass(bindings::KFI_TC_BEST_EFFORT);
        entry
            .fabric_attr()?
            .name(c"loop")?
            .prov_name(c"soft")?
            .prov_version(0x0002_0003)
            .api_version(KFI_VERSION);
        // Entries that follow in the chain are left out.
        info.append(Info::new()?);
        check(
            Value::Info(info.first()),
            "kfi_info:
    caps: [ KFI_MSG, KFI_RMA ]
    mode: [ KFI_CONTEXT ]
    addr_format: KFI_ADDR_CXI
    src_addrlen: 8
    dest_addrlen: 0
    src_addr: kfi_addr_cxi://0x12345678
    dest_addr: (null)
    handle: (null)
    kfi_tx_attr:
        caps: [ ]
        mode: [ ]
        op_flags: [ ]
        msg_order: [ KFI_ORDER_NONE ]
        comp_order: [ KFI_ORDER_NONE ]
        inject_size: 0
        size: 16
        iov_limit: 0
        rma_iov_limit: 0
        tclass: KFI_TC_LOW_LATENCY
    kfi_rx_attr:
        caps: [ ]
        mode: [ ]
        op_flags: [ ]
        msg_order: [ KFI_ORDER_NONE ]
        comp_order: [ KFI_ORDER_NONE ]
        total_buffered_recv: 0
        size: 32
        iov_limit: 0
    kfi_ep_attr:
        type: KFI_EP_RDM
        protocol: Provider specific (0x80000000)
        protocol_version: 1
        max_msg_size: 4096
        msg_prefix_size: 0
        max_order_raw_size: 0
        max_order_war_size: 0
        max_order_waw_size: 0
        mem_tag_format: 0x000000000000aaaa
        tx_ctx_cnt: KFI_SHARED_CONTEXT
        rx_ctx_cnt: 1
        auth_key_size: 6
    kfi_domain_attr:
        domain: (null)
        name: soft0\\x0a
        threading: KFI_THREAD_SAFE
        control_progress: KFI_PROGRESS_UNSPEC
        data_progress: KFI_PROGRESS_UNSPEC
        resource_mgmt: KFI_RM_UNSPEC
        av_type: KFI_AV_UNSPEC
        mr_mode: [ KFI_MR_LOCAL, KFI_MR_RAW ]
        mr_key_size: 0
        cq_data_size: 0
        cq_cnt: 0
        ep_cnt: 0
        tx_ctx_cnt: 0
        rx_ctx_cnt: 0
        max_ep_tx_ctx: 0
        max_ep_rx_ctx: 0
        max_ep_stx_ctx: 0
        max_ep_srx_ctx: 0
        cntr_cnt: 7
        mr_iov_limit: 0
        caps: [ KFI_LOCAL_COMM ]
        mode: [ ]
        auth_key_size: 0
        max_err_data: 0
        mr_cnt: 0
        tclass: KFI_TC_BEST_EFFORT
    kfi_fabric_attr:
        fabric: (null)
        name: loop
        prov_name: soft
        prov_version: 2.3
        api_version: 1.7
",
        )
    }

    #[test]
    fn names_that_are_missing() -> Result {
        let attr = bindings::kfi_fabric_attr::default();
        check(
            Value::FabricAttr(FabricAttr {
                attr: &attr,
                name: None,
                prov_name: None,
            }),
            "kfi_fabric_attr:
    fabric: (null)
    name: (null)
    prov_name: (null)
    prov_version: 0.0
    api_version: 0.0
",
        )
    }
}
