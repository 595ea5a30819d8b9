// SPDX-License-Identifier: GPL-2.0

//! The provider's offer: one entry for each virtual NIC that fits the hints.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

use crate::{
    address::place::{
        self,
        AddressFormat,
        NodeName,
        Place, //
    },
    domain::Domain,
    fabric::Fabric,
    kfi::{
        addr,
        attr::{
            self,
            AvType,
            ResourceMgmt, //
        },
        errno::EBADFLAGS,
        fid::Fid,
        flags::{
            Caps,
            InfoFlags,
            MrMode,
            OpFlags,
            Order,
            KFI_EP_RDM,
            SHARED_CONTEXT, //
        },
        info::{
            is_named,
            Info,
            InfoMut,
            InfoRef,
            KFI_VERSION, //
        },
        provider::{
            Provider,
            Query, //
        }, //
    },
    limits,
    nic::{
        self,
        Nic, //
    },
    open_objects,
    personality,
    provider::Soft, //
};

/// Returns whether endpoints of a type are offered, or any type will do.
pub(crate) fn is_offered(type_: u32) -> bool {
    type_ == 0 || type_ == KFI_EP_RDM
}

/// The capabilities for consumers that ask for none: all but those that make entries which these do
/// not expect. A NIC reaches the others of the fabric, which is inside of one node unless NICs have
/// addresses.
const DEFAULT_CAPS: Caps = Caps::MESSAGES
    .union(Caps::REMOTE_ACCESS)
    .union(Caps::MESSAGE_DIRECTIONS)
    .union(Caps::REMOTE_ACCESS_DIRECTIONS)
    .union(Caps::COMM)
    .union(Caps::MULTI_RECV)
    .union(Caps::TAGGED_MULTI_RECV)
    .union(Caps::TRIGGER)
    .union(Caps::FENCE)
    .union(Caps::SOURCE)
    .union(Caps::NAMED_RX_CTX)
    .union(Caps::DIRECTED_RECV);

/// All that is offered.
const CAPS: Caps = DEFAULT_CAPS.union(Caps::RMA_EVENT);

/// The capabilities that say what an endpoint may do; the rest changes how it does that.
const PERMISSIONS: Caps = Caps::MESSAGES
    .union(Caps::REMOTE_ACCESS)
    .union(Caps::MESSAGE_DIRECTIONS)
    .union(Caps::REMOTE_ACCESS_DIRECTIONS)
    .union(Caps::MULTI_RECV)
    .union(Caps::TAGGED_MULTI_RECV)
    .union(Caps::TRIGGER)
    .union(Caps::FENCE);

/// The modes of memory registration that consumers may be willing to follow.
pub(crate) const MR_MODES: MrMode = MR_CHOICES
    .union(MrMode::LOCAL)
    .union(MrMode::RAW)
    .union(MrMode::RMA_EVENT);

/// The part of these that is used then: none of it is demanded.
const MR_CHOICES: MrMode = MrMode::ENDPOINT
    .union(MrMode::PROV_KEY)
    .union(MrMode::VIRT_ADDR);

/// The version of the wire protocol.
const PROTOCOL_VERSION: u32 = 1;

/// The flags that are known.
const FLAGS: InfoFlags = InfoFlags::SOURCE
    .union(InfoFlags::NUMERICHOST)
    .union(InfoFlags::PROV_ATTR_ONLY);

/// Returns the name of the provider.
pub(crate) fn provider_name() -> &'static CStr {
    Soft::name()
}

/// Returns what was asked for, or the default if nothing was.
pub(crate) fn or(asked: usize, default: usize) -> usize {
    if asked == 0 {
        default
    } else {
        asked
    }
}

/// Returns the traffic class that was asked for, or the default if none was.
fn traffic_class(asked: u32) -> u32 {
    if asked == 0 {
        attr::TC_BEST_EFFORT
    } else {
        asked
    }
}

