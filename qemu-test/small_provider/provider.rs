// SPDX-License-Identifier: GPL-2.0

//! The provider, its fabrics and their domains.

#![forbid(unsafe_code)]

use crate::prelude::*;

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
        // Others are not to find it by chance.
        if hints.prov_name() != Some(Self::name()) {
            return Err(ENODATA);
        }
        if !CAPS.contains(Caps::from_raw(hints.get().caps)) {
            return Err(ENODATA);
        }
        let mut info = Info::new()?;
        let mut entry = info.first_mut();
        entry.caps(CAPS).addr_format(ADDR_CXI);
        let attr = entry.tx_attr()?;
        attr.caps = Caps::MSG.union(Caps::SEND).as_raw();
        (attr.size, attr.inject_size, attr.iov_limit) = (SIZE, INJECT_SIZE, IOV_LIMIT);
        let attr = entry.rx_attr()?;
        attr.caps = Caps::MSG.union(Caps::RECV).union(Caps::SOURCE).as_raw();
        (attr.size, attr.iov_limit) = (SIZE, IOV_LIMIT);
        let attr = entry.ep_attr()?.type_(KFI_EP_RDM);
        let _ = attr.max_msg_size(MAX_MSG_SIZE).tx_ctx_cnt(1).rx_ctx_cnt(1);
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

/// Defines calls that open objects of a class with the attributes that the call brings, and refuses
/// those of which there are none.
macro_rules! calls {
    ($($call:ident($attr:ty) -> $object:ident: $class:ty $(= $new:path)?;)*) => {$(
        calls!(@ $call($attr) -> $object: $class $(= $new)?);
    )*};
    (@ $call:ident($attr:ty) -> $object:ident: $class:ty = $new:path) => {
        type $object = $object;

        fn $call<'o>(
            this: &Fid<Self>,
            attr: $attr,
            opening: Opening<'o, $class>,
        ) -> Result<NewFid<'o, $object>> {
            NewFid::new($new(Hold::new(this)?, attr)?, opening)
        }
    };
    (@ $call:ident($attr:ty) -> $object:ident: $class:ty) => {
        type $object = Absent<$class>;

        fn $call<'o>(
            _this: &Fid<Self>,
            _attr: $attr,
            _opening: Opening<'o, $class>,
        ) -> Result<NewFid<'o, Absent<$class>>> {
            Err(ENOSYS)
        }
    };
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
    calls! {
        domain(InfoRef<'_>) -> Domain: DomainClass = Domain::new;
        eq_open(EventQueueAttr<'_>) -> EventQueue: EventQueueClass;
        wait_open(WaitSetAttr) -> WaitSet: WaitSetClass;
    }

    fn trywait(_this: &Fid<Self>, _fids: AnyFids<'_>) -> Result {
        Err(ENOSYS)
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

    calls! {
        av_open(AddressVectorAttr) -> AddressVector: AddressVectorClass = AddressVector::new;
        cntr_open(CounterAttr<'_>) -> Counter: CounterClass = Counter::new;
        cq_open(CompletionQueueAttr<'_>) -> CompletionQueue: CompletionQueueClass = CompletionQueue::new;
        poll_open(u64) -> PollSet: PollSetClass;
        endpoint(InfoRef<'_>) -> Endpoint: PlainClass = Endpoint::new;
        scalable_ep(InfoRef<'_>) -> ScalableEndpoint: ScalableClass;
        stx_ctx(Option<&kfi_tx_attr>) -> SharedTransmitContext: SharedTransmitClass;
        srx_ctx(Option<&kfi_rx_attr>) -> SharedReceiveContext: SharedReceiveClass;
        mr_reg(MemoryRegionAttr<'_>) -> MemoryRegion: MemoryRegionClass;
    }

    fn query_atomic(
        &self,
        _datatype: kfi_datatype,
        _op: kfi_op,
        _flags: u64,
    ) -> Result<(usize, usize)> {
        Err(EOPNOTSUPP)
    }
}
