// SPDX-License-Identifier: GPL-2.0

//! Answers of the software provider to `kfi_getinfo`: every hint, and every
//! limit below, at and above.

use std::ffi::{CStr, CString};

use kfi::{
    AddrFormat, AvType, Bytes, Caps, EpType, GetinfoFlags, InfoEntry, KfiErrno, Mode, MrMode,
    OpFlags, Order, Progress, Protocol, Query, ResourceMgmt, Session, Tclass, Threading,
};

use crate::check::{Outcome, Stop};
use crate::env::Env;
use crate::rig::{expect_fabric, Rig};
use crate::{check, check_eq, tests};

tests! {
    "info" parallel;
    "everything" ["kfabric.h"] everything;
    "caps" ["kfabric.h"] caps;
    "caps-of-attributes" ["kfabric.h"] caps_of_attributes;
    "mode" ["kfabric.h"] mode;
    "limits" ["kfabric.h"] limits;
    "choices" ["kfabric.h"] choices;
    "mr-mode" ["kfabric.h"] mr_mode;
    "names" ["kfabric.h"] names;
    "auth-keys" ["kfabric.h"] auth_keys;
    "source" ["kfabric.h"] source;
    "destination" ["kfabric.h"] destination;
    "addresses-in-hints" ["kfabric.h"] addresses_in_hints;
    "internet-addresses" ["kfabric.h"] internet_addresses;
    "flags" ["kfabric.h"] flags;
    "open-objects" ["kfabric.h"] open_objects;
    "lnet" ["kfabric.h"] lnet;
}

/// The provider that this is about.
const PROVIDER: &str = "kfi_soft";

/// A session; skips the test if another provider is tested.
fn session(env: &Env) -> Result<Session, Stop> {
    match &env.settings.provider {
        Some(name) if name != PROVIDER => Err(Stop::Skip(format!("{name} is tested"))),
        _ => Ok(Session::open()?),
    }
}

/// Hints that want the provider only.
fn any() -> InfoEntry {
    let mut hints = InfoEntry::default();
    PROVIDER.clone_into(&mut hints.fabric_attr.prov_name);
    hints
}

/// Hints that a test has something to add to.
fn hints(change: impl FnOnce(&mut InfoEntry)) -> Query {
    let mut hints = any();
    change(&mut hints);
    Query::new().hints(hints)
}

/// The answers.
#[track_caller]
fn ask(session: &Session, query: &Query) -> Result<Vec<InfoEntry>, Stop> {
    Ok(session.getinfo(query)?.entries().to_vec())
}

/// The first answer.
#[track_caller]
fn first(session: &Session, query: &Query) -> Result<InfoEntry, Stop> {
    let answers = ask(session, query)?;
    answers
        .into_iter()
        .next()
        .ok_or_else(|| Stop::fail("an answer without entries"))
}

/// Nothing matches.
#[track_caller]
fn none(session: &Session, query: &Query) -> Outcome {
    expect_fabric(session.getinfo(query), KfiErrno::ENODATA)
}

/// The number of the first NIC, unless the parameter `nic_base` says otherwise.
const FIRST: u8 = 1;

/// The native address of a port of the NIC `soft{index}`.
fn native(index: u64, port: u64) -> Vec<u8> {
    ((index + u64::from(FIRST)) << 12 | port)
        .to_le_bytes()
        .to_vec()
}

/// As [`native`], without a port.
fn no_port(index: u64) -> Vec<u8> {
    ((index + u64::from(FIRST)) << 12 | 1 << 32)
        .to_le_bytes()
        .to_vec()
}

