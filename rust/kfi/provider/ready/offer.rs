// SPDX-License-Identifier: GPL-2.0

//! The offer that a provider makes to those who ask what there is.

use kernel::{
    prelude::*,
    str::CStr, //
};

use super::Limits;
use crate::kfi::{
    addr::FORMAT_UNSPEC,
    attr::{
        self,
        AvType,
        ResourceMgmt, //
    },
    errno::EBADFLAGS,
    flags::{
        Caps,
        InfoFlags,
        Order, //
    },
    info::{
        is_named,
        Info,
        InfoRef, //
    },
    provider::{
        FabricAttr,
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
    /// The capabilities of the endpoints: all that can be asked for, and what those get who ask for none.
    /// They are capabilities of messages, plain and tagged: an offer has no limits of RMA and atomics, so
    /// that `rma_iov_limit` is always 0.
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

impl Offer {
    /// Returns the capabilities of an endpoint for which some are asked: all if there are none.
    fn answered(&self, asked: u64) -> Caps {
        match Caps::from_raw(asked) {
            Caps::NONE => self.caps,
            asked => asked.completed(self.caps),
        }
    }

    /// Returns the most bytes of a message that an endpoint with `caps` sends; of one that does not
    /// send, receives.
    fn max_msg_size(&self, caps: Caps) -> usize {
        match caps.contains(Caps::SEND) {
            true => self.tx.max_msg_size,
            false => self.rx.max_msg_size,
        }
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
        // Whether these are on offer was looked at above.
        let hints = query.hints;
        let caps = self.answered(hints.map_or(0, |hints| hints.get().caps));
        let of_context = |asked: Option<u64>, kind| {
            let asked = Caps::from_raw(asked.unwrap_or(0));
            asked.of_context(caps, kind).as_raw()
        };
        entry.caps(caps).addr_format(self.addr_format);
        let (attr, asked) = (entry.tx_attr()?, hints.and_then(InfoRef::tx_attr));
        attr.caps = of_context(asked.map(|asked| asked.caps), Caps::TX);
        attr.op_flags = asked.map_or(0, |asked| asked.op_flags);
        attr.tclass = asked.map_or(0, |asked| asked.tclass);
        attr.msg_order = self.msg_order.as_raw();
        self.tx.offer_tx(attr);
        let (attr, asked) = (entry.rx_attr()?, hints.and_then(InfoRef::rx_attr));
        attr.caps = of_context(asked.map(|asked| asked.caps), Caps::RX);
        attr.op_flags = asked.map_or(0, |asked| asked.op_flags);
        attr.msg_order = self.msg_order.as_raw();
        self.rx.offer_rx(attr);
        let _ = entry
            .ep_attr()?
            .type_(self.endpoints)
            .max_msg_size(self.max_msg_size(caps))
            .tx_ctx_cnt(1)
            .rx_ctx_cnt(1);
        let asked = hints.and_then(InfoRef::domain_attr);
        let _ = entry
            .domain_attr()?
            .name(self.domain)?
            .threading(attr::THREAD_SAFE)
            .control_progress(attr::PROGRESS_AUTO)
            .data_progress(attr::PROGRESS_AUTO)
            .cq_data_size(self.cq_data_size)
            .caps(self.caps.intersection(Caps::COMM).as_raw())
            .tclass(asked.map_or(0, |asked| asked.tclass))
            .resource_mgmt(asked.map_or(0, |asked| asked.resource_mgmt))
            .av_type(asked.map_or(0, |asked| asked.av_type));
        Ok(info)
    }

    /// Returns whether the fabric is the one that kfi_fabric is to open; `ENODEV` is the answer if not.
    /// The core has looked for the name of the provider.
    pub fn has_fabric(&self, attr: &FabricAttr<'_>) -> bool {
        is_named(attr.name(), self.fabric)
    }

    /// Returns the capabilities of an endpoint that is opened with an entry which fits: those that it
    /// names, with what goes without saying, or else all that are offered.
    pub fn endpoint_caps(&self, info: InfoRef<'_>) -> Caps {
        self.answered(info.get().caps)
    }

    /// Returns whether this is what an entry asks for, be it hints or what a domain or an endpoint is
    /// opened with.
    ///
    /// The provider has to look at the rest itself: how many objects of each class there can be,
    /// everything about memory regions, and objects that are open. Traffic class, resource management
    /// and kind of address vector may have any value that exists; a provider that leaves them less
    /// open has to look at these as well.
    pub fn fits(&self, info: InfoRef<'_>) -> bool {
        let asked = info.get();
        let caps = self.endpoint_caps(info);
        // Of a context: no more than the endpoint has, and none of the other direction.
        let allows = |asked: u64, others: Caps| {
            let asked = Caps::from_raw(asked);
            caps.contains(asked) && !asked.intersects(others)
        };
        !info.has_handle()
            && self.caps.contains(caps)
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
                    && attr::is_traffic_class(attr.tclass)
                    && ResourceMgmt::from_raw(attr.resource_mgmt).is_ok()
                    && AvType::from_raw(attr.av_type).is_ok()
                    && attr.cq_data_size <= self.cq_data_size
                    && attr.auth_key_size == 0
                    && self.caps.contains(Caps::from_raw(attr.caps))
            })
            && info.ep_attr().is_none_or(|attr| {
                (attr.type_ == 0 || attr.type_ == self.endpoints)
                    && (attr.protocol == 0 && attr.protocol_version == 0)
                    && attr.max_msg_size <= self.max_msg_size(caps)
                    && attr.msg_prefix_size == 0
                    && attr.max_order_raw_size == 0
                    && attr.max_order_war_size == 0
                    && attr.max_order_waw_size == 0
                    && (attr.tx_ctx_cnt <= 1 && attr.rx_ctx_cnt <= 1)
                    && attr.auth_key_size == 0
            })
            && self.tx.allow_tx(info.tx_attr())
            && info.tx_attr().is_none_or(|attr| {
                allows(attr.caps, Caps::RECV)
                    && attr::is_traffic_class(attr.tclass)
                    && self.msg_order.contains(Order::from_raw(attr.msg_order))
                    && attr.comp_order == 0
            })
            && self.rx.allow_rx(info.rx_attr())
            && info.rx_attr().is_none_or(|attr| {
                allows(attr.caps, Caps::SEND)
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
        bindings,
        flags::{
            OpFlags,
            KFI_EP_RDM, //
        },
        info::InfoMut, //
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
        caps: Caps::MESSAGES
            .union(Caps::MESSAGE_DIRECTIONS)
            .union(Caps::SOURCE)
            .union(Caps::LOCAL_COMM),
        addr_format: ADDR_CXI,
        msg_order: Order::NONE,
        tx: LIMITS,
        rx: Limits {
            max_msg_size: 16,
            ..LIMITS
        },
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
    fn the_fabric_has_a_name() {
        let has = |name: Option<&'static CStr>| {
            let attr = bindings::kfi_fabric_attr {
                name: name.map_or(ptr::null_mut(), |name| name.as_char_ptr().cast_mut()),
                ..Default::default()
            };
            // SAFETY: The name is null or a text that stays.
            OFFER.has_fabric(&unsafe { FabricAttr::new(&attr) })
        };
        assert!(has(Some(OFFER.fabric)));
        assert!(has(None));
        assert!(!has(Some(c"nothing")));
        assert!(!has(Some(OFFER.domain)));
    }

    #[test]
    fn capabilities_are_answered_as_they_are_asked_for() -> Result {
        let far = Caps::LOCAL_COMM;
        for (asked, caps, tx, rx, size) in [
            (
                Caps::NONE,
                OFFER.caps,
                Caps::MESSAGES | Caps::SEND,
                Caps::MESSAGES | Caps::RECV | Caps::SOURCE,
                8,
            ),
            (
                Caps::MSG,
                Caps::MSG | Caps::MESSAGE_DIRECTIONS | far,
                Caps::MSG | Caps::SEND,
                Caps::MSG | Caps::RECV,
                8,
            ),
            (
                Caps::MSG | Caps::SEND,
                Caps::MSG | Caps::SEND | far,
                Caps::MSG | Caps::SEND,
                Caps::MSG,
                8,
            ),
            (
                Caps::TAGGED | Caps::RECV | far,
                Caps::TAGGED | Caps::RECV | far,
                Caps::TAGGED,
                Caps::TAGGED | Caps::RECV,
                16,
            ),
        ] {
            let mut answer = ask(|entry| {
                entry.caps(asked);
                Ok(())
            })?;
            // SAFETY: As above.
            let entry = unsafe { InfoRef::from_raw(ptr::from_mut(answer.first_mut().entry)) };
            let entry = entry.ok_or(EINVAL)?;
            // An endpoint that is opened with the answer is what was asked for.
            assert!(OFFER.fits(entry));
            assert!(OFFER.endpoint_caps(entry) == caps);
            assert_eq!(entry.get().caps, caps.as_raw());
            assert!(entry.tx_attr().is_some_and(|attr| attr.caps == tx.as_raw()));
            assert!(entry.rx_attr().is_some_and(|attr| attr.caps == rx.as_raw()));
            assert!(entry
                .ep_attr()
                .is_some_and(|attr| attr.max_msg_size == size));
            assert!(entry
                .domain_attr()
                .is_some_and(|attr| attr.caps == far.as_raw()));
        }
        Ok(())
    }

    #[test]
    fn what_is_left_to_the_consumer_is_answered_as_it_asks() -> Result {
        let mut answer = ask(|entry| {
            entry.tx_attr()?.tclass = attr::TC_BEST_EFFORT;
            let _ = entry
                .domain_attr()?
                .av_type(AvType::Map.as_raw())
                .resource_mgmt(ResourceMgmt::Disabled.as_raw());
            Ok(())
        })?;
        // SAFETY: As above.
        let entry = unsafe { InfoRef::from_raw(ptr::from_mut(answer.first_mut().entry)) };
        let entry = entry.ok_or(EINVAL)?;
        assert!(entry
            .tx_attr()
            .is_some_and(|attr| attr.tclass == attr::TC_BEST_EFFORT));
        assert!(entry
            .domain_attr()
            .is_some_and(|attr| attr.av_type == AvType::Map.as_raw()
                && attr.resource_mgmt == ResourceMgmt::Disabled.as_raw()));
        Ok(())
    }

    #[test]
    fn what_is_not_offered_is_not_answered() -> Result {
        type Change = fn(&mut InfoMut<'_>) -> Result;

        let good: [Change; 6] = [
            |entry| entry.ep_attr().map(|attr| attr.type_(KFI_EP_RDM)).map(drop),
            |entry| entry.domain_attr()?.name(c"domain").map(drop),
            |entry| entry.tx_attr().map(|attr| attr.size = 4),
            |entry| entry.rx_attr().map(|attr| attr.iov_limit = 1),
            |entry| {
                let caps = Caps::LOCAL_COMM.as_raw();
                entry.domain_attr().map(|attr| attr.caps(caps)).map(drop)
            },
            |entry| {
                entry.caps(Caps::MSG | Caps::RECV);
                entry.ep_attr().map(|attr| attr.max_msg_size(16)).map(drop)
            },
        ];
        for change in good {
            assert!(ask(change).is_ok());
        }
        let bad: [Change; 20] = [
            |entry| {
                entry.caps(Caps::RMA);
                Ok(())
            },
            |entry| {
                entry.caps(Caps::MSG | Caps::REMOTE_COMM);
                Ok(())
            },
            |entry| {
                entry.caps(Caps::MSG | Caps::SEND);
                entry.rx_attr().map(|attr| attr.caps = Caps::RECV.as_raw())
            },
            |entry| entry.tx_attr().map(|attr| attr.caps = Caps::RECV.as_raw()),
            |entry| {
                let caps = Caps::REMOTE_COMM.as_raw();
                entry.domain_attr().map(|attr| attr.caps(caps)).map(drop)
            },
            |entry| entry.domain_attr().map(|attr| attr.av_type(99)).map(drop),
            |entry| {
                entry
                    .domain_attr()
                    .map(|attr| attr.resource_mgmt(99))
                    .map(drop)
            },
            |entry| entry.domain_attr().map(|attr| attr.tclass(1)).map(drop),
            |entry| entry.tx_attr().map(|attr| attr.tclass = 1),
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