/// Returns the capabilities with which those that are asked for are answered; `None` if one is not
/// offered.
pub(crate) fn answered_caps(asked: Caps) -> Option<Caps> {
    if !CAPS.contains(asked) {
        return None;
    }
    Some(if asked.is_empty() {
        DEFAULT_CAPS
    } else {
        asked.completed(CAPS)
    })
}

/// Returns the capabilities of a kind of context, of which those in `kind` can be, and never the
/// direction `wrong`; `None` if that or more is asked for than the endpoint has.
fn context_caps(asked: u64, endpoint: Caps, kind: Caps, wrong: Caps) -> Option<Caps> {
    let asked = Caps::from_raw(asked);
    if !endpoint.contains(asked) || asked.intersects(wrong) {
        return None;
    }
    Some(asked.of_context(endpoint, kind))
}

/// As [`context_caps`], for transmit contexts.
pub(crate) fn tx_caps(asked: u64, endpoint: Caps) -> Option<Caps> {
    context_caps(asked, endpoint, Caps::TX, Caps::RECV)
}

/// As [`context_caps`], for receive contexts.
pub(crate) fn rx_caps(asked: u64, endpoint: Caps) -> Option<Caps> {
    context_caps(asked, endpoint, Caps::RX, Caps::SEND)
}

/// Returns the capabilities of a consumer that has asked for some.
pub(crate) fn allowed(asked: Caps) -> Caps {
    if personality::is_strict() {
        asked
    } else {
        asked | PERMISSIONS
    }
}

/// Answers kfi_getinfo.
pub(crate) fn answer(query: &Query<'_>) -> Result<Info> {
    let flags = InfoFlags::from_raw(query.flags);
    if !FLAGS.contains(flags) {
        return Err(EBADFLAGS.into());
    }
    if flags.contains(InfoFlags::PROV_ATTR_ONLY) {
        return introduce(query);
    }
    let question = Question::new(query, flags)?.ok_or(ENODATA)?;
    let mut answer: Option<Info> = None;
    for nic in Nic::all() {
        let Some(info) = question.answer(nic)? else {
            continue;
        };
        match &mut answer {
            Some(answer) => answer.append(info),
            None => answer = Some(info),
        }
    }
    answer.ok_or(ENODATA)
}

/// Names the provider, whatever it offers.
fn introduce(query: &Query<'_>) -> Result<Info> {
    if !query
        .hints
        .is_none_or(|hints| is_named(hints.prov_name(), provider_name()))
    {
        return Err(ENODATA);
    }
    let mut info = Info::new()?;
    info.first_mut()
        .fabric_attr()?
        .prov_name(provider_name())?
        .prov_version(Soft::VERSION)
        .api_version(api_version(query));
    Ok(info)
}

/// Returns the version of the API that the answer is for.
fn api_version(query: &Query<'_>) -> u32 {
    match query.version {
        0 => KFI_VERSION,
        version => version,
    }
}

/// A question that can be answered, as far as that does not depend on the NIC.
struct Question<'a> {
    query: &'a Query<'a>,
    /// The format of addresses.
    format: AddressFormat,
    /// The number of the local NIC, if it has to be a certain one.
    source_nic: Option<u32>,
    /// The local port, if it has to be a certain one.
    source_port: Option<u16>,
    /// The peer.
    peer: Option<Peer>,
    /// The open fabric.
    fabric: Option<Arc<Fid<Fabric>>>,
    /// The open domain.
    domain: Option<Arc<Fid<Domain>>>,
    /// The capabilities.
    caps: Caps,
    /// The capabilities of transmit contexts.
    tx_caps: Caps,
    /// The capabilities of receive contexts.
    rx_caps: Caps,
    /// The mode of memory registration.
    mr_mode: MrMode,
    /// The party that keeps queues from overrunning.
    resource_mgmt: ResourceMgmt,
    /// The kind of address vectors.
    av_type: AvType,
    /// The bytes of a memory key.
    mr_key_size: usize,
}

