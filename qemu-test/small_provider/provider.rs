// SPDX-License-Identifier: GPL-2.0

//! The provider, its fabrics and their domains.

#![forbid(unsafe_code)]

use crate::{
    endpoint::*,
    kfi::provider::prelude::*, //
};

/// The provider.
pub(crate) struct Small;

impl Provider for Small {
    const VERSION: u32 = 1 << 16;
    type Fabric = Fabric;

    fn name() -> &'static CStr {
        c"kfi_small"
    }

    fn getinfo(query: &Query<'_>) -> Result<Info> {
        let hints = query.hints.ok_or(ENODATA)?;
        let caps = Caps::from_raw(hints.get().caps);
        // Others are not to find it by chance.
        if hints.prov_name() != Some(Self::name()) || !CAPS.contains(caps) {
            return Err(ENODATA);
        }
        let mut info = Info::new()?;
        let mut entry = info.first_mut();
        entry.caps(CAPS).addr_format(ADDR_CXI);
        let attr = entry.tx_attr()?;
        attr.caps = Caps::MSG.union(Caps::SEND).as_raw();
        SENDS.offer_tx(attr);
        let attr = entry.rx_attr()?;
        attr.caps = Caps::MSG.union(Caps::RECV).union(Caps::SOURCE).as_raw();
        RECEIVES.offer_rx(attr);
        let attr = entry.ep_attr()?.type_(KFI_EP_RDM);
        let _ = attr
            .max_msg_size(SENDS.max_msg_size)
            .tx_ctx_cnt(1)
            .rx_ctx_cnt(1);
        let attr = entry.domain_attr()?.name(c"small0")?;
        let _ = attr.threading(THREAD_SAFE).cq_data_size(8);
        let attr = entry.fabric_attr()?.name(c"small")?;
        let _ = attr.prov_name(Self::name())?;
        Ok(info)
    }

    fn fabric<'o>(
        _attr: FabricAttr<'_>,
        opening: Opening<'o, FabricClass>,
    ) -> Result<NewFid<'o, Fabric>> {
        let fabric = pin_init!(Fabric {
            net <- new_spinlock_irq!(Net::new(), "kfi_small::Fabric::net"),
            addresses: Atomic::new(1000),
        });
        NewFid::new(fabric, opening)
    }
}

/// A fabric, on which all endpoints are that know each other.
#[pin_data]
pub(crate) struct Fabric {
    #[pin]
    pub(crate) net: SpinLockIrq<Net>,
    /// The next address, of four digits or more.
    pub(crate) addresses: Atomic<u64>,
}

impl Object for Fabric {
    type Class = FabricClass;

    fn release(&self) {}
}

impl FabricOps for Fabric {
    type Domain = Domain;
    type EventQueue = Absent<EventQueueClass>;
    type WaitSet = Absent<WaitSetClass>;

    open_calls! {
        domain = Domain::new;
    }
}

/// A domain.
pub(crate) struct Domain {
    pub(crate) fabric: Hold<Fabric>,
}

impl Domain {
    fn new(fabric: Hold<Fabric>, _info: InfoRef<'_>) -> Result<Self> {
        Ok(Self { fabric })
    }
}

impl Object for Domain {
    type Class = DomainClass;

    fn release(&self) {
        self.fabric.release();
    }
}

impl DomainOps for Domain {
    const ADDRESS_FORMAT: AddressFormat = AddressFormat::Cxi;

    type AddressVector = AddressVector<Self, NonZeroU64>;
    type Counter = Counter<Self>;
    type CompletionQueue = CompletionQueue<Self>;
    type PollSet = Absent<PollSetClass>;
    type Endpoint = Endpoint;
    type ScalableEndpoint = Absent<ScalableClass>;
    type SharedTransmitContext = Absent<SharedTransmitClass>;
    type SharedReceiveContext = Absent<SharedReceiveClass>;
    type MemoryRegion = Absent<MemoryRegionClass>;

    open_calls! {
        av_open = AddressVector::new;
        cntr_open = Counter::new;
        cq_open = CompletionQueue::new;
        endpoint = Endpoint::new;
    }
}
