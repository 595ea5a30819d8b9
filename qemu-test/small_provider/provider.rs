// SPDX-License-Identifier: GPL-2.0

//! The provider, its fabrics and their domains.

#![forbid(unsafe_code)]

use crate::{
    endpoint::*,
    kfi::provider::prelude::*, //
};

/// The offer, for those who ask what there is.
pub(crate) const OFFER: Offer = Offer {
    provider: c"kfi_small",
    version: Small::VERSION,
    fabric: c"small",
    domain: c"small0",
    endpoints: KFI_EP_RDM,
    caps: Caps::MSG
        .union(Caps::SEND)
        .union(Caps::RECV)
        .union(Caps::SOURCE)
        .union(Caps::LOCAL_COMM),
    addr_format: ADDR_CXI,
    msg_order: Order::NONE,
    tx: SENDS,
    rx: RECEIVES,
    cq_data_size: 8,
};

/// The provider.
pub(crate) struct Small;

impl Provider for Small {
    const VERSION: u32 = 1 << 16;
    type Fabric = Fabric;

    fn name() -> &'static CStr {
        OFFER.provider
    }

    fn getinfo(query: &Query<'_>) -> Result<Info> {
        // Others are not to find it by chance.
        let wanted = query.hints.and_then(|hints| hints.prov_name());
        wanted.ok_or(ENODATA).and_then(|_| OFFER.answer(query))
    }

    fn fabric<'o>(
        attr: FabricAttr<'_>,
        opening: Opening<'o, FabricClass>,
    ) -> Result<NewFid<'o, Fabric>> {
        if !OFFER.has_fabric(&attr) {
            return Err(ENODEV);
        }
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
    fn new(fabric: Hold<Fabric>, info: InfoRef<'_>) -> Result<Self> {
        if !OFFER.fits(info) {
            return Err(EINVAL);
        }
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