/// A peer that was asked for.
enum Peer {
    /// A certain one.
    Place(Place),
    /// A port of the local NIC, as getaddrinfo() makes the loopback address of a missing node.
    Loopback(Option<u16>),
}

/// The open objects that a question names, or that follow from those.
struct Objects {
    domain: Option<Arc<Fid<Domain>>>,
    fabric: Option<Arc<Fid<Fabric>>>,
}

impl Objects {
    /// Looks for them; `None` if one is not open, or not ours, or the domain is not of the fabric.
    fn find(hints: Option<InfoRef<'_>>) -> Option<Self> {
        // They are looked for by their addresses, and nothing is read from those.
        let domain = match hints.and_then(InfoRef::domain) {
            Some(wanted) => Some(open_objects::domain(|domain| domain.address() == wanted)?),
            None => None,
        };
        let fabric = match (hints.and_then(InfoRef::fabric), &domain) {
            (Some(wanted), _) => Some(open_objects::fabric(|fabric| fabric.address() == wanted)?),
            (None, Some(domain)) => Some(domain.fabric().clone()),
            (None, None) => None,
        };
        if let (Some(domain), Some(fabric)) = (&domain, &fabric) {
            if !Arc::ptr_eq(domain.fabric(), fabric) {
                return None;
            }
        }
        Some(Self { domain, fabric })
    }
}

/// The ends that a question names.
struct Ends {
    /// The number of the local NIC.
    source_nic: Option<u32>,
    /// The local port.
    source_port: Option<u16>,
    /// The peer.
    peer: Option<Peer>,
}

impl Ends {
    /// Reads them; `None` if one is malformed, or cannot be. `node` and `port` are those of the
    /// question, and the source if `is_source`, else the peer.
    fn read(
        hints: Option<InfoRef<'_>>,
        format: AddressFormat,
        is_source: bool,
        node: Option<NodeName>,
        port: Option<u16>,
    ) -> Option<Self> {
        // Node and service come before the address in the hints that they are given for.
        let named = match node {
            Some(node) => Some(node.at(port)?),
            None => None,
        };
        let (source_nic, source_port) = match (is_source, named) {
            (true, Some(place)) => (Some(place.nic), place.port),
            (true, None) => (None, port),
            (false, _) => match hints.and_then(InfoRef::src_addr) {
                Some(bytes) => {
                    let place = Place::decode(format, bytes)?;
                    (Some(place.nic), place.port)
                }
                None => (None, None),
            },
        };
        let peer = match (is_source, named, port) {
            (false, Some(place), _) => Some(Peer::Place(place)),
            (false, None, Some(port)) => Some(Peer::Loopback(Some(port))),
            (true, _, _) | (false, None, None) => match hints.and_then(InfoRef::dest_addr) {
                Some(bytes) => Some(Peer::Place(Place::decode(format, bytes)?)),
                None => None,
            },
        };
        if let Some(Peer::Place(place)) = &peer {
            // Without a network all that can be reached are the NICs of this node.
            if !nic::has_network() {
                Nic::new(place.nic)?;
            }
        }
        Some(Self {
            source_nic,
            source_port,
            peer,
        })
    }
}

impl<'a> Question<'a> {
    /// Reads a question; `None` if no NIC fits, `EINVAL` if it makes no sense.
    fn new(query: &'a Query<'a>, flags: InfoFlags) -> Result<Option<Self>> {
        if let Some(hints) = query.hints {
            if !keys_make_sense(hints) {
                return Err(EINVAL);
            }
        }
        Ok(Self::read(query, flags).filter(Self::limits_fit))
    }

