// SPDX-License-Identifier: GPL-2.0

//! What a provider offers to those who ask what there is.

use kernel::{
    prelude::*,
    str::CStr, //
};

use super::Limits;
use crate::kfi::{
    addr::FORMAT_UNSPEC,
    attr,
    errno::EBADFLAGS,
    flags::{
        Caps,
        InfoFlags,
        Order, //
    },
    info::{
        Info,
        InfoRef, //
    },
    provider::{
        Directions,
        Query, //
    }, //
};

/// The offer of a provider with one fabric and one domain, the endpoints of which are all of one type,
/// have one transmit and one receive context, and whose addresses have no names.
pub struct Offer {
    /// The name of the provider.
    pub provider: &'static CStr,
    /// The version of the provider.
    pub version: u32,
    /// The name of the fabric.
    pub fabric: &'static CStr,
    /// The name of the domain.
    pub domain: &'static CStr,
    /// The type of the endpoints (`enum kfi_ep_type`).
    pub endpoints: u32,
    /// The capabilities of the endpoints.
    pub caps: Caps,
    /// The format of addresses (`KFI_ADDR_*`).
    pub addr_format: u32,
    /// The order in which messages are received; completions have none.
    pub msg_order: Order,
    /// The limits of what is transmitted.
    pub tx: Limits,
    /// The limits of what is received.
    pub rx: Limits,
    /// Bytes of remote completion data.
    pub cq_data_size: usize,
}

/// Returns whether a name is the wanted one, if one is wanted.
fn is_named(wanted: Option<&CStr>, name: &CStr) -> bool {
    wanted.is_none_or(|wanted| wanted.is_empty() || wanted == name)
}

/// The capabilities that both kinds of contexts can have.
const KINDS: Caps = Caps::MSG
    .union(Caps::TAGGED)
    .union(Caps::RMA)
    .union(Caps::ATOMIC)
    .union(Caps::TRIGGER);

/// Those that transmit contexts can have.
const TX_CAPS: Caps = KINDS
    .union(Caps::SEND)
    .union(Caps::READ)
    .union(Caps::WRITE)
    .union(Caps::FENCE)
    .union(Caps::NAMED_RX_CTX);

/// Those that receive contexts can have.
const RX_CAPS: Caps = KINDS
    .union(Caps::RECV)
    .union(Caps::REMOTE_READ)
    .union(Caps::REMOTE_WRITE)
    .union(Caps::MULTI_RECV)
    .union(Caps::TAGGED_MULTI_RECV)
    .union(Caps::RMA_EVENT)
    .union(Caps::SOURCE)
    .union(Caps::DIRECTED_RECV);

impl Offer {
    /// Returns whether a context can have what is asked of it, which is none of the other kind.
    fn allows(&self, asked: u64, others: Caps) -> bool {
        let asked = Caps::from_raw(asked);
        self.caps.contains(asked) && !asked.intersects(others)
    }

    /// Answers kfi_getinfo: the one entry if that is what the hints ask for, and `ENODATA` if not, so
    /// also for a node or a service. A provider with more to tell adds that to the entry. May sleep.
    pub fn answer(&self, query: &Query<'_>) -> Result<Info> {
        let flags = InfoFlags::from_raw(query.flags);
        let known = InfoFlags::SOURCE | InfoFlags::NUMERICHOST | InfoFlags::PROV_ATTR_ONLY;
        if !known.contains(flags) {
            return Err(EBADFLAGS.into());
        }
        let is_introduced = flags.contains(InfoFlags::PROV_ATTR_ONLY);
        let is_wanted = query.hints.is_none_or(|hints| match is_introduced {
            true => is_named(hints.prov_name(), self.provider),
            false => self.fits(hints),
        });
        if !is_wanted || !is_introduced && (query.node.is_some() || query.service.is_some()) {
            return Err(ENODATA);
        }
        let mut info = Info::new()?;
        let mut entry = info.first_mut();
        let attr = entry.fabric_attr()?.prov_name(self.provider)?;
        let attr = attr.prov_version(self.version);
        if is_introduced {
            return Ok(info);
        }
        attr.name(self.fabric)?;
        entry.caps(self.caps).addr_format(self.addr_format);
        let attr = entry.tx_attr()?;
        attr.caps = self.caps.intersection(TX_CAPS).as_raw();
        attr.msg_order = self.msg_order.as_raw();
        self.tx.offer_tx(attr);
        let attr = entry.rx_attr()?;
        attr.caps = self.caps.intersection(RX_CAPS).as_raw();
        attr.msg_order = self.msg_order.as_raw();
        self.rx.offer_rx(attr);
        if let Some(hints) = query.hints {
            // Those that are asked for, which were looked at.
            entry.tx_attr()?.op_flags = hints.tx_attr().map_or(0, |asked| asked.op_flags);
            entry.rx_attr()?.op_flags = hints.rx_attr().map_or(0, |asked| asked.op_flags);
        }
        let _ = entry
            .ep_attr()?
            .type_(self.endpoints)
            .max_msg_size(self.tx.max_msg_size.max(self.rx.max_msg_size))
            .tx_ctx_cnt(1)
            .rx_ctx_cnt(1);
        let _ = entry
            .domain_attr()?
            .name(self.domain)?
            .threading(attr::THREAD_SAFE)
            .control_progress(attr::PROGRESS_AUTO)
            .data_progress(attr::PROGRESS_AUTO)
            .cq_data_size(self.cq_data_size);
        Ok(info)
    }