/// The Internet address of a port of the NIC `soft{index}`.
fn inet(index: u8, port: u16) -> Vec<u8> {
    let mut bytes = 2u16.to_ne_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.extend([127, 0, 0, index + FIRST]);
    bytes.extend([0; 8]);
    bytes
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// All capabilities that consumers ask for together.
fn all_caps() -> Caps {
    Caps::MSG
        | Caps::RMA
        | Caps::TAGGED
        | Caps::ATOMIC
        | Caps::SEND
        | Caps::RECV
        | Caps::READ
        | Caps::WRITE
        | Caps::REMOTE_READ
        | Caps::REMOTE_WRITE
        | Caps::MULTI_RECV
        | Caps::TAGGED_MULTI_RECV
        | Caps::RMA_EVENT
        | Caps::SOURCE
        | Caps::LOCAL_COMM
        | Caps::REMOTE_COMM
        | Caps::NAMED_RX_CTX
        | Caps::DIRECTED_RECV
        | Caps::TAGGED_RMA
        | Caps::TRIGGER
        | Caps::FENCE
}

fn everything(env: &Env) -> Outcome {
    let session = session(env)?;
    let answers = ask(&session, &hints(|_| ()))?;
    check!(answers.len() >= 2, "{} NICs", answers.len());
    for (nic, entry) in answers.iter().enumerate() {
        // The capability that makes unexpected entries is only for those who ask for it.
        check_eq!(entry.caps, all_caps() - Caps::RMA_EVENT);
        check_eq!(entry.mode, Mode::empty());
        check_eq!(entry.addr_format, AddrFormat::CXI);
        check_eq!(entry.src_addr.0, no_port(nic as u64));
        check_eq!(entry.dest_addr.0, Vec::<u8>::new());
        check_eq!(entry.fabric_attr.name, "soft");
        check_eq!(entry.domain_attr.name, format!("soft{nic}"));
        check_eq!(entry.ep_attr.r#type, EpType::RDM);
        check!(entry.ep_attr.protocol != Protocol::UNSPEC);
        check!(entry.ep_attr.max_msg_size >= 1 << 30);
        check_eq!(entry.ep_attr.mem_tag_format, u64::MAX);
        check_eq!(entry.ep_attr.tx_ctx_cnt, 256);
        check_eq!(entry.ep_attr.rx_ctx_cnt, 256);
        check!(entry.tx_attr.size > 0 && entry.rx_attr.size > 0);
        check!(entry.tx_attr.iov_limit >= 256 && entry.rx_attr.iov_limit >= 256);
        check!(entry.tx_attr.rma_iov_limit > 0 && entry.tx_attr.inject_size > 0);
        check_eq!(entry.domain_attr.threading, Threading::SAFE);
        check_eq!(entry.domain_attr.control_progress, Progress::AUTO);
        check_eq!(entry.domain_attr.data_progress, Progress::AUTO);
        check_eq!(entry.domain_attr.resource_mgmt, ResourceMgmt::ENABLED);
        check_eq!(entry.domain_attr.mr_mode, MrMode::empty());
        check_eq!(entry.domain_attr.cq_data_size, 8);
        check!(entry.domain_attr.mr_iov_limit >= 256);
        check_eq!(entry.domain_attr.tclass, Tclass::BEST_EFFORT);
        check_eq!(entry.domain_attr.auth_key.0, Vec::<u8>::new());
    }
    Ok(())
}

fn caps(env: &Env) -> Outcome {
    let session = session(env)?;
    let with = |caps| hints(|hints| hints.caps = caps);
    let comm = Caps::LOCAL_COMM | Caps::REMOTE_COMM;

    // Each alone; no other.
    for bit in (0..64).map(|bit| Caps::from(1 << bit)) {
        if all_caps().contains(bit) {
            check!(first(&session, &with(bit))?.caps.contains(bit), "{bit}");
        } else {
            none(&session, &with(bit))?;
            none(&session, &with(Caps::MSG | bit))?;
        }
    }
    check_eq!(first(&session, &with(all_caps()))?.caps, all_caps());

    // Capabilities that are implied, and others that are not.
    for (asked, answered) in [
        (Caps::MSG, Caps::MSG | Caps::SEND | Caps::RECV | comm),
        (Caps::TAGGED, Caps::TAGGED | Caps::SEND | Caps::RECV | comm),
        (Caps::MSG | Caps::RECV, Caps::MSG | Caps::RECV | comm),
        (
            Caps::RMA,
            Caps::RMA | Caps::READ | Caps::WRITE | Caps::REMOTE_READ | Caps::REMOTE_WRITE | comm,
        ),
        (
            Caps::ATOMIC | Caps::WRITE | Caps::LOCAL_COMM,
            Caps::ATOMIC | Caps::WRITE | Caps::LOCAL_COMM,
        ),
    ] {
        let entry = first(&session, &with(asked))?;
        check_eq!(entry.caps, answered);
        check!(answered.contains(entry.tx_attr.caps));
        check!(answered.contains(entry.rx_attr.caps));
        check!(answered.contains(entry.domain_attr.caps));
    }
    Ok(())
}

fn caps_of_attributes(env: &Env) -> Outcome {
    let session = session(env)?;
    let entry = first(&session, &hints(|_| ()))?;
    check!(entry.tx_attr.caps.contains(Caps::MSG | Caps::SEND));
    check!(!entry.tx_attr.caps.contains(Caps::RECV));
    check!(entry.rx_attr.caps.contains(Caps::MSG | Caps::RECV));
    check!(!entry.rx_attr.caps.contains(Caps::SEND));

    let entry = first(
        &session,
        &hints(|hints| {
            hints.caps = Caps::MSG | Caps::TAGGED;
            hints.tx_attr.caps = Caps::MSG;
            hints.rx_attr.caps = Caps::TAGGED;
            hints.domain_attr.caps = Caps::LOCAL_COMM;
        }),
    )?;
    check_eq!(entry.tx_attr.caps, Caps::MSG | Caps::SEND);
    check_eq!(entry.rx_attr.caps, Caps::TAGGED | Caps::RECV);

    // Each direction has its own.
    none(
        &session,
        &hints(|hints| hints.tx_attr.caps = Caps::MSG | Caps::RECV),
    )?;
    none(
        &session,
        &hints(|hints| hints.rx_attr.caps = Caps::MSG | Caps::SEND),
    )?;

    // No more than the endpoint has.
    let msg = |change: fn(&mut InfoEntry)| {
        hints(|hints| {
            hints.caps = Caps::MSG;
            change(hints);
        })
    };
    none(&session, &msg(|hints| hints.tx_attr.caps = Caps::RMA))?;
    none(&session, &msg(|hints| hints.rx_attr.caps = Caps::TAGGED))?;
    none(
        &session,
        &msg(|hints| hints.domain_attr.caps = Caps::SHARED_AV),
    )
}

fn mode(env: &Env) -> Outcome {
    let session = session(env)?;
    // Nothing is demanded of a caller that is ready to do anything.
    let entry = first(
        &session,
        &hints(|hints| {
            hints.mode = Mode::from(u64::MAX);
            hints.tx_attr.mode = Mode::from(u64::MAX);
            hints.rx_attr.mode = Mode::CONTEXT;
            hints.domain_attr.mode = Mode::RX_CQ_DATA;
        }),
    )?;
    check_eq!(entry.mode, Mode::empty());
    check_eq!(entry.tx_attr.mode, Mode::empty());
    check_eq!(entry.rx_attr.mode, Mode::empty());
    check_eq!(entry.domain_attr.mode, Mode::empty());
    Ok(())
}

/// A size or count in hints, by its name.
type Number = (&'static str, fn(&mut InfoEntry) -> &mut u64);

/// Numbers that are answered with the limit.
const NUMBERS: [Number; 20] = [
    ("tx inject_size", |info| &mut info.tx_attr.inject_size),
    ("tx iov_limit", |info| &mut info.tx_attr.iov_limit),
    ("tx rma_iov_limit", |info| &mut info.tx_attr.rma_iov_limit),
    ("rx total_buffered_recv", |info| {
        &mut info.rx_attr.total_buffered_recv
    }),
    ("rx iov_limit", |info| &mut info.rx_attr.iov_limit),
    ("max_msg_size", |info| &mut info.ep_attr.max_msg_size),
    ("cq_data_size", |info| &mut info.domain_attr.cq_data_size),
    ("cq_cnt", |info| &mut info.domain_attr.cq_cnt),
    ("ep_cnt", |info| &mut info.domain_attr.ep_cnt),
    ("tx_ctx_cnt", |info| &mut info.domain_attr.tx_ctx_cnt),
    ("rx_ctx_cnt", |info| &mut info.domain_attr.rx_ctx_cnt),
    ("max_ep_tx_ctx", |info| &mut info.domain_attr.max_ep_tx_ctx),
    ("max_ep_rx_ctx", |info| &mut info.domain_attr.max_ep_rx_ctx),
    ("max_ep_stx_ctx", |info| {
        &mut info.domain_attr.max_ep_stx_ctx
    }),
    ("max_ep_srx_ctx", |info| {
        &mut info.domain_attr.max_ep_srx_ctx
    }),
    ("cntr_cnt", |info| &mut info.domain_attr.cntr_cnt),
    ("mr_iov_limit", |info| &mut info.domain_attr.mr_iov_limit),
    ("max_err_data", |info| &mut info.domain_attr.max_err_data),
    ("mr_cnt", |info| &mut info.domain_attr.mr_cnt),
    ("mr_key_size", |info| &mut info.domain_attr.mr_key_size),
];

/// Numbers that are answered as asked, with their limits.
const CHOSEN: [(Number, u64); 5] = [
    (("tx size", |info| &mut info.tx_attr.size), 1 << 16),
    (("rx size", |info| &mut info.rx_attr.size), 1 << 16),
    (("ep tx_ctx_cnt", |info| &mut info.ep_attr.tx_ctx_cnt), 256),
    (("ep rx_ctx_cnt", |info| &mut info.ep_attr.rx_ctx_cnt), 256),
    (("mr_key_size", |info| &mut info.domain_attr.mr_key_size), 8),
];

/// Numbers of features that are absent: the answer is 0.
const ABSENT: [Number; 4] = [
    ("msg_prefix_size", |info| &mut info.ep_attr.msg_prefix_size),
    ("max_order_raw_size", |info| {
        &mut info.ep_attr.max_order_raw_size
    }),
    ("max_order_war_size", |info| {
        &mut info.ep_attr.max_order_war_size
    }),
    ("max_order_waw_size", |info| {
        &mut info.ep_attr.max_order_waw_size
    }),
];

fn limits(env: &Env) -> Outcome {
    let session = session(env)?;
    let mut offered = first(&session, &hints(|_| ()))?;
    for (name, number) in NUMBERS {
        let limit = *number(&mut offered);
        for below in [limit.saturating_sub(1), limit] {
            let answer = session.getinfo(&hints(|hints| *number(hints) = below));
            check!(answer.is_ok(), "{name} {below}: {answer:?}");
        }
        for above in [limit + 1, u64::MAX] {
            let query = hints(|hints| *number(hints) = above);
            none(&session, &query).map_err(|_| Stop::fail(format!("{name} {above}")))?;
        }
    }
    for ((name, number), limit) in CHOSEN {
        for asked in [1, limit - 1, limit] {
            let mut entry = first(&session, &hints(|hints| *number(hints) = asked))?;
            check_eq!(*number(&mut entry), asked, "{name}");
        }
        // Of contexts of an endpoint the largest number is KFI_SHARED_CONTEXT.
        let shared = u64::MAX - u64::from(name.ends_with("x_ctx_cnt"));
        for above in [limit + 1, shared] {
            let query = hints(|hints| *number(hints) = above);
            none(&session, &query).map_err(|_| Stop::fail(format!("{name} {above}")))?;
        }
    }
    for (name, number) in ABSENT {
        check_eq!(*number(&mut offered), 0, "{name}");
        none(&session, &hints(|hints| *number(hints) = 1))?;
    }
    Ok(())
}

fn choices(env: &Env) -> Outcome {
    let session = session(env)?;
    let yes = |change: &dyn Fn(&mut InfoEntry)| first(&session, &hints(change));
    let no = |change: &dyn Fn(&mut InfoEntry)| none(&session, &hints(change));

    yes(&|hints| hints.ep_attr.r#type = EpType::RDM)?;
    no(&|hints| hints.ep_attr.r#type = EpType::MSG)?;
    no(&|hints| hints.ep_attr.r#type = EpType::DGRAM)?;
    let protocol = yes(&|_| ())?.ep_attr.protocol;
    yes(&|hints| hints.ep_attr.protocol = protocol)?;
    no(&|hints| hints.ep_attr.protocol = Protocol::UDP)?;
    yes(&|hints| hints.ep_attr.protocol_version = 1)?;
    no(&|hints| hints.ep_attr.protocol_version = 2)?;
    yes(&|hints| hints.ep_attr.mem_tag_format = 0xff00)?;

    for number in 0..=5 {
        yes(&|hints| hints.domain_attr.threading = Threading(number))?;
    }
    no(&|hints| hints.domain_attr.threading = Threading(6))?;
    for number in 0..=2 {
        yes(&|hints| hints.domain_attr.control_progress = Progress(number))?;
        yes(&|hints| hints.domain_attr.data_progress = Progress(number))?;
    }
    no(&|hints| hints.domain_attr.control_progress = Progress(3))?;
    no(&|hints| hints.domain_attr.data_progress = Progress(3))?;
    for choice in [ResourceMgmt::DISABLED, ResourceMgmt::ENABLED] {
        let entry = yes(&|hints| hints.domain_attr.resource_mgmt = choice)?;
        check_eq!(entry.domain_attr.resource_mgmt, choice);
    }
    no(&|hints| hints.domain_attr.resource_mgmt = ResourceMgmt(3))?;
    for choice in [AvType::MAP, AvType::TABLE] {
        let entry = yes(&|hints| hints.domain_attr.av_type = choice)?;
        check_eq!(entry.domain_attr.av_type, choice);
    }
    no(&|hints| hints.domain_attr.av_type = AvType(3))?;

    for tclass in (0x100..0x140).chain(0x200..0x206).map(Tclass) {
        let entry = yes(&|hints| {
            hints.domain_attr.tclass = tclass;
            hints.tx_attr.tclass = tclass;
        })?;
        check_eq!(entry.domain_attr.tclass, tclass);
        check_eq!(entry.tx_attr.tclass, tclass);
    }
    for tclass in [1, 0xff, 0x140, 0x1ff, 0x206].map(Tclass) {
        no(&|hints| hints.domain_attr.tclass = tclass)?;
        no(&|hints| hints.tx_attr.tclass = tclass)?;
    }

    let entry = yes(&|hints| {
        hints.tx_attr.msg_order = Order::SAS;
        hints.rx_attr.msg_order = Order::SAS;
    })?;
    check!(entry.tx_attr.msg_order.contains(Order::SAS));
    check!(entry.rx_attr.msg_order.contains(Order::SAS));
    no(&|hints| hints.tx_attr.msg_order = Order::DATA)?;
    no(&|hints| hints.rx_attr.msg_order = Order::from(1 << 20))?;
    no(&|hints| hints.tx_attr.comp_order = Order::DATA)?;
    no(&|hints| hints.rx_attr.comp_order = Order::DATA)?;

    let flags = OpFlags::COMPLETION | OpFlags::TRANSMIT_COMPLETE;
    let entry = yes(&|hints| hints.tx_attr.op_flags = flags)?;
    check_eq!(entry.tx_attr.op_flags, flags);
    no(&|hints| hints.tx_attr.op_flags = OpFlags::COMMIT_COMPLETE)?;
    no(&|hints| hints.tx_attr.op_flags = OpFlags::MULTI_RECV)?;
    let entry = yes(&|hints| hints.rx_attr.op_flags = OpFlags::MULTI_RECV)?;
    check_eq!(entry.rx_attr.op_flags, OpFlags::MULTI_RECV);
    no(&|hints| hints.rx_attr.op_flags = OpFlags::INJECT)
}

fn mr_mode(env: &Env) -> Outcome {
    let session = session(env)?;
    let with = |mode| hints(|hints| hints.domain_attr.mr_mode = mode);
    // The modes demanded are among those that the caller accepts, and no more than are needed.
    for (asked, answered) in [
        (MrMode::empty(), MrMode::empty()),
        (MrMode::ENDPOINT, MrMode::ENDPOINT),
        (MrMode::PROV_KEY, MrMode::PROV_KEY),
        (MrMode::VIRT_ADDR, MrMode::VIRT_ADDR),
        (
            MrMode::ENDPOINT | MrMode::PROV_KEY,
            MrMode::ENDPOINT | MrMode::PROV_KEY,
        ),
        (
            MrMode::LOCAL | MrMode::RAW | MrMode::RMA_EVENT,
            MrMode::empty(),
        ),
    ] {
        let entry = first(&session, &with(asked))?;
        check_eq!(entry.domain_attr.mr_mode, answered);
    }
    none(&session, &with(MrMode::from(1 << 7)))
}

fn names(env: &Env) -> Outcome {
    let session = session(env)?;
    for (name, is_there) in [
        ("kfi_soft", true),
        ("", true),
        ("KFI_SOFT", false),
        ("kfi_sof", false),
        ("kfi_soft2", false),
        ("kcxi", false),
    ] {
        let query = hints(|hints| name.clone_into(&mut hints.fabric_attr.prov_name));
        check_eq!(session.getinfo(&query).is_ok(), is_there, "provider {name}");
    }
    for (name, is_there) in [("soft", true), ("", true), ("sof", false), ("cxi", false)] {
        let query = hints(|hints| name.clone_into(&mut hints.fabric_attr.name));
        check_eq!(session.getinfo(&query).is_ok(), is_there, "fabric {name}");
    }
    for (name, is_there) in [
        ("soft0", true),
        ("soft1", true),
        ("soft00", false),
        ("soft64", false),
        ("soft", false),
        ("cxi0", false),
    ] {
        let query = hints(|hints| name.clone_into(&mut hints.domain_attr.name));
        check_eq!(session.getinfo(&query).is_ok(), is_there, "domain {name}");
    }
    let version = first(&session, &hints(|_| ()))?.fabric_attr.prov_version;
    check_eq!(version.0, 1 << 16);
    first(
        &session,
        &hints(|hints| hints.fabric_attr.prov_version = version),
    )?;
    none(
        &session,
        &hints(|hints| hints.fabric_attr.prov_version.0 = version.0 + 1),
    )
}

fn auth_keys(env: &Env) -> Outcome {
    let session = session(env)?;
    for len in [1, 4, 63, 64] {
        let key = Bytes((1..=len).collect());
        let other = Bytes(vec![0xaa; usize::from(len)]);
        let entry = first(
            &session,
            &hints(|hints| {
                hints.ep_attr.auth_key = key.clone();
                hints.domain_attr.auth_key = other.clone();
            }),
        )?;
        check_eq!(entry.ep_attr.auth_key, key);
        check_eq!(entry.domain_attr.auth_key, other);
    }
    Ok(())
}

fn source(env: &Env) -> Outcome {
    let session = session(env)?;
    let local = |node: Option<&CStr>, service: Option<&CStr>| {
        let mut query = hints(|_| ()).flags(GetinfoFlags::SOURCE);
        if let Some(node) = node {
            query = query.node(node.into());
        }
        if let Some(service) = service {
            query = query.service(service.into());
        }
        query
    };
    // One for each local device.
    let all = ask(&session, &hints(|_| ()))?;
    check_eq!(ask(&session, &local(None, None))?, all);
    // By name and by number.
    for node in [c"soft1", c"0x2", c"2"] {
        let found = ask(&session, &local(Some(node), None))?;
        check_eq!(found.len(), 1);
        check_eq!(found[0].domain_attr.name, "soft1");
        check_eq!(found[0].src_addr.0, no_port(1));
    }
    // A port is asked for by its number, 0 too.
    for port in [0, 1, 51, 4095] {
        let service = text(&port.to_string());
        let found = ask(&session, &local(Some(c"0x1"), Some(&service)))?;
        check_eq!(found.len(), 1);
        check_eq!(found[0].src_addr.0, native(0, port));
        let found = ask(&session, &local(None, Some(&service)))?;
        check_eq!(found.len(), all.len());
        for (nic, entry) in found.iter().enumerate() {
            check_eq!(entry.src_addr.0, native(nic as u64, port));
        }
    }
    for service in [c"4096", c"65535", c"65536", c"-1", c"0x1", c"", c"ssh"] {
        none(&session, &local(Some(c"soft0"), Some(service)))?;
    }
    for node in [
        c"soft64",
        c"0x40",
        c"0xfffff",
        c"0x100000",
        // No NIC has the number 0, unless it is asked for.
        c"0",
        c"0x0",
        c"3",
        c"01",
        c"1048576",
        c"-1",
        c"127.0.0.0",
        c"soft",
        c"cxi0",
        c"",
        c"0x",
        c"127.0.0.65",
        c"10.0.0.1",
        c"nobody",
    ] {
        none(&session, &local(Some(node), None))?;
    }
    // The domain and the node must be of one mind.
    let query = |name: &str| {
        hints(|hints| name.clone_into(&mut hints.domain_attr.name))
            .flags(GetinfoFlags::SOURCE)
            .node(c"soft1".into())
    };
    check_eq!(ask(&session, &query("soft1"))?.len(), 1);
    none(&session, &query("soft0"))
}

fn destination(env: &Env) -> Outcome {
    let session = session(env)?;
    let all = ask(&session, &hints(|_| ()))?.len();
    // Every NIC reaches every other.
    let query = hints(|_| ()).node(c"soft1".into()).service(c"7".into());
    let found = ask(&session, &query)?;
    check_eq!(found.len(), all);
    for (nic, entry) in found.iter().enumerate() {
        check_eq!(entry.src_addr.0, no_port(nic as u64));
        check_eq!(entry.dest_addr.0, native(1, 7));
    }
    // Without a node: the same NIC.
    let found = ask(&session, &hints(|_| ()).service(c"7".into()))?;
    check_eq!(found.len(), all);
    for (nic, entry) in found.iter().enumerate() {
        check_eq!(entry.dest_addr.0, native(nic as u64, 7));
    }
    none(&session, &hints(|_| ()).node(c"0x40".into()))?;
    none(
        &session,
        &hints(|_| ()).node(c"soft1".into()).service(c"x".into()),
    )
}

fn addresses_in_hints(env: &Env) -> Outcome {
    let session = session(env)?;
    let with = |addr: Vec<u8>| hints(|hints| hints.src_addr = Bytes(addr));
    for addr in [native(1, 9), native(1, 0), no_port(1)] {
        let found = ask(&session, &with(addr.clone()))?;
        check_eq!(found.len(), 1);
        check_eq!(found[0].domain_attr.name, "soft1");
        check_eq!(found[0].src_addr.0, addr);
    }
    for addr in [
        native(64, 0),
        vec![0; 7],
        vec![0; 9],
        (1u64 << 33).to_le_bytes().to_vec(),
        (1u64 << 63).to_le_bytes().to_vec(),
        (1u64 << 32 | 1).to_le_bytes().to_vec(),
        inet(0, 1),
    ] {
        none(&session, &with(addr))?;
    }
    let entry = first(
        &session,
        &hints(|hints| hints.dest_addr = Bytes(native(1, 9))),
    )?;
    check_eq!(entry.dest_addr.0, native(1, 9));
    none(
        &session,
        &hints(|hints| hints.dest_addr = Bytes(native(64, 9))),
    )?;

    // Node and service come before the address that they are given for.
    let query = hints(|hints| {
        hints.src_addr = Bytes(native(0, 9));
        hints.dest_addr = Bytes(native(0, 8));
    });
    let source = query
        .clone()
        .flags(GetinfoFlags::SOURCE)
        .node(c"soft1".into());
    let found = ask(&session, &source)?;
    check_eq!(found.len(), 1);
    check_eq!(found[0].src_addr.0, no_port(1));
    check_eq!(found[0].dest_addr.0, native(0, 8));
    let found = ask(&session, &query.node(c"soft1".into()).service(c"3".into()))?;
    check_eq!(found.len(), 1);
    check_eq!(found[0].src_addr.0, native(0, 9));
    check_eq!(found[0].dest_addr.0, native(1, 3));
    Ok(())
}

fn internet_addresses(env: &Env) -> Outcome {
    let session = session(env)?;
    let local = |format, node: &CStr, service: &CStr| {
        hints(|hints| hints.addr_format = format)
            .flags(GetinfoFlags::SOURCE)
            .node(node.into())
            .service(service.into())
    };
    // An IPv4 node means the format; others take it if asked.
    for (format, node) in [
        (AddrFormat::UNSPEC, c"127.0.0.2"),
        (AddrFormat::SOCKADDR_IN, c"127.0.0.2"),
        (AddrFormat::SOCKADDR, c"127.0.0.2"),
        (AddrFormat::SOCKADDR_IN, c"soft1"),
        (AddrFormat::SOCKADDR_IN, c"0x2"),
    ] {
        let found = ask(&session, &local(format, node, c"80"))?;
        check_eq!(found.len(), 1);
        check_eq!(found[0].domain_attr.name, "soft1");
        check_eq!(found[0].addr_format, AddrFormat::SOCKADDR_IN);
        check_eq!(found[0].src_addr.0, inet(1, 80));
    }
    // Port 0 is none.
    let entry = first(&session, &local(AddrFormat::UNSPEC, c"127.0.0.1", c"0"))?;
    check_eq!(entry.src_addr.0, inet(0, 0));
    none(&session, &local(AddrFormat::CXI, c"127.0.0.1", c"80"))?;
    for format in [
        AddrFormat::SOCKADDR_IN6,
        AddrFormat::SOCKADDR_IB,
        AddrFormat::GNI,
        AddrFormat(7),
    ] {
        none(&session, &hints(|hints| hints.addr_format = format))?;
    }
    let entry = first(
        &session,
        &hints(|hints| {
            hints.addr_format = AddrFormat::SOCKADDR_IN;
            hints.src_addr = Bytes(inet(1, 0));
            hints.dest_addr = Bytes(inet(0, 99));
        }),
    )?;
    check_eq!(entry.domain_attr.name, "soft1");
    check_eq!(entry.dest_addr.0, inet(0, 99));
    Ok(())
}

fn flags(env: &Env) -> Outcome {
    let session = session(env)?;
    let numeric = |node: &CStr| {
        hints(|_| ())
            .flags(GetinfoFlags::SOURCE | GetinfoFlags::NUMERICHOST)
            .node(node.into())
    };
    first(&session, &numeric(c"0x1"))?;
    first(&session, &numeric(c"1"))?;
    first(&session, &numeric(c"127.0.0.1"))?;
    none(&session, &numeric(c"soft0"))?;

    // Providers that are there, with whatever hints.
    let found = ask(
        &session,
        &hints(|hints| hints.caps = Caps::MULTICAST).flags(GetinfoFlags::PROV_ATTR_ONLY),
    )?;
    check_eq!(found.len(), 1);
    check_eq!(found[0].fabric_attr.prov_name, PROVIDER);
    check_eq!(found[0].fabric_attr.prov_version.0, 1 << 16);
    check_eq!(found[0].caps, Caps::empty());

    let unknown = hints(|_| ()).flags(GetinfoFlags::from(1 << 40));
    check!(session.getinfo(&unknown).is_err());
    Ok(())
}

fn open_objects(env: &Env) -> Outcome {
    let rig = Rig::in_session(env, session(env)?)?;
    let session = &rig.session;
    let name = rig.info.entries()[0].domain_attr.name.clone();

    // Only the NIC of the domain.
    let domain = rig.domain.handle();
    let found = ask(session, &hints(|hints| hints.domain_attr.domain = domain))?;
    check_eq!(found.len(), 1);
    check_eq!(found[0].domain_attr.name, name);
    // All NICs of the fabric.
    let fabric = rig.fabric.handle();
    let all = ask(session, &hints(|_| ()))?.len();
    let found = ask(session, &hints(|hints| hints.fabric_attr.fabric = fabric))?;
    check_eq!(found.len(), all);
    // The domain of another fabric.
    let other = rig.info.fabric(0)?;
    let query = hints(|hints| {
        hints.domain_attr.domain = domain;
        hints.fabric_attr.fabric = other.handle();
    });
    none(session, &query)?;
    // Attributes that the domain was not opened with.
    let query = hints(|hints| {
        hints.domain_attr.domain = domain;
        hints.domain_attr.resource_mgmt = ResourceMgmt::DISABLED;
    });
    none(session, &query)?;
    let query = hints(|hints| {
        hints.domain_attr.domain = domain;
        hints.addr_format = AddrFormat::SOCKADDR_IN;
    });
    none(session, &query)?;
    other.close().map_err(|(_, error)| error)?;
    rig.close()
}

/// The hints of Lustre's network driver.
fn lnet(env: &Env) -> Outcome {
    let session = session(env)?;
    let mut hints = InfoEntry {
        caps: Caps::MSG
            | Caps::RMA
            | Caps::SEND
            | Caps::RECV
            | Caps::READ
            | Caps::WRITE
            | Caps::REMOTE_READ
            | Caps::REMOTE_WRITE
            | Caps::MULTI_RECV
            | Caps::REMOTE_COMM
            | Caps::NAMED_RX_CTX
            | Caps::TAGGED
            | Caps::TAGGED_RMA
            | Caps::DIRECTED_RECV,
        ..InfoEntry::default()
    };
    hints.domain_attr.resource_mgmt = ResourceMgmt::DISABLED;
    hints.domain_attr.mr_iov_limit = 256;
    hints.domain_attr.mr_key_size = 4;
    hints.tx_attr.iov_limit = 256;
    hints.rx_attr.iov_limit = 256;
    hints.ep_attr.max_msg_size = 1 << 20;
    hints.ep_attr.auth_key = Bytes(vec![0, 0, 0, 255]);
    hints.fabric_attr.prov_version.0 = 1 << 16;
    let caps = hints.caps;
    let query = Query::new()
        .hints(hints)
        .flags(GetinfoFlags::SOURCE)
        .node(c"soft0".into())
        .service(c"51".into());
    let info = session.getinfo(&query)?;
    let entry = &info.entries()[0];
    check_eq!(entry.caps, caps);
    check_eq!(entry.src_addr.0, native(0, 51));
    check_eq!(entry.domain_attr.mr_key_size, 4);
    check_eq!(entry.domain_attr.resource_mgmt, ResourceMgmt::DISABLED);
    check_eq!(entry.ep_attr.auth_key.0, vec![0, 0, 0, 255]);
    let fabric = info.fabric(0)?;
    let domain = fabric.domain(&info, 0)?;
    domain.close().map_err(|(_, error)| error)?;
    fabric.close().map_err(|(_, error)| error)?;
    Ok(())
}