    /// Reads all but what limits are put to.
    fn read(query: &'a Query<'a>, flags: InfoFlags) -> Option<Self> {
        let hints = query.hints;
        let node = match query.node {
            Some(text) => Some(NodeName::from_text(text.to_bytes())?),
            None => None,
        };
        if flags.contains(InfoFlags::NUMERICHOST) && node.is_some_and(|node| !node.is_numeric) {
            return None;
        }
        let port = match query.service {
            Some(text) => Some(place::port(text.to_bytes())?),
            None => None,
        };

        let Objects { domain, fabric } = Objects::find(hints)?;

        let asked_format = hints.map_or(addr::FORMAT_UNSPEC, |hints| hints.get().addr_format);
        let format = match (asked_format, node, &domain) {
            (addr::FORMAT_UNSPEC, Some(node), _) => node.format,
            (addr::FORMAT_UNSPEC, None, Some(domain)) => domain.address_format(),
            (addr::FORMAT_UNSPEC, None, None) => AddressFormat::Native,
            (raw, _, _) => AddressFormat::from_raw(raw)?,
        };
        if domain
            .as_ref()
            .is_some_and(|domain| domain.address_format() != format)
        {
            return None;
        }
        let node = match node {
            // An IPv4 address asks for the format.
            Some(node) if node.format == AddressFormat::Inet && format != node.format => {
                return None
            }
            Some(node) => Some(NodeName { format, ..node }),
            None => None,
        };
        let port = port.filter(|port| *port != 0 || format == AddressFormat::Native);
        let is_source = flags.contains(InfoFlags::SOURCE);
        let Ends {
            source_nic,
            source_port,
            peer,
        } = Ends::read(hints, format, is_source, node, port)?;

        let asked = |caps: Option<u64>| caps.unwrap_or(0);
        let caps = answered_caps(Caps::from_raw(asked(hints.map(|hints| hints.get().caps))))?;
        let tx_attr = hints.and_then(InfoRef::tx_attr);
        let rx_attr = hints.and_then(InfoRef::rx_attr);
        let domain_attr = hints.and_then(InfoRef::domain_attr);
        let tx_caps = tx_caps(asked(tx_attr.map(|attr| attr.caps)), caps)?;
        let rx_caps = rx_caps(asked(rx_attr.map(|attr| attr.caps)), caps)?;
        context_caps(
            asked(domain_attr.map(|attr| attr.caps)),
            caps,
            Caps::COMM,
            Caps::NONE,
        )?;

        let mr_mode = MrMode::from_attr(domain_attr.map_or(0, |attr| attr.mr_mode));
        if !MR_MODES.contains(mr_mode) {
            return None;
        }
        let mr_key_size = domain_attr.map_or(0, |attr| attr.mr_key_size);
        let mr_key_size = match &domain {
            Some(domain) if !domain.serves(caps, mr_key_size) => return None,
            Some(domain) => domain.mr_key_size(),
            None => or(mr_key_size, limits::MR_KEY_SIZE),
        };
        let mr_mode = match &domain {
            Some(domain) if mr_mode.is_empty() => domain.mr_mode(),
            Some(domain) if !mr_mode.contains(domain.mr_mode()) => return None,
            Some(domain) => domain.mr_mode(),
            None => mr_mode.intersection(MR_CHOICES),
        };
        let resource_mgmt =
            ResourceMgmt::from_raw(domain_attr.map_or(0, |attr| attr.resource_mgmt)).ok()?;
        let resource_mgmt = match (resource_mgmt, &domain) {
            (Some(asked), Some(domain)) if asked != domain.resource_mgmt() => return None,
            (_, Some(domain)) => domain.resource_mgmt(),
            (asked, None) => asked.unwrap_or(ResourceMgmt::Enabled),
        };
        let av_type = AvType::from_raw(domain_attr.map_or(0, |attr| attr.av_type)).ok()?;
        let asked_key = hints.and_then(InfoRef::domain_auth_key);
        if let (Some(asked), Some(domain)) = (asked_key, &domain) {
            if asked != domain.auth_key() {
                return None;
            }
        }
        let av_type = match (av_type, &domain) {
            (Some(asked), Some(domain)) if asked != domain.av_type() => return None,
            (_, Some(domain)) => domain.av_type(),
            (asked, None) => asked.unwrap_or(AvType::Table),
        };

        Some(Self {
            query,
            format,
            source_nic,
            source_port,
            peer,
            fabric,
            domain,
            caps,
            tx_caps,
            rx_caps,
            mr_mode,
            resource_mgmt,
            av_type,
            mr_key_size,
        })
    }