    /// Returns the directions of an endpoint that is opened with an entry which fits: those that its
    /// capabilities name, or else those that are offered.
    pub fn directions(&self, info: InfoRef<'_>) -> Directions {
        let named = Caps::from_raw(info.get().caps).intersection(Caps::SEND | Caps::RECV);
        let caps = if named.is_empty() { self.caps } else { named };
        Directions {
            transmit: caps.contains(Caps::SEND),
            receive: caps.contains(Caps::RECV),
        }
    }

    /// Returns whether this is what an entry asks for, be it hints or what an endpoint is opened with.
    ///
    /// What is not part of the offer is up to the provider: how many objects of each class there can
    /// be, what concerns memory regions, and objects that are open.
    pub fn fits(&self, info: InfoRef<'_>) -> bool {
        let asked = info.get();
        !info.has_handle()
            && self.caps.contains(Caps::from_raw(asked.caps))
            && (asked.addr_format == FORMAT_UNSPEC || asked.addr_format == self.addr_format)
            && info.src_addr().is_none()
            && info.dest_addr().is_none()
            && info.fabric_attr().is_none_or(|attr| {
                is_named(info.prov_name(), self.provider)
                    && is_named(info.fabric_name(), self.fabric)
                    && attr.prov_version <= self.version
            })
            && info.domain_attr().is_none_or(|attr| {
                is_named(info.domain_name(), self.domain)
                    && attr::is_threading(attr.threading)
                    && attr::is_progress(attr.control_progress)
                    && attr::is_progress(attr.data_progress)
                    && attr.cq_data_size <= self.cq_data_size
                    && attr.auth_key_size == 0
            })
            && info.ep_attr().is_none_or(|attr| {
                (attr.type_ == 0 || attr.type_ == self.endpoints)
                    && (attr.protocol == 0 && attr.protocol_version == 0)
                    && attr.max_msg_size <= self.tx.max_msg_size.max(self.rx.max_msg_size)
                    && attr.msg_prefix_size == 0
                    && attr.max_order_raw_size == 0
                    && attr.max_order_war_size == 0
                    && attr.max_order_waw_size == 0
                    && (attr.tx_ctx_cnt <= 1 && attr.rx_ctx_cnt <= 1)
                    && attr.auth_key_size == 0
            })
            && self.tx.allow_tx(info.tx_attr())
            && info.tx_attr().is_none_or(|attr| {
                self.allows(attr.caps, Caps::RECV)
                    && self.msg_order.contains(Order::from_raw(attr.msg_order))
                    && attr.comp_order == 0
            })
            && self.rx.allow_rx(info.rx_attr())
            && info.rx_attr().is_none_or(|attr| {
                self.allows(attr.caps, Caps::SEND)
                    && self.msg_order.contains(Order::from_raw(attr.msg_order))
                    && attr.comp_order == 0
                    && attr.total_buffered_recv == 0
            })
    }
}

#[cfg(unit_tests)]
#[kunit_tests(kfi_ready_offer)]
mod tests {
    use super::*;
    use crate::kfi::{
        addr::ADDR_CXI,
        flags::{
            OpFlags,
            KFI_EP_RDM, //
        },
        info::InfoMut,
        provider::Direction, //
    };
    use core::ptr;

    const LIMITS: Limits = Limits {
        flags: OpFlags::COMPLETION,
        size: 4,
        iov_limit: 1,
        max_msg_size: 8,
        inject_size: 0,
    };