    /// Returns the key of endpoints and regions that have none of their own; empty if there is none.
    fn auth_key(&self) -> &[u8] {
        match &self.domain {
            Some(domain) => domain.auth_key(),
            None => {
                let hints = self.query.hints;
                hints.and_then(InfoRef::domain_auth_key).unwrap_or(&[])
            }
        }
    }

    /// Returns whether all that has a limit keeps to it, and all that has names is named so.
    ///
    /// Attributes that cannot be asked for are 0 in the hints.
    fn limits_fit(&self) -> bool {
        let Some(hints) = self.query.hints else {
            return true;
        };
        // Mode bits say what the caller is ready to do; nothing is demanded.
        !hints.has_handle()
            && hints.fabric_attr().is_none_or(|attr| {
                is_named(hints.prov_name(), provider_name())
                    && is_named(hints.fabric_name(), nic::fabric_name())
                    && attr.prov_version <= Soft::VERSION
            })
            && hints.ep_attr().is_none_or(|attr| {
                is_offered(attr.type_)
                    && (attr.protocol == 0 || attr.protocol == personality::current().protocol())
                    && attr.protocol_version <= PROTOCOL_VERSION
                    && fits(attr.max_msg_size, limits::MAX_MSG_SIZE)
                    && attr.msg_prefix_size == 0
                    && attr.max_order_raw_size == 0
                    && attr.max_order_war_size == 0
                    && attr.max_order_waw_size == 0
                    && is_shared_or_fits(attr.tx_ctx_cnt, limits::MAX_TX_CONTEXTS)
                    && is_shared_or_fits(attr.rx_ctx_cnt, limits::MAX_RX_CONTEXTS)
                    && fits(attr.auth_key_size, limits::MAX_AUTH_KEY_SIZE)
            })
            && hints.domain_attr().is_none_or(|attr| {
                attr::is_threading(attr.threading)
                    && attr::is_progress(attr.control_progress)
                    && attr::is_progress(attr.data_progress)
                    && attr::is_traffic_class(attr.tclass)
                    && fits(attr.mr_key_size, limits::MR_KEY_SIZE)
                    && fits(attr.cq_data_size, limits::CQ_DATA_SIZE)
                    && fits(attr.cq_cnt, limits::QUEUES)
                    && fits(attr.ep_cnt, limits::ENDPOINTS)
                    && fits(attr.tx_ctx_cnt, limits::DOMAIN_TX_CONTEXTS)
                    && fits(attr.rx_ctx_cnt, limits::DOMAIN_RX_CONTEXTS)
                    && fits(attr.max_ep_tx_ctx, limits::MAX_TX_CONTEXTS)
                    && fits(attr.max_ep_rx_ctx, limits::MAX_RX_CONTEXTS)
                    && fits(attr.max_ep_stx_ctx, limits::ENDPOINTS)
                    && fits(attr.max_ep_srx_ctx, limits::ENDPOINTS)
                    && fits(attr.cntr_cnt, limits::COUNTERS)
                    && fits(attr.mr_iov_limit, limits::MR_IOV_LIMIT)
                    && fits(attr.max_err_data, limits::MAX_ERR_DATA)
                    && fits(attr.mr_cnt, limits::MEMORY_REGIONS)
                    && fits(attr.auth_key_size, limits::MAX_AUTH_KEY_SIZE)
            })
            && hints.tx_attr().is_none_or(|attr| {
                limits::TX_OP_FLAGS.contains(OpFlags::from_raw(attr.op_flags))
                    && limits::MSG_ORDER.contains(Order::from_raw(attr.msg_order))
                    && limits::COMP_ORDER.contains(Order::from_raw(attr.comp_order))
                    && fits(attr.inject_size, limits::INJECT_SIZE)
                    && fits(attr.size, limits::MAX_TX_SIZE)
                    && fits(attr.iov_limit, limits::IOV_LIMIT)
                    && fits(attr.rma_iov_limit, limits::RMA_IOV_LIMIT)
                    && attr::is_traffic_class(attr.tclass)
            })
            && hints.rx_attr().is_none_or(|attr| {
                limits::RX_OP_FLAGS.contains(OpFlags::from_raw(attr.op_flags))
                    && limits::MSG_ORDER.contains(Order::from_raw(attr.msg_order))
                    && limits::COMP_ORDER.contains(Order::from_raw(attr.comp_order))
                    && fits(attr.total_buffered_recv, limits::TOTAL_BUFFERED_RECV)
                    && fits(attr.size, limits::MAX_RX_SIZE)
                    && fits(attr.iov_limit, limits::IOV_LIMIT)
            })
    }

    /// Describes a NIC; `None` if it does not fit.
    fn answer(&self, nic: Nic) -> Result<Option<Info>> {
        let name = nic.name()?;
        if self.source_nic.is_some_and(|number| number != nic.number())
            || self
                .domain
                .as_ref()
                .is_some_and(|domain| domain.nic() != nic)
            || !is_named(self.query.hints.and_then(InfoRef::domain_name), &name)
        {
            return Ok(None);
        }

        let mut info = Info::new()?;
        let mut entry = info.first_mut();
        self.describe_ends(&mut entry, nic)?;
        self.describe_contexts(&mut entry)?;
        self.describe_endpoints(&mut entry)?;
        let domain = self.open_domain(nic);
        self.describe_domain(&mut entry, &name, domain.as_ref())?;
        self.describe_fabric(&mut entry, domain.as_ref())?;
        Ok(Some(info))
    }

    /// Writes the capabilities, and the addresses of both ends.
    fn describe_ends(&self, entry: &mut InfoMut<'_>, nic: Nic) -> Result {
        let source = Place {
            nic: nic.number(),
            port: self.source_port,
        };
        entry
            .caps(self.caps)
            .addr_format(self.format.as_raw())
            .src_addr(&source.encode(self.format))?;
        let peer = match &self.peer {
            Some(Peer::Place(place)) => Some(*place),
            Some(Peer::Loopback(port)) => Some(Place {
                nic: nic.number(),
                port: *port,
            }),
            None => None,
        };
        if let Some(peer) = peer {
            entry.dest_addr(&peer.encode(self.format))?;
        }
        Ok(())
    }

    /// Writes the attributes of transmit and receive contexts.
    fn describe_contexts(&self, entry: &mut InfoMut<'_>) -> Result {
        let hints = self.query.hints;
        let asked = hints.and_then(InfoRef::tx_attr);
        let attr = entry.tx_attr()?;
        attr.caps = self.tx_caps.as_raw();
        attr.op_flags = asked.map_or(0, |asked| asked.op_flags);
        attr.msg_order = limits::MSG_ORDER.as_raw();
        attr.comp_order = limits::COMP_ORDER.as_raw();
        attr.inject_size = limits::INJECT_SIZE;
        attr.size = or(asked.map_or(0, |asked| asked.size), limits::TX_SIZE);
        attr.iov_limit = limits::IOV_LIMIT;
        attr.rma_iov_limit = limits::RMA_IOV_LIMIT;
        attr.tclass = traffic_class(asked.map_or(0, |asked| asked.tclass));

        let asked = hints.and_then(InfoRef::rx_attr);
        let attr = entry.rx_attr()?;
        attr.caps = self.rx_caps.as_raw();
        attr.op_flags = asked.map_or(0, |asked| asked.op_flags);
        attr.msg_order = limits::MSG_ORDER.as_raw();
        attr.comp_order = limits::COMP_ORDER.as_raw();
        attr.total_buffered_recv = limits::TOTAL_BUFFERED_RECV;
        attr.size = or(asked.map_or(0, |asked| asked.size), limits::RX_SIZE);
        attr.iov_limit = limits::IOV_LIMIT;
        Ok(())
    }