    const OFFER: Offer = Offer {
        provider: c"test",
        version: 2,
        fabric: c"fabric",
        domain: c"domain",
        endpoints: KFI_EP_RDM,
        caps: Caps::MSG.union(Caps::SEND).union(Caps::RECV),
        addr_format: ADDR_CXI,
        msg_order: Order::NONE,
        tx: LIMITS,
        rx: LIMITS,
        cq_data_size: 8,
    };

    /// Answers hints that are all 0 but for a change.
    fn ask(change: impl FnOnce(&mut InfoMut<'_>) -> Result) -> Result<Info> {
        let mut hints = Info::new()?;
        change(&mut hints.first_mut())?;
        // SAFETY: The entry is valid, and unchanged from here on.
        let asked = unsafe { InfoRef::from_raw(ptr::from_mut(hints.first_mut().entry)) };
        OFFER.answer(&Query {
            version: 0,
            node: None,
            service: None,
            flags: 0,
            hints: asked,
        })
    }

    #[test]
    fn what_is_offered_fits_the_offer() -> Result {
        let mut answer = ask(|_| Ok(()))?;
        // SAFETY: As above.
        let entry = unsafe { InfoRef::from_raw(ptr::from_mut(answer.first_mut().entry)) };
        let entry = entry.ok_or(EINVAL)?;
        assert!(OFFER.fits(entry));
        assert!(entry.prov_name() == Some(OFFER.provider));
        assert!(entry.fabric_name() == Some(OFFER.fabric));
        assert!(entry.domain_name() == Some(OFFER.domain));
        assert!(entry
            .ep_attr()
            .is_some_and(|attr| attr.type_ == KFI_EP_RDM && attr.max_msg_size == 8));
        assert!(entry.tx_attr().is_some_and(|attr| attr.size == 4));
        Ok(())
    }

    #[test]
    fn an_endpoint_has_the_directions_that_are_named() -> Result {
        let directions = |caps| {
            let mut asked = Info::new()?;
            asked.first_mut().caps(caps);
            // SAFETY: As above.
            let entry = unsafe { InfoRef::from_raw(ptr::from_mut(asked.first_mut().entry)) };
            Ok::<_, Error>(OFFER.directions(entry.ok_or(EINVAL)?))
        };
        assert!(directions(Caps::NONE)? == Directions::BOTH);
        assert!(directions(Caps::MSG)? == Directions::BOTH);
        assert!(directions(Caps::SEND | Caps::RECV)? == Directions::BOTH);
        assert!(directions(Caps::MSG | Caps::SEND)? == Directions::only(Direction::Transmit));
        assert!(directions(Caps::RECV)? == Directions::only(Direction::Receive));
        Ok(())
    }

    #[test]
    fn what_is_not_offered_is_not_answered() -> Result {
        type Change = fn(&mut InfoMut<'_>) -> Result;

        let good: [Change; 4] = [
            |entry| entry.ep_attr().map(|attr| attr.type_(KFI_EP_RDM)).map(drop),
            |entry| entry.domain_attr()?.name(c"domain").map(drop),
            |entry| entry.tx_attr().map(|attr| attr.size = 4),
            |entry| entry.rx_attr().map(|attr| attr.iov_limit = 1),
        ];
        for change in good {
            assert!(ask(change).is_ok());
        }
        let bad: [Change; 12] = [
            |entry| {
                entry.caps(Caps::RMA);
                Ok(())
            },
            |entry| {
                entry.addr_format(ADDR_CXI + 1);
                Ok(())
            },
            |entry| entry.src_addr(&[1; 8]).map(drop),
            |entry| {
                entry
                    .ep_attr()
                    .map(|attr| attr.type_(KFI_EP_RDM + 1))
                    .map(drop)
            },
            |entry| entry.ep_attr().map(|attr| attr.tx_ctx_cnt(2)).map(drop),
            |entry| entry.ep_attr().map(|attr| attr.max_msg_size(9)).map(drop),
            |entry| entry.domain_attr()?.name(c"nothing").map(drop),
            |entry| entry.domain_attr()?.auth_key(&[1]).map(drop),
            |entry| entry.fabric_attr()?.name(c"nothing").map(drop),
            |entry| entry.fabric_attr()?.prov_name(c"other").map(drop),
            |entry| entry.tx_attr().map(|attr| attr.size = 5),
            |entry| entry.rx_attr().map(|attr| attr.msg_order = 1),
        ];
        for change in bad {
            assert!(ask(change).err() == Some(ENODATA));
        }
        Ok(())
    }
}