    /// Writes the attributes of endpoints.
    fn describe_endpoints(&self, entry: &mut InfoMut<'_>) -> Result {
        let hints = self.query.hints;
        let asked = hints.and_then(InfoRef::ep_attr);
        entry
            .ep_attr()?
            .type_(KFI_EP_RDM)
            .protocol(personality::current().protocol())
            .protocol_version(PROTOCOL_VERSION)
            .max_msg_size(limits::MAX_MSG_SIZE)
            .mem_tag_format(u64::MAX)
            .tx_ctx_cnt(or(
                asked.map_or(0, |asked| asked.tx_ctx_cnt),
                limits::MAX_TX_CONTEXTS,
            ))
            .rx_ctx_cnt(or(
                asked.map_or(0, |asked| asked.rx_ctx_cnt),
                limits::MAX_RX_CONTEXTS,
            ))
            .auth_key(hints.and_then(InfoRef::ep_auth_key).unwrap_or(&[]))?;
        Ok(())
    }

    /// Returns the open domain to name, if there is one: the one that was asked for, or any on the NIC
    /// that the answer fits.
    fn open_domain(&self, nic: Nic) -> Option<Arc<Fid<Domain>>> {
        match &self.domain {
            Some(domain) => Some(domain.clone()),
            None => open_objects::domain_on(nic, self.fabric.as_ref(), |domain| {
                domain.address_format() == self.format
                    && domain.mr_mode() == self.mr_mode
                    && domain.resource_mgmt() == self.resource_mgmt
                    && domain.serves(self.caps, self.mr_key_size)
                    && domain.av_type() == self.av_type
                    && domain.auth_key() == self.auth_key()
            }),
        }
    }

    /// Writes the attributes of the domain, with the open one if there is one.
    fn describe_domain(
        &self,
        entry: &mut InfoMut<'_>,
        name: &CStr,
        domain: Option<&Arc<Fid<Domain>>>,
    ) -> Result {
        let asked = self.query.hints.and_then(InfoRef::domain_attr);
        let mut attr = entry
            .domain_attr()?
            .name(name)?
            .threading(attr::THREAD_SAFE)
            .control_progress(attr::PROGRESS_AUTO)
            .data_progress(attr::PROGRESS_AUTO)
            .resource_mgmt(self.resource_mgmt.as_raw())
            .av_type(self.av_type.as_raw())
            .mr_mode(self.mr_mode.as_attr())
            .mr_key_size(self.mr_key_size)
            .cq_data_size(limits::CQ_DATA_SIZE)
            .cq_cnt(limits::QUEUES)
            .ep_cnt(limits::ENDPOINTS)
            .tx_ctx_cnt(limits::DOMAIN_TX_CONTEXTS)
            .rx_ctx_cnt(limits::DOMAIN_RX_CONTEXTS)
            .max_ep_tx_ctx(limits::MAX_TX_CONTEXTS)
            .max_ep_rx_ctx(limits::MAX_RX_CONTEXTS)
            .max_ep_stx_ctx(limits::ENDPOINTS)
            .max_ep_srx_ctx(limits::ENDPOINTS)
            .cntr_cnt(limits::COUNTERS)
            .mr_iov_limit(limits::MR_IOV_LIMIT)
            .caps(self.caps.intersection(Caps::COMM).as_raw())
            .max_err_data(limits::MAX_ERR_DATA)
            .mr_cnt(limits::MEMORY_REGIONS)
            .tclass(traffic_class(asked.map_or(0, |asked| asked.tclass)))
            .auth_key(self.auth_key())?;
        if let Some(domain) = domain {
            attr = attr.domain(domain);
        }
        let _ = attr;
        Ok(())
    }

    /// Writes the attributes of the fabric, with the open one if there is one.
    fn describe_fabric(
        &self,
        entry: &mut InfoMut<'_>,
        domain: Option<&Arc<Fid<Domain>>>,
    ) -> Result {
        // It goes with the domain.
        let fabric = match (&self.fabric, domain) {
            (Some(fabric), _) => Some(fabric.clone()),
            (None, Some(domain)) => Some(domain.fabric().clone()),
            (None, None) => open_objects::fabric(|_| true),
        };
        let mut attr = entry
            .fabric_attr()?
            .name(nic::fabric_name())?
            .prov_name(provider_name())?
            .prov_version(Soft::VERSION)
            .api_version(api_version(self.query));
        if let Some(fabric) = &fabric {
            attr = attr.fabric(fabric);
        }
        let _ = attr;
        Ok(())
    }
}

/// Returns whether there is as much as asked for.
fn fits(asked: usize, limit: usize) -> bool {
    asked <= limit
}

/// Returns whether a number of contexts fits, or is that of contexts that endpoints share.
fn is_shared_or_fits(asked: usize, limit: usize) -> bool {
    asked == SHARED_CONTEXT || fits(asked, limit)
}

/// Returns whether authorization keys have a size, and sizes a key.
pub(crate) fn keys_make_sense(info: InfoRef<'_>) -> bool {
    let ep_size = info.ep_attr().map_or(0, |attr| attr.auth_key_size);
    let domain_size = info.domain_attr().map_or(0, |attr| attr.auth_key_size);
    is_whole(ep_size, info.ep_auth_key()) && is_whole(domain_size, info.domain_auth_key())
}

/// Returns whether there is both a key and a size, or neither.
fn is_whole(size: usize, key: Option<&[u8]>) -> bool {
    (size != 0) == key.is_some()
}

#[kunit_tests(kfi_soft_info)]
mod tests {
    use super::*;

    #[test]
    fn no_capability_means_all() {
        assert!(answered_caps(Caps::NONE) == Some(DEFAULT_CAPS));
        assert!(answered_caps(CAPS) == Some(CAPS));
    }

    #[test]
    fn directions_go_without_saying() {
        assert!(
            answered_caps(Caps::MSG) == Some(Caps::MSG | Caps::MESSAGE_DIRECTIONS | Caps::COMM)
        );
        assert!(answered_caps(Caps::MSG | Caps::SEND) == Some(Caps::MSG | Caps::SEND | Caps::COMM));
        assert!(
            answered_caps(Caps::RMA)
                == Some(Caps::RMA | Caps::REMOTE_ACCESS_DIRECTIONS | Caps::COMM)
        );
        let one = Caps::ATOMIC | Caps::WRITE | Caps::LOCAL_COMM;
        assert!(answered_caps(one) == Some(one));
    }

    #[test]
    fn each_offered_capability_is_answered_and_no_other() {
        for bit in 0..64 {
            let caps = Caps::from_raw(1 << bit);
            match answered_caps(caps) {
                Some(answer) => assert!(CAPS.contains(caps) && answer.contains(caps)),
                None => assert!(!CAPS.contains(caps)),
            }
        }
    }

    #[test]
    fn contexts_have_no_more_than_the_endpoint() {
        let endpoint = Caps::MSG | Caps::SEND | Caps::RECV;
        assert!(tx_caps(0, endpoint) == Some(Caps::MSG | Caps::SEND));
        assert!(rx_caps(0, endpoint) == Some(Caps::MSG | Caps::RECV));
        assert!(tx_caps(Caps::MSG.as_raw(), endpoint) == Some(Caps::MSG | Caps::SEND));
        assert!(tx_caps(Caps::RMA.as_raw(), endpoint).is_none());
        assert!(tx_caps(Caps::RECV.as_raw(), endpoint).is_none());
        assert!(rx_caps(Caps::SEND.as_raw(), endpoint).is_none());
        assert!(rx_caps(Caps::TAGGED.as_raw(), endpoint).is_none());
    }

    #[test]
    fn keys_have_a_size() {
        assert!(is_whole(0, None));
        assert!(is_whole(1, Some(&[0])));
        assert!(!is_whole(0, Some(&[])));
        assert!(!is_whole(1, None));
    }
}
